"""A solution as a torch module: the same values, and derivatives by torch itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pibls as pb
from pibls.errors import MissingDependencyError
from pibls.geometry import Points


def fitted(problem, activation="tanh"):
    method = pb.PIBLS(feature_groups=2, feature_nodes=25, enhancement_nodes=10, activation=activation, scale=2.0)
    return method.fit(problem, Points.sample(problem, interior=120))


@pytest.mark.parametrize("activation", ["tanh", "sin", ["gaussian", "swish"], "sigmoid", ["arctan", "softplus"]])
def test_values_and_derivatives_are_those_of_the_solution(activation):
    torch = pytest.importorskip("torch")
    solution = fitted(pb.problems.poisson_square(), activation)
    module = solution.to_torch()
    X = solution.problem.domain.sample(40, "uniform", 2)
    points = torch.tensor(X, requires_grad=True)
    values = module(points)
    size = np.abs(solution.weights).sum()
    assert values.shape == (40, 1)
    np.testing.assert_allclose(values.detach().numpy()[:, 0], solution(X), rtol=0, atol=1e-13 * size)
    (gradient,) = torch.autograd.grad(values.sum(), points, create_graph=True)
    (second,) = torch.autograd.grad(gradient[:, 0].sum(), points)
    x, y = solution.problem.domain.coordinates
    for found, wanted in ((gradient[:, 1], (y,)), (second[:, 0], (x, x)), (second[:, 1], (x, y))):
        expected = solution.derivative("u", *wanted)(X)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-12 * size + 1e-10)


def test_several_fields_are_columns():
    torch = pytest.importorskip("torch")
    solution = fitted(pb.problems.maxwell_1d())
    X = solution.problem.domain.sample(10)
    values = solution.to_torch()(torch.tensor(X)).detach().numpy()
    for column, name in enumerate(solution.problem.field_names):
        np.testing.assert_allclose(values[:, column], solution(X)[name], atol=1e-12 * np.abs(solution.weights).sum())


def test_the_output_weights_are_the_only_parameters_and_the_state_holds_the_nodes():
    torch = pytest.importorskip("torch")
    solution = fitted(pb.problems.advection())
    module = solution.to_torch()
    assert [name for name, _ in module.named_parameters()] == ["output"]
    state = module.state_dict()
    assert {"output", "center", "features_1_weights", "features_1_bias", "enhancement_0_weights"} <= set(state)
    assert all(tensor.dtype == torch.float64 for tensor in state.values())
    copy = fitted(pb.problems.advection()).to_torch()
    with torch.no_grad():
        copy.output.zero_()
    X = torch.linspace(0, 1, 7, dtype=torch.float64)[:, None]
    assert (copy(X) == 0).all()
    copy.load_state_dict(state)
    assert torch.equal(copy(X), module(X))
    module(X).sum().backward()
    assert torch.isfinite(module.output.grad).all()


def test_training_the_module_leaves_the_solution_alone():
    torch = pytest.importorskip("torch")
    solution = fitted(pb.problems.advection())
    before = solution.weights.copy()
    module = solution.to_torch()
    with torch.no_grad():
        module.output.add_(1.0)
    assert (solution.weights == before).all()


def test_without_torch_it_says_what_to_install(monkeypatch):
    solution = fitted(pb.problems.advection())
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"to_torch needs PyTorch.*install pibls\[torch\]"):
        solution.to_torch()
