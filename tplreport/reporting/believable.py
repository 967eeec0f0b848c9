"""May a chain that is estimated from data be relied on? A report and a publisher ask the same."""

from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np

from tplreport.reporting.checks import DOUBTFUL, REFUSED, USERS, Check, Steps, checks_of
from tplreport.reporting.plans import (
    UPPER,
    WORST_USER,
    Pair,
    adversaries_of,
    largest_tpl,
    upper_pair,
)
from tplrepro.display import count_noun
from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.validation import check_choice

#: Pseudo-steps a row of a report, unless it is given others.
SMOOTHING = 1.0


class DoubtfulModelError(ValueError):
    """The data do not show a chain that a promise may rest on; the message says what to do."""


def counted_steps(data: Sequences) -> tuple[Any, list]:
    """Counts (n, n) of the steps of `data`, and the n states; ValueError unless steps lead to a
    second state."""
    counts, states = count_transitions(data)
    if not counts.nnz or len(states) < 2:
        raise ValueError(
            "there must be steps between at least two states, found "
            f"{count_noun(data.n_transitions, 'step')} and "
            f"{count_noun(len(states), 'state')}; "
            "check the columns of users and times, and the step"
        )
    return counts, states


def is_refused(checks: Sequence[Check]) -> bool:
    """Whether a check refuses the model, so that no plan is recommended."""
    return any(check.verdict == REFUSED for check in checks)


def is_believable(checks: Sequence[Check], against: str = UPPER) -> bool:
    """Whether no check doubts that there is one chain in a way that matters to plans `against` an
    adversary: those against the worst user's habits allow for differences between users."""
    doubted = {check.name for check in checks[:3] if check.verdict == DOUBTFUL}
    if against == WORST_USER:
        doubted.discard(USERS)
    return not doubted


def doubts_in_words(checks: Sequence[Check]) -> str:
    """The sentences of the checks that refuse the model or doubt that there is one chain."""
    wrong = [check for check in checks if check.verdict == REFUSED]
    wrong += [check for check in checks[:3] if check.verdict == DOUBTFUL]
    return "; ".join(f"{check.name} is {check.verdict}: {check.sentence}" for check in wrong)


def doubts_about(data: Sequences) -> str:
    """What a report's checks refuse or doubt about the chain of `data`; empty if nothing."""
    counts, _ = counted_steps(data)
    return doubts_in_words(checks_of(Steps.of(data), counts, SMOOTHING)[0])


def trusted_chain(
    data: Sequences,
    alpha: float,
    plan: np.ndarray | None,
    *,
    confidence: float = 0.95,
    against: str = UPPER,
    anyway: bool = False,
) -> Pair:
    """The loss functions of every chain that `data` leave possible, for a publisher.

    Parameters
    ----------
    data : Sequences
    alpha : float, the level that each TPL is to keep, nats
    plan : ndarray (T,) of budgets fixed in advance, or None
        One within `alpha` in sum needs no model.
    confidence : float, that the true chain is among those that count
    against : whom the plan withstands, too, as in `report`
    anyway : whether the chain is used though a check refuses or doubts it

    Returns
    -------
    tuple of the backward and the forward loss function

    Raises
    ------
    DoubtfulModelError
        If a report on the data would not rely on the chain.
    ValueError
        If the plan does not withstand `against`.
    """
    counts, states = counted_steps(data)
    pair = upper_pair(counts, states, confidence)
    if plan is not None and fsum(plan) <= alpha:
        return pair
    if anyway and against == UPPER:
        return pair
    checks, weight = checks_of(Steps.of(data), counts, SMOOTHING)
    if not anyway:
        _check_believable(checks, against)
    if against != UPPER:
        adversaries = adversaries_of(data, counts, states, SMOOTHING, confidence, weight)
        check_choice(against, "against", adversaries)
        _check_withstands(plan, alpha, against, adversaries[against])
    return pair


def _check_believable(checks: Sequence[Check], against: str) -> None:
    """DoubtfulModelError if a check refuses the chain, or doubts it in a way that matters."""
    if is_refused(checks) or not is_believable(checks, against):
        raise DoubtfulModelError(
            f"the data must show one chain for everybody, found: {doubts_in_words(checks)}; "
            "publish a plan of α/T, which needs no chain, as a report gives it (budgets=), or pass "
            "anyway=True"
        )


def _check_withstands(plan: np.ndarray | None, alpha: float, against: str, pair: Pair) -> None:
    """ValueError unless the plan keeps alpha against an adversary."""
    if plan is None:
        raise ValueError(f"against={against!r} needs a plan of budgets, found none; give plan=")
    leaked = largest_tpl(plan, pair)
    if leaked > alpha:
        raise ValueError(
            f"the plan must keep alpha = {alpha:g} against {against}, found {leaked:.6g}; take "
            f"that of a report with against={against!r}"
        )
