"""Which filter smooths, with which settings, and how well its rivals predict the same counts."""

from __future__ import annotations
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tplreport.smoothing.alarms import excess_of, first_alarm, sudden_surprise
from tplreport.smoothing.filtering import Estimates, Filter, Track, fit, follow
from tplreport.smoothing.joint import JointFilter
from tplreport.smoothing.model import CountModel, Settings
from tplreport.smoothing.random_walk import RandomWalk
from tplreport.smoothing.separate import SeparateFilter
from tplreport.smoothing.tuning import (
    FEW,
    OF_CHAIN,
    OF_CONSTANT,
    OF_FAST,
    OF_WALK,
    PLAIN,
    Choice,
    Grid,
    choose_settings,
)

#: States, and numbers of all covariances, up to which counts are estimated together.
MOST_TOGETHER = 100
MOST_NUMBERS = 10_000_000


@dataclass(frozen=True)
class Method:
    """A kind of filter, the settings that it may have, and another that searches first."""

    make: Callable[[CountModel], Filter]
    grid: Grid
    search: Callable[[CountModel], Filter] | None = None

    def choose(self, model: CountModel) -> Choice:
        """The settings that predict a model's noisy counts best."""
        filter = self.make(model)
        coarse = filter
        if self.search is not None:
            coarse = self.search(model)
        return choose_settings(filter, self.grid, coarse)

    def smoothed(self, model: CountModel, settings: Settings) -> Estimates:
        """The counts of each time, by all times."""
        filter = self.make(model)
        return filter.smoothed(follow(filter, settings), settings)

    def filtered(self, model: CountModel) -> Estimates:
        """The counts of each time, by it and the earlier ones alone: settings, too, are those that
        were best before, or with that time if it is too surprising for these. Nothing is known of
        the times before the first that is seen."""
        stretches = [*self._stretches(model)]
        means = np.concatenate([stretch.means for stretch in stretches])
        spreads = np.concatenate([stretch.spreads for stretch in stretches])
        first = int(np.argmax(model.is_seen))
        means[:first] = np.nan
        spreads[:first] = np.nan
        return Estimates(means, spreads)

    def _stretches(self, model: CountModel) -> Iterator[Estimates]:
        """The estimates of times that have the same settings, one stretch after the other."""
        start = 0
        watched = 0  # alarms before it are past
        heeded = 0.0  # the largest surprise after which the same settings were best
        settings = self.grid.of_few
        while start < len(model):
            stop = _planned_stop(model, start)
            filter = self.make(model.until(stop))
            track = follow(filter, settings)
            surprises = _surprises_of(track, filter.model)
            alarm = _alarm_of(surprises, filter.model, watched, heeded)
            end = stop
            if alarm is not None:
                end = alarm
            found = filter.filtered(track, settings)
            yield Estimates(found.means[start:end], found.spreads[start:end])
            if end == len(model):
                return
            start = end
            watched = stop
            if alarm is not None:
                watched = alarm + 1
            chosen = self.choose(model.until(watched)).settings
            if alarm is None or chosen != settings:
                heeded = 0.0
            else:
                least = sudden_surprise(filter.model.predicted_values[alarm])
                heeded = max(heeded, surprises[alarm], least)
            settings = chosen


TOGETHER = Method(JointFilter, OF_CHAIN, SeparateFilter)
SEPARATELY = Method(SeparateFilter, OF_CHAIN)
WALK = Method(RandomWalk, OF_WALK)
#: Names of rivals, as results show them.
RIVALS = {
    "random walk": WALK,
    "FAST": Method(RandomWalk, OF_FAST),
    "constant": Method(RandomWalk, OF_CONSTANT),
}


def method_of_chain(model: CountModel) -> Method:
    """All counts together, unless there are too many of them."""
    n = model.n_states
    if n <= MOST_TOGETHER and len(model) * n**2 <= MOST_NUMBERS:
        return TOGETHER
    return SEPARATELY


def _planned_stop(model: CountModel, start: int) -> int:
    """The time after a start at which settings are chosen in any case: when enough times are seen,
    and whenever there are twice as many as then."""
    seen = np.flatnonzero(model.is_seen)
    if seen.size <= FEW:
        return len(model)
    stop = int(seen[FEW])
    while stop <= start:
        stop *= 2
    return min(stop, len(model))


def _surprises_of(track: Track, model: CountModel) -> np.ndarray:
    """The surprise of each time (T,), 0 where nothing is predicted."""
    surprises = np.zeros(len(model))
    for time in np.flatnonzero(model.predicted_values):
        lesson = track.lessons[time]
        if lesson is not None:
            surprises[time] = lesson.surprises[0]
    return surprises


def _alarm_of(surprises: np.ndarray, model: CountModel, watched: int, heeded: float) -> int | None:
    """The first time from `watched` on that is too surprising; where the settings stayed the best
    after a surprise, `heeded`, the first that is more than twice as surprising."""
    if heeded > 0.0:
        larger = np.flatnonzero(surprises[watched:] > 2.0 * heeded)
        if not larger.size:
            return None
        return watched + int(larger[0])
    alarm = first_alarm(surprises[watched:], model.predicted_values[watched:])
    if alarm is None:
        return None
    return watched + alarm


def surprise_of_chain(method: Method, model: CountModel) -> float:
    """By how many standard deviations the errors of prediction exceed those of the chain as it is,
    without extra noise; NaN without a chain."""
    if method is WALK:
        return float("nan")
    values = model.predicted_values
    surprises = fit(method.make(model), PLAIN).surprises[:, 0]
    return excess_of(np.where(values > 0, surprises, 0.0), values)
