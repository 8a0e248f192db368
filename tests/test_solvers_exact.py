"""Answers known by construction: H = U Σ Vᵀ with chosen singular values, so that weights and residual are exact."""

from __future__ import annotations

import numpy as np
import pytest

from pibls.errors import SolveError
from pibls.solvers import QR, SOLVERS, SVD, LeastSquares, NormalEquations, solver

LIBRARIES = ("numpy", "torch")
SHAPES = [(60, 20), (20, 60), (30, 30), (400, 7), (1, 5), (5, 1)]


def orthonormal(rng, rows, columns):
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


def with_singular_values(rng, rows, columns, sigma):
    u, v = orthonormal(rng, rows, len(sigma)), orthonormal(rng, columns, len(sigma))
    return u, (u * sigma) @ v.T, v


def convert(library, *arrays):
    if library == "numpy":
        return arrays
    torch = pytest.importorskip("torch")
    return tuple(torch.tensor(np.asarray(a)) for a in arrays)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", list(SOLVERS))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_every_solver_finds_the_exact_weights(name, shape, ridge, library):
    rng = np.random.default_rng(sum(shape))
    # Equal singular values make every column of a wide H of known norm, so minimal norm means the same to all.
    k = min(shape)
    sigma = np.full(k, 2.0) if shape[0] < shape[1] else np.linspace(1, 3, k)
    u, H, v = with_singular_values(rng, *shape, sigma)
    if shape[0] < shape[1] and name in ("lstsq", "sketch") and ridge == 0:
        H = H / np.linalg.norm(H, axis=0)
        exact = np.linalg.pinv(H) @ (z := rng.standard_normal(shape[0]))
    else:
        z = rng.standard_normal(shape[0])
        exact = v @ (sigma / (sigma**2 + ridge) * (u.T @ z))
    Hx, zx = convert(library, H, z)
    factor = solver(name).factorise(Hx, ridge=ridge)
    assert factor.shape == shape
    assert factor.name == name
    assert factor.rank == (shape[1] if ridge and name != "svd" and not (name == "normal" and k == shape[0]) else k)
    np.testing.assert_allclose(np.asarray(factor.solve(zx)), exact, atol=1e-12)
    np.testing.assert_allclose(np.asarray(factor.residual(zx)), z - H @ exact, atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", [LeastSquares(), SVD()])
@pytest.mark.parametrize(
    ("rows", "columns", "rank"), [(50, 20, 7), (300, 100, 31), (100, 200, 50), (60, 50, 49), (90, 90, 1), (30, 200, 10)]
)
def test_exact_rank_is_found_with_minimal_norm(method, rows, columns, rank, library):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        H = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
        H /= np.linalg.norm(H, axis=0)
        z = rng.standard_normal(rows)
        u, sigma, vt = np.linalg.svd(H, full_matrices=False)
        exact = vt[:rank].T @ ((u[:, :rank].T @ z) / sigma[:rank])
        Hx, zx = convert(library, H, z)
        factor = method.factorise(Hx)
        assert factor.rank == rank
        assert factor.condition > 1e12 or rank == min(rows, columns)
        np.testing.assert_allclose(np.asarray(factor.solve(zx)), exact, atol=1e-10 * np.linalg.norm(exact))


@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("rank", [1, 13, 39])
def test_rank_of_a_gap_above_rounding_is_full_and_below_the_cutoff_is_not(gap, rank):
    rng = np.random.default_rng(rank)
    sigma = np.r_[np.ones(rank), np.full(40 - rank, gap)]
    _, H, _ = with_singular_values(rng, 120, 40, sigma)
    assert LeastSquares().factorise(H).rank == 40
    assert LeastSquares(cutoff=gap * 100).factorise(H).rank == rank
    assert SVD(cutoff=gap * 100).factorise(H).rank == rank


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12, 1e20])
@pytest.mark.parametrize("shape", [(80, 40), (40, 40), (2000, 40)])
def test_consistent_systems_are_satisfied_to_rounding_at_any_condition(condition, shape):
    rng = np.random.default_rng(3)
    sigma = np.logspace(0, -np.log10(condition), 40)
    _, H, _ = with_singular_values(rng, *shape, sigma)
    weights = rng.standard_normal(40)
    factor = LeastSquares().factorise(H)
    found = factor.solve(H @ weights)
    assert np.linalg.norm(H @ (found - weights)) < 1e-14 * np.linalg.norm(weights)
    assert np.linalg.norm(found) < 1.5 * np.linalg.norm(weights)
    if condition <= 1e12:
        assert np.linalg.norm(found - weights) < 30 * condition * 2.3e-16 * np.linalg.norm(weights)


@pytest.mark.parametrize("condition", [1e2, 1e5, 1e9])
def test_condition_estimates_are_of_the_right_size(condition):
    rng = np.random.default_rng(0)
    _, H, _ = with_singular_values(rng, 100, 30, np.logspace(0, -np.log10(condition), 30))
    true = np.linalg.cond(H / np.linalg.norm(H, axis=0))
    for method in (LeastSquares(), QR()):
        assert true / 60 < method.factorise(H).condition < 60 * true
    assert SVD().factorise(H).condition == pytest.approx(condition, rel=1e-4)


HARD = {
    "hilbert": 1.0 / (np.arange(40)[:, None] + np.arange(25) + 1),
    "vandermonde": np.vander(np.linspace(0, 1, 60), 30),
    "graded": np.random.default_rng(0).standard_normal((50, 30)) * np.logspace(0, -30, 30),
    "graded rows": np.random.default_rng(0).standard_normal((50, 30)) * np.logspace(0, -12, 50)[:, None],
    "kahan": np.diag(np.sin(1.2) ** np.arange(60)) @ (np.eye(60) - np.cos(1.2) * np.triu(np.ones((60, 60)), 1)),
    "smooth": np.sin(np.outer(np.linspace(-1, 1, 90), np.linspace(1, 9, 120)) + np.arange(120)),
}


@pytest.mark.parametrize("name", list(HARD))
def test_residual_on_hard_matrices_is_no_worse_than_lapack(name):
    from scipy.linalg import lstsq

    H = HARD[name]
    scaled = H / np.linalg.norm(H, axis=0)
    for z in (H @ np.ones(H.shape[1]), np.cos(np.linspace(0, 3, len(H)))):
        reference = scaled @ lstsq(scaled, z, lapack_driver="gelsd")[0] - z
        factor = LeastSquares().factorise(H)
        weights = factor.solve(z)
        residual = z - H @ weights
        assert np.linalg.norm(residual) < 10 * np.linalg.norm(reference) + 1e-13 * np.linalg.norm(z)
        size = np.linalg.norm(weights * np.linalg.norm(H, axis=0)) + np.linalg.norm(z)
        np.testing.assert_allclose(factor.residual(z), residual, atol=1e-14 * size)


def test_default_reaches_machine_precision_on_features_where_normal_equations_cannot():
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 300)
    frequency, phase = rng.uniform(-20, 20, 100), rng.uniform(0, 2 * np.pi, 100)
    H = np.vstack(
        [-(frequency**2) * np.sin(np.outer(x, frequency) + phase), 300 * np.sin(np.outer([-1, 1], frequency) + phase)]
    )
    z = np.r_[-9 * np.sin(3 * x), 300 * np.sin([-3, 3])]
    unseen = np.linspace(-0.99, 0.99, 77)
    features = np.sin(np.outer(unseen, frequency) + phase)
    error = np.abs(features @ LeastSquares().factorise(H).solve(z) - np.sin(3 * unseen)).max()
    normal = np.abs(features @ NormalEquations().factorise(H, ridge=1e-6).solve(z) - np.sin(3 * unseen)).max()
    assert error < 1e-12
    assert normal > 1e3 * error


def test_seed_of_the_mixing_does_not_matter_beyond_rounding():
    rng = np.random.default_rng(0)
    H, z = rng.standard_normal((40, 15)), rng.standard_normal(40)
    first, second = (LeastSquares(seed=seed).factorise(H).solve(z) for seed in (0, 1))
    np.testing.assert_allclose(first, second, atol=1e-13)


def test_qr_refuses_singular_matrices_with_a_remedy():
    H = np.random.default_rng(0).standard_normal((30, 5))
    for singular in (np.c_[H, H[:, 0]], np.c_[H, np.zeros(30)], np.c_[H, H @ np.ones(5)].T, HARD["smooth"].T):
        with pytest.raises(SolveError, match="Use solver='lstsq'"):
            QR().factorise(singular)


@pytest.mark.parametrize("shape", [(30, 10), (10, 30)])
def test_normal_equations_agree_in_both_forms(shape):
    rng = np.random.default_rng(0)
    H, z = rng.standard_normal(shape), rng.standard_normal(shape[0])
    primal, dual = (NormalEquations(form).factorise(H, ridge=0.2).solve(z) for form in ("primal", "dual"))
    np.testing.assert_allclose(primal, dual, atol=1e-12)
    np.testing.assert_allclose(primal, LeastSquares().factorise(H, ridge=0.2).solve(z), atol=1e-12)


def test_normal_equations_refuse_what_is_not_positive_definite():
    H = np.ones((6, 3))
    with pytest.raises(SolveError, match="larger ridge"):
        NormalEquations().factorise(H)
    with pytest.raises(SolveError, match="HHᵀ"):
        NormalEquations("dual").factorise(np.eye(6)[:, :3])


def test_normal_equations_refuse_column_ridges_in_the_dual_form():
    with pytest.raises(ValueError, match="one number in the dual form"):
        NormalEquations("dual").factorise(np.ones((2, 3)), ridge=[1.0, 2.0, 3.0])
