"""Shapes from files, plates with many holes, and flows in a cavity.

Heat in a bracket from an STL file, with a source inside and one cold end; the water table of a country from GeoJSON,
with a lake; heat through a plate around a bar of copper, a gmsh mesh with two materials. Their references come from
``benchmarks/shapes_reference.py``, with what they changed by when elements were halved. Elasticity on a plate with 40
holes of different sizes and Stokes flow past three discs have exact solutions. Lid-driven cavities are compared on
their centre lines with ``benchmarks/cavity_reference.py``: finite elements of order 5 on another mesh differ from
these by 5e-4 for Re 400 next to the lid, by 8e-5 below y = 0.8.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.case import Case, exact_error
from pibls.checks import FloatArray

FOLDER = Path(__file__).parents[2] / "examples" / "shapes"

REFERENCES: dict[str, tuple[list[list[float]], list[float], float]] = {  # points, values there, change
    "bracket": (
        [[2.8, 1.0, 0.25], [1.2, 0.4, 0.25], [0.25, 1.0, 1.2]],
        [9.224885694041461, 7.300158239952486, 3.0809976401636616],
        3.7e-4,
    ),
    "coast": (
        [[0.0, 1.2], [-1.6, 0.3], [1.4, -0.8]],
        [0.37451843563605186, 0.06427501766814414, 0.04224331741550019],
        1.7e-4,
    ),
    "plate": (
        [[0.5, 0.5], [1.5, 0.5], [1.15, 0.8]],
        [80.75483089291683, 49.999999998996174, 56.459818817531],
        5.0e-6,
    ),
}


def bracket() -> pb.Problem:
    """Return heat in a bracket, cold at the top of its upright."""
    x, y, z = pb.coordinates("x y z")
    u = pb.field("u", x, y, z)
    shape = pb.read_shape(FOLDER / "bracket.stl", (x, y, z))
    top = shape.boundary.where(lambda X: X[:, 2] > 2 - 1e-9)
    rest = shape.boundary.where(lambda X: X[:, 2] <= 2 - 1e-9)
    conditions = [pb.Dirichlet(u, 0, on=top), pb.Neumann(u, 0, on=rest)]
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), shape, conditions)


def coast() -> pb.Problem:
    """Return the water table of a country under rain."""
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    shape = pb.read_shape(FOLDER / "coast.geojson", (x, y))
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), shape, [pb.Dirichlet(u, 0)])


def plate() -> pb.Problem:
    """Return heat that flows through a plate of two materials."""
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    shape = pb.read_shape(FOLDER / "plate.msh", (x, y))
    copper = pb.read_shape(FOLDER / "plate.msh", (x, y), region="copper")
    sides = shape.boundary.where(lambda X: np.abs(X[:, 1] - 0.5) > 0.5 - 1e-9)
    conditions = [
        pb.Dirichlet(u, 100, on=shape.inflow),
        pb.Dirichlet(u, 0, on=shape.outflow),
        pb.Neumann(u, 0, on=sides),
    ]
    k = pb.per_region({copper: 400}, 50)
    return pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), shape, conditions)


def holes() -> pb.Problem:
    """Return an elastic sheet with 40 holes, loaded so that its displacements are known."""
    x, y = pb.coordinates("x y")
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    shape, rng = pb.Rectangle((x, 0, 8), (y, 0, 8)), np.random.default_rng(3)
    places = rng.permutation([(i, j) for i in range(8) for j in range(8)])[:40]
    for center, radius in zip(places + 0.5 + rng.uniform(-0.12, 0.12, (40, 2)), rng.uniform(0.2, 0.3, 40), strict=True):
        shape = shape - pb.Disk((x, y), center.tolist(), float(radius))
    exact = {
        u: y * ((x + 10) * sp.sin(y) + (y + 5) * sp.cos(x)) / 10,
        v: y * ((30 + 5 * x * sp.sin(5 * x)) * (4 + sp.exp(-5 * y)) - 100) / 60,
    }
    stresses = pb.stress([u, v], young=3e7, poisson=0.3, plane="stress")
    known = stresses.subs(exact).doit()
    equations = [
        sp.Eq(pb.div(row), sum(part.diff(s) for part, s in zip(own, (x, y), strict=True)))
        for row, own in zip(stresses.tolist(), known.tolist(), strict=True)
    ]
    below = shape.boundary.where(lambda X: X[:, 1] < 1e-9)
    rest = shape.boundary.where(lambda X: X[:, 1] >= 1e-9)
    load = known * sp.Matrix(pb.normal(x, y))
    held = [pb.Dirichlet(w, value.subs(y, 0), on=below) for w, value in exact.items()]
    return pb.Problem(equations, shape, [*held, *pb.Traction(stresses, list(load), on=rest)], exact=_by_name(exact))


def discs() -> pb.Problem:
    """Return a flow in a square past three discs, slow and known."""
    x, y = pb.coordinates("x y")
    u, v, p = (pb.field(name, x, y) for name in "uvp")
    shape = pb.Rectangle((x, 0, 1), (y, 0, 1))
    for center in ((0.5, 0.2), (0.2, 0.8), (0.8, 0.8)):
        shape = shape - pb.Disk((x, y), center, 0.1)
    exact = {
        u: x + x**2 - 2 * x * y + x**3 - 3 * x * y**2 + x**2 * y,
        v: -y - 2 * x * y + y**2 - 3 * x**2 * y + y**3 - x * y**2,
        p: x * y + x + y + x**3 * y**2 - sp.Rational(4, 3),
    }
    pairs = [(-pb.laplacian(u) + p.diff(x), u, x), (-pb.laplacian(v) + p.diff(y), v, y)]
    equations = [
        sp.Eq(left, -exact[w].diff(x, 2) - exact[w].diff(y, 2) + exact[p].diff(along)) for left, w, along in pairs
    ]
    X, weights = shape.quadrature(100_000)
    mean = float(weights @ sp.lambdify((x, y), exact[p])(*X.T) / weights.sum())
    conditions = [*(pb.Dirichlet(w, exact[w]) for w in (u, v)), pb.Mean(p, mean)]
    return pb.Problem([*equations, sp.Eq(u.diff(x) + v.diff(y), 0)], shape, conditions, exact=_by_name(exact))


def _by_name(exact: dict[Any, sp.Expr]) -> dict[str, sp.Expr]:
    return {w.func.__name__: value for w, value in exact.items()}


def _at_points(name: str, solution: pb.Solution) -> float:
    points, known, _ = REFERENCES[name]
    return float(np.abs(solution(np.array(points)) - known).max() / np.abs(known).max())


def _numbers(text: str) -> FloatArray:
    return np.array(text.split(), dtype=np.float64)


HEIGHTS = _numbers(
    "0.0547 0.0625 0.0703 0.1016 0.1719 0.2813 0.4531 0.5 0.6172 0.7344 0.8516 0.9531 0.9609 0.9688 0.9766"
)
ELEMENTS_U = _numbers(
    "-0.0818162 -0.0925926 -0.1032947 -0.1461890 -0.2437744 -0.3287213 -0.1714847 -0.1150546"
    " 0.0210322 0.1625603 0.2920309 0.5616851 0.6198670 0.6869765 0.7604086"
)  # at Re 400
ELEMENTS_V = _numbers(
    "0.1697993 0.1851281 0.1987875 0.2404954 0.2914209 0.2889934 0.1109197 0.0520570"
    " -0.0912736 -0.2538404 -0.4509649 -0.1982199 -0.1615393 -0.1250607 -0.0904331"
)
STRETCHING_U = _numbers(
    "-0.0332551 -0.0374645 -0.0415732 -0.0572210 -0.0892981 -0.1355410 -0.1817238 -0.1787528"
    " -0.1245131 -0.0070881 0.1867844 0.6194129 0.6748336 0.7346705 0.7971740"
)


def _along_lines(known: dict[str, FloatArray], solution: pb.Solution) -> float:
    """Return the error of u on the vertical and of v on the horizontal centre line."""
    middle = np.full_like(HEIGHTS, 0.5)
    lines = {"u": np.c_[middle, HEIGHTS], "v": np.c_[HEIGHTS, middle]}
    return float(max(np.linalg.norm(solution(lines[f])[f] - own) / np.linalg.norm(own) for f, own in known.items()))


def bodies() -> dict[str, Case]:
    """Return the problems."""
    files = {"bracket": bracket, "coast": coast, "plate": plate}
    cases = [
        Case(name, make, partial(_at_points, name), "file", (1e-3,), accuracy=REFERENCES[name][2])
        for name, make in files.items()
    ]
    cases += [Case(make.__name__, make, exact_error, "holes", (1e-6,)) for make in (holes, discs)]
    fast = partial(_along_lines, {"u": ELEMENTS_U, "v": ELEMENTS_V})
    cases.append(Case("cavity 400", partial(pb.problems.cavity, 400), fast, "flow", (1e-3,), accuracy=5e-4))
    slow = partial(_along_lines, {"u": STRETCHING_U})
    cases.append(Case("regularised_cavity", pb.problems.regularised_cavity, slow, "flow"))
    return {case.name: case for case in cases}
