"""The script that holds what is printed about the study against its cells finds what was changed by hand."""

from __future__ import annotations

import statistics

import pytest
from benchmarks.check_study import NUMBER, ROOT, loose_numbers, of_document, of_page, same, sentences, values

from paper_report_helpers import PAPER, made_up_cells
from pibls.paper.cells import Store
from pibls.paper.findings import Findings
from pibls.paper.ledger import Ledger
from pibls.paper.report import render


@pytest.fixture(scope="module")
def cells():
    return made_up_cells()


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("1.23e-4", 1.2349e-4, True),
        ("1.23e-4", 1.2351e-4, False),
        ("5e-7", 5.4e-7, True),
        ("0.500", 0.5004, True),
        ("0.500", 0.5006, False),
        ("34222", 34222.0, True),
        ("1 − 1.00e-5", 0.99999, True),
        ("1 − 1.00e-5", 0.99998, False),
    ],
)
def test_printed_digits_are_what_is_compared(printed, value, expected):
    assert same(printed, value) == expected


def test_every_error_of_the_page_is_compared_and_a_changed_one_found(cells):
    page = render(Findings(Ledger.of(cells), PAPER, "quick"), {})
    pairs = list(of_page(page, cells))
    assert len(pairs) > 4 * 2 * 9 * 4
    assert {where.split(",")[0] for where, *_ in pairs} >= {"table 6", "table 9", "table 10"}
    assert all(same(printed, value) for _, printed, value in pairs)
    where, printed, _ = pairs[0]
    changed = list(of_page(page.replace(f"<b>{printed}</b>", "<b>9.99e-9</b>", 1), cells))
    assert [w for w, shown, value in changed if not same(shown, value)] == [where]


def test_tables_of_a_document_are_compared(cells):
    median = statistics.median(values(cells, "accuracy", "advection", "PI-BLS", 30, "exact", "test", "relative_rmse"))
    table = "| problem, points | PI-BLS | wider space |\n|---|---|---|\n| advection, 30 | {:.1e} | 1e9 |\n".format
    right, wrong = (next(of_document(table(value), cells)) for value in (median, 2 * median))
    assert same(right[1], right[2])
    assert not same(wrong[1], wrong[2])


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    out = tmp_path_factory.mktemp("empty")
    Store(out).folder.mkdir()
    return Findings.of(out, "quick")


def test_numbers_of_sentences_are_those_of_the_study(shipped):
    text = sentences(*((ROOT / name).read_text("utf-8") for name in ("docs/reproduce.md", "README.md")))
    assert len(NUMBER.findall(text)) > 40
    assert loose_numbers(text, shipped) == []
    assert loose_numbers("beats 408 of 421, 6.7e-5 with 25 points, 6.9e-5 never", shipped) == ["421", "6.9e-5"]


def test_what_page_and_document_say_about_the_stored_study_is_in_its_cells(shipped):
    found = shipped
    cells = found.book.cells
    assert found.book.stored == len(cells) > 1500
    pairs = [*of_page(render(found, {}), cells), *of_document((ROOT / "docs/reproduce.md").read_text("utf-8"), cells)]
    assert {where.split(",")[0] for where, *_ in pairs} >= {"seconds", "parameters", "problem", "table 8", "table 9"}
    assert [pair for pair in pairs if not same(pair[1], pair[2])] == []
