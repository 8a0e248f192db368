"""L-BFGS for many functions side by side, one evaluation of all of them at a time.

Every row of the arrays is a minimisation of its own: it has its own step, memory and end, and what happens to it does
not depend on the other rows. Nothing waits for the host, so that a whole evaluation with all that follows from it can
be replayed on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Lbfgs"]

_HISTORY = 30  # steps that are remembered
_DECREASE, _CURVATURE = 1e-4, 0.9  # of the conditions of Wolfe
_TRIALS = 20  # of one line search
_INSIDE = 0.1  # share of a bracket that a trial keeps off its ends
_STRETCH = 4.0  # of a step that was too short
_FLAT = 1e-14  # cosine of step and change of gradient below which they tell nothing

Evaluation = Callable[[Any], tuple[Any, Any]]
"""From points (rows, n) to values (rows,) and gradients (rows, n)."""


@dataclass(eq=False)
class _Memory:
    """Steps and changes of the gradient, and the compact form of the inverse Hessian that they make.

    H = γ + [S γY] [[R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ], [−R⁻¹, 0]] [Sᵀ; γYᵀ] with R the upper triangle of SᵀY and D its diagonal
    (Byrd, Nocedal and Schnabel 1994). R⁻¹ is kept instead of R: a new pair adds a column to it, and the oldest one
    leaves with its row and column.
    """

    pairs: Any  # (rows, 2·history, n): steps, then changes
    inverse: Any  # R⁻¹, its rows and columns in the order of the slots
    diagonal: Any
    products: Any  # YᵀY
    gamma: Any
    count: Any

    @classmethod
    def empty(cls, x: Any) -> _Memory:
        rows, n = x.shape
        square = x.new_zeros(rows, _HISTORY, _HISTORY)
        count = x.new_zeros(rows).long()
        return cls(
            x.new_zeros(rows, 2 * _HISTORY, n), square, square[:, 0].clone(), square.clone(), x.new_ones(rows), count
        )

    def direction(self, use: Any, step: Any, change: Any, gradient: Any) -> Any:
        """Take a pair up where ``use`` says so, and return −H times the gradient."""
        import torch

        rows = torch.arange(len(step), device=step.device)
        slot = self.count % _HISTORY
        for offset, new in ((0, step), (_HISTORY, change)):
            old = self.pairs[rows, slot + offset]
            self.pairs[rows, slot + offset] = torch.where(use[:, None], new, old)
        found = self.pairs @ torch.stack([gradient, change], 2)
        (Sg, Sy), (Yg, Yy) = (part.unbind(2) for part in found.split(_HISTORY, 1))
        here = (torch.arange(_HISTORY, device=step.device) == torch.where(use, slot, -1)[:, None]).to(step)
        self._take(here, use, (step * change).sum(1), Sy, Yy, (change * change).sum(1))
        self.count += use
        a = _times(self.inverse, Sg)
        inner = self.diagonal * a + self.gamma[:, None] * (_times(self.products, a) - Yg)
        u = _times(self.inverse.mT, inner)
        mixed = torch.cat([u, -self.gamma[:, None] * a], 1)
        return -self.gamma[:, None] * gradient - (mixed[:, None] @ self.pairs)[:, 0]

    def _take(self, here: Any, use: Any, ys: Any, Sy: Any, Yy: Any, yy: Any) -> None:
        import torch

        ys, yy = torch.where(use, ys, 1.0), torch.where(use, yy, 1.0)
        older = 1.0 - here
        block = older[:, :, None] * older[:, None]
        self.inverse *= block
        column = (here - _times(self.inverse, Sy * older)) / ys[:, None]
        self.inverse += column[:, :, None] * here[:, None]
        self.diagonal.mul_(older).add_(here * ys[:, None])
        self.products *= block
        self.products += Yy[:, :, None] * here[:, None] + here[:, :, None] * (Yy * older)[:, None]
        self.gamma.copy_(torch.where(use, ys / yy, self.gamma))

    def forget(self, where: Any) -> None:
        """Start again from the gradient alone; without R⁻¹, what else is remembered has no effect."""
        import torch

        self.inverse *= (~where).to(self.inverse)[:, None, None]
        self.gamma.copy_(torch.where(where, 1.0, self.gamma))


@dataclass(eq=False)
class Lbfgs:
    """The state of all minimisations: where they are, where they go, and how far each line search has come.

    A line search brackets a step that lowers the function enough and flattens it enough, the weak conditions of Wolfe.
    One that finds none forgets the past, which can spoil every direction; if the gradient alone does not help either,
    the minimisation has stopped.

    Examples
    --------
    >>> import torch
    >>> state = Lbfgs.start(lambda x: ((x**4).sum(1), 4 * x**3), torch.ones(1, 2, dtype=torch.float64))
    >>> for _ in range(30):
    ...     state.evaluate()
    >>> bool(state.f < 1e-8)
    True
    """

    function: Evaluation
    x: Any
    f: Any
    g: Any
    d: Any
    slope: Any
    t: Any
    low: tuple[Any, Any, Any]  # step, value and slope at the lower end of the bracket
    high: tuple[Any, Any, Any]  # and at the upper one; the step is infinite before there is one
    trials: Any
    fresh: Any  # whether nothing is remembered
    stopped: Any
    memory: _Memory

    @classmethod
    def start(cls, function: Evaluation, x: Any) -> Lbfgs:
        """Begin at the given points."""
        import torch

        f, g = function(x)
        zero, no = torch.zeros_like(f), torch.zeros_like(f, dtype=torch.bool)
        low, high = (tuple(zero.clone() for _ in range(3)) for _ in range(2))
        state = cls(
            *(function, x.clone(), f.clone(), g.clone(), -g, -(g * g).sum(1), _first(g)),
            *(low, high, zero.clone(), ~no, no, _Memory.empty(x)),
        )
        state._open(~no)
        return state

    def evaluate(self) -> None:
        """Evaluate all functions at their trials, once, and do what follows from it."""
        import torch

        trial = self.x + self.t[:, None] * self.d
        value, gradient = self.function(trial)
        good = torch.isfinite(value) & torch.isfinite(gradient).all(1)
        value = torch.where(good, value, torch.inf)
        gradient = torch.where(good[:, None], gradient, 0.0)
        slope = (gradient * self.d).sum(1)
        # Where rounding hides the slope, only what is lower is a step: equals would go on for ever.
        enough = (value <= self.f + _DECREASE * self.t * self.slope) & (value < self.f)
        accept = enough & (slope >= _CURVATURE * self.slope) & ~self.stopped
        self._narrow(enough, value, slope)
        lost = ~accept & (self.trials >= _TRIALS)
        self.stopped |= lost & self.fresh
        step, change = trial - self.x, gradient - self.g
        curved = (step * change).sum(1) > _FLAT * step.norm(dim=1) * change.norm(dim=1)
        self._move(accept, trial, value, gradient)
        direction = self.memory.direction(accept & curved, step, change, self.g)
        self._turn(accept, lost, direction)

    def _narrow(self, enough: Any, value: Any, slope: Any) -> None:
        """Put the trial into the bracket and choose the next one."""
        import torch

        self.trials += 1
        for ends, where in ((self.low, enough), (self.high, ~enough)):
            for end, new in zip(ends, (self.t, value, slope), strict=True):
                end.copy_(torch.where(where, new, end))
        (a, fa, sa), (b, fb, sb) = self.low, self.high
        width = b - a
        # The minimum of the cubic with these values and slopes; the middle where there is none.
        theta = sa + sb - 3.0 * (fb - fa) / width
        root = torch.sqrt(theta * theta - sa * sb)
        cubic = b - width * (sb + root - theta) / (sb - sa + 2.0 * root)
        inside = torch.clamp(cubic, a + _INSIDE * width, b - _INSIDE * width)
        inside = torch.where(torch.isfinite(inside), inside, 0.5 * (a + b))
        self.t.copy_(torch.where(torch.isfinite(b), inside, _STRETCH * self.t))

    def _move(self, accept: Any, trial: Any, value: Any, gradient: Any) -> None:
        import torch

        self.x.copy_(torch.where(accept[:, None], trial, self.x))
        self.g.copy_(torch.where(accept[:, None], gradient, self.g))
        self.f.copy_(torch.where(accept, value, self.f))

    def _turn(self, accept: Any, lost: Any, direction: Any) -> None:
        """Take the new direction where a step was accepted, and the gradient where nothing else helps."""
        import torch

        descends = (direction * self.g).sum(1) < 0
        again = (lost | (accept & ~descends)) & ~self.stopped
        self.memory.forget(again)
        new = torch.where(again[:, None], -self.g, direction)
        turned = accept | again
        self.d.copy_(torch.where(turned[:, None], new, self.d))
        self.slope.copy_((self.d * self.g).sum(1))
        self.fresh.copy_((self.fresh & ~accept) | again)
        self.t.copy_(torch.where(turned, torch.where(again, _first(self.g), 1.0), self.t))
        self._open(turned)

    def _open(self, where: Any) -> None:
        """Begin a line search: its bracket reaches from here to infinity."""
        import torch

        self.trials.copy_(torch.where(where, 0.0, self.trials))
        for end, new in zip((*self.low, *self.high[:1]), (0.0, self.f, self.slope, torch.inf), strict=True):
            end.copy_(torch.where(where, new, end))


def _first(gradient: Any) -> Any:
    """Return the length of a first step, along the gradient alone."""
    return (1.0 / gradient.abs().sum(1)).clamp(max=1.0)


def _times(matrices: Any, vectors: Any) -> Any:
    return (matrices @ vectors[:, :, None])[:, :, 0]
