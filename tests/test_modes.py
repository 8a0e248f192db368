"""Modes of the equations: layers thinner than any cell are found at the ends of the domain, and nowhere else."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, ModeRefinement, Program, Rows, draw_reference, leaves

x, y = pb.coordinates("x y")
w, u = pb.field("w", x), pb.field("u", x, y)
LINE = pb.Interval((x, 0, 1))
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
WIDTHS = [1e-3, 1e-5, 1e-8]


def ends(equation, domain=LINE, field=w):
    """Return the ends of the cells of the first tree along x."""
    problem = pb.Problem(equation, domain, [pb.Dirichlet(field, 0)])
    rows = Rows(Layout(problem, draw_reference(len(domain.coordinates), 13)))
    return sorted({float(cell.high[0]) for cell in leaves(ModeRefinement(rows).refined(rows.layout.root, 1e-6, 1000))})


@pytest.mark.parametrize("width", WIDTHS)
class TestOnALine:
    """The solution is known within the layer and outside."""

    places = np.linspace(0, 40, 401)

    def solved(self, equation):
        solution = pb.solve(pb.Problem(equation, LINE, [pb.Dirichlet(w, 0)]), tol=1e-6)
        assert solution.status == "converged"
        return solution

    def test_convection(self, width):
        solution = self.solved(sp.Eq(-width * w.diff(x, 2) + w.diff(x), 1))
        X = 1 - self.places * width
        assert solution(X[:, None]) == pytest.approx(X - np.exp(-self.places), abs=2e-5)

    def test_reaction(self, width):
        solution = self.solved(sp.Eq(-(width**2) * w.diff(x, 2) + w, 1))
        for X in (self.places * width, 1 - self.places * width):
            assert solution(X[:, None]) == pytest.approx(1 - np.exp(-self.places), abs=2e-5)

    def test_a_jump_of_the_source(self, width):
        solution = self.solved(sp.Eq(-(width**2) * w.diff(x, 2) + w, sp.Piecewise((1, x < sp.S(1) / 3), (2, True))))
        X = 1 / 3 + self.places * width
        assert solution(X[:, None]) == pytest.approx(2 - np.exp(-self.places) / 2, abs=2e-5)


def test_layers_on_all_sides_of_a_square():
    width = 1e-5
    # SymPy writes exp(1e5 x − 1e5) with a factor below the range of double precision.
    along = [1 - sp.exp(-s / width) - sp.exp((s - 1) / width) for s in (x, y)]
    exact = along[0] * along[1]
    source = along[0] + along[1] - exact
    problem = pb.Problem(sp.Eq(-(width**2) * pb.laplacian(u) + u, source), SQUARE, [pb.Dirichlet(u, 0)], exact=exact)
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4


def test_cells_are_cut_off_where_a_mode_decays_inwards_only():
    reach = 1e-6 * np.log(2**52)
    found = ends(-1e-6 * w.diff(x, 2) + w.diff(x) - 1)
    assert [(1 - end) / reach for end in found] == pytest.approx([1, 1 / 2, 1 / 4, 0], abs=1e-6)
    found = ends(-1e-6 * w.diff(x, 2) - w.diff(x) - 1)
    assert [end / reach for end in found] == pytest.approx([1 / 4, 1 / 2, 1, 1 / reach], abs=1e-6)
    assert len(ends(-1e-12 * w.diff(x, 2) + w - 1)) == 7
    # Modes decay towards both ends: the layer is inside, and residuals find it.
    assert len(ends(-1e-6 * w.diff(x, 2) + (1 - 2 * x) * w.diff(x) - 1)) == 1
    assert len(ends(-1e-6 * w.diff(x, 2) + (2 * x - 1) * w.diff(x) - 1)) == 7


def test_what_a_cell_sees_is_not_cut():
    assert len(ends(-1e-2 * w.diff(x, 2) + w.diff(x) - 1)) == 1
    # A coefficient that is infinite at an end has no layer there.
    assert len(ends(w.diff(x, 2) + w.diff(x) / x - w - 1)) == 1


def test_no_layer_where_an_axis_is_periodic():
    conditions = [pb.Periodic(u, x), pb.Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top)]
    problem = pb.Problem(-1e-10 * pb.laplacian(u) + u - sp.sin(2 * sp.pi * x) * y, SQUARE, conditions)
    rows = Rows(Layout(problem, draw_reference(2, 13)))
    cells = leaves(ModeRefinement(rows).refined(rows.layout.root, 1e-6, 1000))
    assert {float(cell.size[0]) for cell in cells} == {1.0}
    assert min(float(cell.size[1]) for cell in cells) < 1e-3


def test_factors_beyond_double_precision_are_exponents():
    expression = -2 * y * sp.exp((x - 1) / 1e-3) / (1 + x)
    program = Program.of([expression], (x, y))
    X, Y = np.array([0.0, 0.999, 1.0]), np.array([1.0, 2.0, 3.0])
    assert program(X, Y)[0] == pytest.approx(-2 * Y * np.exp((X - 1) * 1e3) / (1 + X), rel=1e-10)


def test_layers_at_flat_ends_of_curved_and_cornered_domains():
    disk = pb.Disk((x, y), (0, 0), 1)
    assert len(ends(-1e-6 * pb.laplacian(u) + u - 1, disk, u)) == 1
    bracket = pb.Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    problem = pb.Problem(sp.Eq(-1e-6 * pb.laplacian(u) + u, 1), bracket, [pb.Dirichlet(u, 0)])
    solution = pb.solve(problem, tol=1e-2)
    assert solution.status == "converged"
    X = np.array([[1.5, 1e-3], [0.5, 0.5], [1e-3, 1.5], [1 - 1e-3, 1.5]])
    assert solution(X) == pytest.approx([1 - np.exp(-1), 1, 1 - np.exp(-1), 1 - np.exp(-1)], abs=3e-2)


@pytest.mark.parametrize("degree", [6, 8])
@pytest.mark.parametrize("flow", [0.5, 0.75, 1.0])
def test_a_layer_nearly_as_wide_as_its_cell_leaves_no_cell_without_width(degree, flow):
    x, y, z = pb.coordinates("x y z")
    u = pb.field("u", x, y, z)
    box = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    equation = sp.Eq(-sp.Rational(1, 50) * pb.laplacian(u) + sp.nsimplify(flow) * u.diff(x), 1)
    rows = Rows(Layout(pb.Problem(equation, box, [pb.Dirichlet(u, 0)]), draw_reference(3, degree, 0)))
    found = leaves(ModeRefinement(rows).refined(rows.layout.root, 1e-4, 1000))
    assert min(cell.size.min() for cell in found) > 0.03
    assert len(found) < 40


def wave(domain, number):
    exact = sp.sin(number * (3 * x + 4 * y) / 5)
    equation = sp.Eq(pb.laplacian(u) + number**2 * u, 0)
    return pb.Problem(equation, domain, [pb.Dirichlet(u, exact)], exact=exact)


def test_a_wave_on_a_curved_domain_may_take_the_whole_budget():
    solution = pb.solve(wave(pb.Disk((x, y), (0, 0), 1), 30), tol=1e-6, budget=0.5)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_cells_that_share_their_factors_are_cheap_at_any_degree():
    """Few rich cells take a tenth of the work of many poor ones, if all cells off the boundary have equal rows."""
    solution = pb.solve(wave(pb.Disk((x, y), (0, 0), 1), 20), tol=1e-3)
    assert solution.true_error() < 1e-3
    assert len(solution.diagnostics.stages) == 1
    assert solution.diagnostics.operations < 1e9


def test_many_waves_have_richer_cells():
    """A wave takes fewer functions on large cells of a high degree than on small ones of a low degree."""
    few, many = (pb.solve(wave(SQUARE, number), tol=1e-3) for number in (1, 40))
    assert [own.true_error() < 1e-3 for own in (few, many)] == [True, True]
    assert many.diagnostics.settings["degree"] > few.diagnostics.settings["degree"]
