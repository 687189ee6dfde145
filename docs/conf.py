"""How the site is built: ``make docs``. It asks nothing from another host, and formulae are MathML."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "privacygames"
author = "the privacygames team"
copyright = author  # noqa: A001 - Sphinx's name for it
version = release = installed("privacygames")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.doctest",
    "landmarks",
    "mathml",
    "packages",
]
exclude_patterns = ["extensions"]
html_theme = "furo"
html_title = f"privacygames {release}"
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]

autosummary_generate = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_use_ivar = True

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]
