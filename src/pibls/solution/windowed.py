"""A network per window of time: what a solution by marching is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import FeatureError
from pibls.features import BroadNetwork, MultiIndex

__all__ = ["WindowedNetwork"]


@dataclass(frozen=True, eq=False)
class WindowedNetwork:
    """Fields that are a network of their own on each window of time.

    Its nodes are the fields themselves, one column each. The last coordinate is time; beyond its first and last time
    the values there are returned.

    Parameters
    ----------
    breaks
        Where the windows begin, and where the last one ends, shape (k + 1,).
    networks
        The network of each window.
    weights
        Its output weights, shape (fields, nodes) each.

    Examples
    --------
    >>> from pibls.features import draw_network
    >>> network = draw_network(np.random.default_rng(0), [[0, 1]], [("sin", 5, 1.0)])
    >>> twice = WindowedNetwork(np.array([0.0, 1.0, 2.0]), (network, network), (np.ones((1, 5)), np.zeros((1, 5))))
    >>> values = twice.evaluate(np.array([[0.5], [1.5]]), [(0,)])[(0,)]
    >>> bool(values[0, 0] == network.evaluate(np.array([[0.5]]), [(0,)])[(0,)].sum()), float(values[1, 0])
    (True, 0.0)
    """

    breaks: FloatArray
    networks: tuple[BroadNetwork, ...]
    weights: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        count = len(self.networks)
        fits = (
            self.breaks.shape == (count + 1,)
            and count == len(self.weights) > 0
            and bool((np.diff(self.breaks) > 0).all())
            and all(w.shape == (self.size, n.size) for n, w in zip(self.networks, self.weights, strict=True))
            and len({n.dimension for n in self.networks}) == 1
        )
        if not fits:
            raise FeatureError(
                f"The parts of WindowedNetwork must fit together: {count} networks of the same coordinates, as many "
                f"weights, {self.breaks.shape[0]} increasing breaks. Use those of one solve."
            )

    @property
    def size(self) -> int:
        """Number of fields."""
        return len(self.weights[0])

    @property
    def dimension(self) -> int:
        """Number of coordinates, time included."""
        return self.networks[0].dimension

    @property
    def features(self) -> int:
        """Number of nodes of the widest window."""
        return max(network.size for network in self.networks)

    @cached_property
    def center(self) -> FloatArray:
        """The middle of the windows."""
        middle = np.asarray(self.networks[0].center)[:-1].tolist()
        return np.array([*middle, (self.breaks[0] + self.breaks[-1]) / 2])

    def evaluate(self, X: FloatArray, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the fields at points: one array (n, fields) per multi-index."""
        X, wanted = np.array(X, dtype=np.float64), list(multi_indices)
        X[:, -1] = np.clip(X[:, -1], self.breaks[0], self.breaks[-1])
        result = {index: np.empty((len(X), self.size)) for index in wanted}
        windows = np.clip(np.searchsorted(self.breaks, X[:, -1], side="right") - 1, 0, len(self.networks) - 1)
        for window in np.unique(windows):
            rows = np.flatnonzero(windows == window)
            nodes = self.networks[window].evaluate(X[rows], wanted)
            for index in wanted:
                result[index][rows] = nodes[index] @ self.weights[window].T
        return result
