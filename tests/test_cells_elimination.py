"""Elimination along a tree gives the least-squares solution of all rows together, however rows are scaled."""

from __future__ import annotations

import numpy as np
import pytest

from internals import DependentError, Factor, Front, Grams, Join, LeafSystem, Load, Rotated, Rotations

WAYS = [Grams(), Rotations()]


def a_system(rng, own=6, shared=4, sums=1, heavy=1.0):
    """Random rows of a leaf: equations, rows of all unknowns, and rows that define sums."""
    width = own + sums + shared
    definitions = heavy * rng.standard_normal((sums, width))
    definitions[:, own : own + sums] = -heavy * np.eye(sums)
    rows = rng.standard_normal((own + shared, width))
    rows[:, own : own + sums] = 0.0
    system = LeafSystem(rng.standard_normal((1, 2 * own, own)), rows[None], definitions[None])
    load = Load(*(rng.standard_normal((1, part.shape[1], 2)) for part in (system.equation, system.rows, system.heavy)))
    return system, load


def leaf(way, system):
    """The factor of a single leaf."""
    ((factor, which),) = way.leaves(system)
    assert which == [0]
    return factor


def stacked(load):
    return np.vstack([load.equation[0], load.rows[0], load.heavy[0]])


@pytest.mark.parametrize("way", WAYS, ids=["grams", "rotations"])
@pytest.mark.parametrize("heavy", [1.0, 1e5])
def test_a_leaf_leaves_the_least_squares_solution_to_what_it_shares(way, heavy):
    system, load = a_system(np.random.default_rng(0), heavy=heavy)
    factor = leaf(way, system)
    own, front = factor.lifted(system, load)
    # All that is shared is eliminated last, with nothing further to say of it.
    nothing = np.zeros(front.shape[1])
    last = way.last(factor.front, nothing)
    right = way.whole(front, np.zeros_like(front), nothing)
    others = last.down(last.up(right)[0], np.zeros((1, 0, 2)))
    found = np.vstack([factor.down(own, others)[0], others[0]])
    expected = np.linalg.lstsq(system.all_rows[0], stacked(load), rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_what_a_solution_leaves_of_a_load_is_orthogonal_to_all_rows():
    system, load = a_system(np.random.default_rng(1))
    expected = np.linalg.lstsq(system.all_rows[0], stacked(load), rcond=None)[0][None]
    left = load.less(system, expected[:, : system.own], expected[:, system.own :])
    np.testing.assert_allclose(system.all_rows[0].T @ stacked(left), 0.0, atol=1e-12)
    np.testing.assert_allclose(left.squares, np.square(stacked(left)).sum(axis=0)[None])


def joined_rows(systems, counts, units):
    """All rows of two leaves that share two unknowns, over (own 1, own 2, sum 1, sum 2, shared, rest 1, rest 2)."""
    first, second = systems
    own, columns = first.own, 2 * first.own + 2 + 2 + 2 + 2
    places = [
        [*range(own), 2 * own, *range(2 * own + 2, 2 * own + 4), *range(2 * own + 4, 2 * own + 6)],
        [*range(own, 2 * own), 2 * own + 1, *range(2 * own + 2, 2 * own + 4), *range(2 * own + 6, 2 * own + 8)],
    ]
    blocks = []
    for system, place, (weight, unit) in zip((first, second), places, units, strict=True):
        rows = np.zeros((system.all_rows.shape[1], columns))
        rows[:, place] = weight * system.all_rows[0] * np.concatenate([np.ones(own), unit])
        blocks.append(rows)
    ends = np.zeros((3, columns))
    ends[0, 2 * own], ends[1, 2 * own + 1], ends[2, 2 * own : 2 * own + 2] = counts
    return np.vstack([*blocks, ends])


@pytest.mark.parametrize("way", WAYS, ids=["grams", "rotations"])
def test_two_leaves_joined_give_the_solution_of_all_rows_in_their_units(way):
    rng, counts = np.random.default_rng(2), (0.7, 0.4, 0.3)
    (first, one), (second, two) = a_system(rng), a_system(rng)
    units = [(1.0, np.ones(5)), (3.0, np.array([0.2, 1.0, 1.0, 1.0, 1.0]))]
    factors = [leaf(way, system) for system in (first, second)]
    fronts = [way.scaled(f.front, w * unit[None]) for f, (w, unit) in zip(factors, units, strict=True)]
    shared = [np.array([1, 2])] * 2
    join = Join.of(tuple(shared), ([-9, -9, 0, 1], [-9, -9, 2, 3]), 4, 1)
    of_sums = np.array([[counts[0]]]), np.array([[counts[1]]])
    union = way.joined(*fronts, join, of_sums)
    lifted = [f.lifted(s, b) for f, s, b in zip(factors, (first, second), (one, two), strict=True)]
    raised = [
        way.raised(front, np.array([w]), w * unit[None]) for (_, front), (w, unit) in zip(lifted, units, strict=True)
    ]
    none = np.zeros((1, 1, 2))
    own, front = union.up(way.union(*raised, (none, none), join, of_sums))
    count = np.array([counts[2], 0.0, 0.0, 0.0, 0.0])
    last = way.last(union.front, count)
    rest = last.down(last.up(way.whole(front, np.zeros((1, 5, 2)), count))[0], np.zeros((1, 0, 2)))
    gone = union.down(own, rest)[0]
    rest = rest[0]
    around = [
        np.vstack([rest[:1] - gone[:1], gone[1:], rest[1:3]]),
        np.vstack([gone[:1], gone[1:], rest[3:]]),
    ]
    weights = [
        f.down(up, unit[None, :, None] * other[None])[0]
        for f, (up, _), other, (_, unit) in zip(factors, lifted, around, units, strict=True)
    ]
    found = np.vstack([*weights, rest[:1] - gone[:1], gone[:1], gone[1:], rest[1:]])
    A = joined_rows((first, second), counts, units)
    b = np.vstack([units[0][0] * stacked(one), units[1][0] * stacked(two), np.zeros((3, 2))])
    np.testing.assert_allclose(found, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-9, atol=1e-9)


def nearly_dependent(system, apart=1e-9):
    """The system with two columns that are equal to nine digits, or to others."""
    arrays = [own.copy() for own in (system.equation, system.rows, system.heavy)]
    for own, share in zip(arrays, (apart, apart, 0.0), strict=True):
        own[:, :, 1] = own[:, :, 0] + share * own[:, :, 1]
    return LeafSystem(*arrays)


def test_rows_that_gram_matrices_cannot_tell_apart_are_rotated():
    system, load = a_system(np.random.default_rng(3))
    close = nearly_dependent(system)
    factor = leaf(Grams(), close)
    own, front = factor.lifted(close, load)
    others = np.linalg.lstsq(factor.front.rows[0], front[0], rcond=None)[0]
    values = close.all_rows[0] @ np.vstack([factor.down(own, others[None])[0], others])
    expected = close.all_rows[0] @ np.linalg.lstsq(close.all_rows[0], stacked(load), rcond=None)[0]
    assert isinstance(factor, Rotated)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


def test_rows_that_one_gram_matrix_cannot_tell_apart_take_two_and_no_rotations():
    system, load = a_system(np.random.default_rng(3))
    close = nearly_dependent(system, 1e-7)
    factor, exact = leaf(Grams(), close), leaf(Rotations(), close)
    own, front = factor.lifted(close, load)
    assert not isinstance(factor, Rotated)
    gram = exact.front.rows[0].T @ exact.front.rows[0]
    np.testing.assert_allclose(factor.front.rows[0], gram, rtol=0, atol=1e-9 * np.abs(gram).max())
    others = np.linalg.solve(factor.front.rows[0], front[0])
    values = close.all_rows[0] @ np.vstack([factor.down(own, others[None])[0], others])
    expected = close.all_rows[0] @ np.linalg.lstsq(close.all_rows[0], stacked(load), rcond=None)[0]
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("way", WAYS, ids=["grams", "rotations"])
def test_a_stack_of_leaves_is_solved_as_if_each_were_alone(way):
    rng = np.random.default_rng(6)
    every = [a_system(rng) for _ in range(5)]
    every[3] = nearly_dependent(every[3][0]), every[3][1]
    systems, others = [system for system, _ in every], rng.standard_normal((5, 5, 2))
    found = {}
    for factor, which in way.leaves(LeafSystem.stacked(systems)):
        some = LeafSystem.stacked([systems[k] for k in which]), Load.stacked([every[k][1] for k in which])
        own, front = factor.lifted(*some)
        down = factor.down(own, others[which])
        found |= {k: (factor.front.rows[n], front[n], down[n]) for n, k in enumerate(which)}
        part = factor.taken([len(which) - 1])
        np.testing.assert_allclose(part.down(own[-1:], others[which[-1:]]), down[-1:], atol=1e-12)
    for k, (system, load) in enumerate(every):
        factor = leaf(way, system)
        own, front = factor.lifted(system, load)
        alone = (factor.front.rows[0], front[0], factor.down(own, others[k : k + 1])[0])
        for one, two in zip(found[k], alone, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12 * np.abs(two).max())


@pytest.mark.parametrize("way", WAYS, ids=["grams", "rotations"])
def test_one_factor_serves_many_right_hand_sides(way):
    rng = np.random.default_rng(7)
    system, _ = a_system(rng)
    factor = leaf(way, system)
    loads = [Load(*(rng.standard_normal((1, own.shape[1], 1)) for own in vars(system).values())) for _ in range(4)]
    own, front = factor.lifted(system, Load.stacked(loads))
    others = rng.standard_normal((4, 5, 1))
    for k, load in enumerate(loads):
        one, beside = factor.lifted(system, load)
        np.testing.assert_allclose(front[k], beside[0], atol=1e-12)
        np.testing.assert_allclose(factor.down(own, others)[k], factor.down(one, others[k : k + 1])[0], atol=1e-12)


def test_fronts_that_determine_nothing_are_told_to_have_no_digits():
    way, rng = Grams(), np.random.default_rng(4)
    front = leaf(way, a_system(rng)[0]).front
    nothing = way.scaled(front, np.array([[1.0, 1.0, 0.0, 1.0, 1.0]]))
    join = Join.of(([2], [2]), ([0, -9, 1, 2], [3, -9, 4, 5]), 6, 1)
    with pytest.raises(DependentError):
        way.joined(nothing, nothing, join, (np.ones((1, 1)), np.ones((1, 1))))


def test_what_nothing_determines_is_as_small_as_it_can_be_and_as_large_where_that_is_asked():
    triangle, none = np.array([[[2.0, 1.0], [0.0, 0.0]]]), np.zeros((1, 0, 1))
    factor = Factor(triangle, np.zeros((1, 2, 0)), Front(np.zeros((1, 0, 0)), np.zeros((1, 0))))
    right = np.array([[[5.0], [1e-3]]])
    np.testing.assert_allclose(factor.down(right, none)[0, :, 0], [2.0, 1.0])
    assert np.abs(factor.down(right, none, probing=True)).max() > 1e6


@pytest.mark.parametrize("way", WAYS, ids=["grams", "rotations"])
def test_a_union_keeps_what_both_fronts_share_with_others(way):
    rng = np.random.default_rng(5)
    systems = [a_system(rng)[0] for _ in range(2)]
    fronts = [leaf(way, system).front for system in systems]
    counts = (np.ones(1), np.ones(1))
    # The first of what both share is kept, the second one eliminated.
    join = Join.of(([2], [2]), ([0, -9, 1, 2], [0, -9, 3, 4]), 5, 1)
    union = way.joined(*fronts, join, tuple(own[None] for own in counts))
    (left,) = union.front.rows
    assert (join.gone, join.left, left.shape) == (2, 6, (6, 6))
    gram = left if isinstance(way, Grams) else left.T @ left
    both = np.zeros((8, 8))
    for front, place, sign in zip(fronts, join.places, (-1.0, 0.0), strict=True):
        own = front.rows[0] if isinstance(way, Grams) else front.rows[0].T @ front.rows[0]
        move = np.zeros((5, 8))
        move[np.arange(5), place] = 1.0
        move[0, 0] += sign
        both += move.T @ (own + np.diag([1.0, 0.0, 0.0, 0.0, 0.0])) @ move
    expected = both[2:, 2:] - both[2:, :2] @ np.linalg.solve(both[:2, :2], both[:2, 2:])
    np.testing.assert_allclose(gram, expected, atol=1e-9)


@pytest.mark.parametrize("way", WAYS, ids=["grams", "rotations"])
def test_an_unknown_that_no_row_contains_is_zero_and_disturbs_nothing(way):
    system, load = a_system(np.random.default_rng(8))
    for rows in (system.equation, system.rows, system.heavy):
        rows[:, :, 2] = 0.0
    factor = leaf(way, system)
    own, front = factor.lifted(system, load)
    nothing = np.zeros(front.shape[1])
    last = way.last(factor.front, nothing)
    others = last.down(last.up(way.whole(front, np.zeros_like(front), nothing))[0], np.zeros((1, 0, 2)))
    found = np.vstack([factor.down(own, others)[0], others[0]])
    expected = np.linalg.lstsq(system.all_rows[0], stacked(load), rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
