"""Problems in time on a line, in the plane and in space: fronts, waves, markets, and what slowly settles."""

from __future__ import annotations

import numpy as np
import sympy as sp
from scipy.optimize import brentq

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import LINE, SQUARE, R, h, t, x, y, z
from benchmarks.sets.posing import ASKED, SEEDS, begun, held, posed

case, times = collected(ASKED, SEEDS)
e = pb.field("e", x, t)
f, g = pb.field("f", x, y, t), pb.field("g", x, y, t)
UNIT = pb.TimeInterval(t, 0, 1)


# Lines ----------------------------------------------------------------------------------------------------------------


@case("interfaces")
def wall_of_brick_and_wool() -> pb.Problem:
    """Let a wall of two layers cool in its slowest way: sin on one side of the seam, cos on the other."""
    seam, brick, wool = 0.4, 1.0, 0.05

    def mismatch(rate: float) -> float:
        one, two = np.sqrt(rate / brick), np.sqrt(rate / wool)
        share = np.sin(one * seam) * -wool * two * np.sin(two * (seam - 1))
        return float(brick * one * np.cos(one * seam) * np.cos(two * (seam - 1)) - share)

    rate = brentq(mismatch, 0.05, 0.6, xtol=1e-16)
    one, two = np.sqrt(rate / brick), np.sqrt(rate / wool)
    share = float(np.sin(one * seam) / np.cos(two * (seam - 1)))
    shape = sp.Piecewise((sp.sin(one * x), x < R(2, 5)), (share * sp.cos(two * (x - 1)), True))
    exact, wall = 20 + 15 * shape * sp.exp(-rate * t), LINE * pb.TimeInterval(t, 0, 3)
    k = sp.Piecewise((1, x < R(2, 5)), (R(1, 20), True))
    conditions = [pb.Dirichlet(h, 20, on=LINE.left), pb.Neumann(h, 0, on=LINE.right), *begun({h: exact}, wall)]
    return pb.Problem(sp.Eq(h.diff(t), (k * h.diff(x)).diff(x)), wall, conditions, exact=exact)


@case("units")
def pulse_on_a_cable() -> pb.Problem:
    """Let 100 m of cable swing for 2 µs: metres and seconds, and a loss on the way."""
    long, speed, loss = 100, 2 * 10**8, 10**6
    cable = pb.Interval((x, 0, long))
    note = sp.sqrt((sp.pi * speed / long) ** 2 - loss**2)
    exact = 5 * sp.sin(sp.pi * x / long) * sp.exp(-loss * t) * (sp.cos(note * t) + loss / note * sp.sin(note * t))
    domain = cable * pb.TimeInterval(t, 0, R(2, 10**6))
    equation = sp.Eq(h.diff(t, 2) + 2 * loss * h.diff(t), speed**2 * h.diff(x, 2))
    return pb.Problem(equation, domain, [pb.Dirichlet(h, 0), *begun({h: exact}, domain, 2)], exact=exact)


@case("transport")
def river_that_widens() -> pb.Problem:
    """Carry a dye down a river whose speed falls from 2 to 1/2 where it widens."""
    wide = R(3, 2)
    river, arrived = pb.Interval((x, 0, 3)), sp.Piecewise((x / 2, x < wide), (wide / 2 + 2 * (x - wide), True))
    exact = sp.exp(-20 * (t - arrived - R(1, 5)) ** 2)
    domain, speed = river * pb.TimeInterval(t, 0, 2), sp.Piecewise((2, x < wide), (R(1, 2), True))
    conditions = [*held({h: exact}, river.left), *begun({h: exact}, domain)]
    return pb.Problem(sp.Eq(h.diff(t) + speed * h.diff(x), 0), domain, conditions, exact=exact)


@case("transport")
def valve_that_opens() -> pb.Problem:
    """Open a valve at once: the concentration jumps, and the jump travels."""
    opened = R(1, 5)
    exact = sp.Piecewise((1, x < t - opened), (0, True))
    inflow = sp.Piecewise((1, t > opened), (0, True))
    conditions = [pb.Dirichlet(h, inflow, on=LINE.left), pb.Initial(h, 0)]
    return pb.Problem(sp.Eq(h.diff(t) + h.diff(x), 0), LINE * UNIT, conditions, exact=exact)


@case("finance")
def option_that_is_knocked_out() -> pb.Problem:
    """Price a call that is void as soon as the share falls to 80; x is the share, t the time that is left."""
    strike, barrier, rate, vol = 100, 80, R(1, 20), R(1, 4)

    def call(share: sp.Expr) -> sp.Expr:
        root = vol * sp.sqrt(t)
        one = (sp.log(share / strike) + (rate + vol**2 / 2) * t) / root

        def below(value: sp.Expr) -> sp.Expr:
            return sp.erfc(-value / sp.sqrt(2)) / 2

        return share * below(one) - strike * sp.exp(-rate * t) * below(one - root)

    exact = call(x) - (x / barrier) ** (1 - 2 * rate / vol**2) * call(barrier**2 / x)
    shares = pb.Interval((x, barrier, 240))
    domain = shares * pb.TimeInterval(t, R(1, 10), 1)
    conditions = [pb.Dirichlet(h, 0, on=shares.left), *held({h: exact}, shares.right), *begun({h: exact}, domain)]
    equation = sp.Eq(h.diff(t), vol**2 * x**2 * h.diff(x, 2) / 2 + rate * x * h.diff(x) - rate * h)
    return pb.Problem(equation, domain, conditions, exact=exact)


@case("units")
def microwave_between_mirrors() -> pb.Problem:
    """Let a field of volts per metre swing with one of amperes per metre, for a nanosecond between two mirrors."""
    long, mu, eps = R(1, 10), sp.Rational("1.2566e-6"), sp.Rational("8.854e-12")
    speed = 1 / sp.sqrt(mu * eps)
    wave = 2 * sp.pi / long
    exact = {h: 100 * sp.sin(wave * x) * sp.cos(wave * speed * t)}
    exact[e] = 100 * sp.sqrt(eps / mu) * sp.cos(wave * x) * sp.sin(wave * speed * t)
    room = pb.Interval((x, 0, long))
    domain = room * pb.TimeInterval(t, 0, R(1, 10**9))
    equations = [sp.Eq(eps * h.diff(t) - e.diff(x), 0), sp.Eq(mu * e.diff(t) - h.diff(x), 0)]
    return pb.Problem(equations, domain, [pb.Dirichlet(h, 0), *begun(exact, domain)], exact=exact)


@case("coupled")
def clay_that_settles() -> pb.Problem:
    """Squeeze water out of clay after Terzaghi and Biot: settlement and pressure, drained at one end."""
    stiff, leak = 5, R(1, 20)
    rate = stiff * leak * sp.pi**2 / 4
    press = sp.sin(sp.pi * x / 2) * sp.exp(-rate * t)
    exact = {h: press, e: -2 / (sp.pi * stiff) * sp.cos(sp.pi * x / 2) * sp.exp(-rate * t)}
    domain = LINE * pb.TimeInterval(t, 0, 2)
    equations = [sp.Eq(stiff * e.diff(x, 2), h.diff(x)), sp.Eq(e.diff(x, t), leak * h.diff(x, 2))]
    conditions = [
        pb.Dirichlet(h, 0, on=LINE.left),
        pb.Neumann(h, 0, on=LINE.right),
        pb.Dirichlet(e.diff(x), 0, on=LINE.left),
        pb.Dirichlet(e, 0, on=LINE.right),
        *begun({e: exact[e]}, domain),
    ]
    return pb.Problem(equations, domain, conditions, exact=exact)


@case("nonlinear")
def bore_in_a_channel() -> pb.Problem:
    """Let a steep front travel, after Burgers, where waves are carried and smeared."""
    nu, fast = R(1, 200), R(1, 2)
    exact = fast - fast * sp.tanh(fast * (x - R(3, 10) - fast * t) / (2 * nu))
    domain = LINE * UNIT
    equation = sp.Eq(h.diff(t) + h * h.diff(x), nu * h.diff(x, 2))
    return pb.Problem(equation, domain, [*held({h: exact}), *begun({h: exact}, domain)], exact=exact)


@case("nonlinear")
def signal_along_a_nerve() -> pb.Problem:
    """Let a state spread along a nerve after Nagumo."""
    threshold, nerve = R(1, 5), pb.Interval((x, -15, 15))
    exact = 1 / (1 + sp.exp((x - sp.sqrt(2) * (R(1, 2) - threshold) * t) / sp.sqrt(2)))
    domain = nerve * pb.TimeInterval(t, 0, 10)
    equation = sp.Eq(h.diff(t), h.diff(x, 2) + h * (1 - h) * (h - threshold))
    return pb.Problem(equation, domain, [*held({h: exact}), *begun({h: exact}, domain)], exact=exact)


@case("nonlinear")
def wall_that_flies() -> pb.Problem:
    """Let a kink of a field fly at six tenths of the speed of light."""
    fast, line = R(3, 5), pb.Interval((x, -6, 10))
    exact = sp.tanh((x - fast * t) / sp.sqrt(2 * (1 - fast**2)))
    domain = line * pb.TimeInterval(t, 0, 6)
    equation = sp.Eq(h.diff(t, 2) - h.diff(x, 2), h - h**3)
    return pb.Problem(equation, domain, [*held({h: exact}), *begun({h: exact}, domain, 2)], exact=exact)


@case("nonlinear")
def dark_soliton() -> pb.Problem:
    """Let a dark spot rest in bright light, after Schrödinger, with a phase that turns."""
    psi, line = pb.field("psi", x, t, complex=True), pb.Interval((x, -6, 6))
    exact = sp.tanh(x) * (sp.cos(t) - sp.I * sp.sin(t))
    equation = sp.Eq(sp.I * psi.diff(t) + psi.diff(x, 2) / 2, abs(psi) ** 2 * psi)
    conditions = [pb.Dirichlet(psi, exact), pb.Initial(psi, sp.tanh(x))]
    return pb.Problem(equation, line * pb.TimeInterval(t, 0, 3), conditions, exact={psi: exact})


@case("nonlinear")
def waves_of_two_chemicals() -> pb.Problem:
    """Let a periodic wave of two chemicals travel round a ring, with a frequency that depends on its size."""
    wave, ring = R(1, 2), pb.Interval((x, 0, 4 * sp.pi))
    size = 1 - wave**2
    turn = wave * x + (1 - size) * t
    exact = {h: sp.sqrt(size) * sp.cos(turn), e: sp.sqrt(size) * sp.sin(turn)}
    square = h**2 + e**2
    equations = [
        sp.Eq(h.diff(t), h.diff(x, 2) + (1 - square) * h - (1 - square) * e),
        sp.Eq(e.diff(t), e.diff(x, 2) + (1 - square) * h + (1 - square) * e),
    ]
    domain = ring * pb.TimeInterval(t, 0, 8)
    conditions = [pb.Periodic(h, x), pb.Periodic(e, x), *begun(exact, domain)]
    return pb.Problem(equations, domain, conditions, exact=exact)


@case("nonlinear")
def long_wave_on_water() -> pb.Problem:
    """Let a solitary wave pass, after Benjamin, Bona and Mahony."""
    size, basin = R(1, 2), pb.Interval((x, -20, 30))
    bend = sp.sqrt(size / (4 * (1 + size)))
    exact = 3 * size / sp.cosh(bend * (x - (1 + size) * t)) ** 2
    domain = basin * pb.TimeInterval(t, 0, 6)
    equation = sp.Eq(h.diff(t) + h.diff(x) + h * h.diff(x) - h.diff(x, 2, t), 0)
    return pb.Problem(equation, domain, [*held({h: exact}), *begun({h: exact}, domain)], exact=exact)


# Planes and space -----------------------------------------------------------------------------------------------------


@case("units")
def coin_that_cools() -> pb.Problem:
    """Let a coin of 12 mm cool to room temperature at its rim, for two seconds, in metres."""
    radius, spread, root = R(12, 1000), R(1, 10**5), sp.Float("2.404825557695772768621631879", 30)
    coin = pb.Disk((x, y), (0, 0), radius)
    far = sp.sqrt(x**2 + y**2)
    exact = 20 + 60 * sp.besselj(0, root * far / radius) * sp.exp(-spread * (root / radius) ** 2 * t)
    domain = coin * pb.TimeInterval(t, 0, 2)
    conditions = [pb.Dirichlet(f, 20), *begun({f: exact}, domain)]
    return pb.Problem(sp.Eq(f.diff(t), spread * pb.laplacian(f)), domain, conditions, exact=exact)


@case("transport")
def spot_in_an_eddy() -> pb.Problem:
    """Turn a spot of dye once round a square that diffuses a little."""
    pool, little, size = pb.Rectangle((x, -1, 1), (y, -1, 1)), R(1, 500), R(1, 50)
    wide = size + 4 * little * t
    place = (x - sp.cos(2 * t) / 2) ** 2 + (y - sp.sin(2 * t) / 2) ** 2
    exact = size / wide * sp.exp(-place / wide)
    domain = pool * pb.TimeInterval(t, 0, sp.pi)
    equation = sp.Eq(f.diff(t) - 2 * y * f.diff(x) + 2 * x * f.diff(y), little * pb.laplacian(f))
    return pb.Problem(equation, domain, [*held({f: exact}), *begun({f: exact}, domain)], exact=exact)


@case("nonlinear")
def crossing_fronts() -> pb.Problem:
    """Let two speeds carry each other aslant: a front of Burgers' pair in the plane."""
    nu = R(1, 60)
    rise = 1 / (4 * (1 + sp.exp((4 * y - 4 * x - t) / (32 * nu))))
    exact = {f: R(3, 4) - rise, g: R(3, 4) + rise}
    domain = SQUARE * UNIT
    equations = [sp.Eq(of.diff(t) + f * of.diff(x) + g * of.diff(y), nu * pb.laplacian(of)) for of in (f, g)]
    return pb.Problem(equations, domain, [*held(exact), *begun(exact, domain)], exact=exact)


@case("interfaces")
def oval_that_cools() -> pb.Problem:
    """Let a plate with an elliptic inclusion cool, which conducts thirty times as well."""
    level = x**2 / R(9, 25) + y**2 / R(4, 25) - 1
    k, plate = sp.Piecewise((30, level < 0), (1, True)), pb.Rectangle((x, -1, 1), (y, -1, 1))
    exact = sp.exp(-t) * level / k
    source = sp.exp(-t) * (-level / k - (2 / R(9, 25) + 2 / R(4, 25)))
    domain = plate * UNIT
    equation = sp.Eq(f.diff(t) - pb.div(k * pb.grad(f)), source)
    return pb.Problem(equation, domain, [*held({f: exact}), *begun({f: exact}, domain)], exact=exact)


@case("nonlinear")
def fire_that_spreads() -> pb.Problem:
    """Let a front spread aslant over a plane after Fisher."""
    along = (3 * x + 4 * y) / 5
    field = pb.Rectangle((x, 0, 12), (y, 0, 8))
    exact = (1 + sp.exp((along - 6 - 5 * t / sp.sqrt(6)) / sp.sqrt(6))) ** -2
    domain = field * pb.TimeInterval(t, 0, 2)
    equation = sp.Eq(f.diff(t), pb.laplacian(f) + f * (1 - f))
    return pb.Problem(equation, domain, [*held({f: exact}), *begun({f: exact}, domain)], exact=exact)


@case("waves")
def quake() -> pb.Problem:
    """Send a wave of pressure and one of shear through a block."""
    young, poisson = R(5, 2), R(1, 4)
    lame, shear = young * poisson / ((1 + poisson) * (1 - 2 * poisson)), young / (2 * (1 + poisson))
    fast, slow = sp.sqrt(lame + 2 * shear), sp.sqrt(shear)
    one, two = sp.sin(3 * (R(3, 5) * x + R(4, 5) * y - fast * t)), sp.cos(4 * (x - slow * t))
    exact = {f: R(3, 5) * one, g: R(4, 5) * one + two / 2}
    rock = pb.stress([f, g], young=young, poisson=poisson, along=[x, y])
    domain = SQUARE * UNIT
    equations = [sp.Eq(of.diff(t, 2), pb.div(row)) for of, row in zip((f, g), rock.tolist(), strict=True)]
    return pb.Problem(equations, domain, [*held(exact), *begun(exact, domain, 2)], exact=exact)


@case("space")
def roast() -> pb.Problem:
    """Warm a box from its sides, with a source that changes: three coordinates and time."""
    q = pb.field("q", x, y, z, t)
    oven = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    domain = oven * UNIT
    exact = {q: 1 + sp.sin(2 * x) * sp.cos(y) * sp.cos(z) * sp.exp(-t)}
    return posed(q.diff(t) - pb.laplacian(q) / 10, exact, domain, [*held(exact), *begun(exact, domain)])
