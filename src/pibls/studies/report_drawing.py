"""What the figures of the report share: colours of the methods, look of the axes, files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pibls.studies.report_ledger import label

__all__ = ["EXACT", "INK", "STYLES", "legend", "new_figure", "save", "style_axes"]

INK = "0.25"
# Colours that stay apart for colour-blind readers; markers and dashes stay apart in black and white.
STYLES: dict[str, dict[str, Any]] = {
    "PI-BLS": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "PINN": {"color": "#D55E00", "marker": "s", "linestyle": (0, (5, 1.5))},
    "PI-ELM": {"color": "#009E73", "marker": "^", "linestyle": (0, (3, 1, 1, 1))},
    "BPI-ELM": {"color": "#AA4499", "marker": "D", "linestyle": (0, (1, 1.2))},
    "beyond": {"color": "#56B4E9", "marker": "o", "linestyle": "-"},
    "solve": {"color": "#222222", "marker": "P", "linestyle": "-"},
}
EXACT: dict[str, Any] = {"color": "0.72", "linewidth": 4.5, "solid_capstyle": "round"}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06))


def style_axes(axes: Any) -> None:
    """Give axes the look that all graphs of the report share."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(linewidth=0.6, color=INK)
    axes.minorticks_off()
    axes.tick_params(labelsize=8, color=INK, width=0.6)
    axes.grid(color="0.91", linewidth=0.6)
    axes.set_axisbelow(True)


def legend(figure: Figure, handles: list[Any]) -> None:
    """Put one legend for all panels above them."""
    names = [label(handle.get_label()) for handle in handles]
    figure.legend(handles, names, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9)


def save(figure: Figure, folder: Path, name: str) -> bytes:
    """Write a figure as PNG and PDF and return it as SVG, the same bytes for the same picture."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})
    # The layout is found once; the other formats keep it.
    figure.set_layout_engine("none")
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "Producer": None})
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
