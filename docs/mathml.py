"""A Sphinx extension that writes formulas as MathML, which browsers show by themselves.

MathJax, the usual choice, is fetched from the network or weighs megabytes; LaTeX images need LaTeX. MathML needs one
small package when the site is built and nothing when it is read.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

__all__ = ["setup"]


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def _block(translator: Any, node: Any) -> None:
    label = f'<span class="eqno">({escape(str(node["number"]))})</span>' if node.get("number") else ""
    translator.body.append(f'<div class="math">{label}{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the writer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
