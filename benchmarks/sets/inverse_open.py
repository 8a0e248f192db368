"""Unknowns from measurements, written from the documentation alone: the half to work with.

The other half is ``inverse_aside``, which nothing may be chosen by. Data come from closed forms, series and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.meters import Meter, collected
from pibls.checks import FloatArray

R = sp.Rational
x, y, t = pb.coordinates("x y t")
T, N = pb.field("T", t), pb.field("N", t)
w, h, v = pb.field("w", x), pb.field("h", x, t), pb.field("v", x, y)
LINE, SQUARE = pb.Interval((x, 0, 1)), pb.Rectangle((x, 0, 1), (y, 0, 1))

case, inverse_open = collected()


def during(stop: Any = 1) -> pb.TimeInterval:
    return pb.TimeInterval(t, 0, stop)


def positive(name: str, start: float = 1.0) -> Any:
    return pb.unknown(name, start=start, bounds=(0, None))


def grid(places: Any, times: Any) -> FloatArray:
    """Return all pairs of places and times."""
    return np.stack([one.ravel() for one in np.meshgrid(places, times, indexing="ij")], axis=1)


def plucked(at: float) -> Any:
    """Return the shape of a string that is pulled up at a place, continued over both ends as an odd function."""

    def shape(X: FloatArray) -> FloatArray:
        place = np.mod(np.asarray(X) + 1, 2) - 1
        size = np.abs(place)
        return np.asarray(np.sign(place) * np.where(size < at, size / at, (1 - size) / (1 - at)))

    return shape


# Determined -----------------------------------------------------------------------------------------------------------


@case()
def cooling_cup(meter: Meter) -> pb.Problem:
    """Find how fast a cup cools, and the temperature of the room."""
    rate, room = positive("h", 0.2), pb.unknown("room", start=15)
    at = np.linspace(2, 40, 20)
    data = meter(T, at, 21 + 69 * np.exp(-0.08 * at), 0.3)
    law = sp.Eq(T.diff(t), -rate * (T - room))
    return pb.Problem(law, during(40), [pb.Initial(T, 90), data], truth={rate: 0.08, room: 21})


@case()
def logistic_growth_seen_early(meter: Meter) -> pb.Problem:
    """Find rate and capacity from the first half of a growth."""
    rate, capacity = positive("r", 0.3), positive("K", 10)
    at = np.linspace(0.25, 4.5, 18)
    data = meter(N, at, 50 / (1 + 49 * np.exp(-0.9 * at)), 0.2)
    law = sp.Eq(N.diff(t), rate * N * (1 - N / capacity))
    return pb.Problem(law, during(R(9, 2)), [pb.Initial(N, 1), data], truth={rate: 0.9, capacity: 50})


@case(function=plucked(0.3))
def plucked_string(meter: Meter) -> pb.Problem:
    """Find the shape from which a string was let go, seen by a row of sensors."""
    first = pb.field("first", x, prior=pb.Smooth())
    where = grid(np.linspace(0.1, 0.9, 9), np.linspace(0.05, 1, 20))
    shape = plucked(0.3)
    seen = (shape(where[:, 0] - where[:, 1]) + shape(where[:, 0] + where[:, 1])) / 2
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, first), pb.Initial(h.diff(t), 0), meter(h, where, seen, 0.005)]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), LINE * during(), conditions)


@case()
def contact_resistance(meter: Meter) -> pb.Problem:
    """Find the resistance of a joint in the middle of a rod."""
    joint = positive("joint")
    at = np.linspace(0.05, 0.95, 10)
    data = meter(w, at, np.where(at < 0.5, 1 - at / 1.5, (1 - at) / 1.5), 0.002)
    conditions = [pb.Dirichlet(w, 1 - x), pb.Interface(w, on=x < R(1, 2), resistance=joint), data]
    return pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, conditions, truth={joint: 0.5})


@case()
def partition_coefficient(meter: Meter) -> pb.Problem:
    """Find how many times more of a substance the right half of a membrane holds."""
    m = positive("m")
    at, flow = np.linspace(0.05, 0.95, 10), 4 / 3
    data = meter(w, at, np.where(at < 0.5, 1 - flow * at, flow * (1 - at)), 0.003)
    slope = w.diff(x)
    both = [sp.Eq(pb.outside(w), m * pb.inside(w)), sp.Eq(pb.outside(slope), pb.inside(slope))]
    conditions = [pb.Dirichlet(w, 1 - x), pb.Interface(both, on=x < R(1, 2)), data]
    return pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, conditions, truth={m: 2})


def plume_values(where: FloatArray, d: float, q: float, place: float) -> FloatArray:
    """Return c with c_x = d Δc, c = q exp(−((y − place)/0.2)²) on the left and no other flow through the walls."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    release = q * np.exp(-(((nodes - place) / 0.2) ** 2))
    total = np.zeros(len(where))
    for n in range(60):
        wave = n * np.pi / 2
        share = (weights * release) @ np.cos(wave * (nodes + 1)) * (0.5 if n == 0 else 1.0)
        root = np.sqrt(1 + 4 * d * d * wave * wave)
        falls, rises = (1 - root) / (2 * d), (1 + root) / (2 * d)
        # α e^(falls x) + β e^(rises (x − 3)): one on the left, flat on the right
        a, b = np.linalg.solve([[1, np.exp(-3 * rises)], [falls * np.exp(3 * falls), rises]], [1.0, 0.0])
        along = a * np.exp(falls * where[:, 0]) + b * np.exp(rises * (where[:, 0] - 3))
        total += share * along * np.cos(wave * (where[:, 1] + 1))
    return total


@case()
def plume(meter: Meter) -> pb.Problem:
    """Find strength, place and spreading of a plume in a channel."""
    d, q, place = positive("D", 0.1), positive("Q"), pb.unknown("place", start=0, bounds=(-1, 1))
    channel = pb.Rectangle((x, 0, 3), (y, -1, 1))
    where = grid(np.linspace(0.5, 2.5, 5), np.linspace(-0.8, 0.8, 7))
    conditions = [
        pb.Dirichlet(v, q * sp.exp(-(((y - place) / R(1, 5)) ** 2)), on=channel.left),
        pb.Neumann(v, 0, on=channel.right | channel.top | channel.bottom),
        meter(v, where, plume_values(where, 0.03, 2.0, 0.25), 0.01),
    ]
    law = sp.Eq(v.diff(x), d * pb.laplacian(v))
    return pb.Problem(law, channel, conditions, truth={d: 0.03, q: 2, place: 0.25})


def zone_values(where: FloatArray, left: float, right: float) -> FloatArray:
    """Return u with −div(k ∇u) = sin(πy) in a square, zero around it, k different on the left and on the right."""
    pi, half = np.pi, 0.5
    one, other = 1 / (left * pi**2), 1 / (right * pi**2)
    c, s = np.cosh(pi * half), np.sinh(pi * half)
    # one + a cosh πx + b sinh πx on the left; other + e cosh π(1−x) + f sinh π(1−x) on the right
    matrix = [[1, 0, 0, 0], [0, 0, 1, 0], [c, s, -c, -s], [left * s, left * c, right * s, right * c]]
    a, b, e, f = np.linalg.solve(matrix, [-one, -other, other - one, 0.0])
    near, far = pi * where[:, 0], pi * (1 - where[:, 0])
    first = one + a * np.cosh(near) + b * np.sinh(near)
    second = other + e * np.cosh(far) + f * np.sinh(far)
    return np.asarray(np.where(where[:, 0] < half, first, second) * np.sin(pi * where[:, 1]))


@case()
def two_zones(meter: Meter) -> pb.Problem:
    """Find how well the halves of a heated plate conduct."""
    one, other = positive("k1"), positive("k2")
    where = grid(np.linspace(0.1, 0.9, 6), np.linspace(0.2, 0.8, 4))
    k = pb.per_region({pb.Rectangle((x, 0, R(1, 2)), (y, 0, 1)): one}, otherwise=other)
    law = sp.Eq(-pb.div(k * pb.grad(v)), sp.sin(sp.pi * y))
    data = meter(v, where, zone_values(where, 0.5, 3.0), 0.001)
    return pb.Problem(law, SQUARE, [pb.Dirichlet(v, 0), data], truth={one: 0.5, other: 3})


@case()
def damped_string(meter: Meter) -> pb.Problem:
    """Find speed and damping of a string from one sensor."""
    speed, drag = positive("c", 1.2), positive("b", 0.3)
    at = np.linspace(0.05, 2, 40)
    beat = np.sqrt((1.5 * np.pi) ** 2 - 0.25)
    seen = np.exp(-0.5 * at) * (np.cos(beat * at) + 0.5 / beat * np.sin(beat * at)) * np.sin(0.3 * np.pi)
    law = sp.Eq(h.diff(t, 2) + 2 * drag * h.diff(t), speed**2 * h.diff(x, 2))
    start = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x)), pb.Initial(h.diff(t), 0)]
    data = meter(h, {x: 0.3, t: at}, seen, 0.01)
    return pb.Problem(law, LINE * during(2), [*start, data], truth={speed: 1.5, drag: 0.5})


@case()
def fin_in_air(meter: Meter) -> pb.Problem:
    """Find the loss of a fin to the air and the heat that enters it."""
    loss, heat = positive("loss", 3), pb.unknown("heat", start=1)
    at = np.linspace(0, 1, 11)
    data = meter(w, at, 4 * np.cosh(2.5 * (1 - at)) / (2.5 * np.sinh(2.5)), 0.01)
    ends = [pb.Condition(sp.Eq(w.diff(x), -heat), on=LINE.left), pb.Condition(sp.Eq(w.diff(x), 0), on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2), loss * w), LINE, [*ends, data], truth={loss: 6.25, heat: 4})


@case()
def absorption_into_known_volume(meter: Meter) -> pb.Problem:
    """Find the rates of uptake and loss of a drug; the volume is known, so that they cannot be exchanged."""
    gut, blood = pb.field("gut", t), pb.field("blood", t)
    ka, ke = positive("ka", 0.5), positive("ke", 0.5)
    at = np.array([0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 10, 12])
    seen = 10 * 1.4 / (1.4 - 0.25) * (np.exp(-0.25 * at) - np.exp(-1.4 * at))
    laws = [sp.Eq(gut.diff(t), -ka * gut), sp.Eq(blood.diff(t), ka * gut - ke * blood)]
    conditions = [pb.Initial(gut, 10), pb.Initial(blood, 0), meter(blood, at, seen, 0.1)]
    return pb.Problem(laws, during(12), conditions, truth={ka: 1.4, ke: 0.25})


# Not determined -------------------------------------------------------------------------------------------------------


@case("ill-posed", told="k")
def conductivity_and_density(meter: Meter) -> pb.Problem:
    """Ask for conductivity and density of a rod that cools: only their quotient matters."""
    k, rho = positive("k"), positive("rho")
    where = grid(np.linspace(0.2, 0.8, 4), np.linspace(0.1, 1, 5))
    seen = np.exp(-0.15 * np.pi**2 * where[:, 1]) * np.sin(np.pi * where[:, 0])
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x)), meter(h, where, seen, 0.01)]
    return pb.Problem(sp.Eq(rho * h.diff(t), k * h.diff(x, 2)), LINE * during(), conditions)


@case("ill-posed", told="c")
def sensor_at_a_node(meter: Meter) -> pb.Problem:
    """Watch a string that swings in its second mode from its middle, where nothing moves."""
    speed = positive("c")
    at = np.linspace(0.1, 2, 20)
    start = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(2 * sp.pi * x)), pb.Initial(h.diff(t), 0)]
    data = meter(h, {x: 0.5, t: at}, np.zeros(20), 0.01)
    return pb.Problem(sp.Eq(h.diff(t, 2), speed**2 * h.diff(x, 2)), LINE * during(2), [*start, data])


@case("ill-posed", told="ka")
def chain_of_decays(meter: Meter) -> pb.Problem:
    """Watch the last member of a chain of two decays: their rates can be exchanged."""
    first, second, last = (pb.field(name, t) for name in ("first", "second", "last"))
    ka, kb = positive("ka", 2), positive("kb", 0.5)
    at = np.linspace(0.25, 5, 20)
    seen = 1 - (0.4 * np.exp(-1.5 * at) - 1.5 * np.exp(-0.4 * at)) / (0.4 - 1.5)
    laws = [
        sp.Eq(first.diff(t), -ka * first),
        sp.Eq(second.diff(t), ka * first - kb * second),
        sp.Eq(last.diff(t), kb * second),
    ]
    start = [pb.Initial(first, 1), pb.Initial(second, 0), pb.Initial(last, 0)]
    return pb.Problem(laws, during(5), [*start, meter(last, at, seen, 0.005)])


@case("ill-posed", told="a")
def sign_of_an_amplitude(meter: Meter) -> pb.Problem:
    """Measure the square of a signal, and ask for its amplitude."""
    a = pb.unknown("a", start=1)
    at = np.linspace(0.1, 2, 15)
    data = meter(T**2, at, 9 * np.exp(-2 * at), 0.05)
    return pb.Problem(sp.Eq(T.diff(t), -T), during(2), [pb.Initial(T, a), data])


@case("ill-posed", told="k1")
def zones_without_a_flow(meter: Meter) -> pb.Problem:
    """Ask for the conductivities of both halves of a rod between two temperatures: only their ratio matters."""
    one, other = positive("k1"), positive("k2", 2)
    at = np.linspace(0.05, 0.95, 10)
    seen = np.where(at < 0.5, 1 - 1.5 * at, (1 - at) / 2)
    k = sp.Piecewise((one, x < R(1, 2)), (other, True))
    law = sp.Eq(pb.div(k * pb.grad(w)), 0)
    return pb.Problem(law, LINE, [pb.Dirichlet(w, 1 - x), meter(w, at, seen, 0.005)])


# Models that their data contradict ------------------------------------------------------------------------------------


@case("stalled", told="fit")
def radiating_body(meter: Meter) -> pb.Problem:
    """Fit an exponential to a body that radiates as the fourth power."""
    rate = positive("h", 0.5)
    at = np.linspace(0.2, 5, 25)
    data = meter(T, at, (1 + 3 * 0.4 * at) ** (-1 / 3), 0.005)
    return pb.Problem(sp.Eq(T.diff(t), -rate * T), during(5), [pb.Initial(T, 1), data])


@case("stalled", told="fit")
def growth_without_a_bound(meter: Meter) -> pb.Problem:
    """Fit an exponential to a growth that slows down."""
    rate, first = positive("r", 0.5), positive("first")
    at = np.linspace(0.25, 5, 20)
    data = meter(N, at, 10 / (1 + 9 * np.exp(-at)), 0.1)
    return pb.Problem(sp.Eq(N.diff(t), rate * N), during(5), [pb.Initial(N, first), data])


@case("stalled", told="fit")
def rod_that_loses_heat(meter: Meter) -> pb.Problem:
    """Leave out that a rod loses heat to the air."""
    k = positive("k", 0.2)
    where = grid(np.linspace(0.1, 0.9, 5), np.linspace(0.05, 1, 8))
    place, when = where.T
    seen = sum(np.exp(-(0.1 * (n * np.pi) ** 2 + 1) * when) * np.sin(n * np.pi * place) for n in (1, 3))
    start = sp.sin(sp.pi * x) + sp.sin(3 * sp.pi * x)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, start), meter(h, where, seen, 0.005)]
    return pb.Problem(sp.Eq(h.diff(t), k * h.diff(x, 2)), LINE * during(), conditions)


@case("stalled", told="fit")
def load_that_is_not_even(meter: Meter) -> pb.Problem:
    """Fit an even load to a string with a load that grows to the right."""
    load = pb.unknown("load", start=1)
    at = np.linspace(0.05, 0.95, 19)
    data = meter(w, at, (at - at**3) / 2, 0.005)
    return pb.Problem(sp.Eq(-w.diff(x, 2), load), LINE, [pb.Dirichlet(w, 0), data])


@case("stalled", told="fit")
def swing_without_damping(meter: Meter) -> pb.Problem:
    """Fit a swing without damping to one that comes to rest."""
    stiffness = positive("stiffness", 5)
    at = np.linspace(0.1, 6, 40)
    seen = np.exp(-0.15 * at) * (np.cos(2 * at) + 0.075 * np.sin(2 * at))
    conditions = [pb.Initial(T, 1), pb.Initial(T.diff(t), 0), meter(T, at, seen, 0.02)]
    return pb.Problem(sp.Eq(T.diff(t, 2), -stiffness * T), during(6), conditions)
