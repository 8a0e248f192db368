"""Overlays of maps and graphs: contours, arrows, streamlines, extremes, deformed shapes, cells and materials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.collections import LineCollection
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from matplotlib.tri import Triangulation

from pibls.checks import FloatArray
from pibls.report.colours import Scale
from pibls.report.drawing import INK, clip, extended, finish_map, is_to_scale
from pibls.report.options import Arrows, Deformation, Over
from pibls.report.quantities import Evaluator, PictureQuantity
from pibls.report.views import CloudView, View, crossings, tolerant
from pibls.solution.parameters import rounded

_ARROWS = 22  # along the longer side


def draw_over(axes: Any, view: View, values: FloatArray, quantity: PictureQuantity, over: Over) -> None:
    """Draw all overlays over a map of values, or those that a map of sizes may have."""
    sizes, style = quantity.magnitude, dict[str, Any]()
    if over.walls is not None:
        style = {"linewidths": 0.5, "colors": "w" if sizes else "k", "alpha": 0.45}
        _draw_curves(axes, view, over.walls(view), style)
    if isinstance(view, CloudView):
        return
    if over.kinds is not None:
        style = {"linewidths": 1.0, "colors": "w" if sizes else INK, "linestyles": (0, (4, 2))}
        _draw_curves(axes, view, view.seams(over.kinds), style)
    if sizes:
        return
    if over.levels is not None:
        _draw_contours(axes, view, values, over.levels)
    if over.arrows is not None:
        _draw_arrows(axes, view, over.arrows)
    if over.streamlines is not None:
        _draw_streamlines(axes, view, over.streamlines)
    if over.extremes:
        mark_extremes(axes, view, values, quantity)


def _draw_curves(axes: Any, view: View, curves: Iterable[FloatArray], style: dict[str, Any]) -> None:
    """Draw curves over a map, within its outline."""
    clip(axes.add_collection(LineCollection(list(curves), **style), autolim=False), axes, view)


def _halo() -> list[Any]:
    """Return a bright rim, so that dark lines and words are seen on dark colours."""
    return [patheffects.withStroke(linewidth=2.0, foreground="w", alpha=0.8)]


def _draw_contours(axes: Any, view: View, values: FloatArray, levels: Any) -> None:
    if isinstance(levels, int):
        # Not along an edge that is a level itself.
        least, most = float(np.nanmin(values)), float(np.nanmax(values))
        margin = 0.01 * (most - least)
        levels = [
            level
            for level in MaxNLocator(levels + 1, min_n_ticks=1).tick_values(least, most)
            if least + margin < level < most - margin
        ]
    lines = axes.contour(
        *view.grids, np.ma.masked_invalid(values), levels=levels, colors="k", linewidths=0.6, alpha=0.6
    )
    for words in axes.clabel(lines, fontsize=6.5, inline=True, inline_spacing=3, fmt="%.4g"):
        words.set_path_effects(_halo())


def _draw_arrows(axes: Any, view: View, arrows: Arrows) -> None:
    """Draw arrows on a coarse grid, as long as to leave the next its place."""
    (left, right), (low, high) = view.limits
    spacing = max(right - left, high - low) / _ARROWS if is_to_scale(view) else None
    steps = [spacing or (right - left) / _ARROWS, spacing or (high - low) / _ARROWS]
    grids = [np.arange(start + step / 2, end, step) for (start, end), step in zip(view.limits, steps, strict=True)]
    X = crossings(grids)
    u, v = _vectors(view, X, arrows)
    shown = np.isfinite(u + v)
    X, u, v = X[shown], u[shown], v[shown]
    longest = float(np.hypot(u, v).max(initial=0.0)) or 1.0
    style = {"pivot": "mid", "color": "k", "width": 0.7 / _ARROWS / 10, "units": "width"}
    if spacing is not None:
        style |= {"angles": "xy", "scale_units": "xy", "scale": longest / (1.3 * spacing)}
    axes.quiver(*X.T, u, v, **style).set_path_effects(_halo())


def _draw_streamlines(axes: Any, view: View, arrows: Arrows) -> None:
    across, along = (high - low for low, high in view.limits)
    # As close to each other on a long map as on a square one, which is less wide.
    density = (1.3 * math.sqrt(across / along), 1.3 * math.sqrt(along / across))
    u, v = (np.ma.masked_invalid(view.evaluate(function)) for function in arrows)
    drawn = axes.streamplot(
        *view.grids, u, v, color="k", linewidth=0.7, arrowsize=0.7, density=density if is_to_scale(view) else 1.2
    )
    drawn.lines.set_path_effects(_halo())
    clip(drawn.lines, axes, view)


def _vectors(view: View, places: FloatArray, arrows: Arrows) -> FloatArray:
    """Return both components at places, NaN outside the domain."""
    X = view.lift(places)
    inside = np.asarray(view.domain.contains(X), dtype=bool)
    found = np.full((2, len(X)), np.nan)
    for row, function in zip(found, arrows, strict=True):
        row[inside] = tolerant(function, X[inside])
    return found


def summit(view: View, values: FloatArray, function: Evaluator, sign: float) -> tuple[FloatArray, float]:
    """Return where a function is largest (sign 1) or smallest (sign −1) in a view, and its value there.

    The grid shows which of several it is; finer and finer grids around it say where.
    """
    best = int(np.nanargmax(sign * values))
    if isinstance(view, CloudView):
        return np.array([grid[best] for grid in view.grids]), float(values[best])
    place = crossings(view.grids)[best]
    value = float(values.ravel()[best])
    steps = np.array([grid[1] - grid[0] for grid in view.grids])
    around = crossings([np.linspace(-1.0, 1.0, 9)] * len(steps))
    for _ in range(6):
        near = place + around * steps
        X = view.lift(near)
        inside = np.asarray(view.domain.contains(X), dtype=bool)
        near, found = near[inside], tolerant(function, X[inside])
        k = int(np.nanargmax(sign * found))
        if sign * found[k] >= sign * value:
            place, value = near[k], float(found[k])
        steps = steps / 4
    return place, value


def mark_extremes(axes: Any, view: View, values: FloatArray, quantity: PictureQuantity) -> None:
    """Mark the largest and the smallest value of a map or a graph."""
    for sign, marker, words in ((1.0, "^", "max"), (-1.0, "v", "min")):
        place, value = summit(view, values, quantity.function, sign)
        told = f"{words} {_told(view, place, value, quantity.error)}"
        spot = place if len(place) == 2 else np.array([place[0], value])
        axes.plot(*spot, marker, color="k", markersize=6, markeredgecolor="w", clip_on=False, zorder=6)
        offset, sides = (_beside_on_map if len(place) == 2 else _beside_on_graph)(axes, spot, marker == "^")
        style = {"textcoords": "offset points", "fontsize": 8, "zorder": 6, "annotation_clip": False}
        axes.annotate(told, tuple(spot), offset, **style, **sides).set_path_effects(_halo())


def _told(view: View, place: FloatArray, value: float, error: Evaluator | None) -> str:
    """Return a value to four digits, with its estimated error if that shows in them."""
    short = f"{value:.4g}"
    found = 0.0 if error is None or isinstance(view, CloudView) else float(error(view.lift(place[None]))[0])
    return (
        short
        if found <= abs(value - float(short)) or f"{value + found:.4g}" == short
        else " ± ".join(rounded(value, found))
    )


def _beside_on_map(axes: Any, place: FloatArray, largest: bool) -> tuple[tuple[int, int], dict[str, str]]:
    """Return where words stand beside a mark on a map: on the side that has more room."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    across, along = (place[0] - left) / (right - left), (place[1] - low) / (high - low)
    rightwards = across < 0.5
    upwards = along < 0.85 if largest else along < 0.15
    sides = {"ha": "left" if rightwards else "right", "va": "bottom" if upwards else "top"}
    return (6 if rightwards else -6, 4 if upwards else -4), sides


def _beside_on_graph(axes: Any, place: FloatArray, largest: bool) -> tuple[tuple[int, int], dict[str, str]]:
    """Return where words stand beside a mark on a curve: above a largest value and below a smallest one."""
    axes.margins(y=0.16)
    left, right = axes.get_xlim()
    share = (place[0] - left) / (right - left)
    across = "left" if share < 0.1 else "right" if share > 0.9 else "center"
    return (0, 6 if largest else -6), {"ha": across, "va": "bottom" if largest else "top"}


@dataclass(frozen=True, eq=False)
class Moved:
    """A view of a body that is deformed: by how much, and its outline at rest and moved."""

    factor: float
    moves: list[FloatArray]
    rest: list[FloatArray]
    curves: list[FloatArray]

    @property
    def limits(self) -> FloatArray:
        """The bounds of a picture that shows both, (axes, 2)."""
        reach = np.concatenate([*self.rest, *self.curves])
        low, high = reach.min(axis=0), reach.max(axis=0)
        return np.stack([low - 0.03 * (high - low), high + 0.03 * (high - low)], axis=1)


def moved(view: View, by: Deformation) -> Moved:
    """Return how a view is deformed; without a factor, so that it is well seen."""
    found = [view.evaluate(by.by[axis]) for axis in view.axes]
    moves, largest = [extended(own) for own in found], float(np.nanmax(np.hypot(*found)))
    extent = max(high - low for low, high in view.limits)
    factor = by.scale if by.scale is not None else _round(0.08 * extent / largest if largest > 0.0 else 1.0)
    rest = view.outline or [_frame(view)]
    return Moved(
        factor, moves, rest, [own + factor * np.stack([_at(view, m, own) for m in moves], axis=1) for own in rest]
    )


def draw_deformed(axes: Any, view: View, values: FloatArray, scale: Scale, by: Deformation) -> Any:
    """Draw values on the deformed body, its outline, and that of the body at rest by dashes."""
    body = moved(view, by)
    across, along = (g + body.factor * m for g, m in zip(np.meshgrid(*view.grids), body.moves, strict=True))
    triangles = _triangles(view.n)
    colours = extended(values)
    kept = np.isfinite(colours.ravel()[triangles]).all(axis=1)
    mesh = Triangulation(across.ravel(), along.ravel(), triangles[kept])
    artist = axes.tripcolor(
        mesh, np.nan_to_num(colours.ravel()), norm=scale.norm, cmap=scale.colours, shading="gouraud"
    )
    for curve, own in zip(body.rest, body.curves, strict=True):
        axes.plot(*curve.T, color=INK, linewidth=0.7, dashes=(5, 3))
        axes.plot(*own.T, color=INK, linewidth=1.0)
    if view.outline:
        whole = Path.make_compound_path(*(Path(own, closed=True) for own in body.curves))
        artist.set_clip_path(whole, axes.transData)
    axes.set_xlim(*body.limits[0])
    axes.set_ylim(*body.limits[1])
    finish_map(axes, view)
    axes.set_xlabel(f"{axes.get_xlabel()}   (deformation × {body.factor:.4g})")
    return artist


def _at(view: View, values: FloatArray, curve: FloatArray) -> FloatArray:
    """Interpolate values on the grid of a view to points of it."""
    from scipy.ndimage import map_coordinates

    rows = [(curve[:, i] - grid[0]) / (grid[1] - grid[0]) for i, grid in enumerate(view.grids)]
    return np.asarray(map_coordinates(np.nan_to_num(values), rows[::-1], order=1, mode="nearest"))


def _triangles(n: int) -> Any:
    """Return two triangles for each cell of an n by n grid, as numbers of its points."""
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    upper = np.stack([corner, corner + 1, corner + n + 1], axis=1)
    return np.concatenate([upper, np.stack([corner, corner + n + 1, corner + n], axis=1)])


def _frame(view: View) -> FloatArray:
    """Return the edges of the picture as a closed curve through the grid."""
    x, y = view.grids
    low, high = np.full_like(x, y[0]), np.full_like(x, y[-1])
    left, right = np.full_like(y, x[0]), np.full_like(y, x[-1])
    return np.stack([np.concatenate([x, right, x[::-1], left]), np.concatenate([low, y, high, y[::-1]])], axis=1)


def _round(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above a value.

    >>> [_round(value) for value in (0.7, 3.0, 56.0)]
    [0.5, 2.0, 50.0]
    """
    unit = 10.0 ** math.floor(math.log10(value))
    return max(step * unit for step in (1.0, 2.0, 5.0) if step * unit <= value * (1 + 1e-12))


def mark_walls(axes: Any, curves: Sequence[Any], positions: Sequence[FloatArray]) -> None:
    """Show where cells meet along a curve by lines behind it; along each of several, by marks on it."""
    if len(curves) == 1:
        axes.grid(visible=False, axis="x")
        for position in positions[0]:
            axes.axvline(position, color="0.6", linewidth=0.6, zorder=0.5)
        return
    for curve, own in zip(curves, positions, strict=True):
        heights = np.interp(own, *curve.get_data())
        axes.plot(own, heights, "|", color=curve.get_color(), markersize=7, markeredgewidth=0.9)
