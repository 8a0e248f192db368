"""A problem solved for all combinations of values of its parameters."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import as_reals, check_integer, check_number, cut, refusal, shorten
from pibls.errors import InputError, PiblsError
from pibls.problem import Problem
from pibls.problem.open_numbers import open_in
from pibls.quantities import asked
from pibls.report.grid_values import installed
from pibls.runtime import available_cores
from pibls.solution import Solution
from pibls.sweeps.kept import file_of, kept, open_folder
from pibls.sweeps.labels import Labelled
from pibls.sweeps.workers import Job, needs_script, outcomes
from pibls.tuning import solve
from pibls.tuning.progress import reporter


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
    executor: Executor | int | None = None,
    folder: str | Path | None = None,
    tol: float = 1e-6,
    quantities: Mapping[str, Any] | None = None,
    grid_points: int | None = None,
    progress: Callable[[SweepProgress], object] | bool | None = None,
    **values: Any,
) -> Any:
    """Solve a problem for all combinations of values of its parameters, on all cores.

    A point that fails costs itself alone. Needs ``pip install 'pibls[files]'``.

    Parameters
    ----------
    problem
        A problem with open parameters, see :func:`~pibls.parameter`; or a function that returns one for values by name.
    executor
        How many processes, by default one per core; 1 is this process. Or any ``concurrent.futures.Executor``.
    folder
        Where every solution is kept in a file, readable by :func:`~pibls.load`. After an interruption, or with further
        values, only points that are not there are solved.
    tol
        Relative L2 error to reach at every point.
    quantities
        Numbers to take of every solution, by name: quantities such as ``maximum(u)`` and ``flow(part)``, expressions at
        a point such as ``u.subs(x, 0)``, or functions of a solution.
    grid_points
        How many along each coordinate of the grid that fields are given on.
    progress
        Called with a :class:`SweepProgress` after every point; otherwise as for :func:`~pibls.solve`.
    **values
        Values of every parameter, by name; plain options of :func:`~pibls.solve` are taken, too.

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
    found = Labelled(asked.axes, _functions(quantities), grid_points)
    with reporter(progress, "sweep", "SweepProgress") as report:
        asked.solve(workers, None if folder is None else open_folder(folder), _Tallied(found, report))
    facts = {"tolerance": tolerance} | ({"equation": str(problem)} if isinstance(problem, Problem) else {})
    return found.dataset(xarray, facts)


class _Tallied:
    """Enters results, and tells how far the sweep is."""

    def __init__(self, found: Labelled, report: Callable[[SweepProgress], None]) -> None:
        self.found, self.report = found, report
        self.done, self.failed = 0, 0

    def put(self, index: tuple[int, ...], result: Solution | str) -> None:
        self.found.put(index, result)
        self.done += 1
        self.failed += isinstance(result, str)
        values = zip(self.found.parameters, index, strict=True)
        place = ", ".join(f"{name} = {self.found.parameters[name][i]:g}" for name, i in values)
        said = cut(result, 200) if isinstance(result, str) else str(result.status)
        total = int(np.prod(self.found.shape))
        self.report(SweepProgress(self.done, total, self.failed, f"{place}: {said}"))


@dataclass(frozen=True, eq=False)
class _Asked:
    """The points of a sweep, and how each is solved."""

    make: Callable[..., Problem]
    axes: Mapping[str, tuple[Any, ...]]
    options: Mapping[str, Any]

    def solve(self, workers: Executor | int, folder: Path | None, course: _Tallied) -> None:
        """Solve at all points."""
        for job, result in outcomes(self.jobs(workers, folder, course), workers):
            course.put(job.index, result)

    def jobs(self, workers: Executor | int, folder: Path | None, course: _Tallied) -> Iterator[Job]:
        """Yield the points that are not solved yet; enter the others."""
        for index in np.ndindex(*course.found.shape):
            values = {name: own[i] for (name, own), i in zip(self.axes.items(), index, strict=True)}
            try:
                problem = self.make(**values)
                if not isinstance(problem, Problem):
                    raise refusal("problem", "sweep", "be a Problem, or a function that returns one", problem)
            except Exception as error:  # of a function of the user, or values that make no problem
                course.put(index, str(error) if isinstance(error, PiblsError) else f"{type(error).__name__}: {error}")
                continue
            path = None if folder is None else file_of(folder, problem, values, self.options)
            solution = None if path is None else kept(path, problem)
            if solution is not None:
                course.put(index, solution)
            else:
                own = isinstance(workers, int) and workers > 1 and needs_script(problem)
                yield Job(index, problem, self.options, path, own)


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
    for name, value in options.items():
        if name not in named:
            known = f"its open parameters are {', '.join(names)}" if names else "it has no open parameters"
            raise InputError(f"The problem has no parameter {name!r}; {known}. Make them with pibls.parameter.")
        if not isinstance(value, str | bool | numbers.Real | None):
            raise InputError(f"The '{name}' option of sweep must be a number or text. Got {shorten(value)} instead.")
    if not names:
        raise InputError("sweep needs values of at least one parameter, such as k=[1, 2, 3].")
    return _Asked(make, {name: _axis(name, given[name]) for name in names}, options)


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


def workers_of(executor: object, owner: str) -> Executor | int:
    """Return an executor, or a number of processes: one per core if left out."""
    if executor is None:
        return available_cores()
    if isinstance(executor, Executor):
        return executor
    return check_integer("executor", executor, owner, minimum=1, remedy="Or give an Executor.")


def _functions(quantities: object) -> Mapping[str, Callable[[Solution], Any]]:
    if quantities is None:
        return {}
    if not isinstance(quantities, Mapping):
        raise refusal("quantities", "sweep", "map names to quantities, such as pibls.maximum(u)", quantities)
    return {name: asked(what, f"quantities[{name!r}]", "sweep") for name, what in quantities.items()}
