"""The house keeps its order: who may import whom, imports are light, and public names are there and
annotated."""

import ast
import importlib
import inspect
import pickle
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import networkx as nx
import pytest

import tplfrontier
import tplreport
import tplrepro as tpl

ROOT = Path(tpl.__file__).parents[1]
#: From the ground up; a roof imports itself and what is below it, never a roof of its own floor.
ROOFS = ({"tplrepro"}, {"tplfrontier"}, {"tplreport"}, {"experiments"}, {"page", "workflow"})
#: The same for the rooms of the papers.
FLOORS = (
    {"lazy", "locks", "progress", "ticks"},
    {"display"},
    {"blas", "search", "validation"},
    {"mechanisms"},
    {"markov"},
    {"leakage"},
    {"allocation"},
    {"dphmm", "eventlog", "sip"},
)
#: And for the rooms beyond them.
FRONTIER_FLOORS = ({"chains", "pairs", "series"}, {"profiles"}, {"budgets", "exact"})
PACKAGES = (
    tpl,
    tplfrontier,
    tplreport,
    tpl.dphmm,
    tpl.eventlog,
    tpl.markov,
    tpl.mechanisms,
    tpl.sip,
)


IMPORTS = ast.Import | ast.ImportFrom
#: Where a statement holds others; the last two hold those with blocks of their own.
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def imports_of(*folders):
    """Edges from module to module, wherever in a file the import stands; a folder is its
    __init__."""
    modules = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imports = nx.DiGraph()
    for name, path in modules.items():
        for node in imports_in(path):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                below = (f"{node.module}.{alias.name}" for alias in node.names)
                found = [full if full in modules else node.module for full in below]
            imports.add_edges_from((name, target) for target in found if target in modules)
    return imports


@cache
def imports_in(path):
    """The statements of a file that import, wherever they stand."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in statements_below(tree) if isinstance(node, IMPORTS)]


def statements_below(node):
    """The statements of a node and of all blocks in it; what expressions hold is no statement."""
    for block in BLOCKS:
        for statement in getattr(node, block, ()):
            yield statement
            yield from statements_below(statement)


def upward(edges, floors):
    floor = {room: height for height, rooms in enumerate(floors) for room in rooms}
    return sorted(
        (upper, lower) for upper, lower in edges if upper != lower and floor[upper] <= floor[lower]
    )


def test_no_arrow_goes_upward_or_in_a_circle():
    roofs = [roof for floor in ROOFS for roof in floor]
    connected = nx.strongly_connected_components(imports_of(*roofs))
    assert [sorted(circle) for circle in connected if len(circle) > 1] == []
    imports = imports_of(*roofs, "benchmarks", "tests")
    edges = {
        (source.partition(".")[0], target.partition(".")[0]) for source, target in imports.edges
    }
    assert upward(edges, (*ROOFS, {"benchmarks"}, {"tests"})) == []
    for package, floors in (("tplrepro", FLOORS), ("tplfrontier", FRONTIER_FLOORS)):
        edges = [
            (source.split("."), target.split(".")) for source, target in imports_of(package).edges
        ]
        rooms = {(a[1], b[1]) for a, b in edges if len(a) > 1 and len(b) > 1}
        assert upward(rooms, floors) == []


def own_functions(thing):
    """A function itself; of a class what it defines in public, and its constructor."""
    if not inspect.isclass(thing):
        return [thing]
    members = [
        member
        for name, member in vars(thing).items()
        if not name.startswith("_") or name == "__init__"
    ]
    unwrapped = (
        getattr(member, "fget", None) or getattr(member, "func", None) or member
        for member in members
    )
    return [getattr(member, "__func__", member) for member in unwrapped]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_what_its_module_defines_and_annotated_in_full(package):
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes, bare = {alias.name: node.module for node in imports for alias in node.names}, []
    assert sorted(homes) == sorted(package.__all__) == sorted(set(dir(package)) & set(homes))
    for name, home in homes.items():
        value = getattr(package, name)
        if inspect.ismodule(value):
            assert value is importlib.import_module(f"{home}.{name}")
            continue
        assert value is getattr(importlib.import_module(home), name)
        for function in filter(inspect.isfunction, own_functions(value)):
            given = inspect.signature(function)
            assert len(str(given)) < 450, "name a long type, as MatrixLike does"
            rng, *sides = map(given.parameters.get, ("rng", "backward", "forward"))
            assert rng is None or rng.kind == rng.KEYWORD_ONLY
            assert {side.default for side in sides if side} <= {given.empty}
            found = {parameter: facts.annotation for parameter, facts in given.parameters.items()}
            found = (
                {"result": given.return_annotation} | found
                if function.__name__ != "__init__"
                else found
            )
            empty = [part for part, annotation in found.items() if annotation is given.empty]
            bare += [
                f"{function.__qualname__}: {part}" for part in empty if part not in ("self", "cls")
            ]
    assert bare == []
    with pytest.raises(
        AttributeError, match=f"module '{package.__name__}' has no attribute 'no_such_name'"
    ):
        package.no_such_name  # noqa: B018


def same_thing(thing):
    """What another process makes of a public name: where it is defined."""
    return thing.__module__, thing.__qualname__


def test_every_public_function_and_class_goes_to_another_process():
    values = [getattr(package, name) for package in PACKAGES for name in package.__all__]
    things = [value for value in values if callable(value)]
    assert [pickle.loads(pickle.dumps(thing)) is thing for thing in things] == [True] * len(things)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(
            pool.map(tpl.allocate_by_upper_bound, [1.0], [None], [[[0.8, 0.2], [0.2, 0.8]]])
        ) == [tpl.allocate_by_upper_bound(1.0, None, [[0.8, 0.2], [0.2, 0.8]])]


def test_numba_belongs_to_the_kernels_alone():
    importing = re.compile(r"^\s*(import|from) numba\b", re.M)
    files = [
        path
        for roof in ("tplrepro", "tplfrontier", "tplreport")
        for path in (ROOT / roof).rglob("*.py")
    ]
    assert [path.name for path in files if importing.search(path.read_text("utf-8"))] == [
        "compiled.py"
    ]


LIBRARIES = (
    "dp_accounting",
    "hmmlearn",
    "jax",
    "keras",
    "matplotlib",
    "opendp",
    "pooch",
    "pulp",
    "pyarrow",
    "pyproj",
)
PRIVACY = (
    "P = [[0.8, 0.2], [0.1, 0.9]]; budgets = tpl.allocate_by_quantification(1.0, P, P, horizon=5)"
)


@pytest.mark.parametrize(
    ("words", "library", "name"),
    [
        (f"{PRIVACY}; tpl.temporal_privacy_leakage(budgets, P, P)", None, None),
        (f"{PRIVACY}; tr.release_counts([1] * 5, budgets, sensitivity=1)", "opendp", "counts"),
        ("tpl.linear_program.loss", "pulp", "solvers"),
        ("tr.read_sequences('observations.csv')", "pyarrow", "data"),
        ("tr.Grid(tr.LOS_ANGELES, 1.0)", "pyproj", "data"),
        ("tf.temporal_privacy_profile(['event'], None, None)", "dp_accounting", "events"),
    ],
)
def test_what_an_extra_brings_is_not_needed_for_the_rest_and_named_where_it_is(
    words, library, name
):
    imports = "import tplfrontier as tf, tplreport as tr, tplrepro as tpl"
    code = f"import sys; sys.modules.update(dict.fromkeys({LIBRARIES})); {imports}; {words}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().rpartition("\n")[2]
    remedy = (
        f'{library} must be installed, found none; install it with: pip install "tplrepro[{name}]"'
    )
    assert (done.returncode, last) == (
        (0, "") if library is None else (1, f"ModuleNotFoundError: {remedy}")
    )


WIDGETS = ("ipywidgets", "anywidget")
HEAVY = (
    "numba",
    "pandas",
    "matplotlib",
    "networkx",
    "scipy",
    "pyarrow",
    "opendp",
    "pulp",
    *WIDGETS,
)
OTHERS = ("pandas", "tplfrontier", "tplreport")


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        ("import tplrepro", HEAVY + OTHERS),
        ("import tplfrontier", (*HEAVY, "tplreport")),
        ("import tplreport", HEAVY),
        # before it knows its limit of address space
        ("from tplreport import command; command._parser()", ("numpy", *HEAVY)),
        (f"import tplrepro as tpl; {PRIVACY}; tpl.temporal_privacy_leakage(budgets, P, P)", OTHERS),
        ("import tplrepro; [getattr(tplrepro, name) for name in tplrepro.__all__]", OTHERS),
        ("import tplrepro.leakage.loss_function", ["numba"]),  # loaded for the first function only
        (
            "import tplrepro.leakage.published",
            ["tplrepro.allocation", "tplrepro.leakage.loss_function", "scipy"],
        ),
    ],
)
def test_import_is_light(words, absent):
    code = f"import sys; {words}; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_beyond_numpy_an_import_reads_two_files():
    """So it takes as long as NumPy's, a fraction of a second."""
    code = "import numpy, sys; before = {*sys.modules}; import tplrepro; "
    code += "print(*sorted(sys.modules.keys() - before - sys.stdlib_module_names))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.partition(".")[0] == "tplrepro"]
    others = {name.partition(".")[0] for name in done.stdout.split()} - {"tplrepro"}
    assert loaded == ["tplrepro", "tplrepro.lazy"]
    assert others <= sys.stdlib_module_names
