"""The results in words and tables, as HTML that follows the theme of the page; labels of states are escaped."""

from __future__ import annotations

from html import escape
from math import inf

import numpy as np

from tplrepro.explore.analysis import Analysis, Side
from tplrepro.explore.schemes import PENDING, mean_error

__all__ = ["critical_words", "problem_html", "schemes_html", "summary_html", "supremum_words", "witness_words"]

STEP = {"backward": "one step earlier", "forward": "one step later"}


def witness_words(side: Side) -> str:
    """The two states that an adversary tells apart best, in one sentence.

    >>> import tplrepro as tpl
    >>> from tplrepro.explore.analysis import Inputs, analyse
    >>> P = tpl.PrivacyLossFunction(tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"]))
    >>> print(witness_words(analyse(Inputs(P, None, np.full(3, 0.1), 1.0)).sides[0]))
    backward: the adversary gains most by telling 'home' from 'office': {'home'} one step earlier has probability 0.8 \
from the first and 0.1 from the second, so a leakage of 0.17 nats there adds 0.12 nats here
    """
    witness = side.witness
    if side.function.is_zero:
        return f"{side.name}: all states are followed alike, so the adversary gains nothing from the correlation"
    shown = ", ".join(map(repr, witness.columns[:6])) + (", ..." if len(witness.columns) > 6 else "")
    return (
        f"{side.name}: the adversary gains most by telling {witness.state_q!r} from {witness.state_d!r}: "
        f"{{{shown}}} {STEP[side.name]} has probability {witness.q:.4g} from the first and {witness.d:.4g} from the "
        f"second, so a leakage of {witness.alpha:.3g} nats there adds {witness.loss:.3g} nats here"
    )


def critical_words(critical: float) -> str:
    """For which budgets the supremum is finite.

    >>> critical_words(0.22314355)
    'below 0.22314 nats a release'
    """
    if critical == inf:
        return "for every budget"
    if critical == 0.0:
        return "for no budget: the leakage grows without bound"
    return f"below {critical:.5g} nats a release"


def supremum_words(value: float) -> str:
    return "grows without bound" if value == inf else f"{value:.4g} nats"


def summary_html(analysis: Analysis) -> str:
    """Numbers and sentences about the current budgets."""
    leakage, inputs = analysis.leakage, analysis.inputs
    peak = int(np.argmax(leakage.tpl))
    largest = float(leakage.tpl[peak])
    kept = largest <= inputs.alpha
    verdict = f"within α = {inputs.alpha:g}" if kept else f"more than α = {inputs.alpha:g}"
    rows = [
        (
            "Largest TPL",
            f"<strong data-number='tpl'>{largest:.4g} nats</strong> at release {peak + 1} of {inputs.epsilons.size} "
            f"<span class='tplr-{'good' if kept else 'bad'}'>{verdict}</span>",
        ),
        ("Without correlation", f"{analysis.largest_budget:.4g} nats, the largest budget"),
        ("All releases together", f"{leakage.user_level:.4g} nats (user level, the sum of the budgets)"),
        (
            "Released for ever",
            f"<span data-number='supremum'>{supremum_words(analysis.supremum)}</span> at that budget",
        ),
        (
            "Supremum is finite",
            f"<span data-number='critical'>{critical_words(analysis.critical)}</span>"
            + (
                f" ({'; '.join(f'{side.name} {critical_words(side.critical)}' for side in analysis.sides)})"
                if len(analysis.sides) > 1 and 0.0 < analysis.critical < inf
                else ""
            ),
        ),
        ("Mean error", f"{mean_error(inputs.epsilons, inputs.sensitivity):.4g} (mean absolute Laplace noise)"),
    ]
    table = "".join(f"<tr><th scope='row'>{name}</th><td>{text}</td></tr>" for name, text in rows)
    sentences = "".join(f"<li>{escape(_capital(witness_words(side)))}.</li>" for side in analysis.sides)
    return (
        f"<table class='tplr-table tplr-summary' aria-label='Leakage of these budgets'>{table}</table>"
        f"<ul class='tplr-witness'>{sentences}</ul>"
    )


def schemes_html(analysis: Analysis) -> str:
    """The table of allocation schemes, best error first among those within alpha."""
    inputs = analysis.inputs
    head = "".join(
        f"<th scope='col'>{text}</th>"
        for text in ("budgets for α", "smallest ε (nats)", "largest ε (nats)", "largest TPL (nats)", "mean error")
    )
    errors = {
        scheme.name: mean_error(scheme.budgets, inputs.sensitivity)
        for scheme in analysis.schemes
        if scheme.budgets is not None
    }
    least = min(errors.values(), default=inf)
    rows = []
    for scheme in analysis.schemes:
        name = f"<th scope='row'>{escape(scheme.name)}</th>"
        if scheme.budgets is None:
            kind = "tplr-pending" if scheme.message == PENDING else "tplr-infeasible"
            rows.append(f"<tr class='{kind}'>{name}<td colspan='4'>{escape(scheme.message)}</td></tr>")
            continue
        error = errors[scheme.name]
        best = " <span class='tplr-good'>least</span>" if error <= least * (1 + 1e-9) else ""
        numbers = (scheme.budgets.min(), scheme.budgets.max(), scheme.largest_tpl)
        cells = "".join(f"<td>{number:.5g}</td>" for number in numbers)
        rows.append(f"<tr data-scheme='{escape(scheme.name)}'>{name}{cells}<td>{error:.5g}{best}</td></tr>")
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
