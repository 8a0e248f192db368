"""One step of a solve, whatever the way of solving: how large it was, how well it did, and when it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """A tree of cells, a width, a fineness or an iteration; figures that a way of solving lacks are None.

    Attributes
    ----------
    seconds
        Since the start.
    nodes, rows
        Width of the network and rows of its system; of cells, the weights of all of them.
    cells
        How many cells there were.
    steps
        Steps in time.
    iteration
        Of a training, or of the search for the evidence.
    residual
        Relative residual: at held-out points for one network; of all rows for cells.
    estimate
        Estimated relative error.
    answer
        Of cells, how strongly the solution answers to changes of what it must meet.
    loss
        Of a training.
    evidence, alpha, beta
        Log evidence, and the precisions of weights and rows.

    Examples
    --------
    >>> print(Stage(0.1, nodes=220, rows=500, cells=4, residual=2e-7, estimate=3e-7, answer=1.5))
    4 cells, 220 weights: residual 2.0e-07, estimated error 3.0e-07, after 0.10 s
    >>> print(Stage(0.1, nodes=2, steps=31, residual=1e-9))
    2 coefficients, 31 steps: residual 1.0e-09, after 0.10 s
    """

    seconds: float
    nodes: int | None = None
    rows: int | None = None
    cells: int | None = None
    steps: int | None = None
    iteration: int | None = None
    residual: float | None = None
    estimate: float | None = None
    answer: float | None = None
    loss: float | None = None
    evidence: float | None = None
    alpha: float | None = None
    beta: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the figures that there are, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        names = {"loss": "loss", "evidence": "log evidence", "residual": "residual", "estimate": "estimated error"}
        if self.cells is None and self.steps is None:
            names["residual"] = "held-out residual"  # cells use all of their rows
        facts = [f"{name} {value:.1e}" for key, name in names.items() if (value := getattr(self, key)) is not None]
        size = f"iteration {self.iteration}" if self.iteration is not None else self.size
        return ", ".join([f"{size}: {', '.join(facts)}" if facts else size, f"after {self.seconds:.2f} s"])

    @property
    def size(self) -> str:
        """How large it was, in words."""
        return size_in_words(self.nodes or 0, self.rows, self.cells, self.steps)


def size_in_words(nodes: int, rows: int | None, cells: int | None, steps: int | None) -> str:
    """Return a size in words: of cells, of lines with so many steps in time, or of one network.

    >>> size_in_words(50, None, None, None), size_in_words(55, None, 1, None), size_in_words(60, 200, None, 9)
    ('50 nodes', '1 cell, 55 weights', '60 nodes in space, 9 steps')
    """
    if cells is not None:
        return f"{counted(cells, 'cell')}, {counted(nodes, 'weight')}"
    if steps is not None:
        # Without a space there are no nodes, only the unknowns and their derivatives.
        unknowns = f"{counted(nodes, 'node')} in space" if rows else counted(nodes, "coefficient")
        return f"{unknowns}, {counted(steps, 'step')}"
    return counted(nodes, "node")


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def in_words(stages: Sequence[Stage]) -> list[str]:
    """Return a line per stage; the many of a training are told by the first and the last.

    >>> in_words([Stage(0.1, iteration=0, loss=3.0), Stage(1.5, iteration=25, loss=0.01)])
    ['loss 3 → 0.01 in 25 iterations, 1.50 s']
    """
    if not stages or stages[0].iteration is None:
        return [str(stage) for stage in stages]
    first, last = stages[0], stages[-1]
    name, ends = ("loss", (first.loss, last.loss))
    if first.loss is None:
        name, ends = ("log evidence", (first.evidence, last.evidence))
    course = " → ".join(f"{value:.4g}" for value in ends if value is not None)
    return [f"{name} {course} in {last.iteration} iterations, {last.seconds:.2f} s"]
