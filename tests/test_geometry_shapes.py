"""Measures, quadrature, samples and normals of every shape, against closed forms and the divergence theorem."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import dblquad
from scipy.special import i0, i1, spherical_in

from pibls.geometry import (
    METHODS,
    Ball,
    Box,
    Cone,
    Cylinder,
    Disk,
    Extrusion,
    Interval,
    Outline,
    PointCloud,
    Polygon,
    Rectangle,
    Revolution,
    Star,
    TimeInterval,
    Torus,
)

x, y, z, t, theta = sp.symbols("x y z t theta")
p, q, r = sp.symbols("p q r")

L_VERTICES = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
PLANE = {
    "rectangle": Rectangle((x, 0, 2), (y, 1, 2)),
    "disk": Disk((x, y), (1, 2), 0.7),
    "polygon": Polygon((x, y), [(0, 0), (0, 2), (1, 2), (1, 1), (2, 1), (2.2, -0.3)]),
    "comb": Polygon((x, y), [(0, 0), (5, 0), (5, 2), (4, 2), (4, 1), (3, 1), (3, 3), (2, 0.5), (1, 2), (0, 1)]),
    "star": Star((x, y), 1 + sp.cos(5 * theta) / 4, (3, 1)),
    "outline": Outline(
        (x, y),
        [
            [(0, 0), (4, 0.5), (3.5, 3), (2, 2.5), (0.5, 3)],
            [(1, 1), (1.5, 2), (2, 1)],
            [(2.5, 1), (3.2, 1.2), (3, 2), (2.4, 2)],
            [(2.7, 1.3), (2.9, 1.3), (2.8, 1.8)],
            [(6, 0), (5, 0), (5.5, 2)],
        ],
    ),
    "array star": Star((x, y), lambda a: np.exp(np.cos(a - 1) / 2)),
}
TURNED = {
    "cylinder": Cylinder((x, y, z), (0, 1, 0), (1, 2, 0.5), 0.6),
    "upright cylinder": Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), 0.5),
    "cylinder hanging down": Cylinder((x, y, z), (1, 0, 2), (1, 0, 0.5), 0.5),
    "cone": Cone((x, y, z), (1, 0, 0), (0, 0.5, 1.5), 0.8),
    "cone upside down": Cone((x, y, z), (0, 0, 0), (0, 0, 1), 0, top_radius=0.5),
    "truncated cone": Cone((x, y, z), (0, 0, 0), (0, 1, 0), 1, top_radius=0.4),
    "torus": Torus((x, y, z), (1, 0, -1), 1.5, 0.4, axis=(1, 2, 2)),
    "prism": Extrusion(PLANE["polygon"], (z, -1, 0.5)),
    "flower": Extrusion(PLANE["star"], (z, 0, 1)),
    "vase": Revolution((x, y, z), Polygon((r, y), [(0, 0), (1, 0.2), (0.7, 1), (1.2, 2), (0, 1.5)]), y),
    "flower ring": Revolution((x, y, z), Star((z, r), 0.5 + sp.cos(5 * theta) / 10, (0, 1)), z),
}
SOLID = {
    "interval": Interval((x, -1, 2)),
    "box": Box((x, 0, 1), (y, 0, 2), (z, -1, 0)),
    "hyperbox": Box((x, 0, 1), (y, 0, 2), (z, -1, 0), (p, 1, 2)),
    "ball": Ball((x, y, z), (1, 2, 3), 0.5),
    **TURNED,
    **PLANE,
}
SAMPLED = {
    "five-ball": Ball((x, y, z, p, q), (1, 0, 0, 0, 2), 0.5),
    "four-ball": Ball((x, y, z, p), (1, 0, 0, 0), 0.5),
    "six-box": Box(*((s, 0, 1) for s in (x, y, z, p, q, r))),
    "time": TimeInterval(t, 1, 3),
    "star over time": PLANE["star"] * TimeInterval(t, 1, 3),
    "ring over time": TURNED["torus"] * TimeInterval(t, 1, 3),
    "strip": Interval((x, -1, 2)) * TimeInterval(t, 0, 5),
    **SOLID,
}


def each(shapes):
    return pytest.mark.parametrize("shape", shapes.values(), ids=shapes.keys())


def field(X):
    """A vector field that no low-order rule integrates exactly, and its divergence."""
    d = X.shape[1]
    following = np.roll(X, -1, axis=1) if d > 1 else np.zeros_like(X)
    return np.sin(X + 0.3) * np.exp(0.5 * following), (np.cos(X + 0.3) * np.exp(0.5 * following)).sum(axis=1)


@each(SOLID)
def test_divergence_theorem_to_machine_precision(shape):
    X, weights = shape.quadrature(20000 if shape.dimension > 2 else 4000)
    points, normals, lengths = shape.boundary.quadrature(20000 if shape.dimension > 2 else 2000)
    flux = (field(points)[0] * normals).sum(axis=1) @ lengths
    assert flux == pytest.approx(weights @ field(X)[1], rel=1e-11)


@each(SAMPLED)
def test_quadrature_weights_sum_to_the_measure_and_nodes_are_inside(shape):
    X, weights = shape.quadrature(900)
    assert weights.sum() == pytest.approx(shape.measure, rel=1e-12)
    assert (weights > 0).all()
    assert shape.contains(X).all()
    assert 0.5 * 900 < len(X) < 2 * 900


@pytest.mark.parametrize(
    ("shape", "area", "perimeter"),
    [
        (Interval((x, -1, 2)), 3, 2),
        (Rectangle((x, 0, 2), (y, 1, 4)), 6, 10),
        (Box((x, 0, 1), (y, 0, 2), (z, 0, 3)), 6, 22),
        (Box(*((s, 0, 2) for s in (x, y, z, p, q))), 32, 160),
        (Disk((x, y), (3, 4), 2), 4 * math.pi, 4 * math.pi),
        (Ball((x, y, z), (0, 0, 0), 2), 32 * math.pi / 3, 16 * math.pi),
        (Ball((x, y, z, p), (0, 0, 0, 0), 1), math.pi**2 / 2, 2 * math.pi**2),
        (Ball((x, y, z, p, q), (0,) * 5, 1), 8 * math.pi**2 / 15, 8 * math.pi**2 / 3),
        (Polygon((x, y), L_VERTICES), 3, 8),
        (Cylinder((x, y, z), (0, 0, 0), (0, 3, 4), 2), 20 * math.pi, 28 * math.pi),
        (Cone((x, y, z), (0, 0, 0), (4, 0, 0), 3), 12 * math.pi, 24 * math.pi),
        (Cone((x, y, z), (0, 0, 0), (0, 0, 4), 4, top_radius=1), 28 * math.pi, 42 * math.pi),
        (Torus((x, y, z), (0, 0, 0), 3, 1), 6 * math.pi**2, 12 * math.pi**2),
        (Extrusion(Polygon((x, y), L_VERTICES), (z, 0, 2)), 6, 22),
        (Revolution((x, y, z), Disk((r, z), (3, 0), 1), z), 6 * math.pi**2, 12 * math.pi**2),
        (Revolution((x, y, z), Polygon((y, r), [(0, 0), (4, 0), (0, 3)]), y), 12 * math.pi, 24 * math.pi),
        (Outline((x, y), [[(0, 0), (3, 0), (3, 3), (0, 3)], [(1, 1), (1, 2), (2, 2), (2, 1)]]), 8, 16),
        (Star((x, y), 2), 4 * math.pi, 4 * math.pi),
        (Star((x, y), 1 + sp.cos(3 * theta) / 2), math.pi * (1 + 1 / 8), None),
    ],
)
def test_measures_are_those_of_the_books(shape, area, perimeter):
    assert shape.measure == pytest.approx(area, rel=1e-13)
    if perimeter is not None:
        assert shape.boundary.measure == pytest.approx(perimeter, rel=1e-13)


def test_exponentials_integrate_to_bessel_functions_on_disk_and_ball():
    X, weights = Disk((x, y), (0, 0), 1).quadrature(600)
    assert weights @ np.exp(X[:, 0]) == pytest.approx(2 * np.pi * i1(1), rel=1e-13)
    X, weights = Ball((x, y, z), (0, 0, 0), 1).quadrature(2000)
    assert weights @ np.exp(X[:, 2]) == pytest.approx(4 * np.pi * spherical_in(1, 1.0), rel=1e-13)
    points, _, lengths = Disk((x, y), (0, 0), 1).boundary.quadrature(40)
    assert lengths @ np.exp(points[:, 0]) == pytest.approx(2 * np.pi * i0(1), rel=1e-14)


def test_polygon_rule_is_exact_for_polynomials_whatever_the_orientation():
    forward, backward = Polygon((x, y), L_VERTICES), Polygon((x, y), L_VERTICES[::-1])
    exact = dblquad(lambda b, a: a**3 * b**2, 0, 2, 0, lambda a: 2 if a < 1 else 1, epsabs=1e-12)[0]
    for shape in (forward, backward):
        X, weights = shape.quadrature(200)
        assert weights @ (X[:, 0] ** 3 * X[:, 1] ** 2) == pytest.approx(exact, rel=1e-6)
        assert weights @ (X[:, 0] ** 3 * X[:, 1] ** 2) == pytest.approx(
            (16 / 4) * (1 / 3) + (1 / 4) * (7 / 3), rel=1e-13
        )


@each(SAMPLED)
@pytest.mark.parametrize("method", METHODS)
def test_samples_are_inside_exact_in_number_and_repeatable(shape, method):
    X = shape.sample(137, method, seed=3)
    assert X.shape == (137, shape.dimension)
    assert shape.contains(X).all()
    assert len(np.unique(X, axis=0)) > 100 or method == "grid"
    np.testing.assert_array_equal(X, shape.sample(137, method, seed=np.random.default_rng(3)))
    if method != "grid":
        assert not np.array_equal(X, shape.sample(137, method, seed=4))


@each(SAMPLED)
def test_samples_have_the_mean_of_the_uniform_distribution(shape):
    nodes, weights = shape.quadrature(4000)
    mean = weights @ nodes / weights.sum()
    extent = shape.bounds[:, 1] - shape.bounds[:, 0]
    X = shape.sample(4000)
    np.testing.assert_allclose(X.mean(axis=0) / extent, mean / extent, atol=6e-3)
    np.testing.assert_allclose(shape.sample(4000, "grid").mean(axis=0) / extent, mean / extent, atol=3e-2)


@each({name: shape for name, shape in SAMPLED.items() if name != "time"})
@pytest.mark.parametrize("method", METHODS)
def test_boundary_samples_have_outward_unit_normals(shape, method):
    points, normals = shape.boundary.sample(150, method, seed=1)
    assert len(points) == (2 if shape.dimension == 1 else 150)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=0, atol=1e-14)
    step = 1e-6 * normals
    assert shape.contains(points).all()
    assert shape.contains(points - step).all()
    assert not shape.contains(points + step).any()
    assert shape.boundary.contains(points).all()
    assert not shape.boundary.contains(points + step).any()
    np.testing.assert_allclose(shape.boundary.normals(points), normals, rtol=0, atol=2e-9)


@each({name: shape for name, shape in SAMPLED.items() if shape.time is not None and shape.dimension > 1})
def test_lateral_normals_have_no_time_component(shape):
    assert not shape.boundary.sample(50).normals[:, -1].any()
    np.testing.assert_array_equal(shape.initial.sample(5).normals[:, -1], -1)
    np.testing.assert_array_equal(shape.final.sample(5).normals[:, -1], 1)


@pytest.mark.parametrize(
    "shape",
    [
        Polygon((x, y), [(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)]),
        Rectangle((x, -1, 1), (y, -1, 1)) - Rectangle((x, 0, 1), (y, -1, 0)),
    ],
    ids=["polygon", "difference"],
)
def test_rules_are_good_for_solutions_at_reentrant_corners(shape):
    def singular(X):
        angle = np.arctan2(X[:, 1], X[:, 0])
        return np.hypot(*X.T) ** (2 / 3) * np.sin(2 / 3 * np.where(angle < -np.pi / 4, angle + 2 * np.pi, angle))

    X, weights = shape.quadrature(2000)
    assert len(X) < 4000
    # Over the triangles between the corner and the sides opposite to it the radius can be integrated by hand.
    angles, shares = np.polynomial.legendre.leggauss(40)
    edges = np.pi * np.arange(7) / 4
    exact = 0.0
    for a, b in pairwise(edges.tolist()):
        angle = (a + b) / 2 + (b - a) / 2 * angles
        reach = 1 / np.maximum(np.abs(np.cos(angle)), np.abs(np.sin(angle)))
        exact += (b - a) / 2 * shares @ (reach ** (8 / 3) / (8 / 3) * np.sin(2 / 3 * angle))
    assert weights @ singular(X) == pytest.approx(exact, rel=1e-9)


def test_what_is_turned_off_the_axis_has_a_hole():
    torus = Torus((x, y, z), (0, 0, 0), 3, 1)
    ring = Revolution((x, y, z), Disk((r, z), (3, 0), 1), z)
    X = np.random.default_rng(0).uniform(-4, 4, (500, 3))
    np.testing.assert_allclose(ring.level(X), torus.level(X), atol=1e-12)
    np.testing.assert_allclose(ring.level(X), 1 - np.hypot(np.hypot(X[:, 0], X[:, 1]) - 3, X[:, 2]), atol=1e-12)
    pipe = Revolution((x, y, z), Polygon((r, z), [(1, 0), (2, 0), (2, 1), (1, 1)]), z)
    assert pipe.contains([[0, 0, 0.5], [0.9, 0, 0.5], [0, 1.1, 0.5]]).tolist() == [False, False, True]


def test_star_boundary_is_sampled_by_arc_length():
    shape = PLANE["star"]
    points, _ = shape.boundary.sample(4000, "grid")
    gaps = np.linalg.norm(np.roll(points, -1, axis=0) - points, axis=1)
    assert gaps.max() / gaps.min() < 1 + 1e-4
    assert gaps.sum() == pytest.approx(shape.boundary.measure, rel=1e-5)


def test_callable_radius_that_needs_arrays_is_interpolated_to_rounding():
    wavy = Star((x, y), lambda a: np.exp(np.cos(a) / 2) * (1 + np.sin(7 * a) / 10))
    exact = Star((x, y), sp.exp(sp.cos(theta) / 2) * (1 + sp.sin(7 * theta) / 10))
    assert wavy.measure == pytest.approx(exact.measure, rel=1e-13)
    assert wavy.boundary.measure == pytest.approx(exact.boundary.measure, rel=1e-13)
    points, normals = exact.boundary.sample(40)
    np.testing.assert_allclose(wavy.boundary.normals(points), normals, atol=1e-11)


def test_kinked_expression_is_a_valid_star():
    heart = Star((x, y), 1 + sp.Abs(sp.sin(theta)))
    assert heart.measure == pytest.approx((2 * np.pi * 1.5 + 8) / 2, rel=1e-12)
    assert heart.boundary.sample(100).points.shape == (100, 2)


def test_polygon_corners_are_interior_angles():
    angles = [np.pi / 2, np.pi / 2, np.pi / 2, 3 * np.pi / 2, np.pi / 2, np.pi / 2]
    np.testing.assert_allclose(Polygon((x, y), L_VERTICES).corners, angles)
    np.testing.assert_allclose(Polygon((x, y), L_VERTICES[::-1]).corners, angles[::-1])
    split = Polygon((x, y), [(0, 0), (1, 0), (2, 0), (1, 1)])
    assert split.corners[1] == pytest.approx(np.pi)
    assert PLANE["comb"].corners.sum() == pytest.approx(8 * np.pi)


def test_box_parts_by_position_and_by_coordinate():
    box = Box((x, 0, 1), (y, 0, 2), (z, 0, 3))
    for position, named, normal in [
        ("left", "x_min", (-1, 0, 0)),
        ("right", "x_max", (1, 0, 0)),
        ("front", "y_min", (0, -1, 0)),
        ("back", "y_max", (0, 1, 0)),
        ("bottom", "z_min", (0, 0, -1)),
        ("top", "z_max", (0, 0, 1)),
    ]:
        one, other = getattr(box, position), box.parts[named]
        np.testing.assert_array_equal(one.sample(4).points, other.sample(4).points)
        np.testing.assert_array_equal(one.sample(1).normals[0], normal)
    assert not hasattr(Box((x, 0, 1), (y, 0, 1), (z, 0, 1), (p, 0, 1)), "top")
    assert set(Rectangle((x, 0, 1), (y, 0, 1)).parts) == {
        *("left", "right", "bottom", "top"),
        *("x_min", "x_max", "y_min", "y_max"),
    }


def test_interval_ends_come_once_whatever_the_number():
    interval = Interval((x, -1, 2))
    np.testing.assert_array_equal(interval.boundary.sample(1).points, [[-1], [2]])
    np.testing.assert_array_equal(interval.right.sample(50).points, [[2]])
    points, normals, weights = interval.boundary.quadrature(10)
    assert (points * normals).sum(axis=1) @ weights == 3
    np.testing.assert_array_equal(interval.boundary.normals([2.0, -1.0]), [[1], [-1]])


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("name", list(PLANE))
def test_tiny_and_huge_shapes_are_scaled_copies(name, size):
    shapes = {
        "rectangle": lambda s: Rectangle((x, 0, 2 * s), (y, s, 2 * s)),
        "disk": lambda s: Disk((x, y), (s, 2 * s), 0.7 * s),
        "polygon": lambda s: Polygon((x, y), [(a * s, b * s) for a, b in PLANE["polygon"].vertices]),
        "comb": lambda s: Polygon((x, y), [(a * s, b * s) for a, b in PLANE["comb"].vertices]),
        "outline": lambda s: Outline((x, y), [[(a * s, b * s) for a, b in ring] for ring in PLANE["outline"].rings]),
        "star": lambda s: Star((x, y), s * (1 + sp.cos(5 * theta) / 4), (3 * s, s)),
        "array star": lambda s: Star((x, y), lambda a: s * np.exp(np.cos(a - 1) / 2)),
    }
    shape = shapes[name](size)
    assert shape.measure / size**2 == pytest.approx(PLANE[name].measure, rel=1e-12)
    points, normals = shape.boundary.sample(50)
    assert shape.contains(points - 1e-6 * size * normals).all()
    assert not shape.contains(points + 1e-6 * size * normals).any()


@pytest.mark.parametrize("offset", [1e6, -3e6])
def test_far_away_shapes_work(offset):
    for shape in (
        Rectangle((x, offset, offset + 1), (y, 0, 1)),
        Disk((x, y), (offset, offset), 1),
        Polygon((x, y), [(a + offset, b) for a, b in L_VERTICES]),
        Outline((x, y), [[(a + offset, b) for a, b in L_VERTICES]]),
        Star((x, y), 1 + sp.cos(theta) / 3, (offset, 0)),
        Rectangle((x, offset, offset + 1), (y, 0, 1)) - Disk((x, y), (offset, 0), 0.5),
    ):
        points, normals = shape.boundary.sample(64)
        assert shape.contains(points).all()
        assert shape.boundary.contains(points).all()
        assert not shape.contains(points + 1e-5 * normals).any()
        assert shape.contains(shape.sample(64)).all()
    assert Polygon((x, y), [(a + offset, b) for a, b in L_VERTICES]).measure == 3


def test_point_cloud_returns_what_it_was_given():
    rng = np.random.default_rng(0)
    interior, boundary = rng.random((20, 2)), rng.random((8, 2)) + 2
    normals = 3 * rng.standard_normal((8, 2))
    mask = np.arange(8) < 3
    cloud = PointCloud((x, y), interior, boundary, normals, np.full(20, 0.25), {"inlet": mask, "outlet": [7, 5]})
    assert cloud.measure == 5
    np.testing.assert_array_equal(cloud.sample(20), interior)
    chosen = cloud.sample(7, seed=5)
    assert len(np.unique(chosen, axis=0)) == 7
    assert cloud.contains(chosen).all()
    assert not cloud.contains(chosen + 5).any()
    np.testing.assert_array_equal(cloud.inlet.sample(100).points, boundary[mask])
    np.testing.assert_array_equal(cloud.outlet.sample(2).points, boundary[[5, 7]])
    assert cloud.boundary.sample(4).points.shape == (4, 2)
    units = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    np.testing.assert_allclose(cloud.boundary.normals(boundary), units, atol=1e-15)
    assert cloud.boundary.measure == 8
    right = cloud.boundary.where(lambda X: X[:, 0] > 2.5)
    np.testing.assert_array_equal(right.sample(50).points, boundary[boundary[:, 0] > 2.5])
    points, _, weights = right.quadrature(3)
    assert len(points) == weights.sum() == right.measure
    assert (cloud.inlet | cloud.boundary).measure == 8
    X, weights = cloud.quadrature(5)
    assert weights @ X[:, 0] == pytest.approx(interior[:, 0].sum() / 4)


@pytest.mark.parametrize(
    "shape",
    [
        Disk((x, y), (0, 0), 1),
        Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]),
        Disk((x, y), (0, 0), 1) - Disk((x, y), (0, 0), 0.3),
    ],
    ids=["disk", "L", "ring"],
)
def test_point_cloud_holds_what_lies_between_its_points(shape):
    cloud = PointCloud((x, y), shape.sample(600), shape.boundary.sample(120).points)
    low, high = shape.bounds.T
    X = np.random.default_rng(1).uniform(low - 0.2, high + 0.2, (3000, 2))
    differs = cloud.contains(X) != shape.contains(X)
    assert differs.mean() < 0.01
    # Where the two differ, the edge is nearer than its points are to each other.
    assert np.abs(shape.level(X[differs])).max(initial=0.0) < 0.05


def test_point_cloud_on_a_line_and_in_too_few_or_too_many_coordinates():
    line = PointCloud((x,), np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1]]))
    np.testing.assert_array_equal(
        line.contains([[0.15], [2.0], [5.05], [-0.1], [5.2]]), [True, False, True, False, False]
    )
    assert PointCloud((x, y), [[0.5, 0.5]]).contains([[0.5, 0.5], [0.6, 0.5]]).tolist() == [True, False]
    flat = PointCloud((x, y), [[0, 0], [1, 0], [2, 0], [3, 0]])
    assert flat.contains([[1, 0], [1.5, 0.0], [1, 1]]).tolist() == [True, False, False]
    many = PointCloud(sp.symbols("a:5", real=True), np.random.default_rng(0).random((50, 5)))
    assert many.contains(many.interior).all()
    assert not many.contains(many.interior.mean(axis=0)[None]).any()


def test_point_cloud_over_time():
    cloud = PointCloud((x, y), np.random.default_rng(0).random((20, 2)), [[0, 0], [1, 1]], [[-1, 0], [1, 0]])
    moving = cloud * TimeInterval(t, 0, 1)
    X = moving.sample(64)
    assert X.shape == (64, 3)
    assert moving.contains(X).all()
    points, normals = moving.boundary.sample(33)
    assert moving.boundary.contains(points).all()
    np.testing.assert_array_equal(normals[:, 0], np.where(points[:, 0] == 1, 1, -1))
    assert len(moving.initial.sample(1000).points) == 20


def test_without_normals_a_cloud_still_has_boundary_points():
    cloud = PointCloud((x, y), [[0.5, 0.5]], [[0, 0], [1, 1]])
    samples = cloud.boundary.sample(2)
    np.testing.assert_array_equal(samples.points, [[0, 0], [1, 1]])
    assert np.isnan(samples.normals).all()
