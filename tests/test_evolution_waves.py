"""Evolutions in periodic boxes on waves, beside formulas and beside the same evolution with matrices."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    Blocks,
    Galerkin,
    QuadratureRule,
    Trajectory,
    Waves,
    compressed,
    find_evolution,
    harmonics,
    suits_waves,
)
from pibls.problems import gray_scott

x, y, z, t = pb.coordinates("x y z t")
u, v = pb.field("u", x, y, t), pb.field("v", x, y, t)
BOX = pb.Rectangle((x, -1, 2), (y, 0, 1)) * pb.TimeInterval(t, 0, 1)
ALONG, UP = 2 * sp.pi * x / 3, 2 * sp.pi * y
ROUND = [pb.Periodic(w, axis) for w in (u, v) for axis in (x, y)]
START = {u: sp.exp(sp.sin(ALONG) + sp.cos(UP)), v: sp.sin(ALONG + UP)}
RATES = (
    (u.diff(x, 2) + u.diff(y, 2)) / 50 - u * v**2 + 0.3 * u.diff(x) + sp.sin(ALONG) * v.diff(y) + sp.cos(t) * u,
    (v.diff(x, 2) + v.diff(y, 2)) / 3 + u * v,
)


def evolution():
    equations = [sp.Eq(u.diff(t), RATES[0]), sp.Eq(v.diff(t, 2), RATES[1])]
    starts = [pb.Initial(w, value) for w, value in START.items()]
    return find_evolution(pb.Problem(equations, BOX, [*ROUND, *starts, pb.Initial(v.diff(t), sp.cos(UP))]))


def test_rates_are_those_of_the_equations():
    waves = Waves(evolution(), 14)
    (found,) = waves.rates(np.array([0.3]), waves.initial()[None])
    X = waves.points(waves.side)
    for number, rate in zip((0, 2), RATES, strict=True):
        wanted = rate.subs(START).doit().subs(t, 0.3)
        values = sp.lambdify((x, y), wanted)(*X.T)
        np.testing.assert_allclose(found.reshape(3, -1)[number], values, atol=1e-8)
    np.testing.assert_allclose(found.reshape(3, -1)[1], np.cos(2 * np.pi * X[:, 1]), atol=1e-12)


def test_blocks_solve_with_the_jacobian_of_a_linear_evolution():
    heat = sp.Eq(u.diff(t), pb.laplacian(u) / 9 + u.diff(x) - 2 * u)
    problem = pb.Problem(heat, BOX, [*ROUND[:2], pb.Initial(u, START[u])])
    waves = Waves(find_evolution(problem), 6)
    assert waves.is_linear
    state, time = np.random.default_rng(0).normal(size=waves.size), np.zeros(1)
    solve = waves.jacobian(0.0, waves.initial()).shifted(2.0 + 3.0j)
    back = solve((2.0 + 3.0j) * state - waves.rates(time, state[None])[0])
    np.testing.assert_allclose(back, state, atol=1e-10)


def test_a_network_has_the_values_of_the_lattice():
    waves = Waves(evolution(), 5)
    states = np.random.default_rng(1).normal(size=(1, 2, waves.size))
    network = waves.network(Trajectory(np.array([0.0, 1.0]), states))
    X = np.column_stack([waves.points(waves.side), np.ones(waves.side**2)])
    found = network.evaluate(X, [(0, 0, 0)])[0, 0, 0]
    wanted = states.sum(axis=(0, 1)).reshape(3, -1)[:2]
    np.testing.assert_allclose(found.T, wanted, atol=1e-11)


def test_rates_are_those_of_matrices():
    waves = Waves(find_evolution(gray_scott()), 6)
    rule = QuadratureRule(waves.points(30), np.full(900, 4 / 900))
    galerkin = Galerkin(waves.evolution, compressed(harmonics(np.zeros(2), np.full(2, np.pi), 6), rule))
    assert isinstance(waves.jacobian(0.0, waves.initial()), Blocks)
    speeds = [own.sizes(own.rates(np.zeros(1), own.initial()[None]))[0] for own in (waves, galerkin)]
    np.testing.assert_allclose(speeds[0], speeds[1] / np.sqrt(4.0), rtol=1e-5)


def test_two_spots_become_patterns():
    spread = sp.Rational(1, 5000)
    spot = sp.exp(8 * (sp.cos(sp.pi * x) + sp.cos(sp.pi * y) - 2)) / 4
    equations = [
        sp.Eq(u.diff(t), 2 * spread * pb.laplacian(u) - u * v**2 + (1 - u) / 25),
        sp.Eq(v.diff(t), spread * pb.laplacian(v) + u * v**2 - v / 10),
    ]
    domain = pb.Rectangle((x, -1, 1), (y, -1, 1)) * pb.TimeInterval(t, 0, 20)
    problem = pb.Problem(equations, domain, [*ROUND, pb.Initial(u, 1 - 2 * spot), pb.Initial(v, spot)])
    solution, finer = pb.solve(problem, tol=1e-4, progress=False), pb.solve(problem, tol=1e-8, progress=False)
    assert (solution.status, finer.status) == ("converged", "converged")
    X = domain.sample(500)
    for name in "uv":
        wanted = finer(X)[name]
        assert np.linalg.norm(solution(X)[name] - wanted) < 1e-4 * np.linalg.norm(wanted)


def spots(domain, conditions, tol):
    spot = sp.exp(8 * (sp.cos(sp.pi * x) + sp.cos(sp.pi * y / 2) - 2)) / 4
    rates = -u * v**2 + (1 - u) / 25 + pb.laplacian(u) / 500, u * v**2 - v / 10 + pb.laplacian(v) / 1000
    equations = [sp.Eq(w.diff(t), rate) for w, rate in zip((u, v), rates, strict=True)]
    starts = [pb.Initial(u, 1 - 2 * spot), pb.Initial(v, spot)]
    return pb.solve(pb.Problem(equations, domain, [*conditions, *starts]), tol=tol, progress=False)


def test_sides_that_nothing_passes_are_mirrors():
    times = pb.TimeInterval(t, 0, 10)
    quarter, whole = pb.Rectangle((x, 0, 1), (y, 0, 2)) * times, pb.Rectangle((x, -1, 1), (y, -2, 2)) * times
    walls = [pb.Neumann(w, 0, on=part) for w in (u, v) for part in (quarter.left | quarter.top, quarter.right)]
    walls += [pb.Neumann(w, 0, on=quarter.bottom) for w in (u, v)]
    mirrored, repeated = spots(quarter, walls, 1e-6), spots(whole, ROUND, 1e-8)
    assert (mirrored.status, repeated.status) == ("converged", "converged")
    assert mirrored.diagnostics.method == "Lines"
    X = quarter.sample(500)
    for name in "uv":
        wanted = repeated(X)[name]
        assert np.linalg.norm(mirrored(X)[name] - wanted) < 1e-6 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("rate", "condition"),
    [
        (pb.laplacian(u) + u.diff(x), pb.Neumann(u, 0)),
        (pb.laplacian(u) + x**2 * u, pb.Neumann(u, 0)),
        (pb.laplacian(u), pb.Neumann(u, 1)),
        (pb.laplacian(u), pb.Robin(u, 1, 1, 0)),
        (pb.laplacian(u), pb.Neumann(u, 0, on=BOX.left)),
    ],
)
def test_other_sides_are_no_mirrors(rate, condition):
    problem = pb.Problem(sp.Eq(u.diff(t), rate), BOX, [condition, pb.Initial(u, 0)])
    assert not suits_waves(find_evolution(problem))


def test_a_wave_of_second_order_goes_round_and_is_kept(tmp_path):
    exact = sp.sin(ALONG + UP - 3 * t) + sp.cos(ALONG) * sp.cos(2 * sp.pi / 3 * t)
    speed = 9 / ((2 * sp.pi / 3) ** 2 + (2 * sp.pi) ** 2)
    source = exact.diff(t, 2) - speed * (exact.diff(x, 2) + exact.diff(y, 2))
    given = [*ROUND[:2], pb.Initial(u, exact.subs(t, 0)), pb.Initial(u.diff(t), exact.diff(t).subs(t, 0))]
    problem = pb.Problem(sp.Eq(u.diff(t, 2), speed * pb.laplacian(u) + source), BOX, given, exact=exact)
    solution = pb.solve(problem, tol=1e-8, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-8
    X = BOX.sample(100)
    np.testing.assert_array_equal(pb.load(solution.save(tmp_path / "wave.pibls"))(X), solution(X))


@pytest.mark.parametrize(
    ("conditions", "equation"),
    [
        ([pb.Periodic(u, x), pb.Dirichlet(u, 0, on=BOX.bottom | BOX.top)], u.diff(t) - pb.laplacian(u)),
        ([pb.Dirichlet(u, 0)], u.diff(t) - pb.laplacian(u)),
        (ROUND[:2], u.diff(t) - pb.laplacian(u).diff(t) - pb.laplacian(u)),
    ],
)
def test_other_evolutions_keep_their_matrices(conditions, equation):
    assert not suits_waves(find_evolution(pb.Problem(equation, BOX, [*conditions, pb.Initial(u, 0)])))
