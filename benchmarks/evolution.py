"""The evolutions of the zoo by ``solve`` as it is: true errors, estimates and seconds over seeds.

    python -m benchmarks.evolution [--tol 1e-6] [--seeds 5] [--time lines] [--csv evolution.csv] [name ...]

Errors are relative L2 over space and time against the exact solution, or a reference by another method, at 2000 random
points that no solve has seen, the largest over the fields of a system. Nothing but the tolerance is set; nobody is told
where a front is. Seconds are those of the processor: with one thread of BLAS, those of an idle machine.
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

from pibls import solve
from pibls.problem import Problem
from pibls.problems import (
    advection_beta,
    evolutions,
    evolving,
    heat_2d,
    heat_3d,
    heat_robin,
    klein_gordon,
    planar,
    wave,
)

# Error and seconds to reach.
TARGETS = {
    "burgers": (1e-6, 5.0),
    "burgers shifted": (1e-6, 5.0),
    "burgers thin": (1e-3, 15.0),
    "allen_cahn": (1e-6, 10.0),
    "kdv": (1e-6, 20.0),
    "sine_gordon": (1e-6, 20.0),
    "nonlinear_schroedinger": (1e-6, 20.0),
    "burgers 1e-7": (1e-7, 15.0),
    "burgers thin shifted": (1e-3, 15.0),
    "advection_beta": (1e-9, 5.0),
    "advection_long": (1e-5, 5.0),
    "kuramoto_sivashinsky": (1e-4, 20.0),
    "taylor_green": (1e-6, 20.0),
    "heat_3d": (1e-6, 10.0),
}
# Where another tolerance is needed than the default one.
TOLERANCES = {"burgers 1e-7": 1e-7, "advection_beta": 1e-9}


def problems() -> Mapping[str, Callable[[], Problem]]:
    """Return every evolution by name."""
    thin = 0.001 / math.pi
    variants: dict[str, Callable[[], Problem]] = {
        "burgers": evolving.burgers,
        "burgers 1e-7": evolving.burgers,
        "burgers shifted": partial(evolving.burgers, shift=0.3),
        "burgers drifting": partial(evolving.burgers, drift=0.3),
        "burgers thin": partial(evolving.burgers, thin),
        "burgers thin shifted": partial(evolving.burgers, thin, shift=0.3),
        "burgers thin drifting": partial(evolving.burgers, thin, drift=0.5),
        "taylor_green walls": partial(planar.taylor_green, walls=True),
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
    way: str
    status: str
    error: float
    estimate: float
    nodes: int
    seconds: float
    wall: float


def run(name: str, seed: int, tol: float | None, way: str | None) -> Run:
    """Solve a problem once."""
    problem = problems()[name]()
    wanted = TOLERANCES.get(name, 1e-6) if tol is None else tol
    begun, worked = time.perf_counter(), time.process_time()
    solution = solve(problem, tol=wanted, seed=seed, time=way, progress=False)
    seconds, wall = time.process_time() - worked, time.perf_counter() - begun
    estimate = math.inf if solution.error_estimate is None else solution.error_estimate
    taken = solution.diagnostics.method
    size = solution.diagnostics.nodes
    return Run(name, seed, wanted, taken, solution.status, solution.true_error(), estimate, size, seconds, wall)


def summary(runs: Sequence[Run]) -> list[str]:
    """Return a row of the table."""
    errors = [r.error for r in runs]
    error, seconds = statistics.median(errors), statistics.median(r.seconds for r in runs)
    target = TARGETS.get(runs[0].problem) if runs[0].tol <= TOLERANCES.get(runs[0].problem, 1e-6) else None
    goal = ""
    if target is not None:
        goal = f"{target[0]:.0e} in {target[1]:g} s {'✓' if error <= target[0] and seconds <= target[1] else '✗'}"
    ratios = [r.estimate / r.error for r in runs if r.error > 0]
    return [
        runs[0].problem,
        f"{runs[0].way}",
        f"{sum(r.status == 'converged' for r in runs)}/{len(runs)}",
        f"{error:.1e}",
        f"{max(errors):.1e}",
        f"{min(ratios):.2f} … {max(ratios):.2f}" if ratios else "",
        f"{sum(0.1 <= ratio <= 10 for ratio in ratios)}/{len(ratios)}",
        str(sum(r.status == "converged" and r.error > 10 * r.tol for r in runs)),
        f"{statistics.median(r.nodes for r in runs):g}",
        f"{seconds:.1f}",
        goal,
    ]


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help="which problems; all if left out")
    parser.add_argument("--tol", type=float, help="the default one, or what the goal asks for, if left out")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--time", choices=("space-time", "lines"))
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    table = Table(
        "problem", "way", "converged", "error", "worst", "estimate/error", "honest", "false", "nodes", "seconds", "goal"
    )
    everything: list[Run] = []
    for name in options.names or problems():
        runs = [run(name, seed, options.tol, options.time) for seed in range(options.seeds)]
        table.add_row(*summary(runs))
        everything += runs
        print(*summary(runs), sep="  ", flush=True)
        if options.csv is not None:
            _write(options.csv, everything)
    Console(width=160).print(table)


def _write(path: Path, runs: Sequence[Run]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(asdict(runs[0])))
        writer.writeheader()
        writer.writerows(asdict(r) for r in runs)


if __name__ == "__main__":
    main()
