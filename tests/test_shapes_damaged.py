"""Files that are damaged, dishonest or hostile: a clear error in bounded time and memory, and no other file read."""

from __future__ import annotations

import json
import random
import resource
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import FileFormatError, GeometryError, PiblsError, TextError
from pibls.geometry import Outline, Solid, read_shape
from test_shapes_reading import FACES, FRAME, SQUARE, TETRAHEDRON, box, obj, ply, stl, text_stl

x, y, z = sp.symbols("x y z")
MEGABYTE = 2**20


def polygon(*rings):
    return json.dumps({"type": "Polygon", "coordinates": list(rings)})


BOWTIE = [[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]
OPEN = [[0, 0], [1, 0], [1, 1], [0, 1]]
FAR = [[9, 9], [9.5, 9], [9, 9.5], [9, 9]]
TWICE = [[0, 0], [2, 0], [2, 2], [1, 1], [0, 2], [1, 1], [0, 0]]
PLANE_FILES = {
    "empty.geojson": ("", "is empty"),
    "blank.geojson": (" \n", "is empty"),
    "text.geojson": ("no json", r"is no JSON: .* \(line 1, column 1\)"),
    "cut.geojson": (json.dumps(FRAME)[:-20], "is no JSON: .*cut short"),
    "deep.geojson": ("[" * 100_000, "brackets too deep"),
    "number.geojson": ("5", "objects need a 'type'"),
    "other.geojson": ('{"type": "Topology"}', "has a Topology, which has no inside"),
    "point.geojson": ('{"type": "Point", "coordinates": [0, 0]}', "has a Point, which has no inside"),
    "nothing.geojson": ('{"type": "FeatureCollection", "features": []}', "has no polygon"),
    "nan.geojson": (polygon([[0, 0], [1, 0], [float("nan"), 1], [0, 0]]), "position 2 of the outer ring .* not finite"),
    "infinite.geojson": (polygon([[0, 0], [1e999, 0], [1, 1], [0, 0]]), "position 1 .* not finite"),
    "long.geojson": (
        polygon([[0, 0], [1, 0], [1, 1], [0, 0]]).replace("1,", "1" * 400 + ","),
        "must be a list of positions",
    ),
    "words.geojson": (polygon([["a", "b"], [1, 0], [1, 1], ["a", "b"]]), "must be a list of positions"),
    "flat.geojson": (polygon([0, 1, 2, 3]), "must be a list of positions"),
    "open.geojson": (polygon(OPEN), r"is not closed: .* goes from \[0.0, 0.0\] to \[0.0, 1.0\]"),
    "short.geojson": (polygon([[0, 0], [1, 0], [0, 0]]), "is not closed"),
    "line.geojson": (polygon([[0, 0], [1, 0], [2, 0], [0, 0]]), "encloses no area"),
    "many.geojson": (polygon(SQUARE, *[SQUARE] * 2000), "meets edge"),
    "bowtie.geojson": (polygon(BOWTIE), "simple polygon|encloses no area"),
    "twice.geojson": (polygon(TWICE), "simple polygon. Edge . meets edge ."),
    "crossing.geojson": (
        polygon(SQUARE, [[3, 1], [5, 1], [5, 2], [3, 1]]),
        "Edge . of ring 0 meets edge . of ring 1 near",
    ),
    "outside.geojson": (polygon(SQUARE, FAR), "hole 0 of polygon 0 lies outside"),
    "doubled.geojson": (polygon(SQUARE, SQUARE), "Edge . of ring 0 meets edge . of ring 1"),
    "on top.geojson": (
        json.dumps({"type": "MultiPolygon", "coordinates": [[SQUARE], [[[1, 1], [2, 1], [1, 2], [1, 1]]]]}),
        "lies inside another polygon",
    ),
    "binary.geojson": (b"\xff\xfe\x00\x01", "is no UTF-8 text from byte 0"),
    "empty.svg": ("", "is empty"),
    "text.svg": ("M 0 0", "is no XML"),
    "cut.svg": ("<svg><path d='M0 0h1v1z'", "is no XML"),
    "html.svg": ("<html/>", "is no SVG"),
    "nothing.svg": ("<svg/>", "has no path"),
    "laughs.svg": (
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><svg>&b;</svg>',
        "declares entities",
    ),
    "outer.svg": ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg>&a;</svg>', "declares entities"),
    "tiny.svg": (
        '<svg><path d="M0 0 A 1e-300 1e-300 0 0 1 1e300 1 Z"/></svg>',
        "cannot be read as a file of the format SVG",
    ),
    "letters.svg": ('<svg><path d="M 0 0 L 1 x"/></svg>', "path number 1: the path cannot be read from character 10"),
    "short.svg": ('<svg><path d="M 0 0 L 1 0 1"/></svg>', "ends in the middle of a command"),
    "gap.svg": ('<svg><path d="M 0 0 L 1 Z"/></svg>', "too few numbers before character 10"),
    "start.svg": ('<svg><path d="1 2 3"/></svg>', "cannot be read from character 0"),
    "unit.svg": ('<svg><circle r="5cm"/></svg>', "r must be a number without a unit"),
    "huge.svg": ('<svg><rect width="1e300" height="1e300"/></svg>', "beyond 1e15"),
    "line.svg": ('<svg><path d="M 0 0 L 1 1 Z"/></svg>', "encloses no area"),
    "turn.svg": (
        '<svg><g transform="rotate(1 2)"><rect width="1" height="1"/></g></svg>',
        "transform that cannot be read",
    ),
    "deep.svg": ("<svg>" + "<g>" * 50_000 + "</g>" * 50_000 + "</svg>", "more than 10000 elements|is no XML"),
    "many.svg": ('<svg><path d="' + "M0 0h1v1z" * 30_000 + '"/></svg>', "more than 20000 vertices|more than 100000"),
    "curves.svg": ('<svg><path d="M0 0' + "C 0 9 9 9 9 0" * 3000 + '"/></svg>', "at most 20000 vertices"),
    "rings.svg": (
        '<svg><path d="' + "".join(f"M{2 * k} 0h1v1z" for k in range(6000)) + 'M0 0 L 5 5 V 0 L 0 7"/></svg>',
        "must not cross",
    ),
    "bowtie.svg": ('<svg><path d="M0 0 L 2 2 V 0 L 0 2.5 Z"/></svg>', "simple polygon"),
}
CUBE = box()
PEAK = np.vstack([CUBE[0], CUBE[0] + 0.5]), np.vstack([CUBE[1], CUBE[1] + 8])
STACK = np.vstack([CUBE[0], CUBE[0] * 0.5 + [0.2, 0.2, 1.0]]), np.vstack([CUBE[1], CUBE[1] + 8])
NOT_FINITE = np.where(np.arange(24).reshape(8, 3) == 7, np.nan, CUBE[0])
FLIPPED = np.vstack([CUBE[1][:1, ::-1], CUBE[1][1:]])
WING = np.vstack([CUBE[0], [[5, 5, 5]]]), np.vstack([CUBE[1], [[0, 1, 8]], [[1, 0, 8]]])
SPACE_FILES = {
    "empty.stl": (b"", "is empty"),
    "short.stl": (b"abc", "too few for an STL"),
    "dishonest.stl": (b"\0" * 80 + struct.pack("<I", 10**9), "announces 1000000000 triangles"),
    "cut.stl": (stl(*CUBE)[:-70], "It is damaged or cut short"),
    "longer.stl": (stl(*CUBE) + b"12345", "It is damaged or cut short"),
    "cut text.stl": (text_stl(*CUBE)[:-300], "does not end with endsolid"),
    "letters.stl": (
        text_stl(*CUBE).replace("vertex 1.0", "vertex one", 1),
        "cannot be read as a file of the format STL|not finite|leaks",
    ),
    "none.stl": (b"\0" * 84, "announces 0 triangles"),
    "leaking.stl": (stl(CUBE[0], CUBE[1][:-1]), "leaks: 3 edges have a triangle on one side only, the first from"),
    "nan.stl": (stl(NOT_FINITE, CUBE[1]), "is not finite"),
    "inside out.stl": (stl(CUBE[0], CUBE[1][:, ::-1]), "is inside out. Reverse its triangles"),
    "inverted.stl": (stl(CUBE[0], FLIPPED), "Triangles 0 and .* differ, .* one of them is inverted"),
    "crossing.stl": (stl(*PEAK), "must not cut itself. Triangle .* passes through triangle .*, near"),
    "stacked.stl": (stl(*STACK), "must not (?:touch or )?cut itself. Triangle .* near"),
    "wing.stl": (stl(*WING), "4 meet at that from"),
    "doubled.stl": (stl(CUBE[0], np.vstack([CUBE[1], CUBE[1]])), "4 meet at that from"),
    "flat.stl": (stl(CUBE[0] * [1, 1, 0], CUBE[1]), "must|encloses|two triangles"),
    "points.stl": (stl(CUBE[0] * 0 + 1, CUBE[1]), "must span a size"),
    "empty.obj": ("", "is empty"),
    "none.obj": ("v 0 0 0\n", "has no faces"),
    "numbers.obj": ("v 0 0 0\nf 1 2 3\n", "cannot be read as a file of the format OBJ|must have numbers of vertices"),
    "binary.obj": (b"v 0 0 0\n\0\0\0f 1 1 1\n", "is no text"),
    "material.obj": ("mtllib ../../secret.mtl\n" + obj(CUBE[0], CUBE[1][:-1]), "leaks"),
    "empty.ply": ("", "is empty"),
    "header.ply": ("ply\nformat ascii 1.0\n", "has no PLY header"),
    "dishonest.ply": (ply(*CUBE).replace("vertex 8", "vertex 1000000000"), "announces 1000000000 elements"),
    "more.ply": (
        ply(*CUBE).replace("vertex 8", "vertex 80"),
        "no triangles in space|cannot be read as a file of the format PLY|leaks",
    ),
    "cut.ply": (ply(*CUBE)[:-40], "cannot be read as a file of the format PLY|leaks|must have|finite"),
    "empty.msh": ("", "is empty"),
    "text.msh": ("no mesh", "cannot be read as a file of the format MSH"),
    "dishonest.msh": (
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1000000000\n1 0 0 0\n$EndNodes\n",
        "a list ends too early|cannot be read",
    ),
    "cut.msh": ("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 0\n", "cannot be read"),
    "nodes.msh": ("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n$EndNodes\n", "no cells|cannot be read"),
    "corners.msh": (
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n$EndNodes\n"
        "$Elements\n1\n1 4 2 ",
        "cannot be read as a file",
    ),
    "numbers.msh": (
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n$EndNodes\n"
        "$Elements\n1\n1 4 0 1 2 3 4\n$EndElements\n",
        "cells with nodes that it does not have|cannot be read",
    ),
    "text.vtk": (
        "# vtk DataFile Version 3.0\n\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 9 float\n0",
        "cannot be read",
    ),
    "packed.vtu": ('<VTKFile type="UnstructuredGrid" compressor="vtkZLibDataCompressor"/>', "is compressed"),
    "laughs.vtu": ('<!DOCTYPE x [<!ENTITY a "aa">]><VTKFile/>', "declares entities"),
    "text.mesh": ("MeshVersionFormatted 2\nDimension 3\nVertices\n999999999999\n", "announces|cannot be read"),
    "include.inp": ("*NODE\n1, 0, 0, 0\n*INCLUDE, INPUT=/etc/passwd\n", "includes another file"),
    "hidden.inp": ("*NODE\n1, 0, 0, 0\r *In*clude*, INPUT=/etc/passwd\n", "includes another file"),
    "text.inp": ("*NODE\n1, a, b\n", "cannot be read|no cells"),
    "text.su2": ("NDIME= 3\nNPOIN= 4\n0 0", "cannot be read|no cells"),
}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", [*PLANE_FILES, *SPACE_FILES])
def test_every_damaged_file_is_refused_with_what_and_where(tmp_path, name):
    if name.endswith((".stl", ".obj", ".ply")):
        pytest.importorskip("trimesh")
    elif name in SPACE_FILES:
        pytest.importorskip("meshio")
    content, message = {**PLANE_FILES, **SPACE_FILES}[name]
    symbols = (x, y) if name in PLANE_FILES else (x, y, z)
    path = write(tmp_path, name, content)
    started, used = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((FileFormatError, GeometryError), match=message) as caught:
        read_shape(path, symbols)
    assert name in str(caught.value)
    assert len(str(caught.value)) < 800
    # Generous: the first call imports a library.
    assert time.process_time() - started < 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) * 1024 < 400 * MEGABYTE


@pytest.mark.parametrize("seed", range(60))
def test_files_with_changed_bytes_give_a_shape_or_an_error(tmp_path, seed):
    pytest.importorskip("trimesh")
    pytest.importorskip("meshio")
    rng = random.Random(seed)
    mesh = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n$EndNodes\n"
    mesh += "$Elements\n1\n1 4 2 0 1 1 2 3 4\n$EndElements\n"
    whole = {
        "a.geojson": json.dumps(FRAME),
        "a.svg": '<svg><path d="M0 0 C 0 4 4 4 4 0 A 2 1 0 0 1 0 0 Z"/></svg>',
        "a.stl": stl(TETRAHEDRON, FACES),
        "b.stl": text_stl(TETRAHEDRON, FACES),
        "a.obj": obj(TETRAHEDRON, FACES),
        "a.ply": ply(TETRAHEDRON, FACES),
        "a.msh": mesh,
    }
    for name, given in whole.items():
        content = bytearray(given if isinstance(given, bytes) else given.encode())
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(content))
            change = rng.randrange(3)
            if change == 0:
                content[place] = rng.randrange(256)
            elif change == 1:
                del content[place : place + rng.randint(1, 20)]
            else:
                content[place:place] = bytes(rng.choices(b"0123456789e-. \n", k=rng.randint(1, 5)))
        symbols = (x, y) if name in ("a.geojson", "a.svg") else (x, y, z)
        path = write(tmp_path, name, bytes(content))
        try:
            shape = read_shape(path, symbols)
        except PiblsError:
            continue
        assert shape.measure > 0


def test_nothing_is_printed_about_damaged_files(tmp_path, capfd):
    pytest.importorskip("trimesh")
    pytest.importorskip("meshio")
    path = write(tmp_path, "normals.stl", text_stl(*CUBE).replace("normal 0 0 0", "normal a b c"))
    assert read_shape(path, (x, y, z)).measure == pytest.approx(1)
    for name in ("letters.stl", "text.msh", "cut.msh", "text.inp"):
        with pytest.raises(PiblsError):
            read_shape(write(tmp_path, name, SPACE_FILES[name][0]), (x, y, z))
    assert capfd.readouterr() == ("", "")


def test_standard_output_is_left_alone_by_readers_in_threads(tmp_path):
    pytest.importorskip("meshio")
    paths = [write(tmp_path, f"{k}.inp", SPACE_FILES["text.inp"][0]) for k in range(40)]
    streams = sys.stdout, sys.stderr

    def read(path):
        with pytest.raises(PiblsError):
            read_shape(path, (x, y, z))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, paths))
    assert (sys.stdout, sys.stderr) == streams


def test_large_files_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "large.geojson"
    with path.open("wb") as stream:
        stream.truncate(10**12)  # a hole: no bytes on the disk
    with pytest.raises(FileFormatError, match="has 1000000 MB; up to 30 are read"):
        read_shape(path, (x, y))


@pytest.mark.parametrize(
    "line", ["*INCLUDE", "INCLUDE", "*INCLUDE\x1c", "*\u0131NCLUDE", "** INCLUDE", "*INCLUDE\x85", "\xa0*INCLUDE"]
)
def test_no_mesh_reads_another_file(tmp_path, line):
    (tmp_path / "other.inp").write_text("*NODE\n1,0.,0.\n2,1.,0.\n3,0.,1.\n*ELEMENT, TYPE=CPS3\n1,1,2,3\n")
    assert read_shape(tmp_path / "other.inp", (x, y)).measure == 0.5
    path = tmp_path / "a.inp"
    path.write_text(f"{line}, INPUT={tmp_path / 'other.inp'}\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"includes another file|no cells"):
        read_shape(path, (x, y))


def test_markup_that_is_not_seen_as_bytes_is_refused(tmp_path):
    markup = '<?xml version="1.0" encoding="utf-16"?><VTKFile compressor="vtkZLibDataCompressor"></VTKFile>'
    for coding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / "a.vtu").write_bytes(markup.encode(coding))
        with pytest.raises(FileFormatError, match="is UTF-16"):
            read_shape(tmp_path / "a.vtu", (x, y))


_GMSH = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n"
LONG = {
    "digits.svg": lambda: '<svg><rect height="1" width="' + "1" * 40_000 + 'x"/></svg>',
    "paths.svg": lambda: "<svg>" + ('<path d="M0 0' + "h1" * 50_000 + '"/>') * 20 + "</svg>",
    "elements.svg": lambda: "<svg>" + '<a b=""/>' * 2_000_000 + "</svg>",
    "attributes.svg": lambda: "<svg " + " ".join(f'a{k}=""' for k in range(1_000_000)) + "/>",
    "lists.geojson": lambda: '{"type":"Polygon","coordinates":[' + "[]," * 6_000_000 + "[]]}",
    "rings.geojson": lambda: json.dumps(
        {"type": "MultiPolygon", "coordinates": [[[[k, 0], [k + 1, 0], [k, 1], [k, 0]]] for k in range(100_000)]}
    ),
    "words.stl": lambda: "solid a\n" + "facet normal 0 0 0\n" * 1_500_000 + "endsolid a\n",
    "names.msh": lambda: (
        f"{_GMSH}$PhysicalNames\n" + "1" * 1_000_000 + "\n$EndPhysicalNames\n$Nodes\n1\n$EndNodes\n"
        "$Elements\n1 1\n$EndElements\n"
    ),
    "tags.msh": lambda: (
        f"{_GMSH}$Entities\n0 0 1 0\n1 0 0 0 1 1 1 30000 {'7 ' * 30_000}0\n$EndEntities\n$Nodes\n1 3 1 3\n"
        "2 1 0 3\n1\n2\n3\n0 0 0\n1 0 0\n0 1 0\n$EndNodes\n$Elements\n1 30000 1 30000\n2 1 2 30000\n"
        + "1 1 2 3\n" * 30_000
        + "$EndElements\n"
    ),
    "solids.stl": lambda: "solid a\nfacet\n" + "solid b\nendsolid b\n" * 300_000,
    "lines.su2": lambda: "NDIME= 2\nNELEM= 1\n5 0 1 2\n" + "5 0 1 2\n" * 30_000,
    "parts.mesh": lambda: "MeshVersionFormatted 2\nDimension 2\n" + "Triangles\n1\n1 2 3 0\n" * 300_000,
    "face.obj": lambda: "v 0 0 0\nf " + "1 " * 2_000_000 + "\n",
    "blocks.inp": lambda: "*NODE\n1,0.,0.\n2,1.,0.\n3,0.,1.\n" + "*ELEMENT, TYPE=CPS3\n" * 200_000 + "1,1,2,3\n",
}


@pytest.mark.parametrize("name", LONG)
def test_long_files_are_refused_soon(tmp_path, name):
    path = tmp_path / name
    path.write_text(LONG[name]())
    began = time.process_time()
    with pytest.raises(PiblsError):
        read_shape(path, (x, y, z) if name.endswith("stl") else (x, y))
    assert time.process_time() - began < 5


def test_noise_has_no_outline():
    noise = np.random.default_rng(0).random((1500, 1500)) < 0.5
    with pytest.raises(GeometryError, match="ragged or noisy"):
        read_shape(noise, (x, y), bounds=((0, 1), (0, 1)))


def test_too_many_vertices_and_triangles_are_refused():
    angle = np.linspace(0, 2 * np.pi, 30_000, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    with pytest.raises(GeometryError, match=r"at most 20000 vertices in all\. Got 30000"):
        Outline((x, y), [ring])
    with pytest.raises(GeometryError, match=r"at most 200000 rows\. Got 300000"):
        Solid((x, y, z), TETRAHEDRON, np.tile(FACES[:1], (300_000, 1)))


PROBLEM = """
equations = ["-laplacian(u) = 1"]
[domain]
shape = "{}"
[[conditions]]
kind = "dirichlet"
value = 0
on = "hole0"
[[conditions]]
kind = "neumann"
value = 0
on = "outer"
"""


def test_problem_files_name_files_beside_them(tmp_path):
    write(tmp_path, "frame.geojson", json.dumps(FRAME))
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", "frame.geojson", json.dumps(FRAME))
    for name in ("frame.geojson", "below/frame.geojson"):
        problem = pb.read_problem(write(tmp_path, "problem.toml", PROBLEM.format(name)))
        assert problem.domain.measure == 15


@pytest.mark.parametrize(
    "name",
    [
        "../frame.geojson",
        "/etc/frame.geojson",
        "a/../../frame.geojson",
        "link.geojson",
        "C:\\\\frame.geojson",
        "none.geojson",
    ],
)
def test_problem_files_name_no_files_elsewhere(tmp_path, name):
    write(tmp_path, "frame.geojson", json.dumps(FRAME))
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "link.geojson").symlink_to(tmp_path / "frame.geojson")
    path = write(folder, "problem.toml", PROBLEM.format(name))
    with pytest.raises(TextError, match="in the folder of the problem file"):
        pb.read_problem(path)
    if name in ("../frame.geojson", "link.geojson"):
        assert pb.read_problem(path, folders=[tmp_path]).domain.measure == 15
    elif name != "none.geojson":
        with pytest.raises(TextError, match="There is no file"):
            pb.read_problem(path, folders=[folder])


def test_errors_in_shapes_point_into_the_problem_file(tmp_path):
    write(tmp_path, "frame.geojson", polygon(BOWTIE[:-1]))
    with pytest.raises(TextError, match=r"line 4.*frame.geojson: the outer ring of polygon 0 is not closed"):
        pb.read_problem(write(tmp_path, "problem.toml", PROBLEM.format("frame.geojson")))
    with pytest.raises(TextError, match="Meshes are in the plane or in space"):
        pb.read_problem(write(tmp_path, "problem.toml", PROBLEM.format("plate.msh")))


@pytest.mark.parametrize("turned", [False, True])
def test_rings_within_rings(turned, tmp_path, monkeypatch):
    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]) if turned else np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    rings = [(k * corners[[0, 1, 2, 3, 0]]).tolist() for k in range(40, 0, -1)]
    onion = {"type": "MultiPolygon", "coordinates": [rings[k : k + 2] for k in range(0, 40, 2)]}
    side = 2 if turned else 4  # the area within a ring, in terms of its number squared
    expected = side * sum((-1) ** k * k**2 for k in range(1, 41))
    assert read_shape(onion, (x, y)).measure == pytest.approx(expected, rel=1e-14)
    by_parts = read_shape(onion, (x, y))
    with monkeypatch.context() as patch:
        patch.setattr("pibls.geometry.rings.MOST_PAIRS", 400)
        assert by_parts.measure == pytest.approx(expected, rel=1e-14)
    path = " ".join(f"M {' L '.join(f'{a} {b}' for a, b in ring)} Z" for ring in rings)
    for rule, area in (("evenodd", expected), ("nonzero", side * 40**2)):
        drawing = f'<svg xmlns="http://www.w3.org/2000/svg"><path fill-rule="{rule}" d="{path}"/></svg>'
        (tmp_path / "onion.svg").write_text(drawing)
        assert read_shape(tmp_path / "onion.svg", (x, y)).measure == pytest.approx(area, rel=1e-14)


def test_outlines_of_too_many_edges_beside_each_other_are_refused(monkeypatch):
    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    rings = [k * corners for k in range(1, 41)]
    monkeypatch.setattr("pibls.geometry.rings.MOST_PAIRS", 2000)
    with pytest.raises(GeometryError, match=r"over 2000 pairs of its 160 edges are beside each other.* fewer rings"):
        Outline((x, y), rings)
    assert Outline((x, y), [k * (corners @ [[1, 1], [-1, 1]]) for k in range(1, 41)]).measure == 4 * 820
