"""Points that bound the loss of all matrices that counts leave plausible, by evidence about two
rows together: theorem E of docs/theory/promises.md.

For rows i and j and a set S of columns, counts a and c of steps into S among N_i and N_j, and any
tilts eta, zeta > 0,

    exp(-eta a) / (1 - x + x exp(-eta))^(N_i) * exp(zeta c) / (1 - y + y exp(zeta))^(N_j)

is a martingale where x and y are the probabilities of S in the rows; so is a mean of such products
with fixed weights. By Ville's inequality the logarithm F(a, x, c, y) of the mean ever exceeds
log(1 / beta) with probability at most beta. F is convex, rises with x and c and falls with a and y.
So a tangent plane of F at any point proves a line x <= b + s y for all sets S at once: the least of
the plane over all sets adds up state by state.
"""

from __future__ import annotations
from dataclasses import dataclass

import numpy as np

from tplrepro.leakage.envelope import hull_of_points

#: Tilts where nothing is expected: suited to some ten to some ten million steps from a state.
TILTS = np.append(0.0, 2.0 ** np.arange(-10, 2))
#: Tilts around that which suits the expected number of steps, and their weights, by octave.
OCTAVES = np.arange(-1, 6)
LARGEST_TILT = 30.0
#: The weight of no tilt beside that of all others: it keeps a row from lending much to the other.
WEIGHT_OF_NONE = 0.1
#: Nats for which the expected tilts are made, beside those of the union over all sets.
EXPECTED_NATS = 3.0
#: Slopes of the lines are these powers of 2 up to `STEEP`, and then each octave.
STEEP = 7
SLOPES_OF_OCTAVE = 3
#: Steps of Newton's method and of bisection.
NEWTON_STEPS = 4
BISECTIONS = 10
#: Up to so many states each set has lines of its own; with more, parts of states count as sets.
MOST_BY_SET = 5
#: Exceeds all rounding of a line, and of a logarithm for each step that was counted.
ROUNDING = 1e-12
ROUNDING_OF_STEP = 1e-13


@dataclass(frozen=True)
class Tilts:
    """Tilts (K,) and the logarithms of their weights (K,), fixed before any step is seen."""

    tilts: np.ndarray
    log_weights: np.ndarray

    @classmethod
    def of_any(cls) -> Tilts:
        """Those for any number of steps."""
        weights = np.full(TILTS.size, 1.0 / TILTS.size)
        return cls(TILTS, np.log(weights))

    @classmethod
    def of_expected(cls, steps: float, nats: float) -> Tilts:
        """Those for about so many steps from each state, and a union that costs so many nats."""
        of_row = 0.5 * (nats + EXPECTED_NATS)
        # where half of the steps lead into a set, its probability has a variance of 1/4 a step
        fitting = np.sqrt(8.0 * of_row / steps)
        tilts = np.minimum(fitting * 2.0**OCTAVES, LARGEST_TILT)
        weights = 2.0 ** -np.abs(OCTAVES)
        tilts = np.append(0.0, tilts)
        weights = np.append(WEIGHT_OF_NONE * weights.sum(), weights)
        return cls(tilts, np.log(weights / weights.sum()))


@dataclass(frozen=True)
class Evidence:
    """F of one row against large probabilities of sets, and its derivatives by the probability and
    by the count."""

    value: np.ndarray
    by_probability: np.ndarray
    by_count: np.ndarray


def evidence_against_high(
    tilts: Tilts, counts: np.ndarray, totals: np.ndarray, probabilities: np.ndarray
) -> Evidence:
    """That of `counts` steps into a set among `totals`, elementwise."""
    eta = tilts.tilts
    shrunk = np.exp(-eta)
    x = probabilities[..., None]
    of_total = (1.0 - x) + x * shrunk
    logs = tilts.log_weights - eta * counts[..., None] - totals[..., None] * np.log(of_total)
    top = logs.max(axis=-1)
    shares = np.exp(logs - top[..., None])
    sums = shares.sum(axis=-1)
    shares /= sums[..., None]
    slopes = -np.expm1(-eta) / of_total
    return Evidence(
        value=top + np.log(sums),
        by_probability=totals * (shares * slopes).sum(axis=-1),
        by_count=-(shares * eta).sum(axis=-1),
    )


def upper_ends(
    tilts: Tilts, counts: np.ndarray, totals: np.ndarray, nats: np.ndarray
) -> np.ndarray:
    """About the largest probabilities against which there are no more than `nats`, elementwise, by
    Newton's method from above."""
    is_tilted = tilts.tilts > 0.0
    eta = tilts.tilts[is_tilted]
    log_weights = tilts.log_weights[is_tilted]
    most_logs = (nats[..., None] - log_weights + eta * counts[..., None]) / totals[..., None]
    of_single_tilts = np.expm1(-most_logs) / np.expm1(-eta)
    ends = np.clip(of_single_tilts.min(axis=-1), 0.0, 1.0)
    for _ in range(NEWTON_STEPS):
        evidence = evidence_against_high(tilts, counts, totals, ends)
        excess = evidence.value - nats
        rises = evidence.by_probability > 0.0
        step = np.divide(excess, evidence.by_probability, out=np.zeros_like(excess), where=rises)
        ends = np.clip(ends - step, 0.0, 1.0)
    return ends


@dataclass(frozen=True)
class PairsOfRows:
    """Counts of steps (n, n), tilts, and the nats of evidence that exclude a matrix."""

    steps: np.ndarray
    tilts: Tilts
    nats: float

    @classmethod
    def of(
        cls, steps: np.ndarray, confidence: float, phases: int, expected_steps: float | None
    ) -> PairsOfRows:
        """The pairs of rows of one of `phases` matrices, which hold jointly."""
        n = len(steps)
        # pairs of rows, and sets neither empty nor full; a pair and a set are also the pair in
        # the other order and the other states
        log_sets = (n - 1) * np.log(2.0)
        if n > 1:
            log_sets += np.log1p(-(2.0 ** (1 - n)))
        n_pairs = n * (n - 1) * phases
        nats = float(log_sets + np.log(max(n_pairs, 1)) - np.log1p(-confidence))
        tilts = Tilts.of_any()
        if expected_steps is not None:
            tilts = Tilts.of_expected(expected_steps, nats)
        return cls(steps, tilts, nats)

    def hull(self) -> np.ndarray:
        """The joint hull (K, 5) of the points of all pairs."""
        n = len(self.steps)
        hull = np.empty((0, 5))
        for i in range(n):
            corners = [hull, *self._corners_of_row(i)]
            hull = hull_of_points(np.vstack(corners))
        return hull

    def _corners_of_row(self, i: int) -> list[np.ndarray]:
        """The points of row i against each other row."""
        totals = self.steps.sum(axis=1)
        others = np.flatnonzero(np.arange(len(self.steps)) != i)
        was_left = others[totals[others] > 0.0]
        found = [self._without_steps(i, j) for j in others[totals[others] == 0.0]]
        if totals[i] == 0.0:
            return [*found, *(self._without_steps(i, j) for j in was_left)]
        if was_left.size:
            found += self._search_corners(i, was_left)
        return found

    def _search_corners(self, i: int, others: np.ndarray) -> list[np.ndarray]:
        """The points of row i against other rows, both of which were left."""
        n = len(self.steps)
        sets = None
        if n <= MOST_BY_SET:
            all_sets = _sets_of(n)
            sets = np.tile(all_sets, (len(others), 1))[:, None, :]
            others = np.repeat(others, len(all_sets))
        lines = _Search(self, i, others, sets).lines()
        return [_corners_below(lines.of_row(k), i, j) for k, j in enumerate(others.tolist())]

    def _without_steps(self, i: int, j: int) -> np.ndarray:
        """The point for two rows of which one at least was never left, (1, 5)."""
        x = self._end_of_row(i)
        y = 1.0 - self._end_of_row(j)
        return _as_corners(np.array([y]), np.array([x]), i, j)

    def _end_of_row(self, i: int) -> float:
        """The largest probability of a set in a row by its own steps."""
        counts = self.steps[i]
        total = counts.sum()
        if total == 0.0:
            return 1.0
        most = np.array(total - counts.min())
        nats = np.array(self.nats + ROUNDING_OF_STEP * total)
        return min(float(upper_ends(self.tilts, most, np.array(total), nats)) + ROUNDING, 1.0)


@dataclass(frozen=True)
class _Lines:
    """Lines x <= heights + slopes y, an array each."""

    heights: np.ndarray
    slopes: np.ndarray

    def of_row(self, k: int) -> _Lines:
        """Those of one row, by growing slopes."""
        heights = self.heights[k]
        slopes = self.slopes[k]
        is_line = np.isfinite(heights) & (slopes > 0.0) & (slopes < np.inf)
        order = np.argsort(slopes[is_line], kind="stable")
        return _Lines(heights[is_line][order], slopes[is_line][order])


class _Search:
    """Looks for the lines that bound row i against other rows, (J,), at several slopes: for all
    sets, or for one set (J, 1, n) of each."""

    def __init__(self, pairs: PairsOfRows, i: int, others: np.ndarray, sets: np.ndarray | None):
        self.tilts = pairs.tilts
        self.sets = sets
        self.of_i = pairs.steps[i]
        self.of_others = pairs.steps[others][:, None, :]
        self.total = self.of_i.sum()
        self.totals = self.of_others.sum(axis=2)
        self.nats = pairs.nats + ROUNDING_OF_STEP * (self.total + self.totals)
        self.slopes = _slopes_up_to(16.0 * self.totals.max())
        self.shape = (len(others), self.slopes.size)

    def lines(self) -> _Lines:
        """Lines (J, K) that each hold for all sets, or for the one set given."""
        if self.sets is not None:
            return self._touch(self.sets)[0]
        # at first the sets whose likelihood ratio is above the slope
        of_rows = self.of_others / self.totals[..., None] * self.slopes[:, None]
        first = _least_sets(of_rows - self.of_i / self.total)
        lines, weights = self._touch(first)
        second = _least_sets(weights)
        more_lines, weights = self._touch(second)
        # where sets compete, a line touches several, between which parts of states count
        between = (1.0 * first + second + _least_sets(weights)) / 3.0
        found = [lines, more_lines, self._touch(between)[0]]
        heights = np.concatenate([lines.heights for lines in found], axis=1)
        slopes = np.concatenate([lines.slopes for lines in found], axis=1)
        return _Lines(heights, slopes)

    def _touch(self, shares: np.ndarray) -> tuple[_Lines, np.ndarray]:
        """The lines that touch what is possible for sets with these shares of each state, at about
        the slopes, and how much each state would add to the plane that proves them."""
        high = np.broadcast_to((shares * self.of_i).sum(axis=2), self.shape)
        low = np.broadcast_to((shares * self.of_others).sum(axis=2), self.shape)
        total = np.full(self.shape, self.total)
        totals = np.broadcast_to(self.totals, self.shape)
        rest = totals - low
        nats = np.broadcast_to(self.nats, self.shape)
        x, z = self._split(high, total, rest, totals, nats)
        of_i = evidence_against_high(self.tilts, high, total, x)
        of_j = evidence_against_high(self.tilts, rest, totals, z)
        # by the count of the rest, and z = 1 - y
        weights = of_i.by_count[..., None] * self.of_i - of_j.by_count[..., None] * self.of_others
        room = nats - of_i.value - of_j.value
        if self.sets is None:
            least = (_least_sets(weights) * weights).sum(axis=2)
            room += of_i.by_count * high - of_j.by_count * low - least
        low_end = 1.0 - z
        with np.errstate(all="ignore"):
            slopes = of_j.by_probability / of_i.by_probability
            heights = x - slopes * low_end + room / of_i.by_probability
            heights += ROUNDING * (1.0 + slopes * low_end)
        return _Lines(heights, slopes), weights

    def _split(
        self,
        high: np.ndarray,
        total: np.ndarray,
        rest: np.ndarray,
        totals: np.ndarray,
        nats: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nats of either row, by bisection, at which the line of each slope touches: the
        probabilities x of row i and z = 1 - y of row j."""
        lent = -self.tilts.log_weights[0]
        least = np.full(self.shape, -lent)
        most = nats + lent
        for _ in range(BISECTIONS):
            middle = 0.5 * (least + most)
            x = upper_ends(self.tilts, high, total, middle)
            z = upper_ends(self.tilts, rest, totals, nats - middle)
            gain = evidence_against_high(self.tilts, high, total, x).by_probability
            loss = evidence_against_high(self.tilts, rest, totals, z).by_probability
            # more nats for row i while they raise x by more than they cost, or cost nothing
            rises = ((loss > self.slopes * gain) | (z >= 1.0)) & (x < 1.0)
            least = np.where(rises, middle, least)
            most = np.where(rises, most, middle)
        middle = 0.5 * (least + most)
        x = upper_ends(self.tilts, high, total, middle)
        z = upper_ends(self.tilts, rest, totals, nats - middle)
        return x, z


def _slopes_up_to(most: float) -> np.ndarray:
    """Slopes of lines from 1 to at least `most`."""
    fine = np.arange(STEEP * SLOPES_OF_OCTAVE) / SLOPES_OF_OCTAVE
    last = max(int(np.ceil(np.log2(most))), STEEP + 1)
    coarse = np.arange(STEEP, last + 1)
    return 2.0 ** np.concatenate((fine, coarse))


def _sets_of(n: int) -> np.ndarray:
    """All sets of n states but the empty and the full one (2^n - 2, n), as truths."""
    numbers = np.arange(1, 2**n - 1)
    return (numbers[:, None] >> np.arange(n)) % 2 == 1


def _least_sets(weights: np.ndarray) -> np.ndarray:
    """The sets with the least sums of weights (..., n), neither empty nor full, as arrays of
    truths."""
    chosen = weights < 0.0
    states = np.arange(weights.shape[-1])
    largest = weights.argmax(axis=-1)[..., None] == states
    smallest = weights.argmin(axis=-1)[..., None] == states
    is_full = np.all(chosen, axis=-1, keepdims=True)
    is_empty = ~np.any(chosen, axis=-1, keepdims=True)
    not_full = chosen & ~(is_full & largest)
    return not_full | (is_empty & smallest)


def _without_idle(lines: _Lines) -> _Lines:
    """The lines, of growing slopes, that bound some point with y >= 0: heights fall and are convex
    in the slopes."""
    kept: list[int] = []
    last = int(lines.heights.argmin())
    for k in range(last + 1):
        while len(kept) > 1 and _is_idle(lines, kept[-2], kept[-1], k):
            kept.pop()
        kept.append(k)
    return _Lines(lines.heights[kept], lines.slopes[kept])


def _is_idle(lines: _Lines, before: int, middle: int, after: int) -> bool:
    """Whether a line is nowhere below the two around it."""
    h = lines.heights
    s = lines.slopes
    chord = (h[after] - h[before]) * (s[middle] - s[before])
    return bool((h[middle] - h[before]) * (s[after] - s[before]) >= chord)


def _corners_below(lines: _Lines, i: int, j: int) -> np.ndarray:
    """Corners (K, 5), rows as of a hull's vertices, of what is below all lines, of growing
    slopes, with x <= 1 and y >= 0."""
    if lines.heights.size == 0:
        return _as_corners(np.zeros(1), np.ones(1), i, j)
    bounding = _without_idle(lines)
    heights = bounding.heights
    slopes = bounding.slopes
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.diff(heights) / -np.diff(slopes)
        x = heights[:-1] + slopes[:-1] * y
    at_top = max(float(((1.0 - heights) / slopes).max()), 0.0)
    is_below_top = x < 1.0
    # where x is 1, and where y is 0
    y = np.concatenate((y[is_below_top], [at_top, 0.0]))
    x = np.concatenate((x[is_below_top], [1.0, heights[-1]]))
    return _as_corners(y, x, i, j)


def _as_corners(low: np.ndarray, high: np.ndarray, i: int, j: int) -> np.ndarray:
    """Points of least probabilities in row j and largest ones in row i as rows (K, 5) of a hull,
    rounded outwards."""
    below = np.maximum(low - ROUNDING, 0.0)
    above = np.minimum(high + ROUNDING, 1.0)
    row_i = np.full(low.size, i)
    row_j = np.full(low.size, j)
    corners = np.column_stack([below, above - below, 1.0 - above, row_i, row_j])
    has_gap = above > below
    return corners[has_gap]
