"""Expressions of fields as functions of points, for quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import ProblemError
from pibls.problem.complex_fields import complex_parts
from pibls.problem.conditions import residual_of
from pibls.problem.evaluate import Function, compile_function, switched_at
from pibls.problem.interface import Flux, Inside, Side
from pibls.problem.lowered_equations import checked
from pibls.problem.lowering import MultiIndex, slots_of
from pibls.problem.operators import resolve
from pibls.problem.problem import Problem
from pibls.problem.symbols import Field, Normal

State = Callable[[FloatArray, Sequence[tuple[str, MultiIndex]], float], Sequence[FloatArray]]
"""Derivatives of fields at points; on an interface as they are inside (−1) or outside (1)."""

Pins = tuple[tuple[int, float], ...]  # axes whose coordinate is a number, and the number


@dataclass(frozen=True, eq=False)
class Expression:
    """An expression of fields, derivatives, coordinates and normals, ready to be evaluated.

    Parts of it that :func:`~pibls.inside` and :func:`~pibls.outside` take to one side of an interface are expressions
    of their own.
    """

    plain: sp.Expr  # with symbols in place of fields, derivatives and sides
    coordinates: tuple[sp.Symbol, ...]
    slots: Mapping[sp.Symbol, tuple[str, MultiIndex, Pins]]
    sides: Mapping[sp.Symbol, tuple[float, Expression]]

    @classmethod
    def of(cls, expression: object, problem: Problem, known: Mapping[sp.Symbol, sp.Expr], owner: str) -> Expression:
        """Return an expression of the fields of a problem, with numbers in place of known symbols.

        >>> from pibls.problems import poisson
        >>> problem = poisson()
        >>> u, (x, y) = problem.fields[0], problem.domain.coordinates
        >>> sorted(Expression.of(x * u.diff(x) + u.subs(y, 1), problem, {}, "value").slots.values())
        [('u', (0, 0), ((1, 1.0),)), ('u', (1, 0), ())]
        """
        given = _scalar(expression, owner).xreplace(dict(known))
        stand_ins = {side: sp.Dummy(real=True) for side in sorted(given.atoms(Side), key=sp.default_sort_key)}
        sides = {
            dummy: (-1.0 if isinstance(side, Inside) else 1.0, cls.of(side.args[0], problem, known, owner))
            for side, dummy in stand_ins.items()
        }
        return cls._made(given.xreplace(stand_ins).replace(Flux, problem.laws.flux), problem, sides, owner)

    @classmethod
    def _made(cls, given: sp.Expr, problem: Problem, sides: Any, owner: str) -> Expression:
        domain = problem.domain
        resolved = resolve(given, domain.space)
        if resolved.has(sp.I):
            resolved, imaginary = complex_parts(resolved)
            if imaginary != 0:
                raise ProblemError(
                    f"{owner} takes a real expression, and this one is complex. Ask for sp.re(...), sp.im(...) or "
                    "sp.Abs(...) of it."
                )
        pinned = _pinned(resolved, domain.coordinates)
        symbols = {node: sp.Dummy(str(node), real=True) for node in pinned}
        resolved = resolved.xreplace(symbols)
        checked(
            resolved.xreplace(dict.fromkeys([*symbols.values(), *sides], domain.coordinates[0])),
            domain,
            owner,
            normals=True,
        )
        found = slots_of(resolved, domain.coordinates)
        slots = {node: sp.Dummy(str(node), real=True) for node in found}
        every = {slots[node]: (*found[node], ()) for node in found} | {symbols[node]: pinned[node] for node in pinned}
        if strange := {name for name, _, _ in every.values()} - set(problem.field_names):
            raise ProblemError(
                f"{owner} was asked about {', '.join(sorted(strange))}, which this solution does not have. Its fields "
                f"are {', '.join(problem.field_names)}."
            )
        plain = resolved.xreplace(slots)
        used = {symbol: own for symbol, own in every.items() if symbol in plain.free_symbols}
        return cls(plain, domain.coordinates, used, sides)

    @cached_property
    def _beside(self) -> tuple[sp.Symbol, ...]:
        """The coordinates at which its branches are chosen: on an interface, just beside it."""
        return tuple(sp.Dummy(symbol.name, real=True) for symbol in self.coordinates)

    @cached_property
    def _function(self) -> Function:
        switched = switched_at(self.plain, dict(zip(self.coordinates, self._beside, strict=True)))
        return compile_function(switched, self.coordinates, (*self.slots, *self.sides, *self._beside))

    @property
    def needs_normals(self) -> bool:
        """Whether it depends on the outward normal."""
        own = any(isinstance(symbol, Normal) for symbol in self.plain.free_symbols)
        return own or any(side.needs_normals for _, side in self.sides.values())

    @cached_property
    def free(self) -> set[sp.Symbol]:
        """The coordinates that its value depends on."""
        found = set(self.plain.free_symbols) & set(self.coordinates)
        for _, _, pins in self.slots.values():
            fixed = {axis for axis, _ in pins}
            found |= {symbol for axis, symbol in enumerate(self.coordinates) if axis not in fixed}
        return found.union(*(side.free for _, side in self.sides.values()))

    def at(
        self, X: FloatArray, normals: FloatArray | None, state: State, beside: Callable[[float], FloatArray]
    ) -> FloatArray:
        """Return the values at points; ``beside`` returns points just inside (−1) or outside (1) of them."""
        return self._on(-1.0, X, normals, state, beside)

    def _on(
        self, own: float, X: FloatArray, normals: FloatArray | None, state: State, beside: Callable[[float], FloatArray]
    ) -> FloatArray:
        values: dict[sp.Symbol, FloatArray] = {}
        for pins in dict.fromkeys(pins for _, _, pins in self.slots.values()):
            Y = X.copy() if pins else X
            for axis, number in pins:
                Y[:, axis] = number
            wanted = {symbol: (name, index) for symbol, (name, index, held) in self.slots.items() if held == pins}
            values |= dict(zip(wanted, state(Y, list(wanted.values()), own), strict=True))
        for symbol, (side, inner) in self.sides.items():
            values[symbol] = inner._on(side, X, normals, state, beside)
        given = [values[symbol] for symbol in (*self.slots, *self.sides)]
        return self._function.where_real(X, normals, [*given, *beside(own).T])


def _scalar(expression: object, owner: str) -> sp.Expr:
    if isinstance(expression, int | float) and not isinstance(expression, bool):
        return sp.sympify(expression, strict=True)
    try:
        return residual_of(expression, owner)
    except ProblemError:
        raise ProblemError(
            f"{owner} takes one expression of fields and coordinates, such as u.diff(x)**2. Got {shorten(expression)} "
            "instead; ask for the entries of a vector or matrix one by one."
        ) from None


def _pinned(expression: sp.Expr, coordinates: tuple[sp.Symbol, ...]) -> dict[sp.Expr, tuple[str, MultiIndex, Pins]]:
    """Return the fields and derivatives that are taken at numbers: ``u.subs(t, 1)``, ``u.diff(x).subs(x, 0)``."""
    found: dict[sp.Expr, tuple[str, MultiIndex, Pins]] = {}
    nodes = [*expression.atoms(sp.Subs), *expression.atoms(sp.Derivative), *expression.atoms(Field)]
    for node in nodes:
        inner = node.expr if isinstance(node, sp.Subs) else node
        given = dict(zip(node.variables, node.point, strict=True)) if isinstance(node, sp.Subs) else {}
        field = inner.expr if isinstance(inner, sp.Derivative) else inner
        if not isinstance(field, Field) or len(field.args) != len(coordinates):
            continue
        counts = dict(inner.variable_count) if isinstance(inner, sp.Derivative) else {}
        index, pins = [], []
        for axis, argument in enumerate(field.args):
            at = argument.xreplace(given)
            index.append(int(counts.get(argument, 0)))
            if at.is_number and at.is_real:
                pins.append((axis, float(at)))
            elif at != coordinates[axis]:
                break
        else:
            if pins:
                found[node] = field.label, tuple(index), tuple(pins)
    return found
