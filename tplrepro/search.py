"""Searches for the largest number that keeps a promise, such as a budget within a level of
leakage."""

from collections.abc import Callable
from functools import cache
from math import sqrt

import numpy as np


def largest_within(
    within: Callable[[float], bool],
    low: float,
    high: float,
    *,
    tolerance: float = 0.0,
    logarithmic: bool = False,
) -> float:
    """The largest float in [low, high] for which a monotone predicate holds, by bisection from
    below.

    Never too large: the result has itself been tested, or is `low`, which must satisfy the
    predicate. It may be too small by the share `tolerance` (0: by no bit). A `logarithmic` search
    halves ratios, which takes fewer steps where `high` is many times `low`.

    >>> root = largest_within(lambda x: x * x <= 2.0, 0.0, 2.0)
    >>> round(root, 6), root * root <= 2.0
    (1.414214, True)
    """
    if not low <= high or (logarithmic and low <= 0.0):
        raise ValueError(
            f"a search needs low <= high, and low > 0 if it is logarithmic, found {low:g} and {high:g}; check the ends"
        )
    if within(high):
        return high
    while high - low > tolerance * abs(high):
        middle = sqrt(low) * sqrt(high) if logarithmic else 0.5 * (low + high)
        if not low < middle < high:  # the root of close numbers may round to one of them
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
        if within(middle):
            low = middle
        else:
            high = middle
    return low


def fit_to_level(
    leakage: Callable[[np.ndarray], float],
    budgets: np.ndarray,
    alpha: float,
    target: float,
    tolerance: float = 4.0 * 2.0**-52,
) -> np.ndarray:
    """The budgets times the largest factor, to `tolerance`, whose leakage was found to be at most
    `target`.

    The leakage grows with the factor. No budget may exceed `alpha`; `target` is alpha less a margin
    for rounding.
    """
    # needs far fewer leakages than bisection, but may end above the target
    from scipy.optimize import brentq

    from tplrepro.progress import Bar

    bar = Bar(None, "fitting budgets", "leakage")

    @cache
    def excess(factor: float) -> float:
        bar.update()
        return min(leakage(factor * budgets) / target, 2.0) - 1.0  # brentq needs finite numbers

    largest = alpha / budgets.max()
    low, high = min(1.0, largest), largest
    with bar:
        while excess(low) > 0.0:
            low, high = 0.5 * low, low
        factor = high
        if excess(high) > 0.0:
            factor = brentq(excess, low, high, xtol=tolerance * low, rtol=tolerance)
        while excess(factor) > 0.0:
            factor = max(factor * (1.0 - tolerance), low)
            tolerance *= 2.0
    return factor * budgets
