"""Methods of a cross-validation whose networks are leading columns of one another, and the rows that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray
from pibls.features import BroadNetwork
from pibls.methods import PIBLS, PIELM, BayesianPIELM
from pibls.paper.folds import IndexArray, Key, Scorer
from pibls.problem import Problem
from pibls.system import Penalties, assemble

Shared = PIBLS | PIELM | BayesianPIELM
Family = Mapping[int, Shared]
"""Methods whose networks are leading columns of one another, by their places in the grid."""


def columns(method: Shared, network: BroadNetwork) -> IndexArray:
    """Return the columns of the widest network of a family that are the network of a member."""
    if not isinstance(method, PIBLS):
        return np.arange(method.nodes)
    starts = np.cumsum([network.feature_nodes, *(group.nodes for group in network.enhancement)])[:-1]
    enhanced = [np.arange(start, start + method.enhancement_nodes) for start in starts]
    return np.concatenate([np.arange(network.feature_nodes), *enhanced])


def families(methods: Sequence[Any], problem: Problem) -> tuple[list[Family], list[int]]:
    """Return the methods that share work, by family, and the places in the grid of those that do not."""
    plain = problem.is_linear and not any(s.exact for s in problem.statements)
    found: dict[Any, dict[int, Shared]] = {}
    others = []
    for index, method in enumerate(methods):
        key = _family_key(method, problem) if plain else None
        if key is None:
            others.append(index)
        else:
            found.setdefault(key, {})[index] = method
    return list(found.values()), others


def _family_key(method: Any, problem: Problem) -> Any:
    """Return the key that the networks of a family share; None for methods that go their own way."""
    if type(method) not in (PIBLS, PIELM, BayesianPIELM) or not isinstance(method.activation, str):
        return None
    measured = any(s.targets is not None for s in problem.statements)
    if isinstance(method, BayesianPIELM) and measured:
        return None
    scale = tuple(np.atleast_1d(np.asarray(method.scale, dtype=np.float64)).tolist())
    if not isinstance(method, PIBLS):
        return ("one layer", method.activation, scale)
    if method.features is not None:
        return None
    enhancement = (method.enhancement_activation, method.enhancement_scale, method.enhancement_groups)
    # Enhancement nodes are drawn for a number of feature nodes, so that families share that number.
    return ("broad", method.activation, scale, enhancement, method.feature_groups, method.feature_nodes)


def width(method: Shared) -> int:
    """Return the number by which the networks of a family differ."""
    return method.enhancement_nodes if isinstance(method, PIBLS) else method.nodes


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
        return replace(self, matrix=self.matrix[:, chosen], derivatives=derivatives, weights=len(chosen))

    def whole(self, names: Sequence[str]) -> SharedRows:
        """Return the same with derivatives that have a column for every weight of every field."""
        if len(names) == 1:
            return self
        size = self.matrix.shape[1] // len(names)
        wide = {}
        for (name, index), values in self.derivatives.items():
            wide[name, index] = np.zeros((len(values), self.matrix.shape[1]))
            wide[name, index][:, names.index(name) * size :][:, :size] = values
        return replace(self, derivatives=wide)

    def compressed(self) -> SharedRows:
        """Return the same in an orthonormal basis of the space of the rows, where that is smaller."""
        if self.matrix.shape[0] >= self.matrix.shape[1]:
            return self
        basis, triangle = scipy.linalg.qr(self.matrix.T, mode="economic", check_finite=False)
        derivatives = {key: values @ basis for key, values in self.derivatives.items()}
        return replace(self, matrix=np.ascontiguousarray(triangle.T), derivatives=derivatives)

    def places(self, problem: Problem, chosen: Sequence[IndexArray]) -> list[IndexArray]:
        """Return the rows of every statement at chosen points of each set."""
        return [start + chosen[s.source] for s, start in zip(problem.statements, self.starts, strict=True)]
