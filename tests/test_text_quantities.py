"""Quantities and convection in problem files, and at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pibls as pb
from pibls.cli import app
from pibls.text import read_text

# T = 20 + q/h + q/(2 k) (1 − x²)
BAR = """
unknowns = ["T"]
equations = "-div([k*T_x]) = q"

[parameters]
k = 2
q = 8

[domain]
shape = "interval"
x = [0, 1]

[[conditions]]
kind = "neumann"
value = 0
on = "left"

[[conditions]]
kind = "convection"
h = 4
ambient = 20
on = "right"

[quantities]
"""
NUMBERS = """
warmest = {maximum = "T"}
loss = {flow = "right"}
whole = {integral = "T - 20"}
half = {mean = "T", over = {shape = "interval", x = [0, 0.5]}}
slope = {value = "T_x", at = [0.5]}
"""


def test_a_solve_prints_the_numbers_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "bar.toml"
    path.write_text(BAR + NUMBERS)
    done = CliRunner().invoke(app, ["solve", str(path), "--json"])
    found = json.loads(done.stdout)["quantities"]
    exact = {"warmest": 24, "loss": 8, "whole": 2 + 4 / 3, "half": 22 + 2 - 2 / 12, "slope": -2}
    assert {name: entry["value"] for name, entry in found.items()} == pytest.approx(exact, abs=1e-5)
    assert all(0 <= entry["error"] < 1e-3 for entry in found.values())
    assert found["warmest"]["place"] == pytest.approx([0], abs=1e-6)
    assert "warmest          24 ± " in CliRunner().invoke(app, ["solve", str(path)]).stdout


def test_a_sweep_makes_a_column_of_each_number(tmp_path: Path) -> None:
    path, table = tmp_path / "bar.toml", tmp_path / "bars.csv"
    path.write_text(BAR + NUMBERS)
    done = CliRunner().invoke(app, ["sweep", str(path), "--set", "q=4,8", "--workers", "1", "--csv", str(table)])
    assert done.exit_code == 0, done.output
    head, *rows = [line.split(",") for line in table.read_text().splitlines()]
    column = head.index("warmest")
    assert [float(row[column]) for row in rows] == pytest.approx([22, 24], abs=1e-5)
    assert "warmest_error" in head
    assert "warmest" in done.stdout


def test_times_and_points_in_time_are_read() -> None:
    found = read_text(
        'unknowns = ["u"]\nequations = "u_t = -u"\n[time]\nt = [0, 2]\n'
        '[[conditions]]\nkind = "initial"\nvalue = 1\n'
        '[quantities]\nhalved = {first_time = "u < 0.5"}\nzero = {first_time = "u - 0.25"}\n'
    )
    solution = pb.solve(found.problem)
    halved, zero = (getattr(solution, own.kind)(own.subject).value for own in found.quantities.values())
    assert zero == pytest.approx(2 * halved, abs=1e-6)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('a = {minimun = "T"}', "does not say what it is. Did you mean 'minimum'"),
        ('a = {minimum = "Q"}', "There is no 'Q' here"),
        ('a = {minimum = "T", maximum = "T"}', "Give one of value, integral"),
        ('a = {value = "T"}', r"needs a point at = \[x\]"),
        ('a = {flow = "top"}', "no part 'top'"),
        ('a = {flow = "left", over = "left"}', "over"),
        ("a = 3", "must be a table"),
        ('T = {maximum = "T"}', "a name of its own"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_before_the_solve(line: str, words: str) -> None:
    with pytest.raises(pb.PiblsError, match=words):
        read_text(BAR + line)


def test_a_number_that_cannot_be_found_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "bar.toml"
    path.write_text(BAR + 'a = {value = "T", at = [3]}\n')
    done = CliRunner().invoke(app, ["solve", str(path)])
    assert done.exit_code == 0
    assert "outside the domain" in done.stdout
