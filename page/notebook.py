"""The result of the page as a notebook: inputs as parameters, and the same numbers by public functions."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from page.analysis import Analysis

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
result = page.analyse(page.Inputs(*functions, np.array(epsilons), alpha, sensitivity, delta, mechanism, cells))
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
    inputs = analysis.inputs
    parameters: dict[str, Any] = {}
    states: Sequence = range(0)
    for name, function in zip(("backward", "forward"), inputs.functions, strict=True):
        parameters[name] = None
        if function is not None:
            parameters[name] = function.matrix.toarray().tolist()
            states = function.matrix.states
    labels = [label.item() if isinstance(label, np.generic) else label for label in states]
    parameters |= {"states": None if isinstance(states, range) else labels, "epsilons": inputs.epsilons.tolist()}
    for name in ("alpha", "sensitivity", "delta", "mechanism", "cells"):
        parameters[name] = getattr(inputs, name)
    assignments = "\n".join(f"{name} = {_literal(value)}" for name, value in parameters.items())
    cells = [
        _cell("markdown", f"# What a series of releases leaks, and budgets for it\n\n{origin}"),
        _cell("code", assignments, tags=["parameters"]),
        _cell("code", COMPUTED),
        _cell("markdown", "What the chosen budgets leak at each release, in nats, and the scale of the noise."),
        _cell("code", "page.budgets_table(result)"),
        _cell("markdown", "Budgets of each scheme that keep the leakage at every time point within α."),
        _cell("code", SCHEMES),
        _cell("code", "page.draw(result)\nplt.show()"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode()


def _literal(value: Any) -> str:
    """Python source of a value, with each row of a matrix on its own line."""
    if isinstance(value, list) and isinstance(value[0], list):
        return "".join(["[\n", *(f"    {row!r},\n" for row in value), "]"])
    return repr(value)


def _cell(kind: str, text: str, **metadata) -> dict:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": metadata, "source": text}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell
