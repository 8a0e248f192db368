"""Hold every number that page and documents print about the study against the cells that it was computed from.

    python -m benchmarks.check_study OUT [--profile quick]

The tables of errors, times and parameters of ``OUT/report.html`` are read back, and medians and worst values computed
again from the cells, by other code than the report's. The tables of ``docs/reproduce.md`` are held against the same
medians. Numbers of a few digits in its sentences and in the README's, which no table places, should be one of the
medians, extremes, ratios or published values of the study; those that are none are listed. Exit status 1 if a number of
a table differs.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rich.console import Console

from pibls.report.metrics import METRICS
from pibls.studies.findings import Findings
from pibls.studies.ledger import PROBLEMS
from pibls.studies.published import METHODS, published
from pibls.studies.stored import stored

ROOT = Path(__file__).parents[1]
TABLES = {"6": "advection", "7a": "poisson_star", "7b": "poisson_square", "8": "diffusion_reaction"}
NAMES = {"advection": "advection", "Poisson on a star": "poisson_star", "Poisson on a square": "poisson_square"}
NAMES |= {"diffusion–reaction": "diffusion_reaction"}
COLUMNS: dict[str, tuple[str, str, str | None]] = {
    "PI-BLS": ("accuracy", "PI-BLS", "exact"),
    "PI-ELM": ("accuracy", "PI-ELM", "exact"),
    "Bayesian PI-ELM": ("accuracy", "BPI-ELM", "exact"),
    "PINN": ("accuracy", "PINN", "exact"),
    "wider space": ("beyond", "PI-BLS", "exact"),
    "plain `solve`": ("solve", "solve", None),
}
QUANTITIES = {"problem, points": ("test", "relative_rmse"), "parameters, points": ("parameters",)}
QUANTITIES |= {"seconds, points": ("seconds",)}
NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?e[-−]?\d+|\d+\.\d+)(?![\w.])")
Cells = Sequence[dict[str, Any]]


class Tables(HTMLParser):
    """The rows of the tables of a page, by anchor; what is measured starts with its median."""

    def __init__(self, page: str):
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.anchor, self.inside = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a row or a cell."""
        self.anchor = dict(attrs).get("id") or self.anchor
        if tag == "tr":
            self.tables.setdefault(self.anchor, []).append([])
        self.inside = tag in ("td", "th") or (self.inside and tag != "tr")
        if tag in ("td", "th"):
            self.tables[self.anchor][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """Close a cell."""
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        """Take up what a cell says."""
        if self.inside:
            self.tables[self.anchor][-1][-1] += data


def values(cells: Cells, kind: str, problem: str, method: str, n: int, score: str | None, *path: str) -> list[float]:
    """Return one number of every cell that is about this."""
    found = []
    for cell in cells:
        if (cell["kind"], cell["problem"], cell["method"], cell["n_train"], cell["score"]) == (
            *(kind, problem, method, n),
            score,
        ):
            value: Any = cell
            for key in path:
                value = value[key]
            found.append(float(value))
    return found


def same(printed: str, value: float) -> bool:
    """Whether a number is the printed one to all the digits that are printed."""
    text = printed.replace("−", "-").strip()
    if text.startswith("1 - "):
        return same(text[4:], 1 - value)
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - digits)
    return math.isclose(float(text), value, abs_tol=0.500001 * unit, rel_tol=1e-12)


def of_page(page: str, cells: Cells) -> Iterator[tuple[str, str, float]]:
    """Yield what the tables of errors, times and parameters print, and what it should be: medians and worst values."""
    tables = Tables(page).tables
    yield from _costs(tables, cells)
    for number, problem in TABLES.items():
        n = published().table_size(problem)
        for part in ("test", "train"):
            rows = [row for row in tables[f"table-{number}-{part}"] if len(row) == 1 + 2 * len(METHODS)]
            for row, metric in zip(rows[-len(METRICS) :], METRICS, strict=True):
                for position, method in enumerate(METHODS):
                    found = values(cells, "accuracy", problem, method, n, "exact", part, metric)
                    where = f"table {number}, {part}, {metric}, {method}"
                    yield from _cell(where, row[2 + 2 * position], found, metric == "r2")


def _costs(tables: dict[str, list[list[str]]], cells: Cells) -> Iterator[tuple[str, str, float]]:
    """Yield seconds and counts of parameters."""
    problems = list(PROBLEMS)
    times = [row for row in tables["table-9"] if len(row) == 1 + 2 * len(METHODS) and ": seconds" in row[0]]
    for problem, row in zip([p for p in problems for _ in range(2)], times, strict=True):
        n = published().time_size(problem)
        for position, method in enumerate(METHODS):
            found = values(cells, "time", problem, method, n, None, "seconds")
            per = n if row[0].strip().endswith("per point") else 1
            yield from _cell(f"table 9, {problem}, {method}", row[2 + 2 * position], [x / per for x in found])
    for problem in problems:
        rows = {row[0].strip(): row for row in tables[f"table-10-{problem}"]}
        for n in published().sizes(problem):
            for method, position in {"PINN": 2, "PI-BLS": 4, "PI-ELM": 9, "BPI-ELM": 10}.items():
                counts = values(cells, "accuracy", problem, method, n, "exact", "parameters")
                yield from _cell(f"table 10, {problem}, {n}, {method}", rows[str(n)][position], counts)


def _cell(where: str, text: str, found: Sequence[float], high: bool = False) -> Iterator[tuple[str, str, float]]:
    """Yield median and worst value of one cell of a table; nothing printed is no number."""
    if found and (shown := re.match(r"\s*([−\d.e-]+(?: − [\d.e-]+)?)", text)):
        yield where, shown[1], statistics.median(found)
        if bracket := re.search(r"\[(.+?)\]", text):
            yield f"{where}, worst", bracket[1], min(found) if high else max(found)
    elif found:
        yield where, "nan", statistics.median(found)


def of_document(text: str, cells: Cells) -> Iterator[tuple[str, str, float]]:
    """Yield what the tables of the document print, and what it should be."""
    heads: list[str] = []
    for line in text.splitlines():
        entries = [entry.strip().strip("*") for entry in line.strip().strip("|").split("|")]
        if set(line) <= set("|-"):
            heads = heads if line else []
        elif not line.startswith("|"):
            heads = []
        elif not heads:
            heads = entries
        elif (found := re.match(r"(.+), (\d+)$", entries[0])) and found[1] in NAMES and heads[0] in QUANTITIES:
            for head, entry in zip(heads[1:], entries[1:], strict=True):
                yield (
                    f"{heads[0]}: {entries[0]}, {head}",
                    entry,
                    _printed(cells, heads[0], NAMES[found[1]], int(found[2]), head),
                )
        elif heads[0].startswith("points"):
            problem = NAMES.get(entries[0], "advection" if "advection" in heads[0] else "")
            for head, entry in zip(heads[1:], entries[1:], strict=True):
                if problem and head.isdigit():
                    method = "PINN" if heads[0].endswith("PINN") else "PI-BLS"
                    numbers = values(cells, "accuracy", problem, method, int(head), "exact", "test", "relative_rmse")
                    yield f"{problem}, {method}, {head}", entry, statistics.median(numbers) if numbers else math.nan


def _printed(cells: Cells, quantity: str, problem: str, n: int, head: str) -> float:
    """Return what a table of the document should print in a column."""
    if head == "PI-BLS published":
        return published().accuracy(problem, "PI-BLS", "test", "relative_rmse") or math.nan
    kind, method, score = COLUMNS[head]
    kind, score = ("time", None) if quantity == "seconds, points" else (kind, score)
    numbers = values(cells, kind, problem, method, n, score, *QUANTITIES[quantity])
    return statistics.median(numbers) if numbers else math.nan


def known_numbers(found: Findings) -> list[float]:
    """Return all medians, extremes and published values of errors, and the ratios of choosing by the residual."""
    records = [*found.accuracy, *found.times, *found.parameters]
    errors = [found.error("accuracy", p, m, n) for p in TABLES.values() for n in published().sizes(p) for m in METHODS]
    known = [r.published for r in records if r.published is not None]
    known += [x for r in [*records, *errors] if (s := r.measured) for x in (s.median, s.worst, s.best)]
    known += [ratio for *_, ratio in found.choices if ratio]
    for problem in TABLES.values():
        for kind, method, score in COLUMNS.values():
            summary = found.error(kind, problem, method, score=score).measured
            known += [summary.median, summary.worst, summary.best] if summary else []
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--profile", choices=("quick", "full"), default="quick")
    options = parser.parse_args()
    console = Console()
    found = Findings.of(options.out, options.profile)
    cells: Any = found.book.cells
    document = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    # The document is about the study that comes with the library.
    told: Any = stored().cells
    pairs = [*of_page((options.out / "report.html").read_text(encoding="utf-8"), cells), *of_document(document, told)]
    wrong = [(where, printed, value) for where, printed, value in pairs if not same(printed, value)]
    for where, printed, value in wrong:
        console.print(f"{where}: printed {printed}, cells say {value:.4g}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    study = readme[readme.index("## The paper, run again") :].split("\n## ")[0]
    prose = "\n".join(line for line in f"{document}\n{study}".splitlines() if not line.startswith("|"))
    known = known_numbers(found)
    loose = [text for text in NUMBER.findall(prose) if not any(same(text, value) for value in known)]
    console.print(
        f"{len(pairs)} numbers of tables compared, {len(wrong)} differ; in sentences, not of a table: {loose}"
    )
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
