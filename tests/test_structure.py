"""The house keeps its order: who may import whom, imports are light, and public names are there and annotated."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import pytest

import tplrepro as tpl

PACKAGE = Path(tpl.__file__).parent
#: From the ground up; a room imports itself and what is below it, never a room of its own floor.
FLOORS = (
    {"suggestions", "words"},
    {"lazy"},
    {"blas", "files", "progress", "search", "validation"},
    {"mechanisms"},
    {"markov"},
    {"datasets", "leakage"},
    {"allocation"},
    {"dphmm", "eventlog", "sip"},
    {"reporting"},
)
ROOMS = ("allocation", "datasets", "dphmm", "eventlog", "markov", "mechanisms", "sip")


def imports_of(folder):
    """Edges from module to module, wherever in a file the import stands; a folder is its __init__."""
    modules = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imports = nx.DiGraph()
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                below = (f"{node.module}.{alias.name}" for alias in node.names)
                found = [full if full in modules else node.module for full in below]
            imports.add_edges_from((name, target) for target in found if target in modules)
    return imports


@pytest.mark.parametrize("folder", ["tplrepro", "experiments", "page", "workflow"])
def test_nothing_imports_in_a_circle(folder):
    imports = imports_of(PACKAGE.parent / folder)
    if folder == "tplrepro":
        imports.remove_node("tplrepro")  # its __init__ imports by name, on use
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


def test_nothing_in_the_package_imports_upward():
    edges = [(source.split("."), target.split(".")) for source, target in imports_of(PACKAGE).edges]
    rooms = {(source[1], target[1]) for source, target in edges if len(source) > 1 and len(target) > 1}
    floor = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
    assert [(upper, lower) for upper, lower in rooms if upper != lower and floor[upper] <= floor[lower]] == []


def test_the_package_imports_nothing_from_the_folders_beside_it():
    importing = re.compile(r"^\s*(import|from) (experiments|page|workflow|benchmarks|tests)\b", re.M)
    assert [path.name for path in PACKAGE.rglob("*.py") if importing.search(path.read_text("utf-8"))] == []


def own_functions(thing):
    """A function itself; of a class what it defines in public, and its constructor."""
    if not inspect.isclass(thing):
        return [thing]
    members = [member for name, member in vars(thing).items() if not name.startswith("_") or name == "__init__"]
    unwrapped = (getattr(member, "fget", None) or getattr(member, "func", None) or member for member in members)
    return [getattr(member, "__func__", member) for member in unwrapped]


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_every_public_name_is_there_no_module_hides_it_and_it_is_annotated_in_full(room):
    names, bare = importlib.import_module(f"tplrepro.{room}".rstrip(".")), []
    for name in names.__all__:
        value, path = getattr(names, name), names._EXPORTS.get(name)
        assert name in dir(names)
        if path is not None:
            full = path if path.startswith("tplrepro.") else f"{names.__name__}.{path}"
            assert value is getattr(importlib.import_module(full), name)
            assert not inspect.ismodule(value)
        for function in filter(inspect.isfunction, own_functions(value)):
            given = inspect.signature(function)
            found = {parameter: facts.annotation for parameter, facts in given.parameters.items()}
            found = {"result": given.return_annotation} | found if function.__name__ != "__init__" else found
            empty = [part for part, annotation in found.items() if annotation is given.empty]
            bare += [f"{function.__qualname__}: {part}" for part in empty if part not in ("self", "cls")]
    assert bare == []
    with pytest.raises(AttributeError, match=f"module '{names.__name__}' has no attribute 'no_such_name'"):
        names.no_such_name  # noqa: B018


def test_numba_belongs_to_the_kernels_alone():
    importing = re.compile(r"^\s*(import|from) numba\b", re.M)
    files = PACKAGE.rglob("*.py")
    assert [path.name for path in files if importing.search(path.read_text("utf-8"))] == ["kernels.py"]


LIBRARIES = ("dp_accounting", "hmmlearn", "jax", "keras", "matplotlib", "opendp", "pooch", "pulp", "pyarrow", "pyproj")
PRIVACY = "P = [[0.8, 0.2], [0.1, 0.9]]; budgets = tpl.allocate_by_quantification(1.0, P, P, horizon=5)"


@pytest.mark.parametrize(
    ("words", "library", "name"),
    [
        (f"{PRIVACY}; tpl.temporal_privacy_leakage(budgets, P, P)", None, None),
        (f"{PRIVACY}; tpl.release_counts([1] * 5, budgets, sensitivity=1)", "opendp", "counts"),
        ("tpl.linear_program.loss", "pulp", "solvers"),
        ("tpl.datasets.kosarak", "pyarrow", "data"),
        ("tpl.datasets.Grid(tpl.datasets.LOS_ANGELES, 1.0)", "pyproj", "data"),
        ("tpl.temporal_privacy_profile(['event'], None, None)", "dp_accounting", "events"),
    ],
)
def test_what_an_extra_brings_is_not_needed_for_the_rest_and_named_where_it_is(words, library, name):
    code = f"import sys; sys.modules.update(dict.fromkeys({LIBRARIES})); import tplrepro as tpl; {words}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().rpartition("\n")[2]
    remedy = f'{library} must be installed, found none; install it with: pip install "tplrepro[{name}]"'
    assert (done.returncode, last) == ((0, "") if library is None else (1, f"ModuleNotFoundError: {remedy}"))


WIDGETS = ("ipywidgets", "anywidget")
HEAVY = ("numba", "pandas", "matplotlib", "networkx", "scipy", "pyarrow", "opendp", "pulp", *WIDGETS)


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        ("tplrepro", HEAVY),
        ("tplrepro.leakage.loss_function", ["numba"]),  # loaded for the first function only
        ("tplrepro.leakage.published", ["tplrepro.allocation", "tplrepro.leakage.loss_function", "scipy"]),
    ],
)
def test_import_is_light(words, absent):
    code = f"import sys, {words}; print([name for name in {absent} if name in sys.modules])"
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    if words == "tplrepro":
        # Half a second is the promise; the interpreter's own start and a busy machine get as much again.
        assert time.perf_counter() - started < 1.0


def test_an_old_name_gives_a_sentence_with_the_new_one():
    with pytest.raises(AttributeError, match=r"'encode_batches', which was renamed in 0\.3: use numpy\.ravel_multi"):
        tpl.sip.encode_batches  # noqa: B018
