"""Curves along which a linear equation in two coordinates carries the jumps and kinks of its data.

An equation of first order carries them along its characteristics. A wave equation has two families of these, and turns
one into the other at the ends of its interval.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.carried_curves import Directions, Traced, traced
from pibls.problem.corner_data import disagrees
from pibls.problem.evaluate import compile_function
from pibls.problem.places import OnPart, Opposite
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement
from pibls.problem.switches import factors_of, has_branches
from pibls.quadrature.roots import CLOSE, bracketed

_MOST = 32  # curves
_SCAN = 4097
_SAMPLES = 64


def carried_levels(problem: Problem) -> tuple[sp.Expr, ...]:
    """Return functions that are zero on the curves along which jumps and kinks of the data are carried.

    >>> import pibls as pb
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, 0, 2)) * pb.TimeInterval(t, 0, 1)
    >>> step = pb.Initial(u, sp.Heaviside(1 - 2 * x))
    >>> carried_levels(Problem(u.diff(t) + 3 * u.diff(x), line, [step, pb.Dirichlet(u, 1, on=line.left)]))
    (-3.0*t + 1.0*x - 0.5,)
    """
    equations = [s for s in problem.statements if s.is_equation]
    domain = problem.domain
    if len(equations) != 1 or len(problem.fields) != 1 or len(domain.coordinates) != 2 or not problem.is_linear:
        return ()
    carrying = _Carrying(problem, equations[0])
    return carrying.levels if carrying.families else ()


@dataclass(frozen=True, eq=False)
class _Carrying:
    """A linear problem of one field in two coordinates, whose equation may have characteristics."""

    problem: Problem
    equation: Statement

    @cached_property
    def families(self) -> list[Directions]:
        """The directions of the characteristics; those of an evolution lead forward in time."""
        form, domain = self.equation.form, self.problem.domain
        top = {term.multi_index: term.coefficient for term in form.terms if term.order == form.order}
        if any(has_branches(own) for own in top.values()):
            return []
        if form.order == 1:
            along, ahead = (top.get(index, sp.S.Zero) for index in ((1, 0), (0, 1)))
            if domain.time is None:
                return [Directions((along, ahead), domain)]
            return [Directions((along / ahead, sp.S.One), domain)] if ahead != 0 else []
        if form.order != 2 or domain.time is None or not top.get((0, 2)):
            return []
        square, mixed, ahead = (top.get(index, sp.S.Zero) for index in ((2, 0), (1, 1), (0, 2)))
        both = mixed**2 - 4 * square * ahead
        try:
            if not (compile_function(both, domain.coordinates)(domain.sample(_SAMPLES, "kronecker", 1)) > 0).all():
                return []
        except ProblemError:
            return []
        return [Directions(((mixed + sign * sp.sqrt(both)) / (2 * ahead), sp.S.One), domain) for sign in (1, -1)]

    @cached_property
    def levels(self) -> tuple[sp.Expr, ...]:
        """The functions that are zero on the curves, without those that come from the same place twice."""
        waiting = deque((family, place) for family in self.families for place in self._starts(family))
        found: dict[tuple[int, bytes], sp.Expr] = {}
        while waiting and len(found) < _MOST:
            family, place = waiting.popleft()
            grain = CLOSE * np.ptp(self.problem.domain.bounds, axis=1)
            key = self.families.index(family), np.round(place / grain).tobytes()
            if key in found or (curve := traced(family, place)) is None:
                continue
            found[key] = curve.level
            waiting.extend(self._continued(family, curve))
        return tuple(found.values())

    def _starts(self, family: Directions) -> Iterator[FloatArray]:
        """Yield the places on the boundary at which data switch or disagree, and a family enters the domain."""
        for part in dict.fromkeys(s.place.part for s in self.problem.statements if isinstance(s.place, OnPart)):
            own = [s.form.residual for s in self.problem.statements if isinstance(s.place, OnPart) and s.place.part == part]
            factors = list(factors_of([*own, self.equation.form.residual], self.problem.domain.coordinates))
            for patch in (patch for patch in part.patches if patch.parameters == 1):
                for s in dict.fromkeys(s for factor in factors for s in self._zeros(factor, patch)):
                    X, normals, _ = patch.at(np.array([[s]]))
                    if family.enters(X[0], normals[0]):
                        yield X[0]
        yield from (corner for corner in disagrees(self.problem, self.equation) if family.enters_box(corner))

    def _zeros(self, factor: sp.Expr, patch: object) -> list[float]:
        """Return the zeros of an expression strictly within a patch, by its parameter."""
        function = compile_function(factor, self.problem.domain.coordinates)

        def along(s: FloatArray, _: object = None) -> FloatArray:
            return function(patch.at(s[:, None])[0])  # type: ignore[attr-defined, no-any-return]

        s = np.linspace(0.0, 1.0, _SCAN)
        try:
            values = along(s)
            (change,) = np.nonzero((np.sign(values[1:]) * np.sign(values[:-1]) < 0))
            roots = [*bracketed(along, s[change], s[change + 1]).tolist(), *s[1:-1][values[1:-1] == 0].tolist()]
        except ProblemError:
            return []
        return [root for root in roots if CLOSE < root < 1.0 - CLOSE]

    def _continued(self, family: Directions, curve: Traced) -> Iterator[tuple[Directions, FloatArray]]:
        """Yield the families and places by which a curve goes on that has come to a side of its interval."""
        bounds = self.problem.domain.bounds
        if self.problem.domain.time is None or curve.end[1] >= bounds[1, 1] - CLOSE * np.ptp(bounds[1]):
            return
        if any(isinstance(s.place, Opposite) for s in self.problem.statements):
            yield family, np.array([bounds[0].sum() - curve.end[0], curve.end[1]])
        else:
            yield from ((other, curve.end) for other in self.families if other is not family)
