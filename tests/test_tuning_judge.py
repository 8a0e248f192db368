"""Solutions all of whose terms vanish, such as straight lines for u_xx = 0, are judged by what they could be."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Judge, root_mean_square

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
    assert judge(method.fit(problem, points).evaluate) < 1e-3
    assert judge(other.evaluate) > 0.1


def test_terms_that_are_there_count_as_before():
    problem = pb.problems.poisson()
    points = pb.Points.sample(problem, interior=200, boundary=40)
    solution = pb.PIELM(nodes=60, activation="sin", scale=2.0).fit(problem, points)
    judge = Judge(problem, points)
    X = points.interior
    value, *terms = solution.evaluate(X, [("u", (0, 0)), ("u", (2, 0)), ("u", (0, 2))])
    terms.append(2 * np.pi**2 * np.prod(np.sin(np.pi * X), axis=1))
    sizes = (np.sqrt(sum(root_mean_square(term) ** 2 for term in terms)), root_mean_square(value))
    for (name, statement), size in zip(judge.judged, sizes, strict=True):
        residual = judge.residual(solution.evaluate, statement)
        assert judge.residuals(solution.evaluate)[name] == pytest.approx(root_mean_square(residual) / size)
