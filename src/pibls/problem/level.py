"""Functions that tell one side of a curve or surface from the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.symbols import Data
from pibls.quadrature.roots import onto_zeros

_NEWTON = 3
_DIFFERENCE = 1e-6


@dataclass(frozen=True, eq=False)
class Level:
    """A function of points with its gradient, of which one asks where it is zero.

    >>> x, y = sp.symbols("x y", real=True)
    >>> Level.of(x * y, (x, y)).gradient(np.array([[2.0, 3.0]]))
    array([[3., 2.]])
    """

    value: Function
    slopes: tuple[Function, ...]

    @classmethod
    def of(cls, expression: sp.Expr, symbols: tuple[sp.Symbol, ...]) -> Level:
        """Return an expression as a level; data functions, known by values only, have no slopes of their own."""
        plain = () if expression.has(Data) else tuple(compile_function(expression.diff(s), symbols) for s in symbols)
        return cls(compile_function(expression, symbols), plain)

    @property
    def expression(self) -> sp.Expr:
        """The expression it is compiled from."""
        return self.value.expression

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return its values; NaN where it has none."""
        return _values(self.value, X)

    def gradient(self, X: FloatArray) -> FloatArray:
        """Return its slopes; NaN where it has none."""
        if self.slopes:
            return np.stack([_values(slope, X) for slope in self.slopes], axis=1)
        step = _DIFFERENCE * np.eye(X.shape[1])
        return np.stack([(self(X + h) - self(X - h)) / (2 * _DIFFERENCE) for h in step], axis=1)

    def pulled(self, X: FloatArray, rounds: int = _NEWTON) -> FloatArray:
        """Return points nearby where it is zero."""
        return onto_zeros(self, self.gradient, X, rounds)


def _values(function: Function, X: FloatArray) -> FloatArray:
    """Return the values of a function; NaN where it has none."""
    try:
        return function(X)
    except ProblemError:
        return np.array([np.nan]) if len(X) == 1 else np.concatenate([_values(function, row[None]) for row in X])
