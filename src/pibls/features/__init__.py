"""Random-feature networks and their exact derivatives.

A network is drawn once and never trained. Feature nodes F = ψ((X − c) W + b) of several activations and scales
stand side by side, enhancement nodes E = φ(F Wᵉ + bᵉ) on top of them; :meth:`BroadNetwork.combine` gives any linear
differential form of all nodes at any points, which is what the rows of a collocation system are made of.

>>> import numpy as np
>>> from pibls.features import draw_network
>>> rng = np.random.default_rng(0)
>>> network = draw_network(rng, [[0, 1], [0, 1]], [("sin", 40, 2.0), ("tanh", 20, 3.0)], [("tanh", 10, 1.0)])
>>> X = rng.random((5, 2))
>>> value, laplacian = network.combine(X, [{(0, 0): 1.0}, {(2, 0): 1.0, (0, 2): 1.0}])
>>> laplacian.shape
(5, 70)
"""

from pibls.features.activations import ACTIVATIONS, Activation, activation
from pibls.features.arrays import Array, MultiIndex
from pibls.features.broad import BroadNetwork, EnhancementGroup, FeatureGroup
from pibls.features.scales import draw_enhancement, draw_features, draw_network
from pibls.features.taylor import factors, lower_set, partitions

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Array",
    "BroadNetwork",
    "EnhancementGroup",
    "FeatureGroup",
    "MultiIndex",
    "activation",
    "draw_enhancement",
    "draw_features",
    "draw_network",
    "factors",
    "lower_set",
    "partitions",
]
