"""Unknowns and measurements in problem files: read, written, read back, and refused with a place."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import TextError
from pibls.text import read_text

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x, t), pb.field("v", x, y)
ROD = pb.Interval((x, 0, 1))
SLAB = ROD * pb.TimeInterval(t, 0, 2)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))

HEAD = """
fields = ["u"]
equations = "u_t = k*u_xx + s"
[domain]
shape = "interval"
x = [0, 1]
[time]
t = [0, 2]
[[conditions]]
kind = "initial"
value = "f"
"""
UNKNOWNS = """
[unknowns]
k = {start = "1/4", bounds = [0, inf], prior = [1, 0.5]}
s = {}
f = {of = ["x"], smooth = {length = 0.2}, start = "1 + x"}
"""
DATA = """
[[conditions]]
kind = "observation"
points = [[0.5, 1]]
values = [1]
"""


def test_the_table_of_unknowns():
    problem = read_text(HEAD + DATA + UNKNOWNS + "[truth]\nk = 0.3\nf = 'sin(pi*x)'").problem
    k, s = problem.parameters
    assert k == pb.unknown("k", 0.25, (0, None), (1, 0.5))
    assert s == pb.unknown("s")
    assert problem.unknown_functions == (pb.field("f", x, prior=pb.Smooth(length=0.2), start=1 + x),)
    assert problem.truth == {"k": 0.3, "f": sp.sin(sp.pi * x)}


def test_fields_may_be_named_either_way():
    text = 'equations = "v_xx = 1"\n[domain]\nshape = "interval"\nx = [0, 1]\n'
    assert read_text('fields = ["v"]\n' + text).problem.field_names == ("v",)
    assert read_text('unknowns = ["v"]\n' + text).problem.field_names == ("v",)


def heat(*observations, k=1):
    walls = [pb.Dirichlet(u, 0), pb.Initial(u, pb.field("f", x, prior=pb.Smooth()))]
    truth = {"f": x * (1 - x)} | ({"k": 0.25} if k != 1 else {})
    return pb.Problem(sp.Eq(u.diff(t), k * u.diff(x, 2)), SLAB, [*walls, *observations], truth=truth)


def plate(*observations):
    a = pb.field("a", x, y, start=2)
    equation = sp.Eq(pb.div(a * pb.grad(v)), 1)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(v, 0, on=SQUARE.left), *observations], truth={a: 2 + x * y})


SENSOR = pb.Observation(u, [[0.5, 1.0], [0.25, 2.0]], [1.0, 2.0], noise=[0.1, 0.2], loss="huber")
PROBE = pb.Disk((x, y), (0.5, 0.5), 0.25)


@pytest.mark.parametrize(
    "problem",
    [
        heat(SENSOR, k=pb.unknown("k", start=0.1, bounds=(None, 3), prior=(0.3, 1e-3))),
        heat(pb.Observation(u.diff(x), {t: 1.5, x: [0.1, 0.2]}, [1.0, 2.0]), k=pb.unknown("k", bounds=(0, None))),
        heat(pb.Observation.average(u, ROD, [1.0, 2.0, 3.0], times=[0.5, 1, 2], noise=0.1)),
        heat(pb.Observation.average(u, [pb.Interval((x, 0, 0.5)) * pb.TimeInterval(t, 1, 2)], [1.0])),
        heat(pb.Observation.average(pb.normal_derivative(u), [ROD.left, ROD.right], [1.0, 2.0], times=1)),
        plate(pb.Observation.average(v, [PROBE, SQUARE.right], [1.0, 2.0], loss="huber")),
        plate(pb.Observation.average(v, PROBE - pb.Disk((x, y), (0.5, 0.5), 0.125), [1.0])),
        plate(pb.Observation(v**2, [[0.5, 0.5]], [1.0], exact=True)),
    ],
)
def test_a_problem_is_written_and_read_back(problem):
    again = read_text(problem.to_text()).problem
    assert again.parameters == problem.parameters
    assert again.unknown_functions == problem.unknown_functions
    assert again.truth == problem.truth
    one, two = problem.statements[-1], again.statements[-1]
    assert (one.form.expression, one.loss, one.exact) == (two.form.expression, two.loss, two.exact)
    assert np.array_equal(one.place.points, two.place.points)
    assert np.array_equal(one.targets, two.targets)
    assert str(again) == str(problem)


def test_an_average_over_time_alone():
    w = pb.field("w", t)
    observed = pb.Observation.average(w, pb.TimeInterval(t, 0.5, 1), [0.4], noise=0.1)
    equation = sp.Eq(w.diff(t), -pb.unknown("k") * w)
    problem = pb.Problem(equation, pb.TimeInterval(t, 0, 1), [pb.Initial(w, 1), observed])
    again = read_text(problem.to_text()).problem
    assert np.array_equal(problem.statements[-1].place.points, again.statements[-1].place.points)


def test_columns_of_a_file(tmp_path):
    (tmp_path / "rod.csv").write_text("t,x,u,spread\n1,0.5,3,0.1\n2,0.25,4,0.2\n")
    data = '[[conditions]]\nkind = "observation"\nfile = "rod.csv"\nnoise = "spread"\nloss = "huber"\nu = "u"\n'
    (tmp_path / "rod.toml").write_text(HEAD + data + UNKNOWNS)
    found = pb.read_problem(tmp_path / "rod.toml").statements[-1]
    assert found.place.points.tolist() == [[0.5, 1], [0.25, 2]]
    assert (found.targets.tolist(), found.noise.tolist(), found.loss) == ([3, 4], [0.1, 0.2], "huber")


AVERAGE = '[[conditions]]\nkind = "observation"\nu = "u"\nvalues = [1]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + DATA + "[unknowns]\nk = {begin = 1}", "no key 'begin'"),
        (HEAD + DATA + "[unknowns]\nk = 3", "k must be a table"),
        (HEAD + DATA + "[unknowns]\nk = {bounds = [0]}", "two numbers"),
        (HEAD + DATA + "[unknowns]\nk = {bounds = [1, 0]}", "leaves no room"),
        (HEAD + DATA + "[unknowns]\nk = {bounds = [nan, 1]}", "no 'nan' here"),
        (HEAD + DATA + "[unknowns]\nk = {start = 2, bounds = [0, 1]}", "outside its bounds"),
        (HEAD + DATA + "[unknowns]\nk = {prior = [1, 0]}", "above 0"),
        (HEAD + DATA + "[unknowns]\nk = {start = 'x'}", "number is needed"),
        (HEAD + DATA + "[unknowns]\nf = {of = ['z']}", "some of x, t"),
        (HEAD + DATA + "[unknowns]\nf = {of = []}", "some of x, t"),
        (HEAD + DATA + "[unknowns]\nf = {of = ['x', 'x']}", "coordinate twice"),
        (HEAD + DATA + "[unknowns]\nf = {of = ['x'], smooth = {length = -1}}", "above 0"),
        (HEAD + DATA + "[unknowns]\nf = {of = ['x'], smooth = 3}", "smooth must be a table"),
        (HEAD + DATA + "[unknowns]\nf = {of = ['x'], start = 't'}", "an expression of"),
        (HEAD + DATA + "[unknowns]\nu = {}", "used twice"),
        ('unknowns = ["u"]\n' + HEAD, "Name the fields once"),
        (HEAD + DATA + UNKNOWNS + "[truth]\nq = 1", "unknown numbers and functions"),
        (HEAD + DATA + UNKNOWNS + "[truth]\nk = 'x'", "true value of k must be a number"),
        (HEAD + AVERAGE + UNKNOWNS, "'points' is missing"),
        (HEAD + AVERAGE + "over = [3]" + UNKNOWNS, "over lists shapes"),
        (HEAD + AVERAGE + "over = ['middle']" + UNKNOWNS, "no part 'middle'"),
        (HEAD + AVERAGE + "over = []" + UNKNOWNS, "Got 0 regions"),
        (HEAD + AVERAGE + "over = ['left']\npoints = [[0, 1]]" + UNKNOWNS, "one of points, file and over"),
        (HEAD + AVERAGE + "over = [{shape = 'interval', x = [0, 1]}]" + UNKNOWNS, "Give 'times'"),
        (HEAD + AVERAGE + "over = [{shape = 'interval', x = [0, 1], during = 3}]" + UNKNOWNS, "list in square"),
        (HEAD + AVERAGE + "over = [{shape = 'interval', x = [0, 1], during = [3]}]" + UNKNOWNS, "two times"),
        (HEAD + AVERAGE + "over = ['left']\ntimes = [9]" + UNKNOWNS, "points lie outside"),
        (HEAD + AVERAGE + "points = [[0, 1]]\nloss = 'cauchy'" + UNKNOWNS, "'squares', 'huber'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, words):
    with pytest.raises(TextError, match=words) as caught:
        read_text(text)
    assert caught.value.line > 1 or text.startswith("unknowns")
    assert "^" in caught.value.excerpt


def test_parts_that_have_no_name_are_not_written():
    half = SQUARE.left.where(lambda X: X[:, 1] < 0.5)
    with pytest.raises(pb.PiblsError, match="averages are over whole parts"):
        plate(pb.Observation.average(v, half, [1.0])).to_text()
