"""Unknowns from measurements, written from the documentation alone: the half kept aside.

Nothing may be chosen by these: they are there to be measured. Data come from closed forms, series and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

import pibls as pb
from benchmarks.sets.inverse_open import (
    LINE,
    SQUARE,
    N,
    R,
    T,
    during,
    grid,
    h,
    plucked,
    positive,
    t,
    v,
    w,
    x,
    y,
    zone_values,
)
from benchmarks.sets.meters import Meter, collected
from pibls.checks import FloatArray

case, inverse_aside = collected()


def course(rates: Any, start: list[float], at: FloatArray) -> FloatArray:
    """Return the solution of ordinary differential equations by SciPy, a row per field."""
    found = solve_ivp(rates, (0.0, float(at[-1])), start, "DOP853", at, rtol=1e-11, atol=1e-12)
    return np.asarray(found.y)


def sines(shape: Any, where: FloatArray, factor: Any) -> FloatArray:
    """Return the sum of sines of a shape on (0, 1), each times a factor of its number and the time."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    nodes, weights = (nodes + 1) / 2, weights / 2
    place, when = where.T
    total = np.zeros(len(where))
    for n in range(1, 120):
        share = 2 * (weights * shape(nodes)) @ np.sin(n * np.pi * nodes)
        total += share * factor(n, when) * np.sin(n * np.pi * place)
    return total


# Determined -----------------------------------------------------------------------------------------------------------


@case()
def puff_in_a_river(meter: Meter) -> pb.Problem:
    """Find speed, dispersion and mass of a puff that drifts past two stations."""
    speed, spread, mass = pb.unknown("speed", start=1), positive("D", 0.1), positive("mass", 1)
    river = pb.Interval((x, -3, 9))
    where = grid([1.0, 3.0], np.linspace(0.2, 4, 20))
    wide = 0.25 + 4 * 0.05 * where[:, 1]
    seen = 2 * np.sqrt(0.25 / wide) * np.exp(-((where[:, 0] - 1.2 * where[:, 1]) ** 2) / wide)
    law = sp.Eq(h.diff(t) + speed * h.diff(x), spread * h.diff(x, 2))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, mass * sp.exp(-4 * x**2)), meter(h, where, seen, 0.02)]
    return pb.Problem(law, river * during(4), conditions, truth={speed: 1.2, spread: 0.05, mass: 2})


@case()
def disk_in_a_disk(meter: Meter) -> pb.Problem:
    """Find the conductivities of a round core and its shell, both heated."""
    core, shell = positive("core"), positive("shell")
    inner, outer = pb.Disk((x, y), (0, 0), R(1, 2)), pb.Disk((x, y), (0, 0), 1)
    angles, radii = np.linspace(0, 2 * np.pi, 7)[:-1], np.array([0.1, 0.3, 0.6, 0.8])
    where = np.array([[r * np.cos(a), r * np.sin(a)] for r in radii for a in angles])
    far = np.hypot(*where.T)
    seen = np.where(far < 0.5, 0.75 / 8 + (0.25 - far**2) / (4 * 0.4), (1 - far**2) / 8)
    law = sp.Eq(-pb.div(pb.per_region({inner: core}, otherwise=shell) * pb.grad(v)), 1)
    return pb.Problem(law, outer, [pb.Dirichlet(v, 0), meter(v, where, seen, 0.002)], truth={core: 0.4, shell: 2})


@case()
def yeast_seen_early(meter: Meter) -> pb.Problem:
    """Find rate, capacity and first amount of a growth that is seen to two fifths of its end."""
    rate, capacity, first = positive("r"), positive("K", 1), positive("first", 1)
    at = np.linspace(0, 7, 29)
    data = meter(N, at, 20 / (1 + 39 * np.exp(-0.46 * at)), 0.02)
    law = sp.Eq(N.diff(t), rate * N * (1 - N / capacity))
    truth = {rate: 0.46, capacity: 20, first: 0.5}
    return pb.Problem(law, during(7), [pb.Initial(N, first), data], truth=truth)


@case(function=plucked(0.6))
def struck_string(meter: Meter) -> pb.Problem:
    """Find the velocity that a hammer gave to a string."""
    blow = pb.field("blow", x, prior=pb.Smooth())
    where = grid(np.linspace(0.08, 0.92, 8), np.linspace(0.1, 1.2, 18))
    seen = sines(plucked(0.6), where, lambda n, when: np.sin(n * np.pi * when) / (n * np.pi))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, 0), pb.Initial(h.diff(t), blow), meter(h, where, seen, 0.002)]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), LINE * during(R(6, 5)), conditions)


@case()
def film_around_a_core(meter: Meter) -> pb.Problem:
    """Find the resistance of a film around a round core in a field that is even far away."""
    film = positive("film", 0.1)
    core, outer = pb.Disk((x, y), (0, 0), R(1, 2)), pb.Disk((x, y), (0, 0), 1)
    # a r cos θ inside, (b r + e / r) cos θ outside: equal flows, and a jump of 0.3 times the flow
    matrix = [[0, 1, 1], [1, -1, 4], [0.5 + 0.3, -0.5, -2]]
    a, b, e = np.linalg.solve(matrix, [1.0, 0.0, 0.0])
    where = np.array([[r * np.cos(s), r * np.sin(s)] for r in (0.2, 0.4, 0.6, 0.8) for s in (0.1, 1.3, 2.2, 4.0)])
    far = np.hypot(*where.T)
    seen = where[:, 0] * np.where(far < 0.5, a, b + e / far**2)
    conditions = [pb.Dirichlet(v, x), pb.Interface(v, on=core, resistance=film), meter(v, where, seen, 0.003)]
    return pb.Problem(sp.Eq(pb.laplacian(v), 0), outer, conditions, truth={film: 0.3})


@case()
def epidemic(meter: Meter) -> pb.Problem:
    """Find how fast people infect each other and recover, from the number of the ill."""
    sound, ill = pb.field("S", t), pb.field("I", t)
    beta, gamma = positive("beta", 1), positive("gamma", 1)
    at = np.linspace(1, 20, 20)
    seen = course(lambda _, z: [-0.8 * z[0] * z[1], 0.8 * z[0] * z[1] - 0.3 * z[1]], [0.99, 0.01], at)[1]
    laws = [sp.Eq(sound.diff(t), -beta * sound * ill), sp.Eq(ill.diff(t), beta * sound * ill - gamma * ill)]
    start = [pb.Initial(sound, R(99, 100)), pb.Initial(ill, R(1, 100))]
    return pb.Problem(laws, during(20), [*start, meter(ill, at, seen, 0.005)], truth={beta: 0.8, gamma: 0.3})


@case()
def enzyme(meter: Meter) -> pb.Problem:
    """Find speed and half-saturation of an enzyme."""
    speed, half = positive("V"), positive("Km")
    at = np.linspace(0.5, 10, 20)
    seen = course(lambda _, z: [-0.9 * z[0] / (1.5 + z[0])], [5.0], at)[0]
    law = sp.Eq(T.diff(t), -speed * T / (half + T))
    return pb.Problem(law, during(10), [pb.Initial(T, 5), meter(T, at, seen, 0.03)], truth={speed: 0.9, half: 1.5})


@case()
def beam_on_a_spring(meter: Meter) -> pb.Problem:
    """Find stiffness and spring of a loaded cantilever whose end rests on a spring."""
    stiff, spring = positive("EI", 1), positive("spring", 1)
    # EI w'''' = 1, clamped on the left; at the end no moment, and EI w''' = spring w
    at = np.linspace(0.1, 1, 10)
    square, cube = np.linalg.solve([[2, 6], [5, -7]], [-1 / 4, 1 - 5 / 48])
    seen = at**4 / 48 + square * at**2 + cube * at**3
    clamped = [pb.Dirichlet(w, 0, on=LINE.left), pb.Condition(sp.Eq(w.diff(x), 0), on=LINE.left)]
    free = [
        pb.Condition(sp.Eq(w.diff(x, 2), 0), on=LINE.right),
        pb.Condition(sp.Eq(stiff * w.diff(x, 3), spring * w), on=LINE.right),
    ]
    data = meter(w, at, seen, 0.0002)
    return pb.Problem(sp.Eq(stiff * w.diff(x, 4), 1), LINE, [*clamped, *free, data], truth={stiff: 2, spring: 5})


@case()
def hunters_and_hares(meter: Meter) -> pb.Problem:
    """Find the four rates of hunters and hares from counts of both."""
    hares, hunters = pb.field("hares", t), pb.field("hunters", t)
    a, b, c, d = positive("a", 0.8), positive("b", 0.3), positive("c", 0.8), positive("d", 0.3)
    at = np.linspace(0.5, 10, 20)
    true = course(lambda _, z: [z[0] - 0.4 * z[0] * z[1], -0.6 * z[1] + 0.2 * z[0] * z[1]], [5.0, 2.0], at)
    laws = [
        sp.Eq(hares.diff(t), a * hares - b * hares * hunters),
        sp.Eq(hunters.diff(t), -c * hunters + d * hares * hunters),
    ]
    data = [meter(hares, at, true[0], 0.1), meter(hunters, at, true[1], 0.1)]
    start = [pb.Initial(hares, 5), pb.Initial(hunters, 2)]
    return pb.Problem(laws, during(10), [*start, *data], truth={a: 1, b: 0.4, c: 0.6, d: 0.2})


@case("ill-posed", told="loss")
def source_in_a_plate(meter: Meter) -> pb.Problem:
    """Ask for the strengths of two modes of a source and the loss of a plate: two amplitudes do not tell three."""
    one, two, loss = pb.unknown("one", start=1), pb.unknown("two", start=1), positive("loss")
    where = grid(np.linspace(0.15, 0.85, 5), np.linspace(0.2, 0.8, 4))
    px, py = np.pi * where.T
    seen = 30 * np.sin(px) * np.sin(py) / (2 * np.pi**2 + 8) - 20 * np.sin(2 * px) * np.sin(py) / (5 * np.pi**2 + 8)
    source = sp.sin(sp.pi * y) * (one * sp.sin(sp.pi * x) + two * sp.sin(2 * sp.pi * x))
    law = sp.Eq(-pb.laplacian(v) + loss * v, source)
    data = meter(v, where, seen, 0.005)
    return pb.Problem(law, SQUARE, [pb.Dirichlet(v, 0), data])


# Not determined -------------------------------------------------------------------------------------------------------


@case("ill-posed", told="q")
def load_and_tension(meter: Meter) -> pb.Problem:
    """Ask for load and tension of a membrane: only their quotient matters."""
    load, tension = positive("q"), positive("tension")
    at = np.linspace(0.1, 0.9, 9)
    data = meter(w, at, 1.5 * at * (1 - at), 0.005)
    return pb.Problem(sp.Eq(-tension * w.diff(x, 2), load), LINE, [pb.Dirichlet(w, 0), data])


@case("ill-posed", told="k")
def thermometer_at_a_node(meter: Meter) -> pb.Problem:
    """Watch an odd temperature from the middle of a rod, where it is zero for ever."""
    k = positive("k")
    start = sp.sin(2 * sp.pi * x) - sp.sin(4 * sp.pi * x) / 2
    data = meter(h, {x: 0.5, t: np.linspace(0.05, 0.5, 12)}, np.zeros(12), 0.01)
    return pb.Problem(
        sp.Eq(h.diff(t), k * h.diff(x, 2)), LINE * during(R(1, 2)), [pb.Dirichlet(h, 0), pb.Initial(h, start), data]
    )


@case("ill-posed", told="ka")
def absorption_into_unknown_volume(meter: Meter) -> pb.Problem:
    """Find uptake, loss and volume of a drug without bounds: the rates can be exchanged with another volume."""
    gut, blood = pb.field("gut", t), pb.field("blood", t)
    ka, ke, volume = pb.unknown("ka", start=1), pb.unknown("ke", start=0.3), pb.unknown("V", start=3)
    at = np.array([0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 10, 12])
    seen = 10 / 2 * 1.2 / (1.2 - 0.2) * (np.exp(-0.2 * at) - np.exp(-1.2 * at))
    laws = [sp.Eq(gut.diff(t), -ka * gut), sp.Eq(blood.diff(t), ka * gut / volume - ke * blood)]
    return pb.Problem(laws, during(12), [pb.Initial(gut, 10), pb.Initial(blood, 0), meter(blood, at, seen, 0.03)])


@case("ill-posed", told="s")
def spot_seen_from_the_middle(meter: Meter) -> pb.Problem:
    """Ask where a hot spot was, by a thermometer in the middle: its mirror image reads the same."""
    s = pb.unknown("s", start=0.4)
    where = grid([0.5], np.linspace(0.02, 0.6, 20))
    seen = sines(lambda at: np.exp(-(((at - 0.3) / 0.1) ** 2)), where, lambda n, z: np.exp(-0.1 * (n * np.pi) ** 2 * z))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.exp(-(((x - s) * 10) ** 2))), meter(h, where, seen, 0.003)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2) / 10), LINE * during(R(3, 5)), conditions)


@case("ill-posed", told="K", modes=("stated", "unstated"))
def capacity_far_away(meter: Meter) -> pb.Problem:
    """Ask for the capacity of a growth that is seen to a hundredth of it."""
    rate, capacity = positive("r"), positive("K", 50)
    at = np.linspace(0.5, 4, 15)
    data = meter(N, at, 1e4 / (1 + (1e4 - 1) * np.exp(-at)), 0.5)
    law = sp.Eq(N.diff(t), rate * N * (1 - N / capacity))
    return pb.Problem(law, during(4), [pb.Initial(N, 1), data])


# Models that their data contradict ------------------------------------------------------------------------------------


@case("stalled", told="fit")
def pairs_that_annihilate(meter: Meter) -> pb.Problem:
    """Fit a decay of first order, from an unknown start, to one of second order."""
    rate, first = positive("k"), positive("first")
    at = np.linspace(0, 6, 30)
    data = meter(T, at, 2 / (1 + 1.2 * at), 0.02)
    return pb.Problem(sp.Eq(T.diff(t), -rate * T), during(6), [pb.Initial(T, first), data])


@case("stalled", told="fit")
def spreading_without_the_wind(meter: Meter) -> pb.Problem:
    """Leave out the wind that carries a cloud along."""
    spread = positive("D", 0.1)
    where = grid(np.linspace(-1.5, 1.5, 7), np.linspace(0.2, 1, 5))
    wide = 0.5 + 0.4 * where[:, 1]
    seen = np.sqrt(0.5 / wide) * np.exp(-((where[:, 0] - 0.2 * where[:, 1]) ** 2) / wide)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.exp(-2 * x**2)), meter(h, where, seen, 0.01)]
    return pb.Problem(sp.Eq(h.diff(t), spread * h.diff(x, 2)), pb.Interval((x, -5, 5)) * during(), conditions)


@case("stalled", told="fit")
def string_that_is_stiff(meter: Meter) -> pb.Problem:
    """Fit a string without stiffness to a wire, whose third mode is too high."""
    speed = positive("c", 0.9)
    at = np.linspace(0.05, 2, 40)
    seen = sum(np.sin(0.3 * n * np.pi) * np.cos(n * np.pi * np.sqrt(1 + 0.02 * n * n) * at) / n for n in (1, 3))
    start = [pb.Initial(h, sp.sin(sp.pi * x) + sp.sin(3 * sp.pi * x) / 3), pb.Initial(h.diff(t), 0)]
    law = sp.Eq(h.diff(t, 2), speed**2 * h.diff(x, 2))
    return pb.Problem(law, LINE * during(2), [pb.Dirichlet(h, 0), *start, meter(h, {x: 0.3, t: at}, seen, 0.02)])


@case("stalled", told="fit")
def plate_of_one_material(meter: Meter) -> pb.Problem:
    """Fit one conductivity to a plate whose halves differ by a third."""
    k = positive("k")
    where = grid(np.linspace(0.1, 0.9, 6), np.linspace(0.2, 0.8, 4))
    data = meter(v, where, zone_values(where, 1.0, 1.5), 0.0005)
    return pb.Problem(sp.Eq(-k * pb.laplacian(v), sp.sin(sp.pi * y)), SQUARE, [pb.Dirichlet(v, 0), data])


@case("stalled", told="fit")
def tide_without_the_moon(meter: Meter) -> pb.Problem:
    """Fit a basin that only empties to one that a tide fills again and again."""
    rate, rest = positive("k"), pb.unknown("rest", start=0)
    at = np.linspace(0.2, 8, 40)
    seen = course(lambda s, z: [-0.7 * (z[0] - 1) + 0.3 * np.cos(2 * s)], [3.0], at)[0]
    return pb.Problem(sp.Eq(T.diff(t), -rate * (T - rest)), during(8), [pb.Initial(T, 3), meter(T, at, seen, 0.05)])
