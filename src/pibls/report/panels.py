"""Which panels make up a picture: quantities over views, in rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import sympy as sp

from pibls.errors import InputError
from pibls.report.quantities import (
    Look,
    PictureQuantity,
    choose_fields,
    exact_functions,
    of_expression,
    quantities,
    richer_of,
)
from pibls.report.views import View, time_slices, varying
from pibls.solution import Solution
from pibls.solution.posterior import known_posterior

WHAT = ("solution", "error", "estimate", "deviation", "residual", "exact")


@dataclass(frozen=True, eq=False)
class Panel:
    """One quantity over one plane, or along one or more lines."""

    quantity: PictureQuantity
    views: tuple[View, ...]
    reference: PictureQuantity | None = None

    @property
    def is_line(self) -> bool:
        """Whether it is a graph rather than a map."""
        return len(self.views[0].names) == 1

    @property
    def title(self) -> str:
        """Its quantity and place, in words."""
        if len(self.views) > 1:
            return f"{self.quantity.title} for {len(self.views)} values of {varying(self.views)}"
        place = self.views[0].place
        return f"{self.quantity.title} at {place}" if place else self.quantity.title


def is_frames(row: list[Panel]) -> bool:
    """Tell whether a row shows one quantity over and over, in different planes."""
    return len(row) > 1 and not row[0].is_line and len({id(panel.quantity) for panel in row}) == 1


def choose_panels(
    solution: Solution,
    what: str | sp.Expr,
    field: Any,
    given: Any,
    views: tuple[View, ...],
    look: Look,
    *,
    residuals: bool,
) -> list[list[Panel]]:
    """Return the rows of panels of a picture."""
    exact = exact_functions(solution, given)
    known: list[PictureQuantity] = []
    if isinstance(what, sp.Expr):
        kinds = ["value", *(["estimate"] if solution.richer is not None else [])]
        groups = [[of_expression(solution, kind, what, look)] for kind in kinds]
    else:
        fields = choose_fields(solution, field, "plot")
        _check_kind(solution, what, field, exact)
        kinds = _kinds(solution, views, bool(exact)) if what == "solution" else [what]
        groups = [quantities(solution, kind, fields, exact, look) for kind in kinds]
        known = quantities(solution, "exact", fields, exact) if exact and what == "solution" else []
    if residuals:
        groups.append(quantities(solution, "residual", (), exact))
    rows = [row for i, drawn in enumerate(groups) for row in _rows(drawn, [] if i else known, views)]
    one_map = len(views) == 1 and len(rows[0]) == 1 and not rows[0][0].is_line
    return [[panel for row in rows for panel in row]] if one_map else rows


def _kinds(solution: Solution, views: tuple[View, ...], known: bool) -> list[str]:
    """Return the kinds of panels of a solution: itself, its error, and its deviation where no band shows it."""
    kinds = ["solution"]
    if known or solution.richer is not None:
        kinds.append("error" if known else "estimate")
    if solution.posterior is not None and len(views[0].names) > 1:
        kinds.append("deviation")
    return kinds


def _check_kind(solution: Solution, what: str, field: Any, exact: Any) -> None:
    if what == "residual" and field is not None:
        raise InputError(
            "The 'field' parameter of plot has no meaning for what='residual': residuals belong to equations. Leave it "
            "out to see that of every equation."
        )
    if what in ("error", "exact") and not exact:
        raise InputError(
            f"plot cannot draw what={what!r}: this problem has no exact solution. Give one as "
            "plot(..., exact=expression) or Problem(..., exact=expression), or draw what='estimate'."
        )
    if what == "estimate":
        richer_of(solution)
    if what == "deviation":
        known_posterior(solution)


def _rows(drawn: list[PictureQuantity], known: list[PictureQuantity], views: tuple[View, ...]) -> list[list[Panel]]:
    first, pairs = views[0], list(zip_longest(drawn, known))
    if len(first.names) == 1:
        return [[Panel(quantity, views, exact) for quantity, exact in pairs]]
    if len(views) > 1:
        return [[Panel(quantity, (view,)) for view in views] for quantity in drawn]
    rows = [[Panel(quantity, views) for quantity in drawn]]
    if not first.in_space and not drawn[0].magnitude:
        lines = time_slices(first)
        rows.append([Panel(quantity, lines, exact) for quantity, exact in pairs])
    return rows
