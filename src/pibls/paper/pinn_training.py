"""Training networks by torch, many at once: Adam followed by L-BFGS on all points, one step for all of them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import MissingDependencyError, SolveError
from pibls.limits import in_words
from pibls.paper.pinn_lbfgs import Lbfgs
from pibls.paper.pinn_loss import Loss
from pibls.solution import Stage

_DECAY = 0.1  # of the step of Adam, from its first iteration to its last
_MOMENTS, _SMALL = (0.9, 0.999), 1e-8  # of Adam, as everywhere
_EVERY = 25  # iterations between two entries of the record
_HISTORY = (10, 50)  # steps that L-BFGS remembers, at least and at most
_WARM = 3  # iterations before one is recorded to be replayed
BUSY = 2**32  # bytes that keep a GPU longer than it takes to start the kernels that move them


def copied(tensor: Any) -> FloatArray:
    """Return the values of a tensor, which may go on changing, as an array."""
    return np.asarray(tensor.detach().cpu().numpy().astype(np.float64))


@dataclass(frozen=True)
class WeightLayout:
    """Where the weights of networks of different width lie in rows of one array."""

    dimension: int
    widths: tuple[int, ...]  # of each network; its layers are all as wide
    layers: int
    fields: int

    def shapes(self, width: int) -> list[tuple[int, ...]]:
        """Return the shapes of weights and biases of a network.

        >>> WeightLayout(2, (5, 3), 2, 1).shapes(3)
        [(2, 3), (3,), (3, 3), (3,), (3, 1), (1,)]
        """
        sizes = [self.dimension, *[width] * self.layers, self.fields]
        pairs = pairwise(sizes)
        return [shape for below, here in pairs for shape in ((below, here), (here,))]

    @property
    def size(self) -> int:
        """Length of a row."""
        return sum(map(math.prod, self.shapes(max(self.widths))))

    def parts(self, rows: Any) -> list[Any]:
        """Return views of rows as stacked weights and biases, zero where a network is narrower."""
        shapes, start, views = self.shapes(max(self.widths)), 0, []
        for shape in shapes:
            views.append(rows[:, start : start + math.prod(shape)].reshape(-1, *shape))
            start += math.prod(shape)
        return views

    def pack(self, networks: Sequence[Sequence[FloatArray]]) -> FloatArray:
        """Return networks as rows."""
        rows = np.zeros((len(networks), self.size))
        views = self.parts(rows)
        for number, network in enumerate(networks):
            for view, array in zip(views, network, strict=True):
                view[(number, *map(slice, array.shape))] = array
        return rows

    def unpack(self, rows: FloatArray) -> list[list[FloatArray]]:
        """Return the networks of rows."""
        views = self.parts(rows)
        return [
            [view[(number, *map(slice, shape))].copy() for view, shape in zip(views, self.shapes(width), strict=True)]
            for number, width in enumerate(self.widths)
        ]

    def mask(self) -> FloatArray | None:
        """Return rows with ones where networks have weights, or None if all have the same width."""
        if len(set(self.widths)) == 1:
            return None
        return self.pack([[np.ones(shape) for shape in self.shapes(width)] for width in self.widths])


@dataclass(frozen=True, eq=False)
class Trained:
    """The best weights that the training of a network came by, the course of its loss, and why it ended."""

    weights: list[FloatArray]
    history: tuple[Stage, ...]
    message: str
    interrupted: bool


@dataclass(eq=False)
class _Course:
    """The best weights of all networks, which every step updates in place, and the record."""

    best: Any  # losses
    kept: Any  # weights
    report: Callable[[int, float], None]
    start: float = field(default_factory=time.perf_counter)
    history: list[tuple[float, int, FloatArray]] = field(default_factory=list)
    iteration: int = 0
    ends: FloatArray | None = None  # iteration at which each network was seen to have stopped; infinite before

    def stop(self, stopped: FloatArray) -> bool:
        """Note which networks have stopped by now, and tell whether all have."""
        known = np.full(len(stopped), np.inf) if self.ends is None else self.ends
        self.ends = np.where(stopped > 0, np.minimum(known, self.iteration), known)
        return bool(np.isfinite(self.ends).all())

    def record(self) -> None:
        losses = copied(self.best)
        self.history.append((time.perf_counter() - self.start, self.iteration, losses))
        self.report(self.iteration, float(losses.max()))


def train(
    loss: Loss,
    layout: WeightLayout,
    rows: Any,
    factors: Any,
    iterations: tuple[int, int],
    learning_rate: float,
    report: Callable[[int, float], None],
) -> list[Trained]:
    """Lower the losses by Adam, then by L-BFGS on all points; Ctrl-C ends it with the best weights so far.

    An iteration is one evaluation of the losses and their gradients, those of line searches included.
    """
    evaluate = _evaluation(loss, layout, factors)
    first = evaluate(rows)[0]
    course = _Course(first.clone(), rows.clone(), report)
    if not math.isfinite(float(first.sum())):
        raise SolveError(
            "The loss of PINN is not finite at the initial weights: an equation or condition is not defined for "
            "that state (a logarithm or root of a negative unknown, say). Use another seed, or rewrite it."
        )
    interrupted = False
    try:
        course.record()
        _adam(evaluate, course, rows, iterations[0], learning_rate)
        _lbfgs(evaluate, course, iterations[1])
    except KeyboardInterrupt as stop:
        in_words(stop)
        interrupted = True
    return _ended(course, layout, interrupted)


def _ended(course: _Course, layout: WeightLayout, interrupted: bool) -> list[Trained]:
    result = []
    for number, weights in enumerate(layout.unpack(copied(course.kept))):
        end = math.inf if course.ends is None else float(course.ends[number])
        message = ""
        if end < math.inf:
            message = f"L-BFGS found no lower loss after {end:.0f} iterations."
        elif interrupted:
            message = f"Interrupted after {course.iteration} iterations; these are the best weights until then."
        stages = (Stage(s, iteration=i, loss=float(losses[number])) for s, i, losses in course.history if i <= end)
        result.append(Trained(weights, tuple(stages), message, interrupted))
    return result


def _evaluation(loss: Loss, layout: WeightLayout, factors: Any) -> Callable[[Any], tuple[Any, Any]]:
    import torch

    padding = layout.mask()
    mask = None if padding is None else loss.place(padding)

    def evaluate(rows: Any) -> tuple[Any, Any]:
        parts = [part.requires_grad_() for part in layout.parts(rows.detach())]
        values = loss(parts, factors)
        found = torch.autograd.grad(values.sum(), parts, allow_unused=True)
        pieces = [torch.zeros_like(p) if g is None else g for g, p in zip(found, parts, strict=True)]
        gradients = torch.cat([piece.flatten(1) for piece in pieces], 1)
        return values.detach(), gradients if mask is None else gradients * mask

    return evaluate


def _adam(
    evaluate: Callable[[Any], tuple[Any, Any]], course: _Course, x: Any, steps: int, learning_rate: float
) -> None:
    import torch

    means, squares = torch.zeros_like(x), torch.zeros_like(x)
    # Numbers that change from step to step are tensors, or a replayed step would not see it.
    rate, *decays = (x.new_tensor(value) for value in (learning_rate, 1.0, 1.0))
    fall = _DECAY ** (1.0 / max(1, steps))

    def step() -> None:
        values, gradients = evaluate(x)
        better = values < course.best
        torch.where(better[:, None], x, course.kept, out=course.kept)
        torch.where(better, values, course.best, out=course.best)
        for moment, decay in zip(_MOMENTS, decays, strict=True):
            decay.mul_(moment)
        means.lerp_(gradients, 1.0 - _MOMENTS[0])
        squares.mul_(_MOMENTS[1]).addcmul_(gradients, gradients, value=1.0 - _MOMENTS[1])
        size = (squares / (1.0 - decays[1])).sqrt_().add_(_SMALL)
        x.addcdiv_(means * (rate / (decays[0] - 1.0)), size)
        rate.mul_(fall)

    for done in _repeated(step, steps, x.device):
        course.iteration = done
        if done % _EVERY == 0 or done == steps:
            course.record()


def _lbfgs(evaluate: Callable[[Any], tuple[Any, Any]], course: _Course, steps: int) -> None:
    """Run L-BFGS from the best weights so far."""
    if not steps:
        return
    # A long memory costs more than the evaluation, and pays only in the long run.
    state = Lbfgs.start(evaluate, course.kept, min(max(_HISTORY[0], steps // _EVERY), _HISTORY[1]))
    course.kept, course.best = state.x, state.f
    before = course.iteration
    for done in _repeated(state.evaluate, steps, course.kept.device):
        if done % _EVERY == 0 or done == steps:
            course.iteration = before + done
            course.record()
            if course.stop(copied(state.stopped)):
                return


def _repeated(step: Callable[[], None], count: int, device: Any) -> Iterator[int]:
    """Do a step again and again, and yield how often it was done.

    On a GPU the step is recorded once and replayed: launching its hundreds of small kernels one by one would take
    longer than computing them.
    """
    import torch

    replay, first = step, 1
    if device.type == "cuda" and count > 2 * _WARM:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                step()
        torch.cuda.current_stream().wait_stream(side)
        replay, first = _recorded(step), _WARM + 1
    for done in range(first, count + 1):
        replay()
        yield done


def _recorded(step: Callable[[], None]) -> Callable[[], None]:
    """Return a function that replays a step on a GPU, or the step itself where it cannot be recorded."""
    import torch

    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            step()
    except RuntimeError as error:
        warnings.warn(f"Training is not replayed on this GPU, and slower: {error}", RuntimeWarning, stacklevel=2)
        return step
    replay: Callable[[], None] = graph.replay
    return replay


def appetite(device: Any) -> tuple[int, int]:
    """Return how many bytes that a step moves keep a device busy, and how many a batch may take there."""
    import torch

    if device.type != "cuda":
        return 2**22, 2**28
    torch.cuda.empty_cache()  # or what earlier batches left would not count as free
    return BUSY, torch.cuda.mem_get_info(device)[0] // 2


def required_torch() -> Any:
    """Return PyTorch, or say how to install it."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError(
            "PINN needs PyTorch to train, which is not installed; install it with: pip install pibls[torch]"
        ) from None
    return torch
