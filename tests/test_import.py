import inspect
import subprocess
import sys
import time
from importlib import import_module

import pytest

import tplrepro as tpl


@pytest.mark.parametrize("name", tpl.__all__)
def test_every_public_name_is_there(name):
    assert getattr(tpl, name) is not None
    assert name in dir(tpl)


@pytest.mark.parametrize("room", ["dphmm", "mechanisms"])
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


def test_import_is_light():
    heavy = ("numba", "pandas", "matplotlib", "networkx", "scipy", "pyarrow", "opendp", "pulp")
    code = f"import sys, tplrepro; print([name for name in {heavy} if name in sys.modules])"
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    assert done.stdout.strip() == "[]"
    # Half a second is the promise; the interpreter's own start and a busy machine get as much again.
    assert seconds < 1.0
