"""Hostile input ends in one of our errors that says what to do: never a foreign traceback, a hang, a kill or a NaN."""

import decimal
import fractions
import functools
import os
import time
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import decode
from pibls import runtime
from pibls.errors import (
    FeatureError,
    FileFormatError,
    GeometryError,
    InputError,
    PiblsError,
    ProblemError,
    ResourceError,
    SolveError,
)

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x), pb.field("v", x)
w = pb.field("u", x, y)
f = pb.field("u", t)
line = pb.Interval((x, 0, 1))
square = pb.Rectangle((x, 0, 1), (y, 0, 1))
clock = pb.TimeInterval(t, 0, 1)
bend = u.diff(x, 2)
half = sp.Rational(1, 2)
k = sp.Symbol("k")
small = pb.PIELM(nodes=40, activation="sin", scale=3.0)


def problem(equation, domain=line, conditions=None, **options):
    return pb.Problem(equation, domain, [pb.Dirichlet(u, 0)] if conditions is None else conditions, **options)


def fitted(given, method=small):
    return method.fit(given, pb.Points.sample(given, 60))


def middle(equation, **options):
    return float(fitted(problem(equation, **options))([0.5])[0])


@pytest.fixture(scope="module")
def solution():
    return fitted(problem(bend - 1, exact=x * (x - 1) / 2))


class Stranger:
    """An object on which nothing works."""

    def _refuse(self, *_args, **_options):
        raise RuntimeError("no")

    __repr__ = __array__ = __len__ = __float__ = __iter__ = __bool__ = __eq__ = __hash__ = _refuse


# Equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (lambda: sp.Eq(sp.Tuple(bend, u), sp.Tuple(1, 2)), "must be a SymPy equation"),
        (lambda: sp.Eq(sp.Tuple(bend, u), 1, evaluate=False), "must be a SymPy equation"),
        (lambda: sp.Eq(sp.Matrix([bend, u]), sp.Matrix([1, 2])), "must be a SymPy equation"),
        (lambda: sp.MatrixSymbol("A", 2, 2), "must be a SymPy equation"),
        (lambda: {sp.Eq(bend, 1)}, "must be a SymPy equation"),
        (lambda: (e for e in [sp.Eq(bend, 1)]), "must be a SymPy equation"),
        (lambda: bend > 1, "is an inequality"),
        (lambda: sp.Eq(bend, sp.nan), "always false"),
        (lambda: bend - sp.oo, "not finite"),
        (lambda: sp.zoo * x + bend, "not finite"),
        (lambda: sp.oo * bend + u, "not finite"),
        (lambda: sp.Mul(0, u, evaluate=False), "cancel"),
        (lambda: sp.Add(u, -u, x, evaluate=False), "cancel"),
        (lambda: sp.Mul(u, 1 / u, evaluate=False) - x, "cancel"),
        (lambda: sp.sin(u) ** 2 + sp.cos(u) ** 2 - 1, "cancel"),
        (lambda: sp.Piecewise((1, u > 0), (0, True)) - x, "cancel, or enter only through steps"),
        (lambda: bend - sp.Subs(u.diff(x), x, 0), "fields at the point itself only"),
        (lambda: bend - u.subs(x, x - 1), "is taken at x - 1"),
        (lambda: bend - sp.Symbol("x"), "not the coordinate of the same name"),
        (lambda: bend - sp.I * u, "imaginary unit"),
        (lambda: sp.Derivative(u, (x, 10**9)) - 1, "order 1000000000 occurs; orders up to 100"),
        (lambda: functools.reduce(lambda e, _: pb.laplacian(e), range(60), u) - 1, "order 120 occurs"),
        (
            lambda: bend - functools.reduce(lambda e, _: sp.sin(e + 1, evaluate=False), range(3000), x),
            "nested too deeply",
        ),
    ],
)
def test_expressions_that_are_no_equation_are_refused(equation, message):
    with pytest.raises(ProblemError, match=message):
        problem(equation())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (sp.DiracDelta(x - half), r"DiracDelta.*is no function and cannot be evaluated.*Interface\(u, flux="),
        (sp.hyper((1, 2), (3,), x), "cannot be evaluated"),
        (sp.KroneckerDelta(x, 1), "cannot be evaluated"),
        (sp.O(x**3), "cannot be evaluated"),
        (sp.primepi(10 * x), "cannot be evaluated"),
        (sp.Piecewise((1, x < 0.3)), "not finite at"),
        (sp.log(x - 2), "not finite at"),
        (sp.Integer(10) ** 400, "double precision"),
        (sp.Integer(10) ** (sp.Integer(10) ** 4), "too large to print.*double precision"),
        (sp.Float("1e-400"), "double precision"),
    ],
)
def test_sources_that_have_no_numbers_are_refused(source, message):
    with pytest.raises(ProblemError, match=message):
        middle(bend - source)


def test_steps_of_the_unknown_make_a_problem_nonlinear():
    for step in (sp.Piecewise((1, u > 0), (0, True)), sp.floor(u), sp.ceiling(u)):
        assert not problem(bend - step).is_linear
    assert problem(bend - sp.Piecewise((1, x > half), (0, True)) * u).is_linear


@pytest.mark.parametrize("name", ["sin", "exp", "np", "numpy", "print", "lambda_", "π", "array", "S", "n_x", "a" * 500])
def test_any_name_means_the_same(name):
    s = pb.coordinates(name)
    g = pb.field("g", s)
    value = fitted(pb.Problem(g.diff(s, 2) - sp.sin(s), pb.Interval((s, 0, 1)), [pb.Dirichlet(g, s)]))([0.5])
    assert value == pytest.approx(0.5 * (1 + np.sin(1)) - np.sin(0.5), abs=1e-9)
    h = pb.field(name, x)
    again = fitted(pb.Problem(h.diff(x, 2) - sp.sin(x), line, [pb.Dirichlet(h, x)]))([0.5])
    assert again == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", ["lambda", "None", "u v", "u.v", "1u", "", "u;import os", None, 3, b"u"])
def test_names_that_are_no_identifiers_are_refused(name):
    for make in (lambda: pb.field(name, x), lambda: pb.unknown(name), lambda: pb.data(name, np.sin, x)):
        with pytest.raises(ProblemError, match="plain identifier"):
            make()


# Sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_a_factor_on_both_sides_of_an_equation_changes_nothing(factor):
    assert middle(factor * bend - factor) == pytest.approx(-0.125, abs=1e-10)
    assert middle(factor * (1 + x) * bend - factor * (1 + x)) == pytest.approx(-0.125, abs=1e-10)


@pytest.mark.parametrize("length", [1e-100, 1e-60, 1e40])
def test_short_and_long_coordinates_scale_the_solution(length):
    value = fitted(pb.Problem(bend - 1, pb.Interval((x, 0, length)), [pb.Dirichlet(u, 0)]))([length / 2])
    assert value / length / length == pytest.approx(-0.125, rel=1e-9)


@pytest.mark.parametrize("source", [1e150, 1e300, 1e308])
def test_numbers_whose_squares_overflow_are_refused(source):
    with pytest.raises(SolveError, match=r"rows of the equation leave the range .* other units"):
        middle(bend - source)
    with pytest.raises(SolveError, match=r"rows of Dirichlet.* leave the range"):
        middle(bend - 1, conditions=[pb.Dirichlet(u, source)])


@pytest.mark.parametrize("activation", ["tanh", "gaussian", "sigmoid", "softplus", "swish", "arctan", "sin"])
@pytest.mark.parametrize("order", [40, 100])
def test_high_orders_give_finite_numbers_or_our_error(activation, order):
    try:
        value = fitted(problem(u.diff(x, order) - 1), pb.PIELM(nodes=10, activation=activation))([0.5])
    except (SolveError, FeatureError):
        return
    assert np.isfinite(value).all()


def test_orders_that_enhancement_nodes_cannot_count_out_are_refused():
    method = pb.PIBLS(feature_groups=2, feature_nodes=5, enhancement_nodes=5)
    with pytest.raises(FeatureError, match=r"enhancement nodes has over 5000 terms.*enhancement_groups=0"):
        fitted(problem(u.diff(x, 100) - 1), method)
    with pytest.raises(FeatureError, match="over 5000 terms"):
        fitted(pb.Problem(w.diff(x, 10, y, 10) - 1, square, [pb.Dirichlet(w, 0)]), method)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pb.Interval((x, 0, 1e-300)), "length between 1e-100"),
        (lambda: pb.Rectangle((x, 0, 1e200), (y, 0, 1)), "length between"),
        (lambda: pb.TimeInterval(t, 0, 1e200), "length between"),
        (lambda: pb.Star((x, y), sp.Float("1e308")), "double precision can square"),
        (lambda: pb.Star((x, y), sp.Float("1e-200")), "double precision can square"),
        (lambda: pb.Box(*((s, 0, 1) for s in sp.symbols("x:200"))), "up to 128 coordinates"),
        (lambda: pb.Polygon((x, y), np.random.default_rng(0).random((20001, 2))), "at most 20000 vertices"),
        (lambda: pb.PointCloud((x, y), [[0.5, 0]], [[0, 0]], [[1e308, 1e308]]), "'normals'"),
        (lambda: pb.Interval((np.array(0.5), 0, 1)), "SymPy symbol"),
        (lambda: square.faces(np.zeros((2, 2))), "'coordinate' parameter"),
        (lambda: (square * clock).faces(np.zeros(3)), "'coordinate' parameter"),
        (lambda: clock.faces([1, 2]), "'coordinate' parameter"),
    ],
)
def test_shapes_beyond_double_precision_are_refused(build, message):
    with pytest.raises(GeometryError, match=message):
        build()


@pytest.mark.parametrize(
    "vertices",
    [
        [(0.0, 1.0), (0.0, 5e-324), (1.0, 0.0)],
        [(0.0, -1.0), (0.5, 5.589280147494321e-229), (1.0, 0.0), (0.0, 1.0)],
    ],
)
def test_vertices_that_are_almost_level_leave_no_hole(vertices):
    polygon = pb.Polygon((x, y), vertices)
    points, weights = polygon.quadrature(50)
    assert weights.sum() == pytest.approx(polygon.measure)
    assert polygon.contains(points).all()
    assert polygon.contains([[0.3, 0.0], [0.3, 0.2], [0.3, 2.0]]).tolist() == [True, True, False]


@pytest.mark.parametrize("count", [10**9, 10**12, 10**400])
def test_more_than_fits_into_memory_is_refused_before_it_is_drawn(count, monkeypatch, solution):
    monkeypatch.setattr(runtime, "available_memory", lambda: 8 * 2**30)
    given = solution.problem
    points = pb.Points.sample(given, 40)
    for ask in (
        lambda: line.sample(count),
        lambda: square.sample(count, "grid"),
        lambda: square.quadrature(count),
        lambda: square.boundary.sample(count),
        lambda: square.boundary.quadrature(count),
        lambda: pb.Disk((x, y), (0, 0), 1).sample(count),
        lambda: pb.Points.sample(given, count),
        lambda: pb.Points.sample(pb.problems.poisson_square(), 100, boundary=count),
        lambda: pb.PIELM(nodes=count).fit(given, points),
        lambda: pb.PIBLS(feature_nodes=count).fit(given, points),
        lambda: pb.PIBLS(enhancement_nodes=count).fit(given, points),
        lambda: pb.PIBLS(features=[("sin", count, 1.0)]).fit(given, points),
        lambda: pb.PIBLS(feature_groups=count),
        lambda: pb.PIBLS(enhancement_groups=count),
        lambda: solution.true_error(count),
        lambda: solution.residual().values(count),
        lambda: solution.derivative(u, (x, count)),
        lambda: pb.Periodic(u, x, count),
        lambda: pb.Polygon((x, y), [(0, 0), (1, 0), (0, 1)]).sample(count),
    ):
        with pytest.raises((ResourceError, InputError), match=r"at most|memory"):
            ask()


def test_weights_between_nodes_count_as_memory(monkeypatch, solution):
    method = pb.PIBLS(feature_groups=1, feature_nodes=10**5, enhancement_nodes=10**5)
    points = pb.Points.from_arrays(solution.problem, [0.5], [0.0, 1.0])
    monkeypatch.setattr(runtime, "available_memory", lambda: 64 * 2**30)
    with pytest.raises(ResourceError, match="100000 enhancement nodes on 100000 feature nodes needs"):
        method.fit(solution.problem, points)


def test_boundary_points_stay_in_proportion_in_many_dimensions():
    assert pb.Points.sample(pb.problems.poisson_nd(30), 50).sets[1].rows <= 4 * 50


# Numbers ----------------------------------------------------------------------------------------------------------

NO_NUMBERS = [
    float("nan"),
    float("inf"),
    None,
    True,
    "0.5",
    b"1",
    bytearray(b"1"),
    memoryview(b"12"),
    0.5 + 0j,
    10**400,
    np.datetime64("2020-01-01"),
    np.longdouble("1e400"),
    np.ma.masked,
    sp.nan,
    sp.oo,
    sp.I,
    sp.true,
    {0.5},
    {},
    [],
    Stranger(),
    int,
    sp.Matrix([1, 2]),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_refused_everywhere(value, solution):
    given = solution.problem
    points = pb.Points.sample(given, 20)
    for make in (
        lambda: (
            problem(bend, conditions=[pb.Dirichlet(u, value)]) and middle(bend, conditions=[pb.Dirichlet(u, value)])
        ),
        lambda: pb.Dirichlet(u, 0, weight=value),
        lambda: pb.Mean(u, value),
        lambda: pb.Interval((x, 0, value)),
        lambda: pb.Disk((x, y), (0, 0), value),
        lambda: clock * value,
        lambda: pb.PIELM(nodes=value).fit(given, points),
        lambda: pb.PIELM(nodes=5, scale=value).fit(given, points),
        lambda: pb.PIBLS(feature_nodes=5, enhancement_scale=value).fit(given, points),
        lambda: pb.PIELM(lambda_reg=value),
        lambda: pb.solve(given, tol=value, method=small),
        lambda: line.sample(value),
        lambda: solution.true_error(value),
        lambda: solution.residual().values(value),
        lambda: solution.derivative(u, (x, value)),
    ):
        with pytest.raises(PiblsError):
            make()


NO_ARRAYS = [
    ["0.5"],
    [b"1"],
    [0.5 + 0j],
    [True],
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.ma.array([0.5], mask=[True]),
    np.array([None]),
    np.zeros(1, dtype=[("a", float)]),
    np.zeros((1, 1, 1)),
    np.array([np.longdouble("1e400")]),
    [float("nan")],
    [[0.5], [0.5, 0.6]],
    {0.5},
    {"x": "0.5"},
    "abc",
    Stranger(),
    (i for i in [0.5]),
]


@pytest.mark.parametrize("value", NO_ARRAYS, ids=range(len(NO_ARRAYS)))
def test_what_is_no_array_of_numbers_is_refused_everywhere(value, solution):
    given = solution.problem
    for make in (
        lambda: pb.Dirichlet(u, 0, on=value),
        lambda: pb.Observation(u, value, [1.0]),
        lambda: pb.Observation(u, [[0.5]], value),
        lambda: pb.Observation(u, [[0.5]], [1.0], noise=value),
        lambda: pb.PointCloud((x,), value),
        lambda: pb.PointCloud((x,), [0.5], value),
        lambda: line.contains(value),
        lambda: pb.Points.from_arrays(given, value, [0.0, 1.0]),
        lambda: solution(value),
        # One keyword per coordinate may have any shape.
        lambda: solution(value if isinstance(value, np.ndarray) and value.ndim > 1 else None, x=value),
        lambda: solution.residual()(value),
        lambda: solution.evaluate(value, [("u", (0,))]),
        lambda: pb.metrics(solution, points=value),
        lambda: pb.metrics([0.5], exact=value),
    ):
        with pytest.raises(PiblsError):
            make()


def test_numbers_of_every_kind_are_accepted():
    for value in (1, 0.5, np.float16(0.5), np.array(0.5), decimal.Decimal("0.5"), fractions.Fraction(1, 2), half):
        assert float(pb.Mean(u, value).value) == float(value)
        assert pb.Observation(u, [[value]], [value]).values.tolist() == [float(value)]
    assert pb.Dirichlet(w, 0, on=(sp.pi / 4, half)).on.tolist() == [np.pi / 4, 0.5]
    assert np.isfinite(fitted(problem(bend - 1), pb.PIELM(nodes=9, scale=np.array(2.0), lambda_b=half))([0.5])).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pb.Dirichlet(u, 0, weight=1e13), "at most 1e.12.*exact=True"),
        (lambda: pb.PIELM(lambda_b=1e25), "at most 1e.24"),
        (lambda: pb.Observation(u, [[0.5]], [1.0], noise=1e-300), "between 1e-100"),
        (lambda: pb.Observation(u, [[0.5]], [1.0], noise=0), "'noise'"),
        (lambda: pb.Observation(u, [[0.5], [0.6]], np.ma.array([1.0, 2.0], mask=[0, 1])), "'values'"),
        (lambda: pb.Condition(u, label=3), "'label'"),
        (lambda: pb.Periodic(u, np.zeros(3)), "takes a coordinate of"),
        (lambda: problem(bend, exact=True), "finite and real"),
        (lambda: problem(bend, exact=float("nan")), "finite and real"),
        (lambda: problem(bend, exact=sp.I * x), "finite and real"),
        (lambda: pb.grad(sp.S(2)), "expression of coordinates"),
        (lambda: pb.div([np.zeros(3)]), "div takes a field"),
        (lambda: pb.PIBLS(activation=None), "activation"),
        (lambda: pb.PIBLS(activation=3.0), "activation"),
        (lambda: pb.PIBLS(features=[]), "'features'"),
        (lambda: pb.PIBLS(enhancement_activation=[]), "activation"),
        (lambda: pb.PIELM(scale=1e-10).fit(problem(bend), pb.Points.sample(problem(bend), 9)), "between 1e-06"),
        (lambda: pb.PIELM(scale=b"1").fit(problem(bend), pb.Points.sample(problem(bend), 9)), "'scale'"),
        (lambda: pb.Points(3), "takes a tuple of point sets"),
        (lambda: pb.Points((1, 2)), "takes a tuple of point sets"),
        (lambda: pb.Points(()), "takes a tuple of point sets"),
    ],
)
def test_settings_without_a_meaning_are_refused(build, message):
    with pytest.raises(PiblsError, match=message):
        build()


# Other people's functions -----------------------------------------------------------------------------------------


def interrupt(*_args, **_options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a[:3], r"shape \(3,\)"),
        (lambda a: np.ones((len(a), 1)), "real numbers for"),
        (lambda a: a * np.nan, "not finite"),
        (lambda a: np.full(len(a), np.longdouble("1e400")), "not finite"),
        (lambda _: 1 / 0, "raised ZeroDivisionError"),
        (lambda _: None, "type object"),
        (lambda _: "text", "real numbers for"),
        (lambda a: a + 0j, "type complex"),
        (lambda a: a.astype("datetime64[s]"), "datetime"),
        (lambda a: np.ma.array(a, mask=a > 0.5), "masked"),
        (lambda a, b: a + b, "raised TypeError"),
    ],
)
def test_data_functions_that_misbehave_are_refused(function, message):
    with pytest.raises(ProblemError, match=message):
        middle(bend - pb.data("f", function, x))


def solver_that(factorise):
    return SimpleNamespace(name="mine", factorise=lambda matrix, **_options: factorise(matrix))


def factor_with(weights, residual=None):
    def factorise(matrix):
        rows = np.zeros(matrix.shape[0]) if residual is None else residual
        answers = {"solve": lambda _: weights(matrix), "residual": lambda _: rows}
        return SimpleNamespace(**answers, name="mine", rank=1, condition=1.0)

    return factorise


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "factorise",
    [
        lambda _: None,
        lambda _: 3,
        lambda _: 1 / 0,
        factor_with(lambda m: np.full(m.shape[1], np.nan)),
        factor_with(lambda _: np.zeros(3)),
        factor_with(lambda _: "weights"),
        factor_with(lambda m: np.zeros(m.shape[1]), "residual"),
    ],
)
def test_solvers_that_misbehave_are_refused(factorise, exact):
    method = pb.PIELM(nodes=20, solver=solver_that(factorise))
    with pytest.raises(SolveError, match=r"The solver .*(lstsq|Factorisation)"):
        fitted(problem(bend - 1, conditions=[pb.Dirichlet(u, 0, exact=exact)]), method)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (pb.PIBLS, "such as PIBLS"),
        (np, "must be a method"),
        (SimpleNamespace(fit=3), "must be a method"),
        (SimpleNamespace(fit=lambda *_a, **_o: None), "must return a Solution"),
        (SimpleNamespace(fit=lambda *_a, **_o: np.zeros(3)), "must return a Solution"),
    ],
)
def test_methods_that_misbehave_are_refused(method, message):
    with pytest.raises(InputError, match=message):
        pb.solve(problem(bend - 1), method=method)


def test_a_progress_function_that_fails_is_named():
    with pytest.raises(InputError, match="'progress' parameter of solve raised ZeroDivisionError"):
        pb.solve(problem(bend - 1), method=small, progress=lambda _: 1 / 0)


def test_an_interrupt_is_let_through():
    given = problem(bend - 1)
    for run in (
        lambda: pb.solve(given, method=small, progress=interrupt),
        lambda: pb.solve(given, method=SimpleNamespace(fit=interrupt)),
        lambda: middle(bend - pb.data("f", interrupt, x)),
        lambda: fitted(given, pb.PIELM(nodes=9, solver=solver_that(interrupt))),
        lambda: square.boundary.where(interrupt).sample(3),
    ):
        with pytest.raises(KeyboardInterrupt):
            run()


# Conditions that cannot hold --------------------------------------------------------------------------------------


def test_exact_conditions_that_contradict_each_other_are_refused():
    places = np.linspace(0, 1, 50)[:, None]
    noise = np.random.default_rng(0).random(50)
    for conditions in (
        [pb.Dirichlet(u, 0, exact=True), pb.Dirichlet(u, 1, exact=True)],
        [pb.Observation(u, places, noise, exact=True)],
    ):
        with pytest.raises(SolveError, match="contradict"):
            middle(bend - 1, conditions=conditions)


def test_exact_conditions_that_repeat_themselves_hold():
    twice = pb.Dirichlet(u, 0, on=[[0.0], [0.0], [1.0]], exact=True)
    assert middle(bend - 1, conditions=[twice]) == pytest.approx(-0.125, abs=1e-10)


def test_a_condition_whose_coefficients_vanish_is_refused_unless_it_says_nothing():
    vanishing = x * u.diff(x)
    with pytest.raises(SolveError, match="coefficients of zero and a right-hand side that reaches 1"):
        middle(bend - 1, conditions=[pb.Dirichlet(u, 0), pb.Condition(vanishing - 1, on=line.left)])
    harmless = [pb.Dirichlet(u, 0), pb.Condition(vanishing, on=line.left)]
    assert middle(bend - 1, conditions=harmless) == pytest.approx(-0.125, abs=1e-10)


def test_a_condition_on_a_boundary_that_is_not_there_is_refused():
    with pytest.raises(GeometryError, match="Time has no boundary"):
        fitted(pb.Problem(f.diff(t) - 1, clock, [pb.Dirichlet(f, 0)]))
    nowhere = square.boundary.where(lambda X: X[:, 0] > 5)
    with pytest.raises(GeometryError, match="no points"):
        fitted(pb.Problem(pb.laplacian(w), square, [pb.Dirichlet(w, 0, on=nowhere)]))


# Solutions --------------------------------------------------------------------------------------------------------


def test_far_points_are_outside_and_never_overflow(solution):
    assert np.isnan(solution([1e308, -1e308])).all()
    assert np.isnan(solution.derivative(u, x, x)([1e300])).all()
    with pytest.raises(InputError, match="overflows at"):
        solution.derivative(u, (x, 2))([1e308], outside="value")


@pytest.mark.parametrize("domain", [square, pb.Disk((x, y), (0, 0), 1), pb.Polygon((x, y), [(0, 0), (1, 0), (0, 1)])])
def test_far_points_lie_neither_in_a_shape_nor_on_its_boundary(domain):
    assert not domain.boundary.contains([[1e308, 0.0], [-1e308, 1e308]]).any()


@pytest.mark.parametrize("field", [np.zeros(3), Stranger(), v, "v", None, 3], ids=range(6))
def test_fields_of_others_are_refused(field, solution):
    with pytest.raises(InputError, match="The fields of this solution are"):
        solution.derivative(field, x)


def test_an_exact_solution_of_zero_has_no_relative_error():
    with pytest.raises(ProblemError, match=r"no relative error; use pibls\.metrics"):
        fitted(problem(bend, exact=0)).true_error()


@pytest.mark.parametrize(
    "options",
    [
        {"levels": np.array(0.5)},
        {"levels": [[0.5], [0.5, 0.6]]},
        {"levels": np.ma.array([0.5], mask=[True])},
        {"axes": Stranger()},
        {"at": {"x": [[0.5], [0.5, 0.6]]}},
        {"at": {"x": Stranger()}},
        {"exact": sp.hyper((1, 2), (3,), x)},
    ],
    ids=range(7),
)
def test_hostile_options_of_plot_are_refused(options, solution):
    with pytest.raises(PiblsError):
        solution.plot(**options)


def test_devices_and_pipes_are_neither_read_nor_replaced(tmp_path, solution):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for use in (pb.load, solution.save):
        with pytest.raises(FileFormatError, match="not the name of a plain file"):
            use(pipe)
        with pytest.raises(FileFormatError, match="not the name of a plain file"):
            use("a\0b")
    assert pipe.is_fifo()
    with pytest.raises(FileFormatError, match="not the name of a plain file"):
        pb.load("/dev/zero")


@pytest.mark.parametrize("data", [3, ["f"], "f", Stranger()], ids=range(4))
def test_data_of_load_must_be_a_mapping(data, tmp_path, solution):
    with pytest.raises(InputError, match="'data' parameter of load"):
        pb.load(solution.save(tmp_path / "run.pibls"), data)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_file_changed_anywhere_is_refused_or_the_same(saved, changes):
    path, content = saved
    damaged = bytearray(content)
    for place, value in changes:
        damaged[int(place * len(damaged))] = value
    path.write_bytes(bytes(damaged))
    try:
        again = pb.load(path)
    except FileFormatError:
        return
    assert np.isfinite(again([0.5])).all()


@pytest.fixture(scope="module")
def saved(solution, tmp_path_factory):
    path = solution.save(tmp_path_factory.mktemp("saved") / "run.pibls")
    return path, path.read_bytes()


ZEROS = [f"sqrt({p + q} + 2*sqrt({p * q})) - sqrt({p}) - sqrt({q})" for p, q in ((2, 3), (5, 7), (11, 13))]
UNSURE = [f"sin({' + '.join(ZEROS)})", f"abs({ZEROS[0]} + ({ZEROS[1]}))", "floor(exp(100)*pi) + floor(exp(600))"]


@pytest.mark.parametrize("formula", UNSURE)
def test_constants_that_double_precision_does_not_know_are_refused(formula):
    with pytest.raises(PiblsError, match="not known in double precision"):
        pb.parse(f"u_xx = {formula}", "x y")
    tree = sp.sympify(formula.replace("abs", "Abs"), evaluate=False)
    began = time.process_time()
    with pytest.raises(PiblsError, match="what double precision knows"):
        decode(plain_tree(tree), (x, y))
    assert time.process_time() - began < 5


def plain_tree(node):
    """An expression as files store it, without SymPy's help, which would take for ever."""
    if isinstance(node, sp.Integer):
        return ["int", str(node)]
    if isinstance(node, sp.Rational):
        return ["rational", str(node.p), str(node.q)]
    return ["constant", str(node)] if not node.args else [type(node).__name__, *map(plain_tree, node.args)]
