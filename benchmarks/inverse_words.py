"""Whether inverse problems end with the right word: problems written from the documentation, over seeds of noise.

    python -m benchmarks.inverse_words [--half open|aside|more|more_aside|few|few_aside] [--seeds 3] [--only NAME ...]
    [--out FILE] [--processes N]

Every solve is a row: told right, told wrong without a warning ("silent"), or warned of without need ("alarm"); how
many intervals hold the truth; the largest error in deviations, or relative where data are exact; seconds of the
processor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pibls as pb
from benchmarks.runner import warm_up
from benchmarks.sets.inverse_aside import inverse_aside
from benchmarks.sets.inverse_few import inverse_few, inverse_few_aside
from benchmarks.sets.inverse_more import inverse_more, inverse_more_aside
from benchmarks.sets.inverse_open import inverse_open
from benchmarks.sets.meters import Inverse, Mode
from benchmarks.spread import resumed
from pibls.runtime import blas_threads

HALVES = {
    "open": inverse_open,
    "aside": inverse_aside,
    "more": inverse_more,
    "more_aside": inverse_more_aside,
    "few": inverse_few,
    "few_aside": inverse_few_aside,
}
_FAR, _EXACT = 5.0, 1e-4  # deviations, and the relative error where data are exact, that no right answer has
Job = tuple[str, str, Mode, int]


@dataclass(frozen=True)
class Row:
    """One solve; ``off`` is the largest error in deviations, relative where data are exact."""

    half: str
    problem: str
    mode: str
    seed: int
    expected: str
    status: str
    verdict: str
    held: int
    intervals: int
    off: float
    seconds: float
    message: str


def solved(job: Job) -> Row:
    """Solve a problem and judge the answer."""
    half, name, mode, seed = job
    case = HALVES[half][name]
    with blas_threads(1):
        problem, begun = case.problem(mode, seed), time.process_time()
        try:
            solution = pb.solve(problem, progress=False)
        except Exception as error:  # whatever it is, the other solves go on
            words = f"{type(error).__name__}: {error}"
            return Row(*job, case.expected, "error", "error", 0, 0, np.nan, time.process_time() - begun, words)
        seconds = time.process_time() - begun
    words = str(solution.diagnostics.message)
    if case.expected != "converged":
        right = solution.status == case.expected and case.told in words
        verdict = "right" if right else "silent" if solution.status == "converged" else "wrong word"
        return Row(*job, case.expected, str(solution.status), verdict, 0, 0, np.nan, seconds, words)
    held, intervals, off = judged(case, mode, solution, dict(problem.truth or {}))
    wrong = off > (_EXACT if mode == "exact" and case.function is None else _FAR)
    verdict = ("silent" if wrong else "right") if solution.status == "converged" else "alarm"
    return Row(*job, case.expected, str(solution.status), verdict, held, intervals, off, seconds, words)


def judged(case: Inverse, mode: Mode, solution: pb.Solution, known: dict[str, float]) -> tuple[int, int, float]:
    """Return how many intervals hold the truth, how many there are, and the largest error."""
    if case.function is not None:
        (low, high), label = solution.problem.domain.bounds[0], solution.problem.unknown_functions[0].label
        at = np.linspace(low, high, 401)[1:-1]
        X = np.stack([at, np.zeros_like(at)], axis=1)
        found = np.asarray(solution(X)[label])
        true = case.function(at)
        error = float(np.linalg.norm(found - true) / np.linalg.norm(true))
        return 0, 0, _FAR * error / case.accuracy
    held, worst = 0, 0.0
    for name, own in (solution.parameters or {}).items():
        low, high = own.interval
        held += bool(low <= known[name] <= high)
        size = abs(known[name]) if mode == "exact" else own.deviation
        worst = max(worst, abs(own.value - known[name]) / size if own.is_determined else np.inf)
    return held, len(known), worst


def told(rows: Iterable[Row]) -> list[str]:
    """Return the sums: verdicts by what is expected and by mode, coverage, and seconds."""
    rows, lines = list(rows), []
    for expected in ("converged", "ill-posed", "stalled"):
        for mode in ("stated", "unstated", "exact"):
            own = [row for row in rows if (row.expected, row.mode) == (expected, mode)]
            verdicts = [row.verdict for row in own]
            counts = ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts)))
            lines.append(f"{expected}, {mode}: {counts} of {len(own)}")
    noisy = [row for row in rows if row.mode != "exact" and row.status == "converged"]
    held, intervals = sum(row.held for row in noisy), sum(row.intervals for row in noisy)
    lines.append(f"intervals that hold the truth: {held} of {intervals} ({held / max(intervals, 1):.1%})")
    seconds = sorted(row.seconds for row in rows)
    lines.append(f"seconds: median {np.median(seconds):.2f}, largest {seconds[-1]:.1f}")
    return lines


def main() -> None:
    """Solve what the file does not have yet, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=tuple(HALVES), default="open")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("out/inverse_words.csv"))
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    jobs = (
        (options.half, name, mode, seed)
        for name, case in HALVES[options.half].items()
        for mode in case.modes
        for seed in range(1 if mode == "exact" else options.seeds)
        if not options.only or name in options.only
    )

    def words(row: Row) -> str:
        return (
            f"{row.problem} {row.mode} {row.seed}: {row.status}, {row.verdict}, {row.held}/{row.intervals} held,"
            f" {row.off:.2g} off, {row.seconds:.1f} s; {row.message[:300]}"
        )

    def key(row: Row) -> tuple[str, str, str, int]:
        return row.half, row.problem, row.mode, row.seed

    tasks = {job: job for job in jobs}
    rows = resumed(Row, options.out, tasks, solved, options.processes, key=key, told=words, begin=warm_up)
    print("\n".join(told(rows)))


if __name__ == "__main__":
    main()
