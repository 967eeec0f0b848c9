"""The variances of the noise of counts that `release_counts` or a `Publisher` gave."""

from __future__ import annotations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import as_numbers, check_sensitivity

ROUNDING = 1.0 / 12.0  # the variance of rounding to whole numbers
#: Standard deviations over the sensitivity below which noise counts as so large, for the rounding
#: of the filters.
LEAST = 0.01


def variances_of_noise(
    horizon: int,
    sensitivity: Any,
    *,
    is_published: np.ndarray,
    is_whole: bool,
    epsilons: ArrayLike | None = None,
    noise_multipliers: ArrayLike | None = None,
) -> np.ndarray:
    """The variance of the noise of each time, inf for a time that is not published.

    Parameters
    ----------
    horizon : int
        The number of times T.
    sensitivity : float > 0
        As `release_counts` takes it.
    is_published : array (T,) of bool
        The times whose budgets count; others may have none.
    is_whole : bool
        Whether the counts are whole numbers, whose noise is whole, too.
    epsilons : array-like (T,) or float, optional
        Budgets of Laplace noise, nats.
    noise_multipliers : array-like (T,) or float, optional
        In place of budgets: standard deviations over the sensitivity, of Gaussian noise.

    Returns
    -------
    array (T,)

    Raises
    ------
    ValueError
        Unless either budgets or multipliers are given, one for each published time, or one for all.

    Examples
    --------
    >>> published = np.array([True, False, True])
    >>> variances_of_noise(
    ...     3, 2, epsilons=[1.0, 0.0, 0.5], is_published=published, is_whole=False
    ... ).tolist()
    [8.0, inf, 32.0]
    """
    name = "epsilons"
    given = epsilons
    if noise_multipliers is not None:
        name = "noise_multipliers"
        given = noise_multipliers
    if (epsilons is None) == (noise_multipliers is None):
        raise ValueError(
            "the noise must be that of epsilons= (Laplace) or noise_multipliers= (Gaussian), found "
            "both or neither; give what the counts were released with"
        )
    if sensitivity is None:
        raise ValueError(
            "sensitivity must be given, found none; give that with which the counts were released"
        )
    levels = _levels(given, name, horizon, is_published)
    scale = check_sensitivity(sensitivity)
    variances = np.full(horizon, np.inf)
    if name == "epsilons":
        scales = scale / levels[is_published]
        variances[is_published] = 2.0 * scales**2
        if is_whole:
            variances[is_published] = _of_whole_laplace(scales)
    else:
        variances[is_published] = (scale * levels[is_published]) ** 2
        if is_whole:
            variances[is_published] += ROUNDING
    return np.maximum(variances, (LEAST * scale) ** 2)


def _levels(given: Any, name: str, horizon: int, is_published: np.ndarray) -> np.ndarray:
    levels = as_numbers(given, f"{name} must be numbers", "give one for each time")
    if levels.ndim == 0:
        levels = np.full(horizon, levels)
    if levels.shape != (horizon,):
        raise ValueError(
            f"{name} must be one number, or one for each of {horizon} times, found shape "
            f"{levels.shape}; those of times without a release may be 0"
        )
    wrong = is_published & ~((levels > 0.0) & (levels < np.inf))
    if wrong.any():
        raise ValueError(
            f"{name} of published times must be finite and above 0, found "
            f"{levels[wrong][0]:g} at time {int(np.argmax(wrong))}; give what the counts were "
            "released with"
        )
    return levels


def _of_whole_laplace(scales: np.ndarray) -> np.ndarray:
    """2q / (1 - q)^2 with q = exp(-1 / scale), without the loss of digits of 1 - q."""
    with np.errstate(over="ignore"):
        return 0.5 / np.sinh(0.5 / scales) ** 2
