"""Triangulated surfaces: STL, OBJ and PLY files, and meshes of trimesh."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import as_reals, cut
from pibls.errors import FileFormatError
from pibls.geometry.reading.source import check_finite, missing, named
from pibls.geometry.solid import Solid
from pibls.reading import check_headings, check_pieces, read_bytes

_SILENT = logging.NullHandler()
_HEADER = 84
_TRIANGLE = 50
_MOST = 200_000
_LONGEST_LINE = 1_000


def from_surface_file(path: Path, coordinates: tuple[sp.Symbol, ...]) -> Solid:
    """Return the solid within the surface of an STL, OBJ or PLY file."""
    content = read_bytes(path)
    kind, source = path.suffix.lower().lstrip("."), cut(path.name)
    check_pieces(content, "words", source)
    {"stl": _check_stl, "ply": _check_ply, "obj": _check_obj}[kind](content, source)
    try:
        import trimesh
    except ImportError:
        raise missing("trimesh", "STL, OBJ and PLY files") from None
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
