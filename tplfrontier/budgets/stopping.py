"""Budgets of least expected error for a series that ends with a given probability at each step.

The length T is geometric, Pr(T >= t) = (1 - p)^(t - 1), and independent of the data. The level must
hold for every T, and FPL grows with each further release (Example 3 of [1]), so the constraint is
that of the endless series: BPL_t + FPL_t - epsilon_t <= alpha with FPL_t the limit for T to
infinity. The budgets are some first ones and then a constant tail, or for a cycle of p matrices
one that repeats itself with it. There FPL is the supremum of Theorem 11 of [1] at each phase, and
the BPL of a phase tends to its supremum monotonically, so it is enough to constrain its first and
its limiting value.
"""

from __future__ import annotations
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tplrepro.allocation.minimisation import LeastError, Recursion, check_power
from tplrepro.allocation.phases import backward_limits, forward_limits
from tplrepro.allocation.published import allocate_by_quantification, allocate_by_upper_bound
from tplrepro.leakage.temporal import SAFETY, Correlation, LossCycles, loss_cycles
from tplrepro.validation import FrozenArrays, check_horizon, check_level, check_probability

FIRST = (6, 12, 24, 48, 96, 192, 384, 768)  # numbers K of first budgets, tried in this order
EACH = 32  # of more first budgets than these, some are interpolated between others
MANY_STARTS = 96  # up to this number, SLSQP runs from all starts
MOST_UNKNOWNS = 96  # first budgets and those of the tail of a cycle, none of which is interpolated
# larger numbers are not tried after two relative improvements of the error below this
IMPROVEMENT = 1e-7
SAME = 1e-7  # first budgets above the tail's by no more than this share become part of the tail


@dataclass(frozen=True)
class EndlessBudgets(FrozenArrays):
    """Budgets for a series of any length: `first` (K,), K >= 0, then `tail` for each later release;
    nats.

    For a cycle of p > 1 matrices, `tail` (p,) is that of each phase: of time point t, from 0 on,
    tail[t % p].
    """

    first: np.ndarray
    tail: float | np.ndarray

    def budgets(self, horizon: int) -> np.ndarray:
        """The budgets of the first `horizon` releases, (horizon,)."""
        horizon = check_horizon(horizon)
        first = self.first[:horizon]
        later = np.arange(first.size, horizon)
        return np.concatenate([first, self._tail_at(later)])

    def _tail_at(self, times: np.ndarray) -> np.ndarray:
        tails = np.atleast_1d(self.tail)
        return tails[times % tails.size]

    @np.errstate(over="ignore")  # inf where no double is as large
    def expected_error(self, stopping_probability: float, error: str = "absolute") -> float:
        """E[sum_{t <= T} 1 / epsilon_t] for a geometric T.

        Parameters
        ----------
        stopping_probability : float
            In (0, 1): the probability that a release is the last.
        error : {"absolute", "squared"}, optional
            The expected sum of 1 / epsilon_t, or of 1 / epsilon_t^2.

        Returns
        -------
        float
            inf where no double is as large.

        Raises
        ------
        ValueError
            If the probability is out of range, or the error another one.
        """
        p = _check_stopping_probability(stopping_probability)
        power = check_power(error)
        count = self.first.size
        period = np.size(self.tail)
        times = np.arange(count + period)
        reached = (1.0 - p) ** times  # Pr(T >= t)
        errors = reached[:count] / self.first**power
        expected_tails = reached[count:] / _ends_within(period, p)
        times_of_tail = times[count:]
        tails = self._tail_at(times_of_tail)
        errors_of_tail = expected_tails / tails**power
        return float(errors.sum() + errors_of_tail.sum())


def _ends_within(period: int, p: float) -> float:
    """The probability that a series ends within so many releases."""
    reached = (1.0 - p) ** np.arange(period)
    return p * float(reached.sum())


def allocate_with_stopping(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    stopping_probability: float,
    *,
    error: str = "absolute",
) -> EndlessBudgets:
    """Budgets of least expected error within alpha however long the series, if it may end after
    each release.

    Minimises E[sum_{t <= T} 1 / epsilon_t] for a geometric length T. Never worse than
    `allocate_by_upper_bound`, to which it tends as the probability tends to 0; the best of several
    local optima, with at most 768 first budgets, or 96 together with the tail for a cycle;
    deterministic. Takes 0.03 to 1 s, longer for a cycle. Where the series probably ends soon, or
    the correlation is strong, the best budgets fall for a long time, so that a series that
    continues gets very noisy. Look at `tail`.

    Parameters
    ----------
    alpha : float > 0
        The level of temporal privacy leakage in nats.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, Cycle or None
        Pr(l^{t-1} | l^t). The series begins at phase 0 of a cycle. None: the adversary does not
        know it.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    stopping_probability : float
        In (0, 1): the probability that a release is the last.
    error : {"absolute", "squared"}, optional
        Whether to minimise the sum of 1 / epsilon_t, or of 1 / epsilon_t^2.

    Returns
    -------
    EndlessBudgets
        The `first` budgets and the `tail`, in nats; for a cycle a tail for each phase.

    Raises
    ------
    NoFiniteSupremumError
        If no constant budget keeps the level.
    ValueError
        For a number out of range, matrices that are not row-stochastic or whose states disagree, or
        a list of matrices, which says nothing of later steps.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> backward = [[0.8, 0.2], [0.2, 0.8]]  # Fig. 8 of [1]
    >>> forward = [[0.8, 0.2], [0.1, 0.9]]
    >>> endless = allocate_with_stopping(1.0, backward, forward, 0.2)
    >>> endless.budgets(6).round(4).tolist()
    [0.3906, 0.2673, 0.2039, 0.2039, 0.2039, 0.2039]
    >>> constant = allocate_by_upper_bound(1.0, backward, forward)
    >>> round(endless.expected_error(0.2), 4), round(5 / constant, 4)
    (21.2487, 24.5252)
    """
    alpha = check_level(alpha)
    p = _check_stopping_probability(stopping_probability)
    power = check_power(error)
    losses = loss_cycles(backward, forward)
    constant = _budgets_for_ever(alpha, losses)
    known = [*losses.backward.distinct, *losses.forward.distinct]
    if all(loss.is_zero for loss in known):
        return constant

    def expected_error(budgets: EndlessBudgets) -> float:
        return budgets.expected_error(p, error)

    best = constant
    if len(losses) > 1:
        of_phases = _budgets_for_ever(alpha, losses, "least error")
        best = min(constant, of_phases, key=expected_error)
    without_improvement = 0
    for count in _numbers_of_first(losses):
        problem = Endless(alpha, losses, p, power, count)
        solutions = _local_optima(problem, best, constant, p)
        before = expected_error(best)
        best = min([best, *solutions], key=expected_error)
        if expected_error(best) < before * (1.0 - IMPROVEMENT):
            without_improvement = 0
        else:
            without_improvement += 1
        if without_improvement == 2:
            break
    return best


def _budgets_for_ever(alpha: float, losses: LossCycles, shape: str | None = None) -> EndlessBudgets:
    """The budgets of Algorithm 7 for these sides, which are all tail; `shape` as
    `allocate_by_upper_bound` takes it."""
    backward = losses.as_given(losses.backward)
    forward = losses.as_given(losses.forward)
    budgets = allocate_by_upper_bound(alpha, backward, forward, shape=shape)
    return EndlessBudgets(np.empty(0), budgets)


def _numbers_of_first(losses: LossCycles) -> list[int]:
    """How many first budgets are tried: not fewer than there are first steps of a cycle."""
    most = FIRST[-1]
    if len(losses) > 1:
        most = MOST_UNKNOWNS - len(losses)
    return [count for count in FIRST if losses.n_first <= count <= most]


def _local_optima(
    problem: Endless, best: EndlessBudgets, constant: EndlessBudgets, p: float
) -> list[EndlessBudgets]:
    """Budgets that SLSQP reaches from the best so far, and from other shapes if they are few.

    `constant` are the budgets that are the same at all times of a phase; `p` is the probability to
    stop after each release.
    """
    count = problem.count
    starts = [best.budgets(problem.weights.size)]
    if count <= MANY_STARTS:
        for shape in _starting_shapes(problem, constant, p):
            starts.append(problem.fit(shape, tolerance=1e-3))
    knots = None
    if problem.period == 1:
        knots = _choose_knots(count)
    optima = []
    for start in starts:
        solution = problem.solve(start, knots)
        budgets = problem.result(solution)
        if budgets is not None:
            optima.append(budgets)
    return optima


def _choose_knots(count: int) -> np.ndarray:
    """The first budgets that are unknowns, and the tail: all up to `EACH`, then ever fewer."""
    dense = np.arange(min(count, EACH))
    knots = np.append(dense, count)
    if count > EACH:
        spaced = np.geomspace(EACH, count - 1, 12)
        sparse = np.rint(spaced).astype(int)
        knots = np.unique(np.append(knots, sparse))
    return knots


class Endless(LeastError):
    """The TPL in an endless series of `count` first budgets, of the first period of the tail, and
    its limits there; nats.

    `p` is the probability to stop after each release; `alpha` and `power` are as in `LeastError`.
    """

    def __init__(self, alpha: float, losses: LossCycles, p: float, power: int, count: int):
        period = len(losses)
        times = np.arange(count + period)
        weights = p * (1.0 - p) ** times
        weights[count:] /= _ends_within(period, p)
        super().__init__(alpha, weights, power)
        self.count = count
        self.period = period
        self.losses = losses
        #: The phase of each budget of the tail.
        self.phases = times[count:] % period
        steps = times.size - 1
        self.backward = Recursion(losses.backward.over(steps))
        forward_steps = losses.forward.over(steps)
        self.forward = Recursion(forward_steps[::-1])
        if period == 1:
            # for a larger tail, the supremum of one side alone exceeds alpha
            largest_tails = []
            for side in (losses.backward, losses.forward):
                (loss,) = side.steps
                if loss is not None:
                    largest_tails.append(loss.budget_for(alpha))
            largest_share = min(largest_tails) / alpha
            self.upper[-1] = np.log(largest_share)

    def result(self, budgets: np.ndarray) -> EndlessBudgets | None:
        """The largest multiple within alpha, each budget less the margin of Algorithm 7 for
        rounding."""
        budgets = self.fit(budgets) - SAFETY * self.alpha
        if budgets.min() <= 0.0:
            return None
        first = budgets[: self.count]
        tails = self._by_phase(budgets)
        while first.size > 0:
            last_time = first.size - 1
            tail = tails[last_time % self.period]
            if not _is_almost(tail, first[-1]):
                break
            first = first[:-1]  # the tail's budget leaks no more
        if self.period == 1:
            return EndlessBudgets(first, float(tails[0]))
        return EndlessBudgets(first, tails)

    def _by_phase(self, values: np.ndarray) -> np.ndarray:
        """What belongs to the tail, in the order of the phases, (p, ...)."""
        of_tail = values[self.count :]
        by_phase = np.argsort(self.phases)
        return of_tail[by_phase]

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tails = self._by_phase(budgets)
        tail_change = self._by_phase(change)
        unit = np.eye(self.period)
        bpl_limits = backward_limits(self.losses.backward, tails, unit)
        fpl_limits = forward_limits(self.losses.forward, tails, unit)
        limits = bpl_limits.leakages + fpl_limits.leakages
        if not np.isfinite(limits).all():
            size = budgets.size + self.period
            n_unknowns = change.shape[1]
            return np.full(size, np.inf), np.zeros((size, n_unknowns))
        bpl, bpl_change = self.backward.ascend(budgets, change)
        # Backwards in time FPL starts from its supremum, which takes the place of the last budget.
        last_phase = self.phases[-1]
        from_end = budgets[::-1].copy()
        from_end[0] = fpl_limits.leakages[last_phase]
        change_from_end = change[::-1].copy()
        change_from_end[0] = fpl_limits.derivative[last_phase] @ tail_change
        fpl_from_end, fpl_change_from_end = self.forward.ascend(from_end, change_from_end)
        fpl = fpl_from_end[::-1]
        fpl_change = fpl_change_from_end[::-1]
        tpl = bpl + fpl - budgets
        tpl_change = bpl_change + fpl_change - change
        tpl_of_limits = limits - tails
        slope_of_limits = bpl_limits.derivative + fpl_limits.derivative - unit
        change_of_limits = slope_of_limits @ tail_change
        tpl_with_limits = np.append(tpl, tpl_of_limits)
        return tpl_with_limits, np.vstack([tpl_change, change_of_limits])


def _is_almost(tail: float, budget: float) -> bool:
    """Whether a first budget is hardly above that of the tail."""
    most = tail * (1.0 + SAME)
    return bool(tail <= budget <= most)


def _starting_shapes(problem: Endless, constant: EndlessBudgets, p: float) -> Iterator[np.ndarray]:
    """Budgets to start from, up to a factor: the `constant` ones, for one matrix with the first
    budget of Algorithm 8, and budgets that fall with the probability 1 - p to go on."""
    size = problem.weights.size
    shape = constant.budgets(size)
    if problem.period == 1:
        (backward,) = problem.losses.backward.steps
        (forward,) = problem.losses.forward.steps
        budgets = allocate_by_quantification(problem.alpha, backward, forward, 3)
        shape[0] = budgets[0]
    yield shape
    # optimal under perfect correlation, where the sum of all budgets is bounded
    divisor = 1 + problem.power
    exponents = np.arange(size) / divisor
    yield (1.0 - p) ** exponents


def _check_stopping_probability(p: float) -> float:
    remedy = "for a known number of releases: allocate_optimally"
    return check_probability(p, "stopping_probability", remedy, zero=False, one=False)
