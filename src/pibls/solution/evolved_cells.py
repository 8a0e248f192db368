"""A network on every cell of a tree in space, with weights that are piecewise polynomials in time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.errors import FeatureError
from pibls.features import MultiIndex
from pibls.solution.celled import ENTRIES, CellNetwork
from pibls.solution.evolved import is_increasing, legendre_series, pieces_of


@dataclass(frozen=True, eq=False)
class EvolvedCells:
    """Fields on cells in space, one Legendre series in time per step: the form of an evolution on cells.

    Its nodes are the fields themselves, one column each. The last coordinate is time; beyond its first and last time
    the states there are returned.

    The field 2t for t in (0, 2), on one cell:

    >>> from pibls.features import BroadNetwork, FeatureGroup
    >>> one = BroadNetwork([0.0], [FeatureGroup("sin", [[0.0]], [np.pi / 2])])
    >>> cell, none = (np.array([[-1, 0, 1]]), np.zeros(1)), (np.empty((0, 1)), np.empty(0, dtype=np.int64))
    >>> space = CellNetwork(one, *cell, np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 2, 1), 2.0), *none)
    >>> EvolvedCells(space, np.array([0.0, 2.0]), 1).evaluate(np.array([[0.3, 0.5]]), [(0, 0), (0, 1)])
    {(0, 0): array([[1.]]), (0, 1): array([[2.]])}
    """

    space: CellNetwork  # whose fields are the coefficients of all series: by step, by degree, by field
    breaks: FloatArray  # where the steps begin, and where the last one ends, (k + 1,)
    size: int  # number of fields

    def __post_init__(self) -> None:
        steps = len(self.breaks) - 1
        fits = self.breaks.ndim == 1 and steps > 0 and self.size > 0 and is_increasing(self.breaks)
        if not fits or self.space.size % (steps * self.size):
            raise FeatureError(
                f"The arrays of EvolvedCells must fit together: {len(self.breaks)} increasing breaks, {self.size} "
                f"fields and {self.space.size} coefficients. Use those of one solve."
            )

    @property
    def dimension(self) -> int:
        """Number of coordinates, time included."""
        return self.space.dimension + 1

    @property
    def degree(self) -> int:
        """Degree of the series."""
        return self.space.size // (self.size * (len(self.breaks) - 1)) - 1

    def evaluate(self, X: FloatArray, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the fields at points: one array (n, fields) per multi-index."""
        X, wanted = np.asarray(X, dtype=np.float64), list(multi_indices)
        result = {index: np.empty((len(X), self.size)) for index in wanted}
        pieces = pieces_of(self.breaks, X[:, -1])
        parts = self.space.locate(X[:, :-1])
        # All points of one cell and step have the same coefficients: one product of matrices serves them.
        order = np.lexsort((pieces, parts))
        changes = np.flatnonzero((np.diff(parts[order]) != 0) | (np.diff(pieces[order]) != 0)) + 1
        most = max(1, ENTRIES // self.space.reference.size)
        for group in np.split(order, changes) if len(X) else []:
            for rows in (group[start : start + most] for start in range(0, len(group), most)):
                part, piece = int(parts[rows[0]]), int(pieces[rows[0]])
                for index, values in self._at(X[rows], part, piece, wanted).items():
                    result[index][rows] = values
        return result

    def _at(self, X: FloatArray, part: int, piece: int, wanted: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives at points of one cell and one step."""
        half, count = self.space.halves[part], (self.degree + 1) * self.size
        own = self.space.weights[part, piece * count : (piece + 1) * count].reshape(self.degree + 1, -1)
        local = (X[:, :-1] - self.space.centers[part]) / half
        nodes = self.space.nodes(local, list(dict.fromkeys(index[:-1] for index in wanted)))
        found = {}
        for index in wanted:
            *along, order = index
            polynomials, series = legendre_series(self.breaks, piece, own, X[:, -1], order)
            places = nodes[index[:-1]] @ series.reshape(len(series) * self.size, -1).T
            values = np.einsum("nd,ndf->nf", polynomials, places.reshape(len(X), len(series), self.size))
            found[index] = values / np.prod(half ** np.array(along))
        return found

    def boxes(self, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return low and high ends of every cell over every step, shape (boxes, coordinates) each."""
        cells = self.space.cell_boxes(bounds[:-1])
        steps = np.stack([self.breaks[:-1], self.breaks[1:]], axis=1)
        every = np.concatenate(
            [np.repeat(cells, len(steps), axis=0), np.tile(steps[:, None], (len(cells), 1, 1))], axis=1
        )
        return every[..., 0], every[..., 1]

    def boxes_at(self, X: FloatArray) -> FloatArray:
        """Return the bounds of the cell and the step around each point, shape (points, coordinates, 2)."""
        part, piece = self.space.locate(X[:, :-1]), pieces_of(self.breaks, X[:, -1])
        low = np.column_stack([self.space.centers[part] - self.space.halves[part], self.breaks[piece]])
        high = np.column_stack([self.space.centers[part] + self.space.halves[part], self.breaks[piece + 1]])
        return np.stack([low, high], axis=2)

    def space_at(self, time: float | None) -> CellNetwork:
        """Return the cells at a time, or the most that there are."""
        del time
        return self.space


@dataclass(frozen=True, eq=False)
class EvolvedLegs:
    """Fields on cells in space that change from time to time.

    The last coordinate is time; beyond its first and last time the states there are returned.
    """

    legs: tuple[EvolvedCells, ...]  # one after the other, on cells of their own

    def __post_init__(self) -> None:
        ends = [leg.breaks[[0, -1]].tolist() for leg in self.legs]
        meets = all(one[1] == two[0] for one, two in pairwise(ends))
        if not self.legs or not meets or len({(leg.size, leg.dimension) for leg in self.legs}) > 1:
            raise FeatureError("The legs of EvolvedLegs must follow each other in time. Use those of one solve.")

    @property
    def size(self) -> int:
        """Number of fields."""
        return self.legs[0].size

    @property
    def dimension(self) -> int:
        """Number of coordinates, time included."""
        return self.legs[0].dimension

    @property
    def breaks(self) -> FloatArray:
        """Where the steps begin, and where the last one ends."""
        return np.concatenate([self.legs[0].breaks[:1], *(leg.breaks[1:] for leg in self.legs)])

    @property
    def space(self) -> CellNetwork:
        """The most cells that there are."""
        return self.space_at(None)

    def space_at(self, time: float | None) -> CellNetwork:
        """Return the cells at a time, or the most that there are."""
        if time is None:
            return max((leg.space for leg in self.legs), key=lambda space: space.cells)
        return self.legs[int(self._numbers(np.array([time]))[0])].space

    def _numbers(self, times: FloatArray) -> IntArray:
        """Return the number of the leg that each time is in."""
        return pieces_of(np.array([*(leg.breaks[0] for leg in self.legs), self.legs[-1].breaks[-1]]), times)

    def evaluate(self, X: FloatArray, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the fields at points: one array (n, fields) per multi-index."""
        X, wanted = np.asarray(X, dtype=np.float64), list(multi_indices)
        result, numbers = {index: np.empty((len(X), self.size)) for index in wanted}, self._numbers(X[:, -1])
        for number in np.unique(numbers).tolist():
            (rows,) = np.nonzero(numbers == number)
            for index, values in self.legs[number].evaluate(X[rows], wanted).items():
                result[index][rows] = values
        return result

    def boxes(self, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return low and high ends of every cell over every step, shape (boxes, coordinates) each."""
        low, high = zip(*(leg.boxes(bounds) for leg in self.legs), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def boxes_at(self, X: FloatArray) -> FloatArray:
        """Return the bounds of the cell and the step around each point, shape (points, coordinates, 2)."""
        found, numbers = np.empty((*X.shape, 2)), self._numbers(X[:, -1])
        for number in np.unique(numbers).tolist():
            found[numbers == number] = self.legs[number].boxes_at(X[numbers == number])
        return found
