"""How uncertain a number is if parameters of its problem are: by sampling, with the linearised answer beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_integer, check_number, check_seed, cut, refusal
from pibls.errors import InputError, PiblsError, SolveError
from pibls.geometry.sampling import unit_cube
from pibls.markup import facts
from pibls.problem import Problem
from pibls.problem.unknown_numbers import open_in
from pibls.quantities import asked
from pibls.solution import Solution
from pibls.status import Status
from pibls.sweeps.kept import open_folder
from pibls.sweeps.solving import Point, Solving
from pibls.sweeps.sweep import SweepProgress, reported
from pibls.sweeps.workers import Workers, workers_of
from pibls.tuning import prepare, solve
from pibls.tuning.alike import keeps_factors
from pibls.tuning.progress import reporter

_SIGMAS = 2.0  # standard errors by which two estimates of one number differ for more than chance


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How a number is distributed, if parameters are.

    Attributes
    ----------
    mean, deviation
        Mean and standard deviation of the number, by samples.
    interval
        The range that holds the number with a probability of 95 %, by samples.
    central
        The number at the means of all parameters.
    linear
        Its standard deviation if it were a linear function of the parameters.
    shares
        The share of each parameter in the linearised variance.
    values
        The number for every sample, NaN where there is no solution.
    inputs
        The samples of every parameter, by name.
    note
        Where sampled and linearised answers differ, or solves fail; or an empty text.
    """

    mean: float
    deviation: float
    interval: tuple[float, float]
    central: float
    linear: float
    shares: Mapping[str, float]
    values: FloatArray
    inputs: Mapping[str, FloatArray]
    note: str = ""

    def __float__(self) -> float:
        return self.mean

    def _facts(self) -> list[tuple[str, str]]:
        low, high = self.interval
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.shares.items())
        return [
            ("sampled", f"{self.mean:.6g}, deviation {self.deviation:.3g}, 95 % from {low:.6g} to {high:.6g}"),
            ("linearised", f"{self.central:.6g}, deviation {self.linear:.3g}" + (f" ({shares})" if shares else "")),
            *([("note", self.note)] if self.note else []),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {told}" for name, told in self._facts())

    def __repr__(self) -> str:
        return f"Uncertainty({self.mean:.6g} ± {self.deviation:.3g}, linearised {self.central:.6g} ± {self.linear:.3g})"

    def _repr_html_(self) -> str:
        return facts(self._facts())


def uncertainty(
    problem: Problem,
    quantity: Any,
    *,
    samples: int = 64,
    seed: int = 0,
    tol: float = 1e-6,
    executor: Any = None,
    folder: str | Path | None = None,
    progress: Callable[[SweepProgress], object] | bool | None = None,
    **distributions: Any,
) -> Uncertainty:
    """Return how uncertain a number is if parameters of its problem are.

    The problem is solved for samples of all parameters, which are independent of each other. Where only right-hand
    sides depend on them, all solves share their factors. The result has a sampled and a linearised deviation; if they
    differ by more than chance, the note says so, and the sampled one is right.

    Parameters
    ----------
    problem
        A problem with open parameters, see :func:`~pibls.parameter`.
    quantity
        A quantity such as ``maximum(u)``, an expression at a point such as ``u.subs(x, 0)``, or a function of a
        solution that returns a number.
    samples
        How many solves; a power of two spreads them best. Deviations are known to about ``1/sqrt(2*samples)``.
    seed
        The same seed gives the same samples.
    tol
        Relative L2 error to reach in every solve.
    executor, folder, progress
        As of :func:`~pibls.sweep`.
    **distributions
        For every parameter a mean and a standard deviation, ``k=(2, 0.1)``, or a distribution of ``scipy.stats``,
        ``k=scipy.stats.uniform(1, 2)``.

    Examples
    --------
    >>> import sympy as sp, pibls as pb
    >>> x, k, load = pb.coordinates("x"), pb.parameter("k"), pb.parameter("load")
    >>> u = pb.field("u", x)
    >>> bar = pb.Problem(sp.Eq(-k * u.diff(x, 2), load), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    >>> found = pb.uncertainty(bar, pb.maximum(u), k=(2, 0.1), load=(16, 0.8), executor=1)
    >>> round(found.central, 6), round(found.linear, 4), round(found.deviation, 2)
    (1.0, 0.0707, 0.07)
    >>> {name: round(share, 3) for name, share in found.shares.items()}
    {'k': 0.5, 'load': 0.5}
    """
    if not isinstance(problem, Problem):
        raise refusal("problem", "uncertainty", "be a Problem with open parameters", problem)
    wanted = asked(quantity, "quantity", "uncertainty")
    count = check_integer("samples", samples, "uncertainty", minimum=2)
    accuracy = check_number("tol", tol, "uncertainty", minimum=0, exclusive=True)
    given = {name: _distribution(name, value) for name, value in _complete(problem, distributions).items()}
    spread = unit_cube(count, len(given), "sobol", check_seed(seed, "uncertainty"), "uncertainty")
    inputs = {name: np.asarray(own.ppf(u)) for (name, own), u in zip(given.items(), spread.T, strict=True)}
    means = {name: float(own.mean()) for name, own in given.items()}
    middle = solve(problem.at(**means), tol=accuracy, progress=False)
    central = _number(wanted(middle))
    points = [
        Point((i,), f"sample {i + 1}", dict(zip(inputs, map(float, row), strict=True)))
        for i, row in enumerate(np.array([*inputs.values()]).T)
    ]
    workers, place = workers_of(executor, "uncertainty"), None if folder is None else open_folder(folder)
    work = Solving(problem.at, {"tol": accuracy}, place, partial(_sample, wanted))
    with reporter(progress, "uncertainty", "SweepProgress") as report:
        found = _solved(middle.problem, points, work, workers, report)
    values = np.array([np.nan if isinstance(one, str) else one.value for one in found])
    known = values[np.isfinite(values)]
    if len(known) < 2:
        why = next((one for one in found if isinstance(one, str)), "no number")
        raise SolveError(f"uncertainty found no solution for the samples: {why}")
    mean, deviation = float(known.mean()), float(known.std(ddof=1))
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    linear, shares, why = _linearised(middle, wanted, {name: float(own.std()) for name, own in given.items()})
    notes = [why, _differing(known, central, linear), _failed(middle, found, values)]
    note = " ".join(filter(None, notes))
    return Uncertainty(mean, deviation, (low, high), central, linear, shares, values, inputs, note)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise refusal("quantity", "uncertainty", "return one number", value) from error


def _complete(problem: Problem, distributions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the distributions of all open parameters, or refuse them."""
    names = [symbol.name for symbol in open_in(problem.parameters)]
    if not names or set(names) != set(distributions):
        raise InputError(
            f"uncertainty needs a distribution for every open parameter, {', '.join(names) or 'and there are none'}, "
            f"and got {', '.join(distributions) or 'none'}. Give k=(mean, deviation) or one of scipy.stats, and set "
            "parameters that are certain with problem.at(k=...)."
        )
    return {name: distributions[name] for name in names}


def _distribution(name: str, value: Any) -> Any:
    """Return a distribution with a mean and a deviation, or refuse the value."""
    pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if pair:
        from scipy import stats  # takes long to import

        mean = check_number(name, value[0], "uncertainty")
        return stats.norm(mean, check_number(name, value[1], "uncertainty", minimum=0, exclusive=True))
    if not all(callable(getattr(value, method, None)) for method in ("ppf", "mean", "std")):
        rule = "be a mean and a standard deviation, or a distribution of scipy.stats such as scipy.stats.uniform(1, 2)"
        raise refusal(name, "uncertainty", rule, value)
    if not (np.isfinite(value.mean()) and np.isfinite(value.std())):
        raise refusal(name, "uncertainty", "have a finite mean and a finite standard deviation", value)
    return value


@dataclass(frozen=True)
class _Sample:
    """The number of one sample, and the state of its solution."""

    value: float
    status: Status
    message: str


def _sample(wanted: Callable[[Solution], Any], solution: Solution) -> _Sample:
    """Return the number of a solution."""
    return _Sample(_number(wanted(solution)), solution.status, solution.diagnostics.message)


def _solved(
    middle: Problem, points: Sequence[Point], work: Solving, workers: Workers, report: Callable[[SweepProgress], None]
) -> Sequence[_Sample | str]:
    """Solve at points; with the factors of one problem where only data differ."""
    if work.folder is None and keeps_factors(middle, problems := [work.made(point) for point in points]):
        return [work.taken(one) for one in prepare(middle, tol=work.options["tol"]).solve_alike(problems)]
    found = {point.index: result for point, result in reported(work.outcomes(points, workers), len(points), report)}
    return [found[point.index] for point in points]


def _linearised(middle: Solution, wanted: Any, deviations: Mapping[str, float]) -> tuple[float, dict[str, float], str]:
    """Return the deviation by linearisation, the shares in its square, and why there is none."""
    try:
        slopes = middle.sensitivity(wanted, list(deviations))
    except PiblsError as error:
        return math.nan, {}, f"There is no linearised deviation: {cut(str(error), 200)}"
    parts = {name: (slopes[name] * deviations[name]) ** 2 for name in deviations}
    whole = sum(parts.values())
    return math.sqrt(whole), {name: part / whole if whole else 0.0 for name, part in parts.items()}, ""


def _differing(values: FloatArray, central: float, linear: float) -> str:
    """Say by how much sampled and linearised answers differ, if for more than chance."""
    mean, deviation, count = float(values.mean()), float(values.std(ddof=1)), len(values)
    spread = abs(deviation - linear) > _SIGMAS * max(deviation, linear) / math.sqrt(2 * count)
    shift = abs(mean - central) > _SIGMAS * deviation / math.sqrt(count)
    if not (spread or shift):
        return ""
    return (
        f"The linearised answer, {central:.6g} ± {linear:.3g}, differs from the sampled one, {mean:.6g} ± "
        f"{deviation:.3g}, by more than chance: the number is no linear function of the parameters over their range. "
        "Use the sampled one."
    )


def _failed(middle: Solution, found: Sequence[_Sample | str], values: FloatArray) -> str:
    """Say how many solves failed or did not converge."""
    lost = [one for one, value in zip(found, values, strict=True) if not np.isfinite(value)]
    every = [_Sample(np.nan, middle.status, middle.diagnostics.message), *found]
    doubted = [one for one in every if isinstance(one, _Sample) and one.status != Status.CONVERGED]
    words = []
    if lost:
        first = lost[0] if isinstance(lost[0], str) else "the quantity is not finite"
        words.append(f"{len(lost)} of {len(found)} samples have no number ({cut(first, 200)}) and do not count.")
    if doubted:
        words.append(f"{len(doubted)} of {len(found) + 1} solves did not converge: {doubted[0].message}")
    return " ".join(words)
