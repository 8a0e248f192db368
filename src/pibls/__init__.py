"""Solve differential equations with broad random-feature networks: no mesh, no training loop.

>>> import sympy as sp, pibls as pb
>>> x, y = pb.coordinates("x y")
>>> u = pb.field("u", x, y)
>>> square = pb.Rectangle((x, 0, 1), (y, 0, 1))
>>> source = 2 * sp.pi**2 * sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
>>> problem = pb.Problem(sp.Eq(-pb.laplacian(u), source), square, [pb.Dirichlet(u, 0)])
>>> solution = pb.solve(problem)
>>> bool(abs(solution([[0.5, 0.5]]) - 1) < 1e-8)
True
"""

from importlib.metadata import version

from pibls import problems
from pibls.errors import PiblsError
from pibls.geometry import (
    Ball,
    Box,
    Disk,
    Interval,
    PointCloud,
    Points,
    Polygon,
    Rectangle,
    Star,
    TimeInterval,
)
from pibls.methods import PIBLS, PIELM, PINN, BayesianPIELM
from pibls.problem import (
    Condition,
    Dirichlet,
    Initial,
    Mean,
    Neumann,
    Observation,
    Periodic,
    Problem,
    Robin,
    coordinates,
    data,
    div,
    field,
    grad,
    laplacian,
    normal,
    normal_derivative,
    unknown,
)
from pibls.report import metrics
from pibls.solution import Solution, load
from pibls.text import parse, read_problem
from pibls.tuning import solve
from pibls.tuning.cross_validation import cross_validate

__version__ = version("pibls")

__all__ = [
    "PIBLS",
    "PIELM",
    "PINN",
    "Ball",
    "BayesianPIELM",
    "Box",
    "Condition",
    "Dirichlet",
    "Disk",
    "Initial",
    "Interval",
    "Mean",
    "Neumann",
    "Observation",
    "Periodic",
    "PiblsError",
    "PointCloud",
    "Points",
    "Polygon",
    "Problem",
    "Rectangle",
    "Robin",
    "Solution",
    "Star",
    "TimeInterval",
    "coordinates",
    "cross_validate",
    "data",
    "div",
    "field",
    "grad",
    "laplacian",
    "load",
    "metrics",
    "normal",
    "normal_derivative",
    "parse",
    "problems",
    "read_problem",
    "solve",
    "unknown",
]
