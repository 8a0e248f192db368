"""Expressions as plain JSON and back, without pickling and without evaluating text.

Only what is listed here can be stored or read: numbers, coordinates, fields, data functions, arithmetic,
derivatives, piecewise expressions and a fixed list of functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp
from sympy.logic.boolalg import Boolean

from pibls.checks import HIGHEST_ORDER, cut, shorten
from pibls.errors import FileFormatError
from pibls.problem.interface import Flux, Inside, Outside
from pibls.problem.measured import Measured, is_unsure
from pibls.problem.operators import Divergence, Laplacian, NormalDerivative, SpaceDerivative
from pibls.problem.program import value_of
from pibls.problem.symbols import Data, Field, Normal, data, normal
from pibls.problem.symbols import field as unknown_field
from pibls.problem.unknown_numbers import Smooth, Unknown, unknown

_DEPTH = 200
_NODES = 50_000
_BITS = 4_096
_EXPONENT = 1_000
# SymPy writes these out: one term per order, each with the whole argument.
_POLYNOMIALS = ("legendre", "hermite", "chebyshevt")
_HIGHEST_DEGREE, _LARGEST_ARGUMENT = 50, 20

SCALARS = (
    *(sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.asin, sp.acos, sp.atan, sp.atan2),
    *(sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch, sp.asinh, sp.acosh, sp.atanh, sp.sinc),
    *(sp.exp, sp.log, sp.Abs, sp.sign, sp.Heaviside, sp.Min, sp.Max, sp.floor, sp.ceiling),
    *(sp.erf, sp.erfc, sp.gamma, sp.loggamma, sp.LambertW, sp.besselj, sp.bessely, sp.besseli, sp.besselk),
    *(sp.airyai, sp.airybi, sp.legendre, sp.hermite, sp.chebyshevt),
)
"""The functions of numbers that problem files can name."""
_TESTS, _NUMBERS, _OPERATORS = (
    {cls.__name__: cls for cls in classes}
    for classes in (
        (sp.And, sp.Or, sp.Not, sp.Xor, sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge),
        (*SCALARS, sp.Mod, sp.factorial, sp.Add, sp.Mul, sp.Pow),
        (Laplacian, Divergence, NormalDerivative, SpaceDerivative, Inside, Outside, Flux),
    )
)
_FUNCTIONS = _TESTS | _NUMBERS | _OPERATORS
_LOGIC = {"And", "Or", "Not", "Xor"}
# Here SymPy would look for relations between arguments, for minutes if they are large. They were sought on writing.
SEARCHING = {*_TESTS, "Abs", "sign", "Heaviside", "Min", "Max", "floor", "ceiling", "Mod"}
_CONSTANTS = {
    "pi": sp.pi, "E": sp.E, "EulerGamma": sp.EulerGamma, "GoldenRatio": sp.GoldenRatio,
    "true": sp.true, "false": sp.false,
}  # fmt: skip
_NAMES = {value: name for name, value in _CONSTANTS.items()}


def encode(expression: sp.Basic) -> Any:
    """Return an expression as nested lists of strings and integers.

    >>> x = sp.Symbol("x", real=True)
    >>> encode(2 * sp.sin(x))
    ['Mul', ['int', '2'], ['sin', ['coordinate', 'x']]]
    """
    if _depth(expression) > _DEPTH:
        raise FileFormatError(
            f"An expression of type {type(expression).__name__} is nested over {_DEPTH} deep and cannot be stored; "
            "simplify it, or wrap a part of it as pibls.data."
        )
    return _encode(expression)


def _depth(expression: sp.Basic) -> int:
    """Count levels without recursion, which deep expressions would exhaust."""
    depth, level = 0, list(expression.args)
    while level and depth <= _DEPTH:
        depth, level = depth + 1, [arg for item in level for arg in item.args]
    return depth


def _encode(expression: sp.Basic) -> Any:
    for kind, write in _WRITERS:
        if isinstance(expression, kind):
            return write(expression)
    if expression in _NAMES:
        return ["constant", _NAMES[expression]]
    name = type(expression).__name__
    if _FUNCTIONS.get(name) is type(expression):
        return [name, *map(_encode, expression.args)]
    raise FileFormatError(
        f"The function {name!r} in {cut(str(expression))} cannot be stored. Use one of "
        f"{', '.join(sorted(n for n in _FUNCTIONS if n[0].islower()))}, or wrap it as pibls.data."
    )


def _write_float(number: sp.Float) -> list[Any]:
    value = float(number)
    if not math.isfinite(value):
        raise FileFormatError(f"The number {cut(str(number))} cannot be stored: it is beyond double precision.")
    return ["float", value.hex()]


def _write_unknown(symbol: Unknown) -> list[Any]:
    settings = symbol.settings if any(value is not None for value in symbol.settings) else ()
    return ["unknown", symbol.name, *(list(value) if isinstance(value, tuple) else value for value in settings)]


def _write_field(call: Field) -> list[Any]:
    if call.prior is None and call.start is None:
        return ["field", call.label, *map(_encode, call.args)]
    prior = None if call.prior is None else [call.prior.size, call.prior.length]
    start = None if call.start is None else _encode(call.start)
    return ["unknown function", call.label, prior, start, *map(_encode, call.args)]


_WRITERS: tuple[tuple[type, Callable[[Any], list[Any]]], ...] = (
    (Unknown, _write_unknown),
    (Normal, lambda e: ["normal", e.name[2:]]),
    (sp.Symbol, lambda e: ["coordinate", e.name]),
    (sp.Integer, lambda e: ["int", str(e)]),
    (sp.Rational, lambda e: ["rational", str(e.p), str(e.q)]),
    (sp.Float, _write_float),
    (Field, _write_field),
    (Data, lambda e: ["data", e.label, *map(_encode, e.args)]),
    (sp.Derivative, lambda e: ["derivative", _encode(e.expr), *([s.name, int(n)] for s, n in e.variable_count)]),
    (sp.Piecewise, lambda e: ["piecewise", *([_encode(value), _encode(test)] for value, test in e.args)]),
)


def decode(
    tree: Any, coordinates: tuple[sp.Symbol, ...], functions: Mapping[str, Callable[..., Any]] | None = None
) -> sp.Basic:
    """Return the expression that :func:`encode` wrote; data functions that are not given are refused when called.

    >>> x = sp.Symbol("x", real=True)
    >>> decode(["Mul", ["int", "2"], ["sin", ["coordinate", "x"]]], (x,))
    2*sin(x)
    """
    reader = _TreeReader({symbol.name: symbol for symbol in coordinates}, functions or {})
    try:
        return reader.read(tree, 0).expression
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(
            f"The stored expression {shorten(tree)} cannot be read: {shorten(str(error))}."
        ) from error


@dataclass(frozen=True)
class _TreeReader:
    """Rebuilds expressions; data functions of one name become one object.

    Every node is measured before SymPy makes it, as SymPy carries out what it is given however long that takes.
    """

    symbols: Mapping[str, sp.Symbol]
    functions: Mapping[str, Callable[..., Any]]
    known: dict[str, Any] = field(default_factory=dict)

    def read(self, tree: Any, depth: int) -> Measured:
        """Read one node."""
        if not isinstance(tree, list) or not tree or not isinstance(tree[0], str) or depth > _DEPTH:
            raise FileFormatError(f"The stored expression {shorten(tree)} is malformed.")
        kind, *rest = tree
        if kind in _LEAVES:
            leaf = _LEAVES[kind](self.symbols, *rest)
            return Measured(leaf, float(leaf) if isinstance(leaf, sp.Expr) and leaf.is_number else None)
        parts: list[Measured] = []

        def read(item: Any) -> Any:
            parts.append(self.read(item, depth + 1))
            return parts[-1].expression

        if kind in _BRANCHES:
            expression = _BRANCHES[kind](self, read, *rest)
            return _measured(kind, parts, expression)
        if kind not in _FUNCTIONS:
            raise FileFormatError(f"The stored expression uses {shorten(kind)}, which this version does not know.")
        arguments = [read(item) for item in rest]
        wanted = Boolean if kind in _LOGIC else sp.Expr
        if not all(isinstance(argument, wanted) for argument in arguments):
            raise FileFormatError(f"The stored expression {shorten(tree)} is malformed.")
        measures = _measured(kind, parts)
        # SymPy only writes a sum down; a step it looks for.
        if kind == "Add":
            measures = replace(measures, expression=sp.Add(*arguments))
        if is_unsure(kind, parts, measures):
            raise _too_large(kind, parts, "what double precision knows of a constant")
        settings = {"evaluate": False} if kind in SEARCHING else {}
        return measures if kind == "Add" else replace(measures, expression=_FUNCTIONS[kind](*arguments, **settings))

    def data(self, read: Callable[[Any], Any], name: str, *arguments: Any) -> Any:
        """Read a data function, bound to its callable if one was given."""
        if name not in self.known:
            function = self.functions.get(name, _missing(name))
            self.known[name] = data(name, function, *(sp.Dummy() for _ in arguments)).func
        return self.known[name](*map(read, arguments))

    def derivative(self, read: Callable[[Any], Any], inner: Any, *pairs: Any) -> sp.Derivative:
        """Read a derivative, whose order SymPy would count out."""
        orders = [(self.symbols[name], int(count)) for name, count in pairs]
        if not all(count > 0 for _, count in orders) or sum(count for _, count in orders) > HIGHEST_ORDER:
            raise FileFormatError(f"The stored derivative {shorten(pairs)} has a malformed order.")
        return sp.Derivative(read(inner), *orders)


_LEAVES: Mapping[str, Callable[..., Any]] = {
    "int": lambda _, digits: sp.Integer(_digits(digits)),
    "rational": lambda _, p, q: sp.Rational(_digits(p), _digits(q)),
    "float": lambda _, digits: sp.Float(_finite(float.fromhex(digits))),
    "constant": lambda _, name: _CONSTANTS[name],
    "coordinate": lambda symbols, name: symbols[name],
    "unknown": lambda _, name, *settings: unknown(name, *settings),
    "normal": lambda symbols, name: normal(symbols[name]),
}
_BRANCHES: Mapping[str, Callable[..., Any]] = {
    "field": lambda _, read, name, *arguments: unknown_field(name, *map(read, arguments)),
    "unknown function": lambda _, read, name, prior, start, *arguments: unknown_field(
        name,
        *map(read, arguments),
        prior=None if prior is None else Smooth(*prior),
        start=None if start is None else read(start),
    ),
    "data": _TreeReader.data,
    "derivative": _TreeReader.derivative,
    "piecewise": lambda _, read, *pairs: sp.Piecewise(
        *((read(value), read(test)) for value, test in pairs), evaluate=False
    ),
}


def _digits(text: Any) -> int:
    if not isinstance(text, str) or len(text) > 300 or not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise FileFormatError(f"The stored number {shorten(text)} is malformed.")
    return int(text)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise FileFormatError("The stored expression has a number that is not finite.")
    return number


def _measured(kind: str, parts: list[Measured], expression: Any = None) -> Measured:
    """Return the measures of a node from those of its parts, or refuse the node."""
    size = 1 + sum(part.size for part in parts)
    degree = parts[0].number if kind in _POLYNOMIALS and parts else None
    if degree is not None and (degree > _HIGHEST_DEGREE or size > _LARGEST_ARGUMENT):
        raise _too_large(kind, parts, f"a polynomial of degree {_HIGHEST_DEGREE} of a short argument")
    size *= 1 if degree is None else 2 * (int(degree) + 1)
    if size > _NODES:
        raise _too_large(kind, parts, f"{_NODES} parts")
    if kind == "Pow" and len(parts) == 2:
        _check_power(*parts)
    return Measured(expression, _number(kind, parts) if kind in _NUMBERS else None, size)


def _check_power(base: Measured, exponent: Measured) -> None:
    """Refuse powers that SymPy would write out digit by digit, or multiply out."""
    if exponent.number is None:
        return
    size = abs(exponent.number)
    if isinstance(base.expression, sp.Rational):
        bits = max(abs(base.expression.p), base.expression.q).bit_length()
        if bits > 1 and bits * size > _BITS and not isinstance(exponent.expression, sp.Float):
            raise _too_large("Pow", [base, exponent], f"{_BITS} binary digits")
    elif size > _EXPONENT:
        raise _too_large("Pow", [base, exponent], f"an exponent of {_EXPONENT}")


def _number(kind: str, parts: list[Measured]) -> float | None:
    """Return the value of a constant, which double precision must hold."""
    numbers = [part.number for part in parts if part.number is not None]
    if not parts or len(numbers) < len(parts):
        return None
    # SymPy writes the factorial out, also under a logarithm.
    value = value_of("gamma" if kind == "loggamma" else kind, numbers)
    # Whole powers hide in exponentials of logarithms.
    vanishes = value == 0.0 and kind == "exp" and parts[0].expression.has(sp.log)
    if value is None or vanishes:
        raise _too_large(kind, parts, "what double precision holds")
    return value


def _too_large(kind: str, parts: list[Measured], limit: str) -> FileFormatError:
    arguments = tuple(part.expression for part in parts)
    return FileFormatError(f"The stored expression {kind}{shorten(arguments)} is too large: it exceeds {limit}.")


def _missing(name: str) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise LookupError(f"it was a Python function and is not stored; load with data={{{name!r}: function}}")

    return function
