"""Is a solution determined by what was asked? Even trees of cells tell.

How strongly a solution answers to changes of what it must meet is a property of the problem: on finer and finer even
trees it stays as it is. Where a function can be added that nothing sees, it is beyond all bounds; where finer and
finer functions are seen less and less, as in a heat equation run backwards, it grows with every level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pibls.cells.fitters import Linear
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart, part_values
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, Glue
from pibls.cells.tree import Cell, leaves, refined, split_at_planes
from pibls.checks import FloatArray
from pibls.features.reference import draw_reference
from pibls.problem import Problem

__all__ = ["Answers", "even_answers"]

_DEGREE = {1: 14, 2: 17, 3: 12}  # enough to tell what nothing sees from what is seen little, by many digits
_DRAWS = 3  # of random right-hand sides
_LEVELS = {1: 4, 2: 3, 3: 2}
_UNSEEN = {1: 3e8, 2: 3e8, 3: 1e7}
_WEAK, _FALLS = 50.0, 10.0
_ALONE = 0.95


@dataclass(frozen=True, eq=False)
class Answers:
    """How strongly a problem's solutions answer on even trees, from coarse to fine, and the largest answer found.

    Attributes
    ----------
    sizes
        One per level.
    place, field
        Where the largest answer on the finest tree is largest, and in which field.
    operations
        What it took to find out.
    is_local
        Whether that answer is all in one part of a cell that the boundary cuts: then it tells of the cut, not of the
        problem.
    """

    problem: Problem
    sizes: tuple[float, ...]
    place: FloatArray
    field: str
    operations: float = 0.0
    is_local: bool = False

    @property
    def is_unseen(self) -> bool:
        """Whether something can be added to a solution that nothing sees."""
        return not self.is_local and min(self.sizes[-2:]) > _UNSEEN[len(self.place)]

    @property
    def is_unstable(self) -> bool:
        """Whether a finer tree has functions that are seen much less: not on a line, where there are few."""
        *before, last = self.sizes[-3:]
        return not self.is_local and len(self.place) > 1 and last > max(_WEAK, _FALLS * max(before))

    def in_words(self) -> str:
        """Say what is wrong, where it shows most, and what to do."""
        names = (symbol.name for symbol in self.problem.domain.coordinates)
        place = ", ".join(f"{name}={value:.2g}" for name, value in zip(names, self.place, strict=True))
        seen = 1.0 / self.sizes[-1]
        if self.is_unseen:
            return (
                f"The solution is not unique: a change of {self.field}, largest near {place}, leaves every equation "
                f"and condition as it is (to {seen:.0e}). Add the condition that is missing: a boundary part without "
                "one, an initial value or velocity, or a gauge such as Mean(u, 0). With incompatible data there is no "
                "solution."
            )
        return (
            f"The solution is unstable: a change of {self.field}, largest near {place}, of size one changes the "
            f"equations and conditions by only {seen:.0e}, and the finer it is the less. Data cannot determine it, as "
            "in a heat equation run backwards; give conditions at the other end."
        )


def even_answers(problem: Problem, seed: int = 0, near: Linear | None = None) -> Answers:
    """Return how strongly the solutions of a linear problem answer on even trees; what solved it may be given.

    Examples
    --------
    >>> from pibls import Dirichlet, Interval, coordinates, field
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> line = Interval((x, 0, 1))
    >>> enough = Problem(u.diff(x, 2), line, [Dirichlet(u, 0)])
    >>> too_few = Problem(u.diff(x, 2), line, [Dirichlet(u, 0, on=line.left)])
    >>> [even_answers(p).is_unseen for p in (enough, too_few)]
    [False, True]
    """
    glue = _glue(problem, seed, near)
    d, layout, before = len(problem.domain.coordinates), glue.layout, glue.flops
    roots = [_even(split_at_planes(layout.root), glue.rows.periodic)]
    while len(roots) < _LEVELS[d]:
        roots.append(_even(roots[-1], tuple(range(d))))
    # The finest first: it is the likeliest to have been solved before.
    found = []
    for root in reversed(roots):
        fit = glue.solve(root)
        # One draw may happen to have little of what is answered most.
        found.append((fit, *max((glue.weakest(seed + k) for k in range(_DRAWS)), key=lambda one: one[0])))
    fit, _, weights = found[0]
    place, name = _largest(layout, Fit(fit.root, fit.parts, weights, {}, 0, 0))
    sizes = tuple(size for _, size, _ in reversed(found))
    return Answers(problem, sizes, place, name, glue.flops - before, _is_local(layout, weights))


def _glue(problem: Problem, seed: int, near: Linear | None) -> Glue:
    """Return what solves a problem on even trees."""
    degree = _DEGREE[len(problem.domain.coordinates)]
    if near is not None:
        return near.of_degree(degree).glue
    return Glue(Rows(Layout(problem, draw_reference(len(problem.domain.coordinates), degree, seed))))


def _is_local(layout: Layout, weights: dict[CellPart, FloatArray]) -> bool:
    """Tell whether nearly all of a function is in one part that the boundary cuts off."""
    squares = {
        part: part.volume * float(np.square(part_values(layout.reference, part, own, part.points[::4])).mean())
        for part, own in weights.items()
    }
    largest = max(squares, key=squares.__getitem__)
    return len(squares) > 2 and not largest.whole and squares[largest] > _ALONE * sum(squares.values())


def _even(root: Cell, axes: tuple[int, ...]) -> Cell:
    return refined(root, {leaf: [(axis, None) for axis in axes] for leaf in leaves(root)})


def _largest(layout: Layout, answer: Fit) -> tuple[FloatArray, str]:
    X = layout.domain.sample(500, "kronecker", 1)
    zero = (0,) * X.shape[1]
    values = network_of(layout, answer).evaluate(X, [zero])[zero]
    row, column = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    return X[row], layout.problem.field_names[column]
