"""Shapes from files solved by one call of `solve`, against finite elements on the same shapes, and plates with holes.

    python -m benchmarks.shapes [bracket] [coast] [plate] [holes] [discs] [--tol 1e-3] [--plots FOLDER]

Heat in a bracket from an STL file, with a source inside and one cold end; the water table of a country from GeoJSON,
with a lake; heat through a plate around a bar of copper, a gmsh mesh with two materials. The references are those that
`benchmarks/shapes_reference.py` prints, with what they changed by when elements were halved. Differences are relative
to the largest value at the points, that of the integral to itself. Two more have exact solutions, and errors relative
to these in the mean square: elasticity on a plate with 40 holes of different sizes, and Stokes flow past three discs.

With `--tol 1e-3`, on one of two busy cores: the plate converges in 33 s of CPU time with an estimate of 5e-5, within
2e-5 of the elements at the points, the coast in 18 s with an estimate of 3e-4, within 2e-4, and the bracket, whose bolt
hole has 24 flat sides, in 20 s with an estimate of 4e-4, within 8e-4.
With `--tol 1e-6` the holes take 12 s and have an error of 1e-7, the discs 2 s
and 2e-9.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from rich.console import Console
from rich.table import Table

import pibls as pb

FOLDER = Path(__file__).parent.parent / "examples" / "shapes"
REFERENCES = {  # points, integral and values there, change
    "bracket": (
        [[2.8, 1.0, 0.25], [1.2, 0.4, 0.25], [0.25, 1.0, 1.2]],
        [24.890232392697854, 9.224885694041461, 7.300158239952486, 3.0809976401636616],
        3.7e-4,
    ),
    "coast": (
        [[0.0, 1.2], [-1.6, 0.3], [1.4, -0.8]],
        [2.5100611321612623, 0.37451843563605186, 0.06427501766814414, 0.04224331741550019],
        1.7e-4,
    ),
    "plate": (
        [[0.5, 0.5], [1.5, 0.5], [1.15, 0.8]],
        [149.99999999824857, 80.75483089291683, 49.999999998996174, 56.459818817531],
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


def measure(name: str, tol: float, plots: Path | None) -> tuple[Any, ...]:
    """Return how far a solution is from its reference, or from what is exact, and what it says of itself."""
    wall, cpu = time.perf_counter(), time.process_time()
    problem = PROBLEMS[name]()
    solution = pb.solve(problem, tol=tol)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if plots is not None:
        plots.mkdir(exist_ok=True)
        solution.plot().savefig(plots / f"{name}.png")
    if name not in REFERENCES:
        return name, solution.status, solution.error_estimate, solution.true_error(20_000), np.nan, 0.0, cpu, wall
    points, reference, change = REFERENCES[name]
    X, weights = problem.domain.quadrature(20_000)
    values = solution(np.array(points))
    integral = abs(float(weights @ solution(X)) / reference[0] - 1)
    at_points = float(np.abs(values - reference[1:]).max() / np.abs(reference[1:]).max())
    return name, solution.status, solution.error_estimate, integral, at_points, change, cpu, wall


PROBLEMS = {"bracket": bracket, "coast": coast, "plate": plate, "holes": holes, "discs": discs}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    titles = ("shape", "status", "estimate", "integral or error", "points", "reference ±", "CPU s", "wall s")
    table = Table(*titles)
    for name in options.names:
        name, status, *numbers, cpu, wall = measure(name, options.tol, options.plots)
        table.add_row(name, str(status), *(f"{number:.1e}" for number in numbers), f"{cpu:.1f}", f"{wall:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
