"""The results as HTML that follows the theme of the page, with escaped labels, and as files to save."""

from html import escape
from typing import Any

import numpy as np
import pandas as pd

from page.analysis import PENDING, Analysis
from page.glossary import explained
from page.noises import Noise, gaussian_multipliers
from tplreport.reporting.sentences import rounded_up
from tplreport.schemes import mean_error
from tplrepro.words import counted


def critical_words(critical: float) -> str:
    """For which budgets the supremum is finite, such as "below 0.22314 nats per release"."""
    if critical == np.inf:
        return "for every budget"
    if critical == 0.0:
        return "for no budget: the leakage grows without bound"
    return f"below {counted(critical, 'nat', '.5g')} per release"


def supremum_words(value: float) -> str:
    """A supremum in words."""
    return "infinite (the leakage grows without bound)" if value == np.inf else counted(value, "nat", ".4g")


def column_of(noise: str) -> str:
    """Its name in a saved file, such as "laplace_tpl_at_delta"."""
    return f"{noise.split()[0].lower()}_tpl_at_delta"


def _noise_html(noise: Noise, alpha: float) -> str:
    """The bounds of one kind of noise; a bound above alpha does not show that the leakage is."""
    if noise.tpl is None:
        return f"<em>{PENDING}</em>"
    if not np.isfinite(noise.tpl).all():
        return "no finite bound at so small a δ"
    peak = int(np.argmax(noise.tpl))
    largest = float(noise.tpl[peak])
    bound, total = (f"at most {counted(rounded_up(level), 'nat')}" for level in (largest, noise.user_level))
    verdicts = _verdicts_html(largest, noise.user_level, total, alpha, above="not shown to be within")
    return f"<strong data-number='{column_of(noise.name)}'>{bound}</strong> at release {peak + 1}; {verdicts}"


def _verdicts_html(event: float, user: float, total: str, alpha: float, above: str = "above") -> str:
    """Whether the largest TPL, and the `total` leakage of all releases together, are within alpha."""
    verdicts = []
    for term, leakage in (("event level", event), ("user level", user)):
        mark, words = ("good", "within") if leakage <= alpha else ("bad", above)
        verdicts.append(f"<span class='tplr-{mark}'>{explained(term)} {words} α = {alpha:g}</span>")
    return f"{', '.join(verdicts)} ({total} in total)"


def _range(values: np.ndarray) -> str:
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if np.ptp(values) == 0 else f"{low} to {high}"


def delta_html(analysis: Analysis) -> str:
    """What the plot at a delta shows, and what is not defined for Gaussian noise; empty for pure epsilon."""
    inputs = analysis.inputs
    if inputs.delta is None:
        return ""
    deviations = np.sqrt(2.0) * inputs.sensitivity / inputs.epsilons
    return (
        f"<p>The first plot shows (ε, δ) leakage: the ε that holds at δ = {inputs.delta:g}, for Laplace noise with "
        f"these budgets and for Gaussian noise with the same variance. The standard deviation is "
        f"{_range(deviations)}, which is {_range(gaussian_multipliers(inputs.epsilons, inputs.cells))} times the L2 "
        f"sensitivity {inputs.sensitivity / np.sqrt(inputs.cells):.4g} of an answer where a user changes "
        f"{counted(inputs.cells, 'cell')}. They are upper bounds by temporal privacy profiles, not the exact "
        "leakage.</p><p>Everything else is for pure ε: the other plots, the supremum, and the budgets for α. None of "
        "these is defined for Gaussian noise, which has no pure ε; use tplfrontier.allocate_noise for multipliers."
        "</p>"
    )


def summary_html(analysis: Analysis) -> str:
    """Numbers and sentences about the current budgets."""
    leakage, inputs = analysis.leakage, analysis.inputs
    peak = int(np.argmax(leakage.tpl))
    largest, total = float(leakage.tpl[peak]), counted(leakage.user_level, "nat", ".4g")
    verdicts = _verdicts_html(largest, leakage.user_level, total, inputs.alpha)
    critical = f"<span data-number='critical'>{critical_words(analysis.critical)}</span>"
    if len(analysis.sides) > 1 and 0.0 < analysis.critical < np.inf:
        critical += f" ({'; '.join(f'{side.name} {critical_words(side.critical)}' for side in analysis.sides)})"
    rows = {
        "Largest TPL, pure ε" if analysis.noises else "Largest TPL": (
            f"<strong data-number='tpl'>{counted(largest, 'nat', '.4g')}</strong> at release {peak + 1} of "
            f"{inputs.epsilons.size}; {verdicts}"
        ),
        "Without correlation": f"{counted(analysis.largest_budget, 'nat', '.4g')}, the largest budget",
        "Supremum": (
            f"<span data-number='supremum'>{supremum_words(analysis.supremum)}</span>, if the largest budget is spent "
            "at every release forever"
        ),
        "Finite supremum": critical,
        "Mean error": f"{mean_error(inputs.epsilons, inputs.sensitivity):.4g} (mean absolute Laplace noise)",
    }
    rows |= {f"{noise.name} at δ = {inputs.delta:g}": _noise_html(noise, inputs.alpha) for noise in analysis.noises}
    table = "".join(f"<tr><th scope='row'>{explained(name)}</th><td>{text}</td></tr>" for name, text in rows.items())
    sentences = "".join(f"<li>{escape(str(side))}.</li>" for side in analysis.sides)
    return (
        f"<table class='tplr-table tplr-summary' aria-label='Leakage of these budgets'>{table}</table>"
        f"<ul class='tplr-witness'>{sentences}</ul>"
    )


def schemes_html(analysis: Analysis) -> str:
    """The table of allocation schemes, in which the smallest error is marked."""
    columns = ("budgets for target α", "smallest ε (nats)", "largest ε (nats)", "largest TPL (nats)", "mean error")
    head = "".join(f"<th scope='col'>{explained(text)}</th>" for text in columns)
    sensitivity = analysis.inputs.sensitivity
    errors = {s.name: mean_error(s.budgets, sensitivity) for s in analysis.schemes if s.budgets is not None}
    least = min(errors.values(), default=np.inf)
    rows = []
    for scheme in analysis.schemes:
        name = f"<th scope='row'>{explained(scheme.name)}</th>"
        if scheme.budgets is None:
            rows.append(f"<tr>{name}<td colspan='4'><em>{escape(scheme.message)}</em></td></tr>")
            continue
        numbers = scheme.budgets.min(), scheme.budgets.max(), scheme.largest_tpl, errors[scheme.name]
        cells = "</td><td>".join(f"{number:.5g}" for number in numbers)
        best = " <span class='tplr-good'>smallest</span>" if errors[scheme.name] <= least * (1 + 1e-9) else ""
        rows.append(f"<tr data-scheme='{escape(scheme.name)}'>{name}<td>{cells}{best}</td></tr>")
    return (
        f"<div class='tplr-scroll'><table class='tplr-table' aria-label='Allocation schemes'>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def problem_html(problems: list[str]) -> str:
    """What is wrong with the input, one line per problem; empty if nothing is."""
    if not problems:
        return ""
    lines = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return (
        f"<div class='tplr-problem' role='alert'><ul>{lines}</ul>"
        "<p>The results below are those of the last valid input.</p></div>"
    )


def budgets_table(analysis: Analysis) -> pd.DataFrame:
    """The chosen budgets with scales of the noise and leakages, one row per release."""
    inputs, leakage = analysis.inputs, analysis.leakage
    budgets = inputs.epsilons
    columns: dict[str, Any] = {"epsilon": budgets, "laplace_scale": inputs.sensitivity / budgets}
    columns |= {"bpl": leakage.bpl, "fpl": leakage.fpl, "tpl": leakage.tpl}
    if inputs.delta is not None:
        columns |= {"delta": inputs.delta, "gaussian_scale": np.sqrt(2.0) * inputs.sensitivity / budgets}
        columns |= {"gaussian_multiplier": gaussian_multipliers(budgets, inputs.cells)}
        columns |= {column_of(noise.name): noise.tpl for noise in analysis.noises}
    return pd.DataFrame(columns, index=pd.RangeIndex(1, budgets.size + 1, name="release"))


def file_name(analysis: Analysis, what: str, suffix: str) -> str:
    """A name that says what is in the file, such as budgets-alpha-1-T-10.csv."""
    inputs = analysis.inputs
    name = f"{what}-alpha-{inputs.alpha:g}-T-{inputs.epsilons.size}"
    return name + ("" if inputs.delta is None else f"-delta-{inputs.delta:g}") + suffix
