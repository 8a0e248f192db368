"""The sections of the report: what is read in which order, and the sentences that follow from the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pibls.studies.published import Published
from pibls.studies.report_accuracy import (
    accuracy_tables,
    choice_words,
    choices,
    gap_words,
    residual_table,
    winner_words,
    winners_table,
)
from pibls.studies.report_beyond import solve_table, theorem_table, wider_table, wider_words
from pibls.studies.report_costs import complexity_table, parameter_tables, speed_table, time_table
from pibls.studies.report_coverage import coverage_table, coverage_words
from pibls.studies.report_html import Image, Section
from pibls.studies.report_ledger import Ledger
from pibls.studies.report_machine import machine_table
from pibls.studies.report_protocol import metrics_table, scale_words, space_tables, training_words
from pibls.studies.report_records import Record, own_numbers, verdict_counts
from pibls.studies.report_table import Entry, Table, text
from pibls.studies.report_text import ERRATA, PROSE
from pibls.studies.report_verdict import RULE

__all__ = ["Findings", "sections"]


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything the page is made of."""

    book: Ledger
    published: Published
    accuracy: list[Record]
    times: list[Record]
    parameters: list[Record]
    images: Mapping[str, Image]


def sections(found: Findings) -> tuple[Section, ...]:
    """Return all sections in reading order."""
    book = found.book
    return (
        _summary(found),
        Section(
            "protocol",
            "Protocol, search spaces and measures (tables 1 to 5)",
            (
                *PROSE["protocol"],
                complexity_table(book),
                *space_tables(found.published),
                scale_words(),
                training_words(),
                metrics_table(),
            ),
        ),
        _problem(found, "advection", "Steady advection (table 6, figures 4 and 5)", ("4", "5")),
        _problem(found, "poisson_star", "Poisson on the star (table 7a, figure 6)", ("6a", "6c")),
        _problem(found, "poisson_square", "Poisson on the unit square (table 7b)", ("6b", "6d")),
        _problem(found, "diffusion_reaction", "Diffusion–reaction (table 8, figures 7 and 8)", ("7", "8")),
        Section(
            "times",
            "Training times (table 9)",
            (*PROSE["times"], time_table(found.times), speed_table(book, found.published)),
        ),
        Section("parameters", "Trainable parameters (table 10)", parameter_tables(found.parameters)),
        Section("residual", "Without the exact solution: score=residual", _residual_parts(found)),
        Section("theorems", "The four theorems", (*PROSE["theorems"], theorem_table(book))),
        Section(
            "coverage",
            "Noisy measurements: do the bands hold?",
            (coverage_words(), coverage_table(book, found.published), found.images["figure-coverage"]),
        ),
        Section("beyond", "Beyond the protocol: a wider space, and plain pb.solve", _beyond_parts(found)),
        Section("errata", "Where the paper's text is wrong or silent", (*PROSE["errata"], _errata_table())),
        Section("machine", "Machine, versions and files", (*PROSE["files"], machine_table(book))),
    )


def _problem(found: Findings, problem: str, title: str, figures: tuple[str, str]) -> Section:
    tables = accuracy_tables(found.accuracy, problem)
    words = gap_words(found.book, found.published) if problem == "advection" else ""
    images = (found.images[f"figure-{name}"] for name in figures)
    return Section(problem, title, (*tables, *([words] if words else []), *images))


def _summary(found: Findings) -> Section:
    parts = (_verdict_table(found), RULE, winners_table(found.accuracy), winner_words(found.accuracy))
    return Section("summary", "Summary", (*parts, found.images["overview"]))


def _verdict_table(found: Findings) -> Table:
    """Return how many published numbers are beaten, reproduced and missed; the square has none of its own."""
    groups = {
        "accuracy of PI-BLS (tables 6, 7a, 8)": [r for r in found.accuracy if r.method == "PI-BLS"],
        "accuracy of the baselines (tables 6, 7a, 8)": [r for r in found.accuracy if r.method != "PI-BLS"],
        "training times (table 9)": found.times,
        "parameters (table 10)": found.parameters,
    }
    groups["all"] = [record for group in groups.values() for record in group]
    counts = {words: verdict_counts(own_numbers(group)) for words, group in groups.items()}
    rows = tuple((*text(words), *(Entry(str(n)) for n in row.values())) for words, row in counts.items())
    heads = (text("numbers of the paper", *counts["all"]),)
    return Table("table-verdicts", "How the measured numbers compare with the published ones", heads, rows)


def _residual_parts(found: Findings) -> tuple[str | Table, ...]:
    by = choices(found.book, found.published)
    return (*PROSE["residual"], choice_words(by), residual_table(by, found.published))


def _beyond_parts(found: Findings) -> tuple[str | Table, ...]:
    wider = (wider_words(), wider_table(found.book, found.published))
    return (*wider, *PROSE["beyond"], solve_table(found.book, found.published))


def _errata_table() -> Table:
    heads = (text("subject", "printed", "why it cannot be meant", "done here"),)
    return Table("table-errata", "Printed and done", heads, tuple(text(*row) for row in ERRATA))
