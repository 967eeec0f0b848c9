"""How a filter notices that its settings are not those of what happens now.

The surprise of a time has as mean the number of its noisy counts, k, if the model is right, and the
variance OF_LAPLACE k, somewhat less where not all doubt is about Laplace noise.
"""

from __future__ import annotations

import numpy as np

#: The variance of the square of a Laplace variable, over that of the variable, squared.
OF_LAPLACE = 5.0
#: Standard deviations at which one time is an alarm, and all times together since the settings were
#: chosen.
SUDDEN = 10.0
GRADUAL = 5.0


def excess_of(surprises: np.ndarray, values: np.ndarray) -> float:
    """By how many standard deviations surprises (T,) of so many values (T,) exceed their mean; NaN
    without values."""
    expected = values.sum()
    if expected == 0:
        return float("nan")
    return float((surprises.sum() - expected) / np.sqrt(OF_LAPLACE * expected))


def sudden_surprise(values: np.ndarray) -> np.ndarray:
    """The surprise above which one time of so many values (T,) is an alarm."""
    return values + SUDDEN * np.sqrt(OF_LAPLACE * values)


def first_alarm(surprises: np.ndarray, values: np.ndarray) -> int | None:
    """The first time at which surprises (T,) of so many values (T,) are too large, None if they
    never are.

    >>> first_alarm(np.array([2.0, 0.0, 3.0, 90.0]), np.array([2, 0, 2, 2]))
    3
    >>> first_alarm(np.array([2.0, 0.0, 3.0, 9.0]), np.array([2, 0, 2, 2])) is None
    True
    """
    excess = surprises - values
    spread = np.maximum(OF_LAPLACE * values, 1e-300)
    sudden = surprises > sudden_surprise(values)
    gradual = excess.cumsum() > GRADUAL * np.sqrt(spread.cumsum())
    is_alarm = (values > 0) & (sudden | gradual)
    if not is_alarm.any():
        return None
    return int(np.argmax(is_alarm))
