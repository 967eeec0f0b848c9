"""The result of the page as a notebook: inputs as parameters, and the same numbers by public functions."""

from dataclasses import fields
from typing import Any

import numpy as np
from nbformat import v4, writes

from page.analysis import Analysis, Inputs

COMPUTED = """\
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import page
import tplrepro as tpl

functions = [
    None if rows is None else tpl.PrivacyLossFunction(tpl.TransitionMatrix(rows, states=states))
    for rows in (backward, forward)
]
result = page.analyse(page.Inputs(*functions, np.array(epsilons), alpha, sensitivity, delta, cells))
leakage = result.leakage
print(f"largest TPL in nats: {leakage.tpl.max():.4g}; of all releases together: {leakage.user_level:.4g}")
print(f"supremum: {page.supremum_words(result.supremum)}; finite {page.critical_words(result.critical)}")
for noise in result.noises:
    print(f"{noise.name} at δ = {delta:g}, in nats: at most {noise.tpl.max():.4g}")
for side in result.sides:
    print(side)"""
SCHEMES = """\
for scheme in result.schemes:
    print(f"{scheme.name}:", scheme.message or f"mean error {page.mean_error(scheme.budgets, sensitivity):.4g}")
    assert scheme.budgets is None or scheme.largest_tpl <= alpha
pd.DataFrame({scheme.name: scheme.budgets for scheme in result.schemes})"""


def result_notebook(analysis: Analysis, origin: str) -> bytes:
    """A notebook that computes `analysis`; `origin`, in Markdown, says where the inputs come from."""
    parameters: dict[str, Any] = {"states": None}
    for name in (field.name for field in fields(Inputs)):
        value = getattr(analysis.inputs, name)
        if name in ("backward", "forward") and value is not None:
            states = value.matrix.states
            if not isinstance(states, range):
                parameters["states"] = [one.item() if isinstance(one, np.generic) else one for one in states]
            value = value.matrix.toarray()
        parameters[name] = value.tolist() if isinstance(value, np.ndarray) else value
    assignments = "\n".join(f"{name} = {_literal(value)}" for name, value in parameters.items())
    cells = [
        v4.new_markdown_cell(f"# What a series of releases leaks, and budgets for it\n\n{origin}"),
        v4.new_code_cell(assignments, metadata={"tags": ["parameters"]}),
        v4.new_code_cell(COMPUTED),
        v4.new_markdown_cell("What the chosen budgets leak at each release, in nats, and the scale of the noise."),
        v4.new_code_cell("page.budgets_table(result)"),
        v4.new_markdown_cell("Budgets of each scheme that keep the leakage at every time point within α."),
        v4.new_code_cell(SCHEMES),
        v4.new_code_cell("page.draw(result)\nplt.show()"),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # a random one by default
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return writes(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})).encode()


def _literal(value: Any) -> str:
    """Python source of a value, with each row of a matrix on its own line."""
    if isinstance(value, list) and isinstance(value[0], list):
        return "".join(["[\n", *(f"    {row!r},\n" for row in value), "]"])
    return repr(value)
