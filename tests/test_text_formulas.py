"""Formulas: the same as in Python, or refused with a place and a remedy."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import pibls as pb
from internals import FUNCTIONS, write_expression
from pibls.errors import InputError, PiblsError, TextError

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x, y, t), pb.field("v", x, y, t)
k = pb.unknown("k")
n_x = pb.normal(x)

SAME = {
    "u_xx + u_yy = 0": sp.Eq(u.diff(x, 2) + u.diff(y, 2), 0),
    "u_t = 0.1*u_xx + exp(-t)*sin(pi*x)": sp.Eq(u.diff(t), 0.1 * u.diff(x, 2) + sp.exp(-t) * sp.sin(sp.pi * x)),
    "u_xxxx": u.diff(x, 4),
    "u_xyt": u.diff(x, y, t),
    "diff(u, x, 2, y)": u.diff(x, 2, y),
    "diff(x*sin(x*y), x, 2)": (x * sp.sin(x * y)).diff(x, 2),
    "diff(u*u_x, x)": (u * u.diff(x)).diff(x),
    "-laplacian(u) + p*u": -pb.laplacian(u) + 3 * u,
    "div((1 + x**2)*grad(u))": pb.div((1 + x**2) * pb.grad(u)),
    "div([u, v, 0])": pb.div([u, v, 0]),
    "dot(grad(u), grad(v))": pb.grad(u).dot(pb.grad(v)),
    "grad(u)[x] + [1, 2][1]": pb.grad(u)[0] + 2,
    "dn(u) + n_x*v = 1": sp.Eq(pb.normal_derivative(u) + n_x * v, 1),
    "k*u": k * u,
    "1/3 + x/2": sp.Rational(1, 3) + x / 2,
    "2*(x + 1)": 2 * x + 2,
    "product(2, x + 1)": sp.Mul(2, x + 1, evaluate=False),
    "-x**2": -(x**2),
    "2**-1*x": x / 2,
    "x**y**2": x ** (y**2),
    "e**x + pi": sp.exp(x) + sp.pi,
    "where(x < 0.5, 1, y)": sp.Piecewise((1, x < 0.5), (y, True)),
    "piecewise([1, x < 0], [2, 0 <= x < y or not (y > 1)])": sp.Piecewise(
        (1, x < 0), (2, sp.Or(sp.And(sp.Le(0, x), x < y), sp.Not(y > 1)))
    ),
    "max(x, y, 0)*abs(x)": sp.Max(x, y, 0) * sp.Abs(x),
    "besselj(2, x) + legendre(3, y)": sp.besselj(2, x) + sp.legendre(3, y),
    "heaviside(x) - heaviside(x, 1)": sp.Heaviside(x) - sp.Heaviside(x, 1),
    "\n u_x\n  +\tu_y ": u.diff(x) + u.diff(y),
}


def read(text):
    return pb.parse(text, "x y t", "u, v", {"p": 3}, unknowns=[k])


@pytest.mark.parametrize("text", SAME)
def test_text_says_the_same_as_python(text):
    assert read(text) == SAME[text]


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.fewest == 1])
def test_values_of_functions_agree_with_sympy(name):
    function = FUNCTIONS[name]
    point = 1.25 if name == "acosh" else 0.25
    assert function.value(point) == pytest.approx(float(function.make(sp.Float(point))), rel=1e-12)


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.fewest == 2])
def test_values_of_functions_of_two_agree_with_sympy(name):
    function = FUNCTIONS[name]
    assert function.value(2, 0.75) == pytest.approx(float(function.make(2, sp.Float(0.75))), rel=1e-12)


def test_symbols_and_parameters_of_every_sort():
    table = pb.data("c", lambda x: 1 + x, x)
    w = pb.field("w", x)
    result = pb.parse("c*w_x + a*b + d", [x], [w, table], {"a": sp.pi, "b": 0.5, "d": x**2})
    assert result == table * w.diff(x) + sp.pi * sp.Float(0.5) + x**2
    assert pb.parse("e + pi", "x e") == pb.coordinates("x e")[1] + sp.pi
    assert pb.parse("w", x, w) == w


def test_long_coordinates_and_ambiguous_subscripts():
    r, theta = pb.coordinates("r theta")
    w = pb.field("w", r, theta)
    assert pb.parse("w_rtheta + w_thetatheta", (r, theta), "w") == w.diff(r, theta) + w.diff(theta, 2)
    with pytest.raises(TextError, match="two ways"):
        pb.parse("u_xx", "x xx")
    assert pb.parse("diff(u, x, 2)", "x xx").variable_count[0][1] == 2


ATTACKS = {
    "u.__class__": (1, 2, "character ."),
    "().__class__.__bases__[0]": (1, 3, "character ."),
    "__import__('os')": (1, 1, "begin with a letter"),
    "u_x + _private": (1, 7, "begin with a letter"),
    "import os": (1, 1, "no 'import'"),
    "exec(x)": (1, 1, "no function 'exec'"),
    "eval(x)": (1, 1, "no function 'eval'"),
    "open(x)": (1, 1, "no function 'open'"),
    "lambda x: x": (1, 1, "no 'lambda'"),
    "[x for x in y]": (1, 4, "no 'for'"),
    "(x := 1)": (1, 4, "character :"),
    "f'{x}'": (1, 2, "character '"),
    '"text"': (1, 1, 'character "'),
    "x if y else 1": (1, 3, "where"),
    "await x": (1, 1, "no 'await'"),
    "{x: 1}": (1, 1, "without braces"),
    "sin(*x)": (1, 1, "separated by commas"),
    "sin(x=1)": (1, 6, "inside brackets"),
    "x # comment": (1, 3, "Comments"),
    "x; y": (1, 2, "one equation"),
    "x @ y": (1, 3, "character @"),
    "x % y": (1, 3, "remainder"),
    "x // y": (1, 1, "remainder"),
    "x ^ 2": (1, 3, r"\*\*"),
    "x & y": (1, 3, "'and'"),
    "1j*x": (1, 1, "runs into a name"),
    "0x10": (1, 1, "runs into a name"),
    "1_000": (1, 1, "digits without _"),
    "2x": (1, 1, r"'2\*x'"),
    "9**9**9**9": (1, 4, "exponent"),
    "10**10**10": (1, 1, "exponent"),
    "2**999*2**999": (1, 1, "too large"),
    "exp(exp(exp(1000)))": (1, 9, "too large"),
    "1e999": (1, 1, "too large"),
    "9" * 61: (1, 1, "digits"),
    "(1 + 1/10**30)**1000": (1, 1, "too many digits"),
    "(x/x*10)**(x/x*10)**(x/x*10)": (1, 1, "exponent"),
    "where(0 < 1, 99, x)**where(0 < 1, 999, x)": (1, 1, "too large"),
    "gamma(10**6)": (1, 1, "too large"),
    "loggamma(10**9)": (1, 1, "too large"),
    "besselj(10**9, x)": (1, 1, "whole number"),
    "legendre(x, x)": (1, 1, "whole number"),
    "legendre(9, " + "x + " * 20 + "x)": (1, 1, "more than 20 parts"),
    "diff(exp(sin(u)*u)*cos(v*x), x, 4)": (1, 1, "too large"),
    "diff(sin(x), x, 50)": (1, 1, "order 50"),
    "u_" + "x" * 101: (1, 1, "There is no"),
    "diff(u, x, 101)": (1, 1, "order 101"),
    "(" * 300 + "x" + ")" * 300: (1, 41, "nested"),
    "-" * 1000 + "x": (1, 42, "nested"),
    "x**" * 900 + "x": (1, 121, "nested"),
    "x + " * 1500 + "x": (1, 4001, "words"),
    "x" * 1_000_000: (1, 20001, "characters long"),
    "u\x00": (1, 2, "control character"),
    "u\u202e": (1, 2, "RIGHT-TO-LEFT OVERRIDE"),
    "ｕ_xx": (1, 1, "FULLWIDTH"),
    "\u0445 + 1": (1, 1, "CYRILLIC"),
    "x − 1": (1, 3, "minus sign"),
    "u²": (1, 2, r"\*\*2"),
    "x + \\\n y": (1, 5, "character"),
}


@pytest.mark.parametrize("text", ATTACKS, ids=lambda text: text[:30])
def test_attacks_are_refused_with_a_place(text):
    line, column, words = ATTACKS[text]
    with pytest.raises(TextError, match=words) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    excerpt, carets = caught.value.excerpt.split("\n")
    assert set(carets.strip()) == {"^"}
    assert len(excerpt) <= 115


FAULTS = {
    "sinn(x)": "Did you mean 'sin'",
    "ln(x)": "Did you mean 'log'",
    "laplacain(u)": "Did you mean 'laplacian'",
    "sin": r"brackets: sin\(x\)",
    "u_xz": "coordinates x, y, t",
    "w": "Declare it",
    "u(x, y, t)": "without brackets",
    "3(x)": "write \\* for a product",
    "x y": "cannot be read",
    "*x": "cannot be read",
    "sin(": "never closed",
    "x)": "closes nothing",
    "[x)": "closes nothing",
    "u = 1 = 2": "second equation sign",
    "u = ": "side of the equation is empty",
    " ": "empty",
    "u == 1": "single =",
    "laplacian(u) == 1": "single =",
    "x < 1": "is a condition",
    "[x, y]": "is a vector",
    "[]": "needs entries",
    "(x, y)": "Tuple",
    "sin(x, y)": "takes 1 argument, not 2",
    "atan2(x)": "takes 2 arguments, not 1",
    "laplacian(u, v)": "takes 1 argument",
    "laplacian([u, v])": "laplacian is given a vector",
    "div(u)": "div is given a number",
    "grad(1)": "Got the number",
    "dot([x, y], [1, 2, 3])": "2 and 3 entries",
    "[x, y]*[x, y]": "Did you mean dot",
    "x + [x, y]": "a number and a vector",
    "x/[x, y]": "divides by a vector",
    "(x < 1) + 1": "adds a condition",
    "where(x, 1, 2)": "a condition is needed",
    "where(x < 1, 2)": "takes 3 arguments",
    "piecewise([1, x < 0, 2])": r"\[value, condition\]",
    "piecewise(1, [2, x < 0])": "branches",
    "not x": "a condition is needed",
    "grad(u)[7]": "entries, numbered from 0",
    "grad(u)[u]": "given by a coordinate",
    "diff(u)": "diff takes an expression",
    "diff(u, u)": "diff takes coordinates",
    "diff(u, x, 0)": "orders above 0",
    "product(x, y)": "whole number or a fraction",
    "1/0": "divides by zero",
    "x/(y - y)": "divides by zero",
    "sqrt(-1)": "no real value",
    "(-8)**0.5": "no real value",
    "log(0)": "no real value",
    "tan(pi/2)": "not finite",
    "diff(where(x < y, x**2, u), x, 2)": "kinks",
    "(" + "where(u < v, x, y) + " * 10 + "x)**y": "What has branches",
    "max(laplacian(u), 0)": "Operators such as laplacian",
    "abs(" + "+".join(f"sin({i}*x)" for i in range(20)) + ")": "more than 40 parts",
}


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:30])
def test_mistakes_are_explained(text):
    with pytest.raises(TextError, match=FAULTS[text]):
        read(text)


def grown(times):
    parameters = {"a": x + sp.sin(x)}
    text = " + ".join(f"{f}(a*{i})" for i, f in enumerate(["sin", "cos", "exp", "tanh"], start=2))
    for _ in range(times):
        parameters["a"] = pb.parse(text, "x", parameters=parameters)
    return parameters["a"]


def test_growth_through_parameters_is_refused():
    assert grown(2).has(sp.tanh)
    with pytest.raises(TextError, match="beyond 4000 parts"):
        grown(12)


def test_errors_say_where_in_several_lines_and_can_be_sent_elsewhere():
    with pytest.raises(TextError) as caught:
        read("u_x +\n  cosn(x) = 0")
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == (
        "line 2, column 3: There is no function 'cosn'. Did you mean 'cos'?\n      cosn(x) = 0\n      ^^^^"
    )
    assert isinstance(error, ValueError)
    assert isinstance(error, PiblsError)


def test_long_sums_are_read_and_data_is_not_differentiated():
    terms = [f"sin({i}*x)" for i in range(1, 200)]
    assert read(" + ".join(terms)) == sp.Add(*(sp.sin(i * x) for i in range(1, 200)))
    table = pb.data("c", np.sin, x)
    with pytest.raises(TextError, match="data of its own"):
        pb.parse("diff(c*u, x)", "x", ["u", table])


@pytest.mark.parametrize(
    "options",
    [
        {"text": 3, "coordinates": "x"},
        {"text": "x", "coordinates": [3]},
        {"text": "x", "coordinates": "x u"},
        {"text": "x", "coordinates": "x", "parameters": {"x": 1}},
        {"text": "x", "coordinates": "x", "fields": [x]},
        {"text": "x", "coordinates": "x", "parameters": {"a": "1"}},
        {"text": "x", "coordinates": "x", "parameters": {"a": float("nan")}},
    ],
)
def test_bad_arguments_of_parse(options):
    with pytest.raises(InputError):
        pb.parse(**options)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(TextError):
        read(text)


numbers = st.floats(-1e6, 1e6, allow_nan=False).map(sp.Float) | st.fractions(-99, 99, max_denominator=99).map(
    sp.Rational
)
leaves = numbers | st.sampled_from([x, y, u, v, u.diff(x), u.diff(x, 2, y), k, n_x, sp.pi])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.sampled_from([2, 3, -1, sp.Rational(1, 3)])).map(lambda p: (p[0] ** 2 + 1) ** p[1]),
        inner.map(sp.sin),
        inner.map(lambda e: sp.exp(-(e**2))),
        inner.map(lambda e: sp.Piecewise((e, x < y), (1, True))),
        inner.map(pb.laplacian),
    ),
    max_leaves=8,
)


@given(expressions)
def test_what_is_written_reads_back_the_same(expression):
    try:
        result = read(write_expression(expression))
    except (TextError, InputError):
        # Too large a number, or operators nested too deeply: refused, but never read as something else.
        assume(False)
    assert result == expression
