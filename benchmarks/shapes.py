"""Shapes from files solved by one call of `solve`, against finite elements on the same shapes.

    python -m benchmarks.shapes [bracket] [coast] [plate] [--tol 1e-3] [--plots FOLDER]

Heat in a bracket from an STL file, with a source inside and one cold end; the water table of a country from GeoJSON,
with a lake; heat through a plate around a bar of copper, a gmsh mesh with two materials. The references are those that
`benchmarks/shapes_reference.py` prints, with what they changed by when elements were halved. Differences are relative
to the largest value at the points, that of the integral to itself.

With `--tol 1e-3`, on one of two busy cores: the plate converges in 33 s of CPU time with an estimate of 5e-5, within
2e-5 of the elements at the points. The other two fall short. After 90 s the coast has an estimate of 2e-2 and is within
7e-3; most of the time goes into cutting cells along 120 edges. The bracket ends after 54 s with an estimate of 2e-1 and
is within 6e-2: cells are not graded towards its inner edge.
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


def measure(name: str, tol: float, plots: Path | None) -> tuple[Any, ...]:
    """Return how far a solution is from its reference, and what it says of itself."""
    points, reference, change = REFERENCES[name]
    wall, cpu = time.perf_counter(), time.process_time()
    problem = {"bracket": bracket, "coast": coast, "plate": plate}[name]()
    solution = pb.solve(problem, tol=tol)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    X, weights = problem.domain.quadrature(20_000)
    values = solution(np.array(points))
    integral = abs(float(weights @ solution(X)) / reference[0] - 1)
    at_points = float(np.abs(values - reference[1:]).max() / np.abs(reference[1:]).max())
    if plots is not None:
        plots.mkdir(exist_ok=True)
        solution.plot().savefig(plots / f"{name}.png")
    return name, solution.status, solution.error_estimate, integral, at_points, change, cpu, wall


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(REFERENCES))
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    titles = ("shape", "status", "estimate", "integral", "points", "reference ±", "CPU s", "wall s")
    table = Table(*titles)
    for name in options.names:
        name, status, *numbers, cpu, wall = measure(name, options.tol, options.plots)
        table.add_row(name, str(status), *(f"{number:.1e}" for number in numbers), f"{cpu:.1f}", f"{wall:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
