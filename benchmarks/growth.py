"""Growing a factorisation against solving afresh at every size: time and true error, in one run.

    python -m benchmarks.growth [--quick]

Both get the same blocks of the same matrix and solve at the same sizes; a ratio of times below 1 says that growing is
cheaper. Errors are relative L2 against the exact solution at 2000 random points that no solve has seen. The times of
one case are taken in turn, and the smallest of several kept, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from rich.console import Console
from rich.table import Table

from pibls import Points, problems
from pibls.features import draw_network
from pibls.solvers import Growing, LeastSquares
from pibls.system import assemble

Weights = list[Any]


@dataclass(frozen=True)
class Case:
    """A problem, and the nodes that are to solve it."""

    problem: str
    activation: str
    scale: Any

    def build(self, rows: int, columns: int) -> tuple[Any, Any, Callable[[Any], float]]:
        """Return matrix, right-hand side, and the true error of weights of the leading nodes."""
        problem = problems.catalogue()[self.problem]()
        points = Points.sample(problem, interior=rows - rows // 8, boundary=rows // 8)
        network = draw_network(
            np.random.default_rng(0), problem.domain.bounds, [(self.activation, columns, self.scale)]
        )
        system = assemble(problem, points, network)
        unseen = problem.domain.sample(2000, method="uniform", seed=1)
        values = network.combine(unseen, [{(0,) * unseen.shape[1]: 1.0}])[0]
        expression = next(iter(problem.exact.values()))
        exact = sp.lambdify(problem.domain.coordinates, expression, "numpy")(*unseen.T)

        def error(weights: Any) -> float:
            return float(np.linalg.norm(values[:, : len(weights)] @ weights - exact) / np.linalg.norm(exact))

        # A random order of rows makes any leading part of them a system of its own.
        order = np.random.default_rng(1).permutation(len(system.rhs))
        return np.asfortranarray(system.matrix[order]), system.rhs[order], error


CASES = [
    Case("poisson_gaussian", "tanh", 6.0),
    Case("poisson_gaussian", "sin", 8.0),
    Case("helmholtz", "sin", 8.0),
    Case("diffusion_reaction", "sin", (25.0, 2.0)),
    Case("diffusion_reaction", "tanh", 4.0),
    Case("poisson_star", "tanh", 3.0),
    Case("poisson_star", "sin", 3.0),
]


def columns_afresh(matrix: Any, rhs: Any, sizes: list[int]) -> Weights:
    return [LeastSquares().factorise(matrix[:, :size]).solve(rhs) for size in sizes]


def columns_grown(matrix: Any, rhs: Any, sizes: list[int]) -> Weights:
    grown = Growing.start(matrix[:, : sizes[0]])
    weights = [grown.solve(rhs)]
    for start, stop in itertools.pairwise(sizes):
        grown = grown.with_columns(matrix[:, start:stop])
        weights.append(grown.solve(rhs))
    return weights


def rows_afresh(matrix: Any, rhs: Any, sizes: list[int]) -> Weights:
    return [LeastSquares().factorise(matrix[:size]).solve(rhs[:size]) for size in sizes]


def rows_grown(matrix: Any, rhs: Any, sizes: list[int]) -> Weights:
    grown = Growing.start(matrix[: sizes[0]])
    weights = [grown.solve(rhs[: sizes[0]])]
    for start, stop in itertools.pairwise(sizes):
        grown = grown.with_rows(matrix[start:stop])
        weights.append(grown.solve(rhs[:stop]))
    return weights


def timed(work: Callable[[Any, Any, list[int]], Weights], *given: Any) -> tuple[float, Weights]:
    start = time.perf_counter()
    weights = work(*given)
    return time.perf_counter() - start, weights


def show(
    console: Console, title: str, pair: Any, cases: list[Case], shape: tuple[int, int], sizes: list[int], repeats: int
) -> None:
    """Measure every case with both of a pair of ways, and print a table."""
    table = Table(title=title)
    for heading in ("problem", "nodes", "afresh s", "grown s", "ratio", "error afresh", "error grown", "worst ratio"):
        table.add_column(heading, justify="left" if heading in ("problem", "nodes") else "right", no_wrap=True)
    for case in cases:
        matrix, rhs, error = case.build(*shape)
        runs = [[timed(way, matrix, rhs, sizes) for way in pair] for _ in range(repeats)]
        afresh, grown = (min(run[way][0] for run in runs) for way in (0, 1))
        errors = [[error(weights) for weights in result] for _, result in runs[0]]
        worst = max(b / a for a, b in zip(*errors, strict=True))
        cells = [f"{afresh:.2f}", f"{grown:.2f}", f"{grown / afresh:.2f}"]
        cells += [f"{errors[0][-1]:.1e}", f"{errors[1][-1]:.1e}", f"{worst:.2f}"]
        table.add_row(case.problem, case.activation, *cells)
    console.print(table)


def main() -> None:
    """Print two tables for columns and two for rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the rows and nodes, one repeat")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    part = 4 if options.quick else 1
    repeats = 1 if options.quick else options.repeats
    rows, nodes = 6000 // part, 2000 // part
    finer, coarser = ([nodes * k // parts for k in range(parts // 4, parts + 1)] for parts in (8, 4))
    console = Console(width=120)
    by_columns, by_rows = (columns_afresh, columns_grown), (rows_afresh, rows_grown)
    for widths in (finer, coarser):
        show(console, f"{rows} rows, nodes {widths}", by_columns, CASES, (rows, nodes), widths, repeats)
    halves, steps = [rows // 2, rows], [rows // 2 + k * rows // 60 for k in range(6)]
    few = CASES[:2]
    show(console, f"{nodes // 2} nodes, rows {halves}", by_rows, few, (rows, nodes // 2), halves, repeats)
    show(console, f"{nodes // 2} nodes, rows {steps}", by_rows, few, (rows, nodes // 2), steps, repeats)
    console.print("worst ratio: of the errors, grown over afresh, at any of the sizes.")


if __name__ == "__main__":
    main()
