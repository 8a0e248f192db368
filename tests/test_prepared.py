"""A prepared problem gives the solutions that a solve gives, for other right-hand sides."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import PreparedTree, keeps_factors
from pibls.tuning import prepared as preparing

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
DISK = pb.Disk((x, y), (0, 0), 1)


def made(shape, source, value, **options):
    return pb.Problem(sp.Eq(-pb.laplacian(u) + x * u, source), shape, [pb.Dirichlet(u, value)], **options)


@pytest.mark.parametrize("shape", [SQUARE, DISK])
def test_other_data_give_what_a_solve_gives(shape, monkeypatch):
    prepared = pb.prepare(made(shape, 1, sp.exp(x)), tol=1e-6)
    monkeypatch.setattr(preparing, "solve", None)  # nothing is solved anew
    exact = sp.cos(x) * sp.exp(y / 2)
    source = -exact.diff(x, 2) - exact.diff(y, 2) + x * exact
    found = prepared.solve(source, [pb.Dirichlet(u, exact)])
    X = shape.sample(50, seed=3)
    assert found.status == "converged"
    assert np.abs(found(X) - np.cos(X[:, 0]) * np.exp(X[:, 1] / 2)).max() < 1e-5
    assert found.error_estimate < 1e-6


def test_factors_are_those_of_the_same_domain_and_as_many_conditions():
    first = made(SQUARE, 1, 0)
    more = pb.Problem(first.equations, SQUARE, [*first.conditions, pb.Dirichlet(u, 0, on=SQUARE.left)])
    assert keeps_factors(first, [made(SQUARE, x, 1)])
    assert not keeps_factors(first, [made(DISK, 1, 0)])
    assert not keeps_factors(first, [more])


def test_unchanged_data_give_the_same_solution():
    problem = made(DISK, sp.exp(y), 1)
    prepared = pb.prepare(problem)
    X = DISK.sample(20, seed=1)
    assert np.allclose(prepared.solve()(X), prepared.solution(X), rtol=0, atol=1e-12)


def test_many_sources_are_solved_as_one_by_one():
    prepared = pb.prepare(made(DISK, 1, y), tol=1e-6)
    sources = [sp.cos(x), sp.Integer(3), x * y]
    X = DISK.sample(20, seed=1)
    for one, source in zip(prepared.solve_many(sources), sources, strict=True):
        alone = prepared.solve(source)
        assert np.allclose(one(X), alone(X), rtol=0, atol=0.1 * alone.error_estimate)
        assert one.error_estimate == pytest.approx(alone.error_estimate, rel=1e-3, abs=1e-12)


def test_jumps_across_interfaces_stay_as_they_are():
    inner = pb.Disk((x, y), (0.5, 0.5), 0.25)
    slope = pb.normal_derivative(u)
    laws = [sp.Eq(pb.inside(u), pb.outside(u) + 1), sp.Eq(pb.outside(slope), pb.inside(slope))]
    step = pb.Interface(laws, on=inner)
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), 0), SQUARE, [pb.Dirichlet(u, 0), step])
    prepared = pb.prepare(problem, tol=1e-5)
    found = prepared.solve(conditions=[pb.Dirichlet(u, 3), step])
    X = np.array([[0.5, 0.5], [0.1, 0.2]])
    assert np.allclose(found(X), [4.0, 3.0], atol=1e-4)


def test_data_that_cells_do_not_resolve_are_solved_anew():
    prepared = pb.prepare(made(SQUARE, 1, 0), tol=1e-4)
    narrow = sp.exp(-2000 * ((x - 0.3) ** 2 + (y - 0.6) ** 2))
    found = prepared.solve(source=1000 * narrow)
    again = pb.solve(made(SQUARE, 1000 * narrow, 0), tol=1e-4)
    X = SQUARE.sample(30, seed=2)
    assert found.status == "converged"
    assert np.abs(found(X) - again(X)).max() < 1e-3 * np.abs(again(X)).max()


@pytest.mark.parametrize(
    ("source", "conditions", "words"),
    [
        (u, None, "expression of the coordinates"),
        ("x", None, "expression of the coordinates"),
        ([1, 2], None, "one expression per equation, 1 in all"),
        (None, [pb.Neumann(u, 0)], "Only right-hand sides may change"),
        (None, [pb.Dirichlet(u, 0, on=SQUARE.left)], "Only right-hand sides may change"),
        (None, [], "Give all of them"),
    ],
)
def test_anything_but_other_data_is_refused(source, conditions, words):
    prepared = pb.prepare(made(SQUARE, 1, 0), tol=1e-2)
    with pytest.raises(pb.PiblsError, match=words):
        prepared.solve(source, conditions)


def test_nonlinear_problems_are_refused():
    with pytest.raises(pb.PiblsError, match="linear problems"):
        pb.prepare(pb.Problem(sp.Eq(-pb.laplacian(u) + u**2, 1), SQUARE, [pb.Dirichlet(u, 0)]))


def test_systems_and_elastic_bodies_give_what_a_solve_gives(monkeypatch):
    v, w = pb.field("v", x, y), pb.field("w", x, y)
    coupled = [sp.Eq(-pb.laplacian(v) + w, 1), sp.Eq(-pb.laplacian(w) - x * v, y)]
    fixed = [pb.Dirichlet(v, 0), pb.Dirichlet(w, 0)]
    prepared = pb.prepare(pb.Problem(coupled, SQUARE, fixed), tol=1e-4)
    alone = pb.solve(pb.Problem([sp.Eq(coupled[0].lhs, 2), sp.Eq(coupled[1].lhs, sp.exp(x))], SQUARE, fixed), tol=1e-4)
    elastic = pb.problems.elasticity()
    body, loads = pb.prepare(elastic, tol=1e-3), [own.form.source for own in elastic.statements[:2]]
    pairs = zip(elastic.equations, loads, strict=True)
    loaded = [sp.Eq(own.lhs - own.rhs - load, -2 * load) for own, load in pairs]
    bent = pb.solve(pb.Problem(loaded, elastic.domain, elastic.conditions), tol=1e-3)
    monkeypatch.setattr(preparing, "solve", None)  # nothing is solved anew
    X = SQUARE.sample(20, seed=1)
    found = prepared.solve([2, sp.exp(x)])
    for name in ("v", "w"):
        assert np.allclose(found(X)[name], alone(X)[name], rtol=0, atol=2e-4 * np.abs(alone(X)[name]).max())
    again, places = body.solve([-2 * load for load in loads]), elastic.domain.sample(20, seed=1)
    for name, values in bent(places).items():
        assert np.allclose(again(places)[name], values, rtol=0, atol=2e-3 * np.abs(values).max())


def test_sources_that_want_finer_trees_need_no_new_solves(monkeypatch):
    # A source that is antisymmetric about the diagonal shows nothing of the singularity in the corner.
    corner = pb.Polygon((x, y), [(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)])
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), x + y), corner, [pb.Dirichlet(u, 0)])
    prepared = pb.prepare(problem, tol=1e-4)
    exact = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 1), corner, [pb.Dirichlet(u, 0)]), tol=1e-5)
    monkeypatch.setattr(preparing, "solve", None)
    X = corner.sample(50, seed=1)
    first, others = prepared.solve(1), [prepared.solve(own) for own in (x * y, sp.exp(x), 1)]
    assert first.status == "converged"
    assert np.abs(first(X) - exact(X)).max() < 1e-3 * np.abs(exact(X)).max()
    assert np.array_equal(others[-1](X), first(X))


def test_sources_are_judged_where_the_better_one_of_two_solutions_is_told(monkeypatch):
    ring = pb.Disk((x, y), (0, 0), 1) - pb.Disk((x, y), (0, 0), 0.4)
    prepared = pb.prepare(pb.Problem(sp.Eq(-pb.laplacian(u), 1), ring, [pb.Dirichlet(u, 0)]))
    monkeypatch.setattr(preparing, "solve", None)  # nothing is solved anew
    square = x**2 + y**2
    exact = (1 - square) * (square - sp.Rational(4, 25)) * sp.sin(x + y)
    found = prepared.solve(-sp.diff(exact, x, 2) - sp.diff(exact, y, 2))
    X = ring.sample(100, seed=1)
    values = sp.lambdify((x, y), exact)(*X.T)
    assert found.error_estimate <= 1e-6
    assert np.abs(found(X) - values).max() < 1e-5 * np.abs(values).max()


def test_rounding_is_refined_only_where_the_tolerance_asks_for_it():
    found, fitter = pb.prepare(pb.Problem(sp.Eq(-pb.laplacian(u), 1), SQUARE, [pb.Dirichlet(u, 0)])).comparison
    trees = [PreparedTree(fitter.solver_of(found.fit_layout), found.fit.root, tol) for tol in (1e-6, 1e-14)]
    sources = np.ones((sum(len(own.points) for own in trees[0].stated), 1))
    once, refined = ([own.fit(sources).columns[part] for part in own.parts] for own in trees)
    apart = max(np.abs(a - b).max() for a, b in zip(once, refined, strict=True))
    assert 0.0 < apart < 1e-8 * max(np.abs(own).max() for own in refined)


@pytest.mark.parametrize(("name", "richer"), [("l_shape", False), ("poisson", True)])
def test_trees_restated_for_other_data_are_still_known_to_be_two_or_one(name, richer):
    prepared = pb.prepare(getattr(pb.problems, name)(), tol=1e-4)
    found = prepared.comparison[0]
    layouts = (own.restated(prepared.problem) for own in (found.fit_layout, found.better_layout))
    again = replace(found, **dict(zip(("fit_layout", "better_layout"), layouts, strict=True)))
    assert found.is_on_one_tree == again.is_on_one_tree == richer
    # From tree to tree residuals tell nothing of errors in corners.
    assert again.error_at(1.0) == (1.0 if richer else found.error_at(1.0))
