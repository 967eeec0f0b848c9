"""What each mechanism gives back: what the adversary sees, and what the reader of the counts sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["SimulatedRelease"]


@dataclass(frozen=True, eq=False)
class SimulatedRelease:
    """T releases.

    Attributes
    ----------
    log_likelihoods : ndarray (m, T, n)
        For each of m targets, log Pr(output at t | the target is in cell k, earlier outputs), up to a constant of each
        time. For mechanisms with a trusted server the m runs are independent, one a target.
    counts : ndarray (T, n) or None
        The counts as released, without any model; None for mechanisms that give no such counts.
    variances : ndarray (T,) or None
        Variance of the noise of each count of a trusted server, infinite where nothing was published; None if users
        perturb their own data.
    """

    log_likelihoods: np.ndarray
    counts: np.ndarray | None = None
    variances: np.ndarray | None = None
