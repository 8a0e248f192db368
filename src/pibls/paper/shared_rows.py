"""Rows of a network at all points of a cross-validation, which every fold and every setting share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.paper.folds import Fold, IndexArray
from pibls.problem import MultiIndex, Problem
from pibls.solution.residuals import root_mean_square
from pibls.system import Evaluate, Penalties, assemble
from pibls.tuning.judge import Judge

Key = tuple[str, MultiIndex]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Problem, points, folds and scores, which all fits of a cross-validation have in common."""

    problem: Problem
    points: Points
    folds: tuple[Fold, ...]
    scores: tuple[str, ...]

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """A judge for every fold."""
        return tuple(Judge(self.problem, fold.held) for fold in self.folds)

    def score(self, evaluate: Evaluate, fold: int, score: str) -> float:
        """Return how good a solution is at the points held out of a fold."""
        if score == "residual":
            return self.judges[fold](evaluate)
        X, names = self.folds[fold].held.interior, self.problem.field_names
        values = evaluate(X, [(name, (0,) * X.shape[1]) for name in names])
        errors = [v - self._held_exact[fold][name] for name, v in zip(names, values, strict=True)]
        return float(np.sqrt(sum(root_mean_square(error) ** 2 for error in errors)))

    @cached_property
    def _held_exact(self) -> tuple[dict[str, FloatArray], ...]:
        return tuple(self.problem.exact_values(fold.held.interior) for fold in self.folds)

    @cached_property
    def exact(self) -> dict[str, FloatArray]:
        """The exact solution at the interior points."""
        return self.problem.exact_values(self.points.interior)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The derivatives of fields that scores are made of."""
        zero = (0,) * len(self.problem.domain.coordinates)
        wanted: dict[Key, None] = {(name, zero): None for name in self.problem.field_names}
        if "residual" in self.scores:
            wanted |= {(t.field, t.multi_index): None for s in self.problem.statements for t in s.form.terms}
        return tuple(wanted)


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows of a network at all points, in the units of their equations, and derivatives of the nodes inside.

    ``matrix`` has one block of columns per field, ``derivatives`` one array per derivative of one field.
    """

    matrix: FloatArray
    rhs: FloatArray
    starts: tuple[int, ...]
    derivatives: Mapping[Key, FloatArray]
    weights: int

    @classmethod
    def of(cls, scorer: Scorer, network: BroadNetwork) -> SharedRows:
        """Compute the rows of a network."""
        problem = scorer.problem
        system = assemble(problem, scorer.points, network, Penalties())
        matrix, rhs = np.array(system.matrix), np.array(system.rhs)
        for block in system.blocks:
            matrix[block.rows] /= block.scale
            rhs[block.rows] /= block.scale
        indices = list(dict.fromkeys(index for _, index in scorer.keys))
        values = network.combine(scorer.points.interior, [{index: 1.0} for index in indices])
        table = dict(zip(indices, values, strict=True))
        starts = tuple(block.rows.start for block in system.blocks)
        derivatives = {(name, index): table[index] for name, index in scorer.keys}
        return cls(matrix, rhs, starts, derivatives, matrix.shape[1])

    def part(self, columns: IndexArray) -> SharedRows:
        """Return the rows of a narrower network."""
        size = next(iter(self.derivatives.values())).shape[1]
        if len(columns) == size:
            return self
        fields = self.matrix.shape[1] // size
        chosen = np.concatenate([columns + number * size for number in range(fields)])
        derivatives = {key: values[:, columns] for key, values in self.derivatives.items()}
        return SharedRows(self.matrix[:, chosen], self.rhs, self.starts, derivatives, len(chosen))

    def whole(self, names: Sequence[str]) -> SharedRows:
        """Return the same with derivatives that have a column for every weight of every field."""
        if len(names) == 1:
            return self
        size = self.matrix.shape[1] // len(names)
        wide = {}
        for (name, index), values in self.derivatives.items():
            wide[name, index] = np.zeros((len(values), self.matrix.shape[1]))
            wide[name, index][:, names.index(name) * size :][:, :size] = values
        return SharedRows(self.matrix, self.rhs, self.starts, wide, self.weights)

    def compressed(self) -> SharedRows:
        """Return the same in an orthonormal basis of the space of the rows, where that is smaller."""
        if self.matrix.shape[0] >= self.matrix.shape[1]:
            return self
        basis, triangle = scipy.linalg.qr(self.matrix.T, mode="economic", check_finite=False)
        derivatives = {key: values @ basis for key, values in self.derivatives.items()}
        return SharedRows(np.ascontiguousarray(triangle.T), self.rhs, self.starts, derivatives, self.weights)

    def places(self, problem: Problem, chosen: Sequence[IndexArray]) -> list[IndexArray]:
        """Return the rows of every statement at chosen points of each set."""
        return [start + chosen[s.source] for s, start in zip(problem.statements, self.starts, strict=True)]
