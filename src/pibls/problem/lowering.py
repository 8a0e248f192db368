"""From a residual to numbers: coefficients per (field, multi-index) and a source, by symbolic differentiation.

Every occurrence of an unknown or of one of its derivatives is replaced by a plain symbol, its *slot*; the Fréchet
derivative of the residual is then its gradient with respect to the slots. For a linear residual the coefficients
are free of slots and the source is the residual at zero; for a nonlinear one they depend on the current state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.evaluate import Function, Within, compile_function
from pibls.problem.measured import expanded_terms
from pibls.problem.printing import text
from pibls.problem.symbols import Data, Field, Normal

MultiIndex = tuple[int, ...]
_SIMPLIFY_LIMIT = 200
_PROBES = (0.0, 0.29)
_DIGITS = 15
_SAME = 1e-6


@dataclass(frozen=True)
class Term:
    """One term of a linearised residual: ``coefficient · ∂^multi_index field``, and the symbol standing for it."""

    field: str
    multi_index: MultiIndex
    coefficient: sp.Expr
    slot: sp.Symbol

    @property
    def order(self) -> int:
        """Order of the derivative."""
        return sum(self.multi_index)


@dataclass(frozen=True)
class Form:
    """A residual lowered to terms and a source."""

    expression: sp.Expr  # the residual as written, with operators resolved
    residual: sp.Expr  # the residual with slots in place of fields and their derivatives
    terms: tuple[Term, ...]  # terms of its Fréchet derivative
    source: sp.Expr  # the residual at zero state: for a linear form, residual = Σ terms + source
    coordinates: tuple[sp.Symbol, ...]  # coordinates of the domain, in the order of the multi-indices
    is_linear: bool  # whether the coefficients are free of the unknowns

    def __getstate__(self) -> dict[str, Any]:
        """Leave out compiled functions, which cannot be pickled."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @property
    def order(self) -> int:
        """Highest order of derivative that occurs."""
        return max((term.order for term in self.terms), default=0)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that occur, in order of first occurrence."""
        return tuple(dict.fromkeys(term.field for term in self.terms))

    def order_along(self, coordinate: sp.Symbol, field: str) -> int:
        """Return the highest order of derivative of a field along one coordinate (-1 if it does not occur)."""
        axis = self.coordinates.index(coordinate)
        return max((term.multi_index[axis] for term in self.terms if term.field == field), default=-1)

    @cached_property
    def source_function(self) -> Function:
        """The source, compiled."""
        return compile_function(self.source, self.coordinates)

    @cached_property
    def residual_function(self) -> Function:
        """The residual, compiled, with the slots of ``terms`` as extra symbols."""
        return compile_function(self.residual, self.coordinates, self.slots)

    def residual_at(self, X: FloatArray, normals: FloatArray | None, state: Sequence[FloatArray]) -> FloatArray:
        """Return the residual at points, where fields and derivatives have the values of a state, one per term.

        A linear one is the sum of its terms: these are compiled already in a solve.
        """
        if not self.is_linear:
            return self.residual_function(X, normals, state)
        terms = zip(self.coefficient_functions, state, strict=True)
        return np.asarray(sum((f(X, normals) * own for f, own in terms), self.source_function(X, normals)))

    def with_source(self, source: sp.Expr) -> Form:
        """Return the same terms with another source."""
        expression, residual = (own - self.source + source for own in (self.expression, self.residual))
        return replace(self, expression=expression, residual=residual, source=source)

    def with_values(self, values: Mapping[sp.Expr, sp.Expr]) -> Form:
        """Return the same terms with values in the place of symbols."""
        terms = tuple(replace(term, coefficient=term.coefficient.xreplace(values)) for term in self.terms)
        expression, residual, source = (own.xreplace(values) for own in (self.expression, self.residual, self.source))
        return replace(self, expression=expression, residual=residual, terms=terms, source=source)

    @property
    def needs_normals(self) -> bool:
        """Whether it depends on the outward normal."""
        return any(isinstance(symbol, Normal) for symbol in self.residual.free_symbols)

    @cached_property
    def coefficient_functions(self) -> tuple[Function, ...]:
        """The coefficients, compiled, in the order of ``terms``; those of a nonlinear form take its slots too."""
        extra = () if self.is_linear else self.slots
        return tuple(compile_function(term.coefficient, self.coordinates, extra) for term in self.terms)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all coefficients are numbers."""
        return all(function.constant is not None for function in self.coefficient_functions)

    @property
    def is_quasilinear(self) -> bool:
        """Whether the coefficients of all derivatives of the highest order depend on fields."""
        return all(d for term, d in zip(self.terms, self.depends, strict=True) if term.order == self.order)

    @property
    def has_roots(self) -> bool:
        """Whether it is nonlinear in its highest derivatives, so that several values of these may solve it."""
        highest = [term for term in self.terms if term.order == self.order]
        return any(term.coefficient.free_symbols & {own.slot for own in highest} for term in highest)

    @cached_property
    def depends(self) -> tuple[bool, ...]:
        """Which coefficients depend on the unknowns."""
        slots = set(self.slots)
        return tuple(bool(term.coefficient.free_symbols & slots) for term in self.terms)

    @property
    def slots(self) -> tuple[sp.Symbol, ...]:
        """The symbols that stand for fields and derivatives, in the order of ``terms``."""
        return tuple(term.slot for term in self.terms)


def _multi_index(derivative: sp.Derivative, coordinates: tuple[sp.Symbol, ...]) -> MultiIndex:
    counts = dict.fromkeys(coordinates, 0)
    for symbol, count in derivative.variable_count:
        if symbol not in counts or not count.is_Integer:
            raise ProblemError(
                f"The derivative {text(derivative)} is not along a coordinate of the domain, which are {coordinates}."
            )
        counts[symbol] += int(count)
    return tuple(counts.values())


def slots_of(expression: sp.Expr, coordinates: tuple[sp.Symbol, ...]) -> dict[sp.Expr, tuple[str, MultiIndex]]:
    """Return the fields and derivatives that occur in an expression: names and multi-indices."""
    found: dict[sp.Expr, tuple[str, MultiIndex]] = {}
    for derivative in sorted(expression.atoms(sp.Derivative), key=sp.default_sort_key):
        inner = derivative.expr
        if isinstance(inner, Data):
            raise ProblemError(
                f"{text(derivative)} differentiates the data function {inner.label!r}, which is known only as a "
                "Python callable. Give its derivative as another pibls.data function."
            )
        if not isinstance(inner, Field):
            raise ProblemError(f"The derivative {text(derivative)} cannot be carried out; write it out term by term.")
        found[derivative] = (inner.label, _multi_index(derivative, coordinates))
    zero = (0,) * len(coordinates)
    for unknown in sorted(expression.atoms(Field), key=sp.default_sort_key):
        found[unknown] = (unknown.label, zero)
    return found


def _free_of(expression: sp.Expr, slots: set[sp.Symbol]) -> tuple[bool, sp.Expr]:
    """Tell whether an expression does not depend on the slots, rewriting only a short one that seems to and may not."""
    left = expression.free_symbols & slots
    if not left:
        return True, expression
    if _varies(expression, left) or expanded_terms(expression) > _SIMPLIFY_LIMIT:
        return False, expression
    expanded = sp.expand(expression)
    # SymPy simplifies inequalities by trying numbers at random, and evaluates text that it makes of them.
    plain = not expanded.has(sp.core.relational.Relational)
    if plain and expanded.free_symbols & slots and expanded.count_ops() <= _SIMPLIFY_LIMIT:
        expanded = sp.simplify(expanded)
    free = not expanded.free_symbols & slots
    return free, expanded if free else expression


def _slope(residual: sp.Expr, slot: sp.Symbol) -> sp.Expr:
    """Return the derivative by an unknown as it is almost everywhere: where a sign changes, no step could use it."""
    # Summand by summand: most of a long residual is free of any one slot.
    slope = sp.Add(*(sp.diff(part, slot) for part in sp.Add.make_args(residual) if slot in part.free_symbols))
    spikes = {spike for spike in slope.atoms(sp.DiracDelta) if slot in spike.free_symbols}
    return slope.xreplace(dict.fromkeys(spikes, sp.S.Zero))


def _varies(expression: sp.Expr, slots: set[sp.Symbol]) -> bool:
    """Tell whether an expression takes two different values for two states: then it is no use to simplify it."""
    if expression.has(sp.Derivative, sp.Subs):
        return False
    calls = expression.atoms(sp.core.function.AppliedUndef)
    plain = expression.xreplace({call: sp.Dummy() for call in calls}).replace(Within, lambda material, *_: material)
    symbols = sorted(plain.free_symbols, key=sp.default_sort_key)
    values = []
    for shift in _PROBES:
        # Numbers without a pattern, the same for all that is no slot.
        point = {s: sp.Float(0.37 + 0.61 * k / (k + 3) + (shift if s in slots else 0)) for k, s in enumerate(symbols)}
        values.append(plain.xreplace(point).evalf(_DIGITS))
    if not all(value.is_number and value.is_finite for value in values):
        return False
    return bool(abs(values[0] - values[1]) > _SAME * (abs(values[0]) + abs(values[1])))


def lower(expression: sp.Expr, coordinates: tuple[sp.Symbol, ...]) -> Form:
    """Lower a resolved residual to a :class:`Form`.

    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> form = lower(-u.diff(x, 2) + x * u - 1, (x, y))
    >>> [(t.field, t.multi_index, t.coefficient) for t in form.terms], form.source, form.is_linear
    ([('u', (2, 0), -1), ('u', (0, 0), x)], -1, True)
    """
    found = slots_of(expression, coordinates)
    symbols = {node: sp.Dummy(text(node), real=True) for node in found}
    residual = expression.xreplace(symbols)
    slots = set(symbols.values())
    terms = []
    is_linear = True
    for node, (name, index) in found.items():
        free, coefficient = _free_of(_slope(residual, symbols[node]), slots)
        is_linear &= free
        independent = False
        if coefficient == 0:
            independent, residual = _free_of(residual, {symbols[node]})
        # What enters only through steps has no slope, but the residual still needs its value.
        if not independent:
            terms.append(Term(name, index, coefficient, symbols[node]))
    if is_linear and any(call.free_symbols & slots for call in residual.atoms(sp.core.function.Application)):
        # The derivative of a step is zero almost everywhere: only the rest tells that the residual is not linear.
        is_linear = _free_of(residual - sp.Add(*(term.coefficient * term.slot for term in terms)), slots)[0]
    source = residual.xreplace(dict.fromkeys(slots, sp.S.Zero))
    return Form(expression, residual, tuple(terms), source, coordinates, is_linear)
