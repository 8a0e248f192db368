"""Mistakes that people make in their first hour: each message says what to write instead."""

from __future__ import annotations

import pytest
import sympy as sp
from typer.testing import CliRunner

import pibls as pb
from pibls.cli import app

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
square = pb.Rectangle((x, 0, 1), (y, 0, 1))
poisson = sp.Eq(-pb.laplacian(u), 1)
FILE = """title = "Rod"
equations = ["u_xx = 1"]
[domain]
shape = "interval"
x = [0, 1]
[[conditions]]
kind = "dirichlet"
value = 0
"""


@pytest.fixture(scope="module")
def solution():
    return pb.solve(pb.Problem(poisson, square, [pb.Dirichlet(u, 0)]), tol=1e-2)


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        (lambda _: pb.Problem("laplacian(u) = 1", square, []), r"The equation must be a SymPy equation such as sp\.Eq"),
        (lambda _: pb.Problem(sp.Eq(u.diff(sp.Symbol("t")), 0), square, []), "always true.*the coordinates it is diff"),
        (lambda _: pb.Problem(poisson == 1, square, []), r"simply False.*Write sp\.Eq\(left, right\)"),
        (lambda _: pb.Neumann(u, [1, 2]), "Give one number or expression per condition"),
        (lambda _: pb.Periodic(u, "x"), r"takes a coordinate of u: one of \(x, y\)"),
        (lambda _: pb.Polygon((x, y), [(0, 0), (1, 1), (1, 0), (0, 1)]), "in order, with no edges that cross"),
        (lambda _: pb.solve(poisson), r"solve takes a Problem\(equations, domain, conditions\)"),
        (lambda s: pb.solve(s.problem, points=100), r"Points\.sample\(problem, interior=\.\.\.\), or leave it out"),
        (lambda s: pb.solve(s.problem, method="pinn"), r"such as PIBLS\(\) or Cells\(\).*Leave it out"),
        (lambda s: pb.eigen(s.problem), r"lam = pibls\.eigenvalue\('lam'\)\. Got none"),
        (lambda s: s.derivative(u, "x"), r"as in derivative\(u, x, x\)"),
        (lambda s: s.flow("left"), r"such as square\.left.*Got 'left'"),
        (lambda _: pb.load("no.pibls"), "There is no file no.pibls. Check the path"),
        (lambda _: pb.parse("u_x = 0,1", "x"), r"with a point, as in 0\.1"),
        (lambda _: pb.parse("u'' = 1", "x"), "Write derivatives as u_x and u_xx"),
        (lambda _: pb.parse("du/dt = 1", "x t"), "with a subscript: u_t"),
        (lambda _: pb.parse("u_t = 1", "x"), r"by the coordinates x; others come from \[domain\] and \[time\]"),
    ],
)
def test_in_python(mistake, remedy, solution):
    with pytest.raises(pb.PiblsError, match=f"(?s){remedy}"):
        mistake(solution)


@pytest.mark.parametrize(
    ("right", "wrong", "remedy"),
    [
        ("x = [0, 1]", "x = [0, 1", "Close its bracket"),
        ('title = "Rod"', "title = Rod", "Text needs quotes"),
        ("value = 0", "value = 0\nvalue = 1", "Give each key once"),
        ("[[conditions]]", "[conditions]\n[[conditions]]", "begins with [[conditions]], in double brackets"),
    ],
)
def test_in_a_file(right, wrong, remedy, tmp_path):
    path = tmp_path / "rod.toml"
    path.write_text(FILE.replace(right, wrong))
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 2
    assert remedy in result.output


def test_of_a_parameter_that_the_file_does_not_have(tmp_path):
    path = tmp_path / "rod.toml"
    path.write_text(FILE)
    for command in (["solve"], ["sweep"]):
        result = CliRunner().invoke(app, [*command, str(path), "--set", "k=1"])
        assert result.exit_code == 2
        assert "has no parameter 'k'; it has no table [parameters]." in result.output
