"""What errors are relative to: the size of a field, or what the others suggest for one that is zero."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import SHARE, manufactured, natural_sizes, reference_sizes, vectors_of
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


def heated(width: float = 1.0, rate: float = 2.0) -> Problem:
    """Two substances along a strip; the second one arises from slopes of the first."""
    shape = pb.Rectangle((x, 0, 6), (y, 0, width))
    equations = [pb.laplacian(u), rate * pb.laplacian(v) + u.diff(x)]
    return Problem(equations, shape, [pb.Dirichlet(u, 1), pb.Dirichlet(v, 0)], {u: 1, v: 0})


def test_a_zero_field_is_measured_by_the_others() -> None:
    # The second equation suggests v = u W²/(4 · 2 · L/2).
    sizes = {"u": 3.0, "v": 0.0}
    assert natural_sizes(heated(), sizes) == pytest.approx({"u": 3.0, "v": 3.0 / 3 / 8})
    assert reference_sizes(heated(), sizes)["v"] == pytest.approx(SHARE * 3.0 / 3 / 8)
    # Momentum and continuity suggest the pressure of a flow that has none.
    assert natural_sizes(channel(6.0), {"u": 3.0, "v": 0.0, "p": 0.0})["p"] == pytest.approx(0.5 * 4 / 2)


def test_components_of_a_vector_are_measured_by_its_size() -> None:
    found = reference_sizes(channel(), {"u": 3.0, "v": 0.1, "p": 48.0})
    assert found == pytest.approx({"u": np.hypot(3.0, 0.1), "v": np.hypot(3.0, 0.1), "p": 48.0})


@pytest.mark.parametrize(
    ("equations", "vectors"),
    [
        ([u + p.diff(x), v + p.diff(y), pb.div([u, v])], (("u", "v"),)),  # a flux
        ([v.diff(y) + u.diff(x), pb.laplacian(v) - p.diff(y), pb.laplacian(u) - p.diff(x)], (("u", "v"),)),
        ([pb.laplacian(u) - v, pb.laplacian(v) + u, p - u], ()),  # two substances that diffuse alike
        ([pb.laplacian(u) - v.diff(x), 3 * pb.laplacian(v), p], ()),
        ([u.diff(x) + 2 * v.diff(y), u + p.diff(x), v + p.diff(y)], ()),  # no divergence
    ],
)
def test_vectors_are_what_rotations_of_the_coordinates_mix(
    equations: list[sp.Expr], vectors: tuple[tuple[str, ...], ...]
) -> None:
    shape = pb.Rectangle((x, 0, 1), (y, 0, 1))
    conditions = [pb.Dirichlet(of, 0) for of in (u, v, p)]
    assert vectors_of(Problem(equations, shape, conditions)) == vectors


def test_electric_and_magnetic_fields_are_two_vectors() -> None:
    X = pb.coordinates("x y z")
    E, H = ([pb.field(name + str(axis), *X) for axis in X] for name in "EH")
    equations = [one - 2 * two for one, two in zip([*E, *H], [*pb.curl(H), *pb.curl(E)], strict=True)]
    conditions = [pb.Dirichlet(of, 0) for of in (*E, *H)]
    found = vectors_of(Problem(equations, pb.Box(*((axis, 0, 1) for axis in X)), conditions))
    assert sorted(found) == [("Ex", "Ey", "Ez"), ("Hx", "Hy", "Hz")]


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_do_not_matter(size: float, speed: float, viscosity: float) -> None:
    def pressure(problem: Problem, u: float) -> float:
        return reference_sizes(problem, {"u": u, "v": 0.0, "p": 0.0})["p"]

    scaled = channel(3.0 * size, size, 4.0 * speed / size**2, viscosity)
    assert pressure(scaled, 3.0 * speed) == pytest.approx(pressure(channel(), 3.0) * viscosity * speed / size)


def test_fields_that_have_a_size_keep_it_and_one_alone_has_no_other() -> None:
    sizes = {"u": 3.0, "v": 0.1}
    assert reference_sizes(heated(), sizes) == sizes
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
        # How fast a trace's error falls shows in its coefficients only, which are cautious at low degrees.
        assert estimate / 20 < error < 3 * estimate


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
