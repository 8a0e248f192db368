"""Conditions on the solution: on the boundary, at the first time, at points, or on the average.

Every one is an equation that holds somewhere. The named short forms only write the equation for you.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import HIGHEST_ORDER, as_reals, check_integer, check_number, shorten
from pibls.errors import ProblemError
from pibls.problem.domain import is_part
from pibls.problem.operators import normal_derivative
from pibls.problem.printing import text
from pibls.problem.symbols import Field, is_field


@dataclass(frozen=True)
class _InitialFace:
    """Stands for the first time of whatever domain the problem has."""

    name: str = "initial time"

    def __reduce__(self) -> str:
        return "INITIAL"


INITIAL = _InitialFace()

# Heavier rows would push the equation below round-off, and lose it without a word.
HEAVIEST = 1e12


def residual_of(equation: object, owner: str) -> sp.Expr:
    """Return left side minus right side of an equation, or the expression itself (meant to be zero).

    >>> x = sp.Symbol("x")
    >>> residual_of(sp.Eq(x, 2), "Problem")
    x - 2
    """
    if isinstance(equation, sp.Eq) and all(_is_scalar(side) for side in equation.args):
        equation = equation.lhs - equation.rhs
    if isinstance(equation, bool):
        raise ProblemError(
            f"{owner[0].upper()}{owner[1:]} is simply {equation}: Python evaluates == at once. "
            "Write sp.Eq(left, right)."
        )
    if isinstance(equation, sp.logic.boolalg.BooleanAtom):
        raise ProblemError(
            f"{owner[0].upper()}{owner[1:]} is always {str(equation).lower()}: SymPy decided it at once. Check that it "
            "contains an unknown field, and that the field has the coordinates it is differentiated by."
        )
    if isinstance(equation, sp.core.relational.Relational) and not isinstance(equation, sp.Eq):
        raise ProblemError(
            f"{shorten(equation)} in {owner} is an inequality, and pibls solves equations. Write it as a penalty, such "
            "as u.diff(t) = L(u) + Max(g - u, 0)/epsilon with a small epsilon."
        )
    if not _is_scalar(equation):
        raise ProblemError(
            f"{owner[0].upper()}{owner[1:]} must be a SymPy equation such as sp.Eq(laplacian(u), f), or an expression "
            f"that is to be zero. Got {shorten(equation)} instead."
        )
    return equation


def _is_scalar(value: object) -> bool:
    return isinstance(value, sp.Expr) and not isinstance(value, sp.MatrixBase | sp.MatrixExpr)


def as_value(value: object, owner: str) -> sp.Expr:
    """Return a number or an expression that a condition is given as an expression.

    >>> as_value(2, "Dirichlet")
    2
    """
    if isinstance(value, sp.Expr):
        return value
    if callable(value):
        raise ProblemError(
            f"The value of {owner} is a Python function; wrap it as pibls.data('g', function, *coordinates) first."
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return sp.Integer(value)
    return sp.Float(check_number("value", value, owner, remedy="Give one number or expression per condition."))


def check_expression(u: object, owner: str) -> sp.Expr:
    """Return an expression with a field in it, or refuse it."""
    if not isinstance(u, sp.Expr) or not u.has(Field):
        raise ProblemError(
            f"{owner} takes a field made by pibls.field, or an expression of one, first. Got {shorten(u)} instead."
        )
    return u


def _place(on: object, owner: str) -> Any:
    if on is None or on is INITIAL or is_part(on):
        return on
    points = as_reals(on)
    if points is None or points.size == 0 or points.ndim > 2 or not np.isfinite(points).all():
        raise ProblemError(
            f"The 'on' parameter of {owner} must be a boundary part such as square.left, a point, or an array of "
            f"points with one row each. Got {shorten(on)} instead."
        )
    points.setflags(write=False)
    return points


def check_settings(owner: str, weight: object, exact: object) -> None:
    """Refuse a weight or a flag that makes no sense."""
    remedy = "For a condition that must hold to round-off use exact=True."
    check_number("weight", weight, owner, minimum=0, exclusive=True, maximum=HEAVIEST, remedy=remedy)
    if not isinstance(exact, bool):
        raise ProblemError(f"The 'exact' parameter of {owner} must be True or False. Got {shorten(exact)} instead.")


@dataclass(frozen=True, eq=False)
class Condition:
    """An equation that holds on a part of the boundary, or at given points.

    Parameters
    ----------
    equation
        A SymPy equation, or an expression that is to be zero; any derivatives, and
        :func:`~pibls.normal_derivative` where the part has a normal.
    on
        A boundary part, a point, or an array of points; the whole boundary if left out.
    weight
        Weight of its rows in the least-squares problem, on top of the automatic scaling.
    exact
        Hold to round-off at its points instead of in the least-squares sense. Use a network wide enough for the
        problem: on a narrow one this costs accuracy inside the domain.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> Condition(sp.Eq(u.diff(x) + u, 1), on=(0.0, 0.5))
    Condition(u + u_x = 1 at 1 point)
    """

    equation: sp.Eq | sp.Expr
    on: Any = None
    weight: float = 1.0
    exact: bool = False
    label: str = field(default="Condition", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise ProblemError(f"The 'label' parameter of Condition must be text. Got {shorten(self.label)} instead.")
        residual_of(self.equation, self.label)
        object.__setattr__(self, "on", _place(self.on, self.label))
        check_settings(self.label, self.weight, self.exact)

    @property
    def place(self) -> str:
        """Where it holds, in words."""
        if self.on is None:
            return "on the boundary"
        if isinstance(self.on, np.ndarray):
            count = 1 if self.on.ndim < 2 else self.on.shape[0]
            return f"at {count} point" + ("s" if count != 1 else "")
        if self.on.name == "boundary":
            return f"on the boundary of {self.on.domain}"
        return f"on {self.on.name}"

    def __repr__(self) -> str:
        written = self.equation if isinstance(self.equation, sp.Eq) else sp.Eq(self.equation, 0, evaluate=False)
        return f"{self.label}({text(written)} {self.place})"


def short(label: str, left: sp.Expr, value: object, on: object, weight: float = 1.0, exact: bool = False) -> Condition:
    """Return the condition that an expression has a value, under the name of a short form."""
    equation = sp.Eq(left, as_value(value, label), evaluate=False)
    return Condition(equation, on, weight, exact, label=label)


def Dirichlet(u: Any, value: Any, on: Any = None, *, weight: float = 1.0, exact: bool = False) -> Condition:  # noqa: N802
    """Return the condition ``u = value``.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> Dirichlet(field("u", x, y), x * y)
    Dirichlet(u = x*y on the boundary)
    """
    return short("Dirichlet", check_expression(u, "Dirichlet"), value, on, weight, exact)


def Neumann(u: Any, value: Any, on: Any = None, *, weight: float = 1.0, exact: bool = False) -> Condition:  # noqa: N802
    """Return the condition ``∂u/∂n = value`` with the outward normal.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> Neumann(field("u", x, y), 0)
    Neumann(dn(u) = 0 on the boundary)
    """
    return short("Neumann", normal_derivative(check_expression(u, "Neumann")), value, on, weight, exact)


def Robin(  # noqa: N802
    u: Any, alpha: Any, beta: Any, value: Any, on: Any = None, *, weight: float = 1.0, exact: bool = False
) -> Condition:
    """Return the condition ``alpha u + beta ∂u/∂n = value`` with the outward normal.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> Robin(field("u", x, y), 1, 2, 3)
    Robin(u + 2*dn(u) = 3 on the boundary)
    """
    inner = check_expression(u, "Robin")
    left = as_value(alpha, "Robin") * inner + as_value(beta, "Robin") * normal_derivative(inner)
    return short("Robin", left, value, on, weight, exact)


def Initial(u: Any, value: Any, *, weight: float = 1.0, exact: bool = False) -> Condition:  # noqa: N802
    """Return the condition ``u = value`` (or ``u.diff(t) = value``) at the first time.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> Initial(field("u", x, t).diff(t), 0)
    Initial(u_t = 0 on initial time)
    """
    return short("Initial", check_expression(u, "Initial"), value, INITIAL, weight, exact)


@dataclass(frozen=True, eq=False)
class Periodic:
    """The solution repeats along a coordinate.

    Parameters
    ----------
    u
        The field.
    coordinate
        The coordinate along which it repeats; the domain has a pair of flat faces across it.
    derivatives
        Derivatives along the coordinate that must match: 0 is the values only. If left out, all below the order of
        the equations along that coordinate.

    Notes
    -----
    Where coefficients are piecewise and jump from one face to the other, fluxes match, as across any other jump. A
    coefficient that is one formula, such as 1 + x, does not jump to anything: slopes match, and fluxes do not.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> Periodic(field("u", x, t), x)
    Periodic(u in x)
    """

    u: Any
    coordinate: sp.Symbol
    derivatives: int | None = None
    weight: float = field(default=1.0, kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    label = "Periodic"

    def __post_init__(self) -> None:
        if not is_field(self.u):
            raise ProblemError(f"Periodic takes a field made by pibls.field first. Got {shorten(self.u)} instead.")
        coordinates = next(iter(self.u.atoms(Field))).args
        if not isinstance(self.coordinate, sp.Symbol) or self.coordinate not in coordinates:
            raise ProblemError(
                f"Periodic takes a coordinate of {text(self.u)}: one of {coordinates}. "
                f"Got {shorten(self.coordinate)} instead."
            )
        if self.derivatives is not None:
            check_integer("derivatives", self.derivatives, "Periodic", minimum=0, maximum=HIGHEST_ORDER)
        check_settings("Periodic", self.weight, self.exact)

    def __repr__(self) -> str:
        return f"Periodic({text(self.u)} in {self.coordinate})"


@dataclass(frozen=True, eq=False)
class Mean:
    """The average of an expression over the domain: the gauge of a problem fixed only up to a constant.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> Mean(field("p", x, y), 0)
    Mean(p = 0 on average)
    """

    u: Any
    value: Any = 0
    weight: float = field(default=1.0, kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    label = "Mean"

    def __new__(cls, *_: Any, on: Any = None, **__: Any) -> Mean:
        """Refuse a place, which other conditions have."""
        if on is not None:
            raise ProblemError(
                f"The 'on' parameter of Mean must be left out: it is the average over the whole domain. Got "
                f"{shorten(on)} instead. Over a shape or a part of the boundary, write "
                "Observation.average(u, part, value, exact=True)."
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_expression(self.u, "Mean")
        if isinstance(self.value, sp.Expr) and self.value.free_symbols:
            raise ProblemError(
                f"The 'value' parameter of Mean must be a number. Got {shorten(self.value)} instead: averages are over "
                "time, too. At given times, write Observation.average(u, shape, values, times=times, exact=True)."
            )
        object.__setattr__(self, "value", check_number("value", self.value, "Mean"))
        check_settings("Mean", self.weight, self.exact)

    def __repr__(self) -> str:
        return f"Mean({text(self.u)} = {self.value:g} on average)"
