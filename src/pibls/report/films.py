"""Films of a solution through time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import check_choice, check_integer, check_number
from pibls.errors import InputError, MissingDependencyError
from pibls.problem import Field
from pibls.report.options import choose_look
from pibls.report.panels import Panel
from pibls.report.quantities import PictureQuantity, choose_fields, of_expression, quantities
from pibls.report.views import View, choose_views
from pibls.report.wording import said
from pibls.solution import Solution
from pibls.solution.storage import write_file


def animate(
    solution: Solution,
    path: str | Path,
    what: Any = "solution",
    *,
    field: Any = None,
    at: Any = None,
    frames: int = 60,
    fps: float = 20.0,
    n: int | None = None,
    label: str | None = None,
    unit: str | None = None,
    cmap: Any = None,
) -> Path:
    """Write a film of a solution from the first time to the last: a graph, or a map of two coordinates of space.

    Scales stay the same from frame to frame. Every frame tells the time, the status and the estimated error.

    Parameters
    ----------
    solution
        Of a problem in time.
    path
        A file that ends with ``.gif``; or with ``.mp4``, for which the program ffmpeg has to be installed.
    what : expression, optional
        An expression of fields, derivatives and coordinates; left out, the solution.
    field
        The field to show, if there are several; left out, each gets a panel of its own.
    at : mapping, optional
        Space coordinates to hold fixed, such as ``{"z": 0.5}``.
    frames, fps
        How many pictures, and how many per second.
    n
        Grid points along each axis; by default 120 for maps and 400 for graphs.
    label, unit, cmap : str, optional
        A name for the quantity, if one is shown, its unit, and a Matplotlib colour map.

    Examples
    --------
    >>> from pibls import problems, solve
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     film = animate(solve(problems.heat_robin()), f"{folder}/film.gif", frames=3, n=20)
    ...     film.read_bytes()[:6]
    b'GIF89a'
    """
    target = Path(path)
    check_choice("ending of 'path'", target.suffix.lower(), "animate", (".gif", ".mp4"))
    count = check_integer("frames", frames, "animate", minimum=2, maximum=10_000)
    rate = check_number("fps", fps, "animate", minimum=0, exclusive=True, maximum=1000)
    times, views = _times(solution, at, count, n)
    shown = _shown(solution, what, field, label, unit, cmap)
    # Matplotlib takes a while to import, and most runs make no film.
    from pibls.report.figure_panels import Film

    film = Film([Panel(quantity, (views[0],)) for quantity in shown], views, times, said(solution))
    writer = _writer(target.suffix.lower(), rate)
    return write_file(target, lambda place: film.write(place, writer))


def _times(solution: Solution, at: Any, count: int, n: int | None) -> tuple[Any, tuple[View, ...]]:
    """Return the times of a film, and a view for each."""
    domain = solution.problem.domain
    if n is not None:
        check_integer("n", n, "animate", minimum=2, maximum=4000)
    if domain.time is None or not domain.space or domain.atoms is not None:
        raise InputError(f"animate shows how a solution over space changes in time. Got one on {domain}; use plot().")
    low, high = domain.bounds[-1]
    times = np.linspace(low, high, count)
    size = 120 if n is None and len(domain.space) > 1 else n
    return times, choose_views(domain, {**dict(at or {}), domain.time.name: times.tolist()}, size, "animate")


def _shown(
    solution: Solution, what: Any, field: Any, label: object, unit: object, cmap: object
) -> list[PictureQuantity]:
    """Return the fields or the expression of a film."""
    if isinstance(what, Field):
        what, field = "solution", what
    if isinstance(what, sp.Expr):
        if field is not None:
            raise InputError("The 'field' parameter of animate has no meaning for an expression. Leave it out.")
        return [of_expression(solution, "value", what, choose_look(label, unit, cmap, 1, "animate"))]
    check_choice("what", what, "animate", ("solution",))
    fields = choose_fields(solution, field, "animate")
    return quantities(solution, "solution", fields, {}, choose_look(label, unit, cmap, len(fields), "animate"))


def _writer(ending: str, fps: float) -> Any:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if ending == ".gif":
        return PillowWriter(fps=fps)  # type: ignore[arg-type]
    if not FFMpegWriter.isAvailable():
        raise MissingDependencyError(
            "A film that ends with .mp4 needs the program ffmpeg, which is not installed. Install it with the package "
            "manager of your system, or write a .gif file."
        )
    return FFMpegWriter(fps=fps)  # type: ignore[arg-type]
