"""A picture of measurements beside the values of a solution, and of the residuals in units of the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pibls.checks import FloatArray, IntArray
from pibls.errors import InputError
from pibls.problem import AtPoints, Statement
from pibls.report.drawing import BLUE, INK, RED, Picture, tell_status
from pibls.report.wording import lettered
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

    @cached_property
    def lines(self) -> tuple[int, list[IntArray]] | None:
        """The coordinate along which the points lie on a few lines, and the numbers of the points on each of them."""
        place, found = self.statement.place, []
        points = place.points if isinstance(place, AtPoints) else np.empty((0, 0))
        for axis in range(points.shape[1]):
            which = np.unique(np.delete(points, axis, axis=1), axis=0, return_inverse=True)[1].ravel()
            found.append((axis, [np.flatnonzero(which == line) for line in range(int(which.max()) + 1)]))
        best = min(found, key=lambda entry: len(entry[1]), default=None)
        few = best is not None and len(best[1]) <= 6 and min(map(len, best[1])) > 2
        return best if few else None

    @property
    def axis(self) -> int | None:
        """The coordinate along which there are curves, if there is one."""
        return None if self.lines is None else self.lines[0]

    @property
    def field(self) -> str | None:
        """The field that was measured, if it was one and no expression."""
        form, names = self.statement.form, self.solution.problem.field_names
        plain = [f.label for f in self.solution.problem.fields if form.expression == f]
        return plain[0] if plain and plain[0] in names else None


def draw_fit(solution: Solution) -> Picture:
    """Draw a row for every set of measurements: data with the fit and its band, and residuals in units of the noise.

    Where the points lie on a few lines, both are over the coordinate along them, with a curve for each line; elsewhere,
    over what the solution says.

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
    assert own.lines is not None
    groups = own.lines[1]
    several = len(groups) > 1
    colours = colormaps["plasma"](np.linspace(0.1, 0.85, len(groups))) if several else [BLUE]
    for group, colour in zip(groups, colours, strict=True):
        line = np.repeat(place.points[group[:1]], 300, axis=0)
        line[:, axis] = np.linspace(positions[group].min(), positions[group].max(), len(line))
        dense = ResidualFunction(own.solution, replace(own.statement, place=AtPoints(line), targets=None)).values()
        if own.field is not None and own.solution.posterior is not None:
            ends = own.solution.credible_band(line)
            low, high = (np.asarray(end[own.field] if isinstance(end, dict) else end) for end in ends)
            words = None if several else "95 % band"
            axes.fill_between(line[:, axis], low, high, color=colour, alpha=0.25, linewidth=0, label=words)
        axes.plot(line[:, axis], dense, color=colour, linewidth=1.4, label=_place(own, line[0], axis) or "fit")
        style = {"fmt": ".", "color": colour if several else INK, "markersize": 5, "linewidth": 0.8}
        words = None if several else "measured"
        axes.errorbar(positions[group], own.measured[group], own.noise[group], label=words, **style)
    axes.set_xlabel(lettered(own.solution.coordinate_names[axis]))
    axes.legend(fontsize=8, frameon=False)


def _place(own: _Set, point: FloatArray, axis: int) -> str:
    """Return the coordinates of a line among several."""
    assert own.lines is not None
    named = [(i, lettered(name)) for i, name in enumerate(own.solution.coordinate_names) if i != axis]
    return ", ".join(f"{name} = {point[i]:.4g}" for i, name in named) if len(own.lines[1]) > 1 else ""


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
