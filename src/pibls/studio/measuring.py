"""Numbers of a solution that a page asks for, each with its error: at a point, along a line, over a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pibls.errors import InputError
from pibls.geometry.part import Part
from pibls.quantities import Quantity
from pibls.solution import Solution
from pibls.studio.board_data import edges
from pibls.text.document import parse_document
from pibls.text.domains import read_domain
from pibls.text.expressions import read_expression
from pibls.text.positions import Text
from pibls.text.problem_files import read_names

Record = dict[str, Any]


def probe(solution: Solution, place: list[float]) -> Record:
    """Return the values of all fields at a point, with their errors."""
    X = np.array([place], dtype=np.float64)
    lines = []
    for own in solution.problem.fields:
        function = solution.value(own)
        value, error = float(function(X)[0]), _error(function, X)
        if not np.isfinite(value):
            raise InputError("The point lies outside the domain. Click inside of it.")
        lines.append(f"{own.label} = {Quantity(value, error)}")
    names = ", ".join(f"{name} = {value:.4g}" for name, value in zip(solution.coordinate_names, place, strict=True))
    return {"lines": lines, "where": names}


def _error(function: Any, X: Any) -> float:
    try:
        return float(function.error(X)[0])
    except InputError:  # no richer solution
        return float("nan")


def cut(solution: Solution, ends: list[list[float]], at: float | None, name: str | None) -> Record:
    """Return a field along a straight line between two points, with its estimated error."""
    start, stop = (np.array(end, dtype=np.float64) for end in ends)
    share = np.linspace(0.0, 1.0, 201)
    X = start + share[:, None] * (stop - start)
    if at is not None and solution.problem.domain.time is not None:
        X = np.column_stack([X, np.full(len(X), at)])
    labels = [own.label for own in solution.problem.fields]
    own = solution.problem.fields[labels.index(name) if name in labels else 0]
    function = solution.value(own)
    values = function(X)
    errors = function.error(X) if solution.richer is not None else np.full(len(X), np.nan)
    if not np.isfinite(values).any():
        raise InputError("The line lies outside the domain. Draw it across the domain.")
    along = (share * np.linalg.norm(stop - start)).tolist()
    return {"x": along, "values": listed(values), "errors": listed(errors), "symbol": own.label}


def listed(values: Any) -> list[float | None]:
    """Return numbers with as many digits as a page shows, None for those that are not finite."""
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in values]


def quantity(
    solution: Solution, text: str, folder: str, kind: str, formula: str, part: str | None, at: float | None
) -> Record:
    """Return an integral, a mean, an extreme value or a flow in words, with its error."""
    _, table = parse_document(text, None, Path(folder))
    names = read_names(table)
    where = _part(table, names, part) if part else None
    time = at if solution.problem.domain.time is not None and solution.problem.domain.space else None
    if kind == "flow":
        if where is None:
            raise InputError("A flow goes through a part of the boundary. Choose one.")
        found: Quantity = solution.flow(where, at=time)
        return {"line": f"flow out through {part} = {found}"}
    if kind not in ("integral", "mean", "maximum", "minimum"):
        raise InputError(f"There is no quantity {kind[:40]!r}. Choose integral, mean, maximum, minimum or flow.")
    expression = read_expression(Text.plain(formula), names).expression
    found = getattr(solution, kind)(expression, where, at=time)
    over = f" over {part}" if part else ""
    return {
        "line": f"{kind} of {formula}{over} = {found}",
        "place": None if found.place is None else list(map(float, found.place)),
    }


def _part(table: Any, names: Any, name: str) -> Part:
    place = read_domain(table, names)
    for _, own, part in edges(place, table.data):
        if own == name:
            return part
    if name == "boundary":
        return place.space.boundary
    raise InputError(f"The domain has no part {name[:60]!r}. Choose one of the edges of the drawing.")
