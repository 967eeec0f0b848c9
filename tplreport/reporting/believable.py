"""May a chain that is estimated from data be relied on? A report and a publisher ask the same."""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.checks import (
    DOUBTFUL,
    OF_CHAIN,
    REFUSED,
    USERS,
    Check,
    CheckedChain,
    check_chain,
)
from tplreport.reporting.counted_steps import CountedSteps, EstimatedMatrices
from tplreport.reporting.habits_of_users import MOST_USERS, UsersApart, count_well_known
from tplreport.reporting.plans import (
    MOST_FOR_UPPER,
    UPPER,
    WORST_USER,
    Pair,
    Plan,
    adversaries_of,
    largest_tpl,
    pair_of,
    upper_pair,
)
from tplreport.reporting.steps_of_users import StepBlocks
from tplreport.reporting.time_of_day import AUTO, TimeOfDay, judge_time_of_day, variation_of_hours
from tplrepro.markov.phases import PhaseGroups
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_choice

#: Pseudo-steps a row of a report, unless it is given others.
SMOOTHING = 1.0
#: A larger share of users who are odd is no exception, but a mixture.
MOST_ODD = 0.25


class DoubtfulModelError(ValueError):
    """The data do not show a chain that a promise may rest on; the message says what to do."""


@dataclass(frozen=True, eq=False)
class JudgedChain:
    """The chain that data show, and what the checks say about it."""

    data: Sequences
    time_of_day: TimeOfDay
    counted: CountedSteps
    smoothing: float
    cycle: str | None
    first: Any

    @classmethod
    def of(
        cls,
        data: Sequences,
        cycle: str | None = AUTO,
        first: Any = None,
        smoothing: float = SMOOTHING,
    ) -> JudgedChain:
        """Count the steps of `data`, at each phase where habits follow the clock.

        `cycle` is "auto", "day", "week" or None, for one chain at all hours; `first` is the label
        of the phase of the first release, None the first phase. Smoothing adds `smoothing` steps to
        each row.
        """
        time_of_day = judge_time_of_day(data, cycle)
        counted = CountedSteps.of(data, time_of_day.groups, first)
        steps_of_groups = [table.sum() for table in counted.tables()]
        time_of_day = time_of_day.doubting_unseen(steps_of_groups)
        return cls(data, time_of_day, counted, smoothing, cycle, first)

    @cached_property
    def blocks(self) -> StepBlocks:
        """The steps that are checked."""
        return StepBlocks.of(self.data, self.time_of_day.groups)

    @cached_property
    def checked(self) -> CheckedChain:
        """What the checks of a report say."""
        return check_chain(self.time_of_day.check, self.blocks, self.counted.pooled, self.smoothing)

    @cached_property
    def users(self) -> UsersApart:
        """The users whose habits may be their own."""
        return UsersApart.of(self.data, self.blocks, self.checked.answers)

    @cached_property
    def without_odd_users(self) -> JudgedChain | None:
        """The same without the users who are odd; None unless they are few, all others have the
        same phases, and nothing is doubted about them."""
        if USERS not in self.checked.answers.found:
            return None
        odd = self.checked.answers.users.odd
        if not 0 < len(odd) <= min(MOST_USERS, MOST_ODD * self.blocks.n_users):
            return None
        is_odd = np.isin(self.data.users, self.blocks.names[odd])
        try:
            others = JudgedChain.of(
                self.data.select(~is_odd), self.cycle, self.first, self.smoothing
            )
        except ValueError:  # they do not move
            return None
        if not _have_same_phases(self.counted.groups, others.counted.groups):
            return None
        if not is_believable(others.checked.checks) or is_refused(others.checked.checks):
            return None
        return others

    @property
    def is_answered(self) -> bool:
        """Whether all that is doubted is that few users are odd, for whom plans are made, too."""
        return self.without_odd_users is not None

    @property
    def doubts_order(self) -> bool:
        """Whether the place before the last one matters, and no rhythm may be why."""
        if self.counted.groups is not None or self.time_of_day.check.verdict == DOUBTFUL:
            return False
        return self.checked.answers.place_before_matters

    @property
    def shared(self) -> JudgedChain:
        """The chain that users share: without those who are odd, where these are few."""
        return self.without_odd_users or self

    @cached_property
    def counted_for_anybody(self) -> CountedSteps:
        """The counts, and how much rows of users and of hours may vary about the shared ones."""
        if len(self.counted.states) > MOST_FOR_UPPER:  # every chain is possible
            return self.counted
        of_users = self.checked.answers.variation_of_users
        of_hours = variation_of_hours(self.data, self.counted.groups)
        return replace(self.counted, variation=of_users + of_hours)

    def upper_pair(self, confidence: float) -> Pair:
        """The loss functions of every chain that the data leave possible for any user."""
        return upper_pair(self.counted_for_anybody, confidence)

    def adversaries(self, confidence: float) -> dict[str, Pair]:
        """The loss functions of each adversary of a report."""
        users = self.users
        if self.is_answered:
            users = replace(users, shared_weight=None)
        counted = self.shared.counted_for_anybody
        return adversaries_of(counted, self.smoothing, confidence, users)

    def well_known_users(self, plan: Plan, alpha: float) -> int | None:
        """How many users have enough steps to show habits for which the plan leaks twice alpha.

        None where it needs no habits, or nothing is known of others.
        A plan of least error leaks alpha at the upper end, so that habits only a little stronger
        break it a little, which hardly any steps show.
        """
        n_states = len(self.counted.states)
        if plan.scheme == COMPOSED or self.blocks.n_users == 1 or n_states > MOST_FOR_UPPER:
            return None
        counted = self.shared.counted
        budgets = plan.budgets
        assert budgets is not None

        def breaks(matrices: EstimatedMatrices) -> bool:
            return largest_tpl(budgets, pair_of(counted, matrices)) > 2.0 * alpha

        matrices = EstimatedMatrices.of(counted, self.smoothing or SMOOTHING)
        return count_well_known(self.blocks, matrices, breaks)

    @property
    def doubts(self) -> str:
        """What the checks refuse or doubt, in words; empty if nothing."""
        return doubts_in_words(self.checked.checks)


def _have_same_phases(one: PhaseGroups | None, other: PhaseGroups | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.codes.tolist() == other.codes.tolist()


def is_refused(checks: Sequence[Check]) -> bool:
    """Whether a check refuses the model, so that no plan is recommended."""
    return any(check.verdict == REFUSED for check in checks)


def is_believable(checks: Sequence[Check], against: str = UPPER) -> bool:
    """Whether no check doubts that there is one chain in a way that matters to plans `against` an
    adversary: those against the worst user's habits allow for differences between users."""
    doubted = {check.name for check in _doubted(checks)}
    if against == WORST_USER:
        doubted.discard(USERS)
    return not doubted


def doubts_in_words(checks: Sequence[Check]) -> str:
    """The sentences of the checks that refuse the model or doubt that there is one chain."""
    wrong = [check for check in checks if check.verdict == REFUSED]
    wrong += sorted(_doubted(checks), key=lambda check: -check.value)
    return "; ".join(f"{check.name} is {check.verdict}: {check.sentence}" for check in wrong)


def _doubted(checks: Sequence[Check]) -> list[Check]:
    """The checks of the chain that doubt it."""
    return [check for check in checks if check.name in OF_CHAIN and check.verdict == DOUBTFUL]


def possible_chain(
    data: Sequences, confidence: float = 0.95, *, cycle: str | None = AUTO, first: Any = None
) -> PossibleChain:
    """The loss functions of every chain that `data` leave possible, and what the checks of a report
    doubt about it.

    Parameters
    ----------
    data : Sequences
    confidence : float, that the true chain is among those that count
    cycle : "auto", "day", "week" or None, as in `report`
    first : the label of the phase of the first time, at which a cycle begins, as in `report`

    Returns
    -------
    PossibleChain

    Raises
    ------
    ValueError
        Without steps, and for a cycle or a phase that there is not.
    """
    judged = JudgedChain.of(data, cycle, first)
    return PossibleChain(judged.upper_pair(confidence), judged.doubts)


@dataclass(frozen=True, eq=False)
class PossibleChain:
    """Backward and forward loss functions, which are cycles where habits follow the clock, and what
    checks doubt about them."""

    pair: Pair
    doubts: str  # in words; empty if there are none


def trusted_chain(
    data: Sequences,
    alpha: float,
    plan: np.ndarray | None,
    *,
    confidence: float = 0.95,
    against: str = UPPER,
    cycle: str | None = AUTO,
    first: Any = None,
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
    cycle : "auto", "day", "week" or None, as in `report`
        Where habits follow the clock, None is refused: one chain for all hours promises too much.
    first : the label of the phase of the first release, at which a cycle and the plan begin
        By default the first phase of a day or week.
    anyway : whether the chain is used though a check refuses or doubts it

    Returns
    -------
    tuple of the backward and the forward loss function, or cycles of them

    Raises
    ------
    DoubtfulModelError
        If a report on the data would not rely on the chain.
    ValueError
        If the plan does not withstand `against`.
    """
    judged = JudgedChain.of(data, cycle, first)
    pair = judged.upper_pair(confidence)
    if plan is not None and fsum(plan) <= alpha:
        return pair
    if plan is not None and judged.is_answered:
        against = WORST_USER
        pair = judged.shared.upper_pair(confidence)
    elif not anyway:
        _check_believable(judged.checked.checks, against)
    if against != UPPER:
        adversaries = judged.adversaries(confidence)
        check_choice(against, "against", adversaries)
        _check_withstands(plan, alpha, against, adversaries[against])
    return pair


def _check_believable(checks: Sequence[Check], against: str) -> None:
    """DoubtfulModelError if a check refuses the chain, or doubts it in a way that matters to plans
    `against` an adversary."""
    if is_refused(checks) or not is_believable(checks, against):
        raise DoubtfulModelError(
            f"the data must show one chain for everybody, found: {doubts_in_words(checks)}; "
            "publish a plan of α/T, which needs no chain, as a report gives it (budgets=), or pass "
            "anyway=True"
        )


def _check_withstands(plan: np.ndarray | None, alpha: float, against: str, pair: Pair) -> None:
    """ValueError unless the plan, budgets (T,), keeps alpha against the adversary called `against`,
    whose loss functions are `pair`."""
    if plan is None:
        raise ValueError(f"against={against!r} needs a plan of budgets, found none; give plan=")
    leaked = largest_tpl(plan, pair)
    if leaked > alpha:
        raise ValueError(
            f"the plan must keep alpha = {alpha:g} against {against}, found {leaked:.6g}; take "
            f"that of a report with against={against!r}"
        )
