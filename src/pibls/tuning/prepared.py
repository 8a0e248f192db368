"""A linear problem that is solved many times: other sources and values cost a back-substitution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.cells import solve_cells, suits_cells
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.evaluation import Stated
from pibls.cells.fitters import Linear
from pibls.cells.linear import start_of
from pibls.cells.loop import Loop
from pibls.cells.outcome import Compared
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Glue
from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.problem import Across, AtPoints, Field, Problem, Statement
from pibls.problem.interface import AnyCondition
from pibls.refinement import Course, Reason, Stop, verdict
from pibls.refinement.patience import TREES
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.status import Status
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
    """

    problem: Problem
    solution: Solution
    tol: float
    seed: int
    budget: float
    _found: Compared | None
    _glues: list[Glue] = field(default_factory=list)

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
        problem = self._restated(source, conditions)
        made = self._again(problem) if self._found is not None else None
        if made is not None:
            return made
        return solve(problem, tol=self.tol, seed=self.seed, budget=self.budget, progress=False)

    def _restated(self, source: Any, conditions: Sequence[AnyCondition] | None) -> Problem:
        """Return the problem with other data, once it is clear that only data differ."""
        old = self.problem
        made = replace(old, conditions=old.conditions if conditions is None else conditions, exact=None)
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
            made = made.with_statements([*equations, *made.statements[count:]], equations=written)
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

    def _again(self, problem: Problem) -> Solution | None:
        """Return the solution on the trees of the first one; None where they are too coarse for the new data."""
        found, budget = self._found, Budget.of(self.budget)
        assert found is not None
        places = {
            id(old): new
            for one, two in zip(self.problem.statements, problem.statements, strict=True)
            for old, new in zip(one.forms, two.forms, strict=True)
            if old.source != new.source
        }

        def sources(own: Stated, part: CellPart) -> FloatArray:
            del part
            source = places.get(id(own.statement.form))
            found = own.source if source is None else source.source_function(own.points, own.normals)
            return found[:, None]

        with blas_threads(most=1):
            fits = [glue.again(sources) for glue in self._factored(found)]
            own, layout = (restated(problem) for restated in (found.own.restated, found.layout.restated))
            rows = Rows(own)
            course: Course[Compared] = Course(budget, TREES, lambda *_: None)
            changed = DataRefinement(rows, frozenset(id(own) for own in places.values()))
            loop = Loop(Linear(Glue(rows), budget), self.tol, course, self.seed, changed)
            made = loop.restated(found, fits[0], own, fits[1], layout)
            course.note(loop.stage(made))
            if not loop.is_met(made):
                return None
            words = verdict(self.tol, made.estimate, Stop(Reason.TOLERANCE))
            return loop.solution(made, made.estimate, *words)

    def _factored(self, found: Compared) -> list[Glue]:
        """Return the factors of both trees, made once."""
        if not self._glues:
            for layout, fit in ((found.own, found.fit), (found.layout, found.other)):
                glue = Glue(Rows(layout))
                glue.solve(fit.root)
                self._glues.append(glue)
        return self._glues


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
    if not problem.is_linear or not suits_cells(problem):
        raise InputError(
            "pibls.prepare keeps the factors of linear problems in one to three coordinates, without unknown numbers. "
            "Solve this one with pibls.solve."
        )
    found: list[Compared] = []
    shared = Budget.of(budget)

    def noted(solution: Solution, loop: Loop) -> tuple[str, str]:
        assert loop.told is not None
        found[:] = [loop.told]
        return flaw_of(tol, shared, seed, solution, loop)

    with blas_threads(most=1):
        start = start_of(problem, tol, shared, seed)
        solution = solve_cells(problem, tol, shared, seed, lambda *_: None, start=start, diagnose=noted)
    usable = found[0] if found and solution.status != Status.ILL_POSED else None
    return Prepared(problem, solution, tol, seed, budget, usable)


def _known(value: Any, problem: Problem) -> sp.Expr:
    """Return a source as an expression of the coordinates, or refuse it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = sp.sympify(value)
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
