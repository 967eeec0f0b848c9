"""log f of Eq. (24) of [1] without overflow or cancellation, and the check of scalar leakages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import check_alpha, one_number

__all__ = ["LARGEST", "factors", "log_f", "one_leakage"]

LARGEST = 700.0  # e^alpha is finite with room to spare


def factors(alpha: float | np.ndarray):
    """1 - e^-alpha and e^-alpha: the numerator and denominator of f are scaled by e^-alpha."""
    return -np.expm1(-alpha), np.exp(-alpha)


def log_f(excess: np.ndarray, d: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    """log f from excess = q - d and d, elementwise.

    Where d = 0, f = q u + 1 overflows with e^alpha; log f is then alpha + log(q (1 - e^-alpha) + e^-alpha).
    """
    rise, floor = factors(alpha)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.where(excess > 0, np.log1p(excess * rise / (d * rise + floor)), 0.0)
        unbounded = alpha + np.log(excess * rise + floor)
    return np.where((d == 0) & (excess > 0) & (np.asarray(alpha) > LARGEST), unbounded, loss)


def one_leakage(value: ArrayLike, name: str) -> float:
    return one_number(check_alpha(value, name), name)
