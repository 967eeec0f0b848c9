"""The house keeps its order: who may import whom, and public names are annotated in full."""

import ast
import importlib
import inspect
from pathlib import Path

import networkx as nx
import pytest

import tplrepro

PACKAGE = Path(tplrepro.__file__).parent
#: From the ground up; a room imports itself and what is below it, never a room of its own floor.
FLOORS = (
    {"blas", "lazy", "progress", "provenance", "search", "validation"},
    {"figures", "mechanisms"},
    {"markov"},
    {"datasets", "leakage"},
    {"allocation"},
    {"dphmm", "eventlog", "sip"},
    {"comparison", "explore"},
)
ROOMS = ("allocation", "comparison", "datasets", "dphmm", "eventlog", "explore", "markov", "mechanisms", "sip")


@pytest.fixture(scope="module")
def imports():
    """Edges from module to module of the package, wherever in a file the import stands; a folder is its __init__."""
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = nx.DiGraph()
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                below = (f"{node.module}.{alias.name}" for alias in node.names)
                found = [full if full in modules else node.module for full in below]
            graph.add_edges_from((name, target) for target in found if target in modules)
    graph.remove_node("tplrepro")  # its __init__ imports by name, on use
    return graph


def test_no_circle(imports):
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


def test_nothing_imports_upward(imports):
    floor = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
    rooms = {(source.split(".")[1], target.split(".")[1]) for source, target in imports.edges}
    assert [(upper, lower) for upper, lower in rooms if upper != lower and floor[upper] <= floor[lower]] == []


def own_functions(thing):
    """A function itself; of a class what it defines in public, and its constructor."""
    if not inspect.isclass(thing):
        return [thing]
    members = [member for name, member in vars(thing).items() if not name.startswith("_") or name == "__init__"]
    unwrapped = (getattr(member, "fget", None) or getattr(member, "func", None) or member for member in members)
    return [getattr(member, "__func__", member) for member in unwrapped]


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_public_names_are_annotated_in_full(room):
    module = importlib.import_module(f"tplrepro.{room}".rstrip("."))
    bare = []
    for name in module.__all__:
        for function in filter(inspect.isfunction, own_functions(getattr(module, name))):
            given = inspect.signature(function)
            found = {parameter: facts.annotation for parameter, facts in given.parameters.items()}
            found = {"result": given.return_annotation} | found if function.__name__ != "__init__" else found
            empty = [part for part, annotation in found.items() if annotation is given.empty]
            bare += [f"{function.__qualname__}: {part}" for part in empty if part not in ("self", "cls")]
    assert bare == []
