"""Fields without a time derivative: pressures, which make a flow keep its constraint.

Such a field is a multiplier: its forces, integrated by parts, do no work on fields that keep the constraint. It can be
left out while these are followed in time, and found afterwards from the forces that the equations lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from pibls.problem import MultiIndex, OnPart, Statement

State = tuple[str, int]
"""A field and how often it is differentiated in time."""


@dataclass(frozen=True)
class Unsuitable:
    """Why a problem is not an evolution that can be followed in time; false as a condition.

    >>> bool(Unsuitable("it has no time"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Slot:
    """A space derivative of a state, and the symbol that stands for it in a rate."""

    state: State
    multi_index: MultiIndex
    symbol: sp.Symbol


@dataclass(frozen=True, eq=False)
class Solved:
    """Equations solved for their highest derivatives in time; see :class:`~pibls.evolution.Evolution`."""

    rates: Mapping[str, sp.Expr]
    slots: tuple[Slot, ...]
    mass: Mapping[str, Mapping[MultiIndex, sp.Expr]] = field(default_factory=dict)

    def without(self, still: list[str]) -> Solved:
        """Return the rates without the fields that have no time derivative."""
        gone = {slot.symbol: sp.S.Zero for slot in self.slots if slot.state[0] in still}
        rates = {name: rate.xreplace(gone) for name, rate in self.rates.items()}
        return Solved(rates, tuple(s for s in self.slots if s.symbol not in gone), self.mass)


@dataclass(frozen=True, eq=False)
class Multiplier:
    """A field without a time derivative that makes others keep a constraint, as a pressure does of a flow."""

    name: str  # the field
    constraint: Statement  # the equation it sees to: linear, without the field itself
    forces: Mapping[tuple[str, MultiIndex], float]  # how it enters the rates: a number per field and space derivative
    gauges: tuple[Statement, ...]  # averages of it that are given: the rates know it up to a constant only


def find_multipliers(
    solved: Solved,
    constraints: list[Statement],
    still: list[str],
    gauges: list[Statement],
    boundary: list[Statement],
) -> tuple[Multiplier, ...] | Unsuitable:
    """Return the still fields as multipliers of the constraints, if each belongs to one as its adjoint."""
    if still and solved.mass:
        return Unsuitable(f"{still[0]} has no time derivative, and others have some that are differentiated in space")
    found = []
    for name in still:
        forces = _forces(solved, name)
        if not forces or not all(value.is_number for value in forces.values()):
            return Unsuitable(f"{name}, which has no time derivative, does not enter the others with fixed numbers")
        own = next((c for c in constraints if _adjoint(c, forces)), None)
        if own is None:
            return Unsuitable(f"{name} has no time derivative, and no equation that it is the multiplier of")
        fixed = tuple(g for g in gauges if g.form.fields == (name,))
        if not fixed and not any(s.form.fields == (name,) and isinstance(s.place, OnPart) for s in boundary):
            return Unsuitable(f"{name} is known only up to a constant: give its average, as Mean({name}, 0)")
        found.append(Multiplier(name, own, {key: float(value) for key, value in forces.items()}, fixed))
    return tuple(found)


def _forces(solved: Solved, name: str) -> dict[tuple[str, MultiIndex], sp.Expr]:
    """Return the factor of every derivative of a field in every rate."""
    result = {}
    for slot in solved.slots:
        if slot.state[0] == name:
            slopes = {key: sp.diff(rate, slot.symbol) for key, rate in solved.rates.items()}
            result.update({(key, slot.multi_index): slope for key, slope in slopes.items() if slope != 0})
    return result


def _adjoint(constraint: Statement, forces: Mapping[tuple[str, MultiIndex], sp.Expr]) -> bool:
    """Tell whether forces do no work on fields that keep a constraint: integrated by parts, they are its multiple."""
    form = constraint.form
    own = {(term.field, term.multi_index[:-1]): term.coefficient for term in form.terms}
    if not form.is_linear or own.keys() != forces.keys() or not all(value.is_number for value in own.values()):
        return False
    ratios = {sp.nsimplify(forces[key] / own[key]) * (-1) ** sum(key[1]) for key in own}
    return len(ratios) == 1 and 0 not in ratios
