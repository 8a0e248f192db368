"""Cells that come with the library: read as they were written, shown where a profile has none, and marked."""

from __future__ import annotations

import lzma

import pytest

from internals import (
    Findings,
    Ledger,
    Store,
    completed,
    findings,
    plan,
    read_stored,
    report,
    stored,
    twins,
    write_stored,
)
from paper_report_helpers import cell, store_cells
from pibls.errors import FileFormatError

MADE = {"command": "pibls reproduce --profile full", "commit": "abc1234", "machine": "a machine", "date": "2026-01-02"}


def accuracy(method, seed, error, **rest):
    where = {"n_train": 30, "seed": seed, "score": "exact", **rest}
    return cell("accuracy", "advection", method, test={"relative_rmse": error}, **where)


def shipped(*cells):
    return Ledger(tuple({**c, "made": MADE, "stored": True} for c in cells))


def test_what_is_written_is_read_with_seven_digits(tmp_path):
    own = accuracy("PINN", 3, 0.012345678901, extra={"curve": [1 / 3, float("inf")], "none": None})
    other = {**own, "seed": 4, "made": {**MADE, "commit": "def5678"}}
    write_stored(tmp_path / "file", Ledger(({**own, "made": MADE}, other)))
    found = read_stored((tmp_path / "file").read_bytes())
    assert found.origins == [{**MADE, "cells": 1}, {**MADE, "commit": "def5678", "cells": 1}]
    same, _ = found.cells
    assert same["made"] == MADE
    assert same["stored"]
    assert same["test"] == {"relative_rmse": 0.01234568}
    assert same["extra"] == {"curve": [0.3333333, float("inf")], "none": None}
    assert same["settings"] == own["settings"]


def test_a_file_of_another_version_is_refused():
    with pytest.raises(FileFormatError, match="another version"):
        read_stored(lzma.compress(b'{"format": 99, "cells": []}'))


def test_scores_near_one_keep_the_digits_of_their_distance_to_it(tmp_path):
    score = 1.0 - 1.2345678e-9
    write_stored(tmp_path / "file", Ledger(({"test": {"r2": score, "mse": -0.0}, "made": MADE},)))
    (cell,) = read_stored((tmp_path / "file").read_bytes()).cells
    assert 1.0 - cell["test"]["r2"] == pytest.approx(1.2345678e-9, rel=1e-6)
    assert cell["test"]["mse"] == 0.0


def test_the_seeds_of_a_number_have_one_source():
    own = [accuracy("PI-BLS", 0, 1.0)]
    more = shipped(accuracy("PI-BLS", 0, 2.0), accuracy("PI-BLS", 1, 3.0))
    assert completed(own, more) == list(more.cells)
    both = [*own, accuracy("PI-BLS", 1, 1.5)]
    assert completed(both, more) == both
    # What was not run at all is stored; other numbers of points, scores and methods are numbers of their own.
    other = shipped(*more.cells, accuracy("PI-BLS", 0, 9.0, n_train=20), accuracy("PINN", 0, 8.0))
    assert completed(both, other) == [*both, *other.cells[2:]]
    assert completed(own, shipped()) == own


def test_cells_that_are_stored_too_are_compared():
    own = [accuracy("PI-BLS", seed, 1.0) for seed in range(3)]
    there = shipped(accuracy("PI-BLS", 0, 1.001), accuracy("PI-BLS", 1, 1.5))
    assert twins(own, there) == (2, 1)
    assert twins([], there) == (0, 0)


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
    assert {m: (s.count, s.stored) for m, s in counts.items()} == {"PINN": (2, 2), "PI-BLS": (1, 0), "PI-ELM": (1, 0)}
    page = report.render(found, {})
    origin = page.partition('id="table-origins"')[2].partition("</figure>")[0]
    assert all(word in origin for word in MADE.values())
    assert '<span class="stored">2 of 2 stored</span>' in page
    assert found.book.stored == 2


def test_own_times_stand_beside_stored_ones(tmp_path, monkeypatch):
    there = shipped(*timed("advection", "PI-BLS", 2.0), *timed("advection", "PINN", 512.0))
    for module in (findings, report):
        monkeypatch.setattr(module, "stored", lambda: there)
    store_cells(tmp_path, timed("advection", "PI-BLS", 0.125, 3))
    found = Findings.of(tmp_path, "quick")
    assert [(r.problem, r.method, r.measured.median) for r in found.times_here] == [("advection", "PI-BLS", 0.125)]
    assert found.number("time", "advection", "PI-BLS", "seconds").measured.median == 2.0
    page = report.render(found, {})
    assert "0.125" in page.partition('id="table-here"')[2].partition("</figure>")[0]


def test_the_stored_study_has_the_tables_and_says_where_each_cell_is_from():
    told = {tuple(c.get(k) for k in ("kind", "problem", "method", "n_train", "seed", "score")) for c in stored().cells}
    specs = [s for stage in plan("full") for task in stage for s in task.specs]
    assert told <= {(s.kind, s.problem, s.method, s.n_train, s.seed, s.score) for s in specs}
    for problem, n in (("advection", 30), ("poisson_star", 100), ("diffusion_reaction", 100)):
        for method in ("PI-BLS", "PI-ELM", "BPI-ELM"):
            assert {("accuracy", problem, method, n, seed, "exact") for seed in range(10)} <= told
        assert sum(t[:4] == ("accuracy", problem, "PINN", n) for t in told) == 10
    for one in stored().cells:
        assert all(one["made"][key] for key in ("command", "commit", "machine", "date"))


def test_stored_numbers_over_seeds_are_of_one_commit_and_one_machine():
    sources, seeds = {}, set()
    for one in stored().cells:
        number = tuple(one.get(k) for k in ("kind", "problem", "method", "n_train", "score", "axis"))
        made = one["made"]["commit"], one["made"]["machine"]
        assert sources.setdefault(number, made) == made
        assert (*number, one["seed"]) not in seeds
        seeds.add((*number, one["seed"]))
