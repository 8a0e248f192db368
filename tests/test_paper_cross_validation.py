"""Cross-validation: shared fits give what separate ones give, and the best method is the best."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import Judge, Scaled, Scorer, SearchJob, cross_validation, search, search_all, split


def separately(methods, problem, points, monkeypatch, **options):
    """Every method by its own fit, fold by fold."""
    with monkeypatch.context() as patch:
        patch.setattr(cross_validation, "families", lambda grid, _: ([], list(range(len(grid)))))
        return search(methods, problem, points, **options)


def compare(methods, problem, points, monkeypatch, tolerance=1e-8):
    shared = search(methods, problem, points, folds=3, seed=3)
    slow = separately(methods, problem, points, monkeypatch, folds=3, seed=3)
    for score in ("exact", "residual"):
        for one, other in zip(shared[score].table, slow[score].table, strict=True):
            assert one.folds == pytest.approx(other.folds, rel=tolerance)
            assert one.refusal == other.refusal
        # Where all rows are fulfilled penalties do not matter, and rounding decides between equals.
        assert shared[score].winner.mean == pytest.approx(slow[score].winner.mean, rel=tolerance)


@pytest.fixture(scope="module")
def star():
    problem = pb.problems.poisson_star()
    return problem, pb.Points.sample(problem, interior=40, boundary=24, method="uniform", seed=1)


@pytest.fixture(scope="module")
def diffusion():
    problem = pb.problems.diffusion_reaction()
    return problem, pb.Points.sample(problem, interior=30, boundary=16, initial=12, method="uniform", seed=1)


@pytest.mark.parametrize("solver", ["svd", "lstsq"])
def test_shared_fits_equal_separate_ones(star, monkeypatch, solver):
    choices = product((3,), (5, 20), (0, 25), (0.01, None), (0.0, 1e-4))
    methods = [
        pb.PIBLS(
            feature_groups=groups,
            feature_nodes=nodes,
            enhancement_nodes=more,
            scale=5.0,
            lambda_b=penalty,
            lambda_reg=ridge,
            solver=solver,
        )
        for groups, nodes, more, penalty, ridge in choices
    ]
    compare(methods, *star, monkeypatch)


def test_shared_fits_with_initial_penalties_and_scales_per_axis(diffusion, monkeypatch):
    methods = [
        pb.PIELM(nodes=nodes, scale=(12.0, 2.0), lambda_b=b, lambda_i=i, lambda_reg=ridge, solver="svd")
        for nodes, b, i, ridge in product((7, 90), (1e-2, 1.0), (1e-2,), (0.0, 1e-2))
    ]
    compare(methods, *diffusion, monkeypatch)


def test_networks_trained_side_by_side_are_scored_like_those_trained_alone(diffusion):
    pytest.importorskip("torch")
    problem, points = diffusion
    methods = [
        pb.PINN(width, activation=psi, scale=(6.0, 0.5), lambda_b=b, adam_iterations=5, lbfgs_iterations=5)
        for width, psi, b in product((3, 11), ("tanh", "relu", "sigmoid"), (1.0, 0.01))
    ]
    found = search(methods, problem, points, folds=3, seed=3)
    scorer = Scorer(problem, points, split(problem, points, 3, 3), ("exact", "residual"))
    for number, method in enumerate(methods):
        alone = cross_validation._fitted_scores(method, scorer, 3)
        for position, score in enumerate(scorer.scores):
            row = found[score].table[number]
            if method.activation == "relu":
                assert (row.mean, row.refusal) == (np.inf, str(alone))
            else:
                assert row.folds == pytest.approx([fold[position] for fold in alone], rel=1e-9)


def test_searches_of_several_seeds_at_once_are_those_of_each(star):
    pytest.importorskip("torch")
    problem, points = star
    methods = [pb.PINN(width, adam_iterations=4, lbfgs_iterations=4, lambda_b=1.0) for width in (3, 5)]
    linear = [pb.PIELM(nodes=10, scale=3.0)]
    jobs = [SearchJob([*methods, *linear], problem, points, seed) for seed in (0, 1)]
    for job, found in zip(jobs, search_all(jobs, folds=3), strict=True):
        one = search([*methods, *linear], problem, points, folds=3, seed=job.seed)
        for score in ("exact", "residual"):
            for row, same in zip(found[score].table, one[score].table, strict=True):
                assert row.folds == pytest.approx(same.folds, rel=1e-9)


def test_shared_fits_of_the_bayesian_method(diffusion, monkeypatch):
    methods = [pb.BayesianPIELM(nodes=n, scale=(12.0, 2.0), lambda_b=b) for n, b in product((10, 60), (0.1, None))]
    # The same steps uphill in another basis: the evidence is flat, so that rounding is felt more than elsewhere.
    compare(methods, *diffusion, monkeypatch, tolerance=1e-6)


def test_shared_fits_of_several_fields_weights_and_groups(monkeypatch):
    x = pb.coordinates("x")
    u, v = pb.field("u", x), pb.field("v", x)
    line = pb.Interval((x, 0, 2))
    conditions = [pb.Dirichlet(u, 0, on=line.left, weight=5.0), pb.Dirichlet(v, 1, on=line.left)]
    exact = {"u": sp.sin(x), "v": sp.cos(x)}
    problem = pb.Problem([sp.Eq(u.diff(x), v), sp.Eq(v.diff(x), -u)], line, conditions, exact=exact)
    points = pb.Points.sample(problem, interior=24)
    methods = [
        pb.PIBLS(feature_groups=2, feature_nodes=n, enhancement_groups=2, enhancement_nodes=q, scale=4.0, solver="svd")
        for n, q in product((4, 20), (3, 6))
    ]
    methods += [pb.PIBLS(features=[("sin", 20, 2.0)], enhancement_groups=0), pb.PIELM(nodes=5, lambda_reg=1e-6)]
    compare(methods, problem, points, monkeypatch, tolerance=1e-7)


def test_shared_fits_of_a_line_whose_terms_vanish(monkeypatch):
    """Of u_xx = 0 nothing but rounding is left: relative to that alone, the exact line would be as bad as any curve."""
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    problem = pb.Problem(sp.Eq(u.diff(x, 2), 0), line, [pb.Dirichlet(u, x)], exact=x)
    points = pb.Points.sample(problem, interior=20)
    methods = [pb.PIELM(nodes=n, scale=0.5, solver="svd") for n in (8, 40)]
    (_, shared), (_, slow) = (
        [row.mean for row in found["residual"].table]
        for found in (search(methods, problem, points), separately(methods, problem, points, monkeypatch))
    )
    assert shared < 0.05
    assert slow < 0.05


def test_shared_fits_of_a_field_that_is_zero(monkeypatch):
    x, y = pb.coordinates("x y")
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    box = pb.Rectangle((x, 0, 4), (y, 0, 1))
    conditions = [pb.Dirichlet(u, 2), pb.Dirichlet(v, 0)]
    equations = [sp.Eq(u.diff(x) + v.diff(y), 0), sp.Eq(u.diff(y) - v.diff(x), 0)]
    problem = pb.Problem(equations, box, conditions, exact={"u": 2 + 0 * x, "v": 0 * x})
    points = pb.Points.sample(problem, interior=30, boundary=20)
    methods = [pb.PIELM(nodes=n, scale=1.0, solver="svd", lambda_reg=1e-4) for n in (10, 30)]
    compare(methods, problem, points, monkeypatch, tolerance=1e-5)


def test_conditions_that_hold_exactly_are_fitted_one_by_one():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    problem = pb.Problem(sp.Eq(u.diff(x), 1), line, [pb.Dirichlet(u, 0, on=line.left, exact=True)], exact=x)
    found = pb.cross_validate([pb.PIELM(nodes=25, scale=1.0)], problem, pb.Points.sample(problem, interior=20))
    assert found.winner.mean < 1e-8


def test_measurements_are_in_every_fold(monkeypatch):
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    seen = pb.Observation(u, [[0.3], [0.7]], [0.3, 0.7], noise=0.1)
    problem = pb.Problem(sp.Eq(u.diff(x, 2), 0), line, [pb.Dirichlet(u, 0, on=line.left), seen], exact=x)
    points = pb.Points.sample(problem, interior=20)
    for fold in split(problem, points, 4, 0):
        assert len(fold.train.sets[2]) == len(fold.held.sets[2]) == 2
    methods = [pb.PIELM(nodes=12, scale=2.0, solver="svd"), pb.BayesianPIELM(nodes=12, scale=2.0)]
    compare(methods, problem, points, monkeypatch, tolerance=1e-6)


@settings(max_examples=15)
@given(st.integers(5, 60), st.integers(2, 5), st.integers(0, 100))
def test_every_point_is_held_out_once(diffusion, count, folds, seed):
    problem = diffusion[0]
    points = pb.Points.sample(problem, interior=count, boundary=20, initial=3, seed=0)
    parts = split(problem, points, folds, seed)
    for number, where in enumerate(points.sets):
        held = np.concatenate([part.held_rows[number] for part in parts])
        if len(where) == 3:
            assert [len(part.train.sets[number]) for part in parts] == [3] * folds
        else:
            assert sorted(held) == list(range(len(where)))
        for part in parts:
            both = [part.train.sets[number].points, part.held.sets[number].points]
            if len(where) != 3:
                assert len(np.unique(np.concatenate(both), axis=0)) == len(np.unique(where.points, axis=0))


@given(st.integers(2, 25), st.integers(1, 25), st.floats(1e-9, 10), st.integers(0, 1000))
def test_any_ridge_gives_the_ridge_solution(rows, columns, ridge, seed):
    rng = np.random.default_rng(seed)
    matrix, rhs = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    augmented = np.vstack([matrix, np.sqrt(ridge) * np.eye(columns)])
    expected = np.linalg.lstsq(augmented, np.append(rhs, np.zeros(columns)), rcond=None)[0]
    found = Scaled(matrix, rhs, columns).weights(pb.PIELM(lambda_reg=ridge))
    # Inner products leave the residual as it is to 1e-5 of the ridge.
    assert augmented @ found == pytest.approx(augmented @ expected, rel=1e-6, abs=1e-6)


def test_without_ridge_weights_are_of_minimal_norm_whatever_the_rank():
    rng = np.random.default_rng(1)
    for rows, columns, rank in ((30, 12, 12), (12, 30, 12), (30, 12, 5), (12, 30, 5)):
        matrix = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
        rhs = rng.standard_normal(rows)
        found = Scaled(matrix, rhs, columns).weights(pb.PIELM(solver="svd"))
        assert found == pytest.approx(np.linalg.pinv(matrix) @ rhs, rel=1e-9, abs=1e-11)


def test_a_ridge_too_small_for_inner_products_is_not_given_to_them(star, monkeypatch):
    methods = [pb.PIBLS(feature_groups=4, scale=5.0, enhancement_nodes=0, lambda_reg=r) for r in (1e-14, 1e-4)]
    compare(methods, *star, monkeypatch, tolerance=1e-5)


def test_many_solutions_are_judged_as_one_by_one(star):
    problem, points = star
    judge = Judge(problem, points)
    solutions = [pb.PIELM(nodes=20, scale=scale).fit(problem, points) for scale in (1.0, 4.0)]
    keys = list({(t.field, t.multi_index) for s in problem.statements for t in s.form.terms})
    values = [solution.evaluate(points.interior, keys) for solution in solutions]
    together = judge.references_of({key: np.column_stack([v[i] for v in values]) for i, key in enumerate(keys)})
    for number, solution in enumerate(solutions):
        for name, size in judge.references(solution.evaluate).items():
            assert np.broadcast_to(together[name], 2)[number] == pytest.approx(size)


def test_the_best_method_is_the_one_of_the_lowest_mean(star):
    methods = [pb.PIELM(nodes=60, scale=scale) for scale in (0.05, 1.5, 60.0)]
    for score in ("exact", "residual"):
        found = pb.cross_validate(methods, *star, score=score)
        assert found.best == methods[1]
        assert found.winner.mean == min(row.mean for row in found.table)
        assert all(row.mean == pytest.approx(np.mean(row.folds)) for row in found.table)
        assert [row.settings["scale"] for row in found.table] == [0.05, 1.5, 60.0]
        assert "best of 3 methods (0 refused)" in str(found)
        assert found.seconds > 0


def test_a_score_does_not_depend_on_what_else_is_in_the_grid(star):
    grid = [pb.PIELM(nodes=n, scale=1.5, lambda_b=b, solver="svd") for n in (20, 80) for b in (1e-2, 1.0)]
    together = pb.cross_validate(grid, *star).table
    for row in together:
        assert pb.cross_validate([row.method], *star).winner.folds == pytest.approx(row.folds, rel=1e-12)


def test_the_division_and_the_nodes_follow_the_seed(star):
    methods = [pb.PIELM(nodes=20, scale=1.5)]
    one, same, other = (pb.cross_validate(methods, *star, seed=seed).winner.folds for seed in (0, 0, 1))
    assert one == same
    assert one != other


def test_a_method_that_cannot_solve_the_problem_says_why(star):
    methods = [pb.PIELM(nodes=10, activation="relu"), pb.PIELM(nodes=10), pb.PINN(activation="relu")]
    found = pb.cross_validate(methods, *star)
    assert found.best == methods[1]
    for row in (found.table[0], found.table[2]):
        assert row.mean == np.inf
        assert "relu" in row.refusal
    with pytest.raises(pb.PiblsError, match="relu"):
        pb.cross_validate(methods[:1], *star)


def test_a_solver_that_fails_is_refused(star):
    class Failing:
        name = "failing"

        def factorise(self, matrix, *, ridge=0.0, overwrite=False):
            raise pb.errors.SolveError("This solver always fails.")

    found = pb.cross_validate([pb.PIELM(nodes=10, solver=Failing()), pb.PIELM(nodes=10)], *star)
    assert found.table[0].refusal == "This solver always fails."


class Zero:
    def fit(self, problem, points, *, seed=0, device=None):
        solution = pb.PIELM(nodes=4).fit(problem, points, seed=seed)
        return pb.Solution(problem, solution.network, 0 * solution.weights, "fitted", solution.diagnostics)


def test_any_method_with_a_fit_will_do(star):
    found = pb.cross_validate([Zero()], *star, score="exact")
    held = [fold.held.interior for fold in split(star[0], star[1], 5, 0)]
    expected = [np.sqrt(np.mean(star[0].exact_values(X)["u"] ** 2)) for X in held]
    assert found.winner.folds == pytest.approx(expected)
    assert "Zero" in found.winner.settings["method"]


class Broken:
    def fit(self, problem, points, *, seed=0, device=None):
        return 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method_grid": []}, "at least one method"),
        ({"method_grid": 3}, "at least one method"),
        ({"method_grid": [pb.PIELM]}, "must have a fit"),
        ({"method_grid": [Broken()]}, "must return a Solution"),
        ({"problem": 3}, "takes a Problem"),
        ({"points": 3}, "takes Points"),
        ({"folds": 1}, "folds"),
        ({"folds": 41}, "at least 41 interior points"),
        ({"seed": -1}, "seed"),
        ({"score": "luck"}, "'residual', 'exact'"),
    ],
)
def test_refusals(star, change, words):
    arguments = {"method_grid": [pb.PIELM(nodes=5)], "problem": star[0], "points": star[1], **change}
    with pytest.raises(pb.PiblsError, match=words):
        pb.cross_validate(**arguments)


def test_an_exact_score_needs_an_exact_solution():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    problem = pb.Problem(sp.Eq(u.diff(x), 1), line, [pb.Dirichlet(u, 0, on=line.left)])
    points = pb.Points.sample(problem, interior=20)
    with pytest.raises(pb.PiblsError, match="score='residual'"):
        pb.cross_validate([pb.PIELM(nodes=5)], problem, points, score="exact")
    assert pb.cross_validate([pb.PIELM(nodes=5)], problem, points).winner.mean < 1
