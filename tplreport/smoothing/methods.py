"""Which filter smooths, with which settings, and how well its rivals predict the same counts."""

from __future__ import annotations
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tplreport.smoothing.filtering import Estimates, Filter, fit, follow
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
MOST_NUMBERS = 40_000_000
#: The variance of the square of a Laplace variable over that of a value, squared; of a Gaussian one
#: it is 2.
OF_LAPLACE = 5.0


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
        were best before. Nothing is known of them before the first is seen."""
        means = []
        spreads = []
        for stretch in _stretches(model):
            settings = self.choose(model.until(stretch.start)).settings
            filter = self.make(model.until(stretch.stop))
            found = filter.filtered(follow(filter, settings), settings)
            means.append(found.means[stretch])
            spreads.append(found.spreads[stretch])
        estimates = Estimates(np.concatenate(means), np.concatenate(spreads))
        first = int(np.argmax(model.is_seen))
        estimates.means[:first] = np.nan
        estimates.spreads[:first] = np.nan
        return estimates


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


def _stretches(model: CountModel) -> Iterator[slice]:
    """Times whose settings are chosen together, by those before: from when enough are seen on,
    each stretch is as long as all before it."""
    start = 0
    seen = np.flatnonzero(model.is_seen)
    stop = len(model)
    if seen.size > FEW:
        stop = int(seen[FEW])
    while start < len(model):
        yield slice(start, stop)
        start = stop
        stop = min(2 * start, len(model))


def predicted_values(model: CountModel) -> int:
    """How many noisy counts are predicted by earlier ones."""
    seen = (model.variances < np.inf).sum(axis=1)
    return int(seen.sum() - seen[model.is_seen][:1].sum())


def surprise_of_chain(method: Method, model: CountModel) -> float:
    """By how many standard deviations the errors of prediction exceed those of the chain as it is,
    without extra noise."""
    expected = predicted_values(model)
    if expected == 0:
        return float("nan")
    surprises = fit(method.make(model), PLAIN).surprises[model.is_seen, 0]
    return float((surprises[1:].sum() - expected) / np.sqrt(OF_LAPLACE * expected))
