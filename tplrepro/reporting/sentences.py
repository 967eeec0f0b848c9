"""The verdict in five plain sentences: may it be published, how, at what error, on which assumptions, until when."""

from collections.abc import Sequence
from math import ceil, log10

from tplrepro.allocation.schemes import COMPOSED
from tplrepro.reporting.checks import FINE, REFUSED, Check
from tplrepro.reporting.plans import ESTIMATE, PRIOR_FREE, UPPER, Plan


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
    return (
        _may_it(leaked, settings, believable, checks),
        _how(plan, settings, believable),
        _error(plan or plans[0], plan is None, settings, count, gaussian),
        _assumes(plan, settings, size),
        _breaks(plan, settings),
    )


def _may_it(leaked: dict[str, float], settings: dict, believable: bool, checks: Sequence[Check]) -> str:
    """May the series be published as planned?"""
    alpha, horizon, epsilon = settings["alpha"], settings["horizon"], settings["epsilon"]
    each = f"at ε = {epsilon:g} each time"
    if horizon * epsilon <= alpha:
        return f"Yes: {horizon} releases {each} keep the whole series within {alpha:g} nats."
    if any(check.verdict == REFUSED for check in checks):
        return f"Nobody can say whether the series may be published {each}: the data do not show its correlation."
    worst = max(value for name, value in leaked.items() if name != PRIOR_FREE)
    if worst > alpha:
        return (
            f"No: {horizon} releases {each} leak {rounded_up(leaked[ESTIMATE])} nats about one time point by the "
            f"estimate, and up to {rounded_up(worst)} by what the data do not rule out, where {alpha:g} is promised."
        )
    if not believable:
        doubts = ", ".join(check.name for check in checks if check.verdict != FINE)
        return f"Do not rely on it: {horizon} releases {each} keep {alpha:g} nats only if the model holds ({doubts})."
    return f"Yes: {horizon} releases {each} leak at most {rounded_up(leaked[UPPER])} nats about a time point."


def _how(plan: Plan | None, settings: dict, believable: bool) -> str:
    """With which scheme and noise?"""
    horizon, alpha, sensitivity = settings["horizon"], settings["alpha"], settings["sensitivity"]
    if plan is None or plan.budgets is None:
        return (
            f"No plan is recommended; what holds whatever the correlation is ε = {alpha / horizon:.3g} "
            f"at each of {horizon} releases (α/T)."
        )
    low, high = plan.budgets.min(), plan.budgets.max()
    budgets = f"ε = {low:.6g}" if low == high else f"ε from {low:.6g} to {high:.6g}"
    scales = f"{sensitivity / high:.4g}" if low == high else f"{sensitivity / high:.4g} to {sensitivity / low:.4g}"
    words = f"Publish {horizon} releases by the scheme {plan.scheme!r}: {budgets}, Laplace noise of scale {scales}."
    if plan.scheme != COMPOSED:
        return words
    why = (
        "it keeps the whole series within α, at an error within 5 % of the best"
        if believable
        else ("the model is doubtful, and this plan needs none")
    )
    return f"{words[:-1]}; {why}."


def _error(plan: Plan, withheld: bool, settings: dict, count: float, gaussian: dict[str, float]) -> str:
    """What does it mean for the counts?"""
    share = plan.error / count if count else float("inf")
    size = "more than the count itself" if share > 1 else f"{share:.2%} of it"
    would = "would then be" if withheld else "is then"
    words = f"A count of about {count:.3g} {would} off by {plan.error:.3g} on average, {size}"
    if gaussian:
        words += (
            f"; Gaussian noise that keeps ({settings['alpha']:g}, {settings['delta']:g}) against the estimate is "
            f"off by {gaussian['error']:.3g}"
        )
    return f"{words}."


def _assumes(plan: Plan | None, settings: dict, size: dict) -> str:
    """What does the promise assume?"""
    if plan is None or plan.scheme == COMPOSED:
        return (
            f"It assumes nothing about the correlation, only noise of these scales and no more than "
            f"{settings['horizon']} releases."
        )
    return (
        f"It assumes one chain of order 1 for everybody, among those that {size['steps']:,} steps between "
        f"{size['states']:,} states do not rule out (confidence {settings['confidence']:.0%}), and an adversary who "
        f"knows this chain and nothing else about other times."
    )


def _breaks(plan: Plan | None, settings: dict) -> str:
    """What would break the promise?"""
    words = f"One more release than {settings['horizon']} would break it, or the same counts released again"
    if plan is None or plan.scheme == COMPOSED:
        return f"{words}."
    words += (
        ", or a user with other habits, or a change of habits; all releases together leak up to "
        f"{rounded_up(plan.user_level)} nats"
    )
    if PRIOR_FREE in plan.tpl:
        words += (
            f", and an adversary who also has evidence about other times learns up to "
            f"{rounded_up(plan.tpl[PRIOR_FREE])} nats about one of them by the estimated chain"
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
