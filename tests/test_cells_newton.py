"""Nonlinear problems on trees of cells: rows, residuals and steps are consistent, and solves say what they found."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    CoarseAttempts,
    DataRefinement,
    Layout,
    NewtonFitter,
    Rows,
    TreeSolver,
    TreeState,
    between,
    draw_reference,
    faces_of,
    first_tree,
    given_start,
    leaves,
    missed,
    network_of,
    projected,
    refined,
    residuals,
    simple_starts,
    solve_cells_nonlinear,
    squares,
    values_from,
    written,
    zero,
)
from internals import cells_values_of as values_of
from pibls.budget import Budget
from pibls.errors import ProblemError
from pibls.problem import laplacian

x, y, z = pb.coordinates("x y z")
w = pb.field("u", x)
u2 = pb.field("u", x, y)
line = pb.Interval((x, 0, 1))
square = pb.Rectangle((x, 0, 1), (y, 0, 1))


def bratu(load):
    return pb.Problem(w.diff(x, 2) + load * sp.exp(w), line, [pb.Dirichlet(w, 0)])


def solve(problem, tol=1e-6, budget=10.0, seed=0, **guesses):
    return solve_cells_nonlinear(problem, tol, budget, seed, lambda *_: None, **guesses)


def layout_of(problem, degree=9):
    return Layout(problem, draw_reference(len(problem.domain.coordinates), degree, 0))


def norm(lacking):
    return float(np.sqrt(sum(value**2 for value in lacking.values())))


@pytest.mark.parametrize(
    "make", [pb.problems.minimal_surface, pb.problems.kovasznay, pb.problems.lane_emden], ids=lambda make: make.__name__
)
def test_a_settled_state_lacks_what_the_linear_solve_could_not_fulfil(make):
    layout = layout_of(make())
    root = layout.root.halved(0)
    found = NewtonFitter(layout, 1e-12).settle(root, values_from(zero, make()))
    assert found.settled
    again, rows = found.fit, Rows(layout)
    for _ in range(4):
        rows.state = TreeState(layout, again.weights)
        again = TreeSolver(rows).solve(root)
    # Two computations without anything in common but the scales: by elimination, and row by row. The first has sums
    # over branches of the tree as well.
    found = norm(residuals(rows, faces_of(rows, root), rows.state))
    assert 0.5 * again.residual < found < (1 + 1e-6) * again.residual


def octahedron():
    """Eight facets, which cells cut: conditions count there as far as smooth functions see them."""
    corners = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)
    sides = [[i, (i + 1) % 4, top] if top == 4 else [(i + 1) % 4, i, top] for top in (4, 5) for i in range(4)]
    return pb.Solid((x, y, z), corners, sides)


def cooled_solid():
    u = pb.field("u", x, y, z)
    radiates = pb.Condition(sp.Eq(pb.normal_derivative(u) + u**4, x))
    return pb.Problem(-laplacian(u) + u**3 - 1, octahedron(), [radiates])


def measured_flow():
    """Two fields, a nonlinear condition, measurements with noise, and a mean."""
    u, v = u2, pb.field("v", x, y)
    equations = [sp.Eq(u * u.diff(x) + sp.exp(v) * u.diff(y), laplacian(u) + x * y), sp.Eq(laplacian(v), sp.sin(u))]
    told = pb.Observation(u, [[0.5, 0.5], [0.25, 0.6]], [1.0, 2.0], noise=[0.1, 0.01])
    held = pb.Condition(sp.Eq(pb.normal_derivative(v) + v**3, y), on=square.left)
    return pb.Problem(equations, square, [pb.Dirichlet(u, x), held, told, pb.Mean(v, 0)])


@pytest.mark.parametrize("make", [cooled_solid, measured_flow, pb.problems.minimal_surface], ids=lambda m: m.__name__)
@pytest.mark.parametrize("seed", range(2))
def test_rows_and_residuals_agree_at_random_states(make, seed):
    layout = layout_of(make(), 5)
    root = layout.root.halved(0)
    rng = np.random.default_rng(seed)
    parts = [part for leaf in leaves(root) for part in layout.parts(leaf)]
    shape = len(layout.problem.field_names), layout.reference.size
    state = TreeState(layout, {part: 0.1 * rng.standard_normal(shape) for part in parts})
    rows = Rows(layout, state, share=0.7, diffusion=3.0)
    projected_on_facets = 0
    for part in parts:
        (own,) = rows.assembled([part])
        weights = (state.weights[part] / own.units[:, None]).ravel()
        inside = written(own.equation)[0] @ (np.sqrt(part.extent) * weights) - own.source[:, 0]
        expected = np.concatenate([inside, own.condition @ weights - own.value[:, 0]])
        found = rows.residual(part)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())
        projected_on_facets += any(rows._projection(part, rule) is not None for rule in part.boundary.values())
    assert projected_on_facets > 0 or make is not cooled_solid


def test_a_measured_residual_is_that_of_the_equation():
    problem = pb.Problem(-laplacian(u2) + u2**3 - x, square, [pb.Dirichlet(u2, 0)])
    layout = layout_of(problem)
    state = TreeState(layout, projected(layout, layout.root, lambda _, X: X[:, :1] * 0 + 2.0))
    rows = Rows(layout, state)
    (part,) = layout.parts(layout.root)
    factor = rows.scales(part).factors[0]
    inside = factor**2 * float(part.weights @ (8.0 - part.points[:, 0]) ** 2)
    depth = 1.0  # of the cell, times a boundary of length four
    assert norm(residuals(rows, (), state)) ** 2 == pytest.approx(inside + 4 * depth * 4.0, rel=1e-6)


def test_steps_shrink_like_squares_on_a_fixed_tree():
    problem = pb.problems.cubic_reaction()
    layout = layout_of(problem)
    newton = NewtonFitter(layout, 1e-14)
    newton.settle(layout.root.halved(1), values_from(zero, problem))
    left = [np.sqrt(max(0.0, entry["removable"] ** 2)) for entry in newton.history]
    assert len(left) <= 6
    assert left[2] < 10 * left[1] ** 2 / left[0]
    assert left[2] < 1e-2 * left[1]


def test_a_share_of_the_load_is_the_same_as_smaller_coefficients():
    line = pb.Interval((x, 0, 1))
    whole, half = (
        pb.Problem(w.diff(x, 2) + k * sp.exp(w) - k * x * w, line, [pb.Dirichlet(w, 2 * k * x)]) for k in (1.0, 0.5)
    )
    layouts = [layout_of(problem, 10) for problem in (whole, half)]
    middle = []
    for layout, share in zip(layouts, (0.5, 1.0), strict=True):
        start = projected(layout, layout.root, values_from(zero, layout.problem))
        fit = NewtonFitter(layout, 1e-10).descend(layout.root, start, share=share).fit
        middle.append(values_of(layout, fit)(fit.parts[0], np.array([[0.5]]))[0, 0])
    assert middle[0] == pytest.approx(middle[1], rel=1e-8)


def test_an_equation_without_linear_terms_keeps_them_while_its_source_is_put_in():
    # −(w′ + w′³)′ = k: without the term in the bracket there is no equation.
    whole, half = (
        pb.Problem(-(1 + 3 * w.diff(x) ** 2) * w.diff(x, 2) - k, line, [pb.Dirichlet(w, 0)]) for k in (2.0, 1.0)
    )
    middle = []
    for problem, share in ((whole, 0.5), (half, 1.0), (whole, 1.0)):
        layout = layout_of(problem, 10)
        start = projected(layout, layout.root, values_from(zero, problem))
        fit = NewtonFitter(layout, 1e-10).descend(layout.root, start, share=share).fit
        middle.append(values_of(layout, fit)(fit.parts[0], np.array([[0.5]]))[0, 0])
    assert middle[0] == pytest.approx(middle[1], rel=1e-8)
    assert middle[2] > 1.5 * middle[0]


def test_a_function_is_measured_inside_a_cut_cell():
    disk = pb.Disk((x, y), (0, 0), 1)
    layout = layout_of(pb.Problem(-laplacian(u2) + u2**3 - 1, disk, [pb.Dirichlet(u2, 0)]))
    weights = projected(layout, layout.root, lambda _, X: X[:, :1])
    found = sum(float(squares(layout, part, own).sum()) for part, own in weights.items())
    assert found == pytest.approx(np.pi / 4, rel=0.02)  # 4/3 in the box around it
    whole = layout_of(pb.Problem(-laplacian(u2) + u2**3 - 1, square, [pb.Dirichlet(u2, 0)]))
    ((part, own),) = projected(whole, whole.root, lambda _, X: X[:, :1]).items()
    assert float(squares(whole, part, own)[0]) == pytest.approx(1 / 3)


def test_more_diffusion_is_the_same_as_a_larger_coefficient():
    thick, thin = pb.problems.burgers_steady(0.4), pb.problems.burgers_steady(0.1)
    layout = layout_of(thin, 14)
    conditions = [pb.Dirichlet(w, -sp.tanh(x / sp.Rational(1, 5)))]
    same = pb.Problem(thick.equations, thick.domain, conditions)
    start = projected(layout, layout.root, values_from(zero, thin))
    one = NewtonFitter(layout, 1e-10).descend(layout.root, start, diffusion=4.0).fit
    other = solve(same, 1e-8)
    X = np.linspace(-0.9, 0.9, 7)[:, None]
    np.testing.assert_allclose(values_of(layout, one)(one.parts[0], X)[:, 0], other(X[:, 0]), atol=1e-5)


def test_fields_are_told_on_finer_trees():
    problem = pb.problems.p_laplacian()
    layout = layout_of(problem)
    start = values_from(given_start(x**2 * y, problem), problem)
    root = layout.root
    weights = projected(layout, root, start)
    assert missed(layout, weights, start) < 1e-8
    fine = refined(root, {root: [(0, None), (1, None)]})
    newton = NewtonFitter(layout, 1e-6)
    fit = newton.settle(root, start).fit
    (part,) = fit.parts
    again = projected(layout, fine, values_of(layout, fit), fit.weights)
    state = TreeState(layout, again)
    for leaf in again:
        X = leaf.points[:5]
        there = TreeState(layout, fit.weights)(part, X, [("u", (1, 1))])
        np.testing.assert_allclose(state(leaf, X, [("u", (1, 1))]), there, atol=1e-3)
    half = between(weights, fit.weights, 0.5)
    np.testing.assert_allclose(half[part], (weights[part] + fit.weights[part]) / 2)


@pytest.mark.parametrize("name", ["bratu", "cubic_reaction", "lane_emden", "p_laplacian", "kovasznay"])
def test_zoo_converges_to_the_tolerance(name):
    solution = solve(pb.problems.catalogue()[name](), seed=1)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.error_estimate <= 1e-6
    assert 0.2 < solution.error_estimate / solution.true_error() < 5
    assert solution.diagnostics.iterations


def test_layers_are_followed_from_a_larger_diffusion():
    eps = sp.Rational(1, 20)
    exact = sp.tanh((x + y / 2 - sp.Rational(3, 4)) / sp.sqrt(sp.Rational(5, 2)) / eps)
    equation = -(eps**2) * laplacian(u2) + u2**3 - u2
    problem = pb.Problem(equation, square, [pb.Dirichlet(u2, exact)], exact={"u": exact})
    solution = solve(problem, 1e-3)
    assert solution.status == "converged", solution.diagnostics.message
    assert 0.2 < solution.error_estimate / solution.true_error() < 5


def test_a_shock_finds_its_place():
    solution = solve(pb.problems.burgers_steady())
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    assert "more than one" not in solution.diagnostics.message


def test_a_shock_that_nothing_holds_in_place_is_not_taken_for_found():
    line = pb.Interval((x, -1, 1))
    exact = -sp.tanh(30 * (x - sp.Rational(1, 7)))  # its values at both ends are one, to rounding
    problem = pb.Problem(w * w.diff(x) - w.diff(x, 2) / 60, line, [pb.Dirichlet(w, exact)], exact=exact)
    solution = solve(problem, tol=1e-2, budget=0.5)
    assert solution.status == "stalled"
    assert solution.error_estimate > 0.1


@pytest.mark.parametrize(
    ("problem", "end"),
    [
        (bratu(4), 87.8),  # at 3.5138
        (pb.problems.bratu_unforced(10), 68.1),  # at 6.808
        # A plate that is pulled down: at 0.35. Its iterations end on coarse cells where it touches the ground.
        (pb.Problem(w.diff(x, 2) - 0.6 / (1 + w) ** 2, pb.Interval((x, -1, 1)), [pb.Dirichlet(w, 0)]), 58.3),
    ],
)
def test_no_solution_is_told_with_the_load_at_which_the_branch_ends(problem, end):
    solution = solve(problem)
    assert solution.status == "ill-posed"
    assert solution.error_estimate == np.inf
    message = solution.diagnostics.message
    assert message.startswith("No solution was found")
    found = re.search(r"ends where (\d+) % of nonlinear terms, sources and data are put in \((\d+) %", message)
    assert found is not None
    assert all(abs(float(share) - end) < 3 for share in found.groups())


@pytest.mark.parametrize(("problem", "tol"), [(pb.problems.bratu_unforced(6.9), 1e-3), (bratu(3.52), 1e-6)])
def test_just_beyond_a_fold_nothing_converges(problem, tol):
    # Solutions end at 6.808 on the square, and at 3.5138 on the line.
    solution = solve(problem, tol, budget=0.5)
    assert solution.status != "converged"
    assert solution.error_estimate >= 1


def test_just_before_a_fold_it_does():
    assert solve(bratu(3.51)).status == "converged"


def test_a_solution_that_blows_up_is_not_taken_for_one():
    t = pb.coordinates("t")
    u = pb.field("u", t)
    problem = pb.Problem(sp.Eq(u.diff(t), u**2), pb.TimeInterval(t, 0, 2), [pb.Initial(u, 1)])
    solution = solve(problem, budget=1.0)
    assert solution.status in {"stalled", "ill-posed"}
    assert solution.error_estimate > 0.1
    assert any(words in solution.diagnostics.message for words in ("no solution", "contradict each other"))


def bratu_middle(sign):
    """Return u(½) of the smaller or larger solution for λ = 1, from the roots of θ = √2 cosh(θ/4)."""
    theta = 1.0 if sign < 0 else 12.0
    for _ in range(100):
        value, slope = np.sqrt(2) * np.cosh(theta / 4) - theta, np.sqrt(2) * np.sinh(theta / 4) / 4 - 1
        theta -= value / slope
    return 2 * np.log(np.cosh(theta / 4))


def test_of_two_solutions_the_start_chooses_and_the_message_tells():
    small, large = solve(bratu(1)), solve(bratu(1), start={w: 4 * sp.sin(sp.pi * x)})
    assert small([0.5]) == pytest.approx(bratu_middle(-1), abs=1e-6)
    assert large([0.5]) == pytest.approx(bratu_middle(1), abs=1e-5)
    # Another start near the larger one leads there too, though simple starts lead to the smaller.
    other = solve(bratu(1), 1e-5, start=14.8 * x * (1 - x))
    assert other([0.5]) == pytest.approx(bratu_middle(1), abs=1e-3)
    for solution, start in ((small, "zero"), (large, "the given start")):
        assert solution.status == "converged"
        assert f"more than one solution: this is the one reached from {start}" in solution.diagnostics.message
    again = solve(bratu(1.1), start=large)
    assert again([0.5]) > 3


def test_a_sharper_second_solution_on_a_square_is_found_and_said():
    solution = solve(pb.problems.bratu_unforced(1), 1e-3)
    assert solution([[0.5, 0.5]])[0] == pytest.approx(0.0781, rel=1e-2)
    assert "more than one solution" in solution.diagnostics.message


def test_a_trivial_solution_is_returned_and_the_branch_beside_it_named():
    problem = pb.Problem(w.diff(x, 2) + 20 * (w - w**3), line, [pb.Dirichlet(w, 0)])
    solution = solve(problem)
    assert solution.status == "converged"
    assert np.abs(solution(np.linspace(0, 1, 20))).max() < 1e-12
    assert "more than one solution" in solution.diagnostics.message


@pytest.mark.parametrize(
    ("equation", "exact"),
    [
        (w.diff(x) - 1 / w, sp.sqrt(1 + 2 * x)),
        (w.diff(x) - sp.sqrt(w), (1 + x / 2) ** 2),
        (w.diff(x) + w * sp.log(w) - sp.exp(x) * (1 + x), sp.exp(x)),
    ],
)
def test_equations_without_a_value_at_zero_start_elsewhere(equation, exact):
    problem = pb.Problem(equation, line, [pb.Dirichlet(w, 1, on=line.left)], exact=exact)
    solution = solve(problem)
    assert solution.status == "converged", (solution.diagnostics.message, solution.diagnostics.stages)
    assert solution.true_error() < 1e-6


def test_nonlinear_conditions_and_conditions_that_hold_exactly():
    # u = 2/(2 − x) with u² + u' = 3/2 at the left end; the other root of the condition gives another solution.
    condition = pb.Condition(sp.Eq(w**2 + w.diff(x), sp.Rational(3, 2)), on=[0.0], exact=True)
    problem = pb.Problem(sp.Eq(w.diff(x), w**2 / 2), line, [condition], exact=2 / (2 - x))
    solution = solve(problem, start=1 + x / 2)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    assert abs(float(np.asarray(solution.residual(problem.conditions[0]))[0])) < 1e-9


def test_curved_domains_and_a_free_boundary_of_radiation():
    disk = pb.Disk((x, y), (0, 0), 1)
    exact = 1 + (x**2 + y**2) / 4
    # ∂u/∂n = 1/2, so that u⁴ + ∂u/∂n has the value (5/4)⁴ + 1/2 on the circle.
    total = u2**4 + x * u2.diff(x) + y * u2.diff(y)
    radiation = pb.Condition(sp.Eq(total, sp.Rational(5, 4) ** 4 + sp.Rational(1, 2)), on=disk.boundary)
    problem = pb.Problem(laplacian(u2) - u2**2 - 1 + exact**2, disk, [radiation], exact={"u": exact})
    solution = solve(problem, start=1)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-6


def test_where_conditions_at_zero_determine_nothing_a_constant_starts():
    disk, v = pb.Disk((x, y), (0, 0), 1), pb.field("v", x, y)
    radiates = pb.Condition(sp.Eq(pb.normal_derivative(v) + v**4, sp.Rational(1, 2)))
    problem = pb.Problem(sp.Eq(-pb.laplacian(v), 1), disk, [radiates], exact=1 + (1 - x**2 - y**2) / 4)
    solution = solve(problem, tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4


def test_easier_problems_lead_the_way():
    solution = solve(pb.problems.burgers_steady(0.1), continuation=[pb.problems.burgers_steady(0.3)])
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_equations_without_a_value_at_any_start_ask_for_one():
    problem = pb.Problem(w.diff(x) - sp.log(w - 30), line, [pb.Dirichlet(w, 1)])
    with pytest.raises(ProblemError, match=r"no finite value at any start.*zero.*start="):
        solve(problem)


def test_simple_starts_meet_the_conditions():
    problem = pb.problems.p_laplacian()
    layout = layout_of(problem)
    starts = dict(simple_starts(layout, layout.root, 0))
    assert list(starts) == ["zero", "a harmonic function", "a bump", "a random function"]
    (part,) = layout.parts(layout.root)
    edge = problem.domain.boundary.sample(40).points
    for name in ("a harmonic function", "a bump"):
        np.testing.assert_allclose(starts[name](part, edge)[:, 0], problem.exact_values(edge)["u"], rtol=1e-2)
    state = TreeState(layout, projected(layout, layout.root, starts["a harmonic function"]))
    assert np.abs(sum(state(part, part.points, [("u", (2, 0)), ("u", (0, 2))]))).max() < 0.1


def test_continuation_finds_what_direct_iterations_do_not(monkeypatch):
    # Without any other start, the solution is followed from the linear problem.
    monkeypatch.setattr("pibls.cells.coarse.simple_starts", lambda *_: iter(()))
    problem = bratu(3)
    layout = layout_of(problem, 10)
    budget = Budget(10.0)
    found = CoarseAttempts(NewtonFitter(layout, 1e-3, budget), budget, 0).solution(
        first_tree(DataRefinement(Rows(layout)), 1e-3), None
    )
    assert found.failure == ""
    assert "by continuation" in found.remark
    middle = values_of(layout, found.descent.fit)(found.descent.fit.parts[0], np.array([[0.5]]))[0, 0]
    assert middle == pytest.approx(pb.problems.bratu_1d(3).exact_values([0.5])["u"][0], abs=1e-4)


def test_attempts_go_on_on_finer_cells_whatever_settled_on_coarse_ones(monkeypatch):
    seen, attempt = [], CoarseAttempts.attempt

    def compromised(self, name, root, start, **most):
        found = attempt(self, name, root, start, most=1)
        seen.append(sum(1 for _ in leaves(root)))
        poor = replace(found.descent, settled=len(seen) == 1, residual=0.5, linear=0.5)
        return replace(found, descent=poor)

    monkeypatch.setattr(CoarseAttempts, "attempt", compromised)
    monkeypatch.setattr(CoarseAttempts, "_by_continuation", lambda *_: None)
    layout = layout_of(bratu(3))
    attempts = CoarseAttempts(NewtonFitter(layout, 1e-3, budget := Budget(10.0)), budget, 0)
    found = attempts.solution(layout.root, None)
    cells = sorted(set(seen))
    assert len(cells) == 4
    assert sum(1 for _ in leaves(found.descent.fit.root)) == cells[-1]


def test_a_branch_is_followed_on_finer_cells_from_where_it_ended():
    layout = layout_of(bratu(4))
    attempts = CoarseAttempts(NewtonFitter(layout, 1e-3, budget := Budget(10.0)), budget, 0)
    shares = []
    for root in (layout.root, layout.root.halved(0)):
        before = len(attempts.newton.history)
        assert attempts._by_continuation(root) is not None
        shares.append(len(attempts.newton.history) - before)
    assert list(attempts.ends.values()) == pytest.approx([0.878, 0.878], abs=0.03)
    assert shares[1] < shares[0]
    late = CoarseAttempts(NewtonFitter(layout, 1e-3, nothing := Budget(1e-9)), nothing, 0)
    late.newton.budget.spend(1e6)
    assert late._by_continuation(layout.root) is None
    assert late.ends == {}


def test_the_same_seed_gives_the_same_solution():
    one, two = (solve(pb.problems.bratu_1d(), seed=3) for _ in range(2))
    X = np.linspace(0, 1, 9)
    np.testing.assert_array_equal(one(X), two(X))


def test_a_slanted_front_is_found_as_it_gets_thinner():
    width, across = 0.03, (x + 2 * y - sp.Rational(3, 10)) / sp.sqrt(5)
    box = pb.Rectangle((x, -1, 1), (y, -1, 1))
    exact = sp.tanh(across / (sp.sqrt(2) * width))
    problem = pb.Problem(width**2 * laplacian(u2) + u2 - u2**3, box, [pb.Dirichlet(u2, exact)])
    layout = layout_of(problem)
    budget = Budget(10.0)
    found = CoarseAttempts(NewtonFitter(layout, 1e-3, budget), budget, 0)._by_diffusion(
        first_tree(DataRefinement(Rows(layout)), 1e-3)
    )
    assert found is not None
    X = box.sample(500, "kronecker", 1)
    values = network_of(layout, found.descent.fit).evaluate(X, [(0, 0)])[0, 0][:, 0]
    assert np.sqrt(np.mean((values - np.tanh((X @ [1, 2] - 0.3) / np.sqrt(10) / width)) ** 2)) < 0.2


def test_no_other_start_is_tried_once_too_much_is_spent():
    problem = bratu(10)  # without a solution
    layout = layout_of(problem)
    starts = CoarseAttempts(NewtonFitter(layout, 1e-3, budget := Budget(1e-6)), budget, 0)
    starts.solution(first_tree(DataRefinement(Rows(layout)), 1e-3), None)
    assert starts.tried == ["zero"]
