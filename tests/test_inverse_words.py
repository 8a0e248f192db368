"""Inverse problems end with the right word: twins, patterns in residuals, unknowns across interfaces."""

import numpy as np
import pytest
import sympy as sp
from benchmarks.sets.inverse_more import inverse_more
from benchmarks.sets.inverse_open import LINE, SQUARE, R, inverse_open, t, w, x, y, zone_values
from tests.internals import CellForward, EvolutionForward, chance_of, far_out, find_undetermined

import pibls as pb

AT = np.linspace(0.05, 0.95, 10)


def joined(interface, values):
    conditions = [pb.Dirichlet(w, 1 - x), interface, pb.Observation(w, AT, values)]
    return pb.solve(pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, conditions))


def test_the_resistance_of_a_joint_is_found():
    found = joined(
        pb.Interface(w, on=x < R(1, 2), resistance=pb.unknown("r", bounds=(0, None))),
        np.where(AT < 0.5, 1 - AT / 1.5, (1 - AT) / 1.5),
    )
    assert found.status == "converged"
    assert found.parameters["r"].value == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("on_the_outside", [True, False])
def test_equations_of_an_interface_have_unknowns_on_either_side(on_the_outside):
    m, slope = pb.unknown("m", start=1.7), w.diff(x)
    left = sp.Eq(m * pb.outside(w), 2 * pb.inside(w)) if on_the_outside else sp.Eq(pb.outside(w), m * pb.inside(w))
    interface = pb.Interface([left, sp.Eq(pb.outside(slope), pb.inside(slope))], on=x < R(1, 2))
    found = joined(interface, np.where(AT < 0.5, 1 - 4 / 3 * AT, 4 / 3 * (1 - AT)))
    assert found.status == "converged"
    assert found.parameters["m"].value == pytest.approx(1.0 if on_the_outside else 2.0, rel=1e-9)


def test_conductivities_of_two_zones_are_as_certain_as_the_data_let_them_be():
    problem = inverse_open["two_zones"].problem("stated", 0)
    found = pb.solve(problem).parameters
    where, step = problem.conditions[-1].points, 1e-5
    k = np.array([found["k1"].value, found["k2"].value])
    moves = np.diag(step * k)
    columns = [(zone_values(where, *(k + move)) - zone_values(where, *(k - move))) / (2 * step) for move in moves]
    information = np.array(columns) @ np.array(columns).T / 0.001**2
    bound = k * np.sqrt(np.diag(np.linalg.inv(information)))
    assert [found["k1"].deviation, found["k2"].deviation] == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("name", ["chain_of_decays", "sign_of_an_amplitude"])
def test_twins_are_told_without_bounds(name):
    found = pb.solve(inverse_open[name].problem("unstated", 0))
    assert found.status == "ill-posed"
    assert "Other values fit as well" in found.diagnostics.message


def test_a_twin_is_found_where_another_number_has_to_follow_far():
    found = pb.solve(inverse_more["drug_in_an_unknown_volume"].problem("exact", 0))
    assert found.status == "ill-posed"
    assert "Other values fit as well: V = 0.3333, ka = 0.1, kb = 0.9." in found.diagnostics.message


@pytest.mark.parametrize("noise", [0.05, None])
def test_another_angle_of_a_throw_is_found_where_one_place_was_measured(noise):
    """Readings at one place differ by their noise alone, which is no pattern and need not be explained."""
    height, slope = pb.field("height", x), pb.unknown("slope", start=0.5)
    flight = pb.Interval((x, 0, 10))
    readings = 8 * 1.2 - 0.0218 * 64 * (1 + 1.2**2) + 0.05 * np.random.default_rng(0).standard_normal(5)
    conditions = [
        pb.Dirichlet(height, 0, on=flight.left),
        pb.Condition(sp.Eq(height.diff(x), slope), on=flight.left),
        pb.Observation(height, np.full(5, 8.0), readings, noise=noise),
    ]
    found = pb.solve(pb.Problem(sp.Eq(height.diff(x, 2), -R(436, 10000) * (1 + slope**2)), flight, conditions))
    assert found.status == "ill-posed"
    assert found.parameters["slope"].value == pytest.approx(1.2, abs=0.02)
    assert "Other values fit as well: slope = 4.5" in found.diagnostics.message


def test_looking_for_twins_that_blow_up_is_brief(monkeypatch):
    """What an exchanged or mirrored number makes blow up costs less than the search for the number."""
    rate, work = pb.unknown("rate", start=1), []
    usual = EvolutionForward.respond

    def counted(self, vector, near=None):
        before = self.budget.operations
        try:
            return usual(self, vector, near)
        finally:
            work.append((float(vector[0]), self.budget.operations - before))

    monkeypatch.setattr(EvolutionForward, "respond", counted)
    u, at = pb.field("u", t), np.linspace(0.1, 2, 20)
    law = sp.Eq(u.diff(t), -rate * u * (1 + u))
    data = pb.Observation(u, at, 2 / (3 * np.exp(1.5 * at) - 2) + 0.01 * np.cos(at * 40))
    found = pb.solve(pb.Problem(law, pb.TimeInterval(t, 0, 2), [pb.Initial(u, 2), data]))
    assert found.status == "converged"
    wrong = [operations for value, operations in work if value < 0]
    assert 0 < sum(wrong) < sum(operations for value, operations in work if value > 0)


def test_a_number_that_does_nothing_stays_where_it_is(monkeypatch):
    """What solutions change by for want of digits leads nowhere."""
    field, k, a = pb.field("v", x, y), pb.unknown("k", bounds=(0, None)), pb.unknown("a", bounds=(0, 3))
    where, tried, usual = SQUARE.sample(12, "kronecker"), [], CellForward.respond
    shape = np.sin(np.pi * where[:, 0]) * np.sinh(np.pi * where[:, 1]) / np.sinh(np.pi)
    readings = 1.7 * shape + 0.01 * np.random.default_rng(0).standard_normal(12)

    def noted(self, vector, near=None):
        tried.append(vector[1])
        return usual(self, vector, near)

    monkeypatch.setattr(CellForward, "respond", noted)
    conditions = [
        pb.Dirichlet(field, a * sp.sin(sp.pi * x), on=SQUARE.top),
        pb.Dirichlet(field, 0, on=SQUARE.boundary - SQUARE.top),
        pb.Observation(field, where, readings, noise=0.01),
    ]
    found = pb.solve(pb.Problem(sp.Eq(k * pb.laplacian(field), 0), SQUARE, conditions))
    assert found.status == "ill-posed"
    assert "The data do not depend on k" in found.diagnostics.message
    assert found.parameters["a"].value == pytest.approx(1.7, abs=0.03)
    assert all(0.01 < value < 100 for value in tried)


def test_only_ratios_of_weight_tension_and_drag_are_determined():
    """Steps that follow errors of sensitivities to where nothing changes end before the ratios are found."""
    found = pb.solve(inverse_more["weight_tension_and_drag"].problem("unstated", 0))
    assert found.status == "ill-posed"
    assert "(ln drag, ln rho, ln tension) = (0.58, 0.58, 0.58)" in found.diagnostics.message


def test_a_capacity_below_the_data_does_not_run_away():
    """A step that is too long for the capacity does not hold back the rate."""
    found = pb.solve(inverse_open["logistic_growth_seen_early"].problem("stated", 0))
    assert found.status == "converged"
    assert found.diagnostics.settings["starts"] == 1


def test_rates_that_cannot_be_exchanged_have_no_twin():
    assert pb.solve(inverse_open["absorption_into_known_volume"].problem("stated", 0)).status == "converged"


def test_a_model_that_leaves_a_pattern_does_not_fit_without_stated_noise():
    found = pb.solve(inverse_open["load_that_is_not_even"].problem("unstated", 0))
    assert found.status == "stalled"
    assert "same sign in whole regions" in found.diagnostics.message


def test_residuals_of_a_fit_look_like_noise_as_often_as_chance_says():
    place = np.linspace(0, 1, 20)
    measured = pb.Problem(w.diff(x) - 1, LINE, [pb.Observation(w, place, place)]).statements[-1]
    Q = np.linalg.qr(np.stack([np.exp(-place), place], axis=1))[0]
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, 20))
    chances = np.array([chance_of(measured, e - Q @ (Q.T @ e), Q) for e in noise])
    assert 0.07 < np.mean(chances < 0.1) < 0.13
    # Two looks at the same residuals are not independent: what is no chance is as rare as said, the rest a bit rarer.
    assert 0.35 < np.mean(chances < 0.5) < 0.55


def test_a_wave_through_a_third_of_the_measurements_is_a_pattern():
    place = np.linspace(0, 1, 40)
    measured = pb.Problem(w.diff(x) - 1, LINE, [pb.Observation(w, place, place)]).statements[-1]
    noise = np.random.default_rng(0).standard_normal(40)
    assert chance_of(measured, np.sin(6 * np.pi * place) + 0.3 * noise, np.zeros((40, 0))) < 1e-4
    assert chance_of(measured, noise, np.zeros((40, 0))) > 0.05


def test_a_reading_that_is_far_out_is_told_without_stated_noise():
    rate, u, at = pb.unknown("rate"), pb.field("u", x), np.linspace(0.04, 0.96, 24)
    readings = np.exp(-2 * at) + 0.01 * np.random.default_rng(0).standard_normal(24)
    readings[[7, 15]] += [0.12, -0.15]

    def answer(**how):
        decay = sp.Eq(u.diff(x), -rate * u)
        conditions = [pb.Dirichlet(u, 1, on=LINE.left), pb.Observation(u, at, readings, **how)]
        return pb.solve(pb.Problem(decay, LINE, conditions))

    found = answer()
    assert found.status == "stalled"
    assert "2 of 24 residuals" in found.diagnostics.message
    assert answer(loss="huber").status == "converged"


@pytest.mark.parametrize("count", [8, 25])
def test_residuals_of_a_fit_are_far_out_as_seldom_as_chance_says(count):
    Q = np.linalg.qr(np.vander(np.linspace(0, 1, count), 2))[0]
    noise = np.random.default_rng(0).standard_normal((4000, count))
    chances = np.array([far_out(e - Q @ (Q.T @ e), Q)[1] for e in noise])
    assert 0.002 < np.mean(chances < 0.05) < 0.05


def test_directions_that_only_errors_of_sensitivities_see_are_open():
    rows, values, signs = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-3]]), np.ones(2), np.array([True, True])
    seen, unseen = (
        find_undetermined(1e4 * rows, size * np.ones((2, 2)), ("k", "c"), values, values, signs, lambda _: 0.0)
        for size in (0.1, 10.0)
    )
    assert not seen.numbers.any()
    assert unseen.numbers.all()


def test_directions_in_logarithms_say_so():
    rows, values, signs = np.array([[1.0, -np.sqrt(2)]]), np.array([3.0, 3.0]), np.array([True, False])
    (remark,) = find_undetermined(
        rows, 1e-6 * np.eye(2), ("k", "c"), values, np.array([3.0, 1.0]), signs, lambda _: 1.0
    ).remarks
    assert "(ln k, c) = (0.82, 0.58)" in remark
