"""Data are examined before they are sampled: narrow features, holes lost in a cell, and cell sides at tangents."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    FIRST,
    PER_CELL,
    Cell,
    DataRefinement,
    Layout,
    ModeRefinement,
    NarrowFeatures,
    Rows,
    Switching,
    compile_function,
    draw_reference,
    first_tree,
    leaves,
    refined,
    tails_of,
)
from pibls.runtime import RATE

R = sp.Rational
x, y = pb.coordinates("x y")
w, u = pb.field("w", x), pb.field("u", x, y)
LINE = pb.Interval((x, 0, 1))
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
INNER = np.zeros((2, 1), dtype=bool)


def missed(expression, *, unit=None, count=12):
    """What a cell with a few even points misses of an expression on (0, 1)."""
    function = compile_function(expression, (x,))

    def place(U):
        return (U + 1) / 2

    def values(U):
        return function(place(U))

    known = values(np.linspace(-0.95, 0.95, count)[:, None])
    return float(NarrowFeatures(function).missed(place, values, known, INNER, unit=unit)[0])


class TestSpots:
    @pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-8])
    def test_a_narrow_peak_is_found_however_narrow(self, width):
        found = missed(sp.exp(-(((x - 0.31371) / width) ** 2)) / width)
        # Its L2 norm on the cube, within the factor that a width can be told to.
        assert 0.2 < found / np.sqrt(2 * np.sqrt(np.pi / 2) / width) < 5

    def test_beside_something_smooth_as_well(self):
        assert missed(1 + 1e5 * sp.exp(-((x - 0.31371) ** 2) * 1e10)) > 100

    def test_steps_inclusions_and_poles(self):
        assert missed(1 - sp.tanh((x - 0.31371) * 1e5) ** 2) > 1e-3
        assert missed(sp.Piecewise((1, (x - 0.31371) ** 2 < 1e-10), (0, True))) > 1e-3
        assert missed(1 / (1 + ((x - 0.31371) * 1e5) ** 2)) > 1e-3

    def test_what_points_tell_is_not_missed(self):
        assert missed(sp.exp(-2 * x) * sp.cos(x)) == 0.0
        assert missed(sp.exp(-40 * (x - 0.4) ** 2)) == 0.0

    def test_a_coefficient_may_be_too_small_as_well(self):
        dip = 1 - R(999, 1000) * sp.exp(-(((x - 0.31371) / 1e-3) ** 2))
        assert missed(dip, unit=1.0) > 10 * missed(dip) > 0

    def test_coefficients_may_be_infinite_at_the_boundary(self):
        function = compile_function(1 / x, (x,))
        known = np.array([1.0, 2.0])
        outer = np.ones((2, 1), dtype=bool)

        def place(U):
            return (U + 1) / 2

        found = NarrowFeatures(function).missed(place, lambda U: function(place(U)), known, outer, unit=1.0)
        assert found.tolist() == [0.0]

    def test_functions_of_a_user_are_climbed(self):
        pulse = pb.data("f", lambda s: 1.0 / (1.0 + ((s - 0.31371) * 300) ** 2), x)
        assert missed(pulse) > 0.01


def solved(problem, tol=1e-4):
    return pb.solve(problem, tol=tol, progress=False)


class TestSolves:
    def test_a_resistive_layer(self):
        # Nearly all of the fall is across a dip of the conductivity a thousandth wide.
        k = 1 - R(999, 1000) * sp.exp(-(((x - R(3137, 10000)) * 1000) ** 2))
        ends = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
        solution = solved(pb.Problem(sp.Eq((k * w.diff(x)).diff(x), 0), LINE, ends))
        s = np.linspace(-0.02, 0.02, 400001)
        extra = np.trapezoid(1 / (1 - 0.999 * np.exp(-((s * 1000) ** 2))) - 1, s)
        assert solution.status == "converged"
        assert solution(x=0.8) == pytest.approx(1 - 0.2 / (1 + extra), abs=1e-3)

    def test_a_load_of_width_one_millionth(self):
        load = sp.exp(-(((x - R(3137, 10000)) * 10**6) ** 2)) * 10**6 / sp.sqrt(sp.pi)
        solution = solved(pb.Problem(sp.Eq(-w.diff(x, 2), load), LINE, [pb.Dirichlet(w, 0)]))
        assert solution(x=0.6) == pytest.approx(0.3137 * 0.4, abs=1e-5)

    def test_a_cooled_spot_on_the_boundary(self):
        narrow = 10**4 * sp.exp(-(((x - R(3137, 10000)) * 1000) ** 2))
        conditions = [
            pb.Dirichlet(u, 1, on=SQUARE.top),
            pb.Neumann(u, 0, on=SQUARE.left | SQUARE.right),
            pb.Robin(u, narrow, 1, 0, on=SQUARE.bottom),
        ]
        solution = solved(pb.Problem(sp.Eq(pb.laplacian(u), 0), SQUARE, conditions), tol=1e-2)
        assert solution(x=0.5, y=0.5) == pytest.approx(0.82, abs=0.02)

    def test_a_coefficient_that_is_infinite_at_an_end(self):
        conditions = [pb.Neumann(w, 0, on=LINE.left), pb.Dirichlet(w, 0, on=LINE.right)]
        problem = pb.Problem(sp.Eq(w.diff(x, 2) + w.diff(x) / x, -4), LINE, conditions, exact=1 - x**2)
        assert solved(problem).true_error() < 1e-9

    def test_functions_need_no_values_outside_the_domain(self):
        disk = pb.Disk((x, y), (0, 0), 1)
        load = pb.data("f", lambda a, b: np.sqrt(1.01 - a**2 - b**2), x, y)
        problem = pb.Problem(sp.Eq(-pb.laplacian(u), load), disk, [pb.Dirichlet(u, 0)])
        assert solved(problem, tol=1e-2).status == "converged"

    def test_a_hole_of_a_thousandth(self):
        center = R(37, 100), R(59, 100)
        exact = sp.log((x - center[0]) ** 2 + (y - center[1]) ** 2)
        domain = SQUARE - pb.Disk((x, y), center, R(1, 1000))
        problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), domain, [pb.Dirichlet(u, exact)], exact=exact)
        solution = solved(problem, tol=1e-2)
        assert solution.status == "converged"
        assert solution.true_error() < 0.02


class TestTrees:
    def test_cells_are_not_much_larger_than_a_hole(self):
        domain = SQUARE - pb.Disk((x, y), (0.37, 0.59), 0.002)
        layout = Layout(pb.Problem(pb.laplacian(u), domain, [pb.Dirichlet(u, 0)]), draw_reference(2, 9, 0))
        root = DataRefinement(Rows(layout)).resolving_data(layout.root, 1e-2, 500)
        holding = [c for c in leaves(root) if (c.low < [0.37, 0.59]).all() and (c.high > [0.37, 0.59]).all()]
        assert holding[0].size.max() < 0.1

    def test_cell_sides_keep_off_tangents(self):
        layout = Layout(
            pb.Problem(pb.laplacian(u), SQUARE - pb.Disk((x, y), (0.7, 0.5), 0.2), [pb.Dirichlet(u, 0)]),
            draw_reference(2, 6, 0),
        )
        touching = sorted((int(axis), round(a, 3), round(b, 3)) for axis, a, b in layout.root.tangents)
        assert touching == [(0, 0.5, 0.5), (0, 0.9, 0.5), (1, 0.7, 0.3), (1, 0.7, 0.7)]
        assert layout.root.halved(0).at == pytest.approx(0.4)
        assert layout.root.halved(1).at == 0.5

    def test_values_that_jump_within_a_side_mark_a_point(self):
        patch = sp.Piecewise((1, (x > R(3, 10)) & (x < R(301, 1000))), (0, True))
        problem = pb.Problem(pb.laplacian(u), SQUARE, [pb.Dirichlet(u, patch, on=SQUARE.bottom)])
        layout = Layout(problem, draw_reference(2, 6, 0))
        marks = {tuple(mark) for mark in layout.tree_domain.landmarks.round(6).tolist()}
        assert {(0.3, 0.0), (0.301, 0.0)} <= marks
        assert layout.root.plane_inside() is None

    def test_trees_have_an_end(self):
        cell = Cell(np.zeros(1), np.ones(1))
        for _ in range(60):
            lowest = leaves(cell)[0]
            cell = refined(cell, {lowest: [(0, None)]})
        assert 1e-13 < leaves(cell)[0].size[0] < 1e-11

    def test_planes_of_products_powers_and_distances(self):
        def planes(condition):
            k = sp.Piecewise((10, condition), (1, True))
            domain = pb.Rectangle((x, -1, 1), (y, -1, 1))
            found = Switching(pb.Problem(k * pb.laplacian(u), domain, [pb.Dirichlet(u, 0)])).planes
            return sorted({("x" if np.isfinite(row[0]) else "y", round(float(np.nansum(row)), 6)) for row in found})

        assert planes(x * y > 0) == [("x", 0.0), ("y", 0.0)]
        assert planes(sp.sin(sp.pi * x) > 0) == [("x", 0.0)]
        assert planes(x**2 < R(1, 4)) == [("x", -0.5), ("x", 0.5)]
        # A distance has a kink, too, where it is zero.
        assert planes(sp.Abs(y - R(1, 4)) < R(1, 2)) == [("y", -0.25), ("y", 0.25), ("y", 0.75)]
        assert planes(x**2 + y**2 < R(1, 4)) == []


class TestWaves:
    """An equation says itself how short its waves are, where no source does."""

    @staticmethod
    def first(equation, domain=SQUARE, most=1000):
        problem = pb.Problem(equation, domain, [pb.Dirichlet(u, 0)])
        data = DataRefinement(Rows(Layout(problem, draw_reference(2, 13, 0))))
        return leaves(ModeRefinement(data.rows).refined(data.rows.layout.root, 1e-6, most))

    def test_cells_are_as_short_as_waves_along_each_axis(self):
        along = {len(self.first(u.diff(x, 2) + u.diff(y, 2) + k**2 * u)) for k in (35, 37)}
        assert along == {64}
        # Waves along y are ten times as long.
        cells = self.first(u.diff(x, 2) + 100 * u.diff(y, 2) + 1225 * u)
        assert {tuple(cell.size.tolist()) for cell in cells} == {(1 / 8, 1.0)}

    def test_what_cells_miss_of_a_wave_adds_up_along_its_way(self):
        wave, domains = pb.laplacian(u) + 225 * u, [pb.Rectangle((x, 0, end), (y, 0, 1)) for end in (1, 64)]
        sizes = [min(cell.size[0] for cell in self.first(wave, domain, 5000)) for domain in domains]
        assert sizes == [1 / 4, 1 / 8]

    @pytest.mark.parametrize("order", [2, 4])
    def test_what_decays_is_left_to_where_it_shows(self, order):
        sign = (-1) ** (order // 2)
        plate = u.diff(x, order) + u.diff(y, order)
        assert len(self.first(plate + sign * 35**order * u)) == 1
        assert len(self.first(plate - sign * 35**order * u)) == 64

    def test_only_where_a_coefficient_says_so(self):
        sizes = {
            cell.low[0] < 0.5: cell.size[0] for cell in self.first(pb.laplacian(u) + 3600 * sp.exp(-20 * x**2) * u)
        }
        assert sizes[True] < sizes[False]

    def test_too_many_cells_are_none_at_all(self):
        assert len(self.first(pb.laplacian(u) + 1e6 * u, most=100)) == 1

    def test_waves_that_only_the_boundary_speaks_of(self):
        exact = sp.sin(36 * x + 48 * y)
        disk = pb.Disk((x, y), (0, 0), R(1, 4))
        problem = pb.Problem(pb.laplacian(u) + 3600 * u, disk, [pb.Dirichlet(u, exact)], exact=exact)
        solution = solved(problem, 1e-6)
        assert solution.status == "converged"
        assert len(solution.diagnostics.stages) <= 2
        assert solution.true_error() < 1e-6


def test_what_a_cut_cell_does_outside_the_domain_is_not_rough():
    domain = SQUARE - pb.Rectangle((x, R(3, 10), 1), (y, R(3, 10), 1))
    layout = Layout(pb.Problem(pb.laplacian(u), domain, [pb.Dirichlet(u, 0)]), draw_reference(2, 9))
    (part,) = layout.parts(layout.root)
    values = layout.functions_at(part, part.points, [(0, 0)])[0, 0]
    weights = np.zeros((1, layout.reference.size))

    def measured(own):
        return tails_of(layout.reference).decay([own], weights[None], layout.triangle)

    weights[0, :10] = 1.0
    assert measured(part).rough.max() < 1e-10
    assert measured(part).smooth.all()
    weights[0, 40:] = 1.0
    assert np.linalg.norm(measured(part).rough) > 0.1
    assert not measured(part).smooth.any()
    # One that is tiny at all points of the part: the last singular vector of its values.
    weights[0] = np.linalg.svd(values)[2][-1]
    size = float(np.sqrt(part.weights @ np.square(values @ weights[0])))
    assert measured(part).size == pytest.approx(size)
    assert np.linalg.norm(measured(part).rough) <= size < 0.1 * measured(replace(part, whole=True)).rough.max()


def test_a_function_that_is_smooth_in_the_domain_alone_is_smooth_on_a_cut_cell():
    domain = SQUARE - pb.Rectangle((x, R(3, 10), 1), (y, R(3, 10), 1))
    layout = Layout(pb.Problem(pb.laplacian(u), domain, [pb.Dirichlet(u, 0)]), draw_reference(2, 13))
    (part,), zero = layout.parts(layout.root), (0, 0)
    values = layout.functions_at(part, part.points, [zero])[zero]
    smooth = np.linalg.lstsq(values, np.sin(part.points.sum(axis=1)), rcond=1e-12)[0]
    # Functions of high degrees, combined to be least at the points of the part, are larger beyond the boundary.
    high = values.shape[1] // 2
    smooth[high:] += 1e-5 * np.linalg.svd(values[:, high:])[2][-1]
    weights = smooth[None, None]

    def measured(own):
        return bool(tails_of(layout.reference).decay([own], weights, layout.triangle).smooth.all())

    assert measured(part)
    assert not measured(replace(part, whole=True))


class TestIntegrals:
    """Cells whose points miss the integral of a source, which is felt everywhere."""

    @staticmethod
    def summed(source, limit=1e-5):
        layout = Layout(pb.Problem(sp.Eq(-pb.laplacian(u), source), SQUARE, [pb.Dirichlet(u, 0)]), draw_reference(2, 9))
        root = refined(layout.root, {layout.root: [(0, None), (1, None)]})
        return leaves(DataRefinement(Rows(layout)).resolving_integrals(root, limit, 1000))

    def test_cells_crowd_where_a_source_is_infinite_and_its_integrals_are_not(self):
        middle = sp.sqrt((x - R(1, 2)) ** 2 + (y - R(1, 2)) ** 2)
        cells = self.summed(1 / middle)
        sizes = np.array([cell.size.max() for cell in cells])
        near = np.array([np.abs(np.stack([cell.low, cell.high]) - 0.5).min(axis=0).max() for cell in cells])
        # What is missed falls by half with every level: 1e-3 of the first cells, 1e-5 some seven levels down.
        assert 2**-10 < sizes.min() < 2**-5
        assert (near[sizes == sizes.min()] < 2 * sizes.min()).all()
        assert len(cells) < 4 + 12 * 10

    def test_it_is_left_alone_where_that_does_not_help(self):
        assert len(self.summed(x ** -R(7, 5))) == 4
        assert len(self.summed(sp.sin(9 * x) * sp.exp(y))) == 4


class TestVerdicts:
    @pytest.mark.parametrize("tol", [1e-2, 1e-4])
    def test_heat_that_cannot_leave_a_disk(self, tol):
        domain = pb.Disk((x, y), (0.2, 0.1), 0.8)
        problem = pb.Problem(sp.Eq(-pb.laplacian(u), 1), domain, [pb.Neumann(u, 0), pb.Mean(u, 0)])
        solution = pb.solve(problem, tol=tol, budget=0.3, progress=False)
        assert solution.status == "ill-posed"
        assert "contradict" in solution.diagnostics.message

    @pytest.mark.parametrize("transfer", [1e-2, 1e-6])
    def test_a_body_that_loses_little_heat_is_well_posed(self, transfer):
        problem = pb.Problem(sp.Eq(-w.diff(x, 2), 1), LINE, [pb.Robin(w, transfer, 1, 0)])
        solution = solved(problem)
        assert solution.status == "converged"
        assert solution(x=0.5) == pytest.approx(0.5 / transfer + 0.125, rel=1e-6)

    def test_growth_is_well_posed(self):
        problem = pb.Problem(sp.Eq(w.diff(x), 20 * w), LINE, [pb.Dirichlet(w, 1, on=LINE.left)], exact=sp.exp(20 * x))
        solution = solved(problem)
        assert solution.status == "converged"
        assert solution.true_error() < 1e-4

    def test_an_estimate_counts_the_trees_still_to_come(self):
        ends = [pb.Dirichlet(w, 1, on=LINE.right)]
        problem = pb.Problem(sp.Eq(w.diff(x), 1 / (2 * sp.sqrt(x))), LINE, ends, exact=sp.sqrt(x))
        solution = solved(problem)
        assert 0.4 < solution.error_estimate / solution.true_error(100_000) < 2.5

    @pytest.mark.parametrize("off", [0.1, 0.03, 0.0])
    def test_ends_that_contradict_each_other(self, off):
        ends = [pb.Dirichlet(w, 1, on=LINE.left), pb.Dirichlet(w, (1 + off) * sp.exp(-1), on=LINE.right)]
        solution = solved(pb.Problem(sp.Eq(w.diff(x), -w), LINE, ends), tol=1e-3)
        assert (solution.status == "converged") == (off == 0.0)
        assert "contradict" in solution.diagnostics.message or off == 0.0

    def test_a_pressure_that_is_infinite_in_corners_is_measured_beside_them(self):
        v, p = pb.field("v", x, y), pb.field("p", x, y)
        forces = [sp.Eq(p.diff(s), pb.laplacian(of)) for of, s in ((u, x), (v, y))]
        conditions = [
            pb.Dirichlet(u, 1, on=SQUARE.top),
            pb.Dirichlet(u, 0, on=SQUARE.left | SQUARE.right | SQUARE.bottom),
            pb.Dirichlet(v, 0),
            pb.Mean(p, 0),
        ]
        solution = solved(pb.Problem([*forces, sp.Eq(u.diff(x) + v.diff(y), 0)], SQUARE, conditions), tol=1e-2)
        assert solution.status == "converged"
        # The stream function is even in x and the lowest velocity on the middle line is known.
        line = np.linspace(0.4, 0.7, 301)
        lowest = solution(np.stack([np.full(301, 0.5), line], axis=1))["u"].min()
        assert lowest == pytest.approx(-0.2076, abs=2e-3)
        assert solution(np.array([[0.5, 0.5]]))["v"] == pytest.approx(0.0, abs=2e-3)

    def test_errors_in_corners_are_seen(self):
        solution = solved(pb.problems.everyday()["hot_lid"](), tol=1e-4)
        assert 0.3 < solution.error_estimate / solution.true_error() < 3


def test_a_bell_is_found_beside_a_wider_one():
    """At the points of a cell only the faint end of it shows, which is rough, and far below what matters."""
    disk = pb.Disk((x, y), (0, 0), 1)
    bells = [(10**3, R(1, 3), -R(1, 4)), (2 * 10**6, -R(2, 5), R(3, 10))]
    exact = sum(sp.exp(-steep * ((x - a) ** 2 + (y - b) ** 2)) for steep, a, b in bells)
    problem = pb.Problem(
        sp.Eq(pb.laplacian(u), exact.diff(x, 2) + exact.diff(y, 2)), disk, [pb.Dirichlet(u, exact)], exact=exact
    )
    solution = pb.solve(problem, tol=1e-3)
    assert solution.status == "converged"
    for _, a, b in bells:
        assert solution([[float(a), float(b)]]) == pytest.approx([1.0], abs=1e-2)


def test_waves_are_resolved_while_a_comparison_is_within_the_budget():
    conditions = [pb.Dirichlet(u, sp.sin(60 * x + 80 * y))]
    data = DataRefinement(
        Rows(Layout(pb.Problem(pb.laplacian(u) + 100**2 * u, SQUARE, conditions), draw_reference(2, 13)))
    )
    needed = len(leaves(ModeRefinement(data.rows).refined(data.rows.layout.root, 1e-6, 10**6)))
    found = {budget: len(leaves(first_tree(data, 1e-6, budget=budget))) for budget in (2.0, 4.5, 16.0)}
    shares = {budget: needed * (PER_CELL + 8.0 * data.rows.width**3) / RATE / budget for budget in found}
    assert min(shares.values()) < FIRST < max(shares.values())
    for budget, share in shares.items():
        assert (found[budget] >= needed) == (share <= FIRST)
