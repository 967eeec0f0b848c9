"""A loss function above those of all matrices that are plausible given counts of observed steps.

With probability at least `confidence`, all rows i, sets S of columns and numbers of steps at once
satisfy KL(p_i(S) || P_i(S)) <= r_i for the observed shares p_i(S) and the true probabilities
P_i(S), where

    r_i = (log((2^(n-1) - 1) n p / (1 - confidence)) + log(N_i) / 2 + log 2) / N_i,

for matrices of p phases, each of which has n rows.

If noise was added to the counts, the noise in a row is known by the largest sum W of its positive
or of its negative parts. With clipped noisy counts c, the shares are then within W / c_i(all) of
c_i(S) / c_i(all), and N_i is at least c_i(all) - W: the shares are shifted, and nothing else
changes (docs/theory/private_model.md).

So P_i(S) is at most an upper end U_i and P_j(S) at least a lower end D_j. The ROC curve of rows i
and j has the largest p_i(S) for each p_j(S); with the ends U_i and D_j in place of the shares it is
bent. The joint hull of all points (D_j, U_i) along these curves bounds the loss of all these
matrices. Tangents enclose the bent curves, which are concave (docs/theory/promises.md).

With `method="pairs"` both rows share the evidence: see `tplfrontier.chains.pairs_of_rows`.
"""

from __future__ import annotations
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from tplrepro.leakage.envelope import hull_of_points
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.cycle import Cycle
from tplrepro.markov.transition import TransitionMatrix, checked_counts
from tplrepro.validation import LARGEST, as_scalar, check_choice, check_probability, check_range

# Points of each straight piece of an ROC curve at which tangents touch; with 5 the loss is within
# 0.1 % of its limit.
TANGENTS = 5
#: Newton steps from above, each of which squares the error; 12 end at the last bits.
STEPS = 12
NOISE = "noise must be a sum of noise, finite and at least 0"
EXPECTED = "expected_steps must be a number of steps, finite and at least 1"
#: How the sets of probabilities are made.
ROWS = "rows"
PAIRS = "pairs"
#: Exceeds all rounding of a divergence and of a probability here.
ROUNDING = 1e-14


def loss_from_counts(
    counts: Any,
    confidence: float = 0.95,
    states: Iterable | None = None,
    *,
    step: str | timedelta | None = None,
    noise: float = 0.0,
    method: str = ROWS,
    expected_steps: float | None = None,
) -> Any:
    """A loss function that exceeds that of the true chain with a given confidence; time and memory
    O(n^3).

    "Estimated matrices" in docs/theory/promises.md has the proof. The result is conservative:
    L(alpha) = alpha if a state was never left. Its `matrix` holds the observed shares, and its
    `vertices` need not belong to sets of columns. With counts of each phase of a cycle, all loss
    functions exceed the true ones at once: few phases cost less.

    Parameters
    ----------
    counts : array-like or DataFrame (n, n), or several of these
        Numbers of steps from each state (row) to each state (column), for all states there are; the
        transposed counts give the backward side of walks that begin in the habit, but not at all
        times at once for a walk that grows. Both sides hold together with twice the risk. An array
        (p, n, n), a list or a mapping from the labels of p phases holds the steps that began at
        each phase; one object for several phases, those of all of these, which share a matrix.
    confidence : float, optional
        A probability in (0, 1) over the observed steps.
    states : iterable, optional
        The labels of the states, as in `TransitionMatrix.from_counts`.
    step : str or datetime.timedelta, optional
        The length of a step, such as "1h".
    noise : float, optional
        W: in no row is the noise that was added to the counts larger, in the sum of its positive
        parts or of its negative ones. Negative counts are to be set to 0.
    method : {"rows", "pairs"}, optional
        "rows" bounds each row by itself; "pairs" weighs the evidence about two rows together, which
        is closer (theorem E). It needs counts without noise.
    expected_steps : float >= 1, optional
        About how many steps from each state are expected, for "pairs". Fix it before you see any
        step, such as from the length of the study, and keep it when more steps come: the loss is
        then closer still. With other numbers of steps it is wider, but no less sure.

    Returns
    -------
    PrivacyLossFunction, or a Cycle of one for each phase
        L(alpha) in nats, above that of every plausible matrix.

    Raises
    ------
    ValueError
        For counts that are negative, not finite or not square, a confidence out of range, noise
        that is negative or not finite, a method that there is not, expected steps below 1 or with
        "rows", noise with "pairs", or phases with different states.

    Examples
    --------
    >>> steps = np.array([[80, 20], [10, 90]])
    >>> [round(loss_from_counts(counts)(1.0), 4) for counts in (steps, 1000 * steps)]
    [0.9042, 0.7166]
    >>> round(PrivacyLossFunction(TransitionMatrix.from_counts(steps))(1.0), 4)  # of the shares
    0.7063
    >>> by_phase = {"night": steps, "day": [[30, 70], [40, 60]]}
    >>> cycle = loss_from_counts(by_phase, step="12h")
    >>> cycle.phases, [round(loss(1.0), 4) for loss in cycle]
    (['night', 'day'], [0.9106, 0.4735])
    >>> round(loss_from_counts(steps, method="pairs")(1.0), 4)
    0.8726
    >>> round(loss_from_counts(steps, method="pairs", expected_steps=100)(1.0), 4)
    0.8496
    """
    confidence = check_probability(confidence, "confidence", one=False)
    noise = as_scalar(check_range(noise, 0.0, LARGEST, NOISE, "give the largest sum"), "noise")
    _check_method(method, noise, expected_steps)
    given = _counts_of_phases(counts)
    distinct = {id(table): table for table in given.counts}
    n_matrices = len(distinct)
    made = {}
    for key, table in distinct.items():
        sparse_steps, labels = checked_counts(table, states)
        steps = sparse_steps.toarray()
        shares = _observed_shares(steps, steps.sum(axis=1))
        observed = TransitionMatrix(shares, labels, normalize=True, step=step)
        if method == PAIRS:
            hull = _hull_of_pairs(steps, confidence, n_matrices, expected_steps)
        else:
            hull = _hull_of(EndsOfShares.of(steps, confidence, n_matrices, noise))
        made[key] = PrivacyLossFunction.of_hull(observed, hull)
    losses = [made[id(table)] for table in given.counts]
    if given.is_single:
        return losses[0]
    return Cycle(losses, given.phases, step=step)


def _check_method(method: str, noise: float, expected_steps: float | None) -> None:
    check_choice(method, "method", (ROWS, PAIRS))
    if method == PAIRS and noise > 0.0:
        raise ValueError(
            f"noise must be 0 with method='pairs', found {noise:g}; take method='rows'"
        )
    if expected_steps is None:
        return
    if method == ROWS:
        raise ValueError(
            f"expected_steps needs method='pairs', found method='rows' and {expected_steps!r}; "
            "leave it out, or take method='pairs'"
        )
    check_range(expected_steps, 1.0, LARGEST, EXPECTED, "give a number of steps")


def _hull_of_pairs(
    steps: np.ndarray, confidence: float, phases: int, expected_steps: float | None
) -> np.ndarray:
    # not imported where budgets need it not
    from tplfrontier.chains.pairs_of_rows import PairsOfRows

    return PairsOfRows.of(steps, confidence, phases, expected_steps).hull()


@dataclass(frozen=True)
class _GivenCounts:
    """The counts of each phase, the labels of the phases if they have some, and whether a single
    matrix was given, without phases."""

    counts: list
    phases: list | None
    is_single: bool


def _counts_of_phases(counts: Any) -> _GivenCounts:
    if isinstance(counts, Mapping):
        tables = [*counts.values()]
        labels = [*counts]
        return _GivenCounts(tables, labels, is_single=False)
    is_array = isinstance(counts, np.ndarray) and counts.ndim == 3
    if is_array or _is_list_of_tables(counts):
        return _GivenCounts([*counts], None, is_single=False)
    return _GivenCounts([counts], None, is_single=True)


def _is_list_of_tables(counts: Any) -> bool:
    if not isinstance(counts, list):
        return False
    return not any(map(_is_row, counts))


def _is_row(item: Any) -> bool:
    if isinstance(item, tuple) and hasattr(item[0], "tocsr"):  # counts with their states
        return False
    return np.ndim(item) == 1


@dataclass(frozen=True)
class EndsOfShares:
    """Observed shares (n, n), how far they may be from those without noise (n,), and the radii (n,)
    of the sets of probabilities around them, in nats."""

    shares: np.ndarray
    shifts: np.ndarray
    radii: np.ndarray

    @classmethod
    def of(cls, steps: np.ndarray, confidence: float, phases: int, noise: float) -> EndsOfShares:
        """The ends for counts (n, n), which hold with this confidence jointly with those of all
        `phases`; `noise` is the largest sum of the noise of one sign in a row."""
        totals = steps.sum(axis=1)
        # noisy counts: the true total is no less
        least_totals = np.maximum(totals - noise, 0.0)
        radii = divergence_radii(least_totals, len(steps), confidence, phases)
        shifts = np.zeros_like(totals)
        if noise:
            np.divide(noise, totals, out=shifts, where=totals > 0.0)
            shifts += ROUNDING
        return cls(_observed_shares(steps, totals), shifts, radii)

    def shares_of_high(self, i: int, y: np.ndarray) -> np.ndarray:
        """The largest shares in row i of sets that have the noisy shares y."""
        return np.minimum(y + self.shifts[i], 1.0)

    def shares_of_rest(self, j: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The largest shares in rows j of sets outside of those that have the noisy shares x; both
        are (m,)."""
        return np.minimum(1.0 - x + self.shifts[j], 1.0)


def _hull_of(ends: EndsOfShares) -> np.ndarray:
    """The joint hull of all bent curves."""
    n = len(ends.shares)
    hull = np.empty((0, 5))
    for i in range(n):
        corners = [hull, *_enclose_curves(ends, i)]
        hull = hull_of_points(np.vstack(corners))
    return hull


def _observed_shares(steps: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The shares of each state's steps (n, n), equal ones for a state that was never left."""
    n = len(steps)
    row_totals = totals[:, None]
    was_left = row_totals > 0
    shares = np.full_like(steps, 1.0 / n)
    np.divide(steps, row_totals, out=shares, where=was_left)
    return shares


def divergence_radii(totals: np.ndarray, n: int, confidence: float, phases: int = 1) -> np.ndarray:
    """The radius r_i of each row's set in Kullback-Leibler divergence.

    Parameters
    ----------
    totals : ndarray (n,)
        The number N_i of observed steps from each state.
    n : int
        The number of states.
    confidence : float
        The probability that the sets of all rows of all phases hold.
    phases : int, optional
        The number of matrices, p.

    Returns
    -------
    ndarray (n,)
        In nats; inf for a row without steps.
    """
    log_sets = (n - 1) * np.log(2.0)  # 2^(n-1) - 1 divisions of the columns into two sets
    if n > 1:
        empty_set = 2.0 ** (1 - n)
        log_sets += np.log1p(-empty_set)
    n_rows = n * phases
    log_events = log_sets + np.log(n_rows)
    log_union = log_events - np.log1p(-confidence)
    at_least_one = np.maximum(totals, 1.0)
    log_mixture = 0.5 * np.log(at_least_one)
    log_ratio = log_union + log_mixture + np.log(2.0)
    radii = np.full(n, np.inf)
    was_left = totals > 0
    np.divide(log_ratio, totals, out=radii, where=was_left)
    return radii


def upper_end(shares: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """The largest p with KL(share || p) <= radius, elementwise, rounded up.

    Parameters
    ----------
    shares : ndarray
        Observed shares, between 0 and 1.
    radius : float, or one for each share
        In nats; inf: nothing was observed.

    Returns
    -------
    ndarray
        Probabilities, at least the shares.
    """
    radii = np.broadcast_to(radius, shares.shape)
    is_observed = radii < np.inf
    ends = np.ones_like(shares)
    ends[is_observed] = _finite_upper_end(shares[is_observed], radii[is_observed])
    return ends


def _finite_upper_end(shares: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """The same for shares (m,) of rows with steps, and a finite radius for each."""
    # as a rounding of the divergence moves an end close to the share by far more than its own
    radii = radii + ROUNDING
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = _above_upper_end(shares, radii)
        # Newton's method from above: KL is convex in p, so no step goes below
        for _ in range(STEPS):
            excess = _compute_divergence(shares, ends) - radii
            distance = ends - shares
            rest = 1.0 - ends
            step = excess * ends * rest / distance
            lowered = ends - step
            is_above = step > 0.0
            ends = np.where(is_above, lowered, ends)
    rounded_up = np.minimum(ends + ROUNDING, 1.0)
    return np.where(shares < 1.0, rounded_up, 1.0)


def _above_upper_end(shares: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """The smaller of two simple bounds of the upper end of each share, for radii (m,) in nats."""
    rest = 1.0 - shares
    of_shares = shares * np.log(shares)
    of_rest = rest * np.log1p(-shares)
    entropy = -_sum_of_outcomes(shares, of_shares, of_rest)
    half = radii / 2.0
    by_pinsker = shares + np.sqrt(half)
    # KL >= -entropy - (1 - share) log(1 - p)
    most_nats = radii + entropy
    least_log_rest = -most_nats / rest
    by_rest = -np.expm1(least_log_rest)
    return np.minimum(by_pinsker, by_rest)


def _compute_divergence(shares: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """KL(share || end) of two outcomes, elementwise, nats."""
    rest = 1 - shares
    rest_of_ends = 1 - ends
    log_ratio = np.log(shares / ends)
    log_ratio_of_rest = np.log(rest / rest_of_ends)
    of_shares = shares * log_ratio
    of_rest = rest * log_ratio_of_rest
    return _sum_of_outcomes(shares, of_shares, of_rest)


def _sum_of_outcomes(shares: np.ndarray, of_shares: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
    """The sum of a term for each of two outcomes; an outcome whose share is 0 adds nothing."""
    is_possible = shares > 0
    total = np.where(is_possible, of_shares, 0.0)
    has_rest = shares < 1
    total += np.where(has_rest, of_rest, 0.0)
    return total


def _slope_of_end(shares: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The derivative of an upper or lower end by its share, elementwise, from dKL = 0."""
    rest = 1.0 - shares
    rest_of_ends = 1.0 - ends
    log_ratio = np.log(ends / shares)
    log_ratio_of_rest = np.log(rest / rest_of_ends)
    log_odds_ratio = log_ratio + log_ratio_of_rest
    distance = ends - shares
    return log_odds_ratio * ends * rest_of_ends / distance


@dataclass(frozen=True)
class _Curve:
    """Points of an ROC curve: its shares `x` of row j and `y` of row i, and how steeply each piece
    rises (`rises` over `runs`)."""

    x: np.ndarray
    y: np.ndarray
    rises: np.ndarray
    runs: np.ndarray

    def without_points_before(self, first: int) -> _Curve:
        """The curve from the point with the number `first` on."""
        kept = slice(first, None)
        x = self.x[kept]
        y = self.y[kept]
        rises = self.rises[kept]
        runs = self.runs[kept]
        return _Curve(x, y, rises, runs)


def _roc_curve(q: np.ndarray, d: np.ndarray) -> _Curve:
    """The largest share y of row q for each share x of row d, at `TANGENTS` points a piece."""
    is_used = (q > 0) | (d > 0)
    used = np.flatnonzero(is_used)
    both = q[used] + d[used]
    steepness = q[used] / both
    steepest_first = np.argsort(-steepness, kind="stable")
    order = used[steepest_first]
    rises = q[order]
    runs = d[order]
    curve = _Curve(
        x=_points_of_pieces(runs),
        y=_points_of_pieces(rises),
        rises=np.repeat(rises, TANGENTS),
        runs=np.repeat(runs, TANGENTS),
    )
    # Every set but the empty one has at least the smallest share: the curve begins there.
    return _begin_at(curve, d.min())


def _points_of_pieces(shares: np.ndarray) -> np.ndarray:
    """Partial sums (TANGENTS k,) of shares (k,), at `TANGENTS` equal distances along each share."""
    remaining = np.linspace(1.0, 0.0, TANGENTS)
    ends = np.cumsum(shares)
    distances = remaining[:, None] * shares
    sums = ends - distances
    probabilities = np.clip(sums, 0.0, 1.0)
    return np.ravel(probabilities, order="F")


def _begin_at(curve: _Curve, least: float) -> _Curve:
    """The curve from the share `least` of row j on; changes the curve given."""
    x = curve.x
    y = curve.y
    place = np.searchsorted(x, least, side="right")
    following = int(place)
    first = following - 1
    start = x[first]
    is_within_piece = following < x.size and start < least
    if is_within_piece:
        rise = y[following] - y[first]
        run = x[following] - start
        missing = least - start
        y[first] += missing * rise / run
        x[first] = least
    return curve.without_points_before(first)


def _enclose_curves(ends: EndsOfShares, i: int) -> Iterator[np.ndarray]:
    """Corners (K, 5), rows as of a hull's vertices, of the tangents that enclose each of the bent
    curves of a row q = i and another one, d = j, with rising d."""
    n = len(ends.shares)
    others = np.delete(np.arange(n), i)
    if not others.size:
        return
    curves = [_roc_curve(ends.shares[i], ends.shares[j]) for j in others]
    sizes = [curve.x.size for curve in curves]
    # Newton's steps take as long for the points of all curves as for those of a few.
    j = np.repeat(others, sizes)
    most_shares = ends.shares_of_high(i, np.concatenate([curve.y for curve in curves]))
    most_rest = ends.shares_of_rest(j, np.concatenate([curve.x for curve in curves]))
    low = 1.0 - upper_end(most_rest, ends.radii[j])  # D_j
    high = upper_end(most_shares, ends.radii[i])  # U_i
    with np.errstate(all="ignore"):
        slope_of_high = _slope_of_end(most_shares, high)
        slope_of_low = _slope_of_end(1.0 - most_rest, low)
        slope_of_low = np.where(most_rest < 1.0, slope_of_low, 0.0)
        rise = np.concatenate([curve.rises for curve in curves]) * slope_of_high
        run = np.concatenate([curve.runs for curve in curves]) * slope_of_low
        slope = _slopes_of_tangents(rise, run, high)
    stops = np.cumsum(sizes)
    for other, first, stop in zip(others.tolist(), stops - sizes, stops, strict=True):
        points = slice(first, stop)
        tangents = _Tangents(low[points], high[points], slope[points])
        yield _corners_of(tangents, i, other)


def _corners_of(tangents: _Tangents, i: int, j: int) -> np.ndarray:
    """The corners (K, 5) of the tangents of the bent curve of rows i and j."""
    with np.errstate(all="ignore"):
        meetings = tangents.find_meetings()
    d = np.concatenate((tangents.low, meetings.low))
    q = np.concatenate((tangents.high, meetings.high))
    below = np.maximum(d - ROUNDING, 0.0)
    above = np.minimum(q + ROUNDING, 1.0)
    gap = above - below
    rest = 1.0 - above
    row_i = np.full(gap.size, i)
    row_j = np.full(gap.size, j)
    corners = np.column_stack([below, gap, rest, row_i, row_j])
    has_gap = above > below
    return corners[has_gap]


def _slopes_of_tangents(rise: np.ndarray, run: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The slopes (K,) of a bent curve whose points rise by `rise` over `run`; flat where it is at
    its top, `high` = 1."""
    slope = rise / run
    is_not_vertical = run > 0.0
    slope = np.where(is_not_vertical, slope, np.inf)
    is_at_top = high >= 1.0
    is_flat = np.isnan(slope) | is_at_top
    return np.where(is_flat, 0.0, slope)


@dataclass(frozen=True)
class _Points:
    """Points of a bent curve: least probabilities `low` in row j, and largest ones `high` in row
    i."""

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class _Tangents:
    """Tangents of the bent curve at its points (low, high)."""

    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray

    def find_meetings(self) -> _Points:
        """The points at which each tangent meets the next one.

        The second tangent ends at its own point if two hardly differ.
        """
        slope = self.slope[:-1]
        next_slope = self.slope[1:]
        start = self.low[:-1]
        end = self.low[1:]
        high = self.high[:-1]
        next_high = self.high[1:]
        rise = next_high - high
        next_run = end - start
        next_rise = next_slope * next_run
        from_start = (rise - next_rise) / (slope - next_slope)
        low = start + from_start
        is_vertical = np.isinf(slope)
        low = np.where(is_vertical, start, low)
        is_between = (low >= start) & (low <= end)
        low = np.where(is_between, low, start)
        run = low - start
        on_tangent = high + slope * run
        on_next = next_high - next_rise
        is_at_start = low == start
        top = np.where(is_at_start, on_next, on_tangent)
        within = np.clip(top, high, next_high)
        is_known = np.isfinite(top)
        top = np.where(is_known, within, next_high)
        return _Points(low, top)
