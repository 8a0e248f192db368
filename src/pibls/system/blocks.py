"""The least-squares system and its row blocks, one block per statement of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pibls.checks import FloatArray


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the system that belong to one statement."""

    name: str  # name of the statement
    rows: slice  # where they stand
    is_equation: bool  # whether they state a differential equation rather than a condition
    scale: float = 1.0  # what the rows were multiplied with; divide a residual by it to get physical units back
    norm: float = 0.0  # root mean square of the row norms before that
    noise: FloatArray | None = None  # what each row was divided by before that, for measurements of known noise

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True, eq=False)
class System:
    """``min ‖matrix · w − rhs‖`` subject to ``constraints · w = constraint_rhs``.

    The columns are the nodes of the network, once per field.
    """

    matrix: Any
    rhs: Any
    blocks: tuple[Block, ...]
    constraints: Any = None
    constraint_rhs: Any = None
    constraint_blocks: tuple[Block, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, constraints not counted."""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])
