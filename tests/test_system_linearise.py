"""Residual and Jacobian of nonlinear problems at points, against finite differences, SymPy and the linear assembly."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import InputError, ProblemError
from pibls.features import draw_network
from pibls.geometry import Points
from pibls.system import Linearisation, assemble, linearised

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
    return Linearisation.of(problem, Points.sample(problem, interior, seed=1), network)


def together(pair):
    return np.concatenate(pair)


@pytest.mark.parametrize("seed", range(3))
def test_jacobian_is_the_derivative_of_the_residual(seed):
    model = model_of(flow())
    rng = np.random.default_rng(seed)
    weights, direction = rng.standard_normal((2, model.size))
    model = model.balanced(model.states(weights))
    system = model.system(weights)
    step = 1e-6
    ahead, behind = (together(model.residual(weights + sign * step * direction)) for sign in (1, -1))
    numerical = (ahead - behind) / (2 * step)
    exact = np.concatenate([system.matrix @ direction, system.constraints @ direction])
    np.testing.assert_allclose(exact, numerical, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
    np.testing.assert_array_equal(-system.rhs, model.residual(weights)[0])
    np.testing.assert_array_equal(-system.constraint_rhs, model.residual(weights)[1])


def test_residual_is_that_of_the_equation_with_the_fields_put_in():
    problem = pb.Problem(sp.Eq(u * u.diff(x), pb.laplacian(u) + x), square, [pb.Dirichlet(u, y)])
    model = model_of(problem)
    weights = np.random.default_rng(5).standard_normal(model.size)
    X = model.points.interior
    nodes = model.network.evaluate(X, [(0, 0), (1, 0), (2, 0), (0, 2)])
    values = {index: array @ weights for index, array in nodes.items()}
    expected = values[0, 0] * values[1, 0] - values[2, 0] - values[0, 2] - X[:, 0]
    np.testing.assert_allclose(model.residual(weights)[0][: len(X)], expected, rtol=1e-12, atol=1e-13)
    edge = model.points.sets[1].points
    boundary = model.network.evaluate(edge, [(0, 0)])[0, 0] @ weights - edge[:, 1]
    np.testing.assert_allclose(model.residual(weights)[0][len(X) :], boundary, rtol=1e-12, atol=1e-13)


def test_the_tangent_leads_where_the_step_leads():
    model = model_of(flow())
    weights = np.random.default_rng(1).standard_normal(model.size)
    model = model.balanced(model.states(weights))
    step, tangent = model.system(weights), model.tangent(model.states(weights))
    np.testing.assert_array_equal(step.matrix, tangent.matrix)
    np.testing.assert_allclose(step.rhs + step.matrix @ weights, tangent.rhs, atol=1e-11)
    hard = step.constraint_rhs + step.constraints @ weights
    np.testing.assert_allclose(hard, tangent.constraint_rhs, atol=1e-11)


def test_a_linearised_problem_is_assembled_to_the_same_system():
    problem = flow()
    model = model_of(problem)
    weights = np.random.default_rng(2).standard_normal(model.size)

    def state(X, wanted):
        nodes = model.network.evaluate(X, dict.fromkeys(index for _, index in wanted))
        rows = weights.reshape(2, -1)
        return [nodes[index] @ rows[problem.field_names.index(name)] for name, index in wanted]

    linear = linearised(problem, state)
    assert linear.is_linear
    assert not problem.is_linear
    expected = assemble(linear, model.points, model.network)
    found = model.balanced(model.states_of(state)).tangent(model.states(weights))
    for one, two in (
        (found.matrix, expected.matrix),
        (found.rhs, expected.rhs),
        (found.constraints, expected.constraints),
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)
    assert [b.scale for b in found.blocks] == pytest.approx([b.scale for b in expected.blocks])


def test_a_linear_problem_has_the_system_of_the_linear_assembly_at_any_state():
    problem = pb.problems.poisson()
    model = model_of(problem)
    expected = assemble(problem, model.points, model.network)
    for weights in (np.zeros(model.size), np.ones(model.size)):
        system = model.balanced(()).tangent(model.states(weights))
        np.testing.assert_array_equal(system.matrix, expected.matrix)
        np.testing.assert_array_equal(system.rhs, expected.rhs)


def test_torch_gives_the_same_system():
    torch = pytest.importorskip("torch")
    problem = flow()
    model = model_of(problem)
    network = model.network.to(lambda a: torch.as_tensor(np.array(a)))
    other = Linearisation.of(problem, model.points, network)
    weights = np.random.default_rng(3).standard_normal(model.size)
    model, other = model.balanced(model.states(weights)), other.balanced(other.states(torch.as_tensor(weights)))
    one, two = model.system(weights), other.system(torch.as_tensor(weights))
    np.testing.assert_allclose(two.matrix.numpy(), one.matrix, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(two.rhs.numpy(), one.rhs, rtol=1e-10, atol=1e-12)
    assert other.zeros().shape == (model.size,)


def test_what_cannot_be_linearised_is_refused():
    k = pb.unknown("k")
    inverse = pb.Problem(sp.Eq(-k * pb.laplacian(u), 1), square, [pb.Dirichlet(u, 0)])
    with pytest.raises(ProblemError, match=r"unknown parameters \(k\)"):
        model_of(inverse)
    with pytest.raises(ProblemError, match=r"unknown parameters \(k\)"):
        linearised(inverse, lambda X, wanted: [])
    problem = flow()
    with pytest.raises(InputError, match="sets"):
        Linearisation.of(problem, Points.sample(pb.problems.poisson(), 10), model_of(problem).network)


def test_a_state_where_the_equation_has_no_value_says_where():
    problem = pb.Problem(sp.Eq(pb.laplacian(u), sp.log(u)), square, [pb.Dirichlet(u, 1)])
    model = model_of(problem)
    with pytest.raises(ProblemError, match="not finite at"):
        model.residual(model.zeros())
