"""The first word on a problem: conditions are counted before anything is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from benchmarks.sets.words_open import words_open
from scipy.optimize import brentq

import pibls as pb
from cli_helpers import call
from internals import first_word

x, y, z, t = pb.coordinates("x y z t")
u, v, p, w = pb.field("u", x, y), pb.field("v", x, y), pb.field("p", x, y), pb.field("w", x)
LINE, SQUARE, DISK = pb.Interval((x, 0, 1)), pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Disk((x, y), (0, 0), 1)
THREE = SQUARE.left | SQUARE.bottom | SQUARE.top
HOLED = SQUARE - pb.Disk((x, y), (0.5, 0.5), 0.1)
HEAT = sp.Eq(-pb.laplacian(u), 1)
h, TUBE = pb.field("h", x, t), LINE * pb.TimeInterval(t, 0, 1)
HEATED = sp.Eq(h.diff(t), h.diff(x, 2))
PIECES = [TUBE.initial.where(lambda X: X[:, 0] < 0.5), TUBE.initial.where(lambda X: X[:, 0] >= 0.5)]
TOLD = [name for name, case in words_open.items() if case.expected == "ill-posed" and case.told]
# Conditions too many cannot be told from those that agree before anything is solved.
COUNTED = [name for name in TOLD if "many" not in name]


@pytest.mark.parametrize("name", COUNTED)
def test_the_missing_condition_is_named(name: str) -> None:
    assert words_open[name].told in first_word(words_open[name].make())


@pytest.mark.parametrize("name", [name for name, case in words_open.items() if case.expected == "converged"])
def test_nothing_is_said_of_problems_that_only_look_ill_posed(name: str) -> None:
    assert not first_word(words_open[name].make())


@pytest.mark.parametrize(
    ("equations", "domain", "conditions", "words"),
    [
        (HEAT, SQUARE, [pb.Dirichlet(u, 0, on=THREE)], "right has no condition; -laplacian(u) = 1 needs one there"),
        (
            HEAT,
            HOLED,
            [pb.Dirichlet(u, 0, on=HOLED.left)],
            "right, bottom, top and a piece of the boundary (near x=",
        ),
        (
            HEAT,
            DISK,
            [pb.Dirichlet(u, 0, on=DISK.boundary.where(lambda X: X[:, 0] > 0))],
            "a piece of the boundary (near",
        ),
        # A field that others only follow has to have conditions of its own, whatever the others have.
        (
            [pb.laplacian(u), pb.laplacian(v) - u],
            SQUARE,
            [pb.Dirichlet(u, 0), pb.Neumann(u, 0), pb.Dirichlet(v, 0, on=THREE)],
            "right has no condition; -u + laplacian(v) = 0 needs one there",
        ),
        (
            pb.laplacian(u),
            SQUARE,
            [pb.Dirichlet(u, 0, on=THREE), pb.Neumann(u, 0, on=SQUARE.left)],
            "unstable: right has no condition, and left has two conditions;",
        ),
        ([w.diff(x, 2) + w], LINE, [pb.Mean(w, 1)], "w has one condition; w + w_xx = 0 needs two in all"),
        (w.diff(x, 3), LINE, [pb.Periodic(w, x)], "only derivatives of w occur"),
        (
            sp.Eq(h.diff(t), ((1 + h**2) * h.diff(x)).diff(x)),
            TUBE,
            [pb.Dirichlet(h, 0, on=TUBE.left), pb.Initial(h, 0)],
            "right has no condition; ",
        ),
    ],
)
def test_places_and_numbers_are_told(equations: Any, domain: Any, conditions: list[Any], words: str) -> None:
    assert words in first_word(pb.Problem(equations, domain, conditions))


@pytest.mark.parametrize(
    ("equations", "domain", "conditions"),
    [
        # A plate in two equations: one field has both conditions, the other none.
        ([pb.laplacian(u) - v, pb.laplacian(v)], SQUARE, [pb.Dirichlet(u, 0), pb.Neumann(u, 0)]),
        # Neither a coefficient that vanishes at the boundary nor one that is infinite there needs a condition.
        (x * w.diff(x, 2) + w.diff(x) - w, LINE, [pb.Dirichlet(w, 1, on=LINE.right)]),
        (w.diff(x, 2) + w.diff(x) / x - w, LINE, [pb.Dirichlet(w, 1, on=LINE.right)]),
        # Degenerate along a slanting direction, hyperbolic, parabolic in disguise.
        (u.diff(x, 2) + 6 * u.diff(x, y) + 9 * u.diff(y, 2) - u, SQUARE, [pb.Dirichlet(u, 0, on=THREE)]),
        (u.diff(x, 2) - u.diff(y, 2) - u, SQUARE, [pb.Dirichlet(u, 0, on=THREE)]),
        (u.diff(x) - u.diff(y, 2), SQUARE, [pb.Dirichlet(u, 0, on=THREE)]),
        # A condition that is not linear may stand for several.
        ([pb.laplacian(u), pb.laplacian(v)], SQUARE, [pb.Condition(u**2 + v**2, on=SQUARE.boundary)]),
        # A small term holds the level, as does a value in a point.
        (pb.laplacian(u) - u / 10**9, SQUARE, [pb.Neumann(u, 1)]),
        (pb.laplacian(u), SQUARE, [pb.Neumann(u, 0), pb.Dirichlet(u, 1, on=(0, 0))]),
        # Times may repeat each other, and the first one may be told in pieces.
        (HEATED, TUBE, [pb.Dirichlet(h, sp.sin(2 * sp.pi * t)), pb.Periodic(h, t)]),
        (HEATED, TUBE, [pb.Dirichlet(h, 0), *(pb.Condition(sp.Eq(h, 0), on=piece) for piece in PIECES)]),
        # Where diffusion ceases at an end, that needs nothing.
        (sp.Eq(h.diff(t), x * h.diff(x, 2)), TUBE, [pb.Dirichlet(h, 0, on=TUBE.right), pb.Initial(h, 1 - x)]),
        # Measurements may stand for a side.
        (pb.laplacian(u), SQUARE, [pb.Dirichlet(u, 0, on=THREE), pb.Observation(u, [[1, 0.5]], [1.0])]),
    ],
)
def test_nothing_is_said_where_counting_cannot_know(equations: Any, domain: Any, conditions: list[Any]) -> None:
    assert not first_word(pb.Problem(equations, domain, conditions))


def test_a_sheet_that_can_turn_is_told_with_its_motion() -> None:
    stress = pb.stress([u, v], young=1, poisson=sp.Rational(1, 3))
    held = [pb.Dirichlet(of, 0, on=(0.5, 0.5)) for of in (u, v)]
    problem = pb.Problem([pb.div(row) for row in stress.tolist()], SQUARE, [*pb.Traction(stress, 1), *held])
    assert "u = -2*y + 1 and v = 2*x - 1 can be added" in first_word(problem)
    fixed = pb.Problem(problem.equations, SQUARE, [*problem.conditions, pb.Dirichlet(v, 0, on=(1, 0.5))])
    assert not first_word(fixed)


def test_solve_check_and_show_say_the_same(tmp_path: Any) -> None:
    problem = pb.Problem(HEAT, SQUARE, [pb.Dirichlet(u, 0, on=THREE)])
    words, path = first_word(problem), tmp_path / "three.toml"
    path.write_text(problem.to_text())
    solution = pb.solve(problem)
    assert (solution.status, solution.diagnostics.message) == ("ill-posed", words)
    assert solution.error_estimate == float("inf")
    for command, code in (("check", 4), ("show", 0)):
        assert words in " ".join(call(command, str(path), code=code).stdout.split())


def test_a_beam_is_diagnosed_with_less_work_than_its_sibling_is_solved_with() -> None:
    clamped = [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x), 0, on=LINE.left)]
    equation = sp.Eq(w.diff(x, 4), sp.exp(x))
    bad, good = (
        pb.solve(pb.Problem(equation, LINE, [*clamped, *more]))
        for more in ((), (pb.Dirichlet(w.diff(x), 0, on=LINE.right),))
    )
    assert (bad.status, good.status) == ("ill-posed", "converged")
    assert bad.diagnostics.operations <= good.diagnostics.operations


def test_a_nonlinear_problem_without_a_side_is_told_with_little_work() -> None:
    problem = words_open["nonlinear_conductor_without_a_side"].make()
    solution = pb.solve(problem)
    assert solution.status == "ill-posed"
    assert "top has no condition" in solution.diagnostics.message
    assert solution.diagnostics.operations < 1e10


@pytest.mark.parametrize("size", [1e-250, 1e-100, 1e200, 1e300])
@pytest.mark.parametrize("time", [None, "lines"])
def test_estimates_are_right_whatever_the_unit(size: float, time: str | None) -> None:
    h, factor = pb.field("h", x, t), sp.Float(size)
    exact = factor * sp.exp(-(sp.pi**2) * t) * sp.sin(sp.pi * x)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, factor * sp.sin(sp.pi * x))]
    domain = LINE * pb.TimeInterval(t, 0, sp.Rational(1, 10))
    problem = pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), domain, conditions, exact)
    solution = pb.solve(problem, time=time)
    assert solution.status == "converged"
    assert solution.error_estimate / 10 < solution.true_error() < 3 * solution.error_estimate
    assert max(row.rms for row in solution.diagnostics.residuals.values()) < 1e-6 * size


@pytest.mark.filterwarnings("ignore")
def test_an_estimate_that_is_no_number_is_not_within_the_tolerance() -> None:
    huge = pb.Problem(sp.Eq(w.diff(x, 2) / 10**200, sp.sin(w / 10**200)), LINE, [pb.Dirichlet(w, sp.Float(1e200))])
    assert pb.solve(huge, budget=0.5).status != "converged"


@pytest.mark.parametrize(
    ("equation", "domain", "conditions", "number", "tol"),
    [
        (-pb.laplacian(u) + u**3 - 1, SQUARE, [pb.Dirichlet(u, 0), pb.Neumann(u, 0, on=SQUARE.left)], "-0.337", 1e-4),
        (w.diff(x, 2) - w**3 - 1, LINE, [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x), 0, on=LINE.left)], "-0.499", 1e-4),
        (w.diff(x, 2) - w**3, LINE, [pb.Dirichlet(w, 1 + x), pb.Neumann(w, 0, on=LINE.left)], "-0.16", 1e-2),
    ],
)
def test_one_condition_too_many_of_a_nonlinear_problem_is_told_with_a_number(
    equation: Any, domain: Any, conditions: list[Any], number: str, tol: float
) -> None:
    solution = pb.solve(pb.Problem(equation, domain, conditions), tol=tol, budget=3)
    assert solution.status == "ill-posed"
    assert f"one says 0 and the other {number}" in solution.diagnostics.message


@pytest.mark.parametrize("length", [1, 2])
def test_a_solution_that_ends_on_the_way_is_told_with_the_place(length: int) -> None:
    line = pb.Interval((x, 0, length))
    problem = pb.Problem(sp.Eq(w.diff(x), 1 + w**2), line, [pb.Dirichlet(w, 0, on=line.left)])
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == ("ill-posed" if length > np.pi / 2 else "converged")
    assert ("near x = 1.571" in solution.diagnostics.message) == (length > np.pi / 2)


def test_a_condition_that_chooses_among_solutions_contradicts_none() -> None:
    """Bratu's equation has two solutions; a slope is that of the upper one."""
    rate = brentq(lambda q: q - np.sqrt(2) * np.cosh(q / 4), 5, 20)
    slope = pb.Dirichlet(w.diff(x), rate * np.tanh(rate / 4), on=LINE.left)
    solution = pb.solve(pb.Problem(w.diff(x, 2) + sp.exp(w), LINE, [pb.Dirichlet(w, 0), slope]))
    assert solution.status == "converged"
    assert solution([0.5])[0] == pytest.approx(2 * np.log(np.cosh(rate / 4)), rel=1e-6)


def test_a_run_backwards_is_told_with_the_growth_of_waves() -> None:
    h = pb.field("h", x, t)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x))]
    backwards = pb.Problem(sp.Eq(h.diff(t), -h.diff(x, 2)), LINE * pb.TimeInterval(t, 0, 1), conditions)
    # On half sides of 1/2, waves of 100 and 1000 radians grow by their squares, 200² and 2000².
    assert "exp(4e+04 t), with 1000 as exp(4e+06 t)" in pb.solve(backwards, tol=1e-3).diagnostics.message


@pytest.mark.parametrize("rate", [0, 40], ids=["kept", "decaying"])
@pytest.mark.parametrize("speed", [1, 1 + x], ids=["even", "varying"])
def test_a_condition_where_a_field_leaves_contradicts_what_is_carried_there(rate: int, speed: Any) -> None:
    equation = sp.Eq(h.diff(t) + speed * h.diff(x) + rate * h, 0)
    start, left = pb.Initial(h, sp.sin(sp.pi * x) ** 2), pb.Dirichlet(h, 0, on=LINE.left)
    told = first_word(pb.Problem(equation, TUBE, [start, left, pb.Dirichlet(h, 1, on=LINE.right)]))
    assert "is carried out at x = 1, where a condition says 1" in told
    assert not first_word(pb.Problem(equation, TUBE, [start, left]))


@pytest.mark.parametrize("rate", [0, 40], ids=["kept", "decaying"])
def test_a_condition_that_says_what_is_carried_there_is_none_too_many(rate: int) -> None:
    exact = sp.sin(3 * (x - t)) * sp.exp(-rate * t)
    equation = sp.Eq(h.diff(t) + h.diff(x) + rate * h, 0)
    assert not first_word(pb.Problem(equation, TUBE, [pb.Initial(h, sp.sin(3 * x)), pb.Dirichlet(h, exact)]))


def test_an_oscillator_that_is_driven_at_its_note_is_told() -> None:
    """−w″ + x² w = λ w has a solution for every odd λ, and cells resolve it on the last tree only."""
    note, line = w.diff(x, 2) - (x**2 - 5) * w, pb.Interval((x, -6, 6))
    at, beside = (
        pb.solve(pb.Problem(own + sp.exp(-(x**2)), line, [pb.Dirichlet(w, 0)])) for own in (note, note - w / 1000)
    )
    assert (at.status, beside.status) == ("ill-posed", "converged")
    assert "leaves every equation and condition unchanged" in at.diagnostics.message


def test_a_piece_that_nothing_holds_is_told_as_a_level() -> None:
    """A rod is cut in two, and the right half has no temperature given."""
    cut = [sp.Eq(side(w.diff(x)), 0) for side in (pb.inside, pb.outside)]
    conditions = [pb.Dirichlet(w, 1, on=LINE.left), pb.Neumann(w, 0, on=LINE.right)]
    pieces = pb.Interface(cut, on=pb.Interval((x, 0, 0.5)))
    found = pb.solve(pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, [*conditions, pieces]))
    assert found.status == "ill-posed"
    assert "a change of w, constant about x=" in found.diagnostics.message
    assert "Give w a value there, or a mean." in found.diagnostics.message


def test_a_field_without_a_start_is_asked_for_one_and_not_for_a_level() -> None:
    a, b = (pb.field(name, x, t) for name in "ab")
    waves = [sp.Eq(a.diff(t), -b.diff(x, 2)), sp.Eq(b.diff(t), a.diff(x, 2))]
    ring = [pb.Periodic(a, x), pb.Periodic(b, x), pb.Initial(a, sp.cos(2 * sp.pi * x))]
    assert "b has no initial value. Add one, such as Initial(b, ...)." in first_word(pb.Problem(waves, TUBE, ring))
    assert not first_word(pb.Problem(waves, TUBE, [*ring, pb.Initial(b, 0)]))


def test_a_free_beam_is_held_by_what_the_message_names() -> None:
    free = [pb.Condition(sp.Eq(w.diff(x, order), 0)) for order in (2, 3)]
    beam = pb.Problem(sp.Eq(w.diff(x, 4), x - sp.Rational(1, 2)), LINE, free)
    assert "Fix the level with Mean(w, 0) and Mean(w.diff(x), 0)" in first_word(beam)
    held = pb.Problem(beam.equations, LINE, [*free, pb.Mean(w, 0), pb.Mean(w.diff(x), 0)])
    assert not first_word(held)
    assert "the moment of the source adds up to 0.0833333" in pb.solve(held).diagnostics.message


def test_growth_by_thirteen_digits_is_no_ambiguity() -> None:
    c, u = pb.field("c", t), pb.field("u", x)
    span, line = pb.TimeInterval(t, 0, 30), pb.Interval((x, 0, 30))
    solution = pb.solve(pb.Problem(sp.Eq(c.diff(t), c), span, [pb.Initial(c, 1)], exact=sp.exp(t)), tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4
    along = pb.Problem(sp.Eq(u.diff(x), u), line, [pb.Dirichlet(u, 1, on=line.left)])
    assert pb.solve(along, tol=1e-4, budget=0.2).status != "ill-posed"
    # Where the rate is infinite, initial values do not determine a solution.
    fan = pb.Problem(sp.Eq(t * c.diff(t), c), pb.TimeInterval(t, 0, 3), [pb.Initial(c, 0)])
    assert pb.solve(fan).status == "ill-posed"
