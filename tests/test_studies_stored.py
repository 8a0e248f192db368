"""Cells that come with the library: read as they were written, shown where a profile has none, and marked."""

from __future__ import annotations

import lzma

import pytest

from pibls.errors import FileFormatError
from pibls.studies import findings, report
from pibls.studies.cells import Store
from pibls.studies.findings import Findings
from pibls.studies.stored import Stored, completed, read_stored, write_stored
from studies_report_helpers import cell, store_cells


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


def test_seeds_that_were_not_run_come_from_the_library():
    own = [accuracy("PI-BLS", 0, 1.0)]
    told = completed(own, shipped(accuracy("PI-BLS", 0, 2.0), accuracy("PI-BLS", 1, 3.0)), "quick")
    assert [(c["seed"], c["test"]["relative_rmse"], "stored" in c) for c in told] == [(0, 1.0, False), (1, 3.0, True)]
    assert completed(own, None, "quick") == own


def test_a_network_trained_shortly_gives_way_to_one_of_the_full_study():
    own, full = [accuracy("PINN", 0, 0.5)], shipped(accuracy("PINN", 0, 0.1), accuracy("PINN", 1, 0.2))
    assert [c["test"]["relative_rmse"] for c in completed(own, full, "quick")] == [0.1, 0.2]
    assert [c["test"]["relative_rmse"] for c in completed(own, full, "full")] == [0.5, 0.2]
    # Where the full study has nothing, it stays.
    assert completed(own, shipped(accuracy("PINN", 0, 0.1, n_train=25)), "quick")[0] == own[0]


def test_times_are_those_of_one_machine():
    own = [cell("time", "advection", "PI-BLS", 30, seed, seconds=1.0) for seed in range(2)]
    there = shipped(*(cell("time", "advection", "PI-BLS", 30, seed, seconds=2.0) for seed in range(3)))
    for profile, seconds in (("quick", [2.0] * 3), ("full", [1.0] * 2)):
        assert [c["seconds"] for c in completed(own, there, profile)] == seconds


def test_times_of_a_problem_are_those_of_one_machine_for_all_methods():
    own = [cell("time", "advection", method, 30, 0, seconds=1.0) for method in ("PI-BLS", "PINN")]
    there = shipped(*(cell("time", name, "PI-BLS", 30, 0, seconds=2.0) for name in ("advection", "poisson_star")))
    told = {(c["problem"], c["method"]): c["seconds"] for c in completed(own, there, "quick")}
    assert told == {("advection", "PI-BLS"): 1.0, ("advection", "PINN"): 1.0, ("poisson_star", "PI-BLS"): 2.0}


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
    assert "computed on a machine, 2026-01-02, at abc1234" in " ".join(page.split())
    # A short training at another number of points is told apart.
    store_cells(tmp_path, [accuracy("PINN", 0, 0.75, n_train=5)])
    assert Findings.of(tmp_path, "quick").short("advection") == [5]
    assert "PINN with 5 points is of the quick profile" in report.render(Findings.of(tmp_path, "quick"), {})
    assert found.short("advection") == []
    marked = page.count('<span class="stored">stored</span>')
    assert marked >= 3
    assert found.book.stored == 3
