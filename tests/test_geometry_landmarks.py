"""Corners and holes of plane domains, against shapes where both are known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from internals import corners
from pibls.errors import GeometryError
from pibls.geometry import Box, Disk, Interval, Outline, PointCloud, Polygon, Rectangle, Star, TimeInterval

x, y, z, t = sp.symbols("x y z t")
SQUARE = Rectangle((x, -1, 1), (y, -1, 1))
SHEET = Rectangle((x, 0, 4), (y, 0, 2))
FLOWER = Star((x, y), lambda angle: 0.5 + sp.cos(3 * angle) / 20, center=(2, 1))
PENTAGRAM = [
    (radius * math.sin(k * math.pi / 5), radius * math.cos(k * math.pi / 5)) for k, radius in enumerate([1.0, 0.4] * 5)
]


def rectangle(a, b, c, d):
    return Rectangle((x, a, b), (y, c, d))


def disk(a, b, radius):
    return Disk((x, y), (a, b), radius)


L_SHAPES = {
    "polygon": Polygon((x, y), [(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)]),
    "outline": Outline((x, y), [[(-1, -1), (-1, 1), (1, 1), (1, 0), (0, 0), (0, -1)]]),
    "difference": SQUARE - rectangle(0, 1, -1, 0),
    "difference that sticks out": SQUARE - rectangle(0, 2, -3, 0),
    "union": rectangle(-1, 1, 0, 1) | rectangle(-1, 0, -1, 1),
    "intersection": SQUARE & Polygon((x, y), [(-2, -2), (0, -2), (0, 0), (2, 0), (2, 2), (-2, 2)]),
}


@pytest.mark.parametrize("shape", L_SHAPES.values(), ids=L_SHAPES)
def test_every_way_to_build_an_l_shape_has_the_same_corner(shape):
    [corner] = corners(shape)
    assert corner.point == pytest.approx((0, 0), abs=1e-11)
    assert corner.angle == pytest.approx(1.5 * math.pi, abs=1e-8)
    assert corner.direction == pytest.approx(-math.pi / 4, abs=1e-8)


@pytest.mark.parametrize("shape", L_SHAPES.values(), ids=L_SHAPES)
def test_the_interior_angles_of_a_hexagon_sum_to_four_pi(shape):
    found = corners(shape, above=0.0)
    assert len(found) == 6
    assert sum(corner.angle for corner in found) == pytest.approx(4 * math.pi, abs=1e-7)


def test_polygons_agree_with_their_own_angles():
    star = Polygon((x, y), PENTAGRAM)
    found = {tuple(np.round(c.point, 9)): c for c in corners(star, above=0.0)}
    assert len(found) == 10
    for vertex, angle in zip(star.vertices, star.corners, strict=True):
        assert found[tuple(np.round(vertex, 9))].angle == pytest.approx(angle, abs=1e-8)
    assert len(corners(star)) == 5
    for corner in corners(star):
        assert corner.direction == pytest.approx(math.atan2(corner.point[1], corner.point[0]), abs=1e-8)


@settings(max_examples=8, deadline=None)
@given(
    angle=st.floats(0.3, 2.8),
    turn=st.floats(0, 6.28),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-100, 100),
)
def test_a_wedge_cut_from_a_disk_leaves_its_complement(angle, turn, scale, shift):
    spread = [turn - angle / 2, turn + angle / 2]
    far = 3 / math.cos(angle / 2)
    vertices = [(0, 0), *((far * math.cos(a), far * math.sin(a)) for a in spread)]
    wedge = Polygon((x, y), [(scale * (a + shift), scale * b) for a, b in vertices])
    [corner] = corners(disk(scale * shift, 0, scale) - wedge)
    assert corner.point == pytest.approx((scale * shift, 0), abs=1e-10 * scale * (1 + abs(shift)))
    assert corner.angle == pytest.approx(2 * math.pi - angle, abs=1e-6)
    assert math.cos(corner.direction - turn) == pytest.approx(1, abs=1e-10)


def test_curved_sides_meet_at_the_angle_of_their_tangents():
    # Two unit circles one apart meet where x = 1/2; the radii there enclose 60 degrees.
    found = corners(disk(0, 0, 1) | disk(1, 0, 1))
    assert sorted(corner.point[1] for corner in found) == pytest.approx([-math.sqrt(0.75), math.sqrt(0.75)])
    for corner in found:
        assert corner.angle == pytest.approx(4 * math.pi / 3, abs=1e-5)
        assert math.sin(corner.direction) == pytest.approx(np.sign(corner.point[1]), abs=1e-9)


@pytest.mark.parametrize("shape", [SQUARE, disk(0, 0, 1), disk(0, 0, 1) - disk(0.2, 0, 0.3), FLOWER])
def test_convex_and_smooth_shapes_have_no_reentrant_corner(shape):
    assert corners(shape) == ()
    assert len(corners(shape, above=0.0)) == (4 if shape == SQUARE else 0)


def test_squares_that_touch_at_a_vertex_have_two_wedges_there():
    touching = rectangle(-1, 0, -1, 0) | rectangle(0, 1, 0, 1)
    at_origin = [c for c in corners(touching, above=0.0) if c.point == (0.0, 0.0)]
    assert [c.angle for c in at_origin] == pytest.approx([math.pi / 2] * 2, abs=1e-8)


@pytest.mark.parametrize(
    "frame",
    [
        rectangle(0, 3, 0, 3) - rectangle(1, 2, 1, 2),
        Outline((x, y), [[(0, 0), (3, 0), (3, 3), (0, 3)], [(1, 1), (2, 1), (2, 2), (1, 2)]]),
        Outline((x, y), [[(0, 0), (0, 3), (3, 3), (3, 0)], [(1, 1), (1, 2), (2, 2), (2, 1)]]),
    ],
    ids=["difference", "outline", "outline the other way round"],
)
def test_square_holes_have_corners_too(frame):
    assert sorted(c.point for c in corners(frame)) == [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)]
    for corner in corners(frame):
        assert corner.angle == pytest.approx(1.5 * math.pi, abs=1e-8)
        into_the_hole = np.subtract((1.5, 1.5), corner.point)
        assert corner.direction == pytest.approx(math.atan2(*into_the_hole[::-1]), abs=1e-8)


def test_time_is_left_aside():
    heated = (SQUARE - rectangle(0, 1, -1, 0) - disk(-0.5, 0.5, 0.2)) * TimeInterval(t, 0, 1)
    assert corners(heated) == corners(heated.domain)


@pytest.mark.parametrize(
    "domain",
    [
        Interval((x, 0, 1)),
        Box((x, 0, 1), (y, 0, 1), (z, 0, 1)),
        TimeInterval(t, 0, 1),
        PointCloud((x, y), np.random.default_rng(0).random((20, 2)), np.eye(2)),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_other_domains_have_none(domain):
    assert corners(domain) == ()


def test_what_is_no_domain_is_refused():
    with pytest.raises(GeometryError, match="'domain' parameter of corners"):
        corners("square")


def test_a_limit_that_is_no_angle_is_refused():
    with pytest.raises(GeometryError, match="'above'"):
        corners(SQUARE, above=-1.0)
