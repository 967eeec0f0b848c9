import re
import subprocess
import sys
import time
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import pytest

import tplrepro as tpl


@pytest.mark.parametrize("name", tpl.__all__)
def test_every_public_name_is_there(name):
    assert getattr(tpl, name) is not None
    assert name in dir(tpl)


@pytest.mark.parametrize("room", ["comparison", "dphmm", "mechanisms"])
def test_every_public_name_of_a_room_is_there_and_no_module_hides_it(room):
    names = import_module(f"tplrepro.{room}")
    for name in names.__all__:
        value = getattr(names, name)
        if name in names._EXPORTS:
            assert value is getattr(import_module(f"tplrepro.{room}.{names._EXPORTS[name]}"), name)
            assert not ismodule(value)
        assert name in dir(names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'tplrepro' has no attribute 'no_such_name'"):
        tpl.no_such_name  # noqa: B018


def test_numba_belongs_to_the_kernels_alone():
    importing = re.compile(r"^\s*(import|from) numba\b", re.M)
    files = Path(tpl.__file__).parent.rglob("*.py")
    assert [path.name for path in files if importing.search(path.read_text("utf-8"))] == ["kernels.py"]


WIDGETS = ("ipywidgets", "plotly", "anywidget")
HEAVY = ("numba", "pandas", "matplotlib", "networkx", "scipy", "pyarrow", "opendp", "pulp", *WIDGETS)


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        ("tplrepro", HEAVY),
        ("tplrepro.leakage.loss_function", ["numba"]),  # loaded for the first function only
        ("tplrepro as tpl; tpl.allocation.allocate_by_upper_bound; tpl.explore.analyse", WIDGETS),
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
