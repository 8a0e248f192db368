"""Boundaries in the plane as curves, and the parts of a domain that have names."""

from __future__ import annotations

from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry.part import Part
from pibls.geometry.patch import AffinePatch, Patch


def named_parts(domain: Any) -> dict[str, Part]:
    """Return the named parts in space, the first of several names for one; the whole boundary where none has a name."""
    found: dict[Any, tuple[str, Part]] = {}
    for name, part in domain.parts.items():
        if name not in ("initial", "final") and not part.empty:
            found.setdefault(part.patches, (name, part))
    return dict(found.values()) or {"boundary": domain.boundary}


def curves_of(patch: Patch, straight: int = 2) -> list[FloatArray]:
    """Return a patch of a boundary in the plane as curves, up to where it is cut; ``straight`` points on a line."""
    steps = straight if isinstance(patch, AffinePatch) else 101
    U = np.zeros((steps, patch.parameters))
    U[:, 0] = np.linspace(0.0, 1.0, steps)
    points, _, keep = patch.at(U)
    if keep is None:
        return [points[:, :2]]
    runs = np.split(np.arange(steps), np.flatnonzero(np.diff(keep.astype(int))) + 1)
    return [points[run, :2] for run in runs if keep[run[0]]]


def middle_of(patch: Patch) -> tuple[FloatArray, FloatArray]:
    """Return a point in the middle of a patch, and the outward normal there."""
    U = np.zeros((101, patch.parameters))
    U[:, 0] = np.linspace(0.0, 1.0, 101)
    points, normals, keep = patch.at(U)
    held = np.flatnonzero(np.ones(101) if keep is None else keep)
    closed = np.allclose(points[0], points[-1])
    k = held[len(held) // (4 if closed else 2)]  # on top of a circle, beside which no axis stands
    return points[k, :2], normals[k, :2]
