"""Inverse problems: how near the truth the unknowns are, and whether their intervals mean what they say.

    python -m benchmarks.inverse exact                       without noise: errors and seconds
    python -m benchmarks.inverse bound --seeds 10            1 % noise: median errors over the bound of Cramér and Rao
    python -m benchmarks.inverse coverage --seeds 200        how often 95 % intervals and bands hold the truth
    python -m benchmarks.inverse starts --seeds 30           random starts over six decades
    python -m benchmarks.inverse flaws                       what data cannot tell, and wrong models

Every solve is a row of the CSV file (--out), written as soon as it is done; what is there already is not solved again.
Problems are named with --problems. Noise is relative to the root mean square of the data; bounds come from closed forms
and other independent methods (``benchmarks.inverse_models``).
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

import pibls as pb
from benchmarks.inverse_models import MODELS, bound, observations, rate_field
from pibls.checks import FloatArray
from pibls.problems import inverse
from pibls.problems.inverse.data import values_of

_NUMBERS = (
    *("heat_diffusivity", "brinkman_forchheimer", "klein_gordon_mass", "wave_speed", "robin_coefficient"),
    *("burgers_coefficients", "kdv_coefficients", "lorenz_parameters", "source_position", "two_layer_darcy"),
    "cylinder_wake",
)
_FUNCTIONS = ("rate_function", "conductivity", "conductivity_heat", "initial_temperature")
_COVERED = ("heat_diffusivity", "brinkman_forchheimer", "klein_gordon_mass", "wave_speed", "robin_coefficient")
_BANDS = ("rate_function",)
_ONE_PERCENT = 0.01
_OUTLIERS, _FAR_OUT = 0.1, 20.0  # share of the data, and their noise in units of that of the others
OUTLIERS = " with outliers"
_DECADES = 6.0
_AT_TRUTH = 1e-5
_WHERE = 400  # points at which functions are compared


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

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells solves apart."""
        return self.study, self.problem, self.seed


@cache
def noise_of(name: str, share: float) -> float:
    """Return the standard deviation of the noise that is a share of the root mean square of the data."""
    values = np.concatenate([data.values for data in observations(inverse.catalogue()[name](0.0, 0))])
    return share * float(np.sqrt(np.mean(values**2)))


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


def solved(study: str, name: str, seed: int, problem: pb.Problem) -> Iterator[Row]:
    """Yield a row per unknown."""
    begun = time.perf_counter()
    nothing = float("nan")
    try:
        solution = pb.solve(problem)
    except Exception as error:  # whatever it is, the other solves go on
        seconds, words = time.perf_counter() - begun, f"{type(error).__name__}: {error}"
        yield Row(study, name, seed, "", nothing, nothing, nothing, nothing, nothing, False, "error", seconds, words)
        return
    rest = (str(solution.status), time.perf_counter() - begun, solution.diagnostics.message)
    truth = dict(problem.truth or {})
    for symbol in problem.parameters:
        found = solution.parameters[symbol.name]
        interval = (found.value, found.deviation, *found.interval)
        determined = bool(np.isfinite(found.value))
        yield Row(study, name, seed, symbol.name, truth.get(symbol.name, nothing), *interval, determined, *rest)
    X = problem.domain.sample(_WHERE, "halton", 3)
    for label, true in _functions(name.removesuffix(OUTLIERS), problem, X, fields=study == "coverage").items():
        found, held = solution(X), nothing
        own = found[label] if isinstance(found, dict) else found
        error = float(np.linalg.norm(own - true) / np.linalg.norm(true))
        if solution.posterior is not None:
            low, high = (end[label] if isinstance(end, dict) else end for end in solution.credible_band(X))
            held = float(np.mean((low <= true) & (true <= high)))
        yield Row(study, name, seed, f"{label}()", 0.0, error, held, nothing, nothing, True, *rest)


def _functions(name: str, problem: pb.Problem, X: FloatArray, *, fields: bool) -> dict[str, FloatArray]:
    """Return the truth of unknown functions at points, and that of the fields if it is known independently."""
    truth = dict(problem.truth or {})
    found = {
        call.label: values_of(truth[call.label], problem.domain.coordinates, X) for call in problem.unknown_functions
    }
    if fields and (name in MODELS or name == "rate_function"):
        found["u"] = MODELS[name](truth, X) if name in MODELS else rate_field(truth["k"], X)
    return found


Job = tuple[str, int, Callable[[], pb.Problem]]


def jobs(study: str, names: list[str], seeds: int) -> Iterator[Job]:
    """Yield the problems of a study: a name, a seed and how to build it."""
    zoo = inverse.catalogue()
    flawed = {key: case.problem for key, case in inverse.unidentifiable().items()} | dict(inverse.wrong_models())
    for name in names:
        for seed in range(seeds):
            if study == "flaws":
                yield name, seed, partial(flawed[name], seed)
            elif study == "exact":
                yield name, seed, partial(zoo[name], 0.0, 0)
            elif study == "starts":
                yield name, seed, partial(restarted, zoo[name](0.0, 0), seed)
            else:
                noisy = partial(zoo[name], noise_of(name, _ONE_PERCENT), seed)
                yield name, seed, noisy
                if study == "coverage":
                    yield f"{name}{OUTLIERS}", seed, partial(spoiled, noisy, seed)


def run(study: str, names: list[str], seeds: int, out: Path) -> list[Row]:
    """Solve what the file does not have yet, and return the rows of the study."""
    known = load(out)
    done = {row.key for row in known}
    columns = [entry.name for entry in fields(Row)]
    with out.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        if not known:
            writer.writeheader()
        for name, seed, build in jobs(study, names, seeds):
            if (study, name, seed) in done:
                continue
            for row in solved(study, name, seed, build()):
                known.append(row)
                writer.writerow(asdict(row))
                print(
                    f"{name} [{seed}] {row.unknown}: {row.value:.10g} ± {row.deviation:.2g}, {row.status}, "
                    f"{row.seconds:.1f} s",
                    flush=True,
                )
            stream.flush()
    return [row for row in known if row.study == study and row.seed < seeds]


def load(path: Path) -> list[Row]:
    """Return the rows of a file, none if there is no file."""
    if not path.exists():
        return []
    kinds = {entry.name: entry.type for entry in fields(Row)}
    read: dict[str, Callable[[str], object]] = {"int": int, "float": float, "bool": lambda v: v == "True", "str": str}
    with path.open(newline="") as stream:
        return [Row(**{k: read[str(kinds[k])](v) for k, v in row.items()}) for row in csv.DictReader(stream)]  # type: ignore[arg-type]


def grouped(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of every unknown of every problem."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.problem, row.unknown].append(row)
    return groups


@dataclass(frozen=True)
class Summary:
    """All solves for one unknown: medians, and the share of intervals, or of the points of bands, that hold it.

    Of starts also how many ended elsewhere, and how many of these did not say so.
    """

    problem: str
    unknown: str
    solves: int
    converged: int
    seconds: float
    error: float
    held: float
    over_bound: float
    elsewhere: int
    silent: int


def summaries(study: str, rows: list[Row]) -> Iterator[Summary]:
    """Yield a summary per problem and unknown; numbers that are not determined are not held."""
    for (problem, unknown), group in grouped(rows).items():
        seconds, converged = float(np.median([r.seconds for r in group])), sum(r.status == "converged" for r in group)
        if unknown.endswith("()"):
            error, held, over = (
                float(np.median([r.value for r in group])),
                np.mean([r.deviation for r in group]),
                np.nan,
            )
        else:
            error = float(np.median([abs(r.value / r.truth - 1) for r in group]))
            held = np.mean([r.low <= r.truth <= r.high for r in group])
            least = bound(problem, noise_of(problem, _ONE_PERCENT))[unknown] if study == "bound" else np.nan
            over = error * abs(group[0].truth) / least
        elsewhere = _elsewhere(group) if study == "starts" else []
        silent = sum(row.status == "converged" for row in elsewhere)
        figures = (seconds, error, float(held), float(over), len(elsewhere), silent)
        yield Summary(problem, unknown, len(group), converged, *figures)


def _elsewhere(group: list[Row]) -> list[Row]:
    """Return solves that did not end at the truth."""
    return [row for row in group if not (row.determined and abs(row.value - row.truth) <= _AT_TRUTH * abs(row.truth))]


def summary(study: str, rows: list[Row]) -> Iterator[str]:
    """Yield a line per problem and unknown."""
    for (problem, unknown), group in grouped(rows).items():
        seconds = float(np.median([row.seconds for row in group]))
        head = f"{problem:<36} {unknown:<6} {len(group):>4} solves, median {seconds:6.1f} s  "
        failed = [row for row in group if row.status == "error"]
        if failed:
            yield head + f"{len(failed)} errors: {failed[0].message[:150]}"
            continue
        yield head + _words(study, problem, unknown, group)


def _words(study: str, problem: str, unknown: str, group: list[Row]) -> str:
    found = [row for row in group if row.determined]
    statuses = ", ".join(sorted({row.status for row in group}))
    if study == "flaws":
        open_ones = len(group) - len(found)
        return f"left open in {open_ones} of {len(group)}; {statuses}; {group[0].message[:200]}"
    function = unknown.endswith("()")
    errors = np.array([row.value if function else abs(row.value - row.truth) for row in found])
    if not len(errors) and study != "starts":
        return f"never determined; {statuses}"
    if function:
        held = np.mean([row.deviation for row in found])
        return f"relative error {np.median(errors):.1e}, band holds {held:.1%}; {statuses}"
    relative = float(np.median(errors)) / abs(found[0].truth) if found else np.nan
    if study == "bound":
        least = bound(problem, noise_of(problem, _ONE_PERCENT))[unknown]
        return f"median error {np.median(errors) / least:.2f} times the bound {least:.2e}; {statuses}"
    if study == "coverage":
        held = np.mean([row.low <= row.truth <= row.high for row in found])
        return f"held by {held:.1%} of the intervals, relative error {relative:.1e}; {statuses}"
    if study == "starts":
        elsewhere = _elsewhere(group)
        silent = [row.seed for row in elsewhere if row.status == "converged"]
        words = f"{len(group) - len(elsewhere)} at the truth, {len(elsewhere) - len(silent)} elsewhere and say so"
        return f"{words}, {len(silent)} elsewhere and silent {silent or ''}".rstrip()
    return f"relative error {relative:.1e}; {statuses}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("exact", "bound", "coverage", "starts", "flaws"))
    parser.add_argument("--problems", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("inverse.csv"))
    parser.add_argument("--summary", type=Path, help="file for a row per problem and unknown (all but flaws)")
    options = parser.parse_args()
    usual = {
        "exact": [*_NUMBERS, *_FUNCTIONS],
        "coverage": [*_COVERED, *_BANDS],
        "flaws": [*inverse.unidentifiable(), *inverse.wrong_models()],
    }
    names = options.problems or usual.get(options.study, [name for name in _NUMBERS if name in MODELS])
    rows = run(options.study, names, options.seeds, options.out)
    print("\n".join(["", *summary(options.study, rows)]))
    if options.summary is not None:
        options.summary.parent.mkdir(parents=True, exist_ok=True)
        with options.summary.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, [entry.name for entry in fields(Summary)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in summaries(options.study, rows))


if __name__ == "__main__":
    main()
