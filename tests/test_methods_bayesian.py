"""Weights with a distribution: against closed forms, and bands that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import Group, NoisyRows, Precisions, maximise
from pibls.errors import InputError, ProblemError
from pibls.geometry import Points


def groups(seed, rows=(30, 12), columns=8, noise=(0.1, 0.5)):
    """Rows of two noises about the same weights."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(columns)
    made = []
    for n, sigma in zip(rows, noise, strict=True):
        H = rng.standard_normal((n, columns))
        made.append(Group(H, H @ weights + sigma * rng.standard_normal(n)))
    return made


def stacked(made, betas):
    H = np.concatenate([np.sqrt(b) * g.matrix for b, g in zip(betas, made, strict=True)])
    return H, np.concatenate([np.sqrt(b) * g.rhs for b, g in zip(betas, made, strict=True)])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.sampled_from([(30, 12), (3, 2), (4, 40)]), st.floats(0.01, 100), st.floats(0.1, 10))
def test_mean_covariance_and_evidence_are_the_closed_forms(seed, rows, alpha, beta):
    made, betas = groups(seed, rows), (beta, 3 * beta)
    found = NoisyRows(made).infer(Precisions(alpha, betas))
    H, z = stacked(made, betas)
    covariance = np.linalg.inv(H.T @ H + alpha * np.eye(8))
    np.testing.assert_allclose(found.factor @ found.factor.T, covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.mean, covariance @ H.T @ z, rtol=1e-7, atol=1e-9)
    raw = np.concatenate([g.matrix for g in made])
    spread = raw @ raw.T / alpha + np.diag(np.repeat(1 / np.array(betas), rows))
    rhs = np.concatenate([g.rhs for g in made])
    expected = -0.5 * (rhs @ np.linalg.solve(spread, rhs) + np.linalg.slogdet(2 * np.pi * spread)[1])
    assert found.evidence == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert sum(found.determined) == pytest.approx(8 - alpha * np.trace(covariance), rel=1e-6, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 999))
def test_evidence_never_falls_and_ends_at_a_maximum(seed):
    made = groups(seed)
    found, course = maximise(made, 200)
    evidences = [evidence for _, evidence in course]
    assert evidences == sorted(evidences)
    assert evidences[-1] == found.evidence
    alpha, betas = found.precisions.alpha, found.precisions.betas
    for factors in ((2, 1, 1), (0.5, 1, 1), (1, 2, 1), (1, 0.5, 1), (1, 1, 2), (1, 1, 0.5)):
        other = Precisions(alpha * factors[0], (betas[0] * factors[1], betas[1] * factors[2]))
        assert NoisyRows(made).infer(other).evidence < found.evidence + 0.01


def test_noise_of_both_groups_is_recovered():
    made = groups(3, rows=(2000, 1000), columns=20, noise=(0.02, 0.7))
    found, _ = maximise(made, 100)
    sigmas = 1 / np.sqrt(found.precisions.betas)
    np.testing.assert_allclose(sigmas, [0.02, 0.7], rtol=0.08)


def test_known_noise_is_kept():
    first, second = groups(1)
    found, _ = maximise([first, Group(second.matrix, second.rhs, 4.0)], 50)
    assert found.precisions.betas[1] == 4.0


@pytest.mark.parametrize("factor", [1e-90, 1e-6, 1e6, 1e90])
def test_scaling_the_rows_scales_the_noise_and_leaves_the_weights(factor):
    made = groups(5)
    plain, _ = maximise(made, 200)
    scaled, _ = maximise([Group(factor * g.matrix, factor * g.rhs) for g in made], 200)
    np.testing.assert_allclose(scaled.mean, plain.mean, rtol=1e-3)
    np.testing.assert_allclose(np.array(scaled.precisions.betas) * factor**2, plain.precisions.betas, rtol=0.02)


def test_right_hand_sides_of_zero_give_weights_of_zero():
    found, _ = maximise([Group(np.eye(3), np.zeros(3))], 20)
    assert not found.mean.any()
    assert np.isfinite(found.factor).all()


def measured(sigma, noise=None, seed=0, count=60):
    """A field with an equation, and noisy measurements that alone fix its slope and value at zero."""
    rng = np.random.default_rng(seed)
    x = pb.coordinates("x")
    u = pb.field("u", x)
    exact = sp.cos(3 * x) + x
    X = rng.uniform(0, 2, count)
    values = np.cos(3 * X) + X + sigma * rng.standard_normal(count)
    given_noise = None if noise is None else np.full(count, noise)
    observed = pb.Observation(u, X[:, None], values, noise=given_noise)
    return pb.Problem(sp.Eq(u.diff(x, 2), -9 * sp.cos(3 * x)), pb.Interval((x, 0, 2)), [observed], exact=exact)


METHOD = pb.BayesianPIELM(nodes=60, activation="sin", scale=4.0)


def test_the_noise_of_measurements_is_found_in_their_units():
    problem = measured(0.3, count=400)
    solution = METHOD.fit(problem, Points.sample(problem, interior=80))
    noise = solution.posterior.noise
    assert noise[problem.statements[1].name] == pytest.approx(0.3, rel=0.1)
    assert noise["the equation"] < 1e-6


def random_truth(seed):
    """A smooth function at random, and noisy measurements of it; its second derivative is known exactly."""
    rng = np.random.default_rng(seed)
    w, phase, size = 3 * rng.standard_normal(50), rng.uniform(0, 2 * np.pi, 50), rng.standard_normal(50) / 5

    def truth(X, order=0):
        return np.sin(np.outer(X, w) + phase + order * np.pi / 2) @ (size * w**order)

    x = pb.coordinates("x")
    u = pb.field("u", x)
    X = rng.uniform(-1, 1, 40)
    values = truth(X) + 0.3 * rng.standard_normal(40)
    observed = pb.Observation(u, X[:, None], values, noise=0.3 if seed % 2 else None)
    curvature = pb.data("f", lambda X: truth(X, 2), x)
    return truth, pb.Problem(sp.Eq(u.diff(x, 2), curvature), pb.Interval((x, -1, 1)), [observed])


def test_bands_hold_the_truth_as_often_as_they_say():
    method = pb.BayesianPIELM(nodes=40, activation="sin", scale=3.0)
    X = np.linspace(-0.95, 0.95, 20)
    inside = []
    for seed in range(80):
        truth, problem = random_truth(seed)
        solution = method.fit(problem, Points.sample(problem, interior=40), seed=seed)
        low, high = solution.credible_band(X, level=0.95)
        inside.append((low < truth(X)) & (truth(X) < high))
    # Points of one run move together, so that 80 runs know 0.95 to about 0.02.
    assert 0.91 < np.mean(inside) < 0.99


def test_the_deviation_is_that_of_two_unknown_numbers():
    """u'' is exact, so only a line is uncertain: the deviation is the textbook one of linear regression."""
    problem = measured(0.3, noise=0.3)
    points = problem.statements[1].place.points[:, 0]
    solution = METHOD.fit(problem, Points.sample(problem, interior=80))
    X = np.linspace(0, 2, 9)
    textbook = 0.3 * np.sqrt(1 / len(points) + (X - points.mean()) ** 2 / ((points - points.mean()) ** 2).sum())
    deviation = solution.standard_deviation(X)
    # The prior knows a little about the line too, so that it can only be less.
    assert (deviation < 1.0001 * textbook).all()
    assert (deviation > 0.9 * textbook).all()


def test_without_noise_it_is_nearly_as_exact_as_least_squares():
    problem = pb.problems.poisson_star()
    method = pb.BayesianPIELM(nodes=250, activation="sin", scale=4.0)
    points = Points.sample(problem, interior=300)
    solution = method.fit(problem, points)
    plain = pb.PIELM(nodes=250, activation="sin", scale=4.0).fit(problem, points)
    assert solution.true_error() < 10 * plain.true_error()
    assert solution.status == "fitted"
    assert solution.diagnostics.solver == "svd"


def test_what_rounding_does_changes_nothing():
    """The order of the rows is rounding only; with more nodes than rows it used to choose between two maxima."""
    problem = pb.problems.diffusion_reaction()
    points = Points.sample(problem, 100, 50, 50, method="uniform", seed=3)
    rng = np.random.default_rng(0)
    method = pb.BayesianPIELM(203, "sigmoid", (16.0, 0.5), 1.0, 1e-4)
    X = problem.domain.sample(500, "uniform", 1)
    errors = []
    for _ in range(4):
        mixed = Points(tuple(s.picked(rng.permutation(len(s))) for s in points.sets))
        errors.append(np.linalg.norm(method.fit(problem, mixed, seed=0)(X) - problem.exact_values(X)["u"]))
    assert max(errors) < 1.001 * min(errors)


def test_bands_widen_with_the_level_and_are_centred():
    problem = measured(0.3)
    solution = METHOD.fit(problem, Points.sample(problem, interior=40))
    X = np.array([0.5, 1.5, 7.0])
    (low, high), (lower, higher) = (solution.credible_band(X, level=level) for level in (0.5, 0.99))
    assert (lower[:2] < low[:2]).all()
    assert (high[:2] < higher[:2]).all()
    np.testing.assert_allclose((low + high)[:2] / 2, solution(X)[:2])
    assert np.isnan([low[2], high[2], solution.standard_deviation(X)[2]]).all()
    assert solution.standard_deviation(X, outside="value")[2] > 0
    assert solution.standard_deviation(x=0.5).shape == ()
    with pytest.raises(InputError, match="'level'"):
        solution.credible_band(X, level=1.0)


def test_several_fields_have_bands_of_their_own():
    problem = pb.problems.maxwell_1d()
    method = pb.BayesianPIELM(nodes=40, activation="sin")
    solution = method.fit(problem, Points.sample(problem, interior=60))
    X = problem.domain.sample(5)
    low, high = solution.credible_band(X)
    for name in problem.field_names:
        middle = (low[name] + high[name]) / 2
        np.testing.assert_allclose(middle, solution(X)[name], atol=1e-9)
        np.testing.assert_allclose((high[name] - low[name]) / 2, 1.96 * solution.standard_deviation(X)[name], rtol=1e-3)


def test_a_file_keeps_the_posterior(tmp_path):
    problem = measured(0.3)
    solution = METHOD.fit(problem, Points.sample(problem, interior=40))
    again = pb.load(solution.save(tmp_path / "run.pibls"))
    X = np.linspace(0, 2, 7)
    assert again.standard_deviation(X) == pytest.approx(solution.standard_deviation(X), rel=1e-12)
    assert again.posterior.noise == solution.posterior.noise
    assert (again.posterior.covariance == solution.posterior.covariance).all()
    assert (again.posterior.prior, again.posterior.evidence) == (solution.posterior.prior, solution.posterior.evidence)


def test_other_solutions_have_no_deviation():
    problem = pb.problems.advection()
    solution = pb.PIELM(nodes=20).fit(problem, Points.sample(problem, interior=30))
    for call in (solution.standard_deviation, solution.credible_band):
        with pytest.raises(InputError, match=r"PIELM has no standard deviation.*BayesianPIELM"):
            call([0.5])


def test_weights_of_zero_are_owned_up_to():
    problem = pb.problems.diffusion_reaction()
    solution = pb.BayesianPIELM(nodes=60, scale=1.0).fit(problem, Points.sample(problem, interior=60))
    assert solution.true_error() == pytest.approx(1.0)
    assert solution.status == "stalled"
    assert "weights of zero" in solution.diagnostics.message


def test_the_record_shows_the_rise_of_the_evidence():
    problem = measured(0.3)
    solution = METHOD.fit(problem, Points.sample(problem, interior=40))
    stages = solution.diagnostics.stages
    assert stages[-1].evidence == solution.posterior.evidence
    assert stages[0].evidence <= stages[-1].evidence
    assert "log evidence" in str(solution.diagnostics)
    short = pb.BayesianPIELM(nodes=60, activation="sin", scale=4.0, iterations=2)
    assert "allow more" in short.fit(problem, Points.sample(problem, interior=40)).diagnostics.message


def test_two_measurements_of_one_name_are_told_apart():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    observed = [pb.Observation(u, [[0.2], [0.5]], [1.0, 1.1]) for _ in range(2)]
    problem = pb.Problem(sp.Eq(u.diff(x), 0), pb.Interval((x, 0, 1)), observed)
    solution = METHOD.fit(problem, Points.sample(problem, interior=20))
    assert len(solution.posterior.noise) == 3


def test_penalties_are_those_of_the_paper():
    problem = pb.problems.heat_robin()
    points = Points.sample(problem, interior=300)
    errors = [
        pb.BayesianPIELM(nodes=120, activation="sin", scale=1.0, lambda_b=b, lambda_i=i)
        .fit(problem, points)
        .true_error()
        for b, i in ((1.0, 1.0), (1e4, 1.0), (1.0, 1e4))
    ]
    assert np.abs(np.diff(sorted(errors))).min() > 1e-3 * max(errors)


@pytest.mark.parametrize("bad", [{"nodes": 0}, {"iterations": 0}, {"lambda_b": -1}, {"activation": "tan"}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(pb.PiblsError, match=next(iter(bad)).partition("_")[0]):
        pb.BayesianPIELM(**bad)


def test_exact_conditions_and_nonlinear_problems_are_refused():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    interval = pb.Interval((x, 0, 1))
    exact = pb.Problem(sp.Eq(u.diff(x), 1), interval, [pb.Dirichlet(u, 0, on=interval.left, exact=True)])
    nonlinear = pb.Problem(sp.Eq(u.diff(x), u**2), interval, [pb.Dirichlet(u, 0, on=interval.left)])
    for problem, word in ((exact, "exact=True"), (nonlinear, "nonlinear")):
        with pytest.raises(ProblemError, match=word):
            METHOD.fit(problem, Points.sample(problem, interior=10))


def test_a_system_assembled_by_torch_gives_the_same():
    pytest.importorskip("torch")
    problem = pb.problems.advection()
    points = Points.sample(problem, interior=40)
    here, there = (METHOD.fit(problem, points, device=device) for device in (None, "cpu"))
    np.testing.assert_allclose(here([0.3]), there([0.3]), rtol=1e-6)
