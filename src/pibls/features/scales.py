"""Random draws of nodes, at a given scale, in the normalised coordinates of a box.

Every draw is nested: the first m nodes of a wider draw from the same seed are the draw of m nodes, and no group
depends on how many nodes the others have. A network can therefore grow without changing the nodes it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pibls.checks import FloatArray, check_integer, check_number, shorten
from pibls.errors import FeatureError
from pibls.features.activations import Activation
from pibls.features.activations import activation as resolved
from pibls.features.arrays import float_array
from pibls.features.broad import BroadNetwork, EnhancementGroup, FeatureGroup
from pibls.geometry.sampling import kronecker
from pibls.runtime import require_memory

Scale: TypeAlias = float | Sequence[float]
FeatureSpec: TypeAlias = tuple[str | Activation, int, Scale]
EnhancementSpec: TypeAlias = tuple[str | Activation, int, float]

SMALLEST_SCALE, LARGEST_SCALE = 1e-6, 1e6
_BOX_DIMENSIONS = 4
_SPARSE_SPREAD = (0.5, 3.0)
_STEEPEST, _TILT = 3.0, 0.2


def draw_features(
    rng: np.random.Generator, half_widths: npt.ArrayLike, activation: str | Activation, nodes: int, scale: Scale
) -> FeatureGroup:
    """Draw feature nodes for a box of the given half widths around the centre of the network.

    Weights w act on the normalised coordinates (x − c)/h in [−1, 1]. A periodic activation takes weights of standard
    deviation ``scale``, uniform in a box, and a uniform phase, spread evenly by a randomly shifted Kronecker sequence:
    at the same width this gives one to two more digits than independent normal weights, and seeds that differ less.
    Beyond four coordinates, where a box is nearly all corners, they are independent and normal. Any other activation
    takes w ~ U(−scale, scale) and a centre, the point where z = 0, uniform in the box. ``scale`` is one number for all
    axes, or one per axis.

    >>> group = draw_features(np.random.default_rng(0), [1.0, 0.5], "tanh", 4, scale=3.0)
    >>> group.weights.shape, bool((abs(group.weights) <= [[3.0], [6.0]]).all())
    ((2, 4), True)
    """
    owner = "draw_features"
    psi = resolved(activation)
    widths: FloatArray = float_array("half_widths", half_widths, owner, (None,))
    if not (widths > 0).all():
        raise FeatureError(f"The 'half_widths' of {owner} must be positive. Got {widths.tolist()}.")
    count = check_integer("nodes", nodes, owner, minimum=1, error=FeatureError)
    spread = _axis_scales(scale, len(widths), owner)
    weight_rng, place_rng = _spawn(rng, 2, owner)
    shape = (count, len(widths))
    if psi.periodic and len(widths) > _BOX_DIMENSIONS:
        w = spread * weight_rng.standard_normal(shape)
        bias = place_rng.uniform(0.0, 2.0 * math.pi, count)
    elif psi.periodic:
        shift = np.append(weight_rng.random(len(widths)), place_rng.random())
        even = kronecker(count, len(widths) + 1, shift=shift)
        w = spread * math.sqrt(3.0) * (2.0 * even[:, :-1] - 1.0)
        bias = 2.0 * math.pi * even[:, -1]
    else:
        w = spread * weight_rng.uniform(-1.0, 1.0, shape)
        bias = -(w * place_rng.uniform(-1.0, 1.0, shape)).sum(axis=1)
    return FeatureGroup(psi, np.ascontiguousarray((w / widths).T), bias)


def draw_sparse_features(
    rng: np.random.Generator,
    half_widths: npt.ArrayLike,
    activation: str | Activation,
    nodes: int,
    scale: Scale,
    active: int = 2,
) -> FeatureGroup:
    """Draw feature nodes that see only one to ``active`` of the coordinates each, at scales around the given one.

    Functions of many variables are often sums of functions of few; such nodes resolve them with a number of nodes
    that does not grow with the dimension to a power.

    >>> group = draw_sparse_features(np.random.default_rng(0), [1.0] * 6, "sin", 50, scale=1.0)
    >>> sorted(set((group.weights != 0).sum(axis=0).tolist()))
    [1, 2]
    """
    owner = "draw_sparse_features"
    most = check_integer("active", active, owner, minimum=1, error=FeatureError)
    choice_rng, node_rng = _spawn(rng, 2, owner)
    group = draw_features(node_rng, half_widths, activation, nodes, scale)
    axes, count = group.weights.shape
    # The active axes of a node are those that come first in a random order of its own.
    ranks = choice_rng.random((count, axes)).argsort(axis=1).argsort(axis=1).T
    spread = choice_rng.uniform(*_SPARSE_SPREAD, count)
    mask = ranks < choice_rng.integers(1, min(most, axes) + 1, count)
    return FeatureGroup(group.activation, np.ascontiguousarray(group.weights * mask * spread), group.bias)


def draw_steep_features(
    rng: np.random.Generator, half_widths: npt.ArrayLike, centers: npt.ArrayLike, slopes: npt.ArrayLike
) -> FeatureGroup:
    """Draw tanh nodes through given points, along given slopes: for layers and fronts whose place is known.

    Each node is steepest at one of the ``centers`` (n, d), in coordinates normalised to [−1, 1]. ``slopes`` (n, d) are
    gradients there of a function with values between about −1 and 1, of which each node takes one to three times as
    much, tilted a little.

    >>> group = draw_steep_features(np.random.default_rng(0), [2.0, 1.0], [[0.5, 0.0]], [[100.0, 0.0]])
    >>> bool(40 < group.weights[0, 0] < 200)
    True
    """
    owner = "draw_steep_features"
    widths: FloatArray = float_array("half_widths", half_widths, owner, (None,))
    places: FloatArray = float_array("centers", centers, owner, (None, len(widths)))
    gradient: FloatArray = float_array("slopes", slopes, owner, (len(places), len(widths)))
    factor_rng, tilt_rng = _spawn(rng, 2, owner)
    factors = np.exp(factor_rng.uniform(0.0, math.log(_STEEPEST), (len(places), 1)))
    tilt = _TILT * np.linalg.norm(gradient, axis=1, keepdims=True) * tilt_rng.standard_normal(gradient.shape)
    w = factors * (gradient + (tilt if len(widths) > 1 else 0.0))
    return FeatureGroup(resolved("tanh"), np.ascontiguousarray((w / widths).T), -(w * places).sum(axis=1))


def draw_enhancement(
    rng: np.random.Generator, activation: str | Activation, feature_nodes: int, nodes: int, scale: float
) -> EnhancementGroup:
    """Draw enhancement nodes on top of ``feature_nodes`` feature nodes.

    Wᵉ ~ N(0, 2 scale²/P): features have a mean square near 1/2, so that the input y of a node has a standard
    deviation near ``scale``. The bias is U(−scale, scale), or a uniform phase for a periodic activation.

    >>> draw_enhancement(np.random.default_rng(0), "tanh", 100, 5, scale=1.0).weights.shape
    (100, 5)
    """
    owner = "draw_enhancement"
    phi = resolved(activation)
    inputs = check_integer("feature_nodes", feature_nodes, owner, minimum=1, error=FeatureError)
    count = check_integer("nodes", nodes, owner, minimum=1, error=FeatureError)
    spread = _check_scale(scale, owner)
    require_memory(2 * 8 * inputs * count, f"{count} enhancement nodes on {inputs} feature nodes", "Use fewer nodes.")
    weight_rng, bias_rng = _spawn(rng, 2, owner)
    weights = spread * math.sqrt(2.0 / inputs) * weight_rng.standard_normal((count, inputs))
    low, high = (0.0, 2.0 * math.pi) if phi.periodic else (-spread, spread)
    return EnhancementGroup(phi, np.ascontiguousarray(weights.T), bias_rng.uniform(low, high, count))


def draw_network(
    rng: np.random.Generator,
    bounds: npt.ArrayLike,
    features: Sequence[FeatureSpec],
    enhancement: Sequence[EnhancementSpec] = (),
) -> BroadNetwork:
    """Draw a network for a box with given lower and upper bounds, one group per (activation, nodes, scale).

    >>> rng = np.random.default_rng(0)
    >>> net = draw_network(rng, [[0, 1], [0, 2]], [("sin", 30, 2.0), ("tanh", 20, (3.0, 1.0))], [("tanh", 10, 1.0)])
    >>> net.dimension, net.feature_nodes, net.enhancement_nodes, net.center.tolist()
    (2, 50, 10, [0.5, 1.0])
    """
    owner = "draw_network"
    box: FloatArray = float_array("bounds", bounds, owner, (None, 2))
    lower, upper = box[:, 0] / 2.0, box[:, 1] / 2.0
    if not (lower < upper).all():
        raise FeatureError(f"Each row of 'bounds' of {owner} must be (lower, upper). Got {box.tolist()}.")
    feature_specs = [_spec("features", spec, owner) for spec in features]
    enhancement_specs = [_spec("enhancement", spec, owner) for spec in enhancement]
    feature_rng, enhancement_rng = _spawn(rng, 2, owner)
    groups = tuple(
        draw_features(child, upper - lower, *spec)
        for child, spec in zip(feature_rng.spawn(len(feature_specs)), feature_specs, strict=True)
    )
    total = sum(group.nodes for group in groups)
    children = enhancement_rng.spawn(len(enhancement_specs))
    enhanced = tuple(
        draw_enhancement(child, name, total, nodes, scale)
        for child, (name, nodes, scale) in zip(children, enhancement_specs, strict=True)
    )
    return BroadNetwork(lower + upper, groups, enhanced)


def _axis_scales(scale: Scale, dimension: int, owner: str) -> FloatArray:
    values: Any = scale
    if not isinstance(values, Sequence) and not (isinstance(values, np.ndarray) and values.ndim > 0):
        values = [scale] * dimension
    if isinstance(values, str | bytes | bytearray) or len(values) != dimension:
        raise FeatureError(
            f"The 'scale' of {owner} must be a positive number or {dimension} of them, one per coordinate. "
            f"Got {shorten(scale)} instead."
        )
    return np.array([_check_scale(value, owner) for value in values])


def _check_scale(value: object, owner: str) -> float:
    """Refuse spreads at which nodes are constant, or noise, to double precision."""
    spread = check_number("scale", value, owner, minimum=0.0, exclusive=True, error=FeatureError)
    if not SMALLEST_SCALE <= spread <= LARGEST_SCALE:
        raise FeatureError(
            f"The 'scale' of {owner} must be between {SMALLEST_SCALE:g} and {LARGEST_SCALE:g}. "
            f"Got {shorten(value)} instead. It is the number of radians across half the domain, usually 1 to 20."
        )
    return spread


def _spec(name: str, spec: object, owner: str) -> tuple[Any, Any, Any]:
    if not isinstance(spec, Sequence) or isinstance(spec, str) or len(spec) != 3:
        raise FeatureError(
            f"Each entry of '{name}' of {owner} must be (activation, nodes, scale), like ('tanh', 100, 2.0). "
            f"Got {shorten(spec)} instead."
        )
    return (spec[0], spec[1], spec[2])


def _spawn(rng: object, count: int, owner: str) -> list[np.random.Generator]:
    """Child generators: one per quantity, so that a longer draw of one does not shift the others."""
    if not isinstance(rng, np.random.Generator):
        raise FeatureError(
            f"The 'rng' of {owner} must be a numpy.random.Generator. Got {shorten(rng)} instead. "
            "Make one with numpy.random.default_rng(seed)."
        )
    try:
        return rng.spawn(count)
    except TypeError:
        raise FeatureError(
            f"The 'rng' of {owner} must come from a seed that can be spawned. "
            "Make one with numpy.random.default_rng(seed)."
        ) from None
