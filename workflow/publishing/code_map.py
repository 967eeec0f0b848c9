"""docs/map.md: from each algorithm, definition, theorem and equation of a paper to code, notebooks
and claims.

Docstrings of public names, and of modules, say what they implement ("Algorithm 7 of [1]"). A
notebook uses what its cells, or the modules of `experiments` that it imports, mention. A claim
belongs to what its place or statement names.
"""

import ast
import re

import nbformat

from experiments.claims import claims_of, markdown_table
from workflow.configuration import PAPERS, ROOT, sources

# The paper that the docstrings of a room speak of where they name none.
ROOMS = {
    "allocation": "1",
    "leakage": "1",
    "markov": "1",
    "sip": "3",
    "eventlog": "4",
    "dphmm": "5",
    "mechanisms": "5",
}
KINDS = ("Algorithm", "Definition", "Theorem", "Corollary", "Lemma", "Problem", "Eq.")
NUMBERS = r"((?:\(?\d[\d.]*\b\)?(?: \(\d\))?(?:, and | and |, | to )?)+)(?!'s)"
ITEM = re.compile(
    rf"\b(Algorithm|Definition|Theorem|Corollar|Lemma|[Pp]roblem|Eq)(?:s|y|ies)?\.? {NUMBERS}"
)
PAPER = re.compile(r"[^.:;\[\]]{0,50}\[([1-5])\](?: and of \[([1-5])\])?")
HEAD = """# From the papers to the code

What a paper numbers, the code that implements it, the notebooks of that paper that use the code, and the claims that
name it. A claim without code or notebook is decided by tests, or says why nothing decides it. `make claims` renders
this page from the docstrings, which say what they implement.
"""


def items(text, paper=None):
    """What a text names: (paper, kind, number), of `paper` where the text does not say which."""
    found, text = set(), " ".join((text or "").split())
    for match in ITEM.finditer(text):
        kind = next(kind for kind in KINDS if kind.startswith(match[1].title()))
        rest = text[match.end() :].lstrip()
        papers = set(named.groups()) if (named := PAPER.match(rest)) else {paper}
        numbers = re.findall(
            r"\((\d+)\)" if kind in KINDS[5:] else r"(?<![(\d])\d+(?:\.\d+)?", match[2]
        )
        if " to " in match[2]:
            numbers = map(str, range(int(numbers[0]), int(numbers[-1]) + 1))
        if not rest.startswith("of docs/"):
            found |= {(one, kind, number) for number in numbers for one in papers - {None}}
    return found


def implementations(root=ROOT):
    """By item, the public names whose docstrings name it, or else the modules, as {(name,
    file)}."""
    by_name, by_module = {}, {}
    for path in (
        path
        for room in ("tplrepro", "tplreport", "experiments")
        for path in (root / room).rglob("*.py")
    ):
        file, tree = path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        paper = next((ROOMS[part] for part in file.split("/") if part in ROOMS), None)
        for item in items(ast.get_docstring(tree), paper):
            by_module.setdefault(item, set()).add((path.stem, file))
        for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
            for part in (
                part for part in owner.body if isinstance(part, ast.FunctionDef | ast.ClassDef)
            ):
                name = f"{owner.name}.{part.name}" if owner is not tree else part.name
                for item in items(ast.get_docstring(part), paper) if "._" not in f".{name}" else ():
                    by_name.setdefault(item, set()).add((name, file))
    in_packages = {
        item
        for item, places in by_name.items()
        if any(file.startswith("tpl") for _, file in places)
    }
    return by_name | {
        item: by_name.get(item, set()) | by_module[item] for item in by_module.keys() - in_packages
    }


def used_code(root=ROOT):
    """By notebook, the code of its cells and of the modules of `experiments` that it imports."""
    found = {}
    for name, entry in sources(root).items():
        cells = nbformat.read(entry.path(root), as_version=4).cells
        found[name] = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        for module, names in re.findall(
            r"from (experiments\.[\w.]+) import ([\w, ]+)", found[name]
        ):
            for place in (module, *(f"{module}.{part}" for part in names.split(", "))):
                file = root / f"{place.replace('.', '/')}.py"
                found[name] += file.read_text(encoding="utf-8") if file.is_file() else ""
    return found


def page(contents, root=ROOT):
    """The text of docs/map.md; `contents` are the pages of claims."""
    code, used, text = implementations(root), used_code(root), HEAD
    for number, paper in zip("12345", PAPERS, strict=False):
        claims, rows = {}, []
        for claim in claims_of(contents[paper]) if paper in contents else ():
            for item in items(f"{claim.place}. {claim.statement}", number):
                claims.setdefault(item, []).append(f"[{claim.id}](claims/{paper}.md#{claim.id})")
        for item in sorted((one for one in {*code, *claims} if one[0] == number), key=_order):
            functions = sorted(code.get(item, ()))
            words = [rf"{'[.]' * ('.' in name)}\b{name.split('.')[-1]}\b" for name, _ in functions]
            notebooks = [
                name
                for name in used
                if name.startswith(paper) and re.search("|".join(words) or "$^", used[name])
            ]
            shown = f"{item[1]} ({item[2]})" if item[1] in KINDS[5:] else f"{item[1]} {item[2]}"
            implemented = ", ".join(f"`{name}` ([{file}](../{file}))" for name, file in functions)
            run = ", ".join(
                f"[{name.split('/')[1]}](../notebooks/{name}.ipynb)" for name in notebooks
            )
            rows.append([shown, implemented, run, ", ".join(claims.get(item, ()))])
        table = markdown_table(("in the paper", "code", "notebooks", "claims"), rows)
        text += f"\n## {contents[paper]['title']}\n\n{table}\n" if paper in contents else ""
    return text


def _order(item):
    return KINDS.index(item[1]), [int(part) for part in item[2].split(".")]
