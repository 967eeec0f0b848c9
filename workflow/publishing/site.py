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
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

import yaml

from experiments.provenance import ROOTS
from tplreport.files import write_whole
from workflow.configuration import PAPERS, ROOT, Notebook, read_notebooks, title_of
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
# Folders of what is copied, and of which files.
COPIED = (
    ("docs", "*.md"),
    ("notebooks", "*/*.ipynb"),
    ("figures", "*.png"),
    ("figures", "*.csv"),
    ("tests", "*.py"),
)
# Read all files, warnings as errors, with a process for each processor.
SPHINX_OPTIONS = ("-W", "--keep-going", "-q", "-j", "auto")
# A name and its file in docs/map.md.
CODE_LINK = re.compile(r"`([\w.]+)` \(\[([\w/]+\.py)\]\(\.\./[\w/]+\.py\)\)")
# The packages of the wheel.
ROOFS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]["packages"]


def main() -> int:
    """Lay out and build, warnings as errors; returns Sphinx's status. An argument names another
    builder."""
    builder = "html"
    if len(sys.argv) > 1:
        builder = sys.argv[1]
    first_page = "output.txt"
    if builder == "html":
        first_page = "index.html"
    site = ROOT / "build" / "site"
    target = site / builder
    unjudged = articles.main()
    lay_out(site / "source")
    cache = ("-d", str(site / "cache"))
    sphinx = [sys.executable, "-m", "sphinx", "-b", builder, *SPHINX_OPTIONS, *cache]
    status = subprocess.run([*sphinx, site / "source", target]).returncode or unjudged
    if status == 0:
        print(f"The site: {target.relative_to(ROOT) / first_page}")
    else:
        print("The site has defects, listed above")
    return status


def lay_out(source: Path) -> None:
    """Copy pages, notebooks, figures and tables with their times, so that Sphinx reuses them; write
    generated pages."""
    shutil.rmtree(source, ignore_errors=True)
    for name, path in copied_files().items():
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


def copied_files() -> dict[str, Path]:
    """What is copied, by its place in the site; files of docs/site stand at the top."""
    site = ROOT / "docs" / "site"
    paths = [ROOT / page for page in PAGES if (ROOT / page).is_file()]
    for folder, pattern in (*COPIED, *((room, "*.py") for room in ROOTS)):
        paths += (ROOT / folder).rglob(pattern)
    copied = {}
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if site not in path.parents and ".ipynb_" not in name:
            copied[name] = path
    for path in (ROOT / "build" / "articles").glob("*.pdf"):
        copied[f"articles/{path.name}"] = path
    for path in site.rglob("*"):
        if path.is_file():
            copied[path.relative_to(site).as_posix()] = path
    copied["_parts/readme.md"] = ROOT / "README.md"  # the first page includes parts of it
    return copied


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
        """The link to the API in place of a link to code, or the name alone if it has no page."""
        name = found[1]
        file = found[2]
        owner, _, member = name.partition(".")
        path = documented.get((owner, file))
        if path is None:
            return f"`{name}` ({file})"
        if member:
            path += f".{member}"
        return f"{{py:obj}}`{name} <{path}>`"

    return CODE_LINK.sub(link, text)


def gallery() -> str:
    """The page of all figures as cards, by paper, and the list of all notebooks."""
    entries = read_notebooks()
    text = "# Gallery\n\nEach card leads to the notebook of a figure, with its outputs.\n\n"
    figures_of = Counter(entry.notebook for entry in entries.values())
    for paper, group in groupby(entries, lambda name: name.split("/")[0]):
        text += f"## {PAPERS[paper]}\n\n"
        text += ":::::{grid} 1 2 3 3\n:gutter: 2\n:class-container: gallery\n\n"
        for name in group:
            entry = entries[name]
            text += _card(entry, is_one_of_several=figures_of[entry.notebook] > 1)
        text += ":::::\n\n"
    return text + _contents(f"/notebooks/{name}" for name in figures_of)


def _card(entry: Notebook, is_one_of_several: bool) -> str:
    """The card of a figure: its title and place, its picture, and links.

    One of several figures of a notebook has its own name as title, any other that of the notebook.
    """
    paper, _, label = entry.name.replace("_", " ").partition("/")
    place, _, title = title_of(entry.path()).rpartition(": ")
    if is_one_of_several:
        title = label
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


def _contents(names: Iterable[str]) -> str:
    """A list of pages that Sphinx needs and no reader sees."""
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```", ""])


class PublicName(NamedTuple):
    """What a user imports, by one of its paths."""

    path: str  # such as tplrepro.published.algorithm_1
    value: object


def public_names() -> dict[str, object]:
    """The value of each public name by its path; what has several paths is listed under the
    shortest."""
    names = [name for package in packages() for name in names_of_package(package)]
    listed = {}
    seen = set()
    for path, value in sorted(names, key=lambda name: name.path.count(".")):
        if id(value) not in seen:
            listed[path] = value
            seen.add(id(value))
    return listed


def packages() -> Iterator[ModuleType]:
    """The packages of the wheel, each followed by the packages directly below it."""
    for roof_name in ROOFS:
        roof = importlib.import_module(roof_name)
        yield roof
        for part in pkgutil.iter_modules(roof.__path__, f"{roof_name}."):
            if part.ispkg:
                yield importlib.import_module(part.name)


def names_of_package(package: ModuleType) -> Iterator[PublicName]:
    """What a package exports; of a module in it, such as tplrepro.published, the functions."""
    for name in getattr(package, "__all__", ()):
        path = f"{package.__name__}.{name}"
        value = getattr(package, name)
        is_package = hasattr(value, "__path__")  # which has names of its own
        if not inspect.ismodule(value):
            yield PublicName(path, value)
        elif not is_package:
            yield from functions_of_module(value, path)


def functions_of_module(module: ModuleType, path: str) -> Iterator[PublicName]:
    """The public functions that a module defines; those that it imports are listed elsewhere."""
    for name, value in vars(module).items():
        is_its_own = inspect.isroutine(value) and value.__module__ == module.__name__
        if is_its_own and not name.startswith("_"):
            yield PublicName(f"{path}.{name}", value)


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


def api_pages() -> dict[str, str]:
    """Text by name: a page for each room with what it defines, each public name once, and a page of
    tables by room with a line for each name."""
    rooms: dict[str, dict[str, object]] = {}
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


def _room_of(path: str, value: object) -> str:
    """The module whose page describes a name: a room of the papers, or another package."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return path.rpartition(".")[0]
    roof, _, inside = value.__module__.partition(".")
    if roof != ROOFS[0]:
        return roof
    return f"{roof}.{inside.split('.')[0]}"


def _room_page(room: str, names: Mapping[str, object]) -> str:
    """The page of a room, with the values of its names by path."""
    directives = "".join(_directive(path, value) for path, value in names.items())
    return f"# {room}\n\n{_first_paragraph(room)}\n\n```{{eval-rst}}\n{directives}```\n"


def _directive(path: str, value: object) -> str:
    """The directive by which Sphinx describes the name at `path`, by the kind of its value."""
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n\n"
    if not inspect.isclass(value):
        return f".. autodata:: {path}\n\n"
    if issubclass(value, BaseException):
        return f".. autoexception:: {path}\n\n"
    return f".. autoclass:: {path}\n   :members:\n\n"


def _first_paragraph(module: str) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = inspect.getdoc(importlib.import_module(module)) or ""
    paragraph = text.split("\n\n")[0]
    return " ".join(paragraph.split())


if __name__ == "__main__":
    sys.exit(main())
