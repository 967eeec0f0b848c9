"""Linear mechanisms for running totals and sliding windows: how often each count enters, and the noise of the answers.

A mechanism publishes each count by itself, each answer, the nodes of a binary tree (Dwork et al. 2010; Chan
et
al. 2011), or the counts after a square root of the summing matrix, all with Laplace noise of one scale.
Everything is in closed form, so that long series need no matrix.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, vstack

from tplrepro.search import fit_to_level


@dataclass(frozen=True)
class Strategy:
    """One mechanism for T counts; `sums` (T,) is the sum of the absolute entries of each count's column of the strategy
    matrix, and `variances` (T,) the variance of each answer for noise of variance 1."""

    name: str
    sums: np.ndarray
    variances: np.ndarray


def strategies(horizon: int, window: int | None = None) -> list[Strategy]:
    """The mechanisms for running totals, or for sums over the last `window` counts."""
    time = np.arange(1, horizon + 1)
    width = time if window is None else np.minimum(time, window)
    each = Strategy("each count", np.ones(horizon), width.astype(float))
    answers_after = np.minimum(horizon - time + 1, horizon if window is None else window)
    direct = Strategy("each answer", answers_after.astype(float), np.ones(horizon))
    nodes = [nodes_between(stop - size, stop) for stop, size in zip(time.tolist(), width.tolist(), strict=True)]
    tree = Strategy("binary tree", levels(horizon), np.array(nodes, dtype=float))
    if window is not None:
        return [each, direct, tree]
    root = np.cumprod(np.concatenate(([1.0], (2.0 * time[:-1] - 1.0) / (2.0 * time[:-1]))))
    return [each, direct, tree, Strategy("square root", np.cumsum(root)[::-1], np.cumsum(root**2))]


def levels(horizon: int) -> np.ndarray:
    """In how many complete nodes of a binary tree over 0..T-1 each time is, (T,)."""
    time = np.arange(horizon)
    return np.array([(time >> k) + 1 << k <= horizon for k in range(horizon.bit_length())]).sum(axis=0, dtype=float)


def nodes_between(start: int, stop: int) -> int:
    """The number of nodes of a binary tree that make up start..stop-1."""
    count = 0
    while start < stop:
        size = start & -start or 1 << (stop - 1).bit_length()
        while start + size > stop:
            size //= 2
        start, count = start + size, count + 1
    return count


def tree_matrix(horizon: int) -> csr_array:
    """The strategy matrix of the binary tree, a row for each complete node: (nodes, T)."""
    blocks = []
    for k in range(horizon.bit_length()):
        nodes, size = horizon >> k, 1 << k
        columns = np.arange(nodes * size)
        blocks.append(csr_array((np.ones(columns.size), (columns >> k, columns)), shape=(nodes, horizon)))
    return vstack(blocks, format="csr")


def budgets_at(level: float, strategy: Strategy, leakage) -> np.ndarray:
    """The budgets (T,), proportional to `sums`, whose largest TPL is `level`; `leakage` gives the TPL of budgets."""
    start = level * strategy.sums / strategy.sums.max()
    return fit_to_level(lambda budgets: leakage(budgets).tpl.max(), start, level, level)
