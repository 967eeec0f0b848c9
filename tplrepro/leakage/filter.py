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

    c <= L_F^(m)^-1(min(alpha - BPL_t, c_t - epsilon_t)),
    c <= L_F^(m-j)^-1(alpha - L_B^(j)(BPL_t)), 0 < j < m,
    epsilon <= min(c, alpha - L_B^(m)(BPL_t)).

L^(j) falls in j (`loss_over_steps`), so that one pair of whole numbers of steps, rounded down to
eight an octave, bounds all j in a block: O(log k) conditions, exact for k < 16. A smaller c only
makes later budgets smaller.

A floor e keeps a budget of e available at every later time, for ever, if the suprema S of Theorem
11 of [1] satisfy S_B(e) + S_F(e) - e <= alpha; epsilon_t is then smaller by S_F(e) - e.
docs/theory/promises.md proves this, and names earlier filters. There is none here for delta > 0:
see `EventAccountant.budget_within`.
"""

from __future__ import annotations
from math import inf
from typing import NamedTuple, Self, SupportsIndex

from tplrepro.leakage.loss_function import ROUNDING, PrivacyLossFunction
from tplrepro.leakage.loss_over_steps import LossOverSteps, keep_leading_digits
from tplrepro.leakage.temporal import REQUIRED, LossLike, loss_functions
from tplrepro.validation import (
    as_scalar,
    check_epsilon,
    check_horizon,
    check_level,
    check_smoothing,
)

# They exceed the rounding of the few operations between two bounds.
UP = 1.0 + 2.0**-50
DOWN = 1.0 - 2.0**-50


class LeakageExceededError(ValueError):
    """A release would raise a temporal privacy leakage above the level of a filter; nothing was
    spent."""


class FilterState(NamedTuple):
    """What a filter remembers of all releases so far.

    `skipped` counts the time points since the last release, `bpl` is the BPL of that release,
    rounded up (None before the first), and `bound` the largest L_F(FPL of the next time) that it
    and all before it tolerate, rounded down; nats.
    """

    skipped: int
    bpl: float | None
    bound: float


class Limits(NamedTuple):
    """What limits the next release, in nats.

    `tolerated` is the largest FPL of the next time point that all earlier ones tolerate, rounded
    down, `leaked` is L_B of the last BPL, rounded up: the next BPL without its own budget; and
    `budget` is the largest budget.
    """

    tolerated: float
    leaked: float
    budget: float


class TemporalFilter:
    """What may still be spent so that no TPL, of a past or a future time, exceeds `alpha`.

    All numbers are rounded to the safe side, after pauses and next to nearly equal rows, too. Time
    and memory grow with the logarithm of the longest pause only. Budgets may depend on everything
    that was released before; each must be the event-level budget of its time point, by which the
    probability of any output changes if the data of that time alone change.

    Parameters
    ----------
    alpha : float > 0, the level of alpha-DP_T, nats
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None (not known)
        Pr(l^{t-1} | l^t), what the adversary knows of the time before.
    forward : the same for Pr(l^t | l^{t-1})
    floor : float >= 0, a budget that stays available at every later time; nats
        At most `allocate_by_upper_bound(alpha, backward, forward)`. Without a floor one release can
        use up all that there will ever be.

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For a level that is not positive and finite, matrices that are not row-stochastic or have
        different states, or a floor that exceeds alpha in the long run.

    Examples
    --------
    >>> P_b, P_f = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> account = TemporalFilter(1.0, P_b, P_f, floor=0.1)
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
        self.alpha = check_level(alpha)
        self.floor = check_smoothing(floor, "floor")
        self._backward, self._forward = loss_functions(backward, forward)
        self._backward_over = None if self._backward is None else LossOverSteps(self._backward)
        self._forward_over = None if self._forward is None else LossOverSteps(self._forward)
        #: Replaced as one, for threads.
        self.state = FilterState(0, None, inf)
        #: The last state whose limits were asked for, and these.
        self._kept: tuple[FilterState, Limits] | None = None
        # S_F(e), rounded down, and S_F(e) - e, rounded up.
        self._least_tolerated = 0.0
        self._reserve = 0.0
        if self.floor > 0.0:
            self._keep_floor()

    def _keep_floor(self) -> None:
        supremum_b = self._supremum(self._backward)
        supremum_f = self._supremum(self._forward)
        if supremum_b + supremum_f - self.floor > self.alpha:
            raise ValueError(
                f"floor must keep the TPL within alpha = {self.alpha:g} for ever, "
                f"found {self.floor:g}, for which it reaches "
                f"{supremum_b + supremum_f - self.floor:g}; "
                "give at most allocate_by_upper_bound(alpha, ...)"
            )
        self._least_tolerated = supremum_f * (1.0 - 4.0 * ROUNDING)
        self._reserve = supremum_f - self.floor

    def _supremum(self, loss: PrivacyLossFunction | None) -> float:
        """S(e) of Theorem 11 of [1] for the floor e, rounded up."""
        if loss is None:
            return self.floor
        return float(loss.supremum(self.floor)) * (1.0 + ROUNDING)

    def __repr__(self) -> str:
        return (
            f"TemporalFilter(alpha={self.alpha:g}, floor={self.floor:g}, "
            f"{self.remaining:.6g} nats remain)"
        )

    @property
    def bpl(self) -> float:
        """Backward privacy leakage of the last release, rounded up, nats; 0 before the first."""
        return self.state.bpl or 0.0

    @property
    def tolerated(self) -> float:
        """The largest FPL of the next time point that all earlier ones tolerate, nats; inf if
        any."""
        return self._limits(self.state).tolerated

    @property
    def remaining(self) -> float:
        """The largest budget of the next release, nats."""
        return self._limits(self.state).budget

    def spend(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Account for `count` releases of one budget, one per time point.

        Parameters
        ----------
        epsilon : float > 0, the budget of each release, nats
        count : int >= 1

        Returns
        -------
        The filter itself

        Raises
        ------
        LeakageExceededError
            If one of the releases exceeds what remains; nothing is then spent.
        ValueError
            For a budget that is not positive and finite, or a count that is no whole number >= 1.

        Examples
        --------
        >>> round(TemporalFilter(1.0, [[0.8, 0.2], [0.2, 0.8]], None).spend(0.3, 2).remaining, 4)
        0.716
        """
        # the full check costs more than everything else
        if not (type(epsilon) is float and 0.0 < epsilon < inf):
            epsilon = as_scalar(check_epsilon(epsilon), "epsilon")
        count = check_horizon(count, "count")
        state = self.state
        for done in range(count):
            limits = self._limits(state)
            if epsilon > limits.budget:
                release = f"release {done + 1} of {count}"
                raise LeakageExceededError(self._excess(epsilon, limits.budget, release))
            following = self._state_after(epsilon, limits)
            if following == state:
                break
            state = following
        self.state = state
        return self

    def _state_after(self, epsilon: float, limits: Limits) -> FilterState:
        """The state after a release: Eq. (13) of [1] and c_t of the module's docstring, rounded."""
        bpl = (limits.leaked + epsilon) * UP
        bound = min(self.alpha - bpl, limits.tolerated - epsilon) * DOWN
        return FilterState(0, bpl, max(bound, 0.0))

    def _excess(self, epsilon: float, budget: float, release: str) -> str:
        """What is wrong with a budget that exceeds the largest one, with digits that show it."""
        digits = 6
        while digits < 17 and f"{budget:.{digits}g}" == f"{epsilon:.{digits}g}":
            digits += 1
        largest = f"{budget:.{digits}g}"
        found = f"{epsilon:.{digits}g}"
        return (
            f"epsilon must be at most {largest}, the most that keeps every TPL within "
            f"alpha = {self.alpha:g} with a floor of {self.floor:g}, "
            f"found {found} for {release}; spend less, or skip"
        )

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; ValueError if the loss functions are not
        of matrices."""
        count = check_horizon(count, "count")
        for losses in (self._backward_over, self._forward_over):
            if losses is not None:
                losses.check_pause_possible()
        self.state = self.state._replace(skipped=self.state.skipped + count)
        return self

    def exhausted(self) -> FilterState:
        """The tightest `state` to which releases can lead, for some that are not known: BPL and FPL
        at the level."""
        return FilterState(0, (self.alpha - self._reserve) * UP, self._reserve * DOWN)

    def _limits(self, state: FilterState) -> Limits:
        """The limits of the next release; the floor is always within them, by induction in exact
        arithmetic."""
        kept = self._kept
        if kept is not None and kept[0] is state:
            return kept[1]
        if state.bpl is None:
            # the TPL of the next release bounds those of the time points before it
            tolerated = inf
            leaked = 0.0
        elif state.skipped:
            steps = state.skipped + 1
            tolerated = self._tolerated_over(steps, state.bpl, state.bound)
            leaked = self._leaked_over(steps, state.bpl)
        else:
            tolerated = self._tolerated_next(state.bound)
            leaked = self._leaked_next(state.bpl)
        left = min(tolerated, self.alpha - leaked)
        budget = left * DOWN - self._reserve
        limits = Limits(tolerated, leaked, max(budget, self.floor))
        self._kept = (state, limits)
        return limits

    def _tolerated_next(self, bound: float) -> float:
        """The largest FPL of the next time point of which L_F is at most `bound`."""
        if self._forward is None:
            return inf
        return max(self._forward.inverse_within(bound, self.alpha), self._least_tolerated)

    def _leaked_next(self, bpl: float) -> float:
        """L_B of a BPL."""
        if self._backward is None:
            return 0.0
        return self._backward.at_most(bpl)

    def _leaked_over(self, steps: int, bpl: float) -> float:
        """L_B over several steps of a BPL."""
        if self._backward_over is None:
            return 0.0
        return self._backward_over.bound(steps).at_most(bpl)

    def _tolerated_over(self, steps: int, bpl: float, bound: float) -> float:
        """The largest FPL of the next release, so many steps after the last one, that the last one
        and all times between them tolerate."""
        if self._forward_over is None:
            return inf
        tolerated = self._forward_over.bound(steps).inverse_within(bound, self.alpha)
        time = 1
        while time < steps:
            since = keep_leading_digits(time)
            until = keep_leading_digits(steps - time)
            left = max((self.alpha - self._leaked_over(since, bpl)) * DOWN, 0.0)
            loss = self._forward_over.bound(until)
            tolerated = min(tolerated, loss.inverse_within(left, self.alpha))
            # Up to the first time at which `since` or `until` is another.
            next_since = since + (1 << max(since.bit_length() - 4, 0))
            time = min(next_since, steps - until + 1)
        return max(tolerated, self._least_tolerated)
