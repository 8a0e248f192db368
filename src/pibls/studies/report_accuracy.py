"""Tables of accuracy: the paper's, those by residual, and how errors fall with the number of points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pibls.report.metrics import METRICS
from pibls.studies.protocol import Setting
from pibls.studies.published import METHODS, Published
from pibls.studies.report_ledger import PROBLEMS, Ledger, Summary, label
from pibls.studies.report_records import Record, tally
from pibls.studies.report_table import Entry, Table, compared, measured, number, score, text
from pibls.studies.report_text import NOTES

__all__ = [
    "METRIC_NAMES",
    "Choice",
    "accuracy_tables",
    "choice_words",
    "choices",
    "gap_words",
    "published_entry",
    "residual_table",
    "winner_words",
    "winners_table",
]

METRIC_NAMES = {
    "mse": "MSE",
    "rmse": "RMSE",
    "mae": "MAE",
    "relative_mse": "Relative MSE",
    "relative_rmse": "Relative RMSE",
    "relative_mae": "Relative MAE",
    "linf": "L∞ error",
    "relative_linf": "Relative L∞ error",
    "r2": "R² score",
}
_LEVEL = 1.1  # ratio of medians that is no difference
_PARTS = {"test": "at the test points", "train": "at the training points"}


def accuracy_tables(records: list[Record], problem: str) -> tuple[Table, ...]:
    """Return the table of a problem as two: errors at test points, and at training points."""
    return tuple(_accuracy_table([r for r in records if r.problem == problem and r.part == part]) for part in _PARTS)


def _accuracy_table(records: list[Record]) -> Table:
    first = records[0]
    by_place = {(record.quantity, record.method): record for record in records}
    heads = (
        (*text("", rows=2), *(e for m in METHODS for e in text(label(m), columns=2))),
        tuple(e for _ in METHODS for e in text("published", "measured")),
    )
    rows = []
    for metric in METRICS:
        row = [*text(METRIC_NAMES[metric])]
        for method in METHODS:
            record = by_place[metric, method]
            write = score if metric == "r2" else number
            row += [published_entry(record.comparison.published), compared(record, write)]
        rows.append(tuple(row))
    caption = (
        f"Table {first.table}. {PROBLEMS[first.problem].capitalize()} with {first.n_train} training points: errors "
        f"{_PARTS[first.part]}, median [worst] over seeds"
    )
    notes = (f"{_seed_words(records)} {tally(records)}", *((NOTES[first.table],) if first.part == "test" else ()))
    return Table(f"table-{first.table}-{first.part}", caption, heads, tuple(rows), notes)


def _seed_words(records: list[Record]) -> str:
    """Return how many seeds each method was run with."""
    counts = {r.method: r.comparison.measured.count if r.comparison.measured else 0 for r in records}
    return "Seeds: " + ", ".join(f"{label(method)} {count}" for method, count in counts.items()) + "."


def published_entry(value: float | None, style: str = ".4e") -> Entry:
    """Return a published number with the digits it is printed with."""
    return Entry("–" if value is None else format(value, style), kind="published")


def gap_words(book: Ledger, published: Published) -> str:
    """Return how far apart training points on the line are for the worst seed of PI-BLS, beside the other seeds."""
    n = published.table_size("advection")
    cells = book.select(kind="accuracy", problem="advection", method="PI-BLS", score="exact", n_train=n)
    errors = dict(zip((cell["seed"] for cell in cells.cells), cells.numbers("test", "relative_rmse"), strict=True))
    if len(errors) < 2:
        return ""
    gaps = {seed: _largest_gap(Setting("advection", n, seed)) for seed in errors}
    worst = max(errors, key=lambda seed: errors[seed])
    return (
        f"Points drawn at random leave gaps. Over the {len(gaps)} seeds the longest stretch without a training point "
        f"has a median of {np.median(list(gaps.values())):.3f} of the interval and a maximum of "
        f"{max(gaps.values()):.3f}; the seed on which PI-BLS is worst ({number(errors[worst])}) has one of "
        f"{gaps[worst]:.3f}. The shortest wave of the solution is 0.333 long."
    )


def _largest_gap(setting: Setting) -> float:
    """Return the longest part of the unit interval without a training point."""
    return float(np.diff(np.sort(np.concatenate([[0.0], setting.points.interior[:, 0], [1.0]]))).max())


def winners_table(records: list[Record]) -> Table:
    """Return which method is best on each problem by the relative RMSE at the test points, measured and published."""
    rows = []
    for problem in PROBLEMS:
        found = [r for r in records if (r.problem, r.part, r.quantity) == (problem, "test", "relative_rmse")]
        row = [*text(f"{PROBLEMS[problem]}, N = {found[0].n_train}")]
        row += [Entry(measured(r.comparison.measured), kind="measured") for r in found]
        row += text(
            _best({r.method: r.comparison.measured.median for r in found if r.comparison.measured}),
            _best({r.method: r.comparison.published for r in found if r.comparison.published is not None}),
        )
        rows.append(tuple(row))
    heads = (
        (
            *text("problem", rows=2),
            *text("measured relative RMSE, median [worst]", columns=len(METHODS)),
            *text("best measured", "best published", rows=2),
        ),
        tuple(e for method in METHODS for e in text(label(method))),
    )
    return Table("table-winners", "Which method wins under the paper's protocol", heads, tuple(rows))


def _best(errors: Mapping[str, float]) -> str:
    return label(min(errors, key=lambda method: errors[method])) if errors else "–"


@dataclass(frozen=True)
class Choice:
    """Test errors of one method on one problem, by what the search looked at."""

    problem: str
    method: str
    by_exact: Summary | None
    by_residual: Summary | None

    @property
    def ratio(self) -> float | None:
        """How many times larger the median error is without the exact solution."""
        if not self.by_exact or not self.by_residual or not self.by_exact.median:
            return None
        return self.by_residual.median / self.by_exact.median


def choices(book: Ledger, published: Published) -> list[Choice]:
    """Return what choosing by the residual costs, for every problem and method at the tables' numbers of points."""
    found = []
    for problem in PROBLEMS:
        sized = book.select(kind="accuracy", problem=problem, n_train=published.table_size(problem))
        for method in METHODS:
            cells = sized.select(method=method)
            errors = (cells.select(score=by).summary("test", "relative_rmse") for by in ("exact", "residual"))
            found.append(Choice(problem, method, *errors))
    return found


def residual_table(found: list[Choice], published: Published) -> Table:
    """Return test errors of models chosen by the exact solution and by the residual at held-out points."""
    rows = tuple(
        (
            *text(f"{PROBLEMS[choice.problem]}, {label(choice.method)}"),
            published_entry(published.accuracy(choice.problem, choice.method, "test", "relative_rmse")),
            Entry(measured(choice.by_exact), kind="measured"),
            Entry(measured(choice.by_residual), kind="measured"),
            Entry("–" if choice.ratio is None else number(choice.ratio)),
        )
        for choice in found
    )
    heads = (text("problem and method", "published", "chosen by exact solution", "chosen by residual", "ratio"),)
    caption = "Relative RMSE at the test points, median [worst] over seeds, by what the search looked at"
    return Table("table-residual", caption, heads, rows)


def choice_words(found: list[Choice]) -> str:
    """Return in words what choosing by the residual costs."""
    known = sorted((c.ratio, f"{label(c.method)} on {PROBLEMS[c.problem]}") for c in found if c.ratio is not None)
    if not known:
        return "It was not run."
    middle, (worst, where) = known[len(known) // 2][0], known[-1]
    return (
        f"Choosing by the residual multiplies the median test error by {number(middle)} in the middle of the "
        f"{len(known)} rows below that were run, and by {number(worst)} in the worst of them ({where})."
    )


def winner_words(records: list[Record]) -> str:
    """Return in words which method has the lowest median error on each problem, and who comes next."""
    sentences = []
    for problem in PROBLEMS:
        medians = sorted(
            (r.comparison.measured.median, label(r.method))
            for r in records
            if (r.problem, r.part, r.quantity) == (problem, "test", "relative_rmse") and r.comparison.measured
        )
        if len(medians) > 1:
            (first, winner), (second, runner_up) = medians[:2]
            if second <= _LEVEL * first:
                found = f"<b>{winner}</b> and <b>{runner_up}</b> are level, with the lowest median errors"
            else:
                ahead = f", {number(second / first)} times below that of {runner_up}" if first else ""
                found = f"<b>{winner}</b> has the lowest median error{ahead}"
            sentences.append(f"<li>{PROBLEMS[problem]}: {found}</li>")
    return f"<ul>{''.join(sentences)}</ul>" if sentences else ""
