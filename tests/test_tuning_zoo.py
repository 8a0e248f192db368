"""The automatic solver reaches its tolerance, knows its error, and says what is wrong with a problem that has none."""

import io
import sys
import types

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    Fitting,
    Judge,
    Progress,
    _Line,
    contradiction_of,
    find_ambiguity,
    joint_defects,
    reporter,
    root_mean_square,
)
from pibls.geometry import Points
from pibls.problems import ill_posed

# Enough on a slow machine too.
AMPLE = 30.0
QUICK = [
    "advection",
    "annulus",
    "beam",
    "biharmonic",
    "convection_diffusion",
    "damped_oscillator",
    "diffusion_reaction",
]
CUT = ["l_shape", "annulus", "poisson_star"]  # domains that cost more
QUICK += ["heat_robin", "l_shape", "oscillator", "poisson", "poisson_star", "robin_disk", "variable_coefficient_data"]


@pytest.mark.parametrize("name", QUICK)
def test_zoo_converges_to_the_tolerance(name):
    tol = 1e-5 if name in CUT else 1e-6
    solution = pb.solve(pb.problems.catalogue()[name](), tol=tol, budget=AMPLE)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.error_estimate <= tol
    assert solution.true_error() <= 10 * tol


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("name", ["helmholtz", "poisson_gaussian"])
def test_estimate_is_near_the_true_error(name, tol):
    solution = pb.solve(pb.problems.catalogue()[name](), tol=tol, seed=3, budget=AMPLE)
    assert solution.status == "converged"
    assert 0.1 < solution.true_error() / solution.error_estimate < 10


@pytest.mark.parametrize("name", sorted(ill_posed()))
def test_ill_posed_problems_are_told(name):
    case = ill_posed()[name]
    # What contradicts itself spends all the work it may; a little is enough to tell.
    solution = pb.solve(case.problem(), budget=0.3)
    assert solution.status == "ill-posed"
    # With data that no solution fits, and many that nearly do, either is right; what hardly anything sees is unstable.
    words = {"non-unique": "not unique|unstable", "unstable": "unstable", "inconsistent": "contradict|no solution"}
    assert any(word in solution.diagnostics.message for word in words[case.kind].split("|"))


def test_a_well_posed_problem_hides_nothing_and_a_gauge_repairs_one_that_does():
    gauged = Fitting(pb.problems.neumann_gauge(), 0)
    network = gauged.network([(100, (3.0, 3.0))])
    assert find_ambiguity(gauged.problem, gauged.points(100), network).visibility > 1e-3
    bare = Fitting(ill_posed()["pure_neumann"].problem(), 0)
    hidden = find_ambiguity(bare.problem, bare.points(100), network)
    assert hidden.is_unseen
    X = bare.problem.domain.sample(50)
    values = network.evaluate(X, [(0, 0)])[0, 0] @ hidden.weights[0]
    assert np.ptp(values) < 1e-4 * np.abs(values).max()  # the hidden function is a constant


def test_slots_between_fins_are_resolved_and_not_called_a_contradiction():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    corners = [(0, 0), (3, 0), (3, 3), (2.7, 3), (2.7, 0.5), (0.3, 0.5), (0.3, 3), (0, 3)]
    fins = pb.Polygon((x, y), corners)
    air = [pb.Robin(u, 0.05, 1, 0, on=getattr(fins, f"edge{i}")) for i in range(1, len(corners))]
    problem = pb.Problem(pb.laplacian(u), fins, [pb.Neumann(u, 1.2, on=fins.edge0), *air])
    solution = pb.solve(problem, tol=1e-3)
    assert solution.status == "converged"
    # What the chip gives, the air takes.
    around = fins.boundary.where(lambda X: X[:, 1] > 1e-9)
    X, _, weights = around.quadrature(4000)
    assert 0.05 * weights @ solution(X) == pytest.approx(1.2 * 3, rel=5e-3)


def test_how_much_happens_is_known():
    problem = pb.problems.heat_robin()
    fitting = Fitting(problem, 0)
    solution = pb.solve(problem)
    rate = solution.derivative(problem.fields[0], problem.domain.time)
    X, low_high = fitting.compare_points, problem.domain.bounds[-1]
    expected = np.ptp(low_high) * np.linalg.norm(rate(X)) / np.linalg.norm(solution(X))
    assert fitting.turns(solution) == pytest.approx(expected)
    assert Fitting(pb.problems.poisson(), 0).turns(pb.solve(pb.problems.poisson(), tol=1e-2)) == 0.0


def test_what_adds_up_over_a_long_time_is_not_taken_for_solved():
    solution = pb.solve(pb.problems.advection_long(), time="space-time", budget=1.0)
    assert solution.true_error() > 0.5
    assert solution.status == "stalled"
    assert solution.error_estimate >= 1.0


def test_statements_that_fit_alone_but_not_together():
    problem = ill_posed()["contradictory_dirichlet"].problem()
    fitting = Fitting(problem, 0)
    together, alone = joint_defects(problem, fitting.points(100), fitting.network([(100, (3.0, 3.0))]))
    assert together > 0.1
    assert alone < 1e-6


def test_many_dimensions_are_no_contradiction():
    coordinates = pb.coordinates(" ".join(f"x{k}" for k in range(40)))
    many = pb.field("u", *coordinates)
    box = pb.Box(*((symbol, 0, 1) for symbol in coordinates))
    problem = pb.Problem(sp.Eq(pb.laplacian(many) - many, 1), box, [pb.Dirichlet(many, 0)])
    assert contradiction_of(Fitting(problem, 0)) == ""
    assert contradiction_of(Fitting(ill_posed()["contradictory_dirichlet"].problem(), 0))


def test_judge_is_one_for_nothing_and_small_for_a_solution():
    problem = pb.problems.poisson()
    judge = Judge(problem, Points.sample(problem, 150, seed=5))
    solution = Fitting(problem, 0).fit([(240, (3.0, 3.0))])
    assert judge(solution.evaluate) < 1e-6
    assert set(judge.residuals(solution.evaluate)) == {s.name for s in problem.statements}
    scaled = type(solution)(problem, solution.network, 2 * solution.weights, "fitted", solution.diagnostics)
    # −2Δu − f = f: a residual of the size of f, compared with terms of twice that size in two derivatives and f.
    f = root_mean_square(2 * np.pi**2 * problem.exact_values(judge.points.interior)["u"])
    # Each second derivative is −π²u, of half the size of f, and twice that here.
    assert judge.references(scaled.evaluate)["the equation"] == pytest.approx(f * np.sqrt(3), rel=0.05)
    assert judge.residuals(scaled.evaluate)["the equation"] == pytest.approx(1 / np.sqrt(3), rel=0.05)


def test_progress_is_shown_where_asked_and_nowhere_else(monkeypatch, capsys):
    with reporter(None) as report:
        report(Progress("scan", 0.1))
    with reporter(False) as report:
        report(Progress("scan", 0.1))
    assert capsys.readouterr().err == ""
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with reporter(True, tolerance=1e-6) as report:
        report(Progress("solve", 1.0, 100, 1e-3, 1e-4))
    first, *_, last = screen.getvalue().split("\r")[1:-1]
    assert first.startswith("solving")
    assert first.split()[1:4] == ["1.0", "s", "100"]
    assert last.strip() == ""


def test_progress_is_one_line_in_a_notebook(monkeypatch, capsys):
    class Shell:
        kernel = object()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = Shell
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with reporter(None, tolerance=1e-6) as report:
        report(Progress("estimate", 1.0))
    shown, complained = capsys.readouterr()
    assert complained == ""
    assert "\n" not in shown
    assert shown.startswith("\restimating the error")
    assert "tolerance 1e-06" in shown


def test_the_clock_of_progress_goes_on_between_steps(monkeypatch):
    screen, ticks = io.StringIO(), iter([0.0, 2.5])
    line = _Line(screen, 60)
    monkeypatch.setattr("pibls.tuning.progress.time", types.SimpleNamespace(perf_counter=lambda: next(ticks)))
    waits = iter([False, True])
    line.ended = types.SimpleNamespace(wait=lambda _: next(waits))
    line.tell(Progress("solve", 1.0))
    line._tick()
    assert [text.split()[1] for text in screen.getvalue().split("\r")[1:]] == ["1.0", "3.5"]
