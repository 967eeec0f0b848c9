"""The largest loss of all matrices that counts and a number of replaced steps leave possible.

Row i has N_i steps, of which y lead into a set S. If w of them are replaced, the share of S is at
most (y + w) / N_i. KL(share || P_i(S)) <= r_i bounds the probability from above, by U_i, as in
`tplfrontier.chains.confidence`, and D_j bounds it from below. The loss at u = e^alpha - 1 is the
largest log((U_i u + 1) / (D_j u + 1)) along the ROC curve of each pair of rows.

Unlike there, nothing is rounded up by tangents: a score must change by as much as its proof says.
The ratio rises and then falls along a curve, so the sign of its derivative is bisected: first
between the corners of the curve, then in the piece. A pair is left when a tangent shows that it
stays below the largest ratio so far.
"""

from math import expm1, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from tplrepro.leakage.envelope.compiled import announce_steps, kernel

#: Of a piece of a curve: the value is known to the square of this share.
CLOSELY = 1e-7
NEWTON_STEPS = 12
#: Elementary steps of a pair, for `announce_steps`.
STEPS_OF_PAIR = 2000


class CurvesOfPairs(NamedTuple):
    """The ROC curves of all pairs of rows i and j of counts, (n, n, 2, n + 1): sums of columns in
    falling order of C_ik / C_jk, from row j and from row i; and the totals (n,) of rows."""

    sums: np.ndarray
    totals: np.ndarray


def curves_of(counts: np.ndarray) -> CurvesOfPairs:
    """The curves of counts (n, n); all sums are whole numbers."""
    n = len(counts)
    steps = counts.astype(float)
    sums = np.zeros((n, n, 2, n + 1))
    totals = steps.sum(axis=1)
    at_least_one = np.maximum(totals, 1.0)
    shares = steps / at_least_one[:, None]
    for i in range(n):
        both = shares[i] + shares
        steepness = np.divide(shares[i], both, out=np.zeros_like(both), where=both > 0.0)
        order = np.argsort(-steepness, axis=1, kind="stable")
        of_j = np.take_along_axis(steps, order, axis=1)
        of_i = steps[i][order]
        sums[i, :, 0, 1:] = np.cumsum(of_j, axis=1)
        sums[i, :, 1, 1:] = np.cumsum(of_i, axis=1)
    sums.flags.writeable = False
    totals.flags.writeable = False
    return CurvesOfPairs(sums, totals)


@kernel()
def upper_end_of(share, rest, radius):
    """The largest p with KL(share || p) <= radius, nats; `rest` is 1 - share."""
    if rest <= 0.0:
        return 1.0
    # KL >= (p - share)^2 / (2 p rest), and KL >= -entropy - rest log(1 - p)
    half = radius * rest
    p = share + half + sqrt(half * half + 2.0 * half * share)
    nats = radius - rest * log(rest)
    if share > 0.0:
        nats -= share * log(share)
    p = min(p, -expm1(-nats / rest))
    for _ in range(NEWTON_STEPS):
        if p >= 1.0:
            return 1.0
        if p <= share:
            return share
        excess = rest * log(rest / (1.0 - p)) - radius
        if share > 0.0:
            excess += share * log(share / p)
        step = excess * p * (1.0 - p) / (p - share)
        if not step > 1e-16 * p:
            return p
        p -= step
    return p


@kernel()
def slope_of_end(share, rest, p):
    """How fast `upper_end_of` rises with its share."""
    if rest <= 0.0 or p <= share or p >= 1.0:
        return 0.0
    if share <= 0.0:
        return inf
    odds = log(p / share) + log(rest / (1.0 - p))
    return odds * p * (1.0 - p) / (p - share)


@kernel()
def point_of_curve(curve, ends, place, u):
    """A point of a pair's curve (2, n + 1): U, D, how they rise with `place`, and the direction in
    which (U u + 1) / (D u + 1) rises.

    `place` counts corners; a point between two of them has a fraction. `ends` (5,) are the totals
    of rows i and j, their radii, and w.
    """
    total_i, total_j, radius_i, radius_j, w = ends
    first = min(int(place), curve.shape[1] - 2)
    t = place - first
    run = curve[0, first + 1] - curve[0, first]
    rise = curve[1, first + 1] - curve[1, first]
    x = curve[0, first] + t * run
    y = curve[1, first] + t * rise
    share = min(y + w, total_i) / total_i
    rest = max(total_i - y - w, 0.0) / total_i
    high = upper_end_of(share, rest, radius_i)
    if rise > 0.0:
        rise = rise / total_i * slope_of_end(share, rest, high)
    share = min(total_j - x + w, total_j) / total_j
    rest = max(x - w, 0.0) / total_j
    most_rest = upper_end_of(share, rest, radius_j)
    low = 1.0 - most_rest
    if run > 0.0:
        run = run / total_j * slope_of_end(share, rest, most_rest)
    direction = 0.0
    if rise < inf or run < inf:
        direction = rise * (low * u + 1.0) - run * (high * u + 1.0)
    return high, low, rise, run, direction


@kernel()
def last_rising_corner(curve, ends, u):
    """The last corner of a curve from which the ratio rises, or the first one."""
    first = 0
    last = curve.shape[1] - 1
    while last - first > 1:
        middle = (first + last) // 2
        if point_of_curve(curve, ends, float(middle), u)[4] > 0.0:
            first = middle
        else:
            last = middle
    return first


@kernel()
def improve(best, high, low, u):
    """Make `best` (3,), a ratio with its U and D, that of this point, if it is larger."""
    ratio = (high * u + 1.0) / (low * u + 1.0)
    if ratio > best[0]:
        best[0] = ratio
        best[1] = high
        best[2] = low


@kernel()
def climb(curve, ends, u, best):
    """Look for a larger ratio than `best` on the curve of a pair."""
    first = last_rising_corner(curve, ends, u)
    for corner in range(first, first + 2):
        high, low, rise, run, direction = point_of_curve(curve, ends, float(corner), u)
        improve(best, high, low, u)
    below = float(first)
    above = first + 1.0
    while above - below > CLOSELY:
        place = 0.5 * (below + above)
        high, low, rise, run, direction = point_of_curve(curve, ends, place, u)
        improve(best, high, low, u)
        # the excess over the best, U u + 1 - best (D u + 1), is concave in a piece
        excess = high * u + 1.0 - best[0] * (low * u + 1.0)
        slope = (rise - best[0] * run) * u
        left = place - below
        if direction > 0.0:
            below = place
            left = above - place
        elif direction < 0.0:
            above = place
            slope = -slope
        else:
            return
        if excess + max(slope, 0.0) * left < 0.0:
            return


@kernel()
def largest_ratio(sums, totals, radii, w, u):
    """The largest ratio (U u + 1) / (D u + 1) over all pairs, with its U and D, (3,).

    `sums` and `totals` are those of `CurvesOfPairs`, `radii` (n,) those of the totals less w, which
    are positive.
    """
    n = totals.size
    best = np.array([1.0, 0.0, 0.0])
    for i in range(n):
        for j in range(n):
            if i != j:
                ends = (totals[i], totals[j], radii[i], radii[j], w)
                climb(sums[i, j], ends, u, best)
    return best


def announce_pairs(n: int, times: int) -> None:
    """Announce so many calls of `largest_ratio`, which is compiled where that is worth it."""
    announce_steps(STEPS_OF_PAIR * n * n * times)
