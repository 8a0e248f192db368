"""Panels put into a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.report.colours import Scale, magnitude_scale, value_scale
from pibls.report.drawing import (
    Picture,
    add_colour_bar,
    draw_lines,
    draw_map,
    extended,
    fit_solid,
    is_long,
    is_to_scale,
)
from pibls.report.options import Over
from pibls.report.overlays import draw_deformed, draw_over, mark_extremes, mark_walls, moved
from pibls.report.panels import Panel, is_frames
from pibls.report.quantities import PictureQuantity
from pibls.report.views import View, told_apart, tolerant
from pibls.report.wording import lettered

_MAP_WIDTH, _FRAME_WIDTH, _LINE_WIDTH = 4.3, 2.4, 6.4
_LINE_HEIGHT, _SIZE_LINE_HEIGHT = 3.0, 1.9


def new_figure(rows: list[list[Panel]], over: Over) -> tuple[Figure, list[list[Any]]]:
    """Return a figure of a size that suits the panels, and axes for each; long maps stand one above the other."""
    stacked = not rows[0][0].is_line and is_long(rows[0][0].views[0])
    beside = stacked and is_frames(rows[0]) and len(rows) == 2  # values on the left, errors on the right
    laid = [list(pair) for pair in zip(*rows, strict=True)] if beside else rows
    laid = [[panel] for row in rows for panel in row] if stacked and not beside else laid
    sizes = [[_size(panel, row, len(rows) == 1, over) for panel in row] for row in laid]
    columns = max(len(row) for row in laid)
    heights = [max(height for _, height in row) for row in sizes]
    widths = [max(row[i][0] for row in sizes if i < len(row)) for i in range(columns)]
    figure = Picture(figsize=(sum(widths), sum(heights) + 0.2), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06))
    grid = figure.add_gridspec(len(laid), columns, width_ratios=widths, height_ratios=heights)
    made = {id(panel): figure.add_subplot(grid[i, j]) for i, row in enumerate(laid) for j, panel in enumerate(row)}
    return figure, [[made[id(panel)] for panel in row] for row in rows]


def _size(panel: Panel, row: list[Panel], alone: bool, over: Over) -> tuple[float, float]:
    """Return width and height of a panel in inches, with its labels."""
    if panel.is_line:
        height = _SIZE_LINE_HEIGHT if panel.quantity.magnitude and not alone else _LINE_HEIGHT
        return (_LINE_WIDTH if len(row) == 1 else _MAP_WIDTH), height
    view = panel.views[0]
    width = _FRAME_WIDTH if is_frames(row) else _MAP_WIDTH
    if is_long(view):
        width = _MAP_WIDTH * (2.0 if len(row) == 1 else 1.3)
    margin = 0.5 if is_frames(row) else 1.3
    inner = width - margin
    limits = view.limits if over.deformation is None else moved(view, over.deformation).limits
    across, along = (high - low for low, high in limits)
    shape = along / across if is_to_scale(view) else 0.95
    height = float(np.clip(inner * shape, 0.5, 2.2 * inner))
    # A slim map takes no more width than it needs, and its title.
    return max(min(inner, height / shape) + margin, 0.6 * width), height + 0.8


def given_axes(rows: list[list[Panel]], axes: Any) -> tuple[Figure, list[list[Any]]]:
    """Return the user's axes in the shape of the panels."""
    try:
        flat = list(np.ravel(np.asarray(axes, dtype=object)))
    except Exception:  # whatever the object of a stranger does
        flat = []
    count = sum(len(row) for row in rows)
    if len(flat) != count or not all(hasattr(item, "imshow") for item in flat):
        raise InputError(
            f"The 'axes' parameter of plot must be {count} Matplotlib axes for the {count} panels of this picture. "
            f"Got {shorten(axes)} instead. Leave it out for a new figure, or choose one panel with what= and field=."
        )
    remaining = iter(flat)
    return flat[0].figure, [[next(remaining) for _ in row] for row in rows]


def draw_panels(rows: list[list[Panel]], places: list[list[Any]], over: Over) -> None:
    """Draw every panel into its axes, with its overlays."""
    for row, row_axes in zip(rows, places, strict=True):
        if is_frames(row):
            _draw_frames(row, row_axes, over)
            continue
        for panel, axes in zip(row, row_axes, strict=True):
            if panel.is_line:
                _draw_graph(panel, axes, over)
            else:
                values = panel.views[0].evaluate(panel.quantity.function)
                scale = _scale(panel.quantity, values)
                artist = _draw_map(panel, axes, values, scale, over)
                add_colour_bar(axes, artist, panel.quantity.unit, scale.extend)
            axes.set_title(panel.title, fontsize=10)


def _draw_graph(panel: Panel, axes: Any, over: Over) -> None:
    curves = draw_lines(axes, panel.views, panel.quantity, panel.reference)
    if over.walls is not None:
        mark_walls(axes, curves, [over.walls(view) for view in panel.views])
    if over.extremes and not panel.quantity.magnitude:
        for view in panel.views:
            mark_extremes(axes, view, view.evaluate(panel.quantity.function), panel.quantity)


def _draw_frames(row: list[Panel], row_axes: list[Any], over: Over) -> None:
    """Draw the same quantity in several planes with one scale, one colour bar and one vertical axis."""
    pictures = [panel.views[0].evaluate(panel.quantity.function) for panel in row]
    scale, stacked = _scale(row[0].quantity, np.stack(pictures)), is_long(row[0].views[0])
    alike, places = told_apart([panel.views[0] for panel in row])
    first = f"{row[0].quantity.title}{' at ' if alike else ''}{alike}{': ' if stacked else chr(10)}"
    for i, (panel, axes, values) in enumerate(zip(row, row_axes, pictures, strict=True)):
        artist = _draw_map(panel, axes, values, scale, over)
        axes.set_title(f"{'' if i else first}{places[i]}", fontsize=9, loc="left")
        if stacked and i < len(row) - 1:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
        elif i and not stacked:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    add_colour_bar(row_axes[-1], artist, row[0].quantity.unit, scale.extend)


def _scale(quantity: PictureQuantity, values: FloatArray) -> Scale:
    scale = magnitude_scale(values) if quantity.magnitude else value_scale(values, steep=quantity.steep)
    return scale if quantity.colours is None else replace(scale, colours=quantity.colours)


def _draw_map(panel: Panel, axes: Any, values: FloatArray, scale: Scale, over: Over) -> Any:
    view, quantity = panel.views[0], panel.quantity
    if over.deformation is not None:
        return draw_deformed(axes, view, values, scale, over.deformation)
    artist = draw_map(axes, view, values, scale)
    draw_over(axes, view, values, quantity, over)
    return artist


_ACROSS = 150  # facets along a patch as large as the whole surface
_DARKEST = 0.75
_LIGHT = np.array([0.3, -0.5, 0.81])


def draw_surfaces(domain: Any, quantities: list[PictureQuantity], n: int | None) -> Picture:
    """Return a figure with one view of the surface per quantity."""
    if len(domain.coordinates) != 3 or domain.time is not None or domain.atoms is not None:
        raise InputError(
            f"The 'surface' parameter of plot is for solids in three coordinates of space. Got a domain in "
            f"{domain.coordinates}. Leave it out."
        )
    facets = _facets(domain, n or _ACROSS)
    middles = np.stack([corners.mean(axis=0) for corners in facets])
    light = np.array([_light(corners) for corners in facets])
    figure = Picture(figsize=(4.8 * len(quantities), 4.2), layout="constrained")
    for number, quantity in enumerate(quantities, 1):
        axes: Any = figure.add_subplot(1, len(quantities), number, projection="3d")
        values = quantity.function(middles)
        scale = _scale(quantity, values)
        colours = ScalarMappable(scale.norm, scale.colours)
        shaded = colours.to_rgba(values)
        shaded[:, :3] *= light[:, None]
        axes.add_collection3d(Poly3DCollection(facets, facecolors=shaded, edgecolors=shaded, linewidths=0.3))
        fit_solid(axes, domain)
        for name, symbol in zip("xyz", domain.coordinates, strict=True):
            getattr(axes, f"set_{name}label")(lettered(symbol.name), style="italic")
        axes.locator_params(nbins=4)
        axes.tick_params(labelsize=7)
        axes.set_title(quantity.title, fontsize=10)
        figure.colorbar(colours, ax=axes, shrink=0.6, pad=0.1, extend=scale.extend).set_label(quantity.unit, fontsize=8)
    return figure


def _light(corners: FloatArray) -> float:
    """Return the share of its colour that a facet is shown with: a little less where it turns away from the light."""
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normal = normal + np.cross(corners[2] - corners[0], corners[-1] - corners[0])
    size = float(np.linalg.norm(normal))
    return _DARKEST + (1.0 - _DARKEST) * abs(float(normal @ _LIGHT)) / size if size > 0.0 else 1.0


def _facets(domain: Any, across: int) -> list[FloatArray]:
    patches = [patch for patch in domain.boundary.patches if not patch.empty]
    whole = sum(patch.measure for patch in patches)
    counts = [max(4, round(across * float(np.sqrt(patch.measure / whole)))) for patch in patches]
    return [corners for patch, m in zip(patches, counts, strict=True) for corners in patch.facets(m)]


@dataclass(frozen=True, eq=False)
class Film:
    """A row of panels whose picture changes with time."""

    panels: list[Panel]  # one per quantity, over the first view
    views: Sequence[View]  # one per time
    times: FloatArray
    said: str  # about the solution, on every frame

    def write(self, place: Any, writer: Any) -> None:
        """Draw all frames and have a writer of Matplotlib put them into a file."""
        series = [self._frames(panel) for panel in self.panels]
        figure, places = new_figure([self.panels], Over())
        artists = [self._first(*each) for each in zip(self.panels, places[0], series, strict=True)]
        figure.suptitle(self._words(0), fontsize=9)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # nothing moves from frame to frame
        with writer.saving(figure, str(place), dpi=100):
            for number in range(len(self.times)):
                for artist, values in zip(artists, series, strict=True):
                    _show(artist, values[number])
                figure.suptitle(self._words(number), fontsize=9)
                writer.grab_frame()

    def _frames(self, panel: Panel) -> FloatArray:
        """Return the values of all frames, found together: places are the same at all times."""
        every = [view.points[view.inside] for view in self.views]
        values = tolerant(panel.quantity.function, np.concatenate(every))
        parts = np.split(values, np.cumsum([len(points) for points in every])[:-1])
        return np.stack([view.filled(part) for view, part in zip(self.views, parts, strict=True)])

    def _words(self, number: int) -> str:
        return f"{self.views[0].domain.time} = {self.times[number]:.4g}   ({self.said})"

    def _first(self, panel: Panel, axes: Any, values: FloatArray) -> Any:
        """Draw the first frame with the scale of all frames; return the artist that changes."""
        axes.set_title(panel.quantity.title, fontsize=10)
        whole = _scale(panel.quantity, values)
        if not panel.is_line:
            artist = draw_map(axes, self.views[0], values[0], whole)
            add_colour_bar(axes, artist, panel.quantity.unit, whole.extend)
            return artist
        (curve,) = draw_lines(axes, self.views[:1], panel.quantity, None)
        scale = whole.norm
        margin = 0.04 * (scale.vmax - scale.vmin)
        axes.set_ylim(scale.vmin - margin, scale.vmax + margin)
        return curve


def _show(artist: Any, values: FloatArray) -> None:
    """Change the values that an artist shows."""
    if hasattr(artist, "set_ydata"):
        artist.set_ydata(values)
    else:
        artist.set_data(extended(values))
