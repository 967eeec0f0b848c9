"""A loss function above those of all matrices that are plausible given counts of observed steps.

With probability at least `confidence`, all rows i, sets S of columns and numbers of steps at once
satisfy KL(p_i(S) || P_i(S)) <= r_i for the observed shares p_i(S) and the true probabilities
P_i(S), where

    r_i = (log((2^(n-1) - 1) n p / (1 - confidence)) + log(N_i) / 2 + log 2) / N_i,

for matrices of p phases, each of which has n rows.

So P_i(S) is at most an upper end U_i and P_j(S) at least a lower end D_j. The ROC curve of rows i
and j has the largest p_i(S) for each p_j(S). The joint hull of all points (D_j, U_i) along these
curves bounds the loss of all these matrices. Tangents enclose the curves, which are concave
(docs/theory/promises.md).
"""

from __future__ import annotations
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from tplrepro.leakage.envelope import hull_of_points
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.cycle import Cycle
from tplrepro.markov.transition import TransitionMatrix, checked_counts
from tplrepro.validation import check_probability

# Points of each straight piece of an ROC curve at which tangents touch; with 5 the loss is within
# 0.1 % of its limit.
TANGENTS = 5
#: Newton steps from above, each of which squares the error; 12 end at the last bits.
STEPS = 12
#: Exceeds all rounding of a divergence and of a probability here.
ROUNDING = 1e-14


def loss_from_counts(
    counts: Any,
    confidence: float = 0.95,
    states: Iterable | None = None,
    *,
    step: str | timedelta | None = None,
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
        Numbers of steps from each state (row) to each state (column); the transposed counts give
        the backward side. An array (p, n, n), a list or a mapping from the labels of p phases holds
        the steps that began at each phase.
    confidence : float, optional
        A probability in (0, 1) over the observed steps.
    states : iterable, optional
        The labels of the states, as in `TransitionMatrix.from_counts`.
    step : str or datetime.timedelta, optional
        The length of a step, such as "1h".

    Returns
    -------
    PrivacyLossFunction, or a Cycle of one for each phase
        L(alpha) in nats, above that of every plausible matrix.

    Raises
    ------
    ValueError
        For counts that are negative, not finite or not square, a confidence out of range, or phases
        with different states.

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
    """
    confidence = check_probability(confidence, "confidence", one=False)
    given = _counts_of_phases(counts)
    losses = [
        _loss_of_phase(each, confidence, len(given.counts), states, step) for each in given.counts
    ]
    if given.is_single:
        return losses[0]
    return Cycle(losses, given.phases, step=step)


@dataclass(frozen=True)
class _GivenCounts:
    """The counts of each phase, the labels of the phases if they have some, and whether a single
    matrix was given, without phases."""

    counts: list
    phases: list | None
    is_single: bool


def _counts_of_phases(counts: Any) -> _GivenCounts:
    if isinstance(counts, Mapping):
        return _GivenCounts([*counts.values()], [*counts], is_single=False)
    is_array = isinstance(counts, np.ndarray) and counts.ndim == 3
    is_list = isinstance(counts, list) and not any(np.ndim(each) == 1 for each in counts)
    if is_array or is_list:
        return _GivenCounts([*counts], None, is_single=False)
    return _GivenCounts([counts], None, is_single=True)


def _loss_of_phase(
    counts: Any,
    confidence: float,
    phases: int,
    states: Iterable | None,
    step: str | timedelta | None,
) -> PrivacyLossFunction:
    """L above that of the true matrix, jointly with those of the other phases."""
    matrix, labels = checked_counts(counts, states)
    steps = matrix.toarray()
    n = len(steps)
    totals = steps.sum(axis=1)
    was_left = totals[:, None] > 0
    alike = np.full_like(steps, 1.0 / n)
    shares = np.divide(steps, totals[:, None], out=alike, where=was_left)
    row_radii = radii(totals, n, confidence, phases)
    points = np.empty((0, 5))
    for i in range(n):
        curves = [_enclose_curve(shares, row_radii, i, j) for j in range(n) if j != i]
        points = hull_of_points(np.vstack([points, *curves]))
    observed = TransitionMatrix(shares, labels, normalize=True, step=step)
    return PrivacyLossFunction.of_hull(observed, points)


def radii(totals: np.ndarray, n: int, confidence: float, phases: int = 1) -> np.ndarray:
    """The radius r_i of each row's set in Kullback-Leibler divergence.

    Parameters
    ----------
    totals : ndarray (n,)
        The numbers of steps from each state.
    n : int
        The number of states.
    confidence : float
        The probability that the sets of all rows of all phases hold.
    phases : int, optional
        The number of matrices, p.

    Returns
    -------
    ndarray (n,)
        In nats, inf for a row without steps.
    """
    log_sets = (n - 1) * np.log(2.0)
    if n > 1:
        log_sets += np.log1p(-(2.0 ** (1 - n)))
    log_events = log_sets + np.log(n * phases) - np.log1p(-confidence)
    without_steps = np.full(n, np.inf)
    return np.divide(
        log_events + 0.5 * np.log(np.maximum(totals, 1.0)) + np.log(2.0),
        totals,
        out=without_steps,
        where=totals > 0,
    )


def upper_end(shares: np.ndarray, radius: float) -> np.ndarray:
    """The largest p with KL(share || p) <= radius, elementwise, rounded up.

    Parameters
    ----------
    shares : ndarray
        Observed shares, between 0 and 1.
    radius : float
        In nats; inf: nothing was observed.

    Returns
    -------
    ndarray
        Probabilities, at least the shares.
    """
    if radius == np.inf:
        return np.ones_like(shares)
    # as a rounding of the divergence moves an end close to the share by far more than its own
    radius += ROUNDING
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(shares > 0, shares * np.log(shares), 0.0)
        entropy -= np.where(shares < 1, (1 - shares) * np.log1p(-shares), 0.0)
        by_pinsker = shares + np.sqrt(radius / 2.0)
        by_other_share = -np.expm1(-(radius + entropy) / (1.0 - shares))
        ends = np.minimum(by_pinsker, by_other_share)
        # Newton's method from above: KL is convex in p, so no step goes below
        for _ in range(STEPS):
            excess = _divergence(shares, ends) - radius
            step = excess * ends * (1.0 - ends) / (ends - shares)
            ends = np.where(step > 0.0, ends - step, ends)
    rounded_up = np.minimum(ends + ROUNDING, 1.0)
    return np.where(shares < 1.0, rounded_up, 1.0)


def _divergence(shares: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """KL(share || end) of two outcomes."""
    divergence = np.where(shares > 0, shares * np.log(shares / ends), 0.0)
    of_the_rest = (1 - shares) * np.log((1 - shares) / (1 - ends))
    divergence += np.where(shares < 1, of_the_rest, 0.0)
    return divergence


def _slope(shares: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The derivative of an end of the interval in the share."""
    odds = np.log(ends / shares) + np.log((1.0 - shares) / (1.0 - ends))
    return odds * ends * (1.0 - ends) / (ends - shares)


@dataclass(frozen=True)
class _Curve:
    """Points of an ROC curve: its shares `x` of row j and `y` of row i, and how steeply each piece
    rises (`rises` over `runs`)."""

    x: np.ndarray
    y: np.ndarray
    rises: np.ndarray
    runs: np.ndarray


def _roc_curve(q: np.ndarray, d: np.ndarray) -> _Curve:
    """The largest share y of row q for each share x of row d, at `TANGENTS` points a piece."""
    columns = np.flatnonzero((q > 0) | (d > 0))
    shares_of_q = q[columns] / (q[columns] + d[columns])
    order = columns[np.argsort(-shares_of_q, kind="stable")]
    remaining = np.linspace(1.0, 0.0, TANGENTS)[:, None]

    def partial_sums(row: np.ndarray) -> np.ndarray:
        sums = np.cumsum(row[order]) - remaining * row[order]
        return np.ravel(np.clip(sums, 0.0, 1.0), order="F")

    x = partial_sums(d)
    y = partial_sums(q)
    rises = np.repeat(q[order], TANGENTS)
    runs = np.repeat(d[order], TANGENTS)
    # Every set but the empty one has at least the smallest share: the curve begins there.
    least = d.min()
    first = int(np.searchsorted(x, least, side="right")) - 1
    if first + 1 < x.size and x[first] < least:
        y[first] += (least - x[first]) * (y[first + 1] - y[first]) / (x[first + 1] - x[first])
        x[first] = least
    return _Curve(x[first:], y[first:], rises[first:], runs[first:])


def _enclose_curve(shares: np.ndarray, row_radii: np.ndarray, i: int, j: int) -> np.ndarray:
    """Corners (K, 5) of the tangents that enclose the curve of rows q = i and d = j, with rising
    d."""
    curve = _roc_curve(shares[i], shares[j])
    low = 1.0 - upper_end(1.0 - curve.x, row_radii[j])
    high = upper_end(curve.y, row_radii[i])
    with np.errstate(all="ignore"):
        rise = curve.rises * _slope(curve.y, high)
        run = curve.runs * _slope(curve.x, low)
        slope = np.where(run > 0.0, rise / run, np.inf)
        slope = np.where(np.isnan(slope) | (high >= 1.0), 0.0, slope)
        meet, top = _where_tangents_meet(low, high, slope)
    below = np.maximum(np.concatenate((low, meet)) - ROUNDING, 0.0)
    above = np.minimum(np.concatenate((high, top)) + ROUNDING, 1.0)
    corners = np.column_stack(
        [below, above - below, 1.0 - above, np.full(below.size, i), np.full(below.size, j)]
    )
    return corners[above > below]


def _where_tangents_meet(
    low: np.ndarray, high: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The points at which tangents with these slopes at (low, high) meet their next neighbours.

    The second tangent ends at its own point if two hardly differ.
    """
    slope_a = slope[:-1]
    slope_b = slope[1:]
    low_a = low[:-1]
    low_b = low[1:]
    high_a = high[:-1]
    high_b = high[1:]
    meet = low_a + (high_b - high_a - slope_b * (low_b - low_a)) / (slope_a - slope_b)
    meet = np.where(np.isinf(slope_a), low_a, meet)
    is_between = (meet >= low_a) & (meet <= low_b)
    meet = np.where(is_between, meet, low_a)
    top_of_b = high_b - slope_b * (low_b - low_a)
    top_of_a = high_a + slope_a * (meet - low_a)
    top = np.where(meet == low_a, top_of_b, top_of_a)
    top = np.where(np.isfinite(top), np.clip(top, high_a, high_b), high_b)
    return meet, top
