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

from tplfrontier.budgets.linear_gaussian import allocate_linear_noise
from tplfrontier.budgets.linear_mechanisms import gaussian_budgets_of_columns
from tplfrontier.profiles.gaussian import gaussian_mu
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.search import fit_to_level, largest_within


@dataclass(frozen=True)
class Strategy:
    """One mechanism for T counts, whose strategy matrix A has no negative entries.

    `variances` (T,) is the variance of each answer for noise of variance 1. Of each column of A,
    `sums` (T,) is the sum, `squares` (T,) the sum of squares, and `products` (T,) the sum of its
    products with all columns.
    """

    name: str
    variances: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    products: np.ndarray


def strategies(horizon: int, window: int | None = None) -> list[Strategy]:
    """The mechanisms for running totals, or for sums over the last `window` counts."""
    widths = np.minimum(np.arange(1, horizon + 1), window or horizon)
    found = [each_count(widths), each_answer(widths, window or horizon), binary_tree(widths)]
    if window is None:
        found.append(square_root(horizon))
    return found


def each_count(widths: np.ndarray) -> Strategy:
    """Publish each count; an answer adds as many as its width (T,)."""
    ones = np.ones(widths.size)
    return Strategy("each count", widths.astype(float), ones, ones, ones)


def each_answer(widths: np.ndarray, window: int) -> Strategy:
    """Publish each answer; a count enters up to `window` of them."""
    horizon = widths.size
    time = np.arange(1, horizon + 1)
    last_answer = np.minimum(time + window - 1, horizon)
    width_up_to = np.concatenate(([0.0], np.cumsum(widths)))
    products = width_up_to[last_answer] - width_up_to[time - 1]
    answers = (last_answer - time + 1).astype(float)
    return Strategy("each answer", np.ones(horizon), answers, answers, products)


def binary_tree(widths: np.ndarray) -> Strategy:
    """Publish the nodes of a binary tree; an answer adds those that make up its counts."""
    nodes = [
        nodes_between(stop - width, stop) for stop, width in enumerate(widths.tolist(), start=1)
    ]
    matrix = tree_matrix(widths.size)
    nodes_of_count = matrix.sum(axis=0)
    products = matrix.T @ matrix.sum(axis=1)
    return Strategy(
        "binary tree", np.array(nodes, dtype=float), nodes_of_count, nodes_of_count, products
    )


def square_root(horizon: int) -> Strategy:
    """Publish the counts after a square root A of the matrix of running totals, which is A @ A.

    A is lower triangular; the entry k below its diagonal is binomial(2k, k) / 4^k, the coefficient
    of x^k in 1 / sqrt(1 - x). A column holds the first of these entries, and so does, from right to
    left, a row.
    """
    k = np.arange(1, horizon)
    ratios = (2.0 * k - 1.0) / (2.0 * k)  # of an entry to the one before
    entries = np.cumprod(np.concatenate(([1.0], ratios)))
    row_sums = np.cumsum(entries)
    row_squares = np.cumsum(entries**2)
    # A.T @ A @ 1: the sum over t >= j of row_sums[t] * entries[t - j], a correlation
    products = fftconvolve(row_sums, entries[::-1])[horizon - 1 :]
    return Strategy(
        "square root",
        variances=row_squares,  # an answer adds the published values by a row of A
        sums=row_sums[::-1],
        squares=row_squares[::-1],
        products=products,
    )


def nodes_between(start: int, stop: int) -> int:
    """The number of nodes of a binary tree that make up start..stop-1."""
    count = 0
    while start < stop:
        size = start & -start  # the largest power of 2 that divides it
        if start == 0:
            size = 1 << (stop - 1).bit_length()
        while start + size > stop:
            size //= 2
        start += size
        count += 1
    return count


def tree_matrix(horizon: int) -> csr_array:
    """The strategy matrix of the binary tree, a row for each complete node: (nodes, T)."""
    blocks = []
    for k in range(horizon.bit_length()):
        nodes = horizon >> k
        columns = np.arange(nodes << k)
        places = (columns >> k, columns)
        blocks.append(csr_array((np.ones(columns.size), places), shape=(nodes, horizon)))
    return vstack(blocks, format="csr")


def matrix_of(name: str, horizon: int, window: int | None = None) -> np.ndarray | csr_array:
    """The strategy matrix (R, T) of a mechanism for running totals, or for sums over the last
    `window` counts."""
    if name == "each count":
        return np.eye(horizon)
    if name == "binary tree":
        return tree_matrix(horizon)
    age = np.subtract.outer(np.arange(horizon), np.arange(horizon))
    if name == "each answer":
        return ((age >= 0) & (age < (window or horizon))).astype(float)
    widths_squared = square_root(horizon).variances
    entries = np.sqrt(np.diff(widths_squared, prepend=0.0))
    return np.where(age >= 0, entries[np.maximum(age, 0)], 0.0)


def budgets_at(level: float, strategy: Strategy, leakage) -> np.ndarray:
    """The budgets (T,), proportional to the strategy's `sums`, whose largest TPL is `level` (nats);
    `leakage(budgets).tpl` is their TPL."""
    start = level * strategy.sums / strategy.sums.max()
    return fit_to_level(lambda budgets: leakage(budgets).tpl.max(), start, level, level)


def gaussian_noise_at(
    level: float, delta: float, strategy: Strategy, chain: list, n_states: int, sensitivity: float
) -> float:
    """The least standard deviation of the strategy's noise that keeps (level, delta) at every time,
    by bounds that take no more time for long series; `interval_noise_at` is closer.

    It is the better of two bounds: the TPL of the event-level budgets by `chain`, the backward and
    the forward loss function, must be at most `level` (nats), or the whole series together keeps
    it, for any correlation. The data of one person have `n_states` values at each time, and change
    a count by at most `sensitivity`.
    """
    mu = gaussian_mu(level, delta)

    def keeps(precision: float) -> bool:
        """Whether the event-level budgets keep the level if the standard deviation is 1 /
        precision."""
        squares = strategy.squares * precision**2
        products = strategy.products * precision**2
        budgets = gaussian_budgets_of_columns(squares, products, delta, n_states, sensitivity)
        if budgets.max() > level:
            return False
        return temporal_privacy_leakage(budgets, *chain).tpl.max() <= level

    whole = mu / (sensitivity * np.sqrt(strategy.products.sum()))
    uncorrelated = mu / (sensitivity * np.sqrt(strategy.squares.max()))
    return 1.0 / largest_within(keeps, whole, uncorrelated, tolerance=1e-7, logarithmic=True)


def interval_noise_at(
    level: float, delta: float, matrix: np.ndarray | csr_array, chain: list, *, sensitivity: float
) -> float:
    """The least standard deviation of the noise of a strategy matrix (R, T) that keeps (level,
    delta) at every time, by theorem C of docs/theory/intervals.md.

    `chain` has the backward and the forward loss function, `sensitivity` is by how much the data of
    one person change the counts of a time in the L2 norm. For hundreds of counts it takes minutes.
    """
    return allocate_linear_noise(level, delta, matrix, *chain, sensitivity=sensitivity)
