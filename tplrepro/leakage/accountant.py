"""An online account of temporal privacy leakage: compose releases as they happen, read the leakages at any time.

Contract. `compose` validates first and changes the account second, costs O(1) and returns the account. Composing adds
to the backward leakage of the new releases and **raises the forward leakage, and with it the TPL, of all past ones**: a
past release that satisfied alpha-DP_T need not satisfy it any more (Example 3 of [1]). Budgets are part of the public
mechanism; they must not depend on the data. Several threads may read and compose; copies go their own ways.
"""

from copy import copy
from itertools import groupby
from math import inf, ulp
from operator import itemgetter
from typing import Self, SupportsIndex

import numpy as np

from tplrepro.leakage.partial import Timeline, gaps
from tplrepro.leakage.temporal import Matrix, TemporalLeakage, accumulate, loss_functions, safely_below
from tplrepro.search import largest_within
from tplrepro.validation import check_epsilon, check_horizon, check_level, one_number

__all__ = ["TemporalAccountant"]


class TemporalAccountant:
    """Account of the leakages of releases so far against one adversary.

    `backward` and `forward` are as in `temporal_privacy_leakage`, one matrix or loss function each.

    Examples
    --------
    >>> account = TemporalAccountant(backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]])
    >>> account.compose(0.1, count=2).tpl.round(4).tolist()
    [0.1808, 0.1808]
    >>> account.compose(0.1).tpl.round(4).tolist()  # the third release raised the leakage of the first two
    [0.2471, 0.2616, 0.2471]
    >>> account.ledger
    ((0.1, 2), (0.1, 1))
    >>> round(account.remaining(0.3), 4)  # of the fourth release, so that no leakage exceeds 0.3
    0.0583
    """

    def __init__(self, backward: Matrix | None = None, forward: Matrix | None = None):
        self._backward, self._forward = loss_functions(backward, forward)
        self._gaps = gaps([self._backward], "backward"), gaps([self._forward], "forward")
        self._ledger: list[tuple[float, int]] = []
        # How many entries of the ledger were read so far, and their leakages: replaced as one by whoever reads.
        self._read = 0, TemporalLeakage(*np.empty((3, 0)))

    def __getstate__(self) -> tuple:
        return self._backward, self._forward, self._read, self._ledger[:]  # a ledger not older than what was read

    def __setstate__(self, state: tuple) -> None:
        TemporalAccountant.__init__(self, *state[:2])
        self._read, self._ledger = state[2:]

    def __repr__(self) -> str:
        return (
            f"TemporalAccountant({sum(n for epsilon, n in self._ledger if epsilon)} releases, "
            f"{sum(epsilon * n for epsilon, n in self._ledger):.6g} nats spent)"
        )

    def __len__(self) -> int:
        """The number of time points so far, T."""
        return sum(count for _, count in self._ledger)

    def compose(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Add `count` releases of budget `epsilon` (nats); this raises the forward leakage of the releases before.

        ValueError if epsilon is not positive and finite or count is not a whole number >= 1; nothing is added then.
        """
        if not (type(epsilon) is float and 0.0 < epsilon < inf):  # the full checks cost more than all the rest
            epsilon = one_number(check_epsilon(epsilon), "epsilon", "compose each budget in turn")
        count = check_horizon(count, "count")
        self._ledger.append((epsilon, count))
        return self

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; what is known about them is as in `leakage_at_all_times`."""
        for between in self._gaps:
            between(0, 2)  # refused for sparse matrices of very many states, before the account changes
        self._ledger.append((0.0, check_horizon(count, "count")))
        return self

    def remaining(self, alpha: float) -> float:
        """The largest budget of the next release that keeps every TPL within `alpha`, rounding errors included; nats.

        0 if there is none above the rounding errors. It says nothing about the releases after the next.
        """
        level = safely_below(check_level(alpha), len(self) + 1)

        def within(epsilon: float) -> bool:
            return copy(self).compose(epsilon).tpl.max() <= level

        least = level * 2.0**-50
        return largest_within(within, least, level) if within(least) else 0.0

    @property
    def ledger(self) -> tuple[tuple[float, int], ...]:
        """What was composed, in order: pairs (epsilon, count), with epsilon 0 for time points without a release."""
        return tuple(self._ledger)

    @property
    def leakage(self) -> TemporalLeakage:
        """All leakages as of now, with their compositions."""
        read, known = self._read
        new = self._ledger[read:]
        if new:
            known = self._followed_by(new, known)
            self._read = read + len(new), known
        return known

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

    def _followed_by(self, new: list, known: TemporalLeakage) -> TemporalLeakage:
        epsilons = np.append(known.epsilons, np.repeat([epsilon for epsilon, _ in new], [n for _, n in new]))
        if not epsilons.all():
            times = np.flatnonzero(epsilons)
            return Timeline.along(*self._gaps, epsilons.size, times).leakage(epsilons[times])
        runs = [(epsilon, sum(n for _, n in group)) for epsilon, group in groupby(new, key=itemgetter(0))]
        last = float(known.bpl[-1]) if known.bpl.size else None
        bpl = np.fromiter(accumulate(((self._backward, *run) for run in runs), last), float)
        fpl = np.fromiter(accumulate((self._forward, *run) for run in runs[::-1]), float)
        changed: list[float] = []
        earlier = ((self._forward, float(epsilon), 1) for epsilon in known.epsilons[::-1])
        for following, before in zip(accumulate(earlier, float(fpl[-1])), known.fpl[::-1], strict=False):
            if abs(following - before) < ulp(following):
                break  # and so do all before it
            changed.append(following)
        unchanged = known.fpl[: known.fpl.size - len(changed)]
        return TemporalLeakage(
            epsilons,
            np.concatenate((known.bpl, bpl)),
            np.concatenate((unchanged, changed[::-1], fpl[::-1])),
        )
