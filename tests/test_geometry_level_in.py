"""What is left of a shape in a box: inside is inside, however little of the shape is looked at."""

from __future__ import annotations

import numpy as np
import pytest

import pibls as pb
from internals import RestrictedPatch
from test_shapes_reading import box

x, y, z = pb.coordinates("x y z")
RING = [
    (np.cos(a) * (1 + 0.3 * np.cos(7 * a)), np.sin(a) * (1 + 0.3 * np.cos(7 * a))) for a in np.arange(70) / 70 * 6.28
]
LAKE = [(0.2, 0.1), (0.3, 0.4), (-0.3, 0.2)]
SHAPES = {
    "box": pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 2)),
    "disk": pb.Disk((x, y), (0.1, 0.2), 0.6),
    "holes": pb.Rectangle((x, 0, 3), (y, 0, 2)) - pb.Disk((x, y), (1, 1), 0.3) - pb.Disk((x, y), (2, 1.2), 0.4),
    "union": (pb.Disk((x, y), (0, 0), 1) | pb.Disk((x, y), (1, 0), 1)) & pb.Rectangle((x, -0.5, 2), (y, -2, 0.7)),
    "coast": pb.Outline((x, y), [RING, LAKE]),
    "ellipse": pb.Implicit((x, y), x**2 / 4 + y**2 - 1, [(-3, 3), (-2, 2)]),
    "solid": pb.Solid((x, y, z), *box((0, 0, 0), (1, 2, 1))),
    "solid in a ball": pb.Ball((x, y, z), (0.5, 1, 0.5), 1.1) - pb.Solid((x, y, z), *box((0, 0, 0), (1, 2, 1))),
}


@pytest.mark.parametrize("name", SHAPES)
def test_signs_in_a_box_are_those_of_the_shape(name):
    shape = SHAPES[name]
    rng = np.random.default_rng(1)
    low, high = shape.bounds.T
    whole = 0
    for _ in range(60):
        middle, half = rng.uniform(low - 0.1, high + 0.1), rng.uniform(0.02, 0.4, len(low)) * (high - low)
        X = rng.uniform(middle - half, middle + half, (200, len(low)))
        found = shape.level_in(middle - half, middle + half)
        inside = np.full(len(X), found) if isinstance(found, bool) else found(X) > 0
        np.testing.assert_array_equal(inside, shape.level(X) > 0)
        whole += isinstance(found, bool)
    assert whole > 0 or name == "ellipse"


def test_what_the_other_boundary_does_not_come_near_is_kept_as_it_is():
    box = pb.Box((x, -2, 2), (y, -2, 2), (z, -2, 2))
    plate = pb.Implicit((x, y, z), x**2 + y**2 + 9 * (z - 1) ** 2 - 1, [(-1.1, 1.1), (-1.1, 1.1), (0.6, 1.4)])
    ball = pb.Ball((x, y, z), (0, 0, -1), 0.5)
    solid = box - plate - ball
    patches = solid.lift(plate.boundary).patches + solid.lift(ball.boundary).patches
    assert not any(isinstance(patch, RestrictedPatch) for patch in patches)
    assert len(patches) == len(plate.boundary.patches) + 1
    # One that the other shape covers is gone, and one that it cuts is tested point by point.
    covered, cut = box | ball, ball - pb.Box((x, -1, 1), (y, -1, 1), (z, -1, 1))
    assert covered.boundary.patches == tuple(covered.lift(box.boundary).patches)
    assert any(isinstance(patch, RestrictedPatch) for patch in cut.boundary.patches)
