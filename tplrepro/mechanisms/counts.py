"""Noisy series from true ones: the Laplace mechanism with a budget for each time point (Theorem 1 of [1]).

The default is OpenDP's Laplace mechanism, whose noise is sampled exactly and is safe against attacks on floating-point
noise; its privacy map is checked against each budget. NumPy's generator serves reproducible experiments; its noise is
not safe against such attacks.
"""

from math import inf, nextafter

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.mechanisms.laplace import LaplaceNoise
from tplrepro.validation import check_budgets, check_choice

__all__ = ["release_counts"]


def release_counts(
    series: ArrayLike,
    epsilons: ArrayLike,
    sensitivity: float,
    mechanism: str = "opendp",
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """Add Laplace noise of scale sensitivity/epsilon_t to the counts of each time point.

    Parameters
    ----------
    series : array-like (T,) or (T, n), whole numbers or floats: one count, or those of n cells, at each time point
    epsilons : array-like (T,) or float, budgets in nats, finite and > 0
    sensitivity : float > 0
        The largest change in the sum of |counts| of one time point when one user changes her value there: 2 for a
        histogram ([1]), 1 for a single count ([2] takes 1 throughout).
    mechanism : "opendp" or "numpy"
        OpenDP adds discrete Laplace noise to whole numbers; NumPy always adds continuous noise.
    rng : numpy.random.Generator, only with "numpy"

    Returns
    -------
    ndarray of the shape of `series`; int64 for whole numbers under "opendp", else float

    Raises
    ------
    ValueError
        For counts that are not finite or of another length than the budgets, a sensitivity that is not positive, an
        unknown mechanism, or a generator given to OpenDP.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> release_counts([[10, 20], [11, 19]], [1.0, 0.5], sensitivity=2, mechanism="numpy", rng=rng).round(3).tolist()
    [[10.64, 18.766], [0.993, 5.362]]
    >>> release_counts([10, 11], [1.0, 0.5], sensitivity=1).dtype
    dtype('int64')
    """
    check_choice(mechanism, "mechanism", ("opendp", "numpy"))
    counts = _checked_counts(series)
    budgets = check_budgets(epsilons, horizon=counts.shape[0])
    if not (np.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(
            f"sensitivity must be finite and greater than 0, found {sensitivity}; "
            "give the most that one user changes the counts of one time point, in sum"
        )
    if mechanism == "numpy":
        scale = (sensitivity / budgets).reshape(-1, *[1] * (counts.ndim - 1))
        return counts + LaplaceNoise(scale).sample(counts.shape, np.random.default_rng() if rng is None else rng)
    if rng is not None:
        raise ValueError(
            "OpenDP draws its own secure randomness and takes no generator, found rng; "
            'leave rng out, or pass mechanism="numpy" for reproducible noise'
        )
    return _release_by_opendp(counts, budgets, sensitivity)


def _release_by_opendp(counts: np.ndarray, budgets: np.ndarray, sensitivity: float) -> np.ndarray:
    import opendp.prelude as dp

    dp.enable_features("contrib")  # OpenDP asks every user of its Laplace mechanism to opt in
    whole = np.issubdtype(counts.dtype, np.integer)
    if whole and sensitivity != int(sensitivity):
        raise ValueError(
            f"whole counts change by whole numbers, found sensitivity {sensitivity}; round it up, or pass float counts"
        )
    kind, sensitivity = (int, int(sensitivity)) if whole else (float, float(sensitivity))
    domain = dp.vector_domain(dp.atom_domain(T=int) if whole else dp.atom_domain(T=float, nan=False))
    measurements = {}
    noisy = np.empty(counts.shape, dtype=np.int64 if whole else float)
    for t, budget in enumerate(budgets.tolist()):
        if budget not in measurements:
            measurements[budget] = _calibrated(domain, dp.l1_distance(T=kind), sensitivity, budget)
        noisy[t] = np.reshape(measurements[budget](np.ravel(counts[t]).tolist()), counts.shape[1:])
    return noisy


def _calibrated(domain, metric, sensitivity, budget: float):
    """OpenDP's Laplace measurement with the smallest scale whose privacy map is within the budget."""
    import opendp.prelude as dp

    scale = sensitivity / budget
    while True:
        measurement = dp.m.make_laplace(domain, metric, scale)
        if measurement.map(sensitivity) <= budget:
            return measurement
        scale = nextafter(scale, inf)


def _checked_counts(series: ArrayLike) -> np.ndarray:
    try:
        counts = np.asarray(series)
        counts = counts.astype(np.int64 if np.issubdtype(counts.dtype, np.integer) else float)
    except (TypeError, ValueError):
        raise ValueError(
            f"series must be a rectangular array of counts, found {type(series).__name__}; give shape (T,) or (T, n)"
        ) from None
    if counts.ndim not in (1, 2) or counts.size == 0:
        raise ValueError(f"series must have shape (T,) or (T, n) and not be empty, found {counts.shape}; give T >= 1")
    if not np.isfinite(counts).all():
        raise ValueError(
            f"counts must be finite, found {counts[~np.isfinite(counts)][0]}; fill in missing counts before the release"
        )
    return counts
