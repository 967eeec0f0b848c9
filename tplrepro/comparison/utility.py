"""The one utility measure: how far released counts are from the true ones, a cell and a time.

Counts can be taken as released, where a mechanism gives such counts. Or a reader may use what everybody knows, the
number of users and the chain, to make the best of all T releases: for users who perturb their own data the sum of their
posteriors, for a trusted server's noisy counts the best linear estimate. The second exists for every mechanism.
"""

from __future__ import annotations

import numpy as np

__all__ = ["infer_counts", "mean_absolute_error"]


def mean_absolute_error(estimate, counts) -> float:
    """Mean of |estimate - count| over cells and times, users.

    >>> mean_absolute_error([[3.0, 1.0]], [[2, 1]])
    0.5
    """
    return float(np.abs(np.asarray(estimate, dtype=float) - counts).mean())


def infer_counts(noisy, variances, setting) -> np.ndarray:
    """The best linear estimate of counts from noisy ones, given the number of users and their chain.

    Users move independently by the chain: the counts of times s <= t have the mean N pi and the covariance
    N (diag(pi) P^(t-s) - pi pi^T).

    Parameters
    ----------
    noisy : ndarray (T, n)
    variances : ndarray (T,), of the noise of each count; infinite where nothing was published
    setting : Setting; of its data only the number of users is used

    Returns
    -------
    ndarray (T, n)
    """
    from scipy.linalg import solve

    adversary, horizon, n = setting.adversary, setting.horizon, setting.n_cells
    published = np.flatnonzero(np.isfinite(variances))
    mean = np.tile(setting.expected_counts, (horizon, 1))
    if not published.size:
        return mean
    covariance = setting.n_users * _covariance(adversary.transitions.toarray(), adversary.initial, horizon)
    rows = (published[:, None] * n + np.arange(n)).ravel()
    noise = np.repeat(np.asarray(variances, dtype=float)[published], n)
    seen = covariance[np.ix_(rows, rows)] + np.diag(noise)
    surprise = (np.asarray(noisy, dtype=float)[published] - mean[published]).ravel()
    return mean + (covariance[:, rows] @ solve(seen, surprise, assume_a="pos")).reshape(horizon, n)


def _covariance(matrix: np.ndarray, initial: np.ndarray, horizon: int) -> np.ndarray:
    """Of one user's presence in each cell at each time, (T n, T n)."""
    n = initial.size
    joint, lags = np.diag(initial), []
    for _ in range(horizon):
        lags.append(joint - np.outer(initial, initial))
        joint = joint @ matrix
    blocks = [[lags[t - s] if t >= s else lags[s - t].T for t in range(horizon)] for s in range(horizon)]
    return np.block(blocks).reshape(horizon * n, horizon * n)
