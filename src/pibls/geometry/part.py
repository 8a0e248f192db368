"""Parts of a boundary: where conditions are posed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pibls.checks import BoolArray, FloatArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.patch import FieldState, Patch, Samples, SurfaceRule
from pibls.geometry.restricted import Predicate, RestrictedPatch
from pibls.geometry.sampling import apportion, check_count, check_draw, kronecker

if TYPE_CHECKING:
    from pibls.geometry.base import Domain


class ForeignPartError(GeometryError):
    """A part is not on the boundary of a domain."""


class UnknownPartError(GeometryError, AttributeError):
    """A domain has no part, and no attribute, of that name."""


@dataclass(frozen=True)
class Part(FieldState):
    """A piece of the boundary of a domain, or its initial or final face.

    Parts come from domains (``square.left``, ``disk.boundary``) and from other parts (``part.where(...)``,
    ``part | part``, ``part - part``); they are not built by hand.

    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> x, y = sp.symbols("x y")
    >>> square = Rectangle((x, 0, 1), (y, 0, 1))
    >>> inflow = square.left.where(lambda X: X[:, 1] > 0.75)
    >>> round(inflow.measure, 9)
    0.25
    >>> points, normals = inflow.sample(3)
    >>> normals
    array([[-1.,  0.],
           [-1.,  0.],
           [-1.,  0.]])
    >>> round((square.boundary - inflow).measure, 9)
    3.75
    """

    domain: Domain
    name: str
    patches: tuple[Patch, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Its hash: of a boundary of many pieces that takes a while, and is asked for whenever it is looked up."""
        return hash((self.name, self.patches))

    def __repr__(self) -> str:
        return f"<{self.name} of {shorten(self.domain)}>"

    @property
    def dimension(self) -> int:
        """Dimension of the part, one less than that of its domain."""
        return self.domain.dimension - 1

    @property
    def measure(self) -> float:
        """Length, area, ... of the part; a set of points counts its points."""
        return float(sum(patch.measure for patch in self.patches if not patch.empty))

    @property
    def empty(self) -> bool:
        """Whether the part has no points."""
        return all(patch.empty for patch in self.patches)

    def sample(self, n: int, method: str = "sobol", seed: int | np.random.Generator = 0) -> Samples:
        """Return points of the part, uniform in its measure, with their outward unit normals.

        Exactly ``n`` of them, shared over the smooth pieces in proportion to their measure and at least one each
        as far as ``n`` goes. A part made of single points (the ends of an interval) returns each of them once
        whatever ``n``; the boundary of a point cloud returns ``n`` of its points, or all if it has fewer.

        Parameters
        ----------
        n : int
            Number of points.
        method : {"sobol", "halton", "lhs", "kronecker", "uniform", "grid"}
            How they are spread. A grid takes the midpoints of equal pieces, so that it never has a corner.
        seed : int or numpy.random.Generator
            Where the randomness comes from; the same seed gives the same points.
        """
        owner = f"{self.name}.sample"
        count, rng = check_draw(n, 2 * self.domain.dimension, method, seed, owner)
        shared = self._shared(count)
        finite = [atoms for patch, _ in shared if (atoms := patch.atoms) is not None]
        if whole := len(finite) == len(shared):
            drawn = finite
        else:
            drawn = [patch.sample(own, method, rng, owner) for patch, own in shared if own]
        points, normals = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
        if whole and self.dimension > 0 and count < len(points):
            chosen = np.sort(rng.permutation(len(points))[:count])
            points, normals = points[chosen], normals[chosen]
        return Samples(points, normals)

    def quadrature(self, n: int) -> SurfaceRule:
        """Return points, outward normals and weights of a rule with about ``n`` nodes for integrals over the part.

        Gauss on flat pieces and pieces of curves, the trapezoid rule around closed curves, both together on
        spheres; equal weights on pieces of surfaces cut by another shape or by a predicate.
        """
        count = check_count(n, 2 * self.domain.dimension, f"{self.name}.quadrature")
        rules = [patch.quadrature(max(own, 1)) for patch, own in self._shared(count)]
        points, normals, weights = (np.concatenate(columns) for columns in zip(*rules, strict=True))
        return points, normals, weights

    def contains(self, X: npt.ArrayLike) -> BoolArray:
        """Tell which points lie on the part, up to 1e-9 of the size of the domain."""
        points = check_points("X", X, f"{self.name}.contains", self.domain.dimension)
        inside = np.zeros(len(points), dtype=np.bool_)
        # Points too far away to be squared are not on it.
        with np.errstate(over="ignore", invalid="ignore"):
            for patch in self.patches:
                inside |= patch.contains(points, self.domain.tolerance)
        return inside

    def normals(self, X: npt.ArrayLike) -> FloatArray:
        """Return the outward unit normals at points of the part (at a corner, that of one of its sides)."""
        points = check_points("X", X, f"{self.name}.normals", self.domain.dimension)
        vectors = np.full(points.shape, np.nan)
        missing = np.ones(len(points), dtype=np.bool_)
        for patch in self.patches:
            here = missing & patch.contains(points, self.domain.tolerance)
            if here.any():
                vectors[here] = patch.normals(points[here])
                missing &= ~here
        if np.isnan(vectors[~missing]).any():
            raise GeometryError(f"{self} has no normals. Give PointCloud the 'normals' parameter.")
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise GeometryError(
                f"The 'X' parameter of {self.name}.normals must hold points of {self}. "
                f"Got {points[row].tolist()} (row {row}) instead. Use points that sample() or quadrature() gave."
            )
        return vectors

    def where(self, predicate: Callable[[FloatArray], object]) -> Part:
        """Return the points of the part where ``predicate`` holds.

        ``predicate`` gets an (n, d) array, columns in the order of the coordinates, and returns n booleans.
        """
        if not callable(predicate):
            raise GeometryError(
                "The 'predicate' parameter of where() must be a function of an (n, d) array of points. "
                f"Got {shorten(predicate)} instead. Write one such as lambda X: X[:, 0] > 0.5."
            )
        patches = tuple(RestrictedPatch(patch, Predicate(predicate)) for patch in self.patches)
        title = str(getattr(predicate, "__name__", "...")).replace("<lambda>", "...")
        return Part(self.domain, f"{self.name}.where({title})", patches)

    def __or__(self, other: Part) -> Part:
        """Return the union of two parts of one domain; shared points count once."""
        self._check(other, "joined with |")
        return Part(self.domain, f"{self.name}|{other.name}", self.patches + other._without(self))

    def __sub__(self, other: Part) -> Part:
        """Return the rest of a part: its points that are not on another part of the same domain."""
        self._check(other, "taken away with -")
        rest, named = self._without(other), list[Part]()
        for part in self.domain.parts.values():
            new = not any(patch in one.patches for one in named for patch in part.patches)
            if new and all(patch in rest for patch in part.patches):
                named.append(part)
        if sum(len(part.patches) for part in named) == len(rest) > 0:
            return reduce(or_, named)
        return Part(self.domain, f"{self.name}.where(not on {other.name})", rest)

    def _check(self, other: object, what: str) -> None:
        if not isinstance(other, Part) or other.domain != self.domain:
            raise GeometryError(
                f"Parts {what} must belong to the same domain. Got {self} and {shorten(other, 200)}. "
                "Bring a part to a larger domain with domain.lift(part) first."
            )

    def _without(self, other: Part) -> tuple[Patch, ...]:
        """Return the patches without the places where the other part is."""
        fresh = [patch for patch in self.patches if patch not in other.patches]
        return tuple(RestrictedPatch(patch, Off(other)) if other._overlaps(patch) else patch for patch in fresh)

    def _overlaps(self, patch: Patch) -> bool:
        if (atoms := patch.atoms) is not None:
            return bool(self.contains(atoms.points).any())
        points, _, keep = patch.at(kronecker(256, patch.parameters))
        return bool(self.contains(points if keep is None else points[keep]).any())

    def _shared(self, count: int) -> list[tuple[Patch, int]]:
        """Return the patches that are not empty with their shares of a number of points."""
        patches = [patch for patch in self.patches if not patch.empty]
        if not patches:
            raise GeometryError(f"There are no points on {self}. {self.domain.remedy_without_boundary}")
        sizes = [1.0] if len(patches) == 1 else [patch.measure for patch in patches]
        return list(zip(patches, apportion(count, np.array(sizes)).tolist(), strict=True))


@dataclass(frozen=True)
class Off:
    """Keeps the points that are not on a part."""

    part: Part

    def __call__(self, points: FloatArray, _normals: FloatArray) -> BoolArray:
        """Tell which points are not on it."""
        return ~self.part.contains(points)
