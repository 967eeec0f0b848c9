"""Build the site: ``make docs`` copies its sources to build/site with the repository's layout, and runs Sphinx.

So links between pages, notebooks and figures work in both places. Generated are the gallery
from config/notebooks.yaml, the API from the public names of the package.
"""

import importlib
import inspect
import re
import subprocess
import sys
from collections import Counter
from itertools import groupby

import nbformat

import tplrepro
from workflow.configuration import ROOT, read_notebooks

PAGES = ("REPRODUCING.md", "ARTIFACT.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")
PAPERS = {
    "tkde2019": "Quantifying Differential Privacy in Continuous Data Release under Temporal Correlations (TKDE 2019)",
    "icde2017": "Quantifying Differential Privacy under Temporal Correlations (ICDE 2017)",
    "sip2023": "Online Context-aware Data Release with Sequence Information Privacy (2023)",
    "eventlog2022": "Quantifying Temporal Privacy Leakage in Continuous Event Data Publishing (2022)",
    "dphmm2016": "DPHMM: Customizable Data Release with Differential Privacy via Hidden Markov Model (2016)",
    "datasets": "Data sets",
    "explore": "Beyond the papers",
}
ROOMS = ("", "markov", "allocation", "mechanisms", "dphmm", "sip", "eventlog", "datasets")


def main():
    """Lay out and build; returns Sphinx's exit status, with warnings as errors. An argument names another builder."""
    builder = sys.argv[1] if len(sys.argv) > 1 else "html"
    source, target = ROOT / "build" / "site" / "source", ROOT / "build" / "site" / builder
    lay_out(source)
    options = ["-W", "--keep-going", "-q", "-j", "auto", "-d", str(ROOT / "build" / "site" / "cache")]
    status = subprocess.run([sys.executable, "-m", "sphinx", "-b", builder, *options, source, target]).returncode
    written = target.relative_to(ROOT) / ("index.html" if builder == "html" else "output.txt")
    print(f"The site: {written}" if status == 0 else "The site has defects, listed above")
    return status


def lay_out(source, root=ROOT):
    """Copy pages, notebooks and figures, and write the generated pages; files that did not change keep their times."""
    wanted = {path: root / path for path in PAGES if (root / path).is_file()}
    for folder, pattern in (("docs", "*.md"), ("notebooks", "*.ipynb"), ("figures", "*.png"), ("tests", "*.py")):
        wanted |= {path.relative_to(root).as_posix(): path for path in (root / folder).rglob(pattern)}
    site = root / "docs" / "site"
    wanted = {name: path for name, path in wanted.items() if site not in path.parents and ".ipynb_" not in name}
    wanted |= {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    texts = {name: path.read_bytes() for name, path in wanted.items()}
    # An anchor that GitHub knows, in MyST's words.
    anchor = re.compile(rb'<a id="([\w-]+)"></a>')
    texts |= {name: anchor.sub(rb"[]{#\1}", text) for name, text in texts.items() if name.endswith(".md")}
    texts["_parts/readme.md"] = (root / "README.md").read_bytes()  # the first page includes parts of it
    texts |= {name: text.encode() for name, text in {"docs/gallery.md": gallery(root), **api_pages()}.items()}
    present = {path for path in source.rglob("*") if path.is_file()}
    for stale in present - {source / name for name in texts}:
        stale.unlink()
    for name, content in texts.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


def gallery(root=ROOT):
    """The page of all figures as cards, by paper, and the list of all notebooks."""
    lines = [
        "# Gallery",
        "",
        "Each card shows the first panel of a figure, and leads to the notebook with its outputs.",
        "",
    ]
    entries = read_notebooks(root)
    shared = Counter(entry.notebook for entry in entries.values())
    for paper, group in groupby(entries, lambda name: name.split("/")[0]):
        lines += [f"## {PAPERS[paper]}", "", ":::::{grid} 1 2 3 3", ":gutter: 2", ":class-container: gallery", ""]
        for name in group:
            entry, label = entries[name], name.split("/")[1].replace("_", " ")
            place, _, shown = title_of(entry.path(root)).rpartition(": ")
            title = label if shared[entry.notebook] > 1 else shown
            lines += [f"::::{{grid-item-card}} {title[:1].upper()}{title[1:]}"]
            lines += [f":link: /notebooks/{entry.notebook}", ":link-type: doc"]
            if (root / "figures" / f"{name}.png").is_file():
                lines += [f":img-top: /figures/{name}.png", f":img-alt: {place or label}"]
            lines += ["", place, "", ":::{card-footer}", f"{{download}}`.ipynb </notebooks/{entry.notebook}.ipynb>`"]
            if (root / "docs" / "claims" / f"{paper}.yaml").is_file():
                lines[-1] += f" · [claims](/docs/claims/{paper}.md)"
            lines += [":::", "::::", ""]
        lines += [":::::", ""]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *(f"/notebooks/{name}" for name in shared), "```", ""])


def title_of(path):
    """The heading of a notebook."""
    first = nbformat.read(path, as_version=4).cells[0].source
    return first.split("\n")[0].lstrip("# ")


def api_pages():
    """Name to text: a page for each room of the package, with all its public names, each described once."""
    pages, described, summaries = {}, {}, []
    for room in ROOMS:
        module = importlib.import_module(f"tplrepro.{room}".rstrip("."))
        lines = [f"# {module.__name__}", "", inspect.getdoc(module).split("\n")[0], "", "```{eval-rst}"]
        lines += [f".. currentmodule:: {module.__name__}", ""]
        again = []
        summaries += ["", f"## {module.__name__}", ""]
        for name in module._EXPORTS:
            value = getattr(module, name)
            kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
            if kind == "class" and issubclass(value, BaseException):
                kind = "exception"
            if id(value) in described and kind != "data":
                again.append(f"{name}: see {described[id(value)]}")
                continue
            described[id(value)] = f"{module.__name__}.{name}"
            if kind != "data":
                first = inspect.getdoc(value).split("\n\n")[0].replace("\n", " ")
                summaries.append(f"- {{py:obj}}`~{module.__name__}.{name}`: {first}")
            lines += [f".. auto{kind}:: {name}"] + ["   :members:"] * (kind == "class") + [""]
        lines += [*again, "```", ""]
        pages[f"docs/api/{module.__name__}.md"] = "\n".join(lines)
    names = [page.removeprefix("docs/api/").removesuffix(".md") for page in pages]
    index = [
        "# API",
        "",
        inspect.getdoc(tplrepro).split("\n")[0],
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *names,
        "```",
        "",
    ]
    pages["docs/api/index.md"] = "\n".join([*index, *summaries, ""])
    return pages


if __name__ == "__main__":
    sys.exit(main())
