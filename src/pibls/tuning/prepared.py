"""A linear problem that is solved many times: other sources and values cost a back-substitution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.cells import solve_cells, suits_cells
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.data_roughness import AT_ONCE
from pibls.cells.evaluation import Sources, Stated
from pibls.cells.fitters import LinearFitter
from pibls.cells.linear import start_of
from pibls.cells.loop import Loop
from pibls.cells.measure import distances
from pibls.cells.outcome import Compared
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.problem import Across, AtPoints, Field, Form, Problem, Statement
from pibls.problem.interface import AnyCondition
from pibls.problem.unknown_numbers import refuse_open
from pibls.refinement import Course, Reason, Stop, verdict
from pibls.refinement.patience import TREES
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.status import Status
from pibls.tuning.automatic import solve
from pibls.tuning.diagnosis import flaw_of

__all__ = ["Prepared", "keeps_factors", "prepare"]


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
    """

    problem: Problem
    solution: Solution
    tol: float
    seed: int
    budget: float
    _found: Compared | None

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

    def solve_restated(self, problem: Problem) -> Solution:
        """Solve a problem that is stated anew, and differs from the prepared one in right-hand sides alone.

        Parameters
        ----------
        problem
            The same equations on the same domain, with the same conditions in the same order; such as
            :meth:`~pibls.Problem.at` makes from other values of parameters that stand in right-hand sides only.

        Examples
        --------
        >>> import sympy as sp, pibls as pb
        >>> x, load = pb.coordinates("x"), pb.parameter("load")
        >>> u = pb.field("u", x)
        >>> beam = pb.Problem(sp.Eq(-u.diff(x, 2), load), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0)])
        >>> prepared = pb.prepare(beam.at(load=1))
        >>> print(f"{prepared.solve_restated(beam.at(load=8))([0.5])[0]:.6f}")
        1.000000
        """
        if problem.domain != self.problem.domain or len(problem.equations) != len(self.problem.equations):
            raise InputError(
                "The 'problem' parameter of Prepared.solve_restated has another domain or other equations than the "
                "prepared one. Only right-hand sides may change; call pibls.prepare with the new problem instead."
            )
        return self._solved([self._checked(problem)])[0]

    def _solved(self, problems: Sequence[Problem]) -> list[Solution]:
        """Return solutions of problems that differ in their data alone."""
        again: Sequence[Solution | None] = [None] * len(problems) if self._found is None else self._again(problems)
        return [
            made or solve(problem, tol=self.tol, seed=self.seed, budget=self.budget, progress=False)
            for made, problem in zip(again, problems, strict=True)
        ]

    def _restated(self, source: Any, conditions: Sequence[AnyCondition] | None) -> Problem:
        """Return the problem with other data, once it is clear that only data differ."""
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
        return self._checked(made)

    def _checked(self, made: Problem) -> Problem:
        """Return a problem that differs from the prepared one in its data alone, or refuse it."""
        old = self.problem
        count = len(old.equations)
        if len(made.statements) != len(old.statements):
            raise InputError(
                f"The 'conditions' parameter of Prepared.solve has {len(made.statements) - count} conditions; the "
                f"prepared problem has {len(old.statements) - count}. Give all of them, with other values only."
            )
        for one, two in zip(old.statements, made.statements, strict=True):
            if not _is_alike(one, two):
                raise InputError(
                    f"{two.name} is another equation or holds elsewhere than {one.name} of the prepared problem. Only "
                    "right-hand sides may change; call pibls.prepare with the new problem instead."
                )
        return made

    def _again(self, problems: Sequence[Problem]) -> list[Solution | None]:
        """Return solutions on the trees of the first one; None where they are too coarse for the new data."""
        found = self._found
        assert found is not None
        changed = [_changed(self.problem, problem) for problem in problems]
        with blas_threads(most=1):
            one, two = (solver.again(_sources(solver, changed)) for solver in self._solvers)
            gaps = distances(found.fit_layout, one.side_by_side, found.better_layout, two.side_by_side)
            each = np.reshape(gaps, (3, len(problems), -1)).transpose(1, 0, 2)
            return [
                self._judged(found, problem, new, one.side(number), two.side(number), each[number])
                for number, (problem, new) in enumerate(zip(problems, changed, strict=True))
            ]

    def _judged(
        self, found: Compared, problem: Problem, changed: dict[int, Form], fit: Fit, other: Fit, gaps: FloatArray
    ) -> Solution | None:
        """Return a fit as a solution if the better one is near enough, and no data are narrower than cells.

        The distance of both, the size of the better one and their largest distance at a point are given.
        """
        own, layout = found.fit_layout.restated(problem), found.better_layout.restated(problem)
        # Scales of rows depend on coefficients alone.
        rows, budget = Rows(own, _balances=self._solvers[0].rows._balances), Budget.of(self.budget)
        course: Course[Compared] = Course(budget, TREES, lambda *_: None)
        data = DataRefinement(rows, frozenset(id(form) for form in changed.values()))
        loop = Loop(LinearFitter(TreeSolver(rows), budget), self.tol, course, self.seed, data)
        made = loop.restated(replace(found, fit=fit, fit_layout=own, better=other, better_layout=layout), gaps)
        course.note(loop.stage(made))
        if not loop.is_met(made):
            return None
        return loop.solution(made, made.estimate, *verdict(self.tol, made.estimate, Stop(Reason.TOLERANCE)))

    @cached_property
    def _solvers(self) -> list[TreeSolver]:
        """Solvers with the factors of both trees."""
        found = self._found
        assert found is not None
        solvers = [TreeSolver(Rows(layout)) for layout in (found.fit_layout, found.better_layout)]
        for solver, fit in zip(solvers, (found.fit, found.better), strict=True):
            solver.solve(fit.root)
        return solvers


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
    found: list[Compared] = []
    shared = Budget.of(budget)

    def noted(solution: Solution, loop: Loop) -> tuple[str, str]:
        assert loop.reported is not None
        found[:] = [loop.reported]
        return flaw_of(tol, shared, seed, solution, loop)

    with blas_threads(most=1):
        start = start_of(problem, tol, shared, seed)
        solution = solve_cells(problem, tol, shared, seed, lambda *_: None, start=start, diagnose=noted)
    usable = found[0] if found and solution.status != Status.ILL_POSED else None
    return Prepared(problem, solution, tol, seed, budget, usable)


def keeps_factors(problem: Problem, others: Sequence[Problem]) -> bool:
    """Tell whether other problems have the factors of a linear problem on cells: only right-hand sides differ.

    >>> from pibls import Dirichlet, Interval, coordinates, field, parameter
    >>> x, k, q = coordinates("x"), parameter("k"), parameter("q")
    >>> u = field("u", x)
    >>> bar = Problem(sp.Eq(-k * u.diff(x, 2), q), Interval((x, 0, 1)), [Dirichlet(u, 0)])
    >>> first = bar.at(k=1, q=1)
    >>> keeps_factors(first, [bar.at(k=1, q=2)]), keeps_factors(first, [bar.at(k=2, q=1)])
    (True, False)
    """
    return (
        problem.is_linear
        and suits_cells(problem)
        and all(_is_alike(*pair) for other in others for pair in zip(problem.statements, other.statements, strict=True))
    )


def _changed(old: Problem, new: Problem) -> dict[int, Form]:
    """Return the forms of a problem whose sources are new, by the forms that they replace."""
    pairs = zip(old.statements, new.statements, strict=True)
    forms = (both for one, two in pairs for both in zip(one.forms, two.forms, strict=True))
    return {id(one): two for one, two in forms if one.source != two.source}


def _sources(solver: TreeSolver, changed: Sequence[dict[int, Form]]) -> Sources:
    """Return the sources of many problems as columns; each is evaluated once, at the points of all parts."""
    places: dict[int, list[Stated]] = {}
    for own in solver.local.stated:
        places.setdefault(id(own.statement.form), []).append(own)
    known: dict[int, FloatArray] = {}
    for form, many in places.items():
        if any(form in new for new in changed):
            X, ends = np.concatenate([own.points for own in many]), np.cumsum([len(own.points) for own in many])[:-1]
            normals = None if many[0].normals is None else np.concatenate([own.normals for own in many])
            before = np.concatenate([own.source for own in many])
            columns = [new[form].source_function(X, normals) if form in new else before for new in changed]
            known |= {id(own): v for own, v in zip(many, np.split(np.stack(columns, axis=1), ends), strict=True)}

    def sources(own: Stated, part: CellPart) -> FloatArray:
        del part
        if id(own) in known:
            return known[id(own)]
        form = id(own.statement.form)
        columns = (new[form].source_function(own.points, own.normals) if form in new else own.source for new in changed)
        return np.stack(list(columns), axis=1)

    return sources


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


def _is_alike(one: Statement, two: Statement) -> bool:
    """Tell whether two statements differ in their sources alone."""
    same = all(
        [(t.field, t.multi_index, t.coefficient) for t in old.terms]
        == [(t.field, t.multi_index, t.coefficient) for t in new.terms]
        for old, new in zip(one.forms, two.forms, strict=True)
    )
    there, here = one.place, two.place
    if isinstance(there, AtPoints) and isinstance(here, AtPoints):
        arrays = ((there.points, here.points), (one.targets, two.targets))
        return same and all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in arrays)
    if isinstance(there, Across) and isinstance(here, Across):
        return same and there.condition == here.condition
    return same and there == here
