"""A problem checks itself on construction and says what to do."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import PiblsError, ProblemError

x, y, t = pb.coordinates("x y t")
u = pb.field("u", x, y)
v = pb.field("v", x, y)
w = pb.field("w", x, t)
square = pb.Rectangle((x, 0, 1), (y, 0, 1))
line = pb.Interval((x, 0, 1))
strip = line * pb.TimeInterval(t, 0, 1)
poisson = sp.Eq(-pb.laplacian(u), 1)


def test_statements_follow_equations_and_conditions():
    problem = pb.Problem(sp.Eq(w.diff(t), w.diff(x, 2)), strip, [pb.Periodic(w, x), pb.Initial(w, sp.sin(x))])
    assert [s.source for s in problem.statements] == [0, 1, 1, 2]
    assert [s.form.order for s in problem.statements] == [2, 0, 1, 0]
    assert problem.is_linear
    assert problem.field_names == ("w",)


def test_nonlinear_problem_builds_and_is_refused_where_one_linear_solve_must_do():
    problem = pb.Problem(sp.Eq(-pb.laplacian(u) + u**3, 1), square, [pb.Dirichlet(u, 0)])
    assert not problem.is_linear
    with pytest.raises(PiblsError, match="is nonlinear, and only linear problems"):
        pb.BayesianPIELM(nodes=5).fit(problem, pb.Points.sample(problem, 10))


def test_unknown_numbers_make_an_inverse_problem():
    k, s = pb.unknown("k"), pb.field("s", x)
    problem = pb.Problem(sp.Eq(-k * s.diff(x, 2), 1), line, [pb.Dirichlet(s, 0)])
    assert problem.parameters == (k,)
    assert not problem.is_linear
    with pytest.raises(PiblsError, match="Nothing was measured that could determine k"):
        pb.solve(problem)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pb.Problem(sp.Eq(x, 1), square), "no unknown in it"),
        (lambda: pb.Problem([], square), "at least one equation"),
        (lambda: pb.Problem("u_xx = 0", square), "must be a SymPy equation"),
        (lambda: pb.Problem(sp.Eq(x, x), square), "always true"),
        (lambda: pb.Problem(poisson, square, [pb.Dirichlet(v, 0)]), "has no equation"),
        (lambda: pb.Problem(u.diff(x) + v.diff(y), square), "one is without an equation"),
        (lambda: pb.Problem(sp.Eq(pb.laplacian(u), sp.Symbol("k")), square), "undeclared symbol k.*pibls.unknown"),
        (lambda: pb.Problem(sp.Eq(pb.laplacian(u), sp.Symbol("x")), square), "not the coordinate of the same name"),
        (lambda: pb.Problem(sp.Eq(pb.laplacian(u), sp.Function("g")(x)), square), "undeclared function"),
        (lambda: pb.Problem(sp.Eq(pb.laplacian(w), 1), square), r"does not have the domain's coordinates"),
        (lambda: pb.Problem(poisson, line), r"does not have the domain's coordinates"),
        (lambda: pb.Problem(u.subs(x, 0) + u, square), "the value in one place"),
        (lambda: pb.Problem(poisson, "square"), "must be a shape"),
        (lambda: pb.Problem(poisson, square, [pb.Dirichlet(u, 0, on=pb.Disk((x, y), (0, 0), 1).boundary)]), "off the"),
        (lambda: pb.Problem(poisson, square, [pb.Condition(sp.Eq(u, 1), on=(2.0, 0.5))]), "off the domain.*outside"),
        (lambda: pb.Problem(poisson, square, [pb.Condition(sp.Eq(u, 1), on=(2.0, 0.5, 1.0))]), "shape"),
        (lambda: pb.Problem(poisson, square, [pb.Initial(u, 0)]), "needs a time"),
        (lambda: pb.Problem(poisson, pb.Disk((x, y), (0, 0), 1), [pb.Periodic(u, x)]), "no pair of opposite"),
        (lambda: pb.Problem(poisson, square, [pb.Dirichlet(u, 0), pb.Dirichlet(u, 0)]), "given twice"),
        (lambda: pb.Problem([poisson, poisson], square, [pb.Dirichlet(u, 0)]), "given twice"),
        (lambda: pb.Problem(poisson, square, ["u = 0"]), "list of conditions"),
        (lambda: pb.Problem(poisson, square, exact=sp.Symbol("k")), "must be an expression of"),
        (lambda: pb.Problem(poisson, square, exact={"p": x}), "per field"),
        (lambda: pb.Problem(-pb.laplacian(u) + sp.I, square), "imaginary unit.*complex=True"),
        (lambda: pb.Problem(pb.laplacian(u), square, [pb.Condition(sp.Eq(u.subs(x, 0), 1))]), "the value in one place"),
        (lambda: pb.Problem(pb.laplacian(u), square, [pb.Dirichlet(u, 0, on=0.5)]), "The 'on' parameter of Dirichlet"),
        (lambda: pb.Mean(u, 1, on=square.left), "over the whole domain.*Observation.average"),
        (lambda: pb.Mean(u, x), "must be a number.*Got x"),
        (lambda: pb.Problem(u + sp.Integral(u, x), square), "differential equations only"),
        (lambda: pb.Problem(u.diff(x) + pb.normal(x), square), "exists only on a boundary"),
        (lambda: pb.Problem(sp.Eq(w.diff(t), 1), strip, [pb.Condition(w + pb.normal(t))]), "not along a space"),
        (lambda: pb.Problem(poisson, square, [pb.Observation(u, [[3.0, 3.0]], [1.0])]), "outside"),
        (lambda: pb.Problem(u + pb.data("u", lambda x: x, x), square), "a field and for a data function"),
    ],
)
def test_bad_problems_are_refused(build, message):
    with pytest.raises(ProblemError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pb.coordinates(""), "string of names"),
        (lambda: pb.coordinates("x x"), "twice"),
        (lambda: pb.coordinates("1x"), "identifier"),
        (lambda: pb.coordinates(3), "string of names"),
        (lambda: pb.field("u"), "at least one coordinate"),
        (lambda: pb.field("u", "x"), "coordinates made by"),
        (lambda: pb.field("u", x, x), "twice"),
        (lambda: pb.field("lambda", x), "identifier"),
        (lambda: pb.data("f", 3, x), "needs a callable"),
        (lambda: pb.unknown("a b"), "identifier"),
        (lambda: pb.laplacian(3), "takes a field"),
        (lambda: pb.grad("u"), "takes a field"),
        (lambda: pb.div(u), "takes a sequence"),
        (lambda: pb.Dirichlet(x, 0), "takes a field"),
        (lambda: pb.Dirichlet(u, lambda x: x), "wrap it as pibls.data"),
        (lambda: pb.Dirichlet(u, float("nan")), "finite real number"),
        (lambda: pb.Dirichlet(u, 0, weight=0), "above 0"),
        (lambda: pb.Dirichlet(u, 0, exact=1), "True or False"),
        (lambda: pb.Dirichlet(u, 0, on="left"), "boundary part"),
        (lambda: pb.Dirichlet(u, 0, on=[np.nan, 1.0]), "boundary part"),
        (lambda: pb.Periodic(u.diff(x), x), "takes a field"),
        (lambda: pb.Periodic(u, t), "takes a coordinate of"),
        (lambda: pb.Periodic(u, x, -1), "at least 0"),
        (lambda: pb.Mean(u, "a"), "finite real number"),
        (lambda: pb.Observation(u, [[0.1, 0.1]], [1.0, 2.0]), "one value per point"),
        (lambda: pb.Observation(u, [[0.1, 0.1]], [np.inf]), "finite real numbers"),
        (lambda: pb.Observation(u, [[0.1, 0.1]], [1.0], noise=-1), "positive number"),
        (lambda: pb.Observation(u, "points", [1.0]), "array of points"),
        (lambda: pb.Condition(True), "simply True"),
        (lambda: pb.Problem(sp.Eq(u.diff(x, 2), 1), square, [u >= 0]), "inequality"),
        (lambda: pb.stress([u, u], young=1, poisson=0.5), "cannot be compressed"),
    ],
)
def test_bad_symbols_and_conditions_are_refused(build, message):
    with pytest.raises(PiblsError, match=message):
        build()


def test_a_space_part_is_lifted_to_space_time():
    problem = pb.Problem(sp.Eq(w.diff(t), w.diff(x, 2)), strip, [pb.Dirichlet(w, 0, on=line.left), pb.Initial(w, 0)])
    samples = problem.statements[1].place.part.sample(5)
    assert samples.points[:, 0] == pytest.approx(0)
    assert np.ptp(samples.points[:, 1]) > 0.1


def test_field_may_list_coordinates_in_another_order():
    z = pb.field("z", t, x)
    problem = pb.Problem(sp.Eq(z.diff(t), z.diff(x, 2)), strip, [pb.Dirichlet(z, 0), pb.Initial(z, 0)])
    assert {term.multi_index for term in problem.statements[0].form.terms} == {(0, 1), (2, 0)}


def test_prints_as_mathematics():
    problem = pb.Problem(
        [sp.Eq(-pb.laplacian(u) + pb.data("k", lambda x: x, x) * v.diff(x, y), sp.sin(x)), pb.div([u, v])],
        square,
        [pb.Dirichlet(u, 0), pb.Robin(v, 1, 2, x, on=square.left), pb.Mean(v, 0), pb.Periodic(v, y)],
    )
    assert str(problem) == (
        "Find u(x, y), v(x, y) with\n"
        "  k*v_xy - laplacian(u) = sin(x)   in Rectangle((x, 0, 1), (y, 0, 1))\n"
        "  div(u, v) = 0                    in Rectangle((x, 0, 1), (y, 0, 1))\n"
        "  u = 0                            on the boundary\n"
        "  v + 2*dn(v) = x                  on left\n"
        "  v = 0 on average\n"
        "  v in y                           periodic"
    )
    latex = problem.latex()
    assert r"k v_{xy} - \Delta u = \sin{\left(x \right)}" in latex
    assert r"\partial_n v" in latex
    assert r"\nabla\cdot \left(u, v\right) = 0" in latex
    assert problem._repr_latex_().startswith("$$")
    assert "linear, u(x, y), v(x, y), 2 equations, 4 conditions" in repr(problem)


def test_exact_values_per_field():
    problem = pb.Problem(poisson, square, [pb.Dirichlet(u, 0)], exact=x * y)
    assert problem.exact_values(np.array([[2.0, 3.0]]))["u"] == pytest.approx([6.0])
    bare = pb.Problem(poisson, square, [pb.Dirichlet(u, 0)])
    with pytest.raises(ProblemError, match="no exact solution"):
        bare.exact_values(np.array([[2.0, 3.0]]))


def test_operators_may_equal_sums_with_decimals():
    """SymPy decides some equations when they are written; it must not take this one for false."""
    assert isinstance(sp.Eq(-pb.laplacian(u), y + 2.0), sp.Eq)
    assert isinstance(sp.Eq(-pb.div(x * pb.grad(u)), 1.0 * y - 0.5), sp.Eq)
