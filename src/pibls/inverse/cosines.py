"""A basis for an unknown function, with a prior that says how smooth it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import Field, MultiIndex, Problem
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import compile_function

_WAVES = {1: 40, 2: 12, 3: 6}  # half-waves along each axis that a basis has
_REMEMBERED = 64


@dataclass(frozen=True, eq=False)
class Cosines:
    """Cosines on a box around the domain, over the coordinates that a function depends on.

    Their coefficients have independent normal priors. Variances fall with the wave number as in a Matérn process:
    ``size² (1 + |length · wave number|²)^(−smoothness − d/2)``, scaled so that the function varies by about ``size``.
    """

    name: str  # name of the function
    axes: tuple[int, ...]  # which coordinates of the domain it depends on
    # low, length: start and lengths of the box
    low: FloatArray
    length: FloatArray
    waves: FloatArray  # half-waves along each axis, one row per cosine; the first is the constant
    _seen: dict[Any, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Field, domain: DomainLike) -> Cosines:
        """Return a basis for a function on a domain."""
        axes = tuple(domain.coordinates.index(c) for c in function.args)
        bounds = np.asarray(domain.bounds, dtype=np.float64)[list(axes)]
        span = bounds[:, 1] - bounds[:, 0]
        most = _WAVES[len(axes)]
        waves = np.array([k for k in product(range(most + 1), repeat=len(axes)) if sum(i * i for i in k) <= most**2])
        order = np.lexsort((*waves.T, np.square(waves).sum(axis=1)))
        low, length = bounds[:, 0] - SETTINGS.beyond * span, (1 + 2 * SETTINGS.beyond) * span
        return cls(function.label, axes, low, length, waves[order].astype(np.float64))

    @property
    def size(self) -> int:
        """Number of cosines."""
        return len(self.waves)

    @property
    def extent(self) -> FloatArray:
        """Lengths of the domain along its axes."""
        return np.asarray(self.length / (1 + 2 * SETTINGS.beyond))

    def relative(self, length: float | None) -> float | None:
        """Return a length in units of the domain."""
        return None if length is None else float(length / np.mean(self.extent))

    def first(self, function: Field, problem: Problem) -> FloatArray:
        """Return the coefficients of the start of a function: a constant, or the nearest to an expression."""
        found = np.zeros(self.size)
        if function.start is None:
            found[0] = 1.0 if _is_factor(function, problem) else 0.0
            return found
        start = compile_function(function.start, problem.domain.coordinates)
        if start.constant is not None:
            found[0] = start.constant
            return found
        X = problem.domain.sample(8 * self.size, "kronecker", 0)
        return np.asarray(np.linalg.lstsq(self.values(X, (0,) * X.shape[1]), start(X), rcond=1e-8)[0])

    def values(self, X: FloatArray, multi_index: MultiIndex) -> FloatArray:
        """Return a derivative of every cosine at points of the domain: shape (n, size)."""
        key = (X[:, list(self.axes)].tobytes(), multi_index)  # a function of space is the same at all times
        if key not in self._seen:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[key] = self._values(X, multi_index)
        return self._seen[key]

    def _values(self, X: FloatArray, multi_index: MultiIndex) -> FloatArray:
        if any(order and axis not in self.axes for axis, order in enumerate(multi_index)):
            return np.zeros((len(X), self.size))
        found = np.ones((len(X), self.size))
        for number, axis in enumerate(self.axes):
            # Many functions share a wave along an axis.
            waves, used = np.unique(self.waves[:, number], return_inverse=True)
            rates, order = np.pi * waves / self.length[number], multi_index[axis]
            phase = (X[:, axis, None] - self.low[number]) * rates
            found *= (rates**order * np.cos(phase + order * np.pi / 2))[:, used]
        return found

    def known(self, node: sp.Expr, coefficients: FloatArray, make: Callable[..., Any]) -> sp.Expr:
        """Return the function with given coefficients, or a derivative of it, as a known function."""
        inner = node.expr if isinstance(node, sp.Derivative) else node
        orders = dict.fromkeys(inner.args, 0)
        for symbol, count in node.variable_count if isinstance(node, sp.Derivative) else ():
            if symbol not in orders:
                return sp.S.Zero
            orders[symbol] += int(count)
        dimension = max(self.axes) + 1
        index = [0] * dimension
        for axis, order in zip(self.axes, orders.values(), strict=True):
            index[axis] = order

        def evaluated(*columns: FloatArray) -> FloatArray:
            X = np.zeros((len(columns[0]), dimension))
            X[:, list(self.axes)] = np.stack(columns, axis=1)
            return np.asarray(self._values(X, tuple(index)) @ coefficients)

        marks = "".join(str(s) * n for s, n in orders.items())
        return make(f"{self.name}_{marks}" if marks else self.name, evaluated, *inner.args)


def _is_factor(function: Field, problem: Problem) -> bool:
    """Tell whether a function multiplies fields, rather than standing by itself like a source."""
    terms = [(t, s.form) for s in problem.statements for t in s.form.terms if t.field == function.label]
    return any(set(form.slots) & term.coefficient.free_symbols for term, form in terms)


def spectrum(waves: FloatArray, length: float, smoothness: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean squares of cosines, and their variances in a prior up to a factor."""
    # A cosine has a mean square of a half along each axis in which it is not constant.
    squares = 0.5 ** np.count_nonzero(waves, axis=1)
    frequencies = np.pi * np.linalg.norm(waves, axis=1) / (1 + 2 * SETTINGS.beyond)
    return squares, (1.0 + (length * frequencies) ** 2) ** (-smoothness - waves.shape[1] / 2) / squares
