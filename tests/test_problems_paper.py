"""The paper's problems against the closed forms of their sources, and the slips of its text against themselves."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from pibls import problems
from pibls.problem import Interior, Problem
from test_problems_residuals import defects


def source_of(problem: Problem, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return interior points and the right-hand side R there; the residual is written left minus right."""
    (statement,) = (s for s in problem.statements if isinstance(s.place, Interior))
    X = problem.domain.sample(n, seed=5)
    return X, -statement.form.source_function(X)


def test_advection_source() -> None:
    X, R = source_of(problems.advection())
    x = X[:, 0]
    expected = 2 * np.pi * np.cos(2 * np.pi * x) * np.cos(4 * np.pi * x)
    expected -= 4 * np.pi * np.sin(2 * np.pi * x) * np.sin(4 * np.pi * x)
    np.testing.assert_allclose(R, expected, atol=1e-12)


def test_advection_has_one_condition_at_the_left_end() -> None:
    problem = problems.advection()
    points = problem.statements[1].place.part.sample(10).points
    np.testing.assert_array_equal(points, [[0.0]])
    assert len(problem.statements) == 2


@pytest.mark.parametrize("a", [1, 2, 10])
def test_poisson_square_source_and_solution(a: int) -> None:
    problem = problems.poisson_square(a)
    X, R = source_of(problem)
    x, y = X.T

    def factor(s: np.ndarray) -> np.ndarray:
        return 4.0**a * s**a * (1 - s) ** a

    def curvature(s: np.ndarray) -> np.ndarray:
        # Products with a factor a − 1 that vanishes keep a power that may be negative at a = 1 out of the sum.
        outer = a * (a - 1) * (s ** max(a - 2, 0) * (1 - s) ** a + s**a * (1 - s) ** max(a - 2, 0))
        return 4.0**a * (outer - 2 * a**2 * s ** (a - 1) * (1 - s) ** (a - 1))

    expected = -(curvature(x) * factor(y) + factor(x) * curvature(y))
    np.testing.assert_allclose(R, expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(
        problem.exact_values(X)["u"], 2.0 ** (4 * a) * (x * (1 - x) * y * (1 - y)) ** a, atol=1e-13
    )


def test_poisson_star_source() -> None:
    X, R = source_of(problems.poisson_star())
    x, y = X.T
    np.testing.assert_allclose(R, (12 - 16 * x**2 - 64 * y**2) * np.exp(-2 * x**2 - 4 * y**2), atol=1e-13)


def test_poisson_star_comes_near_the_statistics_of_the_table() -> None:
    problem = problems.poisson_star()
    # Over angle and share of the radius, both uniform: a polar parametrisation.
    turns, shares = np.meshgrid((np.arange(400) + 0.5) / 400, (np.arange(200) + 0.5) / 200)
    angle = 2 * np.pi * turns.ravel()
    radius = shares.ravel() * 0.71 * (1 + 0.65 * np.cos(5 * angle))
    u = problem.exact_values(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1))["u"]
    # What the published table implies, and the standard error of its 10 000 test points.
    for found, told, deviation in ((u, 1.1807, u.std()), (u**2, 1.4893, (u**2).std())):
        assert abs(found.mean() - told) < 0.5 * deviation / 100
    assert u.var() == pytest.approx(0.0951, rel=0.02)
    assert problem.exact_values(np.zeros((1, 2)))["u"][0] == 1.5


def test_points_uniform_over_the_area_have_no_such_averages() -> None:
    """On no curve a (1 + b cos 5θ) with the published mean do they vary as much as the published table says."""
    theta = (np.arange(300) + 0.5) * 2 * np.pi / 300
    share = (np.arange(60) + 0.5) / 60
    for b in np.linspace(0.0, 0.95, 20):
        for a in np.linspace(0.2, 1.2, 60):
            edge = a * (1 + b * np.cos(5 * theta))
            r = np.multiply.outer(np.sqrt(share), edge)
            u = np.exp(-((r * np.cos(theta)) ** 2) * 2 - ((r * np.sin(theta)) ** 2) * 4) + 0.5
            weights = np.broadcast_to(edge**2, u.shape) / np.sum(np.broadcast_to(edge**2, u.shape))
            mean = np.sum(weights * u)
            if abs(mean - 1.1807) < 0.01:
                assert np.sum(weights * u**2) - mean**2 < 0.0951 / 2


def test_poisson_star_is_the_documented_curve() -> None:
    points, _ = problems.poisson_star().domain.boundary.sample(300)
    theta = np.arctan2(points[:, 1], points[:, 0])
    np.testing.assert_allclose(np.hypot(*points.T), 0.71 * (1 + 0.65 * np.cos(5 * theta)), rtol=1e-10)


def test_diffusion_reaction_source() -> None:
    X, R = source_of(problems.diffusion_reaction())
    x, t = X.T
    modes = 1.5 * np.sin(2 * x) + 8 / 3 * np.sin(3 * x) + 15 / 4 * np.sin(4 * x) + 63 / 8 * np.sin(8 * x)
    np.testing.assert_allclose(R, np.exp(-t) * modes, atol=1e-13)


@pytest.mark.parametrize("slip", ["product in the reaction", "first derivative"])
def test_the_printed_diffusion_reaction_contradicts_its_own_solution(slip: str) -> None:
    problem = problems.diffusion_reaction()
    (u,) = problem.fields
    x, t = problem.domain.coordinates
    order = 1 if slip == "first derivative" else 2
    last = sp.Rational(8, 3) * sp.sin(3 * x), sp.Rational(15, 4) * sp.sin(4 * x)
    joined = last[0] * last[1] if slip == "product in the reaction" else last[0] + last[1]
    R = sp.exp(-t) * (sp.Rational(3, 2) * sp.sin(2 * x) + joined + sp.Rational(63, 8) * sp.sin(8 * x))
    equation = sp.Eq(u.diff(t), u.diff(x, order) + R)
    printed = Problem((equation,), problem.domain, problem.conditions, exact=problem.exact)
    assert defects(printed)["the equation"] > 0.1
