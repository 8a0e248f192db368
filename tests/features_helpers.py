"""What the tests of the features share: the two array libraries, and small networks."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from pibls.features import BroadNetwork, EnhancementGroup, FeatureGroup

BACKENDS = ["numpy", "torch"]

# Each activation in mpmath: the oracle, independent of the closed forms of the derivatives.
EXACT = {
    "tanh": mpmath.tanh,
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "sin": mpmath.sin,
    "gaussian": lambda z: mpmath.exp(-z * z),
    "softplus": lambda z: mpmath.log(1 + mpmath.exp(z)),
    "swish": lambda z: z / (1 + mpmath.exp(-z)),
    "arctan": mpmath.atan,
}


def asarray_of(backend):
    if backend == "numpy":
        return np.asarray
    torch = pytest.importorskip("torch")
    return torch.as_tensor


def small_network(names, dimension, *, enhancement=(), features=2, seed=0):
    """A network of a few nodes per activation, with inputs of size one."""
    rng = np.random.default_rng(seed)
    groups = [FeatureGroup(n, rng.normal(size=(dimension, features)), rng.normal(size=features)) for n in names]
    P = features * len(groups)
    top = [EnhancementGroup(n, rng.normal(size=(P, 2)), rng.normal(size=2)) for n in enhancement]
    return BroadNetwork(rng.normal(size=dimension), groups, top)
