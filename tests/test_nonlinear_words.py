"""Nonlinear problems that determine no solution are told so, with a number; those like them are solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import first_word, imbalance, solve_cells_nonlinear, start_of

x, y, t = pb.coordinates("x y t")
u, w, c, h = pb.field("u", x, y), pb.field("w", x), pb.field("c", t), pb.field("h", x, t)
v = pb.field("v", x, y)
LINE, SQUARE, DISK = pb.Interval((x, 0, 1)), pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Disk((x, y), (0, 0), 1)
ROAD = LINE * pb.TimeInterval(t, 0, 1)
WAVE = sp.sin(sp.pi * x)
START = pb.Initial(h, WAVE)


@pytest.mark.parametrize(
    ("equation", "domain", "conditions", "words"),
    [
        # Nothing takes away what is made.
        (sp.Eq(-pb.laplacian(u) + sp.exp(u), 0), SQUARE, [pb.Neumann(u, 0)], "exp(u) is positive for every u"),
        (sp.Eq(-pb.laplacian(u), 1 + u**2), DISK, [pb.Neumann(u, 0)], "its integral must be 3.14159"),
        (
            sp.Eq(-pb.div([(1 + u**2) * u.diff(x), u.diff(y)]), 1),
            SQUARE,
            [pb.Neumann(u, 0)],
            "adds up to 1, and by the conditions 0",
        ),
        # What one species loses the other gains, and it is fed.
        (
            [sp.Eq(pb.laplacian(u), u * v), sp.Eq(2 * pb.laplacian(v), -2 * u * v - 1)],
            SQUARE,
            [pb.Neumann(u, 0), pb.Neumann(v, 0)],
            "in (2) equation 1 + equation 2, the source adds up to -1",
        ),
        # A level that is free, though the field occurs itself.
        (
            sp.Eq(-pb.div([(1 + u**2) * u.diff(x), u.diff(y)]), sp.cos(sp.pi * x)),
            SQUARE,
            [pb.Neumann(u, 0)],
            "is not unique",
        ),
        # A side without a condition, where the coefficient may vanish.
        (
            sp.Eq(pb.laplacian(u**2), 0),
            SQUARE,
            [pb.Dirichlet(u, 1 + x, on=SQUARE.left | SQUARE.right | SQUARE.top)],
            "Bottom has no condition",
        ),
    ],
)
def test_after_a_glance(equation: Any, domain: Any, conditions: Any, words: str) -> None:
    problem = pb.Problem(equation, domain, conditions)
    assert not first_word(problem)
    solution = pb.solve(problem, tol=1e-4, progress=False)
    assert (solution.status, words in solution.diagnostics.message) == ("ill-posed", True)
    # The work of a solve of a problem with a solution, not all of the budget.
    assert solution.diagnostics.operations < 1e10


@pytest.mark.parametrize(
    ("equation", "conditions", "words"),
    [
        (sp.Eq(h.diff(t), (h**2).diff(x, 2)), [pb.Initial(h, 1 + x), pb.Dirichlet(h, 1, on=ROAD.left)], "right has no"),
        (sp.Eq(h.diff(t) + (1 + h**2) * h.diff(x), 0), [START], "left has no condition, and h enters there"),
        (
            sp.Eq(h.diff(t), h.diff(x)),
            [START, pb.Dirichlet(h, 0, on=ROAD.left)],
            "right has no condition, and h enters",
        ),
        (sp.Eq(h.diff(t) + h * h.diff(x), 0), [START, pb.Dirichlet(h, 0)], "t = 0.318, x = 1 characteristics meet"),
        (sp.Eq(h.diff(t), -h.diff(x, 2) - h**3), [START, pb.Dirichlet(h, 0)], "as exp(4e+04 t)"),
    ],
)
def test_of_evolutions_before_anything_is_solved(equation: Any, conditions: Any, words: str) -> None:
    assert words in first_word(pb.Problem(equation, ROAD, conditions))


@pytest.mark.parametrize(
    ("equation", "conditions"),
    [
        # Waves that spread have characteristics that never meet, and need nothing where they leave.
        (sp.Eq(h.diff(t) + h * h.diff(x), 0), [pb.Initial(h, x), pb.Dirichlet(h, 0, on=ROAD.left)]),
        (sp.Eq(h.diff(t) + h.diff(x), -(h**3)), [START, pb.Dirichlet(h, 0, on=ROAD.left)]),
        # Characteristics would meet, but leave before.
        (sp.Eq(h.diff(t) + (2 + h / 4) * h.diff(x), 0), [START, pb.Dirichlet(h, 0, on=ROAD.left)]),
        # Short waves are damped, though long ones grow.
        (sp.Eq(h.diff(t), -h.diff(x, 2) - h.diff(x, 4)), [pb.Initial(h, WAVE), pb.Periodic(h, x)]),
        # Gas with an edge, at which slopes jump.
        (sp.Eq(h.diff(t), (h**2).diff(x, 2)), [pb.Initial(h, sp.Max(1 - 4 * x**2, 0)), pb.Dirichlet(h, 0)]),
        # A slope that is infinite at an end.
        (sp.Eq(h.diff(t), pb.div([(1 + h.diff(x) ** 2) * h.diff(x)])), [pb.Initial(h, sp.sqrt(x)), pb.Dirichlet(h, x)]),
        # Characteristics meet when time ends.
        (
            sp.Eq(h.diff(t) + h * h.diff(x), 0),
            [
                pb.Initial(h, sp.Abs(x - sp.Rational(1, 2))),
                pb.Dirichlet(h, sp.Rational(1, 2) / (1 - t / 2), on=ROAD.left),
            ],
        ),
        # Where there is no gas, none spreads, and nothing need be given.
        (sp.Eq(h.diff(t), (h**2).diff(x, 2)), [pb.Initial(h, 1 - x), pb.Dirichlet(h, 1, on=ROAD.left)]),
    ],
)
def test_nothing_is_said_of_evolutions_like_them(equation: Any, conditions: Any) -> None:
    assert not first_word(pb.Problem(equation, ROAD, conditions))


class TestResting:
    @pytest.mark.parametrize("power", [sp.Rational(1, 2), sp.Rational(2, 3)])
    @pytest.mark.parametrize("rest", [0, 2])
    def test_a_solution_may_leave_at_will(self, power: sp.Expr, rest: int) -> None:
        start = [pb.Initial(c, rest)]
        equation = sp.Eq(c.diff(t), sp.Abs(c - rest) ** power)
        assert "is not unique: c = " in first_word(pb.Problem(equation, pb.TimeInterval(t, 0, 1), start))

    @pytest.mark.parametrize(
        "rate",
        [
            c - c**2,  # Lipschitz
            -sp.sign(c) * sp.sqrt(sp.Abs(c)),  # it comes back
            1 + sp.sqrt(sp.Abs(c)),  # it is no state of rest
        ],
    )
    def test_others_may_not(self, rate: sp.Expr) -> None:
        problem = pb.Problem(sp.Eq(c.diff(t), rate), pb.TimeInterval(t, 0, 1), [pb.Initial(c, 0)])
        assert not first_word(problem)

    def test_from_the_other_end_it_is_the_other_way_round(self) -> None:
        for sign, side in ((-1, LINE.right), (1, LINE.left)):
            equation = sp.Eq(w.diff(x), 2 * sign * sp.sqrt(w))
            assert "leaves it at any point" in first_word(pb.Problem(equation, LINE, [pb.Dirichlet(w, 0, on=side)]))
            assert not first_word(pb.Problem(equation, LINE, [pb.Dirichlet(w, 1, on=side)]))


@pytest.mark.parametrize("level", [1, 5])
def test_a_closed_box_with_a_reaction_is_solved(level: int) -> None:
    exact = sp.log(level + sp.cos(sp.pi * x) / 2)
    source = (-w.diff(x, 2) + sp.exp(w)).subs(w, exact).doit()
    problem = pb.Problem(sp.Eq(-w.diff(x, 2) + sp.exp(w), source), LINE, [pb.Neumann(w, 0)], exact=exact)
    solution = pb.solve(problem, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_what_is_fed_to_a_reaction_may_leave_it() -> None:
    equations = [sp.Eq(pb.laplacian(u), u * v), sp.Eq(2 * pb.laplacian(v), -2 * u * v - 1)]
    for leaves, balanced in ((-sp.Rational(1, 8), True), (-sp.Rational(1, 7), False)):
        problem = pb.Problem(equations, SQUARE, [pb.Neumann(u, 0), pb.Neumann(v, leaves)])
        assert (imbalance(problem, 1e-4, lambda own=problem: start_of(own, 1e-3)) == "") is balanced


def test_where_nothing_is_given_anything_may_flow() -> None:
    sides = SQUARE.left | SQUARE.right | SQUARE.top
    for equation, domain, given in (
        (sp.Eq(w.diff(x), 1 + w**2), LINE, [pb.Dirichlet(w, 0, on=LINE.left)]),
        (
            sp.Eq(-pb.laplacian(u), 1 + u**2 / 9),
            SQUARE,
            [pb.Neumann(u, 0, on=sides), pb.Dirichlet(u, 0, on=SQUARE.bottom)],
        ),
    ):
        solution = pb.solve(pb.Problem(equation, domain, given), tol=1e-4, progress=False)
        assert solution.status == "converged"
        if domain is LINE:
            assert solution([[0.5]])[0] == pytest.approx(float(sp.tan(0.5)), rel=1e-4)


def test_another_solution_of_a_first_order_equation_is_said() -> None:
    problem = pb.Problem(sp.Eq(w.diff(x) ** 2, 1), LINE, [pb.Dirichlet(w, 0, on=LINE.left)])
    assert "more than one solution" in pb.solve(problem, tol=1e-4, progress=False).diagnostics.message


def test_a_side_of_length_one_is_no_end_of_a_line() -> None:
    y = pb.coordinates("y")
    u, square = pb.field("u", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    sides = square.left | square.right | square.bottom
    conditions = [pb.Dirichlet(u, 0, on=square.top), pb.Neumann(u, 0, on=sides)]
    solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u) + u**3, 1), square, conditions), tol=1e-4, progress=False)
    assert solution.status == "converged"


def test_a_term_that_is_huge_elsewhere_leaves_nothing_open():
    """Beside e¹⁵ the other terms of a tangent are rounding, and still determine the solution where e^u is small."""
    x = pb.coordinates("x")
    u, line = pb.field("u", x), pb.Interval((x, sp.Rational(39, 20), sp.Rational(81, 25)))
    exact = (sp.Rational(4572, 1075) - sp.Rational(542635658914727, 625 * 10**12) * x) ** 3 - sp.Rational(89, 50)
    source = sp.exp(exact) - exact.diff(x, 2)
    problem = pb.Problem(sp.Eq(sp.exp(u) - u.diff(x, 2), source), line, [pb.Dirichlet(u, exact)])
    assert pb.solve(problem, tol=1e-3, seed=2).status != "ill-posed"


def test_an_equation_that_is_not_linear_in_its_slope_starts_from_one() -> None:
    c = pb.field("c", t)
    grown = pb.Problem(
        sp.Eq(c.diff(t) ** 3, 27 * c**2), pb.TimeInterval(t, 0, 1), [pb.Initial(c, 1)], exact=(1 + t) ** 3
    )
    solution = pb.solve(grown, tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4


def test_slopes_at_the_left_lead_the_way_along_a_line() -> None:
    """With value and outward slope at one end, a nonlinear equation is followed as if the line were time."""
    line = pb.Interval((x, 0, 4))
    start = [pb.Dirichlet(w, 1, on=line.left), pb.Neumann(w, 1, on=line.left)]
    falling = pb.Problem(sp.Eq(w.diff(x, 2), 2 * w**3), line, start, exact=1 / (1 + x))
    assert pb.solve(falling, tol=1e-4).true_error() < 1e-4
    rising = pb.Problem(falling.equations, line, [start[0], pb.Neumann(w, -1, on=line.left)])
    assert "near x = 1" in pb.solve(rising, tol=1e-4).diagnostics.message


def test_a_function_of_a_field_of_which_only_slopes_occur_has_no_level() -> None:
    free = pb.Problem(sp.Eq(-pb.div(u * pb.grad(u)), x - sp.Rational(1, 2)), SQUARE, [pb.Neumann(u, 0)])
    assert "u occurs only in slopes of the integral of u by u" in first_word(free)
    by_flux = pb.Condition(sp.Eq(u * pb.normal_derivative(u), y))
    assert "any constant can be added" in first_word(pb.Problem(free.equations, SQUARE, [by_flux]))
    for held in (pb.Neumann(u, y), pb.Robin(u, 1, 1, 0), pb.Convection(u, h=1, ambient=0)):
        assert not first_word(pb.Problem(free.equations, SQUARE, [held]))
    assert not first_word(pb.Problem(free.equations, SQUARE, [pb.Neumann(u, 0), pb.Mean(u, 1)]))
    # A change that depends on the direction, or on the place, is no function of the field.
    mixed = sp.Eq(pb.div([(1 + u**2) * u.diff(x), u.diff(y)]), 0)
    assert not first_word(pb.Problem(mixed, SQUARE, [pb.Neumann(u, 0)]))


@pytest.mark.parametrize("gain", [0, sp.Rational(1, 10)])
def test_what_flows_out_of_a_face_that_repeats_comes_in_at_the_other(gain: Any) -> None:
    flux = (1 + w**2) * w.diff(x)
    ring = pb.Problem(sp.Eq(-flux.diff(x), sp.sin(2 * sp.pi * x) + gain), LINE, [pb.Periodic(w, x)])
    told = imbalance(ring, 1e-6, lambda: start_of(ring, 1e-3))
    assert ("the source adds up to 0.1, and by the conditions 0 flows out" in told) == bool(gain)
    square = pb.Problem(sp.Eq(-w.diff(x, 2) + w**2, gain - 1), LINE, [pb.Periodic(w, x)])
    assert "w**2 is not negative for every w" in imbalance(square, 1e-6, lambda: start_of(square, 1e-3))
    # A flux that depends on the place need not repeat.
    tilted = pb.Problem(sp.Eq(-((1 + x * w**2) * w.diff(x)).diff(x), 1), LINE, [pb.Periodic(w, x)])
    assert not imbalance(tilted, 1e-6, lambda: start_of(tilted, 1e-3))


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (w.diff(x) ** 2 + w**2 + 1, "is positive for every w: it cannot be zero"),
        (-(w.diff(x) ** 2) - sp.exp(w + x), "is negative for every w: it cannot be zero"),
        (w.diff(x) ** 2 + w**2, ""),
        (w.diff(x) ** 2 + w**2 - sp.exp(x), ""),
    ],
)
def test_squares_make_no_debts(left: sp.Expr, words: str) -> None:
    problem = pb.Problem(left, LINE, [pb.Dirichlet(w, 0, on=LINE.left)])
    told = imbalance(problem, 1e-6, lambda: start_of(problem, 1e-3))
    assert words in told if words else not told


def test_rounding_is_no_flux() -> None:
    closed = pb.Problem(sp.Eq(pb.laplacian(u**3), 0), DISK, [pb.Neumann(u, 0)])
    assert not imbalance(closed, 1e-6, lambda: start_of(closed, 1e-3))


class TestKinks:
    def test_a_road_up_and_down_is_none(self) -> None:
        """Kinks may be anywhere: what cells find is one of many."""
        road = pb.Problem(sp.Eq(w.diff(x) ** 2, 1), LINE, [pb.Dirichlet(w, 0)])
        assert pb.solve(road, tol=1e-4, progress=False).status == "ill-posed"

    @pytest.mark.parametrize("told", ["early", "diagnose"])
    def test_what_no_coarse_solution_shows_is_asked_of_the_last(self, told: str) -> None:
        """Cells that are too coarse for a kink are no solution: then both diagnoses are those of the last."""
        road = pb.Problem(sp.Eq(w.diff(x) ** 2, 1), LINE, [pb.Dirichlet(w, 0)])
        asked: Any = {own: lambda *_, own=own: ("asked" * (own == told), "") for own in ("early", "diagnose")}
        solution = solve_cells_nonlinear(road, 1e-2, 0.01, 1, lambda *_: None, **asked)
        assert (solution.status, solution.diagnostics.message) == ("ill-posed", "asked")

    def test_a_slope_that_jumps_between_roots_is_named(self) -> None:
        valley = pb.Interval((x, -1, 1))
        problem = pb.Problem(sp.Eq(w.diff(x) ** 2, 4 * x**2), valley, [pb.Dirichlet(w, 1)])
        solution = pb.solve(problem, tol=1e-4, progress=False)
        assert solution.status == "ill-posed"
        assert "w_x jumps from one solution of w_x**2 = 4*x**2 to another" in solution.diagnostics.message

    def test_a_slope_that_jumps_with_its_data_is_none(self) -> None:
        steep = pb.Problem(
            sp.Eq(w.diff(x) ** 2, sp.Piecewise((1, x < sp.Rational(1, 2)), (4, True))),
            LINE,
            [pb.Dirichlet(w, 0, on=LINE.left)],
        )
        solution = pb.solve(steep, tol=1e-4, progress=False)
        assert solution.status == "converged"
        assert np.abs(solution(1.0)) == pytest.approx(1.5, abs=1e-6)


@pytest.mark.parametrize(
    ("pressure", "words"), [(sp.Rational(9, 5), ""), (3, "between -6.28319 and 6.28319 flows out")]
)
def test_a_film_bears_no_more_than_its_edge_holds(pressure: sp.Expr, words: str) -> None:
    """However steep it is, the edge pulls with a force of one per length."""
    slopes = pb.grad(u)
    length = sp.sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2)
    film = pb.Problem(
        sp.Eq(pb.div([own / length for own in slopes]), pressure), DISK, [pb.Dirichlet(u, x, on=DISK.boundary)]
    )
    told = imbalance(film, 1e-4, lambda: start_of(film, 1e-3))
    assert words in told if words else not told


def test_what_grows_with_slopes_has_no_bound() -> None:
    for flux in (u.diff(x), u.diff(x) / (1 + u.diff(x) ** 2) ** sp.Rational(1, 4)):
        problem = pb.Problem(sp.Eq(pb.div([flux + u.diff(x) ** 3, u.diff(y)]), 9), SQUARE, [pb.Dirichlet(u, 0)])
        assert not imbalance(problem, 1e-4, lambda own=problem: start_of(own, 1e-3))


@pytest.mark.parametrize(("more", "words"), [(0, ""), (sp.Rational(1, 1000), "by the conditions 1.001 flows out")])
def test_a_flux_may_be_given_as_it_is_written(more: sp.Expr, words: str) -> None:
    """A condition that is not linear determines a flux, too."""
    k = 1 + u**2
    out = pb.Condition(sp.Eq(k * pb.normal_derivative(u), -(1 + more) / 4), on=SQUARE.boundary)
    problem = pb.Problem(sp.Eq(-pb.div([k * own for own in pb.grad(u)]), 1), SQUARE, [out, pb.Mean(u, 0)])
    told = imbalance(problem, 1e-6, lambda: start_of(problem, 1e-3))
    assert words in told if words else not told


def test_a_flux_of_slopes_that_is_written_out_is_known() -> None:
    wire = pb.Problem(sp.Eq(-(w.diff(x) * (1 + w.diff(x) ** 2)).diff(x), 1), LINE, [pb.Periodic(w, x), pb.Mean(w, 0)])
    assert "the source adds up to 1, and by the conditions 0 flows out" in imbalance(
        wire, 1e-6, lambda: start_of(wire, 1e-3)
    )


def test_another_solution_in_time_is_said() -> None:
    tank = pb.Problem(sp.Eq(c.diff(t) ** 2, 4 * c), pb.TimeInterval(t, 0, 1), [pb.Initial(c, 1)])
    assert "more than one solution" in pb.solve(tank, progress=False).diagnostics.message


def test_a_branch_that_ends_costs_no_more_than_a_few_trees() -> None:
    """The plate would be pulled in at 39 % of its voltage; on one cell it seems to pass to the other side."""
    plate = pb.Problem(sp.Eq(pb.laplacian(u), -2 / (1 - u) ** 2), DISK, [pb.Dirichlet(u, 0)])
    solution = pb.solve(plate, progress=False)
    assert (solution.status, "branch of solutions ends where 39 %" in solution.diagnostics.message) == (
        "ill-posed",
        True,
    )
    assert solution.diagnostics.operations < 2e10


def test_distances_to_a_disk_are_not_called_impossible() -> None:
    """The starts come to nothing, which tells little of an equation whose slopes have many roots."""
    ring = pb.Disk((x, y), (0, 0), 2) - DISK
    steep = pb.Problem(sp.Eq(u.diff(x) ** 2 + u.diff(y) ** 2, 1), ring, [pb.Dirichlet(u, 0, on=DISK.boundary)])
    assert pb.solve(steep, tol=1e-3, budget=2.0, progress=False).status != "ill-posed"
