"""Where expressions switch from one branch to another: across planes, and across curves.

There a solution keeps its values and its flux, the highest derivative times its coefficient, not its slope; a wave
u_tt = c² u_xx that is not written as a divergence keeps its slope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.level import Level
from pibls.problem.lowering import Form
from pibls.problem.places import Across, OnPart, Place
from pibls.problem.problem import Problem
from pibls.quadrature.roots import bracketed

_SWITCHES = (sp.Piecewise, sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min)
_REAL = 1e-9
_SCAN = 4097
MOST_EDGES = 32  # edges: each divides the domain once more


@dataclass(frozen=True, eq=False)
class Switching:
    """Where expressions of a problem switch from one branch to another; each is found when it is first asked for.

    >>> import pibls as pb
    >>> x, y = pb.coordinates("x y")
    >>> u, square = pb.field("u", x, y), pb.Rectangle((x, 0, 2), (y, 0, 2))
    >>> source = sp.Piecewise((1, x * (x + y) < 1), (sp.Abs(3 * y - 1), True))
    >>> switching = Switching(Problem(sp.Eq(pb.laplacian(u), source), square, [pb.Dirichlet(u, 0)]))
    >>> switching.edges, switching.walls, switching.planes.round(3), switching.jumps
    ((x**2 + x*y - 1,), (3*y - 1,), array([[  nan, 0.333]]), False)
    """

    problem: Problem
    # zero on curves along which the equation carries kinks and jumps of its data; how much a wave jumps there
    carried: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)

    @cached_property
    def planes(self) -> FloatArray:
        """Planes across an axis at which data switch, one row each, NaN along the axes that they extend in."""
        return self._planes([s.form.residual for s in self.problem.statements] + self._fluxes)

    @cached_property
    def planes_inside(self) -> FloatArray:
        """Those of them at which more than conditions on the boundary switch."""
        inside = [s.form.residual for s in self.problem.statements if not isinstance(s.place, OnPart)]
        return self._planes(inside + self._fluxes)

    def _planes(self, switching: list[sp.Expr]) -> FloatArray:
        symbols, bounds = self.problem.domain.coordinates, self.problem.domain.bounds
        found: dict[tuple[int, float], FloatArray] = {}
        for factor in factors_of(switching + self._interfaces, symbols):
            own = [symbol for symbol in symbols if symbol in factor.free_symbols]
            if len(own) != 1:
                continue
            axis = symbols.index(own[0])
            for place in _roots(factor, own[0], *bounds[axis]):
                row = np.full(len(symbols), np.nan)
                row[axis] = place
                found[axis, place] = row
        return np.array(list(found.values())).reshape(-1, len(symbols))

    @cached_property
    def edges(self) -> tuple[sp.Expr, ...]:
        """Functions of several coordinates at whose zeros equations switch, or carry the switches of their data."""
        return (*self._zeros(several=True), *self.carried)

    @cached_property
    def walls(self) -> tuple[sp.Expr, ...]:
        """Smooth functions of one coordinate at whose zeros equations switch."""
        return self._zeros(several=False)

    def _zeros(self, *, several: bool) -> tuple[sp.Expr, ...]:
        symbols = self.problem.domain.coordinates
        found: dict[sp.Expr, sp.Expr] = {}
        for factor in factors_of(self._equations, symbols):
            # A flux may be written in another way than the equation.
            plain = sp.expand(factor)
            if (len(factor.free_symbols & set(symbols)) > 1) == several and -plain not in found:
                found.setdefault(plain, factor)
        return tuple(found.values())[:MOST_EDGES]

    def jump_across(self, level: Level, X: FloatArray, normals: FloatArray) -> FloatArray | None:
        """Return how much a wave jumps along normals at points on the zeros of a level function; None if not at all."""
        jump = self.carried.get(level.expression)
        if not jump:
            return None
        sign = np.sign((level.gradient(X) * normals).sum(axis=1))
        return np.asarray(sign * compile_function(jump, self.problem.domain.coordinates)(X))

    @cached_property
    def branch(self) -> Function:
        """A number that differs between any two places at which equations take different branches.

        >>> import pibls as pb
        >>> x = pb.coordinates("x")
        >>> u, source = pb.field("u", x), sp.Piecewise((1, (x > 1) & (x < 2)), (2, True))
        >>> problem = Problem(sp.Eq(u.diff(x, 2), source), pb.Interval((x, 0, 3)), [pb.Dirichlet(u, 0)])
        >>> Switching(problem).branch(np.array([[0.5], [1.5], [2.5]]))
        array([1., 0., 1.])
        """
        places = set(self.problem.domain.coordinates)
        found, radix = sp.S.Zero, 1
        nodes: dict[sp.Basic, None] = {}
        for expression in self._equations:
            nodes |= dict.fromkeys(sorted(expression.atoms(*_SWITCHES), key=sp.default_sort_key))
        for branches in dict.fromkeys(_branches(node) for node in nodes):
            if all(not condition.free_symbols - places for condition in branches):
                numbered = [(sp.Integer(k), condition) for k, condition in enumerate(branches)]
                found += radix * sp.Piecewise(*numbered, (sp.Integer(len(branches)), True))
                radix *= len(branches) + 1
        for level in self.carried:
            found += radix * sp.Heaviside(level, 0)
            radix *= 2
        return compile_function(found, self.problem.domain.coordinates)

    @cached_property
    def jumps(self) -> bool:
        """Whether the coefficient of a highest derivative in space, or another term of a flux, jumps anywhere."""
        tops = (_top_jumps(form, len(self.problem.domain.space)) for form in self.problem.laws.forms)
        return bool(_edges(self._fluxes)) or any(tops)

    @cached_property
    def reading(self) -> str:
        """The flux taken to be continuous where a coefficient jumps outside a divergence, as a sentence.

        >>> import pibls as pb
        >>> x = pb.coordinates("x")
        >>> u, rod = pb.field("u", x), pb.Interval((x, 0, 1))
        >>> k = sp.Piecewise((1, x < 0.4), (20, True))
        >>> ways = (k * u.diff(x, 2) - 1, pb.div([k * u.diff(x)]) - 1, u.diff(x, 2) - 1 / k)
        >>> [len(Switching(Problem(one, rod, [pb.Dirichlet(u, 0)])).reading) > 0 for one in ways]
        [True, False, False]
        """
        space, time = len(self.problem.domain.space), self.problem.domain.time
        for equation, flux in zip(self.problem.laws.statements, self.problem.laws.fluxes, strict=True):
            form = equation.form
            if form.order == 2 and flux is None and _top_jumps(form, space):
                untold = f"Where its coefficients jump, {equation.name} does not say "
                if time is not None and any(form.order_along(time, name) == 2 for name in form.fields):
                    return (
                        f"{untold}what is continuous: slopes were taken to be, as those of a string of two wires. "
                        "Write div(...) if a coefficient times slopes is."
                    )
                return (
                    f"{untold}which flux is continuous: coefficients times slopes were taken to be continuous. Write "
                    "div(...) if the flux is another one, and divide by the coefficient if the slopes themselves are "
                    "continuous, as those of a beam."
                )
        return ""

    @cached_property
    def hidden(self) -> str:
        """Which coefficient of a highest derivative jumps where its flux is not known, as a sentence."""
        domain, equations = self.problem.domain, self.problem.laws.statements
        for statement, flux in zip(equations, self.problem.laws.fluxes, strict=True):
            form = statement.form
            for term in form.terms:
                edges = _edges([term.coefficient]) if term.order == form.order else []
                if not edges:
                    continue
                factors = factors_of([term.coefficient], domain.coordinates)
                known = all(len(factor.free_symbols) < 2 or {factor, -factor} & {*self.edges} for factor in factors)
                moving = any(edge.free_symbols - set(domain.coordinates) for edge in edges)
                if moving or not known or (form.order > 2 and len(domain.space) > 1):
                    return (
                        f"The coefficient {term.coefficient} jumps, and nothing tells the flux across the jump: use "
                        "one that changes over a short distance instead."
                    )
                if flux is None and len(equations) > 1 and max(term.multi_index) < term.order:
                    return (
                        f"The coefficient {term.coefficient} jumps, and {statement.name} does not say which flux is "
                        "continuous: write it as a divergence, such as div([...]) of the stresses."
                    )
        return ""

    @cached_property
    def _interfaces(self) -> list[sp.Expr]:
        """Expressions that switch across the interfaces of the problem."""
        places = (s.place for s in self.problem.statements if isinstance(s.place, Across))
        return list(dict.fromkeys(sp.Piecewise((1, place.condition), (0, True)) for place in places))

    @cached_property
    def _equations(self) -> list[sp.Expr]:
        """The expressions across whose switches cells are cut."""
        return [form.residual for form in self.problem.laws.forms] + self._fluxes + self._interfaces

    @cached_property
    def _fluxes(self) -> list[sp.Expr]:
        """Fluxes with branches: they are continuous, so that a term that jumps bends the solution.

        The term may be a source alone, as a magnetisation or the strain of a heated part; its derivative is zero on
        either side, so that the equation itself does not show it.
        """
        pairs = zip(self.problem.equations, self.problem.laws.fluxes, strict=True)
        return [flux.residual for equation, flux in pairs if flux is not None and has_branches(equation)]


def condition_edges(problem: Problem, place: Place) -> tuple[sp.Expr, ...]:
    """Return the smooth functions at whose zeros the conditions in a place switch."""
    own = [s.form.residual for s in problem.statements if s.place == place]
    return tuple(dict.fromkeys(factors_of(own, problem.domain.coordinates)))


def has_branches(expression: sp.Basic) -> bool:
    """Tell whether an expression has branches.

    >>> has_branches(sp.Abs(sp.Symbol("x", real=True)))
    True
    """
    return bool(expression.has(*_SWITCHES))


def _top_jumps(form: Form, space: int) -> bool:
    """Tell whether the coefficient of a highest derivative in space jumps anywhere."""
    top = max((sum(term.multi_index[:space]) for term in form.terms), default=0)
    return any(_edges([term.coefficient]) for term in form.terms if sum(term.multi_index[:space]) == top > 0)


def _branches(node: sp.Basic) -> tuple[sp.Basic, ...]:
    """Return the conditions under which each branch of a node is taken, but for the last one."""
    if isinstance(node, sp.Piecewise):
        return tuple(condition for _, condition in node.args if condition is not sp.true)
    if isinstance(node, sp.Max | sp.Min):
        sign = 1 if isinstance(node, sp.Max) else -1
        return tuple(sp.And(*(sign * (one - two) > 0 for two in node.args if two is not one)) for one in node.args[:-1])
    return (node.args[0] > 0,)


def factors_of(expressions: Iterable[sp.Basic], symbols: tuple[sp.Symbol, ...]) -> Iterator[sp.Expr]:
    """Yield the smooth factors of all that decides by its sign which branch expressions take.

    >>> x, y = sp.symbols("x y", real=True)
    >>> list(factors_of([x * y > x], (x, y)))
    [y - 1, x]
    """
    for edge in dict.fromkeys(_edges(expressions)):
        for part in _signed(edge):
            if part.free_symbols - set(symbols):
                continue  # what depends on the solution has no place of its own
            if part.is_polynomial(*symbols):
                yield from (factor for factor, _ in sp.factor_list(part)[1])
            elif part.free_symbols:
                yield part


def _roots(factor: sp.Expr, symbol: sp.Symbol, low: float, high: float) -> list[float]:
    """Return the zeros of an expression of one coordinate between two values."""
    if factor.is_polynomial(symbol):
        roots = np.roots([float(c) for c in sp.Poly(factor, symbol).all_coeffs()])
        return [float(r.real) for r in roots if abs(r.imag) <= _REAL * abs(r) and low < r.real < high]
    function = compile_function(factor, (symbol,))
    try:
        return zeros(lambda s: function(s[:, None]), np.linspace(low, high, _SCAN)[1:-1])
    except ProblemError:
        return []


def zeros(function: Callable[[FloatArray], FloatArray], places: FloatArray) -> list[float]:
    """Return where a function of arrays is zero: single ones of the places, and between two where its sign changes.

    >>> np.round(zeros(lambda s: s * (s - 0.7), np.linspace(-1.0, 1.0, 5)), 12)
    array([0.7, 0. ])
    """
    signs = np.sign(function(places))
    (change,) = np.nonzero(signs[1:] * signs[:-1] < 0)
    beside = np.abs(np.concatenate([[1.0], signs[:-1]])) + np.abs(np.concatenate([signs[1:], [1.0]]))
    between = bracketed(lambda at, _: function(at), places[change], places[change + 1])
    return [*between.tolist(), *places[(signs == 0) & (beside == 2)].tolist()]


def _edges(expressions: Iterable[sp.Basic]) -> list[sp.Expr]:
    """Return the expressions whose sign decides which branch others take."""
    found: list[sp.Expr] = []
    for expression in expressions:
        found += sorted((relation.lhs - relation.rhs for relation in expression.atoms(Relational)), key=str)
        found += sorted((call.args[0] for call in expression.atoms(sp.Abs, sp.sign, sp.Heaviside)), key=str)
        for call in sorted(expression.atoms(sp.Max, sp.Min), key=str):
            found += [one - two for k, one in enumerate(call.args) for two in call.args[k + 1 :]]
    return found


def _signed(edge: sp.Expr) -> list[sp.Expr]:
    """Return an expression with either sign of every absolute value in it."""
    inner = next(iter(sorted(edge.atoms(sp.Abs), key=str)), None)
    if inner is None:
        return [edge]
    return [one for sign in (1, -1) for one in _signed(edge.xreplace({inner: sign * inner.args[0]}))]
