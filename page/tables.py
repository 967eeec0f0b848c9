"""The results in words and tables, as HTML that follows the theme, with labels escaped."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from page.analysis import (
    EQUAL_PHASES,
    OF_SCHEDULE,
    Analysis,
    Inputs,
    Schemes,
    recommended_budgets,
    scheme_name,
    verdict_on,
)
from page.plots import CHOSEN
from tplreport.reporting.allocation_schemes import DIGITS, mean_error
from tplreport.reporting.report import Report
from tplreport.reporting.sentences import rounded_up
from tplrepro.display import count_noun


@dataclass(frozen=True)
class Mark:
    """How an answer is shown."""

    style: str
    sign: str


MARKS = {"yes": Mark("good", "✓"), "no": Mark("bad", "✗"), "unknown": Mark("doubt", "?")}
HEADINGS = ("budgets", "within α?", "largest TPL", "mean error", "smallest ε", "largest ε")
#: The schemes that hold for any T, and so have budgets for phases: name -> heading.
OF_PHASES = {
    "Algorithm 7 (any T)": "ε of Algorithm 7, least error",
    EQUAL_PHASES: "ε of Algorithm 7, equal",
    OF_SCHEDULE: "ε of Algorithm 7, shape of the schedule",
}
#: Of more phases the table is folded.
MANY_PHASES = 24


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
    place = f"release {peak + 1}"
    spent = "the largest ε is"
    if inputs.n_phases > 1:
        place += f", at phase {inputs.phase(peak)!r}"
        spent = "the largest ε of each phase is"
    yield (
        f"Largest TPL{by_whom}: {largest}, at {place}. "
        f"Supremum if {spent} spent forever: {supremum}."
    )
    if inputs.start:
        yield f"This holds for {inputs.start}."
    error = mean_error(leakage.epsilons, inputs.sensitivity)
    yield (
        f"All releases together: {nats(leakage.user_level)}. "
        f"Mean absolute error of Laplace noise: {error:.4g}."
    )
    if np.isfinite(analysis.gaussian):
        keeps = f"Equal Gaussian noise that keeps (α, δ = {inputs.delta:g})"
        yield f"{keeps} has error {analysis.gaussian:.4g} where a user changes two cells."


def witness_sentences(analysis: Analysis) -> Iterator[str]:
    """The states that the adversary tells apart, on each side that it knows, at the step to the
    largest leakage."""
    leakage = analysis.leakage
    inputs = analysis.inputs
    # The step of this number leads from release `step` to the next one, of both sides.
    step = max(int(np.argmax(leakage.bpl)) - 1, 0)
    backward = inputs.losses.backward.at(step)
    if backward is not None:
        yield f"Backward{in_phase(inputs, step)}: {backward.witness(float(leakage.bpl[step]))}."
    last = len(leakage) - 1
    following = min(int(last - np.argmax(leakage.fpl[::-1])) + 1, last)
    step = max(following - 1, 0)
    forward = inputs.losses.forward.at(step)
    if forward is not None:
        yield f"Forward{in_phase(inputs, step)}: {forward.witness(float(leakage.fpl[following]))}."


def in_phase(inputs: Inputs, step: int) -> str:
    """In which phase of a cycle a step begins, in words."""
    if inputs.n_phases == 1:
        return ""
    return f", from phase {inputs.phase(step)!r} to {inputs.phase(step + 1)!r}"


def nats(leakage: float) -> str:
    return count_noun(leakage, "nat", ".4g")


def schemes_html(analysis: Analysis, schemes: Schemes) -> str:
    """The table of the chosen budgets and those of schemes, with the verdict on each."""
    inputs = analysis.inputs
    shown: Schemes = {CHOSEN: analysis.leakage.epsilons}
    shown |= {scheme_name(name, inputs): budgets for name, budgets in schemes.items()}
    shown |= recommended_budgets(inputs)
    rows = [row_html(name, cells_of(budgets, inputs)) for name, budgets in shown.items()]
    return table_html(HEADINGS, rows) + phases_html(analysis, schemes)


def table_html(headings: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='tplr-scroll'>{table}</div>"


def phases_html(analysis: Analysis, schemes: Schemes) -> str:
    """The table of the phases of a cycle: suprema of the chosen budgets, and budgets for any T."""
    inputs = analysis.inputs
    p = inputs.n_phases
    if p == 1:
        return ""
    columns = {"phase": inputs.losses.phases}
    suprema = analysis.suprema
    columns["largest ε"] = cells_of_budgets(suprema.epsilons[-p:], p)
    of_sides = {"BPL": suprema.bpl, "FPL": suprema.fpl, "TPL": suprema.tpl}
    for name, values in of_sides.items():
        # Before the phases are the first releases after a start outside the habit.
        columns[f"supremum of {name}"] = [rounded_up(value) for value in values[-p:]]
    for name, heading in OF_PHASES.items():
        budgets = schemes.get(name, "")
        if not isinstance(budgets, str):
            columns[heading] = cells_of_budgets(budgets[:p], p)
    rows = [row_html(str(label), cells) for label, *cells in zip(*columns.values(), strict=True)]
    summary = f"Suprema and budgets of the {p} phases"
    is_open = "open"
    if p > MANY_PHASES:
        is_open = ""
    table = table_html([*columns], rows)
    return f"<details {is_open}><summary>{summary}</summary>{table}</details>"


def cells_of_budgets(budgets: np.ndarray, count: int) -> list[str]:
    """The cells of a column of `count` budgets with all their digits; empty where there are
    fewer."""
    cells = [f"{budget:.{DIGITS}g}" for budget in budgets]
    return cells + [""] * (count - len(cells))


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
    table = table.set_axis(releases)
    if inputs.n_phases > 1:
        phases = [inputs.phase(release) for release in range(len(table))]
        table.insert(0, "phase", phases)
    budgets = table.to_csv()
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
