"""A linear problem that is solved many times: other sources and values cost a back-substitution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.cells import solve_cells, suits_cells
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.data_roughness import AT_ONCE
from pibls.cells.fitters import LinearFitter
from pibls.cells.linear import Start, start_of
from pibls.cells.loop import Loop
from pibls.cells.outcome import Comparison
from pibls.cells.prepared_tree import PreparedPair
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit
from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.problem import Field, Form, Problem
from pibls.problem.analysis import analysis_of
from pibls.problem.interface import AnyCondition
from pibls.problem.unknown_numbers import refuse_open
from pibls.refinement import Course, Reason, Stop
from pibls.refinement.patience import TREES
from pibls.refinement.standards import NEGLIGIBLE
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.status import Status
from pibls.tuning.alike import changed_forms, is_alike
from pibls.tuning.automatic import solve
from pibls.tuning.diagnosis import flaw_of

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A linear problem with its factors: :meth:`solve` solves it again for other right-hand sides.

    Attributes
    ----------
    problem
        The problem as it was stated.
    solution
        Its solution.
    tol
        The tolerance that all solutions meet.
    comparison
        The two solutions on trees that its estimate rests on, and what made them; None if they are in doubt.
    """

    problem: Problem
    solution: Solution
    tol: float
    seed: int
    budget: float
    comparison: tuple[Comparison, LinearFitter] | None

    def solve(
        self,
        source: sp.Expr | float | Sequence[sp.Expr | float] | None = None,
        conditions: Sequence[AnyCondition] | None = None,
    ) -> Solution:
        """Solve the same equations with other sources, or other values in the conditions.

        Parameters
        ----------
        source
            The new right-hand side of the equation, once everything with an unknown in it is on the left. A list for
            several equations.
        conditions
            All conditions, with the same left-hand sides in the same places as before.

        Returns
        -------
        Solution
            It meets the tolerance like that of :func:`~pibls.solve`: where the cells of the first solution are too
            coarse for the new data, the problem is solved anew.

        Examples
        --------
        >>> import sympy as sp, pibls as pb
        >>> x = pb.coordinates("x")
        >>> u = pb.field("u", x)
        >>> beam = pb.Problem(sp.Eq(-u.diff(x, 2), 1), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
        >>> prepared = pb.prepare(beam)
        >>> solution = prepared.solve(source=sp.pi**2 * sp.sin(sp.pi * x))
        >>> print(solution.status, f"{solution([0.5])[0]:.6f}")
        converged 1.000000
        """
        return self._solved([self._restated(source, conditions)])[0]

    def solve_many(self, sources: Sequence[Any], conditions: Sequence[AnyCondition] | None = None) -> list[Solution]:
        """Solve for many sources at once, which takes less time than one by one.

        Parameters
        ----------
        sources
            Sources as :meth:`solve` takes them.
        conditions
            The conditions, with other values if need be: the same for all sources.

        Examples
        --------
        >>> import sympy as sp, pibls as pb
        >>> x = pb.coordinates("x")
        >>> u = pb.field("u", x)
        >>> beam = pb.Problem(sp.Eq(-u.diff(x, 2), 1), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
        >>> found = pb.prepare(beam).solve_many([1, 2, sp.Integer(8) * x])
        >>> [round(float(solution([0.5])[0]), 6) for solution in found]
        [0.125, 0.25, 0.5]
        """
        return self.solve_alike([self._restated(source, conditions) for source in sources])

    def solve_alike(self, problems: Sequence[Problem]) -> list[Solution]:
        """Solve problems that :func:`keeps_factors` tells to differ in their data alone."""
        stacks = (problems[start : start + AT_ONCE] for start in range(0, len(problems), AT_ONCE))
        return [solution for stack in stacks for solution in self._solved(stack)]

    def _solved(self, problems: Sequence[Problem]) -> list[Solution]:
        """Return solutions of problems that differ in their data alone."""
        if not any(changed_forms(self.problem, problem) for problem in problems):
            return [self.solution] * len(problems)
        again: Sequence[Solution | None] = [None] * len(problems) if self.comparison is None else self._again(problems)
        alike = [analysis_of(problem).carried == analysis_of(self.problem).carried for problem in problems]
        return [
            (same and made) or solve(problem, tol=self.tol, seed=self.seed, budget=self.budget, progress=False)
            for same, made, problem in zip(alike, again, problems, strict=True)
        ]

    def _restated(self, source: Any, conditions: Sequence[AnyCondition] | None) -> Problem:
        """Return the problem with other data, or refuse it if more than data differ."""
        old = self.problem
        made = old if conditions is None else replace(old, conditions=conditions, exact=None)
        count = len(old.equations)
        if source is not None:
            values = [_known(own, old) for own in (source if isinstance(source, Sequence) else [source])]
            if len(values) != count:
                raise InputError(
                    f"The 'source' parameter of Prepared.solve needs one expression per equation, {count} in all. "
                    f"Got {shorten(source)} instead."
                )
            equations = [
                replace(own, form=own.form.with_source(-value))
                for own, value in zip(made.statements[:count], values, strict=True)
            ]
            written = [
                sp.Eq(own.form.expression + value, value, evaluate=False)
                for own, value in zip(equations, values, strict=True)
            ]
            made = made.with_statements([*equations, *made.statements[count:]], equations=written, exact=None)
        if len(made.statements) != len(old.statements):
            raise InputError(
                f"The 'conditions' parameter of Prepared.solve has {len(made.statements) - count} conditions; the "
                f"prepared problem has {len(old.statements) - count}. Give all of them, with other values only."
            )
        for one, two in zip(old.statements, made.statements, strict=True):
            if not is_alike(one, two):
                raise InputError(
                    f"{two.name} is another equation or holds elsewhere than {one.name} of the prepared problem. Only "
                    "right-hand sides may change; call pibls.prepare with the new problem instead."
                )
        return made

    def _again(self, problems: Sequence[Problem]) -> list[Solution | None]:
        """Return solutions on the prepared trees; None where they are too coarse for the new data."""
        with blas_threads(most=1):
            found = self._on(self._own_trees, problems)
            coarse = [number for number, own in enumerate(found) if own is _Miss.COARSE]
            if coarse and self._finer_trees is not None:
                finer = self._on(self._finer_trees, [problems[number] for number in coarse])
                for number, own in zip(coarse, finer, strict=True):
                    found[number] = own
        return [None if isinstance(own, _Miss) else own for own in found]

    def _on(self, trees: _Trees, problems: Sequence[Problem]) -> list[Solution | _Miss]:
        """Return solutions on given trees."""
        changed = [changed_forms(trees.found.fit_layout.problem, problem) for problem in problems]
        found = list(trees.pair.solved(changed))
        if not found:
            return [_Miss.DOUBTFUL] * len(problems)
        return [
            self._judged(trees, problem, new, *own) for problem, new, own in zip(problems, changed, found, strict=True)
        ]

    def _judged(
        self, trees: _Trees, problem: Problem, changed: dict[int, Form], fit: Fit, other: Fit, gaps: FloatArray
    ) -> Solution | _Miss:
        """Return a fit as a solution if the better one is near enough (see ``gaps``), and cells resolve the data."""
        found = trees.found
        own, layout = found.fit_layout.restated(problem), found.better_layout.restated(problem)
        # Scales of rows depend on coefficients alone.
        rows = Rows(own, _scales=trees.pair.one.solver.rows._scales)
        course: Course[Comparison] = Course(Budget.of(self.budget), TREES, lambda *_: None)
        data = DataRefinement(rows, frozenset(id(form) for form in changed.values()))
        loop = Loop(trees.fitter, self.tol, course, self.seed, data)
        made = loop.restated(replace(found, fit=fit, fit_layout=own, better=other, better_layout=layout), gaps)
        course.comparisons.append(made)
        course.note(loop.stage(made))
        if loop.is_met(made):
            return loop.concluded(Stop(Reason.TOLERANCE))
        return _Miss.DOUBTFUL if loop.doubt else _Miss.COARSE

    @cached_property
    def _own_trees(self) -> _Trees:
        """The trees of the first solution."""
        assert self.comparison is not None
        return _Trees.of(*self.comparison, self.tol)

    @cached_property
    def _finer_trees(self) -> _Trees | None:
        """Trees for a source that is not special in any way; None if there are none.

        The data of the first solution may be special: symmetric, or zero at corners. Then its trees are too coarse for
        other data. These trees do not depend on the data that need them, so that solutions do not depend on the order
        of calls.
        """
        better, layout = self._own_trees.found.better, self._own_trees.found.better_layout
        general = self._restated(self._general, None)
        start = Start(DataRefinement(Rows(layout.restated(general))), better.root)
        solution, found = _solved(general, NEGLIGIBLE * self.tol, Budget.of(self.budget), self.seed, start)
        return None if found is None or solution.status != Status.CONVERGED else _Trees.of(*found, self.tol)

    @property
    def _general(self) -> list[sp.Expr]:
        """Sources that are not special in any way, as large as those of the problem."""
        rng, one = np.random.default_rng((self.seed, 11)), self._own_trees.pair.one
        root, coordinates = one.solver.layout.root, self.problem.domain.coordinates
        local = [(own - low) / size for own, low, size in zip(coordinates, root.low, root.size, strict=True)]
        monomials = [sp.Integer(1), *local, *(one * two for one, two in combinations_with_replacement(local, 2))]
        found = []
        for statement in self.problem.statements[: len(self.problem.equations)]:
            size = float(np.abs(one.points[id(statement.form)][2]).max()) or 1.0
            weights = rng.uniform(0.5, 1.5, len(monomials))
            found.append(size * sp.Add(*(w * m for w, m in zip(weights, monomials, strict=True))))
        return found


class _Miss(Enum):
    """Why prepared trees do not serve other data: they are too coarse, or the estimate is not reliable."""

    COARSE = auto()
    DOUBTFUL = auto()


class _Trees(NamedTuple):
    """Two trees that were compared, with the fitter that has their factors, prepared for other sources."""

    found: Comparison
    fitter: LinearFitter
    pair: PreparedPair

    @classmethod
    def of(cls, found: Comparison, fitter: LinearFitter, tol: float) -> _Trees:
        """Prepare the trees of a comparison."""
        return cls(found, fitter, PreparedPair.of(found, fitter, tol))


def prepare(problem: Problem, *, tol: float = 1e-6, seed: int = 0, budget: float = 10.0) -> Prepared:
    """Solve a linear problem and keep its factors, so that other right-hand sides cost little.

    Parameters
    ----------
    problem
        A linear problem in one to three coordinates; time is one of them.
    tol, seed, budget
        As in :func:`~pibls.solve`.

    Examples
    --------
    >>> import sympy as sp, pibls as pb
    >>> x, y = pb.coordinates("x y")
    >>> u = pb.field("u", x, y)
    >>> plate = pb.Problem(sp.Eq(-pb.laplacian(u), 1), pb.Disk((x, y), (0, 0), 1), [pb.Dirichlet(u, 0)])
    >>> prepared = pb.prepare(plate)
    >>> lifted = prepared.solve(source=4, conditions=[pb.Dirichlet(u, 2)])
    >>> print(f"{lifted([[0.0, 0.0]])[0]:.6f}")
    3.000000
    """
    refuse_open(problem.parameters, "prepare")
    if not problem.is_linear or not suits_cells(problem):
        raise InputError(
            "pibls.prepare keeps the factors of linear problems in one to three coordinates, without unknown numbers. "
            "Solve this one with pibls.solve."
        )
    shared = Budget.of(budget)
    with blas_threads(most=1):
        solution, found = _solved(problem, tol, shared, seed, start_of(problem, tol, shared, seed))
    return Prepared(problem, solution, tol, seed, budget, found if solution.status != Status.ILL_POSED else None)


def _solved(
    problem: Problem, tol: float, budget: Budget, seed: int, start: Start
) -> tuple[Solution, tuple[Comparison, LinearFitter] | None]:
    """Return the solution of a problem, and the comparison behind it with the fitter; None if it is in doubt."""
    found: list[tuple[Comparison, LinearFitter]] = []

    def noted(solution: Solution, loop: Loop) -> tuple[str, str]:
        assert loop.reported is not None
        assert isinstance(loop.fitter, LinearFitter)
        # A solution in doubt tells nothing of trees for other data; the better one of two is compared with both again.
        last, shown = loop.course.comparisons[-1], loop.reported
        found[:] = [] if loop.doubt else [(last if shown.fit is last.better else shown, loop.fitter)]
        return flaw_of(tol, budget, seed, solution, loop)

    solution = solve_cells(problem, tol, budget, seed, lambda *_: None, start=start, diagnose=noted)
    return solution, found[0] if found else None


def _known(value: Any, problem: Problem) -> sp.Expr:
    """Return a source as an expression of the coordinates, or refuse it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = sp.sympify(value, strict=True)
    known = isinstance(value, sp.Expr) and value.free_symbols <= set(problem.domain.coordinates)
    if not known or value.has(Field, sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I):
        raise InputError(
            "The 'source' parameter of Prepared.solve must be an expression of the coordinates or a number, finite and "
            f"real. Got {shorten(value)} instead."
        )
    return value
