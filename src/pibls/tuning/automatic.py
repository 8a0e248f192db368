"""The automatic solver: an equation and a tolerance in, a checked solution out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.checks import WAYS, check_bytes, check_choice, check_integer, check_number, refusal, shorten
from pibls.errors import DeadlineError, InputError, ResourceError
from pibls.features.reference import Cells
from pibls.geometry import Points
from pibls.limits import Guard, guarded, in_words
from pibls.methods.fit import found_device, placing
from pibls.problem import Eigenvalue, Problem
from pibls.problem.unknown_numbers import refuse_open
from pibls.quantities import asked
from pibls.runtime import Spare, available_memory, is_dask
from pibls.solution import Solution
from pibls.tuning.as_told import Method, solve_as_told
from pibls.tuning.progress import Progress, reporter
from pibls.tuning.purpose import solve_for, solve_locally
from pibls.tuning.strategy import Strategy

__all__ = ["Method", "solve"]

_INVERSE = (
    "unknown numbers and functions, for which solve chooses everything itself. Leave it out; starts of unknowns are "
    "given as unknown('k', start=...)."
)
_BY_HAND = "a method or points of your own, which are used as they are. Leave it out, and ask the solution."
_CELLS = "method=Cells(...): cells choose their points, and take time as one more coordinate. Leave one of the two out."


def solve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    method: Method | Cells | None = None,
    points: Points | None = None,
    seed: int = 0,
    device: Any = None,
    cluster: Any = None,
    budget: float = 10.0,
    deadline: float | None = None,
    memory: float | str | None = None,
    assume_well_posed: bool = False,
    progress: Callable[[Progress], object] | bool | None = None,
    start: Any = None,
    continuation: Sequence[Problem] = (),
    time: str | None = None,
    uncertainty: bool = False,
    goal: Any = None,
    relative: str = "domain",
) -> Solution:
    """Solve a problem to a tolerance; choose everything, and say how accurate the answer is.

    In one to three coordinates the domain is cut into cells, each with the same small network. Cells are split where
    data or solution are rough, until the estimated error meets the tolerance. The estimate is the distance to a better
    solution, with more functions or more cells. In more coordinates, and on point clouds, one network is widened
    instead, with scales chosen by small pilots. No exact solution is used.

    Parameters
    ----------
    problem
        The problem. If it is nonlinear, it is solved by Gauss–Newton steps from simple starts.
    tol
        Relative L2 error to reach; with a goal, the relative error of the goal.
    method
        A method such as :class:`~pibls.PIBLS` to use with its own settings, or :class:`~pibls.Cells` for cells with
        nodes of another kind.
    points
        The points of the solve, with ``method`` or for the default width; nothing is refined then.
    seed
        Seed of nodes and points: the same seed gives the same solution.
    device
        A torch device such as ``"cuda"`` on which trees of cells are factorised and solved, and wide networks
        assembled; ``"auto"`` takes a GPU, if torch has one, for what takes a core about a second or more. The
        default is NumPy, which lines always use.
    cluster
        The ``Client`` of a Dask cluster, whose workers factorise a linear problem on cells together. Trees too small
        for that are solved here. Needs ``pip install 'pibls[dask]'``.
    budget
        Nominal seconds of work, shared by everything that is tried. A nominal second is 10¹⁰ operations, counted and
        not timed, so the same call gives the same answer everywhere.
    deadline
        Real seconds after which the solve ends, at most a tenth of them and one second late. It returns the best
        solution so far, or raises :class:`~pibls.DeadlineError`. By default no clock decides anything.
    memory
        Bytes that the solve may take, or a text such as ``"2 GB"``. What would take more is refused, or not tried. The
        default is what the machine has free, within the limits of the container and of the process.
    assume_well_posed
        Do not check whether the problem has one solution that its data determine, and never return ``"ill-posed"``.
    progress
        Called with a :class:`Progress` at every step. ``True`` shows a line on the terminal, ``False`` none; by
        default it is shown on a terminal only.
    start
        For a nonlinear problem, where to start: a solution of a similar problem, an expression, or one per field. If
        there are several solutions, the one near the start is found.
    continuation
        For a nonlinear problem, easier ones to solve on the way to it, such as the same flow at lower speeds.
    time
        For a problem in time, ``"space-time"``: time is one more coordinate; or ``"lines"``: features or cells in
        space, and an ordinary differential equation for their weights. By default, nonlinear evolutions, those in more
        than one space dimension and those with many oscillations are solved by lines if their form allows it, all else
        in space–time, and in the other way if the first one stalls.
    uncertainty
        For a problem with uncertain numbers, each an :func:`~pibls.unknown` with a prior, and no measurements: solve
        at the means and propagate the uncertainty to the solution, for :meth:`~pibls.Solution.credible_band`.
    goal
        A quantity to know, such as :func:`~pibls.maximum`, an expression at a point, such as ``u.subs(x, 0)``, or a
        function of a solution that returns a quantity. The solve ends when its relative error is within ``tol``.
    relative
        ``"domain"``: errors are relative to the size of each field over the whole domain. ``"local"``, in one to three
        coordinates: relative to its size nearby, in the worst box of the domain cut into eight along each axis.

    Returns
    -------
    Solution
        ``status``, a :class:`~pibls.Status`, is ``"converged"``, ``"stalled"`` (the tolerance was not met) or
        ``"ill-posed"`` (the problem has no solution, or more than one); ``diagnostics.message`` says why and what to
        do. Interrupting a long solve with Ctrl-C returns the best solution so far.

    Examples
    --------
    >>> from pibls import problems
    >>> solution = solve(problems.advection())
    >>> solution.status, solution.true_error() < 1e-6
    ('converged', True)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"solve takes a Problem(equations, domain, conditions). Got {shorten(problem)} instead.")
    tolerance = check_number("tol", tol, "solve", minimum=0, exclusive=True)
    limit = check_number("budget", budget, "solve", minimum=0, exclusive=True)
    until = None if deadline is None else check_number("deadline", deadline, "solve", minimum=0, exclusive=True)
    space = None if memory is None else check_bytes("memory", memory, "solve")
    first = check_integer("seed", seed, "solve")
    wishes = (method, points, device, cluster, start, continuation, time, goal, relative)
    wanted = _Wishes(problem, assume_well_posed, uncertainty, *wishes).checked()
    guard = Guard(until, space, free=available_memory, owner=problem)
    try:
        with reporter(progress, tolerance=tolerance) as report, guarded(guard):
            # Work that is planned ahead is to fit into the deadline, too.
            shared = Budget(limit if until is None else min(limit, until), until)
            solution = wanted.solved(tolerance, shared, first, report)
            record = solution.diagnostics
            seconds = {"total": shared.elapsed} if "total" in record.seconds else record.seconds
            known = replace(record, operations=shared.operations, seconds=seconds, tolerance=tolerance)
            return replace(solution, diagnostics=known)
    except (DeadlineError, ResourceError, KeyboardInterrupt) as error:
        if guard.kept is None:
            raise
        words = str(error) if isinstance(error, ResourceError) else in_words(error)
        kept = cast(Solution, guard.kept(guard.words or words))
        return replace(kept, diagnostics=replace(kept.diagnostics, tolerance=tolerance))


@dataclass(frozen=True, eq=False)
class _Wishes:
    """A problem with all that a solve of it was asked for, except how accurate and how long."""

    problem: Problem
    assume_well_posed: bool
    uncertainty: bool
    method: Method | Cells | None
    points: Points | None
    device: Any
    cluster: Any
    start: Any
    continuation: Sequence[Problem]
    time: str | None
    goal: Any
    relative: str

    def checked(self) -> _Wishes:
        """Refuse arguments that are wrong or do not go together; return them with the device to use."""
        for name in ("assume_well_posed", "uncertainty"):
            if not isinstance(value := getattr(self, name), bool):
                raise InputError(
                    f"The '{name}' parameter of solve must be True or False. Got {shorten(value)} instead."
                )
        method, points, time = self.method, self.points, self.time
        if self.relative != "domain":
            _check_local(self.relative, self.problem, self.goal)
        guessed = self.start is not None or bool(self.continuation)
        if isinstance(method, Cells):
            _check_without(_CELLS, points=points, time=None if time == "space-time" else time)
            if not suits_cells(self.problem):
                raise InputError(
                    "The 'method' parameter of solve is Cells, which take one to three coordinates, time included, a "
                    "domain with an inside, and no averages over regions. Leave it out, or use PIBLS()."
                )
        elif method is not None or points is not None:
            _check_method(method, points, guessed)
        if time is not None:
            _check_way(time, self.problem, guessed, points is not None or not isinstance(method, Cells | None))
        if self.cluster is not None:
            _check_cluster(self.cluster, self.device)
        device = _checked_device(self.device, time, method, is_free=points is None)
        if self.problem.parameters:
            refuse_open(self.problem.parameters, "solve")
        return replace(self, device=device)

    def solved(self, tol: float, budget: Budget, seed: int, report: Callable[[Progress], None]) -> Solution:
        """Solve for unknowns, by hand, or by the way that suits the problem."""
        if found := [symbol for symbol in self.problem.parameters if isinstance(symbol, Eigenvalue)]:
            raise InputError(
                f"The problem has the eigenvalue {found[0]}; find it with pibls.eigen(problem) or `pibls eigen`."
            )
        if self.uncertainty or self.problem.parameters or self.problem.unknown_functions:
            return self._solved_for_unknowns(tol, budget, seed, report)
        if isinstance(self.method, Cells) or (self.method is None and self.points is None):
            return self._solved_by_choice(tol, budget, seed, report)
        wished = None if self.relative == "domain" else self.relative
        _check_without(_BY_HAND, goal=self.goal, relative=wished, cluster=self.cluster)
        return solve_as_told(self.problem, tol, self.method, self.points, seed, self.device, budget, report)

    def _solved_for_unknowns(
        self, tol: float, budget: Budget, seed: int, report: Callable[[Progress], None]
    ) -> Solution:
        others = {"start": self.start, "continuation": self.continuation or None, "time": self.time, "goal": self.goal}
        others["relative"] = None if self.relative == "domain" else self.relative
        device = None if isinstance(self.device, Spare) else self.device
        given = {"method": self.method, "points": self.points, "device": device, "cluster": self.cluster}
        _check_without(_INVERSE, **given, **others)
        from pibls.inverse import solve_inverse  # most solves do without it, and it takes long to import

        return solve_inverse(
            self.problem, tol, budget, seed, lambda *facts: report(Progress(*facts)), uncertainty=self.uncertainty
        )

    def _solved_by_choice(self, tol: float, budget: Budget, seed: int, report: Callable[[Progress], None]) -> Solution:
        nodes = self.method if isinstance(self.method, Cells) else None
        wishes = (self.start, self.continuation, self.device, self.assume_well_posed, nodes, self.cluster)
        way = self.time if nodes is None else "space-time"
        strategy = Strategy(self.problem, tol, budget, seed, report, *wishes)
        if self.relative == "local":
            return solve_locally(tol, lambda accuracy: replace(strategy, tol=accuracy).run(way))
        if self.goal is None:
            return strategy.run(way)
        wanted = asked(self.goal, "goal", "solve")
        return solve_for(wanted, tol, lambda accuracy: replace(strategy, tol=accuracy).run(way))


def _check_without(reason: str, **given: object) -> None:
    """Refuse the first of some arguments that is given, for a reason."""
    if names := [name for name, value in given.items() if value is not None]:
        raise InputError(f"The '{names[0]}' parameter of solve does not go with {reason}")


def _check_local(relative: str, problem: Problem, goal: object) -> None:
    """Refuse errors relative to local sizes where there are too many boxes, or a quantity to know instead."""
    check_choice("relative", relative, "solve", ("domain", "local"))
    if goal is not None:
        raise InputError("The 'relative' parameter of solve does not go with a goal, whose own error counts.")
    if (count := len(problem.domain.coordinates)) > 3:
        raise InputError(
            "The 'relative' parameter of solve is 'local', which takes one to three coordinates, time included. The "
            f"problem has {count}. Leave it out, and ask solution.error_field."
        )


def _check_method(method: object, points: object, guessed: bool) -> None:
    if not isinstance(points, Points | None):
        remedy = "Make them with Points.sample(problem, interior=...), or leave it out."
        raise refusal("points", "solve", "be Points", points, remedy)
    if method is not None and (isinstance(method, type) or not callable(getattr(method, "fit", None))):
        raise refusal(
            "method", "solve", "be a method such as PIBLS() or Cells()", method, "Leave it out to have one chosen."
        )
    if guessed:
        raise InputError(
            "The 'start' and 'continuation' parameters of solve go with nodes and points that it chooses itself. Leave "
            "out 'method' and 'points', or leave out these."
        )


def _checked_device(device: Any, time: str | None, method: object, *, is_free: bool) -> Any:
    """Return the device to use, or refuse one that is not there; a method of the user's may have its own."""
    if device == "auto":
        found = None if time == "lines" else found_device()
        return found if found is None or not (is_free and isinstance(method, Cells | None)) else Spare(found)
    wanted = method.device if device is None and isinstance(method, Cells) else device
    if wanted is None:
        return None
    if time == "lines":
        raise InputError(
            f"The 'device' parameter of solve is {shorten(wanted)}, and time='lines' runs on NumPy. Leave out one of "
            "them."
        )
    if method is None or isinstance(method, Cells):
        placing(wanted)(0.0)
    return wanted


def _check_cluster(cluster: object, device: object) -> None:
    """Refuse anything but a cluster, and a device beside one."""
    if not is_dask(cluster):
        raise refusal("cluster", "solve", "be a Client of Dask, such as distributed.Client('tcp://host:8786')", cluster)
    if device is not None:
        raise InputError("The 'cluster' parameter of solve does not go with a device. Leave one of them out.")


def _check_way(time: str, problem: Problem, guessed: bool, told: bool) -> None:
    """Refuse a way through time that cannot be taken, with the other arguments as they are."""
    check_choice("time", time, "solve", WAYS)
    if problem.domain.time is None:
        raise InputError(
            f"The 'time' parameter of solve is {time!r}, but this problem cannot be solved with time={time!r}: the "
            "domain has no time. Multiply it by TimeInterval(t, t0, t1), or leave 'time' out."
        )
    if time != "space-time" and (guessed or told):
        raise InputError(
            f"The 'time' parameter of solve is {time!r}, which chooses nodes, points and starts itself. Leave out "
            "'method', 'points', 'start' and 'continuation', or use time='space-time'."
        )
