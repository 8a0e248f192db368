"""Lines and maps, drawn into Matplotlib axes. The only place that knows their looks."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.path import Path

from pibls.checks import FloatArray
from pibls.report.colours import Scale, decades
from pibls.report.quantities import PictureQuantity
from pibls.report.views import CloudView, View
from pibls.report.wording import is_certain, lettered, said, with_unit
from pibls.solution import Solution

INK = "0.25"
BLUE = "#1f5fa8"
RED = "#b5382a"
_FILLED_CELLS = 2.5
_SLIMMEST = 20.0
_LONG = 0.4  # height of a map as a share of its width, below which maps stand one above the other


class Picture(Figure):
    """A figure that shows itself in notebooks although ``pyplot`` was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


def is_long(view: View) -> bool:
    """Tell whether a map needs the width of the figure for itself."""
    (left, right), (low, high) = view.limits
    return is_to_scale(view) and high - low < _LONG * (right - left)


def is_to_scale(view: View) -> bool:
    """Tell whether both axes of a map have the same unit: in space, unless it would be a mere strip."""
    across, along = (high - low for low, high in view.limits)
    return view.in_space and 1 / _SLIMMEST <= along / across <= _SLIMMEST


def draw_map(axes: Any, view: View, values: FloatArray, scale: Scale) -> Any:
    """Draw values over a plane and return the artist that carries the colours."""
    if isinstance(view, CloudView):
        artist = axes.scatter(*view.grids, c=values, norm=scale.norm, cmap=scale.colours, s=12, linewidths=0)
        axes.margins(0.05)
    else:
        artist = _draw_image(axes, view, values, scale)
    finish_map(axes, view)
    return artist


def finish_map(axes: Any, view: View) -> None:
    """Give a map its proportions and the names of its axes."""
    axes.set_aspect("equal" if is_to_scale(view) else "auto")
    across, along = (high - low for low, high in view.limits)
    fewer = {"x": 5, "y": 5}
    if is_to_scale(view):
        fewer = {"x": 5 if along < 3 * across else 2, "y": 5 if across < 3 * along else 2}
        if across > 3 * along:
            fewer["x"] = 9
    for axis, count in fewer.items():
        axes.locator_params(axis=axis, nbins=count)
    _label(axes, *view.names)
    if view.outline:
        axes.spines[:].set_color("0.8")


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
        clip(image, axes, view)
        for curve in view.outline:
            axes.plot(*curve.T, color=INK, linewidth=1.0, solid_joinstyle="round", clip_on=False)
        limits = [(low - 0.03 * (high - low), high + 0.03 * (high - low)) for low, high in limits]
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    return image


def clip(artist: Any, axes: Any, view: View) -> None:
    """Show no more of an artist than is within the outline of a view."""
    if view.outline:
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


def add_colour_bar(axes: Any, artist: Any, unit: str = "", extend: str = "neither") -> Any:
    """Put a colour bar beside axes, exactly as high as they are, with the unit beside it."""
    across, along = (float(np.ptp(limits)) for limits in (axes.get_xlim(), axes.get_ylim()))
    shape = along / across if axes.get_aspect() == 1.0 else 1.0
    # As thin beside a long domain as beside a square one, which is less wide.
    share = max(shape, math.sqrt(shape))
    place = axes.inset_axes((1.0 + 0.04 * share, 0.0, 0.045 * share, 1.0))
    bar = axes.figure.colorbar(artist, cax=place, extend=extend)
    bar.outline.set_linewidth(0.5)
    bar.ax.tick_params(which="both", labelsize=8, width=0.5)
    if shape < _LONG and not isinstance(bar.norm, LogNorm):
        bar.ax.locator_params(nbins=3)
    if unit:
        bar.set_label(unit, fontsize=8)
    return bar


def draw_lines(
    axes: Any, views: Sequence[View], quantity: PictureQuantity, reference: PictureQuantity | None
) -> list[Any]:
    """Draw a quantity along one or more lines, with the reference dashed on top; return the curves."""
    colours = [RED if quantity.magnitude else BLUE]
    if len(views) > 1:
        colours = list(colormaps[quantity.colours or "plasma"](np.linspace(0.15, 0.88, len(views))))
    drawn, curves = [], []
    for view, colour in zip(views, colours, strict=True):
        (grid,) = view.grids
        drawn.append(view.evaluate(quantity.function))
        label = quantity.name if len(views) == 1 else view.place
        if (band := quantity.band) is not None:
            low, high = view.evaluate(lambda X: band(X)[0]), view.evaluate(lambda X: band(X)[1])
            words = None if len(views) > 1 else "95 % band"
            axes.fill_between(grid, low, high, color=colour, alpha=0.2, linewidth=0, label=words)
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
    _label(axes, views[0].names[0], with_unit(quantity.symbol, quantity.unit))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(views) > 1:
        axes.legend(frameon=False, fontsize=8, handlelength=1.8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif reference is not None or quantity.band is not None:
        axes.legend(frameon=False, fontsize=8, handlelength=2.2)
    return curves


def fit_solid(axes: Any, domain: Any) -> None:
    """Give axes in space the limits and the proportions of a domain."""
    for name, (low, high) in zip("xyz", domain.bounds, strict=False):
        getattr(axes, f"set_{name}lim")(low, high)
    axes.set_box_aspect(np.ptp(domain.bounds[:3], axis=1))


def tell_status(figure: Any, solution: Solution) -> None:
    """Write status and estimate at the foot of a figure, in red where the solution is not to be relied on."""
    colour = INK if is_certain(solution) else RED
    figure.supxlabel(said(solution), x=0.99, ha="right", fontsize=8, color=colour)


def _label(axes: Any, across: str, along: str) -> None:
    axes.set_xlabel(lettered(across), style="italic")
    axes.set_ylabel(lettered(along), style="italic")
    axes.tick_params(which="both", labelsize=8, color=INK, width=0.6)
    axes.spines[:].set(linewidth=0.6, color=INK)
