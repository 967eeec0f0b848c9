"""Checks of what only mechanisms beyond the papers take: the noise of Gaussian releases,
covariances of a series."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import LARGEST, SMALLEST, as_numbers, over_time, within


def check_noise_multipliers(noise_multipliers: ArrayLike, horizon: int | None = None) -> np.ndarray:
    """Standard deviations of noise over its sensitivity, (T,), finite and > 0; `horizon` as for
    budgets."""
    must = "noise_multipliers must be finite and greater than 0"
    values = within(
        noise_multipliers, SMALLEST, LARGEST, must, "give standard deviations over sensitivities"
    )
    return over_time(values, "noise_multipliers", "multiplier", horizon)


def check_covariance(given: Any, name: str = "covariance") -> np.ndarray:
    """A covariance (n, n), symmetric and positive semidefinite within 1e-9, as an exactly symmetric
    array."""
    K = as_numbers(given, f"{name} must be a covariance of real numbers", "give an array (n, n)")
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0 or not np.isfinite(K).all():
        raise ValueError(
            f"{name} must be a finite (n, n) matrix, found shape {K.shape}; give Cov(x_s, x_t)"
        )
    symmetric = (K + K.T) / 2.0
    least, tolerance = np.linalg.eigvalsh(symmetric)[0], 1e-9 * abs(K).max()
    if abs(K - symmetric).max() > tolerance or least < -tolerance:
        raise ValueError(
            f"{name} must be symmetric and positive semidefinite, found asymmetry "
            f"{2 * abs(K - symmetric).max():.3g} and eigenvalue {least:.3g}; "
            "estimate all entries from the same series"
        )
    return symmetric
