"""Points of an interface inside a domain, with normals that point outwards."""

from __future__ import annotations

import numpy as np
import sympy as sp

from pibls.errors import ProblemError
from pibls.geometry.patch import Samples
from pibls.geometry.sampling import kronecker
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import compile_function
from pibls.problem.level import Level
from pibls.problem.places import Across
from pibls.problem.problem import Problem
from pibls.problem.switches import factors_of

BESIDE = 1e-9  # of a domain: how far from an interface one is plainly on one side
_TRIES = (16, 256)
_ROUNDS = 60
_ON = 1e-10
_ENOUGH = 200  # points of an interface: of a small one, few starts find any


def points_across(condition: sp.Basic, domain: DomainLike, count: int, owner: str) -> Samples:
    """Return points of a domain on the edge of where a condition holds; normals point to where it does not.

    >>> from pibls.geometry import Rectangle
    >>> x, y = sp.symbols("x y", real=True)
    >>> X, normals = points_across(x**2 + y**2 < 1, Rectangle((x, -2, 2), (y, -2, 2)), 50, "Interface")
    >>> X.shape, bool(abs(X - normals).max() < 1e-9)
    ((50, 2), True)
    """
    symbols, bounds = domain.coordinates, domain.bounds
    holds = compile_function(sp.Piecewise((1, condition), (0, True)), symbols)
    size = float((bounds[:, 1] - bounds[:, 0]).max())
    for tries in _TRIES:
        starts = bounds[:, 0] + (bounds[:, 1] - bounds[:, 0]) * kronecker(tries * count, len(symbols))
        found = [np.empty((0, 2, len(symbols)))]
        for factor in factors_of([condition], symbols):
            level = Level.of(factor, symbols)
            with np.errstate(all="ignore"):
                X = level.pulled(starts, _ROUNDS)
                slopes = level.gradient(X)
            good = np.isfinite(X).all(axis=1) & np.isfinite(slopes).all(axis=1) & (np.abs(slopes).max(axis=1) > 0)
            X, slopes = X[good], slopes[good]
            n = slopes / np.linalg.norm(slopes, axis=1, keepdims=True)
            beside = [X + sign * BESIDE * size * n for sign in (1.0, -1.0)]
            kept = np.abs(level(X)) <= _ON * size * np.linalg.norm(slopes, axis=1)
            kept &= domain.contains(beside[0]) & domain.contains(beside[1])
            X, n = X[kept], n[kept]
            ahead, behind = (holds(points[kept]) > 0.5 for points in beside)
            way = np.where(ahead, -1.0, 1.0)[:, None] * n
            found.append(np.stack([X, way], axis=1)[ahead != behind])
        both = np.concatenate(found)
        if len(both) >= count:
            chosen = both[np.linspace(0, len(both) - 1, count).round().astype(int)]
            return Samples(chosen[:, 0], chosen[:, 1])
    if len(both):
        return Samples(both[:, 0], both[:, 1])
    raise ProblemError(f"{owner} is off the domain {domain}: nothing of it lies inside. Move it, or remove it.")


def check_interfaces(problem: Problem) -> None:
    """Refuse interfaces that lie outside the domain."""
    for statement in problem.statements:
        if isinstance(statement.place, Across):
            points_across(statement.place.condition, problem.domain, _ENOUGH, statement.name)
