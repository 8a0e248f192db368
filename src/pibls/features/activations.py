"""Activations as data: each with its derivatives of every order in closed form.

Every formula keeps its relative accuracy in the tails, where derivatives decay like exp(−2|z|): the rows of a
differential equation weigh nodes by derivatives, so 1 − tanh² from a rounded tanh would put noise into the system.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import sympy as sp
from array_api_compat import array_namespace, is_numpy_array

from pibls.checks import HIGHEST_ORDER, shorten
from pibls.errors import FeatureError
from pibls.features.arrays import Array

# With 512-bit registers NumPy evaluates tangents six times as fast as sines.
_HALF_ANGLES = bool({"X86_V4", "AVX512_SKX"} & set(np.show_config(mode="dicts")["SIMD Extensions"]["found"]))

Derivatives: TypeAlias = Callable[[Array, Collection[int]], dict[int, Array]]


@dataclass(frozen=True)
class Activation:
    """A scalar function ψ with its derivatives.

    >>> import numpy as np
    >>> activation("tanh").derivatives(np.zeros(1), [0, 1, 3])
    {0: array([0.]), 1: array([1.]), 3: array([-2.])}
    """

    name: str
    smoothness: float  # the highest order of derivative that rows of an equation may use; math.inf for smooth functions
    derivatives: Derivatives  # of points and orders: {k: ψ⁽ᵏ⁾(z)} in arrays to be read only, as they may share memory
    periodic: bool = False  # whether a uniform phase, rather than a centre in the domain, places a node

    def require(self, order: int) -> None:
        """Refuse an order of derivative that the function does not have.

        >>> activation("relu").require(1)
        """
        if order > HIGHEST_ORDER:
            raise FeatureError(
                f"A derivative of order {shorten(order)} was asked for, and orders up to {HIGHEST_ORDER} are possible: "
                "those of the nodes overflow beyond. Ask for a lower one."
            )
        if order > self.smoothness:
            raise FeatureError(
                f"The activation {self.name!r} can be differentiated up to order {self.smoothness:g}; the equation "
                f"asks for order {order}. Beyond that order only jumps are left (the second derivative of relu is "
                "zero almost everywhere and a delta at the kinks), so rows at points would not see the equation. "
                "Use a smooth activation: 'tanh', 'sin' or 'softplus'."
            )


def activation(choice: str | Activation) -> Activation:
    """Return the activation of that name; an :class:`Activation` is passed through.

    >>> activation("sin").smoothness
    inf
    """
    if isinstance(choice, Activation):
        return choice
    if isinstance(choice, str) and choice in ACTIVATIONS:
        return ACTIVATIONS[choice]
    close = difflib.get_close_matches(choice.lower(), ACTIVATIONS, n=1) if isinstance(choice, str) else []
    hint = f"Did you mean {close[0]!r}?" if close else "Pass an Activation to use a function of your own."
    raise FeatureError(
        f"The activation must be one of {', '.join(map(repr, ACTIVATIONS))}. Got {shorten(choice)} instead. {hint}"
    )


def _horner(coefficients: Sequence[float], s: Array) -> Array:
    """Evaluate a polynomial with coefficients in ascending order; a plain number if it is constant."""
    *lower, leading = coefficients
    if not lower:
        return leading
    total = s * leading
    for coefficient in reversed(lower[1:]):
        total += coefficient
        total *= s
    if lower[0]:
        total += lower[0]
    return total


@cache
def _tanh_polynomial(order: int) -> tuple[int, ...]:
    """P in tanh⁽ᵏ⁾ = P(s) for odd k and tanh·P(s) for even k, s = sech².

    In s rather than in tanh because the constant of P(s)/s alone is left in the tails: nothing cancels there.
    """
    if order == 0:
        return (1,)
    p = _tanh_polynomial(order - 1)
    if order % 2 == 0:
        return tuple(-2 * j * a for j, a in enumerate(p))
    raised = (0, *((2 * j + 1) * a for j, a in enumerate(p)))
    return tuple(up - 2 * j * a for j, (up, a) in enumerate(zip(raised, (*p, 0), strict=True)))


@cache
def _gaussian_polynomial(order: int) -> tuple[int, ...]:
    """P in gaussian⁽ᵏ⁾ = exp(−z²)·P(z²) for even k and exp(−z²)·z·P(z²) for odd k: the Hermite polynomials."""
    ascending = sp.hermite_poly(order, polys=True).all_coeffs()[::-1]
    return tuple(int((-1) ** order * coefficient) for coefficient in ascending[order % 2 :: 2])


def _sech_form(order: int, t: Array, s: Array, factor: float = 1.0) -> Array:
    """Return factor · tanh⁽ᵏ⁾ for k ≥ 1, from t = tanh and s = sech²."""
    value = _horner([factor * a for a in _tanh_polynomial(order)], s)
    if order % 2 == 0:
        value *= t
    return value


def _tanh(z: Array, orders: Collection[int]) -> dict[int, Array]:
    xp = array_namespace(z)
    t = xp.tanh(z)
    result = {0: t} if 0 in orders else {}
    if any(orders):
        # sech² = 4e/(1+e)² with e = exp(−2|z|), and 2/(1+e) = 1 + |tanh z|: no cancellation, and no division.
        magnitude = xp.abs(z)
        magnitude *= -2.0
        s = xp.abs(t)
        s += 1.0
        s *= s
        s *= xp.exp(magnitude)
        result |= {k: _sech_form(k, t, s) for k in orders if k}
    return result


def _sigmoid(z: Array, orders: Collection[int]) -> dict[int, Array]:
    xp = array_namespace(z)
    e = xp.exp(-xp.abs(z))
    result = {0: xp.where(z < 0, e, xp.ones_like(e)) / (1.0 + e)} if 0 in orders else {}
    if any(orders):
        # σ(z) = (1 + tanh(z/2))/2.
        t, s = xp.tanh(z / 2.0), 4.0 * e / (1.0 + e) ** 2
        result |= {k: _sech_form(k, t, s, 0.5 ** (k + 1)) for k in orders if k}
    return result


def _softplus(z: Array, orders: Collection[int]) -> dict[int, Array]:
    xp = array_namespace(z)
    magnitude = xp.abs(z)
    result = {0: (z + magnitude) / 2.0 + xp.log1p(xp.exp(-magnitude))} if 0 in orders else {}
    slopes = _sigmoid(z, {k - 1 for k in orders if k})
    return result | {k + 1: slope for k, slope in slopes.items()}


def _swish(z: Array, orders: Collection[int]) -> dict[int, Array]:
    sigma = _sigmoid(z, {j for k in orders for j in (k, k - 1) if j >= 0})
    return {k: z * sigma[k] + k * sigma[k - 1] if k else z * sigma[0] for k in orders}


def _sin(z: Array, orders: Collection[int]) -> dict[int, Array]:
    wanted = {k % 2 for k in orders}
    waves = _by_half_angles(z, wanted) if _HALF_ANGLES and is_numpy_array(z) else _by_angles(z, wanted)
    cycle = {phase: -waves[phase % 2] if phase > 1 else waves[phase % 2] for phase in {k % 4 for k in orders}}
    return {k: cycle[k % 4] for k in orders}


def _by_angles(z: Array, wanted: Collection[int]) -> dict[int, Array]:
    """Return the sine (0) and the cosine (1), as far as they are wanted."""
    xp = array_namespace(z)
    return {phase: xp.cos(z) if phase else xp.sin(z) for phase in wanted}


def _by_half_angles(z: Array, wanted: Collection[int]) -> dict[int, Array]:
    """Return the same from the tangent of half the angle, with errors below two units in the last place of one."""
    t = z * 0.5
    np.tan(t, out=t)
    share = t * t
    waves = {1: 1.0 - share} if 1 in wanted else {}
    share += 1.0
    for wave in waves.values():
        wave /= share
    if 0 in wanted:
        t /= share
        t *= 2.0
        waves[0] = t
    return waves


def _gaussian(z: Array, orders: Collection[int]) -> dict[int, Array]:
    xp = array_namespace(z)
    square = z * z
    bell = xp.exp(-square)
    odd = bell * z if any(k % 2 for k in orders) else None
    return {k: (odd if k % 2 else bell) * _horner([float(a) for a in _gaussian_polynomial(k)], square) for k in orders}


def _arctan(z: Array, orders: Collection[int]) -> dict[int, Array]:
    xp = array_namespace(z)
    result = {0: xp.atan(z)} if 0 in orders else {}
    if any(orders):
        # The angle is taken at |z| and the parity put back: near π, for z → −∞, sin(kφ) would lose its digits.
        angle = xp.atan2(xp.ones_like(z), xp.abs(z))
        sine, sign = xp.sin(angle), xp.sign(z)
        for k in filter(None, orders):
            value = float(math.factorial(k - 1)) * sine**k * xp.sin(k * angle)
            result[k] = value if k % 2 else -value * sign
    return result


def _relu(z: Array, orders: Collection[int]) -> dict[int, Array]:
    ACTIVATIONS["relu"].require(max(orders, default=0))
    xp = array_namespace(z)
    return {k: xp.astype(z > 0, z.dtype) if k else (z + xp.abs(z)) / 2.0 for k in orders}


_KNOWN = (
    Activation("tanh", math.inf, _tanh),
    Activation("sigmoid", math.inf, _sigmoid),
    Activation("sin", math.inf, _sin, periodic=True),
    Activation("gaussian", math.inf, _gaussian),
    Activation("relu", 1, _relu),
    Activation("softplus", math.inf, _softplus),
    Activation("swish", math.inf, _swish),
    Activation("arctan", math.inf, _arctan),
)
ACTIVATIONS: Mapping[str, Activation] = MappingProxyType({entry.name: entry for entry in _KNOWN})
"""The activations known by name."""
