"""The interface of all domains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from inspect import isabstract
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_points, cut, refusal, shorten
from pibls.errors import GeometryError, PiblsError
from pibls.geometry.description import Arguments, Decoder, Encoder, check_coordinates
from pibls.geometry.part import ForeignPartError, Part, UnknownPartError
from pibls.geometry.patch import RELATIVE_TOLERANCE, ROUNDING, FieldState, Patch
from pibls.geometry.sampling import check_count, check_draw, fill
from pibls.geometry.slices import slices
from pibls.markup import facts
from pibls.quadrature.rules import Rule

LevelIn = Callable[[FloatArray], FloatArray] | bool
KINDS: dict[str, type[Domain]] = {}  # the classes of domains by name


class Domain(FieldState, ABC):
    """A set of points with a boundary: a shape in space, an interval of time, or their product.

    Domains are values: equal when they describe the same set in the same way, hashable, never changed.
    """

    coordinates: tuple[sp.Symbol, ...]

    remedy_without_boundary: ClassVar[str] = "Check the predicate or the shapes it was made from."
    arguments: ClassVar[Arguments] = ()  # the description of a shape besides its coordinates
    derived: ClassVar[bool] = False  # whether the coordinates follow from the arguments
    has_time: ClassVar[bool] = False  # whether the last coordinate is time

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        KINDS[cls.__name__] = cls

    @property
    def dimension(self) -> int:
        """Number of coordinates, time included."""
        return len(self.coordinates)

    @property
    def time(self) -> sp.Symbol | None:
        """The time coordinate, or None."""
        return self.coordinates[-1] if self.has_time else None

    @property
    def space(self) -> tuple[sp.Symbol, ...]:
        """The coordinates without time."""
        return tuple(symbol for symbol in self.coordinates if symbol != self.time)

    @property
    @abstractmethod
    def bounds(self) -> FloatArray:
        """Bounding box: lowest and highest value of each coordinate, shape (d, 2)."""

    @property
    @abstractmethod
    def measure(self) -> float:
        """Length, area, volume, ..."""

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The named parts of the boundary, also to be had as attributes."""
        return MappingProxyType({name: Part(self, name, tuple(own)) for name, own in self._named_patches().items()})

    @cached_property
    def boundary(self) -> Part:
        """The whole boundary; for a product with time, that of space at all times."""
        return Part(self, "boundary", tuple(self._patches))

    @property
    def initial(self) -> Part | None:
        """The face at the initial time, or None without time."""
        return self.parts["initial"] if self.has_time else None

    @property
    def final(self) -> Part | None:
        """The face at the final time, or None without time."""
        return self.parts["final"] if self.has_time else None

    @property
    @abstractmethod
    def _patches(self) -> Iterable[Patch]:
        """The pieces of the boundary."""

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        """Return the pieces of each part with a name; a boundary that is one smooth piece has none."""
        return {}

    @property
    def condition(self) -> sp.Basic:
        """That a point is inside, as a condition on its coordinates; of shapes with a formula."""
        raise GeometryError(
            "A region must be a shape with a formula (not a Solid or PointCloud), or several joined by |, & and -. "
            f"Got {shorten(self)} instead."
        )

    @property
    def atoms(self) -> FloatArray | None:
        """All points of a domain that has finitely many, else None."""
        return None

    @property
    def thickness(self) -> float:
        """The smallest extent, the length that tolerances are relative to."""
        bounds = self.bounds
        return float((bounds[:, 1] - bounds[:, 0]).min())

    @property
    def tolerance(self) -> float:
        """Distance from the domain that still counts as in it: 1e-9 of its size, and the rounding of coordinates."""
        return RELATIVE_TOLERANCE * self.thickness + self.rounding

    @property
    def rounding(self) -> float:
        """Distance that rounding alone can move a point."""
        return ROUNDING * float(np.abs(self.bounds).max())

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Dimension of the unit cube that :meth:`embed` maps from."""

    @abstractmethod
    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map parameters of the unit cube to candidate points, and tell which are inside (None: all)."""

    def contains(self, X: npt.ArrayLike) -> BoolArray:
        """Tell which points lie in the closed domain, up to 1e-9 of its size."""
        return self._holds(check_points("X", X, f"{type(self).__name__}.contains", self.dimension))

    @abstractmethod
    def _holds(self, points: FloatArray) -> BoolArray:
        """Tell which points are in the domain."""

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return points and weights of a rule with about ``n`` nodes for integrals over the domain.

        Without a better one, points of a scrambled Sobol' sequence have equal weights.
        """
        return self._rule(check_count(n, self.dimension, f"{type(self).__name__}.quadrature"))

    def _rule(self, n: int) -> Rule:
        return self.sample(n), np.full(n, self.measure / n)

    def sample(self, n: int, method: str = "sobol", seed: int | np.random.Generator = 0) -> FloatArray:
        """Return exactly ``n`` points of the domain, uniform in its measure.

        Parameters
        ----------
        n : int
            Number of points.
        method : {"sobol", "halton", "lhs", "kronecker", "uniform", "grid"}
            How they are spread. A grid takes the midpoints of the cells of a lattice.
        seed : int or numpy.random.Generator
            Where the randomness comes from; the same seed gives the same points.

        Returns
        -------
        numpy.ndarray
            Shape (n, d), columns in the order of the coordinates.
        """
        owner = f"{type(self).__name__}.sample"
        count, rng = check_draw(n, self.dimension, method, seed, owner)
        return fill(self.embed, self.parameters, count, method, rng, owner)

    def faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return the pair of opposite faces at the lowest and highest value of a coordinate.

        Sampled with the same arguments they give points that differ only in that coordinate.
        """
        if not isinstance(coordinate, sp.Symbol) or coordinate not in self.coordinates:
            raise refusal("coordinate", "faces()", f"be one of {self.coordinates}", coordinate, error=GeometryError)
        return self._faces(coordinate)

    def _faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return the faces at both ends of one of the coordinates."""
        raise GeometryError(
            f"{shorten(self)} has no pair of opposite flat faces in {coordinate}, so nothing can be periodic there. "
            "Use an Interval, Rectangle or Box."
        )

    def lift(self, part: Part) -> Part:
        """Return a part of this domain, or of one it was made from, as a part of this domain."""
        remedy = "Use domain.boundary or one of domain.parts."
        if not isinstance(part, Part):
            raise refusal("part", "lift()", "be a part of a boundary", part, remedy, GeometryError)
        return part if part.domain == self else self._lifted(part)

    def _lifted(self, part: Part) -> Part:
        """Return a part of another domain as a part of this one."""
        raise ForeignPartError(f"{part} is not on the boundary of {shorten(self)}. Use a part of that domain.")

    def to_dict(self, encode_expression: Encoder | None = None) -> dict[str, Any]:
        """Return a description of numbers, strings and lists that :meth:`from_dict` reads back.

        ``encode_expression`` turns SymPy expressions (the radius of a ``Star``) into such a description.
        """
        names = [symbol.name for symbol in self.coordinates]
        return {"shape": type(self).__name__, "coordinates": names, **self._encode(encode_expression)}

    @staticmethod
    def from_dict(data: object, coordinates: Iterable[sp.Symbol], decode_expression: Decoder | None = None) -> Domain:
        """Return the domain that :meth:`to_dict` described; its coordinates are found by name.

        >>> from pibls.geometry import Disk
        >>> x, y = sp.symbols("x y")
        >>> Domain.from_dict(Disk((x, y), (0, 0), 1).to_dict(), (x, y))
        Disk((x, y), (0, 0), 1)
        """
        symbols = {symbol.name: symbol for symbol in check_coordinates(coordinates, "from_dict")}
        name = data.get("shape") if isinstance(data, Mapping) else None
        shape = KINDS.get(name) if isinstance(name, str) else None
        if not isinstance(data, Mapping) or shape is None or isabstract(shape):
            raise GeometryError(
                f"The description of a domain must be a mapping with a known 'shape'. Got {shorten(data)} instead. "
                "Use what to_dict() returned."
            )
        try:
            own = tuple(symbols[name] for name in data["coordinates"])
            return shape._decode(data, own, decode_expression)
        except PiblsError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as cause:
            raise GeometryError(
                f"The description of a {name} is damaged ({type(cause).__name__}: {shorten(str(cause))}). "
                "Use what to_dict() returned, with the same coordinates."
            ) from cause

    def _encode(self, encode: Encoder | None) -> dict[str, Any]:
        """Return the description without name and coordinates."""

        def formula(value: Any) -> Any:
            if encode is None or not isinstance(value, sp.Expr):
                raise GeometryError(
                    f"{shorten(value)}, a function of {type(self).__name__}, cannot be stored unless it is an "
                    "expression, and to_dict has an 'encode_expression' function. Write it with SymPy."
                )
            return encode(value)

        return {own.name: own.write(self, formula, lambda shape: shape.to_dict(encode)) for own in self.arguments}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], decode: Decoder | None) -> Domain:
        """Make the shape again from its description."""

        def formula(value: Any) -> sp.Expr:
            if decode is None:
                raise GeometryError(
                    f"The description of a {cls.__name__} has an encoded expression. Give from_dict the "
                    "'decode_expression' function that goes with it."
                )
            return decode(value)

        read = {
            own.name: own.read(data, coordinates, formula, lambda value: Domain.from_dict(value, coordinates, decode))
            for own in cls.arguments
        }
        return cls.make(coordinates, **read)

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> Domain:
        """Return the shape of this class with given arguments."""
        build: Callable[..., Domain] = cls
        return build(*[] if cls.derived else [coordinates], **arguments)

    def plot(self, ax: Any = None) -> Any:
        """Draw the domain with the names of its parts, in a new figure or into Matplotlib axes; return the figure.

        >>> from pibls.geometry import Rectangle
        >>> from sympy.abc import x, y
        >>> figure = Rectangle((x, 0, 2), (y, 0, 1)).plot()
        >>> sorted(text.get_text() for text in figure.axes[0].texts)
        ['bottom', 'left', 'right', 'top']
        """
        from pibls.report.domain_pictures import draw_domain

        return draw_domain(self, ax)

    def _repr_html_(self) -> str:
        pairs = zip(self.coordinates, self.bounds, strict=True)
        bounds = (f"{low:.6g} ≤ {symbol.name} ≤ {high:.6g}" for symbol, (low, high) in pairs)
        told = facts(
            [
                ("domain", cut(repr(self), 300)),
                ("bounds", "\n".join(bounds)),
                ("measure", f"{self.measure:.6g}"),
                ("parts of the boundary", cut(", ".join(self.parts), 300) or "boundary"),
            ]
        )
        if len(self.space) not in (1, 2):
            return told
        from pibls.report.domain_pictures import embedded

        return told + embedded(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """The values that domains are compared by, and the class that has them: a Disk is a Ball, an Interval a Box."""
        kind = next(own for own in type(self).__mro__ if "__dataclass_fields__" in vars(own))
        values = (getattr(self, own.name) for own in fields(self) if own.compare)  # type: ignore[arg-type]
        return (kind, *((v.shape, v.tobytes()) if isinstance(v, np.ndarray) else v for v in values))

    def __repr__(self) -> str:
        shown = (str(self.coordinates), *(argument.shown(self) for argument in self.arguments))
        return f"{type(self).__name__}({', '.join(filter(None, shown))})"

    def __or__(self, other: Domain) -> Domain:
        return self._joined("union", other)

    def __and__(self, other: Domain) -> Domain:
        return self._joined("intersection", other)

    def __sub__(self, other: Domain) -> Domain:
        return self._joined("difference", other)

    def _joined(self, operation: str, other: Domain) -> Domain:
        return KINDS["Combination"].make((), operation=operation, first=self, second=other)

    def __mul__(self, other: Domain) -> Domain:
        return KINDS["Product"].make((), domain=self, interval=other)

    def __getattr__(self, name: str) -> Part:
        if name.startswith("_") or "coordinates" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        parts = self.parts
        if name in parts:
            return parts[name]
        known = ", ".join(parts) if parts else "none"
        raise UnknownPartError(
            f"{shorten(self)} has no part named {shorten(name)}. Its named parts: {known}. "
            "Use one of them, boundary, or boundary.where(...)."
        )


class Region(Domain):
    """A solid shape in space: can be combined with others by ``|``, ``&`` and ``-``."""

    @abstractmethod
    def level(self, X: FloatArray) -> FloatArray:
        """Return a function positive inside, negative outside and, near the boundary, the distance from it."""

    def level_in(self, low: FloatArray, high: FloatArray) -> LevelIn:
        """Return a function for points of a box that is the level as far as signs and small values go.

        Where the whole box is inside, or outside, it is true or false instead. What a shape has elsewhere takes no time
        then.

        >>> from pibls.geometry import Disk, Rectangle
        >>> x, y = sp.symbols("x y")
        >>> plate = Rectangle((x, 0, 4), (y, 0, 4)) - Disk((x, y), (1, 1), 0.5) - Disk((x, y), (3, 3), 0.5)
        >>> plate.level_in(np.array([2.0, 0.5]), np.array([2.5, 1.0])), plate.level_in(np.ones(2), np.full(2, 1.1))
        (True, False)
        """
        lowest, highest = self.bounds.T
        slack = self.tolerance
        return False if (low > highest + slack).any() or (high < lowest - slack).any() else self.level

    def _holds(self, points: FloatArray) -> BoolArray:
        return np.asarray(self.level(points) >= -self.tolerance)

    def _rule(self, n: int) -> Rule:
        """Return Gauss points on lines across a shape in the plane whose boundary is exact."""
        plane = self.dimension == 2 and all(patch.exact for patch in self.boundary.patches)
        return slices(self, n, self.measure) if plane else super()._rule(n)

    def _measured_by_flux(self, n: int) -> float:
        """Return area or volume by the flux of x/d through the boundary."""
        points, normals, weights = self.boundary.quadrature(n)
        offset = points - self.bounds.mean(axis=1)
        return float((offset * normals).sum(axis=1) @ weights) / self.dimension

    @property
    def parameters(self) -> int:
        """Those of the bounding box, from which points outside are rejected."""
        return self.dimension

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the unit cube to the bounding box, and tell which points are inside."""
        low, high = self.bounds.T
        points = low + U * (high - low)
        return points, np.asarray(self.level(points) >= 0.0)
