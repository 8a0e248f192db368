"""Everyday problems with a known solution: corners, jumps, small holes, narrow sources, thin layers, poor scaling.

Hardly any is smooth, and none needs more than a sentence to be written down; that is what textbooks and engineers ask
for. Those whose solution is known at points only are in :mod:`pibls.problems.everyday_values`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from scipy.special import exp1, ndtr

from pibls.checks import FloatArray
from pibls.geometry import Ball, Box, Disk, Interval, Polygon, Rectangle, TimeInterval
from pibls.problem import (
    Condition,
    Dirichlet,
    Field,
    Initial,
    Mean,
    Neumann,
    Problem,
    coordinates,
    data,
    field,
    laplacian,
    normal_derivative,
)
from pibls.problems.manufactured import applied, dirichlet_problem, manufactured, plane_stress
from pibls.problems.systems import elasticity

__all__ = ["EXACT"]

x, y, z, t = coordinates("x y z t")
u, v = field("u", x, y), field("v", x, y)  # in the plane
w = field("w", x)  # on a line
SQUARE = Rectangle((x, 0, 1), (y, 0, 1))
L_SHAPE = Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1)])
UNIT = Interval((x, 0, 1))
HALF = sp.Rational(1, 2)
VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("everyday_values.json").read_text(encoding="utf-8"))


def _flux_divergence(k: sp.Expr, of: Field) -> sp.Expr:
    """Return ∇·(k ∇u) in the plane."""
    return (k * of.diff(x)).diff(x) + (k * of.diff(y)).diff(y)


def motz() -> Problem:
    """Return Motz's problem: Δu = 0 with u = 0 to the left of the origin, insulated to its right, 500 on the right."""
    domain = Rectangle((x, -1, 1), (y, 0, 1))
    cold, free = domain.bottom.where(lambda X: X[:, 0] < 0), domain.bottom.where(lambda X: X[:, 0] >= 0)
    rest = (Dirichlet(u, 500, on=domain.right), Neumann(u, 0, on=domain.left | domain.top))
    conditions = (Dirichlet(u, 0, on=cold), Neumann(u, 0, on=free), *rest)
    return Problem(sp.Eq(laplacian(u), 0), domain, conditions, exact=data("motz", _motz, x, y))


def _motz(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Sum dₖ r^(k + ½) cos((k + ½) θ)."""
    Z = X + 1j * Y
    return np.asarray((np.sqrt(Z) * np.polyval(VALUES["motz"]["coefficients"][::-1], Z)).real)


def hot_lid() -> Problem:
    """Return Δu = 0 on the unit square, 100 on top and zero elsewhere: the values jump in two corners."""
    terms = [
        sign * sp.atan2(sp.sin(sp.pi * x), sp.sinh(sp.pi * (2 * k + 1 - sign * y)))
        for k in range(6)
        for sign in (1, -1)
    ]
    conditions = (Dirichlet(u, 100, on=SQUARE.top), Dirichlet(u, 0, on=SQUARE.left | SQUARE.right | SQUARE.bottom))
    return Problem(sp.Eq(laplacian(u), 0), SQUARE, conditions, exact=200 / sp.pi * sp.Add(*terms))


def l_mixed() -> Problem:
    """Return Δu = 0 on the L-shape, u = 0 on one edge of the corner and no flux through the other: r^⅓ cos(θ/3)."""
    theta = sp.atan2(x + y, y - x) + 3 * sp.pi / 4  # from the lower edge of the corner
    exact = (x**2 + y**2) ** sp.Rational(1, 6) * sp.cos(theta / 3)
    rest = L_SHAPE.edge0 | L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    conditions = (Dirichlet(u, exact, on=rest), Neumann(u, 0, on=L_SHAPE.edge5))
    return Problem(sp.Eq(laplacian(u), 0), L_SHAPE, conditions, exact=exact)


def crack() -> Problem:
    """Return Δu = 0 on a square with a narrow notch from its right side to the centre, zero on the notch: about r^½."""
    width = sp.Rational(1, 50)
    power = sp.pi / (2 * sp.pi - 2 * sp.atan(width))
    corners = [(0, 0), (1, width), (1, 1), (-1, 1), (-1, -1), (1, -1), (1, -width)]
    exact = (x**2 + y**2) ** (power / 2) * sp.cos(power * sp.atan2(y, -x))
    return Problem(sp.Eq(laplacian(u), 0), Polygon((x, y), corners), (Dirichlet(u, exact),), exact=exact)


def anisotropic_corner() -> Problem:
    """Return u_xx + u_yy/100 = 0 on the L-shape: the corner singularity r^⅔ sin(2θ/3), stretched tenfold."""
    tall = 10 * y
    exact = sp.cbrt(x**2 + tall**2) * sp.cos(sp.Rational(2, 3) * sp.atan2(x + tall, tall - x))
    return Problem(sp.Eq(u.diff(x, 2) + u.diff(y, 2) / 100, 0), L_SHAPE, (Dirichlet(u, exact),), exact=exact)


def torsion_square() -> Problem:
    """Return −Δu = 2 on the unit square, zero on the boundary: the torsion of a square bar."""
    return Problem(sp.Eq(-laplacian(u), 2), SQUARE, (Dirichlet(u, 0),), exact=data("torsion", _torsion, x, y))


def _torsion(X: FloatArray, Y: FloatArray) -> FloatArray:
    n = np.pi * np.arange(1, 400, 2)[:, None]
    decay = (np.exp(n * (Y - 1)) + np.exp(-n * Y)) / (1 + np.exp(-n))
    return np.asarray(X * (1 - X) - (8 * np.sin(n * X) * decay / n**3).sum(axis=0))


def torsion_groove() -> Problem:
    """Return −Δu = 2 on a shaft of radius 1 with a round groove of radius 1/10, zero on the boundary (Weber 1921)."""
    r2, b2 = x**2 + y**2, sp.Rational(1, 100)
    shaft = Disk((x, y), (1, 0), 1) - Disk((x, y), (0, 0), sp.Rational(1, 10))
    return Problem(sp.Eq(-laplacian(u), 2), shaft, (Dirichlet(u, 0),), exact=(b2 - r2) * (1 - 2 * x / r2) / 2)


def small_hole() -> Problem:
    """Return Δu = 0 between circles of radius 1/20 and 1, zero outside and one inside."""
    domain = Disk((x, y), (0, 0), 1) - Disk((x, y), (0, 0), sp.Rational(1, 20))
    exact = sp.log(x**2 + y**2) / (2 * sp.log(sp.Rational(1, 20)))
    return Problem(sp.Eq(laplacian(u), 0), domain, (Dirichlet(u, exact),), exact=exact)


def two_materials() -> Problem:
    """Return (k u')' = 0 with k = 1 and 10 in the two halves of a rod: u(½) = 10/11."""
    k = sp.Piecewise((1, x < HALF), (10, True))
    exact = sp.Piecewise((20 * x, x < HALF), (9 + 2 * x, True)) / 11
    return Problem(sp.Eq((k * w.diff(x)).diff(x), 0), UNIT, (Dirichlet(w, x),), exact=exact)


def contact_layer() -> Problem:
    """Return (k u')' = 0 on a rod with a layer of thickness 1/1000 and k = 1/1000: half of the drop of u is there."""
    a, b = sp.Rational(2, 5), sp.Rational(401, 1000)
    k = sp.Piecewise((1, x < a), (sp.Rational(1, 1000), x < b), (1, True))
    drop = sp.Piecewise((x, x < a), (a + 1000 * (x - a), x < b), (x + 1 - (b - a), True))
    conditions = (Dirichlet(w, 1, on=UNIT.left), Dirichlet(w, 0, on=UNIT.right))
    return Problem(sp.Eq((k * w.diff(x)).diff(x), 0), UNIT, conditions, exact=1 - drop / (2 - (b - a)))


def two_plates() -> Problem:
    """Return ∇·(k ∇u) = f on the square, k = 1 left and 10 right of the middle."""
    return _across(x - HALF)


def slanted_plates() -> Problem:
    """Return ∇·(k ∇u) = f on the square, k = 1 below and 10 above a slanted line."""
    return _across(x + 2 * y - sp.Rational(13, 10))


def _across(level: sp.Expr) -> Problem:
    k = sp.Piecewise((1, level < 0), (10, True))
    potential = level * sp.cos(2 * y)  # zero on the interface, so that u = potential / k is continuous there
    exact = sp.Piecewise((potential, level < 0), (potential / 10, True))
    source = potential.diff(x, 2) + potential.diff(y, 2)
    return Problem(sp.Eq(_flux_divergence(k, u), source), SQUARE, (Dirichlet(u, exact),), exact=exact)


def inclusion() -> Problem:
    """Return ∇·(k ∇u) = 0 on (−1, 1)² with k = 10 in a round inclusion of radius 3/10, in a uniform field."""
    domain, r2, a2 = Rectangle((x, -1, 1), (y, -1, 1)), x**2 + y**2, sp.Rational(9, 100)
    k = sp.Piecewise((10, r2 < a2), (1, True))
    exact = sp.Piecewise((2 * x / 11, r2 < a2), (x * (1 - 9 * a2 / (11 * r2)), True))
    return Problem(sp.Eq(_flux_divergence(k, u), 0), domain, (Dirichlet(u, exact),), exact=exact)


def four_quadrants() -> Problem:
    """Return ∇·(k ∇u) = 0 on (−1, 1)², k = 10 and 1 by turns in the four quadrants: r^0.39 (Kellogg 1974)."""
    power = float(4 / np.pi * np.arctan(np.sqrt(0.1)))
    a, b = float(np.sin(power * np.pi / 4)), float(np.cos(power * np.pi / 4))
    even = a * sp.sign(x + y) * sp.cos(power * sp.atan2((y - x) * sp.sign(x + y), sp.Abs(x + y)))
    odd = b * sp.sin(power * sp.atan2(x + y, sp.Abs(x - y)))
    exact = (x**2 + y**2) ** (power / 2) * sp.Piecewise((even, x * y > 0), (odd, True))
    k = sp.Piecewise((10, x * y > 0), (1, True))
    domain = Rectangle((x, -1, 1), (y, -1, 1))
    return Problem(sp.Eq(_flux_divergence(k, u), 0), domain, (Dirichlet(u, exact),), exact=exact)


def narrow_source() -> Problem:
    """Return u' + u = e^(−(2000 (x − 1/3))²), u(0) = 0: a source that hardly any point sees."""
    a, c = sp.Integer(2000), sp.Rational(1, 3)
    shift = 1 / (2 * a**2)
    step = sp.erf(a * (x - c - shift)) + sp.erf(a * (c + shift))
    exact = sp.sqrt(sp.pi) / (2 * a) * sp.exp(c - x + shift / 2) * step
    source = sp.exp(-((a * (x - c)) ** 2))
    return Problem(sp.Eq(w.diff(x) + w, source), UNIT, (Dirichlet(w, 0, on=UNIT.left),), exact=exact)


def point_load() -> Problem:
    """Return −u'' = a load of width 1/1000 at x = 0.3, held at both ends: a string with a weight."""
    a, c = sp.Integer(1000), sp.Rational(3, 10)
    load = a * sp.exp(-((a * (x - c)) ** 2)) / sp.sqrt(sp.pi)
    kink = (x - c) * sp.erf(a * (x - c)) / 2 + sp.exp(-((a * (x - c)) ** 2)) / (2 * a * sp.sqrt(sp.pi))
    exact = (1 - x) * c / 2 + x * (1 - c) / 2 - kink
    return Problem(sp.Eq(-w.diff(x, 2), load), UNIT, (Dirichlet(w, 0),), exact=exact)


def hot_spot() -> Problem:
    """Return −Δu = e^(−(100 r)²) on the unit square, r the distance from (0.62, 0.37), zero on the boundary."""
    distance = (x - sp.Rational(62, 100)) ** 2 + (y - sp.Rational(37, 100)) ** 2
    exact = data("hot_spot", _hot_spot, x, y)
    return Problem(sp.Eq(-laplacian(u), sp.exp(-(10**4) * distance)), SQUARE, (Dirichlet(u, 0),), exact=exact)


def _hot_spot(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Outside the spot the Green's function of the square, as a sum over rows of images; E₁ smooths it."""
    a, b, width = 0.62, 0.37, 0.01
    green = np.zeros(np.broadcast(X, Y).shape)
    for k in range(-5, 6):
        for sign in (1, -1):
            high = np.cosh(np.pi * (Y - sign * b + 2 * k))
            ratio = (high - np.cos(np.pi * (X + a))) / np.maximum(high - np.cos(np.pi * (X - a)), 1e-300)
            green += sign * np.log(ratio) / (4 * np.pi)
    rest = exp1(np.maximum(((X - a) ** 2 + (Y - b) ** 2) / width**2, 1e-300))
    return np.asarray(np.pi * width**2 * green - width**2 / 4 * rest)


def dose() -> Problem:
    """Return u' = −u/2 + a pulse of height 1000 from t = 2 to 2.001, u(0) = 0, until t = 10: an injection."""
    c = field("c", t)
    start, stop = sp.Integer(2), sp.Rational(2001, 1000)
    pulse = sp.Piecewise((1000, (t >= start) & (t < stop)), (0, True))
    during = 2000 * (1 - sp.exp(-(t - start) / 2))
    after = 2000 * (1 - sp.exp(-(stop - start) / 2)) * sp.exp(-(t - stop) / 2)
    exact = sp.Piecewise((0, t < start), (during, t < stop), (after, True))
    return Problem(sp.Eq(c.diff(t), -c / 2 + pulse), TimeInterval(t, 0, 10), (Initial(c, 0),), exact=exact)


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


def near_resonance() -> Problem:
    """Return u'' + k²u = 0 with k = 3.14, u(0) = 0 and u(1) = 1: 600 times as large inside as at the ends."""
    k = sp.Rational(314, 100)
    exact = sp.sin(k * x) / sp.sin(k)
    conditions = (Dirichlet(w, 0, on=UNIT.left), Dirichlet(w, 1, on=UNIT.right))
    return Problem(sp.Eq(w.diff(x, 2) + k**2 * w, 0), UNIT, conditions, exact=exact)


def drum_near_resonance() -> Problem:
    """Return Δu + k²u = sin πx sin πy on the unit square, zero on the boundary, k² a thousandth above 2π²."""
    shape, gap = sp.sin(sp.pi * x) * sp.sin(sp.pi * y), 2 * sp.pi**2 / 1000
    equation = sp.Eq(laplacian(u) + (2 * sp.pi**2 + gap) * u, shape)
    return Problem(equation, SQUARE, (Dirichlet(u, 0),), exact=shape / gap)


def beats() -> Problem:
    """Return u'' + u = cos 0.95 t from rest until t = 200: an oscillator driven next to its frequency."""
    c, drive = field("c", t), sp.Rational(19, 20)
    exact = (sp.cos(drive * t) - sp.cos(t)) / (1 - drive**2)
    conditions = (Initial(c, 0), Initial(c.diff(t), 0))
    return Problem(sp.Eq(c.diff(t, 2) + c, sp.cos(drive * t)), TimeInterval(t, 0, 200), conditions, exact=exact)


def stiff_decay() -> Problem:
    """Return A → B → C with rates 10⁴ and 1 until t = 5, from A = 1: B rises within 10⁻⁴ and decays within 1."""
    a, b = field("a", t), field("b", t)
    fast = sp.Integer(10**4)
    exact = {"a": sp.exp(-fast * t), "b": fast / (fast - 1) * (sp.exp(-t) - sp.exp(-fast * t))}
    equations = (sp.Eq(a.diff(t), -fast * a), sp.Eq(b.diff(t), fast * a - b))
    return Problem(equations, TimeInterval(t, 0, 5), (Initial(a, 1), Initial(b, 0)), exact=exact)


def rubber_block() -> Problem:
    """Return :func:`~pibls.problems.elasticity` with Poisson's ratio 0.4999: nearly incompressible."""
    return elasticity(0.4999)


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


def root_slope() -> Problem:
    """Return u' = 1/(2 √x), u(0) = 0, on (0, 1): u = √x."""
    equation = sp.Eq(w.diff(x), 1 / (2 * sp.sqrt(x)))
    return Problem(equation, UNIT, (Dirichlet(w, 0, on=UNIT.left),), exact=sp.sqrt(x))


def singular_end() -> Problem:
    """Return u'' = 0.24 x^(−0.8) on (0, 1) with the values of u = x^1.2 at the ends."""
    power = sp.Rational(6, 5)
    source = power * (power - 1) * x ** (power - 2)
    return Problem(sp.Eq(w.diff(x, 2), source), UNIT, (Dirichlet(w, x),), exact=x**power)


def degenerate_end() -> Problem:
    """Return x u'' = 1 on (0, 1), zero at both ends: u = x log x."""
    return Problem(sp.Eq(x * w.diff(x, 2), 1), UNIT, (Dirichlet(w, 0),), exact=x * sp.log(x))


def kinked_load() -> Problem:
    """Return u'' = 6 |x| on (−1, 1), one at both ends: u = |x|³."""
    exact = sp.Abs(x) ** 3
    return Problem(sp.Eq(w.diff(x, 2), 6 * sp.Abs(x)), Interval((x, -1, 1)), (Dirichlet(w, 1),), exact=exact)


def far_away() -> Problem:
    """Return −u'' + 2500 u = 0 on (10⁴, 10⁴ + 1), one on the left: a layer far from the origin."""
    domain = Interval((x, 10**4, 10**4 + 1))
    exact = sp.sinh(50 * (10**4 + 1 - x)) / sp.sinh(50)
    conditions = (Dirichlet(w, 1, on=domain.left), Dirichlet(w, 0, on=domain.right))
    return Problem(sp.Eq(w.diff(x, 2), 2500 * w), domain, conditions, exact=exact)


def pole_outside() -> Problem:
    """Return Δu = 0 on the unit square, u = Re 1/z with the pole 1/10 to the left of it."""
    left = x + sp.Rational(1, 10)
    exact = left / (left**2 + (y - HALF) ** 2)
    return dirichlet_problem(laplacian(u), u, exact, SQUARE)


def neumann_dumbbell() -> Problem:
    """Return Δu = 0 with the flux given on a bar with two round ends, mean zero: u = sin x cosh y."""
    bar = Rectangle((x, -1, 1), (y, -sp.Rational(1, 5), sp.Rational(1, 5)))
    domain = bar | Disk((x, y), (-1, 0), HALF) | Disk((x, y), (1, 0), HALF)
    exact = sp.sin(x) * sp.cosh(y)
    flux = applied(normal_derivative(u), {u: exact}, domain)
    return Problem(sp.Eq(laplacian(u), 0), domain, (Neumann(u, flux), Mean(u, 0)), exact=exact)


def neumann_cavity() -> Problem:
    """Return Δu = 0 with the flux given on a cube with a round hole inside, mean zero: u = sin x cosh y + x y z."""
    a = field("a", x, y, z)
    domain = Box((x, -1, 1), (y, -1, 1), (z, -1, 1)) - Ball((x, y, z), (0, 0, 0), HALF)
    exact = sp.sin(x) * sp.cosh(y) + x * y * z
    flux = applied(normal_derivative(a), {a: exact}, domain)
    return Problem(sp.Eq(laplacian(a), 0), domain, (Neumann(a, flux), Mean(a, 0)), exact=exact)


def thermal_strain() -> Problem:
    """Return T'' = 25 T and u'' = 10⁻⁵ T' on a rod held at both ends, 100 on the left: u is 10⁻⁶ of T."""
    heat = field("T", x)
    temperature = 100 * sp.sinh(5 * (1 - x)) / sp.sinh(5)
    free = 20 * (sp.cosh(5) - sp.cosh(5 * (1 - x))) / sp.sinh(5)
    exact = {"T": temperature, "w": (free - x * free.subs(x, 1)) / 10**5}
    conditions = (Dirichlet(heat, 100, on=UNIT.left), Dirichlet(heat, 0, on=UNIT.right), Dirichlet(w, 0))
    equations = (sp.Eq(heat.diff(x, 2), 25 * heat), sp.Eq(w.diff(x, 2), heat.diff(x) / 10**5))
    return Problem(equations, UNIT, conditions, exact=exact)


_OWN = [(name, make) for name, make in globals().items() if isfunction(make) and make.__module__ == __name__]
EXACT: tuple[Callable[[], Problem], ...] = tuple(make for name, make in _OWN if not name.startswith("_"))
