"""Noisy series from true ones: the Laplace mechanism with a budget for each time point (Theorem 1 of [1]).

The default is OpenDP's Laplace mechanism, whose noise is sampled exactly and is safe against attacks on floating-point
noise; its privacy map is checked against each budget. NumPy's generator serves reproducible experiments; its noise is
not safe against such attacks, of which a warning tells.
"""

import warnings
from math import inf, nextafter

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.mechanisms.laplace import LaplaceNoise
from tplrepro.validation import as_numbers, check_budgets, check_choice, one_number

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
        OpenDP adds discrete Laplace noise to whole numbers of 64 bits; what passes their ends stays there, which costs
        no privacy. NumPy always adds continuous noise.
    rng : numpy.random.Generator, only with "numpy"

    Returns
    -------
    ndarray of the shape of `series`; int64 for whole numbers under "opendp", else float

    Raises
    ------
    ValueError
        For counts that are not finite numbers, masked, above 64 bits, or of another length than the budgets, a
        sensitivity that is not positive, an unknown mechanism, or a generator given to OpenDP.

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
    remedy = "give the most that one user changes the counts of one time point, in sum"
    largest = one_number(as_numbers(sensitivity, "sensitivity must be a number", remedy), "sensitivity", remedy)
    if not 0 < largest < inf:
        raise ValueError(f"sensitivity must be finite and greater than 0, found {largest:g}; {remedy}")
    if mechanism == "numpy":
        warnings.warn(
            "NumPy's noise is for experiments, its lowest bits may give counts away; release them by 'opendp'",
            stacklevel=2,
        )
        scale = (largest / budgets).reshape(-1, *[1] * (counts.ndim - 1))
        return counts + LaplaceNoise(scale).sample(counts.shape, np.random.default_rng() if rng is None else rng)
    if rng is not None:
        raise ValueError(
            "OpenDP draws its own secure randomness and takes no generator, found rng; "
            'leave rng out, or pass mechanism="numpy" for reproducible noise'
        )
    whole = counts.dtype.kind == "i"
    if whole and sensitivity != int(sensitivity):
        raise ValueError(
            f"whole counts change by whole numbers, found sensitivity {sensitivity}; round it up, or pass float counts"
        )
    calibrated = {budget: _calibrated(whole, sensitivity, budget) for budget in set(budgets.tolist())}
    noisy = [calibrated[budget](row.ravel().tolist()) for budget, row in zip(budgets.tolist(), counts, strict=True)]
    return np.array(noisy, dtype=counts.dtype).reshape(counts.shape)


def _calibrated(whole: bool, sensitivity: float, budget: float):
    """OpenDP's Laplace measurement with the smallest scale whose privacy map is within the budget."""
    import opendp.prelude as dp

    dp.enable_features("contrib")  # OpenDP asks every user of its Laplace mechanism to opt in
    # Python's int would be the 32 bits of C.
    atoms = dp.atom_domain(T="i64") if whole else dp.atom_domain(T="f64", nan=False)
    space = dp.vector_domain(atoms), dp.l1_distance(T="i64" if whole else "f64")
    change = int(sensitivity) if whole else float(sensitivity)
    scale = sensitivity / budget
    while True:
        measurement = dp.m.make_laplace(*space, scale)
        if measurement.map(change) <= budget:
            return measurement
        scale = nextafter(scale, inf)


def _checked_counts(series: ArrayLike) -> np.ndarray:
    """Counts as int64 or, where they are not whole numbers by their type, as floats."""
    counts = as_numbers(series, "series must be a rectangular array of counts", "give shape (T,) or (T, n)")
    given = np.asarray(series)
    if given.dtype.kind in "iu":
        if given.max(initial=0) > np.iinfo(np.int64).max:
            raise ValueError(f"whole counts must be below 2**63, found {given.max()}; give them as floats")
        counts = given.astype(np.int64)
    if counts.ndim not in (1, 2) or counts.size == 0:
        raise ValueError(f"series must have shape (T,) or (T, n) and not be empty, found {counts.shape}; give T >= 1")
    if not np.isfinite(counts).all():
        raise ValueError(
            f"counts must be finite, found {counts[~np.isfinite(counts)][0]}; fill in missing counts before the release"
        )
    return counts
