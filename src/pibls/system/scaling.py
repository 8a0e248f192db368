"""How much each row block counts.

Rows of a second-order equation can be thousands of times larger than rows of a boundary value, and boundary points
are fewer; without scaling the least-squares problem would not see the conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pibls.checks import check_number
from pibls.problem import OnPart, Statement


@dataclass(frozen=True)
class Balanced:
    """Bring every block to the same size per row: it is divided by the root mean square of its row norms."""

    def scales(self, statements: Sequence[Statement], norms: Sequence[float]) -> list[float]:
        """Return a factor per block from the root-mean-square row norms."""
        return [s.weight / norm if norm > 0 else s.weight for s, norm in zip(statements, norms, strict=True)]


@dataclass(frozen=True)
class Penalties:
    """The paper's weights: rows of conditions times √λ_b, rows of initial conditions times √λ_I, nothing else."""

    boundary: float = 1.0
    initial: float = 1.0

    def __post_init__(self) -> None:
        for name in ("boundary", "initial"):
            check_number(name, getattr(self, name), "Penalties", minimum=0, exclusive=True)

    def scales(self, statements: Sequence[Statement], norms: Sequence[float]) -> list[float]:
        """Return a factor per block; the norms do not matter."""
        del norms
        return [s.weight * float(np.sqrt(self._penalty(s))) for s in statements]

    def _penalty(self, statement: Statement) -> float:
        if statement.is_equation:
            return 1.0
        part = statement.place.part if isinstance(statement.place, OnPart) else None
        return self.initial if part is not None and part == part.domain.initial else self.boundary


@dataclass(frozen=True)
class Fixed:
    """Factors that are known already: those of the first step of an iteration."""

    factors: tuple[float, ...]

    def scales(self, statements: Sequence[Statement], norms: Sequence[float]) -> list[float]:
        """Return the factors."""
        del statements, norms
        return list(self.factors)


RowScaling = Balanced | Fixed | Penalties
