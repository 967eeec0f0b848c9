"""The result of the page as a notebook: its inputs as parameters, and the same numbers by public functions."""

import json
from typing import Any

import numpy as np

from page.analysis import Analysis

__all__ = ["result_notebook"]

COMPUTED = """\
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import tplrepro as tpl
import page


def loss_function(rows):
    return None if rows is None else tpl.PrivacyLossFunction(tpl.TransitionMatrix(rows, states=states))


known = loss_function(backward), loss_function(forward)
noise = {"delta": delta, "mechanism": mechanism, "cells": cells}
result = page.analyse(page.Inputs(*known, np.array(epsilons), alpha, sensitivity, **noise))
leakage = result.leakage
print(f"largest TPL: {leakage.tpl.max():.4g} nats; all releases together: {leakage.user_level:.4g} nats")
print(f"supremum: {page.supremum_words(result.supremum)}; finite {page.critical_words(result.critical)}")
for noise in result.noises:
    print(f"{noise.name} at δ = {delta:g}: at most {noise.tpl.max():.4g} nats")
for side in result.sides:
    print(side)"""
LEAKAGE = """\
times = pd.RangeIndex(1, len(epsilons) + 1, name="release")
leaked = {name: getattr(leakage, name) for name in ("bpl", "fpl", "tpl")}
pd.DataFrame({"epsilon": epsilons, "laplace_scale": sensitivity / np.array(epsilons)} | leaked, index=times)"""
SCHEMES = """\
for scheme in result.schemes:
    print(f"{scheme.name}:", scheme.message or f"mean error {page.mean_error(scheme.budgets, sensitivity):.4g}")
found = [scheme for scheme in result.schemes if scheme.budgets is not None]
assert all(scheme.largest_tpl <= alpha for scheme in found)
pd.DataFrame({scheme.name: scheme.budgets for scheme in found}, index=times)"""
FIGURE = "page.draw(result)\nplt.show()"


def result_notebook(analysis: Analysis, words: str) -> bytes:
    """A notebook of version 4 that computes and shows `analysis`; `words`, in Markdown, say where its inputs are from.

    Its cell of parameters is papermill's.
    """
    inputs = analysis.inputs
    functions = {"backward": inputs.backward, "forward": inputs.forward}
    known = {name: function.matrix for name, function in functions.items() if function is not None}
    parameters: dict[str, Any] = {name: known[name].toarray().tolist() if name in known else None for name in functions}
    labels = next(iter(known.values())).states
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    parameters |= {"states": None if isinstance(labels, range) else plain, "epsilons": inputs.epsilons.tolist()}
    parameters |= {name: getattr(inputs, name) for name in ("alpha", "sensitivity", "delta", "mechanism", "cells")}
    lines = [f"{name} = {_literal(value)}" for name, value in parameters.items()]
    cells = [
        _cell("markdown", f"# What a series of releases leaks, and budgets for it\n\n{words}"),
        _cell("code", "\n".join(lines), tags=["parameters"]),
        _cell("code", COMPUTED),
        _cell("markdown", "What the chosen budgets leak at each release, in nats, and the scale of their noise."),
        _cell("code", LEAKAGE),
        _cell("markdown", "Budgets of each scheme that keep every time point within α."),
        _cell("code", SCHEMES),
        _cell("code", FIGURE),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode()


def _literal(value: Any) -> str:
    """Python's own words, with each row of a matrix on a line."""
    if isinstance(value, list) and isinstance(value[0], list):
        return "".join(["[\n", *(f"    {row!r},\n" for row in value), "]"])
    return repr(value)


def _cell(kind: str, text: str, **metadata) -> dict:
    of_code: dict = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": metadata, "source": text} | of_code
