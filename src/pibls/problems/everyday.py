"""Everyday problems with a known solution: corners, jumps, small holes, narrow sources, thin layers, poor scaling.

Hardly any is smooth, and none needs more than a sentence to be written down; that is what textbooks and engineers ask
for. Those whose solution is known at points only are in :mod:`pibls.problems.everyday_values`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from inspect import isfunction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from scipy.special import exp1, ndtr

from pibls.checks import BoolArray, FloatArray
from pibls.geometry import Ball, Box, Disk, Interval, Polygon, Rectangle, TimeInterval
from pibls.problem import (
    Condition,
    Dirichlet,
    Initial,
    Mean,
    Neumann,
    Problem,
    Robin,
    data,
    field,
    laplacian,
    normal_derivative,
)
from pibls.problems.manufactured import L_SHAPE, SQUARE, UNIT, applied, manufactured, plane_stress, t, x, y, z
from pibls.problems.systems import elasticity

u, v = field("u", x, y), field("v", x, y)  # in the plane
w = field("w", x)  # on a line
HALF = sp.S.Half
VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("everyday_values.json").read_text(encoding="utf-8"))
LAPLACE = sp.Eq(laplacian(u), 0)


def motz() -> Problem:
    """Return Motz's problem: Δu = 0 with u = 0 to the left of the origin, insulated to its right, 500 on the right."""
    domain = Rectangle((x, -1, 1), (y, 0, 1))
    cold, free = domain.bottom.where(_to_the_left), domain.bottom.where(_to_the_right)
    rest = (Dirichlet(u, 500, on=domain.right), Neumann(u, 0, on=domain.left | domain.top))
    conditions = (Dirichlet(u, 0, on=cold), Neumann(u, 0, on=free), *rest)
    return Problem(LAPLACE, domain, conditions, exact=data("motz", _motz, x, y))


def _to_the_left(X: FloatArray) -> BoolArray:
    return np.asarray(X[:, 0] < 0)


def _to_the_right(X: FloatArray) -> BoolArray:
    return np.asarray(X[:, 0] >= 0)


def _motz(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Sum dₖ r^(k + ½) cos((k + ½) θ)."""
    Z = X + 1j * Y
    return np.asarray((np.sqrt(Z) * np.polyval(VALUES["motz"]["coefficients"][::-1], Z)).real)


def hot_lid() -> Problem:
    """Return Δu = 0 on the unit square, 100 on top and zero elsewhere: the values jump in two corners."""
    images = ((k, sign) for k in range(6) for sign in (1, -1))
    terms = (s * sp.atan2(sp.sin(sp.pi * x), sp.sinh(sp.pi * (2 * k + 1 - s * y))) for k, s in images)
    conditions = (Dirichlet(u, 100, on=SQUARE.top), Dirichlet(u, 0, on=SQUARE.left | SQUARE.right | SQUARE.bottom))
    return Problem(LAPLACE, SQUARE, conditions, exact=200 / sp.pi * sp.Add(*terms))


def torsion_square() -> Problem:
    """Return −Δu = 2 on the unit square, zero on the boundary: the torsion of a square bar."""
    return Problem(sp.Eq(-laplacian(u), 2), SQUARE, (Dirichlet(u, 0),), exact=data("torsion", _torsion, x, y))


def _torsion(X: FloatArray, Y: FloatArray) -> FloatArray:
    n = np.pi * np.arange(1, 400, 2)[:, None]
    decay = (np.exp(n * (Y - 1)) + np.exp(-n * Y)) / (1 + np.exp(-n))
    return np.asarray(X * (1 - X) - (8 * np.sin(n * X) * decay / n**3).sum(axis=0))


def supported_plate() -> Problem:
    """Return ΔΔu = 1 on the unit square, u = Δu = 0 on the boundary: a simply supported plate."""
    conditions = (Dirichlet(u, 0), Dirichlet(u.diff(x, 2) + u.diff(y, 2), 0))
    return Problem(sp.Eq(laplacian(laplacian(u)), 1), SQUARE, conditions, exact=data("plate", _plate, x, y))


def _plate(X: FloatArray, Y: FloatArray) -> FloatArray:
    m = np.pi * np.arange(1, 80, 2)
    weights = 16 / (m[:, None] * m * (m[:, None] ** 2 + m**2) ** 2)
    return np.asarray(np.einsum("ip,ij,jp->p", np.sin(np.outer(m, X)), weights, np.sin(np.outer(m, Y))))


def hot_spot() -> Problem:
    """Return −Δu = e^(−(100 r)²) on the unit square, r the distance from (0.62, 0.37), zero on the boundary."""
    distance = (x - sp.Rational(62, 100)) ** 2 + (y - sp.Rational(37, 100)) ** 2
    exact = data("hot_spot", _hot_spot, x, y)
    return Problem(sp.Eq(-laplacian(u), sp.exp(-(10**4) * distance)), SQUARE, (Dirichlet(u, 0),), exact=exact)


def _hot_spot(X: FloatArray, Y: FloatArray, width: float = 0.01) -> FloatArray:
    """Outside the spot the Green's function of the square, as a sum over rows of images; E₁ smooths it."""
    a, b = 0.62, 0.37
    # In the middle both parts are infinite; their sum is not, and hardly changes within so small a distance.
    X = np.where(np.hypot(X - a, Y - b) < 1e-6 * width, a + 1e-6 * width, X)
    green = np.zeros(np.broadcast(X, Y).shape)
    for k in range(-5, 6):
        for sign in (1, -1):
            high = np.sinh(np.pi / 2 * (Y - sign * b + 2 * k)) ** 2
            far, near = (high + np.sin(np.pi / 2 * (X - own)) ** 2 for own in (-a, a))
            green += sign * np.log(far / near) / (4 * np.pi)
    rest = exp1(((X - a) ** 2 + (Y - b) ** 2) / width**2)
    return np.asarray(np.pi * width**2 * green - width**2 / 4 * rest)


def loaded_spot() -> Problem:
    """Return −Δu = 1 + 10⁵ e^(−(1000 r)²) on the unit square, zero on the boundary: a spot beside an even load."""
    distance = (x - sp.Rational(62, 100)) ** 2 + (y - sp.Rational(37, 100)) ** 2
    source = 1 + 10**5 * sp.exp(-(10**6) * distance)
    exact = data("loaded_spot", _loaded_spot, x, y)
    return Problem(sp.Eq(-laplacian(u), source), SQUARE, (Dirichlet(u, 0),), exact=exact)


def _loaded_spot(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(_torsion(X, Y) / 2 + 10**5 * _hot_spot(X, Y, 0.001))


def pulse_entering() -> Problem:
    """Return u_t + u_x = 0 on (0, 1)², zero at first: a pulse of width 1/100 enters from the left."""
    c = field("c", x, t)
    pulse = sp.exp(-((100 * (t - x - sp.Rational(3, 10))) ** 2))
    conditions = (Dirichlet(c, pulse.subs(x, 0), on=UNIT.left), Initial(c, 0))
    return Problem(sp.Eq(c.diff(t) + c.diff(x), 0), UNIT * TimeInterval(t, 0, 1), conditions, exact=pulse)


def heat_shock() -> Problem:
    """Return u_t = u_xx on (0, 1) × (0, 1/10), one at first and zero at both ends from then on: quenching."""
    c = field("c", x, t)
    exact = sp.Add(*((-1) ** k * sp.erf((x - k) / (2 * sp.sqrt(t))) for k in range(-6, 7)))
    domain = UNIT * TimeInterval(t, 0, sp.Rational(1, 10))
    return Problem(sp.Eq(c.diff(t), c.diff(x, 2)), domain, (Dirichlet(c, 0), Initial(c, 1)), exact=exact)


def black_scholes() -> Problem:
    """Return the price of a call option, strike 100, rate 5 %, volatility 20 %, for prices to 300 and up to a year."""
    price = field("V", x, t)
    rate, volatility = sp.Rational(1, 20), sp.Rational(1, 5)
    drift = rate * x * price.diff(x) - rate * price
    equation = sp.Eq(price.diff(t), volatility**2 * x**2 * price.diff(x, 2) / 2 + drift)
    domain = Interval((x, 0, 300))
    conditions = (
        Dirichlet(price, 0, on=domain.left),
        Dirichlet(price, 300 - 100 * sp.exp(-rate * t), on=domain.right),
        Initial(price, sp.Piecewise((0, x < 100), (x - 100, True))),
    )
    return Problem(equation, domain * TimeInterval(t, 0, 1), conditions, exact=data("call", _call, x, t))


def _call(S: FloatArray, T: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = 0.2 * np.sqrt(T)
        first = (np.log(S / 100) + 0.07 * T) / spread
        value = S * ndtr(first) - 100 * np.exp(-0.05 * T) * ndtr(first - spread)
    return np.where(T > 0, value, np.maximum(S - 100, 0.0))


def kirsch() -> Problem:
    """Return a quarter of a sheet under tension with a round hole: symmetry left and below, exact tractions outside."""
    nu = sp.Rational(3, 10)
    forces, tractions = plane_stress(u, v, nu)
    r2, kappa = x**2 + y**2, (3 - nu) / (1 + nu)
    cos3, sin3 = (x**3 - 3 * x * y**2) / r2, (3 * x**2 * y - y**3) / r2  # times r
    scale = (1 + nu) / 4
    exact = {
        u: scale * (x * (kappa + 1) + 2 * ((1 + kappa) * x + cos3) / r2 - 2 * cos3 / r2**2),
        v: scale * (y * (kappa - 3) + 2 * ((1 - kappa) * y + sin3) / r2 - 2 * sin3 / r2**2),
    }
    sheet, hole = Rectangle((x, 0, 4), (y, 0, 4)), Disk((x, y), (0, 0), 1)
    domain = sheet - hole
    outside = sheet.right | sheet.top
    conditions = (
        *(Condition(sp.Eq(traction, 0), on=hole.boundary) for traction in tractions),
        *(Condition(manufactured(traction, exact, domain), on=outside) for traction in tractions),
        Dirichlet(u, 0, on=sheet.left),
        Condition(sp.Eq(u.diff(y) + v.diff(x), 0), on=sheet.left),
        Dirichlet(v, 0, on=sheet.bottom),
        Condition(sp.Eq(u.diff(y) + v.diff(x), 0), on=sheet.bottom),
    )
    equations = tuple(sp.Eq(force, 0) for force in forces)
    return Problem(equations, domain, conditions, exact={"u": exact[u], "v": exact[v]})


def neumann_dumbbell() -> Problem:
    """Return Δu = 0 with the flux given on a bar with two round ends, mean zero: u = sin x cosh y."""
    bar = Rectangle((x, -1, 1), (y, -sp.Rational(1, 5), sp.Rational(1, 5)))
    domain = bar | Disk((x, y), (-1, 0), HALF) | Disk((x, y), (1, 0), HALF)
    exact = sp.sin(x) * sp.cosh(y)
    flux = applied(normal_derivative(u), {u: exact}, domain)
    return Problem(LAPLACE, domain, (Neumann(u, flux), Mean(u, 0)), exact=exact)


def neumann_cavity() -> Problem:
    """Return Δu = 0 with the flux given on a cube with a round hole inside, mean zero: u = sin x cosh y + x y z."""
    a = field("a", x, y, z)
    domain = Box((x, -1, 1), (y, -1, 1), (z, -1, 1)) - Ball((x, y, z), (0, 0, 0), HALF)
    exact = sp.sin(x) * sp.cosh(y) + x * y * z
    flux = applied(normal_derivative(a), {a: exact}, domain)
    return Problem(sp.Eq(laplacian(a), 0), domain, (Neumann(a, flux), Mean(a, 0)), exact=exact)


def _held(domain: Any, exact: sp.Expr, equation: Any = LAPLACE) -> Callable[[], Problem]:
    """Return a function that builds a problem in the plane with the exact solution on the boundary."""
    return lambda: Problem(equation, domain, (Dirichlet(u, exact),), exact=exact)


def _corners() -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Yield corners and holes."""
    angle = sp.atan2(x + y, y - x)  # in the L-shape, from the middle of its corner
    exact = (x**2 + y**2) ** sp.Rational(1, 6) * sp.cos(angle / 3 + sp.pi / 4)  # no flux through one edge, zero on one
    rest = L_SHAPE.edge0 | L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    mixed = (Dirichlet(u, exact, on=rest), Neumann(u, 0, on=L_SHAPE.edge5))
    yield "l_mixed", partial(Problem, LAPLACE, L_SHAPE, mixed, exact=exact)
    stretched = sp.cbrt(x**2 + y**2) * sp.cos(2 * angle / 3)
    equation = sp.Eq(u.diff(x, 2) + u.diff(y, 2) / 100, 0)
    yield "anisotropic_corner", _held(L_SHAPE, stretched.subs(y, 10 * y), equation)
    width = sp.Rational(1, 50)  # of a notch from the right side to the centre
    power = sp.pi / (2 * sp.pi - 2 * sp.atan(width))
    notched = Polygon((x, y), [(0, 0), (1, width), (1, 1), (-1, 1), (-1, -1), (1, -1), (1, -width)])
    yield "crack", _held(notched, (x**2 + y**2) ** (power / 2) * sp.cos(power * sp.atan2(y, -x)))
    r2, radius = x**2 + y**2, sp.Rational(1, 20)
    yield "small_hole", _held(Disk((x, y), (0, 0), 1) - Disk((x, y), (0, 0), radius), sp.log(r2) / (2 * sp.log(radius)))
    a, b, radius = sp.Rational(37, 100), sp.Rational(59, 100), sp.Rational(1, 1000)
    exact = sp.log((x - a) ** 2 + (y - b) ** 2) / (2 * sp.log(radius))
    yield "tiny_hole", _held(SQUARE - Disk((x, y), (a, b), radius), exact)
    shaft = Disk((x, y), (1, 0), 1) - Disk((x, y), (0, 0), sp.Rational(1, 10))  # with a round groove (Weber 1921)
    exact = (sp.Rational(1, 100) - r2) * (1 - 2 * x / r2) / 2
    conditions = (Dirichlet(u, 0),)
    yield "torsion_groove", partial(Problem, sp.Eq(-laplacian(u), 2), shaft, conditions, exact=exact)
    shape, gap = sp.sin(sp.pi * x) * sp.sin(sp.pi * y), 2 * sp.pi**2 / 1000
    equation = sp.Eq(laplacian(u) + (2 * sp.pi**2 + gap) * u, shape)
    yield "drum_near_resonance", partial(Problem, equation, SQUARE, conditions, exact=shape / gap)
    left = x + sp.Rational(1, 10)
    yield "pole_outside", _held(SQUARE, left / (left**2 + (y - HALF) ** 2))
    a, b = sp.Rational(3, 10), sp.Rational(301, 1000)  # one between these on the lower side
    exact = (sp.atan2(x - a, y) - sp.atan2(x - b, y)) / sp.pi
    patch = Dirichlet(u, sp.Piecewise((1, (x > a) & (x < b)), (0, True)), on=SQUARE.bottom)
    others = Dirichlet(u, exact, on=SQUARE.left | SQUARE.right | SQUARE.top)
    yield "hot_patch", partial(Problem, LAPLACE, SQUARE, (patch, others), exact=exact)


def _diffusion(k: sp.Expr, source: Any) -> sp.Eq:
    return sp.Eq((k * u.diff(x)).diff(x) + (k * u.diff(y)).diff(y), source)


def _plates() -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Yield ∇·(k ∇u) = f with k = 1 and 10 on the two sides of a line, of a circle, and by turns in four quadrants."""
    for name, level in (("two_plates", x - HALF), ("slanted_plates", x + 2 * y - sp.Rational(13, 10))):
        k = sp.Piecewise((1, level < 0), (10, True))
        flow = level * sp.cos(2 * y)  # zero on the line, so that u = flow / k is continuous
        exact = sp.Piecewise((flow, level < 0), (flow / 10, True))
        yield name, _held(SQUARE, exact, _diffusion(k, flow.diff(x, 2) + flow.diff(y, 2)))
    domain, r2, a2 = Rectangle((x, -1, 1), (y, -1, 1)), x**2 + y**2, sp.Rational(9, 100)
    k = sp.Piecewise((10, r2 < a2), (1, True))
    exact = sp.Piecewise((2 * x / 11, r2 < a2), (x * (1 - 9 * a2 / (11 * r2)), True))
    yield "inclusion", _held(domain, exact, _diffusion(k, 0))
    power = float(4 / np.pi * np.arctan(np.sqrt(0.1)))  # u is like r^0.39 (Kellogg 1974)
    a, b = float(np.sin(power * np.pi / 4)), float(np.cos(power * np.pi / 4))
    even = a * sp.sign(x + y) * sp.cos(power * sp.atan2((y - x) * sp.sign(x + y), sp.Abs(x + y)))
    odd = b * sp.sin(power * sp.atan2(x + y, sp.Abs(x - y)))
    k = sp.Piecewise((10, x * y > 0), (1, True))
    exact = r2 ** (power / 2) * sp.Piecewise((even, x * y > 0), (odd, True))
    yield "four_quadrants", _held(domain, exact, _diffusion(k, 0))


def _on_line(equations: Any, exact: Any, *conditions: Any, domain: Any = UNIT) -> Problem:
    """Return a problem on a line; without conditions, w is given at the ends."""
    return Problem(equations, domain, conditions or (Dirichlet(w, exact),), exact=exact)


def _bell(width: sp.Rational, at: sp.Rational) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return a narrow bell of area one, its integral, odd around its place, and the integral of that."""
    near = (x - at) / width
    bell = sp.exp(-(near**2)) / sp.sqrt(sp.pi)
    return bell / width, sp.erf(near) / 2, (x - at) * sp.erf(near) / 2 + width * bell / 2


def _layered() -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Yield rods whose material changes, and narrow sources on a line."""
    k = sp.Piecewise((1, x < HALF), (10, True))  # u(½) = 10/11
    exact = sp.Piecewise((20 * x, x < HALF), (9 + 2 * x, True)) / 11
    yield "two_materials", partial(_on_line, sp.Eq((k * w.diff(x)).diff(x), 0), exact, Dirichlet(w, x))
    a, b = sp.Rational(2, 5), sp.Rational(401, 1000)  # where half of the drop of u is
    k = sp.Piecewise((1, x < a), (sp.Rational(1, 1000), x < b), (1, True))
    drop = sp.Piecewise((x, x < a), (a + 1000 * (x - a), x < b), (x + 1 - (b - a), True))
    yield "contact_layer", partial(_on_line, sp.Eq((k * w.diff(x)).diff(x), 0), 1 - drop / (2 - (b - a)))
    bell, step, kink = _bell(sp.Rational(1, 1000), sp.Rational(3137, 10000))
    exact = (x + step - step.subs(x, 0)) / 2  # a layer that resists as much as the rest, without a jump
    yield "resistive_layer", partial(_on_line, sp.Eq((w.diff(x) / (1 + bell)).diff(x), 0), exact)
    exact = 2 * kink + sp.Rational(1, 20)
    yield "thin_absorber", partial(_on_line, sp.Eq(w.diff(x, 2), 2 * bell / exact * w), exact)
    line = (1 - x) * kink.subs(x, 0) + x * kink.subs(x, 1)
    yield "point_load", partial(_on_line, sp.Eq(-w.diff(x, 2), bell), line - kink, Dirichlet(w, 0))
    a, c = sp.Integer(2000), sp.Rational(1, 3)
    ramp = sp.erf(a * (x - c) - 1 / (2 * a)) + sp.erf(a * c + 1 / (2 * a))
    exact = sp.sqrt(sp.pi) / (2 * a) * sp.exp(c - x + 1 / (4 * a**2)) * ramp
    source = sp.exp(-((a * (x - c)) ** 2))
    yield "narrow_source", partial(_on_line, sp.Eq(w.diff(x) + w, source), exact, Dirichlet(w, 0, on=UNIT.left))


def _lines() -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Yield problems on a line whose end is singular, or whose scales are far apart."""
    left, right = UNIT.left, UNIT.right
    start = Dirichlet(w, 0, on=left)
    yield "root_slope", partial(_on_line, sp.Eq(w.diff(x), 1 / (2 * sp.sqrt(x))), sp.sqrt(x), start)
    source = sp.Rational(6, 25) * x ** -sp.Rational(4, 5)
    yield "singular_end", partial(_on_line, sp.Eq(w.diff(x, 2), source), x ** sp.Rational(6, 5))
    yield "degenerate_end", partial(_on_line, sp.Eq(x * w.diff(x, 2), 1), x * sp.log(x), Dirichlet(w, 0))
    both = Interval((x, -1, 1))
    yield "kinked_load", partial(_on_line, sp.Eq(w.diff(x, 2), 6 * sp.Abs(x)), sp.Abs(x) ** 3, domain=both)
    axis = (Dirichlet(w, 0, on=right), Neumann(w, 0, on=left))
    yield "pipe_flow", partial(_on_line, sp.Eq(w.diff(x, 2) + w.diff(x) / x, -4), 1 - x**2, *axis)
    far = Interval((x, 10**4, 10**4 + 1))
    exact = sp.sinh(50 * (10**4 + 1 - x)) / sp.sinh(50)
    yield "far_away", partial(_on_line, sp.Eq(w.diff(x, 2), 2500 * w), exact, domain=far)
    k = sp.Rational(314, 100)  # 600 times as large inside as at the ends
    yield "near_resonance", partial(_on_line, sp.Eq(w.diff(x, 2) + k**2 * w, 0), sp.sin(k * x) / sp.sin(k))
    leak = sp.Rational(1, 10**6)  # a small metal part in air
    exact = 1 / (2 * leak) + x * (1 - x) / 2
    yield "nearly_insulated", partial(_on_line, sp.Eq(-w.diff(x, 2), 1), exact, Robin(w, leak, 1, 0))
    heat = field("T", x)  # a rod held at both ends: the displacement w is 10⁻⁶ of the temperature
    free = 20 * (sp.cosh(5) - sp.cosh(5 * (1 - x))) / sp.sinh(5)
    exact = {"T": 100 * sp.sinh(5 * (1 - x)) / sp.sinh(5), "w": (free - x * free.subs(x, 1)) / 10**5}
    ends = (Dirichlet(heat, 100 * (1 - x)), Dirichlet(w, 0))
    equations = (sp.Eq(heat.diff(x, 2), 25 * heat), sp.Eq(w.diff(x, 2), heat.diff(x) / 10**5))
    yield "thermal_strain", partial(_on_line, equations, exact, *ends)


def _courses() -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Yield problems in time alone: a short pulse, beats, two time scales, growth."""
    c, a, b = (field(name, t) for name in "cab")
    start, stop = sp.Integer(2), sp.Rational(2001, 1000)
    pulse = sp.Piecewise((1000, (t >= start) & (t < stop)), (0, True))
    during, after = (2000 * (1 - sp.exp(-(time - start) / 2)) for time in (t, stop))
    exact = sp.Piecewise((0, t < start), (during, t < stop), (after * sp.exp(-(t - stop) / 2), True))
    equation, rest = sp.Eq(c.diff(t), -c / 2 + pulse), Initial(c, 0)
    yield "dose", partial(_on_line, equation, exact, rest, domain=TimeInterval(t, 0, 10))
    drive = sp.Rational(19, 20)
    exact = (sp.cos(drive * t) - sp.cos(t)) / (1 - drive**2)
    equation, still = sp.Eq(c.diff(t, 2) + c, sp.cos(drive * t)), Initial(c.diff(t), 0)
    yield "beats", partial(_on_line, equation, exact, rest, still, domain=TimeInterval(t, 0, 200))
    fast = sp.Integer(10**4)
    exact = {"a": sp.exp(-fast * t), "b": fast / (fast - 1) * (sp.exp(-t) - sp.exp(-fast * t))}
    equations = (sp.Eq(a.diff(t), -fast * a), sp.Eq(b.diff(t), fast * a - b))
    starts = (Initial(a, 1), Initial(b, 0))
    yield "stiff_decay", partial(_on_line, equations, exact, *starts, domain=TimeInterval(t, 0, 5))
    growth = partial(_on_line, sp.Eq(c.diff(t), c), sp.exp(t), Initial(c, 1), domain=TimeInterval(t, 0, 30))
    yield "growth", growth


@cache
def with_exact_solution() -> Mapping[str, Callable[[], Problem]]:
    """Return the problems of this file by name; their formulas are made when they are first asked for."""
    own = {name: make for name, make in globals().items() if isfunction(make) and make.__module__ == __name__}
    public = {name: make for name, make in own.items() if not name.startswith("_") and name != "with_exact_solution"}
    rest = (_corners, _plates, _layered, _lines, _courses)
    return {**public, **dict(chain(*(each() for each in rest))), "rubber_block": partial(elasticity, 0.4999)}
