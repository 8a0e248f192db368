"""The least-squares system of a part as data: its frame, its rows, and its factor in a stack of factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pibls.cells.evaluation import PlacedStatement
from pibls.cells.parts import Face
from pibls.checks import FloatArray
from pibls.solvers.elimination import Elimination, Factor, LeafSystem
from pibls.solvers.joins import counted

__all__ = ["StackMember", "PartFrame", "LocalSystem"]


@dataclass(frozen=True, eq=False)
class PartFrame:
    """The rows of a part that do not depend on its equations; parts of one configuration share them.

    Attributes
    ----------
    light
        Rows of conditions and on faces, over own weights, balance sums and shared unknowns, as a stack of one.
    carried
        For each face, the matrix from shared unknowns to trace coefficients.
    columns
        For each face, its first column among balance sums and shared unknowns.
    linked
        For each link, the same.
    sizes
        Number of shared unknowns in each place.
    """

    light: FloatArray
    carried: tuple[FloatArray, ...]
    columns: tuple[int, ...]
    linked: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class StackMember:
    """The factor of one system, as a member of a stack of factors.

    Attributes
    ----------
    elimination
        The elimination method.
    factor, system
        The stack of factors, and the stack of rows.
    number
        Position in the stack.
    """

    elimination: Elimination
    factor: Factor
    system: LeafSystem
    number: int

    def taken(self, numbers: list[int]) -> StackMember:
        """Return the first member of a stack of the given members; the same stack if these are all of them."""
        if numbers == list(range(self.system.count)):
            return StackMember(self.elimination, self.factor, self.system, 0)
        return StackMember(self.elimination, self.factor.taken(numbers), self.system.taken(numbers), 0)

    def member(self, number: int) -> StackMember:
        """Return another member of the same stack."""
        return StackMember(self.elimination, self.factor, self.system, number)


@dataclass(eq=False)
class LocalSystem:
    """Rows of a part over its own weights, its balance sums and its shared unknowns; equal parts share one system.

    It has either the rows that were made or their factor.

    Rows, weights and sums are in units of the part, so that parts of equal shape have equal rows at any size.

    Attributes
    ----------
    made
        The rows, until they are a member of a stack of factorised systems.
    sizes
        Number of shared unknowns in each place.
    averaged
        The conditions on averages at the points of the part.
    interface_flows
        For each face with interface conditions or a continuous flux, the effect of their right-hand sides on the
        balance sums.
    factored
        The factor of the system, once it is factorised.
    """

    made: LeafSystem | None
    sizes: tuple[int, ...]
    averaged: tuple[PlacedStatement, ...] = ()
    interface_flows: Mapping[Face, FloatArray] = field(default_factory=dict)
    factored: StackMember | None = None

    def place(self, factored: StackMember) -> None:
        """Store a factor; the rows become a member of its stack."""
        self.factored, self.made = factored, None

    @property
    def rows(self) -> LeafSystem:
        """The rows; those that define the balance sums are heavy."""
        if self.made is not None:
            return self.made
        assert self.factored is not None
        return self.factored.system.taken(slice(self.factored.number, self.factored.number + 1))

    @property
    def written(self) -> int:
        """How many numbers its rows are, written out."""
        (count, own), (more, width), (heavy, _) = self.rows.shape
        return count * own + (more + heavy) * width

    @property
    def work(self) -> float:
        """Operations of the elimination."""
        (count, own), (more, width), _ = self.rows.shape
        return counted((count + more) * own**2 + own * width**2, own)
