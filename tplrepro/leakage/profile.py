"""Privacy profiles delta(epsilon) of releases, and what one step of correlation makes of them.

A profile is the largest hockey-stick divergence delta(e^x) of the laws of the outputs given any two values, for losses
x >= 0; below 0 it follows from both orders of a pair: delta(g) = 1 - g + g delta(1/g). It is kept at the points of a
grid, always as an upper bound: between them the dots are connected (it is convex in g = e^x), tails that are cut off
and the error of Fourier transforms count as infinite loss, and every operation is rounded up. Independent releases
compose by convolution of privacy loss distributions (Zhu, Dong, Wang 2022; Doroshenko et al. 2022). One step of
correlation, with eta(g) the largest hockey-stick divergence of two rows of the transition matrix, gives

    delta'(g) = eta(g) delta(1 + (g - 1) / eta(g))

(Balle, Barthe, Gaboardi, Geumlek 2019, Theorem 1; proof and limits in docs/theory/profiles.md); a mechanism of which
only an epsilon is known gets L(epsilon) of [1].
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from math import exp, expm1, inf, log1p, log2, sqrt
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.events import Composed, Curve, pure_curve, read_event
from tplrepro.leakage.loss_function import ROUNDING, TIES, PrivacyLossFunction
from tplrepro.validation import FrozenArrays, check_alpha, check_delta, check_horizon, check_probability

__all__ = ["PrivacyProfile", "event_key", "loss_at"]

EPS = float(np.finfo(float).eps)
#: More than the rounding of the few operations between two upper bounds.
UP = 1.0 + 16.0 * EPS
#: Mass of the largest losses of one composition that may be counted as infinite loss.
TAIL = 2.0**-53
#: Longer grids are thinned out: every second point stays.
POINTS = 2**14
#: Up to so many multiplications masses are summed up directly, without a Fourier transform and its absolute error.
DIRECT = 2**23


@dataclass(frozen=True, eq=False)
class PrivacyProfile(FrozenArrays):
    """An upper bound of the privacy profile of releases.

    `deltas` (J + 1,) bound delta(e^x) at the losses x_j = j `grid` (nats) and fall; the last one is the probability of
    a loss beyond the grid, which may be infinite. `largest` bounds the loss itself: delta(e^x) = 0 from there on (pure
    DP); inf where there is no such bound.

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
        super().__post_init__()
        ends = self.deltas[[0, -1]] if self.deltas.ndim == 1 and self.deltas.size else np.full(2, np.nan)
        if not (0.0 <= ends[1] and ends[0] <= UP and (np.diff(self.deltas) <= 0.0).all() and 0.0 < self.grid < inf):
            raise ValueError(
                f"deltas must be probabilities that do not rise along a grid > 0, found {self.deltas} and grid "
                f"{self.grid:g}; give upper bounds of delta(e^x) at the losses x = 0, grid, 2 grid, ..."
            )

    @classmethod
    def of_event(cls, event: Any, grid: float) -> "PrivacyProfile":
        """The profile of one release: a DpEvent of `dp_accounting`, an epsilon (nats) for pure DP, or a profile.

        ValueError for events that are not known, with those that are.
        """
        if isinstance(event, PrivacyProfile):
            return event.on(grid)
        found = read_event(event)
        if isinstance(found, Curve):
            return cls._of_curve(found, grid)
        if isinstance(found, Composed):
            parts = (cls.of_event(part, grid).repeat(count) for part, count in found.parts)
            return reduce(PrivacyProfile.compose, parts, cls.nothing(grid))
        share, profile = found.probability, cls.of_event(found.event, grid)
        return profile._mixed(lambda slopes: np.full(slopes.shape, share), _mixed_bound(share, profile.largest))

    @classmethod
    def pure(cls, epsilon: float, grid: float, delta: float = 0.0) -> "PrivacyProfile":
        """The largest profile of all (epsilon, delta)-DP mechanisms."""
        return cls._of_curve(pure_curve(float(check_alpha(epsilon, "epsilon")), check_probability(delta)), grid)

    @classmethod
    def nothing(cls, grid: float) -> "PrivacyProfile":
        """The profile of a time point without a release."""
        return cls(np.zeros(1), grid, 0.0)

    @classmethod
    def _of_curve(cls, curve: Curve, grid: float) -> "PrivacyProfile":
        while curve.reach > grid * (POINTS - 2):
            grid *= 2.0
        losses = grid * np.arange(int(np.ceil(curve.reach / grid * UP)) + 1)
        deltas = np.clip(curve.delta(losses * (1.0 - 4.0 * EPS)), 0.0, 1.0)
        return cls(np.minimum.accumulate(deltas), grid, curve.largest)

    def delta(self, epsilon: ArrayLike) -> float | np.ndarray:
        """The smallest delta known for (epsilon, delta)-DP, elementwise; epsilon in nats, finite and >= 0."""
        losses = check_alpha(epsilon, "epsilon")
        deltas = np.where(losses >= self.largest, 0.0, np.minimum(self._at(losses), 1.0))
        return deltas if losses.ndim else float(deltas)

    def epsilon(self, delta: ArrayLike) -> float | np.ndarray:
        """The smallest epsilon known for (epsilon, delta)-DP, elementwise, in nats; 0 < delta < 1.

        inf where the probability of an infinite loss, truncation and rounding included, is above delta.
        """
        wanted = check_delta(delta)
        end = self.deltas.size - 1
        below = self.deltas.size - np.searchsorted(self.deltas[::-1], wanted, side="right")  # the first that is
        high, low = self.deltas[np.maximum(below - 1, 0)], self.deltas[np.minimum(below, end)]
        share = np.divide(high - wanted, high - low, out=np.ones_like(wanted), where=high > low) * UP
        losses = ((below - 1) * self.grid + np.log1p(np.minimum(share, 1.0) * expm1(self.grid))) * UP
        losses = np.minimum(np.where(below == 0, 0.0, np.where(below > end, inf, losses)), self.largest)
        return losses if wanted.ndim else float(losses)

    def compose(self, other: "PrivacyProfile") -> "PrivacyProfile":
        """The profile of both releases, which are independent given the value."""
        if self.grid != other.grid:
            grid = max(self.grid, other.grid)
            return self.on(grid).compose(other.on(grid))
        if self.largest == 0.0 or other.largest == 0.0:
            return other if self.largest == 0.0 else self
        masses, error = _convolved(*sorted((self._masses(), other._masses()), key=np.size))
        above = np.cumsum(masses[::-1])
        cut = int(np.searchsorted(above, max(TAIL, error), side="right"))
        infinite = self.deltas[-1] + other.deltas[-1] + error + (above[cut - 1] if cut else 0.0)
        deltas = _from_masses(masses[: masses.size - cut], self.grid) + infinite
        largest = (self.largest + other.largest) * (1.0 + EPS)
        return PrivacyProfile(np.minimum(deltas * UP, 1.0), self.grid, largest)._thinned()

    def repeat(self, count: SupportsIndex) -> "PrivacyProfile":
        """The profile of `count` such releases, by repeated squaring."""
        left, power, total = check_horizon(count, "count"), self, self.nothing(self.grid)
        while left:
            total = total.compose(power) if left % 2 else total
            left //= 2
            power = power.compose(power) if left else power
        return total

    def correlated(self, loss: PrivacyLossFunction) -> "PrivacyProfile":
        """The profile about the value of a neighbouring time point, through the matrix of a loss function."""
        if loss.is_identity:
            return self
        return self._mixed(loss.support, loss_at(loss, self.largest))

    def _mixed(self, eta: Callable[[np.ndarray], np.ndarray], largest: float) -> "PrivacyProfile":
        """The step eta(g) delta(1 + (g - 1)/eta(g)), where eta is given as a function of g - 1."""
        losses = self.grid * np.arange(self.deltas.size)
        slopes = np.expm1(np.minimum(losses, 700.0)) * (1.0 - (4.0 + losses) * EPS)  # rounded down
        divergence = eta(slopes)
        if divergence[0] == 0.0:
            return self.nothing(self.grid)
        with np.errstate(divide="ignore", over="ignore"):
            # log(1 + (g - 1)/eta), which is not less than x and keeps its relative precision
            before = np.where(losses < 700.0, np.log1p(slopes / divergence), losses - np.log(divergence))
        deltas = divergence * self._at(before) * UP
        beyond = np.flatnonzero(before * (1.0 - 16.0 * EPS) >= losses[-1])
        kept = deltas[: beyond[0] + 1] if beyond.size else deltas
        return PrivacyProfile(np.minimum.accumulate(kept), self.grid, largest)

    def _at(self, losses: np.ndarray) -> np.ndarray:
        """The bound at losses, which may be inf, without `largest`; a loss is rounded down."""
        below, end = losses * (1.0 - 8.0 * EPS), self.deltas.size - 1
        cell = np.minimum(np.floor(below / self.grid), end).astype(int)
        within = np.clip(below - cell * self.grid - 4.0 * EPS * np.minimum(below, end * self.grid), 0.0, self.grid)
        share = np.expm1(within) / expm1(self.grid) * (1.0 - 8.0 * EPS)
        high = self.deltas[cell]
        return (high - (high - self.deltas[np.minimum(cell + 1, end)]) * share) * UP

    def _masses(self) -> np.ndarray:
        """The probabilities of the losses -J grid, ..., J grid, rounded up: a loss -x is e^-x times as likely as x."""
        drops = -np.diff(self.deltas) / expm1(self.grid)
        size = drops * exp(self.grid)
        masses = size - np.append(drops[1:], 0.0)
        # What is only rounding is left out, and made up for by less than the sum of drops <= delta / grid.
        masses = np.where(masses > 64.0 * EPS * size, masses, 0.0) * (1.0 + 192.0 * EPS / self.grid)
        mirrored = masses * np.exp(-self.grid * np.arange(1, masses.size + 1))
        mirrored[mirrored < 1e-30] = 0.0  # products of numbers at the end of the double range are slow
        none = max(1.0 - self.deltas[-1] - masses.sum() - mirrored.sum(), 0.0) + 16.0 * EPS
        return np.concatenate((mirrored[::-1], [none], masses))

    def on(self, grid: float) -> "PrivacyProfile":
        """The same bound on another grid."""
        if grid == self.grid:
            return self
        losses = grid * np.arange(int(np.ceil((self.deltas.size - 1) * self.grid / grid * UP)) + 1)
        return replace(self, deltas=np.minimum.accumulate(np.minimum(self._at(losses), 1.0)), grid=grid)

    def _thinned(self) -> "PrivacyProfile":
        profile = self
        while profile.deltas.size > POINTS:
            deltas = np.append(profile.deltas, profile.deltas[-1])[: profile.deltas.size // 2 * 2 + 1 : 2]
            profile = replace(profile, deltas=deltas, grid=2.0 * profile.grid)
        return profile


def event_key(event: Any) -> Any:
    """The same for events that are the same release; profiles are told apart by their identity."""
    return event if isinstance(event, PrivacyProfile) else (type(event), repr(event))


def _convolved(few: np.ndarray, many: np.ndarray) -> tuple[np.ndarray, float]:
    """Masses of the sums above 0 of two symmetric sets of losses, and the mass that they may lack by rounding."""
    middle, centre = few.size // 2, many.size // 2
    masses = np.zeros(middle + centre)
    masses[:centre] += few[middle] * many[centre + 1 :]
    masses[:middle] += many[centre] * few[middle + 1 :]
    few, many = few.copy(), many.copy()
    few[middle] = many[centre] = 0.0  # by far the largest, of which the error of a Fourier transform would depend
    if few.size * many.size <= DIRECT:
        sums, terms, error = np.convolve(few, many), few.size, 0.0
    else:
        from scipy.signal import fftconvolve

        sums, terms = np.maximum(fftconvolve(few, many), 0.0), 0
        mass, others = float(few.sum()), float(many.sum())
        norms = sqrt(few.max() * mass) * others + sqrt(many.max() * others) * mass  # and a little more
        error = 2.0 * EPS * sqrt(sums.size) * log2(2 * sums.size) * norms  # some 50 times what was ever found
    masses += sums[middle + centre + 1 :]
    return masses * (1.0 + 2.0 * (terms + 8) * EPS), error


def _from_masses(masses: np.ndarray, grid: float) -> np.ndarray:
    """The deltas at the losses 0, grid, ... from the masses of grid, 2 grid, ...: sum_j p_j (1 - e^(x - x_j))+."""
    from scipy.signal import lfilter

    drops = -np.expm1(-grid) * lfilter([1.0], [1.0, -np.exp(-grid)], masses[::-1])  # no subtraction, no cancellation
    return np.append(np.cumsum(drops)[::-1], 0.0) * (1.0 + 4.0 * EPS * (masses.size + 8))


def _mixed_bound(share: float, alpha: float) -> float:
    """The pure bound log(1 + share (e^alpha - 1)) of subsampling, rounded up."""
    loss = log1p(share * expm1(alpha)) if alpha < 700.0 else alpha
    return min(loss * UP, alpha)


def loss_at(loss: PrivacyLossFunction, alpha: float) -> float:
    """L(alpha), rounded up, also of an alpha without bound."""
    return min(loss.at(alpha) * (1.0 + ROUNDING) - TIES * expm1(-alpha), alpha)
