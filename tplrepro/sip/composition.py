"""Composition: from the leakage of single releases to that of the sequence (Theorems 1 and 2 of [3]).

Theorem 1 adds up. Theorem 2 gives, for T releases of leakage at most eps, (T eps (e^eps - 1) + sqrt(T) eps
sqrt(2 ln 1/delta), delta); its batched half prints tau where the proof gives sqrt(tau): both halves are one function
here. For unequal leakages the same Azuma-Hoeffding argument gives sum eps_k (e^eps_k - 1) + sqrt(2 ln(1/delta) sum
eps_k^2). It bounds each side of the two-sided leakage at delta.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import check_budgets

__all__ = ["compose"]


def compose(leakages: ArrayLike, delta: float = 0.0) -> float:
    """Sequence information leakage, nats: the sum, or with delta > 0 the smaller of Theorems 1 and 2 of [3].

    `leakages` (T,) are positive bounds of the IIL (or BIL) of each release; delta in [0, 1) is the probability with
    which the result may fail. ValueError for anything else.

    >>> round(compose([0.1] * 100), 4), round(compose([0.1] * 100, delta=1e-5), 4)
    (10.0, 5.8502)
    """
    values = check_budgets(leakages, "leakages")
    linear = float(values.sum())
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a probability from 0 to below 1, found {delta}; give such as 1e-5")
    if delta == 0:
        return linear
    return min(linear, float(values @ np.expm1(values) + np.sqrt(2 * np.log(1 / delta) * (values @ values))))
