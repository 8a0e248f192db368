"""The domain as a problem sees it; the shapes themselves live in :mod:`pibls.geometry`, which knows problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from pibls.geometry import Domain as DomainLike
else:
    DomainLike = Any

__all__ = ["DomainLike", "is_domain", "is_part"]


def is_part(value: object) -> bool:
    """Tell whether a value is a piece of a boundary."""
    return all(hasattr(value, name) for name in ("name", "domain", "sample"))


def is_domain(value: object) -> TypeGuard[DomainLike]:
    """Tell whether a value is a domain, without asking it to compute anything."""
    return all(hasattr(type(value), name) for name in ("boundary", "contains", "sample", "lift", "faces"))
