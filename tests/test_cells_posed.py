"""Cells tell problems that determine their solution from those that do not."""

from __future__ import annotations

import re

import pytest
import sympy as sp

import pibls as pb
from internals import incompatibility, sensitivity_of, start_of
from pibls.problems import ill_posed

WORDS = {"non-unique": "not unique", "unstable": "unstable", "inconsistent": "contradict|no solution"}
# Those take a search for the statements that contradict each other, which tests/test_tuning_zoo.py waits for.
SLOW = {name for name, case in ill_posed().items() if case.kind == "inconsistent"} - {"helmholtz_resonant"}
QUICK = sorted(set(ill_posed()) - SLOW)
WELL_POSED = [
    *("advection", "anisotropic_mixed", "beam", "biharmonic", "boundary_layer", "convection_diffusion"),
    *("damped_oscillator", "diffusion_reaction", "elasticity", "heat_2d", "heat_robin", "helmholtz", "helmholtz_high"),
    *("klein_gordon", "l_shape", "maxwell_1d", "neumann_gauge", "oscillator", "periodic_advection", "poisson"),
    *("robin_disk", "schroedinger", "stokes", "variable_coefficient", "wave"),
]


@pytest.mark.parametrize("name", QUICK)
def test_what_nothing_determines_is_told_whatever_the_seed(name):
    case = ill_posed()[name]
    # Seed zero is that of tests/test_tuning_zoo.py.
    solution = pb.solve(case.problem(), seed=1, budget=0.3)
    assert solution.status == "ill-posed"
    assert re.search(WORDS[case.kind], solution.diagnostics.message)


@pytest.mark.parametrize("name", WELL_POSED)
def test_well_posed_problems_answer_little(name):
    answers = sensitivity_of(pb.problems.catalogue()[name](), 0)
    assert answers.sizes[-1] < 100
    assert not answers.is_unseen
    assert not answers.is_unstable


def test_what_is_wrong_is_said_with_its_place():
    x, y = pb.coordinates("x y")
    u, v = pb.field("u", x, y), pb.field("v", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    free = pb.Problem(
        [pb.laplacian(u) - 1, pb.laplacian(v) - 1], square, [pb.Dirichlet(u, 0), pb.Dirichlet(v, 0, on=square.left)]
    )
    answers = sensitivity_of(free)
    assert answers.is_unseen
    assert answers.field == "v"
    assert answers.place[0] > 0.3  # away from where it is held
    assert "change of v, largest near x=" in answers.in_words()


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_near_a_resonance_answers_grow(shift):
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    problem = pb.Problem(pb.laplacian(u) + (2 * sp.pi**2 + shift) * u - 1, square, [pb.Dirichlet(u, 0)])
    answers = sensitivity_of(problem)
    assert answers.is_unseen == (shift == 0.0)
    if shift:
        assert answers.sizes[-1] < 1e3


@pytest.mark.parametrize("shift", [0.0, 1e-6])
def test_modes_that_coarse_cells_do_not_resolve_are_no_instability(shift):
    x, y = pb.coordinates("x y")
    u, square = pb.field("u", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    answers = sensitivity_of(
        pb.Problem(pb.laplacian(u) + 130 * sp.pi**2 * (1 + shift) * u - 1, square, [pb.Dirichlet(u, 0)])
    )
    assert answers.sizes[2] > 100 * answers.sizes[1]
    assert answers.is_unseen == (shift == 0.0)
    assert not answers.is_unstable


def test_a_cube_at_a_resonance_is_told_early():
    x, y, z = pb.coordinates("x y z")
    u, cube = pb.field("u", x, y, z), pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    solution = pb.solve(pb.Problem(-pb.laplacian(u) - 3 * sp.pi**2 * u - 1, cube, [pb.Dirichlet(u, 0)]), tol=1e-4)
    assert solution.status == "ill-posed"
    assert "not unique" in solution.diagnostics.message
    assert "resonance" in solution.diagnostics.message
    assert solution.diagnostics.operations < 1e10


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_what_fades_soon_must_begin_with_something(tol):
    x, t = pb.coordinates("x t")
    u, rod = pb.field("u", x, t), pb.Interval((x, 0, 1))
    heat = sp.Eq(u.diff(t), u.diff(x, 2) + sp.sin(3 * x))
    solution = pb.solve(pb.Problem(heat, rod * pb.TimeInterval(t, 0, 1), [pb.Dirichlet(u, t)]), tol=tol)
    assert solution.status == "ill-posed"
    assert "u has no initial value" in solution.diagnostics.message


x, y = pb.coordinates("x y")
u, v, p = (pb.field(name, x, y) for name in "uvp")
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
LAPLACE = sp.Eq(pb.laplacian(u), 0)


class TestContradictions:
    @pytest.mark.parametrize("tol", [1e-2, 1e-6])
    def test_values_given_twice_are_told_with_both(self, tol):
        conditions = [pb.Dirichlet(u, x + 2), pb.Dirichlet(u, 3.05, on=SQUARE.right)]
        solution = pb.solve(pb.Problem(LAPLACE, SQUARE, conditions), tol=tol)
        assert solution.status == "ill-posed"
        assert "one says 3 and the other 3.05" in solution.diagnostics.message

    def test_flows_given_twice_are_told(self):
        conditions = [pb.Dirichlet(u, y, on=SQUARE.bottom), pb.Neumann(u, 1, on=SQUARE.top)]
        conditions += [pb.Neumann(u, 0, on=SQUARE.left | SQUARE.right), pb.Neumann(-2 * u, -2.2, on=SQUARE.top)]
        solution = pb.solve(pb.Problem(LAPLACE, SQUARE, conditions))
        assert solution.status == "ill-posed"
        assert "1.1" in solution.diagnostics.message

    @pytest.mark.parametrize("again", [x + y, x + y + 1e-12])
    def test_the_same_value_given_twice_is_no_contradiction(self, again):
        conditions = [pb.Dirichlet(u, x + y), pb.Dirichlet(u, again, on=SQUARE.right)]
        assert pb.solve(pb.Problem(LAPLACE, SQUARE, conditions)).status == "converged"

    def test_sides_that_differ_in_a_corner_only_are_no_contradiction(self):
        conditions = [pb.Dirichlet(u, 1, on=SQUARE.top), pb.Dirichlet(u, 0, on=SQUARE.left | SQUARE.right)]
        conditions += [pb.Dirichlet(u, 0, on=SQUARE.bottom)]
        assert pb.solve(pb.Problem(LAPLACE, SQUARE, conditions), tol=1e-3).status == "converged"

    @pytest.mark.parametrize("off", [0, 1e-3])
    @pytest.mark.parametrize("where", ["point", "mean", "side"])
    def test_more_than_is_needed_must_agree_with_the_rest(self, off, where):
        exact = 3 + x**2 - y**2
        more = {
            "point": pb.Dirichlet(u, (1 + off) * 3.07, on=(0.4, 0.3)),
            "mean": pb.Mean(u, 3 * (1 + off)),
            "side": pb.Neumann(u, 2 * (1 + off), on=SQUARE.right),
        }
        problem = pb.Problem(LAPLACE, SQUARE, [pb.Dirichlet(u, exact), more[where]])
        solution = pb.solve(problem, tol=1e-4)
        assert solution.status == ("ill-posed" if off else "converged")
        assert ("what the other conditions determine" in solution.diagnostics.message) == bool(off)

    @pytest.mark.parametrize("value", [0.5, 0.7])
    def test_a_value_inside_a_line_must_agree_with_both_ends(self, value):
        z = pb.field("z", x)
        conditions = [pb.Dirichlet(z, x), pb.Dirichlet(z, value, on=0.5), pb.Mean(z, 0.5)]
        solution = pb.solve(pb.Problem(sp.Eq(z.diff(x, 2), 0), pb.Interval((x, 0, 1)), conditions), tol=1e-2)
        assert solution.status == ("converged" if value == 0.5 else "ill-posed")

    @pytest.mark.parametrize("mean", [0, sp.Rational(1, 50)])
    def test_what_is_made_on_a_torus_cannot_leave(self, mean):
        source = sp.sin(2 * sp.pi * x) + mean
        conditions = [pb.Periodic(u, x), pb.Periodic(u, y), pb.Mean(u, 0)]
        solution = pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), source), SQUARE, conditions), tol=1e-2)
        assert solution.status == ("ill-posed" if mean else "converged")

    @pytest.mark.parametrize("gain", [1, sp.Rational(51, 50)])
    def test_a_fluid_that_keeps_its_volume_leaves_as_it_came(self, gain):
        equations = [sp.Eq(pb.laplacian(of), p.diff(k)) for of, k in ((u, x), (v, y))]
        profile = 4 * y * (1 - y)
        conditions = [pb.Dirichlet(u, profile, on=SQUARE.left), pb.Dirichlet(u, gain * profile, on=SQUARE.right)]
        conditions += [pb.Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top), pb.Dirichlet(v, 0), pb.Mean(p, 0)]
        problem = pb.Problem([*equations, sp.Eq(pb.div([u, v]), 0)], SQUARE, conditions)
        assert pb.solve(problem, tol=1e-2).status == ("ill-posed" if gain > 1 else "converged")

    @pytest.mark.parametrize("width", [sp.Rational(1, 100), sp.Rational(1, 1000)])
    def test_a_narrow_source_is_added_up_where_it_is(self, width):
        peak = sp.exp(-((x - 0.613) ** 2 + (y - 0.377) ** 2) / width**2) / (sp.pi * width**2)
        closed = SQUARE.left | SQUARE.right | SQUARE.top
        conditions = [pb.Neumann(u, -1, on=SQUARE.bottom), pb.Neumann(u, 0, on=closed), pb.Mean(u, 0)]
        solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), peak), SQUARE, conditions), tol=1e-3)
        assert solution.status == "converged"

    def test_what_every_cell_takes_as_it_makes_is_balanced(self):
        # The integral over each quarter of the square is zero.
        exact = sp.cos(sp.pi * x) * sp.cos(2 * sp.pi * y)
        conditions = [pb.Neumann(u, 0), pb.Dirichlet(u, 1, on=(0.0, 0.0))]
        problem = pb.Problem(sp.Eq(-pb.laplacian(u), 5 * sp.pi**2 * exact), SQUARE, conditions, exact=exact)
        solution = pb.solve(problem)
        assert solution.status == "converged"
        assert solution.true_error() < 1e-6

    @pytest.mark.parametrize("tol", [1e-3, 1e-6])
    def test_a_slight_contradiction_is_one_at_fine_tolerances(self, tol):
        source = sp.cos(sp.pi * x) + sp.Rational(1, 10**4)
        problem = pb.Problem(sp.Eq(-pb.laplacian(u), source), SQUARE, [pb.Neumann(u, 0), pb.Mean(u, 0)])
        assert pb.solve(problem, tol=tol).status == ("ill-posed" if tol < 1e-4 else "converged")

    @pytest.mark.parametrize("jumps", [False, True])
    @pytest.mark.parametrize("more", [0, sp.Rational(1, 10)])
    def test_what_a_divergence_makes_must_flow_out(self, jumps, more):
        k = sp.Piecewise((1, x < sp.Rational(1, 2)), (10, True)) if jumps else 1 + x
        conditions = [pb.Neumann(u, 0), pb.Mean(u, 0)]
        source = sp.cos(sp.pi * y) + more
        solution = pb.solve(pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), source), SQUARE, conditions), tol=1e-4)
        assert solution.status == ("ill-posed" if more else "converged")
        assert ("and by the conditions 0 flows out" in solution.diagnostics.message) == bool(more)

    @pytest.mark.parametrize("off", [0, sp.Rational(1, 10)])
    @pytest.mark.parametrize("conducts", [1, 10])
    def test_what_an_interface_makes_must_flow_out(self, off, conducts):
        core = x**2 + y**2 < sp.Rational(1, 4)
        k = sp.Piecewise((conducts, core), (1, True))
        seam = [pb.Interface(u, on=core, flux=-1), pb.Neumann(u, -(1 + off) / 2), pb.Mean(u, 0)]
        problem = pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), pb.Disk((x, y), (0, 0), 1), seam)
        told = incompatibility(problem, 1e-2, lambda: start_of(problem, 1e-2))
        assert ("by the conditions -0.314159 flows out" in told) == bool(off), told

    @pytest.mark.parametrize("off", [0, 1e-3])
    def test_a_seam_of_a_rod_is_exact(self, off):
        z = pb.field("z", x)
        seam = [pb.Interface(z, on=x < 0.5, flux=-1), pb.Neumann(z, -(1 + off) / 2), pb.Mean(z, 0)]
        problem = pb.Problem(sp.Eq(pb.div(pb.grad(z)), 0), pb.Interval((x, 0, 1)), seam)
        assert pb.solve(problem, tol=1e-4).status == ("ill-posed" if off else "converged")

    @pytest.mark.parametrize("lift", [0, sp.Rational(1, 100)])
    def test_forces_on_a_body_that_nothing_holds_add_up_to_zero(self, lift):
        s = pb.stress([u, v], young=1, poisson=0.3, plane="stress")
        loads = [pb.Traction(s, [1, lift], on=SQUARE.right), pb.Traction(s, [-1, 0], on=SQUARE.left)]
        corners = [
            pb.Dirichlet(u, 0, on=(0.0, 0.0)),
            pb.Dirichlet(v, 0, on=(0.0, 0.0)),
            pb.Dirichlet(v, 0, on=(1.0, 0.0)),
        ]
        free = pb.Traction(s, 0, on=SQUARE.bottom | SQUARE.top)
        rows = [sp.Eq(pb.div(row), 0) for row in s.tolist()]
        solution = pb.solve(pb.Problem(rows, SQUARE, [*loads, free, *corners]), tol=1e-4)
        assert solution.status == ("ill-posed" if lift else "converged")
        assert ("0.01 flows out" in solution.diagnostics.message) == bool(lift)

    @pytest.mark.parametrize(("along", "turned"), [(1, False), (0, True)])
    def test_moments_on_a_body_that_nothing_holds_add_up_to_zero(self, along, turned):
        s = pb.stress([u, v], young=3, poisson=0.2, plane="stress")
        rows, sides = [sp.Eq(pb.div(row), 0) for row in s.tolist()], ((SQUARE.right, 1), (SQUARE.left, -1))
        loads = [pb.Traction(s, [2 * sign, sign], on=side) for side, sign in sides]
        loads += [pb.Traction(s, [sign * along, 0], on=side) for side, sign in ((SQUARE.top, 1), (SQUARE.bottom, -1))]
        means = [pb.Mean(own, 0) for own in (u, v, u.diff(y) - v.diff(x))]
        problem = pb.Problem(rows, SQUARE, [*loads, *means])
        told = incompatibility(problem, 1e-4, lambda: start_of(problem, 1e-4))
        assert ("moment of the sources adds up to 0, and by the conditions" in told) == turned, told

    @pytest.mark.parametrize(
        ("load", "words"),
        [
            (6 * x**2 - 6 * x + 1, ""),
            (2 * x - 1, "the moment of the source adds up to 0.166667"),
            (1, "the source of the equation adds up to 1"),
        ],
    )
    def test_a_free_beam_bears_neither_forces_nor_moments(self, load, words):
        z = pb.field("z", x)
        conditions = [*(pb.Dirichlet(z.diff(x, k), 0) for k in (2, 3)), pb.Mean(z, 0), pb.Mean(z.diff(x), 0)]
        solution = pb.solve(pb.Problem(sp.Eq(z.diff(x, 4), load), pb.Interval((x, 0, 1)), conditions), tol=1e-4)
        assert solution.status == ("ill-posed" if words else "converged")
        assert words in solution.diagnostics.message

    def test_a_wall_that_turns_lets_nothing_through(self):
        ring, core = pb.Disk((x, y), (0, 0), 1), pb.Disk((x, y), (0, 0), 0.1)
        rest = [pb.Dirichlet(u, 0, on=ring.boundary), pb.Dirichlet(v, 0, on=ring.boundary), pb.Mean(p, 0)]
        turning = [pb.Dirichlet(u, -10 * y, on=core.boundary), pb.Dirichlet(v, 10 * x, on=core.boundary)]
        momentum = [sp.Eq(pb.laplacian(of), p.diff(k)) for of, k in ((u, x), (v, y))]
        problem = pb.Problem([*momentum, sp.Eq(pb.div([u, v]), 0)], ring - core, [*rest, *turning])
        found = [incompatibility(problem, tol, lambda tol=tol: start_of(problem, tol)) for tol in (1e-3, 1e-6)]
        assert found == ["", ""]
