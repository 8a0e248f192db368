"""Problems: symbols, equations and conditions, checked and lowered to coefficients.

>>> import sympy as sp
>>> from pibls.problem import coordinates, field, laplacian
>>> x, y = coordinates("x y")
>>> u = field("u", x, y)
>>> sp.Eq(-laplacian(u), 1)
Eq(-laplacian(u(x, y)), 1)
"""

from pibls.problem.conditions import Condition, Dirichlet, Initial, Mean, Neumann, Periodic, Robin
from pibls.problem.interface import AnyCondition, Convection, Interface, flux, inside, outside
from pibls.problem.lowering import Form, MultiIndex, Term
from pibls.problem.mechanics import Absorbing, Symmetry, Traction, stress, von_mises
from pibls.problem.observation import Observation
from pibls.problem.operators import curl, div, grad, laplacian, normal_derivative
from pibls.problem.places import Across, AtPoints, Average, Averages, Interior, OnPart, Opposite
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement
from pibls.problem.symbols import Data, Field, coordinates, data, field, normal
from pibls.problem.unknown_numbers import Eigenvalue, Smooth, Unknown, eigenvalue, parameter, unknown

__all__ = ["Absorbing", "Across", "AnyCondition", "AtPoints", "Average", "Averages", "Condition", "Convection"]
__all__ += ["Data", "Dirichlet", "Eigenvalue", "Field", "Form", "Initial", "Interface", "Interior", "Mean"]
__all__ += ["MultiIndex", "Neumann", "Observation", "OnPart", "Opposite", "Periodic", "Problem", "Robin", "Smooth"]
__all__ += ["Statement", "Symmetry", "Term", "Traction", "Unknown", "coordinates", "curl", "data", "div"]
__all__ += ["eigenvalue", "field", "flux", "grad", "inside", "laplacian", "normal", "normal_derivative", "outside"]
__all__ += ["parameter", "stress", "unknown", "von_mises"]
