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

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import as_transition_matrix
from tplrepro.validation import as_scalar, check_alpha, check_epsilon

__all__ = [
    "PrecomputedTables",
    "piecewise_coefficients",
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
    [1] allows.

    Parameters
    ----------
    P : TransitionMatrix or array-like (n, n)
        Pr(l^{t-1} | l^t) for BPL, Pr(l^t | l^{t-1}) for FPL.
    alpha : float >= 0, the previous BPL or the next FPL, nats
    epsilon : float >= 0, the budget of the release itself, nats

    Returns
    -------
    float, nats

    Raises
    ------
    ValueError
        If `P` is not a transition matrix, or `alpha` or `epsilon` is not finite and at least 0.

    Examples
    --------
    The second point of the middle line of Fig. 3(a) of [1], log(0.8 (e^0.1 - 1) + 1) + 0.1:

    >>> round(algorithm_1([[0.8, 0.2], [0.0, 1.0]], 0.1, epsilon=0.1), 6)
    0.180784
    """
    matrix = as_transition_matrix(P)
    rows = matrix.toarray()
    alpha = _check_leakage(alpha, "alpha")
    epsilon = _check_leakage(epsilon, "epsilon")
    largest = 0.0  # line 1
    n = len(rows)
    block = max(1, BLOCK // rows.size)
    for start in range(0, n, block):  # line 2: the rows q of a block, and all rows d
        rows_q = rows[start : start + block]
        losses = _losses_of_pairs(rows_q, rows, alpha)
        largest_of_block = float(losses.max())
        largest = max(largest, largest_of_block)  # line 13
    return largest + epsilon  # line 14: Eq. (13) or (15)


def _losses_of_pairs(rows_q: np.ndarray, rows_d: np.ndarray, alpha: float) -> np.ndarray:
    """The largest log f (b, m), nats, of each pair of a row q of (b, n) and a row d of (m, n):
    lines 3 to 13 of Algorithm 1 of [1]."""
    rise, floor = _scaled_factors(alpha)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        q = rows_q[:, None, :]
        excess = q - rows_d  # q_j - d_j, (b, m, n)
        # inf where d_j = 0 < q_j; NaN, which is never kept, where both are 0
        ratio = excess / rows_d
        x = np.zeros(excess.shape[:2])  # the right side of Inequality (22), less 1
        excess_sum = np.zeros_like(x)
        d_sum = np.zeros_like(x)
        while True:
            # The columns of q+ and d+: first Corollary 2, q_j > d_j; then Inequality (22).
            kept = ratio > x[:, :, None]
            excess_kept = np.einsum("bij,bij->bi", excess, kept)
            d_kept = np.einsum("ij,bij->bi", rows_d, kept)
            numerator = excess_kept * rise
            denominator = d_kept * rise + floor
            x_kept = numerator / denominator
            is_better = x_kept > x
            if not is_better.any():
                break
            x[is_better] = x_kept[is_better]
            excess_sum[is_better] = excess_kept[is_better]
            d_sum[is_better] = d_kept[is_better]
        return _log_f(excess_sum, d_sum, alpha)


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

    Parameters
    ----------
    q, d : array-like (..., n), rows of one length, whose other dimensions broadcast

    Returns
    -------
    qArr, dArr, aArr : array (..., n)
        One row of the tables of `PrecomputedTables` for each pair.

    Raises
    ------
    ValueError
        For rows of different lengths.

    Examples
    --------
    >>> piecewise_coefficients([0.2, 0.3, 0.5], [0.1, 0, 0.9])[2].round(3)
    array([  inf, 1.466,   nan])
    """
    q = np.asarray(q, dtype=float)
    d = np.asarray(d, dtype=float)
    if q.shape[-1:] != d.shape[-1:] or q.ndim == 0:
        raise ValueError(
            f"q and d must be rows of one length, found shapes {q.shape} and {d.shape}; "
            "pass two rows"
        )
    q, d = np.broadcast_arrays(q, d)
    excess = q - d
    is_candidate = excess > 0  # line 3
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # line 7: columns in order of falling q_j / d_j, the others last, as 0
        ratio = excess / d
        rank = np.where(is_candidate, -ratio, np.inf)
        order = np.argsort(rank, axis=-1)

        def arrange(row: np.ndarray) -> np.ndarray:
            candidates = np.where(is_candidate, row, 0.0)
            return np.take_along_axis(candidates, order, axis=-1)

        q = arrange(q)
        d = arrange(d)
        excess = arrange(excess)
        q_arr = np.cumsum(q, axis=-1)  # line 8
        d_arr = np.cumsum(d, axis=-1)  # line 9
        excess_arr = np.cumsum(excess, axis=-1)
        # qArr_i d_i - dArr_i q_i, with q - d for q and without the terms in q_i d_i, which cancel
        excess_before = excess_arr[..., :-1]
        d_before = d_arr[..., :-1]
        d_here = d[..., 1:]
        excess_here = excess[..., 1:]
        first_term = excess_before * d_here
        second_term = d_before * excess_here
        denominator = np.zeros_like(q_arr)  # 0 for the first column, whose point is inf
        denominator[..., 1:] = first_term - second_term
        # the ratios fall, so a negative one is rounding
        np.maximum(denominator, 0.0, out=denominator)
        a_arr = np.log1p(excess / denominator)  # line 11
    np.minimum.accumulate(a_arr, axis=-1, out=a_arr)  # the same for points out of order
    are_identical = ~is_candidate.any(axis=-1)
    a_arr[are_identical] = 0.0  # lines 4 and 5
    return q_arr, d_arr, a_arr


def algorithm_2(P: ArrayLike) -> PrecomputedTables:
    """Precompute the parameters of all n(n-1) pairs by Algorithm 2 of [1].

    The three tables take 24 n^2 (n-1) bytes: 0.2 GB at n = 200, 24 GB at n = 1,000.

    >>> algorithm_2([[0.8, 0.2], [0.0, 1.0]]).dM
    array([[0. , 0. ],
           [0.2, 0.2]])
    """
    matrix = as_transition_matrix(P)
    rows = matrix.toarray()
    n = rows.shape[0]
    n_others = n - 1
    shape = (n * n_others, n)
    q_table = np.empty(shape)
    d_table = np.empty(shape)
    a_table = np.empty(shape)
    for i in range(n):
        first = i * n_others
        pairs = slice(first, first + n_others)
        others = np.delete(rows, i, axis=0)
        q_arr, d_arr, a_arr = piecewise_coefficients(rows[i], others)
        q_table[pairs] = q_arr
        d_table[pairs] = d_arr
        a_table[pairs] = a_arr
    return PrecomputedTables(q_table, d_table, a_table)


def algorithm_3(alpha: float, tables: PrecomputedTables, epsilon: float = 0.0) -> float:
    """BPL or FPL at one time point from Algorithm 2's tables by Algorithm 3 of [1]: L(alpha) +
    epsilon.

    Parameters
    ----------
    alpha : float >= 0, the previous BPL or the next FPL, nats
    tables : PrecomputedTables, the output of `algorithm_2`
    epsilon : float >= 0, the budget of the release itself, nats

    Returns
    -------
    float, nats

    Raises
    ------
    ValueError
        If `alpha` or `epsilon` is not finite and at least 0.

    Examples
    --------
    >>> round(algorithm_3(0.1, algorithm_2([[0.8, 0.2], [0.0, 1.0]]), epsilon=0.1), 6)
    0.180784
    """
    alpha = _check_leakage(alpha, "alpha")
    epsilon = _check_leakage(epsilon, "epsilon")
    largest = _largest_loss(alpha, tables)
    return largest.loss + epsilon


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


class Coefficients(NamedTuple):
    """q and d of one piece log f of the loss function."""

    q: float
    d: float


class Piece(NamedTuple):
    """The coefficients that are optimal up to the alpha `right`."""

    coefficients: Coefficients
    right: float


class SubDomain(NamedTuple):
    """The alphas from `left` to `right`, and the optimal coefficients at both ends."""

    left: float
    first: Coefficients
    right: float
    last: Coefficients


def algorithm_4(
    P_or_tables: ArrayLike | PrecomputedTables, a_1: float, a_m: float
) -> PiecewiseFunction:
    """Generate the privacy loss function on [a_1, a_m] by Algorithm 4 of [1].

    Parameters
    ----------
    P_or_tables : TransitionMatrix, array-like (n, n), or the output of `algorithm_2` for it
    a_1, a_m : float, the ends of the domain, 0 < a_1 <= a_m <= 700 nats

    Returns
    -------
    PiecewiseFunction, for `algorithm_5`

    Raises
    ------
    ValueError
        If `P_or_tables` is not a transition matrix, or the domain is another.

    Examples
    --------
    The bold line of Fig. 4 of [1], whose two pieces meet at the pentagram, alpha = log(13/3):

    >>> L = algorithm_4([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], 1e-6, 10)
    >>> L.qArr, L.dArr, L.aArr.round(4)
    (array([0.7, 0.5]), array([0.2, 0.1]), array([ 1.4663, 10.    ]))
    """
    a_1 = _check_leakage(a_1, "a_1")
    a_m = _check_leakage(a_m, "a_m")
    if not 0 < a_1 <= a_m <= LARGEST:
        raise ValueError(
            f"the domain must satisfy 0 < a_1 <= a_m <= {LARGEST:g}, "
            f"found a_1={a_1:g} and a_m={a_m:g}; use PrivacyLossFunction, which needs no domain"
        )
    if isinstance(P_or_tables, PrecomputedTables):
        tables = P_or_tables
    else:
        tables = algorithm_2(P_or_tables)
    if not tables.qM.any():  # line 1
        zero = np.zeros(1)
        return PiecewiseFunction(qArr=zero, dArr=zero, aArr=zero, a_1=a_1)
    at_left = _largest_loss(a_1, tables)  # line 2
    at_right = _largest_loss(a_m, tables)  # line 3
    pieces: list[Piece] = []  # from left to right
    waiting = [SubDomain(a_1, at_left.coefficients, a_m, at_right.coefficients)]
    while waiting:
        domain = waiting.pop()
        middle = _intersection(domain.first, domain.last)  # lines 4 and 14
        top = _top_piece(domain, middle)
        if top is not None:
            _append_piece(pieces, Piece(top, domain.right))
            continue
        highest = _largest_loss(middle, tables).coefficients
        waiting.append(SubDomain(middle, highest, domain.right, domain.last))  # line 16, later
        waiting.append(SubDomain(domain.left, domain.first, middle, highest))  # line 15
    q_arr = [piece.coefficients.q for piece in pieces]
    d_arr = [piece.coefficients.d for piece in pieces]
    a_arr = [piece.right for piece in pieces]
    return PiecewiseFunction(
        qArr=np.array(q_arr), dArr=np.array(d_arr), aArr=np.array(a_arr), a_1=a_1
    )


def _append_piece(pieces: list[Piece], piece: Piece) -> None:
    """Append a piece; sub-domains with the same coefficients become one."""
    if pieces:
        last = pieces[-1]
        if last.coefficients == piece.coefficients:
            pieces.pop()
    pieces.append(piece)


def _top_piece(domain: SubDomain, middle: float) -> Coefficients | None:
    """Lines 5 to 12 of Algorithm 4 of [1]: the piece that is L on all of a sub-domain, if one is.

    `middle` is the intersection of its first and last piece.
    """
    left, first, right, last = domain
    if left == right:
        return first
    if _reaches(first, last, right) or middle >= right:  # line 5
        return first
    if _reaches(last, first, left) or middle <= left:  # line 9
        return last
    return None


def algorithm_5(
    alpha: ArrayLike, piecewise: PiecewiseFunction, epsilon: float = 0.0
) -> float | np.ndarray:
    """BPL or FPL at one time point from Algorithm 4's function by Algorithm 5 of [1]: L(alpha) +
    epsilon.

    Parameters
    ----------
    alpha : array-like of any shape
        The previous BPL or the next FPL, 0 or within the domain [a_1, a_m], nats.
    piecewise : PiecewiseFunction, the output of `algorithm_4`
    epsilon : float >= 0, the budget of the release itself, nats

    Returns
    -------
    float or array of the shape of `alpha`, nats

    Raises
    ------
    ValueError
        If an alpha is outside the domain, or `epsilon` is not finite and at least 0.

    Examples
    --------
    >>> L = algorithm_4([[0.8, 0.2], [0.0, 1.0]], 1e-6, 10)
    >>> round(algorithm_5(0.1, L, epsilon=0.1), 6)
    0.180784
    """
    values = check_alpha(alpha)
    epsilon = _check_leakage(epsilon, "epsilon")
    q_arr, d_arr, a_arr, a_1 = piecewise
    is_single = values.ndim == 0
    if not q_arr.any():  # line 1
        if is_single:
            return epsilon
        return np.full(values.shape, epsilon)
    a_m = a_arr[-1]
    is_below = values < a_1
    is_above = values > a_m
    is_beyond_an_end = is_below | is_above
    is_outside = is_beyond_an_end & (values != 0)
    if is_outside.any():
        first_outside = values[is_outside].flat[0]
        raise ValueError(
            f"alpha must be 0 or lie in [{a_1:g}, {a_m:g}], the domain given to "
            f"algorithm_4, found {first_outside:g}; widen [a_1, a_m]"
        )
    k = np.searchsorted(a_arr, values)  # line 2
    q = q_arr[k]
    d = d_arr[k]
    excess = q - d
    loss = _log_f(excess, d, values)
    leakage = loss + epsilon  # line 3
    if is_single:
        return float(leakage)
    return leakage


def algorithm_6(epsilon: float, tables: PrecomputedTables) -> tuple[float, float, float]:
    """Supremum over time of BPL or FPL by Algorithm 6 of [1], with the coefficients q and d that
    give it.

    Parameters
    ----------
    epsilon : float > 0, the budget of each time point, nats
    tables : PrecomputedTables, the output of `algorithm_2`

    Returns
    -------
    supremum : float, nats; inf where the leakage grows without limit
    q, d : float, 0 where all rows are identical

    Raises
    ------
    ValueError
        Unless `epsilon` is finite and positive.

    Examples
    --------
    The matrix of Fig. 5(d) of [1]:

    >>> supremum, q, d = algorithm_6(0.23, algorithm_2([[0.8, 0.2], [0.1, 0.9]]))
    >>> round(supremum, 6), round(q, 6), round(d, 6)
    (0.792337, 0.8, 0.1)
    """
    epsilon = as_scalar(check_epsilon(epsilon), "epsilon")
    supremum = epsilon  # line 1
    best_q = 0.0
    best_d = 0.0
    n_pairs, n = tables.qM.shape
    block = max(1, BLOCK // n)
    for start in range(0, n_pairs, block):  # line 2
        pairs = slice(start, start + block)
        q = tables.qM[pairs]
        d = tables.dM[pairs]
        candidates = _fixed_points(q, d, epsilon)  # line 3
        largest = np.argmax(candidates)
        k = np.unravel_index(largest, candidates.shape)
        if candidates[k] > supremum:  # line 4
            supremum = float(candidates[k])
            best_q = float(q[k])
            best_d = float(d[k])
    return supremum, best_q, best_d


class LargestLoss(NamedTuple):
    """The largest log f of all pairs at one alpha, nats, and its coefficients."""

    loss: float
    coefficients: Coefficients


def _largest_loss(alpha: float, tables: PrecomputedTables) -> LargestLoss:
    """Lines 1 to 6 of Algorithm 3 of [1]; bisects all rows of aM at once."""
    pairs, n = tables.aM.shape
    if pairs == 0:
        no_columns = Coefficients(0.0, 0.0)
        return LargestLoss(0.0, no_columns)
    q_table = tables.qM.ravel()
    d_table = tables.dM.ravel()
    a_table = tables.aM.ravel()
    base = np.arange(pairs) * n  # where each row begins
    count = _count_above(alpha, a_table, base, n)  # that many columns are optimal
    last_column = np.maximum(count - 1, 0)  # identical rows: count 0, coefficients 0, log f = 0
    optimal = base + last_column
    q = q_table[optimal]
    d = d_table[optimal]
    excess = q - d
    losses = _log_f(excess, d, alpha)
    k = np.argmax(losses)
    largest = float(losses[k])
    best_q = float(q[k])
    best_d = float(d[k])
    coefficients = Coefficients(best_q, best_d)
    return LargestLoss(largest, coefficients)


def _count_above(alpha: float, table: np.ndarray, base: np.ndarray, n: int) -> np.ndarray:
    """How many entries of each row are above alpha, (rows,): line 4 of Algorithm 3 of [1].

    The rows of n falling entries begin at the positions `base` (rows,) of the flat `table`.
    """
    count = np.zeros(base.size, dtype=np.intp)
    for exponent in reversed(range(n.bit_length())):
        further = count + 2**exponent
        is_in_row = further <= n
        last_column = np.minimum(further, n) - 1
        last_entry = table[base + last_column]
        is_above = is_in_row & (last_entry > alpha)
        count = np.where(is_above, further, count)
    return count


def _fixed_points(q: np.ndarray, d: np.ndarray, epsilon: float) -> np.ndarray:
    """The alpha with alpha = log f(alpha) + epsilon, nats, for coefficients q, d (K,), by the four
    cases of Theorem 11 of [1]; inf if there is none.

    With e^alpha = 1 + e^epsilon g the equation is d g^2 + c g = (1 - e^-epsilon) e^-epsilon. Its
    positive root has two forms; each is used where it does not cancel.
    """
    rise, floor = _scaled_factors(epsilon)
    c = (1 - q + d) * floor - q * rise
    right_side = rise * floor
    # not the root of a sum of squares: c^2 and d e^-epsilon may underflow
    product = 2 * np.sqrt(d) * np.sqrt(right_side)
    root = np.hypot(c, product)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for_positive_c = 2 * rise * floor / (c + root)
        for_negative_c = (root - c) / (2 * d)
        g = np.where(c > 0, for_positive_c, for_negative_c)
        growth = g * np.exp(epsilon)  # e^alpha - 1
        is_in_range = growth < np.inf
        small_limit = np.log1p(growth)
        log_of_scaled = np.log(g + floor)  # of e^(alpha - epsilon)
        large_limit = epsilon + log_of_scaled
        limit = np.where(is_in_range, small_limit, large_limit)
    limit = np.maximum(limit, epsilon)
    is_unbounded = (d == 0) & (c <= 0)
    limit[is_unbounded] = np.inf
    are_equal = q == d
    limit[are_equal] = epsilon
    return limit


def _scaled_factors(alpha: float | np.ndarray):
    """1 - e^-alpha and e^-alpha, as numerator and denominator of f are scaled by e^-alpha."""
    rise = -np.expm1(-alpha)
    floor = np.exp(-alpha)
    return rise, floor


def _log_f(excess: np.ndarray, d: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    """log f from excess = q - d and d, elementwise; for d = 0 and large alpha in a form that does
    not overflow."""
    rise, floor = _scaled_factors(alpha)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        numerator = excess * rise
        denominator = d * rise + floor
        x = numerator / denominator  # f - 1
        log_f = np.log1p(x)
        log_of_scaled = np.log(numerator + floor)  # of f e^-alpha, where d = 0
        unbounded = alpha + log_of_scaled
    has_excess = excess > 0
    loss = np.where(has_excess, log_f, 0.0)
    is_large = np.asarray(alpha) > LARGEST
    is_unbounded = has_excess & (d == 0)
    return np.where(is_unbounded & is_large, unbounded, loss)


def _check_leakage(value: ArrayLike, name: str) -> float:
    values = check_alpha(value, name)
    return as_scalar(values, name)


def _intersection(first: Coefficients, last: Coefficients) -> float:
    """log(k + 1) of lines 4 and 14 of Algorithm 4 of [1], with q - d for q; -inf where the two do
    not meet at a positive alpha."""
    first_excess = first.q - first.d
    last_excess = last.q - last.d
    numerator = last_excess - first_excess
    denominator = first_excess * last.d - last_excess * first.d
    if denominator == 0:
        return -np.inf
    k = numerator / denominator
    if k <= 0:
        return -np.inf
    crossing = np.log1p(k)
    return float(crossing)


def _reaches(piece: Coefficients, top: Coefficients, alpha: float) -> bool:
    """Whether `piece` is as high as `top` at `alpha`, up to rounding; their relative gap falls to
    the intersection."""
    excess = _excess_of(piece, alpha)
    excess_of_top = _excess_of(top, alpha)
    least = excess_of_top * (1 - TOLERANCE)
    return bool(excess >= least)


def _excess_of(piece: Coefficients, alpha: float) -> float:
    """f - 1."""
    rise, floor = _scaled_factors(alpha)
    excess = piece.q - piece.d
    numerator = excess * rise
    denominator = piece.d * rise + floor
    return numerator / denominator
