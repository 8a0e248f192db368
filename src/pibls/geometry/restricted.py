"""Patches restricted by a condition: the visible part of an operand's boundary, or a user's selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.checks import BoolArray, FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.patch import DerivedPatch, Located, Samples, SurfaceRule, called
from pibls.geometry.sampling import kronecker, picked
from pibls.quadrature.roots import switched
from pibls.quadrature.rules import gauss

Keep = Callable[[FloatArray, FloatArray], BoolArray]

_SCAN = 4096
_PROBES = 2**14
_SHORTEST = 1e-9
_SLIVER = 2e-5  # of a curve, at its ends: what np.isclose takes for equal belongs to the next curve
_NEAR = 1e-9  # what is shared by two boundaries is decided a little beside where they cross


@dataclass(frozen=True)
class Predicate:
    """A user's function of points, called with care; equal to another when the function is the same object."""

    function: Callable[[FloatArray], object]

    def __call__(self, points: FloatArray, _normals: FloatArray) -> BoolArray:
        """Return the mask of the points the user wants."""
        name = shorten(getattr(self.function, "__name__", self.function))
        rule = f"The predicate {name} of where() gets an (n, {points.shape[1]}) array and must return n booleans"
        remedy = "Write it with NumPy on columns, such as lambda X: X[:, 0] > 0.5."
        mask = called(lambda X: np.asarray(self.function(X)), points, rule, remedy)
        if mask.shape != (len(points),) or mask.dtype != np.bool_:
            raise GeometryError(
                f"{rule}. Got an array of {mask.dtype} of shape {mask.shape} for {len(points)} points instead. "
                "Compare one column with a value, such as lambda X: X[:, 0] > 0.5."
            )
        return np.asarray(mask)


@dataclass(frozen=True)
class RestrictedPatch(DerivedPatch):
    """The points of a patch that a condition keeps.

    On a curve the kept pieces are found by a scan of 4096 cells and bisection, so that lengths and quadrature are
    exact to about 1e-11, and to rounding where boundaries cross; pieces shorter than a cell can be missed. What a
    user selects ends where the curve does if that is next to it. On a surface points are kept one by one and the
    measure is a quasi-Monte Carlo estimate, unless everything is kept.
    """

    keep: Keep

    @cached_property
    def _pieces(self) -> FloatArray:
        """Parameter intervals (k, 2) that are kept, for a curve."""
        _, low, high, before = switched(lambda s, _: self._kept_at(s), np.linspace(0.0, 1.0, _SCAN + 1)[None])
        inner = self._crossings(np.where(before, low, high), np.where(before, 1.0, -1.0))
        first = bool(before[0] if len(before) else self._kept_at(np.zeros(1))[0])
        last = first ^ (len(before) % 2 == 1)
        ends = np.concatenate([[0.0] * first, inner, [1.0] * last]).reshape(-1, 2)
        if isinstance(self.keep, Predicate):
            first, last = self.base.at(np.array([[0.0], [1.0]]))[0]
            if np.abs(first - last).max() > _SHORTEST * self.base.measure:  # of a closed curve, ends are no ends
                ends = np.where(ends < _SLIVER, 0.0, np.where(ends > 1.0 - _SLIVER, 1.0, ends))
        pieces = ends[ends[:, 1] - ends[:, 0] > _SHORTEST]
        whole = len(pieces) == 1 and pieces[0, 1] - pieces[0, 0] > 1.0 - _SHORTEST
        return np.array([[0.0, 1.0]]) if whole else pieces

    def _crossings(self, ends: FloatArray, outward: FloatArray) -> FloatArray:
        """Return ends of pieces, right where another boundary crosses if it is one that cuts them off."""
        level = getattr(self.keep, "level", None)
        if level is None or not len(ends):
            return ends

        scans = np.clip(ends[:, None] + outward[:, None] * [-_NEAR, _NEAR], 0.0, 1.0)
        crossed, places, _, _ = switched(lambda s, _: level(self.base.at(s[:, None])[0]) > 0.0, scans)
        ends[crossed] = places
        return ends

    @cached_property
    def _fraction(self) -> float:
        if self.atoms is not None:
            return len(self.atoms.points) / max(self.base.measure, 1.0)
        if self.parameters == 1:
            return float((self._pieces[:, 1] - self._pieces[:, 0]).sum())
        points, normals, inside = self.base.at(kronecker(_PROBES, self.parameters))
        if inside is not None:
            points, normals = points[inside], normals[inside]
        return float(self.keep(points, normals).mean()) if len(points) else 0.0

    @property
    def bounds(self) -> FloatArray | None:
        """As the base."""
        return self.base.bounds

    @property
    def measure(self) -> float:
        """The kept share of the base's measure."""
        return self.base.measure * self._fraction

    @property
    def is_whole(self) -> bool:
        """Whether the condition keeps everything, as far as can be seen."""
        return self._fraction == 1.0

    @property
    def exact(self) -> bool:
        """Exact on curves, and where everything is kept."""
        return self.base.exact and (self.parameters <= 1 or self._fraction in (0.0, 1.0))

    @property
    def empty(self) -> bool:
        """Whether the condition keeps nothing."""
        return self.base.empty or self._fraction == 0.0

    @cached_property
    def atoms(self) -> Samples | None:
        """The kept points of a finite patch."""
        atoms = self.base.atoms
        if atoms is None:
            return None
        kept = self.keep(atoms.points, atoms.normals)
        return Samples(atoms.points[kept], atoms.normals[kept])

    def at(self, U: FloatArray) -> Located:
        """Return the points of the kept pieces, or those of the base with the mask of the kept."""
        if self.parameters == 1 and self._fraction > 0.0:
            return self.base.at(self._stretch(U))
        points, normals, keep = self.base.at(U)
        kept = self.keep(points, normals)
        return points, normals, kept if keep is None else keep & kept

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on the base and kept."""
        on_base = self.base.contains(X, tolerance)
        if on_base.any():
            candidates = X[on_base]
            on_base[on_base] = self.keep(candidates, self.base.normals(candidates))
        return on_base

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the base's rule if all is kept, Gauss on the pieces of a curve, equal weights on a surface."""
        if self.atoms is not None:
            return *self.atoms, np.ones(len(self.atoms.points))
        if self.is_whole:
            return self.base.quadrature(n)
        if self.parameters == 1:
            return self._rule_on_pieces(n)
        points, normals = self.sample(n, "sobol", np.random.default_rng(0), "quadrature")
        return points, normals, np.full(n, self.measure / n)

    def _kept_at(self, parameters: FloatArray) -> BoolArray:
        points, normals, inside = self.base.at(parameters[:, None])
        kept = self.keep(points, normals)
        return kept if inside is None else kept & inside

    def _stretch(self, U: FloatArray) -> FloatArray:
        """Map [0, 1] onto the kept pieces, one after another."""
        lengths = self._pieces[:, 1] - self._pieces[:, 0]
        piece, share = picked(lengths, U[:, 0])
        return np.asarray(self._pieces[piece, 0] + share * lengths[piece])[:, None]

    def _rule_on_pieces(self, n: int) -> SurfaceRule:
        parameters, weights = [np.empty(0)], [np.empty(0)]
        for start, stop in self._pieces:
            nodes, scales = gauss(max(1, round(n * (stop - start) / self._fraction)))
            parameters.append(start + nodes * (stop - start))
            weights.append(scales * (stop - start) * self.base.measure)
        points, normals, _ = self.base.at(np.concatenate(parameters)[:, None])
        return points, normals, np.concatenate(weights)
