"""Calling a solution and its derivatives: shapes, points outside, several fields, what it prints."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import FeatureError, InputError, ProblemError
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.solution import Diagnostics, Residual


@pytest.fixture(scope="module")
def waves():
    """u = sin(2x) e^{−y} on the unit disk, solved to many digits."""
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    exact = sp.sin(2 * x) * sp.exp(-y)
    disk = pb.Disk((x, y), (0, 0), 1)
    problem = pb.Problem(
        sp.Eq(pb.laplacian(u), exact.diff(x, 2) + exact.diff(y, 2)), disk, [pb.Dirichlet(u, exact)], exact
    )
    solution = pb.PIELM(nodes=200, activation="sin", scale=2.5).fit(problem, Points.sample(problem, interior=500))
    assert solution.true_error() < 1e-10
    return solution


@pytest.fixture(scope="module")
def pair():
    problem = pb.problems.maxwell_1d()
    return pb.PIELM(nodes=60, activation="sin", scale=2.0).fit(problem, Points.sample(problem, interior=200))


def exact(x, y):
    return np.sin(2 * np.asarray(x)) * np.exp(-np.asarray(y))


def test_arrays_lists_and_single_points(waves):
    X = np.array([[0.1, 0.2], [-0.3, 0.4], [0.5, -0.5]])
    expected = exact(*X.T)
    for points in (X, X.tolist(), tuple(map(tuple, X)), np.asfortranarray(X)):
        values = waves(points)
        assert values.shape == (3,)
        np.testing.assert_allclose(values, expected, atol=1e-9)
    assert waves(X[0]).shape == (1,)
    assert waves([[0, 0]]).shape == (1,)
    assert waves(np.empty((0, 2))).shape == (0,)


def test_tensors_are_points_too(waves):
    torch = pytest.importorskip("torch")
    X = torch.tensor([[0.1, 0.2], [-0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    assert (waves(X) == waves(X.detach().numpy())).all()


def test_keywords_broadcast_and_keep_their_shape(waves):
    a, b = np.linspace(-0.5, 0.5, 4), np.linspace(-0.5, 0.5, 5)
    grid = waves(x=a[:, None], y=b[None, :])
    assert grid.shape == (4, 5)
    np.testing.assert_allclose(grid, exact(a[:, None], b[None, :]), atol=1e-9)
    assert waves(x=a, y=0.25).shape == (4,)
    assert waves(x=[0.1, 0.2], y=[0.3, 0.4]).shape == (2,)
    number = waves(x=0.1, y=0.2)
    assert np.shape(number) == ()
    assert float(number) == waves([[0.1, 0.2]])[0]
    assert waves(y=0.2, x=0.1) == number
    derivative = waves.derivative("u", *waves.problem.domain.coordinates)
    assert derivative(x=a[:, None], y=b).shape == (4, 5)


def test_outside_is_nan_unless_asked_for(waves):
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, -1.5]])
    values = waves(X)
    assert np.isnan(values).tolist() == [False, True, True]
    carried_on = waves(X, outside="value")
    assert np.isfinite(carried_on).all()
    assert carried_on[0] == pytest.approx(values[0], abs=1e-9)
    assert np.isnan(waves(x=X[:, 0], y=X[:, 1])).tolist() == [False, True, True]
    with pytest.raises(InputError, match=r"outside Disk.*2 of 3 points, first \[2.0, 0.0\].*outside='nan'"):
        waves(X, outside="error")
    assert waves(X[:1], outside="error") == pytest.approx(values[:1], abs=1e-9)
    u, x = waves.problem.fields[0], waves.problem.domain.coordinates[0]
    assert np.isnan(waves.derivative(u, x)(X)).tolist() == [False, True, True]
    with pytest.raises(InputError, match="'outside' parameter of u must be one of 'nan', 'value', 'error'"):
        waves(X, outside="zero")


def test_points_on_the_boundary_are_inside(waves):
    edge = waves.problem.domain.boundary.sample(100).points
    assert np.isfinite(waves(edge)).all()


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        ((), {}, "keyword for each coordinate"),
        ((), {"x": 1.0}, r"Got \['x'\] instead"),
        ((), {"x": 1.0, "y": 1.0, "z": 1.0}, "keyword for each coordinate"),
        (([[0.0, 0.0]],), {"x": 1.0, "y": 1.0}, "not both"),
        ((), {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]}, "shapes that fit together"),
        ((), {"x": "wide", "y": 0.0}, "real numbers"),
        ((), {"x": 1j, "y": 0.0}, "real numbers"),
        ((), {"x": None, "y": 0.0}, "real numbers"),
        ((), {"x": float("nan"), "y": 0.0}, "finite real numbers"),
        (([[1.0, 2.0, 3.0]],), {}, r"shape \(n, 2\)"),
        (([[1.0, float("inf")]],), {}, "finite real numbers"),
        (("here",), {}, "finite real numbers"),
        (([[1j, 0]],), {}, "finite real numbers"),
    ],
)
def test_bad_points_are_refused(waves, arguments, named, words):
    with pytest.raises(InputError, match=words):
        waves(*arguments, **named)


def test_derivatives_match_the_exact_ones(waves):
    x, y = waves.problem.domain.coordinates
    u = waves.problem.fields[0]
    X = waves.problem.domain.sample(50, "uniform", 4)
    e = sp.sin(2 * x) * sp.exp(-y)
    for wanted in [(), (x,), (y,), (x, x), (x, y), (y, x, y), ((x, 2),), ((x, 2), y), ((y, 3),), ((x, 0),)]:
        value = sp.diff(e, *wanted) if wanted else e
        expected = sp.lambdify((x, y), value, "numpy")(*X.T)
        np.testing.assert_allclose(waves.derivative(u, *wanted)(X), expected, atol=1e-6, err_msg=str(wanted))
    assert (waves.derivative(u, x, y)(X) == waves.derivative("u", y, x)(X)).all()
    assert (waves.derivative(u, (x, sp.Integer(2)))(X) == waves.derivative(u, sp.Tuple(x, 2))(X)).all()
    assert (waves.derivative(u)(X) == waves(X)).all()


def test_derivatives_print_as_mathematics(waves):
    x, y = waves.problem.domain.coordinates
    assert repr(waves.derivative("u", x, y, x)) == "u_xxy"
    assert repr(waves.derivative("u")) == "u"


@pytest.mark.parametrize("bad", [sp.Symbol("z"), "x", None, ["x"], np.zeros(2), (sp.Symbol("z"), 2)])
def test_derivatives_are_along_coordinates_only(waves, bad):
    with pytest.raises(InputError, match="takes symbols of the coordinates x, y"):
        waves.derivative("u", bad)


@pytest.mark.parametrize("order", [-1, 1.5, "2", True])
def test_orders_are_whole_numbers(waves, order):
    x = waves.problem.domain.coordinates[0]
    with pytest.raises(InputError, match="'order' parameter of derivative"):
        waves.derivative("u", (x, order))


@pytest.mark.parametrize("bad", ["v", 3, None, np.zeros(3), sp.Symbol("u")])
def test_unknown_fields_are_refused(waves, bad):
    with pytest.raises(InputError, match=r"The fields of this solution are \('u',\)"):
        waves.derivative(bad)


def test_a_derivative_the_features_lack_is_refused():
    problem = pb.problems.advection()
    solution = pb.PIELM(nodes=20, activation="relu").fit(problem, Points.sample(problem, interior=40))
    x = problem.domain.coordinates[0]
    with pytest.raises(FeatureError, match="relu"):
        solution.derivative("u", x, x)([0.5])


def test_several_fields_come_as_a_dictionary(pair):
    X = pair.problem.domain.sample(30)
    values = pair(X)
    assert set(values) == {"E", "H"}
    exact_values = pair.problem.exact_values(X)
    for name, value in values.items():
        assert value.shape == (30,)
        np.testing.assert_allclose(value, exact_values[name], atol=1e-3)
        assert (pair.derivative(name)(X) == value).all()
    x, t = X[:, 0], X[:, 1]
    named = pair(**dict(zip(pair.coordinate_names, (x.reshape(5, 6), t.reshape(5, 6)), strict=True)))
    assert {v.shape for v in named.values()} == {(5, 6)}


def test_large_arrays_are_evaluated_in_pieces(waves, monkeypatch):
    X = waves.problem.domain.sample(101)
    wanted = [("u", (0, 0)), ("u", (1, 1)), ("u", (0, 0))]
    whole = waves.evaluate(X, wanted)
    seen = []
    contract = BroadNetwork.contract

    def recorded(self, X, indices, weights):
        seen.append((len(X), len(indices)))
        return contract(self, X, indices, weights)

    monkeypatch.setattr(BroadNetwork, "contract", recorded)
    monkeypatch.setattr("pibls.solution.solution.CHUNK_ENTRIES", 10 * waves.network.size + 3)
    pieces = waves.evaluate(X, wanted)
    assert seen == [(10, 2)] * 10 + [(1, 2)]
    for one, two in zip(whole, pieces, strict=True):
        # A matrix product may round differently for other numbers of rows.
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12 * np.abs(waves.weights).sum())


def test_evaluation_of_no_points_and_of_nothing(waves):
    assert waves.evaluate(np.empty((0, 2)), [("u", (1, 0))])[0].shape == (0,)
    assert waves.evaluate(np.zeros((3, 2)), []) == []


def test_true_error_needs_an_exact_solution(waves):
    x = pb.coordinates("x")
    u = pb.field("u", x)
    problem = pb.Problem(sp.Eq(u.diff(x), 1), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0, on=[0.0])])
    solution = pb.PIELM(nodes=10).fit(problem, Points.sample(problem, 20))
    with pytest.raises(ProblemError, match="no exact solution; give one"):
        solution.true_error()
    with pytest.raises(InputError, match="'n'"):
        waves.true_error(0)


def test_printed_forms_are_short_and_say_what_matters(waves):
    text = repr(waves)
    assert text.startswith("Solution(u(x, y): fitted, error estimate not estimated, 200 nodes, ")
    assert len(text) < 200
    assert "\n" not in text
    estimated = replace(waves, error_estimate=1.234e-7, status="converged")
    assert "converged, error estimate 1.2e-07" in repr(estimated)
    assert estimated.summary()["error estimate"] == "1.2e-07"
    page = waves._repr_html_()
    assert page.startswith("<table>")
    assert "Disk((x, y), (0, 0), 1)" in page
    assert len(page) < 3000


def test_html_is_escaped(waves):
    names = ("<script>alert(1)</script>", "<b>&")
    diagnostics = replace(waves.diagnostics, residuals=dict.fromkeys(names, Residual(1.0, 2.0, 3)))
    page = replace(waves, diagnostics=diagnostics)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;&amp;" in page
    assert "<td style='text-align:left'>1.0e+00</td><td style='text-align:left'>2.0e+00</td>" in page
    assert set(re.findall(r"</?(\w+)", page)) == {"table", "tr", "th", "td"}


def test_diagnostics_print_and_round_trip(waves):
    text = str(waves.diagnostics)
    assert "PIELM (nodes=200, activation=sin, scale=2.5" in text
    assert "the equation: " in text
    assert re.search(r"rank \d+, condition \d\.\de\+\d\d", text)
    record = replace(waves.diagnostics, condition=float("inf"), seconds={"solve": float("nan")}).as_dict()
    assert record["condition"] == {"float": "inf"}
    back = Diagnostics.from_dict(record)
    assert back.condition == float("inf")
    assert np.isnan(back.seconds["solve"])
    assert Diagnostics.from_dict(waves.diagnostics.as_dict()) == waves.diagnostics


def test_plot_hands_over_to_the_report(waves, monkeypatch):
    calls = []
    monkeypatch.setattr("pibls.report.plots.plot", lambda *args, **options: calls.append((args, options)))
    waves.plot("error", at={})
    assert calls == [((waves, "error"), {"at": {}})]
