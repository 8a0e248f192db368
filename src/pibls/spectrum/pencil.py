"""How the equations and conditions of a problem depend on its eigenvalue: A(λ) = A₀ + λ A₁ + λ² A₂."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.cells.evaluation import PlacedStatement, power
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart
from pibls.checks import FloatArray, shorten
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.inverse.parametric import Parametric
from pibls.problem import Across, Eigenvalue, Problem, Statement
from pibls.problem.complex_fields import pairs_of
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.unknown_numbers import refuse_open
from pibls.refinement.standards import POINTS

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
            unknowns = ", ".join(map(str, [*problem.parameters, *problem.unknown_functions])) or "none"
            raise ProblemError(
                "eigen needs a problem whose only unknown beside its fields is one eigenvalue: lam = "
                f"pibls.eigenvalue('lam'). Got {unknowns}."
            )
        pencil = cls(problem, found[0])
        for statement in problem.statements:
            pencil._check(statement)
        if not any(own for statement in problem.statements for own in pencil.terms(statement)[1:]):
            raise ProblemError(
                f"The eigenvalue {found[0]} multiplies no field. Write it into an equation or a condition."
            )
        if pencil.is_complex:
            pencil._check_complex()
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

    @cached_property
    def is_complex(self) -> bool:
        """Whether the fields are the parts of complex ones."""
        return bool(pairs_of(self.problem.field_names))

    def turned(self, weights: FloatArray, axis: int = 2) -> FloatArray:
        """Return complex fields multiplied by i, where their parts lie along an axis, once or several times."""
        names, pairs = self.problem.field_names, pairs_of(self.problem.field_names).values()
        partner = {one: other for pair in pairs for one, other in (pair, pair[::-1])}
        order = np.array([names.index(partner[name]) for name in names])
        signs = np.array([-1.0 if name in dict(pairs) else 1.0 for name in names])
        shape = weights.shape
        split = weights.reshape(*shape[:axis], -1, len(names), *shape[axis + 1 :])
        found = np.take(split, order, axis + 1) * signs.reshape(-1, *[1] * (len(shape) - axis - 1))
        return np.asarray(found.reshape(shape))

    def _check_complex(self) -> None:
        """Refuse fields of which some are complex, or a problem that does not keep its form when they turn by i."""
        names = self.problem.field_names
        alike = 2 * len(pairs_of(names)) == len(names)
        groups = [[own for own in self.problem.statements if own.place == s.place] for s in self.problem.statements]
        if not alike or not all(self._turns(group) for group in groups):
            raise ProblemError(
                "pibls.eigen takes complex fields if all fields are complex and none is conjugated. Write real and "
                "imaginary parts as two equations of two real fields, whose names end otherwise than in _re and _im."
            )

    def _turns(self, group: list[Statement]) -> bool:
        """Tell whether the statements of one place still say the same if all fields turn by i."""
        domain, names = self.problem.domain, self.problem.field_names
        X = domain.sample(POINTS, "kronecker", 0)
        normals = np.ones((len(X), len(domain.space)))
        keys = sorted({(k, index) for own in group for k, terms in enumerate(self.terms(own)) for _, index in terms})
        rows = np.zeros((len(X), len(group), len(keys), len(names)))
        for number, own in enumerate(group):
            for degree, terms in enumerate(self.terms(own)):
                for (name, index), value in terms.items():
                    rows[:, number, keys.index((degree, index)), name] = value(X, normals)
        both = np.concatenate([rows, self.turned(rows, axis=3)], axis=1)
        ranks = [np.linalg.matrix_rank(every.reshape(len(X), every.shape[1], -1)) for every in (rows, both)]
        return bool((ranks[0] == ranks[1]).all())

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


def applied(
    layout: Layout, own: PlacedStatement, part: CellPart, terms: dict[Any, Function], weights: FloatArray
) -> FloatArray:
    """Return a differential form of fields at the points of a statement, one column for each of the given weights."""
    found = np.zeros((len(own.points), len(weights)))
    if not terms:
        return found
    indices: list[MultiIndex] = list(dict.fromkeys(index for _, index in terms))
    nodes = layout.functions_at(part, own.points, indices)
    for (number, index), coefficient in terms.items():
        values = nodes[index] @ (weights[:, number].T / power(part.half, index))
        found += coefficient(own.points, own.normals)[:, None] * values
    return found
