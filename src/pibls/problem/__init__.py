"""WHAT is to be solved: symbols, equations and conditions, checked and lowered to coefficients.

>>> import sympy as sp
>>> from pibls.problem import coordinates, field, laplacian
>>> x, y = coordinates("x y")
>>> u = field("u", x, y)
>>> sp.Eq(-laplacian(u), 1)
Eq(-laplacian(u(x, y)), 1)
"""

from pibls.problem.conditions import (
    Condition,
    Dirichlet,
    Initial,
    Mean,
    Neumann,
    Periodic,
    Robin,
)
from pibls.problem.lowering import Form, MultiIndex, Term
from pibls.problem.observation import AnyCondition, Observation
from pibls.problem.operators import div, grad, laplacian, normal_derivative
from pibls.problem.places import AtPoints, Average, Averages, Interior, OnPart, Opposite
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement
from pibls.problem.symbols import Data, Field, Smooth, Unknown, coordinates, data, field, normal, unknown

__all__ = [
    "AnyCondition",
    "AtPoints",
    "Average",
    "Averages",
    "Condition",
    "Data",
    "Dirichlet",
    "Field",
    "Form",
    "Initial",
    "Interior",
    "Mean",
    "MultiIndex",
    "Neumann",
    "Observation",
    "OnPart",
    "Opposite",
    "Periodic",
    "Problem",
    "Robin",
    "Smooth",
    "Statement",
    "Term",
    "Unknown",
    "coordinates",
    "data",
    "div",
    "field",
    "grad",
    "laplacian",
    "normal",
    "normal_derivative",
    "unknown",
]
