"""What papermill was given: names, types and ranges, one sentence each."""

import re

import pytest

from experiments import parameters

DECLARED = "epsilon: float = 0.1\nhorizon: int = 10\nsizes: list = [2, 5]\nstay: float = 0.8\nseed: int = 1\nbins: int = 0"


@pytest.mark.parametrize(
    ("injected", "problem"),
    [
        ("epsilon = 1\nhorizon = 1\nsizes = [9]\nstay = 0.0\nseed = 0\nbins = 0", None),
        ("horizon = 20.0", "horizon must be a whole number, found 20.0; its default is 10"),
        ("horizon = 0", "horizon must be a whole number above 0, found 0"),
        ("horizon = True", "horizon must be a whole number, found True"),
        ("epsilon = 1e999", "epsilon must be a number above 0, found inf"),
        ("epsilon = '1'", "epsilon must be a number, found '1'"),
        ("stay = 1.5", "stay must be a number from 0 to 1, found 1.5"),
        ("bins = -1", "bins must be a whole number from 0 on, found -1"),
        ("sizes = [2, 0]", "sizes must be a list, each entry a whole number above 0, found [2, 0]"),
        ("sizes = 3", "sizes must be a list, found 3"),
        (
            "horizn = 3",
            "there is no parameter 'horizn'; the parameters cell declares epsilon, horizon, sizes, stay",
        ),
    ],
)
def test_each_value_that_cannot_be_used_gets_a_sentence(injected, problem, monkeypatch):
    cells = ["older = 1", "import numpy", DECLARED, injected, "parameters.check()"]
    monkeypatch.setattr(parameters, "executed_cells", lambda: cells)
    if problem is None:
        parameters.check()
        return
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        parameters.check()


def test_values_edited_in_the_parameters_cell_are_checked_and_all_problems_are_named(monkeypatch):
    edited = DECLARED.replace("0.1", "-0.1").replace("0.8", "8.0")
    monkeypatch.setattr(parameters, "executed_cells", lambda: [edited, "parameters.check()"])
    with pytest.raises(
        ValueError, match="epsilon must be .* found -0.1; .*\nstay must be .* found 8.0"
    ):
        parameters.check()
    monkeypatch.setattr(parameters, "executed_cells", list)  # outside a notebook
    parameters.check()
