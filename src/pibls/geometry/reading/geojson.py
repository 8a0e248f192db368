"""GeoJSON, and objects with a ``__geo_interface__`` (shapely, geopandas and others)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import as_reals, cut, shorten
from pibls.errors import FileFormatError
from pibls.geometry.base import Region
from pibls.geometry.reading.plane import NamedRing, make_shape
from pibls.geometry.reading.source import check_finite, check_known
from pibls.reading import parsed_json, read_string

_LARGEST = 30_000_000
_DEEPEST = 20


def from_geojson_file(path: Path, coordinates: tuple[sp.Symbol, ...], region: str | None) -> Region:
    """Return the polygons of a file; those of the features named ``region`` only, if given."""
    source = cut(path.name)
    return from_geojson(parsed_json(read_string(path, _LARGEST, "JSON"), source), coordinates, source, region)


def from_geojson(data: Any, coordinates: tuple[sp.Symbol, ...], source: str, region: str | None) -> Region:
    """Return the polygons of a GeoJSON value; those of the features named ``region`` only, if given."""
    features = list(_features(data, source, 0))
    if region is not None:
        check_known(region, (name for name, _, _ in features), source, "feature")
        features = [feature for feature in features if feature[0] == region]
    return make_shape(_rings(features, source), coordinates, source)


def _rings(features: list[tuple[str | None, str, list[Any]]], source: str) -> Iterator[NamedRing]:
    """Yield the rings of features one at a time: there may be more than a shape can have."""
    for _, title, polygons in features:
        for number, polygon in enumerate(polygons):
            for k, ring in enumerate(_list(polygon, source, f"polygon {number} of {title}")):
                role = "the outer ring" if k == 0 else f"hole {k - 1}"
                name = f"{role} of polygon {number}" + (f" of {title}" if len(features) > 1 else "")
                yield NamedRing(_ring(ring, source, name), name, k > 0)


def _features(data: Any, source: str, depth: int) -> Iterator[tuple[str | None, str, list[Any]]]:
    """Yield name, title and polygons of every geometry."""
    kind = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(kind, str) or depth > _DEEPEST:
        raise FileFormatError(f"{source} is no GeoJSON: objects need a 'type'. Got {shorten(data)} instead.")
    if kind == "FeatureCollection":
        for number, feature in enumerate(_list(data.get("features"), source, "features")):
            for name, _, polygons in _features(feature, source, depth + 1):
                yield name, f"feature {number}", polygons
    elif kind == "Feature":
        if data.get("geometry") is None:
            return
        properties = data.get("properties")
        found = properties.get("name") if isinstance(properties, Mapping) else None
        name = found if found is not None else data.get("id")
        for _, title, polygons in _features(data["geometry"], source, depth + 1):
            yield None if name is None else str(name), title, polygons
    elif kind == "GeometryCollection":
        for geometry in _list(data.get("geometries"), source, "geometries"):
            yield from _features(geometry, source, depth + 1)
    elif kind in ("Polygon", "MultiPolygon"):
        found = _list(data.get("coordinates"), source, "coordinates")
        yield None, "the geometry", found if kind == "MultiPolygon" else [found] if found else []
    else:
        raise FileFormatError(
            f"{source} has a {cut(kind)}, which has no inside. Give polygons or multipolygons; close lines to rings."
        )


def _list(value: Any, source: str, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise FileFormatError(f"{source}: {what} must be a list. Got {shorten(value)} instead.")
    return list(value)


def _ring(value: Any, source: str, title: str) -> Any:
    positions = _list(value, source, title)
    try:
        flat = as_reals([list(position)[:2] for position in positions])
    except TypeError:
        flat = None
    if flat is None or flat.ndim != 2 or flat.shape[1] != 2:
        raise FileFormatError(
            f"{source}: {title} must be a list of positions [x, y] of numbers. Got {shorten(value)} instead."
        )
    check_finite(flat, source, f"position {{}} of {title}")
    if len(flat) < 4 or not np.array_equal(flat[0], flat[-1]):
        raise FileFormatError(
            f"{source}: {title} is not closed: it must have four or more positions, the first repeated at the end. It "
            f"goes from {flat[0].tolist()} to {flat[-1].tolist()}."
            if len(flat)
            else f"{source}: {title} has no positions."
        )
    return flat[:-1]
