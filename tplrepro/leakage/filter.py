"""A privacy filter for temporal leakage: how much the next release may spend if budgets depend on
past outputs.

For pure budgets the recursions of Eqs. (13) and (15) of [1] hold on every path with the budgets
that were spent, so a filter costs nothing. The constraint TPL_s <= alpha of every past time s is
one number: the largest FPL_{t+1} that all of them tolerate. If L_B and L_F are the loss functions
of the two sides,

    c_t = L_F^-1(min(alpha - BPL_t, c_{t-1} - epsilon_t)),
    epsilon_t <= min(c_{t-1}, alpha - L_B(BPL_{t-1})).

After a pause of k time points, with m = k + 1 and L_B^(j) the loss function over j steps, no TPL
from the last release to the next one exceeds alpha if its FPL c and its budget satisfy

    c <= L_F^(m)^-1(min(alpha - BPL_t, c_t - epsilon_t)),    c <= L_F^(m-j)^-1(alpha - L_B^(j)(BPL_t)), 0 < j < m,
    epsilon <= min(c, alpha - L_B^(m)(BPL_t)).

L^(j) falls in j (`pauses`), so that one pair of whole numbers of steps, rounded down to eight an
octave, bounds all j in a block: O(log k) conditions, exact for k < 16. A smaller c only makes later
budgets smaller.

A floor e keeps a budget of e available at every later time, for ever, if the suprema S of Theorem
11 of [1] satisfy S_B(e) + S_F(e) - e <= alpha; epsilon_t is then smaller by S_F(e) - e.
docs/theory/promises.md proves this, and names earlier filters. There is none here for delta > 0:
see `EventAccountant.budget_within`.
"""

from __future__ import annotations
from math import inf
from typing import Self, SupportsIndex

from tplrepro.leakage.loss_function import ROUNDING
from tplrepro.leakage.pauses import Pauses, whole
from tplrepro.leakage.temporal import REQUIRED, LossLike, loss_functions
from tplrepro.validation import (
    as_scalar,
    check_epsilon,
    check_horizon,
    check_level,
    check_smoothing,
)

# They exceed the rounding of the few operations between two bounds.
UP, DOWN = 1.0 + 2.0**-50, 1.0 - 2.0**-50


class LeakageExceededError(ValueError):
    """A release would raise a temporal privacy leakage above the level of a filter; nothing was
    spent."""


class TemporalFilter:
    """What may still be spent so that no TPL, of a past or a future time, exceeds `alpha`.

    All numbers are rounded to the safe side, after pauses and next to nearly equal rows, too. Time
    and memory grow with the logarithm of the longest pause only. Budgets may depend on everything
    that was released before; each must be the event-level budget of its time point, by which the
    probability of any output changes if the data of that time alone change.

    Parameters
    ----------
    alpha : float > 0, the level of alpha-DP_T, nats
    backward, forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None (not known)
    floor : float >= 0, a budget that stays available at every later time; nats
        At most `allocate_by_upper_bound(alpha, backward, forward)`, else ValueError. Without a floor one
        release can use up all that there will ever be.

    Examples
    --------
    >>> account = TemporalFilter(1.0, [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]], floor=0.1)  # Fig. 8 of [1]
    >>> round(account.remaining, 4), round(account.spend(0.5).remaining, 4)
    (0.7568, 0.4605)
    >>> round(account.tolerated, 4), round(account.bpl, 4)
    (0.7038, 0.5)
    """

    def __init__(
        self,
        alpha: float,
        backward: LossLike = REQUIRED,
        forward: LossLike = REQUIRED,
        *,
        floor: float = 0.0,
    ):
        self.alpha, self.floor = check_level(alpha), check_smoothing(floor, "floor")
        self._backward, self._forward = loss_functions(backward, forward)
        self._pauses = [
            None if loss is None else Pauses(loss) for loss in (self._backward, self._forward)
        ]
        #: Time points skipped since the last release, its BPL, rounded up (None before the first), and the largest
        #: L_F(FPL of the next time) that it and all before tolerate, rounded down. Replaced as one, for threads.
        self.state: tuple[int, float | None, float] = 0, None, inf
        self._kept: tuple = None, None  # a state and its `_limits`
        # S_F(e), rounded down, and S_F(e) - e, rounded up.
        self._least = self._reserve = 0.0
        if self.floor > 0.0:
            before, after = (
                self.floor if loss is None else float(loss.supremum(self.floor)) * (1.0 + ROUNDING)
                for loss in (self._backward, self._forward)
            )
            if before + after - self.floor > self.alpha:
                raise ValueError(
                    f"floor must keep the TPL within alpha = {self.alpha:g} for ever, found {self.floor:g}, for which "
                    f"it reaches {before + after - self.floor:g}; give at most allocate_by_upper_bound(alpha, ...)"
                )
            self._least, self._reserve = after * (1.0 - 4.0 * ROUNDING), after - self.floor

    def __repr__(self) -> str:
        return f"TemporalFilter(alpha={self.alpha:g}, floor={self.floor:g}, {self.remaining:.6g} nats remain)"

    @property
    def bpl(self) -> float:
        """Backward privacy leakage of the last release, rounded up, nats; 0 before the first."""
        return self.state[1] or 0.0

    @property
    def tolerated(self) -> float:
        """The largest FPL of the next time point that all earlier ones tolerate, nats; inf if
        any."""
        return self._limits(self.state)[0]

    @property
    def remaining(self) -> float:
        """The largest budget of the next release, nats."""
        return self._limits(self.state)[2]

    def spend(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Account for `count` releases of one budget, one per time point.

        LeakageExceededError, with nothing spent, if one of them exceeds what remains; ValueError
        for a budget that is not positive and finite.
        """
        # the full check costs more than everything else
        if not (type(epsilon) is float and 0.0 < epsilon < inf):
            epsilon = as_scalar(check_epsilon(epsilon), "epsilon")
        state = self.state
        for done in range(check_horizon(count, "count")):
            tolerated, base, largest = self._limits(state)
            if epsilon > largest:
                digits = next(n for n in range(6, 18) if f"{largest:.{n}g}" != f"{epsilon:.{n}g}")
                raise LeakageExceededError(
                    f"epsilon must be at most {largest:.{digits}g}, the most that keeps every TPL within alpha = "
                    f"{self.alpha:g} with a floor of {self.floor:g}, found {epsilon:.{digits}g} for release "
                    f"{done + 1} of {count}; spend less, or skip"
                )
            bpl = (base + epsilon) * UP
            following = 0, bpl, max(min(self.alpha - bpl, tolerated - epsilon) * DOWN, 0.0)
            if following == state:
                break
            state = following
        self.state = state
        return self

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; ValueError if the loss functions are not
        of matrices."""
        count = check_horizon(count, "count")
        for pauses in self._pauses:
            if pauses:
                pauses.check()
        self.state = self.state[0] + count, *self.state[1:]
        return self

    def exhausted(self) -> tuple[int, float, float]:
        """The tightest `state` to which releases can lead, for some that are not known: BPL and FPL
        at the level."""
        return 0, (self.alpha - self._reserve) * UP, self._reserve * DOWN

    def _limits(self, state: tuple[int, float | None, float]) -> tuple[float, float, float]:
        """What is tolerated of the next FPL, rounded down, L(BPL) without the next budget, rounded
        up, and that budget.

        The floor is always within it, by induction in exact arithmetic.
        """
        kept, limits = self._kept
        if kept is state:
            return limits
        skipped, bpl, bound = state
        if bpl is None:  # the TPL of the next release bounds those of the time points before it
            tolerated, base = inf, 0.0
        elif skipped:
            tolerated, base = self._across(skipped + 1, bpl, bound)
        else:
            tolerated = (
                inf if self._forward is None else self._forward.inverse_within(bound, self.alpha)
            )
            tolerated = max(tolerated, self._least)
            base = 0.0 if self._backward is None else self._backward.at_most(bpl)
        limits = (
            tolerated,
            base,
            max(min(tolerated, self.alpha - base) * DOWN - self._reserve, self.floor),
        )
        self._kept = state, limits
        return limits

    def _across(self, steps: int, bpl: float, bound: float) -> tuple[float, float]:
        """The limits so many steps after the last release."""
        before, after = self._pauses
        base = before.over(steps).at_most(bpl) if before else 0.0
        if not after:
            return inf, base
        tolerated = after.over(steps).inverse_within(bound, self.alpha)
        time = 1
        while time < steps:
            since, until = whole(time), whole(steps - time)
            leaked = before.over(since).at_most(bpl) if before else 0.0
            left = max((self.alpha - leaked) * DOWN, 0.0)
            tolerated = min(tolerated, after.over(until).inverse_within(left, self.alpha))
            # Up to the first time at which one of them is another.
            time = min(since + (1 << max(since.bit_length() - 4, 0)), steps - until + 1)
        return max(tolerated, self._least), base
