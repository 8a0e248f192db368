"""Hold every number that the page prints about the study against the cells, by its name.

    python -m benchmarks.check_study OUT [--profile quick] [--mutations 100]
    python -m benchmarks.check_study --stored --mutations 100     # the page of the cells that come with the library

Every measured number of ``OUT/report.html`` carries the name of what it is. Here each is looked up again from the
cells, by other code than the report's (:mod:`check_numbers`), and compared to the digits that are printed; so is every
published number, verdict and winner. A number in a cell of a table that carries no name is an error, and so is a word
beside the names that the report would not write. Exit status 1 if anything differs.

``--mutations`` changes the page so often and counts what is found: it exchanges two numbers or two names of methods, or
changes a digit, anywhere in the text.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.check_numbers import looked_up, same
from pibls.paper.cells import Store
from pibls.paper.conclusions import claims
from pibls.paper.findings import Findings
from pibls.paper.ledger import label
from pibls.paper.published import METHODS
from pibls.paper.report import render

NUMBER = re.compile(r"1 − [\d.e−-]+|[−-]?\d[\d.]*(?:e[−-]?\d+)?|∞")
METHOD = re.compile("|".join(sorted((re.escape(label(method)) for method in METHODS), key=len, reverse=True)))
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
HERE = ("table-machine",)  # what is told of the machine that writes the page, another on every one


class Page(HTMLParser):
    """The named numbers of a page, table cells that hold a number without a name, and all words beside the names."""

    def __init__(self, page: str):
        super().__init__()
        self.named: list[tuple[str, str]] = []
        self.loose: list[tuple[str, str]] = []
        self.words: list[str] = []
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
            return
        if self.anchor not in HERE:
            self.words += data.split()
        if self.kind != "aside":
            self.text += data


@dataclass(frozen=True, eq=False)
class Check:
    """The cells that a page is held against; what was looked up once is known."""

    found: Findings
    known: dict[str, float | str] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of points of the tables, per problem."""
        return {problem: self.found.paper.table_size(problem) for problem in self.found.book.distinct("problem")}

    def number(self, name: str) -> float | str:
        """Return what a name stands for."""
        if name not in self.known:
            cells: Any = self.found.book.cells
            self.known[name] = looked_up(name, cells, self.sizes)
        return self.known[name]

    @cached_property
    def verdicts(self) -> list[str]:
        """The verdicts on the claims."""
        return [claim.verdict for claim in claims(self.found)]

    def wrong(self, page: str) -> Iterator[tuple[str, str, float | str]]:
        """Yield the names of a page whose numbers or words the cells do not have, with what they should be."""
        for name, printed in Page(page).named:
            if name.startswith("claim|"):
                value: float | str = self.verdicts[int(name.split("|")[1])]
            else:
                value = self.number(name)
            if not same(printed, value, name):
                yield name, printed, value

    def strange(self, page: str) -> list[tuple[str, str]]:
        """Return what a page says beside its names and the report would not, and what that would say instead."""
        drawn = tuple(re.findall(r'<figure id="([\w-]+)">\s*<img', page))
        ours, theirs = (Page(text).words for text in (page, self._written(drawn)))
        if len(ours) != len(theirs):
            return [(f"{len(ours)} words", f"{len(theirs)} words")]
        return [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]

    def _written(self, drawn: tuple[str, ...]) -> str:
        if drawn not in self._pages:
            self._pages[drawn] = render(self.found, dict.fromkeys(drawn, b""))
        return self._pages[drawn]

    @cached_property
    def _pages(self) -> dict[tuple[str, ...], str]:
        return {}

    def faults(self, page: str) -> Iterator[str]:
        """Yield all that is wrong with a page, in words."""
        yield from (f"{name}: printed {printed}, cells say {value}" for name, printed, value in self.wrong(page))
        yield from (f"printed {ours}, the report says {theirs}" for ours, theirs in self.strange(page))
        yield from (f"without a name, in {anchor}: {text}" for anchor, text in nameless(page))


def nameless(page: str) -> list[tuple[str, str]]:
    """Return table cells with a number that has no name, published numbers and descriptions aside."""
    return [(anchor, text) for anchor, text in Page(page).loose if anchor not in UNMEASURED]


def mutated(page: str, rng: random.Random) -> str:
    """Exchange two numbers or two methods anywhere in the text of a page, or change a digit."""
    start, end = page.index("<body>"), page.index('id="table-machine"')
    texts = [m for m in re.finditer(r">([^<]+)", page) if start < m.start() < end]
    pattern = rng.choice([NUMBER, NUMBER, METHOD])
    places = [(m.start(1) + n.start(), n[0]) for m in texts for n in pattern.finditer(m[1]) if n[0] != "∞"]
    while True:
        (i, a), (j, b) = sorted(rng.sample(places, 2))
        if pattern is METHOD or rng.random() < 0.5:
            if a != b:
                return page[:i] + b + page[i + len(a) : j] + a + page[j + len(b) :]
        else:
            k = i + rng.choice([k for k, letter in enumerate(a) if letter.isdigit()])
            return page[:k] + rng.choice([d for d in "0123456789" if d != page[k]]) + page[k + 1 :]


def escaped(page: str, check: Check, count: int, seed: int = 0) -> list[str]:
    """Return those of so many mutated pages in which nothing wrong is found."""
    rng = random.Random(seed)
    pages = (mutated(page, rng) for _ in range(count))
    return [changed for changed in pages if not any(True for _ in check.faults(changed))]


def of_stored(profile: str) -> tuple[Findings, str]:
    """Return findings and page of the cells that come with the library alone."""
    with tempfile.TemporaryDirectory() as folder:
        Store(Path(folder)).folder.mkdir()
        found = Findings.of(Path(folder), profile)
    return found, render(found, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--profile", choices=("quick", "full"), default="quick")
    parser.add_argument("--mutations", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.stored == (options.out is not None):
        parser.error("name the folder of a study, or --stored")
    if options.stored:
        found, page = of_stored(options.profile)
    else:
        found = Findings.of(options.out, options.profile)
        page = (options.out / "report.html").read_text(encoding="utf-8")
    console, check = Console(), Check(found)
    faults = list(check.faults(page))
    for fault in faults:
        console.print(fault, markup=False)
    console.print(f"{len(Page(page).named)} names looked up, {len(Page(page).words)} words read: {len(faults)} faults")
    if options.mutations:
        left = len(escaped(page, check, options.mutations, options.seed))
        console.print(f"{options.mutations - left} of {options.mutations} mutations found")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
