"""Activations against 40-digit arithmetic, and their refusals."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from features_helpers import BACKENDS, EXACT, asarray_of
from pibls.errors import FeatureError
from pibls.features import ACTIVATIONS, Activation, activation

SMOOTH = [name for name in ACTIVATIONS if name != "relu"]
# Inside, on both flanks and far in both tails; irrational so that no zero of a derivative is hit.
POINTS = [-41.7, -18.33, -7.21, -2.618, -1.1234, -0.3121, -0.00113, 0.00271, 0.4567, 0.9113, 1.7172, 3.1234, 9.87, 30.1]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("order", range(7))
def test_derivatives_keep_their_relative_accuracy_even_in_the_tails(name, order):
    with mpmath.workdps(60):
        exact = np.array([float(mpmath.diff(EXACT[name], mpmath.mpf(z), order)) for z in POINTS])
    computed = activation(name).derivatives(np.array(POINTS), [order])[order]
    np.testing.assert_allclose(computed, exact, rtol=2e-13, atol=0)


@pytest.mark.parametrize("name", SMOOTH)
def test_high_orders_follow_the_closed_forms(name):
    z = np.linspace(-2, 2, 9) + 0.01
    with mpmath.workdps(60):
        exact = np.array([float(mpmath.diff(EXACT[name], mpmath.mpf(v), 12)) for v in z])
    computed = activation(name).derivatives(z, [12])[12]
    np.testing.assert_allclose(computed, exact, rtol=0, atol=1e-11 * abs(exact).max())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_only_the_orders_asked_for_and_the_same_in_any_company(name, backend):
    asarray = asarray_of(backend)
    highest = min(ACTIVATIONS[name].smoothness, 6)
    orders = range(int(highest) + 1)
    z = np.random.default_rng(1).normal(scale=3, size=(4, 5))
    together = ACTIVATIONS[name].derivatives(asarray(z), orders)
    assert set(together) == set(orders)
    for order in orders:
        alone = ACTIVATIONS[name].derivatives(asarray(z), [order])
        assert set(alone) == {order}
        reference = ACTIVATIONS[name].derivatives(z.copy(), [order])[order]
        np.testing.assert_array_equal(np.asarray(alone[order]), np.asarray(together[order]))
        np.testing.assert_allclose(np.asarray(alone[order]), reference, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_argument_is_left_untouched(name):
    z = np.linspace(-3, 3, 11)
    before = z.copy()
    ACTIVATIONS[name].derivatives(z, [0, 1])
    np.testing.assert_array_equal(z, before)


def test_relu_has_a_value_and_a_step():
    result = activation("relu").derivatives(np.array([-2.0, 0.0, 3.0]), [0, 1])
    np.testing.assert_array_equal(result[0], [0, 0, 3])
    np.testing.assert_array_equal(result[1], [0, 0, 1])


@pytest.mark.parametrize("order", [2, 5])
def test_relu_refuses_curvature_and_says_why(order):
    message = rf"'relu' .* up to order 1; .* asks for order {order}\..*zero almost everywhere.*delta.*'tanh'"
    with pytest.raises(FeatureError, match=message):
        activation("relu").require(order)
    with pytest.raises(FeatureError, match=f"order {order}"):
        activation("relu").derivatives(np.zeros(2), [0, order])


def test_smooth_activations_allow_any_order():
    for name in SMOOTH:
        assert activation(name).smoothness == math.inf
        activation(name).require(50)


def test_unknown_names_get_the_list_and_the_closest_match():
    with pytest.raises(FeatureError, match=r"'tanh', 'sigmoid'.*Got 'Tahn' instead. Did you mean 'tanh'\?"):
        activation("Tahn")
    with pytest.raises(FeatureError, match=r"Got 3 instead\. Pass an Activation"):
        activation(3)
    own = Activation("square", 2, lambda z, orders: dict.fromkeys(orders, z))
    assert activation(own) is own
