"""The state of a publisher as a page: what was spent, what leaks, what remains, and the last values
with their bands.

It is computed from noisy values and the settings alone, so that it may be shown to whoever may see
these: budgets and leakages tell of a chain that was estimated from data, as the settings do.
"""

from __future__ import annotations
from html import escape
from math import isfinite
from typing import Any

import pandas as pd

from tplreport.publishing.chain import condition_of_promise
from tplreport.publishing.publisher import Publisher
from tplreport.reporting.html import figure_in_html, html_page, table_in_html
from tplrepro.lazy import optional_import

#: The last times of a series that charts and tables show.
CHARTED = 168
LISTED = 24
#: Columns of a statistic that are shown; a wide histogram has more.
MOST_COLUMNS = 8
#: Of the bands around values.
LEVEL = 0.9


def status_page(publisher: Publisher, figures: bool = True) -> str:
    """A page on a publisher as it is now.

    Parameters
    ----------
    publisher : Publisher
    figures : bool, whether there are charts, which need Matplotlib

    Returns
    -------
    str, HTML

    Raises
    ------
    OSError
        For a file that cannot be used.
    """
    ledger = publisher.ledger
    tables = publisher.values_with_bands(LEVEL)
    leakage = _leakage_of(publisher)
    condition = condition_of_promise(publisher.settings) or "all users"
    parts = [
        f"<p>The promise holds for {escape(condition)}.</p>",
        "<h2>Budget</h2>",
        table_in_html(_summary(publisher, ledger, leakage)),
    ]
    if figures and leakage is not None and len(leakage):
        figure = _figure_of_leakage(leakage, publisher.settings["alpha"])
        parts.append(figure_in_html(figure, "Leakages over time, and the level that they keep"))
    parts.append("<h2>Last values</h2>")
    for name, (values, widths) in tables.items():
        parts += _parts_of_values(name, values, widths, figures)
    parts += [f"<h2>Last {LISTED} entries</h2>", table_in_html(ledger.tail(LISTED))]
    return html_page(escape(publisher.path.name), "".join(parts))


def _leakage_of(publisher: Publisher) -> pd.DataFrame | None:
    """The leakages of all times; None where some are not known, or each depends on a delta."""
    if publisher.settings["delta"] is not None:
        return None
    try:
        return publisher.leakage.to_frame()
    except ValueError:  # times that were spent elsewhere
        return None


def _summary(
    publisher: Publisher, ledger: pd.DataFrame, leakage: pd.DataFrame | None
) -> pd.DataFrame:
    """What a person wants to know first, a row for each thing."""
    times = len(publisher)
    rows = [("level that every time keeps (alpha)", f"{publisher.settings['alpha']:g} nats")]
    if publisher.settings["delta"] is not None:
        rows.append(("delta", f"{publisher.settings['delta']:g}"))
    rows.append(("times so far", f"{times:,}"))
    for kind, count in ledger.groupby("kind")["count"].sum().items():
        rows.append((f"of which {kind}", f"{count:,}"))
    for column in [name for name in ledger.columns if str(name).startswith("epsilon")]:
        total = (ledger[column] * ledger["count"]).sum()
        rows.append((f"sum of {column}", f"{total:.6g} nats"))
    if leakage is not None and times:
        rows.append(("largest leakage about one time so far", f"{leakage['tpl'].max():.6g} nats"))
    elif publisher.settings["delta"] is None and times:
        rows.append(("leakage", "within alpha; times were spent elsewhere, so not known"))
    rows.append(("remains for the next time", _remaining_in_words(publisher)))
    return pd.DataFrame(rows, columns=["", "now"])


def _remaining_in_words(publisher: Publisher) -> str:
    remaining = publisher.remaining
    if publisher.settings["delta"] is None:
        return f"{remaining:.6g} nats"
    if isfinite(remaining):
        return f"a noise multiplier of {remaining:.6g}"
    return "nothing: the plan has ended"


def _parts_of_values(
    name: str, values: pd.DataFrame, widths: pd.DataFrame, figures: bool
) -> list[str]:
    """A heading, a chart and a table of one statistic."""
    parts = []
    if name:
        parts.append(f"<h3>{escape(name)}</h3>")
    if values.empty:
        return [*parts, "<p>Nothing was published.</p>"]
    shown = values.iloc[:, :MOST_COLUMNS]
    if shown.shape[1] < values.shape[1]:
        parts.append(f"<p>The first {MOST_COLUMNS} of {values.shape[1]} columns.</p>")
    if figures:
        figure = _figure_of_values(shown, widths)
        parts.append(figure_in_html(figure, f"Noisy values over time with bands {name}"))
    last = shown.tail(LISTED)
    with_bands = last.apply(lambda column: _in_words(column, widths[column.name]))
    parts.append(f"<p>Each band holds the noise with probability {LEVEL:g} or more.</p>")
    parts.append(table_in_html(with_bands.reset_index()))
    return parts


def _in_words(values: pd.Series, widths: pd.Series) -> pd.Series:
    last = widths.loc[values.index]
    texts = [
        f"{value:.6g} ± {float(f'{width:.3g}'):g}"
        for value, width in zip(values, last, strict=True)
    ]
    return pd.Series(texts, values.index)


def _figure_of_leakage(leakage: pd.DataFrame, alpha: float) -> Any:
    """BPL, FPL and TPL of the last times, and the level that they keep."""
    with optional_import():
        from matplotlib.figure import Figure
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    axes = figure.subplots()
    shown = leakage.tail(CHARTED)
    for column, dash in (("tpl", "solid"), ("bpl", "dashed"), ("fpl", "dotted")):
        axes.plot(shown.index, shown[column], label=column.upper(), linestyle=dash)
    axes.axhline(alpha, color="black", linewidth=1, label="alpha")
    axes.set(ylabel="nats", ylim=(0.0, None), title="Leakage about each time")
    axes.tick_params(axis="x", rotation=20)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _figure_of_values(values: pd.DataFrame, widths: pd.DataFrame) -> Any:
    """The last values with their bands."""
    with optional_import():
        from matplotlib.figure import Figure
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    axes = figure.subplots()
    shown = values.tail(CHARTED)
    for column in shown:
        middle = shown[column].to_numpy(float)
        width = widths.loc[shown.index, column].to_numpy(float)
        (line,) = axes.plot(shown.index, middle, marker=".", label=str(column))
        axes.fill_between(
            shown.index, middle - width, middle + width, color=line.get_color(), alpha=0.15
        )
    axes.set(ylabel="noisy value")
    axes.tick_params(axis="x", rotation=20)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure
