"""Pictures of a solution, its error and its residual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import check_choice, check_integer, check_number, refusal, shorten
from pibls.errors import InputError
from pibls.problem.analysis import analysis_of
from pibls.report.panels import WHAT, choose_panels
from pibls.report.quantities import choose_fields, exact_functions, quantities
from pibls.report.views import cell_walls, choose_views
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(
    solution: Solution,
    what: str = "solution",
    *,
    field: Any = None,
    at: Any = None,
    n: int | None = None,
    exact: Any = None,
    levels: Any = None,
    cells: bool = False,
    surface: bool = False,
    axes: Any = None,
) -> Figure:
    """Draw a solution, its error, its residual, the exact solution, or how it fits measurements.

    The solution comes with its absolute error where the exact solution is known, and with the absolute residual of the
    equations otherwise. One coordinate gives a graph; two give a map (time upwards, with graphs at five times beside
    it); two space coordinates and time give maps at four times; of more coordinates a slice through the middle is
    shown. Errors and residuals have logarithmic scales. Where coefficients jump, materials are outlined by dashes.

    Parameters
    ----------
    solution
        What a solver returned.
    what : {"solution", "error", "residual", "exact", "fit"}
        What to draw; ``"fit"`` is measurements beside what the solution says of them, and residuals in units of the
        noise, for which only ``what`` is given.
    field
        The field to draw, if there are several; left out, each gets a column of its own.
    at : mapping, optional
        Coordinates to hold fixed, such as ``{"z": 0.5}``. One of them may have a list of values: one map, or one line,
        for each.
    n : int, optional
        Grid points along each axis; by default 200 for maps and 400 for graphs.
    exact
        The exact solution, if the problem does not carry it: an expression of the coordinates, a function of an
        (n, d) array, or a mapping from fields to those.
    levels : int or sequence of numbers, optional
        Contour lines to draw over maps of values: about how many, or which.
    cells : bool
        Whether to draw where the cells of a solution by cells meet: lines over a map or behind a graph, and marks on
        each of several graphs.
    surface : bool
        Whether to draw the surface of a domain in space, coloured, instead of a slice; ``n`` facets along it.
    axes : Axes or sequence of Axes, optional
        Matplotlib axes to draw into, as many as there are panels, instead of a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        It shows itself in notebooks; ``figure.savefig("solution.png")`` writes it to a file.

    Examples
    --------
    >>> from pibls import problems, solve
    >>> figure = plot(solve(problems.advection()))
    >>> [axes.get_title() for axes in figure.axes]
    ['Solution u', 'Absolute error of u']
    """
    if not isinstance(solution, Solution):
        raise refusal("solution", "plot", "be a Solution", solution, "Use what solving a problem returned.")
    check_choice("what", what, "plot", (*WHAT, "fit"))
    if what == "fit":
        from pibls.report.fits import draw_fit

        return draw_fit(solution)
    if n is not None:
        check_integer("n", n, "plot", minimum=2, maximum=4000)
    domain, solid = solution.problem.domain, _check_flag("surface", surface)
    if solid:
        fields, known = choose_fields(solution, field, "plot"), exact_functions(solution, exact, "plot")
    else:
        rows = choose_panels(solution, what, field, exact, choose_views(domain, at, n, "plot"), "plot")
        contours, walls = _check_levels(levels), _check_cells(cells, solution)
    # Matplotlib takes a while to import, and most runs draw nothing.
    from pibls.report.figure_panels import Over, draw_panels, draw_surfaces, given_axes, new_figure

    if solid:
        return draw_surfaces(domain, quantities(solution, what, fields, known), n)
    figure, places = new_figure(rows) if axes is None else given_axes(rows, axes, "plot")
    draw_panels(rows, places, contours, Over(walls, _materials(solution)))
    return figure


def _materials(solution: Solution) -> Any:
    """Return a number for each material as a function of points, None where there is one."""
    problem = solution.problem
    switching = analysis_of(problem).switching
    return switching.branch if switching is not None and switching.jumps else None


def _check_cells(cells: object, solution: Solution) -> Any:
    """Return where the cells meet in a view, as a function of it, or None if they are not wanted."""
    if not _check_flag("cells", cells):
        return None
    network = solution.network
    if not isinstance(network, CellNetwork):
        raise InputError(
            f"The 'cells' parameter of plot is for solutions by cells. This one, by {solution.diagnostics.method}, has "
            "none; leave it out."
        )
    return lambda view: cell_walls(network, view)


def _check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"The '{name}' parameter of plot must be True or False. Got {shorten(value)} instead.")
    return bool(value)


def _check_levels(levels: Any) -> Any:
    if levels is None or isinstance(levels, int | np.integer):
        return None if levels is None else check_integer("levels", levels, "plot", minimum=1, maximum=1000)
    if not isinstance(levels, Sequence | np.ndarray) or isinstance(levels, str) or getattr(levels, "ndim", 1) == 0:
        raise refusal("levels", "plot", "be a number of contour lines or a sequence of values", levels)
    return sorted({check_number("levels", level, "plot") for level in levels})
