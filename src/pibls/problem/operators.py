"""Differential operators over the space coordinates.

Which coordinates are space is known only once a problem has a domain (time is what a ``TimeInterval`` binds), so
these operators stay unevaluated in an expression until :func:`resolve` is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import sympy as sp
from sympy.printing.precedence import PRECEDENCE

from pibls.checks import HIGHEST_ORDER, shorten
from pibls.errors import ProblemError
from pibls.problem.symbols import Field, normal


class SpaceOperator(sp.Expr):  # type: ignore[misc]
    """Base of the operators that wait for a domain to say which coordinates are space."""

    word = ""
    # Else SymPy takes differences of them for products that do not commute, and finds those never to be zero.
    is_commutative = True

    def over(self, space: tuple[sp.Symbol, ...]) -> sp.Expr:
        """Return the operator written out over the space coordinates."""
        raise NotImplementedError

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        return self.func(*(arg.diff(symbol) for arg in self.args))

    def _sympystr(self, printer: Any) -> str:
        return f"{self.word}({', '.join(printer.doprint(arg) for arg in self.args)})"


class Laplacian(SpaceOperator):
    """Sum of the second derivatives over space."""

    word = "laplacian"

    def over(self, space: tuple[sp.Symbol, ...]) -> sp.Expr:
        """Return Σ ∂²/∂xᵢ² of the argument."""
        return sp.Add(*(sp.diff(self.args[0], symbol, 2) for symbol in space))


class SpaceDerivative(SpaceOperator):
    """Derivative along one coordinate if that is a space coordinate, zero if it is time."""

    word = "grad"

    def over(self, space: tuple[sp.Symbol, ...]) -> sp.Expr:
        """Return ∂/∂xᵢ of the argument."""
        expression, symbol = self.args
        return sp.diff(expression, symbol) if symbol in space else sp.S.Zero

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        return self.func(self.args[0].diff(symbol), self.args[1])

    def _sympystr(self, printer: Any) -> str:
        return f"{self.word}({printer.doprint(self.args[0])})[{self.args[1]}]"


class Divergence(SpaceOperator):
    """Divergence of a vector with one entry per space coordinate, or one per coordinate."""

    word = "div"

    @property
    def flux(self) -> tuple[sp.Expr, sp.Expr] | None:
        """Factor and expression of ``div(factor * grad(expression))``, or None for any other vector."""
        slopes = [next((a for a in sp.Mul.make_args(e) if isinstance(a, SpaceDerivative)), None) for e in self.args]
        known = [slope for slope in slopes if slope is not None]
        factors = {entry / slope for entry, slope in zip(self.args, known, strict=False)}
        inner = {slope.args[0] for slope in known}
        if len(known) < len(slopes) or len(factors) > 1 or len(inner) > 1:
            return None
        (factor,), (expression,) = factors, inner
        whole = tuple(slope.args[1] for slope in known) == _coordinates_of(expression)
        return (factor, expression) if whole and not factor.has(SpaceOperator) else None

    def _sympystr(self, printer: Any) -> str:
        if self.flux is None:
            return super()._sympystr(printer)
        factor, inner = self.flux
        sign = {1: "", -1: "-"}
        before = sign[factor] if factor in sign else f"{printer.parenthesize(factor, PRECEDENCE['Mul'], strict=True)}*"
        return f"{self.word}({before}{SpaceDerivative.word}({printer.doprint(inner)}))"

    def over(self, space: tuple[sp.Symbol, ...]) -> sp.Expr:
        """Return Σ ∂vᵢ/∂xᵢ."""
        if len(self.args) == len(space):
            return sp.Add(*(sp.diff(v, symbol) for v, symbol in zip(self.args, space, strict=True)))
        given = sp.Tuple(*self.args)
        # An expression in the place of the field leaves nothing but the order of the domain: time is last.
        everything = _coordinates_of(given) if given.has(Field) else (*space, None)
        if len(self.args) == len(everything):
            pairs = zip(self.args, everything, strict=True)
            return sp.Add(*(sp.diff(v, symbol) for v, symbol in pairs if symbol in space))
        raise ProblemError(
            f"div needs one entry per space coordinate {space}. Got {len(self.args)} entries; "
            "give a vector with as many entries as the domain has space coordinates."
        )


class NormalDerivative(SpaceOperator):
    """Derivative along the outward normal of the boundary."""

    word = "dn"

    def over(self, space: tuple[sp.Symbol, ...]) -> sp.Expr:
        """Return Σ nᵢ ∂/∂xᵢ of the argument."""
        return sp.Add(*(normal(symbol) * sp.diff(self.args[0], symbol) for symbol in space))


def _expression(value: object, owner: str) -> sp.Expr:
    if not isinstance(value, sp.Expr):
        raise ProblemError(f"{owner} takes a field or an expression of fields. Got {shorten(value)} instead.")
    return value


def _coordinates_of(expression: sp.Basic) -> tuple[sp.Symbol, ...]:
    fields = sorted(expression.atoms(Field), key=str)
    if fields:
        return cast(tuple[sp.Symbol, ...], fields[0].args)
    return tuple(sorted(expression.free_symbols, key=str))


def laplacian(u: sp.Expr) -> Any:
    """Return the Laplacian of ``u`` over the space coordinates of the problem's domain.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> laplacian(field("u", x, y))
    laplacian(u(x, y))
    """
    return Laplacian(_expression(u, "laplacian"))


def grad(u: sp.Expr) -> Any:
    """Return the gradient of ``u`` as a column with one entry per coordinate; the entry of time counts as zero.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> grad(u).dot(grad(u))
    grad(u(x, y))[x]**2 + grad(u(x, y))[y]**2
    """
    expression = _expression(u, "grad")
    symbols = _coordinates_of(expression)
    if not symbols:
        raise ProblemError(f"grad takes an expression of coordinates or fields. Got the number {shorten(u)} instead.")
    return sp.ImmutableDenseMatrix([SpaceDerivative(expression, symbol) for symbol in symbols])


def div(v: Sequence[sp.Expr] | sp.MatrixBase) -> Any:
    """Return the divergence of a vector (a sequence of fields or expressions, or a result of :func:`grad`).

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> div([field("u", x, y), field("v", x, y)])
    div(u(x, y), v(x, y))
    """
    if not isinstance(v, Sequence | sp.MatrixBase) or isinstance(v, str) or len(v) == 0:
        raise ProblemError(f"div takes a sequence of expressions, one per space coordinate. Got {shorten(v)} instead.")
    zeros = [isinstance(entry, int | float) and entry == 0 for entry in v]
    return Divergence(*(sp.S.Zero if zero else _expression(e, "div") for e, zero in zip(v, zeros, strict=True)))


def curl(v: Sequence[sp.Expr] | sp.MatrixBase) -> Any:
    """Return the curl of a vector: an expression for two entries in a plane, a column for three in space.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> curl([field("u", x, y), field("v", x, y)])
    -grad(u(x, y))[y] + grad(v(x, y))[x]
    """
    entries = tuple(v) if isinstance(v, Sequence | sp.MatrixBase) and not isinstance(v, str) else ()
    symbols = _coordinates_of(sp.Tuple(*entries)) if all(isinstance(entry, sp.Basic) for entry in entries) else ()
    if len(entries) not in (2, 3) or len(symbols) < len(entries):
        raise ProblemError(f"curl takes two or three expressions, one per space coordinate. Got {shorten(v)} instead.")

    def turned(i: int, j: int) -> sp.Expr:
        return SpaceDerivative(entries[j], symbols[i]) - SpaceDerivative(entries[i], symbols[j])

    return turned(0, 1) if len(entries) == 2 else sp.ImmutableDenseMatrix([turned(1, 2), turned(2, 0), turned(0, 1)])


def normal_derivative(u: sp.Expr) -> Any:
    """Return the derivative of ``u`` along the outward normal, for use in boundary conditions.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> normal_derivative(field("u", x, y))
    dn(u(x, y))
    """
    return NormalDerivative(_expression(u, "normal_derivative"))


def resolve(expression: sp.Expr, space: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Write out every operator of an expression over the given space coordinates and carry out derivatives.

    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> resolve(laplacian(field("u", x, t)), (x,))
    Derivative(u(x, t), (x, 2))
    """
    if expression.has(SpaceOperator):
        expression = expression.replace(lambda e: isinstance(e, SpaceOperator), lambda e: e.over(space))
    if not expression.has(sp.Derivative):
        return expression
    _refuse_high_orders(expression)
    expression = expression.doit()
    _refuse_high_orders(expression)
    return expression


def _refuse_high_orders(expression: sp.Expr) -> None:
    for derivative in expression.atoms(sp.Derivative):
        order = sum(int(count) for _, count in derivative.variable_count if count.is_Integer)
        if order > HIGHEST_ORDER:
            raise ProblemError(
                f"A derivative of order {shorten(order)} occurs; orders up to {HIGHEST_ORDER} are possible, those of "
                "the nodes overflow beyond. Write the equation as a system of lower order."
            )
