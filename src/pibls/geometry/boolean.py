"""Unions, intersections and differences of shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_choice, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, LevelIn, Region
from pibls.geometry.description import Argument, Arguments, Kind
from pibls.geometry.part import ForeignPartError, Part
from pibls.geometry.patch import FlippedPatch, Patch
from pibls.geometry.restricted import RestrictedPatch
from pibls.geometry.sampling import kronecker, unit_cube

_SIGNS = {"union": "|", "intersection": "&", "difference": "-"}  # the last is an intersection with the outside
_MEASURE_POINTS = 2**17
_FLUX_POINTS = 2**12
_COINCIDENCE = 1e-11
_STEP = 1e-6

LevelFunction = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class Combination(Region):
    """Two shapes in the same coordinates, joined by ``|``, ``&`` or ``-``.

    A part name that only one of the two shapes has names the part here too; any other part of a shape is to be had
    by ``combination.lift(part)``, which keeps what is really on the boundary and turns the normals of holes outward.

    The measure is exact (about 1e-10) in one and two dimensions and wherever the boundaries do not cross; otherwise it
    is a quasi-Monte Carlo estimate on 131072 points, good to a few 1e-4.

    >>> from pibls.geometry import Disk, Rectangle
    >>> x, y = sp.symbols("x y")
    >>> square, disk = Rectangle((x, -1, 1), (y, -1, 1)), Disk((x, y), (0, 0), 0.5)
    >>> plate = square - disk
    >>> round(plate.measure, 9)
    3.214601837
    >>> plate.lift(disk.boundary).normals([[0.5, 0]])
    array([[-1., -0.]])
    """

    operation: str
    first: Domain
    second: Domain
    coordinates: tuple[sp.Symbol, ...] = field(init=False, compare=False)

    derived: ClassVar[bool] = True
    arguments: ClassVar[Arguments] = (
        Argument("operation", Kind.WORD),
        Argument("first", Kind.SHAPE),
        Argument("second", Kind.SHAPE),
    )

    def __post_init__(self) -> None:
        check_choice("operation", self.operation, "Combination", tuple(_SIGNS), error=GeometryError)
        for shape in (self.first, self.second):
            if not isinstance(shape, Region):
                raise GeometryError(
                    f"The shapes joined by {self._sign} must be solid shapes in space. Got {shorten(shape)} instead. "
                    "Join the shapes first, then multiply by a TimeInterval."
                )
        if self.first.coordinates != self.second.coordinates:
            raise GeometryError(
                f"The shapes joined by {self._sign} must have the same coordinates in the same order. "
                f"Got {self.first.coordinates} and {self.second.coordinates}. Build both on the same tuple."
            )
        self._set(coordinates=self.first.coordinates)
        if self._is_empty():
            raise GeometryError(
                f"{shorten(self)} has no points, or too few to be found. "
                f"Check the places and sizes of the shapes joined by {self._sign}."
            )

    def __repr__(self) -> str:
        return f"({self.first!r} {self._sign} {self.second!r})"

    @property
    def _sign(self) -> str:
        return _SIGNS[self.operation]

    @property
    def _operands(self) -> tuple[Region, Region]:
        first, second = self.first, self.second
        assert isinstance(first, Region)
        assert isinstance(second, Region)
        return first, second

    @cached_property
    def bounds(self) -> FloatArray:
        """A box around the set, from the boxes around the two shapes."""
        one, two = self.first.bounds, self.second.bounds
        if self.operation == "difference":
            return one
        low, high = (np.minimum, np.maximum) if self.operation == "union" else (np.maximum, np.minimum)
        return np.stack([low(one[:, 0], two[:, 0]), high(one[:, 1], two[:, 1])], axis=1)

    @cached_property
    def thickness(self) -> float:
        """The smaller of the two, and of the box around them."""
        extent = self.bounds[:, 1] - self.bounds[:, 0]
        return min(self.first.thickness, self.second.thickness, float(extent.min()))

    @cached_property
    def rounding(self) -> float:
        """The larger of the two."""
        return max(self.first.rounding, self.second.rounding)

    @cached_property
    def measure(self) -> float:
        """Area, volume, ...: by the flux of x/d through the boundary where that is exact, else estimated."""
        if all(patch.exact for patch in self.boundary.patches):
            return self._measured_by_flux(_FLUX_POINTS)
        low, high = self.bounds.T
        points = low + unit_cube(_MEASURE_POINTS, self.dimension) * (high - low)
        return float(np.prod(high - low) * (self.level(points) > 0).mean())

    @property
    def condition(self) -> sp.Basic:
        """The conditions of both shapes, joined."""
        one, two = self.first.condition, self.second.condition
        join = sp.Or if self.operation == "union" else sp.And
        return join(one, sp.Not(two) if self.operation == "difference" else two)

    def level(self, X: FloatArray) -> FloatArray:
        """Return the larger level of a union, the smaller of an intersection; the complement's is the negative."""
        one, two = (shape.level(X) for shape in self._operands)
        join = np.maximum if self.operation == "union" else np.minimum
        return np.asarray(join(one, -two if self.operation == "difference" else two))

    def level_in(self, low: FloatArray, high: FloatArray) -> LevelIn:
        """Return the level in a box, without operands that do not reach it."""
        one, two = (shape.level_in(low, high) for shape in self._operands)
        if self.operation == "difference":
            two = _negative(two) if callable(two) else not two
        decides = self.operation == "union"
        if one is decides or two is decides:
            return decides
        if isinstance(one, bool) or isinstance(two, bool):
            return two if isinstance(one, bool) else one
        return _extreme(one, two, decides)

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        """Return the parts of either shape that are on the boundary, where the name is not used by both."""
        first, second = self.first.parts, self.second.parts
        lifted = {
            name: self._visible(part, owner)
            for owner, parts, others in ((0, first, second), (1, second, first))
            for name, part in parts.items()
            if name not in others
        }
        return {name: part.patches for name, part in lifted.items() if not part.empty}

    @property
    def _patches(self) -> Iterable[Patch]:
        """The visible parts of both boundaries; where they coincide, that of the first shape."""
        own = self._visible(self.first.boundary, 0).patches
        other = self._visible(self.second.boundary, 1, once=True).patches
        return (patch for patch in own + other if not patch.empty)

    def _lifted(self, part: Part) -> Part:
        """Return the visible piece of a part of either shape."""
        found = []
        for owner, shape in enumerate(self._operands):
            try:
                found.append(self._visible(shape.lift(part), owner))
            except ForeignPartError:
                continue
        visible = [candidate for candidate in found if not candidate.empty]
        if not visible:
            raise ForeignPartError(
                f"{part} is not on the boundary of {shorten(self)}. "
                "Use boundary.where(...), or a part of one of the shapes it was made from."
            )
        return visible[0] if len(visible) == 1 else visible[0] | visible[1]

    def _faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return the opposite faces of one of the shapes if both are wholly on the boundary."""
        for owner, shape in enumerate(self._operands[: 1 if self.operation == "difference" else 2]):
            try:
                pair = shape.faces(coordinate)
            except GeometryError:
                continue
            if all(self._visible(face, owner).measure >= face.measure * (1 - 1e-9) for face in pair):
                low, high = (Part(self, face.name, face.patches) for face in pair)
                return low, high
        return super()._faces(coordinate)

    def _visible(self, part: Part, owner: int, once: bool = False) -> Part:
        keep = Visible(self, owner, once)
        flipped = self.operation == "difference" and owner == 1
        patches: list[Patch] = [FlippedPatch(patch) if flipped else patch for patch in part.patches]
        own, other = self._operands[owner], self._operands[1 - owner]
        seen: list[Patch] = []
        for patch in patches:
            # Of a patch that the other boundary does not come near all is seen, or nothing.
            level = other.level_in(*(own.bounds if patch.bounds is None else patch.bounds).T)
            if isinstance(level, bool):
                seen += [patch] if level is keep.wants_inside else []
                continue
            left = RestrictedPatch(patch, keep)
            # What is seen of a curve as a whole stays as it is: after many holes, the first has not as many layers.
            seen.append(patch if left.parameters == 1 and left.is_whole else left)
        return Part(self, part.name, tuple(seen))

    def _is_empty(self) -> bool:
        if self.operation == "union":
            return False
        low, high = self.bounds.T
        if not (low < high).all():
            return True
        # Few points settle the usual case at little cost; many are needed only before refusing.
        for count in (2**10, 2**17):
            points = low + kronecker(count, self.dimension) * (high - low)
            if (self.level(points) > self.tolerance).any():
                return False
        return True


@dataclass(frozen=True)
class Visible:
    """Keeps the points of one shape's boundary that are on the boundary of a combination.

    Clear of the other shape's boundary its level decides. Where the two boundaries coincide the definition does: a
    step inward along the normal must arrive in the combination, a step outward must leave it. With ``once``, points
    that the first shape's boundary has already are left to it.
    """

    combination: Combination
    owner: int
    once: bool

    def __call__(self, points: FloatArray, normals: FloatArray) -> BoolArray:
        """Return the mask of the points to keep."""
        whole = self.combination
        other = whole._operands[1 - self.owner]
        level = self.level(points)
        keep = np.asarray(level > 0.0 if self.wants_inside else level < 0.0)
        shared = np.abs(level) <= _COINCIDENCE * whole.thickness + whole.rounding
        if shared.any():
            step = (_STEP * whole.thickness + 4 * whole.rounding) * normals[shared]
            inward, outward = points[shared] - step, points[shared] + step
            keep[shared] = (whole.level(inward) > 0.0) & (whole.level(outward) < 0.0)
            if self.once:
                keep[shared] &= (other.level(inward) > 0.0) == (other.level(outward) > 0.0)
        return keep

    @property
    def wants_inside(self) -> bool:
        """Whether the inside of the other shape is kept, or its outside."""
        operation = self.combination.operation
        return operation == "intersection" or (operation == "difference" and self.owner == 1)

    def level(self, points: FloatArray) -> FloatArray:
        """Return the level of the other shape: where it changes sign the two boundaries cross."""
        return self.combination._operands[1 - self.owner].level(points)


@lru_cache(maxsize=1024)
def _negative(level: LevelFunction) -> LevelFunction:
    """Return the negative of a level; equal levels have one negative, so that cells can tell that theirs are equal."""
    return lambda X: -level(X)


@lru_cache(maxsize=1024)
def _extreme(one: LevelFunction, two: LevelFunction, larger: bool) -> LevelFunction:
    """Return the larger or the smaller of two levels; equal levels make one function."""
    chosen = np.maximum if larger else np.minimum
    return lambda X: np.asarray(chosen(one(X), two(X)))
