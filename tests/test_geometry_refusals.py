"""Descriptions that make no domain are refused, with a message that says what to do."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pibls.errors import GeometryError, PiblsError
from pibls.geometry import (
    Ball,
    Box,
    Combination,
    Cone,
    Cylinder,
    Disk,
    Extrusion,
    Implicit,
    Interval,
    Outline,
    PointCloud,
    Polygon,
    Rectangle,
    Revolution,
    Solid,
    Star,
    TimeInterval,
    Torus,
)

x, y, z, t, theta = sp.symbols("x y z t theta")
SQUARE = Rectangle((x, 0, 1), (y, 0, 1))
TIME = TimeInterval(t, 0, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Interval((x, 1, 0)), "increasing order"),
        (lambda: Interval((x, 1, 1)), "increasing order"),
        (lambda: Interval((x, 0, math.nan)), "'upper'"),
        (lambda: Interval((x, -math.inf, 0)), "'lower'"),
        (lambda: Interval((x, 0, z)), "'upper'"),
        (lambda: Interval((x, 1e6, 1e6 + 1e-9)), "told apart"),
        (lambda: Interval((x, -1e308, 1e308)), "told apart"),
        (lambda: Interval(x, 0, 1), r"Write Interval\(\(x, 0, 1\)\)"),
        (lambda: Interval((x, 0)), r"\(coordinate, lower, upper\)"),
        (lambda: Interval(("x", 0, 1)), "SymPy symbol"),
        (lambda: Rectangle((x, 0, 1), (x, 0, 1)), "different names"),
        (lambda: Rectangle((x, 0, 1), (sp.Symbol("x", real=True), 0, 1)), "different names"),
        (lambda: Rectangle((x, 0, 1), (y, 0, 1), (z, 0, 1)), "use Box"),
        (lambda: Box(), "one or more"),
        (lambda: Box((x, 0, 1e300), (y, 0, 1e300)), "product"),
        (lambda: Disk((x, y), (0, 0), 0), "'radius'"),
        (lambda: Disk((x, y), (0, 0), "one"), "'radius'"),
        (lambda: Disk((x, y), (0, 0), 1e200), "double precision"),
        (lambda: Disk((x, y), (1e20, 0), 1), "double precision"),
        (lambda: Disk((x, y), 0, 1), "'center'"),
        (lambda: Disk((x, y), (0, math.nan), 1), "'center'"),
        (lambda: Disk((x, y, z), (0, 0, 0), 1), "2 SymPy symbols"),
        (lambda: Ball((x,), (0,), 1), "two or more"),
        (lambda: Ball(7, (0,), 1), "SymPy symbols"),
        (lambda: Polygon((x, y), [(0, 0), (1, 1)]), "three or more"),
        (lambda: Polygon((x, y), [(0, 0), (1, 1), (2, 2)]), "enclose an area"),
        (lambda: Polygon((x, y), [(0, 0), (2, 2), (2, 0), (0, 1)]), "simple polygon"),
        (lambda: Polygon((x, y), [(0, 0), (4, 0), (4, 4), (2, 0), (0, 4)]), "simple polygon"),
        (lambda: Polygon((x, y), [(0, 0), (2, 0), (1, 0), (1, 1)]), "simple polygon"),
        (lambda: Polygon((x, y), [(0, 0), (1, 0), (1, 1), (0, 0)]), "Leave one out"),
        (lambda: Polygon((x, y), [(0, 0), (1, 0), (1e200, 1)]), "Scale the coordinates"),
        (lambda: Polygon((x, y), [(0, 0), (1, 0), (math.nan, 1)]), "row 2"),
        (lambda: Polygon((x, y), "triangle"), "'vertices'"),
        (lambda: Polygon((x, y), [(0, 0), (1, 0), (x, 1)]), "'vertices'"),
        (lambda: Cylinder((x, y), (0, 0), (0, 1), 1), "3 SymPy symbols"),
        (lambda: Cylinder((x, y, z), (0, 0, 0), (0, 0, 0), 1), "different points"),
        (lambda: Cylinder((x, y, z), (0, 0, 0), (0, 0, 1), 0), "'radius'"),
        (lambda: Cylinder((x, y, z), (0, 0, 0), (0, 0, 1), 1e-13), "double precision"),
        (lambda: Cylinder((x, y, z), (1e20, 0, 0), (1e20, 0, 1), 1), "double precision"),
        (lambda: Cone((x, y, z), (0, 0, 0), (0, 0, 1), 0), "above 0 at one end"),
        (lambda: Cone((x, y, z), (0, 0, 0), (0, 0, 1), -1), "'radius'"),
        (lambda: Cone((x, y, z), (0, 0, 0), (0, 0, 1), 1, math.nan), "'top_radius'"),
        (lambda: Torus((x, y, z), (0, 0, 0), 1, 1), "below its radius"),
        (lambda: Torus((x, y, z), (0, 0, 0), 2, 1, (0, 0, 0)), "'axis'"),
        (lambda: Extrusion(Interval((x, 0, 1)), (z, 0, 1)), "solid shape in two coordinates"),
        (lambda: Extrusion(SQUARE, (x, 0, 1)), "Use a third symbol"),
        (lambda: Extrusion(SQUARE, (z, 1, 0)), "increasing order"),
        (lambda: Extrusion(SQUARE * TIME, (z, 0, 1)), "solid shape in two coordinates"),
        (lambda: Revolution((x, y, z), Disk((x, y), (3, 0), 1), z), "'axis'"),
        (lambda: Revolution((x, y, z), Disk((theta, z), (0.5, 0), 1), z), "must not cross the axis"),
        (lambda: Outline((x, y), []), "one or more rings"),
        (lambda: Outline((x, y), "ring"), "one or more rings"),
        (lambda: Outline((x, y), [[(0, 0), (1, 0)]]), "Ring 0 of Outline must have three"),
        (lambda: Outline((x, y), [[(0, 0), (1, 0), (1, 0), (1, 1)]]), "different vertices"),
        (lambda: Outline((x, y), [[(0, 0), (2, 2), (2, 0), (0, 1)]]), "Edge 0 meets edge 2 near"),
        (lambda: Outline((x, y), [[(0, 0), (4, 0), (4, 4), (2, 0), (0, 4)]]), "must not cross, touch"),
        (lambda: Outline((x, y), [[(0, 0), (2, 0), (1, 0), (1, 1)]]), "must not cross, touch"),
        (lambda: Outline((x, y), [[(0, 0), (1, 0), (0, 1)]], {"a": [3]}), "numbers of edges, 0 to 2"),
        (lambda: Outline((x, y), [[(0, 0), (1, 0), (math.nan, 1)]]), "row 2"),
        (lambda: Solid((x, y, z), np.eye(3), [(0, 1)]), "shape \\(m, 3\\)"),
        (lambda: Solid((x, y, z), np.eye(3), [(0, 1, 7)]), "0 to 2. Got \\[0, 1, 7\\]"),
        (lambda: Solid((x, y, z), np.eye(3), [(0, 1, 2)]), "leaks"),
        (lambda: Solid((x, y, z), np.eye(3), [(0, 1, 2), (0, 2, 1)]), "inside out|touch"),
        (lambda: Solid((x, y, z), np.eye(3) * 1e60, [(0, 1, 2)]), "span a size"),
        (lambda: Implicit((x,), x, [(0, 1)]), "two or three coordinates"),
        (lambda: Implicit((x, y), 5, [(0, 1), (0, 1)]), "expression or a function"),
        (lambda: Implicit((x, y), x**2 + y**2 - 1, [(0, 1)]), "'bounds'"),
        (lambda: Implicit((x, y), x**2 + y**2 - 1, [(-2, 2)] * 2, cells=1), "'cells'"),
        (lambda: Implicit((x, y), x**2 + y**2 - 1, [(-2, 2)] * 2).to_dict(), "cannot be stored"),
        (lambda: Star((x, y), sp.cos(theta)), "falls to"),
        (lambda: Star((x, y), 1 + sp.cos(theta - 0.1)), "falls to"),
        (lambda: Star((x, y), 1 + x / 2), "not on a coordinate"),
        (lambda: Star((x, y), 1 + z + theta), "one symbol"),
        (lambda: Star((x, y), 1 + theta), r"θ \+ 2π"),
        (lambda: Star((x, y), 2 + sp.sign(sp.sin(theta - sp.Rational(1, 2)))), "jumps"),
        (lambda: Star((x, y), 1 / sp.sin(theta) ** 2), "not finite"),
        (lambda: Star((x, y), sp.I + sp.cos(theta)), "not finite"),
        (lambda: Star((x, y), sp.Function("f")(theta)), "NumPy or SciPy"),
        (lambda: Star((x, y), "1 + theta"), "expression"),
        (lambda: Star((x, y), sp.true), "expression"),
        (lambda: Star((x, y), lambda a: 1 + np.abs(np.sin(a))), "kink"),
        (lambda: Star((x, y), lambda a: 2 + np.arctan(a)), "kink"),
        (lambda: Star((x, y), lambda a: np.log(-1 - np.asarray(a, dtype=float) ** 2)), "Star"),
        (lambda: Star((x, y), lambda a: np.ones(3)), "one real number per angle"),
        (lambda: Star((x, y), lambda a: np.exp(1j * a)), "one real number per angle"),
        (lambda: Star((x, y), lambda: 1), "raised TypeError"),
        (lambda: Star((x, y), lambda a: np.sin(a)), "falls to"),
        (lambda: Star((x, y), 1, center=1), "'center'"),
        (lambda: TimeInterval(t, 1, 0), "increasing order"),
        (lambda: TimeInterval("t", 0, 1), "SymPy symbol"),
        (lambda: SQUARE * TimeInterval(x, 0, 1), "must not be a coordinate"),
        (lambda: SQUARE * SQUARE, "by a TimeInterval only"),
        (lambda: SQUARE * 3, "by a TimeInterval only"),
        (lambda: (SQUARE * TIME) * TimeInterval(z, 0, 1), "has a time already"),
        (lambda: TIME * TimeInterval(z, 0, 1), "has a time already"),
        (lambda: SQUARE | Interval((x, 0, 1)), "same coordinates"),
        (lambda: SQUARE | Rectangle((y, 0, 1), (x, 0, 1)), "same order"),
        (lambda: SQUARE | (SQUARE * TIME), "Join the shapes first"),
        (lambda: TIME - TIME, "solid shapes"),
        (lambda: SQUARE & 3, "solid shapes"),
        (lambda: SQUARE & Disk((x, y), (5, 5), 1), "no points"),
        (lambda: SQUARE & Disk((x, y), (-0.5, -0.5), 0.7), "no points"),
        (lambda: SQUARE - Rectangle((x, -1, 2), (y, -1, 2)), "no points"),
        (lambda: SQUARE - SQUARE, "no points"),
        (lambda: Rectangle((x, 0, 0.3), (y, 0, 1)) - Rectangle((x, 0, 0.1 + 0.2), (y, 0, 1)), "no points"),
        (lambda: Combination("xor", SQUARE, SQUARE), "'union', 'intersection', 'difference'"),
        (lambda: PointCloud((x, y), []), "'interior'"),
        (lambda: PointCloud((x, y), np.empty((0, 2))), "'interior'"),
        (lambda: PointCloud((x, y), [[0, math.inf]]), "'interior'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1, 1]]), "'boundary'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], [[0, 0]]), "'normals'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], [[0, 1], [1, 0]]), "'normals'"),
        (lambda: PointCloud((x, y), [[0, 0]], weights=[1, 2]), "'weights'"),
        (lambda: PointCloud((x, y), [[0, 0]], weights=[-1]), "'weights'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], parts=3), "'parts'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], parts={"a": [1]}), "Part 'a'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], parts={"a": [[0], [0, 1]]}), "Part 'a'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], parts={"a": [False]}), "Part 'a'"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], parts={"interior": [0]}), "identifiers"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]], parts={"a b": [0]}), "identifiers"),
        (lambda: PointCloud((x, y), [[0, 0]]).measure, "'weights'"),
        (lambda: PointCloud((x, y), [[0, 0]]).sample(2), "at most 1"),
        (lambda: PointCloud((x, y), [[0, 0]]).boundary.sample(2), "Give PointCloud the boundary points"),
        (lambda: PointCloud((x, y), [[0, 0]], [[1, 1]]).boundary.normals([[1, 1]]), "'normals'"),
        (lambda: Star((x, y), 1 + sp.cos(theta) / 2).to_dict(), "encode_expression"),
        (lambda: SQUARE.from_dict(SQUARE.to_dict(), "xy"), "SymPy symbols"),
    ],
)
def test_refused_with_a_remedy(build, message):
    with pytest.raises(GeometryError, match=message):
        build()


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=3),
    st.just(x),
    st.just(sp.pi),
    st.just(sp.oo),
    st.lists(st.floats(-2, 2), max_size=3),
    st.tuples(st.just(x), st.floats(), st.floats()),
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([Interval, Rectangle, Box, Disk, Ball, Polygon, TimeInterval, PointCloud]), st.data())
def test_whatever_is_given_ends_in_a_domain_or_in_our_error(shape, data):
    count = {Interval: 1, Rectangle: 2, Box: 2, Polygon: 2, PointCloud: 2}.get(shape, 3)
    arguments = data.draw(st.lists(anything, min_size=count, max_size=count))
    try:
        domain = shape(*arguments)
    except PiblsError:
        return
    assert domain.bounds.shape == (domain.dimension, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=3, max_size=7))
def test_random_vertices_make_a_polygon_that_closes_or_are_refused(vertices):
    try:
        polygon = Polygon((x, y), vertices)
    except GeometryError:
        return
    _, normals, lengths = polygon.boundary.quadrature(50)
    np.testing.assert_allclose(normals.T @ lengths, 0, atol=1e-12)
    points, weights = polygon.quadrature(50)
    assert weights.sum() == pytest.approx(polygon.measure, rel=1e-9)
    assert polygon.contains(points).all()
    angles = (len(vertices) - 2) * math.pi
    assert polygon.corners.sum() == pytest.approx(angles)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**12), st.one_of(st.text(max_size=6), st.none(), st.integers()), anything)
def test_hostile_sampling_arguments_end_in_our_error(n, method, seed):
    with pytest.raises(PiblsError):
        SQUARE.sample(n, method, seed)
