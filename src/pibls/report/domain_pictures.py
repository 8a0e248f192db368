"""Pictures of domains, with the names of the parts of their boundaries."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from pibls.checks import FloatArray, cut
from pibls.errors import InputError
from pibls.problem.domain import DomainLike
from pibls.report.drawing import INK, Picture, fit_solid
from pibls.report.outlines import curves_of, middle_of, named_parts
from pibls.report.views import View
from pibls.report.wording import lettered


def draw_domain(domain: Any, ax: Any = None) -> Any:
    """Draw a domain in one to three coordinates of space, each part of its boundary in a colour and with its name.

    >>> import sympy as sp
    >>> from pibls.geometry import Polygon
    >>> figure = draw_domain(Polygon(sp.symbols("x y"), [(0, 0), (1, 0), (0, 1)]))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['edge0', 'edge1', 'edge2']
    """
    count = len(domain.space)
    if not 1 <= count <= 3:
        raise InputError(f"A domain in {count} coordinates of space cannot be drawn. Draw slices of a solution.")
    figure, axes = None if ax is None else ax.figure, ax
    if axes is None:
        figure = Picture(
            figsize=(7.6 if count == 3 else 6.4, 1.6 if count == 1 else 4.8),
            layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1),
        )
        axes = figure.add_subplot(projection="3d" if count == 3 else None)
    if domain.atoms is not None:
        axes.scatter(*domain.atoms[:, :count].T, **({} if count > 1 else {"y": 0 * domain.atoms[:, 0]}), s=6, color=INK)
    elif count == 1:
        _draw_line(axes, domain)
    elif count == 2:
        _draw_plane(axes, domain)
    else:
        _draw_solid(axes, domain)
    for name, symbol in zip("xyz", domain.space, strict=False):
        getattr(axes, f"set_{name}label")(lettered(symbol.name), style="italic")
    axes.set_title(cut(repr(domain).strip("<>"), 70), fontsize=9)
    return figure


def embedded(domain: Any) -> str:
    """Return the picture of a domain as an element of a page."""
    data = base64.b64encode(draw_domain(domain)._repr_png_()).decode("ascii")
    return f"<img alt='the domain' style='max-width:480px' src='data:image/png;base64,{data}'>"


def _colours(count: int) -> list[Any]:
    names = "tab10" if count <= 10 else "tab20"
    return [colormaps[names](i % colormaps[names].N) for i in range(count)]


def _draw_line(axes: Any, domain: Any) -> None:
    low, high = domain.bounds[0]
    axes.plot([low, high], [0.0, 0.0], color="0.7", linewidth=3)
    parts = named_parts(domain)
    for (name, part), colour in zip(parts.items(), _colours(len(parts)), strict=True):
        for point in part.sample(2).points[:, 0]:
            axes.plot(point, 0.0, "o", color=colour)
            _name(axes, name, np.array([point, 0.0]), np.array([0.0, 1.0]), colour)
    axes.set_yticks([])
    axes.set_ylim(-1.0, 1.5)
    axes.spines[["left", "right", "top"]].set_visible(False)


def _draw_plane(axes: Any, domain: DomainLike) -> None:
    fixed = {} if domain.time is None else {2: float(domain.bounds[2, 0])}
    view = View(domain, (0, 1), fixed, 200)
    (left, right), (low, high) = view.limits
    corners = np.array([[left, low], [right, low], [right, high], [left, high], [left, low]])
    shape = Path.make_compound_path(*(Path(curve, closed=True) for curve in view.outline or [corners]))
    axes.add_patch(PathPatch(shape, facecolor="0.93", linewidth=0))
    parts = named_parts(domain)
    whole = [curve for patch in domain.boundary.patches if not patch.empty for curve in curves_of(patch)]
    axes.add_collection(LineCollection(whole, colors=INK, linewidths=1.0))
    for (name, part), colour in zip(parts.items(), _colours(len(parts)), strict=True):
        patches = [patch for patch in part.patches if not patch.empty]
        curves = [curve for patch in patches for curve in curves_of(patch)]
        axes.add_collection(LineCollection(curves, colors=[colour], linewidths=2.0, capstyle="round"))
        place, normal = middle_of(max(patches, key=lambda patch: patch.measure))
        _name(axes, name.removeprefix("edge") if len(parts) > 24 else name, place, normal, colour)
    margin = 0.18 * max(right - left, high - low)
    axes.set_xlim(left - margin, right + margin)
    axes.set_ylim(low - margin, high + margin)
    axes.set_aspect("equal")
    axes.spines[["right", "top"]].set_visible(False)


def _name(axes: Any, name: str, place: FloatArray, normal: FloatArray, colour: Any) -> None:
    """Write a name outside of a boundary, beside its middle."""
    sides = {"ha": "center", "va": "center"}
    if abs(normal[0]) > 0.4:
        sides["ha"] = "left" if normal[0] > 0 else "right"
    if abs(normal[1]) > 0.4:
        sides["va"] = "bottom" if normal[1] > 0 else "top"
    offset = (6 * normal[0], 6 * normal[1])
    style = {"textcoords": "offset points", "fontsize": 8.5, "color": colour, "annotation_clip": False}
    axes.annotate(lettered(name), tuple(place), offset, **sides, **style)


def _draw_solid(axes: Any, domain: Any) -> None:
    parts = named_parts(domain)
    for (name, part), colour in zip(parts.items(), _colours(len(parts)), strict=True):
        facets = [corners for patch in part.patches if not patch.empty for corners in patch.facets(24)]
        style = {"facecolors": [colour], "edgecolors": "w", "linewidths": 0.1, "alpha": 0.75}
        points, _, weights = part.quadrature(24)
        place = weights @ points / weights.sum()
        middle = ", ".join(f"{x:.3g}" for x in np.where(np.abs(place) > domain.tolerance, place, 0.0))
        axes.add_collection3d(Poly3DCollection(facets, label=f"{lettered(name)}   ({middle})", **style))
    fit_solid(axes, domain)
    axes.locator_params(nbins=4)
    axes.tick_params(labelsize=7)
    style = {"title": "part   (its middle)", "title_fontsize": 7.5, "fontsize": 7.5, "frameon": False}
    axes.legend(**style, loc="center left", bbox_to_anchor=(1.15, 0.5))
