"""Least squares over rows that are made block by block: the answers of QR, whatever the blocks are."""

from __future__ import annotations

import numpy as np
import pytest

from pibls.solvers import LeastSquares, RowBlocks, Sketched


def features(rows, columns, fineness=40.0, seed=0):
    """Return random sines on an interval, nearly dependent if they are not fine, and a function that they miss."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    H = np.sin(np.outer(x, rng.normal(0, fineness, columns)) + rng.uniform(0, 7, columns))
    return H, np.abs(x) ** 0.7 + rng.normal(0, 1e-3, rows)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("step", [100, 333, 5000])
def test_rows_in_blocks_give_the_fit_of_all_together(step, library):
    H, z = features(3000, 120, 400.0)
    reference = H @ LeastSquares().factorise(H).solve(z)
    made = []
    if library == "torch":
        torch = pytest.importorskip("torch")
        H, z = torch.as_tensor(H), torch.as_tensor(z)

    def make(own):
        made.append(own.stop - own.start)
        return H[own, :]

    factor = Sketched().factorise_rows(RowBlocks((3000, 120), make, step))
    fitted = np.asarray(H @ factor.solve(z))
    assert max(made) == min(step, 3000)
    assert np.linalg.norm(fitted - reference) < 1e-10 * np.linalg.norm(reference)


def test_weights_have_the_digits_of_qr_at_any_condition():
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((4000, 50), (50, 50)))
    H = left * np.logspace(0, -11, 50) @ right.T
    wanted = rng.standard_normal(50)
    z = H @ wanted
    found, reference = (method.factorise(H).solve(z) for method in (Sketched(), LeastSquares()))
    assert np.linalg.norm(found - wanted) < 10 * np.linalg.norm(reference - wanted)
    noise = z + 1e-3 * (np.eye(4000)[:, 0] - left @ left[0])
    residual = Sketched().factorise(H).residual(noise)
    assert np.linalg.norm(H.T @ residual) < 1e-15


def test_dependent_columns_are_fitted_as_well_as_by_all_rows():
    H, z = features(3000, 120, 20.0)
    factors = [method.factorise(H) for method in (Sketched(), LeastSquares())]
    assert factors[0].rank < 100
    one, two = (np.linalg.norm(z - H @ factor.solve(z)) for factor in factors)
    assert one == pytest.approx(two, rel=1e-3)


def test_several_right_hand_sides_are_solved_together():
    H, z = features(1000, 40, 400.0)
    both = Sketched().factorise(H).solve(np.stack([z, 1e-6 * z**2], axis=1))
    alone = Sketched().factorise(H).solve(1e-6 * z**2)
    assert np.allclose(both[:, 1], alone, rtol=1e-9, atol=1e-12 * np.abs(alone).max())
