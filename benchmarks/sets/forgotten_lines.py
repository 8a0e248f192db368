"""Linear problems that are ill-posed: something was forgotten, or said twice in different ways.

Every docstring says why. Contradictions of one part in a thousand are there at tolerances below that.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LAPLACE, LINE, SQUARE, R, c, h, p, t, u, v, w, x, y
from benchmarks.sets.posing import ASKED, SEEDS

case, forgotten_lines = collected(ASKED, SEEDS)
FINE = (1e-4, 1e-6)
OFF = R(1001, 1000)
f = pb.field("f", x, y, t)
UNIT = pb.TimeInterval(t, 0, 1)
RING = pb.Disk((x, y), (0, 0), 2) - DISK
SMOOTH = sp.exp(x) * sp.sin(y)
STOKES = [
    sp.Eq(-pb.laplacian(u) + p.diff(x), 0),
    sp.Eq(-pb.laplacian(v) + p.diff(y), 0),
    sp.Eq(pb.div([u, v]), 0),
]


def _sheet() -> tuple[list[sp.Eq], Any]:
    stress = pb.stress([u, v], young=10, poisson=R(1, 4), plane="stress")
    return [sp.Eq(pb.div(row), 0) for row in stress.tolist()], stress


# Forgotten, or contradicted plainly -----------------------------------------------------------------------------------


@case("ill-posed")
def wheel_that_is_turned() -> pb.Problem:
    """Turn a free wheel by a shear along its rim: nothing holds against the torque."""
    equations, stress = _sheet()
    conditions = [*pb.Traction(stress, [-y, x]), pb.Mean(u, 0), pb.Mean(v, 0), pb.Mean(v.diff(x) - u.diff(y), 0)]
    return pb.Problem(equations, DISK, conditions)


@case("ill-posed")
def raft_that_is_pushed() -> pb.Problem:
    """Push a free raft on one side only: nothing holds against the force."""
    equations, stress = _sheet()
    rest = SQUARE.boundary - SQUARE.left
    conditions = [*pb.Traction(stress, -1, on=SQUARE.left), *pb.Traction(stress, 0, on=rest)]
    conditions += [pb.Mean(u, 0), pb.Mean(v, 0), pb.Mean(v.diff(x) - u.diff(y), 0)]
    return pb.Problem(equations, SQUARE, conditions)


@case("ill-posed")
def bearing_without_a_pressure() -> pb.Problem:
    """Turn oil between two cylinders, and forget the level of the pressure."""
    inner, outer = DISK.boundary, pb.Disk((x, y), (0, 0), 2).boundary
    conditions = [pb.Dirichlet(of, value, on=inner) for of, value in ((u, -y), (v, x))]
    return pb.Problem(STOKES, RING, [*conditions, *(pb.Dirichlet(of, 0, on=outer) for of in (u, v))])


@case("ill-posed")
def drum_without_a_velocity() -> pb.Problem:
    """Let a round drum go from a shape, and forget with what velocity."""
    conditions = [pb.Dirichlet(f, 0), pb.Initial(f, (1 - x**2 - y**2) * x)]
    return pb.Problem(sp.Eq(f.diff(t, 2), pb.laplacian(f)), DISK * UNIT, conditions)


@case("ill-posed")
def plate_that_unmixes() -> pb.Problem:
    """Let heat gather instead of spread, in a plate: the finer a pattern, the faster it grows."""
    start = sp.sin(sp.pi * x) * y * (1 - y)
    return pb.Problem(
        sp.Eq(f.diff(t), -pb.laplacian(f) / 10), SQUARE * UNIT, [pb.Dirichlet(f, 0), pb.Initial(f, start)]
    )


@case("ill-posed")
def ring_that_fills() -> pb.Problem:
    """Make heat in a ring, and let a tenth too much of it leave through both rims."""
    conditions = [pb.Neumann(u, -R(11, 20)), pb.Mean(u, 0)]  # 3π inside; 6π times 11/20 leaves
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), RING, conditions)


@case("ill-posed")
def all_about_the_floor() -> pb.Problem:
    """Know value and slope on the floor, and nothing about the ceiling: Hadamard's problem."""
    conditions = [
        pb.Dirichlet(u, sp.cos(2 * x), on=SQUARE.bottom),
        pb.Neumann(u, 0, on=SQUARE.bottom),
        pb.Neumann(u, 0, on=SQUARE.left | SQUARE.right),
    ]
    return pb.Problem(LAPLACE, SQUARE, conditions)


@case("ill-posed")
def ruler_that_tips() -> pb.Problem:
    """Load a free ruler down on one half and up on the other: forces balance, moments do not."""
    ends = [pb.Dirichlet(w.diff(x, k), 0) for k in (2, 3)]
    conditions = [*ends, pb.Mean(w, 0), pb.Mean(w.diff(x), 0)]
    return pb.Problem(sp.Eq(w.diff(x, 4), 2 * x - 1), LINE, conditions)


@case("ill-posed")
def wind_from_the_other_side() -> pb.Problem:
    """Give what is carried where it leaves, and not where it enters."""
    conditions = [pb.Dirichlet(h, sp.cos(5 * t), on=LINE.right), pb.Initial(h, sp.exp(x))]
    return pb.Problem(sp.Eq(h.diff(t) + 2 * h.diff(x), 0), LINE * UNIT, conditions)


@case("ill-posed")
def drum_at_its_note() -> pb.Problem:
    """Shake a round drum evenly at its lowest note."""
    note = sp.Float("2.404825557695772768621631879", 30)
    return pb.Problem(sp.Eq(pb.laplacian(u) + note**2 * u, 1), DISK, [pb.Dirichlet(u, 0)])


@case("ill-posed")
def ring_in_step() -> pb.Problem:
    """Drive a closed ring with one of its own waves."""
    ring = pb.Interval((x, 0, 2 * sp.pi))
    return pb.Problem(sp.Eq(w.diff(x, 2) + 4 * w, sp.cos(2 * x)), ring, [pb.Periodic(w, x)])


@case("ill-posed")
def rod_with_a_third_thermometer() -> pb.Problem:
    """Measure 0.7 in the middle of a rod between 0 and 1, where it must be 0.5."""
    conditions = [pb.Dirichlet(w, x), pb.Dirichlet(w, R(7, 10), on=0.5)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, conditions)


@case("ill-posed")
def what_was_it_before() -> pb.Problem:
    """Know the temperature at the end of a minute, and ask for the beginning."""
    domain = LINE * UNIT
    conditions = [pb.Dirichlet(h, 0), pb.Dirichlet(h, x * (1 - x), on=domain.final)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), domain, conditions)


@case("ill-posed")
def electron_with_one_wall() -> pb.Problem:
    """Let an electron meet a wall on the left, and say nothing of the right."""
    psi = pb.field("psi", x, t, complex=True)
    conditions = [pb.Dirichlet(psi, 0, on=LINE.left), pb.Initial(psi, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(sp.I * psi.diff(t), -psi.diff(x, 2)), LINE * UNIT, conditions)


@case("ill-posed")
def end_that_feeds_itself() -> pb.Problem:
    """Let the end of a rod take in one more than it has: w = a x would need a = a + 1."""
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Robin(w, -1, 1, 1, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, conditions)


@case("ill-posed")
def sheet_on_a_rail() -> pb.Problem:
    """Hold a sheet against a smooth wall, and pull it from it: it can slide along."""
    equations, stress = _sheet()
    free = SQUARE.bottom | SQUARE.top
    conditions = [*pb.Symmetry([u, v], on=SQUARE.left), *pb.Traction(stress, 1, on=SQUARE.right)]
    return pb.Problem(equations, SQUARE, [*conditions, *pb.Traction(stress, 0, on=free)])


@case("ill-posed")
def tank_that_is_pumped_up() -> pb.Problem:
    """Let a fluid that keeps its volume come in on the left, and leave nowhere."""
    conditions = [
        pb.Dirichlet(u, y * (1 - y), on=SQUARE.left),
        pb.Dirichlet(u, 0, on=SQUARE.boundary - SQUARE.left),
        pb.Dirichlet(v, 0),
        pb.Mean(p, 0),
    ]
    return pb.Problem(STOKES, SQUARE, conditions)


@case("ill-posed")
def potential_and_stream() -> pb.Problem:
    """Give both parts of an analytic function on the whole boundary, which are not those of one."""
    equations = [sp.Eq(u.diff(x) - v.diff(y), 0), sp.Eq(u.diff(y) + v.diff(x), 0)]
    return pb.Problem(equations, DISK, [pb.Dirichlet(u, x), pb.Dirichlet(v, -y)])


@case("ill-posed")
def carousel() -> pb.Problem:
    """Carry something around in a ring and give it at the outer rim, which no path crosses."""
    outer = pb.Disk((x, y), (0, 0), 2).boundary
    return pb.Problem(sp.Eq(-y * u.diff(x) + x * u.diff(y), 0), RING, [pb.Dirichlet(u, 1, on=outer)])


@case("ill-posed")
def lid_with_half_a_rim() -> pb.Problem:
    """Hold the rim of a plate, and forget whether it is clamped or hinged."""
    equation = sp.Eq(pb.laplacian(pb.laplacian(u)), 1)
    return pb.Problem(equation, DISK, [pb.Dirichlet(u, 0)])


# One part in a thousand -----------------------------------------------------------------------------------------------


@case("ill-posed", asked=FINE)
def two_readings_of_a_side() -> pb.Problem:
    """Give one side twice, the second time a thousandth higher."""
    conditions = [pb.Dirichlet(u, 1 + SMOOTH), pb.Dirichlet(u, OFF * (1 + SMOOTH), on=SQUARE.top)]
    return pb.Problem(LAPLACE, SQUARE, conditions)


@case("ill-posed", asked=FINE)
def leak_of_a_thousandth() -> pb.Problem:
    """Let a thousandth more leave a disk than is made in it."""
    conditions = [pb.Neumann(u, -OFF / 2), pb.Mean(u, 0)]
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), DISK, conditions)


@case("ill-posed", asked=FINE)
def pipe_that_gains() -> pb.Problem:
    """Let a thousandth more leave a pipe than comes in, of a fluid that keeps its volume."""
    profile = 6 * y * (1 - y)
    conditions = [
        pb.Dirichlet(u, profile, on=SQUARE.left),
        pb.Dirichlet(u, OFF * profile, on=SQUARE.right),
        pb.Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top),
        pb.Dirichlet(v, 0),
        pb.Mean(p, 0),
    ]
    return pb.Problem(STOKES, SQUARE, conditions)


@case("ill-posed", asked=FINE)
def flux_gauge_that_is_off() -> pb.Problem:
    """Follow a rod between two known ends, and read a flux that is a thousandth too large."""
    exact = sp.exp(-(sp.pi**2) * t / 4) * sp.cos(sp.pi * x / 2 + 1) + 2
    flux = -OFF * exact.diff(x).subs(x, 0)
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0)), pb.Neumann(h, flux, on=LINE.left)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), LINE * UNIT, conditions)


@case("ill-posed", asked=FINE)
def wheel_that_is_turned_a_little() -> pb.Problem:
    """Pull a free wheel outwards, and turn it by a thousandth of that."""
    equations, stress = _sheet()
    load = [x - y / 1000, y + x / 1000]
    conditions = [*pb.Traction(stress, load), pb.Mean(u, 0), pb.Mean(v, 0), pb.Mean(v.diff(x) - u.diff(y), 0)]
    return pb.Problem(equations, DISK, conditions)


@case("ill-posed", asked=FINE)
def clock_that_is_late() -> pb.Problem:
    """Know a decay at the beginning and at the end, where it is a thousandth too large."""
    span = pb.TimeInterval(t, 0, 2)
    conditions = [pb.Initial(c, 3), pb.Dirichlet(c, 3 * OFF * sp.exp(-2), on=span.final)]
    return pb.Problem(sp.Eq(c.diff(t), -c), span, conditions)


@case("ill-posed", asked=FINE)
def sources_in_a_seam() -> pb.Problem:
    """Make heat in a seam, and let a thousandth too little leave through the ends of a rod."""
    seam = pb.Interface(w, on=x < R(1, 2), flux=-1)
    conditions = [seam, pb.Neumann(w, -R(999, 2000)), pb.Mean(w, 0)]
    return pb.Problem(sp.Eq(pb.div(pb.grad(w)), 0), LINE, conditions)


@case("ill-posed", asked=FINE)
def torus_that_warms_slowly() -> pb.Problem:
    """Heat what repeats in both directions by a thousandth on average, which cannot leave."""
    source = sp.cos(2 * sp.pi * x) * sp.cos(2 * sp.pi * y) + R(1, 1000)
    conditions = [pb.Periodic(u, x), pb.Periodic(u, y), pb.Mean(u, 0)]
    return pb.Problem(sp.Eq(-pb.laplacian(u), source), SQUARE, conditions)


@case("ill-posed", asked=FINE)
def inventory_that_is_off() -> pb.Problem:
    """Know a field all round, and its mean a thousandth too high."""
    exact = x**2 - y**2 + 3
    return pb.Problem(LAPLACE, SQUARE, [pb.Dirichlet(u, exact), pb.Mean(u, 3 * OFF)])


@case("ill-posed", asked=FINE)
def needle_in_a_plate() -> pb.Problem:
    """Know a field all round, and in one point inside a thousandth too high."""
    conditions = [
        pb.Dirichlet(u, 2 + SMOOTH),
        pb.Dirichlet(u, OFF * (2 + SMOOTH.subs({x: 0.4, y: 0.3})), on=(0.4, 0.3)),
    ]
    return pb.Problem(LAPLACE, SQUARE, conditions)
