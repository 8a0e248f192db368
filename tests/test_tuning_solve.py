"""The contract of the automatic solver: status, estimate, arguments, progress, device."""

from __future__ import annotations

import numpy as np
import pytest

import pibls as pb
from pibls.errors import InputError
from pibls.geometry import Points

QUICK = pb.PIELM(nodes=80, activation="sin", scale=6.0)


@pytest.fixture(scope="module")
def solved():
    return pb.solve(pb.problems.advection(), method=QUICK)


def test_estimate_is_near_the_true_error_and_decides_the_status():
    problem, method = pb.problems.advection(), pb.PIELM(nodes=18, activation="sin", scale=4.0)
    coarse = pb.solve(problem, method=method, tol=1e-12)
    assert coarse.status == "stalled"
    assert coarse.error_estimate > 1e-12
    assert 0.05 < coarse.error_estimate / coarse.true_error() < 20
    loose = pb.solve(problem, method=method, tol=100.0)
    assert loose.status == "converged"
    assert loose.error_estimate == coarse.error_estimate


def test_defaults_solve_to_many_digits():
    solution = pb.solve(pb.problems.advection())
    assert solution.status == "converged"
    assert solution.error_estimate < 1e-6
    assert solution.true_error() < 1e-6
    more = pb.solve(pb.problems.advection(), tol=1e-11)
    assert more.true_error() < 1e-11
    assert more.diagnostics.nodes > solution.diagnostics.nodes
    record = solution.diagnostics
    assert 0 < record.stages[-1].seconds <= record.seconds["total"]
    assert record.stages[-1].estimate == solution.error_estimate
    assert [getattr(record.stages[-1], key) for key in ("cells", "nodes")] == [solution.network.cells, record.nodes]
    assert "within the tolerance" in solution.diagnostics.message


def test_seed_reproduces_bit_for_bit(solved):
    X = np.linspace(0, 1, 20)
    again, other = (pb.solve(pb.problems.advection(), method=QUICK, seed=s) for s in (0, 1))
    assert (again(X) == solved(X)).all()
    assert again.error_estimate == solved.error_estimate
    assert other.diagnostics.seed == 1
    assert (other(X) != solved(X)).any()
    np.testing.assert_allclose(other(X), solved(X), atol=1e-7)


def test_points_of_the_user_are_used():
    problem = pb.problems.advection()
    points = Points.sample(problem, interior=77)
    solution = pb.solve(problem, points=points, method=QUICK)
    assert solution.diagnostics.rows == 78
    assert (solution.weights == QUICK.fit(problem, points).weights).all()


def test_progress_is_told_of_every_stage_in_order():
    seen = []
    pb.solve(pb.problems.advection(), method=QUICK, progress=seen.append)
    assert len(seen) >= 2
    assert all(isinstance(p.stage, str) and p.seconds >= 0 for p in seen)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)


def test_device_gives_the_same_answer(solved):
    pytest.importorskip("torch")
    X = np.linspace(0, 1, 20)
    on_torch = pb.solve(pb.problems.advection(), method=QUICK, device="cpu")
    np.testing.assert_allclose(on_torch(X), solved(X), atol=1e-9)


def test_a_zero_solution_has_an_estimate():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    problem = pb.Problem(u.diff(x) - 0 * x, pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    solution = pb.solve(problem, method=QUICK)
    assert solution.error_estimate == 0
    assert solution.status == "converged"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tol": 0}, "'tol' parameter of solve"),
        ({"tol": "small"}, "'tol'"),
        ({"seed": -1}, "'seed'"),
        ({"seed": 1.5}, "'seed'"),
        ({"method": "PIBLS"}, "'method' parameter of solve"),
        ({"points": 100}, "Points. Got 100 instead"),
        ({"progress": 3}, "'progress' parameter of solve must be callable"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        pb.solve(pb.problems.advection(), **options)


def test_what_is_no_problem_and_what_has_unknown_numbers():
    with pytest.raises(InputError, match="solve takes a Problem"):
        pb.solve("u'' = 0")
    x, k = pb.coordinates("x"), pb.unknown("k")
    u = pb.field("u", x)
    inverse = pb.Problem(u.diff(x) - k * u, pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 1, on=[0.0])])
    with pytest.raises(InputError, match="does not go with unknown numbers"):
        pb.solve(inverse, method=QUICK)
