"""Well-posed problems whose fields, parts or units live on scales of their own: the half to work with.

Traces beside main substances, layers, jumps, units of a chip and of a planet. The other half is ``scales_aside``,
which nothing may be chosen by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LINE, SQUARE, R, c, h, p, s, t, u, v, w, x, y, z
from pibls.problems.manufactured import applied, manufactured

THREE = (1e-2, 1e-4, 1e-6)
case, scales_open = collected(THREE)
d, g = pb.field("d", t), pb.field("g", x, y, t)
RING = DISK - pb.Disk((x, y), (0, 0), R(1, 2))


def during(stop: Any = 1) -> pb.TimeInterval:
    return pb.TimeInterval(t, 0, stop)


def posed(operators: Any, exact: Mapping[Any, Any], domain: Any, more: Any = None) -> pb.Problem:
    """Return the problem with given values on all of the boundary, and first values where there is a time."""
    equations = [manufactured(operator, exact, domain) for operator in operators]
    conditions = [pb.Dirichlet(of, value) for of, value in exact.items() if len(domain.space)]
    if domain.time is not None:
        first = {of: sp.sympify(value).subs(t, 0) for of, value in exact.items()}
        conditions += [pb.Initial(of, value) for of, value in first.items()]
    return pb.Problem(equations, domain, [*conditions, *(more or [])], exact=dict(exact))


@case("trace")
def daughter_of_a_slow_decay() -> pb.Problem:
    """Let one in 10⁸ decays lead to a daughter, which decays as fast."""
    exact = {c: sp.exp(-t), d: t * sp.exp(-t) / 10**8}
    equations = [sp.Eq(c.diff(t), -c), sp.Eq(d.diff(t), c / 10**8 - d)]
    return pb.Problem(equations, during(3), [pb.Initial(c, 1), pb.Initial(d, 0)], exact=exact)


@case("trace")
def dye_in_a_melt() -> pb.Problem:
    """Spread a dye of 10⁻¹⁰ in a melt that eats it."""
    exact = {u: 3 + sp.sin(2 * x + y), v: sp.cos(4 * x) * sp.exp(y) / 10**10}
    return posed([-pb.laplacian(u) + u, -pb.laplacian(v) + u * v], exact, SQUARE)


@case("layer")
def reaction_layer() -> pb.Problem:
    exact = sp.exp(-1000 * x) + sp.cos(3 * x)
    return posed([-w.diff(x, 2) / 10**6 + w], {w: exact}, LINE)


@case("layer")
def wind_against_a_wall() -> pb.Problem:
    """Blow against the right wall of a square, at which a layer of 1/200 forms."""
    exact = (x - sp.exp(200 * (x - 1))) * sp.sin(sp.pi * y)
    return posed([-pb.laplacian(u) / 200 + u.diff(x)], {u: exact}, SQUARE)


@case("jump")
def rod_of_copper_and_cork() -> pb.Problem:
    k = sp.Piecewise((1000, x < R(3, 10)), (1, True))
    # k w' = a − x, with w(0) = 0 and w(1) = 0.
    left, right, a = R(3, 10), R(7, 10), sp.Symbol("a")
    first = (a * x - x**2 / 2) / 1000
    second = first.subs(x, left) + a * (x - left) - (x**2 - left**2) / 2
    level = sp.solve(second.subs(x, left + right), a)[0]
    exact = sp.Piecewise((first.subs(a, level), x < left), (second.subs(a, level), True))
    return pb.Problem(sp.Eq(-(k * w.diff(x)).diff(x), 1), LINE, [pb.Dirichlet(w, 0)], exact=exact)


@case("jump")
def heated_core() -> pb.Problem:
    """Heat a core that conducts ten times as well as what is around it."""
    core = pb.Disk((x, y), (0, 0), R(1, 2))
    k, r2 = pb.per_region({core: 10}, 1), x**2 + y**2
    exact = sp.Piecewise((r2 / 10 + R(9, 40), r2 < R(1, 4)), (r2, True))
    return pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), -4), DISK, [pb.Dirichlet(u, 1)], exact=exact)


@case("nonlinear")
def hanging_film() -> pb.Problem:
    slope = w.diff(x)
    return posed([-(slope / sp.sqrt(1 + slope**2)).diff(x) + w], {w: sp.cosh(x - R(1, 2))}, LINE)


@case("nonlinear")
def charges_in_a_disk() -> pb.Problem:
    return posed([-pb.laplacian(u) + sp.sinh(u)], {u: 2 * sp.sin(x) * sp.exp(y)}, DISK)


@case("system")
def creeping_in_a_disk() -> pb.Problem:
    exact = {u: -y * (1 + x), v: x + y**2 / 2, p: x * y}
    equations = [-pb.laplacian(u) + p.diff(x), -pb.laplacian(v) + p.diff(y), u.diff(x) + v.diff(y)]
    conditions = [pb.Dirichlet(u, exact[u]), pb.Dirichlet(v, exact[v]), pb.Mean(p, 0)]
    return pb.Problem([manufactured(e, exact, DISK) for e in equations], DISK, conditions, exact=exact)


@case("system")
def rubber_ring() -> pb.Problem:
    """Press a ring of rubber, whose volume hardly changes."""
    stress = pb.stress([u, v], young=1, poisson=R(49, 100), plane="strain")
    exact = {u: sp.sin(x) * sp.cosh(y), v: -sp.cos(x) * sp.sinh(y)}
    return posed([-pb.div(row) for row in stress.tolist()], exact, RING)


@case("space")
def ball_with_a_source() -> pb.Problem:
    ball = pb.Ball((x, y, z), (0, 0, 0), 1)
    return posed([-pb.laplacian(s)], {s: sp.sin(2 * x) * sp.cos(y) * sp.exp(z)}, ball)


@case("space")
def layered_rock() -> pb.Problem:
    """Conduct a thousandth as well upwards as sideways."""
    box = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    operator = -s.diff(x, 2) - s.diff(y, 2) - s.diff(z, 2) / 1000 + s
    return posed([operator], {s: sp.cos(x + y) * sp.exp(3 * z)}, box)


@case("time")
def torch_along_a_rod() -> pb.Problem:
    return posed([h.diff(t) - h.diff(x, 2) / 10], {h: sp.exp(-50 * (x - t) ** 2)}, LINE * during())


@case("time")
def three_overtones() -> pb.Problem:
    exact = sp.sin(3 * sp.pi * x) * sp.cos(6 * sp.pi * t)
    string = LINE * during()
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, exact.subs(t, 0)), pb.Initial(h.diff(t), 0)]
    return pb.Problem(sp.Eq(h.diff(t, 2), 4 * h.diff(x, 2)), string, conditions, exact=exact)


@case("time")
def spot_in_a_swirl() -> pb.Problem:
    """Turn a spot around the centre of a disk, while it spreads."""
    exact = sp.exp(-8 * ((x - sp.cos(t) / 2) ** 2 + (y - sp.sin(t) / 2) ** 2))
    operator = g.diff(t) - y * g.diff(x) + x * g.diff(y) - pb.laplacian(g) / 20
    return posed([operator], {g: exact}, DISK * during())


@case("units")
def film_in_metres() -> pb.Problem:
    """Heat a film of two millionths of a metre by 10¹² watts per cubic metre."""
    film = pb.Interval((x, 0, 2e-6))
    exact = 300 + R(10**12, 300) * x * (R(2, 10**6) - x)
    return pb.Problem(sp.Eq(-150 * w.diff(x, 2), 10**12), film, [pb.Dirichlet(w, 300)], exact=exact)


@case("units")
def plain_in_metres() -> pb.Problem:
    """Give a field of 10⁻¹² over a plain of a thousand kilometres."""
    plain = pb.Rectangle((x, 0, 10**6), (y, 0, 10**6))
    exact = sp.sin(3 * x / 10**6) * sp.exp(y / 10**6) / 10**12
    return posed([-pb.laplacian(u)], {u: exact}, plain)


@case("units")
def huge_values() -> pb.Problem:
    exact = 10**30 * sp.exp(x) * sp.sin(2 * y)
    return posed([-pb.laplacian(u) + 3 * u], {u: exact}, DISK)


@case("time")
def stiff_pull() -> pb.Problem:
    """Pull a number to a cosine within a ten-thousandth of a second."""
    equation = sp.Eq(c.diff(t), -10000 * (c - sp.cos(t)) - sp.sin(t))
    exact = sp.cos(t) + sp.exp(-10000 * t)
    return pb.Problem(equation, during(2), [pb.Initial(c, 2)], exact=exact)


@case("layer")
def spike_on_a_slope() -> pb.Problem:
    exact = x + sp.exp(-(((x - R(37, 100)) * 250) ** 2))
    equation = manufactured(-w.diff(x, 2) + w, {w: exact}, LINE)
    conditions = [
        pb.Dirichlet(w, exact, on=LINE.left),
        pb.Neumann(w, applied(w.diff(x), {w: exact}, LINE).subs(x, 1), on=LINE.right),
    ]
    return pb.Problem(equation, LINE, conditions, exact=exact)
