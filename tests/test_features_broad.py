"""Networks: derivatives of all nodes against mpmath and SymPy, forms against their definition, refusals."""

from __future__ import annotations

import dataclasses
from itertools import product

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from features_helpers import BACKENDS, EXACT, asarray_of, small_network
from internals import row_chunks
from pibls.errors import FeatureError
from pibls.features import ACTIVATIONS, Activation, BroadNetwork, EnhancementGroup, FeatureGroup, draw_network

SMOOTH = list(EXACT)
# One multi-index of each kind per dimension and order: pure, mixed, spread over all axes.
INDICES = {
    1: [(k,) for k in range(7)],
    2: [(0, 0), (1, 0), (0, 2), (2, 1), (4, 0), (3, 2), (2, 4), (0, 6)],
    3: [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 2), (1, 3, 1), (2, 2, 2)],
}


def exact_nodes(network, x, alpha, digits=30):
    """Derivative ∂^α of every node at one point, by mpmath's numerical differentiation with many digits."""

    def features(*point):
        shifted = [p - mpmath.mpf(c) for p, c in zip(point, network.center, strict=True)]
        return [
            EXACT[group.activation.name](mpmath.fdot(group.weights[:, j].tolist(), shifted) + group.bias[j])
            for group in network.features
            for j in range(group.nodes)
        ]

    def node(index):
        def value(*point):
            f = features(*point)
            if index < len(f):
                return f[index]
            index_in = index - len(f)
            for group in network.enhancement:
                if index_in < group.nodes:
                    y = mpmath.fdot(group.weights[:, index_in].tolist(), f) + group.bias[index_in]
                    return EXACT[group.activation.name](y)
                index_in -= group.nodes
            raise AssertionError

        return value

    with mpmath.workdps(digits):
        point = tuple(mpmath.mpf(v) for v in x)
        return np.array([float(mpmath.diff(node(i), point, alpha)) for i in range(network.size)])


def assert_close(computed, exact, alpha):
    np.testing.assert_allclose(computed, exact, rtol=1e-10, atol=1e-12 * abs(exact).max(), err_msg=str(alpha))


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("name", SMOOTH)
def test_feature_derivatives_are_exact(name, dimension):
    network = small_network([name], dimension, seed=dimension)
    x = np.random.default_rng(5).normal(size=dimension)
    computed = network.evaluate([x], INDICES[dimension])
    for alpha in INDICES[dimension]:
        exact = exact_nodes(network, x, alpha)
        assert_close(computed[alpha][0], exact, alpha)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", SMOOTH)
def test_enhancement_derivatives_are_exact(name, dimension):
    network = small_network(["sin"], dimension, enhancement=[name], seed=dimension)
    x = np.random.default_rng(6).normal(size=dimension)
    computed = network.evaluate([x], INDICES[dimension])
    for alpha in INDICES[dimension]:
        exact = exact_nodes(network, x, alpha)
        assert_close(computed[alpha][0], exact, alpha)


def test_enhancement_derivatives_are_exact_in_space():
    network = small_network(["tanh"], 3, enhancement=["tanh"], seed=3)
    x = np.array([0.3, -0.2, 0.1])
    computed = network.evaluate([x], INDICES[3])
    for alpha in INDICES[3]:
        exact = exact_nodes(network, x, alpha)
        assert_close(computed[alpha][0], exact, alpha)


def test_all_derivatives_up_to_third_order_agree_with_sympy():
    network = small_network(["tanh", "gaussian"], 2, enhancement=["sin"], features=1, seed=4)
    x, y = symbols = sp.symbols("x y")
    functions = {"tanh": sp.tanh, "gaussian": lambda z: sp.exp(-(z**2)), "sin": sp.sin}
    inputs = [v - sp.Float(c, 30) for v, c in zip(symbols, network.center, strict=True)]
    layers = []
    for groups in (network.features, network.enhancement):
        inputs = [
            functions[g.activation.name](
                sum(sp.Float(w, 30) * i for w, i in zip(g.weights[:, j], inputs, strict=True)) + sp.Float(g.bias[j], 30)
            )
            for g in groups
            for j in range(g.nodes)
        ]
        layers += inputs
    alphas = [alpha for alpha in product(range(4), repeat=2) if sum(alpha) <= 3]
    computed = network.evaluate([[0.4, -0.7]], alphas)
    for i, j in alphas:
        derivative = sp.lambdify(symbols, [node.diff(x, i, y, j) for node in layers], "mpmath")
        with mpmath.workdps(30):
            exact = [float(value) for value in derivative(mpmath.mpf(0.4), mpmath.mpf(-0.7))]
        np.testing.assert_allclose(computed[i, j][0], exact, rtol=1e-11)


def rich_network():
    """Runs that must be merged, runs that must not, and several activations on both levels."""
    return small_network(["tanh", "tanh", "sin", "gaussian"], 2, enhancement=["tanh", "sin", "tanh", "tanh"], seed=9)


ALPHAS = [alpha for alpha in product(range(5), repeat=2) if sum(alpha) <= 4]
coefficients = st.floats(-3, 3, allow_subnormal=False) | st.sampled_from([0.0, 1.0, "varying"])
forms = st.lists(st.dictionaries(st.sampled_from(ALPHAS), coefficients, max_size=6), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(forms=forms, seed=st.integers(0, 2**16), chunk=st.sampled_from([None, 1, 3, 100]), enhanced=st.booleans())
def test_combine_is_the_weighted_sum_of_derivatives(forms, seed, chunk, enhanced):
    network = rich_network() if enhanced else small_network(["tanh", "sin"], 2)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, 2))
    forms = [{a: rng.normal(size=7) if isinstance(c, str) else c for a, c in form.items()} for form in forms]
    derivatives = {alpha: network.evaluate(X, [alpha])[alpha] for alpha in ALPHAS}
    results = network.combine(X, forms, chunk_rows=chunk)
    assert len(results) == len(forms)
    for form, result in zip(forms, results, strict=True):
        terms = [np.multiply(np.reshape(c, (-1, 1)), derivatives[alpha]) for alpha, c in form.items()]
        size = 1 + sum((abs(term).max() for term in terms), 0.0)
        np.testing.assert_allclose(result, sum(terms, np.zeros((7, network.size))), rtol=1e-11, atol=1e-12 * size)


FORMS = [
    {(0, 0): 1.0},
    {(2, 0): 1.0, (0, 2): 1.0},
    {(4, 0): 1.0, (2, 2): 2.0, (0, 4): 1.0, (1, 0): 0.5, (0, 0): -3.0},
    {(1, 0): np.linspace(-1, 1, 50), (0, 1): 2.0, (0, 0): np.linspace(1, 2, 50)},
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_array_libraries_give_the_same_numbers(backend):
    asarray = asarray_of(backend)
    network = rich_network()
    X = np.random.default_rng(2).normal(size=(50, 2))
    moved = network.to(asarray)
    expected = network.combine(X, FORMS)
    for points in (X, asarray(X)):
        for result, reference in zip(moved.combine(points, FORMS), expected, strict=True):
            assert type(result) is type(asarray(X))
            np.testing.assert_allclose(np.asarray(result), reference, rtol=1e-13, atol=1e-13 * abs(reference).max())
    for original, back in zip(network.features, moved.to_numpy().features, strict=True):
        assert isinstance(back.weights, np.ndarray)
        np.testing.assert_array_equal(back.weights, original.weights)


@pytest.mark.parametrize("chunk", [1, 7, 49, 50, 1000])
@pytest.mark.parametrize("workers", [1, 3])
def test_chunks_and_threads_do_not_change_the_numbers(chunk, workers):
    network = rich_network()
    X = np.random.default_rng(2).normal(size=(50, 2))
    for one, other in zip(
        network.combine(X, FORMS), network.combine(X, FORMS, chunk_rows=chunk, workers=workers), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13 * abs(one).max())


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_go_into_slices_of_a_matrix_in_fortran_order(backend):
    asarray = asarray_of(backend)
    network = rich_network().to(asarray)
    X = np.random.default_rng(2).normal(size=(50, 2))
    expected = network.combine(X, FORMS[1:3])
    matrix = asarray(np.full((network.size + 3, 110), 7.0)).T
    out = [matrix[5:55, 1:-2], matrix[55:105, 1:-2]]
    returned = network.combine(X, FORMS[1:3], out=out, chunk_rows=11)
    assert all(a is b for a, b in zip(returned, out, strict=True))
    for i, reference in enumerate(expected):
        written = np.asarray(matrix)[5 + 50 * i : 55 + 50 * i, 1:-2]
        np.testing.assert_allclose(written, np.asarray(reference), rtol=1e-13, atol=1e-12)
    frame = np.asarray(matrix).copy()
    frame[5:105, 1:-2] = 7.0
    assert (frame == 7.0).all()


def counting(name, calls):
    original = ACTIVATIONS[name]

    def derivatives(z, orders):
        calls.append((z.shape, sorted(orders)))
        return original.derivatives(z, orders)

    return Activation(name, original.smoothness, derivatives)


def test_each_derivative_is_computed_once_for_all_forms_and_only_if_needed():
    below, above = [], []
    psi, phi = counting("tanh", below), counting("tanh", above)
    network = small_network([psi, psi], 2, enhancement=[phi, phi])
    X = np.zeros((10, 2))
    network.combine(X, [{(2, 0): 1.0, (0, 2): 1.0}, {(2, 0): np.ones(10), (1, 0): 3.0}], chunk_rows=5)
    assert below == [((5, 4), [0, 1, 2])] * 2
    assert above == [((5, 4), [1, 2])] * 2
    below.clear()
    small_network([psi], 2).combine(X, [{(2, 0): 1.0, (0, 2): 1.0}])
    assert below == [((10, 2), [2])]


class CountingProducts(np.ndarray):
    """Enhancement weights that note how many rows they are multiplied by."""

    rows = 0

    def __rmatmul__(self, other):
        CountingProducts.rows += other.shape[0]
        return other @ np.asarray(self)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc is np.matmul:
            CountingProducts.rows += inputs[0].shape[0]
        return getattr(ufunc, method)(*(np.asarray(i) for i in inputs), **kwargs)


@pytest.mark.parametrize(
    ("forms", "products"),
    [
        ([{(0, 0): 1.0}], 1),
        ([{(2, 0): 1.0, (0, 2): 1.0}], 4),
        ([{(2, 0): 1.0, (0, 2): 1.0}, {(1, 0): 1.0}, {(0, 0): 2.0}], 4),
        ([{(1, 0): 1.0, (0, 1): 1.0}], 2),
        ([{(2, 0): float(k), (0, 2): 1.0} for k in range(1, 6)], 5),
    ],
)
def test_the_linear_terms_of_a_form_share_one_matrix_product(forms, products):
    network = small_network(["tanh"], 2, enhancement=["tanh"])
    group = network.enhancement[0]
    expected = network.combine(np.full((3, 2), 0.3), forms)
    spy = EnhancementGroup(group.activation, group.weights, group.bias)
    object.__setattr__(spy, "weights", group.weights.view(CountingProducts))
    CountingProducts.rows = 0
    results = dataclasses.replace(network, enhancement=(spy,)).combine(np.full((3, 2), 0.3), forms)
    assert CountingProducts.rows == 3 * products
    np.testing.assert_array_equal(np.asarray(results), np.asarray(expected))


def test_scaling_a_coordinate_scales_the_derivatives():
    network = small_network(["tanh"], 2, enhancement=["sin"], seed=1)
    group = network.features[0]
    narrower = FeatureGroup("tanh", group.weights / [[1], [4]], group.bias)
    stretched = BroadNetwork(network.center * [1, 4], [narrower], network.enhancement)
    X = np.random.default_rng(0).normal(size=(6, 2))
    for alpha in ALPHAS:
        np.testing.assert_allclose(
            stretched.evaluate(X * [1, 4], [alpha])[alpha] * 4.0 ** alpha[1],
            network.evaluate(X, [alpha])[alpha],
            rtol=1e-10,
            atol=1e-11,
        )


def test_sizes_and_smoothness():
    network = rich_network()
    assert (network.dimension, network.feature_nodes, network.enhancement_nodes, network.size) == (2, 8, 8, 16)
    assert network.smoothness == np.inf
    assert small_network(["tanh", "relu"], 2).smoothness == 1


def test_no_points_and_no_forms_are_fine():
    network = rich_network()
    assert network.combine(np.zeros((0, 2)), [{(2, 0): 1.0, (0, 0): np.zeros(0)}])[0].shape == (0, 16)
    assert network.combine(np.zeros((3, 2)), []) == []
    assert (network.combine(np.zeros((3, 2)), [{}, {(1, 0): 0.0}]) == np.zeros((2, 3, 16))).all()


def test_a_chunk_fits_the_cache_and_never_exceeds_the_points():
    assert row_chunks(10, 1000, np.zeros(1)) == 10
    assert 2**20 <= row_chunks(10**6, 1000, np.zeros(1)) * 8000 <= 2**22
    assert row_chunks(10, 10**9, np.zeros(1)) == 1


@pytest.mark.parametrize("where", ["features", "enhancement"])
def test_an_order_beyond_the_smoothness_is_refused_before_any_work(where):
    calls = []
    spy = counting("tanh", calls)
    names = {"features": [spy], "enhancement": [spy]}
    names[where] = [*names[where], "relu"]
    network = small_network(names["features"], 2, enhancement=names["enhancement"])
    with pytest.raises(FeatureError, match=r"'relu'.*asks for order 2"):
        network.combine(np.zeros((4, 2)), [{(1, 0): 1.0}, {(1, 1): 1.0}])
    assert calls == []
    assert network.combine(np.zeros((4, 2)), [{(1, 0): 1.0}])[0].shape == (4, network.size)


@pytest.mark.parametrize("alpha", [(1,), (1, 0, 0), (-1, 0), (1.0, 0), "xx", (True, 0), 2])
def test_bad_multi_indices_are_refused(alpha):
    with pytest.raises(FeatureError, match="tuple of 2 non-negative integers"):
        rich_network().evaluate(np.zeros((1, 2)), [alpha])
    with pytest.raises(FeatureError, match="tuple of 2 non-negative integers"):
        rich_network().combine(np.zeros((1, 2)), [{alpha: 1.0}])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([(1, 0)], "Form 0 of combine must map"),
        ({(1, 0): "a"}, "must be a finite number"),
        ({(1, 0): np.inf}, "must be a finite number"),
        ({(1, 0): None}, "must be a finite number"),
        ({(1, 0): np.ones(2)}, r"shape \(3,\).*Got shape \(2,\)"),
        ({(1, 0): [1.0, np.nan, 2.0]}, "NaN"),
        ({(1, 0): 1j * np.ones(3)}, "complex"),
    ],
)
def test_bad_forms_are_refused(form, message):
    with pytest.raises(FeatureError, match=message):
        rich_network().combine(np.zeros((3, 2)), [form])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("X", "message"), [(np.zeros((3, 3)), "shape"), (np.full((2, 2), np.nan), "finite"), ("ab", "array")]
)
def test_bad_points_are_refused(backend, X, message):
    asarray = asarray_of(backend)
    points = X if isinstance(X, str) else asarray(X)
    with pytest.raises(FeatureError, match=message):
        rich_network().to(asarray).combine(points, [{(0, 0): 1.0}])


def read_only(shape):
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "out", [[], [np.zeros((3, 2))], [np.zeros((3, 16), dtype=np.float32)], [[0.0]], [read_only((3, 16))]]
)
def test_bad_targets_are_refused(out):
    with pytest.raises(FeatureError, match=r"'out' parameter of combine must hold 1 writeable .* \(3, 16\)"):
        rich_network().combine(np.zeros((3, 2)), [{(0, 0): 1.0}], out=out)


def test_a_bad_chunk_is_refused():
    with pytest.raises(FeatureError, match="'chunk_rows' parameter of combine must be an integer of at least 1"):
        rich_network().combine(np.zeros((3, 2)), [{(0, 0): 1.0}], chunk_rows=0)


@pytest.mark.parametrize(
    ("weights", "bias", "message"),
    [
        ([1.0, 2.0], [0.0, 0.0], "'weights' parameter of FeatureGroup"),
        ([[1.0, 2.0]], [0.0], r"'bias' parameter of FeatureGroup.*shape \(2,\)"),
        ([[np.nan]], [0.0], "NaN"),
        ([[1.0], [1.0, 2.0]], [0.0], "rectangular"),
        ([["a"]], [0.0], "type"),
        (np.zeros((2, 0)), np.zeros(0), r"Got shape \(2, 0\)"),
    ],
)
def test_bad_groups_are_refused(weights, bias, message):
    with pytest.raises(FeatureError, match=message):
        FeatureGroup("tanh", weights, bias)


def test_networks_that_do_not_fit_together_are_refused():
    group, top = FeatureGroup("tanh", np.ones((2, 3)), np.ones(3)), EnhancementGroup("tanh", np.ones((2, 1)), [0.0])
    with pytest.raises(FeatureError, match=r"features\[0\].*one row for each of the 1 coordinates"):
        BroadNetwork([0.0], [group])
    with pytest.raises(FeatureError, match=r"enhancement\[0\].*one row for each of the 3 feature nodes"):
        BroadNetwork([0.0, 0.0], [group], [top])
    with pytest.raises(FeatureError, match="at least one FeatureGroup"):
        BroadNetwork([0.0, 0.0], [])
    with pytest.raises(FeatureError, match="sequence of FeatureGroup"):
        BroadNetwork([0.0, 0.0], group)
    with pytest.raises(FeatureError, match="sequence of EnhancementGroup"):
        BroadNetwork([0.0, 0.0], [group], [group])


def test_mixed_array_libraries_are_refused():
    tensor = asarray_of("torch")
    with pytest.raises(FeatureError, match="one array library and one device"):
        FeatureGroup("tanh", np.ones((1, 2)), tensor(np.ones(2)))
    group = FeatureGroup("tanh", np.ones((1, 2)), np.ones(2))
    with pytest.raises(FeatureError, match=r"features\[0\] and the 'center'.*one array library"):
        BroadNetwork(tensor(np.zeros(1)), [group])


def test_extra_memory_is_a_few_chunks():
    import tracemalloc

    network = draw_network(np.random.default_rng(0), [[0, 1]], [("sin", 50, 1.0)], [("tanh", 50, 1.0)])
    X = np.random.default_rng(0).random((20_000, 1))
    out = [np.empty((20_000, 100), order="F")]
    network.combine(X[:10], [{(2,): 1.0}])
    tracemalloc.start()
    network.combine(X, [{(2,): 1.0}], out=out, chunk_rows=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out[0].nbytes / 4
