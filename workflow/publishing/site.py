"""Build the site: ``make docs`` renders the articles, copies all sources to build/site, and runs
Sphinx.

The layout stays, so links between pages, notebooks and figures work in both places. The gallery
comes from config/notebooks.yaml, the pages of the API from the public names of the package.
"""

import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from types import FunctionType

import yaml

from experiments.provenance import ROOTS
from tplreport.files import write_whole
from workflow.configuration import PAPERS, ROOT, read_notebooks, title_of
from workflow.publishing import articles
from workflow.publishing.citation import bibtex

PAGES = (
    "REPRODUCING.md",
    "ARTIFACT.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "data/README.md",
)
# A name and its file in docs/map.md.
CODE_LINK = re.compile(r"`([\w.]+)` \(\[([\w/]+\.py)\]\(\.\./[\w/]+\.py\)\)")
# The packages of the wheel.
ROOFS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]["packages"]


def main():
    """Lay out and build, warnings as errors; returns Sphinx's status. An argument names another
    builder."""
    builder = sys.argv[1] if len(sys.argv) > 1 else "html"
    source, target = ROOT / "build" / "site" / "source", ROOT / "build" / "site" / builder
    unjudged = articles.main()
    lay_out(source)
    options = [
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "auto",
        "-d",
        str(ROOT / "build" / "site" / "cache"),
    ]
    sphinx = [sys.executable, "-m", "sphinx", "-b", builder, *options, source, target]
    status = subprocess.run(sphinx).returncode or unjudged
    written = target.relative_to(ROOT) / ("index.html" if builder == "html" else "output.txt")
    print(f"The site: {written}" if status == 0 else "The site has defects, listed above")
    return status


def lay_out(source):
    """Copy pages, notebooks, figures and tables with their times, so that Sphinx reuses them; write
    generated pages."""
    copied = {path: ROOT / path for path in PAGES if (ROOT / path).is_file()}
    kinds = (
        ("docs", "*.md"),
        ("notebooks", "*/*.ipynb"),
        ("figures", "*.png"),
        ("figures", "*.csv"),
        ("tests", "*.py"),
    )
    for folder, pattern in kinds:
        copied |= {
            path.relative_to(ROOT).as_posix(): path for path in (ROOT / folder).rglob(pattern)
        }
    copied |= {
        f"articles/{path.name}": path for path in (ROOT / "build" / "articles").glob("*.pdf")
    }
    copied |= {
        path.relative_to(ROOT).as_posix(): path
        for room in ROOTS
        for path in (ROOT / room).rglob("*.py")
    }
    site = ROOT / "docs" / "site"
    copied = {
        name: path
        for name, path in copied.items()
        if site not in path.parents and ".ipynb_" not in name
    }
    copied |= {
        path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()
    }
    copied["_parts/readme.md"] = ROOT / "README.md"  # the first page includes parts of it
    shutil.rmtree(source, ignore_errors=True)
    for name, path in copied.items():
        content = path.read_bytes()
        if name.endswith(".md"):  # an anchor that GitHub knows, in MyST's words
            content = re.sub(rb'<a id="([\w-]+)"></a>', rb"[]{#\1}", content)
        write_whole(source / name, content)
        shutil.copystat(path, source / name)
    papers_to_code = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    generated = {
        "docs/gallery.md": gallery(),
        "docs/map.md": with_links_to_api(papers_to_code),
        "_parts/tplrepro.bib": bibtex(citation),
        **api_pages(),
    }
    for name, text in generated.items():
        write_whole(source / name, text.encode())


def with_links_to_api(text: str) -> str:
    """docs/map.md, whose links to code lead to the API.

    A browser would download the files that they name in the repository, which share names. A name
    that is not public has no page: its file is named without a link.
    """
    documented = {}
    for path, value in documented_names().items():
        if inspect.isroutine(value) or inspect.isclass(value):
            file = value.__module__.replace(".", "/") + ".py"
            documented[value.__qualname__, file] = path

    def link(found: re.Match) -> str:
        name, file = found[1], found[2]
        owner, _, member = name.partition(".")
        path = documented.get((owner, file))
        if path is None:
            return f"`{name}` ({file})"
        if member:
            path += f".{member}"
        return f"{{py:obj}}`{name} <{path}>`"

    return CODE_LINK.sub(link, text)


def gallery():
    """The page of all figures as cards, by paper, and the list of all notebooks."""
    entries, text = read_notebooks(), "# Gallery\n\n"
    text += "Each card leads to the notebook of a figure, with its outputs.\n\n"
    shared = Counter(entry.notebook for entry in entries.values())
    for paper, group in groupby(entries, lambda name: name.split("/")[0]):
        text += f"## {PAPERS[paper]}\n\n"
        text += ":::::{grid} 1 2 3 3\n:gutter: 2\n:class-container: gallery\n\n"
        text += (
            "".join(_card(entries[name], shared[entries[name].notebook] > 1) for name in group)
            + ":::::\n\n"
        )
    return text + _contents(f"/notebooks/{name}" for name in shared)


def _card(entry, shared):
    """The card of a figure: its title and place, its picture, and links."""
    paper, _, label = entry.name.replace("_", " ").partition("/")
    place, _, shown = title_of(entry.path()).rpartition(": ")
    title = label if shared else shown
    text = f"::::{{grid-item-card}} {title[:1].upper()}{title[1:]}\n"
    text += f":link: /notebooks/{entry.notebook}\n:link-type: doc\n"
    if (ROOT / "figures" / f"{entry.name}.png").is_file():
        text += f":img-top: /figures/{entry.name}.png\n:img-alt: {place or label}\n"
    text += (
        f"\n{place}\n\n:::{{card-footer}}\n{{download}}`.ipynb </notebooks/{entry.notebook}.ipynb>`"
    )
    if (ROOT / "docs" / "claims" / f"{paper}.yaml").is_file():
        text += f" · [claims](/docs/claims/{paper}.md)"
    return f"{text}\n:::\n::::\n\n"


def _contents(names):
    """A list of pages that Sphinx needs and no reader sees."""
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```", ""])


def public_names():
    """The value of each public name by its path; what has several paths is listed under the
    shortest."""
    paths, found = [], {}
    for roof in map(importlib.import_module, ROOFS):
        below = [
            part.name
            for part in pkgutil.iter_modules(roof.__path__, f"{roof.__name__}.")
            if part.ispkg
        ]
        for room in [roof, *map(importlib.import_module, below)]:
            for name in getattr(room, "__all__", ()):
                path, value = f"{room.__name__}.{name}", getattr(room, name)
                if not inspect.ismodule(value):
                    paths.append((path, value))
                # such as tplrepro.published, a module and no room
                elif not hasattr(value, "__path__"):
                    inner = [
                        (name, one) for name, one in vars(value).items() if inspect.isroutine(one)
                    ]
                    own = [(name, one) for name, one in inner if one.__module__ == value.__name__]
                    paths += [
                        (f"{path}.{name}", one) for name, one in own if not name.startswith("_")
                    ]
    for path, value in sorted(paths, key=lambda pair: pair[0].count(".")):
        if all(value is not known for known in found.values()):
            found[path] = value
    return found


def returned_types(values: Iterable) -> dict[str, type]:
    """The classes of the packages that public functions and methods return, by their paths."""
    found = {}
    for value in values:
        for function in _functions_of(value):
            for name in re.findall(r"\w+", str(function.__annotations__.get("return", ""))):
                returned = function.__globals__.get(name)
                if inspect.isclass(returned) and returned.__module__.partition(".")[0] in ROOFS:
                    found[f"{returned.__module__}.{returned.__qualname__}"] = returned
    return found


def _functions_of(value: object) -> list[FunctionType]:
    """A function itself, or the public methods and properties of a class."""
    parts = [value]
    if inspect.isclass(value):
        parts = [part for name, part in vars(value).items() if not name.startswith("_")]
    unwrapped = [getattr(part, "fget", getattr(part, "__func__", part)) for part in parts]
    return [part for part in unwrapped if isinstance(part, FunctionType)]


def documented_names() -> dict[str, object]:
    """What the API describes: the public names, and the classes of what they return."""
    public = public_names()
    known = set(map(id, public.values()))
    results = {
        path: one for path, one in returned_types(public.values()).items() if id(one) not in known
    }
    return public | results


def api_pages():
    """Text by name: a page for each room with what it defines, each public name once, and a page of
    tables by room with a line for each name."""
    rooms = {}
    for path, value in documented_names().items():
        rooms.setdefault(_room_of(path, value), {})[path] = value
    pages = {f"docs/api/{room}.md": _room_page(room, names) for room, names in rooms.items()}
    index = "# API\n\nA page for each room of the three packages, with shapes, units, errors, "
    index += "sources and examples.\n\n"
    for room, names in rooms.items():
        listed = "".join(f"   {path}\n" for path in names)
        table = f"```{{eval-rst}}\n.. autosummary::\n\n{listed}```\n\n"
        index += f"## [{room}]({room}.md)\n\n{_first_paragraph(room)}\n\n{table}"
    return pages | {"docs/api/index.md": index + _contents(rooms)}


def _room_of(path, value):
    """The module whose page describes a name: a room of the papers, or another package."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return path.rpartition(".")[0]
    roof, _, inside = value.__module__.partition(".")
    if roof != ROOFS[0]:
        return roof
    return f"{roof}.{inside.split('.')[0]}"


def _room_page(room, names):
    """The page of a room, with the values of its names by path."""
    directives = "".join(_directive(path, value) for path, value in names.items())
    return f"# {room}\n\n{_first_paragraph(room)}\n\n```{{eval-rst}}\n{directives}```\n"


def _directive(path, value):
    """What has Sphinx describe a name."""
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n\n"
    if not inspect.isclass(value):
        return f".. autodata:: {path}\n\n"
    if issubclass(value, BaseException):
        return f".. autoexception:: {path}\n\n"
    return f".. autoclass:: {path}\n   :members:\n\n"


def _first_paragraph(module):
    """The first paragraph of a module's docstring, on one line."""
    paragraph = inspect.getdoc(importlib.import_module(module)).split("\n\n")[0]
    return " ".join(paragraph.split())


if __name__ == "__main__":
    sys.exit(main())
