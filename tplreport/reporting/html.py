"""A report as a page of HTML of its own: no code, no script, labels escaped, figures at reading size."""

from base64 import b64encode
from html import escape
from io import BytesIO
from typing import Any

from tplrepro.lazy import extra

#: Lines of the adversaries, in the order of the plans.
DASHES = ("solid", "dashed", "dashdot", "dotted", (0, (8, 2, 1, 2, 1, 2)))
STYLE = """
body { font: 17px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, p, li { overflow-wrap: anywhere; }
h2 { margin-top: 2rem; }
.warning { border: 2px solid #b00020; background: #fdecee; padding: .6rem 1rem; }
.verdict li { margin: .5rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 15px; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.fine { color: #1b6e2c; } .doubtful { color: #8a5a00; } .refused { color: #b00020; } .not.checked { color: #666; }
img { width: 100%; max-width: 46rem; margin-top: 1rem; }
"""


def page_of(report: Any, figures: bool) -> str:
    """The page of a `Report`; ModuleNotFoundError for figures without matplotlib."""
    title = escape(report.title or "Report")
    warning = ""
    if report.warnings:
        lines = "".join(f"<p>{escape(line)}.</p>" for line in report.warnings)
        withheld = "<p>The recommendation is withheld.</p>" if report.withheld else ""
        warning = f"<div class='warning' role='alert'>{lines}{withheld}</div>"
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in report.sentences)
    checks = "".join(
        f"<li>{escape(check.name)}: <strong class='{check.verdict}'>{check.verdict}</strong>. "
        f"{escape(check.sentence)}.</li>"
        for check in report.checks
    )
    read = "<br>".join(map(escape, report.read))
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style></head><body>"
        f"<h1>{title}</h1><p>{read}</p><p>{escape(report.size_in_words)}</p>{warning}"
        f"<h2>Verdict</h2><ol class='verdict'>{sentences}</ol>"
        f"<h2>All plans</h2>{_table(report)}{_image(figure_of(report)) if figures else ''}"
        f"<h2>Is the model believable?</h2><ul>{checks}</ul><h2>How certain is it?</h2>{notes}</body></html>"
    )


def _table(report: Any) -> str:
    """The plans; the recommended one is marked, one without budgets says why."""
    table = report.table
    marks = ["recommended" if plan is report.recommendation else "" for plan in report.plans]
    table.insert(0, "", marks + [""] * (len(table) - len(marks)))
    rows = table.to_html(index=False, float_format="{:.4g}".format, na_rep="", border=0)
    return f"<div class='scroll'>{rows}</div>"


def figure_of(report: Any) -> Any:
    """Budgets over time and errors of the plans, as a figure of Matplotlib."""
    with extra():
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
    plans = [plan for plan in report.plans if plan.budgets is not None]
    adversaries = dict(zip(dict.fromkeys(plan.against for plan in plans), DASHES, strict=False))
    colours = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(plan.scheme for plan in plans))}
    bars = 0.24 * len(plans)  # inches
    figure = Figure(figsize=(6.8, 3.5 + bars), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.8, bars + 0.7))
    above, below = (part.subplots() for part in parts)
    times = range(1, report.settings["horizon"] + 1)
    for plan in plans:
        look = {"color": colours[plan.scheme], "linestyle": adversaries[plan.against]}
        above.plot(times, plan.budgets, marker="." if len(times) == 1 else None, **look)
    above.set(xlabel="release", ylabel="budget (nats)", yscale="log", title="Budgets, colours as below")
    lines = [Line2D([], [], color="black", linestyle=dash, label=name) for name, dash in adversaries.items()]
    above.legend(handles=lines, title="against", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    names = [f"{plan.scheme}, {plan.against}" for plan in plans]
    below.barh(names, [plan.error for plan in plans], color=[colours[plan.scheme] for plan in plans])
    below.invert_yaxis()
    below.set(xlabel="mean absolute error of a count", title="Errors")
    return figure


def _image(figure: Any) -> str:
    """The figure within the page."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=150)
    image = b64encode(content.getvalue()).decode()
    return f"<img alt='Budgets and errors of all plans' src='data:image/png;base64,{image}'>"
