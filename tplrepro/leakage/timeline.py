"""Leakage at every time point when only some have a release: without a release at s, epsilon_s = 0.

Between two releases that are g time points apart the adversary's knowledge passes through the
product of the g matrices, with whose loss function Eqs. (13) and (15) of [1] hold for the chain of
every g-th time point. This is tighter than g evaluations of the one-step L. The TPL of a time point
without a release can exceed that of both neighbouring releases. Rounding of the product may take
more from L than one evaluation does (`loss_over_steps` bounds it), above all where it has almost no
correlation left, so that all leakages next to pauses are rounded up.
"""

from __future__ import annotations
from bisect import bisect
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.loss_function import UP, PrivacyLossFunction
from tplrepro.leakage.loss_over_steps import (
    Interval,
    LossOfIntervals,
    Products,
    keep_leading_digits,
)
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    LossCycle,
    LossMaker,
    TemporalLeakage,
    accumulate_both_sides,
    is_cycle,
    steps_of_both_sides,
)
from tplrepro.validation import check_budgets, check_horizon

# Of 1,024 steps of a cycle and more, fewer with these leading binary digits bound L: few are kept.
DIGITS = 10


def leakage_at_all_times(
    epsilons: ArrayLike,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    times: ArrayLike,
    horizon: int,
) -> TemporalLeakage:
    """BPL, FPL and TPL at T time points, only some of which have a release.

    Parameters
    ----------
    epsilons : array-like (R,), the budget of each release in nats, or one number for all
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None, Cycle, or a list
        Pr(l^{t-1} | l^t). None: the adversary does not know that side. A list of T - 1 holds the
        matrix of each step between two time points, for correlations that change over time; a
        `Cycle` that of each phase.
    forward : the same for Pr(l^t | l^{t-1})
    times : array-like (R,), the increasing time points of the releases in 0..T-1, or bool (T,)
    horizon : int >= 1, the number of time points T

    Returns
    -------
    TemporalLeakage of all T time points, nats
        Its `epsilons` are 0 at time points without a release. If there are any, all leakages are
        rounded up.

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For time points that are not increasing or out of range, budgets that are not positive and
        finite, or not R of them, matrices that are not row-stochastic or have different states, a
        list of another length, or loss functions that no matrix determines next to a pause.

    Examples
    --------
    >>> from tplrepro.markov.transition import TransitionMatrix
    >>> neighbours = (np.eye(5, k=1) + np.eye(5, k=-1)) / 4
    >>> walk = TransitionMatrix(np.eye(5) + neighbours, normalize=True)
    >>> r = leakage_at_all_times([0.5, 0.5], walk, walk, times=[0, 4], horizon=5)
    >>> r.tpl.round(4).tolist()  # highest between the two releases
    [0.9407, 0.9658, 0.9736, 0.9658, 0.9407]
    >>> r.epsilons.tolist()
    [0.5, 0.0, 0.0, 0.0, 0.5]
    """
    timeline = Timeline.of(backward, forward, horizon, times)
    return timeline.leakage(check_budgets(epsilons, horizon=timeline.times.size))


class Pause(NamedTuple):
    """A time point without a release, and L of the steps from the releases next to it.

    `release_before` is the number of a release, -1 if there is none before; `release_after` is R if
    there is none after. A loss function is None where there is none, or the side is not known.
    """

    time: int
    release_before: int
    loss_before: PrivacyLossFunction | None
    release_after: int
    loss_after: PrivacyLossFunction | None


@dataclass(frozen=True)
class Timeline:
    """The releases among T time points, and the loss functions between them and to the other time
    points.

    `times` (R,) are the time points with a release; `backward` and `forward` hold R - 1 loss
    functions, one for each two successive releases (None: not known); `pauses` are the other time
    points.
    """

    horizon: int
    times: np.ndarray
    backward: list
    forward: list
    pauses: list[Pause]

    @classmethod
    def of(
        cls,
        backward: Correlation,
        forward: Correlation,
        horizon: int,
        times: ArrayLike | None = None,
    ) -> Self:
        """The timeline of an adversary; arguments and errors as in `leakage_at_all_times`.

        By default there is a release at each time point.
        """
        horizon = check_horizon(horizon)
        released = np.arange(horizon) if times is None else _check_times(times, horizon)
        before, after, _ = steps_of_both_sides(LossMaker(), backward, forward, horizon)
        if released.size == horizon:
            return cls(horizon, released, before, after, [])
        between_b = LossBetween(_repeating(before, backward), "backward")
        between_f = LossBetween(_repeating(after, forward), "forward")
        return cls.from_losses(between_b, between_f, horizon, released)

    @classmethod
    def from_losses(
        cls, before: LossBetween, after: LossBetween, horizon: int, times: np.ndarray
    ) -> Self:
        """The timeline of releases at `times` (R,) among `horizon` time points.

        Parameters
        ----------
        before, after : LossBetween of the backward and of the forward side
        horizon : int >= 1
        times : array (R,) of increasing time points
        """
        released = times.tolist()
        pauses = []
        for time in np.delete(np.arange(horizon), times).tolist():
            k = bisect(released, time)
            loss_before = None
            if k > 0:
                loss_before = before(released[k - 1], time)
            loss_after = None
            if k < len(released):
                loss_after = after(time, released[k])
            pauses.append(Pause(time, k - 1, loss_before, k, loss_after))
        backward = [before(start, end) for start, end in pairwise(released)]
        forward = [after(start, end) for start, end in pairwise(released)]
        return cls(horizon, times, backward, forward, pauses)

    def leakage(self, budgets: np.ndarray) -> TemporalLeakage:
        """The leakages at all T time points of budgets (R,), rounded up if any has no release."""
        if not self.pauses:
            return accumulate_both_sides(budgets, self.backward, self.forward)
        bpl_of_releases = accumulate_leakages(self.backward, budgets, leakage_rounded_up)
        fpl_of_releases = accumulate_leakages(
            self.forward[::-1], budgets[::-1], leakage_rounded_up
        )[::-1]
        epsilons, bpl, fpl = np.zeros((3, self.horizon))
        epsilons[self.times] = budgets
        bpl[self.times] = bpl_of_releases
        fpl[self.times] = fpl_of_releases
        for pause in self.pauses:
            if pause.loss_before is not None:
                leakage = float(bpl_of_releases[pause.release_before])
                bpl[pause.time] = leakage_rounded_up(pause.loss_before, leakage, 0.0)
            if pause.loss_after is not None:
                leakage = float(fpl_of_releases[pause.release_after])
                fpl[pause.time] = leakage_rounded_up(pause.loss_after, leakage, 0.0)
        return TemporalLeakage(epsilons, bpl, fpl)


def leakage_rounded_up(
    loss: PrivacyLossFunction | None, leakage: float | None, epsilon: float
) -> float:
    """L(leakage) + epsilon, nats, as `leakage_after`, rounded up; epsilon alone for a loss function
    or a leakage that is None."""
    if loss is None or leakage is None:
        return epsilon
    leaked = loss.at_most(leakage)
    if leaked == 0.0:
        return epsilon
    return (leaked + epsilon) * UP


class HalvedProducts(Products):
    """Products over intervals, of those of their halves."""

    def over(self, start: int, length: int) -> Any:
        key = Interval(self.losses.place_of(start), length)
        if key not in self._kept:
            self._kept[key] = self._make_product(*key)
        return self._kept[key]

    def _make_product(self, start: int, length: int) -> Any:
        if length == 1:
            return self.factor_of(self.losses.at(start))
        half = length // 2
        return self.in_order(self.over(start, half), self.over(start + half, length - half))


class LossBetween(LossOfIntervals):
    """The loss function between any two time points of one side, each made once.

    Parameters
    ----------
    losses : LossCycle
    side : "backward" or "forward"
    """

    def __init__(self, losses: LossCycle, side: str):
        super().__init__(losses, side, HalvedProducts)
        self._losses: dict[Interval, PrivacyLossFunction | None] = {}

    def __call__(self, start: int, end: int) -> PrivacyLossFunction | None:
        """L from one time point to a later one, None if a step between them is not known."""
        length = end - start
        if length > len(self.losses):  # these repeat themselves
            length = keep_leading_digits(length, DIGITS)
        if self.side == "forward":
            start = end - length
        if length == 1:
            return self.losses.at(start)
        interval = Interval(self.losses.place_of(start), length)
        if interval not in self._losses:
            self._losses[interval] = self.make_loss(*interval)
        return self._losses[interval]


def _repeating(steps: list, given: Any) -> LossCycle:
    """The steps of a side, from what was given: of one matrix or of a cycle, those that are
    repeated."""
    if all(step is steps[0] for step in steps):
        return LossCycle(steps[:1], [])
    if not is_cycle(given):
        return LossCycle(steps, [])
    n_first = len(given.first)
    p = len(given)
    if len(steps) < n_first + p:
        return LossCycle(steps, [])
    phases = [steps[n_first + (phase - n_first) % p] for phase in range(p)]
    return LossCycle(phases, steps[:n_first])


def _check_times(times: ArrayLike, horizon: int) -> np.ndarray:
    """The time points of releases (R,), from their numbers or from one bool for each time."""
    times = np.asanyarray(times)
    if times.dtype == bool and times.shape == (horizon,):
        times = np.flatnonzero(times)
    is_list_of_integers = (
        times.ndim == 1
        and times.size > 0
        and times.dtype.kind in "iu"
        and not np.ma.is_masked(times)
    )
    # differences of unsigned numbers would wrap
    points = times.astype(int) if is_list_of_integers else times
    if not is_list_of_integers or not _are_increasing(points, horizon):
        raise ValueError(
            f"times must be one or more increasing time points in 0..{horizon - 1}, "
            f"or one bool for each of them, found {times}; sort them, and count from 0"
        )
    return points


def _are_increasing(points: np.ndarray, horizon: int) -> bool:
    is_in_range = points[0] >= 0 and points[-1] < horizon
    return bool(is_in_range and (np.diff(points) > 0).all())
