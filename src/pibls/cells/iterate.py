"""Gauss–Newton steps on a tree of cells: each solves the problem linearised at the last state, shortened if need be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.state import TreeState, Values, Weights, between, projected, squares, values_of
from pibls.cells.tree import Cell, contacts, leaves
from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.newton import LENGTHS, End, crawls, descend, record, shortened
from pibls.quadrature.roots import CLOSE
from pibls.refinement import SMALLEST, VISIBLE
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, SLIGHT
from pibls.solution.sizes import field_scales

__all__ = ["MOST_STEPS", "IterationResult", "NewtonFitter", "faces_of", "residuals"]

MOST_STEPS = 25


@dataclass(frozen=True, eq=False)
class IterationResult:
    """The result of an iteration on a tree.

    Attributes
    ----------
    fit
        The last iterate.
    settled
        Whether further steps would not change it noticeably.
    residual
        Its residual, relative to the solution.
    linear
        The relative residual of the last linear problem: the share that these cells cannot resolve.
    """

    fit: Fit
    settled: bool
    residual: float
    linear: float


@dataclass(eq=False)
class NewtonFitter:
    """Solves a nonlinear problem on one tree after another, starting from the solution on the last one.

    Attributes
    ----------
    layout
        The problem on its domain.
    tol
        The requested relative error.
    budget
        Counts the operations.
    curvature
        Largest ratio, on the last tree, of a step to the square of the step before.
    history
        Per step: norm of the residual, norm of its removable part, and step length.
    """

    layout: Layout
    tol: float
    budget: Budget = field(default_factory=lambda: Budget(np.inf))
    curvature: float = np.inf
    history: list[dict[str, Any]] = field(default_factory=list)
    _reached: dict[Fit, IterationResult] = field(default_factory=dict)
    _last: TreeSolver | None = None
    _steps: float = 0.0  # number of steps on the last tree

    def work(self, cells: float, new: float) -> float:
        """Return the operations for a tree: as many steps as on the last one, each of which factorises all cells."""
        del new
        return 0.0 if self._last is None else self._steps * self._last.work(cells, cells)

    @property
    def memory(self) -> float:
        """Bytes held by the last solution."""
        return 0.0 if self._last is None else self._last.memory

    def fit(self, root: Cell, near: Fit | None) -> Fit:
        """Return the solution on a tree, starting from one on a coarser tree."""
        assert near is not None
        return self.settle(root, values_of(self.layout, near), near.weights).fit

    def settle(
        self, root: Cell, values: Values, known: Weights | None = None, *, most: int = MOST_STEPS
    ) -> IterationResult:
        """Iterate from given fields until the steps are small relative to the error."""
        return self.descend(root, projected(self.layout, root, values, known), most=most)

    def doubt(self, fit: Fit) -> str:
        """Return a sentence why a fit may not be a solution, or an empty string."""
        found = self._reached[fit]
        if found.settled and found.residual < VISIBLE:
            return ""
        fact = "The equations keep" if found.settled else "The nonlinear iteration does not settle and keeps"
        return (
            f"{fact} a relative residual of {found.residual:.1g}: a layer is not resolved, or there is no solution on "
            "the whole domain, as when it blows up or a branch turns back."
        )

    def sensitivity(self) -> float:
        """Return the sensitivity of the last linearised problem to changes of its data."""
        return 1.0 if self._last is None else self._last.weakest()[0]

    def spread(self, fit: Fit, sizes: FloatArray) -> float:
        """Return one: cells do not become richer for small fields."""
        del fit, sizes
        return 1.0

    def richer(self) -> None:
        """Return None: solutions of a nonlinear problem are compared on a finer tree."""

    def enriched(self, degrees: int) -> None:
        """Return None, for the same reason."""
        del degrees

    def descend(
        self, root: Cell, weights: Weights, *, share: float = 1.0, diffusion: float = 1.0, most: int = MOST_STEPS
    ) -> IterationResult:
        """Iterate from weights on a tree, with a share of the load or a multiple of the diffusion."""
        # A diverging state overflows before the iteration notices.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            iteration = _TreeIteration(self, Rows(self.layout, share=share, diffusion=diffusion), root)
            self._steps = 0.0
            start = iteration.anew(weights)
            point, end = descend(iteration, start, most)
            assert iteration.full is not None
            fit = replace(iteration.full, weights=dict(point.state.weights), residuals=point.residuals)
            size = max(iteration.size(fit), CLOSE * start.norm)
        settled = end is End.SETTLED or fit.residual <= SMALLEST * size
        found = self._reached[fit] = IterationResult(fit, settled, fit.residual / size, iteration.full.residual / size)
        return found

    def solved(self, rows: Rows, root: Cell) -> Fit:
        """Return the solution of the problem linearised at the state of the rows."""
        self._last = solver = TreeSolver(rows)
        found = solver.solve(root)
        self.budget.spend(solver.flops)
        self._steps += 1.0
        return found

    def apart(self, one: Weights, two: Weights, like: Weights | None = None) -> float:
        """Return the distance of two functions on a tree, relative to the second or to a third."""
        gap, own = self._norms(one, two), self._norms(None, two if like is None else like)
        return float((gap / field_scales(self.layout.problem, own)).max())

    def _norms(self, one: Weights | None, two: Weights) -> FloatArray:
        gaps = ((part, own if one is None else own - one[part]) for part, own in two.items())
        return np.asarray(np.sqrt(sum(squares(self.layout, part, gap) for part, gap in gaps)))


@dataclass(frozen=True, eq=False)
class _TreePoint:
    """A state on a tree, the residual of every part, and the total norm."""

    state: TreeState
    residuals: dict[CellPart, float]
    norm: float


@dataclass(frozen=True, eq=False)
class _TreeStep:
    """The solution of the problem linearised at a state.

    Attributes
    ----------
    full
        The solution of the linearised problem, which the full step leads to.
    distance
        Relative length of the full step.
    removable
        The part of the residual that the step removes in the linear problem.
    goal
        Step length below which nothing changes.
    """

    full: Fit
    distance: float
    removable: float
    goal: float


@dataclass(eq=False)
class _TreeIteration:
    """A nonlinear problem on one tree, as the Gauss–Newton iteration sees it."""

    newton: NewtonFitter
    rows: Rows
    root: Cell
    full: Fit | None = None
    length: float = 1.0
    curved: bool = False
    ahead: Fit | None = None  # the solution of the next linear problem, if it is known
    distances: list[float] = field(default_factory=list)  # lengths of consecutive full steps
    course: list[tuple[float, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.faces = faces_of(self.rows, self.root)

    def at(self, weights: Weights) -> _TreePoint:
        """Return the point with given weights; its norm is infinite where the equations have no value."""
        state = TreeState(self.rows.layout, weights)
        try:
            return self._point(state, residuals(self.rows, self.faces, state))
        except PiblsError:
            # A step may leave the domain of a logarithm.
            return _TreePoint(state, {}, np.inf)

    def anew(self, weights: Weights) -> _TreePoint:
        """Return the point with given weights, and rescale the rows there."""
        self.rows.forget()
        self.ahead = None
        state = self.rows.state = TreeState(self.rows.layout, weights)
        return self._point(state, residuals(self.rows, self.faces, state))

    def _point(self, state: TreeState, found: dict[CellPart, float]) -> _TreePoint:
        norm = self._norm(found)
        return _TreePoint(state, found, norm if np.isfinite(norm) else np.inf)

    def linearise(self, here: _TreePoint) -> _TreeStep:
        """Solve the problem linearised at a point."""
        self.rows.state = here.state
        self.full = full = self.newton.solved(self.rows, self.root) if self.ahead is None else self.ahead
        self.ahead = None
        distance = self.newton.apart(here.state.weights, full.weights)
        removable = float(np.sqrt(max(0.0, here.norm**2 - self._norm(full.residuals) ** 2)))
        residual = full.residual / self.size(full)
        goal = max(SLIGHT * self.newton.tol, SLIGHT * min(residual, VISIBLE))
        return _TreeStep(full, distance, removable, goal)

    def settled(self, here: _TreePoint, model: _TreeStep) -> _TreePoint | None:
        """Return the point after a last, full step without evaluating residuals there; None if it is not the last."""
        step, goal = model.distance, model.goal
        # The step after a short one changes nothing, whichever way rounding moves the residual.
        last = step <= goal or (step <= PLAIN and self._expected(step) <= goal)
        if not last and (model.removable > SLIGHT * here.norm or step > max(SMALLEST, goal)):
            return None
        found = self._point(TreeState(self.rows.layout, model.full.weights), model.full.residuals)
        self._note(found, model, 1.0)
        return found

    def step(self, here: _TreePoint, model: _TreeStep) -> _TreePoint | None:
        """Shorten the step until the residual falls or the next step is shorter; rescale rows after a long step."""

        def trial(length: float) -> tuple[float, _TreePoint]:
            point = self.at(between(here.state.weights, model.full.weights, length))
            return point.norm, point

        found = shortened(here.norm, model.removable, trial)
        if found is None or found[0] < NEGLIGIBLE:
            found = self._contracting(here, model, trial) or found
        if found is None:
            return None
        self.length, there = found
        if model.distance * self.length > NEGLIGIBLE:
            there = self.anew(there.state.weights)
        self._note(there, model, self.length)
        return there

    def judged(self, before: _TreePoint, model: _TreeStep, here: _TreePoint | None) -> End | None:
        """Return why the iteration ends after a step, or None."""
        del before
        if here is None:
            return End.STAGNATED
        whole = self.length == 1.0
        if whole and self.ahead is None and self._expected(model.distance) <= model.goal:
            return End.SETTLED
        self.distances = [*self.distances, model.distance] if whole else []
        self.course.append((here.norm, model.distance))
        return End.STAGNATED if crawls(self.course) else None

    def size(self, full: Fit) -> float:
        """Return the L2 size of the solution in the units of the rows."""
        units = ((part, own / self.rows.scales(part).units[:, None]) for part, own in full.weights.items())
        return float(np.sqrt(sum(squares(self.rows.layout, part, own).sum() for part, own in units))) or 1.0

    def _expected(self, step: float) -> float:
        """Return the expected length of the next step: Newton steps shrink quadratically."""
        newton = self.newton
        found = newton.curvature * step**2
        if self.distances and self.distances[-1] < NEGLIGIBLE:
            if step > SMALLEST:
                ratio = step / self.distances[-1] ** 2
                newton.curvature = max(newton.curvature, ratio) if self.curved else ratio
                self.curved = True
            found = min(found, step**2 / self.distances[-1])
        return found

    def _contracting(
        self, here: _TreePoint, model: _TreeStep, trial: Callable[[float], tuple[float, _TreePoint]]
    ) -> tuple[float, _TreePoint] | None:
        """Return the longest step after which the next step is shorter, or None.

        The residual may have to rise first: moving a layer changes the solution little and the residual much.
        """
        for length in LENGTHS:
            norm, there = trial(length)
            if norm == np.inf:
                continue
            self.rows.state = there.state
            try:
                ahead = self.newton.solved(self.rows, self.root)
            except (PiblsError, np.linalg.LinAlgError):
                continue
            steps = (here.state.weights, model.full.weights), (there.state.weights, ahead.weights)
            now, then = (self.newton.apart(one, two, there.state.weights) for one, two in steps)
            if then <= (1.0 - NEGLIGIBLE * length) * now:
                self.ahead = ahead
                return length, there
        return None

    def _note(self, point: _TreePoint, model: _TreeStep, length: float) -> None:
        self.newton.history.append(record(point.norm, model.removable, length))

    def _norm(self, found: dict[CellPart, float]) -> float:
        """Return the norm that the iteration minimises, from the residuals of parts."""
        return float(np.sqrt(sum((self.rows.emphasis(part) * value) ** 2 for part, value in found.items())))


def faces_of(rows: Rows, root: Cell) -> tuple[Face, ...]:
    """Return all faces between the parts of a tree."""
    found = (rows.layout.faces(contact) for contact in contacts(root, rows.traces.periodic))
    return tuple(chain.from_iterable(chain(found, map(rows.layout.interface_faces, leaves(root)))))


def residuals(rows: Rows, faces: tuple[Face, ...], state: TreeState) -> dict[CellPart, float]:
    """Return the residual norm of each part at a state; on faces, both parts share the best common value.

    Balance sums over branches follow from these residuals and are left out.
    """
    before, rows.state = rows.state, state
    try:
        units = {part: rows.scales(part).units for part in state.weights}
        weights = {part: (own / units[part][:, None]).ravel() for part, own in state.weights.items()}
        found = {part: float(np.square(rows.residual(part)).sum()) for part in weights}
        pairs = [(part, face) for face in faces for part in (face.below, face.above)]
        sides = [
            block @ weights[part] - rows.traces.right(part, face)[:, 0]
            for block, (part, face) in zip(rows.traces.rows_on(pairs), pairs, strict=True)
        ]
        for face, below, above in zip(faces, sides[::2], sides[1::2], strict=True):
            # The best shared value is the mean.
            gap = float(np.square(below - above).sum()) / 4
            found[face.below] += gap
            found[face.above] += gap
        for statement in rows.averages:
            shares = ((rows.average(part, units[part], statement), own) for part, own in weights.items())
            missing = sum(float(row @ own + stated.factors @ stated.source) for (row, stated), own in shares)
            for part in found:
                found[part] += (missing / len(found)) ** 2
    finally:
        rows.state = before
    return {part: float(np.sqrt(square)) for part, square in found.items()}
