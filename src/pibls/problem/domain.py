"""The domain as a problem sees it; the shapes themselves live in :mod:`pibls.geometry`."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard

import sympy as sp

from pibls.checks import FloatArray


class DomainLike(Protocol):
    """A set of points in the coordinates, with a boundary."""

    @property
    def coordinates(self) -> tuple[sp.Symbol, ...]:
        """All coordinates, in the order of the columns of a point array."""

    @property
    def space(self) -> tuple[sp.Symbol, ...]:
        """The coordinates that are not time."""

    @property
    def time(self) -> sp.Symbol | None:
        """The time coordinate, if there is one."""

    @property
    def bounds(self) -> FloatArray:
        """Smallest and largest value per coordinate, shape (d, 2)."""

    @property
    def boundary(self) -> Any:
        """The whole boundary; in space–time, the boundary of space at all times."""

    @property
    def initial(self) -> Any:
        """The face at the first time, or None."""

    def contains(self, X: Any) -> Any:
        """Tell which points lie in the closed domain."""

    def sample(self, n: int, method: str = "sobol", seed: Any = 0) -> FloatArray:
        """Return ``n`` points of the domain."""

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return points and weights that integrate over the domain."""

    @property
    def condition(self) -> sp.Basic:
        """That a point is inside, as a condition on its coordinates."""

    def lift(self, part: Any) -> Any:
        """Return a part of a piece of this domain as a part of this domain."""

    def faces(self, coordinate: sp.Symbol) -> tuple[Any, Any]:
        """Return the pair of opposite faces across a coordinate."""


def is_part(value: object) -> bool:
    """Tell whether a value is a piece of a boundary."""
    return all(hasattr(value, name) for name in ("name", "domain", "sample"))


def is_domain(value: object) -> TypeGuard[DomainLike]:
    """Tell whether a value is a domain, without asking it to compute anything."""
    return all(hasattr(type(value), name) for name in ("boundary", "contains", "sample", "lift", "faces"))
