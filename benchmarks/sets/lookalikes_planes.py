"""Well-posed problems in the plane and in space that look as if they were ill-posed."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LAPLACE, SQUARE, R, p, s, u, v, x, y, z
from benchmarks.sets.posing import ASKED, SEEDS, held, posed, told

case, lookalikes_planes = collected(ASKED, SEEDS)
a, b, d = (pb.field(name, x, y, z) for name in "abd")
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
r2 = x**2 + y**2
slope, steep = pb.normal_derivative(u), pb.normal_derivative(s)
SMOOTH = sp.exp(x) * sp.cos(2 * y)


def _pulled(stress: Any, exact: dict[Any, Any], domain: Any, on: Any = None) -> list[pb.Condition]:
    """Return the tractions of the exact solution."""
    normals = pb.normal(*domain.coordinates)
    rows = (sum(one * n for one, n in zip(row, normals, strict=True)) for row in stress.tolist())
    return [told(row, exact, domain, on) for row in rows]


# Next to a resonance --------------------------------------------------------------------------------------------------


@case("resonance")
def drum_beside_its_note() -> pb.Problem:
    """Shake a drum at a frequency that is two thousandths above its lowest note."""
    return posed(pb.laplacian(u) + R(241, 100) ** 2 * u, {u: SMOOTH}, DISK)


@case("resonance")
def room_beside_its_note() -> pb.Problem:
    """Let a closed room sound just beside cos πx cos πy."""
    known = {u: SMOOTH}
    return posed(pb.laplacian(u) + (2 * sp.pi**2 + R(1, 10)) * u, known, SQUARE, [told(slope, known, SQUARE)])


@case("resonance")
def cube_beside_its_note() -> pb.Problem:
    """Shake a cube just beside its lowest note."""
    return posed(pb.laplacian(s) + (3 * sp.pi**2 + R(1, 5)) * s, {s: sp.sin(2 * x) * sp.cos(y) + z}, CUBE)


# The level is given ---------------------------------------------------------------------------------------------------


@case("gauge")
def box_with_its_mean() -> pb.Problem:
    """Give the flux all round, and the mean."""
    wide, known = pb.Rectangle((x, 0, 2), (y, 0, 1)), {u: sp.cos(x) + y**3 * x}
    mean = sp.integrate(known[u], (x, 0, 2), (y, 0, 1)) / 2
    return posed(-pb.laplacian(u), known, wide, [told(slope, known, wide), pb.Mean(u, mean)])


@case("gauge")
def flower_with_a_level() -> pb.Problem:
    """Give the flux all round a flower, and the value in one point."""
    flower = pb.Star((x, y), lambda angle: 1 + sp.cos(3 * angle) / 4)
    known = {u: sp.sin(2 * x) * sp.exp(y)}
    return posed(-pb.laplacian(u), known, flower, [told(slope, known, flower), told(u, known, flower, (0.2, 0.1))])


@case("gauge")
def ring_with_its_mean() -> pb.Problem:
    """Give the flux through both rims of a ring, and the mean."""
    inner, outer = DISK, pb.Disk((x, y), (0, 0), 2)
    exact = sp.log(r2) + x * y
    conditions = [*(told(slope, {u: exact}, outer - inner, on.boundary) for on in (inner, outer))]
    conditions.append(pb.Mean(u, (8 * sp.log(2) - 3) / 3))
    return pb.Problem(LAPLACE, outer - inner, conditions, exact=exact)


@case("gauge")
def cube_with_its_mean() -> pb.Problem:
    """Give the flux through all faces of a cube, and the mean."""
    known = {s: sp.cos(2 * x) * y + z**2}
    mean = sp.sin(2) / 4 + R(1, 3)
    return posed(-pb.laplacian(s), known, CUBE, [told(steep, known, CUBE), pb.Mean(s, mean)])


@case("gauge")
def plate_that_hardly_leaks() -> pb.Problem:
    """Insulate a plate that loses a thousandth of its heat through its faces."""
    known = {u: 3 + SMOOTH}
    return posed(-pb.laplacian(u) + u / 1000, known, DISK, [told(slope, known, DISK)])


@case("nonlinear")
def closed_box_with_a_cubic_loss() -> pb.Problem:
    """Give the flux all round, of something that is lost by its third power: that sets its level."""
    known = {u: 1 + x**2 * y / 2}
    return posed(-pb.laplacian(u) + u**3, known, SQUARE, [told(slope, known, SQUARE)])


@case("gauge")
def flow_with_a_level_inside() -> pb.Problem:
    """Stir a slow fluid, and know its pressure in one point inside."""
    stream = sp.sin(2 * x) * sp.cos(y)
    exact = {u: stream.diff(y), v: -stream.diff(x), p: 100 + x * y}
    operators = [-pb.laplacian(u) + p.diff(x), -pb.laplacian(v) + p.diff(y), pb.div([u, v])]
    conditions = [*held({u: exact[u], v: exact[v]}), told(p, exact, SQUARE, (0.5, 0.25))]
    return posed(operators, exact, SQUARE, conditions)


@case("gauge")
def fluid_between_smooth_walls() -> pb.Problem:
    """Stir a slow fluid between walls along which it slips: in a square it cannot turn as a whole."""
    exact = {u: sp.sin(sp.pi * x) * sp.cos(sp.pi * y), v: -sp.cos(sp.pi * x) * sp.sin(sp.pi * y), p: x + y**2}
    operators = [-pb.laplacian(u) + p.diff(x), -pb.laplacian(v) + p.diff(y), pb.div([u, v])]
    conditions = [*pb.Symmetry([u, v]), pb.Mean(p, R(5, 6))]
    return posed(operators, exact, SQUARE, conditions)


# Free bodies ----------------------------------------------------------------------------------------------------------


@case("free body")
def disc_that_spins_freely() -> pb.Problem:
    """Spin a free disc, and hold its centre and one direction: nothing presses on what holds it."""
    poisson = R(3, 10)
    wide = (1 - poisson) / 8 * ((3 + poisson) - (1 + poisson) * r2)
    steel = pb.stress([u, v], young=1, poisson=poisson, plane="stress")
    equations = [sp.Eq(pb.div(row), -k) for row, k in zip(steel.tolist(), (x, y), strict=True)]
    held_at = [pb.Dirichlet(u, 0, on=(0, 0)), pb.Dirichlet(v, 0, on=(0, 0)), pb.Dirichlet(v, 0, on=(0.5, 0))]
    exact = {u: wide * x, v: wide * y}
    return pb.Problem(equations, DISK, [*pb.Traction(steel, 0), *held_at], exact=exact)


@case("free body")
def sheet_that_floats() -> pb.Problem:
    """Load a free sheet so that forces and torque balance, and hold its motions on average."""
    exact = {u: sp.sin(x) * y, v: x * y**2}
    sheet = pb.stress([u, v], young=5, poisson=R(1, 4), plane="stress")
    turn = v.diff(x) - u.diff(y)
    means = [(u, (1 - sp.cos(1)) / 2), (v, R(1, 6)), (turn, R(1, 3) - (1 - sp.cos(1)))]
    conditions = [*_pulled(sheet, exact, SQUARE), *(pb.Mean(one, value) for one, value in means)]
    return posed([pb.div(row) for row in sheet.tolist()], exact, SQUARE, conditions)


@case("free body")
def sheet_on_two_nails() -> pb.Problem:
    """Pull a sheet evenly, with a nail in one corner and a slider in the next."""
    sheet = pb.stress([u, v], young=5, poisson=R(1, 4), plane="stress")
    nails = [pb.Dirichlet(u, 0, on=(0, 0)), pb.Dirichlet(v, 0, on=(0, 0)), pb.Dirichlet(v, 0, on=(1, 0))]
    exact = {u: R(3, 20) * x, v: R(3, 20) * y}
    equations = [sp.Eq(pb.div(row), 0) for row in sheet.tolist()]
    return pb.Problem(equations, SQUARE, [*pb.Traction(sheet, 1), *nails], exact=exact)


@case("free body")
def cube_under_water() -> pb.Problem:
    """Press a free cube evenly, and hold its motions and turns on average."""
    body = pb.stress([a, b, d], young=10, poisson=R(1, 4))
    known = {of: -(k - R(1, 2)) / 20 for of, k in ((a, x), (b, y), (d, z))}
    turns = [b.diff(x) - a.diff(y), d.diff(y) - b.diff(z), a.diff(z) - d.diff(x)]
    conditions = [*pb.Traction(body, -1), *(pb.Mean(one, 0) for one in (a, b, d, *turns))]
    return pb.Problem([sp.Eq(pb.div(row), 0) for row in body.tolist()], CUBE, conditions, exact=known)


# Little is held -------------------------------------------------------------------------------------------------------


@case("little held")
def plate_held_by_a_clip() -> pb.Problem:
    """Hold a plate at a fiftieth of one side, and give the flux on all the rest."""
    clip = SQUARE.bottom.where(lambda X: np.abs(X[:, 0] - 0.5) < 0.01)
    exact = sp.exp(x) * sp.cos(y) + x * y
    known = {u: exact}
    return pb.Problem(
        LAPLACE, SQUARE, [*held(known, clip), told(slope, known, SQUARE, SQUARE.boundary - clip)], exact=exact
    )


@case("little held")
def disk_held_by_a_hair() -> pb.Problem:
    """Hold a disk along an arc of five degrees, and give the flux on all the rest."""
    hair = DISK.boundary.where(lambda X: np.abs(np.arctan2(X[:, 1], X[:, 0]) - 1) < np.pi / 72)
    exact = x**3 - 3 * x * y**2 + y
    known = {u: exact}
    return pb.Problem(LAPLACE, DISK, [*held(known, hair), told(slope, known, DISK, DISK.boundary - hair)], exact=exact)


@case("little held")
def cube_held_by_a_stamp() -> pb.Problem:
    """Hold a cube on a hundredth of its floor, and give the flux on all the rest."""
    stamp = CUBE.bottom.where(lambda X: (np.abs(X[:, 0] - 0.5) < 0.05) & (np.abs(X[:, 1] - 0.5) < 0.05))
    exact = x**2 - z**2 + y
    known = {s: exact}
    rest = CUBE.boundary - stamp
    equation = sp.Eq(pb.laplacian(s), 0)
    return pb.Problem(equation, CUBE, [*held(known, stamp), told(steep, known, CUBE, rest)], exact=exact)


@case("little held")
def sheet_in_a_vice() -> pb.Problem:
    """Clamp a sheet along a twentieth of one side, and load all the rest."""
    vice = SQUARE.left.where(lambda X: np.abs(X[:, 1] - 0.5) < 0.025)
    exact = {u: x**2 * y, v: sp.sin(x) - y**2}
    sheet = pb.stress([u, v], young=5, poisson=R(1, 4), plane="stress")
    conditions = [*held(exact, vice), *_pulled(sheet, exact, SQUARE, SQUARE.boundary - vice)]
    return posed([pb.div(row) for row in sheet.tolist()], exact, SQUARE, conditions)


# The wrong sign -------------------------------------------------------------------------------------------------------


@case("wrong sign")
def disk_that_half_feeds_itself() -> pb.Problem:
    """Let half as much flow into a disk as there is: between two of its own modes."""
    exact = sp.exp(x) * sp.sin(y) + 1
    return pb.Problem(LAPLACE, DISK, [told(slope - u / 2, {u: exact}, DISK)], exact=exact)


@case("wrong sign")
def ball_that_half_feeds_itself() -> pb.Problem:
    """Let half as much flow into a ball as there is at its surface."""
    ball = pb.Ball((x, y, z), (0, 0, 0), 1)
    exact = x * y - z + 2
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), ball, [told(steep - s / 2, {s: exact}, ball)], exact=exact)


@case("wrong sign")
def plate_that_feeds_and_loses() -> pb.Problem:
    """Let heat flow in as there is at the rim, and lose ten times as much inside."""
    known = {u: SMOOTH}
    return posed(-pb.laplacian(u) + 10 * u, known, SQUARE, [told(slope - u, known, SQUARE)])


# Said twice, alike ----------------------------------------------------------------------------------------------------


@case("said twice")
def side_known_twice() -> pb.Problem:
    """Know the values all round, and on one side the flux as well."""
    exact = sp.exp(2 * x) * sp.cos(2 * y)
    known = {u: exact}
    return pb.Problem(LAPLACE, SQUARE, [*held(known), told(slope, known, SQUARE, SQUARE.left)], exact=exact)


@case("said twice")
def four_thermometers_more() -> pb.Problem:
    """Know the values all round, and in four points inside."""
    known = {u: SMOOTH}
    inside = told(u, known, DISK, [[0.1, 0.2], [-0.4, 0.3], [0.0, -0.7], [0.5, 0.5]])
    return posed(-pb.laplacian(u) + u, known, DISK, [*held(known), inside])


@case("nonlinear")
def film_known_twice() -> pb.Problem:
    """Know a cubic conductor all round, and the flux through one side as well."""
    known = {u: 1 + sp.sin(x) * y}
    return posed(-pb.laplacian(u) + u**3, known, SQUARE, [*held(known), told(slope, known, SQUARE, SQUARE.right)])


# Other looks ----------------------------------------------------------------------------------------------------------


@case("places")
def two_sides_are_enough() -> pb.Problem:
    """Give u_xy and two sides, after Goursat: the others follow."""
    known = {u: sp.sin(2 * x) * sp.exp(-y) + x}
    return posed(u.diff(x, y) + u, known, SQUARE, held(known, SQUARE.left | SQUARE.bottom))


@case("places")
def only_what_enters() -> pb.Problem:
    """Give what a wind carries only where it enters, on two sides of four."""
    known = {u: sp.cos(3 * x - y)}
    return posed(2 * u.diff(x) + u.diff(y) + u, known, SQUARE, held(known, SQUARE.left | SQUARE.bottom))


@case("sudden")
def two_strips_of_foil() -> pb.Problem:
    """Hold a floor at one and at zero, side by side: the values contradict each other in one point, and only there."""
    wide = pb.Rectangle((x, -1, 1), (y, 0, 1))
    exact = sp.atan2(y, x) / sp.pi
    left, right = wide.bottom.where(lambda X: X[:, 0] < 0), wide.bottom.where(lambda X: X[:, 0] >= 0)
    rest = wide.left | wide.right | wide.top
    conditions = [pb.Dirichlet(u, 1, on=left), pb.Dirichlet(u, 0, on=right), *held({u: exact}, rest)]
    return pb.Problem(LAPLACE, wide, conditions, exact=exact)


@case("nonlinear")
def film_just_before_it_tears() -> pb.Problem:
    """Stretch a soap film between two rings that are nearly too far apart."""
    outer, waist = pb.Disk((x, y), (0, 0), 2), R(19, 20)
    far = sp.sqrt(r2)
    high = waist * sp.acosh(2 / waist)
    exact = high - waist * sp.log((far + sp.sqrt(r2 - waist**2)) / waist)
    steepness = sp.sqrt(1 + u.diff(x) ** 2 + u.diff(y) ** 2)
    lift = exact.subs({x: 1, y: 0})
    conditions = [pb.Dirichlet(u, lift, on=DISK.boundary), pb.Dirichlet(u, 0, on=outer.boundary)]
    equation = sp.Eq(pb.div([u.diff(x) / steepness, u.diff(y) / steepness]), 0)
    return pb.Problem(equation, outer - DISK, conditions, exact=exact)
