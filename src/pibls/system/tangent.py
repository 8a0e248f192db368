"""The linear problem that one Newton step solves: a nonlinear problem linearised at a function.

It is a problem like any other linear one: coefficients and sources are functions of the points, computed from the
state there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Form, MultiIndex, Problem, Statement
from pibls.problem.evaluate import Function

Evaluate = Callable[[FloatArray, Sequence[tuple[str, MultiIndex]]], list[FloatArray]]
"""Derivatives of fields at points, as :meth:`pibls.Solution.evaluate` gives them."""

_REMEMBERED = 16  # point sets of a state


def check_known(problem: Problem) -> None:
    """Refuse a problem with unknown numbers, which a solve for fields alone cannot find."""
    if problem.parameters:
        names = ", ".join(map(str, problem.parameters))
        raise ProblemError(
            f"This problem has unknown parameters ({names}), and only fields can be solved for so far. Replace unknown "
            "parameters by numbers."
        )


def linearised(problem: Problem, state: Evaluate) -> Problem:
    """Return the linear problem that one Newton step from a state solves; its solution is the next state.

    >>> import numpy as np
    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> problem = Problem(u.diff(x) - u**2, Interval((x, 0, 1)), [Dirichlet(u, 1, on=[0.0])])
    >>> step = linearised(problem, lambda X, wanted: [np.full(len(X), 3.0) for _ in wanted])
    >>> coefficients = step.statements[0].form.coefficient_functions
    >>> step.is_linear, [float(c(np.zeros((1, 1)))[0]) for c in coefficients]  # u' − 6u + 9
    (True, [1.0, -6.0])
    """
    check_known(problem)
    return problem.with_statements([s if s.form.is_linear else _linear_statement(s, state) for s in problem.statements])


class _State:
    """The derivatives of a function that a form needs, evaluated together; the last few point sets are remembered."""

    def __init__(self, evaluate: Evaluate, form: Form) -> None:
        self.evaluate = evaluate
        self.wanted = [(term.field, term.multi_index) for term in form.terms]
        self.seen: dict[tuple[tuple[int, ...], bytes], list[FloatArray]] = {}

    def __call__(self, X: FloatArray) -> list[FloatArray]:
        key = (X.shape, X.tobytes())
        if key not in self.seen:
            if len(self.seen) >= _REMEMBERED:
                self.seen.clear()
            self.seen[key] = self.evaluate(X, self.wanted)
        return self.seen[key]


@dataclass(frozen=True)
class _TangentForm(Form):
    """A nonlinear form linearised at a state; its functions are those of the form with the state filled in."""

    whole: Form
    state: _State

    @cached_property
    def coefficient_functions(self) -> tuple[Function, ...]:
        return tuple(self._at_state(function) for function in self.whole.coefficient_functions)

    def _at_state(self, function: Function) -> Function:
        def values(X: FloatArray, normals: FloatArray | None) -> FloatArray:
            return function(X, normals, self.state(X))

        return Function.computed(function, values, constant=function.constant)

    @cached_property
    def source_function(self) -> Function:
        whole, residual = self.whole, self.whole.residual_function

        def values(X: FloatArray, normals: FloatArray | None) -> FloatArray:
            state = self.state(X)
            tangent = sum(f(X, normals, state) * v for f, v in zip(whole.coefficient_functions, state, strict=True))
            return residual(X, normals, state) - tangent

        return Function.computed(residual, values, constant=None)


def _linear_statement(statement: Statement, evaluate: Evaluate) -> Statement:
    form = statement.form
    parts = (form.expression, form.residual, form.terms, form.source, form.coordinates)
    return replace(statement, form=_TangentForm(*parts, True, form, _State(evaluate, form)))
