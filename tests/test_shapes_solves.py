"""Poisson's equation with default arguments on shapes of every kind, against exact solutions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from test_shapes_reading import FRAME, box

x, y, z = pb.coordinates("x y z")
r = pb.coordinates("r")
L = pb.Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
RIM = pb.Polygon((r, z), [(0, 0), (1, 0.2), (0.7, 1), (1.2, 2), (0, 1.5)])
SHAPES = {
    "frame": lambda: pb.read_shape(FRAME, (x, y)),
    "mask": lambda: pb.read_shape(np.pad(np.ones((4, 6), dtype=bool), 2), (x, y), bounds=((0, 2), (0, 2))),
    "ellipse": lambda: pb.Implicit((x, y), x**2 / 4 + y**2 - 1, [(-3, 3), (-2, 2)]),
    "cylinder": lambda: pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), 1),
    "L drawn out": lambda: pb.Extrusion(L, (z, 0, 1)),
    "sharp rim": lambda: pb.Revolution((x, y, z), RIM, z),
    "triangulated box": lambda: pb.Solid((x, y, z), *box((0, 0, 0), (1, 2, 1))),
}


@pytest.mark.parametrize("name", SHAPES)
def test_poisson_is_solved_as_exactly_as_it_says(name):
    shape = SHAPES[name]()
    u = pb.field("u", *shape.coordinates)
    exact = sp.sin(x + y / 2) * (sp.exp(z / 2) if shape.dimension == 3 else 1)
    source = sum(sp.diff(exact, symbol, 2) for symbol in shape.coordinates)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), source), shape, [pb.Dirichlet(u, exact)], exact=exact)
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-4


def test_parts_of_a_shape_that_was_read_carry_conditions():
    frame = pb.read_shape(FRAME, (x, y))
    u = pb.field("u", x, y)
    exact = sp.exp(x / 2) * sp.cos(y / 2)
    nx, ny = pb.normal(x, y)
    flux = nx * exact.diff(x) + ny * exact.diff(y)
    conditions = [pb.Dirichlet(u, exact, on=frame.outer), pb.Neumann(u, flux, on=frame.hole0)]
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), frame, conditions, exact=exact)
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-4


def test_half_a_disk_turned_is_a_ball():
    half = pb.Disk((r, z), (0, 0), 1) & pb.Rectangle((r, 0, 2), (z, -2, 2))
    ball = pb.Revolution((x, y, z), half, z)
    assert ball.measure == pytest.approx(4 * np.pi / 3, rel=1e-7)
    u = pb.field("u", x, y, z)
    exact = x**2 - y**2 + z
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), ball, [pb.Dirichlet(u, exact)], exact=exact)
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-4


@pytest.mark.parametrize(
    "make",
    [
        lambda: pb.read_shape(FRAME, (x, y)),
        lambda: pb.Implicit((x, y), x**2 / 4 + y**2 - 1, [(-3, 3), (-2, 2)]),
        lambda: pb.Solid((x, y, z), *box()),
        lambda: pb.Revolution((x, y, z), pb.Rectangle((r, 1, 2), (z, 0, 1)), z),
    ],
    ids=["outline", "implicit", "solid", "revolution"],
)
def test_solutions_on_new_shapes_are_saved_and_loaded(tmp_path, make):
    shape = make()
    u = pb.field("u", *shape.coordinates)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), shape, [pb.Dirichlet(u, x)])
    points = pb.Points.sample(problem, interior=60, boundary=40, seed=0)
    method = pb.PIELM(nodes=30)
    solution = method.fit(problem, points, seed=0)
    solution.save(tmp_path / "solution.pibls")
    again = pb.load(tmp_path / "solution.pibls")
    assert again.problem.domain == shape
    X = shape.sample(20)
    np.testing.assert_array_equal(again(X), solution(X))
