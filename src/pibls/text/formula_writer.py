"""Expressions as formulas that read back as the same expressions."""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy as sp

from pibls.checks import cut
from pibls.errors import InputError
from pibls.problem.interface import Marked
from pibls.problem.operators import Divergence, Laplacian, NormalDerivative, SpaceDerivative
from pibls.problem.printing import text as printed
from pibls.problem.symbols import Data, Field, Normal
from pibls.text.vocabulary import name_of

# How tightly an expression holds together: a sum, a product, a sign, a power, an atom.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_SIGNS = {
    sp.StrictLessThan: "<",
    sp.LessThan: "<=",
    sp.StrictGreaterThan: ">",
    sp.GreaterThan: ">=",
    sp.Equality: "==",
    sp.Unequality: "!=",
}


def write_equation(equation: sp.Eq | sp.Expr) -> str:
    """Return an equation, or an expression that shall be zero, as a formula.

    >>> x, y = sp.symbols("x y", real=True)
    >>> write_equation(sp.Eq(sp.sqrt(x) / y**2, -2 * x + sp.Rational(1, 3)))
    'sqrt(x)/y**2 = 1/3 - 2*x'
    """
    if isinstance(equation, sp.Eq):
        return f"{write_expression(equation.lhs)} = {write_expression(equation.rhs)}"
    return write_expression(equation)


def write_expression(expression: sp.Basic) -> str:
    """Return an expression or a condition as a formula."""
    return _write(expression)[0]


def _write(expression: sp.Basic) -> tuple[str, int]:
    for kind, write in _WRITERS:
        if isinstance(expression, kind):
            return write(expression)
    name = name_of(expression)
    if name is None:
        raise InputError(
            f"{cut(printed(expression))} cannot be written as text: formulas have no {type(expression).__name__}. "
            "Rewrite it with functions that formulas have, or keep the problem in Python."
        )
    arguments: tuple[sp.Basic, ...] = expression.args
    if isinstance(expression, sp.Heaviside) and arguments[1] == sp.S.Half:
        arguments = arguments[:1]
    if isinstance(expression, sp.Min | sp.Max):
        arguments = tuple(sorted(arguments, key=sp.default_sort_key))
    return _call(name, *arguments), _ATOM


def _call(name: str, *arguments: sp.Basic) -> str:
    return f"{name}({', '.join(write_expression(argument) for argument in arguments)})"


def _within(expression: sp.Basic, level: int) -> str:
    written, own = _write(expression)
    return written if own >= level else f"({written})"


def _name(symbol: sp.Symbol) -> tuple[str, int]:
    if not symbol.name.isascii() or symbol.name.startswith("_"):
        raise InputError(f"The name {symbol.name!r} cannot be written as text; use letters and digits of ASCII.")
    return symbol.name, _ATOM


def _float(number: sp.Float) -> tuple[str, int]:
    value = float(number)
    if not math.isfinite(value) or (value == 0 and not number.is_zero):
        raise InputError(f"The number {cut(str(number))} cannot be written as text: it is beyond double precision.")
    return repr(value), _SUM if value < 0 else _ATOM


def _rational(number: sp.Rational) -> tuple[str, int]:
    if number.q == 1:
        return str(number.p), _SUM if number.p < 0 else _ATOM
    return f"{number.p}/{number.q}", _SUM if number.p < 0 else _PRODUCT


def _sum(expression: sp.Add) -> tuple[str, int]:
    parts = [_within(term, _PRODUCT) if term.is_Add else _write(term)[0] for term in expression.as_ordered_terms()]
    text = parts[0]
    for part in parts[1:]:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return text, _SUM


def _product(expression: sp.Mul) -> tuple[str, int]:
    number, rest = expression.as_coeff_Mul()
    factors = [factor for factor in expression.as_ordered_factors() if not factor.is_Number]
    if rest.is_Add and number.is_Rational:
        return _call("product", number, rest), _ATOM
    above = [f for f in factors if not _is_below(f)]
    below = [f for f in factors if _is_below(f)]
    # A number next to a sum would be multiplied into it: another factor stands between, or the number comes last.
    above.sort(key=lambda factor: bool(factor.is_Add))
    numerator, denominator = (number.p, number.q) if number.is_Rational else (number, 1)
    words = [_within(factor, _POWER) for factor in above]
    quotient = "".join(f"/{_within(1 / factor, _POWER)}" for factor in below)
    over = f"/{denominator}" if denominator != 1 else ""
    if words and number.is_Rational and (above[0].is_Add or numerator == 1):
        tail = "" if numerator == 1 else f"*({numerator})" if numerator < 0 else f"*{numerator}"
        return "*".join(words) + quotient + tail + over, _PRODUCT
    if numerator == -1 and words:
        return "-" + "*".join(words) + quotient + over, _SUM
    head = _float(number)[0] if number.is_Float else str(numerator)
    return "*".join([head, *words]) + quotient + over, _SUM if head.startswith("-") else _PRODUCT


def _is_below(factor: sp.Expr) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp < 0 and not factor.base.is_Rational)


def _power(expression: sp.Pow) -> tuple[str, int]:
    base, exponent = expression.args
    if exponent == sp.S.Half:
        return _call("sqrt", base), _ATOM
    if exponent == -1:
        return f"1/{_within(base, _POWER)}", _PRODUCT
    return f"{_within(base, _ATOM)}**{_within(exponent, _ATOM)}", _POWER


def _derivative(expression: sp.Derivative) -> tuple[str, int]:
    pairs = [(_name(symbol)[0], int(count)) for symbol, count in expression.variable_count]
    if isinstance(expression.expr, Field) and all(len(name) == 1 for name, _ in pairs):
        return f"{expression.expr.label}_{''.join(name * count for name, count in pairs)}", _ATOM
    orders = ", ".join(f"{name}, {count}" for name, count in pairs)
    return f"diff({write_expression(expression.expr)}, {orders})", _ATOM


def _piecewise(expression: sp.Piecewise) -> tuple[str, int]:
    branches = [
        write_expression(value) if test == sp.true else f"[{write_expression(value)}, {write_expression(test)}]"
        for value, test in expression.args
    ]
    if len(branches) == 2 and expression.args[1][1] == sp.true:
        value, test = expression.args[0]
        return f"where({write_expression(test)}, {write_expression(value)}, {branches[1]})", _ATOM
    return f"piecewise({', '.join(branches)})", _ATOM


def _comparison(expression: sp.Rel) -> tuple[str, int]:
    sides = (write_expression(side) for side in expression.args)
    return f" {_SIGNS[type(expression)]} ".join(sides), _SUM


def _logic(word: str) -> Callable[[sp.Basic], tuple[str, int]]:
    def write(expression: sp.Basic) -> tuple[str, int]:
        tests = sorted(expression.args, key=sp.default_sort_key)
        return f" {word} ".join(f"({write_expression(test)})" for test in tests), _SUM

    return write


def _label(call: Field | Data) -> tuple[str, int]:
    if not all(isinstance(argument, sp.Symbol) for argument in call.args):
        raise InputError(f"{printed(call)} at other arguments than coordinates cannot be written as text.")
    return _name(sp.Symbol(call.label))


def _divergence(value: Divergence) -> tuple[str, int]:
    if value.flux is None:
        return f"div([{', '.join(map(write_expression, value.args))}])", _ATOM
    factor, inner = value.flux
    gradient = sp.Symbol(_call("grad", inner))
    return _call("div", gradient if factor == 1 else sp.Mul(factor, gradient, evaluate=False)), _ATOM


_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[..., tuple[str, int]]], ...] = (
    (Normal, lambda e: (e.name, _ATOM)),
    (sp.Symbol, _name),
    (sp.Rational, _rational),
    (sp.Float, _float),
    (type(sp.pi), lambda _: ("pi", _ATOM)),
    (type(sp.E), lambda _: ("exp(1)", _ATOM)),
    ((Field, Data), _label),
    (sp.Add, _sum),
    (sp.Mul, _product),
    (sp.Pow, _power),
    (sp.Derivative, _derivative),
    (sp.Piecewise, _piecewise),
    (sp.Rel, _comparison),
    (sp.And, _logic("and")),
    (sp.Or, _logic("or")),
    (sp.Not, lambda e: (f"not ({write_expression(e.args[0])})", _SUM)),
    ((Laplacian, NormalDerivative, Marked), lambda e: (_call(e.word, e.args[0]), _ATOM)),
    (Divergence, _divergence),
    (SpaceDerivative, lambda e: (f"grad({write_expression(e.args[0])})[{e.args[1].name}]", _ATOM)),
)
