"""Windows of which nothing is known at the edges: unknown numbers from equations and measurements alone.

    python -m benchmarks.windows [--seeds 200] [--noise 0.01] [--wake] [--csv out/windows.csv]

Data are closed forms with noise; ``held`` is how often 95 % intervals hold the truth, ``spread`` the root mean square
of errors in standard deviations, which should be one. With ``--wake``, the two coefficients of the flow behind a
cylinder instead.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

import pibls as pb
from benchmarks.sets.open_windows import WINDOWS, Window
from pibls.problems import inverse


@dataclass(frozen=True)
class Row:
    """One unknown of one window, over all seeds."""

    window: str
    noise: float
    unknown: str
    solves: int
    converged: int
    error: float
    held: float
    spread: float
    seconds: float


def rows(name: str, make: Window, noise: float, seeds: int) -> Iterator[Row]:
    """Yield a row for every unknown of a window."""
    found, seconds, converged = [], [], 0
    for seed in range(seeds):
        problem = make(noise, seed)
        begun = time.process_time()
        solution = pb.solve(problem)
        seconds.append(time.process_time() - begun)
        converged += solution.status == "converged"
        found.append(solution.parameters)
    for unknown, true in dict(problem.truth or {}).items():
        own = [parameters[unknown] for parameters in found]
        errors = np.array([entry.value - true for entry in own])
        held = np.mean([entry.interval[0] <= true <= entry.interval[1] for entry in own])
        spread = np.sqrt(np.mean(np.square(errors / [entry.deviation for entry in own])))
        middle = float(np.median(np.abs(errors))) / true
        figures = (middle, float(held), float(spread), float(np.median(seconds)))
        yield Row(name, noise, unknown, seeds, converged, *figures)


def main() -> None:
    """Solve all windows and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--wake", action="store_true", help="the wake instead of the small windows")
    parser.add_argument("--csv", type=Path)
    chosen = parser.parse_args()
    made: list[Row] = []
    for name, make in ({"wake": inverse.cylinder_wake} if chosen.wake else WINDOWS).items():
        for row in rows(name, make, chosen.noise, chosen.seeds):
            made.append(row)
            print(
                f"{row.window:12s} {row.unknown:3s} noise {row.noise:g}: {row.converged} of {row.solves} converged, "
                f"error {row.error:.1e}, held {row.held:.1%}, spread {row.spread:.2f}, {row.seconds:.2f} s",
                flush=True,
            )
    if chosen.csv:
        chosen.csv.parent.mkdir(parents=True, exist_ok=True)
        with chosen.csv.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, [f.name for f in fields(Row)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in made)


if __name__ == "__main__":
    main()
