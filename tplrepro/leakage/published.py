"""Algorithms 1 to 6 of [1] as printed, with the errata corrected, in vectorised NumPy.

They compute the loss function of Eq. (24): with u = e^alpha - 1, L(alpha) is the largest log f over
rows q, d and sets S of columns, where f = (q u + 1) / (d u + 1) and q, d stand for the rows' sums
over S. They are the baseline of the runtime figures and a second opinion in the tests;
`tplrepro.PrivacyLossFunction` computes the same function faster.

docs/errata.md lists every difference from the printed text, with the test that shows it. f is
evaluated as 1 + x with the excess x = (q - d) u / (d u + 1), scaled by e^-alpha, and log f as
log1p(x): nothing overflows above alpha = 709, and no digits are lost for small alpha. Algorithm 1
is then within a few ulp for every finite alpha. Algorithms 3 and 5 read rounded sums from tables,
which costs about 1e-16 divided by the largest total variation distance between two rows.
"""

from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import as_transition_matrix
from tplrepro.validation import as_scalar, check_alpha, check_epsilon

__all__ = ["PrecomputedTables", "piecewise_coefficients"]
__all__ += [
    "algorithm_1",
    "algorithm_2",
    "algorithm_3",
    "algorithm_4",
    "algorithm_5",
    "algorithm_6",
]

LARGEST = 700.0  # e^alpha is finite with room to spare
BLOCK = 1 << 16  # entries of a block of pairs: its few temporaries stay in a core's cache
# of Algorithm 4, relative, on the excess f - 1: a few roundings
TOLERANCE = 8 * np.finfo(float).eps


def algorithm_1(P: ArrayLike, alpha: float, epsilon: float = 0.0) -> float:
    """BPL or FPL at one time point by Algorithm 1 of [1] and of [2]: L(alpha) + epsilon.

    O(n^2) memory. One pass removes every column that violates Inequality (22), as section 4.2 of
    [1] allows. `alpha` is the previous BPL or the next FPL, `epsilon` the budget of the release
    itself, in nats. ValueError if `P` (n, n) is not a transition matrix, or `alpha` or `epsilon` is
    not finite and at least 0. The second point of the middle line of Fig. 3(a) of [1], log(0.8
    (e^0.1 - 1) + 1) + 0.1:

    >>> round(algorithm_1([[0.8, 0.2], [0.0, 1.0]], 0.1, epsilon=0.1), 6)
    0.180784
    """
    rows = as_transition_matrix(P).toarray()
    alpha, epsilon = _one_leakage(alpha, "alpha"), _one_leakage(epsilon, "epsilon")
    rise, floor = _factors(alpha)
    largest = 0.0
    block = max(1, BLOCK // rows.size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for start in range(0, len(rows), block):
            excess = rows[start : start + block, None, :] - rows  # q_j - d_j, (block, n, n)
            # inf where d_j = 0 < q_j; NaN, which is never kept, where both are 0
            ratio = excess / rows
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
            largest = max(largest, float(_log_f(p, d, alpha).max()))
    return largest + epsilon


class PrecomputedTables(NamedTuple):
    """Algorithm 2's output: one row for each ordered pair of rows, (0, 1), (0, 2), ..., (n-1, n-2).

    qM and dM (n(n-1), n) hold the sums of q and of d over the k columns of largest q_j / d_j, k = 1
    .. n; aM the transition points, falling: the first k columns are optimal from aM[:, k] up to
    aM[:, k - 1]. The first is inf; NaN pads the columns with q_j <= d_j; all are 0 where the two
    rows are identical.
    """

    qM: np.ndarray
    dM: np.ndarray
    aM: np.ndarray


def piecewise_coefficients(q: ArrayLike, d: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines 2 to 11 of Algorithm 2 of [1] for one pair of rows, or for many pairs at once.

    Rows (..., n) of one length, else ValueError, that broadcast; qArr, dArr, aArr (..., n), see
    `PrecomputedTables`.

    >>> piecewise_coefficients([0.2, 0.3, 0.5], [0.1, 0, 0.9])[2].round(3)
    array([  inf, 1.466,   nan])
    """
    q, d = np.asarray(q, dtype=float), np.asarray(d, dtype=float)
    if q.ndim == 0 or d.ndim == 0 or q.shape[-1] != d.shape[-1]:
        raise ValueError(
            f"q and d must be rows of one length, found shapes {q.shape} and {d.shape}; pass two rows"
        )
    q, d = np.broadcast_arrays(q, d)
    excess = q - d
    candidate = excess > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(np.where(candidate, -(excess / d), np.inf), axis=-1)
        q, d, excess = (
            np.take_along_axis(np.where(candidate, row, 0.0), order, axis=-1)
            for row in (q, d, excess)
        )
        q_arr, d_arr, p_arr = (np.cumsum(row, axis=-1) for row in (q, d, excess))
        # qArr_i d_i - dArr_i q_i, with q - d for q and without the terms in q_i d_i, which cancel
        denominator = np.zeros_like(q_arr)
        denominator[..., 1:] = p_arr[..., :-1] * d[..., 1:] - d_arr[..., :-1] * excess[..., 1:]
        # the ratios fall, so a negative one is rounding
        np.maximum(denominator, 0.0, out=denominator)
        a_arr = np.log1p(excess / denominator)
    np.minimum.accumulate(a_arr, axis=-1, out=a_arr)  # the same for points out of order
    a_arr[~candidate.any(axis=-1)] = 0.0  # lines 4 and 5: identical rows
    return q_arr, d_arr, a_arr


def algorithm_2(P: ArrayLike) -> PrecomputedTables:
    """Precompute the parameters of all n(n-1) pairs by Algorithm 2 of [1].

    The three tables take 24 n^2 (n-1) bytes: 0.2 GB at n = 200, 24 GB at n = 1,000.

    >>> algorithm_2([[0.8, 0.2], [0.0, 1.0]]).dM
    array([[0. , 0. ],
           [0.2, 0.2]])
    """
    rows = as_transition_matrix(P).toarray()
    n = rows.shape[0]
    tables = PrecomputedTables(*(np.empty((n * (n - 1), n)) for _ in range(3)))
    for i in range(n):
        pairs = slice(i * (n - 1), (i + 1) * (n - 1))
        others = np.delete(rows, i, axis=0)
        tables.qM[pairs], tables.dM[pairs], tables.aM[pairs] = piecewise_coefficients(
            rows[i], others
        )
    return tables


def algorithm_3(alpha: float, tables: PrecomputedTables, epsilon: float = 0.0) -> float:
    """BPL or FPL at one time point from Algorithm 2's tables by Algorithm 3 of [1]: L(alpha) +
    epsilon.

    >>> round(algorithm_3(0.1, algorithm_2([[0.8, 0.2], [0.0, 1.0]]), epsilon=0.1), 6)
    0.180784
    """
    return _largest_pair(_one_leakage(alpha, "alpha"), tables)[0] + _one_leakage(epsilon, "epsilon")


class PiecewiseFunction(NamedTuple):
    """Algorithm 4's output: L(alpha) = log f with qArr[k], dArr[k] from aArr[k - 1] (first: a_1) to
    aArr[k].

    Coefficients and right ends of the sub-domains, (K,) each, all [0] for identical rows, where L =
    0.
    """

    qArr: np.ndarray
    dArr: np.ndarray
    aArr: np.ndarray
    a_1: float


def algorithm_4(
    P_or_tables: ArrayLike | PrecomputedTables, a_1: float, a_m: float
) -> PiecewiseFunction:
    """Generate the privacy loss function on [a_1, a_m] by Algorithm 4 of [1].

    From a transition matrix (n, n), or the output of `algorithm_2` for it; ValueError unless 0 <
    a_1 <= a_m <= 700. The bold line of Fig. 4 of [1], whose two pieces meet at the pentagram, alpha
    = log(13/3):

    >>> L = algorithm_4([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], 1e-6, 10)
    >>> L.qArr, L.dArr, L.aArr.round(4)
    (array([0.7, 0.5]), array([0.2, 0.1]), array([ 1.4663, 10.    ]))
    """
    a_1, a_m = _one_leakage(a_1, "a_1"), _one_leakage(a_m, "a_m")
    if not 0 < a_1 <= a_m <= LARGEST:
        raise ValueError(
            f"the domain must satisfy 0 < a_1 <= a_m <= {LARGEST:g}, found a_1={a_1:g} and a_m={a_m:g}; "
            "use PrivacyLossFunction, which needs no domain"
        )
    tables = P_or_tables if isinstance(P_or_tables, PrecomputedTables) else algorithm_2(P_or_tables)
    if not tables.qM.any():
        return PiecewiseFunction(np.zeros(1), np.zeros(1), np.zeros(1), a_1)
    pieces = []
    stack = [(a_1, _largest_pair(a_1, tables)[1:], a_m, _largest_pair(a_m, tables)[1:])]
    while stack:
        left, first, right, last = stack.pop()
        middle = _intersection(first, last)
        if left == right or _reaches(first, last, right) or middle >= right:
            piece = first
        elif _reaches(last, first, left) or middle <= left:
            piece = last
        else:
            highest = _largest_pair(middle, tables)[1:]
            stack += [(middle, highest, right, last), (left, first, middle, highest)]
            continue
        pieces.append((*piece, right))
    ends = [list(run)[-1] for _, run in groupby(pieces, key=itemgetter(0, 1))]
    q_arr, d_arr, a_arr = np.array(ends).T
    return PiecewiseFunction(q_arr, d_arr, a_arr, a_1)


def algorithm_5(
    alpha: ArrayLike, piecewise: PiecewiseFunction, epsilon: float = 0.0
) -> float | np.ndarray:
    """BPL or FPL at one time point from Algorithm 4's function by Algorithm 5 of [1]: L(alpha) +
    epsilon, elementwise.

    Each alpha is 0 or within the domain [a_1, a_m], else ValueError; `epsilon` as in `algorithm_1`.

    >>> L = algorithm_4([[0.8, 0.2], [0.0, 1.0]], 1e-6, 10)
    >>> round(algorithm_5(0.1, L, epsilon=0.1), 6)
    0.180784
    """
    values, epsilon = check_alpha(alpha), _one_leakage(epsilon, "epsilon")
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
    leakage = _log_f(q_arr[k] - d_arr[k], d_arr[k], values) + epsilon
    return float(leakage) if values.ndim == 0 else leakage


def algorithm_6(epsilon: float, tables: PrecomputedTables) -> tuple[float, float, float]:
    """Supremum over time of BPL or FPL by Algorithm 6 of [1], with the coefficients q and d that
    give it.

    In nats, inf where the leakage grows without limit; q and d are 0 where all rows are identical.
    ValueError unless `epsilon`, the budget of each time point, is finite and positive. The matrix
    of Fig. 5(d) of [1]:

    >>> supremum, q, d = algorithm_6(0.23, algorithm_2([[0.8, 0.2], [0.1, 0.9]]))
    >>> round(supremum, 6), round(q, 6), round(d, 6)
    (0.792337, 0.8, 0.1)
    """
    epsilon = as_scalar(check_epsilon(epsilon), "epsilon")
    best = (epsilon, 0.0, 0.0)
    block = max(1, BLOCK // tables.qM.shape[1])
    for start in range(0, len(tables.qM), block):
        q, d = tables.qM[start : start + block], tables.dM[start : start + block]
        candidates = _fixed_point(q, d, epsilon)
        k = np.unravel_index(np.argmax(candidates), candidates.shape)
        if candidates[k] > best[0]:
            best = (float(candidates[k]), float(q[k]), float(d[k]))
    return best


def _largest_pair(alpha: float, tables: PrecomputedTables) -> tuple[float, float, float]:
    """The largest log f over all pairs at `alpha`, with its q and d; bisects all rows of aM at
    once."""
    q_table, d_table, a_table = (table.ravel() for table in tables)
    pairs, n = tables.aM.shape
    if pairs == 0:
        return 0.0, 0.0, 0.0
    base = np.arange(pairs) * n
    # entries of a row above alpha: that many columns are optimal
    count = np.zeros(pairs, dtype=np.intp)
    step = 1 << (n.bit_length() - 1)
    while step:
        further = count + step
        exceeds = a_table[base + np.minimum(further, n) - 1] > alpha
        count = np.where((further <= n) & exceeds, further, count)
        step >>= 1
    optimal = base + np.maximum(count - 1, 0)  # identical rows: count 0, coefficients 0, log f = 0
    q, d = q_table[optimal], d_table[optimal]
    loss = _log_f(q - d, d, alpha)
    k = int(np.argmax(loss))
    return float(loss[k]), float(q[k]), float(d[k])


def _fixed_point(q: np.ndarray, d: np.ndarray, epsilon: float) -> np.ndarray:
    """The alpha with alpha = log f(alpha) + epsilon, the four cases of Theorem 11 of [1]; inf if
    there is none.

    With e^alpha = 1 + e^epsilon g the equation is d g^2 + c g = (1 - e^-epsilon) e^-epsilon. Its
    positive root has two forms; each is used where it does not cancel.
    """
    rise, floor = _factors(epsilon)
    c = (1 - q + d) * floor - q * rise
    root = np.hypot(c, 2 * np.sqrt(d) * np.sqrt(rise * floor))  # c^2 and d e^-epsilon may underflow
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        g = np.where(c > 0, 2 * rise * floor / (c + root), (root - c) / (2 * d))
        growth = g * np.exp(epsilon)
        limit = np.where(growth < np.inf, np.log1p(growth), epsilon + np.log(g + floor))
    limit = np.where((d == 0) & (c <= 0), np.inf, np.maximum(limit, epsilon))
    return np.where(q == d, epsilon, limit)


def _factors(alpha: float | np.ndarray):
    """1 - e^-alpha and e^-alpha, as numerator and denominator of f are scaled by e^-alpha."""
    return -np.expm1(-alpha), np.exp(-alpha)


def _log_f(excess: np.ndarray, d: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    """log f from excess = q - d and d, elementwise; for d = 0 and large alpha in a form that does
    not overflow."""
    rise, floor = _factors(alpha)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.where(excess > 0, np.log1p(excess * rise / (d * rise + floor)), 0.0)
        unbounded = alpha + np.log(excess * rise + floor)
    return np.where((d == 0) & (excess > 0) & (np.asarray(alpha) > LARGEST), unbounded, loss)


def _one_leakage(value: ArrayLike, name: str) -> float:
    return as_scalar(check_alpha(value, name), name)


def _intersection(first: tuple[float, float], last: tuple[float, float]) -> float:
    """log(k + 1) of lines 4 and 14, with q - d for q; -inf where the two do not meet at a positive
    alpha."""
    (q1, d1), (qm, dm) = first, last
    p1, pm = q1 - d1, qm - dm
    numerator, denominator = pm - p1, p1 * dm - pm * d1
    if denominator == 0 or numerator / denominator <= 0:
        return -np.inf
    return float(np.log1p(numerator / denominator))


def _reaches(piece: tuple[float, float], top: tuple[float, float], alpha: float) -> bool:
    """Whether `piece` is as high as `top` at `alpha`, up to rounding; their relative gap falls to
    the intersection."""
    rise, floor = _factors(alpha)
    excess, excess_of_top = ((q - d) * rise / (d * rise + floor) for q, d in (piece, top))
    return bool(excess >= excess_of_top * (1 - TOLERANCE))
