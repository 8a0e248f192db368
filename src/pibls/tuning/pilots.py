"""Small networks at many scales, at the same points: what the choice of the scale is made with.

A pilot is fitted at some points and judged at others. Rows of both are assembled in one go, and the fit is one call of
LAPACK, so that a pilot costs little more than its own matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import linalg

from pibls.checks import FloatArray
from pibls.features import BroadNetwork
from pibls.geometry import Points, PointSet
from pibls.problem import MultiIndex, Statement
from pibls.system import assemble
from pibls.tuning.judge import Evaluate, Judge, Verdict
from pibls.tuning.laboratory import Laboratory, Scale

__all__ = ["Pilots"]

_RIDGE = 3e-16  # for unit columns: keeps the triangle regular, and costs no digit that a pilot has


@dataclass(eq=False)
class Pilots:
    """Pilots of one width, fitted and judged at the same points.

    Examples
    --------
    >>> from pibls.problems import helmholtz
    >>> pilots = Pilots(Laboratory(helmholtz(), 0), 120)
    >>> pilots.verdict((6.0, 6.0)).total < 0.1 < pilots.verdict((48.0, 48.0)).total
    True
    """

    lab: Laboratory
    nodes: int
    verdicts: dict[Scale, Verdict] = field(default_factory=dict)

    def verdict(self, scale: Scale) -> Verdict:
        """Return the relative residuals of a pilot at the held-out points."""
        if scale not in self.verdicts:
            residuals, evaluate = self._run(scale)
            sizes = self.judge.references(evaluate)
            self.verdicts[scale] = Verdict({name: value / (sizes[name] or 1.0) for name, value in residuals.items()})
        return self.verdicts[scale]

    def score(self, scale: Scale) -> float:
        """Return the total residual of a scale; infinite where it is not a number."""
        total = self.verdict(scale).total
        return total if np.isfinite(total) else np.inf

    @cached_property
    def judge(self) -> Judge:
        """What judges them."""
        return self.lab.judge(self.nodes)

    @cached_property
    def points(self) -> Points:
        """The points they are fitted at."""
        return self.lab.points(self.nodes)

    @cached_property
    def _joined(self) -> Points:
        pairs: dict[int, PointSet] = {}
        for own, held in zip(self.points.sets, self.judge.points.sets, strict=True):
            # Statements in one place share a set, also here, so that its features are computed once.
            if id(own) not in pairs:
                pairs[id(own)] = own if _same(own, held) else _stacked(own, held)
        return Points(tuple(pairs[id(own)] for own in self.points.sets))

    def _run(self, scale: Scale) -> tuple[dict[str, float], Evaluate]:
        """Fit a pilot; return its residuals at the held-out points, and the function it is."""
        network = self.lab.network(self.lab.blocks(self.nodes, scale))
        system = assemble(self.lab.problem, self._joined, network)
        matrix, rhs = system.matrix, system.rhs
        if system.constraints is not None:
            matrix = np.concatenate([matrix, system.constraints])
            rhs = np.concatenate([rhs, system.constraint_rhs])
        scales = [block.scale for block in (*system.blocks, *system.constraint_blocks)]
        weights = _least_squares(matrix[self._fitted], rhs[self._fitted])
        names = {id(statement): name for name, statement in self.judge.judged}
        residuals: dict[str, float] = {}
        for (statement, rows), factor in zip(self._held, scales, strict=True):
            if id(statement) in names:
                rest = rhs[rows] - matrix[rows] @ weights
                residuals[names[id(statement)]] = float(np.sqrt(np.mean(rest * rest))) / factor
        return residuals, _function(network, weights.reshape(-1, network.size), self.lab.problem.field_names)

    @cached_property
    def _ordered(self) -> list[Statement]:
        statements = self.lab.problem.statements
        return [s for s in statements if not s.exact] + [s for s in statements if s.exact]

    @cached_property
    def _held(self) -> list[tuple[Statement, slice]]:
        """The rows of every statement at which it is judged: at those it is fitted at, where it has no others."""
        held, start = [], 0
        for statement in self._ordered:
            own, joined = (p.sets[statement.source].rows for p in (self.points, self._joined))
            held.append((statement, slice(start + (own if joined > own else 0), start + joined)))
            start += joined
        return held

    @cached_property
    def _fitted(self) -> FloatArray:
        """The rows that pilots are fitted at."""
        rows, start = [], 0
        for statement in self._ordered:
            rows.append(start + np.arange(self.points.sets[statement.source].rows))
            start += self._joined.sets[statement.source].rows
        return np.concatenate(rows)


def _same(own: PointSet, held: PointSet) -> bool:
    """Tell whether a statement has only one set of points: an average, measurements, a point, a cloud."""
    return own.weights is not None or (len(own) == len(held) and bool(np.array_equal(own.points, held.points)))


def _stacked(own: PointSet, held: PointSet) -> PointSet:
    def both(one: FloatArray | None, two: FloatArray | None) -> FloatArray | None:
        return None if one is None or two is None else np.concatenate([one, two])

    return PointSet(
        np.concatenate([own.points, held.points]), both(own.normals, held.normals), both(own.partner, held.partner)
    )


def _least_squares(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    """Return regularised least-squares weights, by one QR factorisation of unit columns over a small ridge."""
    norms = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    norms[norms == 0] = 1.0
    rows, columns = matrix.shape
    work = np.zeros((rows + columns, columns), order="F")
    np.divide(matrix, norms, out=work[:rows])
    work[rows + np.arange(columns), np.arange(columns)] = _RIDGE * np.sqrt(columns)
    room, _ = linalg.lapack.dgels_lwork(*work.shape, 1)
    target = np.concatenate([rhs, np.zeros(columns)])
    _, found, info = linalg.lapack.dgels(work, target, lwork=int(room), overwrite_a=True)
    weights: FloatArray = found[:columns] / norms
    return weights if info == 0 else np.full(columns, np.nan)


def _function(network: BroadNetwork, weights: FloatArray, names: Sequence[str]) -> Evaluate:
    def evaluate(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        nodes = network.evaluate(X, dict.fromkeys(index for _, index in wanted))
        return [nodes[index] @ weights[names.index(name)] for name, index in wanted]

    return evaluate
