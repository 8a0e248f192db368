"""A differential equation with its domain and conditions, checked as soon as it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_points, counted, shorten
from pibls.errors import ProblemError
from pibls.problem.complex_fields import complex_name, complex_parts, pairs_of, real_conditions, real_equations
from pibls.problem.conditions import Condition, residual_of
from pibls.problem.domain import DomainLike, is_domain
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.fluxes import Laws
from pibls.problem.interface import AnyCondition, Interface
from pibls.problem.lowered_equations import lowered
from pibls.problem.names import described, find_fields, find_functions, find_numbers, nodes_of
from pibls.problem.places import Interior, OnPart
from pibls.problem.printing import abbreviated, latex, text
from pibls.problem.statements import Statement, condition_statements
from pibls.problem.symbols import Data, Field
from pibls.problem.unknown_numbers import (
    OpenNumber,
    Unknown,
    condition_with,
    numbers_for,
    open_in,
    put_into,
    refuse_open,
)

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Problem:
    """Differential equations on a domain with conditions.

    Parameters
    ----------
    equations
        One SymPy equation (or expression that is to be zero), or a list of them.
    domain
        Where the equations hold.
    conditions
        Boundary, initial and other conditions.
    exact
        The exact solution if it is known: an expression, or a mapping from fields to expressions. It is used to
        report errors, never to solve. Unknown functions that ``truth`` has may be left out.
    truth
        True values of unknown numbers and functions where they are known: a mapping from these, or from their names, to
        numbers and expressions. Like ``exact``, it is never used to solve.

    Attributes
    ----------
    fields
        The unknown fields, unknown functions among them.
    parameters
        The numbers that are not known yet: unknown ones, which a solve finds, and open ones, which :meth:`at` gives.
    unknown_functions
        The fields without an equation of their own: coefficients, sources, boundary and initial functions that data
        have to tell.

    Examples
    --------
    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> problem = Problem(sp.Eq(u.diff(x, 2), -u), Interval((x, 0, 1)), [Dirichlet(u, sp.cos(x))], exact=sp.cos(x))
    >>> problem.is_linear, problem.fields
    (True, (u(x),))
    >>> print(problem)
    Find u(x) with
      u_xx = -u    in Interval((x, 0, 1))
      u = cos(x)   on the boundary
    """

    equations: Sequence[sp.Eq | sp.Expr]
    domain: DomainLike
    conditions: Sequence[AnyCondition] = ()
    exact: Mapping[Any, sp.Expr] | sp.Expr | None = None
    truth: Mapping[Any, Any] | None = None
    statements: tuple[Statement, ...] = field(init=False, repr=False)
    fields: tuple[Field, ...] = field(init=False, repr=False)
    parameters: tuple[Unknown, ...] = field(init=False, repr=False)
    unknown_functions: tuple[Field, ...] = field(init=False, repr=False)
    # the problem with open parameters that this one was made of, and the values that it was given
    origin: tuple[Problem, Mapping[str, sp.Expr]] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not is_domain(self.domain):
            raise ProblemError(
                "The 'domain' parameter of Problem must be a shape such as Rectangle((x, 0, 1), (y, 0, 1)). "
                f"Got {shorten(self.domain)} instead."
            )
        self._set("equations", _as_tuple(self.equations))
        if not (count := len(self.equations)):
            raise ProblemError("The 'equations' parameter of Problem is empty; a problem needs at least one equation.")
        # Some short forms stand for several conditions.
        given = (item if isinstance(item, tuple) else (item,) for item in _as_tuple(self.conditions))
        self._set("conditions", tuple(own for items in given for own in items))
        for item in self.conditions:
            if isinstance(item, bool | sp.core.relational.Relational) and not isinstance(item, sp.Eq):
                residual_of(item, "the conditions")  # says what is wrong with it
            if not isinstance(item, AnyCondition):
                raise ProblemError(
                    "The 'conditions' parameter of Problem must be a list of conditions such as Dirichlet(u, 0). "
                    f"Got {shorten(item)} in it."
                )
        self._set("equations", real_equations(self.equations, self.domain.space))
        self._set("conditions", real_conditions(self.conditions, self.domain.space))
        count = len(self.equations)
        names = ["the equation"] if count == 1 else [f"equation {i + 1}" for i in range(count)]
        equations = tuple(
            Statement(name, i, lowered(e, self.domain, name, normals=False), Interior())
            for i, (e, name) in enumerate(zip(self.equations, names, strict=True))
        )
        self._set("statements", equations)  # of which the laws are made, by which conditions know fluxes
        lists = [condition_statements(c, count + i, self.laws) for i, c in enumerate(self.conditions)]
        self._set("statements", equations + tuple(s for statements in lists for s in statements))
        self._set("fields", find_fields(self.statements))
        self._set("parameters", find_numbers(self.statements, self.fields, self.domain))
        self._set("unknown_functions", find_functions(self.statements, self.fields, self.domain))
        _refuse_duplicates(self.statements)
        self._set("truth", self._truth())
        self._set("exact", self._exact())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _exact(self) -> Mapping[str, sp.Expr] | None:
        if self.exact is None:
            return None
        labels = [f.label for f in self.fields]
        pairs = pairs_of(labels)
        given = self.exact if isinstance(self.exact, Mapping) else {next(iter(pairs), labels[0]): self.exact}
        functions = {f.label for f in self.unknown_functions}
        exact = {label: value for label, value in (self.truth or {}).items() if label in functions}
        for key, value in given.items():
            name = complex_name(key)
            parts = pairs.get(name)
            values = {name: value} if parts is None else dict(zip(parts, complex_parts(value), strict=True))
            exact |= values
        if sorted(exact) != sorted(labels):
            raise ProblemError(
                f"The 'exact' parameter of Problem must give an expression per field {labels}. Got {shorten(given)}."
            )
        return {label: self._known(exact[label], f"The exact solution of {label}") for label in labels}

    def _known(self, value: Any, what: str, constant: bool = False) -> sp.Expr:
        """Return an expression without unknowns, or refuse it."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        expression: Any = sp.Float(value) if number else value
        allowed = set() if constant else {*self.domain.coordinates, *open_in(self.parameters)}
        known = isinstance(expression, sp.Expr) and expression.free_symbols <= allowed
        if not known or expression.has(Field, sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I):
            of = "a number" if constant else f"an expression of {self.domain.coordinates}"
            raise ProblemError(f"{what} must be {of}, finite and real. Got {shorten(value)} instead.")
        return expression

    def _truth(self) -> Mapping[str, Any] | None:
        if self.truth is None:
            return None
        given = self.truth if isinstance(self.truth, Mapping) else {}
        found = {k.label if isinstance(k, Field) else str(k): v for k, v in given.items()}
        numbers = {symbol.name for symbol in self.parameters}
        functions = {f.label for f in self.unknown_functions}
        if not found or not set(found) <= numbers | functions:
            raise ProblemError(
                "The 'truth' parameter of Problem must map unknown numbers and functions of the problem, which are "
                f"{sorted(numbers | functions)}, to their values. Got {shorten(self.truth)} instead."
            )
        result: dict[str, Any] = {}
        for name, value in found.items():
            known = self._known(value, f"The true value of {name}", constant=name in numbers)
            result[name] = float(known) if name in numbers else known
        return result

    def at(self, **values: Any) -> Problem:
        """Return the problem with numbers in the place of open parameters, of all of them or some.

        Examples
        --------
        >>> from pibls import Dirichlet, Interval, coordinates, field, parameter
        >>> x, k = coordinates("x"), parameter("k")
        >>> u = field("u", x)
        >>> problem = Problem(sp.Eq(u.diff(x, 2), k * u), Interval((x, 0, 1)), [Dirichlet(u, k)])
        >>> problem.at(k=3).conditions
        (Dirichlet(u = 3 on the boundary),)
        """
        numbers = numbers_for(self.parameters, values)
        conditions = [condition_with(condition, numbers) for condition in self.conditions]
        exact = None if self.exact is None else {name: put_into(e, numbers) for name, e in self.exact.items()}
        found = Problem(put_into(self.equations, numbers), self.domain, conditions, exact, self.truth)
        first, before = self.origin or (self, {})
        found._set("origin", (first, {**before, **{symbol.name: number for symbol, number in numbers.items()}}))
        return found

    def once(self, find: Callable[[Problem], Found]) -> Found:
        """Return the value of a function of this problem; it is called once and its result is kept with the problem.

        >>> from pibls.problems import advection
        >>> problem = advection()
        >>> problem.once(str) is problem.once(str)
        True
        """
        if find not in self._found:
            self._found[find] = find(self)
        return cast(Found, self._found[find])

    @cached_property
    def _found(self) -> dict[Any, Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @cached_property
    def laws(self) -> Laws:
        """The equations, and the fluxes that they tell."""
        return Laws(self.equations, tuple(s for s in self.statements if s.is_equation), self.domain)

    @cached_property
    def is_linear(self) -> bool:
        """Whether every equation and condition is linear in the unknowns."""
        known = all(isinstance(number, OpenNumber) for number in self.parameters)
        return known and all(form.is_linear for own in self.statements for form in own.forms)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Names of the unknown fields, in order."""
        return tuple(f.label for f in self.fields)

    @cached_property
    def data(self) -> Mapping[str, Data]:
        """Functions known only as Python callables, by name."""
        return {call.label: call for call in nodes_of(self.statements, Data)}

    @cached_property
    def _exact_functions(self) -> Mapping[str, Function]:
        return {k: compile_function(v, self.domain.coordinates) for k, v in (self.exact or {}).items()}

    def exact_values(self, X: Any) -> dict[str, FloatArray]:
        """Return the exact solution at the points ``X``, per field.

        >>> from pibls.problems import advection
        >>> float(advection().exact_values([0.0])["u"][0])
        1.0
        """
        if self.exact is None:
            raise ProblemError("This problem has no exact solution; give one as Problem(..., exact=expression).")
        refuse_open(self.parameters, "exact_values")
        points = check_points("X", X, "exact_values", len(self.domain.coordinates))
        return {name: np.array(function(points)) for name, function in self._exact_functions.items()}

    def with_statements(
        self,
        statements: Sequence[Statement],
        fields: Sequence[Field] | None = None,
        equations: Sequence[sp.Eq | sp.Expr] | None = None,
        **known: None,
    ) -> Problem:
        """Return a problem on the same domain, in the same fields or some of them, that consists of other statements.

        They need not follow from ``equations`` and ``conditions``, which are kept if no others are given: a
        linearisation, say. With ``exact=None`` the exact solution is dropped.

        >>> from pibls.problems import advection
        >>> problem = advection()
        >>> problem.with_statements(problem.statements[:1]).statements[0] is problem.statements[0]
        True
        """
        result = object.__new__(Problem)
        for name in ("equations", "domain", "conditions", "exact", "truth", "fields", "unknown_functions"):
            result._set(name, known.get(name, getattr(self, name)))
        result._set("statements", tuple(statements))
        if equations is None and tuple(s for s in statements if s.is_equation) == self.laws.statements:
            result._set("laws", self.laws)
        result._set("parameters", find_numbers(result.statements, self.fields, self.domain))
        if equations is not None:
            result._set("equations", tuple(equations))
        if fields is not None:
            result._set("fields", tuple(fields))
            result._set("unknown_functions", tuple(f for f in self.unknown_functions if f in result.fields))
        return result

    def __str__(self) -> str:
        lines = [(text(_as_equation(e)), f"in {self.domain}") for e in self.equations]
        for condition in self.conditions:
            body = repr(condition)[len(condition.label) + 1 : -1]
            if isinstance(condition, Interface):
                lines += [(written, condition.place) for written in condition.written()]
            elif isinstance(condition, Condition):
                lines.append((body.removesuffix(" " + condition.place), condition.place))
            else:
                lines.append((body, "" if condition.label != "Periodic" else "periodic"))
        expressions = [*self.equations, *(c.equation for c in self.conditions if isinstance(c, Condition))]
        written, cases = abbreviated([left for left, _ in lines], expressions)
        lines = [(left, right) for left, (_, right) in zip(written, lines, strict=True)]
        unknowns: tuple[Unknown | Field, ...] = (*self.parameters, *self.unknown_functions)
        settings = [*cases, *(line for unknown in unknowns if (line := described(unknown)))]
        width = min(60, max(len(left) for left, _ in (*lines, *settings)))
        lines += settings
        given = open_in(self.parameters)
        sought = ", ".join(map(str, (*self.fields, *(k for k in self.parameters if k not in given))))
        head = f"Find {sought}{' for given ' + ', '.join(map(str, given)) if given else ''} with"
        return "\n".join([head, *(f"  {left:<{width}}   {right}".rstrip() for left, right in lines)])

    def __repr__(self) -> str:
        kind = "linear" if self.is_linear else "nonlinear"
        names = ", ".join(map(str, (*self.fields, *self.parameters)))
        counts = f"{counted(len(self.equations), 'equation')}, {counted(len(self.conditions), 'condition')}"
        return f"Problem({kind}, {names}, {counts}, {self.domain})"

    def to_text(self, title: str = "") -> str:
        """Return the problem as the text of a problem file, which :func:`~pibls.read_problem` reads.

        What exists only as a Python function cannot be written, and is refused by name.

        >>> from pibls.problems import advection
        >>> advection().to_text().splitlines()[0]
        'unknowns = ["u"]'
        """
        from pibls.text import to_text

        return to_text(self, title)

    def latex(self) -> str:
        r"""Return the problem as a LaTeX ``aligned`` block.

        >>> from pibls.problems import advection
        >>> advection().latex().splitlines()[0]
        '\\begin{aligned}'
        """
        rows = [rf"{latex(_as_equation(e))} & \quad \text{{in }} {_verbatim(self.domain)}" for e in self.equations]
        for condition in self.conditions:
            if isinstance(condition, Interface):
                place = _verbatim(condition.place)
                rows += [rf"{latex(_as_equation(e))} & \quad {place}" for e in condition.equations]
            elif isinstance(condition, Condition):
                rows.append(rf"{latex(_as_equation(condition.equation))} & \quad \text{{{condition.place}}}")
            else:
                rows.append(rf"{latex(condition.u)} & \quad {_verbatim(condition)}")
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def _verbatim(thing: object) -> str:
    return rf"\text{{{str(thing).replace('_', chr(92) + '_')}}}"


def _as_equation(equation: sp.Eq | sp.Expr) -> sp.Eq:
    return equation if isinstance(equation, sp.Eq) else sp.Eq(equation, 0, evaluate=False)


def _as_tuple(value: object) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _refuse_duplicates(statements: tuple[Statement, ...]) -> None:
    seen: dict[object, str] = {}
    for statement in statements:
        place: object = statement.place if isinstance(statement.place, Interior | OnPart) else id(statement.place)
        key = (statement.form.expression, place)
        if key in seen:
            raise ProblemError(
                f"{statement.name} is given twice (the same as {seen[key]}); remove one, or raise its weight instead."
            )
        seen[key] = statement.name
