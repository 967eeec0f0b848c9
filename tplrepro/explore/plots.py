"""The live plots: four panels, each a Plotly figure whose curves change in place.

Colours are Okabe and Ito's, with a dash and a marker each; text and grid take their colours from the theme of the page
(see `static/page.css`), so that the same figure is readable on light and on dark ground.
"""

from __future__ import annotations

import numpy as np

from tplrepro.explore.analysis import Analysis
from tplrepro.explore.schemes import SCHEMES
from tplrepro.figures import PALETTE

__all__ = ["CURRENT", "TITLES", "curves", "panels"]

HEIGHT = 345
#: Markers of a curve: one for each point would take most of the time of an update.
MARKERS = 14
#: Readable on white and on black.
GREY = "#8c8c8c"
CURRENT = "the chosen budgets"

# name: panel, colour, dash, marker, mode
STYLES = {
    "BPL": (0, PALETTE[0], "solid", "circle", "lines+markers"),
    "FPL": (0, PALETTE[1], "dash", "square", "lines+markers"),
    "TPL": (0, PALETTE[2], "dashdot", "triangle-up", "lines+markers"),
    "ε": (0, PALETTE[3], "dot", "diamond", "lines+markers"),
    "α": (0, GREY, "longdash", "circle", "lines"),
    "L backward": (1, PALETTE[0], "solid", "circle", "lines"),
    "L forward": (1, PALETTE[1], "dash", "square", "lines"),
    "breakpoints": (1, PALETTE[3], "solid", "x", "markers"),
    "α − ε": (1, GREY, "longdash", "circle", "lines"),
    "supremum": (1, PALETTE[4], "solid", "star", "markers"),
}
SERIES = {
    CURRENT: (GREY, "longdash", "circle"),
    **dict(
        zip(
            SCHEMES,
            (
                (PALETTE[3], "dot", "diamond"),
                (PALETTE[4], "dash", "square"),
                (PALETTE[5], "dashdot", "triangle-up"),
                (PALETTE[2], "solid", "star"),
            ),
            strict=True,
        )
    ),
}
TITLES = ("leakage over time", "privacy loss function L(α)", "budgets of each scheme", "expected absolute error")


def curves(analysis: Analysis) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The x and y of every curve: leakages, loss functions, "budget of <scheme>" and "error of <scheme>".

    What does not apply, such as the forward loss function of an adversary who does not know it, is empty.
    """
    inputs, leakage = analysis.inputs, analysis.leakage
    times = np.arange(1, inputs.epsilons.size + 1)
    nothing = np.empty(0)
    drawn = {
        "BPL": (times, leakage.bpl),
        "FPL": (times, leakage.fpl),
        "TPL": (times, leakage.tpl),
        "ε": (times, inputs.epsilons),
        "α": (times[[0, -1]], np.full(2, inputs.alpha)),
        "L backward": (nothing, nothing),
        "L forward": (nothing, nothing),
        "α − ε": (nothing, nothing),
        "breakpoints": (nothing, nothing),
        "supremum": (nothing, nothing),
    }
    for side in analysis.sides:
        drawn[f"L {side.name}"] = (side.alphas, side.losses)
    if analysis.sides:
        budget, limit = analysis.largest_budget, max(side.alphas[-1] for side in analysis.sides)
        marks = np.concatenate([side.breakpoints for side in analysis.sides])
        heights = np.concatenate([side.function(side.breakpoints) for side in analysis.sides])
        drawn["breakpoints"] = (marks, heights)
        drawn["α − ε"] = (np.array([budget, limit]), np.array([0.0, limit - budget]))
        suprema = np.array([side.supremum for side in analysis.sides])
        suprema = suprema[np.isfinite(suprema)]
        drawn["supremum"] = (suprema, suprema - budget)
    series = {CURRENT: inputs.epsilons} | {scheme.name: scheme.budgets for scheme in analysis.schemes}
    for name, budgets in series.items():
        drawn[f"budget of {name}"] = (nothing, nothing) if budgets is None else (times, budgets)
        drawn[f"error of {name}"] = (nothing, nothing) if budgets is None else (times, inputs.sensitivity / budgets)
    return drawn


def panels() -> list[dict]:
    """The four panels without their numbers: for each, the layout and the style of its curves, for Plotly."""
    labels = (
        ("release t", "leakage (nats)"),
        ("α, leakage of the neighbouring release (nats)", "L(α) (nats)"),
        ("release t", "ε (nats)"),
        ("release t", "error, log scale"),
    )
    styles = [[_style(name, *style[1:]) for name, style in STYLES.items() if style[0] == panel] for panel in (0, 1)]
    for what in ("budget", "error"):
        styles.append(
            [
                _style(name.partition(" (")[0], *style, "lines+markers") | {"meta": f"{what} of {name}"}
                for name, style in SERIES.items()
            ]
        )
    return [
        {"layout": _layout(title, *axes, logarithmic=title == TITLES[3]), "traces": traces}
        for title, axes, traces in zip(TITLES, labels, styles, strict=True)
    ]


def _style(name, colour, dash, marker, mode) -> dict:
    size = 9 if mode == "markers" else 6
    return {
        "type": "scatter",
        "name": name,
        "meta": name,
        "mode": mode,
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "symbol": marker, "size": size, "maxdisplayed": MARKERS},
        "hovertemplate": "%{x:.4g}, %{y:.5g}",
    }


def _layout(title, x, y, logarithmic) -> dict:
    # Margins are fixed and labels may touch: fitting them would take half the time of an update.
    axis = {
        "automargin": False,
        "ticklabeloverflow": "allow",
        "gridcolor": "rgba(128,128,128,0.25)",
        "linecolor": GREY,
        "zerolinecolor": "rgba(128,128,128,0.4)",
        "showline": True,
        "nticks": 8,
    }
    scale = {"rangemode": "tozero"}
    if logarithmic:
        ticks = [digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5)]
        scale = {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    return {
        "height": HEIGHT,
        "title": {"text": title, "font": {"size": 13}, "x": 0.5, "y": 0.97},
        "margin": {"l": 55, "r": 14, "t": 34, "b": 104, "autoexpand": False},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": GREY, "size": 12},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0.0, "y": -0.19, "yanchor": "top", "font": {"size": 11}},
        "xaxis": {**axis, "title": {"text": x, "standoff": 4, "font": {"size": 12}}},
        "yaxis": {**axis, **scale, "title": {"text": y, "font": {"size": 12}}},
        "hoverdistance": 30,
    }


PANELS = panels()
