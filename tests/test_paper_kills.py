"""A study killed at random moments and started again ends with the files of one that was left alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def kills(monkeypatch):
    spec = importlib.util.spec_from_file_location("kills", ROOT / "benchmarks" / "kills.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kills", module)
    spec.loader.exec_module(module)
    return module


def test_files_of_a_killed_study_are_those_of_one_left_alone(kills, tmp_path):
    # One process: that several can be killed is tested with the runner.
    outcome = kills.survive(1, 0, tmp_path, workers=1)
    assert outcome.kills == 1
    assert outcome.different == ()
    numbers = kills.numbers(tmp_path / "alone")
    assert set(kills.UNTIMED) < set(numbers)
    assert all(content.count(b"\n") > 1 for name, content in numbers.items() if name in kills.UNTIMED)


def test_a_changed_number_is_seen_and_a_changed_time_is_not(kills, tmp_path):
    (tmp_path / "csv").mkdir()
    for name, rows in (("errors.csv", "value\n1.0\n"), ("seconds.csv", "seed,seconds\n0,1.0\n")):
        (tmp_path / "csv" / name).write_text(rows)
    before = kills.numbers(tmp_path)
    (tmp_path / "csv" / "seconds.csv").write_text("seed,seconds\n0,2.0\n")
    assert kills.numbers(tmp_path) == before
    (tmp_path / "csv" / "errors.csv").write_text("value\n2.0\n")
    assert kills.numbers(tmp_path).keys() == before.keys()
    assert kills.numbers(tmp_path) != before
