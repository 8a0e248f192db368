"""Pictures as numbers: a page draws them itself, fast enough to follow a slider."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.geometry import Domain
from pibls.problem.vector_fields import motion_of
from pibls.report.quantities import Look, PictureQuantity, choose_fields, of_expression, quantities, value_of
from pibls.report.views import CloudView, View, cell_walls, choose_views
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.studio.measuring import listed

Record = dict[str, Any]


def picture(solution: Solution, what: str, field: str | None, over: Sequence[str], n: int) -> Record:
    """Return a solution, its estimated error or its residual as curves or maps, with the overlays that are asked for.

    Frames follow each other in time; those of a body in space go through it from slice to slice.
    """
    views = _views(solution.problem.domain, n)
    shown = _quantity(solution, what, field)
    stack = [view.evaluate(shown.function) for view in views]
    found: Record = {"title": shown.title, "symbol": shown.symbol, "log": shown.magnitude}
    found |= {"names": list(views[0].names), "limits": [list(pair) for pair in views[0].limits]}
    found["frames"] = [view.place for view in views]
    if len(views[0].axes) == 1:
        return found | _curves(views, stack, solution, over)
    found |= _codes(stack, shown.magnitude) | {"kind": "map", "n": n, "in_space": views[0].in_space}
    found["outline"] = [np.round(curve, 6).tolist() for curve in views[0].outline]
    if "cells" in over and isinstance(solution.network, CellNetwork):
        found["walls"] = [np.round(cell_walls(solution.network, view), 6).tolist() for view in views]
    if views[0].in_space and ({"gradient", "streamlines", "deformed"} & set(over)):
        found |= _vectors(solution, views, field, over)
    return found


@lru_cache(maxsize=2)
def _views(domain: Domain, n: int) -> tuple[View, ...]:
    """Return the views of a picture: one, or one per frame along time or the third coordinate; they know outlines."""
    at: dict[str, Any] = {}
    space = [symbol.name for symbol in domain.space]
    if domain.time is not None and space:
        low, high = domain.bounds[-1]
        at[domain.time.name] = np.linspace(low, high, 31 if len(space) == 1 else 16).tolist()
    elif len(space) == 3:
        low, high = domain.bounds[2]
        at[space[2]] = np.linspace(low, high, 11).tolist()
        return _inner(domain, at, n)
    views = choose_views(domain, at, 3 * n if len(space) < 2 else n, "the studio")
    if isinstance(views[0], CloudView):
        raise InputError("The studio draws domains that have an inside, and this one is a cloud of points.")
    return views


def _inner(domain: Any, at: dict[str, Any], n: int) -> tuple[View, ...]:
    """Return the slices of a body that have points."""
    name, values = next(iter(at.items()))
    found: list[View] = []
    for value in values:
        try:
            found += choose_views(domain, {name: value}, n, "the studio")
        except InputError:
            continue
    return tuple(found)


def _quantity(solution: Solution, what: str, field: str | None) -> PictureQuantity:
    fields = choose_fields(solution, field, "the studio")
    if what in ("estimate", "residual"):
        found = quantities(solution, what, fields, {})[0]
        size = found.function
        return PictureQuantity(found.title, found.name, found.symbol, lambda X: np.abs(size(X)), True)
    if what == "gradient":
        own = next(symbol for symbol in solution.problem.fields if symbol.label == fields[0])
        steep = sp.sqrt(sum(own.diff(x) ** 2 for x in solution.problem.domain.space))
        return of_expression(solution, "value", steep, Look(f"|grad {fields[0]}|"))
    return quantities(solution, "solution", fields, {})[0]


def _curves(views: Sequence[View], stack: list[FloatArray], solution: Solution, over: Sequence[str]) -> Record:
    finite = np.concatenate([values[np.isfinite(values)] for values in stack])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    lines = [listed(values) for values in stack]
    found: Record = {"kind": "curve", "x": views[0].grids[0].tolist(), "lines": lines, "low": low, "high": high}
    if "cells" in over and isinstance(solution.network, CellNetwork):
        found["walls"] = [cell_walls(solution.network, view).tolist() for view in views]
    return found


def _codes(stack: list[FloatArray], magnitude: bool, decades: float = 8.0) -> Record:
    """Return values as two bytes each, from lowest to highest; a scale of decades for errors."""
    values, outside = np.stack(stack), 2**16 - 1
    held = np.isfinite(values)
    finite = values[held]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if magnitude:
        high = max(high, 1e-300)
        low = min(max(low, high * 10.0**-decades), high / 10.0)
        share = (np.log10(np.clip(values, low, high)) - np.log10(low)) / (np.log10(high) - np.log10(low))
    else:
        share = (values - low) / (high - low) if high > low else np.where(held, 0.5, np.nan)
    codes = np.where(held, np.round(np.nan_to_num(share) * (outside - 1)), outside).astype("<u2")
    coded = [base64.b64encode(frame.tobytes()).decode("ascii") for frame in codes]
    return {"codes": coded, "low": low, "high": high, "signed": low < 0.0 < high and not magnitude}


def _vectors(solution: Solution, views: Sequence[View], field: str | None, over: Sequence[str]) -> Record:
    """Return arrows and streamlines of the flow, and displacements of a body."""
    fields, space = solution.problem.fields, solution.problem.domain.space
    labels = {symbol.label: symbol for symbol in fields}
    motion = [labels[name] for name in motion_of(solution.problem)]
    found: Record = {}
    coarse = [View(view.domain, view.axes, view.fixed, 48) for view in views]
    if "deformed" in over and len(motion) == 2:
        grids = [[np.nan_to_num(view.evaluate(value_of(solution, own))) for own in motion] for view in coarse]
        largest = max(float(np.hypot(*pair).max()) for pair in grids) or 1.0
        extent = max(high - low for low, high in views[0].limits)
        found["moves"] = [[np.round(own / largest, 4).tolist() for own in pair] for pair in grids]
        found["largest"], found["reach"] = largest, 0.08 * extent
    wanted = {"gradient", "streamlines"} & set(over)
    if not wanted:
        return found
    own = next(symbol for symbol in fields if symbol.label == (field or fields[0].label))
    # Heat and matter flow down the gradient; two fields that move are a velocity.
    pair = [own.diff(space[0]), own.diff(space[1])]
    grids = [[view.evaluate(value_of(solution, entry)) for entry in pair] for view in coarse]
    if "gradient" in wanted:
        found["arrows"] = [_arrows(view, *both) for view, both in zip(coarse, grids, strict=True)]
    if "streamlines" in wanted:
        flow = motion if len(motion) == 2 else [-entry for entry in pair]
        ways = [[view.evaluate(value_of(solution, entry)) for entry in flow] for view in coarse]
        found["streams"] = [_streams(view, *both) for view, both in zip(coarse, ways, strict=True)]
    return found


def _streams(view: View, across: FloatArray, along: FloatArray) -> list[Any]:
    """Return curves that follow a vector, evenly spread."""
    from matplotlib.figure import Figure

    (x, y), (u, v) = view.grids, np.ma.masked_invalid([across, along])
    drawn = Figure().add_subplot().streamplot(x, y, u, v, density=0.5)
    lines: list[FloatArray] = []
    for piece in drawn.lines.get_segments():
        # Some versions of Matplotlib give every step of a curve as a line of its own.
        if lines and (lines[-1][-1] == piece[0]).all():
            lines[-1] = np.concatenate([lines[-1], piece[1:]])
        else:
            lines.append(np.asarray(piece))
    return [np.round(line, 5).tolist() for line in lines]


def _arrows(view: View, across: FloatArray, along: FloatArray) -> list[list[float]]:
    """Return arrows at some points of a grid: their feet, and their way relative to the longest."""
    step = 3
    x, y = np.meshgrid(*view.grids)
    table = np.stack([own[1::step, 1::step].ravel() for own in (x, y, across, along)], axis=1)
    table = table[np.isfinite(table).all(axis=1)]
    longest = float(np.hypot(table[:, 2], table[:, 3]).max()) if len(table) else 1.0
    table[:, 2:] /= longest or 1.0
    return np.round(table, 5).tolist()  # type: ignore[no-any-return]
