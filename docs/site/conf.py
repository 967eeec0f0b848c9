"""Sphinx's settings; `workflow/site.py` lays the sources out and runs it."""

import tplrepro

project = "tplrepro"
author = "the tplrepro authors"
copyright = author
version = release = tplrepro.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_design",
]
html_theme = "furo"
html_title = "tplrepro"
html_static_path = ["_static"]
html_css_files = ["site.css"]
nb_execution_mode = "off"  # the committed outputs are shown; `make test` compares them
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 4
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
suppress_warnings = ["myst.header"]  # notebooks begin a cell at any level
