"""What errors are relative to: the size of a field, or what the others suggest for one that is zero."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import SHARE, manufactured, natural_sizes, reference_sizes
from pibls.errors import ProblemError
from pibls.problem import Problem

x, y = pb.coordinates("x y")
u, v, p = (pb.field(name, x, y) for name in "uvp")


def channel(length: float = 3.0, width: float = 1.0, speed: float = 4.0, viscosity: float = 1.0) -> Problem:
    """Flow between plates, driven by a pressure drop."""
    shape = pb.Rectangle((x, 0, length), (y, 0, width))
    profile = speed * y * (width - y)
    walls = [pb.Dirichlet(f, 0, on=side) for f in (u, v) for side in (shape.top, shape.bottom)]
    ends = [pb.Dirichlet(u, profile, on=shape.left), pb.Dirichlet(p, 0, on=shape.right)]
    across = [pb.Dirichlet(v, 0, on=side) for side in (shape.left, shape.right)]
    equations = [
        sp.Eq(viscosity * pb.laplacian(u), p.diff(x)),
        sp.Eq(viscosity * pb.laplacian(v), p.diff(y)),
        u.diff(x) + v.diff(y),
    ]
    exact = {u: profile, v: 0, p: 2 * viscosity * speed * (length - x)}
    return Problem(equations, shape, [*walls, *ends, *across], exact)


def test_a_flow_along_a_channel_has_none_across_it_and_is_solved() -> None:
    solution = pb.solve(channel())
    assert solution.status == "converged"
    assert solution.error_estimate is not None
    assert solution.error_estimate < 1e-6
    assert solution.true_error() < 1e-6
    X = solution.problem.domain.sample(200)
    assert np.abs(solution(X)["v"]).max() < 1e-8


def test_a_zero_field_is_measured_by_the_others() -> None:
    problem = channel(length=6.0, width=1.0)
    # Continuity suggests v = u W/L; momentum would suggest more.
    sizes = {"u": 3.0, "v": 0.0, "p": 24.0}
    assert natural_sizes(problem, sizes) == pytest.approx({"u": 3.0, "v": 0.5, "p": 24.0})
    assert reference_sizes(problem, sizes)["v"] == pytest.approx(SHARE * 0.5)
    # Without a drop of pressure its size follows from v, which follows from u.
    assert natural_sizes(problem, {"u": 3.0, "v": 0.0, "p": 0.0})["p"] == pytest.approx(0.5 * 4 / 2)


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_do_not_matter(size: float, speed: float, viscosity: float) -> None:
    def relative(problem: Problem, scales: dict[str, float]) -> float:
        found = reference_sizes(problem, {"u": 3.0 * scales["u"], "v": 0.0, "p": 24.0 * scales["p"]})
        return found["v"] / scales["u"]

    plain = relative(channel(), {"u": 1.0, "p": 1.0})
    scaled = channel(3.0 * size, size, 4.0 * speed / size**2, viscosity)
    assert relative(scaled, {"u": speed, "p": viscosity * speed / size}) == pytest.approx(plain)


def test_fields_that_have_a_size_keep_it_and_one_alone_has_no_other() -> None:
    problem = channel()
    sizes = {"u": 3.0, "v": 0.1, "p": 48.0}
    assert reference_sizes(problem, sizes) == sizes
    shape = pb.Rectangle((x, 0, 1), (y, 0, 1))
    alone = Problem(pb.laplacian(u), shape, [pb.Dirichlet(u, 0)], 0)
    assert reference_sizes(alone, {"u": 0.0}) == {"u": 0.0}
    with pytest.raises(ProblemError, match="no relative error"):
        pb.solve(alone).true_error()


def traces(size: sp.Expr) -> Problem:
    """Two fields of very different sizes; the small one enters the equation of the large one."""
    shape = pb.Rectangle((x, 0, 1), (y, 0, 1))
    exact = {u: sp.exp(x) * sp.cos(y), v: size * sp.sin(8 * x) * sp.cos(7 * y)}
    equations = [
        manufactured(-pb.laplacian(u) + u - v, exact, shape),
        manufactured(-pb.laplacian(v) + v + u, exact, shape),
    ]
    return Problem(equations, shape, [pb.Dirichlet(of, value) for of, value in exact.items()], exact)


def test_a_trace_is_as_accurate_as_the_estimate_says() -> None:
    solution = pb.solve(traces(sp.Rational(1, 10**6)), tol=1e-4)
    assert solution.status == "converged"
    assert max(solution.error_estimates.values()) == solution.error_estimate
    X = solution.problem.domain.sample(1000)
    found, exact = solution(X), solution.problem.exact_values(X)
    for name, estimate in solution.error_estimates.items():
        error = np.linalg.norm(found[name] - exact[name]) / np.linalg.norm(exact[name])
        assert estimate / 3 < error < 3 * estimate


def test_a_field_that_is_zero_to_rounding_is_measured_by_the_others() -> None:
    # Data of the size of rounding say no more than zero does.
    sizes = {"u": 1.0, "v": 1e-17}
    assert reference_sizes(traces(sp.Float(1e-17)), sizes)["v"] > 1e-4
    assert reference_sizes(traces(sp.Rational(1, 10**10)), {"u": 1.0, "v": 1e-10})["v"] == 1e-10


def test_estimates_of_one_field_and_of_none() -> None:
    alone = pb.solve(pb.problems.poisson(), tol=1e-4)
    assert alone.error_estimates == {"u": alone.error_estimate}
    assert (
        pb.PIELM(nodes=20).fit(pb.problems.poisson(), pb.Points.sample(pb.problems.poisson(), 50)).error_estimates == {}
    )
