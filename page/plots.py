"""The panels, four and two more for a δ: which curves they show, and their looks on the page and in a saved file.

Colours are Okabe and Ito's, with a dash and a marker each; text and grid of the page take their colours from its theme
(see `static/page.css`), so that the same figure is readable on light and on dark ground.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from experiments.figures import PALETTE, subplots
from page.analysis import Analysis
from page.glossary import about
from page.schemes import SCHEMES

__all__ = ["CURRENT", "PANELS", "curves", "draw"]

CURRENT = "the chosen budgets"
#: Readable on white and on black.
GREY = "#8c8c8c"

# Name, colour, dash, marker and mode of each curve, in the words of `static/plots.js`.
LEAKAGES = [
    ("BPL", PALETTE[0], "solid", "circle", "lines+markers"),
    ("FPL", PALETTE[1], "dash", "square", "lines+markers"),
    ("TPL", PALETTE[2], "dashdot", "triangle-up", "lines+markers"),
    ("ε", PALETTE[3], "dot", "diamond", "lines+markers"),
    ("target α", GREY, "longdash", "circle", "lines"),
]
LOSSES = [
    ("L backward", PALETTE[0], "solid", "circle", "lines"),
    ("L forward", PALETTE[1], "dash", "square", "lines"),
    ("breakpoints", PALETTE[3], "solid", "x", "markers"),
    ("leakage − ε", GREY, "longdash", "circle", "lines"),
    ("supremum", PALETTE[4], "solid", "star", "markers"),
]
LOOKS = [
    (GREY, "solid", "circle", "lines+markers"),  # broad: other budgets may be the same
    (PALETTE[3], "dot", "diamond", "lines+markers"),
    (PALETTE[4], "dash", "square", "lines+markers"),
    (PALETTE[5], "dashdot", "triangle-up", "lines+markers"),
    (PALETTE[2], "solid", "star", "lines+markers"),
]
AT_DELTA = [*LEAKAGES[:3], ("TPL, pure ε", *LEAKAGES[3][1:]), LEAKAGES[4]]
GAUSSIANS = [*LEAKAGES[:3], ("TPL of the budgets", *LEAKAGES[3][1:]), LEAKAGES[4]]
BUDGETS = [(name, *look) for name, look in zip((CURRENT, *SCHEMES), LOOKS, strict=True)]

#: The same dashes and markers in Matplotlib's words.
LINES = {"solid": "-", "dash": "--", "longdash": (0, (8, 3)), "dashdot": "-.", "dot": ":"}
MARKS = {"circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "star": "*", "x": "x"}

#: Title of each panel at a delta, which begins the names of its curves -> their looks.
OF_BUDGETS, OF_GAUSSIAN = "leakage of the budgets at δ", "leakage of Gaussian noise at δ"
NOISY = {OF_BUDGETS: AT_DELTA, OF_GAUSSIAN: GAUSSIANS}


def curves(analysis: Analysis) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The x and y of every curve: leakages, loss functions, "budget of <scheme>" and "error of <scheme>".

    Those named after a panel "... at δ" are upper bounds of (epsilon, delta) leakage.
    What does not apply, such as the forward loss function of an adversary who does not know it, is empty.
    """
    inputs, leakage = analysis.inputs, analysis.leakage
    times = np.arange(1, inputs.epsilons.size + 1)
    nothing = np.empty(0), np.empty(0)
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "BPL": (times, leakage.bpl),
        "FPL": (times, leakage.fpl),
        "TPL": (times, leakage.tpl),
        "ε": (times, inputs.epsilons),
        "target α": (times[[0, -1]], np.full(2, inputs.alpha)),
    }
    drawn |= {name: nothing for name, *_ in LOSSES}
    for side in analysis.sides:
        drawn[f"L {side.name}"] = (side.alphas, side.losses)
    if analysis.sides:
        budget, limit = analysis.largest_budget, max(side.alphas[-1] for side in analysis.sides)
        drawn["leakage − ε"] = (np.array([budget, limit]), np.array([0.0, limit - budget]))
        heights = [side.function(side.breakpoints) for side in analysis.sides]
        drawn["breakpoints"] = (np.concatenate([s.breakpoints for s in analysis.sides]), np.concatenate(heights))
        suprema = np.array([side.supremum for side in analysis.sides if np.isfinite(side.supremum)])
        drawn["supremum"] = (suprema, suprema - budget)
    for name, budgets in [(CURRENT, inputs.epsilons), *((scheme.name, scheme.budgets) for scheme in analysis.schemes)]:
        drawn[f"budget of {name}"] = nothing if budgets is None else (times, budgets)
        drawn[f"error of {name}"] = nothing if budgets is None else (times, inputs.sensitivity / budgets)
    drawn |= {f"{of}: {name}": nothing for of, looks in NOISY.items() for name, *_ in looks}
    for of, noise in zip(NOISY, analysis.noises, strict=False):
        for name, bounds in {"BPL": noise.bpl, "FPL": noise.fpl, "TPL": noise.tpl}.items():
            if bounds is not None:
                finite = np.isfinite(bounds)
                drawn[f"{of}: {name}"] = times[finite], bounds[finite]
        drawn[f"{of}: target α"] = drawn["target α"]
    if analysis.noises:
        drawn[f"{OF_BUDGETS}: TPL, pure ε"] = drawn["TPL"]
        drawn[f"{OF_GAUSSIAN}: TPL of the budgets"] = drawn[f"{OF_BUDGETS}: TPL"]
    return drawn


def draw(analysis: Analysis, title: str = "") -> Figure:
    """The panels that have something to show as a Matplotlib figure in the house style."""
    drawn = curves(analysis)
    shown = [panel for panel in PANELS if any(drawn[curve["name"]][0].size for curve in panel["curves"])]
    figure, axes = subplots(len(shown) // 2, 2, panel_height=2.5)
    for axis, panel in zip(axes.flat, sorted(shown, key=lambda panel: panel["order"]), strict=True):
        for curve in panel["curves"]:
            x, y = drawn[curve["name"]]
            if x.size:
                axis.plot(
                    x,
                    y,
                    label=curve["label"],
                    color=curve["colour"],
                    linestyle=LINES[curve["dash"]] if "lines" in curve["mode"] else "",
                    marker=MARKS[curve["marker"]] if "markers" in curve["mode"] else "",
                    linewidth=5 if curve["width"] > 2 else None,
                    alpha=0.55 if curve["width"] > 2 else None,
                    markevery=max(1, x.size // 14),  # about as many markers as on the page, see `static/plots.js`
                )
        title_here = panel["title"].replace("at δ", f"at δ = {analysis.inputs.delta or 0:g}")
        axis.set(title=title_here, xlabel=panel["x"], ylabel=panel["y"])
        if panel["logarithmic"]:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        else:
            axis.set_ylim(0, None)
        if panel["x"] == "release t":
            axis.xaxis.get_major_locator().set_params(integer=True)
    for axis in axes[:-1].flat:
        axis.legend()
    figure.legend(*axes[-1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    if title:
        figure.suptitle(title)
    return figure


def _panel(
    title: str, x: str, y: str, looks: list[tuple], of: str = "", logarithmic: bool = False, order: int = 0
) -> dict[str, Any]:
    """A panel without its numbers: titles, and of each curve the look and the name, which begins with `of`."""
    keys = ("name", "label", "about", "width", "colour", "dash", "marker", "mode")
    values = [
        (of + name, name.partition(" (")[0], about(name), 7 if name == CURRENT else 2, *look) for name, *look in looks
    ]
    drawn = [dict(zip(keys, of_curve, strict=True)) for of_curve in values]
    return {"title": title, "x": x, "y": y, "logarithmic": logarithmic, "order": order, "curves": drawn}


PANELS = [
    _panel("leakage over time", "release t", "leakage (nats)", LEAKAGES),
    _panel("privacy loss function L", "leakage at the neighbouring release (nats)", "L (nats)", LOSSES),
    _panel("budgets of each scheme", "release t", "ε (nats)", BUDGETS, "budget of "),
    _panel("expected absolute error", "release t", "error, log scale", BUDGETS, "error of ", logarithmic=True),
    *(_panel(of, "release t", "bound on ε (nats)", looks, f"{of}: ", order=-1) for of, looks in NOISY.items()),
]
