"""Nonlinear ready problems beyond what the tests of the whole catalogue check."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from pibls import problems
from pibls.errors import InputError


def test_lane_emden_of_index_one_is_linear_and_solved_by_sinc():
    problem = problems.lane_emden(1)
    assert problem.is_linear
    x = problem.domain.coordinates[0]
    assert problem.exact_values([0.0])["u"][0] == 1
    form = problem.statements[0].form
    X = np.linspace(0.1, 3, 20)[:, None]
    sine = sp.sin(x) / x
    state = [sp.lambdify(x, sine.diff(x, term.order))(X[:, 0]) for term in form.terms]
    np.testing.assert_allclose(form.residual_function(X, None, state), 0, atol=1e-12)
    np.testing.assert_allclose(problem.exact_values(X)["u"], np.sin(X[:, 0]) / X[:, 0], rtol=1e-14)


@pytest.mark.parametrize("index", [2, 3, 4, 1.5, 0, 6])
def test_lane_emden_without_a_closed_form_is_refused(index):
    with pytest.raises(InputError, match="'index' parameter of lane_emden"):
        problems.lane_emden(index)


@pytest.mark.parametrize("load", [0.5, 1, 3, 3.5])
def test_bratu_1d_is_the_smaller_solution(load):
    middle = problems.bratu_1d(load).exact_values([0.5])["u"][0]
    # u(½) = 2 log cosh(θ/4), and the branches meet where (θ/4) tanh(θ/4) = 1, at u(½) = 1.1868.
    assert 0 < middle < 1.1869


def test_kovasznay_has_the_mean_pressure_of_its_exact_solution():
    problem = problems.kovasznay(20)
    X, weights = problem.domain.quadrature(4000)
    mean = weights @ problem.exact_values(X)["p"] / weights.sum()
    assert problem.conditions[-1].value == pytest.approx(mean, rel=1e-9)


def chebyshev(n):
    """Return points on [0, 1] and the matrix of the derivative."""
    t = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.concatenate([[2], np.ones(n - 1), [2]]) * (-1.0) ** np.arange(n + 1)
    D = np.outer(c, 1 / c) / (t[:, None] - t + np.eye(n + 1))
    return (1 + t) / 2, 2 * (D - np.diag(D.sum(axis=1)))


def torsion(x, y):
    """Return the solution of −Δs = 1 on the unit square, zero on its boundary, by its series."""
    total = x * (1 - x) / 2
    for n in range(1, 2001, 2):
        side = (np.exp(-n * np.pi * y) + np.exp(-n * np.pi * (1 - y))) / (1 + np.exp(-n * np.pi))
        total = total - 4 / (np.pi * n) ** 3 * np.sin(n * np.pi * x) * side
    return total


def test_reference_of_bratu_by_chebyshev_collocation():
    n = 22
    t, D = chebyshev(n)
    second = (D @ D)[1:-1, 1:-1]
    X, Y = (a.ravel() for a in np.meshgrid(t[1:-1], t[1:-1], indexing="ij"))
    s, rest = torsion(X, Y), np.zeros(len(X))
    laplace = np.kron(second, np.eye(n - 1)) + np.kron(np.eye(n - 1), second)
    for _ in range(6):
        growth = np.exp(s + rest)
        rest -= np.linalg.solve(laplace + np.diag(growth), laplace @ rest + growth - 1)
    grid = np.zeros((n + 1, n + 1))
    grid[1:-1, 1:-1] = rest.reshape(n - 1, n - 1)
    weights = (-1.0) ** np.arange(n + 1)
    weights[[0, -1]] /= 2

    def row(p):
        distance = p - t
        if (near := np.abs(distance) < 1e-14).any():
            return near.astype(float)
        return (weights / distance) / (weights / distance).sum()

    reference = problems.references()["bratu_unforced"]
    found = [row(a) @ grid @ row(b) + torsion(a, b) for a, b in reference.points]
    np.testing.assert_allclose(found, reference.values, atol=1e-9)
