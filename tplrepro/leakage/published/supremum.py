"""Leakage in the limit, Section 5 of [1]: Theorem 11 and Algorithm 6."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.published.formula import factors
from tplrepro.leakage.published.precomputation import PrecomputedTables
from tplrepro.validation import check_epsilon, one_number

__all__ = ["algorithm_6", "theorem_11"]

BLOCK = 1 << 16  # coefficients evaluated at once


def theorem_11(q: ArrayLike, d: ArrayLike, epsilon: float) -> float | np.ndarray:
    """Supremum over time of BPL or FPL for coefficients q and d: the four cases of Theorem 11 of [1].

    Elementwise for 0 <= d <= q <= 1, in nats; `epsilon` where q = d, inf where d = 0 and epsilon >= log(1/q).
    ValueError for coefficients out of range and a budget, spent at each time point, that is not positive and finite.

    Examples
    --------
    The matrices of Fig. 5(d) and (b) of [1] at epsilon = 0.23: one supremum, and none.

    >>> round(theorem_11(0.8, 0.1, 0.23), 6), theorem_11(0.8, 0.0, 0.23)
    (0.792337, inf)
    """
    epsilon = one_number(check_epsilon(epsilon), "epsilon")
    q, d = np.broadcast_arrays(np.asarray(q, dtype=float), np.asarray(d, dtype=float))
    bad = ~((d >= 0) & (q >= d) & (q <= 1))
    if bad.any():
        found = f"found q={q[bad].flat[0]:g} and d={d[bad].flat[0]:g}; pass the sums of two rows over the same columns"
        raise ValueError(f"coefficients must satisfy 0 <= d <= q <= 1, {found}")
    limit = _fixed_point(q, d, epsilon)
    return float(limit) if limit.ndim == 0 else limit


def algorithm_6(epsilon: float, tables: PrecomputedTables) -> tuple[float, float, float]:
    """Supremum over time of BPL or FPL by Algorithm 6 of [1], with the coefficients that give it.

    The supremum in nats, inf where the leakage grows without limit, and q and d of Theorem 11: 0 and 0 where all rows
    are identical and the supremum is `epsilon`, a budget > 0.

    Examples
    --------
    >>> from tplrepro.leakage.published import algorithm_2
    >>> supremum, q, d = algorithm_6(0.23, algorithm_2([[0.8, 0.2], [0.1, 0.9]]))
    >>> round(supremum, 6), round(q, 6), round(d, 6)
    (0.792337, 0.8, 0.1)
    """
    epsilon = one_number(check_epsilon(epsilon), "epsilon")
    best = (epsilon, 0.0, 0.0)
    block = max(1, BLOCK // tables.qM.shape[1])
    for start in range(0, len(tables.qM), block):
        q, d = tables.qM[start : start + block], tables.dM[start : start + block]
        candidates = _fixed_point(q, d, epsilon)
        k = np.unravel_index(np.argmax(candidates), candidates.shape)
        if candidates[k] > best[0]:
            best = (float(candidates[k]), float(q[k]), float(d[k]))
    return best


def _fixed_point(q: np.ndarray, d: np.ndarray, epsilon: float) -> np.ndarray:
    """The alpha with alpha = log f(alpha) + epsilon, inf if there is none.

    With e^alpha = 1 + e^epsilon g the equation is d g^2 + c g = (1 - e^-epsilon) e^-epsilon. Of the two
    forms of its positive root each is used where it does not cancel.
    """
    rise, floor = factors(epsilon)
    c = (1 - q + d) * floor - q * rise
    root = np.hypot(c, 2 * np.sqrt(d) * np.sqrt(rise * floor))  # c^2 and d e^-epsilon may underflow
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        g = np.where(c > 0, 2 * rise * floor / (c + root), (root - c) / (2 * d))
        growth = g * np.exp(epsilon)
        limit = np.where(growth < np.inf, np.log1p(growth), epsilon + np.log(g + floor))
    limit = np.where((d == 0) & (c <= 0), np.inf, np.maximum(limit, epsilon))
    return np.where(q == d, epsilon, limit)
