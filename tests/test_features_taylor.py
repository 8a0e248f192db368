"""The chain rule of every order against SymPy."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import sympy as sp

from pibls.features import factors, lower_set, partitions

BELL = [1, 1, 2, 5, 15, 52, 203]


def indices_up_to(order, dimension):
    return [alpha for alpha in product(range(order + 1), repeat=dimension) if sum(alpha) <= order]


def test_partitions_are_the_derivatives_of_a_composition():
    # For φ = exp(λ·) the k-th derivative is λᵏφ, so a polynomial in λ keeps the orders of φ apart. Axes in ascending
    # order and zeros first: the tests below carry this over to the other orders and to fewer variables.
    x = sp.symbols("x:3")
    rate, y = sp.Symbol("lambda"), sp.Function("y")(*x)
    derivative = cache(lambda alpha: y.diff(*zip(x, alpha, strict=True)))
    composed = {(0, 0, 0): sp.exp(rate * y)}
    for alpha in sorted({tuple(sorted(alpha)) for alpha in indices_up_to(6, 3)}, key=sum)[1:]:
        axis = next(i for i, a in enumerate(alpha) if a)
        before = (*alpha[:axis], alpha[axis] - 1, *alpha[axis + 1 :])
        composed[alpha] = sp.diff(composed[before], x[axis])
        expected = sum(
            coefficient * rate ** len(parts) * sp.Mul(*map(derivative, parts))
            for coefficient, parts in partitions(alpha)
        )
        assert sp.expand(composed[alpha] / composed[0, 0, 0] - expected) == 0, alpha


def test_axes_that_are_not_differentiated_can_be_left_out():
    for alpha in indices_up_to(6, 2):
        wider = tuple((c, tuple((0, *part) for part in parts)) for c, parts in partitions(alpha))
        assert wider == partitions((0, *alpha))


def test_partitions_follow_the_order_of_the_axes():
    for alpha in indices_up_to(6, 3):
        order = sorted(range(3), key=lambda axis: alpha[axis])
        reordered = {
            tuple(sorted(tuple(part[axis] for axis in order) for part in parts)): coefficient
            for coefficient, parts in partitions(alpha)
        }
        expected = partitions(tuple(sorted(alpha)))
        assert reordered == {parts: coefficient for coefficient, parts in expected}


@pytest.mark.parametrize("alpha", [(6,), (4, 2), (2, 2, 2), (1, 1, 1, 1, 1, 1)])
def test_coefficients_count_set_partitions(alpha):
    assert sum(coefficient for coefficient, _ in partitions(alpha)) == BELL[6]
    for _, parts in partitions(alpha):
        assert tuple(map(sum, zip(*parts, strict=True))) == alpha
        assert all(any(part) for part in parts)


def test_distinct_variables_have_coefficients_one():
    assert {coefficient for coefficient, _ in partitions((1, 1, 1, 1, 1))} == {1}
    assert len(partitions((1, 1, 1, 1, 1))) == BELL[5]


def test_the_function_itself():
    assert partitions((0, 0)) == ((1, ()),)


def test_known_chain_rules():
    assert partitions((3,)) == ((1, ((3,),)), (3, ((1,), (2,))), (1, ((1,), (1,), (1,))))
    assert partitions((1, 1)) == ((1, ((1, 1),)), (1, ((0, 1), (1, 0))))


def test_lower_set_is_closed_and_minimal():
    below = lower_set([(2, 1), (0, 3)])
    assert set(below) == {(i, j) for i in range(3) for j in range(2)} | {(0, j) for j in range(4)}
    assert list(below) == sorted(below, key=lambda beta: (sum(beta), beta))
    assert lower_set([]) == ()


@pytest.mark.parametrize("alphas", [[(2, 0), (0, 2)], [(4, 0), (2, 2), (0, 4)], [(1, 0)], [(2, 1, 1), (1, 0, 0)]])
def test_factors_are_the_parts_of_products(alphas):
    expected = {part for alpha in alphas for _, parts in partitions(alpha) if len(parts) > 1 for part in parts}
    assert set(factors(alphas)) == expected
