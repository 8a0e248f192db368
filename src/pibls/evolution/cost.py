"""The cost of work, in operations of which :data:`pibls.runtime.RATE` count as a second.

Work is counted and not timed: what is tried within a budget is then the same on every machine, however busy it is.
The factors are those of one core of about 2020, so that a nominal second is about a real one there.
"""

from __future__ import annotations

PER_NUMBER = 10.0  # an operation of an expression on one number
PER_CALL = 3e6  # an iteration of a step, however few coefficients there are
_DENSE = 0.3  # products and factorisations of matrices are faster than operations one by one
SINGULAR = 22.0  # singular values, by the third power of the size
_BARE = 4.0  # solving with a factorised matrix waits for memory


def dense(flops: float) -> float:
    """Return the cost of products and factorisations of matrices."""
    return _DENSE * flops


def basis(points: int, nodes: int, size: int, derivatives: int) -> float:
    """Return the cost of an orthonormal basis, with derivatives at the points of the rule."""
    products = 4.0 * points * nodes**2 + SINGULAR * nodes**3 + 2.0 * derivatives * points * nodes * size
    return dense(products) + PER_NUMBER * (1 + derivatives) * points * nodes


def factorisations(size: int) -> float:
    """Return the cost of one real and three complex factorisations."""
    return dense(26.0 / 3.0 * size**3)


def substitutions(size: int) -> float:
    """Return the cost of solving with them."""
    return _BARE * 26.0 * size**2
