"""The automatic solver beside FastLSQ and NGSolve: error and seconds, problem by problem, in one run.

    python -m benchmarks.peers [--tol 1e-12] [--seeds 3] [--csv out/peers.csv]

``pb.solve(problem, tol=...)`` is called with nothing else, and all it does is on the clock: the choice of scales and
width and the estimate of its error. The rivals are set by hand, with more knowledge than a user has:
:mod:`benchmarks.peers_fastlsq` and :mod:`benchmarks.peers_ngsolve` say how. One that is not installed is left out.

Errors are relative L2 against the exact solution at the same 2000 uniformly random points for all, which no solver
has seen; ``l_shape_unit_load`` has no closed form, and its error is that at the 12 points of its table. Imports and
one warm-up of each solver are not counted; BLAS, OpenMP and torch get as many threads as there are cores. Error and
time are medians over the seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from threadpoolctl import threadpool_limits

import pibls as pb
from benchmarks.peers_common import Probe, Row, measure
from benchmarks.records import save
from pibls.runtime import available_cores

PROBLEMS = (
    "advection",
    "poisson_gaussian",
    "diffusion_reaction",
    "helmholtz",
    "wave",
    "poisson_nd",
    "annulus",
    "l_shape",
    "l_shape_unit_load",
)
RIVALS = {"fastlsq": "FastLSQ", "ngsolve": "NGSolve"}
REMARKS = "tuner: FastLSQ's own search for its scale, which needs the exact solution; not contained in seconds."


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    tol: list[float]
    seeds: int
    budget: float
    problems: list[str]
    features: int
    tuner_trials: int
    threads: int
    csv: Path | None


def parse() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-12], help="tolerances of pb.solve, a row for each")
    parser.add_argument("--seeds", type=int, default=3, help="runs of every solver")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds after which pb.solve grows no further")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--features", type=int, default=1500, help="of FastLSQ's larger network, in three blocks")
    parser.add_argument("--tuner-trials", type=int, default=1, help="per scale, of FastLSQ's tuner; 0 leaves it out")
    parser.add_argument("--threads", type=int, default=available_cores(), help="for all solvers; the cores there are")
    parser.add_argument("--csv", type=Path, default=None, help="file for the rows")
    given = parser.parse_args()
    if min(given.seeds, given.threads) < 1 or given.features < 3 or given.tuner_trials < 0:
        parser.error("--seeds and --threads must be at least 1, --features at least 3, --tuner-trials at least 0")
    return Options(**vars(given))


def load_rivals() -> dict[str, ModuleType]:
    """Import the rivals that are installed, and say how to install the others."""
    found = {}
    for package, name in RIVALS.items():
        try:
            importlib.import_module(package)
        except ImportError:
            print(f"{name} is not installed and left out; to have it: pip install {package}")
        else:
            found[package] = importlib.import_module(f"benchmarks.peers_{package}")
    return found


def own_rows(probe: Probe, options: Options) -> Iterator[Row]:
    """Measure the automatic solver, once per tolerance."""
    references = pb.problems.references()
    build = references[probe.name].problem if probe.name in references else pb.problems.catalogue()[probe.name]
    for tol in options.tol:
        solutions: list[pb.Solution] = []

        def solve(seed: int, tol: float = tol, solutions: list[pb.Solution] = solutions) -> pb.Solution:
            solution = pb.solve(build(), tol=tol, seed=seed, budget=options.budget, progress=False)
            solutions.append(solution)
            return solution

        row = measure(probe, "pibls", f"tol {tol:g}", solve, options.seeds)
        nodes = statistics.median_low(s.diagnostics.nodes for s in solutions)
        estimates = [s.error_estimate for s in solutions if s.error_estimate is not None]
        estimate = statistics.median(estimates) if estimates else None
        status = "/".join(sorted({s.status for s in solutions}))
        yield replace(row, setting=f"tol {tol:g}, {nodes} nodes", estimate=estimate, status=status)


def all_rows(options: Options, rivals: dict[str, ModuleType]) -> Iterator[Row]:
    """Measure everything, a row at a time."""
    for name in options.problems:
        probe = Probe.of(name)
        yield from own_rows(probe, options)
        if "fastlsq" in rivals:
            yield from rivals["fastlsq"].rows(probe, options.seeds, options.features, options.tuner_trials)
        if "ngsolve" in rivals:
            yield from rivals["ngsolve"].rows(probe, options.seeds, options.threads)


def line(row: Row) -> str:
    """Return a row as a line of the printed table."""
    tuner = "" if row.tuner_seconds is None else f"{row.tuner_seconds:.1f}"
    estimate = "" if row.estimate is None else f"{row.estimate:.1e}"
    numbers = f"{row.error:>9.1e} {row.worst_error:>9.1e} {row.seconds:>9.4f} {tuner:>7} {estimate:>9}"
    return f"{row.problem:<18} {row.solver:<8} {row.setting:<40} {numbers}  {row.status}".rstrip()


def main() -> None:
    """Print the table, row by row as they are measured."""
    options = parse()
    rivals = load_rivals()
    # Only now are all libraries loaded whose threads are to be capped.
    with threadpool_limits(limits=options.threads):
        pb.solve(pb.problems.advection(), tol=1e-3, progress=False)
        if "fastlsq" in rivals:
            rivals["fastlsq"].prepare(options.threads)
        if "ngsolve" in rivals:
            rivals["ngsolve"].prepare()
        load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
        print(f"threads: {options.threads}, cores: {available_cores()}, seeds: {options.seeds}{load}")
        head = f"{'error':>9} {'worst':>9} {'seconds':>9} {'tuner s':>7} {'estimate':>9}  status"
        print(f"{'problem':<18} {'solver':<8} {'setting':<40} {head}", flush=True)
        rows = []
        for row in all_rows(options, rivals):
            rows.append(row)
            print(line(row), flush=True)
            if options.csv is not None:
                save(Row, options.csv, rows)
    print(REMARKS)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
