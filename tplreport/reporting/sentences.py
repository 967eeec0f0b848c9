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
from tplreport.reporting.checks import DOUBTFUL, OF_CHAIN, ORDER, REFUSED, Check
from tplreport.reporting.plans import ANYBODY, ESTIMATE, PRIOR_FREE, Plan, is_clearly_better
from tplrepro.display import count_noun, format_number

#: Of any report: its budgets and checks are computed in the clear (`learn_privately` learns a chain
#: with a budget).
PRIVATE = "The report and its checks read private data, and must not be published."


def verdict(report: Any) -> tuple[str, ...]:
    """The five sentences."""
    return (
        report.judge().sentence,
        _say_scheme_and_noise(report),
        _say_error(report),
        _say_assumptions(report),
        f"{_say_what_breaks_it(report)}{_say_simulated(report)} {PRIVATE}",
    )


def doubts_of(report: Any) -> str:
    """The names of the checks that doubt or refuse the model, that with the most evidence first."""
    return ", ".join(check.name for check in _doubting(report))


def _doubting(report: Any) -> list[Check]:
    """The checks that doubt or refuse the model: of the chain, the most evidence first, then
    others."""
    wrong = [check for check in report.checks if check.verdict in (DOUBTFUL, REFUSED)]
    return sorted(wrong, key=lambda check: (check.name not in OF_CHAIN, -check.value))


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
    promised = count_noun(alpha, "nat", "g")
    series = f"{count_noun(len(budgets), 'release')} {each}"
    keep, leak = "keep", "leak"
    if len(budgets) == 1:
        keep, leak = "keeps", "leaks"
    worst = max(value for name, value in leaked.items() if name != PRIOR_FREE)
    if fsum(budgets) <= alpha:
        return Verdict("yes", f"Yes: {series} {keep} the whole series within {promised}.", worst)
    if refused:
        sentence = (
            f"Nobody can say whether the series may be published {each}: the data do not show its "
            "correlation."
        )
        return Verdict("unknown", sentence, worst)
    if worst > alpha:
        leakage = _say_leakage(leaked, worst)
        sentence = f"No: {series} {leak} {leakage}, where {alpha:g} is promised."
        return Verdict("no", sentence, worst)
    if doubts:
        sentence = (
            f"Do not rely on it: {series} {keep} {promised} only if the model holds ({doubts})."
        )
        return Verdict("unknown", sentence, worst)
    most = count_noun(rounded_up(worst), "nat")
    return Verdict("yes", f"Yes: {series} {leak} at most {most} about a time point.", worst)


def _say_leakage(leaked: Mapping[str, float], worst: float) -> str:
    """What is leaked by the estimate, and at worst, where the data leave more than that open."""
    words = f"{count_noun(rounded_up(leaked[ESTIMATE]), 'nat')} about one time point"
    if len(leaked) > 1:
        words += f" by the estimate, and up to {rounded_up(worst)} by what the data do not rule out"
    return words


def budgets_in_words(budgets: ArrayLike) -> str:
    """What each of several releases spends, such as "at ε = 0.1 each time" or "at ε from 0.1 to
    0.2"."""
    low = np.min(budgets)
    high = np.max(budgets)
    if low < high:
        return f"at ε from {low:.6g} to {high:.6g}"
    if np.size(budgets) == 1:
        return f"at ε = {low:g}"
    return f"at ε = {low:g} each time"


def at_each_time(settings: dict) -> str:
    """The budget of each release, in words; it is α if none was planned."""
    words = f"at ε = {settings['epsilon']:g}"
    if settings["epsilon"] == settings["alpha"]:
        words = f"at ε = α = {settings['epsilon']:g}"
    if settings["horizon"] > 1:
        words += " each time"
    return words


def _say_scheme_and_noise(report: Any) -> str:
    """With which scheme and noise?"""
    plan = report.recommendation
    settings = report.settings
    releases = count_noun(settings["horizon"], "release")
    if plan is None or plan.budgets is None:
        each = rounded_down(equal_shares(settings["alpha"], settings["horizon"]))[0]
        return (
            f"No plan is recommended; what holds whatever the correlation is ε = {each:g} at each "
            f"of {releases} (α/T)."
        )
    low = plan.budgets.min()
    high = plan.budgets.max()
    budgets = f"ε = {low:.6g}"
    scales = rounded_up(settings["sensitivity"] / high)
    if low < high:
        budgets = f"ε from {low:.6g} to {high:.6g}"
        scales += f" to {rounded_up(settings['sensitivity'] / low)}"
    if plan.scheme != COMPOSED and report.rhythm is not None:
        releases += f", the first one at {report.rhythm.first},"
    words = (
        f"Publish {releases} by the scheme {plan.name!r}: {budgets}, Laplace noise of scale "
        f"{scales}"
    )
    if plan.scheme != COMPOSED:
        return f"{words}."
    if report.believable and not any(check.name in OF_CHAIN for check in _doubting(report)):
        return f"{words}; it keeps the whole series within α, at an error within 5 % of the best."
    main = _doubting(report)[0]
    return (
        f"{words}; it needs no model, and that of a chain is doubtful ({doubts_of(report)}): "
        f"{main.sentence}."
    )


def _say_error(report: Any) -> str:
    """What does it mean for the counts?"""
    plan = report.recommendation or report.plans[0]
    settings = report.settings
    count = report.count
    verb = "is then"
    if report.withheld:
        verb = "would then be"
    words = (
        f"A count of about {format_number(count)} {verb} off by {format_number(plan.error)} on "
        "average"
    )
    if plan.error > count:
        words += f", more than the count itself; {_say_longest_series(settings, count)}"
    else:
        words += f", {plan.error / count:.2%} of it"
    if report.gaussian:
        adversary = settings["against"]
        if plan.scheme == COMPOSED:
            adversary = ANYBODY
        words += (
            f"; Gaussian noise that keeps ({settings['alpha']:g}, {settings['delta']:g}) against "
            f"{adversary} is off by {format_number(report.gaussian[adversary])}"
        )
    offered = _offered_for_one_place(report)
    if offered is not None and offered.budgets is not None:
        words += (
            f"; if each single place is the secret, the plan {offered.name!r} is off by "
            f"{format_number(offered.error)} (ε = {offered.budgets[0]:g} each time)"
        )
    return f"{words}."


def _offered_for_one_place(report: Any) -> Plan | None:
    """The plan against a chain of order 2, where it is clearly better than α/T."""
    best = report.best_for_one_place
    if best is None or report.warnings:
        return None
    composed = next(plan for plan in report.plans if plan.scheme == COMPOSED)
    if not is_clearly_better(best.error, composed.error):
        return None
    return best


def _say_longest_series(settings: dict, count: float) -> str:
    """How many releases α/T publishes with an error that does not exceed the count."""
    longest = int(settings["alpha"] * count / settings["sensitivity"])
    if not longest:
        return "even a single release would be"
    return f"for up to {count_noun(longest, 'release')} α/T is off by at most the count"


def _say_assumptions(report: Any) -> str:
    """What does the promise assume?"""
    plan = report.recommendation
    settings = report.settings
    person = (
        "one person's move changes the counts of a time by at most "
        f"{settings['sensitivity']:g} in sum"
    )
    if plan is None or plan.scheme == COMPOSED:
        releases = count_noun(settings["horizon"], "release")
        return (
            f"It assumes nothing about the correlation, only that {person}, and no more than "
            f"{releases}{_say_assumptions_for_one_place(report)}."
        )
    steps = count_noun(report.size["steps"], "step", ",")
    chain = "one chain of order 1 for everybody, among those"
    known = "this chain"
    if report.rhythm is not None:
        chain = f"{report.rhythm.in_words}, the same for everybody, among those"
        known = "these chains"
    return (
        f"It assumes that {person}; {chain} that {steps} "
        f"between {report.size['states']:,} states do not rule out (confidence "
        f"{settings['confidence']:.0%}); users who start in the habit; and an adversary who knows "
        f"{known} and nothing else about other times{_say_well_known(report)}."
    )


def _say_assumptions_for_one_place(report: Any) -> str:
    """What the plan against a chain of order 2 assumes, where it is offered."""
    offered = _offered_for_one_place(report)
    if offered is None:
        return ""
    words = (
        f"; the plan {offered.name!r} assumes that single places are the secrets, not what several "
        "of them show, and that one chain of order 2 for everybody is just the estimated one"
    )
    others = [check.name for check in _doubting(report) if check.name in OF_CHAIN]
    others.remove(ORDER)
    if others:
        words += f", though more is doubtful ({', '.join(others)})"
    return words


def _say_well_known(report: Any) -> str:
    """For how many users habits are known well enough to judge."""
    if report.well_known_users is None:
        return ""
    known = report.well_known_users
    users = report.size["users"]
    habits = f"habits of their own for which it leaks {2.0 * report.settings['alpha']:g}"
    if known == 0:
        return f"; no user's record is long enough to show {habits}"
    return f"; {known:,} of {users:,} users have records long enough to show {habits}"


def _say_what_breaks_it(report: Any) -> str:
    """What would break the promise?"""
    plan = report.recommendation
    settings = report.settings
    words = (
        f"One more release than {settings['horizon']} would break it, or the same counts released "
        "again"
    )
    if plan is None or plan.scheme == COMPOSED:
        return f"{words}."
    words += (
        ", or a user with other habits, or a change of habits"
        f"{_say_other_hours(report)}; all releases together leak up to "
        f"{count_noun(rounded_up(plan.user_level), 'nat')}"
    )
    if plan.tpl.get(PRIOR_FREE, 0.0) > settings["alpha"]:
        words += (
            f", and an adversary who also has evidence about other times learns up to "
            f"{count_noun(rounded_up(plan.tpl[PRIOR_FREE]), 'nat')} about one of them by the "
            "estimated chain"
        )
    return f"{words}."


def _say_simulated(report: Any) -> str:
    """How often did a plan like this one break where the truth is known?"""
    if report.simulated is None:
        return ""
    return f" {report.simulated.sentence}"


def _say_other_hours(report: Any) -> str:
    """What another hour would break, where habits follow the clock."""
    if report.rhythm is None:
        return ""
    return f", or a first release at another time than {report.rhythm.first}"


def rounded_up(value: float, digits: int = 4) -> str:
    """A bound with `digits` digits, smaller by no more than rounding errors, a share of 1e-14.

    >>> rounded_up(0.30001)
    '0.3001'
    """
    if not 0.0 < value < float("inf"):
        return f"{value:g}"
    unit = 10.0 ** (ceil(log10(value)) - digits)
    return f"{ceil(value / unit * (1.0 - 1e-14)) * unit:.{digits}g}"
