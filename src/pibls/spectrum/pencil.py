"""How the equations and conditions of a problem depend on its eigenvalue: A(λ) = A₀ + λ A₁ + λ² A₂."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.cells.evaluation import Stated, power
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart
from pibls.checks import FloatArray, shorten
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.inverse.parametric import Parametric
from pibls.problem import Across, Eigenvalue, Problem, Statement
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.unknown_numbers import refuse_open

_HIGHEST = 2  # power of the eigenvalue


@dataclass(frozen=True, eq=False)
class Pencil:
    """A problem that is linear in its fields and a polynomial in its eigenvalue."""

    problem: Problem
    symbol: Eigenvalue

    @classmethod
    def of(cls, problem: Problem) -> Pencil:
        """Return the pencil of a problem, or refuse the problem in words."""
        refuse_open(problem.parameters, "eigen")
        found = [symbol for symbol in problem.parameters if isinstance(symbol, Eigenvalue)]
        if len(found) != 1 or len(problem.parameters) > 1 or problem.unknown_functions:
            raise ProblemError(
                "pibls.eigen needs a problem with one eigenvalue made by pibls.eigenvalue and no other unknown. Got "
                f"{shorten(problem.parameters)}."
            )
        pencil = cls(problem, found[0])
        for statement in problem.statements:
            pencil._check(statement)
        if not any(own for statement in problem.statements for own in pencil.terms(statement)[1:]):
            raise ProblemError(
                f"The eigenvalue {found[0]} multiplies no field. Write it into an equation or a condition."
            )
        return pencil

    def _check(self, statement: Statement) -> None:
        name, form = statement.name, statement.form
        if statement.targets is not None:
            raise ProblemError(f"{name} is a measurement. An eigenvalue problem takes none; remove it.")
        if not all(own.is_linear for own in statement.forms):
            raise ProblemError(f"{name} is not linear in the fields, so that there are no eigenvalues. Linearise it.")
        if any(own.source != 0 for own in statement.forms):
            raise ProblemError(
                f"{name} has the right-hand side {shorten(-form.source)}. All of an eigenvalue problem is homogeneous: "
                "set it to zero."
            )
        across = isinstance(statement.place, Across) and statement.place.outside.residual.has(self.symbol)
        plain = [t.coefficient for t in form.terms if t.coefficient.is_polynomial(self.symbol)]
        degrees = [sp.Poly(own, self.symbol).degree() for own in plain]
        if across or len(degrees) < len(form.terms) or max(degrees, default=0) > _HIGHEST:
            raise ProblemError(
                f"{name} depends on the eigenvalue {self.symbol} neither linearly nor quadratically. Multiply it out, "
                "or call the other powers new fields."
            )

    @cached_property
    def parametric(self) -> Parametric:
        """The problem as a function of the eigenvalue."""
        return Parametric(self.problem)

    def at(self, value: float) -> Problem:
        """Return the problem with a number in the place of the eigenvalue."""
        return self.parametric.at(np.array([value]))

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether the square of the eigenvalue occurs."""
        return any(self.terms(statement)[2] for statement in self.problem.statements)

    def terms(self, statement: Statement) -> tuple[dict[Any, Function], ...]:
        """Return the coefficients of a statement by power of the eigenvalue: of each field and derivative."""
        return self._terms[id(statement)]

    @cached_property
    def _terms(self) -> dict[int, tuple[dict[Any, Function], ...]]:
        names, found = self.problem.field_names, {}
        for statement in self.problem.statements:
            powers: tuple[dict[Any, Function], ...] = ({}, {}, {})
            for term in statement.form.terms:
                for (degree,), value in sp.Poly(term.coefficient, self.symbol).terms():
                    if value != 0:
                        made = compile_function(value, statement.form.coordinates)
                        powers[degree][names.index(term.field), term.multi_index] = made
            found[id(statement)] = powers
        return found

    def by_form(self, at: Problem) -> dict[int, tuple[dict[Any, Function], ...]]:
        """Return the coefficients by the form that a statement has in a problem made by :meth:`at`."""
        return {
            id(own.form): self.terms(stated)
            for own, stated in zip(at.statements, self.parametric.stated, strict=True)
            if not isinstance(own.place, Across)
        }


def applied(layout: Layout, own: Stated, part: CellPart, terms: dict[Any, Function], weights: FloatArray) -> FloatArray:
    """Return a differential form of fields at the points of a statement, one column for each of the given weights."""
    found = np.zeros((len(own.points), len(weights)))
    if not terms:
        return found
    indices: list[MultiIndex] = list(dict.fromkeys(index for _, index in terms))
    nodes = layout.nodes(part, own.points, indices)
    for (number, index), coefficient in terms.items():
        values = nodes[index] @ (weights[:, number].T / power(part.half, index))
        found += coefficient(own.points, own.normals)[:, None] * values
    return found
