"""Which part of a domain a picture shows, and the points to evaluate there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, as_reals, check_number, refusal, shorten
from pibls.errors import InputError, ProblemError
from pibls.problem.domain import DomainLike
from pibls.quadrature.roots import CLOSE, narrowed
from pibls.report.wording import lettered
from pibls.solution.celled import CellNetwork

FRAMES = 4
LINES = 5


@dataclass(frozen=True, eq=False)
class View:
    """A line or plane through a domain with a regular grid on it."""

    domain: DomainLike
    axes: tuple[int, ...]  # numbers of the one or two coordinates that vary, horizontal first
    fixed: Mapping[int, float]  # values of the other coordinates, by number
    n: int  # grid points along each varying coordinate

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the varying coordinates."""
        return tuple(self.domain.coordinates[axis].name for axis in self.axes)

    @property
    def place(self) -> str:
        """The fixed coordinates in words, such as ``z = 0.5``."""
        return ", ".join(self.fixings)

    @property
    def fixings(self) -> list[str]:
        """Each fixed coordinate in words."""
        named = ((lettered(self.domain.coordinates[axis].name), value) for axis, value in self.fixed.items())
        return [f"{name} = {value:.4g}" for name, value in named]

    @property
    def in_space(self) -> bool:
        """Whether lengths along all varying coordinates can be compared."""
        return all(self.domain.coordinates[axis] != self.domain.time for axis in self.axes)

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each varying coordinate."""
        return tuple((float(low), float(high)) for low, high in self.domain.bounds[list(self.axes)])

    @cached_property
    def grids(self) -> tuple[FloatArray, ...]:
        """Grid values along each varying coordinate; exactly those of the bounds at both ends."""
        return tuple(np.linspace(low, high, self.n) for low, high in self.limits)

    @cached_property
    def points(self) -> FloatArray:
        """All points of the grid, rows of the picture one after the other."""
        return self.lift(crossings(self.grids))

    @cached_property
    def inside(self) -> BoolArray:
        """Which points of the grid are in the domain."""
        return np.asarray(self.domain.contains(self.points), dtype=np.bool_)

    def lift(self, positions: FloatArray) -> FloatArray:
        """Return positions in the picture as points of the domain's coordinates."""
        result = np.empty((len(positions), len(self.domain.coordinates)))
        result[:, list(self.axes)] = positions
        for axis, value in self.fixed.items():
            result[:, axis] = value
        return result

    def evaluate(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a function on the grid, with NaN outside the domain: a row of n, or an (n, n) picture."""
        return self.filled(tolerant(function, self.points[self.inside]))

    def filled(self, inner: FloatArray) -> FloatArray:
        """Return values at the points in the domain on the whole grid."""
        values = np.full(len(self.points), np.nan)
        values[self.inside] = inner
        return values.reshape((self.n,) * len(self.names))

    @cached_property
    def outline(self) -> list[FloatArray]:
        """Closed curves around the section of the domain by a plane, exact at every crossing of a grid line.

        The crossings are found by bisection, so that the curves are smooth whatever the grid; only corners between
        grid lines are cut, by at most a cell. Holes run the other way round. A domain that fills the picture has
        none.
        """
        mask = self.inside.reshape(self.n, self.n)
        if mask.all():
            return []
        # One cell more all around, so that curves close.
        return self._curves(np.pad(mask, 1), 1, self.domain.contains)

    def seams(self, kinds: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
        """Return the curves in a plane across which a function of points that has few values changes."""
        from scipy.ndimage import distance_transform_edt

        values = self.evaluate(kinds)
        # Outside as nearby inside: the edge of the domain is no seam.
        values = values[tuple(distance_transform_edt(np.isnan(values), return_indices=True)[1])]
        found = []
        for kind in np.unique(values)[1:]:
            found += self._curves(values >= kind, 0, partial(lambda kind, X: kinds(X) >= kind, kind))
        return found

    def _curves(self, mask: BoolArray, margin: int, holds: Callable[[FloatArray], Any]) -> list[FloatArray]:
        """Return the curves around the True points of a grid, moved by bisection to where these end."""
        from contourpy import contour_generator

        steps = np.array([grid[1] - grid[0] for grid in self.grids])
        origin = np.array([grid[0] for grid in self.grids]) - margin * steps
        found = []
        for curve in map(np.asarray, contour_generator(z=mask.astype(np.float64)).lines(0.5)):
            low, high = np.floor(curve), np.ceil(curve)
            low_inside = mask[low[:, 1].astype(int), low[:, 0].astype(int)]
            inner, outer = (np.where(low_inside[:, None], a, b) for a, b in ((low, high), (high, low)))
            start, way = origin + inner * steps, (outer - inner) * steps

            def kept(shares: FloatArray, start: FloatArray = start, way: FloatArray = way) -> BoolArray:
                places = (start[:, None] + shares[..., None] * way[:, None]).reshape(-1, 2)
                return np.asarray(holds(self.lift(places))).reshape(shares.shape)

            share, _ = narrowed(kept, np.zeros(len(start)), np.ones(len(start)), CLOSE)
            found.append(start + share[:, None] * way)
        return found


def crossings(grids: Sequence[FloatArray]) -> FloatArray:
    """Return the points at which the lines of a grid cross, those of the first coordinate one after the other."""
    return np.stack([grid.ravel() for grid in np.meshgrid(*grids)], axis=1)


@dataclass(frozen=True, eq=False)
class CloudView(View):
    """The points of a point cloud in one or two dimensions: there is nothing between them to show."""

    outline = ()  # type: ignore[assignment]

    @property
    def in_space(self) -> bool:
        """Whether lengths along all coordinates can be compared."""
        return True

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each coordinate."""
        return tuple((float(grid.min()), float(grid.max())) for grid in self.grids)

    @cached_property
    def points(self) -> FloatArray:
        """The points from left to right."""
        assert self.domain.atoms is not None
        return self.domain.atoms[np.lexsort(self.domain.atoms.T[::-1])]

    @cached_property
    def grids(self) -> tuple[FloatArray, ...]:
        """The values of each coordinate."""
        return tuple(self.points.T)

    def evaluate(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a function at the points."""
        return tolerant(function, self.points)


@dataclass(frozen=True, eq=False)
class CutView(View):
    """A straight line through space from one point to another, with points at equal distances."""

    ends: FloatArray  # (2, d): both ends, in all coordinates

    @property
    def names(self) -> tuple[str, ...]:
        """The distance, as an axis is named."""
        start, end = (_point(place) for place in self.ends[:, : len(self.domain.space)])
        return (f"distance from {start} towards {end}",)

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """The distances at both ends."""
        return ((0.0, float(np.linalg.norm(self.ends[1] - self.ends[0]))),)

    def lift(self, positions: FloatArray) -> FloatArray:
        """Return distances, one row each, as points of the domain's coordinates."""
        return np.asarray(self.ends[0] + positions / self.limits[0][1] * (self.ends[1] - self.ends[0]))


def _point(place: FloatArray) -> str:
    return f"({', '.join(f'{value:.4g}' for value in place)})"


def cut_views(domain: DomainLike, along: Any, at: object, n: int | None) -> tuple[CutView, ...]:
    """Return views along a line between two points of space: one, or one per time."""
    count = len(domain.space)
    ends = as_reals(along)
    if ends is None or ends.shape != (2, count) or not np.isfinite(ends).all() or (ends[0] == ends[1]).all():
        rule = f"be two different points of {count} numbers each, for {', '.join(s.name for s in domain.space)}"
        raise refusal("along", "plot", rule, along, "Write along=((x0, y0), (x1, y1)).")
    chosen = _chosen(domain, at, "plot")
    times: list[dict[int, float]] = [{}]
    if domain.time is not None:
        times = [{count: value} for value in chosen.pop(count, _spread(domain.bounds[-1], LINES))]
    if chosen or domain.atoms is not None:
        raise InputError(
            f"The 'along' parameter of plot says where in space values are wanted, so that 'at' may fix the time "
            f"alone, and there is nothing between the points of a cloud. Got at={shorten(at)} on {shorten(domain)}."
        )
    found = []
    for time in times:
        full = np.hstack([ends, np.tile(list(time.values()), (2, 1))])
        found.append(CutView(domain, (), time, 400 if n is None else n, full))
    if not any(view.inside.any() for view in found):
        raise InputError(
            f"The line that 'along' gives to plot has no points in {shorten(domain)}. It goes from "
            f"{_point(ends[0])} to {_point(ends[1])}; the bounds are {domain.bounds.tolist()}."
        )
    return tuple(found)


def _cloud_view(domain: DomainLike, at: object, owner: str) -> CloudView:
    axes = tuple(range(len(domain.coordinates)))
    if at is not None or len(axes) > 2:
        raise InputError(
            f"{owner} cannot slice a point cloud: it shows all points of one in 1 or 2 dimensions. "
            f"Got one in {len(axes)} dimensions and at={shorten(at)}. Evaluate the solution at points of your own "
            "instead."
        )
    return CloudView(domain, axes, {}, 0)


def tolerant(function: Callable[[FloatArray], FloatArray], points: FloatArray) -> FloatArray:
    """Evaluate, with NaN at the few points where an expression is not finite (a corner, an axis of symmetry)."""
    try:
        return function(points)
    except ProblemError:
        if len(points) == 1:
            return np.array([np.nan])
        half = len(points) // 2
        values = np.concatenate([tolerant(function, points[:half]), tolerant(function, points[half:])])
        if np.isnan(values).all():
            raise
        return values


def choose_views(domain: DomainLike, at: object, n: int | None, owner: str) -> tuple[View, ...]:
    """Return the views that show a domain best, given the coordinates that the user fixed.

    One view, or several along one coordinate: those the user listed, or a few times of a problem in two or more space
    dimensions.

    >>> from pibls.geometry import Box, TimeInterval
    >>> x, y, z, t = sp.symbols("x y z t")
    >>> box = Box((x, 0, 1), (y, 0, 1), (z, 0, 2))
    >>> [view.place for view in choose_views(box, None, None, "plot")]
    ['z = 1']
    >>> [view.place for view in choose_views(box * TimeInterval(t, 0, 3), {"x": 0.25}, None, "plot")]
    ['x = 0.25, t = 0', 'x = 0.25, t = 1', 'x = 0.25, t = 2', 'x = 0.25, t = 3']
    """
    if domain.atoms is not None:
        return (_cloud_view(domain, at, owner),)
    chosen = _chosen(domain, at, owner)
    coordinates = list(domain.coordinates)
    space = [coordinates.index(symbol) for symbol in domain.space if coordinates.index(symbol) not in chosen]
    time = None if domain.time is None else coordinates.index(domain.time)
    free, rest = space[:2], space[2:]
    if time is not None and time not in chosen:
        if len(free) < 2:
            free.append(time)
        else:
            chosen[time] = _spread(domain.bounds[time], FRAMES)
    if not free:
        raise InputError(
            f"The 'at' parameter of {owner} fixes every coordinate {domain.coordinates}, so nothing is left to draw. "
            "Leave one out, or call the solution for its value at a point."
        )
    for axis in rest:
        chosen[axis] = [float(domain.bounds[axis].mean())]
    size = (400 if len(free) == 1 else 200) if n is None else n
    places: list[dict[int, float]] = [{}]
    for axis in sorted(chosen):
        places = [{**place, axis: value} for place in places for value in chosen[axis]]
    views = tuple(View(domain, tuple(free), place, size) for place in places)
    for view in views:
        if not view.inside.any():
            raise InputError(
                f"The slice {view.place or 'of the whole domain'} of {shorten(domain)} has no points in it. "
                f"Choose another with at={{...}} within the bounds {domain.bounds.tolist()}."
            )
    return views


def time_slices(view: View) -> tuple[View, ...]:
    """Return lines in space at a few times across a picture of space and time."""
    space, time = view.axes
    times = _spread(view.domain.bounds[time], LINES)
    return tuple(View(view.domain, (space,), {**view.fixed, time: value}, 2 * view.n) for value in times)


def varying(views: Sequence[View]) -> str:
    """Return the name of the coordinate whose fixed value differs between views."""
    first, second = views[:2]
    axis = next(axis for axis, value in first.fixed.items() if second.fixed[axis] != value)
    return str(first.domain.coordinates[axis].name)


def told_apart(views: Sequence[View]) -> tuple[str, list[str]]:
    """Return in words the coordinates that are fixed alike in all views, and the other fixed ones of each."""
    alike = [words for words in views[0].fixings if all(words in view.fixings for view in views)]
    return ", ".join(alike), [", ".join(w for w in view.fixings if w not in alike) for view in views]


def _spread(bounds: FloatArray, count: int) -> list[float]:
    return [float(value) for value in np.linspace(bounds[0], bounds[1], count)]


def _chosen(domain: DomainLike, at: object, owner: str) -> dict[int, list[float]]:
    """Return the values the user fixed, by number of the coordinate."""
    if not isinstance(at, Mapping | None):
        raise refusal(
            "at", owner, f"be a mapping from coordinates to values, such as {{'{domain.coordinates[-1]}': 0.5}}", at
        )
    names = [symbol.name for symbol in domain.coordinates]
    chosen: dict[int, list[float]] = {}
    for key, value in (at or {}).items():
        name = key.name if isinstance(key, sp.Symbol) else key
        if name not in names:
            raise InputError(f"The 'at' parameter of {owner} may fix {', '.join(names)}. Got {shorten(key)} instead.")
        axis = names.index(name)
        chosen[axis] = _levels(name, value, domain.bounds[axis], owner)
    if sum(len(values) > 1 for values in chosen.values()) > 1:
        raise InputError(
            f"The 'at' parameter of {owner} may list several values for one coordinate only. Got {shorten(at)} "
            "instead. Fix the others at one value each."
        )
    return chosen


def _levels(name: str, value: Any, bounds: FloatArray, owner: str) -> list[float]:
    several = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    several = several and not isinstance(value, str | bytes)
    items = list(value) if several else [value]
    low, high = (float(bound) for bound in bounds)
    remedy = f"The domain goes from {low:g} to {high:g} there."
    if not items:
        raise InputError(f"The 'at' parameter of {owner} has no value for {name}. {remedy}")
    key = f"at[{name!r}]"
    return sorted({check_number(key, item, owner, minimum=low, maximum=high, remedy=remedy) for item in items})


def cell_walls(network: CellNetwork, view: View) -> FloatArray:
    """Return where cells meet in a view: positions (k,) along a line, segments (k, 2, 2) from end to end in a plane.

    Each is where one box was halved, so that none is drawn twice.
    """
    bounds = np.asarray(view.domain.bounds, dtype=np.float64)
    boxes = network.boxes(bounds[: network.dimension])
    # Cells in space last all the time.
    lasting = np.broadcast_to(bounds[network.dimension :], (len(boxes), len(bounds) - network.dimension, 2))
    boxes = np.concatenate([boxes, lasting], axis=1)
    axes = view.axes
    shown = np.isin(network.tree[:, 0], axes)
    for axis, value in view.fixed.items():
        low, high = boxes[:, axis].T
        # A point on a wall belongs to the cell below it, as in the network.
        shown &= ((low < value) | (low == bounds[axis, 0])) & ((value <= high) | (high == bounds[axis, 1]))
    cuts, across = network.cuts[shown], network.tree[shown, 0]
    if len(axes) == 1:
        return np.sort(cuts)
    segments = boxes[shown][:, list(axes)]
    segments[np.arange(len(cuts)), (across == axes[1]).astype(int)] = cuts[:, None]
    return np.asarray(segments.transpose(0, 2, 1))
