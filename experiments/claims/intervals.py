"""Intervals of 95 % for repeated experiments, in the form that records and claims use."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def mean_with_interval(samples: ArrayLike) -> dict:
    """Mean of independent repeats with Student's 95 % interval.

    >>> {name: round(float(part), 2) for name, part in mean_with_interval([1.0, 2.0, 3.0]).items()}
    {'value': 2.0, 'low': -0.48, 'high': 4.48, 'repeats': 3.0}
    """
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    values = np.asarray(samples, dtype=float).ravel()
    if values.size < 2:
        raise ValueError(
            f"samples must be at least two repeats, found {values.size}; repeat the experiment"
        )
    half = stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / np.sqrt(values.size)
    return {
        "value": values.mean(),
        "low": values.mean() - half,
        "high": values.mean() + half,
        "repeats": values.size,
    }


def share_with_interval(flags: Iterable[bool]) -> dict:
    """Share of the independent repeats that are true, with the exact 95 % interval of Clopper and
    Pearson.

    >>> {name: round(float(part), 3) for name, part in share_with_interval([True] * 20).items()}
    {'value': 1.0, 'low': 0.832, 'high': 1.0, 'repeats': 20.0}
    """
    from scipy.stats import binomtest

    values = np.asarray(list(flags), dtype=bool)
    if not values.size:
        return {"value": np.nan, "low": 0.0, "high": 1.0, "repeats": 0}
    interval = binomtest(int(values.sum()), values.size).proportion_ci(0.95, method="exact")
    return {
        "value": values.mean(),
        "low": interval.low,
        "high": interval.high,
        "repeats": values.size,
    }
