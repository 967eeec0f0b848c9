"""Privacy profiles delta(epsilon) of releases, and their change by one step of correlation.

A profile delta(e^x) is the largest hockey-stick divergence between the output distributions of any
two values, for losses x >= 0; losses below 0 follow from both orders of a pair: delta(g) = 1 - g +
g delta(1/g). It is stored on a grid of losses, always as an upper bound: it is interpolated
linearly in g = e^x (it is convex there), truncated tails and the error of Fourier transforms count
as infinite loss, and every operation rounds up. Independent releases compose by convolution of
privacy loss distributions (Zhu, Dong, Wang 2022). With eta(g) the largest hockey-stick divergence
of two rows of the transition matrix, one step of correlation gives delta'(g) = eta(g) delta(1 + (g
- 1) / eta(g)) (Balle et al. 2019, Theorem 1; docs/theory/profiles.md). The bound on the loss itself
becomes L(bound), with L of [1].
"""

from __future__ import annotations
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import exp, expm1, inf, log1p, log2, sqrt
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.profiles.events import Composed, Curve, PureCurve, Sampled, read_event
from tplfrontier.profiles.gaussian import as_float_or_array
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.validation import (
    FrozenArrays,
    as_numbers,
    check_alpha,
    check_delta,
    check_horizon,
    check_level,
    check_probability,
)

EPS = float(np.finfo(float).eps)
UP = 1.0 + 16.0 * EPS  # exceeds the rounding of the few operations between two upper bounds
MOST_GRID = 512.0  # e^grid must stay a float
MOST_LOSS = 700.0  # of larger ones e^loss is no float
ROOM = 2.0**-50  # added by each step, so that a longer series reproduces profiles within rounding
# probability of the largest losses of one composition that may count as infinite loss
TAIL = 2.0**-53
POINTS = 2**14  # longer grids keep every second point only
# up to this number of multiplications a convolution is a direct sum, without a Fourier error
DIRECT = 2**23
# of an automatic grid, nats
COARSEST = 1e-3
FINEST = 1e-5
RESOLUTION = 16  # grid points in the total variation distance of a release


@dataclass(frozen=True, eq=False)
class PrivacyProfile(FrozenArrays):
    """An upper bound of the privacy profile of releases.

    `deltas` (J + 1,) bound delta(e^x) at the losses x_j = j `grid` (nats) and do not increase; the
    last one is the probability of a loss beyond the grid. `largest` bounds the loss itself (pure
    DP), inf if nothing does.

    Examples
    --------
    >>> once = PrivacyProfile.pure(0.1, grid=0.001)
    >>> round(once.delta(0.0), 6), round(once.delta(0.1), 6)  # (e^0.1 - 1)/(e^0.1 + 1), 0
    (0.049958, 0.0)
    >>> round(once.epsilon(0.01), 6)
    0.080768
    >>> both = once.compose(once)
    >>> round(both.epsilon(1e-9), 6), round(both.epsilon(0.01), 6), round(both.largest, 6)
    (0.2, 0.163041, 0.2)
    """

    deltas: np.ndarray
    grid: float
    largest: float = inf

    def __post_init__(self) -> None:
        deltas = as_numbers(
            self.deltas, "deltas must be numbers", "give upper bounds of delta(e^x)"
        )
        object.__setattr__(self, "deltas", deltas)
        object.__setattr__(self, "grid", check_grid(self.grid))
        super().__post_init__()
        self._check_values()

    def _check_values(self) -> None:
        if not self.largest >= 0.0:
            raise ValueError(
                f"largest must be at least 0, found {self.largest}; "
                "give a bound on the loss, or inf"
            )
        if not _are_falling_probabilities(self.deltas):
            raise ValueError(
                "deltas must be probabilities that do not rise along a grid > 0, "
                f"found {self.deltas} and grid {self.grid:g}; "
                "give upper bounds of delta(e^x) at the losses x = 0, grid, 2 grid, ..."
            )

    @classmethod
    def of_event(cls, event: Any, grid: float) -> PrivacyProfile:
        """The profile of one release.

        Parameters
        ----------
        event : DpEvent of `dp_accounting`, float or PrivacyProfile
            An event by the conventions of `tplfrontier.profiles.events`, an epsilon (nats) if only
            pure DP is known, or a profile.
        grid : float
            The distance in nats between the losses at which the profile is stored; doubled until
            at most 16,384 points suffice.

        Returns
        -------
        PrivacyProfile
            An upper bound at every loss.

        Raises
        ------
        ValueError
            For unsupported events, with a list of the supported ones, and for parameters of an
            event that are out of range.
        """
        if isinstance(event, PrivacyProfile):
            return event.on(grid)
        parsed = read_event(event)
        if isinstance(parsed, Curve):
            return cls._of_curve(parsed, grid)
        if isinstance(parsed, Composed):
            return cls._of_composed(parsed, grid)
        return cls._of_sampled(parsed, grid)

    @classmethod
    def pure(cls, epsilon: float, grid: float, delta: float = 0.0) -> PrivacyProfile:
        """The largest profile of all (epsilon, delta)-DP mechanisms.

        Parameters
        ----------
        epsilon : float >= 0
            In nats.
        grid : float
            The distance in nats between the losses at which the profile is stored.
        delta : float, optional
            A probability, by default 0: pure DP.

        Returns
        -------
        PrivacyProfile
            That of randomised response that reveals everything with probability delta.

        Raises
        ------
        ValueError
            If a number is out of range.
        """
        epsilon = float(check_alpha(epsilon, "epsilon"))
        curve = PureCurve(epsilon, check_probability(delta))
        return cls._of_curve(curve, grid)

    @classmethod
    def nothing(cls, grid: float) -> PrivacyProfile:
        """The profile of a time point without a release."""
        return cls(np.zeros(1), grid, 0.0)

    @property
    def _losses(self) -> np.ndarray:
        """The losses of the deltas, (J + 1,), nats."""
        return losses_of_grid(self.grid, self.deltas.size)

    @property
    def _infinite(self) -> float:
        """The probability of a loss beyond the grid, which counts as infinite."""
        return self.deltas[-1]

    @classmethod
    def _of_curve(cls, curve: Curve, grid: float) -> PrivacyProfile:
        grid = _grid_that_reaches(curve.reach, check_grid(grid))
        widths = curve.reach / grid * UP
        cells = np.ceil(widths)
        points = int(min(cells + 1.0, POINTS))
        losses = losses_of_grid(grid, points)
        bounds = curve.delta(round_down(losses, 4))
        probabilities = np.clip(bounds, 0.0, 1.0)
        falling = np.minimum.accumulate(probabilities)
        return cls(falling, grid, curve.largest)

    @classmethod
    def _of_composed(cls, composed: Composed, grid: float) -> PrivacyProfile:
        profile = cls.nothing(grid)
        for part, count in composed.parts:
            release = cls.of_event(part, grid)
            profile = profile.compose(release.repeat(count))
        return profile

    @classmethod
    def _of_sampled(cls, sampled: Sampled, grid: float) -> PrivacyProfile:
        """Amplification by sampling: a step of correlation with eta the sampling probability."""
        share = sampled.probability
        profile = cls.of_event(sampled.event, grid)
        largest = profile.largest
        if largest < MOST_LOSS:
            amplified = log1p(share * expm1(largest))
            largest = min(amplified * UP, largest)
        eta = np.full(profile.deltas.size, share)
        return profile._take_step(eta, largest)

    def delta(self, epsilon: ArrayLike) -> float | np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP, elementwise; epsilon in nats, finite
        and >= 0."""
        losses = check_alpha(epsilon, "epsilon")
        bounds = interpolate_deltas(self.deltas, self.grid, losses)
        probabilities = np.minimum(bounds, 1.0)
        is_beyond = losses >= self.largest
        deltas = np.where(is_beyond, 0.0, probabilities)
        return as_float_or_array(deltas)

    def epsilon(self, delta: ArrayLike) -> float | np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP, elementwise, in nats; 0 < delta < 1.

        inf where the probability of an infinite loss, including truncation and rounding, exceeds
        delta.
        """
        target = check_delta(delta)
        points = self.deltas.size
        rising = self.deltas[::-1]
        points_within = np.searchsorted(rising, target, side="right")
        first_within = points - points_within
        are_all_within = first_within == 0
        is_none_within = first_within == points
        epsilons = self._losses_in_cells(first_within, target)
        epsilons = np.where(are_all_within, 0.0, epsilons)
        epsilons = np.where(is_none_within, inf, epsilons)
        epsilons = np.minimum(epsilons, self.largest)
        return as_float_or_array(epsilons)

    def _losses_in_cells(self, ends: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The losses at which the profile falls to the target in the cells that end at these
        points, rounded up."""
        starts = ends - 1
        above = self.deltas.take(starts, mode="clip")
        below = self.deltas.take(ends, mode="clip")
        fall = above - below
        share = np.ones_like(target)
        excess = above - target
        is_falling = fall > 0.0
        np.divide(excess, fall, out=share, where=is_falling)
        rounded_up = np.minimum(share * UP, 1.0)
        width = expm1(self.grid)
        from_start = np.log1p(rounded_up * width)
        losses = starts * self.grid + from_start
        return losses * UP

    def compose(self, other: PrivacyProfile) -> PrivacyProfile:
        """The profile of two releases that are independent given the value."""
        return compose_orders((self, self), (other, other))

    def repeat(self, count: SupportsIndex) -> PrivacyProfile:
        """The profile of `count` such releases, by repeated squaring."""
        powers = Powers((self,))
        return powers.profile(0, check_horizon(count, "count"))

    def correlated(self, loss: PrivacyLossFunction, length: int = 1) -> PrivacyProfile:
        """The profile about the value at the neighbouring time point (Theorem 1 of
        docs/theory/profiles.md).

        Parameters
        ----------
        loss : PrivacyLossFunction
            That of the matrix between the two time points.
        length : int, optional
            Of how many matrices that matrix is the product, for the rounding of its entries.

        Returns
        -------
        PrivacyProfile
            On the same grid.

        Raises
        ------
        AttributeError
            For another object than a loss function.
        """
        if loss.is_identity:
            return self
        slopes = _slopes_at(self._losses)
        rounding = product_rounding(loss.matrix.n_states, length)
        rounded_up = loss.support(slopes) + rounding
        eta = np.minimum(rounded_up, 1.0)
        largest = bound_after(loss, length, self.largest)
        return self._take_step(eta, largest)

    def _take_step(self, eta: np.ndarray, largest: float) -> PrivacyProfile:
        """The profile after the step eta(g) delta(1 + (g - 1)/eta(g)), with `eta` (J + 1,) at the
        losses of the grid; `largest` bounds the loss after it."""
        if eta[0] == 0.0:
            return self.nothing(self.grid)
        losses = self._losses
        slopes = _slopes_at(losses)
        with np.errstate(divide="ignore", over="ignore"):
            # log(1 + (g - 1)/eta) >= x, with its relative precision
            losses_before = np.log1p(slopes / eta)
            without_slope = losses - np.log(eta)
        has_slope = losses < MOST_LOSS
        losses_before = np.where(has_slope, losses_before, without_slope)
        deltas_before = interpolate_deltas(self.deltas, self.grid, losses_before)
        bounds = eta * deltas_before * UP
        kept = cut_beyond(bounds, losses_before, losses[-1])
        deltas = falling_probabilities(kept)
        return PrivacyProfile(deltas, self.grid, largest)

    def _positive_masses(self) -> np.ndarray:
        """The probabilities of the losses grid, 2 grid, ..., rounded up.

        As delta is linear in e^x on each cell, p_j = (d_{j-1} - d_j) e^grid / (e^grid - 1) -
        (d_j - d_{j+1}) / (e^grid - 1).
        """
        width = expm1(self.grid)
        falls = -np.diff(self.deltas) / width
        falls_before = falls * exp(self.grid)
        following = falls[1:]
        falls_after = np.append(following, 0.0)
        masses = falls_before - falls_after
        # Masses that are only rounding are left out; the factor adds more than their sum, 64 EPS
        # delta / grid.
        most_rounding = 64.0 * EPS * falls_before
        is_clear = masses > most_rounding
        clear_masses = np.where(is_clear, masses, 0.0)
        return round_up(clear_masses, 192.0 / self.grid)

    def on(self, grid: float) -> PrivacyProfile:
        """The profile stored on another grid, as an upper bound."""
        if check_grid(grid) == self.grid:
            return self
        end = self._losses[-1]
        widths = end / grid * UP
        cells = int(np.ceil(widths))
        losses = losses_of_grid(grid, cells + 1)
        bounds = interpolate_deltas(self.deltas, self.grid, losses)
        return replace(self, deltas=falling_probabilities(bounds), grid=grid)

    def _thinned(self) -> PrivacyProfile:
        """The profile on a grid so coarse that it has at most `POINTS` points."""
        profile = self
        while profile.deltas.size > POINTS:
            if profile.grid > MOST_GRID / 2.0:  # larger losses count as infinite
                return replace(profile, deltas=profile.deltas[:POINTS])
            profile = profile._at_every_second_point()
        return profile

    def _at_every_second_point(self) -> PrivacyProfile:
        last = 2 * (self.deltas.size // 2)
        padded = np.append(self.deltas, self._infinite)
        every_second = padded[: last + 1 : 2]
        doubled = 2.0 * self.grid
        return replace(self, deltas=every_second, grid=doubled)


#: A profile of an ordered pair of values, and that of the reverse order.
Orders = tuple[PrivacyProfile, PrivacyProfile]


def _are_falling_probabilities(deltas: np.ndarray) -> bool:
    if deltas.ndim != 1 or deltas.size == 0:
        return False
    highest = deltas[0]
    lowest = deltas[-1]
    are_probabilities = lowest >= 0.0 and highest <= UP
    changes = np.diff(deltas)
    is_falling = (changes <= 0.0).all()
    return bool(are_probabilities and is_falling)


class Powers:
    """The profiles of any numbers of equal releases, composed from each other and kept.

    `kinds` are the profiles of the single releases.
    """

    def __init__(self, kinds: Sequence):
        self._composed: dict[tuple[int, int], Any] = {}
        for number, kind in enumerate(kinds):
            self._composed[number, 1] = kind

    def profile(self, kind: int, number: int) -> Any:
        """The profile of `number` releases of a kind."""
        key = (kind, number)
        if key in self._composed:
            return self._composed[key]
        first, second = _split_number(number)
        of_first = self.profile(kind, first)
        of_second = self.profile(kind, second)
        composed = of_first.compose(of_second)
        self._composed[key] = composed
        return composed

    def profiles(self, numbers: Sequence[int]) -> list:
        """The profiles of numbers[k] releases of each kind k, without kinds that have none."""
        profiles = []
        for kind, number in enumerate(numbers):
            if number:
                profiles.append(self.profile(kind, number))
        return profiles


def _split_number(number: int) -> tuple[int, int]:
    """Two summands of a number: its lowest bit and the rest, or two halves of a power of two."""
    lowest_bit = number & -number
    if lowest_bit < number:
        return number - lowest_bit, lowest_bit
    return number // 2, number // 2


def check_grid(grid: ArrayLike) -> float:
    """A distance between losses, nats."""
    grid = check_level(grid, "grid")
    if grid > MOST_GRID:
        raise ValueError(
            f"grid must be at most {MOST_GRID:g} nats, found {grid:g}; give a finer one, or None"
        )
    return grid


class Release:
    """One release, as an event, a budget or a profile; equal for equal events and for the same
    profile."""

    def __init__(self, event: Any):
        self.event = event
        self._profiles: dict[float, PrivacyProfile] = {}
        self._key: Any = event
        if not isinstance(event, PrivacyProfile):
            self._key = (type(event), repr(event))

    def copied(self) -> Release:
        """A copy of the release with an event of its own, which a caller cannot change."""
        if isinstance(self.event, PrivacyProfile):
            return self
        return Release(deepcopy(self.event))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def epsilon(self) -> float:
        """The bound on its loss, nats; inf if there is none."""
        return PrivacyProfile.of_event(self.event, COARSEST).largest

    def profile(self, grid: float) -> PrivacyProfile:
        """Its profile on a grid, made once."""
        if grid in self._profiles:
            return self._profiles[grid]
        profile = PrivacyProfile.of_event(self.event, grid)
        self._profiles[grid] = profile
        return profile


def _grid_that_reaches(loss: float, grid: float) -> float:
    """The grid, doubled until a loss is among its first `POINTS` points or it gets too coarse."""
    last = POINTS - 2
    coarsest = MOST_GRID / 2.0
    while loss > grid * last and grid <= coarsest:
        grid *= 2.0
    return grid


def automatic_grid(releases: Iterable[Release]) -> float:
    """The distance between losses that suits the weakest of the releases, nats."""
    variations = []
    for release in releases:
        profile = release.profile(COARSEST)
        variation = float(profile.delta(0.0))
        if variation > 0.0:
            variations.append(variation)
    weakest = min(variations, default=1.0)
    suitable = max(weakest / RESOLUTION, FINEST)
    return min(suitable, COARSEST)


def round_up(values: np.ndarray, roundings: float | np.ndarray) -> np.ndarray:
    """Numbers >= 0, raised by more than so many rounding errors."""
    return values * (1.0 + roundings * EPS)


def round_down(values: np.ndarray, roundings: float | np.ndarray) -> np.ndarray:
    """Numbers >= 0, lowered by more than so many rounding errors."""
    return values * (1.0 - roundings * EPS)


def losses_of_grid(grid: float, points: int) -> np.ndarray:
    """The losses 0, grid, 2 grid, ..., (points,), nats."""
    return grid * np.arange(points)


def _positive_losses(grid: float, points: int) -> np.ndarray:
    """The losses grid, 2 grid, ..., (points,), nats."""
    return grid * np.arange(1, points + 1)


def _slopes_at(losses: np.ndarray) -> np.ndarray:
    """g - 1 = e^x - 1 at losses x, rounded down."""
    finite = np.minimum(losses, MOST_LOSS)
    slopes = np.expm1(finite)
    return round_down(slopes, 4.0 + losses)


def product_rounding(n: int, length: int) -> float:
    """Exceeds the rounding of an eta and of a loss that come from a product of `length` matrices
    (n, n)."""
    if length == 1:
        return 0.0
    roundings = 4 + n * length
    return 2.0 * roundings * EPS


def bound_after(loss: PrivacyLossFunction, length: int, bound: float) -> float:
    """The bound L(bound) on a loss, nats, after a step of correlation, rounded up; `length` is of
    how many matrices that of the loss function is a product."""
    rounding = product_rounding(loss.matrix.n_states, length)
    after = loss.at_most(bound) + rounding
    return min(after, bound)


def interpolate_deltas(deltas: np.ndarray, grid: float, losses: np.ndarray) -> np.ndarray:
    """Bounds at any losses from those on a grid, linear in e^x between its points.

    Parameters
    ----------
    deltas : ndarray (..., J)
        The bounds at the losses 0, grid, ..., which do not rise.
    grid : float
        In nats.
    losses : ndarray (K,)
        At least 0, maybe inf, rounded down.

    Returns
    -------
    ndarray (..., K)
        Rounded up; beyond the grid the last bound.
    """
    last = deltas.shape[-1] - 1
    rounded_down = round_down(losses, 8)
    cells = np.floor(rounded_down / grid)
    start = np.minimum(cells, last).astype(int)
    end = np.minimum(start + 1, last)
    within_grid = np.minimum(rounded_down, last * grid)
    rounding = 4.0 * EPS * within_grid
    from_start = rounded_down - start * grid - rounding
    in_cell = np.clip(from_start, 0.0, grid)
    share_of_cell = np.expm1(in_cell) / expm1(grid)
    least_share = round_down(share_of_cell, 8)
    high = deltas[..., start]
    low = deltas[..., end]
    height = high - low
    fall = height * least_share
    return (high - fall) * UP


def falling_probabilities(bounds: np.ndarray) -> np.ndarray:
    """The least of each bound of a delta, those at smaller losses, and 1."""
    probabilities = np.minimum(bounds, 1.0)
    return np.minimum.accumulate(probabilities)


def cut_beyond(deltas: np.ndarray, before: np.ndarray, last_loss: float) -> np.ndarray:
    """`deltas` (J + 1,) after a step, up to the first one that comes from a loss, of `before` (J +
    1,), certainly at or beyond `last_loss`, the end of the grid."""
    is_beyond = round_down(before, 16) >= last_loss
    beyond = np.flatnonzero(is_beyond)
    if beyond.size == 0:
        return deltas
    first_beyond = beyond[0]
    return deltas[: first_beyond + 1]


def compose_orders(one: Orders, other: Orders) -> PrivacyProfile:
    """The profile of two independent releases for an ordered pair of values.

    Parameters
    ----------
    one, other : pair of PrivacyProfile
        A release's profile for the ordered pair, and for the reverse order.

    Returns
    -------
    PrivacyProfile
        For the ordered pair, on the coarsest of their grids: the convolution of their privacy loss
        distributions (Zhu, Dong, Wang 2022), rounded up.
    """
    first, first_reverse = one
    second, second_reverse = other
    if first.largest == 0.0:
        return second
    if second.largest == 0.0:
        return first
    profiles = (*one, *other)
    grid = max(profile.grid for profile in profiles)
    first = first.on(grid)
    second = second.on(grid)
    first_masses = _all_masses(first, first_reverse.on(grid))
    second_masses = _all_masses(second, second_reverse.on(grid))
    both_masses = (first_masses, second_masses)
    few, many = sorted(both_masses, key=np.size)
    sums = _sum_losses(few, many)
    negligible = max(TAIL, sums.error)
    truncated = _truncate_tail(sums.masses, negligible)
    infinite = first._infinite + second._infinite
    infinite += sums.error
    infinite += truncated.tail
    finite = _deltas_of_masses(truncated.masses, grid)
    bounds = (finite + infinite) * UP
    deltas = np.minimum(bounds, 1.0)
    sum_of_largest = first.largest + second.largest
    largest = sum_of_largest * (1.0 + EPS)
    composed = PrivacyProfile(deltas, grid, largest)
    return composed._thinned()


@lru_cache(8)  # the same release is composed with all before it
def _all_masses(profile: PrivacyProfile, reverse: PrivacyProfile) -> np.ndarray:
    """The probabilities of the losses -J grid, ..., J grid, rounded up: Pr(-x) = e^-x Pr(x) of the
    reverse order."""
    positive = profile._positive_masses()
    of_reverse = positive
    if reverse is not profile:
        of_reverse = reverse._positive_masses()
        size = max(positive.size, of_reverse.size)
        positive = _pad_with_zeros(positive, size)
        of_reverse = _pad_with_zeros(of_reverse, size)
        missing = _missing_variation(profile, positive, reverse, of_reverse)
        if missing > 0.0:
            share_of_first = -np.expm1(-profile.grid)
            positive[0] += missing / share_of_first
    losses = _positive_losses(profile.grid, of_reverse.size)
    negative = of_reverse * np.exp(-losses)
    is_tiny = negative < 1e-30  # products of denormal numbers are slow
    negative[is_tiny] = 0.0
    finite = 1.0 - profile._infinite
    finite -= positive.sum()
    rest = finite - negative.sum()
    at_zero = max(rest, 0.0) + 16.0 * EPS
    from_lowest = negative[::-1]
    return np.concatenate((from_lowest, [at_zero], positive))


def _pad_with_zeros(masses: np.ndarray, size: int) -> np.ndarray:
    missing = size - masses.size
    return np.pad(masses, (0, missing))


def _missing_variation(
    profile: PrivacyProfile, positive: np.ndarray, reverse: PrivacyProfile, of_reverse: np.ndarray
) -> float:
    """By how much the total variation of the reverse order is larger; not positive if it is not.

    `positive` and `of_reverse` (J,) are the masses of the losses grid, 2 grid, ... of both orders.
    Both orders of two laws have the same variation. With less, masses would be no bound at losses
    below 0.
    """
    size = positive.size
    if size == 0:
        return 0.0
    losses = _positive_losses(profile.grid, size)
    shares = -np.expm1(-losses)
    reverse_variation = reverse._infinite + shares @ of_reverse
    missing = round_up(reverse_variation, size)
    missing -= profile._infinite
    missing -= shares @ positive
    return float(missing)


@dataclass(frozen=True)
class _Truncated:
    """The masses of losses on a grid that are kept, and the sum of those beyond (`tail`)."""

    masses: np.ndarray
    tail: float


def _truncate_tail(masses: np.ndarray, most: float) -> _Truncated:
    """Leave out the masses of the largest losses, as long as their sum is at most `most`."""
    from_largest = masses[::-1]
    tails = np.cumsum(from_largest)
    place = np.searchsorted(tails, most, side="right")
    count = int(place)
    if count == 0:
        return _Truncated(masses, tail=0.0)
    tail = tails[count - 1]
    return _Truncated(masses[:-count], tail)


@dataclass(frozen=True)
class _Sums:
    """The `masses` of sums of two losses, each from `terms` products whose rounding counts, and the
    mass that may be missing from them (`error`)."""

    masses: np.ndarray
    error: float
    terms: int


def _sum_losses(few: np.ndarray, many: np.ndarray) -> _Sums:
    """The masses (J,) of the positive sums of two losses, from those of each, (2 J_1 + 1,) and (2
    J_2 + 1,), which have the loss 0 in their middle."""
    few_zero = few.size // 2
    many_zero = many.size // 2
    sum_zero = few_zero + many_zero
    few_positive = few[few_zero + 1 :]
    many_positive = many[many_zero + 1 :]
    few_at_zero = few[few_zero]
    many_at_zero = many[many_zero]
    masses = np.zeros(sum_zero)
    masses[:many_zero] += few_at_zero * many_positive
    masses[:few_zero] += many_at_zero * few_positive
    # The masses at 0 are by far the largest: they would dominate the Fourier error.
    few = few.copy()
    many = many.copy()
    few[few_zero] = 0.0
    many[many_zero] = 0.0
    rest = _convolve(few, many)
    masses += rest.masses[sum_zero + 1 :]
    roundings = 2.0 * (rest.terms + 8)
    rounded_up = round_up(masses, roundings)
    return replace(rest, masses=rounded_up)


def _convolve(few: np.ndarray, many: np.ndarray) -> _Sums:
    if few.size * many.size > DIRECT:
        return _convolve_by_fourier(few, many)
    masses = np.convolve(few, many)
    return _Sums(masses, error=0.0, terms=few.size)


def _convolve_by_fourier(few: np.ndarray, many: np.ndarray) -> _Sums:
    """The convolution of masses, with more than the error of each sum."""
    from scipy.signal import fftconvolve

    sums = fftconvolve(few, many)
    masses = np.maximum(sums, 0.0)
    few_total = float(few.sum())
    many_total = float(many.sum())
    few_norm = sqrt(few.max() * few_total)  # at least the L2 norm
    many_norm = sqrt(many.max() * many_total)
    few_part = few_norm * many_total
    many_part = many_norm * few_total
    norms = few_part + many_part
    size = masses.size
    levels = log2(2 * size)
    roundings = sqrt(size) * levels
    # about 50 times the largest error seen
    error = 2.0 * EPS * roundings * norms
    return _Sums(masses, error, terms=0)


def _deltas_of_masses(masses: np.ndarray, grid: float) -> np.ndarray:
    """The deltas (J + 1,) at the losses x = 0, grid, ... from the masses p_j (J,) of x_j = grid, 2
    grid, ...: sum_j p_j (1 - e^(x - x_j))+."""
    from scipy.signal import lfilter

    # no subtraction, hence no cancellation
    from_largest = masses[::-1]
    decay = np.exp(-grid)
    recursion = [1.0, -decay]
    masses_above = lfilter([1.0], recursion, from_largest)
    falls = -np.expm1(-grid) * masses_above
    sums_from_end = np.cumsum(falls)
    sums = sums_from_end[::-1]
    deltas = np.append(sums, 0.0)
    roundings = 4.0 * (masses.size + 8)
    return round_up(deltas, roundings)
