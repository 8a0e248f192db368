"""States on a tree of cells, at which nonlinear problems are linearised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.overlay import ancestor_values
from pibls.cells.parts import CellPart, part_values
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell, leaves
from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.features.reference import ReferenceNetwork
from pibls.refinement import SMALLEST

__all__ = ["TreeState", "between", "missed", "projected", "squares", "values_of"]

Values = Callable[[CellPart, FloatArray], FloatArray]
Weights = Mapping[CellPart, FloatArray]


@dataclass(frozen=True, eq=False)
class TreeState:
    """Fields given by weights on every part of a tree, with all derivatives."""

    layout: Layout
    weights: Weights
    _seen: dict[Any, FloatArray] = field(default_factory=dict)

    def __call__(self, part: CellPart, X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        """Return derivatives of fields at points of a part; those at its own points are kept."""
        own = X is part.points
        found = {key: self._seen[part, key] for key in wanted if own and (part, key) in self._seen}
        missing = [key for key in wanted if key not in found]
        if missing:
            nodes = self.layout.functions_at(part, X, list(dict.fromkeys(index for _, index in missing)))
            names = self.layout.problem.field_names
            for name, index in missing:
                scale = float(np.prod(part.half ** np.array(index)))
                found[name, index] = nodes[index] @ (self.weights[part][names.index(name)] / scale)
        if own:
            self._seen.update({(part, key): values for key, values in found.items()})
        return [found[key] for key in wanted]


def values_of(layout: Layout, fit: Fit) -> Values:
    """Return the fields of a fit as a function of the parts of a finer tree and their points."""
    cells = {part.cell for part in fit.parts}
    return lambda part, X: ancestor_values(layout, fit, cells, [(part, X)])[0]


def projected(layout: Layout, root: Cell, values: Values, known: Weights | None = None) -> dict[CellPart, FloatArray]:
    """Return the weights on a tree that fit given fields best in L2; known weights are reused."""
    reference = layout.reference
    zero = (0,) * reference.dimension
    found: dict[CellPart, FloatArray] = {}
    for part in layout.parts_of(leaves(root)):
        if known is not None and part in known:
            found[part] = known[part]
            continue
        wanted = values(part, part.points)
        if part.whole:
            found[part] = (_fitting(reference) @ wanted).T
        else:
            nodes = reference.evaluate(part.local(part.points), [zero])[zero]
            found[part] = np.asarray(np.linalg.lstsq(nodes, wanted, rcond=SMALLEST)[0].T, dtype=np.float64)
    return found


def missed(layout: Layout, weights: Weights, values: Values) -> float:
    """Return the largest relative L2 error with which weights on a tree fit given fields."""
    gaps, sizes = np.zeros(len(layout.problem.field_names)), np.zeros(len(layout.problem.field_names))
    for part, own in weights.items():
        wanted = values(part, part.points)
        gaps += part.weights @ np.square(wanted - part_values(layout.reference, part, own, part.points))
        sizes += part.weights @ np.square(wanted)
    return float(np.sqrt(gaps / np.where(sizes > 0, sizes, 1.0)).max())


def squares(layout: Layout, part: CellPart, weights: FloatArray) -> FloatArray:
    """Return the integrals of the squares of functions over a part, each given by a row of weights.

    What functions are in the rest of the box around a part that is cut, nothing determines.
    """
    if part.whole:
        return np.asarray(part.extent * np.square(weights).sum(axis=1))
    zero = (0,) * layout.reference.dimension
    return np.asarray(part.weights @ np.square(layout.functions_at(part, part.points, [zero])[zero] @ weights.T))


@lru_cache(maxsize=16)
def _fitting(reference: ReferenceNetwork) -> FloatArray:
    """Return the matrix from values at the points of the rule to weights; rounding makes it differ from a transpose."""
    zero = (0,) * reference.dimension
    roots = np.sqrt(reference.rule[1])
    return np.asarray(np.linalg.pinv(reference.on_rule([zero])[zero] * roots[:, None]) * roots, dtype=np.float64)


def between(one: Weights, two: Weights, length: float) -> Weights:
    """Return the weights at a relative distance from one state to another."""
    return two if length == 1.0 else {part: one[part] + length * (weights - one[part]) for part, weights in two.items()}
