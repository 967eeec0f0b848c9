"""Leakage at every time point when only some have a release: without a release at s, epsilon_s = 0.

Between two releases that are g time points apart the adversary's knowledge passes through the
product of the g matrices, with whose loss function Eqs. (13) and (15) of [1] hold for the chain of
every g-th time point. This is tighter than g evaluations of the one-step L. The TPL of a time point
without a release can exceed that of both neighbouring releases. Rounding of the product may take
more from L than one evaluation does (`pauses` bounds it), above all where it has almost no
correlation left, so that all leakages next to pauses are rounded up.
"""

from __future__ import annotations
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.pauses import MAX_STATES, product_ties, whole
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    TemporalLeakage,
    accumulate_steps,
    as_loss_function,
    dense,
    leakage_along,
    steps_of_both_sides,
)
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_budgets, check_horizon

# of 1,024 steps of one chain and more, fewer with these leading binary digits bound L: few are kept
DIGITS = 10
# exceeds the rounding of the few operations between two leakages, and of their sum
UP = 1.0 + 2.0**-50


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
    epsilons : array-like (R,), the budget of each release, or one for all
    backward, forward : as in `temporal_privacy_leakage`; a list holds T - 1 matrices
    times : array-like (R,), the increasing time points of the releases in 0..T-1, or bool (T,)
    horizon : int >= 1, the number of time points T

    The `epsilons` of the result (T,) is 0 at time points without a release; where there are any,
    all leakages are rounded up. ValueError for time points that are not increasing or out of range,
    and as in `temporal_privacy_leakage`.

    Examples
    --------
    >>> walk = TransitionMatrix(np.eye(5) + (np.eye(5, k=1) + np.eye(5, k=-1)) / 4, normalize=True)
    >>> r = leakage_at_all_times([0.5, 0.5], walk, walk, times=[0, 4], horizon=5)
    >>> r.tpl.round(4).tolist()  # highest between the two releases
    [0.9407, 0.9658, 0.9736, 0.9658, 0.9407]
    >>> r.epsilons.tolist()
    [0.5, 0.0, 0.0, 0.0, 0.5]
    """
    timeline = Timeline.of(backward, forward, horizon, times)
    return timeline.leakage(check_budgets(epsilons, horizon=timeline.times.size))


@dataclass(frozen=True)
class Timeline:
    """The releases among T time points, and the loss functions between them and to the other time
    points.

    `times` (R,) are the time points with a release; `backward` and `forward` hold R - 1 loss
    functions, one for each two successive releases (None: not known); `pauses` has (time, release
    before or -1, its L, release after or R, its L) for each other time point.
    """

    horizon: int
    times: np.ndarray
    backward: list
    forward: list
    pauses: list

    @classmethod
    def of(
        cls,
        backward: Correlation,
        forward: Correlation,
        horizon: int,
        times: ArrayLike | None = None,
    ) -> Self:
        """The timeline of an adversary; by default with a release at each time point."""
        horizon = check_horizon(horizon)
        points = np.arange(horizon) if times is None else _checked_times(times, horizon)
        steps_b, steps_f, _ = steps_of_both_sides(as_loss_function, backward, forward, horizon)
        if points.size == horizon:
            return cls(horizon, points, steps_b, steps_f, [])
        return cls.along(gaps(steps_b, "backward"), gaps(steps_f, "forward"), horizon, points)

    @classmethod
    def along(cls, before: Callable, after: Callable, horizon: int, points: np.ndarray) -> Self:
        """The timeline of releases at `points`, with loss functions before(first, last),
        after(first, last)."""
        released = points.tolist()
        pauses = []
        for time in np.delete(np.arange(horizon), points).tolist():
            k = bisect(released, time)
            loss_b = before(released[k - 1], time) if k > 0 else None
            loss_f = after(time, released[k]) if k < len(released) else None
            pauses.append((time, k - 1, loss_b, k, loss_f))
        pairs = list(pairwise(released))
        return cls(
            horizon,
            points,
            [before(*pair) for pair in pairs],
            [after(*pair) for pair in pairs],
            pauses,
        )

    def leakage(self, budgets: np.ndarray) -> TemporalLeakage:
        """The leakages at all T time points of budgets (R,), rounded up if any has no release."""
        if not self.pauses:
            return leakage_along(budgets, self.backward, self.forward)
        of_releases = (
            accumulate_steps(self.backward, budgets, _rounded_up),
            accumulate_steps(self.forward[::-1], budgets[::-1], _rounded_up)[::-1],
        )
        leakages = np.zeros((3, self.horizon))
        leakages[:, self.times] = budgets, *of_releases
        for time, *neighbours in self.pauses:
            for side, release, loss in ((0, *neighbours[:2]), (1, *neighbours[2:])):
                if loss is not None:
                    leakages[1 + side, time] = _rounded_up(
                        loss, float(of_releases[side][release]), 0.0
                    )
        return TemporalLeakage(*leakages)


def _rounded_up(loss: PrivacyLossFunction | None, last: float | None, epsilon: float) -> float:
    """As `leakage_after`."""
    leaked = 0.0 if loss is None or last is None else loss.at_most(last)
    return (leaked + epsilon) * UP if leaked else epsilon


def gaps(steps: list, name: str) -> Callable[[int, int], PrivacyLossFunction | None]:
    """The loss function between any two time points on one side, each made once.

    If all steps are the same, they may be fewer than the time points.
    """
    uniform = all(function is steps[0] for function in steps)

    @cache
    def product(start: int, length: int) -> np.ndarray:
        """Rows are the later states backward, the earlier states forward."""
        if length == 1:
            return dense(steps[start].matrix, MAX_STATES, "release every time point")
        half = length // 2
        earlier, later = (
            product(start, half),
            product(0 if uniform else start + half, length - half),
        )
        return later @ earlier if name == "backward" else earlier @ later

    @cache
    def loss_over(start: int, length: int) -> PrivacyLossFunction:
        along = steps[:1] if uniform else steps[start : start + length]
        if uniform and length > 1 and isinstance(steps[0], PriorFreeLoss):
            along = [loss_over(0, length // 2), loss_over(0, length - length // 2)]
        # evidence may be about the times between, too
        if any(isinstance(step, PriorFreeLoss) for step in along):
            first, *later = (
                step if isinstance(step, PriorFreeLoss) else PriorFreeLoss(step.matrix)
                for step in along
            )
            return first.after(later)
        if not all(step.of_matrix for step in along):
            raise ValueError(
                f"steps over a time without a release need matrices, found {along[0]!r} from counts; "
                "release every time point, or take PriorFreeLoss"
            )
        independent = next((step for step in along if step.is_zero and not step.ties), None)
        if independent:
            return independent
        matrix = TransitionMatrix(
            product(start, length), steps[start].matrix.states, normalize=True
        )
        loss = PrivacyLossFunction(matrix)
        loss.ties = product_ties(matrix.n_states, length)
        return loss

    def between(start: int, end: int) -> PrivacyLossFunction | None:
        first, length = (0, whole(end - start, DIGITS)) if uniform else (start, end - start)
        if None in steps[first : first + length]:
            return None
        return steps[first] if length == 1 else loss_over(first, length)

    return between


def _checked_times(times: ArrayLike, horizon: int) -> np.ndarray:
    times = np.asanyarray(times)
    if times.dtype == bool and times.shape == (horizon,):
        times = np.flatnonzero(times)
    numbers = (
        times.ndim == 1
        and times.size > 0
        and times.dtype.kind in "iu"
        and not np.ma.is_masked(times)
    )
    points = times.astype(int) if numbers else times  # differences of unsigned numbers would wrap
    if not numbers or points[0] < 0 or points[-1] >= horizon or (np.diff(points) <= 0).any():
        raise ValueError(
            f"times must be one or more increasing time points in 0..{horizon - 1}, or one bool for each of them, "
            f"found {times}; sort them, and count from 0"
        )
    return points
