"""The library as a user installs it: every command, and a solve of every kind, with whatever versions are there."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import pibls as pb
from pibls.cli import app
from pibls.errors import MissingDependencyError

PROBLEM = """
equations = ["laplacian(u) = -2*pi**2*sin(pi*x)*sin(pi*y)"]
exact = "sin(pi*x)*sin(pi*y)"
[domain]
shape = "rectangle"
x = [0, 1]
y = [0, 1]
[[conditions]]
kind = "dirichlet"
value = 0
"""


def pibls(folder, *words):
    found = subprocess.run(
        [sys.executable, "-m", "pibls", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a problem file and its solution."""
    place = tmp_path_factory.mktemp("user")
    (place / "plate.toml").write_text(PROBLEM)
    (place / "points.csv").write_text("x,y\n0.5,0.5\n")
    outputs = ("--save", "plate.pibls", "--plot", "plate.png", "--csv", "a.csv")
    pibls(place, "solve", "plate.toml", "--tol", "1e-4", *outputs)
    return place


@pytest.mark.parametrize(
    "words",
    [
        *(("--help",), ("solve", "--help"), ("list",), ("doctor",), ("show", "plate.toml"), ("check", "plate.toml")),
        *(
            ("show", "plate.toml", "--plot", "shown.png"),
            ("new", "--help"),
            ("reproduce", "--help"),
            ("bench", "advection", "--seeds", "1"),
        ),
        ("solve", "zoo:advection", "--json"),
    ],
    ids=" ".join,
)
def test_every_command_runs(folder, words, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, bool(result.stdout)) == (0, True), result.output


def test_what_a_solve_writes_is_there(folder):
    assert (folder / "plate.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "a.csv").read_text().startswith("x,y,u")
    x, y, u = pibls(folder, "eval", "plate.pibls", "--at", "points.csv").splitlines()[1].split(",")
    assert (x, y) == ("0.5", "0.5")
    assert float(u) == pytest.approx(1.0, abs=1e-3)
    assert pb.load(folder / "plate.pibls").true_error() < 1e-4


@pytest.mark.parametrize(
    "problem",
    [pb.problems.poisson_star, pb.problems.heat_robin, pb.problems.cubic_reaction, pb.problems.damped_oscillator],
)
def test_problems_of_every_kind_are_solved(problem):
    solution = pb.solve(problem(), tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4


@pytest.mark.parametrize("method", [pb.PIELM(nodes=80), pb.PIBLS(), pb.BayesianPIELM(nodes=80)])
def test_methods_fit(method):
    problem = pb.problems.advection()
    solution = method.fit(problem, pb.Points.sample(problem, 60))
    assert np.isfinite(solution(problem.domain.sample(5))).all()


@pytest.mark.skipif(importlib.util.find_spec("meshio") is not None, reason="it is installed")
def test_what_is_not_installed_is_said(tmp_path):
    (tmp_path / "a.mesh").write_text("MeshVersionFormatted 2\n")
    with pytest.raises(MissingDependencyError, match="pip install"):
        pb.read_shape(tmp_path / "a.mesh", pb.coordinates("x y"))
