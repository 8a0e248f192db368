"""The script that looks every number of the page up again, by its name, finds what was changed by hand."""

from __future__ import annotations

import random

import pytest
from benchmarks.check_numbers import same
from benchmarks.check_study import Check, Page, escaped, mutated, nameless, of_stored

from internals import Findings, Ledger, render
from paper_report_helpers import PAPER, made_up_cells


@pytest.fixture(scope="module")
def found():
    return Findings(Ledger.of(made_up_cells()), PAPER, "quick")


@pytest.fixture(scope="module")
def page(found):
    return render(found, {})


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
        ("∞", float("inf"), True),
        ("–", float("nan"), False),
    ],
)
def test_printed_digits_are_what_is_compared(printed, value, expected):
    assert same(printed, value) == expected


def test_every_number_of_the_page_has_a_name_and_is_right(found, page):
    names = [name for name, _ in Page(page).named]
    kinds = {name.partition("|")[0] for name in names}
    assert kinds >= {"accuracy", "time", "beyond", "solve", "savings", "duel", "growth", "speed", "theorem", "coverage"}
    assert kinds >= {"choice", "choices", "verdicts", "claim", "published", "gap", "larger", "factors", "nodes"}
    assert kinds >= {"standing", "comparisons", "best", "reductions", "checks", "verdict", "held", "count"}
    assert list(Check(found).faults(page)) == []


def test_two_methods_exchanged_are_found(found, page):
    first, second = (f'"accuracy|advection|{method}|30|exact|test|rmse|median"' for method in ("PI-BLS", "PI-ELM"))
    changed = page.replace(first, "@").replace(second, first).replace("@", second)
    assert {name.split("|")[2] for name, *_ in Check(found).wrong(changed)} == {"PI-BLS", "PI-ELM"}


def test_a_word_beside_the_names_is_found(found, page):
    assert Check(found).strange(page.replace("uniform in angle", "uniform in area", 1)) == [("area", "angle")]
    assert len(Check(found).strange(page.replace("uniform in angle", "uniform", 1))) == 1


def test_a_number_without_a_name_is_found(page):
    changed = page.replace('<td class="measured"><b><span data-n=', '<td class="measured"><b><span data-x=', 1)
    assert len(nameless(changed)) == 1


def test_mutations_are_found(found, page):
    assert escaped(page, Check(found), 12) == []
    rng = random.Random(1)
    assert len({mutated(page, rng) for _ in range(10)}) == 10


def test_the_page_of_the_stored_study_is_right():
    stored, page = of_stored("quick")
    assert list(Check(stored).faults(page)) == []
