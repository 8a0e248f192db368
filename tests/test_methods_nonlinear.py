"""Residual and Jacobian of nonlinear problems at points, against finite differences, SymPy and the linear assembly."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import _Model, fit_nonlinear, given_start
from pibls.errors import ProblemError
from pibls.features import draw_network
from pibls.geometry import Points
from pibls.methods import Recipe
from pibls.solvers import LeastSquares
from pibls.system import Balanced, assemble, linearised

x, y = pb.coordinates("x y")
u, v = pb.field("u", x, y), pb.field("v", x, y)
square = pb.Rectangle((x, 0, 1), (y, 0, 2))
RADIATION = pb.Condition(sp.Eq(pb.normal_derivative(u) + u**4, x), on=square.right)
MEASURED = pb.Observation(u, [[0.5, 0.5], [0.25, 1.0]], [1.0, 2.0], noise=[0.1, 0.01])


def flow():
    """Two fields, a nonlinear condition with normals, measurements, an average and a condition that holds exactly."""
    equations = [
        sp.Eq(u * u.diff(x) + sp.exp(v) * u.diff(y), pb.laplacian(u) + x * y),
        sp.Eq(pb.div((1 + u**2) * pb.grad(v)), sp.sin(u)),
    ]
    held = pb.Condition(sp.Eq(v * (1 + u**2), y), on=square.left, exact=True)
    return pb.Problem(equations, square, [pb.Dirichlet(u, x), RADIATION, MEASURED, held, pb.Mean(v, 0)])


def model_of(problem, nodes=7, interior=12, seed=0):
    network = draw_network(np.random.default_rng(seed), problem.domain.bounds, [("tanh", nodes, 1.5)])
    return _Model(problem, Points.sample(problem, interior, seed=1), network, Balanced())


def fitted(problem, start=None, nodes=30, **options):
    network = draw_network(np.random.default_rng(0), problem.domain.bounds, [("sin", nodes, 2.0)])
    recipe = Recipe("PIBLS", {}, 0, Balanced(), 0.0, LeastSquares())
    return fit_nonlinear(problem, Points.sample(problem, 4 * nodes), network, recipe, start, **options)


@pytest.mark.parametrize("seed", range(3))
def test_the_linearised_rows_are_the_derivative_of_the_residual(seed):
    model = model_of(flow())
    weights, direction = np.random.default_rng(seed).standard_normal((2, len(model.zeros())))
    system = model.system(model.evaluate(weights))
    step = 1e-6
    points = [model.point(weights + sign * step * direction, system) for sign in (1, -1)]
    ahead, behind = (np.concatenate([p.soft, p.hard]) for p in points)
    exact = np.concatenate([system.matrix @ direction, system.constraints @ direction])
    np.testing.assert_allclose(exact, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6 * np.abs(exact).max())
    here = model.point(weights, system)
    np.testing.assert_allclose(system.matrix @ weights - system.rhs, here.soft, atol=1e-11)
    np.testing.assert_allclose(system.constraints @ weights - system.constraint_rhs, here.hard, atol=1e-11)


def test_residual_is_that_of_the_equation_with_the_fields_put_in():
    problem = pb.Problem(sp.Eq(u * u.diff(x), pb.laplacian(u) + x), square, [pb.Dirichlet(u, y)])
    model = model_of(problem)
    weights = np.random.default_rng(5).standard_normal(len(model.zeros()))
    X = model.points.interior
    nodes = model.network.evaluate(X, [(0, 0), (1, 0), (2, 0), (0, 2)])
    values = {index: array @ weights for index, array in nodes.items()}
    expected = values[0, 0] * values[1, 0] - values[2, 0] - values[0, 2] - X[:, 0]
    system = model.system(model.evaluate(weights))
    found = model.point(weights, system).soft[: len(X)] / system.blocks[0].scale
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_scales_of_the_first_rows_stay():
    model = model_of(flow())
    rng = np.random.default_rng(1)
    one, two = (model.system(model.evaluate(rng.standard_normal(len(model.zeros())))) for _ in range(2))
    assert [b.scale for b in one.blocks] == [b.scale for b in two.blocks]


def test_torch_gives_the_same_system():
    torch = pytest.importorskip("torch")
    model = model_of(flow())
    network = model.network.to(lambda a: torch.as_tensor(np.array(a)))
    other = _Model(model.problem, model.points, network, Balanced())
    weights = np.random.default_rng(3).standard_normal(len(model.zeros()))
    one, two = model.system(model.evaluate(weights)), other.system(other.evaluate(torch.as_tensor(weights)))
    np.testing.assert_allclose(two.matrix.numpy(), one.matrix, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(two.rhs.numpy(), one.rhs, rtol=1e-10, atol=1e-12)
    found = other.point(torch.as_tensor(weights), two)
    np.testing.assert_allclose(found.soft.numpy(), model.point(weights, one).soft, rtol=1e-9, atol=1e-11)
    assert other.zeros().shape == (len(weights),)


def test_a_linear_problem_is_itself_linearised():
    problem = pb.problems.poisson()
    model = model_of(problem)
    expected = assemble(problem, model.points, model.network)
    system = model.system(model.evaluate(np.ones(len(model.zeros()))))
    np.testing.assert_array_equal(system.matrix, expected.matrix)
    np.testing.assert_array_equal(system.rhs, expected.rhs)


def test_steps_converge_quadratically_and_a_condition_holds_exactly():
    z = pb.coordinates("z")
    w = pb.field("w", z)
    # w = 2/(2 − z) with w² + w' = 3/2 at the left end; the other root of the condition gives another solution.
    held = pb.Condition(sp.Eq(w**2 + w.diff(z), sp.Rational(3, 2)), on=[0.0], exact=True)
    problem = pb.Problem(sp.Eq(w.diff(z), w**2 / 2), pb.Interval((z, 0, 1)), [held], exact=2 / (2 - z))
    solution = fitted(problem, given_start(1 + z / 2, problem))
    assert solution.true_error() < 1e-6
    assert "converged" in solution.diagnostics.message
    assert np.abs(np.asarray(solution.residual(held))).max() < 1e-9
    falls = [step["residual"] for step in solution.diagnostics.iterations]
    assert len(falls) < 10
    assert falls[-1] < 1e-3 * falls[0]


def test_long_steps_are_shortened_and_compromises_end():
    z = pb.coordinates("z")
    w = pb.field("w", z)
    line = pb.Interval((z, 0, 1))
    steep = pb.Problem(w.diff(z) + 30 * sp.atan(3 * (w - z)) - 1, line, [pb.Dirichlet(w, 0, on=line.left)], exact=z)
    assert fitted(steep).true_error() < 1e-6
    nothing = pb.Problem(w.diff(z, 2) + 20 * sp.exp(w), line, [pb.Dirichlet(w, 0)])
    lost = fitted(nothing)
    assert lost.diagnostics.residuals["the equation"].rms > 1e-2
    assert np.isfinite(lost.weights).all()


def test_what_cannot_be_linearised_is_refused():
    k = pb.unknown("k")
    inverse = pb.Problem(sp.Eq(-k * pb.laplacian(u), 1), square, [pb.Dirichlet(u, 0)])
    for attempt in (lambda: fitted(inverse), lambda: linearised(inverse, lambda X, wanted: [])):
        with pytest.raises(ProblemError, match=r"unknown parameters \(k\)"):
            attempt()


def test_a_state_where_the_equation_has_no_value_says_where():
    problem = pb.Problem(sp.Eq(pb.laplacian(u), sp.log(u - 5)), square, [pb.Dirichlet(u, 1)])
    with pytest.raises(ProblemError, match=r"log\(u - 5\).* is not finite at"):
        fitted(problem)


def test_where_zero_is_no_start_one_is_tried():
    problem = pb.Problem(sp.Eq(pb.laplacian(u), sp.log(u)), square, [pb.Dirichlet(u, 1)], exact={u: 1})
    method = pb.PIELM(nodes=200, activation="sin", scale=2.0)
    solution = method.fit(problem, pb.Points.sample(problem, 400))
    assert solution.status == "fitted"
    assert solution.true_error() < 1e-8
