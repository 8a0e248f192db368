"""The functions of formulas: what SymPy makes of each, its value for numbers, and what it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import sympy as sp

__all__ = ["CONSTANTS", "FUNCTIONS", "OPERATORS", "Function", "name_of"]

_LARGEST_ORDER = 50


@dataclass(frozen=True)
class Function:
    """A function of formulas.

    Attributes
    ----------
    make
        Builds the SymPy expression.
    value
        Its value for numbers, in double precision; raises what :mod:`math` raises where there is none.
    fewest, most
        How many arguments it takes.
    order
        Whether its first argument counts (a degree or an order), and has to be a whole number up to 50.
    searches
        Whether SymPy searches the arguments for relations between them, so that they have to be small.
    """

    make: Callable[..., Any]
    value: Callable[..., float]
    fewest: int = 1
    most: int = 1
    order: bool = False
    searches: bool = False

    def refuses(self, count: int, first: float | None) -> str:
        """Return what is wrong with the arguments, or nothing."""
        if not self.fewest <= count <= self.most:
            wanted = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
            return f"takes {wanted} argument{'' if self.most == 1 else 's'}, not {count}"
        if self.order and (first is None or first != int(first) or not 0 <= first <= _LARGEST_ORDER):
            return f"takes a whole number from 0 to {_LARGEST_ORDER} first"
        return ""


def _special(name: str) -> Callable[..., float]:
    def value(*arguments: float) -> float:
        from scipy import special

        return float(getattr(special, name)(*arguments))

    return value


def _sign(x: float) -> float:
    return math.copysign(1.0, x) if x else 0.0


def _step(x: float, middle: float = 0.5) -> float:
    return middle if x == 0 else float(x > 0)


def _loggamma(x: float) -> float:
    # SymPy writes a factorial out for whole numbers, even under the logarithm.
    return math.log(math.gamma(x))


def _lambertw(x: float) -> float:
    from scipy import special

    if x < -math.exp(-1):
        raise ValueError("complex")
    return float(special.lambertw(x).real)


def _airy(index: int) -> Callable[[float], float]:
    def value(x: float) -> float:
        from scipy import special

        return float(special.airy(x)[index])

    return value


def _ordered(make: Callable[..., Any], value: Callable[..., float]) -> Function:
    return Function(make, value, 2, 2, order=True)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "sin": Function(sp.sin, math.sin),
        "cos": Function(sp.cos, math.cos),
        "tan": Function(sp.tan, math.tan),
        "cot": Function(sp.cot, lambda x: 1 / math.tan(x)),
        "sec": Function(sp.sec, lambda x: 1 / math.cos(x)),
        "csc": Function(sp.csc, lambda x: 1 / math.sin(x)),
        "asin": Function(sp.asin, math.asin),
        "acos": Function(sp.acos, math.acos),
        "atan": Function(sp.atan, math.atan),
        "atan2": Function(sp.atan2, math.atan2, 2, 2),
        "sinh": Function(sp.sinh, math.sinh),
        "cosh": Function(sp.cosh, math.cosh),
        "tanh": Function(sp.tanh, math.tanh),
        "coth": Function(sp.coth, lambda x: 1 / math.tanh(x)),
        "sech": Function(sp.sech, lambda x: 1 / math.cosh(x)),
        "csch": Function(sp.csch, lambda x: 1 / math.sinh(x)),
        "asinh": Function(sp.asinh, math.asinh),
        "acosh": Function(sp.acosh, math.acosh),
        "atanh": Function(sp.atanh, math.atanh),
        "exp": Function(sp.exp, math.exp),
        "log": Function(sp.log, math.log),
        "sqrt": Function(sp.sqrt, math.sqrt),
        "cbrt": Function(sp.cbrt, lambda x: math.pow(x, 1 / 3)),
        "sinc": Function(sp.sinc, lambda x: math.sin(x) / x if x else 1.0),
        "abs": Function(sp.Abs, abs, searches=True),
        "sign": Function(sp.sign, _sign, searches=True),
        "floor": Function(sp.floor, math.floor, searches=True),
        "ceil": Function(sp.ceiling, math.ceil, searches=True),
        "heaviside": Function(sp.Heaviside, _step, 1, 2, searches=True),
        "min": Function(sp.Min, min, 2, 6, searches=True),
        "max": Function(sp.Max, max, 2, 6, searches=True),
        "erf": Function(sp.erf, math.erf),
        "erfc": Function(sp.erfc, math.erfc),
        "gamma": Function(sp.gamma, math.gamma),
        "loggamma": Function(sp.loggamma, _loggamma),
        "lambertw": Function(sp.LambertW, _lambertw),
        "airyai": Function(sp.airyai, _airy(0)),
        "airybi": Function(sp.airybi, _airy(2)),
        "besselj": _ordered(sp.besselj, _special("jv")),
        "bessely": _ordered(sp.bessely, _special("yv")),
        "besseli": _ordered(sp.besseli, _special("iv")),
        "besselk": _ordered(sp.besselk, _special("kv")),
        "legendre": _ordered(sp.legendre, _special("eval_legendre")),
        "hermite": _ordered(sp.hermite, _special("eval_hermite")),
        "chebyshevt": _ordered(sp.chebyshevt, _special("eval_chebyt")),
    }
)

CONSTANTS: Mapping[str, sp.Expr] = MappingProxyType({"pi": sp.pi, "e": sp.E})

# Words that are followed by brackets and are no functions of numbers.
OPERATORS = (
    *("laplacian", "grad", "div", "dot", "dn", "diff", "product", "piecewise", "where", "inside", "outside", "flux"),
)  # fmt: skip

_NAMES = {entry.make: name for name, entry in FUNCTIONS.items()}


def name_of(expression: sp.Basic) -> str | None:
    """Return what the outermost function of an expression is called in formulas, if it is one of them.

    >>> name_of(sp.Abs(sp.Symbol("x"))), name_of(sp.zeta(sp.Symbol("x")))
    ('abs', None)
    """
    return _NAMES.get(type(expression))
