"""Searches for the largest number that keeps a promise, such as a budget within a level of
leakage."""

from collections.abc import Callable
from functools import cache
from math import sqrt, ulp

import numpy as np

#: How far from a guess a search begins, as a share of it, and the factor by which it goes farther.
CLOSE = 2.0**-44
WIDER = 2.0**8


def largest_within(
    within: Callable[[float], bool],
    low: float,
    high: float,
    *,
    tolerance: float = 0.0,
    logarithmic: bool = False,
    near: float | None = None,
) -> float:
    """The largest float in [low, high] for which a monotone predicate holds, by bisection from
    below.

    Never too large: the result has itself been tested, or is `low`.

    Parameters
    ----------
    within : callable
        The predicate, which holds up to some number.
    low : float
        A number for which it holds.
    high : float
    tolerance : float
        By which share the result may be too small (0: by no bit).
    logarithmic : bool
        Halve ratios, which takes fewer steps where `high` is many times `low`.
    near : float, optional
        A guess of the result, about which the search begins.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Unless low <= high, and low > 0 if the search is logarithmic.

    Examples
    --------
    >>> root = largest_within(lambda x: x * x <= 2.0, 0.0, 2.0)
    >>> round(root, 6), root * root <= 2.0
    (1.414214, True)
    """
    if not low <= high or (logarithmic and low <= 0.0):
        raise ValueError(
            f"a search needs low <= high, and low > 0 if it is logarithmic, "
            f"found {low:g} and {high:g}; check the ends"
        )
    if within(high):
        return high
    if near is not None and low < near < high:
        low, high = _ends_about(near, within, low, high)
    while high - low > tolerance * abs(high):
        middle = 0.5 * (low + high)
        if logarithmic:
            geometric = sqrt(low) * sqrt(high)
            if low < geometric < high:  # of close numbers it may round to one of them
                middle = geometric
        if not low < middle < high:
            break
        if within(middle):
            low = middle
        else:
            high = middle
    return low


def _ends_about(
    near: float, within: Callable[[float], bool], low: float, high: float
) -> tuple[float, float]:
    """Two numbers about `near` as close as it is a good guess, the first of which is within; at
    worst `low`, which is within, and `high`, which is not."""
    first_step = max(CLOSE * abs(near), ulp(near))
    step = first_step
    below = near - step
    while below > low and not within(below):
        high = below
        step *= WIDER
        below = near - step
    low = max(low, below)
    step = first_step
    above = near + step
    while above < high and within(above):
        low = above
        step *= WIDER
        above = near + step
    return low, min(high, above)


def fit_to_level(
    leakage: Callable[[np.ndarray], float],
    budgets: np.ndarray,
    alpha: float,
    target: float,
    tolerance: float = 4.0 * 2.0**-52,
) -> np.ndarray:
    """The budgets times the largest factor whose leakage was found to be at most a target.

    Parameters
    ----------
    leakage : callable
        The leakage of budgets (T,) in nats, which grows with the factor.
    budgets : array (T,)
        Nats.
    alpha : float
        No budget may exceed it, nats.
    target : float
        alpha less a margin for rounding, nats.
    tolerance : float
        The relative tolerance of the factor.

    Returns
    -------
    array (T,)
    """
    # It needs far fewer leakages than bisection, but may end above the target.
    from scipy.optimize import brentq

    from tplrepro.progress import Bar

    bar = Bar(None, "fitting budgets", "leakage")

    @cache
    def excess(factor: float) -> float:
        bar.update()
        return min(leakage(factor * budgets) / target, 2.0) - 1.0  # brentq needs finite numbers

    high = alpha / budgets.max()
    low = min(1.0, high)
    with bar:
        while excess(low) > 0.0:
            high = low
            low = 0.5 * low
        factor = high
        if excess(high) > 0.0:
            factor = brentq(excess, low, high, xtol=tolerance * low, rtol=tolerance)
        while excess(factor) > 0.0:
            factor = max(factor * (1.0 - tolerance), low)
            tolerance *= 2.0
    return factor * budgets
