"""Linear answers with Gaussian noise, such as running totals, trees and windows, within (epsilon,
delta) about each time.

Data that differ in an interval only move the answers by at most mu standard deviations: with A the
strategy over the noise of each answer, G = A' A and D the sensitivity, mu^2 = D^2 sum |G_uv| over u
and v in the interval. `tplfrontier.profiles.intervals` makes of these a bound about each time, by
theorem C of docs/theory/intervals.md.
"""

from __future__ import annotations
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array

from tplfrontier.budgets.linear_mechanisms import check_scales, check_strategy
from tplfrontier.profiles.gaussian import gaussian_epsilon, gaussian_mu
from tplfrontier.profiles.intervals import Checkpoints, GaussianRows, Intervals, LossGrid
from tplfrontier.profiles.privacy_profile import EPS, PrivacyProfile, falling_probabilities
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    LossCycle,
    LossMaker,
    is_cycle,
    steps_of_both_sides,
)
from tplrepro.progress import with_progress
from tplrepro.search import largest_within
from tplrepro.validation import (
    as_scalar,
    check_delta,
    check_entries,
    check_level,
    check_sensitivity,
)

#: Points of the grid in an epsilon, and the grid in epsilons; a coarse one for first guesses.
FINE = 64
COARSE = 16
REACH = 4
#: Up to this epsilon grids are tried, nats: what is larger is bounded by that about all times.
LARGEST = 170.0
#: The largest epsilon that a grid reaches.
FURTHEST = REACH * LARGEST
#: Guesses of epsilon on a coarse grid, from so many blocks of times.
GUESSES = 8
GUESSED = 4
#: How many columns of the strategy are multiplied at once.
COLUMNS = 64
#: From this share of entries on, a strategy is multiplied as an array.
DENSE = 0.1
#: The relative tolerance of the noise.
TOLERANCE = 1e-3
#: By which factor a fine grid may allow a higher precision than a coarse one, at most.
FINER = 1.25
#: More than what underflows in the square root of a sum of products of numbers up to 1.
UNDERFLOW = 1e-150


def linear_gaussian_leakage(
    strategy: Any,
    scale: ArrayLike,
    delta: float,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    sensitivity: float = sqrt(2.0),
) -> np.ndarray:
    """The epsilon about each time of linear answers with Gaussian noise, at a given delta.

    The strategy is fixed in advance. 1,000 running totals take some ten seconds.

    Parameters
    ----------
    strategy : array-like or scipy.sparse matrix (R, T)
        A row for each of R published answers. A lower triangle of ones publishes running totals.
    scale : float > 0 or array-like (R,)
        The standard deviation of each answer's noise.
    delta : float
        Above 0 and below 1.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, list, Cycle, or None
        Pr(l^{t-1} | l^t): row by row the probabilities of the value before. A list of T - 1
        holds the matrix of each step between two time points. None: the adversary does not know it.
        The promise is to users whose first state has the law that this side assumes: for a
        `reverse()` without a start, those who start in the habit.
    forward : as `backward`
        Pr(l^t | l^{t-1}): row by row the probabilities of the value after.
    sensitivity : float > 0, optional
        By how much the numbers of one time change with the data of that time, in the L2 norm: by
        default sqrt(2), since a person who moves changes two counts by 1.

    Returns
    -------
    ndarray (T,)
        In nats, rounded up.

    Raises
    ------
    ValueError
        For numbers outside their ranges, matrices that are not row-stochastic, whose states
        disagree or that are not T - 1.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> totals = np.tril(np.ones((8, 8)))
    >>> linear_gaussian_leakage(totals, 40.0, 1e-6, backward, forward).round(2).tolist()
    [1.12, 1.24, 1.24, 1.15, 1.01, 0.85, 0.66, 0.46]
    """
    delta = as_scalar(check_delta(delta), "delta")
    weights = _weights_of(strategy, scale)
    answers = LinearAnswers(weights, *_steps_over_time(backward, forward, weights.shape[1]))
    return answers.epsilons(check_sensitivity(sensitivity), delta)


def allocate_linear_noise(
    epsilon: float,
    delta: float,
    strategy: Any,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    scale: ArrayLike = 1.0,
    sensitivity: float = sqrt(2.0),
) -> Any:
    """The least Gaussian noise that keeps linear answers within (epsilon, delta) about each time.

    It is found to 0.1 %; above 680 nats it may be more than that too large. 1,000 running totals
    take a minute.

    Parameters
    ----------
    epsilon : float > 0
        In nats.
    delta : float
        Above 0 and below 1.
    strategy : array-like or scipy.sparse matrix (R, T)
        As in `linear_gaussian_leakage`.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, list, Cycle, or None
        Pr(l^{t-1} | l^t), as in `linear_gaussian_leakage`.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    scale : float > 0 or array-like (R,), optional
        The proportions of the standard deviations of the answers' noise.
    sensitivity : float > 0, optional
        By how much the numbers of one time change with the data of that time, in the L2 norm,
        as in `linear_gaussian_leakage`.

    Returns
    -------
    float or ndarray (R,)
        The standard deviation of all answers' noise, or of each, as `scale` is.

    Raises
    ------
    ValueError
        For numbers outside their ranges, matrices that are not row-stochastic, whose states
        disagree or that are not T - 1, or a strategy without entries.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> totals = np.tril(np.ones((8, 8)))
    >>> round(allocate_linear_noise(1.0, 1e-6, totals, backward, forward), 1)
    49.0
    """
    epsilon = check_level(epsilon, "epsilon")
    delta = as_scalar(check_delta(delta), "delta")
    weights = _weights_of(strategy, scale)
    answers = LinearAnswers(weights, *_steps_over_time(backward, forward, weights.shape[1]))
    factor = answers.least_factor(epsilon, delta, check_sensitivity(sensitivity))
    scales = np.asarray(scale, dtype=float) * factor
    if scales.ndim == 0:
        return float(scales)
    return scales


class LinearAnswers:
    """Linear answers over T times: `weights` (R, T) are the strategy over the noise of each answer,
    `backward` and `forward` what is known of each step."""

    def __init__(self, weights: csr_array, backward: LossCycle, forward: LossCycle):
        self.backward = backward
        self.forward = forward
        self.horizon: int = weights.shape[1]
        self._products = ColumnProducts.of(weights)

    def _intervals(self, grid: LossGrid) -> Intervals:
        return Intervals(self.backward, self.forward, (0, self.horizon - 1), grid)

    @cached_property
    def _mus(self) -> list[IntervalMus]:
        """Those of each block, for a sensitivity of 1."""
        any_grid = LossGrid(1.0, COARSE)
        intervals = self._intervals(any_grid)
        blocks = intervals.blocks(range(self.horizon))
        checkpoints = [intervals.checkpoints(block) for block in blocks]
        return self._products.mus_of_intervals(checkpoints)

    @property
    def _whole(self) -> float:
        """The distance of the laws of data that differ at any times."""
        return float(self._mus[0].values[0, -1])

    @cached_property
    def _highest(self) -> float:
        """The largest distance of the laws of data that differ at one time."""
        return self._products.largest_norm

    def bounds(
        self, sensitivity: float, grid: LossGrid, most_blocks: int | None = None
    ) -> Iterator[np.ndarray]:
        """The bounds (times, G) of each block in turn, or of a few of them."""
        intervals = self._intervals(grid)
        gaussian = GaussianRows(grid)
        blocks = [*zip(intervals.blocks(range(self.horizon)), self._mus, strict=True)]
        if most_blocks is not None and len(blocks) > most_blocks:
            places = np.linspace(0, len(blocks) - 1, most_blocks).astype(int)
            blocks = [blocks[place] for place in places]
        for block, mus in with_progress(blocks, "intervals", "block"):

            def rows(start: int, ends: np.ndarray, mus: IntervalMus = mus) -> np.ndarray:
                return gaussian.rows(mus.from_start(start, ends) * sensitivity * (1.0 + 4.0 * EPS))

            yield intervals.bounds(block, rows)

    def epsilons(self, sensitivity: float, delta: float) -> np.ndarray:
        """The epsilon of each time at delta, (T,), nats."""
        most = float(gaussian_epsilon(self._whole * sensitivity * (1.0 + 4.0 * EPS), delta))
        if most in (0.0, inf):
            return np.full(self.horizon, most)
        guess = self._guess(most, sensitivity, delta)
        while True:
            grid = LossGrid(guess / FINE, REACH * FINE)
            found = self._epsilons_on(grid, sensitivity, delta)
            if found.max() < inf or grid.reach > most or guess >= LARGEST:
                return np.minimum(found, most)
            guess = min(REACH * guess, LARGEST)

    def _guess(self, most: float, sensitivity: float, delta: float) -> float:
        """About the largest epsilon, at most `most`, from a coarse grid and some of the times."""
        least = float(gaussian_epsilon(self._highest * sensitivity, delta))
        guess = min(sqrt(max(least, most / FINE) * most), LARGEST)
        for _ in range(GUESSES):
            grid = LossGrid(guess / COARSE, REACH * COARSE)
            found = float(self._epsilons_on(grid, sensitivity, delta, GUESSED).max())
            if found == 0.0:
                break
            if guess / 2.0 <= found <= 2.0 * guess:
                guess = found
                break
            guess = min(found, REACH * guess, LARGEST)
        return min(guess, most, LARGEST)

    def _epsilons_on(
        self, grid: LossGrid, sensitivity: float, delta: float, most_blocks: int | None = None
    ) -> np.ndarray:
        """The epsilons of all times, or of those of a few blocks."""
        found = []
        for bounds in self.bounds(sensitivity, grid, most_blocks):
            for deltas in bounds:
                profile = PrivacyProfile(falling_probabilities(deltas), grid.step)
                found.append(profile.epsilon(delta))
        return np.array(found)

    def least_factor(self, epsilon: float, delta: float, sensitivity: float) -> float:
        """The least factor of the noise, to 0.1 %, that keeps (epsilon, delta)."""
        mu = float(gaussian_mu(epsilon, delta))
        if self._highest == 0.0:
            raise ValueError(
                "strategy must have an entry other than 0, found none; "
                "answers without data need no noise"
            )
        known = mu / (self._whole * sensitivity) * (1.0 - 8.0 * EPS)
        if epsilon > FURTHEST:
            # of which grids tell nothing: all times together keep it, or the times keep FURTHEST
            known = max(known, 1.0 / self.least_factor(FURTHEST, delta, sensitivity))
        else:
            known = self._largest_precision(epsilon, delta, sensitivity, known)
        # on another grid a bound may be larger
        while self.epsilons(known * sensitivity, delta).max() > epsilon:
            known *= 1.0 - TOLERANCE
        return 1.0 / known

    def _largest_precision(
        self, epsilon: float, delta: float, sensitivity: float, known: float
    ) -> float:
        """One over the least factor, on a grid of this epsilon; `known` is one that keeps it."""
        most = float(gaussian_mu(epsilon, delta)) / (self._highest * sensitivity)

        def keeps(precision: float, points: int) -> bool:
            grid = LossGrid(epsilon / points, REACH * points)
            width = precision * sensitivity * (1.0 + 4.0 * EPS)
            return all(bounds[:, points].max() <= delta for bounds in self.bounds(width, grid))

        def keeps_on_coarse_grid(precision: float) -> bool:
            return keeps(precision, COARSE)

        def keeps_on_fine_grid(precision: float) -> bool:
            return keeps(precision, FINE)

        known = largest_within(
            keeps_on_coarse_grid, known, max(most, known), tolerance=FINER - 1.2, logarithmic=True
        )
        return largest_within(
            keeps_on_fine_grid, known, FINER * known, tolerance=TOLERANCE, logarithmic=True
        )


@dataclass(frozen=True, eq=False)
class IntervalMus:
    """The distances `values` (A, B) of the laws for data that differ between the `starts` and the
    `ends` of a block's intervals."""

    starts: dict[int, int]
    ends: np.ndarray
    values: np.ndarray

    def from_start(self, start: int, ends: np.ndarray) -> np.ndarray:
        """Those from a start to some of the ends, the last ones, (K,)."""
        row = self.values[self.starts[start]]
        return row[row.size - ends.size :]


@dataclass(frozen=True, eq=False)
class ColumnProducts:
    """The columns of a strategy over its noise, as `matrix` (R, T), times 2^`exponent`; `norms`
    (T,) of them are rounded up."""

    matrix: Any
    exponent: int
    norms: np.ndarray

    @classmethod
    def of(cls, weights: csr_array) -> ColumnProducts:
        largest = abs(weights.data).max(initial=0.0)
        exponent = int(np.frexp(largest)[1])
        scaled = weights.copy()
        with np.errstate(under="ignore"):
            scaled.data = np.ldexp(weights.data, -exponent)
        rows, columns = weights.shape
        matrix = scaled
        if weights.nnz > DENSE * rows * columns:
            matrix = scaled.toarray()
        squares = np.asarray(scaled.power(2).sum(axis=0)).ravel()
        norms = np.sqrt(squares * (1.0 + (rows + 8) * EPS)) + UNDERFLOW
        return cls(matrix, exponent, norms)

    @property
    def largest_norm(self) -> float:
        """0 if all columns are."""
        if self.norms.max() <= UNDERFLOW:
            return 0.0
        return self._unscaled(self.norms.max())

    def _unscaled(self, mus: Any) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(mus, self.exponent)

    def mus_of_intervals(self, blocks: Sequence[Checkpoints]) -> list[IntervalMus]:
        """Those of each block, from one pass over the columns, which needs memory for some of them
        only."""
        horizon = self.norms.size
        found = []
        blocks_of_end: dict[int, list[tuple[int, int]]] = {}
        for number, block in enumerate(blocks):
            rows = {start: row for row, start in enumerate(block.starts)}
            found.append(IntervalMus(rows, block.ends, np.zeros((len(rows), block.ends.size))))
            for column, end in enumerate(block.ends.tolist()):
                blocks_of_end.setdefault(end, []).append((number, column))
        starts = [np.array(block.starts) for block in blocks]
        up = 1.0 + (8 * horizon + 16) * EPS
        sums = np.zeros(horizon)  # of |G_uv| from each time to the end so far
        for end, products in enumerate(self._products_of_columns()):
            before = products[:end]
            tails = np.cumsum(before[::-1])[::-1]
            sums[:end] += 2.0 * tails
            sums[: end + 1] += products[end]
            for number, column in blocks_of_end.get(end, ()):
                chosen = sums[starts[number]] * up
                mus = np.sqrt(chosen) + UNDERFLOW * (end + 1) * (chosen > 0.0)
                found[number].values[:, column] = self._unscaled(mus)
        return found

    def _products_of_columns(self) -> Iterator[np.ndarray]:
        """|G_uv| of each column v in turn with all columns u, (T,), rounded up."""
        horizon = self.norms.size
        rounding = (self.matrix.shape[0] + 8) * EPS
        for start in range(0, horizon, COLUMNS):
            columns = self.matrix[:, start : start + COLUMNS]
            products = self.matrix.T @ columns
            if hasattr(products, "toarray"):
                products = products.toarray()
            sizes = np.outer(self.norms, self.norms[start : start + COLUMNS])
            yield from (abs(products) + rounding * sizes).T


def _weights_of(strategy: Any, scale: ArrayLike) -> csr_array:
    """The strategy over the scale of each row, (R, T)."""
    matrix = check_strategy(strategy)
    scales = check_scales(scale, matrix.shape[0])
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        weights = csr_array(diags_array(1.0 / scales) @ matrix)
    check_entries(abs(weights.data), "entries of the strategy, over the scale,")
    return weights


def _steps_over_time(
    backward: Correlation, forward: Correlation, horizon: int
) -> tuple[LossCycle, LossCycle]:
    """What is known of each of the `horizon` - 1 steps of both sides."""
    steps = steps_of_both_sides(LossMaker(), backward, forward, horizon)
    return _as_loss_cycle(steps.backward, backward), _as_loss_cycle(steps.forward, forward)


def _as_loss_cycle(steps: list[PrivacyLossFunction | None], given: Any) -> LossCycle:
    """The steps of one side, as a cycle where they repeat themselves."""
    if not steps:
        return LossCycle([None], [])
    period = len(steps)
    if is_cycle(given) and not given.first:
        period = min(period, len(given))
    elif all(step is steps[0] for step in steps):
        period = 1
    return LossCycle(steps[:period], [])
