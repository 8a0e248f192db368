"""A residual becomes coefficients per derivative and a source."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from internals import compile_function, lower, resolve
from pibls.errors import ProblemError
from pibls.problem import coordinates, data, div, field, grad, laplacian, normal, normal_derivative

x, y, t = coordinates("x y t")
u = field("u", x, y)
v = field("v", x, y)


def terms(form):
    return {(term.field, term.multi_index): term.coefficient for term in form.terms}


def test_laplacian_is_over_space_only():
    w = field("w", x, y, t)
    assert resolve(laplacian(w), (x, y)) == w.diff(x, 2) + w.diff(y, 2)
    assert resolve(laplacian(w), (x, y, t)) == w.diff(x, 2) + w.diff(y, 2) + w.diff(t, 2)


def test_operators_nest_and_commute_with_derivatives():
    w = field("w", x, y, t)
    bilaplacian = resolve(laplacian(laplacian(w)), (x, y))
    assert bilaplacian == w.diff(x, 4) + 2 * w.diff(x, 2, y, 2) + w.diff(y, 4)
    assert resolve(laplacian(w).diff(t), (x, y)) == w.diff(x, 2, t) + w.diff(y, 2, t)
    assert resolve(grad(w)[0].diff(t), (x, y)) == w.diff(x, t)


def test_divergence_of_a_flux_with_and_without_time():
    w = field("w", x, y, t)
    k = 1 + x * y
    expected = sp.expand(k.diff(x) * w.diff(x) + k * w.diff(x, 2) + k.diff(y) * w.diff(y) + k * w.diff(y, 2))
    assert sp.expand(resolve(div(k * grad(w)), (x, y))) == expected
    assert resolve(div([u, v]), (x, y)) == u.diff(x) + v.diff(y)
    for exact in (sp.sin(x) * sp.cos(2 * y) * sp.exp(3 * t), x**2 * y):
        put_in = resolve(div(k * grad(w)).subs(w, exact), (x, y))
        assert sp.expand(put_in - expected.subs(w, exact).doit()) == 0
    with pytest.raises(ProblemError, match="one entry per space coordinate"):
        resolve(div([u, v, u]), (x, y))


def test_gradient_of_time_counts_as_zero():
    w = field("w", x, t)
    assert resolve(grad(w).dot(grad(w)), (x,)) == w.diff(x) ** 2


def test_normal_derivative_uses_the_normal():
    n_x, n_y = normal(x, y)
    assert resolve(normal_derivative(u), (x, y)) == n_x * u.diff(x) + n_y * u.diff(y)


def test_linear_form_has_coefficients_and_source():
    form = lower(sp.sin(x) * u.diff(x, 3, y, 2) - 2 * u + v.diff(y) - x * y, (x, y))
    assert form.is_linear
    assert terms(form) == {("u", (3, 2)): sp.sin(x), ("u", (0, 0)): -2, ("v", (0, 1)): 1}
    assert form.source == -x * y
    assert form.order == 5
    assert form.order_along(y, "u") == 2
    assert form.order_along(x, "p") == -1


def test_nonlinear_form_is_the_frechet_derivative():
    form = lower(u * u.diff(x) + sp.exp(u) - 1, (x, y))
    assert not form.is_linear
    slots = {term.multi_index: term.slot for term in form.terms}
    u0, u1 = slots[0, 0], slots[1, 0]
    coefficients = terms(form)
    assert sp.simplify(coefficients["u", (0, 0)] - u1 - sp.exp(u0)) == 0
    assert coefficients["u", (1, 0)] == u0
    assert form.source == 0


def test_hidden_linearity_is_found():
    assert lower((u + 1) ** 2 - u**2 - x, (x, y)).is_linear
    assert lower(sp.exp(sp.log(sp.exp(x))) * u.diff(x) - 1, (x, y)).is_linear


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(-5, 5).filter(lambda c: abs(c) > 1e-3)),
        min_size=1,
        max_size=6,
        unique_by=lambda item: item[:2],
    )
)
def test_any_linear_combination_is_read_back(entries):
    expression = sp.Add(*(c * (u.diff(x, i, y, j) if i + j else u) for i, j, c in entries))
    assert {k[1]: float(c) for k, c in terms(lower(expression, (x, y))).items()} == {
        (i, j): pytest.approx(c) for i, j, c in entries
    }


def test_derivative_of_data_is_refused_with_a_remedy():
    k = data("k", lambda x: x, x)
    with pytest.raises(ProblemError, match=r"another pibls\.data function"):
        lower((k * u).diff(x).doit(), (x, y))


def test_compiled_functions_evaluate():
    X = np.array([[1.0, 2.0], [0.5, -1.0]])
    k = data("k", lambda a: a**2, x)
    assert compile_function(k * y + sp.pi, (x, y))(X) == pytest.approx([2 + np.pi, -0.25 + np.pi])
    assert compile_function(sp.Integer(3), (x, y)).constant == 3
    assert compile_function(sp.Piecewise((x, x > 0.7), (0, True)), (x, y))(X) == pytest.approx([1, 0])
    assert compile_function(sp.besselj(0, x), (x, y))(X) == pytest.approx([0.7651976866, 0.9384698072])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a[:1], "shape"),
        (lambda a: np.full((len(a), 2), 1.0), "shape"),
        (lambda a: "no", "type"),
        (lambda a: 1 / 0, "ZeroDivisionError"),
        (lambda a: a + 1j, "type"),
        (lambda a, b: a, "TypeError"),
    ],
)
def test_bad_data_functions_are_named(function, message):
    k = data("conductivity", function, x)
    with pytest.raises(ProblemError, match=f"'conductivity'.*{message}"):
        compile_function(k + x, (x, y))(np.ones((3, 2)))


def test_values_that_are_not_finite_say_where():
    with pytest.raises(ProblemError, match=r"1/x is not finite at 1 of 2 points, first at x=0, y=1"):
        compile_function(1 / x, (x, y))(np.array([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(ProblemError, match="not finite"):
        compile_function(sp.sqrt(x), (x, y))(np.array([[-1.0, 1.0]]))
    with pytest.raises(ProblemError, match="not a finite real number"):
        compile_function(sp.zoo, (x, y))
    with pytest.raises(ProblemError, match="needs outward normals"):
        compile_function(normal(x) * y, (x, y))(np.ones((1, 2)))


def test_fields_that_cancel_leave_the_residual():
    X = np.array([[0.5, 1.0], [2.0, -3.0]])
    for rest in (v, v**2, sp.exp(v)):
        form = lower((u + 1) ** 2 - u**2 - 2 * u + rest - x, (x, y))
        assert form.fields == ("v",)
        values = np.array([1.5, 0.5])
        expected = 1 + sp.lambdify(v, rest)(values) - X[:, 0] if rest != sp.exp(v) else 1 + np.exp(values) - X[:, 0]
        np.testing.assert_allclose(form.residual_function(X, None, [values]), expected)


def test_what_enters_through_a_step_keeps_its_value_in_the_residual():
    form = lower(v.diff(x) - sp.Piecewise((1, u > 0), (0, True)), (x, y))
    assert not form.is_linear
    state = {"v": np.array([3.0, 3.0]), "u": np.array([2.0, -2.0])}
    values = form.residual_function(np.zeros((2, 2)), None, [state[term.field] for term in form.terms])
    np.testing.assert_array_equal(values, [2, 3])
    assert {t.field: t.coefficient for t in form.terms}["u"] == 0


def test_plainly_nonlinear_residuals_are_not_simplified(monkeypatch):
    def refuse(*_):
        raise AssertionError("simplify is slow, and not needed to see that this depends on the state")

    monkeypatch.setattr(sp, "simplify", refuse)
    flux = u.diff(x) / sp.sqrt(1 + u.diff(x) ** 2 + u.diff(y) ** 2)
    k = data("k", lambda a: a, x)
    for expression in (resolve(flux.diff(x), (x, y)), k * sp.exp(u) * sp.sin(u.diff(x)) - 1, u**3):
        assert not lower(expression, (x, y)).is_linear


def test_coefficients_of_a_nonlinear_form_are_functions_of_the_state():
    form = lower(x * u**2 - u.diff(y), (x, y))
    X, values = np.array([[2.0, 0.0]]), {(0, 0): np.array([5.0]), (0, 1): np.array([7.0])}
    state = [values[term.multi_index] for term in form.terms]
    found = {t.multi_index: f(X, None, state)[0] for t, f in zip(form.terms, form.coefficient_functions, strict=True)}
    assert found == {(0, 0): 20.0, (0, 1): -1.0}


@given(st.floats(-1e3, 1e3), st.floats(0.5, 3.0))
def test_no_digit_of_a_decimal_is_lost_whatever_was_compiled_before(factor, power):
    found = compile_function(factor * x + x**power + y, (x, y))(np.array([[0.7, 0.25]]))[0]
    assert found == pytest.approx(factor * 0.7 + 0.7**power + 0.25, rel=1e-15, abs=1e-13)
    assert compile_function(factor * x, (x, y))(np.ones((1, 2)))[0] == factor


def test_which_coefficients_depend_on_the_unknowns():
    form = lower(u.diff(x, 2) + x * u.diff(y) + u**3 - 7, (x, y))
    assert dict(zip(terms(form), form.depends, strict=True)) == {
        ("u", (2, 0)): False,
        ("u", (0, 1)): False,
        ("u", (0, 0)): True,
    }
