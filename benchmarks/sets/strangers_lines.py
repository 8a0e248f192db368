"""Problems on a line, and courses of single numbers in time, as they are brought from laboratories and offices."""

from __future__ import annotations

from functools import cache

import numpy as np
import sympy as sp
from scipy.integrate import solve_bvp, solve_ivp
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk

import pibls as pb
from benchmarks.sets.case import Reference, collected
from benchmarks.sets.held_out import LINE, R, t, x
from benchmarks.sets.posing import ASKED, SEEDS, begun, held, posed, told

case, lines = collected(ASKED, SEEDS)
w, g, k = (pb.field(name, x) for name in "wgk")
a, b, c, d = (pb.field(name, t) for name in "abcd")
Array = np.ndarray


def _followed(slope: object, start: list[float], until: float, fields: str) -> Reference:
    """Return the course of a system by SciPy, to 1e-12."""

    @cache
    def course() -> object:
        tiny = [1e-13 * max(abs(v), 1e-6) for v in start]
        return solve_ivp(slope, (0, until), start, method="Radau", rtol=1e-12, atol=tiny, dense_output=True).sol

    return lambda at: dict(zip(fields, course()(at), strict=True))


# Lines ----------------------------------------------------------------------------------------------------------------


@case("heat")
def fin_that_tapers() -> pb.Problem:
    """Cool a fin of 50 mm whose thickness falls towards an insulated tip; lengths are in metres."""
    fin, m = pb.Interval((x, R(1, 200), R(1, 20))), 9
    bent = 2 * m * sp.sqrt(x)
    tip = bent.subs(x, R(1, 200))
    rising = sp.besseli(0, bent) * sp.besselk(1, tip) + sp.besselk(0, bent) * sp.besseli(1, tip)
    exact = 20 + 70 * rising / rising.subs(x, R(1, 20)).evalf(30)
    conditions = [pb.Neumann(w, 0, on=fin.left), pb.Dirichlet(w, 90, on=fin.right)]
    return pb.Problem(sp.Eq((x * w.diff(x)).diff(x), m**2 * (w - 20)), fin, conditions, exact=exact)


@case("chemistry")
def tubular_reactor() -> pb.Problem:
    """Let a reactant be carried, mixed back and consumed, with Danckwerts' conditions."""
    mixing, rate = R(1, 60), 2
    root = sp.sqrt(1 + 4 * rate * mixing)
    one, two = (1 + root) / (2 * mixing), (1 - root) / (2 * mixing)
    # a e^(one (x - 1)) + b e^(two x), so that nothing overflows
    first = sp.Matrix(
        [[one, two * sp.exp(two)], [(1 - mixing * one) * sp.exp(-one), 1 - mixing * two]],
    ).LUsolve(sp.Matrix([0, 1]))
    exact = first[0] * sp.exp(one * (x - 1)) + first[1] * sp.exp(two * x)
    conditions = [pb.Condition(sp.Eq(w - mixing * w.diff(x), 1), on=LINE.left), pb.Neumann(w, 0, on=LINE.right)]
    return pb.Problem(sp.Eq(mixing * w.diff(x, 2) - w.diff(x) - rate * w, 0), LINE, conditions, exact=exact)


@case("trace")
def neutrons_of_two_speeds() -> pb.Problem:
    """Slow neutrons down in 30 cm of water: the slow ones are few beside the fast ones."""
    slab, length = pb.Interval((x, 0, 30)), 30
    fast = 10**13 * sp.sinh((length - x) / R(5)) / sp.sinh(6)
    slow = 10**6 * (sp.sinh((length - x) / R(5)) / sp.sinh(6) - sp.sinh((length - x) / R(5, 2)) / sp.sinh(12))
    operators = [R(6, 5) * w.diff(x, 2) - R(6, 125) * w, R(4, 25) * g.diff(x, 2) - R(16, 625) * g + R(192, 10**11) * w]
    return posed(operators, {w: fast, g: slow}, slab)


@case("nonlinear")
def charged_wall_in_water() -> pb.Problem:
    """Follow the potential within 30 nm of a charged wall after Gouy and Chapman; lengths are in metres."""
    length, screening = R(30, 10**9), R(3, 10**9)
    exact = 4 * sp.atanh(sp.tanh(1) * sp.exp(-x / screening))
    layer = pb.Interval((x, 0, length))
    return pb.Problem(sp.Eq(w.diff(x, 2), sp.sinh(w) / screening**2), layer, [pb.Dirichlet(w, exact)], exact=exact)


@case("fourth order")
def rail_under_a_wheel() -> pb.Problem:
    """Press half of a long rail on its bed with 50 kN, in newtons and metres."""
    stiffness, bed, load = 6_400_000, 25_600_000, 50_000
    beta = sp.sqrt(sp.sqrt(R(bed, 4 * stiffness)))
    exact = load * beta / (2 * bed) * sp.exp(-beta * x) * (sp.cos(beta * x) + sp.sin(beta * x))
    rail, known = pb.Interval((x, 0, 12)), {w: exact}
    conditions = [
        pb.Dirichlet(w.diff(x), 0, on=rail.left),
        pb.Condition(sp.Eq(stiffness * w.diff(x, 3), R(load, 2)), on=rail.left),
        told(w, known, rail, rail.right),
        told(w.diff(x), known, rail, rail.right),
    ]
    return pb.Problem(sp.Eq(stiffness * w.diff(x, 4) + bed * w, 0), rail, conditions, exact=exact)


def _elastica(at: Array) -> dict[str, Array]:
    """Return how a clamped strip bends under a dead load along it, after Kirchhoff's analogy to the pendulum."""
    modulus = brentq(lambda m: ellipk(m) - 2.0, 0.01, 0.99, xtol=1e-15)
    return {"w": 2 * np.arcsin(np.sqrt(modulus) * ellipj(2.0 * at, modulus)[0])}


@case("nonlinear", reference=_elastica)
def strip_that_buckled() -> pb.Problem:
    """Follow a buckled strip from its inflection, where angle and curvature are known, to its clamped end."""
    modulus = brentq(lambda m: ellipk(m) - 2.0, 0.01, 0.99, xtol=1e-15)
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w.diff(x), 4 * np.sqrt(modulus), on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 2), -4 * sp.sin(w)), LINE, conditions)


@case("nonlinear")
def electrons_of_an_atom() -> pb.Problem:
    """Solve Thomas' and Fermi's equation between two radii, where 144/x³ is a solution."""
    return pb.Problem(
        sp.Eq(w.diff(x, 2), w ** R(3, 2) / sp.sqrt(x)),
        pb.Interval((x, 4, 12)),
        [pb.Dirichlet(w, 144 / x**3)],
        exact=144 / x**3,
    )


@cache
def _hamel() -> object:
    def slopes(_: Array, f: Array) -> Array:
        return np.stack([f[1], f[2], -20 * f[0] * f[1] - f[1]])

    def ends(first: Array, last: Array) -> Array:
        return np.array([first[0] - 1, first[1], last[0]])

    at = np.linspace(0, 1, 401)
    return solve_bvp(slopes, ends, at, np.stack([1 - at**2, -2 * at, -2 + 0 * at]), tol=1e-12, max_nodes=200_000).sol


@case("nonlinear", reference=lambda at: {"w": _hamel()(at)[0]})
def nozzle_after_hamel() -> pb.Problem:
    """Let a fluid flow out between two slanted walls: an equation of third order."""
    conditions = [
        pb.Dirichlet(w, 1, on=LINE.left),
        pb.Dirichlet(w.diff(x), 0, on=LINE.left),
        pb.Dirichlet(w, 0, on=LINE.right),
    ]
    return pb.Problem(sp.Eq(w.diff(x, 3) + 20 * w * w.diff(x) + w.diff(x), 0), LINE, conditions)


@cache
def _enzyme() -> object:
    at = np.linspace(0, 1, 401)
    return solve_bvp(
        lambda _, f: np.stack([f[1], 30 * f[0] / (0.1 + f[0])]),
        lambda first, last: np.array([first[1], last[0] - 1]),
        at,
        np.stack([at**8, 8 * at**7]),
        tol=1e-12,
        max_nodes=200_000,
    ).sol


@case("nonlinear", reference=lambda at: {"w": _enzyme()(at)[0]})
def enzyme_in_a_gel() -> pb.Problem:
    """Consume a substrate after Michaelis and Menten, so fast that hardly any is left in the middle."""
    conditions = [pb.Neumann(w, 0, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 30 * w / (R(1, 10) + w)), LINE, conditions)


def _carreau(at: Array) -> dict[str, Array]:
    """Return the speed by the rate of shear g, where g (1 + 9 g²)^(-1/4) = 4 x: the integral of g is closed."""

    def rate(place: float) -> float:
        return brentq(lambda g: g * (1 + 9 * g**2) ** -0.25 - 4 * place, 0, 1e3, xtol=1e-16, rtol=1e-15)

    def rest(place: float) -> float:
        g = rate(place)
        return g * place - (1 + 9 * g**2) ** 0.75 / 54

    return {"w": np.array([rest(1.0) - rest(place) for place in at])}


@case("nonlinear", reference=_carreau)
def paint_between_plates() -> pb.Problem:
    """Drive a fluid that thins under shear, after Carreau, between two plates."""
    slope = w.diff(x)
    flow = slope * (1 + 9 * slope**2) ** R(-1, 4)
    conditions = [pb.Neumann(w, 0, on=LINE.left), pb.Dirichlet(w, 0, on=LINE.right)]
    return pb.Problem(sp.Eq(flow.diff(x), -4), LINE, conditions)


@case("boundary layer")
def liquid_metal_in_a_magnet() -> pb.Problem:
    """Brake a channel flow by a magnetic field: Hartmann's layers, and the field that they induce."""
    ha, channel = 40, pb.Interval((x, -1, 1))

    def even(s: sp.Expr) -> sp.Expr:
        return (sp.exp(ha * (s - 1)) + sp.exp(-ha * (s + 1))) / (1 - sp.exp(-2 * ha))

    def odd(s: sp.Expr) -> sp.Expr:
        return (sp.exp(ha * (s - 1)) - sp.exp(-ha * (s + 1))) / (1 - sp.exp(-2 * ha))

    speed, induced = (sp.coth(ha) - even(x)) / ha, (odd(x) - x) / ha
    equations = [sp.Eq(w.diff(x, 2) + ha * g.diff(x), -1), sp.Eq(g.diff(x, 2) + ha * w.diff(x), 0)]
    conditions = [pb.Dirichlet(w, 0), pb.Dirichlet(g, 0)]
    return pb.Problem(equations, channel, conditions, exact={w: speed, g: induced})


@case("nonlinear")
def ions_beside_a_membrane() -> pb.Problem:
    """Move two ions in the field that they make, after Nernst, Planck and Poisson; one is a trace."""
    exact = {w: 1 + sp.exp(-5 * x), g: R(1, 1000) * (2 - x**2), k: sp.sin(2 * x)}
    operators = [
        (w.diff(x) + w * k.diff(x)).diff(x),
        (g.diff(x) - g * k.diff(x)).diff(x),
        R(1, 100) * k.diff(x, 2) + w - 1000 * g,
    ]
    return posed(operators, exact, LINE)


@case("nonlinear")
def dry_soil() -> pb.Problem:
    """Let water rise two metres through soil that conducts the less the drier it is, after Gardner."""
    soil, alpha = pb.Interval((x, 0, 2)), 3
    exact = sp.log(R(6, 5) * sp.exp(-alpha * x) + R(1, 100)) / alpha
    rise = sp.exp(alpha * w) * (w.diff(x) + 1)
    return pb.Problem(sp.Eq(rise.diff(x), 0), soil, held({w: exact}), exact=exact)


@case("integral")
def mass_of_a_plume() -> pb.Problem:
    """Know how much there is in all instead of the value at one end."""
    exact = sp.exp(-x) * sp.cos(3 * x) + 2
    total = sp.integrate(exact, (x, 0, 1))
    operator = w.diff(x, 2) - (2 + sp.sin(x)) * w.diff(x)
    return posed(operator, {w: exact}, LINE, [pb.Dirichlet(w, 3, on=LINE.left), pb.Mean(w, total)])


@case("quantum")
def electron_on_a_slope() -> pb.Problem:
    """Solve Airy's equation from where it oscillates to where it decays."""
    slope = pb.Interval((x, -14, 4))
    return pb.Problem(sp.Eq(w.diff(x, 2), x * w), slope, [pb.Dirichlet(w, sp.airyai(x))], exact=sp.airyai(x))


@case("waves")
def light_through_a_pane() -> pb.Problem:
    """Send light of 0.5 µm through 0.4 µm of glass, in metres: reflected before it, and let out behind it."""
    psi, micron = pb.field("psi", x, complex=True), R(1, 10**6)
    one, two, front, back = 4 * sp.pi / micron, 6 * sp.pi / micron, R(3, 10) * micron, R(7, 10) * micron
    i, thick = sp.I, back - front
    ratio = R(3, 2)
    # Travelling waves in the pane are f e^(2πi..) forward and r backward; behind it, e^(ik(x - back)).
    f, r = (1 + 1 / ratio) / 2, (1 - 1 / ratio) / 2
    there = f * sp.exp(-i * two * thick) + r * sp.exp(i * two * thick)
    slope = ratio * (f * sp.exp(-i * two * thick) - r * sp.exp(i * two * thick))
    forward, back_wave = (there + slope) / 2, (there - slope) / 2
    before = sp.exp(i * one * (x - front)) + back_wave / forward * sp.exp(-i * one * (x - front))
    within = (f * sp.exp(i * two * (x - back)) + r * sp.exp(-i * two * (x - back))) / forward
    behind = sp.exp(i * one * (x - back)) / forward
    pieces = [[sp.expand_complex(part(e)) for e in (before, within, behind)] for part in (sp.re, sp.im)]
    parts = [sp.Piecewise((p[0], x < front), (p[1], x < back), (p[2], True)) for p in pieces]
    index = sp.Piecewise((one**2, x < front), (two**2, x < back), (one**2, True))
    room = pb.Interval((x, 0, micron))
    shine = (parts[0] + i * parts[1]).subs(x, 0)
    conditions = [pb.Dirichlet(psi, shine, on=room.left), pb.Robin(psi, -i * one, 1, 0, on=room.right)]
    exact = {psi: parts[0] + i * parts[1]}
    return pb.Problem(sp.Eq(psi.diff(x, 2) + index * psi, 0), room, conditions, exact=exact)


# Courses --------------------------------------------------------------------------------------------------------------


def _epidemic(_: float, f: Array) -> list[float]:
    caught, healed = 0.4 * f[0] * f[1] / 8e6, 0.1 * f[1]
    return [-caught, caught - healed, healed]


@case("courses", reference=_followed(_epidemic, [8e6 - 10, 10, 0], 120, "abc"))
def epidemic_in_a_city() -> pb.Problem:
    """Let ten of eight million people be ill, and wait for 120 days."""
    caught, healed = R(4, 10) * a * b / 8_000_000, b / 10
    equations = [sp.Eq(a.diff(t), -caught), sp.Eq(b.diff(t), caught - healed), sp.Eq(c.diff(t), healed)]
    start = [pb.Initial(a, 8_000_000 - 10), pb.Initial(b, 10), pb.Initial(c, 0)]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 120), start)


def _robertson(_: float, f: Array) -> list[float]:
    one, two, three = 0.04 * f[0], 1e4 * f[1] * f[2], 3e7 * f[1] ** 2
    return [two - one, one - two - three, three]


@case("courses", reference=_followed(_robertson, [1.0, 0.0, 0.0], 40, "abc"))
def fast_and_slow_reactions() -> pb.Problem:
    """Follow Robertson's three reactions, of which one is a billion times as fast as another."""
    one, two, three = R(1, 25) * a, 10_000 * b * c, 30_000_000 * b**2
    equations = [sp.Eq(a.diff(t), two - one), sp.Eq(b.diff(t), one - two - three), sp.Eq(c.diff(t), three)]
    start = [pb.Initial(a, 1), pb.Initial(b, 0), pb.Initial(c, 0)]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 40), start)


def _comet(at: Array) -> dict[str, Array]:
    """Return an orbit of semi-axis 1 and eccentricity 0.7, by Kepler's equation, from its nearest point."""
    e = 0.7
    angle = np.array([brentq(lambda s, m=m: s - e * np.sin(s) - m, m - 1, m + 1, xtol=1e-15) for m in at])
    return {"a": np.cos(angle) - e, "b": np.sqrt(1 - e**2) * np.sin(angle)}


@case("courses", reference=_comet)
def comet() -> pb.Problem:
    """Follow a comet around the sun for one and a half years of its own."""
    cubed = (a**2 + b**2) ** R(3, 2)
    start = [pb.Initial(a, R(3, 10)), pb.Initial(a.diff(t), 0), pb.Initial(b, 0)]
    start.append(pb.Initial(b.diff(t), sp.sqrt(R(17, 3))))
    equations = [sp.Eq(a.diff(t, 2), -a / cubed), sp.Eq(b.diff(t, 2), -b / cubed)]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 9), start)


@case("trace")
def radon_and_its_daughters() -> pb.Problem:
    """Let 10²⁰ nuclei decay through two daughters, the first a millionth as long-lived."""
    slow, fast, last = R(1, 1000), 20, R(1, 3)
    mother = 10**20 * sp.exp(-slow * t)
    first = 10**20 * slow / (fast - slow) * (sp.exp(-slow * t) - sp.exp(-fast * t))
    chain = 10**20 * slow * fast
    second = chain * (
        sp.exp(-slow * t) / ((fast - slow) * (last - slow))
        + sp.exp(-fast * t) / ((slow - fast) * (last - fast))
        + sp.exp(-last * t) / ((slow - last) * (fast - last))
    )
    exact, days = {a: mother, b: first, c: second}, pb.TimeInterval(t, 0, 12)
    operators = [a.diff(t) + slow * a, b.diff(t) + fast * b - slow * a, c.diff(t) + last * c - fast * b]
    return pb.Problem([sp.Eq(o, 0) for o in operators], days, begun(exact, days), exact=exact)


@case("units")
def circuit_of_nanofarads() -> pb.Problem:
    """Let a coil of 1 mH, 20 Ω and 1 nF swing freely for 40 µs: volts, amperes and seconds."""
    coil, ohm, farad = R(1, 1000), 20, R(1, 10**9)
    decay, note = ohm / (2 * coil), sp.sqrt(1 / (coil * farad) - (ohm / (2 * coil)) ** 2)
    volt = 5 * sp.exp(-decay * t) * (sp.cos(note * t) + decay / note * sp.sin(note * t))
    exact, while_ = {a: volt, b: farad * volt.diff(t)}, pb.TimeInterval(t, 0, R(4, 10**5))
    equations = [sp.Eq(farad * a.diff(t), b), sp.Eq(coil * b.diff(t) + ohm * b, -a)]
    return pb.Problem(equations, while_, [pb.Initial(a, 5), pb.Initial(b, 0)], exact=exact)


@case("courses")
def parachute() -> pb.Problem:
    """Fall against the drag of air, from 4000 m: a Riccati equation beside a height."""
    last, g0 = 50, R(981, 100)
    exact = {a: -last * sp.tanh(g0 * t / last), b: 4000 - R(last**2) / g0 * sp.log(sp.cosh(g0 * t / last))}
    fall = pb.TimeInterval(t, 0, 20)
    equations = [sp.Eq(a.diff(t), g0 * (a**2 / last**2 - 1)), sp.Eq(b.diff(t), a)]
    return pb.Problem(equations, fall, [pb.Initial(a, 0), pb.Initial(b, 4000)], exact=exact)


def _top(_: float, f: Array) -> list[float]:
    return [-f[1] * f[2] / 1.0, f[2] * f[0], -0.51 * f[0] * f[1]]


@case("courses", reference=_followed(_top, [0.0, 1.0, 1.0], 12, "abc"))
def book_that_tumbles() -> pb.Problem:
    """Throw a book: Euler's equations of a free body."""
    equations = [sp.Eq(a.diff(t), -b * c), sp.Eq(b.diff(t), c * a), sp.Eq(c.diff(t), -R(51, 100) * a * b)]
    start = [pb.Initial(a, 0), pb.Initial(b, 1), pb.Initial(c, 1)]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 12), start)
