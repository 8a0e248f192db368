"""Shapes where a function is negative, as signed distance functions say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, IntArray, as_reals, check_integer, refusal, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Region
from pibls.geometry.boxtree import bundled
from pibls.geometry.description import Argument, Arguments, Kind, check_coordinates
from pibls.geometry.patch import FieldState, Located, Patch, SurfaceRule, called, extent
from pibls.geometry.sampling import on_simplices, picked_simplices
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.symbols import Data
from pibls.quadrature.roots import onto_zeros
from pibls.quadrature.rules import gauss, side, tensor

_CELLS = {2: 96, 3: 24}
_MOST_CELLS = {2: 1000, 3: 100}
_STEP = 1e-6
_BUNDLE = 32
_FLUX = 20000
_NEWTON = 8
_SAME = 1e-6


def check_bounds(bounds: object, dimension: int, owner: str) -> FloatArray:
    """Return the limits of each coordinate, lower below upper, or refuse them."""
    found = as_reals(bounds)
    if found is None or found.shape != (dimension, 2) or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
        example = ", ".join(["(0, 1)"] * dimension)
        raise GeometryError(
            f"The 'bounds' parameter of {owner} must be {dimension} pairs (lower, upper) of numbers, as in "
            f"({example}). Got {shorten(bounds)} instead."
        )
    return found


@dataclass(frozen=True)
class _LevelField(FieldState):
    """A function of points and its gradient."""

    function: sp.Expr | Callable[[FloatArray], object]
    coordinates: tuple[sp.Symbol, ...]
    step: float

    @cached_property
    def _compiled(self) -> Function:
        return compile_function(self.function, self.coordinates)

    @cached_property
    def _slopes(self) -> list[Function]:
        slopes: list[sp.Expr] = [self.function.diff(s) for s in self.coordinates]  # type: ignore[union-attr]
        return [compile_function(slope, self.coordinates) for slope in slopes]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the values at points, or refuse those of a user's function."""
        if isinstance(self.function, sp.Expr):
            return self._compiled.where_real(X)
        rule = f"The function of Implicit gets an (n, {X.shape[1]}) array"
        remedy = "Write it with NumPy on columns: lambda X: np.hypot(*X.T) - 1."
        values = called(lambda given: as_reals(self.function(given)), X, rule, remedy)
        if values is None or values.shape != (len(X),) or not np.isfinite(values).all():
            raise GeometryError(
                f"{rule} and must return n finite numbers, negative inside. Got {shorten(values)} for {len(X)} points."
            )
        return values  # type: ignore[no-any-return]

    def gradient(self, X: FloatArray) -> FloatArray:
        """Return the gradients: of expressions exactly, of functions and data by differences."""
        if isinstance(self.function, sp.Expr) and not self.function.has(Data):
            return np.stack([slope.where_real(X) for slope in self._slopes], axis=1)
        steps = self.step * np.eye(X.shape[1])
        return np.stack([(self(X + step) - self(X - step)) / (2 * self.step) for step in steps], axis=1)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return unit vectors along the gradients."""
        slopes = self.gradient(X)
        sizes = np.linalg.norm(slopes, axis=1, keepdims=True)
        return np.asarray(slopes / np.where(sizes > 0.0, sizes, 1.0))

    def distance(self, X: FloatArray) -> FloatArray:
        """Return the distance from the zero set to first order, negative inside; functions are taken at their word."""
        values = self(X)
        if not isinstance(self.function, sp.Expr):
            return values
        size = np.linalg.norm(self.gradient(X), axis=1)
        return np.asarray(values / np.where(size > 0.0, size, 1.0))

    def projected(self, X: FloatArray) -> FloatArray:
        """Return points of the zero set near points close to it, by Newton's method along the gradient."""
        return onto_zeros(self, self.gradient, X, _NEWTON)


@dataclass(frozen=True, eq=False)
class _ZeroPatch(Patch):
    """Some simplices near a zero set, projected onto it."""

    field: _LevelField
    corners: FloatArray  # (n, d, d): vertices of edges in the plane, of triangles in space

    @property
    def parameters(self) -> int:
        return int(self.corners.shape[2]) - 1

    @cached_property
    def _sizes(self) -> FloatArray:
        """The length or area of each simplex, projected."""
        local, item, weights = self._rule(3)
        return np.asarray(self._stretch(local, item).reshape(-1, len(weights)) @ weights)

    def _rule(self, m: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return Gauss points of every simplex, and its number with each; and weights for one of them."""
        nodes, weights = tensor(*[gauss(m)] * self.parameters)
        count = len(self.corners)
        return np.tile(nodes, (count, 1)), np.repeat(np.arange(count), len(nodes)), weights

    @property
    def measure(self) -> float:
        return float(self._sizes.sum())

    def _placed(self, local: FloatArray, item: IntArray) -> FloatArray:
        """Return points of simplices, projected."""
        return self.field.projected(on_simplices(self.corners[item], local))

    def _stretch(self, local: FloatArray, item: IntArray) -> FloatArray:
        """Return how much larger the projected image is than the cube, by differences."""
        step = 1e-4
        inner = np.clip(local, step, 1 - step)
        slopes = []
        for shift in step * np.eye(self.parameters):
            ahead, behind = (self._placed(inner + way * shift, item) for way in (1.0, -1.0))
            slopes.append((ahead - behind) / (2 * step))
        return np.asarray(
            np.linalg.norm(slopes[0] if self.parameters == 1 else np.cross(slopes[0], slopes[-1]), axis=1)
        )

    def at(self, U: FloatArray) -> Located:
        item, local = picked_simplices(self._sizes, U)
        points = self._placed(local, item)
        return points, self.field.normals(points), None

    @cached_property
    def bounds(self) -> FloatArray:
        """The box around the simplices, wider by a side of one of them: they are projected."""
        margin = float(np.linalg.norm(self.corners[:, 0] - self.corners[:, 1], axis=1).max())
        return extent(self.corners) + margin * np.array([-1.0, 1.0])

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        low, high = self.bounds.T
        near = ((low <= X) & (high >= X)).all(axis=1)
        near[near] = np.abs(self.field.distance(X[near])) <= tolerance
        return np.asarray(near)

    def normals(self, X: FloatArray) -> FloatArray:
        return self.field.normals(X)

    def quadrature(self, n: int) -> SurfaceRule:
        """Return Gauss points on every simplex, projected, about n in all."""
        local, item, weights = self._rule(max(3, side(n / len(self.corners), self.parameters)))
        points = self._placed(local, item)
        return points, self.field.normals(points), np.tile(weights, len(self.corners)) * self._stretch(local, item)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Implicit(Region):
    """The region where a function is negative, within bounds outside of which it is positive.

    Parameters
    ----------
    coordinates : tuple of two or three symbols
    function : sympy expression or callable
        An expression of the coordinates; or a function of an (n, d) array that returns n numbers, about the distance
        from the boundary, negative inside. It must be smooth near the boundary: edges come out rounded.
    bounds : pairs of numbers
        The lowest and highest value of each coordinate; the function must be positive there.
    cells : int, optional
        Number of cells along each coordinate to find the boundary with: smaller details can be missed.
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
    def _field(self) -> _LevelField:
        sizes = [high - low for low, high in self.limits]
        return _LevelField(self.function, self.coordinates, _STEP * min(sizes))

    @cached_property
    def _simplices(self) -> FloatArray:
        limits = np.array(self.limits)
        corners = _zero_set(self._field, limits, self.cells)
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
        margin = 0.1 * np.diff(limits) / self.cells * [-1.0, 1.0]
        return np.clip(extent(self._simplices) + margin, limits[:, :1], limits[:, 1:])

    @cached_property
    def measure(self) -> float:
        """Area or volume, by the flux of x/d through the boundary."""
        return self._measured_by_flux(_FLUX)

    @property
    def condition(self) -> sp.Basic:
        """Where the function is negative."""
        if not isinstance(self.function, sp.Expr):
            raise GeometryError("An Implicit is a region only if it is given by an expression, not a function.")
        return self.function < 0

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the zero set to first order, negative outside; outside of the bounds by them."""
        low, high = np.array(self.limits).T
        within = np.clip(X, low, high)
        beyond = np.linalg.norm(X - within, axis=1)
        return np.asarray(np.where(beyond > 0.0, -beyond, -self._field.distance(within)))

    @property
    def _patches(self) -> Iterable[Patch]:
        corners = self._simplices
        bundles = _curves(corners) if self.dimension == 2 else bundled(corners.mean(axis=1), _BUNDLE)
        return (_ZeroPatch(self._field, corners[own]) for own in bundles)


def _curves(edges: FloatArray) -> list[IntArray]:
    """Return the numbers of the edges of each closed curve, in order."""
    lengths = np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1)
    gaps = np.linalg.norm(edges[1:, 0] - edges[:-1, 1], axis=1) > 1e-3 * lengths.max()
    return np.split(np.arange(len(edges)), np.flatnonzero(gaps) + 1)


def _zero_set(function: Callable[[FloatArray], FloatArray], limits: FloatArray, cells: int) -> FloatArray:
    """Return the simplices on which the linear interpolant of a function is zero, shape (n, d, d).

    Every cell is cut into simplices around its diagonal, so that neighbours agree on the side they share.

    >>> edges = _zero_set(lambda X: np.hypot(*X.T) - 1, np.array([[-2.0, 2.0], [-2.0, 2.0]]), 40)
    >>> round(float(np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1).sum()), 1)
    6.3
    """
    d = len(limits)
    axes = [np.linspace(low, high, cells + 1) for low, high in limits]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = function(grid)
    shape = (cells + 1,) * d
    edge = np.zeros(shape, dtype=np.bool_)
    for axis in range(d):
        for end in (0, -1):
            edge[(slice(None),) * axis + (end,)] = True
    if not (values < 0.0).any() or (values[edge.ravel()] <= 0.0).any():
        problem = "nowhere negative" if not (values < 0.0).any() else "not positive all along the bounds"
        raise GeometryError(
            f"The function of Implicit must be negative inside and positive on the bounds. It is {problem}, seen on "
            f"{cells} cells. Check its sign, widen the bounds, or give a larger number of 'cells'."
        )
    values = np.where(values == 0.0, np.finfo(np.float64).tiny, values)
    strides = np.array([(cells + 1) ** (d - 1 - axis) for axis in range(d)])
    corner = np.stack(np.meshgrid(*[np.arange(cells)] * d, indexing="ij"), axis=-1).reshape(-1, d) @ strides
    # Only cells where the sign changes are cut.
    offsets = np.stack(np.meshgrid(*[[0, 1]] * d, indexing="ij"), axis=-1).reshape(-1, d) @ strides
    signs = values[corner[:, None] + offsets] < 0.0
    corner = corner[signs.any(axis=1) & ~signs.all(axis=1)]
    found = []
    for order in permutations(range(d)):
        nodes = np.stack([corner + int(step) for step in np.cumsum([0, *strides[list(order)]])], axis=1)
        found += _cut(nodes, grid, values)
    corners = np.concatenate(found)
    return corners if d == 3 else _chained(corners, float(np.diff(limits).max()) / cells)


def _chained(edges: FloatArray, step: float) -> FloatArray:
    """Return edges one after another along the closed curves that they make."""
    flat = edges.reshape(-1, 2)
    _, ids = np.unique(np.round(flat / (_SAME * step)), axis=0, return_inverse=True)
    ends = ids.reshape(-1, 2)
    beside: dict[int, list[int]] = {}
    for k in np.flatnonzero(ends[:, 0] != ends[:, 1]).tolist():
        for end in ends[k].tolist():
            beside.setdefault(end, []).append(k)
    ordered, used = [], np.zeros(len(edges), dtype=np.bool_)
    for first in range(len(edges)):
        if used[first] or ends[first, 0] == ends[first, 1]:
            continue
        edge, at = first, int(ends[first, 0])
        while not used[edge]:
            used[edge] = True
            forward = int(ends[edge, 0]) == at
            ordered.append(edges[edge] if forward else edges[edge, ::-1])
            at = int(ends[edge, 1 if forward else 0])
            edge = next((k for k in beside[at] if not used[k]), edge)
    return np.array(ordered)


def _cut(nodes: IntArray, grid: FloatArray, values: FloatArray) -> list[FloatArray]:
    """Return where simplices given by their nodes are cut, one row of vertices per piece."""
    d = grid.shape[1]
    inside = values[nodes] < 0.0
    # Nodes inside first: then only their number matters.
    nodes = np.take_along_axis(nodes, np.argsort(~inside, axis=1, kind="stable"), axis=1)
    number = inside.sum(axis=1)
    found = []
    for count in range(1, d + 1):
        own = nodes[number == count]
        crossings = [[_crossing(own[:, i], own[:, j], grid, values) for j in range(count, d + 1)] for i in range(count)]
        if count in (1, d):
            found.append(np.stack([point for row in crossings for point in row], axis=1))
        else:  # two and two nodes in space: a quadrilateral
            (a, b), (c, e) = crossings
            found += [np.stack([a, b, e], axis=1), np.stack([a, e, c], axis=1)]
    return found


def _crossing(one: IntArray, two: IntArray, grid: FloatArray, values: FloatArray) -> FloatArray:
    share = values[one] / (values[one] - values[two])
    return np.asarray(grid[one] + share[:, None] * (grid[two] - grid[one]))
