"""The allocation schemes side by side: budgets for alpha-DP_T, the leakage and the error that they cause."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.allocation.optimal import allocate_optimally
from tplrepro.allocation.published import allocate_by_quantification, allocate_by_upper_bound
from tplrepro.leakage.temporal import safely_below, temporal_privacy_leakage
from tplrepro.validation import FrozenArrays

COMPOSED = "α/T at each release"
OPTIMAL = "smallest error (T known)"


def equal_shares(alpha: float, horizon: int) -> np.ndarray:
    """alpha / T for each of T releases (T,), lower by what rounding adds to their sum, so that a filter accepts all.

    >>> 0.1 + 0.1 + 0.1 > 0.3, float(equal_shares(0.3, 3).sum()) <= 0.3
    (True, True)
    """
    return np.full(horizon, safely_below(alpha, 4 * horizon) / horizon)


#: Name -> function of (alpha, backward, forward, horizon).
SCHEMES: dict[str, Callable[..., np.ndarray]] = {
    COMPOSED: lambda alpha, backward, forward, horizon: equal_shares(alpha, horizon),
    "Algorithm 7 (any T)": lambda alpha, backward, forward, horizon: np.full(
        horizon, allocate_by_upper_bound(alpha, backward, forward)
    ),
    "Algorithm 8 (T known)": allocate_by_quantification,
    OPTIMAL: allocate_optimally,
}


@dataclass(frozen=True, eq=False)
class Scheme(FrozenArrays):
    """The budgets that one scheme allocates."""

    name: str
    budgets: np.ndarray | None  # (T,), nats; None if the scheme has none
    largest_tpl: float = np.nan  # of the budgets, nats
    message: str = ""  # why there are no budgets


def allocate(name: str, alpha: float, functions: tuple, horizon: int) -> Scheme:
    """The budgets of one of `SCHEMES` and their leakage, or why there are none."""
    try:
        budgets = SCHEMES[name](alpha, *functions, horizon=horizon)
    except ValueError as error:
        return Scheme(name, None, message=str(error))
    return Scheme(name, budgets, float(temporal_privacy_leakage(budgets, *functions).tpl.max()))


def mean_error(budgets: ArrayLike, sensitivity: float) -> float:
    """Mean of the expected absolute Laplace noise of releases, sensitivity / epsilon_t (Theorem 1 of [1])."""
    return float(np.mean(sensitivity / np.asarray(budgets, dtype=float)))
