"""Sphinx's settings; `workflow/site.py` lays the sources out and runs it."""

from pathlib import Path

from docutils.nodes import Element, SkipNode
from latex2mathml.converter import convert
from sphinx.search.en import SearchEnglish

import tplrepro

project = "tplrepro"
author = "the tplrepro authors"
copyright = author
version = release = tplrepro.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_design",
]
html_theme = "furo"
html_title = "tplrepro"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_language = "en-numbers"
html_js_files = ["tables.js"]
exclude_patterns = ["_parts"]
nb_execution_mode = "off"  # the committed outputs are shown; `make test` compares them
nb_merge_streams = True
nb_render_markdown_format = "myst"  # the tables of verdicts, whose links lead to pages of the site
myst_enable_extensions = ["colon_fence", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 4
html_math_renderer = "mathml"  # what browsers draw by themselves: nothing comes from a network
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
suppress_warnings = ["myst.header"]  # notebooks begin a cell at any level


def formula(display):
    """Write a formula as MathML."""

    def visit(translator, node):
        translator.body.append(convert(node.astext(), display=display))
        raise SkipNode

    return visit, None


def anchors_of_page(app, doctree):
    """MyST takes an anchor for that of the last page that has one of its name; each page keeps its own."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for node in doctree.findall(Element):
        slugs |= {name: (0, name, "") for name in node["ids"] if name not in slugs}


class SearchEnglishAndNumbers(SearchEnglish):
    """Sphinx's search leaves numbers out, and "Eq. 13" needs them."""

    lang = "en-numbers"

    def word_filter(self, word):
        return word not in self.stopwords


def search_numbers(app, exception):
    """The same for the words that a reader types."""
    script = Path(app.outdir) / "_static" / "searchtools.js"
    if exception is None and script.is_file():
        skips = " || queryTerm.match(/^\\d+$/)"
        script.write_text(script.read_text(encoding="utf-8").replace(skips, ""), encoding="utf-8")


def setup(app):
    """Register how formulas are written, and what links find."""
    app.add_search_language(SearchEnglishAndNumbers)
    app.add_html_math_renderer("mathml", formula("inline"), formula("block"))
    app.connect("doctree-read", anchors_of_page)
    app.connect("build-finished", search_numbers)
