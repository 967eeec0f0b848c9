"""An online account of releases with any noise: (epsilon, delta) leakages of dp_accounting's
events.

A release is a budget, for pure epsilon-DP, an event of dp_accounting, such as Gaussian noise, by
the conventions of `tplfrontier.profiles.events`, or a `PrivacyProfile`. `epsilon` and `delta`
account for all of them; without pauses, one more release costs as much as the profiles that it
changes. `bpl`, `fpl` and `tpl` are the pure leakages: exact for budgets and events with a bounded
loss, inf without a pure bound.
"""

from __future__ import annotations
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
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
from tplrepro.leakage.temporal import REQUIRED, Correlation
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


@dataclass(frozen=True)
class _Reading:
    """The profiles of the first `entries` of a ledger."""

    entries: int
    profile: TemporalPrivacyProfile


class EventAccountant(Account):
    """Account of the (epsilon, delta) leakages of releases so far against one adversary.

    Noise must not depend on earlier outputs: (epsilon, delta) does not hold then. Where outputs
    choose, take a `GaussianFilter`, or compose the strongest release that may be chosen at each
    time; or give the number of `plans`, fixed in advance, between which you choose.

    Parameters
    ----------
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, Cycle or None
        Pr(l^{t-1} | l^t). The first time point is at phase 0 of a cycle. None: the adversary does
        not know it. The profiles are those of users whose first state has the law that this side
        assumes: for a `reverse()` without a start, those who start in the habit.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    grid : float, optional
        The distance in nats between the losses at which profiles are stored. None adapts it to the
        weakest release so far.

    Raises
    ------
    ValueError
        For matrices that are not row-stochastic or whose states disagree, a list of matrices, which
        says nothing of later steps, or a grid out of range.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> P = [[0.8, 0.2], [0, 1]]
    >>> account = EventAccountant(backward=P, forward=P).compose(0.1, 3)
    >>> account.compose(GaussianDpEvent(4.0)).epsilon(1e-6).round(3).tolist()
    [0.836, 0.951, 1.058, 1.162]
    >>> round(account.budget_within(2.0, 1e-6), 3)
    0.999
    >>> round(account.least_noise(2.0, 1e-6, GaussianDpEvent), 2)
    2.61
    """

    def __init__(
        self,
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        *,
        grid: float | None = None,
    ):
        super().__init__(backward, forward)
        self._grid = grid
        if grid is not None:
            self._grid = check_grid(grid)
        self._events: dict[Release, Release] = {}
        self._profiled: _Reading | None = None

    def __getstate__(self) -> tuple:
        # In this order: the ledger must not be older than the readings, nor the events than the
        # ledger.
        leakage_reading = self._read
        profile_reading = self._profiled
        ledger = self._ledger[:]
        events = {**self._events}
        sides = (self._backward, self._forward)
        return *sides, self._grid, leakage_reading, profile_reading, ledger, events

    def __setstate__(self, state: tuple) -> None:
        backward, forward, *rest = state
        EventAccountant.__init__(self, backward, forward)
        self._grid, self._read, self._profiled, self._ledger, self._events = rest

    def compose(self, release: float | DpEvent | PrivacyProfile, count: SupportsIndex = 1) -> Self:
        """Add releases, one per time point; this raises the forward leakage of the earlier ones.

        Parameters
        ----------
        release : float, DpEvent or PrivacyProfile
            A budget > 0 in nats, an event of `dp_accounting`, or a profile. A composed event is one
            release; an event that reveals nothing is like `skip`.
        count : int >= 1, optional
            The number of such releases.

        Returns
        -------
        EventAccountant
            This account.

        Raises
        ------
        ValueError
            If a budget is not positive and finite, an event is unsupported or the count is not a
            whole number >= 1; the account then stays as it is.
        """
        if not (hasattr(release, "to_named_tuple") or isinstance(release, PrivacyProfile)):
            remedy = "compose each budget in turn"
            epsilon = as_scalar(check_epsilon(release), "epsilon", remedy)
            return self._add(epsilon, epsilon, check_horizon(count, "count"))
        known = self._known_release(release)
        epsilon = known.epsilon
        if epsilon == 0.0:
            return self.skip(count)
        return self._add(known.event, epsilon, check_horizon(count, "count"))

    def _known_release(self, release: Any) -> Release:
        """The release among those so far, which a caller's changes of an event do not reach."""
        known = Release(release)
        if known not in self._events:
            known = known.copied()
            _ = known.epsilon  # ValueError if it is unsupported
        return self._events.setdefault(known, known)

    @property
    def ledger(self) -> tuple[tuple[float | DpEvent | PrivacyProfile, int], ...]:
        """The releases in order: pairs (release, count), with 0 for time points without a
        release."""
        return tuple((deepcopy(release), count) for release, _, count in self._ledger)

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP_T of each release, (T,); 0 < delta <
        1."""
        delta = as_scalar(check_delta(delta), "delta")
        if not self._has_releases:
            return np.zeros(len(self))
        return self.profile.epsilon(delta)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP_T of each release, (T,); epsilon in
        nats."""
        epsilon = as_scalar(check_alpha(epsilon, "epsilon"), "epsilon")
        if not self._has_releases:
            return np.zeros(len(self))
        return self.profile.delta(epsilon)

    @property
    def _has_releases(self) -> bool:
        return any(bound for _, bound, _ in self._ledger)

    @property
    def profile(self) -> TemporalPrivacyProfile:
        """All privacy profiles as of now, with their compositions; ValueError before the first
        release."""
        reading = self._profiled
        ledger = self._ledger[:]
        if reading is not None and reading.entries >= len(ledger):
            return reading.profile
        profile = self._profile_of(ledger)
        if reading is not None:
            profile = profile.following(reading.profile)
        self._profiled = _Reading(len(ledger), profile)
        return profile

    def _profile_of(self, ledger: list[tuple[Any, float, int]]) -> TemporalPrivacyProfile:
        distinct = {id(release): release for release, epsilon, _ in ledger if epsilon}
        known = {key: self._known_release(release) for key, release in distinct.items()}
        entries: list[tuple[Release | None, int]] = []
        for release, epsilon, count in ledger:
            if epsilon:
                entries.append((known[id(release)], count))
            else:
                entries.append((None, count))
        grid = self._grid
        if grid is None:
            grid = _power_of_two_grid(set(known.values()))
        return temporal_privacy_profile(entries, self._backward, self._forward, grid=grid)

    def budget_within(self, alpha: float, delta: float = 0.0, *, plans: SupportsIndex = 1) -> float:
        """The largest pure budget of the next release that keeps every TPL within (alpha, delta).

        It says nothing about later releases.

        Parameters
        ----------
        alpha : float > 0
            In nats.
        delta : float, optional
            0 <= delta < 1; above 0 the result is exact within 0.1 %.
        plans : int >= 1, optional
            The number of plans, each fixed in advance, between which outputs decide. Each must keep
            (alpha, delta / plans), and this account must hold the releases of one of them.

        Returns
        -------
        float
            In nats; 0 if no budget does (with a delta: none above alpha / 8192).

        Raises
        ------
        ValueError
            If a number is out of range.
        """
        alpha = check_level(alpha)
        delta = _delta_of_each_plan(delta, plans)
        if delta == 0.0:
            return self._largest_budget(alpha)

        def is_within(budget: float) -> bool:
            return self._keeps_level(alpha, delta, budget)

        start = self._first_size(alpha, alpha, delta)
        return _largest_size(is_within, start, unit=alpha)

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

        It says nothing about later releases.

        Parameters
        ----------
        alpha : float > 0
            In nats.
        delta : float
            0 <= delta < 1.
        noise : callable
            Makes an event of a multiplier, such as `GaussianDpEvent`.
        plans : int >= 1, optional
            The number of plans, each fixed in advance, between which outputs decide. Each must keep
            (alpha, delta / plans), and this account must hold the releases of one of them.

        Returns
        -------
        float
            Exact within 0.1 %; inf if 8192 is not enough.

        Raises
        ------
        ValueError
            If a number is out of range.
        """
        alpha = check_level(alpha)
        delta = _delta_of_each_plan(delta, plans)
        budget = 0.0
        if delta == 0.0:
            budget = self._largest_budget(alpha)

        def is_within(size: float) -> bool:
            event = noise(1.0 / size)
            if delta == 0.0:
                return Release(event).epsilon <= budget
            return self._keeps_level(alpha, delta, event)

        start = self._first_size(1.0, alpha, delta)
        size = _largest_size(is_within, start, unit=1.0)
        if size == 0.0:
            return inf
        return 1.0 / size

    def _keeps_level(self, alpha: float, delta: float, release: float | DpEvent) -> bool:
        """Whether one more release keeps every epsilon at delta within alpha, nats."""
        longer = copy(self).compose(release)
        return bool(longer.epsilon(delta).max() <= alpha)

    def _first_size(self, unit: float, alpha: float, delta: float) -> float:
        """Where a search starts: at a unit, or at 0 if the releases so far exceed the level."""
        if not delta or (self.epsilon(delta) <= alpha).all():
            return unit
        return 0.0


def _largest_size(is_within: Callable[[float], bool], size: float, unit: float) -> float:
    """The largest size between unit / RANGE and unit * RANGE that is within; 0 if none is.

    `size` is where the search starts; at 0 it finds none.
    """
    with Bar(None, "search", "step") as bar:

        def is_size_within(size: float) -> bool:
            bar.update()
            return is_within(size)

        # from sizes like those so far, on the same grid
        while size >= unit / RANGE and not is_size_within(size):
            size /= 2.0
        while unit <= size < unit * RANGE and is_size_within(2.0 * size):
            size *= 2.0
        if size < unit / RANGE:
            return 0.0
        return largest_within(
            is_size_within, low=size, high=2.0 * size, tolerance=TOLERANCE, logarithmic=True
        )


def _power_of_two_grid(releases: set[Release]) -> float:
    """The automatic grid, halved until it suits the weakest release, so that it seldom changes."""
    finest = automatic_grid(releases)
    return COARSEST * 2.0 ** -ceil(log2(COARSEST / finest))


def _delta_of_each_plan(delta: float, plans: SupportsIndex) -> float:
    delta = float(delta) / check_horizon(plans, "plans")
    if not delta:
        return 0.0
    return as_scalar(check_delta(delta), "delta")
