"""The command line: what it runs, what it says, and how it fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pibls
from internals import report, runner
from pibls import cli
from pibls.errors import InputError

calls = CliRunner()


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """Replace study and report by recorders; return what they were called with."""
    found = []
    monkeypatch.setattr(runner, "run_study", lambda out, **rest: found.append(("study", out, rest)))
    monkeypatch.setattr(
        report, "write_report", lambda out, **rest: found.append(("report", out, rest)) or out / "r.html"
    )
    return found


def test_version():
    result = calls.invoke(cli.app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"pibls {pibls.__version__}\n")


def test_no_command_shows_the_help():
    assert "reproduce" in calls.invoke(cli.app, []).output


def test_help_names_every_option():
    text = re.sub(r"\x1b\[[0-9;]*m", "", calls.invoke(cli.app, ["reproduce", "--help"]).output)
    for option in ("--profile", "--out", "--workers", "--only", "--report-only", "--debug"):
        assert option in text


def test_reproduce_runs_the_study_and_writes_the_report(recorded, tmp_path):
    command = ["reproduce", "--out", str(tmp_path), "--workers", "2", "--profile", "full", "--only", "advection"]
    result = calls.invoke(cli.app, command)
    assert result.exit_code == 0
    assert result.stdout == f"report: {tmp_path / 'r.html'}\n"
    (study, out, settings), last = recorded
    assert (study, out) == ("study", tmp_path)
    assert (settings["profile"], settings["workers"], list(settings["only"])) == ("full", 2, ["advection"])
    assert last == ("report", tmp_path, {"profile": "full"})


def test_quick_is_the_default_and_report_only_runs_nothing(recorded, tmp_path):
    result = calls.invoke(cli.app, ["reproduce", "--out", str(tmp_path), "--report-only"])
    assert result.exit_code == 0
    assert recorded == [("report", tmp_path, {"profile": "quick"})]


@pytest.mark.parametrize("more", [["--only", "advection"], ["--workers", "2"]])
def test_report_only_takes_nothing_that_is_about_running(recorded, tmp_path, more):
    result = calls.invoke(cli.app, ["reproduce", "--out", str(tmp_path), "--report-only", *more])
    assert result.exit_code == 2
    assert "Leave out --only and --workers" in result.stderr
    assert recorded == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            InputError("The 'workers' parameter\n must be positive."),
            2,
            "Error: The 'workers' parameter must be positive.\n",
        ),
        (PermissionError("no access"), 2, "Error: no access\n"),
        (
            ZeroDivisionError("by zero"),
            1,
            "Error: unforeseen ZeroDivisionError: by zero Run again with --debug for the traceback.\n",
        ),
    ],
)
def test_a_failure_is_one_line_and_a_code(monkeypatch, tmp_path, error, code, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(runner, "run_study", fail)
    plain = calls.invoke(cli.app, ["reproduce", "--out", str(tmp_path)])
    assert (plain.exit_code, plain.stdout, plain.stderr) == (code, "", words)
    told = calls.invoke(cli.app, ["reproduce", "--out", str(tmp_path), "--debug"])
    assert told.exit_code == code
    assert "Traceback" in told.stderr
    assert type(error).__name__ in told.stderr


def test_an_interrupt_says_how_to_go_on(monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_study", stop)
    result = calls.invoke(cli.app, ["reproduce", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "run the same command again" in result.stderr
    assert str(tmp_path) in result.stderr.replace("\n", "")


def test_a_wrong_profile_is_refused(recorded):
    result = calls.invoke(cli.app, ["reproduce", "--profile", "huge"])
    assert result.exit_code == 2
    assert not recorded


def test_a_part_of_the_study_from_end_to_end(tmp_path, monkeypatch):
    command = ["reproduce", "--out", str(tmp_path), "--workers", "1", "--only", "advection", "--only", "solve"]
    first = calls.invoke(cli.app, command)
    assert first.exit_code == 0
    path = tmp_path / "report.html"
    assert first.stdout == f"report: {path}\n"
    errors = (tmp_path / "csv" / "errors.csv").read_bytes()
    rows = [line.split(",") for line in errors.decode().splitlines()[1:]]
    assert {row[1] for row in rows} == {"advection"}
    assert all(float(row[-1]) < 1e-6 for row in rows if row[-2] == "relative_rmse")

    def full(*_):
        raise OSError(28, "No space left on device")

    there = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.suffix in (".html", ".csv", ".json")}
    monkeypatch.setattr("os.fsync", full)
    second = calls.invoke(cli.app, command)
    assert (second.exit_code, second.stdout) == (2, "")
    assert second.stderr.splitlines()[-1] == "Error: [Errno 28] No space left on device"
    assert {path: path.read_bytes() for path in there} == there
    assert not list(tmp_path.rglob("*.part*"))


def test_starting_the_command_loads_nothing_heavy():
    code = "import sys, pibls.cli; print(sorted({'torch', 'matplotlib', 'scipy', 'sympy', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_ctrl_c_while_the_command_line_is_loaded_shows_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-m", "pibls", "list"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "Interrupted.")
