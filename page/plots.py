"""One Plotly figure of three panels, whose curves change in place; text and grid are coloured by
`style.css`."""

import sys
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from page.analysis import EQUAL_PHASES, OF_SCHEDULE, Analysis, Inputs, Schemes, scheme_name
from tplreport.reporting.allocation_schemes import SCHEMES

# Plotly loads nbformat, and that jsonschema, which would build a grammar of web addresses for a
# second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from plotly.graph_objects import FigureWidget  # noqa: E402
from plotly.subplots import make_subplots  # noqa: E402

BLUE = "#0072B2"
RED = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREY = "#8c8c8c"  # readable on white and on black
CHOSEN = "the chosen budgets"
GAUSSIAN = "Gaussian, α at δ"
TARGET = "target α"
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
SPENT |= {EQUAL_PHASES: (RED, "dash"), OF_SCHEDULE: (BLUE, "longdashdot")}
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
#: Labels of phases on an axis, at most.
MAX_TICKS = 9
CLEAR = "rgba(0,0,0,0)"
TICKS = [digit * 10.0**exponent for exponent in range(-4, 6) for digit in (1, 2, 5)]
LAYOUT = {
    "height": 1250,
    "margin": {"l": 50, "r": 10, "t": 125, "b": 45},
    "template": "none",
    "hovermode": "x",
    "paper_bgcolor": CLEAR,
    "plot_bgcolor": CLEAR,
    "legend_bgcolor": CLEAR,
    "autosize": True,
}
CONFIGURATION = {
    "displaylogo": False,
    "responsive": True,
    "toImageButtonOptions": {"format": "svg"},
}


@dataclass(frozen=True, eq=False)
class Curve:
    """What a curve shows; empty where it does not apply."""

    x: np.ndarray
    y: np.ndarray

    @property
    def is_shown(self) -> bool:
        return self.x.size > 0


@dataclass(frozen=True)
class TimeAxis:
    """What stands below the time axis: numbers of releases, or labels of their phases."""

    title: str
    tickmode: str
    tickvals: tuple[int, ...] | None = None
    ticktext: tuple[str, ...] | None = None


def time_axis(inputs: Inputs) -> TimeAxis:
    """The axis for the releases."""
    p = inputs.n_phases
    if p == 1:
        return TimeAxis("release t", "auto")
    every = spacing_of_ticks(p, inputs.horizon)
    releases = range(0, inputs.horizon, every)
    labels = tuple(escape(str(inputs.phase(release))) for release in releases)
    numbers = tuple(release + 1 for release in releases)
    return TimeAxis("phase of release t", "array", numbers, labels)


def spacing_of_ticks(p: int, horizon: int) -> int:
    """Releases from one label to the next: a divisor of the period, or several periods.

    >>> spacing_of_ticks(24, 48), spacing_of_ticks(168, 336), spacing_of_ticks(4, 100)
    (6, 42, 12)
    """
    divisors = [d for d in range(1, p + 1) if p % d == 0]
    for every in divisors:
        if horizon <= MAX_TICKS * every:
            return every
    periods = -(-horizon // (MAX_TICKS * p))
    return periods * p


def curves(analysis: Analysis, schemes: Schemes) -> list[Curve]:
    """Each curve of a result and of the budgets of schemes, in the order of `PANELS`."""
    leakage = analysis.leakage
    sensitivity = analysis.inputs.sensitivity
    times = np.arange(1, len(leakage) + 1)
    leaked: dict[str, Any] = {
        "BPL": leakage.bpl,
        "FPL": leakage.fpl,
        "TPL": leakage.tpl,
        WORST: analysis.worst,
        TARGET: analysis.inputs.alpha,
        SUPREMUM: level_or_series(analysis.suprema_over_time),
    }
    spent: dict[str, Any] = {
        name: budgets for name, budgets in schemes.items() if not isinstance(budgets, str)
    }
    spent[CHOSEN] = leakage.epsilons
    errors: dict[str, Any] = {name: sensitivity / budgets for name, budgets in spent.items()}
    errors[GAUSSIAN] = analysis.gaussian
    lines = []
    for values, names in zip((leaked, errors, spent), PANELS.values(), strict=True):
        lines += [make_curve(times, np.asarray(values.get(name, np.nan))) for name in names]
    return lines


def level_or_series(values: np.ndarray) -> np.ndarray:
    """The one level of a series (T,) that does not change, as an array (); else the series."""
    if (values == values[0]).all():
        return values[0]
    return values


def make_curve(times: np.ndarray, values: np.ndarray) -> Curve:
    """A series over times (T,), or one level from end to end; empty if a value is not finite."""
    if not values.size or not np.isfinite(values).all():
        return Curve(np.empty(0), np.empty(0))
    if values.ndim == 0:
        return Curve(times[[0, -1]], np.full(2, values))
    return Curve(times, values)


def draw(analysis: Analysis, schemes: Schemes) -> FigureWidget:
    """The figure of a result and of the budgets of schemes, whole at once: what is added to the
    widget before a browser shows it would be lost."""
    titles = [title for title, _ in PANELS]
    figure = make_subplots(len(PANELS), 1, subplot_titles=titles, vertical_spacing=0.16)
    figure.update_annotations(x=0, xanchor="left", yshift=94)
    lines = iter(curves(analysis, schemes))
    for row, ((_, label), looks) in enumerate(PANELS.items(), 1):
        figure.update_yaxes(title=label, rangemode="tozero", row=row, col=1)
        top = {"y": figure.layout[f"yaxis{row}"].domain[1], "yanchor": "bottom"}
        figure.update_layout({f"legend{row}": LEGEND | top})
        for name, look in looks.items():
            shown_name = scheme_name(name, analysis.inputs)
            add_curve(figure, row, next(lines), shown_name, look, is_broad=name == CHOSEN)
    figure.update_yaxes(type="log", tickvals=TICKS, row=2)
    figure.update_xaxes(showgrid=False, zeroline=False)
    figure.update_xaxes(asdict(time_axis(analysis.inputs)))
    figure.update_layout(LAYOUT)
    widget = FigureWidget(figure)
    widget._config = CONFIGURATION
    return widget


def add_curve(
    figure: Any, row: int, curve: Curve, name: str, look: tuple[str, str], is_broad: bool
) -> None:
    """Add a curve to the panel in this row of the figure; `look` is its colour and dash, and `name`
    is for the legend."""
    colour, dash = look
    width = 2
    if is_broad:
        width = 6
    figure.add_scatter(
        x=curve.x,
        y=curve.y,
        name=name,
        mode="lines",
        line={"color": colour, "dash": dash, "width": width},
        legend=f"legend{row}",
        showlegend=curve.is_shown,
        hovertemplate="%{y:.4g}",
        row=row,
        col=1,
    )


def update(widget: FigureWidget, analysis: Analysis, schemes: Schemes) -> None:
    """Show another result in the figure that `draw` made; curves that stay the same are not sent to
    the browser."""
    names = [name for panel in PANELS.values() for name in panel]
    with widget.batch_update():
        # any change of the layout lets Plotly measure its place again
        widget.layout.meta = not widget.layout.meta
        axis = time_axis(analysis.inputs)
        if widget.layout.xaxis.ticktext != axis.ticktext:
            widget.update_xaxes(asdict(axis))
        for trace, name, curve in zip(widget.data, names, curves(analysis, schemes), strict=True):
            is_same = np.array_equal(curve.x, trace.x) and np.array_equal(curve.y, trace.y)
            if not is_same:
                trace.update(x=curve.x, y=curve.y, showlegend=curve.is_shown)
            shown_name = scheme_name(name, analysis.inputs)
            if trace.name != shown_name:
                trace.update(name=shown_name)
