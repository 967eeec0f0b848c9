"""Settings by the likelihood of the noisy counts: how well each is predicted by the earlier ones.

Without them a chain that is not quite right ruins the estimates.
"""

from __future__ import annotations
from dataclasses import dataclass, replace

import numpy as np

from tplreport.smoothing.alarms import GRADUAL, excess_of, first_alarm
from tplreport.smoothing.filtering import Filter, Fit, fit
from tplreport.smoothing.model import CountModel, Settings

#: Every how many places of a grid a search looks first.
COARSE = 3
#: Times that must be seen before settings are chosen.
FEW = 20
#: The largest variance of a move over that of the noise: with it a count is the noisy one but for
#: a part in so many, and more would drown in rounding.
LARGEST = 1e8


@dataclass(frozen=True, eq=False)
class Grid:
    """The settings that are tried, and those that are taken while few times are seen; `reach`
    tells how many places away from one are its neighbours. Those of a chain must not be surprised
    by what comes."""

    spreads: np.ndarray
    turnovers: np.ndarray
    of_few: Settings
    reach: int = 1
    is_of_chain: bool = False

    def up_to(self, largest: float) -> Grid:
        """The same without settings above `largest`, or 1 if that is less."""
        largest = max(largest, 1.0)
        spreads = self.spreads[self.spreads <= largest]
        return replace(self, spreads=spreads, turnovers=self.turnovers[self.turnovers <= largest])

    def at(self, places: list[tuple[int, int]]) -> Settings:
        rows, columns = np.array(places).T
        return Settings(self.spreads[rows], self.turnovers[columns])

    def coarse(self) -> list[tuple[int, int]]:
        """Some places all over it."""
        stride = COARSE
        if len(self.spreads) == 1 or len(self.turnovers) == 1:
            stride = 1
        rows = range(0, len(self.spreads), stride)
        columns = range(0, len(self.turnovers), stride)
        return [(row, column) for row in rows for column in columns]

    def around(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        """A place and its neighbours."""
        rows = self._within_reach(place[0], len(self.spreads))
        columns = self._within_reach(place[1], len(self.turnovers))
        return [(row, column) for row in rows for column in columns]

    def _within_reach(self, number: int, end: int) -> range:
        return range(max(number - self.reach, 0), min(number + self.reach + 1, end))


VARIANCES = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
#: A chain that is wrong by all people needs about as much as there are people.
SPREADS = np.append(2.0 ** np.arange(13), 2.0 ** np.arange(14, 27, 2))
TURNOVERS = np.append(VARIANCES, 10.0 ** np.arange(4, 9))
OF_CHAIN = Grid(SPREADS, TURNOVERS, Settings.one(1.0, 1.0), is_of_chain=True)
#: Of random walks, whose turnover is known better; of FAST they have no spread, of constants no
#: turnover.
NONE = np.zeros(1)
WALKS = np.append(0.0, 10.0 ** np.arange(-4.0, 3.1, 0.25))
OF_WALK = Grid(VARIANCES, WALKS, Settings.one(1.0, 1.0), reach=2)
OF_FAST = Grid(NONE, WALKS, Settings.one(0.0, 1.0))
OF_CONSTANT = Grid(VARIANCES, NONE, Settings.one(1.0, 0.0))
#: The model as it is.
PLAIN = Settings.one(1.0, 0.0)


def largest_setting(model: CountModel) -> float:
    """The setting above which the moves of the largest count have too large a variance."""
    is_seen = model.variances < np.inf
    largest_count = max(model.values[is_seen].max(), 1.0)
    return float(LARGEST * model.variances[is_seen].min() / largest_count)


def scores_of(filter: Filter, settings: Settings) -> np.ndarray:
    """The log likelihoods (S,) of all times but the first that is seen, from which a filter has its
    level."""
    return _sum_of_predicted(filter, fit(filter, settings))


def _sum_of_predicted(filter: Filter, found: Fit) -> np.ndarray:
    is_predicted = filter.model.predicted_values > 0
    return found.log_likelihoods[is_predicted].sum(axis=0)


@dataclass(frozen=True)
class Choice:
    """Settings, and the log likelihood that they have."""

    settings: Settings
    log_likelihood: float


def choose_settings(filter: Filter, grid: Grid, coarse: Filter) -> Choice:
    """The settings of a grid that have the largest likelihood; while few times are seen, only if
    the usual ones are too wrong.

    The search begins at the best place of the coarse grid, by the filter `coarse`, and goes to the
    best neighbour until there is no better one. Settings of a chain that are surprised all the same
    get more turnover.
    """
    if filter.model.is_seen.sum() < FEW and not _is_surprised(filter, grid.of_few):
        return Choice(grid.of_few, float(scores_of(filter, grid.of_few)[0]))
    grid = grid.up_to(largest_setting(filter.model))
    places = grid.coarse()
    known = dict(zip(places, scores_of(coarse, grid.at(places)).tolist(), strict=True))
    place = max(known, key=lambda other: known[other])
    if coarse is not filter:
        known = {}
    while True:
        new = [other for other in grid.around(place) if other not in known]
        if new:
            known |= dict(zip(new, scores_of(filter, grid.at(new)).tolist(), strict=True))
        best = max(known, key=lambda other: known[other])
        if best == place:
            break
        place = best
    if grid.is_of_chain:
        return _without_surprise(filter, grid, place)
    return Choice(grid.at([place]), known[place])


def _without_surprise(filter: Filter, grid: Grid, place: tuple[int, int]) -> Choice:
    """The settings of a place, with so much more turnover that errors of prediction are about as
    large as these settings say. Where none are right, the likeliest ones trust the chain too
    much."""
    row, column = place
    likeliest = _judge(filter, grid.at([place]))[0]
    if likeliest.excess <= GRADUAL:
        return likeliest.choice
    more = [(row, other) for other in range(column + 1, len(grid.turnovers))]
    judged = [likeliest]
    if more:
        judged += _judge(filter, grid.at(more))
    return next((one for one in judged if one.excess <= GRADUAL), judged[-1]).choice


@dataclass(frozen=True)
class Judged:
    """A choice, and by how many standard deviations errors of prediction exceed what it says."""

    choice: Choice
    excess: float


def _judge(filter: Filter, settings: Settings) -> list[Judged]:
    """Each of the settings."""
    found = fit(filter, settings)
    values = filter.model.predicted_values
    is_predicted = values > 0
    log_likelihoods = _sum_of_predicted(filter, found)
    surprises = found.surprises[is_predicted]
    judged = []
    for number in range(len(settings)):
        choice = Choice(settings[number], float(log_likelihoods[number]))
        judged.append(Judged(choice, excess_of(surprises[:, number], values[is_predicted])))
    return judged


def _is_surprised(filter: Filter, settings: Settings) -> bool:
    surprises = fit(filter, settings).surprises[:, 0]
    values = filter.model.predicted_values
    return first_alarm(np.where(values > 0, surprises, 0.0), values) is not None
