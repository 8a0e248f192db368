"""Expressions to JSON and back: the same expression for all that can be stored, a refusal for all else."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import _CONSTANTS, _FUNCTIONS, Divergence, SpaceDerivative, Written, decode, encode
from pibls.errors import FileFormatError, ProblemError

X, Y = pb.coordinates("x y")
U = pb.field("u", X, Y)
COORDINATES = (X, Y)


def through_json(expression, functions=None):
    return decode(json.loads(json.dumps(encode(expression))), COORDINATES, functions)


def one_argument():
    several = (
        *(
            sp.atan2,
            sp.Pow,
            sp.besselj,
            sp.bessely,
            sp.besseli,
            sp.besselk,
            sp.Mod,
            sp.legendre,
            sp.hermite,
            sp.chebyshevt,
        ),
        *(sp.And, sp.Or, sp.Not, sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge, SpaceDerivative, Divergence),
    )
    return sorted(set(_FUNCTIONS) - {cls.__name__ for cls in several})


SPECIAL = [
    *(sp.atan2(X, Y), X**Y, sp.besselj(2, X), sp.bessely(0, X + 1), sp.besseli(1, X), sp.besselk(Y, X), sp.Mod(X, 2)),
    *(sp.legendre(Y, X), sp.hermite(Y, X), sp.chebyshevt(Y, X), sp.Heaviside(X), sp.Heaviside(X, 1), sp.log(X, 2)),
    *(sp.Min(X, Y, 1), sp.Max(X, 0), sp.LambertW(X), sp.sinc(X), sp.Abs(X), sp.sqrt(X), 1 / X, X ** sp.Rational(-3, 2)),
    *(
        sp.Eq(U, X),
        sp.Eq(X, Y),
        sp.Ne(X, Y),
        X < 1,
        X <= Y,
        X > 0.5,
        sp.Ge(X, sp.pi),
        sp.And(X > 0, Y < 1),
        sp.Not(sp.Eq(X, Y)),
    ),
    *(sp.Or(X > 0, sp.And(X < -1, Y > 2)), sp.true, sp.false, sp.pi, sp.E, sp.EulerGamma, sp.GoldenRatio),
    *(sp.Integer(0), sp.Integer(-7), sp.Integer(10) ** 60, sp.Rational(-22, 7), sp.Float(0.1), sp.Float(-1e300)),
    *(
        U,
        U.diff(X),
        U.diff(X, 2, Y),
        sp.Derivative(X * U, X),
        pb.laplacian(U),
        pb.div([U, X * U]),
        pb.normal_derivative(U),
    ),
    *(pb.grad(U)[0], pb.normal(X) * U, pb.unknown("k") * U, pb.laplacian(pb.laplacian(U)), pb.div(X * pb.grad(U))),
    sp.Piecewise((X, X < 0), (sp.sin(Y), sp.And(X < 1, Y > 0)), (0, True)),
    sp.Piecewise((X, X < 0)),
]


@pytest.mark.parametrize("expression", SPECIAL, ids=str)
def test_special_expressions_come_back(expression):
    again = through_json(expression)
    assert again == expression
    assert type(again) == type(expression)  # noqa: E721  # SymPy may make the class of a function anew


@pytest.mark.parametrize("name", one_argument())
def test_every_function_comes_back(name):
    expression = _FUNCTIONS[name](X)
    assert through_json(expression) == expression


def test_the_list_of_functions_is_covered():
    used = {type(node).__name__ for e in SPECIAL for node in sp.preorder_traversal(e)} | set(one_argument())
    # SymPy turns a negated comparison into the opposite one, so that Not never stays.
    assert set(_FUNCTIONS) - used == {"Not"}
    assert all(value in SPECIAL for value in _CONSTANTS.values())


numbers = st.one_of(
    st.integers(-(10**30), 10**30).map(sp.Integer),
    st.fractions().map(lambda q: sp.Rational(q.numerator, q.denominator)),
    st.floats(1e-6, 1e6).map(sp.Float),
    st.sampled_from([sp.pi, sp.E, sp.EulerGamma]),
)
leaves = st.one_of(numbers, st.sampled_from([X, Y, U, U.diff(X), U.diff(X, Y), pb.laplacian(U), pb.normal(Y)]))
smooth = st.sampled_from([sp.sin, sp.cos, sp.tanh, sp.exp, sp.erf, sp.atan, sp.asinh, sp.Abs, sp.sinc])


def grown(children):
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        st.tuples(smooth, st.sampled_from([X, Y, X * Y, U, X + 2])).map(lambda p: p[0](p[1])),
        st.tuples(children, st.sampled_from([X < Y, X >= 0, sp.Ne(X, 1)])).map(lambda p: sp.Piecewise(p, (X, True))),
        st.tuples(st.sampled_from([X, Y, U, X + Y]), st.integers(-5, 5)).map(lambda p: p[0] ** p[1]),
    )


def rebuilt(expression):
    """SymPy's own canonical form: products of products, which it leaves nested at times, become one."""
    return expression.func(*map(rebuilt, expression.args)) if expression.args else expression


@settings(max_examples=150, deadline=None)
@example(sp.Mul(2, sp.Mul(X**2, Y**2), evaluate=False))
@given(st.recursive(leaves, grown, max_leaves=12))
def test_generated_expressions_come_back(expression):
    again = through_json(expression)
    assert again in (expression, rebuilt(expression))
    assert again.free_symbols == expression.free_symbols


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_to_the_last_bit(value):
    assert float(through_json(sp.Float(value))) == value


def test_numbers_beyond_double_precision_are_refused():
    with pytest.raises(FileFormatError, match="cannot be stored: it is beyond double precision"):
        encode(X + sp.Float("2e400"))


def test_data_functions_are_bound_by_name():
    k = pb.data("k", np.cosh, X)
    expression = k * U + k.subs(X, Y)
    again = through_json(expression, {"k": np.sinh})
    assert str(again) == str(expression)
    calls = {node.func for node in again.atoms(pb.problem.Data)}
    assert len(calls) == 1
    assert calls.pop().function is np.sinh
    lost = through_json(k)
    with pytest.raises(LookupError, match=r"load with data=\{'k': function\}"):
        lost.func.function(1.0)


@pytest.mark.parametrize(
    "expression",
    [sp.fresnels(X), sp.zeta(X), sp.Function("f")(X), sp.I, sp.oo, sp.nan, sp.Integral(X, (X, 0, 1))],
    ids=str,
)
def test_what_is_not_listed_cannot_be_written(expression):
    with pytest.raises(FileFormatError, match=r"cannot be stored.*pibls\.data"):
        encode(expression)


@pytest.mark.parametrize(
    "tree",
    [
        *(
            None,
            3,
            "x",
            [],
            {},
            [[]],
            [None],
            [1, 2],
            ["int"],
            ["int", 5],
            ["int", "5.0"],
            ["int", "1e9"],
            ["int", "9" * 301],
        ),
        *(
            ["int", "--1"],
            ["int", "٣x"],
            ["rational", "1"],
            ["rational", "1", "x"],
            ["float", "wide"],
            ["float"],
            ["float", 3],
        ),
        *(
            ["constant", "oops"],
            ["constant"],
            ["coordinate", "z"],
            ["coordinate"],
            ["normal", "z"],
            ["unknown", "import os"],
        ),
        *(
            ["field", "u"],
            ["field", "lambda", ["coordinate", "x"]],
            ["field", "u", ["int", "1"]],
            ["data", "k"],
            ["data"],
        ),
        *(
            ["derivative"],
            ["derivative", ["coordinate", "x"], ["z", 1]],
            ["derivative", ["coordinate", "x"], ["x", "many"]],
        ),
        *(["piecewise"], ["piecewise", [["int", "1"]]], ["piecewise", 3], ["sin"], ["sin", ["int", "1"], ["int", "2"]]),
        *(
            ["eval", ["int", "1"]],
            ["__class__", ["int", "1"]],
            ["system", "ls"],
            ["read", ["int", "1"]],
            ["Symbol", "x"],
        ),
        *(
            ["init__"],
            ["Pow", ["int", "10"], ["int", "9999999999"]],
            ["Pow", ["rational", "1", "3"], ["int", "-99999999"]],
        ),
        *(
            ["factorial", ["int", "99999999"]],
            ["gamma", ["int", "99999999"]],
            ["hermite", ["int", "99999"], ["coordinate", "x"]],
        ),
        ["Pow", ["Pow", ["int", "10"], ["int", "20000"]], ["int", "20000"]],
        ["Pow", ["int", "2"]],
        *(
            ["Pow", ["int", "4"], ["rational", "9" * 200, "2"]],
            ["exp", ["Mul", ["int", "-9999999999"], ["log", ["int", "2"]]]],
            ["exp", ["Mul", ["int", "9999999999"], ["log", ["int", "2"]]]],
            ["floor", ["exp", ["int", "9999999999"]]],
            ["gamma", ["rational", "9999999999", "2"]],
            ["loggamma", ["int", "9" * 200]],
            ["Pow", ["coordinate", "x"], ["int", "999999999"]],
            ["derivative", ["field", "u", ["coordinate", "x"]], ["x", 10**9]],
            ["derivative", ["field", "u", ["coordinate", "x"]], ["x", -1]],
            ["legendre", ["int", "50"], ["legendre", ["int", "50"], ["legendre", ["int", "5"], ["coordinate", "x"]]]],
            ["Add", *[["coordinate", "x"]] * 60_000],
            ["int", "٣"],
        ),
    ],
    ids=lambda tree: str(tree)[:60],
)
def test_malformed_trees_are_refused(tree):
    with pytest.raises(FileFormatError, match=r"malformed|cannot be read|does not know|too large"):
        decode(tree, COORDINATES)


def test_large_but_reasonable_numbers_are_read():
    assert decode(["Pow", ["int", "10"], ["int", "100"]], COORDINATES) == sp.Integer(10) ** 100
    assert decode(["Pow", ["int", "1"], ["int", "9999999999"]], COORDINATES) == 1
    assert decode(["factorial", ["int", "20"]], COORDINATES) == sp.factorial(20)


def test_operators_within_operators_are_limited():
    tree = ["Mul", ["field", "u", ["coordinate", "x"], ["coordinate", "y"]], ["coordinate", "x"]]
    for _ in range(7):
        tree = ["Laplacian", tree]
    with pytest.raises(ProblemError, match="too large"):
        Written(2).add(decode(tree, COORDINATES))


def nested(depth):
    expression = X
    for _ in range(depth):
        expression = sp.sin(expression)
    return expression


def test_what_is_written_can_be_read_however_deep():
    deep = nested(200)
    assert through_json(deep) == deep
    for depth in (201, 260):
        with pytest.raises(FileFormatError, match="nested over 200 deep"):
            encode(nested(depth))


def test_deep_trees_from_a_stranger_are_refused():
    tree = ["coordinate", "x"]
    for _ in range(201):
        tree = ["sin", tree]
    with pytest.raises(FileFormatError, match="malformed"):
        decode(tree, COORDINATES)
    for _ in range(20_000):
        tree = ["sin", tree]
    with pytest.raises(FileFormatError):
        decode(tree, COORDINATES)
