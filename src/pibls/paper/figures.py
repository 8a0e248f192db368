"""The figures of the report: errors over points, all methods at once, bands with noise; solutions are in `pictures`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pibls.paper.architectures import draw_architectures
from pibls.paper.findings import Findings
from pibls.paper.ledger import PROBLEMS, Ledger, label
from pibls.paper.pictures import EXACT, INK, STYLES, draw_solutions, legend, new_figure, style_axes
from pibls.paper.published import METHODS

ERROR_FIGURES = {"advection": "4", "poisson_star": "6a", "poisson_square": "6b", "diffusion_reaction": "8"}
SOLUTION_FIGURES = {"advection": "5", "poisson_star": "6c", "poisson_square": "6d", "diffusion_reaction": "7"}
_METRICS = {"mse": "MSE", "rmse": "RMSE", "mae": "MAE"}
_MARKERS = dict(zip(PROBLEMS, "osD^", strict=True))


def draw_all(found: Findings, folder: Path) -> dict[str, bytes]:
    """Draw the figures of the problems that a study has run, write them as PNG and PDF, and return SVG, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    return {name: _save(figure, folder, name) for name, figure in _figures(found) if figure is not None}


def _figures(found: Findings) -> Iterator[tuple[str, Figure | None]]:
    yield "overview", draw_overview(found)
    for number, drawing in draw_architectures().items():
        yield f"figure-{number}", drawing
    own = found.own or Ledger(())
    for problem in own.distinct("problem") or PROBLEMS:
        yield f"figure-{ERROR_FIGURES[problem]}", draw_error_curves(found, problem)
        curves = found.book.select(kind="curve", problem=problem)
        yield f"figure-{SOLUTION_FIGURES[problem]}", draw_solutions(curves, problem)
    if not len(own) or len(own.select(kind="coverage")):
        yield "figure-coverage", draw_coverage(found.book)


def _save(figure: Figure, folder: Path, name: str) -> bytes:
    """Write a figure, the same bytes for the same picture, and return it as SVG."""
    figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})
    # The layout is found once, by a drawing of its own; the other formats keep it.
    figure.set_layout_engine(None)
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "Producer": None})
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def draw_error_curves(found: Findings, problem: str) -> Figure | None:
    """Draw MSE, RMSE and MAE over the number of training points, for all methods; None without cells.

    Lines are medians over seeds, bands go from the best to the worst seed, stars are the published values.
    """
    book = found.book.select(kind="accuracy", problem=problem, score="exact")
    if not len(book):
        return None
    figure = new_figure(10.5, 6.0)
    grid = figure.subplots(2, 3, sharex=True)
    handles: dict[str, Any] = {}
    for row, part in zip(grid, ("train", "test"), strict=True):
        for axes, (metric, name) in zip(row, _METRICS.items(), strict=True):
            for method in METHODS:
                handles |= _draw_method(axes, book.select(method=method), part, metric, method)
                value = found.paper.accuracy(problem, method, part, metric)
                if value is not None:
                    axes.plot([found.paper.table_size(problem)], [value], **_star(STYLES[method]["color"]))
            axes.set_yscale("log")
            style_axes(axes)
            axes.set_title(f"{name}, {'training' if part == 'train' else 'test'} points", fontsize=9.5)
    for axes in grid[1]:
        axes.set_xlabel("number of training points", fontsize=9)
        axes.set_xticks(book.distinct("n_train"))
    legend(figure, [*handles.values(), Line2D([], [], label="published", **_star(INK))])
    return figure


def _draw_method(axes: Any, book: Ledger, part: str, metric: str, method: str) -> dict[str, Any]:
    sizes = book.distinct("n_train")
    if not sizes:
        return {}
    found = [s for n in sizes if (s := book.select(n_train=n).summary(part, metric)) is not None]
    # An exact zero or a diverged run has no place on a logarithmic axis; the tables show it.
    lines = np.array([[s.median, s.best, s.worst] for s in found])
    lines[~(np.isfinite(lines) & (lines > 0))] = np.nan
    style = STYLES[method]
    axes.fill_between(sizes, lines[:, 1], lines[:, 2], color=style["color"], alpha=0.13, linewidth=0)
    (line,) = axes.plot(sizes, lines[:, 0], **style, markersize=4.5, linewidth=1.6, label=method)
    return {method: line}


def _star(colour: str) -> dict[str, Any]:
    return {"marker": "*", "markersize": 12, "color": "white", "markeredgecolor": colour, "linestyle": "none"}


def draw_overview(found: Findings) -> Figure | None:
    """Draw relative errors of all methods on all problems on one logarithmic axis; None without cells."""
    rows = [row for row in _overview_rows(found) if row[3] or row[4] is not None]
    if not any(row[3] for row in rows):
        return None
    figure = new_figure(9.5, 0.6 + 0.25 * (len(rows) + len({row[0] for row in rows})))
    axes = figure.subplots()
    height, previous, places = 0.0, "", []
    for problem, style, _, values, published in rows:
        if problem != previous:
            height, previous = height - 1.2, problem
            axes.text(0.01, height, PROBLEMS[problem], transform=axes.get_yaxis_transform(), va="center", weight="bold")
        height -= 1.0
        places.append(height)
        _draw_row(axes, height, STYLES[style], values, published)
    axes.set_yticks(places, [row[2] for row in rows])
    axes.set_ylim(height - 0.8, -0.4)
    axes.set_xscale("log")
    axes.set_xlabel("relative RMSE at the test points", fontsize=9)
    style_axes(axes)
    return figure


def _overview_rows(found: Findings) -> Iterator[tuple[str, str, str, list[float], float | None]]:
    """Yield problem, style, name, errors of the seeds, and published error."""
    path = ("test", "relative_rmse")
    for problem in PROBLEMS:
        cells = found.book.select(problem=problem, n_train=found.paper.table_size(problem))
        searched = cells.select(kind="accuracy", score="exact")
        for method in METHODS:
            values = searched.select(method=method).numbers(*path)
            yield problem, method, label(method), values, found.paper.accuracy(problem, method, *path)
        wider = cells.select(kind="beyond", score="exact").numbers(*path)
        yield problem, "beyond", found.wider(problem, score="exact"), wider, None
        yield problem, "solve", label("solve"), cells.select(kind="solve").numbers(*path), None


def _draw_row(axes: Any, height: float, style: Any, values: list[float], published: float | None) -> None:
    shown = np.array([value for value in values if np.isfinite(value) and value > 0])
    if shown.size:
        axes.plot([shown.min(), shown.max()], [height, height], color=style["color"], linewidth=1.2, alpha=0.6)
        axes.plot(shown, np.full(shown.size, height), "|", color=style["color"], markersize=6, alpha=0.6)
        axes.plot([np.median(shown)], [height], marker=style["marker"], color=style["color"], markersize=6.5)
    if published is not None:
        axes.plot([published], [height], **_star(style["color"]))


def draw_coverage(book: Ledger) -> Figure | None:
    """Draw one repetition along a line with its band, and the shares inside against the levels of the bands."""
    cells = book.select(kind="coverage").cells
    if not cells:
        return None
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    left.axis("off")
    for line in [cell["extra"]["curve"] for cell in cells if cell["extra"]["curve"]][:1]:
        _draw_band(left, line)
    right.plot([0.4, 1.0], [0.4, 1.0], color="0.6", linewidth=1.0, linestyle=(0, (4, 3)))
    for cell in cells:
        style = {"marker": _MARKERS[cell["problem"]], "markersize": 4.5, "linewidth": 1.2}
        right.plot(cell["extra"]["levels"], cell["extra"]["coverage"], **style, label=PROBLEMS[cell["problem"]])
    right.set_xlabel("level of the band", fontsize=9)
    right.set_title("(b) share of the solution inside", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    style_axes(right)
    return figure


def _draw_band(axes: Any, line: Mapping[str, Any]) -> None:
    """Draw the difference to the exact solution: the band is far narrower than the solution."""
    colour = STYLES["BPI-ELM"]["color"]
    x, exact = np.asarray(line["x"]), np.asarray(line["exact"])
    low, high, middle = (np.asarray(line[name]) - exact for name in ("low", "high", "predicted"))
    noise = np.asarray(line["values"]) - np.interp(line["where"], x, exact)
    axes.axis("on")
    axes.axhline(0.0, **EXACT, label="exact")
    axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0, label="95 % band")
    axes.plot(x, middle, color=colour, linewidth=1.3, label="B-PI-ELM")
    axes.plot(line["where"], noise, ".", color=INK, markersize=5, label="measured")
    axes.set_title("(a) one repetition, advection: difference to the exact solution", fontsize=10, loc="left")
    axes.set_xlabel("x", style="italic")
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="upper center")
    axes.margins(x=0.0, y=0.15)
    style_axes(axes)
