"""A privacy filter for temporal leakage: how much the next release may spend if budgets depend on past outputs.

For pure budgets the recursions of Eqs. (13) and (15) of [1] hold on every path with the budgets that were
spent, so a filter costs nothing. The constraint TPL_s <= alpha of every past time s is one number: the
largest FPL_{t+1} that all of them tolerate. If L_B and L_F are the loss functions of the two sides,

    c_t = L_F^-1(min(alpha - BPL_t, c_{t-1} - epsilon_t)),
    epsilon_t <= min(c_{t-1}, alpha - L_B(BPL_{t-1})).

A floor e keeps a budget of e available at every later time, for ever, if the suprema S of Theorem 11 of [1]
satisfy S_B(e) + S_F(e) - e <= alpha; epsilon_t is then smaller by S_F(e) - e. docs/theory/promises.md proves
this, and names earlier filters. There is none here for delta > 0: see `TemporalAccountant.remaining`.
"""

from math import inf
from typing import Self, SupportsIndex

from tplrepro.leakage.loss_function import ROUNDING, loss_at
from tplrepro.leakage.partial import gaps
from tplrepro.leakage.temporal import Matrix, loss_functions
from tplrepro.validation import check_epsilon, check_horizon, check_level, check_smoothing, one_number

# They exceed the rounding of the few operations between two bounds.
UP, DOWN = 1.0 + 2.0**-50, 1.0 - 2.0**-50


class LeakageExceededError(ValueError):
    """A release would raise a temporal privacy leakage above the level of a filter; nothing was spent."""


class TemporalFilter:
    """What may still be spent so that no TPL, of a past or a future time, exceeds `alpha`; constant memory.

    All numbers are rounded to the safe side. Budgets may depend on everything that was released before; each
    must be the event-level budget of its time point, by which the probability of any output changes if the
    data of that time alone change.

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
        self, alpha: float, backward: Matrix | None = None, forward: Matrix | None = None, *, floor: float = 0.0
    ):
        self.alpha, self.floor = check_level(alpha), check_smoothing(floor, "floor")
        self._backward, self._forward = loss_functions(backward, forward)
        #: The number of time points that were skipped since the last release.
        self._skipped = 0
        #: BPL of the last release, rounded up; None before the first.
        self._bpl: float | None = None
        #: The largest L_F(FPL of the next time) that the last release and all before tolerate, rounded down.
        self._bound = inf
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
        return self._bpl or 0.0

    @property
    def tolerated(self) -> float:
        """The largest FPL of the next time point that all earlier ones tolerate, nats; inf if any."""
        return self._limits()[0]

    @property
    def remaining(self) -> float:
        """The largest budget of the next release, nats."""
        return self._largest(*self._limits())

    def spend(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Account for `count` releases of one budget, one per time point.

        LeakageExceededError, with nothing spent, if one of them exceeds what remains; ValueError for a budget
        that is not positive and finite.
        """
        if not (type(epsilon) is float and 0.0 < epsilon < inf):  # the full check costs more than everything else
            epsilon = one_number(check_epsilon(epsilon), "epsilon")
        before = self._skipped, self._bpl, self._bound
        for done in range(check_horizon(count, "count")):
            state = self._skipped, self._bpl, self._bound
            tolerated, base = self._limits()
            if epsilon > (largest := self._largest(tolerated, base)):
                self._skipped, self._bpl, self._bound = before
                raise LeakageExceededError(
                    f"epsilon must be at most {largest:.12g}, the most that keeps every TPL within alpha = "
                    f"{self.alpha:g} with a floor of {self.floor:g}, found {epsilon:g} for release {done + 1} of "
                    f"{count}; spend less, or skip"
                )
            self._bpl = (base + epsilon) * UP
            self._bound = max(min(self.alpha - self._bpl, tolerated - epsilon) * DOWN, 0.0)
            self._skipped = 0
            if (0, self._bpl, self._bound) == state:
                break
        return self

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release."""
        self._skipped += check_horizon(count, "count")
        return self

    def _largest(self, tolerated: float, base: float) -> float:
        """The largest budget; the floor is always within, by induction in exact arithmetic."""
        return max(min(tolerated, self.alpha - base) * DOWN - self._reserve, self.floor)

    def _limits(self) -> tuple[float, float]:
        """What is tolerated of the next FPL, rounded down, and L(BPL) without the next budget, rounded up."""
        if self._bpl is None:  # the TPL of the next release bounds those of the time points before it
            return inf, 0.0
        if not self._skipped:
            base = 0.0 if self._backward is None else loss_at(self._backward, self._bpl)
            tolerated = inf if self._forward is None else self._forward.inverse_at(self._bound)
            return max(tolerated, self._least), base
        between_b, between_f = gaps([self._backward], "backward"), gaps([self._forward], "forward")
        tolerated, end = inf, self._skipped + 1
        for time in range(end):
            loss_b, loss_f = between_b(0, time) if time else None, between_f(time, end)
            leaked = loss_at(loss_b, self._bpl) if loss_b else 0.0
            bound = max((self.alpha - leaked) * DOWN, 0.0) if time else self._bound
            if loss_f:
                tolerated = min(tolerated, loss_f.inverse_at(bound))
        last = between_b(0, end)
        return max(tolerated, self._least), loss_at(last, self._bpl) if last else 0.0
