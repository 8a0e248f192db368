"""A coarse solution of a nonlinear problem: from simple starts or by continuation, and a search for others.

Attempts are cheap, because the tree is coarse. An attempt counts as a solution where the iteration converges and the
relative residual is small; an iteration that ends elsewhere is recognised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pibls.budget import Budget
from pibls.cells.error_marking import ErrorMarking
from pibls.cells.iterate import MOST_STEPS, IterationResult, NewtonFitter
from pibls.cells.outcome import field_sizes
from pibls.cells.overlay import distances
from pibls.cells.solve import Fit
from pibls.cells.starts import bump, diffusion_ratio, harmonic, scaled, simple_starts, values_from
from pibls.cells.state import Values, Weights, between, projected, squares, values_of
from pibls.cells.tree import Cell, leaves, refined
from pibls.errors import PiblsError, ProblemError
from pibls.refinement import VISIBLE
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FIRST, MOST, NEGLIGIBLE, SLIGHT
from pibls.runtime import RATE
from pibls.solution.start_states import zero

__all__ = ["Coarse", "CoarseAttempts"]

_REMEDY = (
    "Check signs and parameters; if it has one, start near it with start=, or come from easier problems with "
    "continuation=."
)
_AMPLITUDES = (1.0, 40.0, 8.0, -1.0, -8.0)


@dataclass(frozen=True, eq=False)
class Coarse:
    """The coarse solution and its history.

    Attributes
    ----------
    descent
        The best iterate that was found.
    start
        The start that led to it, in words.
    remark
        Sentence for the user about other solutions or continuation.
    failure
        Sentence that says why there seems to be no solution, or an empty string.
    trees
        The trees on the way to the solution, coarsest first.
    """

    descent: IterationResult
    start: str
    remark: str = ""
    failure: str = ""
    trees: tuple[Cell, ...] = ()

    @property
    def solved(self) -> bool:
        """Whether the iteration converged to a solution, as far as these cells resolve it."""
        return self.descent.settled and self.descent.residual < VISIBLE

    @property
    def resolved(self) -> bool:
        """Whether the cells resolve the last linearised problem; if not, finer cells help more than other starts."""
        return self.descent.linear < VISIBLE


@dataclass(eq=False)
class CoarseAttempts:
    """Attempts to solve one nonlinear problem on coarse trees."""

    newton: NewtonFitter
    budget: Budget
    seed: int
    tried: list[str] = field(default_factory=list)
    # by number of cells, the share of the load at which the branch from zero ends; one where it does not
    ends: dict[int, float] = field(default_factory=dict)
    reached: tuple[float, Fit] | None = None  # the last share on that branch, and the solution there
    reason: str = ""  # message of the first failed attempt

    def __post_init__(self) -> None:
        self.first, self.room = self.budget.operations, FIRST * self.budget.left

    @property
    def spent(self) -> float:
        """Operations of all attempts so far."""
        return self.budget.operations - self.first

    @cached_property
    def marker(self) -> ErrorMarking:
        """Selects the cells to split."""
        return ErrorMarking(self.newton.layout)

    def solution(self, root: Cell, start: Values | None) -> Coarse:
        """Return a coarse solution, from the given start or from simple ones."""
        found: list[Coarse] = []
        if start is not None:
            # A user who gives a start wants the solution near it: other starts are tried only if there is none.
            found = self._search_on_finer_trees(root, [("the given start", start)])
        if not any(one.solved for one in found):
            found += self._search_on_finer_trees(root, None)
        if not found:
            raise ProblemError(
                f"The equations have no finite value at any start that was tried ({', '.join(self.tried)}): "
                f"{self.reason} Give a function to start from, such as solve(problem, start={{u: 1 + x}})."
            )
        chosen = next((one for one in found if one.solved), None)
        if chosen is None:
            last = found[-1]
            return Coarse(last.descent, last.start, failure=self._failure(found), trees=(last.descent.fit.root,))
        remark = self._branches(chosen)
        if chosen.start == "continuation":
            remark = f"It was found by continuation, with more and more of nonlinear terms and data. {remark}".strip()
        trees = tuple(one.descent.fit.root for one in found[: found.index(chosen) + 1])
        return Coarse(chosen.descent, chosen.start, remark, trees=trees)

    def finer(self, fit: Fit) -> Cell:
        """Return a finer tree, without extra levels towards corners."""
        return refined(fit.root, self.marker.splits(fit, field_sizes(self.newton.layout, fit))[0])

    def attempt(self, name: str, root: Cell, start: Values, *, most: int = MOST_STEPS) -> Coarse | None:
        """Iterate from a start; return None if the equations have no finite value there."""
        if name not in self.tried:
            self.tried.append(name)
        try:
            return Coarse(self.newton.settle(root, start, most=most), name)
        except PiblsError as error:
            self.reason = self.reason or str(error)
            return None

    @property
    def late(self) -> bool:
        """Whether too much of the budget is spent for another attempt."""
        return self.spent > self.room * RATE or bool(self.budget.late)

    def _search_on_finer_trees(self, root: Cell, starts: list[tuple[str, Values]] | None) -> list[Coarse]:
        """Return the best attempt on each of several finer trees, until one is a solution or the work too much."""
        found: list[Coarse] = []
        swept = False
        for level in range(TREES.window):
            # A compromise that settles on coarse cells is no better than a search that goes on on finer ones.
            last = found[-1] if found else None
            if last is not None:
                root = self.finer(last.descent.fit)
            again = None
            if self._ends_early and not self._ended:
                again = self._by_continuation(root)
            elif last is not None and (swept or last.descent.settled or last.descent.residual < SLIGHT):
                again = self.attempt(last.start, root, values_of(self.newton.layout, last.descent.fit))
            if not swept and (again is None or (again.resolved and not again.solved)):
                own = simple_starts(self.newton.layout, root, self.seed) if starts is None else starts
                other, swept = self._sweep(root, own, last=level == TREES.window - 1)
                again = _better(again, other)
            rough = again is None or not again.descent.settled or again.descent.residual > NEGLIGIBLE
            if starts is None and level == 0 and rough:
                again = _better(again, self._by_diffusion(root))
            if starts is None and not self.late and (again is None or not again.descent.settled):
                again = _better(again, self._by_continuation(root))
            if again is not None:
                found.append(again)
                if again.solved:
                    break
            elif last is None:
                break
            if self.late or (swept and self._ended):
                break
        return found

    def _sweep(self, root: Cell, starts: Iterable[tuple[str, Values]], *, last: bool) -> tuple[Coarse | None, bool]:
        """Return the best attempt from several starts, and whether all of them were tried."""
        best: Coarse | None = None
        for name, values in starts:
            found = self.attempt(name, root, values)
            best = _better(best, found)
            if (best is not None and best.solved) or self.late:
                return best, True
            # If not even the linearised problem is resolved, finer cells help more than another start.
            if found is not None and not found.resolved and not last:
                return best, False
        return best, True

    def _by_continuation(self, root: Cell) -> Coarse | None:
        """Continuation: follow the solution from zero as nonlinear terms, sources and data are put in by shares.

        On finer cells it is followed from where it ended on coarser ones, if these resolved the end.
        """
        newton, cells = self.newton, sum(1 for _ in leaves(root))
        if cells in self.ends:
            return None
        last = here = projected(newton.layout, root, values_from(zero, newton.layout.problem))
        before, share, length, doubles, guess = 0.0, 0.0, NEGLIGIBLE, True, here
        ended = self.reached if self._ends_early else None
        if ended is not None:
            length, fit = ended
            guess = projected(newton.layout, root, values_of(newton.layout, fit))
        while share < 1.0 and length >= SLIGHT and not self.late:
            aim = min(1.0, share + length)
            ahead = between(last, here, 1.0 + (aim - share) / (share - before)) if share > 0.0 else guess
            found, resolved = self._stepped(root, ahead, aim)
            if found is None:
                length, guess = MOST * (aim - share), here
            else:
                length = SLIGHT if share == 0.0 and ended is not None else length
                last, here, before, share = here, dict(found), share, aim
                length *= 2.0 if doubles else 1.0
            doubles = found is not None
        if share == 1.0 or length < SLIGHT:
            # Where cells do not resolve the last steps, nothing ends but what these cells can show.
            self.ends[cells] = share if share > 0.0 and resolved else 1.0
        if share == 0.0:
            return None
        followed = Fit(root, tuple(here), here)
        self.reached = share, followed
        return self.attempt("continuation", root, values_of(newton.layout, followed))

    def _stepped(self, root: Cell, ahead: Weights, share: float) -> tuple[Weights | None, bool]:
        """Return the solution for a share of the load near an expected one, if any; and whether cells resolve steps."""
        try:
            found = self.newton.descend(root, ahead, share=share, most=MOST_STEPS // 2)
        except PiblsError:
            return None, False
        leaps = share > NEGLIGIBLE and self.newton.apart(ahead, found.fit.weights) > MOST
        met = found.settled and found.residual < NEGLIGIBLE and not leaps
        return found.fit.weights if met else None, leaps or found.linear < MOST * found.residual

    @property
    def _ends_early(self) -> bool:
        """Whether the branch of solutions from zero ends before all of the load on the finest cells so far."""
        return bool(self.ends) and self.ends[max(self.ends)] < 1.0

    @property
    def _ended(self) -> bool:
        """Whether the branch of solutions from zero ends before all of the load, on finer cells no later."""
        *_, coarse, fine = [1.0, 1.0, *(self.ends[cells] for cells in sorted(self.ends))]
        return coarse < 1.0 and fine < min(1.0, (1.0 + NEGLIGIBLE) * coarse)

    def _by_diffusion(self, root: Cell) -> Coarse | None:
        """Continuation: follow the solution from a larger diffusion, which allows no layers, to the given one."""
        newton = self.newton
        factor = diffusion_ratio(newton.layout, root)
        start = harmonic(newton.layout, root)
        if start is None or factor < 1.0 / NEGLIGIBLE:
            return None
        # A step is the change of the logarithm of the diffusion.
        here, weights, step = None, projected(newton.layout, root, start), 1.0
        tree, near, trial, levels = root, weights, factor, 0
        self.tried.append("larger diffusion")
        while not self.late:
            try:
                found = newton.descend(tree, near, diffusion=trial, most=MOST_STEPS // 2)
            except PiblsError:
                found = None
            # A small residual means that a solution is near, even while layers still move.
            if found is not None and found.residual < SLIGHT:
                if trial == 1.0:
                    return Coarse(found, "larger diffusion")
                here, root, weights, factor = found, found.fit.root, found.fit.weights, trial
                step = min(2 * step, 1.0)
            elif found is not None and found.linear >= SLIGHT and levels < TREES.window - 1:
                tree, levels = self.finer(found.fit), levels + 1
                near = projected(newton.layout, tree, values_of(newton.layout, found.fit), found.fit.weights)
                continue
            else:
                step /= 2
                if here is None or step < NEGLIGIBLE:
                    return None
            tree, near, trial, levels = root, weights, max(1.0, factor / math.exp(step)), 0
        return None

    def end_beyond(self, root: Cell) -> str:
        """Say where the branch of solutions from zero ends, if it does on a tree and on a finer one."""
        # To find out costs no more than the solve did.
        self.first, self.room = self.budget.operations, self.spent / RATE
        while not self._ended and not self.late:
            followed = self._by_continuation(root if self.reached is None else self.finer(self.reached[1]))
            if followed is None or (self.reached is not None and self.reached[0] == 1.0):
                break
        return self._end_in_words if self._ended else ""

    @property
    def _end_in_words(self) -> str:
        coarse, fine = (100 * self.ends[cells] for cells in sorted(self.ends)[-2:])
        return (
            f"Followed from zero, the branch of solutions ends where {fine:.0f} % of nonlinear terms, sources and data "
            f"are put in ({coarse:.0f} % on coarser cells): it turns back or becomes "
            f"infinitely steep there. The problem may have no solution. {_REMEDY}"
        )

    def _failure(self, found: list[Coarse]) -> str:
        """Return the sentence that there seems to be no solution, or an empty string.

        There seems to be none if the iteration settles on neither of the last two trees that resolve its linear steps,
        or if the branch of solutions ends before all of the load is put in.
        """
        resolved = [one for one in found if one.resolved]
        tried = f"No solution was found from {', '.join(self.tried)}"
        if self._ended:
            return f"{tried}. {self._end_in_words}"
        # Where slopes have several roots, simple starts are as far from a solution as any.
        several = any(form.has_roots for form in self.newton.layout.problem.laws.forms)
        if several or len(resolved) < 2 or any(one.descent.settled for one in resolved[-2:]):
            return ""
        kept = f"keeps a relative residual of {min(one.descent.residual for one in resolved):.1g}"
        return f"{tried}: the best compromise {kept} however fine the cells are. The problem may have none. {_REMEDY}"

    def _branches(self, chosen: Coarse) -> str:
        """Search for another solution from larger starts; return a sentence if there is one."""
        newton = self.newton
        domain = newton.layout.problem.domain
        if domain.time is not None and domain.space:
            return ""
        root = chosen.descent.fit.root
        # Where the conditions do not determine a bump, as of first-order equations, multiples of the solution serve.
        shape = bump(newton.layout, root) or values_of(newton.layout, chosen.descent.fit)
        limit = self.spent + max(MOST * self.spent, SLIGHT * self.budget.left * RATE)
        for amplitude in _AMPLITUDES:
            if self.spent > limit or self.budget.late:
                break
            other = self._other(chosen, scaled(shape, amplitude), limit)
            if other is not None:
                sizes = [self._root_mean_square(one.descent.fit) for one in (chosen, other)]
                return (
                    f"The problem has more than one solution: this is the one reached from {chosen.start}, of root "
                    f"mean square {sizes[0]:.3g}; another has {sizes[1]:.3g}. Choose by start=."
                )
        return ""

    def _other(self, chosen: Coarse, start: Values, limit: float) -> Coarse | None:
        """Return a second solution that persists on a finer tree, or None."""
        found = self.attempt("a larger start", chosen.descent.fit.root, start, most=MOST_STEPS // 2)
        before: Coarse | None = None
        for _ in range(TREES.window):
            if found is None or found.descent.residual > MOST or (found.resolved and not found.descent.settled):
                return None
            away = self._apart(chosen, found)
            if away < NEGLIGIBLE:
                return None
            # A solution that still moves under refinement, or could move freely, is not confirmed.
            stays = before is not None and self._apart(before, found) < NEGLIGIBLE * away
            if found.solved and stays and self.newton.sensitivity() < 1.0 / NEGLIGIBLE:
                return found
            if self.spent > limit:
                return None
            before, fit = found if found.solved else None, found.descent.fit
            found = self.attempt(
                "a larger start", self.finer(fit), values_of(self.newton.layout, fit), most=MOST_STEPS // 2
            )
        return None

    def _apart(self, one: Coarse, two: Coarse) -> float:
        """Return the relative distance of two solutions; the second is on the same tree or a finer one."""
        first, second = one.descent.fit, two.descent.fit
        apart, size, _ = distances(self.newton.layout, first, self.newton.layout, second)
        own = size + field_sizes(self.newton.layout, first)
        return float((apart / own).max())

    def _root_mean_square(self, fit: Fit) -> float:
        total = sum(squares(self.newton.layout, part, weights).mean() for part, weights in fit.weights.items())
        return float(np.sqrt(total / sum(part.volume for part in fit.parts)))


def _rank(one: Coarse) -> tuple[bool, float]:
    return not one.descent.settled, one.descent.residual


def _better(one: Coarse | None, two: Coarse | None) -> Coarse | None:
    return min((a for a in (one, two) if a is not None), key=_rank, default=None)
