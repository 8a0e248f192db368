"""Corners of a rectangle at which the data on both sides belong to no smooth solution.

The data on one side and the equation determine the Taylor polynomial of a solution in the corner. The condition on the
other side holds for it, or the solution has a jump or a kink that starts there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.lowering import Form, MultiIndex
from pibls.problem.places import OnPart
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement
from pibls.problem.symbols import Normal
from pibls.problem.wave_jumps import Given
from pibls.quadrature.roots import CLOSE, SCAN


def disagreements(problem: Problem, equation: Statement) -> Iterator[tuple[FloatArray, FloatArray, list[Given]]]:
    """Yield the corners, each with both normals, and how much the values jump that the other side prescribes.

    >>> import pibls as pb
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, 0, 2)) * pb.TimeInterval(t, 0, 1)
    >>> equation = u.diff(t) + u.diff(x)
    >>> for value in (1, t, -sp.sin(t)):
    ...     problem = Problem(equation, line, [pb.Initial(u, sp.sin(x)), pb.Dirichlet(u, value, on=line.left)])
    ...     found = disagreements(problem, problem.statements[0])
    ...     print([(place.tolist(), round(float(jump), 6)) for place, _, given in found for _, jump in given])
    [([0.0, 0.0], 1.0)]
    [([0.0, 0.0], 0.0)]
    []
    """
    bounds = np.asarray(problem.domain.bounds, dtype=np.float64)
    for which in product((0, 1), repeat=2):
        corner = _Corner(problem, equation.form, bounds[[0, 1], which], 2.0 * np.array(which) - 1.0)
        if not all(corner.sides):
            continue
        try:
            given = corner.differences
        except (ProblemError, ValueError, TypeError, ArithmeticError):
            continue  # some derivative has no value in the corner
        if given is not None:
            yield corner.place, np.diag(corner.outward), given


@dataclass(frozen=True, eq=False)
class _Corner:
    """A corner of the bounds of a problem, and the Taylor polynomial there in coordinates relative to their sides.

    The equation and the conditions across one axis, that of time if there is one, determine the polynomial.
    """

    problem: Problem
    equation: Form
    place: FloatArray
    outward: FloatArray  # signs of the normals
    degree: int = 4

    @cached_property
    def sides(self) -> tuple[list[tuple[Form, Any]], list[tuple[Form, Any]]]:
        """The conditions across each axis, with a patch on which each holds."""
        found: tuple[list[tuple[Form, Any]], list[tuple[Form, Any]]] = ([], [])
        for statement in self.problem.statements:
            for patch in statement.place.part.patches if isinstance(statement.place, OnPart) else ():
                if patch.parameters == 1:
                    X, normals, _ = patch.at(np.array([[0.0], [1.0]]))
                    here = (np.abs(X - self.place) <= CLOSE * self._lengths).all(axis=1)
                    axis = int(np.abs(normals[0]).argmax())
                    if here.any() and abs(normals[0, axis] - self.outward[axis]) < CLOSE:
                        found[axis].append((statement.form, patch))
        return found

    @cached_property
    def _lengths(self) -> FloatArray:
        return np.asarray(np.ptp(self.problem.domain.bounds, axis=1))

    @property
    def _ahead(self) -> int:
        return int(self.problem.domain.time is not None)

    @property
    def differences(self) -> list[Given] | None:
        """The conditions on the other side, each with the jump to its value; None if all of them hold."""
        s, found, agree = np.linspace(0.0, 1.0, SCAN)[1:-1, None], [], True
        size = max(np.abs(form.source_function(*patch.at(s)[:2])).max() for own in self.sides for form, patch in own)
        for form, _ in self.sides[1 - self._ahead]:
            terms, source = self._expanded(form)
            off = [
                self._residual(terms, source, self._values, self._index(0, j)) for j in range(self.degree - form.order)
            ]
            differs = np.abs(off) > np.sqrt(CLOSE) * size
            agree = agree and not differs.any()
            found.append((form, -off[0] if form.order == 0 and differs[0] else 0.0))
        return None if agree else found

    def _index(self, along: int, ahead: int) -> MultiIndex:
        return (along, ahead) if self._ahead else (ahead, along)

    @cached_property
    def _values(self) -> FloatArray:
        """The coefficients of the polynomial, up to a total degree."""
        found = np.zeros((self.degree + 1, self.degree + 1))
        for form, _ in self.sides[self._ahead]:
            (term,) = form.terms
            self._solve(found, form, term.multi_index, range(1))
        order = max(term.multi_index[self._ahead] for term in self.equation.terms)
        self._solve(found, self.equation, self._index(0, order), range(self.degree + 1 - self.equation.order))
        return found

    def _solve(self, found: FloatArray, form: Form, leading: MultiIndex, rows: Sequence[int]) -> None:
        """Find the coefficients of a leading derivative, order by order, so that a form vanishes."""
        terms, source = self._expanded(form)
        top = terms[leading][0, 0]
        if abs(top) <= CLOSE * max(np.abs(own).max() for own in terms.values()):
            raise ProblemError(
                f"The factor of the derivative {leading} vanishes in the corner; leave the corner alone."
            )
        for j in rows:
            for i in range(self.degree + 1 - max(form.order, leading[self._ahead]) - j):
                index = self._index(i, j)
                place = tuple(np.add(index, leading))
                found[place] -= self._residual(terms, source, found, index) / (top * _factor(place, leading))

    def _expanded(self, form: Form) -> tuple[dict[MultiIndex, FloatArray], FloatArray]:
        """Return the Taylor coefficients of the factors of a form and of its source."""
        terms = {
            term.multi_index: self._series(term.coefficient) / np.prod(self._lengths ** np.array(term.multi_index))
            for term in form.terms
        }
        return terms, self._series(form.source)

    def _series(self, expression: sp.Expr) -> FloatArray:
        symbols, found = self.equation.coordinates, np.zeros((self.degree + 1, self.degree + 1))
        real = [sp.Dummy(real=True) for _ in symbols]  # absolute values of others have no slopes
        lengths = self._lengths
        normal = {f"n_{s.name}": out for s, out in zip(symbols, self.outward, strict=True)}
        facing = {s: normal[s.name] for s in expression.free_symbols if isinstance(s, Normal)}
        # Data that switch in the corner itself are those beside it.
        inside = self.place - CLOSE * lengths * self.outward
        there = dict(zip(real, map(sp.Float, inside), strict=True))
        column = expression.subs(facing | dict(zip(symbols, real, strict=True)))
        for i in range(self.degree + 1):
            row = column
            for j in range(self.degree + 1 - i):
                if row == 0:
                    break
                value = float(row.subs(there).evalf())
                found[i, j] = value * lengths[0] ** i * lengths[1] ** j / (math.factorial(i) * math.factorial(j))
                row = row.diff(real[1])
            column = column.diff(real[0])
        if not np.isfinite(found).all():
            raise ProblemError(f"{expression} has no Taylor polynomial in a corner; leave the corner alone.")
        return found

    def _residual(
        self, terms: dict[MultiIndex, FloatArray], source: FloatArray, found: FloatArray, index: MultiIndex
    ) -> float:
        """Return a Taylor coefficient of a form of the polynomial."""
        total = float(source[index])
        for own, factors in terms.items():
            for p, q in product(range(index[0] + 1), range(index[1] + 1)):
                place = (index[0] - p + own[0], index[1] - q + own[1])
                if factors[p, q] and sum(place) <= self.degree:
                    total += factors[p, q] * _factor(place, own) * found[place]
        return total


def _factor(place: Sequence[int], derivative: MultiIndex) -> float:
    """Return the factor that a derivative brings to a power."""
    return float(math.prod(math.perm(power, order) for power, order in zip(place, derivative, strict=True)))
