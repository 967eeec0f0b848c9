"""An online account of temporal privacy leakage: compose releases as they happen, read leakages at
any time.

Contract. `compose` validates first and changes the account second, costs O(1) and returns the
account. A new release **raises the forward leakage, and with it the TPL, of all past releases**: a
past release that satisfied alpha-DP_T may no longer satisfy it (Example 3 of [1]). Budgets are part
of the public mechanism; they must not depend on the data. Several threads may read and compose;
copies are independent.
"""

from __future__ import annotations
from copy import copy
from math import inf
from typing import Any, NamedTuple, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.display import count_noun, frame_as_html
from tplrepro.leakage.accumulation import StepsInTurn, accumulate_until_known
from tplrepro.leakage.filter import LeakageExceededError, TemporalFilter
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    TemporalLeakage,
    loss_cycles,
    safely_below,
)
from tplrepro.leakage.timeline import LossBetween, Timeline
from tplrepro.locks import ForkLock
from tplrepro.validation import as_scalar, check_epsilon, check_horizon, check_level

#: Held while an account with a level spends; shared by all accounts, for it is held shortly.
SPENDING = ForkLock()


class Reading(NamedTuple):
    """The leakages of the first `entries` of a ledger."""

    entries: int
    leakage: TemporalLeakage


class Account:
    """Releases so far and their pure leakages against one adversary: what all accounts have in
    common."""

    def __init__(self, backward: Correlation, forward: Correlation):
        losses = loss_cycles(backward, forward)
        #: A loss function, None or a cycle of these: what else is made for the same adversary.
        self._backward = losses.as_given(losses.backward)
        self._forward = losses.as_given(losses.forward)
        self._losses = losses
        self._backward_between = LossBetween(losses.backward, "backward")
        self._forward_between = LossBetween(losses.forward, "forward")
        # Releases as they were composed, their bounds on the loss (0: no release), and their
        # counts.
        self._ledger: list[tuple[Any, float, int]] = []
        # Replaced as one, for threads.
        self._read = Reading(0, TemporalLeakage(*np.empty((3, 0))))

    def __repr__(self) -> str:
        releases = sum(count for _, epsilon, count in self._ledger if epsilon)
        total = sum(epsilon * count for _, epsilon, count in self._ledger)
        spent = count_noun(total, "nat", ".6g")
        return f"{type(self).__name__}({count_noun(releases, 'release')}, {spent} spent)"

    def _repr_html_(self) -> str:
        return frame_as_html(repr(self), self.leakage.to_frame())

    def __len__(self) -> int:
        """The number of time points so far, T."""
        return sum(count for *_, count in self._ledger)

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; their leakages are as in
        `leakage_at_all_times`."""
        self._backward_between.check_pause_possible()
        self._forward_between.check_pause_possible()
        return self._add(0.0, 0.0, check_horizon(count, "count"))

    def _add(self, release: Any, epsilon: float, count: int) -> Self:
        """Enter `count` equal releases in the ledger, in whatever form the account takes them;
        epsilon bounds the loss of each, nats, and is 0 for times without one."""
        self._ledger.append((release, epsilon, count))
        return self

    @property
    def leakage(self) -> TemporalLeakage:
        """All leakages as of now, with their compositions."""
        read = self._read
        new = self._ledger[read.entries :]
        if new:
            leakage = self._extend_leakage(read.leakage, new)
            read = Reading(read.entries + len(new), leakage)
            self._read = read
        return read.leakage

    @property
    def epsilons(self) -> np.ndarray:
        """The budget of each release, (T,), nats."""
        return self.leakage.epsilons

    @property
    def bpl(self) -> np.ndarray:
        """Backward privacy leakage of each release, (T,), nats."""
        return self.leakage.bpl

    @property
    def fpl(self) -> np.ndarray:
        """Forward privacy leakage of each release as of now, (T,), nats."""
        return self.leakage.fpl

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage of each release as of now, (T,), nats."""
        return self.leakage.tpl

    def _extend_leakage(
        self, previous: TemporalLeakage, new: list[tuple[Any, float, int]]
    ) -> TemporalLeakage:
        """The leakages of the releases so far and of new ones."""
        spent = np.array([epsilon for _, epsilon, _ in new], float)
        spent = np.repeat(spent, [count for *_, count in new])
        epsilons = np.append(previous.epsilons, spent)
        if not epsilons.all():
            times = np.flatnonzero(epsilons)
            timeline = Timeline.from_losses(
                self._backward_between, self._forward_between, epsilons.size, times
            )
            return timeline.leakage(epsilons[times])
        passed = previous.epsilons.size
        last_bpl = None
        if passed:
            last_bpl = float(previous.bpl[-1])
        steps_to_new = StepsInTurn(self._losses.backward, passed - 1, 1)
        new_bpl = steps_to_new.accumulate(spent, last_bpl)
        steps_from_last = StepsInTurn(self._losses.forward, epsilons.size - 1, -1)
        new_fpl = steps_from_last.accumulate(spent[::-1], None)[::-1]
        # The new releases raise the FPL of earlier ones, noticeably of the latest only.
        changed_fpl = accumulate_until_known(
            StepsInTurn(self._losses.forward, passed - 1, -1),
            previous.epsilons[::-1],
            float(new_fpl[0]),
            known=previous.fpl[::-1],
        )[::-1]
        unchanged_fpl = previous.fpl[: previous.fpl.size - changed_fpl.size]
        bpl = np.append(previous.bpl, new_bpl)
        fpl = np.concatenate((unchanged_fpl, changed_fpl, new_fpl))
        for leakages in (epsilons, bpl, fpl):
            leakages.setflags(write=False)  # so that the result holds them without a copy
        return TemporalLeakage(epsilons, bpl, fpl)

    def _largest_budget(self, alpha: float, floor: ArrayLike = 0.0) -> float:
        """The largest pure budget of the next release with which every TPL stays within alpha; 0 if
        none does."""
        if not np.any(floor):  # `tpl` has rounding errors, too
            alpha = safely_below(alpha, len(self) + 1)
        account = TemporalFilter(alpha, self._backward, self._forward, floor=floor)
        try:
            for _, epsilon, count in self._ledger[:]:
                if epsilon == inf:
                    return 0.0
                _spend_or_skip(account, epsilon, count)
        except LeakageExceededError:
            return 0.0
        return account.remaining


def _spend_or_skip(account: TemporalFilter, epsilon: float, count: int) -> None:
    """Tell a filter of an entry of a ledger: `count` releases of budget epsilon, or, with 0, times
    without one."""
    if epsilon:
        account.spend(epsilon, count)
    else:
        account.skip(count)


class TemporalAccountant(Account):
    """Account of the leakages of pure releases so far against one adversary.

    With `alpha` the account is a filter: it refuses what would raise a TPL above alpha, and keeps a
    budget of `floor` available at every later time. Budgets may then depend on what was released
    before. For Gaussian and other noise see `EventAccountant`.

    Parameters
    ----------
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, Cycle or None (not known)
        Pr(l^{t-1} | l^t), what the adversary knows of the time before: `forward.reverse()`, seldom
        the forward matrix itself. The first time point is at phase 0 of a cycle. The promise is to
        users whose first state has the law that this side assumes: for a `reverse()` without a
        start, those who start in the habit.
    forward : the same for Pr(l^t | l^{t-1})
    alpha : float > 0, optional; the level of alpha-DP_T that every TPL keeps, nats
    floor : float or array-like (p,), >= 0, with `alpha` what stays available at every later time
        As in `TemporalFilter`; nats.

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For matrices that are not row-stochastic or have different states, a level that is not
        positive and finite, or a floor that exceeds alpha in the long run.

    Examples
    --------
    >>> P = [[0.8, 0.2], [0, 1]]
    >>> account = TemporalAccountant(backward=P, forward=P)
    >>> account.compose(0.1, count=2).tpl.round(4).tolist()
    [0.1808, 0.1808]
    >>> account.compose(0.1).tpl.round(4).tolist()  # the third raised the leakage of the first two
    [0.2471, 0.2616, 0.2471]
    >>> account.ledger
    ((0.1, 2), (0.1, 1))
    >>> round(account.budget_within(0.3), 4)  # of the fourth, so that no leakage exceeds 0.3
    0.0583
    >>> round(TemporalAccountant(P, None, alpha=0.5).compose(0.2).remaining, 4)
    0.3369
    """

    def __init__(
        self,
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        *,
        alpha: float | None = None,
        floor: ArrayLike = 0.0,
    ):
        super().__init__(backward, forward)
        self._filter: TemporalFilter | None = None
        if alpha is not None:
            self._filter = TemporalFilter(alpha, self._backward, self._forward, floor=floor)

    def __getstate__(self) -> tuple:
        read = self._read  # first: it must not be newer than the ledger
        with SPENDING:
            return self._backward, self._forward, read, copy(self._filter), self._ledger[:]

    def __setstate__(self, state: tuple) -> None:
        TemporalAccountant.__init__(self, *state[:2])
        self._read, self._filter, self._ledger = state[2:]

    def compose(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Add releases; this raises the forward leakage of the earlier ones.

        Parameters
        ----------
        epsilon : float > 0, the budget of each release, nats
        count : int >= 1, how many there are, one per time point

        Returns
        -------
        The account itself

        Raises
        ------
        LeakageExceededError
            If the account has a level alpha and a TPL would exceed it.
        ValueError
            If the budget is not positive and finite, or `count` no whole number >= 1.

        After an error the account is as it was.
        """
        # the full check costs more than everything else
        if not (type(epsilon) is float and 0.0 < epsilon < inf):
            remedy = "compose each budget in turn, and events by EventAccountant"
            epsilon = as_scalar(check_epsilon(epsilon), "epsilon", remedy)
        count = check_horizon(count, "count")
        if self._filter:
            return self._add(epsilon, epsilon, count)
        self._ledger.append((epsilon, epsilon, count))
        return self

    def _add(self, release: Any, epsilon: float, count: int) -> Self:
        with SPENDING:
            if self._filter:
                _spend_or_skip(self._filter, epsilon, count)
            self._ledger.append((release, epsilon, count))
        return self

    @property
    def ledger(self) -> tuple[tuple[float, int], ...]:
        """The releases in order: pairs (budget, count), with 0 for time points without a
        release."""
        return tuple((epsilon, count) for _, epsilon, count in self._ledger)

    @property
    def remaining(self) -> float:
        """The largest next budget that keeps every TPL within `alpha`, and the floor available;
        nats."""
        return self._level("remaining").remaining

    @property
    def tolerated(self) -> float:
        """The largest FPL of the next time point with which every TPL stays within the level
        `alpha`; nats."""
        return self._level("tolerated").tolerated

    def budget_within(self, alpha: float, *, floor: ArrayLike = 0.0) -> float:
        """The largest next budget that keeps every TPL within a level given now.

        Parameters
        ----------
        alpha : float > 0, the level, nats
        floor : float or array-like (p,), >= 0, what stays available at every later time; nats
            Without one the result says nothing about later releases.

        Returns
        -------
        float, nats, rounding errors included; 0 if no budget keeps the level

        Raises
        ------
        ValueError
            For a level that is not positive and finite, or a floor that exceeds it in the long run.
        """
        return self._largest_budget(check_level(alpha), floor)

    def _level(self, name: str) -> TemporalFilter:
        """The filter of an account with a level; without one an error, which calls what was asked
        for `name`."""
        if self._filter is None:
            raise ValueError(
                f"{name} needs an account with a level, found none; "
                "make it with alpha=, or ask budget_within(alpha)"
            )
        return self._filter
