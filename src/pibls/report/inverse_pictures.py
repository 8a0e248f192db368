"""Pictures of inverse problems: measurements beside the solution, and how unknown numbers are distributed."""

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
from pibls.report.quantities import band_of
from pibls.report.wording import lettered
from pibls.solution import Solution
from pibls.solution.field_functions import ResidualFunction
from pibls.solution.parameters import Parameter, Parameters

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
    def field(self) -> str | None:
        """The field that was measured, if it was one and no expression."""
        plain = [f.label for f in self.solution.problem.fields if self.statement.form.expression == f]
        return plain[0] if plain and plain[0] in self.solution.problem.field_names else None


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
        left, place = own.left, own.statement.place
        positions, label = own.measured - left, "fit"
        if own.lines is not None and isinstance(place, AtPoints):
            axis, groups = own.lines
            positions, label = place.points[:, axis], solution.coordinate_names[axis]
            _draw_along(fit, own, place.points, axis, groups)
        else:
            _draw_against(fit, own, positions)
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


def _draw_along(axes: Any, own: _Set, points: FloatArray, axis: int, groups: list[IntArray]) -> None:
    """Draw data with bars, the fit through them, and the band of a field."""
    positions, several = points[:, axis], len(groups) > 1
    others = [(i, lettered(name)) for i, name in enumerate(own.solution.coordinate_names) if i != axis]
    colours = colormaps["plasma"](np.linspace(0.1, 0.85, len(groups))) if several else [BLUE]
    for group, colour in zip(groups, colours, strict=True):
        line = np.repeat(points[group[:1]], 300, axis=0)
        line[:, axis] = np.linspace(positions[group].min(), positions[group].max(), len(line))
        dense = ResidualFunction(own.solution, replace(own.statement, place=AtPoints(line), targets=None)).values()
        if own.field is not None and own.solution.posterior is not None:
            low, high = band_of(own.solution, own.field, line, "nan")
            words = None if several else "95 % band"
            axes.fill_between(line[:, axis], low, high, color=colour, alpha=0.25, linewidth=0, label=words)
        place = ", ".join(f"{name} = {line[0, i]:.4g}" for i, name in others) if several else "fit"
        axes.plot(line[:, axis], dense, color=colour, linewidth=1.4, label=place)
        style = {"fmt": ".", "color": colour if several else INK, "markersize": 5, "linewidth": 0.8}
        words = None if several else "measured"
        axes.errorbar(positions[group], own.measured[group], own.noise[group], label=words, **style)
    axes.set_xlabel(lettered(own.solution.coordinate_names[axis]))
    axes.legend(fontsize=8, frameon=False)


def _draw_against(axes: Any, own: _Set, fitted: FloatArray) -> None:
    """Draw data over the values of the solution: on the diagonal, if it is right."""
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


_SIZE = 1.9  # inches of a panel
_REACH = 3.3  # standard deviations to each side that panels show
_HELD = (0.6827, 0.95)  # by the inner and the outer ellipse
_POINTS = 200


def draw_corner(parameters: Parameters) -> Picture:
    """Draw the distribution of every number that is determined, and ellipses for every two.

    >>> pair = Parameter("a", 1.0, 0.1, (0.8, 1.2)), Parameter("b", 2.0, 0.3, (1.4, 2.6))
    >>> figure = draw_corner(Parameters(pair, np.array([[1.0, -0.6], [-0.6, 1.0]])))
    >>> [axes.get_title() for axes in figure.axes]
    ['a = 1.00 ± 0.10', '', 'b = 2.00 ± 0.30']
    """
    known = [i for i, entry in enumerate(parameters.entries) if 0 < entry.deviation < np.inf]
    if not known:
        raise InputError(
            "There is nothing to draw: no unknown number is determined with a finite deviation. Print the parameters "
            "to see why."
        )
    entries = [parameters.entries[i] for i in known]
    count = len(entries)
    size = _SIZE * count + (1.4 if count == 1 else 0.6)
    figure = Picture(figsize=(size, 0.75 * size if count == 1 else size), layout=ConstrainedLayoutEngine())
    grid = figure.add_gridspec(count, count)
    for row, entry in enumerate(entries):
        for column in range(row):
            axes = figure.add_subplot(grid[row, column])
            correlation = float(parameters.correlation[known[row], known[column]])
            _draw_pair(axes, entries[column], entry, correlation)
            _label(axes, entries[column] if row == count - 1 else None, entry if column == 0 else None)
        axes = figure.add_subplot(grid[row, row])
        _draw_one(axes, entry)
        _label(axes, entry if row == count - 1 else None, None)
    return figure


def _draw_one(axes: Any, entry: Parameter) -> None:
    """Draw a normal density, filled over the 95 % interval."""
    values = np.linspace(*_limits(entry), _POINTS)
    density = np.exp(-0.5 * ((values - entry.value) / entry.deviation) ** 2)
    low, high = entry.interval
    axes.plot(values, density, color=BLUE, linewidth=1.4)
    axes.fill_between(values, density, where=((values >= low) & (values <= high)).tolist(), color=BLUE, alpha=0.2)
    axes.axvline(entry.value, color=INK, linewidth=0.8)
    axes.set_xlim(*_limits(entry))
    axes.set_ylim(0, 1.08)
    axes.set_yticks([])
    axes.set_title(str(entry), fontsize=9)


def _draw_pair(axes: Any, across: Parameter, along: Parameter, correlation: float) -> None:
    """Draw the ellipses that hold both numbers with given probabilities."""
    angles = np.linspace(0.0, 2.0 * np.pi, _POINTS)
    one, other = np.cos(angles), np.sin(angles)
    mixed = correlation * one + np.sqrt(max(1.0 - correlation**2, 0.0)) * other
    for held in _HELD:
        radius = np.sqrt(-2.0 * np.log(1.0 - held))
        x, y = across.value + radius * across.deviation * one, along.value + radius * along.deviation * mixed
        axes.fill(x, y, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(x, y, color=BLUE, linewidth=1.0)
    axes.plot(across.value, along.value, marker="+", color=INK)
    axes.set_xlim(*_limits(across))
    axes.set_ylim(*_limits(along))
    axes.text(0.96, 0.94, f"{correlation:.2f}", transform=axes.transAxes, ha="right", va="top", fontsize=8, color=INK)


def _limits(entry: Parameter) -> tuple[float, float]:
    return entry.value - _REACH * entry.deviation, entry.value + _REACH * entry.deviation


def _label(axes: Any, across: Parameter | None, along: Parameter | None) -> None:
    """Name the axes at the left and at the bottom of the picture; others have the same."""
    axes.locator_params(axis="x", nbins=3)
    if along is not None:
        axes.set_ylabel(along.name)
        axes.locator_params(axis="y", nbins=4)
    else:
        axes.tick_params(labelleft=False)
    if across is not None:
        axes.set_xlabel(across.name)
        axes.tick_params(axis="x", labelrotation=30)
    else:
        axes.tick_params(labelbottom=False)
