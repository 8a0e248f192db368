"""Solutions all of whose terms vanish, such as straight lines for u_xx = 0, are judged by what they could be."""

import pytest
import sympy as sp

import pibls as pb
from pibls.tuning.judge import Judge

x = pb.coordinates("x")
u = pb.field("u", x)


def laplace(exact):
    return pb.Problem(sp.Eq(u.diff(x, 2), 0), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, exact)], exact=exact)


@pytest.mark.parametrize("exact", [x, 1 - 3 * x, 300 + x, sp.Float(7)])
def test_straight_lines_converge(exact):
    solution = pb.solve(laplace(exact))
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-10
    assert solution.error_estimate < 1e-10


def test_a_wrong_line_is_still_judged_as_wrong():
    problem = laplace(x)
    points = pb.Points.sample(problem, interior=50)
    method = pb.PIELM(nodes=40, activation="sin", scale=2.0)
    other = method.fit(laplace(2 * x), points)
    judge = Judge(problem, points)
    assert judge(method.fit(problem, points)).total < 1e-3
    assert judge(other).total > 0.1


def test_terms_that_are_there_count_as_before():
    problem = pb.problems.poisson()
    points = pb.Points.sample(problem, interior=200, boundary=40)
    solution = pb.PIELM(nodes=60, activation="sin", scale=2.0).fit(problem, points)
    judge = Judge(problem, points)
    sizes = judge.sizes(solution.evaluate)
    for name, statement in judge.judged:
        residual = judge.residual(solution.evaluate, statement)
        expected = float((residual**2).mean() ** 0.5) / sizes[name]
        assert judge(solution).parts[name] == pytest.approx(expected)
