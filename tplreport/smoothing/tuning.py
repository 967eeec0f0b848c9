"""Settings by the likelihood of the noisy counts: how well each is predicted by the earlier ones.

Without them a chain that is not quite right ruins the estimates.
"""

from dataclasses import dataclass

import numpy as np

from tplreport.smoothing.alarms import first_alarm
from tplreport.smoothing.filtering import Filter, fit
from tplreport.smoothing.model import Settings

#: Every how many places of a grid a search looks first.
COARSE = 3
#: Times that must be seen before settings are chosen.
FEW = 20


@dataclass(frozen=True, eq=False)
class Grid:
    """The settings that are tried, and those that are taken while few times are seen; `reach`
    tells how many places away from one are its neighbours."""

    spreads: np.ndarray
    turnovers: np.ndarray
    of_few: Settings
    reach: int = 1

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
OF_CHAIN = Grid(2.0 ** np.arange(13), VARIANCES, Settings.one(1.0, 1.0))
#: Of random walks, whose turnover is known better; of FAST they have no spread, of constants no
#: turnover.
NONE = np.zeros(1)
WALKS = np.append(0.0, 10.0 ** np.arange(-4.0, 3.1, 0.25))
OF_WALK = Grid(VARIANCES, WALKS, Settings.one(1.0, 1.0), reach=2)
OF_FAST = Grid(NONE, WALKS, Settings.one(0.0, 1.0))
OF_CONSTANT = Grid(VARIANCES, NONE, Settings.one(1.0, 0.0))
#: The model as it is.
PLAIN = Settings.one(1.0, 0.0)


def scores_of(filter: Filter, settings: Settings) -> np.ndarray:
    """The log likelihoods (S,) of all times but the first that is seen, from which a filter has its
    level."""
    is_predicted = filter.model.predicted_values > 0
    return fit(filter, settings).log_likelihoods[is_predicted].sum(axis=0)


@dataclass(frozen=True)
class Choice:
    """Settings, and the log likelihood that they have."""

    settings: Settings
    log_likelihood: float


def choose_settings(filter: Filter, grid: Grid, coarse: Filter) -> Choice:
    """The settings of a grid that have the largest likelihood; while few times are seen, only if
    the usual ones are too wrong.

    The search begins at the best place of the coarse grid, by the filter `coarse`, and goes to the
    best neighbour until there is no better one.
    """
    if filter.model.is_seen.sum() < FEW and not _is_surprised(filter, grid.of_few):
        return Choice(grid.of_few, float(scores_of(filter, grid.of_few)[0]))
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
            return Choice(grid.at([best]), known[best])
        place = best


def _is_surprised(filter: Filter, settings: Settings) -> bool:
    surprises = fit(filter, settings).surprises[:, 0]
    values = filter.model.predicted_values
    return first_alarm(np.where(values > 0, surprises, 0.0), values) is not None
