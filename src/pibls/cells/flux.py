"""Fluxes across faces, interfaces and the boundary: they balance the sources inside a part."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.cells.characteristic_faces import is_characteristic
from pibls.cells.evaluation import PlacedStatement, Term
from pibls.cells.interface_laws import InterfaceLaws, Law
from pibls.cells.mixed_derivatives import MixedDerivatives
from pibls.cells.outflows import Outflows
from pibls.cells.parts import CellPart, Face
from pibls.cells.surface import Rule
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.problem import Interior, Statement
from pibls.problem.switches import has_branches
from pibls.quadrature.roots import CLOSE
from pibls.refinement.standards import SLIGHT

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["Fluxes", "flows_evenly"]


@dataclass(eq=False)
class Fluxes:
    """Derives the fluxes of a problem from its rows."""

    rows: Rows
    _scales: dict[tuple[Face, int], float] = field(default_factory=dict)
    _jumps: dict[tuple[Face, int], bool] = field(default_factory=dict)
    _characteristic: dict[Face, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # how mixed derivatives flow, and which rotations do no work; and the balances of fluxes across faces
        self.mixed = MixedDerivatives(self.rows, lambda: self._given_fluxes)
        self.outflows = Outflows(self.rows, self)

    @cached_property
    def laws(self) -> InterfaceLaws:
        """The conditions across interfaces."""
        return InterfaceLaws(self.rows, self.across_interfaces)

    def law(self, part: CellPart, face: Face, number: int, order: int) -> Law | None:
        """Return this part's side of an interface condition, or of a flux that is written as a divergence, or None."""
        found = self.laws.side(part, face, number, order)
        if (jump := self.jump(face)) is not None:
            share = (-0.5 if face.below is part else 0.5) * jump
            own = Statement("jump", 0, replace(self.rows.equations[0].form), Interior())  # no other source replaces it
            stated = PlacedStatement(own, face.points, face.normals, [], share, np.ones(len(share)))
            return Law([], self.rows.traces.units(face)[number], stated, -1.0)
        if found is not None or not self.is_flux(face, number, order):
            return found
        given = self._given_fluxes[self.fluxes[number, order]]
        if given is None:
            return None
        X, normals = self.rows.traces.inward(part, face), self.rows.traces.normals(face)
        size = self.scale(face, number) * self.rows.traces.units(face)[number] / (face.thickness / 2) ** order
        source = self._source(part, face, self.fluxes[number, order])
        return Law([], size, PlacedStatement(given, X, normals, [], source, np.ones(len(X))), 1.0)

    def jump(self, face: Face) -> FloatArray | None:
        """Return the value of a wave above a face less that below, at its points; None where it does not jump."""
        switching = self.rows.analysis.switching
        if face.level is None or face.normals is None or switching is None or not self._is_characteristic(face):
            return None
        return switching.jump_across(face.level, face.points, face.normals)

    def _source(self, part: CellPart, face: Face, i: int) -> FloatArray:
        """Return the term of an equation's flux that does not depend on fields, on one side of a face."""
        given = self._given_fluxes[i] if self._has_source[i] else None
        if given is None:
            return np.zeros(len(face.points))
        X, normals = self.rows.traces.inward(part, face), self.rows.traces.normals(face)
        return np.asarray(np.broadcast_to(self.rows.lowered(given, part, X, normals)[1], len(X)))

    @cached_property
    def _has_source(self) -> list[bool]:
        """Whether the flux of each equation has a source that may jump: a term without fields, or of its tangent."""
        fluxes = [None if given is None else given.form for given in self._given_fluxes]
        return [flux is not None and (not flux.is_linear or has_branches(flux.source)) for flux in fluxes]

    def shared_terms(self, part: CellPart, face: Face, number: int, order: int) -> list[Term]:
        """Return the terms of a field that are continuous across a face: its value, normal derivatives, or a flux."""
        law = self.laws.side(part, face, number, order)
        if law is not None:
            scale = self.rows.traces.units(face)[number] / ((face.thickness / 2) ** order * law.size)
            return [(n, index, value * scale) for n, index, value in law.terms]
        is_flux = self.is_flux(face, number, order)
        if order == 0 and not is_flux:
            return [(number, (0,) * face.points.shape[1], 1.0)]
        if is_flux:
            scale = self.scale(face, number)
            return [(n, index, value / scale) for n, index, value in self.normal_flux(part, face, number)]
        if face.normals is None:
            return [(number, self.rows.along(face.axis, order), self.share_of_flux(part, face, number, order))]
        return _along_normals(number, order, face.normals)

    def is_flux(self, face: Face, number: int, order: int) -> bool:
        """Return whether a flux, not a derivative, is continuous across a face: on interfaces and at jumps."""
        if face.shift or not (self.switches or face.normals is not None) or (number, order) not in self.fluxes:
            return False
        if face.normals is not None:
            return not self._is_characteristic(face)
        if (face, number) not in self._jumps:
            self._jumps[face, number] = self._switches_at(face, number, self.fluxes[number, order])
        return self._jumps[face, number]

    def _switches_at(self, face: Face, number: int, i: int) -> bool:
        """Return whether a flux has other coefficients or another source on the other side of a face."""
        given, both = self._given_fluxes[i], (face.below, face.above)
        if given is not None and not given.form.is_linear:
            # They depend on the state, and may be equal at this one.
            switching = self.rows.layout.tree_domain.switching
            assert switching is not None
            below, above = (switching.branch(self.rows.traces.inward(part, face)) for part in both)
            return not np.array_equal(below, above)
        one, two = ({t[:2]: float(np.mean(t[2])) for t in self.normal_flux(part, face, number)} for part in both)
        terms = np.array([(one.get(key, 0.0), two.get(key, 0.0)) for key in {**one, **two}]).reshape(-1, 2)
        sources = np.array([[self._source(part, face, i).mean() for part in both]])
        return any(
            np.ptp(own, axis=1).max(initial=0.0) > CLOSE * np.abs(own).max(initial=0.0) for own in (terms, sources)
        )

    def is_plain(self, face: Face) -> bool:
        """Return whether only values and derivatives are continuous across a face."""
        return not any(self.is_flux(face, *block) for block in self.rows.traces.continuous_across(face))

    def across_interface(self, face: Face) -> list[tuple[int, int]]:
        """Return the fields and orders that are continuous across a face on an interface.

        Across a characteristic of a first-order equation nothing is; of a second-order one the value, apart from a
        jump that is known.
        """
        if not self._is_characteristic(face):
            return self.across_interfaces
        return [(0, 0)] if self.rows.equations[0].form.order == 2 else []

    def _is_characteristic(self, face: Face) -> bool:
        if face not in self._characteristic:
            self._characteristic[face] = is_characteristic(self.rows, face)
        return self._characteristic[face]

    @cached_property
    def across_interfaces(self) -> list[tuple[int, int]]:
        """Fields and orders that are continuous across interfaces; order 1 stands for the flux, where there is one."""
        found = []
        for number, orders in enumerate(self._space_orders):
            # A field that the flux of another field's equation contains is continuous with that flux.
            carried = self.is_contained(number)
            found += [(number, order) for order in range(0 if carried else orders)]
        return found

    def is_contained(self, number: int) -> bool:
        """Return whether a field of first order is part of the flux of another field, as a pressure is."""
        first = self._space_orders[number] == 1 and (number, 0) not in self.fluxes
        return first and bool(self.rows.problem.laws.carriers)

    @cached_property
    def _space_orders(self) -> list[int]:
        space = len(self.rows.problem.domain.space)
        return [int(orders[:space].max(initial=0)) for orders in self.rows.orders]

    @cached_property
    def fluxes(self) -> dict[tuple[int, int], int]:
        """The equation whose flux is continuous, by field and order: in place of the slope, or of the value."""
        names = self.rows.problem.field_names
        return {(names.index(name), order): i for (name, order), i in self.rows.analysis.flowing.items()}

    def normal_flux(self, part: CellPart, face: Face, number: int) -> list[Term]:
        """Return the terms of the normal flux on one side of a face."""
        i, X, normals, found = (
            self.fluxes.get((number, 1), self.fluxes.get((number, 0), 0)),
            self.rows.traces.inward(part, face),
            self.rows.traces.normals(face),
            [],
        )
        if i in self.rows.analysis.waves:
            space = range(len(self.rows.problem.domain.space))
            return [(number, self.rows.along(axis, 1), normals[:, axis]) for axis in space]
        given = self._given_fluxes[i]
        if given is not None:
            return self.rows.only_terms(given, part, X, normals)
        for n, index, value in self.rows.only_terms(self.rows.equations[i], part, X, None):
            axes = [axis for axis, order in enumerate(index) for _ in range(order)]
            if len(axes) == 2 and axes[0] == axes[1]:
                found.append((n, self.rows.along(axes[0], 1), value * normals[:, axes[0]]))
            elif len(axes) == 2:
                for one, two in (axes, axes[::-1]):
                    share = self.mixed.share(i, n, one, two)
                    found.append((n, self.rows.along(two, 1), share * value * normals[:, one]))
            elif len(axes) == 1 and n != number and self._space_orders[n] == 1:
                found.append((n, (0,) * len(index), value * normals[:, axes[0]]))
        return found

    @cached_property
    def _given_fluxes(self) -> list[Statement | None]:
        """The flux of each equation that is written as a divergence; None for others."""
        forms = self.rows.analysis.fluxes
        return [None if form is None else Statement("flux", 0, form, Interior()) for form in forms]

    def scale(self, face: Face, number: int) -> float:
        """Return the geometric mean of the sizes of a flux on both sides of a face."""
        if (face, number) not in self._scales:
            sides = [
                np.sqrt(sum(np.mean(np.square(v)) for n, _, v in self.normal_flux(part, face, number) if n == number))
                for part in (face.below, face.above)
            ]
            # A flux may vanish on one side, or at the first state.
            self._scales[face, number] = float(np.sqrt(sides[0] * sides[1]) or max(sides) or 1.0)
        return self._scales[face, number]

    def of_conditions(
        self, part: CellPart, rule: Rule, lowered: list[tuple[list[Term], float]], depth: float
    ) -> FloatArray:
        """Return how balances depend on the rows of flux conditions, shape (balances, conditions · points)."""
        n, count = rule.normals, len(rule.weights)
        found = np.zeros((len(self.rows.equations), len(lowered) * count))
        area = float(rule.weights.sum())
        for i, equation in enumerate(self.rows.equations):
            flux: dict[tuple[int, int], float] = {}
            try:
                terms = self.rows.only_terms(equation, part, rule.points, None)
            except ProblemError:
                continue  # coefficients may be infinite on the boundary, as in polar coordinates
            for number, index, value in terms:
                axis = int(np.argmax(index))
                if sum(index) == index[axis] > 0:
                    out = float(rule.weights @ (value * n[:, axis] ** index[axis])) / area
                    flux[number, index[axis]] = flux.get((number, index[axis]), 0.0) + out
            for (number, order), size in flux.items():
                given = [self._given(own, number, order - 1, rule) for own, _ in lowered]
                best = int(np.argmax(np.abs(given)))
                # A condition in which the normal derivative is negligible says nothing about the flux.
                if abs(given[best]) > SLIGHT * _largest(lowered[best][0]) and size != 0.0:
                    rows = slice(best * count, (best + 1) * count)
                    found[i, rows] += size / given[best] * np.sqrt(rule.weights / depth) / lowered[best][1]
        tests = np.tile(self.rows.balances.tests(part, rule.points), len(lowered))
        return self.rows.balances.summed(tests[:, None] * found)

    def _given(self, terms: list[Term], number: int, order: int, rule: Rule) -> float:
        """Return the mean coefficient of a normal derivative of a field in a condition."""
        total, area = 0.0, float(rule.weights.sum())
        for field_number, index, value in terms:
            axis = int(np.argmax(index))
            if field_number == number and sum(index) == index[axis] == order:
                total += float(rule.weights @ (value * rule.normals[:, axis] ** order)) / area
        return total

    def share_of_flux(self, part: CellPart, face: Face, number: int, order: int) -> float:
        """Return the flux coefficient on one side of a face over the mean of both sides; 1 unless it jumps."""
        top = self.rows.orders[number, face.axis]
        # After integration by parts, the upper half of the derivatives form the flux.
        if not self.switches or top % 2 or order < top // 2:
            return 1.0
        if self.fluxes.get((number, order)) in self.rows.analysis.waves:
            return 1.0
        index, sides = self.rows.along(face.axis, top), []
        for side in (face.below, face.above):
            X = self.rows.traces.inward(side, face)
            found = [
                float(np.mean(np.broadcast_to(value, len(X))))
                for e in self.rows.equations
                for n, i, value in self.rows.only_terms(e, side, X, None)
                if (n, i) == (number, index)
            ]
            sides.append(max(found, key=abs, default=1.0))
        below, above = sides
        if below * above <= 0 or abs(below - above) <= CLOSE * max(abs(below), abs(above)):
            return 1.0
        own = below if part is face.below else above
        return own / float(np.sqrt(below * above))

    @cached_property
    def switches(self) -> bool:
        """Whether data jump across a plane anywhere."""
        switching = self.rows.layout.tree_domain.switching
        return switching is not None and bool(len(switching.planes))


def _largest(terms: list[Term]) -> float:
    """Return the size of the largest coefficient of a derivative."""
    return max((float(np.abs(value).max()) for _, index, value in terms if any(index)), default=0.0)


def flows_evenly(terms: list[Term], rule: Rule) -> bool:
    """Return whether all derivatives of a condition are along the normal, with one coefficient on the piece."""
    flow: dict[int, FloatArray] = {}
    for number, index, value in terms:
        if sum(index) == 1:
            own = flow.setdefault(number, np.zeros_like(rule.normals))
            own[:, index.index(1)] += value
    even = all(np.allclose(own, (own * rule.normals).sum(axis=1).mean() * rule.normals) for own in flow.values())
    return even and max(sum(index) for _, index, _ in terms) <= 1


def _along_normals(number: int, order: int, normals: FloatArray) -> list[Term]:
    """Return a normal derivative as a sum of derivatives along the axes."""
    found: dict[MultiIndex, Any] = {(0,) * normals.shape[1]: 1.0}
    for _ in range(order):
        longer: dict[MultiIndex, Any] = {}
        for index, value in found.items():
            for axis, own in enumerate(normals.T):
                more = tuple(o + (a == axis) for a, o in enumerate(index))
                longer[more] = longer.get(more, 0.0) + value * own
        found = longer
    return [(number, index, value) for index, value in found.items()]
