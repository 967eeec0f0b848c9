"""Profiles about one time of outputs that depend on intervals of the data: theorem C of
docs/theory/intervals.md.

Let D_{a,b}(g) bound the hockey-stick divergence E_g between the laws of the whole output for data
that differ at the times a..b only. The data are a Markov chain. Going back from t, the chains of
two users are coupled: with h = eta_B(1/rho), the largest E_{1/rho} of two rows of the backward
matrix over m steps,

    N_{a,v}(g) <= (1 - h) d + h max(d, N_{a-m,v}(c g)),
    d = D_{a-m+1,v}(rho g),    c = (1 - rho) / h + rho,

for every rho in (0, 1], and N_{1,v} = D_{1,v}. N_{a,v} bounds E_g between data that differ in
a..v, the past of a drawn from the chain. Going forward in the same way, with N_{t,w-1} in place of
D, and W_T = N_{t,T},

    W_v(g) <= (1 - h) d + h max(d, W_{v+m}(c g)),    d = N_{t,v+m-1}(rho g).

W_t bounds E_g about the value at t. The coupling of Griffeath gives a second bound, of which the
smaller is taken.

Bounds are kept on a grid of log g and interpolated linearly in g, as all of them are bounds of
convex functions; rho is chosen such that c leads from one point of the grid to another. Far from t
the coupling goes by several steps at once (`checkpoints`), which rounds intervals up.
"""

from __future__ import annotations
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np

from tplfrontier.profiles.gaussian import gaussian_delta
from tplfrontier.profiles.privacy_profile import EPS, product_rounding, round_down
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.loss_over_steps import LossOfIntervals
from tplrepro.leakage.temporal import LossCycle

#: Exceeds the rounding of one step of a recursion.
UP = 1.0 + 64.0 * EPS
#: Added by each step, so that products that underflow stay bounds.
TINY = 1e-300
#: Beyond this many steps apart, checkpoints have this many leading binary digits.
DIGITS = 3
#: Times that share checkpoints; a series of at most `EXACT` times has a checkpoint at each time.
BLOCK = 32
EXACT = 48
#: Chains that agree but for this probability go on as if nothing was known of them.
NEGLIGIBLE = 1e-18
#: The shifts by which c may lead up the grid, as ratios.
RATIO = 1.2
#: Distances of normal laws are rounded up to powers of e^`LEVEL`.
LEVEL = 1e-3
#: Jumps of several steps are tried where they couple better, by this factor, than shorter ones.
BETTER = 0.9
JUMPS = (1, 2, 4, 8, 16)
#: Of e^-LARGEST_REACH the reciprocal is in range, too.
LARGEST_REACH = 690.0
#: States up to which the coupling of Griffeath is tried, which takes many products.
MOST_STATES = 100
HALVINGS = 60


@dataclass(frozen=True)
class LossGrid:
    """The losses 0, step, ..., (points - 1) step, nats, at which bounds are kept."""

    step: float
    points: int

    @cached_property
    def losses(self) -> np.ndarray:
        return self.step * np.arange(self.points)

    @property
    def reach(self) -> float:
        return self.step * self.points

    @cached_property
    def shifts(self) -> np.ndarray:
        """By how many points c may lead up: 0, 1, 2, ..., then in steps of the ratio `RATIO`."""
        shifts = [0]
        while shifts[-1] < self.points:
            following = max(shifts[-1] + 1, ceil(shifts[-1] * RATIO))
            shifts.append(following)
        return np.array(shifts[:-1])


class GaussianRows:
    """E_g of two normal laws of variance 1 a distance mu apart, at the 3 G points -G..2G-1 of a
    grid of log g: bounds, for mu rounded up to one of the levels e^(k `LEVEL`)."""

    def __init__(self, grid: LossGrid):
        self.grid = grid
        self._rows: dict[float, np.ndarray] = {}
        points = grid.points
        losses = grid.step * np.arange(2 * points)
        self._losses = round_down(losses, 8)
        self._ratios = np.exp(-losses[points:0:-1])  # e^x for the losses -G step, ..., -step
        self._missing = -np.expm1(-losses[points:0:-1])

    def rows(self, mus: np.ndarray) -> np.ndarray:
        """The bounds (K, 3 G) for distances (K,), which may be inf."""
        with np.errstate(divide="ignore"):
            levels = np.ceil(np.log(mus) / LEVEL)
        return np.stack([self._row(level) for level in levels.tolist()])

    def _row(self, level: float) -> np.ndarray:
        if level not in self._rows:
            mu = np.exp(level * LEVEL) * (1.0 + 1e-12)
            self._rows[level] = self._make_row(float(mu))
        return self._rows[level]

    def _make_row(self, mu: float) -> np.ndarray:
        points = self.grid.points
        deltas = np.asarray(gaussian_delta(mu, self._losses))
        mirrored = deltas[points:0:-1]
        below = (self._missing + self._ratios * mirrored) * UP
        return np.minimum(np.concatenate([below, deltas]), 1.0)


@dataclass(frozen=True, eq=False)
class Coupling:
    """The alternatives rho by which two chains are coupled over an interval: `apart` (R,) is h,
    `rise` (R,) by how many points of the grid c leads up, and rho g lies `fall` (R,) points below
    g, and on the way to the next one below it by the share 1 - `weight` (R,)."""

    rise: np.ndarray
    apart: np.ndarray
    fall: np.ndarray
    weight: np.ndarray

    @classmethod
    def nothing(cls) -> Coupling:
        """That of chains which agree from the first step on."""
        zero = np.zeros(1, int)
        return cls(zero, np.zeros(1), zero, np.ones(1))

    @classmethod
    def of_loss(cls, loss: PrivacyLossFunction | None, length: int, grid: LossGrid) -> Coupling:
        """That of the loss function of an interval, a product of `length` matrices."""
        if loss is None:
            return cls.nothing()
        divergence = Divergence(loss, length)
        least = np.exp(-min(grid.reach, LARGEST_REACH))
        with np.errstate(over="ignore"):  # no ratio has an infinite factor
            factors = np.exp(grid.step * grid.shifts)
        rhos = divergence.ratios_for(factors, least)
        is_possible = rhos > 0.0
        rise = grid.shifts[is_possible]
        rho = rhos[is_possible]
        of_agreement = divergence.largest_ratio_of_agreement(least)
        if of_agreement > 0.0:
            rise = np.append(rise, 0)
            rho = np.append(rho, of_agreement)
        apart = divergence.at(rho)
        falls = -np.log(rho) / grid.step
        falls = falls * (1.0 + 8.0 * EPS) + 1e-13
        falls[rho == 1.0] = 0.0
        fall = np.floor(falls).astype(int)
        share = falls - fall  # of the way down to the next point
        # g moves linearly between the points, log g does not
        of_rest = np.expm1(-(1.0 - share) * grid.step) / np.expm1(-grid.step)
        weight = np.exp(-share * grid.step) * of_rest
        is_within = fall < grid.points - 1
        weight = np.clip(weight, 0.0, 1.0)
        return cls(rise[is_within], apart[is_within], fall[is_within], weight[is_within])

    def step(self, wider: np.ndarray, narrow: np.ndarray, most: np.ndarray) -> np.ndarray:
        """The bounds (..., G) after a step.

        Parameters
        ----------
        wider : array (..., 2 G)
            Those of the wider interval, from which the chains go on, at the points 0..2G-1.
        narrow : array (..., 2 G)
            Those of the interval outside which the chains agree, at -G..G-1.
        most : array (..., G)
            Bounds that hold anyway.

        Returns
        -------
        array (..., G)
        """
        points = most.shape[-1]
        best = most.copy()
        bound = np.empty_like(best)
        d = np.empty_like(best)
        alternatives = zip(
            self.rise.tolist(),
            self.apart.tolist(),
            self.fall.tolist(),
            self.weight.tolist(),
            strict=True,
        )
        for rise, apart, fall, weight in alternatives:
            start = points - fall
            np.multiply(narrow[..., start : start + points], weight, out=d)
            if weight < 1.0:
                below = narrow[..., start - 1 : start - 1 + points]
                np.multiply(below, 1.0 - weight, out=bound)
                d += bound
            if apart:
                # (1 - h) d + h max(d, N) = d + h max(N - d, 0)
                np.subtract(wider[..., rise : rise + points], d, out=bound)
                np.maximum(bound, 0.0, out=bound)
                bound *= apart
                d += bound
            np.minimum(best, d, out=best)
        best *= UP
        best += TINY
        return np.minimum(best, 1.0)


class Divergence:
    """eta(1/rho), the largest hockey-stick divergence of two rows of an interval, rounded up."""

    def __init__(self, loss: PrivacyLossFunction, length: int):
        self.loss = loss
        self.rounding = product_rounding(loss.matrix.n_states, length)

    def at(self, rho: np.ndarray) -> np.ndarray:
        slopes = np.maximum(round_down(1.0 / rho, 4) - 1.0, 0.0)
        return np.minimum(self.loss.support(slopes) + self.rounding, 1.0)

    def variation(self) -> float:
        """The largest total variation distance of two rows."""
        return float(self.at(np.ones(1))[0])

    def ratios_for(self, factors: np.ndarray, least: float) -> np.ndarray:
        """The largest rho (K,) with (1 - rho) / eta(1/rho) + rho at least each factor (K,); 0 where
        none from `least` on has."""
        targets = factors * (1.0 + 1e-12)
        targets[factors == 1.0] = 1.0
        low = np.full(factors.shape, least)
        high = np.ones_like(factors)
        is_possible = self._factor(low) >= targets
        for _ in range(HALVINGS):
            middle = np.sqrt(low) * np.sqrt(high)
            is_enough = self._factor(middle) >= targets
            low = np.where(is_enough, middle, low)
            high = np.where(is_enough, high, middle)
        low[factors == 1.0] = 1.0
        return np.where(is_possible, low, 0.0)

    def _factor(self, rho: np.ndarray) -> np.ndarray:
        apart = np.maximum(self.at(rho), TINY)
        return (1.0 - rho) / apart + rho

    def largest_ratio_of_agreement(self, least: float) -> float:
        """The largest rho with eta(1/rho) = 0, 0 if none from `least` on has."""
        if self.at(np.array([least]))[0] > 0.0:
            return 0.0
        low = least
        high = 1.0
        if self.at(np.ones(1))[0] == 0.0:
            return 1.0
        for _ in range(HALVINGS):
            middle = np.sqrt(low) * np.sqrt(high)
            if self.at(np.array([middle]))[0] == 0.0:
                low = middle
            else:
                high = middle
        return float(low)


class SideOfIntervals:
    """How the chains of two users are coupled over any interval, on one side.

    Parameters
    ----------
    losses : LossCycle
        What is known of each step.
    side : "backward" or "forward"
    grid : LossGrid
    """

    def __init__(self, losses: LossCycle, side: str, grid: LossGrid):
        self.losses = losses
        self.grid = grid
        self._intervals = LossOfIntervals(losses, side)
        self._couplings: dict[tuple[int, int], Coupling] = {}
        self._losses: dict[tuple[int, int], PrivacyLossFunction | None] = {}
        self._variations: dict[tuple[int, int], float] = {}
        self._has_products = all(_has_products(loss) for loss in losses.distinct)

    def _loss(self, start: int, length: int) -> PrivacyLossFunction | None:
        """L of `length` steps from a time on; without products that of the first of them, as longer
        is never more."""
        if length == 1 or not self._has_products:
            return self.losses.at(start)
        key = (self.losses.place_of(start), length)
        if key not in self._losses:
            self._losses[key] = self._intervals.make_loss(*key)
        return self._losses[key]

    def coupling(self, start: int, length: int) -> Coupling:
        """That over `length` steps from a time on."""
        key = (self.losses.place_of(start), length)
        if key not in self._couplings:
            loss = self._loss(start, length)
            self._couplings[key] = Coupling.of_loss(loss, length, self.grid)
        return self._couplings[key]

    def variation(self, start: int, length: int) -> float:
        """The largest total variation distance of two rows over `length` steps from a time on, at
        most the product of those of two parts, which has no rounding of a difference."""
        key = (self.losses.place_of(start), length)
        if key not in self._variations:
            variation = 0.0
            loss = self._loss(*key)
            if loss is not None:
                variation = Divergence(loss, length).variation()
            if length > 1:
                first = 1 << ((length - 1).bit_length() - 1)
                rest = self.variation(start + first, length - first)
                variation = min(variation, self.variation(start, first) * rest * UP)
            self._variations[key] = variation
        return self._variations[key]

    @property
    def n_states(self) -> int:
        """0 if no matrix is known."""
        return max((loss.matrix.n_states for loss in self.losses.distinct), default=0)

    def useful_jumps(self, start: int, most: int) -> list[int]:
        """The numbers of steps at once, up to `most` from a time on, that are worth trying."""
        useful = [1]
        best = self.variation(start, 1)
        for jump in JUMPS[1:]:
            if jump > most or best < NEGLIGIBLE or not self._has_products:
                break
            composed = best * best
            variation = self.variation(start, jump)
            if variation < BETTER * composed:
                useful.append(jump)
            best = min(variation, composed)
        return useful


def _has_products(loss: PrivacyLossFunction) -> bool:
    """Whether a loss function says what a product of its steps leaks."""
    from tplrepro.leakage.near_habit import NearHabitLoss
    from tplrepro.leakage.prior_free import PriorFreeLoss

    return loss.of_matrix or isinstance(loss, (NearHabitLoss, PriorFreeLoss))


class Checkpoints(NamedTuple):
    """The times at which chains may agree: of the past, from the earliest to the last time of a
    block, and of the future, from the first time of the block on.

    `starts` are the first times of intervals outside which they agree, the first one that of the
    whole series, and `ends` (K,) the last ones, the last one that of the series.
    """

    past: list[int]
    future: list[int]
    starts: list[int]
    ends: np.ndarray


def distances(most: int, is_exact: bool) -> list[int]:
    """Growing numbers of steps 1, 2, ... up to `most`; unless they are exact, only those of few
    leading digits.

    >>> distances(21, is_exact=False)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 21]
    """
    found = []
    distance = 1
    while distance < most:
        found.append(distance)
        gap = 1
        if not is_exact:
            gap <<= max(distance.bit_length() - DIGITS, 0)
        distance += gap
    if most > 0:
        found.append(most)
    return found


class Extents(NamedTuple):
    """The first times of past intervals and the last times of future ones, each from the shortest
    to the longest, and the probabilities with which two chains differ as far."""

    past: np.ndarray
    future: np.ndarray


class Intervals:
    """Bounds about each time of a series, from those for data that differ in an interval only.

    Parameters
    ----------
    backward, forward : LossCycle
        What is known of each step.
    ends : tuple of int
        The first and the last time of the series.
    grid : LossGrid
    """

    def __init__(
        self, backward: LossCycle, forward: LossCycle, ends: tuple[int, int], grid: LossGrid
    ):
        self.past = SideOfIntervals(backward, "backward", grid)
        self.future = SideOfIntervals(forward, "forward", grid)
        self.first, self.last = ends
        self.grid = grid

    def blocks(self, times: Sequence[int]) -> list[range]:
        """The times, which follow each other, in blocks that share checkpoints."""
        start = times[0]
        stop = times[-1] + 1
        if self._is_exact:
            return [range(start, stop)]
        return [range(t, min(t + BLOCK, stop)) for t in range(start, stop, BLOCK)]

    @property
    def _is_exact(self) -> bool:
        return self.last - self.first < EXACT

    def checkpoints(self, block: range) -> Checkpoints:
        """The times at which chains may agree, up to where they agree almost certainly."""
        past = []
        for distance in distances(block[0] - self.first, self._is_exact):
            past.append(block[0] - distance)
            if self.past.variation(past[-1], distance) < NEGLIGIBLE:
                break
        future = []
        for distance in distances(self.last - block[-1], self._is_exact):
            future.append(block[-1] + distance)
            if self.future.variation(block[-1], distance) < NEGLIGIBLE:
                break
        all_past = [*past[::-1], *block]
        all_future = [*block, *future]
        starts = [self.first, *(time + 1 for time in all_past[:-1])]
        ends = np.array([*(time - 1 for time in all_future[1:]), self.last])
        return Checkpoints(all_past, all_future, starts, ends)

    def bounds(self, block: range, rows: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
        """The bounds about each time of a block.

        Parameters
        ----------
        block : range
            One of `blocks`.
        rows : callable
            rows(start, ends), with one of `starts` and some of the `ends` (K,) of the block's
            checkpoints, are the bounds (K, 3 G) of E_g for data that differ from the start to each
            end only, at the points -G..2G-1 of the grid; they grow with the interval.

        Returns
        -------
        array (times, G), at all points of the grid
        """
        return _BlockOfTimes(self, block, rows).bounds()


class _BlockOfTimes:
    """The recursions for the times of one block.

    The columns of its arrays are the last times of intervals.
    """

    def __init__(
        self, intervals: Intervals, block: range, rows: Callable[[int, np.ndarray], np.ndarray]
    ):
        self.intervals = intervals
        self.block = block
        self.rows = rows
        self.points = intervals.grid.points
        self.past, self.future, self.starts, self.ends = intervals.checkpoints(block)
        #: Of intervals from the first time of the series on, (columns, 3 G).
        self.whole = self._rows(intervals.first, 0)

    def _rows(self, start: int, column: int) -> np.ndarray:
        """E_g for data that differ from a time on, up to the end of each column from one on."""
        return self.rows(start, self.ends[column:])

    def _first_column(self, time: int) -> int:
        """The first column whose interval reaches a time."""
        return max(time - self.block[0], 0)

    def _wider(self, bounds: np.ndarray, most: np.ndarray) -> np.ndarray:
        """Bounds (..., G) with those beyond the grid, (..., 2 G); `most` (..., 3 G) bound them."""
        points = self.points
        beyond = np.minimum(bounds[..., -1:], most[..., 2 * points :])
        return np.concatenate([bounds, beyond], axis=-1)

    def bounds(self) -> np.ndarray:
        couplings = self._bounds_by_coupling_in_turn()
        if self._tries_griffeath:
            couplings = np.minimum(couplings, self._bounds_by_griffeath())
        return couplings

    @property
    def _tries_griffeath(self) -> bool:
        sides = (self.intervals.past, self.intervals.future)
        return max(side.n_states for side in sides) <= MOST_STATES

    def _bounds_by_coupling_in_turn(self) -> np.ndarray:
        apart = self._bounds_with_a_drawn_past()
        return self._bounds_with_a_drawn_future(apart)

    def _bounds_with_a_drawn_past(self) -> list[np.ndarray]:
        """N_{t,v} for each time t of the block, (columns, G), and the columns v."""
        points = self.points
        side = self.intervals.past
        jumps = side.useful_jumps(self.past[0], self.past[-1] - self.past[0])
        first_of_block = len(self.past) - len(self.block)
        reached = {0: self.whole[:, points : 2 * points]}  # N at each checkpoint
        for place in range(1, len(self.past)):
            time = self.past[place]
            column = self._first_column(time)
            best = self.whole[column:, points : 2 * points]
            most = self.whole[column:]
            for jump in jumps:
                if jump > place:
                    break
                earlier = self.past[place - jump]
                before = reached[place - jump]
                wider = self._wider(before[before.shape[0] - most.shape[0] :], most)
                narrow = self._rows(earlier + 1, column)[:, : 2 * points]
                coupling = side.coupling(earlier, time - earlier)
                best = coupling.step(wider, narrow, best)
            reached[place] = best
            if place - jumps[-1] < first_of_block:
                reached.pop(place - jumps[-1], None)
        return [reached[place] for place in range(first_of_block, len(self.past))]

    def _bounds_with_a_drawn_future(self, apart: list[np.ndarray]) -> np.ndarray:
        """W_t for each time t of the block, (times, G)."""
        side = self.intervals.future
        jumps = side.useful_jumps(self.future[0], self.future[-1] - self.future[0])
        count = len(self.future)
        times = len(self.block)
        ratios = np.exp(-self.intervals.grid.losses)
        last = np.stack([bounds[-1] for bounds in apart])
        most = self.whole[-1:]
        found = np.empty((times, self.points))
        reached = {count - 1: last}
        if count == times:
            found[-1] = last[-1]
        for place in reversed(range(count - 1)):
            known = min(place + 1, times)  # the times of the block up to this one
            best = last[:known]
            for jump in jumps:
                if place + jump >= count:
                    break
                later = place + jump
                column = later - 1
                inside = np.stack([apart[time][column - time] for time in range(known)])
                narrow = _with_ratios_below_1(inside, ratios)
                wider = self._wider(reached[later][:known], most)
                coupling = side.coupling(
                    self.future[place], self.future[later] - self.future[place]
                )
                best = coupling.step(wider, narrow, best)
            reached[place] = best
            reached.pop(place + jumps[-1], None)
            if place < times:
                found[place] = best[-1]
        return found

    def _bounds_by_griffeath(self) -> np.ndarray:
        """The sum over intervals of the probability that two chains differ in it, times the bound
        for data that do, (times, G)."""
        points = self.points
        starts = self.starts
        rows = {}
        found = []
        for time in self.block:
            extents = self._extents(time)
            column = self._first_column(time)
            total = np.zeros(points)
            for start, weight in zip(starts, extents.past.tolist(), strict=False):
                if weight == 0.0:
                    continue
                if start not in rows:
                    first_column = self._first_column(max(start, self.block[0]))
                    rows[start] = self._rows(start, first_column)[:, points : 2 * points]
                from_time = rows[start][rows[start].shape[0] - (self.ends.size - column) :]
                total += weight * (extents.future @ from_time)
            found.append(total)
        bounds = np.array(found)
        return np.minimum(bounds * (1.0 + 8.0 * EPS * (len(starts) + self.ends.size)) + TINY, 1.0)

    def _extents(self, time: int) -> Extents:
        """The probabilities that the past of two users differs from each start on, the earliest
        first, and the future up to the end of each column."""
        place = self.past.index(time)
        apart_before = [self._variation_before(earlier, time) for earlier in self.past[:place]]
        agreed_later = np.maximum.accumulate([0.0, *apart_before, 1.0])
        past = np.diff(agreed_later)
        after = self.future[self._first_column(time) :]
        apart_after = [self._variation_after(time, later) for later in after[1:]]
        falling = np.minimum.accumulate([1.0, *apart_after, 0.0])
        future = -np.diff(falling)
        return Extents(past, future)

    def _variation_before(self, earlier: int, time: int) -> float:
        start = self.block[0]
        if time - earlier > EXACT and earlier < start:
            time = start
        return self.intervals.past.variation(earlier, time - earlier)

    def _variation_after(self, time: int, later: int) -> float:
        stop = self.block[-1]
        if later - time > EXACT and later > stop:
            time = stop
        return self.intervals.future.variation(time, later - time)


def _with_ratios_below_1(bounds: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Bounds (..., G) at the points 0..G-1, with those at -G..-1: E_g = 1 - g + g E_{1/g}, as they
    hold for both orders of a pair; `ratios` (G,) are 1 / g. At the end of the grid it is at most 1.
    """
    below = 1.0 - ratios[1:] + ratios[1:] * bounds[..., 1:]
    mirrored = np.minimum(below[..., ::-1] * UP, 1.0)
    lowest = np.ones((*bounds.shape[:-1], 1))
    return np.concatenate([lowest, mirrored, bounds], axis=-1)
