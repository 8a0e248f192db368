"""Random draws: distributions, nestedness, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internals import draw_sparse_features, draw_steep_features
from pibls.errors import FeatureError
from pibls.features import ACTIVATIONS, BroadNetwork, draw_enhancement, draw_features, draw_network

NAMES = st.sampled_from(sorted(ACTIVATIONS))


def rng(seed=0):
    return np.random.default_rng(seed)


def test_sin_weights_and_phases_fill_a_box_evenly():
    h = np.array([0.5, 2.0])
    group = draw_features(rng(), h, "sin", 4096, (3.0, 7.0))
    w = group.weights * h[:, None]
    np.testing.assert_allclose(w.std(axis=1), [3, 7], rtol=0.01)
    unit = np.vstack([(w / np.array([[3.0], [7.0]]) / math.sqrt(3) + 1) / 2, group.bias / (2 * math.pi)])
    counts, _ = np.histogramdd(unit.T, bins=4, range=[(0, 1)] * 3)
    # Of independent nodes, the 64 cells of 64 nodes each would deviate by 8 on average.
    assert counts.sum() == 4096
    assert counts.std() < 4


def test_sin_weights_are_normal_in_many_dimensions():
    group = draw_features(rng(), np.ones(6), "sin", 20_000, 2.0)
    np.testing.assert_allclose(group.weights.std(axis=1), 2, rtol=0.03)
    np.testing.assert_allclose((group.weights**4).mean() / (group.weights**2).mean() ** 2, 3, rtol=0.05)


def test_sparse_nodes_see_few_coordinates_at_scales_around_the_given_one():
    group = draw_sparse_features(rng(), [1.0, 2.0, 1.0, 1.0, 1.0], "sin", 3000, 1.5, active=3)
    seen = (group.weights != 0).sum(axis=0)
    assert set(seen.tolist()) == {1, 2, 3}
    shares = (group.weights != 0).mean(axis=1)
    np.testing.assert_allclose(shares, 0.4, atol=0.05)  # two of five on average, none preferred
    narrower = draw_sparse_features(rng(), np.ones(5), "sin", 10, 1.5)
    assert set((narrower.weights != 0).sum(axis=0).tolist()) <= {1, 2}
    with pytest.raises(FeatureError, match="'active'"):
        draw_sparse_features(rng(), np.ones(5), "sin", 10, 1.5, active=0)


def test_steep_nodes_pass_through_their_places_along_the_slope():
    half, center = np.array([2.0, 0.5]), np.array([1.0, 3.0])
    places, slopes = np.array([[0.5, -0.2], [0.0, 0.9]]), np.array([[40.0, 0.0], [0.0, 80.0]])
    group = draw_steep_features(rng(), half, places, slopes)
    network = BroadNetwork(center, (group,))
    X = center + half * places
    values = network.evaluate(X, [(0, 0), (1, 0), (0, 1)])
    np.testing.assert_allclose(np.diag(values[0, 0]), 0, atol=1e-12)  # tanh passes zero there
    along = [values[1, 0][0, 0] * half[0], values[0, 1][1, 1] * half[1]]
    assert (np.array(along) > 0.3 * np.array([40.0, 80.0])).all()
    assert (np.array(along) < 5 * np.array([40.0, 80.0])).all()


@pytest.mark.parametrize("name", ["tanh", "gaussian", "softplus"])
def test_other_nodes_have_their_centre_in_the_box(name):
    h = np.array([0.5, 2.0])
    group = draw_features(rng(), h, name, 20_000, (3.0, 7.0))
    w = group.weights * h[:, None]
    assert (abs(w) <= [[3], [7]]).all()
    np.testing.assert_allclose(w.std(axis=1), np.array([3, 7]) / math.sqrt(3), rtol=0.02)
    # The plane z = 0 passes through the box exactly if |b| ≤ Σ|w_i|.
    assert (abs(group.bias) <= abs(w).sum(axis=0)).all()
    np.testing.assert_allclose(np.var(group.bias), (3**2 + 7**2) / 9, rtol=0.05)


def test_enhancement_inputs_have_the_wanted_spread():
    P = 400
    group = draw_enhancement(rng(), "tanh", P, 3000, 2.5)
    features = math.sqrt(2) * np.sin(rng(1).uniform(0, 2 * math.pi, size=(50, P))) / math.sqrt(2)
    np.testing.assert_allclose((features @ group.weights).std(), 2.5, rtol=0.05)
    assert abs(group.bias).max() <= 2.5
    np.testing.assert_allclose(group.bias.std(), 2.5 / math.sqrt(3), rtol=0.05)
    phases = draw_enhancement(rng(), "sin", P, 3000, 2.5).bias
    assert phases.min() >= 0
    assert 6 < phases.max() < 2 * math.pi


@settings(max_examples=30, deadline=None)
@given(name=NAMES, seed=st.integers(0, 2**32), few=st.integers(1, 20), more=st.integers(0, 30), d=st.integers(1, 3))
def test_wider_draws_begin_with_the_narrower_ones(name, seed, few, more, d):
    narrow = draw_features(rng(seed), np.ones(d), name, few, 2.0)
    wide = draw_features(rng(seed), np.ones(d), name, few + more, 2.0)
    np.testing.assert_array_equal(wide.weights[:, :few], narrow.weights)
    np.testing.assert_array_equal(wide.bias[:few], narrow.bias)
    narrow = draw_enhancement(rng(seed), name, 7, few, 2.0)
    wide = draw_enhancement(rng(seed), name, 7, few + more, 2.0)
    np.testing.assert_array_equal(wide.weights[:, :few], narrow.weights)
    np.testing.assert_array_equal(wide.bias[:few], narrow.bias)


def test_groups_do_not_depend_on_the_other_groups():
    bounds = [[0, 1], [-1, 3]]
    base = draw_network(rng(), bounds, [("sin", 5, 1.0), ("tanh", 6, 2.0)], [("tanh", 3, 1.0), ("sin", 4, 1.0)])
    other = draw_network(
        rng(),
        bounds,
        [("sin", 4, 1.0), ("tanh", 7, 2.0), ("sin", 1, 1.0)][:2],
        [("tanh", 9, 1.0), ("sin", 4, 1.0), ("tanh", 2, 1.0)],
    )
    np.testing.assert_array_equal(base.features[1].weights, other.features[1].weights[:, :6])
    np.testing.assert_array_equal(base.features[0].bias[:4], other.features[0].bias)
    np.testing.assert_array_equal(base.enhancement[1].weights, other.enhancement[1].weights)
    np.testing.assert_array_equal(base.enhancement[1].bias, other.enhancement[1].bias)


def test_a_seed_fixes_the_network_and_groups_are_independent():
    spec = [("tanh", 50, 1.0), ("tanh", 50, 1.0)]
    one, two = (draw_network(rng(3), [[0, 1]], spec, [("tanh", 5, 1.0)]) for _ in range(2))
    np.testing.assert_array_equal(one.features[1].weights, two.features[1].weights)
    np.testing.assert_array_equal(one.enhancement[0].weights, two.enhancement[0].weights)
    assert (one.features[0].weights != one.features[1].weights).all()
    generator = rng(3)
    first, second = (draw_network(generator, [[0, 1]], spec) for _ in range(2))
    assert (first.features[0].weights != second.features[0].weights).all()


def test_values_do_not_depend_on_the_units_of_the_box():
    spec = ([("tanh", 20, 2.0), ("sin", 20, (1.0, 3.0))], [("tanh", 10, 1.0)])
    unit = draw_network(rng(1), [[-1, 1], [-1, 1]], *spec)
    box = draw_network(rng(1), [[10, 14], [-3, -2]], *spec)
    X = rng(2).uniform(-1, 1, size=(15, 2))
    np.testing.assert_array_equal(box.center, [12, -2.5])
    moved = X * [2, 0.5] + box.center
    np.testing.assert_allclose(
        box.evaluate(moved, [(0, 0)])[0, 0], unit.evaluate(X, [(0, 0)])[0, 0], rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rng": 3}, r"'rng' of draw_features.*default_rng"),
        ({"half_widths": [1.0, 0.0]}, "'half_widths' of draw_features must be positive"),
        ({"half_widths": "no"}, "'half_widths' parameter"),
        ({"activation": "tan"}, "Did you mean 'tanh'"),
        ({"nodes": 0}, "'nodes' parameter of draw_features must be an integer of at least 1"),
        ({"nodes": 2.5}, "'nodes'"),
        ({"scale": -1.0}, "'scale' parameter of draw_features must be a finite real number above 0"),
        ({"scale": [1.0]}, "positive number or 2 of them"),
        ({"scale": "ab"}, "positive number or 2 of them"),
        ({"scale": [1.0, math.nan]}, "'scale'"),
    ],
)
def test_bad_draws_are_refused(change, message):
    good = {"rng": rng(), "half_widths": [1.0, 1.0], "activation": "tanh", "nodes": 3, "scale": 1.0}
    with pytest.raises(FeatureError, match=message):
        draw_features(**(good | change))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("tanh", 0, 3, 1.0), "'feature_nodes'"),
        (("tanh", 3, 0, 1.0), "'nodes'"),
        (("tanh", 3, 3, 0.0), "'scale'"),
    ],
)
def test_bad_enhancement_draws_are_refused(args, message):
    with pytest.raises(FeatureError, match=message):
        draw_enhancement(rng(), *args)


def test_bad_networks_are_refused():
    with pytest.raises(FeatureError, match="Each row of 'bounds'"):
        draw_network(rng(), [[1, 0]], [("tanh", 3, 1.0)])
    with pytest.raises(FeatureError, match="'bounds' parameter"):
        draw_network(rng(), [0, 1], [("tanh", 3, 1.0)])
    for bad in (("tanh", 3), "tan", 4):
        with pytest.raises(FeatureError, match=r"'features' of draw_network must be \(activation, nodes, scale\)"):
            draw_network(rng(), [[0, 1]], [bad])
    with pytest.raises(FeatureError, match="'enhancement' of draw_network"):
        draw_network(rng(), [[0, 1]], [("tanh", 3, 1.0)], [("tanh",)])
    with pytest.raises(FeatureError, match="at least one FeatureGroup"):
        draw_network(rng(), [[0, 1]], [])


def test_a_generator_that_cannot_spawn_is_refused():
    class Fixed(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words, dtype=np.uint32):
            return np.arange(1, n_words + 1, dtype=dtype)

    with pytest.raises(FeatureError, match="can be spawned"):
        draw_features(np.random.Generator(np.random.PCG64(Fixed())), [1.0], "tanh", 3, 1.0)
