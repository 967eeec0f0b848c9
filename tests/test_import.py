import inspect
import re
import subprocess
import sys
import time
from importlib import import_module
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
            assert not inspect.ismodule(getattr(names, name))
        assert name in dir(names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'tplrepro' has no attribute 'no_such_name'"):
        tpl.no_such_name  # noqa: B018


def importing(module):
    """The files of the package that import a module."""
    pattern = re.compile(rf"^\s*(import|from) {re.escape(module)}\b", re.M)
    return [path for path in Path(tpl.__file__).parent.rglob("*.py") if pattern.search(path.read_text("utf-8"))]


def test_numba_belongs_to_the_kernels_alone():
    assert [path.name for path in importing("numba")] == ["kernels.py"]


def test_nothing_in_the_package_is_built_on_the_comparison():
    assert {path.parent.name for path in importing("tplrepro.comparison")} == {"comparison"}


@pytest.mark.parametrize("module", ["tplrepro", "tplrepro.leakage.loss_function"])
def test_numba_is_loaded_for_the_first_function_only(module):
    code = f"import sys, {module}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_import_is_light():
    heavy = ("numba", "pandas", "matplotlib", "networkx", "scipy", "pyarrow", "opendp", "pulp")
    code = f"import sys, tplrepro; print([name for name in {heavy} if name in sys.modules])"
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    assert done.stdout.strip() == "[]"
    # Half a second is the promise; the interpreter's own start and a busy machine get as much again.
    assert seconds < 1.0
