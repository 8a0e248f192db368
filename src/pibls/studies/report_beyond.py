"""Tables of what the paper only proves, and of what the library does when left to itself."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from pibls.studies.grids import BEYOND
from pibls.studies.published import METHODS, Published
from pibls.studies.report_accuracy import published_entry
from pibls.studies.report_ledger import PROBLEMS, Ledger, label, summarise
from pibls.studies.report_table import Entry, Table, measured, number, text

__all__ = ["THEOREMS", "solve_table", "theorem_table", "wider_table", "wider_words"]

# Name in the diagnostics, and what the theorem bounds.
THEOREMS = {
    "stability": "‖w‖ by ‖H‖/λ · ‖z‖; sharp: max σ/(σ²+λ) · ‖z‖",
    "residual": "√J(w*) by √J(0) = ‖z‖",
    "sensitivity": "‖Δw‖ by ‖H‖/λ · ‖Δz‖; sharp: max σ/(σ²+λ) · ‖Δz‖",
    "physics consistency": "largest residual; sharp: √(N J/λ)",
}


def theorem_table(book: Ledger) -> Table:
    """Return how many fitted models each theorem was checked on, how many respect it, and with how much to spare."""
    # A curve shows a model that an accuracy cell already counts.
    fitted = Ledger(tuple(cell for cell in book.cells if cell["kind"] != "curve"))
    rows = [
        row
        for theorem in THEOREMS
        for method in (*METHODS, "solve")
        if (row := _theorem_row(theorem, method, fitted.select(method=method))) is not None
    ]
    heads = (
        text(
            "theorem",
            "method",
            "bounded quantity",
            "models",
            "hold",
            "measured",
            "printed bound",
            "sharp bound",
            "measured / sharp [largest]",
        ),
    )
    caption = "The four theorems on every fitted model, medians"
    return Table("table-theorems", caption, heads, tuple(rows) or ((Entry(measured(None), columns=9),),))


def _theorem_row(theorem: str, method: str, book: Ledger) -> tuple[Entry, ...] | None:
    cells = Ledger(tuple(cell for cell in book.cells if theorem in (cell.get("theorems") or {})))
    if not len(cells):
        return None
    found = {key: cells.numbers("theorems", theorem, key) for key in ("measured", "paper_bound", "sharp_bound")}
    held = sum(bool(cell["theorems"][theorem]["holds"]) for cell in cells.cells)
    shares = [_share(*pair) for pair in zip(found["measured"], found["sharp_bound"], strict=True)]
    return (
        *text(theorem, label(method), kind="short"),
        *text(THEOREMS[theorem]),
        Entry(str(len(cells))),
        Entry(f"<b>{held}</b>" if held == len(cells) else f'<b class="miss">{held}</b>'),
        *(Entry(number(float(np.median(values)))) for values in found.values()),
        Entry(measured(summarise(shares)), kind="measured"),
    )


def _share(value: float, bound: float) -> float:
    """Return how much of a bound is used up."""
    if bound == 0:
        return 0.0 if value == 0 else math.inf
    return value / bound


def wider_table(book: Ledger, published: Published) -> Table:
    """Return test errors of PI-BLS in the paper's search space and in a wider one, both by the paper's protocol."""
    rows = []
    for problem in PROBLEMS:
        cells = book.select(problem=problem, method="PI-BLS", n_train=published.table_size(problem))
        wider = cells.select(kind="beyond")
        spread = [
            cells.select(kind=kind, score=by).summary("test", "relative_rmse")
            for kind in ("accuracy", "beyond")
            for by in ("exact", "residual")
        ]
        chosen = Counter(str(cell["settings"].get("activation")) for cell in wider.cells)
        rows.append(
            (
                *text(f"{PROBLEMS[problem]}, N = {published.table_size(problem)}"),
                published_entry(published.accuracy(problem, "PI-BLS", "test", "relative_rmse")),
                *(Entry(measured(summary), kind="measured") for summary in spread),
                *text(", ".join(f"{name} {count}" for name, count in chosen.most_common()) or "–"),
            )
        )
    heads = (
        (
            *text("problem", "published", rows=2),
            *text("the paper's space, chosen by", "wider space, chosen by", columns=2),
            *text("activation chosen in the wider space", rows=2),
        ),
        text("exact solution", "residual") * 2,
    )
    caption = "PI-BLS under the same protocol: relative RMSE at the test points, median [worst] over seeds"
    return Table("table-wider", caption, heads, tuple(rows))


def wider_words() -> str:
    """Return what the wider search space holds."""
    listed = "; ".join(f"<code>{name}</code> ∈ {{{', '.join(map(str, values))}}}" for name, values in BEYOND.items())
    return (
        "The protocol again, same points and cross-validation, with activations that the paper does not try, rows "
        f"balanced by the library instead of penalties, and no ridge: {listed}, scales as above."
    )


def solve_table(book: Ledger, published: Published) -> Table:
    """Return error, estimate and time of plain ``pb.solve`` beside PI-BLS of the paper and of the protocol."""
    rows = []
    for problem in PROBLEMS:
        n = published.table_size(problem)
        cells = book.select(kind="solve", problem=problem)
        protocol = book.select(kind="accuracy", problem=problem, n_train=n, score="exact", method="PI-BLS")
        spread = [
            protocol.summary("test", "relative_rmse"),
            cells.summary("test", "relative_rmse"),
            cells.summary("extra", "estimate"),
            cells.summary("seconds"),
        ]
        status = sorted({str(cell["extra"]["status"]) for cell in cells.cells})
        rows.append(
            (
                *text(PROBLEMS[problem]),
                published_entry(published.accuracy(problem, "PI-BLS", "test", "relative_rmse")),
                *(Entry(measured(summary), kind="measured") for summary in spread),
                *text(", ".join(status) or "–"),
                *(Entry(_range(cells.numbers(*path))) for path in (("parameters",), ("extra", "rows"))),
                Entry(str(len(cells))),
            )
        )
    names = ("problem", "PI-BLS, published", "PI-BLS, protocol", "pb.solve: error", "its own estimate", "seconds")
    heads = (text(*names, "status", "nodes", "rows", "seeds"),)
    caption = "Plain pb.solve: relative RMSE at the test points, median [worst] over seeds"
    return Table("table-solve", caption, heads, tuple(rows))


def _range(values: list[float]) -> str:
    if not values:
        return "–"
    low, high = min(values), max(values)
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
