"""True errors with settings given by hand, over seeds: many points, then the few random points of the paper.

    python -m benchmarks.accuracy

Errors are relative L2 against the exact solution at 2000 uniformly random points that no solve has seen (the largest
over the fields of a system). Settings were chosen once per problem; the exact solution plays no part in a solve.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
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

    def run(self) -> tuple[list[float], list[float], int]:
        """Return errors and seconds per seed, and the number of rows."""
        problem = pb.problems.catalogue()[self.problem]()
        method = pb.PIBLS(features=[("sin", self.nodes, self.scale)], enhancement_groups=0)
        errors, seconds, rows = [], [], 0
        for seed in range(self.seeds):
            points = pb.Points.sample(problem, seed=seed, **self.points)
            start = time.perf_counter()
            solution = method.fit(problem, points, seed=seed)
            seconds.append(time.perf_counter() - start)
            errors.append(solution.true_error())
            rows = solution.diagnostics.rows
        return errors, seconds, rows


MANY = [
    Case("advection", 150, 14.0, {"interior": 300}),
    Case("poisson_star", 600, 3.0, {"interior": 1500}),
    Case("poisson_square", 1000, 12.0, {"interior": 2500}),
    Case("diffusion_reaction", 1000, (25.0, 2.0), {"interior": 2500, "boundary": 600}),
    Case("helmholtz", 800, 6.0, {"interior": 2000}),
    Case("stokes", 450, 4.0, {"interior": 1000}),
    Case("biharmonic", 600, 4.0, {"interior": 1500}),
]
FEW = [
    Case("advection", 200, 6.0, {"interior": 30, "method": "uniform"}, 10),
    Case("poisson_star", 400, 3.0, {"interior": 100, "boundary": 100, "method": "uniform"}, 10),
    Case(
        "diffusion_reaction",
        600,
        (16.0, 0.3),
        {"interior": 100, "boundary": 100, "initial": 100, "method": "uniform"},
        10,
    ),
]


def show(title: str, cases: list[Case], console: Console) -> None:
    """Run the cases and print a table."""
    table = Table(title=title)
    for heading in ("problem", "rows", "nodes", "scale", "seeds", "median error", "worst error", "seconds"):
        table.add_column(heading, justify="left" if heading == "problem" else "right", no_wrap=True)
    for case in cases:
        errors, seconds, rows = case.run()
        facts = [case.problem, f"{rows}", f"{case.nodes}", f"{case.scale}", f"{case.seeds}"]
        times = statistics.median(seconds)
        table.add_row(*facts, f"{statistics.median(errors):.1e}", f"{max(errors):.1e}", f"{times:.2f}")
    console.print(table)


def main() -> None:
    """Print both tables."""
    console = Console(width=110)
    show("Many points", MANY, console)
    show("The paper's few random points inside (30, 100, 100)", FEW, console)


if __name__ == "__main__":
    main()
