"""pibls eval: a saved solution at points of a CSV file."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import pibls as pb
from cli_helpers import call

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    problem = pb.problems.wave()
    solution = pb.solve(problem, tol=1e-4)
    path = solution.save(tmp_path_factory.mktemp("saved") / "wave.pibls")
    return solution, path


def table(text):
    head, *rows = list(csv.reader(io.StringIO(text)))
    return head, rows


def test_values_and_derivatives_come_back_exactly(saved, tmp_path):
    solution, path = saved
    X = RNG.random((50, 2))
    points = tmp_path / "points.csv"
    points.write_text("t,x\n" + "".join(f"{t!r},{x!r}\n" for x, t in X.tolist()))
    wanted = ["--derivative", "u_xx", "--derivative", "u_xt", "--derivative", "u"]
    head, rows = table(call("eval", path, "--at", points, *wanted).stdout)
    assert head == ["t", "x", "u", "u_xx", "u_xt"]
    numbers = np.array(rows, dtype=float)
    u, (x, t) = solution.problem.fields[0], solution.problem.domain.coordinates
    assert np.array_equal(numbers[:, [1, 0]], X)
    assert np.array_equal(numbers[:, 2], solution(X))
    assert np.array_equal(numbers[:, 3], solution.derivative(u, x, x)(X))
    assert np.array_equal(numbers[:, 4], solution.derivative(u, x, t)(X))


def test_rows_are_kept_as_they_are(saved, tmp_path):
    _, path = saved
    text = '\ufeffname, x ,t\n"a, b",0.50,1e-1\n\nc,1,0\n'
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    out = tmp_path / "out.csv"
    result = call("eval", path, "--at", tmp_path / "p.csv", "--csv", out)
    assert result.output == ""
    head, rows = table(out.read_text())
    assert head == ["name", "x", "t", "u"]
    assert [row[:3] for row in rows] == [["a, b", "0.50", "1e-1"], ["c", "1", "0"]]


def test_standard_input_is_read_like_a_file(saved):
    solution, path = saved
    _, rows = table(call("eval", path, "--at", "-", input="\ufeffx,t\r\n0.5,0.25\r\n").stdout)
    assert float(rows[0][2]) == solution([[0.5, 0.25]])[0]


def test_points_outside_are_evaluated_with_a_warning(saved):
    solution, path = saved
    result = call("eval", path, "--at", "-", input="x,t\n0.5,0.5\n2,0.5\n-1,0.5\n")
    assert "Warning: 2 of 3 points lie outside" in result.stderr
    assert "first [2.0, 0.5]" in result.stderr
    _, rows = table(result.stdout)
    assert [float(row[2]) for row in rows] == solution([[0.5, 0.5], [2, 0.5], [-1, 0.5]], outside="value").tolist()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("x,t\n1,2\n1,abc\n", "line 3, column 2", "'abc' in column 't'"),
        ("t,x\nnan,1\n", "line 2, column 1", "'nan' in column 't'"),
        ("t,x\ninf,1\n", "line 2, column 1", "not a finite number"),
        ("x,t\n1,\n", "line 2, column 2", "'' in column 't'"),
        ("x,t\n,\n", "line 2, column 1", "are empty"),
        ("x,t\n1,2,3\n", "line 2, column 1", "3 entries, and 2 columns"),
        ("x,y\n1,2\n", "line 1, column 1", "each coordinate once: x,t. Got x,y"),
        ("x,x,t\n1,2,3\n", "line 1, column 1", "each coordinate once"),
        ("x,t,u\n1,2,3\n", "line 1, column 1", "'u' is there already"),
        ("x,t\n", "line 1, column 1", "no rows"),
        ("", "line 1, column 1", "Got nothing"),
    ],
)
def test_bad_rows_are_named(saved, tmp_path, text, place, words):
    _, path = saved
    points = tmp_path / "p.csv"
    points.write_text(text)
    error = call("eval", path, "--at", points, code=2).stderr
    assert error.startswith(f"Error: {points}, {place}: ")
    assert words in error
    assert place in call("eval", path, "--at", "-", input=text, code=2).stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [("u_q", "Did you mean"), ("v", "such as u_x"), ("u_", "is no derivative"), ("u.__class__", "is no derivative")],
)
def test_derivatives_that_are_not_there(saved, name, words):
    _, path = saved
    assert words in call("eval", path, "--at", "-", "--derivative", name, input="x,t\n0,0\n", code=2).stderr


def test_files_that_cannot_be_read(saved, tmp_path):
    _, path = saved
    assert "no file" in call("eval", tmp_path / "none.pibls", "--at", "-", input="x,t\n0,0\n", code=2).stderr
    assert "Check the path" in call("eval", path, "--at", tmp_path / "none.csv", code=2).stderr
    for content in (b"x,t\n\xff,1\n", b"x,t\n" + b"1" * 200_000 + b",1\n"):
        (tmp_path / "b.csv").write_bytes(content)
        assert "cannot be read as CSV" in call("eval", path, "--at", tmp_path / "b.csv", code=2).stderr
        assert "standard input, cannot be read as CSV" in call("eval", path, "--at", "-", input=content, code=2).stderr
    assert "there is no folder" in call("eval", path, "--at", "-", "--csv", tmp_path / "no" / "a.csv", code=2).stderr


def test_a_subscript_that_can_be_read_in_two_ways(tmp_path):
    a, b = pb.coordinates("x xx")
    u = pb.field("u", a, b)
    square = pb.Rectangle((a, 0, 1), (b, 0, 1))
    problem = pb.Problem(pb.laplacian(u), square, [pb.Dirichlet(u, a)])
    solution = pb.PIELM(nodes=20).fit(problem, pb.Points.sample(problem, 50))
    path = solution.save(tmp_path / "two.pibls")
    error = call("eval", path, "--at", "-", "--derivative", "u_xx", input="x,xx\n0,0\n", code=2).stderr
    assert "two ways" in error
