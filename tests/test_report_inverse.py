"""Pictures of unknown numbers and of measurements beside what a solution says of them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Parameter, Parameters
from pibls.errors import InputError

X = pb.coordinates("x")
U = pb.field("u", X)
LINE = pb.Interval((X, 0, 1))
PLACES = np.linspace(0.1, 0.9, 9)
SHAPE = PLACES * (1 - PLACES) / 2
PAIR = Parameters(
    (Parameter("a", 1.0, 0.1, (0.8, 1.2)), Parameter("b", -2.0, 0.3, (-2.6, -1.4))), np.array([[1.0, 0.8], [0.8, 1.0]])
)


def solved(values, expression=U, **settings):
    observed = pb.Observation(expression, {X: PLACES}, values, **settings)
    return pb.solve(pb.Problem(-U.diff(X, 2) - pb.unknown("q"), LINE, [pb.Dirichlet(U, 0), observed]))


def test_ellipses_hold_what_they_say():
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal([1.0, -2.0], [[0.01, 0.024], [0.024, 0.09]], 20_000)
    (_, pair, _) = PAIR.plot().axes
    shares = [np.mean(path.get_path().contains_points(drawn)) for path in pair.patches]
    assert shares == pytest.approx([0.6827, 0.95], abs=0.01)


def test_densities_are_filled_over_intervals():
    first, _, last = PAIR.plot().axes
    for axes, entry in ((first, PAIR["a"]), (last, PAIR["b"])):
        places = axes.collections[0].get_paths()[0].vertices[:, 0]
        assert (places.min(), places.max()) == pytest.approx(entry.interval, abs=0.1 * entry.deviation)
        curve = axes.lines[0]
        assert curve.get_xdata()[np.argmax(curve.get_ydata())] == pytest.approx(entry.value, abs=0.05)


def test_numbers_that_are_not_determined_are_left_out():
    lost = Parameter("c", float("nan"), float("inf"), (float("nan"), float("nan")))
    some = Parameters((lost, PAIR["a"]), np.array([[np.nan, np.nan], [np.nan, 1.0]]))
    assert [axes.get_title() for axes in some.plot().axes] == ["a = 1.00 ± 0.10"]
    with pytest.raises(InputError, match="nothing to draw"):
        Parameters((lost,), np.full((1, 1), np.nan)).plot()


def test_a_fit_along_a_line_has_data_curve_band_and_residuals():
    values = 2 * SHAPE + 0.01 * np.random.default_rng(1).standard_normal(9)
    values[4] += 0.1
    found = solved(values, noise=0.01, loss="huber")
    fit, rest = found.plot("fit").axes
    curve = fit.lines[0]
    assert curve.get_ydata() == pytest.approx(found(curve.get_xdata()[:, None]))
    assert fit.containers[0].lines[0].get_ydata() == pytest.approx(values)
    low, high = (end[0] for end in found.credible_band([[0.5]]))
    band = fit.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(high, rel=1e-2)
    assert found([[0.5]])[0] - low == pytest.approx(high - found([[0.5]])[0])
    near, far = (line.get_ydata() for line in rest.lines[1:])
    assert np.sort([*near, *far]) == pytest.approx(np.sort((values - found(PLACES[:, None])) / 0.01))
    assert len(far) == 1


def test_noise_that_was_found_is_the_unit_of_residuals():
    found = solved(2 * SHAPE + 0.01 * np.random.default_rng(1).standard_normal(9))
    rest = found.plot("fit").axes[1].lines[1].get_ydata()
    assert float(rest @ rest) == pytest.approx(8.0, rel=1e-3)


def test_expressions_and_scattered_points_have_no_band():
    slopes = solved(2 * (0.5 - PLACES), U.diff(X), noise=0.01).plot("fit").axes[0]
    assert [text.get_text() for text in slopes.get_legend().get_texts()] == ["fit", "measured"]
    scattered = pb.solve(pb.problems.inverse.robin_coefficient(noise=0.01)).plot("fit").axes[0]
    assert (scattered.get_xlabel(), scattered.get_ylabel()) == ("fit", "measured")


def test_sensors_at_a_few_times_have_a_curve_each():
    t = pb.coordinates("t")
    w, k = pb.field("w", X, t), pb.unknown("k")
    domain = pb.Interval((X, 0, 1)) * pb.TimeInterval(t, 0, 0.2)
    sensors = np.array([(place, time) for time in (0.1, 0.2) for place in np.linspace(0.1, 0.9, 5)])
    values = np.sin(np.pi * sensors[:, 0]) * np.exp(-0.5 * np.pi**2 * sensors[:, 1])
    known = [pb.Dirichlet(w, 0), pb.Initial(w, sp.sin(sp.pi * X)), pb.Observation(w, sensors, values, noise=0.01)]
    found = pb.solve(pb.Problem(sp.Eq(w.diff(t), k * w.diff(X, 2)), domain, known), tol=1e-4)
    fit = found.plot("fit").axes[0]
    assert [text.get_text() for text in fit.get_legend().get_texts()] == ["t = 0.1", "t = 0.2"]
    first, second = (entry for entry in fit.lines if len(entry.get_xdata()) > 100)
    assert second.get_ydata() == pytest.approx(found(x=second.get_xdata(), t=0.2))
    assert [container.lines[0].get_ydata().size for container in fit.containers] == [5, 5]
    assert first.get_ydata().max() > second.get_ydata().max()


def test_a_fit_needs_measurements():
    with pytest.raises(InputError, match="no measurements"):
        pb.solve(pb.problems.advection()).plot("fit")
