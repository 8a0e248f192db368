"""Cells that come with the library: read as they were written, shown where a profile has none, and marked."""

from __future__ import annotations

import lzma
import re

import pytest

from paper_report_helpers import cell, store_cells
from pibls.errors import FileFormatError
from pibls.paper import findings, report
from pibls.paper.cells import Store
from pibls.paper.findings import Findings
from pibls.paper.stored import Stored, completed, read_stored, stored, write_stored
from pibls.paper.tasks import plan


def accuracy(method, seed, error, **rest):
    where = {"n_train": 30, "seed": seed, "score": "exact", **rest}
    return cell("accuracy", "advection", method, test={"relative_rmse": error}, **where)


def shipped(*cells):
    return Stored("a machine", "2026-01-02", "abc1234", tuple({**c, "stored": True} for c in cells))


def test_what_is_written_is_read_with_seven_digits(tmp_path):
    own = accuracy("PINN", 3, 0.012345678901, extra={"curve": [1 / 3, float("inf")], "none": None})
    write_stored(tmp_path / "file", Stored("a machine", "2026-01-02", "abc1234", (own,)))
    found = read_stored((tmp_path / "file").read_bytes())
    assert (found.machine, found.date, found.commit) == ("a machine", "2026-01-02", "abc1234")
    (same,) = found.cells
    assert same["stored"]
    assert same["test"] == {"relative_rmse": 0.01234568}
    assert same["extra"] == {"curve": [0.3333333, float("inf")], "none": None}
    assert same["settings"] == own["settings"]


def test_a_file_of_another_version_is_refused():
    with pytest.raises(FileFormatError, match="another version"):
        read_stored(lzma.compress(b'{"format": 99, "cells": []}'))


def test_scores_near_one_keep_the_digits_of_their_distance_to_it(tmp_path):
    score = 1.0 - 1.2345678e-9
    write_stored(tmp_path / "file", Stored("", "", "", ({"test": {"r2": score, "mse": -0.0}},)))
    (cell,) = read_stored((tmp_path / "file").read_bytes()).cells
    assert 1.0 - cell["test"]["r2"] == pytest.approx(1.2345678e-9, rel=1e-6)
    assert cell["test"]["mse"] == 0.0


def test_seeds_that_were_not_run_come_from_the_library():
    own = [accuracy("PI-BLS", 0, 1.0)]
    told = completed(own, shipped(accuracy("PI-BLS", 0, 2.0), accuracy("PI-BLS", 1, 3.0)))
    assert [(c["seed"], c["test"]["relative_rmse"], "stored" in c) for c in told] == [(0, 1.0, False), (1, 3.0, True)]
    assert completed(own, shipped()) == own


def timed(problem, method, seconds, runs=1):
    return [cell("time", problem, method, 30, seed, seconds=seconds) for seed in range(runs)]


def test_times_of_a_problem_are_those_of_one_machine_for_all_methods():
    there = shipped(*timed("advection", "PI-BLS", 2.0, 3), *timed("advection", "PINN", 2.0, 3))
    other = shipped(*timed("poisson_star", "PI-BLS", 2.0))
    both = shipped(*there.cells, *other.cells)
    told = completed(timed("advection", "PI-BLS", 1.0, 2), both)
    assert {(c["kind"], c["problem"], c["method"], c["seconds"]) for c in told} == {
        ("time here", "advection", "PI-BLS", 1.0),
        ("time", "advection", "PI-BLS", 2.0),
        ("time", "advection", "PINN", 2.0),
        ("time", "poisson_star", "PI-BLS", 2.0),
    }
    # A study that timed every method is told by its own times, however few they are.
    own = [*timed("advection", "PI-BLS", 1.0, 2), *timed("advection", "PINN", 1.0)]
    assert completed(own, both) == [*own, *other.cells]


def test_the_page_marks_what_is_stored_and_says_where_it_is_from(tmp_path, monkeypatch):
    there = shipped(accuracy("PINN", 0, 0.25), accuracy("PINN", 1, 0.5), accuracy("PI-BLS", 1, 0.125))
    for module in (findings, report):
        monkeypatch.setattr(module, "stored", lambda: there)
    store_cells(tmp_path, [accuracy("PI-BLS", 0, 0.0625), accuracy("PI-ELM", 0, 0.75)])
    assert Store(tmp_path).folder.is_dir()
    found = Findings.of(tmp_path, "quick")
    counts = {m: found.error("accuracy", "advection", m).measured for m in ("PINN", "PI-BLS", "PI-ELM")}
    assert {m: (s.count, s.stored) for m, s in counts.items()} == {"PINN": (2, 2), "PI-BLS": (2, 1), "PI-ELM": (1, 0)}
    page = report.render(found, {})
    assert "computed on a machine, 2026-01-02 (commit abc1234)" in " ".join(page.split())
    marked = page.count('<span class="stored">stored</span>')
    assert marked >= 3
    assert found.book.stored == 3


def test_own_times_stand_beside_stored_ones(tmp_path, monkeypatch):
    there = shipped(*timed("advection", "PI-BLS", 2.0), *timed("advection", "PINN", 512.0))
    for module in (findings, report):
        monkeypatch.setattr(module, "stored", lambda: there)
    store_cells(tmp_path, timed("advection", "PI-BLS", 0.125, 3))
    found = Findings.of(tmp_path, "quick")
    assert [(r.problem, r.method, r.measured.median) for r in found.times_here] == [("advection", "PI-BLS", 0.125)]
    assert found.number("time", "advection", "PI-BLS", "seconds").measured.median == 2.0
    page = report.render(found, {})
    assert "256 ×" in page
    assert "0.125" in page.partition('id="table-here"')[2].partition("</figure>")[0]


def test_the_stored_study_lacks_nothing():
    told = {tuple(c.get(k) for k in ("kind", "problem", "method", "n_train", "seed", "score")) for c in stored().cells}
    wanted = {
        (s.kind, s.problem, s.method, s.n_train, s.seed, s.score)
        for stage in plan("full")
        for task in stage
        for s in task.specs
        if s.kind != "search" and (s.kind != "curve" or s.method == "PINN")
    }
    assert told == wanted


def test_no_cell_of_a_table_is_empty(tmp_path):
    Store(tmp_path).folder.mkdir()
    page = report.render(Findings.of(tmp_path, "quick"), {})
    entries = re.findall(r'<td class="(?!published)([^"]*)"[^>]*>(.*?)</td>|<td>(.*?)</td>', page, re.DOTALL)
    texts = [re.sub(r"<[^>]*>", "", words or plain).strip() for _, words, plain in entries]
    assert len(texts) > 500
    assert [text for text in texts if text in ("", "–", "not run")] == []


def test_seconds_of_plain_solves_are_those_of_one_machine(tmp_path, monkeypatch):
    solves = [cell("solve", "advection", "solve", 30, seed, seconds=2.0 - (seed < 2)) for seed in range(5)]
    monkeypatch.setattr(findings, "stored", lambda: shipped(*solves))
    store_cells(tmp_path, solves[:2])
    found = Findings.of(tmp_path, "quick")
    seconds, nodes = (found.number("solve", "advection", "solve", name).measured for name in ("seconds", "parameters"))
    assert (seconds.worst, seconds.count, seconds.stored) == (1.0, 2, 0)
    assert (nodes.count, nodes.stored) == (5, 3)
