"""Systems of parts that are made together are those that are made one by one."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, LocalSystems, Rows, Sharing, draw_reference, leaves, refined

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


def ball():
    w = pb.field("w", x, y, z)
    return pb.Problem(sp.Eq(-pb.laplacian(w), x * z), pb.Ball((x, y, z), (0, 0, 0), 1), [pb.Dirichlet(w, y)])


@pytest.mark.parametrize("make", [varying, system, materials, graded, ball], ids=lambda make: make.__name__)
def test_systems_made_together_are_those_made_one_by_one(make):
    problem = make()
    layout = Layout(problem, draw_reference(len(problem.domain.coordinates), 4, 0), 0)
    # In space, functions are differences of nearly equal nodes, and the rounding of these depends on their number.
    rounding = 1e-12 if layout.reference.dimension < 3 else 1e-15 * np.abs(layout.reference.transform).max()
    root = layout.root.halved(0)
    root = refined(root, {leaves(root)[0]: [(0, None), (1, None)]})
    together = LocalSystems(Rows(layout))
    held = {part: tuple(faces) for part, faces in Sharing(together).of(root).items()}
    assert len(held) > 4
    for (part, faces), (found, order) in zip(held.items(), together.of(held), strict=True):
        alone = LocalSystems(Rows(layout), together.around, together.coarse_sides)
        ((expected, again),) = alone.of({part: faces})
        assert order == again
        assert found.sizes == expected.sizes
        loads = [own.right_hand_sides(part, order, s) for own, s in ((together, found), (alone, expected))]
        for one, two in ((found.rows, expected.rows), loads):
            for name in ("equation", "rows", "heavy"):
                wanted = getattr(two, name)
                np.testing.assert_allclose(getattr(one, name), wanted, rtol=0, atol=rounding * np.abs(wanted).max())
