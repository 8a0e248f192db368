"""Harmonic nodes for corners and holes of plane domains: powers and logarithms of a complex variable.

Random ridge functions are smooth, and so are bad at what a re-entrant corner or a hole does to a solution. Near a
corner of interior angle ω it behaves like r^{kπ/ω}, around a hole like log r and r^{-k}: real and imaginary parts of

    w^a  or  w^a log w,    w = e^{−iβ} (x + iy − c)/R.

With D = ∂/∂z and D̄ = ∂/∂z̄ one has ∂ₓ = D + D̄ and ∂ᵧ = i(D − D̄), so that a form Σ c_α ∂^α has one complex factor per
DⁿD̄ᵏ. D̄ of a function of z alone is zero: in a Laplacian, 4DD̄, the factors of Dⁿ cancel before anything is computed, and
those columns are exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device, to_device

from pibls.checks import check_integer, shorten
from pibls.errors import FeatureError
from pibls.features.arrays import Array, MultiIndex, float_array, same_home
from pibls.geometry import Domain
from pibls.geometry.landmarks import Corner, Hole, clearance, corners, find_cut, holes

__all__ = ["HarmonicGroup", "draw_special"]

_PARTS = ("real", "imag")
_NEAREST = 1e-12
_DECADES = 200.0
_INTEGER = 1e-9


@dataclass(frozen=True, eq=False)
class HarmonicGroup:
    """Harmonic nodes of the plane: parts of w^a or w^a log w with w = e^{−iβ}(x + iy − c)/R.

    For corners of flows and plates, which are not harmonic, a node can have powers of the conjugate w̄ and of the
    argument θ of w as further factors.

    The argument of w is in (−π, π]: unless a is an integer, a node jumps across the ray from c in the direction β + π,
    which must lie outside the domain. Where a derivative is infinite, at c, it is taken at 1e-12 R from c instead (and
    no closer than where it reaches 1e200), so that every value is finite.

    Parameters
    ----------
    centers : array (k, 2)
        The points c.
    exponents : array (k,)
        The real numbers a.
    directions : array (k,)
        The angles β.
    scales : array (k,)
        The lengths R.
    parts : sequence of {"real", "imag"}
        Which part of the complex function each node is.
    logarithms : sequence of bool, optional
        Which nodes have the factor log w; none by default. log(r/R) is the real part with a = 0.
    conjugates : sequence of {0, 1, 2}, optional
        The power of w̄; 0 by default.
    angles : sequence of {0, 1, 2}, optional
        The power of θ; 0 by default, and where there is a logarithm.

    Examples
    --------
    >>> group = HarmonicGroup([[0, 0], [0, 0]], [2.0, 0.0], [0, 0], [1, 1], ["imag", "real"], [False, True])
    >>> group.combine(np.array([[3.0, 4.0]]), [{(0, 0): 1.0}, {(1, 0): 1.0}])[1]
    array([[8.  , 0.12]])
    """

    centers: Array
    exponents: Array
    directions: Array
    scales: Array
    parts: tuple[str, ...]
    logarithms: tuple[bool, ...] = ()
    conjugates: tuple[int, ...] = ()
    angles: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        owner = "HarmonicGroup"
        centers = float_array("centers", self.centers, owner, (None, 2))
        object.__setattr__(self, "centers", centers)
        nodes = self.nodes
        for name in ("exponents", "directions", "scales"):
            array = float_array(name, getattr(self, name), owner, (nodes,))
            if not same_home(array, centers):
                raise FeatureError(
                    f"The '{name}' and 'centers' of {owner} must belong to one array library and one device. "
                    f"Got {type(array).__name__} and {type(centers).__name__}. Convert both before building the group."
                )
            object.__setattr__(self, name, array)
        if not bool((self.scales > 0.0).all()):
            raise FeatureError(f"The 'scales' of {owner} must be positive. Got {shorten(_host(self.scales).tolist())}.")
        object.__setattr__(self, "parts", _flags("parts", self.parts, nodes, _PARTS))
        logarithms = (False,) * nodes if self.logarithms == () else self.logarithms
        object.__setattr__(self, "logarithms", _flags("logarithms", logarithms, nodes, (False, True)))
        for name in ("conjugates", "angles"):
            values = getattr(self, name)
            flags = _flags(name, (0,) * nodes if values == () else values, nodes, (0, 1, 2))
            object.__setattr__(self, name, flags)
        if any(angle and logarithm for angle, logarithm in zip(self.angles, self.logarithms, strict=True)):
            raise FeatureError(f"A node of {owner} has a factor log w or powers of its argument, not both.")

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.centers.shape[0])

    def to(self, asarray: Callable[[Array], Array]) -> HarmonicGroup:
        """Return the same group with every array passed through ``asarray``."""
        centers, exponents = asarray(self.centers), asarray(self.exponents)
        directions, scales = asarray(self.directions), asarray(self.scales)
        return HarmonicGroup(
            centers, exponents, directions, scales, self.parts, self.logarithms, self.conjugates, self.angles
        )

    def combine(self, X: Array, forms: Sequence[Mapping[MultiIndex, float | Array]]) -> list[Array]:
        """Return linear differential forms Σ_α c_α ∂^α of the nodes at points of the same library and device.

        Parameters
        ----------
        X : array (n, 2)
        forms : sequence of mappings
            Multi-index to coefficient: a number, or a column (n, 1).

        Returns
        -------
        list of arrays (n, k)
        """
        xp = array_namespace(self.centers)
        factors = [_complex_factors(form, self._highest) for form in forms]
        orders = sorted({order for by_order in factors for order in by_order})
        derivatives = dict(zip(orders, self._derivatives(X, orders), strict=True))
        results = []
        for by_order in factors:
            real = imag = xp.zeros((X.shape[0], len(self._table.exponents)), dtype=X.dtype, device=device(X))
            for order, (a, b) in by_order.items():
                re, im = derivatives[order]
                real, imag = real + (a * re - b * im), imag + (a * im + b * re)
            results.append(xp.take(xp.concat([real, imag], axis=1), self._table.columns, axis=1))
        return results

    @property
    def _highest(self) -> int | None:
        """Highest order of D̄ that leaves anything; None if there is no such order."""
        return None if any(self.angles) else max(self.conjugates, default=0)

    @cached_property
    def _table(self) -> _Table:
        """What is computed once per point, once per complex function, and which part of it is which node."""
        xp, home = array_namespace(self.centers), device(self.centers)
        place = np.column_stack([_host(self.centers), _host(self.directions), _host(self.scales)])
        places, place_of = np.unique(place, axis=0, return_inverse=True)
        function = np.column_stack(
            [place_of.ravel(), _host(self.exponents), self.logarithms, self.conjugates, self.angles]
        )
        functions, function_of = np.unique(function, axis=0, return_inverse=True)
        imaginary = np.array([part == "imag" for part in self.parts])
        place_of_function = functions[:, 0].astype(np.int64)
        return _Table(
            places=xp.asarray(places, device=home),
            place_of=xp.asarray(place_of_function, device=home),
            turns=places[place_of_function, 2],
            scales=places[place_of_function, 3],
            exponents=functions[:, 1],
            logarithms=functions[:, 2],
            conjugates=functions[:, 3],
            angles=functions[:, 4],
            columns=xp.asarray(function_of.ravel() + len(functions) * imaginary, device=home),
        )

    def _factors(self, n: int, k: int) -> Array:
        if (n, k) not in self._known:
            self._known[n, k] = _factors(self._table, n, k)
        return self._known[n, k]

    @cached_property
    def _known(self) -> dict[tuple[int, int], Array]:
        return {}

    def _derivatives(self, X: Array, orders: Sequence[tuple[int, int]]) -> list[tuple[Array, Array]]:
        """Return Dⁿ D̄ᵏ of the complex functions, as real and imaginary parts (n, functions), for each (n, k)."""
        xp, table = array_namespace(self.centers), self._table

        def row(values: Array) -> Array:
            return xp.asarray(values, dtype=X.dtype, device=device(X))

        dx, dy = ((X[:, i : i + 1] - table.places[:, i]) / table.places[:, 3] for i in (0, 1))
        cosine, sine = xp.cos(table.places[:, 2]), xp.sin(table.places[:, 2])
        angle = xp.atan2(cosine * dy - sine * dx, cosine * dx + sine * dy)
        radius = xp.take(xp.hypot(dx, dy), table.place_of, axis=1)
        angle = xp.take(angle, table.place_of, axis=1)
        turning = row(table.logarithms) * angle
        growing = row(np.where(table.angles > 0, 1.0, 0.0)) * angle
        if table.logarithms.any():
            growing = growing + row(table.logarithms) * xp.log(xp.clip(radius, _NEAREST, None))
        results = []
        for n, k in orders:
            power, other = table.exponents - n, table.conjugates - k
            low, high = _radius_limits(power + other)
            size = xp.clip(radius, row(low), row(high)) ** row(power + other)
            phase = row(power - other) * angle - row((n - k) * table.turns)
            constant, linear, square = self._factors(n, k)
            real = row(constant.real) + row(linear.real) * growing - row(linear.imag) * turning
            imag = row(constant.imag) + row(linear.imag) * growing + row(linear.real) * turning
            if square.any():
                real, imag = real + row(square.real) * growing**2, imag + row(square.imag) * growing**2
            scale = row(table.scales ** float(-n - k))
            c, s = scale * size * xp.cos(phase), scale * size * xp.sin(phase)
            results.append((real * c - imag * s, real * s + imag * c))
        return results


class _Table(NamedTuple):
    """The distinct places (x, y, β, R) and functions of a group; rows of numbers stay on the host."""

    places: Array
    place_of: Array
    turns: Array
    scales: Array
    exponents: Array
    logarithms: Array
    conjugates: Array
    angles: Array
    columns: Array


def _host(array: Array) -> Array:
    return np.asarray(to_device(array, "cpu"))


def _flags(name: str, values: object, count: int, choices: tuple[object, ...]) -> tuple[object, ...]:
    """Return a choice per node; what compares equal to a choice (a NumPy bool) becomes that choice."""
    flags: list[Any] = list(values) if isinstance(values, Sequence | np.ndarray) else []
    kinds = (str, bool, np.bool_) if isinstance(choices[0], str | bool) else (int, np.integer)
    if len(flags) != count or not all(isinstance(flag, kinds) and flag in choices for flag in flags):
        allowed = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
        raise FeatureError(
            f"The '{name}' of HarmonicGroup must be {allowed} for each of the {count} nodes. "
            f"Got {shorten(values)} instead."
        )
    return tuple(choices[choices.index(flag)] for flag in flags)


def _complex_factors(
    form: Mapping[MultiIndex, float | Array], highest: int | None
) -> dict[tuple[int, int], tuple[float | Array, float | Array]]:
    """Return the factor of Dⁿ D̄ᵏ, k ≤ highest, in a form, as real and imaginary part, where it is not zero."""
    factors: dict[tuple[int, int], tuple[float | Array, float | Array]] = {}
    for (i, j), c in form.items():
        for k in range((i + j if highest is None else min(highest, i + j)) + 1):
            # (D + D̄)ⁱ (D − D̄)ʲ: how often D̄ᵏ occurs.
            times = sum((-1) ** s * math.comb(i, k - s) * math.comb(j, s) for s in range(min(j, k) + 1))
            if times:
                a, b = factors.get((i + j - k, k), (0.0, 0.0))
                signed = (-times if j % 4 > 1 else times) * c
                factors[i + j - k, k] = (a, b + signed) if j % 2 else (a + signed, b)
    return {key: (a, b) for key, (a, b) in factors.items() if _matters(a) or _matters(b)}


def _matters(factor: float | Array) -> bool:
    return factor != 0.0 if isinstance(factor, float) else bool((factor != 0.0).any())


def _factors(table: _Table, n: int, k: int) -> Array:
    """Return c with Dⁿ D̄ᵏ (wᵃ w̄ᵐ Λ^q) = w^{a−n} w̄^{m−k} (c₀ + c₁ Λ + c₂ Λ²), Λ being log w or the argument θ of w.

    Λ^q is the q-th derivative by s of e^{sΛ}, and wᵃ w̄ᵐ e^{sΛ} is a product of powers again: w^{a+s} w̄ᵐ for log w,
    w^{a−is/2} w̄^{m+is/2} for θ. What D and D̄ bring down from those is a polynomial in s.
    """
    count = len(table.exponents)
    slope = np.where(table.angles > 0, -0.5j, 1.0)
    down = np.zeros((3, count), dtype=np.complex128)
    down[0] = 1.0
    other = np.where(table.angles > 0, 0.5j, 0.0)
    for base, step, order in ((table.exponents, slope, n), (table.conjugates, other, k)):
        for i in range(order):
            down = down * (base - i) + np.concatenate([np.zeros((1, count)), down[:2] * step])
    degree: Array = np.asarray(np.where(table.angles > 0, table.angles, table.logarithms), dtype=np.int64)
    result = np.zeros_like(down)
    for left in range(3):
        # q!/(q−j)! with q − j = left.
        taken: Array = np.maximum(degree - left, 0)
        times = np.array([math.perm(int(q), int(j)) for q, j in zip(degree, taken, strict=True)])
        result[left] = np.where(degree >= left, times * down[taken, np.arange(count)], 0.0)
    return result


def _radius_limits(power: Array) -> tuple[Array, Array]:
    """Return the radii between which r^power is taken: its singularity is left out, and so is overflow."""
    with np.errstate(divide="ignore"):
        farthest = 10.0 ** np.minimum(_DECADES / np.abs(power), 300.0)
    low = np.where(power < 0, np.maximum(_NEAREST, 1.0 / farthest), 0.0)
    return low, np.where(power > 0, farthest, 1e300)


def draw_special(
    domain: Domain, corner_terms: int = 6, hole_terms: int = 6, convex_terms: int = 1
) -> tuple[HarmonicGroup, ...]:
    """Return harmonic nodes for the corners and the holes of a plane domain, one group for each.

    A corner of interior angle ω gets both parts of w^{kπ/ω}, k = 1, 2, ..., with the cut along a straight
    line outside; where kπ/ω is an integer, w^{kπ/ω} is a polynomial and the resonant w^{kπ/ω} log w takes its place
    (the corners of a square have such terms). If every such line comes back to the domain (the corner of a hole), no
    power is free of jumps, and poles that cluster towards the corner stand in for it. A hole gets log r and both parts
    of w^{-k}, k = 1, 2, ...

    These nodes solve Laplace's equation, so that conditions alone determine their weights: let the boundary of a hole
    have some four points per term or more. Domains with a time, or not in the plane, get none.

    Parameters
    ----------
    domain : Domain
    corner_terms : int
        Number of terms per re-entrant corner; 0 leaves them out, as for the others.
    hole_terms : int
        Number of terms per hole.
    convex_terms : int
        Number of terms per corner of an interior angle below π, where solutions are smoother.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Disk
    >>> x, y = sp.symbols("x y")
    >>> [ring] = draw_special(Disk((x, y), (0, 0), 1) - Disk((x, y), (0, 0), 0.5), hole_terms=3)
    >>> ring.nodes, ring.exponents.tolist()
    (7, [0.0, -1.0, -2.0, -3.0, -1.0, -2.0, -3.0])
    """
    owner = "draw_special"
    at_corner = check_integer("corner_terms", corner_terms, owner, error=FeatureError)
    at_hole = check_integer("hole_terms", hole_terms, owner, error=FeatureError)
    at_convex = check_integer("convex_terms", convex_terms, owner, error=FeatureError)
    if not isinstance(domain, Domain):
        raise FeatureError(f"The 'domain' of draw_special must be a domain. Got {shorten(domain)} instead.")
    if domain.time is not None or domain.dimension != 2:
        return ()
    groups = []
    for corner in corners(domain, 0.0 if at_convex else math.pi):
        terms = at_corner if corner.angle > math.pi else at_convex
        if terms:
            groups.append(_corner_group(domain, corner, terms))
    return (*groups, *(_hole_group(hole, at_hole) for hole in holes(domain) if at_hole))


def _corner_group(domain: Domain, corner: Corner, terms: int) -> HarmonicGroup:
    point, cut = np.array(corner.point), find_cut(domain, corner)
    direction = corner.direction if cut is None else cut
    counts = np.arange(1, terms + 1)
    if cut is not None:
        exponents = counts * (math.pi / corner.angle)
        resonant = np.abs(exponents - np.rint(exponents)) < _INTEGER
        reach = float(np.hypot(*np.abs(domain.bounds - point[:, None]).max(axis=1)))
        centers, scales = np.tile(point, (terms, 1)), np.full(terms, reach)
    else:
        exponents, resonant = np.full(terms, -1.0), np.zeros(terms, dtype=np.bool_)
        free = clearance(domain, corner.point, direction)
        # Poles closer to the corner than boundary points are would be free to make spikes between those.
        scales = free / 2 * 0.5 ** (terms - counts)
        centers = point + scales[:, None] * [math.cos(direction), math.sin(direction)]
    inward = np.full(2 * terms, math.remainder(direction + math.pi, 2 * math.pi))
    parts = ("real",) * terms + ("imag",) * terms
    return HarmonicGroup(
        np.tile(centers, (2, 1)),
        np.tile(exponents, 2),
        inward,
        np.tile(scales, 2),
        parts,
        tuple(np.tile(resonant, 2).tolist()),
    )


def _hole_group(hole: Hole, terms: int) -> HarmonicGroup:
    powers = -np.arange(1.0, terms + 1)
    nodes = 2 * terms + 1
    return HarmonicGroup(
        np.tile(hole.center, (nodes, 1)),
        np.concatenate([[0.0], powers, powers]),
        np.zeros(nodes),
        np.full(nodes, hole.radius),
        ("real",) * (terms + 1) + ("imag",) * terms,
        (True, *(False,) * (2 * terms)),
    )
