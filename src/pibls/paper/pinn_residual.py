"""A lowered residual as a function of torch tensors: parts that do not depend on the state are computed by NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Form
from pibls.problem.evaluate import compile_function
from pibls.problem.printing import text
from pibls.problem.program import Program

Evaluator: TypeAlias = Callable[[Sequence[Any]], Any]
"""From one tensor per term of the form to the residual."""

_NAMED = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh")
_OTHERS = {"Abs": "abs", "ceiling": "ceil"}
_FUNCTIONS = {name: name for name in (*_NAMED, "atan2", "sign", "erf", "floor", "sqrt")} | _OTHERS
_OPERATORS: Mapping[type | str, Callable[..., Any]] = {
    sp.Add: operator.add, sp.Mul: operator.mul, sp.Pow: operator.pow, "divide": operator.truediv,
    sp.And: operator.and_, sp.Or: operator.or_, sp.Not: operator.invert, sp.Gt: operator.gt, sp.Ge: operator.ge,
    sp.Lt: operator.lt, sp.Le: operator.le, sp.Eq: operator.eq, sp.Ne: operator.ne,
}  # fmt: skip


def residual_evaluator(
    form: Form, X: FloatArray, normals: FloatArray | None, tensor: Callable[[FloatArray], Any]
) -> Evaluator:
    """Compile the residual of a form, linear or not, at fixed points; ``tensor`` brings arrays to torch.

    >>> import numpy as np, torch
    >>> from pibls.problem import coordinates, field
    >>> from pibls.problem.lowering import lower
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> residual = residual_evaluator(lower(x * sp.exp(u) - 1, (x,)), np.array([[2.0]]), None, torch.as_tensor)
    >>> residual([torch.zeros(1)])
    tensor([1.], dtype=torch.float64)
    """
    slots = [term.slot for term in form.terms]
    given: dict[sp.Expr, sp.Symbol] = {}

    def fixed(expression: sp.Expr) -> Any:
        """Return the value of an expression without the state: a number, or a tensor over the points."""
        function = compile_function(expression, form.coordinates)
        constant = function.constant
        return tensor(np.array(function(X, normals))) if constant is None else constant

    def moving(node: Any) -> Any:
        """Return an expression with a symbol for each of its largest parts that do not depend on the state."""
        if isinstance(node, sp.Expr) and not node.has(*slots):
            return node if node.is_number else given.setdefault(node, sp.Dummy(real=True))
        if not node.args:
            return node
        if isinstance(node, sp.Add | sp.Mul):
            still, rest = node.as_independent(*slots, as_Add=isinstance(node, sp.Add))
            return node.func(moving(still), *map(moving, node.func.make_args(rest)))
        return node.func(*map(moving, node.args))

    if form.is_linear:
        # A linear residual may hide behind products that cancel; its terms are written out already.
        terms, source = [fixed(term.coefficient) for term in form.terms], fixed(form.source)
        return lambda state: sum((c * value for c, value in zip(terms, state, strict=True)), start=source)
    operations = _operations(tensor(np.ones(len(X))))
    for node in sp.preorder_traversal(form.residual):
        known = not node.args or isinstance(node, ExprCondPair) or type(node).__name__ in operations
        if not known and (node.has(*slots) or not isinstance(node, sp.Expr)):
            raise ProblemError(
                f"PINN cannot train through {text(node)}: torch has no {type(node).__name__} of an unknown. "
                "Rewrite it with elementary functions; functions of the coordinates alone are free."
            )
    program = Program.of([moving(form.residual)], [*slots, *given.values()])
    values = [fixed(part) for part in given]
    return lambda state: program(*state, *values, operations=operations)[0]


def _operations(one: Any) -> Mapping[str, Callable[..., Any]]:
    """Return the operations of a program on tensors; ``one`` makes a tensor of a number, which torch often wants."""
    import torch

    def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *values: function(*(v if torch.is_tensor(v) else one * v for v in values))

    def piecewise(*pairs: Any) -> Any:
        # Where no condition holds the expression has no value.
        result = one * np.nan
        for value, condition in zip(pairs[-2::-2], pairs[::-2], strict=True):
            result = torch.where(one * condition > 0, value, result)
        return result

    folded = {name if isinstance(name, str) else name.__name__: f for name, f in _OPERATORS.items()}
    folded |= {"Max": lifted(torch.maximum), "Min": lifted(torch.minimum)}
    named = {name: lifted(getattr(torch, other)) for name, other in _FUNCTIONS.items()}
    every = {name: f if name == "Not" else lambda *v, f=f: reduce(f, v) for name, f in folded.items()}
    return {**named, **every, "Piecewise": lifted(piecewise)}
