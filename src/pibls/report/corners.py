"""A picture of unknown numbers: how each is distributed, and every two of them together."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pibls.errors import InputError
from pibls.report.drawing import BLUE, INK, Picture
from pibls.solution.parameters import Parameter, Parameters

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
