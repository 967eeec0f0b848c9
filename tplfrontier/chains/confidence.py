"""A loss function above those of all matrices that are plausible given counts of observed steps.

With probability at least `confidence`, all rows i, sets S of columns and numbers of steps at once
satisfy KL(p_i(S) || P_i(S)) <= r_i for the observed shares p_i(S) and the true probabilities
P_i(S), where

    r_i = (log((2^(n-1) - 1) n / (1 - confidence)) + log(N_i) / 2 + log 2) / N_i.

So P_i(S) is at most an upper end U_i and P_j(S) at least a lower end D_j. The ROC curve of rows i
and j has the largest p_i(S) for each p_j(S). The joint hull of all points (D_j, U_i) along these
curves bounds the loss of all these matrices. Tangents enclose the curves, which are concave
(docs/theory/promises.md).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tplrepro.leakage.envelope import hull_of_points
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix, checked_counts
from tplrepro.validation import check_probability

#: Points of each straight piece of an ROC curve at which tangents touch; with 5 the loss is within 0.1 % of its limit.
TANGENTS = 5
#: Newton steps from above, each of which squares the error; 12 end at the last bits.
STEPS = 12
#: Exceeds all rounding of a divergence and of a probability here.
ROUNDING = 1e-14


def loss_from_counts(
    counts: Any, confidence: float = 0.95, states: Iterable | None = None
) -> PrivacyLossFunction:
    """A loss function that exceeds that of the true chain with a given confidence; time and memory
    O(n^3).

    `counts` (n, n) are numbers of steps from each state (row) to each state (column), and `states`
    their labels, as in `TransitionMatrix.from_counts`; the transposed counts give the backward
    side. `confidence` in (0, 1) is a probability over the observed steps. The result is
    conservative: L(alpha) = alpha if a state was never left. Its `matrix` holds the observed
    shares, and its `vertices` need not belong to sets of columns.

    >>> steps = np.array([[80, 20], [10, 90]])
    >>> [round(loss_from_counts(counts)(1.0), 4) for counts in (steps, 1000 * steps)]
    [0.9042, 0.7166]
    >>> round(PrivacyLossFunction(TransitionMatrix.from_counts(steps))(1.0), 4)  # of the shares
    0.7063
    """
    confidence = check_probability(confidence, "confidence", one=False)
    matrix, labels = checked_counts(counts, states)
    steps = matrix.toarray()
    n, totals = len(steps), steps.sum(axis=1)
    shares = np.divide(
        steps, totals[:, None], out=np.full_like(steps, 1.0 / n), where=totals[:, None] > 0
    )
    radius = radii(totals, n, confidence)
    points = np.empty((0, 5))
    for i in range(n):
        found = [points, *(_curve(shares, radius, i, j) for j in range(n) if j != i)]
        points = hull_of_points(np.vstack(found))
    return PrivacyLossFunction.of_hull(TransitionMatrix(shares, labels, normalize=True), points)


def radii(totals: np.ndarray, n: int, confidence: float) -> np.ndarray:
    """The radius r_i (n,) of each row's set in Kullback-Leibler divergence, inf for a row without
    steps."""
    sets = (n - 1) * np.log(2.0) + (np.log1p(-(2.0 ** (1 - n))) if n > 1 else 0.0)
    logs = (
        sets
        + np.log(n)
        - np.log1p(-confidence)
        + 0.5 * np.log(np.maximum(totals, 1.0))
        + np.log(2.0)
    )
    return np.divide(logs, totals, out=np.full(n, np.inf), where=totals > 0)


def upper_end(shares: np.ndarray, radius: float) -> np.ndarray:
    """The largest p with KL(share || p) <= radius, elementwise, rounded up."""
    if radius == np.inf:
        return np.ones_like(shares)
    # as a rounding of the divergence moves an end close to the share by far more than its own
    radius += ROUNDING
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(shares > 0, shares * np.log(shares), 0.0)
        entropy -= np.where(shares < 1, (1 - shares) * np.log1p(-shares), 0.0)
        ends = np.minimum(
            shares + np.sqrt(radius / 2.0), -np.expm1(-(radius + entropy) / (1.0 - shares))
        )
        # Newton's method from above: KL is convex in p, so no step goes below
        for _ in range(STEPS):
            divergence = np.where(shares > 0, shares * np.log(shares / ends), 0.0)
            divergence += np.where(
                shares < 1, (1 - shares) * np.log((1 - shares) / (1 - ends)), 0.0
            )
            step = (divergence - radius) * ends * (1.0 - ends) / (ends - shares)
            ends = np.where(step > 0.0, ends - step, ends)
    return np.where(shares < 1.0, np.minimum(ends + ROUNDING, 1.0), 1.0)


def _slope(shares: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The derivative of an end of the interval in the share."""
    odds = np.log(ends / shares) + np.log((1.0 - shares) / (1.0 - ends))
    return odds * ends * (1.0 - ends) / (ends - shares)


def _curve(shares: np.ndarray, radius: np.ndarray, i: int, j: int) -> np.ndarray:
    """Corners (K, 5) of the tangents that enclose the curve of rows q = i and d = j, with rising
    d."""
    q, d = shares[i], shares[j]
    columns = np.flatnonzero((q > 0) | (d > 0))
    order = columns[np.argsort(-q[columns] / (q[columns] + d[columns]), kind="stable")]
    remaining = np.linspace(1.0, 0.0, TANGENTS)[:, None]
    x, y = (
        np.ravel(np.clip(np.cumsum(row[order]) - remaining * row[order], 0.0, 1.0), order="F")
        for row in (d, q)
    )
    rises, runs = np.repeat(q[order], TANGENTS), np.repeat(d[order], TANGENTS)
    # Every set but the empty one has at least the smallest share: the curve begins there.
    first = int(np.searchsorted(x, d.min(), side="right")) - 1
    if first + 1 < x.size and x[first] < d.min():
        y[first] += (d.min() - x[first]) * (y[first + 1] - y[first]) / (x[first + 1] - x[first])
        x[first] = d.min()
    x, y, rises, runs = x[first:], y[first:], rises[first:], runs[first:]
    low, high = 1.0 - upper_end(1.0 - x, radius[j]), upper_end(y, radius[i])
    with np.errstate(all="ignore"):
        rise, run = rises * _slope(y, high), runs * _slope(x, low)
        slope = np.where(run > 0.0, rise / run, np.inf)
        slope = np.where(np.isnan(slope) | (high >= 1.0), 0.0, slope)
        # Where two neighbouring tangents meet; the second ends at its own point if they hardly
        # differ.
        from_a, from_b = slope[:-1], slope[1:]
        meet = low[:-1] + (high[1:] - high[:-1] - from_b * (low[1:] - low[:-1])) / (from_a - from_b)
        meet = np.where(np.isinf(from_a), low[:-1], meet)
        meet = np.where((meet >= low[:-1]) & (meet <= low[1:]), meet, low[:-1])
        top = np.where(
            meet == low[:-1],
            high[1:] - from_b * (low[1:] - low[:-1]),
            high[:-1] + from_a * (meet - low[:-1]),
        )
        top = np.where(np.isfinite(top), np.clip(top, high[:-1], high[1:]), high[1:])
    below = np.maximum(np.concatenate((low, meet)) - ROUNDING, 0.0)
    above = np.minimum(np.concatenate((high, top)) + ROUNDING, 1.0)
    corners = np.column_stack(
        [below, above - below, 1.0 - above, np.full(below.size, i), np.full(below.size, j)]
    )
    return corners[above > below]
