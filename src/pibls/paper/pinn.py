"""The physics-informed neural network, with which broad networks are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_choice, check_integer, check_number, cut, shorten
from pibls.errors import InputError, ProblemError
from pibls.features import Activation, EnhancementGroup, FeatureGroup, activation, draw_features
from pibls.features.deep import DeepNetwork
from pibls.features.taylor import lower_set
from pibls.geometry import Points
from pibls.methods.fit import Scale, check_fit, check_penalties, placing, recorded, residual_record, row_scaling
from pibls.paper.pinn_loss import Loss
from pibls.paper.pinn_training import Trained, WeightLayout, appetite, copied, required_torch, train
from pibls.problem import Problem
from pibls.runtime import blas_threads, require_memory
from pibls.solution import Diagnostics, Solution
from pibls.status import Status
from pibls.system import Balanced, Block

_MOST_LAYERS = 100
_ARRAYS, _COPIES = 12, 130  # arrays of entries, and of weights, that training a batch takes in all
_PASSES = 45  # over the derivatives of nodes, there and back
_ARRAYS_PER_NODE = 6  # what torch keeps per node, point and derivative until it goes backwards
_MANY = 2**22  # entries of all arrays of a pass; with fewer, threads wait for each other longer than they work


@dataclass(frozen=True)
class PINN:
    """Physics-informed neural network: all weights trained by gradient descent on the residuals.

    Linear and nonlinear problems. Needs PyTorch (``pip install pibls[torch]``) to train; a trained solution works
    without it.

    Parameters
    ----------
    width
        Nodes per hidden layer (N_h).
    layers
        Number of hidden layers (L_h).
    activation
        Activation of the hidden layers (σ), by name as for :class:`PIBLS`.
    scale
        Spread of the first weights in coordinates normalised to [−1, 1], one number or one per axis, with the centres
        of the nodes all over the domain, as for :class:`PIBLS`: how quickly the network varies before it is trained.
        Left out, they are drawn as Glorot does, which suits solutions of at most a wave or two; training hardly
        changes it, and a network that varies too slowly misses what lies between few points.
    adam_iterations, learning_rate
        Iterations of Adam on all points, and its first step, which falls tenfold until the end.
    lbfgs_iterations
        Iterations of L-BFGS on all points that follow; each is one evaluation of loss and gradient, those of line
        searches included.
    lambda_b, lambda_i
        Weights of the boundary and initial losses (λ_b, λ_I), each loss a mean of squares as in the paper. Left out,
        losses are balanced so that all are learned at the same speed; if either is given, the other defaults to 1.
    dtype
        ``"float64"`` or ``"float32"``: the precision of the training.

    Examples
    --------
    >>> from pibls import Points, problems
    >>> problem = problems.advection()
    >>> method = PINN(width=20, adam_iterations=200, lbfgs_iterations=300)
    >>> solution = method.fit(problem, Points.sample(problem, interior=50), seed=0)
    >>> solution.true_error() < 0.05
    True
    """

    width: int = 50
    layers: int = 2
    activation: str | Activation = "tanh"
    scale: Scale | None = None
    adam_iterations: int = 500
    lbfgs_iterations: int = 2000
    learning_rate: float = 3e-3
    lambda_b: float | None = None
    lambda_i: float | None = None
    dtype: str = "float64"

    def __post_init__(self) -> None:
        check_integer("width", self.width, "PINN", minimum=1)
        check_integer("layers", self.layers, "PINN", minimum=1, maximum=_MOST_LAYERS)
        activation(self.activation)
        check_integer("adam_iterations", self.adam_iterations, "PINN")
        check_integer("lbfgs_iterations", self.lbfgs_iterations, "PINN")
        check_number("learning_rate", self.learning_rate, "PINN", minimum=0, exclusive=True)
        check_penalties(self.lambda_b, self.lambda_i, "PINN")
        check_choice("dtype", self.dtype, "PINN", ("float64", "float32"))

    def parameters(self, dimension: int, fields: int = 1) -> int:
        """Return how many weights and biases are trained, for so many coordinates and fields.

        >>> PINN(width=203).parameters(1)
        42022
        """
        inner = (self.layers - 1) * (self.width + 1) * self.width
        return (dimension + 1) * self.width + inner + (self.width + 1) * fields

    def fit(
        self,
        problem: Problem,
        points: Points,
        *,
        seed: int = 0,
        device: Any = None,
        progress: Callable[[int, float], object] | None = None,
    ) -> Solution:
        """Train the network on the residuals at the points.

        Ctrl-C ends the training; the best network until then is returned, with the status ``"interrupted"``.

        Parameters
        ----------
        problem
            A problem, linear or not, without unknown parameters and without conditions marked ``exact``.
        points
            Its points, from :meth:`Points.sample`.
        seed
            Seed of the initial weights.
        device
            A torch device such as ``"cuda"`` to train on; the CPU if left out.
        progress
            Called every few iterations with the iteration and the lowest loss so far.
        """
        if progress is not None and not callable(progress):
            raise InputError(
                "The 'progress' parameter of PINN.fit must be a function of the iteration and the loss, or None. "
                f"Got {shorten(progress)} instead."
            )
        (solution,) = fit_together([PinnFit(self, problem, points, seed)], device, progress)
        return solution

    def check(self, problem: Problem, points: Points, seed: int) -> None:
        """Refuse problems that cannot be trained before anything is computed."""
        check_integer("seed", seed, "PINN")
        check_fit(problem, points, self.width, "PINN")
        dimension = len(problem.domain.coordinates)
        if points.interior.shape[1] != dimension:
            raise InputError(
                f"The problem has {dimension} coordinates, and the points {points.interior.shape[1]}; sample them with "
                "Points.sample(problem, ...)."
            )
        if problem.parameters:
            raise ProblemError(
                f"PINN does not train unknown parameters, and this problem has {problem.parameters}. Replace them by "
                "numbers."
            )
        if exact := [s.name for s in problem.statements if s.exact]:
            raise ProblemError(
                f"PINN meets conditions only through the loss, and {exact[0]} is to hold exactly. Leave out "
                "exact=True, and raise its weight instead."
            )
        order = max(s.form.order for s in problem.statements)
        activation(self.activation).require(order)
        require_memory(
            8 * _ARRAYS_PER_NODE * self.entries(problem, points),
            f"Training a PINN of {self.layers} × {self.width} nodes on {points.total} points",
            "Use fewer points or a smaller width.",
        )

    def entries(self, problem: Problem, points: Points) -> int:
        """Return how many derivatives of nodes at points one pass computes."""
        streams = {s.source: len(lower_set([term.multi_index for term in s.form.terms])) for s in problem.statements}
        return sum(count * len(points.sets[source]) for source, count in streams.items()) * self.width * self.layers

    def initial(self, problem: Problem, seed: int) -> list[FloatArray]:
        """Return weights as Glorot draws them, and biases of zero; at a scale, the first layer of a broad network."""
        rng = np.random.default_rng(seed)
        dimension = len(problem.domain.coordinates)
        sizes = [dimension, *[self.width] * self.layers, len(problem.fields)]
        weights: list[FloatArray] = []
        for inputs, outputs in pairwise(sizes):
            limit = np.sqrt(6.0 / (inputs + outputs))
            weights += [rng.uniform(-limit, limit, (inputs, outputs)), np.zeros(outputs)]
        if self.scale is not None:
            first = draw_features(rng, np.ones(dimension), self.activation, self.width, self.scale)
            weights[:2] = first.weights, first.bias
        return weights

    def solution(
        self,
        problem: Problem,
        seed: int,
        trained: Trained,
        residuals: Sequence[FloatArray],
        seconds: dict[str, float],
    ) -> Solution:
        """Return the result of the training as a solution."""
        first, bias, *inner = trained.weights[:-2]
        half_widths = np.ptp(problem.domain.bounds, axis=1) / 2
        psi = activation(self.activation)
        layers: list[FeatureGroup | EnhancementGroup] = [FeatureGroup(psi, first / half_widths[:, None], bias)]
        layers += [EnhancementGroup(psi, w, b) for w, b in zip(inner[::2], inner[1::2], strict=True)]
        network = DeepNetwork(np.mean(problem.domain.bounds, axis=1), tuple(layers))
        pairs = [
            (Block(s.name, slice(0, len(r)), s.is_equation, noise=s.noise), r)
            for s, r in zip(problem.statements, residuals, strict=True)
        ]
        diagnostics = Diagnostics(
            method="PINN",
            settings=recorded(self),
            seed=seed,
            nodes=self.width * self.layers,
            rows=sum(map(len, residuals)),
            solver="adam, l-bfgs",
            rank=None,
            condition=None,
            residuals=residual_record(pairs),
            seconds=seconds,
            message=trained.message,
            stages=trained.history,
        )
        output, constant = trained.weights[-2:]
        status = Status.INTERRUPTED if trained.interrupted else Status.FITTED
        return Solution(problem, network, np.vstack([output, constant]).T.copy(), status, diagnostics)


@dataclass(frozen=True, eq=False)
class PinnFit:
    """One training among many: a network, and the problem and points it is trained on."""

    method: PINN
    problem: Problem
    points: Points
    seed: int


def fit_together(
    fits: Sequence[PinnFit], device: Any = None, progress: Callable[[int, float], object] | None = None
) -> list[Solution]:
    """Return the same results as fits of networks one by one; they are trained side by side.

    >>> from pibls import problems
    >>> problem = problems.advection()
    >>> points = Points.sample(problem, interior=20)
    >>> tiny = [PINN(width, adam_iterations=5, lbfgs_iterations=5) for width in (3, 7)]
    >>> [s.network.size for s in fit_together([PinnFit(method, problem, points, 0) for method in tiny])]
    [4, 8]
    """
    for fit in fits:
        fit.method.check(fit.problem, fit.points, fit.seed)
    found = dict(train_together(fits, device, progress))
    return [found[number] for number in range(len(fits))]


def train_together(
    fits: Sequence[PinnFit], device: Any = None, progress: Callable[[int, float], object] | None = None
) -> Iterator[tuple[int, Solution]]:
    """Train networks that were checked, in batches; yield the solution of each after its number."""
    if not fits:
        return
    torch = required_torch()
    where = placing("cpu" if device is None else device)(0.0).device
    for numbers in batches(fits, *appetite(where)):
        batch = [fits[number] for number in numbers]
        place = placing(where, getattr(torch, batch[0].method.dtype))
        entries = len(batch) * batch[0].method.entries(batch[0].problem, batch[0].points)
        with blas_threads(1 if entries < _MANY else None):
            solutions = _train(batch, place, _reporter(progress))
        if len(fits) > 1 and solutions[0].status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        yield from zip(numbers, solutions, strict=True)


def _train(
    batch: Sequence[PinnFit], place: Callable[[Any], Any], report: Callable[[int, float], None]
) -> list[Solution]:
    start = time.perf_counter()
    method, problem = batch[0].method, batch[0].problem
    activations = [activation(fit.method.activation) for fit in batch]
    loss = Loss.of(problem, [fit.points for fit in batch], activations, place)
    dimension, fields = len(problem.domain.coordinates), len(problem.fields)
    layout = WeightLayout(dimension, tuple(fit.method.width for fit in batch), method.layers, fields)
    # Folds and penalties start from the same weights.
    starts = {_start(fit): fit for fit in batch}
    initial = {key: fit.method.initial(problem, fit.seed) for key, fit in starts.items()}
    rows = place(layout.pack([initial[_start(fit)] for fit in batch]))
    factors = place(_factors(batch, loss, layout, rows) ** 2)
    iterations = (method.adam_iterations, method.lbfgs_iterations)
    prepared = time.perf_counter()
    trained = train(loss, layout, rows, factors, iterations, method.learning_rate, report)
    seconds = {"preparation": prepared - start, "training": time.perf_counter() - prepared}
    parts = layout.parts(place(layout.pack([one.weights for one in trained])))
    found = [(own.counts, copied(residual)) for own, residual in zip(loss.rows, loss.residuals(parts), strict=True)]
    return [
        fit.method.solution(problem, fit.seed, one, [r[i, : counts[i]] for counts, r in found], seconds)
        for i, (fit, one) in enumerate(zip(batch, trained, strict=True))
    ]


def _start(fit: PinnFit) -> str:
    """Return the key that decides the first weights."""
    return repr((fit.method.width, fit.method.activation, fit.method.scale, fit.seed))


def _factors(batch: Sequence[PinnFit], loss: Loss, layout: WeightLayout, rows: Any) -> FloatArray:
    """Return how much the residuals of every statement count, per network."""
    scalings = [row_scaling(fit.method.lambda_b, fit.method.lambda_i) for fit in batch]
    statements = batch[0].problem.statements
    norms = np.ones((len(batch), len(statements)))
    if any(isinstance(scaling, Balanced) for scaling in scalings):
        parts = [part.requires_grad_() for part in layout.parts(rows.detach())]
        norms = loss.sensitivities(parts, [fit.seed for fit in batch])
    return np.array([s.scales(statements, own.tolist()) for s, own in zip(scalings, norms, strict=True)])


def batches(fits: Sequence[PinnFit], enough: int, most: int) -> list[list[int]]:
    """Divide fits into batches that can be trained together, the wide networks apart where that pays.

    ``enough`` bytes that a step moves keep a device busy, and a batch may take ``most`` bytes there.
    """
    alike: dict[Any, list[int]] = {}
    per_node = {id(fit.points): replace(fit.method, width=1).entries(fit.problem, fit.points) for fit in fits}
    for number, fit in enumerate(fits):
        m = fit.method
        key = (id(fit.problem), m.layers, m.adam_iterations, m.lbfgs_iterations, m.learning_rate, m.dtype)
        alike.setdefault(key, []).append(number)
    result = []
    for numbers in alike.values():
        numbers.sort(key=lambda number: -fits[number].method.width)
        batch: list[int] = []
        rows = 0
        for number in numbers:
            fit = fits[number]
            widest = fits[batch[0]].method if batch else fit.method
            rows = max(rows, per_node[id(fit.points)])
            entries = (len(batch) + 1) * rows * widest.width
            weights = (len(batch) + 1) * widest.parameters(len(fit.problem.domain.coordinates))
            moved = 8 * (_PASSES * entries // widest.layers + _COPIES * weights)
            narrow = fit.method.width < widest.width and moved > enough
            if batch and (narrow or 8 * (_ARRAYS * entries + _COPIES * weights) > most):
                result.append(batch)
                batch, rows = [], per_node[id(fit.points)]
            batch.append(number)
        result.append(batch)
    names = [activation(fit.method.activation).name for fit in fits]
    return [sorted(batch, key=lambda number: names[number]) for batch in result]


def _reporter(progress: Callable[[int, float], object] | None) -> Callable[[int, float], None]:
    def report(iteration: int, loss: float) -> None:
        if progress is None:
            return
        try:
            progress(iteration, loss)
        except Exception as error:
            raise InputError(
                f"The 'progress' parameter of PINN.fit raised {type(error).__name__}: {cut(str(error), 200)}. It is "
                "called with the iteration and the loss."
            ) from error

    return report
