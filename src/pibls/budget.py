"""The budget of a solve: work, which is counted, and, only where asked for, time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pibls.runtime import RATE

__all__ = ["Budget"]


@dataclass(eq=False)
class Budget:
    """Work and time left to a solve, shared by everything that it tries.

    Work is counted in operations, so that the same call ends in the same way on every machine. A clock decides only
    where a deadline was given.

    >>> budget = Budget(10.0)
    >>> budget.spend(4e10)
    >>> budget.left, budget.affords(5e10), budget.affords(7e10), budget.late
    (6.0, True, False, '')
    >>> Budget(10.0, deadline=0.0).late
    'The deadline ended the solve: 0 s have passed.'
    """

    nominal: float  # seconds of 10¹⁰ operations
    deadline: float | None = None  # real seconds after which no further stage is begun
    operations: float = 0.0  # work so far
    begun: float = field(default_factory=time.perf_counter)
    whole: Budget | None = None  # the budget that this is a part of, which pays for it

    @classmethod
    def of(cls, budget: Budget | float) -> Budget:
        """Return a budget as it is, or a new one of so many nominal seconds."""
        return budget if isinstance(budget, Budget) else cls(budget)

    def spend(self, operations: float) -> None:
        """Count work."""
        self.operations += operations
        if self.whole is not None:
            self.whole.spend(operations)

    def affords(self, operations: float) -> bool:
        """Tell whether so much more work is within the budget."""
        return self.operations + operations <= self.nominal * RATE

    def part(self, share: float = 1.0, most: float = float("inf")) -> Budget:
        """Return a budget of a share of the rest, or of so many nominal seconds if that is less; both pay for its work.

        >>> whole = Budget(10.0)
        >>> part = whole.part(0.2)
        >>> part.spend(1e10)
        >>> part.nominal, part.left, whole.left
        (2.0, 1.0, 9.0)
        """
        return Budget(min(share * self.left, most), self.deadline, begun=self.begun, whole=self)

    @property
    def left(self) -> float:
        """Nominal seconds that are left."""
        return max(self.nominal - self.operations / RATE, 0.0)

    @property
    def elapsed(self) -> float:
        """Real seconds since the start, for records."""
        return time.perf_counter() - self.begun

    @property
    def late(self) -> str:
        """Say that the deadline has passed; an empty string where it has not, or where there is none."""
        if self.deadline is None or self.elapsed < self.deadline:
            return ""
        return f"The deadline ended the solve: {self.deadline:g} s have passed."
