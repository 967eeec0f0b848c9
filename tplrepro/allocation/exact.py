"""Budgets in given proportions whose exact leakage (`tplrepro.leakage.exact`) is within alpha.

They are larger than budgets by the upper bound of [1] where no mechanism attains that bound. Exact
leakage grows with every budget, because larger budgets allow more likelihood vectors.
"""

from __future__ import annotations
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.exact import exact_leakage
from tplrepro.leakage.temporal import Correlation, safely_below
from tplrepro.search import fit_to_level
from tplrepro.validation import check_budgets, check_level, with_index

if TYPE_CHECKING:
    from pandas import Series

#: The factor is found to this share: more than 30 times the largest error of an exact leakage that
#: was seen.
TOLERANCE = 1e-13


@overload
def allocate_by_exact_leakage(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int | None = ...,
    *,
    proportions: ArrayLike | None = ...,
    index: None = ...,
) -> np.ndarray: ...
@overload
def allocate_by_exact_leakage(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int | None = ...,
    *,
    proportions: ArrayLike | None = ...,
    index: Any,
) -> Series: ...
def allocate_by_exact_leakage(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int | None = None,
    *,
    proportions: ArrayLike | None = None,
    index: Any = None,
) -> Any:
    """The largest budgets in given proportions whose exact TPL is within alpha at every time.

    The two sides should belong to one chain (`TransitionMatrix.reverse`); the guarantee is against
    an adversary who knows exactly these.

    Parameters
    ----------
    alpha : float
        The level in nats, > 0. Alpha times the sum of the proportions over the largest one, T alpha
        if they are equal, may be at most 700.
    backward : TransitionMatrix or array-like (n, n), None, a list of T - 1 of them, or Cycle
        Pr(l^{t-1} | l^t), which the adversary knows: one matrix for all steps, one for each step,
        or one for each phase; None if the adversary does not know that side. Of people who start in
        the habit it is `forward.reverse()`, seldom the forward matrix itself.
    forward : the same of Pr(l^t | l^{t-1})
    horizon : int, optional
        The number of releases T, unless there are proportions.
    proportions : array-like (T,), optional
        Positive numbers to which the budgets are proportional, by default equal.
    index : sequence of T labels, optional
        The labels of the time points, for a Series.

    Returns
    -------
    array (T,), or Series with `index`
        The budget of each release in nats, rounded down.

    Raises
    ------
    ValueError
        If there is neither a horizon nor proportions, or both disagree; if alpha is too large, or
        the matrices are too large or not row-stochastic.

    Examples
    --------
    >>> P = [[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]]
    >>> shape = [0.5846, 0.1691, 0.1691, 0.5846]
    >>> allocate_by_exact_leakage(1.0, P, P, proportions=shape).round(4).tolist()
    [0.6116, 0.1769, 0.1769, 0.6116]
    """
    alpha = check_level(alpha)
    if horizon is None and proportions is None:
        raise ValueError(
            "an allocation needs a horizon or proportions, found neither; "
            "give the number of releases"
        )
    if proportions is None:
        proportions = 1.0
    shape = check_budgets(proportions, "proportions", horizon)
    T = shape.size
    shape = shape / shape.max()
    start = alpha / shape.sum() * shape  # releases that spend alpha in total are within alpha

    def largest_tpl(budgets: np.ndarray) -> float:
        return exact_leakage(budgets, backward, forward).tpl.max()

    budgets = fit_to_level(largest_tpl, start, alpha, safely_below(alpha, T), tolerance=TOLERANCE)
    return with_index(budgets, index)
