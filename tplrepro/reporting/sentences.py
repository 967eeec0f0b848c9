"""The verdict in five plain sentences: may it be published, how, at what error, on which assumptions, until when."""

from collections.abc import Sequence
from math import ceil, log10

from tplrepro.allocation.schemes import COMPOSED
from tplrepro.reporting.checks import FINE, REFUSED, Check
from tplrepro.reporting.plans import ANYBODY, ESTIMATE, PRIOR_FREE, UPPER, Plan, rounded_down
from tplrepro.words import counted


def verdict(
    plan: Plan | None,
    plans: Sequence[Plan],
    checks: Sequence[Check],
    leaked: dict[str, float],
    settings: dict,
    size: dict,
    count: float,
    believable: bool,
    gaussian: dict[str, float],
) -> tuple[str, ...]:
    """The five sentences; `plan` is None where the recommendation is withheld."""
    doubts = ", ".join(check.name for check in checks if check.verdict != FINE)
    return (
        _may_it(leaked, settings, believable, checks, doubts),
        _how(plan, settings, believable, doubts),
        _error(plan or plans[0], plan is None, settings, count, gaussian),
        _assumes(plan, settings, size),
        _breaks(plan, settings),
    )


def _may_it(leaked: dict[str, float], settings: dict, believable: bool, checks: Sequence[Check], doubts: str) -> str:
    """May the series be published as planned?"""
    alpha, horizon, promised = settings["alpha"], settings["horizon"], counted(settings["alpha"], "nat", "g")
    series, s = f"{counted(horizon, 'release')} {at_each_time(settings)}", "s" if horizon == 1 else ""
    if horizon * settings["epsilon"] <= alpha:
        return f"Yes: {series} keep{s} the whole series within {promised}."
    if any(check.verdict == REFUSED for check in checks):
        may_it = f"Nobody can say whether the series may be published {at_each_time(settings)}"
        return f"{may_it}: the data do not show its correlation."
    worst = max(value for name, value in leaked.items() if name != PRIOR_FREE)
    if worst > alpha:
        return (
            f"No: {series} leak{s} {counted(rounded_up(leaked[ESTIMATE]), 'nat')} about one time point by the "
            f"estimate, and up to {rounded_up(worst)} by what the data do not rule out, where {alpha:g} is promised."
        )
    if not believable:
        return f"Do not rely on it: {series} keep{s} {promised} only if the model holds ({doubts})."
    return f"Yes: {series} leak{s} at most {counted(rounded_up(leaked[UPPER]), 'nat')} about a time point."


def at_each_time(settings: dict) -> str:
    """The budget of each release, in words; it is α if none was planned."""
    words = f"at ε = {'α = ' if settings['epsilon'] == settings['alpha'] else ''}{settings['epsilon']:g}"
    return words if settings["horizon"] == 1 else f"{words} each time"


def _how(plan: Plan | None, settings: dict, believable: bool, doubts: str) -> str:
    """With which scheme and noise?"""
    horizon, alpha, sensitivity = settings["horizon"], settings["alpha"], settings["sensitivity"]
    if plan is None or plan.budgets is None:
        each = rounded_down([alpha / horizon])[0]
        return (
            f"No plan is recommended; what holds whatever the correlation is ε = {each:g} at each of "
            f"{counted(horizon, 'release')} (α/T)."
        )
    low, high = plan.budgets.min(), plan.budgets.max()
    budgets = f"ε = {low:.6g}" if low == high else f"ε from {low:.6g} to {high:.6g}"
    scales = rounded_up(sensitivity / high) + ("" if low == high else f" to {rounded_up(sensitivity / low)}")
    releases = counted(horizon, "release")
    words = f"Publish {releases} by the scheme {plan.scheme!r}: {budgets}, Laplace noise of scale {scales}"
    if plan.scheme != COMPOSED:
        return f"{words}."
    if believable:
        return f"{words}; it keeps the whole series within α, at an error within 5 % of the best."
    return f"{words}; it needs no model, and that of a chain is doubtful ({doubts})."


def _error(plan: Plan, withheld: bool, settings: dict, count: float, gaussian: dict[str, float]) -> str:
    """What does it mean for the counts?"""
    would = "would then be" if withheld else "is then"
    words = f"A count of about {count:.3g} {would} off by {plan.error:.3g} on average"
    if plan.error > count:
        longest = int(settings["alpha"] * count / settings["sensitivity"])
        limit = "even a single release would be"
        if longest:
            limit = f"for up to {counted(longest, 'release')} α/T is off by at most the count"
        words += f", more than the count itself; {limit}"
    else:
        words += f", {plan.error / count:.2%} of it"
    if gaussian:
        adversary = ANYBODY if plan.scheme == COMPOSED else settings["against"]
        keeps = f"({settings['alpha']:g}, {settings['delta']:g})"
        words += f"; Gaussian noise that keeps {keeps} against {adversary} is off by {gaussian[adversary]:.3g}"
    return f"{words}."


def _assumes(plan: Plan | None, settings: dict, size: dict) -> str:
    """What does the promise assume?"""
    person = f"one person's move changes the counts of a time by at most {settings['sensitivity']:g} in sum"
    if plan is None or plan.scheme == COMPOSED:
        return (
            f"It assumes nothing about the correlation, only that {person}, and no more than "
            f"{counted(settings['horizon'], 'release')}."
        )
    steps = counted(size["steps"], "step", ",")
    return (
        f"It assumes that {person}; one chain of order 1 for everybody, among those that {steps} "
        f"between {size['states']:,} states do not rule out (confidence {settings['confidence']:.0%}); and an "
        f"adversary who knows this chain and nothing else about other times."
    )


def _breaks(plan: Plan | None, settings: dict) -> str:
    """What would break the promise?"""
    words = f"One more release than {settings['horizon']} would break it, or the same counts released again"
    if plan is None or plan.scheme == COMPOSED:
        return f"{words}."
    words += (
        ", or a user with other habits, or a change of habits; all releases together leak up to "
        f"{counted(rounded_up(plan.user_level), 'nat')}"
    )
    if plan.tpl.get(PRIOR_FREE, 0.0) > settings["alpha"]:
        words += (
            f", and an adversary who also has evidence about other times learns up to "
            f"{counted(rounded_up(plan.tpl[PRIOR_FREE]), 'nat')} about one of them by the estimated chain"
        )
    return f"{words}."


def rounded_up(value: float, digits: int = 4) -> str:
    """A bound with `digits` digits, never smaller.

    >>> rounded_up(0.30001)
    '0.3001'
    """
    if not 0.0 < value < float("inf"):
        return f"{value:g}"
    unit = 10.0 ** (ceil(log10(value)) - digits)
    return f"{ceil(value / unit * (1.0 - 1e-14)) * unit:.{digits}g}"
