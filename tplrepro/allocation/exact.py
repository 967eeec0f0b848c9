"""Budgets in given proportions whose exact leakage (`tplrepro.leakage.exact`) is within alpha.

They are larger than budgets by the upper bound of [1] where no mechanism attains that bound. Exact
leakage grows with every budget, because larger budgets allow more likelihood vectors.
"""

from __future__ import annotations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.exact import exact_leakage
from tplrepro.leakage.temporal import Correlation, safely_below
from tplrepro.search import fit_to_level
from tplrepro.validation import check_budgets, check_level, with_index


def allocate_by_exact_leakage(
    alpha: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int | None = None,
    *,
    proportions: ArrayLike | None = None,
    index: Any = None,
) -> np.ndarray:
    """The largest budgets (T,) in given proportions whose exact TPL is within alpha at every time.

    Arguments as in `allocate_by_quantification`, also a list of a matrix for each step; instead of
    a horizon there may be `proportions` (T,) > 0. The two sides should belong to one chain
    (`TransitionMatrix.reverse`); the guarantee is against an adversary who knows exactly these.
    Budgets are in nats, rounded down. ValueError for neither a horizon nor proportions or both that
    disagree, if T alpha > 700, and as `exact_leakage`.

    Examples
    --------
    >>> P = [[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]]
    >>> allocate_by_exact_leakage(1.0, P, P, proportions=[0.5846, 0.1691, 0.1691, 0.5846]).round(4).tolist()
    [0.6116, 0.1769, 0.1769, 0.6116]
    """
    alpha = check_level(alpha)
    if horizon is None and proportions is None:
        raise ValueError(
            "an allocation needs a horizon or proportions, found neither; give the number of releases"
        )
    shape = check_budgets(1.0 if proportions is None else proportions, "proportions", horizon)
    T = shape.size
    shape = shape / shape.max()
    budgets = fit_to_level(
        lambda budgets: exact_leakage(budgets, backward, forward).tpl.max(),
        alpha / shape.sum() * shape,  # releases that spend alpha in total are within alpha
        alpha,
        # more than 30 times the largest error of an exact leakage that was seen
        safely_below(alpha, T),
        tolerance=1e-13,
    )
    return with_index(budgets, index)
