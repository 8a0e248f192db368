"""Nonlinear problems are solved to the tolerance without being told how; those without solution are told."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import given_start
from pibls.errors import InputError

# Enough on a slow machine too.
AMPLE = 40.0
x, y = pb.coordinates("x y")
w = pb.field("u", x)
line = pb.Interval((x, 0, 1))


def bratu(load):
    return pb.Problem(w.diff(x, 2) + load * sp.exp(w), line, [pb.Dirichlet(w, 0)])


def test_estimate_is_near_the_true_error():
    solution = pb.solve(pb.problems.minimal_surface(), tol=1e-5, budget=AMPLE)
    assert solution.status == "converged"
    assert 0.1 < solution.error_estimate / solution.true_error() < 10
    X = solution.problem.domain.sample(300)
    true = np.abs(solution(X) - solution.problem.exact_values(X)["u"])
    assert 0.2 < solution.error_field(X).max() / true.max() < 5


def test_many_oscillations_need_more_nodes_before_a_start_means_anything():
    solution = pb.solve(pb.problems.nonlinear_helmholtz(), tol=1e-9, budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-8


def test_systems_of_fields():
    u, v = pb.field("u", x), pb.field("v", x)
    equations = [sp.Eq(u.diff(x), v * (u**2 + v**2)), sp.Eq(v.diff(x), -u * (u**2 + v**2) ** 2)]
    start = [pb.Dirichlet(u, 0, on=[0.0]), pb.Dirichlet(v, 1, on=[0.0])]
    problem = pb.Problem(equations, pb.Interval((x, 0, 3)), start, exact={u: sp.sin(x), v: sp.cos(x)})
    solution = pb.solve(problem, budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_lines_tell_when_a_solution_blows_up():
    t = pb.coordinates("t")
    u = pb.field("u", t)
    problem = pb.Problem(sp.Eq(u.diff(t), u**2), pb.TimeInterval(t, 0, 2), [pb.Initial(u, 1)])
    solution = pb.solve(problem, budget=3, time="lines")
    assert solution.status in {"stalled", "ill-posed"}
    assert solution.error_estimate >= 1
    assert "blows up, or becomes infinitely steep, near t = 1," in solution.diagnostics.message


def test_cells_follow_the_corners_of_a_square():
    reference = pb.problems.references()["bratu_unforced"]
    solution = pb.solve(reference.problem(), tol=1e-7, budget=AMPLE)
    assert np.abs(solution(reference.points) - reference.values).max() < 1e-7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "x"}, "'start' parameter of solve must be a solution, or an expression"),
        ({"start": {"v": x}}, "'start'"),
        ({"start": {w: x, "v": x}}, "'start'"),
        ({"start": y}, "'start'"),
        ({"start": None, "continuation": [3]}, "'continuation' parameter of solve"),
        ({"continuation": pb.problems.stokes()}, "'continuation' parameter of solve"),
        ({"start": x, "method": pb.PIELM(nodes=5)}, "Leave out 'method' and 'points'"),
    ],
)
def test_bad_guesses_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        pb.solve(bratu(1), **options)


def test_a_solution_of_another_kind_is_no_start():
    other = pb.PIELM(nodes=5).fit(pb.problems.poisson(), pb.Points.sample(pb.problems.poisson(), 10))
    with pytest.raises(InputError, match=r"coordinates \(x,\) of the problem"):
        pb.solve(bratu(1), start=other)
    assert given_start(3, bratu(1))(np.zeros((2, 1)), [("u", (0,)), ("u", (1,))])[0].tolist() == [3, 3]


def test_a_file_keeps_the_history(tmp_path):
    solution = pb.solve(pb.problems.bratu_1d(), seed=3)
    loaded = pb.load(solution.save(tmp_path / "bratu.pibls"))
    assert loaded.diagnostics.iterations == solution.diagnostics.iterations
    assert "iteration   residual" in str(loaded.diagnostics)
    assert not loaded.problem.is_linear
    X = np.linspace(0, 1, 7)
    np.testing.assert_array_equal(loaded(X), solution(X))


def test_methods_fit_nonlinear_problems_too():
    problem = pb.problems.nonlinear_spring()
    points = pb.Points.sample(problem, 120)
    method = pb.PIBLS(features=[("sin", 60, 3.0)], enhancement_groups=0)
    solution = method.fit(problem, points)
    assert solution.true_error() < 1e-10
    assert "converged" in solution.diagnostics.message
    assert solution.diagnostics.residuals["the equation"].max < 1e-8
    estimated = pb.solve(problem, method=method, tol=1e-8)
    assert estimated.status == "converged"
    with pytest.raises(InputError, match="'lambda_reg' parameter must be 0 for nonlinear"):
        pb.PIELM(nodes=10, lambda_reg=1e-6).fit(problem, points)
