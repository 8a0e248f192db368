"""Checks of files with shapes, and how errors name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, cut, shorten
from pibls.errors import FileFormatError, GeometryError, MissingDependencyError, PiblsError


def check_known(region: str, names: Iterable[str | None], source: str, what: str) -> None:
    """Refuse a name that nothing in a file has."""
    known = list(dict.fromkeys(name for name in names if name is not None))
    if region not in known:
        listed = ", ".join(map(cut, known[:10])) or "none"
        raise FileFormatError(f"{source} has no {what} named {shorten(region)}. Names in it: {listed}.")


def check_finite(points: FloatArray, source: str, what: str) -> None:
    """Refuse points with coordinates that are no finite numbers."""
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(bad):
        raise FileFormatError(f"{source}: {what.format(bad[0])} is not finite, {points[bad[0]].tolist()}. Remove it.")


@contextmanager
def named(source: str) -> Iterator[None]:
    """Have errors about a shape say where it came from."""
    try:
        yield
    except GeometryError as error:
        raise GeometryError(f"{source}: {error}") from error


@contextmanager
def guarded(name: str, what: str) -> Iterator[None]:
    """Turn whatever a reader of a format raises on a damaged file into an error that says which file."""
    try:
        yield
    except PiblsError:
        raise
    except (Exception, SystemExit) as error:
        detail = f"{type(error).__name__}: {shorten(str(error))}"
        raise FileFormatError(
            f"{cut(name)} cannot be read as {what} ({detail}). It is damaged or cut short, or has another format."
        ) from error


def imported(package: str, what: str) -> Any:
    """Return a package that reads some kind of file, or say that it has to be installed."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingDependencyError(
            f"Reading {what} needs the package {package}, which is not installed. "
            "Install it with pip install 'pibls[shapes]'."
        ) from None


def check_dimension(found: int, coordinates: tuple[sp.Symbol, ...], source: str) -> tuple[sp.Symbol, ...]:
    """Return as many coordinates as a source has, or refuse them."""
    if len(coordinates) == found:
        return coordinates
    place = {2: "the plane; give two coordinates, as in coordinates=(x, y)"}
    place[3] = "space; give three coordinates, as in coordinates=(x, y, z)"
    raise GeometryError(f"{source} in {place[found]}.")
