"""Solutions between kept ones: where a coefficient moves, a picture costs no factorisation.

On given trees the weights of a solution are a rational function of a coefficient, whatever the equations are. The one
that goes through most kept solutions, and comes closest to the others, follows them to several digits from a handful.
Where the last two such functions differ most, the next solution is made; they are believed once they agree
everywhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pibls.budget import Budget
from pibls.cells.fitters import LinearFitter
from pibls.cells.loop import Loop
from pibls.cells.outcome import Comparison, field_sizes
from pibls.cells.overlay import Overlay, distances
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import Problem
from pibls.refinement import Course
from pibls.refinement.patience import TREES
from pibls.refinement.standards import NEGLIGIBLE, PLAIN
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.status import Status
from pibls.tuning.alike import keeps_trees
from pibls.tuning.prepared import Prepared

__all__ = ["Between"]

_Shares = tuple[FloatArray, FloatArray]
"""Shares of the kept solutions at some values: without the last one, and with it; shape (values, kept)."""


@dataclass(frozen=True, eq=False, repr=False)
class _Kept:
    """Solutions on both trees for one value of the parameter."""

    value: float
    found: Comparison

    @property
    def fits(self) -> tuple[Fit, Fit]:
        """The solutions on the coarser tree and on the finer one."""
        return self.found.fit, self.found.better


@dataclass(eq=False, repr=False)
class Between:
    """Solutions for the values of one parameter in a range, on the two trees that a prepared solution rests on.

    Attributes
    ----------
    prepared
        The problem for one value of the parameter, with its solution.
    problem_at
        Returns the problem for another value.
    start
        The value of the prepared problem.
    values
        Increasing values among which those to solve for are chosen.
    most
        Most solutions that are made.

    Examples
    --------
    >>> import numpy as np, pibls as pb
    >>> x, y, k = *pb.coordinates("x y"), pb.parameter("k")
    >>> u = pb.field("u", x, y)
    >>> plate = pb.Problem(-k * pb.laplacian(u) + u - 1, pb.Rectangle((x, 0, 1), (y, 0, 1)), [pb.Dirichlet(u, 0)])
    >>> prepared = pb.prepare(plate.at(k=1.0), tol=1e-4)
    >>> between = Between(prepared, lambda value: plate.at(k=value), 1.0, np.linspace(0.5, 2.0, 50))
    >>> while between.grow():
    ...     pass
    >>> found = between.at(1.234567)
    >>> print(found.status, bool(abs(found([[0.5, 0.5]]) - pb.solve(plate.at(k=1.234567))([[0.5, 0.5]])) < 1e-4))
    converged True
    """

    prepared: Prepared
    problem_at: Callable[[float], Problem]
    start: float
    values: FloatArray
    most: int = 24
    kept: list[_Kept] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.goal = max(self.prepared.tol, PLAIN)
        quarter = len(self.values) // 4
        self.inside = self.values[quarter], self.values[-1 - quarter]
        if self.prepared.comparison is None:
            self.made = self.most
        else:
            self.kept.append(_Kept(self.start, self.prepared.comparison[0]))

    def grow(self) -> bool:
        """Make one more solution, where it is wanted most; return whether there is more to do."""
        value = self._next()
        if value is None:
            return False
        found = self._solved(value)
        self.made += 1
        if found is None or found.estimate > self.goal:
            self._leave_out(value, too_coarse=found is not None)
        else:
            self.kept.append(_Kept(value, found))
            self.__dict__.pop("_curve", None)
        return True

    def _next(self) -> float | None:
        """Return the next value to solve for; None if solutions agree, or if there are enough of them."""
        if self.made >= self.most or len(self.values) == 0:
            return None
        # Both ends first after some inside, since they tell how far these trees serve.
        first = (own for own in (*self.inside, self.values[0], self.values[-1]) if self.reaches(own))
        found = next((float(own) for own in first if self._is_new(own)), None)
        if found is not None or len(self.kept) < 3:  # two functions to compare need three solutions
            return found
        apart = self._curve.apart(self.values)
        if apart.max() <= NEGLIGIBLE * self.prepared.tol:
            return None
        return next((own for own in self.values[np.argsort(-apart)].tolist() if self._is_new(own)), None)

    def _is_new(self, value: float) -> bool:
        return all(value != own.value for own in self.kept)

    def _leave_out(self, value: float, *, too_coarse: bool) -> None:
        """Leave out a value and those beyond it; where trees are too coarse for it, those half-way to it, too."""
        if too_coarse:
            nearest = min((own.value for own in self.kept), key=lambda own: abs(own - value))
            value = (value + nearest) / 2 if (nearest < value) == (self.start < value) else value
        self.values = self.values[self.values < value if self.start < value else self.values > value]

    def _solved(self, value: float) -> Comparison | None:
        """Return the solutions on both trees for a value of the parameter; None if there are none."""
        assert self.prepared.comparison is not None
        old, _ = self.prepared.comparison
        try:
            problem = self.problem_at(value)
            if not keeps_trees(self.prepared.problem, problem):
                return None
            pairs = (old.fit_layout, old.fit.root), (old.better_layout, old.better.root)
            with blas_threads(most=1):
                solvers = [TreeSolver(Rows(layout.restated(problem))) for layout, _ in pairs]
                fit, better = (own.solve(root) for own, (_, root) in zip(solvers, pairs, strict=True))
                sensitivity = solvers[1].weakest()[0]
        except (PiblsError, np.linalg.LinAlgError):
            return None
        one, two = (own.layout for own in solvers)
        found = replace(old, fit=fit, fit_layout=one, better=better, better_layout=two, sensitivity=sensitivity)
        return self._judged(found, distances(one, fit, two, better))[1]

    def _judged(self, found: Comparison, gaps: tuple[FloatArray, ...]) -> tuple[Loop, Comparison]:
        """Return the comparison of two solutions with its estimate, from their distance."""
        course: Course[Comparison] = Course(Budget.of(self.prepared.budget), TREES, lambda *_: None)
        fitter = LinearFitter(TreeSolver(Rows(found.fit_layout)), course.budget)
        loop = Loop(fitter, self.prepared.tol, course, self.prepared.seed)
        made = loop.restated(found, gaps)
        course.comparisons.append(made)
        course.note(loop.stage(made))
        return loop, made

    @cached_property
    def _curve(self) -> _Curve:
        return _Curve.of(self.kept)

    @property
    def is_ready(self) -> bool:
        """Whether solutions between the kept ones are believed: the last one changed them nowhere."""
        known = len(self.kept) > 2 and len(self.values) > 0
        return known and bool(self._curve.apart(self.values).max() <= NEGLIGIBLE * self.goal)

    def reaches(self, value: float) -> bool:
        """Tell whether a value is in the range of those that are known, or will be."""
        return len(self.values) > 0 and bool(self.values[0] <= value <= self.values[-1])

    def at(self, value: float, problem: Problem | None = None) -> Solution | None:
        """Return the solution for a value of the parameter; None if it is not known to be accurate.

        Its error includes that of leaving out the last of the kept solutions.
        """
        if not (self.is_ready and self.reaches(value)):
            return None
        problem = problem or self.problem_at(value)
        assert self.prepared.comparison is not None
        old, _ = self.prepared.comparison
        fits = self._curve.at(value)
        nearest = min(self.kept, key=lambda own: abs(own.value - value)).found
        layouts = old.fit_layout.restated(problem), old.better_layout.restated(problem)
        found = replace(old, fit=fits[0], fit_layout=layouts[0], better=fits[1], better_layout=layouts[1])
        found = replace(found, sensitivity=nearest.sensitivity)
        loop, made = self._judged(found, self._overlay.distances(*fits))
        if not made.estimate <= self.goal:
            return None
        words = f"Between {len(self.kept)} values that were solved for: the estimated error is {made.estimate:.1e}."
        status = Status.CONVERGED if made.estimate <= self.prepared.tol else Status.STALLED
        return loop.solution(made, made.estimate, status, words)

    @cached_property
    def _overlay(self) -> Overlay:
        own = self.kept[0].found
        return Overlay.of(own.fit_layout, own.fit.parts, own.better_layout, own.better.parts, keeps=True)


@dataclass(frozen=True, eq=False, repr=False)
class _Curve:
    """Rational functions through kept solutions.

    Attributes
    ----------
    places
        The values of the parameter.
    stacks
        For each tree, the weights of all kept solutions, shape (kept, parts, fields, functions).
    fits
        A solution on each tree, for its parts.
    residuals
        For each tree, the residuals of parts, shape (kept, parts).
    triangle
        Coordinates of the kept solutions on the finer tree, one column each: their distances are those of solutions,
        relative to the size of each field.
    """

    places: FloatArray
    stacks: tuple[FloatArray, FloatArray]
    fits: tuple[Fit, Fit]
    residuals: tuple[FloatArray, FloatArray]
    triangle: FloatArray

    @classmethod
    def of(cls, kept: list[_Kept]) -> _Curve:
        """Collect kept solutions."""
        first, trees = kept[0], (0, 1)
        stacks = [np.array([[own.fits[k].weights[p] for p in first.fits[k].parts] for own in kept]) for k in trees]
        residuals = [np.array([[own.fits[k].residuals[p] for p in first.fits[k].parts] for own in kept]) for k in trees]
        sizes = field_sizes(first.found.better_layout, first.found.better)
        roots = np.sqrt([part.extent for part in first.fits[1].parts])
        scaled = stacks[1] * roots[:, None, None] / np.where(sizes > 0.0, sizes, 1.0)[:, None]
        triangle = np.asarray(np.linalg.qr(scaled.reshape(len(kept), -1).T, mode="r"))
        places = np.array([own.value for own in kept])
        return cls(places, (stacks[0], stacks[1]), first.fits, (residuals[0], residuals[1]), triangle)

    def shares(self, values: FloatArray) -> _Shares:
        """Return the shares of kept solutions in those at some values, without the last one and with it."""
        one = self._through(len(self.places) - 1, values)
        return np.pad(one, ((0, 0), (0, 1))), self._through(len(self.places), values)

    def _through(self, count: int, values: FloatArray) -> FloatArray:
        """Return shares of the first kept solutions: exact at most of them, and as close as can be at some between.

        As few are left to be met as tell the factors: each gives as many equations as the solutions have dimensions.
        """
        places, columns = self.places[:count], self.triangle[:, :count]
        dimensions = int(np.linalg.matrix_rank(columns, rtol=math.sqrt(sys.float_info.epsilon)))
        left = max(1, math.ceil(count / (1 + dimensions)))
        away = np.argsort(places)[((np.arange(left) + 0.5) * count / left).astype(int)]
        rest = np.setdiff1d(np.arange(count), away)
        slopes = [(columns[:, rest] - columns[:, [own]]) / (places[own] - places[rest]) for own in away]
        factors = np.linalg.svd(np.concatenate(slopes))[2][-1]
        gaps = values[:, None] - places[rest]
        met = gaps == 0.0
        parts = factors / np.where(met, 1.0, gaps)
        found = np.zeros((len(values), count))
        # Where factors cancel, the function has a pole, and both functions differ.
        with np.errstate(divide="ignore", invalid="ignore"):
            found[:, rest] = np.where(met.any(axis=1, keepdims=True), met, parts / parts.sum(axis=1, keepdims=True))
        return found

    def apart(self, values: FloatArray) -> FloatArray:
        """Return by how much the last kept solution changes those at some values, relative to their size."""
        one, two = self.shares(values)
        change, size = (np.linalg.norm(own @ self.triangle.T, axis=1) for own in (two - one, two))
        found = np.divide(change, size, out=np.full(len(values), np.inf), where=size > 0.0)
        return np.where(np.isfinite(found), found, np.inf)

    def at(self, value: float) -> tuple[Fit, Fit]:
        """Return the solution on the coarser tree without the last kept one, and that on the finer tree with it."""
        one, two = (own[0] for own in self.shares(np.array([value])))
        return self._mixed(0, one, np.abs(two)), self._mixed(1, two, np.abs(two))

    def _mixed(self, tree: int, shares: FloatArray, sizes: FloatArray) -> Fit:
        """Return a solution on a tree from shares of the kept ones, with the residuals of as much of each."""
        weights, left, old = (
            np.tensordot(shares, self.stacks[tree], axes=1),
            sizes @ self.residuals[tree],
            self.fits[tree],
        )
        pairs = dict(zip(old.parts, weights, strict=True)), dict(zip(old.parts, left.tolist(), strict=True))
        return Fit(old.root, old.parts, *pairs, old.unknowns)
