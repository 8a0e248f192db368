"""Problems that are nonlinear, and ones in space: ill-posed ones, whose docstrings say why, and a shock."""

from __future__ import annotations

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LINE, SQUARE, R, c, h, p, s, t, u, v, w, x, y, z
from benchmarks.sets.posing import ASKED, SEEDS

case, forgotten_fields = collected(ASKED, SEEDS)
UNIT = pb.TimeInterval(t, 0, 1)
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
BALL = pb.Ball((x, y, z), (0, 0, 0), 1)
a, b, d, q = (pb.field(name, x, y, z) for name in "abdq")
NAVIER = [
    *(sp.Eq(u * of.diff(x) + v * of.diff(y) - pb.laplacian(of) / 10 + p.diff(k), 0) for of, k in ((u, x), (v, y))),
    sp.Eq(pb.div([u, v]), 0),
]


# Nonlinear ------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def spark_in_a_slab() -> pb.Problem:
    """Make more heat the hotter a slab is, at the rate 4 eʷ: beyond 3.514 there is no steady state."""
    return pb.Problem(sp.Eq(w.diff(x, 2) + 4 * sp.exp(w), 0), LINE, [pb.Dirichlet(w, 0)])


@case("ill-posed")
def spark_in_a_pipe() -> pb.Problem:
    """Make more heat the hotter a pipe is, at the rate 2.5 eᵘ: beyond 2 there is no steady state."""
    return pb.Problem(sp.Eq(pb.laplacian(u) + R(5, 2) * sp.exp(u), 0), DISK, [pb.Dirichlet(u, 0)])


@case("ill-posed")
def pairs_that_breed() -> pb.Problem:
    """Let a number grow by its square beyond t = 1, where it is infinite."""
    return pb.Problem(sp.Eq(c.diff(t), c**2), pb.TimeInterval(t, 0, 2), [pb.Initial(c, 1)])


@case("ill-posed")
def rod_that_ignites() -> pb.Problem:
    """Let a hot rod make heat by the square of its temperature, faster than its ends take it away."""
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, 40 * sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2) + h**2), LINE * UNIT, conditions)


@case("ill-posed")
def closed_box_that_loses() -> pb.Problem:
    """Consume u² + 1 in a closed box, which is never zero in all."""
    return pb.Problem(sp.Eq(pb.laplacian(u), u**2 + 1), SQUARE, [pb.Neumann(u, 0)])


@case("ill-posed")
def drop_that_may_grow() -> pb.Problem:
    """Grow by 3 c^(2/3) from nothing: it may start at any time."""
    return pb.Problem(sp.Eq(c.diff(t), 3 * c ** R(2, 3)), pb.TimeInterval(t, 0, 1), [pb.Initial(c, 0)])


@case("ill-posed")
def road_up_and_down() -> pb.Problem:
    """Rise or fall with slope one from zero to zero, without a bend: no smooth road does."""
    conditions = [pb.Dirichlet(w, 0)]
    return pb.Problem(sp.Eq(w.diff(x) ** 2, 1), LINE, conditions)


def _broken_wave_error(solution: pb.Solution) -> float:
    """Return the error against characteristics, which end at the shock: seen at its speed of two, it stands at zero."""
    points = np.random.default_rng(0).uniform((-1, 0), (1, 1), (20_000, 2))
    place, time = (points[:, 0] - 2 * points[:, 1] + 1) % 2 - 1, points[:, 1]
    # Of the places that waves may have come from, the farthest: beyond ``low`` they arrive in order.
    low = np.arccos(np.minimum(1.0, 1.0 / np.maximum(np.pi * time, 1.0))) / np.pi
    high = np.ones(len(place))
    for _ in range(60):
        middle = (low + high) / 2
        late = middle - time * np.sin(np.pi * middle) < np.abs(place)
        low, high = np.where(late, middle, low), np.where(late, high, middle)
    exact = 2 - np.sign(place) * np.sin(np.pi * low)
    return float(np.linalg.norm(solution(points) - exact) / np.linalg.norm(exact))


@case("shock", error=_broken_wave_error)
def wave_that_breaks() -> pb.Problem:
    """Let faster parts of a wave overtake slower ones, without any viscosity: at t = 1/π a shock begins."""
    line = pb.Interval((x, -1, 1))
    conditions = [pb.Periodic(h, x), pb.Initial(h, 2 - sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t) + h * h.diff(x), 0), line * UNIT, conditions)


@case("ill-posed")
def pendulum_without_a_push() -> pb.Problem:
    """Let a pendulum go, and forget with what velocity."""
    return pb.Problem(sp.Eq(c.diff(t, 2), -sp.sin(c)), pb.TimeInterval(t, 0, 5), [pb.Initial(c, 1)])


@case("ill-posed")
def film_that_tears() -> pb.Problem:
    """Stretch a soap film between two rings that are too far apart: 5 instead of 1.3."""
    outer = pb.Disk((x, y), (0, 0), 2)
    steep = sp.sqrt(1 + u.diff(x) ** 2 + u.diff(y) ** 2)
    conditions = [pb.Dirichlet(u, 5, on=DISK.boundary), pb.Dirichlet(u, 0, on=outer.boundary)]
    return pb.Problem(sp.Eq(pb.div([u.diff(x) / steep, u.diff(y) / steep]), 0), outer - DISK, conditions)


@case("ill-posed")
def stiffening_soil() -> pb.Problem:
    """Add water everywhere to soil that conducts better where it flows, and let none leave."""
    k = 1 + u.diff(x) ** 2 + u.diff(y) ** 2
    return pb.Problem(sp.Eq(pb.div([k * u.diff(x), k * u.diff(y)]), 1), SQUARE, [pb.Neumann(u, 0), pb.Mean(u, 0)])


@case("ill-posed")
def swirl_without_a_pressure() -> pb.Problem:
    """Stir a fluid with inertia, and forget the level of the pressure."""
    stream = (x * (1 - x)) ** 2 * y**2 * (1 - y)
    conditions = [pb.Dirichlet(u, stream.diff(y)), pb.Dirichlet(v, -stream.diff(x))]
    return pb.Problem(NAVIER, SQUARE, conditions)


@case("ill-posed")
def nozzle_that_gains() -> pb.Problem:
    """Let a fifth more leave a channel than comes in, of a fluid with inertia that keeps its volume."""
    profile = 4 * y * (1 - y)
    conditions = [
        pb.Dirichlet(u, profile, on=SQUARE.left),
        pb.Dirichlet(u, R(6, 5) * profile, on=SQUARE.right),
        pb.Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top),
        pb.Dirichlet(v, 0),
        pb.Mean(p, 0),
    ]
    return pb.Problem(NAVIER, SQUARE, conditions)


@case("ill-posed")
def heap_that_steepens() -> pb.Problem:
    """Let sand run uphill, the more the higher it is: a nonlinear heat equation backwards."""
    conditions = [pb.Dirichlet(h, 1), pb.Initial(h, 1 + sp.sin(sp.pi * x) / 2)]
    return pb.Problem(sp.Eq(h.diff(t), -((1 + h**2) * h.diff(x)).diff(x)), LINE * UNIT, conditions)


@case("ill-posed")
def gas_of_negative_density() -> pb.Problem:
    """Let a gas spread with its own density as diffusivity, which is negative."""
    conditions = [pb.Dirichlet(h, -1), pb.Initial(h, -1 + sp.sin(sp.pi * x) / 2)]
    return pb.Problem(sp.Eq(h.diff(t), (h * h.diff(x)).diff(x)), LINE * UNIT, conditions)


@case("ill-posed")
def beam_of_infinite_height() -> pb.Problem:
    """Follow w' = 1 + w² from zero over a length of 2, beyond the pole of the tangent."""
    line = pb.Interval((x, 0, 2))
    return pb.Problem(sp.Eq(w.diff(x), 1 + w**2), line, [pb.Dirichlet(w, 0, on=line.left)])


@case("ill-posed")
def pendulums_without_a_push() -> pb.Problem:
    """Let a chain of pendulums go, and forget with what velocities."""
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t, 2) - h.diff(x, 2), -sp.sin(h)), LINE * UNIT, conditions)


@case("ill-posed")
def reaction_from_nothing() -> pb.Problem:
    """Make one species from two in a closed vessel, steadily, and feed the other: the sum of both only grows."""
    equations = [sp.Eq(pb.laplacian(u), u * v), sp.Eq(pb.laplacian(v), -u * v - 1)]
    return pb.Problem(equations, SQUARE, [pb.Neumann(u, 0), pb.Neumann(v, 0)])


@case("ill-posed")
def oven_that_radiates_inwards() -> pb.Problem:
    """Make heat in a plate whose rim takes in more of it, by the fourth power of its temperature."""
    rim = pb.Condition(sp.Eq(pb.normal_derivative(u), u**4))
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), DISK, [rim])


@case("ill-posed")
def wall_with_two_opinions() -> pb.Problem:
    """Hold the values on one wall of a cubic conductor, and insist on a flux there as well."""
    conditions = [pb.Dirichlet(u, 1 + x), pb.Neumann(u, 0, on=SQUARE.left)]
    return pb.Problem(sp.Eq(-pb.laplacian(u) + u**3, 0), SQUARE, conditions)


# Space ----------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def closed_cube_that_is_heated() -> pb.Problem:
    """Heat a closed cube without a way out."""
    return pb.Problem(sp.Eq(-pb.laplacian(s), 1 + x), CUBE, [pb.Neumann(s, 0), pb.Mean(s, 0)])


@case("ill-posed")
def ball_in_the_wind() -> pb.Problem:
    """Pull a free elastic ball to one side all over its surface: nothing holds it."""
    stress = pb.stress([a, b, d], young=10, poisson=R(1, 4))
    turns = [b.diff(x) - a.diff(y), d.diff(y) - b.diff(z), a.diff(z) - d.diff(x)]
    conditions = [*pb.Traction(stress, [1, 0, 0]), *(pb.Mean(one, 0) for one in (a, b, d, *turns))]
    return pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], BALL, conditions)


@case("ill-posed")
def cube_without_a_bolt() -> pb.Problem:
    """Stretch a free cube evenly, and hold only its mean place: it can turn."""
    stress = pb.stress([a, b, d], young=10, poisson=R(1, 4))
    conditions = [*pb.Traction(stress, 1), *(pb.Mean(one, 0) for one in (a, b, d))]
    return pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], CUBE, conditions)


@case("ill-posed")
def honey_without_a_pressure() -> pb.Problem:
    """Stir honey in a cube, and forget the level of the pressure."""
    equations = [sp.Eq(-pb.laplacian(of) + q.diff(k), 0) for of, k in ((a, x), (b, y), (d, z))]
    conditions = [pb.Dirichlet(a, y * z), pb.Dirichlet(b, x * z), pb.Dirichlet(d, x * y)]
    return pb.Problem([*equations, sp.Eq(pb.div([a, b, d]), 0)], CUBE, conditions)


@case("ill-posed")
def cube_at_its_note() -> pb.Problem:
    """Shake a cube evenly at its lowest note."""
    return pb.Problem(sp.Eq(pb.laplacian(s) + 3 * sp.pi**2 * s, 1), CUBE, [pb.Dirichlet(s, 0)])


@case("ill-posed")
def rod_without_a_side() -> pb.Problem:
    """Hold the ends of a round rod, and forget its side."""
    rod = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 1), 1)
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), rod, [pb.Dirichlet(s, z, on=rod.bottom | rod.top)])


@case("ill-posed")
def ball_that_feeds_itself() -> pb.Problem:
    """Let as much flow into a ball as there is at its surface: x, y and z can be added."""
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), BALL, [pb.Robin(s, -1, 1, x * y)])


@case("ill-posed")
def all_about_the_front() -> pb.Problem:
    """Know value and slope on the front of a cube, and nothing about its back."""
    rest = CUBE.left | CUBE.right | CUBE.bottom | CUBE.top
    conditions = [pb.Dirichlet(s, sp.cos(x), on=CUBE.front), pb.Neumann(s, 0, on=CUBE.front | rest)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), CUBE, conditions)


@case("ill-posed", asked=(1e-4, 1e-6))
def face_with_two_readings() -> pb.Problem:
    """Give one face of a cube twice, the second time one percent higher."""
    exact = 2 + x * y - z
    conditions = [pb.Dirichlet(s, exact), pb.Dirichlet(s, R(101, 100) * exact, on=CUBE.top)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), CUBE, conditions)


@case("ill-posed")
def spark_in_a_cube() -> pb.Problem:
    """Make more heat the hotter a cube is, at the rate 20 eˢ: beyond 10 there is no steady state."""
    return pb.Problem(sp.Eq(pb.laplacian(s) + 20 * sp.exp(s), 0), CUBE, [pb.Dirichlet(s, 0)])
