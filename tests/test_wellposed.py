"""Whether problems are well posed, and what is found about them once."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import analysis_of, end_by_end, incompatibility, start_of, surplus_of
from pibls.evolution import find_evolution, transits

x, y, z, t = pb.coordinates("x y z t")
u, v = pb.field("u", x, y), pb.field("v", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
LEFT = pb.Rectangle((x, 0, sp.Rational(1, 2)), (y, 0, 1))
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))


def told(problem, tol=1e-6):
    return incompatibility(problem, tol, lambda: start_of(problem, tol))


class TestCompatibility:
    @pytest.mark.parametrize("gain", [1, sp.Rational(1001, 1000)])
    def test_fields_given_in_places_that_overlap_add_up(self, gain):
        equations = [sp.Eq(pb.div([u, v]), 2), sp.Eq(u.diff(y) - v.diff(x), 0)]
        sides = [pb.Dirichlet(u, 0, on=SQUARE.left), pb.Dirichlet(u, gain, on=SQUARE.right)]
        # On top and bottom the first field does not flow.
        found = told(pb.Problem(equations, SQUARE, [*sides, pb.Dirichlet(v, y)]))
        assert ("by the conditions 2.001 flows out" in found) == (gain != 1)
        assert bool(found) == (gain != 1)

    def test_nothing_is_said_where_a_side_is_open(self):
        equations = [sp.Eq(pb.div([u, v]), 0), sp.Eq(u.diff(y) - v.diff(x), 0)]
        given = [pb.Dirichlet(u, 1, on=SQUARE.left), pb.Dirichlet(v, 0)]
        assert told(pb.Problem(equations, SQUARE, given)) == ""

    @pytest.mark.parametrize("source", [0, sp.Rational(1, 100)])
    def test_sides_that_repeat_pass_on_what_flows(self, source):
        equations = [sp.Eq(pb.div([u, v]), source), sp.Eq(u.diff(y) - v.diff(x), 0)]
        given = [pb.Periodic(u, x), pb.Periodic(v, x), pb.Dirichlet(v, 0, on=SQUARE.bottom | SQUARE.top)]
        found = told(pb.Problem(equations, SQUARE, given))
        assert ("adds up to 0.01, and by the conditions 0 flows out" in found) == bool(source)

    @pytest.mark.parametrize("stiffness", [1, pb.per_region({LEFT: 2}, 1)])
    def test_a_part_of_the_flux_without_fields_may_jump_inside(self, stiffness):
        field, pull = pb.field("u", x, y), pb.per_region({LEFT: 1}, 3)
        equation = sp.Eq(pb.div([stiffness * field.diff(x) + pull, stiffness * field.diff(y)]), 0)

        def gap(right, *more):
            slopes = {SQUARE.left: 0, SQUARE.right: right, SQUARE.bottom: 0, SQUARE.top: 0}
            sides = [pb.Neumann(field, slope, on=side) for side, slope in slopes.items()]
            return told(pb.Problem(equation, SQUARE, [*sides, pb.Mean(field, 0), *more]))

        assert gap(-2) == ""
        assert "by the conditions 2 flows out" in gap(0)
        assert gap(0, pb.Interface(field, on=LEFT, flux=2)) == ""
        assert "by the conditions 1 flows out" in gap(0, pb.Interface(field, on=LEFT, flux=1))

    @pytest.mark.parametrize("turn", [0, 1])
    def test_a_heated_strip_of_two_metals_is_free_to_bend(self, turn):
        upper, lower = pb.field("u", x, y), pb.field("v", x, y)
        strain = pb.per_region({pb.Rectangle((x, 0, 1), (y, 0, sp.Rational(1, 2))): 1}, 2)
        stress = pb.stress([upper, lower], young=1, poisson=0.25, plane="stress", expansion=strain)
        ends = pb.Traction(stress, [0, turn * (x - sp.Rational(1, 2))], on=SQUARE.top)
        free = pb.Traction(stress, 0, on=SQUARE.boundary - SQUARE.top)
        means = [pb.Mean(upper, 0), pb.Mean(lower, 0), pb.Mean(upper.diff(y) - lower.diff(x), 0)]
        problem = pb.Problem([sp.Eq(pb.div(row), 0) for row in stress.tolist()], SQUARE, [*ends, *free, *means])
        assert ("moment of the sources adds up to 0, " in told(problem)) == bool(turn)
        assert bool(told(problem)) == bool(turn)

    @pytest.mark.parametrize("more", [0, sp.Rational(1, 50)])
    def test_in_space_too(self, more):
        w = pb.field("w", x, y, z)
        exact = x**2 + y * z
        slopes = {CUBE.right: 2 + more, CUBE.left: 0, CUBE.front: -z, CUBE.back: z, CUBE.bottom: -y, CUBE.top: y}
        conditions = [*(pb.Neumann(w, value, on=side) for side, value in slopes.items()), pb.Mean(w, 0)]
        found = told(pb.Problem(sp.Eq(pb.laplacian(w), exact.diff(x, 2)), CUBE, conditions))
        assert ("adds up to 2, and by the conditions 2.02 flows out" in found) == bool(more)

    def test_a_reaction_takes_what_is_made(self):
        assert told(pb.Problem(sp.Eq(-pb.laplacian(u) + u, 1), SQUARE, [pb.Neumann(u, 0)])) == ""

    def test_a_mixed_derivative_flows_along_both_axes(self):
        equation = sp.Eq(u.diff(x, 2) + u.diff(x, y) + u.diff(y, 2), 4)
        n = [pb.normal(symbol) for symbol in (x, y)]
        flux = n[0] * (u.diff(x) + u.diff(y) / 2) + n[1] * (u.diff(y) + u.diff(x) / 2)
        out = flux.subs(u, x**2 + y**2).doit()
        for more in (0, sp.Rational(1, 10)):
            conditions = [pb.Condition(sp.Eq(flux, out + more)), pb.Mean(u, 0)]
            assert bool(told(pb.Problem(equation, SQUARE, conditions))) == bool(more)


class TestOnce:
    def test_what_is_found_about_a_problem_is_kept_with_it(self):
        problem, other = pb.problems.heat_robin(), pb.problems.heat_robin()
        assert find_evolution(problem) is find_evolution(problem)
        assert analysis_of(problem) is analysis_of(problem)
        assert analysis_of(problem) is not analysis_of(other)

    @pytest.mark.parametrize("name", ["heat_robin", "poisson"])
    def test_a_second_solve_differentiates_nothing(self, name, monkeypatch):
        problem = getattr(pb.problems, name)()
        pb.solve(problem)

        def refused(*_, **__):
            raise AssertionError("symbolic work is done again")

        for method in ("diff", "subs", "replace", "expand"):
            monkeypatch.setattr(sp.Basic if hasattr(sp.Basic, method) else sp.Expr, method, refused)
        assert pb.solve(problem).status == "converged"

    def test_orders_and_switches(self):
        k = sp.Piecewise((1, x < sp.Rational(1, 2)), (10, True))
        equations = [sp.Eq(pb.div(k * pb.grad(u)), 0), sp.Eq(v.diff(x, 3) + v.diff(y), u)]
        found = analysis_of(pb.Problem(equations, SQUARE, [pb.Dirichlet(u, x), pb.Dirichlet(v, 0)]))
        assert found.orders.tolist() == [[2, 2], [3, 1]]
        assert (found.is_constant, found.jumps) == (False, True)
        assert found.switching.planes[0] == pytest.approx([0.5, np.nan], nan_ok=True)

    def test_problems_and_records_can_be_copied_and_pickled_after_a_solve(self):
        solution = pb.solve(pb.problems.poisson())
        residuals = solution.diagnostics.residuals
        assert "_table" not in vars(residuals)  # nobody has asked yet
        for record in (pickle.loads(pickle.dumps(solution.diagnostics)), copy.deepcopy(solution.diagnostics)):
            assert record == solution.diagnostics
            assert type(record.residuals) is dict
        again = pickle.loads(pickle.dumps(solution.problem))
        assert pb.solve(again).error_estimate == solution.error_estimate


class TestTransits:
    def test_a_jump_is_no_event(self):
        w, rod = pb.field("w", x, t), pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 50)
        step = sp.Piecewise((1, x < sp.Rational(1, 3)), (2, True))
        conditions = [pb.Dirichlet(w, 0), pb.Initial(w, step)]
        assert transits(find_evolution(pb.Problem(sp.Eq(w.diff(t), w.diff(x, 2)), rod, conditions))) == 0.0

    @pytest.mark.parametrize("order", [1, 2])
    def test_waves_count_in_radians(self, order):
        w, ring = pb.field("w", x, t), pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 3)
        conditions = [pb.Periodic(w, x), pb.Initial(w, sp.sin(2 * sp.pi * x)), pb.Initial(w.diff(t), 0)][: order + 1]
        problem = pb.Problem(
            sp.Eq(w.diff(t, order), 25 ** (order - 1) * 5 ** (2 - order) * w.diff(x, order)), ring, conditions
        )
        assert transits(find_evolution(problem)) == pytest.approx(3 * 5 * 2 * np.pi, rel=1e-9)


def test_one_condition_at_both_ends_is_one_too_many_for_a_first_order():
    x = pb.coordinates("x")
    u, line = pb.field("u", x), pb.Interval((x, 0, 1))
    solution = pb.solve(pb.Problem(sp.Eq(u.diff(x), -u), line, [pb.Dirichlet(u, 0.3)]), tol=1e-2)
    assert solution.status == "ill-posed"
    assert "on right) and what the other conditions determine" in solution.diagnostics.message
    assert "one says 0.3 and the other 0.110364" in solution.diagnostics.message
    grown = pb.Problem(sp.Eq(u.diff(x), u * (1 - u)), line, [pb.Dirichlet(u, 0.3)])
    assert [s.name for s in surplus_of(end_by_end(grown))] == ["Dirichlet(u = 0.3 on right)"]


@pytest.mark.parametrize("given", [1, 0])
def test_an_equation_without_derivatives_holds_at_the_first_time_too(given):
    c, d = (pb.field(name, t) for name in "cd")
    bound = [sp.Eq(c.diff(t), -d), sp.Eq(c, t)]
    solution = pb.solve(pb.Problem(bound, pb.TimeInterval(t, 0, 1), [pb.Initial(c, given)]), tol=1e-4)
    assert ("near t=0 one says 1 and the other 0" in solution.diagnostics.message) == bool(given)


@pytest.mark.parametrize("out", [0, sp.sin(2 - y)])
def test_where_values_leave_none_is_given_but_what_arrives(out):
    wind = sp.Eq(u.diff(x) + 2 * u.diff(y), sp.cos(x - y) - 2 * sp.cos(x - y))
    beside = [pb.Dirichlet(u, sp.sin(x - y), on=SQUARE.left | SQUARE.bottom)]
    solution = pb.solve(
        pb.Problem(wind, SQUARE, [*beside, pb.Dirichlet(u, out.subs(y, 1 + y) if out else 0, on=SQUARE.right)]),
        tol=1e-4,
    )
    assert ("Dirichlet(u = 0 on right) and what the other conditions determine" in solution.diagnostics.message) == (
        out == 0
    )
    assert solution.status == ("ill-posed" if out == 0 else "converged")


def test_values_given_all_round_are_told_side_by_side_where_they_are_carried():
    all_round = pb.Problem(sp.Eq(2 * u.diff(x) + u.diff(y), 0), SQUARE, [pb.Dirichlet(u, 0)])
    parted = end_by_end(all_round)
    assert [s.name for s in parted.statements[1:]] == [
        f"Dirichlet(u = 0 on {side})" for side in ("left", "right", "bottom", "top")
    ]
    assert [s.name for s in surplus_of(parted)] == ["Dirichlet(u = 0 on right)", "Dirichlet(u = 0 on top)"]
