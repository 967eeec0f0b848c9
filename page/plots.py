"""The panels: curves and looks, on the page (`static/plots.js` draws them as SVG) and in a saved figure.

Colours are Okabe and Ito's, each with its own dash and marker; text and grid follow the page's theme.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from experiments.figures import PALETTE, subplots
from page.analysis import Analysis
from page.glossary import about
from page.noises import GAUSSIAN, LAPLACE
from tplreport.schemes import SCHEMES

CURRENT = "the chosen budgets"
GREY = "#8c8c8c"  # readable on white and on black
MARKERS = 14  # of a curve, about: the line stays visible between them

# Each line style and marker in Matplotlib and in SVG (stroke-dasharray, path around the point).
DASHES = {
    "solid": ("-", ""),
    "dash": ("--", "9 5"),
    "longdash": ((0, (8, 3)), "15 6"),
    "dashdot": ("-.", "9 4 2 4"),
    "dot": (":", "2 4"),
    "none": ("", None),
}
SHAPES = {
    "circle": ("o", "m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0"),
    "square": ("s", "m-3,-3h6v6h-6z"),
    "triangle": ("^", "m0,-4l4,7h-8z"),
    "diamond": ("D", "m0,-4l4,4l-4,4l-4,-4z"),
    "star": ("*", "m0,-6l1.4,4h4.3l-3.4,2.6l1.3,4l-3.6,-2.4l-3.6,2.4l1.3,-4l-3.4,-2.6h4.3z"),
    "x": ("x", "m-4,-3l1,-1l3,3l3,-3l1,1l-3,3l3,3l-1,1l-3,-3l-3,3l-1,-1l3,-3z"),
    "none": ("", None),
}

# Name, colour, dash and marker of each curve.
LEAKAGES = [
    ("BPL", PALETTE[0], "solid", "circle"),
    ("FPL", PALETTE[1], "dash", "square"),
    ("TPL", PALETTE[2], "dashdot", "triangle"),
    ("ε", PALETTE[3], "dot", "diamond"),
    ("target α", GREY, "longdash", "none"),
]
AT_DELTA = [
    (f"TPL, {LAPLACE}", PALETTE[0], "solid", "circle"),
    (f"TPL, {GAUSSIAN}", PALETTE[1], "dash", "square"),
    ("TPL, pure ε", PALETTE[2], "dashdot", "triangle"),
    ("target α", GREY, "longdash", "none"),
]
LOSSES = [
    ("L backward", PALETTE[0], "solid", "none"),
    ("L forward", PALETTE[1], "dash", "none"),
    ("breakpoints", PALETTE[3], "none", "x"),
    ("leakage − ε", GREY, "longdash", "none"),
    ("supremum", PALETTE[4], "none", "star"),
]
LOOKS = [
    (GREY, "solid", "circle"),  # drawn broad, because other budgets may be the same
    (PALETTE[3], "dot", "diamond"),
    (PALETTE[4], "dash", "square"),
    (PALETTE[5], "dashdot", "triangle"),
    (PALETTE[2], "solid", "star"),
]
BUDGETS = [(name, *look) for name, look in zip((CURRENT, *SCHEMES), LOOKS, strict=True)]


def curves(analysis: Analysis) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name of each curve of `PANELS` -> its x and y, which are empty if the curve does not apply."""
    inputs, leakage = analysis.inputs, analysis.leakage
    times = np.arange(1, inputs.epsilons.size + 1)
    nothing = np.empty(0), np.empty(0)
    drawn: dict = {curve["name"]: nothing for panel in PANELS for curve in panel["curves"]}
    drawn |= {"BPL": (times, leakage.bpl), "FPL": (times, leakage.fpl), "TPL": (times, leakage.tpl)}
    drawn |= {"ε": (times, inputs.epsilons), "target α": (times[[0, -1]], np.full(2, inputs.alpha))}
    for side in analysis.sides:
        drawn[f"L {side.name}"] = (side.alphas, side.losses)
    if analysis.sides:
        budget, limit = analysis.largest_budget, max(side.alphas[-1] for side in analysis.sides)
        drawn["leakage − ε"] = (np.array([budget, limit]), np.array([0.0, limit - budget]))
        heights = [side.function(side.breakpoints) for side in analysis.sides]
        breakpoints = [side.breakpoints for side in analysis.sides]
        drawn["breakpoints"] = (np.concatenate(breakpoints), np.concatenate(heights))
        suprema = np.array([side.supremum for side in analysis.sides if np.isfinite(side.supremum)])
        drawn["supremum"] = (suprema, suprema - budget)
    budgets_of_schemes = {scheme.name: scheme.budgets for scheme in analysis.schemes}
    for name, budgets in {CURRENT: inputs.epsilons, **budgets_of_schemes}.items():
        if budgets is not None:
            drawn[f"budget of {name}"] = (times, budgets)
            drawn[f"error of {name}"] = (times, inputs.sensitivity / budgets)
    for noise in analysis.noises:
        drawn |= {"at δ: TPL, pure ε": drawn["TPL"], "at δ: target α": drawn["target α"]}
        if noise.tpl is not None:
            finite = np.isfinite(noise.tpl)
            drawn[f"at δ: TPL, {noise.name}"] = times[finite], noise.tpl[finite]
    return drawn


def draw(analysis: Analysis, title: str = "") -> Figure:
    """The panels that have something to show, as a Matplotlib figure in the house style."""
    drawn = curves(analysis)
    shown = [panel for panel in PANELS if any(drawn[curve["name"]][0].size for curve in panel["curves"])]
    figure, axes = subplots((len(shown) + 1) // 2, 2, panel_height=2.5)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat, shown, strict=False):
        for curve in panel["curves"]:
            x, y = drawn[curve["name"]]
            if x.size:
                style = {"linestyle": curve["linestyle"], "marker": curve["marker"], "color": curve["colour"]}
                if curve["broad"]:
                    style |= {"linewidth": 5, "alpha": 0.55}
                axis.plot(x, y, label=curve["label"], markevery=max(1, x.size // MARKERS), **style)
        panel_title = panel["title"].replace("at δ", f"at δ = {analysis.inputs.delta or 0:g}")
        axis.set(title=panel_title, xlabel=panel["x"], ylabel=panel["y"])
        if panel["logarithmic"]:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        else:
            axis.set_ylim(0, None)
        if panel["x"] == "release t":
            axis.xaxis.get_major_locator().set_params(integer=True)
        if not panel["curves"][0]["broad"]:
            axis.legend()
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)  # of all budgets
    if title:
        figure.suptitle(title)
    return figure


def _panel(title: str, x: str, y: str, looks: list[tuple], prefix: str = "", logarithmic: bool = False) -> dict:
    """A panel without its numbers; `prefix` begins the names of its curves."""
    curves_of_panel = []
    for name, colour, dash, marker in looks:
        curve = {"name": prefix + name, "label": name.partition(" (")[0], "colour": colour, "about": about(name)}
        curve["broad"] = name == CURRENT
        curve["linestyle"], curve["dashes"] = DASHES[dash]
        curve["marker"], curve["shape"] = SHAPES[marker]
        curves_of_panel.append(curve)
    panel = {"title": title, "x": x, "y": y, "logarithmic": logarithmic, "markers": MARKERS}
    return panel | {"curves": curves_of_panel}


PANELS = [
    _panel("leakage over time", "release t", "leakage (nats)", LEAKAGES),
    _panel("privacy loss function L", "leakage at the neighbouring release (nats)", "L (nats)", LOSSES),
    _panel("budgets of each scheme", "release t", "ε (nats)", BUDGETS, "budget of "),
    _panel("expected absolute error", "release t", "error, log scale", BUDGETS, "error of ", logarithmic=True),
    _panel("leakage at δ", "release t", "bound on ε (nats)", AT_DELTA, "at δ: "),
]
