"""A privacy filter at a delta: how much the next release with Gaussian noise may tell if budgets
depend on past outputs.

A release with noise multiplier m has the budget 1 / m^2. The budgets of every interval of l time
points are kept within the cap

    K(l) = rate (l + burst),

whatever the outputs are. Then data that differ in an interval only change the output by no more
than one normal law that is shifted by sqrt(K), and theorem C of docs/theory/intervals.md bounds
what is told about each time, for ever. The caps of all intervals are one number, the level of a
token bucket: with x_0 = 0,

    x_t = max(x_{t-1} + 1 / m_t^2 - rate, 0) <= rate burst.

Filters for mu^2 without correlation are due to Smith and Thakurta (2022) and to Koskela et al.
(2022).
"""

from __future__ import annotations
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import NamedTuple, Self, SupportsIndex

import numpy as np

from tplfrontier.profiles.gaussian import check_noise_multipliers, gaussian_mu
from tplfrontier.profiles.intervals import (
    NEGLIGIBLE,
    GaussianRows,
    Intervals,
    LossGrid,
    SideOfIntervals,
    distances,
)
from tplrepro.allocation.published import NoFiniteSupremumError
from tplrepro.leakage.filter import LeakageExceededError
from tplrepro.leakage.temporal import REQUIRED, Correlation, LossCycle, LossCycles, loss_cycles
from tplrepro.progress import Bar
from tplrepro.search import largest_within
from tplrepro.validation import as_scalar, check_delta, check_horizon, check_level, check_range

EPS = float(np.finfo(float).eps)
#: Exceeds the rounding of the few operations between two bounds.
UP = 1.0 + 8.0 * EPS
#: Points of the grid in alpha, and the grid in alphas.
FINE = 64
REACH = 4
#: The relative tolerance of the rate.
TOLERANCE = 1e-3
#: No chain is followed for longer.
MOST_STEPS = 2**22
#: Chains that still differ with a higher probability then never agree.
MOST_VARIATION = 0.5
#: Of larger ones the rounding would show.
MOST_BURST = 1e9
#: Rates below this share of the largest one count as none.
LEAST_SHARE = 2.0**-40


class BucketState(NamedTuple):
    """The level of a token bucket: the most that an interval which ends now has above the rate."""

    level: float


class GaussianFilter:
    """What Gaussian noise may still tell so that every time stays within (alpha, delta).

    Budgets may depend on everything that was released before. The output of a time must depend on
    the data of that time alone, given the earlier outputs: no totals or windows, for which see
    `allocate_linear_noise`. A step takes constant time and memory. All numbers are rounded to the
    safe side.

    Parameters
    ----------
    alpha : float > 0
        The level that every time keeps at `delta`, nats.
    delta : float
        Above 0 and below 1.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, Cycle or None (not known)
        Pr(l^{t-1} | l^t), what the adversary knows of the time before: `forward.reverse()`, seldom
        the forward matrix itself. The first time point is at phase 0 of a cycle. The promise is to
        users whose first state has the law that this side assumes: for a `reverse()` without a
        start, those who start in the habit.
    forward : the same for Pr(l^t | l^{t-1})
    burst : float >= 0
        A release with noise multiplier m spends 1 / m^2, and the rate is what each time may spend
        for ever. What is not spent may be saved up, but not more than `burst` times the rate: with
        0 nothing is saved, and the larger `burst`, the smaller is the rate.

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For numbers out of range, or matrices that are not row-stochastic or have different states.
    NoFiniteSupremumError
        If no rate keeps alpha for ever, as where nobody ever moves.

    Examples
    --------
    >>> P_b, P_f = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> account = GaussianFilter(1.0, 1e-6, P_b, P_f, burst=4.0)
    >>> round(account.floor, 2), round(account.remaining, 2)
    (12.46, 5.57)
    >>> round(account.spend(6.0).remaining, 2), round(account.skip(3).remaining, 2)
    (9.6, 5.76)
    """

    def __init__(
        self,
        alpha: float,
        delta: float,
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        *,
        burst: float = 0.0,
    ):
        self.alpha = check_level(alpha)
        self.delta = as_scalar(check_delta(delta), "delta")
        must = f"burst must be at least 0, at most {MOST_BURST:g}"
        remedy = "give for how many times the rate may be saved up"
        self.burst = as_scalar(check_range(burst, 0.0, MOST_BURST, must, remedy), "burst")
        caps = _EndlessCaps(loss_cycles(backward, forward), self.alpha, self.delta, self.burst)
        #: What each time may spend for ever, 1 / m^2 of a noise multiplier m.
        self.rate = caps.largest_rate()
        #: Replaced as one, for threads.
        self.state = BucketState(0.0)

    def __repr__(self) -> str:
        return (
            f"GaussianFilter(alpha={self.alpha:g}, delta={self.delta:g}, burst={self.burst:g}, "
            f"noise multipliers from {self.remaining:.6g} on)"
        )

    @property
    def _slack(self) -> float:
        """Exceeds the rounding of one step of the level."""
        return 16.0 * EPS * self.rate * (1.0 + self.burst)

    @property
    def _full(self) -> float:
        """The highest level."""
        return self.rate * self.burst

    @property
    def floor(self) -> float:
        """The noise multiplier that each time may have for ever."""
        return self._least_multiplier(self._full)

    @property
    def remaining(self) -> float:
        """The least noise multiplier of the next release."""
        return self._least_multiplier(self.state.level)

    def _least_multiplier(self, level: float) -> float:
        left = self._full - level + self.rate - 2.0 * self._slack
        return 1.0 / sqrt(left) * UP

    def spend(self, noise_multiplier: float, count: SupportsIndex = 1) -> Self:
        """Account for `count` releases of one noise multiplier, one per time point.

        Parameters
        ----------
        noise_multiplier : float > 0
            The standard deviation of the noise over the L2 sensitivity.
        count : int >= 1

        Returns
        -------
        The filter itself

        Raises
        ------
        LeakageExceededError
            If one of the releases exceeds what remains; nothing is then spent.
        ValueError
            For a multiplier that is not positive and finite, or a count that is no whole number >=
            1.

        Examples
        --------
        >>> account = GaussianFilter(1.0, 1e-6, None, None, burst=3.0)
        >>> round(account.remaining, 3), round(account.spend(6.0).remaining, 3)
        (4.226, 4.867)
        """
        remedy = "spend one at a time"
        values = check_noise_multipliers(np.atleast_1d(noise_multiplier))
        multiplier = as_scalar(values.reshape(np.shape(noise_multiplier)), "multiplier", remedy)
        count = check_horizon(count, "count")
        gain = _squared_inverse(multiplier) - self.rate + self._slack
        level = self.state.level + count * gain
        if level > self._full:
            fitting = int((self._full - self.state.level) / gain)
            release = f"release {min(fitting + 1, count)} of {count}"
            raise LeakageExceededError(self._excess_message(multiplier, release))
        self.state = BucketState(max(level, 0.0))
        return self

    def _excess_message(self, multiplier: float, release: str) -> str:
        return (
            f"noise multipliers must be at least {self.remaining:.6g} now, and {self.floor:.6g} "
            f"for ever, to keep every time within alpha = {self.alpha:g} at delta = "
            f"{self.delta:g}, found {multiplier:.6g} for {release}; add noise, or skip"
        )

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release."""
        saved = check_horizon(count, "count") * (self.rate - self._slack)
        self.state = BucketState(max(self.state.level - saved, 0.0))
        return self

    def exhausted(self, count: SupportsIndex = 1) -> BucketState:
        """The tightest `state` to which releases can lead, for `count` further time points of which
        nothing is known: the bucket is full."""
        check_horizon(count, "count")
        return BucketState(self._full)


def _squared_inverse(multiplier: float) -> float:
    """1 / m^2, rounded up, inf if it is no float."""
    inverse = 1.0 / multiplier
    return inverse * inverse * UP


class _EndlessCaps:
    """Which caps on intervals keep (alpha, delta) about each time, for ever."""

    def __init__(self, losses: LossCycles, alpha: float, delta: float, burst: float):
        self.losses = losses
        self.alpha = alpha
        self.delta = delta
        self.burst = burst
        self.grid = LossGrid(alpha / FINE, REACH * FINE)
        self.gaussian = GaussianRows(self.grid)
        sides = {"backward": losses.backward, "forward": losses.forward}
        #: After how many steps chains agree almost certainly.
        self.memory = max(self._memory(name, side) for name, side in sides.items())

    def _memory(self, name: str, side: LossCycle) -> int:
        """After how many steps of the cycle two chains agree almost certainly, on one side."""
        intervals = SideOfIntervals(side, name, self.grid)
        for distance in distances(MOST_STEPS, is_exact=False):
            variation = intervals.variation(self.losses.n_first, distance)
            if variation < NEGLIGIBLE:
                return distance + len(self.losses)
        if variation > MOST_VARIATION:
            raise NoFiniteSupremumError(self._no_rate_message())
        return MOST_STEPS

    def _no_rate_message(self) -> str:
        return (
            f"a filter needs chains that forget, found no rate that keeps alpha = {self.alpha:g} "
            "for ever; smooth the matrices, or plan for a horizon with allocate_noise"
        )

    def largest_rate(self) -> float:
        """The largest rate, to 0.1 %."""
        mu = float(gaussian_mu(self.alpha, self.delta))
        most = mu * mu / (1.0 + self.burst)
        rate = most
        with Bar(None, "rate", "step") as bar:

            def is_within(rate: float) -> bool:
                bar.update()
                return self.keeps(rate)

            while not is_within(rate):
                rate /= 2.0
                if rate < LEAST_SHARE * most:
                    raise NoFiniteSupremumError(self._no_rate_message())
            high = min(2.0 * rate, most)
            return largest_within(is_within, rate, high, tolerance=TOLERANCE, logarithmic=True)

    def keeps(self, rate: float) -> bool:
        """Whether the caps of a rate keep (alpha, delta) about each time."""
        return all(span.largest_delta(rate, self.burst) <= self.delta for span in self._spans)

    @cached_property
    def _spans(self) -> list[_Span]:
        """The times of each phase, long after the first steps and long before any end; and those
        whose past reaches the first steps, if these differ."""
        period = len(self.losses)
        past = self.losses.n_first + self.memory
        start = -(-past // period) * period
        spans = [self._span(range(start, start + period), has_start=False)]
        if self.losses.n_first:
            spans.append(self._span(range(past + period), has_start=True))
        return spans

    def _span(self, times: range, *, has_start: bool) -> _Span:
        end = times[-1] + 1 + self.memory
        sides = (self.losses.backward, self.losses.forward)
        return _Span(times, Intervals(*sides, (0, end), self.grid), self.gaussian, has_start)


@dataclass(frozen=True, eq=False)
class _Span:
    """Times of an endless series, of which `intervals` has those near enough to tell something
    about them; `has_start` says whether its first time is that of the series."""

    times: range
    intervals: Intervals
    gaussian: GaussianRows
    has_start: bool

    def largest_delta(self, rate: float, burst: float) -> float:
        """The largest delta at alpha about one of the times, under the caps of a rate."""
        end = self.intervals.last

        def rows(start: int, ends: np.ndarray) -> np.ndarray:
            mus = np.sqrt(rate * (ends - start + 1.0 + burst)) * UP
            mus[ends == end] = inf
            if start == 0 and not self.has_start:
                mus[:] = inf
            return self.gaussian.rows(mus)

        blocks = self.intervals.blocks(self.times)
        return max(float(self.intervals.bounds(block, rows)[:, FINE].max()) for block in blocks)
