"""Training a network by torch: the loss of a problem at its points, and Adam followed by L-BFGS to lower it.

Derivatives along the coordinates are carried forward through the layers (:func:`pibls.features.deep.propagate`);
torch differentiates only once, with respect to the weights, which is far cheaper than nesting it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_seed
from pibls.errors import SolveError
from pibls.features import Activation
from pibls.features.deep import HiddenLayer, propagate
from pibls.geometry import Points, PointSet
from pibls.methods.pinn_residual import Evaluator, residual_evaluator
from pibls.problem import MultiIndex, Problem, Statement
from pibls.solution import Stage

__all__ = ["Loss", "Trained", "differentiable", "train"]

_DECAY = 0.1  # of the step of Adam, from its first iteration to its last
_PROBES = 10
_HISTORY = 50  # steps that L-BFGS remembers
_EVERY = 25  # iterations between two entries of the record


def differentiable(activation: Activation) -> Callable[[Any, Collection[int]], dict[int, Any]]:
    """Return the derivatives of an activation as a function that torch can differentiate.

    The slope of ψ⁽ᵏ⁾ is ψ⁽ᵏ⁺¹⁾, which is known in closed form; nothing is left to torch. Beyond the smoothness of
    the activation it is zero almost everywhere.
    """
    import torch

    class Derivatives(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, z: Any, highest: int) -> tuple[Any, ...]:
            known = activation.derivatives(z, range(int(min(highest + 1, activation.smoothness)) + 1))
            values = [known[k] if k in known else torch.zeros_like(z) for k in range(highest + 2)]
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


@dataclass(frozen=True, eq=False)
class _Batch:
    """Points at which the same derivatives are needed, evaluated together."""

    X: Any
    indices: tuple[MultiIndex, ...]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Where the rows of a statement come from and what is done to them."""

    statement: Statement
    evaluator: Evaluator
    batch: int
    here: slice
    there: slice | None
    weights: Any
    targets: Any
    noise: Any


@dataclass(frozen=True, eq=False)
class Loss:
    """Residuals of a problem at its points as functions of the weights of a network.

    The weights are a list of tensors: weights and bias of each hidden layer, then of the output. Those of the first
    layer act on coordinates normalised to [−1, 1].
    """

    problem: Problem
    derive: Callable[[Any, Collection[int]], dict[int, Any]]
    half_widths: Any
    batches: tuple[_Batch, ...]
    rows: tuple[_Rows, ...]

    @classmethod
    def of(cls, problem: Problem, points: Points, activation: Activation, place: Callable[[Any], Any]) -> Loss:
        """Compute once what does not depend on the weights; ``place`` brings arrays to torch."""
        center, half_widths = np.mean(problem.domain.bounds, axis=1), np.ptp(problem.domain.bounds, axis=1) / 2
        members: dict[tuple[MultiIndex, ...], list[FloatArray]] = {}
        spans: dict[tuple[int, bool], tuple[tuple[MultiIndex, ...], slice]] = {}
        for where, indices in _demands(problem, points):
            for is_partner, X in ((False, where.points), (True, where.partner)):
                if X is not None:
                    pieces = members.setdefault(indices, [])
                    start = sum(map(len, pieces))
                    pieces.append(X - center)
                    spans[id(where), is_partner] = indices, slice(start, start + len(X))
        batches = tuple(_Batch(place(np.concatenate(pieces)), indices) for indices, pieces in members.items())
        numbers = {indices: i for i, indices in enumerate(members)}

        def optional(array: FloatArray | None) -> Any:
            return None if array is None else place(array)

        rows = []
        for statement in problem.statements:
            where = points.sets[statement.source]
            indices, here = spans[id(where), False]
            there = spans[id(where), True][1] if where.partner is not None else None
            evaluator = residual_evaluator(statement.form, where.points, where.normals, place)
            extras = map(optional, (where.weights, statement.targets, statement.noise))
            rows.append(_Rows(statement, evaluator, numbers[indices], here, there, *extras))
        return cls(problem, differentiable(activation), place(half_widths[:, None]), batches, tuple(rows))

    def residuals(self, weights: Sequence[Any]) -> list[Any]:
        """Return the residual of every statement at its points, in its own units; measurements over their noise."""
        layers = self._layers(weights)
        *_, output, bias = weights
        states = []
        for batch in self.batches:
            nodes = propagate(batch.X, layers, batch.indices)
            states.append({a: nodes[a] @ output if any(a) else nodes[a] @ output + bias for a in batch.indices})
        return [self._residual(rows, states[rows.batch]) for rows in self.rows]

    def _layers(self, weights: Sequence[Any]) -> list[HiddenLayer]:
        hidden = [(self.derive, w, b) for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True)]
        hidden[0] = self.derive, weights[0] / self.half_widths, weights[1]
        return hidden

    def _residual(self, rows: _Rows, values: dict[MultiIndex, Any]) -> Any:
        columns = {name: i for i, name in enumerate(self.problem.field_names)}
        terms = [(term.multi_index, columns[term.field]) for term in rows.statement.form.terms]
        result = rows.evaluator([values[a][rows.here, i] for a, i in terms])
        if rows.there is not None:
            result = result - rows.evaluator([values[a][rows.there, i] for a, i in terms])
        if rows.weights is not None:
            result = (rows.weights @ result)[None]
        if rows.targets is not None:
            result = result - rows.targets
        return result if rows.noise is None else result / rows.noise

    def __call__(self, weights: Sequence[Any], scales: Sequence[float]) -> Any:
        """Return the sum of the mean squares of all scaled residuals."""
        parts = zip(scales, self.residuals(weights), strict=True)
        return sum(scale**2 * (residual * residual).mean() for scale, residual in parts)

    def sensitivities(self, weights: Sequence[Any], seed: int) -> list[float]:
        """Return, per statement, the root mean square over its points of the gradient of the residual by the weights.

        Random signs v estimate it: the mean of |Jᵀv|² is the squared Frobenius norm of the Jacobian J. Its square
        over the points is the trace of the neural tangent kernel, so dividing by it lets every statement be learned
        at the same speed.
        """
        import torch

        rng = check_seed(seed, "PINN")
        result = []
        for residual in self.residuals(weights):
            squares = 0.0
            for _ in range(_PROBES):
                signs = torch.as_tensor(rng.choice([-1.0, 1.0], size=residual.shape[0])).to(residual)
                gradients = torch.autograd.grad(residual @ signs, weights, retain_graph=True, allow_unused=True)
                squares += sum(float((g * g).sum()) for g in gradients if g is not None)
            result.append(math.sqrt(squares / (_PROBES * residual.shape[0])))
        return result


def _demands(problem: Problem, points: Points) -> Iterator[tuple[PointSet, tuple[MultiIndex, ...]]]:
    """Yield each distinct set of points with all derivatives needed there."""
    sets = {id(s): s for s in points.sets}
    needed: dict[int, set[MultiIndex]] = {}
    for statement in problem.statements:
        indices = needed.setdefault(id(points.sets[statement.source]), set())
        indices |= {term.multi_index for term in statement.form.terms}
    for key, indices in needed.items():
        yield sets[key], tuple(sorted(indices))


@dataclass(frozen=True, eq=False)
class Trained:
    """The best weights that training came by, the course of the loss, and why it ended."""

    weights: list[FloatArray]
    history: tuple[Stage, ...]
    message: str
    interrupted: bool


@dataclass(eq=False)
class _Course:
    """Keeps the best weights and the record while training runs."""

    weights: Sequence[Any]
    report: Callable[[int, float], None]
    start: float = field(default_factory=time.perf_counter)
    best: float = math.inf
    kept: list[Any] = field(default_factory=list)
    history: list[Stage] = field(default_factory=list)
    iteration: int = 0

    def see(self, loss: Any) -> float:
        """Take note of the loss of the present weights."""
        value = float(loss.detach())
        if value < self.best:
            self.best, self.kept = value, [w.detach().clone() for w in self.weights]
        return value

    def record(self) -> None:
        seconds = time.perf_counter() - self.start
        self.history.append(Stage(seconds, iteration=self.iteration, loss=self.best))
        self.report(self.iteration, self.best)


def train(
    loss: Loss,
    weights: Sequence[Any],
    scales: Sequence[float],
    iterations: tuple[int, int],
    learning_rate: float,
    report: Callable[[int, float], None],
) -> Trained:
    """Lower the loss by Adam, then by L-BFGS on all points; Ctrl-C ends it with the best weights so far."""
    course = _Course(weights, report)
    message = ""
    try:
        first = course.see(loss(weights, scales))
        if not math.isfinite(first):
            raise SolveError(
                "The loss of PINN is not finite at the initial weights: an equation or condition is not defined for "
                "that state (a logarithm or root of a negative unknown, say). Use another seed, or rewrite it."
            )
        course.record()
        _adam(loss, course, scales, iterations[0], learning_rate)
        message = _lbfgs(loss, course, scales, iterations[1])
    except KeyboardInterrupt:
        message = f"Interrupted after {course.iteration} iterations; these are the best weights until then."
    kept = [np.asarray(w.cpu(), dtype=np.float64) for w in course.kept]
    return Trained(kept, tuple(course.history), message, message.startswith("Interrupted"))


def _adam(loss: Loss, course: _Course, scales: Sequence[float], steps: int, learning_rate: float) -> None:
    import torch

    optimizer = torch.optim.Adam(course.weights, lr=learning_rate)
    rate = _DECAY ** (1.0 / max(1, steps))
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        value = loss(course.weights, scales)
        value.backward()
        course.see(value)
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= rate
        course.iteration = step
        if step % _EVERY == 0 or step == steps:
            course.record()


def _lbfgs(loss: Loss, course: _Course, scales: Sequence[float], steps: int) -> str:
    """Run L-BFGS from the best weights so far, a few iterations at a time; return why it ended before its time."""
    optimizer, fresh = _restarted(course), True
    for start in range(0, steps, _EVERY):
        count = min(_EVERY, steps - start)
        # A line search takes a few evaluations; the limit that counts is that of the iterations.
        optimizer.param_groups[0].update(max_iter=count, max_eval=10 * count)

        def closure(optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            value = loss(course.weights, scales)
            value.backward()
            course.see(value)
            return value

        before = course.best
        optimizer.step(closure)
        course.iteration += count
        course.record()
        if course.best < before:
            fresh = False
        elif fresh:
            return f"L-BFGS found no lower loss after {course.iteration} iterations."
        else:
            # Curvature remembered from far away can spoil every direction; the gradient alone cannot.
            optimizer, fresh = _restarted(course), True
    return ""


def _restarted(course: _Course) -> Any:
    """Return L-BFGS without a memory, at the best weights."""
    import torch

    with torch.no_grad():
        for weight, best in zip(course.weights, course.kept, strict=True):
            weight.copy_(best)
    return torch.optim.LBFGS(
        course.weights,
        history_size=_HISTORY,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
