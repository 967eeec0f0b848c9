"""The results as HTML that follows the theme of the page (labels of states are escaped), and as files to save."""

import re
from decimal import ROUND_CEILING, Context
from html import escape

import numpy as np
import pandas as pd

from experiments.figures import figure_bytes
from page.analysis import Analysis
from page.glossary import explained
from page.noises import GAUSSIAN, LAPLACE, PURE, Noise, gaussian_multipliers, quantify
from page.plots import CURRENT, draw
from page.schemes import PENDING, mean_error
from tplrepro.leakage.temporal import temporal_privacy_leakage

__all__ = ["MEDIA_TYPES", "budgets_of", "budgets_table", "critical_words", "delta_html", "file_name", "problem_html"]
__all__ += ["saved_figure", "schemes_html", "summary_html", "supremum_words"]

#: What a browser needs to know about a file.
MEDIA_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".pdf": "application/pdf"}
MEDIA_TYPES |= {".ipynb": "application/x-ipynb+json"}

#: How columns of a saved file begin.
COLUMNS = {LAPLACE: "laplace", PURE: "pure", GAUSSIAN: "gaussian"}


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


def _noise_words(noise: Noise, alpha: float) -> str:
    """The bounds of one kind of noise; they are not exact, so one above alpha does not say that the leakage is."""
    if noise.tpl is None:
        return f"<em>{PENDING}</em>"
    if not np.isfinite(noise.tpl).all():
        return "no finite bound at so small a δ"
    peak = int(np.argmax(noise.tpl))
    largest = float(noise.tpl[peak])
    return (
        f"<strong data-number='{COLUMNS[noise.name]}-tpl'>at most {_up(largest)} nats</strong> at release {peak + 1}; "
        + _verdicts(largest, noise.user_level, f"at most {_up(noise.user_level)}", alpha, "not shown to be within")
    )


def _verdicts(event: float, user: float, shown: str, alpha: float, beyond: str = "above") -> str:
    """How the largest TPL and the leakage of all releases together, which says more, compare with alpha."""
    words = [("good", "within") if level <= alpha else ("bad", beyond) for level in (event, user)]
    return (
        f"<span class='tplr-{words[0][0]}'>{explained('event level')} {words[0][1]} α = {alpha:g}</span>, "
        f"<span class='tplr-{words[1][0]}'>{explained('user level')} {words[1][1]} it</span> ({shown} nats in all)"
    )


def _up(bound: float) -> str:
    """Four digits, rounded up.

    >>> _up(0.30001)
    '0.3001'
    """
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(bound)):.4g}"


def delta_html(analysis: Analysis) -> str:
    """What the plots at a delta show, and what does not exist for Gaussian noise; nothing for pure epsilon."""
    inputs, noises = analysis.inputs, analysis.noises
    if inputs.delta is None:
        return ""
    multipliers = gaussian_multipliers(inputs.epsilons, inputs.cells)
    scales = np.sqrt(2.0) * inputs.sensitivity / inputs.epsilons
    ranges = [f"{v.min():.4g}" if np.ptp(v) == 0 else f"{v.min():.4g} to {v.max():.4g}" for v in (scales, multipliers)]
    grids = " and ".join(dict.fromkeys(f"{noise.grid:.2g}" for noise in noises if np.isfinite(noise.grid)))
    return (
        f"<p>The first two plots show (ε, δ) leakage: the ε that holds at δ = {inputs.delta:g} for {noises[0].name} of "
        f"these budgets, and for Gaussian noise of the same variance as Laplace noise: standard deviation {ranges[0]}, "
        f"or {ranges[1]} times the L2 sensitivity {inputs.sensitivity / np.sqrt(inputs.cells):.4g} of an answer that "
        f"changes in {inputs.cells} cell{'s' * (inputs.cells > 1)}. They are upper bounds by temporal privacy profiles "
        f"(on a grid of {grids or '...'} nats), not the exact leakage.</p><p>Everything else is of pure ε: the other "
        "plots, the supremum, and the budgets for α. Gaussian noise has no pure ε, so that none of these is defined "
        "for it; tplrepro.allocate_noise gives multipliers instead.</p>"
    )


def summary_html(analysis: Analysis) -> str:
    """Numbers and sentences about the current budgets."""
    leakage, inputs = analysis.leakage, analysis.inputs
    peak = int(np.argmax(leakage.tpl))
    largest = float(leakage.tpl[peak])
    critical = f"<span data-number='critical'>{critical_words(analysis.critical)}</span>"
    if len(analysis.sides) > 1 and 0.0 < analysis.critical < np.inf:
        critical += f" ({'; '.join(f'{side.name} {critical_words(side.critical)}' for side in analysis.sides)})"
    rows = {
        f"Largest TPL{', pure ε' * bool(analysis.noises)}": f"<strong data-number='tpl'>{largest:.4g} nats</strong> at "
        f"release {peak + 1} of {inputs.epsilons.size}; "
        + _verdicts(largest, leakage.user_level, f"{leakage.user_level:.4g}", inputs.alpha),
        "Without correlation": f"{analysis.largest_budget:.4g} nats, the largest budget",
        "Supremum": f"<span data-number='supremum'>{supremum_words(analysis.supremum)}</span>, if that budget is "
        "released for ever",
        "Supremum is finite": critical,
        "Mean error": f"{mean_error(inputs.epsilons, inputs.sensitivity):.4g} (mean absolute Laplace noise)",
    }
    rows |= {f"{noise.name} at δ = {inputs.delta:g}": _noise_words(noise, inputs.alpha) for noise in analysis.noises}
    table = "".join(f"<tr><th scope='row'>{explained(name)}</th><td>{text}</td></tr>" for name, text in rows.items())
    sentences = "".join(f"<li>{escape(str(side))}.</li>" for side in analysis.sides)
    return (
        f"<table class='tplr-table tplr-summary' aria-label='Leakage of these budgets'>{table}</table>"
        f"<ul class='tplr-witness'>{sentences}</ul>"
    )


def schemes_html(analysis: Analysis) -> str:
    """The table of allocation schemes, with a mark on the least error."""
    columns = ("budgets for target α", "smallest ε (nats)", "largest ε (nats)", "largest TPL (nats)", "mean error")
    head = "".join(f"<th scope='col'>{explained(text)}</th>" for text in columns)
    sensitivity = analysis.inputs.sensitivity
    errors = {s.name: mean_error(s.budgets, sensitivity) for s in analysis.schemes if s.budgets is not None}
    least = min(errors.values(), default=np.inf)
    rows = []
    for scheme in analysis.schemes:
        name = f"<th scope='row'>{explained(scheme.name)}</th>"
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

    With a delta, this and the bounds of epsilon at it follow: of the budgets, and of Gaussian noise with its scale.
    Floats are written with all their digits, so that reading the file gives the same budgets.
    """
    budgets, inputs = budgets_of(analysis, name), analysis.inputs
    sides, names = (inputs.backward, inputs.forward), ("bpl", "fpl", "tpl")
    leakage = temporal_privacy_leakage(budgets, *sides)
    columns: dict[str, np.ndarray | float] = {"epsilon": budgets, "laplace_scale": inputs.sensitivity / budgets}
    columns |= {name: getattr(leakage, name) for name in names}
    if inputs.delta is not None:
        columns |= {"delta": inputs.delta, "gaussian_scale": np.sqrt(2.0) * inputs.sensitivity / budgets}
        columns |= {"gaussian_multiplier": gaussian_multipliers(budgets, inputs.cells)}
        for kind in (inputs.mechanism, GAUSSIAN):
            noise = quantify(kind, budgets, *sides, delta=inputs.delta, cells=inputs.cells)
            columns |= {f"{COLUMNS[kind]}_{name}_at_delta": getattr(noise, name) for name in names}
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
    delta = "" if analysis.inputs.delta is None else f"-delta-{analysis.inputs.delta:g}"
    return f"{kind}-{words}-alpha-{analysis.inputs.alpha:g}-T-{analysis.inputs.epsilons.size}{delta}{suffix}"
