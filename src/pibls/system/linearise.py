"""A nonlinear problem at points: its residual, and the least-squares system of its linearisation at any state.

Derivatives of the nodes are computed once per point set. Every iteration combines them with the coefficients of the
Fréchet derivative, which depend on the state; rows whose coefficients do not are filled once and stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace

from pibls.checks import FloatArray
from pibls.features import BroadNetwork
from pibls.geometry import Points, PointSet
from pibls.problem import MultiIndex, Problem, Statement
from pibls.runtime import require_memory
from pibls.system.assemble import Target, by_point_set, check_points_match, fill_rows, scale_rows, system_bytes
from pibls.system.blocks import System
from pibls.system.scaling import Balanced, RowScaling
from pibls.system.tangent import Evaluate, check_known

__all__ = ["Linearisation", "States"]

States = tuple[tuple[FloatArray, ...], ...]
"""For each nonlinear statement, the values of its slots at its points."""

_COPIES = 2  # the rows that stay, and those of the iteration at hand


@dataclass(frozen=True, eq=False)
class _Moving:
    """A nonlinear statement, the part of it that stays, and the derivatives of the nodes at its points."""

    statement: Statement
    part: Statement
    where: PointSet
    rows: slice
    nodes: Mapping[MultiIndex, Any]

    def state(self, evaluate: Evaluate) -> tuple[FloatArray, ...]:
        wanted = [(term.field, term.multi_index) for term in self.statement.form.terms]
        return tuple(evaluate(self.where.points, wanted))

    def residual(self, state: Sequence[FloatArray]) -> FloatArray:
        targets = self.statement.targets
        values = self.statement.form.residual_function(self.where.points, self.where.normals, state)
        return values if targets is None else values - targets

    def coefficients(self, state: Sequence[FloatArray]) -> list[FloatArray]:
        functions = self.statement.form.coefficient_functions
        return [function(self.where.points, self.where.normals, state) for function in functions]


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A nonlinear problem at points, for one network; made by :meth:`of`.

    Weights are flat: those of the first field, then of the second, and so on. Rows are scaled by the factors of
    :meth:`balanced`, which stay the same in the course of an iteration, so that residuals can be compared.

    Attributes
    ----------
    problem, points, network
        What is solved, where, and with which nodes.
    scales
        Factor per statement, least-squares rows first, then conditions that hold exactly.

    Examples
    --------
    >>> from pibls.features import draw_network
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> from pibls.geometry import Interval
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> problem = Problem(u.diff(x) - u**2, Interval((x, 0, 1)), [Dirichlet(u, 1, on=[0.0])])
    >>> network = draw_network(np.random.default_rng(0), problem.domain.bounds, [("sin", 8, 2.0)])
    >>> model = Linearisation.of(problem, Points.sample(problem, 20), network)
    >>> step = model.system(np.zeros(8))
    >>> step.shape, bool(abs(step.rhs[-1] - 1) < 1e-12), float(abs(step.rhs[:-1]).max())
    ((21, 8), True, 0.0)
    """

    problem: Problem
    points: Points
    network: BroadNetwork
    soft: Target
    hard: Target
    moving: tuple[_Moving, ...]
    scales: tuple[float, ...]

    @classmethod
    def of(cls, problem: Problem, points: Points, network: BroadNetwork) -> Linearisation:
        """Compute what does not change from iteration to iteration."""
        check_known(problem)
        check_points_match(problem, points)
        columns = network.size * len(problem.fields)
        require_memory(
            _COPIES * system_bytes(problem, points, network.size),
            f"a nonlinear system with {columns} columns",
            "Use fewer points or fewer nodes.",
        )
        parts = [s if s.form.is_linear else replace(s, form=s.form.staying) for s in problem.statements]
        whole = {id(part): statement for part, statement in zip(parts, problem.statements, strict=True)}
        soft = Target.of([s for s in parts if not s.exact], points, columns, network)
        hard = Target.of([s for s in parts if s.exact], points, columns, network)
        moving: list[_Moving] = []
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for group in by_point_set(parts, points):
                where = points.sets[group[0].source]
                fill_rows(group, problem, where, network, soft, hard)
                pairs = [(whole[id(part)], part) for part in group if not whole[id(part)].form.is_linear]
                moving += _moving(pairs, where, network, soft, hard)
        ones = (1.0,) * len(parts)
        return cls(problem, points, network, soft, hard, tuple(moving), ones)

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.network.size * len(self.problem.fields)

    def zeros(self) -> Any:
        """Return weights of zero, in the library of the network."""
        return self.place(np.zeros(self.size))

    def place(self, array: FloatArray) -> Any:
        """Bring an array to the library and device of the network."""
        like = self.network.center
        xp = array_namespace(like)
        return array if is_numpy_namespace(xp) else xp.asarray(np.array(array), dtype=like.dtype, device=like.device)

    def states(self, weights: Any) -> States:
        """Return the state that weights stand for."""
        size, names = self.network.size, self.problem.field_names
        found: dict[tuple[int, str, MultiIndex], FloatArray] = {}
        result = []
        for move in self.moving:
            values = []
            for term in move.statement.form.terms:
                key = (id(move.where), term.field, term.multi_index)
                if key not in found:
                    first = names.index(term.field) * size
                    found[key] = _host(move.nodes[term.multi_index] @ weights[first : first + size])
                values.append(found[key])
            result.append(tuple(values))
        return tuple(result)

    def states_of(self, evaluate: Evaluate) -> States:
        """Return the state of any function, of this network or not."""
        return tuple(move.state(evaluate) for move in self.moving)

    def balanced(self, states: States, scaling: RowScaling | None = None) -> Linearisation:
        """Return the same rows, scaled to equal size at a state, or by another rule."""
        soft, hard = self._filled(states)
        rule = Balanced() if scaling is None else scaling
        blocks = (*scale_rows(soft, rule), *scale_rows(hard, Balanced()))
        return replace(self, scales=tuple(block.scale for block in blocks))

    def residual(self, weights: Any) -> tuple[Any, Any]:
        """Return the scaled residual of the least-squares rows, and of those that hold exactly."""
        states = self.states(weights)
        xp = array_namespace(self.network.center)
        pair = tuple(xp.empty_like(target.rhs) for target in (self.soft, self.hard))
        moved = {id(move.part): move.residual(state) for move, state in zip(self.moving, states, strict=True)}
        first = 0
        for target, out in zip((self.soft, self.hard), pair, strict=True):
            for statement, block in zip(target.statements, target.blocks, strict=True):
                if id(statement) in moved:
                    out[block.rows] = self.place(moved[id(statement)])
                else:
                    out[block.rows] = target.matrix[block.rows, :] @ weights - target.rhs[block.rows]
            self._scaled(target, None, out, self.scales[first : first + len(target.blocks)])
            first += len(target.blocks)
        return pair[0], pair[1]

    def system(self, weights: Any) -> System:
        """Return the system whose solution is the Gauss–Newton step from weights."""
        soft, hard = self.residual(weights)
        return replace(self.tangent(self.states(weights)), rhs=-soft, constraint_rhs=-hard if len(hard) else None)

    def tangent(self, states: States) -> System:
        """Return the system whose solution is the next state itself, from any state."""
        soft, hard = self._filled(states)
        blocks = []
        first = 0
        for target in (soft, hard):
            scales = self.scales[first : first + len(target.blocks)]
            self._scaled(target, target.matrix, target.rhs, scales)
            blocks.append(tuple(replace(b, scale=s) for b, s in zip(target.blocks, scales, strict=True)))
            first += len(target.blocks)
        if not hard.statements:
            return System(soft.matrix, soft.rhs, blocks[0])
        return System(soft.matrix, soft.rhs, blocks[0], hard.matrix, hard.rhs, blocks[1])

    def _scaled(self, target: Target, matrix: Any, rhs: Any, scales: Sequence[float]) -> None:
        for statement, block, factor in zip(target.statements, target.blocks, scales, strict=True):
            noise = np.ones(block.count) if statement.noise is None else statement.noise
            per_row = self.place(factor / noise)
            if matrix is not None:
                matrix[block.rows, :] *= per_row[:, None]
            rhs[block.rows] *= per_row

    def _filled(self, states: States) -> tuple[Target, Target]:
        """Return unscaled copies of the rows, with the coefficients at a state filled in."""
        soft, hard = (replace(t, matrix=_copied(t.matrix), rhs=_copied(t.rhs)) for t in (self.soft, self.hard))
        names, size = self.problem.field_names, self.network.size
        for move, state in zip(self.moving, states, strict=True):
            target = hard if move.statement.exact else soft
            coefficients = move.coefficients(state)
            tangent = np.zeros(len(move.where))
            terms = zip(move.statement.form.terms, coefficients, state, move.statement.form.depends, strict=True)
            for term, coefficient, values, depends in terms:
                tangent += coefficient * values
                if depends:
                    first = names.index(term.field) * size
                    out = target.matrix[move.rows, first : first + size]
                    out += self.place(coefficient)[:, None] * move.nodes[term.multi_index]
            target.rhs[move.rows] = self.place(tangent - move.residual(state))
        return soft, hard


def _moving(
    pairs: Sequence[tuple[Statement, Statement]], where: PointSet, network: BroadNetwork, soft: Target, hard: Target
) -> list[_Moving]:
    if not pairs:
        return []
    indices = dict.fromkeys(term.multi_index for statement, _ in pairs for term in statement.form.terms)
    nodes = network.evaluate(where.points, indices)
    return [_Moving(s, part, where, (hard if s.exact else soft).rows(part), nodes) for s, part in pairs]


def _copied(array: Any) -> Any:
    return np.array(array, order="K") if isinstance(array, np.ndarray) else array.clone()


def _host(array: Any) -> FloatArray:
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
