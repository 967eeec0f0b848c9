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

**A floor** e_t keeps a budget of e_t available at every later time t, for ever. Let S_F,t be the
suprema of FPL under the floors and R_t = S_F,t - e_t. The BPL of each time is kept within

    b_t = min(alpha - R_t, L_B^-1(b_{t+1} - e_{t+1})),

and epsilon_t within c_{t-1} - R_t; c_t is then at least S_F,t+1. For one matrix b = alpha - R. For
a cycle alpha - R_t alone would lose later floors; b begins at the phase of the greatest TPL under
the floors and goes once round the cycle in reverse. The floors themselves must keep alpha. Known
bounds make good what rounding takes: c_t >= S_F,t+1, and after a pause, of which L^(j) may be that
of fewer steps, L_B^(m) <= L_B(b).
docs/theory/promises.md and cycles.md prove this, and name earlier filters. There is none here for
delta > 0: see `tplfrontier.GaussianFilter`.
"""

from __future__ import annotations
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import DOWN, ROUNDING, UP, PrivacyLossFunction
from tplrepro.leakage.loss_over_steps import LossOverSteps, keep_leading_digits
from tplrepro.leakage.temporal import REQUIRED, Correlation, LossCycles, loss_cycles
from tplrepro.validation import (
    MOST_SMOOTHING,
    as_scalar,
    check_epsilon,
    check_horizon,
    check_level,
    check_range,
)

if TYPE_CHECKING:
    from tplrepro.leakage.suprema import Suprema


class LeakageExceededError(ValueError):
    """A release would raise a temporal privacy leakage above the level of a filter; nothing was
    spent."""


class FilterState(NamedTuple):
    """What a filter remembers of all releases so far.

    `skipped` counts the time points since the last release, `bpl` is the BPL of that release,
    rounded up (None before the first), and `bound` the largest L_F(FPL of the next time) that it
    and all before it tolerate, rounded down; nats. `last` is the time of that release, less whole
    periods after the first steps: 0 for one matrix.
    """

    skipped: int
    bpl: float | None
    bound: float
    last: int = 0

    @property
    def following(self) -> int:
        """The next time point, which counts from 0, less the same whole periods."""
        if self.bpl is None:
            return self.skipped
        return self.last + 1 + self.skipped


class Settled(NamedTuple):
    """What releases leave at a time point: its BPL, rounded up (None if there was no release at
    all), and the largest L_F(FPL of the next time) that it and all before it tolerate, rounded
    down; nats."""

    bpl: float | None
    bound: float


class Limits(NamedTuple):
    """What limits the next release, in nats.

    `place` is its time, less whole periods after the first steps, `tolerated` the largest FPL of it
    that all earlier ones tolerate, rounded down, and `leaked` L_B of the last BPL, rounded up: the
    next BPL without its own budget. `budget` is the largest budget.
    """

    place: int
    tolerated: float
    leaked: float
    budget: float


class TimeLimits(NamedTuple):
    """What bounds the release of a time point, and L of the steps that lead to it, in nats.

    `place` is the time point, less whole periods after the first steps. `level` is the largest TPL,
    `floor` the budget that stays available, and `reserve` the part of the FPL, rounded up, that
    later floors take: S_F - floor. The FPL may always be `least_tolerated`, S_F rounded down, and
    L_B of earlier releases is never more than `most_leaked`.
    """

    place: int
    backward: PrivacyLossFunction | None
    forward: PrivacyLossFunction | None
    level: float
    floor: float
    reserve: float
    least_tolerated: float
    most_leaked: float


class TemporalFilter:
    """What may still be spent so that no TPL, of a past or a future time, exceeds `alpha`.

    All numbers are rounded to the safe side, after pauses and next to nearly equal rows, too. Time
    and memory grow with the logarithm of the longest pause only. Budgets may depend on everything
    that was released before; each must be the event-level budget of its time point, by which the
    probability of any output changes if the data of that time alone change.

    Parameters
    ----------
    alpha : float > 0, the level of alpha-DP_T, nats
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, Cycle or None (not known)
        Pr(l^{t-1} | l^t), what the adversary knows of the time before: `forward.reverse()`, seldom
        the forward matrix itself. The first time point is at phase 0 of a cycle. The promise is to
        users whose first state has the law that this side assumes: for a `reverse()` without a
        start, those who start in the habit.
    forward : the same for Pr(l^t | l^{t-1})
    floor : float or array-like (p,), >= 0, what stays available at every later time; nats
        One budget, or one for each phase. At most `allocate_by_upper_bound(alpha, backward,
        forward)`. Without a floor one release can use up all that there will ever be.
    after : Settled, optional
        What releases under another chain have left, `settled()` of their filter, which this one
        goes on from: its time 0 is the last time point that has passed there, and its first step
        leads on from that. No TPL exceeds alpha, neither before nor after (Theorem 8 of
        docs/theory/cycles.md).

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
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        *,
        floor: ArrayLike = 0.0,
        after: Settled | None = None,
    ):
        self.alpha = check_level(alpha)
        losses = loss_cycles(backward, forward)
        floors = checked_floors(floor, len(losses))
        #: One number, or one for each phase.
        self.floor = _floor_of(floors)
        self._backward_over = LossOverSteps(losses.backward, "backward")
        self._forward_over = LossOverSteps(losses.forward, "forward")
        #: Of the first time points, and of each phase.
        suprema = FloorSuprema(self.alpha, losses, floors, after)
        self._first_limits = suprema.limits_of_first_times()
        self._phase_limits = suprema.limits_of_phases()
        #: Replaced as one, for threads.
        self.state = FilterState(0, None, inf)
        if after is not None:
            self.state = _state_at_time_0(after)
        #: The last state whose limits were asked for, and these.
        self._kept: tuple[FilterState, Limits] | None = None

    def __repr__(self) -> str:
        return (
            f"TemporalFilter(alpha={self.alpha:g}, floor={_shown_floor(self.floor)}, "
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
        period = len(self._phase_limits)
        state = self.state
        a_period_ago = state
        done = 0
        while done < count:
            limits = self._limits(state)
            if epsilon > limits.budget:
                release = f"release {done + 1} of {count}"
                raise LeakageExceededError(self._excess_message(epsilon, limits.budget, release))
            state = self._state_after(epsilon, limits)
            done += 1
            if done % period == 0:
                if state == a_period_ago:  # so do all that follow, a period later
                    done = count - (count - done) % period
                a_period_ago = state
        self.state = state
        return self

    def _state_after(self, epsilon: float, limits: Limits) -> FilterState:
        """The state after a release: Eq. (13) of [1] and c_t of the module's docstring, rounded."""
        bpl = (limits.leaked + epsilon) * UP
        bound = min(self.alpha - bpl, limits.tolerated - epsilon) * DOWN
        return FilterState(0, bpl, max(bound, 0.0), limits.place)

    def _limits_at(self, time: int) -> TimeLimits:
        if time < len(self._first_limits):
            return self._first_limits[time]
        return self._phase_limits[time % len(self._phase_limits)]

    def _excess_message(self, epsilon: float, budget: float, release: str) -> str:
        """The message on a budget `epsilon` above the largest one, with digits that show it;
        `release` says which of several it is."""
        digits = 6
        while digits < 17 and f"{budget:.{digits}g}" == f"{epsilon:.{digits}g}":
            digits += 1
        largest = f"{budget:.{digits}g}"
        found = f"{epsilon:.{digits}g}"
        return (
            f"epsilon must be at most {largest}, the most that keeps every TPL within "
            f"alpha = {self.alpha:g} with a floor of {_shown_floor(self.floor)}, "
            f"found {found} for {release}; spend less, or skip"
        )

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; ValueError if the loss functions are not
        of matrices."""
        count = check_horizon(count, "count")
        self._backward_over.check_pause_possible()
        self._forward_over.check_pause_possible()
        self.state = self.state._replace(skipped=self.state.skipped + count)
        return self

    def settled(self) -> Settled:
        """What all releases so far leave at the last time point that has passed."""
        state = self.state
        if state.bpl is None:
            return Settled(None, inf)
        if state.skipped == 0:
            return Settled(state.bpl, state.bound)
        # It has no release, and so the BPL that is left, and tolerates as much FPL as all before.
        time = state.following - 1
        at_time = self._limits_at(time)
        bpl = min(self._leaked_over(state.last, state.skipped, state.bpl), at_time.most_leaked)
        tolerated = max(self._tolerated_over(state, time), at_time.least_tolerated)
        bound = min(self.alpha - bpl, tolerated) * DOWN
        return Settled(bpl, max(bound, 0.0))

    def exhausted(self, count: SupportsIndex = 1) -> FilterState:
        """The tightest `state` to which releases can lead, for `count` further time points of which
        nothing is known: BPL and FPL at the level."""
        last = self.state.following + check_horizon(count, "count") - 1
        limits = self._limits_at(last)
        most_bpl = limits.level - limits.reserve
        return FilterState(0, most_bpl * UP, limits.reserve * DOWN, limits.place)

    def _limits(self, state: FilterState) -> Limits:
        """The limits of the next release; the floor is always within them, by induction in exact
        arithmetic."""
        kept = self._kept
        if kept is not None and kept[0] is state:
            return kept[1]
        time = state.following
        at_time = self._limits_at(time)
        if state.bpl is None:
            # the TPL of the next release bounds those of the time points before it
            tolerated = inf
            leaked = 0.0
        elif state.skipped:
            tolerated = self._tolerated_over(state, time)
            leaked = self._leaked_over(state.last, time - state.last, state.bpl)
            leaked = min(leaked, at_time.most_leaked)
        else:
            tolerated = inf
            if at_time.forward is not None:
                tolerated = at_time.forward.inverse_within(state.bound, self.alpha)
            leaked = 0.0
            if at_time.backward is not None:
                leaked = at_time.backward.at_most(state.bpl)
        tolerated = max(tolerated, at_time.least_tolerated)
        left = min(tolerated, at_time.level - leaked)
        budget = left * DOWN - at_time.reserve
        limits = Limits(at_time.place, tolerated, leaked, max(budget, at_time.floor))
        self._kept = (state, limits)
        return limits

    def _leaked_over(self, last: int, steps: int, bpl: float) -> float:
        """L_B of `bpl`, the BPL of the last release, over several steps from its time `last` on;
        nats."""
        loss = self._backward_over.bound(last, steps)
        if loss is None:
            return 0.0
        return loss.at_most(bpl)

    def _tolerated_over(self, state: FilterState, time: int) -> float:
        """The largest FPL of the next release, at a time point, that the last one and all times
        between them tolerate."""
        bpl = state.bpl or 0.0
        steps = time - state.last
        tolerated = self._inverse_over(steps, time, state.bound)
        passed = 1
        while passed < steps:
            since = keep_leading_digits(passed)
            until = keep_leading_digits(steps - passed)
            leaked = self._leaked_over(state.last, since, bpl)
            left = max((self.alpha - leaked) * DOWN, 0.0)
            tolerated = min(tolerated, self._inverse_over(until, time, left))
            # Up to the first time at which `since` or `until` is another.
            next_since = since + (1 << max(since.bit_length() - 4, 0))
            passed = min(next_since, steps - until + 1)
        return tolerated

    def _inverse_over(self, steps: int, time: int, level: float) -> float:
        """The largest FPL at `time` that adds at most `level`, nats, so many steps before it."""
        loss = self._forward_over.bound(time, steps)
        if loss is None:
            return inf
        return loss.inverse_within(level, self.alpha)


def _state_at_time_0(after: Settled) -> FilterState:
    if after.bpl is None:  # time 0 has no release either
        return FilterState(1, None, inf)
    return FilterState(0, after.bpl, after.bound)


def checked_floors(floor: ArrayLike, p: int) -> list[float]:
    """The floor of each of p phases."""
    must = f"floor must be finite and at least 0, at most {MOST_SMOOTHING:g}"
    remedy = "give one budget"
    if p > 1:
        remedy = f"give one budget, or one for each of the {p} phases"
    floors = check_range(floor, 0.0, MOST_SMOOTHING, must, remedy)
    if floors.ndim == 0:
        return [float(floors)] * p
    if floors.shape != (p,):
        raise ValueError(
            f"floor must be one budget, or one for each phase, found shape {floors.shape}; {remedy}"
        )
    return floors.tolist()


def _floor_of(floors: list[float]) -> float | tuple[float, ...]:
    """One number where all phases keep the same."""
    if len(set(floors)) == 1:
        return floors[0]
    return tuple(floors)


def _shown_floor(floor: float | tuple[float, ...]) -> str:
    if isinstance(floor, float):
        return f"{floor:g}"
    return f"{min(floor):g} to {max(floor):g}"


class FloorSuprema:
    """The suprema over time under the floors alone, rounded up, and what they leave at each time.

    Parameters
    ----------
    alpha : float > 0, nats
    losses : LossCycles
    floors : list (p,) of the budgets that each phase keeps, nats
    after : Settled, optional
        What earlier releases have left at time 0, which has no floor then.

    Raises
    ------
    ValueError
        If the floors themselves raise a TPL above alpha, or that of a time before.
    """

    def __init__(
        self, alpha: float, losses: LossCycles, floors: list[float], after: Settled | None = None
    ):
        from tplrepro.leakage.suprema import backward_suprema, forward_suprema

        self.alpha = alpha
        self.losses = losses
        self.floors = floors
        self.after = after
        #: Time 0 is like no later one where it has passed.
        self.n_first = losses.n_first
        if after is not None:
            self.n_first = max(self.n_first, 1)
        self._bpl: Suprema | None = None
        self._fpl: Suprema | None = None
        if any(floors):
            budgets = np.array(floors)
            left = None
            if after is not None:
                left = after.bpl or 0.0
            self._bpl = backward_suprema(losses.backward, budgets, self.n_first, left)
            self._fpl = forward_suprema(losses.forward, budgets, self.n_first, after is not None)
            self._check_floors_fit()
            self._check_is_tolerated()

    def _check_is_tolerated(self) -> None:
        """ValueError if the floors leak more about earlier times than these tolerate."""
        if self.after is None or self.after.bound * DOWN >= self.reserve_at(0):
            return
        raise ValueError(
            f"floor must leave all earlier times within alpha = {self.alpha:g}, "
            f"found {_shown_floor(_floor_of(self.floors))}, for which one exceeds it; give a "
            "smaller one"
        )

    def _check_floors_fit(self) -> None:
        highest = max(self.tpl_at(time) for time in range(self._until_repeated))
        if highest > self.alpha:
            remedy = "give at most allocate_by_upper_bound(alpha, ...)"
            if self.after is not None:
                remedy = "give less, after what was spent"
            raise ValueError(
                f"floor must keep the TPL within alpha = {self.alpha:g} for ever, "
                f"found {_shown_floor(_floor_of(self.floors))}, for which it reaches {highest:g}; "
                f"{remedy}"
            )

    @property
    def _until_repeated(self) -> int:
        """The first time points and one period."""
        return self.n_first + len(self.losses)

    def floor_at(self, time: int) -> float:
        """The budget that stays available at a time point."""
        if time == 0 and self.after is not None:
            return 0.0
        return self.floors[time % len(self.floors)]

    def bpl_at(self, time: int) -> float:
        """S_B; 0 without floors."""
        if self._bpl is None:
            return 0.0
        return self._bpl.at(time)

    def fpl_at(self, time: int) -> float:
        """S_F; 0 without floors."""
        if self._fpl is None:
            return 0.0
        return self._fpl.at(time)

    def tpl_at(self, time: int) -> float:
        """S_B + S_F less the floor, which counts once."""
        return self.bpl_at(time) + self.fpl_at(time) - self.floor_at(time)

    def reserve_at(self, time: int) -> float:
        """R, the part of the FPL of a time that later floors take."""
        return self.fpl_at(time) - self.floor_at(time)

    @cached_property
    def levels(self) -> list[float]:
        """The largest TPL of each of the first time points, and of those of a period after them:
        b + R of the module's docstring."""
        n_first = self.n_first
        end = self._until_repeated
        levels = [self.alpha] * end
        if self._bpl is None:
            return levels
        fullest = max(range(n_first, end), key=self.tpl_at)
        before_it = range(fullest - 1, n_first - 1, -1)
        after_it = range(end - 1, fullest, -1)
        level = levels[fullest]
        for time in [*before_it, *after_it]:
            level = self._level_before(time, level)
            levels[time] = level
        level = levels[n_first]
        for time in reversed(range(n_first)):
            level = self._level_before(time, level)
            levels[time] = level
        return levels

    def _level_before(self, time: int, level: float) -> float:
        """The largest TPL of a time, from that of the time after it, rounded down."""
        loss = self.losses.backward.at(time)
        if loss is None:
            return self.alpha
        most_bpl_next = level - self.reserve_at(time + 1)
        most_leaked = max((most_bpl_next - self.floor_at(time + 1)) * DOWN, 0.0)
        most_bpl = loss.inverse_within(most_leaked, self.alpha)
        highest = (most_bpl + self.reserve_at(time)) * DOWN
        return min(max(highest, self.tpl_at(time)), self.alpha)

    def limits_of_first_times(self) -> list[TimeLimits]:
        """Of the first time points, and of the one to which the last of their steps leads; none if
        all steps are those of the cycle."""
        n_first = self.n_first
        if n_first == 0:
            return []
        # No step leads to time 0, whose limit of what has leaked is not asked for.
        times = range(1, n_first + 1)
        return [self._limits_at(0, 0), *(self._limits_at(time, time - 1) for time in times)]

    def limits_of_phases(self) -> list[TimeLimits]:
        """Of the time points of a period after the first ones, by their phases."""
        p = len(self.losses)
        return [
            self._limits_at(self._time_at(phase), self._time_at((phase - 1) % p))
            for phase in range(p)
        ]

    def _time_at(self, phase: int) -> int:
        """The first time point of a phase after the first steps."""
        n_first = self.n_first
        return n_first + (phase - n_first) % len(self.losses)

    def _limits_at(self, time: int, time_before: int) -> TimeLimits:
        p = len(self.losses)
        backward = self.losses.backward.at(time_before)
        # One matrix leaks less over more steps, so that nothing needs to be mended there.
        most_leaked = inf
        if backward is not None and not self.losses.backward.is_constant:
            most_bpl = self.levels[time_before] - self.reserve_at(time_before)
            most_leaked = backward.at_most(most_bpl * (1.0 + ROUNDING)) * (1.0 + ROUNDING)
        return TimeLimits(
            time,
            backward,
            self.losses.forward.at(time_before),
            self.levels[time],
            self.floor_at(time),
            self.reserve_at(time),
            self.fpl_at(time) * (1.0 - 4.0 * p * ROUNDING),
            most_leaked,
        )
