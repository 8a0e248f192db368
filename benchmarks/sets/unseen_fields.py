"""Nonlinear equations, systems, bodies in space, and beams and plates."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq
from scipy.special import erfc, i0

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import L_SHAPE, LINE, SQUARE, R, around, c, dirichlet, h, p, s, t, u, v, w, x, y, z
from pibls.problems.manufactured import applied, manufactured

case, fields = collected()
r = sp.sqrt(x**2 + y**2)
far = sp.sqrt(x**2 + y**2 + z**2)


def _named(exact: dict[Any, sp.Expr]) -> dict[str, sp.Expr]:
    return {of.label: value for of, value in exact.items()}


# Nonlinear ------------------------------------------------------------------------------------------------------------


@case("nonlinear")
def gas_in_a_porous_bed() -> pb.Problem:
    """Spread gas by u_t = (u²)_xx from a heap with an edge: there is nothing beyond it (Barenblatt)."""
    bed = pb.Interval((x, -8, 8))
    heap = 1 - x**2 / (12 * t ** R(2, 3))
    exact = sp.Piecewise((heap / sp.cbrt(t), heap > 0), (0, True))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.Max(0, 1 - x**2 / 12))]
    return pb.Problem(sp.Eq(h.diff(t), (h**2).diff(x, 2)), bed * pb.TimeInterval(t, 1, 4), conditions, exact=exact)


@case("nonlinear")
def nerve_front() -> pb.Problem:
    """Move a front between two states by a reaction with three rests."""
    line = pb.Interval((x, -20, 20))
    exact = 1 / (1 + sp.exp((x - sp.sqrt(2) * t / 4) / sp.sqrt(2)))
    equation = pb.parse("h_t = h_xx + h*(1 - h)*(h - 1/4)", "x t", [h])
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(equation, line * pb.TimeInterval(t, 0, 20), conditions, exact=exact)


def _bratu(theta: float) -> sp.Expr:
    return -2 * sp.log(sp.cosh((x - R(1, 2)) * theta / 2) / sp.cosh(theta / 4))


def _bratu_strength(theta: float) -> float:
    return float(theta**2 / (2 * np.cosh(theta / 4) ** 2))


def _either_of_two(solution: pb.Solution) -> float:
    """Return the distance to the nearer one of the two solutions there are."""
    other = brentq(lambda q: _bratu_strength(q) - _bratu_strength(4.7), 4.85, 5.2, xtol=1e-14)
    at = np.linspace(0, 1, 401)[1:-1]
    known = [sp.lambdify(x, _bratu(theta), "numpy")(at) for theta in (4.7, other)]
    found = solution(at[:, None])
    return float(min(np.linalg.norm(found - one) / np.linalg.norm(one) for one in known))


@case("nonlinear", error=_either_of_two)
def heat_close_to_ignition() -> pb.Problem:
    """Pose Bratu's equation two thousandths below the strength from which on there is no solution."""
    equation = sp.Eq(w.diff(x, 2) + sp.Float(_bratu_strength(4.7), 17) * sp.exp(w), 0)
    return pb.Problem(equation, LINE, [pb.Dirichlet(w, 0)], exact=_bratu(4.7))


@case("nonlinear")
def fish_in_a_lake() -> pb.Problem:
    """Let ten fish become a million, by a growth that slows down late (a Bernoulli equation)."""
    most = 10**6
    exact = most / sp.sqrt(1 + (R(most, 10) ** 2 - 1) * sp.exp(-4 * t))
    equation = sp.Eq(c.diff(t), 2 * c * (1 - (c / most) ** 2))
    return pb.Problem(equation, pb.TimeInterval(t, 0, 10), [pb.Initial(c, 10)], exact=exact)


@case("nonlinear")
def radiating_wall() -> pb.Problem:
    """Let a wall of 10 cm at 1200 K radiate from its other side, in W and m."""
    wall, sigma = pb.Interval((x, 0, R(1, 10))), R(567, 10**10)
    cool = brentq(lambda T: 20 * (1200 - T) / 0.1 - 5.67e-8 * T**4, 0, 1200, xtol=1e-12)
    exact = 1200 - 10 * x * (1200 - sp.Float(cool, 17))
    conditions = [pb.Dirichlet(w, 1200, on=wall.left)]
    conditions += [pb.Condition(sp.Eq(-20 * pb.normal_derivative(w), sigma * w**4), on=wall.right)]
    return pb.Problem(sp.Eq(20 * w.diff(x, 2), 0), wall, conditions, exact=exact)


@case("nonlinear")
def glowing_edge() -> pb.Problem:
    """Heat a plate that radiates along its upper side and conducts better when hot."""
    plate, sigma = pb.Rectangle((x, 0, R(1, 5)), (y, 0, R(1, 10))), R(567, 10**10)
    exact = 900 + 200 * sp.cos(10 * x) * sp.exp(-5 * y)
    k = 15 + u / 100
    flow = -k * pb.normal_derivative(u) - sigma * u**4
    equation = manufactured(pb.div(k * pb.grad(u)), {u: exact}, plate)
    conditions = [pb.Condition(sp.Eq(flow, applied(flow, {u: exact}, plate)), on=plate.top)]
    conditions += [pb.Dirichlet(u, exact, on=plate.left | plate.right | plate.bottom)]
    return pb.Problem(equation, plate, conditions, exact=exact)


@case("nonlinear")
def stiff_spring_bed() -> pb.Problem:
    """Press a membrane a hundred units deep into a bed whose push goes by the cube."""
    exact = 100 * sp.sin(sp.pi * x) * sp.sin(sp.pi * y) * sp.exp(x)
    equation = manufactured(-pb.laplacian(u) + u**3, {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(u, 0)], exact=exact)


@case("nonlinear")
def reaction_in_a_dish() -> pb.Problem:
    """Pose Gray and Scott's reaction at rest in a round dish."""
    dish, food, eater = pb.Disk((x, y), (0, 0), 1), u, v
    exact = {food: 1 - sp.exp(-(x**2) - 3 * y**2) / 2, eater: sp.exp(-3 * x**2 - (y - R(1, 3)) ** 2) / 3}
    equations = [
        manufactured(pb.laplacian(food) - food * eater**2 + R(1, 25) * (1 - food), exact, dish),
        manufactured(pb.laplacian(eater) / 2 + food * eater**2 - R(1, 10) * eater, exact, dish),
    ]
    conditions = [pb.Dirichlet(food, exact[food]), pb.Dirichlet(eater, exact[eater])]
    return pb.Problem(equations, dish, conditions, exact=_named(exact))


@case("nonlinear")
def distance_with_ridges() -> pb.Problem:
    """Pose ε Δu = |∇u|² − 1, whose solution is a roof of planes with ridges as wide as ε."""
    e = R(1, 50)
    planes = [x, R(3, 5) * x + R(4, 5) * y, y]
    exact = -e * sp.log(sp.Add(*(sp.exp(plane / e) for plane in planes)))
    return dirichlet(sp.Eq(e * pb.laplacian(u), u.diff(x) ** 2 + u.diff(y) ** 2 - 1), SQUARE, exact)


@case("nonlinear")
def ions_at_a_wall() -> pb.Problem:
    """Pose the double layer of ions at a wall, with a screening length of a nanometre (Gouy and Chapman)."""
    line, size = pb.Interval((x, 0, R(20, 10**9))), R(1, 10**9)
    exact = 4 * sp.atanh(sp.tanh(2) * sp.exp(-x / size))
    return dirichlet(sp.Eq(size**2 * w.diff(x, 2), sp.sinh(w)), line, exact, w)


# Systems --------------------------------------------------------------------------------------------------------------


@case("system")
def pushed_thread() -> pb.Problem:
    """Pull a thread of 4 cm through water in a trough of 2 by 1 m, by a flow that goes like the logarithm."""
    trough, thread = pb.Rectangle((x, 0, 2), (y, 0, 1)), pb.Disk((x, y), (R(3, 4), R(2, 5)), R(1, 50))
    X, Y, viscosity = x - R(3, 4), y - R(2, 5), R(1, 1000)
    square = X**2 + Y**2
    exact = {u: X**2 / square - sp.log(square) / 2, v: X * Y / square, p: 2 * viscosity * X / square}
    equations = [sp.Eq(-viscosity * pb.laplacian(of) + p.diff(k), 0) for of, k in ((u, x), (v, y))]
    conditions = [pb.Dirichlet(u, exact[u]), pb.Dirichlet(v, exact[v])]
    conditions += [pb.Dirichlet(p, exact[p].subs({x: R(3, 2), y: R(2, 5)}), on=(1.5, 0.4))]
    return pb.Problem([*equations, sp.Eq(pb.div([u, v]), 0)], trough - thread, conditions, exact=_named(exact))


@case("system")
def aquifer_of_two_beds() -> pb.Problem:
    """Let water seep along sand on clay, as head and discharge: the discharge jumps where nothing crosses."""
    bed = pb.Rectangle((x, 0, 100), (y, 0, 10))
    k = sp.Piecewise((R(1, 10**7), y < 4), (R(1, 10**4), True))
    head, along, up = u, v, p
    equations = [sp.Eq(along, -k * head.diff(x)), sp.Eq(up, -k * head.diff(y)), sp.Eq(pb.div([along, up]), 0)]
    conditions = [
        pb.Dirichlet(head, 20, on=bed.left),
        pb.Dirichlet(head, 15, on=bed.right),
        pb.Dirichlet(up, 0, on=bed.bottom | bed.top),
    ]
    return pb.Problem(equations, bed, conditions, exact={"u": 20 - x / 20, "v": k / 20, "p": sp.S.Zero})


@case("system")
def hot_pipe() -> pb.Problem:
    """Heat a pipe of steel from inside: 200 K move it by 10⁻⁴ m."""
    young, nu, alpha = 200 * 10**9, R(3, 10), R(12, 10**6)
    inner, outer = pb.Disk((x, y), (0, 0), R(1, 10)), pb.Disk((x, y), (0, 0), R(1, 5))
    heat = pb.field("T", x, y)
    warm = 200 * sp.log(R(1, 5) / r) / sp.log(2)
    # What T = ln(b/r) moves: (1 + ν)/(1 − ν) α/r times the integral of r T.
    moved = (1 + nu) / (1 - nu) * alpha * 200 / sp.log(2) * (sp.log(R(1, 5) / r) / 2 + R(1, 4))
    exact = {heat: warm, u: x * moved, v: y * moved}
    steel = pb.stress([u, v], young=young, poisson=nu)
    push = young * alpha / (1 - 2 * nu)
    equations = [sp.Eq(pb.laplacian(heat), 0)]
    equations += [sp.Eq(pb.div(row), push * heat.diff(k)) for row, k in zip(steel.tolist(), (x, y), strict=True)]
    conditions = [pb.Dirichlet(heat, 200, on=inner.boundary), pb.Dirichlet(heat, 0, on=outer.boundary)]
    conditions += [pb.Dirichlet(of, exact[of]) for of in (u, v)]
    return pb.Problem(equations, outer - inner, conditions, exact=_named(exact))


@case("system")
def field_of_a_wire() -> pb.Problem:
    """Pose the magnetic field of a current of 10 A in a soft wire: curl and divergence, and what crosses the sides."""
    box, size = pb.Rectangle((x, -R(1, 10), R(1, 10)), (y, -R(1, 20), R(1, 20))), R(1, 100)
    square, strength = x**2 + y**2, R(2, 10**6)
    swirl = strength * (1 - sp.exp(-square / size**2)) / square
    exact = {u: -y * swirl, v: x * swirl}
    current = 2 * strength / size**2 * sp.exp(-square / size**2)
    n_x, n_y = pb.normal(x, y)
    across = n_x * u + n_y * v
    conditions = [pb.Condition(sp.Eq(across, across.xreplace(exact)))]
    equations = [sp.Eq(pb.div([u, v]), 0), sp.Eq(v.diff(x) - u.diff(y), current)]
    return pb.Problem(equations, box, conditions, exact=_named(exact))


@case("system")
def shelf_of_timber() -> pb.Problem:
    """Bend a shelf by Timoshenko's equations: stiff against shear, a hundred thousand times softer against bending."""
    shelf, load, bending, shear = pb.Interval((x, 0, 2)), 300, 4000, 4 * 10**8
    turn = pb.field("turn", x)
    left = 2 - x
    turned = load * (8 - left**3) / (6 * sp.Integer(bending))
    sunk = load * (8 * x + (left**4 - 16) / 4) / (6 * sp.Integer(bending)) + load * (4 - left**2) / (
        2 * sp.Integer(shear)
    )
    equations = [
        sp.Eq(shear * (w.diff(x, 2) - turn.diff(x)), -load),
        sp.Eq(bending * turn.diff(x, 2) + shear * (w.diff(x) - turn), 0),
    ]
    conditions = [
        *(pb.Dirichlet(of, 0, on=shelf.left) for of in (w, turn)),
        pb.Dirichlet(turn.diff(x), 0, on=shelf.right),
        pb.Condition(sp.Eq(w.diff(x) - turn, 0), on=shelf.right),
    ]
    return pb.Problem(equations, shelf, conditions, exact={"w": sunk, "turn": turned})


@case("system")
def water_hammer() -> pb.Problem:
    """Close the valve of a pipe of a kilometre within a tenth of a second, pressure and speed in SI units."""
    pipe, density, celerity = pb.Interval((x, 0, 1000)), 1000, 1400
    pressure, speed = pb.field("pressure", x, t), pb.field("speed", x, t)
    moving = 1 - sp.tanh(40 * (t - (1000 - x) / celerity - R(1, 5)))
    exact = {pressure: density * celerity * (2 - moving), speed: moving}
    equations = [
        sp.Eq(pressure.diff(t) + density * celerity**2 * speed.diff(x), 0),
        sp.Eq(density * speed.diff(t) + pressure.diff(x), 0),
    ]
    conditions = [
        pb.Dirichlet(pressure, exact[pressure].subs(x, 0), on=pipe.left),
        pb.Dirichlet(speed, exact[speed].subs(x, 1000), on=pipe.right),
        *(pb.Initial(of, value.subs(t, 0)) for of, value in exact.items()),
    ]
    return pb.Problem(equations, pipe * pb.TimeInterval(t, 0, R(3, 5)), conditions, exact=_named(exact))


def _ierfc(Z: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-(Z**2)) / np.sqrt(np.pi) - Z * erfc(Z))


def _pore(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    k, reach = np.pi * (np.arange(40)[:, None] + 0.5) / 5, np.sqrt(8e-7 * np.maximum(T, 1e-300))
    late = (2 / (5 * k) * np.exp(-2e-7 * k**2 * T) * np.sin(k * X)).sum(axis=0)
    early = 1 - erfc(X / reach) - erfc((10 - X) / reach)
    return np.asarray(1e5 * np.where(reach > 1.5, late, early))


def _settled(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    k, reach = np.pi * (np.arange(40)[:, None] + 0.5) / 5, np.sqrt(8e-7 * np.maximum(T, 1e-300))
    late = (2 / (5 * k**2) * np.exp(-2e-7 * k**2 * T) * np.cos(k * X)).sum(axis=0)
    early = 5 - X - reach * (_ierfc(X / reach) - _ierfc((10 - X) / reach))
    return np.asarray(1e5 * (5 - X - np.where(reach > 1.5, late, early)) / 4e6)


@case("system")
def clay_under_a_dam() -> pb.Problem:
    """Let 5 m of clay settle for a year under 100 kPa, which its water bears at first (Terzaghi); x goes down."""
    clay = pb.Interval((x, 0, 5))
    pore, down = pb.field("pore", x, t), pb.field("down", x, t)
    known = {"pore": pb.data("pore_known", _pore, x, t), "down": pb.data("down_known", _settled, x, t)}
    equations = [
        sp.Eq(pore.diff(t), R(2, 10**7) * pore.diff(x, 2)),
        sp.Eq(4 * 10**6 * down.diff(x, 2), pore.diff(x)),
    ]
    conditions = [
        pb.Dirichlet(pore, 0, on=clay.left),
        pb.Neumann(pore, 0, on=clay.right),
        pb.Initial(pore, 100000),
        pb.Condition(sp.Eq(4 * 10**6 * down.diff(x), -100000), on=clay.left),
        pb.Dirichlet(down, 0, on=clay.right),
    ]
    return pb.Problem(equations, clay * pb.TimeInterval(t, 0, 31536000), conditions, exact=known)


@case("system")
def cell_of_vortices() -> pb.Problem:
    """Stir a fluid that repeats both ways; means are all that is left open, and given."""
    cell = pb.Rectangle((x, 0, 2 * sp.pi), (y, 0, 2 * sp.pi))
    exact = {u: sp.sin(x) * sp.cos(y), v: -sp.cos(x) * sp.sin(y), p: sp.cos(2 * x) * sp.sin(y)}
    equations = [manufactured(-pb.laplacian(of) + p.diff(k), exact, cell) for of, k in ((u, x), (v, y))]
    conditions = [k for of in (u, v, p) for k in (pb.Periodic(of, x), pb.Periodic(of, y), pb.Mean(of, 0))]
    return pb.Problem([*equations, sp.Eq(pb.div([u, v]), 0)], cell, conditions, exact=_named(exact))


# Bodies in space ------------------------------------------------------------------------------------------------------


@case("space")
def warm_rod() -> pb.Problem:
    """Hold the side of a rod of 10 cm, insulate its ends: u = I₀(k r) cos k z."""
    rod = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, R(1, 5)), R(1, 20))
    exact = pb.data("rod", lambda X, Y, Z: i0(10 * np.pi * np.hypot(X, Y)) * np.cos(10 * np.pi * Z), x, y, z)
    conditions = [pb.Dirichlet(s, exact, on=rod.side), pb.Neumann(s, 0, on=rod.bottom | rod.top)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), rod, conditions, exact=exact)


@case("space")
def angle_iron() -> pb.Problem:
    """Insulate the inner faces of an angle, around whose edge u is like r^(2/3), and let heat flow along."""
    iron = pb.Extrusion(L_SHAPE, (z, 0, 2))
    exact = (1 + z) * r ** R(2, 3) * sp.sin(R(2, 3) * around(3 * sp.pi / 4))
    flux = applied(pb.normal_derivative(s), {s: exact}, iron)
    outside = iron.edge1 | iron.edge2 | iron.edge3 | iron.edge4
    conditions = [
        pb.Neumann(s, 0, on=iron.edge0 | iron.edge5),
        pb.Dirichlet(s, exact, on=outside),
        pb.Neumann(s, flux, on=iron.bottom | iron.top),
    ]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), iron, conditions, exact=exact)


@case("space")
def ball_in_the_wind() -> pb.Problem:
    """Heat a ball of 4 m from inside and cool it unevenly."""
    ball = pb.Ball((x, y, z), (3, -2, 1), 2)
    X, Y, Z = x - 3, y + 2, z - 1
    exact = 300 - 5 * (X**2 + Y**2 + Z**2) + 8 * X * Y - 3 * Z + X * Y * Z
    flux = applied(pb.normal_derivative(s), {s: exact}, ball)
    return pb.Problem(sp.Eq(-pb.laplacian(s), 30), ball, [pb.Robin(s, 25, 2, 25 * exact + 2 * flux)], exact=exact)


@case("space")
def mantle_of_the_earth() -> pb.Problem:
    """Conduct heat through the mantle, in metres: its flux given below, its temperature above."""
    outer, inner = (pb.Ball((x, y, z), (0, 0, 0), size) for size in (6371000, 3480000))
    exact = 1000 + R(7, 1) * 10**9 / far + 10**16 * z / far**3
    domain = outer - inner
    flux = applied(pb.normal_derivative(s), {s: exact}, domain)
    conditions = [pb.Neumann(s, flux, on=inner.boundary), pb.Dirichlet(s, exact, on=outer.boundary)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), domain, conditions, exact=exact)


@case("space")
def ball_bearing_in_resin() -> pb.Problem:
    """Put a ball that conducts a thousand times as well off the middle of a box."""
    box = pb.Box((x, -1, 1), (y, -1, 1), (z, -1, 1))
    ball = pb.Ball((x, y, z), (R(1, 5), 0, -R(1, 10)), R(1, 2))
    X, Y, Z = x - R(1, 5), y, z + R(1, 10)
    distance, k = sp.sqrt(X**2 + Y**2 + Z**2), 1000
    outside = Z * (1 - R(k - 1, k + 2) * R(1, 8) / distance**3)
    exact = sp.Piecewise((R(3, k + 2) * Z, distance**2 < R(1, 4)), (outside, True))
    return dirichlet(sp.Eq(pb.div(pb.per_region({ball: k}, 1) * pb.grad(s)), 0), box, exact, s)


@case("space")
def hanging_pillar() -> pb.Problem:
    """Hang a pillar of concrete from its top: all other sides are free."""
    young, nu, weight = 30 * 10**9, R(1, 5), 24000
    pillar = pb.Box((x, 0, R(1, 2)), (y, 0, R(1, 2)), (z, 0, 3))
    a, b, e = (pb.field(name, x, y, z) for name in "abe")
    size = sp.Rational(weight, young)
    exact = {a: -nu * size * x * z, b: -nu * size * y * z, e: size * (z**2 + nu * (x**2 + y**2)) / 2}
    concrete = pb.stress([a, b, e], young=young, poisson=nu)
    free = pillar.left | pillar.right | pillar.front | pillar.back | pillar.bottom
    conditions = [*pb.Traction(concrete, 0, on=free)]
    conditions += [pb.Dirichlet(of, value, on=pillar.top) for of, value in exact.items()]
    equations = [sp.Eq(pb.div(row), f) for row, f in zip(concrete.tolist(), (0, 0, weight), strict=True)]
    return pb.Problem(equations, pillar, conditions, exact=_named(exact))


def _weber(X: np.ndarray, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    across = np.hypot(X, Y)
    whole = np.hypot(across - 1, Z) + np.hypot(across + 1, Z)
    return np.asarray(2 / np.pi * np.arcsin(np.minimum(2 / whole, 1)))


@case("space")
def round_contact() -> pb.Problem:
    """Feed a current into a block through a round contact (Weber's disc); the rest of that side is insulated."""
    block, exact = pb.Box((x, -2, 2), (y, -2, 2), (z, -2, 0)), pb.data("weber", _weber, x, y, z)
    contact = block.top.where(lambda X: np.hypot(X[:, 0], X[:, 1]) < 1)
    beside = block.top.where(lambda X: np.hypot(X[:, 0], X[:, 1]) >= 1)
    rest = block.left | block.right | block.front | block.back | block.bottom
    conditions = [pb.Dirichlet(s, 1, on=contact), pb.Neumann(s, 0, on=beside), pb.Dirichlet(s, exact, on=rest)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), block, conditions, exact=exact)


@case("space")
def two_bubbles() -> pb.Problem:
    """Let gas leave two bubbles of different size in a box."""
    box = pb.Box((x, 0, 2), (y, 0, 1), (z, 0, 1))
    bubbles = [((R(1, 2), R(1, 2), R(2, 5)), R(1, 5), 2), ((R(7, 5), R(3, 5), R(1, 2)), R(1, 10), 5)]
    balls = [pb.Ball((x, y, z), centre, size) for centre, size, _ in bubbles]
    exact = sum(strength / sp.sqrt((x - a) ** 2 + (y - b) ** 2 + (z - e) ** 2) for (a, b, e), _, strength in bubbles)
    domain = box - balls[0] - balls[1]
    flux = applied(pb.normal_derivative(s), {s: exact}, domain)
    conditions = [pb.Neumann(s, flux, on=ball.boundary) for ball in balls]
    conditions += [pb.Dirichlet(s, exact, on=box.boundary)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), domain, conditions, exact=exact)


# Beams and plates -----------------------------------------------------------------------------------------------------


@case("fourth order")
def stepped_beam() -> pb.Problem:
    """Load the end of a beam that is forty times as stiff in its first part."""
    beam, stiff, soft, load, step = pb.Interval((x, 0, 2)), 2 * 10**6, 5 * 10**4, 1000, R(4, 5)
    sunk = load * (x**2 - x**3 / 6)
    inner = sunk / stiff
    rest = (sunk - sunk.subs(x, step) - sunk.diff(x).subs(x, step) * (x - step)) / soft
    outer = inner.subs(x, step) + inner.diff(x).subs(x, step) * (x - step) + rest
    k = sp.Piecewise((stiff, x < step), (soft, True))
    conditions = [pb.Dirichlet(w, 0, on=beam.left), pb.Dirichlet(w.diff(x), 0, on=beam.left)]
    conditions += [
        pb.Dirichlet(w.diff(x, 2), 0, on=beam.right),
        pb.Dirichlet(w.diff(x, 3), -R(load, soft), on=beam.right),
    ]
    exact = sp.Piecewise((inner, x < step), (outer, True))
    return pb.Problem(sp.Eq((k * w.diff(x, 2)).diff(x, 2), 0), beam, conditions, exact=exact)


@case("fourth order")
def beam_under_a_crate() -> pb.Problem:
    """Load a supported beam of 3 m over 60 cm."""
    beam, bending, load, a, b = pb.Interval((x, 0, 3)), 2 * 10**5, 5000, R(9, 10), R(3, 2)

    def rest(power: int) -> sp.Expr:
        return (3 - a) ** power - (3 - b) ** power

    cubic = -sp.Rational(load) * rest(2) / (2 * 3 * 6)  # so that the moment is zero at the end
    linear = -(sp.Rational(load) * rest(4) / 24 + cubic * 27) / 3
    over = [sp.Piecewise((0, x < at), ((x - at) ** 4, True)) for at in (a, b)]
    exact = (load * (over[0] - over[1]) / 24 + cubic * x**3 + linear * x) / bending
    crate = sp.Piecewise((0, x < a), (load, x < b), (0, True))
    conditions = [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x, 2), 0)]
    return pb.Problem(sp.Eq(bending * w.diff(x, 4), crate), beam, conditions, exact=exact)


@case("fourth order")
def rail_on_ballast() -> pb.Problem:
    """Load a rail on ballast from one point on."""
    rail, bending, bed, load = pb.Interval((x, -5, 5)), 6 * 10**6, 30 * 10**6, 50000
    k = sp.root(R(bed, 4 * bending), 4)
    exact = R(load, bed) * sp.Piecewise(
        (1 - sp.exp(k * x) * sp.cos(k * x) / 2, x < 0), (sp.exp(-k * x) * sp.cos(k * x) / 2, True)
    )
    conditions = [pb.Dirichlet(w, exact), pb.Dirichlet(w.diff(x), exact.diff(x))]
    equation = sp.Eq(bending * w.diff(x, 4) + bed * w, sp.Piecewise((load, x < 0), (0, True)))
    return pb.Problem(equation, rail, conditions, exact=exact)


@case("fourth order")
def lid_of_a_tank() -> pb.Problem:
    """Clamp a round plate under water: its load grows with depth."""
    lid = pb.Disk((x, y), (0, 0), R(1, 2))
    exact = R(2000, 192 * 10**4) * x * (R(1, 4) - x**2 - y**2) ** 2
    equation = sp.Eq(10**4 * pb.laplacian(pb.laplacian(u)), 2000 * x)
    return pb.Problem(equation, lid, [pb.Dirichlet(u, 0), pb.Neumann(u, 0)], exact=exact)


@case("fourth order")
def clamped_notch() -> pb.Problem:
    """Clamp a plate along an inward corner, where its deflection is like r^1.54."""
    half = 3 * np.pi / 4

    def matching(power: float) -> float:
        a, b = power - 1, power + 1
        return float(a * np.sin(a * half) * np.cos(b * half) - b * np.sin(b * half) * np.cos(a * half))

    power = sp.Float(brentq(matching, 0.5, 0.6, xtol=1e-15), 17)
    angle, less, more = sp.atan2(-x - y, y - x), power - 1, power + 1  # from the middle of the corner
    one, two = (1 / sp.cos(k * sp.Float(half, 17)) for k in (less, more))
    exact = r**more * (one * sp.cos(less * angle) - two * sp.cos(more * angle))
    beside = L_SHAPE.edge0 | L_SHAPE.edge5
    rest = L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    slope = applied(pb.normal_derivative(u), {u: exact}, L_SHAPE)
    conditions = [pb.Dirichlet(u, 0, on=beside), pb.Neumann(u, 0, on=beside)]
    conditions += [pb.Dirichlet(u, exact, on=rest), pb.Neumann(u, slope, on=rest)]
    return pb.Problem(sp.Eq(pb.laplacian(pb.laplacian(u)), 0), L_SHAPE, conditions, exact=exact)
