"""L-BFGS for many functions side by side, one evaluation of all of them at a time.

Every row of the arrays is a minimisation of its own: it has its own step, memory and end, and what happens to it does
not depend on the other rows. Nothing waits for the host, so that a whole evaluation with all that follows from it can
be replayed on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_DECREASE, _CURVATURE = 1e-4, 0.9  # of the conditions of Wolfe
_TRIALS = 20  # of one line search
_INSIDE = 0.1  # share of a bracket that a trial keeps off its ends
_STRETCH = 4.0  # of a step that was too short

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
    def empty(cls, x: Any, history: int) -> _Memory:
        rows, n = x.shape
        square = x.new_zeros(rows, history, history)
        count = x.new_zeros(rows).long()
        return cls(
            x.new_zeros(rows, 2 * history, n), square, square[:, 0].clone(), square.clone(), x.new_ones(rows), count
        )

    def direction(self, use: Any, step: Any, change: Any, ys: Any, gradient: Any) -> Any:
        """Take a pair up where ``use`` says so, and return −H times the gradient.

        The slot that the next pair takes is written in any case, and counts only where the pair is taken up.
        """
        import torch

        history = self.diagonal.shape[1]
        slot = self.count % history
        rows = torch.arange(len(step), device=step.device)
        self.pairs[rows, slot] = step
        self.pairs[rows, slot + history] = change
        found = self.pairs @ torch.stack([gradient, change], 2)
        (Sg, Sy), (Yg, Yy) = (part.unbind(2) for part in found.split(history, 1))
        here = (torch.arange(history, device=step.device) == slot[:, None]).to(step)
        self._take(here, use, torch.where(use, ys, 1.0), Sy, Yy)
        self.count += use
        a = _times(self.inverse, Sg)
        inner = self.diagonal * a + self.gamma[:, None] * (_times(self.products, a) - Yg)
        mixed = torch.cat([_times(self.inverse.mT, inner), -self.gamma[:, None] * a], 1)
        return torch.baddbmm((self.gamma[:, None] * gradient)[:, None], mixed[:, None], self.pairs, beta=-1, alpha=-1)[
            :, 0
        ]

    def _take(self, here: Any, use: Any, ys: Any, Sy: Any, Yy: Any) -> None:
        import torch

        older, taken = 1.0 - here, here * use[:, None]
        block = older[:, :, None] * older[:, None]
        self.inverse *= block
        column = (here - _times(self.inverse, Sy * older)) / ys[:, None]
        self.inverse += column[:, :, None] * taken[:, None]
        self.diagonal.mul_(older).add_(taken * ys[:, None])
        self.products *= block
        self.products += Yy[:, :, None] * taken[:, None] + taken[:, :, None] * (Yy * older)[:, None]
        self.gamma.copy_(torch.where(use, ys / (Yy * here).sum(1), self.gamma))

    def forget(self, where: Any) -> None:
        """Start again from the gradient alone; without R⁻¹, the rest of the memory has no effect."""
        import torch

        self.inverse *= (~where).to(self.inverse)[:, None, None]
        self.gamma.copy_(torch.where(where, 1.0, self.gamma))


@dataclass(eq=False)
class Lbfgs:
    """The state of all minimisations: where they are, where they go, and how far each line search has come.

    A line search brackets a step that lowers the function enough and flattens it enough, the weak conditions of Wolfe.
    One that finds none forgets the past, which can spoil every direction; if the gradient alone does not help either,
    the minimisation has stopped.

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
    def start(cls, function: Evaluation, x: Any, history: int = 20) -> Lbfgs:
        """Begin at the given points; so many steps are remembered."""
        import torch

        f, g = function(x)
        zero, no = torch.zeros_like(f), torch.zeros_like(f, dtype=torch.bool)
        low, high = (tuple(zero.clone() for _ in range(3)) for _ in range(2))
        state = cls(
            *(function, x.clone(), f.clone(), g.clone(), -g, -(g * g).sum(1), _first(g)),
            *(low, high, zero.clone(), ~no, no, _Memory.empty(x, history)),
        )
        state._open(~no)
        return state

    def evaluate(self) -> None:
        """Evaluate all functions at their trials, once, and take or shorten their steps."""
        import torch

        # Arrays of all rows are passed over as seldom as possible: on a GPU that is what a step takes.
        trial = torch.addcmul(self.x, self.t[:, None], self.d)
        value, gradient = self.function(trial)
        slope = (gradient * self.d).sum(1)
        good = torch.isfinite(value) & torch.isfinite(slope)
        value = torch.where(good, value, torch.inf)
        # Where rounding hides the slope, only what is lower is a step: equals would go on for ever.
        enough = (value <= self.f + _DECREASE * self.t * self.slope) & (value < self.f)
        accept = enough & (slope >= _CURVATURE * self.slope) & (self.slope < 0) & ~self.stopped
        change = torch.where(good[:, None], gradient - self.g, 0.0)
        step, ys = self.t[:, None] * self.d, self.t * (slope - self.slope)
        torch.where(accept[:, None], trial, self.x, out=self.x)
        torch.where(accept[:, None], gradient, self.g, out=self.g)
        torch.where(accept, value, self.f, out=self.f)
        self._narrow(enough, value, slope)
        lost = ~accept & (self.trials >= _TRIALS)
        self.stopped |= lost & self.fresh
        self.fresh.copy_((self.fresh | lost) & ~accept)
        self.memory.forget(lost)
        direction = self.memory.direction(accept, step, change, ys, self.g)
        turned = accept | lost
        torch.where(turned[:, None], direction, self.d, out=self.d)
        self.slope.copy_((self.d * self.g).sum(1))
        first = torch.where(self.stopped, 0.0, torch.where(lost, _first(self.g), 1.0))
        torch.where(turned | self.stopped, first, self.t, out=self.t)
        self._open(turned)

    def _narrow(self, enough: Any, value: Any, slope: Any) -> None:
        """Put the trial into the bracket and choose the next one."""
        import torch

        self.trials += 1
        for ends, where in ((self.low, enough), (self.high, ~enough)):
            for end, new in zip(ends, (self.t, value, slope), strict=True):
                torch.where(where, new, end, out=end)
        (a, fa, sa), (b, fb, sb) = self.low, self.high
        width = b - a
        # The minimum of the cubic with these values and slopes; the middle where there is none.
        theta = sa + sb - 3.0 * (fb - fa) / width
        root = torch.sqrt(theta * theta - sa * sb)
        cubic = b - width * (sb + root - theta) / (sb - sa + 2.0 * root)
        inside = torch.clamp(cubic, a + _INSIDE * width, b - _INSIDE * width)
        inside = torch.where(torch.isfinite(inside), inside, 0.5 * (a + b))
        self.t.copy_(torch.where(torch.isfinite(b), inside, _STRETCH * self.t))

    def _open(self, where: Any) -> None:
        """Begin a line search: its bracket reaches from here to infinity."""
        import torch

        self.trials.copy_(torch.where(where, 0.0, self.trials))
        for end, new in zip((*self.low, *self.high[:1]), (0.0, self.f, self.slope, torch.inf), strict=True):
            end.copy_(torch.where(where, new, end))


def _first(gradient: Any) -> Any:
    """Return the length of a first step, along the gradient alone."""
    import torch

    return (1.0 / torch.linalg.vector_norm(gradient, 1, dim=1)).clamp(max=1.0)


def _times(matrices: Any, vectors: Any) -> Any:
    return (matrices @ vectors[:, :, None])[:, :, 0]
