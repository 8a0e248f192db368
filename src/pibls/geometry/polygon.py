"""Simple polygons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy.typing as npt
import sympy as sp

from pibls.checks import check_points
from pibls.errors import GeometryError, PiblsError
from pibls.geometry.base import Domain, check_coordinates
from pibls.geometry.description import Argument, Arguments, Kind
from pibls.geometry.outline import Outline, Ring
from pibls.geometry.part import Part


@dataclass(frozen=True, init=False, repr=False)
class Polygon(Outline):
    """A simple polygon, its vertices in order (either way round), the first not repeated at the end.

    Its parts are ``edge0`` from the first vertex to the second, ``edge1``, ...

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> bracket = Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    >>> bracket.measure
    3.0
    >>> (bracket.corners / float(sp.pi)).round(3)
    array([0.5, 0.5, 0.5, 1.5, 0.5, 0.5])
    >>> bracket.edge2.measure
    1.0
    """

    arguments: ClassVar[Arguments] = (Argument("vertices", Kind.POINTS, "vertices = [[0, 0], [1, 0], [0, 1]]"),)
    _title: ClassVar[str] = "The 'vertices' parameter of Polygon"
    _rule: ClassVar[str] = f"{_title} must describe a simple polygon"

    def __init__(self, coordinates: tuple[sp.Symbol, ...], vertices: npt.ArrayLike) -> None:
        symbols = check_coordinates(coordinates, "Polygon", 2)
        try:
            corners = check_points("vertices", vertices, "Polygon", 2, error=GeometryError)
        except PiblsError:
            corners = check_points("vertices", _as_floats(vertices), "Polygon", 2, error=GeometryError)
        super().__init__(symbols, [corners])

    __repr__ = Domain.__repr__

    @property
    def vertices(self) -> Ring:
        """The corners, in order."""
        return self.rings[0]

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The edges."""
        return MappingProxyType({f"edge{i}": self._part(f"edge{i}", p) for i, p in enumerate(self._patches)})


def _as_floats(vertices: object) -> object:
    """Turn SymPy points and numbers into floats where possible; leave the rest to the check that follows."""
    try:
        return [[float(entry) for entry in vertex] for vertex in vertices]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return vertices
