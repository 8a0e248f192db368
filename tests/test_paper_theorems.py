"""The checks of the theorems hold for minimisers, and each fails for weights that are none."""

from __future__ import annotations

import numpy as np
import pytest

from internals import CHECKS, Check, LeastSquaresProblem, check_theorems
from pibls.solvers import solver


def problem(seed, shape, ridge):
    rng = np.random.default_rng(seed)
    # Singular values over eight orders of magnitude, as those of random nodes.
    u, _ = np.linalg.qr(rng.standard_normal((shape[0], min(shape))))
    v, _ = np.linalg.qr(rng.standard_normal((shape[1], min(shape))))
    return LeastSquaresProblem((u * np.geomspace(1e-6, 1e2, min(shape))) @ v.T, rng.standard_normal(shape[0]), ridge)


def solving(case, name):
    return lambda rhs, ridge: np.asarray(solver(name).factorise(np.asfortranarray(case.matrix), ridge=ridge).solve(rhs))


SHAPES = [(60, 20), (20, 60), (30, 30)]


@pytest.mark.parametrize("name", ["lstsq", "svd"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge", [1e-4, 1.0])
def test_every_solver_passes_with_a_ridge(name, shape, ridge):
    case = problem(1, shape, ridge)
    found = check_theorems(case, solving(case, name))
    assert list(found) == list(CHECKS)
    assert [check for check, values in found.items() if not values["holds"]] == []
    assert found["stability"]["measured"] == pytest.approx(found["stability"]["sharp_bound"], rel=1e-3)
    assert found["stability"]["paper_bound"] > found["stability"]["sharp_bound"]


WRONG = {
    "1.9 w": lambda w, null: 1.9 * w,
    "half of w": lambda w, null: 0.5 * w,
    "zero": lambda w, null: 0.0 * w,
    "w and a direction that no row sees": lambda w, null: w + np.linalg.norm(w) * null,
    "w off by a millionth": lambda w, null: 1.000001 * w,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("check", CHECKS)
def test_each_check_fails_on_wrong_weights(wrong, check):
    case = problem(2, (20, 60), 1e-2)
    null = case.decomposition[2][-1]
    good = solving(case, "lstsq")
    found = check_theorems(case, lambda rhs, ridge: WRONG[wrong](good(rhs, ridge), null))
    # A gain is compared to three digits, the others to rounding; and what is added to all weights leaves changes alone.
    unseen = {("w off by a millionth", "stability"), ("w off by a millionth", "sensitivity")}
    unseen |= {("w and a direction that no row sees", "sensitivity")}
    assert found[check]["holds"] == ((wrong, check) in unseen)


def test_what_normal_equations_lose_is_seen():
    case = problem(1, (20, 60), 1e-4)
    found = [check_theorems(case, solving(case, name))["optimality"] for name in ("lstsq", "normal")]
    assert [check["holds"] for check in found] == [True, False]
    assert found[1]["measured"] > 1000 * found[0]["measured"]


@pytest.mark.parametrize("shape", SHAPES)
def test_without_a_ridge_the_minimiser_is_checked_and_nothing_that_needs_one(shape):
    case = problem(3, shape, 0.0)
    good = solving(case, "lstsq")
    assert {name: values["holds"] for name, values in check_theorems(case, good).items()} == dict.fromkeys(
        CHECKS[:2], True
    )
    for factor in (1.9, 0.5, 0.0):
        found = check_theorems(case, lambda rhs, ridge, f=factor: f * good(rhs, ridge))
        assert not any(values["holds"] for values in found.values())


def test_a_bound_that_is_to_be_attained_is_two_sided():
    assert Check("a", 0.5, 1.0).holds
    assert not Check("a", 0.5, 1.0, attained=True).holds
    assert not Check("a", 1.01, 1.0, attained=True).holds
    assert not Check("a", 1.0 + 1e-9, 1.0).holds
