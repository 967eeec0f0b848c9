"""One Plotly figure of three panels, whose curves change in place; text and grid are coloured by
`style.css`."""

import sys
from typing import Any

import numpy as np

from page.analysis import Analysis, scheme_name
from tplreport.reporting.allocation_schemes import SCHEMES

# Plotly loads nbformat, and that jsonschema, which would build a grammar of web addresses for a
# second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from plotly.graph_objects import FigureWidget  # noqa: E402
from plotly.subplots import make_subplots  # noqa: E402

BLUE, RED, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
GREY = "#8c8c8c"  # readable on white and on black
CHOSEN = "the chosen budgets"
GAUSSIAN, TARGET = "Gaussian, α at δ", "target α"
# The supremum is of the matrices in the fields; a file may leave worse ones possible, whose TPL is
# above it.
SUPREMUM = "supremum of TPL, these matrices"
WORST = "TPL, worst that the file allows"
# Name -> colour and dash of each curve; the chosen budgets are drawn broad, because others may be
# the same.
LEAKAGES = {
    "BPL": (BLUE, "solid"),
    "FPL": (RED, "dash"),
    "TPL": (GREEN, "solid"),
    WORST: (PURPLE, "dashdot"),
}
LEAKAGES |= {TARGET: (GREY, "longdash"), SUPREMUM: (ORANGE, "dot")}
LOOKS = ((GREY, "solid"), (PURPLE, "dot"), (ORANGE, "dash"), (SKY, "dashdot"), (GREEN, "longdash"))
SPENT = dict(zip((CHOSEN, *SCHEMES), LOOKS, strict=True))
# Title and y axis of each panel, and its curves.
PANELS = {
    ("Leakage over time", "leakage (nats)"): LEAKAGES,
    ("What it costs", "mean absolute error"): SPENT | {GAUSSIAN: (BLUE, "dot")},
    ("Budgets of each scheme", "ε (nats)"): SPENT,
}
# Two columns above each panel, at any width.
LEGEND = {
    "orientation": "h",
    "entrywidth": 0.5,
    "entrywidthmode": "fraction",
    "font": {"size": 9.5},
    "x": 0,
}
CLEAR, TICKS = "rgba(0,0,0,0)", [digit * 10.0**k for k in range(-4, 6) for digit in (1, 2, 5)]


def curves(
    analysis: Analysis, schemes: dict[str, np.ndarray | str]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """x and y of each curve, in the order of `PANELS`, empty where it does not apply."""
    leakage, inputs, times = (
        analysis.leakage,
        analysis.inputs,
        np.arange(1, len(analysis.leakage) + 1),
    )
    spent: dict[str, Any] = {name: one for name, one in schemes.items() if not isinstance(one, str)}
    spent[CHOSEN] = leakage.epsilons
    errors: dict[str, Any] = {name: inputs.sensitivity / one for name, one in spent.items()}
    errors[GAUSSIAN] = analysis.gaussian
    leaked: dict[str, Any] = {
        "BPL": leakage.bpl,
        "FPL": leakage.fpl,
        "TPL": leakage.tpl,
        WORST: analysis.worst,
    }
    leaked |= {TARGET: inputs.alpha, SUPREMUM: analysis.supremum}
    panels = zip((leaked, errors, spent), PANELS.values(), strict=True)
    lines = [found.get(name, np.nan) for found, names in panels for name in names]
    return [_curve(times, np.asarray(line)) for line in lines]


def _curve(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A series over time, or one level from end to end."""
    if values.ndim == 0:
        times, values = times[[0, -1]], np.full(2, values)
    return (
        (times, values) if values.size and np.isfinite(values).all() else (np.empty(0), np.empty(0))
    )


def draw(analysis: Analysis, schemes: dict[str, np.ndarray | str]) -> FigureWidget:
    """The figure, whole at once: what is added to the widget before a browser shows it would be
    lost."""
    titles, drawn = [title for title, _ in PANELS], iter(curves(analysis, schemes))
    figure = make_subplots(len(PANELS), 1, subplot_titles=titles, vertical_spacing=0.15)
    figure.update_annotations(x=0, xanchor="left", yshift=76)
    for row, ((_, label), panel) in enumerate(PANELS.items(), 1):
        place: dict[str, Any] = {"row": row, "col": 1}
        figure.update_yaxes(title=label, rangemode="tozero", **place)
        top = {"y": figure.layout[f"yaxis{row}"].domain[1], "yanchor": "bottom"}
        figure.update_layout({f"legend{row}": LEGEND | top})
        for name, (colour, dash) in panel.items():
            x, y = next(drawn)
            look = {"color": colour, "dash": dash, "width": 6 if name == CHOSEN else 2}
            place |= {
                "legend": f"legend{row}",
                "showlegend": x.size > 0,
                "hovertemplate": "%{y:.4g}",
            }
            shown = scheme_name(name, analysis.inputs)
            figure.add_scatter(x=x, y=y, name=shown, mode="lines", line=look, **place)
    figure.update_yaxes(type="log", tickvals=TICKS, row=2)
    figure.update_xaxes(title="release t", showgrid=False, zeroline=False)
    figure.update_layout(
        height=1150, margin={"l": 50, "r": 10, "t": 105, "b": 45}, template="none", hovermode="x"
    )
    figure.update_layout(
        paper_bgcolor=CLEAR, plot_bgcolor=CLEAR, legend_bgcolor=CLEAR, autosize=True
    )
    widget = FigureWidget(figure)
    widget._config = {
        "displaylogo": False,
        "responsive": True,
        "toImageButtonOptions": {"format": "svg"},
    }
    return widget


def update(widget: FigureWidget, analysis: Analysis, schemes: dict[str, np.ndarray | str]) -> None:
    """Show another result; of the curves, what is the same is not sent."""
    with widget.batch_update():
        # any change of the layout lets Plotly measure its place again
        widget.layout.meta = not widget.layout.meta
        keys = [name for panel in PANELS.values() for name in panel]
        drawn = zip(widget.data, keys, curves(analysis, schemes), strict=True)
        for trace, key, (x, y) in drawn:
            if not (np.array_equal(x, trace.x) and np.array_equal(y, trace.y)):
                trace.update(x=x, y=y, showlegend=x.size > 0)
            name = scheme_name(key, analysis.inputs)
            if trace.name != name:
                trace.update(name=name)
