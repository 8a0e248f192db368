"""What must not change the answer: row order, column order and scale, repetition, rotation, and how it is asked."""

from __future__ import annotations

import numpy as np
import pytest

from pibls.solvers import QR, SOLVERS, SVD, LeastSquares, NormalEquations, Solver, solver

TALL, WIDE = (40, 12), (12, 40)
NAMES = list(SOLVERS)


def system(shape, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal(shape)
    return H / np.linalg.norm(H, axis=0), rng.standard_normal(shape[0])


def weights(name, H, z, ridge=0.0):
    return solver(name).factorise(H, ridge=ridge).solve(z)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_agrees_with_numpy(name, shape, ridge):
    H, z = system(shape)
    stacked = np.vstack([H, np.sqrt(ridge) * np.eye(shape[1])])
    reference = np.linalg.lstsq(stacked, np.r_[z, np.zeros(shape[1])], rcond=None)[0]
    np.testing.assert_allclose(weights(name, H, z, ridge), reference, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_stacking_the_rows_twice_changes_nothing(name):
    H, z = system(TALL)
    np.testing.assert_allclose(weights(name, np.vstack([H, H]), np.r_[z, z]), weights(name, H, z), atol=1e-12)
    doubled = weights(name, np.vstack([H, H]), np.r_[z, z], ridge=0.6)
    np.testing.assert_allclose(doubled, weights(name, H, z, ridge=0.3), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_permutations_of_rows_and_columns(name, shape):
    H, z = system(shape)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(shape[0]), rng.permutation(shape[1])
    permuted = weights(name, H[rows][:, columns], z[rows])
    np.testing.assert_allclose(permuted, weights(name, H, z)[columns], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_orthogonal_row_transforms(name, shape):
    H, z = system(shape)
    rotation = np.linalg.qr(np.random.default_rng(2).standard_normal((shape[0], shape[0])))[0]
    np.testing.assert_allclose(weights(name, rotation @ H, rotation @ z), weights(name, H, z), atol=1e-12)


@pytest.mark.parametrize("name", ["lstsq", "qr", "svd"])
def test_scaling_columns_scales_weights_back(name):
    H, z = system(TALL)
    scale = np.logspace(-3, 3, TALL[1])
    np.testing.assert_allclose(weights(name, H * scale, z) * scale, weights(name, H, z), atol=1e-10)


def test_default_does_not_feel_column_scaling_even_when_rank_deficient():
    H = np.sin(np.outer(np.linspace(-1, 1, 80), np.linspace(1, 5, 60)) + np.arange(60))
    z = np.exp(np.linspace(-1, 1, 80))
    scale = 2.0 ** np.random.default_rng(0).integers(-60, 60, size=60)
    plain, scaled = LeastSquares().factorise(H), LeastSquares().factorise(H * scale)
    assert plain.rank == scaled.rank
    np.testing.assert_allclose(scaled.solve(z) * scale, plain.solve(z), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_residual_is_orthogonal_to_the_range(name):
    H, z = system(TALL)
    np.testing.assert_allclose(H.T @ solver(name).factorise(H).residual(z), 0, atol=1e-12)


@pytest.mark.parametrize("name", ["lstsq", "qr", "svd", "normal"])
def test_a_ridge_per_column_equals_extra_rows(name):
    H, z = system(TALL)
    ridge = np.linspace(0, 2, TALL[1])
    stacked = np.vstack([H, np.diag(np.sqrt(ridge))])
    factor = solver(name).factorise(H, ridge=ridge)
    reference = weights("svd", stacked, np.r_[z, np.zeros(TALL[1])])
    np.testing.assert_allclose(factor.solve(z), reference, atol=1e-12)
    np.testing.assert_allclose(factor.residual(z), z - H @ reference, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_many_right_hand_sides_equal_one_by_one(name, shape):
    H, _ = system(shape)
    Z = np.random.default_rng(5).standard_normal((shape[0], 3))
    factor = solver(name).factorise(H)
    np.testing.assert_allclose(factor.solve(Z), np.stack([factor.solve(z) for z in Z.T], axis=1), atol=1e-13)
    np.testing.assert_allclose(factor.residual(Z), np.stack([factor.residual(z) for z in Z.T], axis=1), atol=1e-13)
    assert factor.solve(Z[:, :1]).shape == (shape[1], 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_the_matrix_is_left_alone_unless_overwrite_allows_it(name, shape):
    H, z = system(shape)
    for given in (H.copy(order="F"), H.copy(order="C")):
        kept = given.copy()
        factor = solver(name).factorise(given)
        np.testing.assert_array_equal(given, kept)
        before = factor.solve(z)
        given[:] = np.nan
        np.testing.assert_array_equal(factor.solve(z), before)
        given[:] = H
        np.testing.assert_allclose(solver(name).factorise(given, overwrite=True).solve(z), before, atol=1e-13)


def test_overwrite_factorises_in_the_memory_of_a_fortran_matrix():
    H, _ = system(TALL)
    given = H.copy(order="F")
    factor = LeastSquares().factorise(given, overwrite=True)
    assert np.shares_memory(factor.orthogonal.vectors, given)
    frozen = H.copy(order="F")
    frozen.flags.writeable = False
    assert not np.shares_memory(LeastSquares().factorise(frozen, overwrite=True).orthogonal.vectors, frozen)


def test_zero_columns_get_zero_weights():
    H, z = system(TALL)
    padded = np.insert(H, [0, 5, 12], 0.0, axis=1)
    factor = LeastSquares().factorise(padded)
    assert factor.rank == 12
    found = factor.solve(z)
    assert (found[[0, 6, 14]] == 0).all()
    np.testing.assert_allclose(np.delete(found, [0, 6, 14]), weights("lstsq", H, z), atol=1e-12)


@pytest.mark.parametrize("method", [LeastSquares(), SVD()])
def test_the_zero_matrix_gives_zero_weights(method):
    factor = method.factorise(np.zeros((5, 3)))
    assert factor.rank == 0
    assert factor.condition == np.inf
    np.testing.assert_array_equal(factor.solve(np.ones(5)), np.zeros(3))
    np.testing.assert_array_equal(factor.residual(np.ones(5)), np.ones(5))


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["lstsq", "svd", "qr"])
def test_the_unit_of_the_matrix_does_not_matter(name, size):
    H, z = system(TALL)
    np.testing.assert_allclose(weights(name, H * size, z) * size, weights(name, H, z), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_torch_gives_the_same_answers_and_mixes_with_numpy(name):
    torch = pytest.importorskip("torch")
    for shape in (TALL, WIDE):
        H, z = system(shape)
        for ridge in (0.0, 0.5):
            factor = solver(name).factorise(torch.tensor(H), ridge=ridge)
            found = factor.solve(torch.tensor(z))
            assert isinstance(found, torch.Tensor)
            np.testing.assert_allclose(found.numpy(), weights(name, H, z, ridge), atol=1e-12)
            np.testing.assert_allclose(factor.solve(z).numpy(), found.numpy(), atol=1e-15)
            np.testing.assert_allclose(
                solver(name).factorise(H, ridge=ridge).solve(torch.tensor(z)), found.numpy(), atol=1e-12
            )


def test_lookup_passes_solvers_through_and_knows_every_name():
    custom = LeastSquares(cutoff=1e-10)
    assert solver(custom) is custom
    for name, kind in {"lstsq": LeastSquares, "qr": QR, "svd": SVD, "normal": NormalEquations}.items():
        found = solver(name)
        assert isinstance(found, kind)
        assert isinstance(found, Solver)
        assert found.name == name
