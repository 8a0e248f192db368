"""Harmonic nodes: exact derivatives, harmonicity, networks that hold them, and the choice of nodes for a domain."""

from __future__ import annotations

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from features_helpers import BACKENDS, asarray_of, small_network
from pibls import Points, load, problems
from pibls.errors import FeatureError
from pibls.features import BroadNetwork, draw_network
from pibls.features.harmonic import HarmonicGroup, draw_special
from pibls.geometry import Box, Disk, Polygon, Rectangle, TimeInterval
from pibls.methods.fit import Recipe, fit
from pibls.solution.records import network_from, network_record
from pibls.solvers import solver
from pibls.system import Balanced

x, y, z, t = sp.symbols("x y z t")
VALUE, LAPLACIAN = {(0, 0): 1.0}, {(2, 0): 1.0, (0, 2): 1.0}
ORDERS = [alpha for alpha in itertools.product(range(5), range(5)) if sum(alpha) <= 4]
L_SHAPE = Rectangle((x, -1, 1), (y, -1, 1)) - Rectangle((x, 0, 1), (y, -1, 0))


def one(exponent, part="real", *, center=(0.0, 0.0), direction=0.0, scale=1.0, logarithm=False):
    return HarmonicGroup([center], [exponent], [direction], [scale], [part], [logarithm])


def mixed_group():
    exponents = [2 / 3, 2 / 3, -3.0, -3.0, 0.0, 4 / 3, 2.0, -0.5, 7.5, 2.0, 0.0]
    parts = ["real", "imag"] * 5 + ["imag"]
    logarithms = [False, False, False, False, True, True, True, False, False, True, True]
    k = len(exponents)
    centers = np.where(np.arange(k)[:, None] < 6, [[0.3, -0.2]], [[-0.5, 0.1]])
    return HarmonicGroup(centers, exponents, np.linspace(-3, 3, k).round(), np.full(k, 1.7), parts, logarithms)


def around(center, radii=(1e-3, 0.4, 2.5), count=12):
    """Points on all sides of a center."""
    angles = 0.05 + 2 * math.pi * np.arange(count) / count
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([np.array(center) + r * circle for r in radii])


def series(group, node, point, order):
    """Return D⁰, ..., D^order of a complex function, from mpmath's Taylor series in 40 digits."""
    turn = mpmath.expj(-float(group.directions[node])) / float(group.scales[node])
    w = (mpmath.mpc(*point) - mpmath.mpc(*group.centers[node])) * turn
    a = float(group.exponents[node])

    def function(h):
        value = mpmath.power(w * (1 + h), a)
        return value * mpmath.log(w * (1 + h)) if group.logarithms[node] else value

    terms = mpmath.taylor(function, 0, order)
    return [complex(term * mpmath.factorial(n) * (turn / w) ** n) for n, term in enumerate(terms)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_match_mpmath_all_around(backend):
    asarray = asarray_of(backend)
    group = mixed_group()
    X = np.concatenate([around(group.centers[0], count=4), around(group.centers[-1], count=3)])
    with mpmath.workdps(40):
        wanted = np.array([[series(group, k, point, 4) for k in range(group.nodes)] for point in X])
    imaginary = np.array([part == "imag" for part in group.parts])
    values = group.to(asarray).combine(asarray(X), [{alpha: 1.0} for alpha in ORDERS])
    for (i, j), value in zip(ORDERS, values, strict=True):
        derivative = wanted[:, :, i + j] * 1j**j
        error = np.abs(np.asarray(value) - np.where(imaginary, derivative.imag, derivative.real))
        assert (error <= 1e-12 * np.abs(derivative)).all()


def test_derivatives_match_sympy_in_closed_form():
    a, b = sp.symbols("a b", positive=True)
    r, theta = sp.sqrt(a**2 + b**2), sp.atan2(b, a)
    corner = r ** sp.Rational(2, 3) * sp.sin(sp.Rational(2, 3) * theta)
    for group, expression in ((one(2 / 3, "imag"), corner), (one(0.0, logarithm=True), sp.log(r))):
        for alpha in ((0, 0), (1, 0), (1, 2), (0, 3)):
            wanted = float(sp.diff(expression, a, alpha[0], b, alpha[1]).subs({a: 0.7, b: 1.1}))
            assert group.combine(np.array([[0.7, 1.1]]), [{alpha: 1.0}])[0][0, 0] == pytest.approx(wanted, rel=1e-13)


def test_hand_made_values():
    X = np.array([[3.0, 4.0]])
    assert one(2.0).combine(X, [VALUE])[0] == pytest.approx(-7)
    assert one(-1.0, "imag").combine(X, [VALUE])[0] == pytest.approx(-4 / 25)
    assert one(-1.0, "imag", scale=5.0).combine(X, [VALUE])[0] == pytest.approx(-4 / 5)
    assert one(1.0, center=(1, 1)).combine(X, [VALUE])[0] == pytest.approx(2)
    assert one(1.0, direction=math.pi / 2).combine(X, [VALUE])[0] == pytest.approx(4)
    assert one(0.0, logarithm=True, scale=0.5).combine(X, [VALUE])[0] == pytest.approx(math.log(10))


@settings(max_examples=50, deadline=None)
@given(
    exponent=st.floats(-8, 8),
    direction=st.floats(-7, 7),
    scale=st.floats(0.01, 100),
    logarithm=st.booleans(),
    part=st.sampled_from(["real", "imag"]),
)
def test_a_laplacian_is_exactly_zero_and_second_derivatives_cancel(exponent, direction, scale, logarithm, part):
    group = one(exponent, part, direction=direction, scale=scale, logarithm=logarithm)
    X = around((0, 0), radii=(0.01, 1.0), count=7)
    column = np.full((len(X), 1), 0.3)
    whole, varying, xx, yy = group.combine(
        X, [LAPLACIAN, {(2, 0): column, (0, 2): column}, {(2, 0): 1.0}, {(0, 2): 1.0}]
    )
    assert (whole == 0.0).all()
    assert (varying == 0.0).all()
    assert (xx == -yy).all()


def test_the_cut_is_opposite_to_the_direction_and_nowhere_else():
    angles = np.linspace(-math.pi, math.pi, 2001)[:-1] + 0.001
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for direction in (0.0, 2.0, -2.5):
        values = one(0.5, "imag", direction=direction).combine(circle, [VALUE])[0][:, 0]
        jumps = np.abs(np.roll(values, -1) - values)
        [place] = np.flatnonzero(jumps > 1.0)
        assert math.cos(angles[place] + 0.0015 - direction - math.pi) == pytest.approx(1, abs=1e-4)
        assert np.sort(jumps)[-2] < 0.01


def test_everything_is_finite_at_the_singular_point_and_far_away():
    group = HarmonicGroup(
        np.zeros((6, 2)), [2 / 3, -12.0, 0.0, -60.0, 90.0, 1.0], [0] * 6, [1e-3] * 6, ["real"] * 6,
        [False, False, True, False, False, True],
    )  # fmt: skip
    X = np.array([[0.0, 0.0], [1e-300, 0.0], [1e6, -1e6]])
    for value in group.combine(X, [{alpha: 1.0} for alpha in ORDERS]):
        assert np.isfinite(value).all()
    at_point = group.combine(X[:1], [VALUE])[0][0]
    assert at_point[[0, 4, 5]].tolist() == [0.0, 0.0, 0.0]
    assert at_point[2] == pytest.approx(math.log(1e-12))


@pytest.mark.parametrize("backend", BACKENDS)
def test_networks_put_special_columns_last(backend):
    asarray = asarray_of(backend)
    plain = small_network(["tanh", "sin"], 2, enhancement=["tanh"])
    group, other = mixed_group(), one(-2.0, center=(5, 5))
    network = dataclasses.replace(plain, special=(group, other)).to(asarray)
    rng = np.random.default_rng(1)
    X, c = rng.normal(size=(7, 2)), rng.normal(size=7)
    forms = [{(0, 0): 2.0, (1, 1): c}, LAPLACIAN, {(0, 1): 1.0}]
    columns = [{(0, 0): 2.0, (1, 1): c[:, None]}, LAPLACIAN, {(0, 1): 1.0}]
    assert (network.special_nodes, network.size) == (12, plain.size + 12)
    assert network.smoothness == math.inf
    for chunk_rows in (None, 2):
        found = network.combine(X, forms, chunk_rows=chunk_rows)
        expected = zip(plain.combine(X, forms), group.combine(X, columns), other.combine(X, columns), strict=True)
        for value, parts in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(value), np.hstack(parts), rtol=1e-12, atol=1e-12)
    back = network.to_numpy()
    assert all(isinstance(g.centers, np.ndarray) for g in back.special)
    np.testing.assert_allclose(back.evaluate(X, [(2, 0)])[(2, 0)], np.asarray(network.evaluate(X, [(2, 0)])[(2, 0)]))


def test_networks_write_special_columns_into_slices_of_a_matrix():
    network = dataclasses.replace(small_network(["sin"], 2), special=(mixed_group(),))
    X = np.random.default_rng(0).normal(size=(5, 2))
    matrix = np.full((12, network.size), np.nan, order="F")
    network.combine(X, [VALUE, LAPLACIAN], out=[matrix[:5], matrix[6:11]])
    value, laplacian = network.combine(X, [VALUE, LAPLACIAN])
    assert (matrix[:5] == value).all()
    assert (matrix[6:11] == laplacian).all()
    assert np.isnan(matrix[[5, 11]]).all()


def test_no_points_give_no_rows():
    network = dataclasses.replace(small_network(["sin"], 2), special=(mixed_group(),))
    assert network.combine(np.empty((0, 2)), [VALUE])[0].shape == (0, network.size)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centers": [[0.0, 0.0, 0.0]]}, "'centers'"),
        ({"exponents": [1.0, 2.0]}, "'exponents'"),
        ({"directions": [math.inf]}, "'directions'"),
        ({"scales": [0.0]}, "'scales'.*positive"),
        ({"parts": ["both"]}, "'parts'.*'real' or 'imag'"),
        ({"parts": "real"}, "'parts'"),
        ({"parts": None}, "'parts'"),
        ({"logarithms": [True, True]}, "'logarithms'"),
        ({"logarithms": [2.0]}, "'logarithms'"),
    ],
)
def test_groups_that_make_no_sense_are_refused(change, message):
    fields = {"centers": [[0, 0]], "exponents": [1.0], "directions": [0.0], "scales": [1.0], "parts": ["real"]}
    with pytest.raises(FeatureError, match=message):
        HarmonicGroup(**(fields | change))


def test_groups_of_two_libraries_are_refused():
    tensor = asarray_of("torch")
    with pytest.raises(FeatureError, match="one array library"):
        HarmonicGroup(tensor([[0.0, 0.0]]), np.ones(1), np.ones(1), np.ones(1), ["real"])
    plain = small_network(["sin"], 2)
    with pytest.raises(FeatureError, match=r"special\[0\].*one array library"):
        BroadNetwork(plain.center, plain.features, (), (one(1.0).to(tensor),))


def test_networks_refuse_special_groups_off_the_plane_and_other_things():
    with pytest.raises(FeatureError, match="Got 3 coordinates"):
        dataclasses.replace(small_network(["sin"], 3), special=(one(1.0),))
    with pytest.raises(FeatureError, match="sequence of HarmonicGroup"):
        dataclasses.replace(small_network(["sin"], 2), special=("corner",))


def test_an_l_shape_gets_its_corners():
    groups = draw_special(L_SHAPE, corner_terms=4, convex_terms=2)
    [corner] = [g for g in groups if g.nodes == 8]
    assert len(groups) == 6
    assert corner.centers.tolist() == [[0.0, 0.0]] * 8
    assert corner.exponents == pytest.approx(np.tile([2 / 3, 4 / 3, 2, 8 / 3], 2), abs=1e-9)
    assert corner.logarithms == (False, False, True, False) * 2
    assert corner.directions == pytest.approx(3 * math.pi / 4, abs=1e-9)
    for group in groups:
        assert group is corner or group.logarithms == (True,) * 4
    assert [g.nodes for g in draw_special(L_SHAPE, corner_terms=3, convex_terms=0)] == [6]
    assert [g.nodes for g in draw_special(L_SHAPE, corner_terms=0, convex_terms=1)] == [2] * 5


@pytest.mark.parametrize(
    "domain",
    [
        L_SHAPE,
        Rectangle((x, 0, 3), (y, 0, 3)) - Rectangle((x, 1, 2), (y, 1, 2)),
        Polygon((x, y), [(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)]),
        Rectangle((x, 0, 4), (y, 0, 2)) - Disk((x, y), (1, 1), 0.3) - Disk((x, y), (3, 0.9), 0.4),
    ],
)
def test_nodes_for_a_domain_are_of_size_one_and_do_not_jump_in_it(domain):
    X = domain.sample(2000)
    # Chords that stay in the domain: between neighbours on one a node can change as much as its slope allows.
    chords = X[:500] + np.linspace(0, 1, 200)[:, None, None] * (X[500:1000] - X[:500])
    kept = domain.contains(chords.reshape(-1, 2)).reshape(chords.shape[:2]).all(axis=0)
    chords, lengths = chords[:, kept], np.hypot(*(X[500:1000] - X[:500])[kept].T)
    for group in draw_special(domain):
        assert np.abs(group.combine(X, [VALUE])[0]).max() < 6.0
        value, dx, dy = group.combine(chords.reshape(-1, 2), [VALUE, {(1, 0): 1.0}, {(0, 1): 1.0}])
        steepest = np.hypot(dx, dy).reshape(*chords.shape[:2], -1).max(axis=0)
        jumps = np.abs(np.diff(value.reshape(*chords.shape[:2], -1), axis=0)).max(axis=0)
        assert (jumps <= 2.0 * steepest * lengths[:, None] / len(chords) + 1e-12).all()


def test_square_holes_get_poles_outside_the_domain():
    frame = Rectangle((x, 0, 3), (y, 0, 3)) - Rectangle((x, 1, 2), (y, 1, 2))
    groups = draw_special(frame, corner_terms=5, hole_terms=2, convex_terms=0)
    assert [g.nodes for g in groups] == [10] * 4 + [5]
    for group in groups[:4]:
        assert set(group.exponents.tolist()) == {-1.0}
        assert not frame.contains(group.centers).any()
        gaps = np.sort(np.unique(group.scales.round(12)))
        assert len(gaps) == 5
        assert (gaps[1:] > 1.5 * gaps[:-1]).all()


def test_domains_off_the_plane_or_with_time_get_none():
    assert draw_special(L_SHAPE * TimeInterval(t, 0, 1)) == ()
    assert draw_special(Box((x, 0, 1), (y, 0, 1), (z, 0, 1))) == ()
    assert draw_special(Disk((x, y), (0, 0), 1)) == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": "L"}, "'domain'"),
        ({"domain": L_SHAPE, "corner_terms": -1}, "'corner_terms'"),
        ({"domain": L_SHAPE, "hole_terms": 1.5}, "'hole_terms'"),
        ({"domain": L_SHAPE, "convex_terms": None}, "'convex_terms'"),
    ],
)
def test_wrong_numbers_of_terms_are_refused(arguments, message):
    with pytest.raises(FeatureError, match=message):
        draw_special(**arguments)


def test_poles_fit_the_singularity_of_a_hole_corner():
    frame = Rectangle((x, -1, 1), (y, -1, 1)) - Rectangle((x, -0.4, 0.4), (y, -0.4, 0.4))
    plain = draw_network(np.random.default_rng(0), frame.bounds, [("sin", 150, 4.0)])
    special = dataclasses.replace(plain, special=draw_special(frame, convex_terms=0))
    # r^{2/3} at the corner (0.4, 0.4), where its cut towards the origin does not matter.
    train, test = (X[X.sum(axis=1) > 0] for X in (frame.sample(3000, seed=1), frame.sample(500, seed=2)))
    field = one(2 / 3, center=(0.4, 0.4), direction=math.pi / 4)
    errors = []
    for network in (plain, special):
        matrix = network.evaluate(train, [(0, 0)])[(0, 0)]
        weights = np.linalg.lstsq(matrix, field.combine(train, [VALUE])[0][:, 0], rcond=1e-13)[0]
        values = network.evaluate(test, [(0, 0)])[(0, 0)] @ weights
        errors.append(np.abs(values - field.combine(test, [VALUE])[0][:, 0]).max())
    assert errors[1] < errors[0] / 10


def solved(problem, special, *, nodes=150, interior=500):
    network = draw_network(np.random.default_rng(0), problem.domain.bounds, [("sin", nodes, 1.5)])
    network = dataclasses.replace(network, special=special)
    points = Points.sample(problem, interior=interior, boundary=200, method="kronecker")
    return fit(problem, points, network, Recipe("PIBLS", {}, 0, Balanced(), 0.0, solver("lstsq")))


def test_the_annulus_is_solved_to_rounding():
    problem = problems.annulus()
    plain, special = solved(problem, ()), solved(problem, draw_special(problem.domain))
    assert special.true_error() < 1e-12
    assert plain.true_error() > 1e-7


def test_storage_round_trip_and_torch_module(tmp_path):
    problem = problems.annulus()
    solution = solved(problem, draw_special(problem.domain), nodes=40, interior=200)
    again = load(solution.save(tmp_path / "ring.pibls"))
    X = problem.domain.sample(50)
    assert (again(X) == solution(X)).all()
    torch = pytest.importorskip("torch")
    module = solution.to_torch()
    inputs = torch.as_tensor(X).requires_grad_()
    values = module(inputs)
    np.testing.assert_allclose(values[:, 0].detach().numpy(), solution(X), rtol=1e-11, atol=1e-12)
    values.sum().backward()
    slope = solution.evaluate(X, [("u", (1, 0))])[0]
    np.testing.assert_allclose(inputs.grad[:, 0].numpy(), slope, rtol=1e-8, atol=1e-9)
    assert module.float()(torch.as_tensor(X).float()).dtype == torch.float32


def test_records_of_networks_hold_special_groups_and_old_ones_none():
    network = dataclasses.replace(small_network(["sin"], 2), special=(mixed_group(), one(-1.0)))
    arrays = {}
    record = network_record(network, arrays)
    again = network_from(record, arrays)
    X = np.random.default_rng(0).normal(size=(4, 2))
    assert (again.combine(X, [VALUE])[0] == network.combine(X, [VALUE])[0]).all()
    assert again.special[0].logarithms == network.special[0].logarithms
    del record["special"]
    assert network_from(record, arrays).special == ()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("exponent", "conjugate", "angle", "logarithm"),
    [(-1, 1, 0, False), (0, 0, 1, False), (-1, 2, 1, False), (1, 0, 2, False), (0.5, 1, 0, False), (-1, 2, 0, True)],
)
def test_powers_of_the_conjugate_and_of_the_angle_have_exact_derivatives(
    backend, exponent, conjugate, angle, logarithm
):
    real_x, real_y = sp.symbols("x y", real=True)
    turn = sp.exp(-sp.I * sp.Rational(2, 5))
    w = turn * (real_x + sp.I * real_y - sp.Rational(3, 10)) / 2
    bar = (real_x - sp.I * real_y - sp.Rational(3, 10)) / turn / 2
    theta = (sp.log(w) - sp.log(bar)) / (2 * sp.I)
    function = bar**conjugate * w**exponent * theta**angle * (sp.log(w) if logarithm else 1)
    flags = ([logarithm] * 2, [conjugate] * 2, [angle] * 2)
    group = HarmonicGroup([[0.3, 0.0]] * 2, [exponent] * 2, [0.4, 0.4], [2.0, 2.0], ["real", "imag"], *flags)
    asarray = asarray_of(backend)
    X = np.array([[1.1, 0.4], [0.9, -0.1], [0.5, 0.6]])
    for alpha in [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (1, 2), (0, 4)]:
        derivative = sp.lambdify((real_x, real_y), sp.diff(function, real_x, alpha[0], real_y, alpha[1]), "numpy")
        expected = derivative(X[:, 0] + 0j, X[:, 1] + 0j) * np.ones(3)
        found = group.to(asarray).combine(asarray(X), [{alpha: 1.0}])[0]
        assert np.allclose(np.asarray(found), np.c_[expected.real, expected.imag], rtol=1e-9, atol=1e-9)


def test_the_biharmonic_operator_does_not_see_one_power_of_the_conjugate():
    group = HarmonicGroup([[0.0, 0.0]] * 2, [1.5, 0.0], [0, 0], [1, 1], ["real", "imag"], [False, True], [1, 1])
    biharmonic = {(4, 0): 1.0, (2, 2): 2.0, (0, 4): 1.0}
    laplacian, twice = group.combine(np.array([[0.5, 0.2]]), [LAPLACIAN, biharmonic])
    assert np.abs(laplacian).min() > 0.1
    assert np.abs(twice).max() == 0.0


def test_a_node_with_both_a_logarithm_and_an_angle_is_refused():
    with pytest.raises(FeatureError, match="not both"):
        HarmonicGroup([[0.0, 0.0]], [1.0], [0], [1], ["real"], [True], [0], [1])
    with pytest.raises(FeatureError, match=r"conjugates.*0, 1 or 2"):
        HarmonicGroup([[0.0, 0.0]], [1.0], [0], [1], ["real"], [False], [3])


def test_powers_of_conjugate_and_angle_are_stored_and_old_files_are_read():
    group = HarmonicGroup([[0.0, 0.0]], [1.0], [0], [1], ["imag"], [False], [2], [1])
    network = BroadNetwork([0.0, 0.0], small_network(["sin"], 2).features, special=(group,))
    arrays: dict[str, np.ndarray] = {}
    record = network_record(network, arrays)
    X = np.array([[0.3, 0.4]])
    assert (network_from(record, arrays).combine(X, [LAPLACIAN])[0] == network.combine(X, [LAPLACIAN])[0]).all()
    old = {**record, "special": [{"parts": ["imag"], "logarithms": [False]}]}
    assert network_from(old, arrays).special[0].conjugates == (0,)
