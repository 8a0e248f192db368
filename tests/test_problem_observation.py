"""Measurements: at points, from columns, averaged over regions and parts, and what is refused."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import problem_from, problem_record
from pibls.errors import PiblsError
from pibls.geometry import Points
from pibls.problem import Averages

x, y, t = pb.coordinates("x y t")
u = pb.field("u", x, t)
v = pb.field("v", x, y)
ROD = pb.Interval((x, 0, 1))
SLAB = ROD * pb.TimeInterval(t, 0, 2)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
DISK = pb.Disk((x, y), (0.5, 0.5), 0.25)


def heat(*observations):
    return pb.Problem(sp.Eq(u.diff(t), u.diff(x, 2)), SLAB, [pb.Dirichlet(u, 0), pb.Initial(u, 1), *observations])


def plate(*observations, exact=None):
    equation = sp.Eq(pb.laplacian(v), 0)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(v, x * y), *observations], exact=exact)


def statement(problem):
    return problem.statements[-1]


def test_columns_go_to_the_coordinates_they_name():
    found = statement(heat(pb.Observation(u, {t: [1.5, 0.5], "x": [0.1, 0.2]}, [1.0, 2.0])))
    assert found.place.points.tolist() == [[0.1, 1.5], [0.2, 0.5]]
    found = statement(heat(pb.Observation(u, {t: 1.5, x: [0.1, 0.2]}, [1.0, 2.0])))
    assert found.place.points.tolist() == [[0.1, 1.5], [0.2, 1.5]]


def test_columns_of_a_file(tmp_path):
    path = tmp_path / "rod.csv"
    path.write_text("t,spread,x,u_mean\n1.5,0.1,0.25,3\n0.5,0.2,0.75,4\n")
    found = pb.Observation.from_csv(path, u, "u_mean", "spread", loss="huber")
    assert (found.values.tolist(), found.noise.tolist(), found.loss) == ([3, 4], [0.1, 0.2], "huber")
    assert statement(heat(found)).place.points.tolist() == [[0.25, 1.5], [0.75, 0.5]]
    assert statement(heat(found)).loss == "huber"


@pytest.mark.parametrize(
    ("content", "call", "words"),
    [
        ("x,u\n0.1,1\n", {}, "no column 't'"),
        ("x,t\n0.1,1\n", {}, "no column 'u'"),
        ("x,t,u\n0.1,1,1\n", {"noise": "sigma"}, "no column 'sigma'"),
        ("x,t,u\n0.1,1,nan\n", {}, "line 2, column 3: 'nan' in column 'u' is not a finite number"),
        ("x,t,u\n", {}, "no rows"),
        ("0.1,1,3\n", {}, "must name its columns"),
        ("x,t,u\n0.1,1\n", {}, "2 entries, and 3 columns"),
    ],
)
def test_files_that_lack_something(tmp_path, content, call, words):
    path = tmp_path / "rod.csv"
    path.write_text(content)
    with pytest.raises(PiblsError, match=words):
        pb.Observation.from_csv(path, u, **call)


def test_files_that_are_none(tmp_path):
    with pytest.raises(PiblsError, match="does not exist"):
        pb.Observation.from_csv(tmp_path / "nowhere.csv", u)
    with pytest.raises(PiblsError, match="must be a path"):
        pb.Observation.from_csv(3, u)


POINT = [[0.5, 1.0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.Observation(u, [[0.1, np.nan], [0.2, 1.0]], [1, 2]), "1 of 2 rows do not, first row 0"),
        (lambda: pb.Observation(u, [[0.1, 0.1], [0.2, 1.0]], [1, np.nan]), "first row 1, nan"),
        (lambda: pb.Observation(u, [], []), "at least one"),
        (lambda: pb.Observation(u, POINT, []), "at least one"),
        (lambda: pb.Observation(u, POINT, ["1"]), "finite real numbers"),
        (lambda: pb.Observation(u, POINT, [1], noise=0), "For values without noise use exact=True"),
        (lambda: pb.Observation(u, POINT, [1], noise=[0.1, 0.1]), "one per value"),
        (lambda: pb.Observation(u, POINT, [1], noise=np.nan), "finite real numbers"),
        (lambda: pb.Observation(u, POINT, [1], loss="cauchy"), "'squares', 'huber'"),
        (lambda: pb.Observation(u, POINT, [1], loss="huber", exact=True), "have no outliers"),
        (lambda: pb.Observation(u, POINT * 2, [1, 2], exact=True), r"two values at \[0.5, 1.0\], 1 and 2"),
        (lambda: pb.Observation(u, POINT, [1], times=[1]), "'times' only for averages"),
        (lambda: pb.Observation(u, {x: [0.1, 0.2]}, [1, 2, 3]), "one number for x, or one per value, 3 in all"),
        (lambda: pb.Observation(u, {}, [1]), "name each coordinate once"),
        (lambda: pb.Observation(u, {x: 0.1, "x": 0.2}, [1]), "name each coordinate once"),
        (lambda: heat(pb.Observation(u, {x: 0.1}, [1])), "coordinates x, and the domain has x, t"),
        (lambda: heat(pb.Observation(u, {x: 0.1, t: 1, y: 1}, [1])), "for each of these and for no others"),
        (lambda: heat(pb.Observation(u, [[1.0, 0.5], [1.5, 0.5]], [1, 2])), "1 of its 2 points lie outside"),
        (lambda: heat(pb.Observation(u, [[1.0, 0.5, 0.1]], [1])), r"shape \(n, 2\)"),
        (lambda: heat(pb.Observation(x * t, POINT, [1])), "takes a field"),
    ],
)
def test_bad_data_are_refused(make, words):
    with pytest.raises(PiblsError, match=words):
        make()


def test_the_same_point_twice_is_two_measurements():
    assert len(statement(heat(pb.Observation(u, POINT * 2, [1.0, 1.2]))).targets) == 2


AVERAGES = [
    (pb.Observation.average(v, DISK, [1.0]), 0.25),  # x*y is harmonic: its average is that of the middle
    (pb.Observation.average(v, pb.Rectangle((x, 0, 0.5), (y, 0, 1)), [1.0]), 0.125),
    (pb.Observation.average(v**2, SQUARE, [1.0]), 1 / 9),
    (pb.Observation.average(v, SQUARE.right, [1.0]), 0.5),
    (pb.Observation.average(pb.normal_derivative(v), SQUARE.right, [1.0]), 0.5),
    (pb.Observation.average(pb.normal_derivative(v), SQUARE.left, [1.0]), -0.5),
]


@pytest.mark.parametrize(("observation", "value"), AVERAGES)
def test_averages_are_those_of_the_solution(observation, value):
    """The rule of the region, applied to the exact solution x·y."""
    found = statement(plate(observation))
    place, form = found.place, found.form
    values = {(0, 0): x * y, (1, 0): y, (0, 1): x}
    state = [sp.lambdify((x, y), values[term.multi_index], "numpy")(*place.points.T) for term in form.terms]
    averaged = pb.geometry.PointSet(place.points, weights=place.weights, ends=place.ends).averaged(
        form.residual_function(place.points, place.normals, state)
    )
    assert averaged == pytest.approx([value], abs=1e-12)


def test_averages_at_times_have_a_row_each():
    found = statement(heat(pb.Observation.average(u, pb.Interval((x, 0, 0.5)), [1.0, 2.0, 3.0], times=[0.1, 0.2, 2.0])))
    assert isinstance(found.place, Averages)
    assert len(found.place.ends) == 3
    assert sorted(set(found.place.points[:, 1])) == [0.1, 0.2, 2.0]
    whole = pb.Interval((x, 0, 0.5)) * pb.TimeInterval(t, 0, 1)
    rule = statement(heat(pb.Observation.average(u, whole, 1.0))).place
    assert rule.weights @ (rule.points[:, 0] * rule.points[:, 1]) == pytest.approx(0.125)
    ends = statement(heat(pb.Observation.average(u.diff(x), ROD.left, [1.0, 2.0], times=[0.5, 1.0]))).place
    assert ends.points.tolist() == [[0, 0.5], [0, 1.0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.Observation.average(v, [DISK] * 2, [1, 2, 3]), "Got 2 regions and 3 values"),
        (lambda: pb.Observation.average(v, "disk", [1]), "must be shapes or parts"),
        (lambda: pb.Observation.average(v, [], [1]), "Got 0 regions"),
        (lambda: pb.Observation(v, [[0.1, 0.1]], [1], regions=DISK), "either points or regions"),
        (lambda: plate(pb.Observation.average(v, pb.Disk((x, y), (1, 1), 0.25), [1])), "points lie outside"),
        (lambda: plate(pb.Observation.average(v, ROD, [1])), "a region with the same coordinates"),
        (lambda: plate(pb.Observation.average(v, DISK, [1], times=1)), "Leave out 'times'"),
        (lambda: plate(pb.Observation.average(pb.normal_derivative(v), DISK, [1])), "only on a boundary"),
        (lambda: heat(pb.Observation.average(u, ROD, [1])), "Give 'times'"),
        (lambda: heat(pb.Observation.average(u, ROD, [1, 2], times=[1, 2, 3])), "3 times and 2 values"),
        (lambda: heat(pb.Observation.average(u, ROD, [1], times=3)), "points lie outside"),
    ],
)
def test_bad_averages_are_refused(make, words):
    with pytest.raises(PiblsError, match=words):
        make()


def test_averages_stand_in_for_a_boundary_condition():
    """The value on one side is unknown; averages tell it, in the least-squares sense of one network."""
    walls = pb.Dirichlet(v, x * y, on=SQUARE.left | SQUARE.bottom | SQUARE.top)
    regions = [pb.Rectangle((x, 0.5, 1), (y, k / 8, (k + 1) / 8)) for k in range(8)]
    values = [0.75 * (k + 0.5) / 8 for k in range(8)]
    problem = pb.Problem(sp.Eq(pb.laplacian(v), 0), SQUARE, [walls, pb.Observation.average(v, regions, values)])
    solution = pb.PIELM(nodes=120, scale=1.0).fit(problem, Points.sample(problem, 200))
    assert np.abs(solution([[0.8, 0.4], [0.6, 0.7]]) - [0.32, 0.42]).max() < 1e-4  # off by 0.1 without the averages
    assert np.abs(solution.residual(problem.conditions[1]).values()).max() < 1e-6


@pytest.mark.parametrize(
    "problem",
    [
        heat(pb.Observation(u, {t: [1.0, 0.5], x: [0.1, 0.2]}, [1.0, 2.0], noise=[0.1, 0.2], loss="huber")),
        heat(pb.Observation.average(u, ROD, [1.0, 2.0], times=[1.0, 1.5])),
        plate(pb.Observation.average(v, [DISK, SQUARE.left], [1.0, 2.0])),
        plate(pb.Observation(v.diff(x) * v, [[0.5, 0.5]], [1.0])),
    ],
)
def test_observations_are_stored(problem):
    arrays = {}
    again = problem_from(problem_record(problem, arrays), arrays, {})
    one, two = statement(problem), statement(again)
    assert (one.form.expression, one.loss, one.name) == (two.form.expression, two.loss, two.name)
    assert np.array_equal(one.place.points, two.place.points)
    assert np.array_equal(one.targets, two.targets)
    assert (one.noise is None) == (two.noise is None)


def test_a_trained_network_meets_averages_too():
    pytest.importorskip("torch")
    walls = pb.Dirichlet(v, x * y, on=SQUARE.left | SQUARE.bottom | SQUARE.top)
    regions = [pb.Rectangle((x, 0.5, 1), (y, k / 4, (k + 1) / 4)) for k in range(4)]
    values = [0.75 * (k + 0.5) / 4 for k in range(4)]
    problem = pb.Problem(sp.Eq(pb.laplacian(v), 0), SQUARE, [walls, pb.Observation.average(v, regions, values)])
    solution = pb.PINN(layers=1, width=20, adam_iterations=200, lbfgs_iterations=100).fit(
        problem, Points.sample(problem, 100)
    )
    assert np.abs(solution.residual(problem.conditions[1]).values()).max() < 0.02  # the averages are up to 0.66


def test_outliers_are_not_fitted_by_squares_without_a_word():
    problem = plate(pb.Observation(v, [[0.5, 0.5]], [1.0], loss="huber"))
    for solve in (pb.solve, lambda p: pb.PIELM(nodes=20).fit(p, Points.sample(p, 50))):
        with pytest.raises(PiblsError, match=r"loss='huber'.*least squares"):
            solve(problem)
