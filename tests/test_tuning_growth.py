"""Growing a solution: appended nodes and points give what a solve from scratch gives, in the right places."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import InputError
from pibls.features import draw_network
from pibls.features.scales import draw_enhancement
from pibls.methods import Recipe, fit
from pibls.solvers import LeastSquares
from pibls.system import Balanced
from pibls.tuning.grow import residual_points, steepness
from pibls.tuning.growth import Grown
from pibls.tuning.laboratory import Block, Laboratory


def from_scratch(problem, points, network):
    return fit(problem, points, network, Recipe("PIBLS", {}, 0, Balanced(), 0.0, LeastSquares()))


@pytest.mark.parametrize("name", ["helmholtz", "stokes", "annulus", "neumann_gauge", "periodic_advection"])
def test_appended_nodes_solve_like_nodes_from_the_start(name):
    lab = Laboratory(pb.problems.catalogue()[name](), 0)
    blocks = [Block(80, (3.0, 3.0)), Block(60, (4.0, 4.0))]
    points = lab.points(140)
    wide = lab.network(blocks)
    grown = lab.grown(blocks[:1], points).with_nodes(wide.features[1:])
    assert grown.network.size == wide.size
    X = lab.problem.domain.sample(200)
    zero = (0,) * lab.axes
    wanted = [(field, zero) for field in lab.problem.field_names]
    fresh = from_scratch(lab.problem, points, wide)
    scale = fresh.true_error()
    for a, b in zip(grown.solution().evaluate(X, wanted), fresh.evaluate(X, wanted), strict=True):
        # The rows of the first block set the scale of all, so that the two weigh conditions a little differently.
        assert np.abs(a - b).max() < 30 * scale * np.abs(b).max() + 1e-9


def test_appended_points_are_worth_the_same_points_from_the_start():
    lab = Laboratory(pb.problems.helmholtz(), 0)
    blocks = [Block(120, (4.0, 4.0))]
    first, second = lab.points(120), Laboratory(lab.problem, 1).points(60)
    grown = lab.grown(blocks, first).with_points(second)
    assert len(grown.rhs) == grown.factor.shape[0] == sum(len(s) for p in (first, second) for s in p)
    solution = grown.solution()
    both = {s: np.concatenate([p.sets[s].points for p in (first, second)]) for s in (0, 1)}
    together = pb.Points.from_arrays(lab.problem, both[0], both[1])
    assert solution.true_error() == pytest.approx(
        from_scratch(lab.problem, together, lab.network(blocks)).true_error(), rel=0.5
    )
    assert sum(r.rows for r in solution.diagnostics.residuals.values()) == len(grown.rhs)
    wider = grown.with_nodes(lab.network([*blocks, Block(100, (5.0, 5.0))]).features[1:])
    assert wider.solution().true_error() < 0.01 * solution.true_error()


def test_enhancement_nodes_can_be_appended_and_features_below_them_cannot():
    problem = pb.problems.advection()
    rng = np.random.default_rng(0)
    network = draw_network(rng, problem.domain.bounds, [("tanh", 20, 4.0)], [("tanh", 10, 1.0)])
    points = pb.Points.sample(problem, 200)
    grown = Grown.start(problem, network, points)
    more = draw_enhancement(rng, "tanh", 20, 30, 1.0)
    wider = grown.with_nodes([more])
    assert wider.network.enhancement_nodes == 40
    fresh = from_scratch(problem, points, wider.network)
    assert 0.3 < wider.solution().true_error() / fresh.true_error() < 3
    with pytest.raises(InputError, match="below enhancement nodes"):
        grown.with_nodes(network.features)


def test_grow_gains_digits_and_grows_again():
    lab = Laboratory(pb.problems.helmholtz(), 0)
    coarse = lab.grown([Block(150, (5.0, 5.0))], lab.points(150)).solution()
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
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    exact = pb.Problem(u.diff(x, 2) + 1, line, [pb.Dirichlet(u, 0, exact=True)])
    with pytest.raises(InputError, match="exact=True cannot be grown"):
        pb.PIELM(nodes=20).fit(exact, pb.Points.sample(exact, 40)).grow(nodes=10)
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
    lab = Laboratory(problem, 0)
    solution = lab.grown([Block(40, (3.0,))], lab.points(40)).solution()
    assert solution.grow(points=50).diagnostics.rows == solution.diagnostics.rows + 50


def test_error_field_is_as_large_as_the_error_and_is_stored(tmp_path):
    solution = pb.solve(pb.problems.helmholtz(), tol=1e-3)
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
