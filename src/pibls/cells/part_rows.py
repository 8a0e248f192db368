"""The rows of one part as data, and the statements that hold in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pibls.cells.evaluation import Sources, Stated
from pibls.cells.parts import CellPart
from pibls.cells.surface import Rule
from pibls.checks import FloatArray

__all__ = ["Held", "PartRows"]


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one part without those on its faces, in units of the solution.

    Attributes
    ----------
    units
        Unit of each field.
    equation, source
        Rows of the equations, over weights in units of the root of the part's extent, and their right-hand sides.
    condition, value
        Rows of the conditions, and their right-hand sides.
    means, given
        Rows of the integrated equations, and the integrals of their sources.
    flows
        How the balance of each equation depends on the rows of the conditions.
    besides
        Where the conditions give the whole flux through the boundary, the rows of their other terms; None where
        integrals over the part are used.
    key
        Parts with equal keys have equal equation rows at any size; None where the rows are individual.
    stated_equations, stated_conditions
        The equations at the points of the part, and the conditions at theirs.
    """

    units: FloatArray
    equation: FloatArray
    source: FloatArray
    condition: FloatArray
    value: FloatArray
    means: FloatArray
    given: FloatArray
    flows: FloatArray
    besides: FloatArray | None
    key: Any
    stated_equations: tuple[Stated, ...]
    stated_conditions: tuple[Stated, ...]

    def right(self, part: CellPart, sources: Sources | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the right-hand sides of equations and conditions and the integrals of sources, its own or others."""
        if sources is None:
            return self.source, self.value, self.given
        given = [sources(own, part) for own in self.stated_equations]
        source = np.concatenate(
            [-own.weighed(values) for own, values in zip(self.stated_equations, given, strict=True)]
        )
        value = [np.empty((0, source.shape[1])), *(-own.weighed(sources(own, part)) for own in self.stated_conditions)]
        return source, np.concatenate(value), np.array([part.integrals @ values for values in given])


class Held(NamedTuple):
    """The statements that hold in a part: equations, conditions on pieces of the boundary, and conditions at points."""

    inside: list[Stated]
    placed: list[tuple[Rule, list[Stated]]]
    alone: list[Stated]

    @property
    def conditions(self) -> list[Stated]:
        """All conditions."""
        return [own for _, known in self.placed for own in known] + self.alone

    @property
    def by_points(self) -> list[list[Stated]]:
        """The conditions that hold at the same points."""
        return [own for _, own in self.placed] + [[one] for one in self.alone]
