"""Counting: whether there are as many conditions as determine a solution.

Evolution equations whose own highest derivatives in space diffuse, or make waves, need as many initial values as they
have derivatives in time, and half as many conditions on every piece of the boundary as they have derivatives in space.
With fewer there is no solution, or more than one. Of other evolutions nothing is said. On a line without time the
orders of the equations say how many conditions there have to be at its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from pibls.problem import AtPoints, Average, MultiIndex, OnPart, Problem, Statement
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import compile_function
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, POINTS
from pibls.wellposed.boundary_counts import counted, equations_in_words, has, joined, lacking, number, sampled
from pibls.wellposed.principal import conditions_of, subsystems_of

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution


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
            own_equations = [e for e in analysis_of(problem).equations if set(names) <= set(e.form.fields)]
            return too_few(problem, own_equations or analysis_of(problem).equations, place, names, found, enough)
    return ""


def too_few(
    problem: Problem, equations: Sequence[Statement], place: str, names: Sequence[str], found: int, enough: int
) -> str:
    """Say that a place has too few conditions.

    >>> from pibls.problems import poisson
    >>> problem = poisson()
    >>> equations = analysis_of(problem).equations
    >>> print(too_few(problem, equations, "left", ["u"], 0, 1)[:50])
    The solution is not unique: left has no condition;
    """
    bare = f", none of {joined(names)}" if found and len(names) < len(problem.fields) else ""
    return (
        f"The solution is not unique: {has(place, found)}{bare}; {equations_in_words(problem, equations)} needs "
        f"{number(enough)} there. Add what is missing, as Dirichlet({names[0]}, ..., on=...)."
    )


def exceeds(evolution: Evolution, needed: dict[str, int]) -> bool:
    """Tell whether somewhere on the boundary more is given than needed: that may make up for a lack elsewhere."""
    given = tuple(s for s in evolution.boundary if isinstance(s.place, OnPart))
    problem, enough = evolution.problem, sum(needed.values())
    return bool(given) and bool((counted(problem, sampled(problem), given) > enough).any())


def surplus(evolution: Evolution, needed: dict[str, int]) -> tuple[Statement, ...]:
    """Return conditions beyond those that determine a solution: it either keeps them by itself, or there is none."""
    if len(needed) > 1 or evolution.pulled or not all(isinstance(s.place, OnPart) for s in evolution.boundary):
        return ()
    ((_, enough),) = needed.items()
    if not enough or not exceeds(evolution, needed):
        return ()
    return _beyond(evolution.problem, evolution.boundary, enough)


def _beyond(problem: Problem, given: Sequence[Statement], enough: int) -> tuple[Statement, ...]:
    """Return conditions without which those on parts are just enough all along the boundary.

    Those of lower order are kept first, and of the same order those that hold on more of the boundary.
    """
    X, kept, parts = sampled(problem), list[Statement](), [s for s in given if isinstance(s.place, OnPart)]
    for statement in sorted(parts, key=lambda s: (s.form.order, -counted(problem, X, [s]).sum())):
        if not (counted(problem, X, [*kept, statement]) > enough).any():
            kept.append(statement)
    if (counted(problem, X, kept) < enough).any():
        return ()
    return tuple(s for s in given if s not in kept)


def surplus_of(problem: Problem) -> tuple[Statement, ...]:
    """Return conditions on one field without which it may be determined, on a line or by an elliptic equation.

    >>> from pibls.geometry import Rectangle
    >>> from pibls.problem import Dirichlet, Mean, Neumann, coordinates, field, laplacian
    >>> x, y = coordinates("x y")
    >>> u, square = field("u", x, y), Rectangle((x, 0, 1), (y, 0, 1))
    >>> conditions = [Neumann(u, 0, on=square.left), Dirichlet(u, 0), Mean(u, 0)]
    >>> [s.name for s in surplus_of(Problem(laplacian(u) - u**3, square, conditions))]
    ['Neumann(dn(u) = 0 on left)', 'Mean(u = 0 on average)']
    """
    given = [s for s in problem.statements if not s.is_equation]
    usual = (s.form.is_linear and s.weight == 1.0 and s.targets is None for s in given)
    if not all(usual) or not all(isinstance(s.place, OnPart | AtPoints | Average) for s in given):
        return ()
    if len(problem.domain.coordinates) == 1:
        return _beyond_on_line(problem, given)
    if len(problem.fields) > 1 or problem.domain.time is not None or len(given) < 2:
        return ()
    enough = [conditions_of(problem, subsystem) for subsystem in subsystems_of(problem)]
    return _beyond(problem, given, enough[0]) if enough and enough[0] else ()


def _beyond_on_line(problem: Problem, given: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return conditions on a line without which there are as many as determine a solution.

    Those inside come before those at the ends, and the last before the first. Least squares put what they contradict
    into an ever smaller cell, where nothing is seen of it.

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> x = coordinates("x")
    >>> u, line = field("u", x), Interval((x, 0, 1))
    >>> conditions = [Dirichlet(u, x), Dirichlet(u.diff(x), 2, on=line.left)]
    >>> [s.name for s in surplus_of(Problem(u.diff(x, 2), line, conditions))]
    ['Dirichlet(u_x = 2 on left)']
    >>> surplus_of(Problem(u.diff(x, 3), line, conditions))
    ()
    """
    beyond, found = sum(map(_count, given)) - int(analysis_of(problem).orders.sum()), list[Statement]()
    for statement in (s for at_end in (False, True) for s in reversed(given) if isinstance(s.place, OnPart) == at_end):
        if _count(statement) <= beyond:
            beyond -= _count(statement)
            found.append(statement)
    return () if beyond else tuple(found)


def _count(statement: Statement) -> int:
    """Return as how many conditions a statement on a line counts."""
    place = statement.place
    if isinstance(place, OnPart):
        return int(place.part.measure)
    return len(place.points) if isinstance(place, AtPoints) else 1
