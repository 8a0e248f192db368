"""Complex fields: pairs of real ones, for which complex equations and conditions are split into two real ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from pibls.checks import shorten
from pibls.errors import ProblemError
from pibls.problem.conditions import Condition, Mean, Periodic, residual_of
from pibls.problem.operators import resolve
from pibls.problem.printing import text
from pibls.problem.symbols import IMAGINARY, REAL, Field

__all__ = ["complex_name", "complex_parts", "pairs_of", "real_conditions", "real_equations"]


def pairs_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the complex fields among the names of real ones, each with those of its two parts.

    >>> pairs_of(["u", "psi_re", "psi_im"])
    {'psi': ('psi_re', 'psi_im')}
    """
    every = tuple(names)
    found = (name.removesuffix(REAL) for name in every if name.endswith(REAL))
    return {name: (name + REAL, name + IMAGINARY) for name in found if name + IMAGINARY in every}


def complex_name(given: Any) -> str:
    """Return the name of a field, real or complex, given as such or as text.

    >>> from pibls.problem import coordinates, field
    >>> complex_name(field("psi", coordinates("x"), complex=True))
    'psi'
    """
    if isinstance(given, Field):
        return given.label
    fields = sorted(own.label for own in given.atoms(Field)) if isinstance(given, sp.Expr) else []
    pairs = pairs_of(fields)
    if len(fields) == 2 and pairs:
        return next(iter(pairs))
    return str(given) if isinstance(given, str | sp.Basic) else ""


def complex_parts(expression: Any) -> tuple[sp.Expr, sp.Expr]:
    """Return the real and the imaginary part of an expression of real fields.

    >>> from pibls.problem import coordinates, field
    >>> x = coordinates("x")
    >>> psi = field("psi", x, complex=True)
    >>> complex_parts(sp.I * psi.diff(x))
    (-Derivative(psi_im(x), x), Derivative(psi_re(x), x))
    """
    if isinstance(expression, int | float | complex):
        expression = sp.sympify(expression, strict=True)
    if not isinstance(expression, sp.Expr):
        raise ProblemError(f"A complex value must be a number or an expression. Got {shorten(expression)} instead.")
    expression = expression.doit()
    slots = {node: sp.Dummy(real=True) for node in expression.atoms(sp.Derivative, Field)}
    real, imaginary = expression.xreplace(slots).as_real_imag()
    back = {slot: node for node, slot in slots.items()}
    if any(own.has(sp.re, sp.im, sp.arg) for own in (real, imaginary)):
        raise ProblemError(f"The real and imaginary parts of {text(expression)} are not known. Write both out.")
    return real.xreplace(back), imaginary.xreplace(back)


def real_equations(equations: Sequence[Any], space: tuple[sp.Symbol, ...]) -> tuple[Any, ...]:
    """Return equations with each complex one as two real ones; a part without fields must vanish by itself."""
    return tuple(part for own in equations for part in _split(own, space, "the equation"))


def real_conditions(conditions: Sequence[Any], space: tuple[sp.Symbol, ...]) -> tuple[Any, ...]:
    """Return conditions with each one on complex fields as two on real ones."""
    found: list[Any] = []
    for own in conditions:
        if isinstance(own, Condition):
            parts = _split(own.equation, space, own.label)
            found += [own] if parts == (own.equation,) else [replace(own, equation=part) for part in parts]
        elif isinstance(own, Periodic | Mean) and own.u.has(sp.I):
            found += [replace(own, u=part) for part in complex_parts(own.u)]
        else:
            found.append(own)
    return tuple(found)


def _split(equation: Any, space: tuple[sp.Symbol, ...], owner: str) -> tuple[Any, ...]:
    fields = equation.atoms(Field) if isinstance(equation, sp.Basic) and equation.has(sp.I) else ()
    if not pairs_of(own.label for own in fields):
        return (equation,)
    parts = complex_parts(resolve(residual_of(equation, owner), space))
    return tuple(sp.Eq(part, 0, evaluate=False) for part in parts if part.has(Field) or part != 0)
