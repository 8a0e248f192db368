"""Which panels make up a picture: quantities over views, in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pibls.errors import InputError
from pibls.report.quantities import PictureQuantity, choose_fields, exact_functions, quantities
from pibls.report.views import CloudView, View, time_slices, varying
from pibls.solution import Solution

WHAT = ("solution", "error", "residual", "exact")


@dataclass(frozen=True, eq=False)
class Panel:
    """One quantity over one plane, or along one or more lines."""

    quantity: PictureQuantity
    views: tuple[View | CloudView, ...]
    reference: PictureQuantity | None = None

    @property
    def is_line(self) -> bool:
        """Whether it is a graph rather than a map."""
        return len(self.views[0].names) == 1

    @property
    def title(self) -> str:
        """Its quantity and place, in words."""
        views = [view for view in self.views if isinstance(view, View)]
        if len(views) > 1:
            return f"{self.quantity.title} for {len(views)} values of {varying(views)}"
        place = self.views[0].place
        return f"{self.quantity.title} at {place}" if place else self.quantity.title


def is_frames(row: list[Panel]) -> bool:
    """Tell whether a row shows one quantity over and over, in different planes."""
    return len(row) > 1 and not row[0].is_line and len({id(panel.quantity) for panel in row}) == 1


def choose_panels(
    solution: Solution, what: str, field: Any, given: Any, views: tuple[View | CloudView, ...], owner: str
) -> list[list[Panel]]:
    """Return the rows of panels of a picture."""
    fields = choose_fields(solution, field, owner)
    if what == "residual" and field is not None:
        raise InputError(
            f"The 'field' parameter of {owner} has no meaning for what='residual': residuals belong to equations. "
            "Leave it out to see that of every equation."
        )
    exact = exact_functions(solution, given, owner)
    if what in ("error", "exact") and not exact:
        raise InputError(
            f"{owner} cannot draw what={what!r}: this problem has no exact solution. Give one as "
            f"{owner}(..., exact=expression) or Problem(..., exact=expression), or draw what='residual'."
        )
    kinds = [what] if what != "solution" else ["solution", "error" if exact else "residual"]
    rows: list[list[Panel]] = []
    for kind in kinds:
        known = quantities(solution, "exact", fields, exact) if kind == "solution" and exact else None
        drawn = quantities(solution, kind, fields, exact)
        rows += _rows(drawn, known or [None] * len(drawn), views)
    one_map = len(views) == 1 and len(rows[0]) == 1 and not rows[0][0].is_line
    return [[panel for row in rows for panel in row]] if one_map else rows


def _rows(
    drawn: list[PictureQuantity], known: Sequence[PictureQuantity | None], views: tuple[View | CloudView, ...]
) -> list[list[Panel]]:
    first = views[0]
    if len(first.names) == 1:
        return [[Panel(quantity, views, exact) for quantity, exact in zip(drawn, known, strict=True)]]
    if len(views) > 1:
        return [[Panel(quantity, (view,)) for view in views] for quantity in drawn]
    rows = [[Panel(quantity, views) for quantity in drawn]]
    if isinstance(first, View) and not first.in_space and not drawn[0].magnitude:
        lines = time_slices(first)
        rows.append([Panel(quantity, lines, exact) for quantity, exact in zip(drawn, known, strict=True)])
    return rows
