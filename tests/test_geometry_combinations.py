"""Unions, intersections, differences and products: boundaries, normals, measures, lifted parts, opposite faces."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pibls.errors import GeometryError
from pibls.geometry import (
    Ball,
    Box,
    Cone,
    Cylinder,
    Disk,
    Extrusion,
    Implicit,
    Interval,
    Outline,
    Polygon,
    Rectangle,
    Revolution,
    Solid,
    Star,
    TimeInterval,
    Torus,
)

x, y, z, t, r, theta = sp.symbols("x y z t r theta")

SQUARE = Rectangle((x, 0, 2), (y, 0, 2))
CORNER = Rectangle((x, 1, 2), (y, 1, 2))
PLATE = Rectangle((x, -1, 1), (y, -1, 1)) - Disk((x, y), (0, 0), 0.5)
LENS_AREA = 2 * math.pi / 3 - math.sqrt(3) / 2
LENS_VOLUME = 5 * math.pi / 12
CORNERS = [(a, b, c) for c in (0, 1) for b in (0, 1) for a in (0, 2)]
QUADS = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
TRIANGULATED = Solid((x, y, z), CORNERS, [half for a, b, c, d in QUADS for half in ((a, b, c), (a, c, d))])

# shape, measure, measure of the boundary
PLANE = {
    "L": (SQUARE - CORNER, 3, 8),
    "L from three": (
        Rectangle((x, 0, 1), (y, 0, 1)) | Rectangle((x, 1, 2), (y, 0, 1)) | Rectangle((x, 0, 1), (y, 1, 2)),
        3,
        8,
    ),
    "L from overlapping": (Rectangle((x, 0, 2), (y, 0, 1)) | Rectangle((x, 0, 1), (y, 0, 2)), 3, 8),
    "step": (Rectangle((x, 0, 1), (y, 0, 1)) | Rectangle((x, 1, 2), (y, 0, 0.5)), 1.5, 6),
    "rounding": (Rectangle((x, 0, 0.1 + 0.2), (y, 0, 1)) | Rectangle((x, 0.3, 1), (y, 0, 1)), 1, 4),
    "plate": (PLATE, 4 - math.pi / 4, 8 + math.pi),
    "bite": (
        Rectangle((x, -1, 1), (y, -1, 1)) - Disk((x, y), (1, 1), 0.5),
        4 - math.pi / 16,
        8 - 1 + math.pi / 4,
    ),
    "lens": (Disk((x, y), (0, 0), 1) & Disk((x, y), (1, 0), 1), LENS_AREA, 4 * math.pi / 3),
    "pair": (Disk((x, y), (0, 0), 1) | Disk((x, y), (1, 0), 1), 2 * math.pi - LENS_AREA, 8 * math.pi / 3),
    "moon": (Disk((x, y), (0, 0), 1) - Disk((x, y), (1, 0), 1), math.pi - LENS_AREA, 2 * math.pi),
    "outline": (
        Outline((x, y), [[(0, 0), (4, 0), (4, 4), (0, 4)], [(1, 1), (2, 1), (2, 2), (1, 2)]])
        - Rectangle((x, 3, 5), (y, 3, 5)),
        14,
        20,
    ),
    "ellipse": (Implicit((x, y), x**2 / 4 + y**2 - 1, [(-2.5, 2.5), (-1.5, 1.5)]), 2 * math.pi, 8 * 1.2110560275684595),
    "two": (Disk((x, y), (0, 0), 1) | Disk((x, y), (5, 0), 1), 2 * math.pi, 4 * math.pi),
    "nested": ((PLATE | Disk((x, y), (0, 0), 0.25)) - Disk((x, y), (0, 0), 0.1), None, None),
    "touching outside": (SQUARE - Rectangle((x, 2, 3), (y, 0, 2)), 4, 8),
    "polygon and star": (
        Polygon((x, y), [(-2, -2), (2, -2), (0, 2)]) & Star((x, y), 1 + sp.cos(5 * theta) / 4),
        None,
        None,
    ),
}
SOLID = {
    "shell": (Ball((x, y, z), (1, 0, 0), 1) - Ball((x, y, z), (1, 0, 0), 0.5), 7 * math.pi / 6, 5 * math.pi),
    "balls": (
        Ball((x, y, z), (0, 0, 0), 1) | Ball((x, y, z), (1, 0, 0), 1),
        8 * math.pi / 3 - LENS_VOLUME,
        6 * math.pi,
    ),
    "bricks": (Box((x, 0, 1), (y, 0, 1), (z, 0, 1)) | Box((x, 1, 2), (y, 0, 1), (z, 0, 1)), 2, 10),
    "pipe": (Extrusion(Disk((x, y), (0, 0), 1) - Disk((x, y), (0, 0), 0.5), (z, 0, 2)), 1.5 * math.pi, 7.5 * math.pi),
    "half disk": (
        Revolution((x, y, z), Disk((r, x), (0, 0), 1) & Rectangle((r, 0, 2), (x, -2, 2)), x),
        4 * math.pi / 3,
        4 * math.pi,
    ),
    "cap": (
        Revolution((x, y, z), Disk((r, z), (0, 0), 2) & Rectangle((r, 0, 3), (z, 1, 3)), z),
        5 * math.pi / 3,
        7 * math.pi,
    ),
    "drilled cylinder": (
        Cylinder((x, y, z), (0, 0, 0), (0, 0, 1), 1) - Cylinder((x, y, z), (0, 0, -1), (0, 0, 2), 0.5),
        0.75 * math.pi,
        4.5 * math.pi,
    ),
    "spool": (
        Cylinder((x, y, z), (0, 0, 0), (0, 0, 1), 1) | Cone((x, y, z), (0, 0, 1), (0, 0, 2), 1),
        4 * math.pi / 3,
        (3 + math.sqrt(2)) * math.pi,
    ),
    "half torus": (Torus((x, y, z), (0, 0, 0), 2, 0.5) & Box((x, -3, 3), (y, 0, 3), (z, -1, 1)), math.pi**2 / 2, None),
    "triangulated box": (TRIANGULATED, 2, 10),
    "drilled solid": (TRIANGULATED - Cylinder((x, y, z), (0.5, 0.5, -1), (0.5, 0.5, 2), 0.25), 2 - math.pi / 16, None),
    "ellipsoid": (
        Implicit((x, y, z), x**2 / 4 + y**2 + z**2 - 1, [(-2.5, 2.5), (-1.5, 1.5), (-1.5, 1.5)]),
        8 * math.pi / 3,
        None,
    ),
    "half ellipsoid": (
        Implicit((x, y, z), x**2 / 4 + y**2 + z**2 - 1, [(-2.5, 2.5), (-1.5, 1.5), (-1.5, 1.5)])
        & Box((x, 0, 3), (y, -2, 2), (z, -2, 2)),
        4 * math.pi / 3,
        None,
    ),
    "drilled box": (Box((x, 0, 1), (y, 0, 1), (z, 0, 1)) - Ball((x, y, z), (0, 0, 0), 0.5), 1 - math.pi / 48, None),
}
SPACES = {
    "shell": Ball((x, y, z, t), (1, 0, 0, 0), 1) - Ball((x, y, z, t), (1, 0, 0, 0), 0.5),
    "intervals": Interval((x, 0, 1)) | Interval((x, 2, 3)),
}


def rows(shapes):
    return pytest.mark.parametrize(("shape", "area", "perimeter"), shapes.values(), ids=shapes.keys())


def field(X):
    following = np.roll(X, -1, axis=1)
    return np.sin(X + 0.3) * np.exp(0.5 * following), (np.cos(X + 0.3) * np.exp(0.5 * following)).sum(axis=1)


@rows(PLANE)
def test_plane_combinations_have_exact_measures_and_fluxes(shape, area, perimeter):
    if area is not None:
        assert shape.measure == pytest.approx(area, rel=1e-9)
        assert shape.boundary.measure == pytest.approx(perimeter, rel=1e-9)
    points, normals, lengths = shape.boundary.quadrature(3000)
    constant = normals.T @ lengths
    np.testing.assert_allclose(constant, 0, atol=1e-9 * lengths.sum())
    X, weights = shape.quadrature(2**13)
    flux = (field(points)[0] * normals).sum(axis=1) @ lengths
    assert flux == pytest.approx(weights @ field(X)[1], rel=1e-6)
    assert weights.min() > 0
    assert (shape.level(X) > -shape.tolerance).all()
    assert 0.5 * 2**13 < len(weights) < 2 * 2**13


def test_boundaries_end_right_where_they_cross():
    shape = Disk((x, y), (0, 0), 1) | Rectangle((x, 0, 2), (y, -0.5, 0.5))
    arc, right, below, above = shape.boundary.patches
    assert arc.measure == pytest.approx(5 * math.pi / 3, rel=1e-14)
    assert (right.measure, below.measure) == (1.0, pytest.approx(2 - math.sqrt(3) / 2, rel=1e-14))
    assert above.measure == below.measure


@rows(SOLID)
def test_solid_combinations_satisfy_the_divergence_theorem(shape, area, perimeter):
    assert shape.measure == pytest.approx(area, rel=5e-4)
    if perimeter is not None:
        assert shape.boundary.measure == pytest.approx(perimeter, rel=2e-3)
    X, weights = shape.quadrature(2**13)
    points, normals, lengths = shape.boundary.quadrature(2**13)
    flux = (field(points)[0] * normals).sum(axis=1) @ lengths
    assert flux == pytest.approx(weights @ field(X)[1], rel=5e-3)


def test_nested_shapes_have_exact_measures_in_any_dimension():
    assert SOLID["shell"][0].measure == pytest.approx(7 * math.pi / 6, rel=1e-12)
    assert SPACES["shell"].measure == pytest.approx(math.pi**2 / 2 * (1 - 1 / 16), rel=1e-12)
    assert SPACES["intervals"].measure == pytest.approx(2, rel=1e-12)
    np.testing.assert_array_equal(np.sort(SPACES["intervals"].boundary.sample(9).points.ravel()), [0, 1, 2, 3])


@rows(PLANE | SOLID)
@pytest.mark.parametrize("method", ["sobol", "grid", "lhs"])
def test_samples_are_inside_and_boundary_normals_point_out(shape, area, perimeter, method):
    X = shape.sample(200, method, seed=2)
    assert X.shape == (200, shape.dimension)
    assert shape.contains(X).all()
    points, normals = shape.boundary.sample(300, method, seed=2)
    assert points.shape == normals.shape == (300, shape.dimension)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=0, atol=1e-14)
    assert shape.contains(points).all()
    step = 2e-6 * shape.thickness * normals
    # A step from a point right beside a corner may leave through the other side.
    assert shape.contains(points - step).mean() > 0.99
    assert (~shape.contains(points + step)).mean() > 0.99


def test_coincident_boundaries_count_once_and_touching_ones_vanish():
    step = PLANE["step"][0]
    points, _ = step.boundary.sample(2000, "grid")
    inside_seam = (np.abs(points[:, 0] - 1) < 1e-9) & (points[:, 1] < 0.5 - 1e-6)
    assert not inside_seam.any()
    overlapping = PLANE["L from overlapping"][0]
    points, _ = overlapping.boundary.sample(800, "grid")
    assert (points[:, 1] == 0).sum() == pytest.approx(200, abs=2)
    assert (points[:, 0] == 0).sum() == pytest.approx(200, abs=2)


def test_shapes_of_many_holes_are_as_simple_as_their_parts():
    plate = Rectangle((x, 0, 8), (y, 0, 8))
    holes = [Disk((x, y), (0.5 + i, 0.7 + j), 0.1 + 0.02 * i) for i in range(8) for j in range(5)]
    for hole in holes:
        plate = plate - hole
    assert plate.measure == pytest.approx(64 - sum(hole.measure for hole in holes), rel=1e-9)
    assert len(plate.boundary.patches) == 44
    lifted = plate.lift(holes[0].boundary).patches[0]
    for patch in (lifted, *plate.boundary.patches):
        # Nothing is cut off, and no layer remembers what might have been.
        assert type(getattr(patch, "base", patch)).__name__ in ("AffinePatch", "SpherePatch")


def test_lift_turns_the_normals_of_a_hole_and_keeps_what_is_visible():
    square, disk = PLATE.first, PLATE.second
    hole = PLATE.lift(disk.boundary)
    points, normals = hole.sample(50)
    np.testing.assert_allclose(normals, -2 * points, atol=1e-14)
    assert hole.measure == pytest.approx(math.pi)
    assert PLATE.lift(square.left).measure == 2
    assert PLATE.lift(PLATE.boundary) is PLATE.boundary
    assert PLATE.left == PLATE.lift(square.left)
    ell = SQUARE - CORNER
    assert ell.lift(SQUARE.right).measure == pytest.approx(1)
    assert ell.lift(CORNER.left).measure == pytest.approx(1)
    np.testing.assert_array_equal(ell.lift(CORNER.left).sample(3).normals, [[1, 0]] * 3)
    with pytest.raises(GeometryError, match="is not on the boundary of"):
        ell.lift(CORNER.right)


def test_lift_goes_through_nested_combinations_and_products():
    small = Disk((x, y), (0.7, 0.7), 0.1)
    nested = (PLATE - small) * TimeInterval(t, 0, 3)
    for disk in (PLATE.second, small):
        wall = nested.lift(disk.boundary)
        assert wall.measure == pytest.approx(3 * disk.boundary.measure)
        points, normals = wall.sample(20)
        np.testing.assert_allclose(normals[:, :2], (np.array(disk.center) - points[:, :2]) / disk.radius, atol=1e-12)
        assert nested.boundary.contains(points).all()
    assert nested.lift(PLATE.first.left).measure == 6
    assert nested.lift(TimeInterval(t, 0, 3).initial) == nested.initial
    assert nested.lift(nested.left) == nested.left
    with pytest.raises(GeometryError, match="is not on the boundary of"):
        nested.lift(Disk((x, y), (0, 0), 9).boundary)
    with pytest.raises(GeometryError, match="must be a part"):
        nested.lift("left")


def test_a_failing_predicate_is_not_mistaken_for_a_foreign_part():
    nested = PLATE - Disk((x, y), (0.7, 0.7), 0.1)
    with pytest.raises(GeometryError, match="raised ZeroDivisionError"):
        nested.lift(PLATE.second.boundary.where(lambda X: 1 / 0))


def test_a_part_of_both_operands_is_lifted_from_both():
    upper = Rectangle((x, 0, 1), (y, 0, 1))
    same = upper | (upper - Disk((x, y), (0.5, 0.5), 0.2))
    assert same.lift(upper.left).measure == pytest.approx(1)


def test_product_is_space_times_time():
    disk, interval = Disk((x, y), (1, 0), 0.5), TimeInterval(t, 1, 3)
    cylinder = disk * interval
    assert cylinder.coordinates == (x, y, t)
    assert cylinder.space == (x, y)
    assert cylinder.time == t
    assert cylinder.measure == pytest.approx(math.pi / 2)
    assert cylinder.boundary.measure == pytest.approx(2 * math.pi)
    assert cylinder.initial.measure == cylinder.final.measure == disk.measure
    np.testing.assert_array_equal(cylinder.bounds, [[0.5, 1.5], [-0.5, 0.5], [1, 3]])
    np.testing.assert_array_equal(cylinder.initial.sample(9, seed=4).points[:, :2], disk.sample(9, seed=4))
    X, weights = cylinder.quadrature(8000)
    points, normals, areas = (
        np.concatenate(columns)
        for columns in zip(
            *(part.quadrature(4000) for part in (cylinder.boundary, cylinder.initial, cylinder.final)), strict=True
        )
    )
    flux = (field(points)[0] * normals).sum(axis=1) @ areas
    assert flux == pytest.approx(weights @ field(X)[1], rel=1e-11)
    assert cylinder.initial.contains([[1, 0, 1], [1, 0, 1.1], [3, 0, 1]]).tolist() == [True, False, False]
    assert cylinder.contains([[1, 0, 2], [1, 0, 3.1], [2, 0, 2]]).tolist() == [True, False, False]


def test_product_of_very_different_units_keeps_both_apart():
    slow = Interval((x, 0, 1e-6)) * TimeInterval(t, 0, 1e6)
    assert slow.contains([[0.5e-6, 5], [2e-6, 5], [0.5e-6, -1]]).tolist() == [True, False, False]
    points, _ = slow.left.sample(20)
    assert slow.boundary.contains(points).all()
    assert not slow.right.contains(points).any()
    flat = Rectangle((x, 0, 1e6), (y, 0, 1e-3))
    assert flat.contains([[5, 5e-4], [5, 2e-3]]).tolist() == [True, False]


def test_initial_face_restricted_to_a_region():
    product = Rectangle((x, 0, 1), (y, 0, 1)) * TimeInterval(t, 0, 1)
    spot = product.initial.where(lambda X: np.hypot(X[:, 0] - 0.5, X[:, 1] - 0.5) < 0.25)
    assert spot.measure == pytest.approx(math.pi / 16, rel=1e-2)
    points, _ = spot.sample(50)
    assert points.shape == (50, 3)
    assert (np.hypot(*(points[:, :2] - 0.5).T) < 0.25).all()
    _, _, weights = spot.quadrature(500)
    assert weights.sum() == pytest.approx(spot.measure)
    half = (Disk((x, y), (0, 0), 1) * TimeInterval(t, 0, 1)).initial.where(lambda X: X[:, 0] > 0)
    assert half.measure == pytest.approx(math.pi / 2, rel=1e-3)
    assert half.where(lambda X: X[:, 0] < 0).empty
    late = product.left.where(lambda X: X[:, 2] > 0.5)
    assert late.measure == pytest.approx(0.5, rel=1e-3)
    assert (late.sample(40, "grid").points[:, 2] > 0.5).all()


FACED = [
    (Interval((x, 0, 1)), x),
    (Rectangle((x, 0, 1), (y, 0, 2)), x),
    (Rectangle((x, 0, 1), (y, 0, 2)), y),
    (Box((x, 0, 1), (y, 0, 2), (z, -1, 1)), y),
    (Rectangle((x, 0, 1), (y, 0, 2)) * TimeInterval(t, 0, 1), y),
    (Disk((x, y), (0, 0), 1) * TimeInterval(t, 0, 1), t),
    (Interval((x, 0, 1)) * TimeInterval(t, 0, 1), x),
    (TimeInterval(t, 0, 1), t),
    (PLATE, x),
    (PLATE * TimeInterval(t, 0, 1), y),
    (Rectangle((x, -1, 1), (y, -1, 1)) & Disk((x, y), (0, 0), 5), y),
]


@pytest.mark.parametrize(("shape", "coordinate"), FACED)
@pytest.mark.parametrize("method", ["sobol", "grid", "uniform"])
def test_opposite_faces_match_point_by_point(shape, coordinate, method):
    low, high = (face.sample(30, method, seed=7) for face in shape.faces(coordinate))
    axis = shape.coordinates.index(coordinate)
    np.testing.assert_array_equal(low.points[:, axis], shape.bounds[axis, 0])
    np.testing.assert_array_equal(high.points[:, axis], shape.bounds[axis, 1])
    np.testing.assert_array_equal(np.delete(low.points, axis, 1), np.delete(high.points, axis, 1))
    np.testing.assert_array_equal(low.normals, -high.normals)


@pytest.mark.parametrize(
    ("shape", "coordinate"),
    [
        (Disk((x, y), (0, 0), 1), x),
        (Polygon((x, y), [(0, 0), (1, 0), (0, 1)]), x),
        (SQUARE - CORNER, x),
        (Disk((x, y), (0, 0), 1) * TimeInterval(t, 0, 1), x),
        (SQUARE, z),
        (SQUARE, "x"),
        (TimeInterval(t, 0, 1), x),
        (SQUARE * TimeInterval(t, 0, 1), z),
    ],
)
def test_shapes_without_opposite_faces_say_so(shape, coordinate):
    with pytest.raises(GeometryError, match=r"no pair of opposite flat faces|must be one of"):
        shape.faces(coordinate)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(-0.9, 0.9),
    st.floats(-0.9, 0.9),
    st.floats(0.15, 1.2),
    st.sampled_from(["|", "&", "-"]),
    st.booleans(),
)
def test_random_square_and_disk_agree_with_counting(a, b, radius, operation, swapped):
    one, two = Rectangle((x, -1, 1), (y, -1, 1)), Disk((x, y), (a, b), radius)
    one, two = (two, one) if swapped else (one, two)
    try:
        shape = {"|": one.__or__, "&": one.__and__, "-": one.__sub__}[operation](two)
    except GeometryError:
        grid = np.stack(np.meshgrid(*[np.linspace(-2.1, 2.1, 300)] * 2), axis=-1).reshape(-1, 2)
        assert operation == "-"
        assert not (one.contains(grid) & ~two.contains(grid)).mean() > 1e-4
        return
    axis = (np.arange(400) + 0.5) / 400 * 4.4 - 2.2
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    counted = shape.contains(grid).mean() * 4.4**2
    assert shape.measure == pytest.approx(counted, abs=0.03)
    _, normals, lengths = shape.boundary.quadrature(400)
    # Where curves touch instead of crossing, sides can only be told apart a small step away from the boundary.
    touches = any(abs(1 - abs(c) - radius) < 1e-3 for c in (a, b))
    np.testing.assert_allclose(normals.T @ lengths, 0, atol=1e-4 if touches else 1e-6)
