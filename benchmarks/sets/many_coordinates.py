"""Problems in four to a hundred coordinates, divided by chance into a half to work with and one kept aside.

Elliptic, parabolic and transport equations, those of Black and Scholes, of Ornstein and Uhlenbeck, and of Hamilton and
Jacobi. Nothing may be chosen by the half that is kept aside.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.posing import begun, halves, held, posed

case, _cases = collected((1e-4,), (0, 1, 2))
t, R = pb.coordinates("t"), sp.Rational


def _axes(count: int) -> tuple[Any, ...]:
    return tuple(pb.coordinates(" ".join(f"x{i + 1}" for i in range(count))))


def _box(axes: Any, low: Any = 0, high: Any = 1) -> pb.Box:
    return pb.Box(*((x, low, high) for x in axes))


def _ball(axes: Any) -> pb.Ball:
    return pb.Ball(axes, (0,) * len(axes), 1)


def _numbers(count: int, seed: int) -> list[Any]:
    """Return random numbers with few digits, whose squares sum to about one."""
    drawn = np.random.default_rng(seed).standard_normal(count)
    return [R(round(1000 * value), 1000) for value in (drawn / np.linalg.norm(drawn)).tolist()]


def _squares(axes: Any) -> Any:
    return sum(x**2 for x in axes)


def _still(operator: Any, exact: Any, domain: Any) -> pb.Problem:
    u = pb.field("u", *domain.coordinates)
    return posed(operator(u), {u: exact}, domain)


def _moving(operator: Any, exact: Any, space: Any, last: Any = 1) -> pb.Problem:
    """Return an evolution u_t = operator(u) with its values given at first and all along the boundary."""
    domain = space * pb.TimeInterval(t, 0, last)
    u = pb.field("u", *domain.coordinates)
    known = {u: exact}
    return posed(u.diff(t) - operator(u), known, domain, [*held(known), *begun(known, domain)])


@case("elliptic")
def pairs_of_coordinates() -> pb.Problem:
    """Pose a harmonic polynomial in ten dimensions, on which the deep Ritz method was shown (E and Yu, 2018)."""
    axes = _axes(10)
    exact = sum(x * y for x, y in zip(axes[::2], axes[1::2], strict=True))
    return _still(lambda u: -pb.laplacian(u), exact, _box(axes))


@case("elliptic")
def products_in_a_ball() -> pb.Problem:
    x, y, z, w = axes = _axes(4)
    return _still(lambda u: -pb.laplacian(u), sp.cos(x + y * z) * sp.exp(w / 2), _ball(axes))


@case("elliptic")
def bell_in_a_hundred_dimensions() -> pb.Problem:
    axes = _axes(100)
    return _still(lambda u: -pb.laplacian(u), sp.exp(-_squares(axes) / 40), _box(axes, -1))


@case("elliptic")
def oscillator_in_six_dimensions() -> pb.Problem:
    axes = _axes(6)
    exact = sp.exp(-_squares(axes) / 2) * (1 + axes[0])
    return _still(lambda u: -pb.laplacian(u) + _squares(axes) * u, exact, _ball(axes))


@case("elliptic")
def waves_in_five_dimensions() -> pb.Problem:
    axes = _axes(5)
    exact = sp.sin(2 * axes[0] + axes[1]) * sp.cos(axes[2] - axes[3]) + axes[4] ** 2
    return _still(lambda u: pb.laplacian(u) + 4 * u, exact, _box(axes))


@case("elliptic")
def uneven_diffusion() -> pb.Problem:
    axes = _axes(8)
    exact = sp.exp(sum(a * x for a, x in zip(_numbers(8, 1), axes, strict=True)))
    return _still(lambda u: -sum((1 + R(i, 8)) * u.diff(x, 2) for i, x in enumerate(axes)), exact, _box(axes))


@case("elliptic")
def conductivity_that_grows_outwards() -> pb.Problem:
    axes = _axes(5)
    exact = 1 / (1 + _squares(axes) / 5)
    return _still(lambda u: -sum(sp.diff((1 + x**2) * u.diff(x), x) for x in axes), exact, _box(axes, -1))


@case("elliptic")
def chain_of_neighbours() -> pb.Problem:
    axes = _axes(20)
    exact = sum(sp.cos(x * y) for x, y in pairwise(axes)) / 20
    return _still(lambda u: -pb.laplacian(u), exact, _box(axes))


@case("elliptic")
def cubic_reaction_in_a_ball() -> pb.Problem:
    axes = _axes(5)
    return _still(lambda u: -pb.laplacian(u) + u**3, sp.cos(_squares(axes)), _ball(axes))


@case("parabolic")
def heat_in_a_ball_of_four() -> pb.Problem:
    x, y, z, w = axes = _axes(4)
    return _moving(pb.laplacian, sp.exp(-t) * (sp.cos(x + y) + sp.sin(z) * w), _ball(axes))


@case("parabolic")
def heat_in_a_ball_of_five() -> pb.Problem:
    axes = _axes(5)
    exact = sp.exp(-t / 2) * sp.sin(axes[0] * axes[1] + axes[2]) + axes[3] * axes[4] * t
    return _moving(pb.laplacian, exact, _ball(axes))


@case("parabolic")
def heat_in_a_ball_of_six() -> pb.Problem:
    axes = _axes(6)
    exact = sp.exp(-3 * t / 2) * reduce(lambda one, x: one * sp.cos(x / 2), axes, sp.S.One)
    return _moving(pb.laplacian, exact, _ball(axes))


@case("parabolic")
def squares_that_warm() -> pb.Problem:
    """Pose the heat equation of Beck et al. (2018) in a hundred dimensions."""
    axes = _axes(100)
    return _moving(pb.laplacian, _squares(axes) + 200 * t, _box(axes))


@case("parabolic")
def wave_in_an_odd_direction() -> pb.Problem:
    axes = _axes(50)
    exact = sp.exp(-t) * sp.sin(sum(a * x for a, x in zip(_numbers(50, 2), axes, strict=True)))
    return _moving(pb.laplacian, exact, _box(axes))


@case("parabolic")
def spreading_bell() -> pb.Problem:
    axes = _axes(20)
    exact = (1 + t) ** -10 * sp.exp(-_squares(axes) / (4 * (1 + t)))
    return _moving(pb.laplacian, exact, _box(axes, -1), R(1, 2))


@case("parabolic")
def particle_in_imaginary_time() -> pb.Problem:
    axes = _axes(6)
    exact = sp.exp(-3 * t - _squares(axes) / 2) * (1 + sp.exp(-t) * axes[0] / 2)
    return _moving(lambda u: pb.laplacian(u) / 2 - _squares(axes) * u / 2, exact, _box(axes, -1))


@case("transport")
def pulse_that_drifts() -> pb.Problem:
    axes = _axes(6)
    space = _box(axes)
    domain = space * pb.TimeInterval(t, 0, 1)
    u = pb.field("u", *domain.coordinates)
    exact = sp.exp(-((sum(x - R(i + 1, 6) * t for i, x in enumerate(axes)) - 2) ** 2) / 6)
    inflow = reduce(lambda one, two: one | two, (domain.faces(x)[0] for x in axes))
    operator = u.diff(t) + sum(R(i + 1, 6) * u.diff(x) for i, x in enumerate(axes))
    return posed(operator, {u: exact}, domain, [*held({u: exact}, inflow), *begun({u: exact}, domain)])


@case("transport")
def decay_along_the_wind() -> pb.Problem:
    axes = _axes(10)
    space = _box(axes)
    u = pb.field("u", *axes)
    exact = sp.exp(-sum(axes) / 5) * sp.cos(axes[0] - axes[1])
    inflow = reduce(lambda one, two: one | two, (space.faces(x)[0] for x in axes))
    return posed(sum(u.diff(x) for x in axes) / 10 + u, {u: exact}, space, held({u: exact}, inflow))


@case("finance")
def geometric_basket() -> pb.Problem:
    """Pose the equation of Black and Scholes for a call on the geometric mean of ten assets, before its last half."""
    axes, rate, vol = _axes(10), R(1, 20), R(2, 5)
    d, left = len(axes), t + R(1, 2)
    spread = vol / sp.sqrt(d)
    drift = rate - vol**2 / 2 + spread**2 / 2
    mean = sp.exp(sum(sp.log(x) for x in axes) / d)
    upper = (sp.log(mean) + (drift + spread**2 / 2) * left) / (spread * sp.sqrt(left))

    def normal(z: Any) -> Any:
        return (1 + sp.erf(z / sp.sqrt(2))) / 2

    exact = mean * sp.exp((drift - rate) * left) * normal(upper) - sp.exp(-rate * left) * normal(
        upper - spread * sp.sqrt(left)
    )

    def generator(u: Any) -> Any:
        return sum(vol**2 * x**2 * u.diff(x, 2) / 2 + rate * x * u.diff(x) for x in axes) - rate * u

    return _moving(generator, exact, _box(axes, R(4, 5), R(6, 5)), R(1, 2))


@case("finance")
def squared_assets() -> pb.Problem:
    axes, rate, vols = _axes(50), R(1, 20), [R(1, 5) + R(i % 5, 20) for i in range(50)]
    exact = sum(x**2 * sp.exp((rate + vol**2) * t) for x, vol in zip(axes, vols, strict=True)) / 50

    def generator(u: Any) -> Any:
        pairs = zip(axes, vols, strict=True)
        return sum(vol**2 * x**2 * u.diff(x, 2) / 2 + rate * x * u.diff(x) for x, vol in pairs) - rate * u

    return _moving(generator, exact, _box(axes, R(1, 2), R(3, 2)))


@case("process")
def wave_pulled_to_the_middle() -> pb.Problem:
    """Pose the mean of a cosine under the process of Ornstein and Uhlenbeck."""
    axes = _axes(8)
    exact = sp.cos(sp.exp(-t) * sum(a * x for a, x in zip(_numbers(8, 3), axes, strict=True)))
    exact *= sp.exp(-(1 - sp.exp(-2 * t)) / 2)
    return _moving(lambda u: pb.laplacian(u) - sum(x * u.diff(x) for x in axes), exact, _box(axes, -1))


@case("process")
def cost_of_control() -> pb.Problem:
    """Pose an equation of Hamilton, Jacobi and Bellman, whose solution is the logarithm of that of a heat equation."""
    axes = _axes(10)
    exact = -sp.log(2 + sp.exp(-t) * sp.sin(sum(axes) / sp.sqrt(10)))
    return _moving(lambda u: pb.laplacian(u) - sum(u.diff(x) ** 2 for x in axes), exact, _box(axes))


many_coordinates, many_coordinates_aside = halves(_cases)
