"""Forces and moments of elastic bodies: on any tree, they balance through every section."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    Layout,
    LocalSystems,
    RowRequest,
    Rows,
    Sharing,
    TreeSolver,
    Turn,
    draw_reference,
    leaves,
    network_of,
    refined,
)

x, y, z = pb.coordinates("x y z")
NU = 0.3
SHEAR, LAME = 1 / (2 + 2 * NU), NU / (1 + NU) / (1 - 2 * NU)


def held_block(*space):
    """A block that is held at the bottom of its last axis, free at the sides, and pulled sideways at the top."""
    block = pb.Rectangle(*((s, 0, 1) for s in space)) if len(space) == 2 else pb.Box(*((s, 0, 1) for s in space))
    fields = [pb.field(name, *space) for name in "uvw"[: len(space)]]
    stress = pb.stress(fields, young=1, poisson=sp.Rational(3, 10))
    free = block.left | block.right if len(space) == 2 else block.left | block.right | block.front | block.back
    conditions = [*(pb.Dirichlet(own, 0, on=block.bottom) for own in fields), *pb.Traction(stress, 0, on=free)]
    conditions += pb.Traction(stress, [1, *[0] * (len(space) - 1)], on=block.top)
    return pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], block, conditions)


def graded(root, levels, corners):
    """A tree whose cells at corners are halved across the last axis, then those still there across the others."""
    for _ in range(levels):
        for axis in range(len(root.low))[::-1]:
            held = [leaf for leaf in leaves(root) if ((corners >= leaf.low) & (corners <= leaf.high)).all(axis=1).any()]
            root = refined(root, {leaf: [(axis, 0.5 * (leaf.low[axis] + leaf.high[axis]))] for leaf in held})
    return root


def section(network, height, axes, cuts):
    """The force across a section at a height, and its moment about the middle of the section."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    spans = list(pairwise(cuts))
    line = np.concatenate([a + (b - a) * (nodes + 1) / 2 for a, b in spans])
    shares = np.concatenate([(b - a) * weights / 2 for a, b in spans])
    grid = np.stack(np.meshgrid(*[line] * (axes - 1), indexing="ij"), axis=-1).reshape(-1, axes - 1)
    area = np.prod(np.stack(np.meshgrid(*[shares] * (axes - 1), indexing="ij"), axis=-1), axis=-1).ravel()
    X, last = np.column_stack([grid, np.full(len(grid), height)]), axes - 1
    first = [tuple(int(k == axis) for k in range(axes)) for axis in range(axes)]
    slopes = network.evaluate(X, first)
    along, across = SHEAR * (slopes[first[last]][:, 0] + slopes[first[0]][:, last]), slopes[first[last]][:, last]
    upright = LAME * sum(slopes[first[k]][:, k] for k in range(axes)) + 2 * SHEAR * across
    return area @ along, area @ upright, area @ (upright * (0.5 - X[:, 0]))


@pytest.mark.parametrize(("degree", "levels"), [(6, 4), (8, 7)])
def test_small_cells_at_the_corners_of_a_plane_block_exert_no_couple(degree, levels):
    solver = TreeSolver(Rows(Layout(held_block(x, y), draw_reference(2, degree, 0))))
    root = refined(solver.layout.root, {solver.layout.root: [(0, 0.5), (1, 0.5)]})
    root = graded(root, levels, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    network = network_of(solver.layout, solver.solve(root))
    ends = 0.5 ** np.arange(1, levels + 2)
    for height in (0.1, 0.45, 0.9):
        found = section(network, height, 2, np.unique([0, 1, *ends, *(1 - ends)]))
        np.testing.assert_allclose(found, [1.0, 0.0, 1.0 - height], atol=3e-3)


@pytest.mark.parametrize(("space", "balances"), [((x, y), 3), ((x, y, z), 6)])
def test_what_the_equations_of_a_cell_sum_up_to_leaves_through_its_faces(space, balances):
    """The divergence theorem for forces and moments, whatever the weights of the cell are."""
    rows = Rows(Layout(held_block(*space), draw_reference(len(space), 5, 0)))
    root = rows.layout.root
    for _ in range(2):
        root = refined(root, {leaf: [(axis, None) for axis in range(len(space))] for leaf in leaves(root)})
    held = Sharing(LocalSystems(rows)).ties_of(root)
    (part,) = (own for own in held if (own.cell.low == 0.25).all())
    (own,) = rows.assembled([part])
    flows = rows.flux.outflows.across([(part, face) for face in held[part].faces])
    out = [flow.own @ below + flow.besides for flow, below in zip(flows, traced(rows, part, held), strict=True)]
    assert own.means.shape == (balances, rows.width)
    np.testing.assert_allclose(sum(out), own.means, atol=1e-8 * np.abs(own.means).max())


def traced(rows, part, held):
    return rows.traces.rows_on([(part, face) for face in held[part].faces])


def turns(problem):
    return Rows(Layout(problem, draw_reference(len(problem.domain.coordinates), 4, 0))).balances.turns


def test_a_slender_bar_bends_on_eight_coarse_cells():
    # What a missing force does inside a cell is small beside the bending of the whole bar.
    bar = pb.Rectangle((x, 0, 8), (y, 0, 1))
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    stress = pb.stress([u, v], young=1, poisson=sp.Rational(3, 10), plane="stress")
    conditions = [*(pb.Dirichlet(own, 0, on=bar.left) for own in (u, v)), *pb.Traction(stress, [0, -1], on=bar.right)]
    conditions += pb.Traction(stress, 0, on=bar.top | bar.bottom)
    problem = pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], bar, conditions)
    solver = TreeSolver(Rows(Layout(problem, draw_reference(2, 6))))
    root = solver.layout.root
    for _ in range(3):
        root = refined(root, {leaf: [(0, None)] for leaf in leaves(root)})
    tip = network_of(solver.layout, solver.solve(root)).evaluate(np.array([[8.0, 0.5]]), [(0, 0)])
    assert abs(tip[0, 0][0, 1] / -2068.2 - 1) < 0.01  # from a solution with an estimated error of 4e-6


def test_bodies_turn_about_every_axis_and_flows_about_none():
    assert turns(held_block(x, y)) == (Turn((0, 1), (0, 1)),)
    assert turns(held_block(x, y, z)) == tuple(Turn(axes, axes) for axes in ((0, 1), (0, 2), (1, 2)))
    assert turns(pb.problems.elasticity()) == (Turn((0, 1), (0, 1)),)
    assert turns(pb.problems.stokes()) == turns(pb.problems.poisson()) == ()


def by_hand(problem):
    """The same body, with its equations written by Laplacians and gradients of the divergence."""
    body, space = problem.domain, problem.domain.space
    fields = sorted(problem.fields, key=str)
    shear, both = sp.Rational(5, 13), sp.Rational(25, 26) * pb.div(fields)
    equations = [shear * pb.laplacian(u) + both.diff(s) for u, s in zip(fields, space, strict=True)]
    return pb.Problem([sp.Eq(left, 0) for left in equations], body, problem.conditions)


@pytest.mark.parametrize("space", [(x, y), (x, y, z)])
def test_bodies_written_by_hand_are_those_written_by_their_stresses(space):
    # A mixed derivative may flow either way; the tractions say which way it does.
    problem = held_block(*space)
    found = []
    for one in (problem, by_hand(problem)):
        solver = TreeSolver(Rows(Layout(one, draw_reference(len(space), 4))))
        root = solver.layout.root
        fit = solver.solve(refined(root, {root: [(axis, None) for axis in range(len(space))]}))
        found.append(np.array([fit.weights[part] for part in fit.parts]))
    np.testing.assert_allclose(found[1], found[0], atol=1e-8 * np.abs(found[0]).max())


def test_tractions_on_a_round_body_tell_its_stresses():
    disc, (u, v) = pb.Disk((x, y), (0, 0), 1), (pb.field(name, x, y) for name in "uv")
    stress = pb.stress([u, v], young=1, poisson=sp.Rational(3, 10))
    problem = pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], disc, pb.Traction(stress, x))
    assert turns(by_hand(problem)) == turns(problem) == (Turn((0, 1), (0, 1)),)


def test_a_periodic_body_does_not_turn():
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    square, stress = pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.stress([u, v], young=1, poisson=0)
    conditions = [pb.Periodic(u, x), pb.Periodic(v, x)]
    conditions += [pb.Dirichlet(own, 0, on=square.bottom | square.top) for own in (u, v)]
    assert turns(pb.Problem([sp.Eq(pb.div(row), 1) for row in stress.tolist()], square, conditions)) == ()


def test_triangles_leave_the_residuals_of_the_rows_of_equations():
    rows, rng = Rows(Layout(held_block(x, y), draw_reference(2, 5, 0))), np.random.default_rng(0)
    (part,) = rows.layout.parts(rows.layout.root)
    (own,) = rows.assembled([part])
    (blocks,) = rows.requested([RowRequest(part, None, [one.terms for one in own.stated_equations], own.units)])
    full = np.concatenate([one.weighed(block) for one, block in zip(own.stated_equations, blocks, strict=True)])
    sources = dict(zip(own.stated_equations, rng.standard_normal((2, len(part.points), 1)), strict=True))
    right = own.right(part, lambda stated, _: sources.get(stated, np.zeros((len(stated.points), 1))))[0]
    given = np.concatenate([-one.weighed(values) for one, values in sources.items()])
    assert own.equation.shape[1] == rows.width + 1 < len(full)
    weights = rng.standard_normal((rows.width, 1))
    residuals = [own.equation[0] @ weights - right, full / np.sqrt(part.extent) @ weights - given]
    assert np.linalg.norm(residuals[0]) == pytest.approx(np.linalg.norm(residuals[1]), rel=1e-12)
