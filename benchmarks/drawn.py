"""Problems drawn at random, by plain ``pb.solve``: how many converge, how true their estimates are, how long it takes.

    python -m benchmarks.drawn [--first 0] [--count 1000] [--kind space ...] [--processes N] [--out out/drawn.csv]

Every number is another problem, so that nothing can be chosen by them: ask for numbers that nobody has asked for. What
a file has is not solved again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.runner import Row, solved_case, warm_up
from benchmarks.sets.drawn import KINDS, drawn_case
from benchmarks.spread import resumed
from benchmarks.tables import ROOT, commit_of
from pibls.runtime import available_cores

__all__ = ["main", "summary"]


def _solved(number: int, commit: str) -> Row:
    """Solve the problem of a number."""
    case = drawn_case(number)
    return solved_case("drawn", case, case.tolerances[0], case.seeds[0], commit)


def summary(rows: Iterable[Row]) -> list[str]:
    """Return a line for each kind, and one for all: converged, false, estimates, seconds."""
    every = list(rows)
    groups = {kind: [row for row in every if row.kind == kind] for kind in KINDS} | {"all": every}
    return [_line(kind, own) for kind, own in groups.items() if own]


def _line(kind: str, rows: list[Row]) -> str:
    seconds = np.array([row.seconds for row in rows])
    ratios = np.array([row.ratio for row in rows if row.ratio is not None])
    within = [float(np.mean((ratios < most) & (ratios > 1 / most))) if len(ratios) else np.nan for most in (3, 10)]
    converged, false = sum(row.status == "converged" for row in rows), sum(bool(row.verdict) for row in rows)
    return (
        f"{kind:10s} {len(rows):5d} solves: {converged} converged, {false} false; estimates within 3x {within[0]:.1%}, "
        f"10x {within[1]:.1%}; seconds {np.median(seconds):.2f} (median), {seconds.max():.0f} (most)"
    )


def main() -> None:
    """Run what is asked for, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("out/drawn.csv"))
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    commit = options.commit or commit_of(ROOT)
    numbers = range(options.first, options.first + options.count)
    tasks = {f"drawn_{n}": n for n in numbers if not options.kind or drawn_case(n).kind in options.kind}

    def told(row: Row) -> str:
        return (
            f"{row.problem} {row.kind} tol {row.tol:g}: {row.status}, {row.estimate:.1e}, {row.error:.1e} {row.verdict}"
        )

    work = partial(_solved, commit=commit)
    rows = resumed(
        Row, options.out, tasks, work, options.processes, key=lambda row: row.problem, told=told, begin=warm_up
    )
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
