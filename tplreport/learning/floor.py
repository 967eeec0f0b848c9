"""One number that is learned privately: the floor, by how many users must be replaced before it
fails.

The score u(C, f) of a candidate f is the largest share w of the steps of one user, in users, so
that every chain which counts within w m of C leave possible keeps alpha at the floor f, after the
model itself. Replacing one user changes u by at most 1 (docs/theory/private_model.md), whatever
the number of states. The exponential mechanism draws a candidate whose score is near a level tau,
where scores below 0 are improbable whatever the data are; "refuse" has a constant score, so that
data without any candidate near tau have a likely answer, too.

Scores are whole numbers of 1/32 users. Losses are computed with errors that are much smaller than
what 1/32 of a user's steps change, and a candidate must keep a level that is lower by a margin. So
a score is at most the exact one, and at least one unit less: neighbours differ by at most 33 units.
"""

from __future__ import annotations
from dataclasses import dataclass
from math import ceil, expm1, inf, log
from typing import Any

import numpy as np

from tplfrontier.chains.confidence import divergence_radii
from tplreport.learning.worst_shares import announce_pairs, curves_of, largest_ratio
from tplreport.publishing.counts import calibrated
from tplrepro.leakage.vertex import vertex_supremum

UNITS = 32
#: By how much two neighbours' scores may differ, in units.
SENSITIVITY = UNITS + 1
#: Candidates lie between these shares of alpha.
LEAST, MOST = 0.005, 0.95
FEWEST, LARGEST = 128, 4096
#: A share of the floor that noise of one user costs, times users over states, as measured.
COST = 9.0
#: "refuse" is so many units of 1/epsilon below the best score.
REFUSAL = 8.0
#: Of alpha: exceeds the errors of a supremum.
MARGIN = 1e-10
#: Of a ratio of probabilities: exceeds the errors of worst shares and of the sums of a supremum,
#: which next to a critical floor are magnified beyond `MARGIN`.
ROUNDING = 3e-14
#: Rounds of policy iteration end when the supremum rises by less than this share.
CLOSELY = 1e-13


@dataclass(frozen=True)
class Levels:
    """The public numbers of the draw: candidates in falling order, nats, and in units the score
    that is aimed at, and how far below the best "refuse" is."""

    candidates: np.ndarray
    aim: int
    refusal: int

    @property
    def users(self) -> float:
        """How many users' steps the floor withstands beside what the counts leave possible."""
        return self.aim / UNITS


def levels_of(n: int, users: int, epsilon: float, alpha: float, failure: float) -> Levels:
    """The levels of a draw.

    Parameters
    ----------
    n : int
        The number of states.
    users : int
    epsilon : float
        The budget of the draw, nats.
    alpha : float
        The level of every time, nats.
    failure : float
        The probability that a candidate is drawn which the counts themselves do not leave.

    Returns
    -------
    Levels

    Raises
    ------
    ZeroDivisionError
        Without users or budget.

    Examples
    --------
    >>> levels = levels_of(20, 10_000, 1.0, 1.0, 0.025)
    >>> len(levels.candidates), round(levels.users, 1)
    (146, 26.1)
    """
    # two candidates are to differ by about two units of 1/epsilon
    step = 2.0 * COST * n / (users * epsilon)
    wanted = ceil(log(MOST / LEAST) / step)
    count = min(max(wanted, FEWEST), LARGEST)
    candidates = alpha * np.geomspace(MOST, LEAST, count)
    per_unit = epsilon / SENSITIVITY
    refusal = ceil(REFUSAL / per_unit)
    # count exp(-(aim + 1 - refusal) per_unit / 2) <= failure
    aim = refusal - 1 + ceil(2.0 / per_unit * log(count / failure))
    return Levels(candidates, aim, refusal)


class Scores:
    """The scores of candidates, in units."""

    def __init__(self, counts: np.ndarray, levels: Levels, budget: Budget, steps_per_user: int):
        self.levels = levels
        self.budget = budget
        self.unit = steps_per_user / UNITS
        self.sides = [Side(counts.T, budget.confidence), Side(counts, budget.confidence)]
        #: Above it, all scores are treated alike.
        self.most = 2 * levels.aim

    def compute(self) -> np.ndarray:
        """One score for each candidate, in falling order of candidates: scores rise."""
        candidates = self.levels.candidates
        announce_pairs(len(self.sides[0].curves.totals), 16 * len(candidates))
        scores = np.full(len(candidates), self.most)
        self._fill(scores, 0, len(candidates), -1, self.most)
        return scores

    def _fill(self, scores: np.ndarray, first: int, end: int, low: int, high: int) -> None:
        """The scores of candidates from `first` to before `end`, which are within low to high."""
        if first >= end:
            return
        if low == high:
            scores[first:end] = low
            return
        middle = (first + end) // 2
        scores[middle] = self._score(float(self.levels.candidates[middle]), low, high)
        self._fill(scores, first, middle, low, scores[middle])
        self._fill(scores, middle + 1, end, scores[middle], high)

    def _score(self, floor: float, low: int, high: int) -> int:
        """The score of one candidate, which is within low to high; -1 if it is not kept at all."""
        while low < high:
            middle = (low + high + 1) // 2
            if self.is_kept(floor, middle * self.unit):
                low = middle
            else:
                high = middle - 1
        return low

    def is_kept(self, floor: float, replaced: float) -> bool:
        """Whether every TPL is within alpha at a floor, if so many steps are replaced."""
        alpha = self.budget.alpha
        backward, forward = self.sides
        bpl = max(backward.supremum(floor, replaced, alpha), self.budget.epsilon)
        if bpl > alpha:
            return False
        fpl = forward.supremum(floor, replaced, alpha)
        return bpl + fpl - floor <= alpha * (1.0 - MARGIN)


@dataclass(frozen=True)
class Budget:
    """The level of every time and the budget of the model, nats, and the confidence of each side's
    set of matrices."""

    alpha: float
    epsilon: float
    confidence: float


class Side:
    """The counts of one side, and suprema under floors of all matrices that they leave."""

    def __init__(self, counts: np.ndarray, confidence: float):
        self.curves = curves_of(counts)
        self.confidence = confidence

    def supremum(self, floor: float, replaced: float, most: float) -> float:
        """The supremum of BPL, or FPL, under a floor, nats, rounded up; inf if it is above `most`.

        From below, policy iteration takes the worst shares at a level and the fixed point of their
        Moebius map, as `tplrepro.leakage.suprema` does for the vertices of a hull.
        """
        totals = self.curves.totals
        least_totals = totals - replaced
        if least_totals.min() <= 0.0:
            return inf
        radii = divergence_radii(least_totals, len(totals), self.confidence)
        radii.flags.writeable = False
        level = floor
        while True:
            growth = expm1(level)
            ratio, high, low = largest_ratio(*self.curves, radii, replaced, growth).tolist()
            if ratio <= 1.0:
                return level
            raised = min(high + ROUNDING * (1.0 + 1.0 / growth), 1.0)
            risen = vertex_supremum(low, raised - low, 1.0 - raised, floor)
            if risen > most:
                return inf
            if risen <= level * (1.0 + CLOSELY):
                return max(risen, level)
            level = risen


def draw_floor(counts: np.ndarray, levels: Levels, budget: Budget, steps_per_user: int) -> float:
    """A floor that is drawn with the budget of the model; 0 for "refuse".

    Parameters
    ----------
    counts : array (n, n)
        Of at most `steps_per_user` steps of each user.
    levels : Levels
        The public numbers of the draw.
    budget : Budget
        Its level, budget and confidence.
    steps_per_user : int

    Returns
    -------
    float
        Nats.

    Raises
    ------
    ImportError
        Without OpenDP.
    """
    scores = Scores(counts, levels, budget, steps_per_user).compute()
    chosen = _choose(qualities_of(scores, levels), budget.epsilon)
    if chosen == len(scores):
        return 0.0
    return float(levels.candidates[chosen])


def qualities_of(scores: np.ndarray, levels: Levels) -> np.ndarray:
    """Minus the distance of scores from the aim, in units, and that of "refuse" at the end; the
    largest candidate may have a higher score."""
    distances = np.abs(scores - levels.aim)
    distances[0] = max(levels.aim - scores[0], 0)
    return -np.append(distances, levels.refusal)


def _choose(qualities: np.ndarray, epsilon: float) -> int:
    """The number of a quality, drawn by OpenDP with a budget of `epsilon` nats; one user changes
    each by at most `SENSITIVITY`."""
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance

    def make(domain: Any, metric: Any, scale: float) -> Any:
        return make_noisy_max(domain, metric, max_divergence(), scale)

    metric = linf_distance(T="i64")
    choose = calibrated(make, True, metric, SENSITIVITY, 2.0 * SENSITIVITY / epsilon, epsilon)
    return int(choose(qualities.tolist()))
