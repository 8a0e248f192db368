"""Which conditions sit where: what the pictures of a domain show."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pibls.checks import FloatArray
    from pibls.problem import Problem, Statement

__all__ = ["Mark", "marks", "open_boundary", "shown_axes"]

_SIGNS = string.digits[1:] + string.ascii_letters
_POINTS = {1: 2, 2: 1500, 3: 600}


@dataclass(frozen=True, eq=False)
class Mark:
    """Conditions that hold at the same place.

    Attributes
    ----------
    sign
        The character that stands for them.
    conditions
        The conditions in words.
    points
        Points of the place in the coordinates that are shown; None for what has no place there, such as an average.
    """

    sign: str
    conditions: tuple[str, ...]
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
    """Return the conditions of a problem, those at the same place together, with points of it."""
    places: dict[object, tuple[Statement, list[str]]] = {}
    count = len(problem.equations)
    for statement in problem.statements[count:]:
        key = statement.place if _is_shared(statement.place) else id(statement.place)
        words = repr(problem.conditions[statement.source - count])
        _, known = places.setdefault(key, (statement, []))
        if words not in known:
            known.append(words)
    axes = shown_axes(problem)
    found = []
    for i, (statement, known) in enumerate(places.values()):
        found.append(Mark(_SIGNS[i % len(_SIGNS)], tuple(known), _points(problem, statement.place, axes)))
    return found


def _is_shared(place: Any) -> bool:
    from pibls.problem import OnPart, Opposite

    return isinstance(place, OnPart | Opposite)


def _points(problem: Problem, place: Any, axes: tuple[int, ...]) -> FloatArray | None:
    import numpy as np

    from pibls.problem import AtPoints, OnPart, Opposite

    if not axes:
        return None
    if isinstance(place, AtPoints):
        return np.asarray(place.points[:, list(axes)])
    if isinstance(place, Opposite):
        return np.concatenate([_of_part(place.low, axes), _of_part(place.high, axes)])
    if isinstance(place, OnPart) and not _fills(problem, place.part, axes):
        return _of_part(place.part, axes)
    return None


def _of_part(part: Any, axes: tuple[int, ...]) -> FloatArray:
    import numpy as np

    return np.asarray(part.sample(_POINTS[len(axes)], "kronecker", 0).points[:, list(axes)])


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
    return np.concatenate([_of_part(part, axes) for part in known]) if known and axes else None
