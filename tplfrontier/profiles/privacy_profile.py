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
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from math import exp, expm1, inf, log1p, log2, sqrt
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.profiles.events import Composed, Curve, pure_curve, read_event
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
#: The coarsest and the finest automatic grid, nats; grid points in a release's total variation distance.
COARSEST, FINEST, RESOLUTION = 1e-3, 1e-5, 16


@dataclass(frozen=True, eq=False)
class PrivacyProfile(FrozenArrays):
    """An upper bound of the privacy profile of releases.

    `deltas` (J + 1,) bound delta(e^x) at the losses x_j = j `grid` (nats) and do not increase; the
    last one is the probability of a loss beyond the grid. `largest` bounds the loss itself (pure
    DP), inf if nothing does.

    Examples
    --------
    >>> once = PrivacyProfile.pure(0.1, grid=0.001)
    >>> round(once.delta(0.0), 6), round(once.delta(0.1), 6), round(once.epsilon(0.01), 6)  # (e^0.1 - 1)/(e^0.1 + 1)
    (0.049958, 0.0, 0.080768)
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
        vars(self).update(deltas=deltas, grid=check_grid(self.grid))
        super().__post_init__()
        if not self.largest >= 0.0:
            raise ValueError(
                f"largest must be at least 0, found {self.largest}; give a bound on the loss, or inf"
            )
        valid = deltas.ndim == 1 and deltas.size > 0
        if not (valid and 0.0 <= deltas[-1] and deltas[0] <= UP and (np.diff(deltas) <= 0.0).all()):
            raise ValueError(
                f"deltas must be probabilities that do not rise along a grid > 0, found {self.deltas} and grid "
                f"{self.grid:g}; give upper bounds of delta(e^x) at the losses x = 0, grid, 2 grid, ..."
            )

    @classmethod
    def of_event(cls, event: Any, grid: float) -> PrivacyProfile:
        """The profile of one release: a DpEvent of `dp_accounting`, an epsilon (nats) for pure DP,
        or a profile.

        ValueError for unsupported events; the message lists the supported ones.
        """
        if isinstance(event, PrivacyProfile):
            return event.on(grid)
        parsed = read_event(event)
        if isinstance(parsed, Curve):
            return cls._of_curve(parsed, grid)
        if isinstance(parsed, Composed):
            parts = (cls.of_event(part, grid).repeat(count) for part, count in parsed.parts)
            return reduce(PrivacyProfile.compose, parts, cls.nothing(grid))
        share, profile = parsed.probability, cls.of_event(parsed.event, grid)
        alpha = profile.largest
        bound = log1p(share * expm1(alpha)) if alpha < MOST_LOSS else alpha
        return profile._mixed(lambda slopes: np.full(slopes.shape, share), min(bound * UP, alpha))

    @classmethod
    def pure(cls, epsilon: float, grid: float, delta: float = 0.0) -> PrivacyProfile:
        """The largest profile of all (epsilon, delta)-DP mechanisms."""
        return cls._of_curve(
            pure_curve(float(check_alpha(epsilon, "epsilon")), check_probability(delta)), grid
        )

    @classmethod
    def nothing(cls, grid: float) -> PrivacyProfile:
        """The profile of a time point without a release."""
        return cls(np.zeros(1), grid, 0.0)

    @classmethod
    def _of_curve(cls, curve: Curve, grid: float) -> PrivacyProfile:
        grid = check_grid(grid)
        while curve.reach > grid * (POINTS - 2) and grid <= MOST_GRID / 2.0:
            grid *= 2.0
        losses = grid * np.arange(int(min(np.ceil(curve.reach / grid * UP) + 1.0, POINTS)))
        deltas = np.clip(curve.delta(losses * (1.0 - 4.0 * EPS)), 0.0, 1.0)
        return cls(np.minimum.accumulate(deltas), grid, curve.largest)

    def delta(self, epsilon: ArrayLike) -> float | np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP, elementwise; epsilon in nats, finite
        and >= 0."""
        losses = check_alpha(epsilon, "epsilon")
        deltas = np.minimum(interpolated(self.deltas, self.grid, losses), 1.0)
        deltas = np.where(losses >= self.largest, 0.0, deltas)
        return deltas if losses.ndim else float(deltas)

    def epsilon(self, delta: ArrayLike) -> float | np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP, elementwise, in nats; 0 < delta < 1.

        inf where the probability of an infinite loss, including truncation and rounding, exceeds
        delta.
        """
        target = check_delta(delta)
        end = self.deltas.size - 1
        # point within target
        first = self.deltas.size - np.searchsorted(self.deltas[::-1], target, side="right")
        high, low = self.deltas[np.maximum(first - 1, 0)], self.deltas[np.minimum(first, end)]
        share = (
            np.divide(high - target, high - low, out=np.ones_like(target), where=high > low) * UP
        )
        losses = (
            (first - 1) * self.grid + np.log1p(np.minimum(share, 1.0) * expm1(self.grid))
        ) * UP
        losses = np.select([first == 0, first > end], [0.0, inf], losses)
        losses = np.minimum(losses, self.largest)
        return losses if target.ndim else float(losses)

    def compose(self, other: PrivacyProfile) -> PrivacyProfile:
        """The profile of two releases that are independent given the value."""
        return composed((self, self), (other, other))

    def repeat(self, count: SupportsIndex) -> PrivacyProfile:
        """The profile of `count` such releases, by repeated squaring."""
        return Powers((self,)).of(0, check_horizon(count, "count"))

    def correlated(self, loss: PrivacyLossFunction, length: int = 1) -> PrivacyProfile:
        """The profile about the value at the neighbouring time point, through a loss function's
        matrix.

        The matrix may be a product of `length` others.
        """
        if loss.is_identity:
            return self
        largest = bound_after(loss, length, self.largest)
        rounding = product_rounding(loss.matrix.n_states, length)
        return self._mixed(lambda slopes: np.minimum(loss.support(slopes) + rounding, 1.0), largest)

    def _mixed(self, eta: Callable[[np.ndarray], np.ndarray], largest: float) -> PrivacyProfile:
        """The step eta(g) delta(1 + (g - 1)/eta(g)), with eta as a function of g - 1."""
        losses = self.grid * np.arange(self.deltas.size)
        # rounded down
        slopes = np.expm1(np.minimum(losses, MOST_LOSS)) * (1.0 - (4.0 + losses) * EPS)
        divergence = eta(slopes)
        if divergence[0] == 0.0:
            return self.nothing(self.grid)
        with np.errstate(divide="ignore", over="ignore"):
            # log(1 + (g - 1)/eta) >= x, with its relative precision
            before = np.where(
                losses < MOST_LOSS, np.log1p(slopes / divergence), losses - np.log(divergence)
            )
        deltas = divergence * interpolated(self.deltas, self.grid, before) * UP
        beyond = np.flatnonzero(before * (1.0 - 16.0 * EPS) >= losses[-1])
        kept = deltas[: beyond[0] + 1] if beyond.size else deltas
        return PrivacyProfile(np.minimum.accumulate(np.minimum(kept, 1.0)), self.grid, largest)

    def _masses(self) -> np.ndarray:
        """The probabilities of the losses grid, 2 grid, ..., rounded up."""
        drops = -np.diff(self.deltas) / expm1(self.grid)
        size = drops * exp(self.grid)
        masses = size - np.append(drops[1:], 0.0)
        # Masses that are only rounding are left out; the factor adds more than their sum, 64 EPS
        # delta / grid.
        return np.where(masses > 64.0 * EPS * size, masses, 0.0) * (1.0 + 192.0 * EPS / self.grid)

    def on(self, grid: float) -> PrivacyProfile:
        """The same bound on another grid."""
        if check_grid(grid) == self.grid:
            return self
        losses = grid * np.arange(int(np.ceil((self.deltas.size - 1) * self.grid / grid * UP)) + 1)
        deltas = np.minimum(interpolated(self.deltas, self.grid, losses), 1.0)
        return replace(self, deltas=np.minimum.accumulate(deltas), grid=grid)

    def _thinned(self) -> PrivacyProfile:
        """The same with at most `POINTS` points: every second one is left out until it fits."""
        profile = self
        while profile.deltas.size > POINTS:
            if profile.grid > MOST_GRID / 2.0:  # larger losses count as infinite
                return replace(profile, deltas=profile.deltas[:POINTS])
            deltas = np.append(profile.deltas, profile.deltas[-1])[
                : profile.deltas.size // 2 * 2 + 1 : 2
            ]
            profile = replace(profile, deltas=deltas, grid=2.0 * profile.grid)
        return profile


class Powers:
    """Profiles of numbers of equal releases of some `kinds`, each composed once."""

    def __init__(self, kinds: Sequence):
        self._composed: dict[tuple[int, int], Any] = {
            (number, 1): kind for number, kind in enumerate(kinds)
        }

    def of(self, kind: int, number: int) -> Any:
        """The profile of `number` releases of a kind."""
        if (kind, number) not in self._composed:
            low = number & -number
            rest = (number - low, low) if low < number else (number // 2, number // 2)
            self._composed[kind, number] = self.of(kind, rest[0]).compose(self.of(kind, rest[1]))
        return self._composed[kind, number]


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
        self._key: Any = event if isinstance(event, PrivacyProfile) else (type(event), repr(event))
        self._profiles: dict[float, PrivacyProfile] = {}

    def copied(self) -> Release:
        """The same, which a caller's changes of the event do not reach."""
        return self if isinstance(self.event, PrivacyProfile) else Release(deepcopy(self.event))

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
        if grid not in self._profiles:
            self._profiles[grid] = PrivacyProfile.of_event(self.event, grid)
        return self._profiles[grid]


def automatic_grid(releases: Iterable[Release]) -> float:
    """The distance between losses that suits the weakest of the releases, nats."""
    variations = [float(release.profile(COARSEST).delta(0.0)) for release in releases]
    finest = min((variation for variation in variations if variation > 0.0), default=1.0)
    return min(max(finest / RESOLUTION, FINEST), COARSEST)


def product_rounding(n: int, length: int) -> float:
    """Exceeds the rounding of an eta and of a loss that come from a product of `length` matrices
    (n, n)."""
    return 2.0 * (4 + n * length) * EPS if length > 1 else 0.0


def bound_after(loss: PrivacyLossFunction, length: int, bound: float) -> float:
    """The bound L(bound) on a loss after a step of correlation, rounded up."""
    return min(loss.at_most(bound) + product_rounding(loss.matrix.n_states, length), bound)


def interpolated(deltas: np.ndarray, grid: float, losses: np.ndarray) -> np.ndarray:
    """The bounds (..., K) at losses (K,), rounded down, maybe inf, from those (..., J) at 0, grid,
    ..."""
    end = deltas.shape[-1] - 1
    below = losses * (1.0 - 8.0 * EPS)
    cell = np.minimum(np.floor(below / grid), end).astype(int)
    within = np.clip(below - cell * grid - 4.0 * EPS * np.minimum(below, end * grid), 0.0, grid)
    share = np.expm1(within) / expm1(grid) * (1.0 - 8.0 * EPS)
    high = deltas[..., cell]
    return (high - (high - deltas[..., np.minimum(cell + 1, end)]) * share) * UP


def composed(
    one: tuple[PrivacyProfile, PrivacyProfile], other: tuple[PrivacyProfile, PrivacyProfile]
) -> PrivacyProfile:
    """The profile of two independent releases for an ordered pair of values, each given for both
    orders."""
    if one[0].largest == 0.0:
        return other[0]
    if other[0].largest == 0.0:
        return one[0]
    grid = max(profile.grid for profile in (*one, *other))
    (first, reverse), (second, second_reverse) = (
        [profile.on(grid) for profile in pair] for pair in (one, other)
    )
    sides = _all_masses(first, reverse), _all_masses(second, second_reverse)
    masses, error = _convolved(*sorted(sides, key=np.size))
    above = np.cumsum(masses[::-1])
    cut = int(np.searchsorted(above, max(TAIL, error), side="right"))
    infinite = first.deltas[-1] + second.deltas[-1] + error + (above[cut - 1] if cut else 0.0)
    deltas = _from_masses(masses[: masses.size - cut], grid) + infinite
    largest = (first.largest + second.largest) * (1.0 + EPS)
    return PrivacyProfile(np.minimum(deltas * UP, 1.0), grid, largest)._thinned()


@lru_cache(8)  # the same release is composed with all before it
def _all_masses(profile: PrivacyProfile, reverse: PrivacyProfile) -> np.ndarray:
    """The probabilities of the losses -J grid, ..., J grid, rounded up: Pr(-x) = e^-x Pr(x) of the
    reverse order."""
    positive = negative = profile._masses()
    if reverse is not profile:
        negative = reverse._masses()
        size = max(positive.size, negative.size)
        positive, negative = (
            np.pad(masses, (0, size - masses.size)) for masses in (positive, negative)
        )
        # Both orders of two laws have the same total variation. If that of the reverse order were
        # larger here, these masses would be no bound at losses below 0.
        shares = -np.expm1(-profile.grid * np.arange(1, size + 1))
        missing = (
            (reverse.deltas[-1] + shares @ negative) * (1.0 + size * EPS)
            - profile.deltas[-1]
            - shares @ positive
        )
        if size and missing > 0.0:
            positive[0] += missing / shares[0]
    mirrored = negative * np.exp(-profile.grid * np.arange(1, negative.size + 1))
    mirrored[mirrored < 1e-30] = 0.0  # products of denormal numbers are slow
    zero = 1.0 - profile.deltas[-1] - positive.sum() - mirrored.sum()
    return np.concatenate((mirrored[::-1], [max(zero, 0.0) + 16.0 * EPS], positive))


def _convolved(few: np.ndarray, many: np.ndarray) -> tuple[np.ndarray, float]:
    """Masses of the positive sums of two sets of losses around 0, and the mass that rounding may
    remove."""
    middle, centre = few.size // 2, many.size // 2
    masses = np.zeros(middle + centre)
    masses[:centre] += few[middle] * many[centre + 1 :]
    masses[:middle] += many[centre] * few[middle + 1 :]
    few, many = few.copy(), many.copy()
    # by far the largest masses: they would dominate the Fourier error
    few[middle] = many[centre] = 0.0
    if few.size * many.size <= DIRECT:
        sums, terms, error = np.convolve(few, many), few.size, 0.0
    else:
        from scipy.signal import fftconvolve

        sums, terms = np.maximum(fftconvolve(few, many), 0.0), 0
        mass, others = float(few.sum()), float(many.sum())
        # of products of L1 and L2
        norms = sqrt(few.max() * mass) * others + sqrt(many.max() * others) * mass
        # about 50 times the largest error seen
        error = 2.0 * EPS * sqrt(sums.size) * log2(2 * sums.size) * norms
    masses += sums[middle + centre + 1 :]
    return masses * (1.0 + 2.0 * (terms + 8) * EPS), error


def _from_masses(masses: np.ndarray, grid: float) -> np.ndarray:
    """The deltas at the losses 0, grid, ... from the masses of grid, 2 grid, ...: sum_j p_j (1 -
    e^(x - x_j))+."""
    from scipy.signal import lfilter

    # no subtraction, hence no cancellation
    drops = -np.expm1(-grid) * lfilter([1.0], [1.0, -np.exp(-grid)], masses[::-1])
    return np.append(np.cumsum(drops)[::-1], 0.0) * (1.0 + 4.0 * EPS * (masses.size + 8))
