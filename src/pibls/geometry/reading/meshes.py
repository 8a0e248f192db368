"""Surfaces (STL, OBJ, PLY, trimesh), and meshes of gmsh and others: outer edges or faces, with the names of groups."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, IntArray, as_reals, cut
from pibls.errors import FileFormatError, GeometryError
from pibls.geometry.base import Region
from pibls.geometry.reading.gmsh import CORNERS, DIMENSION, Groups, read_gmsh
from pibls.geometry.reading.plane import NamedRing, make_shape, plain
from pibls.geometry.reading.source import check_dimension, check_finite, check_known, guarded, imported, named
from pibls.geometry.rings import OpenRingError, chained
from pibls.geometry.solid import Solid
from pibls.reading import check_headings, check_pieces, read_bytes

MESHES = {".msh": "gmsh", ".vtk": "vtk", ".vtu": "vtu", ".inp": "abaqus", ".mesh": "medit", ".su2": "su2"}
# A data line has numbers alone; VTK has sections of data after its cells, which are no business of a shape.
_HEADINGS = {
    "vtk": rb"(?i)LOOKUP_TABLE|FIELD",
    "vtu": b"<",
    "abaqus": rb"(?m)^\s*\*(?!\*)",
    "medit": b"[A-Z][a-z]+",
    "su2": b"=",
}
_PRINTING = threading.Lock()
_SILENT = logging.NullHandler()
_HEADER, _TRIANGLE = 84, 50  # bytes of an STL file
_MOST, _LONGEST_LINE = 200_000, 1_000  # triangles, and letters
_MOST_CELLS = 500_000
_MOST_SAID = 10_000  # letters
# Corner nodes come first in cells of any order; sides with the inside behind them, seen from outside counterclockwise.
_SIDES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
    "hexahedron": ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
    "wedge": ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    "pyramid": ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
}


def from_mesh_file(path: Path, coordinates: tuple[sp.Symbol, ...], region: str | None) -> Region:
    """Return the shape that a mesh covers."""
    content, source = read_bytes(path), cut(path.name)
    check_pieces(content.replace(b",", b" "), "words", source)
    kind = MESHES[path.suffix.lower()]
    if kind == "gmsh":
        return _shape(*read_gmsh(content), coordinates, region, source)
    check_headings(content, _HEADINGS[kind], source)
    _check_announced(content, source)
    meshio = imported("meshio", "meshes")
    with _quiet():
        mesh = getattr(meshio, kind).read(_checked_deck(content, source) if kind == "abaqus" else str(path))
    return from_mesh(mesh, coordinates, region, source)


def _checked_deck(content: bytes, source: str) -> io.StringIO:
    """Return the text of Abaqus that meshio is to read, of plain letters alone, without other files and long searches.

    Whatever else counts as blank or becomes a capital letter is a question mark, so that keywords are what they seem.
    """
    text = re.sub(r"[^\t\r\n -~]", "?", content.decode("ascii", "replace"))
    stream = io.StringIO(text, newline=None)
    # As meshio finds keywords: whatever stars are in them, or none.
    keywords = [line.partition(",")[0].replace("*", "").strip().upper() for line in stream]
    stream.seek(0)
    if "INCLUDE" in keywords:
        raise FileFormatError(f"{source} includes another file, which is not read. Write the mesh as one file.")
    return stream


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence meshio, in one thread at a time: all share the streams."""
    with _PRINTING, contextlib.redirect_stderr(_Warnings()), contextlib.redirect_stdout(_Warnings()):
        yield


class _Warnings(io.StringIO):
    """Collects the warnings of meshio about lines that it does not understand, up to a limit."""

    def write(self, text: str) -> int:
        if self.tell() > _MOST_SAID:
            raise ValueError("very many lines are not understood")
        return super().write(text)


def _check_announced(content: bytes, source: str) -> None:
    """Refuse more nodes and cells than a file of this length can hold, and sections that grow when unpacked."""
    markup = content.partition(b"<AppendedData")[0]
    if content.startswith((b"\xfe\xff", b"\xff\xfe")) or (b"<\0" in markup or b"\0<" in markup):
        raise FileFormatError(f"{source} is UTF-16. Write it as UTF-8.")
    if b"<!ENTITY" in content or (b"<VTKFile" in content and b"compressor" in content):
        raise FileFormatError(f"{source} is compressed, or declares entities; neither is read. Write it as plain text.")
    for found in re.finditer(rb"(?im)^[ \t]*DIMENSIONS\s+(\d{1,30})\s+(\d{1,30})\s+(\d{1,30})", content):
        if math.prod(map(int, found.groups())) > 2 * _MOST_CELLS:
            raise FileFormatError(f"{source} has more than {_MOST_CELLS} cells. Write its surface only.")
    heading = rb"(?im)^[ \t]*[<*]?(?:Vertices|POINTS|CELLS|CELL_TYPES|Triangles|Tetrahedra|Edges|NPOIN|NELEM)"
    for found in re.finditer(heading + rb"[=\s]{1,9}((?:\d{1,30}[ \t]*){1,4})", content):
        largest = max(int(entry) for entry in found[1].split())
        if largest > max(len(content), 1000) * 50:
            raise FileFormatError(
                f"{source} announces {largest} nodes or cells in {len(content)} bytes. It is damaged."
            )


def from_mesh(mesh: Any, coordinates: tuple[sp.Symbol, ...], region: str | None, source: str) -> Region:
    """Return the shape that the cells of highest dimension of a mesh of meshio cover."""
    with guarded(source, "a mesh"):
        return _shape(np.asarray(mesh.points, dtype=np.float64), _groups(mesh), coordinates, region, source)


def _shape(
    points: FloatArray, groups: Groups, coordinates: tuple[sp.Symbol, ...], region: str | None, source: str
) -> Region:
    groups = [(kind, cells[:, list(range(CORNERS[kind]))], names) for kind, cells, names in groups]
    if not len(points) or not groups:
        raise FileFormatError(f"{source} has no cells that fill a plane or space. Write the mesh with its cells.")
    check_finite(points, source, "node {}")
    for _, cells, _ in groups:
        if len(cells) and (int(cells.min()) < 0 or int(cells.max()) >= len(points)):
            raise FileFormatError(f"{source} has cells with nodes that it does not have. It is damaged.")
    top = max(DIMENSION[kind] for kind, _, _ in groups)
    if sum(len(cells) for _, cells, _ in groups) > _MOST_CELLS:
        raise FileFormatError(f"{source} has more than {_MOST_CELLS} cells. Write its surface only.")
    if len(coordinates) == 2:
        return _plane(points, groups, coordinates, region, source)
    if points.shape[1] != 3 or top < 2 or np.ptp(points, axis=0).min() == 0.0:
        check_dimension(2, coordinates, f"{source} is a mesh")
    own = _chosen(groups, top, region, source)
    faces = _outer(own, points) if top == 3 else [tuple(cell) for _, cells, _ in own for cell in cells.tolist()]
    return _space(points, faces, _names(groups, 2), coordinates, source)


def _groups(mesh: Any) -> Groups:
    """Return kind, corner nodes and names of the cells of a mesh."""
    names = {(int(entry[0]), int(entry[1])): str(name) for name, entry in dict(mesh.field_data).items()}
    tags = mesh.cell_data.get("gmsh:physical", mesh.cell_data.get("medit:ref"))
    sets = getattr(mesh, "cell_sets", {}) or {}
    found: Groups = []
    for k, block in enumerate(mesh.cells):
        kind = re.sub(r"\d+$", "", block.type)
        if kind not in DIMENSION:
            continue
        cells = np.asarray(block.data, dtype=np.int64)
        own: list[str | None] = [None] * len(cells)
        if tags is not None:
            own = [names.get((int(tag), DIMENSION[kind])) for tag in np.ravel(tags[k])]
        for name, rows in sets.items():
            if not name.startswith("gmsh:") and rows[k] is not None:
                for row in np.ravel(rows[k]).astype(np.int64):
                    own[int(row)] = name
        found.append((kind, cells, own))
    return found


def _chosen(groups: Groups, dimension: int, region: str | None, source: str) -> Groups:
    """Return the cells of a dimension, those of one physical group if it is named."""
    own = [group for group in groups if DIMENSION[group[0]] == dimension]
    if region is None:
        return own
    check_known(region, (name for _, _, names in own for name in names), source, "region")
    rows = [(kind, cells, np.array([name == region for name in names], dtype=bool)) for kind, cells, names in own]
    return [(kind, cells[mask], [region] * int(mask.sum())) for kind, cells, mask in rows]


def _outer(groups: Groups, points: FloatArray) -> list[tuple[int, ...]]:
    """Return the sides of cells that have a cell on one side only, the inside behind them."""
    sides: dict[int, list[IntArray]] = {}
    for kind, cells, _ in groups:
        turned = _is_turned(kind, cells, points)
        for side in _SIDES[kind]:
            nodes = cells[:, list(side)]
            sides.setdefault(len(side), []).append(np.where(turned[:, None], nodes[:, ::-1], nodes))
    found: list[tuple[int, ...]] = []
    for parts in sides.values():
        nodes = np.concatenate(parts)
        _, first, counts = np.unique(np.sort(nodes, axis=1), axis=0, return_index=True, return_counts=True)
        found += map(tuple, nodes[first[counts == 1]].tolist())
    return found


def _is_turned(kind: str, cells: IntArray, points: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which cells are mirrored, so that their sides face inward."""
    d = DIMENSION[kind]
    spokes = (1, 3, 4) if kind in ("hexahedron", "pyramid") else (1, 3) if kind == "quad" else (1, 2, 3)[:d]
    edges = points[cells[:, list(spokes)], :d] - points[cells[:, :1], :d]
    return np.asarray(np.linalg.det(edges) < 0.0)


def _plane(
    points: FloatArray, groups: Groups, coordinates: tuple[sp.Symbol, ...], region: str | None, source: str
) -> Region:
    if points.shape[1] > 2 and np.ptp(points[:, 2:], axis=0).max(initial=0.0) > 1e-9 * np.ptp(points, axis=0).max():
        check_dimension(3, coordinates, f"{source} is a mesh")
    flat = _chosen(groups, 2, region, source)
    if not flat:
        raise FileFormatError(f"{source} has no triangles or quadrilaterals, only lines. Mesh the area.")
    lines, rings = _names(groups, 1), []
    try:
        chains = list(chained((a, b) for a, b in _outer(flat, points)))
    except OpenRingError as error:
        place = points[error.place, :2].tolist()
        raise GeometryError(f"{source}: the boundary of the mesh is not closed at {place}. Repair the mesh.") from error
    for number, ring in enumerate(chains):
        names = tuple(lines.get(frozenset((a, b))) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True))
        rings.append(NamedRing(points[ring, :2], f"boundary {number} of the mesh", None, names))
    return make_shape(rings, coordinates, source)


def _names(groups: Groups, dimension: int) -> dict[frozenset[int], str]:
    """Return the names of cells of a dimension, as far as they have one, by their corners."""
    own = [(cells.tolist(), names) for kind, cells, names in groups if DIMENSION[kind] == dimension]
    both = (pair for cells, names in own for pair in zip(cells, names, strict=True))
    return {frozenset(cell): name for cell, name in both if name is not None}


def _space(
    points: FloatArray,
    faces: list[tuple[int, ...]],
    names: Mapping[frozenset[int], str],
    coordinates: tuple[sp.Symbol, ...],
    source: str,
) -> Solid:
    triangles, parts = list[tuple[int, ...]](), dict[str, list[int]]()
    for face in faces:
        name = names.get(frozenset(face))
        for k in range(1, len(face) - 1):
            if name is not None:
                parts.setdefault(plain(name), []).append(len(triangles))
            triangles.append((face[0], face[k], face[k + 1]))
    with named(source):
        return Solid(coordinates, points, triangles, parts)


def from_surface_file(path: Path, coordinates: tuple[sp.Symbol, ...]) -> Solid:
    """Return the solid within the surface of an STL, OBJ or PLY file."""
    content = read_bytes(path)
    kind, source = path.suffix.lower().lstrip("."), cut(path.name)
    check_pieces(content, "words", source)
    {"stl": _check_stl, "ply": _check_ply, "obj": _check_obj}[kind](content, source)
    trimesh = imported("trimesh", "STL, OBJ and PLY files")
    logging.getLogger("trimesh").addHandler(_SILENT)  # faults are raised
    # From memory, so that materials and textures, which a file may name, are not looked for.
    options: dict[str, Any] = {"skip_materials": True} if kind == "obj" else {}
    mesh = trimesh.load(io.BytesIO(content), file_type=kind, process=False, force="mesh", **options)
    return from_triangles(np.array(mesh.vertices), np.array(mesh.faces), coordinates, source)


def from_triangles(vertices: Any, faces: Any, coordinates: tuple[sp.Symbol, ...], source: str) -> Solid:
    """Return the solid within triangles, errors naming their source."""
    points = as_reals(vertices)
    if points is None or points.ndim != 2 or points.shape[1] != 3 or not len(points) or not len(faces):
        raise FileFormatError(f"{source} has no triangles in space. Write a triangulated surface.")
    check_finite(points, source, "vertex {}")
    with named(source):
        return Solid(coordinates, points, faces)


def _check_stl(content: bytes, source: str) -> None:
    """Refuse a binary file that is not as long as it says; text files are checked by their content."""
    if len(content) < _HEADER and not content.lstrip().startswith(b"solid"):
        raise FileFormatError(f"{source} has {len(content)} bytes, too few for an STL file. It is cut short.")
    announced = int.from_bytes(content[80:84], "little") if len(content) >= _HEADER else -1
    if len(content) == _HEADER + _TRIANGLE * announced and announced > 0:
        _check_number(announced, source)
        return
    text = content.lstrip().startswith(b"solid") and b"facet" in content[:2000]
    if not text:
        expected = f"announces {announced} triangles, which are {_HEADER + _TRIANGLE * max(announced, 0)} bytes"
        raise FileFormatError(f"{source} {expected}, and has {len(content)}. It is damaged or cut short.")
    if b"endsolid" not in content[-200:]:
        raise FileFormatError(f"{source} does not end with endsolid. It is cut short; write it again.")
    check_headings(content, rb"(?i)\bsolid\b", source)
    _check_number(content.lower().count(b"endfacet"), source)


def _check_ply(content: bytes, source: str) -> None:
    head, _, body = content[:20_000].partition(b"end_header")
    counts = [int(entry) for entry in re.findall(rb"element\s+\w+\s+(\d{1,30})", head)]
    if not head.startswith(b"ply") or not body or not counts:
        raise FileFormatError(f"{source} has no PLY header. It is damaged, or has another format.")
    if max(counts) > len(content):
        raise FileFormatError(f"{source} announces {max(counts)} elements in {len(content)} bytes. It is damaged.")
    _check_number(max(counts), source)


def _check_obj(content: bytes, source: str) -> None:
    if b"\0" in content:
        raise FileFormatError(f"{source} is no text, as OBJ files are. It is damaged, or has another format.")
    if re.search(rb"[^\r\n]{%d}" % _LONGEST_LINE, content):
        raise FileFormatError(f"{source} has a line of over {_LONGEST_LINE} letters. Write triangles.")
    faces = len(re.findall(rb"(?m)^[ \t]*f[ \t]", content))
    if not faces:
        raise FileFormatError(f"{source} has no faces. Write a triangulated surface.")
    _check_number(faces, source)


def _check_number(count: int, source: str) -> None:
    if count > _MOST:
        raise FileFormatError(f"{source} has {count} elements; up to {_MOST} triangles are read. Simplify the surface.")
