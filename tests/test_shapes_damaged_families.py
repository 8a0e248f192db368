"""Whole families of damaged files: every format cut short at many places, with numbers that are none, and worse."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import struct
import time
import zlib

import numpy as np
import pytest
import sympy as sp

from pibls.errors import PiblsError
from pibls.geometry import read_shape
from test_shapes_reading import FRAME, box, obj, ply, stl, text_stl

x, y, z = sp.symbols("x y z")
CUBE = box()
MEGABYTE = 2**20
SVG = '<svg height="9"><path d="M0 0 C 0 4 4 4 4 0 A 2 1 0 0 1 0 0 Z"/><rect x="6" width="2" height="3"/></svg>'
NODES = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]
CELLS = [(0, 1, 2, 3), (1, 2, 3, 4)]


def lines(rows, start=None):
    numbered = ((() if start is None else (k + start,)) + tuple(row) for k, row in enumerate(rows))
    return "".join(" ".join(map(str, row)) + "\n" for row in numbered)


def msh(nodes=5, cells=2):
    head = f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{nodes}\n{lines(NODES, 1)}$EndNodes\n"
    rows = [(4, 2, 0, 1, *(k + 1 for k in cell)) for cell in CELLS]
    return f"{head}$Elements\n{cells}\n{lines(rows, 1)}$EndElements\n"


def vtk(nodes=5, cells=2):
    head = f"# vtk DataFile Version 3.0\nmade\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {nodes} double\n{lines(NODES)}"
    rows = lines([(4, *cell) for cell in CELLS])
    return f"{head}CELLS {cells} {5 * cells}\n{rows}CELL_TYPES {cells}\n10\n10\n"


def medit(nodes=5, cells=2):
    head = f"MeshVersionFormatted 2\nDimension 3\nVertices\n{nodes}\n{lines((*p, 0) for p in NODES)}"
    return f"{head}Tetrahedra\n{cells}\n{lines((*(k + 1 for k in c), 0) for c in CELLS)}End\n"


def su2(nodes=5, cells=2):
    return f"NDIME= 3\nNELEM= {cells}\n{lines((10, *c) for c in CELLS)}NPOIN= {nodes}\n{lines(NODES)}"


def vtu():
    def array(name, kind, values, more=""):
        return f'<DataArray type="{kind}" Name="{name}" {more}format="ascii">{values}</DataArray>'

    flat = [" ".join(str(entry) for row in rows for entry in row) for rows in (NODES, CELLS)]
    points = array("Points", "Float64", flat[0], 'NumberOfComponents="3" ')
    cells = (
        array("connectivity", "Int64", flat[1]) + array("offsets", "Int64", "4 8") + array("types", "UInt8", "10 10")
    )
    grid = f'<Piece NumberOfPoints="5" NumberOfCells="2"><Points>{points}</Points><Cells>{cells}</Cells></Piece>'
    head = '<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">'
    return f"{head}<UnstructuredGrid>{grid}</UnstructuredGrid></VTKFile>"


WHOLE = {
    "a.geojson": json.dumps(FRAME),
    "a.svg": SVG,
    "a.stl": stl(*CUBE),
    "text.stl": text_stl(*CUBE),
    "a.obj": obj(*CUBE),
    "a.ply": ply(*CUBE),
    "a.msh": msh(),
    "a.vtk": vtk(),
    "a.vtu": vtu(),
    "a.mesh": medit(),
    "a.su2": su2(),
}


def encoded(content):
    return content if isinstance(content, bytes) else content.encode()


def cut_short():
    """Each format cut at ten places. The last tenth of a text may be blank or a last word that nobody needs."""
    for name, content in WHOLE.items():
        whole = encoded(content).rstrip()
        for tenth in range(1, 11):
            yield f"{tenth} tenths of {name}", whole[: len(whole) * tenth // 11]


def bad_numbers():
    """NaN, infinity and numbers beyond all floats for one coordinate, in every format that is text."""
    ones = {
        "a.geojson": "[4, ",
        "text.stl": "vertex 1.0",
        "a.obj": "v 1.0",
        "a.ply": "\n1.0",
        "a.msh": "\n2 1",
        "a.vtk": "\n1",
        "a.mesh": "\n1",
        "a.su2": "\n1 0",
    }
    for name, old in ones.items():
        for word in ("NaN", "1e999", "-Infinity"):
            new = re.sub(r"1\.0|1|4", word, old, count=1)
            yield f"{word} in {name}", WHOLE[name].replace(old, new, 1)


def announced():
    """Files that announce a billion of things."""
    many = 10**9
    yield "triangles.stl", b"\0" * 80 + struct.pack("<I", many) + stl(*CUBE)[84:]
    yield "most.stl", b"\0" * 80 + struct.pack("<I", 2**32 - 1) + stl(*CUBE)[84:]
    yield "vertices.ply", ply(*CUBE).replace("vertex 8", f"vertex {many}")
    yield "faces.ply", ply(*CUBE).replace("face 12", f"face {many}")
    for name, make in (("msh", msh), ("vtk", vtk), ("mesh", medit), ("su2", su2)):
        yield f"nodes.{name}", make(nodes=many)
        yield f"cells.{name}", make(cells=many)
    yield "huge.svg", f'<svg><path d="M0 0h1v1z{"m0 0h1v1z" * 40_000}"/></svg>'


def surfaces():
    """Surfaces that are open, cut themselves, are inverted or have no inside, in four formats."""
    vertices, triangles = CUBE
    both = np.vstack([triangles, triangles + 8])
    wrong = {
        "open": (vertices, triangles[:-1]),
        "two holes": (vertices, triangles[2:-1]),
        "one triangle": (vertices, triangles[:1]),
        "inverted": (vertices, triangles[:, ::-1]),
        "one inverted": (vertices, np.vstack([triangles[:1, ::-1], triangles[1:]])),
        "doubled": (vertices, np.vstack([triangles, triangles])),
        "crossing": (np.vstack([vertices, vertices + 0.5]), both),
        "through": (np.vstack([vertices, vertices * [0.5, 0.5, 3] + [0.25, 0.25, -1]]), both),
        "flat": (vertices * [1, 1, 0], triangles),
        "a point": (vertices * 0 + 1, triangles),
    }
    for title, surface in wrong.items():
        yield f"{title}.stl", stl(*surface)
        yield f"{title} text.stl", text_stl(*surface)
        yield f"{title}.obj", obj(*surface)
        yield f"{title}.ply", ply(*surface)


def packed():
    """Compressed files under other names, small ones that would be large, and texts in other encodings."""
    bomb = gzip.compress(b"0" * (64 * MEGABYTE))
    for name in WHOLE:
        yield f"gzip {name}", gzip.compress(encoded(WHOLE[name]))
    for extension in ("geojson", "svg", "stl", "obj", "ply", "msh", "vtu"):
        yield f"bomb.{extension}", bomb
    data = zlib.compress(b"\0" * (16 * MEGABYTE)).hex()
    compressed = WHOLE["a.vtu"].replace('byte_order="', 'compressor="vtkZLibDataCompressor" byte_order="')
    yield "bomb inside.vtu", compressed + data
    for name in ("a.geojson", "a.svg", "a.obj", "a.ply"):
        yield f"utf-16 {name}", WHOLE[name].encode("utf-16")
    yield "latin.geojson", json.dumps(FRAME).replace("type", "typ\u00e9", 1).encode("latin-1")


FAMILIES = [
    pytest.param(name, content, id=name)
    for family in (cut_short, bad_numbers, announced, surfaces, packed)
    for name, content in family()
]


def test_there_are_enough_of_them():
    assert len(FAMILIES) >= 200


@pytest.mark.parametrize("name", WHOLE)
def test_the_files_are_good_before_they_are_damaged(tmp_path, name):
    pytest.importorskip("trimesh")
    pytest.importorskip("meshio")
    (tmp_path / name).write_bytes(encoded(WHOLE[name]))
    assert read_shape(tmp_path / name, (x, y) if name in ("a.geojson", "a.svg") else (x, y, z)).measure > 0


@pytest.mark.parametrize(("name", "content"), FAMILIES)
def test_damaged_files_are_refused_in_bounded_time_and_memory(tmp_path, name, content):
    pytest.importorskip("trimesh")
    pytest.importorskip("meshio")
    path = tmp_path / name
    path.write_bytes(encoded(content))
    started, used = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PiblsError) as caught:
        read_shape(path, (x, y) if name.endswith((".geojson", ".svg")) else (x, y, z))
    message = str(caught.value)
    assert name in message
    assert 30 < len(message) < 800
    assert time.process_time() - started < 10
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) * 1024 < 400 * MEGABYTE


@pytest.mark.parametrize("kind", ["folder", "missing", "device", "pipe", "loop", "nul", "long", "dangling"])
def test_paths_that_are_no_files_are_refused(tmp_path, kind):
    path = tmp_path / f"{kind}.stl"
    if kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "nul":
        path = f"{tmp_path}/a\0b.stl"
    elif kind == "long":
        path = tmp_path / ("a" * 5000 + ".stl")
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nowhere.stl")
    with pytest.raises(PiblsError, match="cannot be read") as caught:
        read_shape(path, (x, y, z))
    assert len(str(caught.value)) < 400
