"""A domain as a drawing board shows it: its outline, its edges with their names, and those without a condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.geometry import Combination, Domain
from pibls.geometry.part import Part
from pibls.problem import OnPart, Opposite, Problem
from pibls.report.outlines import curves_of, middle_of
from pibls.report.views import View
from pibls.studio.shape_edits import leaves
from pibls.text.domains import PosedDomain
from pibls.text.positions import Path
from pibls.wellposed.counting import counted

Record = dict[str, Any]


def board(place: PosedDomain, data: Mapping[str, Any], problem: Problem | None = None) -> Record:
    """Return the drawing of a domain on a line, in the plane or in space."""
    space = place.space
    count = len(space.space) or 1
    found: Record = {"dimension": count, "bounds": space.bounds.tolist(), "names": [s.name for s in space.coordinates]}
    found |= {"edges": [], "outline": [], "facets": [], "drawable": count <= 3 and space.atoms is None}
    if not found["drawable"]:
        return found
    if count == 2:
        found["outline"] = outline(space)
    pieces = list(edges(place, data))
    fineness = max(5, round(24 / max(1, len(pieces)) ** 0.5))  # about as many facets, however many pieces
    for path, name, part in pieces:
        edge = {"name": name, "path": list(path), "part": part.name, "conditions": _conditions(problem, part)}
        drawn = _faces(part, problem, fineness) if count == 3 else _lines(part, problem)
        found["edges"].append(edge | drawn)
    return found


def outline(space: Domain) -> list[Any]:
    """Return closed curves around a domain in the plane."""
    view = View(space, (0, 1), {}, 120)
    (left, right), (low, high) = view.limits
    whole = np.array([[left, low], [right, low], [right, high], [left, high]])
    return [_short(curve) for curve in view.outline or [whole]]


def edges(place: PosedDomain, data: Mapping[str, Any]) -> Iterator[tuple[Path, str, Part]]:
    """Yield the pieces of a boundary: the path of their shape in the file, their name in conditions, and the piece."""
    space = place.space
    table = data.get("domain")
    paths = list(leaves(table)) if isinstance(table, dict) else [(("time",), {})]
    own = [s for s in place.shapes.values() if not isinstance(s, Combination) and s.coordinates == space.coordinates]
    if len(own) != len(paths):
        own, paths = [space], [(("domain",), {})]
    labels = {id(shape): label for label, shape in place.shapes.items() if not label.startswith("#")}
    for (path, _), shape in zip(paths, own, strict=True):
        seen: set[Any] = set()
        for name, part in (dict(shape.parts) or {"boundary": shape.boundary}).items():
            lifted = _lifted(space, part)
            if lifted is None or lifted.patches in seen or name in ("initial", "final"):
                continue
            seen.add(lifted.patches)
            label = labels.get(id(shape))
            plain = shape is space or (name in space.parts and space.parts[name].patches == lifted.patches)
            yield path, name if plain or not label else label if name == "boundary" else f"{label}.{name}", lifted


def _lifted(space: Domain, part: Part) -> Part | None:
    try:
        found = part if part.domain is space else space.lift(part)
    except PiblsError:
        return None
    return None if found.empty else found


def _lines(part: Part, problem: Problem | None) -> Record:
    """Return a piece of a boundary as curves, apart where it has a condition and where it has none."""
    patches = [patch for patch in part.patches if not patch.empty]
    if part.domain.dimension == 1:
        X = part.sample(1).points
        end = [float(X[0, 0]), 0.0]
        return {"curves": [{"points": [end], "bare": bool(_bare(X, problem)[0])}], "middle": end, "normal": [0.0, 1.0]}
    curves = []
    for patch in patches:
        for curve in curves_of(patch, 33):
            if len(curve) > 1:
                curves += _runs(curve, _bare(curve, problem))
    middle, normal = middle_of(max(patches, key=lambda patch: patch.measure))
    return {"curves": curves, "middle": middle.tolist(), "normal": normal.tolist()}


def _bare(X: FloatArray, problem: Problem | None) -> Any:
    """Tell at which points of the boundary no condition holds."""
    if problem is None:
        return np.zeros(len(X), dtype=bool)
    given = [statement for statement in problem.statements if not statement.is_equation]
    return counted(problem, _timed(problem, X), given) == 0


def _timed(problem: Problem, X: FloatArray) -> FloatArray:
    """Return points of space in the middle of time, if there is time."""
    if len(problem.domain.coordinates) == X.shape[1]:
        return X
    return np.column_stack([X, np.full(len(X), problem.domain.bounds[-1].mean())])


def _runs(curve: FloatArray, bare: Any) -> list[Record]:
    """Split a curve where its points change from one kind to the other; its ends belong to their neighbours."""
    kinds = np.array(bare)
    kinds[0], kinds[-1] = kinds[1], kinds[-2]
    cuts = np.flatnonzero(np.diff(kinds.astype(int))) + 1
    starts, stops = [0, *cuts.tolist()], [*cuts.tolist(), len(curve) - 1]
    return [
        {"points": _short(curve[a : b + 1]), "bare": bool(kinds[min(a + 1, b)])}
        for a, b in zip(starts, stops, strict=True)
        if b > a
    ]


def _short(curve: FloatArray) -> list[Any]:
    """Return a curve with as many digits as a screen shows."""
    scale = float(np.abs(curve).max()) or 1.0
    return (np.round(curve / scale, 5) * scale).tolist()  # type: ignore[no-any-return]


def _faces(part: Part, problem: Problem | None, fineness: int) -> Record:
    """Return a piece of a surface as polygons in space, with how bright they are."""
    found = []
    for patch in part.patches:
        if patch.empty:
            continue
        for corners in np.asarray(patch.facets(fineness))[:4000]:
            normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            size = float(np.linalg.norm(normal))
            light = abs(float(normal @ np.array([0.35, 0.75, 0.56]))) / size if size else 0.0
            found.append({"points": _short(corners), "light": round(light, 3)})
    bare = bool(_bare(part.sample(16, "kronecker").points, problem).all())
    return {"facets": found, "curves": [{"points": [], "bare": bare}]}


def _conditions(problem: Problem | None, part: Part) -> list[int]:
    """Return the numbers of the conditions that hold on a piece of the boundary, all of it or some."""
    if problem is None:
        return []
    X = _timed(problem, part.sample(16, "kronecker").points)
    count = len(problem.equations)
    found: set[int] = set()
    for statement in problem.statements[count:]:
        where = statement.place
        held = isinstance(where, OnPart) and where.part.contains(X).any()
        held |= isinstance(where, Opposite) and bool((where.low.contains(X) | where.high.contains(X)).any())
        if held:
            found.add(int(statement.source) - count)
    return sorted(found)
