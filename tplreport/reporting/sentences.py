"""The verdict in five plain sentences: may it be published, how, at what error, on which
assumptions, until when.

Each function takes a `Report`.
"""

from collections.abc import Mapping
from math import ceil, fsum, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplreport.reporting.allocation_schemes import COMPOSED, equal_shares, rounded_down
from tplreport.reporting.checks import DOUBTFUL, REFUSED
from tplreport.reporting.plans import ANYBODY, ESTIMATE, PRIOR_FREE
from tplrepro.display import count_noun, format_number


def verdict(report: Any) -> tuple[str, ...]:
    """The five sentences."""
    return report.judge().sentence, _how(report), _error(report), _assumes(report), _breaks(report)


def doubts_of(report: Any) -> str:
    return ", ".join(check.name for check in report.checks if check.verdict in (DOUBTFUL, REFUSED))


class Verdict(NamedTuple):
    """Whether budgets keep alpha at every time point."""

    answer: str  # "yes", "no", or "unknown" where the model or the data do not tell
    sentence: str
    worst: float  # the largest TPL that is not ruled out, nats


def judge(
    budgets: ArrayLike,
    leaked: Mapping[str, float],
    alpha: float,
    each: str,
    doubts: str = "",
    refused: bool = False,
) -> Verdict:
    """The one verdict on budgets (T,), by the largest TPL that they have to each adversary.

    `each` says in words what every release spends. Against an adversary who knows a given matrix,
    `leaked` holds `ESTIMATE` alone. `doubts` names the checks that doubt the model; `refused`: the
    data show no model.
    """
    budgets = np.ravel(budgets).tolist()
    promised, series = (
        count_noun(alpha, "nat", "g"),
        f"{count_noun(len(budgets), 'release')} {each}",
    )
    s = "s" if len(budgets) == 1 else ""
    worst = max(value for name, value in leaked.items() if name != PRIOR_FREE)
    if fsum(budgets) <= alpha:
        return Verdict("yes", f"Yes: {series} keep{s} the whole series within {promised}.", worst)
    if refused:
        sentence = f"Nobody can say whether the series may be published {each}: the data do not show its correlation."
        return Verdict("unknown", sentence, worst)
    if worst > alpha:
        sentence = f"No: {series} leak{s} {count_noun(rounded_up(leaked[ESTIMATE]), 'nat')} about one time point"
        if len(leaked) > 1:
            sentence += (
                f" by the estimate, and up to {rounded_up(worst)} by what the data do not rule out"
            )
        return Verdict("no", f"{sentence}, where {alpha:g} is promised.", worst)
    if doubts:
        sentence = (
            f"Do not rely on it: {series} keep{s} {promised} only if the model holds ({doubts})."
        )
        return Verdict("unknown", sentence, worst)
    most = count_noun(rounded_up(worst), "nat")
    return Verdict("yes", f"Yes: {series} leak{s} at most {most} about a time point.", worst)


def budgets_in_words(budgets: ArrayLike) -> str:
    """What each of several releases spends, such as "at ε = 0.1 each time" or "at ε from 0.1 to
    0.2"."""
    low, high = np.min(budgets), np.max(budgets)
    if low < high:
        return f"at ε from {low:.6g} to {high:.6g}"
    return f"at ε = {low:g}" if np.size(budgets) == 1 else f"at ε = {low:g} each time"


def at_each_time(settings: dict) -> str:
    """The budget of each release, in words; it is α if none was planned."""
    words = f"at ε = {'α = ' if settings['epsilon'] == settings['alpha'] else ''}{settings['epsilon']:g}"
    return words if settings["horizon"] == 1 else f"{words} each time"


def _how(report: Any) -> str:
    """With which scheme and noise?"""
    plan, settings = report.recommendation, report.settings
    releases, sensitivity = count_noun(settings["horizon"], "release"), settings["sensitivity"]
    if plan is None or plan.budgets is None:
        each = rounded_down(equal_shares(settings["alpha"], settings["horizon"]))[0]
        return f"No plan is recommended; what holds whatever the correlation is ε = {each:g} at each of {releases} (α/T)."
    low, high = plan.budgets.min(), plan.budgets.max()
    budgets, scales = f"ε = {low:.6g}", rounded_up(sensitivity / high)
    if low < high:
        budgets, scales = (
            f"ε from {low:.6g} to {high:.6g}",
            f"{scales} to {rounded_up(sensitivity / low)}",
        )
    words = f"Publish {releases} by the scheme {plan.name!r}: {budgets}, Laplace noise of scale {scales}"
    if plan.scheme != COMPOSED:
        return f"{words}."
    if report.believable:
        return f"{words}; it keeps the whole series within α, at an error within 5 % of the best."
    return f"{words}; it needs no model, and that of a chain is doubtful ({doubts_of(report)})."


def _error(report: Any) -> str:
    """What does it mean for the counts?"""
    plan, settings, count = report.recommendation or report.plans[0], report.settings, report.count
    would = "would then be" if report.withheld else "is then"
    words = f"A count of about {format_number(count)} {would} off by {format_number(plan.error)} on average"
    if plan.error > count:
        longest = int(settings["alpha"] * count / settings["sensitivity"])
        limit = "even a single release would be"
        if longest:
            limit = f"for up to {count_noun(longest, 'release')} α/T is off by at most the count"
        words += f", more than the count itself; {limit}"
    else:
        words += f", {plan.error / count:.2%} of it"
    if report.gaussian:
        adversary = ANYBODY if plan.scheme == COMPOSED else settings["against"]
        keeps, error = f"({settings['alpha']:g}, {settings['delta']:g})", report.gaussian[adversary]
        words += f"; Gaussian noise that keeps {keeps} against {adversary} is off by {format_number(error)}"
    return f"{words}."


def _assumes(report: Any) -> str:
    """What does the promise assume?"""
    plan, settings, size = report.recommendation, report.settings, report.size
    person = f"one person's move changes the counts of a time by at most {settings['sensitivity']:g} in sum"
    if plan is None or plan.scheme == COMPOSED:
        releases = count_noun(settings["horizon"], "release")
        return f"It assumes nothing about the correlation, only that {person}, and no more than {releases}."
    steps = count_noun(size["steps"], "step", ",")
    return (
        f"It assumes that {person}; one chain of order 1 for everybody, among those that {steps} "
        f"between {size['states']:,} states do not rule out (confidence "
        f"{settings['confidence']:.0%}); and an "
        f"adversary who knows this chain and nothing else about other times."
    )


def _breaks(report: Any) -> str:
    """What would break the promise?"""
    plan, settings = report.recommendation, report.settings
    words = f"One more release than {settings['horizon']} would break it, or the same counts released again"
    if plan is None or plan.scheme == COMPOSED:
        return f"{words}."
    words += (
        ", or a user with other habits, or a change of habits; all releases together leak up to "
        f"{count_noun(rounded_up(plan.user_level), 'nat')}"
    )
    if plan.tpl.get(PRIOR_FREE, 0.0) > settings["alpha"]:
        words += (
            f", and an adversary who also has evidence about other times learns up to "
            f"{count_noun(rounded_up(plan.tpl[PRIOR_FREE]), 'nat')} about one of them by the "
            "estimated chain"
        )
    return f"{words}."


def rounded_up(value: float, digits: int = 4) -> str:
    """A bound with `digits` digits, smaller by no more than rounding errors, a share of 1e-14.

    >>> rounded_up(0.30001)
    '0.3001'
    """
    if not 0.0 < value < float("inf"):
        return f"{value:g}"
    unit = 10.0 ** (ceil(log10(value)) - digits)
    return f"{ceil(value / unit * (1.0 - 1e-14)) * unit:.{digits}g}"
