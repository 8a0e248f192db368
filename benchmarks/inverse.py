"""How good unknowns are, and whether their intervals mean what they say: studies over many seeds.

    python -m benchmarks.inverse bound --seeds 10            1 % noise: median errors over the bound of Cramér and Rao
    python -m benchmarks.inverse coverage --seeds 200        how often 95 % intervals and bands hold the truth
    python -m benchmarks.inverse starts --seeds 30           random starts over six decades
    python -m benchmarks.inverse windows --seeds 200         measurements in place of all conditions
    [--problems NAME ...] [--noise 0.01] [--out inverse.csv] [--summary FILE] [--processes N]

Every unknown of every solve is a row of the file, written as soon as it is there; what is there already is not solved
again. Noise is relative to the root mean square of the data; bounds come from closed forms and other independent
methods (``benchmarks.inverse_models``). Single solves of all problems are part of ``python -m benchmarks.golden``.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import pibls as pb
from benchmarks.inverse_models import MODELS, bound, rate_field
from benchmarks.records import save
from benchmarks.runner import warm_up
from benchmarks.sets.open_windows import WINDOWS
from benchmarks.sets.unknowns import noise_of
from benchmarks.spread import resumed
from pibls.checks import FloatArray
from pibls.problems import inverse
from pibls.problems.inverse.data import values_of
from pibls.runtime import available_cores, blas_threads

_COVERED = ("heat_diffusivity", "brinkman_forchheimer", "klein_gordon_mass", "wave_speed", "robin_coefficient")
_USUAL = {"coverage": [*_COVERED, "rate_function"], "starts": [*_COVERED], "windows": [*WINDOWS], "bound": [*MODELS]}
_OUTLIERS, _FAR_OUT = 0.1, 20.0  # share of the data, and their noise in units of that of the others
OUTLIERS = " with outliers"
_DECADES = 6.0
_AT_TRUTH = 1e-5
_WHERE = 400  # points at which functions are compared
Job = tuple[str, str, int, float]


@dataclass(frozen=True)
class Row:
    """One unknown of one solve; of functions and fields, the relative error and the share of points that bands hold."""

    study: str
    problem: str
    seed: int
    unknown: str
    truth: float
    value: float
    deviation: float
    low: float
    high: float
    determined: bool
    status: str
    seconds: float
    message: str


def restarted(problem: pb.Problem, seed: int) -> pb.Problem:
    """Return a problem with other starts of its unknown numbers, up to three decades from the truth, within bounds."""
    rng = np.random.default_rng([seed, 7])
    other = {}
    for s in problem.parameters:
        start = dict(problem.truth or {})[s.name] * 10 ** rng.uniform(-_DECADES / 2, _DECADES / 2)
        most = (s.bounds or (None, None))[1]
        other[s] = pb.unknown(s.name, start if most is None else min(start, most), s.bounds, s.prior)
    conditions = [
        replace(c, equation=c.equation.xreplace(other)) if isinstance(c, pb.Condition) else c
        for c in problem.conditions
    ]
    equations = [equation.xreplace(other) for equation in problem.equations]
    return pb.Problem(equations, problem.domain, conditions, truth=problem.truth)


def spoiled(build: Callable[[], pb.Problem], seed: int) -> pb.Problem:
    """Return a problem with a tenth of its data far off, and the loss for such data."""
    problem = build()
    rng = np.random.default_rng([seed, 99])
    conditions = []
    for condition in problem.conditions:
        if isinstance(condition, pb.Observation):
            wrong = rng.random(len(condition.values)) < _OUTLIERS
            values = condition.values + wrong * _FAR_OUT * condition.noise * rng.standard_normal(len(wrong))
            condition = replace(condition, values=values, loss="huber")
        conditions.append(condition)
    return pb.Problem(problem.equations, problem.domain, conditions, truth=problem.truth)


def built(job: Job) -> pb.Problem:
    """Build the problem of a job: a study, a name, a seed and a level of noise."""
    study, name, seed, noise = job
    zoo = inverse.catalogue()
    if study == "windows":
        return (inverse.cylinder_wake if name == "wake" else WINDOWS[name])(noise, seed)
    if study == "starts":
        return restarted(zoo[name](0.0, 0), seed)
    plain = name.removesuffix(OUTLIERS)
    noisy = partial(zoo[plain], noise_of(plain, noise), seed)
    return noisy() if plain == name else spoiled(noisy, seed)


def solved(job: Job) -> list[Row]:
    """Return a row per unknown."""
    study, name, seed, _ = job
    problem, nothing = built(job), float("nan")
    truth = dict(problem.truth or {})
    with blas_threads(1):
        begun = time.process_time()
        try:
            solution = pb.solve(problem, progress=False)
        except Exception as error:  # whatever it is, the other solves go on
            seconds, words = time.process_time() - begun, f"{type(error).__name__}: {error}"
            return [
                Row(study, name, seed, k, v, *[nothing] * 4, False, "error", seconds, words) for k, v in truth.items()
            ]
        rest = (str(solution.status), time.process_time() - begun, solution.diagnostics.message)
    rows = []
    for symbol in problem.parameters:
        own = solution.parameters[symbol.name]
        interval = (own.value, own.deviation, *own.interval)
        rows.append(Row(study, name, seed, own.name, truth[own.name], *interval, own.is_determined, *rest))
    X = problem.domain.sample(_WHERE, "halton", 3)
    for label, true in _functions(name.removesuffix(OUTLIERS), problem, X, fields=study == "coverage").items():
        found, held = solution(X), nothing
        values = found[label] if isinstance(found, dict) else found
        error = float(np.linalg.norm(values - true) / np.linalg.norm(true))
        if solution.posterior is not None:
            low, high = (end[label] if isinstance(end, dict) else end for end in solution.credible_band(X))
            held = float(np.mean((low <= true) & (true <= high)))
        rows.append(Row(study, name, seed, f"{label}()", 0.0, error, held, nothing, nothing, True, *rest))
    return rows


def _functions(name: str, problem: pb.Problem, X: FloatArray, *, fields: bool) -> dict[str, FloatArray]:
    """Return the truth of unknown functions at points, and that of the fields if it is known independently."""
    truth = dict(problem.truth or {})
    found = {
        call.label: values_of(truth[call.label], problem.domain.coordinates, X) for call in problem.unknown_functions
    }
    if fields and (name in MODELS or name == "rate_function"):
        found["u"] = MODELS[name](truth, X) if name in MODELS else rate_field(truth["k"], X)
    return found


def run(jobs: list[Job], out: Path, processes: int) -> list[Row]:
    """Solve what the file does not have yet, and return the rows of the jobs."""

    def told(row: Row) -> str:
        found = f"{row.value:.10g} ± {row.deviation:.2g}"
        return f"{row.problem} [{row.seed}] {row.unknown}: {found}, {row.status}, {row.seconds:.1f} s"

    def key(row: Row) -> tuple[str, str, int]:
        return row.study, row.problem, row.seed

    return resumed(Row, out, {job[:3]: job for job in jobs}, solved, processes, key=key, told=told, begin=warm_up)


@dataclass(frozen=True)
class Summary:
    """All solves for one unknown: medians, and the share of intervals, or of the points of bands, that hold it.

    ``spread`` is the root mean square of errors in standard deviations, which should be one. Of starts also how many
    ended elsewhere, and how many of these did not say so.
    """

    problem: str
    unknown: str
    solves: int
    converged: int
    seconds: float
    error: float
    held: float
    spread: float
    over_bound: float
    elsewhere: int
    silent: int


def summaries(study: str, rows: list[Row], noise: float) -> Iterator[Summary]:
    """Yield a summary per problem and unknown; numbers that are not determined are not held."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.problem, row.unknown].append(row)
    for (problem, unknown), group in groups.items():
        head = (problem, unknown, len(group), sum(row.status == "converged" for row in group))
        seconds, elsewhere = float(np.median([row.seconds for row in group])), []
        if unknown.endswith("()"):
            error, held = float(np.median([r.value for r in group])), float(np.mean([r.deviation for r in group]))
            ratio = over = float("nan")
        else:
            off = np.array([row.value - row.truth for row in group])
            error = float(np.median(np.abs(off))) / abs(group[0].truth)
            held = float(np.mean([row.low <= row.truth <= row.high for row in group]))
            ratio = float(np.sqrt(np.mean(np.square(off / [row.deviation for row in group]))))
            least = bound(problem, noise_of(problem, noise))[unknown] if study == "bound" else np.nan
            over = error * abs(group[0].truth) / least
            if study == "starts":
                elsewhere = [row for row in group if not abs(row.value / row.truth - 1) <= _AT_TRUTH]
        silent = sum(row.status == "converged" for row in elsewhere)
        yield Summary(*head, seconds, error, held, ratio, float(over), len(elsewhere), silent)


def main() -> None:
    """Run a study and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=tuple(_USUAL))
    parser.add_argument("--problems", nargs="*", help="names; also 'wake' with windows")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.01, help="share of the root mean square of the data")
    parser.add_argument("--out", type=Path, default=Path("inverse.csv"))
    parser.add_argument("--summary", type=Path, help="file for a row per problem and unknown")
    parser.add_argument("--processes", type=int, default=available_cores())
    options = parser.parse_args()
    names = options.problems or _USUAL[options.study]
    if options.study == "coverage":
        names = [own for name in names for own in (name, f"{name}{OUTLIERS}")]
    jobs = [(options.study, name, seed, options.noise) for name in names for seed in range(options.seeds)]
    found = list(summaries(options.study, run(jobs, options.out, options.processes), options.noise))
    for one in found:
        print(", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in vars(one).items()))
    if options.summary is not None:
        save(Summary, options.summary, found)


if __name__ == "__main__":
    main()
