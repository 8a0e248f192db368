"""Evolutions, and equations in which first derivatives rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import erf, erfc, erfcx, j0, jn_zeros

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import LINE, SQUARE, WIDE, R, h, t, u, x, y
from pibls.problems.manufactured import layer, manufactured

case, courses = collected()
g = pb.field("g", x, y, t)
a, b = pb.field("a", x, t), pb.field("b", x, t)
Rates = Callable[[float, np.ndarray], list[float]]


def _seconds(stop: Any, start: Any = 0) -> pb.TimeInterval:
    return pb.TimeInterval(t, start, stop)


def _integrated(names: list[str], rates: Rates, start: list[float], stop: float) -> dict[str, Any]:
    """Return what SciPy makes of rates, as functions of time by name."""

    @cache
    def course() -> Any:
        return solve_ivp(rates, (0, stop), start, "Radau", rtol=1e-11, atol=1e-14, dense_output=True).sol

    def component(number: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda T: np.asarray(course()(np.clip(T, 0, stop))[number])

    return {name: pb.data(f"{name}_known", component(number), t) for number, name in enumerate(names)}


# Evolutions -----------------------------------------------------------------------------------------------------------


@cache
def _slab_modes() -> tuple[np.ndarray, np.ndarray]:
    """Return the roots of ζ tan ζ = 2, and what each contributes to an even start."""
    roots = [brentq(lambda q: q * np.sin(q) - 2 * np.cos(q), n * np.pi, n * np.pi + np.pi / 2) for n in range(400)]
    zeta = np.array(roots)[:, None]
    return zeta, 4 * np.sin(zeta) / (2 * zeta + np.sin(2 * zeta))


def _slab(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    zeta, size = _slab_modes()
    return np.asarray(300 + 200 * (size * np.exp(-(zeta**2) * T / 10) * np.cos(100 * zeta * X)).sum(axis=0))


@case("evolution")
def cooling_slab() -> pb.Problem:
    """Cool half a steel slab of 2 cm in oil, from 500 K on; the rule of cooling does not hold at first."""
    slab = pb.Interval((x, 0, R(1, 100)))
    exact = pb.data("slab", _slab, x, t)
    conditions = [pb.Neumann(h, 0, on=slab.left), pb.Robin(h, 8000, 40, 8000 * 300, on=slab.right), pb.Initial(h, 500)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2) / 100000), slab * _seconds(5), conditions, exact=exact)


def _struck(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    def carried(place: np.ndarray) -> np.ndarray:
        return 2 * np.clip(abs((place + 0.65) % 1.3 - 0.65) - 0.2, 0, 0.05)

    return np.asarray((carried(X + 300 * T) - carried(X - 300 * T)) / 600)


@case("evolution")
def struck_string() -> pb.Problem:
    """Strike a string of 65 cm over 5 cm: its first velocity jumps."""
    string = pb.Interval((x, 0, R(13, 20)))
    speed = sp.Piecewise((2, (x > R(1, 5)) & (x < R(1, 4))), (0, True))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, 0), pb.Initial(h.diff(t), speed)]
    equation = sp.Eq(h.diff(t, 2), 90000 * h.diff(x, 2))
    return pb.Problem(equation, string * _seconds(R(3, 1000)), conditions, exact=pb.data("struck", _struck, x, t))


def _tracer(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    root = 2 * np.sqrt(1e-7 * np.maximum(T, 1e-300))
    ahead, behind = (X - 1e-5 * T) / root, (X + 1e-5 * T) / root
    return np.asarray((erfc(ahead) + np.exp(-(ahead**2)) * erfcx(behind)) / 2)


@case("evolution")
def tracer_in_a_column() -> pb.Problem:
    """Wash salt into a metre of sand for a day (Ogata and Banks)."""
    column, exact = pb.Interval((x, 0, 1)), pb.data("tracer", _tracer, x, t)
    equation = pb.parse("h_t + 1e-5*h_x = 1e-7*h_xx", "x t", [h])
    conditions = [pb.Dirichlet(h, 1, on=column.left), pb.Dirichlet(h, exact, on=column.right), pb.Initial(h, 0)]
    return pb.Problem(equation, column * _seconds(86400), conditions, exact=exact)


@case("evolution")
def swinging_packet() -> pb.Problem:
    """Swing the ground state of an oscillator from side to side, in real and imaginary part."""
    line = pb.Interval((x, -7, 7))
    size = sp.exp(-((x - 2 * sp.cos(t)) ** 2) / 2) / sp.pi ** R(1, 4)
    phase = -t / 2 - 2 * x * sp.sin(t) + sp.sin(2 * t)
    exact = {a: size * sp.cos(phase), b: size * sp.sin(phase)}
    equations = [
        sp.Eq(a.diff(t), -b.diff(x, 2) / 2 + x**2 * b / 2),
        sp.Eq(b.diff(t), a.diff(x, 2) / 2 - x**2 * a / 2),
    ]
    conditions = [k for of in (a, b) for k in (pb.Dirichlet(of, exact[of]), pb.Initial(of, exact[of].subs(t, 0)))]
    return pb.Problem(equations, line * _seconds(3), conditions, exact={"a": exact[a], "b": exact[b]})


@case("evolution")
def fast_exchange() -> pb.Problem:
    """Let two substances diffuse that turn into each other five thousand times as fast."""
    total = 1 + sp.cos(sp.pi * x) * sp.exp(-(sp.pi**2) * t / 10)
    rest = total * sp.exp(-10000 * t)
    equations = [
        sp.Eq(a.diff(t), a.diff(x, 2) / 10 - 5000 * (a - b)),
        sp.Eq(b.diff(t), b.diff(x, 2) / 10 + 5000 * (a - b)),
    ]
    conditions = [pb.Neumann(a, 0), pb.Neumann(b, 0), pb.Initial(a, 1 + sp.cos(sp.pi * x)), pb.Initial(b, 0)]
    exact = {"a": (total + rest) / 2, "b": (total - rest) / 2}
    return pb.Problem(equations, LINE * _seconds(1), conditions, exact=exact)


def _hires(_: float, s: np.ndarray) -> list[float]:
    met = 280 * s[5] * s[7]
    return [
        -1.71 * s[0] + 0.43 * s[1] + 8.32 * s[2] + 0.0007,
        1.71 * s[0] - 8.75 * s[1],
        -10.03 * s[2] + 0.43 * s[3] + 0.035 * s[4],
        8.32 * s[1] + 1.71 * s[2] - 1.12 * s[3],
        -1.745 * s[4] + 0.43 * s[5] + 0.43 * s[6],
        -met + 0.69 * s[3] + 1.71 * s[4] - 0.43 * s[5] + 0.69 * s[6],
        met - 1.81 * s[6],
        -met + 1.81 * s[6],
    ]


@case("evolution")
def light_in_a_plant() -> pb.Problem:
    """Pose HIRES, eight reactions by which plants answer to red light."""
    names = [f"s{n}" for n in range(8)]
    start = [1.0, 0, 0, 0, 0, 0, 0, 0.0057]
    right = [
        "-1.71*s0 + 0.43*s1 + 8.32*s2 + 0.0007",
        "1.71*s0 - 8.75*s1",
        "-10.03*s2 + 0.43*s3 + 0.035*s4",
        "8.32*s1 + 1.71*s2 - 1.12*s3",
        "-1.745*s4 + 0.43*s5 + 0.43*s6",
        "-280*s5*s7 + 0.69*s3 + 1.71*s4 - 0.43*s5 + 0.69*s6",
        "280*s5*s7 - 1.81*s6",
        "-280*s5*s7 + 1.81*s6",
    ]
    fields = [pb.field(name, t) for name in names]
    equations = [pb.parse(f"{name}_t = {rate}", [t], fields) for name, rate in zip(names, right, strict=True)]
    conditions = [pb.Initial(of, value) for of, value in zip(fields, start, strict=True)]
    exact = _integrated(names, _hires, start, 321.8122)
    return pb.Problem(equations, _seconds(321.8122), conditions, exact=exact)


def _oregonator(_: float, s: np.ndarray) -> list[float]:
    return [
        77.27 * (s[1] + s[0] * (1 - 8.375e-6 * s[0] - s[1])),
        (s[2] - (1 + s[0]) * s[1]) / 77.27,
        0.161 * (s[0] - s[2]),
    ]


@case("evolution")
def pulsing_reaction() -> pb.Problem:
    """Pose the Oregonator: concentrations from 1 to 10⁵, changing within a thousandth of the time."""
    p, q, s = fields = [pb.field(name, t) for name in "pqs"]
    equations = [
        sp.Eq(p.diff(t), 77.27 * (q + p * (1 - 8.375e-6 * p - q))),
        sp.Eq(q.diff(t), (s - (1 + p) * q) / 77.27),
        sp.Eq(s.diff(t), 0.161 * (p - s)),
    ]
    conditions = [pb.Initial(of, value) for of, value in zip(fields, (1, 2, 3), strict=True)]
    exact = _integrated(["p", "q", "s"], _oregonator, [1.0, 2.0, 3.0], 40.0)
    return pb.Problem(equations, _seconds(40), conditions, exact=exact)


def _block(X: np.ndarray, Y: np.ndarray, T: np.ndarray) -> np.ndarray:
    root = 2 * np.sqrt(1e-4 * np.maximum(T, 1e-300))
    one = erf((X - 0.6) / root) - erf((X - 1.1) / root)
    return np.asarray(20 + 200 * one * (erf((Y - 0.3) / root) - erf((Y - 0.8) / root)) / 4)


@case("evolution")
def hot_block_in_a_plate() -> pb.Problem:
    """Let a hot rectangle spread in a cold plate: the start jumps along four lines."""
    plate, exact = pb.Rectangle((x, 0, 2), (y, 0, 1)), pb.data("block", _block, x, y, t)
    inside = (x > R(3, 5)) & (x < R(11, 10)) & (y > R(3, 10)) & (y < R(4, 5))
    conditions = [pb.Dirichlet(g, exact), pb.Initial(g, sp.Piecewise((220, inside), (20, True)))]
    return pb.Problem(sp.Eq(g.diff(t), pb.laplacian(g) / 10000), plate * _seconds(50), conditions, exact=exact)


def _drum(X: np.ndarray, Y: np.ndarray, T: np.ndarray) -> np.ndarray:
    k = jn_zeros(0, 2)[1] / 0.15
    return np.asarray(0.001 * j0(k * np.hypot(X, Y)) * np.cos(100 * k * T))


@case("evolution")
def drum_of_thirty_centimetres() -> pb.Problem:
    """Let a drum swing in its second round mode, by a millimetre."""
    skin, exact = pb.Disk((x, y), (0, 0), R(3, 20)), pb.data("drum", _drum, x, y, t)
    start = pb.data("first", lambda X, Y: _drum(X, Y, np.zeros_like(X)), x, y)
    conditions = [pb.Dirichlet(g, 0), pb.Initial(g, start), pb.Initial(g.diff(t), 0)]
    equation = sp.Eq(g.diff(t, 2), 10000 * pb.laplacian(g))
    return pb.Problem(equation, skin * _seconds(R(1, 500)), conditions, exact=exact)


def _late(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(T > 0.3, erfc(10 * X / (2 * np.sqrt(np.maximum(T - 0.3, 1e-300)))), 0))


@case("evolution")
def valve_opened_late() -> pb.Problem:
    """Change the temperature of an end at once, after a while in which nothing happens."""
    opened = sp.Piecewise((0, t < R(3, 10)), (1, True))
    conditions = [pb.Dirichlet(h, opened, on=LINE.left), pb.Dirichlet(h, 0, on=LINE.right), pb.Initial(h, 0)]
    equation = sp.Eq(h.diff(t), h.diff(x, 2) / 100)
    return pb.Problem(equation, LINE * _seconds(1), conditions, exact=pb.data("late", _late, x, t))


# First derivatives rule -----------------------------------------------------------------------------------------------


@case("transport")
def two_outflow_layers() -> pb.Problem:
    """Blow across a square towards a corner, with layers of a thousandth at both sides of it."""
    e = R(1, 1000)
    one = x - layer(x, e)
    exact = one * one.subs(x, y)
    equation = manufactured(-e * pb.laplacian(u) + u.diff(x) + u.diff(y), {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(u, 0)], exact=exact)


@case("transport")
def carried_round_a_bend() -> pb.Problem:
    """Carry a step of the inflow round a quarter of a ring, whose other sides nothing crosses."""
    quarter = pb.Rectangle((x, 0, 3), (y, 0, 3))
    bend = (pb.Disk((x, y), (0, 0), 2) - pb.Disk((x, y), (0, 0), 1)) & quarter
    exact = sp.Piecewise((1, x**2 + y**2 < R(9, 4)), (0, True))
    inflow = sp.Piecewise((1, x < R(3, 2)), (0, True))
    equation = sp.Eq(-y * u.diff(x) + x * u.diff(y), 0)
    return pb.Problem(equation, bend, [pb.Dirichlet(u, inflow, on=quarter.bottom)], exact=exact)


@case("transport")
def counterflow_exchanger() -> pb.Problem:
    """Let hot and cold water flow past each other: one condition at each end."""
    hot, cold = pb.field("hot", x), pb.field("cold", x)
    gap = 70 / (5 * (1 - sp.exp(-6)) + sp.exp(-6))
    warm = 360 - 5 * gap * (1 - sp.exp(-6 * x))
    equations = [sp.Eq(hot.diff(x), -30 * (hot - cold)), sp.Eq(cold.diff(x), -24 * (hot - cold))]
    conditions = [pb.Dirichlet(hot, 360, on=LINE.left), pb.Dirichlet(cold, 290, on=LINE.right)]
    return pb.Problem(equations, LINE, conditions, exact={"hot": warm, "cold": warm - gap * sp.exp(-6 * x)})


@case("transport")
def sheared_cloud() -> pb.Problem:
    """Shear a cloud: it comes in from the left above, and from the right below."""
    exact = (1 + y) * sp.exp(-8 * (x - y * t) ** 2)
    left, right = WIDE.left.where(lambda X: X[:, 1] > 0), WIDE.right.where(lambda X: X[:, 1] < 0)
    conditions = [pb.Dirichlet(g, exact, on=left), pb.Dirichlet(g, exact, on=right), pb.Initial(g, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(g.diff(t) + y * g.diff(x), 0), WIDE * _seconds(1), conditions, exact=exact)


@case("transport")
def ageing_herd() -> pb.Problem:
    """Follow a herd by age: births and the first herd do not match, and that is carried along."""
    ages = pb.Interval((x, 0, 20))
    exact = sp.Piecewise((40 * sp.exp(-x / 10), x < t), (100 * sp.exp(-(x - t) / 5 - t / 10), True))
    conditions = [pb.Dirichlet(h, 40, on=ages.left), pb.Initial(h, 100 * sp.exp(-x / 5))]
    return pb.Problem(sp.Eq(h.diff(t) + h.diff(x), -h / 10), ages * _seconds(10), conditions, exact=exact)


@case("transport")
def drift_against_diffusion() -> pb.Problem:
    """Let a polymer settle in a metre of water, which comes in above, on a layer of a tenth of a millimetre."""
    w = pb.field("w", x)
    tube = pb.Interval((x, 0, 1))
    speed, spread, inflow = R(1, 10**5), R(1, 10**9), R(3, 10**5)
    bed = 7 * sp.exp((x - 1) * speed / spread)
    conditions = [
        pb.Condition(sp.Eq(speed * w - spread * w.diff(x), inflow), on=tube.left),
        pb.Dirichlet(w, inflow / speed + 7, on=tube.right),
    ]
    return pb.Problem(sp.Eq(spread * w.diff(x, 2), speed * w.diff(x)), tube, conditions, exact=inflow / speed + bed)


# Periodic -------------------------------------------------------------------------------------------------------------


@case("periodic")
def ring_of_two_metals() -> pb.Problem:
    w = pb.field("w", x)
    inside = (x > R(1, 4)) & (x < R(3, 4))
    wave = sp.cos(2 * sp.pi * x)
    k, exact = sp.Piecewise((10, inside), (1, True)), sp.Piecewise((wave / 10, inside), (wave, True))
    equation = sp.Eq(-(k * w.diff(x)).diff(x), 4 * sp.pi**2 * wave)
    return pb.Problem(equation, LINE, [pb.Periodic(w, x), pb.Mean(w, R(9, 10) / sp.pi)], exact=exact)


@case("periodic")
def three_laps() -> pb.Problem:
    """Carry a bump round a ring of a metre three times, at 300 m/s."""
    exact = sp.exp(20 * (sp.cos(2 * sp.pi * (x - 300 * t)) - 1))
    conditions = [pb.Periodic(h, x), pb.Initial(h, exact.subs(t, 0))]
    domain = LINE * _seconds(R(1, 100))
    return pb.Problem(sp.Eq(h.diff(t) + 300 * h.diff(x), 0), domain, conditions, exact=exact)


@case("periodic")
def channel_that_repeats() -> pb.Problem:
    channel = pb.Rectangle((x, 5, 7), (y, 0, 1))
    exact = sp.sin(sp.pi * x) * y * (1 - y) * sp.exp(y)
    equation = manufactured(-pb.laplacian(u) + 10 * u.diff(x), {u: exact}, channel)
    conditions = [pb.Periodic(u, x), pb.Dirichlet(u, 0, on=channel.bottom | channel.top)]
    return pb.Problem(equation, channel, conditions, exact=exact)


@case("periodic")
def ring_far_away() -> pb.Problem:
    w = pb.field("w", x)
    ring = pb.Interval((x, 100, 100 + 2 * sp.pi))
    exact = sp.exp(3 * sp.sin(x))
    equation = manufactured(w.diff(x, 2) - (2 + sp.cos(x)) * w, {w: exact}, ring)
    return pb.Problem(equation, ring, [pb.Periodic(w, x)], exact=exact)


@case("periodic")
def film_that_ripples() -> pb.Problem:
    """Let a film become uneven: second derivatives of the wrong sign, which fourth ones keep in check."""
    exact = sp.exp(t) * sp.sin(2 * sp.pi * x) + sp.exp(-8 * t) * sp.cos(4 * sp.pi * x)
    equation = sp.Eq(h.diff(t), -h.diff(x, 4) / (16 * sp.pi**4) - h.diff(x, 2) / (2 * sp.pi**2))
    conditions = [pb.Periodic(h, x), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(equation, LINE * _seconds(3), conditions, exact=exact)


@case("periodic")
def drifting_on_a_torus() -> pb.Problem:
    """Spread and carry waves on a square that repeats both ways."""
    domain = pb.Rectangle((x, 0, 2), (y, 0, 3)) * _seconds(1)
    one = sp.exp(-(sp.pi**2) * t / 20) * sp.sin(sp.pi * (x - 2 * t))
    two = sp.exp(-(sp.pi**2) * t / 45) * sp.cos(2 * sp.pi * (y + t) / 3)
    exact = one * two
    equation = sp.Eq(g.diff(t) + 2 * g.diff(x) - g.diff(y), pb.laplacian(g) / 20)
    conditions = [pb.Periodic(g, x), pb.Periodic(g, y), pb.Initial(g, exact.subs(t, 0))]
    return pb.Problem(equation, domain, conditions, exact=exact)
