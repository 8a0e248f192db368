"""Elimination along a tree gives the least-squares solution of all rows together, however rows are scaled."""

from __future__ import annotations

import numpy as np
import pytest

from pibls.solvers.elimination import Eliminated, Leaf, Triangle, absorb, merge


def graded(rng, rows, columns, decades):
    """Random rows whose sizes span so many powers of ten."""
    scales = 10.0 ** rng.uniform(-decades, 0, rows) if decades else np.ones(rows)
    return scales[:, None] * rng.standard_normal((rows, columns))


def residual(A, b, w):
    return float(np.square(A @ w - b).sum())


def triangle(rows, columns):
    """Rows as a triangle over their first columns, and what is left of them below."""
    return np.linalg.qr(np.vstack([rows, np.zeros((columns, rows.shape[1]))]), mode="complete")[1]


def front_of(rows, width):
    """Rows with a right-hand side as a front, and the square sum that it leaves out."""
    found = triangle(np.asfortranarray(rows), width)
    return np.asfortranarray(found[:width]), float(np.square(found[width:, -1]).sum())


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("shape", [(30, 8), (8, 8), (5, 8), (0, 8)])
def test_a_triangle_has_the_lengths_of_its_rows_and_of_the_ridge(shape, given):
    rng, ridge = np.random.default_rng(0), 1e-3
    rows, right = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    order = rng.permutation(shape[1]) if given else None
    found = Triangle.of(rows, ridge, order)
    assert (found.upper == np.triu(found.upper)).all()
    assert sorted(found.order.tolist()) == list(range(shape[1]))
    if given:
        assert (found.order == order).all()
    turned, lost = found.rotated(right)
    own = rows[:, found.order]
    np.testing.assert_allclose(found.upper.T @ found.upper, own.T @ own + ridge**2 * np.eye(shape[1]), atol=1e-12)
    np.testing.assert_allclose(found.upper.T @ turned, own.T @ right, atol=1e-12)
    assert lost + np.square(turned[:, 0]).sum() == pytest.approx(np.square(right[:, 0]).sum(), abs=1e-12)


def test_a_triangle_begins_with_what_its_rows_determine_best():
    rows = np.random.default_rng(0).standard_normal((20, 3)) * [1e-6, 1.0, 1e-3]
    assert Triangle.of(rows, 1e-12).order.tolist() == [1, 2, 0]


@pytest.mark.parametrize("decades", [0, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_absorbed_rows_count_like_rows_from_the_start(seed, decades):
    rng = np.random.default_rng(seed)
    n, others = 12, 5
    first, second = graded(rng, 40, n + others + 1, decades), graded(rng, 9, n + others + 1, decades)
    start = triangle(np.asfortranarray(first), n + others)
    upper, top = (np.asfortranarray(part) for part in (start[:n, :n], start[:n, n:]))
    new, above, below = absorb(upper, top, np.asfortranarray(second[:, :n]), np.asfortranarray(second[:, n:]))
    rest = triangle(np.asfortranarray(np.vstack([start[n:, n:], below])), others)
    together = np.vstack([first, second])
    expected = np.linalg.lstsq(together[:, :-1], together[:, -1], rcond=None)[0]
    last = np.linalg.solve(rest[:others, :others], rest[:others, -1])
    own = Eliminated(new, above[:, :-1], above[:, -1:]).solve(last[:, None])[:, 0]
    np.testing.assert_allclose(np.concatenate([own, last]), expected, rtol=1e-7, atol=1e-7)
    lacking = float(np.square(rest[others:, -1]).sum())
    assert lacking == pytest.approx(residual(together[:, :-1], together[:, -1], expected), rel=1e-7)


def test_absorbing_nothing_changes_nothing():
    upper, top, none = np.eye(3), np.ones((3, 2)), np.zeros((0, 3))
    new, above, below = absorb(upper, top, none, np.zeros((0, 2)))
    assert new is upper
    assert above is top
    assert below.shape == (0, 2)


def two_fronts(rng, sums, shared, decades=0):
    """Rows over (sums, shared, others) of two branches; others 0 and 2 belong to the first, the rest to the second."""
    places = (np.array([0, 2]), np.array([1, 3, 4]))
    rows = [graded(rng, 30, sums + shared + len(place) + 1, decades) for place in places]
    return rows, places


def together(rows, places, sums, shared, counts, width):
    """All rows over (sums of all, sums of the second, shared, others)."""
    blocks, right = [], []
    for number, (own, place) in enumerate(zip(rows, places, strict=True)):
        block = np.zeros((len(own), 2 * sums + shared + width))
        if number == 0:
            block[:, :sums] = own[:, :sums]
            block[:, sums : 2 * sums] = -own[:, :sums]
        else:
            block[:, sums : 2 * sums] = own[:, :sums]
        block[:, 2 * sums : 2 * sums + shared] = own[:, sums : sums + shared]
        block[:, 2 * sums + shared + place] = own[:, sums + shared : -1]
        blocks.append(block)
        right.append(own[:, -1])
    zero = np.zeros((sums, 2 * sums + shared + width))
    zero[:, :sums] = np.diag(counts)
    return np.vstack([*blocks, zero]), np.concatenate([*right, np.zeros(sums)])


@pytest.mark.parametrize(("sums", "shared"), [(0, 4), (2, 4), (1, 0)])
@pytest.mark.parametrize("decades", [0, 8])
def test_merged_fronts_give_the_solution_of_all_rows(sums, shared, decades):
    rng = np.random.default_rng(sums + 10 * shared)
    width = 5
    rows, places = two_fronts(rng, sums, shared, decades)
    counts = rng.uniform(0.5, 2, sums)
    fronts, lost = zip(
        *(front_of(own, sums + shared + len(place)) for own, place in zip(rows, places, strict=True)), strict=True
    )
    own, merged, more = merge(*fronts, shared, places, width, counts)
    A, b = together(rows, places, sums, shared, counts, width)
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    assert merged.shape == (sums + width, sums + width + 1)
    assert (merged[:, :-1] == np.triu(merged[:, :-1])).all()
    left = np.linalg.solve(merged[:, :-1], merged[:, -1])
    gone = own.solve(left[:, None])[:, 0]
    found = np.concatenate([left[:sums], gone, left[sums:]])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert sum(lost) + more == pytest.approx(residual(A, b, expected), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_small_rows_keep_their_digits_beside_large_ones(seed):
    """Of what only rows of a size of 1e-8 determine, half of all digits are right; squares of rows would lose all."""
    rng = np.random.default_rng(seed)
    width, shared = 5, 4
    places = (np.array([0, 2]), np.array([1, 3, 4]))
    truth = rng.standard_normal(shared + width)
    rows = []
    for place in places:
        A = rng.standard_normal((20, shared + len(place)))
        A[3:] *= 1e-8
        own = np.concatenate([truth[:shared], truth[shared + place]])
        rows.append(np.column_stack([A, A @ own]))
    fronts = [front_of(own, shared + len(place))[0] for own, place in zip(rows, places, strict=True)]
    own, merged, lost = merge(*fronts, shared, places, width, np.empty(0))
    left = np.linalg.solve(merged[:, :-1], merged[:, -1])
    np.testing.assert_allclose(left, truth[shared:], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(own.solve(left[:, None])[:, 0], truth[:shared], rtol=1e-6, atol=1e-6)
    assert lost < 1e-28


def test_what_nothing_determines_is_as_small_as_it_can_be():
    upper = np.array([[2.0, 1.0], [0.0, 0.0]])
    found = Eliminated(upper, np.zeros((2, 0)), np.array([[5.0], [0.0]])).solve(np.zeros((0, 1)))
    np.testing.assert_allclose(found[:, 0], [2.0, 1.0], atol=1e-12)
    regular = Eliminated(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([[1.0], [2.0]]), np.array([[5.0], [6.0]]))
    np.testing.assert_allclose(regular.solve(np.array([[1.0]]))[:, 0], [1.5, 1.0])
    np.testing.assert_allclose(regular.solve(np.array([[1.0]]), np.array([[3.0], [2.0]]))[:, 0], [1.0, 0.0])


@pytest.mark.parametrize("rows", [9, 3])
def test_a_factorised_leaf_solves_for_any_right_hand_side(rows):
    rng = np.random.default_rng(rows)
    n, others = 6, 4
    upper = np.asfortranarray(np.triu(rng.standard_normal((n, n))) + 3 * np.eye(n))
    below, their = rng.standard_normal((rows, n)), rng.standard_normal((rows, others))
    leaf = Leaf.of(upper, np.asfortranarray(below), np.asfortranarray(their))
    matrix = np.block([[upper, np.zeros((n, others))], [below, their]])
    for sides in (1, 3):
        right, more = rng.standard_normal((n, sides)), rng.standard_normal((rows, sides))
        own, front, lost = leaf.solved(right, more)
        left = np.linalg.lstsq(front[:, :others], front[:, others:], rcond=None)[0]
        found = np.concatenate([own.solve(left), left])
        b = np.concatenate([right, more])
        expected = np.linalg.lstsq(matrix, b, rcond=None)[0]
        np.testing.assert_allclose(matrix @ found, matrix @ expected, atol=1e-10)
        assert lost == pytest.approx(residual(matrix, b[:, 0], expected[:, 0]), abs=1e-10)


def test_fronts_may_both_keep_an_unknown():
    # The first unknown goes, the second is shared with others still: all rows of both fronts count.
    rng = np.random.default_rng(0)
    one, two = (np.asfortranarray(np.triu(rng.standard_normal((2, 3)))) for _ in range(2))
    place = np.array([0])
    _, rest, _ = merge(one, two, 1, (place, place), 1, np.zeros(0))
    rows = np.vstack([one, two])
    wanted = np.linalg.lstsq(rows[:, :2], rows[:, 2])[0][1]
    assert rest[0, 1] / rest[0, 0] == pytest.approx(wanted, rel=1e-12)
