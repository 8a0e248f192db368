"""Solves by cells: rates, every kind of condition, and answers that do not depend on units or order."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    Cell,
    CellNetwork,
    ErrorMarking,
    Layout,
    Progress,
    Rows,
    Tails,
    TreeSolver,
    draw_reference,
    field_sizes,
    leaves,
    network_of,
    part_values,
    refined,
)

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x, y), pb.field("v", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
WAVES = sp.sin(3 * x + 1) * sp.cos(2 * y)


def manufactured(operator, exact, conditions, domain=SQUARE):
    """A problem with a given solution."""
    return pb.Problem(operator(u) - operator(exact).doit(), domain, conditions, exact=exact)


def laplace(w):
    return sp.diff(w, x, 2) + sp.diff(w, y, 2)


def solved(problem, tol=1e-6, **options):
    """A solution by cells, with what everyone may expect of it."""
    solution = pb.solve(problem, tol=tol, **options)
    assert isinstance(solution.network, CellNetwork)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.error_estimate <= tol
    return solution


# Rates


@pytest.mark.parametrize("wave_number", [0.0, 6.0])
@pytest.mark.parametrize("degree", [4, 6])
def test_errors_fall_with_the_size_of_cells_as_the_degree_says(degree, wave_number):
    exact = sp.sin(14 * x + 1) * sp.cos(11 * y)
    problem = manufactured(lambda w: laplace(w) + wave_number**2 * w, exact, [pb.Dirichlet(u, exact)])
    layout = Layout(problem, draw_reference(2, degree))
    solver, root = TreeSolver(Rows(layout)), layout.root
    X = SQUARE.sample(500)
    errors = []
    for _ in range(4):
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in leaves(root)})
        values = network_of(layout, solver.solve(root)).evaluate(X, [(0, 0)])[0, 0][:, 0]
        errors.append(float(np.abs(values - problem.exact_values(X)["u"]).max()))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates[1:].min() > degree - 0.5


@pytest.mark.parametrize(("degree", "floor"), [(4, 3e-5), (9, 1e-8)])
def test_functions_of_a_degree_end_at_a_floor_and_stay_there(degree, floor):
    # Sines on a cell are nearly polynomials, however small the cell: how nearly, the degree decides.
    problem = manufactured(laplace, WAVES, [pb.Dirichlet(u, WAVES)])
    layout = Layout(problem, draw_reference(2, degree))
    solver, root = TreeSolver(Rows(layout)), layout.root
    X = SQUARE.sample(500)
    for _ in range(4):
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in leaves(root)})
    values = network_of(layout, solver.solve(root)).evaluate(X, [(0, 0)])[0, 0][:, 0]
    assert np.abs(values - problem.exact_values(X)["u"]).max() < floor


def test_cells_along_the_boundary_that_share_a_factorisation_are_solved_as_if_each_had_its_own(monkeypatch):
    values = {SQUARE.left: sp.cos(3 * x * y), SQUARE.bottom: x**2, SQUARE.right: sp.exp(y)}
    conditions = [pb.Neumann(u, x - y, on=SQUARE.top), *(pb.Dirichlet(u, own, on=on) for on, own in values.items())]
    problem = pb.Problem(sp.Eq(-laplace(u) + u, sp.sin(5 * x + y)), SQUARE, conditions)
    fits, counts = [], []
    for shared in (True, False):
        solver = TreeSolver(Rows(Layout(problem, draw_reference(2, 7, 0))))
        if not shared:
            monkeypatch.setattr(solver.local, "_ordered", lambda part, faces: (None, faces))
        made = Mock(wraps=solver.local._systems)
        monkeypatch.setattr(solver.local, "_systems", made)
        root = solver.layout.root
        for _ in range(3):
            root = refined(root, {leaf: [(0, None), (1, None)] for leaf in leaves(root)})
        fit = solver.solve(root)
        counts.append(sum(len(call.args[0]) for call in made.call_args_list))
        fits.append(network_of(solver.layout, fit).evaluate(SQUARE.sample(300), [(0, 0)])[0, 0])
    # In whatever order faces are eliminated: inside, at three sides and two corners, and each cell at the top.
    assert counts == [6 + 8, 64]
    np.testing.assert_allclose(*fits, rtol=0, atol=1e-10)


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
def test_tolerances_are_met_and_estimates_are_near(tol):
    peak = sp.exp(-20 * ((x - 0.3) ** 2 + y**2))
    solution = solved(manufactured(laplace, peak, [pb.Dirichlet(u, peak)]), tol)
    assert solution.true_error() < 2 * tol
    assert 0.1 < solution.true_error() / solution.error_estimate < 10


@pytest.fixture(scope="module")
def singular():
    return solved(pb.problems.l_shape(), 1e-4)


def test_an_error_that_waves_on_one_cell_is_seen_in_full():
    x, y = pb.coordinates("x y")
    u, square = pb.field("u", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    exact = sp.sin(2 * sp.pi * x) * sp.sin(sp.pi * y)
    problem = pb.Problem(-pb.laplacian(u) - 30 * u - (5 * sp.pi**2 - 30) * exact, square, [pb.Dirichlet(u, 0)])
    found, places = pb.solve(problem, tol=1e-3, progress=False), square.sample(2000)
    assert found.diagnostics.settings["cells"] == 1
    wave = np.sin(2 * np.pi * places[:, 0]) * np.sin(np.pi * places[:, 1])
    error = np.linalg.norm(found(places) - wave) / np.linalg.norm(wave)
    assert found.error_estimate == pytest.approx(error, rel=0.1)  # seven points along each side saw half of it


def test_cells_crowd_where_the_solution_is_rough(singular):
    corner = singular.problem.domain.bounds.mean(axis=1)
    distance = np.linalg.norm(singular.network.centers - corner, axis=1)
    size = singular.network.halves.max(axis=1)
    assert size[distance.argmin()] < 0.02 * size.max()
    assert size[distance.argmin()] <= 2 * size.min()


# What can be solved


def test_systems_and_a_gauge():
    solution = solved(pb.problems.stokes(), 1e-3)
    assert solution.true_error() < 1e-3
    X, weights = solution.problem.domain.quadrature(2000)
    assert abs(weights @ solution(X)["p"]) < 1e-3 * np.abs(solution(X)["p"]).max()


def test_ends_that_meet():
    wave = sp.sin(2 * sp.pi * x) * sp.exp(y)
    problem = manufactured(laplace, wave, [pb.Periodic(u, x), pb.Dirichlet(u, wave, on=SQUARE.bottom | SQUARE.top)])
    solution = solved(problem)
    assert solution.true_error() < 1e-6
    ends = [solution.derivative(u, x)(np.stack([np.full(9, end), np.linspace(0.1, 0.9, 9)], axis=1)) for end in (0, 1)]
    np.testing.assert_allclose(*ends, atol=1e-3)


@pytest.mark.parametrize(
    "condition",
    [
        pb.Mean(u, float(sp.integrate(WAVES, (x, 0, 1), (y, 0, 1)))),
        pb.Dirichlet(u, WAVES, on=[(0.3, 0.6)]),
        pb.Observation(
            u, [(0.3, 0.6), (0.8, 0.1)], [float(WAVES.subs({x: a, y: b})) for a, b in ((0.3, 0.6), (0.8, 0.1))]
        ),
    ],
    ids=["average", "point", "measurements"],
)
def test_what_fluxes_leave_open_is_settled(condition):
    slope = pb.normal(x) * sp.diff(WAVES, x) + pb.normal(y) * sp.diff(WAVES, y)
    solution = solved(manufactured(laplace, WAVES, [pb.Neumann(u, slope), condition]))
    assert solution.true_error() < 1e-5


def test_what_points_miss_of_a_source_that_is_infinite_at_an_end_is_estimated():
    w, line = pb.field("w", x), pb.Interval((x, 0, 1))
    exact = sp.sqrt(x)
    solution = solved(pb.Problem(w.diff(x) - exact.diff(x), line, [pb.Dirichlet(w, 0, on=line.left)], exact=exact))
    assert solution.true_error() < 10 * solution.error_estimate


@pytest.mark.parametrize("name", ["l_shape_unit_load", "l_shape"])
def test_even_a_rough_solution_is_nowhere_visibly_wrong(name):
    """Of a small part of the domain an error in the mean says nothing."""
    problem = getattr(pb.problems, name)()
    tip = problem.domain.bounds.mean(axis=1)
    X = problem.domain.sample(4000, seed=3)
    X = np.concatenate([X, tip + (X - tip) / 20, tip + (X - tip) / 400])
    rough, fine = solved(problem, 1e-2)(X), solved(problem, 1e-4)(X)
    assert np.abs(rough - fine).max() <= 0.03 * np.abs(fine).max()


def test_values_that_switch_at_a_corner_without_a_slope_there():
    wedge = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1)])
    polar = sp.atan2(y, x)
    turn = sp.Piecewise((polar, polar >= 0), (polar + 2 * sp.pi, True))
    exact = (x**2 + y**2) ** sp.Rational(2, 5) * sp.sin(sp.Rational(4, 5) * turn)
    layout = Layout(pb.Problem(pb.laplacian(u), wedge, [pb.Dirichlet(u, exact)]), draw_reference(2, 5, 0))
    assert any(np.allclose(mark, 0.0, atol=1e-12) for mark in layout.tree_domain.landmarks)


def test_what_flows_through_a_union_of_shapes_is_in_balance():
    domain = pb.Disk((x, y), (0, 0), 1) | pb.Rectangle((x, 0, 2), (y, -0.5, 0.5))
    slope = pb.normal(x) * sp.diff(WAVES, x) + pb.normal(y) * sp.diff(WAVES, y)
    conditions = [pb.Neumann(u, slope), pb.Dirichlet(u, WAVES, on=[(0.3, 0.2)])]
    assert solved(manufactured(laplace, WAVES, conditions, domain), 1e-4).true_error() < 1e-4


@pytest.mark.parametrize("near", [1e-9, 1e-6])
def test_a_quarter_of_a_tube_under_pressure(near):
    """At its corners arcs are along the cell sides that go through them, and sides are told apart by a tolerance."""
    lame, shear = sp.Rational(15, 26), sp.Rational(5, 13)
    mean, turn = 1 / (6 * (lame + shear)), 1 / (6 * shear)
    r2 = x**2 + y**2
    stretch = lame * (u.diff(x) + v.diff(y))
    sxx, syy, sxy = stretch + 2 * shear * u.diff(x), stretch + 2 * shear * v.diff(y), shear * (u.diff(y) + v.diff(x))
    rings = pb.Disk((x, y), (0, 0), 1) - pb.Disk((x, y), (0, 0), 0.5)
    tube = rings & pb.Rectangle((x, 0, 2), (y, 0, 2))
    side = tube.boundary.where
    inner, outer = (side(lambda X, r=r: np.abs(np.hypot(*X.T) - r) < near) for r in (0.5, 1.0))
    left, below = (side(lambda X, axis=axis: X[:, axis] < near) for axis in (0, 1))
    (nx, ny), one = pb.normal(x, y), pb.Condition
    conditions = [one(sp.Eq(sxx * nx + sxy * ny, -p * nx), on=arc) for arc, p in ((inner, 1), (outer, 0))]
    conditions += [one(sp.Eq(sxy * nx + syy * ny, -p * ny), on=arc) for arc, p in ((inner, 1), (outer, 0))]
    conditions += [pb.Dirichlet(u, 0, on=left), one(sxy, on=left), pb.Dirichlet(v, 0, on=below), one(sxy, on=below)]
    exact = {u: mean * x + turn * x / r2, v: mean * y + turn * y / r2}
    equations = [sxx.diff(x) + sxy.diff(y), sxy.diff(x) + syy.diff(y)]
    solution = solved(pb.Problem(equations, tube, conditions, exact=exact), 1e-4)
    assert solution.true_error() < 1e-4
    assert solution.diagnostics.condition < 30


def test_mixed_derivatives_and_variable_coefficients():
    def operator(w):
        return 2 * sp.diff(w, x, 2) + sp.diff(w, x, y) + (1 + x) * sp.diff(w, y, 2) - sp.diff(w, x) / 2

    assert solved(manufactured(operator, WAVES, [pb.Dirichlet(u, WAVES)])).true_error() < 1e-6


def test_fourth_order():
    def operator(w):
        return sp.diff(w, x, 4) + 2 * sp.diff(w, x, 2, y, 2) + sp.diff(w, y, 4)

    slope = pb.normal(x) * sp.diff(WAVES, x) + pb.normal(y) * sp.diff(WAVES, y)
    solution = solved(manufactured(operator, WAVES, [pb.Dirichlet(u, WAVES), pb.Neumann(u, slope)]), 1e-5)
    assert solution.true_error() < 1e-5


def test_cut_cells_on_curved_domains():
    ring = pb.Disk((x, y), (0, 0), 1) - pb.Disk((x, y), (0.2, 0.1), 0.4)
    solution = solved(manufactured(laplace, WAVES, [pb.Dirichlet(u, WAVES)], ring))
    assert solution.true_error() < 1e-6


@pytest.mark.parametrize("level", [0, 1])
def test_a_ball_that_air_cools(level):
    """What flows out depends on the value there; a polynomial is found whatever the cells are."""
    z = pb.coordinates("z")
    f = pb.field("f", x, y, z)
    ball = pb.Ball((x, y, z), (3, -2, 1), 2)
    exact = 300 - 5 * (x - 3) ** 2 + 8 * x * y * z
    flux = sum(pb.normal(of) * exact.diff(of) for of in (x, y, z))
    problem = pb.Problem(pb.laplacian(f) + 10, ball, [pb.Robin(f, 25, 2, 25 * exact + 2 * flux)], exact=exact)
    layout = Layout(problem, draw_reference(3, 6, 0))
    root = layout.root
    for _ in range(level):
        root = refined(root, {leaf: [(0, None), (1, None), (2, None)] for leaf in leaves(root)})
    network = network_of(layout, TreeSolver(Rows(layout)).solve(root))
    X, zero = ball.sample(500, seed=1), (0, 0, 0)
    true = sp.lambdify((x, y, z), exact)(*X.T)
    assert np.abs(network.evaluate(X, [zero])[zero][:, 0] - true).max() < 1e-4 * np.abs(true).max()


def test_what_a_ball_cuts_off_of_a_corner_of_a_cell_is_determined_like_the_rest():
    z = pb.coordinates("z")
    f = pb.field("f", x, y, z)
    ball = pb.Ball((x, y, z), (0.1, 0, -0.1), 0.3)
    exact = 1 / sp.sqrt((x - 0.1) ** 2 + y**2 + (z + 0.1) ** 2)
    box = pb.Box((x, -1, 1), (y, -1, 1), (z, -1, 1)) - ball
    layout = Layout(pb.Problem(pb.laplacian(f), box, [pb.Dirichlet(f, exact)]), draw_reference(3, 5, 0))
    root, axes = layout.root, [(0, None), (1, None), (2, None)]
    for _ in range(2):
        root = refined(root, dict.fromkeys(leaves(root), axes))
    root = refined(root, {leaf: axes for leaf in leaves(root) if not all(part.whole for part in layout.parts(leaf))})
    fit = TreeSolver(Rows(layout)).solve(root)
    smallest = min(fit.parts, key=lambda part: part.volume)
    assert smallest.volume < 1e-6
    true = sp.lambdify((x, y, z), exact)
    for part in (smallest, *fit.parts[::20]):
        found = part_values(layout.reference, part, fit.weights[part], part.points)[:, 0]
        assert np.abs(found - true(*part.points.T)).max() < 0.05


def test_three_coordinates_and_time():
    w = pb.field("w", x, t)
    exact = sp.exp(-t) * sp.sin(2 * x)
    rod = pb.Interval((x, 0, 1))
    problem = pb.Problem(
        w.diff(t) - w.diff(x, 2) / 4,
        rod * pb.TimeInterval(t, 0, 1),
        [pb.Dirichlet(w, exact), pb.Initial(w, exact)],
        exact,
    )
    assert solved(problem).true_error() < 1e-6
    z = pb.coordinates("z")
    q = pb.field("q", x, y, z)
    harmonic = sp.sin(3 * x) * sp.cos(4 * y) * sp.exp(5 * z)
    cube = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    solution = solved(pb.Problem(pb.laplacian(q), cube, [pb.Dirichlet(q, harmonic)], exact=harmonic), 1e-3)
    assert solution.true_error() < 1e-3


# What must not matter


def rescaled(length=1.0, size=1.0, shift=0.0, order=1):
    """The same problem in other units, elsewhere, or with its conditions in another order."""
    a, b = (x - shift) / length, (y + 2 * shift) / length
    box = pb.Rectangle((x, shift, shift + length), (y, -2 * shift, -2 * shift + length))
    exact = size * sp.exp(-8 * ((a - sp.Rational(1, 3)) ** 2 + b**2)) * (1 + a)
    slope = pb.normal(x) * sp.diff(exact, x) + pb.normal(y) * sp.diff(exact, y)
    held = [pb.Dirichlet(u, exact, on=box.left | box.bottom), pb.Dirichlet(u, exact, on=box.top)]
    conditions = [held[0], pb.Neumann(u, slope, on=box.right), held[1]]
    operator = length**2 * laplace(u) + 9 * u
    source = (length**2 * laplace(exact) + 9 * exact).doit()
    return pb.Problem(operator - source, box, conditions[::order], exact=exact)


@pytest.fixture(scope="module")
def plain():
    return solved(rescaled())


@pytest.mark.parametrize(
    "change",
    [{"length": 1e3}, {"length": 1e-3}, {"size": 1e3}, {"size": 1e-3}, {"shift": 100.0}, {"order": -1}],
    ids=str,
)
def test_units_places_and_order_do_not_matter(plain, change):
    other = solved(rescaled(**change))
    assert other.network.cells == plain.network.cells
    assert other.error_estimate == pytest.approx(plain.error_estimate, rel=0.05)
    assert other.true_error() == pytest.approx(plain.true_error(), rel=0.1)


def test_the_same_call_gives_the_same_bits(plain):
    again = solved(rescaled())
    X = again.problem.domain.sample(100)
    assert (again(X) == plain(X)).all()
    assert again.error_estimate == plain.error_estimate
    other = solved(rescaled(), seed=1)
    assert (other(X) != plain(X)).any()
    np.testing.assert_allclose(other(X), plain(X), atol=3e-6)


# Where cells are split


def test_a_corner_keeps_pace_with_a_peak_beside_it():
    # Singular at a corner of 7π/4, where cells are too small to show it, and felt everywhere.
    power, polar = sp.Rational(4, 7), sp.atan2(y, x)
    turn = sp.Piecewise((polar, polar >= 0), (polar + 2 * sp.pi, True))
    domain = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    peak = sp.exp(-100 * ((x + sp.Rational(1, 2)) ** 2 + (y - sp.Rational(2, 5)) ** 2))
    exact = (x**2 + y**2) ** (power / 2) * sp.sin(power * turn) + peak
    solution = solved(pb.Problem(pb.laplacian(u) - laplace(peak), domain, [pb.Dirichlet(u, exact)], exact=exact))
    estimates = [stage.estimate for stage in solution.diagnostics.stages]
    assert all(after < before / 2 for before, after in pairwise(estimates))
    assert solution.true_error(20_000) < 2 * solution.error_estimate


@pytest.mark.parametrize("is_point", [False, True])
def test_cells_in_which_a_solution_is_next_to_nothing_are_no_rough_ones(is_point):
    z = pb.coordinates("z")
    field, box = pb.field("s", x, y, z), pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    place = (x - sp.Rational(2, 5)) ** 2 + (y - sp.Rational(1, 2)) ** 2 + (z - sp.Rational(1, 2)) ** 2
    exact = sp.sqrt(place + sp.Rational(1, 10**4)) if is_point else sp.exp(-30 * place)
    source = sum(exact.diff(axis, 2) for axis in (x, y, z))
    layout = Layout(pb.Problem(pb.laplacian(field) - source, box, [pb.Dirichlet(field, exact)]), draw_reference(3, 8))
    root = layout.root
    for _ in range(2):
        root = refined(root, {leaf: [(0, None), (1, None), (2, None)] for leaf in leaves(root)})
    fit, marker = TreeSolver(Rows(layout)).solve(root), ErrorMarking(layout)
    assert not marker.is_smooth(fit)
    assert marker.seems_smooth(fit, field_sizes(layout, fit)) != is_point


def test_what_cells_of_any_size_miss_of_rigid_motions_is_no_error():
    # A bar that hangs from its top: displacements are quadratic, but a slender body magnifies what cells miss.
    z, size, nu = pb.coordinates("z"), sp.Rational(1, 100), sp.Rational(1, 5)
    bar = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 6))
    a, b, c = (pb.field(name, x, y, z) for name in "abc")
    exact = {a: -nu * size * x * z, b: -nu * size * y * z, c: size * (z**2 + nu * (x**2 + y**2)) / 2}
    steel = pb.stress([a, b, c], young=1 / size, poisson=nu)
    conditions = [*pb.Traction(steel, 0, on=bar.left | bar.right | bar.front | bar.back | bar.bottom)]
    conditions += [pb.Dirichlet(of, value, on=bar.top) for of, value in exact.items()]
    equations = [sp.Eq(pb.div(row), f) for row, f in zip(steel.tolist(), (0, 0, 1), strict=True)]
    problem = pb.Problem(equations, bar, conditions, exact={of.label: value for of, value in exact.items()})
    solution = solved(problem, 1e-3)
    assert solution.true_error() < min(1e-4, 3 * solution.error_estimate)


@pytest.mark.parametrize(("dimension", "degree"), [(2, 9), (3, 8), (3, 10)])
def test_what_functions_miss_of_a_quadratic_is_not_taken_for_rough(dimension, degree):
    reference, zero = draw_reference(dimension, degree), (0,) * dimension
    U = reference.rule[0]
    functions, tails = reference.evaluate(U, [zero])[zero], Tails(reference)
    quadratic, kink = 3 + U.sum(axis=1) + (U[:, 0] - 2 * U[:, 1]) ** 2, np.abs(U[:, 0])
    smooth, rough = (np.linalg.lstsq(functions, values, rcond=None)[0][None] for values in (quadratic, kink))
    whole = SimpleNamespace(whole=True, half=np.ones(dimension))
    found = tails.decay([whole] * 2, np.stack([smooth, rough]), lambda part: functions)
    assert found.smooth.tolist() == [True, False]
    missed = np.abs(functions @ smooth[0] - quadratic).max()
    assert missed < 2e-7


# How it ends


def test_budgets_and_rounding_are_named_as_limits():
    stalled = pb.solve(pb.problems.l_shape(), tol=1e-6, budget=1e-3)
    assert stalled.status == "stalled"
    assert "more than 0.001 nominal seconds" in stalled.diagnostics.message
    assert "budget=0.01" in stalled.diagnostics.message
    fine = pb.solve(pb.problems.convection_diffusion(), tol=1e-18)
    assert fine.status == "stalled"
    assert "Round-off" in fine.diagnostics.message
    assert fine.true_error() < 1e-11


def test_where_rounding_makes_finer_cells_worse_the_best_solution_is_returned():
    solution = pb.solve(pb.problems.biharmonic(), tol=1e-11)
    estimates = [stage.estimate for stage in solution.diagnostics.stages]
    assert solution.status == "stalled"
    assert "Round-off" in solution.diagnostics.message
    assert solution.error_estimate == min(estimates) < estimates[-1]
    assert solution.true_error() < solution.error_estimate < 1e-9


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    seen = []

    def stop(state: Progress) -> None:
        seen.append(state)
        if state.nodes > 500:
            raise KeyboardInterrupt

    solution = pb.solve(pb.problems.helmholtz(), tol=1e-13, progress=stop)
    assert solution.status == "stalled"
    assert "interrupted" in solution.diagnostics.message
    assert solution.diagnostics.nodes == seen[-1].nodes > 500
    assert solution.error_estimate == seen[-1].estimate
    assert [state.nodes for state in seen] == sorted(state.nodes for state in seen)

    def at_once(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TreeSolver, "solve", at_once)
    with pytest.raises(KeyboardInterrupt):
        pb.solve(pb.problems.helmholtz())


def test_stages_tell_of_finer_and_finer_trees(singular):
    stages = singular.diagnostics.stages
    assert all(a.cells < b.cells for a, b in pairwise(stages))
    assert stages[-1].residual < 1e-2 * stages[0].residual
    assert stages[-1].estimate == singular.error_estimate
    assert all(stage.nodes == stage.cells * singular.diagnostics.settings["functions"] for stage in stages)
    assert f"{singular.network.cells} cells" in str(singular.diagnostics)


def test_small_cells_beyond_a_side_share_what_the_large_one_can_tell():
    # One cell beside three of other widths: they share one set of polynomials with it, and nothing is lost by that.
    problem = manufactured(laplace, WAVES, [pb.Dirichlet(u, WAVES)])
    solver = TreeSolver(Rows(Layout(problem, draw_reference(2, 13, 0))))
    root = solver.layout.root.halved(0)
    root = refined(root, {root.halves[1]: [(1, None)]})
    lower, upper = root.halves[1].halves
    root = refined(root, {lower: [(1, None)], upper: [(0, None), (0, None)]})
    fit = solver.solve(root)
    beside = [side for side in solver.local.coarse_sides.values() if side.part.cell is root.halves[0]]
    assert len(beside) == 3
    assert len(set(beside)) == 1
    X = SQUARE.sample(500, "kronecker", 0)
    exact = sp.lambdify((x, y), WAVES)(*X.T)
    apart = np.abs(network_of(solver.layout, fit).evaluate(X, [(0, 0)])[0, 0][:, 0] - exact).max()
    assert apart < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize("deepest", [2, 3])
def test_where_no_cell_can_be_split_nothing_is_known_of_the_error(monkeypatch, deepest):
    monkeypatch.setattr(Cell, "is_divisible", property(lambda cell: cell.depth < 2 * deepest))
    solution = pb.solve(pb.problems.l_shape(), tol=1e-9)
    assert solution.status == "stalled"
    assert "cannot be split" in solution.diagnostics.message
    assert "contradict" not in solution.diagnostics.message
    assert solution.true_error() < 3 * solution.error_estimate


def test_a_straight_flow_needs_one_cell_although_a_velocity_of_zero_is_smooth_nowhere():
    v, p = pb.field("v", x, y), pb.field("p", x, y)
    profile = 4 * y * (1 - y)
    laws = [sp.Eq(pb.laplacian(of), p.diff(k)) for of, k in ((u, x), (v, y))]
    held = [pb.Dirichlet(u, profile), pb.Dirichlet(v, 0), pb.Mean(p, 0)]
    solution = pb.solve(pb.Problem([*laws, sp.Eq(pb.div([u, v]), 0)], SQUARE, held), tol=1e-2)
    assert solution.status == "converged"
    assert solution.diagnostics.stages[-1].cells == 1
    places = SQUARE.sample(50)
    assert solution(places)["u"] == pytest.approx(4 * places[:, 1] * (1 - places[:, 1]), abs=1e-5)


def test_richer_cells_that_share_the_error_of_a_corner_do_not_hide_it():
    """On one cell every two degrees more leave most of the error, so that their distance shows little of it."""
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    corners = [(0, 0), (1, 0), (0.536, 0.844), (-0.425, 0.905), (-0.992, 0.126), (-0.638, -0.77)]
    turned = sp.atan2(-0.905 * x - 0.4254 * y, -0.4254 * x + 0.905 * y)
    singular = (x**2 + y**2) ** 0.39069 * sp.cos(0.78138 * turned)
    exact = singular + sp.exp(x / 4 - 0.22 * y) + sp.cos(1.38 * x + 1) * sp.cos(2.91 * y + 1)
    problem = pb.Problem(
        sp.Eq(-pb.laplacian(u), -exact.diff(x, 2) - exact.diff(y, 2)),
        pb.Polygon((x, y), corners),
        [pb.Dirichlet(u, exact)],
        exact=exact,
    )
    for seed in (0, 1):
        solution = pb.solve(problem, tol=2e-3, seed=seed)
        assert solution.true_error() <= 3 * solution.error_estimate


def test_richer_cells_that_leave_as_much_of_an_equation_vouch_for_nothing():
    """Cells that hardly resolve the third mode of a beam lose it, and richer ones lose it as well."""
    modes = [(1, 1.0), (3, sp.Rational(1, 10))]
    exact = sum(own * sp.sin(k * sp.pi * x) * sp.cos((k * sp.pi) ** 2 * t) for k, own in modes)
    w, beam = pb.field("w", x, t), pb.Interval((x, 0, 1))
    ends = [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x, 2), 0)]
    starts = [pb.Initial(w, exact.subs(t, 0)), pb.Initial(w.diff(t), 0)]
    problem = pb.Problem(
        sp.Eq(w.diff(t, 2), -w.diff(x, 4)), beam * pb.TimeInterval(t, 0, 1), [*ends, *starts], exact=exact
    )
    solution = pb.solve(problem, tol=1e-2, progress=False)
    assert solution.true_error() < 3 * solution.error_estimate
