"""Expressions as plain JSON and back, without pickling and without evaluating text.

Only what is listed here can be stored or read: numbers, coordinates, fields, data functions, arithmetic,
derivatives, piecewise expressions and a fixed list of functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from pibls.checks import cut, shorten
from pibls.errors import FileFormatError
from pibls.problem.interface import Flux, Inside, Outside
from pibls.problem.operators import Divergence, Laplacian, NormalDerivative, SpaceDerivative
from pibls.problem.symbols import Data, Field, Normal, Smooth, Unknown, data, normal, unknown
from pibls.problem.symbols import field as unknown_field

__all__ = ["decode", "encode"]

_DEPTH = 200
_BITS = 100_000
_LARGEST = 1_000
_EXPANDING = {"factorial", "gamma", "legendre", "hermite", "chebyshevt"}

_FUNCTIONS = {
    cls.__name__: cls
    for cls in (
        *(sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.asin, sp.acos, sp.atan, sp.atan2),
        *(sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch, sp.asinh, sp.acosh, sp.atanh, sp.sinc),
        *(sp.exp, sp.log, sp.Abs, sp.sign, sp.Heaviside, sp.Min, sp.Max, sp.floor, sp.ceiling, sp.Mod),
        *(sp.erf, sp.erfc, sp.gamma, sp.loggamma, sp.LambertW, sp.besselj, sp.bessely, sp.besseli, sp.besselk),
        *(sp.airyai, sp.airybi, sp.legendre, sp.hermite, sp.chebyshevt, sp.factorial),
        *(sp.Add, sp.Mul, sp.Pow, sp.And, sp.Or, sp.Not, sp.Xor, sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge),
        *(Laplacian, Divergence, NormalDerivative, SpaceDerivative, Inside, Outside, Flux),
    )
}
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
    settings = [] if symbol.settings == (None, None, None) else [_listed(value) for value in symbol.settings]
    return ["unknown", symbol.name, *settings]


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


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
    """Return the expression that :func:`encode` wrote.

    Parameters
    ----------
    tree
        What :func:`encode` returned, perhaps after a trip through a file.
    coordinates
        The coordinates of the problem, by which names are looked up.
    functions
        Callables of the data functions, by name; one that is missing raises a clear error when it is called.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> decode(["Mul", ["int", "2"], ["sin", ["coordinate", "x"]]], (x,))
    2*sin(x)
    """
    reader = _Reader({symbol.name: symbol for symbol in coordinates}, functions or {})
    try:
        return reader.read(tree, 0)
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(f"The stored expression {shorten(tree)} cannot be read: {error}.") from error


@dataclass(frozen=True)
class _Reader:
    """Rebuilds expressions; data functions of one name become one object."""

    symbols: Mapping[str, sp.Symbol]
    functions: Mapping[str, Callable[..., Any]]
    known: dict[str, Any] = field(default_factory=dict)

    def read(self, tree: Any, depth: int) -> sp.Basic:
        """Read one node."""
        if not isinstance(tree, list) or not tree or not isinstance(tree[0], str) or depth > _DEPTH:
            raise FileFormatError(f"The stored expression {shorten(tree)} is malformed.")
        kind, *rest = tree
        if kind in _LEAVES:
            return _LEAVES[kind](self.symbols, *rest)
        if kind in _BRANCHES:
            return _BRANCHES[kind](self, lambda item: self.read(item, depth + 1), *rest)
        if kind not in _FUNCTIONS:
            raise FileFormatError(f"The stored expression uses {kind!r}, which this version does not know.")
        arguments = [self.read(item, depth + 1) for item in rest]
        _refuse_huge(kind, arguments)
        return _FUNCTIONS[kind](*arguments)

    def data(self, read: Callable[[Any], Any], name: str, *arguments: Any) -> Any:
        """Read a data function, bound to its callable if one was given."""
        if name not in self.known:
            function = self.functions.get(name, _missing(name))
            self.known[name] = data(name, function, *(sp.Dummy() for _ in arguments)).func
        return self.known[name](*map(read, arguments))


_LEAVES: Mapping[str, Callable[..., Any]] = {
    "int": lambda _, digits: sp.Integer(_digits(digits)),
    "rational": lambda _, p, q: sp.Rational(_digits(p), _digits(q)),
    "float": lambda _, digits: sp.Float(float.fromhex(digits)),
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
    "data": _Reader.data,
    "derivative": lambda reader, read, inner, *pairs: sp.Derivative(
        read(inner), *((reader.symbols[name], int(count)) for name, count in pairs)
    ),
    "piecewise": lambda _, read, *pairs: sp.Piecewise(*((read(value), read(test)) for value, test in pairs)),
}


def _digits(text: Any) -> int:
    if not isinstance(text, str) or len(text) > 400 or not text.removeprefix("-").isdecimal():
        raise FileFormatError(f"The stored number {shorten(text)} is malformed.")
    return int(text)


def _refuse_huge(kind: str, arguments: list[Any]) -> None:
    """Refuse numbers that SymPy would write out digit by digit for hours, such as 10**10**10."""
    integers = [abs(int(a)) for a in arguments if isinstance(a, sp.Integer)]
    huge = kind in _EXPANDING and max(integers, default=0) > _LARGEST
    if kind == "Pow" and isinstance(arguments[0], sp.Rational) and isinstance(arguments[1], sp.Integer):
        bits = max(arguments[0].p.bit_length(), arguments[0].q.bit_length())
        huge = bits > 1 and bits * abs(int(arguments[1])) > _BITS
    if huge:
        raise FileFormatError(f"The stored expression {kind}{shorten(tuple(arguments))} is too large a number.")


def _missing(name: str) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise LookupError(f"it was a Python function and is not stored; load with data={{{name!r}: function}}")

    return function
