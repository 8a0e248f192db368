"""Bases, boundary conditions, rates and Jacobians of the method of lines."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import STEEPEST, Design, Evolution, Galerkin, Monitor, QuadratureRule, compressed, find_evolution
from pibls.problem import Problem

x, t = pb.coordinates("x t")
u, v = pb.field("u", x, t), pb.field("v", x, t)
INTERVAL = pb.Interval((x, -1, 2))
DOMAIN = INTERVAL * pb.TimeInterval(t, 0, 1)


def system(problem: Problem, fineness: float = 1.0, periodic: tuple[bool, ...] = (False,)) -> Galerkin:
    evolution = find_evolution(problem)
    assert isinstance(evolution, Evolution)
    design = Design(evolution.space, periodic)
    return Galerkin(evolution, compressed(*design.draw(fineness, np.random.default_rng(0))))


def pair() -> Problem:
    equations = [
        sp.Eq(u.diff(t), u.diff(x, 2) / 10 - u * v.diff(x) + sp.sin(t) * u**2 + x),
        sp.Eq(v.diff(t, 2), v.diff(x, 2) + sp.sin(v) - u * v.diff(t)),
    ]
    conditions = [
        pb.Dirichlet(u, sp.cos(t)),
        pb.Robin(v, 1, 2, t**2),
        pb.Initial(u, 1 + x**2),
        pb.Initial(v, sp.exp(-x)),
        pb.Initial(v.diff(t), x),
    ]
    return Problem(equations, DOMAIN, conditions)


def test_the_jacobian_is_the_derivative_of_the_rates() -> None:
    galerkin = system(pair())
    rng = np.random.default_rng(1)
    state, direction = rng.standard_normal((2, galerkin.size))
    step = 1e-6
    around = np.stack([state + step * direction, state - step * direction])
    ahead, behind = galerkin.rates(np.array([0.4, 0.4]), around)
    exact = galerkin.jacobian(0.4, state) @ direction
    assert np.linalg.norm((ahead - behind) / (2 * step) - exact) < 1e-7 * np.linalg.norm(exact)
    assert not galerkin.is_linear


def test_rates_at_several_times_are_those_at_each() -> None:
    galerkin = system(pair())
    states = np.random.default_rng(2).standard_normal((3, galerkin.size))
    times = np.array([0.0, 0.3, 0.9])
    together = galerkin.rates(times, states)
    each = [galerkin.rates(times[i : i + 1], states[i : i + 1])[0] for i in range(3)]
    np.testing.assert_allclose(together, each, rtol=1e-12, atol=1e-9)


def test_any_state_keeps_the_boundary_conditions() -> None:
    galerkin = system(pair())
    basis, moment = galerkin.basis, np.array([0.7])
    ends = np.array([[-1.0], [2.0]])
    values = basis.at(ends, [(0,), (1,)])
    rng = np.random.default_rng(3)
    for name, wanted in (("u", np.cos(0.7)), ("v", 0.7**2)):
        own = galerkin.traces[name]
        assert own.lifting is not None
        full = own.kernel @ rng.standard_normal(own.kernel.shape[1]) + own.lifting @ own.values(moment)[0]
        found = values[(0,)] @ full
        if name == "v":
            found = found + 2 * np.array([-1.0, 1.0]) * (values[(1,)] @ full)
        np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_the_initial_values_are_projected() -> None:
    galerkin = system(pair())
    state = galerkin.initial()
    points = galerkin.basis.rule.points[:, 0]
    # u = 1 + x² clashes with cos t at the ends: there it cannot be met.
    for name, wanted in (("u", 1 + points**2), ("v", np.exp(-points))):
        given, found = galerkin.initial_values(name, state)
        np.testing.assert_allclose(given, wanted, rtol=1e-12)
        if name == "v":
            # The Robin data at t = 0 is met by no exponential: close inside, not at the ends.
            assert np.sqrt(np.mean((given - found) ** 2)) < 0.1


def test_a_heat_equation_has_the_eigenvalues_of_its_modes() -> None:
    problem = Problem(sp.Eq(u.diff(t), u.diff(x, 2)), DOMAIN, [pb.Dirichlet(u, 0), pb.Initial(u, 0)])
    galerkin = system(problem)
    assert galerkin.is_linear
    values = np.sort(np.linalg.eigvals(galerkin.jacobian(0.0, galerkin.initial())).real)[::-1]
    np.testing.assert_allclose(values[:5], -((np.pi * np.arange(1, 6) / 3) ** 2), rtol=1e-8)


def test_periodic_transport_neither_grows_nor_decays() -> None:
    problem = Problem(sp.Eq(u.diff(t) + u.diff(x), 0), DOMAIN, [pb.Periodic(u, x), pb.Initial(u, 0)])
    values = np.linalg.eigvals(system(problem, periodic=(True,)).jacobian(0.0, np.zeros(21)))
    assert np.abs(values.real).max() < 1e-10
    wanted = 2 * np.pi / 3 * np.arange(1, 11)
    np.testing.assert_allclose(np.sort(values.imag)[-10:], wanted, rtol=1e-10)


def test_waves_along_one_periodic_coordinate_repeat() -> None:
    y = pb.coordinates("y")
    design = Design(pb.Rectangle((x, 0, 2), (y, 0, 1)), (True, False))
    network, rule = design.draw(1.0, np.random.default_rng(0))
    left, right = (network.evaluate([[edge, 0.3]], [(0, 0)])[0, 0] for edge in (0.0, 2.0))
    np.testing.assert_allclose(left, right, atol=1e-12)
    assert rule.weights.sum() == pytest.approx(2.0)


def test_a_penalty_imposes_conditions_on_a_curved_boundary() -> None:
    x2, y2, t2 = pb.coordinates("x y t")
    w = pb.field("w", x2, y2, t2)
    disk = pb.Disk((x2, y2), (0, 0), 1)
    problem = Problem(
        sp.Eq(w.diff(t2), pb.laplacian(w)), disk * pb.TimeInterval(t2, 0, 1), [pb.Dirichlet(w, 0), pb.Initial(w, 1)]
    )
    values = np.linalg.eigvals(system(problem, 1.3, (False, False)).jacobian(0.0, np.zeros(1)))
    slowest = np.sort(values.real)[::-1]
    # Squares of the zeros of the Bessel functions J0 and J1 (twice).
    np.testing.assert_allclose(slowest[:3], [-5.783186, -14.681971, -14.681971], rtol=1e-3)
    assert values.real.max() < 0


def test_the_gauge_is_graded_and_follows_the_steepest_slope() -> None:
    places = np.linspace(-1, 1, 401)
    monitor = Monitor(places, 100 / np.cosh(200 * (places - 0.25)) ** 2)
    found, lengths, _ = monitor.gauge
    assert lengths.min() == pytest.approx(0.01)
    assert found[np.argmin(lengths)] == pytest.approx(0.25)
    assert np.abs(np.diff(lengths) / np.diff(found)).max() <= 0.6 + 1e-9
    assert lengths.max() <= 1.0
    dense = monitor.spread(np.linspace(0, 1, 201))
    assert np.count_nonzero(np.abs(dense - 0.25) < 0.05) > 50


def test_a_sharpened_monitor_shortens_its_gauge_there_but_not_without_end() -> None:
    monitor = Monitor(np.linspace(-1, 1, 11), np.ones(11))
    place = np.array([0.5])
    once = monitor.sharpened(place, 2.5)
    assert once.at(place)[0] == pytest.approx(0.4)
    often = once
    for _ in range(30):
        often = often.sharpened(place, 2.5)
    assert often.peak == STEEPEST


def test_steep_designs_have_their_nodes_and_points_at_the_front() -> None:
    places = np.linspace(-1, 1, 201)
    design = Design(INTERVAL, (False,), Monitor(places, 40 / np.cosh(50 * (places + 0.5)) ** 2))
    network, rule = design.draw(1.0, np.random.default_rng(0))
    assert network.size == pytest.approx(design.nodes(1.0), abs=1)
    assert rule.weights.sum() == pytest.approx(3.0)
    # −0.5 in normalised coordinates is −0.25 on (−1, 2).
    near = np.abs(rule.points[:, 0] + 0.25) < 0.15
    assert near.mean() > 0.35
    steeper = Monitor(places, 80 / np.cosh(50 * (places + 0.5)) ** 2)
    assert design.excess(steeper) == pytest.approx(2.0)
    assert Design(INTERVAL, (False,)).excess(steeper) == np.inf


def test_whole_waves_are_equally_strong_however_many_there_are() -> None:
    network, rule = Design(INTERVAL, (True,)).draw(32.04, np.random.default_rng(0))
    basis = compressed(network, rule)
    assert basis.size == network.size
    # The constant is longer than all others.
    np.testing.assert_allclose(basis.strength[1:], basis.strength[0] / np.sqrt(2), rtol=1e-10)


def test_features_that_say_the_same_are_merged() -> None:
    network, rule = Design(INTERVAL, (False,)).draw(1.0, np.random.default_rng(0))
    basis = compressed(network, rule)
    doubled = compressed(network, QuadratureRule(np.vstack([rule.points] * 2), np.concatenate([rule.weights] * 2) / 2))
    assert basis.size < network.size
    assert doubled.size == basis.size
    np.testing.assert_allclose(doubled.strength[:10], basis.strength[:10], rtol=1e-10)


def test_conditions_on_a_piece_of_a_side_and_timed_data_in_the_plane() -> None:
    x2, y2, t2 = pb.coordinates("x y t")
    w = pb.field("w", x2, y2, t2)
    square = pb.Rectangle((x2, 0, 1), (y2, 0, 1))
    domain = square * pb.TimeInterval(t2, 0, 1)
    low, high = (domain.left.where(lambda X, s=s: s * X[:, 1] > s * 0.5) for s in (-1, 1))
    exact = sp.exp(-t2) * (x2 + 2 * y2)
    others = domain.right | domain.bottom | domain.top
    conditions = [pb.Dirichlet(w, exact, on=part) for part in (low, high, others)]
    problem = Problem(
        sp.Eq(w.diff(t2), pb.laplacian(w) - exact), domain, [*conditions, pb.Initial(w, exact.subs(t2, 0))]
    )
    galerkin = system(problem, 1.0, (False, False))
    state = galerkin.initial()
    # On the exact solution, w_t = −w: the coefficients decay at the rate one.
    np.testing.assert_allclose(galerkin.rates(np.array([0.0]), state[None])[0], -state, atol=1e-5)
