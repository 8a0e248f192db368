"""Curves along which a linear equation in two coordinates carries the jumps and kinks of its data.

An equation of first order carries them along its characteristics. A wave equation has two families of these, and turns
one into the other at the ends of its interval.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.characteristic_curves import Directions, Traced, traced
from pibls.problem.corner_data import disagreements
from pibls.problem.evaluate import compile_function
from pibls.problem.places import OnPart, Opposite
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement
from pibls.problem.switches import MOST_EDGES, factors_of, has_branches, zeros
from pibls.problem.wave_jumps import Given, carried_size, entering_sizes
from pibls.quadrature.roots import CLOSE, SCAN


def carried_curves(problem: Problem) -> tuple[Traced, ...]:
    """Return the curves along which jumps and kinks of the data are carried.

    >>> import pibls as pb
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, 0, 2)) * pb.TimeInterval(t, 0, 1)
    >>> step = pb.Initial(u, sp.Heaviside(1 - 2 * x))
    >>> (curve,) = carried_curves(Problem(u.diff(t) + 3 * u.diff(x), line, [step, pb.Dirichlet(u, 1, on=line.left)]))
    >>> curve.level, curve.end.round(3)
    (-3.0*t + 1.0*x - 0.5, array([2. , 0.5]))
    """
    equations, axes = problem.laws.statements, len(problem.domain.coordinates)
    if len(equations) != 1 or len(problem.fields) != 1 or axes != 2 or not problem.is_linear:
        return ()
    return _Carrying(problem, equations[0]).curves


# A family of characteristics, a place on the boundary from which it leads inside, and how much a wave jumps there.
_Start = tuple[Directions, FloatArray, float]


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
            if not (compile_function(both, domain.coordinates)(domain.sample(SCAN, "kronecker", 1)) > 0).all():
                return []
        except ProblemError:
            return []
        return [Directions(((mixed + sign * sp.sqrt(both)) / (2 * ahead), sp.S.One), domain) for sign in (1, -1)]

    @cached_property
    def curves(self) -> tuple[Traced, ...]:
        """The curves, without those that come from the same place twice."""
        waiting = deque(self._starts() if self.families else ())
        found: dict[tuple[int, bytes], Traced] = {}
        grain = CLOSE * np.ptp(self.problem.domain.bounds, axis=1)
        while waiting and len(found) < MOST_EDGES:
            family, place, size = waiting.popleft()
            key = self.families.index(family), np.round(place / grain).tobytes()
            if key in found or (curve := traced(family, place)) is None:
                continue
            jump = carried_size(self.equation.form, family, curve, float(place[1]), size)
            found[key] = replace(curve, jump=jump)
            waiting.extend(self._continued(family, found[key]))
        return tuple(found.values())

    def _starts(self) -> Iterator[_Start]:
        """Yield the places on the boundary at which data switch or disagree, and a family enters the domain."""
        for place in dict.fromkeys(s.place for s in self.problem.statements):
            if not isinstance(place, OnPart):
                continue
            own = [s for s in self.problem.statements if s.place == place]
            residuals = [s.form.residual for s in (*own, self.equation)]
            factors = list(factors_of(residuals, self.problem.domain.coordinates))
            for patch in (patch for patch in place.part.patches if factors and patch.parameters == 1):
                for s in dict.fromkeys(s for factor in factors for s in self._zeros(factor, patch)):
                    X, normals, _ = patch.at(np.array([[s]]))
                    yield from self._entering(X[0], normals, [(one.form, _jump(one, patch, s)) for one in own])
        for disagreement in disagreements(self.problem, self.equation):
            yield from self._entering(*disagreement)
        yield from self._around()

    def _entering(
        self, place: FloatArray, normals: FloatArray, given: Sequence[Given], *incoming: tuple[Directions, float]
    ) -> Iterator[_Start]:
        """Yield the families that enter at a place, with the sizes of their jumps."""
        own = [family for family in self.families if family.enters(place, normals)]
        sizes = entering_sizes(own, place, normals[0], given, incoming) if self._is_wave else [0.0] * len(own)
        yield from ((family, place, size) for family, size in zip(own, sizes, strict=True))

    def _around(self) -> Iterator[_Start]:
        """Yield the ends of a period at which the initial values on both sides differ."""
        initial, (low, high) = self.problem.domain.initial, self.problem.domain.bounds.T
        if initial is None or not any(isinstance(s.place, Opposite) for s in self.problem.statements):
            return
        given, ends = [], np.array([low, [high[0], low[1]]])
        along = np.linspace(ends[0], ends[1], SCAN)
        for statement in self.problem.statements:
            if isinstance(statement.place, OnPart) and statement.place.part.contains(ends).all():
                values = statement.form.source_function(along, initial.normals(along))
                jump = float(values[-1] - values[0]) if statement.form.order == 0 else 0.0
                given.append((statement.form, jump if abs(jump) > CLOSE * np.abs(values).max() else 0.0))
        if not any(jump for _, jump in given):
            return
        normals = initial.normals(ends)
        sizes = entering_sizes(self.families, ends[0], normals[0], given) if self._is_wave else [0.0]
        for family, size in zip(self.families, sizes, strict=True):
            for place, out in zip(ends, (-1.0, 1.0), strict=True):
                if family.enters(place, np.array([[out, 0.0], normals[0]])):
                    yield family, place, size

    @property
    def _is_wave(self) -> bool:
        return self.equation.form.order == 2

    def _zeros(self, factor: sp.Expr, patch: Any) -> list[float]:
        """Return the zeros of an expression strictly within a patch, by its parameter."""
        function = compile_function(factor, self.problem.domain.coordinates)

        def along(s: FloatArray) -> FloatArray:
            return function(patch.at(s[:, None])[0])

        try:
            return [s for s in zeros(along, np.linspace(0.0, 1.0, SCAN**2)) if CLOSE < s < 1.0 - CLOSE]
        except ProblemError:
            return []

    def _continued(self, family: Directions, curve: Traced) -> Iterator[_Start]:
        """Yield the families and places by which a curve goes on that has come to an end of its interval."""
        bounds = self.problem.domain.bounds
        if (
            self.problem.domain.time is None
            or curve.end is None
            or curve.end[1] >= bounds[1, 1] - CLOSE * np.ptp(bounds[1])
        ):
            return
        size = float(curve.jump.subs(self.problem.domain.time, sp.Float(curve.end[1])))
        if any(isinstance(s.place, Opposite) for s in self.problem.statements):
            yield family, np.array([bounds[0].sum() - curve.end[0], curve.end[1]]), size
        elif self._is_wave:
            out, given = np.array([[np.sign(curve.end[0] - bounds[0].mean()), 0.0]]), self.problem.statements
            there = (s.form for s in given if isinstance(s.place, OnPart) and s.place.part.contains(curve.end[None])[0])
            yield from self._entering(curve.end, out, [(form, 0.0) for form in there], (family, size))


def _jump(statement: Statement, patch: Any, place: float) -> float:
    """Return how much a prescribed value jumps at a place of a patch, along its axis; small ones count for nothing."""
    s = np.concatenate([[place - CLOSE, place + CLOSE], np.linspace(0.0, 1.0, SCAN + 1)[1:-1]])
    X, normals, _ = patch.at(s[:, None])
    try:
        values = statement.form.source_function(X, normals)
    except ProblemError:
        return 0.0
    jump = float(values[0] - values[1]) * float(np.sign((X[1] - X[0]).sum()))
    return jump if abs(jump) > np.sqrt(CLOSE) * np.abs(values).max() else 0.0
