"""The sub-linear algorithm of Section 4.4 of [1]: Algorithms 4 and 5."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.published.quantification import (
    LARGEST,
    PrecomputedTables,
    algorithm_2,
    factors,
    largest_pair,
    log_f,
    one_leakage,
)
from tplrepro.validation import check_alpha

__all__ = ["PiecewiseFunction", "algorithm_4", "algorithm_5"]

TOLERANCE = 8 * np.finfo(float).eps  # relative, on the excess f - 1: a few roundings


class PiecewiseFunction(NamedTuple):
    """Algorithm 4's output: L(alpha) = log f with qArr[k], dArr[k] from aArr[k - 1] (first: a_1) to aArr[k].

    Coefficients and right ends of the sub-domains, (K,) each, all [0] for identical rows, where L = 0.
    """

    qArr: np.ndarray
    dArr: np.ndarray
    aArr: np.ndarray
    a_1: float


def algorithm_4(P_or_tables: ArrayLike | PrecomputedTables, a_1: float, a_m: float) -> PiecewiseFunction:
    """Generate the privacy loss function on [a_1, a_m] by Algorithm 4 of [1].

    From a transition matrix (n, n), or the output of `algorithm_2` for it; ValueError unless 0 < a_1 <= a_m <= 700. The
    recursion keeps its intervals on a stack, and what Algorithm 3 finds at an intersection serves both halves.

    Examples
    --------
    The bold line of Fig. 4 of [1], whose two pieces meet at the pentagram, alpha = log(13/3):

    >>> L = algorithm_4([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], 1e-6, 10)
    >>> L.qArr, L.dArr, L.aArr.round(4)
    (array([0.7, 0.5]), array([0.2, 0.1]), array([ 1.4663, 10.    ]))
    """
    a_1, a_m = one_leakage(a_1, "a_1"), one_leakage(a_m, "a_m")
    if not 0 < a_1 <= a_m <= LARGEST:
        raise ValueError(
            f"the domain must satisfy 0 < a_1 <= a_m <= {LARGEST:g}, found a_1={a_1:g} and a_m={a_m:g}; "
            "use PrivacyLossFunction, which needs no domain"
        )
    tables = P_or_tables if isinstance(P_or_tables, PrecomputedTables) else algorithm_2(P_or_tables)
    if not tables.qM.any():
        return PiecewiseFunction(np.zeros(1), np.zeros(1), np.zeros(1), a_1)
    pieces: list[tuple[float, float]] = []
    ends: list[float] = []
    stack = [(a_1, largest_pair(a_1, tables)[1:], a_m, largest_pair(a_m, tables)[1:])]
    while stack:
        left, first, right, last = stack.pop()
        middle = _intersection(first, last)
        if left == right or _reaches(first, last, right) or middle >= right:
            piece = first
        elif _reaches(last, first, left) or middle <= left:
            piece = last
        else:
            found = largest_pair(middle, tables)[1:]
            stack += [(middle, found, right, last), (left, first, middle, found)]
            continue
        if pieces and pieces[-1] == piece:
            ends[-1] = right
        else:
            pieces.append(piece)
            ends.append(right)
    q_arr, d_arr = np.array(pieces).T
    return PiecewiseFunction(q_arr, d_arr, np.array(ends), a_1)


def algorithm_5(alpha: ArrayLike, piecewise: PiecewiseFunction, epsilon: float = 0.0) -> float | np.ndarray:
    """BPL or FPL at one time point from Algorithm 4's function by Algorithm 5 of [1]: L(alpha) + epsilon, elementwise.

    Each alpha is 0 or within the domain [a_1, a_m], else ValueError; `epsilon` as in `algorithm_1`.

    Examples
    --------
    >>> L = algorithm_4([[0.8, 0.2], [0.0, 1.0]], 1e-6, 10)
    >>> round(algorithm_5(0.1, L, epsilon=0.1), 6)
    0.180784
    """
    values, epsilon = check_alpha(alpha), one_leakage(epsilon, "epsilon")
    q_arr, d_arr, a_arr, a_1 = piecewise
    if not q_arr.any():
        return epsilon if values.ndim == 0 else np.full(values.shape, epsilon)
    outside = (values != 0) & ((values < a_1) | (values > a_arr[-1]))
    if outside.any():
        raise ValueError(
            f"alpha must be 0 or lie in [{a_1:g}, {a_arr[-1]:g}], the domain given to algorithm_4, "
            f"found {values[outside].flat[0]:g}; widen [a_1, a_m]"
        )
    k = np.searchsorted(a_arr, values)
    leakage = log_f(q_arr[k] - d_arr[k], d_arr[k], values) + epsilon
    return float(leakage) if values.ndim == 0 else leakage


def _intersection(first: tuple[float, float], last: tuple[float, float]) -> float:
    """log(k + 1) of lines 4 and 14, with q - d for q; -inf where the two do not meet at a positive alpha."""
    (q1, d1), (qm, dm) = first, last
    p1, pm = q1 - d1, qm - dm
    numerator, denominator = pm - p1, p1 * dm - pm * d1
    if denominator == 0 or numerator / denominator <= 0:
        return -np.inf
    return float(np.log1p(numerator / denominator))


def _reaches(piece: tuple[float, float], top: tuple[float, float], alpha: float) -> bool:
    """Whether `piece` is as high as `top` at `alpha`, up to rounding.

    From `alpha` towards their intersection the relative gap of the excess only falls, so what is within the
    tolerance at the end of a sub-domain is within it throughout.
    """
    return bool(_excess(piece, alpha) >= _excess(top, alpha) * (1 - TOLERANCE))


def _excess(piece: tuple[float, float], alpha: float) -> float:
    rise, floor = factors(alpha)
    q, d = piece
    return (q - d) * rise / (d * rise + floor)
