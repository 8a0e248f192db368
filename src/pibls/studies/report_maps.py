"""Figures of solutions: graphs in one dimension, maps in two, of every method beside the exact one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pibls.checks import FloatArray
from pibls.problem import Problem
from pibls.report.drawing import add_colour_bar, draw_map
from pibls.report.scales import Scale, decades, magnitude_scale, value_scale
from pibls.report.views import View
from pibls.studies.published import METHODS
from pibls.studies.report_drawing import EXACT, STYLES, legend, new_figure, style_axes
from pibls.studies.report_ledger import Cell, Ledger, label

__all__ = ["Picture", "draw_graphs", "draw_maps", "pictures"]

_SHARPEST = 1e-16


@dataclass(frozen=True, eq=False)
class Picture:
    """What a curve cell holds: values of one method over the grid of the figure, NaN outside the domain."""

    method: str
    grid: FloatArray
    exact: FloatArray
    predicted: FloatArray
    source: FloatArray
    source_predicted: FloatArray
    residual: FloatArray


def pictures(book: Ledger) -> list[Picture]:
    """Return the curve cells of one problem in the order of the methods."""
    found = {cell["method"]: cell for cell in reversed(book.cells)}
    return [_picture(found[method]) for method in METHODS if method in found]


def _picture(cell: Cell) -> Picture:
    values: Mapping[str, Any] = cell["extra"]
    names = ("x", "exact", "predicted", "source_exact", "source_predicted", "residual")
    arrays = [np.asarray(values[name], dtype=np.float64) for name in names]
    return Picture(cell["method"], *arrays)


def draw_graphs(drawn: list[Picture], name: str) -> Figure:
    """Draw solution, source and absolute residual along a line."""
    figure = new_figure(9.0, 8.6)
    panels = figure.subplots(3, 1, sharex=True)
    first = drawn[0]
    handles = list(panels[0].plot(first.grid, first.exact, **EXACT, label="exact"))
    panels[1].plot(first.grid, first.source, **EXACT)
    for item in drawn:
        style = {key: value for key, value in STYLES[item.method].items() if key != "marker"}
        handles += panels[0].plot(item.grid, item.predicted, **style, linewidth=1.6, label=item.method)
        panels[1].plot(item.grid, item.source_predicted, **style, linewidth=1.6)
        panels[2].plot(item.grid, np.abs(item.residual), **style, linewidth=1.4)
    panels[2].set_yscale("log")
    limits = _common_decades([np.abs(item.residual) for item in drawn]).norm
    panels[2].set_ylim(limits.vmin / 2, limits.vmax * 2)
    panels[2].set_xlabel(name, style="italic")
    titles = ("(a) approximate and exact solution", "(b) approximate and exact R", "(c) absolute residual")
    for axes, title, quantity in zip(panels, titles, ("u", "R", "|residual|"), strict=True):
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_ylabel(quantity, style="italic")
        axes.margins(x=0.0)
        style_axes(axes)
    legend(figure, handles)
    return figure


def draw_maps(drawn: list[Picture], problem: Problem) -> Figure:
    """Draw the exact solution, and solution, absolute error and absolute residual of every method over the plane."""
    view = View(problem.domain, (0, 1), {}, len(drawn[0].exact))
    rows = {
        "solution": [item.predicted for item in drawn],
        "absolute error": [np.abs(item.predicted - item.exact) for item in drawn],
        "absolute residual": [np.abs(item.residual) for item in drawn],
    }
    tall = 2.0 if view.in_space else 1.7
    figure = new_figure(2.15 * (len(drawn) + 1) + 0.9, 3 * tall + 0.7)
    panels = figure.subplots(3, len(drawn) + 1, squeeze=False)
    for places, (title, values) in zip(panels, rows.items(), strict=True):
        _draw_row(places, view, drawn, title, values)
    return figure


def _draw_row(places: Any, view: View, drawn: list[Picture], title: str, values: list[FloatArray]) -> None:
    """Draw one quantity of all methods on one scale with one colour bar."""
    is_solution = title == "solution"
    scale = value_scale(drawn[0].exact) if is_solution else _common_decades(values)
    artist: Any = None
    if is_solution:
        draw_map(places[0], view, drawn[0].exact, scale)
        _finish(places[0], "exact")
    else:
        places[0].axis("off")
        places[0].text(0.95, 0.5, title, ha="right", va="center", fontsize=10, transform=places[0].transAxes)
    for i, (axes, item, picture) in enumerate(zip(places[1:], drawn, values, strict=True)):
        artist = draw_map(axes, view, picture, scale)
        _finish(axes, label(item.method))
        if i or is_solution:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    add_colour_bar(places[-1], artist).minorticks_off()


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.tick_params(labelsize=7)
    axes.locator_params(nbins=4)


def _common_decades(values: list[FloatArray]) -> Scale:
    """Return a scale from the lowest to the highest method, each without the few points where a sign changes."""
    limits = [found for found in (decades(picture[np.isfinite(picture)]) for picture in values) if found is not None]
    if not limits:
        return magnitude_scale(np.zeros(1))
    scale = magnitude_scale(np.array([max(high for _, high in limits)]))
    scale.norm.vmin = max(min(low for low, _ in limits), _SHARPEST)
    return scale
