"""Settings of the documentation site: ``make docs`` builds it into ``out/docs``, without a network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pibls

project = "pibls"
author = "The pibls developers"
project_copyright = "The pibls developers"
version = release = pibls.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "mathml"]
exclude_patterns = ["README.md"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False

# Formulas become MathML when the site is built: nothing is fetched, and no JavaScript runs, to show them.
html_math_renderer = "mathml"

html_theme = "furo"
html_title = f"pibls {release}"
html_static_path = ["static"]
html_css_files = ["pibls.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
