"""The report of a study: verdicts, tables, figures, files and the page."""

from __future__ import annotations

import csv
import math
import platform
import random
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internals import (
    METHODS,
    METRICS,
    PROBLEMS,
    Duel,
    Findings,
    Ledger,
    Record,
    Setting,
    Store,
    claims,
    draw_coverage,
    draw_error_curves,
    draw_graphs,
    draw_maps,
    draw_overview,
    errata,
    held,
    machine,
    number,
    own_numbers,
    pictures,
    plan,
    render,
    report,
    shown,
    spread_words,
    summarise,
    tally,
    write_files,
    write_report,
)
from internals import findings as findings_module
from paper_report_helpers import PAPER, cell, made_up_cells, spec, statement, store_cells
from pibls.errors import FileFormatError, InputError

VOID = {"meta", "img", "br"}
FIGURES = [
    "overview",
    "figure-coverage",
    *(f"figure-{n}" for n in ("1", "2", "3", "4", "5", "6a", "6b", "6c", "6d", "7", "8")),
]


class Page(HTMLParser):
    """Checks that tags close in order, and collects names, links, words, and the rows of every table."""

    def __init__(self, markup):
        super().__init__()
        self.open, self.names, self.links, self.sources, self.words, self.tables = [], [], [], [], [], {}
        self.feed(markup)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []
        if tag == "table":
            self.tables[self.names[-1]] = []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] = " ".join(f"{self.rows[-1][-1]} {data}".split())

    @property
    def rows(self):
        return self.tables[self.names[-1]]

    @property
    def text(self):
        return " ".join("".join(self.words).split())


def findings(cells, profile="quick"):
    return Findings(Ledger.of(cells), PAPER, profile)


def told(cells, profile="quick"):
    """The page about some cells, without figures."""
    return Page(render(findings(cells, profile), {}))


@pytest.fixture(scope="module")
def cells():
    return made_up_cells()


@pytest.fixture(scope="module")
def found(cells):
    return findings(cells)


@pytest.fixture(scope="module")
def book(found):
    return found.book


@pytest.fixture(scope="module")
def page(found):
    """All that was made up, also what a quick study would not run."""
    return Page(render(found, {}))


@pytest.fixture(scope="module")
def built(tmp_path_factory, cells):
    out = tmp_path_factory.mktemp("study")
    store_cells(out, cells)
    path = write_report(out, "full")
    return out, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_stored():
    """What comes with the library is left aside."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (report, findings_module):
            patch.setattr(module, "stored", lambda: Ledger(()))
        yield


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@given(st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=30))
def test_summary_is_that_of_numpy(values):
    found = summarise(values)
    assert found.median == pytest.approx(np.median(values), rel=1e-14)
    assert (found.best, found.worst, found.count) == (min(values), max(values), len(values))
    high = summarise(values, better="high")
    assert (high.best, high.worst) == (max(values), min(values))


def test_a_failed_run_counts_as_the_worst():
    assert summarise([1.0, math.nan, 2.0]).worst == math.inf
    assert summarise([1.0, math.nan, 2.0]).median == 2.0
    assert summarise([1.0, math.nan, math.nan, 2.0]).median == math.inf
    assert summarise([0.5, math.nan, 0.9], better="high").worst == -math.inf
    assert summarise([]) is None


def record(published, measured, quantity, **rest):
    where = {"table": "6", "problem": "advection", "method": "PINN", "part": "test", "n_train": 30, **rest}
    summary = None if measured is None else summarise([measured])
    return Record(quantity=quantity, published=published, measured=summary, **where)


@pytest.mark.parametrize(
    ("metric", "measured", "verdict"),
    [
        ("rmse", 0.49, "beat"),
        ("rmse", 0.51, "reproduce"),
        ("rmse", 2.0, "reproduce"),
        ("rmse", 2.01, "miss"),
        ("mse", 0.24, "beat"),
        ("mse", 0.26, "reproduce"),
        ("relative_mse", 3.9, "reproduce"),
        ("relative_mse", 4.1, "miss"),
        ("mae", math.inf, "miss"),
    ],
)
def test_verdict_at_the_edges_of_the_rule(metric, measured, verdict):
    assert record(1.0, measured, metric).verdict == verdict


@pytest.mark.parametrize(
    ("quantity", "published", "measured", "verdict"),
    [
        ("r2", 0.99, 0.999, "beat"),
        ("r2", 0.99, 0.97, "reproduce"),
        ("r2", 0.99, 0.9, "miss"),
        ("r2", 0.9, 0.5, "miss"),
        ("reduction", 99.0, -5.0, "miss"),
        ("factor", 100.0, 30.0, "miss"),
        ("factor", 100.0, 250.0, "beat"),
        ("mae", 0.0, 0.0, "reproduce"),
        ("mae", 0.0, 1e-9, "miss"),
        ("mae", 1.0, None, ""),
        ("mae", None, 1.0, ""),
    ],
)
def test_verdicts_of_scores_ratios_and_what_is_not_there(quantity, published, measured, verdict):
    assert record(published, measured, quantity).verdict == verdict


@given(st.floats(1e-8, 1e8), st.floats(1e-8, 1e8))
def test_the_rule_sees_only_ratios(published, scale):
    for factor in (0.3, 1.5, 3.0):
        plain = record(1.0, factor, "rmse").verdict
        assert record(published * scale, factor * published * scale, "rmse").verdict == plain


@pytest.mark.parametrize(
    ("values", "verdict", "times"),
    [([0.1, 0.2, 0.9], "beat", 2), ([0.1, 0.9, 3.0], "reproduce", 2), ([0.1, 3.0, 5.0], "miss", 2)],
)
def test_a_verdict_says_of_how_many_seeds_it_is_true(values, verdict, times):
    record = Record("6", "advection", "PINN", "test", "mae", 30, 1.0, summarise(values))
    assert (record.verdict, record.held) == (verdict, times)
    assert held([record, replace(record, published=None)]) == (times, 3)


def test_a_tally_counts_every_published_number_once():
    records = [record(1.0, measured, "mae") for measured in (0.1, 1.0, 1.5, 9.0, None)] + [record(None, 1.0, "mae")]
    counts = {"published": 5, "beat": 1, "reproduce": 2, "miss": 1, "at or below": 2}
    assert tally(records) == counts
    assert own_numbers([replace(records[0], problem="poisson_square"), records[1]]) == records[1:2]


@given(st.floats(1e-300, 1e300))
def test_numbers_keep_three_digits(value):
    assert float(number(value)) == pytest.approx(value, rel=5.1e-3)
    assert len(number(value)) <= 9


def test_numbers_that_are_none():
    assert [number(v) for v in (0.0, math.nan, -math.inf)] == ["0", "–", "−∞"]
    assert shown(1.0, "r2") == "1.00"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((), "median [worst] over seeds"),
        ((3, 10), "median [worst] over seeds"),
        ((1, 1), "one seed"),
        ((1, 10), "median [worst] over seeds, without brackets one seed"),
    ],
)
def test_one_seed_is_no_median(counts, words):
    records = [replace(record(None, 1.0, "mae"), measured=summarise([1.0] * count)) for count in counts]
    assert spread_words([*records, record(None, None, "mae")]) == words


def test_what_a_cell_holds_is_escaped():
    versions = {"a & <b>": "<script>alert(1)</script>"}
    markup = render(
        findings([cell("solve", "advection", "solve", 30, 0, versions=versions, extra={"status": "<x>"})]), {}
    )
    assert "<script>" not in markup
    assert "<x>" not in markup
    page = Page(markup)
    assert ["cells: a & <b>", "<script>alert(1)</script>"] in page.tables["table-machine"]
    assert "<x>" in page.words


def test_heads_of_tables_span_their_columns(built):
    head = built[1].partition('id="table-6-test"')[2].partition("</thead>")[0]
    assert head.count('scope="colgroup" colspan="2"') == len(METHODS)
    assert head.count('rowspan="2"') == 1
    assert {len(row) for row in Page(built[1]).tables["table-6-test"][2:]} == {1 + 2 * len(METHODS)}


def test_records_hold_the_medians_of_the_cells(found, cells):
    records = found.accuracy
    assert len(records) == len(PROBLEMS) * 2 * len(METRICS) * len(METHODS)
    for one in records[:: len(records) // 40]:
        values = [
            c[one.part][one.quantity]
            for c in cells
            if (c["kind"], c["score"]) == ("accuracy", "exact")
            and (c["problem"], c["method"], c["n_train"]) == (one.problem, one.method, one.n_train)
        ]
        assert one.measured.median == pytest.approx(np.median(values), rel=1e-14)
        assert one.n_train == PAPER.table_size(one.problem)
        assert one.published == PAPER.accuracy(one.problem, one.method, one.part, one.quantity)


def test_parameters_are_counted_and_compared(found, page):
    records = {(r.problem, r.n_train, r.method, r.quantity): r for r in found.parameters}
    factor = records["poisson_star", 100, "PI-BLS", "factor"]
    assert factor.measured.median == pytest.approx(34222 / 235)
    assert factor.verdict == "reproduce"
    reduction = records["poisson_star", 100, "PI-BLS", "reduction"]
    assert reduction.measured.median == pytest.approx(100 * (1 - 235 / 34222))
    assert records["advection", 20, "PINN", "parameters"].verdict == ""
    assert records["poisson_star", 100, "PI-BLS", "parameters"].measured.median == 235
    assert "The PINN as selected has 145.63 to 145.63 times as many" in page.text
    assert "it has fewer in none of the 4 rows" in page.text


def test_counts_are_written_as_integers():
    few = [
        cell("accuracy", "poisson_square", method, 50, 0, score="exact", parameters=count)
        for method, count in (("PI-ELM", 3), ("BPI-ELM", 23), ("PI-BLS", 100))
    ]
    rows = {row[0]: row[1:] for row in told(few).tables["table-10-poisson_square"]}
    assert rows["50"][-2:] == ["3", "23"]
    assert rows["50"][3] == "100 reproduce"
    assert rows["60"][-2:] == ["not run", "not run"]


def test_times_per_point_are_times_over_points(found):
    records = {(r.problem, r.method, r.quantity): r for r in found.times}
    whole, share = (records["poisson_star", "PINN", name].measured for name in ("seconds", "seconds per point"))
    assert share.median == pytest.approx(whole.median / 500)
    assert records["advection", "PI-BLS", "seconds"].verdict == "beat"
    assert records["advection", "PINN", "seconds"].verdict == "reproduce"


def test_speed_is_that_of_the_same_fits(page):
    row = next(row for row in page.tables["table-speed"] if row[0] == "advection, N = 30")
    # Seconds, search and fit, evaluations and error of PINN, what it ran on, then PI-BLS, and how much faster it is.
    assert row[1:4] == ["1.00e-2 [ 1.00e-2 ]", "2.51 [ 3.01 ]", "30000 [ 30000 ]"]
    assert row[5] == "a GPU"
    assert row[6:8] == ["1.00e-2 [ 1.00e-2 ]", "3.01 [ 4.01 ]"]
    assert row[9] == "one core of a machine"
    assert row[-2:] == ["1", "0.8"]


def test_solvers_of_search_and_final_fit_are_compared():
    cells = [
        cell(
            "accuracy",
            "advection",
            "PI-ELM",
            30,
            seed,
            score="exact",
            test={"relative_rmse": a},
            extra={"as_searched": b},
        )
        for seed, (a, b) in enumerate([(3.0, 2.0), (1.0, 1.0), (1.0, 2.0)])
    ]
    assert told(cells).tables["table-solvers"][1] == ["advection, PI-ELM", "1.00", "0.500", "1.50", "3"]
    assert "different solvers" not in told([]).text


def test_growth_is_shown_beside_the_formula(page):
    rows = {row[0]: row[3:] for row in page.tables["table-1"]}
    assert rows["PINN"] == ["1", "1.00", "2.00", "2", "2.00", "3.00"]
    assert "points: 100, 200, 400; width: 100, 200, 400" in page.text
    assert any("not run" in row[-1] for row in told([]).tables["table-1"])


def test_the_wider_space_is_beside_the_paper_s(page, book):
    row = next(row for row in page.tables["table-wider"] if row[0] == "advection, N = 30")
    expected = book.select(kind="beyond", problem="advection", score="residual").summary("test", "relative_rmse")
    assert row[5].startswith(number(expected.median))
    assert row[6:] == ["sin 4", "PI-BLS, wider space"]


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ((65, 65), "PI-BLS, wider space"),
        ((0, 65), "wider space, 1 of 2 with feature nodes only"),
        ((0, 0), "wider space, all with feature nodes only"),
    ],
)
def test_networks_without_enhancement_nodes_are_called_so(nodes, name):
    cells = [
        cell(
            "beyond",
            "advection",
            "PI-BLS",
            30,
            i,
            score="exact",
            settings={"activation": "sin", "enhancement_nodes": n},
        )
        | {"test": {"relative_rmse": 1e-7}}
        for i, n in enumerate(nodes)
    ]
    assert told(cells).tables["table-wider"][2][-1] == name
    figure = draw_overview(findings(cells))
    assert name in [text.get_text() for text in figure.axes[0].get_yticklabels()]


def test_choice_by_residual_is_compared_by_medians(found):
    (choice,) = (c for c in found.choices if (c[0].problem, c[0].method) == ("advection", "PI-ELM"))
    exact, residual, ratio = choice
    assert ratio == pytest.approx(residual.measured.median / exact.measured.median)
    largest = max((c for c in found.choices if c[2]), key=lambda c: c[2])
    where = f"by {number(largest[2])} in the worst of them"
    assert where in Page(render(found, {})).text
    assert findings([]).choices[0][2] is None
    assert "It was not run." in told([]).text


def accuracy(problem, n, errors, seeds=1):
    return [
        cell("accuracy", problem, method, n, seed, score="exact", test={"relative_rmse": value})
        for method, value in errors.items()
        for seed in range(seeds)
    ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (3.9, "worse than PI-ELM (3900 times higher, lower on 0 of 8 seeds)."),
        (1.05e-3, "level with PI-ELM (1.05 times higher, lower on 0 of 8 seeds)."),
    ],
)
def test_a_baseline_that_wins_is_said_to_win_and_by_how_much(error, words):
    cells = accuracy("advection", 30, {"PI-BLS": error, "PI-ELM": 1e-3, "PINN": 10.0}, seeds=8)
    page = told(cells)
    assert "advection: PI-ELM has the lowest median, 1.00e-3." in page.text
    assert f"PI-BLS is {words}" in page.text.replace("seeds) .", "seeds).")
    assert page.tables["table-claims"][1][1] == "refuted"
    assert page.tables["table-winners"][2][-2:] == ["PI-ELM", "PI-BLS"]


def test_where_pi_bls_is_worst_the_page_says_so():
    cells = accuracy("advection", 5, {"PI-BLS": 6.7, "PI-ELM": 9.0, "PINN": 0.5})
    cells += accuracy("advection", 10, {"PI-BLS": 0.58, "PI-ELM": 0.25}, seeds=2)
    cells += accuracy("advection", 15, {"PI-BLS": 1e-3, "PI-ELM": 2e-3})
    cells += accuracy("advection", 20, {"PI-BLS": 1e-3})
    page = told(cells)
    assert [own.n_train for own, _ in findings(cells).defeats("advection")] == [5, 10]
    zero = "worse than the zero function, whose error is 1; the lowest is that of PINN, 0.500."
    assert f"N = 5: 6.70 (one seed), {zero}" in page.text
    assert "N = 10: 0.580, the largest of the 2 methods; the lowest is that of PI-ELM, 0.250." in page.text
    assert "Where PI-BLS has the largest median" in page.text
    assert (
        "Where PI-BLS has the largest median"
        not in told(accuracy("advection", 15, {"PI-BLS": 1e-3, "PI-ELM": 2e-3})).text
    )


def test_timed_fits_with_other_settings_than_those_of_the_tables_are_counted():
    fits = accuracy("advection", 30, {"PI-BLS": 1e-3}, seeds=2)
    same = [cell("time", "advection", "PI-BLS", 30, seed) for seed in range(2)]
    other = cell("time", "advection", "PI-BLS", 30, 1, settings={"feature_groups": 21})
    assert "timed fits" not in told([*fits, *same]).text
    assert "Of 2 timed fits 1 have other settings" in told([*fits, same[0], other]).text


def test_gaps_between_points_are_told_for_the_worst_seed():
    errors = [1e-6, 1e-3, 1e-5]
    cells = [
        cell("accuracy", "advection", "PI-BLS", 30, i, score="exact", test={"relative_rmse": e})
        for i, e in enumerate(errors)
    ]
    lengths, worst, at_worst = findings(cells).gaps
    points = np.sort(Setting("advection", 30, 1).points.interior[:, 0])
    assert at_worst == pytest.approx(max(points[0], 1 - points[-1], np.diff(points).max()))
    assert (worst, lengths.count) == (1e-3, 3)
    assert findings(cells[:1]).gaps is None


def test_settings_that_cannot_be_fitted_are_counted(page):
    for problem, table, count in (
        ("advection", "table-2", 0),
        ("poisson_star", "table-3", 243),
        ("diffusion_reaction", "table-4", 243),
    ):
        row = next(row for row in page.tables[table] if row[0] == "PI-BLS")
        settings = math.prod(len(values) for values in PAPER.space(problem, "PI-BLS").values())
        assert row[2:] == [str(settings), str(count)]
    assert "243 of the 729 settings of PI-BLS for diffusion–reaction" in page.text
    assert "none of the 243 settings of PI-BLS for advection" in page.text


def test_shares_inside_of_bands_are_those_of_the_cells(page, book):
    rows = {row[0]: row[1:] for row in page.tables["table-coverage"]}
    assert rows["Poisson, star domain, N = 100"] == ["77", "3, 2", "1.30e-2 [ 1.35e-2 ]", "0.875", "96.2 %", "92 %"]
    assert rows["diffusion–reaction, N = 100"] == ["not run"]
    figure = draw_coverage(book)
    band, calibration = figure.axes
    np.testing.assert_array_equal(band.get_lines()[-1].get_ydata(), 0.5 * np.linspace(0, 1, 5))
    np.testing.assert_array_equal(calibration.get_lines()[1].get_ydata(), [0.5, 0.7, 0.8, 0.9, 0.9625, 0.99])
    alone = draw_coverage(book.select(problem="poisson_star"))
    assert not alone.axes[0].axison
    assert draw_coverage(Ledger(())) is None


def test_theorems_are_counted_over_all_models(page, book):
    models = len(book.select(kind="theorems", method="PI-BLS"))
    rows = {tuple(row[:2]): row[2:] for row in page.tables["table-theorems"][1:]}
    assert len(rows) == 5 + 2
    assert rows["stability", "PI-BLS"][1:3] == [str(models), str(models)]
    assert rows["no descent", "PI-BLS"][1:3] == [str(models), "0"]
    assert rows["no descent", "PI-ELM"][3] == "1.50 [ 1.50 ]"
    assert rows["stability", "PI-BLS"][-1] == "0.250"


@pytest.mark.parametrize(
    ("lower", "seeds", "medians", "word"),
    [
        (10, 10, (1.0, 2.0), "better"),
        (0, 10, (2.0, 1.0), "worse"),
        (6, 10, (1.0, 2.0), "level"),  # the sign test is not sure
        (10, 10, (1.0, 1.05), "level"),  # within a factor of 1.1
        (3, 3, (1.0, 2.0), "better"),  # too few seeds for the test
        (1, 3, (1.0, 2.0), "level"),  # medians and seeds disagree
    ],
)
def test_two_methods_are_level_by_size_or_by_the_sign_test(lower, seeds, medians, word):
    assert Duel("advection", 30, "PI-BLS", "PINN", medians, lower, seeds).word == word


def test_claims_are_held_against_what_came_out():
    cells = accuracy("advection", 30, {"PI-BLS": 1e-3, "PI-ELM": 1e-2, "PINN": 0.5, "BPI-ELM": 0.2}, seeds=8)
    first, *rest = claims(findings(cells))
    assert first.verdict == "confirmed"
    assert "better than PINN by a factor of 500" in first.plain
    assert {claim.verdict for claim in rest} <= {"confirmed", "refuted", "depends", "not run"}


def test_machine_is_named_without_the_files_of_linux(monkeypatch, tmp_path, book):
    monkeypatch.setattr("pibls.paper.made._CPU", tmp_path / "nothing")
    facts = machine(book)
    assert facts["processor"] in (platform.processor(), platform.machine())
    assert facts["numpy"] == np.__version__
    assert facts["cells: numpy"] == "2.0.0"
    same = [{**one, "versions": {"numpy": np.__version__}} for one in book.cells]
    assert "cells: numpy" not in machine(Ledger.of(same))


def test_error_curves_show_medians_and_published_values(found):
    cells = found.book.select(kind="accuracy", problem="advection", score="exact")
    figure = draw_error_curves(found, "advection")
    assert len(figure.axes) == 6
    lines = {line.get_label(): line for line in figure.axes[4].get_lines()}
    assert figure.axes[4].get_title() == "RMSE, test points"
    for method in ("PI-BLS", "PI-ELM", "BPI-ELM"):
        expected = [
            cells.select(method=method, n_train=n).summary("test", "rmse").median for n in PAPER.sizes("advection")
        ]
        np.testing.assert_allclose(lines[method].get_ydata(), expected)
    stars = [line for line in figure.axes[4].get_lines() if line.get_marker() == "*"]
    assert [float(star.get_ydata()[0]) for star in stars] == [7.0573e-04, 4.6290e-03, 6.5297e-01, 1.0680e00]


def test_error_curves_leave_out_what_has_no_logarithm():
    values = {20: 0.0, 25: 1e-3, 30: math.nan}
    cells = [
        cell("accuracy", "advection", "PI-BLS", n, 0, score="exact", train=dict.fromkeys(("mse", "rmse", "mae"), v))
        for n, v in values.items()
    ]
    figure = draw_error_curves(findings(cells), "advection")
    line = figure.axes[0].get_lines()[0]
    np.testing.assert_array_equal(np.isnan(line.get_ydata()), [True, False, True])
    assert draw_error_curves(findings([]), "advection") is None


def test_graphs_show_what_the_cells_hold(book):
    drawn = pictures(book.select(kind="curve", problem="advection"))
    assert list(drawn) == list(METHODS)
    figure = draw_graphs(drawn, "x")
    exact, first = figure.axes[0].get_lines()[:2]
    np.testing.assert_array_equal(exact.get_ydata(), drawn["PI-BLS"]["exact"])
    np.testing.assert_array_equal(first.get_ydata(), drawn["PI-BLS"]["predicted"])
    np.testing.assert_array_equal(figure.axes[2].get_lines()[0].get_ydata(), drawn["PI-BLS"]["residual"])


def test_maps_of_an_exact_method_have_a_scale(book):
    item = pictures(book.select(kind="curve", problem="poisson_square"))["PI-BLS"]
    exact = {**item, "predicted": item["exact"], "residual": np.zeros_like(item["exact"])}
    figure = draw_maps({"PI-BLS": exact}, statement("poisson_square"))
    error = figure.axes[3].get_images()[0]
    np.testing.assert_array_equal(error.get_array(), np.zeros_like(item["exact"]))


def test_maps_share_a_scale_in_each_row(book):
    drawn = pictures(book.select(kind="curve", problem="diffusion_reaction"))
    figure = draw_maps(drawn, statement("diffusion_reaction"))
    columns = len(drawn) + 1
    for row in range(1, 3):
        images = [figure.axes[row * columns + i].get_images()[0] for i in range(1, columns)]
        assert len({image.get_clim() for image in images}) == 1
    np.testing.assert_array_equal(figure.axes[0].get_images()[0].get_array(), drawn["PI-BLS"]["exact"])


def test_overview_without_numbers_is_no_figure():
    assert draw_overview(findings([])) is None


def test_page_is_whole_and_needs_no_network(built):
    out, markup = built
    page = Page(markup)
    assert len(set(page.names)) == len(page.names)
    assert {link.removeprefix("#") for link in page.links} <= set(page.names)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert not re.search(r"https?://(?!www\.w3\.org)", re.sub(r"base64,[^\"]*", "", markup))
    assert set(FIGURES) <= set(page.names)
    tables = {f"table-{n}-{part}" for n in ("6", "7a", "7b", "8") for part in ("test", "train")}
    tables |= {*(f"table-{n}" for n in "123459"), *(f"table-10-{problem}" for problem in PROBLEMS)}
    tables |= {
        "table-residual",
        "table-coverage",
        "table-theorems",
        "table-solve",
        "table-wider",
        "table-verdicts",
        "table-errata",
        "table-machine",
        "table-winners",
    }
    assert tables <= set(page.names)
    assert (out / "report.html").stat().st_size < 10_000_000


def numbers_in(table):
    """Yield every number of a nested table of the paper."""
    for value in table.values() if isinstance(table, dict) else table:
        if isinstance(value, dict | list):
            yield from numbers_in(value)
        elif not isinstance(value, str):
            yield value


def test_page_shows_every_published_number_and_every_erratum(built):
    words = " ".join(Page(built[1]).words)
    known = [f"{value:.4e}" for value in numbers_in(PAPER.values["accuracy"])]
    known += [f"{value:.2f}" if value < 1000 else str(value) for value in numbers_in(PAPER.values["parameters"])]
    for total, share in (pair for times in PAPER.values["seconds"].values() for pair in times.values()):
        known += [f"{total:.4f}", f"{share:.2e}"]
    assert len(known) == 216
    assert [value for value in known if value.removesuffix(".00") not in words] == []
    assert len(errata()) == 18
    for row in errata():
        assert all(row[entry] in words for entry in ("subject", "printed", "why", "done"))
    assert {"beat", "reproduce", "miss"} <= set(Page(built[1]).words)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_there_as_png_and_pdf(built, name):
    png, pdf = (built[0] / "figures" / f"{name}.{ending}" for ending in ("png", "pdf"))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")


def test_files_hold_every_number(built, cells):
    errors = rows_of(built[0] / "csv" / "errors.csv")
    planned = {one.key for stage in plan("full") for task in stage for one in task.specs}
    told = [c for c in cells if spec(c).key in planned]
    assert 0.8 * len(cells) < len(told) < len(cells)  # PINNs are not chosen by the residual
    assert len(errors) == sum(len(c["train"]) + len(c["test"]) for c in told if c["kind"] != "curve")
    curves = rows_of(built[0] / "csv" / "curves.csv")
    assert len([row for row in curves if row["problem"] == "poisson_square"]) == 2 * 11 * 11
    assert 0 < len([row for row in curves if row["problem"] == "poisson_star"]) < 2 * 11 * 11
    covered = rows_of(built[0] / "csv" / "coverage.csv")
    assert [row["inside"] for row in covered] == ["0.925", "1.0"] * 2
    growth = rows_of(built[0] / "csv" / "growth.csv")
    assert [(row["size"], row["exponent"]) for row in growth[:2]] == [("100", "2.0"), ("200", "2.0")]
    stored = {
        (r["kind"], r["problem"], r["method"], r["score"], r["n_train"], r["seed"], r["part"], r["metric"]): r
        for r in errors
    }
    some = next(c for c in cells if c["kind"] == "accuracy" and c["problem"] == "diffusion_reaction")
    key = ("accuracy", some["problem"], some["method"], some["score"], str(some["n_train"]), str(some["seed"]))
    assert float(stored[(*key, "test", "mae")]["value"]) == some["test"]["mae"]
    compared = rows_of(built[0] / "csv" / "comparison.csv")
    assert {row["table"] for row in compared} == {"6", "7a", "7b", "8", "10"}
    assert {row["verdict"] for row in compared} >= {"beat", ""}
    assert {row["table"] for row in rows_of(built[0] / "csv" / "times.csv")} == {"9"}


def test_files_do_not_depend_on_the_order_of_the_cells(tmp_path, cells):
    shuffled = list(cells)
    random.Random(1).shuffle(shuffled)
    contents = []
    for i, order in enumerate((cells, shuffled)):
        found = findings(order)
        paths = write_files(tmp_path / str(i), found.book, found.accuracy, [])
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_a_study_without_cells_says_so(tmp_path):
    Store(tmp_path).folder.mkdir()
    page = Page(write_report(tmp_path).read_text(encoding="utf-8"))
    assert page.words.count("not run") > 100
    assert "cells of this profile are not there" in page.text
    assert len(page.sources) == 3  # the architectures need no cells


def test_a_report_tells_cells_of_its_own_profile(tmp_path):
    """A PINN of the full profile does not enter the quick one."""
    both, full = (cell("accuracy", "advection", method, 30, 0, score="exact") for method in ("PI-BLS", "PINN"))
    store_cells(tmp_path, [both, full])
    assert Findings.of(tmp_path, "quick").book.cells == (both,)
    assert Findings.of(tmp_path, "full").book.cells == (both, full)


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(InputError, match="no folder 'cells'"):
        write_report(tmp_path / "nothing")


def test_a_damaged_cell_is_named(tmp_path):
    store_cells(tmp_path, [cell("accuracy", "advection", "PI-BLS", 30, 0, score="exact")])
    (path,) = Store(tmp_path).folder.glob("*.json")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FileFormatError, match=path.name):
        write_report(tmp_path)
