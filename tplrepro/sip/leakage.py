"""Leakage of one release: instantaneous information leakage, and the other measures it is compared with.

A release is a matrix a(y|x), row x; before it the adversary believes that x has probability beta(x). Observing y
multiplies that belief by a(y|x) / p(y), with p = sum_x beta(x) a(.|x); the instantaneous information leakage (IIL,
Definition 2 and Eq. (12) of [3]) is the largest |log| of that factor, over the x and y that can occur. With batches or
whole sequences for symbols, the same number is the batched (BIL, Definition 3) or the sequence information leakage.

Theorem 3 of [3] in these terms: IIL <= LDP level <= 2 IIL, the second where every x can occur.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.checks import check_response_matrix
from tplrepro.validation import check_distribution

__all__ = ["instantaneous_leakage", "joint_information", "local_differential_privacy", "mutual_information"]


def instantaneous_leakage(matrix: ArrayLike, belief: ArrayLike) -> float:
    """Instantaneous information leakage of a response under a belief, in nats (Definition 2, Eq. (12) of [3]).

    `matrix` (n, m) has rows a(.|x), `belief` (n,) is Pr(X_k = x | earlier outputs); ValueError if one of them is no
    distribution. Infinite if some possible output rules out a possible symbol.

    >>> round(instantaneous_leakage([[0.65, 0.35], [0.02, 0.98]], [0.05, 0.95]), 4)
    2.5354
    >>> instantaneous_leakage([[1, 0], [1, 0]], [0.5, 0.5])  # the output says nothing
    0.0
    """
    beta = check_distribution(belief, name="a belief")
    rows = check_response_matrix(matrix, beta.size)
    marginal = beta @ rows
    seen = marginal > 0
    likelihood = rows[np.ix_(beta > 0, seen)]
    if (likelihood == 0).any():
        return float("inf")
    return float(np.abs(np.log(likelihood) - np.log(marginal[seen])).max())


def local_differential_privacy(matrix: ArrayLike) -> float:
    """Level of local differential privacy: the largest log-ratio of two rows (Definition 4 of [3]); nats.

    >>> round(local_differential_privacy([[0.75, 0.25], [0.25, 0.75]]), 4)
    1.0986
    """
    rows = check_response_matrix(matrix)
    rows = rows[:, rows.max(axis=0) > 0]
    if (rows == 0).any():
        return float("inf")
    logs = np.log(rows)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def mutual_information(matrix: ArrayLike, belief: ArrayLike) -> float:
    """I(X; Y) of a response under a belief, in nats; never more than the IIL (Definition 6 of [3] and below).

    >>> round(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 4)
    0.1308
    """
    beta = check_distribution(belief, name="a belief")
    rows = check_response_matrix(matrix, beta.size)
    return joint_information(beta[:, None] * rows)


def joint_information(joint: np.ndarray) -> float:
    """I(X; Y), nats, from the joint distribution (n, m)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(joint) - np.log(joint.sum(axis=1, keepdims=True)) - np.log(joint.sum(axis=0))
        return float(max(np.sum(joint * logs, where=joint > 0), 0.0))
