"""The places of conditions, as pictures of a domain show them."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pibls.checks import FloatArray
    from pibls.problem import Problem


_SIGNS = string.digits[1:] + string.ascii_letters
_POINTS = {1: 2, 2: 1500, 3: 600}


@dataclass(frozen=True, eq=False)
class Mark:
    """A place, and all conditions that hold there."""

    sign: str  # the character that stands for it
    conditions: tuple[str, ...]  # the conditions in words
    # points of the place in the coordinates that are shown; None for what has no place there, such as an average
    points: FloatArray | None


def shown_axes(problem: Problem) -> tuple[int, ...]:
    """Return the coordinates that a picture shows: those of space, and time beside one of space; none beyond three.

    >>> from pibls import problems
    >>> shown_axes(problems.heat_2d()), shown_axes(problems.wave()), shown_axes(problems.poisson_6d())
    ((0, 1), (0, 1), ())
    """
    domain = problem.domain
    space, count = len(domain.space), len(domain.coordinates)
    shown = count if space < 2 else space
    return tuple(range(shown)) if shown <= 3 else ()


def marks(problem: Problem) -> list[Mark]:
    """Return where conditions hold: the places where the same ones do, with points of them, and those without place."""
    import numpy as np

    axes, count = shown_axes(problem), len(problem.equations)
    words = [repr(condition) for condition in problem.conditions]
    # A periodic condition makes a statement per derivative, all in one place.
    places = list({statement.source: statement.place for statement in problem.statements[count:]}.values())
    samples = [_sample(problem, place, axes) for place in places]
    located = [i for i, points in enumerate(samples) if points is not None]
    found = []
    if located:
        X = np.concatenate([points for points in samples if points is not None])
        holds = np.stack([_holds(places[i], X, samples[i]) for i in located], axis=1)
        groups, first, which = np.unique(holds, axis=0, return_index=True, return_inverse=True)
        for group in np.argsort(first):
            conditions = tuple(words[i] for i, here in zip(located, groups[group], strict=True) if here)
            found.append((conditions, X[which.ravel() == group][:, list(axes)]))
    found += [((text,), None) for i, text in enumerate(words) if i not in located]
    return [Mark(_SIGNS[i % len(_SIGNS)], *entry) for i, entry in enumerate(found)]


def _sample(problem: Problem, place: Any, axes: tuple[int, ...]) -> FloatArray | None:
    """Return points of the place of a condition, if it has one in the picture."""
    import numpy as np

    from pibls.problem import AtPoints, Averages, OnPart, Opposite

    if not axes:
        return None
    if isinstance(place, AtPoints | Averages):
        return np.asarray(place.points)
    if isinstance(place, Opposite):
        return np.concatenate([_of_part(place.low, axes), _of_part(place.high, axes)])
    if isinstance(place, OnPart) and not _fills(problem, place.part, axes):
        return _of_part(place.part, axes)
    return None


def _holds(place: Any, X: FloatArray, own: Any) -> Any:
    """Tell at which points a condition holds; its own are among them, whatever rounding does."""
    import numpy as np

    from pibls.problem import AtPoints, Averages, Opposite

    known = {tuple(point) for point in own.tolist()}
    mine = np.array([tuple(point) in known for point in X.tolist()])
    if isinstance(place, AtPoints | Averages):
        return mine
    if isinstance(place, Opposite):
        return mine | place.low.contains(X) | place.high.contains(X)
    return mine | place.part.contains(X)


def _of_part(part: Any, axes: tuple[int, ...]) -> FloatArray:
    import numpy as np

    return np.asarray(part.sample(_POINTS[len(axes)], "kronecker", 0).points)


def _fills(problem: Problem, part: Any, axes: tuple[int, ...]) -> bool:
    """Tell whether a part is the whole of space at one time, and time is not shown."""
    domain: Any = problem.domain
    return len(axes) < len(domain.coordinates) and part in (domain.initial, domain.final)


def open_boundary(problem: Problem) -> FloatArray | None:
    """Return points of the boundary and of the first time, to see where no condition holds."""
    import numpy as np

    axes = shown_axes(problem)
    parts = [problem.domain.boundary, problem.domain.initial]
    known = [part for part in parts if part is not None and not part.empty and not _fills(problem, part, axes)]
    return np.concatenate([_of_part(part, axes) for part in known])[:, list(axes)] if known and axes else None
