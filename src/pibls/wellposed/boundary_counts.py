"""How many conditions hold on each part of a boundary, and in words which parts have too few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.problem import AtPoints, OnPart, Opposite, Problem, Statement
from pibls.problem.printing import text
from pibls.refinement.standards import POINTS, SLIGHT

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def number(count: int) -> str:
    """Return a small number as a word.

    >>> number(0), number(2), number(12)
    ('no', 'two', '12')
    """
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def conditions(count: int) -> str:
    """Return so many conditions in words.

    >>> conditions(0), conditions(2)
    ('no condition', 'two conditions')
    """
    return f"{number(count)} condition{'s' * (count > 1)}"


def has(place: str, count: int) -> str:
    """Say how many conditions a place has.

    >>> has("left", 0), has("left and top", 2)
    ('left has no condition', 'left and top have two conditions each')
    """
    several = " and " in place
    return f"{place} {'have' if several else 'has'} {conditions(count)}{' each' * (several and count > 0)}"


def joined(names: Sequence[str]) -> str:
    """Return names as people list them.

    >>> joined(["left", "right", "top"])
    'left, right and top'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def equations_in_words(problem: Problem, equations: Sequence[Statement]) -> str:
    """Return one equation as it was written; several are only told of."""
    if len(equations) > 1:
        return "the system"
    given = problem.equations[equations[0].source]
    written = text(given) if isinstance(given, sp.Eq) else f"{text(given)} = 0"
    return written if len(written) < 60 else "the equation"


def counted(problem: Problem, X: FloatArray, statements: Sequence[Statement]) -> FloatArray:
    """Return how many conditions hold at points of the boundary; those that may count as several are infinitely many.

    Such are conditions that are not linear, as u² + v² = 0, and periodic ones.
    """
    found = np.zeros(len(X))
    for statement in statements:
        place = statement.place
        if isinstance(place, OnPart):
            found += np.where(place.part.contains(X), 1.0 if statement.form.is_linear else np.inf, 0.0)
        elif isinstance(place, Opposite):
            found += np.where(place.low.contains(X) | place.high.contains(X), np.inf, 0.0)
        elif isinstance(place, AtPoints) and problem.domain.boundary.contains(place.points).sum() > X.shape[1]:
            found += np.inf  # a boundary may be told point by point
    return found


def lacking(problem: Problem, statements: Sequence[Statement], needed: int) -> tuple[str, int]:
    """Return which parts of the boundary have too few conditions, in words, and how many; an empty text if none."""
    X = sampled(problem)
    found = counted(problem, X, statements)
    bare = found < needed
    parts = {name: part.contains(X) for name, part in named(problem).items()}
    whole = [name for name, own in parts.items() if own.any() and bare[own].all()]
    if whole:
        fewest = int(min(found[parts[name]].min() for name in whole))
        names = [name for name in whole if found[parts[name]].min() == fewest]
        return "the boundary" if (found == fewest).all() else joined(names), fewest
    if bare.mean() <= SLIGHT:
        return "", 0
    first = int(np.flatnonzero(bare)[0])
    place = ", ".join(f"{s.name}={v:.2g}" for s, v in zip(problem.domain.space, X[first], strict=False))
    where = next((f"a piece of {name}" for name, own in parts.items() if own[first]), "a piece of the boundary")
    return f"{where} (near {place})", int(found[first])


def exceeding(problem: Problem, statements: Sequence[Statement], needed: int) -> tuple[str, int]:
    """Return which parts of the boundary have too many conditions, in words, and how many; an empty text if none."""
    X = sampled(problem)
    found = counted(problem, X, statements)
    many = np.isfinite(found) & (found > needed)
    if many.mean() <= SLIGHT:
        return "", 0
    parts = [name for name, part in named(problem).items() if (own := part.contains(X)).any() and many[own].all()]
    return joined(parts) if parts else "a piece of the boundary", int(found[many].max())


def sampled(problem: Problem) -> FloatArray:
    """Return points all over the boundary, some on every piece of it."""
    boundary: Any = problem.domain.boundary
    return np.asarray(boundary.sample(max(POINTS, 3 * len(boundary.patches)), "kronecker", 1).points)


def named(problem: Problem) -> dict[str, Any]:
    """Return the parts of the boundary by name; of several names of one part the first."""
    parts, found = problem.domain.parts, dict[Any, str]()
    for name, part in parts.items():
        found.setdefault(part.patches, name)
    return {name: parts[name] for name in found.values()}
