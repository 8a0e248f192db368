"""A study killed again and again: its files must be those of a study that was left alone.

    python -m benchmarks.kills [--kills 20] [--seed 0] [--workers 2]

The study of the paper on its first problem, every method and kind of cell, at toy size, with two processes or one. It
runs once undisturbed. Then its whole process group is killed (kill -9) at random moments and started again until it
comes to its end; that is repeated from an empty folder until there were as many kills as asked for. Every file of
numbers must be the same byte for byte; in those that hold times, everything but the times.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from pibls.paper import complexity, coverage, protocol, run_study, selecting, tasks
from pibls.paper.grids import Grid
from pibls.paper.profiles import Profile
from pibls.paper.published import METHODS, PAPER_NAMES
from pibls.paper.report import write_numbers

TIMED = {"seconds", "search_seconds", "exponent", "median", "worst", "best", "ratio", "verdict"}
UNTIMED = ("comparison.csv", "errors.csv", "settings.csv", "theorems.csv", "curves.csv", "coverage.csv")


def toy_grid(problem: str, method: str, *, beyond: bool = False) -> Grid:
    """Return a space of one setting, which is fitted in a moment."""
    del problem
    if method == "PINN":
        return Grid(method, {"width": [4], "activation": ["tanh"]}, {}, {"adam_iterations": 3, "lbfgs_iterations": 3})
    if method != "PI-BLS":
        return Grid(method, {"nodes": [10], "activation": ["tanh"]}, {}, {})
    space = {"feature_groups": [2], "enhancement_nodes": [5], "activation": ["sin" if beyond else "tanh"]}
    return Grid(method, space if beyond else {**space, "lambda_reg": [1e-4]}, {}, {})


def shrink() -> None:
    """Make the study of this process a toy."""
    ones = dict.fromkeys(METHODS, 1)
    sizes = {"points": ((20, 40), 20), "width": ((10, 20), 20)}
    tasks.grid = toy_grid
    tasks.PROFILES = {"quick": Profile(ones, 1, 1, 1, tuple(PAPER_NAMES))}
    selecting.scales = coverage.scales = lambda *_: [2.0]
    selecting.LENGTHS, protocol._SHORT, protocol._LONG = (2, 4), 2, 4
    complexity._LINEAR_SIZES = complexity._TRAINED_SIZES = sizes
    tasks.REPETITIONS = 2
    coverage._NODES = {1: 20, 2: 20}


@dataclass(frozen=True)
class Outcome:
    """How often a study was killed, how many were brought to an end, and the files that differ."""

    kills: int
    studies: int
    different: tuple[str, ...]


def survive(kills: int, seed: int, folder: Path, workers: int = 2) -> Outcome:
    """Kill studies at random moments until there were enough kills, and compare the files of each."""
    rng = random.Random(seed)
    start = time.monotonic()
    process = _start(folder / "alone", workers)
    if process.wait() != 0:
        raise RuntimeError("the study fails without being killed")
    whole = time.monotonic() - start
    wanted = numbers(folder / "alone")
    different: set[str] = set()
    done = studies = 0
    while done < kills:
        out = folder / f"killed-{studies}"
        while not _ended(out, workers, rng.uniform(0.0, whole) if done < kills else None):
            done += 1
        studies += 1
        found = numbers(out)
        different |= {name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)}
    return Outcome(done, studies, tuple(sorted(different)))


def _start(out: Path, workers: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--child", str(out), "--workers", str(workers)]
    return subprocess.Popen(command, start_new_session=True)


def _ended(out: Path, workers: int, seconds: float | None) -> bool:
    """Run a study for some seconds, then kill all of its processes; return whether it came to its end before."""
    process = _start(out, workers)
    try:
        if process.wait(timeout=seconds) != 0:
            raise RuntimeError(f"the study in {out} failed when it was started again")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def numbers(out: Path) -> dict[str, bytes]:
    """Return the content of every file of numbers, without what was timed."""
    found = {path.name: path.read_bytes() for path in (out / "csv").glob("*.csv")}
    return {name: text if name in UNTIMED else _without_times(text) for name, text in found.items()}


def _without_times(content: bytes) -> bytes:
    rows = list(csv.DictReader(content.decode().splitlines()))
    return repr([{key: value for key, value in row.items() if key not in TIMED} for row in rows]).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help="run the toy study in this folder")
    parser.add_argument("--workers", type=int, default=2, help="processes of a study")
    given = parser.parse_args()
    if given.child is not None:
        run_study(given.child, workers=given.workers, progress=False, only=["advection"])
        write_numbers(given.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        outcome = survive(given.kills, given.seed, Path(folder), given.workers)
    different = ", ".join(outcome.different) or "none"
    Console().print(f"{outcome.kills} kills in {outcome.studies} studies; files that differ: {different}")
    sys.exit(bool(outcome.different))


# A worker is started afresh and imports this file under another name; its study must be as small.
if __name__ in ("__main__", "__mp_main__"):
    shrink()
if __name__ == "__main__":
    main()
