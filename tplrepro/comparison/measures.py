"""What is measured of a release: what it leaks about one user at each time, and what a reader makes of the counts.

The measured leakage of a run is realised, not worst-case: the privacy loss of outputs that were drawn, which temporal
privacy leakage (Eq. (2) of [1]) bounds over all outputs. A reader may take the counts as released, if a mechanism gives
any, or use what everybody knows, the number of users and the chain, to make the best of all T releases: for users who
perturb their own data the sum of their posteriors, for a trusted server's noisy counts the best linear estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.comparison.setting import Setting

__all__ = ["infer_counts", "measured_leakage"]


def measured_leakage(told: ArrayLike, pairs: ArrayLike | None = None) -> np.ndarray:
    """The largest realised log-likelihood ratio between two cells at each time, (..., T), nats.

    `told` (..., T, n) is log Pr(all outputs | l_t = k), NaN for cells that are impossible at that time. By default all
    pairs of possible cells are compared, else those given (m, 2). Infinite where a possible cell is ruled out.

    >>> told = [[0.0, 1.0, 3.0]]
    >>> measured_leakage(told).tolist(), measured_leakage(told, [(0, 1), (1, 2)]).tolist()
    ([3.0], [2.0])
    """
    values = np.asarray(told, dtype=float)
    if pairs is None:
        return np.nanmax(values, axis=-1) - np.nanmin(values, axis=-1)
    first, second = np.asarray(pairs, dtype=np.intp).reshape(-1, 2).T
    with np.errstate(invalid="ignore"):
        ratios = np.abs(values[..., first] - values[..., second])
    return np.where(np.isnan(ratios), 0.0, ratios).max(axis=-1, initial=0.0)


def infer_counts(noisy: np.ndarray, variances: np.ndarray, setting: Setting) -> np.ndarray:
    """The best linear estimate of counts from noisy ones, given the number of users and their chain.

    Users move independently by the chain, so that the counts of one time have the mean N pi and the covariance
    N (diag(pi) - pi pi^T), and those of the next are P^T times these plus innovations: a Kalman filter, and smoothing
    in the form of Bryson and Frazier, which inverts no singular covariance. The `variances` (T,) of the noise of each
    count are infinite where nothing was published; of the data in `setting` only the number of users is used.
    """
    pi = setting.adversary.initial
    step = setting.adversary.transitions.toarray().T
    stationary = setting.n_users * (np.diag(pi) - np.outer(pi, pi))
    innovations = stationary - step @ stationary @ step.T
    mean, covariance = np.zeros(pi.size), stationary  # of the counts less N pi
    filtered = []
    for values, variance in zip(np.asarray(noisy, dtype=float), variances, strict=True):
        gain, weighed = np.zeros_like(covariance), np.zeros_like(mean)
        if np.isfinite(variance):
            total = covariance + variance * np.eye(pi.size)
            surprise = values - setting.n_users * pi - mean
            gain = np.linalg.solve(total, covariance).T
            weighed = np.linalg.solve(total, surprise)
            mean = mean + covariance @ weighed
            covariance = covariance - gain @ covariance
        filtered.append((mean, covariance, gain, weighed))
        mean, covariance = step @ mean, step @ covariance @ step.T + innovations
    inferred, later = np.empty((len(filtered), pi.size)), np.zeros_like(mean)
    for t in range(len(filtered) - 1, -1, -1):
        mean, covariance, gain, weighed = filtered[t]
        inferred[t] = setting.n_users * pi + mean + covariance @ later
        later = step.T @ (weighed + later - gain.T @ later)
    return inferred
