"""One point of many: its problem is made, found among those kept or solved, and its numbers are taken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pibls.checks import cut, refusal
from pibls.errors import InputError, PiblsError
from pibls.problem import Problem
from pibls.runtime import one_core
from pibls.solution import Solution
from pibls.sweeps.kept import file_of, kept
from pibls.sweeps.workers import Workers
from pibls.tuning import solve


@dataclass(frozen=True)
class Point:
    """Values of parameters, and options of the solve that differ from point to point."""

    index: tuple[int, ...]
    name: str  # in words
    values: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    problem: Problem | None = None  # made before, where the function that makes it cannot go to a worker


@dataclass(frozen=True, eq=False)
class Solving:
    """The work at every point."""

    make: Callable[..., Problem]  # makes the problem for values by name
    options: Mapping[str, Any]  # of all solves
    folder: Path | None  # where solutions are kept, if anywhere
    taken: Callable[[Solution], Any]  # returns the numbers of a solution that are wanted

    def __call__(self, point: Point) -> Any:
        """Return the numbers at a point, or the reason why there are none."""
        return _tried(lambda: self.taken(self.solution(point)))

    def solution(self, point: Point) -> Solution:
        """Return the solution at a point: the one that is kept, or a new one, which is kept then."""
        problem = self.made(point)
        options = {**self.options, **point.options}
        told = {**point.values, **point.options}
        path = None if self.folder is None else file_of(self.folder, problem, told, options)
        found = None if path is None else kept(path, problem)
        if found is None:
            # One thread everywhere: the same bits, whatever the number of processes.
            with one_core(), _interrupts() as seen:
                found = solve(problem, progress=False, **options)
            if seen:
                raise KeyboardInterrupt
            if path is not None:
                found.save(path)
        return found

    def made(self, point: Point) -> Problem:
        """Return the problem at a point."""
        problem = self.make(**point.values) if point.problem is None else point.problem
        if not isinstance(problem, Problem):
            raise refusal("problem", "sweep", "be a Problem, or a function that returns one", problem)
        return problem

    def outcomes(self, points: Iterable[Point], workers: Workers) -> Iterator[tuple[Point, Any]]:
        """Yield every point as it is finished, and its numbers, or the reason why there are none.

        As much of the work goes to the workers as they can take. What cannot go there is done here.
        """
        if not workers.takes(self):
            yield from workers.outcomes(self, points)
            return
        away, failed = replace(self, taken=_whole), list[tuple[Point, str]]()
        if workers.takes(away):
            away, points = replace(away, make=Problem), self._prepared(points, workers, failed)
        for point, found in workers.outcomes(away, points):
            yield point, found if isinstance(found, str) else _tried(self.taken, found)
        yield from failed

    def _prepared(self, points: Iterable[Point], workers: Workers, failed: list[tuple[Point, str]]) -> Iterator[Point]:
        """Yield points with their problems; those without one are put on a list."""
        for point in points:
            try:
                problem = self.made(point)
            except Exception as error:  # of a function of the user, or values that make no problem
                failed.append((point, in_words(error)))
                continue
            if why := workers.takes(problem):
                raise InputError(
                    f"The problem cannot go to another process ({why}). Define its functions at the top of a module, "
                    "or use executor=1."
                )
            yield replace(point, problem=problem)


def _tried(work: Callable[..., Any], *given: Any) -> Any:
    """Return the result of some work, or the reason why it failed, which costs its own point and nothing else."""
    try:
        return work(*given)
    except Exception as error:
        return in_words(error)


def in_words(error: Exception) -> str:
    """Return an error as a sentence."""
    return str(error) if isinstance(error, PiblsError) else f"{type(error).__name__}: {cut(str(error), 300)}"


def _whole(solution: Solution) -> Solution:
    return solution


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Yield a list of the signals that come: a solve returns the best solution so far then, and that is not kept."""
    seen: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: old for number, old in before.items() if callable(old)}
    if threading.current_thread() is not threading.main_thread():
        ours = {}

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        ours[signal.Signals(number)](number, frame)

    for number in ours:
        signal.signal(number, note)
    try:
        yield seen
    finally:
        for number, old in ours.items():
            signal.signal(number, old)
