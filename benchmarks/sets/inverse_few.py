"""Unknowns of few places, of readings that are far out, and of models that say little: to work with, and aside.

They were written from the documentation alone. Nothing may be chosen by ``inverse_few_aside``. Data come from closed
forms, series and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

import pibls as pb
from benchmarks.sets.inverse_open import LINE, SQUARE, N, R, T, during, grid, h, positive, t, w, x, y
from benchmarks.sets.meters import Meter, collected
from pibls.checks import FloatArray

case, inverse_few = collected()
aside, inverse_few_aside = collected()


def followed(rates: Any, first: list[float], at: FloatArray) -> FloatArray:
    """Return the states of an evolution at some times, by another integrator."""
    return np.asarray(solve_ivp(rates, (0, at[-1]), first, "DOP853", at, rtol=1e-10, atol=1e-12).y)


# To work with ---------------------------------------------------------------------------------------------------------


@case("ill-posed", told="slope")
def angle_of_a_throw(meter: Meter) -> pb.Problem:
    """Ask at what slope a stone was thrown that passed one height at one place: a flat or a steep one."""
    slope, field = pb.unknown("slope", start=0.5), pb.Interval((x, 0, 10))
    data = meter(w, np.full(5, 8.0), np.full(5, 8 * 1.2 - 0.0218 * 64 * (1 + 1.2**2)), 0.05)
    leaves = [pb.Dirichlet(w, 0, on=field.left), pb.Condition(sp.Eq(w.diff(x), slope), on=field.left)]
    return pb.Problem(sp.Eq(w.diff(x, 2), -R(436, 10000) * (1 + slope**2)), field, [*leaves, data])


@case("ill-posed", told="D")
def spot_seen_once(meter: Meter) -> pb.Problem:
    """Ask how fast a spot spreads, measured at one place and time: it is still to come there, or has been."""
    spread, nodes = positive("D", 0.01), np.linspace(0, 1, 4001)
    waves = [
        (n, 2 * np.trapezoid(np.exp(-200 * (nodes - 0.2) ** 2) * np.sin(n * np.pi * nodes), nodes))
        for n in range(1, 60)
    ]
    seen = sum(size * np.exp(-0.02 * (n * np.pi) ** 2) * np.sin(0.6 * n * np.pi) for n, size in waves)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.exp(-200 * (x - R(1, 5)) ** 2))]
    data = meter(h, {x: np.full(5, 0.6), t: np.full(5, 1.0)}, np.full(5, seen), 0.001)
    return pb.Problem(sp.Eq(h.diff(t), spread * h.diff(x, 2)), LINE * during(), [*conditions, data])


@case("ill-posed", told="E")
def body_that_is_only_moved(meter: Meter) -> pb.Problem:
    """Ask for both moduli of a plate whose edges are moved: no force was measured."""
    a, b = pb.field("a", x, y), pb.field("b", x, y)
    young, poisson = positive("E", 100), pb.unknown("nu", start=0.2, bounds=(0, 0.49))
    stress, factor = pb.stress([a, b], young=young, poisson=poisson, plane="stress"), -2 - 4 * 0.7 / 1.3
    where = grid([0.3, 0.6, 0.9], [0.3, 0.6, 0.9])
    moved = [pb.Dirichlet(a, x**2 + y**2), pb.Dirichlet(b, factor * x * y)]
    data = [meter(a, where, np.sum(where**2, axis=1), 0.01), meter(b, where, factor * np.prod(where, axis=1), 0.01)]
    return pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], SQUARE, [*moved, *data])


@case("stalled", told="residuals", modes=("stated", "unstated"))
def two_readings_far_out(meter: Meter) -> pb.Problem:
    """Follow a cooling rod with a thermometer that went wrong twice."""
    k, at = positive("k"), np.linspace(0.05, 1.5, 30)
    seen = np.sin(0.4 * np.pi) * np.exp(-0.3 * np.pi**2 * at)
    seen[[7, 19]] += [0.15, -0.2]
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x)), meter(h, {x: 0.4, t: at}, seen, 0.01)]
    return pb.Problem(sp.Eq(h.diff(t), k * h.diff(x, 2)), LINE * during(R(3, 2)), conditions)


@case()
def neuron_that_fires(meter: Meter) -> pb.Problem:
    """Find the three numbers of FitzHugh and Nagumo's neuron from both of its fields."""
    a, b, c, at = positive("a", 0.5), positive("b", 0.5), positive("c", 2), np.linspace(0.5, 20, 40)

    def rates(_: float, state: FloatArray) -> list[float]:
        v, r = state
        return [3 * (v - v**3 / 3 + r), -(v - 0.2 + 0.2 * r) / 3]

    one, other = followed(rates, [-1, 1], at)
    laws = [sp.Eq(T.diff(t), c * (T - T**3 / 3 + N)), sp.Eq(N.diff(t), -(T - a + b * N) / c)]
    data = [meter(T, at, one, 0.1), meter(N, at, other, 0.05)]
    return pb.Problem(laws, during(20), [pb.Initial(T, -1), pb.Initial(N, 1), *data], truth={a: 0.2, b: 0.2, c: 3})


# Aside ----------------------------------------------------------------------------------------------------------------


@aside("ill-posed", told="k")
def drug_seen_once(meter: Meter) -> pb.Problem:
    """Ask for the uptake of a drug from one reading late: it was slow, or fast and is gone."""
    uptake = positive("k", 0.3)
    seen = 1.2 / (0.5 - 1.2) * (np.exp(-1.2 * 3) - np.exp(-0.5 * 3))
    laws = [sp.Eq(T.diff(t), -uptake * T), sp.Eq(N.diff(t), uptake * T - N / 2)]
    data = meter(N, np.full(6, 3.0), np.full(6, seen), 0.005)
    return pb.Problem(laws, during(3), [pb.Initial(T, 1), pb.Initial(N, 0), data])


@aside("ill-posed", told="r")
def joint_between_unknown_layers(meter: Meter) -> pb.Problem:
    """Ask for a joint and the two layers that it joins, between known temperatures: only ratios matter."""
    joint, one, other, half = positive("r", 0.1), positive("k1"), positive("k2"), pb.Interval((x, 0, 0.5))
    at = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
    flow = 1 / (0.5 / 2 + 0.5 + 0.3)
    law = sp.Eq(pb.div([pb.per_region({half: one}, otherwise=other) * w.diff(x)]), 0)
    data = meter(w, at, np.where(at < 0.5, 1 - flow * at / 2, flow * (1 - at)), 0.005)
    return pb.Problem(law, LINE, [pb.Dirichlet(w, 1 - x), pb.Interface(w, on=half, resistance=joint), data])


@aside("stalled", told="residuals", modes=("stated", "unstated"))
def three_readings_far_out(meter: Meter) -> pb.Problem:
    """Fit a decay from an unknown start to forty readings of which three are wrong."""
    rate, first, at = positive("k"), positive("first"), np.linspace(0.1, 4, 40)
    seen = 2 * np.exp(-0.8 * at)
    seen[[5, 17, 30]] += [0.3, -0.4, 0.3]
    return pb.Problem(sp.Eq(T.diff(t), -rate * T), during(4), [pb.Initial(T, first), meter(T, at, seen, 0.02)])


@aside()
def reaction_of_unknown_order(meter: Meter) -> pb.Problem:
    """Find rate and order of a reaction."""
    rate, order, at = positive("k", 0.5), positive("n", 1.2), np.linspace(0.3, 6, 20)
    data = meter(T, at, (2**-0.7 + 0.7 * 0.4 * at) ** (-1 / 0.7), 0.02)
    law = sp.Eq(T.diff(t), -rate * T**order)
    return pb.Problem(law, during(6), [pb.Initial(T, 2), data], truth={rate: 0.4, order: 1.7})
