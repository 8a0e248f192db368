"""The same fits on NumPy arrays and on torch tensors."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.features import draw_network
from pibls.geometry import Points
from pibls.system import Penalties, assemble

torch = pytest.importorskip("torch")

KINDS = {
    "poisson_star": "curved boundary, variable source",
    "robin_disk": "normals",
    "neumann_gauge": "mean",
    "periodic_advection": "pairs of points",
    "elasticity": "two fields, mixed conditions",
    "variable_coefficient_data": "user's function",
}


@pytest.mark.parametrize("name", KINDS)
def test_solutions_agree(name):
    problem = pb.problems.catalogue()[name]()
    points = Points.sample(problem, interior=200)
    method = pb.PIBLS(
        feature_groups=2, feature_nodes=25, enhancement_nodes=10, activation=["sin", "tanh"], scale=1.5, lambda_reg=1e-6
    )
    one, two = method.fit(problem, points), method.fit(problem, points, device="cpu")
    X = problem.domain.sample(100, "uniform", 7)
    first, second = one(X), two(X)
    if not isinstance(first, dict):
        first, second = {"u": first}, {"u": second}
    for field, values in first.items():
        assert np.abs(values - second[field]).max() < 1e-10 * max(1.0, np.abs(values).max()), field
    assert isinstance(two.weights, np.ndarray)
    assert isinstance(two.network.center, np.ndarray)
    for key, residual in one.diagnostics.residuals.items():
        assert two.diagnostics.residuals[key].rms == pytest.approx(residual.rms, rel=1e-5, abs=1e-12)


def test_exact_conditions_and_noise_agree():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    conditions = [
        pb.Dirichlet(u, x * y, exact=True, on=square.left | square.top),
        pb.Observation(u, [[0.5, 0.5], [0.2, 0.8]], [0.25, 0.16], noise=[0.1, 0.2]),
        pb.Periodic(u, y, derivatives=0, weight=0.1),
    ]
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), square, conditions)
    points = Points.sample(problem, interior=100, boundary=30)
    method = pb.PIELM(nodes=60, activation="sin", scale=2.0, lambda_reg=1e-6)
    X = square.sample(50)
    one, two = method.fit(problem, points), method.fit(problem, points, device=torch.device("cpu"))
    assert np.abs(one(X) - two(X)).max() < 1e-9
    edge = points.sets[1].points
    assert np.abs(two(edge) - edge[:, 0] * edge[:, 1]).max() < 1e-11


@pytest.mark.parametrize("name", ["neumann_gauge", "periodic_advection", "elasticity"])
def test_systems_agree_entry_by_entry(name):
    problem = pb.problems.catalogue()[name]()
    points = Points.sample(problem, interior=40)
    groups = [("sin", 6, 2.0), ("tanh", 5, 2.0)]
    network = draw_network(np.random.default_rng(0), problem.domain.bounds, groups, [("tanh", 4, 1.0)])
    scaling = Penalties(3.0, 5.0)
    one = assemble(problem, points, network, scaling)
    two = assemble(problem, points, network.to(torch.as_tensor), scaling)
    assert isinstance(two.matrix, torch.Tensor)
    assert two.matrix.T.is_contiguous()
    np.testing.assert_allclose(two.matrix.numpy(), one.matrix, rtol=1e-12, atol=1e-12 * np.abs(one.matrix).max())
    np.testing.assert_allclose(two.rhs.numpy(), one.rhs, rtol=1e-13, atol=1e-14)
    assert [b.scale for b in two.blocks] == pytest.approx([b.scale for b in one.blocks])
