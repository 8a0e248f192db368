"""The evolutions of the zoo by the method of lines: true errors, estimates and seconds over seeds.

    python -m benchmarks.evolution [--tol 1e-6] [--seeds 5] [--budget 20] [--csv evolution.csv] [name ...]

Errors are relative L2 over space and time against the exact solution, or a reference by another method, at 2000 random
points that no solve has seen, the largest over the fields of a system. Nothing but the tolerance and the budget is
set; nobody is told where a front is.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pibls.lines import evolve
from pibls.problem import Problem
from pibls.problems import advection_beta, evolutions, evolving, heat_2d, heat_3d, heat_robin, klein_gordon, wave

# Error and seconds to reach.
TARGETS = {
    "burgers": (1e-6, 5.0),
    "burgers shifted": (1e-6, 5.0),
    "burgers thin": (1e-3, 15.0),
    "allen_cahn": (1e-6, 10.0),
    "kdv": (1e-6, 20.0),
    "sine_gordon": (1e-6, 20.0),
    "nonlinear_schroedinger": (1e-6, 20.0),
    "advection_beta": (1e-9, 5.0),
    "advection_long": (1e-5, 5.0),
    "kuramoto_sivashinsky": (1e-4, 20.0),
    "heat_3d": (1e-6, 10.0),
}


def problems() -> Mapping[str, Callable[[], Problem]]:
    """Return every evolution by name."""
    thin = 0.001 / math.pi
    variants: dict[str, Callable[[], Problem]] = {
        "burgers": evolving.burgers,
        "burgers shifted": partial(evolving.burgers, shift=0.3),
        "burgers drifting": partial(evolving.burgers, drift=0.3),
        "burgers thin": partial(evolving.burgers, thin),
        "burgers thin shifted": partial(evolving.burgers, thin, shift=0.3),
    }
    rest = {name: build for name, build in evolutions().items() if name != "burgers"}
    linear = {f.__name__: f for f in (advection_beta, heat_2d, heat_3d, heat_robin, klein_gordon, wave)}
    return variants | rest | linear


@dataclass(frozen=True)
class Run:
    """One solve."""

    problem: str
    seed: int
    tol: float
    status: str
    error: float
    estimate: float
    features: int
    coefficients: int
    steps: int
    seconds: float


def run(name: str, seed: int, tol: float, budget: float) -> Run:
    """Solve a problem once."""
    problem = problems()[name]()
    begun = time.perf_counter()
    solution = evolve(problem, tol=tol, seed=seed, budget=budget)
    seconds = time.perf_counter() - begun
    if not solution:
        raise SystemExit(f"{name} is no evolution: {solution.reason}.")
    settings = solution.diagnostics.settings
    estimate = math.inf if solution.error_estimate is None else solution.error_estimate
    sizes = (solution.diagnostics.nodes, settings["coefficients"], settings["steps"])
    return Run(name, seed, tol, solution.status, solution.true_error(), estimate, *sizes, seconds)


def summary(runs: Sequence[Run]) -> list[str]:
    """Return a row of the table."""
    errors = [r.error for r in runs]
    error, seconds = statistics.median(errors), statistics.median(r.seconds for r in runs)
    target = TARGETS.get(runs[0].problem)
    goal = ""
    if target is not None:
        goal = f"{target[0]:.0e} in {target[1]:g} s {'✓' if error <= target[0] and seconds <= target[1] else '✗'}"
    ratios = [r.estimate / r.error for r in runs if r.error > 0]
    return [
        runs[0].problem,
        f"{sum(r.status == 'converged' for r in runs)}/{len(runs)}",
        f"{error:.1e}",
        f"{max(errors):.1e}",
        f"{min(ratios):.2f} … {max(ratios):.2f}" if ratios else "",
        f"{statistics.median(r.coefficients for r in runs):g}",
        f"{statistics.median(r.steps for r in runs):g}",
        f"{seconds:.1f}",
        goal,
    ]


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help="which problems; all if left out")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    table = Table(
        "problem", "converged", "error", "worst", "estimate/error", "coefficients", "steps", "seconds", "goal"
    )
    everything: list[Run] = []
    for name in options.names or problems():
        runs = [run(name, seed, options.tol, options.budget) for seed in range(options.seeds)]
        table.add_row(*summary(runs))
        everything += runs
    Console().print(table)
    if options.csv is not None:
        with options.csv.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(asdict(everything[0])))
            writer.writeheader()
            writer.writerows(asdict(r) for r in everything)


if __name__ == "__main__":
    main()
