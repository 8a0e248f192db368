"""Steady problems in the plane that are nonlinear or of several fields: solids, flows, heat and chemistry together."""

from __future__ import annotations

from typing import Any

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, SQUARE, R, p, u, v, x, y
from benchmarks.sets.posing import ASKED, SEEDS, held, posed, told

case, fields = collected(ASKED, SEEDS)
T = pb.field("T", x, y)
r2 = x**2 + y**2
r = sp.sqrt(r2)
FORCES = ((u, x), (v, y))


def _balance(stress: Any) -> list[Any]:
    return [pb.div(row) for row in stress.tolist()]


def _fluid(viscosity: Any) -> sp.Matrix:
    shear = viscosity * (u.diff(y) + v.diff(x))
    return sp.Matrix([[2 * viscosity * u.diff(x) - p, shear], [shear, 2 * viscosity * v.diff(y) - p]])


# Solids ---------------------------------------------------------------------------------------------------------------


@case("solids")
def turbine_disc() -> pb.Problem:
    """Spin a quarter of a steel disc of 20 cm at 10 000 turns per minute: metres, pascals and kilograms."""
    radius, young, poisson, load = R(1, 5), 210 * 10**9, R(3, 10), 7850 * 1047**2
    rim = pb.Disk((x, y), (0, 0), radius)
    quarter = pb.Rectangle((x, 0, radius), (y, 0, radius)) & rim
    wide = (1 - poisson) * load / (8 * young) * ((3 + poisson) * radius**2 - (1 + poisson) * r2)
    steel = pb.stress([u, v], young=young, poisson=poisson, plane="stress")
    equations = [sp.Eq(one, -load * place) for one, place in zip(_balance(steel), (x, y), strict=True)]
    conditions = [*pb.Symmetry([u, v], on=quarter.left | quarter.bottom)]
    conditions += [*pb.Traction(steel, 0, on=quarter.lift(rim.boundary))]
    return pb.Problem(equations, quarter, conditions, exact={u: wide * x, v: wide * y})


@case("solids")
def ring_shrunk_onto_a_hub() -> pb.Problem:
    """Press a brass hub that is one part in a thousand too large into a steel ring; millimetres and megapascals."""
    hub, ring = pb.Disk((x, y), (0, 0), 20), pb.Disk((x, y), (0, 0), 40)
    quarter = pb.Rectangle((x, 0, 40), (y, 0, 40)) & ring
    soft, hard, poisson, over = 100_000, 210_000, R(3, 10), R(1, 1000)
    a, b, c = sp.symbols("a b c")
    inner = soft * (a - over) / (1 - poisson)

    def outer(at: sp.Expr) -> sp.Expr:
        return hard * (b / (1 - poisson) - c / ((1 + poisson) * at**2))

    found = sp.solve([a - b - c / 400, inner - outer(sp.Integer(20)), outer(sp.Integer(40))], [a, b, c])
    wide = sp.Piecewise((found[a], r2 < 400), (found[b] + found[c] / r2, True))
    young, strain = pb.per_region({hub: soft}, hard), pb.per_region({hub: over}, 0)
    both = pb.stress([u, v], young=young, poisson=poisson, plane="stress", expansion=strain)
    conditions = [*pb.Symmetry([u, v], on=quarter.left | quarter.bottom)]
    conditions += [*pb.Traction(both, 0, on=quarter.lift(ring.boundary))]
    exact = {u: wide * x, v: wide * y}
    return pb.Problem([sp.Eq(one, 0) for one in _balance(both)], quarter, conditions, exact=exact)


@case("coupled")
def chip_that_warms() -> pb.Problem:
    """Warm 5 mm of silicon that expands: kelvins beside tenths of micrometres, in SI units."""
    size = R(5, 1000)
    chip = pb.Rectangle((x, 0, size), (y, 0, size))
    warm = 320 + 10**6 * (x**2 - y**2) + 2000 * y
    exact = {T: warm, u: R(1, 10**7) * sp.sin(3 * x / size) * y / size, v: R(2, 10**7) * sp.cos(2 * y / size)}
    silicon = pb.stress([u, v], young=130 * 10**9, poisson=R(28, 100), expansion=R(26, 10**7) * (T - 293))
    operators = [pb.laplacian(T), *_balance(silicon)]
    return posed(operators, exact, chip)


@case("fourth order")
def lid_of_a_boiler() -> pb.Problem:
    """Bend a round lid that rests on its rim, in newtons and metres: the moment across the rim is zero."""
    radius, load, stiff, poisson = R(1, 2), 20_000, 18_000, R(3, 10)
    lid = pb.Disk((x, y), (0, 0), radius)
    exact = R(load, 64 * stiff) * (radius**2 - r2) * ((5 + poisson) / (1 + poisson) * radius**2 - r2)
    nx, ny = pb.normal(x, y)
    xx, xy, yy = u.diff(x, 2), u.diff(x, y), u.diff(y, 2)
    across, along = nx**2 * xx + 2 * nx * ny * xy + ny**2 * yy, ny**2 * xx - 2 * nx * ny * xy + nx**2 * yy
    conditions = [pb.Dirichlet(u, 0), pb.Condition(sp.Eq(across + poisson * along, 0))]
    equation = sp.Eq(stiff * pb.laplacian(pb.laplacian(u)), load)
    return pb.Problem(equation, lid, conditions, exact=exact)


@case("solids")
def rubber_block() -> pb.Problem:
    """Deform rubber that hardly changes its volume: Poisson's ratio is 0.4999."""
    stream = sp.sin(2 * x) * sp.cos(y) / 10
    exact = {u: stream.diff(y), v: -stream.diff(x)}
    rubber = pb.stress([u, v], young=3, poisson=R(4999, 10000))
    conditions = [*held(exact, SQUARE.left | SQUARE.bottom)]
    nx, ny = pb.normal(x, y)
    conditions += [told(row[0] * nx + row[1] * ny, exact, SQUARE, SQUARE.right | SQUARE.top) for row in rubber.tolist()]
    return posed(_balance(rubber), exact, SQUARE, conditions)


@case("nonlinear")
def strip_stretched_far() -> pb.Problem:
    """Stretch a sheet by half of its length, after Saint Venant and Kirchhoff."""
    lame, shear = 2, 1
    move = sp.Matrix([[1 + u.diff(x), u.diff(y)], [v.diff(x), 1 + v.diff(y)]])
    strain = (move.T * move - sp.eye(2)) / 2
    first = move * (lame * strain.trace() * sp.eye(2) + 2 * shear * strain)
    exact = {u: x / 2 + sp.sin(x) * y / 10, v: -y / 5 + x * y / 10}
    operators = [first[k, 0].diff(x) + first[k, 1].diff(y) for k in range(2)]
    return posed(operators, exact, SQUARE)


# Flows ----------------------------------------------------------------------------------------------------------------


@case("nonlinear")
def oil_in_a_bearing() -> pb.Problem:
    """Turn the inner one of two cylinders with oil between them; the pressure is known at one point."""
    shell, core = pb.Disk((x, y), (0, 0), 2), pb.Disk((x, y), (0, 0), 1)
    gap = shell - core
    a, b = R(-1, 3), R(4, 3)
    turn = a + b / r2
    push = a**2 * r2 / 2 + a * b * sp.log(r2) - b**2 / (2 * r2) + 3
    exact = {u: -y * turn, v: x * turn, p: push}
    inertia = [u * of.diff(x) + v * of.diff(y) for of in (u, v)]
    equations = [
        sp.Eq(own - pb.laplacian(of) / 20 + p.diff(k), 0) for own, (of, k) in zip(inertia, FORCES, strict=True)
    ]
    conditions = [
        pb.Dirichlet(of, value, on=on.boundary) for on in (shell, core) for of, value in list(exact.items())[:2]
    ]
    conditions.append(pb.Dirichlet(p, push.subs({x: R(3, 2), y: 0}), on=(1.5, 0)))
    return pb.Problem([*equations, sp.Eq(pb.div([u, v]), 0)], gap, conditions, exact=exact)


@case("nonlinear")
def wing_that_sucks() -> pb.Problem:
    """Suck a flow into a porous wall, which keeps its boundary layer thin."""
    near = pb.Rectangle((x, 0, 2), (y, 0, 1))
    exact = {u: 1 - sp.exp(-25 * y) + x / 10, v: -R(1, 2) - y / 10, p: 5 - 2 * x + sp.cos(y)}
    operators = [u * of.diff(x) + v * of.diff(y) - pb.laplacian(of) / 50 + p.diff(k) for of, k in FORCES]
    conditions = [*held({u: exact[u], v: exact[v]}), pb.Mean(p, 3 + sp.sin(1))]
    return posed([*operators, pb.div([u, v])], exact, near, conditions)


@case("units")
def blood_in_a_chip() -> pb.Problem:
    """Drive a fluid through a channel of 100 by 500 µm with an open end: metres, pascals and seconds."""
    wide, long, push, thick = R(1, 10**4), R(5, 10**4), 40_000, R(3, 1000)
    channel = pb.Rectangle((x, 0, long), (y, 0, wide))
    exact = {u: push / (2 * thick) * y * (wide - y), v: sp.S.Zero, p: push * (long - x) + 101_325}
    flow, nx, ny = _fluid(thick), *pb.normal(x, y)
    conditions = [*held({u: exact[u], v: exact[v]}, channel.left | channel.bottom | channel.top)]
    conditions += [told(row[0] * nx + row[1] * ny, exact, channel, channel.right) for row in flow.tolist()]
    equations = [*(sp.Eq(one, 0) for one in _balance(flow)), sp.Eq(pb.div([u, v]), 0)]
    return pb.Problem(equations, channel, conditions, exact=exact)


@case("interfaces")
def oil_over_water() -> pb.Problem:
    """Drive oil over water through a channel: their speed goes on, their shear too."""
    oil, middle = 8, R(2, 5)
    channel = pb.Rectangle((x, 0, 2), (y, 0, 1))
    thick = sp.Piecewise((1, y < middle), (oil, True))
    shear, level = sp.symbols("shear level")  # the shear at the wall, and the speed of the interface
    water = shear * y - y**2 / 2
    above = (shear * (y - middle) - (y**2 - middle**2) / 2) / oil + level
    found = sp.solve([water.subs(y, middle) - level, above.subs(y, 1)], [shear, level])
    exact = {u: sp.Piecewise((water.subs(found), y < middle), (above.subs(found), True)), v: sp.S.Zero, p: -x}
    equations = [*(sp.Eq(one, 0) for one in _balance(_fluid(thick))), sp.Eq(pb.div([u, v]), 0)]
    conditions = [*held({u: exact[u], v: exact[v]}), pb.Mean(p, -1)]
    return pb.Problem(equations, channel, conditions, exact=exact)


@case("flow")
def seepage_through_clay() -> pb.Problem:
    """Find speeds and pressure of ground water together, where the ground lets through very little in places."""
    k = sp.exp(3 * sp.sin(3 * x) * sp.cos(2 * y))
    push = sp.cos(x) * sp.exp(y)
    exact = {u: -k * push.diff(x), v: -k * push.diff(y), p: push}
    operators = [u / k + p.diff(x), v / k + p.diff(y), pb.div([u, v])]
    nx, ny = pb.normal(x, y)
    sides = SQUARE.left | SQUARE.right
    conditions = [*held({p: push}, SQUARE.bottom | SQUARE.top), told(u * nx + v * ny, exact, SQUARE, sides)]
    return posed(operators, exact, SQUARE, conditions)


@case("nonlinear")
def air_over_a_heater() -> pb.Problem:
    """Let warm air rise: a flow and a temperature that drive each other."""
    stream = sp.sin(sp.pi * x) ** 2 * sp.sin(sp.pi * y) ** 2 / 4
    exact = {u: stream.diff(y), v: -stream.diff(x), p: sp.sin(x) * y, T: 1 - y + sp.sin(sp.pi * y) * sp.cos(x) / 4}
    carried = {of: u * of.diff(x) + v * of.diff(y) for of in (u, v, T)}
    operators = [
        carried[u] - pb.laplacian(u) / 10 + p.diff(x),
        carried[v] - pb.laplacian(v) / 10 + p.diff(y) - 5 * T,
        pb.div([u, v]),
        carried[T] - pb.laplacian(T) / 7,
    ]
    level = (1 - sp.cos(1)) / 2
    conditions = [pb.Dirichlet(u, 0), pb.Dirichlet(v, 0), pb.Dirichlet(T, exact[T]), pb.Mean(p, level)]
    return posed(operators, exact, SQUARE, conditions)


@case("plasma")
def rings_of_plasma() -> pb.Problem:
    """Find the flux of a plasma after Grad, Shafranov and Solov'ev, in its radius x and height y."""
    torus = pb.Implicit((x, y), (x - 1) ** 2 + y**2 / 2 - R(4, 25), [(R(1, 2), R(3, 2)), (-1, 1)])
    exact = x**4 / 8 - x**2 / 4 + (x**4 - 4 * x**2 * y**2) / 10
    equation = sp.Eq(u.diff(x, 2) - u.diff(x) / x + u.diff(y, 2), x**2)
    return pb.Problem(equation, torus, [pb.Dirichlet(u, exact)], exact=exact)


# Nonlinear ------------------------------------------------------------------------------------------------------------


@case("nonlinear")
def gas_of_charges() -> pb.Problem:
    """Let charges of one sign push each other to the wall, after Liouville."""
    pipe = pb.Disk((x, y), (0, 0), R(4, 5))
    exact = sp.log(8 / (1 - r2) ** 2)
    return pb.Problem(sp.Eq(pb.laplacian(u), sp.exp(u)), pipe, [pb.Dirichlet(u, exact)], exact=exact)


@case("nonlinear")
def soap_film_on_a_screw() -> pb.Problem:
    """Stretch a soap film over a part of a winding stair: a helicoid."""
    part = pb.Rectangle((x, R(1, 2), 2), (y, -1, 1))
    one, two = u.diff(x), u.diff(y)
    film = (1 + two**2) * one.diff(x) - 2 * one * two * one.diff(y) + (1 + one**2) * two.diff(y)
    exact = sp.atan(y / x)
    return pb.Problem(sp.Eq(film, 0), part, [pb.Dirichlet(u, exact)], exact=exact)


@case("nonlinear")
def first_arrival() -> pb.Problem:
    """Find when a wave arrives from two sides, with a little smoothing: a fold where both meet."""
    little = R(1, 20)
    exact = -little * sp.log(sp.exp(-x / little) + sp.exp(-y / little))
    front = u.diff(x) ** 2 + u.diff(y) ** 2 - little * pb.laplacian(u)
    return pb.Problem(sp.Eq(front, 1), SQUARE, [pb.Dirichlet(u, exact)], exact=exact)


@case("nonlinear")
def furnace_wall() -> pb.Problem:
    """Let a wall of 30 by 20 cm radiate on one side, by the fourth power of its kelvins."""
    wall = pb.Rectangle((x, 0, R(3, 10)), (y, 0, R(1, 5)))
    exact, sigma = 900 + 4000 * (x**2 - y**2) - 1500 * x, R(567, 10**10)
    glow = 2 * pb.normal_derivative(T) + sigma * T**4
    known = {T: exact}
    rest = wall.boundary - wall.right
    return pb.Problem(
        sp.Eq(pb.laplacian(T), 0), wall, [*held(known, rest), told(glow, known, wall, wall.right)], exact=known
    )


@case("nonlinear")
def pipe_of_graphite() -> pb.Problem:
    """Conduct heat through a pipe whose conductivity falls with temperature, in kelvins."""
    core, shell = pb.Disk((x, y), (0, 0), R(1, 2)), pb.Disk((x, y), (0, 0), 1)
    falls = R(1, 1000)
    # (1 - T/1000)² falls linearly with the logarithm of the radius.
    hot, cold = (1 - falls * 800) ** 2, (1 - falls * 300) ** 2
    exact = (1 - sp.sqrt(cold + (hot - cold) * sp.log(r) / sp.log(R(1, 2)))) / falls
    conditions = [pb.Dirichlet(T, 800, on=core.boundary), pb.Dirichlet(T, 300, on=shell.boundary)]
    equation = sp.Eq(pb.div((1 - falls * T) * pb.grad(T)), 0)
    return pb.Problem(equation, shell - core, conditions, exact={T: exact})


@case("nonlinear")
def wall_between_two_magnets() -> pb.Problem:
    """Turn from one phase to the other across a slanted wall, after Allen and Cahn."""
    width = R(1, 20)
    exact = sp.tanh((x + y - 1) / (2 * width))
    operator = sp.Eq(width**2 * pb.laplacian(u), u**3 - u)
    return pb.Problem(operator, SQUARE, [pb.Dirichlet(u, exact)], exact=exact)


@case("nonlinear")
def two_reactants() -> pb.Problem:
    """Consume two reactants by each other, one of which is a trace."""
    exact = {u: 2 + x * y, v: R(1, 10**5) * (1 + sp.sin(2 * x + y))}
    operators = [pb.laplacian(u) - 10**5 * u * v, pb.laplacian(v) - 4 * u * v]
    return posed(operators, exact, DISK)


@case("nonlinear")
def two_steels_that_warm() -> pb.Problem:
    """Conduct heat through two metals, both better when warm, that meet along a slanted line."""
    seam = 2 * x + y - R(3, 2)
    ratio = sp.Piecewise((1, seam < 0), (6, True))
    # u + u³/3 is linear on both sides, and its slope times the conductivity goes on.
    whole = 3 * seam / ratio
    exact = 2 * sp.sinh(sp.asinh(3 * whole / 2) / 3)
    equation = sp.Eq(pb.div(ratio * (1 + u**2) * pb.grad(u)), 0)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(u, exact)], exact=exact)
