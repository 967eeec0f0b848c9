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
from operator import itemgetter
from typing import Any, Self, SupportsIndex

import numpy as np

from tplrepro.display import count_noun, frame_as_html
from tplrepro.leakage.filter import LeakageExceededError, TemporalFilter
from tplrepro.leakage.partial import Timeline, gaps
from tplrepro.leakage.temporal import (
    REQUIRED,
    LossLike,
    TemporalLeakage,
    accumulate,
    loss_functions,
    safely_below,
)
from tplrepro.locks import ForkLock
from tplrepro.validation import as_scalar, check_epsilon, check_horizon, check_level

#: Held while an account with a level spends; shared by all accounts, for it is held shortly.
SPENDING = ForkLock()


class Account:
    """Releases so far and their pure leakages against one adversary: what all accounts have in
    common."""

    def __init__(self, backward: LossLike, forward: LossLike):
        self._backward, self._forward = loss_functions(backward, forward)
        self._gaps = gaps([self._backward], "backward"), gaps([self._forward], "forward")
        # Releases as they were composed, their bounds on the loss (0: no release), and their
        # counts.
        self._ledger: list[tuple[Any, float, int]] = []
        # The number of ledger entries read so far, and their leakages: each reading replaces both
        # at once.
        self._read = 0, TemporalLeakage(*np.empty((3, 0)))

    def __repr__(self) -> str:
        releases = sum(count for _, epsilon, count in self._ledger if epsilon)
        total = sum(epsilon * count for _, epsilon, count in self._ledger)
        return f"{type(self).__name__}({count_noun(releases, 'release')}, {count_noun(total, 'nat', '.6g')} spent)"

    def _repr_html_(self) -> str:
        return frame_as_html(repr(self), self.leakage.to_frame())

    def __len__(self) -> int:
        """The number of time points so far, T."""
        return sum(count for *_, count in self._ledger)

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; their leakages are as in
        `leakage_at_all_times`."""
        for between in self._gaps:
            between(0, 2)  # refuses sparse matrices of very many states, before the account changes
        return self._add(0.0, 0.0, check_horizon(count, "count"))

    def _add(self, release: Any, epsilon: float, count: int) -> Self:
        self._ledger.append((release, epsilon, count))
        return self

    @property
    def leakage(self) -> TemporalLeakage:
        """All leakages as of now, with their compositions."""
        read, leakage = self._read
        new = self._ledger[read:]
        if new:
            leakage = self._followed_by(new, leakage)
            self._read = read + len(new), leakage
        return leakage

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

    def _followed_by(
        self, new: list[tuple[Any, float, int]], previous: TemporalLeakage
    ) -> TemporalLeakage:
        spent, counts = (
            np.fromiter(map(itemgetter(field), new), float, len(new)) for field in (1, 2)
        )
        spent = np.repeat(spent, counts.astype(int))
        epsilons = np.append(previous.epsilons, spent)
        if not epsilons.all():
            times = np.flatnonzero(epsilons)
            return Timeline.along(*self._gaps, epsilons.size, times).leakage(epsilons[times])
        bpl = accumulate(
            self._backward, spent, float(previous.bpl[-1]) if previous.bpl.size else None
        )
        fpl = accumulate(self._forward, spent[::-1])
        changed = accumulate(
            self._forward, previous.epsilons[::-1], float(fpl[-1]), previous.fpl[::-1]
        )
        unchanged = previous.fpl[: previous.fpl.size - len(changed)]
        series = (
            epsilons,
            np.append(previous.bpl, bpl),
            np.concatenate((unchanged, changed[::-1], fpl[::-1])),
        )
        for leakages in series:
            leakages.setflags(write=False)  # so that the result holds them without a copy
        return TemporalLeakage(*series)

    def _largest_budget(self, alpha: float, floor: float = 0.0) -> float:
        """The largest pure budget of the next release with which every TPL stays within alpha; 0 if
        none does."""
        if floor == 0.0:  # `tpl` has rounding errors, too
            alpha = safely_below(alpha, len(self) + 1)
        account = TemporalFilter(alpha, self._backward, self._forward, floor=floor)
        try:
            for _, epsilon, count in self._ledger[:]:
                if epsilon == inf:
                    return 0.0
                account.spend(epsilon, count) if epsilon else account.skip(count)
        except LeakageExceededError:
            return 0.0
        return account.remaining


class TemporalAccountant(Account):
    """Account of the leakages of pure releases so far against one adversary.

    `backward` and `forward` are as in `temporal_privacy_leakage`, one matrix or loss function each.
    With `alpha` the account is a filter (`TemporalFilter`): it refuses what would raise a TPL above
    alpha, and keeps a budget of `floor` available at every later time. Budgets may then depend on
    what was released before. For Gaussian and other noise see `EventAccountant`.

    Examples
    --------
    >>> account = TemporalAccountant(backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]])
    >>> account.compose(0.1, count=2).tpl.round(4).tolist()
    [0.1808, 0.1808]
    >>> account.compose(0.1).tpl.round(4).tolist()  # the third release raised the leakage of the first two
    [0.2471, 0.2616, 0.2471]
    >>> account.ledger
    ((0.1, 2), (0.1, 1))
    >>> round(account.budget_within(0.3), 4)  # of the fourth release, so that no leakage exceeds 0.3
    0.0583
    >>> round(TemporalAccountant([[0.8, 0.2], [0, 1]], None, alpha=0.5).compose(0.2).remaining, 4)
    0.3369
    """

    def __init__(
        self,
        backward: LossLike = REQUIRED,
        forward: LossLike = REQUIRED,
        *,
        alpha: float | None = None,
        floor: float = 0.0,
    ):
        super().__init__(backward, forward)
        self._filter = (
            None
            if alpha is None
            else TemporalFilter(alpha, self._backward, self._forward, floor=floor)
        )

    def __getstate__(self) -> tuple:
        read = self._read  # first: it must not be newer than the ledger
        with SPENDING:
            return self._backward, self._forward, read, copy(self._filter), self._ledger[:]

    def __setstate__(self, state: tuple) -> None:
        TemporalAccountant.__init__(self, *state[:2])
        self._read, self._filter, self._ledger = state[2:]

    def compose(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Add `count` releases, one per time point; this raises the forward leakage of the earlier
        releases.

        ValueError if the budget (nats) is not positive and finite or count is not a whole number >=
        1, and LeakageExceededError if the account has a level alpha and a TPL would exceed it; the
        account then stays as it is.
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
                self._filter.spend(epsilon, count) if epsilon else self._filter.skip(count)
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

    def budget_within(self, alpha: float, *, floor: float = 0.0) -> float:
        """The largest next budget that keeps every TPL within a level given now, rounding errors
        included; nats.

        0 if none does. A `floor` >= 0 stays available at every later time; without one the result
        says nothing about later releases.
        """
        return self._largest_budget(check_level(alpha), floor)

    def _level(self, name: str) -> TemporalFilter:
        if self._filter is None:
            raise ValueError(
                f"{name} needs an account with a level, found none; make it with alpha=, or ask budget_within(alpha)"
            )
        return self._filter
