"""The pictures that a domain offers, and how it shows itself in notebooks."""

from __future__ import annotations

from typing import Any

from pibls.checks import cut
from pibls.markup import facts


class Drawable:
    """Offers a picture with the names of the parts of a boundary."""

    def plot(self: Any, ax: Any = None) -> Any:
        """Draw the domain with the names of its parts, in a new figure or into Matplotlib axes; return the figure.

        >>> from pibls.geometry import Rectangle
        >>> from sympy.abc import x, y
        >>> figure = Rectangle((x, 0, 2), (y, 0, 1)).plot()
        >>> sorted(text.get_text() for text in figure.axes[0].texts)
        ['bottom', 'left', 'right', 'top']
        """
        from pibls.report.domain_pictures import draw_domain

        return draw_domain(self, ax)

    def _repr_html_(self: Any) -> str:
        pairs = zip(self.coordinates, self.bounds, strict=True)
        bounds = (f"{low:.6g} ≤ {symbol.name} ≤ {high:.6g}" for symbol, (low, high) in pairs)
        told = facts(
            [
                ("domain", cut(repr(self), 300)),
                ("bounds", "\n".join(bounds)),
                ("measure", f"{self.measure:.6g}"),
                ("parts of the boundary", cut(", ".join(self.parts), 300) or "boundary"),
            ]
        )
        if len(self.space) not in (1, 2):
            return told
        from pibls.report.domain_pictures import embedded

        return told + embedded(self)
