"""Edges of solids at which solutions are not smooth: where they are, and that cells are graded towards them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    DataRefinement,
    ErrorMarking,
    Layout,
    Rows,
    TreeSolver,
    borders,
    draw_reference,
    first_tree,
    leaves,
    part_values,
    reentrant_edges,
    refined,
    split_along_lines,
)
from test_shapes_reading import box

x, y, z = pb.coordinates("x y z")
CUBE = pb.Box((x, 0, 2), (y, 0, 2), (z, 0, 2))
L = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]


def test_a_cube_without_an_eighth_has_three_edges_that_meet():
    found, _ = reentrant_edges(CUBE - pb.Box((x, 1, 2), (y, 1, 2), (z, 1, 2)))
    expected = [[np.ones(3), np.where(np.arange(3) == axis, 2.0, 1.0)] for axis in range(3)]
    order = np.argsort(found[:, 1].argmax(axis=1))
    np.testing.assert_allclose(found[order], expected, atol=1e-9)


def test_ways_to_make_an_angle_have_the_same_edge():
    drawn = pb.Extrusion(pb.Polygon((x, y), L), (z, 0, 1))
    cut = pb.Box((x, 0, 2), (y, 0, 2), (z, 0, 1)) - pb.Box((x, 1, 2), (y, 1, 2), (z, 0, 1))
    for shape in (drawn, cut):
        np.testing.assert_allclose(reentrant_edges(shape)[0], [[[1, 1, 0], [1, 1, 1]]], atol=1e-9)


@pytest.mark.parametrize("turn", [0.0, 0.3])
def test_edges_of_triangles_are_joined_and_turn_with_the_solid(turn):
    bar = np.array([*((a, b, 0.0) for a, b in L), *((a, b, 1.0) for a, b in L), (1.0, 1.0, 0.4)])
    ring = [(i, (i + 1) % 6) for i in range(6)]
    sides = [t for i, j in ring if 3 not in (i, j) for t in ((i, j, j + 6), (i, j + 6, i + 6))]
    # The inner edge in two pieces, around a vertex between its ends.
    sides += [(2, 3, 12), (2, 12, 8), (8, 12, 9), (3, 4, 12), (12, 4, 10), (12, 10, 9)]
    floor = [(0, 1, 3), (1, 2, 3), (0, 3, 5), (3, 4, 5)]
    caps = [t for a, b, c in floor for t in ((a, c, b), (a + 6, b + 6, c + 6))]
    rotation = np.array([[1, 0, 0], [0, np.cos(turn), -np.sin(turn)], [0, np.sin(turn), np.cos(turn)]])
    found, _ = reentrant_edges(pb.Solid((x, y, z), bar @ rotation.T, [*sides, *caps]))
    ends = np.array([[1, 1, 0], [1, 1, 1]]) @ rotation.T
    np.testing.assert_allclose(found, [ends[np.lexsort(ends.T[::-1])]], atol=1e-9)


def test_convex_round_and_blunt_solids_have_no_sharp_ones():
    corners = [(np.cos(a), np.sin(a)) for a in 2 * np.pi * np.arange(24) / 24]
    pierced = pb.Rectangle((x, -2, 2), (y, -2, 2)) - pb.Polygon((x, y), corners)
    solids = [CUBE, CUBE - pb.Ball((x, y, z), (1, 1, 1), 0.5), pb.Solid((x, y, z), *box((0, 0, 0), (1, 2, 1)))]
    for solid in (*solids, pb.Extrusion(pierced, (z, 0, 1))):
        assert len(reentrant_edges(solid)[0]) == 0


def test_triangles_of_a_ball_have_no_edges_to_end_cells_at():
    ball = pytest.importorskip("trimesh").creation.icosphere(subdivisions=2, radius=0.4)
    corners, triangles = box((-1, -1, -1), (2, 2, 2))
    inner = np.asarray(ball.faces)[:, ::-1] + len(corners)
    found = reentrant_edges(pb.Solid((x, y, z), [*corners, *ball.vertices], [*triangles, *inner]))
    assert [len(own) for own in found] == [0, 0]


def test_cells_beside_a_convex_edge_are_not_split_along_it():
    u = pb.field("u", x, y, z)
    free = CUBE.left | CUBE.right | CUBE.front | CUBE.back | CUBE.top
    conditions = [pb.Dirichlet(u, 0, on=CUBE.bottom), pb.Neumann(u, 1, on=free)]
    root = Layout(pb.Problem(sp.Eq(pb.laplacian(u), 0), CUBE, conditions), draw_reference(3, 4, 0)).root
    assert len(root.ridges) == 12
    cells = leaves(refined(root, {root: [(0, 0.5), (1, 1.5), (2, 1.0)]}))
    beside = {tuple(cell.low): cell.axes_across_edges for cell in cells}
    assert beside[0.5, 1.5, 0.0] == [0, 1, 2]  # at a corner
    assert beside[0.5, 1.5, 1.0] == [0, 1, 2]  # above
    inner = leaves(refined(root, {root: [(0, 0.5), (0, 1.5)]}))
    along = leaves(refined(inner[1], {inner[1]: [(1, 1.0)]}))
    assert [cell.axes_across_edges for cell in along] == [[1, 2], [1, 2]]


def test_parts_chosen_by_a_function_meet_where_they_are_kept():
    u = pb.field("u", x, y, z)
    low, rest = CUBE.boundary.where(lambda X: X[:, 2] < 1e-9), CUBE.boundary.where(lambda X: X[:, 2] >= 1e-9)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), CUBE, [pb.Dirichlet(u, 0, on=low), pb.Neumann(u, 1, on=rest)])
    ridges = Layout(problem, draw_reference(3, 4, 0)).root.ridges
    assert len(ridges) == 12
    assert (np.abs(ridges[:, :, 2]).max(axis=1) < 1e-9).sum() == 4


def test_rough_cells_are_cut_beside_edges_and_all_around_the_point_where_they_meet():
    u = pb.field("u", x, y, z)
    problem = pb.Problem(
        sp.Eq(-pb.laplacian(u), 1), CUBE - pb.Box((x, 1, 2), (y, 1, 2), (z, 1, 2)), [pb.Dirichlet(u, 0)]
    )
    layout, share = Layout(problem, draw_reference(3, 4, 0)), 11 / 64
    cells = leaves(split_along_lines(layout.root))
    for axis in range(3):
        cells = [part for cell in cells for part in (leaves(cell.halved(axis)) if cell.size[axis] > 1 else [cell])]
    cells = [half for cell in cells for half in leaves(refined(cell, {cell: [(0, None), (1, None), (2, None)]}))]
    cells = [cell for cell in cells if layout.parts(cell)]
    cuts = {cell: ErrorMarking(layout).cuts(cell, np.array([1.0, 0.8, 0.9]), smooth=False) for cell in cells}
    found = {tuple(cell.low): dict(own) for cell, own in cuts.items()}
    assert found[0.5, 0.5, 1.5] == pytest.approx({0: 1 - share / 2, 1: 1 - share / 2})  # not along the edge
    assert found[0.5, 0.5, 1.0] == pytest.approx({0: 1 - share / 2, 1: 1 - share / 2, 2: 1 + share / 2})
    assert found[0.5, 0.5, 0.5] == pytest.approx(dict.fromkeys(range(3), 1 - share / 2))  # only touches the point


def twisted(values):
    """Return an elastic cube with given displacements at the bottom and the top, and tractions that fit to them."""
    fields = [pb.field(name, x, y, z) for name in "abc"]
    stress, ends = pb.stress(fields, young=1, poisson=0.3), CUBE.bottom | CUBE.top
    free = CUBE.boundary - CUBE.bottom - CUBE.top
    held = [pb.Dirichlet(own, value, on=ends) for own, value in zip(fields, values, strict=True)]
    known = dict(zip(fields, values, strict=True)) if values[2] != 0 else dict.fromkeys(fields, 0)
    load = (stress.subs(known).doit() * sp.Matrix(pb.normal(x, y, z))).tolist()
    equations = [sp.Eq(pb.div(row), 0) for row in stress.tolist()]
    return pb.Problem(equations, CUBE, [*held, *pb.Traction(stress, [own for (own,) in load], on=free)])


@pytest.mark.parametrize(("values", "beside"), [((-z * (y - 1), z * (x - 1), 0), True), ((y, x, z), False)])
def test_cells_are_cut_beside_edges_once_a_solution_is_seen_to_be_rough_there(values, beside):
    solver = TreeSolver(Rows(Layout(twisted(values), draw_reference(3, 6, 0))))
    marker, root = ErrorMarking(solver.layout), solver.layout.root
    for _ in range(2):
        splits, _ = marker.splits(solver.solve(root), np.ones(3))
        root = refined(root, {leaf: [(axis, None) for axis in range(3)] for leaf in leaves(root)})
    assert {at is not None for cuts in splits.values() for _, at in cuts} == {beside}


def test_a_root_of_the_distance_from_an_edge_is_found():
    bar = pb.Box((x, -1, 1), (y, -1, 1), (z, 0, 1)) - pb.Box((x, 0, 1), (y, -1, 0), (z, 0, 1))
    u = pb.field("u", x, y, z)
    around = sp.atan2(-x - y, y - x)  # from the middle of the bar
    exact = sp.cbrt(x**2 + y**2) * sp.cos(sp.Rational(2, 3) * around) * sp.exp(z / 4)
    source = sp.exp(z / 4) * sp.cbrt(x**2 + y**2) * sp.cos(sp.Rational(2, 3) * around) / 16
    problem = pb.Problem(sp.Eq(pb.laplacian(u), source), bar, [pb.Dirichlet(u, exact)], exact=exact)
    solution = pb.solve(problem, tol=1e-3)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error(20_000) < 1e-3


def test_where_the_budget_ends_a_poorer_solution_vouches_for_the_last_one():
    bar = pb.Box((x, -1, 1), (y, -1, 1), (z, 0, 1)) - pb.Box((x, 0, 1), (y, -1, 0), (z, 0, 1))
    u = pb.field("u", x, y, z)
    exact = sp.cbrt(x**2 + y**2) * sp.cos(sp.Rational(2, 3) * sp.atan2(-x - y, y - x)) * sp.exp(z / 4)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), exact / 16), bar, [pb.Dirichlet(u, exact)], exact=exact)
    solution = pb.solve(problem, tol=1e-6, budget=1.0)
    assert (solution.status, solution.diagnostics.settings["cells"]) == ("stalled", 24)
    assert solution.true_error() < 3 * solution.error_estimate < 30 * solution.true_error()


def plate_with_a_hole(count):
    """Return a square plate of triangles with a hole of so many sides."""
    angles = 2 * np.pi * np.arange(count) / count
    round_, i = np.column_stack([np.cos(angles), np.sin(angles)]), np.arange(count)
    square = round_ / np.abs(round_).max(axis=1, keepdims=True)
    corners = [np.column_stack([ring, np.full(count, height)]) for height in (0, 1) for ring in (square, round_ / 2)]
    outer, inner, j = i, i + count, (i + 1) % count
    low = [np.stack([outer, inner, inner - i + j], axis=1), np.stack([outer, inner - i + j, j], axis=1)]
    high = [own[:, ::-1] + 2 * count for own in low]
    sides = []
    for ring, way in ((outer, 1), (inner, -1)):
        after = ring - i + j
        quads = [
            np.stack([ring, after, after + 2 * count], axis=1),
            np.stack([ring, after + 2 * count, ring + 2 * count], axis=1),
        ]
        sides += [own[:, ::way] for own in quads]
    return pb.Solid((x, y, z), np.concatenate(corners), np.concatenate([*low, *high, *sides]))


def test_cells_end_at_flat_faces_and_at_the_blunt_edges_of_a_hole():
    shape, u = plate_with_a_hole(16), pb.field("u", x, y, z)
    rows = Rows(Layout(pb.Problem(sp.Eq(pb.laplacian(u), 0), shape, [pb.Neumann(u, 0)]), draw_reference(3, 4, 0)))
    cells = leaves(first_tree(DataRefinement(rows), 1e-3))
    parts = [part for cell in cells for part in rows.layout.parts(cell)]
    cut = [part for part in parts if not part.whole]
    assert len(cut) == 16
    for part in cut:
        (rule,) = part.boundary.values()
        oblique = (np.abs(rule.normals) < 1 - 1e-9).all(axis=1) & (rule.weights > 1e-9 * rule.weights.max())
        assert np.ptp(rule.normals[oblique], axis=0).max() < 1e-6
    assert sum(part.volume for part in parts) == pytest.approx(shape.measure, rel=1e-4)


def test_heat_leaves_a_step_as_it_does_in_the_plane():
    """What flows through an upright whose cells reach beyond it would else be that of scattered points."""
    flat = pb.Rectangle((x, 0, 3), (z, 0, 2)) - pb.Rectangle((x, 0.5, 3), (z, 0.5, 2))
    solid = pb.Box((x, 0, 3), (y, 0, 2), (z, 0, 2)) - pb.Box((x, 0.5, 3), (y, 0, 2), (z, 0.5, 2))
    found = []
    for shape in (flat, solid):
        u = pb.field("u", *shape.coordinates)
        top = shape.boundary.where(lambda X: X[:, -1] > 2 - 1e-9)
        rest = shape.boundary.where(lambda X: X[:, -1] <= 2 - 1e-9)
        conditions = [pb.Dirichlet(u, 0, on=top), pb.Neumann(u, 0, on=rest)]
        found.append(pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 1), shape, conditions), tol=3e-3))
    X = solid.sample(500)
    exact = found[0](X[:, [0, 2]])
    assert found[1].status == "converged", found[1].diagnostics.message
    assert np.sqrt(np.mean((found[1](X) - exact) ** 2) / np.mean(exact**2)) < 3e-3


def _error_on_the_first_tree(shape, exact, most):
    u = pb.field("u", x, y, z)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), shape, [pb.Dirichlet(u, exact)])
    rows = Rows(Layout(problem, draw_reference(3, 8, 0)))
    fit = TreeSolver(rows).solve(first_tree(DataRefinement(rows), 1e-3))
    assert len(fit.parts) < most
    apart = size = 0.0
    for part in fit.parts:
        values = sp.lambdify((x, y, z), exact)(*part.points.T)
        found = part_values(rows.layout.reference, part, fit.weights[part], part.points)[:, 0]
        apart, size = apart + part.weights @ (found - values) ** 2, size + part.weights @ values**2
    return np.sqrt(apart / size)


def test_what_is_around_a_small_ball_is_found_on_the_first_tree():
    radius = 0.08
    shape = pb.Box((x, -1, 1), (y, -1, 1), (z, -1, 1)) - pb.Ball((x, y, z), (0.3, -0.1, 0.2), radius)
    exact = radius / sp.sqrt((x - 0.3) ** 2 + (y + 0.1) ** 2 + (z - 0.2) ** 2)
    assert _error_on_the_first_tree(shape, exact, 160) < 1e-3


def test_what_is_around_a_wire_is_found_on_the_first_tree():
    shape = pb.Box((x, -1, 1), (y, -1, 1), (z, 0, 1)) - pb.Cylinder((x, y, z), (-0.2, 0.1, -1), (-0.2, 0.1, 2), 0.05)
    exact = sp.log((x + 0.2) ** 2 + (y - 0.1) ** 2) * (1 + z / 4)
    assert _error_on_the_first_tree(shape, exact, 80) < 1e-3


def test_a_condition_that_ends_on_a_face_ends_cells_there():
    around, box = sp.atan2(z, x - 0.3), pb.Box((x, -1, 1), (y, 0, 1), (z, 0, 1))
    u, exact = pb.field("u", x, y, z), sp.sqrt(sp.sqrt((x - 0.3) ** 2 + z**2)) * sp.cos(around / 2)
    warm = [pb.Dirichlet(u, exact, on=side) for side in (box.x_min, box.x_max, box.y_min, box.y_max, box.z_max)]
    cold = pb.Dirichlet(u, 0, on=box.z_min.where(lambda X: X[:, 0] < 0.3))
    insulated = pb.Neumann(u, 0, on=box.z_min.where(lambda X: X[:, 0] >= 0.3))
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), box, [*warm, cold, insulated], exact=exact)
    solution = pb.solve(problem, tol=1e-3)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error(20_000) < 1e-3


def test_borders_of_conditions_within_faces_are_found_and_edges_of_a_solid_are_none():
    step = CUBE - pb.Box((x, 1, 2), (y, 0, 2), (z, 1, 2))
    patch = step.boundary.where(lambda X: (X[:, 2] < 1e-9) & (X[:, 0] < 0.5) & (X[:, 1] > 0.4))
    found = borders([patch, step.boundary.where(lambda X: X[:, 2] > 1 - 1e-9)], step)
    lines = sorted(np.ptp(line, axis=0).round(6).tolist() for line in found if line[0, 2] < 0.5)
    assert lines == [[0.0, 1.6, 0.0], [0.5, 0.0, 0.0]]
    assert np.allclose(found[found[:, 0, 2] > 0.5][:, :, 2], 1.0)


def test_cells_are_halved_until_some_are_smooth():
    """A solution that is rough in every cell may be singular, or have waves that the cells do not resolve."""
    layout = Layout(pb.problems.l_shape(), draw_reference(2, 9))
    marking, solver, sizes = ErrorMarking(layout), TreeSolver(Rows(layout)), np.ones(1)
    coarse = solver.solve(layout.root)
    assert not marking.decay(coarse).smooth.any()
    halved, _ = marking.refined(coarse, sizes)
    assert {tuple(leaf.size) for leaf in leaves(halved)} == {tuple(layout.root.size / 2)}
    while not (smooth := marking.decay(fit := solver.solve(halved)).smooth).any():
        halved, _ = marking.refined(fit, sizes)
    assert not smooth.all()
    graded, _ = marking.refined(fit, sizes)
    assert min(leaf.size.min() for leaf in leaves(graded)) < min(leaf.size.min() for leaf in leaves(halved)) / 3
