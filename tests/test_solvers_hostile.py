"""Input that cannot be solved, or hardly: every failure is one of the library's own errors and says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from internals import Dense, Mixing, _Torch, hartley
from pibls import runtime
from pibls.errors import InputError, PiblsError, ResourceError, SolveError
from pibls.solvers import SOLVERS, SVD, LeastSquares, NormalEquations, solver

NAMES = list(SOLVERS)


@settings(max_examples=60, deadline=None)
@given(
    H=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.floats(width=64)),
    ridge=st.sampled_from([0.0, 1e-300, 1.0, 1e300]),
    name=st.sampled_from(NAMES),
)
def test_any_matrix_is_solved_or_refused(H, ridge, name):
    try:
        factor = solver(name).factorise(H, ridge=ridge)
        weights = factor.solve(np.ones(len(H)))
    except PiblsError:
        return
    assert np.isfinite(weights).all()
    assert 0 <= factor.rank <= H.shape[1]
    assert factor.condition >= 1.0 or np.isinf(factor.condition)


@settings(max_examples=40, deadline=None)
@given(value=st.one_of(st.none(), st.text(), st.integers(), st.lists(st.text()), st.complex_numbers(), st.binary()))
@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_no_matrix_are_refused(name, value):
    for given_value in (value, [[1.0, 2.0], [3.0]]):
        with pytest.raises(InputError, match="'matrix' parameter"):
            solver(name).factorise(given_value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4,), (2, 2, 2), ()])
def test_shapes_that_are_no_system_are_refused(name, shape):
    with pytest.raises(InputError, match="at least one row and one column"):
        solver(name).factorise(np.ones(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", NAMES)
def test_non_finite_entries_are_counted_and_located(name, library, bad):
    H, z = np.random.default_rng(0).standard_normal((6, 4)), np.ones(6)
    broken = H.copy()
    broken[[2, 4], [3, 1]] = bad
    if library == "torch":
        torch = pytest.importorskip("torch")
        H, z, broken = torch.tensor(H), torch.tensor(z), torch.tensor(broken)
    with pytest.raises(SolveError, match="2 entries that are not finite, the first at row 2, column 3"):
        solver(name).factorise(broken)
    factor = solver(name).factorise(H)
    z[5] = bad
    with pytest.raises(SolveError, match=r"'rhs' .* 1 entries that are not finite, the first at row 5"):
        factor.solve(z)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rhs", [np.ones(3), np.ones((5, 1, 1)), np.ones((4, 5)), 1.0, "z", None, [1j] * 5])
def test_wrong_right_hand_sides_are_refused(name, rhs):
    factor = solver(name).factorise(np.eye(5))
    for ask in (factor.solve, factor.residual):
        with pytest.raises(InputError, match="'rhs' parameter"):
            ask(rhs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf, "big", None, [1.0, 2.0], np.ones((3, 3)), 1j])
def test_wrong_ridges_are_refused(name, ridge):
    with pytest.raises(InputError, match="'ridge' parameter"):
        solver(name).factorise(np.eye(3), ridge=ridge)


@pytest.mark.parametrize("name", ["LSTSQ", "", "ridge", 3, None, LeastSquares, object()])
def test_unknown_solvers_are_refused_with_the_list(name):
    with pytest.raises(InputError, match="'lstsq', 'qr', 'svd', 'normal'"):
        solver(name)


@pytest.mark.parametrize("bad", [-1e-3, 1.5, np.nan, "eps"])
@pytest.mark.parametrize("kind", [LeastSquares, SVD])
def test_wrong_cutoffs_are_refused(kind, bad):
    with pytest.raises(InputError, match="cutoff"):
        kind(cutoff=bad)


def test_wrong_seeds_and_forms_are_refused():
    with pytest.raises(InputError, match="seed"):
        LeastSquares(seed=-1)
    with pytest.raises(InputError, match="form"):
        NormalEquations("both")


def test_integers_and_single_precision_are_accepted():
    H = np.array([[2, 1], [1, 3], [0, 1]])
    exact = np.array([1.0, -1.0])
    for kind in (np.int64, np.uint8, np.float32):
        weights = LeastSquares().factorise(H.astype(kind)).solve((H @ exact).astype(np.float32))
        assert weights.dtype == np.float64
        np.testing.assert_allclose(weights, exact, atol=1e-14)


def test_torch_tensors_of_other_kinds():
    torch = pytest.importorskip("torch")
    H = torch.tensor([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]], requires_grad=True)
    weights = LeastSquares().factorise(H).solve(H.detach().sum(dim=1))
    assert weights.dtype == torch.float64
    np.testing.assert_allclose(weights.numpy(), [1, 1], atol=1e-14)
    for refused in (torch.eye(2, dtype=torch.complex128), torch.eye(2) > 0, torch.eye(2).to_sparse()):
        with pytest.raises(InputError, match="dense array of real numbers"):
            LeastSquares().factorise(refused)
    repeated = torch.ones(1, dtype=torch.float64).expand(3, 2)
    assert LeastSquares().factorise(repeated, overwrite=True).rank == 1
    np.testing.assert_array_equal(repeated.numpy(), np.ones((3, 2)))


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_asked_for_before_it_is_used(name, monkeypatch):
    monkeypatch.setattr(runtime, "available_memory", lambda: 1000)
    monkeypatch.setattr(runtime, "_ALWAYS_THERE", 0)
    with pytest.raises(ResourceError, match=rf"Solver '{name}' on a matrix of 60 × 30 needs .* fewer points"):
        solver(name).factorise(np.ones((60, 30)))


def test_columns_near_the_ends_of_the_number_range():
    rng = np.random.default_rng(0)
    H, z = rng.standard_normal((20, 3)), rng.standard_normal(20)
    reference = np.linalg.lstsq(H, z, rcond=None)[0]
    scale = np.array([1e-250, 1.0, 1e250])
    np.testing.assert_allclose(LeastSquares().factorise(H * scale).solve(z) * scale, reference, atol=1e-13)
    factor = LeastSquares().factorise(np.c_[H, np.full(20, 5e-324)])
    assert factor.rank == 3
    assert factor.solve(z)[3] == 0.0
    with pytest.raises(SolveError, match="norm overflows"):
        LeastSquares().factorise(np.full((20, 2), 1.7e308))
    with pytest.raises(SolveError, match="overflowed"):
        LeastSquares().factorise(H * 1e-250).solve(z * 1e200)


def test_a_decomposition_that_does_not_converge_is_refused(monkeypatch):
    monkeypatch.setattr(Dense, "svd", lambda self, matrix: None)
    with pytest.raises(SolveError, match="did not converge"):
        SVD().factorise(np.eye(3))


def test_the_second_driver_is_tried(monkeypatch):
    import scipy.linalg

    true, seen = scipy.linalg.svd, []

    def fails_once(matrix, lapack_driver, **options):
        seen.append(lapack_driver)
        if lapack_driver == "gesdd" or len(seen) > 2:
            raise scipy.linalg.LinAlgError
        return true(matrix, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "svd", fails_once)
    np.testing.assert_allclose(SVD().factorise(2 * np.eye(3)).solve(np.ones(3)), 0.5)
    assert seen == ["gesdd", "gesvd"]
    assert Dense().svd(np.eye(3)) is None


def test_torch_decomposition_that_does_not_converge_gives_none():
    torch = pytest.importorskip("torch")
    assert _Torch().svd(torch.full((3, 3), torch.nan, dtype=torch.float64)) is None


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 13, 100, 101])
def test_hartley_equals_its_definition_and_mixing_is_orthogonal(columns):
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.outer(np.arange(columns), np.arange(columns)) / columns
    block = rng.standard_normal((5, columns))
    np.testing.assert_allclose(hartley(block), block @ (np.cos(angle) + np.sin(angle)), atol=1e-11)
    mixing = Mixing.of(np.ones(columns), seed=3)
    V = mixing.back(np.eye(columns))
    np.testing.assert_allclose(V.T @ V, np.eye(columns), atol=1e-13)
    mixed = np.vstack([rows for _, rows in mixing.blocks(block, np.arange(columns) + 1.0)])
    np.testing.assert_allclose(mixed, np.vstack([block, np.diag(np.arange(columns) + 1.0)]) @ V, atol=1e-11)
