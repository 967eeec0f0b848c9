"""Budgets of least expected error among all that keep the TPL within alpha, for a known number of
releases.

The total expected error is minimised from several starts, because the problem is not convex. In a
long series only the first and the last budgets differ from a constant: they are sought on a few
knots first, then refined.
"""

from __future__ import annotations
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.allocation.minimisation import LeastError, Recursion, check_power
from tplrepro.allocation.published import (
    NoFiniteSupremumError,
    allocate_by_quantification,
    allocate_by_upper_bound,
)
from tplrepro.leakage.temporal import Correlation, as_loss_function, steps_of_both_sides
from tplrepro.leakage.timeline import Timeline
from tplrepro.validation import as_numbers, check_horizon, check_level, with_index

# above this alpha more starts are tried; several local optima were seen only for alpha above 8
CURVED = 4.0
# up to this number of releases every budget is an unknown, and SLSQP runs from every start
FEW = 24
MANY = 48  # up to this number it runs from the two best starts; beyond, equal weights allow knots
MAX_KNOTS = 96  # unknowns when knots are refined; SLSQP takes O(N^3) an iteration
LEVEL = 1e-5  # budgets that differ by less than this share of them are the constant in the middle


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
) -> np.ndarray:
    """Budgets (R,) in nats of least total error whose TPL is at most alpha at every one of T time
    points.

    Minimises sum_t w_t / epsilon_t, the expected absolute error of Laplace noise up to the
    sensitivity, or sum_t w_t / epsilon_t^2 for the "squared" `error`. The best of several local
    optima, never worse than `allocate_by_quantification`, `allocate_by_upper_bound` and alpha / T;
    deterministic.

    Arguments and errors as in `allocate_by_quantification`, also a list of a matrix for each step.
    `weights` (R,) > 0 are equal by default. With `times`, as in `leakage_at_all_times`, there are
    releases at R of the T times, and the leakage stays within alpha at the others, too. For 50
    states it takes 10 ms for T = 10, 0.2 to 1 s for 1,000; with unequal weights, a list of matrices
    or `times` 0.3 s for R = 100.

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
    alpha, horizon, power = check_level(alpha), check_horizon(horizon), check_power(error)
    before, after, _ = steps_of_both_sides(as_loss_function, backward, forward, horizon)
    timeline = Timeline.of(before, after, horizon, times)
    size = timeline.times.size
    weights = as_numbers(
        np.ones(size) if weights is None else weights,
        "weights must be numbers",
        "give one a release",
    )
    with np.errstate(all="ignore"):
        shares = weights / weights.sum()
    if weights.shape != (size,) or not ((weights > 0) & (shares > 0)).all():
        raise ValueError(
            f"weights must hold a finite number greater than 0 for each of the {size} releases, found {weights}; "
            "no share of their sum may round to 0: leave time points that do not count out of `times`"
        )
    steps = [*timeline.backward, *timeline.forward]
    if all(
        loss is None or (loss.is_zero and not (timeline.pauses and loss.ties)) for loss in steps
    ):
        return with_index(np.full(size, alpha), index)
    problem = OnTimeline(alpha, timeline, shares, power)
    one_matrix = all(step is side[0] for side in (before, after) for step in side)
    published = [problem.fit(np.full(size, alpha / size))]
    if one_matrix:
        published += _published(problem, before[0], after[0])
    starts = published[:2] + [problem.fit(shape, tolerance=1e-3) for shape in _shapes(problem)]
    if size > FEW:
        starts = sorted(starts, key=problem.cost)[:2]
    if size > MANY and size == horizon and one_matrix and np.ptp(weights) == 0.0:
        solutions = solve_on_knots(problem, starts if alpha > CURVED else starts[:1])
    else:
        solutions = [problem.solve(start) for start in starts]
    return with_index(min([*published, *map(problem.fit, solutions)], key=problem.cost), index)


class OnTimeline(LeastError):
    """The TPL of a series of known length, at the releases and at the times between them."""

    def __init__(self, alpha: float, timeline: Timeline, weights: np.ndarray, power: int):
        super().__init__(alpha, weights, power)
        self.timeline = timeline
        self.backward, self.forward = (
            Recursion(timeline.backward),
            Recursion(timeline.forward[::-1]),
        )

    def largest_tpl(self, budgets: np.ndarray) -> float:
        return self.timeline.leakage(budgets).tpl.max()

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bpl, dbpl = self.backward.ascend(budgets, change)
        fpl, dfpl = (values[::-1] for values in self.forward.ascend(budgets[::-1], change[::-1]))
        tpl, dtpl = [bpl + fpl - budgets], [dbpl + dfpl - change]
        # Before the first release and after the last one, there is less leakage than at that
        # release.
        for _time, before, loss_b, after, loss_f in self.timeline.pauses:
            if before < 0 or after == budgets.size:
                continue
            value, slope = 0.0, np.zeros(change.shape[1])
            for loss, leakage, derivative in (
                (loss_b, bpl[before], dbpl[before]),
                (loss_f, fpl[after], dfpl[after]),
            ):
                if loss is not None:
                    value += loss.at(float(leakage))
                    slope += loss.slope_at(float(leakage)) * derivative
            tpl.append([value])
            dtpl.append(slope[None])
        return np.concatenate(tpl), np.concatenate(dtpl)


def knots_at_the_ends(size: int, first: int, last: int, growth: float) -> np.ndarray:
    """The first and last of `size` releases, and some between them at distances that grow
    inwards."""
    if first + last >= size:
        return np.arange(size)
    knots = {*range(first), *range(size - last, size), size // 2}
    for position, direction in ((first - 1, 1), (size - last, -1)):
        distance = 1.0
        while (
            first <= position + direction * distance < size - last
            and abs(position - size // 2) > distance
        ):
            distance *= growth
            position += direction * round(distance)
            knots.add(min(max(position, 0), size - 1))
    return np.array(sorted(knots))


def solve_on_knots(problem: LeastError, starts: list) -> list[np.ndarray]:
    """Solve on knots denser towards both ends, then with one at each budget that differs from the
    middle."""
    size = problem.weights.size
    solutions = [problem.solve(start, knots_at_the_ends(size, 6, 6, 1.4)) for start in starts]
    best = min(solutions, key=lambda budgets: problem.cost(problem.fit(budgets, tolerance=1e-9)))
    middle = np.flatnonzero(np.abs(best / np.median(best) - 1.0) < LEVEL)
    first, last, growth = size, size, 1.4
    if middle.size:
        first, last = int(middle[0]) + 4, size - int(middle[-1]) + 3
    if first + last > MAX_KNOTS - 20:
        share = (MAX_KNOTS - 60) / (first + last)
        first, last, growth = int(first * share), int(last * share), 1.1
    knots = knots_at_the_ends(size, first, last, growth)
    return [*solutions, problem.solve(problem.fit(best, tolerance=1e-9), knots)]


def _shapes(problem: OnTimeline) -> Iterator[np.ndarray]:
    """Budgets to start from, up to a factor."""
    size, steps = problem.weights.size, np.arange(problem.weights.size)
    if np.ptp(problem.weights) > 0.0:
        yield problem.weights ** (1.0 / (1 + problem.power))
    if size <= FEW:
        yield np.where(steps % 2, 1.0, 0.2)
    if size > FEW or problem.alpha > CURVED:
        yield np.where((steps == 0) | (steps == size - 1), 1.0, 0.1)
    if size <= FEW and problem.alpha > CURVED:
        yield np.where(steps % 2, 0.2, 1.0)
        yield 2.0**-steps
        yield 2.0**steps


def _published(problem: OnTimeline, backward, forward) -> Iterator[np.ndarray]:
    """Algorithms 8 and 7 for releases at every time point; releases at fewer of them leak less."""
    timeline = problem.timeline
    yield allocate_by_quantification(problem.alpha, backward, forward, timeline.horizon)[
        timeline.times
    ]
    with suppress(NoFiniteSupremumError):
        yield np.full(
            timeline.times.size, allocate_by_upper_bound(problem.alpha, backward, forward)
        )
