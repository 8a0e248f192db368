"""Solutions between kept ones: as accurate as they say, and none where that is not known."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Between, keeps_trees

X, Y = pb.coordinates("x y")
K = pb.parameter("k")
U = pb.field("u", X, Y)
SQUARE = pb.Rectangle((X, 0, 1), (Y, 0, 1))
PLACES = SQUARE.sample(200)


def family(equation, conditions=None, start=1.0, low=0.0, high=2.0, most=24):
    problem = pb.Problem(equation, SQUARE, conditions or [pb.Dirichlet(U, 0)])
    prepared = pb.prepare(problem.at(k=start), tol=1e-4)
    own = Between(prepared, lambda value: problem.at(k=value), start, np.linspace(low, high, 41), most)
    while own.grow():
        pass
    return problem, own


@pytest.mark.parametrize(
    ("equation", "conditions"),
    [
        (-K * pb.laplacian(U) + U - 1 - X, None),
        (-pb.laplacian(U) + 3 * K * U.diff(X) - 1, None),
        (
            -pb.laplacian(U) - Y,
            [
                pb.Robin(U, K, 1, 1, on=SQUARE.left),
                pb.Dirichlet(U, 0, on=SQUARE.right),
                pb.Neumann(U, 0, on=SQUARE.bottom | SQUARE.top),
            ],
        ),
        (
            -pb.div(sp.Piecewise((K, X < 0.5), (1, True)) * pb.grad(U)) - 1,
            [pb.Dirichlet(U, 0, on=SQUARE.left | SQUARE.right), pb.Neumann(U, 0, on=SQUARE.bottom | SQUARE.top)],
        ),
    ],
    ids=["reaction", "wind", "convection", "two materials"],
)
def test_the_error_of_a_solution_between_is_known(equation, conditions):
    problem, own = family(equation, conditions)
    assert own.is_ready
    for value in (own.values[1] * 1.01, 1.234):
        found, true = own.at(value), pb.solve(problem.at(k=value), tol=1e-6, progress=False)(PLACES)
        error = np.linalg.norm(found(PLACES) - true) / np.linalg.norm(true)
        assert error < 3 * found.error_estimate
        assert found.error_estimate < 1e-3
        assert (found.status == "converged") == (found.error_estimate <= 1e-4)


def test_richer_cells_that_share_the_error_of_the_others_do_not_hide_it():
    # Near k = 30 the residual of one cell hardly falls as its degree rises, and two solutions are close by chance.
    wave = sp.sin(2 * sp.pi * X) * sp.sin(sp.pi * Y)
    problem, own = family(-pb.laplacian(U) - K * U - 1 - wave / 1000, start=30.0, low=21.0, high=60.0)
    for value in (22.17, 30.0, 56.88):
        found, true = own.at(value), pb.solve(problem.at(k=value), tol=1e-7, progress=False)(PLACES)
        assert found is not None
        assert np.linalg.norm(found(PLACES) - true) / np.linalg.norm(true) < 2 * found.error_estimate


def test_conditions_that_do_not_depend_on_the_parameter_hold_between():
    _, own = family(-K * pb.laplacian(U) + U - 1 - X, [pb.Dirichlet(U, 1 + X + X * Y)])
    edge = np.array([[0.3, 0.0], [1.0, 0.6]])
    assert own.at(0.9)(edge) == pytest.approx(1 + edge[:, 0] * (1 + edge[:, 1]), abs=2e-4)


def test_nothing_is_said_between_resonances_until_solutions_agree():
    problem, own = family(-pb.laplacian(U) - (12 * K) ** 2 * U - 1 - X, most=7)
    assert not own.is_ready
    assert own.at(1.7) is None
    own.most = 30
    while not own.is_ready:
        assert own.grow()
    for value in (0.3, 1.7):
        found, true = own.at(value), pb.solve(problem.at(k=value), tol=1e-6, progress=False)(PLACES)
        error = np.linalg.norm(found(PLACES) - true) / np.linalg.norm(true)
        assert error < 3 * found.error_estimate


def test_values_without_a_solution_and_beyond_the_range_are_left_out():
    _, own = family(-K * pb.laplacian(U) - 1)
    assert own.values[0] > 0.0  # there is no equation at zero
    assert own.is_ready
    for value in (-0.5, 0.0, 2.5):
        assert not own.reaches(value)
        assert own.at(value) is None


def test_trees_that_are_too_coarse_for_a_value_are_not_asked_for_it():
    _, own = family(-(K**2) * pb.laplacian(U) + U - 1, low=0.01)
    assert 0.01 < own.values[0] < 0.5
    assert own.is_ready
    assert own.at(1.5).error_estimate < 1e-3


def test_few_solutions_follow_a_simple_dependence():
    _, own = family(-K * pb.laplacian(U) - 1)
    assert own.made <= 8
    assert own.at(1.111).error_estimate == pytest.approx(own.prepared.solution.error_estimate, rel=0.5)


def test_a_problem_in_another_place_has_other_trees():
    def problem(width, edge, factor):
        source = sp.Piecewise((1, edge > X), (2, True))
        return pb.Problem(
            -factor * pb.laplacian(U) - source, pb.Rectangle((X, 0, width), (Y, 0, 1)), [pb.Dirichlet(U, 0)]
        )

    half, third = sp.Rational(1, 2), sp.Rational(1, 3)
    first = problem(1, half, 1)
    assert keeps_trees(first, problem(1, half, 2))
    assert not keeps_trees(first, problem(2, half, 1))
    assert not keeps_trees(first, problem(1, third, 1))
    assert not keeps_trees(first, pb.Problem(U - 1, SQUARE, []))
