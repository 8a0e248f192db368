"""Hold every number that the page prints about the study against the cells, by its name.

    python -m benchmarks.check_study OUT [--profile quick] [--mutations 100]

Every measured number of ``OUT/report.html`` carries the name of what it is: kind of cells, problem, method, number of
points, score, part, quantity and statistic over seeds. Here each is looked up again from the cells, by other code than
the report's, and compared to the digits that are printed; so is every published number, and each claim of the
conclusion. A number in a cell of a table that carries no name is an error. Exit status 1 if one differs or has no name.

``--mutations`` changes the page so often, by exchanging two numbers or changing a digit, and counts what is found.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console

from pibls.paper.conclusions import claims
from pibls.paper.findings import Findings
from pibls.paper.published import METHODS, published
from pibls.paper.setting import Setting
from pibls.report.metrics import METRICS

Cells = Sequence[dict[str, Any]]
NUMBER = re.compile(r"1 − [\d.e−-]+|[−-]?\d[\d.]*(?:e[−-]?\d+)?|∞")
# Tables whose numbers are settings, definitions or descriptions, and results of nothing.
UNMEASURED = (
    "table-2",
    "table-3",
    "table-4",
    "table-5",
    "table-errata",
    "table-machine",
    "table-origins",
    "table-claims",
)


class Page(HTMLParser):
    """The named numbers of a page, and the texts of table cells that hold a number without a name."""

    def __init__(self, page: str):
        super().__init__()
        self.named: list[tuple[str, str]] = []
        self.loose: list[tuple[str, str]] = []
        self.anchor, self.name = "", ""
        self.kind, self.text, self.depth = "", "", 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a cell or a named number."""
        values = dict(attrs)
        self.anchor = values.get("id") or self.anchor
        if "data-n" in values:
            self.name = values["data-n"] or ""
            self.named.append((self.name, ""))
        elif tag == "td":
            self.kind, self.text = values.get("class") or "", ""
        if (
            tag == "span"
            and not self.name
            and values.get("class") in ("stored", "verdict beat", "verdict reproduce", "verdict miss")
        ):
            self.kind = "aside"

    def handle_endtag(self, tag: str) -> None:
        """Close what is open."""
        if self.name:
            self.name = ""
        elif tag == "td":
            if NUMBER.search(self.text) and self.kind not in ("words", "published", "short"):
                self.loose.append((self.anchor, " ".join(self.text.split())))
            self.text = ""

    def handle_data(self, data: str) -> None:
        """Take up what a number or a cell says."""
        if self.name:
            self.named[-1] = (self.named[-1][0], self.named[-1][1] + data)
        elif self.kind != "aside":
            self.text += data


def same(printed: str, value: float) -> bool:
    """Whether a number is the printed one to all the digits that are printed."""
    text = printed.replace("−", "-").strip()
    if text in ("∞", "-∞"):
        return value == (math.inf if text == "∞" else -math.inf)
    if text.startswith("1 - "):
        return same(text[4:], 1 - value)
    try:
        number = float(text)
    except ValueError:
        return False
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - digits)
    return math.isclose(number, value, abs_tol=0.500001 * unit, rel_tol=1e-12)


def picked(cells: Cells, kind: str, problem: str, method: str, n: str | int, score: str | None) -> Cells:
    """Return the cells that are about this, by seed."""
    wanted = (kind, problem, method, int(n), score or None)
    found = [c for c in cells if (c["kind"], c["problem"], c["method"], c["n_train"], c["score"] or None) == wanted]
    return sorted(found, key=lambda cell: int(cell["seed"]))


def statistic(values: Sequence[float], which: str, *, high: bool = False) -> float:
    """Return the median of numbers or their worst or best; one that is none counts as the worst."""
    worst = -math.inf if high else math.inf
    numbers = [worst if math.isnan(value) else value for value in values]
    if which == "median":
        return statistics.median(numbers)
    return (min if (which == "worst") == high else max)(numbers)


def looked_up(name: str, cells: Cells, sizes: dict[str, int]) -> float:
    """Return what a number of this name should be; a name that nothing is known under raises."""
    first, *rest = name.split("|")
    return _RESOLVERS.get(first, _plain)(first, rest, cells, sizes)


def _errors(cells: Cells, problem: str, method: str, sizes: dict[str, int], score: str = "exact") -> dict[int, float]:
    found = picked(cells, "accuracy", problem, method, sizes[problem], score)
    return {c["seed"]: float(c["test"]["relative_rmse"]) for c in found}


def _plain(kind: str, rest: Sequence[str], cells: Cells, _: dict[str, int]) -> float:
    problem, method, n, score, part, quantity, which = rest
    found = picked(cells, kind, problem, method, n, score)
    if quantity == "seconds per point":
        return statistic([float(c["seconds"]) / int(n) for c in found], which)
    if quantity == "seconds and search":
        return statistic([float(c["seconds"]) + float(c["search_seconds"]) for c in found], which)
    values = [float((c[part] if part else c)[quantity]) for c in found]
    return statistic(values, which, high=quantity == "r2")


def _savings(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    problem, _, n, _, _, quantity, _ = rest
    large, small = (
        statistics.median(float(c["parameters"]) for c in picked(cells, "accuracy", problem, method, n, "exact"))
        for method in ("PINN", "PI-BLS")
    )
    return 100.0 * (1.0 - small / large) if quantity == "reduction" else large / small


def _duel(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, method, what = rest
    own, other = (_errors(cells, problem, m, sizes) for m in ("PI-BLS", method))
    common = own.keys() & other.keys()
    medians = statistics.median(own.values()), statistics.median(other.values())
    return {
        "ratio": medians[1] / medians[0],
        "inverse": medians[0] / medians[1],
        "lower": float(sum(own[seed] < other[seed] for seed in common)),
        "seeds": float(len(common)),
    }[what]


def _growth(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    method, axis, which = rest
    (cell,) = (c for c in cells if (c["kind"], c["method"], c.get("axis")) == ("complexity", method, axis))
    sizes, seconds = cell["extra"]["sizes"], cell["extra"]["seconds"]
    a, b = (0, 1) if which == "small" else (-2, -1)
    return math.log(seconds[b] / seconds[a]) / math.log(sizes[b] / sizes[a])


def _solvers(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, method, which = rest
    found = picked(cells, "accuracy", problem, method, sizes[problem], "exact")
    ratios = [
        c["test"]["relative_rmse"] / c["extra"]["as_searched"] for c in found if c["extra"].get("as_searched", 0) > 0
    ]
    return float(len(ratios)) if which == "count" else statistic(ratios, which)


def _choice(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, method = rest
    exact, residual = (_errors(cells, problem, method, sizes, score) for score in ("exact", "residual"))
    return statistics.median(residual.values()) / statistics.median(exact.values())


def _speed(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, what = rest
    costs = []
    for method in ("PINN", "PI-BLS"):
        found = picked(cells, "accuracy", problem, method, sizes[problem], "exact")
        costs.append(statistics.median(c["seconds"] + (c["search_seconds"] if what == "all" else 0.0) for c in found))
    return float(costs[0] / costs[1])


def _theorem(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    check, method, which = rest
    found = [c["theorems"] for c in cells if (c["kind"], c["method"]) == ("theorems", method)]
    reports = [theorems[check] for theorems in found if check in theorems]
    if which in ("models", "held"):
        return float(len(reports) if which == "models" else sum(r["holds"] for r in reports))
    if which == "printed":
        return float(statistics.median(r["measured"] / r["paper_bound"] for r in reports if r["paper_bound"] > 0))
    return statistic([r["measured"] / r["sharp_bound"] for r in reports], which)


def _coverage(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    problem, what, *which = rest
    (cell,) = (c for c in cells if (c["kind"], c["problem"]) == ("coverage", problem))
    runs = cell["extra"]
    if what == "error":
        return statistic(runs["errors"], which[0])
    values = {
        "measurements": runs["measurements"],
        "noise": statistics.median(runs["noise"]),
        "inside": 100.0 * runs["coverage"][runs["levels"].index(0.95)],
        "lowest": 100.0 * min(runs["inside"]),
    }
    return float(values[what])


def _races(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    courses = [c["extra"]["course"] for c in cells if c["kind"] == "accuracy" and c["extra"].get("course")]
    pilots = [leaders for course in courses for leaders in course["pilots"].values()]
    scales = sum(leaders[-2]["settings"]["scale"] != leaders[-1]["settings"]["scale"] for leaders in pilots)
    settings = sum(course["leaders"][-2]["settings"] != course["leaders"][-1]["settings"] for course in courses)
    counts = {"pilots": len(pilots), "scales": scales, "settings": settings, "searches": len(courses)}
    return float(counts[rest[0]])


def _published(_: str, rest: Sequence[str], __: Cells, ___: dict[str, int]) -> float:
    """Return a number of the paper, from its data file."""
    kind, problem, method, n, score, part, quantity, *more = rest
    del score, more
    paper = published()
    if kind == "time":
        value = paper.seconds(problem, method, per_point=quantity == "seconds per point")
    elif kind == "savings" or quantity == "parameters":
        value = paper.parameters(problem, int(n), quantity if kind == "savings" else method)
    else:
        value = paper.accuracy(problem, method, part, quantity)
    return math.nan if value is None else value


def _judged(value: float, wanted: float, quantity: str) -> str:
    """Return the verdict on a number, by the rule that the page states."""
    limit = 4.0 if quantity in ("mse", "relative_mse", "r2") else 2.0
    if quantity in ("r2", "reduction"):
        whole = 1.0 if quantity == "r2" else 100.0
        value, wanted = whole - value, whole - wanted
    elif quantity == "factor":
        value, wanted = wanted, value
    ratio = 1.0 if value == wanted else value / wanted if wanted else math.inf
    return "beat" if ratio < 1 / limit else "reproduce" if ratio <= limit else "miss"


def _verdicts(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    group, column = rest
    count = 0
    for name in _compared(group):
        wanted = _published("", [*name.split("|")], cells, sizes)
        if math.isnan(wanted):
            continue
        kind, *where, quantity = name.split("|")
        if column == "published":
            count += 1
            continue
        seeds = _seeds(kind, where, quantity, cells)
        if not seeds:
            continue
        if column == "seeds":
            count += len(seeds)
            continue
        middle = statistic(seeds, "median", high=quantity in ("r2", "reduction", "factor"))
        verdict = _judged(middle, wanted, quantity)
        if column == "held":
            found = [_judged(value, wanted, quantity) for value in seeds]
            count += found.count(verdict) + (found.count("beat") if verdict == "reproduce" else 0)
        elif column == "at or below":
            count += middle >= wanted if quantity in ("r2", "reduction", "factor") else middle <= wanted
        else:
            count += verdict == column
    return float(count)


def _seeds(kind: str, where: Sequence[str], quantity: str, cells: Cells) -> list[float]:
    problem, method, n, score, part = where
    if kind == "savings":
        try:
            return [_savings("", [problem, method, n, score, part, quantity, "median"], cells, {})]
        except statistics.StatisticsError:
            return []
    found = picked(cells, kind, problem, method, n, score)
    if quantity == "seconds per point":
        return [float(c["seconds"]) / int(n) for c in found]
    return [float((c[part] if part else c)[quantity]) for c in found]


def _compared(group: str) -> Iterator[str]:
    """Yield the names of all numbers of a group that may have a published one."""
    paper = published()
    problems = ("advection", "poisson_star", "diffusion_reaction")
    for problem in problems:
        table, time = paper.table_size(problem), paper.time_size(problem)
        for method in METHODS:
            wanted = {"PI-BLS": method == "PI-BLS", "the baselines": method != "PI-BLS"}
            if group == "all" or any(group.startswith(f"accuracy of {who}") and yes for who, yes in wanted.items()):
                for part in ("test", "train"):
                    yield from (f"accuracy|{problem}|{method}|{table}|exact|{part}|{m}" for m in METRICS)
            if group == "all" or group.startswith("training times"):
                yield from (f"time|{problem}|{method}|{time}|||{q}" for q in ("seconds", "seconds per point"))
            if group == "all" or group.startswith("parameters"):
                yield from (f"accuracy|{problem}|{method}|{n}|exact||parameters" for n in paper.sizes(problem))
        if group == "all" or group.startswith("parameters"):
            for n in paper.sizes(problem):
                yield from (f"savings|{problem}|PI-BLS|{n}|||{q}" for q in ("reduction", "factor"))


def _gap(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    errors = _errors(cells, "advection", "PI-BLS", sizes)
    gaps = {}
    for seed in errors:
        x = [0.0, *sorted(Setting("advection", sizes["advection"], seed).points.interior[:, 0].tolist()), 1.0]
        gaps[seed] = max(b - a for a, b in pairwise(x))
    worst = max(errors, key=errors.__getitem__)
    values = {"count": len(gaps), "median": statistics.median(gaps.values()), "worst": max(gaps.values())}
    return float({**values, "error": errors[worst], "stretch": gaps[worst]}[rest[0]])


def _medians(cells: Cells, problem: str, method: str) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for cell in cells:
        if (cell["kind"], cell["problem"], cell["method"], cell["score"]) == ("accuracy", problem, method, "exact"):
            found.setdefault(cell["n_train"], []).append(float(cell["parameters"]))
    return {n: statistics.median(values) for n, values in found.items()}


def _larger(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    rows = [(p, n, m) for p in sizes for n, m in _medians(cells, p, "PI-BLS").items() if n in published().sizes(p)]
    above = [m > (published().parameters(p, n, "PI-BLS") or math.inf) for p, n, m in rows]
    return float(len(rows) if rest[0] == "rows" else sum(above))


def _factors(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    ratios = []
    for problem in sizes:
        large, small = (_medians(cells, problem, method) for method in ("PINN", "PI-BLS"))
        ratios += [large[n] / small[n] for n in published().sizes(problem) if n in large and n in small]
    return float({"min": min(ratios), "max": max(ratios), "count": len(ratios)}[rest[0]])


def _choices(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    pairs = [(problem, method) for problem in sizes for method in ("PI-BLS", "PI-ELM", "BPI-ELM")]
    known = [(p, m) for p, m in pairs if _errors(cells, p, m, sizes, "residual") and _errors(cells, p, m, sizes)]
    ratios = [_choice("", pair, cells, sizes) for pair in known]
    return float({"median": statistics.median(ratios), "count": len(ratios), "worst": max(ratios)}[rest[0]])


def _nodes(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    counts = [float(c["parameters"]) for c in cells if (c["kind"], c["problem"]) == ("solve", rest[0])]
    return min(counts) if rest[1] == "min" else max(counts)


_RESOLVERS: dict[str, Callable[[str, Sequence[str], Cells, dict[str, int]], float]] = {
    "savings": _savings,
    "duel": _duel,
    "growth": _growth,
    "solvers": _solvers,
    "choice": _choice,
    "speed": _speed,
    "theorem": _theorem,
    "coverage": _coverage,
    "races": _races,
    "published": _published,
    "verdicts": _verdicts,
    "gap": _gap,
    "larger": _larger,
    "factors": _factors,
    "choices": _choices,
    "nodes": _nodes,
}


def wrong_numbers(page: str, found: Findings) -> Iterator[tuple[str, str, float]]:
    """Yield the named numbers of a page that the cells do not have, with what they should be."""
    cells: Any = found.book.cells
    sizes = {problem: found.paper.table_size(problem) for problem in {cell["problem"] for cell in cells}}
    known: dict[str, float] = {}
    told = claims(found)
    for name, printed in Page(page).named:
        if name.startswith("claim|"):
            number, which = name.split("|")[1:]
            if " ".join(printed.split()) != getattr(told[int(number)], which):
                yield name, printed, math.nan
            continue
        if name not in known:
            try:
                known[name] = looked_up(name, cells, sizes)
            except (KeyError, ValueError, IndexError, TypeError, ZeroDivisionError):
                known[name] = math.nan
        if not same(printed, known[name]):
            yield name, printed, known[name]


def nameless(page: str) -> list[tuple[str, str]]:
    """Return table cells with a number that has no name, published numbers and descriptions aside."""
    return [(anchor, text) for anchor, text in Page(page).loose if anchor not in UNMEASURED]


def mutated(page: str, rng: random.Random) -> str:
    """Exchange two named numbers of a page that differ, or change a digit of one."""
    places = [m for m in re.finditer(r'(<span data-n="[^"]*">)([^<]*)(</span>)', page) if re.search(r"\d", m[2])]
    while True:
        a, b = sorted(rng.sample(places, 2), key=lambda match: match.start())
        if rng.random() < 0.5:
            if a[2] != b[2]:
                return page[: a.start(2)] + b[2] + page[a.end(2) : b.start(2)] + a[2] + page[b.end(2) :]
        else:
            digits = [i for i, letter in enumerate(a[2]) if letter.isdigit()]
            i = rng.choice(digits)
            other = rng.choice([d for d in "0123456789" if d != a[2][i]])
            return page[: a.start(2) + i] + other + page[a.start(2) + i + 1 :]


def caught(page: str, found: Findings, count: int, seed: int = 0) -> int:
    """Return how many of so many mutations are found."""
    rng = random.Random(seed)
    return sum(any(True for _ in wrong_numbers(mutated(page, rng), found)) for _ in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--profile", choices=("quick", "full"), default="quick")
    parser.add_argument("--mutations", type=int, default=0)
    options = parser.parse_args()
    console = Console()
    found = Findings.of(options.out, options.profile)
    page = (options.out / "report.html").read_text(encoding="utf-8")
    wrong, loose = list(wrong_numbers(page, found)), nameless(page)
    for name, printed, value in wrong:
        console.print(f"{name}: printed {printed}, cells say {value:.4g}")
    for anchor, text in loose:
        console.print(f"without a name, in {anchor}: {text}")
    console.print(f"{len(Page(page).named)} named numbers looked up, {len(wrong)} differ; {len(loose)} without a name")
    if options.mutations:
        console.print(f"{caught(page, found, options.mutations)} of {options.mutations} mutations found")
    raise SystemExit(bool(wrong or loose))


if __name__ == "__main__":
    main()
