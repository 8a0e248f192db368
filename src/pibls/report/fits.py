"""A picture of measurements beside the values of a solution, and of the residuals in units of the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.problem import AtPoints, Statement
from pibls.report.drawing import BLUE, INK, RED, Picture, tell_status
from pibls.solution import Solution
from pibls.solution.field_functions import ResidualFunction

_WIDTH, _HEIGHT = 8.6, 2.9  # inches of a row: fit and residuals
_FAR = 3.0  # standard deviations beyond which a residual is marked


@dataclass(frozen=True, eq=False)
class _Set:
    """One set of measurements: measured values, those of the solution, and the noise."""

    solution: Solution
    statement: Statement
    noise: FloatArray

    @property
    def measured(self) -> FloatArray:
        """The measured values."""
        assert self.statement.targets is not None
        return self.statement.targets

    @property
    def left(self) -> FloatArray:
        """The measured values less those of the solution."""
        return -ResidualFunction(self.solution, self.statement).values()

    @property
    def axis(self) -> int | None:
        """The only coordinate in which the points differ, if there is one."""
        place = self.statement.place
        vary = np.flatnonzero(np.ptp(place.points, axis=0)) if isinstance(place, AtPoints) else np.empty(0)
        return int(vary[0]) if len(vary) == 1 else None

    @property
    def field(self) -> str | None:
        """The field that was measured, if it was one and no expression."""
        form, names = self.statement.form, self.solution.problem.field_names
        plain = [f.label for f in self.solution.problem.fields if form.expression == f]
        return plain[0] if plain and plain[0] in names else None


def draw_fit(solution: Solution) -> Picture:
    """Draw a row for every set of measurements: data with the fit and its band, and residuals in units of the noise.

    Along a line, both are over the coordinate; elsewhere, over what the solution says.

    >>> from pibls import problems, solve
    >>> figure = draw_fit(solve(problems.inverse.heat_diffusivity(noise=0.01)))
    >>> [axes.get_title() for axes in figure.axes]
    ['u at 10 points', 'Residuals in units of the noise']
    """
    sets = [_Set(solution, s, _noise(solution, s)) for s in solution.problem.statements if s.targets is not None]
    if not sets:
        raise InputError("The 'what' parameter of plot is 'fit', and the problem has no measurements. Draw 'solution'.")
    figure = Picture(figsize=(_WIDTH, _HEIGHT * len(sets)), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06))
    grid = figure.add_gridspec(len(sets), 2, width_ratios=(1.25, 1.0))
    for row, own in enumerate(sets):
        fit, rest = figure.add_subplot(grid[row, 0]), figure.add_subplot(grid[row, 1])
        left = own.left
        positions, label = _positions(own, left)
        if own.axis is None:
            _draw_against(fit, own, left)
        else:
            _draw_along(fit, own, own.axis, positions)
        fit.set_title(own.statement.name.partition("(")[2].split(", noise")[0].rstrip(")"), fontsize=10)
        _draw_rest(rest, positions, left / own.noise, label)
        rest.set_title("Residuals in units of the noise", fontsize=10)
        rest.locator_params(axis="x", nbins=6)
    tell_status(figure, solution)
    return figure


def _noise(solution: Solution, statement: Statement) -> FloatArray:
    """Return the noise of every value: given, found, or as large as residuals are."""
    if statement.noise is not None:
        return statement.noise
    values = ResidualFunction(solution, statement).values()
    found = solution.parameters.noise if solution.parameters is not None else None
    size = (found or {}).get(statement.name) or float(np.sqrt(np.mean(values**2))) or 1.0
    return np.full(len(values), size)


def _positions(own: _Set, left: FloatArray) -> tuple[FloatArray, str]:
    place = own.statement.place
    if own.axis is None or not isinstance(place, AtPoints):
        return own.measured - left, "fit"
    return place.points[:, own.axis], own.solution.coordinate_names[own.axis]


def _draw_along(axes: Any, own: _Set, axis: int, positions: FloatArray) -> None:
    """Draw data with bars, the fit through them, and the band of a field."""
    place = own.statement.place
    assert isinstance(place, AtPoints)
    line = np.repeat(place.points[:1], 300, axis=0)
    line[:, axis] = np.linspace(positions.min(), positions.max(), len(line))
    dense = ResidualFunction(own.solution, replace(own.statement, place=AtPoints(line), targets=None)).values()
    if own.field is not None and own.solution.posterior is not None:
        ends = own.solution.credible_band(line)
        low, high = (np.asarray(end[own.field] if isinstance(end, dict) else end) for end in ends)
        axes.fill_between(line[:, axis], low, high, color=BLUE, alpha=0.25, linewidth=0, label="95 % band")
    axes.plot(line[:, axis], dense, color=BLUE, linewidth=1.4, label="fit")
    axes.errorbar(positions, own.measured, own.noise, fmt=".", color=INK, markersize=5, linewidth=0.8, label="measured")
    axes.set_xlabel(own.solution.coordinate_names[axis])
    axes.legend(fontsize=8, frameon=False)


def _draw_against(axes: Any, own: _Set, left: FloatArray) -> None:
    """Draw data over the values of the solution: on the diagonal, if it is right."""
    fitted = own.measured - left
    ends = [min(fitted.min(), own.measured.min()), max(fitted.max(), own.measured.max())]
    axes.plot(ends, ends, color=BLUE, linewidth=1.4)
    axes.errorbar(fitted, own.measured, own.noise, fmt=".", color=INK, markersize=4, linewidth=0.6)
    axes.set_xlabel("fit")
    axes.set_ylabel("measured")


def _draw_rest(axes: Any, positions: FloatArray, scaled: FloatArray, label: str) -> None:
    """Draw residuals; noise leaves 95 % of them in the shaded strip."""
    axes.axhspan(-1.96, 1.96, color="0.9", linewidth=0)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    far = np.abs(scaled) > _FAR
    axes.plot(positions[~far], scaled[~far], ".", color=BLUE, markersize=5)
    axes.plot(positions[far], scaled[far], ".", color=RED, markersize=6)
    most = max(1.1 * float(np.abs(scaled).max()), 2.5)
    axes.set_ylim(-most, most)
    axes.set_xlabel(label)
