"""The deep network: hidden layers one on top of the other, and exact derivatives of the last one.

What a trained network learned in its hidden layers is, like the nodes of a broad network, a set of functions that the
solution is linear in. Their derivatives come from the chain rule of every order, carried from layer to layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from array_api_compat import array_namespace

from pibls.checks import check_points
from pibls.errors import FeatureError
from pibls.features.arrays import Array, MultiIndex, check_multi_index, float_array
from pibls.features.broad import EnhancementGroup, FeatureGroup
from pibls.features.taylor import composed, lower_set

HiddenLayer: TypeAlias = tuple[Callable[[Array, Collection[int]], dict[int, Array]], Array, Array]
"""Derivatives of the activation as a function of input and orders, weights, bias."""


def propagate(X: Array, layers: Sequence[HiddenLayer], indices: Iterable[MultiIndex]) -> dict[MultiIndex, Array]:
    """Return derivatives of the nodes of the last layer at the points X.

    Every step is an array operation of the library that the arrays belong to, so that torch can differentiate the
    result with respect to weights and biases. Many networks go at once: all arrays may have one more axis in front.
    All multi-indices below the given ones come too.

    >>> from pibls.features import activation
    >>> sine = activation("sin").derivatives
    >>> layers = [(sine, np.array([[2.0]]), np.zeros(1)), (sine, np.array([[3.0]]), np.zeros(1))]
    >>> propagate(np.zeros((1, 1)), layers, [(1,)])[(1,)]
    array([[6.]])
    """
    xp = array_namespace(X)
    wanted = lower_set([*indices, (0,) * X.shape[-1]])
    orders = range(sum(wanted[-1]) + 1)
    (derive, weights, bias), *rest = layers
    slopes = derive(X @ weights + bias, orders)
    values = [_feature(slopes[sum(alpha)], weights, alpha) for alpha in wanted]
    for derive, weights, bias in rest:
        # All derivatives in one product: a network's own points are one block of rows.
        stacked = xp.stack(values, axis=-3)
        rows = xp.reshape(stacked, (*stacked.shape[:-3], -1, stacked.shape[-1])) @ weights
        blocks = xp.reshape(rows, (*stacked.shape[:-1], rows.shape[-1]))
        y = dict(zip(wanted, xp.unstack(blocks, axis=-3), strict=True))
        slopes = derive(y[wanted[0]] + bias, orders)
        values = [composed(alpha, slopes, y) if any(alpha) else slopes[0] for alpha in wanted]
    return dict(zip(wanted, values, strict=True))


def _feature(slope: Array, weights: Array, alpha: MultiIndex) -> Array:
    """Return ∂^α ψ(xW + b) = ψ⁽ᵏ⁾ W^α."""
    powers = [weights[..., axis, None, :] ** exponent for axis, exponent in enumerate(alpha) if exponent]
    return slope * math.prod(powers[1:], start=powers[0]) if powers else slope


@dataclass(frozen=True, eq=False)
class DeepNetwork:
    """Hidden layers of a trained network as nodes: those of the last layer, and a constant.

    The ``layers`` are a :class:`FeatureGroup` of the coordinates, less the ``center``, and an
    :class:`EnhancementGroup` of the layer below for each further layer.

    >>> hidden = FeatureGroup("tanh", [[1.0, 2.0]], [0.0, 0.0]), EnhancementGroup("sin", [[1.0], [1.0]], [0.0])
    >>> net = DeepNetwork([0.0], hidden)
    >>> net.size, net.evaluate([[0.0]], [(0,), (1,)])
    (2, {(0,): array([[0., 1.]]), (1,): array([[3., 0.]])})
    """

    center: Array
    layers: tuple[FeatureGroup | EnhancementGroup, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", float_array("center", self.center, "DeepNetwork", (None,)))
        object.__setattr__(self, "layers", tuple(self.layers))
        inputs = self.dimension
        for i, layer in enumerate(self.layers):
            if not isinstance(layer, EnhancementGroup if i else FeatureGroup) or layer.weights.shape[0] != inputs:
                raise FeatureError(
                    f"The 'layers' of DeepNetwork must be a FeatureGroup, then EnhancementGroups, each with one row "
                    f"of weights per node below. Layer {i} is a {type(layer).__name__} and should have {inputs} rows."
                )
            inputs = layer.nodes
        if not self.layers:
            raise FeatureError("The 'layers' of DeepNetwork must hold at least one FeatureGroup. Got none.")

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return int(self.center.shape[0])

    @property
    def size(self) -> int:
        """Number of nodes that the solution is linear in: those of the last layer, and the constant."""
        return self.layers[-1].nodes + 1

    @property
    def parameters(self) -> int:
        """Number of trained weights and biases of the hidden layers.

        >>> DeepNetwork([0.0], [FeatureGroup("tanh", [[1.0, 2.0]], [0.0, 0.0])]).parameters
        4
        """
        return sum(math.prod(layer.weights.shape) + layer.nodes for layer in self.layers)

    def evaluate(self, X: Array, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return the derivatives ∂^α of all nodes at the points X, as arrays ``(n, size)``; the constant is last."""
        wanted = [check_multi_index(alpha, self.dimension, "evaluate") for alpha in multi_indices]
        for layer in self.layers:
            layer.activation.require(max((sum(alpha) for alpha in wanted), default=0))
        points = check_points("X", X, "evaluate", self.dimension, error=FeatureError) - self.center
        layers = [(layer.activation.derivatives, layer.weights, layer.bias) for layer in self.layers]
        nodes = propagate(points, layers, wanted)
        ends = {alpha: np.full((len(points), 1), 0.0 if any(alpha) else 1.0) for alpha in wanted}
        return {alpha: np.concatenate([nodes[alpha], ends[alpha]], axis=1) for alpha in wanted}
