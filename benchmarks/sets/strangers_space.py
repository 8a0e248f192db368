"""Steady problems in space: boxes, balls, cylinders, rings and what is cut from them."""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import R, s, x, y, z
from benchmarks.sets.posing import ASKED, SEEDS, held, posed, told

case, space = collected(ASKED, SEEDS)
a, b, c, p = (pb.field(name, x, y, z) for name in "abcp")
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
r = sp.sqrt(x**2 + y**2 + z**2)
slope = pb.normal_derivative(s)
LAPLACE = sp.Eq(pb.laplacian(s), 0)


@case("space")
def pellet_of_two_millimetres() -> pb.Problem:
    """Consume 50 mol/m³ in a ball of 2 mm, in metres, with a Thiele modulus of 3."""
    radius, thiele = R(2, 1000), 1500
    exact = 50 * radius * sp.sinh(thiele * r) / (r * sp.sinh(3))
    pellet = pb.Ball((x, y, z), (0, 0, 0), radius)
    return pb.Problem(sp.Eq(pb.laplacian(s), thiele**2 * s), pellet, [pb.Dirichlet(s, 50)], exact=exact)


@case("space")
def rod_that_loses_heat() -> pb.Problem:
    """Cool a round rod along its side, and hold its ends."""
    rod = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), 1)
    exact = sp.besseli(0, sp.sqrt(x**2 + y**2)) * sp.sin(z) + x * y
    known = {s: exact}
    conditions = [*held(known, rod.bottom | rod.top), told(3 * s + slope, known, rod, rod.side)]
    return pb.Problem(LAPLACE, rod, conditions, exact=exact)


@case("solids")
def pillar_that_hangs() -> pb.Problem:
    """Hang a steel pillar of 3 m by its top; its weight stretches it by micrometres: metres and pascals."""
    long, young, poisson, weight = 3, 210 * 10**9, R(3, 10), 77_000
    pillar = pb.Box((x, R(-1, 5), R(1, 5)), (y, R(-1, 5), R(1, 5)), (z, 0, long))
    each = R(weight, young)
    sinking = each / 2 * (z**2 - long**2 + poisson * (x**2 + y**2))
    exact = {a: -poisson * each * x * z, b: -poisson * each * y * z, c: sinking}
    steel = pb.stress([a, b, c], young=young, poisson=poisson)
    equations = [sp.Eq(pb.div(row), load) for row, load in zip(steel.tolist(), (0, 0, weight), strict=True)]
    free = pillar.boundary - pillar.top
    conditions = [*held(exact, pillar.top), *pb.Traction(steel, 0, on=free)]
    return pb.Problem(equations, pillar, conditions, exact=exact)


@case("interfaces")
def pearl_in_a_box() -> pb.Problem:
    """Put a ball that conducts twenty times as well into a field along x."""
    pearl, ratio, radius = pb.Ball((x, y, z), (0, 0, 0), R(1, 2)), 20, R(1, 2)
    room = pb.Box((x, -1, 1), (y, -1, 1), (z, -1, 1))
    outside = x * (1 - R(ratio - 1, ratio + 2) * radius**3 / r**3)
    exact = sp.Piecewise((3 * x / R(ratio + 2), r**2 < radius**2), (outside, True))
    k = pb.per_region({pearl: ratio}, 1)
    return pb.Problem(sp.Eq(pb.div(k * pb.grad(s)), 0), room, [pb.Dirichlet(s, exact)], exact=exact)


@case("space")
def ring_of_iron() -> pb.Problem:
    """Let a ring take up heat from surroundings that are not equally warm."""
    ring = pb.Torus((x, y, z), (0, 0, 0), 2, R(1, 2))
    exact = 5 + x**2 - y**2 + x * z
    return pb.Problem(LAPLACE, ring, [told(2 * s + slope, {s: exact}, ring)], exact=exact)


@case("corners")
def girder_with_an_inner_edge() -> pb.Problem:
    """Hold an angled girder all round: u is like r^(2/3) along its inner edge."""
    angle = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1)])
    polar = sp.atan2(y + x, y - x)  # measured from the middle of the material
    exact = sp.cbrt(x**2 + y**2) * sp.cos(R(2, 3) * polar) + z * (1 + x)
    return pb.Problem(LAPLACE, pb.Extrusion(angle, (z, 0, 1)), [pb.Dirichlet(s, exact)], exact=exact)


@case("nonlinear")
def crystal_that_saturates() -> pb.Problem:
    """Add a cubic loss to diffusion in a cube."""
    exact = 2 + sp.sin(2 * x) * sp.cos(y) * sp.exp(-z)
    return posed(-pb.laplacian(s) + s**3, {s: exact}, CUBE)


@case("nonlinear")
def cell_in_salt_water() -> pb.Problem:
    """Find the potential in a ball after Poisson and Boltzmann, with a charge given inside."""
    cell = pb.Ball((x, y, z), (1, 0, 0), R(3, 2))
    return posed(-pb.laplacian(s) + sp.sinh(s), {s: sp.sin(x + y) * sp.cos(z)}, cell)


@case("space")
def funnel() -> pb.Problem:
    """Insulate the side of a truncated cone by halves: the flux through side and top is given."""
    funnel = pb.Cone((x, y, z), (0, 0, 0), (0, 0, 1), 1, top_radius=R(1, 2))
    exact = sp.exp(x) * sp.cos(y) + z**2 - y**2
    known = {s: exact}
    conditions = [*held(known, funnel.bottom), told(slope, known, funnel, funnel.side | funnel.top)]
    return pb.Problem(LAPLACE, funnel, conditions, exact=exact)


@case("layers")
def smoke_towards_a_wall() -> pb.Problem:
    """Blow smoke towards a wall where it diffuses back: a layer of a thirtieth."""
    exact = 1 + sp.exp(-30 * (1 - x)) * sp.cos(y) + z * y
    return posed(-pb.laplacian(s) / 30 + s.diff(x), {s: exact}, CUBE)


@case("units")
def wafer() -> pb.Problem:
    """Cool a wafer of 10 by 10 cm and half a millimetre, in metres, from above."""
    wide, thin = R(1, 10), R(1, 2000)
    wafer = pb.Box((x, 0, wide), (y, 0, wide), (z, 0, thin))
    wave = sp.pi / wide
    exact = 350 + 20 * sp.cos(wave * x) * sp.cos(wave * y) * sp.cosh(sp.sqrt(2) * wave * z)
    known = {s: exact}
    sides = wafer.left | wafer.right | wafer.front | wafer.back
    cooled = told(150 * slope + 500 * s, known, wafer, wafer.top)
    conditions = [pb.Neumann(s, 0, on=sides | wafer.bottom), cooled]
    return pb.Problem(LAPLACE, wafer, conditions, exact=exact)


@case("flow")
def honey_in_a_cube() -> pb.Problem:
    """Stir honey in a cube: three speeds and a pressure."""
    exact = {a: sp.sin(x) * sp.cos(y), b: -sp.cos(x) * sp.sin(y) + z**2, c: x * y, p: sp.exp(x) * y - z}
    operators = [-pb.laplacian(of) + p.diff(k) for of, k in ((a, x), (b, y), (c, z))]
    level = (sp.E - 1) / 2 - R(1, 2)
    conditions = [*held({of: exact[of] for of in (a, b, c)}), pb.Mean(p, level)]
    return posed([*operators, pb.div([a, b, c])], exact, CUBE, conditions)


@case("waves")
def loudspeaker_beside_a_room() -> pb.Problem:
    """Let a source outside of a room sound into it, with the flux given on one wall."""
    far = sp.sqrt((x + R(1, 2)) ** 2 + (y - R(1, 2)) ** 2 + (z - R(1, 2)) ** 2)
    exact, known = sp.cos(4 * far) / far, {s: sp.cos(4 * far) / far}
    conditions = [*held(known, CUBE.boundary - CUBE.left), told(slope, known, CUBE, CUBE.left)]
    return pb.Problem(sp.Eq(pb.laplacian(s) + 16 * s, 0), CUBE, conditions, exact=exact)
