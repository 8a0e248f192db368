"""pibls solve: what it says, its exit codes, its JSON, and how it fails."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import pibls as pb
from cli_helpers import COSINE, call, call_json, runner
from internals import TreeSolver
from internals import solve as plain_solve
from pibls import tuning
from pibls.cli import app
from test_text_files import GOOD, MISTAKES, WHOLE
from test_text_formulas import ATTACKS

FIELDS = {
    *("schema", "command", "pibls", "source", "title", "problem", "status", "exit_code", "message", "tol", "seed"),
    *("budget", "error_estimate", "true_error", "seconds", "method", "solver", "nodes", "rows", "rank", "condition"),
    *("residuals", "quantities", "parameters", "files", "failed_files"),
}


@pytest.fixture
def cosine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cosine.toml"
    path.write_text(COSINE)
    return path


@pytest.fixture
def asked(monkeypatch):
    """Record the options that a solve was called with."""
    found = {}

    def solve(problem, *, progress=None, **options):
        found.update(options, progress=progress)
        return plain_solve(problem, progress=False, tol=options["tol"], seed=options["seed"])

    solve.__signature__ = inspect.signature(plain_solve)
    monkeypatch.setattr(tuning, "solve", solve)
    return found


def test_a_converged_solve_says_all_that_matters(cosine):
    text = call("solve", cosine).stdout
    lines = text.splitlines()
    assert lines[:4] == [
        "Cosine",
        "Find u(x) with",
        "  u_xx = -u    in Interval((x, 0, 1))",
        "  u = cos(x)   on the boundary",
    ]
    facts = dict(line.split("  ", 1) for line in lines[5:])
    assert facts["status"].strip() == "converged"
    assert facts["estimated error"].endswith("(tolerance 1e-06)")
    assert float(facts["true error"]) < 1e-12
    assert re.fullmatch(r"1 cell, \d+ weights|\d+ cells, \d+ weights", facts["size"].strip())
    assert facts["time"].endswith(" s")


def test_json_has_the_documented_fields_and_agrees_with_the_library(cosine):
    record = call_json("solve", cosine, "--seed", 3)
    assert set(record) == FIELDS
    solution = pb.solve(pb.read_problem(cosine), seed=3)
    assert record["error_estimate"] == solution.error_estimate
    assert record["true_error"] == solution.true_error()
    assert (record["nodes"], record["rows"]) == (solution.diagnostics.nodes, solution.diagnostics.rows)
    assert (record["status"], record["exit_code"], record["seed"]) == ("converged", 0, 3)
    assert record["problem"]["fields"] == ["u"]
    assert record["problem"]["coordinates"] == ["x"]
    assert record["problem"]["linear"] is True
    assert set(record["residuals"]) == {"the equation", "Dirichlet(u = cos(x) on the boundary)"}


def test_options_of_the_command_line_win_over_those_of_the_file(cosine, asked):
    cosine.write_text(COSINE + "[solve]\ntol = 1e-3\nseed = 5\nbudget = 3\n")
    call("solve", cosine, "-q")
    rest = {"deadline": None, "memory": None, "device": None, "relative": "domain", "assume_well_posed": False}
    assert asked == {"tol": 1e-3, "seed": 5, "budget": 3.0, "progress": False, **rest}
    more = ("--deadline", 30, "--memory", "2 GB", "--assume-well-posed", "--relative", "local")
    call("solve", cosine, "--tol", 1e-4, "--budget", 7, *more)
    assert callable(asked.pop("progress"))
    rest = {"deadline": 30.0, "memory": "2 GB", "device": None, "relative": "local", "assume_well_posed": True}
    assert asked == {"tol": 1e-4, "seed": 5, "budget": 7.0, **rest}


def test_the_way_through_time_that_a_file_names_is_taken(tmp_path):
    rod = tmp_path / "rod.toml"
    rod.write_text(
        'equations = ["u_t = u_xx"]\nexact = "exp(-pi**2*t)*sin(pi*x)"\n[domain]\nshape = "interval"\nx = [0, 1]\n'
        '[time]\nt = [0, 0.1]\n[[conditions]]\nkind = "dirichlet"\nvalue = 0\n'
        '[[conditions]]\nkind = "initial"\nvalue = "sin(pi*x)"\n[solve]\ntime = "lines"\n'
    )
    record = call_json("solve", rod)
    assert (record["method"], record["status"]) == ("Lines", "converged")
    assert record["true_error"] < 1e-6


def test_without_options_the_defaults_of_the_library_hold(cosine, asked):
    call("solve", cosine)
    assert (asked["tol"], asked["seed"], asked["budget"]) == (1e-6, 0, 10.0)


def test_quiet_prints_nothing(cosine):
    result = call("solve", cosine, "--quiet")
    assert result.output == ""


def test_stalled_is_3_and_says_what_to_do(cosine):
    result = call("solve", "zoo:l_shape", "--budget", 0.1, code=3)
    assert "stalled" in result.stdout
    assert "On the command line: --budget 1 for a longer search, or --tol " in " ".join(result.stdout.split())
    record = call_json("solve", cosine, "--tol", "1e-40", "--budget", 1e-4, code=3)
    assert (record["status"], record["exit_code"]) == ("stalled", 3)
    assert record["message"]


def test_ill_posed_is_4_and_says_why():
    result = call("solve", "zoo:ode_one_condition", code=4)
    assert "ill-posed" in result.stdout
    assert "not unique" in result.stdout
    assert "--budget" not in result.stdout


def test_true_error_against_values_at_points():
    record = call_json("solve", "zoo:l_shape_unit_load", "--tol", "1e-3")
    reference = pb.problems.references()["l_shape_unit_load"]
    solution = pb.solve(reference.problem(), tol=1e-3)
    error = np.linalg.norm(solution(reference.points) - reference.values) / np.linalg.norm(reference.values)
    assert record["true_error"] == pytest.approx(error)


def test_an_exact_solution_of_zero_has_no_relative_error(cosine):
    cosine.write_text(COSINE.replace("cos(x)", "0"))
    result = call("solve", cosine)
    assert "true error" not in result.stdout


def test_a_problem_from_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = call_json("solve", "-", input=COSINE.replace("title", "# title") + '[output]\ncsv = "here.csv"\n')
    assert (record["source"], record["title"]) == ("-", "standard input")
    assert (tmp_path / "here.csv").is_file()
    assert "UTF-8" in call("solve", "-", input=b"\xff\xfe", code=2).stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("zoo:burgrs", "Did you mean 'burgers'?"),
        ("zoo:", "See `pibls list`"),
        ("zoo:zzzzzz", "See `pibls list`"),
        ("burgers", "zoo:burgers"),
        ("none.toml", "cannot be read"),
        (".", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_names_that_are_not_there(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("solve", name, code=2)
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("option", [("--tol", "-1"), ("--tol", "nan"), ("--seed", "-1"), ("--budget", "0")])
def test_options_without_a_meaning_are_bad_input(cosine, option):
    assert option[0][2:] in call("solve", cosine, *option, code=2).stderr
    record = call_json("solve", cosine, *option, code=2)
    assert (record["status"], record["exit_code"]) == ("error", 2)
    assert option[0][2:] in record["error"]["message"]


def test_an_error_in_a_file_is_shown_with_its_place(cosine):
    cosine.write_text(COSINE.replace("cos(x)", "coss(x)", 1))
    lines = call("solve", cosine, code=2).stderr.splitlines()
    assert lines[0] == f"Error: {cosine}, line 8, column 10: There is no function 'coss'. Did you mean 'cos'?"
    assert lines[1].strip() == 'value = "coss(x)"'
    assert lines[2].index("^") == lines[1].index("coss")
    error = call_json("solve", cosine, code=2)["error"]
    assert (error["type"], error["path"], error["line"], error["column"]) == ("TextError", str(cosine), 8, 10)


CORPUS = {
    **{f"formula {text[:20]!r}": COSINE.replace('"u_xx = -u"', json.dumps(text[:100_000])) for text in ATTACKS},
    **{f"change {new[:20]!r}": GOOD.replace(old, new, 1) for old, new in MISTAKES},
    **{f"whole {text[-20:]!r}": text for text in WHOLE},
}


@pytest.mark.parametrize("case", CORPUS)
def test_bad_files_end_in_words_and_2(case):
    result = call("solve", "-", input=CORPUS[case], code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: line ")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (pb.errors.ResourceError("too large"), 2, "Error: too large"),
        (ZeroDivisionError("by zero"), 1, "Error: unforeseen ZeroDivisionError: by zero Run again with --debug"),
        (MemoryError(), 1, "Error: unforeseen MemoryError"),
        (KeyboardInterrupt(), 130, "Interrupted. There is no solution yet."),
    ],
)
def test_failures_of_every_kind(cosine, monkeypatch, error, code, words):
    def fail(*_, **__):
        raise error

    fail.__signature__ = inspect.signature(plain_solve)
    monkeypatch.setattr(tuning, "solve", fail)
    result = call("solve", cosine, code=code)
    assert result.stderr.startswith(words)
    record = call_json("solve", cosine, code=code)
    assert record["exit_code"] == code
    assert record["status"] == ("interrupted" if code == 130 else "error")


def test_debug_shows_the_traceback(cosine):
    result = runner.invoke(app, ["solve", str(cosine), "--tol", "-1", "--debug"])
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "check_number" in result.stderr


def test_an_interrupted_solve_keeps_the_best_answer(cosine, monkeypatch):
    """The third tree of a search is interrupted; the first one, compared with the second, is told."""
    solve, trees = TreeSolver.solve, []

    def counted(self, root):
        if len(trees) == 2:
            raise KeyboardInterrupt
        trees.append(solve(self, root))
        return trees[-1]

    monkeypatch.setattr(TreeSolver, "solve", counted)
    record = call_json("solve", cosine, "--tol", "1e-40", code=3)
    assert "interrupted" in record["message"]
    assert record["nodes"] == trees[0].unknowns


def run_module(*words, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pibls", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options)


def test_as_a_process_in_a_pipe_that_is_closed(cosine):
    """The reader leaves before anything is written: no complaint, and the exit code still tells the result."""
    process = run_module("solve", cosine, "--csv", "values.csv")
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) == 0
    assert all(line.startswith((b"choosing ", b"solving ", b"estimating ")) for line in complaint.splitlines())
    assert cosine.with_name("values.csv").is_file()


def test_an_estimate_that_is_not_there_is_said_so(cosine, monkeypatch):
    def solve(problem, *, tol=1e-6, **_):
        found = plain_solve(problem, tol=tol)
        return replace(found, status="stalled", error_estimate=np.inf)

    solve.__signature__ = inspect.signature(plain_solve)
    monkeypatch.setattr(tuning, "solve", solve)
    text = call("solve", cosine, code=3).stdout
    assert "estimated error  unknown (tolerance 1e-06)" in text
    assert "--tol" not in text
    assert call_json("solve", cosine, code=3)["error_estimate"] is None


def test_values_go_to_standard_output_where_asked_for(cosine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("solve", cosine, "--csv", "-")
    lines = result.stdout.splitlines()
    assert lines[0] == "x,u,u_error"
    assert len(lines) == 202
    assert "converged" in result.stderr
    assert call("solve", cosine, "--csv", "-", "--quiet").stderr == ""
    assert not (tmp_path / "-").exists()
    assert "Name a file" in call("solve", cosine, "--csv", "-", "--json", code=2).stderr
    assert "Name a file" in call("solve", cosine, "--save", "-", code=2).stderr
    saved = tmp_path / "run.pibls"
    call("solve", cosine, "--save", saved)
    (tmp_path / "points.csv").write_text("x\n0.5\n")
    assert call("eval", saved, "--at", "points.csv", "--csv", "-").stdout.startswith("x,u\n0.5,0.87")
    bench = call("bench", "advection", "--tol", 1e-2, "--csv", "-")
    assert bench.stdout.startswith("problem,seed,status,")
    assert not (tmp_path / "-").exists()


def test_a_log_gets_a_line_per_stage(cosine):
    lines = call("solve", "zoo:l_shape", "--tol", 1e-4).stderr.splitlines()
    assert len(lines) > 2
    assert all(line.startswith("solving ") and " weights  " in line and "error" in line for line in lines)
    assert len(set(lines)) == len(lines)
    assert call("solve", "zoo:poisson", "--tol", 1e-4, "--quiet").stderr == ""


def test_a_deadline_and_an_assumption_are_passed_on(cosine):
    record = call_json("solve", "zoo:l_shape", "--tol", "1e-9", "--deadline", 1e-6, code=3)
    assert "The deadline ended the solve: 1e-06 s have passed." in record["error"]["message"]
    assert (
        call_json("solve", "zoo:ode_one_condition", "--assume-well-posed", "--budget", 1, code=3)["status"] == "stalled"
    )


def test_errors_relative_to_the_local_size(tmp_path):
    path = tmp_path / "fin.toml"
    path.write_text(
        'equations = ["u_xx = 400*u"]\n[domain]\nshape = "interval"\nx = [0, 1]\n'
        '[[conditions]]\nkind = "dirichlet"\non = "left"\nvalue = 1\n'
        '[[conditions]]\nkind = "neumann"\non = "right"\nvalue = 0\n'
    )
    record = call_json("solve", path, "--tol", 1e-3, "--relative", "local")
    assert "relative to the local size" in record["message"]
    assert "must be" in call("solve", path, "--relative", "nearby", code=2).stderr
