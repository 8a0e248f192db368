"""Conditions across a curve or surface inside the domain: equations between the values on both sides of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp
from sympy.logic.boolalg import Boolean

from pibls.checks import check_number, shorten
from pibls.errors import ProblemError
from pibls.problem.conditions import HEAVIEST, Condition, Mean, Periodic, as_value, residual_of, short
from pibls.problem.domain import is_domain
from pibls.problem.measured import expanded
from pibls.problem.observation import Observation
from pibls.problem.operators import normal_derivative
from pibls.problem.printing import text
from pibls.problem.symbols import Field


class Marked(sp.Expr):  # type: ignore[misc]
    """An expression that is marked by a word, whose meaning the problem tells."""

    word = ""

    def _sympystr(self, printer: Any) -> str:
        return f"{self.word}({printer.doprint(self.args[0])})"


class Side(Marked):
    """An expression as it is on one side of an interface."""

    def _latex(self, printer: Any) -> str:
        return rf"\left.{printer.doprint(self.args[0])}\right|_{{\mathrm{{{self.word[:-4]}}}}}"


class Inside(Side):
    """An expression on the inner side."""

    word = "inside"


class Outside(Side):
    """An expression on the outer side."""

    word = "outside"


class Flux(Marked):
    """The flux of a field along the normal, as the equations define it."""

    word = "flux"

    def _latex(self, printer: Any) -> str:
        return rf"q^{{\mathrm{{in}}}}_{{{printer.doprint(self.args[0])}}}"


def _of_fields(value: object, owner: str) -> sp.Expr:
    if not isinstance(value, sp.Expr) or value.has(Side) or not value.has(Field):
        raise ProblemError(f"{owner} takes a field or an expression of fields. Got {shorten(value)} instead.")
    return value


def inside(u: sp.Expr) -> Any:
    """Return an expression of fields as it is on the inner side of an interface.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> sp.Eq(outside(u), 2 * inside(u))
    Eq(outside(u(x, y)), 2*inside(u(x, y)))
    """
    return Inside(_of_fields(u, "inside"))


def outside(u: sp.Expr) -> Any:
    """Return an expression of fields as it is on the outer side of an interface; see :func:`inside`."""
    return Outside(_of_fields(u, "outside"))


def flux(u: sp.Expr) -> Any:
    """Return the flux of a field along the normal, by the equation of the problem, on boundaries and interfaces.

    That is ``k ∂u/∂n`` for an equation with ``div(k*grad(u))`` in it, whatever its sign: n points outwards. In
    elasticity it is the entry of the traction that belongs to the displacement.
    """
    if not isinstance(u, Field):
        raise ProblemError(f"flux takes a field made by pibls.field. Got {shorten(u)} instead.")
    return Flux(u)


def Convection(  # noqa: N802
    u: Any, on: Any = None, *, h: Any, ambient: Any, conductivity: Any = None, weight: float = 1.0
) -> Condition:
    """Return the condition ``k ∂u/∂n = h (ambient − u)``: heat passes to surroundings of a given temperature.

    Parameters
    ----------
    u
        The temperature, a field.
    on
        A boundary part; the whole boundary if left out.
    h
        Heat that passes per area, time and degree: a number or an expression.
    ambient
        The temperature of the surroundings: a number or an expression.
    conductivity
        The factor k; left out, it is that of the equation, see :func:`flux`.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> Convection(field("T", x, y), h=25, ambient=20)
    Convection(flux(T) = 500 - 25*T on the boundary)
    """
    heat = flux(u) if conductivity is None else as_value(conductivity, "Convection") * normal_derivative(u)
    passed = sp.expand_mul(as_value(h, "Convection") * (as_value(ambient, "Convection") - u))
    return short("Convection", heat, passed, on, weight)


@dataclass(frozen=True, eq=False)
class Interface:
    """A condition across the boundary of a shape inside the domain, instead of continuity.

    Without one, values and fluxes are continuous everywhere. Give what differs: jumps, a contact resistance, or any
    equations between both sides.

    Parameters
    ----------
    u
        A field; or an equation in :func:`~pibls.inside` and :func:`~pibls.outside`, or a list of them. Each takes the
        place of one continuity: that of the value, or of the flux if only derivatives occur in it.
    on
        A shape, of whose boundary the part inside the domain is the interface; or a condition on coordinates that
        holds inside, such as ``x < 1/2``.
    jump
        Value outside minus value inside.
    flux
        Flux outside minus flux inside, with the normal that points outwards: ``[k ∂u/∂n]``; see :func:`~pibls.flux`.
    resistance
        The value outside is larger by the flux times this, as for a thin layer: its thickness over its
        conductivity.

    Examples
    --------
    >>> import pibls as pb
    >>> x = pb.coordinates("x")
    >>> u = pb.field("u", x)
    >>> rod, left = pb.Interval((x, 0, 1)), pb.Interval((x, 0, 0.5))
    >>> contact = pb.Interface(u, on=left, resistance=1)
    >>> contact
    Interface(outside(u) = inside(u) + inside(flux(u)) across Interval((x, 0, 0.5)))
    >>> ends = [pb.Dirichlet(u, 0, on=rod.left), pb.Dirichlet(u, 1, on=rod.right)]
    >>> solution = pb.solve(pb.Problem(sp.Eq(u.diff(x, 2), 0), rod, [*ends, contact]))
    >>> solution([[0.25], [0.75]]).round(9).tolist()
    [0.125, 0.875]
    """

    u: Any
    on: Any
    jump: Any = field(default=None, kw_only=True)
    flux: Any = field(default=None, kw_only=True)
    resistance: Any = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    equations: tuple[sp.Eq | sp.Expr, ...] = field(init=False)
    label = "Interface"
    exact = False

    def __post_init__(self) -> None:
        check_number("weight", self.weight, "Interface", minimum=0, exclusive=True, maximum=HEAVIEST)
        object.__setattr__(self, "equations", self._equations())
        if not is_domain(self.on) and not (isinstance(self.on, Boolean) and self.on.free_symbols):
            raise ProblemError(
                "The 'on' parameter of Interface must be a shape such as Disk((x, y), (0, 0), 1), or a condition on "
                f"coordinates that holds inside, such as x < 1/2. Got {shorten(self.on)} instead."
            )

    def _equations(self) -> tuple[sp.Eq | sp.Expr, ...]:
        given = {"jump": self.jump, "flux": self.flux, "resistance": self.resistance}
        given = {name: as_value(value, "Interface") for name, value in given.items() if value is not None}
        if not isinstance(self.u, Field):
            many = tuple(self.u) if isinstance(self.u, Sequence) and not isinstance(self.u, str) else (self.u,)
            if given or not many:
                raise ProblemError(
                    "Interface takes a field with jump=, flux= or resistance=, or equations of inside(u) and "
                    f"outside(u) alone. Got {shorten(self.u)}{' and ' + ', '.join(given) if given else ''}."
                )
            for equation in many:
                _check_sides(residual_of(equation, "Interface"))
            return many
        found, flow = [], Flux(self.u)
        if "jump" in given or "resistance" in given or not given:
            gap = given.get("jump", sp.S.Zero) + given.get("resistance", sp.S.Zero) * Inside(flow)
            found.append(sp.Eq(Outside(self.u), Inside(self.u) + gap, evaluate=False))
        if "flux" in given:
            found.append(sp.Eq(Outside(flow), Inside(flow) + given["flux"], evaluate=False))
        return tuple(found)

    @property
    def condition(self) -> sp.Basic:
        """The condition on coordinates that holds inside."""
        found: sp.Basic = self.on.condition if is_domain(self.on) else self.on
        return found

    @property
    def place(self) -> str:
        """Where it holds, in words."""
        return f"across {self.on if is_domain(self.on) else text(self.on)}"

    def written(self) -> tuple[str, ...]:
        """Return its equations as text."""
        both = (e if isinstance(e, sp.Eq) else sp.Eq(e, 0, evaluate=False) for e in self.equations)
        return tuple(text(equation) for equation in both)

    def __repr__(self) -> str:
        return f"Interface({', '.join(self.written())} {self.place})"


def _check_sides(residual: sp.Expr) -> None:
    """Refuse an equation in which a field is on no side."""
    rest = residual.replace(lambda e: isinstance(e, Side), lambda _: sp.S.One)
    if not residual.has(Side) or rest.has(Field):
        raise ProblemError(
            f"An equation of Interface must say on which side fields are: {text(residual)} = 0. Write inside(u) and "
            "outside(u), also for derivatives: inside(k*normal_derivative(u))."
        )


def split_sides(equation: sp.Eq | sp.Expr, flows: Callable[[sp.Expr], sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """Return the inner and the outer side of an equation of an interface; their sum is to be zero.

    What is known belongs to the side that has unknowns, the inner one if both do. ``flows`` tells the flux of a field.

    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> split_sides(sp.Eq(outside(u) - 2 * inside(u), x), lambda u: u)
    (-x - 2*u(x, y), u(x, y))
    """
    residual = residual_of(equation, "Interface")
    stand_ins = {side: sp.Dummy(real=True) for side in sorted(residual.atoms(Side), key=sp.default_sort_key)}
    plain = residual.xreplace(stand_ins)
    own, other = ({s: d for s, d in stand_ins.items() if isinstance(s, kind)} for kind in (Inside, Outside))
    for symbol in own.values():
        if expanded(plain.diff(symbol)).free_symbols & set(other.values()):
            raise ProblemError(
                f"An equation of Interface multiplies both sides with each other: {text(residual)} = 0. It must be a "
                "sum of what is inside and what is outside."
            )
    known = plain.xreplace(dict.fromkeys(stand_ins.values(), sp.S.Zero))
    sides = []
    for mine, theirs in ((own, other), (other, own)):
        alone = plain.xreplace(dict.fromkeys(theirs.values(), sp.S.Zero)) - known
        back = {dummy: side.args[0].replace(Flux, flows) for side, dummy in mine.items()}
        sides.append(expanded(alone).xreplace(back))
    return (sides[0] + known, sides[1]) if own else (sides[0], sides[1] + known)


AnyCondition = Condition | Periodic | Mean | Observation | Interface
