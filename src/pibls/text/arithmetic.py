"""Arithmetic on measured expressions: everything that could run away is refused before SymPy sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from pibls.checks import HIGHEST_ORDER
from pibls.problem.interface import flux, inside, outside
from pibls.problem.measured import Measured, is_unsure, tree_size
from pibls.problem.operators import div, grad, laplacian, normal_derivative
from pibls.problem.symbols import Data, Field
from pibls.text.vocabulary import NamedFunction

_LARGEST = 1e300
_MOST_NODES = 4_000
_LARGEST_EXPONENT = 1_000
_LARGEST_ARGUMENT = 20
_MOST_BITS = 4_096
_SEARCHABLE = 40
_MOST_DERIVED = 1_000
_MOST_BRANCHED = 100
_DEEPEST_COMPOSITE = 4
# Terms are added one by one, as Python does; beyond this many SymPy would take seconds for it.
_ONE_BY_ONE = 50

_OPERATORS: dict[str, tuple[Callable[..., Any], int]] = {
    "laplacian": (laplacian, 2),
    "grad": (grad, 1),
    "div": (div, 1),
    "dn": (normal_derivative, 1),
    "inside": (inside, 0),
    "outside": (outside, 0),
    "flux": (flux, 1),
}


class RefusedError(ValueError):
    """A step that is not carried out; says why, and the reader of the formula adds where."""


def _value(compute: Callable[..., Any], operands: Sequence[Measured]) -> float | None:
    """Return the value of an operation on constants, or None if one is not; refuse values beyond double precision."""
    numbers = [operand.number for operand in operands if operand.number is not None]
    if len(numbers) < len(operands):
        return None
    try:
        value = compute(*numbers)
    except OverflowError:
        value = math.inf
    except ZeroDivisionError:
        raise RefusedError("This divides by zero.") from None
    except ValueError:
        raise RefusedError("This has no real value, or one too large for double precision.") from None
    if isinstance(value, complex) or math.isnan(value):
        raise RefusedError("This has no real value.")
    if abs(value) > _LARGEST or (value != 0 and abs(value) < 1 / _LARGEST):
        raise RefusedError("This number is too large or too small; scale the problem.")
    return float(value)


def _made(
    make: Callable[[], Any], operands: Sequence[Measured], number: float | None = None, size: int = 0, order: int = 0
) -> Measured:
    """Make an expression with SymPy if its measures are within limits, and check those of the result.

    Its size is given, or that of the operands and one; its order that of the operands and what is given.
    """
    measures = Measured(sp.S.Zero, number, size or _size(operands), order + max(own.order for own in operands))
    _checked(measures)
    return _checked(_with(measures, make()))


def _checked(result: Measured) -> Measured:
    if result.size > _MOST_NODES:
        raise RefusedError(f"The formula grows beyond {_MOST_NODES} parts; split it up, or use fewer parameters in it.")
    expression = result.expression
    if isinstance(expression, sp.Expr) and expression in (sp.zoo, sp.nan, sp.oo, -sp.oo):
        raise RefusedError("This is not finite.")
    if isinstance(expression, sp.Rational) and max(abs(expression.p), expression.q).bit_length() > _MOST_BITS:
        raise RefusedError("This number has too many digits; write it with a decimal point.")
    return result


def _only(kinds: tuple[str, ...], operands: Sequence[Measured], what: str) -> None:
    for operand in operands:
        if operand.kind not in kinds:
            raise RefusedError(f"{what} a {operand.kind}; expected a {' or a '.join(kinds)}.")


def _size(operands: Sequence[Measured]) -> int:
    return 1 + sum(operand.size for operand in operands)


def add(operands: Sequence[Measured], signs: Sequence[int]) -> Measured:
    """Return a sum, the signs being 1 or -1."""
    _only(("number", "vector"), operands, "This adds")
    if len({operand.kind for operand in operands}) > 1:
        raise RefusedError("This adds a number and a vector.")
    number = _value(lambda *values: sum(s * v for s, v in zip(signs, values, strict=True)), operands)
    pairs = list(zip(signs, operands, strict=True))
    size = sum(operand.size + (sign < 0) for sign, operand in pairs) + 1
    return _sure("Add", operands, _made(lambda: _total(pairs), operands, number, size))


def _sure(kind: str, operands: Sequence[Measured], result: Measured) -> Measured:
    if is_unsure(kind, operands, result):
        raise RefusedError("This constant is not known in double precision: its digits cancel. Write its value.")
    return result


def _total(pairs: Sequence[tuple[int, Measured]]) -> Any:
    total = pairs[0][1].expression
    if len(pairs) > _ONE_BY_ONE and pairs[0][1].kind == "number":
        return sp.Add(*(operand.expression if sign > 0 else -operand.expression for sign, operand in pairs))
    for sign, operand in pairs[1:]:
        total = total + operand.expression if sign > 0 else total - operand.expression
    return total


def multiply(left: Measured, right: Measured) -> Measured:
    """Return a product of numbers, or of a number and a vector."""
    _only(("number", "vector"), (left, right), "This multiplies")
    if left.kind == right.kind == "vector":
        raise RefusedError("This multiplies two vectors. Did you mean dot(a, b)?")
    number = _value(lambda a, b: a * b, (left, right))
    size = _size((left, right)) * (3 if "vector" in (left.kind, right.kind) else 1)
    return _made(lambda: left.expression * right.expression, (left, right), number, size)


def _with(measures: Measured, expression: Any) -> Measured:
    number = measures.number
    if number is None and isinstance(expression, sp.Expr) and expression.is_number:
        # What depends on points cancelled; the rest is a constant like any other, and as limited.
        constant = Measured(expression, float(expression))
        number = _value(lambda value: value, (_checked(constant),))
    return replace(measures, expression=expression, number=number)


def divide(left: Measured, right: Measured) -> Measured:
    """Return a quotient; whole numbers give a fraction."""
    _only(("number",), (right,), "This divides by")
    if right.number == 0 or right.expression == 0:
        raise RefusedError("This divides by zero.")
    inverse = power(right, Measured(sp.S.NegativeOne, -1.0))
    if left.kind == "number":
        return _checked(_with(multiply(left, inverse), left.expression / right.expression))
    return multiply(left, inverse)


def power(base: Measured, exponent: Measured) -> Measured:
    """Return a power; exponents and the digits of the result are limited."""
    _only(("number",), (base, exponent), "This takes a power with")
    if exponent.number is not None and abs(exponent.number) > _LARGEST_EXPONENT:
        raise RefusedError(f"The exponent is above {_LARGEST_EXPONENT}; scale the problem, or use exp and log.")
    number = _value(lambda a, b: a**b, (base, exponent))
    if not isinstance(exponent.expression, sp.Integer):
        _check_branches((base, exponent))
    whole = exponent.expression
    if isinstance(base.expression, sp.Rational) and isinstance(whole, sp.Rational):
        bits = max(abs(base.expression.p), base.expression.q).bit_length()
        if bits * (abs(whole.p) / whole.q) > _MOST_BITS:
            raise RefusedError("This power has too many digits; write its base with a decimal point.")
    return _made(lambda: base.expression**exponent.expression, (base, exponent), number)


def product(operands: Sequence[Measured]) -> Measured:
    """Return a number times a sum as they are, where ``*`` would multiply them out."""
    if len(operands) != 2 or not isinstance(operands[0].expression, sp.Rational) or operands[1].kind != "number":
        raise RefusedError("product(number, sum) takes a whole number or a fraction first, and an expression.")
    plain = multiply(*operands)
    factor, rest = (operand.expression for operand in operands)
    kept = rest.is_Add and factor not in (0, 1)
    return _with(plain, sp.Mul._from_args([factor, rest])) if kept else plain


def apply(function: NamedFunction, name: str, operands: Sequence[Measured]) -> Measured:
    """Return a function of numbers."""
    fault = function.refuses(len(operands), operands[0].number if operands else None)
    if fault:
        raise RefusedError(f"{name} {fault}.")
    _only(("number",), operands, f"{name} is given")
    if function.searches:
        check_size(operands, name)
    _check_branches(operands)
    number, size = _value(function.value, operands), 0
    if function.order:
        if operands[1].size > _LARGEST_ARGUMENT:
            raise RefusedError(f"{name} is given more than {_LARGEST_ARGUMENT} parts; simplify its argument.")
        # A polynomial has a few parts per power of its argument.
        size = 2 * (int(operands[0].number or 0) + 1) * (operands[1].size + 2)
    _sure(name, operands, Measured(sp.S.Zero, number))
    return _made(lambda: function.make(*(operand.expression for operand in operands)), operands, number, size)


def _check_branches(operands: Sequence[Measured]) -> None:
    """Refuse large arguments with branches where SymPy asks for their sign, branch by branch."""
    for operand in operands:
        if operand.size > _MOST_BRANCHED and operand.expression.has(sp.Piecewise, sp.Min, sp.Max):
            raise RefusedError(
                "What has branches is too large to be in a function or power; take the branches outside."
            )


def check_size(operands: Sequence[Measured], name: str) -> None:
    """Refuse large arguments, and operators, where SymPy looks for relations between them."""
    if any(operand.order for operand in operands):
        raise RefusedError(f"Operators such as laplacian cannot stand in {name}; introduce another unknown for them.")
    if sum(operand.size for operand in operands) > _SEARCHABLE:
        raise RefusedError(f"What {name} is given has more than {_SEARCHABLE} parts; simplify it.")


def operate(name: str, operand: Measured) -> Measured:
    """Return an operator over space, to be carried out when the domain is known."""
    make, order = _OPERATORS[name]
    _only(("vector" if name == "div" else "number",), (operand,), f"{name} is given")
    return _made(lambda: make(operand.expression), (operand,), order=order)


def differentiate(operand: Measured, orders: Sequence[tuple[sp.Symbol, int]]) -> Measured:
    """Return a derivative along coordinates."""
    _only(("number",), (operand,), "diff is given")
    total = sum(count for _, count in orders)
    bare = isinstance(operand.expression, Field) or (
        isinstance(operand.expression, sp.Derivative) and isinstance(operand.expression.expr, Field)
    )
    limit = HIGHEST_ORDER if bare else _DEEPEST_COMPOSITE
    if total > limit:
        raise RefusedError(f"A derivative of order {total} is too high here; up to {limit} can be taken.")
    if operand.expression.has(Data):
        raise RefusedError("Data from a table cannot be differentiated; give its derivative as data of its own.")
    if not bare and operand.size * 4 ** (total + operand.order) > _MOST_DERIVED:
        raise RefusedError("What is differentiated here is too large for SymPy to do it; write the derivative out.")
    if total > 1 and operand.expression.has(sp.Piecewise, sp.Min, sp.Max):
        raise RefusedError("What has kinks can be differentiated only once.")
    size, step = operand.size, operand.expression
    for symbol, count in orders:
        for _ in range(0 if bare else count):
            step = sp.diff(step, symbol)
            size = tree_size(step)
            if size > _MOST_NODES:
                raise RefusedError(
                    f"The derivative has more than {_MOST_NODES} parts; simplify what is differentiated."
                )
    # At once, as Python would be told to: SymPy gathers factors after several steps.
    expression = sp.diff(operand.expression, *orders)
    return _checked(_with(Measured(expression, None, size + 1, operand.order), expression))


def dot(left: Measured, right: Measured) -> Measured:
    """Return the inner product of two vectors."""
    _only(("vector",), (left, right), "dot is given")
    if len(left.expression) != len(right.expression):
        raise RefusedError(f"dot is given vectors of {len(left.expression)} and {len(right.expression)} entries.")
    return _made(lambda: left.expression.dot(right.expression), (left, right))


def piecewise(branches: Sequence[tuple[Measured, Measured]]) -> Measured:
    """Return the first value whose condition holds."""
    values = [value for value, _ in branches]
    _only(("number",), values, "A branch is")
    check_size([test for _, test in branches], "piecewise")
    parts = [part for branch in branches for part in branch]
    # SymPy compares every branch with every other.
    made = ((value.expression, test.expression) for value, test in branches)
    return _made(lambda: sp.Piecewise(*made), parts, size=2 * _size(parts))
