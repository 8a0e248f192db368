"""Corners and holes of plane domains, against shapes where both are known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pibls.errors import GeometryError
from pibls.geometry import Ball, Box, Disk, Interval, PointCloud, Polygon, Rectangle, Star, TimeInterval
from pibls.geometry.landmarks import Hole, clearance, corners, find_cut, holes

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
    assert holes(shape) == ()


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


def test_the_annulus_has_its_inner_disk():
    assert holes(disk(1, 2, 1) - disk(1.25, 2, 0.5)) == (Hole((1.25, 2.0), 0.5),)
    assert holes(disk(0, 0, 1) - Ball((x, y), (0, 0), 0.5)) == (Hole((0.0, 0.0), 0.5),)


def test_a_sheet_with_three_holes_however_they_are_taken_away():
    a, b, c = disk(1, 1, 0.25), disk(2, 1.5, 0.3), disk(3, 0.5, 0.125)
    expected = {Hole((1.0, 1.0), 0.25), Hole((2.0, 1.5), 0.3), Hole((3.0, 0.5), 0.125)}
    for shape in (SHEET - a - b - c, SHEET - (a | b | c), SHEET - (a | c) - b, (SHEET - a) & (SHEET - b - c)):
        assert set(holes(shape)) == expected
        assert corners(shape) == ()


def test_square_holes_have_corners_too():
    frame = rectangle(0, 3, 0, 3) - rectangle(1, 2, 1, 2)
    assert holes(frame) == (Hole((1.5, 1.5), 0.5),)
    assert sorted(c.point for c in corners(frame)) == [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)]
    for corner in corners(frame):
        assert corner.angle == pytest.approx(1.5 * math.pi, abs=1e-8)
        into_the_hole = np.subtract((1.5, 1.5), corner.point)
        assert corner.direction == pytest.approx(math.atan2(*into_the_hole[::-1]), abs=1e-8)


def test_the_disk_of_a_hole_lies_in_the_hole():
    shapes = [
        Polygon((x, y), [(1, 0.5), (2, 0.5), (1.5, 1.5)]),
        Polygon((x, y), [(1, 0.2), (3, 0.2), (3, 0.4), (1.2, 0.4), (1.2, 1.6), (3, 1.6), (3, 1.8), (1, 1.8)]),
        FLOWER,
    ]
    angle = np.linspace(0, 2 * math.pi, 100)
    for shape in shapes:
        [hole] = holes(SHEET - shape)
        rim = np.array(hole.center) + 0.999 * hole.radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        assert hole.radius > 0.04
        assert shape.contains(rim).all()


def test_overlapping_holes_count_each_and_hidden_ones_do_not():
    assert holes(SHEET - disk(1, 1, 0.3) - disk(1.4, 1, 0.3)) == (Hole((1.0, 1.0), 0.3), Hole((1.4, 1.0), 0.3))
    assert holes(SHEET - disk(1, 1, 0.5) - disk(1, 1, 0.25)) == (Hole((1.0, 1.0), 0.5),)
    assert holes(SHEET - disk(1, 1, 0.5) - disk(1, 1, 0.5)) == (Hole((1.0, 1.0), 0.5),)


def test_a_bay_is_no_hole_and_nor_is_what_opens_into_it():
    assert holes(SHEET - disk(0, 1, 0.3)) == ()
    assert holes(SHEET - disk(0.1, 1, 0.3) - disk(0.5, 1, 0.3) - disk(0.9, 1, 0.3)) == ()
    assert holes(SHEET - disk(9, 9, 1)) == ()


def test_a_filled_hole_is_none_and_an_island_leaves_a_ring():
    assert holes((SHEET - disk(2, 1, 0.5)) | disk(2, 1, 0.6)) == ()
    [ring] = holes(SHEET - (disk(2, 1, 0.8) - disk(2, 1, 0.4)))
    assert math.dist(ring.center, (2, 1)) == pytest.approx(0.6, abs=0.01)
    assert ring.radius == pytest.approx(0.2, abs=0.01)


def test_time_is_left_aside():
    heated = (SQUARE - rectangle(0, 1, -1, 0) - disk(-0.5, 0.5, 0.2)) * TimeInterval(t, 0, 1)
    assert corners(heated) == corners(heated.domain)
    assert holes(heated) == (Hole((-0.5, 0.5), 0.2),)


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
def test_other_domains_have_neither(domain):
    assert corners(domain) == ()
    assert holes(domain) == ()
    with pytest.raises(GeometryError, match="clearance"):
        clearance(domain, (0, 0), 0.0)


def test_rays_from_corners():
    frame = rectangle(0, 3, 0, 3) - rectangle(1, 2, 1, 2)
    assert clearance(frame, (1, 1), math.pi / 4) == pytest.approx(math.sqrt(2), abs=0.01)
    assert clearance(L_SHAPES["difference"], (0, 0), -math.pi / 4) == math.inf


@pytest.mark.parametrize(
    ("vertices", "directions"),
    [
        # From the bottom of a slot of width w and depth d, what lies within atan(w/d) of its wall leads out of it.
        (
            [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)],
            {(2, 1): math.pi / 2 + math.atan(0.5) / 2, (1, 1): math.pi / 2 - math.atan(0.5) / 2},
        ),
        (
            [(0, 0), (1, 0), (1, 1), (2, 1), (2, 0), (3, 0), (3, 3), (2, 3), (2, 2), (1, 2), (1, 3), (0, 3)],
            {
                (1, 1): -3 * math.pi / 8,
                (2, 1): -5 * math.pi / 8,
                (1, 2): 3 * math.pi / 8,
                (2, 2): 5 * math.pi / 8,
            },
        ),
        (
            [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (2, 2), (2, 3), (1, 3), (1, 2), (0, 2), (0, 1), (1, 1)],
            {
                (1, 1): -3 * math.pi / 4,
                (2, 1): -math.pi / 4,
                (1, 2): 3 * math.pi / 4,
                (2, 2): math.pi / 4,
            },
        ),
    ],
    ids=["U", "H", "plus"],
)
def test_cuts_lead_out_of_slots(vertices, directions):
    shape = Polygon((x, y), vertices)
    found = {tuple(round(c, 9) for c in corner.point): find_cut(shape, corner) for corner in corners(shape)}
    assert found.keys() == directions.keys()
    for point, direction in directions.items():
        assert found[point] == pytest.approx(direction, abs=0.03)
        assert clearance(shape, point, found[point]) == math.inf


def test_no_cut_leads_out_of_a_hole():
    frame = rectangle(0, 3, 0, 3) - rectangle(1, 2, 1, 2)
    assert [find_cut(frame, corner) for corner in corners(frame)] == [None] * 4


@pytest.mark.parametrize("function", [corners, holes])
def test_what_is_no_domain_is_refused(function):
    with pytest.raises(GeometryError, match=f"'domain' parameter of {function.__name__}"):
        function("square")


def test_a_limit_that_is_no_angle_is_refused():
    with pytest.raises(GeometryError, match="'above'"):
        corners(SQUARE, above=-1.0)
