"""Trees of cells: they tile their box, share what stays the same, and know which cells touch."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from internals import Cell, contacts, leaves, refined


def random_tree(d, rounds, seed=0):
    """A box with uneven sides, some of its cells split at random places."""
    rng = np.random.default_rng(seed)
    root = Cell(np.arange(d, dtype=float), np.arange(d) + 1.0 + rng.random(d))
    for _ in range(rounds):
        cells = leaves(root)
        chosen = rng.choice(len(cells), size=max(1, len(cells) // 2), replace=False)
        splits = {}
        for number in chosen:
            axes = rng.permutation(d)[: rng.integers(1, d + 1)]
            splits[cells[number]] = [(int(axis), None) for axis in axes]
        root = refined(root, splits)
    return root


def area(low, high, axis):
    return float(np.prod(np.delete(high - low, axis)))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_cells_tile_the_box(d):
    root = random_tree(d, 4)
    cells = leaves(root)
    assert len(cells) > 5
    assert sum(float(np.prod(cell.size)) for cell in cells) == pytest.approx(float(np.prod(root.size)))
    X = np.random.default_rng(1).uniform(root.low, root.high, (500, d))
    inside = np.array([((cell.low < X) & (cell.high >= X)).all(axis=1) for cell in cells])
    assert (inside.sum(axis=0) == 1).all()


def test_what_is_not_split_is_shared_and_nothing_changes():
    root = random_tree(2, 3)
    before = leaves(root)
    finer = refined(root, {before[2]: [(0, None), (1, 0.7 * before[2].low[1] + 0.3 * before[2].high[1])]})
    assert leaves(root) == before
    after = leaves(finer)
    assert len(after) == len(before) + 3
    assert set(before) - set(after) == {before[2]}
    new = [cell for cell in after if cell not in before]
    assert all(cell.depth == before[2].depth + 2 for cell in new)
    assert all(cell.parent.parent is before[2] for cell in new)
    assert sorted({float(cell.size[1] / before[2].size[1]) for cell in new}) == pytest.approx([0.3, 0.7])
    assert refined(root, {}) is root


def test_splits_go_through_marks_that_are_not_too_near_an_end():
    marks = np.array([[0.4, 0.9, np.nan], [0.05, 0.55, np.nan]])
    cell = Cell(np.zeros(3), np.ones(3), marks=marks)
    assert cell.halved(0).at == 0.4
    assert cell.halved(1).at == 0.55
    assert cell.halved(2).at == 0.5  # marks say nothing of the third coordinate
    assert cell.halved(0, 0.25).at == 0.25
    first, second = cell.halved(0).halves
    assert first.halved(1).at == 0.55
    assert second.halved(1).at == 0.5  # a mark at 0.9 is too near the end, the other is in the first half
    assert second.halved(0).at == pytest.approx(0.7)  # a mark at its end


def test_splits_do_not_go_through_marks_at_which_the_boundary_is_along_them():
    mark = np.array([[0.5, 0.4]])
    along_first = np.array([[0, 0.5, 0.4]])  # the boundary is along a cell side across the first axis there
    cell = Cell(np.zeros(2), np.ones(2), marks=mark, tangents=along_first)
    assert cell.halved(0).at == 0.4
    assert cell.halved(1).at == 0.4
    assert sum(half.has_corner for half in cell.halved(0).halves) == 1


def test_cells_are_halved_across_the_edges_in_them_not_along():
    upright = [[1.0, 1.0, 0.0], [1.0, 1.0, 2.0]]
    slanted = [[0.0, 0.0, 3.0], [3.0, 3.0, 3.0]]
    root = Cell(np.zeros(3), np.full(3, 3.0), edges=np.array([upright]))
    assert root.axes_to_corners == [0, 1]
    assert Cell(np.zeros(3), np.ones(3), edges=np.empty((0, 2, 3))).axes_to_corners == [0, 1, 2]
    assert root.has_corner
    halved = refined(root, {root: [(axis, None) for axis in range(3)]})
    assert halved.at == 1.0  # through the edge
    held = [cell for cell in leaves(halved) if cell.has_corner]
    # Four around its lower half, four around what of the upper half is below its end.
    assert len(held) == 8
    tall = replace(root, edges=np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 1.5]]]))
    tall = refined(tall, {tall: [(axis, None) for axis in range(3)]})
    # Where only the end of an edge touches a cell, there is nothing along it.
    assert sum(cell.has_corner for cell in leaves(tall)) == 4
    both = Cell(np.zeros(3), np.full(3, 3.0), edges=np.array([upright, slanted]))
    assert both.axes_to_corners == [0, 1, 2]
    assert Cell(np.zeros(3), np.full(3, 3.0), edges=np.array([slanted])).axes_to_corners == [0, 1, 2]


def test_planes_among_the_marks_run_through_cells_until_they_are_split_there():
    corner, plane = [0.4, 0.9], [np.nan, 0.3]
    cell = Cell(np.zeros(2), np.ones(2), marks=np.array([corner, plane]))
    assert cell.has_corner
    assert cell.plane_inside() == (1, 0.3)
    below, above = cell.halved(1, 0.3).halves
    assert (below.plane_inside(), above.plane_inside()) == (None, None)
    assert (below.has_corner, above.has_corner) == (False, True)
    assert cell.halved(0).halves[1].plane_inside() == (1, 0.3)
    assert not Cell(np.zeros(2), np.ones(2), marks=np.array([plane])).has_corner


@pytest.mark.parametrize(("d", "rounds", "seed"), [(1, 4, 0), (2, 4, 1), (2, 5, 2), (3, 3, 3)])
def test_contacts_are_all_places_where_two_cells_touch(d, rounds, seed):
    root = random_tree(d, rounds, seed)
    expected = {}
    for one, two in combinations(leaves(root), 2):
        low, high = np.maximum(one.low, two.low), np.minimum(one.high, two.high)
        flat = high == low
        if (high >= low).all() and flat.sum() == 1:
            axis = int(np.flatnonzero(flat)[0])
            below, above = (one, two) if one.high[axis] == two.low[axis] else (two, one)
            expected[below, above] = (axis, area(low, high, axis))
    found = list(contacts(root))
    assert len(found) == len(expected)
    for contact in found:
        axis, size = expected[contact.below, contact.above]
        assert contact.axis == axis
        assert area(contact.low, contact.high, axis) == pytest.approx(size)
        assert contact.shift == 0.0
        assert contact.low[axis] == contact.high[axis] == contact.below.high[axis] == contact.above.low[axis]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_on_a_torus_every_face_is_a_contact(d):
    root = random_tree(d, 3, seed=4)
    found = list(contacts(root, range(d)))
    for axis in range(d):
        faces = sum(area(cell.low, cell.high, axis) for cell in leaves(root))
        own = [contact for contact in found if contact.axis == axis]
        assert sum(area(contact.low, contact.high, axis) for contact in own) == pytest.approx(faces)
        across = [contact for contact in own if contact.shift]
        assert sum(area(c.low, c.high, axis) for c in across) == pytest.approx(area(root.low, root.high, axis))
        for contact in across:
            assert contact.below.high[axis] - contact.shift == pytest.approx(contact.above.low[axis])


@pytest.mark.parametrize("d", [2, 3])
def test_contacts_near_a_cell_are_all_those_of_leaves_that_touch_it(d):
    root = random_tree(d, 4)
    every = contacts(root, [0])

    def key(own):
        return (*own.low, *own.high, own.axis, own.shift)

    for near in (leaves(root)[0], root.halves[0]):
        touching = {leaf for leaf in leaves(root) if (leaf.low <= near.high).all() and (leaf.high >= near.low).all()}
        expected = {key(own) for own in every if {own.below, own.above} & touching}
        assert {key(own) for own in contacts(root, [0], near)} == expected
    assert len(contacts(root, [0], leaves(root)[0])) < len(every)
