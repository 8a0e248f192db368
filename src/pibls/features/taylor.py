"""Derivatives of composed functions: how a multi-index splits when φ(y(x)) is differentiated.

The chain rule of every order (Faà di Bruno) in several variables reads

    ∂^α φ(y(x)) = Σ coefficient · φ⁽ᵏ⁾(y) · ∂^β₁ y ⋯ ∂^βₖ y

over the ways to write α = β₁ + … + βₖ with non-zero parts, whatever their order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product

from pibls.errors import FeatureError
from pibls.features.arrays import Array, MultiIndex

_MOST_TERMS = 5000


def _raise(index: MultiIndex, axis: int, by: int = 1) -> MultiIndex:
    return (*index[:axis], index[axis] + by, *index[axis + 1 :])


@cache
def partitions(alpha: MultiIndex) -> tuple[tuple[int, tuple[MultiIndex, ...]], ...]:
    """Return every way to split a multi-index into non-zero parts, each after its coefficient in the chain rule.

    They are sorted by the number of parts k, which is also the order of the derivative of φ: (φ∘y)'' = φ'(y) y'' +
    φ''(y) y'².

    >>> partitions((2,))
    ((1, ((2,),)), (1, ((1,), (1,))))
    """
    if not any(alpha):
        return ((1, ()),)
    axis = next(i for i, a in enumerate(alpha) if a)
    unit = _raise((0,) * len(alpha), axis)
    found: Counter[tuple[MultiIndex, ...]] = Counter()
    # One more derivative along the axis hits φ⁽ᵏ⁾, which brings a new factor, or one of the factors.
    for coefficient, parts in partitions(_raise(alpha, axis, -1)):
        found[tuple(sorted((unit, *parts)))] += coefficient
        for i, part in enumerate(parts):
            found[tuple(sorted((*parts[:i], _raise(part, axis), *parts[i + 1 :])))] += coefficient
    if len(found) > _MOST_TERMS:
        raise FeatureError(
            f"A derivative of order {sum(alpha)} of enhancement nodes has over {_MOST_TERMS} terms, and the equation "
            "needs it. Use feature nodes only (enhancement_groups=0), or a system of lower order."
        )
    return tuple((found[parts], parts) for parts in sorted(found, key=lambda parts: (len(parts), parts)))


def composed(alpha: MultiIndex, slopes: Mapping[int, Array], y: Mapping[MultiIndex, Array], fewest: int = 1) -> Array:
    """Return ∂^α φ(y) from φ⁽ᵏ⁾(y) and the derivatives of y; only the terms with so many factors or more."""
    by_order: dict[int, Array] = {}
    for coefficient, (first, *rest) in partitions(alpha):
        if len(rest) + 1 >= fewest:
            factor = y[first] if coefficient == 1 else coefficient * y[first]
            term = math.prod((y[part] for part in rest), start=factor)
            by_order[len(rest) + 1] = by_order[len(rest) + 1] + term if len(rest) + 1 in by_order else term
    return added([slopes[order] * total for order, total in by_order.items()])


def added(terms: Sequence[Array]) -> Array:
    """Return a sum without touching the terms, which may be shared; that of none is zero."""
    return sum(terms[1:], start=terms[0]) if terms else 0.0


def lower_set(indices: Iterable[MultiIndex]) -> tuple[MultiIndex, ...]:
    """Return all multi-indices that are, entry by entry, at most one of ``indices``; lowest order first.

    >>> lower_set([(1, 1)])
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    below = {beta for alpha in indices for beta in product(*(range(a + 1) for a in alpha))}
    return tuple(sorted(below, key=lambda beta: (sum(beta), beta)))


def factors(indices: Iterable[MultiIndex]) -> tuple[MultiIndex, ...]:
    """Return the β whose ∂^β y occurs in a product of two or more when ∂^α φ(y) is expanded, α in ``indices``.

    >>> factors([(2, 0), (0, 2)])
    ((0, 1), (1, 0))
    """
    proper = {beta for alpha in indices for beta in lower_set([alpha]) if any(beta) and beta != alpha}
    return tuple(sorted(proper, key=lambda beta: (sum(beta), beta)))
