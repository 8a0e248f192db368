"""Net sources of nonlinear equations: all that ∇·F(u) + G(u) = f makes must flow out, for any u.

Where conditions prescribe F·n on all of the boundary, the integral of G(u) is known: that of f, less what flows out. If
G has one sign for all u, as eᵘ and 1 + u² have, that number must have it, too. The same holds of sums of equations in
which G cancels, as what one species loses another gains. Where values are given, F·n may still be bounded, as the pull
of a soap film is. No iteration shows the contradiction: it runs away, or finds a compromise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from pibls.cells.iterate import MOST_STEPS
from pibls.cells.linear import Start
from pibls.cells.tree import leaves
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Across, Form, OnPart, Opposite, Problem, Statement
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.fluxes import divided
from pibls.problem.lowered_equations import lowered
from pibls.problem.printing import text
from pibls.problem.statements import just_inside
from pibls.problem.symbols import Field, normal
from pibls.quadrature.roots import CLOSE
from pibls.refinement import SMALLEST
from pibls.refinement.standards import PLAIN, POINTS, SLIGHT
from pibls.wellposed.compatibility import (
    SAMPLES,
    Slot,
    boundary_rules,
    given_on_parts,
    halved,
    incompatibility,
    slots_of,
    tangent_rows,
)


@dataclass(frozen=True, eq=False)
class _NetSource:
    """An equation ∇·F + G = f, or a sum of some, with a G that has one sign, or is zero."""

    name: str
    flux: Form  # F·n
    kept: sp.Expr  # G
    sign: int  # of G: 0 where there is none
    is_strict: bool  # whether G is never zero
    source: Function  # −f


def imbalance(problem: Problem, tol: float, start: Callable[[], Start]) -> str:
    """Say by how much sources and prescribed fluxes differ, or that they leave a sum that no field can have.

    ``start`` returns the data of the problem and a tree that resolves them; it is called only where needed.
    """
    if told := incompatibility(problem, tol, start) or _never_zero(problem):
        return told
    if problem.is_linear or problem.domain.time is not None or not problem.domain.space:
        return ""
    given = given_on_parts(problem)
    # What holds across interfaces may make or take something, and so may faces that do not repeat each other.
    opposite = [s for s in problem.statements if isinstance(s.place, Opposite)]
    others = any(isinstance(s.place, Across) for s in problem.statements)
    if (
        others
        or any(s.form.source_function.constant != 0.0 for s in opposite)
        or any(s.targets is not None for s in given)
    ):
        return ""
    try:
        found = (_told(problem, net, tol, start) for net in problem.once(_net_sources))
        return next(filter(None, found), "")
    except ProblemError:
        return ""  # coefficients may be infinite at the boundary, as in polar coordinates


def _never_zero(problem: Problem) -> str:
    """Say which equation holds for no real values at all, as w′² + w² = −1."""
    real = {symbol: sp.Dummy(real=True) for symbol in problem.domain.coordinates}
    for statement in problem.laws.statements:
        left = statement.form.residual
        sign, is_strict = (None, False) if statement.form.is_linear else _sign(left.subs(real))
        if sign and is_strict:
            words = f"{', '.join(statement.form.fields)}: it cannot be zero, as {statement.name} says. Check the signs."
            one = ("positive", "negative")[sign < 0]
            return f"The equations and conditions contradict each other: {text(left)} is {one} for every {words}"
    return ""


def _net_sources(problem: Problem) -> tuple[_NetSource, ...]:
    """Return the nonlinear equations whose terms outside of divergences have one sign, or cancel in a sum."""
    statements = problem.laws.statements
    separated = [_separated(written, problem.domain.space) for written in problem.equations]
    kept = [sp.Add(*(term for term in sp.Add.make_args(rest) if term.has(Field))) for _, rest in separated]
    found = []
    for factors in (*np.eye(len(kept), dtype=int).tolist(), *_cancelling(kept)):
        own = [pair for pair in zip(factors, statements, strict=True) if pair[0] != 0]
        flux, rest = (sp.expand(sum(f * pair[k] for f, pair in zip(factors, separated, strict=True))) for k in (0, 1))
        left = sp.expand(sum(f * one for f, one in zip(factors, kept, strict=True)))
        sign, is_strict = _sign(left)
        if flux == 0 or sign is None or all(statement.form.is_linear for _, statement in own):
            continue
        name = " + ".join(statement.name if f == 1 else f"({f}) {statement.name}" for f, statement in own)
        form = lowered(just_inside(flux, problem.domain), problem.domain, "the flux", normals=True)
        source = compile_function(left - rest, problem.domain.coordinates)
        found.append(_NetSource(name, form, left, sign, is_strict, source))
    return tuple(found)


def _cancelling(kept: Sequence[sp.Expr]) -> list[list[sp.Expr]]:
    """Return factors of equations with which their terms outside of divergences add up to zero.

    >>> from pibls import coordinates, field
    >>> x = coordinates("x")
    >>> u, v = field("u", x), field("v", x)
    >>> _cancelling([u * v, -2 * u * v - u, u])
    [[2, 1, 1]]
    """
    parts = [one.as_coefficients_dict() for one in kept]
    terms = sorted({term for own in parts for term in own if term != 0}, key=sp.default_sort_key)
    basis = sp.Matrix(len(terms), len(kept), lambda row, column: parts[column].get(terms[row], 0)).nullspace()
    return [list(vector) for vector in basis if sum(factor != 0 for factor in vector) > 1]


def _separated(written: object, space: tuple[sp.Symbol, ...]) -> tuple[sp.Expr, sp.Expr]:
    """Return F·n of an equation, and all else: derivatives with constant factors are divergences, too."""
    found, rest = divided(written, space)
    flux = sp.S.Zero if found is None else found
    for term in sp.Add.make_args(sp.expand(rest)):
        factor, others = term.as_independent(*space)
        if isinstance(others, sp.Derivative) and isinstance(others.expr, Field) and len(others.variable_count) == 1:
            (symbol, count) = others.variable_count[0]
            flux += factor * normal(symbol) * others.expr.diff(symbol, count - 1)
            rest -= term
    # A divergence may be written out: a(u) u_xx + a'(u) u_x², or a(u_x) u_xx.
    rest = sp.expand(rest)
    for second in (
        own for own in rest.atoms(sp.Derivative) if isinstance(own.expr, Field) and own.derivative_count == 2
    ):
        symbol, own = second.variables[0], second.expr
        slope, factor = own.diff(symbol), rest.coeff(second)
        along = sp.integrate(factor, slope) if factor.is_polynomial(slope) else factor * slope
        if set(second.variables) == {symbol} and not along.atoms(sp.Derivative) - {slope}:
            flux, rest = flux + normal(symbol) * along, sp.expand(rest - along.diff(symbol))
    return flux, rest


def _sign(expression: sp.Expr) -> tuple[int | None, bool]:
    """Return the sign of an expression of real fields, None where they decide, and whether it is never zero."""
    if expression == 0:
        return 0, False
    atoms = sorted(expression.atoms(sp.Derivative) | expression.atoms(Field), key=lambda a: not a.is_Derivative)
    real = expression.subs({atom: sp.Dummy(real=True) for atom in atoms})
    if real.is_nonnegative or real.is_nonpositive:
        return (1 if real.is_nonnegative else -1), bool(real.is_positive or real.is_negative)
    return None, False


def _told(problem: Problem, net: _NetSource, tol: float, start: Callable[[], Start]) -> str:
    if not _passes(problem, net):
        return ""
    data, root = start()
    layout, left = data.rows.layout, []
    ends = {end for s in problem.statements if isinstance(s.place, Opposite) for end in (s.place.low, s.place.high)}
    whole = float(problem.domain.boundary.quadrature(POINTS)[-1].sum()) - sum(end.measure for end in ends)
    for tree in (root, halved(root)):
        parts = layout.parts_of(leaves(tree))
        made = np.concatenate([part.integrals * net.source(part.points) for part in parts])
        rules = boundary_rules(parts)
        out = [own for place, rule in rules.items() if (own := _flowing(problem, net, place, *rule)) is not None]
        covered = sum(float(rule[-1].sum()) for rule in rules.values())
        # Where nothing is given, anything may flow unless F is bounded; where two places overlap, it would count twice.
        if len(out) < len(rules) or abs(covered - whole) > PLAIN * whole:
            return ""
        least, most = np.concatenate([np.zeros((2, 0)), *out], axis=1)
        size = float(np.abs(made).sum() + np.maximum(np.abs(least), np.abs(most)).sum())
        left.append((float(made.sum()), float(least.sum()), float(most.sum())))
        if _is_possible(net, *left[-1], size, min(tol, PLAIN) * size):
            return ""
    (before, *_), (total, *out_of) = left
    if abs(total - before) > SLIGHT * abs(total):
        return ""
    return _in_words(net, total, *out_of)


def _is_possible(net: _NetSource, made: float, least: float, most: float, size: float, error: float) -> bool:
    """Tell whether the integral of G may equal the source less the flux."""
    if not net.sign:
        return made - most <= error and made - least >= -error
    # Of the sign that G has, the integral of G must be; where G is never zero, nor is its integral.
    gap = max(net.sign * (made - most), net.sign * (made - least))
    return gap > CLOSE * size if net.is_strict else gap >= -error


def _passes(problem: Problem, net: _NetSource) -> bool:
    """Tell whether a flux out of a face enters by the opposite one, if faces repeat each other.

    It does if all in it repeats, derivatives along the face as their field does.
    """
    same = [(s.place, s.form) for s in problem.statements if isinstance(s.place, Opposite)]
    if same and net.flux.residual.free_symbols & set(problem.domain.coordinates):
        return False
    for place in {place for place, _ in same}:
        axis = int(np.abs(place.low.normals(place.low.sample(1).points)[0]).argmax())
        told = {(term.field, term.order) for own, form in same if own == place for term in form.terms}
        if any((term.field, k) not in told for term in net.flux.terms for k in range(term.multi_index[axis] + 1)):
            return False
    return True


def _in_words(net: _NetSource, made: float, least: float, most: float) -> str:
    words = f"The equations and conditions contradict each other: in {net.name}, "
    fields = ", ".join(sorted({call.label for call in net.kept.atoms(Field)}))
    has = f"{text(net.kept)} is {'' if net.is_strict else 'not '}"
    has += ("positive", "negative")[(net.sign < 0) == net.is_strict]
    sources = f"the source adds up to {made:.6g}, and "
    if most - least > CLOSE * max(abs(least), abs(most)):
        sources += f"between {least:.6g} and {most:.6g} flows out, whatever slopes are"
        must = f"{made - most:.6g} to {made - least:.6g}"
    else:
        sources += f"by the conditions {most:.6g} flows out"
        must = f"{made - most:.6g}"
    if not net.sign:
        return f"{words}{sources}. Check signs and values."
    return f"{words}{has} for every {fields}, and its integral must be {must}: {sources}. Check the signs."


def _flowing(
    problem: Problem, net: _NetSource, place: OnPart, X: FloatArray, normals: FloatArray, weights: FloatArray
) -> FloatArray | None:
    """Return the least and the most that flows out at points of a place; None where no number bounds it.

    They are the same where the flux is, for all states that meet the conditions there. Where it is not, it may still
    tend to a number as slopes along the normal grow, as that of a soap film does.
    """
    given = given_on_parts(problem)
    own = [(term.field, term.multi_index) for term in net.flux.terms]
    slots = sorted({*own, *slots_of(s.form for s in given)})
    rng = np.random.default_rng(0)
    steep = np.stack([normals @ np.array(index) * (sum(index) == 1) for _, index in slots], axis=1)

    def flow(size: float, *, meets: bool = True) -> FloatArray:
        at = rng.standard_normal((len(X), len(slots))) + size * steep
        at = _meeting(given, place, X, normals, slots, at) if meets else at
        return net.flux.residual_at(X, normals, [at[:, slots.index(slot)] for slot in own])

    found = np.array([flow(0.0) for _ in range(SAMPLES)])
    scale = float(np.abs([*found, *(flow(0.0, meets=False) for _ in range(SAMPLES))]).max())
    if not np.ptp(found, axis=0).max() <= CLOSE * scale:
        with np.errstate(over="ignore", invalid="ignore"):
            near, far = (np.array([flow(-size), flow(size)]) for size in (1.0 / CLOSE, 1.0 / CLOSE**2))
        if not np.abs(far - near).max() <= PLAIN * scale:
            return None
        found = np.concatenate([found, far])
    found = np.where(np.abs(found) > CLOSE * scale, found, 0.0)
    return np.asarray(weights * [found.min(axis=0), found.max(axis=0)])


def _meeting(
    given: Sequence[Statement], place: OnPart, X: FloatArray, normals: FloatArray, slots: Sequence[Slot], at: FloatArray
) -> FloatArray:
    """Return the states nearest to some that meet conditions at points of a place; NaN where none is found."""
    for _ in range(MOST_STEPS):
        rows, missed = tangent_rows(given, place, X, normals, slots, at)
        if np.all(np.abs(missed) <= SMALLEST * (1.0 + np.einsum("pcs,ps->pc", np.abs(rows), np.abs(at)))):
            return at
        at = at - np.einsum("psc,pc->ps", np.linalg.pinv(rows), missed)
    return np.full_like(at, np.nan)
