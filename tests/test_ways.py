"""Every way of solving tells what it did in the same words, decides by counted work, and shares one budget."""

from __future__ import annotations

import itertools
import math
import re
import time
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import more_budget, solve_by_cells, solve_wide, strategy
from pibls import PiblsError, Status, evolution
from pibls.budget import Budget
from pibls.errors import DeadlineError, InputError, SolveError
from pibls.evolution import Unsuitable
from pibls.problems import bratu_unforced, evolving
from pibls.solution import Diagnostics, Stage


def with_method(method, interior=60):
    problem = pb.problems.advection()
    return pb.solve(problem, method=method, points=pb.Points.sample(problem, interior=interior), tol=1e-3)


def loaded(tmp_path_factory):
    solution = pb.solve(pb.problems.helmholtz(), tol=1e-2)
    return pb.load(solution.save(tmp_path_factory.mktemp("ways") / "run.pibls"))


WAYS = {
    "linear cells": lambda _: pb.solve(pb.problems.helmholtz(), tol=1e-4),
    "nonlinear cells": lambda _: pb.solve(pb.problems.cubic_reaction(), tol=1e-4),
    "lines": lambda _: pb.solve(pb.problems.heat_robin(), tol=1e-4, time="lines"),
    "ode": lambda _: pb.solve(evolving.lotka_volterra(), tol=1e-4),
    "wide": lambda _: pb.solve(pb.problems.poisson_nd(4), tol=1e-3),
    "PIBLS": lambda _: with_method(pb.PIBLS(feature_groups=2)),
    "PIELM": lambda _: with_method(pb.PIELM(nodes=60, activation="sin")),
    "BayesianPIELM": lambda _: with_method(pb.BayesianPIELM(nodes=60, activation="sin")),
    "PINN": lambda _: with_method(pb.PINN(width=8, adam_iterations=5, lbfgs_iterations=5), 20),
    "grown": lambda _: pb.solve(pb.problems.helmholtz(), tol=1e-2).grow(nodes=50),
    "loaded": loaded,
}
STAGELESS = {"PIBLS", "PIELM"}


@pytest.fixture(scope="module", params=WAYS)
def told(request, tmp_path_factory):
    if request.param == "PINN":
        pytest.importorskip("torch")
    return request.param, WAYS[request.param](tmp_path_factory)


def test_diagnostics_are_printed_alike(told):
    way, solution = told
    record = solution.diagnostics
    lines = str(record).splitlines()
    words = {line.split()[0] for line in lines}
    assert {"method", "size", "solver", "residual", "seconds", "message"} <= words
    assert ("stage" in words) == (way not in STAGELESS)
    assert all(isinstance(stage, Stage) for stage in record.stages)
    assert not re.search(r"\b1 \w+s\b|None|nan|\{", str(record)), str(record)
    assert record.size in lines[1]
    assert record.size in repr(solution)


def test_records_survive_a_file(told):
    record = told[1].diagnostics
    again = Diagnostics.from_dict(record.as_dict())
    assert again.stages == tuple(record.stages)
    assert str(again).splitlines()[1:] == str(record).splitlines()[1:]


def test_an_ode_tells_of_coefficients_and_steps(told):
    way, solution = told
    if way == "ode":
        record = solution.diagnostics
        assert re.fullmatch(r"2 coefficients, \d+ steps", record.size)
        assert (record.nodes, record.rows) == (2, 0)
        assert all((stage.nodes, stage.rows) == (2, 0) and stage.steps > 10 for stage in record.stages)


def test_the_message_and_the_estimate_agree(told):
    solution = told[1]
    said = re.search(r"estimated error (?:is )?(\d\.\de[+-]\d+)", solution.diagnostics.message)
    assert said, solution.diagnostics.message
    assert said[1] == f"{solution.error_estimate:.1e}"
    place = re.search(r"(within|above) the tolerance ([0-9.e-]+[0-9])", solution.diagnostics.message)
    if place:
        assert (place[1] == "within") == (solution.error_estimate <= float(place[2]))
        assert (solution.status == Status.CONVERGED) == (place[1] == "within")


def test_seconds_add_up(told):
    seconds = told[1].diagnostics.seconds
    assert seconds
    assert float(told[1].summary()["seconds"]) == pytest.approx(sum(seconds.values()), abs=0.01)


def test_residuals_are_in_the_units_of_the_equation():
    """Rows are scaled for the solve; what is told is what the equation itself lacks."""
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line = pb.Interval((x, 0, 1))
    problem = pb.Problem(1e6 * u.diff(x, 2) - sp.sin(40 * x) * 1e6, line, [pb.Dirichlet(u, 0, weight=10)])
    points = pb.Points.sample(problem, 60)
    methods = [pb.PIELM(nodes=12, activation="sin"), pb.BayesianPIELM(nodes=12, activation="sin")]
    solutions = [pb.solve(problem, method=method, points=points) for method in methods]
    solutions += [pb.solve(problem, tol=1e-1), solve_wide(problem, 1e-1, 10.0, 0, lambda _: None)]
    for solution in solutions:
        rms = np.sqrt(np.mean(solution.residual()(line.sample(400)) ** 2))
        assert 0.1 < solution.diagnostics.residuals["the equation"].rms / rms < 10


CLOCKLESS = {
    "linear cells": lambda: pb.solve(pb.problems.l_shape(), tol=1e-9, budget=0.1),
    "ill-posed": lambda: pb.solve(pb.problems.ill_posed()["ode_one_condition"].problem()),
    "nonlinear cells": lambda: pb.solve(pb.problems.cubic_reaction(), tol=1e-9, budget=0.2),
    "wide": lambda: solve_wide(pb.problems.helmholtz(), 1e-14, 0.2, 0, lambda _: None),
    "nonlinear wide": lambda: solve_wide(bratu_unforced(1), 1e-15, 0.1, 0, lambda _: None),
    "method": lambda: with_method(pb.PIELM(nodes=60, activation="sin")),
    "lines": lambda: pb.solve(evolving.fisher_kpp(), tol=1e-9, budget=0.2),
    "ode": lambda: pb.solve(evolving.lotka_volterra(), tol=1e-7),
    "two ways": lambda: pb.solve(clash(), tol=1e-5, budget=0.2),
}


@pytest.mark.parametrize("way", CLOCKLESS)
def test_no_clock_decides_anything(way, monkeypatch):
    def facts():
        solution = CLOCKLESS[way]()
        sizes = [replace(stage, seconds=0.0) for stage in solution.diagnostics.stages]
        values = solution.evaluate(
            solution.problem.domain.sample(50),
            [(solution.problem.field_names[0], (0,) * len(solution.coordinate_names))],
        )
        return solution.status, solution.diagnostics.size, sizes, solution.diagnostics.message, values[0].tobytes()

    found = []
    for step in (1e6, 1e-9):  # on a machine that hardly moves, and on one that is done at once
        for clock in ("perf_counter", "process_time", "monotonic", "time"):
            ticks = itertools.count()
            monkeypatch.setattr(time, clock, lambda ticks=ticks, step=step: step * next(ticks))
        found.append(facts())
        monkeypatch.undo()
    assert found[0] == found[1]


def fitted(**options):
    problem = pb.problems.advection()
    return pb.solve(problem, method=pb.PIELM(nodes=20), points=pb.Points.sample(problem, 40), **options)


@pytest.mark.parametrize(
    "solve",
    [
        lambda **options: pb.solve(pb.problems.l_shape(), tol=1e-9, **options),
        lambda **options: pb.solve(bratu_unforced(1), tol=1e-17, **options),
        lambda **options: pb.solve(pb.problems.heat_robin(), tol=1e-15, time="lines", **options),
        lambda **options: pb.solve(pb.problems.poisson_nd(4), tol=1e-12, **options),
        fitted,
    ],
)
def test_a_deadline_ends_every_way_and_says_so(solve):
    try:
        solution = solve(deadline=1e-6)
    except DeadlineError as error:
        words = str(error)
    else:
        assert solution.status == "stalled"
        words = solution.diagnostics.message
    assert "The deadline ended the solve: 1e-06 s have passed." in words
    assert "budget" not in words


@pytest.mark.parametrize(
    "given", [{"deadline": 0}, {"deadline": -1.0}, {"deadline": "soon"}, {"assume_well_posed": np.ones(2)}]
)
def test_impossible_wishes_are_refused(given):
    with pytest.raises(InputError, match=f"'{next(iter(given))}'"):
        pb.solve(pb.problems.advection(), **given)


def test_a_budget_is_shared_by_a_problem_and_those_on_the_way_to_it():
    way = [bratu_unforced(0.5), bratu_unforced(0.8)]
    for solver in (solve_by_cells, solve_wide):
        three, alone = Budget(10.0), Budget(10.0)
        solver(bratu_unforced(1), 1e-2, three, 0, lambda _: None, continuation=way)
        solver(bratu_unforced(1), 1e-2, alone, 0, lambda _: None)
        assert three.operations > alone.operations > 0


def clash():
    """Return a rod that is cooled at once: its initial and boundary values disagree."""
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    rod = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    return pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2) / 50), rod, [pb.Dirichlet(u, 0), pb.Initial(u, 1)])


@pytest.fixture
def stalling(monkeypatch):
    """An evolution that stalls in space and time, and what was left of the budget when lines were tried."""
    left = []

    def instead(answer):
        def evolve(problem, *, budget, **_):
            left.append(budget)
            if isinstance(answer, BaseException):
                raise answer
            return answer if isinstance(answer, pb.Solution | Unsuitable) else answer(budget)

        monkeypatch.setattr(strategy, "evolve", evolve)
        return pb.solve(clash(), tol=1e-5, budget=0.2)

    return instead, left


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (SolveError("it was too stiff."), "Following it in time failed as well: it was too stiff."),
        (KeyboardInterrupt(), "Following it in time did not finish. It was interrupted."),
        (Unsuitable("nothing moves"), "It cannot be followed in time instead: nothing moves"),
    ],
)
def test_a_second_way_that_fails_keeps_the_first_solution(stalling, answer, words):
    instead, left = stalling
    solution = instead(answer)
    assert (solution.status, solution.diagnostics.method) == ("stalled", "Cells")
    assert words in solution.diagnostics.message
    assert 0 < left[0].left < left[0].nominal == 0.2
    assert set(solution.diagnostics.seconds) == {"cells", "lines"}


def test_a_second_way_that_succeeds_tells_of_the_first(stalling):
    instead, _ = stalling
    other = pb.solve(pb.problems.heat_robin(), tol=1e-5, time="lines")
    solution = instead(lambda budget: evolution.evolve(pb.problems.heat_robin(), tol=1e-5, budget=budget))
    seconds = solution.diagnostics.seconds
    assert set(seconds) == {"cells", "lines"}
    assert re.search(
        r"It was followed in time, as .* it stalled \(estimated error \d\.\de-\d+\)", solution.diagnostics.message
    )
    assert solution.diagnostics.stages[0].seconds > seconds["cells"]
    worse = instead(replace(other, status="stalled", error_estimate=0.9))
    assert worse.diagnostics.method == "Cells"
    assert "Followed in time it is no better (estimated error 9.0e-01)." in worse.diagnostics.message


def test_what_is_assumed_to_be_well_posed_is_never_called_otherwise():
    open_end = pb.problems.ill_posed()["ode_one_condition"].problem()
    x, t = pb.coordinates("x t")
    y = pb.field("y", t)
    explodes = pb.Problem(sp.Eq(y.diff(t), y**2), pb.TimeInterval(t, 0, 2), [pb.Initial(y, 1)])
    u = pb.field("u", x)
    none = pb.Problem(u.diff(x, 2) + 5 * sp.exp(u), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    for problem in (open_end, explodes, none):
        assert pb.solve(problem).status == "ill-posed"
        assert pb.solve(problem, assume_well_posed=True, budget=1).status == "stalled"
    for name in ("pure_neumann", "neumann_incompatible"):
        problem = pb.problems.ill_posed()[name].problem()
        assert solve_wide(problem, 1e-6, 1.0, 0, lambda _: None).status == "ill-posed"
        assert solve_wide(problem, 1e-6, 1.0, 0, lambda _: None, assume_well_posed=True).status != "ill-posed"
    assert pb.solve(pb.problems.helmholtz(), assume_well_posed=True).status == "converged"


def test_a_larger_budget_is_advised_where_it_helps():
    def stages(*estimates):
        return [Stage(0.0, estimate=estimate) for estimate in estimates]

    assert "budget=100" in more_budget(10.0, stages(1e-1, 1e-2))
    assert "budget=" not in more_budget(10.0, stages(1e-2, 1e-2))
    assert "budget=20" in more_budget(2.0, stages(math.inf, 2.0, 2.0))
    for given in (0.01, 0.1):
        message = pb.solve(pb.problems.l_shape(), budget=given).diagnostics.message
        assert "The budget limits the accuracy" in message
        assert f"budget={given:g}." not in message


def test_a_device_is_used_or_it_is_said_that_it_is_not():
    pytest.importorskip("torch")
    heat = pb.problems.heat_robin()
    with pytest.raises(InputError, match="'device' parameter of solve is 'cpu', and time='lines' runs on NumPy"):
        pb.solve(heat, time="lines", device="cpu")
    with pytest.raises(InputError, match="'device' parameter must be a device that torch has here"):
        pb.solve(evolving.lotka_volterra(), device="nonsense")
    solution = pb.solve(evolving.lotka_volterra(), device="cpu", tol=1e-3)
    assert solution.diagnostics.method == "Lines"
    assert "the device 'cpu' was not used" in solution.diagnostics.message


def test_a_fit_that_stagnates_says_so():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    none = pb.Problem(u.diff(x, 2) + 5 * sp.exp(u), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    method, points = pb.PIELM(nodes=40, activation="sin"), pb.Points.sample(none, 80)
    fitted = method.fit(none, points)
    solved = pb.solve(none, method=method, points=points)
    for solution in (fitted, solved):
        assert solution.status == "stalled"
        assert "The Gauss–Newton iteration" in solution.diagnostics.message
        assert "converged" not in solution.diagnostics.message


def test_why_no_start_will_do_is_told_in_the_words_of_the_problem():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    problem = pb.Problem(u.diff(x, 2) - sp.log(u - 5), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
    reason = re.escape("u_xx - log(u - 5) is not finite at")
    with pytest.raises(PiblsError, match=reason) as by_cells_error:
        pb.solve(problem)
    with pytest.raises(PiblsError, match=reason) as wide:
        solve_wide(problem, 1e-6, 1.0, 0, lambda _: None)
    for error in (by_cells_error, wide):
        assert "_u" not in str(error.value)


def test_signs_of_the_unknown_are_solved_with_the_slope_they_have_almost_everywhere():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    exact = 1 + x * (x - 1) / 2
    for step in (sp.sign(u), sp.Heaviside(u)):
        problem = pb.Problem(u.diff(x, 2) - step, pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 1)], exact={u: exact})
        assert not problem.is_linear
        assert pb.solve(problem).true_error() < 1e-10


def test_a_square_has_a_mean():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    line, exact = pb.Interval((x, 0, 1)), 1 + sp.sin(sp.pi * x)
    size = float(sp.integrate(exact**2, (x, 0, 1)))
    equation = sp.Eq(-u.diff(x, 2) + u**3, -exact.diff(x, 2) + exact**3)
    problem = pb.Problem(equation, line, [pb.Dirichlet(u, 1, on=line.left), pb.Mean(u**2, size)], exact={u: exact})
    by_network = solve_wide(problem, 1e-6, 10.0, 0, lambda _: None, start=exact)
    by_hand = pb.solve(
        problem, method=pb.PIELM(nodes=60, activation="sin", scale=4.0), points=pb.Points.sample(problem, 200)
    )
    for solution in (by_network, by_hand, pb.solve(problem, start=exact)):
        assert solution.status == "converged"
        X = line.sample(200)
        assert abs(np.mean(solution(X) ** 2) - size) < 0.05
        assert max(r.rms for name, r in solution.diagnostics.residuals.items() if "Mean" in name) < 1e-6


def test_a_solve_ends_where_cells_cannot_be_split():
    r = pb.coordinates("r")
    v = pb.field("v", r)
    problem = pb.Problem(sp.Eq(v.diff(r, 2) + v.diff(r) / r, 1), pb.Interval((r, 0, 1)), [pb.Periodic(v, r)])
    solution = pb.solve(problem)
    assert solution.status != "converged"
    assert len(solution.diagnostics.stages) < 100


def test_symbols_of_one_name_are_told_apart():
    r = sp.Symbol("r")
    w = pb.field("w", r)
    with pytest.raises(PiblsError, match=r"same names that are different symbols.*coordinates\('r'\)"):
        pb.Problem(sp.Eq(w.diff(r), 1), pb.Interval((pb.coordinates("r"), 0, 1)), [])


def test_the_condition_that_contradicts_is_named():
    r = pb.coordinates("r")
    w = pb.field("w", r)
    problem = pb.Problem(sp.Eq(w.diff(r, 2) + w.diff(r) / r, 1), pb.Interval((r, 0, 1)), [pb.Dirichlet(w, 0)])
    solution = pb.solve(problem)  # a logarithm in ever smaller cells
    assert (solution.status, solution.error_estimate) == ("stalled", 1.0)
    assert "may contradict each other" in solution.diagnostics.message
    line = pb.Interval((r, 0, 1))
    conditions = [pb.Dirichlet(w, 0), pb.Neumann(w, 0, on=line.left)]
    message = pb.solve(pb.Problem(sp.Eq(w.diff(r, 2), 1), line, conditions)).diagnostics.message
    assert "contradict each other: Neumann(dn(w) = 0 on left) and what the other conditions determine" in message
    assert "near r=0 one says 0 and the other 0.5." in message


def test_only_what_is_public_is_listed():
    names = [name for name in dir(pb) if not name.startswith("__")]
    assert names == sorted(pb.__all__)


@pytest.mark.parametrize("tol", [0.1, 0.03, 0.01])
def test_a_contradiction_is_told_where_little_is_asked(tol):
    # Conditions are met to a percent by a straight line, whatever the equation says.
    r = pb.coordinates("r")
    w, line = pb.field("w", r), pb.Interval((r, 0, 1))
    ends = [pb.Dirichlet(w, 0, on=line.left), pb.Dirichlet(w, 2, on=line.right)]
    solution = pb.solve(pb.Problem(sp.Eq(w.diff(r) - w / 10, sp.cos(r)), line, ends), tol=tol)
    assert (solution.status, solution.error_estimate) == ("ill-posed", 1.0)
    other = (np.sin(1) - np.cos(1) / 10 + np.exp(0.1) / 10) / 1.01  # at the right end, by variation of constants
    assert f"near r=1 one says 2 and the other {other:.6g}." in solution.diagnostics.message


def test_what_a_finer_tree_fulfils_is_no_contradiction():
    # Around the clamped side of a block stresses are infinite: coarse cells do not hold it, and no single network does.
    x, y, z = pb.coordinates("x y z")
    a, b, c = (pb.field(name, x, y, z) for name in "abc")
    block = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    rubber = pb.stress([a, b, c], young=1, poisson=0.3)
    conditions = [pb.Dirichlet(of, 0, on=block.bottom) for of in (a, b, c)]
    conditions += pb.Traction(rubber, 0, on=block.left | block.right | block.front | block.back | block.top)
    equations = [sp.Eq(pb.div(row), f) for row, f in zip(rubber.tolist(), (0, 0, 1), strict=True)]
    solution = pb.solve(pb.Problem(equations, block, conditions), tol=1e-3, budget=3)
    assert solution.status == "stalled"
    assert solution.error_estimate < 0.1


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize(("slope", "status"), [("1.01", "ill-posed"), ("1", "converged")])
def test_a_condition_too_many_is_held_against_what_the_others_determine(tol, slope, status):
    r = pb.coordinates("r")
    w, line = pb.field("w", r), pb.Interval((r, 0, 1))
    conditions = [pb.Dirichlet(w, r), pb.Dirichlet(w.diff(r), sp.Rational(slope), on=line.left)]
    solution = pb.solve(pb.Problem(sp.Eq(w.diff(r, 2), 0), line, conditions, exact=r), tol=tol)
    assert solution.status == status
    assert ("near r=0 one says 1.01 and the other 1." in solution.diagnostics.message) == (slope == "1.01")
    assert slope == "1.01" or solution.true_error() < tol


@pytest.mark.parametrize("inertia", [0, 1])
def test_a_box_that_leaks_is_told_at_once(inertia):
    x, y = pb.coordinates("x y")
    u, v, p = (pb.field(name, x, y) for name in "uvp")
    box = pb.Rectangle((x, 0, 1), (y, 0, 1))
    equations = [
        sp.Eq(-pb.laplacian(of) + inertia * (u * of.diff(x) + v * of.diff(y)) + p.diff(axis), 0)
        for of, axis in ((u, x), (v, y))
    ]
    sides = box.right | box.top | box.bottom
    conditions = [pb.Dirichlet(u, y * (1 - y), on=box.left), pb.Dirichlet(u, 0, on=sides), pb.Dirichlet(v, 0)]
    problem = pb.Problem([*equations, sp.Eq(u.diff(x) + v.diff(y), 0)], box, [*conditions, pb.Mean(p, 0)])
    solution = pb.solve(problem, tol=1e-3, budget=0.5)
    assert solution.status == "ill-posed"
    assert solution.error_estimate >= 1.0
    assert (
        "the source of equation 3 adds up to 0, and by the conditions -0.166667 flows out"
        in solution.diagnostics.message
    )
