"""Well-posed problems whose fields, parts or units live on scales of their own: the half kept aside.

Nothing may be chosen by these: they are there to be measured.
"""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import LINE, SQUARE, R, c, h, p, s, t, u, v, w, x, y, z
from benchmarks.sets.scales_open import THREE, d, during, posed
from pibls.problems.manufactured import manufactured

case, scales_aside = collected(THREE)
e, f = pb.field("e", t), pb.field("f", t)
a, b = pb.field("a", x, t), pb.field("b", x, t)
WAVY = pb.Star((x, y), lambda angle: 1 + sp.cos(3 * angle) / 5)


@case("trace")
def chain_of_three() -> pb.Problem:
    """Let a millionth of a substance become a second one, and a ten-thousandth of that a third."""
    first = sp.exp(-t)
    second = (sp.exp(-t) - sp.exp(-2 * t)) / 10**6
    third = (sp.exp(-t) / 2 - sp.exp(-2 * t) + sp.exp(-3 * t) / 2) / 10**10
    equations = [
        sp.Eq(c.diff(t), -c),
        sp.Eq(d.diff(t), c / 10**6 - 2 * d),
        sp.Eq(e.diff(t), d / 10**4 - 3 * e),
    ]
    conditions = [pb.Initial(c, 1), pb.Initial(d, 0), pb.Initial(e, 0)]
    return pb.Problem(equations, during(4), conditions, exact={c: first, d: second, e: third})


@case("trace")
def trace_in_a_warm_rod() -> pb.Problem:
    exact = {a: 300 + 20 * sp.sin(sp.pi * x) * sp.exp(-t), b: sp.exp(-t) * sp.cos(2 * x) / 10**7}
    operators = [a.diff(t) - a.diff(x, 2) / 10, b.diff(t) - b.diff(x, 2) / 20 + a * b / 300]
    return posed(operators, exact, LINE * during())


@case("layer")
def step_inside() -> pb.Problem:
    return posed([-w.diff(x, 2) / 100 + w], {w: sp.tanh((x - R(1, 2)) * 100) + x}, LINE)


@case("layer")
def layers_at_two_walls() -> pb.Problem:
    exact = (1 - sp.exp(-100 * x)) * (1 - sp.exp(-100 * y)) * sp.cos(x + y)
    return posed([-pb.laplacian(u) / 10**4 + u], {u: exact}, SQUARE)


@case("jump")
def two_metals_that_cool() -> pb.Problem:
    k = sp.Piecewise((5, x < R(1, 2)), (1, True))
    shape = sp.Piecewise((x * (1 + x) / 5, x < R(1, 2)), ((x * (1 + x)) - R(3, 5), True))
    exact = sp.exp(-2 * t) * shape
    source = -2 * sp.exp(-2 * t) * shape - 2 * sp.exp(-2 * t)
    rod = LINE * during()
    equation = sp.Eq(h.diff(t) - (k * h.diff(x)).diff(x), source)
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, shape)]
    return pb.Problem(equation, rod, conditions, exact=exact)


@case("jump")
def string_of_two_wires() -> pb.Problem:
    """Join two wires of different weight under one tension: slopes are continuous."""
    speed = sp.Piecewise((1, x < R(2, 5)), (9, True))
    exact = sp.sin(sp.pi * x) * sp.cos(2 * t)
    source = -4 * exact + sp.pi**2 * speed * exact
    string = LINE * during()
    equation = sp.Eq(h.diff(t, 2) - speed * h.diff(x, 2), source)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x)), pb.Initial(h.diff(t), 0)]
    return pb.Problem(equation, string, conditions, exact=exact)


@case("nonlinear")
def thick_liquid_in_a_star() -> pb.Problem:
    gradient = u.diff(x) ** 2 + u.diff(y) ** 2
    return posed([-pb.div((1 + gradient) * pb.grad(u))], {u: sp.exp(x) * sp.cos(y)}, WAVY)


@case("nonlinear")
def hunters_and_prey() -> pb.Problem:
    exact = {c: 2 + sp.sin(3 * t), d: 1 + sp.cos(2 * t) / 2}
    operators = [c.diff(t) - c + c * d, d.diff(t) + d - c * d]
    return posed(operators, exact, during(5))


@case("system")
def inertia_in_a_square() -> pb.Problem:
    k = sp.pi
    exact = {
        u: sp.sin(k * x) * sp.cos(k * y),
        v: -sp.cos(k * x) * sp.sin(k * y),
        p: (sp.cos(2 * k * x) + sp.cos(2 * k * y)) / 4,
    }
    operators = [
        u * u.diff(x) + v * u.diff(y) - pb.laplacian(u) / 10 + p.diff(x),
        u * v.diff(x) + v * v.diff(y) - pb.laplacian(v) / 10 + p.diff(y),
        u.diff(x) + v.diff(y),
    ]
    conditions = [pb.Dirichlet(u, exact[u]), pb.Dirichlet(v, exact[v]), pb.Mean(p, 0)]
    return pb.Problem([manufactured(o, exact, SQUARE) for o in operators], SQUARE, conditions, exact=exact)


@case("waves")
def ripples_in_a_star() -> pb.Problem:
    return posed([pb.laplacian(u) + 400 * u], {u: sp.sin(12 * x + 16 * y) + sp.cos(20 * x)}, WAVY)


@case("space")
def hum_in_a_box() -> pb.Problem:
    box = pb.Box((x, 0, 1), (y, 0, 2), (z, 0, 1))
    return posed([pb.laplacian(s) + 26 * s], {s: sp.sin(3 * x) * sp.cos(4 * y) * sp.exp(z)}, box)


@case("space")
def burning_log() -> pb.Problem:
    log = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), R(1, 2))
    return posed([-pb.laplacian(s) + s**3], {s: 1 + x * sp.sin(z) + y**2}, log)


@case("time")
def packet_of_a_particle() -> pb.Problem:
    exact = {a: sp.cos(3 * x - 9 * t), b: sp.sin(3 * x - 9 * t)}
    return posed([a.diff(t) + b.diff(x, 2), b.diff(t) - a.diff(x, 2)], exact, LINE * during())


@case("time")
def ringing_beam() -> pb.Problem:
    k = sp.pi
    exact = sp.sin(k * x) * sp.cos(k**2 * t)
    beam = LINE * during()
    conditions = [
        pb.Dirichlet(h, 0),
        pb.Dirichlet(h.diff(x, 2), 0),
        pb.Initial(h, sp.sin(k * x)),
        pb.Initial(h.diff(t), 0),
    ]
    return pb.Problem(sp.Eq(h.diff(t, 2), -h.diff(x, 4)), beam, conditions, exact=exact)


@case("time")
def travelling_front() -> pb.Problem:
    exact = 1 - sp.tanh((x - t / 1 - R(1, 5)) / (4 * R(1, 50)))
    equation = sp.Eq(h.diff(t) + h * h.diff(x), R(1, 25) * h.diff(x, 2))
    road = LINE * during(R(1, 2))
    return pb.Problem(equation, road, [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0))], exact=exact)


@case("units")
def hot_chip() -> pb.Problem:
    chip = pb.Rectangle((x, 0, R(1, 1000)), (y, 0, R(1, 10000)))
    exact = 300 + 50 * sp.sin(1000 * sp.pi * x) * sp.cosh(1000 * sp.pi * y)
    exact += 10**7 * y * (R(1, 10000) - y)
    return posed([-150 * pb.laplacian(u)], {u: exact}, chip)


@case("units")
def planet() -> pb.Problem:
    """Let a planet go around its sun in metres and seconds."""
    radius, rate = sp.Float("1.496e11"), sp.Float("1.991e-7")
    pull = rate**2 * radius**3
    exact = {c: radius * sp.cos(rate * t), d: radius * sp.sin(rate * t)}
    cube = (c**2 + d**2) ** R(3, 2)
    equations = [sp.Eq(c.diff(t, 2), -pull * c / cube), sp.Eq(d.diff(t, 2), -pull * d / cube)]
    conditions = [
        pb.Initial(c, radius),
        pb.Initial(d, 0),
        pb.Initial(c.diff(t), 0),
        pb.Initial(d.diff(t), radius * rate),
    ]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 3.0e7), conditions, exact=exact)


@case("units")
def tiny_values() -> pb.Problem:
    exact = sp.exp(x) * sp.sin(2 * y) / 10**30
    return posed([-pb.div((2 + x) * pb.grad(u))], {u: exact}, SQUARE)


@case("waves")
def faster_and_faster() -> pb.Problem:
    return posed([w.diff(x, 2) + (1 + 3600 * x**2) * w], {w: sp.sin(30 * x**2)}, LINE)


@case("corner")
def wall_half_open() -> pb.Problem:
    """Hold one half of a straight wall, and close the other: the solution is √r there."""
    half = pb.Rectangle((x, -1, 1), (y, 0, 1))
    exact = sp.sqrt((sp.sqrt(x**2 + y**2) - x) / 2)
    given, closed = half.bottom.where(lambda X: X[:, 0] > 0), half.bottom.where(lambda X: X[:, 0] <= 0)
    rest = half.left | half.right | half.top
    conditions = [
        pb.Dirichlet(u, 0, on=given),
        pb.Neumann(u, 0, on=closed),
        pb.Dirichlet(u, exact, on=rest),
    ]
    return pb.Problem(sp.Eq(pb.laplacian(u), 0), half, conditions, exact=exact)
