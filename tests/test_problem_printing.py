"""Problems in words: materials that equations and conditions repeat have names."""

from __future__ import annotations

import sympy as sp

import pibls as pb

x, y = pb.coordinates("x y")
SQUARE = pb.Rectangle((x, 0, 2), (y, 0, 1))


def test_materials_that_are_repeated_are_written_once():
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    young = pb.per_region({pb.Rectangle((x, 0, 1), (y, 0, 1)): 2.5}, 1.0)
    stress = pb.stress([u, v], young=young, poisson=0.25, plane="stress")
    conditions = [*pb.Symmetry([u, v], stress, on=SQUARE.left), *pb.Traction(stress, 0, on=SQUARE.top)]
    told = str(pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], SQUARE, conditions))
    assert "Piecewise" not in told
    assert told.splitlines()[-1].split(maxsplit=1) == [
        "case1",
        "2.5 where (x > 0) & (y > 0) & (x < 1) & (y < 1), otherwise 1.0",
    ]


def test_a_material_that_stands_once_stays_where_it_is():
    u = pb.field("u", x, y)
    k = pb.per_region({pb.Rectangle((x, 0, 1), (y, 0, 1)): 2}, 1)
    told = str(pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), 1), SQUARE, [pb.Dirichlet(u, 0)]))
    assert "Piecewise((2, " in told
    assert "case1" not in told
