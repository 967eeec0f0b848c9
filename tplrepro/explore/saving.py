"""Budgets as CSV and the figure as SVG or PDF: contents, names, and files that are never half written."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import numpy as np

from tplrepro.explore.analysis import Analysis
from tplrepro.explore.plots import CURRENT, SERIES, TITLES, curves
from tplrepro.explore.schemes import SCHEMES
from tplrepro.figures import PALETTE, output_folder, subplots
from tplrepro.leakage.temporal import temporal_privacy_leakage

__all__ = ["budgets_of", "budgets_table", "draw", "figure_bytes", "file_name", "write"]

#: What a browser needs to know about a file.
MEDIA_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".pdf": "application/pdf"}

#: The live plots' dashes and markers in Matplotlib's words.
LINES = {"solid": "-", "dash": "--", "longdash": (0, (8, 3)), "dashdot": "-.", "dot": ":"}
MARKS = {"circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "star": "*"}


def budgets_of(analysis: Analysis, name: str) -> np.ndarray:
    """The budgets of a scheme, or of the page itself.

    Raises
    ------
    ValueError
        If the scheme has none.
    """
    if name == CURRENT:
        return analysis.inputs.epsilons
    scheme = analysis.schemes[list(SCHEMES).index(name)]
    if scheme.budgets is None:
        raise ValueError(f"{name} has no budgets: {scheme.message}")
    return scheme.budgets


def budgets_table(analysis: Analysis, name: str) -> bytes:
    """CSV with one line a release: its budget, the scale of its Laplace noise, and the leakages that result.

    Floats are written with all their digits, so that reading the file gives the same budgets.
    """
    budgets = budgets_of(analysis, name)
    leakage = temporal_privacy_leakage(budgets, analysis.inputs.backward, analysis.inputs.forward)
    scales = analysis.inputs.sensitivity / budgets
    lines = ["release,epsilon,laplace_scale,bpl,fpl,tpl"]
    columns = (budgets, scales, leakage.bpl, leakage.fpl, leakage.tpl)
    for release, row in enumerate(zip(*(column.tolist() for column in columns), strict=True), 1):
        lines.append(",".join([str(release), *map(repr, row)]))
    return ("\n".join(lines) + "\n").encode()


def draw(analysis: Analysis, title: str = ""):
    """The four panels as a Matplotlib figure in the house style.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.ticker import LogLocator

    figure, axes = subplots(2, 2, panel_height=2.5)
    drawn = curves(analysis)
    grey = "#666666"
    (time, loss), (budgets, errors) = axes
    for name in ("BPL", "FPL", "TPL"):
        time.plot(*drawn[name], label=name, markevery=_spacing(drawn[name]))
    time.plot(*drawn["α"], color=grey, linestyle="--", marker="", label=r"$\alpha$")
    time.set(xlabel="release $t$", ylabel="leakage (nats)")
    for name, colour, style in (("backward", 0, "-"), ("forward", 1, "--")):
        if drawn[f"L {name}"][0].size:
            x, y = drawn[f"L {name}"]
            loss.plot(x, y, color=PALETTE[colour], linestyle=style, marker="", label=f"$L$ {name}")
    if analysis.sides:
        loss.plot(*drawn["α − ε"], color=grey, linestyle="--", marker="", label=r"$\alpha - \epsilon$")
        if drawn["breakpoints"][0].size:
            loss.plot(*drawn["breakpoints"], color=PALETTE[3], linestyle="", marker="x", label="breakpoints")
        loss.plot(*drawn["supremum"], color=PALETTE[4], linestyle="", marker="*", markersize=7, label="supremum")
    loss.set(xlabel=r"$\alpha$ (nats)", ylabel=r"$L(\alpha)$ (nats)")
    for what, axis in (("budget", budgets), ("error", errors)):
        for name, (colour, dash, marker) in SERIES.items():
            x, y = drawn[f"{what} of {name}"]
            if x.size:
                style = {"color": colour, "linestyle": LINES[dash], "marker": MARKS[marker]}
                axis.plot(x, y, label=name, markevery=_spacing((x, y)), **style)
        axis.set(xlabel="release $t$")
    budgets.set(ylabel=r"$\epsilon_t$ (nats)", ylim=(0, None))
    errors.set(ylabel="expected absolute error", yscale="log")
    errors.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    errors.yaxis.set_major_formatter("{x:g}")
    errors.yaxis.set_minor_formatter("")
    for axis, words in zip(axes.flat, TITLES, strict=True):
        axis.set_title(words.replace("L(α)", r"$L(\alpha)$"))
    for axis in (time, loss):
        axis.set_ylim(0, None)
        axis.legend()
    for axis in (time, budgets, errors):
        axis.xaxis.get_major_locator().set_params(integer=True)
    handles, labels = budgets.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    if title:
        figure.suptitle(title)
    return figure


def figure_bytes(analysis: Analysis, suffix: str, title: str = "") -> bytes:
    """The figure as SVG or PDF; the same figure has the same bytes."""
    import matplotlib.pyplot as plt

    figure = draw(analysis, title)
    try:
        figure.draw_without_rendering()  # the constrained layout settles on the second drawing
        target = io.BytesIO()
        dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(target, format=suffix.removeprefix("."), metadata=dates[suffix])
    finally:
        plt.close(figure)
    return target.getvalue()


def file_name(analysis: Analysis, name: str, suffix: str) -> str:
    """A name that says what is in the file, such as budgets-algorithm-8-alpha-1-T-10.csv."""
    what = re.sub(r"\(.*\)|^the ", "", name).replace("α/T", "alpha-over-T")
    words = re.sub(r"[^A-Za-z0-9]+", "-", what).strip("-")
    kind = "budgets" if suffix == ".csv" else "leakage"
    return f"{kind}-{words}-alpha-{analysis.inputs.alpha:g}-T-{analysis.inputs.epsilons.size}{suffix}"


def write(name: str, content: bytes) -> Path:
    """Write a file into the folder for figures (build/figures/explore by default), whole or not at all."""
    folder = output_folder() / "explore"
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.{os.getpid()}.part"
    partial.write_bytes(content)
    os.replace(partial, folder / name)
    return folder / name


def _spacing(curve) -> int:
    return max(1, curve[0].size // 12)
