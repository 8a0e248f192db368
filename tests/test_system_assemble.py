"""Rows of the system against coefficients times derivatives, written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import InputError, ProblemError, ResourceError
from pibls.features import BroadNetwork, draw_network
from pibls.geometry import Points
from pibls.system import Balanced, Penalties, assemble, check_points_match, system_bytes

PLAIN = Penalties(1.0, 1.0)  # rows as they are


def network_for(problem, nodes=7, enhancement=3, seed=3):
    groups = [("sin", nodes, 2.0), ("tanh", nodes, 2.0)]
    top = [("tanh", enhancement, 1.0)] if enhancement else []
    return draw_network(np.random.default_rng(seed), problem.domain.bounds, groups, top)


def rows_of(system, number):
    block = system.blocks[number]
    return system.matrix[block.rows], system.rhs[block.rows]


@pytest.fixture
def plane():
    x, y = pb.coordinates("x y")
    return x, y, pb.field("u", x, y), pb.Rectangle((x, 0, 1), (y, -1, 2))


def test_equation_rows_are_variable_coefficients_times_derivatives(plane):
    x, y, u, box = plane
    equation = sp.Eq(-sp.exp(x) * u.diff(x, 2) + x * y * u.diff(x, y) + 3 * u, sp.sin(x + y))
    problem = pb.Problem(equation, box, [pb.Dirichlet(u, x - y)])
    points = Points.sample(problem, interior=23, boundary=11)
    network = network_for(problem)
    system = assemble(problem, points, network, PLAIN)
    X, B = points.sets[0].points, points.sets[1].points
    d = network.evaluate(X, [(2, 0), (1, 1), (0, 0)])
    expected = -np.exp(X[:, :1]) * d[2, 0] + (X[:, 0] * X[:, 1])[:, None] * d[1, 1] + 3 * d[0, 0]
    matrix, rhs = rows_of(system, 0)
    np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rhs, np.sin(X.sum(axis=1)), rtol=1e-14)
    matrix, rhs = rows_of(system, 1)
    np.testing.assert_allclose(matrix, network.evaluate(B, [(0, 0)])[0, 0], rtol=1e-14)
    np.testing.assert_allclose(rhs, B[:, 0] - B[:, 1], rtol=1e-14)


def test_columns_are_feature_nodes_then_enhancement_nodes_by_hand():
    x = pb.coordinates("x")
    u = pb.field("u", x)
    problem = pb.Problem(sp.Eq(u.diff(x), 0), pb.Interval((x, -1, 3)), [pb.Dirichlet(u, 5)])
    points = Points.sample(problem, interior=6)
    network = network_for(problem, nodes=2, enhancement=1)
    (sin, tanh), (top,) = network.features, network.enhancement
    z = points.interior - 1.0
    f1, f2 = z @ sin.weights + sin.bias, z @ tanh.weights + tanh.bias
    F = np.hstack([np.sin(f1), np.tanh(f2)])
    dF = np.hstack([np.cos(f1) * sin.weights, tanh.weights / np.cosh(f2) ** 2])
    dE = (dF @ top.weights) / np.cosh(F @ top.weights + top.bias) ** 2
    matrix, rhs = rows_of(assemble(problem, points, network, PLAIN), 0)
    np.testing.assert_allclose(matrix, np.hstack([dF, dE]), rtol=1e-12, atol=1e-14)
    assert (rhs == 0).all()


def test_each_field_has_its_own_columns_and_zero_where_it_does_not_occur(plane):
    x, y, u, box = plane
    v = pb.field("v", x, y)
    problem = pb.Problem(
        [sp.Eq(u.diff(x) - 2 * v.diff(y), 0), sp.Eq(v + x * u, 1)], box, [pb.Dirichlet(v, y, on=box.left)]
    )
    points = Points.sample(problem, interior=9, boundary=12)
    network = network_for(problem)
    M = network.size
    system = assemble(problem, points, network, PLAIN)
    assert problem.field_names == ("u", "v")
    assert system.shape == (9 + 9 + len(points.sets[2]), 2 * M)
    X = points.interior
    d = network.evaluate(X, [(1, 0), (0, 1), (0, 0)])
    first, _ = rows_of(system, 0)
    np.testing.assert_allclose(first, np.hstack([d[1, 0], -2 * d[0, 1]]), rtol=1e-12, atol=1e-13)
    second, rhs = rows_of(system, 1)
    np.testing.assert_allclose(second, np.hstack([X[:, :1] * d[0, 0], d[0, 0]]), rtol=1e-12, atol=1e-13)
    assert (rhs == 1).all()
    third, rhs = rows_of(system, 2)
    assert (third[:, :M] == 0).all()
    np.testing.assert_allclose(rhs, points.sets[2].points[:, 1])


def test_neumann_and_robin_rows_use_the_outward_normal():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    disk = pb.Disk((x, y), (1, 2), 3)
    upper = disk.boundary.where(lambda X: X[:, 1] > 2)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), disk, [pb.Neumann(u, x * y), pb.Robin(u, 1 + x**2, y, 7, on=upper)])
    points = Points.sample(problem, interior=5, boundary=8)
    network = network_for(problem)
    system = assemble(problem, points, network, PLAIN)
    for number, (alpha, beta, value) in enumerate(
        [
            (lambda X: 0 * X[:, 0], lambda X: 1 + 0 * X[:, 0], lambda X: X[:, 0] * X[:, 1]),
            (lambda X: 1 + X[:, 0] ** 2, lambda X: X[:, 1], lambda X: 7 + 0 * X[:, 0]),
        ],
        start=1,
    ):
        X = points.sets[number].points
        n = (X - [1, 2]) / 3  # exact for a disk, whatever the sampler says
        d = network.evaluate(X, [(0, 0), (1, 0), (0, 1)])
        flux = n[:, :1] * d[1, 0] + n[:, 1:] * d[0, 1]
        matrix, rhs = rows_of(system, number)
        np.testing.assert_allclose(
            matrix, alpha(X)[:, None] * d[0, 0] + beta(X)[:, None] * flux, rtol=1e-10, atol=1e-10
        )
        np.testing.assert_allclose(rhs, value(X), rtol=1e-12)


def test_periodic_rows_are_differences_across_the_domain():
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    domain = pb.Interval((x, -1, 2)) * pb.TimeInterval(t, 0, 1)
    problem = pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2)), domain, [pb.Periodic(u, x), pb.Initial(u, sp.cos(x))])
    points = Points.sample(problem, interior=16, boundary=10)
    network = network_for(problem)
    system = assemble(problem, points, network, PLAIN)
    low = points.sets[1].points
    assert (low[:, 0] == -1).all()
    high = np.column_stack([np.full(len(low), 2.0), low[:, 1]])
    for number, index in ((1, (0, 0)), (2, (1, 0))):
        matrix, rhs = rows_of(system, number)
        expected = network.evaluate(low, [index])[index] - network.evaluate(high, [index])[index]
        np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-13)
        assert (rhs == 0).all()
    assert [b.name for b in system.blocks][1:3] == ["Periodic(u in x)", "Periodic(u in x), derivative 1"]


def test_mean_is_one_row_of_the_average(plane):
    _x, _y, u, box = plane
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), box, [pb.Neumann(u, 0), pb.Mean(u, 4)])
    points = Points.sample(problem, interior=10)
    network = network_for(problem, enhancement=0)
    matrix, rhs = rows_of(assemble(problem, points, network, PLAIN), 2)
    assert matrix.shape == (1, network.size)
    np.testing.assert_allclose(rhs, [4.0], rtol=1e-14)
    # The average of sin(w·z + b) over a box is sin(b) Π sinc(w h): an integral known in closed form.
    group = network.features[0]
    half = np.array([0.5, 1.5])
    exact = np.sin(group.bias) * np.prod(np.sinc(group.weights * half[:, None] / np.pi), axis=0)
    np.testing.assert_allclose(matrix[0, : group.nodes], exact, atol=1e-10)


def test_observation_rows_are_divided_by_the_noise(plane):
    x, y, u, box = plane
    X, values, noise = np.array([[0.1, 0.2], [0.3, 1.4], [0.9, -0.5]]), np.array([1.0, -2.0, 5.0]), [0.1, 0.5, 4.0]
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), box, [pb.Observation(u + u.diff(y) + x, X, values, noise=noise)])
    points = Points.sample(problem, interior=10)
    network = network_for(problem)
    matrix, rhs = rows_of(assemble(problem, points, network, PLAIN), 1)
    d = network.evaluate(X, [(0, 0), (0, 1)])
    np.testing.assert_allclose(matrix, (d[0, 0] + d[0, 1]) / np.array(noise)[:, None], rtol=1e-12)
    np.testing.assert_allclose(rhs, (values - X[:, 0]) / noise, rtol=1e-14)


def test_condition_at_points_and_data_coefficients(plane):
    x, y, u, box = plane
    k = pb.data("k", lambda a, b: np.cosh(a) + b**2, x, y)
    problem = pb.Problem(
        sp.Eq(k * u.diff(x), k), box, [pb.Condition(sp.Eq(u.diff(y) + u, 2), on=[[0.5, 0.5], [0.25, 1.0]])]
    )
    points = Points.sample(problem, interior=12)
    network = network_for(problem)
    system = assemble(problem, points, network, PLAIN)
    X = points.interior
    weight = np.cosh(X[:, 0]) + X[:, 1] ** 2
    matrix, rhs = rows_of(system, 0)
    np.testing.assert_allclose(matrix, weight[:, None] * network.evaluate(X, [(1, 0)])[1, 0], rtol=1e-12)
    np.testing.assert_allclose(rhs, weight, rtol=1e-14)
    matrix, rhs = rows_of(system, 1)
    d = network.evaluate(np.array([[0.5, 0.5], [0.25, 1.0]]), [(0, 1), (0, 0)])
    np.testing.assert_allclose(matrix, d[0, 1] + d[0, 0], rtol=1e-12)
    assert rhs.tolist() == [2.0, 2.0]


def test_blocks_tile_the_rows_in_the_order_of_the_statements():
    problem = pb.problems.klein_gordon()
    points = Points.sample(problem, interior=30)
    system = assemble(problem, points, network_for(problem))
    assert [b.name for b in system.blocks] == [s.name for s in problem.statements]
    assert [b.is_equation for b in system.blocks] == [True, False, False, False]
    assert [b.rows.start for b in system.blocks] == [0, *np.cumsum([b.count for b in system.blocks])[:-1]]
    assert system.blocks[-1].rows.stop == system.shape[0] == len(system.rhs)
    assert [b.count for b in system.blocks] == [len(s) for s in points]


def test_exact_conditions_become_constraints_with_unit_rows(plane):
    x, _y, u, box = plane
    hard = pb.Dirichlet(100 * u, 300 * x, on=box.left | box.right, exact=True)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), box, [hard, pb.Dirichlet(u, 1, on=box.top)])
    points = Points.sample(problem, interior=10, boundary=24)
    network = network_for(problem)
    system = assemble(problem, points, network, PLAIN)
    assert [b.name for b in system.blocks] == ["the equation", repr(problem.conditions[1])]
    assert [b.name for b in system.constraint_blocks] == [repr(hard)]
    assert system.constraints.shape == (len(points.sets[1]), network.size)
    assert np.sqrt(np.mean(np.linalg.norm(system.constraints, axis=1) ** 2)) == pytest.approx(1)
    block = system.constraint_blocks[0]
    X = points.sets[1].points
    np.testing.assert_allclose(system.constraints / block.scale, 100 * network.evaluate(X, [(0, 0)])[0, 0], rtol=1e-12)
    np.testing.assert_allclose(system.constraint_rhs / block.scale, 300 * X[:, 0], rtol=1e-12)
    assert assemble(pb.problems.advection(), Points.sample(pb.problems.advection(), 9), _line()).constraints is None


def _line():
    return network_for(pb.problems.advection())


def test_statements_on_one_point_set_share_the_derivatives_of_the_nodes(monkeypatch):
    calls = []
    combine = BroadNetwork.combine

    def counted(self, X, forms, **options):
        calls.append((len(X), len(forms)))
        return combine(self, X, forms, **options)

    monkeypatch.setattr(BroadNetwork, "combine", counted)
    problem = pb.problems.stokes()  # three equations inside, two fields on the same boundary, one mean
    points = Points.sample(problem, interior=40, boundary=20)
    assemble(problem, points, network_for(problem))
    assert sorted(n for n, _ in calls) == sorted([40, 20, len(points.sets[-1])])
    calls.clear()
    problem = pb.problems.wave()  # u and u_t at the first time
    points = Points.sample(problem, interior=40, initial=13)
    assemble(problem, points, network_for(problem))
    assert (13, 2) in calls
    assert len(calls) == 3


def test_memory_is_asked_for_before_anything_is_allocated(monkeypatch):
    problem = pb.problems.advection()
    points = Points.sample(problem, interior=100)
    assert system_bytes(problem, points, 10) == 2 * 8 * 101 * 10
    network = network_for(problem)
    monkeypatch.setattr("pibls.runtime._ALWAYS_THERE", 0)
    monkeypatch.setattr("pibls.runtime.available_memory", lambda: 2 * 8 * 101 * network.size)
    assert assemble(problem, points, network).shape == (101, network.size)
    monkeypatch.setattr("pibls.runtime.available_memory", lambda: 2 * 8 * 101 * network.size - 1)
    monkeypatch.setattr(np, "zeros", lambda *a, **k: pytest.fail("allocated"))
    with pytest.raises(ResourceError, match=r"101 rows and 17 columns.*fewer points or fewer nodes"):
        assemble(problem, points, network)


def test_system_of_two_fields_needs_twice_the_memory():
    problem = pb.problems.maxwell_1d()
    points = Points.sample(problem, interior=50)
    rows = sum(points.sets[s.source].rows for s in problem.statements)
    assert system_bytes(problem, points, 10) == 2 * 8 * rows * 20


def test_refusals_name_the_rule(plane):
    _x, _y, u, box = plane
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), box, [pb.Dirichlet(u, 0)])
    points = Points.sample(problem, interior=10)
    line = pb.problems.advection()
    with pytest.raises(InputError, match=r"1 coordinates.*network 2|network 2.*make both"):
        assemble(line, Points.sample(line, interior=5), network_for(problem))
    with pytest.raises(InputError, match="points 2; make both"):
        assemble(line, points, network_for(line))
    with pytest.raises(InputError, match=r"sample them with Points\.sample"):
        check_points_match(problem, Points(points.sets[:1]))
    nonlinear = pb.Problem(sp.Eq(pb.laplacian(u), u**2), box, [pb.Dirichlet(u, 0)])
    with pytest.raises(ProblemError, match="is nonlinear"):
        assemble(nonlinear, Points.sample(nonlinear, interior=10), network_for(problem))
    inverse = pb.Problem(sp.Eq(pb.laplacian(u), pb.unknown("k")), box, [pb.Dirichlet(u, 0)])
    with pytest.raises(ProblemError, match="has unknown parameters"):
        assemble(inverse, Points.sample(inverse, interior=10), network_for(problem))


def test_scaled_rows_are_the_plain_rows_times_the_scale_of_their_block(plane):
    x, y, u, box = plane
    problem = pb.Problem(sp.Eq(pb.laplacian(u), x), box, [pb.Dirichlet(u, y, weight=3)])
    points = Points.sample(problem, interior=15)
    network = network_for(problem)
    plain, balanced = assemble(problem, points, network, PLAIN), assemble(problem, points, network, Balanced())
    for one, two in zip(plain.blocks, balanced.blocks, strict=True):
        weight = 1 if one.is_equation else 3
        assert two.norm == pytest.approx(np.sqrt(np.mean(np.linalg.norm(plain.matrix[one.rows], axis=1) ** 2)) / weight)
        factor = two.scale / one.scale
        np.testing.assert_allclose(balanced.matrix[two.rows], factor * plain.matrix[one.rows], rtol=1e-13)
        np.testing.assert_allclose(balanced.rhs[two.rows], factor * plain.rhs[one.rows], rtol=1e-13)
