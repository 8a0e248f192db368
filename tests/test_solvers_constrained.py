"""Equality constraints: exact to rounding, optimal among all weights that satisfy them, or refused by row."""

from __future__ import annotations

import numpy as np
import pytest

from pibls.errors import InputError, SolveError
from pibls.solvers import constrained, solver

SOLVERS = ["lstsq", "qr", "svd", "normal"]


def system(rows=50, columns=20, bound=4, seed=0):
    rng = np.random.default_rng(seed)
    H, C = rng.standard_normal((rows, columns)), rng.standard_normal((bound, columns))
    return H, C, rng.standard_normal(rows), rng.standard_normal(bound)


def kkt(H, C, z, d, ridge=0.0):
    """The optimality system, solved densely: an independent answer for well-conditioned data."""
    p = len(C)
    K = np.block([[H.T @ H + ridge * np.eye(H.shape[1]), C.T], [C, np.zeros((p, p))]])
    return np.linalg.lstsq(K, np.r_[H.T @ z, d], rcond=None)[0][: H.shape[1]]


def smooth(columns=80):
    """Sin features in one dimension: H on many points, C on the ends; both of tiny numerical rank."""
    rng = np.random.default_rng(1)
    frequency, phase = rng.uniform(-9, 9, columns), rng.uniform(0, 6, columns)
    x = np.linspace(-1, 1, 200)
    return lambda t: np.sin(np.outer(t, frequency) + phase), x


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_agrees_with_the_optimality_system(name, ridge):
    H, C, z, d = system()
    factor = constrained(solver(name), H, C, ridge=ridge)
    weights = factor.solve(z, d)
    np.testing.assert_allclose(weights, kkt(H, C, z, d, ridge), atol=1e-11)
    np.testing.assert_allclose(C @ weights, d, atol=1e-13)
    assert factor.rank == 20
    assert factor.space.rank == 4
    assert factor.condition >= 1
    assert factor.name == f"constrained {name}"


def test_a_ridge_per_column_shrinks_its_own_column():
    H, C, z, d = system()
    ridge = np.r_[1e12, np.zeros(19)]
    weights = constrained(solver("lstsq"), H, C, ridge=ridge).solve(z, d)
    np.testing.assert_allclose(C @ weights, d, atol=1e-12)
    assert abs(weights[0]) < 1e-9
    np.testing.assert_allclose(weights[1:], kkt(H[:, 1:], C[:, 1:], z, d), atol=1e-8)


@pytest.mark.parametrize("copies", [2, 8])
def test_redundant_constraints_and_more_rows_than_columns(copies):
    H, C, z, d = system()
    rng = np.random.default_rng(9)
    mixing = rng.standard_normal((4 * copies, 4))
    weights = constrained(solver("lstsq"), H, mixing @ C).solve(z, mixing @ d)
    np.testing.assert_allclose(weights, kkt(H, C, z, d), atol=1e-11)
    np.testing.assert_allclose(C @ weights, d, atol=1e-12)


def test_the_scale_of_constraint_rows_does_not_matter():
    H, C, z, d = system()
    scale = np.logspace(-9, 9, 4)
    weights = constrained(solver("lstsq"), H, C * scale[:, None]).solve(z, d * scale)
    np.testing.assert_allclose(weights, kkt(H, C, z, d), atol=1e-11)


def test_smooth_features_hold_their_boundary_values_to_machine_precision():
    features, x = smooth()
    ends = np.array([-1.0, 0.3, 1.0])
    H = features(x)
    for target in (np.exp, np.cos, lambda t: np.abs(t - 0.2)):
        weights = constrained(solver("lstsq"), H, features(ends)).solve(target(x), target(ends))
        assert np.abs(features(ends) @ weights - target(ends)).max() < 1e-13 * max(1, np.abs(weights).max())
    weights = constrained(solver("lstsq"), H, features(ends)).solve(np.exp(x), np.exp(ends))
    assert np.abs(features(ends) @ weights - np.exp(ends)).max() < 1e-13
    unseen = np.linspace(-0.9, 0.9, 41)
    assert np.abs(features(unseen) @ weights - np.exp(unseen)).max() < 1e-11


def test_many_smooth_constraints_of_small_numerical_rank():
    features, x = smooth()
    points = np.linspace(-1, 1, 120)
    factor = constrained(solver("lstsq"), features(x), features(points))
    assert factor.space.rank < 45
    weights = factor.solve(np.exp(x), np.exp(points))
    assert np.abs(features(points) @ weights - np.exp(points)).max() < 1e-12


def test_constraints_that_fix_everything_leave_nothing_to_fit():
    rng = np.random.default_rng(0)
    H, C, exact = rng.standard_normal((9, 5)), rng.standard_normal((5, 5)), rng.standard_normal(5)
    factor = constrained(solver("qr"), H, C)
    assert factor.free is None
    assert factor.condition == 1.0
    np.testing.assert_allclose(factor.solve(np.zeros(9), C @ exact), exact, atol=1e-12)


def test_zero_constraints_bind_nothing():
    H, _, z, _ = system()
    weights = constrained(solver("lstsq"), H, np.zeros((2, 20))).solve(z, np.zeros(2))
    np.testing.assert_allclose(weights, np.linalg.lstsq(H, z, rcond=None)[0], atol=1e-12)
    with pytest.raises(SolveError, match=r"row 1 is off by 3\.00e\+00"):
        constrained(solver("lstsq"), H, np.zeros((2, 20))).solve(z, np.array([0.0, 3.0]))


def test_contradictions_are_refused_by_row():
    H, C, z, d = system()
    factor = constrained(solver("lstsq"), H, np.vstack([C, C[:1], C[:1]]))
    with pytest.raises(SolveError, match=r"row 5 is off by 1\.33e\+00"):
        factor.solve(z, np.r_[d, d[0], d[0] + 2.0])
    np.testing.assert_allclose(factor.solve(z, np.r_[d, d[0], d[0]]), kkt(H, C, z, d), atol=1e-11)


def test_many_right_hand_sides_equal_one_by_one():
    H, C, _, _ = system()
    rng = np.random.default_rng(3)
    Z, D = rng.standard_normal((50, 3)), rng.standard_normal((4, 3))
    factor = constrained(solver("lstsq"), H, C)
    one_by_one = np.stack([factor.solve(z, d) for z, d in zip(Z.T, D.T, strict=True)], axis=1)
    np.testing.assert_allclose(factor.solve(Z, D), one_by_one, atol=1e-13)


def test_one_contradiction_among_many_right_hand_sides_is_found():
    H, C, z, d = system()
    factor = constrained(solver("lstsq"), H, np.vstack([C, C[:1]]))
    good, bad = np.r_[d, d[0]] * 1e6, np.r_[d, d[0] + 1e-3]
    with pytest.raises(SolveError, match="contradict"):
        factor.solve(np.c_[z, z], np.c_[good, bad])


@pytest.mark.parametrize("name", SOLVERS)
def test_torch_gives_the_same_weights(name):
    torch = pytest.importorskip("torch")
    H, C, z, d = system()
    for ridge in (0.0, 0.4):
        factor = constrained(solver(name), torch.tensor(H), torch.tensor(C), ridge=ridge)
        weights = factor.solve(torch.tensor(z), torch.tensor(d))
        assert isinstance(weights, torch.Tensor)
        np.testing.assert_allclose(weights.numpy(), kkt(H, C, z, d, ridge), atol=1e-11)
        assert np.abs(C @ weights.numpy() - d).max() < 1e-13


def test_wrong_arguments_are_refused():
    H, C, z, d = system()
    with pytest.raises(InputError, match=r"columns of 'matrix' \(20\)"):
        constrained(solver("lstsq"), H, C[:, :5])
    with pytest.raises(InputError, match="'values' parameter of constrained must have as many columns"):
        constrained(solver("lstsq"), H, C).solve(z, d[:, None])
    with pytest.raises(InputError, match=r"shape \(4,\) or \(4, k\)"):
        constrained(solver("lstsq"), H, C).solve(z, d[:2])
    with pytest.raises(SolveError, match="'constraints' of constrained has 1 entries that are not finite"):
        constrained(solver("lstsq"), H, np.where(C[2, 3] == C, np.nan, C))


def test_faint_constraints_count_and_fainter_ones_do_not():
    H, C, _, _ = system()
    near, nearer = C.copy(), C.copy()
    near[3], nearer[3] = C[0] + 1e-7 * C[3], C[0] + 1e-11 * C[3]
    assert [constrained(solver("lstsq"), H, rows).space.rank for rows in (near, nearer)] == [4, 3]
