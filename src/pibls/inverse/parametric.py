"""A problem as a function of its unknowns: numbers in their place, and how every residual depends on them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.inverse.smoothness import Cosines
from pibls.problem import Across, AtPoints, Field, MultiIndex, OnPart, Problem, Statement
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.lowering import Form, Term, lower
from pibls.problem.unknown_numbers import condition_with, put_into
from pibls.refinement.standards import PLAIN, POINTS


@dataclass(frozen=True, eq=False)
class Parametric:
    """A problem with unknown numbers and unknown functions.

    The unknowns are one vector: the numbers, then the coefficients of every function in its basis.
    """

    problem: Problem  # as it was stated
    bases: tuple[Cosines, ...] = ()  # one for every unknown function
    # where measurements help to determine fields: how much every value of every set counts, one as much as equations
    shares: tuple[FloatArray, ...] = ()
    _dependences: dict[int, Dependence] = field(default_factory=dict, init=False)  # by the id of the form

    @property
    def size(self) -> int:
        """Length of the vector of unknowns."""
        return len(self.problem.parameters) + sum(basis.size for basis in self.bases)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the fields that are solved for."""
        functions = {basis.name for basis in self.bases}
        return tuple(name for name in self.problem.field_names if name not in functions)

    @cached_property
    def observations(self) -> tuple[Statement, ...]:
        """The measurements, and conditions on unknown functions alone."""
        return (*self.measured, *(self._as_measured(s) for s in self.problem.statements if self._is_given(s)))

    @property
    def measured(self) -> tuple[Statement, ...]:
        """The measurements alone."""
        return tuple(s for s in self.problem.statements if s.targets is not None)

    @cached_property
    def stated(self) -> tuple[Statement, ...]:
        """The statements that fields must meet, in the order of those of :meth:`at`."""
        others = tuple(s for s in self.problem.statements if s.targets is None and not self._is_given(s))
        return (*others, *self.measured) if self.shares else others

    def _is_given(self, statement: Statement) -> bool:
        """Tell whether a condition is one on unknown functions alone."""
        fields = {name for form in statement.forms for name in form.fields}
        return statement.targets is None and not fields & set(self.names)

    def _as_measured(self, statement: Statement) -> Statement:
        place = statement.place
        if isinstance(place, OnPart):
            points, normals = place.part.sample(POINTS, "kronecker", 0)
        elif isinstance(place, AtPoints):
            points, normals = place.points, None
        else:
            raise ProblemError(
                f"{statement.name} is a condition on an unknown function that cannot be used. Give it on a part of the "
                "boundary or at points."
            )
        size = float(np.abs(statement.form.source_function(points, normals)).max()) or 1.0
        zeros = np.zeros(len(points))
        return replace(statement, place=AtPoints(points), targets=zeros, noise=zeros + PLAIN * size)

    def spans(self) -> list[slice]:
        """Return where the coefficients of every function stand in the vector."""
        ends = np.cumsum([len(self.problem.parameters), *(basis.size for basis in self.bases)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def at(self, vector: FloatArray) -> Problem:
        """Return the problem with numbers and known functions in the place of the unknowns.

        Measurements are no part of it, but where they take part in determining the fields.
        """
        values = self.replacements(vector)
        statements = [self._put_into(s, values, vector) for s in self.stated]
        first = len(statements) - len(self.shares)
        for number, share in enumerate(self.shares, first):
            statements[number] = replace(statements[number], weight=float(share.max()), noise=1.0 / share)
        fields = [f for f in self.problem.fields if f.label in self.names]
        equations = [self._replaced(e, values, vector) for e in self.problem.equations]
        return self.problem.with_statements(statements, fields, equations)

    def _put_into(self, statement: Statement, values: dict[sp.Expr, sp.Expr], vector: FloatArray) -> Statement:
        form, *others = (self._lowered(own, values, vector) for own in statement.forms)
        place = statement.place
        return replace(
            statement, form=form, place=replace(place, outside=others[0]) if isinstance(place, Across) else place
        )

    def _lowered(self, form: Form, values: dict[sp.Expr, sp.Expr], vector: FloatArray) -> Form:
        """Return a form with numbers and known functions in the place of the unknowns.

        Numbers are put into what was differentiated before; a zero, or a function, may change which terms there are.
        """
        if set(form.fields) <= set(self.names):
            made = form.with_values(values)
            if all(new.coefficient != 0 or t.coefficient == 0 for new, t in zip(made.terms, form.terms, strict=True)):
                return made
        return lower(self._replaced(form.expression, values, vector), form.coordinates)

    def replacements(self, vector: FloatArray) -> dict[sp.Expr, sp.Expr]:
        """Return the numbers in the place of their symbols."""
        return {k: sp.Float(float(v)) for k, v in zip(self.problem.parameters, vector, strict=False)}

    def _replaced(self, expression: sp.Expr, values: dict[sp.Expr, sp.Expr], vector: FloatArray) -> sp.Expr:
        functions = {basis.name: (basis, span) for basis, span in zip(self.bases, self.spans(), strict=True)}
        found = dict(values)
        for node in expression.atoms(sp.Derivative, Field):
            inner = node.expr if isinstance(node, sp.Derivative) else node
            if isinstance(inner, Field) and inner.label in functions:
                basis, span = functions[inner.label]
                found[node] = basis.known(node, vector[span])
        return expression.xreplace(found)

    @cached_property
    def is_separable(self) -> bool:
        """Whether no unknown multiplies a field: sensitivities are then the same at all states."""
        forms = (form for s in self.stated for form in s.forms)
        terms = ((t, form) for form in forms for t in form.terms if t.field in self.names)
        return all(self._is_free(t.coefficient, form) for t, form in terms)

    @cached_property
    def is_affine(self) -> bool:
        """Whether solutions move in proportion to unknowns: these stand in sources only, and linearly."""
        forms = [form for s in self.stated for form in s.forms]
        slopes = ((sp.diff(form.residual, k), form) for form in forms for k in self.problem.parameters)
        every = itertools.chain(slopes, ((t.coefficient, form) for form in forms for t in form.terms))
        return all(self._is_free(slope, form) for slope, form in every)

    def _is_free(self, slope: sp.Expr, form: Form) -> bool:
        """Tell whether a derivative of a form has neither fields nor unknowns."""
        return not slope.free_symbols & {*form.slots, *self.problem.parameters}

    def dependence(self, form: Form) -> Dependence:
        """Return how a residual of the problem depends on fields and unknowns."""
        if id(form) not in self._dependences:
            self._dependences[id(form)] = Dependence.of(self, form)
        return self._dependences[id(form)]


@dataclass(frozen=True, eq=False)
class Dependence:
    """How one residual depends on the fields that are solved for and on the unknowns, at points."""

    parametric: Parametric
    terms: tuple[Term, ...]  # derivatives of fields that occur, and among them those of unknown functions
    residual: Function  # of the terms and the numbers
    by_term: tuple[Function, ...]
    by_number: tuple[Function, ...]

    @classmethod
    def of(cls, parametric: Parametric, form: Form) -> Dependence:
        """Differentiate a residual."""
        numbers = parametric.problem.parameters
        known = {*form.slots, *form.coordinates, *numbers}
        # Slots without a term cancel: any value will do for them.
        gone = {s: sp.S.Zero for s in form.residual.free_symbols - known if isinstance(s, sp.Dummy)}
        residual, extra = form.residual.xreplace(gone), (*form.slots, *numbers)

        def compiled(expression: sp.Expr) -> Function:
            return compile_function(expression.xreplace(gone), form.coordinates, extra)

        by_term = tuple(compiled(term.coefficient) for term in form.terms)
        return cls(
            parametric, form.terms, compiled(residual), by_term, tuple(compiled(sp.diff(residual, k)) for k in numbers)
        )

    @cached_property
    def wanted(self) -> tuple[tuple[str, MultiIndex], ...]:
        """Derivatives of the fields that are solved for."""
        return tuple((t.field, t.multi_index) for t in self.terms if t.field in self.parametric.names)

    @cached_property
    def _functions(self) -> tuple[tuple[int, Term, Cosines, slice], ...]:
        """The terms of unknown functions."""
        bases = {
            basis.name: (basis, span)
            for basis, span in zip(self.parametric.bases, self.parametric.spans(), strict=True)
        }
        return tuple((i, t, *bases[t.field]) for i, t in enumerate(self.terms) if t.field in bases)

    def values(self, X: FloatArray, state: Sequence[FloatArray], vector: FloatArray) -> list[FloatArray]:
        """Return the values of all terms and numbers, from those of the ``wanted`` derivatives."""
        given = iter(state)
        functions = {i: basis.values(X, t.multi_index) @ vector[span] for i, t, basis, span in self._functions}
        found = [functions[i] if i in functions else next(given) for i in range(len(self.terms))]
        return [*found, *(np.full(len(X), float(v)) for v in vector[: len(self.by_number)])]

    def slopes(self, X: FloatArray, normals: FloatArray | None, values: list[FloatArray]) -> FloatArray:
        """Return the derivative of the residual by every unknown where the fields stay as they are, as columns."""
        found = np.zeros((len(X), self.parametric.size))
        for number, function in enumerate(self.by_number):
            found[:, number] = function(X, normals, values)
        for i, term, basis, span in self._functions:
            found[:, span] += self.by_term[i](X, normals, values)[:, None] * basis.values(X, term.multi_index)
        return found


def substituted(problem: Problem, values: Mapping[sp.Symbol, sp.Expr], further: Sequence[sp.Expr] = ()) -> Problem:
    """Return a problem with expressions for its unknown numbers, and further equations if these have fields.

    Unknown functions stay what they are.

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field, unknown
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> k = unknown("k")
    >>> problem = Problem(u.diff(x, 2) + k * u, Interval((x, 0, 1)), [Dirichlet(u, 1)])
    >>> substituted(problem, {k: sp.Float(2.5)}).equations[0]
    2.5*u(x) + Derivative(u(x), (x, 2))
    """
    return Problem(
        [*put_into(tuple(problem.equations), values), *further],
        problem.domain,
        [condition_with(own, values) for own in problem.conditions],
        # Further fields are not part of what is known to be true.
        None if further else problem.exact,
    )
