"""Reduced coordinates: nodes that take sums over coordinates have the derivatives that SymPy finds."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from internals import Reduction
from pibls.errors import FeatureError
from pibls.features import BroadNetwork, FeatureGroup

DEGREES = (1, 2, 3, 1)
SYMBOLS = sp.symbols("x y z")


def network(seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, 4))
    weights[2], weights[:2, 3] = [0, 0, 0, 1], 0
    reduction = Reduction(weights, [1.0, 0.5, 2.0], DEGREES)
    group = FeatureGroup("sin", rng.normal(size=(4, 2)), rng.normal(size=2))
    return BroadNetwork(rng.normal(size=3), (group,), reduction=reduction)


def node(net, number):
    q, group = net.reduction, net.features[0]
    scaled = [(s - c) / h for s, c, h in zip(SYMBOLS, net.center, q.half_widths, strict=True)]
    sums = [sum(q.weights[i, k] * sp.legendre(n, scaled[i]) for i in range(3)) for k, n in enumerate(DEGREES)]
    return sp.sin(sum(w * own for w, own in zip(group.weights[:, number], sums, strict=True)) + group.bias[number])


@pytest.mark.parametrize("index", [(0, 0, 0), (1, 0, 0), (0, 0, 1), (2, 0, 0), (1, 1, 0), (0, 2, 1), (1, 0, 1)])
def test_derivatives_are_those_of_the_formula(index):
    net, X = network(), np.random.default_rng(1).uniform(-1, 1, (5, 3))
    orders = [(symbol, count) for symbol, count in zip(SYMBOLS, index, strict=True) if count]
    wanted = np.stack(
        [
            np.broadcast_to(sp.lambdify(SYMBOLS, node(net, k).diff(*orders) if orders else node(net, k))(*X.T), 5)
            for k in range(2)
        ],
        axis=1,
    )
    found, weights = net.evaluate(X, [index])[index], np.array([[1.0, 0.5], [-2.0, 3.0]])
    assert np.allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
    assert np.allclose(net.contract(X, [index], weights)[0], wanted @ weights, rtol=1e-9, atol=1e-9)


def test_derivatives_of_functions_are_those_of_all_nodes():
    rng = np.random.default_rng(0)
    groups = (
        FeatureGroup("sin", rng.normal(size=(3, 7)), rng.normal(size=7)),
        FeatureGroup("tanh", rng.normal(size=(3, 5)), rng.normal(size=5)),
    )
    net, X, weights = BroadNetwork(np.zeros(3), groups), rng.normal(size=(6, 3)), rng.normal(size=(12, 2))
    indices = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (1, 0, 1), (0, 0, 2)]
    for index, found in zip(indices, net.contract(X, indices, weights), strict=True):
        assert np.allclose(found, net.evaluate(X, [index])[index] @ weights, rtol=1e-12, atol=1e-12)


def test_torch_takes_reduced_coordinates_too():
    torch = pytest.importorskip("torch")
    net, X = network(), np.random.default_rng(2).uniform(-1, 1, (4, 3))
    form = {(2, 0, 0): 1.0, (0, 2, 0): np.arange(4.0), (0, 0, 0): 2.0}
    found = net.to(torch.as_tensor).combine(torch.as_tensor(X), [form])[0]
    assert np.allclose(found.numpy(), net.combine(X, [form])[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1.0]], [1.0], (0,)), "degrees"),
        (([[1.0]], [-1.0], (1,)), "half_widths"),
        (([[1.0, 2.0]], [1.0], (1,)), "weights"),
    ],
)
def test_reductions_refuse_what_is_none(arguments, words):
    with pytest.raises(FeatureError, match=words):
        Reduction(*arguments)


def test_networks_refuse_a_reduction_of_other_coordinates():
    with pytest.raises(FeatureError, match="reduction"):
        BroadNetwork([0.0, 0.0], [FeatureGroup("sin", [[1.0]], [0.0])], reduction=Reduction([[1.0]], [1.0], (1,)))
