"""The one utility measure: how far released counts are from the true ones, a cell and a time.

Counts can be taken as released, where a mechanism gives such counts. Or a reader may use what everybody knows, the
number of users and the chain, to make the best of all T releases: for users who perturb their own data the sum of their
posteriors, for a trusted server's noisy counts the best linear estimate. The second exists for every mechanism.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.comparison.setting import Setting

__all__ = ["infer_counts", "mean_absolute_error"]


def mean_absolute_error(estimate: ArrayLike, counts: ArrayLike) -> float:
    """Mean of |estimate - count| over cells and times, users.

    >>> mean_absolute_error([[3.0, 1.0]], [[2, 1]])
    0.5
    """
    return float(np.abs(np.subtract(estimate, counts)).mean())


def infer_counts(noisy: np.ndarray, variances: np.ndarray, setting: Setting) -> np.ndarray:
    """The best linear estimate of counts from noisy ones, given the number of users and their chain.

    Users move independently by the chain, so that the counts of one time have the mean N pi and the covariance
    N (diag(pi) - pi pi^T), and those of the next are P^T times these plus innovations: a Kalman filter, and smoothing
    in the form of Bryson and Frazier, which inverts no singular covariance.
    The `variances` (T,) of the noise of each count are infinite where nothing was published; of the data in `setting`
    only the number of users is used.
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
