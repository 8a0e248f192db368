"""Shapes where a function is negative, as signed distance functions say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, as_reals, check_integer, refusal, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Region, check_coordinates
from pibls.geometry.boxtree import bundled
from pibls.geometry.description import Argument, Arguments, Kind
from pibls.geometry.marching import zero_set
from pibls.geometry.patch import Patch
from pibls.geometry.slices import slices
from pibls.geometry.zeros import ImplicitPatch, LevelField

_CELLS = {2: 96, 3: 24}
_MOST_CELLS = {2: 1000, 3: 100}
_STEP = 1e-6
_BUNDLE = 32
_FLUX = 20000


def check_bounds(bounds: object, dimension: int, owner: str) -> FloatArray:
    """Return the limits of each coordinate, lower below upper, or refuse them.

    >>> check_bounds([(0, 1), (-1, 1)], 2, "Implicit").tolist()
    [[0.0, 1.0], [-1.0, 1.0]]
    """
    found = as_reals(bounds)
    if found is None or found.shape != (dimension, 2) or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
        example = ", ".join(["(0, 1)"] * dimension)
        raise GeometryError(
            f"The 'bounds' parameter of {owner} must be {dimension} pairs (lower, upper) of numbers, as in "
            f"({example}). Got {shorten(bounds)} instead."
        )
    return found


@dataclass(frozen=True, init=False, repr=False)
class Implicit(Region):
    """Where a function is negative, within bounds outside of which it is positive.

    Parameters
    ----------
    coordinates : tuple of two or three symbols
    function : sympy expression or callable
        An expression of the coordinates; or a function of an (n, d) array that returns n numbers, about the distance
        from the boundary, negative inside. It must be smooth near the boundary: edges come out rounded.
    bounds : pairs of numbers
        The lowest and highest value of each coordinate; the function must be positive there.
    cells : int, optional
        Into how many cells each coordinate is cut to find the boundary: what is smaller than a cell can be missed.
        96 in the plane and 24 in space unless given.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> ellipse = Implicit((x, y), x**2 / 4 + y**2 - 1, [(-3, 3), (-2, 2)])
    >>> round(ellipse.measure / np.pi, 6)
    2.0
    >>> ellipse.boundary.normals([[0, 1]])
    array([[0., 1.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    function: sp.Expr | Callable[[FloatArray], object]
    limits: tuple[tuple[float, float], ...]
    cells: int

    arguments: ClassVar[Arguments] = (
        Argument("function", Kind.FORMULA, 'function = "x**2 + 4*y**2 - 1"'),
        Argument("bounds", Kind.POINTS, "bounds = [[-2, 2], [-1, 1]]", attribute="limits"),
        Argument("cells", Kind.WHOLE),
    )

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, ...],
        function: sp.Expr | Callable[[FloatArray], object],
        bounds: object,
        cells: int | None = None,
    ) -> None:
        symbols = check_coordinates(coordinates, "Implicit")
        d = len(symbols)
        if d not in _CELLS:
            raise GeometryError(f"Implicit needs two or three coordinates. Got {symbols} instead.")
        if not isinstance(function, sp.Expr) and not callable(function):
            raise GeometryError(
                f"The 'function' parameter of Implicit must be an expression or a function of an (n, {d}) array. "
                f"Got {shorten(function)} instead."
            )
        if isinstance(function, sp.Expr) and not function.free_symbols <= set(symbols):
            raise refusal("function", "Implicit", f"depend on {symbols} only", function, error=GeometryError)
        limits = tuple((low, high) for low, high in check_bounds(bounds, d, "Implicit").tolist())
        most = _MOST_CELLS[d]
        wanted = _CELLS[d] if cells is None else cells
        number = check_integer("cells", wanted, "Implicit", minimum=4, maximum=most, error=GeometryError)
        self._set(coordinates=symbols, function=function, limits=limits, cells=number)
        self._simplices  # noqa: B018  a function without a zero set is refused at once

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or shorten(self.function, 40)
        return f"Implicit({self.coordinates}, {name}, {[list(pair) for pair in self.limits]})"

    @cached_property
    def _field(self) -> LevelField:
        sizes = [high - low for low, high in self.limits]
        return LevelField(self.function, self.coordinates, _STEP * min(sizes))

    @cached_property
    def _simplices(self) -> FloatArray:
        limits = np.array(self.limits)
        corners = zero_set(self._field, limits, self.cells)
        flat = corners.reshape(-1, len(limits))
        corners = self._field.projected(flat).reshape(corners.shape)
        step = (limits[:, 1] - limits[:, 0]) / self.cells
        if np.abs(corners.reshape(flat.shape) - flat).max() > 2 * float(np.linalg.norm(step)):
            raise GeometryError(
                f"The function {shorten(self.function)} of Implicit is not smooth where it is zero. Give one that is "
                "about the distance from the boundary, or a larger number of 'cells'."
            )
        sizes = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).min(axis=1)
        return np.asarray(corners[sizes > 1e-9 * float(step.min())])

    @cached_property
    def bounds(self) -> FloatArray:
        """The box around the zero set, a little wider than its simplices."""
        limits = np.array(self.limits)
        flat = self._simplices.reshape(-1, len(limits))
        margin = 0.1 * (limits[:, 1] - limits[:, 0]) / self.cells
        low, high = flat.min(axis=0) - margin, flat.max(axis=0) + margin
        return np.stack([np.maximum(low, limits[:, 0]), np.minimum(high, limits[:, 1])], axis=1)

    @cached_property
    def measure(self) -> float:
        """Area or volume, by the flux of x/d through the boundary."""
        points, normals, weights = self.boundary.quadrature(_FLUX)
        center = self.bounds.mean(axis=1)
        return float(((points - center) * normals).sum(axis=1) @ weights) / self.dimension

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the zero set to first order, negative outside; outside of the bounds by them."""
        low, high = np.array(self.limits).T
        within = np.clip(X, low, high)
        beyond = np.linalg.norm(X - within, axis=1)
        return np.asarray(np.where(beyond > 0.0, -beyond, -self._field.distance(within)))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return a rule with about ``n`` nodes: in the plane Gauss points on lines across, else a Sobol' sequence."""
        return slices(self, n, self.measure) if self.dimension == 2 else super().quadrature(n)

    @property
    def _patches(self) -> Iterable[Patch]:
        corners = self._simplices
        bundles = _curves(corners) if self.dimension == 2 else bundled(corners.mean(axis=1), _BUNDLE)
        return (ImplicitPatch(self._field, corners[own]) for own in bundles)


def _curves(edges: FloatArray) -> list[npt.NDArray[np.int64]]:
    """Return the numbers of the edges of each closed curve, in order."""
    lengths = np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1)
    gaps = np.linalg.norm(edges[1:, 0] - edges[:-1, 1], axis=1) > 1e-3 * lengths.max()
    return np.split(np.arange(len(edges)), np.flatnonzero(gaps) + 1)
