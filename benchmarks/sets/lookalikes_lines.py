"""Well-posed problems on lines and in time that look as if they were ill-posed."""

from __future__ import annotations

from functools import cache

import numpy as np
import sympy as sp
from scipy.integrate import solve_bvp, solve_ivp
from scipy.optimize import brentq

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import LINE, R, c, h, t, w, x
from benchmarks.sets.posing import ASKED, SEEDS, begun, held, posed, told

case, lookalikes_lines = collected(ASKED, SEEDS)
a, b = pb.field("a", t), pb.field("b", t)
UNIT = pb.TimeInterval(t, 0, 1)
Array = np.ndarray


# Next to a resonance --------------------------------------------------------------------------------------------------


@case("resonance")
def string_beside_its_note() -> pb.Problem:
    """Drive a string at a frequency that is three thousandths above its note."""
    return posed(w.diff(x, 2) + (sp.pi + R(1, 100)) ** 2 * w, {w: sp.sin(3 * x) * sp.exp(x)}, LINE)


@case("resonance")
def ring_beside_its_step() -> pb.Problem:
    """Drive a closed ring with a wave that is nearly one of its own: the answer is a hundred times the push."""
    ring = pb.Interval((x, 0, 2 * sp.pi))
    equation = sp.Eq(w.diff(x, 2) + R(101, 100) * w, sp.cos(x))
    return pb.Problem(equation, ring, [pb.Periodic(w, x)], exact=100 * sp.cos(x))


@case("resonance")
def swing_that_is_pushed() -> pb.Problem:
    """Push a swing in step: what grows without bound is determined at every time."""
    span = pb.TimeInterval(t, 0, 30)
    conditions = [pb.Initial(c, 0), pb.Initial(c.diff(t), 0)]
    return pb.Problem(sp.Eq(c.diff(t, 2) + c, sp.cos(t)), span, conditions, exact=t * sp.sin(t) / 2)


@case("resonance")
def shaft_beside_its_whirl() -> pb.Problem:
    """Turn a shaft on two bearings just below the speed at which it whirls."""
    exact = sp.sin(sp.pi * x) + x * (1 - x) ** 2
    known, speed = {w: exact}, (sp.pi - R(1, 50)) ** 4
    conditions = [*held(known), told(w.diff(x, 2), known, LINE)]
    return posed(w.diff(x, 4) - speed * w, known, LINE, conditions)


@case("resonance")
def string_at_its_note_with_a_level() -> pb.Problem:
    """Drive a string at its note by what does not excite it, and measure how far it swings in the middle."""
    exact = sp.sin(2 * sp.pi * x) + 3 * sp.sin(sp.pi * x)
    equation = sp.Eq(w.diff(x, 2) + sp.pi**2 * w, -3 * sp.pi**2 * sp.sin(2 * sp.pi * x))
    conditions = [pb.Dirichlet(w, 0), pb.Dirichlet(w, 3, on=0.5)]
    return pb.Problem(equation, LINE, conditions, exact=exact)


# Conditions at odd places ---------------------------------------------------------------------------------------------


@case("places")
def started_in_the_middle() -> pb.Problem:
    """Know value and slope in the middle of a line, and nothing about its ends."""
    exact = sp.cos(5 * x) + x
    known = {w: exact}
    return posed(w.diff(x, 2) + 25 * w, known, LINE, [told(w, known, LINE, 0.5), told(w.diff(x), known, LINE, 0.5)])


@case("places")
def carried_both_ways() -> pb.Problem:
    """Know something that a growing wind carries at one point inside."""
    exact = sp.exp(-3 * x) * sp.cos(x)
    return posed((1 + x) * w.diff(x) + w, {w: exact}, LINE, [told(w, {w: exact}, LINE, 0.3)])


@case("places")
def three_supports() -> pb.Problem:
    """Give an equation of third order three values, one of them inside."""
    known = {w: sp.exp(x) * sp.sin(2 * x)}
    return posed(w.diff(x, 3) + w, known, LINE, [*held(known), told(w, known, LINE, 0.4)])


@case("places")
def four_readings_of_a_beam() -> pb.Problem:
    """Give a beam four deflections along it, and no slope, moment or force."""
    known = {w: sp.sin(3 * x) + x**5 / 20}
    inside = [told(w, known, LINE, at) for at in (0.35, 0.7)]
    return posed(w.diff(x, 4), known, LINE, [*held(known), *inside])


@case("places")
def ruler_that_floats() -> pb.Problem:
    """Load a free ruler so that forces and moments balance, and say where its middle is and how it slopes there."""
    # w'' and w''' vanish at both ends for any multiple of (x (1 - x))².
    bending = (x * (1 - x)) ** 2 * (1 + x)
    exact = sp.integrate(sp.integrate(bending.expand(), x), x) + x / 3 - R(1, 7)
    known = {w: exact}
    ends = [pb.Dirichlet(w.diff(x, k), 0) for k in (2, 3)]
    middle = [told(w, known, LINE, 0.5), told(w.diff(x), known, LINE, 0.5)]
    return posed(w.diff(x, 4), known, LINE, [*ends, *middle])


@case("places")
def nothing_said_at_the_poles() -> pb.Problem:
    """Diffuse on a sphere in the cosine of latitude: both ends are singular, and need no condition."""
    line = pb.Interval((x, -1, 1))
    return posed(((1 - x**2) * w.diff(x)).diff(x) - 2 * w, {w: sp.exp(x) + x**3}, line, [])


@case("places")
def year_after_year() -> pb.Problem:
    """Let ground follow the seasons for ever: no beginning, only that years are alike."""
    year = pb.TimeInterval(t, 0, 2 * sp.pi)
    exact = 10 + (sp.cos(t) + sp.sin(t)) / 2
    return pb.Problem(sp.Eq(c.diff(t) + c, 10 + sp.cos(t)), year, [pb.Periodic(c, t)], exact=exact)


@case("places")
def ring_without_a_beginning() -> pb.Problem:
    """Carry and consume something around a ring: one period is all there is to say."""
    ring = pb.Interval((x, 0, 1))
    exact = 2 + sp.sin(2 * sp.pi * x)
    return posed(w.diff(x) + (3 + sp.cos(2 * sp.pi * x)) * w, {w: exact}, ring, [pb.Periodic(w, x)])


@case("places")
def price_from_its_end() -> pb.Problem:
    """Know what an option is worth when it expires, and go back: a heat equation in the good direction."""
    domain = LINE * UNIT
    exact = 1 + sp.sin(2 * x) * sp.exp(4 * (t - 1) / 5) + x
    conditions = [*held({h: exact}), pb.Dirichlet(h, exact.subs(t, 1), on=domain.final)]
    return pb.Problem(sp.Eq(h.diff(t) + h.diff(x, 2) / 5, 0), domain, conditions, exact=exact)


@case("places")
def number_without_a_beginning() -> pb.Problem:
    """Follow two numbers of which one has an equation without a rate, and no first value."""
    exact = {a: sp.exp(-t) + t, b: 2 * sp.exp(-t) + 2 * t + sp.sin(t)}
    span = pb.TimeInterval(t, 0, 3)
    return posed([a.diff(t) + b, b - 2 * a], exact, span, begun({a: exact[a]}, span))


# Robin, Neumann and the mean ------------------------------------------------------------------------------------------


@case("gauge")
def end_that_nearly_feeds_itself() -> pb.Problem:
    """Let the end of a rod take in nine tenths of what it has."""
    known = {w: sp.sin(4 * x) + x**2}
    ends = [*held(known, LINE.left), told(w.diff(x) - R(9, 10) * w, known, LINE, LINE.right)]
    return posed(w.diff(x, 2), known, LINE, ends)


@case("gauge")
def rod_that_feeds_itself() -> pb.Problem:
    """Let a rod take in heat at its end in proportion to what it has, in time: it grows, and is determined."""
    domain = LINE * UNIT
    wave = sp.Float(brentq(lambda m: m * np.tanh(m) - 1, 0.5, 3, xtol=1e-16), 20)
    exact = sp.cosh(wave * x) * sp.exp(wave**2 * t)
    conditions = [pb.Neumann(h, 0, on=LINE.left), pb.Robin(h, -1, 1, 0, on=LINE.right), *begun({h: exact}, domain)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), domain, conditions, exact=exact)


@case("gauge")
def rod_with_slow_losses() -> pb.Problem:
    """Insulate both ends of a rod that loses a ten-thousandth of its heat along the way."""
    known = {w: 5 + sp.cos(3 * x) + x**3}
    return posed(-w.diff(x, 2) + w / 10_000, known, LINE, [told(pb.normal_derivative(w), known, LINE)])


@case("gauge")
def waves_that_leave() -> pb.Problem:
    """Let a wave leave through both ends, and say nothing about its level there."""
    line = pb.Interval((x, -3, 3))
    domain = line * pb.TimeInterval(t, 0, 2)
    exact = sp.exp(-8 * (x - t) ** 2) + sp.exp(-8 * (x + t - 1) ** 2)
    # Both pulses are below 1e-13 where they come from.
    conditions = [*pb.Absorbing(h, time=t), *begun({h: exact}, domain, 2)]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), domain, conditions, exact=exact)


# Said twice, alike ----------------------------------------------------------------------------------------------------


@case("said twice")
def decay_between_two_readings() -> pb.Problem:
    """Know a decay at its beginning and at its end, which agree."""
    span = pb.TimeInterval(t, 0, 2)
    conditions = [pb.Initial(c, 3), pb.Dirichlet(c, 3 * sp.exp(-2), on=span.final)]
    return pb.Problem(sp.Eq(c.diff(t), -c), span, conditions, exact=3 * sp.exp(-t))


@case("said twice")
def flux_gauge_that_is_right() -> pb.Problem:
    """Follow a rod between two known ends, and read the flux at one of them as well."""
    exact = sp.exp(-(sp.pi**2) * t / 4) * sp.cos(sp.pi * x / 2 + 1) + 2
    domain = LINE * UNIT
    extra = pb.Neumann(h, -exact.diff(x).subs(x, 0), on=LINE.left)
    conditions = [*held({h: exact}), *begun({h: exact}, domain), extra]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), domain, conditions, exact=exact)


@case("said twice")
def string_seen_twice() -> pb.Problem:
    """Know a string at the first time and at the last one."""
    domain = LINE * UNIT
    exact = sp.sin(sp.pi * x) * sp.cos(sp.pi * t) + sp.sin(2 * sp.pi * x) * sp.sin(2 * sp.pi * t)
    last = pb.Dirichlet(h, exact.subs(t, 1), on=domain.final)
    conditions = [pb.Dirichlet(h, 0), *begun({h: exact}, domain, 2), last]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), domain, conditions, exact=exact)


@case("said twice")
def rod_with_its_mean() -> pb.Problem:
    """Know both ends of a rod and its mean, which agree."""
    exact = sp.exp(-x) + x**2
    mean = pb.Mean(w, 1 - sp.exp(-1) + R(1, 3))
    return posed(-w.diff(x, 2) + w, {w: exact}, LINE, [*held({w: exact}), mean])


# Sensitive, but determined --------------------------------------------------------------------------------------------


@case("sensitive")
def growth_by_millions() -> pb.Problem:
    """Let a small error grow by a factor of three million, and no more."""
    known = {c: sp.cos(7 * t) + 2}
    return posed(c.diff(t) - 15 * c, known, UNIT, begun(known, UNIT))


@case("sensitive")
def balance_on_a_needle() -> pb.Problem:
    """Start where a growing wave is not excited: a slip would grow by a factor of 10⁷."""
    exact = sp.exp(-16 * x)
    conditions = [pb.Dirichlet(w, 1, on=LINE.left), pb.Dirichlet(w.diff(x), -16, on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 256 * w), LINE, conditions, exact=exact)


@cache
def _troesch() -> object:
    at = 1 - np.linspace(1, 0, 801) ** 3
    start = np.stack([at**12, 12 * at**11])
    return solve_bvp(
        lambda _, f: np.stack([f[1], 6 * np.sinh(6 * f[0])]),
        lambda first, last: np.array([first[0], last[0] - 1]),
        at,
        start,
        tol=1e-12,
        max_nodes=200_000,
    ).sol


@case("nonlinear", reference=lambda at: {"w": _troesch()(at)[0]})
def plasma_in_a_cage() -> pb.Problem:
    """Solve Troesch's equation, by shooting a nightmare."""
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 6 * sp.sinh(6 * w)), LINE, conditions)


@cache
def _galaxy() -> object:
    def slopes(_: float, f: Array) -> list[float]:
        return [f[2], f[3], -f[0] - 2 * f[0] * f[1], -f[1] - f[0] ** 2 + f[1] ** 2]

    return solve_ivp(slopes, (0, 25), [0.1, 0.1, 0.45, 0.2], "DOP853", rtol=1e-13, atol=1e-15, dense_output=True).sol


@case("nonlinear", reference=lambda at: {"a": _galaxy()(at)[0], "b": _galaxy()(at)[1]})
def star_in_a_galaxy() -> pb.Problem:
    """Follow a star in the potential of Hénon and Heiles, near where its orbits become chaotic."""
    equations = [sp.Eq(a.diff(t, 2), -a - 2 * a * b), sp.Eq(b.diff(t, 2), -b - a**2 + b**2)]
    start = [pb.Initial(a, R(1, 10)), pb.Initial(b, R(1, 10))]
    start += [pb.Initial(a.diff(t), R(9, 20)), pb.Initial(b.diff(t), R(1, 5))]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 25), start)


@case("nonlinear")
def pairs_just_before_the_end() -> pb.Problem:
    """Let a number grow by its square until shortly before it is infinite."""
    return pb.Problem(sp.Eq(c.diff(t), c**2), pb.TimeInterval(t, 0, R(19, 20)), [pb.Initial(c, 1)], exact=1 / (1 - t))


@case("nonlinear")
def crowd_that_thins_out() -> pb.Problem:
    """Let a crowd thin out without any viscosity, and say only what enters."""
    road = pb.Interval((x, 1, 2))
    exact, domain = x / (1 + t), road * UNIT
    conditions = [*held({h: exact}, road.left), *begun({h: exact}, domain)]
    return pb.Problem(sp.Eq(h.diff(t) + h * h.diff(x), 0), domain, conditions, exact=exact)


def _either(solution: pb.Solution) -> float:
    """Return the distance to the nearer one of the two steady states of a slab with 3.4 eʷ."""
    at = np.linspace(0, 1, 1001)
    errors = []
    for low, high in ((1.0, 4.79), (4.81, 8.0)):
        bend = brentq(lambda s: s - np.sqrt(2 * 3.4) * np.cosh(s / 4), low, high, xtol=1e-15)
        known = -2 * np.log(np.cosh((at - 0.5) * bend / 2) / np.cosh(bend / 4))
        errors.append(float(np.linalg.norm(solution(at[:, None]) - known) / np.linalg.norm(known)))
    return min(errors)


@case("nonlinear", error=_either)
def slab_before_the_spark() -> pb.Problem:
    """Make heat at the rate 3.4 eʷ: just below 3.514 there are still two steady states, close together."""
    return pb.Problem(sp.Eq(w.diff(x, 2) + R(17, 5) * sp.exp(w), 0), LINE, [pb.Dirichlet(w, 0)])


@case("sudden")
def bar_dropped_into_water() -> pb.Problem:
    """Cool the end of a bar at once: first and boundary value differ at one instant, and only there."""
    domain = LINE * pb.TimeInterval(t, 0, R(1, 20))
    exact = sp.erf(x / (2 * sp.sqrt(t)))
    conditions = [pb.Dirichlet(h, 0, on=LINE.left), *held({h: exact}, LINE.right), pb.Initial(h, 1)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), domain, conditions, exact=exact)
