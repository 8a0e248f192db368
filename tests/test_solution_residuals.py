"""The residual of every kind of condition, against derivatives asked for one by one."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import GeometryError, InputError, PiblsError, ProblemError
from pibls.geometry import Points

SMALL = pb.PIELM(nodes=40, activation="sin", scale=2.0)  # coarse on purpose: residuals are far from zero


@pytest.fixture(scope="module")
def heat():
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    domain = pb.Interval((x, -1, 2)) * pb.TimeInterval(t, 0, 1)
    observed = pb.Observation(u + t, [[0.0, 0.5], [1.0, 0.25]], [3.0, 4.0], noise=0.5)
    at_points = pb.Condition(sp.Eq(u.diff(x), x), on=[[0.5, 0.5], [1.5, 0.5]])
    conditions = [
        pb.Periodic(u, x),
        pb.Initial(u, sp.exp(sp.cos(3 * x))),
        pb.Mean(u, 2),
        observed,
        at_points,
        pb.Neumann(u, t),
        pb.Robin(u, 2, 3, x),
        pb.Dirichlet(u, sp.cos(t), on=domain.parts["left"]),
    ]
    problem = pb.Problem([sp.Eq(u.diff(t), u.diff(x, 2) + x)], domain, conditions)
    return SMALL.fit(problem, Points.sample(problem, interior=100, boundary=40)), u, x, t


def edge(heat):
    solution, *_ = heat
    return solution.problem.domain.boundary.sample(40, seed=5)


def test_equation_by_position_by_itself_and_by_default(heat):
    solution, u, x, t = heat
    X = solution.problem.domain.sample(25)
    expected = solution.derivative(u, t)(X) - solution.derivative(u, x, x)(X) - X[:, 0]
    for which in (0, -1, solution.problem.equations[0]):
        np.testing.assert_allclose(solution.residual(which)(X), expected, rtol=1e-9, atol=1e-9)
    assert (solution.residual()(X) == solution.residual(0)(X)).all()
    assert (
        solution.residual()(x=X[:, 0].reshape(5, 5), t=X[:, 1].reshape(5, 5)).ravel() == solution.residual()(X)
    ).all()
    assert np.abs(expected).max() > 1e-4


def test_a_foreign_nonlinear_equation(heat):
    solution, u, x, _ = heat
    X = solution.problem.domain.sample(25)
    residual = solution.residual(sp.Eq(u * u.diff(x), 3))(X)
    np.testing.assert_allclose(residual, solution(X) * solution.derivative(u, x)(X) - 3, rtol=1e-10, atol=1e-10)


def test_dirichlet_neumann_and_robin_at_given_points(heat):
    solution, u, x, _ = heat
    X, n = edge(heat)
    *_, neumann, robin, left = solution.problem.conditions
    flux = n[:, 0] * solution.derivative(u, x)(X)
    assert set(n[:, 0]) == {-1.0, 1.0}
    np.testing.assert_allclose(solution.residual(neumann)(X), flux - X[:, 1], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(solution.residual(robin)(X), 2 * solution(X) + 3 * flux - X[:, 0], rtol=1e-10, atol=1e-9)
    side = X[X[:, 0] == -1]
    np.testing.assert_allclose(solution.residual(left)(side), solution(side) - np.cos(side[:, 1]), atol=1e-12)


def test_normals_are_refused_inside(heat):
    solution, *_ = heat
    with pytest.raises(GeometryError, match="must hold points of"):
        solution.residual(solution.problem.conditions[5])([[0.5, 0.5]])


def test_periodic_is_the_jump_and_needs_points_of_the_faces(heat):
    solution, *_ = heat
    residual = solution.residual(solution.problem.conditions[0])
    t = np.linspace(0, 1, 7)
    low, high = np.column_stack([np.full(7, -1.0), t]), np.column_stack([np.full(7, 2.0), t])
    jump = solution(low) - solution(high)
    np.testing.assert_allclose(residual(low), jump, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(residual(high), -jump, rtol=1e-12, atol=1e-13)
    assert residual.values(9).shape == (9,)
    with pytest.raises(InputError, match="opposite faces"):
        residual([[0.5, 0.5]])


def test_initial_mean_and_points(heat):
    solution, u, x, _ = heat
    _, initial, mean, _, at_points, *_ = solution.problem.conditions
    X = np.array([[0.25, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(solution.residual(initial)(X), solution(X) - np.exp(np.cos(3 * X[:, 0])), atol=1e-12)
    # The average of a smooth function by the product of two Gauss rules, apart from the library's own quadrature.
    nodes, weights = np.polynomial.legendre.leggauss(40)
    grid = solution(x=(0.5 + 1.5 * nodes)[:, None], t=(0.5 + 0.5 * nodes)[None, :])
    average = weights @ grid @ weights / 4
    assert solution.residual(mean).values() == pytest.approx([average - 2], abs=1e-9)
    with pytest.raises(InputError, match=r"Mean.*on average only; use \.values\(\)"):
        solution.residual(mean)(X)
    slope = solution.derivative(u, x)(at_points.on) - at_points.on[:, 0]
    np.testing.assert_allclose(solution.residual(at_points).values(), slope, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(solution.residual(at_points)([[0.0, 0.0]]), solution.derivative(u, x)([[0.0, 0.0]]))


def test_observation_is_compared_with_its_own_values_only(heat):
    solution, *_ = heat
    observed = solution.problem.conditions[3]
    expected = solution(observed.points) + observed.points[:, 1] - observed.values
    np.testing.assert_allclose(solution.residual(observed).values(), expected, rtol=1e-12)
    with pytest.raises(InputError, match="at its own points only"):
        solution.residual(observed)([[0.0, 0.0]])


def test_conditions_of_no_problem(heat):
    solution, u, x, _ = heat
    foreign = pb.Neumann(u * x, 1)
    X, n = edge(heat)
    expected = n[:, 0] * (solution(X) + X[:, 0] * solution.derivative(u, x)(X)) - 1
    np.testing.assert_allclose(solution.residual(foreign)(X), expected, rtol=1e-10, atol=1e-10)


def test_as_an_array_it_is_the_residual_at_fresh_points_of_its_place(heat):
    solution, *_ = heat
    residual = solution.residual(solution.problem.conditions[1])
    values = np.asarray(residual)
    assert values.shape == (500,)
    X = solution.problem.domain.initial.sample(500, "kronecker", 1).points
    assert (values == residual(X)).all()
    assert np.asarray(residual, dtype=np.float32).dtype == np.float32
    assert residual.values(20, seed=3).shape == (20,)
    assert not np.array_equal(residual.values(20, seed=3), residual.values(20, seed=4))
    rms = np.sqrt(np.mean(values**2))
    assert repr(residual) == f"Residual(Initial(u = exp(cos(3*x)) on initial time): {rms:.1e} rms at 500 points)"
    assert np.asarray(solution.residual()).shape == (500,)


@pytest.mark.parametrize("which", [1, -2, 7])
def test_positions_beyond_the_equations(heat, which):
    with pytest.raises(InputError, match=rf"numbered from 0, and the last one is 0. Got {which}"):
        heat[0].residual(which)


def test_what_is_no_residual_of_this_solution(heat):
    solution, u, x, t = heat
    v = pb.field("v", x, t)
    for foreign in (pb.Dirichlet(v, 0), sp.Eq(u + v, 0), sp.Eq(u, pb.unknown("k")), pb.Mean(v, 0)):
        with pytest.raises(InputError, match=r"needs [vk]; this solution has only"):
            solution.residual(foreign)
    for wrong in ("u = 0", None, True, 1.5):
        with pytest.raises(ProblemError, match=r"SymPy equation|simply True|always true"):
            solution.residual(wrong)
    with pytest.raises(PiblsError):
        solution.residual(pb.Dirichlet(pb.field("u", x), 0))
    with pytest.raises(InputError, match="'n'"):
        solution.residual().values(0)


def test_two_fields():
    problem = pb.problems.maxwell_1d()
    solution = SMALL.fit(problem, Points.sample(problem, interior=80))
    X = problem.domain.sample(20)
    for i, statement in enumerate(problem.statements[:2]):
        values = solution.evaluate(X, [(t.field, t.multi_index) for t in statement.form.terms])
        coefficients = [f(X) for f in statement.form.coefficient_functions]
        expected = sum(c * v for c, v in zip(coefficients, values, strict=True)) + statement.form.source_function(X)
        np.testing.assert_allclose(solution.residual(i)(X), expected, rtol=1e-10, atol=1e-10)
