"""A factorisation that grows gives the answers of one made from scratch, whatever the order in which it grew."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pibls import runtime
from pibls.errors import InputError, PiblsError, ResourceError, SolveError
from pibls.solvers import Factorisation, Growing, LeastSquares
from pibls.solvers.compressed import Core
from pibls.solvers.dense import EPS, Householder

X = np.linspace(-1, 1, 120)
# Smooth features: 80 columns, some 30 directions.
SMOOTH = np.sin(np.outer(X, np.random.default_rng(3).uniform(0.5, 9, 80)) + np.linspace(0, 3, 80))


def system(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, columns)), rng.standard_normal(rows)


def scaled_norm(H, w):
    return np.linalg.norm(w * np.linalg.norm(H, axis=0))


def grow(H, steps, **options):
    """Grow to H; a step (1, k) appends columns up to k, a step (0, n) rows up to n."""
    (rows, columns), *rest = steps
    grown = Growing.start(H[:rows, :columns], **options)
    for axis, size in rest:
        if axis:
            grown, columns = grown.with_columns(H[:rows, columns:size]), size
        else:
            grown, rows = grown.with_rows(H[rows:size, :columns]), size
    return grown


@st.composite
def paths(draw, rows, columns, first=1):
    """Return steps that grow a matrix to its full size from a random corner of it."""
    cuts = [
        [*sorted(draw(st.sets(st.integers(first, size - 1), min_size=1, max_size=4))), size] for size in (rows, columns)
    ]
    moves = draw(st.permutations([0] * (len(cuts[0]) - 1) + [1] * (len(cuts[1]) - 1)))
    left = [iter(cuts[0][1:]), iter(cuts[1][1:])]
    return [(cuts[0][0], cuts[1][0]), *((axis, next(left[axis])) for axis in moves)]


@settings(max_examples=60, deadline=None)
@given(path=paths(40, 12), seed=st.integers(0, 1000))
def test_any_order_of_appends_equals_the_solution_from_scratch(path, seed):
    H, z = system(40, 12)
    grown = grow(H, path, seed=seed)
    reference = np.linalg.lstsq(H, z, rcond=None)[0]
    assert grown.shape == (40, 12)
    assert (grown.rank, grown.rejected) == (12, 0)
    np.testing.assert_allclose(grown.solve(z), reference, atol=1e-11)
    np.testing.assert_allclose(grown.residual(z), z - H @ reference, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(path=paths(12, 40), seed=st.integers(0, 1000))
def test_wide_systems_are_solved_exactly(path, seed):
    H, z = system(12, 40)
    grown = grow(H, path, seed=seed)
    assert grown.rank == 12
    w = grown.solve(z)
    np.testing.assert_allclose(H @ w, z, atol=1e-9)
    np.testing.assert_allclose(grown.residual(z), 0, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(path=paths(120, 80, first=10), seed=st.integers(0, 1000))
def test_smooth_features_keep_all_digits(path, seed):
    z = np.exp(X) * np.cos(3 * X)
    grown, scratch = grow(SMOOTH, path, seed=seed), LeastSquares().factorise(SMOOTH)
    assert abs(grown.rank - scratch.rank) <= 6
    w = grown.solve(z)
    assert np.linalg.norm(SMOOTH @ w - z) < 1e-13 * np.linalg.norm(z)
    assert scaled_norm(SMOOTH, w) < 3 * scaled_norm(SMOOTH, scratch.solve(z))


def test_more_columns_alone_give_the_weights_of_minimal_norm():
    H, z = system(12, 40)
    norms = np.linalg.norm(H, axis=0)
    grown = Growing.start(H[:, :9]).with_columns(H[:, 9:25]).with_columns(H[:, 25:])
    reference = np.linalg.lstsq(H / norms, z, rcond=None)[0] / norms
    np.testing.assert_allclose(grown.solve(z), reference, atol=1e-12)


def test_one_block_is_least_squares_itself():
    z = np.exp(X)
    grown, scratch = Growing.start(SMOOTH), LeastSquares().factorise(SMOOTH)
    assert grown.rank == scratch.rank
    np.testing.assert_allclose(SMOOTH @ grown.solve(z), z, atol=1e-13)
    assert scaled_norm(SMOOTH, grown.solve(z)) == pytest.approx(scaled_norm(SMOOTH, scratch.solve(z)), rel=0.1)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_copies_of_old_columns_are_rejected(noise):
    H, z = system(60, 15)
    z = H @ np.ones(15) + noise * z
    H *= np.logspace(0, -9, 15)
    blocks = [H, 3 * H[:, ::-1], H @ np.ones((15, 4))]
    start = grown = Growing.start(H)
    for block in blocks:
        grown = grown.with_columns(block)
    assert (start.rank, grown.rank) == (15, 15)
    assert (start.rejected, grown.rejected) == (0, 34)
    np.testing.assert_allclose(grown.residual(z), start.residual(z), atol=1e-12)
    assert scaled_norm(np.hstack([H, *blocks]), grown.solve(z)) <= scaled_norm(H, start.solve(z)) * (1 + 1e-9)
    assert np.isfinite(start.condition)
    assert grown.condition == np.inf


@settings(max_examples=30, deadline=None)
@given(rank=st.integers(1, 10), seed=st.integers(0, 1000))
def test_exactly_deficient_matrices_with_noise_keep_small_weights(rank, seed):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((50, rank)) @ rng.standard_normal((rank, 30))
    z = rng.standard_normal(50)
    grown = grow(H, [(20, 11), (1, 20), (0, 35), (1, 30), (0, 50)], seed=seed)
    assert grown.rank == rank
    reference = LeastSquares().factorise(H)
    np.testing.assert_allclose(grown.residual(z), reference.residual(z), atol=1e-9)
    assert scaled_norm(H, grown.solve(z)) < 3 * scaled_norm(H, reference.solve(z))


@pytest.mark.parametrize("shape", [(120, 120), (300, 300), (300, 350)])
@pytest.mark.parametrize("seed", range(3))
def test_the_rank_of_a_graded_triangle_is_that_of_its_singular_values(shape, seed):
    height, columns = shape
    rng = np.random.default_rng(seed)
    # Two blocks, as growing leaves them: each falls off by itself, the second begins above the end of the first.
    grades = np.concatenate([np.logspace(0, -9, height // 2), np.logspace(-6, -15, height - height // 2)])
    table = np.asfortranarray(grades[:, None] * np.triu(rng.standard_normal(shape)) / np.sqrt(columns))
    core = Core.of(table, 6 * EPS, seed)
    sigma = np.linalg.svd(table, compute_uv=False)
    tails = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])
    assert abs(core.rank - np.sum(tails > 6 * EPS * tails[0])) <= height // 60
    head = table @ rng.standard_normal((columns, 2))
    assert np.linalg.norm(table @ core.solve(head) - head) < 1e-14 * np.linalg.norm(head)


def test_leading_rows_of_the_mixture_see_every_direction():
    height = 300
    table = np.asfortranarray(np.diag(np.repeat([1.0, 1e-17], height // 2)))
    triangle = Core.of(table, 6 * EPS, 0).right.triangle
    # A half of the rows holds all of the large half: unshuffled, neighbours leave it singular to working precision.
    leading = np.linalg.svd(triangle[: height // 2, : height // 2], compute_uv=False)
    assert leading[-1] > 1e-5


@pytest.mark.parametrize("order", ["C", "F"])
def test_reflections_use_memory_only_where_that_is_offered(order):
    H, _ = system(9, 4)
    factor, block = Householder.of(np.asfortranarray(H)), np.array(system(9, 3, 1)[0], order=order)
    kept = block.copy()
    expected = factor.apply(block, transpose=True)
    np.testing.assert_array_equal(block, kept)
    np.testing.assert_allclose(factor.apply(block, transpose=True, overwrite=True), expected, rtol=0, atol=0)
    assert np.array_equal(block, kept) == (order == "C")


def test_dropped_columns_come_back_when_new_rows_tell_them_apart():
    H, z = system(60, 10)
    H[:30, 5:] = H[:30, :5]
    start = Growing.start(H[:30, :5]).with_columns(H[:30, 5:])
    assert start.rank == 5
    grown = start.with_rows(H[30:])
    assert grown.rank == 10
    np.testing.assert_allclose(grown.solve(z), np.linalg.lstsq(H, z, rcond=None)[0], atol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-290, 1e-30, 1e30])
def test_columns_that_new_rows_make_large_are_scaled_again(size):
    H, z = system(60, 8)
    H[:25, 3] *= size
    H[:25, 6] *= size
    grown = grow(H, [(25, 5), (1, 8), (0, 60)]).with_columns(z[:, None] ** 3)
    full = np.hstack([H, z[:, None] ** 3])
    norms = np.linalg.norm(full, axis=0)
    assert grown.rank == 9
    reference = np.linalg.lstsq(full / norms, z, rcond=None)[0]
    np.testing.assert_allclose(grown.solve(z) * norms, reference, atol=1e-10)
    np.testing.assert_allclose(grown.residual(z), z - (full / norms) @ reference, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(cuts=st.sets(st.integers(1, 29), min_size=1, max_size=8), seed=st.integers(0, 100))
def test_more_columns_never_raise_the_residual(cuts, seed):
    H, z = system(60, 20, seed)
    H = np.hstack([H[:, :10], H[:, 5:10], H[:, 10:], H[:, :5] @ np.ones((5, 5))])
    places = [*sorted(cuts), 30]
    grown, sizes = Growing.start(H[:, : places[0]]), []
    for start, stop in itertools.pairwise(places):
        sizes.append(np.linalg.norm(grown.residual(z)))
        grown = grown.with_columns(H[:, start:stop])
    sizes.append(np.linalg.norm(grown.residual(z)))
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(sizes))
    assert sizes[-1] == pytest.approx(np.linalg.norm(LeastSquares().factorise(H).residual(z)), rel=1e-11)


def test_residual_is_that_of_the_weights():
    z = np.random.default_rng(1).standard_normal(120)
    grown = grow(SMOOTH, [(40, 20), (1, 50), (0, 120), (1, 80)])
    w = grown.solve(z)
    np.testing.assert_allclose(grown.residual(z), z - SMOOTH @ w, atol=1e-14 * scaled_norm(SMOOTH, w) + 1e-12)


@pytest.mark.parametrize("path", [[(40, 5), (1, 12)], [(20, 12), (0, 40)], [(5, 3), (0, 30), (1, 12), (0, 40)]])
def test_many_right_hand_sides_equal_one_by_one(path):
    H, _ = system(40, 12)
    Z = np.random.default_rng(5).standard_normal((40, 3))
    grown = grow(H, path)
    np.testing.assert_allclose(grown.solve(Z), np.stack([grown.solve(z) for z in Z.T], axis=1), atol=1e-13)
    np.testing.assert_allclose(grown.residual(Z), np.stack([grown.residual(z) for z in Z.T], axis=1), atol=1e-13)
    assert grown.solve(Z[:, :1]).shape == (12, 1)


@pytest.mark.parametrize("matrix", [system(40, 12)[0], SMOOTH[:60, :50]])
def test_torch_gives_the_same_answers_and_mixes_with_numpy(matrix):
    torch = pytest.importorskip("torch")
    rows, columns = matrix.shape
    z = np.exp(np.linspace(0, 1, rows))
    steps = [(rows // 2, columns // 3), (1, columns // 2), (0, rows), (1, columns)]
    here, there = grow(matrix, steps), grow(torch.tensor(matrix), steps)
    assert isinstance(there.solve(torch.tensor(z)), torch.Tensor)
    assert abs(here.rank - there.rank) <= 2
    np.testing.assert_allclose(matrix @ there.solve(z).numpy(), matrix @ here.solve(z), atol=1e-11)
    mixed = Growing.start(torch.tensor(matrix[:, :5])).with_columns(matrix[:, 5:]).with_rows(matrix[:3])
    assert isinstance(mixed.solve(np.r_[z, z[:3]]), torch.Tensor)
    assert isinstance(here.with_rows(torch.tensor(matrix[:1])).solve(np.r_[z, 1.0]), np.ndarray)


def test_growing_leaves_matrices_and_earlier_objects_alone():
    H, z = system(40, 12)
    kept = H.copy()
    small = Growing.start(H[:30, :6])
    before = small.solve(z[:30])
    wide = small.with_columns(H[:30, 6:])
    middle = wide.solve(z[:30])
    tall = wide.with_rows(H[30:])
    tall.solve(z)
    np.testing.assert_array_equal(H, kept)
    np.testing.assert_array_equal(Growing.start(H[:30, :6]).solve(z[:30]), before)
    np.testing.assert_array_equal(small.solve(z[:30]), before)
    np.testing.assert_array_equal(wide.solve(z[:30]), middle)


def test_overwrite_uses_the_memory_that_is_offered_and_changes_no_answer():
    H, z = system(40, 12)
    blocks = [np.asfortranarray(H[:, :6]), np.asfortranarray(H[:, 6:])]
    grown = Growing.start(blocks[0], overwrite=True).with_columns(blocks[1], overwrite=True)
    assert not np.array_equal(blocks[0], H[:, :6])
    np.testing.assert_allclose(grown.solve(z), np.linalg.lstsq(H, z, rcond=None)[0], atol=1e-12)


def test_rejected_columns_take_no_room_for_vectors():
    H, _ = system(200, 10)
    grown = Growing.start(H).with_columns(H @ np.ones((10, 150)))
    vectors = [step.orthogonal.vectors for step in grown._rotations.steps]
    assert sum(array.size if array.base is None else array.base.size for array in vectors) <= 200 * 20


def test_zero_columns_and_zero_matrices_get_zero_weights():
    H, z = system(20, 4)
    nothing = Growing.start(np.zeros((20, 3)))
    assert (nothing.rank, nothing.rejected, nothing.condition) == (0, 3, np.inf)
    np.testing.assert_array_equal(nothing.solve(z), np.zeros(3))
    np.testing.assert_array_equal(nothing.residual(z), z)
    grown = nothing.with_columns(H)
    np.testing.assert_array_equal(grown.solve(z)[:3], 0)
    np.testing.assert_allclose(grown.solve(z)[3:], np.linalg.lstsq(H, z, rcond=None)[0], atol=1e-12)


def test_a_coarse_cutoff_drops_small_directions():
    H = np.linalg.qr(system(30, 10)[0])[0] @ np.diag([1.0] * 6 + [1.0] * 4)
    H[:, 6:] = H[:, :4] + 1e-6 * H[:, 6:]
    fine, coarse = (Growing.start(H[:, :6], cutoff=c).with_columns(H[:, 6:]) for c in (None, 1e-4))
    assert (fine.rank, coarse.rank) == (10, 6)
    assert coarse.factorisation.details["cutoff"] == 1e-4
    assert 1e5 < fine.condition < 1e9


def test_the_coarsest_cutoff_drops_everything():
    grown = Growing.start(SMOOTH[:, :9], cutoff=1.0).with_columns(SMOOTH[:, 9:])
    assert grown.rank == 0
    np.testing.assert_array_equal(grown.solve(X), np.zeros(80))
    np.testing.assert_allclose(grown.residual(X), X, atol=1e-14)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_unit_of_the_matrix_does_not_matter(size):
    H, z = system(40, 12)
    grown = grow(H * size, [(30, 5), (1, 12), (0, 40)])
    np.testing.assert_allclose(grown.solve(z) * size, np.linalg.lstsq(H, z, rcond=None)[0], atol=1e-12)


def test_it_names_itself_and_offers_a_factorisation():
    grown = Growing.start(system(20, 4)[0])
    assert grown.name == "growing"
    assert isinstance(grown.factorisation, Factorisation)
    assert grown.factorisation is grown.factorisation
    assert repr(grown).startswith("Growing(cutoff=1.3")
    assert "array" not in repr(grown)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), shape=st.tuples(st.integers(2, 7), st.integers(2, 7)))
def test_any_matrix_is_solved_or_refused(data, shape):
    H = data.draw(hnp.arrays(np.float64, shape, elements=st.floats(width=64)))
    row, column = data.draw(st.integers(1, shape[0] - 1)), data.draw(st.integers(1, shape[1] - 1))
    try:
        grown = grow(H, [(row, column), (1, shape[1]), (0, shape[0])])
        weights = grown.solve(np.ones(shape[0]))
    except PiblsError:
        return
    assert np.isfinite(weights).all()
    assert 0 <= grown.rank <= min(shape)


@pytest.mark.parametrize(
    "bad", ["text", None, [[1j]], [[1.0, 2.0], [3.0]], np.ones(4), np.ones((0, 4)), np.ones((4, 0))]
)
def test_values_that_are_no_matrix_are_refused(bad):
    grown = Growing.start(np.eye(4))
    with pytest.raises(InputError, match=r"'matrix' parameter of Growing\.start"):
        Growing.start(bad)
    with pytest.raises(InputError, match=r"'new' parameter of Growing\.with_columns"):
        grown.with_columns(bad)
    with pytest.raises(InputError, match=r"'new' parameter of Growing\.with_rows"):
        grown.with_rows(bad)


def test_blocks_that_do_not_fit_are_refused_by_what_is_missing():
    grown = Growing.start(np.ones((4, 3)))
    with pytest.raises(InputError, match=r"with_columns must have 4 rows, .* Got shape \(5, 2\)"):
        grown.with_columns(np.ones((5, 2)))
    with pytest.raises(InputError, match=r"with_rows must have 3 columns, .* Got shape \(2, 4\)"):
        grown.with_rows(np.ones((2, 4)))
    with pytest.raises(InputError, match=r"'rhs' parameter of growing\.solve must have shape \(4,\)"):
        grown.solve(np.ones(3))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_entries_are_located(bad):
    grown, broken = Growing.start(np.eye(3)), np.eye(3)
    broken[1, 2] = bad
    for call, owner in ((Growing.start, "start"), (grown.with_columns, "with_columns"), (grown.with_rows, "with_rows")):
        with pytest.raises(SolveError, match=f"of Growing.{owner} has 1 entries .* first at row 1, column 2"):
            call(broken)
    with pytest.raises(SolveError, match=r"'rhs' .* not finite"):
        grown.solve(np.array([1.0, bad, 0.0]))


@pytest.mark.parametrize(
    ("option", "value"), [("cutoff", -1.0), ("cutoff", 2.0), ("cutoff", "x"), ("seed", -1), ("seed", 0.5)]
)
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(InputError, match=f"'{option}' parameter of Growing"):
        Growing.start(np.eye(2), **{option: value})


def test_what_does_not_fit_into_memory_is_refused_before(monkeypatch):
    grown = Growing.start(np.eye(50))
    monkeypatch.setattr(runtime, "available_memory", lambda: 1000)
    monkeypatch.setattr(runtime, "_ALWAYS_THERE", 0)
    for call in (Growing.start, grown.with_columns, grown.with_rows):
        with pytest.raises(ResourceError, match="Solver 'growing' on a matrix of 50 × 50"):
            call(np.eye(50))
