"""The rows of one part as data, and the statements that hold in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pibls.cells.balances import Balances
from pibls.cells.evaluation import PlacedStatement, Sources
from pibls.cells.parts import CellPart
from pibls.cells.surface import Rule
from pibls.checks import FloatArray
from pibls.solvers.combined import Combined

__all__ = ["Equations", "PartStatements", "PartRows", "turned"]


def turned(factor: FloatArray | None, source: FloatArray) -> FloatArray:
    """Return right-hand sides in the columns of an orthogonal factor, and the norms of their rest."""
    if factor is None:
        return source
    turned = factor.T @ source
    return np.vstack([turned, np.linalg.norm(source - factor @ turned, axis=0)])


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one part without those on its faces, in units of the solution.

    Attributes
    ----------
    units
        Unit of each field.
    equation, source
        Rows of the equations as a stack of one, over weights times the root of the part's extent, and their right-hand
        sides; both turned by the orthogonal factor, where there is one.
    condition, value
        Rows of the conditions, and their right-hand sides.
    means, given
        Rows of the equations integrated over the part, against all tests, and the same of their sources.
    flows
        How the balances depend on the rows of the conditions.
    besides
        Where the conditions give the whole flux through the boundary, the rows of their other terms; None where
        integrals over the part are used.
    key
        Parts with equal keys have equal equation rows at any size; None where the rows are individual.
    stated_equations, stated_conditions
        The equations at the points of the part, and the conditions at theirs.
    balances
        The functions that equations are integrated against.
    factor
        Orthogonal factor of the rows of the equations at points, if it is kept.
    """

    units: FloatArray
    equation: FloatArray | Combined
    source: FloatArray
    condition: FloatArray
    value: FloatArray
    means: FloatArray
    given: FloatArray
    flows: FloatArray
    besides: FloatArray | None
    key: Any
    stated_equations: tuple[PlacedStatement, ...]
    stated_conditions: tuple[PlacedStatement, ...]
    balances: Balances
    factor: FloatArray | None

    def right(
        self,
        part: CellPart,
        sources: Sources,
        turn: Callable[[FloatArray | None, FloatArray], FloatArray] = turned,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the right-hand sides of equations and conditions and the integrals of sources, for other sources.

        ``turn`` writes right-hand sides in the columns of an orthogonal factor.
        """
        given = [sources(own, part) for own in self.stated_equations]
        source = np.concatenate(
            [-own.weighed(values) for own, values in zip(self.stated_equations, given, strict=True)]
        )
        value = [np.empty((0, source.shape[1])), *(-own.weighed(sources(own, part)) for own in self.stated_conditions)]
        return turn(self.factor, source), np.concatenate(value), self.balances.integrated(part, given)


class EquationKey(NamedTuple):
    """Constant equations in units of a whole part: all that their rows depend on.

    ``proportions`` are those of the sides of the part, if moments balance; ``terms`` are field, derivative and
    coefficient, for each equation.
    """

    width: int
    proportions: tuple[float, ...]
    terms: tuple[Any, ...]


class Equations(NamedTuple):
    """Rows of the equations of a part, their integrals against the tests of balances, and their orthogonal factor.

    The rows are a stack of one.
    """

    rows: FloatArray | Combined
    tested: FloatArray
    factor: FloatArray | None = None

    @classmethod
    def factored(cls, rows: FloatArray, tested: FloatArray) -> Equations:
        """Return rows as a triangle, and one row of zeros, whose residual no weights can change."""
        if len(rows) <= rows.shape[1] + 1:
            return cls(rows[None], tested)
        factor, triangle = np.linalg.qr(rows)
        return cls(np.vstack([triangle, np.zeros((1, rows.shape[1]))])[None], tested, factor)


class PartStatements(NamedTuple):
    """The statements that hold in a part: equations, conditions on pieces of the boundary, and conditions at points."""

    equations: list[PlacedStatement]
    on_boundary: list[tuple[Rule, list[PlacedStatement]]]
    at_points: list[PlacedStatement]

    @property
    def conditions(self) -> list[PlacedStatement]:
        """All conditions."""
        return [condition for _, conditions in self.on_boundary for condition in conditions] + self.at_points

    @property
    def by_points(self) -> list[list[PlacedStatement]]:
        """The conditions that hold at the same points."""
        return [conditions for _, conditions in self.on_boundary] + [[condition] for condition in self.at_points]
