"""Where statements hold: inside, on parts, at points, on opposite faces, on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_points
from pibls.errors import GeometryError, ProblemError
from pibls.problem.domain import DomainLike, is_part
from pibls.problem.lowering import Form
from pibls.problem.observation import Observation

# Nodes of the rules of all averages of an observation together, and of one of them at least and at most.
_NODES = 20_000
_FEWEST_NODES, _MOST_NODES = 100, 1_000


@dataclass(frozen=True)
class Interior:
    """Inside the domain."""


@dataclass(frozen=True)
class OnPart:
    """On a part of the boundary or the initial face."""

    part: Any


@dataclass(frozen=True, eq=False)
class AtPoints:
    """At the user's points."""

    points: FloatArray


@dataclass(frozen=True)
class Opposite:
    """The value on one face minus the value on the opposite one."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Average:
    """Averaged over the domain."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Averaged over regions: sums of weighted values at points."""

    # points, weights: the rules of all regions, one after the other; the weights of each sum to one
    points: FloatArray
    weights: FloatArray
    ends: tuple[int, ...]  # where the rule of each region ends
    normals: FloatArray | None = None  # outward normals, if the regions are parts of the boundary


@dataclass(frozen=True, eq=False)
class Across:
    """Between both sides of a curve or surface: a condition holds inside, and outside there is this form."""

    condition: sp.Basic
    outside: Form


Place = Interior | OnPart | AtPoints | Opposite | Average | Averages | Across


def inside(points: FloatArray, domain: DomainLike, owner: str, count: int | None, name: str = "points") -> FloatArray:
    """Return points of a condition, or refuse them: as many as values, and all in the domain."""
    array = check_points(name, points, owner, len(domain.coordinates), error=ProblemError)
    if count is not None and len(array) != count:
        raise ProblemError(f"{owner} has {len(array)} points and {count} values; give one value per point.")
    outside = np.flatnonzero(~np.asarray(domain.contains(array)))
    if outside.size:
        raise ProblemError(
            f"{owner} is off the domain {domain}: {outside.size} of its {len(array)} points lie outside, first "
            f"{array[outside[0]].tolist()}. Remove them or enlarge the domain."
        )
    return array


def observed_at(condition: Observation, domain: DomainLike, owner: str) -> AtPoints | Averages:
    """Return the points of an observation, or the rules of the regions that it averages over."""
    if condition.regions is not None:
        return _averages(condition.regions, condition.times, domain, owner)
    points: FloatArray = condition.points
    if condition.columns is not None:
        names = [symbol.name for symbol in domain.coordinates]
        if sorted(names) != sorted(condition.columns):
            raise ProblemError(
                f"{owner} has points with the coordinates {', '.join(condition.columns)}, and the domain has "
                f"{', '.join(names)}. Give a column for each of these and for no others."
            )
        points = points[:, [condition.columns.index(name) for name in names]]
    return AtPoints(inside(points, domain, owner, len(condition.values)))


def _averages(regions: tuple[Any, ...], times: FloatArray | None, domain: DomainLike, owner: str) -> Averages:
    """Return the rules of regions at times, one after the other; equal ones are made once."""
    count = min(_MOST_NODES, max(_FEWEST_NODES, _NODES // len(regions)))
    keys = list(zip(regions, [None] * len(regions) if times is None else times.tolist(), strict=True))
    kept = {key: _rule(*key, count, domain, owner) for key in dict.fromkeys(keys)}
    points, normals, weights = zip(*(kept[key] for key in keys), strict=True)
    ends = tuple(np.cumsum([len(rule) for rule in weights]).tolist())
    on_boundary = None if any(n is None for n in normals) else np.concatenate(normals)
    return Averages(np.concatenate(points), np.concatenate(weights), ends, on_boundary)


def _rule(
    region: Any, time: float | None, count: int, domain: DomainLike, owner: str
) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Return points, normals and weights that average over a region of the domain."""
    try:
        rule = region.quadrature(count)
    except GeometryError as error:
        raise ProblemError(f"{owner} cannot be averaged over {region}: {error}") from error
    points, weights = rule[0], rule[-1]
    normals = rule[1] if is_part(region) else None
    own = tuple((region.domain if is_part(region) else region).coordinates)
    if domain.time in domain.coordinates and domain.time not in own and time is not None:
        own, points = (*own, domain.time), np.column_stack([points, np.full(len(points), time)])
        normals = None if normals is None else np.column_stack([normals, np.zeros(len(normals))])
    elif time is not None:
        raise ProblemError(f"{owner} has times, and {region} needs none. Leave out 'times'.")
    if set(own) != set(domain.coordinates):
        remedy = "Give 'times', or multiply the region by a TimeInterval." if domain.time is not None else ""
        raise ProblemError(
            f"{owner} is averaged over {region} with the coordinates {own}, and the domain has {domain.coordinates}. "
            f"{remedy or 'Give a region with the same coordinates.'}"
        )
    order = [own.index(symbol) for symbol in domain.coordinates]
    inside(points[:, order], domain, owner, None)
    return points[:, order], None if normals is None else normals[:, order], weights / weights.sum()
