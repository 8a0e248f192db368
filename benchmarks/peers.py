"""How fast: CPU seconds of solves that were promised a time, beside NGSolve, FastLSQ and an SVD of the machine.

    python -m benchmarks.peers [--only NAME ...] [--repeats 3] [--csv out/peers.csv]

``pb.solve(problem, tol=...)`` is called with nothing else, on one thread. Seconds are those of the processor, medians
over repetitions with new problem objects, after one solve that is not counted. ``unit`` is the same over the seconds of
a 600 × 600 SVD, which is measured before every line: it hardly depends on the machine or on what else runs there.
``goal`` is in seconds of an idle machine on which the SVD takes 0.1 s. Lines that are sums or ratios say so.

The rivals are set by hand, with more knowledge than a user has: :mod:`benchmarks.peers_ngsolve` and
:mod:`benchmarks.peers_fastlsq` say how. One that is not installed is left out. Errors are relative L2 at the same 2000
random points for all, which no solver has seen, or at the points of a table.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.peers_common import Probe
from benchmarks.records import save
from benchmarks.right_hand_sides import compared
from benchmarks.right_hand_sides import seconds as timed
from benchmarks.sets.families import families
from benchmarks.sets.zoo import steady
from pibls.runtime import blas_threads

x, y, z = pb.coordinates("x y z")
u, v = pb.field("u", x, y), pb.field("v", x, y, z)
FAR = sp.sqrt(x**2 + y**2 + z**2)
FIRST = """
import time, pibls as pb
problem = pb.problems.poisson()
begun = time.process_time()
pb.solve(problem, progress=False)
print(time.process_time() - begun)
"""
Run = Callable[[], float]  # does something once, and returns its CPU seconds, or a ratio


@dataclass(frozen=True)
class Line:
    """One promise: medians, and those of the rivals."""

    name: str
    tol: float
    seconds: float
    unit: float
    goal: float
    status: str
    error: float
    estimate: float
    ngsolve: float
    ngsolve_error: float
    fastlsq: float
    fastlsq_error: float
    note: str


def star(k: int = 100) -> pb.Problem:
    """Return Helmholtz's equation of wave number k on a five-petal star: two plane waves."""
    theta = sp.Symbol("theta", real=True)
    domain = pb.Star((x, y), 1 + sp.cos(5 * theta) / 4)
    exact = sp.sin(k * (3 * x + 4 * y) / 5) + sp.cos(k * (12 * x - 5 * y) / 13)
    return pb.Problem(sp.Eq(pb.laplacian(u) + k**2 * u, 0), domain, [pb.Dirichlet(u, exact)], exact=exact)


def cooled_ball() -> pb.Problem:
    """Return a ball that is heated evenly and cooled by air."""
    ball = pb.Ball((x, y, z), (0, 0, 0), 1)
    return pb.Problem(sp.Eq(-pb.laplacian(v), 6), ball, [pb.Robin(v, 1, 1, 0)], exact=3 - FAR**2)


def shell() -> pb.Problem:
    """Return a shell with its inner side held at one, and air outside."""
    outer, inner = pb.Ball((x, y, z), (0, 0, 0), 1), pb.Ball((x, y, z), (0, 0, 0), sp.Rational(1, 2))
    exact = 1 / (2 * FAR)  # whose derivative outside is −1/2, and whose value is 1/2
    conditions = [pb.Dirichlet(v, 1, on=inner.boundary), pb.Robin(v, 1, 1, 0, on=outer.boundary)]
    return pb.Problem(sp.Eq(pb.laplacian(v), 0), outer - inner, conditions, exact=exact)


# Name, tolerance, problem, goal in seconds.
SOLVES: tuple[tuple[str, float, Callable[[], pb.Problem], float], ...] = (
    ("poisson", 1e-8, pb.problems.poisson, 0.012),
    ("poisson_gaussian", 1e-8, pb.problems.poisson_gaussian, 0.012),
    ("helmholtz", 1e-8, pb.problems.helmholtz, 0.012),
    ("annulus", 1e-6, pb.problems.annulus, 0.12),
    ("annulus", 1e-8, pb.problems.annulus, 0.25),
    ("annulus", 1e-11, pb.problems.annulus, 0.5),
    ("l_shape", 1e-8, pb.problems.l_shape, 0.4),
    ("l_shape", 1e-11, pb.problems.l_shape, 1.5),
    ("poisson_ball", 1e-6, pb.problems.poisson_ball, 0.6),
    ("cooled_ball", 1e-6, cooled_ball, np.nan),
    ("shell", 1e-6, shell, np.nan),
    ("star_100", 1e-6, star, 6.0),
    ("advection", 1e-8, pb.problems.advection, np.nan),
    ("diffusion_reaction", 1e-8, pb.problems.diffusion_reaction, np.nan),
    ("wave", 1e-8, pb.problems.wave, np.nan),
    ("poisson_nd", 1e-8, pb.problems.poisson_nd, np.nan),
    ("l_shape_unit_load", 1e-8, pb.problems.l_shape_unit_load, np.nan),
)
RIVALS = ("ngsolve", "fastlsq")


def yardstick() -> float:
    """Return the CPU seconds of a 600 × 600 SVD, the best of three."""
    matrix = np.random.default_rng(0).random((600, 600))
    return min(timed(lambda: np.linalg.svd(matrix)) for _ in range(3))


def solves(make: Callable[[], pb.Problem], tol: float, repeats: int) -> tuple[float, pb.Solution]:
    """Return the median seconds of some solves, each of a new problem, and the last solution."""
    pb.solve(make(), tol=tol, progress=False)
    seconds = []
    for _ in range(repeats):
        problem, begun = make(), time.process_time()
        solution = pb.solve(problem, tol=tol, progress=False)
        seconds.append(time.process_time() - begun)
    return median(seconds), solution


def of_solve(name: str, tol: float, make: Callable[[], pb.Problem], goal: float, repeats: int) -> Line:
    """Measure one problem."""
    unit, probe = yardstick(), Probe.of(name, make())
    seconds, solution = solves(make, tol, repeats)
    peers = [figure for rival in RIVALS for figure in _rival(rival, probe, tol, repeats)]
    found = (str(solution.status), probe.error(solution), solution.error_estimate or np.nan)
    return Line(name, tol, seconds, seconds / unit, goal, *found, *peers, "")


def _rival(name: str, probe: Probe, tol: float, repeats: int) -> tuple[float, float]:
    """Return seconds and error of a rival; no numbers where it is not installed or has not got the problem."""
    try:
        importlib.import_module(name)
    except ImportError:
        return np.nan, np.nan
    found: tuple[float, float] = importlib.import_module(f"benchmarks.peers_{name}").cheapest(probe, tol, repeats)
    return found


def other(name: str, goal: float, note: str, run: Run, repeats: int) -> Line:
    """Measure something that is not one solve."""
    unit = yardstick() if "ratio" not in note else np.nan
    figure = median(run() for _ in range(repeats))
    return Line(name, np.nan, figure, figure / unit, goal, "", *[np.nan] * 6, note)


def zoo() -> float:
    """Return the median seconds of the linear zoo in at most three coordinates, at the default tolerance."""
    problems = [make for make in steady(linear=True).values() if len(make().domain.coordinates) <= 3]
    return median(solves(make, 1e-6, 1)[0] for make in problems)


def rough() -> float:
    """Return the seconds of all peaks, layers and fronts together, at 1e-4."""
    chosen = [make for name, make in families.items() if name.split()[0] in ("peak", "layer", "front")]
    return sum(solves(make, 1e-4, 1)[0] for make in chosen)


def first() -> float:
    """Return the seconds of the first solve of a fresh process, after the import."""
    found = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    return float(found.stdout)


def loads(count: int = 100) -> float:
    """Return what so many right-hand sides of one prepared problem cost, one by one, over one solve."""
    return compared("square", [sp.exp(x * y) * sp.sin(number * x / 10 + y) for number in range(count)])[1]


def million() -> tuple[float, float]:
    """Return seconds and GiB of an even tree of a million weights."""
    from benchmarks.cells import cost

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        row = pool.submit(cost, 98).result()
    return row["seconds"], row["gib"]


def lines(names: list[str] | None, repeats: int) -> Iterator[Line]:
    """Measure what is asked for."""

    def wanted(name: str) -> bool:
        return not names or name in names

    for name, tol, make, goal in SOLVES:
        if wanted(name):
            yield of_solve(name, tol, make, goal, repeats)
    if wanted("first"):
        yield other("first", 0.5, "first solve of a fresh process, after the import", first, repeats)
    if wanted("zoo"):
        yield other("zoo", 0.03, "median of the linear zoo in at most three coordinates, tol 1e-6", zoo, 1)
    if wanted("loads"):
        yield other("loads", 3.0, "100 right-hand sides over one solve, a ratio", loads, 1)
    if wanted("families"):
        yield other("families", np.nan, "sum over peaks, layers and fronts, tol 1e-4", rough, 1)
    if wanted("million"):
        unit = yardstick()
        seconds, memory = million()
        note = f"a million weights on an even tree, {memory:.1f} GiB"
        yield Line("million", np.nan, seconds, seconds / unit, 20.0, "", *[np.nan] * 6, note)


def main() -> None:
    """Print a line for each promise as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("name tol: seconds (goal), over an SVD; status, error, estimate; NGSolve: seconds, error; FastLSQ: the same")
    with blas_threads(1):
        made = []
        for line in lines(options.only, options.repeats):
            made.append(line)
            print(
                f"{line.name} {line.tol:.0e}: {line.seconds:.4g} ({line.goal:g}), {line.unit:.3g}; {line.status} "
                f"{line.error:.1e} {line.estimate:.1e}; {line.ngsolve:.4g} {line.ngsolve_error:.1e}; "
                f"{line.fastlsq:.4g} {line.fastlsq_error:.1e} {line.note}",
                flush=True,
            )
            if options.csv:
                save(Line, options.csv, made)


if __name__ == "__main__":
    main()
