"""A problem solved for all combinations of values of its parameters."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import as_reals, check_number, cut, refusal, shorten
from pibls.errors import InputError
from pibls.problem import Problem
from pibls.problem.unknown_numbers import open_in
from pibls.quantities import asked
from pibls.report.grid_values import installed
from pibls.solution import Solution
from pibls.sweeps.kept import file_of, open_folder
from pibls.sweeps.labels import Labelled, Taking
from pibls.sweeps.solving import Point, Solving
from pibls.sweeps.workers import workers_of
from pibls.tuning import solve
from pibls.tuning.progress import reporter

_MANY = (list, tuple, range, np.ndarray)  # options with values of these types are dimensions


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is."""

    done: int  # points that are solved, those of earlier runs among them
    total: int
    failed: int
    message: str  # the point that was finished last, and what came of it

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done}/{self.total}{failed}: {self.message}"


def sweep(
    problem: Problem | Callable[..., Problem],
    *,
    executor: Any = None,
    folder: str | Path | None = None,
    tol: float = 1e-6,
    quantities: Mapping[str, Any] | None = None,
    grid_points: int | None = None,
    progress: Callable[[SweepProgress], object] | bool | None = None,
    **values: Any,
) -> Any:
    """Solve a problem for all combinations of values of its parameters, on all cores.

    If a point fails, the others are still solved. Needs ``pip install 'pibls[files]'``.

    Parameters
    ----------
    problem
        A problem with open parameters, see :func:`~pibls.parameter`; or a function that returns one for values by name.
    executor
        How many processes, by default one per core; 1 is this process. Or any ``concurrent.futures.Executor``, or a
        ``Client`` of Dask.
    folder
        Where every solution is kept in a file, readable by :func:`~pibls.load`. After an interruption, or with further
        values, only points that are not there are solved. Workers on other machines must see the same folder.
    tol
        Relative L2 error to reach at every point.
    quantities
        Numbers to compute from every solution, by name: quantities such as ``maximum(u)`` and ``flow(part)``,
        expressions at a point such as ``u.subs(x, 0)``, or functions of a solution.
    grid_points
        How many along each coordinate of the grid that fields are given on.
    progress
        Called with a :class:`SweepProgress` after every point; otherwise as for :func:`~pibls.solve`.
    **values
        Values of every parameter, by name. Plain options of :func:`~pibls.solve` are taken, too; one with a list of
        numbers, such as ``seed=range(8)``, is one more dimension.

    Returns
    -------
    xarray.Dataset
        With a dimension per parameter: ``status`` (``"failed"`` where there is no solution), ``error_estimate``,
        ``message`` and the quantities; and the fields on a grid, if the domain is the same at all points.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls import Dirichlet, Interval, Problem, coordinates, field, parameter
    >>> x, k, load = coordinates("x"), parameter("k"), parameter("load")
    >>> u = field("u", x)
    >>> problem = Problem(sp.Eq(-k * u.diff(x, 2), load), Interval((x, 0, 1)), [Dirichlet(u, 0)])
    >>> found = sweep(problem, k=[1, 2], load=[8, 16, 24], executor=1, quantities={"middle": u.subs(x, 0.5)})
    >>> found.middle.sel(k=2).round(9).values.tolist()
    [0.5, 1.0, 1.5]
    """
    xarray, tolerance = installed("xarray", "sweep"), check_number("tol", tol, "sweep", minimum=0, exclusive=True)
    asked, workers = _asked(problem, {"tol": tolerance, **values}), workers_of(executor, "sweep")
    taking = Taking(_functions(quantities), grid_points)
    found = Labelled(asked.axes, taking.quantities)
    work = asked.solving(None if folder is None else open_folder(folder), taking)
    with reporter(progress, "sweep", "SweepProgress") as report:
        total = int(np.prod(found.shape))
        for point, result in reported(work.outcomes(asked.points(), workers), total, report):
            found.put(point.index, result)
    facts = {"tolerance": tolerance} | ({"equation": str(problem)} if isinstance(problem, Problem) else {})
    return found.dataset(xarray, facts)


def reported(
    outcomes: Iterable[tuple[Point, Any]], total: int, report: Callable[[SweepProgress], None]
) -> Iterator[tuple[Point, Any]]:
    """Yield points and results, and tell how far the sweep is after each of them."""
    failed = 0
    for done, (point, result) in enumerate(outcomes, 1):
        yield point, result
        failed += isinstance(result, str)
        said = cut(result, 200) if isinstance(result, str) else str(result.status)
        report(SweepProgress(done, total, failed, f"{point.name}: {said}"))


@dataclass(frozen=True, eq=False)
class _Asked:
    """The points of a sweep, and how each is solved."""

    make: Callable[..., Problem]
    axes: Mapping[str, tuple[Any, ...]]
    varied: tuple[str, ...]  # axes that are options of the solve
    options: Mapping[str, Any]

    def points(self) -> Iterator[Point]:
        """Yield all points, the last axis first."""
        for index in np.ndindex(*map(len, self.axes.values())):
            own = {name: every[i] for (name, every), i in zip(self.axes.items(), index, strict=True)}
            options = {name: own.pop(name) for name in self.varied}
            place = ", ".join(f"{name} = {value:g}" for name, value in {**own, **options}.items())
            yield Point(index, place, own, options)

    def solving(self, folder: Path | None, taking: Taking) -> Solving:
        """Return the work at every point; refuse a folder that cannot keep its result."""
        work = Solving(self.make, self.options, folder, taking)
        first = None
        with suppress(Exception):  # of a function of the user; the point tells of it in its turn
            first = None if folder is None else work.made(next(self.points()))
        if folder is not None and first is not None:
            file_of(folder, first, {}, {})
        return work


def _asked(problem: object, given: Mapping[str, Any]) -> _Asked:
    """Tell parameters from options, or refuse them."""
    named = set(inspect.signature(solve).parameters) - {"problem", "progress"}
    if isinstance(problem, Problem):
        names = [symbol.name for symbol in open_in(problem.parameters)]
        if missing := [name for name in names if name not in given]:
            raise InputError(
                f"sweep needs values for every open parameter, and {', '.join(missing)} has none. Give a list: "
                f"{missing[0]}=[…]; one value is enough."
            )
        make: Any = problem.at
    elif callable(problem):
        names, make = [name for name in given if name not in named], problem
    else:
        raise refusal("problem", "sweep", "be a Problem with open parameters, or a function that returns one", problem)
    options = {name: value for name, value in given.items() if name not in names}
    varied = tuple(name for name, value in options.items() if name in named and isinstance(value, _MANY))
    for name, value in options.items():
        if name not in named:
            known = f"its open parameters are {', '.join(names)}" if names else "it has no open parameters"
            raise InputError(f"The problem has no parameter {name!r}; {known}. Make them with pibls.parameter.")
        if name not in varied and not isinstance(value, str | bool | numbers.Real | None):
            raise InputError(f"The '{name}' option of sweep must be a number or text. Got {shorten(value)} instead.")
    if not names and not varied:
        raise InputError("sweep needs values of at least one parameter, such as k=[1, 2, 3].")
    same = {name: value for name, value in options.items() if name not in varied}
    return _Asked(make, {name: _axis(name, given[name]) for name in (*names, *varied)}, varied, same)


def _axis(name: str, value: Any) -> tuple[Any, ...]:
    """Return the values of a parameter: finite numbers, each once."""
    found = as_reals(value)
    if found is None or found.ndim > 1 or found.size == 0 or not np.isfinite(found).all():
        raise refusal(name, "sweep", "be a list of finite numbers", value)
    whole = np.asarray(value).dtype.kind in "iu"
    many = np.atleast_1d(found.astype(np.int64) if whole else found).tolist()
    if len(set(many)) < len(many):
        raise refusal(name, "sweep", "have every value once", value)
    return tuple(many)


def _functions(quantities: object) -> Mapping[str, Callable[[Solution], Any]]:
    if quantities is None:
        return {}
    if not isinstance(quantities, Mapping):
        raise refusal("quantities", "sweep", "map names to quantities, such as pibls.maximum(u)", quantities)
    return {name: asked(what, f"quantities[{name!r}]", "sweep") for name, what in quantities.items()}
