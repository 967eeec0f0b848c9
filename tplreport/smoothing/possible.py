"""Estimates that counts can have: not negative, of a known sum, whole."""

from __future__ import annotations

import numpy as np


def possible_counts(means: np.ndarray, total: float | None, whole: bool) -> np.ndarray:
    """The possible counts (T, n) nearest to means.

    Parameters
    ----------
    means : array (T, n)
    total : float or None
        The sum of each row, if it is known.
    whole : bool
        Whether counts are rounded to whole numbers.

    Returns
    -------
    array (T, n)

    Examples
    --------
    >>> possible_counts(np.array([[6.4, 4.9, -1.3]]), 10.0, whole=True).tolist()
    [[6.0, 4.0, 0.0]]
    >>> possible_counts(np.array([[6.4, 4.9, -1.3]]), None, whole=False).tolist()
    [[6.4, 4.9, 0.0]]
    """
    if total is None:
        counts = np.maximum(means, 0.0)
        if whole:
            return np.round(counts)
        return counts
    counts = _with_sum(means, total)
    if whole:
        return _rounded_with_sum(counts, total)
    return counts


def _with_sum(means: np.ndarray, total: float) -> np.ndarray:
    """The nearest points of {x >= 0, sum x = total}: each row less a number, where that is above 0
    (Held, Wolfe and Crowder, 1974)."""
    descending = -np.sort(-means, axis=1)
    places = np.arange(1, means.shape[1] + 1)
    excess = (descending.cumsum(axis=1) - total) / places
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(means - excess[np.arange(len(means)), last][:, None], 0.0)


def _rounded_with_sum(counts: np.ndarray, total: float) -> np.ndarray:
    """Whole numbers that add up to the total, rounded: those of the largest remainders are rounded
    up."""
    whole = np.floor(counts)
    missing = np.round(total) - whole.sum(axis=1)
    order = np.argsort(whole - counts, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable")
    return whole + (ranks < missing[:, None])
