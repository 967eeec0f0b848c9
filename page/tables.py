"""The results in words and tables, as HTML that follows the theme, with labels escaped."""

from base64 import b64encode
from html import escape

import numpy as np
import pandas as pd

from page.analysis import Analysis, recommended_budgets, scheme_name, verdict_on
from page.plots import CHOSEN
from tplreport.reporting.allocation_schemes import mean_error
from tplreport.reporting.report import Report
from tplrepro.display import count_noun

# class and mark of an answer
MARKS = {"yes": ("good", "✓"), "no": ("bad", "✗"), "unknown": ("doubt", "?")}
HEAD = "<th>".join(
    ("", "budgets", "within α?", "largest TPL", "mean error", "smallest ε", "largest ε")
)


def verdict_html(analysis: Analysis) -> str:
    """The verdict on the chosen budgets, their numbers, and the states that the adversary tells
    apart."""
    leakage, inputs, verdict = analysis.leakage, analysis.inputs, analysis.verdict
    kind, mark = MARKS[verdict.answer]
    peak, supremum = int(np.argmax(leakage.tpl)), count_noun(analysis.supremum, "nat", ".4g")
    supremum = supremum if np.isfinite(analysis.supremum) else "infinite, it grows without bound"
    said = [
        f"Largest TPL{' by the estimate' if inputs.report else ''}: {count_noun(leakage.tpl[peak], 'nat', '.4g')}, at "
        f"release {peak + 1}. Supremum if the largest ε is spent forever: {supremum}.",
        f"All releases together: {count_noun(leakage.user_level, 'nat', '.4g')}. "
        f"Mean absolute error of Laplace noise: {mean_error(leakage.epsilons, inputs.sensitivity):.4g}.",
    ]
    if np.isfinite(analysis.gaussian):
        keeps = f"Equal Gaussian noise that keeps (α, δ = {inputs.delta:g})"
        said.append(f"{keeps} has error {analysis.gaussian:.4g} where a user changes two cells.")
    sides = {
        "Backward": (inputs.backward, leakage.bpl),
        "Forward": (inputs.forward, leakage.fpl[::-1]),
    }
    for name, (side, series) in sides.items():
        if side is not None:
            said.append(
                f"{name}: {side.witness(float(series[max(int(np.argmax(series)) - 1, 0)]))}."
            )
    words = (
        f"<p class='tplr-verdict tplr-{kind}' role='status'>{mark} {escape(verdict.sentence)}</p>"
    )
    return words + "".join(f"<p>{escape(sentence)}</p>" for sentence in said)


def schemes_html(analysis: Analysis, schemes: dict[str, np.ndarray | str]) -> str:
    """The table of budgets, with the verdict on each."""
    inputs, rows = analysis.inputs, ""
    shown: dict[str, np.ndarray | str] = {CHOSEN: analysis.leakage.epsilons}
    shown |= {scheme_name(name, inputs): budgets for name, budgets in schemes.items()}
    shown |= recommended_budgets(inputs)
    for name, budgets in shown.items():
        if isinstance(budgets, str):
            cells = [budgets, "", "", "", ""]
        else:
            verdict = verdict_on(inputs, budgets)
            numbers = (
                verdict.worst,
                mean_error(budgets, inputs.sensitivity),
                budgets.min(),
                budgets.max(),
            )
            cells = [
                f"{MARKS[verdict.answer][1]} {verdict.answer}",
                *(f"{number:.4g}" for number in numbers),
            ]
        rows += f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
    return f"<div class='tplr-scroll'><table><thead><tr>{HEAD}</tr></thead><tbody>{rows}</tbody></table></div>"


def saved_html(analysis: Analysis) -> str:
    """Links that save the budgets, and the report if there is one; the files are in them."""
    inputs = analysis.inputs
    table = analysis.leakage.to_frame()
    releases = pd.RangeIndex(1, len(table) + 1, name="t")  # as the page counts them
    budgets = table.set_axis(releases).to_csv().encode()
    files = [("budgets.csv", "Save budgets (CSV)", "text/csv", budgets)]
    if inputs.report is not None:
        files.append(
            ("report.html", "Save report (HTML)", "text/html", inputs.report.to_html().encode())
        )
    links = ""
    for name, label, kind, content in files:
        saved = f"alpha-{inputs.alpha:g}-T-{inputs.horizon}-{name}"
        data = f"data:{kind};base64,{b64encode(content).decode()}"
        links += f"<a class='tplr-save' download='{saved}' href='{data}'>{label}</a>"
    return links


def report_html(report: Report) -> str:
    """The report as the package renders it, within the page."""
    body = report.to_html(figures=False).partition("<body>")[2].partition("</body>")[0]
    return f"<div class='tplr-report'>{body}</div>"
