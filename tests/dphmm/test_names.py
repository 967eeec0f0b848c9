import importlib

import pytest

import tplrepro as tpl


@pytest.mark.parametrize("name", tpl.dphmm.__all__)
def test_every_public_name_is_there_and_no_module_hides_it(name):
    importlib.import_module("tplrepro.dphmm.evaluation")  # imports nearly all modules, which become attributes
    value = getattr(tpl.dphmm, name)
    module = tpl.dphmm._EXPORTS.get(name)
    if module is not None:
        assert value is getattr(importlib.import_module(f"tplrepro.dphmm.{module}"), name)
    assert name in dir(tpl.dphmm)


def test_no_function_is_called_like_a_module():
    assert not set(tpl.dphmm._EXPORTS) & {*tpl.dphmm._MODULES, *tpl.dphmm._EXPORTS.values()}


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        tpl.dphmm.no_such_name  # noqa: B018
