"""Pictures of a solution, its error and its residual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

from pibls.checks import check_choice, check_integer, refusal
from pibls.errors import InputError
from pibls.problem import Field
from pibls.problem.printing import text
from pibls.report.options import check_flag, choose_look, choose_over, pair_of
from pibls.report.panels import WHAT, Panel, choose_panels, is_frames
from pibls.report.quantities import Look, choose_fields, exact_functions, of_expression, quantities
from pibls.report.views import choose_views, cut_views
from pibls.report.wording import is_certain, lettered, said
from pibls.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(
    solution: Solution,
    what: Any = "solution",
    *,
    field: Any = None,
    at: Any = None,
    along: Any = None,
    n: int | None = None,
    exact: Any = None,
    levels: Any = None,
    arrows: Any = None,
    streamlines: Any = None,
    deformed: Any = None,
    extremes: bool = False,
    cells: bool = False,
    residuals: bool = False,
    surface: bool = False,
    label: str | None = None,
    unit: str | None = None,
    cmap: Any = None,
    ax: Any = None,
    axes: Any = None,
) -> Figure:
    """Draw a solution, any expression of it, its error, its residual, or how it fits measurements.

    The solution comes with its absolute error where the exact solution is known, and with its estimated error at every
    point otherwise; a solution that is uncertain has a band, or a map of its standard deviation. One coordinate gives a
    graph; two give a map (time upwards, with graphs at five times beside it); two space coordinates and time give maps
    at four times; of more coordinates a slice through the middle is shown. Errors and residuals have logarithmic
    scales. Where coefficients jump, materials are outlined by dashes. Every figure tells the status and the estimate.

    Parameters
    ----------
    solution
        What a solver returned.
    what : str or expression
        An expression of fields, derivatives and coordinates, such as ``u.diff(x)``, or one of ``"solution"``,
        ``"error"`` (against the exact solution), ``"estimate"`` (the estimated error), ``"deviation"`` (the standard
        deviation), ``"residual"``, ``"exact"`` and ``"fit"``: measurements beside what the solution says of them, and
        residuals in units of the noise, for which only ``what`` is given.
    field
        The field to draw, if there are several; left out, each gets a column of its own.
    at : mapping, optional
        Coordinates to hold fixed, such as ``{"z": 0.5}``. One of them may have a list of values: one map, or one line,
        for each.
    along : pair of points, optional
        Draw a graph along the straight line between two points of space, such as ``((0, 0), (1, 2))``.
    n : int, optional
        Grid points along each axis; by default 200 for maps and 400 for graphs.
    exact
        The exact solution, if the problem does not carry it: an expression of the coordinates, a function of an
        (n, d) array, or a mapping from fields to those.
    levels : int or sequence of numbers, optional
        Contour lines to draw over maps of values, with their values: about how many, or which.
    arrows, streamlines : pair of fields or expressions, optional
        A vector to draw over maps, such as ``(u, v)``; without a field or an expression the map shows its length.
    deformed : number, True or pair of fields, optional
        Draw the deformed body, displacements so many times larger, or as large as to be well seen. The equations show
        which fields are displacements; where they do not, name them, such as ``(u, v)``.
    extremes : bool
        Whether to mark the largest and the smallest value.
    cells : bool
        Whether to draw where the cells of a solution by cells meet: lines over a map or behind a graph, and marks on
        each of several graphs.
    residuals : bool
        Whether to add the absolute residuals of the equations.
    surface : bool
        Whether to draw the surface of a domain in space, coloured, instead of a slice; ``n`` facets along it.
    label, unit : str, optional
        A name for the quantity, if one is drawn, and its unit.
    cmap : str, optional
        A Matplotlib colour map for values.
    ax : Axes, optional
        Matplotlib axes to draw one quantity into, without its error.
    axes : Axes or sequence of Axes, optional
        Matplotlib axes to draw into, as many as there are panels, instead of a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        It shows itself in notebooks; ``figure.savefig("solution.png")`` writes it to a file.

    Examples
    --------
    >>> from pibls import problems, solve
    >>> solution = solve(problems.advection())
    >>> [axes.get_title() for axes in plot(solution).axes]
    ['Solution u', 'Absolute error of u']
    >>> u, x = solution.problem.fields[0], solution.problem.domain.coordinates[0]
    >>> [axes.get_title() for axes in plot(solution, u.diff(x)).axes]
    ['u_x', 'Estimated error of u_x']
    """
    if not isinstance(solution, Solution):
        raise refusal("solution", "plot", "be a Solution", solution, "Use what solving a problem returned.")
    what, field, words = _subject(what, field, {"arrows": arrows, "streamlines": streamlines})
    if what == "fit":
        from pibls.report.inverse_pictures import draw_fit

        return draw_fit(solution)
    if n is not None:
        check_integer("n", n, "plot", minimum=2, maximum=4000)
    count = 1 if isinstance(what, sp.Expr) else len(choose_fields(solution, field, "plot"))
    look = choose_look(words if label is None else label, unit, cmap, count, "plot")
    if check_flag("surface", surface):
        return _surface(solution, what, field, exact, look, n)
    domain = solution.problem.domain
    views = choose_views(domain, at, n, "plot") if along is None else cut_views(domain, along, at, n)
    flags = {"cells": cells, "extremes": extremes, "deformed": deformed}
    over = choose_over(solution, views, levels=levels, arrows=arrows, streamlines=streamlines, **flags)
    more = check_flag("residuals", residuals)
    rows = choose_panels(solution, what, field, exact, views, look, residuals=more)
    if ax is not None:
        rows, axes = [[_only(rows, count, axes)]], ax
    # Matplotlib takes a while to import, and most runs draw nothing.
    from pibls.report.drawing import tell_status
    from pibls.report.figure_panels import draw_panels, given_axes, new_figure

    figure, places = new_figure(rows, over) if axes is None else given_axes(rows, axes)
    draw_panels(rows, places, over)
    if axes is None:
        tell_status(figure, solution)
    elif not is_certain(solution):
        places[0][0].set_title(f"{places[0][0].get_title()}\n{said(solution)}", fontsize=9)
    return figure


def _subject(what: Any, field: Any, vectors: dict[str, Any]) -> tuple[Any, Any, str | None]:
    """Return the kind of picture or the expression to draw, the field, and words for it if it has some of its own."""
    if isinstance(what, Field) and field is None:
        return "solution", what, None
    if isinstance(what, sp.Expr):
        if field is not None:
            raise InputError("The 'field' parameter of plot has no meaning for an expression. Leave it out.")
        return what, None, None
    check_choice("what", what, "plot", (*WHAT, "fit"))
    pairs = [pair_of(name, value) for name, value in vectors.items() if value is not None]
    if not pairs or field is not None or what != "solution":
        return what, field, None
    across, along = pairs[0]
    return sp.sqrt(across**2 + along**2), None, f"|({lettered(text(across))}, {lettered(text(along))})|"


def _only(rows: list[list[Panel]], count: int, axes: Any) -> Panel:
    """Return the panel for a single pair of axes."""
    frames = len(rows[0]) if is_frames(rows[0]) else 1
    if count > 1 or frames > 1 or axes is not None:
        raise InputError(
            f"The 'ax' parameter of plot takes one map or graph. Got {count} fields at {frames} places. Choose one "
            "with field= and at=, or give axes= for all panels."
        )
    return rows[0][0]


def _surface(solution: Solution, what: Any, field: Any, exact: Any, look: Look, n: int | None) -> Figure:
    from pibls.report.drawing import tell_status
    from pibls.report.figure_panels import draw_surfaces

    fields, known = choose_fields(solution, field, "plot"), exact_functions(solution, exact)
    single = isinstance(what, sp.Expr)
    drawn = (
        [of_expression(solution, "value", what, look)] if single else quantities(solution, what, fields, known, look)
    )
    figure = draw_surfaces(solution.problem.domain, drawn, n)
    tell_status(figure, solution)
    return figure
