"""The polynomial algorithm of Section 4.2 of [1]: Algorithm 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.published.formula import factors, log_f, one_leakage
from tplrepro.validation import as_transition_array

__all__ = ["algorithm_1"]

BLOCK = 1 << 16  # entries of a block of pairs: its few temporaries stay in a core's cache


def algorithm_1(P: ArrayLike, alpha: float, epsilon: float = 0.0) -> float:
    """BPL or FPL at one time point by Algorithm 1 of [1]: L(alpha) + epsilon.

    All pairs of a block of rows q with every row d are solved at once. A block holds 2^16 entries or one row q,
    whichever is more, so memory is O(n^2), not n^3. One pass over the columns removes every column that violates
    Inequality (22), which [1] shows to be allowed.

    Parameters
    ----------
    P : array-like (n, n), the backward or forward transition matrix; else ValueError
    alpha, epsilon : float, the previous BPL or next FPL and the budget of the release itself, nats
        Finite and at least 0, else ValueError.

    Examples
    --------
    The second point of the middle line of Fig. 3(a) of [1], log(0.8 (e^0.1 - 1) + 1) + 0.1:

    >>> round(algorithm_1([[0.8, 0.2], [0.0, 1.0]], 0.1, epsilon=0.1), 6)
    0.180784
    """
    rows = as_transition_array(P)
    alpha, epsilon = one_leakage(alpha, "alpha"), one_leakage(epsilon, "epsilon")
    n = rows.shape[0]
    rise, floor = factors(alpha)
    largest = 0.0
    block = max(1, BLOCK // (n * n))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for start in range(0, n, block):
            excess = rows[start : start + block, None, :] - rows  # q_j - d_j, (block, n, n)
            ratio = excess / rows  # inf where d_j = 0 < q_j; NaN, which is never kept, where both are 0
            x, p, d = np.zeros((3, *excess.shape[:2]))
            while True:
                kept = ratio > x[:, :, None]  # first Corollary 2, q_j > d_j; then Inequality (22)
                p_kept = np.einsum("bij,bij->bi", excess, kept)
                d_kept = np.einsum("ij,bij->bi", rows, kept)
                x_kept = p_kept * rise / (d_kept * rise + floor)
                better = x_kept > x
                if not better.any():
                    break
                x[better], p[better], d[better] = x_kept[better], p_kept[better], d_kept[better]
            largest = max(largest, float(log_f(p, d, alpha).max()))
    return largest + epsilon
