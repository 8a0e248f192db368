"""The points of a problem: how many, where, shared by whom."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import interior_points
from pibls.errors import GeometryError, InputError, PiblsError
from pibls.geometry import Points, PointSet

METHODS = ["sobol", "halton", "lhs", "kronecker", "uniform", "grid"]


@pytest.fixture
def plane():
    x, y = pb.coordinates("x y")
    return x, y, pb.field("u", x, y), pb.Rectangle((x, 0, 3), (y, 0, 1))


def sides(plane):
    x, _y, u, box = plane
    parts = [box.left, box.right, box.bottom, box.top]
    return pb.Problem(sp.Eq(pb.laplacian(u), x), box, [pb.Dirichlet(u, i, on=part) for i, part in enumerate(parts)])


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_as_asked_and_shared_by_measure(plane, method):
    problem = sides(plane)
    points = Points.sample(problem, interior=64, boundary=80, method=method)
    assert [len(s) for s in points] == [64, 10, 10, 30, 30]
    assert len(points) == 5
    assert points.total == 144
    assert repr(points) == "Points(interior 64, conditions 80)"
    box = problem.domain
    assert box.contains(points.interior).all()
    for part, where in zip((box.left, box.right, box.bottom, box.top), points.sets[1:], strict=True):
        assert part.contains(where.points).all()
        np.testing.assert_array_equal(where.normals, part.normals(where.points))
    assert (points.sets[1].points[:, 0] == 0).all()
    assert (points.sets[3].normals == [0, -1]).all()


def test_every_part_gets_a_point_however_few_are_asked_for(plane):
    assert [len(s) for s in Points.sample(sides(plane), interior=3, boundary=1)] == [3, 1, 1, 1, 1]


def test_default_boundary_is_about_as_dense_as_the_interior():
    for name, expected in (("poisson_square", 4 * 10), ("poisson_nd", None), ("advection", 1)):
        problem = pb.problems.catalogue()[name]()
        points = Points.sample(problem, interior=100)
        d = len(problem.domain.coordinates)
        wanted = 2 * d * round(100 ** ((d - 1) / d)) if expected is None else expected
        assert len(points.sets[1]) == wanted
        assert len(points.interior) == 100


def test_initial_points_have_their_own_number():
    problem = pb.problems.wave()
    points = Points.sample(problem, interior=100, boundary=30, initial=17)
    assert [len(s) for s in points] == [100, 30, 17, 17]
    assert points.sets[2] is points.sets[3]
    assert (points.sets[2].points[:, 1] == 0).all()
    assert points.total == 100 + 30 + 17
    assert len(Points.sample(problem, interior=100).sets[2]) == 2 * 10


def test_same_place_same_points():
    problem = pb.problems.stokes()
    points = Points.sample(problem, interior=50, boundary=20)
    assert points.sets[0] is points.sets[1] is points.sets[2]
    assert points.sets[3] is points.sets[4]
    assert points.sets[5].rows == 1
    assert points.sets[5].weights.sum() == pytest.approx(1)
    assert len({id(s) for s in points}) == 3


def test_seeds_and_methods(plane):
    problem = sides(plane)
    first, again, other = (Points.sample(problem, interior=32, seed=s) for s in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        assert (one.points == two.points).all()
    assert (first.interior != other.interior).any()
    generator = Points.sample(problem, interior=32, seed=np.random.default_rng(1))
    assert (generator.interior == first.interior).all()
    # Opposite sides are not mirror images of each other.
    assert not np.array_equal(first.sets[1].points[:, 1], first.sets[2].points[:, 1])


@pytest.mark.parametrize("method", METHODS)
def test_periodic_partners_differ_in_one_coordinate_only(method):
    for name, axis in (("periodic_advection", 0), ("schroedinger", 0)):
        problem = pb.problems.catalogue()[name]()
        where = Points.sample(problem, interior=50, boundary=24, method=method).sets[len(problem.equations)]
        low, high = problem.domain.bounds[axis]
        assert (where.points[:, axis] == low).all()
        assert (where.partner[:, axis] == high).all()
        np.testing.assert_array_equal(np.delete(where.points, axis, 1), np.delete(where.partner, axis, 1))
        assert len(where) == 12


def test_points_of_observations_are_taken_as_they_are(plane):
    x, _y, u, box = plane
    given = [[0.5, 0.5], [2.0, 0.25]]
    problem = pb.Problem(
        sp.Eq(u.diff(x), 0), box, [pb.Observation(u, given, [1.0, 2.0]), pb.Condition(u - 1, on=[1.0, 0.5])]
    )
    points = Points.sample(problem, interior=5)
    assert points.sets[1].points.tolist() == given
    assert points.sets[2].points.tolist() == [[1.0, 0.5]]
    assert points.sets[1].normals is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interior": 0}, "'interior' parameter of Points.sample must be an integer of at least 1"),
        ({"interior": 2.5}, "'interior'"),
        ({"boundary": 0}, "'boundary'"),
        ({"initial": -3}, "'initial'"),
        ({"method": "random"}, "'method'"),
        ({"seed": "now"}, "'seed'"),
    ],
)
def test_bad_requests_are_refused(plane, options, words):
    with pytest.raises(InputError, match=words):
        Points.sample(sides(plane), **options)


@pytest.mark.parametrize("make", [Points.sample, lambda p: Points.from_arrays(p, [0.5])])
def test_a_problem_comes_first(make):
    with pytest.raises(InputError, match=r"Points\.\w+ takes a Problem first. Got 'heat'"):
        make("heat")


# Points of the user


def test_arrays_go_to_the_conditions_they_lie_on(plane):
    problem = sides(plane)
    inside = [[1.0, 0.5], [2.0, 0.25]]
    edge = [[0.0, 0.5], [3.0, 0.1], [3.0, 0.9], [1.5, 0.0], [0.0, 0.0], [2.0, 1.0]]
    points = Points.from_arrays(problem, inside, edge)
    assert points.interior.tolist() == inside
    assert [s.points.tolist() for s in points.sets[1:]] == [
        [[0.0, 0.5], [0.0, 0.0]],
        [[3.0, 0.1], [3.0, 0.9]],
        [[1.5, 0.0], [0.0, 0.0]],
        [[2.0, 1.0]],
    ]
    assert points.sets[2].normals.tolist() == [[1, 0], [1, 0]]


def test_arrays_for_time_periodicity_means_and_observations():
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    domain = pb.Interval((x, -1, 2)) * pb.TimeInterval(t, 0, 1)
    observed = pb.Observation(u, [[0.0, 0.5]], [1.0])
    problem = pb.Problem(
        sp.Eq(u.diff(t), u.diff(x, 2)), domain, [pb.Periodic(u, x), pb.Initial(u, 0), pb.Mean(u, 0), observed]
    )
    points = Points.from_arrays(
        problem, [[0.0, 0.5]], boundary=[[-1.0, 0.25], [-1.0, 0.75], [2.0, 0.5]], initial=[[0.5, 0.0]]
    )
    pair = points.sets[1]
    assert pair.points.tolist() == [[-1.0, 0.25], [-1.0, 0.75]]
    assert pair.partner.tolist() == [[2.0, 0.25], [2.0, 0.75]]
    assert points.sets[2].points.tolist() == [[0.5, 0.0]]
    assert points.sets[3].weights.sum() == pytest.approx(1)
    assert points.sets[4].points.tolist() == [[0.0, 0.5]]
    tiny = pb.Interval((x, 0, 1e-9)) * pb.TimeInterval(t, 0, 1)
    small = pb.Problem(sp.Eq(u.diff(t), u.diff(x)), tiny, [pb.Periodic(u, x)])
    assert Points.from_arrays(small, [[0.0, 0.5]], [[0.0, 0.5]]).sets[1].partner.tolist() == [[1e-9, 0.5]]


def test_a_solve_on_given_points_uses_them():
    problem = pb.problems.advection()
    X = np.linspace(0.01, 0.99, 60)
    points = Points.from_arrays(problem, X, boundary=[0.0])
    solution = pb.PIELM(nodes=60, activation="sin", scale=6.0).fit(problem, points)
    assert solution.diagnostics.rows == 61
    assert solution.true_error() < 1e-6


def test_arrays_that_do_not_fit_are_refused(plane):
    problem = sides(plane)
    edge = [[0.0, 0.5], [3.0, 0.1], [1.5, 0.0], [2.0, 1.0]]
    with pytest.raises(GeometryError, match=r"Row 1, \[4.0, 0.5\], is outside"):
        Points.from_arrays(problem, [[1.0, 0.5], [4.0, 0.5]], edge)
    with pytest.raises(GeometryError, match="Got none"):
        Points.from_arrays(problem, np.empty((0, 2)), edge)
    with pytest.raises(GeometryError, match=r"None of the given points lies on top, where Dirichlet.*add some"):
        Points.from_arrays(problem, [[1.0, 0.5]], edge[:3])
    with pytest.raises(GeometryError, match="None of the given points"):
        Points.from_arrays(problem, [[1.0, 0.5]])
    for bad in ("abc", [[1.0]], [[1.0, float("nan")]], [[1j, 0]]):
        with pytest.raises(PiblsError):
            Points.from_arrays(problem, bad, edge)


# Domains of finitely many points


def test_a_cloud_gives_all_it_has_and_no_more(plane):
    x, y, u, box = plane
    edge, normals = box.boundary.sample(12)
    cloud = pb.PointCloud((x, y), box.sample(30), boundary=edge, normals=normals, weights=np.full(30, 0.1))
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), cloud, [pb.Neumann(u, 0), pb.Mean(u, 1)])
    points = Points.sample(problem)
    assert [len(s) for s in points] == [30, 12, 30]
    assert {tuple(p) for p in points.interior} == {tuple(p) for p in cloud.interior}
    assert points.sets[2].weights.tolist() == pytest.approx([1 / 30] * 30)
    few = Points.sample(problem, interior=10, boundary=5)
    assert [len(s) for s in few][:2] == [10, 5]
    assert interior_points(cloud, 29, "sobol", 0).shape == (29, 2)
    assert interior_points(box, 31, "sobol", 0).shape == (31, 2)


def test_rows_of_a_point_set():
    assert PointSet(np.zeros((4, 2))).rows == 4
    assert PointSet(np.zeros((4, 2)), weights=np.full(4, 0.25)).rows == 1
