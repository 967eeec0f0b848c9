"""The largest budgets in given proportions that keep the leakage within a level, rounding errors included.

Exact leakage (`tplrepro.leakage.exact`) allows larger budgets than the upper bound of [1] where that is not attained.
It grows with every budget, since larger budgets have larger boxes of likelihoods.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.exact import exact_leakage
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import Correlation, arrays_of_both_sides, safely_below, temporal_privacy_leakage
from tplrepro.validation import check_budgets, check_horizon, check_level

__all__ = ["NoFiniteSupremumError", "allocate_by_exact_leakage", "fit_to_level", "largest_equal_budgets"]


class NoFiniteSupremumError(ValueError):
    """No positive budget keeps the leakage bounded for ever: L(alpha) = alpha on one side, or as good as that."""


def fit_to_level(
    leakage: Callable[[np.ndarray], float],
    budgets: np.ndarray,
    alpha: float,
    tolerance: float = 4.0 * 2.0**-52,
    margin: float = 0.0,
) -> np.ndarray:
    """The budgets times the largest factor, to `tolerance`, whose largest leakage stays a rounding margin below alpha.

    The margin is a share of alpha: what a recursion needs, which grows with the number of budgets, or `margin` if that
    is more.
    """
    from scipy.optimize import brentq  # far fewer leakages than a search by halves, but not on the safe side

    target = min(safely_below(alpha, budgets.size), alpha * (1.0 - margin))

    @cache
    def surplus(factor: float) -> float:
        return min(leakage(factor * budgets) / target, 2.0) - 1.0  # a root is not looked for from infinity

    largest = alpha / budgets.max()  # no budget exceeds the leakage
    low, high = min(1.0, largest), largest
    while surplus(low) > 0.0:
        low, high = 0.5 * low, low
    factor = brentq(surplus, low, high, xtol=tolerance * low, rtol=tolerance) if surplus(high) > 0.0 else high
    while surplus(factor) > 0.0:
        factor = max(factor * (1.0 - tolerance), low)
        tolerance *= 2.0
    return factor * budgets


def largest_equal_budgets(
    alpha: float, backward: PrivacyLossFunction | None, forward: PrivacyLossFunction | None, horizon: int
) -> np.ndarray:
    """The largest budget that, spent at each of `horizon` time points, keeps the TPL within alpha; (horizon,)."""
    return fit_to_level(
        lambda budgets: temporal_privacy_leakage(budgets, backward, forward).tpl.max(), np.full(horizon, alpha), alpha
    )


def allocate_by_exact_leakage(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int | None = None,
    *,
    proportions: ArrayLike | None = None,
) -> np.ndarray:
    """The largest budgets in given proportions whose exact TPL is within alpha at every time.

    Arguments as in `allocate_by_quantification`, also a list of a matrix for each step. The two sides should belong to
    one chain (`TransitionMatrix.reverse`); the guarantee is against an adversary who knows exactly these. Instead of a
    horizon there may be `proportions` (T,), finite and > 0, such as the budgets of another allocation.

    Budgets (T,) in nats, with rounding errors on the safe side. ValueError for neither a horizon nor proportions or
    both that disagree, if T alpha > 700, and as `exact_leakage`.

    Examples
    --------
    >>> from tplrepro import allocate_by_quantification
    >>> P = [[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]]
    >>> published = allocate_by_quantification(1.0, P, P, horizon=4)
    >>> published.round(4).tolist()
    [0.5846, 0.1691, 0.1691, 0.5846]
    >>> allocate_by_exact_leakage(1.0, P, P, proportions=published).round(4).tolist()
    [0.6116, 0.1769, 0.1769, 0.6116]
    """
    alpha = check_level(alpha)
    if horizon is None and proportions is None:
        raise ValueError("an allocation needs a horizon or proportions, found neither; give the number of releases")
    shape = check_budgets(
        1.0 if proportions is None else proportions,
        "proportions",
        horizon if horizon is None else check_horizon(horizon),
    )
    T = shape.size
    _, _, n = arrays_of_both_sides(backward, forward, T, default=2)
    # more than the rounding errors of the exact leakage: T products of n terms on each side
    margin = 16.0 * T * (n + 3) * 2.0**-52 * min(1.0 / alpha, T)
    shape = shape / shape.max()
    return fit_to_level(
        lambda budgets: exact_leakage(budgets, backward, forward).tpl.max(),
        alpha / shape.sum() * shape,  # together the releases may always spend alpha
        alpha,
        tolerance=1e-13,
        margin=margin,
    )
