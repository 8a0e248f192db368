"""Shapes from files and objects: measures against closed forms, names, round trips."""

from __future__ import annotations

import json
import math
import resource
import struct

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import Domain, read_gmsh, simplified
from pibls.errors import FileFormatError, GeometryError, InputError
from pibls.geometry import Implicit, Outline, Polygon, Rectangle, Solid, read_shape

x, y, z = sp.symbols("x y z")
SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]
FRAME = {"type": "Polygon", "coordinates": [SQUARE, HOLE]}
TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def box(low=(0, 0, 0), high=(1, 1, 1)):
    """Vertices and triangles of a box."""
    corners = np.array([[(low, high)[k >> d & 1][d] for d in range(3)] for k in range(8)], dtype=float)
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    return corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def stl(vertices, triangles):
    """A binary STL file."""
    rows = [struct.pack("<12fH", 0, 0, 0, *vertices[row].ravel(), 0) for row in triangles]
    return b"\0" * 80 + struct.pack("<I", len(rows)) + b"".join(rows)


def text_stl(vertices, triangles):
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {a} {b} {c}\n" for a, b, c in vertices[row].tolist())
        + "endloop\nendfacet\n"
        for row in triangles
    ]
    return "solid made\n" + "".join(facets) + "endsolid made\n"


def obj(vertices, triangles):
    lines = [f"v {a} {b} {c}" for a, b, c in vertices.tolist()]
    return "\n".join(lines + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangles.tolist()]) + "\n"


def ply(vertices, triangles):
    head = ["ply", "format ascii 1.0", f"element vertex {len(vertices)}", *(f"property float {c}" for c in "xyz")]
    head += [f"element face {len(triangles)}", "property list uchar int vertex_indices", "end_header"]
    rows = [" ".join(map(str, row)) for row in vertices.tolist()]
    return "\n".join([*head, *rows, *(f"3 {a} {b} {c}" for a, b, c in triangles.tolist())]) + "\n"


# GeoJSON and shapely


@pytest.mark.parametrize(
    "data",
    [
        FRAME,
        {"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE]]},
        {"type": "Feature", "properties": {}, "geometry": FRAME},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": FRAME, "properties": None}]},
        {"type": "GeometryCollection", "geometries": [FRAME]},
        {"type": "Polygon", "coordinates": [[[*p, 100.0] for p in SQUARE[::-1]], HOLE[::-1]]},
    ],
    ids=["polygon", "multipolygon", "feature", "collection", "geometries", "with heights, the other way round"],
)
def test_geojson_in_all_its_forms_is_the_same_frame(tmp_path, data):
    path = tmp_path / "frame.geojson"
    path.write_text(json.dumps(data))
    for source in (path, str(path), data):
        frame = read_shape(source, (x, y))
        assert frame.measure == 15
        assert frame.outer.measure == 16
        assert frame.hole0.measure == 4
        np.testing.assert_array_equal(frame.hole0.normals([[1, 1.5]]), [[1, 0]])
        np.testing.assert_array_equal(frame.contains([[0.5, 0.5], [1.5, 1.5], [5, 1]]), [True, False, False])


def test_one_ring_is_a_polygon_and_straight_edges_are_joined():
    ring = [[0, 0], [1, 0], [2, 0], [2, 0], [2, 2], [0, 2], [0, 0]]
    shape = read_shape({"type": "Polygon", "coordinates": [ring]}, (x, y))
    assert shape == Polygon((x, y), [(0, 0), (2, 0), (2, 2), (0, 2)])


def test_islands_pieces_and_features_by_name():
    island = [[1.2, 1.2], [1.8, 1.2], [1.5, 1.8], [1.2, 1.2]]
    far = [[6, 0], [7, 0], [7, 1], [6, 1], [6, 0]]
    data = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": {"name": "main"}, "geometry": FRAME},
            {"type": "Feature", "id": 7, "geometry": {"type": "Polygon", "coordinates": [far]}},
            {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [island]}},
        ],
    }
    whole = read_shape(data, (x, y))
    assert whole.measure == pytest.approx(15 + 1 + 0.18, rel=1e-14)
    assert list(whole.parts) == ["outer0", "outer1", "outer2", "hole0"]
    assert read_shape(data, (x, y), region="main").measure == 15
    assert read_shape(data, (x, y), region="7").measure == 1
    with pytest.raises(pb.PiblsError, match=r"no feature named 'lake'\. Names in it: main, 7"):
        read_shape(data, (x, y), region="lake")


def test_holes_may_touch_the_outer_ring_in_a_shared_vertex():
    outer = [[0, 0], [2, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
    notch = [[2, 0], [1, 1], [3, 1], [2, 0]]
    rings = [[*outer[:2], [2, 0.0], *outer[2:]], notch]
    with pytest.raises(GeometryError, match="Here ring 0 is the outer ring of polygon 0"):
        read_shape({"type": "Polygon", "coordinates": rings}, (x, y))
    shape = Outline((x, y), [outer[:-1], notch[:-1]])
    assert shape.measure == 15


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_polygons_with_holes_keep_their_measure_through_geojson(data):
    """Star-shaped rings around points of a grid, with star-shaped holes half as large."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    polygons, expected = [], 0.0
    for cell in range(data.draw(st.integers(1, 3))):
        center = np.array([3.0 * cell, 0.0])
        rings = []
        for size, sign in ((1.0, 1), (0.5, -1))[: data.draw(st.integers(1, 2))]:
            angle = np.sort(rng.uniform(0, 0.9, 12) / 12 + np.arange(12) / 12) * 2 * np.pi
            radius = size * rng.uniform(0.75, 1.3, 12)
            ring = center + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            gaps = np.diff(np.append(angle, angle[0] + 2 * np.pi))
            expected += sign * float((radius * np.roll(radius, -1) * np.sin(gaps)).sum() / 2)
            ring = np.vstack([ring, ring[:1]])
            rings.append((ring if rng.random() < 0.5 else ring[::-1]).tolist())
        polygons.append(rings)
    shape = read_shape(json.loads(json.dumps({"type": "MultiPolygon", "coordinates": polygons})), (x, y))
    assert shape.measure == pytest.approx(expected, rel=1e-12)
    points, normals, lengths = shape.boundary.quadrature(500)
    assert (points * normals).sum(axis=1) @ lengths / 2 == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(normals.T @ lengths, 0, atol=1e-11)
    X, weights = shape.quadrature(300)
    assert weights.sum() == pytest.approx(expected, rel=1e-12)
    assert shape.contains(X).all()
    assert Domain.from_dict(json.loads(json.dumps(shape.to_dict())), (x, y)) == shape


def test_shapely_objects_are_read_as_they_are():
    shapely = pytest.importorskip("shapely")
    made = shapely.box(0, 0, 4, 4).difference(shapely.Point(2, 2).buffer(1))
    shape = read_shape(made, (x, y))
    assert shape.measure == pytest.approx(made.area, rel=1e-13)
    assert shape.boundary.measure == pytest.approx(made.length, rel=1e-13)
    two = shapely.union_all([made, shapely.box(6, 0, 7, 1)])
    assert read_shape(two, (x, y)).measure == pytest.approx(two.area, rel=1e-13)
    with pytest.raises(pb.PiblsError, match="LineString, which has no inside"):
        read_shape(shapely.LineString([(0, 0), (1, 1)]), (x, y))
    with pytest.raises(pb.PiblsError, match="has no polygon"):
        read_shape(shapely.Polygon(), (x, y))


# SVG


def draw(tmp_path, body, attributes='viewBox="0 0 10 10"'):
    path = tmp_path / "drawing.svg"
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{body}</svg>')
    return path


@pytest.mark.parametrize(
    ("body", "area"),
    [
        ('<rect x="1" y="2" width="3" height="4"/>', 12),
        ('<polygon points="0,0 4,0 4,4"/>', 8),
        ('<path d="M0 0 4 0 4 4 0 4z M1 1 1 2 2 2 2 1z"/>', 15),
        ('<path d="M0 0 4 0 4 4 0 4z M1 1 2 1 2 2 1 2z"/>', 16),
        ('<path fill-rule="evenodd" d="M0 0 4 0 4 4 0 4z M1 1 2 1 2 2 1 2z"/>', 15),
        ('<g style="fill-rule:evenodd"><path d="M0 0h4v4h-4zm1 1h1v1h-1z"/></g>', 15),
        ('<path d="M0 0 L4,0 l0,4 H0 V0"/>', 16),
        ('<g transform="translate(3 1) scale(2)"><rect width="1" height="1" transform="rotate(30)"/></g>', 4),
        ('<path d="M0 0 Q 2 4 4 0 Z"/>', 16 / 3),
        ('<path d="M0 0 C 0 4 4 4 4 0 Z"/>', 9.6),
        ('<path d="M0 0 C 0 2 2 2 2 0 S 4 -2 4 0 V 4 H 0 Z"/>', 16),
        ('<path d="M0 0 Q 1 2 2 0 T 4 0 V 4 H 0 Z"/>', 16),
        ('<circle cx="5" cy="5" r="2"/>', 4 * math.pi),
        ('<ellipse cx="5" cy="5" rx="2" ry="1"/>', 2 * math.pi),
        ('<path d="M 3 5 A 2 2 0 0 1 7 5 Z"/>', 2 * math.pi),
        ('<path d="M3 5a2 2 0 014 0z"/>', 2 * math.pi),
        ('<path d="M 3 5 A 2 2 0 1 0 5 3 L 5 5 Z"/>', 3 * math.pi),
        ('<path d="M 0 0 A 1 1 0 0 1 4 0 Z"/>', 2 * math.pi),
        ('<defs><rect width="9" height="9"/></defs><rect width="1" height="1"/>', 1),
    ],
)
def test_svg_shapes_enclose_their_areas(tmp_path, body, area):
    shape = read_shape(draw(tmp_path, body), (x, y), tolerance=1e-6)
    assert shape.measure == pytest.approx(area, rel=1e-5)


def test_svg_curves_stay_within_the_tolerance_and_upwards_is_up(tmp_path):
    path = draw(tmp_path, '<circle cx="5" cy="3" r="2"/>')
    for tolerance in (0.1, 1e-2, 1e-3):
        shape = read_shape(path, (x, y), tolerance=tolerance)
        points = shape.boundary.sample(2000).points
        gap = np.abs(np.hypot(points[:, 0] - 5, points[:, 1] - 7) - 2).max()
        assert tolerance / 30 < gap < tolerance
    assert len(read_shape(path, (x, y)).boundary.patches) < 100
    two = draw(tmp_path, '<rect id="a" width="1" height="1"/><rect id="b" x="2" width="2" height="1"/>')
    assert read_shape(two, (x, y)).measure == 3
    assert read_shape(two, (x, y), region="b").measure == 2


# masks


def test_masks_follow_pixels_or_thin_them_out():
    mask = np.zeros((8, 10), dtype=bool)
    mask[1:7, 1:9] = True
    mask[3:5, 3:6] = False
    shape = read_shape(mask, (x, y), bounds=((0, 10), (0, 8)))
    assert shape.measure == 48 - 6
    assert sum(len(ring) for ring in shape.rings) == 8
    up, down = (read_shape(mask, (x, y), bounds=((0, 1), (0, 1)), origin=origin) for origin in ("lower", "upper"))
    assert up.measure == pytest.approx(down.measure)
    assert not up.contains([[0.4, 0.4]])[0]
    rows, columns = np.mgrid[0:80, 0:80] + 0.5
    round_mask = np.hypot(rows - 40, columns - 40) < 30
    disk = read_shape(round_mask, (x, y), bounds=((-4, 4), (-4, 4)))
    assert disk.measure == pytest.approx(9 * math.pi, rel=0.01)
    assert len(disk.boundary.patches) < 80
    exact = read_shape(round_mask, (x, y), bounds=((-4, 4), (-4, 4)), tolerance=0)
    assert exact.measure == pytest.approx(round_mask.sum() / 100, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.2, 0.8))
def test_any_mask_has_an_outline_with_the_area_of_its_pixels(seed, share):
    mask = np.random.default_rng(seed).random((7, 9)) < share
    mask[3, 4] = True
    shape = read_shape(mask, (x, y), bounds=((0, 9), (0, 7)), tolerance=0)
    assert shape.measure == pytest.approx(mask.sum(), rel=1e-12)
    centers = np.argwhere(np.ones_like(mask))[:, ::-1] + 0.5
    np.testing.assert_array_equal(shape.contains(centers), mask.ravel())


def test_thinned_rings_stay_within_the_tolerance():
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    thin = simplified(ring, 0.01)
    assert 10 < len(thin) < 60
    level = Polygon((x, y), thin).level(ring)
    assert np.abs(level).max() < 0.01 + 1e-12


# functions


def test_functions_negative_inside_are_shapes():
    ellipse = read_shape(x**2 / 4 + y**2 - 1, (x, y), bounds=((-3, 3), (-2, 2)))
    assert ellipse.measure == pytest.approx(2 * math.pi, rel=1e-7)
    ring = read_shape(lambda X: np.abs(np.hypot(*X.T) - 2) - 0.5, (x, y), bounds=((-3, 3), (-3, 3)))
    assert ring.measure == pytest.approx(4 * math.pi, rel=1e-6)
    assert ring.boundary.measure == pytest.approx(8 * math.pi, rel=1e-6)
    ball = read_shape(lambda X: np.linalg.norm(X, axis=1) - 1, (x, y, z), bounds=[(-1.5, 1.5)] * 3)
    assert ball.measure == pytest.approx(4 * math.pi / 3, rel=1e-5)
    assert ball.boundary.measure == pytest.approx(4 * math.pi, rel=1e-5)
    for shape in (ellipse, ring, ball):
        points, normals = shape.boundary.sample(200)
        assert shape.contains(points - 1e-6 * normals).all()
        assert not shape.contains(points + 1e-6 * normals).any()
        assert shape.boundary.contains(points).all()
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-14)
        assert shape.contains(shape.sample(200)).all()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: np.ones(len(X)), "nowhere negative"),
        (lambda X: X[:, 0] - 1.0, "not positive all along the bounds"),
        (lambda X: X, "must return n finite numbers"),
        (lambda X: np.full(len(X), np.nan), "must return n finite numbers"),
        (lambda X: 1 / 0, "it raised ZeroDivisionError"),
        (x**2 + z - 1, "must depend on"),
    ],
)
def test_functions_without_an_inside_are_refused(function, message):
    with pytest.raises(GeometryError, match=message):
        Implicit((x, y), function, [(-1, 1), (-1, 1)])


# surfaces


@pytest.mark.parametrize("kind", ["stl", "text.stl", "obj", "ply"])
def test_surface_files_are_solids(tmp_path, kind):
    pytest.importorskip("trimesh")
    vertices, triangles = box((0, 0, 0), (1, 2, 3))
    path = tmp_path / f"box.{kind}"
    content = {"stl": stl, "text.stl": text_stl, "obj": obj, "ply": ply}[kind](vertices, triangles)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    solid = read_shape(path, (x, y, z))
    assert solid.measure == pytest.approx(6, rel=1e-14)
    assert solid.boundary.measure == pytest.approx(22, rel=1e-14)
    assert len(solid.boundary.patches) == 6
    assert sorted(part.measure for part in solid.parts.values()) == pytest.approx([2, 2, 3, 3, 6, 6])


def test_solids_of_many_triangles_of_different_sizes():
    """A fan of ever smaller triangles on one side of a prism, and a finely cut sphere."""
    fan = [(1.0, 0.0), *((math.cos(a), math.sin(a)) for a in np.pi * (1 - 0.5 ** np.arange(1, 20))), (-1.0, 0.0)]
    n = len(fan)
    vertices = np.array([(a, b, h) for h in (0.0, 1.0) for a, b in fan])
    caps = [(0, k + 1, k) for k in range(1, n - 1)] + [(n, n + k, n + k + 1) for k in range(1, n - 1)]
    sides = [t for k in range(n) for t in ((k, (k + 1) % n, n + (k + 1) % n), (k, n + (k + 1) % n, n + k))]
    solid = Solid((x, y, z), vertices, caps + sides)
    area = Polygon((x, y), fan).measure
    assert solid.measure == pytest.approx(area, rel=1e-12)
    points, normals = solid.boundary.sample(4000)
    assert solid.contains(points - 1e-7 * normals).all()
    assert not solid.contains(points + 1e-7 * normals).any()
    assert np.mean(normals[:, 2] > 0.5) == pytest.approx(area / solid.boundary.measure, abs=0.01)
    assert np.mean(points[:, 0][normals[:, 2] > 0.5]) == pytest.approx(
        float(np.dot(*(lambda X, w: (X[:, 0], w))(*Polygon((x, y), fan).quadrature(400)))) / area, abs=0.02
    )


def test_levels_of_solids_are_distances():
    vertices, triangles = box((0, 0, 0), (1, 2, 3))
    solid = Solid((x, y, z), vertices, triangles)
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 3.5, (4000, 3))
    inward = np.minimum(X, np.array([1, 2, 3]) - X)
    outside = np.linalg.norm(np.maximum(-inward, 0), axis=1)
    exact = np.where(outside > 0, -outside, inward.min(axis=1))
    level = solid.level(X)
    np.testing.assert_array_equal(level > 0, exact > 0)
    assert (np.abs(level) >= np.abs(exact) - 1e-12).all()
    points, normals = solid.boundary.sample(500)
    np.testing.assert_allclose(solid.level(points - 1e-5 * normals), 1e-5, rtol=1e-6)


def test_cavities_are_holes():
    outer, inner = box((0, 0, 0), (3, 3, 3)), box((1, 1, 1), (2, 2, 2))
    vertices = np.vstack([outer[0], inner[0]])
    solid = Solid((x, y, z), vertices, np.vstack([outer[1], inner[1][:, ::-1] + 8]))
    assert solid.measure == pytest.approx(26)
    assert not solid.contains([[1.5, 1.5, 1.5]])[0]
    with pytest.raises(GeometryError, match="a cavity whose triangles face away"):
        Solid((x, y, z), vertices, np.vstack([outer[1], inner[1] + 8]))


def test_trimesh_objects_are_solids():
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(3)
    solid = read_shape(ball, (x, y, z))
    assert solid.measure == pytest.approx(ball.volume, rel=1e-12)
    assert len(solid.boundary.patches) < len(ball.faces) / 8
    X = np.random.default_rng(1).uniform(-1, 1, (3000, 3))
    radius = np.linalg.norm(X, axis=1)
    clear = np.abs(radius - 1) > 0.02
    np.testing.assert_array_equal(solid.level(X[clear]) > 0, radius[clear] < 1)
    assert Domain.from_dict(json.loads(json.dumps(solid.to_dict())), (x, y, z)) == solid


# meshes


def test_plane_meshes_have_the_names_of_their_groups(tmp_path):
    meshio = pytest.importorskip("meshio")
    points = np.array([[i, j, 0] for j in range(5) for i in range(5)], dtype=float)
    quads = [[5 * j + i, 5 * j + i + 1, 5 * j + i + 6, 5 * j + i + 5] for j in range(4) for i in range(4)]
    del quads[5]
    bottom = [[i, i + 1] for i in range(4)]
    mesh = meshio.Mesh(
        points,
        [("line", bottom), ("quad", quads)],
        cell_data={
            "gmsh:physical": [np.full(4, 1), np.array([2] * 8 + [3] * 7)],
            "gmsh:geometrical": [np.full(4, 1), np.full(15, 1)],
        },
        field_data={"inflow-1": np.array([1, 1]), "steel": np.array([2, 2]), "copper": np.array([3, 2])},
    )
    path = tmp_path / "plate.msh"
    for source in (mesh, path):
        if source is path:
            meshio.write(path, mesh, file_format="gmsh22", binary=False)
        shape = read_shape(source, (x, y))
        assert shape.measure == pytest.approx(15)
        assert shape.parts["inflow_1"].measure == pytest.approx(4)
        assert sum(len(ring) for ring in shape.rings) == 8
        steel = read_shape(source, (x, y), region="steel")
        assert steel.measure == pytest.approx(8)
    with pytest.raises(pb.PiblsError, match=r"no region named 'wood'\. Names in it: steel, copper"):
        read_shape(mesh, (x, y), region="wood")
    with pytest.raises(GeometryError, match="give two coordinates"):
        read_shape(mesh, (x, y, z))


GMSH = """
$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
3
1 1 "inflow"
1 2 "wall"
2 3 "plate"
$EndPhysicalNames
$Entities
4 4 1 0
1 0 0 0 0
2 1 0 0 0
3 1 1 0 0
4 0 1 0 0
1 0 0 0 1 0 0 1 2 2 1 -2
2 1 0 0 1 1 0 1 2 2 2 -3
3 0 1 0 1 1 0 1 2 2 3 -4
4 0 0 0 0 1 0 1 1 2 4 -1
1 0 0 0 1 1 0 1 3 4 1 2 3 4
$EndEntities
$Nodes
1 4 1 4
2 1 0 4
1
2
3
4
0 0 0
1 0 0
1 1 0
0 1 0
$EndNodes
$Elements
5 6 1 6
1 1 1 1
1 1 2
1 2 1 1
2 2 3
1 3 1 1
3 3 4
1 4 1 1
4 4 1
2 1 2 2
5 1 2 3
6 1 3 4
$EndElements
"""


def test_meshes_as_gmsh_itself_writes_them(tmp_path):
    path = tmp_path / "square.msh"
    path.write_text(GMSH.lstrip())
    square = read_shape(path, (x, y))
    assert square.measure == pytest.approx(1)
    assert square.inflow.measure == pytest.approx(1)
    assert square.wall.measure == pytest.approx(3)
    assert read_shape(path, (x, y), region="plate").measure == pytest.approx(1)


@pytest.mark.parametrize("version", ["2.2", "4.0", "4.1"])
@pytest.mark.parametrize("binary", [False, True])
def test_gmsh_files_have_the_nodes_and_cells_that_meshio_wrote(tmp_path, version, binary):
    meshio = pytest.importorskip("meshio")
    from meshio.gmsh import _gmsh22, _gmsh40, _gmsh41

    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0]], dtype=float)
    mesh = meshio.Mesh(
        points,
        [("triangle", [[0, 1, 2], [0, 2, 3]]), ("quad", [[1, 4, 5, 2]])],
        cell_data={
            "gmsh:physical": [np.array([2, 2]), np.array([3])],
            "gmsh:geometrical": [np.array([1, 1]), np.array([2])],
        },
        field_data={"steel": np.array([2, 2]), "copper": np.array([3, 2])},
        # Format 4.1 tells of entities by their points.
        point_data={"gmsh:dim_tags": np.array([[2, 1]] * 4 + [[2, 2]] * 2)} if version == "4.1" else {},
    )
    path = tmp_path / "plate.msh"
    {"2.2": _gmsh22, "4.0": _gmsh40, "4.1": _gmsh41}[version].write(path, mesh, binary=binary)
    found, groups = read_gmsh(path.read_bytes())
    assert np.array_equal(found, points)
    assert [(kind, cells.tolist()) for kind, cells, _ in groups] == [
        ("triangle", [[0, 1, 2], [0, 2, 3]]),
        ("quad", [[1, 4, 5, 2]]),
    ]
    if version != "4.0":  # of which meshio writes no entities
        assert [names for _, _, names in groups] == [["steel"] * 2, ["copper"]]


def test_numbers_of_gmsh_nodes_may_be_as_large_as_they_like(tmp_path):
    path = tmp_path / "square.msh"
    numbers = {1: 7, 2: 10**15, 3: 10**9, 4: 10**12}
    nodes = "".join(f"{numbers[k + 1]} {a} {b} 0\n" for k, (a, b) in enumerate([(0, 0), (1, 0), (1, 1), (0, 1)]))
    cells = "".join(
        f"{k} 2 2 0 1 {' '.join(str(numbers[n]) for n in c)}\n" for k, c in ((1, (1, 2, 3)), (2, (1, 3, 4)))
    )
    head = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
    path.write_text(f"{head}$Nodes\n4\n{nodes}$EndNodes\n$Elements\n2\n{cells}$EndElements\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read_shape(path, (x, y)).measure == pytest.approx(1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    path.write_text(path.read_text().replace(f"{10**9} 1 1", "7 1 1"))
    with pytest.raises(FileFormatError, match="same number"):
        read_shape(path, (x, y))


@pytest.mark.parametrize("extension", ["msh", "vtk", "vtu", "mesh", "inp", "su2"])
def test_meshes_in_space_of_several_formats(tmp_path, extension):
    meshio = pytest.importorskip("meshio")
    cube = np.array([[i, j, k] for k in range(3) for j in range(3) for i in range(3)], dtype=float)
    at = {tuple(p): n for n, p in enumerate(cube.astype(int).tolist())}
    ways = [[(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)], [(0, 0, 0), (1, 1, 0), (0, 1, 0), (1, 1, 1)]]
    ways += [[(0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)], [(0, 0, 0), (0, 1, 1), (0, 0, 1), (1, 1, 1)]]
    ways += [[(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1)], [(0, 0, 0), (1, 0, 1), (1, 0, 0), (1, 1, 1)]]
    starts = [(i, j, k) for i in range(2) for j in range(2) for k in range(2)]
    cells = [[at[tuple(np.add(s, p).tolist())] for p in way] for s in starts for way in ways]
    path = tmp_path / f"cube.{extension}"
    options = {
        "vtu": {"compression": None, "binary": False},
        "vtk": {"binary": False},
        "msh": {"file_format": "gmsh22", "binary": False},
    }
    meshio.write(path, meshio.Mesh(cube, [("tetra", cells)]), **options.get(extension, {}))
    solid = read_shape(path, (x, y, z))
    assert solid.measure == pytest.approx(8)
    assert solid.boundary.measure == pytest.approx(24)
    assert len(solid.boundary.patches) == 6


# how they are asked for


def test_arguments_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(InputError, match="extension of a file with a shape must be one of"):
        read_shape(tmp_path / "part.step", (x, y, z))
    with pytest.raises(InputError, match="does not exist"):
        read_shape(tmp_path / "part.stl", (x, y, z))
    (tmp_path / "folder.stl").mkdir()
    with pytest.raises(InputError, match="is a folder or a device"):
        read_shape(tmp_path / "folder.stl", (x, y, z))
    with pytest.raises(InputError, match="'source' parameter"):
        read_shape(5, (x, y))
    with pytest.raises(GeometryError, match="shapes in the plane; give two coordinates"):
        read_shape(FRAME, (x, y, z))
    with pytest.raises(GeometryError, match="'bounds' parameter"):
        read_shape(np.ones((3, 3), dtype=bool), (x, y))
    with pytest.raises(GeometryError, match="'tolerance' parameter"):
        read_shape(FRAME, (x, y), tolerance=-1)


def test_shapes_that_were_read_combine_with_others():
    plate = read_shape(FRAME, (x, y)) - Rectangle((x, 3, 5), (y, 3, 5))
    assert plate.measure == pytest.approx(14, rel=1e-9)
    vertices, triangles = box()
    solid = Solid((x, y, z), vertices, triangles) - pb.Ball((x, y, z), (0, 0, 0), 0.5)
    assert solid.measure == pytest.approx(1 - math.pi / 48, rel=2e-3)
    points, normals = solid.boundary.sample(300)
    assert solid.contains(points - 1e-5 * normals).all()
    assert not solid.contains(points + 1e-5 * normals).any()
    moving = read_shape(FRAME, (x, y)) * pb.TimeInterval(sp.Symbol("t"), 0, 2)
    assert moving.hole0.measure == 8
