"""What the bands of B-PI-ELM promise and hold with noisy measurements: a table and a figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pibls.studies.coverage import LEVELS, NOISE, REPETITIONS
from pibls.studies.published import Published
from pibls.studies.report_drawing import EXACT, INK, STYLES, new_figure, style_axes
from pibls.studies.report_ledger import PROBLEMS, Ledger, summarise
from pibls.studies.report_records import smallest_profile
from pibls.studies.report_table import Entry, Table, measured, number, text

__all__ = ["coverage_table", "coverage_words", "draw_coverage"]

_NAMES = ("problem", "measurements", "scale", "median error", "noise found / true", "share inside", "lowest run")
_MARKERS = dict(zip(PROBLEMS, ("o", "s", "D", "^"), strict=True))


def coverage_words() -> str:
    """Return what was done."""
    return (
        "The posterior of B-PI-ELM gives a band around its solution. Whether it can be believed shows only where there "
        f"is noise: every condition is taken away, and the solution is measured instead with Gaussian noise of "
        f"{NOISE:.0%} of its root mean square, at the training points and where the conditions were; the equation "
        "holds at the training points. How noisy the measurements are is not told. Sine nodes, 100 on the line and "
        "300 in the plane; the scale is the one of the highest evidence, so that nothing looks at the solution. "
        f"Points, noise and nodes are drawn anew in each of {REPETITIONS} repetitions, and the true solution is looked "
        "up at the test points: 95 % of it should be inside of the 95 % bands. On the line only one constant is left "
        "uncertain, so that a band holds all of the solution or none of it."
    )


def coverage_table(book: Ledger, published: Published) -> Table:
    """Return the share of the solution that 95 % bands hold, over all repetitions."""
    rows = []
    for problem in PROBLEMS:
        n = published.table_size(problem)
        row = [*text(f"{PROBLEMS[problem]}, N = {n}")]
        cells = book.select(kind="coverage", problem=problem).cells
        if cells:
            row += _entries(cells[0])
        else:
            profile = smallest_profile("coverage", problem, "BPI-ELM", n)
            row.append(Entry(measured(None, profile=profile), columns=len(_NAMES) - 1))
        rows.append(tuple(row))
    return Table("table-coverage", "Bands of 95 % with noisy measurements", (text(*_NAMES),), tuple(rows))


def _entries(cell: Any) -> list[Entry]:
    found = cell["extra"]
    scale = cell["settings"]["scale"]
    scales = ", ".join(f"{value:g}" for value in (scale if isinstance(scale, list | tuple) else [scale]))
    share = found["coverage"][LEVELS.index(0.95)]
    return [
        Entry(str(found["measurements"])),
        Entry(scales),
        Entry(measured(summarise(found["errors"])), kind="measured"),
        Entry(number(float(np.median(found["noise"])))),
        Entry(f"<b>{share:.1%}</b>", kind="measured"),
        Entry(f"{min(found['inside']):.0%}"),
    ]


def draw_coverage(book: Ledger) -> Figure | None:
    """Draw one repetition along a line with its band, and the shares inside against the levels of the bands."""
    cells = book.select(kind="coverage").cells
    if not cells:
        return None
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    lines = [cell["extra"]["curve"] for cell in cells if cell["extra"]["curve"]]
    if lines:
        _draw_band(left, lines[0])
    else:
        left.axis("off")
    right.plot([0.4, 1.0], [0.4, 1.0], color="0.6", linewidth=1.0, linestyle=(0, (4, 3)))
    for cell in cells:
        style = {"marker": _MARKERS[cell["problem"]], "markersize": 4.5, "linewidth": 1.2}
        right.plot(cell["extra"]["levels"], cell["extra"]["coverage"], **style, label=PROBLEMS[cell["problem"]])
    right.set_xlabel("level of the band", fontsize=9)
    right.set_title("(b) share of the solution inside", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    style_axes(right)
    return figure


def _draw_band(axes: Any, line: dict[str, Any]) -> None:
    """Draw what is left after the exact solution is taken away: the band is far narrower than the solution."""
    colour = STYLES["BPI-ELM"]["color"]
    x, exact = np.asarray(line["x"]), np.asarray(line["exact"])
    low, high, middle = (np.asarray(line[name]) - exact for name in ("low", "high", "predicted"))
    noise = np.asarray(line["values"]) - np.interp(line["where"], x, exact)
    axes.axhline(0.0, **EXACT, label="exact")
    axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0, label="95 % band")
    axes.plot(x, middle, color=colour, linewidth=1.3, label="B-PI-ELM")
    axes.plot(line["where"], noise, ".", color=INK, markersize=5, label="measured")
    axes.set_title("(a) one repetition, advection: difference to the exact solution", fontsize=10, loc="left")
    axes.set_xlabel("x", style="italic")
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="upper center")
    axes.margins(x=0.0, y=0.15)
    style_axes(axes)
