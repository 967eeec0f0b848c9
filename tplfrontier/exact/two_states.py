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

    Parameters
    ----------
    noise_multipliers : array-like (T,) of numbers > 0
        Standard deviation of the noise over the L2 distance of the answers for the two states.
    backward, forward : as in `temporal_privacy_leakage`, of two states; BPL without `forward`, FPL without
        `backward`, TPL with both
    horizon : int >= 1, optional; the number of releases T, for a single multiplier

    ValueError for multipliers that are not positive, or for another number of states.

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
                f"backward and forward must have 2 states, found {n}; take temporal_privacy_profile, the upper bound"
            )
        past = _messages(self._shifts, before)
        future = _messages(self._shifts[::-1], after[::-1])[::-1]
        # The log ratios of past and future together, which are independent given the state, and
        # their probabilities.
        self._ratios = [
            (
                np.add.outer(ratios, later_ratios).ravel(),
                (weights[:, :, None] * later_weights[:, None]).reshape(2, -1),
            )
            for (ratios, weights), (later_ratios, later_weights) in zip(past, future, strict=True)
        ]

    def delta(self, epsilon: float) -> np.ndarray:
        """The exact delta at `epsilon` >= 0 nats, for each time (T,)."""
        epsilon = as_scalar(check_alpha(epsilon, "epsilon"), "epsilon")
        return np.array([self._delta(t, epsilon) for t in range(self._shifts.size)])

    def epsilon(self, delta: float) -> np.ndarray:
        """The exact epsilon at `delta` >= 1e-15, in nats for each time (T,)."""
        from scipy.optimize import brentq

        delta = check_probability(delta, "delta")
        if delta < 1e-15:
            raise ValueError(
                f"delta must be at least 1e-15, found {delta:g}; smaller ones are lost to rounding"
            )
        epsilons = np.zeros(self._shifts.size)
        for t in range(epsilons.size):
            if self._delta(t, 0.0) > delta:
                high = 1.0
                while self._delta(t, high) > delta:
                    high *= 2
                epsilons[t] = brentq(
                    lambda x, t=t: self._delta(t, x) - delta, 0.0, high, xtol=1e-12
                )
        return epsilons

    def _delta(self, t: int, x: float) -> float:
        """The delta of all releases at time t, for the worse order of the two states."""
        from scipy.special import log_ndtr, ndtr

        shift, (ratios, weights) = self._shifts[t], self._ratios[t]
        deltas = [0.0]
        for ratio, numerator in ((ratios, weights[1]), (-ratios, weights[0])):
            excess = (ratio - x) / shift
            # the weights' ratio is e^ratio
            above = np.exp(x - ratio + log_ndtr(excess - shift / 2))
            deltas.append((ndtr(excess + shift / 2) - above) @ numerator)
        return max(deltas)


def _messages(shifts: np.ndarray, steps: Iterable) -> list:
    """For each time the log ratios (k,) that earlier releases give for its state, and their
    probabilities (2, k)."""
    messages = [(np.zeros(1), np.ones((2, 1)))]
    # A sum over a grid is as good as an integral where the grid is fine for both releases that meet
    # on it.
    for shift, following, matrix in zip(shifts, shifts[1:], steps, strict=False):
        if matrix is None:
            messages.append((np.zeros(1), np.ones((2, 1))))
            continue
        (ratios, weights), step = messages[-1], min(shift, following, 1.0) / STEPS
        reach = shift**2 / 2 + 12 * shift
        grid = step * np.arange((ratios.min() - reach) // step, (ratios.max() + reach) // step)
        if ratios.size * grid.size > MAX_WORK:
            raise ValueError(
                f"the log ratios of {len(messages)} releases must fit {MAX_WORK:g} pairs of grid points, found "
                f"{ratios.size * grid.size:.3g}; take fewer releases, more noise or temporal_privacy_profile"
            )
        scores = [
            (grid - ratios[:, None] - mean) / shift for mean in (-(shift**2) / 2, shift**2 / 2)
        ]
        density = np.exp(-np.square(scores) / 2) * (step / (shift * np.sqrt(2 * np.pi)))
        probabilities = (weights[:, None] @ density)[:, 0]
        kept = probabilities.max(axis=0) > NEGLIGIBLE
        with np.errstate(divide="ignore"):
            (stay, leave), (enter, remain) = np.log(matrix)
        ratios = np.logaddexp(remain + grid, enter) - np.logaddexp(leave + grid, stay)
        messages.append((ratios[kept], matrix @ probabilities[:, kept]))
    return messages
