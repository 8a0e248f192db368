"""Eigenvalue problems with too few conditions, or with one too many."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls import Dirichlet, Interval, Neumann, Problem, Rectangle, coordinates, eigenvalue, field, laplacian

x, y = coordinates("x y")
u, w, lam = field("u", x), field("w", x, y), eigenvalue("lam")
LINE, SQUARE = Interval((x, 0, 1)), Rectangle((x, 0, 1), (y, 0, 1))
STRING, DRUM = sp.Eq(-u.diff(x, 2), lam * u), sp.Eq(-laplacian(w), lam * w)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Problem(STRING, LINE, [Dirichlet(u, 0, on=LINE.left)]), "u has one condition, one on left and none on right"),
        (
            Problem(DRUM, SQUARE, [Dirichlet(w, 0, on=SQUARE.left | SQUARE.right | SQUARE.top)]),
            "bottom has no condition",
        ),
        (
            Problem(sp.Eq(laplacian(laplacian(w)), lam * w), SQUARE, [Dirichlet(w, 0)]),
            "the boundary has one condition; laplacian(laplacian(w)) = lam*w needs two there",
        ),
        (
            Problem(STRING, LINE, [Dirichlet(u, 0), Neumann(u, 0, on=LINE.left)]),
            "Neumann(dn(u) = 0 on left) is beyond what determines eigenfunctions. Without, the first",
        ),
    ],
)
def test_conditions_that_do_not_determine_eigenfunctions_are_told(problem: Problem, words: str) -> None:
    found = pb.eigen(problem, number=3)
    assert found.status == "ill-posed"
    assert words in found.message
    assert np.isinf(found.errors).all()


def test_a_condition_given_twice_is_none_too_many() -> None:
    found = pb.eigen(Problem(STRING, LINE, [Dirichlet(u, 0), Dirichlet(u, 0, on=LINE.left)]), number=2)
    assert found.status == "converged"
    np.testing.assert_allclose(found.values, [np.pi**2, 4 * np.pi**2], rtol=1e-8)
