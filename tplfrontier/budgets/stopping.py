"""Budgets of least expected error for a series that ends with a given probability at each step.

The length T is geometric, Pr(T >= t) = (1 - p)^(t - 1), and independent of the data. The level must
hold for every T, and FPL grows with each further release (Example 3 of [1]), so the constraint is
that of the endless series: BPL_t + FPL_t - epsilon_t <= alpha with FPL_t the limit for T to
infinity. The budgets are some first ones and then a constant tail. There FPL is the supremum of
Theorem 11 of [1], and BPL tends to its supremum monotonically, so it is enough to constrain its
first and its limiting value.
"""

from __future__ import annotations
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tplrepro.allocation.minimisation import LeastError, Recursion, check_power
from tplrepro.allocation.published import allocate_by_quantification, allocate_by_upper_bound
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import SAFETY, Correlation, loss_cycles
from tplrepro.validation import FrozenArrays, check_horizon, check_level, check_probability

FIRST = (6, 12, 24, 48, 96, 192, 384, 768)  # numbers K of first budgets, tried in this order
EACH = 32  # of more first budgets than these, some are interpolated between others
MANY_STARTS = 96  # up to this number, SLSQP runs from all starts
# larger numbers are not tried after two relative improvements of the error below this
IMPROVEMENT = 1e-7
SAME = 1e-7  # first budgets above the tail's by no more than this share become part of the tail


@dataclass(frozen=True)
class EndlessBudgets(FrozenArrays):
    """Budgets for a series of any length: `first` (K,), K >= 0, then `tail` for each later release;
    nats."""

    first: np.ndarray
    tail: float

    def budgets(self, horizon: int) -> np.ndarray:
        """The budgets of the first `horizon` releases, (horizon,)."""
        horizon = check_horizon(horizon)
        first = self.first[:horizon]
        later = np.full(horizon - first.size, self.tail)
        return np.concatenate([first, later])

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
        reached = (1.0 - p) ** np.arange(count + 1)  # Pr(T >= t)
        errors = reached[:count] / self.first**power
        expected_tail = reached[count] / p
        error_of_tail = expected_tail / self.tail**power
        return float(errors.sum() + error_of_tail)


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
    local optima, with at most 768 first budgets; deterministic. Takes 0.03 to 1 s. Where the series
    probably ends soon, or the correlation is strong, the best budgets fall for a long time, so that
    a series that continues gets very noisy. Look at `tail`.

    Parameters
    ----------
    alpha : float > 0
        The level of temporal privacy leakage in nats.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None
        Pr(l^{t-1} | l^t), the same at all times. None: the adversary does not know it.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    stopping_probability : float
        In (0, 1): the probability that a release is the last.
    error : {"absolute", "squared"}, optional
        Whether to minimise the sum of 1 / epsilon_t, or of 1 / epsilon_t^2.

    Returns
    -------
    EndlessBudgets
        The `first` budgets and the `tail`, in nats.

    Raises
    ------
    NoFiniteSupremumError
        If no constant budget keeps the level.
    ValueError
        For a number out of range, matrices that are not row-stochastic or whose states disagree,
        and a cycle of different matrices, which has no constant tail.
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
    sides = _losses_of_all_steps(backward, forward)
    budget = allocate_by_upper_bound(alpha, *sides)
    constant = EndlessBudgets(np.empty(0), budget)
    if all(loss is None or loss.is_zero for loss in sides):
        return constant

    def expected_error(budgets: EndlessBudgets) -> float:
        return budgets.expected_error(p, error)

    best = constant
    without_improvement = 0
    for count in FIRST:
        problem = Endless(alpha, *sides, p, power, count)
        solutions = _local_optima(problem, best, constant.tail, p)
        before = expected_error(best)
        best = min([best, *solutions], key=expected_error)
        if expected_error(best) < before * (1.0 - IMPROVEMENT):
            without_improvement = 0
        else:
            without_improvement += 1
        if without_improvement == 2:
            break
    return best


def _losses_of_all_steps(
    backward: Correlation, forward: Correlation
) -> tuple[PrivacyLossFunction | None, PrivacyLossFunction | None]:
    """L of each side, which is the same at all times."""
    losses = loss_cycles(backward, forward)
    for name, side in (("backward", losses.backward), ("forward", losses.forward)):
        if not side.is_constant:
            different = len(side.distinct)
            raise ValueError(
                f"{name} must be the same at all times, found {different} different steps; "
                "allocate_by_upper_bound(alpha, backward, forward) has budgets of its phases for "
                "any number of releases"
            )
    return losses.backward.steps[0], losses.forward.steps[0]


def _local_optima(
    problem: Endless, best: EndlessBudgets, constant: float, p: float
) -> list[EndlessBudgets]:
    """Budgets that SLSQP reaches from the best so far, and from other shapes if they are few."""
    count = problem.count
    best_so_far = np.append(best.budgets(count), best.tail)
    starts = [best_so_far]
    if count <= MANY_STARTS:
        for shape in _starting_shapes(problem, constant, p):
            starts.append(problem.fit(shape, tolerance=1e-3))
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
    """The TPL in an endless series of `count` first budgets, of the first tail budget, and its
    limit there."""

    def __init__(
        self,
        alpha: float,
        backward: PrivacyLossFunction | None,
        forward: PrivacyLossFunction | None,
        p: float,
        power: int,
        count: int,
    ):
        times = np.arange(count + 1)
        weights = p * (1.0 - p) ** times
        weights[-1] /= p
        super().__init__(alpha, weights, power)
        self.count = count
        self.sides = (backward, forward)
        self.backward = Recursion([backward] * count)
        self.forward = Recursion([forward] * count)
        # for a larger tail, the supremum of one side alone exceeds alpha
        known = [loss for loss in self.sides if loss is not None]
        largest_tail = min(loss.budget_for(alpha) for loss in known)
        self.upper[-1] = np.log(largest_tail / alpha)

    def result(self, budgets: np.ndarray) -> EndlessBudgets | None:
        """The largest multiple within alpha, each budget less the margin of Algorithm 7 for
        rounding."""
        budgets = self.fit(budgets) - SAFETY * self.alpha
        if budgets.min() <= 0.0:
            return None
        first = budgets[:-1]
        tail = float(budgets[-1])
        almost_tail = tail * (1.0 + SAME)
        # the tail's budget leaks no more
        while first.size > 0 and tail <= first[-1] <= almost_tail:
            first = first[:-1]
        return EndlessBudgets(first, tail)

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        backward, forward = self.sides
        tail = budgets[-1]
        tail_change = change[-1]
        bpl_limit = _limit_for_constant(backward, tail)
        fpl_limit = _limit_for_constant(forward, tail)
        limits = bpl_limit.leakage + fpl_limit.leakage
        if not np.isfinite(limits):
            infinite = np.full(budgets.size + 1, np.inf)
            return infinite, np.zeros((infinite.size, change.shape[1]))
        bpl, bpl_change = self.backward.ascend(budgets, change)
        # Backwards in time FPL starts from its supremum, which takes the place of the last budget.
        from_end = budgets[::-1].copy()
        from_end[0] = fpl_limit.leakage
        change_from_end = change[::-1].copy()
        change_from_end[0] = fpl_limit.slope * tail_change
        fpl_from_end, fpl_change_from_end = self.forward.ascend(from_end, change_from_end)
        tpl = bpl + fpl_from_end[::-1] - budgets
        tpl_change = bpl_change + fpl_change_from_end[::-1] - change
        slope_of_limit = bpl_limit.slope + fpl_limit.slope - 1.0
        tpl_with_limit = np.append(tpl, limits - tail)
        return tpl_with_limit, np.vstack([tpl_change, slope_of_limit * tail_change])


@dataclass(frozen=True)
class _Limit:
    """The supremum of a leakage in nats, and its derivative by the constant budget (`slope`)."""

    leakage: float
    slope: float


def _limit_for_constant(loss: PrivacyLossFunction | None, epsilon: float) -> _Limit:
    """The supremum for a constant budget, whose derivative is 1 / (1 - L') at the fixed point."""
    if loss is None:
        return _Limit(epsilon, slope=1.0)
    supremum = float(loss.supremum(epsilon))
    if not np.isfinite(supremum):
        return _Limit(supremum, slope=0.0)
    rest = 1.0 - loss.slope_at(supremum)
    return _Limit(supremum, slope=1.0 / max(rest, 1e-15))


def _starting_shapes(problem: Endless, constant: float, p: float) -> Iterator[np.ndarray]:
    """Budgets to start from, up to a factor: the first budget of Algorithm 8, and falling ones."""
    size = problem.weights.size
    first, *_ = allocate_by_quantification(problem.alpha, *problem.sides, 3)
    rest = np.full(size - 1, constant)
    yield np.append(first, rest)
    # optimal under perfect correlation, where the sum of all budgets is bounded
    exponents = np.arange(size) / (1 + problem.power)
    yield (1.0 - p) ** exponents


def _check_stopping_probability(p: float) -> float:
    remedy = "for a known number of releases: allocate_optimally"
    return check_probability(p, "stopping_probability", remedy, zero=False, one=False)
