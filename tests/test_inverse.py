"""Unknown numbers and functions from measurements: values, intervals, and what data do not tell."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.budget import Budget
from pibls.errors import InputError, ProblemError
from pibls.inverse.basis import Basis
from pibls.inverse.by_cells import ByCells
from pibls.inverse.by_lines import ByLines
from pibls.inverse.descent import Place
from pibls.inverse.evidence import Linear, Smoothness, most_probable
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import predicted
from pibls.problems import inverse

X = pb.coordinates("x")
U = pb.field("u", X)
LINE = pb.Interval((X, 0, 1))
PLACES = np.linspace(0.1, 0.9, 9)
SHAPE = PLACES * (1 - PLACES) / 2  # the solution of −u″ = 1 there


def rod(strength, values, *others, **settings):
    """−u″ = strength, u = 0 at the ends, measured at nine places."""
    observed = pb.Observation(U, {X: PLACES}, values, **settings)
    return pb.Problem(-U.diff(X, 2) - strength, LINE, [pb.Dirichlet(U, 0), observed, *others])


def noise(seed, size):
    return size * np.random.default_rng(seed).standard_normal(len(PLACES))


@pytest.mark.parametrize("name", ["heat_diffusivity", "brinkman_forchheimer", "robin_coefficient"])
def test_numbers_are_exact_without_noise(name):
    problem = getattr(inverse, name)()
    found = pb.solve(problem)
    assert found.status == "converged"
    for key, value in problem.truth.items():
        assert abs(found.parameters[key].value / value - 1) < 1e-8
        low, high = found.parameters[key].interval
        assert low < found.parameters[key].value < high


def heat(k):
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    line = pb.Interval((x, 0, 1))
    where = np.column_stack([PLACES, np.linspace(0.2, 1.0, 9)])
    values = np.sin(np.pi * where[:, 0]) * np.exp(-0.1 * np.pi**2 * where[:, 1])
    conditions = [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(sp.pi * x)), pb.Observation(u, where, values, noise=0.01)]
    return pb.Problem(u.diff(t) - k * u.diff(x, 2), line * pb.TimeInterval(t, 0, 1), conditions), where, values


def test_answers_on_cells_are_derivatives():
    problem, where, _ = heat(pb.unknown("k"))
    parametric, vector = Parametric(problem), np.array([0.15])
    forward = ByCells.around(parametric, np.array([0.1]), 1e-9, Budget(10.0), 0, None)
    found = predicted(parametric, parametric.observations[0], forward.respond(vector), vector)
    values = np.sin(np.pi * where[:, 0]) * np.exp(-0.15 * np.pi**2 * where[:, 1])
    assert np.abs(found.values - values).max() < 1e-8
    assert np.abs(found.slopes[:, 0] + np.pi**2 * where[:, 1] * values).max() < 1e-7


def test_answers_by_lines_are_derivatives():
    t = pb.coordinates("t")
    y, k = pb.field("y", t), pb.unknown("k")
    times = np.linspace(0.2, 2.0, 6)
    conditions = [pb.Initial(y, 1), pb.Observation(y, times[:, None], times)]
    problem = pb.Problem(y.diff(t) + k * y**2, pb.TimeInterval(t, 0, 2), conditions)
    parametric, vector = Parametric(problem), np.array([0.7])
    forward = ByLines.around(parametric, np.array([0.5]), 1e-8, Budget(10.0), 0, np.ones(1))
    found = predicted(parametric, parametric.observations[0], forward.respond(vector), vector)
    assert np.abs(found.values - 1 / (1 + 0.7 * times)).max() < 1e-8
    assert np.abs(found.slopes[:, 0] + times / (1 + 0.7 * times) ** 2).max() < 1e-5


def test_deviations_are_those_of_cramer_and_rao():
    problem, where, values = heat(pb.unknown("k", bounds=(0, None)))
    found = pb.solve(problem).parameters["k"]
    bound = 0.01 / np.linalg.norm(np.pi**2 * where[:, 1] * values)
    assert abs(found.value - 0.1) < 1e-2 * bound  # data without noise, of which it is told that they have some
    assert abs(found.deviation / bound - 1) < 1e-3
    assert found.interval == pytest.approx(0.1 * np.exp(np.array([-1.96, 1.96]) * bound / 0.1), rel=1e-3)


def test_intervals_hold_the_truth():
    held = 0
    for seed in range(40):
        found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + noise(seed, 0.01))).parameters["q"]
        held += found.interval[0] < 2 < found.interval[1]
    assert held >= 34  # of 38 expected; fewer once in 300 times


def test_noise_is_estimated_with_the_degrees_of_freedom_that_are_left():
    values = 2 * SHAPE + noise(3, 0.01)
    found = pb.solve(rod(pb.unknown("q"), values))
    q = float(SHAPE @ values / (SHAPE @ SHAPE))
    spread = float(np.sqrt(np.sum((values - q * SHAPE) ** 2) / 8))
    assert found.parameters["q"].value == pytest.approx(q, rel=1e-6)
    assert found.parameters["q"].deviation == pytest.approx(spread / np.linalg.norm(SHAPE), rel=1e-4)
    assert next(iter(found.parameters.noise.values())) == pytest.approx(spread, rel=1e-4)


def test_priors_and_data_are_weighed_by_their_precision():
    values = 2 * SHAPE + noise(1, 0.02)
    found = pb.solve(rod(pb.unknown("q", prior=(1.0, 0.1)), values, noise=0.02)).parameters["q"]
    precision = (SHAPE @ SHAPE) / 0.02**2 + 1 / 0.1**2
    assert found.value == pytest.approx(((SHAPE @ values) / 0.02**2 + 1 / 0.1**2) / precision, rel=1e-5)
    assert found.deviation == pytest.approx(precision**-0.5, rel=1e-3)


def test_outliers_do_not_move_the_answer_by_much():
    values = 2 * SHAPE + noise(0, 0.001)
    values[4] += 1.0
    misled, found = (pb.solve(rod(pb.unknown("q"), values, loss=loss)).parameters["q"] for loss in ("squares", "huber"))
    assert abs(misled.value - 2) > 0.5
    assert found.interval[0] < 2 < found.interval[1]
    assert abs(found.value - 2) < 0.02


@pytest.mark.parametrize(
    "name", ["product", "times_zero", "fewer_data", "constant_data", "out_of_reach", "symmetric_sensors"]
)
def test_what_data_do_not_determine_is_no_number(name):
    flaw = inverse.unidentifiable()[name]
    found = pb.solve(flaw.problem(0))
    assert found.status == "ill-posed"
    lost = {key for key, entry in found.parameters.items() if not entry.is_determined}
    assert lost == set(flaw.direction)
    (direction,) = found.parameters.directions
    along = sum(direction[key] * value for key, value in flaw.direction.items())
    assert abs(along) == pytest.approx(1.0, abs=1e-3)
    assert all(np.isnan(found.parameters[key].value) for key in lost)


def test_what_is_determined_is_found_beside_what_is_not():
    found = pb.solve(inverse.unidentifiable()["times_zero"].problem(0))
    assert abs(found.parameters["q"].value - 2) < 2e-3
    assert "does not fit" not in found.diagnostics.message


def test_the_combination_that_is_determined_is_named():
    found = pb.solve(rod(pb.unknown("a", start=2.0) * pb.unknown("b", start=0.5), 3 * SHAPE))
    assert "only a*b = 3 is determined" in found.diagnostics.message
    assert "only a*b" in str(found.parameters)


def test_a_wrong_model_does_not_pass():
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + 0.05 * np.sin(3 * np.pi * PLACES), noise=0.001))
    assert found.status == "stalled"
    assert "model does not fit" in found.diagnostics.message


def test_starts_far_away_end_in_the_same_answer():
    values = np.exp(-2.0 * PLACES)
    for start in (1e-3, 1.0, 30.0):
        k = pb.unknown("k", start=start, bounds=(0, None))
        conditions = [pb.Dirichlet(U, 1, on=LINE.left), pb.Observation(U, {X: PLACES}, values)]
        found = pb.solve(pb.Problem(U.diff(X) + k * U, LINE, conditions))
        assert found.parameters["k"].value == pytest.approx(2.0, rel=1e-8)


def test_an_unknown_function_and_its_band():
    problem = inverse.rate_function(noise=0.01)
    found = pb.solve(problem)
    where = np.linspace(0.05, 0.95, 50)[:, None]
    truth = 0.1 + np.exp(-((where[:, 0] - 0.5) ** 2) / 0.045)
    values, deviations = found(where)["k"], found.standard_deviation(where)["k"]
    assert np.linalg.norm(values - truth) < 0.15 * np.linalg.norm(truth)
    assert np.mean(np.abs(values - truth) < 2.5 * deviations) > 0.8
    assert found.parameters.entries == ()


def test_a_function_without_noise_is_within_its_band():
    problem = inverse.rate_function()
    found = pb.solve(problem)
    (k,) = problem.truth
    where = np.linspace(0.0, 1.0, 101)[:, None]
    true = 0.1 + np.exp(-((where[:, 0] - 0.5) ** 2) / 0.045)
    off, spread = np.abs(found(where)[k] - true), found.standard_deviation(where)[k]
    assert found.status == "converged"
    assert np.linalg.norm(off) < 1e-6 * np.linalg.norm(true)
    assert np.mean(off <= 1.96 * spread) > 0.95


@pytest.mark.parametrize("supposed", [1e-3, 1.0, 1e3])
def test_how_much_a_function_varies_does_not_depend_on_the_noise_that_was_supposed(supposed):
    basis = Basis.of(pb.field("k", X, prior=pb.Smooth()), LINE)
    prior, rng = Smoothness(0.7, 0.3, 3.5), np.random.default_rng(5)
    rows = basis.values(np.linspace(0, 1, 200)[:, None], (0,))
    data = rows[:, 1:] @ (np.sqrt(prior.variances(basis)) * rng.standard_normal(basis.size - 1))
    noisy = data + 1e-3 * rng.standard_normal(200)
    linear = Linear.of(rows[:, 1:] / supposed, noisy / supposed, rows[:, :1] / supposed)
    (found,) = most_probable(linear, (basis,), [Smoothness(1.0, 0.5, 3.5)], [(None, None)], 1e-12)
    assert 0.2 < found.size / prior.size < 5
    assert 0.3 < found.length / prior.length < 3


def test_corrected_slopes_foretell_the_last_step():
    rng = np.random.default_rng(0)
    one, two = (Place(rng.random(3), None, rng.random(5), rng.random((5, 3))) for _ in range(2))
    fixed = two.corrected(one)
    assert fixed.lacking - one.lacking == pytest.approx(fixed.slopes @ (two.point - one.point))


def test_a_path_that_runs_apart_is_found_from_its_beginning():
    problem = inverse.lorenz_parameters()
    found = pb.solve(problem, tol=1e-4)
    assert {k: found.parameters[k].value for k in problem.truth} == pytest.approx(dict(problem.truth), rel=1e-5)
    assert found.diagnostics.settings["starts"] == 1


def test_an_unknown_source_without_noise():
    q = pb.field("q", X, prior=pb.Smooth())
    values = np.sin(np.pi * PLACES)
    found = pb.solve(rod(q, values))
    where = np.linspace(0.2, 0.8, 7)[:, None]
    assert found(where)["q"] == pytest.approx(np.pi**2 * np.sin(np.pi * where[:, 0]), rel=0.02)


def test_uncertain_numbers_without_data_give_bands():
    q = pb.unknown("q", prior=(2.0, 0.3))
    problem = pb.Problem(-U.diff(X, 2) - q, LINE, [pb.Dirichlet(U, 0)])
    found = pb.solve(problem, uncertainty=True)
    assert found([[0.5]]) == pytest.approx([0.25])
    assert found.standard_deviation(PLACES[:, None]) == pytest.approx(0.3 * SHAPE, rel=1e-6)
    assert found.parameters["q"].deviation == pytest.approx(0.3)
    with pytest.raises(ProblemError, match="q has no prior"):
        pb.solve(pb.Problem(-U.diff(X, 2) - pb.unknown("q"), LINE, [pb.Dirichlet(U, 0)]), uncertainty=True)


def test_answers_are_stored_and_shown(tmp_path):
    found = pb.solve(rod(pb.unknown("q"), 2 * SHAPE + noise(0, 0.01)))
    again = pb.load(found.save(tmp_path / "rod.pibls"))
    assert again.parameters["q"] == found.parameters["q"]
    assert np.array_equal(again.parameters.correlation, found.parameters.correlation)
    assert np.array_equal(again.credible_band(PLACES[:, None])[0], found.credible_band(PLACES[:, None])[0])
    assert "<td" in found.parameters._repr_html_()
    assert str(found.parameters).splitlines()[1].startswith("q ")
    assert again.problem.parameters == ()


def test_what_cannot_be_done_is_refused():
    q = pb.unknown("q")
    with pytest.raises(ProblemError, match="Nothing was measured that could determine q"):
        pb.solve(pb.Problem(-U.diff(X, 2) - q, LINE, [pb.Dirichlet(U, 0)]))
    with pytest.raises(InputError, match="'method' parameter of solve does not go with unknown"):
        pb.solve(rod(q, SHAPE), method=pb.PIELM())
