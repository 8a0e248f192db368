"""Tables of cost: growth of time, training times, parameters."""

from __future__ import annotations

from pibls.studies.published import METHODS, Published
from pibls.studies.report_accuracy import published_entry
from pibls.studies.report_ledger import PROBLEMS, Ledger, label
from pibls.studies.report_records import Record, own_numbers, tally
from pibls.studies.report_table import Entry, Table, compared, measured, number, text
from pibls.studies.report_text import NOTES

__all__ = ["complexity_table", "parameter_tables", "speed_table", "time_table"]

# Strategy and formula of the paper, then the growth that the formula gives over points and over width.
FORMULAS = {
    "PINN": ("gradient-based optimisation", "O(T N<sub>u</sub> L<sub>h</sub> N<sub>h</sub>²)", "1", "2"),
    "PI-BLS": ("regularised least squares", "O(N<sub>u</sub> M² + M³)", "0 to 1", "2 to 3"),
    "PI-ELM": ("least squares", "O(N<sub>u</sub> N<sub>h</sub>² + N<sub>h</sub>³)", "0 to 1", "2 to 3"),
    "BPI-ELM": ("Bayesian least squares", "O(N<sub>u</sub> N<sub>h</sub>² + N<sub>h</sub>³)", "0 to 1", "2 to 3"),
}


def time_table(records: list[Record]) -> Table:
    """Return training times beside the published ones."""
    rows = []
    for problem in PROBLEMS:
        for quantity in ("seconds", "seconds per point"):
            mine = [r for r in records if (r.problem, r.quantity) == (problem, quantity)]
            found = {r.method: r for r in mine}
            row = [*text(f"{PROBLEMS[problem]}, N = {mine[0].n_train}: {quantity}")]
            for method in METHODS:
                style = ".4f" if quantity == "seconds" else ".2e"
                row += [published_entry(found[method].comparison.published, style), compared(found[method])]
            rows.append(tuple(row))
    heads = (
        (*text("", rows=2), *(e for m in METHODS for e in text(label(m), columns=2))),
        tuple(e for _ in METHODS for e in text("published", "measured")),
    )
    caption = "Table 9. Training time with the selected configuration, median [worst] over the runs"
    notes = (tally(own_numbers(records)), NOTES["9"])
    return Table("table-9", caption, heads, tuple(rows), notes)


def speed_table(book: Ledger, published: Published) -> Table:
    """Return how much faster PI-BLS is fitted than a PINN, and with what error, in the same run."""
    rows = []
    for problem in PROBLEMS:
        n = published.time_size(problem)
        cells = book.select(kind="time", problem=problem, n_train=n)
        entries = []
        medians = []
        for method in ("PINN", "PI-BLS"):
            found = cells.select(method=method)
            seconds, error = found.summary("seconds"), found.summary("test", "relative_rmse")
            entries += [Entry(measured(seconds), kind="measured"), Entry(measured(error), kind="measured")]
            medians.append(seconds.median if seconds else None)
        slow, fast = medians
        ratio = f"{slow / fast:.0f} ×" if slow and fast else "–"
        rows.append((*text(f"{PROBLEMS[problem]}, N = {n}"), *entries, Entry(f"<b>{ratio}</b>")))
    heads = (
        (*text("", rows=2), *text("PINN", "PI-BLS", columns=2), *text("PI-BLS faster by", rows=2)),
        text("seconds", "relative RMSE") * 2,
    )
    return Table("table-speed", "Training time and error of the same fits, median [worst]", heads, tuple(rows))


def parameter_tables(records: list[Record]) -> tuple[Table, ...]:
    """Return the numbers of trainable parameters, a table per problem."""
    tables = [_parameter_table([r for r in records if r.problem == problem]) for problem in PROBLEMS]
    notes = (tally(own_numbers(records)), NOTES["10"])
    last = tables[-1]
    return (*tables[:-1], Table(last.anchor, last.caption, last.heads, last.rows, notes))


def _parameter_table(records: list[Record]) -> Table:
    found = {(r.n_train, r.method, r.quantity): r for r in records}
    columns = [
        ("PINN", "parameters", ".0f"),
        ("PI-BLS", "parameters", ".0f"),
        ("PI-BLS", "reduction", ".2f"),
        ("PI-BLS", "factor", ".2f"),
    ]
    rows = []
    for n in sorted({record.n_train for record in records}):
        row = [*text(str(n))]
        for method, quantity, style in columns:
            record = found[n, method, quantity]
            row += [published_entry(record.comparison.published, style), compared(record, f"{{:{style}}}".format)]
        for method in ("PI-ELM", "BPI-ELM"):
            row.append(Entry(measured(found[n, method, "parameters"].comparison.measured), kind="measured"))
        rows.append(tuple(row))
    titles = ("PINN", "PI-BLS", "reduction, %", "PINN / PI-BLS")
    heads = (
        (
            Entry("N<sub>train</sub>", rows=2),
            *(e for title in titles for e in text(title, columns=2)),
            *text("PI-ELM", "B-PI-ELM"),
        ),
        (*text("published", "measured") * len(titles), *text("measured", "measured")),
    )
    problem = records[0].problem
    caption = f"Table 10. Trainable parameters of the selected models, {PROBLEMS[problem]}: median [largest]"
    return Table(f"table-10-{problem}", caption, heads, tuple(rows))


def complexity_table(book: Ledger) -> Table:
    """Return the paper's orders of growth beside the exponents measured over points and over width."""
    rows = []
    for method in METHODS:
        strategy, formula, over_points, over_width = FORMULAS[method]
        cells = book.select(kind="complexity", method=method)
        row = [*text(label(method), strategy), Entry(formula, kind="words")]
        for axis, expected in (("points", over_points), ("width", over_width)):
            exponents = cells.select(axis=axis).summary("exponent")
            row += [Entry(expected), Entry(number(exponents.median) if exponents else measured(None))]
        rows.append(tuple(row))
    heads = (
        (
            *text("method", "training", "formula", rows=2),
            *text("exponent over points", "exponent over width", columns=2),
        ),
        text("formula", "measured") * 2,
    )
    caption = "Table 1. Computational complexity: the formula, and how the measured time of a fit grows"
    return Table("table-1", caption, heads, tuple(rows))
