"""Whole solves by the method of lines: accurate, with honest estimates, and words where there is no solution."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from scipy.special import erfc

import pibls as pb
from internals import EvolvedNetwork
from pibls.errors import FeatureError, InputError, SolveError
from pibls.evolution import evolve
from pibls.problem import Problem
from pibls.problems import advection_beta, evolving, heat_2d, klein_gordon, wave
from pibls.solution import Solution

x, t = pb.coordinates("x t")
u = pb.field("u", x, t)
DOMAIN = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)


def solved(problem: Problem, tol: float = 1e-5, **options: float) -> Solution:
    solution = evolve(problem, tol=tol, **{"budget": 60.0, **options})
    assert isinstance(solution, Solution)
    return solution


@pytest.fixture(scope="module")
def shock() -> Solution:
    return solved(evolving.burgers(), tol=1e-4)


def honest(solution: Solution, tol: float) -> None:
    error = solution.true_error()
    assert solution.status == "converged"
    assert error < 2 * tol
    assert solution.error_estimate is not None
    assert error / 3 < solution.error_estimate < 3 * error + 1e-12


def test_a_shock_is_found_without_being_told(shock: Solution) -> None:
    honest(shock, 1e-4)
    assert shock.diagnostics.settings["steepest"] > 50
    stages = shock.diagnostics.stages
    assert stages[-1].estimate == shock.error_estimate


@pytest.mark.parametrize(
    "build", [advection_beta, klein_gordon, wave, heat_2d, evolving.fisher_kpp, evolving.lotka_volterra]
)
def test_evolutions_of_many_kinds_meet_the_tolerance(build: object) -> None:
    assert callable(build)
    honest(solved(build()), 1e-5)


def test_a_system_of_two_fields() -> None:
    w, v = pb.field("w", x, t), pb.field("v", x, t)
    shape, phase = sp.sin(2 * sp.pi * x), sp.exp(-t)
    exact = {"w": shape * phase, "v": shape * phase**2}
    equations = []
    for f, other in ((w, v), (v, w)):
        left = f.diff(t) - f.diff(x, 2) / 50 + other**2
        own, rest = exact[f.label], exact[other.label]
        equations.append(sp.Eq(left, sp.diff(own, t) - sp.diff(own, x, 2) / 50 + rest**2))
    starts = [pb.Initial(f, exact[f.label].subs(t, 0)) for f in (w, v)]
    honest(solved(Problem(equations, DOMAIN, [pb.Dirichlet(w, 0), pb.Dirichlet(v, 0), *starts], exact)), 1e-5)


def test_a_kink_of_the_initial_values_is_resolved() -> None:
    problem = Problem(
        sp.Eq(u.diff(t), u.diff(x, 2) / 1000 + u * (1 - u**2)),
        DOMAIN,
        [pb.Periodic(u, x), pb.Initial(u, sp.tanh(30 * (x - sp.Rational(1, 2)) ** 2) - x * (1 - x))],
    )
    solution = solved(problem, tol=1e-3)
    assert solution.status == "converged"


def test_scaling_the_coordinates_changes_nothing() -> None:
    def burgers(length: float, duration: float) -> Solution:
        nu = sp.Float(0.05 * length**2 / duration)
        speed = sp.Float(length / duration)
        equation = sp.Eq(u.diff(t) + speed * u * u.diff(x), nu * u.diff(x, 2))
        domain = pb.Interval((x, 0, length)) * pb.TimeInterval(t, 0, duration)
        return solved(Problem(equation, domain, [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(2 * sp.pi * x / length))]))

    points = np.random.default_rng(0).random((50, 2))
    one, other = burgers(1.0, 1.0), burgers(100.0, 0.01)
    assert np.abs(one(points) - other(points * [100.0, 0.01])).max() < 2e-5


def test_conditions_and_equation_hold_between_the_points(shock: Solution) -> None:
    edge = [[-1.0, 0.37], [1.0, 0.81]]
    assert np.abs(shock(edge)).max() < 1e-9
    assert shock.diagnostics.residuals["the equation"].rms < 0.1
    assert np.abs(shock.derivative(u, x)([[0.0, 0.9]])[0] + 0.0) > 80
    assert np.abs(shock([[0.5, 0.0]])[0] + 1.0) < 1e-4


def test_the_error_field_shows_where_the_error_is(shock: Solution) -> None:
    X = shock.problem.domain.sample(500)
    true = np.abs(shock(X) - shock.problem.exact_values(X)["u"])
    assert 0.3 < shock.error_field(X).max() / true.max() < 3


def test_a_solution_is_stored_and_read(shock: Solution, tmp_path: Path) -> None:
    again = pb.load(shock.save(tmp_path / "shock.pibls"), data={})
    X = shock.problem.domain.sample(100)
    np.testing.assert_array_equal(again(X), shock(X))
    np.testing.assert_array_equal(again.error_field(X), shock.error_field(X))
    ordinary = solved(evolving.lorenz())
    again = pb.load(ordinary.save(tmp_path / "lorenz.pibls"))
    np.testing.assert_array_equal(again([0.5])["z"], ordinary([0.5])["z"])


def test_it_cannot_become_a_torch_module(shock: Solution) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="polynomials in time"):
        shock.to_torch()


def test_the_same_seed_gives_the_same_solution() -> None:
    first, second, other = (solved(klein_gordon(), seed=seed) for seed in (1, 1, 2))
    X = first.problem.domain.sample(20)
    np.testing.assert_array_equal(first(X), second(X))
    assert np.abs(first(X) - other(X)).max() > 0


def test_a_solution_that_blows_up_is_told() -> None:
    problem = Problem(
        sp.Eq(u.diff(t), u.diff(x, 2) + u**2), DOMAIN, [pb.Dirichlet(u, 0), pb.Initial(u, 50 * sp.sin(sp.pi * x))]
    )
    solution = solved(problem, tol=1e-3)
    assert solution.status == "ill-posed"
    assert "ceases to exist" in solution.diagnostics.message
    assert "t = 0.024" in solution.diagnostics.message
    assert np.isfinite(solution([[0.5, 0.01], [0.5, 0.9]])).all()


def test_a_heat_equation_run_backwards_is_told() -> None:
    problem = Problem(sp.Eq(u.diff(t), -u.diff(x, 2)), DOMAIN, [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(sp.pi * x))])
    solution = solved(problem)
    assert solution.status == "ill-posed"
    assert "unstable" in solution.diagnostics.message


def test_too_little_time_ends_with_the_best_so_far() -> None:
    solution = solved(evolving.burgers(), tol=1e-9, budget=0.3)
    assert solution.status == "stalled"
    assert "budget" in solution.diagnostics.message
    assert solution.error_estimate is not None


def test_no_time_at_all_is_refused_with_a_remedy() -> None:
    with pytest.raises(SolveError, match="Give a larger budget"):
        evolve(evolving.burgers(), budget=1e-9)


def test_progress_is_reported() -> None:
    seen: list[str] = []
    evolve(klein_gordon(), tol=1e-3, report=lambda stage, *_: seen.append(stage))
    assert seen[0] == "scan"
    assert {"solve", "estimate"} <= set(seen)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"tol": 0}, "'tol'"), ({"budget": -1}, "'budget'"), ({"seed": 0.5}, "'seed'"), ({"tol": "small"}, "'tol'")],
)
def test_bad_arguments_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        evolve(klein_gordon(), **options)  # type: ignore[arg-type]


def test_something_else_is_no_problem() -> None:
    with pytest.raises(InputError, match="evolve takes a Problem"):
        evolve("heat")  # type: ignore[arg-type]


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(FeatureError, match="must fit together"):
        EvolvedNetwork(None, np.ones((1, 1)), np.array([0.0, 1.0, 2.0]), np.zeros((1, 2, 1, 1)))


def test_a_clash_of_initial_and_boundary_values_is_resolved_where_it_is() -> None:
    problem = Problem(sp.Eq(u.diff(t), u.diff(x, 2) / 50), DOMAIN, [pb.Dirichlet(u, 0), pb.Initial(u, 1)])
    solution = solved(problem, tol=1e-2)
    terms = [(4 / (np.pi * k), np.pi * k) for k in range(1, 200, 2)]
    X = np.random.default_rng(0).uniform((0, 0.05), (1, 1), (200, 2))
    exact = sum(a * np.sin(w * X[:, 0]) * np.exp(-(w**2) * X[:, 1] / 50) for a, w in terms)
    assert solution.diagnostics.settings["steepest"] > 100
    assert np.linalg.norm(solution(X) - exact) < 1e-2 * np.linalg.norm(exact)


def test_an_interrupt_returns_what_there_is() -> None:
    def stop_at_the_second(stage: str, _: float, nodes: int, *rest: object) -> None:
        if stage == "solve" and rest[0] is not None:
            raise KeyboardInterrupt

    solution = evolve(klein_gordon(), tol=1e-13, report=stop_at_the_second)
    assert isinstance(solution, Solution)
    assert solution.status == "stalled"
    assert "interrupted" in solution.diagnostics.message

    def stop_at_once(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evolve(klein_gordon(), report=stop_at_once)


def test_more_digits_than_there_are_cannot_be_had() -> None:
    solution = solved(klein_gordon(), tol=1e-17, budget=20.0)
    assert solution.status == "stalled"
    assert solution.true_error() < 1e-8


def test_a_ring_keeps_its_heat_as_the_logarithm_says() -> None:
    x, y, t = pb.coordinates("x y t")
    T = pb.field("T", x, y, t)
    disk, hole = (pb.Disk((x, y), (0, 0), radius) for radius in (1.5, 0.5))
    # Harmonic in space: the equation leaves only the decay in time.
    exact = sp.exp(-t) * sp.log(4 * (x**2 + y**2)) / 2
    outside = sp.exp(-t) * (sp.log(3) + sp.Rational(2, 3))
    conditions = [
        pb.Dirichlet(T, 0, on=hole.boundary),
        pb.Robin(T, 1, 1, outside, on=disk.boundary),
        pb.Initial(T, exact.subs(t, 0)),
    ]
    equation = sp.Eq(T.diff(t), pb.laplacian(T) / 10 - T)
    ring = Problem(equation, (disk - hole) * pb.TimeInterval(t, 0, 1), conditions, exact)
    solution = evolve(ring, tol=3e-3)
    assert isinstance(solution, Solution)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-3


@pytest.mark.parametrize("power", [2, 4])
@pytest.mark.parametrize("order", [1, 2])
def test_what_begins_with_nothing_and_at_rest_is_followed(order: int, power: int) -> None:
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    exact = 1e6 * t ** (order + power - 1) * sp.sin(sp.pi * x)
    source = sp.expand(exact.diff(t, order) - exact.diff(x, 2))
    rest = [pb.Initial(u, 0), pb.Initial(u.diff(t), 0)][:order]
    equation = sp.Eq(u.diff(t, order), u.diff(x, 2) + source)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    solution = evolve(Problem(equation, domain, [pb.Dirichlet(u, 0), *rest], exact))
    assert isinstance(solution, Solution)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_a_loose_tolerance_is_met_with_few_features() -> None:
    for problem in (wave(), evolving.kdv()):
        solution = solved(problem, tol=0.1, budget=2.0)
        assert solution.status == "converged"
        assert solution.true_error() < 0.1
        assert solution.diagnostics.nodes < 200


def test_clocks_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Solution:
        return solved(evolving.burgers(), tol=1e-9, budget=0.5)

    plain = run()
    ticks = itertools.count()
    for clock in ("perf_counter", "process_time", "monotonic", "time"):
        monkeypatch.setattr(time, clock, lambda: 1e9 * (-1.0) ** next(ticks) * next(ticks))
    wild = run()
    assert (wild.status, wild.diagnostics.nodes) == (plain.status, plain.diagnostics.nodes)
    assert wild.diagnostics.message == plain.diagnostics.message
    assert wild.error_estimate == plain.error_estimate
    X = plain.problem.domain.sample(50)
    np.testing.assert_array_equal(wild(X), plain(X))
    assert wild.diagnostics.seconds["total"] != plain.diagnostics.seconds["total"]


def test_a_larger_budget_goes_further() -> None:
    small, large = (solved(evolving.burgers(), tol=1e-9, budget=budget) for budget in (0.5, 2.0))
    assert "nominal seconds" in small.diagnostics.message
    assert small.status == "stalled"
    assert large.true_error() < small.true_error()


def test_a_sudden_start_is_part_of_the_estimate() -> None:
    # Flux from the first moment on: what is missed is missed within the first thousandth of the time.
    def exact(places: np.ndarray, times: np.ndarray) -> np.ndarray:
        root = 2 * np.sqrt(np.maximum(times, 1e-300))
        return root / np.sqrt(np.pi) * np.exp(-((places / root) ** 2)) - places * erfc(places / root)

    known = pb.data("known", exact, x, t)
    left, right = pb.Interval((x, 0, 1)).left, pb.Interval((x, 0, 1)).right
    conditions = [pb.Neumann(u, 1, on=left), pb.Dirichlet(u, known, on=right), pb.Initial(u, 0)]
    solution = solved(pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2)), DOMAIN, conditions, exact=known), tol=1e-6)
    assert solution.error_estimate is not None
    assert solution.true_error(20_000) < 3 * solution.error_estimate


def test_a_trace_that_steps_cannot_follow_more_accurately_is_not_called_converged():
    """Steps reach rounding beside a field of size one: the same steps again would agree, and prove nothing."""
    a, b = pb.field("a", t), pb.field("b", t)
    tiny = sp.Rational(1, 10**10)
    problem = pb.Problem(
        [sp.Eq(a.diff(t), -a), sp.Eq(b.diff(t), -(b**2) / tiny)],
        pb.TimeInterval(t, 0, 2),
        [pb.Initial(a, 1), pb.Initial(b, tiny)],
        exact={a: sp.exp(-t), b: tiny / (1 + t)},
    )
    for way in ("lines", None):
        solution = pb.solve(problem, time=way, progress=False)
        assert solution.status == ("stalled" if way else "converged")
        assert solution.true_error() < 3 * solution.error_estimate


def test_a_pulse_that_is_nothing_at_first_is_followed():
    c, when = pb.field("c", t), sp.Rational(37, 10)
    pulse = sp.sin(t) + sp.exp(-((100 * (t - when)) ** 2))
    start = [pb.Initial(c, pulse.subs(t, 0)), pb.Initial(c.diff(t), pulse.diff(t).subs(t, 0))]
    kicked = sp.Eq(c.diff(t, 2) + c, pulse.diff(t, 2) + pulse)
    solution = pb.solve(pb.Problem(kicked, pb.TimeInterval(t, 0, 10), start, exact=pulse), tol=1e-4, progress=False)
    assert (solution.status, solution.true_error() < 3e-4) == ("converged", True)
