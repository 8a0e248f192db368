"""The surface of a domain in space, coloured by what a solution is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.report.drawing import Picture
from pibls.report.quantities import Quantity
from pibls.report.scales import magnitude_scale, value_scale

__all__ = ["draw_surfaces"]

_ACROSS = 60  # facets along a patch as large as the whole surface
_FEWEST = 4
_DARKEST = 0.75
_LIGHT = np.array([0.3, -0.5, 0.81])


def draw_surfaces(domain: Any, quantities: list[Quantity], n: int | None) -> Picture:
    """Return a figure with one view of the surface per quantity."""
    if len(domain.coordinates) != 3 or domain.time is not None or domain.atoms is not None:
        raise InputError(
            f"The 'surface' parameter of plot is for solids in three coordinates of space. Got a domain in "
            f"{domain.coordinates}. Leave it out."
        )
    facets = _facets(domain, n or _ACROSS)
    middles = np.stack([corners.mean(axis=0) for corners in facets])
    light = np.array([_light(corners) for corners in facets])
    figure = Picture(figsize=(4.8 * len(quantities), 4.2), layout="constrained")
    for number, quantity in enumerate(quantities, 1):
        axes: Any = figure.add_subplot(1, len(quantities), number, projection="3d")
        values = quantity.function(middles)
        scale = magnitude_scale(values) if quantity.magnitude else value_scale(values)
        colours = ScalarMappable(scale.norm, scale.colours)
        shaded = colours.to_rgba(values)
        shaded[:, :3] *= light[:, None]
        axes.add_collection3d(Poly3DCollection(facets, facecolors=shaded, edgecolors=shaded, linewidths=0.3))
        for name, symbol, (low, high) in zip("xyz", domain.coordinates, domain.bounds, strict=True):
            getattr(axes, f"set_{name}lim")(low, high)
            getattr(axes, f"set_{name}label")(symbol.name, style="italic")
        axes.set_box_aspect(domain.bounds[:, 1] - domain.bounds[:, 0])
        axes.locator_params(nbins=4)
        axes.tick_params(labelsize=7)
        axes.set_title(quantity.title, fontsize=10)
        figure.colorbar(colours, ax=axes, shrink=0.6, pad=0.1)
    return figure


def _light(corners: FloatArray) -> float:
    """Return the share of its colour that a facet is shown with: a little less where it turns away from the light."""
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normal = normal + np.cross(corners[2] - corners[0], corners[-1] - corners[0])
    size = float(np.linalg.norm(normal))
    return _DARKEST + (1.0 - _DARKEST) * abs(float(normal @ _LIGHT)) / size if size > 0.0 else 1.0


def _facets(domain: Any, across: int) -> list[FloatArray]:
    patches = [patch for patch in domain.boundary.patches if not patch.empty]
    whole = sum(patch.measure for patch in patches)
    counts = [max(_FEWEST, round(across * float(np.sqrt(patch.measure / whole)))) for patch in patches]
    return [corners for patch, m in zip(patches, counts, strict=True) for corners in patch.facets(m)]
