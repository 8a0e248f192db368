"""The loss of many networks side by side: residuals of one problem, each network at its own points.

Networks of different width, points of different number and penalties make one batch: what is missing is padded, and
padded points do not count. Derivatives along the coordinates are carried forward through the layers
(:func:`pibls.features.deep.propagate`); torch differentiates only once, with respect to the weights, which is far
cheaper than nesting it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_seed
from pibls.features import Activation
from pibls.features.deep import propagate
from pibls.geometry import Points
from pibls.paper.pinn_residual import Evaluator, residual_evaluator
from pibls.problem import Averages, MultiIndex, Problem, Statement

_PROBES = 10


def differentiable(activations: Sequence[Activation]) -> Callable[[Any, Collection[int]], dict[int, Any]]:
    """Return the derivatives of activations, one per network of a batch, as a function that torch can differentiate.

    The slope of ψ⁽ᵏ⁾ is ψ⁽ᵏ⁺¹⁾, which is known in closed form; nothing is left to torch. Beyond the smoothness of
    the activation it is zero almost everywhere. A single activation serves arrays of any shape.
    """
    import torch

    runs = [(psi, len(list(members))) for psi, members in groupby(activations)]

    def one(psi: Activation, z: Any, highest: int) -> list[Any]:
        known = psi.derivatives(z, range(int(min(highest, psi.smoothness)) + 1))
        return [known[k] if k in known else torch.zeros_like(z) for k in range(highest + 1)]

    def every(z: Any, highest: int) -> list[Any]:
        if len(runs) == 1:
            return one(runs[0][0], z, highest)
        pieces = torch.split(z, [count for _, count in runs])
        found = [one(psi, piece, highest) for (psi, _), piece in zip(runs, pieces, strict=True)]
        return [torch.cat(same) for same in zip(*found, strict=True)]

    class Derivatives(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, z: Any, highest: int) -> tuple[Any, ...]:
            values = every(z, highest + 1)
            ctx.save_for_backward(*values[1:])
            return tuple(values[:-1])

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, None]:
            total = gradients[0] * ctx.saved_tensors[0]
            for gradient, slope in zip(gradients[1:], ctx.saved_tensors[1:], strict=True):
                total = torch.addcmul(total, gradient, slope)
            return total, None

    def derive(z: Any, orders: Collection[int]) -> dict[int, Any]:
        return dict(enumerate(Derivatives.apply(z, max(orders))))

    return derive


def padded(arrays: Sequence[FloatArray], fill: float | None = None) -> FloatArray:
    """Stack arrays of different length; missing rows repeat the first, or are filled.

    >>> padded([np.array([1.0, 2.0]), np.array([3.0])], fill=0.0)
    array([[1., 2.],
           [3., 0.]])
    """
    longest = max(map(len, arrays))
    rows = []
    for array in arrays:
        rest = np.repeat(array[:1] if fill is None else np.full_like(array[:1], fill), longest - len(array), axis=0)
        rows.append(np.concatenate([array, rest]))
    return np.stack(rows)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The source of the rows of a statement, and their weights."""

    statement: Statement
    evaluator: Evaluator
    batch: int
    here: slice
    there: slice | None
    weights: Any
    targets: Any
    noise: Any
    counts: tuple[int, ...]  # rows of each network
    shares: Any  # (networks, rows): one over the count, zero for padded points


@dataclass(frozen=True, eq=False)
class Loss:
    """Residuals of a problem, for many networks at points of their own, as functions of the weights.

    The weights are a list of tensors: weights (networks, below, here) and bias (networks, here) of each hidden layer,
    then of the output. Those of the first layer act on coordinates normalised to [−1, 1].
    """

    problem: Problem
    derive: Callable[[Any, Collection[int]], dict[int, Any]]
    half_widths: Any
    # points at which the same derivatives are needed, evaluated together: arrays (networks, points, d)
    batches: tuple[tuple[Any, tuple[MultiIndex, ...]], ...]
    rows: tuple[_Rows, ...]
    place: Callable[[Any], Any]

    @classmethod
    def of(
        cls, problem: Problem, points: Sequence[Points], activations: Sequence[Activation], place: Callable[[Any], Any]
    ) -> Loss:
        """Compute everything that does not depend on the weights; ``place`` brings arrays to torch."""
        center, half_widths = np.mean(problem.domain.bounds, axis=1), np.ptp(problem.domain.bounds, axis=1) / 2
        first = points[0].sets
        alike = {source: next(i for i, s in enumerate(first) if s is first[source]) for source in range(len(first))}
        needed: dict[int, set[MultiIndex]] = {}
        for statement in problem.statements:
            needed.setdefault(alike[statement.source], set()).update(term.multi_index for term in statement.form.terms)
        members: dict[tuple[MultiIndex, ...], list[FloatArray]] = {}
        spans: dict[tuple[int, str], slice] = {}
        for source, wanted in needed.items():
            pieces = members.setdefault(tuple(sorted(wanted)), [])
            for name in ("points", "partner"):
                if getattr(first[source], name) is not None:
                    X = padded([getattr(p.sets[source], name) for p in points]) - center
                    start = sum(piece.shape[1] for piece in pieces)
                    pieces.append(X)
                    spans[source, name] = slice(start, start + X.shape[1])
        batches = tuple((place(np.concatenate(pieces, axis=1)), indices) for indices, pieces in members.items())
        rows = []
        for statement in problem.statements:
            source = alike[statement.source]
            batch = list(members).index(tuple(sorted(needed[source])))
            spread = batch, spans[source, "points"], spans.get((source, "partner"))
            rows.append(_rows(statement, points, *spread, place))
        return cls(problem, differentiable(activations), place(half_widths[:, None]), batches, tuple(rows), place)

    def evaluate(self, X: Any, indices: Iterable[MultiIndex], weights: Sequence[Any]) -> dict[MultiIndex, Any]:
        """Return derivatives of all fields at points of every network: arrays (networks, points, fields)."""
        hidden = [(self.derive, w, b[:, None, :]) for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True)]
        hidden[0] = self.derive, weights[0] / self.half_widths, hidden[0][2]
        *_, output, bias = weights
        nodes = propagate(X, hidden, indices)
        values = {a: nodes[a] @ output for a in indices}
        return {a: v if any(a) else v + bias[:, None, :] for a, v in values.items()}

    def residuals(self, weights: Sequence[Any]) -> list[Any]:
        """Return the residual of every statement, (networks, rows), in its own units; measurements over their noise."""
        states = [self.evaluate(X, indices, weights) for X, indices in self.batches]
        return [self._residual(rows, states[rows.batch]) for rows in self.rows]

    def _residual(self, rows: _Rows, values: dict[MultiIndex, Any]) -> Any:
        import torch

        columns = {name: i for i, name in enumerate(self.problem.field_names)}
        terms = [(term.multi_index, columns[term.field]) for term in rows.statement.form.terms]
        result = rows.evaluator([values[a][:, rows.here, i] for a, i in terms])
        if rows.there is not None:
            result = result - rows.evaluator([values[a][:, rows.there, i] for a, i in terms])
        if rows.weights is not None:
            place = rows.statement.place
            ends = place.ends if isinstance(place, Averages) else (result.shape[1],)
            pieces = (rows.weights * result).split(np.diff(ends, prepend=0).tolist(), dim=1)
            result = torch.stack([piece.sum(1) for piece in pieces], dim=1)
        if rows.targets is not None:
            result = result - rows.targets
        return result if rows.noise is None else result / rows.noise

    def __call__(self, weights: Sequence[Any], factors: Any) -> Any:
        """Return, per network, the sum of mean squares of all residuals times the columns of ``factors``."""
        parts = zip(self.rows, self.residuals(weights), strict=True)
        return sum(factors[:, i] * (rows.shares * r * r).sum(1) for i, (rows, r) in enumerate(parts))

    def sensitivities(self, weights: Sequence[Any], seeds: Sequence[int]) -> FloatArray:
        """Return, per network and statement, the root mean square of the gradients of the residual by the weights.

        Random signs v estimate it: the mean of |Jᵀv|² is the squared Frobenius norm of the Jacobian J. Its square
        over the points is the trace of the neural tangent kernel, so dividing by it lets every statement be learned
        at the same speed.
        """
        import torch

        generators = [check_seed(seed, "PINN") for seed in seeds]
        result = []
        for rows, residual in zip(self.rows, self.residuals(weights), strict=True):
            squares = np.zeros(len(seeds))
            for _ in range(_PROBES):
                drawn = [
                    rng.choice([-1.0, 1.0], size=count) for rng, count in zip(generators, rows.counts, strict=True)
                ]
                signs = self.place(padded(drawn, fill=0.0))
                found = torch.autograd.grad((residual * signs).sum(), weights, retain_graph=True, allow_unused=True)
                squares += sum((g * g).flatten(1).sum(1).cpu().numpy() for g in found if g is not None)
            result.append(np.sqrt(squares / (_PROBES * np.array(rows.counts))))
        return np.stack(result, axis=1)


def _rows(
    statement: Statement,
    points: Sequence[Points],
    batch: int,
    here: slice,
    there: slice | None,
    place: Callable[[Any], Any],
) -> _Rows:
    sets = [p.sets[statement.source] for p in points]
    X = padded([s.points for s in sets])
    normals = None if sets[0].normals is None else padded([s.normals for s in sets if s.normals is not None])
    flat = None if normals is None else normals.reshape(-1, normals.shape[-1])

    def tensor(array: FloatArray) -> Any:
        return place(np.reshape(array, X.shape[:2]))

    evaluator = residual_evaluator(statement.form, X.reshape(-1, X.shape[-1]), flat, tensor)
    weights = None if sets[0].weights is None else padded([s.weights for s in sets if s.weights is not None], fill=0.0)
    counts = tuple(s.rows for s in sets)
    shares = padded([np.full(count, 1.0 / count) for count in counts], fill=0.0)
    extras = [None if array is None else place(array) for array in (weights, statement.targets, statement.noise)]
    return _Rows(statement, evaluator, batch, here, there, extras[0], extras[1], extras[2], counts, place(shares))
