"""One function for all sources of shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import check_number, cut, shorten
from pibls.errors import GeometryError, InputError
from pibls.geometry.base import Region
from pibls.geometry.description import check_coordinates
from pibls.geometry.implicit import Implicit
from pibls.geometry.reading.geojson import from_geojson, load_geojson
from pibls.geometry.reading.meshes import MESHES, from_mesh, from_mesh_file, from_surface_file, from_triangles
from pibls.geometry.reading.plane import from_mask
from pibls.geometry.reading.source import guarded
from pibls.geometry.reading.svg import from_svg

_PLANE = (".geojson", ".json", ".svg")
_SURFACES = (".stl", ".obj", ".ply")
EXTENSIONS: Mapping[str, int | None] = {
    **dict.fromkeys(_PLANE, 2),
    **dict.fromkeys(_SURFACES, 3),
    **dict.fromkeys(MESHES, None),
}
"""Extensions of files with shapes, and the number of coordinates these have (None: either)."""


def read_shape(
    source: object,
    coordinates: tuple[sp.Symbol, ...],
    *,
    bounds: object = None,
    tolerance: float | None = None,
    region: str | None = None,
    origin: str = "lower",
    cells: int | None = None,
) -> Region:
    """Return the shape that a file or an object of another library describes.

    Parameters
    ----------
    source
        A file: GeoJSON (``.geojson``, ``.json``) or SVG with polygons, holes and several pieces; STL, OBJ or PLY with a
        closed surface; a mesh of gmsh (``.msh``), VTK (``.vtk``, ``.vtu``), Abaqus (``.inp``), Medit (``.mesh``), SU2,
        of which the boundary is taken, with the names of its groups as parts. Or an object: a shapely polygon or other
        with ``__geo_interface__``, a mapping of GeoJSON, a trimesh or meshio mesh, a two-dimensional array of booleans,
        a function of an (n, d) array or a SymPy expression that is negative inside.
    coordinates : tuple of two or three symbols
    bounds : pairs of numbers
        For arrays the limits of the whole picture, for functions those of a box around the shape.
    tolerance : float, optional
        How far edges may be from the curves of an SVG drawing (0.001 of its size unless given), or from the sides of
        pixels (three quarters of a pixel unless given).
    region : str, optional
        Only what has this name: features of GeoJSON by their property ``name`` or their ``id``, shapes of SVG by their
        ``id``, physical groups of meshes.
    origin : {"lower", "upper"}
        Where the first row of an array of booleans is.
    cells : int, optional
        For functions, see :class:`~pibls.geometry.Implicit`.

    Returns
    -------
    Region
        A Polygon, Outline, Solid or Implicit, to be used like any other shape.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> ring = [[0, 0], [3, 0], [3, 3], [0, 3], [0, 0]]
    >>> hole = [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]
    >>> frame = read_shape({"type": "Polygon", "coordinates": [ring, hole]}, (x, y))
    >>> frame.measure, list(frame.parts)
    (8.0, ['outer', 'hole0'])
    """
    symbols = check_coordinates(coordinates, "read_shape")
    if len(symbols) not in (2, 3):
        raise GeometryError(f"The 'coordinates' parameter of read_shape must be two or three symbols. Got {symbols}.")
    if tolerance is not None:
        tolerance = check_number("tolerance", tolerance, "read_shape", minimum=0, error=GeometryError)
    if region is not None and not isinstance(region, str):
        raise InputError(f"The 'region' parameter of read_shape must be text. Got {shorten(region)} instead.")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        with guarded(path.name, f"a file of the format {path.suffix.lstrip('.').upper()}"), np.errstate(all="ignore"):
            return _from_file(path, symbols, tolerance, region)
    return _from_object(source, symbols, bounds, tolerance, region, origin, cells)


def _two(symbols: tuple[sp.Symbol, ...], what: str) -> tuple[sp.Symbol, sp.Symbol]:
    if len(symbols) != 2:
        raise GeometryError(f"{what} has shapes in the plane; give two coordinates, as in coordinates=(x, y).")
    return symbols[0], symbols[1]


def _three(symbols: tuple[sp.Symbol, ...], what: str) -> tuple[sp.Symbol, ...]:
    if len(symbols) != 3:
        raise GeometryError(f"{what} has shapes in space; give three coordinates, as in coordinates=(x, y, z).")
    return symbols


def _from_file(path: Path, symbols: tuple[sp.Symbol, ...], tolerance: float | None, region: str | None) -> Region:
    kind, name = path.suffix.lower(), cut(path.name)
    if kind in (".geojson", ".json"):
        return from_geojson(load_geojson(path), _two(symbols, name), name, region)
    if kind == ".svg":
        return from_svg(path, _two(symbols, name), tolerance, region)
    if kind in MESHES:
        return from_mesh_file(path, symbols, region)
    if kind not in _SURFACES:
        raise InputError(
            f"The extension of a file with a shape must be one of {', '.join(EXTENSIONS)}. Got {shorten(path.name)}."
        )
    if region is not None:
        raise InputError(f"The 'region' parameter of read_shape has no meaning for {kind} files, which name nothing.")
    return from_surface_file(path, _three(symbols, name))


def _from_object(
    source: Any,
    symbols: tuple[sp.Symbol, ...],
    bounds: object,
    tolerance: float | None,
    region: str | None,
    origin: str,
    cells: int | None,
) -> Region:
    if isinstance(source, Mapping):
        return from_geojson(source, _two(symbols, "GeoJSON"), "The GeoJSON", region)
    if hasattr(source, "__geo_interface__"):
        return from_geojson(source.__geo_interface__, _two(symbols, "The object"), type(source).__name__, region)
    if hasattr(source, "vertices") and hasattr(source, "faces"):
        return from_triangles(source.vertices, source.faces, _three(symbols, "The mesh"), type(source).__name__)
    if hasattr(source, "points") and hasattr(source, "cells"):
        return from_mesh(source, symbols, region, type(source).__name__)
    if isinstance(source, np.ndarray) and source.dtype == np.bool_:
        return from_mask(source, _two(symbols, "An array"), bounds, tolerance, origin)
    if callable(source) or isinstance(source, sp.Expr):
        return Implicit(symbols, source, bounds, cells)
    raise InputError(
        "The 'source' parameter of read_shape must be a path, GeoJSON, an array of booleans, a function, a formula, "
        f"or a shape of shapely, trimesh or meshio. Got {shorten(source)} instead."
    )
