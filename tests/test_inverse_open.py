"""What data leave open, and models that do not fit, where a search could end at a number all the same."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import pibls as pb
from internals import symmetric_sensors

X, T = pb.coordinates("x t")
U, V = pb.field("u", X), pb.field("u", X, T)
Y = pb.field("y", T)
LINE = pb.Interval((X, 0, 1))


def noise(count, size, seed=0):
    return size * np.random.default_rng(seed).standard_normal(count)


def test_a_sensor_in_the_middle_does_not_tell_left_from_right():
    s = pb.unknown("s", start=0.3, bounds=(0, 1))

    def source(y):
        return np.exp(-(((y - 0.3) / 0.1) ** 2))

    value = 0.5 * (quad(lambda y: y * source(y), 0, 0.5)[0] + quad(lambda y: (1 - y) * source(y), 0.5, 1)[0])
    observed = pb.Observation(U, {X: np.full(10, 0.5)}, value + noise(10, 3e-4), noise=3e-4)
    equation = -U.diff(X, 2) - sp.exp(-(((X - s) / 0.1) ** 2))
    found = pb.solve(pb.Problem(equation, LINE, [pb.Dirichlet(U, 0), observed]))
    assert found.status == "ill-posed"
    assert "Other values fit as well: s = 0.6997" in found.diagnostics.message


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-8])
def test_a_number_that_sensors_sit_still_for_is_open_at_every_tolerance(tol):
    """What errors of solutions make of it on the line of symmetry, times some millions, would fit."""
    found = pb.solve(symmetric_sensors(), tol=tol)
    assert found.status == "ill-posed"
    assert not found.parameters["b"].is_determined
    assert found.parameters["a"].value == pytest.approx(2.0, abs=2e-3)


def test_a_source_downstream_of_all_sensors_is_not_determined():
    """Errors of solutions upstream, times a strength of 10¹⁴, look like noise."""
    q = pb.unknown("q")
    observed = pb.Observation(V, {X: np.full(10, 0.2), T: np.linspace(0.1, 1, 10)}, noise(10, 0.01), noise=0.01)
    equation = V.diff(T) + V.diff(X) - q * sp.exp(-(((X - 0.8) / 0.05) ** 2))
    conditions = [pb.Dirichlet(V, 0, on=LINE.left), pb.Initial(V, 0), observed]
    found = pb.solve(pb.Problem(equation, LINE * pb.TimeInterval(T, 0, 1), conditions))
    assert found.status == "ill-posed"
    assert found.parameters.remarks == ("The data do not depend on q: it is not determined.",)


def test_an_initial_function_that_has_decayed_is_not_determined():
    g = pb.field("g", X, prior=pb.Smooth(), start=0)
    places = np.linspace(0.1, 0.9, 9)
    values = places * (1 - places) / 2 + noise(9, 1e-3, 4043)
    observed = pb.Observation(V, {X: places, T: 5.0}, values, noise=1e-3)
    domain = LINE * pb.TimeInterval(T, 0, 5)
    found = pb.solve(pb.Problem(V.diff(T) - V.diff(X, 2) - 1, domain, [pb.Dirichlet(V, 0), pb.Initial(V, g), observed]))
    assert found.status == "ill-posed"
    assert found.parameters.remarks == ("The data do not depend on g: it is not determined.",)
    assert found.standard_deviation([[0.5, 0.0]])["g"][0] > 1e6
    assert "cells" in found.diagnostics.settings  # g stays where it was: moved by errors, it would jump at the corners


@pytest.mark.parametrize("source", [lambda f, g: f.diff(X), lambda f, g: f + g], ids=["slope", "sum"])
def test_functions_that_a_constant_may_be_added_to_are_told(source):
    f, g = (pb.field(name, X, prior=pb.Smooth(), start=0) for name in "fg")
    places = np.linspace(0.02, 0.98, 40)
    observed = pb.Observation(U, {X: places}, np.sin(np.pi * places) + noise(40, 0.01), noise=0.01)
    found = pb.solve(pb.Problem(-U.diff(X, 2) - source(f, g), LINE, [pb.Dirichlet(U, 0), observed]))
    assert found.status == "ill-posed"
    assert "The data do not determine f: any constant may be added to it." in found.parameters.remarks


def test_a_function_is_not_called_open_for_want_of_accuracy():
    """Of u_tt = u_xx with u = g at first and 0 at the ends: whatever jumps there goes through all of the solution."""
    g = pb.field("g", X, prior=pb.Smooth(), start=0)
    where = np.random.default_rng(1).uniform([0, 0.05], [1, 1], (120, 2))
    values = np.sin(np.pi * where[:, 0]) * np.cos(np.pi * where[:, 1]) + noise(120, 0.03)
    conditions = [pb.Dirichlet(V, 0), pb.Initial(V, g), pb.Initial(V.diff(T), 0)]
    observed = pb.Observation(V, where, values, noise=0.03)
    equation, domain = V.diff(T, 2) - V.diff(X, 2), LINE * pb.TimeInterval(T, 0, 1)
    found = pb.solve(pb.Problem(equation, domain, [*conditions, observed]), budget=1)
    assert found.status == "stalled"
    assert not found.parameters.remarks
    assert abs(found([[0.5, 0.0]])["g"][0] - 1) < 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_numbers_that_fit_as_well_however_large_are_not_determined(seed):
    """Of y′ = −V y/(K + y) with y far below K: near K = 1, where a search ends, deviations look finite."""
    rate, half = (pb.unknown(name, start=100, bounds=(0, None)) for name in "VK")
    times = np.linspace(0.25, 5, 20)
    path = solve_ivp(lambda _, y: -300 * y / (500 + y), (0, 5), [0.1], rtol=1e-10, atol=1e-13, t_eval=times).y[0]
    observed = pb.Observation(Y, {T: times}, path + noise(20, 1e-3, seed), noise=1e-3)
    equation = Y.diff(T) + rate * Y / (half + Y)
    found = pb.solve(pb.Problem(equation, pb.TimeInterval(T, 0, 5), [pb.Initial(Y, 0.1), observed]))
    assert found.status == "ill-posed"
    assert "The data do not determine K and V: only K/V = 1.6" in found.diagnostics.message


@pytest.mark.parametrize("seed", range(2))
def test_an_oscillation_is_no_decay_however_noisy(seed):
    k, times = pb.unknown("k", bounds=(0, None)), np.linspace(0.1, 6, 40)
    observed = pb.Observation(Y, {T: times}, np.exp(-0.2 * times) * np.cos(2 * times) + noise(40, 0.05, seed))
    found = pb.solve(pb.Problem(Y.diff(T) + k * Y, pb.TimeInterval(T, 0, 6), [pb.Initial(Y, 1), observed]))
    assert found.status == "stalled"
    assert "have the same sign in whole regions" in found.diagnostics.message


@pytest.mark.filterwarnings("error")
def test_an_exponent_that_overflows_on_the_way_is_found_without_noise_on_the_screen(capfd):
    """Of −u″ = 2 eᵘ: steps of the search pass exponents at which there is no solution."""
    strength, exponent = pb.unknown("q", start=0.5, bounds=(0, None)), pb.unknown("e", start=0.7)
    places = np.linspace(0.05, 0.95, 19)
    # u = 2 log(cosh c / cosh(c (1 − 2x))) with q = 8 c²/cosh² c: for q = 2, c = 0.589.
    c = brentq(lambda c: 8 * c**2 - 2 * np.cosh(c) ** 2, 0.3, 0.9, xtol=1e-14)
    values = 2 * np.log(np.cosh(c) / np.cosh(c * (1 - 2 * places))) + noise(19, 5e-4)
    observed = pb.Observation(U, {X: places}, values, noise=5e-4)
    equation = -U.diff(X, 2) - strength * sp.exp(exponent * U)
    found = pb.solve(pb.Problem(equation, LINE, [pb.Dirichlet(U, 0), observed]), tol=1e-4)
    assert found.status == "converged"
    assert abs(found.parameters["q"].value - 2) < 4 * found.parameters["q"].deviation
    assert capfd.readouterr().err == ""


def test_a_number_that_data_limit_on_one_side_has_an_interval_to_the_other_end():
    """The viscosity of a flow between walls from five points: with this noise, none at all fits nearly as well."""
    found = pb.solve(pb.problems.inverse.brinkman_forchheimer(9.2e-3, 2))
    assert found.status == "converged"
    low, high = found.parameters["nu_e"].interval
    assert low == 0.0
    assert 1e-3 < high < 2e-3
    assert "Data do not limit nu_e from below" in found.diagnostics.message


@pytest.mark.parametrize(("seed", "start"), [(1, (1, 1)), (2, (5, 0.3))])
def test_a_product_is_all_that_is_determined_even_where_noise_favours_a_factor(seed, start):
    """Of a rod that is heated at one end for a while, the temperature there tells k ρ; its far end is hardly felt.

    Where noise looks a little like that far end, a linear model about the best fit is sure of both numbers.
    """
    k, rho = (pb.unknown(name, start=own, bounds=(0, None)) for name, own in zip(("k", "rho"), start, strict=True))
    stop, true = 0.2, 0.7 * 1.3
    times = np.linspace(stop / 20, stop, 20)
    data = 2.0 * np.sqrt(times / (np.pi * true))
    measured = pb.Observation(V, {X: np.zeros(20), T: times}, data + data.max() * noise(20, 0.02, seed))
    heated = pb.Condition(sp.Eq(-k * V.diff(X), 1), on=LINE.left)
    conditions = [heated, pb.Dirichlet(V, 0, on=LINE.right), pb.Initial(V, 0), measured]
    law = sp.Eq(rho * V.diff(T), k * V.diff(X, 2))
    found = pb.solve(pb.Problem(law, LINE * pb.TimeInterval(T, 0, stop), conditions), tol=1e-3)
    assert found.status == "ill-posed"
    assert "The data do not determine k and rho: only k*rho = 0.91" in found.diagnostics.message
