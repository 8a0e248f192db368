"""A lowered residual as a function of torch tensors: parts that do not depend on the state are computed by NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Form
from pibls.problem.evaluate import compile_function
from pibls.problem.printing import text

Evaluator: TypeAlias = Callable[[Sequence[Any]], Any]
"""From one tensor per term of the form to the residual."""

_FUNCTIONS = {
    **{getattr(sp, name): name for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "erf")},
    **{getattr(sp, name): name for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")},
    **{sp.Abs: "abs", sp.floor: "floor", sp.ceiling: "ceil"},
    **{sp.Gt: "gt", sp.Ge: "ge", sp.Lt: "lt", sp.Le: "le", sp.Eq: "eq", sp.Ne: "ne", sp.Not: "logical_not"},
}
_FOLDED = {sp.Max: "maximum", sp.Min: "minimum", sp.And: "logical_and", sp.Or: "logical_or"}


def residual_evaluator(
    form: Form, X: FloatArray, normals: FloatArray | None, tensor: Callable[[FloatArray], Any]
) -> Evaluator:
    """Compile the residual of a form at fixed points.

    Parameters
    ----------
    form
        The lowered residual, linear or not.
    X, normals
        Where it is evaluated.
    tensor
        How to bring an array to torch.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from pibls.problem import coordinates, field
    >>> from pibls.problem.lowering import lower
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> residual = residual_evaluator(lower(x * sp.exp(u) - 1, (x,)), np.array([[2.0]]), None, torch.as_tensor)
    >>> residual([torch.zeros(1)])
    tensor([1.], dtype=torch.float64)
    """
    builder = _Builder(form, X, normals, tensor)
    if not form.is_linear:
        return builder.build(form.residual)
    # A linear residual may hide behind products that cancel; its terms are written out already.
    terms = [(i, builder.fixed(term.coefficient)) for i, term in enumerate(form.terms)]
    source = builder.fixed(form.source)

    def linear(state: Sequence[Any]) -> Any:
        total = source
        for i, coefficient in terms:
            total = total + coefficient * state[i]
        return total

    return linear


@dataclass(frozen=True)
class _Builder:
    """Walks an expression once and leaves a function of the state."""

    form: Form
    X: FloatArray
    normals: FloatArray | None
    tensor: Callable[[FloatArray], Any]

    def fixed(self, expression: sp.Expr) -> Any:
        """Return the value of an expression without the state: a number, or a tensor over the points."""
        function = compile_function(expression, self.form.coordinates)
        if function.constant is not None:
            return function.constant
        return self.tensor(np.array(function(self.X, self.normals)))

    def build(self, expression: Any) -> Evaluator:
        slots = [term.slot for term in self.form.terms]
        if expression in slots:
            position = slots.index(expression)
            return lambda state: state[position]
        if isinstance(expression, sp.Expr) and not expression.free_symbols & set(slots):
            value = self.fixed(expression)
            return lambda _: value
        if isinstance(expression, sp.Add | sp.Mul):
            return self._gathered(expression, slots)
        if isinstance(expression, sp.Piecewise):
            return self._piecewise(expression)
        if isinstance(expression, sp.logic.boolalg.BooleanAtom):
            truth = self.tensor(np.ones(len(self.X))) > (0.5 if expression == sp.true else 1.5)
            return lambda _: truth
        parts = [self.build(argument) for argument in expression.args]
        if isinstance(expression, sp.Pow):
            return lambda state: parts[0](state) ** parts[1](state)
        return self._called(expression, parts)

    def _gathered(self, expression: Any, slots: list[sp.Symbol]) -> Evaluator:
        """Return a sum or product whose fixed arguments are gathered into one."""
        fixed, moving = expression.as_independent(*slots, as_Add=isinstance(expression, sp.Add))
        parts = [self.build(argument) for argument in expression.func.make_args(moving)]
        value = self.fixed(fixed)
        if isinstance(expression, sp.Add):
            return lambda state: sum((part(state) for part in parts), start=value)
        return lambda state: math.prod((part(state) for part in parts), start=value)

    def _piecewise(self, expression: sp.Piecewise) -> Evaluator:
        import torch

        pairs = [(self.build(value), self.build(condition)) for value, condition in expression.args]
        # Where no condition holds the expression has no value.
        nothing = self.tensor(np.ones(len(self.X))) * math.nan

        def choose(state: Sequence[Any]) -> Any:
            result = nothing
            for value, condition in reversed(pairs):
                result = torch.where(condition(state), value(state), result)
            return result

        return choose

    def _called(self, expression: Any, parts: list[Evaluator]) -> Evaluator:
        import torch

        folded = _FOLDED.get(expression.func)
        name = folded or _FUNCTIONS.get(expression.func)
        if name is None:
            raise ProblemError(
                f"PINN cannot train through {text(expression)}: torch has no {expression.func.__name__} of an unknown. "
                "Rewrite it with elementary functions; functions of the coordinates alone are free."
            )
        function = getattr(torch, name)
        one = self.tensor(np.ones(len(self.X)))

        def call(state: Sequence[Any]) -> Any:
            # torch compares and folds tensors only, never a tensor and a number.
            values = [v if torch.is_tensor(v) else one * v for v in (part(state) for part in parts)]
            if folded is None:
                return function(*values)
            result = values[0]
            for value in values[1:]:
                result = function(result, value)
            return result

        return call
