"""Charts: symmetry and directions of problems in many coordinates, and what they give."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Correction, Fitting, learned_chart, orbits, symmetric_chart


def posed(dimension, exact_of, *, ball=False, time=False, wind=None):
    axes = pb.coordinates(" ".join(f"x{i + 1}" for i in range(dimension)))
    t = pb.coordinates("t")
    u = pb.field("u", *axes, t) if time else pb.field("u", *axes)
    exact = exact_of(axes, t)
    domain = pb.Ball(axes, (0,) * dimension, 1) if ball else pb.Box(*((x, -1, 1) for x in axes))
    blow = wind or [0] * dimension

    def operator(w):
        flow = sum((own * sp.diff(w, x) for own, x in zip(blow, axes, strict=True)), sp.S.Zero)
        return (sp.diff(w, t) if time else 0) + flow - sum(sp.diff(w, x, 2) for x in axes)

    conditions = [pb.Dirichlet(u, exact)] + ([pb.Initial(u, exact.subs(t, 0))] if time else [])
    domain = domain * pb.TimeInterval(t, 0, 1) if time else domain
    return pb.Problem(sp.Eq(operator(u), operator(exact)), domain, conditions, exact=exact)


def radius(axes):
    return sum(x**2 for x in axes)


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        (posed(5, lambda axes, t: sp.cos(sum(axes))), [((0, 1, 2, 3, 4), False)]),
        (posed(4, lambda axes, t: sp.exp(-radius(axes) - t), ball=True, time=True), [((0, 1, 2, 3), True)]),
        (posed(4, lambda axes, t: axes[0] ** 2 * axes[1] + sum(axes)), [((0,), False), ((1,), False), ((2, 3), False)]),
        (posed(4, lambda axes, t: sp.exp(-radius(axes)), wind=[1, 0, 0, 0]), [((0,), False), ((1, 2, 3), True)]),
    ],
)
def test_coordinates_that_can_be_exchanged_are_found(problem, found):
    assert [(orbit.axes, orbit.even) for orbit in orbits(problem)] == found


def test_conditions_on_a_part_break_the_symmetry():
    axes = pb.coordinates("x y z w")
    u = pb.field("u", *axes)
    box = pb.Box(*((own, 0, 1) for own in axes))
    low, _ = box.faces(axes[0])
    rest = box.boundary - low
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), 1), box, [pb.Dirichlet(u, 0, on=rest), pb.Neumann(u, 0, on=low)])
    assert [(orbit.axes, orbit.even) for orbit in orbits(problem)] == [((0,), False), ((1, 2, 3), True)]


def test_measured_values_leave_no_symmetry():
    x, y = pb.coordinates("x y")
    u, square = pb.field("u", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    seen = pb.Observation(u, [[0.2, 0.3]], [1.0])
    problem = pb.Problem(pb.laplacian(u), square, [pb.Dirichlet(u, 1), seen])
    assert [orbit.axes for orbit in orbits(problem)] == [(0,), (1,)]


def test_without_symmetry_there_is_no_such_chart():
    problem = posed(4, lambda axes, t: sp.exp(axes[0] + 2 * axes[1] - axes[2] / 3 - axes[3]))
    assert symmetric_chart(problem, problem.domain.sample(50)) is None


def test_learned_directions_leave_those_aside_along_which_nothing_changes():
    problem = posed(6, lambda axes, t: sp.sin(axes[0] + 2 * axes[1] - axes[2] / 2))
    fitting = Fitting(problem, 0)
    chart = learned_chart(fitting.fit([(600, (0.5,) * 6)]), fitting.compare_points)
    main = chart.frame[:, -1] / np.linalg.norm(chart.frame[:, -1])
    wanted = np.array([1.0, 2.0, -0.5, 0.0, 0.0, 0.0]) / np.linalg.norm([1.0, 2.0, -0.5])
    assert abs(main @ wanted) > 0.999
    assert np.linalg.norm(chart.frame, axis=0)[:-1].max() < 0.1


def test_points_of_a_chart_reach_farther_along_its_directions_than_a_sample_does():
    problem = posed(6, lambda axes, t: sp.exp(sum(axes) / 3))
    plain = Fitting(problem, 0)
    charted = Fitting(problem, 0, chart=symmetric_chart(problem, plain.compare_points))
    for few, more in zip(plain.points(200), charted.points(200), strict=True):
        far = [np.square(charted.chart.along(own.points - 0.5)).sum(axis=1) for own in (few, more)]
        assert len(more) == int(1.5 * len(few))
        assert np.median(far[1][len(few) :]) > np.quantile(far[0], 0.9)


def test_an_error_in_rare_corners_is_part_of_the_estimate():
    wind = pb.coordinates(" ".join(f"x{i + 1}" for i in range(10)))
    u, box = pb.field("u", *wind), pb.Box(*((x, 0, 1) for x in wind))
    exact = sp.exp(-sum(wind) / 5) * sp.cos(wind[0] - wind[1])
    inflow = reduce(lambda one, two: one | two, (box.faces(x)[0] for x in wind))
    source = sum(exact.diff(x) for x in wind) / 10 + exact
    equation = sp.Eq(sum(u.diff(x) for x in wind) / 10 + u, source)
    problem = pb.Problem(equation, box, [pb.Dirichlet(u, exact, on=inflow)], exact=exact)
    solution = pb.solve(problem, tol=1e-4, seed=1)
    assert solution.true_error(20_000) < 3 * solution.error_estimate


def test_a_correction_sees_what_a_chart_hides():
    problem = posed(4, lambda axes, t: sp.sin(sum(axes) / 2) + axes[0] * axes[1] / 20)
    symmetric = posed(4, lambda axes, t: sp.sin(sum(axes) / 2))
    fitting = Fitting(problem, 0)
    blind = Fitting(problem, 0, chart=symmetric_chart(symmetric, fitting.compare_points))
    found = blind.fit([(200, (0.5,) * 4)])
    assert found.true_error() > 0.01
    assert 1 / 3 < Correction(fitting).size(found) / found.true_error() < 3


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "problem",
    [
        posed(5, lambda axes, t: sp.exp(-t - radius(axes) / 2), ball=True, time=True),
        posed(6, lambda axes, t: sp.exp(sum((k + 1) * x for k, x in enumerate(axes)) / 10)),
        posed(7, lambda axes, t: 1 / (1 + sum((k + 1) * x**2 for k, x in enumerate(axes)) / 28)),
    ],
)
def test_many_coordinates_converge_by_symmetry_and_direction(problem, seed):
    solution = pb.solve(problem, tol=1e-5, seed=seed)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-5


def test_poisson_in_forty_dimensions_is_told_soon():
    axes = pb.coordinates(" ".join(f"x{i + 1}" for i in range(40)))
    u = pb.field("u", *axes)
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), 1), pb.Box(*((x, 0, 1) for x in axes)), [pb.Dirichlet(u, 0)])
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == "stalled"
    assert solution.error_estimate > 0.5
    assert "40 coordinates" in solution.diagnostics.message
    assert solution.diagnostics.operations < 3e10


def test_solutions_with_reduced_coordinates_are_stored(tmp_path):
    solution = pb.solve(posed(4, lambda axes, t: sp.cos(sum(axes) / 2)), tol=1e-3)
    assert solution.network.reduction is not None
    solution.save(tmp_path / "one.pibls")
    X = solution.problem.domain.sample(20)
    assert np.array_equal(pb.load(tmp_path / "one.pibls")(X), solution(X))
    torch = pytest.importorskip("torch")
    assert np.allclose(solution.to_torch()(torch.as_tensor(X))[:, 0].detach().numpy(), solution(X), rtol=1e-10)
