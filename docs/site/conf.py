"""Sphinx's settings; `workflow/publishing/site.py` lays the sources out and runs it."""

import re
from importlib.util import find_spec
from pathlib import Path

import pypandoc
from docutils.nodes import Element, SkipNode, Text, math, math_block
from sphinx.ext import autosummary
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
    "sphinx.ext.autosummary",
    "sphinx_design",
]
html_theme = "furo"
html_title = "tplrepro"
# Formulas need a font that has their large symbols; this package brings one.
html_static_path = [
    "_static",
    str(Path(find_spec("ziamath").origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"),
]
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
autosummary_generate = False  # a page for each room describes what the tables list
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.", "Eqs.")  # no sentence ends there
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
suppress_warnings = ["myst.header"]  # notebooks begin a cell at any level


def formulas_of_page(app, doctree):
    """Turn the formulas of a page into MathML, by one call of Pandoc, which takes a third of a
    second."""
    nodes = [*doctree.findall(math), *doctree.findall(math_block)]
    marks = ["$$" if isinstance(node, math_block) else "$" for node in nodes]
    texts = [
        mark + " ".join(node.astext().split()) + mark
        for node, mark in zip(nodes, marks, strict=True)
    ]
    written = (
        pypandoc.convert_text("\n\n".join(texts), "html", "markdown", extra_args=["--mathml"])
        if nodes
        else ""
    )
    # The font's prime is raised already; Pandoc leaves no space between a function and its
    # argument.
    prime = '<mo lspace="0" rspace="0">′</mo>'
    written = re.sub(r"<msup>(<mi>.</mi>)<mo>′</mo></msup>", rf"<mrow>\1{prime}</mrow>", written)
    written = re.sub("<annotation.*?</annotation>", "", written)
    written = written.replace(
        "&#8289;</mo></mrow><mi>", '&#8289;</mo></mrow><mspace width="0.167em"></mspace><mi>'
    )
    for node, formula in zip(nodes, re.findall("<math.*?</math>", written, re.DOTALL), strict=True):
        node["mathml"] = formula
        # No line may begin with the comma that follows a formula.
        following = node.next_node(descend=False, siblings=True)
        mark = re.match("[-.,;:)]+", following) if isinstance(following, Text) else None
        if mark:
            node["mathml"] = f'<span class="formula">{formula}{mark[0]}</span>'
            following.parent.replace(following, Text(following[mark.end() :]))


def write_formula(translator, node):
    """Write what `formulas_of_page` has made of it."""
    translator.body.append(node["mathml"])
    raise SkipNode


COMMANDS = (
    "alpha beta gamma delta epsilon eta lambda mu phi pi rho sigma tau log max min sum Pr".split()
)
# In docstrings: code, which stays as it is; or a symbol with an index or a power, such as BPL_t,
# and Pr(a | b).
SYMBOL = "|".join([*COMMANDS, "[BFT]PL", "DP", "[A-Za-z]", r"\d"])
INDEX = rf"[_^](?:\{{[^}}]*\}}|-?(?:{SYMBOL}|\w\w)\b|[-+])"
ARGUMENTS = r"(?:\([^()]*\)|\[[^][]*\])?"
FORMULA = rf"`+[^`]*`+|(?<![\w`])((?:{SYMBOL})(?:{INDEX})+{ARGUMENTS}|Pr\([^()]*\))(?![\w`([^])"


def as_math(found):
    """A formula of a docstring as reStructuredText."""
    if not found[1]:
        return found[0]
    text = re.sub(r"([_^])(-?\w+)", r"\1{\2}", found[1])
    text = text.replace("|", "∣").replace("<=", "≤").replace("..", "…")
    words = "[A-Za-z]{2,}(?: [A-Za-z]{2,})*"
    return f":math:`{re.sub(words, lambda word: _command_or_text(word[0]), text)}`"


def _command_or_text(word):
    return f"\\{word}" if word in COMMANDS else rf"\text{{{word}}}"


def docstring(app, what, name, value, options, lines):
    """Write formulas as such, and what stands behind a parameter's name as its description: it is
    more than a type."""
    text, *examples = re.split(r"\n(?=Examples\n|>>> )", "\n".join(lines), maxsplit=1)
    text, heading, parameters = text.partition("\nParameters\n")
    parameters = re.sub(
        r"^(\S.*?) : (.*[^.])(?=\n +[A-Z])", r"\1 : \2.", parameters, flags=re.MULTILINE
    )
    parameters = re.sub(r"^(\S.*?) : (.*)", r"\1\n    \2", parameters, flags=re.MULTILINE)
    lines[:] = "\n".join([re.sub(FORMULA, as_math, text + heading + parameters), *examples]).split(
        "\n"
    )


def anchors_of_page(app, doctree):
    """MyST takes an anchor for that of the last page that has one of its name; each page keeps its
    own."""
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
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-docstring", docstring, priority=400)  # before numpydoc
    app.connect("doctree-read", formulas_of_page)
    app.connect("doctree-read", anchors_of_page)
    app.connect("build-finished", search_numbers)
