"""Budgets of least expected error among all that keep the TPL within alpha, for a known number of
releases.

The total expected error is minimised from several starts, because the problem is not convex. In a
long series only the first and the last budgets differ from a constant: they are sought on a few
knots first, then refined.
"""

from __future__ import annotations
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.allocation.minimisation import LeastError, Recursion, check_power
from tplrepro.allocation.published import (
    NoFiniteSupremumError,
    allocate_by_quantification,
    allocate_by_upper_bound,
    are_same,
    budgets_of_links,
)
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import Correlation, LossMaker, is_several, steps_of_both_sides
from tplrepro.leakage.timeline import Timeline
from tplrepro.validation import as_numbers, check_horizon, check_level, with_index

if TYPE_CHECKING:
    from pandas import Series

#: Above this alpha more starts are tried; several local optima were seen only for alpha above 8.
CURVED = 4.0
#: Up to this number of releases every budget is an unknown, and SLSQP runs from every start.
FEW = 24
#: Up to this number it runs from the two best starts; beyond, equal weights allow knots.
MANY = 48
#: Unknowns when knots are refined; SLSQP takes O(N^3) an iteration.
MAX_KNOTS = 96
#: Budgets that differ by less than this share of them are the constant in the middle.
LEVEL = 1e-5
#: A start is fitted to alpha only roughly, a solution that is compared or refined more closely.
ROUGHLY = 1e-3
CLOSELY = 1e-9


@overload
def allocate_optimally(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int,
    *,
    weights: ArrayLike | None = ...,
    times: ArrayLike | None = ...,
    error: str = ...,
    index: None = ...,
) -> np.ndarray: ...
@overload
def allocate_optimally(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int,
    *,
    weights: ArrayLike | None = ...,
    times: ArrayLike | None = ...,
    error: str = ...,
    index: Any,
) -> Series: ...
def allocate_optimally(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int,
    *,
    weights: ArrayLike | None = None,
    times: ArrayLike | None = None,
    error: str = "absolute",
    index: Any = None,
) -> Any:
    """Budgets of least total error whose TPL is at most alpha at every one of T time points.

    Minimises sum_t w_t / epsilon_t, the expected absolute error of Laplace noise up to the
    sensitivity, or sum_t w_t / epsilon_t^2, the squared one. The result is the best of several
    local optima, never worse than `allocate_by_quantification`, `allocate_by_upper_bound` and
    alpha / T; it is deterministic.

    For 50 states it takes 10 ms for T = 10, 0.2 to 1 s for 1,000; with unequal weights, a list of
    matrices or `times` 0.3 s for R = 100.

    Parameters
    ----------
    alpha : float
        The level of alpha-DP_T in nats, > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None, Cycle, or a list
        Pr(l^{t-1} | l^t), which the adversary knows, or its loss function: one for all steps, a
        list of T - 1 with one for each step, or a cycle; None if the adversary does not know that
        side. Of people who start in the habit it is `forward.reverse()`, seldom the forward matrix
        itself.
    forward : the same of Pr(l^t | l^{t-1})
    horizon : int
        The number of time points T.
    weights : array-like (R,), optional
        How much the error of each release counts, > 0, by default equally.
    times : array-like (R,) of int or (T,) of bool, optional
        The time points from 0 that have a release, by default all: R = T. The leakage stays within
        alpha at the others, too.
    error : str
        "absolute" or "squared".
    index : sequence of R labels, optional
        The labels of the releases, for a Series.

    Returns
    -------
    array (R,), or Series with `index`
        The budget of each release in nats.

    Raises
    ------
    ValueError
        If `alpha` or a weight is not positive and finite, a matrix is not row-stochastic, or times
        are not increasing from 0 to T - 1.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> budgets = allocate_optimally(1.0, backward, forward, horizon=5)
    >>> budgets.round(4).tolist(), (1 / budgets).sum().round(4).item()
    ([0.367, 0.2812, 0.2761, 0.3274, 0.3874], 15.5389)
    >>> published = allocate_by_quantification(1.0, backward, forward, horizon=5)
    >>> published.round(4).tolist(), (1 / published).sum().round(4).item()
    ([0.4998, 0.2039, 0.2039, 0.2039, 0.7041], 18.1362)
    >>> allocate_optimally(1.0, backward, forward, horizon=5, times=[0, 4]).round(4).tolist()
    [0.771, 0.9047]
    """
    alpha = check_level(alpha)
    horizon = check_horizon(horizon)
    power = check_power(error)
    make = LossMaker()
    backward = make.for_cycle(backward)
    forward = make.for_cycle(forward)
    before, after, _ = steps_of_both_sides(make, backward, forward, horizon)
    timeline = Timeline.of(before, after, horizon, times)
    size = timeline.times.size
    weights = _checked_weights(weights, size)
    if _has_no_correlation(timeline):
        all_of_alpha = np.full(size, alpha)
        return with_index(all_of_alpha, index)
    shares = weights / weights.sum()
    problem = OnTimeline(alpha, timeline, shares, power)
    equal_shares = np.full(size, alpha / size)
    published = [problem.fit(equal_shares)]
    is_one_matrix = are_same(before) and are_same(after)
    if is_one_matrix:
        published.extend(_published_budgets(problem, before[0], after[0]))
        starts = published[:2]
    else:
        published.extend(_budgets_of_links(problem, before, after))
        published.extend(_budgets_of_cycle(problem, backward, forward))
        starts = published
    is_equally_weighted = np.ptp(weights) == 0.0
    is_long = size > MANY and size == horizon
    has_knots = is_long and is_one_matrix and is_equally_weighted
    solutions = _solve_from_starts(problem, starts, has_knots)
    fitted = map(problem.fit, solutions)
    best = min([*published, *fitted], key=problem.cost)
    return with_index(best, index)


def _checked_weights(weights: ArrayLike | None, size: int) -> np.ndarray:
    """Weights of the releases, by default 1, (size,), none a negligible share of their sum."""
    if weights is None:
        weights = np.ones(size)
    numbers = as_numbers(weights, "weights must be numbers", "give one a release")
    with np.errstate(all="ignore"):
        shares = numbers / numbers.sum()
    is_counted = (numbers > 0) & (shares > 0)
    if numbers.shape != (size,) or not is_counted.all():
        raise ValueError(
            f"weights must hold a finite number greater than 0 for each of the {size} releases, "
            f"found {numbers}; no share of their sum may round to 0: "
            "leave time points that do not count out of `times`"
        )
    return numbers


def _has_no_correlation(timeline: Timeline) -> bool:
    """Whether each leakage is its budget: no step adds anything."""

    for loss in [*timeline.backward, *timeline.forward]:
        if loss is None:
            continue
        if not loss.is_zero:
            return False
        if timeline.pauses and loss.ties:
            return False
    return True


def _solve_from_starts(
    problem: OnTimeline, published: list[np.ndarray], has_knots: bool
) -> list[np.ndarray]:
    """What SLSQP makes of `published` budgets, each (R,), and of other shapes; in a long series, of
    the best two of them. `has_knots`: the unknowns are budgets at a few releases, between which the
    others are interpolated."""
    shapes = [problem.fit(shape, tolerance=ROUGHLY) for shape in _starting_shapes(problem)]
    starts = published + shapes
    if problem.weights.size > FEW:
        by_cost = sorted(starts, key=problem.cost)
        starts = by_cost[:2]
    if not has_knots:
        return [problem.solve(start) for start in starts]
    if problem.alpha <= CURVED:
        starts = starts[:1]
    return solve_on_knots(problem, starts)


class OnTimeline(LeastError):
    """The TPL of a series of known length, at the releases and at the times between them, nats.

    `alpha`, `weights` (R,) and `power` are as in `LeastError`.
    """

    def __init__(self, alpha: float, timeline: Timeline, weights: np.ndarray, power: int):
        super().__init__(alpha, weights, power)
        self.timeline = timeline
        self.backward = Recursion(timeline.backward)
        self.forward = Recursion(timeline.forward[::-1])

    def largest_tpl(self, budgets: np.ndarray) -> float:
        return self.timeline.leakage(budgets).tpl.max()

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bpl, dbpl = self.backward.ascend(budgets, change)
        from_end = budgets[::-1]
        change_from_end = change[::-1]
        fpl_from_end, dfpl_from_end = self.forward.ascend(from_end, change_from_end)
        fpl = fpl_from_end[::-1]
        dfpl = dfpl_from_end[::-1]
        tpl = bpl + fpl - budgets
        dtpl = dbpl + dfpl - change
        leakages = [tpl]
        derivatives = [dtpl]
        # Before the first release and after the last one, there is less leakage than at that
        # release.
        for pause in self.timeline.pauses:
            k = pause.release_before
            m = pause.release_after
            if k < 0 or m == budgets.size:
                continue
            bpl_before = float(bpl[k])
            fpl_after = float(fpl[m])
            leakage = 0.0
            derivative = np.zeros(change.shape[1])
            if pause.loss_before is not None:
                leakage += pause.loss_before.at(bpl_before)
                slope = pause.loss_before.slope_at(bpl_before)
                derivative += slope * dbpl[k]
            if pause.loss_after is not None:
                leakage += pause.loss_after.at(fpl_after)
                slope = pause.loss_after.slope_at(fpl_after)
                derivative += slope * dfpl[m]
            leakage_of_pause = np.array([leakage])
            leakages.append(leakage_of_pause)
            derivatives.append(derivative[None])
        return np.concatenate(leakages), np.concatenate(derivatives)


def knots_at_the_ends(size: int, first: int, last: int, growth: float) -> np.ndarray:
    """Releases that are dense towards both ends of a series, as knots.

    Parameters
    ----------
    size : int
        The number of releases.
    first, last : int
        How many releases at each end are all knots.
    growth : float
        By which factor the distances between the others grow inwards, > 1; near the middle they may
        be shorter.

    Returns
    -------
    array (N,) of int
        The knots, ascending; the middle is one of them.
    """
    if first + last >= size:
        return np.arange(size)
    middle = size // 2
    first_of_last = size - last
    knots = {*range(first), *range(first_of_last, size), middle}
    for position, direction in ((first - 1, 1), (first_of_last, -1)):
        distance = 1.0
        while abs(position - middle) > distance:
            following = position + direction * distance
            if not first <= following < first_of_last:
                break
            distance *= growth
            position += direction * round(distance)
            within = min(max(position, 0), size - 1)
            knots.add(within)
    return np.array(sorted(knots))


def solve_on_knots(problem: LeastError, starts: list) -> list[np.ndarray]:
    """Solve on knots denser towards both ends, then with one at each budget that differs from the
    middle.

    Parameters
    ----------
    problem : LeastError
        Of R releases with equal weights.
    starts : list of arrays (R,)
        Budgets in nats to start from.

    Returns
    -------
    list of arrays (R,)
        A solution for each start, and the refined one.
    """
    size = problem.weights.size
    knots = knots_at_the_ends(size, 6, 6, 1.4)
    solutions = [problem.solve(start, knots) for start in starts]
    fitted = [problem.fit(budgets, tolerance=CLOSELY) for budgets in solutions]
    costs = [problem.cost(budgets) for budgets in fitted]
    best = int(np.argmin(costs))
    finer_knots = _knots_where_unequal(solutions[best])
    refined = problem.solve(fitted[best], finer_knots)
    return [*solutions, refined]


def _knots_where_unequal(budgets: np.ndarray) -> np.ndarray:
    """A knot at each budget that differs from the constant in the middle, as far as there is room
    for knots."""
    size = budgets.size
    ratio = budgets / np.median(budgets)
    is_level = np.abs(ratio - 1.0) < LEVEL
    middle = np.flatnonzero(is_level)
    first = size
    last = size
    growth = 1.4
    if middle.size:
        first = int(middle[0]) + 4
        last = size - int(middle[-1]) + 3
    n_knots = first + last
    if n_knots > MAX_KNOTS - 20:
        share = (MAX_KNOTS - 60) / n_knots
        first = int(first * share)
        last = int(last * share)
        growth = 1.1
    return knots_at_the_ends(size, first, last, growth)


def _starting_shapes(problem: OnTimeline) -> Iterator[np.ndarray]:
    """Budgets to start from, up to a factor."""
    size = problem.weights.size
    steps = np.arange(size)
    is_few = size <= FEW
    is_curved = problem.alpha > CURVED
    if np.ptp(problem.weights) > 0.0:
        exponent = 1.0 / (1 + problem.power)
        yield problem.weights**exponent
    is_odd = steps % 2 == 1
    is_first = steps == 0
    is_last = steps == size - 1
    is_end = is_first | is_last
    if is_few:
        yield np.where(is_odd, 1.0, 0.2)
    if is_curved or not is_few:
        yield np.where(is_end, 1.0, 0.1)
    if is_few and is_curved:
        yield np.where(is_odd, 0.2, 1.0)
        yield 2.0**-steps
        yield 2.0**steps


def _published_budgets(
    problem: OnTimeline, backward: PrivacyLossFunction | None, forward: PrivacyLossFunction | None
) -> Iterator[np.ndarray]:
    """Budgets (R,) of Algorithms 8 and, where there is a supremum, 7 for releases at every time
    point; releases at fewer of them leak less."""
    times = problem.timeline.times
    horizon = problem.timeline.horizon
    quantified = allocate_by_quantification(problem.alpha, backward, forward, horizon)
    yield quantified[times]
    with suppress(NoFiniteSupremumError):
        budget = allocate_by_upper_bound(problem.alpha, backward, forward)
        yield np.full(times.size, budget)


def _budgets_of_links(problem: OnTimeline, before: list, after: list) -> Iterator[np.ndarray]:
    """Budgets (R,) of Algorithm 8 for releases at every time point, where all are positive.
    `before` and `after` hold the loss functions, or None, of the T - 1 steps of each side."""
    budgets = budgets_of_links(problem.alpha, before, after)
    if budgets.min() > 0.0:
        yield budgets[problem.timeline.times]


def _budgets_of_cycle(
    problem: OnTimeline, backward: Correlation, forward: Correlation
) -> Iterator[np.ndarray]:
    """Budgets (R,) of Algorithm 7 for the phases of a cycle; none for sides with a list of steps,
    or without a supremum."""
    if is_several(backward) or is_several(forward):
        return
    with suppress(NoFiniteSupremumError):
        of_phases = allocate_by_upper_bound(problem.alpha, backward, forward)
        budgets = np.resize(of_phases, problem.timeline.horizon)
        yield budgets[problem.timeline.times]
