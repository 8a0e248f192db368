"""Growing a solution: nodes and points are added in the right places."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Fitting, residual_points, steepness
from pibls.errors import InputError
from pibls.methods import Recipe, fit
from pibls.solvers import LeastSquares
from pibls.system import Balanced


def test_appended_points_and_nodes_solve_like_those_from_the_start():
    problem = pb.problems.helmholtz()
    coarse = Fitting(problem, 0).fit([(120, (4.0, 4.0))])
    grown = coarse.grow(points=60)
    sets = grown.points.sets
    together = pb.Points.from_arrays(problem, sets[0].points, sets[1].points)
    fresh = fit(problem, together, coarse.network, Recipe("PIBLS", {}, 0, Balanced(), 0.0, LeastSquares()))
    assert (grown.weights == fresh.weights).all()
    assert sum(r.rows for r in grown.diagnostics.residuals.values()) == sum(map(len, sets))


def test_conditions_that_hold_exactly_still_do():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    exact = pb.Problem(u.diff(x, 2) + 1, pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0, exact=True)])
    grown = pb.PIELM(nodes=20).fit(exact, pb.Points.sample(exact, 40)).grow(nodes=10)
    np.testing.assert_allclose(grown([[0.0], [1.0]]), 0.0, atol=1e-12)


def test_grow_gains_digits_and_grows_again():
    coarse = Fitting(pb.problems.helmholtz(), 0).fit([(150, (5.0, 5.0))])
    fine = coarse.grow(nodes=150, points=300)
    finer = fine.grow(nodes=150, points=300)
    assert fine.diagnostics.nodes == coarse.diagnostics.nodes + 150
    assert fine.diagnostics.rows > coarse.diagnostics.rows + 300
    assert fine.true_error() < 0.05 * coarse.true_error()
    assert finer.true_error() < 0.5 * fine.true_error()
    assert coarse.grow() is coarse
    assert (coarse.grow(nodes=20)([[0.3, 0.4]]) == coarse.grow(nodes=20)([[0.3, 0.4]])).all()


def test_a_loaded_solution_and_one_by_hand_can_grow(tmp_path):
    problem = pb.problems.poisson()
    by_hand = pb.PIELM(nodes=60, activation="sin", scale=2.0).fit(problem, pb.Points.sample(problem, 200))
    loaded = pb.load(by_hand.save(tmp_path / "small.pibls"))
    assert loaded.grow(nodes=80).true_error() < 0.01 * by_hand.true_error()
    broad = pb.PIBLS(feature_groups=2, feature_nodes=15, enhancement_groups=1, enhancement_nodes=20, scale=3.0)
    enhanced = broad.fit(problem, pb.Points.sample(problem, 300))
    grown = enhanced.grow(nodes=100)
    assert grown.network.enhancement_nodes == 120
    assert grown.true_error() < enhanced.true_error()


def test_what_cannot_grow_says_why():
    with pytest.raises(InputError, match="'nodes' parameter of grow"):
        pb.solve(pb.problems.advection()).grow(nodes=-1)


def test_new_points_crowd_where_the_residual_is_large_and_leave_no_part_out():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    peak = 1000 * sp.exp(-2000 * (x - sp.Rational(7, 10)) ** 2)
    problem = pb.Problem(u.diff(x, 2) - peak, pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    rough = pb.PIELM(nodes=30, activation="sin", scale=10.0).fit(problem, pb.Points.sample(problem, 200))
    chosen = residual_points(rough, 400, np.random.default_rng(0)).interior[:, 0]
    near = np.abs(chosen - 0.7) < 0.1
    assert near.mean() > 0.4  # 0.2 of the interval
    assert np.histogram(chosen, bins=5, range=(0, 1))[0].min() > 5


def test_steepness_finds_the_layer_and_growing_resolves_it():
    problem = pb.problems.boundary_layer()
    rough = pb.PIELM(nodes=200, activation="sin", scale=60.0).fit(problem, pb.Points.sample(problem, 600))
    grown = rough.grow(nodes=100, points=300)
    assert grown.true_error() < 0.05 * rough.true_error()
    X = np.linspace(0, 1, 1001)[:, None]
    steep, direction = steepness(grown, X)
    assert X[int(np.argmax(steep)), 0] > 0.99
    assert (np.abs(direction[steep > 0]) == 1).all()


def test_measurements_and_averages_are_not_counted_twice():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    places = np.linspace(0.1, 0.9, 5)
    problem = pb.Problem(
        u.diff(x, 2) + sp.pi**2 * sp.sin(sp.pi * x),
        line,
        [pb.Dirichlet(u, 0), pb.Observation(u, places, np.sin(np.pi * places))],
    )
    grown = Fitting(problem, 0).fit([(40, (3.0,))]).grow(points=20)
    assert grown.grow(points=50).diagnostics.rows == grown.diagnostics.rows + 50


def test_error_field_of_the_better_one_of_two_solutions_is_that_of_its_error():
    solution = pb.solve(pb.problems.annulus(), tol=1e-6)
    assert solution.distance_share < 0.5  # the other solution is the worse one of both
    X = solution.problem.domain.sample(2000)
    true = np.abs(solution(X) - solution.problem.exact_values(X)["u"])
    assert 0.3 < solution.error_field(X).max() / true.max() < 3


def test_error_field_is_as_large_as_the_error_and_is_stored(tmp_path):
    solution = pb.solve(pb.problems.helmholtz(), tol=1e-2)
    X = solution.problem.domain.sample(2000)
    true = np.abs(solution(X) - solution.problem.exact_values(X)["u"])
    field = solution.error_field(X)
    assert field.max() == pytest.approx(true.max(), rel=0.5)
    assert np.corrcoef(field, true)[0, 1] > 0.9
    again = pb.load(solution.save(tmp_path / "run.pibls"))
    assert (again.error_field(X) == field).all()
    assert np.isnan(solution.error_field([[7.0, 7.0]])).all()
    several = pb.solve(pb.problems.stokes(), tol=1e-3)
    assert set(several.error_field([[0.5, 0.5]])) == {"u", "v", "p"}
    by_hand = pb.PIELM(nodes=20).fit(pb.problems.advection(), pb.Points.sample(pb.problems.advection(), 30))
    with pytest.raises(InputError, match="has no error field"):
        by_hand.error_field([0.5])
