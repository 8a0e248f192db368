"""One small broad network for every cell: drawn once on the cube [−1, 1]ᵈ, and made orthonormal there.

Random nodes on a cube are nearly dependent. An orthonormal basis of what they span, in the order in which they span it,
is as good as the nodes and well conditioned; its first functions are the smoothest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import FeatureError
from pibls.features.activations import activation
from pibls.features.arrays import MultiIndex
from pibls.features.broad import BroadNetwork
from pibls.features.scales import draw_enhancement, draw_features
from pibls.quadrature.rules import gauss, tensor
from pibls.runtime import Spare

_NODES_PER_FUNCTION = 2
_WAVES = 0.12  # largest weight of a sine, per degree: smaller is nearer to polynomials
_FLAT, _CLEAR = 2, 5e-8  # coordinates for which that is near enough; in more, what sines have of the highest degree
_DISTINCT = 3.0  # the weight at which degrees are told apart, over that at which powers of it fall below rounding
_GRAIN = 2.0**44  # coarser than the rounding of places in a cell, and too fine to matter
_PLACES = np.linspace(-3.0, 3.0, 601)  # where activations vary
_ENHANCED = 0.2  # enhancement nodes take up what features vary by, which is more than coordinates do
_NOISE = 1e-15  # singular values below this share of the first are rounding


@dataclass(frozen=True)
class Cells:
    """The small network of every cell, as a ``method`` for :func:`pibls.solve`.

    Parameters
    ----------
    activation
        Smooth activation of the feature nodes. Sines are the default and the best choice.
    enhancement
        Activation of enhancement nodes, as many as there are feature nodes; none if left out.
    device
        A torch device such as ``"cuda"`` on which trees of cells are factorised and solved; NumPy if left out.

    Examples
    --------
    >>> from pibls import problems, solve
    >>> solution = solve(problems.helmholtz(), method=Cells("tanh", enhancement="tanh"))
    >>> solution.status, solution.true_error() < 1e-6
    ('converged', True)
    """

    activation: str = "sin"
    enhancement: str | None = None
    device: str | Spare | None = None

    def __post_init__(self) -> None:
        for name in (self.activation, *([] if self.enhancement is None else [self.enhancement])):
            if not math.isinf(activation(name).smoothness):
                raise FeatureError(
                    f"The activation {name!r} of Cells has kinks, and cells differentiate their functions many times. "
                    "Use a smooth one: 'sin', 'tanh' or 'softplus'."
                )

    @classmethod
    def recorded(cls, settings: Mapping[str, Any]) -> Cells:
        """Return the nodes that a record tells of; its device may not be on this machine, and is left out.

        >>> Cells.recorded({"degree": 9, "activation": "tanh", "device": "cuda"})
        Cells(activation='tanh', enhancement=None, device=None)
        """
        return cls(settings.get("activation", "sin"), settings.get("enhancement"))

    def network(self, rng: np.random.Generator, dimension: int, degree: int, nodes: int) -> BroadNetwork:
        """Draw nodes for the cube [−1, 1]ᵈ that span about the polynomials of a degree."""
        cube, some = [1.0] * dimension, nodes if self.enhancement is None else nodes // 2
        # Of a uniform distribution up to the largest weight, the standard deviation.
        sines = self.activation == "sin" and self.enhancement is None
        spread = (largest_weight(dimension, degree) if sines else _told_apart(self.activation, degree)) / (
            math.sqrt(3.0) if activation(self.activation).periodic else 1.0
        )
        features = draw_features(rng, cube, self.activation, some, spread)
        if self.enhancement is None:
            return BroadNetwork(np.zeros(dimension), (features,))
        scale = _ENHANCED * _told_apart(self.enhancement, degree)
        return BroadNetwork(
            np.zeros(dimension), (features,), (draw_enhancement(rng, self.enhancement, some, nodes - some, scale),)
        )


SINES = Cells()


@dataclass(eq=False)
class Memory:
    """Arrays by place and name, such as derivatives at points; forgotten when they are too many numbers."""

    most: int = 2**22
    _arrays: dict[Any, dict[Any, FloatArray]] = field(default_factory=dict)
    _held: int = 0

    def known(self, place: Any) -> dict[Any, FloatArray]:
        """Return all that is known of a place, by name."""
        return self._arrays.get(place, {})

    def keep(self, place: Any, made: Mapping[Any, FloatArray]) -> None:
        """Remember arrays of a place by name."""
        if self._held > self.most:
            self._arrays.clear()
            self._held = 0
        self._arrays.setdefault(place, {}).update(made)
        self._held += sum(array.size for array in made.values())

    def recalled(
        self,
        place: Any,
        multi_indices: Sequence[MultiIndex],
        made: Callable[[list[MultiIndex]], Mapping[MultiIndex, FloatArray]],
    ) -> dict[MultiIndex, FloatArray]:
        """Return derivatives at a place; those that are not known yet are made."""
        known = self.known(place)
        if missing := [index for index in multi_indices if index not in known]:
            new = made(missing)
            known = {**known, **new}
            self.keep(place, new)
        return {index: known[index] for index in multi_indices}


@dataclass(frozen=True, eq=False)
class ReferenceNetwork:
    """Orthonormal functions on the cube [−1, 1]ᵈ, combinations of the nodes of a broad network."""

    network: BroadNetwork
    transform: FloatArray  # one column of node weights per function
    degree: int  # the functions span about what polynomials of this total degree do
    nodes: Cells = SINES  # the kind of nodes

    @cached_property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.network.dimension

    @cached_property
    def size(self) -> int:
        """Number of functions."""
        return int(self.transform.shape[1])

    @cached_property
    def rule(self) -> tuple[FloatArray, FloatArray]:
        """Gauss points of the cube and their weights, enough to determine the functions and their equations."""
        return cube_rule(self.dimension, rule_count(self.degree))

    def evaluate(self, X: FloatArray, multi_indices: Sequence[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of all functions at points of the cube: one array (points, functions) per multi-index."""
        nodes = self.network.evaluate(X, list(multi_indices))
        return {index: nodes[index] @ self.transform for index in multi_indices}

    def combine(
        self, X: FloatArray, forms: Sequence[Mapping[MultiIndex, Any]], left: FloatArray | None = None
    ) -> list[FloatArray]:
        """Return linear differential forms of all functions at points of the cube, or sums of these with weights.

        Weights have the shape (stacks, sums, points of a stack). Nodes are summed up before they become functions,
        because that takes most of the work.
        """
        nodes = self.network.combine(X, forms)
        if left is not None:
            stacks, sums, points = left.shape
            nodes = [(left @ own.reshape(stacks, points, -1)).reshape(stacks * sums, -1) for own in nodes]
        return [own @ self.transform for own in nodes]

    def chunks(self, counts: Sequence[int]) -> Iterator[slice]:
        """Yield slices of a sequence of sets of points, each small enough to be evaluated at a time."""
        if not counts:
            return
        totals = np.cumsum(counts) // max(1, self.memory.most // self.network.size)
        ends = [*(np.flatnonzero(np.diff(totals)) + 1).tolist(), len(counts)]
        for start, stop in pairwise([0, *ends]):
            yield slice(start, stop)

    @cached_property
    def memory(self) -> Memory:
        """Derivatives of the functions at places that many cells have in common."""
        return Memory()

    @cached_property
    def equations(self) -> Memory:
        """Rows of constant equations on the cube, which many cells have in common; systems have large ones."""
        return Memory(4 * self.memory.most)

    @cached_property
    def _at_rule(self) -> dict[MultiIndex, FloatArray]:
        return {}

    def evaluate_again(self, X: FloatArray, multi_indices: Sequence[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return :meth:`evaluate` at points rounded to a fine grid, from memory where it was asked there before."""
        grid = on_grid(X)
        return self.memory.recalled(grid.tobytes(), multi_indices, lambda missing: self.evaluate(grid, missing))

    def on_rule(self, multi_indices: Sequence[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of all functions at the points of the rule; each is computed once and kept."""
        if missing := [index for index in multi_indices if index not in self._at_rule]:
            self._at_rule.update(self.evaluate(self.rule[0], missing))
        return {index: self._at_rule[index] for index in multi_indices}

    def tables(self, multi_indices: Sequence[MultiIndex]) -> FloatArray:
        """Return derivatives at the points of the rule as one array (derivatives, points, functions), the same again.

        >>> reference = draw_reference(2, 6)
        >>> reference.tables([(0, 0), (2, 0)]) is reference.tables([(0, 0), (2, 0)])
        True
        """
        key = tuple(multi_indices)
        if key not in self._tables:
            self._tables[key] = np.stack([self.on_rule(key)[index] for index in key])
        return self._tables[key]

    @cached_property
    def _tables(self) -> dict[tuple[MultiIndex, ...], FloatArray]:
        return {}


def on_grid(X: FloatArray) -> FloatArray:
    """Return points of the cube rounded to a fine grid: places that are the same but for rounding become equal."""
    return np.asarray((np.round(X * _GRAIN) + 0.0) / _GRAIN)


def rule_count(degree: int) -> int:
    """Return how many Gauss points per axis go with a degree: an even number, as data may be singular at centres.

    >>> rule_count(13), rule_count(14)
    (16, 16)
    """
    return 2 * (degree // 2) + (2 if degree % 2 == 0 else 4)


@lru_cache(maxsize=64)
def cube_rule(dimension: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the product Gauss rule with ``count`` nodes per axis on the cube [−1, 1]ᵈ.

    >>> X, weights = cube_rule(2, 3)
    >>> X.shape, float(weights.sum().round(12))
    ((9, 2), 4.0)
    """
    U, weights = tensor(*[gauss(count)] * dimension)
    return 2.0 * U - 1.0, weights * 2.0**dimension


def largest_weight(dimension: int, degree: int) -> float:
    """Return the largest weight of the sines of a degree: small, as long as double precision tells them apart.

    Sines are no polynomials, and what they miss of a constant or a rigid motion is the same on cells of any size: no
    comparison with smaller ones shows it. In space they miss most, by how many directions there are.

    >>> round(largest_weight(2, 10), 2), round(largest_weight(3, 10), 2), round(largest_weight(2, 19), 2)
    (1.2, 0.84, 3.86)
    """
    told = (_CLEAR * math.factorial(degree)) ** (1.0 / degree) if dimension > _FLAT else _WAVES * degree
    return float(max(told, _DISTINCT * (_NOISE * math.factorial(degree)) ** (1.0 / degree)))


def _told_apart(name: str, degree: int) -> float:
    """Return the largest weight of nodes of a kind: small, as long as double precision tells their powers apart."""
    slopes = activation(name).derivatives(_PLACES, [degree - 1, degree])
    steepest = max(float(np.abs(own).max()) / math.factorial(order) for order, own in slopes.items())
    return float(_DISTINCT * (_NOISE / steepest) ** (1.0 / degree))


def draw_reference(dimension: int, degree: int, seed: int = 0, nodes: Cells = SINES) -> ReferenceNetwork:
    """Draw the reference network of a number of coordinates.

    >>> reference = draw_reference(2, 6)
    >>> reference.size
    28
    >>> X, weights = reference.rule
    >>> values = reference.evaluate(X, [(0, 0)])[(0, 0)]
    >>> bool(np.allclose((values * weights[:, None]).T @ values, np.eye(28), atol=1e-6))
    True
    """
    return _drawn(dimension, degree, seed, nodes)


@lru_cache(maxsize=16)
def _drawn(dimension: int, degree: int, seed: int, nodes: Cells) -> ReferenceNetwork:
    functions = math.comb(degree + dimension, dimension)
    rng = np.random.default_rng((seed, dimension, degree))
    network = nodes.network(rng, dimension, degree, _NODES_PER_FUNCTION * functions)
    return replace(orthonormal(network, functions, degree), nodes=nodes)


def orthonormal(network: BroadNetwork, functions: int, degree: int) -> ReferenceNetwork:
    """Return the leading orthonormal combinations of the nodes of a network on the cube [−1, 1]ᵈ."""
    X, weights = cube_rule(network.dimension, rule_count(degree))
    zero = (0,) * network.dimension
    values = np.asarray(network.evaluate(X, [zero])[zero]) * np.sqrt(weights)[:, None]
    triangle = np.linalg.qr(values, mode="r")
    _, singular, right = np.linalg.svd(triangle, full_matrices=False)
    count = min(functions, int((singular > _NOISE * singular[0]).sum()))
    return ReferenceNetwork(network, right[:count].T / singular[:count], degree)
