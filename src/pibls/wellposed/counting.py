"""Counting: whether there are as many conditions as determine a solution.

Evolution equations whose own highest derivatives in space diffuse, or make waves, need as many initial values as they
have derivatives in time, and half as many conditions on every piece of the boundary as they have derivatives in space.
With fewer there is no solution, or more than one. Of other evolutions nothing is said. On a line without time the
orders of the equations say how many conditions there have to be at its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.geometry import Interval, TimeInterval
from pibls.problem import Across, AtPoints, MultiIndex, OnPart, Opposite, Problem, Statement
from pibls.problem.evaluate import compile_function
from pibls.problem.printing import text
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, POINTS, SLIGHT
from pibls.wellposed.principal import Subsystem, conditions_of, subsystems_of

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
# All of them are smooth wherever their arguments are.
_SMOOTH = (sp.Add, sp.Mul, sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh, sp.tanh, sp.atan, sp.erf)


def conditions_needed(evolution: Evolution) -> dict[str, int] | None:
    """Return how many conditions each field needs on the boundary; None where that is not plain."""
    nowhere = evolution.space is not None and evolution.problem.domain.boundary.empty
    if evolution.mass or evolution.multipliers or nowhere:
        return None
    needed = {}
    for name, slopes in evolution.slopes.items():
        own = {slot.multi_index: slope for slot, slope in slopes.items() if slot.state == (name, 0)}
        order, times = max(map(sum, own), default=0), evolution.orders[name]
        half = order // 2
        if not all(map(_is_smooth, slopes.values())):
            return None
        tops = {index: slope for index, slope in own.items() if sum(index) == order}
        if order and not (times <= 2 and order % 2 == 0 and _diffuses(evolution, tops)):
            return None
        # Waves bear less beside their highest derivatives than what diffuses.
        most = half if times > 1 else max(order - 1, 0)
        for slot in slopes:
            height = sum(slot.multi_index)
            highest = slot.state == (name, 0) and height == order
            if height > (most if slot.state[1] == 0 else 0) and not highest:
                return None
        needed[name] = half
    return needed


def _is_smooth(expression: sp.Expr) -> bool:
    """Tell whether an expression is smooth everywhere: at the axis of a disk, say, no condition is needed."""
    if isinstance(expression, sp.Symbol) or expression.is_number:
        return True
    power = isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp > 0
    return (power or isinstance(expression, _SMOOTH)) and all(_is_smooth(inner) for inner in expression.args)


def _diffuses(evolution: Evolution, tops: dict[MultiIndex, sp.Expr]) -> bool:
    """Tell whether derivatives of the highest order damp every wave, at all places and states that are looked at."""
    problem, rng = evolution.problem, np.random.default_rng(0)
    X = np.concatenate([problem.domain.sample(POINTS // 10, "kronecker", 1), sampled(problem)])
    order, axes = sum(next(iter(tops))), len(X.T) - 1
    directions = rng.normal(size=(POINTS, axes))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    slots, fixed = evolution.slots, all(slope.is_number for slope in tops.values())
    symbols = tuple(slot.symbol for slot in slots)
    used = {slot for slot in slots for slope in tops.values() if slot.symbol in slope.free_symbols}
    begun = np.column_stack([X[:, :-1], np.full(len(X), evolution.limits[0])])
    if not fixed and (first := evolution.first_state(begun, used)) is not None:
        X, states = begun, [[first.get(slot, np.zeros(len(X))) for slot in slots]]
    else:
        sizes = (0.0,) if fixed else (0.0, NEGLIGIBLE, 1.0, 1.0 / NEGLIGIBLE)
        states = [list(size * rng.normal(size=(len(symbols), len(X)))) for size in sizes]
    for values in states:
        symbol = np.zeros((len(X), POINTS))
        for index, slope in tops.items():
            factors = compile_function(slope, problem.domain.coordinates, symbols)(X, None, values)
            symbol += factors[:, None] * np.prod(directions ** np.array(index), axis=1)
        damping, sizes = (-1.0) ** (order // 2 + 1) * symbol.T, np.abs(symbol).max(axis=1)
        if not (damping > PLAIN * sizes).all() or sizes.min() <= PLAIN * np.median(sizes):
            return False
    return True


def what_lacks(evolution: Evolution, needed: dict[str, int]) -> str:
    """Say which field has too few conditions on the boundary, and where, as a sentence; an empty text if none."""
    if not any(needed.values()):
        return ""
    problem = evolution.problem
    own = {name: tuple(s for s in evolution.boundary if name in s.form.fields) for name in needed}
    counts = [([name], k, own[name]) for name, k in needed.items()]
    for names, enough, given in [*counts, (list(needed), sum(needed.values()), evolution.boundary)]:
        place, found = lacking(problem, given, enough)
        if place:
            own_equations = [e for e in problem.laws.statements if set(names) <= set(e.form.fields)]
            return too_few(problem, own_equations or problem.laws.statements, place, names, found, enough)
    return ""


def too_few(
    problem: Problem, equations: Sequence[Statement], place: str, names: Sequence[str], found: int, enough: int
) -> str:
    """Say that a place has too few conditions."""
    bare = f", none of {joined(names)}" if found and len(names) < len(problem.fields) else ""
    return (
        f"The solution is not unique: {has(place, found)}{bare}; {equations_in_words(problem, equations)} needs "
        f"{number(enough)} there. Add what is missing, such as Dirichlet({names[0]}, ..., on=...)."
    )


def exceeds(evolution: Evolution, needed: dict[str, int]) -> bool:
    """Tell whether somewhere on the boundary more is given than needed: that may make up for a lack elsewhere."""
    given = tuple(s for s in evolution.boundary if isinstance(s.place, OnPart))
    problem, enough = evolution.problem, sum(needed.values())
    return bool(given) and bool((counted(problem, sampled(problem), given) > enough).any())


def bare_parts(problem: Problem) -> str:
    """Say where an elliptic problem, or one on a line, has too few conditions; an empty text if nowhere."""
    found = (_bare(problem, subsystem) for subsystem in subsystems_of(problem))
    return next(filter(None, found), "")


def _bare(problem: Problem, subsystem: Subsystem) -> str:
    """Say where a subsystem has too few conditions."""
    given = [s for s in problem.statements if not s.is_equation and set(subsystem.fields) & set(s.form.fields)]
    if len(problem.domain.coordinates) == 1:
        return _bare_line(problem, subsystem, given)
    needed = subsystem.degree // 2
    place, found = lacking(problem, given, needed) if needed and not problem.domain.boundary.empty else ("", 0)
    if not place or conditions_of(problem, subsystem) is None:
        return ""
    many, count = exceeding(problem, given, needed)
    if many:
        return (
            f"The solution is unstable: {has(place, found)}, and {has(many, count)}; "
            f"{equations_in_words(problem, subsystem.equations)} needs {number(needed)} on every part of the boundary. "
            "Extra conditions in one place do not make up for missing ones in another. Move them."
        )
    bare = [
        name for name in subsystem.fields if not lacking(problem, [s for s in given if name in s.form.fields], 1)[0]
    ]
    names = [name for name in subsystem.fields if name not in bare] or list(subsystem.fields)
    return too_few(problem, subsystem.equations, place, names, found, needed)


def _bare_line(problem: Problem, subsystem: Subsystem, given: list[Statement]) -> str:
    """Say how many conditions there are on a line, and where, if they are too few."""
    line: Any = problem.domain
    uncountable = any(isinstance(s.place, Across) or not s.form.is_linear for s in given)
    if uncountable or not isinstance(line, Interval | TimeInterval):
        return ""
    ends = [s.place.part for s in given if isinstance(s.place, OnPart)]
    points = [len(s.place.points) for s in given if isinstance(s.place, AtPoints)]
    others = sum(points) + len(given) - len(ends) - len(points)
    counts = {n: sum(bool(own.contains(part.sample(1).points)) for own in ends) for n, part in named(problem).items()}
    total, needed = sum(counts.values()) + others, subsystem.degree
    if total >= needed or conditions_of(problem, subsystem) is None:
        return ""
    told = [f"{number(count) if count else 'none'} on {name}" for name, count in counts.items()]
    places = "" if others else f", {joined(told)}"
    have = f"{joined(subsystem.fields)} {'have' if len(subsystem.fields) > 1 else 'has'} {conditions(total)}{places}"
    return (
        f"The solution is not unique: {have}; {equations_in_words(problem, subsystem.equations)} needs "
        f"{number(needed)} in all. Add what is missing, such as Dirichlet({subsystem.fields[0]}, ..., on=...)."
    )


def number(count: int) -> str:
    """Return a small number as a word."""
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def conditions(count: int) -> str:
    """Return so many conditions in words."""
    return f"{number(count)} condition{'s' * (count > 1)}"


def has(place: str, count: int) -> str:
    """Say how many conditions a place has.

    >>> has("left", 0), has(joined(["left", "bottom", "top"]), 2)
    ('left has no condition', 'left, bottom and top have two conditions each')
    """
    several = " and " in place
    return f"{place} {'have' if several else 'has'} {conditions(count)}{' each' * (several and count > 0)}"


def joined(names: Sequence[str]) -> str:
    """Return names as people list them."""
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

    def piece(first: int) -> str:
        place = ", ".join(f"{s.name}={v:.2g}" for s, v in zip(problem.domain.space, X[first], strict=False))
        where = next((f"a piece of {name}" for name, own in parts.items() if own[first]), "a piece of the boundary")
        return f"{where} (near {place})"

    if whole:
        fewest = int(min(found[parts[name]].min() for name in whole))
        names = [name for name in whole if found[parts[name]].min() == fewest]
        # Pieces without a name, such as the edge of a hole.
        others = np.flatnonzero((found == fewest) & ~np.any(list(parts.values()), axis=0))
        names += [piece(int(first)) for first in others[:1]]
        return "the boundary" if (found == fewest).all() else joined(names), fewest
    if bare.mean() <= SLIGHT:
        return "", 0
    first = int(np.flatnonzero(bare)[0])
    return piece(first), int(found[first])


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
