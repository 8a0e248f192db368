"""Space functions for an evolution: orthonormal combinations of features that keep the boundary conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp
from scipy.linalg import qr, svd

from pibls.checks import FloatArray
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.form import compiled
from pibls.features import BroadNetwork
from pibls.geometry.patch import TimedPatch
from pibls.problem import MultiIndex, OnPart, Opposite, Statement
from pibls.problem.evaluate import Function


@dataclass(frozen=True, eq=False)
class QuadratureRule:
    """Points and weights of a quadrature rule in space."""

    points: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class BoundaryData:
    """The data of a condition and its time derivatives, compiled; where it is taken, and the scale of its rows."""

    functions: tuple[Function, ...]
    points: FloatArray
    normals: FloatArray | None
    scale: float

    def values(self, times: FloatArray, order: int) -> FloatArray:
        """Return the data, or a time derivative of it, at times: shape (len(times), len(points))."""
        normals = None if self.normals is None else np.tile(self.normals, (len(times), 1))
        found = self.functions[order](at_times(self.points, times), normals)
        return found.reshape(len(times), len(self.points)) / self.scale


@dataclass(frozen=True, eq=False)
class Trace:
    """The part of a basis that keeps the boundary conditions."""

    kernel: FloatArray  # orthonormal combinations of the basis that meet the conditions with zero data, shape (m, k)
    # from data at the boundary points to a combination that has them, shape (m, rows); None where all data is zero
    lifting: FloatArray | None = None
    data: tuple[BoundaryData, ...] = ()  # of each condition

    def values(self, times: FloatArray, order: int = 0) -> FloatArray:
        """Return the data, or a time derivative of it, at times: shape (len(times), rows)."""
        return np.hstack([own.values(times, order) for own in self.data])

    def lifted(self, times: FloatArray, order: int = 0) -> FloatArray:
        """Return the combination of the basis that has the data, or a time derivative of it: shape (len(times), m)."""
        if self.lifting is None:
            return np.zeros((len(times), len(self.kernel)))
        return np.asarray(self.values(times, order) @ self.lifting.T)


def at_times(points: FloatArray, times: FloatArray) -> FloatArray:
    """Return every point at every time, times slowest."""
    return np.hstack([np.tile(points, (len(times), 1)), np.repeat(times, len(points))[:, None]])


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions ψ = features · transform, orthonormal in the quadrature rule."""

    network: BroadNetwork | None
    rule: QuadratureRule
    transform: FloatArray
    strength: FloatArray
    cache: dict[MultiIndex, FloatArray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of functions."""
        return int(self.transform.shape[1])

    def at_rule(self, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of all functions at the points of the rule."""
        if missing := [index for index in multi_indices if index not in self.cache]:
            self.cache.update(self.at(self.rule.points, missing))
        return self.cache

    def at(self, X: FloatArray, multi_indices: Sequence[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of all functions at points."""
        if self.network is None:
            return {index: np.ones((len(X), 1)) for index in multi_indices}
        nodes = self.network.evaluate(X, multi_indices)
        return {index: nodes[index] @ self.transform for index in multi_indices}


def compressed(network: BroadNetwork, rule: QuadratureRule) -> Basis:
    """Return an orthonormal basis of the span of the features, as far as double precision resolves it.

    >>> from pibls.features import draw_network
    >>> network = draw_network(np.random.default_rng(0), [[-1, 1]], [("sin", 60, 5.0)])
    >>> nodes, weights = np.polynomial.legendre.leggauss(80)
    >>> basis = compressed(network, QuadratureRule(nodes[:, None], weights))
    >>> gram = (basis.at_rule([(0,)])[(0,)] * weights[:, None]).T @ basis.at_rule([(0,)])[(0,)]
    >>> basis.size < 30, bool(np.abs(gram - np.eye(basis.size)).max() < 1e-4)
    (True, True)
    """
    zero = (0,) * network.dimension
    values = network.evaluate(rule.points, [zero])[zero] * np.sqrt(rule.weights)[:, None]
    orthogonal, triangle = qr(values, mode="economic", check_finite=False, overwrite_a=True)
    columns, strength, rows = singular(triangle)
    rank = int(np.count_nonzero(strength > SETTINGS.cut * strength[0]))
    # Weak functions are sums of large terms that cancel: evaluated as such they would not be orthogonal to the others,
    # and that would limit the accuracy.
    known = {zero: (orthogonal @ columns[:, :rank]) / np.sqrt(rule.weights)[:, None]}
    return Basis(network, rule, rows[:rank].T / strength[:rank], strength[:rank], known)


def singular(matrix: FloatArray, *, whole: bool = False) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the singular value decomposition of a matrix, with all rows if it is to be whole."""
    try:
        found = svd(matrix, full_matrices=whole, check_finite=False)
    except np.linalg.LinAlgError:
        # Dividing and conquering fails now and then, where many functions are equally strong.
        found = svd(matrix, full_matrices=whole, check_finite=False, lapack_driver="gesvd")
    return found[0], found[1], found[2]


def trace(basis: Basis, statements: Sequence[Statement], orders: int) -> Trace:
    """Return the part of a basis that keeps the conditions of a field; data is differentiated up to ``orders`` times.

    At the ends of an interval they are met exactly. In more dimensions, where a boundary has infinitely many points,
    that would leave too few functions: there a penalty imposes them.
    """
    if not statements or basis.rule.points.shape[1] > 1:
        return Trace(np.eye(basis.size))
    rows = condition_rows(basis, statements, orders)
    return _exact(basis, rows.matrix, () if rows.homogeneous else rows.data)


@dataclass(frozen=True, eq=False)
class ConditionRows:
    """Conditions of every function of a basis at boundary points, scaled to about one."""

    matrix: FloatArray  # one row per condition and point
    weights: FloatArray  # quadrature weights of the points; those of each condition add up to one
    data: tuple[BoundaryData, ...]  # of each condition
    homogeneous: bool  # whether all of it is zero


def condition_rows(basis: Basis, statements: Sequence[Statement], orders: int) -> ConditionRows:
    """Return the conditions of all functions at points of the boundary; data is differentiated ``orders`` times."""
    blocks, weights, data, zero = [np.empty((0, basis.size))], [np.empty(0)], [], True
    for statement in statements:
        edge = edge_of(statement, basis)
        rows = applied(statement, basis.at(edge.points, _indices(statement)), edge.points, edge.normals)
        scale = float(np.abs(rows).max())
        if edge.partner is not None:
            rows = rows - applied(statement, basis.at(edge.partner, _indices(statement)), edge.partner, edge.normals)
        blocks.append(rows / scale)
        weights.append(edge.weights)
        source = sp.S.Zero if edge.partner is not None else -statement.form.source
        zero &= bool(source == 0)
        data.append(BoundaryData(derivatives(source, statement, orders), edge.points, edge.normals, scale))
    return ConditionRows(np.vstack(blocks), np.concatenate(weights), tuple(data), zero)


def derivatives(source: sp.Expr, statement: Statement, orders: int) -> tuple[Function, ...]:
    """Return data and its time derivatives, compiled."""
    coordinates = statement.form.coordinates
    return tuple(compiled(sp.diff(source, coordinates[-1], k), coordinates) for k in range(orders + 1))


def _exact(basis: Basis, matrix: FloatArray, data: tuple[BoundaryData, ...]) -> Trace:
    _, size, rows = singular(matrix, whole=True)
    # Features that repeat by themselves leave rows of round-off, which count as nothing.
    rank = int(np.count_nonzero(size > SETTINGS.cut * max(float(size[0]), 1.0)))
    if not data:
        return Trace(rows[rank:].T)
    # Functions that features hardly reach must not carry the data: they would be thin layers.
    lifting = basis.strength[:, None] * np.linalg.pinv(matrix * basis.strength, rcond=SETTINGS.cut)
    return Trace(rows[rank:].T, lifting, data)


@dataclass(frozen=True, eq=False)
class Edge:
    """Points of space where a statement holds, normals, weights that add up to one, and the points opposite of them."""

    points: FloatArray
    normals: FloatArray
    weights: FloatArray
    partner: FloatArray | None = None


def edge_of(statement: Statement, basis: Basis) -> Edge:
    """Return points in space where a statement holds, enough of them for a basis."""
    axes = basis.rule.points.shape[1]
    count = int(SETTINGS.boundary_points * basis.size ** (1 - 1 / axes)) + 20
    place: Any = statement.place
    part = place.low if isinstance(place, Opposite) else place.part
    bases = [patch.base for patch in part.patches if isinstance(patch, TimedPatch)]
    if len(bases) == len(part.patches):
        total = sum(base.measure for base in bases)
        rules = [base.quadrature(max(1, int(count * base.measure / total))) for base in bases]
        X, normals, weights = (np.concatenate(columns) for columns in zip(*rules, strict=True))
        normals = np.hstack([normals, np.zeros((len(X), 1))])
    else:
        samples = part.sample(count, "kronecker", 0)
        X, normals, weights = samples.points[:, :-1], samples.normals, np.ones(count)
    if X.shape[1] == 1:
        _, first = np.unique(X[:, 0], return_index=True)
        X, normals, weights = X[first], normals[first], np.ones(len(first))
    weights = weights / weights.sum()
    if isinstance(place, OnPart):
        return Edge(X, normals, weights)
    partner = X.copy()
    axis = int(np.flatnonzero(normals[0])[0])
    partner[:, axis] = part.domain.bounds[axis, 1]
    return Edge(X, normals, weights, partner)


def _indices(statement: Statement) -> list[MultiIndex]:
    return [term.multi_index[:-1] for term in statement.form.terms]


def applied(
    statement: Statement, functions: Mapping[MultiIndex, FloatArray], X: FloatArray, normals: FloatArray | None
) -> FloatArray:
    """Return a linear form of functions, given with their derivatives at points; its factors do not depend on time."""
    form, timed = statement.form, at_times(X, np.zeros(1))
    pairs = zip(_indices(statement), form.coefficient_functions, strict=True)
    return np.asarray(sum(f(timed, normals)[:, None] * functions[index] for index, f in pairs))
