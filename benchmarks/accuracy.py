"""True errors with settings given by hand, over seeds: many points, then the few random points of the paper.

    python -m benchmarks.accuracy [--csv out/accuracy.csv]

Errors are relative L2 against the exact solution at 2000 uniformly random points that no solve has seen (the largest
over the fields of a system). Settings were chosen once per problem; the exact solution plays no part in a solve.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import pibls as pb


@dataclass(frozen=True)
class Case:
    """A problem, a method and the points it gets."""

    problem: str
    nodes: int
    scale: Any
    points: dict[str, Any]
    seeds: int = 5
    enhancement: int = 0

    def run(self) -> tuple[list[float], list[float], int, int]:
        """Return errors and seconds per seed, and the numbers of rows and weights."""
        problem = pb.problems.catalogue()[self.problem]()
        features = [("sin", self.nodes - self.enhancement, self.scale)]
        method = pb.PIBLS(features=features, enhancement_groups=1, enhancement_nodes=self.enhancement)
        errors, seconds, rows = [], [], 0
        for seed in range(self.seeds):
            points = pb.Points.sample(problem, seed=seed, **self.points)
            start = time.perf_counter()
            solution = method.fit(problem, points, seed=seed)
            seconds.append(time.perf_counter() - start)
            errors.append(solution.true_error())
            rows = solution.diagnostics.rows
        return errors, seconds, rows, self.nodes * len(problem.fields)


MANY = [
    Case("advection", 150, 14.0, {"interior": 300}),
    Case("poisson_star", 600, 8.0, {"interior": 1500}),
    Case("poisson_square", 1000, 12.0, {"interior": 2500}),
    Case("diffusion_reaction", 1000, (25.0, 2.0), {"interior": 2500, "boundary": 600}),
    Case("helmholtz", 800, 6.0, {"interior": 2000}),
    Case("stokes", 450, 4.0, {"interior": 1000}),
    Case("biharmonic", 600, 4.0, {"interior": 1500}),
]
FEW = [
    Case("advection", 200, 6.0, {"interior": 30, "method": "uniform"}, 10),
    Case("advection", 200, 6.0, {"interior": 30, "method": "uniform"}, 10, enhancement=100),
    Case("poisson_star", 400, 6.0, {"interior": 100, "boundary": 100, "method": "uniform"}, 10),
    Case(
        "diffusion_reaction",
        600,
        (16.0, 0.3),
        {"interior": 100, "boundary": 100, "initial": 100, "method": "uniform"},
        10,
    ),
]


FIELDS = ("problem", "points", "rows", "weights", "enhancement", "scale", "seeds", "error", "worst", "seconds")


def row(case: Case, kind: str) -> tuple[Any, ...]:
    """Run a case and return its line."""
    errors, seconds, rows, weights = case.run()
    setting = (case.problem, kind, rows, weights, case.enhancement, case.scale, case.seeds)
    return *setting, statistics.median(errors), max(errors), statistics.median(seconds)


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--csv", type=Path, default=None)
    options = parser.parse_args()
    rows = [row(case, kind) for kind, cases in (("many", MANY), ("few", FEW)) for case in cases]
    table = Table(title="Settings by hand: many points, then the paper's few random ones inside (30, 100, 100)")
    for heading in FIELDS:
        table.add_column(heading, justify="left" if heading in FIELDS[:2] else "right", no_wrap=True)
    for values in rows:
        table.add_row(*(f"{v:.2g}" if isinstance(v, float) else f"{v}" for v in values))
    Console(width=130).print(table)
    if options.csv is not None:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([FIELDS, *rows])


if __name__ == "__main__":
    main()
