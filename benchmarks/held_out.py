"""Plain ``pb.solve`` on everyday problems, and on others of the same kinds that took no part in any choice.

    python -m benchmarks.held_out [--set everyday|held_out|fresh|unseen|families|zoo] [--seeds 1]
        [--tol 1e-4 ...] [--problems NAME ...] [--processes 1]

A line per run: status, estimate, true error, nominal seconds (operations counted by cells, over 10¹⁰) and those of the
processor, on one thread.
A run is FALSE that is called converged with an error above 3 max(tol, estimate), or ill-posed when it is not, or
converged when it is. Every run is written to ``out/<set>.csv`` as it ends; what is there already is not run again. At
the end: how many were false, how good the estimates are, how many converged, per tolerance and kind. The held-out set
(``benchmarks/held_out_problems.py``) is there to be measured now and then: nothing may be chosen by what it says.
"""

from __future__ import annotations

import argparse
import csv
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import pibls as pb
from benchmarks.cells import FAMILIES
from benchmarks.fresh_problems import fresh
from benchmarks.held_out_problems import Case, held_out
from benchmarks.unseen_problems import unseen
from pibls.cells import loop
from pibls.problems.everyday import VALUES
from pibls.runtime import RATE, blas_threads

SETS = ("everyday", "held_out", "fresh", "unseen", "families", "zoo")
FIELDS = ("problem", "kind", "tol", "seed", "status", "error", "estimate", "nominal", "seconds", "verdict", "message")
NUMBERS = ("tol", "error", "estimate", "nominal", "seconds")
ROUND_OFF = 1e-12
LONGEST = 300  # seconds of the processor, after which a run is given up
Row = dict[str, Any]


def cases(name: str) -> dict[str, Case]:
    """Return the problems of a set by name."""
    if name == "held_out":
        return held_out()
    if name in ("fresh", "unseen"):
        return dict(fresh if name == "fresh" else unseen)
    if name in ("families", "zoo"):
        known = FAMILIES if name == "families" else pb.problems.catalogue()
        return {of: Case(make, lambda solution: solution.true_error(20_000)) for of, make in known.items()}

    def judged(of: str) -> Callable[[pb.Solution], float]:
        return lambda solution: pb.problems.everyday_error(of, solution)

    return {
        of: Case(make, judged(of), accuracy=VALUES.get(of, {}).get("accuracy", 0.0))
        for of, make in pb.problems.everyday().items()
    }


class Nominal:
    """Counts what cells count, from the first entry on."""

    def __enter__(self) -> Nominal:
        self.seconds, self._run = 0.0, loop.Loop.run

        def run(own: loop.Loop, fit: Any) -> pb.Solution:
            try:
                return self._run(own, fit)
            finally:
                self.seconds += own.flops / RATE

        loop.Loop.run = run  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        loop.Loop.run = self._run  # type: ignore[method-assign]


def run(name: str, case: Case, tol: float, seed: int) -> Row:
    """Solve one problem once."""
    row: Row = {"problem": name, "kind": case.kind, "tol": tol, "seed": seed, "error": np.nan, "estimate": np.nan}

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no answer within {LONGEST} s")

    signal.signal(signal.SIGPROF, give_up)
    problem = case.problem()
    start = time.process_time()
    with Nominal() as nominal, blas_threads(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            signal.setitimer(signal.ITIMER_PROF, LONGEST)
            solution = pb.solve(problem, tol=tol, seed=seed, progress=False)
            row |= {"status": solution.status, "seconds": time.process_time() - start}
            row |= {"estimate": solution.error_estimate or np.nan, "message": solution.diagnostics.message}
            if case.error is not None:
                row["error"] = case.error(solution)
        except Exception as problem_met:  # a benchmark goes on
            text = f"{type(problem_met).__name__}: {problem_met}"
            row |= {"status": "exception", "seconds": time.process_time() - start, "message": text}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    row["nominal"] = nominal.seconds
    row["verdict"] = verdict(row, ill_posed=case.error is None, accuracy=case.accuracy)
    return row


def verdict(row: Row, ill_posed: bool, accuracy: float) -> str:
    """Say what is false about a run, or an empty string; what a reference does not know is not held against it."""
    if row["status"] == "exception":
        return "EXCEPTION"
    if ill_posed:
        return "FALSE CONVERGED" if row["status"] == "converged" else "MISSED" if row["status"] == "stalled" else ""
    if row["status"] == "ill-posed":
        return "FALSE ILL-POSED"
    error = row["error"] - 2 * accuracy  # which is an estimate, too
    if row["status"] == "converged" and not error <= 3 * max(row["tol"], row["estimate"]):
        return "FALSE CONVERGED"
    return "FALSE ESTIMATE" if error > max(10 * row["estimate"], ROUND_OFF) else ""


def summary(rows: list[Row]) -> Iterable[str]:
    """Say how many were right, and how good the estimates are."""
    posed = [row for row in rows if row["kind"] != "ill-posed"]
    for tol in sorted({row["tol"] for row in rows}, reverse=True):
        own = [row for row in posed if row["tol"] == tol]
        ill = [row for row in rows if row["tol"] == tol and row["kind"] == "ill-posed"]
        solved = [row for row in own if row["status"] in ("converged", "stalled") and row["error"] > ROUND_OFF]
        ratios = np.array([row["error"] / row["estimate"] for row in solved])
        share = [f"{np.mean((ratios <= k) & (ratios >= 1 / k)):.0%} within {k}×" for k in (3, 10)]
        count = {word: sum(row["verdict"] == word for row in [*own, *ill]) for word in VERDICTS}
        yield (
            f"tol {tol:g}: {len(own)} well-posed, {np.mean([r['status'] == 'converged' for r in own]):.0%} converged; "
            + ", ".join(f"{word.lower()} {number}" for word, number in count.items() if word != "MISSED")
            + f"; estimates {', '.join(share)}, error over estimate from {ratios.min():.2g} to {ratios.max():.2g}; "
            f"above three times the nominal budget: {sum(row['seconds'] > 30 for row in own)}"
        )
        if ill:
            found = sum(row["status"] == "ill-posed" for row in ill)
            yield f"    {len(ill)} ill-posed: {found} found, {count['MISSED']} stalled"
        for kind in sorted({row["kind"] for row in own}):
            of = [row for row in own if row["kind"] == kind]
            wrong = sum(bool(row["verdict"]) for row in of)
            done = sum(row["status"] == "converged" for row in of)
            yield f"    {kind or 'all'}: {done} of {len(of)} converged, {wrong} false"


VERDICTS = ("FALSE CONVERGED", "FALSE ILL-POSED", "FALSE ESTIMATE", "EXCEPTION", "MISSED")


def read(path: Path) -> list[Row]:
    """Return the rows of an earlier run."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        row |= {key: float(row[key]) for key in NUMBERS} | {"seed": int(row["seed"])}
    return rows


def of_set(name: str, problem: str, tol: float, seed: int) -> Row:
    """Solve one problem of a set once."""
    return run(problem, cases(name)[problem], tol, seed)


def each(wanted: list[tuple[str, str, float, int]], processes: int) -> Iterable[Row]:
    """Return the rows of some runs as they end."""
    if processes == 1:
        yield from (of_set(*one) for one in wanted)
        return
    with ProcessPoolExecutor(processes) as pool:
        for done in as_completed([pool.submit(of_set, *one) for one in wanted]):
            yield done.result()


def main() -> None:
    """Run what is missing and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="held_out")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-4])
    parser.add_argument("--problems", nargs="+", default=None)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path(f"out/{options.set}.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    known = cases(options.set)
    names = options.problems or list(known)
    wanted = [(name, tol, seed) for tol in options.tol for seed in range(options.seeds) for name in names]
    rows = read(out)
    done = {(row["problem"], row["tol"], row["seed"]) for row in rows}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        missing = [(options.set, *one) for one in wanted if one not in done]
        for row in each(missing, options.processes):
            rows.append(row)
            writer.writerow(row)
            file.flush()
            print(
                f"{row['problem']:24s} tol {row['tol']:.0e} seed {row['seed']} {row['status']:10s} "
                f"estimate {row['estimate']:.1e} error "
                f"{row['error']:.1e} nominal {row['nominal']:5.1f} s spent {row['seconds']:5.1f} s {row['verdict']}",
                flush=True,
            )
    chosen = set(wanted)
    for line in summary([row for row in rows if (row["problem"], row["tol"], row["seed"]) in chosen]):
        print(line)


if __name__ == "__main__":
    main()
