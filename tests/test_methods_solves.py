"""Whole solves: what must not change the answer, what must, and how fast the error falls."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import SolveError
from pibls.geometry import Points, PointSet

SINES = pb.PIELM(nodes=120, activation="sin", scale=2.0)
SMALL = pb.PIELM(nodes=60, activation="sin", scale=2.0)


def poisson(factor=1.0, order=1, names="x y", field="u", scale=1, shift=0):
    """−Δu = f on a square whose coordinates are stretched and moved, with the same solution in every one of them."""
    x, y = pb.coordinates(names)
    u = pb.field(field, x, y)
    X, Y = (x - shift) / scale, (y - shift) / scale
    exact = sp.sin(2 * X) * sp.cosh(Y) + X**2
    square = pb.Rectangle((x, shift, shift + scale), (y, shift, shift + scale))
    source = -(sp.diff(exact, x, 2) + sp.diff(exact, y, 2))
    conditions = [
        pb.Dirichlet(u, exact, on=square.left | square.right),
        pb.Neumann(u, -exact.diff(y), on=square.bottom),
        pb.Dirichlet(u, exact, on=square.top),
    ]
    equation = sp.Eq(-factor * pb.laplacian(u), factor * source, evaluate=False)
    return pb.Problem(equation, square, conditions[::order], exact=exact)


def fitted(problem, method=SINES, interior=300, seed=0):
    return method.fit(problem, Points.sample(problem, interior=interior, boundary=120), seed=seed)


@pytest.fixture(scope="module")
def unit_points():
    return poisson().domain.sample(200, "uniform", 9)


@pytest.fixture(scope="module")
def reference(unit_points):
    solution = fitted(poisson())
    assert solution.true_error() < 1e-6
    return solution(unit_points)


def test_stretching_and_moving_the_coordinates_leaves_the_answer(reference, unit_points):
    far = fitted(poisson(scale=1000, shift=5))
    np.testing.assert_allclose(far(1000 * unit_points + 5), reference, atol=1e-6)
    assert far.true_error() < 1e-6


def test_tiny_coordinates_leave_the_answer(reference, unit_points):
    tiny = fitted(poisson(scale=sp.Rational(1, 10**6)))
    np.testing.assert_allclose(tiny(1e-6 * unit_points), reference, atol=1e-6)


def test_permuting_conditions_leaves_the_answer(reference, unit_points):
    np.testing.assert_allclose(fitted(poisson(order=-1))(unit_points), reference, atol=1e-6)


@pytest.mark.parametrize("factor", [10**6, sp.Rational(1, 10**6), -1])
def test_multiplying_the_equation_leaves_the_answer(reference, unit_points, factor):
    np.testing.assert_allclose(fitted(poisson(factor=factor))(unit_points), reference, atol=1e-7)


def test_names_do_not_matter(reference, unit_points):
    other = fitted(poisson(names="alpha beta", field="temperature"))
    assert (other(unit_points) == reference).all()
    assert (other(alpha=unit_points[:, 0], beta=unit_points[:, 1]) == reference).all()


def test_stacking_the_points_twice_leaves_the_answer(unit_points):
    problem = poisson()
    points = Points.sample(problem, interior=200, boundary=80)
    twice = Points(tuple(PointSet(np.vstack([s.points] * 2), _twice(s.normals)) for s in points))
    ridge = pb.PIELM(nodes=50, activation="sin", scale=2.0, lambda_reg=1e-6)
    # Twice the rows count as much as half the ridge.
    half = pb.PIELM(nodes=50, activation="sin", scale=2.0, lambda_reg=2e-6)
    one, two = ridge.fit(problem, points)(unit_points), half.fit(problem, twice)(unit_points)
    np.testing.assert_allclose(one, two, atol=1e-9)


def _twice(array):
    return None if array is None else np.vstack([array] * 2)


def test_seeds_reproduce_bit_for_bit_and_differ_from_each_other(reference, unit_points):
    again, other = fitted(poisson()), fitted(poisson(), seed=1)
    assert (again(unit_points) == reference).all()
    assert not np.array_equal(other.weights, again.weights)
    np.testing.assert_allclose(other(unit_points), reference, atol=1e-6)
    assert (other(unit_points) != reference).any()


def test_permuting_equations_and_fields_leaves_the_answer():
    x = pb.coordinates("x")
    interval = pb.Interval((x, 0, 1))

    def solved(first, second, order):
        u, v = pb.field(first, x), pb.field(second, x)
        equations = [sp.Eq(u.diff(x), v), sp.Eq(v.diff(x), -u)]
        conditions = [pb.Dirichlet(u, 0, on=interval.left), pb.Dirichlet(v, 1, on=interval.left)]
        problem = pb.Problem(equations[::order], interval, conditions[::order], exact={u: sp.sin(x), v: sp.cos(x)})
        return SMALL.fit(problem, Points.sample(problem, interior=100))

    X = np.linspace(0, 1, 60)
    for first, second, order in (("u", "v", 1), ("u", "v", -1), ("b", "a", 1)):
        solution = solved(first, second, order)
        values = solution(X)
        assert set(values) == {first, second}
        np.testing.assert_allclose(values[first], np.sin(X), atol=1e-10)
        np.testing.assert_allclose(values[second], np.cos(X), atol=1e-10)


def test_error_falls_by_decades_with_the_nodes():
    problem = poisson()
    points = Points.sample(problem, interior=500, boundary=160)
    nodes = np.array([50, 100, 200])
    errors = [
        np.median(
            [
                pb.PIELM(nodes=m, activation="sin", scale=2.5).fit(problem, points, seed=s).true_error(500)
                for s in range(3)
            ]
        )
        for m in nodes.tolist()
    ]
    assert errors[0] / errors[2] > 100
    rate = np.polyfit(np.log(nodes), np.log(errors), 1)[0]
    assert rate < -3.3  # two decades from 50 to 200


def test_error_is_measured_where_the_solve_never_looked():
    problem = poisson()
    points = Points.sample(problem, interior=300, boundary=120)
    X = problem.domain.sample(2000, "uniform", 12345)
    seen = {tuple(row) for row in points.interior}
    assert not any(tuple(row) in seen for row in X)
    solution = SINES.fit(problem, points)
    exact = problem.exact_values(X)["u"]
    expected = np.linalg.norm(solution(X) - exact) / np.linalg.norm(exact)
    assert solution.true_error() == pytest.approx(expected, rel=1e-12)


def test_true_error_is_the_largest_over_the_fields():
    problem = pb.problems.maxwell_1d()
    solution = SMALL.fit(problem, Points.sample(problem, interior=200))
    X = problem.domain.sample(400, "uniform", 3)
    exact, values = problem.exact_values(X), solution(X)
    errors = [np.linalg.norm(values[k] - exact[k]) / np.linalg.norm(exact[k]) for k in exact]
    assert solution.true_error(400, seed=3) == pytest.approx(max(errors))


# Conditions that hold exactly


def square_problem(*conditions, rhs=1):
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    return pb.Problem(sp.Eq(pb.laplacian(u), rhs), square, [make(u, square, x, y) for make in conditions])


def test_exact_condition_holds_at_its_points_to_round_off():
    problem = square_problem(lambda u, s, x, y: pb.Dirichlet(u, sp.sin(3 * x) + y, exact=True))
    points = Points.sample(problem, interior=60, boundary=24)
    solution = SMALL.fit(problem, points)
    X = points.sets[1].points
    assert np.abs(solution(X) - np.sin(3 * X[:, 0]) - X[:, 1]).max() < 1e-12
    soft = square_problem(lambda u, s, x, y: pb.Dirichlet(u, sp.sin(3 * x) + y))
    assert np.abs(SMALL.fit(soft, points).residual(soft.conditions[0])(X)).max() > 1e-6
    assert solution.diagnostics.residuals[repr(problem.conditions[0])].max < 1e-12
    assert solution.diagnostics.rows == 60 + 24
    assert solution.diagnostics.solver == "constrained lstsq"


def test_several_exact_conditions_that_share_corners_hold_together():
    problem = square_problem(
        lambda u, s, x, y: pb.Dirichlet(u, x + y, on=s.left | s.bottom, exact=True),
        lambda u, s, x, y: pb.Condition(sp.Eq(u, x + y), on=[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], exact=True),
        lambda u, s, x, y: pb.Neumann(u, 1, on=s.right, exact=True),
        lambda u, s, x, y: pb.Mean(u, 1.25, exact=True),
    )
    points = Points.sample(problem, interior=40, boundary=20)
    solution = pb.PIELM(nodes=90, activation="sin", scale=3.0).fit(problem, points)
    for condition, where in zip(problem.conditions[:3], points.sets[1:4], strict=True):
        assert np.abs(solution.residual(condition)(where.points)).max() < 1e-11
    mean = points.sets[4]
    assert mean.weights @ solution(mean.points) == pytest.approx(1.25, abs=1e-12)


def test_exact_conditions_that_contradict_each_other_are_refused():
    problem = square_problem(
        lambda u, s, x, y: pb.Condition(sp.Eq(u, 0), on=[[0.0, 0.0]], exact=True),
        lambda u, s, x, y: pb.Condition(sp.Eq(u, 1), on=[[0.0, 0.0], [1.0, 1.0]], exact=True),
    )
    with pytest.raises(SolveError, match="contradict each other"):
        SMALL.fit(problem, Points.sample(problem, interior=30))


def test_more_weight_means_less_residual():
    def residual(weight):
        # Contradicting values on one side: what one gains, the other loses.
        problem = square_problem(
            lambda u, s, x, y: pb.Dirichlet(u, 0, on=s.left, weight=weight),
            lambda u, s, x, y: pb.Dirichlet(u - 1, 0, on=s.left),
            lambda u, s, x, y: pb.Dirichlet(u, x, on=s.right),
        )
        points = Points.sample(problem, interior=80, boundary=40)
        return SMALL.fit(problem, points).diagnostics.residuals[repr(problem.conditions[0])].rms

    light, heavy = residual(1.0), residual(10.0)
    # Two rows w·u = 0 and u = 1 settle at u = 1/(1 + w²).
    assert light == pytest.approx(1 / 2, rel=0.01)
    assert heavy == pytest.approx(1 / 101, rel=0.01)


def test_a_point_cloud_is_solved_end_to_end():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    disk = pb.Disk((x, y), (0, 0), 1)
    edge, normals = disk.boundary.sample(60)
    cloud = pb.PointCloud((x, y), disk.sample(250), boundary=edge, normals=normals, parts={"up": edge[:, 1] > 0})
    exact = sp.exp(x) * sp.sin(y)
    flux = sp.Matrix([exact.diff(x), exact.diff(y)]).dot(sp.Matrix(pb.normal(x, y)))
    problem = pb.Problem(
        sp.Eq(pb.laplacian(u), 0), cloud, [pb.Dirichlet(u, exact), pb.Neumann(u, flux, on=cloud.up)], exact=exact
    )
    points = Points.sample(problem)
    assert [len(s) for s in points] == [250, 60, int((edge[:, 1] > 0).sum())]
    solution = pb.solve(problem, method=SINES)
    assert solution.true_error() < 1e-8
    assert solution.error_estimate < 1e-6
    assert solution.residual().values().shape == (250,)
    assert np.abs(np.asarray(solution.residual(problem.conditions[1]))).max() < 1e-6


def exactly_bounded(nodes, boundary, seed):
    """Fit a problem whose Dirichlet condition is exact; return the solution and the largest violation."""
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    exact = sp.exp(x) * sp.sin(3 * y)
    source = -exact.diff(x, 2) - exact.diff(y, 2)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), source), square, [pb.Dirichlet(u, exact, exact=True)], exact=exact)
    points = pb.Points.sample(problem, interior=800, boundary=boundary, seed=seed)
    method = pb.PIBLS(features=[("sin", nodes, 3.0)], enhancement_groups=0)
    solution = method.fit(problem, points, seed=seed)
    on_it = points.sets[1].points
    return solution, np.abs(solution(on_it) - problem.exact_values(on_it)["u"]).max()


@pytest.mark.parametrize("seed", range(3))
def test_an_exact_condition_costs_no_digits_on_a_wide_network(seed):
    solution, violation = exactly_bounded(400, 120, seed)
    assert violation < 1e-12
    assert solution.true_error() < 1e-11


@pytest.mark.parametrize("seed", range(10, 16))
def test_an_exact_condition_holds_on_a_narrow_network_too(seed):
    assert exactly_bounded(120, 60, seed)[1] < 1e-12
