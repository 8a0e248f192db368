"""The nonlinear problems of the zoo, solved with default arguments: true errors, estimates and seconds over seeds.

    python -m benchmarks.nonlinear [--tol 1e-10] [--seeds 5] [--csv nonlinear.csv] [name ...]

Errors are relative L2 against the exact solution at 2000 random points that no solve has seen, the largest over the
fields of a system; of problems known at some points only, relative to the largest value there. Nothing but the
tolerance is set; the exact solution plays no part in a solve. Targets: the best figures known from other codes. Runs
are appended to the file, with seconds of the clock and of work, which differ on a busy machine.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import pibls as pb

TARGETS = {
    "bratu": (1e-9, 5.0),
    "cubic_reaction": (1e-10, 5.0),
    "kovasznay": (1e-8, 20.0),
    "nonlinear_helmholtz": (1.9e-11, 2.0),
    "nonlinear_spring": (2e-15, 2.0),
}


@dataclass(frozen=True)
class Run:
    """One solve."""

    problem: str
    seed: int
    tol: float
    status: str
    error: float
    estimate: float
    nodes: int
    seconds: float
    work: float


def run(name: str, seed: int, tol: float) -> Run:
    """Solve a problem once."""
    references = pb.problems.references()
    problem = references[name].problem() if name in references else pb.problems.catalogue()[name]()
    begun, work = time.perf_counter(), time.process_time()
    solution = pb.solve(problem, tol=tol, seed=seed)
    seconds, work = time.perf_counter() - begun, time.process_time() - work
    if name in references:
        known = references[name]
        error = float(np.abs(solution(known.points) - known.values).max() / np.abs(known.values).max())
    else:
        error = solution.true_error()
    estimate = np.inf if solution.error_estimate is None else solution.error_estimate
    return Run(name, seed, tol, solution.status, error, estimate, solution.diagnostics.nodes, seconds, work)


def summary(runs: Sequence[Run]) -> list[str]:
    """Return a row of the table."""
    errors, seconds = [r.error for r in runs], [r.seconds for r in runs]
    error, took = statistics.median(errors), statistics.median(seconds)
    target = TARGETS.get(runs[0].problem)
    met = "" if target is None else f"{target[0]:.0e} in {target[1]:g} s"
    if target is not None:
        met += " ✓" if error <= target[0] and took <= target[1] else " ✗"
    ratios = [r.estimate / r.error for r in runs if r.error > 0]
    converged = sum(r.status == "converged" for r in runs)
    return [
        runs[0].problem,
        f"{converged}/{len(runs)}",
        f"{error:.1e}",
        f"{max(errors):.1e}",
        f"{min(ratios):.1f} … {max(ratios):.1f}" if ratios else "",
        f"{statistics.median([r.nodes for r in runs]):.0f}",
        f"{took:.2f}",
        met,
    ]


def main() -> None:
    """Solve, write every run to a file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="problems; all that are nonlinear and without time if left out")
    parser.add_argument("--tol", type=float, default=1e-10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--csv", type=Path, default=None)
    options = parser.parse_args()
    steady = [n for n, build in pb.problems.catalogue(linear=False).items() if build().domain.time is None]
    console = Console(width=120)
    table = Table(title=f"Nonlinear problems, tol={options.tol:g}, {options.seeds} seeds")
    for heading in ("problem", "converged", "error", "worst", "estimate/error", "nodes", "seconds", "target"):
        table.add_column(heading, justify="left" if heading == "problem" else "right", no_wrap=True)
    for name in options.names or [*steady, "bratu_unforced"]:
        these = []
        for seed in range(options.seeds):
            these.append(run(name, seed, options.tol))
            if options.csv is not None:
                keep(these[-1], options.csv)
        table.add_row(*summary(these))
    console.print(table)


def keep(one: Run, path: Path) -> None:
    """Append a run to a file at once, so that a run that is stopped leaves what it has."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(one)))
        if new:
            writer.writeheader()
        writer.writerow(asdict(one))


if __name__ == "__main__":
    main()
