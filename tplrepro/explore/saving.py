"""Budgets as CSV and the figure as SVG or PDF: contents and names of the files."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from tplrepro.explore.analysis import Analysis
from tplrepro.explore.plots import CURRENT, draw
from tplrepro.figures import figure_bytes
from tplrepro.leakage.temporal import temporal_privacy_leakage

__all__ = ["MEDIA_TYPES", "budgets_of", "budgets_table", "file_name", "saved_figure"]

#: What a browser needs to know about a file.
MEDIA_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".pdf": "application/pdf"}


def budgets_of(analysis: Analysis, name: str) -> np.ndarray:
    """The budgets of a scheme, or of the page itself; a ValueError says why there are none."""
    if name == CURRENT:
        return analysis.inputs.epsilons
    scheme = next(scheme for scheme in analysis.schemes if scheme.name == name)
    if scheme.budgets is None:
        raise ValueError(f"{name} has no budgets: {scheme.message}")
    return scheme.budgets


def budgets_table(analysis: Analysis, name: str) -> bytes:
    """CSV with one line a release: its budget, the scale of its Laplace noise, and the leakages that result.

    Floats are written with all their digits, so that reading the file gives the same budgets.
    """
    budgets = budgets_of(analysis, name)
    leakage = temporal_privacy_leakage(budgets, analysis.inputs.backward, analysis.inputs.forward)
    columns = {"epsilon": budgets, "laplace_scale": analysis.inputs.sensitivity / budgets}
    columns |= {name: getattr(leakage, name) for name in ("bpl", "fpl", "tpl")}
    table = pd.DataFrame(columns, index=np.arange(1, budgets.size + 1))
    return table.to_csv(index_label="release", lineterminator="\n").encode()


def saved_figure(analysis: Analysis, suffix: str, title: str = "") -> bytes:
    """The figure as SVG or PDF."""
    import matplotlib.pyplot as plt

    figure = draw(analysis, title)
    content = figure_bytes(figure, suffix)
    plt.close(figure)
    return content


def file_name(analysis: Analysis, name: str, suffix: str) -> str:
    """A name that says what is in the file, such as budgets-Algorithm-8-alpha-1-T-10.csv."""
    what = re.sub(r"\(.*\)|^the ", "", name).replace("α/T", "alpha-over-T")
    words = re.sub(r"[^A-Za-z0-9]+", "-", what).strip("-")
    kind = "budgets" if suffix == ".csv" else "leakage"
    return f"{kind}-{words}-alpha-{analysis.inputs.alpha:g}-T-{analysis.inputs.epsilons.size}{suffix}"
