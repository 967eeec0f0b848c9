"""Composition: from the leakage of single releases to that of the sequence (Theorems 1 and 2 of [3]).

Theorem 1 adds up. Theorem 2 gives, for T releases of leakage at most eps, (T eps (e^eps - 1) + sqrt(T) eps
sqrt(2 ln 1/delta), delta); its batched half prints tau where the proof gives sqrt(tau): both halves are one
function here. For unequal leakages the same Azuma-Hoeffding argument gives sum eps_k (e^eps_k - 1) + sqrt(2
ln(1/delta) sum eps_k^2). It bounds each side of the two-sided leakage at delta.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.validation import check_budgets, check_horizon, check_level

__all__ = ["advanced_composition", "compose", "split_budget"]


def compose(leakages, delta: float = 0.0) -> float:
    """Sequence information leakage, nats: the sum, or with delta > 0 the smaller of Theorems 1 and 2 of [3].

    Parameters
    ----------
    leakages : array-like (T,), bounds of the IIL (or BIL) of each release, nats
    delta : float in [0, 1), probability with which the bound may fail

    Raises
    ------
    ValueError
        For no releases, leakages that are not positive and finite, or delta outside [0, 1).

    Examples
    --------
    >>> round(compose([0.1] * 100), 4), round(compose([0.1] * 100, delta=1e-5), 4)
    (10.0, 5.8502)
    """
    values = check_budgets(leakages, "leakages")
    linear = float(values.sum())
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a probability from 0 to below 1, found {delta}; give such as 1e-5")
    return linear if delta == 0 else min(linear, advanced_composition(values, delta))


def advanced_composition(leakages, delta: float) -> float:
    """Theorem 2 of [3] with the square root of the number of releases in both halves; nats.

    >>> round(advanced_composition([1.0, 1.0], 0.01), 4)  # worse than the sum, 2, for so few releases
    7.7285
    """
    values = check_budgets(leakages, "leakages")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be a probability strictly between 0 and 1, found {delta}; give such as 1e-5")
    return float(values @ np.expm1(values) + np.sqrt(2 * np.log(1 / delta) * (values @ values)))


def split_budget(total: float, horizon: int) -> np.ndarray:
    """Equal budgets (T,) whose sum does not exceed `total`.

    >>> split_budget(1.0, 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    budget, n = check_level(total, "total"), check_horizon(horizon)
    share = budget / n
    while np.full(n, share).sum() > budget:
        share = np.nextafter(share, 0)
    return np.full(n, share)
