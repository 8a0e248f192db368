"""Fits of a cross-validation that share their work.

Networks of one scale and activation differ only in width, and draws are nested: the narrow network is the leading
columns of the widest. Its rows are therefore computed once, at all points. Where there are fewer rows than columns they
are written in an orthonormal basis of the space they span, H = L Qᵀ, once for all folds: a fold is then some rows of
the small matrix L, penalties scale them, and the ridge ‖w‖² is ‖v‖² of w = Q v. Every combination of penalties and
ridges is one small solve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import FeatureError, PiblsError, SolveError
from pibls.features import BroadNetwork, draw_network
from pibls.geometry import Points
from pibls.methods import PIBLS, PIELM, BayesianPIELM
from pibls.methods.evidence import Group, maximise
from pibls.methods.settings import row_scaling
from pibls.problem import MultiIndex, Problem
from pibls.solvers import SVD, solver
from pibls.system import Penalties, assemble
from pibls.tuning.folds import Fold, IndexArray
from pibls.tuning.judge import Judge, root_mean_square
from pibls.tuning.small_solves import SmallSystem, orthonormal

__all__ = ["Family", "Scorer", "families", "scores_of_family"]

Shared = PIBLS | PIELM | BayesianPIELM
Key = tuple[str, MultiIndex]
Scores = dict[int, list[Sequence[float]] | PiblsError]


@dataclass(frozen=True, eq=False)
class Scorer:
    """What all fits of a cross-validation have in common: problem, points, folds and scores."""

    problem: Problem
    points: Points
    folds: tuple[Fold, ...]
    scores: tuple[str, ...]

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """A judge for every fold."""
        return tuple(Judge(self.problem, fold.held) for fold in self.folds)

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
class Family:
    """Methods whose networks are leading columns of one another, with their places in the grid."""

    members: Mapping[int, Shared]

    def network(self, problem: Problem, seed: int) -> BroadNetwork:
        """Draw the widest network."""
        rng, bounds = np.random.default_rng(seed), problem.domain.bounds
        widest = max(self.members.values(), key=lambda method: _width(method))
        if not isinstance(widest, PIBLS):
            return draw_network(rng, bounds, [(widest.activation, widest.nodes, widest.scale)])
        name = str(widest.activation)
        features = [(name, widest.feature_nodes, widest.scale)] * widest.feature_groups
        enhancement = (widest.enhancement_activation or name, widest.enhancement_nodes, widest.enhancement_scale)
        groups = widest.enhancement_groups if widest.enhancement_nodes else 0
        return draw_network(rng, bounds, features, [enhancement] * groups)

    def columns(self, method: Shared, network: BroadNetwork) -> IndexArray:
        """Return the columns of the widest network that are the network of a member."""
        if not isinstance(method, PIBLS):
            return np.arange(method.nodes)
        starts = np.cumsum([network.feature_nodes, *(group.nodes for group in network.enhancement)])[:-1]
        enhanced = [np.arange(start, start + method.enhancement_nodes) for start in starts]
        return np.concatenate([np.arange(network.feature_nodes), *enhanced])


def families(methods: Sequence[Any], problem: Problem) -> tuple[list[Family], list[int]]:
    """Return the methods that share work, by family, and the places of those that do not."""
    plain = problem.is_linear and not any(s.exact for s in problem.statements)
    found: dict[Any, dict[int, Shared]] = {}
    others = []
    for index, method in enumerate(methods):
        key = _family_key(method, problem) if plain else None
        if key is None:
            others.append(index)
        else:
            found.setdefault(key, {})[index] = method
    return [Family(members) for members in found.values()], others


def _family_key(method: Any, problem: Problem) -> Any:
    """Return what the networks of a family have in common; None for methods that go their own way."""
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


def _width(method: Shared) -> int:
    return method.enhancement_nodes if isinstance(method, PIBLS) else method.nodes


def scores_of_family(family: Family, scorer: Scorer, seed: int) -> Scores:
    """Return, by place in the grid, the scores of every member per fold, or why it cannot be fitted."""
    try:
        network = family.network(scorer.problem, seed)
        rows = _Rows.of(scorer, network)
    except (FeatureError, SolveError) as refusal:
        return dict.fromkeys(family.members, refusal)
    result: Scores = {}
    by_width: dict[int, dict[int, Shared]] = {}
    for index, method in family.members.items():
        by_width.setdefault(_width(method), {})[index] = method
    for members in by_width.values():
        columns = family.columns(next(iter(members.values())), network)
        result |= _scores_of_width(members, scorer, rows.part(columns))
    return result


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a network at all points, in the units of their equations, and derivatives of the nodes inside.

    ``matrix`` has one block of columns per field, ``derivatives`` one array per derivative of one field.
    """

    matrix: FloatArray
    rhs: FloatArray
    starts: tuple[int, ...]
    derivatives: Mapping[Key, FloatArray]
    weights: int

    @classmethod
    def of(cls, scorer: Scorer, network: BroadNetwork) -> _Rows:
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

    def part(self, columns: IndexArray) -> _Rows:
        """Return the rows of a narrower network."""
        size = next(iter(self.derivatives.values())).shape[1]
        fields = self.matrix.shape[1] // size
        chosen = np.concatenate([columns + number * size for number in range(fields)])
        derivatives = {key: values[:, columns] for key, values in self.derivatives.items()}
        return _Rows(self.matrix[:, chosen], self.rhs, self.starts, derivatives, len(chosen))

    def whole(self, names: Sequence[str]) -> _Rows:
        """Return the same with derivatives that have a column for every weight of every field."""
        size = self.matrix.shape[1] // len(names)
        wide = {}
        for (name, index), values in self.derivatives.items():
            wide[name, index] = np.zeros((len(values), self.matrix.shape[1]))
            wide[name, index][:, names.index(name) * size :][:, :size] = values
        return _Rows(self.matrix, self.rhs, self.starts, wide, self.weights)

    def compressed(self) -> _Rows:
        """Return the same in an orthonormal basis of the space of the rows, where that is smaller."""
        if self.matrix.shape[0] >= self.matrix.shape[1]:
            return self
        basis, matrix = orthonormal(self.matrix)
        derivatives = {key: values @ basis for key, values in self.derivatives.items()}
        return _Rows(matrix, self.rhs, self.starts, derivatives, self.weights)


def _scores_of_width(members: Mapping[int, Shared], scorer: Scorer, rows: _Rows) -> Scores:
    own = {index: method for index, method in members.items() if not _any_basis(method)}
    result: Scores = {}
    full = rows.whole(scorer.problem.field_names)
    for group, form in ((own, full), ({i: m for i, m in members.items() if i not in own}, None)):
        if group:
            used = full.compressed() if form is None else form
            result |= _scores_of_group(group, scorer, used)
    return result


def _any_basis(method: Shared) -> bool:
    """Whether the weights do not depend on the basis: they have minimal norm, or a ridge makes them unique."""
    if isinstance(method, BayesianPIELM):
        return True
    chosen = solver(method.solver)
    return chosen == SVD() or (method.lambda_reg > 0 and method.solver in ("lstsq", "qr"))


def _scores_of_group(members: Mapping[int, Shared], scorer: Scorer, rows: _Rows) -> Scores:
    refused: Scores = {}
    found: dict[int, list[Sequence[float]]] = {index: [] for index in members}
    for number, fold in enumerate(scorer.folds):
        system = _fold_system(scorer.problem, fold, rows)
        for index, method in members.items():
            if index in refused:
                continue
            try:
                weights = _weights(method, system, scorer.problem)
            except (FeatureError, SolveError) as refusal:
                refused[index] = refusal
                continue
            found[index].append(_judged(weights, scorer, number, rows))
    return {index: refused.get(index, values) for index, values in found.items()}


def _fold_system(problem: Problem, fold: Fold, rows: _Rows) -> SmallSystem:
    places = [start + fold.train_rows[s.source] for s, start in zip(problem.statements, rows.starts, strict=True)]
    chosen = np.concatenate(places)
    return SmallSystem(rows.matrix[chosen], rows.rhs[chosen], tuple(map(len, places)), rows.weights)


def _weights(method: Shared, system: SmallSystem, problem: Problem) -> FloatArray:
    scaling = row_scaling(method.lambda_b, method.lambda_i)
    factors = tuple(scaling.scales(problem.statements, system.norms))
    if isinstance(method, BayesianPIELM):
        matrix, rhs = system.scaled(factors)
        found, _ = maximise([Group(matrix, rhs)], method.iterations)
        return found.mean
    if _any_basis(method):
        return system.solve(factors, method.lambda_reg)
    matrix, rhs = system.scaled(factors)
    factor = solver(method.solver).factorise(np.asfortranarray(matrix), ridge=method.lambda_reg, overwrite=True)
    return np.asarray(factor.solve(rhs))


def _judged(weights: FloatArray, scorer: Scorer, number: int, rows: _Rows) -> list[float]:
    fold = scorer.folds[number]
    inside = fold.held_rows[0]
    values = {key: derivative[inside] @ weights for key, derivative in rows.derivatives.items()}
    scores = {"exact": _error, "residual": _residual}
    return [scores[score](weights, values, scorer, number, rows) for score in scorer.scores]


def _error(_weights: FloatArray, values: Mapping[Key, FloatArray], scorer: Scorer, number: int, _rows: _Rows) -> float:
    inside = scorer.folds[number].held_rows[0]
    zero = (0,) * len(scorer.problem.domain.coordinates)
    errors = [values[name, zero] - exact[inside] for name, exact in scorer.exact.items()]
    return float(np.sqrt(sum(root_mean_square(error) ** 2 for error in errors)))


def _residual(weights: FloatArray, values: Mapping[Key, FloatArray], scorer: Scorer, number: int, rows: _Rows) -> float:
    judge, fold = scorer.judges[number], scorer.folds[number]
    sizes = judge.sizes(lambda X, keys: [values[key][: len(X)] for key in keys])
    starts = dict(zip(scorer.problem.statements, rows.starts, strict=True))
    total = 0.0
    for name, statement in judge.judged:
        places = starts[statement] + fold.held_rows[statement.source]
        residual = root_mean_square(rows.matrix[places] @ weights - rows.rhs[places])
        total += (residual / sizes[name] if sizes[name] > 0 else residual) ** 2
    return float(np.sqrt(total))
