"""Directions among the unknown numbers that data do not determine, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray
from pibls.inverse.thresholds import SETTINGS
from pibls.refinement import VISIBLE
from pibls.refinement.standards import MOST, SLIGHT


@dataclass(frozen=True, eq=False)
class Undetermined:
    """Numbers that are not determined, sentences about them, and the open directions."""

    numbers: BoolArray
    remarks: tuple[str, ...]
    directions: tuple[dict[str, float], ...] = ()


def find_undetermined(
    rows: FloatArray,
    wrong: FloatArray,
    names: tuple[str, ...],
    vector: FloatArray,
    rates: FloatArray,
    logarithmic: BoolArray,
    change: Callable[[FloatArray], float],
    replaced: BoolArray | None = None,
) -> Undetermined:
    """Find directions that the rows of a step see by no more than their own errors.

    The rows are those of the numbers in units of the noise, priors included and what unknown functions can make up for
    taken out, in coordinates without units; ``wrong`` says how large their errors may be. ``rates`` are the derivatives
    of numbers by their coordinates, ``change`` tells how much predictions change with the numbers, in units of the
    noise, and ``replaced`` which numbers data would depend on if there were no unknown functions. Rows alone cannot
    tell a product from a sum.

    >>> rows, values, signs = np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([3.0, 3.0]), np.array([True, True])
    >>> errors = np.full((2, 2), 1e-6)
    >>> find_undetermined(rows, errors, ("k", "c"), values, values, signs, lambda v: abs(v[0] * v[1] - 9)).remarks
    ('The data do not determine k and c: only k*c = 9 is determined.',)
    >>> find_undetermined(rows, errors, ("k", "c"), values, values, signs, lambda v: abs(v[0] + v[1] - 6)).remarks
    ('The data do not determine k and c: only k + c = 6 is determined.',)
    """
    count = len(names)
    if not count:
        return Undetermined(np.zeros(0, dtype=bool), ())
    _, sizes, directions = np.linalg.svd(np.vstack([rows, np.zeros((count, count))]), full_matrices=False)
    unseen = sizes <= np.maximum(np.linalg.norm(wrong @ np.abs(directions.T), axis=0), 1.0 / SETTINGS.largest)
    found = np.zeros(count, dtype=bool)
    remarks, open_ones = [], []
    for group in _groups(directions[unseen]):
        own = np.flatnonzero(np.abs(group).max(axis=0) > SLIGHT)
        found[own] = True
        labels = [names[i] for i in own]
        # Coordinates of numbers that are not positive are multiples of scales, which nobody else knows of.
        natural = group[:, own] * np.where(logarithmic[own], 1.0, rates[own])
        natural = natural / np.linalg.norm(natural, axis=1, keepdims=True)
        open_ones += [dict(zip(labels, row.tolist(), strict=True)) for row in natural]
        if len(own) == 1:
            made_up = replaced is not None and bool(replaced[own[0]])
            why = "unknown functions can make up for it" if made_up else "it is not determined"
            remarks.append(f"The data do not {'determine' if made_up else 'depend on'} {labels[0]}: {why}.")
            continue
        steepest = float(np.linalg.norm(rows[:, own], 2))

        def is_unseen(moved: FloatArray, own: Any = own, steepest: float = steepest) -> bool:
            everything = vector.copy()
            everything[own] = moved
            step = np.abs(everything - vector) / rates
            least = float(np.linalg.norm(wrong @ step))
            return change(everything) <= max(VISIBLE * steepest * float(np.linalg.norm(step)), least)

        candidates = _candidates(group[:, own] * rates[own], vector[own], rates[own], labels)
        kept = next((text for text, moves in candidates if all(map(is_unseen, moves))), "")
        moved = ", ".join(f"ln {name}" if logarithmic[i] else name for i, name in zip(own, labels, strict=True))
        told = f"only {kept} is determined" if kept else f"nothing changes along ({moved}) = {_vectors(natural)}"
        remarks.append(f"The data do not determine {', '.join(labels[:-1])} and {labels[-1]}: {told}.")
    return Undetermined(found, tuple(remarks), tuple(open_ones))


def _vectors(directions: FloatArray) -> str:
    return " and ".join(f"({', '.join(f'{v:.2g}' for v in row)})" for row in directions)


def _groups(directions: FloatArray) -> list[FloatArray]:
    """Split directions into groups that have no unknown in common, by their row echelon form."""
    reduced = _echelon(directions)
    groups: list[tuple[set[int], list[FloatArray]]] = []
    for row in reduced:
        members, own = set(np.flatnonzero(np.abs(row) > SLIGHT * np.abs(row).max()).tolist()), [row]
        for other in [g for g in groups if g[0] & members]:
            groups.remove(other)
            members |= other[0]
            own = other[1] + own
        groups.append((members, own))
    return [np.array(own) for _, own in groups]


def _echelon(directions: FloatArray) -> FloatArray:
    """Return the same space by rows that have a one where all others have a zero."""
    found = directions.copy()
    for number in range(len(found)):
        column = int(np.argmax(np.abs(found[number])))
        found[number] /= found[number, column]
        for other in range(len(found)):
            if other != number:
                found[other] -= found[other, column] * found[number]
    found[np.abs(found) < SLIGHT / 10] = 0.0
    return found


def _candidates(
    free: FloatArray, vector: FloatArray, rates: FloatArray, names: list[str]
) -> Iterator[tuple[str, list[FloatArray]]]:
    """Yield combinations of numbers that may be determined, with values, and numbers that share one.

    Near the numbers found, a product does not change along free directions, or a sum.
    """
    if len(free) != len(names) - 1:
        return
    if (vector != 0).all():
        powers = _integers(_across(free / vector))
        if powers is not None:
            text = "*".join(n if p == 1 else f"{n}**{p}" for n, p in zip(names, powers, strict=True) if p > 0) or "1"
            for name, power in zip(names, powers, strict=True):
                text += f"/{name}" if power == -1 else f"/{name}**{-power}" if power < 0 else ""
            steps = _along(free / vector, powers, rates / vector)
            value = float(np.prod(vector ** np.array(powers, dtype=float)))
            yield f"{text} = {value:.6g}", [vector * np.exp(step) for step in steps]
    factors = _integers(_across(free))
    if factors is not None:
        terms = [
            f"{'-' if f < 0 else '+'} {'' if abs(f) == 1 else f'{abs(f)}*'}{n}"
            for n, f in zip(names, factors, strict=True)
        ]
        text, steps = " ".join(terms).removeprefix("+ "), _along(free, factors, rates)
        yield f"{text} = {float(vector @ np.array(factors)):.6g}", [vector + step for step in steps]


def _along(free: FloatArray, factors: list[int], sizes: FloatArray) -> list[FloatArray]:
    """Return steps along free directions that leave a sum with such factors as it is."""
    across = np.array(factors) / np.linalg.norm(factors)
    steps = free - np.outer(free @ across, across)
    return [step * (MOST / np.abs(step / sizes).max()) for step in steps]


def _across(free: FloatArray) -> FloatArray:
    """Return the direction across all of the free ones."""
    return np.asarray(np.linalg.svd(free)[2][-1])


def _integers(direction: FloatArray) -> list[int] | None:
    """Return a direction as small integers, the first of them positive, if it is one of those."""
    first = direction[np.argmax(np.abs(direction))]
    ratios = [Fraction(float(v / first)).limit_denominator(SETTINGS.denominator) for v in direction]
    if any(abs(float(r) - v / first) > SLIGHT for r, v in zip(ratios, direction, strict=True)) or not all(ratios):
        return None
    common = int(np.lcm.reduce([r.denominator for r in ratios]))
    found = [int(r * common) for r in ratios]
    return found if found[0] > 0 else [-f for f in found]
