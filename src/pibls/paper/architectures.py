"""Figures 1 to 3 of the paper, drawn from the library's own networks and problems: inputs, nodes and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from pibls.features import EnhancementGroup, FeatureGroup, activation, draw_network
from pibls.features.broad import BroadNetwork
from pibls.features.deep import DeepNetwork
from pibls.paper.pictures import INK, STYLES, new_figure
from pibls.problem import Problem
from pibls.problems import catalogue

ARCHITECTURES = {"1": "BLS", "2": "PINN", "3": "PI-BLS"}
_FEATURES, _MORE, _OTHER = STYLES["PI-BLS"]["color"], STYLES["PINN"]["color"], "0.35"

Column = Sequence[tuple[float, str]]
"""Heights and labels of nodes."""


def draw_architectures() -> dict[str, Figure]:
    """Return the three figures by their number in the paper, for the diffusion–reaction equation."""
    problem = catalogue()["diffusion_reaction"]()
    rng = np.random.default_rng(0)
    broad = draw_network(rng, problem.domain.bounds, [("tanh", 2, 1.0)] * 3, [("tanh", 3, 1.0)])
    first = FeatureGroup(activation("tanh"), rng.normal(size=(2, 5)), np.zeros(5))
    deep = DeepNetwork(
        broad.center, (first, EnhancementGroup(activation("tanh"), rng.normal(size=(5, 5)), np.zeros(5)))
    )
    return {
        "1": draw_architecture(broad, problem, physics=False),
        "2": draw_architecture(deep, problem),
        "3": draw_architecture(broad, problem),
    }


def draw_architecture(network: BroadNetwork | DeepNetwork, problem: Problem, *, physics: bool = True) -> Figure:
    """Draw coordinates, nodes by group, fields and, with ``physics``, the statements that they have to meet.

    >>> figure = draw_architectures()["3"]
    >>> [text.get_text() for text in figure.axes[0].texts][:2]
    ['x', 't']
    """
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    axes.axis("off")
    inputs = _column([[c.name for c in problem.domain.coordinates]])
    fields = _column([list(problem.field_names)])
    layers = _layers(network)
    columns = [inputs, *(column for column, _, _ in layers), fields]
    colours = [_OTHER, *(colour for _, colour, _ in layers), _OTHER]
    last = len(columns) - 1
    for here, (column, colour) in enumerate(zip(columns, colours, strict=True)):
        for height, text in column:
            axes.plot([here], [height], "o", markersize=19, color="white", markeredgecolor=colour, zorder=3)
            axes.text(here, height, text, ha="center", va="center", fontsize=7, color=INK, zorder=4)
    pairs = [(i, i + 1) for i in range(last)]
    if isinstance(network, BroadNetwork):
        pairs.append((1, last))  # feature nodes reach the fields past the enhancement nodes, too
    for start, end in pairs:
        edges = [[(start, low), (end, high)] for low, _ in columns[start] for high, _ in columns[end]]
        axes.add_collection(LineCollection(edges, colors=colours[start], linewidths=0.4, alpha=0.5, zorder=1))
    names = ["coordinates", *(name for *_, name in layers), "fields"]
    bottom = min(height for column in columns for height, _ in column) - 1.0
    for here, name in enumerate(names):
        axes.text(here, bottom, name, ha="center", va="top", fontsize=8, color=INK)
    if physics:
        _draw_statements(axes, problem, last, fields, bottom)
    axes.set_xlim(-0.4, last + (1.6 if physics else 0.4))
    axes.margins(y=0.08)
    return figure


def _layers(network: BroadNetwork | DeepNetwork) -> list[tuple[Column, str, str]]:
    """Return the columns of nodes with their colour and name: groups of a broad network stand above each other."""
    if isinstance(network, DeepNetwork):
        return [
            (_column([[layer.activation.name] * layer.nodes]), _FEATURES, "trained\nnodes") for layer in network.layers
        ]
    found = [(network.features, _FEATURES, "feature\ngroups"), (network.enhancement, _MORE, "enhancement\nnodes")]
    return [(_column([[g.activation.name] * g.nodes for g in groups]), c, name) for groups, c, name in found if groups]


def _column(groups: Sequence[Sequence[str]]) -> Column:
    """Return nodes from the top to the bottom, centred, with a gap between groups."""
    found, height = [], 0.0
    for group in groups:
        for text in group:
            found.append((height, text))
            height -= 1.0
        height -= 0.6
    middle = (found[0][0] + found[-1][0]) / 2
    return [(height - middle, text) for height, text in found]


def _draw_statements(axes: Any, problem: Problem, last: int, fields: Column, bottom: float) -> None:
    """Draw the equations and conditions, all of them in one least-squares problem or loss."""
    boxes = _column([[str(number)] for number, _ in enumerate(problem.statements)])
    for (height, _), statement in zip(boxes, problem.statements, strict=True):
        kind = "equation" if statement.is_equation else statement.name.partition("(")[0]
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": _OTHER}
        axes.text(last + 0.8, height, kind, ha="left", va="center", fontsize=8, color=INK, bbox=box)
        for start, _ in fields:
            axes.plot([last, last + 0.75], [start, height], color=_OTHER, linewidth=0.8, zorder=1)
    axes.text(last + 1.2, bottom, "residuals", ha="center", va="top", fontsize=8, color=INK)
