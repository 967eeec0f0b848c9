"""The exact leakage of Gaussian releases about two states, from the distribution of log-likelihood
ratios.

Let l = log p(outputs | state 1) - log p(outputs | state 0) for all outputs up to one time. The log
ratio for the state at the next time is log (p_11 e^l + p_10) / (p_01 e^l + p_00), and the release
at that time adds a normal variable. This distribution on the line is analytic, so sums over a grid
converge exponentially to its integrals: a step of a quarter of a standard deviation gives 13
digits.
"""

from __future__ import annotations
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.profiles.gaussian import check_noise_multipliers
from tplrepro.leakage.exact import arrays_of_both_sides
from tplrepro.leakage.temporal import REQUIRED, Correlation
from tplrepro.validation import as_scalar, check_alpha, check_probability

STEPS = 4  # of the grid, in one standard deviation of a release and in one nat
NEGLIGIBLE = 1e-22  # grid points of smaller probability are left out
MAX_WORK = 4e6  # pairs of grid points in one step, which take seconds


class ExactGaussianProfile:
    """The true (epsilon, delta) of Gaussian releases about a chain of two states.

    BPL without `forward`, FPL without `backward`, TPL with both.

    Parameters
    ----------
    noise_multipliers : array-like (T,) of numbers > 0, or one with a horizon
        Standard deviation of the noise over the L2 distance of the answers for the two states.
    backward : TransitionMatrix, array-like (2, 2), a list of T - 1 of these, Cycle, or None
        Pr(l^{t-1} | l^t). None: the adversary does not know that side.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    horizon : int >= 1, optional
        The number of releases T, for a single multiplier.

    Raises
    ------
    ValueError
        For multipliers that are not positive, or for another number of states.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> exact = ExactGaussianProfile(2.0, P, None, horizon=6)
    >>> exact.delta(0.5).round(4).tolist()
    [0.0524, 0.0884, 0.1047, 0.1121, 0.1154, 0.1169]
    >>> exact.epsilon(1e-5).round(3).tolist()
    [1.993, 2.485, 2.669, 2.742, 2.772, 2.786]
    """

    def __init__(
        self,
        noise_multipliers: ArrayLike,
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        *,
        horizon: int | None = None,
    ) -> None:
        self._shifts = 1.0 / check_noise_multipliers(noise_multipliers, horizon)
        before, after, states = arrays_of_both_sides(backward, forward, self._shifts.size)
        n = len(states or range(2))
        if n != 2:
            raise ValueError(
                f"backward and forward must have 2 states, found {n}; "
                "take temporal_privacy_profile, the upper bound"
            )
        past = _ratios_of_past(self._shifts, before)
        shifts_from_end = self._shifts[::-1]
        future_from_end = _ratios_of_past(shifts_from_end, after[::-1])
        future = future_from_end[::-1]
        both_sides = zip(past, future, strict=True)
        self._ratios = [of_past.add(of_future) for of_past, of_future in both_sides]

    def delta(self, epsilon: float) -> np.ndarray:
        """The exact delta at `epsilon` >= 0 nats, for each time (T,)."""
        epsilon = as_scalar(check_alpha(epsilon, "epsilon"), "epsilon")
        times = range(self._shifts.size)
        return np.array([self._delta_at(t, epsilon) for t in times])

    def epsilon(self, delta: float) -> np.ndarray:
        """The exact epsilon at `delta` >= 1e-15, in nats for each time (T,)."""
        delta = check_probability(delta, "delta")
        if delta < 1e-15:
            raise ValueError(
                f"delta must be at least 1e-15, found {delta:g}; smaller ones are lost to rounding"
            )
        epsilons = np.zeros(self._shifts.size)
        for t in range(epsilons.size):
            epsilons[t] = self._epsilon_at(t, delta)
        return epsilons

    def _epsilon_at(self, t: int, delta: float) -> float:
        from scipy.optimize import brentq

        def excess(epsilon: float) -> float:
            return self._delta_at(t, epsilon) - delta

        if excess(0.0) <= 0.0:
            return 0.0
        high = 1.0
        while excess(high) > 0.0:
            high *= 2
        return brentq(excess, 0.0, high, xtol=1e-12)

    def _delta_at(self, t: int, x: float) -> float:
        """The delta of all releases at time t and epsilon = x, for the worse order of the two
        states."""
        shift = self._shifts[t]
        ratios = self._ratios[t].ratios
        given_0, given_1 = self._ratios[t].probabilities
        delta_of_1 = _divergences_of_normal(ratios, shift, x) @ given_1
        delta_of_0 = _divergences_of_normal(-ratios, shift, x) @ given_0
        return max(0.0, delta_of_1, delta_of_0)


def _divergences_of_normal(ratios: np.ndarray, shift: float, x: float) -> np.ndarray:
    """The hockey-stick divergences at e^x of a normal release with means `shift` deviations apart,
    whose log ratio is added to each of `ratios` (k,), those of other releases; divided by the
    probability of that ratio given the first state."""
    from scipy.special import log_ndtr, ndtr

    excess = (ratios - x) / shift
    half = shift / 2
    first = ndtr(excess + half)
    # the probability of a ratio given the second state is smaller by e^ratio
    log_second = log_ndtr(excess - half)
    log_scaled = x - ratios + log_second
    return first - np.exp(log_scaled)


@dataclass(frozen=True)
class LogRatios:
    """Log ratios (k,) of what releases tell about the two states of a time, and the probabilities
    (2, k) of each ratio given each state."""

    ratios: np.ndarray
    probabilities: np.ndarray

    def add(self, other: LogRatios) -> LogRatios:
        """The log ratios of past and future releases together, which are independent given the
        state."""
        ratios = np.add.outer(self.ratios, other.ratios)
        own = self.probabilities[:, :, None]
        others = other.probabilities[:, None]
        probabilities = own * others
        return LogRatios(ratios.ravel(), probabilities.reshape(2, -1))


#: What no release tells.
NOTHING = LogRatios(np.zeros(1), np.ones((2, 1)))


def _ratios_of_past(shifts: np.ndarray, steps: Iterable) -> list[LogRatios]:
    """For each time what earlier releases tell about its state."""
    past = [NOTHING]
    later = shifts[1:]
    for shift, following, matrix in zip(shifts, later, steps, strict=False):
        if matrix is None:
            past.append(NOTHING)
            continue
        # A sum over a grid is as good as an integral where the grid is fine for both releases that
        # meet on it.
        step = min(shift, following, 1.0) / STEPS
        before = past[-1]
        releases = len(past)
        following_ratios = _ratios_after_release(before, shift, step, matrix, releases)
        past.append(following_ratios)
    return past


def _ratios_after_release(
    before: LogRatios, shift: float, step: float, matrix: np.ndarray, releases: int
) -> LogRatios:
    """What a release with means `shift` deviations apart and those before it tell about the next
    state, on a grid of ratios `step` apart, nats.

    `matrix` (2, 2) is that of the step to the next state as this side has it; `releases` is how
    many there are so far, for the error.
    """
    ratios = before.ratios
    grid = _grid_around(ratios, shift, step)
    work = ratios.size * grid.size
    if work > MAX_WORK:
        raise ValueError(
            f"the log ratios of {releases} releases must fit {MAX_WORK:g} pairs of grid points, "
            f"found {work:.3g}; "
            "take fewer releases, more noise or temporal_privacy_profile"
        )
    mean = shift**2 / 2
    distances = grid - ratios[:, None]
    scores_given_0 = (distances + mean) / shift
    scores_given_1 = (distances - mean) / shift
    squares = np.square([scores_given_0, scores_given_1])
    width = shift * np.sqrt(2 * np.pi)
    highest_density = step / width
    exponents = -squares / 2
    density = np.exp(exponents) * highest_density
    given_before = before.probabilities[:, None]
    probabilities = (given_before @ density)[:, 0]
    is_kept = probabilities.max(axis=0) > NEGLIGIBLE
    next_ratios = _ratios_after_step(grid, matrix)
    kept_ratios = next_ratios[is_kept]
    kept = probabilities[:, is_kept]
    return LogRatios(kept_ratios, matrix @ kept)


def _grid_around(ratios: np.ndarray, shift: float, step: float) -> np.ndarray:
    """Multiples of `step` (K,), nats, that a release with means `shift` deviations apart reaches
    from log ratios (k,)."""
    mean = shift**2 / 2
    reach = mean + 12 * shift
    first = (ratios.min() - reach) // step
    last = (ratios.max() + reach) // step
    return step * np.arange(first, last)


def _ratios_after_step(ratios: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """log (p_11 e^l + p_10) / (p_01 e^l + p_00) for each log ratio l of (k,)."""
    with np.errstate(divide="ignore"):
        log_p = np.log(matrix)
    (stay_in_0, leave_0), (leave_1, stay_in_1) = log_p
    given_1 = np.logaddexp(stay_in_1 + ratios, leave_1)
    given_0 = np.logaddexp(leave_0 + ratios, stay_in_0)
    return given_1 - given_0
