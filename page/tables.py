"""The results in words and tables, as HTML that follows the theme, with labels escaped."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from page.analysis import Analysis, Inputs, Schemes, recommended_budgets, scheme_name, verdict_on
from page.plots import CHOSEN
from tplreport.reporting.allocation_schemes import mean_error
from tplreport.reporting.report import Report
from tplrepro.display import count_noun


@dataclass(frozen=True)
class Mark:
    """How an answer is shown."""

    style: str
    sign: str


MARKS = {"yes": Mark("good", "✓"), "no": Mark("bad", "✗"), "unknown": Mark("doubt", "?")}
HEADINGS = ("", "budgets", "within α?", "largest TPL", "mean error", "smallest ε", "largest ε")
HEAD = "<th>".join(HEADINGS)


def verdict_html(analysis: Analysis) -> str:
    """The verdict on the chosen budgets, their numbers, and the states that the adversary tells
    apart."""
    verdict = analysis.verdict
    mark = MARKS[verdict.answer]
    sentence = f"{mark.sign} {escape(verdict.sentence)}"
    heading = f"<p class='tplr-verdict tplr-{mark.style}' role='status'>{sentence}</p>"
    sentences = [*leakage_sentences(analysis), *witness_sentences(analysis)]
    return heading + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def leakage_sentences(analysis: Analysis) -> Iterator[str]:
    """What the chosen budgets leak and cost."""
    leakage = analysis.leakage
    inputs = analysis.inputs
    peak = int(np.argmax(leakage.tpl))
    largest = nats(leakage.tpl[peak])
    supremum = "infinite, it grows without bound"
    if np.isfinite(analysis.supremum):
        supremum = nats(analysis.supremum)
    by_whom = " by the estimate" if inputs.report else ""
    yield (
        f"Largest TPL{by_whom}: {largest}, at release {peak + 1}. "
        f"Supremum if the largest ε is spent forever: {supremum}."
    )
    error = mean_error(leakage.epsilons, inputs.sensitivity)
    yield (
        f"All releases together: {nats(leakage.user_level)}. "
        f"Mean absolute error of Laplace noise: {error:.4g}."
    )
    if np.isfinite(analysis.gaussian):
        keeps = f"Equal Gaussian noise that keeps (α, δ = {inputs.delta:g})"
        yield f"{keeps} has error {analysis.gaussian:.4g} where a user changes two cells."


def witness_sentences(analysis: Analysis) -> Iterator[str]:
    """The states that the adversary tells apart, on each side that it knows."""
    leakage = analysis.leakage
    inputs = analysis.inputs
    if inputs.backward is not None:
        yield f"Backward: {inputs.backward.witness(before_largest(leakage.bpl))}."
    if inputs.forward is not None:
        yield f"Forward: {inputs.forward.witness(before_largest(leakage.fpl[::-1]))}."


def before_largest(leakages: np.ndarray) -> float:
    """The leakage one step before the largest, which the loss function takes."""
    step = max(int(np.argmax(leakages)) - 1, 0)
    return float(leakages[step])


def nats(leakage: float) -> str:
    return count_noun(leakage, "nat", ".4g")


def schemes_html(analysis: Analysis, schemes: Schemes) -> str:
    """The table of the chosen budgets and those of schemes, with the verdict on each."""
    inputs = analysis.inputs
    shown: Schemes = {CHOSEN: analysis.leakage.epsilons}
    shown |= {scheme_name(name, inputs): budgets for name, budgets in schemes.items()}
    shown |= recommended_budgets(inputs)
    rows = [row_html(name, cells_of(budgets, inputs)) for name, budgets in shown.items()]
    head = f"<thead><tr>{HEAD}</tr></thead>"
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f"<div class='tplr-scroll'><table>{head}{body}</table></div>"


def cells_of(budgets: np.ndarray | str, inputs: Inputs) -> list[str]:
    """The cells of a scheme: the verdict and numbers; `budgets` that are words say why it has
    none."""
    if isinstance(budgets, str):
        return [budgets, "", "", "", ""]
    verdict = verdict_on(inputs, budgets)
    error = mean_error(budgets, inputs.sensitivity)
    numbers = (verdict.worst, error, budgets.min(), budgets.max())
    answer = f"{MARKS[verdict.answer].sign} {verdict.answer}"
    return [answer, *(f"{number:.4g}" for number in numbers)]


def row_html(name: str, cells: Sequence[str]) -> str:
    row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f"<tr><th>{escape(name)}</th>{row}</tr>"


def saved_html(analysis: Analysis) -> str:
    """Links that save the budgets, and the report if there is one; the files are in them."""
    inputs = analysis.inputs
    table = analysis.leakage.to_frame()
    releases = pd.RangeIndex(1, len(table) + 1, name="t")  # as the page counts them
    budgets = table.set_axis(releases).to_csv()
    prefix = f"alpha-{inputs.alpha:g}-T-{inputs.horizon}"
    links = link_html("Save budgets (CSV)", f"{prefix}-budgets.csv", "text/csv", budgets)
    if inputs.report is not None:
        page = inputs.report.to_html()
        links += link_html("Save report (HTML)", f"{prefix}-report.html", "text/html", page)
    return links


def link_html(label: str, name: str, kind: str, content: str) -> str:
    """A link, shown as `label`, that saves the content as a file called `name` of this MIME
    type."""
    data = f"data:{kind};base64,{b64encode(content.encode()).decode()}"
    return f"<a class='tplr-save' download='{name}' href='{data}'>{label}</a>"


def report_html(report: Report) -> str:
    """The report as the package renders it, within the page."""
    _, _, body = report.to_html(figures=False).partition("<body>")
    body, _, _ = body.partition("</body>")
    return f"<div class='tplr-report'>{body}</div>"
