"""The terms of equations that no linear operator of a step contains, evaluated on cells and projected on functions.

A term that is nonlinear, or whose coefficient depends on time, is linearised at a reference state. The difference from
that, divided by the coefficient of the time derivative, is a rate; cells treat it like the state before a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.cells.evaluation import power
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart
from pibls.checks import FloatArray
from pibls.evolution.basis import at_times
from pibls.evolution.cost import PER_NUMBER
from pibls.evolution.rational import ORDER
from pibls.evolution.resolvent import Varying
from pibls.features import MultiIndex
from pibls.refinement import SMALLEST
from pibls.solution.celled import ENTRIES


@dataclass(frozen=True, eq=False)
class AlikeParts:
    """Parts that have the same functions at their points: some whole ones, or one that is cut."""

    layout: Layout
    numbers: tuple[int, ...]  # of the parts in the tree
    parts: tuple[CellPart, ...]

    @cached_property
    def points(self) -> FloatArray:
        """The points of all parts, one part after the other."""
        return np.concatenate([part.points for part in self.parts])

    @cached_property
    def fitting(self) -> FloatArray:
        """The matrix from values at the points of a part to weights, transposed."""
        zero, part = (0,) * self.layout.reference.dimension, self.parts[0]
        roots = np.sqrt(part.weights)[:, None]
        nodes = roots * self.layout.functions_at(part, part.points, [zero])[zero]
        return np.asarray((np.linalg.pinv(nodes, rcond=SMALLEST) * roots.T).T)

    def values(self, weights: FloatArray, slots: Sequence[tuple[int, MultiIndex]]) -> list[FloatArray]:
        """Return derivatives of fields at all points, from weights of shape (times, parts, fields, functions)."""
        own = weights[:, list(self.numbers)]
        nodes = self.layout.functions_at(self.parts[0], self.parts[0].points, list({index for _, index in slots}))
        found = []
        for number, index in slots:
            scales = np.array([power(part.half, index) for part in self.parts])
            found.append(((own[:, :, number] / scales[:, None]) @ nodes[index].T).reshape(-1))
        return found


def groups_of(layout: Layout, parts: Sequence[CellPart]) -> list[AlikeParts]:
    """Return all parts of a tree in groups with the same functions at their points."""
    whole = [number for number, part in enumerate(parts) if part.whole]
    most = max(1, ENTRIES // (ORDER * layout.reference.size))
    together = [whole[first : first + most] for first in range(0, len(whole), most)]
    every = together + [[number] for number, part in enumerate(parts) if not part.whole]
    return [AlikeParts(layout, tuple(numbers), tuple(parts[number] for number in numbers)) for numbers in every]


@dataclass(frozen=True, eq=False)
class Remainders:
    """The difference of the varying terms of all equations from their linearisation at one state and one time."""

    groups: Sequence[AlikeParts]  # the parts of the tree
    equations: Sequence[Varying]  # the varying terms of each equation that has some
    orders: int  # number of orders in time of a state
    time: float  # of the linearisation
    weights: FloatArray  # the state there, shape (parts, fields, functions)

    @cached_property
    def _frozen(self) -> list[list[list[FloatArray]]]:
        """The slopes of all equations at the reference state, for all groups and slots."""
        found = []
        for group in self.groups:
            X = at_times(group.points, np.array([self.time]))
            states = [group.values(self.weights[None], own.slots) for own in self.equations]
            found.append(
                [
                    [slope.where_real(X, None, values) for slope in own.slopes]
                    for own, values in zip(self.equations, states, strict=True)
                ]
            )
        return found

    def work(self, times: int) -> float:
        """Return the operations for rates at so many times."""
        size, found = self.weights.shape[-1], 0.0
        for group in self.groups:
            for own in self.equations:
                found += len(group.points) * (2.0 * size * (len(own.slots) + 1) + PER_NUMBER * own.operations)
        return times * found

    def rates(self, times: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the rates by which remainders change states, from states of shape (times, parts, fields, functions).

        They have the shape (times, parts, orders in time, fields, functions).
        """
        count, parts, fields, size = weights.shape
        found = np.zeros((count, parts, self.orders, fields, size))
        for group, frozen in zip(self.groups, self._frozen, strict=True):
            X = at_times(group.points, times)
            for own, slopes in zip(self.equations, frozen, strict=True):
                values = group.values(weights, own.slots)
                rest = own.value.where_real(X, None, values).reshape(count, -1)
                for slope, value in zip(slopes, values, strict=True):
                    rest -= slope * value.reshape(count, -1)
                rest /= -own.mass(group.points)
                made = rest.reshape(count, len(group.parts), -1) @ group.fitting
                found[:, list(group.numbers), own.order - 1, own.field] = made
        return found
