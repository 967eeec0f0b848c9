"""The Kalman filter and smoother of each count by itself: n^2 operations a time in place of n^3.

Its variances are those on the diagonals of `joint`, if counts are uncorrelated after each time. For
many states.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tplreport.smoothing.filtering import Beliefs, Estimates, Lesson, Track, learn_separately
from tplreport.smoothing.model import CountModel, Settings


@dataclass(frozen=True)
class SeparateFilter:
    """A filter whose spreads are variances (S, n)."""

    model: CountModel

    @cached_property
    def _squares(self) -> dict[int, np.ndarray]:
        """The squares of the entries of each distinct step."""
        return {id(step): step**2 for step in self.model.steps}

    def first(self, settings: Settings) -> Beliefs:
        """What the model knows of the first time."""
        sides = len(settings)
        variances = np.diagonal(self.model.first_covariance)
        return Beliefs(np.tile(self.model.first_mean, (sides, 1)), np.tile(variances, (sides, 1)))

    def predict(self, beliefs: Beliefs, time: int, settings: Settings) -> Beliefs:
        """As the joint filter, for covariances that are 0 before."""
        step = self.model.steps[time - 1]
        squares = self._squares[id(step)]
        counts = np.maximum(beliefs.means, 0.0)
        expected = counts @ step
        spread = settings.spread[:, None]
        variances = (beliefs.spreads - spread * counts) @ squares + spread * expected
        variances += settings.turnover[:, None] * (expected + 1.0)
        return Beliefs(beliefs.means @ step, variances)

    def learn(self, beliefs: Beliefs, time: int, settings: Settings) -> Lesson:
        """As the joint filter, for each value by itself."""
        seen = self.model.seen(time)
        values = self.model.values[time, seen]
        return learn_separately(beliefs, values, self.model.variances[time, seen], seen)

    def filtered(self, track: Track, settings: Settings) -> Estimates:
        """The beliefs after each time."""
        return track.estimates()

    def smoothed(self, track: Track, settings: Settings) -> Estimates:
        """What all times together say: the gain on the later count j is M_ii P_ij / V_jj."""
        estimates = track.estimates()
        means = estimates.means
        variances = estimates.spreads
        for time in reversed(range(len(means) - 1)):
            later = track.predicted[time + 1]
            gains = variances[time][:, None] * self.model.steps[time] / later.spreads[0]
            # Together the later counts cannot teach more than there is to know.
            taught = gains**2 @ later.spreads[0]
            gains *= np.sqrt(np.minimum(1.0, variances[time] / np.maximum(taught, 1e-300)))[:, None]
            means[time] += gains @ (means[time + 1] - later.means[0])
            variances[time] += gains**2 @ (variances[time + 1] - later.spreads[0])
        return Estimates(means, variances)
