from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from internals import METRICS, error_metrics
from pibls.errors import GeometryError, InputError, PiblsError
from pibls.geometry import Interval, PointCloud, Rectangle
from pibls.problem import Problem, coordinates, field
from pibls.report import metrics
from report_helpers import fitted

x, y = coordinates("x y")
u = field("u", x, y)
v = field("v", x, y)
SQUARE = Rectangle((x, 0, 1), (y, 0, 1))
EXACT = sp.sin(2 * x) * sp.exp(y)


def target(X):
    return np.sin(2 * X[:, 0]) * np.exp(X[:, 1])


@pytest.fixture(scope="module")
def solution():
    return fitted(Problem(sp.Eq(u, EXACT), SQUARE, [], exact=EXACT), target, nodes=20)


@pytest.fixture(scope="module")
def system():
    problem = Problem([sp.Eq(u, EXACT), sp.Eq(v, x + u)], SQUARE, [], exact={u: EXACT, v: x + 3 * y})
    return fitted(problem, lambda X: np.stack([target(X), X[:, 0] + 3 * X[:, 1]], axis=1), nodes=20)


def test_all_nine_against_numbers_computed_by_hand():
    # errors 1, 0, −2; Σu² = 14, Σ|u| = 6, ū = 2, Σ(u − ū)² = 2
    values = metrics([2.0, 2.0, 1.0], [1.0, 2.0, 3.0])
    expected = {
        "mse": 5 / 3,
        "rmse": math.sqrt(5 / 3),
        "mae": 1.0,
        "relative_mse": 5 / 14,
        "relative_rmse": math.sqrt(5 / 14),
        "relative_mae": 0.5,
        "linf": 2.0,
        "relative_linf": 2 / 3,
        "r2": 1 - 5 / 2,
    }
    assert tuple(values) == METRICS
    assert values == pytest.approx(expected, rel=1e-14)


def test_a_perfect_prediction():
    values = metrics([1.0, -2.0, 5.0], [1.0, -2.0, 5.0])
    assert values.pop("r2") == 1.0
    assert set(values.values()) == {0.0}


def test_exact_zero_makes_the_relative_metrics_undefined():
    for predicted in ([1.0, 2.0], [0.0, 0.0]):
        values = metrics(predicted, [0.0, 0.0])
        undefined = {key for key, value in values.items() if math.isnan(value)}
        assert undefined == {"relative_mse", "relative_rmse", "relative_mae", "relative_linf", "r2"}
    assert metrics([1.0, 2.0], [0.0, 0.0])["mae"] == 1.5


def test_constant_exact_has_no_r2_even_where_its_mean_is_rounded():
    values = metrics(np.full(7, 0.2), np.full(7, 0.1))
    assert math.isnan(values["r2"])
    assert values["relative_linf"] == pytest.approx(1.0)
    assert math.isnan(metrics([3.0], [2.0])["r2"])


FINITE = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-6)
PAIRS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(arrays(np.float64, n, elements=FINITE), arrays(np.float64, n, elements=FINITE))
)


@given(PAIRS)
def test_identities_and_bounds(pair):
    predicted, exact = pair
    m = error_metrics(predicted, exact)
    assert m["rmse"] ** 2 == pytest.approx(m["mse"])
    assert m["mae"] <= m["rmse"] * (1 + 1e-12)
    assert m["rmse"] <= m["linf"] * (1 + 1e-12)
    assert m["mse"] == pytest.approx(np.mean((predicted - exact) ** 2))
    if exact.any():
        assert m["relative_rmse"] == pytest.approx(np.linalg.norm(predicted - exact) / np.linalg.norm(exact))
        assert m["relative_rmse"] ** 2 == pytest.approx(m["relative_mse"])
    assert not m["r2"] > 1.0


@given(PAIRS, st.sampled_from([1e-180, 1e-3, 7.0, 1e150]))
def test_scaling_both_sides_changes_no_relative_metric(pair, factor):
    predicted, exact = pair
    before, after = error_metrics(predicted, exact), error_metrics(factor * predicted, factor * exact)
    for key in ("relative_mse", "relative_rmse", "relative_mae", "relative_linf", "r2"):
        assert after[key] == pytest.approx(before[key], rel=1e-6, abs=1e-9, nan_ok=True)
    for key in ("rmse", "mae", "linf"):
        assert after[key] == pytest.approx(factor * before[key], rel=1e-9)


def test_errors_beyond_the_largest_number_are_infinite():
    values = metrics([1.7e308, 0.0], [-1.7e308, 0.0])
    assert values["linf"] == values["mse"] == math.inf


def test_order_of_points_does_not_matter():
    rng = np.random.default_rng(0)
    a, b, order = rng.random(50), rng.random(50), rng.permutation(50)
    assert metrics(a[order], b[order]) == pytest.approx(metrics(a, b))


def test_solution_against_the_exact_solution_of_its_problem(solution):
    X = SQUARE.sample(10_000, "uniform", 12345)
    assert metrics(solution) == pytest.approx(metrics(solution(X), target(X)), rel=1e-9)
    other = metrics(solution, seed=1)["rmse"]
    assert other != metrics(solution)["rmse"]
    assert other == pytest.approx(metrics(solution)["rmse"], rel=0.2)


@pytest.mark.parametrize(
    "exact",
    [EXACT, {u: EXACT}, {"u": EXACT}, target, {"u": target}, lambda X: {"u": target(X)}, lambda X: target(X)[:, None]],
    ids=["expression", "by field", "by name", "function", "function by name", "function of names", "column"],
)
def test_every_way_to_give_the_exact_solution(solution, exact):
    X = SQUARE.sample(100)
    assert metrics(solution, exact, X) == pytest.approx(metrics(solution, target(X), X), rel=1e-9)


def test_numbers_stand_for_constants(solution):
    X = SQUARE.sample(100)
    expected = metrics(solution(X), np.full(100, 2.0))
    for two in (2, 2.0, sp.Integer(2), lambda X: 2.0):
        assert metrics(solution, two, X) == pytest.approx(expected, nan_ok=True)


def test_several_fields(system):
    values = metrics(system)
    X = SQUARE.sample(10_000, "uniform", 12345)
    assert list(values) == ["u", "v"]
    assert values["v"] == pytest.approx(metrics(system(X)["v"], X[:, 0] + 3 * X[:, 1]), rel=1e-9)
    assert metrics(system(X), system.problem.exact_values(X)) == values
    with pytest.raises(InputError, match="entry for each field"):
        metrics(system, EXACT)
    with pytest.raises(InputError, match="entry for each field"):
        metrics(system, {u: EXACT})


def test_a_derivative_is_compared_with_the_derivative_of_the_exact_solution(solution):
    X = SQUARE.sample(200)
    derivative = solution.derivative(u, x)
    expected = metrics(derivative(X), 2 * np.cos(2 * X[:, 0]) * np.exp(X[:, 1]))
    assert metrics(derivative, points=X) == pytest.approx(expected, rel=1e-9)
    assert metrics(derivative) == metrics(derivative, points=SQUARE.sample(10_000, "uniform", 12345))


def test_plain_functions_and_flat_points():
    assert metrics(np.sin, np.cos, [0.0])["mae"] == 1.0
    assert metrics(lambda X: X[:, 0] * X[:, 1], lambda X: X[:, 0], [[2.0, 3.0]])["linf"] == 4.0


def test_torch_tensors_are_values_too():
    torch = pytest.importorskip("torch")
    predicted = torch.tensor([1.0, 3.0], requires_grad=True)
    assert metrics(predicted, [1.0, 2.0])["linf"] == 1.0


def test_a_point_cloud_is_measured_at_its_own_points():
    cloud = PointCloud((x, y), SQUARE.sample(60))
    found = fitted(Problem(sp.Eq(u, EXACT), cloud, [], exact=EXACT), target, nodes=20, points=60)
    expected = metrics(found(cloud.interior), target(cloud.interior))
    assert metrics(found) == pytest.approx(expected, rel=1e-9)


def test_points_outside_the_domain_are_refused(solution):
    with pytest.raises(InputError, match="outside"):
        metrics(solution, points=[[0.5, 0.5], [2.0, 0.5]])


def test_nothing_to_compare_with():
    w = field("w", x)
    found = fitted(Problem(sp.Eq(w, 1), Interval((x, 0, 1)), []), lambda X: X, nodes=5)
    with pytest.raises(InputError, match=r"no exact solution.*Give exact="):
        metrics(found)
    with pytest.raises(InputError, match="only a Solution may carry one"):
        metrics([1.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0]), "must give 2 values, one per point. Got 1"),
        (([1.0, 2.0], [1.0, math.nan]), "'exact' parameter of metrics"),
        (([1.0, math.inf], [1.0, 2.0]), "'solution' parameter of metrics"),
        ((["a"], [1.0]), "'solution' parameter of metrics"),
        (([1.0, 2j], [1.0, 2.0]), "'solution' parameter of metrics"),
        (([], []), "at least one value"),
        (({}, {}), "empty mapping"),
        (([[1.0, 2.0]], [1.0]), "'solution' parameter of metrics"),
        ((np.sin, np.cos), "'solution' parameter of metrics is a function.*Give points="),
        (([1.0], np.cos), "'exact' parameter of metrics is a function.*Give points="),
        (([1.0], x), "only a Solution knows which column"),
        ((np.sin, np.cos, [[math.nan]]), "'points' parameter of metrics"),
        ((np.sin, np.cos, [[1.0], [1.0, 2.0]]), "'points' parameter of metrics"),
        ((np.sin, np.cos, np.empty((0, 1))), "at least one point"),
        ((lambda X: X @ np.ones(7), np.cos, [[1.0]]), "'solution' parameter of metrics raised ValueError"),
        ((lambda X: [1.0, 2.0], np.cos, [[1.0]]), "must give 1 values"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(InputError, match=message):
        metrics(*arguments)


def test_refusals_of_a_solution(solution):
    with pytest.raises(InputError, match=r"expression of the coordinates \(x, y\)"):
        metrics(solution, sp.Symbol("q"))
    with pytest.raises(InputError, match="expression of the coordinates"):
        metrics(solution, u + 1)
    with pytest.raises(InputError, match=r"shape \(n, 2\)"):
        metrics(solution, points=[[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="'seed' parameter of metrics"):
        metrics(solution, seed=-1)
    with pytest.raises(PiblsError, match="not finite"):
        metrics(solution, 1 / x, [[0.0, 0.5]])


def test_errors_of_the_library_pass_through_a_users_function():
    def refuse(X):
        raise GeometryError("my own words")

    with pytest.raises(GeometryError, match="my own words"):
        metrics(refuse, 1.0, [[0.0]])
