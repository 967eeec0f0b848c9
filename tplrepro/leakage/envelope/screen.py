"""The choice of a screen: slopes with caps on the excess that settle most pairs without looking at them one by one.

If s(mu) is at most cap_l at slope mu_l for every l, and the polygon through the points (mu_l, cap_l) runs under the
hull's support function h, then s, being convex, is under h as well. The excesses of one row d against many rows q at
one slope are vectorised over a tile of rows q, in single precision where the caps leave room for its rounding:

    s(mu) = sum_k max(q_k, c_k) - sum_k c_k,    c_k = (1 + mu) d_k,

over the columns in which some row exceeds c_k; the others add nothing, which leaves few at steep slopes. The sum is
compared with the cap plus a bound on its error, so what is settled is settled rigorously (`kernels.find_outside`).
"""

from __future__ import annotations

import numpy as np

from tplrepro.leakage.envelope import kernels
from tplrepro.leakage.envelope.kernels import Screen

__all__ = ["SAMPLED_PAIRS", "choose_screen", "unit_roundoff"]

SAMPLED_PAIRS = 100
SAMPLED_SLOPES = 24
# Caps to try in turn: which of the sample's excesses from the top, a factor, and how many slopes they may take. Higher
# caps leave fewer pairs, and need more slopes to stay under the hull.
CAPS = ((1, 1.05, 10), (2, 1.0, 16))


def choose_screen(rows, far, hull, largest, sample) -> tuple[Screen, type]:
    """Few slopes whose caps most of a sample of SAMPLED_PAIRS keep, an empty screen if there are none, as where pairs
    tie; and the precision of the sums that are compared with the caps.
    """
    slopes, support, _ = hull
    n = rows.shape[0]
    at = kernels.spread_edges(slopes, SAMPLED_SLOPES)
    excesses = np.sort(kernels.excesses(rows, sample, slopes[at]), axis=1)
    usual_far = np.partition(far, n - 1 - n // 100)[n - 1 - n // 100]
    for precision in (np.float32, np.float64):
        # Caps leave room for the rounding of the sums that are compared with them; near the last slope no room is left,
        # but there usually is no excess either.
        room = 8.0 * kernels.rounding_error(n, largest.sum(), unit_roundoff(precision))
        if support[0] < 8.0 * room:
            continue
        edge = np.flatnonzero((support >= room) | (slopes >= min(usual_far, slopes[-1])))
        for kept, slack, most in CAPS:
            caps = np.interp(slopes[edge], slopes[at], slack * excesses[:, -kept])
            caps = np.minimum(np.maximum(caps, room), support[edge])
            chosen = kernels.chain(slopes[edge], caps, edge, usual_far, hull, most)
            # Where pairs tie, the hull is as low as most of them, and no screen settles them.
            if chosen.size > 0 and caps[0] > excesses[0, SAMPLED_PAIRS // 2]:
                return Screen(slopes[edge[chosen]], caps[chosen], edge[chosen]), precision
    return Screen(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)), np.float64


def unit_roundoff(precision: type) -> float:
    return 0.5 * float(np.finfo(precision).eps)
