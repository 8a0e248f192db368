"""Parts: selection, union, values and names; domains as values: equality, pickling, saving."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
import sympy as sp

from pibls.errors import GeometryError, InputError
from pibls.geometry import (
    Ball,
    Box,
    Cone,
    Cylinder,
    Disk,
    Domain,
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

x, y, z, t, r, theta = sp.symbols("x y z t r theta")
ELLIPSE = x**2 + 4 * y**2 - 1
SQUARE = Rectangle((x, 0, 1), (y, 0, 1))
DISK = Disk((x, y), (0, 0), 1)


def upper(X):
    return X[:, 1] > 0


def smooth(angle):
    return np.exp(np.cos(angle) / 2)


DOMAINS = [
    Interval((x, 0, 1)),
    SQUARE,
    Box((x, 0, 1), (y, 0, 2), (z, 0, 3)),
    DISK,
    Ball((x, y, z), (0, 0, 1), 2),
    Polygon((x, y), [(0, 0), (1, 0), (0, 1)]),
    Star((x, y), 1 + sp.cos(3 * theta) / 4, (0, 1)),
    Star((x, y), smooth),
    PointCloud((x, y), [[0.1, 0.2]], [[0, 0], [1, 1]], [[1, 2], [3, 4]], [2.0], {"a": [True, False]}),
    PointCloud((x, y), [[0.1, 0.2]]),
    Outline((x, y), [[(0, 0), (3, 0), (0, 3)], [(0.5, 0.5), (1, 0.5), (0.5, 1)]], {"low": [0]}),
    Implicit((x, y), ELLIPSE, [(-2, 2), (-1, 1)]),
    Solid((x, y, z), np.vstack([np.zeros(3), np.eye(3)]), [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], {"base": [0]}),
    Cylinder((x, y, z), (0, 0, 0), (0, 1, 1), 2),
    Cone((x, y, z), (0, 0, 0), (0, 1, 1), 2, 0.5),
    Torus((x, y, z), (0, 0, 0), 3, 1, (1, 1, 0)),
    Extrusion(SQUARE - Disk((x, y), (0.5, 0.5), 0.2), (z, 0, 2)),
    Revolution((x, y, z), Disk((r, z), (3, 0), 1), z),
    Revolution((x, y, z), Disk((x, z), (3, 0), 1), z),
    TimeInterval(t, 0, 1),
    (SQUARE - Disk((x, y), (0.5, 0.5), 0.2)) * TimeInterval(t, 0, 2),
    (SQUARE | DISK) & Disk((x, y), (0.3, 0.3), 0.9),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_domains_are_values(domain):
    again = pickle.loads(pickle.dumps(domain))
    for other in (again, copy.copy(domain), copy.deepcopy(domain)):
        assert other == domain
        assert hash(other) == hash(domain)
    np.testing.assert_array_equal(again.bounds, domain.bounds)
    assert all(other != domain for other in DOMAINS if other is not domain)
    with pytest.raises(AttributeError):
        domain.coordinates = ()
    assert repr(domain)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_descriptions_survive_json(domain):
    known = {str(expression): expression for expression in (1 + sp.cos(3 * theta) / 4, ELLIPSE)}
    text = json.dumps(domain.to_dict(lambda expression: {"known": str(expression)}))
    again = Domain.from_dict(json.loads(text), sp.symbols("t z y x"), lambda data: known[data["known"]])
    if isinstance(domain, Star) and callable(domain.radius):
        np.testing.assert_array_equal(again.boundary.sample(9).points, domain.boundary.sample(9).points)
        assert Domain.from_dict(again.to_dict(), (x, y)) == again
    else:
        assert again == domain
        assert type(again) is type(domain)


def test_outlines_of_older_files_have_their_parts():
    ring = [[0, 0], [2, 0], [0, 2]]
    data = {"shape": "Outline", "coordinates": ["x", "y"], "rings": [ring], "named": [["base", [0]]]}
    assert Domain.from_dict(data, (x, y)) == Outline((x, y), [ring], {"base": [0]})


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        [],
        {},
        {"shape": "Torus"},
        {"shape": ["Disk"]},
        {"shape": "Region", "coordinates": ["x"]},
        {"shape": "Disk"},
        {"shape": "Disk", "coordinates": ["x", "w"], "center": [0, 0], "radius": 1},
        {"shape": "Disk", "coordinates": ["x", "y"], "center": 5, "radius": 1},
        {"shape": "Disk", "coordinates": ["x", "y"], "center": [0, 0], "radius": -1},
        {"shape": "Rectangle", "coordinates": ["x", "y"], "lower": [0], "upper": [1, 1]},
        {"shape": "Polygon", "coordinates": ["x", "y"], "vertices": None},
        {"shape": "Polygon", "coordinates": ["x"], "vertices": []},
        {"shape": "Star", "coordinates": ["x", "y"], "center": [0, 0], "radius": "1"},
        {"shape": "Star", "coordinates": ["x", "y"], "center": [0, 0], "cosines": [1, 2], "sines": [0]},
        {"shape": "Combination", "coordinates": ["x"], "operation": "xor", "first": {}, "second": {}},
        {"shape": "PointCloud", "coordinates": ["x"], "interior": [[1]]},
        {"shape": "Product", "coordinates": ["x"], "domain": 1, "interval": 2},
    ],
)
def test_damaged_descriptions_are_refused(data):
    with pytest.raises(GeometryError):
        Domain.from_dict(data, (x, y, z))


def test_description_nested_beyond_reason_is_refused():
    data = SQUARE.to_dict()
    for _ in range(3000):
        data = {"shape": "Combination", "coordinates": ["x", "y"], "operation": "union", "first": data, "second": data}
    with pytest.raises(GeometryError):
        Domain.from_dict(data, (x, y))


def test_equal_shapes_under_their_general_names():
    assert Rectangle((x, 0, 1), (y, 0, 1)) == Box((x, 0, 1), (y, 0, 1))
    assert Disk((x, y), (0, 0), 1) == Ball((x, y), (0, 0), 1)
    assert Rectangle((x, 0, 1), (y, 0, 1)) != Rectangle((y, 0, 1), (x, 0, 1))
    assert Interval((x, 0, 1)) != TimeInterval(x, 0, 1)
    assert Star((x, y), lambda a: 1 + sp.cos(a) / 2) == Star((x, y), 1 + sp.cos(theta) / 2)
    assert Star((x, y), smooth) == Star((x, y), smooth)
    assert Star((x, y), smooth) != Star((x, y), lambda a: smooth(a))
    assert SQUARE.left == Rectangle((x, 0, 1), (y, 0, 1)).left
    assert SQUARE.left != SQUARE.right
    assert len({SQUARE.left, SQUARE.left, SQUARE.boundary}) == 2


def test_parts_can_be_pickled_with_compiled_functions_about():
    star = DOMAINS[6]
    points, _ = star.boundary.sample(5)
    again = pickle.loads(pickle.dumps(star.boundary.where(upper)))
    assert again == star.boundary.where(upper)
    assert star.boundary.contains(points).all()


def test_where_cuts_curves_exactly():
    half = DISK.boundary.where(upper)
    assert half.measure == pytest.approx(math.pi, rel=1e-10)
    points, _, weights = half.quadrature(40)
    assert weights @ points[:, 1] == pytest.approx(2, rel=1e-10)
    points, _ = half.sample(100)
    assert (points[:, 1] > 0).all()
    assert half.contains(points).all()
    assert half.contains([[0, 1], [0, -1]]).tolist() == [True, False]
    quarter = half.where(lambda X: X[:, 0] > 0)
    assert quarter.measure == pytest.approx(math.pi / 2, rel=1e-9)
    arcs = DISK.boundary.where(lambda X: np.abs(X[:, 0]) > 0.5)
    assert arcs.measure == pytest.approx(4 * math.pi / 3, rel=1e-10)
    assert (np.abs(arcs.sample(50, "grid").points[:, 0]) > 0.5).all()


def test_where_on_a_box_finds_an_edge_by_its_coordinate():
    assert SQUARE.boundary.where(lambda X: X[:, 0] == 1).measure == 1
    assert SQUARE.boundary.where(lambda X: np.isclose(X[:, 1], 0)).measure == 1
    cube = Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    lower = cube.boundary.where(lambda X: X[:, 2] < 0.5)
    assert lower.measure == pytest.approx(3, rel=1e-3)
    points, _, weights = lower.quadrature(2000)
    assert weights.sum() == pytest.approx(lower.measure)
    assert (points[:, 2] < 0.5).all()
    assert (lower.sample(333, "lhs").points[:, 2] < 0.5).all()


def test_where_on_interval_ends():
    right = Interval((x, 0, 1)).boundary.where(lambda X: X[:, 0] > 0.5)
    np.testing.assert_array_equal(right.sample(10).points, [[1]])
    assert right.measure == 1


def test_union_counts_what_is_shared_once():
    assert (SQUARE.left | SQUARE.left) == SQUARE.left or (SQUARE.left | SQUARE.left).measure == 1
    assert (SQUARE.left | SQUARE.boundary).measure == pytest.approx(4, rel=1e-9)
    assert (SQUARE.left | SQUARE.bottom).measure == 2
    low = SQUARE.left.where(lambda X: X[:, 1] < 0.6)
    high = SQUARE.left.where(lambda X: X[:, 1] > 0.4)
    both = low | high
    assert both.measure == pytest.approx(1, rel=1e-9)
    points = both.sample(1000, "grid").points[:, 1]
    np.testing.assert_allclose(np.diff(np.sort(points)), 1e-3, rtol=1e-2)
    ends = Interval((x, 0, 1))
    np.testing.assert_array_equal((ends.left | ends.boundary).sample(3).points, [[0], [1]])


def test_points_are_shared_in_proportion_to_measure():
    flat = Rectangle((x, 0, 3), (y, 0, 1))
    _, normals = flat.boundary.sample(80)
    assert [(normals == n).all(axis=1).sum() for n in ([-1, 0], [1, 0], [0, -1], [0, 1])] == [10, 10, 30, 30]
    thin = Rectangle((x, 0, 1), (y, 0, 1e-6))
    assert len(np.unique(thin.boundary.sample(8).normals, axis=0)) == 4
    assert len(thin.boundary.sample(2).points) == 2


def test_unknown_parts_are_named_and_the_known_ones_listed():
    with pytest.raises(GeometryError, match=r"no part named 'lft'.*left, right, bottom, top"):
        _ = SQUARE.lft
    with pytest.raises(AttributeError):
        _ = DISK.left
    assert not hasattr(DISK, "left")
    assert not hasattr(SQUARE, "__array__")
    assert SQUARE.initial is None
    assert SQUARE.final is None
    assert SQUARE.time is None
    assert TimeInterval(t, 0, 1).space == ()


def test_ambiguous_names_of_a_combination_are_left_to_lift():
    both = SQUARE | Rectangle((x, 2, 3), (y, 0, 1))
    assert not both.parts
    assert both.lift(SQUARE.left).measure == 1
    triangle = Polygon((x, y), [(0, 0), (1, 0), (0, 1)])
    assert set((SQUARE - triangle).parts) == {"right", "x_max", "top", "y_max", "edge1"}


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (lambda X: 1 / 0, "raised ZeroDivisionError"),
        (lambda X: X[:, 5] > 0, "raised IndexError"),
        (lambda X: X[:, 0], "array of float64"),
        (lambda X: X > 0, r"shape \(4097, 2\)"),
        (lambda X: True, r"shape \(\)"),
        (lambda: True, "raised TypeError"),
        (lambda X: np.zeros(len(X), dtype=bool), "no points on"),
    ],
)
def test_bad_predicates_are_refused(predicate, message):
    with pytest.raises(GeometryError, match=message):
        SQUARE.boundary.where(predicate).sample(10)


def test_a_predicate_cannot_move_the_points():
    def meddling(X):
        X[:] = 0
        return np.ones(len(X), dtype=bool)

    assert SQUARE.top.where(meddling).contains([[0.5, 1]]).all()


def test_misuse_of_parts_is_refused():
    with pytest.raises(GeometryError, match="must be a function"):
        SQUARE.left.where(3)
    with pytest.raises(GeometryError, match="same domain"):
        _ = SQUARE.left | DISK.boundary
    with pytest.raises(GeometryError, match="same domain"):
        _ = SQUARE.left | 3
    with pytest.raises(GeometryError, match=r"\[0.5, 0.5\] \(row 1\)"):
        SQUARE.left.normals([[0, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError, match="'X'"):
        SQUARE.left.contains([[1, 2, 3]])
    with pytest.raises(InputError, match="'method'"):
        SQUARE.left.sample(3, "latin")
    with pytest.raises(GeometryError, match="Initial"):
        TimeInterval(t, 0, 1).boundary.sample(3)
    assert repr(SQUARE.left) == "<left of Rectangle((x, 0, 1), (y, 0, 1))>"
    assert SQUARE.left.where(upper).name == "left.where(upper)"
    assert SQUARE.left.dimension == 1
