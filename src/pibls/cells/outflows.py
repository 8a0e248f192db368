"""The balances of fluxes across faces, of many faces at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pibls.cells.evaluation import Term
from pibls.cells.mixed_derivatives import both
from pibls.cells.parts import CellPart, Face
from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.problem import Form
from pibls.quadrature.roots import CLOSE

if TYPE_CHECKING:
    from pibls.cells.flux import Fluxes
    from pibls.cells.rows import Rows

__all__ = ["Outflow", "Outflows"]

Terms = dict[tuple[int, MultiIndex], Any]
"""Coefficients by field and derivative: numbers, or values at the points of faces, shape (faces, points)."""


class Outflow(NamedTuple):
    """The balances of the flux out of a part across a face.

    Attributes
    ----------
    own
        Over the trace rows of the part on the face.
    shared
        Over the shared trace coefficients.
    besides
        Over the weights of the part: slopes along the face that enter the flux; None without any.
    """

    own: FloatArray
    shared: FloatArray
    besides: FloatArray | None


@dataclass(eq=False)
class Outflows:
    """Makes the balances of the fluxes of a problem across faces."""

    rows: Rows
    flux: Fluxes
    _steady: dict[int | None, bool] = field(default_factory=dict)  # by axis: whether coefficients are constants

    def across(self, pairs: Sequence[tuple[CellPart, Face]]) -> list[Outflow]:
        """Return the balances of the fluxes out of parts across faces; faces of one kind are treated together."""
        kinds: dict[Any, list[int]] = {}
        for k, (_, face) in enumerate(pairs):
            kind = (
                face.axis,
                face.normals is None,
                face.basis.shape,
                face.slopes is None,
                *self.rows.traces.continuous_across(face),
            )
            kinds.setdefault(kind, []).append(k)
        found: dict[int, Outflow] = {}
        for numbers in kinds.values():
            found.update(zip(numbers, self._alike_across([pairs[k] for k in numbers]), strict=True))
        return [found[k] for k in range(len(pairs))]

    def _alike_across(self, pairs: Sequence[tuple[CellPart, Face]]) -> list[Outflow]:
        """Return the same for faces of one kind."""
        (_, first), traces, balances = pairs[0], self.rows.traces, self.rows.balances
        shared, step = traces.continuous_across(first), first.basis.shape[1]
        out = np.array([1.0 if face.below is part else -1.0 for part, face in pairs])
        unit, depth = (np.array(own) for own in zip(*((traces.units(f), f.thickness) for _, f in pairs), strict=True))
        roots = np.sqrt([face.weights for _, face in pairs])[:, None]
        tests = np.stack([balances.tests(part, traces.on_side(part, face)) for part, face in pairs]) * roots
        even = tests @ np.stack([face.basis for _, face in pairs])
        found = np.zeros((*tests.shape[:2], len(self.rows.equations), step * len(shared)))
        rises, sloped = np.zeros_like(found), False
        own: list[list[list[Term]]] = [[[] for _ in self.rows.equations] for _ in pairs]
        for i, terms in enumerate(self._flowing(pairs)):
            for k, (number, order) in enumerate(shared):
                scale = out * unit[:, number] / (np.sqrt(depth) * (depth / 2) ** order)
                block = slice(k * step, (k + 1) * step)
                found[:, :, i, block] = (scale * self._means(pairs, i, terms, number, order))[:, None, None] * even
                for axis, values in self._sloped(pairs, i, terms, number) if order == 0 else ():
                    slopes = np.stack([f.slopes[axis - (axis > f.axis)] for _, f in pairs if f.slopes is not None])
                    rises[:, :, i, block] += (scale * values)[:, None, None] * (tests @ slopes)
                    sloped = True
                    for known, value in zip(own, values.tolist(), strict=True):
                        known[i].append((number, self.rows.along(axis, 1), value))
        plain = balances.summed(np.moveaxis(found, 0, 2)).swapaxes(0, 1)
        theirs = plain + balances.summed(np.moveaxis(rises, 0, 2)).swapaxes(0, 1)
        besides = self._besides(pairs, own, out[:, None, None] * even) if sloped else [None] * len(pairs)
        return [Outflow(*one) for one in zip(plain, theirs, besides, strict=True)]

    def _besides(
        self, pairs: Sequence[tuple[CellPart, Face]], sloped: list[list[list[Term]]], even: FloatArray
    ) -> list[FloatArray]:
        """Return the balances of the slopes along faces that enter fluxes, over the weights of the parts."""
        found = []
        for (part, face), terms, own in zip(pairs, sloped, even, strict=True):
            rows = [self.rows.traces.projected(part, face, one) if one else None for one in terms]
            tested = [np.zeros((len(own), self.rows.width)) if one is None else own @ one for one in rows]
            found.append(self.rows.balances.summed(np.stack(tested, axis=1)))
        return found

    def _sloped(
        self, pairs: Sequence[tuple[CellPart, Face]], i: int, terms: Terms, number: int
    ) -> list[tuple[int, FloatArray]]:
        """Return the axes of faces along which slopes of a field enter the flux of an equation, and how much."""
        face, found = pairs[0][1], []
        if face.slopes is None or face.normals is not None:
            return []
        steady = np.array([not self.flux.is_flux(own, number, 1) for _, own in pairs])
        d = face.points.shape[1]
        for axis in set(range(d)) - {face.axis}:
            value = terms.get((number, both(d, face.axis, axis)))
            if value is not None and steady.any():
                found.append((axis, steady * self.flux.mixed.share(i, number, face.axis, axis) * _means(pairs, value)))
        return found

    def _flowing(self, pairs: Sequence[tuple[CellPart, Face]]) -> list[Terms]:
        """Return by equation the coefficients of derivatives beside faces; on cell sides, of those along their axis."""
        face = pairs[0][1]
        axis = face.axis if face.normals is None else None
        if axis not in self._steady:
            self._steady[axis] = all(_is_steady(equation.form, axis) for equation in self.rows.equations)
        if self._steady[axis]:
            terms = [self.rows.terms(e, face.points, None, [], axis) for e in self.rows.equations]
            return [{(n, index): value for n, index, value in own} for own in terms]
        places = [(part, self.rows.traces.inward(part, own), None) for part, own in pairs]
        found: list[Terms] = []
        for equation in self.rows.equations:
            every = self.rows.terms_at(equation, places, axis)
            found.append({(n, index): values for n, index, values in every})
        return found

    def _means(
        self, pairs: Sequence[tuple[CellPart, Face]], i: int, terms: Terms, number: int, order: int
    ) -> FloatArray:
        """Return the means over faces of the coefficient with which a shared term enters the flux of an equation."""
        face = pairs[0][1]
        if face.normals is None and not self.flux.switches and not any(own.conditions for _, own in pairs):
            value = terms.get((number, self.rows.along(face.axis, order + 1)))
            return np.zeros(len(pairs)) if value is None else _means(pairs, value)
        split = [
            {key: value[k] if np.ndim(value) == 2 else value for key, value in terms.items()} for k in range(len(pairs))
        ]
        every = zip(pairs, split, strict=True)
        return np.array([self._mean(part, own, i, mine, number, order) for (part, own), mine in every])

    def _mean(self, part: CellPart, face: Face, i: int, terms: Any, number: int, order: int) -> float:
        """Return the mean over a face of the coefficient with which a shared term enters the flux of an equation."""
        if self.flux.laws.side(part, face, number, order) is not None:
            return self._share_of_law(part, face, i, number, order)
        if self.flux.is_flux(face, number, order):
            share = 1.0 if i not in self.rows.analysis.waves else self._across_normals(face, terms, number)
            return share * self.flux.scale(face, number) if self.flux.fluxes[number, order] == i else 0.0
        if face.normals is None:
            value = terms.get((number, self.rows.along(face.axis, order + 1)))
            if value is None:
                return 0.0
            return _mean(face.weights, value) / self.flux.share_of_flux(part, face, number, order)
        if order == 0 and not (self.flux.is_contained(number)):
            normal = face.normals.T
            ones = [(self.rows.along(axis, 1), own) for axis, own in enumerate(normal)]
            return sum(
                _mean(face.weights, terms[number, index] * own) for index, own in ones if (number, index) in terms
            )
        return 0.0

    def _across_normals(self, face: Face, terms: Any, number: int) -> float:
        """Return the mean coefficient of the second derivative of a field along the normal of a face."""
        assert face.normals is not None
        pairs = [(terms.get((number, self.rows.along(axis, 2))), own) for axis, own in enumerate(face.normals.T)]
        return sum(_mean(face.weights, value * own**2) for value, own in pairs if value is not None)

    def _share_of_law(self, part: CellPart, face: Face, i: int, number: int, order: int) -> float:
        """Return the flux of an equation per unit of the shared value of an interface condition; else zero."""
        given = {t[:2]: t[2] * np.ones(len(face.points)) for t in self.flux.shared_terms(part, face, number, order)}
        for (own, _), equation in self.flux.fluxes.items():
            if equation == i and given:
                flux = {t[:2]: t[2] * np.ones(len(face.points)) for t in self.flux.normal_flux(part, face, own)}
                keys = list({**given, **flux})
                one, two = (np.array([terms.get(key, 0.0 * face.weights) for key in keys]) for terms in (given, flux))
                share = float((one * two).sum() / max((one * one).sum(), 1e-300))
                if np.abs(two - share * one).max() <= CLOSE * np.abs(two).max():
                    return share
        return 0.0


def _means(pairs: Sequence[tuple[CellPart, Face]], values: Any) -> FloatArray:
    """Return the means over faces of a number, or of values at their points."""
    if np.ndim(values) == 0:
        return np.full(len(pairs), float(values))
    weights = np.array([face.weights for _, face in pairs])
    return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


def _mean(weights: FloatArray, value: Any) -> float:
    return float(weights @ value) / float(weights.sum()) if np.ndim(value) else float(value)


def _is_steady(form: Form, axis: int | None) -> bool:
    """Return whether a linear form has constant coefficients of all derivatives, or of those along an axis."""
    pairs = zip(form.terms, form.coefficient_functions, strict=True) if form.is_linear else ()
    own = [function.constant for term, function in pairs if axis is None or term.multi_index[axis]]
    return form.is_linear and None not in own
