"""Corners where given values jump: found, eased, looked at closely, and met by nodes that know the singularity."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.features.jumps import draw_jumps
from pibls.geometry.landmarks import corners
from pibls.methods import Recipe
from pibls.methods.nonlinear import fit_nonlinear
from pibls.solvers import LeastSquares
from pibls.system import Balanced
from pibls.tuning.jumps import eased, graded, jump_corners
from pibls.tuning.laboratory import Block, Laboratory

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))


def laplace(domain, conditions):
    return pb.Problem(pb.laplacian(u), domain, conditions)


def found(problem):
    return sorted(corner.point for corner in jump_corners(problem))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_jumps_are_found_at_any_size(size):
    square = pb.Rectangle((x, 0, size), (y, 0, size))
    rest = square.left | square.right | square.bottom
    problem = laplace(square, [pb.Dirichlet(u, 3, on=square.top), pb.Dirichlet(u, 1, on=rest)])
    assert found(problem) == [(0.0, size), (size, size)]


def test_values_that_meet_do_not_jump():
    rest = SQUARE.left | SQUARE.right | SQUARE.bottom
    lid = [pb.Dirichlet(u, x * (1 - x), on=SQUARE.top), pb.Dirichlet(u, 0, on=rest)]
    assert found(laplace(SQUARE, lid)) == []
    assert found(pb.problems.regularised_cavity()) == []
    half = [pb.Dirichlet(u, x, on=SQUARE.top), pb.Dirichlet(u, 0, on=rest)]
    assert found(laplace(SQUARE, half)) == [(1.0, 1.0)]


def test_only_given_values_can_jump():
    slope = [pb.Neumann(u, 1, on=SQUARE.top), pb.Dirichlet(u, 0, on=SQUARE.left | SQUARE.right | SQUARE.bottom)]
    assert found(laplace(SQUARE, slope)) == []
    time = SQUARE * pb.TimeInterval(sp.Symbol("t", real=True), 0, 1)
    t = time.time
    w = pb.field("w", x, y, t)
    moving = pb.Problem(w.diff(t) - pb.laplacian(w), time, [pb.Dirichlet(w, 1), pb.Initial(w, 0)])
    assert jump_corners(moving) == ()


def test_corners_of_polygons_count_too():
    triangle = pb.Polygon((x, y), [(0, 0), (2, 0), (0, 1)])
    sides = triangle.boundary.where(lambda X: X[:, 1] < 1e-9), triangle.boundary.where(lambda X: X[:, 1] > -1)
    below = [pb.Dirichlet(u, 1, on=sides[0]), pb.Dirichlet(u, 1, on=sides[1])]
    assert found(laplace(triangle, below)) == []


@pytest.mark.parametrize("build", [pb.problems.cavity, pb.problems.regularised_cavity])
def test_eased_rows_are_the_same_equations_times_a_function(build):
    problem = build()
    ends = corners(SQUARE, 0.0)[:2]
    other = eased(problem, ends)
    X = problem.domain.sample(20, seed=3)
    factors = []
    for one, two in zip(problem.statements, other.statements, strict=True):
        state = list(np.random.default_rng(0).standard_normal((len(one.form.terms), len(X))))
        before, after = (s.form.residual_function(X, None, state) for s in (one, two))
        factors.append(after / before)
        assert one.form.is_linear == two.form.is_linear
        slopes = zip(one.form.coefficient_functions, two.form.coefficient_functions, strict=True)
        extra = () if one.form.is_linear else state
        for a, b in slopes:
            assert np.allclose(b(X, None, extra), factors[-1] * a(X, None, extra))
    radii = np.prod([np.hypot(*(X - end.point).T) for end in ends], axis=0)
    assert np.corrcoef(radii, factors[0])[0, 1] > 0.9
    assert (factors[0] < factors[2]).all(), "rows of second order vanish faster than those of first order"
    assert np.allclose(factors[-1], 1.0), "an average is of no corner"
    assert eased(problem, ()) is problem


def test_graded_points_stay_where_they_belong():
    problem = pb.problems.cavity()
    ends = jump_corners(problem)
    before = pb.Points.sample(problem, 500, 200, method="kronecker")
    after = graded(problem, before, ends, seed=0)
    assert [len(s) for s in after.sets] == [len(s) for s in before.sets]
    assert SQUARE.contains(after.interior).all()
    for statement in problem.statements[3:6]:
        where, part = after.sets[statement.source], statement.place.part
        assert part.contains(where.points).all()
        assert np.allclose(where.normals, part.normals(where.points))
    for end in ends:
        distances = [np.hypot(*(points.interior - end.point).T) for points in (before, after)]
        assert (distances[1] < 0.02).sum() > (distances[0] < 0.02).sum() + 5
        top = [np.hypot(*(points.sets[3].points - end.point).T).min() for points in (before, after)]
        assert top[1] < 0.3 * top[0]
    assert graded(problem, before, (), seed=0) is before


def test_nodes_hold_the_flow_at_the_end_of_a_lid():
    """Taylor's solution of the Stokes equations in a quarter plane, one wall of which slides, is among them."""
    [corner] = [c for c in corners(SQUARE, 0.0) if c.point == (0.0, 1.0)]
    [group] = draw_jumps(SQUARE, [corner])
    rng = np.random.default_rng(0)
    r, theta = 10 ** (-3 * rng.random(300)), -math.pi / 2 * rng.random(300)
    X = np.array(corner.point) + r[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])
    lap, dx, dy = group.combine(X, [{(2, 0): 1.0, (0, 2): 1.0}, {(1, 0): 1.0}, {(0, 1): 1.0}])
    s = 10 ** (-3 * rng.random(40))
    top, wall = (group.combine(P, [{(0, 0): 1.0}])[0] for P in (np.c_[s, 0 * s + 1], np.c_[0 * s, 1 - s]))
    zero, one = np.zeros_like, np.ones((40, 1))
    w = r[:, None]
    rows = [
        np.hstack([lap * w**2, zero(lap), -dx * w**2, np.zeros((300, 2))]),
        np.hstack([zero(lap), lap * w**2, -dy * w**2, np.zeros((300, 2))]),
        np.hstack([dx * w, dy * w, zero(dx), np.zeros((300, 2))]),
        *(np.hstack([v, zero(v), zero(v), one, 0 * one]) for v in (top, wall)),
        *(np.hstack([zero(v), v, zero(v), 0 * one, one]) for v in (top, wall)),
    ]
    matrix = np.vstack(rows)
    rhs = np.concatenate([np.zeros(900), np.ones(40), np.zeros(120)])
    scale = np.linalg.norm(matrix, axis=0)
    weights = np.linalg.lstsq(matrix / scale, rhs, rcond=1e-14)[0] / scale
    assert np.abs(matrix @ weights - rhs).max() < 1e-9


def test_a_corner_whose_cut_comes_back_gets_no_nodes():
    frame = pb.Rectangle((x, 0, 3), (y, 0, 3)) - pb.Rectangle((x, 1, 2), (y, 1, 2))
    inner = [corner for corner in corners(frame) if corner.angle > math.pi]
    assert len(inner) == 4
    assert draw_jumps(frame, inner) == ()


def test_nodes_and_points_at_the_corners_resolve_a_sliding_lid():
    problem = pb.problems.cavity(1)
    ends = jump_corners(problem)
    recipe = Recipe("PIBLS", {}, 0, Balanced(), 0.0, LeastSquares())
    Y = np.linspace(0.1, 0.9, 9)
    asymmetry = []
    for nodes in (draw_jumps(SQUARE, ends), ()):
        lab = Laboratory(eased(problem, ends), 0, jumps=ends, corner_nodes=nodes)
        network = lab.network([Block(100, (4.0, 4.0))])
        solution = fit_nonlinear(lab.problem, lab.points(100), network, recipe)
        # At a Reynolds number of one the flow is nearly that of Stokes, which is symmetric.
        left, right = (solution(np.c_[c + 0 * Y, Y])["u"] for c in (0.3, 0.7))
        asymmetry.append(np.abs(left - right).max())
        if nodes:
            assert solution([[0.5, 0.5]])["u"][0] == pytest.approx(-0.2057, abs=0.01)
    assert asymmetry[0] < 0.02 < asymmetry[1]
