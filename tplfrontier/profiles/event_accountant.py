"""An online account of releases with any noise: (epsilon, delta) leakages of dp_accounting's
events.

A release is a budget, for pure epsilon-DP, an event of dp_accounting, such as Gaussian noise, by
the conventions of `tplfrontier.profiles.events`, or a `PrivacyProfile`. `epsilon` and `delta` account for
all of them; without pauses, one more release costs as much as the profiles that it changes. `bpl`,
`fpl` and `tpl` are the pure leakages: exact for budgets and events with a bounded loss, inf without
a pure bound.
"""

from __future__ import annotations
from collections.abc import Callable
from copy import copy, deepcopy
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np

from tplfrontier.profiles.privacy_profile import (
    COARSEST,
    PrivacyProfile,
    Release,
    automatic_grid,
    check_grid,
)
from tplfrontier.profiles.temporal_profile import TemporalPrivacyProfile, temporal_privacy_profile
from tplrepro.leakage.accountant import Account
from tplrepro.leakage.temporal import REQUIRED, LossLike
from tplrepro.progress import Bar
from tplrepro.search import largest_within
from tplrepro.validation import (
    as_scalar,
    check_alpha,
    check_delta,
    check_epsilon,
    check_horizon,
    check_level,
)

if TYPE_CHECKING:
    from dp_accounting import DpEvent

#: The largest relative error of what remains when the search uses profiles.
TOLERANCE = 2.0**-10
#: What remains is sought within this factor of the level, or of a noise multiplier of 1.
RANGE = 2.0**13


class EventAccountant(Account):
    """Account of the (epsilon, delta) leakages of releases so far against one adversary.

    `backward` and `forward` are as in `temporal_privacy_leakage`, one matrix or loss function each.
    `grid` is as in `temporal_privacy_profile`; None adapts it to the weakest release so far. Noise
    must not depend on earlier outputs: (epsilon, delta) does not hold then. Where outputs choose,
    compose the strongest release that may be chosen at each time; or give the number of `plans`,
    fixed in advance, between which you choose.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> account = EventAccountant(backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]]).compose(0.1, 3)
    >>> account.compose(GaussianDpEvent(4.0)).epsilon(1e-6).round(3).tolist()
    [0.836, 0.951, 1.058, 1.162]
    >>> round(account.budget_within(2.0, 1e-6), 3), round(account.least_noise(2.0, 1e-6, GaussianDpEvent), 2)
    (0.999, 2.61)
    """

    def __init__(
        self,
        backward: LossLike = REQUIRED,
        forward: LossLike = REQUIRED,
        *,
        grid: float | None = None,
    ):
        super().__init__(backward, forward)
        self._grid = None if grid is None else check_grid(grid)
        self._events: dict[Release, Release] = {}
        self._profiled: tuple[int, TemporalPrivacyProfile | None] = 0, None

    def __getstate__(self) -> tuple:
        # In this order: the ledger must not be older than the readings, nor the events than the
        # ledger.
        return (
            *(self._backward, self._forward, self._grid, self._read, self._profiled),
            *(self._ledger[:], {**self._events}),
        )

    def __setstate__(self, state: tuple) -> None:
        EventAccountant.__init__(self, *state[:2])
        self._grid, self._read, self._profiled, self._ledger, self._events = state[2:]

    def compose(self, release: float | DpEvent | PrivacyProfile, count: SupportsIndex = 1) -> Self:
        """Add `count` releases, one per time point; this raises the forward leakage of the earlier
        releases.

        A composed event is one release; an event that reveals nothing is like `skip`. ValueError if
        a budget is not positive and finite, an event is unsupported or count is not a whole number
        >= 1; the account then stays as it is.
        """
        if hasattr(release, "to_named_tuple") or isinstance(release, PrivacyProfile):
            kept = self._kept(release)
            epsilon = kept.epsilon
            if epsilon == 0.0:
                return self.skip(count)
            release = kept.event
        else:
            release = epsilon = as_scalar(
                check_epsilon(release), "epsilon", "compose each budget in turn"
            )
        return self._add(release, epsilon, check_horizon(count, "count"))

    def _kept(self, release: Any) -> Release:
        kept = Release(release)
        if kept not in self._events:
            kept = kept.copied()
            _ = kept.epsilon  # ValueError if it is unsupported
        return self._events.setdefault(kept, kept)

    @property
    def ledger(self) -> tuple[tuple[float | DpEvent | PrivacyProfile, int], ...]:
        """The releases in order: pairs (release, count), with 0 for time points without a
        release."""
        return tuple((deepcopy(release), count) for release, _, count in self._ledger)

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP_T of each release, (T,); 0 < delta <
        1."""
        delta = as_scalar(check_delta(delta), "delta")
        return (
            self.profile.epsilon(delta)
            if any(bound for _, bound, _ in self._ledger)
            else np.zeros(len(self))
        )

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP_T of each release, (T,); epsilon in
        nats."""
        epsilon = as_scalar(check_alpha(epsilon, "epsilon"), "epsilon")
        return (
            self.profile.delta(epsilon)
            if any(bound for _, bound, _ in self._ledger)
            else np.zeros(len(self))
        )

    @property
    def profile(self) -> TemporalPrivacyProfile:
        """All privacy profiles as of now, with their compositions; ValueError before the first
        release."""
        read, profile = self._profiled
        ledger = self._ledger[:]
        if profile is None or read < len(ledger):
            distinct = {id(release): release for release, epsilon, _ in ledger if epsilon}
            kept = {key: self._kept(release) for key, release in distinct.items()}
            entries = [
                (kept[id(release)] if epsilon else None, count)
                for release, epsilon, count in ledger
            ]
            grid, earlier = self._grid, profile
            if grid is None:  # halved until it suits the weakest release, so that it seldom changes
                finest = automatic_grid({release for release, _ in entries if release})
                grid = COARSEST * 2.0 ** -ceil(log2(COARSEST / finest))
            profile = temporal_privacy_profile(entries, self._backward, self._forward, grid=grid)
            profile = profile.following(earlier) if earlier else profile
            self._profiled = len(ledger), profile
        return profile

    def budget_within(self, alpha: float, delta: float = 0.0, *, plans: SupportsIndex = 1) -> float:
        """The largest pure budget of the next release that keeps every TPL within (alpha, delta);
        nats.

        Parameters
        ----------
        alpha : float > 0, nats
        delta : float, 0 <= delta < 1; above 0 the result is exact within 0.1 %
        plans : int >= 1, the number of plans, each fixed in advance, between which outputs decide
            Each must keep (alpha, delta / plans), and this account must hold the releases of one of them.

        0 if no budget does (with a delta: none above alpha / 8192). It says nothing about later
        releases.
        """
        alpha, delta = check_level(alpha), _share(delta, plans)
        if delta == 0.0:
            return self._largest_budget(alpha)
        return self._largest(lambda budget: self._keeps(alpha, delta, budget), alpha, alpha, delta)

    def least_noise(
        self,
        alpha: float,
        delta: float,
        noise: Callable[[float], DpEvent],
        *,
        plans: SupportsIndex = 1,
    ) -> float:
        """The smallest noise multiplier of the next release that keeps every TPL within (alpha,
        delta).

        `noise` makes an event of a multiplier, such as `GaussianDpEvent`; the other arguments are
        those of `budget_within`. Exact within 0.1 %; inf if 8192 is not enough.
        """
        alpha, delta = check_level(alpha), _share(delta, plans)
        if delta == 0.0:
            budget = self._largest_budget(alpha)
            size = self._largest(
                lambda size: Release(noise(1.0 / size)).epsilon <= budget, 1.0, alpha, delta
            )
        else:
            size = self._largest(
                lambda size: self._keeps(alpha, delta, noise(1.0 / size)), 1.0, alpha, delta
            )
        return 1.0 / size if size else inf

    def _keeps(self, alpha: float, delta: float, release: float | DpEvent) -> bool:
        return bool(copy(self).compose(release).epsilon(delta).max() <= alpha)

    def _largest(
        self, within: Callable[[float], bool], unit: float, alpha: float, delta: float
    ) -> float:
        """The largest size between unit / RANGE and unit * RANGE that is within; 0 if none is."""
        size = unit if not delta or (self.epsilon(delta) <= alpha).all() else 0.0
        with Bar(None, "search", "step") as bar:

            def tried(size: float) -> bool:
                bar.update()
                return within(size)

            # from sizes like those so far, on the same grid
            while size >= unit / RANGE and not tried(size):
                size /= 2.0
            while unit <= size < unit * RANGE and tried(2.0 * size):
                size *= 2.0
            if size < unit / RANGE:
                return 0.0
            return largest_within(tried, size, 2.0 * size, tolerance=TOLERANCE, logarithmic=True)


def _share(delta: float, plans: SupportsIndex) -> float:
    """The delta of each of so many plans."""
    delta = float(delta) / check_horizon(plans, "plans")
    return as_scalar(check_delta(delta), "delta") if delta else 0.0
