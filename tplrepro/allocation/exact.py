"""Budgets for a level of exact leakage: larger than those for the upper bound of [1] where that is not attained.

The exact leakage (`tplrepro.leakage.exact`) grows with every budget, since larger budgets have larger boxes of
likelihoods. Budgets in given proportions therefore have one largest multiple whose leakage stays within alpha.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.allocation.calibration import fit_to_level
from tplrepro.leakage.exact import exact_leakage
from tplrepro.leakage.temporal import Correlation, steps_of_both_sides
from tplrepro.validation import check_budgets, check_horizon, check_level

__all__ = ["allocate_by_exact_leakage"]


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
    if proportions is not None:
        shape = check_budgets(proportions, "proportions")
    elif horizon is not None:
        shape = np.ones(check_horizon(horizon))
    else:
        raise ValueError("an allocation needs a horizon or proportions, found neither; give the number of releases")
    T = shape.size
    if horizon is not None and check_horizon(horizon) != T:
        raise ValueError(f"proportions must be one a release, found {T} for a horizon of {horizon}; leave one out")
    _, _, n = steps_of_both_sides(backward, forward, T)
    # more than the rounding errors of the exact leakage: T products of n terms on each side
    margin = 16.0 * T * (n + 3) * 2.0**-52 * min(1.0 / alpha, T)

    def leakage(budgets: np.ndarray) -> float:
        return float(exact_leakage(budgets, backward, forward).tpl.max())

    shape = shape / shape.max()
    # Together the releases may always spend alpha.
    return fit_to_level(leakage, alpha / shape.sum() * shape, alpha, tolerance=1e-13, margin=margin)
