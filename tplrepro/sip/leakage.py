"""Leakage of one release: instantaneous information leakage, and the other measures it is compared with.

A release is a matrix a(y|x), row x; before it the adversary believes that x has probability beta(x).
Observing y multiplies that belief by a(y|x) / p(y), with p = sum_x beta(x) a(.|x); the instantaneous
information leakage (IIL, Definition 2 and Eq. (12) of [3]) is the largest |log| of that factor, over the x
and y that can occur. For batches of symbols the same number is the batched information leakage (BIL,
Definition 3).

Theorem 3 of [3] in these terms: IIL <= LDP level <= 2 IIL, the second where every x can occur.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.validation import ROW_SUM_TOLERANCE

__all__ = [
    "batched_leakage",
    "check_belief",
    "check_distance",
    "check_response_matrix",
    "expected_distance",
    "hamming_distance",
    "instantaneous_leakage",
    "local_differential_privacy",
    "mutual_information",
]


def check_belief(belief, n: int | None = None) -> np.ndarray:
    """A belief (n,) as a float array whose sum is 1 to the last bits; ValueError unless it is a distribution."""
    values = np.asarray(belief, dtype=float)
    if values.ndim != 1 or values.size == 0 or (n is not None and values.size != n):
        wanted = "(n,) with n >= 1" if n is None else f"({n},)"
        raise ValueError(f"a belief must have shape {wanted}, found {values.shape}; give one probability a symbol")
    total = values.sum()
    if not np.isfinite(total) or (values < 0).any() or abs(total - 1.0) > ROW_SUM_TOLERANCE:
        raise ValueError(
            f"a belief must be non-negative and sum to 1 within {ROW_SUM_TOLERANCE:g}, found sum {total:.12g} and "
            f"minimum {values.min():g}; divide it by its sum"
        )
    return values / total


def check_response_matrix(matrix, n: int) -> np.ndarray:
    """A response (n, m) as a float array; ValueError unless its n rows are distributions over the outputs."""
    rows = np.asarray(matrix, dtype=float)
    if rows.ndim != 2 or rows.shape[0] != n or rows.shape[1] == 0:
        raise ValueError(f"a response over {n} symbols must have {n} rows, found shape {rows.shape}; give rows a(.|x)")
    sums = rows.sum(axis=1)
    if not np.isfinite(sums).all() or (rows < 0).any() or np.abs(sums - 1).max() > ROW_SUM_TOLERANCE:
        worst = int(np.argmax(np.where(np.isfinite(sums), np.abs(sums - 1), np.inf)))
        raise ValueError(
            f"rows a(.|x) must be non-negative and sum to 1 within {ROW_SUM_TOLERANCE:g}, found sum {sums[worst]:.12g} "
            f"in row {worst} and minimum {rows.min():g}; divide each row by its sum"
        )
    return rows


def check_distance(distance, n: int) -> np.ndarray:
    """A distance matrix (n, n), finite and not negative; "hamming" is 1 off the diagonal."""
    if isinstance(distance, str):
        if distance != "hamming":
            raise ValueError(f"distance must be 'hamming' or an array (n, n), found {distance!r}; give one of these")
        return hamming_distance(n)
    values = np.asarray(distance, dtype=float)
    if values.shape != (n, n):
        raise ValueError(f"distances between {n} symbols must have shape ({n}, {n}), found {values.shape}; resize them")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"distances must be finite and not negative, found minimum {values.min():g}; correct them")
    return values


def hamming_distance(n: int) -> np.ndarray:
    """Hamming distance between n symbols, (n, n).

    >>> hamming_distance(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return 1.0 - np.eye(n)


def instantaneous_leakage(matrix, belief) -> float:
    """Instantaneous information leakage of a response under a belief, in nats (Definition 2, Eq. (12) of [3]).

    Parameters
    ----------
    matrix : array-like (n, m), rows a(.|x)
    belief : array-like (n,), Pr(X_k = x | earlier outputs)

    Returns
    -------
    float
        Infinite if some possible output rules out a possible symbol.

    Raises
    ------
    ValueError
        If the belief or a row is not a distribution.

    Examples
    --------
    >>> round(instantaneous_leakage([[0.65, 0.35], [0.02, 0.98]], [0.05, 0.95]), 4)
    2.5354
    >>> instantaneous_leakage([[1, 0], [1, 0]], [0.5, 0.5])  # the output says nothing
    0.0
    """
    beta = check_belief(belief)
    rows = check_response_matrix(matrix, beta.size)
    possible = beta > 0
    marginal = beta @ rows
    seen = marginal > 0
    likelihood, marginal = rows[np.ix_(possible, seen)], marginal[seen]
    if (likelihood == 0).any():
        return float("inf")
    return float(np.abs(np.log(likelihood) - np.log(marginal)).max())


#: Batched information leakage (BIL, Definition 3 of [3]): the same, with batches for symbols.
batched_leakage = instantaneous_leakage


def local_differential_privacy(matrix) -> float:
    """Level of local differential privacy: the largest log-ratio of two rows (Definition 4 of [3]); nats.

    >>> round(local_differential_privacy([[0.75, 0.25], [0.25, 0.75]]), 4)
    1.0986
    """
    rows = np.asarray(matrix, dtype=float)
    rows = check_response_matrix(rows, rows.shape[0] if rows.ndim == 2 else 0)
    rows = rows[:, rows.max(axis=0) > 0]
    if (rows == 0).any():
        return float("inf")
    logs = np.log(rows)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def mutual_information(matrix, belief) -> float:
    """I(X; Y) of a response under a belief, in nats; never more than the IIL (Definition 6 of [3] and below).

    >>> round(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 4)
    0.1308
    """
    beta = check_belief(belief)
    rows = check_response_matrix(matrix, beta.size)
    joint = beta[:, None] * rows
    marginal = np.broadcast_to(joint.sum(axis=0), joint.shape)
    held = joint > 0
    terms = joint[held] * (np.log(np.broadcast_to(rows, joint.shape)[held]) - np.log(marginal[held]))
    return float(max(terms.sum(), 0.0))


def expected_distance(matrix, belief, distance="hamming") -> float:
    """Expected distance between input and output, Eqs. (10) and (14) of [3]: the cost that mechanisms minimise.

    >>> expected_distance([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])
    0.25
    """
    beta = check_belief(belief)
    rows = check_response_matrix(matrix, beta.size)
    return float((beta[:, None] * rows * check_distance(distance, beta.size)).sum())
