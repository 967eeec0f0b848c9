"""The live plots: one Plotly figure of four panels whose curves change in place.

Colours are Okabe and Ito's, with a dash and a marker each; text and grid take their colours from the theme of the page
(see `browser`), so that the same figure is readable on light and on dark ground.
"""

from __future__ import annotations

import numpy as np

from tplrepro.explore.analysis import Analysis
from tplrepro.explore.schemes import SCHEMES
from tplrepro.figures import PALETTE

__all__ = ["LivePlots", "curves"]

HEIGHT = 760
#: Markers of a curve; breakpoints may be more, and the last are near each other.
MARKERS = 14
#: Readable on white and on black.
GREY = "#8c8c8c"
CURRENT = "the budgets above"

# name: panel (row, column), legend, colour, dash, marker, mode
STYLES = {
    "BPL": (1, 1, "legend", PALETTE[0], "solid", "circle", "lines+markers"),
    "FPL": (1, 1, "legend", PALETTE[1], "dash", "square", "lines+markers"),
    "TPL": (1, 1, "legend", PALETTE[2], "dashdot", "triangle-up", "lines+markers"),
    "ε": (1, 1, "legend", PALETTE[3], "dot", "diamond", "lines+markers"),
    "α": (1, 1, "legend", GREY, "longdash", "circle", "lines"),
    "L backward": (1, 2, "legend2", PALETTE[0], "solid", "circle", "lines"),
    "L forward": (1, 2, "legend2", PALETTE[1], "dash", "square", "lines"),
    "breakpoints": (1, 2, "legend2", PALETTE[3], "solid", "x", "markers"),
    "α − ε": (1, 2, "legend2", GREY, "longdash", "circle", "lines"),
    "supremum": (1, 2, "legend2", PALETTE[4], "solid", "star", "markers"),
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


class LivePlots:
    """The figure as a widget.

    Attributes
    ----------
    widget : plotly.graph_objects.FigureWidget
    """

    def __init__(self, analysis: Analysis):
        import plotly.graph_objects as go

        drawn = curves(analysis)
        # All curves are there from the beginning: a widget that gains some before it is shown loses them in Voilà.
        figure = _empty_figure()
        for name in STYLES:
            row, column, legend, colour, dash, marker, mode = STYLES[name]
            trace = _trace(go, name, colour, dash, marker, mode, drawn[name], legend=legend)
            figure.add_trace(trace, row=row, col=column)
        for column, what in ((1, "budget"), (2, "error")):
            for name, (colour, dash, marker) in SERIES.items():
                data = drawn[f"{what} of {name}"]
                trace = _trace(go, name, colour, dash, marker, "lines+markers", data, legend="legend3")
                trace.update(legendgroup=name, showlegend=column == 1, meta=f"{what} of {name}")
                figure.add_trace(trace, row=2, col=column)
        self.widget = go.FigureWidget(data=figure.data, layout=figure.layout)
        self.widget._config = {**(self.widget._config or {}), "responsive": True, "displayModeBar": False}
        self._drawn = drawn

    def update(self, analysis: Analysis) -> None:
        """Show another result; only the curves that changed are sent, in one message."""
        drawn = curves(analysis)
        changed = [name for name in drawn if not _same(drawn[name], self._drawn[name])]
        if not changed:
            return
        with self.widget.batch_update():
            for trace in self.widget.data:
                if trace.meta in changed:
                    trace.x, trace.y = drawn[trace.meta]
        self._drawn = drawn


def _trace(go, name, colour, dash, marker, mode, data, legend):
    return go.Scatter(
        x=data[0],
        y=data[1],
        name=name,
        meta=name,
        mode=mode,
        legend=legend,
        line={"color": colour, "dash": dash, "width": 2},
        # All points keep their place on the line; a marker each would take most of the time of an update.
        marker={"color": colour, "symbol": marker, "size": 9 if mode == "markers" else 6, "maxdisplayed": MARKERS},
        hovertemplate="%{x:.4g}, %{y:.5g}",
    )


def _empty_figure():
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=2, cols=2, subplot_titles=TITLES, vertical_spacing=0.19, horizontal_spacing=0.11)
    # Margins are fixed and labels may touch, because fitting them takes half the time of an update.
    fixed = {"automargin": False, "ticklabeloverflow": "allow", "ticks": ""}
    line = {**fixed, "gridcolor": "rgba(128,128,128,0.25)", "linecolor": GREY, "zerolinecolor": "rgba(128,128,128,0.4)"}
    figure.update_xaxes(**line, showline=True, title_standoff=6, nticks=8)
    figure.update_yaxes(**line, showline=True, title_standoff=6, rangemode="tozero")
    for row, column, x, y in (
        (1, 1, "release t", "leakage (nats)"),
        (1, 2, "α, leakage of the neighbouring release (nats)", "L(α) (nats)"),
        (2, 1, "release t", "ε (nats)"),
        (2, 2, "release t", "error, log scale"),
    ):
        figure.update_xaxes(title_text=x, row=row, col=column)
        figure.update_yaxes(title_text=y, row=row, col=column)
    ticks = [digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5)]
    labels = [f"{tick:g}" for tick in ticks]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=labels, rangemode="normal", row=2, col=2)
    legend = {
        "orientation": "h",
        "bgcolor": "rgba(0,0,0,0)",
        "yanchor": "bottom",
        "itemwidth": 30,
        "font": {"size": 11},
    }
    figure.update_layout(
        height=HEIGHT,
        autosize=True,
        template="none",
        margin={"l": 55, "r": 12, "t": 64, "b": 96},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": GREY, "size": 12},
        legend={**legend, "x": -0.02, "y": 1.0},
        # The loss function rises from left to right: below it there is room.
        legend2={**legend, "orientation": "v", "x": 1.0, "xanchor": "right", "y": 0.6},
        legend3={**legend, "x": 0.0, "y": -0.1, "yanchor": "top"},
        transition={"duration": 0},
        hoverdistance=30,
    )
    for title in figure.layout.annotations:
        title.update(yshift=20, font={"size": 13})
    return figure


def _same(one, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
