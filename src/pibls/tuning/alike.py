"""Problems that differ in some of their data alone: in right-hand sides, or in coefficients, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pibls.cells import suits_cells
from pibls.problem import Across, AtPoints, Form, Problem, Statement
from pibls.problem.analysis import analysis_of
from pibls.problem.switches import Switching

__all__ = ["changed_forms", "is_alike", "keeps_factors", "keeps_trees"]


def keeps_factors(problem: Problem, others: Sequence[Problem]) -> bool:
    """Tell whether other problems have the factors of a linear problem on cells: only right-hand sides differ.

    >>> import sympy as sp
    >>> from pibls import Dirichlet, Interval, coordinates, field, parameter
    >>> x, k, q = coordinates("x"), parameter("k"), parameter("q")
    >>> u = field("u", x)
    >>> bar = Problem(sp.Eq(-k * u.diff(x, 2), q), Interval((x, 0, 1)), [Dirichlet(u, 0)])
    >>> first = bar.at(k=1, q=1)
    >>> keeps_factors(first, [bar.at(k=1, q=2)]), keeps_factors(first, [bar.at(k=2, q=1)])
    (True, False)
    """
    return (
        problem.is_linear
        and suits_cells(problem)
        and all(other.domain == problem.domain for other in others)
        and all(len(other.equations) == len(problem.equations) for other in others)
        and all(len(other.statements) == len(problem.statements) for other in others)
        and all(is_alike(*pair) for other in others for pair in zip(problem.statements, other.statements, strict=True))
    )


def keeps_trees(problem: Problem, other: Problem) -> bool:
    """Tell whether trees of cells for a linear problem serve another one: coefficients and right-hand sides may differ.

    >>> import sympy as sp
    >>> from pibls import Dirichlet, Interval, coordinates, field, parameter
    >>> x, k, a = coordinates("x"), parameter("k"), parameter("a")
    >>> u = field("u", x)
    >>> bar = Problem(sp.Eq(-k * u.diff(x, 2), sp.Abs(x - a)), Interval((x, 0, 1)), [Dirichlet(u, 0)])
    >>> first = bar.at(k=1, a=sp.Rational(1, 2))
    >>> keeps_trees(first, bar.at(k=2, a=sp.Rational(1, 2))), keeps_trees(first, bar.at(k=1, a=sp.Rational(1, 3)))
    (True, False)
    """
    one, two = analysis_of(problem), analysis_of(other)
    return (
        other.is_linear
        and not other.parameters
        and other.domain == problem.domain
        and len(other.equations) == len(problem.equations)
        and len(other.statements) == len(problem.statements)
        and all(_in_one_place(*pair) for pair in zip(problem.statements, other.statements, strict=True))
        and one.carried == two.carried
        and _switches(one.switching) == _switches(two.switching)
        and np.array_equal(one.orders, two.orders)
    )


def _switches(switching: Switching | None) -> tuple[object, ...]:
    """Return where data switch, as values that can be compared."""
    return () if switching is None else (switching.planes.tobytes(), switching.edges, switching.walls, switching.jumps)


def changed_forms(old: Problem, new: Problem) -> dict[int, Form]:
    """Return the forms of a problem whose sources are new, by the forms that they replace."""
    pairs = zip(old.statements, new.statements, strict=True)
    forms = (both for one, two in pairs for both in zip(one.forms, two.forms, strict=True))
    return {id(one): two for one, two in forms if one.source != two.source}


def is_alike(one: Statement, two: Statement) -> bool:
    """Tell whether two statements differ in their sources alone."""
    same = all(
        [(t.field, t.multi_index, t.coefficient) for t in old.terms]
        == [(t.field, t.multi_index, t.coefficient) for t in new.terms]
        for old, new in zip(one.forms, two.forms, strict=True)
    )
    return same and _in_one_place(one, two)


def _in_one_place(one: Statement, two: Statement) -> bool:
    """Tell whether two statements hold in the same place."""
    there, here = one.place, two.place
    if isinstance(there, AtPoints) and isinstance(here, AtPoints):
        arrays = ((there.points, here.points), (one.targets, two.targets))
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in arrays)
    if isinstance(there, Across) and isinstance(here, Across):
        return bool(there.condition == here.condition)
    return bool(there == here)
