"""Figures of solutions: graphs in one dimension, maps in two, of every method beside the exact one; and their look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pibls.checks import FloatArray
from pibls.paper.ledger import Ledger, label
from pibls.paper.published import METHODS
from pibls.problem import Problem
from pibls.problems import catalogue
from pibls.report.colours import Scale, decades, magnitude_scale, value_scale
from pibls.report.drawing import add_colour_bar, draw_map
from pibls.report.views import View

INK = "0.25"
# Colours that stay apart for colour-blind readers; markers and dashes stay apart in black and white.
STYLES: dict[str, dict[str, Any]] = {
    "PI-BLS": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "PINN": {"color": "#D55E00", "marker": "s", "linestyle": (0, (5, 1.5))},
    "PI-ELM": {"color": "#009E73", "marker": "^", "linestyle": (0, (3, 1, 1, 1))},
    "BPI-ELM": {"color": "#AA4499", "marker": "D", "linestyle": (0, (1, 1.2))},
    "beyond": {"color": "#56B4E9", "marker": "o", "linestyle": "-"},
    "solve": {"color": "#222222", "marker": "P", "linestyle": "-"},
}
EXACT: dict[str, Any] = {"color": "0.72", "linewidth": 4.5, "solid_capstyle": "round"}

# What a curve cell holds: values of one method over the grid of the figure, NaN outside the domain.
Picture = Mapping[str, FloatArray]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06))


def style_axes(axes: Any) -> None:
    """Give axes the look that all graphs of the report share."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(linewidth=0.6, color=INK)
    axes.minorticks_off()
    axes.tick_params(labelsize=8, color=INK, width=0.6)
    axes.grid(color="0.91", linewidth=0.6)
    axes.set_axisbelow(True)


def legend(figure: Figure, handles: list[Any]) -> None:
    """Put one legend for all panels above them."""
    names = [label(handle.get_label()) for handle in handles]
    figure.legend(handles, names, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9)


def draw_solutions(curves: Ledger, problem: str) -> Figure | None:
    """Draw the solutions of one problem as graphs or maps; None without cells."""
    drawn, statement = pictures(curves), catalogue()[problem]()
    if not drawn:
        return None
    if len(statement.domain.coordinates) > 1:
        return draw_maps(drawn, statement)
    return draw_graphs(drawn, statement.domain.coordinates[0].name)


def pictures(curves: Ledger) -> dict[str, Picture]:
    """Return the curve cells of one problem by method, in the order of the methods."""
    found = {cell["method"]: cell["extra"] for cell in reversed(curves.cells)}
    return {
        method: {name: np.asarray(values, dtype=np.float64) for name, values in found[method].items()}
        for method in METHODS
        if method in found
    }


def draw_graphs(drawn: Mapping[str, Picture], name: str) -> Figure:
    """Draw solution, source and absolute residual along a line."""
    figure = new_figure(9.0, 8.6)
    panels = figure.subplots(3, 1, sharex=True)
    first = next(iter(drawn.values()))
    handles = list(panels[0].plot(first["x"], first["exact"], **EXACT, label="exact"))
    panels[1].plot(first["x"], first["source_exact"], **EXACT)
    residuals = [np.abs(item["residual"]) for item in drawn.values()]
    for (method, item), residual in zip(drawn.items(), residuals, strict=True):
        style = {key: value for key, value in STYLES[method].items() if key != "marker"}
        handles += panels[0].plot(item["x"], item["predicted"], **style, linewidth=1.6, label=method)
        panels[1].plot(item["x"], item["source_predicted"], **style, linewidth=1.6)
        panels[2].plot(item["x"], residual, **style, linewidth=1.4)
    limits = _common_decades(residuals).norm
    panels[2].set(yscale="log", ylim=(limits.vmin / 2, limits.vmax * 2))
    panels[2].set_xlabel(name, style="italic")
    titles = ("(a) approximate and exact solution", "(b) approximate and exact R", "(c) absolute residual")
    for axes, title, quantity in zip(panels, titles, ("u", "R", "|residual|"), strict=True):
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_ylabel(quantity, style="italic")
        axes.margins(x=0.0)
        style_axes(axes)
    legend(figure, handles)
    return figure


def draw_maps(drawn: Mapping[str, Picture], problem: Problem) -> Figure:
    """Draw the exact solution, and solution, absolute error and absolute residual of every method over the plane."""
    items = list(drawn.values())
    exact = items[0]["exact"]
    view = View(problem.domain, (0, 1), {}, len(exact))
    errors = [np.abs(item["predicted"] - exact) for item in items]
    residuals = [np.abs(item["residual"]) for item in items]
    figure = new_figure(2.15 * (len(items) + 1) + 0.9, 3 * (2.0 if view.in_space else 1.7) + 0.7)
    panels = figure.subplots(3, len(items) + 1, squeeze=False)
    titles = [label(method) for method in drawn]
    solutions = [exact, *(item["predicted"] for item in items)]
    _draw_row(panels[0], view, ["exact", *titles], solutions, value_scale(exact))
    for places, words, values in zip(
        panels[1:], ("absolute error", "absolute residual"), (errors, residuals), strict=True
    ):
        places[0].axis("off")
        places[0].text(0.95, 0.5, words, ha="right", va="center", fontsize=10, transform=places[0].transAxes)
        _draw_row(places[1:], view, titles, values, _common_decades(values))
    return figure


def _draw_row(places: Any, view: View, titles: list[str], values: list[FloatArray], scale: Scale) -> None:
    """Draw one quantity of all methods on one scale with one colour bar."""
    artist: Any = None
    for axes, title, picture in zip(places, titles, values, strict=True):
        artist = draw_map(axes, view, picture, scale)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.locator_params(nbins=4)
    for axes in places[1:]:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False)
    add_colour_bar(places[-1], artist).minorticks_off()


def _common_decades(values: list[FloatArray]) -> Scale:
    """Return a scale from the lowest to the highest method, each without the few points where a sign changes."""
    limits = [found for found in (decades(picture[np.isfinite(picture)]) for picture in values) if found is not None]
    if not limits:
        return magnitude_scale(np.zeros(1))
    scale = magnitude_scale(np.array([max(high for _, high in limits)]))
    scale.norm.vmin = max(min(low for low, _ in limits), float(np.finfo(np.float64).eps))
    return scale
