"""Problems of the same kinds as the everyday ones, other members: only to be measured, never to choose anything by.

Those with a closed form say so by ``exact``; the rest are compared with SciPy's solvers for ordinary differential
equations at tolerances of 1e-10 or less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.integrate import solve_bvp, solve_ivp
from scipy.special import exp1, j0, ndtr

import pibls as pb
from benchmarks.sets.case import Reference, collected
from pibls.problems.manufactured import applied, manufactured, plane_stress

R = sp.Rational
x, y, z, t = pb.coordinates("x y z t")
u, v, p = (pb.field(name, x, y) for name in "uvp")
w, c, h, s = pb.field("w", x), pb.field("c", t), pb.field("h", x, t), pb.field("s", x, y, z)
LINE, SQUARE, WIDE = pb.Interval((x, 0, 1)), pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Rectangle((x, -1, 1), (y, -1, 1))
L_SHAPE = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1)])
POINTED = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (1, -1)])  # a corner of 7π/4
DISK = pb.Disk((x, y), (0, 0), 1)
LAPLACE = sp.Eq(pb.laplacian(u), 0)


case, held_out = collected()


def dirichlet(equation: Any, domain: Any, exact: sp.Expr, of: Any = u) -> pb.Problem:
    return pb.Problem(equation, domain, [pb.Dirichlet(of, exact)], exact=exact)


def around(bisector: sp.Expr) -> sp.Expr:
    """Return the angle at the origin, from a direction on, so that its jump lies opposite."""
    a, b = sp.cos(bisector), sp.sin(bisector)
    return sp.atan2(y * a - x * b, x * a + y * b)


# Corners --------------------------------------------------------------------------------------------------------------


@case("corner")
def sharp_corner() -> pb.Problem:
    return dirichlet(LAPLACE, POINTED, (x**2 + y**2) ** R(2, 7) * sp.cos(R(4, 7) * around(7 * sp.pi / 8)))


@case("corner")
def sharp_corner_mixed() -> pb.Problem:
    exact = (x**2 + y**2) ** R(1, 7) * sp.sin(R(2, 7) * (around(7 * sp.pi / 8) + 7 * sp.pi / 8))
    rest = POINTED.edge0 | POINTED.edge1 | POINTED.edge2 | POINTED.edge3 | POINTED.edge4
    conditions = [pb.Dirichlet(u, exact, on=rest), pb.Neumann(u, 0, on=POINTED.edge5)]
    return pb.Problem(LAPLACE, POINTED, conditions, exact=exact)


@case("corner")
def insulated_corner() -> pb.Problem:
    exact = sp.cbrt(x**2 + y**2) * sp.cos(R(2, 3) * (around(3 * sp.pi / 4) + 3 * sp.pi / 4))
    rest = L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    conditions = [pb.Dirichlet(u, exact, on=rest), pb.Neumann(u, 0, on=L_SHAPE.edge0 | L_SHAPE.edge5)]
    return pb.Problem(LAPLACE, L_SHAPE, conditions, exact=exact)


@case("corner")
def half_insulated_side() -> pb.Problem:
    at = R(3, 10)
    exact = sp.sqrt((sp.sqrt((x - at) ** 2 + y**2) + x - at) / 2)
    free = SQUARE.bottom.where(lambda X: X[:, 0] > 0.3)
    held = SQUARE.bottom.where(lambda X: X[:, 0] <= 0.3)
    conditions = [pb.Neumann(u, 0, on=free), pb.Dirichlet(u, 0, on=held)]
    conditions += [pb.Dirichlet(u, exact, on=SQUARE.left | SQUARE.right | SQUARE.top)]
    return pb.Problem(LAPLACE, SQUARE, conditions, exact=exact)


@case("corner")
def edge_in_space() -> pb.Problem:
    bar = pb.Box((x, -1, 1), (y, -1, 1), (z, 0, 1)) - pb.Box((x, 0, 1), (y, -1, 0), (z, 0, 1))
    exact = sp.cbrt(x**2 + y**2) * sp.cos(R(2, 3) * around(3 * sp.pi / 4))
    return dirichlet(sp.Eq(pb.laplacian(s), 0), bar, exact, s)


@case("corner")
def conducting_corner_nonlinear() -> pb.Problem:
    harmonic = sp.cbrt(x**2 + y**2) * sp.cos(R(2, 3) * around(3 * sp.pi / 4))
    equation = sp.Eq(((1 + u) * u.diff(x)).diff(x) + ((1 + u) * u.diff(y)).diff(y), 0)
    return dirichlet(equation, L_SHAPE, sp.sqrt(1 + 2 * harmonic) - 1)


@case("corner")
def opening_crack() -> pb.Problem:
    """Half of a sheet around the tip of a crack that opens."""
    nu, domain = R(3, 10), pb.Rectangle((x, -1, 1), (y, 0, 1))
    forces, tractions = plane_stress(u, v, nu)
    kappa, half, r = (3 - nu) / (1 + nu), sp.atan2(y, x) / 2, sp.sqrt(x**2 + y**2)
    exact = {
        u: sp.sqrt(r) * sp.cos(half) * (kappa - 1 + 2 * sp.sin(half) ** 2),
        v: sp.sqrt(r) * sp.sin(half) * (kappa + 1 - 2 * sp.cos(half) ** 2),
    }
    crack, ahead = domain.bottom.where(lambda X: X[:, 0] < 0), domain.bottom.where(lambda X: X[:, 0] >= 0)
    outside = domain.left | domain.right | domain.top
    conditions = [
        *(pb.Condition(sp.Eq(traction, 0), on=crack) for traction in tractions),
        pb.Dirichlet(v, 0, on=ahead),
        pb.Condition(sp.Eq(u.diff(y) + v.diff(x), 0), on=ahead),
        *(pb.Dirichlet(of, value, on=outside) for of, value in exact.items()),
    ]
    return pb.Problem([sp.Eq(f, 0) for f in forces], domain, conditions, exact={"u": exact[u], "v": exact[v]})


# Data that jump -------------------------------------------------------------------------------------------------------


@case("jump")
def two_halves_of_a_rim() -> pb.Problem:
    upper, lower = DISK.boundary.where(lambda X: X[:, 1] > 0), DISK.boundary.where(lambda X: X[:, 1] <= 0)
    exact = 2 / sp.pi * sp.atan2(2 * y, 1 - x**2 - y**2)
    return pb.Problem(LAPLACE, DISK, [pb.Dirichlet(u, 1, on=upper), pb.Dirichlet(u, -1, on=lower)], exact=exact)


@case("jump")
def hot_side_meets_cold() -> pb.Problem:
    exact = 2 / sp.pi * sp.atan2(y, x)
    conditions = [pb.Dirichlet(u, 1, on=SQUARE.left), pb.Dirichlet(u, 0, on=SQUARE.bottom)]
    return pb.Problem(LAPLACE, SQUARE, [*conditions, pb.Dirichlet(u, exact, on=SQUARE.right | SQUARE.top)], exact=exact)


@case("jump")
def heated_strip() -> pb.Problem:
    exact = (sp.atan2(x - R(1, 4), y) - sp.atan2(x - R(1, 2), y)) / sp.pi
    strip = SQUARE.bottom.where(lambda X: (X[:, 0] > 0.25) & (X[:, 0] < 0.5))
    cold = SQUARE.bottom.where(lambda X: (X[:, 0] <= 0.25) | (X[:, 0] >= 0.5))
    conditions = [pb.Dirichlet(u, 1, on=strip), pb.Dirichlet(u, 0, on=cold)]
    conditions += [pb.Dirichlet(u, exact, on=SQUARE.left | SQUARE.right | SQUARE.top)]
    return pb.Problem(LAPLACE, SQUARE, conditions, exact=exact)


# Small holes ----------------------------------------------------------------------------------------------------------


def eccentric(a: sp.Expr, size: sp.Expr) -> pb.Problem:
    """Return the potential between a disk and a round hole that is not in its middle."""
    centre, radius = a * (1 - size**2) / (1 - a**2 * size**2), size * (1 - a**2) / (1 - a**2 * size**2)
    hole = pb.Disk((x, y), (centre, 0), radius)
    exact = sp.log(((x - a) ** 2 + y**2) / ((1 - a * x) ** 2 + a**2 * y**2)) / (2 * sp.log(size))
    conditions = [pb.Dirichlet(u, 0, on=DISK.boundary), pb.Dirichlet(u, 1, on=hole.boundary)]
    return pb.Problem(LAPLACE, DISK - hole, conditions, exact=exact)


@case("small hole")
def eccentric_wire() -> pb.Problem:
    return eccentric(R(3, 5), R(1, 20))


@case("small hole")
def two_wells() -> pb.Problem:
    a, b = (R(3, 10), R(3, 10)), (R(7, 10), R(3, 5))
    domain = SQUARE - pb.Disk((x, y), a, R(1, 20)) - pb.Disk((x, y), b, R(1, 25))
    exact = sp.log(((x - a[0]) ** 2 + (y - a[1]) ** 2) / ((x - b[0]) ** 2 + (y - b[1]) ** 2)) / 2
    return dirichlet(LAPLACE, domain, exact)


@case("small hole")
def small_ball() -> pb.Problem:
    shell = pb.Ball((x, y, z), (0, 0, 0), 1) - pb.Ball((x, y, z), (0, 0, 0), R(1, 10))
    return dirichlet(sp.Eq(pb.laplacian(s), 0), shell, (1 / sp.sqrt(x**2 + y**2 + z**2) - 1) / 9, s)


# Materials ------------------------------------------------------------------------------------------------------------


@case("materials")
def three_layer_wall() -> pb.Problem:
    a, b = R(1, 5), R(7, 10)
    k = sp.Piecewise((2, x < a), (R(1, 20), x < b), (15, True))
    total = R(1, 8) + a / 2 + (b - a) * 20 + (1 - b) / 15 + R(1, 25)
    drop = sp.Piecewise((x / 2, x < a), (a / 2 + 20 * (x - a), x < b), (a / 2 + 20 * (b - a) + (x - b) / 15, True))
    conditions = [pb.Robin(w, 8, 2, 8 * 20, on=LINE.left), pb.Robin(w, 25, 15, 25 * -5, on=LINE.right)]
    exact = 20 - 25 * (R(1, 8) + drop) / total
    return pb.Problem(sp.Eq((k * w.diff(x)).diff(x), 0), LINE, conditions, exact=exact)


@case("materials")
def thousandfold_plates() -> pb.Problem:
    level = y - R(3, 10)
    k, potential = sp.Piecewise((1, level < 0), (1000, True)), level * sp.exp(x)
    exact = sp.Piecewise((potential, level < 0), (potential / 1000, True))
    source = potential.diff(x, 2) + potential.diff(y, 2)
    return dirichlet(sp.Eq((k * u.diff(x)).diff(x) + (k * u.diff(y)).diff(y), source), SQUARE, exact)


@case("materials")
def spherical_shells() -> pb.Problem:
    shell = pb.Interval((x, 1, 3))
    k = sp.Piecewise((1, x < 2), (4, True))
    drop = sp.Piecewise((1 - 1 / x, x < 2), (R(1, 2) + (R(1, 2) - 1 / x) / 4, True))
    conditions = [pb.Dirichlet(w, 1, on=shell.left), pb.Dirichlet(w, 0, on=shell.right)]
    return pb.Problem(sp.Eq((x**2 * k * w.diff(x)).diff(x), 0), shell, conditions, exact=1 - drop / drop.subs(x, 3))


@case("materials")
def absorbing_half() -> pb.Problem:
    k = sp.Piecewise((1, x < R(1, 2)), (100, True))
    left, right = sp.cosh(x), sp.cosh(R(1, 2)) * sp.cosh(10 * (x - R(1, 2)))
    right += sp.sinh(R(1, 2)) * sp.sinh(10 * (x - R(1, 2))) / 10
    exact = sp.Piecewise((left, x < R(1, 2)), (right, True))
    return dirichlet(sp.Eq(w.diff(x, 2), k * w), LINE, exact / right.subs(x, 1), w)


@case("materials")
def hollow_inclusion() -> pb.Problem:
    r2, a2 = (x - R(1, 10)) ** 2 + y**2, R(1, 4)
    k = sp.Piecewise((R(1, 5), r2 < a2), (1, True))
    exact = sp.Piecewise((y * R(5, 3), r2 < a2), (y * (1 + R(2, 3) * a2 / r2), True))
    return dirichlet(sp.Eq((k * u.diff(x)).diff(x) + (k * u.diff(y)).diff(y), 0), WIDE, exact)


# Narrow sources -------------------------------------------------------------------------------------------------------


def _kink(a: int, at: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return a load of area one and width 1/a, and the deflection of a string of length one under it."""
    bell = sp.exp(-((a * (x - at)) ** 2)) / sp.sqrt(sp.pi)
    kink = (x - at) * sp.erf(a * (x - at)) / 2 + bell / (2 * a)
    return a * bell, (1 - x) * at / 2 + x * (1 - at) / 2 - kink


@case("narrow source")
def two_loads() -> pb.Problem:
    (f, one), (g, two) = _kink(5000, R(1, 5)), _kink(2000, R(77, 100))
    return pb.Problem(sp.Eq(-w.diff(x, 2), f - g / 2), LINE, [pb.Dirichlet(w, 0)], exact=one - two / 2)


def _spot(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    Z, at, width = X + 1j * Y, 0.3 - 0.45j, 0.005
    green = np.log(abs(1 - Z * np.conj(at)) / np.maximum(abs(Z - at), 1e-300)) / (2 * np.pi)
    return np.asarray(np.pi * width**2 * green - width**2 / 4 * exp1(np.maximum(abs(Z - at) ** 2 / width**2, 1e-300)))


@case("narrow source")
def spot_in_a_disk() -> pb.Problem:
    source = sp.exp(-40000 * ((x - R(3, 10)) ** 2 + (y + R(45, 100)) ** 2))
    exact = pb.data("spot", _spot, x, y)
    return pb.Problem(sp.Eq(-pb.laplacian(u), source), DISK, [pb.Dirichlet(u, 0)], exact=exact)


@case("narrow source")
def three_doses() -> pb.Problem:
    width, times = R(1, 500), (1, 7, 13)
    pulses = [sp.Piecewise((500, (t >= at) & (t < at + width)), (0, True)) for at in times]
    rate = R(1, 4)
    full = 500 * (1 - sp.exp(-rate * width)) / rate
    answers = [
        sp.Piecewise(
            (0, t < at),
            (500 * (1 - sp.exp(-rate * (t - at))) / rate, t < at + width),
            (full * sp.exp(-rate * (t - at - width)), True),
        )
        for at in times
    ]
    equation = sp.Eq(c.diff(t), -rate * c + sp.Add(*pulses))
    return pb.Problem(equation, pb.TimeInterval(t, 0, 24), [pb.Initial(c, 0)], exact=sp.Add(*answers))


@case("narrow source")
def kicked_spring() -> pb.Problem:
    start, stop = sp.Integer(1), R(101, 100)
    kick = sp.Piecewise((100, (t >= start) & (t < stop)), (0, True))
    first, second = 25 * (1 - sp.cos(2 * (t - start))), 25 * (1 - sp.cos(2 * (t - stop)))
    exact = sp.Piecewise((0, t < start), (first, t < stop), (first - second, True))
    conditions = [pb.Initial(c, 0), pb.Initial(c.diff(t), 0)]
    return pb.Problem(sp.Eq(c.diff(t, 2) + 4 * c, kick), pb.TimeInterval(t, 0, 20), conditions, exact=exact)


# Layers ---------------------------------------------------------------------------------------------------------------


@case("layer")
def reaction_layers() -> pb.Problem:
    width = R(1, 300)
    exact = 1 - (sp.exp(-x / width) + sp.exp((x - 1) / width)) / (1 + sp.exp(-1 / width))
    return pb.Problem(sp.Eq(-(width**2) * w.diff(x, 2) + w, 1), LINE, [pb.Dirichlet(w, 0)], exact=exact)


@case("layer")
def turning_point() -> pb.Problem:
    line, eps = pb.Interval((x, -1, 1)), R(1, 5000)
    exact = sp.erf(x / sp.sqrt(2 * eps)) / sp.erf(1 / sp.sqrt(2 * eps))
    return pb.Problem(sp.Eq(eps * w.diff(x, 2) + x * w.diff(x), 0), line, [pb.Dirichlet(w, x)], exact=exact)


@case("layer")
def round_front() -> pb.Problem:
    exact = sp.atan(60 * (sp.sqrt((x + R(1, 20)) ** 2 + (y + R(1, 20)) ** 2) - R(7, 10)))
    return dirichlet(manufactured(pb.laplacian(u), {u: exact}, SQUARE), SQUARE, exact)


@case("layer")
def outflow_layer() -> pb.Problem:
    eps = R(1, 200)
    exact = (1 - sp.exp((x - 1) / eps)) * sp.sin(sp.pi * y)
    return dirichlet(manufactured(u.diff(x) - eps * pb.laplacian(u), {u: exact}, SQUARE), SQUARE, exact)


# Time -----------------------------------------------------------------------------------------------------------------


@case("time")
def entering_step() -> pb.Problem:
    exact = (1 + sp.tanh(80 * (2 * t - x - R(1, 2)))) / 2
    conditions = [pb.Dirichlet(h, exact.subs(x, 0), on=LINE.left), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(h.diff(t) + 2 * h.diff(x), 0), LINE * pb.TimeInterval(t, 0, 1), conditions, exact=exact)


@case("time")
def suddenly_heated_end() -> pb.Problem:
    rod = pb.Interval((x, 0, 3))
    exact = sp.erfc(x / (2 * sp.sqrt(t)))
    conditions = [pb.Dirichlet(h, 1, on=rod.left), pb.Dirichlet(h, 0, on=rod.right), pb.Initial(h, 0)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), rod * pb.TimeInterval(t, 0, R(1, 10)), conditions, exact=exact)


@case("time")
def plucked_string() -> pb.Problem:
    exact = sp.Add(*(sp.asin(sp.sin(sp.pi * (x + sign * t))) / (2 * sp.pi) for sign in (1, -1)))
    shape = sp.Piecewise((x, x < R(1, 2)), (1 - x, True))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, shape), pb.Initial(h.diff(t), 0)]
    domain = LINE * pb.TimeInterval(t, 0, 1)
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), domain, conditions, exact=exact)


def _digital(S: np.ndarray, T: np.ndarray) -> np.ndarray:
    second = (np.log(np.maximum(S, 1e-300) / 50) + (0.03 - 0.045) * T) / (0.3 * np.sqrt(np.maximum(T, 1e-300)))
    return np.asarray(np.exp(-0.03 * T) * ndtr(second))


@case("time")
def digital_option() -> pb.Problem:
    prices, rate, spread = pb.Interval((x, 0, 200)), R(3, 100), R(3, 10)
    change = spread**2 * x**2 * h.diff(x, 2) / 2 + rate * x * h.diff(x) - rate * h
    conditions = [
        pb.Dirichlet(h, 0, on=prices.left),
        pb.Dirichlet(h, pb.data("far", _digital, x, t), on=prices.right),
        pb.Initial(h, sp.Piecewise((0, x < 50), (1, True))),
    ]
    exact = pb.data("digital", _digital, x, t)
    return pb.Problem(sp.Eq(h.diff(t), change), prices * pb.TimeInterval(t, 0, R(1, 2)), conditions, exact=exact)


@case("time")
def quenched_bar() -> pb.Problem:
    g = pb.field("g", x, y, t)
    one = sp.Add(*((-1) ** k * sp.erf((x - k) / (2 * sp.sqrt(t))) for k in range(-3, 4)))
    domain = SQUARE * pb.TimeInterval(t, 0, R(1, 20))
    conditions = [pb.Dirichlet(g, 0), pb.Initial(g, 1)]
    return pb.Problem(sp.Eq(g.diff(t), pb.laplacian(g)), domain, conditions, exact=one * one.subs(x, y))


@case("time")
def damped_resonance() -> pb.Problem:
    d = R(1, 100)
    fast = sp.sqrt(1 - d**2)
    exact = (sp.sin(t) - sp.exp(-d * t) * sp.sin(fast * t) / fast) / (2 * d)
    conditions = [pb.Initial(c, 0), pb.Initial(c.diff(t), 0)]
    equation = sp.Eq(c.diff(t, 2) + 2 * d * c.diff(t) + c, sp.cos(t))
    return pb.Problem(equation, pb.TimeInterval(t, 0, 150), conditions, exact=exact)


# Scales ---------------------------------------------------------------------------------------------------------------


@case("scales")
def steel_beam() -> pb.Problem:
    beam = pb.Interval((x, 0, 6))
    exact = 10**4 * x**2 * (x**2 - 24 * x + 216) / (24 * 2 * 10**7)
    conditions = [pb.Dirichlet(w, 0, on=beam.left), pb.Dirichlet(w.diff(x), 0, on=beam.left)]
    conditions += [pb.Dirichlet(w.diff(x, k), 0, on=beam.right) for k in (2, 3)]
    return pb.Problem(sp.Eq(2 * 10**7 * w.diff(x, 4), 10**4), beam, conditions, exact=exact)


@case("scales")
def microscopic_square() -> pb.Problem:
    size = R(1, 10**6)
    tiny = pb.Rectangle((x, 0, size), (y, 0, size))
    exact = 1000 * sp.sinh(3 * x / size) * sp.sin(3 * y / size)
    return dirichlet(LAPLACE, tiny, exact)


@case("scales")
def far_away_square() -> pb.Problem:
    a, b = x - 5000, y + 30000
    domain = pb.Rectangle((x, 5000, 5001), (y, -30000, -29999))
    left = a + R(1, 5)
    return dirichlet(LAPLACE, domain, b / (left**2 + b**2))


@case("scales")
def trace_substance() -> pb.Problem:
    main = 1000 * sp.cos(x) * sp.cosh(y)
    trace = R(1, 10**6) * (sp.cos(x) * sp.cosh(y) + sp.exp(x) * sp.sin(y))
    equations = [LAPLACE, manufactured(pb.laplacian(v) - v + R(1, 10**9) * u, {u: main, v: trace}, SQUARE)]
    conditions = [pb.Dirichlet(u, main), pb.Dirichlet(v, trace)]
    return pb.Problem(equations, SQUARE, conditions, exact={"u": main, "v": trace})


@case("scales")
def membrane_near_resonance() -> pb.Problem:
    k = R(12, 5)
    exact = pb.data("membrane", lambda X, Y: j0(2.4 * np.hypot(X, Y)) / j0(2.4), x, y)
    return pb.Problem(sp.Eq(pb.laplacian(u) + k**2 * u, 0), DISK, [pb.Dirichlet(u, 1)], exact=exact)


# Solids and flows -----------------------------------------------------------------------------------------------------


@case("system")
def pressure_vessel() -> pb.Problem:
    nu = R(1, 4)
    forces, tractions = plane_stress(u, v, nu)
    outer, inner = pb.Disk((x, y), (0, 0), 2), pb.Disk((x, y), (0, 0), 1)
    quarter = pb.Rectangle((x, 0, 3), (y, 0, 3))
    domain = (outer - inner) & quarter
    radial = ((1 - nu) + (1 + nu) * 4 / (x**2 + y**2)) / 3
    n_x, n_y = pb.normal(x, y)
    conditions = [
        *(pb.Condition(sp.Eq(traction, 0), on=outer.boundary) for traction in tractions),
        pb.Condition(sp.Eq(tractions[0], -n_x), on=inner.boundary),
        pb.Condition(sp.Eq(tractions[1], -n_y), on=inner.boundary),
        pb.Dirichlet(u, 0, on=quarter.left),
        pb.Condition(sp.Eq(u.diff(y) + v.diff(x), 0), on=quarter.left),
        pb.Dirichlet(v, 0, on=quarter.bottom),
        pb.Condition(sp.Eq(u.diff(y) + v.diff(x), 0), on=quarter.bottom),
    ]
    exact = {"u": x * radial, "v": y * radial}
    return pb.Problem([sp.Eq(f, 0) for f in forces], domain, conditions, exact=exact)


def _stokes(of: Any, force: Any) -> sp.Eq:
    return sp.Eq(-pb.laplacian(of) + force, 0)


@case("system")
def turning_cylinder() -> pb.Problem:
    inner = pb.Disk((x, y), (0, 0), R(1, 5))
    swirl = (1 / (x**2 + y**2) - 1) / 24
    exact = {"u": -y * swirl, "v": x * swirl}
    known = [pb.Dirichlet(of, value) for of, value in ((u, exact["u"]), (v, exact["v"]))]
    equations = [_stokes(u, p.diff(x)), _stokes(v, p.diff(y)), sp.Eq(u.diff(x) + v.diff(y), 0)]
    return pb.Problem(equations, DISK - inner, [*known, pb.Mean(p, 0)], exact={**exact, "p": sp.S.Zero})


@case("system")
def long_channel() -> pb.Problem:
    channel = pb.Rectangle((x, 0, 40), (y, 0, 1))
    equations = [_stokes(u, p.diff(x)), _stokes(v, p.diff(y)), sp.Eq(u.diff(x) + v.diff(y), 0)]
    walls = channel.bottom | channel.top
    conditions = [
        pb.Dirichlet(u, 6 * y * (1 - y), on=channel.left),
        pb.Dirichlet(u, 0, on=walls),
        pb.Dirichlet(v, 0),
        pb.Dirichlet(p, 0, on=channel.right),
    ]
    exact = {"u": 6 * y * (1 - y), "v": sp.S.Zero, "p": 12 * (40 - x)}
    return pb.Problem(equations, channel, conditions, exact=exact)


@case("system")
def gauge_with_hole() -> pb.Problem:
    domain = WIDE - pb.Disk((x, y), (0, 0), R(1, 2))
    exact = x * (1 + R(1, 4) / (x**2 + y**2)) + x * y
    flux = applied(pb.normal_derivative(u), {u: exact}, domain)
    return pb.Problem(LAPLACE, domain, [pb.Neumann(u, flux), pb.Mean(u, 0)], exact=exact)


# Ordinary equations with a singular end -------------------------------------------------------------------------------


@case("singular end")
def steep_power() -> pb.Problem:
    power = R(3, 10)
    equation = sp.Eq(w.diff(x), power * x ** (power - 1))
    return pb.Problem(equation, LINE, [pb.Dirichlet(w, 0, on=LINE.left)], exact=x**power)


@case("singular end")
def euler_equation() -> pb.Problem:
    return pb.Problem(
        sp.Eq(x**2 * w.diff(x, 2) + x * w.diff(x) - w / 4, 0), LINE, [pb.Dirichlet(w, x)], exact=sp.sqrt(x)
    )


@case("singular end")
def bessel_equation() -> pb.Problem:
    line = pb.Interval((x, 0, 12))
    conditions = [pb.Dirichlet(w, 1, on=line.left), pb.Dirichlet(w.diff(x), 0, on=line.left)]
    equation = sp.Eq(x * w.diff(x, 2) + w.diff(x) + x * w, 0)
    return pb.Problem(equation, line, conditions, exact=pb.data("bessel", j0, x))


@case("singular end")
def logarithmic_disk() -> pb.Problem:
    exact = x**2 * sp.log(x)
    equation = sp.Eq(w.diff(x, 2) + w.diff(x) / x, 4 * sp.log(x) + 4)
    conditions = [pb.Dirichlet(w, 0, on=LINE.right), pb.Dirichlet(w, 0, on=LINE.left)]
    return pb.Problem(equation, LINE, conditions, exact=exact)


# Nonlinear ------------------------------------------------------------------------------------------------------------


def _boundary_values(rates: Any, ends: Any, high: float, guess: Any) -> Reference:
    def at(points: np.ndarray) -> dict[str, np.ndarray]:
        mesh = np.linspace(0, high, 400)
        found = solve_bvp(rates, ends, mesh, guess(mesh), tol=1e-10, max_nodes=200_000)
        return {"w": found.sol(points)[0]}

    return at


def course(rates: Any, start: list[float], names: str) -> Reference:
    def at(points: np.ndarray) -> dict[str, np.ndarray]:
        found = solve_ivp(rates, (0, points[-1]), start, "Radau", t_eval=points, rtol=1e-11, atol=1e-13).y
        return dict(zip(names, found, strict=False))

    return at


_FIN = _boundary_values(
    lambda _, s: [s[1], 5 * s[0] ** 4], lambda a, b: [a[0] - 1, b[1]], 1, lambda m: [1 - m / 2, -0.5 + 0 * m]
)


@case("nonlinear", _FIN)
def radiating_fin() -> pb.Problem:
    conditions = [pb.Dirichlet(w, 1, on=LINE.left), pb.Neumann(w, 0, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 5 * w**4), LINE, conditions)


_TROESCH = _boundary_values(
    lambda _, s: [s[1], 5 * np.sinh(5 * s[0])], lambda a, b: [a[0], b[0] - 1], 1, lambda m: [m**5, 5 * m**4]
)


@case("nonlinear", _TROESCH)
def troesch() -> pb.Problem:
    return pb.Problem(sp.Eq(w.diff(x, 2), 5 * sp.sinh(5 * w)), LINE, [pb.Dirichlet(w, x)])


_PAINLEVE = _boundary_values(
    lambda m, s: [s[1], 6 * s[0] ** 2 + m], lambda a, b: [a[0], b[0] - 1], 1, lambda m: [m, 1 + 0 * m]
)


@case("nonlinear", _PAINLEVE)
def painleve() -> pb.Problem:
    return pb.Problem(sp.Eq(w.diff(x, 2), 6 * w**2 + x), LINE, [pb.Dirichlet(w, x)])


_BLASIUS = _boundary_values(
    lambda _, s: [s[1], s[2], -s[0] * s[2] / 2],
    lambda a, b: [a[0], a[1], b[1] - 1],
    10,
    lambda m: [m**2 / (m + 1), m / (m + 1), 1 / (m + 1) ** 2],
)


@case("nonlinear", _BLASIUS)
def blasius() -> pb.Problem:
    line = pb.Interval((x, 0, 10))
    conditions = [pb.Dirichlet(w, 0, on=line.left), pb.Dirichlet(w.diff(x), 0, on=line.left)]
    conditions += [pb.Dirichlet(w.diff(x), 1, on=line.right)]
    return pb.Problem(sp.Eq(w.diff(x, 3) + w * w.diff(x, 2) / 2, 0), line, conditions)


@case("nonlinear")
def standing_shock() -> pb.Problem:
    line, eps = pb.Interval((x, -1, 1)), R(1, 16)  # much below, round-off decides where it stands
    exact = -sp.tanh(x / (2 * eps))
    return pb.Problem(sp.Eq(w * w.diff(x), eps * w.diff(x, 2)), line, [pb.Dirichlet(w, exact)], exact=exact)


@case("nonlinear")
def logistic_growth() -> pb.Problem:
    exact = 1 / (1 + 99 * sp.exp(-50 * t))
    return pb.Problem(
        sp.Eq(c.diff(t), 50 * c * (1 - c)), pb.TimeInterval(t, 0, 1), [pb.Initial(c, R(1, 100))], exact=exact
    )


@case("nonlinear", course(lambda _, q: [q[1], -np.sin(q[0])], [3.0, 0.0], "c"))
def large_pendulum() -> pb.Problem:
    conditions = [pb.Initial(c, 3), pb.Initial(c.diff(t), 0)]
    return pb.Problem(sp.Eq(c.diff(t, 2), -sp.sin(c)), pb.TimeInterval(t, 0, 25), conditions)


_RATES = course(lambda _, q: [1 + q[0] ** 2 * q[1] - 4 * q[0], 3 * q[0] - q[0] ** 2 * q[1]], [1.5, 3.0], "ab")


@case("nonlinear", _RATES)
def brusselator() -> pb.Problem:
    a, b = pb.field("a", t), pb.field("b", t)
    equations = [sp.Eq(a.diff(t), 1 + a**2 * b - 4 * a), sp.Eq(b.diff(t), 3 * a - a**2 * b)]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 20), [pb.Initial(a, R(3, 2)), pb.Initial(b, 3)])


# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def insulated_l_shape() -> pb.Problem:
    flux = applied(pb.normal_derivative(u), {u: sp.exp(x) * sp.sin(y)}, L_SHAPE)
    return pb.Problem(LAPLACE, L_SHAPE, [pb.Neumann(u, flux)])


@case("ill-posed")
def floating_sheet() -> pb.Problem:
    forces, tractions = plane_stress(u, v, R(3, 10))
    n_x, _ = pb.normal(x, y)
    conditions = [pb.Condition(sp.Eq(tractions[0], n_x)), pb.Condition(sp.Eq(tractions[1], 0))]
    return pb.Problem([sp.Eq(f, 0) for f in forces], SQUARE, conditions)


@case("ill-posed")
def stirred_disk() -> pb.Problem:
    equations = [_stokes(u, p.diff(x)), _stokes(v, p.diff(y)), sp.Eq(u.diff(x) + v.diff(y), 0)]
    return pb.Problem(equations, DISK, [pb.Dirichlet(u, -y * x**2), pb.Dirichlet(v, x**3)])


@case("ill-posed")
def half_a_rim() -> pb.Problem:
    upper = DISK.boundary.where(lambda X: X[:, 1] > 0)
    return pb.Problem(LAPLACE, DISK, [pb.Dirichlet(u, x, on=upper)])


@case("ill-posed")
def two_of_three() -> pb.Problem:
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 3), 1 + x), LINE, conditions)


@case("ill-posed")
def no_start() -> pb.Problem:
    domain = LINE * pb.TimeInterval(t, 0, R(1, 5))
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), domain, [pb.Dirichlet(h, 0)])


@case("ill-posed")
def flux_into_a_disk() -> pb.Problem:
    return pb.Problem(LAPLACE, DISK, [pb.Neumann(u, 1), pb.Mean(u, 0)])


@case("ill-posed")
def both_ends_of_first_order() -> pb.Problem:
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w, 2, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x), sp.cos(x)), LINE, conditions)


@case("ill-posed")
def negative_diffusion() -> pb.Problem:
    domain = LINE * pb.TimeInterval(t, 0, R(1, 2))
    return pb.Problem(sp.Eq(h.diff(t), -h.diff(x, 2)), domain, [pb.Dirichlet(h, 0), pb.Initial(h, x * (1 - x))])


@case("ill-posed")
def laplace_as_evolution() -> pb.Problem:
    domain = LINE * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, x * (1 - x)), pb.Initial(h.diff(t), 0)]
    return pb.Problem(sp.Eq(h.diff(t, 2) + h.diff(x, 2), 0), domain, conditions)


@case("ill-posed")
def resonant_membrane() -> pb.Problem:
    k = sp.Float(2.404825557695773)
    return pb.Problem(sp.Eq(pb.laplacian(u) + k**2 * u, 1), DISK, [pb.Dirichlet(u, 0)])


@case("ill-posed")
def missing_inflow() -> pb.Problem:
    return pb.Problem(sp.Eq(u.diff(x) + u.diff(y), 0), SQUARE, [pb.Dirichlet(u, sp.sin(y), on=SQUARE.left)])
