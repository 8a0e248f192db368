"""Steady problems of one field in the plane: heat, charge, torsion, sound and transport."""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import LAPLACE, SQUARE, R, u, x, y
from benchmarks.sets.posing import ASKED, SEEDS, held, posed, told

case, planes = collected(ASKED, SEEDS)
r2 = x**2 + y**2
r = sp.sqrt(r2)
slope = pb.normal_derivative(u)


def _turned(from_: sp.Expr) -> sp.Expr:
    """Return the angle at the origin from a direction on, from 0 to 2π."""
    polar = sp.atan2(-y * sp.cos(from_) + x * sp.sin(from_), -x * sp.cos(from_) - y * sp.sin(from_))
    return polar + sp.pi


# Shapes ---------------------------------------------------------------------------------------------------------------


@case("holes")
def cable_out_of_the_middle() -> pb.Problem:
    """Find the potential between a wire and its shield that is not around the same centre; in nanometres."""
    wire, shield = pb.Disk((x, y), (R(5, 4), 0), R(3, 4)), pb.Disk((x, y), (R(5, 3), 0), R(4, 3))
    exact = 1000 * sp.log(((x + 1) ** 2 + y**2) / ((x - 1) ** 2 + y**2))
    outer, inner = (exact.subs({x: at, y: 0}) for at in (3, 2))
    conditions = [pb.Dirichlet(u, inner, on=wire.boundary), pb.Dirichlet(u, outer, on=shield.boundary)]
    return pb.Problem(LAPLACE, shield - wire, conditions, exact=exact)


@case("units")
def shaft_of_three_corners() -> pb.Problem:
    """Twist a steel bar whose section is a triangle with sides of 4 cm, by 0.02 per metre: metres and pascals."""
    side, twist = R(4, 100), 80 * 10**9 * R(2, 100)
    high = side * sp.sqrt(3) / 2
    corners = [(0, 0), (float(side), 0), (float(side / 2), float(high))]
    near = sp.sqrt(3)
    exact = twist * y * (near * x - y) * (near * (side - x) - y) / (2 * high)
    section = pb.Polygon((x, y), corners)
    return pb.Problem(sp.Eq(pb.laplacian(u), -2 * twist), section, [pb.Dirichlet(u, 0)], exact=exact)


@case("shapes")
def shaft_with_a_keyway() -> pb.Problem:
    """Twist a round shaft with a round groove along it."""
    groove = pb.Disk((x, y), (0, 0), R(3, 10))
    section = pb.Disk((x, y), (1, 0), 1) - groove
    exact = (r2 - R(9, 100)) * (2 * x / r2 - 1) / 2
    return pb.Problem(sp.Eq(pb.laplacian(u), -2), section, [pb.Dirichlet(u, 0)], exact=exact)


@case("corners")
def roof_with_a_valley() -> pb.Problem:
    """Insulate both sides of an inward corner of 5π/4, and heat the rest."""
    roof = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1)])
    exact = r2 ** R(2, 5) * sp.cos(R(4, 5) * _turned(sp.S.Zero)) + x * y
    rest = roof.edge1 | roof.edge2 | roof.edge3
    known = {u: exact}
    conditions = [*held(known, rest), pb.Neumann(u, -x, on=roof.edge0), told(slope, {u: x * y}, roof, roof.edge4)]
    return pb.Problem(LAPLACE, roof, conditions, exact=exact)


@case("corners")
def tip_of_a_crack() -> pb.Problem:
    """Let a narrow notch end inside a plate: u is like the root of the distance from its tip."""
    notch = pb.Polygon((x, y), [(0, 0), (-1, R(-1, 100)), (-1, -1), (1, -1), (1, 1), (-1, 1), (-1, R(1, 100))])
    half = sp.pi - sp.atan(R(1, 100))
    power = sp.pi / (2 * half)
    exact = r**power * sp.cos(power * sp.atan2(y, x))
    faces = notch.edge0 | notch.edge6
    rest = notch.boundary - faces
    return pb.Problem(LAPLACE, notch, [pb.Dirichlet(u, 0, on=faces), pb.Dirichlet(u, exact, on=rest)], exact=exact)


@case("shapes")
def lake_of_five_bays() -> pb.Problem:
    """Measure the exchange over the curved shore of a lake, with a coefficient that changes along it."""
    lake = pb.Star((x, y), lambda angle: 2 + sp.cos(5 * angle) / 5, center=(1, -1))
    exact = sp.exp(x / 2) * sp.sin(y / 2)
    condition = told((2 + x**2) * u + slope, {u: exact}, lake)
    return pb.Problem(LAPLACE, lake, [condition], exact=exact)


@case("shapes")
def potato() -> pb.Problem:
    """Cook something round without a name, given by a formula."""
    potato = pb.Implicit((x, y), x**4 + y**4 + x * y - 1, [(-2, 2), (-2, 2)])
    return posed(-pb.laplacian(u) + 4 * u, {u: sp.cos(2 * x) * sp.exp(-(y**2))}, potato)


@case("holes")
def window_frame() -> pb.Problem:
    """Let heat pass around a square opening whose inward corners are insulated; the field is smooth all the same."""
    frame = pb.Outline((x, y), [[(0, 0), (3, 0), (3, 3), (0, 3)], [(1, 1), (2, 1), (2, 2), (1, 2)]])
    exact = 15 + 5 * sp.cos(x) * sp.cosh(y)
    known = {u: exact}
    return pb.Problem(LAPLACE, frame, [*held(known, frame.outer), told(slope, known, frame, frame.hole0)], exact=exact)


@case("corners")
def warm_end_of_a_wall() -> pb.Problem:
    """Change from a given temperature to a given loss in the middle of a flat wall, at the end of a heated mat."""
    wide = pb.Rectangle((x, -1, 1), (y, 0, 1))
    exact = sp.sqrt((r - x) / 2) + x**2 - y**2 + 3 * y
    mat, bare = wide.bottom.where(lambda X: X[:, 0] > 0), wide.bottom.where(lambda X: X[:, 0] <= 0)
    conditions = [
        pb.Dirichlet(u, x**2, on=mat),
        pb.Neumann(u, -3, on=bare),
        pb.Dirichlet(u, exact, on=wide.left | wide.right | wide.top),
    ]
    return pb.Problem(LAPLACE, wide, conditions, exact=exact)


# Materials ------------------------------------------------------------------------------------------------------------


@case("interfaces")
def seed_in_a_plate() -> pb.Problem:
    """Embed a disk that conducts ten thousand times as well, beside the middle, in a field of three waves."""
    seed, ratio, radius = pb.Disk((x, y), (R(1, 10), R(-1, 5)), R(2, 5)), 10_000, R(2, 5)
    a, b = x - R(1, 10), y + R(1, 5)
    wave, size = a**3 - 3 * a * b**2, a**2 + b**2
    inside = 2 * wave / (1 + ratio)
    outside = wave * (1 + R(1 - ratio, 1 + ratio) * radius**6 / size**3)
    exact = sp.Piecewise((inside, size < radius**2), (outside, True))
    plate, k = pb.Rectangle((x, -1, 1), (y, -1, 1)), pb.per_region({seed: ratio}, 1)
    return pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), plate, [pb.Dirichlet(u, exact)], exact=exact)


@case("interfaces")
def oval_of_copper() -> pb.Problem:
    """Heat a plate with an elliptic inclusion: its border has one temperature, and the flux passes it."""
    level = x**2 / R(16, 25) + (y - R(1, 10)) ** 2 / R(9, 100) - 1
    k = sp.Piecewise((400, level < 0), (1, True))
    exact, plate = level / k, pb.Rectangle((x, -1, 1), (y, -1, 1))
    heat = sp.Eq(-pb.div(k * pb.grad(u)), -(2 / R(16, 25) + 2 / R(9, 100)))
    return pb.Problem(heat, plate, [pb.Dirichlet(u, exact)], exact=exact)


@case("interfaces")
def folded_layers_of_rock() -> pb.Problem:
    """Let heat rise through two kinds of rock that meet in waves, in kilometres."""
    level = y - R(6, 5) - sp.sin(2 * sp.pi * x / 5) / 4
    k, ground = sp.Piecewise((R(3, 2), level < 0), (5, True)), pb.Rectangle((x, 0, 5), (y, 0, 3))
    exact = 400 + 100 * sp.sin(level) / k
    flow = sp.Matrix([sp.cos(level) * level.diff(own) for own in (x, y)])
    heat = sp.Eq(pb.div(k * pb.grad(u)), 100 * (flow[0].diff(x) + flow[1].diff(y)))
    return pb.Problem(heat, ground, [pb.Dirichlet(u, exact)], exact=exact)


@case("interfaces")
def glued_joint() -> pb.Problem:
    """Let heat pass a slanted seam of glue with a resistance, and a source of heat in the seam."""
    seam = x + 2 * y - R(3, 2)
    left, right = R(1, 3), 2
    # The flux along the normal is 1 before and 1 + 1/2 behind; the value rises by the resistance times the former.
    unit = sp.sqrt(5)
    exact = sp.Piecewise((seam / unit / left, seam < 0), (seam / unit * R(3, 2) / right + R(1, 5), True)) + 0 * y
    k = sp.Piecewise((left, seam < 0), (right, True))
    glue = pb.Interface(u, on=seam < 0, jump=R(1, 5), flux=R(1, 2))
    return pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), SQUARE, [*held({u: exact}), glue], exact=exact)


@case("materials")
def wood_cut_aslant() -> pb.Problem:
    """Dry a board that conducts a thousand times better along its grain, which runs aslant."""
    along, across, c, s = 1, R(1, 1000), sp.cos(sp.pi / 6), sp.sin(sp.pi / 6)
    first, mixed = along * c**2 + across * s**2, (along - across) * c * s
    second = along * s**2 + across * c**2
    flux = [first * u.diff(x) + mixed * u.diff(y), mixed * u.diff(x) + second * u.diff(y)]
    return posed(pb.div(flux), {u: sp.sin(2 * x) * sp.cos(3 * y)}, SQUARE)


@case("periodic")
def weave_of_two_threads() -> pb.Problem:
    """Find how a current deviates in a conductor that repeats in both directions."""
    first, second = 1 / (1 + sp.cos(2 * sp.pi * x) / 2), 1 + sp.sin(2 * sp.pi * y) ** 2
    exact = sp.sin(2 * sp.pi * x) / (4 * sp.pi)
    k = first * second
    conditions = [pb.Periodic(u, x), pb.Periodic(u, y), pb.Mean(u, 0)]
    equation = sp.Eq(pb.div([k * (u.diff(x) + 1), k * u.diff(y)]), 0)
    return pb.Problem(equation, SQUARE, conditions, exact=exact)


@case("interfaces")
def cars_at_a_speed_limit() -> pb.Problem:
    """Let cars on many lanes come to a limit that is a fourth of their speed: as many pass, so that they are denser."""
    limit = R(1, 2)
    speed = sp.Piecewise((2, x < limit), (R(1, 2), True))
    before, behind = sp.exp(-x / 2), 4 * sp.exp(-R(1, 4) - 2 * (x - limit))
    exact = (1 + y) * sp.Piecewise((before, x < limit), (behind, True))
    leaving = sp.Eq(pb.div([speed * u, 0]), -u)
    return pb.Problem(leaving, SQUARE, [pb.Dirichlet(u, 1 + y, on=SQUARE.left)], exact=exact)


# Transport and waves --------------------------------------------------------------------------------------------------


@case("layers")
def mixing_of_two_streams() -> pb.Problem:
    """Let two streams run side by side, aslant, with a thin layer between them."""
    across = (y - R(1, 2) - R(3, 10) * x) / R(1, 50)
    return posed(-pb.laplacian(u) / 500 + u.diff(x) + R(3, 10) * u.diff(y), {u: 7 + sp.tanh(across)}, SQUARE)


@case("layers")
def salt_at_a_thin_wall() -> pb.Problem:
    """Carry salt towards a wall at 1 mm/s where it diffuses 10⁻⁵ times as fast; millimetres."""
    pool = pb.Rectangle((x, 0, R(1, 2)), (y, 0, 1))
    exact = 3 + sp.cos(2 * x) * sp.exp(-100 * y) + y
    conditions = [*held({u: exact}, pool.bottom | pool.top), told(slope, {u: exact}, pool, pool.left | pool.right)]
    return posed(-pb.laplacian(u) / 100 - u.diff(y), {u: exact}, pool, conditions)


@case("waves")
def sound_in_a_hall() -> pb.Problem:
    """Let sound of 200 Hz pass a hall of 8 by 5 m whose walls swallow a part of it."""
    psi, hall = pb.field("psi", x, y, complex=True), pb.Rectangle((x, 0, 8), (y, 0, 5))
    k = R(366, 100)
    exact = sp.exp(sp.I * k * (R(3, 5) * x + R(4, 5) * y)) + sp.exp(sp.I * k * (x - 8)) / 2
    nx, ny = pb.normal(x, y)
    leaving = exact.diff(x) * nx + exact.diff(y) * ny - sp.I * k * exact
    walls = pb.Robin(psi, -sp.I * k, 1, sp.expand_complex(leaving))
    return pb.Problem(sp.Eq(pb.laplacian(psi) + k**2 * psi, 0), hall, [walls], exact={psi: sp.expand_complex(exact)})


@case("axis")
def hot_end_of_a_rod() -> pb.Problem:
    """Heat one end of a round rod, in its radius x and height y: the equation is singular at the axis."""
    rod = pb.Rectangle((x, 0, 1), (y, 0, 2))
    exact = sp.besselj(0, 2 * x) * sp.exp(-2 * y) + sp.besseli(0, x) * sp.sin(y)
    conditions = [pb.Neumann(u, 0, on=rod.left), *held({u: exact}, rod.right | rod.bottom | rod.top)]
    equation = sp.Eq(u.diff(x, 2) + u.diff(x) / x + u.diff(y, 2), 0)
    return pb.Problem(equation, rod, conditions, exact=exact)


@case("integral")
def electrode_of_known_current() -> pb.Problem:
    """Know the mean of the potential over a plate instead of its level; the current is given all round."""
    plate = pb.Disk((x, y), (2, 1), R(1, 2))
    exact = sp.exp(x) * sp.cos(y) + x * y**2
    known, turn = {u: exact}, sp.Symbol("turn", real=True)
    far = sp.Symbol("far", positive=True)
    around = {x: 2 + far * sp.cos(turn), y: 1 + far * sp.sin(turn)}
    level = sp.exp(2) * sp.cos(1)  # the mean of a harmonic function is its value in the centre
    cubic = sp.integrate((x * y**2).subs(around).expand() * far, (turn, 0, 2 * sp.pi), (far, 0, R(1, 2)))
    average = level + cubic / (sp.pi / 4)
    return posed(-pb.laplacian(u), known, plate, [told(slope, known, plate), pb.Mean(u, average)])


@case("offset")
def sea_level() -> pb.Problem:
    """Find a rise of centimetres on a depth of four kilometres."""
    sea = pb.Rectangle((x, 0, 3), (y, 0, 2))
    return posed(-pb.laplacian(u) + u / 10, {u: 4000 + sp.sin(2 * x) * sp.cos(y) / 50}, sea)


@case("peak")
def laser_spot() -> pb.Problem:
    """Heat a disk of 1 mm by a spot of 30 µm, in metres, out of the middle."""
    size, spot = R(1, 1000), R(3, 10**5)
    disk = pb.Disk((x, y), (0, 0), size / 2)
    far = ((x - size / 5) ** 2 + (y + size / 10) ** 2) / spot**2
    return posed(-pb.laplacian(u), {u: 300 + 80 * sp.exp(-far)}, disk)
