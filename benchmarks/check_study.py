"""Hold every number that page and documents print about the study against the cells that it was computed from.

    python -m benchmarks.check_study OUT [--profile quick]

The tables of errors, times and parameters of ``OUT/report.html`` are read back, and medians and worst values computed
again from the cells, by other code than the report's. The tables of ``docs/reproduce.md`` are held against the same
medians. Numbers of two digits or more in its sentences about the results and in the README's, which no table places,
should be one of the medians, extremes, ratios, counts or published values of the study. Exit status 1 if a number of a
table differs, or one of a sentence is none of these.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rich.console import Console

from pibls.report.metrics import METRICS
from pibls.paper.cells import Store
from pibls.paper.coverage import NOISE
from pibls.paper.findings import Findings
from pibls.paper.ledger import PROBLEMS
from pibls.paper.published import METHODS, published
from pibls.paper.records import held, own_numbers, tally
from pibls.paper.stored import stored

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
NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?e[-−]?\d+|\d+\.\d+|\d\d+)(?!\w|\.\d)")
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


def sentences(document: str, readme: str) -> str:
    """Return what document and README say about the results, without tables and code."""
    told = document[document.index("## What comes out") : document.index("PINNs get the care")]
    study = readme[readme.index("## The paper, run again") :].split("\n## ")[0]
    lines = (line for line in f"{told}\n{study}".splitlines() if not line.startswith(("|", "make ")))
    return "\n".join(lines)


def loose_numbers(text: str, found: Findings) -> list[str]:
    """Return the numbers of sentences that the study does not have."""
    known = [*known_numbers(found), *known_counts(found), *known_ratios(found)]
    return [number for number in NUMBER.findall(text) if not any(same(number, value) for value in known)]


def known_counts(found: Findings) -> Iterator[float]:
    """Yield how many numbers, seeds, settings, points and cores there are, and shares of solutions in bands."""
    yield from map(float, re.findall(r"\b\d+", stored().machine))
    own = [record for record in found.accuracy if record.method == "PI-BLS"]
    yield from (*tally(own_numbers(own)).values(), *held(own_numbers(own)))
    for problem in TABLES.values():
        yield from (*published().sizes(problem), *found.settings(problem, "PI-BLS"))
        chosen = [cell for cell in found.book.cells if (cell["kind"], cell["problem"]) == ("beyond", problem)]
        yield from (len(chosen), sum(cell["settings"]["enhancement_nodes"] == 0 for cell in chosen))
    for cell in found.book.select(kind="coverage").cells:
        yield from (len(cell["extra"]["inside"]), 100 * NOISE, 95)
        yield 100 * cell["extra"]["coverage"][cell["extra"]["levels"].index(0.95)]


def known_ratios(found: Findings) -> Iterator[float]:
    """Yield how much slower PINNs are and how much larger, and what choosing by the residual and other solvers cost."""
    cells: Any = found.book.cells
    ratios = [ratio for *_, ratio in found.choices if ratio]
    yield from (statistics.median(ratios), max(ratios))
    for problem in TABLES.values():
        n, place = published().table_size(problem), ("exact", "test", "relative_rmse")
        slow, fast = (
            values(cells, "time", problem, method, published().time_size(problem), None, "seconds")
            for method in ("PINN", "PI-BLS")
        )
        yield statistics.median(slow) / statistics.median(fast)
        for method in ("PI-BLS", "PI-ELM", "BPI-ELM"):
            exact = values(cells, "accuracy", problem, method, n, *place)
            residual = values(cells, "accuracy", problem, method, n, "residual", *place[1:])
            yield max(b / a for a, b in zip(exact, residual, strict=True))
    for record in found.parameters:
        yield from (record.measured.values if record.quantity == "factor" and record.measured else ())
    for _, summary in found.solvers:
        yield from (summary.median, summary.best, summary.worst)


def known_numbers(found: Findings) -> list[float]:
    """Return all medians, extremes and published values of errors, times and counts of parameters."""
    records = [*found.accuracy, *found.times, *found.parameters]
    errors = [found.error("accuracy", p, m, n) for p in TABLES.values() for n in published().sizes(p) for m in METHODS]
    known = [r.published for r in records if r.published is not None]
    known += [x for r in [*records, *errors] if (s := r.measured) for x in (s.median, s.worst, s.best)]
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
    text = sentences(document, (ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as empty:
        Store(Path(empty)).folder.mkdir()
        loose = loose_numbers(text, Findings.of(Path(empty), "quick"))
    count = len(NUMBER.findall(text))
    console.print(
        f"{len(pairs)} numbers of tables compared, {len(wrong)} differ; {count} of sentences, unknown: {loose}"
    )
    raise SystemExit(bool(wrong or loose))


if __name__ == "__main__":
    main()
