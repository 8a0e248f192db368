"""Systems of parts that are made together are those that are made one by one."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, LocalSystems, Rows, Sharing, draw_reference, leaves, refined, written

x, y, z = pb.coordinates("x y z")
u, v = pb.field("u", x, y), pb.field("v", x, y)
DISK = pb.Disk((x, y), (0.1, 0.05), 1)


def divergence(k, w):
    return sp.diff(k * w.diff(x), x) + sp.diff(k * w.diff(y), y)


def varying():
    flux = pb.Robin(u, 2 + x, 1, sp.cos(y))
    return pb.Problem(sp.Eq(-divergence(2 + x * y, u) + u, sp.exp(x)), DISK - pb.Disk((x, y), (0, 0), 0.5), [flux])


def system():
    equations = [sp.Eq(u.diff(x) + v.diff(y), x), sp.Eq(u.diff(y) - v.diff(x) + y * u, sp.sin(x))]
    return pb.Problem(equations, DISK, [pb.Dirichlet(u, x * y)])


def materials():
    k = sp.Piecewise((3, x**2 + y**2 < sp.Rational(1, 4)), (1, True))
    return pb.Problem(sp.Eq(-divergence(k, u), 1), DISK, [pb.Dirichlet(u, sp.cos(y))])


def graded():
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    return pb.Problem(sp.Eq(-pb.laplacian(u), x), square, [pb.Dirichlet(u, 0), pb.Observation(u, [[0.3, 0.4]], [1.0])])


def stiffening():
    """Elasticity with a stiffness that varies: forces and moments balance, and mixed derivatives flow."""
    square, E = pb.Rectangle((x, 0, 2), (y, 0, 1)), 1 + x * y
    (a, b), (_, d) = pb.stress([u, v], young=E, poisson=sp.Rational(1, 4)).tolist()
    equations = [sp.Eq(a.diff(x) + b.diff(y), x), sp.Eq(b.diff(x) + d.diff(y), -1)]
    held = [pb.Dirichlet(u, y, on=square.left), pb.Dirichlet(v, x, on=square.left)]
    pulled = [pb.Neumann(w, 1 + x, on=square.right | square.top | square.bottom) for w in (u, v)]
    return pb.Problem(equations, square, [*held, *pulled])


def carried():
    """A field that is carried along: other terms are continuous across each axis."""
    t = pb.coordinates("t")
    w = pb.field("w", x, t)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    equation = sp.Eq(w.diff(t) + (1 + x * t) * w.diff(x), (1 + t) * w.diff(x, 2) + x)
    return pb.Problem(equation, domain, [pb.Periodic(w, x), pb.Initial(w, sp.sin(2 * sp.pi * x))])


def ball():
    w = pb.field("w", x, y, z)
    return pb.Problem(sp.Eq(-pb.laplacian(w), x * z), pb.Ball((x, y, z), (0, 0, 0), 1), [pb.Dirichlet(w, y)])


@pytest.mark.parametrize(
    "make", [varying, system, materials, graded, stiffening, carried, ball], ids=lambda make: make.__name__
)
def test_systems_made_together_are_those_made_one_by_one(make):
    problem = make()
    layout = Layout(problem, draw_reference(len(problem.domain.coordinates), 4, 0), 0)
    # In space, functions are differences of nearly equal nodes, and the rounding of these depends on their number.
    rounding = 1e-12 if layout.reference.dimension < 3 else 1e-15 * np.abs(layout.reference.transform).max()
    root = layout.root.halved(0)
    root = refined(root, {leaves(root)[0]: [(0, None), (1, None)]})
    together = LocalSystems(Rows(layout))
    held = Sharing(together).ties_of(root)
    assert len(held) > 4
    for (part, ties), (found, order) in zip(held.items(), together.systems(held), strict=True):
        alone = LocalSystems(Rows(layout), together.around, together.coarse_sides)
        ((expected, again),) = alone.systems({part: ties})
        assert order == again
        assert found.sizes == expected.sizes
        loads = [own.right_hand_sides(part, order, s) for own, s in ((together, found), (alone, expected))]
        for one, two in ((found.rows, expected.rows), loads):
            for name in ("equation", "rows", "heavy"):
                made, wanted = written(getattr(one, name)), written(getattr(two, name))
                np.testing.assert_allclose(made, wanted, rtol=0, atol=rounding * np.abs(wanted).max())
