"""Nonlinear problems are solved to the tolerance without being told how; those without solution are told."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import InputError, ProblemError
from pibls.solution.starts import given_start
from pibls.tuning import coarse as coarse_module
from pibls.tuning.campaign import Campaign
from pibls.tuning.laboratory import Laboratory
from pibls.tuning.nonlinear import solve_nonlinear
from pibls.tuning.starts import bump, simple_starts

# Enough on a slow machine too.
AMPLE = 40.0
x, y = pb.coordinates("x y")
w = pb.field("u", x)
line = pb.Interval((x, 0, 1))


def bratu(load):
    return pb.Problem(w.diff(x, 2) + load * sp.exp(w), line, [pb.Dirichlet(w, 0)])


@pytest.mark.parametrize("name", ["bratu", "cubic_reaction", "lane_emden", "p_laplacian"])
def test_zoo_converges_to_the_tolerance(name):
    solution = pb.solve(pb.problems.catalogue()[name](), budget=AMPLE, seed=1)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.error_estimate <= 1e-6
    assert solution.true_error() <= 1e-5
    assert solution.diagnostics.iterations
    assert solution.diagnostics.iterations[-1]["residual"] <= solution.diagnostics.iterations[0]["residual"]


def test_estimate_is_near_the_true_error():
    solution = pb.solve(pb.problems.minimal_surface(), tol=1e-5, budget=AMPLE)
    assert solution.status == "converged"
    assert 0.1 < solution.error_estimate / solution.true_error() < 10
    X = solution.problem.domain.sample(300)
    true = np.abs(solution(X) - solution.problem.exact_values(X)["u"])
    assert 0.2 < solution.error_field(X).max() / true.max() < 5


def test_many_oscillations_need_more_nodes_before_a_start_means_anything():
    solution = pb.solve(pb.problems.nonlinear_helmholtz(), tol=1e-9, budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-8


def test_systems_of_fields():
    u, v = pb.field("u", x), pb.field("v", x)
    equations = [sp.Eq(u.diff(x), v * (u**2 + v**2)), sp.Eq(v.diff(x), -u * (u**2 + v**2) ** 2)]
    start = [pb.Dirichlet(u, 0, on=[0.0]), pb.Dirichlet(v, 1, on=[0.0])]
    problem = pb.Problem(equations, pb.Interval((x, 0, 3)), start, exact={u: sp.sin(x), v: sp.cos(x)})
    solution = pb.solve(problem, budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_nonlinear_conditions_and_conditions_that_hold_exactly():
    # u = 2/(2 − x) with u² + u' = 3/2 at the left end; the other root of the condition gives another solution.
    condition = pb.Condition(sp.Eq(w**2 + w.diff(x), sp.Rational(3, 2)), on=[0.0], exact=True)
    equation = sp.Eq(w.diff(x), w**2 / 2)
    problem = pb.Problem(equation, line, [condition], exact=2 / (2 - x))
    solution = pb.solve(problem, start=1 + x / 2, budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    # Values of cells are rounded at about 1e-16 times the sum of their weights.
    assert abs(float(np.asarray(solution.residual(problem.conditions[0]))[0])) < 1e-10


def test_no_solution_is_told_in_words():
    solution = pb.solve(bratu(4), budget=AMPLE)
    assert solution.status == "ill-posed"
    assert solution.error_estimate == np.inf
    message = solution.diagnostics.message
    assert "No solution was found" in message
    assert "% of the nonlinearity" in message
    assert "start=" in message
    assert solution.diagnostics.seconds["total"] < AMPLE


def test_a_solution_that_blows_up_is_not_taken_for_one():
    t = pb.coordinates("t")
    u = pb.field("u", t)
    problem = pb.Problem(sp.Eq(u.diff(t), u**2), pb.TimeInterval(t, 0, 2), [pb.Initial(u, 1)])
    for way, words in (("space-time", "no solution"), ("lines", "blows up, or becomes infinitely steep, near t = 1,")):
        solution = pb.solve(problem, budget=3, time=way)
        assert solution.status in {"stalled", "ill-posed"}
        assert solution.error_estimate >= 1
        assert words in solution.diagnostics.message.replace("No", "no")


def bratu_middle(sign):
    """Return u(½) of the smaller or larger solution for λ = 1, from the roots of θ = √2 cosh(θ/4)."""
    theta = 1.0 if sign < 0 else 12.0
    for _ in range(100):
        value, slope = np.sqrt(2) * np.cosh(theta / 4) - theta, np.sqrt(2) * np.sinh(theta / 4) / 4 - 1
        theta -= value / slope
    return 2 * np.log(np.cosh(theta / 4))


def test_of_two_solutions_the_start_chooses_and_the_message_tells():
    small = pb.solve(bratu(1), budget=AMPLE)
    large = pb.solve(bratu(1), start={w: 4 * sp.sin(sp.pi * x)}, budget=AMPLE)
    assert small([0.5]) == pytest.approx(bratu_middle(-1), abs=1e-6)
    assert large([0.5]) == pytest.approx(bratu_middle(1), abs=1e-5)
    for solution, start in ((small, "zero"), (large, "the given start")):
        assert solution.status == "converged"
        assert f"more than one solution: this is the one reached from {start}" in solution.diagnostics.message
    again = pb.solve(bratu(1.1), start=large, budget=AMPLE)
    assert again([0.5]) > 3


def test_a_trivial_solution_is_returned_and_the_branch_beside_it_named():
    problem = pb.Problem(w.diff(x, 2) + 20 * (w - w**3), line, [pb.Dirichlet(w, 0)])
    solution = pb.solve(problem, budget=AMPLE)
    assert np.abs(solution(np.linspace(0, 1, 20))).max() < 1e-12
    assert "more than one solution" in solution.diagnostics.message


def test_one_solution_is_not_taken_for_two():
    solution = pb.solve(pb.problems.burgers_steady(), budget=AMPLE)
    assert solution.status == "converged"
    assert "more than one" not in solution.diagnostics.message


def test_corners_of_a_square_get_their_own_nodes_where_they_help():
    reference = pb.problems.references()["bratu_unforced"]
    solution = solve_nonlinear(reference.problem(), 1e-7, AMPLE, 0, lambda _: None)
    assert solution.network.special_nodes > 0
    assert np.abs(solution(reference.points) - reference.values).max() < 1e-7
    smooth = solve_nonlinear(pb.problems.cubic_reaction(), 1e-6, AMPLE, 0, lambda _: None)
    assert smooth.network.special_nodes == 0


def test_cells_follow_the_corners_of_a_square():
    reference = pb.problems.references()["bratu_unforced"]
    solution = pb.solve(reference.problem(), tol=1e-7, budget=AMPLE)
    assert np.abs(solution(reference.points) - reference.values).max() < 1e-7


def test_easier_problems_lead_the_way():
    solution = pb.solve(pb.problems.burgers_steady(0.1), continuation=[pb.problems.burgers_steady(0.3)], budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5
    assert "given start" not in solution.diagnostics.message


def campaign_for(problem):
    return Campaign(Laboratory(problem, 0), 1e-6, AMPLE, lambda _: None)


def test_continuation_finds_what_direct_iterations_do_not(monkeypatch):
    # Without any other start, the solution is followed from the linear problem.
    monkeypatch.setattr(coarse_module, "simple_starts", lambda *_: iter(()))
    found = coarse_module.coarse_solution(bratu(3), campaign_for(bratu(3)), None)
    assert found.failure == ""
    assert "by continuation" in found.remark
    exact = pb.problems.bratu_1d(3).exact_values([0.5])["u"][0]
    assert found.solution([0.5])[0] == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(
    ("equation", "exact"),
    [
        (w.diff(x) - 1 / w, sp.sqrt(1 + 2 * x)),
        (w.diff(x) - sp.sqrt(w), (1 + x / 2) ** 2),
        (w.diff(x) + w * sp.log(w) - sp.exp(x) * (1 + x), sp.exp(x)),
    ],
)
def test_equations_without_a_value_at_zero_start_elsewhere(equation, exact):
    problem = pb.Problem(equation, line, [pb.Dirichlet(w, 1, on=line.left)], exact=exact)
    solution = pb.solve(problem, budget=AMPLE)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_equations_without_a_value_at_any_start_ask_for_one():
    problem = pb.Problem(w.diff(x) - sp.log(w - 30), line, [pb.Dirichlet(w, 1)])
    with pytest.raises(ProblemError, match=r"no finite value at any start.*zero.*start="):
        pb.solve(problem)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "x"}, "'start' parameter of solve must be a solution, or an expression"),
        ({"start": {"v": x}}, "'start'"),
        ({"start": {w: x, "v": x}}, "'start'"),
        ({"start": y}, "'start'"),
        ({"start": None, "continuation": [3]}, "'continuation' parameter of solve"),
        ({"continuation": pb.problems.stokes()}, "'continuation' parameter of solve"),
        ({"start": x, "method": pb.PIELM(nodes=5)}, "Leave out 'method' and 'points'"),
    ],
)
def test_bad_guesses_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        pb.solve(bratu(1), **options)


def test_a_solution_of_another_kind_is_no_start():
    other = pb.PIELM(nodes=5).fit(pb.problems.poisson(), pb.Points.sample(pb.problems.poisson(), 10))
    with pytest.raises(InputError, match=r"coordinates \(x,\) of the problem"):
        pb.solve(bratu(1), start=other)
    assert given_start(3, bratu(1))(np.zeros((2, 1)), [("u", (0,)), ("u", (1,))])[0].tolist() == [3, 3]


def test_simple_starts_meet_the_conditions():
    problem = pb.problems.p_laplacian()
    lab = Laboratory(problem, 0)
    starts = dict(simple_starts(problem, lab, 80))
    assert list(starts) == ["zero", "a harmonic function", "a bump", "a random function"]
    edge = problem.domain.boundary.sample(40).points
    for name in ("a harmonic function", "a bump"):
        values = starts[name](edge, [("u", (0, 0))])[0]
        np.testing.assert_allclose(values, problem.exact_values(edge)["u"], rtol=1e-2)
    X = problem.domain.sample(50)
    laplacian = sum(starts["a harmonic function"](X, [("u", (2, 0)), ("u", (0, 2))]))
    assert np.abs(laplacian).max() < 0.1
    shape = bump(problem, lab, 80)
    assert np.abs(shape(edge, [("u", (0, 0))])[0]).max() < 1e-2
    assert shape(X, [("u", (0, 0))])[0].max() > 0.1


def test_the_same_seed_gives_the_same_solution_and_a_file_keeps_the_history(tmp_path):
    solution, again = (pb.solve(pb.problems.bratu_1d(), seed=3) for _ in range(2))
    assert (solution.weights == again.weights).all()
    loaded = pb.load(solution.save(tmp_path / "bratu.pibls"))
    assert loaded.diagnostics.iterations == solution.diagnostics.iterations
    assert "iteration   residual" in str(loaded.diagnostics)
    assert not loaded.problem.is_linear
    X = np.linspace(0, 1, 7)
    np.testing.assert_array_equal(loaded(X), solution(X))


def test_methods_fit_nonlinear_problems_too():
    problem = pb.problems.nonlinear_spring()
    points = pb.Points.sample(problem, 120)
    method = pb.PIBLS(features=[("sin", 60, 3.0)], enhancement_groups=0)
    solution = method.fit(problem, points)
    assert solution.true_error() < 1e-10
    assert "converged" in solution.diagnostics.message
    assert solution.diagnostics.residuals["the equation"].max < 1e-8
    estimated = pb.solve(problem, method=method, tol=1e-8)
    assert estimated.status == "converged"
    with pytest.raises(InputError, match="'lambda_reg' parameter must be 0 for nonlinear"):
        pb.PIELM(nodes=10, lambda_reg=1e-6).fit(problem, points)


def test_device_gives_the_same_answer():
    pytest.importorskip("torch")
    solution = pb.solve(pb.problems.nonlinear_spring(), device="cpu")
    assert solution.status == "converged"
    assert solution.true_error() < 1e-8


def test_a_sharper_second_solution_on_a_square_is_found_and_said():
    solution = pb.solve(pb.problems.bratu_unforced(1), tol=1e-3, budget=AMPLE)
    assert solution.status == "converged"
    assert solution([[0.5, 0.5]])[0] == pytest.approx(0.0781, rel=1e-2)
    assert "more than one solution" in solution.diagnostics.message
    assert "reached from zero" in solution.diagnostics.message


def test_a_start_decides_between_two_solutions_though_simple_starts_lead_to_the_other():
    solution = pb.solve(bratu(1), start=5.7 * x * (1 - x) * 2.6, tol=1e-5, budget=AMPLE)
    assert solution.status == "converged"
    assert solution([[0.5]])[0] == pytest.approx(4.0911, abs=1e-3)
    assert "the given start" in solution.diagnostics.message
