"""The settings of the methods: the paper's letters, penalties, ridge, solvers, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import FeatureError, InputError, MissingDependencyError, ResourceError
from pibls.features import activation, draw_network
from pibls.geometry import Points
from pibls.solvers import SVD


@pytest.fixture(scope="module")
def line():
    problem = pb.problems.oscillator()
    return problem, Points.sample(problem, interior=60)


def test_nodes_are_p_times_groups_plus_q_times_groups(line):
    problem, points = line
    method = pb.PIBLS(feature_groups=3, feature_nodes=7, enhancement_groups=2, enhancement_nodes=5)
    assert method.nodes == 3 * 7 + 2 * 5
    solution = method.fit(problem, points)
    assert [g.nodes for g in solution.network.features] == [7, 7, 7]
    assert [g.weights.shape for g in solution.network.enhancement] == [(21, 5), (21, 5)]
    assert solution.weights.shape == (1, 31)
    assert solution.diagnostics.nodes == 31
    assert pb.PIBLS().nodes == 10 * 40 + 100


@pytest.mark.parametrize("off", [{"enhancement_groups": 0}, {"enhancement_nodes": 0}])
def test_no_enhancement_nodes(line, off):
    method = pb.PIBLS(feature_groups=2, feature_nodes=10, **off)
    assert method.nodes == 20
    assert method.fit(*line).network.enhancement == ()


def test_each_group_has_its_own_activation(line):
    method = pb.PIBLS(feature_groups=3, feature_nodes=4, activation=["sin", "tanh", "gaussian"], enhancement_nodes=2)
    network = method.fit(*line).network
    assert [g.activation.name for g in network.features] == ["sin", "tanh", "gaussian"]
    assert [g.activation.name for g in network.enhancement] == ["sin"]
    other = pb.PIBLS(feature_groups=1, feature_nodes=4, enhancement_nodes=2, enhancement_activation="arctan")
    assert [g.activation.name for g in other.fit(*line).network.enhancement] == ["arctan"]


def test_feature_groups_one_by_one(line):
    method = pb.PIBLS(features=[("sin", 6, 2.0), ("tanh", 4, [5.0])], enhancement_groups=0)
    solution = method.fit(*line, seed=5)
    assert method.nodes == 10
    groups = [("sin", 6, 2.0), ("tanh", 4, [5.0])]
    expected = draw_network(np.random.default_rng(5), line[0].domain.bounds, groups)
    for one, two in zip(solution.network.features, expected.features, strict=True):
        assert (one.weights == two.weights).all()
        assert (one.bias == two.bias).all()


def test_activation_objects_count_as_names(line):
    method = pb.PIBLS(feature_groups=2, feature_nodes=10, enhancement_nodes=4, activation=activation("sin"))
    solution = method.fit(*line)
    assert [g.activation.name for g in solution.network.enhancement] == ["sin"]
    assert solution.diagnostics.settings["activation"] == "sin"


def test_pielm_is_pibls_with_one_group_and_no_enhancement(line):
    options = {"scale": 4.0, "activation": "sin"}
    broad = pb.PIBLS(feature_groups=1, feature_nodes=50, enhancement_groups=0, **options).fit(*line, seed=3)
    single = pb.PIELM(nodes=50, **options).fit(*line, seed=3)
    assert (broad.weights == single.weights).all()
    assert broad.diagnostics.method == "PIBLS"
    assert single.diagnostics.method == "PIELM"


def test_settings_are_recorded_as_plain_values(line):
    method = pb.PIBLS(
        feature_groups=np.int64(2),
        feature_nodes=5,
        scale=np.array([2.0]),
        enhancement_nodes=0,
        solver=SVD(cutoff=1e-10),
    )
    settings = method.fit(*line, seed=8).diagnostics.settings
    assert settings["feature_groups"] == 2
    assert isinstance(settings["feature_groups"], int)
    assert settings["scale"] == [2.0]
    assert settings["solver"] == "SVD(cutoff=1e-10)"
    assert settings["features"] is None


@pytest.mark.parametrize("name", ["lstsq", "qr", "svd", "normal"])
def test_penalties_and_ridge_give_the_closed_form_of_the_paper(name):
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    problem = pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2)), domain, [pb.Dirichlet(u, t), pb.Initial(u, sp.sin(sp.pi * x))])
    points = Points.sample(problem, interior=50)
    b, i, ridge = 30.0, 7.0, 0.1
    specs = [("tanh", 15, 1.5)]
    method = pb.PIBLS(features=specs, enhancement_groups=0, lambda_b=b, lambda_i=i, lambda_reg=ridge, solver=name)
    weights = method.fit(problem, points, seed=1).weights[0]
    network = draw_network(np.random.default_rng(1), domain.bounds, specs)
    derivatives = network.evaluate(points.interior, [(0, 1), (2, 0)])
    equation = derivatives[0, 1] - derivatives[2, 0]
    edge, first = (s.points for s in points.sets[1:])
    B, S = (network.evaluate(X, [(0, 0)])[0, 0] for X in (edge, first))
    gram = equation.T @ equation + b * B.T @ B + i * S.T @ S + ridge * np.eye(15)
    rhs = b * B.T @ edge[:, 1] + i * S.T @ np.sin(np.pi * first[:, 0])
    np.testing.assert_allclose(weights, np.linalg.solve(gram, rhs), rtol=1e-8, atol=1e-11)


def test_one_penalty_sets_the_other_to_one():
    problem = pb.problems.diffusion_reaction()
    points = Points.sample(problem, interior=60)
    method = {"nodes": 40, "lambda_reg": 1e-3}
    one = pb.PIELM(**method, lambda_b=4.0).fit(problem, points)
    two = pb.PIELM(**method, lambda_b=4.0, lambda_i=1.0).fit(problem, points)
    swapped = pb.PIELM(**method, lambda_i=4.0).fit(problem, points)
    assert (one.weights == two.weights).all()
    assert np.abs(one.weights - swapped.weights).max() > 1e-6


def test_solvers_agree_on_a_system_with_a_ridge(line):
    problem, points = line
    values = {
        name: pb.PIELM(nodes=30, scale=2.0, lambda_reg=1e-2, solver=name).fit(problem, points)
        for name in ("qr", "svd", "normal", "lstsq")
    }
    X = np.linspace(0, 1, 50)
    for name, solution in values.items():
        assert solution.diagnostics.solver == name
        assert np.abs(solution(X, outside="value") - values["svd"](X, outside="value")).max() < 1e-10


def test_frozen_features_are_what_the_seed_says(line):
    problem, points = line
    method = pb.PIBLS(feature_groups=2, feature_nodes=20, enhancement_nodes=10)
    one, two, other = (method.fit(problem, points, seed=s) for s in (4, 4, 5))
    assert (one.weights == two.weights).all()
    assert (one.network.features[0].weights == two.network.features[0].weights).all()
    assert (one.network.features[0].weights != other.network.features[0].weights).any()
    assert one.diagnostics.seed == 4


def test_relu_cannot_solve_an_equation_of_second_order():
    problem = pb.problems.poisson_square()
    points = Points.sample(problem, interior=20)
    with pytest.raises(FeatureError, match=r"(?s)relu.*order"):
        pb.PIELM(nodes=10, activation="relu").fit(problem, points)
    # First order is what it can do.
    line = pb.problems.advection()
    assert pb.PIELM(nodes=40, activation="relu").fit(line, Points.sample(line, 80)).diagnostics.rank > 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"feature_groups": 0}, InputError, "'feature_groups' parameter of PIBLS must be an integer of at least 1"),
        ({"feature_nodes": 2.5}, InputError, "'feature_nodes'"),
        ({"enhancement_groups": -1}, InputError, "'enhancement_groups'"),
        ({"enhancement_nodes": True}, InputError, "'enhancement_nodes'"),
        ({"activation": "swoosh"}, FeatureError, "swoosh"),
        ({"activation": 5}, FeatureError, "5"),
        ({"activation": ["sin", "tanh"]}, InputError, "one for each of the 10 feature groups. Got 2 names"),
        ({"enhancement_activation": "swoosh"}, FeatureError, "swoosh"),
        ({"features": [("sin", 10)]}, FeatureError, r"\(activation, nodes, scale\)"),
        ({"features": 3}, FeatureError, r"\(activation, nodes, scale\)"),
        ({"features": []}, FeatureError, r"\(activation, nodes, scale\)"),
        ({"features": [("sin", 0, 1.0)]}, InputError, "'nodes'"),
        ({"lambda_b": 0}, InputError, "'lambda_b' parameter of PIBLS must be a finite real number above 0"),
        ({"lambda_i": -1}, InputError, "'lambda_i'"),
        ({"lambda_reg": -1e-9}, InputError, "'lambda_reg'"),
        ({"lambda_reg": float("nan")}, InputError, "'lambda_reg'"),
        ({"solver": "magic"}, InputError, "'lstsq', 'qr', 'svd', 'normal'"),
    ],
)
def test_bad_settings_are_refused_when_the_method_is_made(options, error, words):
    with pytest.raises(error, match=words):
        pb.PIBLS(**options)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"nodes": 0}, InputError, "'nodes' parameter of PIELM"),
        ({"activation": "swoosh"}, FeatureError, "swoosh"),
        ({"lambda_b": "3"}, InputError, "'lambda_b' parameter of PIELM"),
        ({"solver": None}, InputError, "'solver'"),
    ],
)
def test_pielm_refuses_alike(options, error, words):
    with pytest.raises(error, match=words):
        pb.PIELM(**options)


@pytest.mark.parametrize("scale", [0, -1.0, [1.0, 2.0, 3.0], "wide"])
def test_scale_must_fit_the_coordinates(line, scale):
    with pytest.raises(FeatureError, match="'scale'"):
        pb.PIELM(nodes=5, scale=scale).fit(*line)


@pytest.mark.parametrize("method", [pb.PIBLS(), pb.PIELM()])
def test_fit_refuses_what_is_not_a_problem_with_its_points(line, method):
    problem, points = line
    name = type(method).__name__
    with pytest.raises(InputError, match=rf"{name}.fit takes a Problem. Got 'poisson' instead"):
        method.fit("poisson", points)
    with pytest.raises(InputError, match=rf"{name}.fit takes a Points. Got 100 instead. Sample points with"):
        method.fit(problem, 100)
    with pytest.raises(InputError, match="The points have 2 sets"):
        method.fit(pb.problems.wave(), points)
    with pytest.raises(InputError, match="'seed'"):
        method.fit(problem, points, seed=-1)


@pytest.mark.parametrize("method", [pb.PIELM(nodes=10**9), pb.PIBLS(feature_groups=1, feature_nodes=10**9)])
def test_a_billion_nodes_are_refused_before_they_are_drawn(line, method, monkeypatch):
    monkeypatch.setattr("pibls.runtime.available_memory", lambda: 2**34)
    monkeypatch.setattr("pibls.methods.pibls.draw_network", lambda *_: pytest.fail("drawn"))
    with pytest.raises(ResourceError, match=r"10000\d{5} nodes on 6\d rows needs .* Use fewer nodes or points"):
        method.fit(*line)


def test_devices_that_are_not_there(line, monkeypatch):
    pytest.importorskip("torch")
    for device in ("warp", 3.5):
        with pytest.raises(InputError, match="'device' parameter must be a device that torch has here"):
            pb.PIELM(nodes=5).fit(*line, device=device)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"needs PyTorch.*pibls\[torch\]"):
        pb.PIELM(nodes=5).fit(*line, device="cpu")


def test_residuals_in_the_diagnostics_are_those_of_the_solution():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    places = np.array([[0.25], [0.5], [0.75]])
    one = pb.Observation(u, places, [1.0, 2.0, 1.0], noise=[0.1, 1.0, 10.0], weight=2.0)
    two = pb.Observation(u, places, [1.5, 2.5, 1.5], noise=[0.1, 10.0, 1.0])
    problem = pb.Problem(sp.Eq(1000 * u.diff(x, 2), -7000), pb.Interval((x, 0, 1)), [one, two, pb.Dirichlet(u, 0)])
    points = Points.sample(problem, interior=30)
    # The measurements contradict the equation: without a ridge the weights would be huge and rounding would show.
    solution = pb.PIELM(nodes=25, activation="sin", scale=2.0, lambda_reg=1e-6).fit(problem, points)
    found = solution.diagnostics.residuals
    assert list(found) == ["the equation", repr(one), f"{two!r} [3]", "Dirichlet(u = 0 on the boundary)"]
    inside = solution.residual()(points.interior)
    expected = [inside, solution(places) - one.values, solution(places) - two.values, solution(points.sets[3].points)]
    for residual, values in zip(found.values(), expected, strict=True):
        assert residual.rms == pytest.approx(np.sqrt(np.mean(values**2)), rel=1e-6)
        assert residual.max == pytest.approx(np.abs(values).max(), rel=1e-6)
        assert residual.rows == len(values)
    assert solution.diagnostics.rows == 30 + 3 + 3 + 2


def test_a_zero_right_hand_side_has_zero_weights():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    problem = pb.Problem(sp.Eq(u.diff(x), 0), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    solution = pb.PIELM(nodes=10, lambda_reg=1e-4).fit(problem, Points.sample(problem, 20))
    assert (solution.weights == 0).all()
