"""A rate as numbers: the part that is linear with factors known for all times, and the rest with its derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from pibls.lines.form import Evolution, compiled
from pibls.lines.multipliers import Slot
from pibls.problem.evaluate import Function

__all__ = ["Rate", "split"]


@dataclass(frozen=True, eq=False)
class Rate:
    """One rate: a fixed linear part, and the rest with the slots it depends on and its derivatives by them."""

    linear: tuple[tuple[Slot, Function], ...]
    rest: Function | None
    slots: tuple[Slot, ...]
    slopes: tuple[tuple[Slot, Function], ...]


def split(evolution: Evolution, expression: sp.Expr) -> Rate:
    """Split a rate into slots with coefficients that are known for all times, and the rest."""
    coordinates = evolution.problem.domain.coordinates
    symbols = {slot.symbol: slot for slot in evolution.slots}
    linear, varying = [], []
    rest = expression
    for symbol, slot in symbols.items():
        slope = sp.diff(expression, symbol)
        if slope == 0:
            continue
        # Terms may cancel only when expanded; what is evaluated is as it was written, for that may overflow.
        if (changing := slope.free_symbols & {*symbols, coordinates[-1]}) and sp.expand(slope).free_symbols & changing:
            varying.append((slot, slope))
        else:
            linear.append((slot, compiled(slope.xreplace(dict.fromkeys(symbols, sp.S.Zero)), coordinates)))
            rest = rest.xreplace({symbol: sp.S.Zero})
    used = tuple(slot for slot, _ in varying)
    extra = tuple(slot.symbol for slot in used)
    return Rate(
        tuple(linear),
        None if rest == 0 else compiled(rest, coordinates, extra),
        used,
        tuple((slot, compiled(slope, coordinates, extra)) for slot, slope in varying),
    )
