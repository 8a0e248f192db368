"""The options of a picture, checked: overlays of maps and graphs, words and colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_integer, check_number, refusal, shorten
from pibls.errors import InputError
from pibls.problem.analysis import analysis_of
from pibls.problem.vector_fields import motion_of
from pibls.report.quantities import Evaluator, Look, value_of
from pibls.report.views import CloudView, CutView, View, cell_walls
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs

Arrows = tuple[Evaluator, Evaluator]  # the components of a vector in the plane of a picture, as functions of points


@dataclass(frozen=True, eq=False)
class Deformation:
    """Displacements, one function of points per space coordinate, and how much larger they are drawn."""

    by: tuple[Evaluator, ...]
    scale: float | None  # None: so that they are well seen


@dataclass(frozen=True, eq=False)
class Over:
    """Overlays of maps and graphs, each if it was asked for."""

    levels: Any = None
    walls: Callable[[View], FloatArray] | None = None  # where cells meet in a view
    kinds: Any = None  # a number for each material as a function of points, if there are several
    arrows: Arrows | None = None
    streamlines: Arrows | None = None
    deformation: Deformation | None = None
    extremes: bool = False


def choose_over(solution: Solution, views: tuple[View, ...], **asked: Any) -> Over:
    """Return the overlays that were asked for."""
    switching = analysis_of(solution.problem).switching
    over = Over(
        _check_levels(asked["levels"]),
        _check_cells(asked["cells"], solution, views),
        switching.branch if switching is not None and switching.jumps else None,
        _check_arrows("arrows", asked["arrows"], solution, views),
        _check_arrows("streamlines", asked["streamlines"], solution, views),
        _check_deformed(asked["deformed"], solution, views),
        check_flag("extremes", asked["extremes"]),
    )
    crowd = [over.levels, over.walls, over.arrows, over.streamlines, over.extremes or None]
    if over.deformation is not None and any(entry is not None for entry in crowd):
        raise InputError(
            "The 'deformed' parameter of plot moves the picture, and contours, cells, arrows, streamlines and extremes "
            "are drawn where the body was. Draw two pictures."
        )
    return over


def choose_look(label: object, unit: object, cmap: object, count: int, owner: str) -> Look:
    """Return words and colours for the quantities of a picture, of which there are ``count``."""
    for name, value in (("label", label), ("unit", unit)):
        if not isinstance(value, str | None):
            raise refusal(name, owner, "be a text", value)
    if label is not None and count > 1:
        raise InputError(f"The 'label' parameter of {owner} names one quantity. Got {count}; choose one with field=.")
    if cmap is None:
        return Look(str(label or ""), str(unit or ""))
    from matplotlib import colormaps

    chosen = getattr(cmap, "name", cmap)
    if not isinstance(chosen, str) or chosen not in colormaps:
        raise refusal("cmap", owner, "be the name of a Matplotlib colour map, such as 'viridis'", cmap)
    return Look(str(label or ""), str(unit or ""), chosen)


def check_flag(name: str, value: object) -> bool:
    """Return True or False, or refuse the value."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"The '{name}' parameter of plot must be True or False. Got {shorten(value)} instead.")
    return bool(value)


def pair_of(name: str, value: Any) -> tuple[sp.Expr, sp.Expr]:
    """Return the two components of a vector in the plane, or refuse the value."""
    entries = list(value) if isinstance(value, Sequence | sp.Tuple | sp.MatrixBase) else []
    if len(entries) != 2 or not all(isinstance(entry, sp.Expr) for entry in entries):
        raise refusal(name, "plot", "be a pair of fields or expressions, such as (u, v)", value)
    return entries[0], entries[1]


def _check_arrows(name: str, value: Any, solution: Solution, views: tuple[View, ...]) -> Arrows | None:
    if value is None:
        return None
    pair = pair_of(name, value)
    _check_plane(name, views)
    return value_of(solution, pair[0]), value_of(solution, pair[1])


def _check_plane(name: str, views: tuple[View, ...]) -> None:
    if not all(len(view.axes) == 2 and view.in_space and not isinstance(view, CloudView) for view in views):
        raise InputError(f"The '{name}' parameter of plot is for maps of two coordinates of space. Leave it out.")


def _check_deformed(value: Any, solution: Solution, views: tuple[View, ...]) -> Deformation | None:
    if value is None or value is False:
        return None
    _check_plane("deformed", views)
    if isinstance(value, Sequence | sp.Tuple | sp.MatrixBase) and not isinstance(value, str):
        return Deformation(tuple(value_of(solution, entry) for entry in pair_of("deformed", value)), None)
    scale = None if value is True else check_number("deformed", value, "plot")
    space, names = solution.problem.domain.space, motion_of(solution.problem)
    if len(names) != len(space):
        raise InputError(
            f"The 'deformed' parameter of plot needs a displacement along each of {', '.join(s.name for s in space)}, "
            "and the equations do not show which fields they are. Name them, such as deformed=(u, v)."
        )
    fields = {field.label: field for field in solution.problem.fields}
    return Deformation(tuple(value_of(solution, fields[name]) for name in names), scale)


def _check_cells(cells: object, solution: Solution, views: tuple[View, ...]) -> Any:
    """Return where the cells meet in a view, as a function of it, or None if they are not wanted."""
    if not check_flag("cells", cells):
        return None
    network = solution.network
    if not isinstance(network, CellNetwork | EvolvedCells | EvolvedLegs):
        raise InputError(
            f"The 'cells' parameter of plot is for solutions by cells. This one, by {solution.diagnostics.method}, has "
            "none; leave it out."
        )
    if isinstance(views[0], CutView):
        raise InputError("The 'cells' parameter of plot is not for cuts 'along' a line. Leave one of them out.")
    if isinstance(network, CellNetwork):
        return lambda view: cell_walls(network, view)
    return lambda view: cell_walls(network.space_at(view.fixed.get(network.dimension - 1)), view)


def _check_levels(levels: Any) -> Any:
    if levels is None or isinstance(levels, int | np.integer):
        return None if levels is None else check_integer("levels", levels, "plot", minimum=1, maximum=1000)
    if not isinstance(levels, Sequence | np.ndarray) or isinstance(levels, str) or getattr(levels, "ndim", 1) == 0:
        raise refusal("levels", "plot", "be a number of contour lines or a sequence of values", levels)
    return sorted({check_number("levels", level, "plot") for level in levels})
