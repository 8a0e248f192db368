"""Solves of the problems in :mod:`benchmarks.sets`, spread over all cores, each in a process and a thread of its own.

A solve is a row: status, estimate, true error, counted work, seconds of the processor. Rows are written as they come: a
run that is cut off leaves what it has, and goes on from there when it is asked for again.
"""

from __future__ import annotations

import hashlib
import signal
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pibls as pb
from benchmarks.sets import SETS, Case, cases
from benchmarks.spread import resumed
from benchmarks.tables import ROOT
from pibls.runtime import RATE, blas_threads

ROUND_OFF = 1e-12
LONGEST = 300  # seconds of the processor, after which a solve is given up
_UNKNOWN = 3.0  # seconds of a solve that was never timed
Key = tuple[str, str, float, int]


@dataclass(frozen=True)
class Row:
    """One solve; ``work`` is in nominal seconds of 10¹⁰ operations, ``verdict`` says what is false about it."""

    set: str
    problem: str
    kind: str
    tol: float
    seed: int
    expected: str
    status: str
    estimate: float
    error: float
    work: float
    seconds: float
    nodes: int
    method: str
    verdict: str
    commit: str = ""
    message: str = ""

    @property
    def key(self) -> Key:
        """The set, the problem, the tolerance and the seed."""
        return self.set, self.problem, self.tol, self.seed

    @property
    def ratio(self) -> float | None:
        """The true error over the estimate, where both are known and neither is round-off."""
        usable = self.status in ("converged", "stalled") and self.error > ROUND_OFF and 0 < self.estimate < np.inf
        return self.error / self.estimate if usable else None


def keys(names: Iterable[str] = SETS) -> list[Key]:
    """Return every solve of some sets."""
    return [(name, c.name, tol, seed) for name in names for c in cases(name).values() for tol, seed in _asked(c)]


def _asked(case: Case) -> list[tuple[float, int]]:
    return [(tol, seed) for tol in case.tolerances for seed in case.seeds]


def solved(key: Key, commit: str = "", longest: float = LONGEST) -> Row:
    """Solve one problem of a set once."""
    name, problem, tol, seed = key
    return solved_case(name, cases(name)[problem], tol, seed, commit, longest)


def solved_case(name: str, case: Case, tol: float, seed: int, commit: str = "", longest: float = LONGEST) -> Row:
    """Solve a problem once; an exception and a solve that takes too long are rows as well."""
    found: dict[str, Any] = dict.fromkeys(("estimate", "error", "work"), np.nan) | {"nodes": 0, "method": ""}

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no answer within {longest:g} s")

    signal.signal(signal.SIGPROF, give_up)
    with blas_threads(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        built = case.make()
        start = time.process_time()
        try:
            signal.setitimer(signal.ITIMER_PROF, longest)
            solution = pb.solve(built, tol=tol, seed=seed, progress=False)
            found["seconds"] = time.process_time() - start
            record = solution.diagnostics
            found |= {"status": str(solution.status), "message": record.message, "method": record.method}
            found |= {"nodes": record.nodes, "work": record.operations / RATE}
            claimed = case.estimate(solution) if case.estimate else solution.error_estimate
            found["estimate"] = np.nan if claimed is None else float(claimed)
            if case.error is not None:
                found["error"] = float(case.error(solution))
        except Exception as met:  # a benchmark goes on
            found.setdefault("seconds", time.process_time() - start)
            found |= {"status": "exception", "message": f"{type(met).__name__}: {met}"}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    said = verdict(case, tol, found["status"], found["estimate"], found["error"])
    return Row(name, case.name, case.kind, tol, seed, case.expected, verdict=said, commit=commit, **found)


def verdict(case: Case, tol: float, status: str, estimate: float, error: float) -> str:
    """Say what is false about a solve, or an empty string; errors of a reference are not held against it."""
    if status == "exception":
        return "EXCEPTION"
    if case.expected != "converged":
        missed = case.expected == "ill-posed" and status == "stalled"
        return "FALSE CONVERGED" if status == "converged" else "MISSED" if missed else ""
    if status == "ill-posed":
        return "FALSE ILL-POSED"
    error -= 2 * case.accuracy  # which is an estimate, too
    if status == "converged" and not error <= 3 * max(tol, estimate):
        return "FALSE CONVERGED"
    return "FALSE ESTIMATE" if error > max(10 * estimate, ROUND_OFF) else ""


def warm_up() -> None:
    """Solve a problem of each kind, so that processes made from this one have loaded everything."""
    problems = pb.problems
    with blas_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in (problems.poisson, problems.bratu_1d, problems.lotka_volterra, problems.inverse.heat_diffusivity):
            pb.solve(make(), tol=1e-3, progress=False)


def longest_first(wanted: Iterable[Key], known: Iterable[Row]) -> list[Key]:
    """Return solves in the order in which all cores end together: by the seconds they took before."""
    seconds = {row.key: row.seconds for row in known}
    return sorted(wanted, key=lambda key: -seconds.get(key, _UNKNOWN))


def run(wanted: Sequence[Key], out: Path, processes: int, commit: str) -> list[Row]:
    """Solve what a file does not have yet, add it to the file row by row, and return all rows that are wanted."""

    def told(row: Row) -> str:
        return (
            f"{row.set} {row.problem} tol {row.tol:g} seed {row.seed}: {row.status}, estimate {row.estimate:.1e}, "
            f"error {row.error:.1e}, work {row.work:.2f}, {row.seconds:.2f} s {row.verdict}"
        )

    work, tasks = partial(solved, commit=commit), {key: key for key in wanted}
    return resumed(Row, out, tasks, work, processes, key=lambda row: row.key, told=told, begin=warm_up)


def digest() -> str:
    """Return a short name of the code that is measured: that of the library and of the sets."""
    places = (ROOT / "src", ROOT / "benchmarks" / "sets")
    files = sorted(path for place in places for path in place.rglob("*") if path.suffix in (".py", ".json", ".npz"))
    total = hashlib.sha256()
    for path in files:
        total.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return total.hexdigest()[:8]
