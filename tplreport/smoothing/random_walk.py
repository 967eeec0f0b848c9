"""Counts without a chain: each has a level that walks at random, and fluctuates around it.

At each time the level changes with the variance turnover (level + 1), and the count differs from
the level with the variance spread (level + 1), independently of other times. Without spread that is
FAST (Fan and Xiong, 2014) but for steps in proportion to the level, which predict at least as well
as equal ones; without either it is a constant.
"""

from dataclasses import dataclass

import numpy as np

from tplreport.smoothing.filtering import Beliefs, Estimates, Lesson, Track, learn_separately
from tplreport.smoothing.model import CountModel, Settings


@dataclass(frozen=True)
class RandomWalk:
    """A filter of the levels, whose spreads are variances (S, n)."""

    model: CountModel

    def first(self, settings: Settings) -> Beliefs:
        """What the model knows of the first time."""
        shape = (len(settings), 1)
        variances = np.diagonal(self.model.first_covariance)
        return Beliefs(np.tile(self.model.first_mean, shape), np.tile(variances, shape))

    def predict(self, beliefs: Beliefs, time: int, settings: Settings) -> Beliefs:
        """The level as before, and less certain."""
        walked = settings.turnover[:, None] * _rates(beliefs.means)
        return Beliefs(beliefs.means, beliefs.spreads + walked)

    def learn(self, beliefs: Beliefs, time: int, settings: Settings) -> Lesson:
        """What noisy counts teach about their levels."""
        seen = self.model.seen(time)
        fluctuation = settings.spread[:, None] * _rates(beliefs.means[:, seen])
        around_level = fluctuation + self.model.variances[time, seen]
        return learn_separately(beliefs, self.model.values[time, seen], around_level, seen)

    def filtered(self, track: Track, settings: Settings) -> Estimates:
        """The counts, by each time and the earlier ones."""
        return self._around_levels(track.estimates(), settings)

    def smoothed(self, track: Track, settings: Settings) -> Estimates:
        """The counts, by all times."""
        levels = track.estimates()
        means = levels.means
        variances = levels.spreads
        for time in reversed(range(len(means) - 1)):
            later = track.predicted[time + 1]
            gains = variances[time] / later.spreads[0]
            means[time] += gains * (means[time + 1] - later.means[0])
            variances[time] += gains**2 * (variances[time + 1] - later.spreads[0])
        return self._around_levels(levels, settings)

    def _around_levels(self, levels: Estimates, settings: Settings) -> Estimates:
        """The counts, of which the noisy ones say how they differ from their levels: given
        the level and the noisy count, no other time says more."""
        fluctuation = settings.spread[0] * _rates(levels.means)
        seen = self.model.variances < np.inf
        around_level = fluctuation[seen] + self.model.variances[seen]
        share = np.zeros_like(fluctuation)  # of what differs from the level that is no noise
        share[seen] = fluctuation[seen] / around_level
        means = levels.means + share * (self.model.values - levels.means)
        variances = (1.0 - share) ** 2 * levels.spreads + (1.0 - share) * fluctuation
        return Estimates(means, variances)


def _rates(levels: np.ndarray) -> np.ndarray:
    """The levels without what is negative, and 1."""
    return np.maximum(levels, 0.0) + 1.0
