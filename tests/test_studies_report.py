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

from pibls.errors import FileFormatError, InputError
from pibls.report.metrics import METRICS
from pibls.studies import report, report_machine
from pibls.studies.cells import Store
from pibls.studies.published import METHODS
from pibls.studies.report import write_report
from pibls.studies.report_accuracy import choices, winner_words
from pibls.studies.report_beyond import theorem_table, wider_table
from pibls.studies.report_costs import complexity_table
from pibls.studies.report_coverage import coverage_table, draw_coverage
from pibls.studies.report_curves import draw_error_curves, draw_overview
from pibls.studies.report_files import write_files
from pibls.studies.report_ledger import PROBLEMS, Ledger, summarise
from pibls.studies.report_machine import machine_table
from pibls.studies.report_maps import draw_graphs, draw_maps, pictures
from pibls.studies.report_records import Record, accuracy_records, own_numbers, parameter_records, tally, time_records
from pibls.studies.report_table import Entry, Table, number, score, text
from pibls.studies.report_text import ERRATA
from pibls.studies.report_verdict import compare
from pibls.studies.tasks import plan
from studies_report_helpers import PAPER, cell, made_up_cells, spec, statement, store_cells

VOID = {"meta", "img", "br"}
FIGURES = ["overview", "figure-coverage", *(f"figure-{n}" for n in ("4", "5", "6a", "6b", "6c", "6d", "7", "8"))]


class Page(HTMLParser):
    """Checks that tags close in order, and collects names, links and words."""

    def __init__(self, markup):
        super().__init__()
        self.open, self.names, self.links, self.sources, self.words = [], [], [], [], []
        self.feed(markup)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def cells():
    return made_up_cells()


@pytest.fixture(scope="module")
def book(cells):
    return Ledger.of(cells)


@pytest.fixture(scope="module")
def built(tmp_path_factory, cells):
    out = tmp_path_factory.mktemp("study")
    store_cells(out, cells)
    path = write_report(out)
    return out, path.read_text(encoding="utf-8")


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
    assert compare(1.0, summarise([measured]), metric).verdict == verdict


def test_verdicts_of_scores_and_ratios():
    assert compare(0.99, summarise([0.999]), "r2", better="high").verdict == "beat"
    assert compare(0.99, summarise([0.97]), "r2", better="high").verdict == "reproduce"
    assert compare(0.99, summarise([0.9]), "r2", better="high").verdict == "miss"
    assert compare(100.0, summarise([30.0]), "factor", better="high").verdict == "miss"
    assert compare(100.0, summarise([250.0]), "factor", better="high").verdict == "beat"
    assert compare(0.0, summarise([0.0]), "mae").verdict == "reproduce"
    assert compare(0.0, summarise([1e-9]), "mae").verdict == "miss"
    assert compare(1.0, None, "mae").verdict == "not run"
    assert compare(None, summarise([1.0]), "mae").verdict == ""


@given(st.floats(1e-8, 1e8), st.floats(1e-8, 1e8))
def test_the_rule_sees_only_ratios(published, scale):
    for factor in (0.3, 1.5, 3.0):
        plain = compare(1.0, summarise([factor]), "rmse").verdict
        assert compare(published * scale, summarise([factor * published * scale]), "rmse").verdict == plain


def test_a_tally_counts_every_published_number_once():
    found = [compare(1.0, summarise([m]), "mae") for m in (0.1, 1.0, 1.5, 9.0)]
    found += [compare(1.0, None, "mae"), compare(None, summarise([1.0]), "mae")]
    records = [Record("6", "advection", "PINN", "test", "mae", 30, comparison) for comparison in found]
    words = "5 published numbers: 1 beat, 2 reproduce, 1 miss, 1 not run; 2 at or below the published value."
    assert tally(records) == words
    assert own_numbers([replace(records[0], problem="poisson_square"), records[1]]) == records[1:2]


@given(st.floats(1e-300, 1e300))
def test_numbers_keep_three_digits(value):
    assert float(number(value)) == pytest.approx(value, rel=5.1e-3)
    assert len(number(value)) <= 9


def test_numbers_that_are_none():
    assert [number(v) for v in (0.0, math.nan, -math.inf)] == ["0", "–", "−∞"]
    assert score(1.0) == "1.00"


def test_table_markup_is_escaped_and_spans():
    table = Table("t", "caption", (text("a & b", columns=2),), ((*text("<x>"), Entry("1")),))
    page = Page(table.to_html())
    assert "a & b" in page.words
    assert "<x>" in page.words
    assert 'colspan="2"' in table.to_html()
    assert 'scope="colgroup"' in table.to_html()


def test_records_hold_the_medians_of_the_cells(book, cells):
    records = accuracy_records(book, PAPER)
    assert len(records) == len(PROBLEMS) * 2 * len(METRICS) * len(METHODS)
    for record in records[:: len(records) // 40]:
        values = [
            c[record.part][record.quantity]
            for c in cells
            if (c["kind"], c["score"]) == ("accuracy", "exact")
            and (c["problem"], c["method"], c["n_train"]) == (record.problem, record.method, record.n_train)
        ]
        assert record.comparison.measured.median == pytest.approx(np.median(values), rel=1e-14)
        assert record.n_train == PAPER.table_size(record.problem)


def test_parameters_are_counted_and_compared(book):
    records = {(r.problem, r.n_train, r.method, r.quantity): r for r in parameter_records(book, PAPER, "full")}
    factor = records["poisson_star", 100, "PI-BLS", "factor"].comparison
    assert factor.measured.median == pytest.approx(34222 / 235)
    assert factor.verdict == "reproduce"
    reduction = records["poisson_star", 100, "PI-BLS", "reduction"].comparison
    assert reduction.measured.median == pytest.approx(100 * (1 - 235 / 34222))
    assert records["advection", 20, "PINN", "parameters"].comparison.verdict == "not run"
    quick = {(r.problem, r.n_train, r.method, r.quantity): r for r in parameter_records(book, PAPER, "quick")}
    for method, quantity in (("PINN", "parameters"), ("PI-BLS", "factor"), ("PI-BLS", "reduction")):
        assert quick["poisson_star", 100, method, quantity].comparison.verdict == "not run"
    assert quick["poisson_star", 100, "PI-BLS", "parameters"].comparison.measured.median == 235


def test_times_per_point_are_times_over_points(book):
    found = {(r.problem, r.method, r.quantity): r.comparison for r in time_records(book, PAPER)}
    whole, share = (found["poisson_star", "PINN", name].measured for name in ("seconds", "seconds per point"))
    assert share.median == pytest.approx(whole.median / 500)
    assert found["advection", "PI-BLS", "seconds"].verdict == "beat"
    assert found["advection", "PINN", "seconds"].verdict == "reproduce"


def test_growth_is_shown_beside_the_formula(book):
    rows = {row[0].markup: [entry.markup for entry in row[3:]] for row in complexity_table(book).rows}
    assert rows["PINN"] == ["1", "2.00", "2", "3.00"]
    assert "not run" in complexity_table(Ledger(())).to_html()


def test_the_wider_space_is_beside_the_paper_s(book):
    row = wider_table(book, PAPER).rows[0]
    expected = book.select(kind="beyond", problem="advection", score="residual").summary("test", "relative_rmse")
    assert number(expected.median) in row[5].markup
    assert row[-1].markup == "sin 4"


def test_choice_by_residual_is_compared_by_medians(book):
    (found,) = (c for c in choices(book, PAPER) if (c.problem, c.method) == ("advection", "PI-ELM"))
    assert found.ratio == pytest.approx(found.by_residual.median / found.by_exact.median)
    assert choices(Ledger(()), PAPER)[0].ratio is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (2e-3, "<b>PI-ELM</b> has the lowest median error, 2.00 times below that of PI-BLS"),
        (1.05e-3, "<b>PI-ELM</b> and <b>PI-BLS</b> are level, with the lowest median errors"),
    ],
)
def test_a_baseline_that_wins_is_said_to_win(error, words):
    levels = {"PI-BLS": error, "PI-ELM": 1e-3, "PINN": 1.0}
    cells = [
        cell("accuracy", "advection", method, 30, 0, score="exact", test={"relative_rmse": value})
        for method, value in levels.items()
    ]
    assert winner_words(accuracy_records(Ledger.of(cells), PAPER)) == f"<ul><li>advection: {words}</li></ul>"


def test_shares_inside_of_bands_are_those_of_the_cells(book):
    rows = {row[0].markup: [entry.markup for entry in row[1:]] for row in coverage_table(book, PAPER).rows}
    shares = rows["Poisson, star domain, N = 100"]
    assert shares[:2] == ["77", "3, 2"]
    assert shares[2:] == ['<b>1.30e-2</b> <span class="worst">[1.35e-2]</span>', "0.875", "<b>96.2%</b>", "92%"]
    (absent,) = rows["diffusion–reaction, N = 100"]
    assert "(full)" in absent
    figure = draw_coverage(book)
    band, calibration = figure.axes
    np.testing.assert_array_equal(band.get_lines()[-1].get_ydata(), 0.5 * np.linspace(0, 1, 5))
    np.testing.assert_array_equal(calibration.get_lines()[1].get_ydata(), [0.5, 0.7, 0.8, 0.9, 0.9625, 0.99])
    alone = draw_coverage(book.select(problem="poisson_star"))
    assert not alone.axes[0].axison
    assert draw_coverage(Ledger(())) is None


def test_theorems_are_counted_over_all_models(book):
    table = theorem_table(book)
    models = len(book.select(kind="accuracy", method="PI-BLS"))
    found = {(row[0].markup, row[1].markup): row for row in table.rows}
    assert len(found) == 2 + 2 * 3
    assert found["stability", "PI-BLS"][3].markup == str(models)
    assert f">{models}<" in found["stability", "PI-BLS"][4].markup
    assert ">0<" in found["sensitivity", "PI-BLS"][4].markup
    assert "3.00" in found["sensitivity", "PI-BLS"][-1].markup
    assert found["physics consistency", "PI-ELM"][6].markup == "∞"


def test_a_bound_of_zero_is_used_up_by_anything():
    values = [{"measured": m, "paper_bound": 0.0, "sharp_bound": 0.0, "holds": m == 0.0} for m in (0.0, 1e-9, 0.0)]
    cells = [cell("accuracy", "advection", "PI-BLS", 30, i, theorems={"residual": v}) for i, v in enumerate(values)]
    (row,) = theorem_table(Ledger.of(cells)).rows
    assert [entry.markup for entry in row[3:4]] == ["3"]
    assert ">2<" in row[4].markup
    assert row[-1].markup == '<b>0</b> <span class="worst">[∞]</span>'


def test_machine_is_named_without_the_files_of_linux(monkeypatch, tmp_path, book):
    monkeypatch.setattr(report_machine, "_CPU", tmp_path / "nothing")
    monkeypatch.setattr(report_machine, "_PACKAGES", ("numpy", "a-package-that-is-not-there"))
    facts = {row[0].markup: row[1].markup for row in machine_table(book).rows}
    assert facts["processor"] in (platform.processor(), platform.machine())
    assert facts["numpy"] == np.__version__
    assert "a-package-that-is-not-there" not in facts
    assert facts["cells: numpy"] == "2.0.0"
    same = [{**one, "versions": {"numpy": np.__version__}} for one in book.cells]
    assert "cells: numpy" not in {row[0].markup for row in machine_table(Ledger.of(same)).rows}


def test_error_curves_show_medians_and_published_values(book):
    cells = book.select(kind="accuracy", problem="advection", score="exact")
    figure = draw_error_curves(cells, lambda *key: PAPER.accuracy("advection", *key), 30)
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
    figure = draw_error_curves(Ledger.of(cells), lambda *_: None, 30)
    line = figure.axes[0].get_lines()[0]
    np.testing.assert_array_equal(np.isnan(line.get_ydata()), [True, False, True])
    assert draw_error_curves(Ledger(()), lambda *_: None, 30) is None


def test_graphs_show_what_the_cells_hold(book):
    drawn = pictures(book.select(kind="curve", problem="advection"))
    assert [item.method for item in drawn] == list(METHODS)
    figure = draw_graphs(drawn, "x")
    exact, first = figure.axes[0].get_lines()[:2]
    np.testing.assert_array_equal(exact.get_ydata(), drawn[0].exact)
    np.testing.assert_array_equal(first.get_ydata(), drawn[0].predicted)
    np.testing.assert_array_equal(figure.axes[2].get_lines()[0].get_ydata(), drawn[0].residual)


def test_maps_of_an_exact_method_have_a_scale(book):
    item = pictures(book.select(kind="curve", problem="poisson_square"))[0]
    exact = replace(item, predicted=item.exact, residual=np.zeros_like(item.exact))
    figure = draw_maps([exact], statement("poisson_square"))
    error = figure.axes[3].get_images()[0]
    np.testing.assert_array_equal(error.get_array(), np.zeros_like(item.exact))


def test_maps_share_a_scale_in_each_row(book):
    drawn = pictures(book.select(kind="curve", problem="diffusion_reaction"))
    figure = draw_maps(drawn, statement("diffusion_reaction"))
    columns = len(drawn) + 1
    for row in range(1, 3):
        images = [figure.axes[row * columns + i].get_images()[0] for i in range(1, columns)]
        assert len({image.get_clim() for image in images}) == 1
    np.testing.assert_array_equal(figure.axes[0].get_images()[0].get_array(), drawn[0].exact)


def test_overview_without_numbers_is_no_figure():
    assert draw_overview([("advection", "PI-BLS", [], None)]) is None


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
    for row in ERRATA:
        assert all(entry in words for entry in row)
    assert {"beat", "reproduce", "miss", "not run"} <= set(Page(built[1]).words)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_there_as_png_and_pdf(built, name):
    png, pdf = (built[0] / "figures" / f"{name}.{ending}" for ending in ("png", "pdf"))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")


def test_files_hold_every_number(built, cells):
    errors = rows_of(built[0] / "csv" / "errors.csv")
    planned = {one.key for stage in plan("quick") for task in stage for one in task.specs}
    told = [c for c in cells if spec(c).key in planned]
    assert 0.8 * len(cells) < len(told) < len(cells)  # fewer seeds of PINN and sizes of the square than were made up
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
    assert {row["verdict"] for row in compared} >= {"beat", "not run", ""}
    assert {row["table"] for row in rows_of(built[0] / "csv" / "times.csv")} == {"9"}


def test_files_do_not_depend_on_the_order_of_the_cells(tmp_path, cells):
    shuffled = list(cells)
    random.Random(1).shuffle(shuffled)
    contents = []
    for i, order in enumerate((cells, shuffled)):
        book = Ledger.of(order)
        paths = write_files(tmp_path / str(i), book, accuracy_records(book, PAPER), [])
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_a_study_without_cells_says_so(tmp_path, monkeypatch):
    Store(tmp_path).folder.mkdir()
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    page = Page(write_report(tmp_path).read_text(encoding="utf-8"))
    assert page.words.count("not run") > 100
    assert {"(quick)", "(full)"} <= set(page.words)
    assert "pip install 'pibls[torch]'" in page.words
    assert not page.sources


def test_a_report_tells_cells_of_its_own_profile(tmp_path):
    """A PINN trained longer for the full profile does not enter the quick one."""
    quick, full = (
        cell("accuracy", "advection", "PINN", 30, 0, score="exact", test={"relative_rmse": value})
        for value in (1.25e-2, 1.25e-3)
    )
    store_cells(tmp_path, [quick], "quick")
    store_cells(tmp_path, [full], "full")
    assert report._stored(tmp_path, "quick")[0] == [quick]
    assert report._stored(tmp_path, "full")[0] == [full]


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(InputError, match="no folder 'cells'"):
        write_report(tmp_path / "nothing")


def test_a_damaged_cell_is_named(tmp_path):
    store_cells(tmp_path, [cell("accuracy", "advection", "PI-BLS", 30, 0, score="exact")])
    (path,) = Store(tmp_path).folder.glob("*.json")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FileFormatError, match=path.name):
        write_report(tmp_path)
