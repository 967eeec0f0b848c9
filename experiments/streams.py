"""Linear mechanisms for running totals and sliding windows: how often each count enters, and the
noise of the answers.

A mechanism publishes each count by itself, each answer, the nodes of a binary tree (Dwork et al.
2010; Chan et al. 2011), or the counts after a square root of the summing matrix, all with Laplace
or Gaussian noise of one scale. No matrix is dense, so that series may be long.
"""

from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from scipy.sparse import csr_array, vstack

from tplfrontier.budgets.linear_mechanisms import gaussian_budgets_of_columns
from tplfrontier.profiles.gaussian import gaussian_mu
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.search import fit_to_level, largest_within


@dataclass(frozen=True)
class Strategy:
    """One mechanism for T counts, whose strategy matrix A has no negative entries.

    `variances` (T,) is the variance of each answer for noise of variance 1. Of each column of A,
    `sums` (T,) is the sum, `squares` (T,) the sum of squares, and `together` (T,) the sum of its
    products with all columns.
    """

    name: str
    variances: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    together: np.ndarray


def strategies(horizon: int, window: int | None = None) -> list[Strategy]:
    """The mechanisms for running totals, or for sums over the last `window` counts."""
    time = np.arange(1, horizon + 1)
    width = time if window is None else np.minimum(time, window)
    ones = np.ones(horizon)
    each = Strategy("each count", width.astype(float), ones, ones, ones)
    # the last answer with each count
    after = np.minimum(time + (horizon if window is None else window) - 1, horizon)
    below = np.concatenate(([0.0], np.cumsum(width)))
    often = (after - time + 1).astype(float)
    direct = Strategy("each answer", ones, often, often, below[after] - below[time - 1])
    nodes = [
        nodes_between(stop - size, stop)
        for stop, size in zip(time.tolist(), width.tolist(), strict=True)
    ]
    matrix = tree_matrix(horizon)
    number, together = matrix.sum(axis=0), matrix.T @ matrix.sum(axis=1)
    tree = Strategy("binary tree", np.array(nodes, dtype=float), number, number, together)
    if window is not None:
        return [each, direct, tree]
    root = np.cumprod(np.concatenate(([1.0], (2.0 * time[:-1] - 1.0) / (2.0 * time[:-1]))))
    sums, squares = np.cumsum(root), np.cumsum(root**2)
    together = fftconvolve(sums, root[::-1])[horizon - 1 :]
    return [
        each,
        direct,
        tree,
        Strategy("square root", squares, sums[::-1], squares[::-1], together),
    ]


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
        blocks.append(
            csr_array((np.ones(columns.size), (columns >> k, columns)), shape=(nodes, horizon))
        )
    return vstack(blocks, format="csr")


def budgets_at(level: float, strategy: Strategy, leakage) -> np.ndarray:
    """The budgets (T,), proportional to `sums`, whose largest TPL is `level`; `leakage` gives the
    TPL of budgets."""
    start = level * strategy.sums / strategy.sums.max()
    return fit_to_level(lambda budgets: leakage(budgets).tpl.max(), start, level, level)


def gaussian_noise_at(
    level: float, delta: float, strategy: Strategy, chain: list, n_states: int, sensitivity: float
) -> float:
    """The least standard deviation of the noise that keeps (level, delta) at every time, by the
    better of two bounds.

    These are the event-level budgets, whose TPL by the loss functions `chain` must be `level`, and,
    for any correlation, the whole series together.
    """
    mu = gaussian_mu(level, delta)

    def keeps(precision: float) -> bool:
        squares, together = strategy.squares * precision**2, strategy.together * precision**2
        budgets = gaussian_budgets_of_columns(squares, together, delta, n_states, sensitivity)
        return (
            budgets.max() <= level and temporal_privacy_leakage(budgets, *chain).tpl.max() <= level
        )

    whole = mu / (sensitivity * np.sqrt(strategy.together.sum()))
    uncorrelated = mu / (sensitivity * np.sqrt(strategy.squares.max()))
    return 1.0 / largest_within(keeps, whole, uncorrelated, tolerance=1e-7, logarithmic=True)
