"""A network whose output weights follow a path in time: the form of a solution by the method of lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.errors import FeatureError
from pibls.features import BroadNetwork, MultiIndex

_CHUNK = 2**21


@dataclass(frozen=True, eq=False)
class EvolvedNetwork:
    """Fields as combinations of space features, with weights that are piecewise polynomials in time.

    Its nodes are the fields themselves, one column each. The last coordinate is time; beyond its first and last time
    the states there are returned.

    A field that is 2t for t in (0, 2), without space:

    >>> line = EvolvedNetwork(None, np.ones((1, 1)), np.array([0.0, 2.0]), np.array([[[[2.0]], [[2.0]]]]))
    >>> line.evaluate(np.array([[0.5], [2.0]]), [(0,), (1,)])
    {(0,): array([[1.],
           [4.]]), (1,): array([[2.],
           [2.]])}
    """

    space: BroadNetwork | None  # the features; None for ordinary differential equations
    # combinations of features that the coefficients belong to, (features, m), or a factor for each feature
    transform: FloatArray
    breaks: FloatArray  # where the pieces in time begin, and where the last one ends, (k + 1,)
    coefficients: FloatArray  # Legendre coefficients of every piece, (k, degree + 1, fields, m)
    # of features that travel round a periodic interval: their velocity, and the interval's start and length
    frame: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        pieces, nodes = self.coefficients.shape, 1 if self.space is None else self.space.size
        fits = (
            self.coefficients.ndim == 4
            and self.breaks.shape == (pieces[0] + 1,)
            and self.transform.shape in {(nodes, pieces[-1]), (pieces[-1],)}
            and len(self.transform) == nodes
            and is_increasing(self.breaks)
            and (self.frame is None or (len(self.frame) == 3 and self.dimension == 2 and self.frame[2] > 0))
        )
        if not fits:
            raise FeatureError(
                f"The arrays of EvolvedNetwork must fit together: {nodes} features, a transform of shape "
                f"{self.transform.shape}, {self.breaks.shape[0]} increasing breaks, coefficients of shape {pieces}. "
                "Use those of one solve."
            )

    @property
    def size(self) -> int:
        """Number of fields."""
        return int(self.coefficients.shape[2])

    @property
    def dimension(self) -> int:
        """Number of coordinates, time included."""
        return 1 if self.space is None else self.space.dimension + 1

    @property
    def features(self) -> int:
        """Number of features in space."""
        return len(self.transform)

    def evaluate(self, X: FloatArray, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the fields at points: one array (n, fields) per multi-index."""
        X, wanted = np.asarray(X, dtype=np.float64), list(multi_indices)
        result = {index: np.empty((len(X), self.size)) for index in wanted}
        terms = {index: self._terms(index) for index in wanted}
        needed = sorted({space for parts in terms.values() for _, space, _ in parts})
        # Functions of space are evaluated once at a place, however many times are wanted there.
        alone = self.space is None  # with time, in which all are at one place
        places, which = np.unique(X[:, :1] * 0.0 if alone else self._carried(X), axis=0, return_inverse=True)
        which = which.ravel()
        order = np.argsort(which, kind="stable")
        sizes = self.features, -(-len(X) // max(1, len(places))) * self.size * self.coefficients.shape[1]
        step = max(1, _CHUNK // max(sizes))
        starts = np.arange(0, len(places), step)
        for start, rows in zip(starts, np.split(order, np.searchsorted(which[order], starts[1:])), strict=True):
            functions = self._functions(places[start : start + step], needed)
            here, times = which[rows] - start, X[rows, -1]
            for index, parts in terms.items():
                result[index][rows] = sum(
                    factor * self._combined(functions[space], here, times, derivative)
                    for factor, space, derivative in parts
                )
        return result

    def _terms(self, index: MultiIndex) -> list[tuple[float, MultiIndex, int]]:
        """Return a derivative as a sum: factors, space derivatives of the features, time derivatives of the weights."""
        *space, order = index
        if self.frame is None:
            return [(1.0, tuple(space), order)]
        # At a fixed place, ∂/∂t is that of the weights less the velocity times ∂/∂x.
        return [(math.comb(order, j) * (-self.frame[0]) ** j, (space[0] + j,), order - j) for j in range(order + 1)]

    def _carried(self, X: FloatArray) -> FloatArray:
        """Return where points are among the features."""
        if self.frame is None:
            return X[:, :-1]
        velocity, low, length = self.frame
        return np.asarray(low + np.mod(X[:, :1] - low - velocity * (X[:, -1:] - self.breaks[0]), length))

    def _functions(self, X: FloatArray, multi_indices: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        if self.space is None:
            return {index: np.ones((len(X), 1)) for index in multi_indices}
        nodes = self.space.evaluate(X, multi_indices)
        if self.transform.ndim == 1:
            return {index: nodes[index] * self.transform for index in multi_indices}
        return {index: nodes[index] @ self.transform for index in multi_indices}

    def _combined(self, functions: FloatArray, places: IntArray, times: FloatArray, order: int) -> FloatArray:
        """Return the fields, or derivatives in time, at places and times, from functions at all places: (n, fields)."""
        found = np.empty((len(times), self.size))
        # Space first: states would have as many numbers per point as fields have coefficients.
        for rows, polynomials, own in _series(self.breaks, self.coefficients, times, order):
            used, which = np.unique(places[rows], return_inverse=True)
            states = (functions[used] @ own.reshape(-1, own.shape[-1]).T).reshape(len(used), len(own), -1)
            found[rows] = np.einsum("nd,ndf->nf", polynomials, states[which.ravel()])
        return found

    def states(self, times: FloatArray, order: int = 0) -> FloatArray:
        """Return the coefficients, or their derivatives in time, at times: shape (n, fields, m)."""
        return piecewise(self.breaks, self.coefficients, times, order)

    def on_grid(self, X: FloatArray, times: FloatArray, multi_index: MultiIndex) -> FloatArray:
        """Return a space derivative of the fields at every point of the features and time: (points, times, fields)."""
        functions = self._functions(X, [multi_index])[multi_index]
        return np.tensordot(functions, self.states(times), axes=(1, 2))


def piecewise(breaks: FloatArray, coefficients: FloatArray, times: FloatArray, order: int = 0) -> FloatArray:
    """Return piecewise polynomials in time, or derivatives of them: one Legendre series per piece.

    >>> piecewise(np.array([0.0, 2.0]), np.array([[[1.0], [3.0]]]), np.array([0.0, 1.0, 2.0])).ravel()
    array([-2.,  1.,  4.])
    """
    values = np.empty((len(times), *coefficients.shape[2:]))
    for rows, polynomials, own in _series(breaks, coefficients, times, order):
        values[rows] = np.tensordot(polynomials, own, axes=1)
    return values


def _series(
    breaks: FloatArray, coefficients: FloatArray, times: FloatArray, order: int
) -> Iterator[tuple[Any, FloatArray, FloatArray]]:
    """Yield, piece by piece, which times are in it, polynomials there, and their coefficients, differentiated."""
    pieces = pieces_of(breaks, times)
    for piece in np.unique(pieces):
        rows = np.flatnonzero(pieces == piece)
        yield rows, *legendre_series(breaks, int(piece), coefficients[piece], times[rows], order)


def is_increasing(breaks: FloatArray) -> bool:
    """Tell whether the ends of pieces in time are finite numbers that follow one another."""
    return bool(np.isfinite(breaks).all() and (np.diff(breaks) > 0).all())


def pieces_of(breaks: FloatArray, times: FloatArray) -> IntArray:
    """Return the number of the piece that each time is in, or nearest to."""
    return np.clip(np.searchsorted(breaks, times, side="right") - 1, 0, len(breaks) - 2)


def legendre_series(
    breaks: FloatArray, piece: int, coefficients: FloatArray, times: FloatArray, order: int
) -> tuple[FloatArray, FloatArray]:
    """Return Legendre polynomials of a piece at times, and coefficients of the derivative of a series of them."""
    width, times = breaks[piece + 1] - breaks[piece], np.clip(times, breaks[0], breaks[-1])
    if order:
        coefficients = np.polynomial.legendre.legder(coefficients, order) * (2.0 / width) ** order
    place = 2.0 * (times - breaks[piece]) / width - 1.0
    return np.polynomial.legendre.legvander(place, len(coefficients) - 1), coefficients
