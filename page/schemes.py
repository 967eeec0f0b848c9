"""The allocation schemes side by side: budgets for alpha-DP_T, the leakage they give and the error they imply.

The error of a release is the mean absolute value of its Laplace noise, sensitivity / epsilon_t (Theorem 1 of [1]); that
of a series is the mean over its releases.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.allocation import allocate_by_quantification, allocate_by_upper_bound, allocate_optimally
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.validation import FrozenArrays

__all__ = ["PENDING", "SCHEMES", "SLOW", "Scheme", "allocate", "mean_error"]

#: Name -> function of (alpha, backward, forward, horizon).
SCHEMES = {
    "α/T at each release": lambda alpha, backward, forward, horizon: np.full(horizon, alpha / horizon),
    "Algorithm 7 (any T)": lambda *known, horizon: np.full(horizon, allocate_by_upper_bound(*known)),
    "Algorithm 8 (T known)": allocate_by_quantification,
    "smallest error (T known)": allocate_optimally,
}
#: Schemes that a page computes only when the sliders rest: a tenth of a second for T = 100, a second for T = 1,000.
SLOW = ("smallest error (T known)",)
PENDING = "being computed"


@dataclass(frozen=True, eq=False)
class Scheme(FrozenArrays):
    """What one scheme does with a level alpha over T releases."""

    name: str
    budgets: np.ndarray | None  # (T,), nats; None where the scheme has none
    largest_tpl: float = np.nan  # of the budgets, nats
    message: str = ""  # why there are no budgets


def allocate(
    name: str, alpha: float, backward: PrivacyLossFunction | None, forward: PrivacyLossFunction | None, horizon: int
) -> Scheme:
    """Budgets of one of `SCHEMES` over T = `horizon` releases, and the leakage that they give, or why it has none.

    >>> P = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
    >>> allocate("Algorithm 7 (any T)", 1.0, P, P, 5).budgets.round(4).tolist()
    [0.1691, 0.1691, 0.1691, 0.1691, 0.1691]
    >>> print(allocate("Algorithm 7 (any T)", 1.0, PrivacyLossFunction([[1, 0], [0, 1]]), None, 5).message)
    the backward leakage has no finite supremum for any budget: ...
    """
    try:
        budgets = SCHEMES[name](alpha, backward, forward, horizon=horizon)
    except ValueError as error:
        return Scheme(name, None, message=str(error))
    return Scheme(name, budgets, float(temporal_privacy_leakage(budgets, backward, forward).tpl.max()))


def mean_error(budgets: ArrayLike, sensitivity: float) -> float:
    """Mean over the releases of the expected absolute Laplace noise.

    >>> mean_error([0.5, 1.0], sensitivity=2.0)
    3.0
    """
    return float(np.mean(sensitivity / np.asarray(budgets, dtype=float)))
