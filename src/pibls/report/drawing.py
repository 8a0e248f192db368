"""Lines and maps, drawn into Matplotlib axes. The only place that knows their looks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.path import Path

from pibls.checks import FloatArray
from pibls.report.colours import Scale, decades
from pibls.report.quantities import PictureQuantity
from pibls.report.views import CloudView, View

INK = "0.25"
BLUE = "#1f5fa8"
RED = "#b5382a"
_FILLED_CELLS = 2.5
_SLIMMEST = 8.0


class Picture(Figure):
    """A figure that shows itself in notebooks although ``pyplot`` was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


def is_to_scale(view: View | CloudView) -> bool:
    """Tell whether both axes of a map have the same unit: in space, unless it would be a mere strip."""
    across, along = (high - low for low, high in view.limits)
    return view.in_space and 1 / _SLIMMEST <= along / across <= _SLIMMEST


def draw_map(axes: Any, view: View | CloudView, values: FloatArray, scale: Scale, levels: Any = None) -> Any:
    """Draw values over a plane and return the artist that carries the colours."""
    if isinstance(view, CloudView):
        artist = axes.scatter(*view.positions.T, c=values, norm=scale.norm, cmap=scale.colours, s=12, linewidths=0)
        axes.margins(0.05)
    else:
        artist = _draw_image(axes, view, values, scale)
        if levels is not None:
            grids = view.grids
            axes.contour(*grids, np.ma.masked_invalid(values), levels=levels, colors="k", linewidths=0.6, alpha=0.6)
    axes.set_aspect("equal" if is_to_scale(view) else "auto")
    axes.locator_params(nbins=5)
    _label(axes, view.names)
    if isinstance(view, View) and view.outline:
        axes.spines[:].set_color("0.8")
    return artist


def _draw_image(axes: Any, view: View, values: FloatArray, scale: Scale) -> Any:
    extent = []
    for grid in view.grids:
        half = (grid[1] - grid[0]) / 2
        extent += [grid[0] - half, grid[-1] + half]
    image = axes.imshow(
        extended(values),
        origin="lower",
        extent=extent,
        norm=scale.norm,
        cmap=scale.colours,
        interpolation="bilinear",
        interpolation_stage="rgba",
        aspect="auto",
    )
    limits = [(float(grid[0]), float(grid[-1])) for grid in view.grids]
    if view.outline:
        _clip(image, axes, view)
        for curve in view.outline:
            axes.plot(*curve.T, color=INK, linewidth=1.0, solid_joinstyle="round", clip_on=False)
        limits = [(low - 0.03 * (high - low), high + 0.03 * (high - low)) for low, high in limits]
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    return image


def _clip(artist: Any, axes: Any, view: View | CloudView) -> None:
    """Show no more of an artist than is within the outline of a view."""
    if isinstance(view, View) and view.outline:
        outline = Path.make_compound_path(*(Path(curve, closed=True) for curve in view.outline))
        artist.set_clip_path(outline, axes.transData)


def extended(values: FloatArray) -> FloatArray:
    """Carry values a few cells over the edge of the domain, where the outline cuts them off sharply."""
    from scipy.ndimage import distance_transform_edt

    missing = np.isnan(values)
    if not missing.any():
        return values
    distance, nearest = distance_transform_edt(missing, return_indices=True)
    return np.where(distance <= _FILLED_CELLS, values[tuple(nearest)], np.nan)


def add_colour_bar(axes: Any, artist: Any) -> Any:
    """Put a colour bar beside axes, exactly as high as they are."""
    bar = axes.figure.colorbar(artist, cax=axes.inset_axes((1.04, 0.0, 0.045, 1.0)))
    bar.outline.set_linewidth(0.5)
    bar.ax.tick_params(which="both", labelsize=8, width=0.5)
    return bar


def draw_lines(
    axes: Any, views: Sequence[View | CloudView], quantity: PictureQuantity, reference: PictureQuantity | None
) -> list[Any]:
    """Draw a quantity along one or more lines, with the reference dashed on top; return the curves."""
    colours = [RED if quantity.magnitude else BLUE]
    if len(views) > 1:
        colours = list(colormaps["plasma"](np.linspace(0.15, 0.88, len(views))))
    drawn, curves = [], []
    for view, colour in zip(views, colours, strict=True):
        (grid,) = view.grids
        drawn.append(view.evaluate(quantity.function))
        label = quantity.name if len(views) == 1 else view.place
        curves += axes.plot(grid, drawn[-1], color=colour, linewidth=2.0, label=label)
    if reference is not None:
        for i, view in enumerate(views):
            exact = view.evaluate(reference.function)
            style = {"color": "k", "linewidth": 1.1, "dashes": (5, 3), "label": None if i else reference.name}
            axes.plot(view.grids[0], exact, **style)
    if quantity.magnitude:
        limits = decades(np.concatenate(drawn))
        if limits is not None:
            axes.set_yscale("log")
            axes.set_ylim(limits[0] / 2, limits[1] * 2)
    axes.margins(x=0.0)
    _label(axes, (views[0].names[0], quantity.symbol))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(views) > 1:
        axes.legend(frameon=False, fontsize=8, handlelength=1.8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif reference is not None:
        axes.legend(frameon=False, fontsize=8, handlelength=2.2)
    return curves


def draw_walls(axes: Any, view: View | CloudView, segments: FloatArray, bright: bool) -> None:
    """Draw segments where cells meet over a map, within its outline; bright ones on the dark colours of errors."""
    lines = LineCollection(list(segments), linewidths=0.5, colors="w" if bright else "k", alpha=0.45)
    _clip(axes.add_collection(lines, autolim=False), axes, view)


def draw_seams(axes: Any, view: View, curves: Sequence[FloatArray], bright: bool) -> None:
    """Draw where one material ends and another begins, within the outline of a map."""
    lines = LineCollection(list(curves), linewidths=1.0, colors="w" if bright else INK, linestyles=(0, (4, 2)))
    _clip(axes.add_collection(lines, autolim=False), axes, view)


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


def _label(axes: Any, names: tuple[str, ...]) -> None:
    axes.set_xlabel(names[0], style="italic")
    axes.set_ylabel(names[1], style="italic")
    axes.tick_params(which="both", labelsize=8, color=INK, width=0.6)
    axes.spines[:].set(linewidth=0.6, color=INK)
