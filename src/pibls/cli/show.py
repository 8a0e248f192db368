"""``pibls show``: a problem as mathematics, with a picture of where its conditions hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import Debug, Force, emit, shown, told
from pibls.cli.outputs import chosen_target
from pibls.cli.sources import SourceName, read_source
from pibls.status import Status
from pibls.writing import replaced

if TYPE_CHECKING:
    from pibls.cli.sources import Source
    from pibls.problem import Problem


_WIDEST = 64


def show(
    source: SourceName,
    plot: Annotated[Path | None, typer.Option(help="Write the picture: .png, .pdf or .svg.")] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Show a problem: its mathematics, its kind, which conditions hold where, and which are missing."""
    with told(debug):
        target = chosen_target("plot", plot, force=force)
        found = read_source(source)
        from pibls.cli.sketch import sketch
        from pibls.tuning.first_word import first_word

        emit(typer.style(found.title, bold=True), as_is=True)
        emit(f"{found.problem}\n")
        emit("\n".join(f"{name:<10} {value}" for name, value in facts(found).items()))
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        emit(f"\n{sketch(found.problem, encoding, coloured=sys.stdout.isatty())}", as_is=True)
        if words := first_word(found.problem):
            emit(f"\n{Status.ILL_POSED}  {words}")
        if target is not None:
            figure = picture(found.problem)
            replaced(target.resolve(), lambda place: figure.savefig(place, dpi=150))
            emit(f"\nwrote plot {shown(target)}")


def facts(source: Source) -> dict[str, str]:
    """Return the traits of a problem in words."""
    problem = source.problem
    domain: Any = problem.domain
    time = "" if domain.time is None else f", time {domain.time}"
    order = max(statement.form.order for statement in problem.statements if statement.is_equation)
    found = {
        "kind": f"{'linear' if problem.is_linear else 'nonlinear'}, order {order}",
        "fields": ", ".join(map(str, problem.fields)),
        "domain": f"{domain}, measure {domain.measure:.4g}",
        "space": (", ".join(symbol.name for symbol in domain.space) or "none") + time,
    }
    if unknowns := (*problem.parameters, *problem.unknown_functions):
        found["unknown"] = ", ".join(map(str, unknowns))
    if problem.data:
        found["data"] = ", ".join(problem.data)
    if problem.exact is not None:
        from pibls.problem import Data

        known = all(not expression.has(Data) for expression in problem.exact.values())
        texts = (f"{name} = {expression}" for name, expression in problem.exact.items())
        found["exact"] = ", ".join(texts) if known else "computed by another method"
    options = {name: value for name, value in vars(source.solve).items() if value is not None}
    if options:
        found["solve"] = ", ".join(f"{name} = {value}" for name, value in options.items())
    return found


def picture(problem: Problem) -> Any:
    """Return a figure of the domain with the places of the conditions, in up to three dimensions."""
    from matplotlib.figure import Figure

    from pibls.checks import cut
    from pibls.cli.sketch import marks, shown_axes
    from pibls.errors import InputError
    from pibls.geometry.points import interior_points

    axes = shown_axes(problem)
    if not axes:
        raise InputError(
            f"A domain in {len(problem.domain.coordinates)} dimensions cannot be drawn. Leave out --plot, or show a "
            "slice of the solution instead."
        )
    figure = Figure(figsize=(7, 5.5 if len(axes) > 1 else 2.5), layout="constrained")
    plane: Any = figure.add_subplot(projection="3d" if len(axes) == 3 else None)
    inside = interior_points(problem.domain, 6000 if len(axes) == 2 else 400, "kronecker", 0)[:, list(axes)]
    plane.scatter(*_placed(inside), s=3, color="0.8", linewidths=0, label="domain")
    for mark in marks(problem):
        if mark.points is not None:
            size = 60 if len(mark.points) < 20 else 8
            label = "\n".join(cut(words, _WIDEST) for words in mark.conditions)
            plane.scatter(*_placed(mark.points), s=size, linewidths=0, label=label, zorder=3)
    names = [problem.domain.coordinates[axis].name for axis in axes]
    plane.set_xlabel(names[0])
    if len(axes) > 1:
        plane.set_ylabel(names[1])
        if problem.domain.time is None:
            plane.set_aspect("equal")
    else:
        plane.set_yticks([])
    if len(axes) == 3:
        plane.set_zlabel(names[2])
    figure.legend(loc="outside lower center", frameon=False, markerscale=2)
    return figure


def _placed(points: Any) -> tuple[Any, ...]:
    """Return the columns of points; those on a line are drawn at height zero."""
    columns = tuple(points.T)
    return columns if len(columns) > 1 else (columns[0], 0 * columns[0])
