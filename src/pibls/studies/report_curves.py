"""Figures of errors: over the number of training points, and of all methods at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pibls.studies.published import METHODS
from pibls.studies.report_drawing import INK, STYLES, legend, new_figure, style_axes
from pibls.studies.report_ledger import PROBLEMS, Ledger, label

__all__ = ["draw_error_curves", "draw_overview"]

_METRICS = {"mse": "MSE", "rmse": "RMSE", "mae": "MAE"}
_PARTS = {"train": "training points", "test": "test points"}
Lookup = Callable[[str, str, str], float | None]


def draw_error_curves(book: Ledger, published: Lookup, table_n: int) -> Figure | None:
    """Draw MSE, RMSE and MAE over the number of training points, for all methods; None without cells.

    Lines are medians over seeds, bands go from the best to the worst seed, stars are the published values.
    """
    if not len(book):
        return None
    figure = new_figure(10.5, 6.0)
    grid = figure.subplots(2, 3, sharex=True)
    handles: dict[str, Any] = {}
    for row, (part, place) in zip(grid, _PARTS.items(), strict=True):
        for axes, (metric, name) in zip(row, _METRICS.items(), strict=True):
            for method in METHODS:
                line = _draw_method(axes, book.select(method=method), part, metric, method)
                handles.update({method: line} if line is not None else {})
                value = published(method, part, metric)
                if value is not None:
                    axes.plot([table_n], [value], **_star(method))
            axes.set_yscale("log")
            style_axes(axes)
            axes.set_title(f"{name}, {place}", fontsize=9.5)
    for axes in grid[1]:
        axes.set_xlabel("number of training points", fontsize=9)
        axes.set_xticks(book.distinct("n_train"))
    legend(figure, [*handles.values(), _published_handle()])
    return figure


def _draw_method(axes: Any, book: Ledger, part: str, metric: str, method: str) -> Any:
    sizes = book.distinct("n_train")
    if not sizes:
        return None
    summaries = [book.select(n_train=n).summary(part, metric) for n in sizes]
    kept = [(n, s) for n, s in zip(sizes, summaries, strict=True) if s is not None]
    # An exact zero or a diverged run has no place on a logarithmic axis; the tables show it.
    lines = np.array([[s.median, s.best, s.worst] for _, s in kept])
    lines[~(np.isfinite(lines) & (lines > 0))] = np.nan
    style = STYLES[method]
    axes.fill_between([n for n, _ in kept], lines[:, 1], lines[:, 2], color=style["color"], alpha=0.13, linewidth=0)
    (line,) = axes.plot([n for n, _ in kept], lines[:, 0], **style, markersize=4.5, linewidth=1.6, label=method)
    return line


def _star(method: str) -> dict[str, Any]:
    colour = STYLES[method]["color"]
    return {"marker": "*", "markersize": 12, "color": "white", "markeredgecolor": colour, "linestyle": "none"}


def _published_handle() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], label="published", **{**_star("PI-BLS"), "markeredgecolor": INK})


def draw_overview(rows: list[tuple[str, str, list[float], float | None]]) -> Figure | None:
    """Draw relative errors of (problem, method, values over seeds, published value) on one logarithmic axis."""
    if not any(values for _, _, values, _ in rows):
        return None
    rows = [row for row in rows if row[2] or row[3] is not None]
    figure = new_figure(9.5, 0.6 + 0.25 * (len(rows) + len({row[0] for row in rows})))
    axes = figure.subplots()
    height, previous = 0.0, ""
    places = []
    for problem, method, values, published in rows:
        if problem != previous:
            height -= 1.2
            axes.annotate(
                PROBLEMS[problem], (0.01, height), xycoords=("axes fraction", "data"), va="center", weight="bold"
            )
            previous = problem
        height -= 1.0
        _draw_row(axes, height, method, values, published)
        places.append(height)
    axes.set_yticks(places, [label(row[1]) for row in rows])
    axes.set_ylim(height - 0.8, -0.4)
    axes.set_xscale("log")
    axes.set_xlabel("relative RMSE at the test points", fontsize=9)
    style_axes(axes)
    return figure


def _draw_row(axes: Any, height: float, method: str, values: list[float], published: float | None) -> None:
    shown = np.array([value for value in values if np.isfinite(value) and value > 0])
    style = STYLES[method]
    if shown.size:
        axes.plot([shown.min(), shown.max()], [height, height], color=style["color"], linewidth=1.2, alpha=0.6)
        axes.plot(shown, np.full(shown.size, height), "|", color=style["color"], markersize=6, alpha=0.6)
        axes.plot([np.median(shown)], [height], marker=style["marker"], color=style["color"], markersize=6.5)
    if published is not None:
        axes.plot([published], [height], **_star(method))
