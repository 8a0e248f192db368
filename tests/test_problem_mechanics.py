"""Short forms of mechanics and waves: they end as ordinary conditions, and determine what they should."""

from __future__ import annotations

import pytest
import sympy as sp

import pibls as pb
from pibls.text import read_text

R = sp.Rational
x, y, z, t = pb.coordinates("x y z t")
u, v = pb.field("u", x, y), pb.field("v", x, y)


def balance(stresses, load=(0, 0, 0)):
    return [sp.Eq(pb.div(row), force) for row, force in zip(stresses.tolist(), load, strict=False)]


@pytest.mark.parametrize(("plane", "stiffness"), [("stress", 2), ("strain", 2 / (1 - R(3, 10) ** 2))])
def test_a_bar_is_stretched(plane, stiffness):
    bar = pb.Rectangle((x, 0, 2), (y, 0, 1))
    sheet = pb.stress([u, v], young=2, poisson=R(3, 10), plane=plane)
    conditions = [
        pb.Symmetry([u, v], on=bar.left),
        pb.Symmetry([u, v], sheet, on=bar.bottom),
        pb.Traction(sheet, [5, 0], on=bar.right),
        pb.Traction(sheet, on=bar.top),
    ]
    problem = pb.Problem(balance(sheet), bar, conditions)
    assert [condition.label for condition in problem.conditions] == [*["Symmetry"] * 4, *["Traction"] * 4]
    solution = pb.solve(problem)
    assert solution.status == "converged"
    assert solution([[2.0, 0.5]])["u"][0] == pytest.approx(float(10 / stiffness), rel=1e-8)
    assert str(read_text(problem.to_text()).problem) == str(problem)


def test_pressure_in_a_tube_with_slip_walls():
    pipe, bore, corner = pb.Disk((x, y), (0, 0), 2), pb.Disk((x, y), (0, 0), 1), pb.Rectangle((x, 0, 3), (y, 0, 3))
    quarter = (pipe - bore) & corner
    nu = R(1, 4)
    tube = pb.stress([u, v], young=1, poisson=nu)
    radius = sp.sqrt(x**2 + y**2)
    # Lamé: pressure one inside, none outside; u = A r + B / r.
    grow, fall = (1 + nu) * (1 - 2 * nu) / 3, (1 + nu) * R(4, 3)
    exact = {u: (grow + fall / radius**2) * x, v: (grow + fall / radius**2) * y}
    conditions = [
        pb.Traction(tube, -1, on=bore.boundary),
        pb.Traction(tube, on=pipe.boundary),
        pb.Symmetry([u, v], on=corner.left | corner.bottom),
    ]
    solution = pb.solve(pb.Problem(balance(tube), quarter, conditions, exact=exact))
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_a_round_slip_wall_needs_the_stresses():
    disk, body = pb.Disk((x, y), (0, 0), 1), pb.stress([u, v], young=1, poisson=R(1, 4))
    # Turning the disk is free: it is held in the middle.
    force = [sp.Eq(pb.div(row), f) for row, f in zip(body.tolist(), (x, y), strict=True)]
    held = pb.Condition(u.diff(y) - v.diff(x), on=(0.0, 0.0))
    solution = pb.solve(pb.Problem(force, disk, [pb.Symmetry([u, v], body), held]))
    # u = r (r² − 1) c, with (λ + 2 μ) 8 c = 1.
    modulus = R(1, 4) / (R(5, 4) * R(1, 2)) + 2 / (2 * R(5, 4))
    assert solution([[0.5, 0.0]])["u"][0] == pytest.approx(float(R(1, 2) * (R(1, 4) - 1) / (8 * modulus)), rel=1e-5)


def test_a_cube_under_tension_in_space():
    w = [pb.field(name, x, y, z) for name in "uvw"]
    cube = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    body = pb.stress(w, young=3, poisson=R(1, 3))
    conditions = [
        *(pb.Symmetry(w, on=side) for side in (cube.x_min, cube.y_min, cube.z_min)),
        *(pb.Traction(body, load, on=side) for side, load in ((cube.x_max, 6), (cube.y_max, 0), (cube.z_max, 0))),
    ]
    solution = pb.solve(pb.Problem(balance(body), cube, conditions), tol=1e-4)
    assert solution.status == "converged"
    values = solution([[1.0, 1.0, 1.0]])
    assert [values[name][0] for name in "uvw"] == pytest.approx([2, -2 / 3, -2 / 3], rel=1e-4)


def test_a_pulse_leaves_through_both_ends():
    w = pb.field("w", x, t)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    pulse = sp.exp(-60 * (x - R(1, 2) - 2 * t) ** 2)
    conditions = [
        pb.Absorbing(w, time=t, speed=2),
        pb.Initial(w, pulse.subs(t, 0)),
        pb.Initial(w.diff(t), pulse.diff(t).subs(t, 0)),
    ]
    solution = pb.solve(pb.Problem(sp.Eq(w.diff(t, 2), 4 * w.diff(x, 2)), domain, conditions, exact=pulse))
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5


def test_a_wave_of_one_frequency_leaves():
    p, q = pb.field("p", x), pb.field("q", x)
    line, k = pb.Interval((x, 0, 1)), 9
    conditions = [
        pb.Dirichlet(p, 1, on=line.left),
        pb.Dirichlet(q, 0, on=line.left),
        pb.Absorbing([p, q], line.right, wave_number=k),
    ]
    equations = [sp.Eq(w.diff(x, 2) + k**2 * w, 0) for w in (p, q)]
    exact = {p: sp.cos(k * x), q: sp.sin(k * x)}
    solution = pb.solve(pb.Problem(equations, line, conditions, exact=exact))
    assert solution.true_error() < 1e-6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.stress([u], young=1, poisson=0), "one field per space coordinate"),
        (lambda: pb.stress(u, young=1, poisson=0), "fields of a vector"),
        (lambda: pb.stress([u, v], young=1, poisson=0, plane="flat"), "plane"),
        (lambda: pb.Traction([[u]], 1), "along="),
        (lambda: pb.Traction(3), "square matrix"),
        (lambda: pb.Traction(pb.stress([u, v], young=1, poisson=0), [1, 2, 3]), "2 entries"),
        (lambda: pb.Symmetry(x), "fields of a vector"),
        (lambda: pb.Absorbing(u), "Absorbing takes"),
        (lambda: pb.Absorbing([u, v], time=x), "Absorbing takes"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(pb.PiblsError, match=words):
        make()
