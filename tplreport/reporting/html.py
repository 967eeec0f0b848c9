"""A report as a page of HTML of its own: no code, no script, labels escaped, figures at reading
size. Other pages take `html_page`, `table_in_html` and `figure_in_html`."""

import math
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import Any

from tplreport.reporting.plans import ANYBODY, Plan
from tplrepro.display import count_from_one, label_log_axis
from tplrepro.lazy import optional_import

#: Lines of the schemes, in the order of the plans.
DASHES: tuple[Any, ...] = (
    "dotted",
    "solid",
    "dashed",
    "dashdot",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
)
#: Ratio of two errors of which the smaller one would have no visible bar on a linear axis.
FAR_APART = 100
STYLE = """
body { font: 17px/1.5 system-ui, sans-serif; max-width: 76rem; color: #222; }
body { margin: 2rem auto; padding: 0 1rem; }
h1, p, li { overflow-wrap: anywhere; max-width: 50rem; }
h2 { margin-top: 2rem; }
.warning { border: 2px solid #b00020; background: #fdecee; padding: .6rem 1rem; }
.verdict li { margin: .5rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 15px; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; min-width: 12rem; }
.fine { color: #1b6e2c; } .doubtful { color: #8a5a00; }
.refused { color: #b00020; } .not.checked { color: #666; }
img { width: 100%; max-width: 60rem; margin-top: 1rem; }
"""


def page_of(report: Any, figures: bool) -> str:
    """The page of a `Report`; ModuleNotFoundError for figures without matplotlib."""
    title = escape(report.title or "Report")
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in report.sentences)
    checks = "".join(
        f"<li>{escape(check.name)}: <strong class='{check.verdict}'>{check.verdict}</strong>. "
        f"{escape(check.sentence)}.</li>"
        for check in report.checks
    )
    read = "<br>".join(map(escape, report.read))
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    image = ""
    if figures:
        image = figure_in_html(figure_of(report), "Budgets and errors of all plans")
    body = (
        f"<p>{read}</p><p>{escape(report.size_in_words)}</p>{_warning(report)}"
        f"<h2>Verdict</h2><ol class='verdict'>{sentences}</ol>"
        f"<h2>All plans</h2>{_table(report)}{image}"
        f"<h2>Is the model believable?</h2><ul>{checks}</ul>"
        f"<h2>How certain is it?</h2>{notes}"
    )
    return html_page(title, body)


def html_page(title: str, body: str) -> str:
    """A page with a heading.

    Parameters
    ----------
    title : str, HTML
    body : str, HTML of what follows the heading

    Returns
    -------
    str
    """
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style></head><body>"
        f"<h1>{title}</h1>{body}</body></html>"
    )


def table_in_html(table: Any, index: bool = False) -> str:
    """A table that is moved to and fro where it is too wide, four digits a number.

    Parameters
    ----------
    table : DataFrame
    index : bool, whether its index is shown

    Returns
    -------
    str
    """
    rows = table.to_html(index=index, float_format="{:.4g}".format, na_rep="", border=0)
    return f"<div class='scroll'>{rows}</div>"


def _warning(report: Any) -> str:
    """Why the model is refused, in a box; "" if it is not."""
    if not report.warnings:
        return ""
    lines = "".join(f"<p>{escape(line)}.</p>" for line in report.warnings)
    if report.withheld:
        lines += "<p>The recommendation is withheld.</p>"
    return f"<div class='warning' role='alert'>{lines}</div>"


def _table(report: Any) -> str:
    """The plans, the recommended one marked, and why some have no budgets."""
    table = report.table
    reasons = "".join(
        f"<p>{escape(plan.name)}: {escape(plan.message)}.</p>"
        for plan in report.plans
        if plan.message
    )
    return table_in_html(table.drop(columns="message")) + reasons


def figure_of(report: Any) -> Any:
    """Budgets over time, in a panel for each adversary, and the errors of all plans, as a figure of
    Matplotlib."""
    with optional_import():
        from matplotlib.figure import Figure
    plans = [plan for plan in report.plans if plan.budgets is not None]
    looks = _looks_of_schemes(plans)
    others = dict.fromkeys(plan.against for plan in plans if plan.against != ANYBODY)
    adversaries = list(others) or [ANYBODY]
    rows = math.ceil(len(adversaries) / 2)
    bars = 0.24 * len(plans)  # inches
    figure = Figure(figsize=(8.5, 2.4 * rows + bars + 1.2), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.4 * rows + 0.4, bars + 0.8))
    above, below = parts
    panels = above.subplots(rows, min(2, len(adversaries)), sharey=True, squeeze=False).ravel()
    for panel, adversary in zip(panels, adversaries, strict=False):
        withstanding = [plan for plan in plans if plan.against in (adversary, ANYBODY)]
        _draw_budgets(panel, withstanding, adversary, report.settings["horizon"], looks)
        if report.rhythm is not None:
            panel.set_xlabel(f"release, the first at {report.rhythm.first}")
    for panel in panels[len(adversaries) :]:
        panel.set_axis_off()
    lines = {line.get_label(): line for panel in panels for line in panel.lines}
    above.legend(lines.values(), lines, loc="outside lower center", ncols=4, frameon=False)
    _draw_errors(below.subplots(), plans, looks)
    return figure


def _looks_of_schemes(plans: Sequence[Plan]) -> dict[str, dict[str, Any]]:
    """The colour and the dashes of the lines of each scheme."""
    schemes = dict.fromkeys(plan.scheme for plan in plans)
    return {
        name: {"color": f"C{k}", "linestyle": dash}
        for k, (name, dash) in enumerate(zip(schemes, DASHES, strict=False))
    }


def _draw_budgets(
    panel: Any,
    plans: Sequence[Plan],
    adversary: str,
    horizon: int,
    looks: dict[str, dict[str, Any]],
) -> None:
    """A line for each plan against one adversary: its budgets over time, on a logarithmic axis;
    `looks` has the colour and the dashes of each scheme."""
    times = range(1, horizon + 1)
    marker = None
    if horizon == 1:
        marker = "."
    for plan in plans:
        panel.plot(times, plan.budgets, label=plan.scheme, marker=marker, **looks[plan.scheme])
    panel.set(title=f"Budgets against {adversary}", xlabel="release", ylabel="nats", yscale="log")
    label_log_axis(panel.yaxis)
    count_from_one(panel.xaxis)


def _draw_errors(chart: Any, plans: Sequence[Plan], looks: dict[str, dict[str, Any]]) -> None:
    """A bar for each plan: the error of a count, on a logarithmic axis where one is over
    `FAR_APART` times another; `looks` has the colour of each scheme."""
    names = [plan.name for plan in plans]
    errors = [plan.error for plan in plans]
    colors = [looks[plan.scheme]["color"] for plan in plans]
    chart.barh(names, errors, color=colors)
    chart.invert_yaxis()
    chart.set(xlabel="mean absolute error of a count", title="Errors")
    if max(errors) > FAR_APART * min(errors):
        chart.set_xscale("log")


def figure_in_html(figure: Any, description: str) -> str:
    """A figure within the page.

    Parameters
    ----------
    figure : Figure of Matplotlib
    description : str, for those who do not see it

    Returns
    -------
    str
    """
    content = BytesIO()
    figure.savefig(content, format="png", dpi=150)
    image = b64encode(content.getvalue()).decode()
    return f"<img alt='{escape(description)}' src='data:image/png;base64,{image}'>"
