"""The results as HTML that follows the theme of the page (labels of states are escaped), and as files to save."""

import re
from html import escape

import numpy as np
import pandas as pd

from tplrepro.explore.analysis import Analysis
from tplrepro.explore.plots import CURRENT, draw
from tplrepro.explore.schemes import PENDING, mean_error
from tplrepro.figures import figure_bytes
from tplrepro.leakage.temporal import temporal_privacy_leakage

__all__ = ["MEDIA_TYPES", "budgets_of", "budgets_table", "critical_words", "file_name", "problem_html"]
__all__ += ["saved_figure", "schemes_html", "summary_html", "supremum_words"]

#: What a browser needs to know about a file.
MEDIA_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".pdf": "application/pdf"}


def critical_words(critical: float) -> str:
    """For which budgets the supremum is finite.

    >>> critical_words(0.22314355)
    'below 0.22314 nats a release'
    """
    if critical == np.inf:
        return "for every budget"
    if critical == 0.0:
        return "for no budget: the leakage grows without bound"
    return f"below {critical:.5g} nats a release"


def supremum_words(value: float) -> str:
    return "grows without bound" if value == np.inf else f"{value:.4g} nats"


def summary_html(analysis: Analysis) -> str:
    """Numbers and sentences about the current budgets."""
    leakage, inputs = analysis.leakage, analysis.inputs
    peak = int(np.argmax(leakage.tpl))
    largest = float(leakage.tpl[peak])
    verdict, mark = ("within", "good") if largest <= inputs.alpha else ("more than", "bad")
    critical = f"<span data-number='critical'>{critical_words(analysis.critical)}</span>"
    if len(analysis.sides) > 1 and 0.0 < analysis.critical < np.inf:
        critical += f" ({'; '.join(f'{side.name} {critical_words(side.critical)}' for side in analysis.sides)})"
    rows = {
        "Largest TPL": f"<strong data-number='tpl'>{largest:.4g} nats</strong> at release {peak + 1} of "
        f"{inputs.epsilons.size} <span class='tplr-{mark}'>{verdict} α = {inputs.alpha:g}</span>",
        "Without correlation": f"{analysis.largest_budget:.4g} nats, the largest budget",
        "All releases together": f"{leakage.user_level:.4g} nats (user level, the sum of the budgets)",
        "Released for ever": f"<span data-number='supremum'>{supremum_words(analysis.supremum)}</span> at that budget",
        "Supremum is finite": critical,
        "Mean error": f"{mean_error(inputs.epsilons, inputs.sensitivity):.4g} (mean absolute Laplace noise)",
    }
    table = "".join(f"<tr><th scope='row'>{name}</th><td>{text}</td></tr>" for name, text in rows.items())
    sentences = "".join(f"<li>{escape(str(side))}.</li>" for side in analysis.sides)
    return (
        f"<table class='tplr-table tplr-summary' aria-label='Leakage of these budgets'>{table}</table>"
        f"<ul class='tplr-witness'>{sentences}</ul>"
    )


def schemes_html(analysis: Analysis) -> str:
    """The table of allocation schemes, with a mark on the least error."""
    columns = ("budgets for α", "smallest ε (nats)", "largest ε (nats)", "largest TPL (nats)", "mean error")
    head = "".join(f"<th scope='col'>{text}</th>" for text in columns)
    sensitivity = analysis.inputs.sensitivity
    errors = {s.name: mean_error(s.budgets, sensitivity) for s in analysis.schemes if s.budgets is not None}
    least = min(errors.values(), default=np.inf)
    rows = []
    for scheme in analysis.schemes:
        name = f"<th scope='row'>{escape(scheme.name)}</th>"
        if scheme.budgets is None:
            kind = "tplr-pending" if scheme.message == PENDING else "tplr-infeasible"
            rows.append(f"<tr class='{kind}'>{name}<td colspan='4'>{escape(scheme.message)}</td></tr>")
            continue
        numbers = scheme.budgets.min(), scheme.budgets.max(), scheme.largest_tpl, errors[scheme.name]
        cells = "</td><td>".join(f"{number:.5g}" for number in numbers)
        best = " <span class='tplr-good'>least</span>" if errors[scheme.name] <= least * (1 + 1e-9) else ""
        rows.append(f"<tr data-scheme='{escape(scheme.name)}'>{name}<td>{cells}{best}</td></tr>")
    return (
        f"<div class='tplr-scroll'><table class='tplr-table' aria-label='Allocation schemes'>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def problem_html(problems: list[str]) -> str:
    """What is wrong with the input, one line a problem; nothing for no problem."""
    if not problems:
        return ""
    lines = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return (
        f"<div class='tplr-problem' role='alert'><ul>{lines}</ul>"
        "<p>The results below are those of the last valid input.</p></div>"
    )


def budgets_of(analysis: Analysis, name: str) -> np.ndarray:
    """The budgets of a scheme, or of the page itself; a ValueError says why there are none."""
    if name == CURRENT:
        return analysis.inputs.epsilons
    scheme = next(scheme for scheme in analysis.schemes if scheme.name == name)
    if scheme.budgets is None:
        raise ValueError(f"{name} has no budgets: {scheme.message}")
    return scheme.budgets


def budgets_table(analysis: Analysis, name: str) -> bytes:
    """CSV with one line a release: its budget, the scale of its Laplace noise, and the leakages that result.

    Floats are written with all their digits, so that reading the file gives the same budgets.
    """
    budgets = budgets_of(analysis, name)
    leakage = temporal_privacy_leakage(budgets, analysis.inputs.backward, analysis.inputs.forward)
    columns = {"epsilon": budgets, "laplace_scale": analysis.inputs.sensitivity / budgets}
    columns |= {name: getattr(leakage, name) for name in ("bpl", "fpl", "tpl")}
    return (
        pd.DataFrame(columns, index=np.arange(1, budgets.size + 1))
        .to_csv(index_label="release", lineterminator="\n")
        .encode()
    )


def saved_figure(analysis: Analysis, suffix: str, title: str = "") -> bytes:
    """The figure as SVG or PDF."""
    import matplotlib.pyplot as plt

    figure = draw(analysis, title)
    content = figure_bytes(figure, suffix)
    plt.close(figure)
    return content


def file_name(analysis: Analysis, name: str, suffix: str) -> str:
    """A name that says what is in the file, such as budgets-Algorithm-8-alpha-1-T-10.csv."""
    words = "-".join(re.findall("[A-Za-z0-9]+", re.sub(r"\(.*\)|^the ", "", name).replace("α/T", "alpha-over-T")))
    kind = "budgets" if suffix == ".csv" else "leakage"
    return f"{kind}-{words}-alpha-{analysis.inputs.alpha:g}-T-{analysis.inputs.epsilons.size}{suffix}"
