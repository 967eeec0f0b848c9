"""Uncertainty of an estimated chain: posterior and bootstrap draws of the matrix, and intervals of its leakage.

A row of counts with a Dirichlet prior of pseudo-count s for each state has the posterior Dirichlet(count + s); its mean
is the estimate with Laplacian smoothing s. The bootstrap instead draws the sequences (or the users) again, with
replacement, and estimates anew with the same smoothing.

Leakage is a maximum over pairs of states and sets of columns, so that noise in the matrix raises it: draws lie above
the leakage of the estimate more often than below, and an interval need not contain it. With a small s and rows of few
counts a posterior draw is much more peaked than its mean; the distance between the two is a finding, not an error.

References
----------
B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentile intervals).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.transition import SPARSE_FROM, TransitionMatrix
from tplrepro.validation import check_horizon

__all__ = ["LeakageInterval", "bootstrap_draws", "leakage_interval", "posterior_draws"]

#: From this many states on, exact posterior draws (one number for each pair of states) are refused: 3.2 GB.
LARGEST_DENSE = 20_000
DIRECTIONS = ("forward", "backward", "both")


def posterior_draws(
    counts,
    smoothing: float = 1.0,
    draws: int = 100,
    rng=None,
    states=None,
    direction: str = "forward",
    sparse: bool | None = None,
) -> Iterator:
    """Matrices from the posterior of independent Dirichlet rows.

    Parameters
    ----------
    counts : array-like or scipy.sparse matrix (n, n), counts of steps from row to column, as `count_transitions` gives
    smoothing : float >= 0
        The prior pseudo-count of each state, the s of Laplacian smoothing (1: uniform prior, 0.5: Jeffreys'). 0 is the
        improper prior under which steps never seen stay impossible.
    draws : int >= 1
    rng : numpy.random.Generator, optional
    states : sequence of n labels, optional
    direction : "forward", "backward" (rows are then the columns of `counts`), or "both"
    sparse : bool, optional; default sparse from 4,096 states on

    Yields
    ------
    TransitionMatrix, or for "both" a pair (backward, forward)
        The two of a pair come from one table of Gamma(count + s) variables, divided by its sums of columns and of rows:
        each has its own posterior, and both describe the same chain.

    Raises
    ------
    ValueError
        For counts that are negative or not square, a negative s, a row without counts under s = 0, an unknown
        direction, draws < 1, or a dense draw of more than 20,000 states.

    Notes
    -----
    Sparse, the columns that a row has no counts for share one Gamma((n - k) s) variable evenly: their total has its
    exact posterior, the differences between them are left out. Where these matter, pass sparse=False.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = posterior_draws([[8, 2], [1, 9]], smoothing=1.0, draws=1000, rng=rng)
    >>> stays = np.mean([P.probabilities[0, 0] for P in draws])
    >>> bool(abs(stays - (8 + 1) / (10 + 2)) < 0.02)
    True
    """
    import scipy.sparse

    draws = check_horizon(draws, "draws")
    _check_options(smoothing, direction)
    table = scipy.sparse.csr_array(counts, dtype=float, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    n = table.shape[0]
    if table.shape != (n, n) or n == 0:
        raise ValueError(f"counts must be square and not empty, found shape {table.shape}; count steps between states")
    bad = ~np.isfinite(table.data) | (table.data < 0)
    if bad.any():
        raise ValueError(f"counts must be finite and not negative, found {table.data[bad][0]:g}; correct the counts")
    if smoothing == 0.0:
        for axis, name in ((1, "forward"), (0, "backward")):
            empty = np.asarray(table.sum(axis=axis)).ravel() == 0
            if direction in (name, "both") and empty.any():
                raise ValueError(
                    f"with smoothing 0 every state must have a step, found none {'from' if axis else 'to'} state "
                    f"{int(np.argmax(empty)) if states is None else states[int(np.argmax(empty))]!r} "
                    f"({int(empty.sum())} such states); give smoothing > 0, or drop those states"
                )
    if sparse is None:
        sparse = n >= SPARSE_FROM
    if not sparse and n > LARGEST_DENSE:
        raise ValueError(
            f"a dense draw has one number for each pair of states, at most {LARGEST_DENSE} states, found {n}; "
            "pass sparse=True, or use bootstrap_draws"
        )
    rng = np.random.default_rng() if rng is None else rng
    draw = _draw_sparse if sparse else _draw_dense
    return (draw(table, smoothing, rng, states, direction) for _ in range(draws))


def bootstrap_draws(
    sequences,
    draws: int = 100,
    rng=None,
    smoothing: float = 0.0,
    n_states: int | None = None,
    states=None,
    direction: str = "forward",
    groups=None,
    sparse: bool | None = None,
    estimate: Callable | None = None,
) -> Iterator:
    """Matrices estimated from sequences that are drawn again with replacement.

    Parameters
    ----------
    sequences : iterable of 1-D sequences of states, such as a `tplrepro.datasets.Sequences`
    draws : int >= 1
    rng : numpy.random.Generator, optional
    smoothing, n_states, states, sparse : see `estimate_transitions`
        The states are those of the whole sample in every draw.
    direction : "forward", "backward", or "both" for pairs (backward, forward) from the same sequences
    groups : sequence, one hashable a sequence, optional
        Draw groups of sequences together: their users, if the sequences of one user are not independent.
    estimate : callable, optional
        Makes a draw of the list of sequences drawn, in place of the estimate above: of order k, or hidden, say.

    Yields
    ------
    TransitionMatrix, or for "both" a pair (backward, forward), or what `estimate` returns

    Raises
    ------
    ValueError
        As `estimate_transitions`, when a draw without smoothing misses a state; also for draws < 1, an unknown
        direction, or groups of another length.

    Examples
    --------
    >>> draws = bootstrap_draws([[0, 1, 1], [1, 0, 1]], draws=3, rng=np.random.default_rng(1), smoothing=0.5)
    >>> [P.probabilities[1].round(3).tolist() for P in draws]
    [[0.5, 0.5], [0.833, 0.167], [0.167, 0.833]]
    """
    import scipy.sparse

    draws = check_horizon(draws, "draws")
    _check_options(smoothing, direction)
    if estimate is not None or not isinstance(sequences, Sequences):
        sequences = list(sequences)
    group, n_groups = _numbered(groups, len(sequences))
    rng = np.random.default_rng() if rng is None else rng
    if estimate is not None:
        members = [np.flatnonzero(group == g) for g in range(n_groups)] if groups is not None else group[:, None]

        def sample():
            chosen = np.concatenate([members[g] for g in rng.integers(n_groups, size=n_groups)])
            return [sequences[k] for k in chosen]

        return (estimate(sample()) for _ in range(draws))
    # One count for each pair (group, step): the counts of a draw are a product with the weights of the groups.
    coded = as_sequences(sequences, n_states, states)
    whole, states = count_transitions(coded)
    n = whole.shape[0]
    steps = whole.tocoo()
    order = np.lexsort((steps.coords[1], steps.coords[0]))
    origin, target = (coordinate[order].astype(np.int64) for coordinate in steps.coords)
    before, after = (codes.astype(np.int64) for codes in coded.transitions())
    flat, inside = before * n + after, np.maximum(coded.lengths - 1, 0)
    column = np.searchsorted(origin * n + target, flat)
    members = np.repeat(group, inside)
    shares = scipy.sparse.coo_array((np.ones(flat.size), (column, members)), shape=(origin.size, n_groups)).tocsr()

    def draw():
        weights = np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups)
        counts = scipy.sparse.coo_array((shares @ weights, (origin, target)), shape=(n, n)).tocsr()
        counts.eliminate_zeros()
        made = {}
        for name in ("backward", "forward") if direction == "both" else (direction,):
            table = counts if name == "forward" else counts.T.tocsr()
            made[name] = TransitionMatrix.from_counts(table, smoothing, states, sparse)
        return tuple(made.values()) if direction == "both" else made[direction]

    return (draw() for _ in range(draws))


@dataclass(frozen=True)
class LeakageInterval:
    """An equal-tailed percentile interval of a leakage; nats, unless the function returns something else.

    Attributes
    ----------
    lower, median, upper : float or ndarray (...), of the shape that the function returns
    level : float, the probability between the ends
    values : ndarray (draws, ...), the function of each draw
    """

    lower: float | np.ndarray
    median: float | np.ndarray
    upper: float | np.ndarray
    level: float
    values: np.ndarray


def leakage_interval(draws: Iterable, function: Callable, level: float = 0.9) -> LeakageInterval:
    """The interval of any function of the matrix over draws of it.

    Parameters
    ----------
    draws : iterable of what `posterior_draws` or `bootstrap_draws` yields
    function : callable; takes a draw, returns a number or an array of fixed shape; infinity is allowed
    level : float in (0, 1)

    Returns
    -------
    LeakageInterval
        The ends are values of draws (no interpolation, so that infinities stay meaningful), rounded outwards.

    Raises
    ------
    ValueError
        If level is not in (0, 1), there are fewer than 2 / (1 - level) draws, or a value is not a number.

    Examples
    --------
    >>> from tplrepro import PrivacyLossFunction
    >>> draws = posterior_draws([[80, 20], [10, 90]], draws=200, rng=np.random.default_rng(3))
    >>> interval = leakage_interval(draws, lambda P: PrivacyLossFunction(P).supremum(0.1))
    >>> round(float(interval.lower), 2), round(float(interval.upper), 2)  # 0.34 for the estimate
    (0.25, 0.43)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be a probability in (0, 1), found {level}; give such as 0.9")
    values = np.array([function(draw) for draw in draws], dtype=float)
    needed = int(np.ceil(2.0 / (1.0 - level) * (1.0 - 1e-12)))
    if len(values) < needed:
        raise ValueError(
            f"an interval of level {level:g} needs at least {needed} draws, found {len(values)}; draw more or lower it"
        )
    if np.isnan(values).any():
        raise ValueError(
            f"the function must return numbers, found NaN in draw {np.argwhere(np.isnan(values))[0, 0]}; correct it"
        )
    tail = 0.5 * (1.0 - level)
    lower = np.quantile(values, tail, axis=0, method="lower")
    median = np.quantile(values, 0.5, axis=0, method="inverted_cdf")
    upper = np.quantile(values, 1.0 - tail, axis=0, method="higher")
    return LeakageInterval(lower, median, upper, level, values)


def _check_options(smoothing: float, direction: str) -> None:
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be finite and at least 0, found {smoothing}; give the prior pseudo-count s")
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {DIRECTIONS}, found {direction!r}; choose one of them")


def _log_gamma_variates(shape: np.ndarray, rng) -> np.ndarray:
    """Logarithms of Gamma(shape, 1) variates: for small shapes the variates themselves underflow."""
    boosted = np.log(rng.standard_gamma(shape + 1.0))
    return boosted + np.log1p(-rng.random(shape.shape)) / shape


def _draw_dense(table, smoothing, rng, states, direction):
    shape = table.toarray() + smoothing
    log = np.full(shape.shape, -np.inf)
    positive = shape > 0
    log[positive] = _log_gamma_variates(shape[positive], rng)

    def rows(values):
        rows = np.exp(values - values.max(axis=1, keepdims=True))
        return TransitionMatrix(rows, states=states, normalize=True)

    return _directed(direction, lambda: rows(log.T), lambda: rows(log))


def _draw_sparse(table, smoothing, rng, states, direction):
    n = table.shape[0]
    log = _log_gamma_variates(table.data + smoothing, rng)

    def rows(matrix):
        stored = np.diff(matrix.indptr)
        unseen = (n - stored) * smoothing
        rest = np.full(n, -np.inf)
        drawn = unseen > 0
        rest[drawn] = _log_gamma_variates(unseen[drawn], rng) - np.log((n - stored)[drawn])
        top = rest.copy()
        np.maximum.at(top, np.repeat(np.arange(n), stored), matrix.data)
        matrix.data = np.exp(matrix.data - np.repeat(top, stored))
        return TransitionMatrix(matrix, states=states, background=np.exp(rest - top), normalize=True)

    def with_logs():
        matrix = table.copy()
        matrix.data = log
        return matrix

    # A transpose of logs must keep those that are exactly 0: tocsr() does.
    return _directed(direction, lambda: rows(with_logs().T.tocsr()), lambda: rows(with_logs().copy()))


def _directed(direction, backward, forward):
    if direction == "both":
        return backward(), forward()
    return backward() if direction == "backward" else forward()


def _numbered(groups, n_sequences: int):
    """The group of each sequence, 0..g-1, and g."""
    if groups is None:
        return np.arange(n_sequences), n_sequences
    groups = list(groups)
    if len(groups) != n_sequences:
        raise ValueError(
            f"groups must name one group a sequence, {n_sequences}, found {len(groups)}; give the user of each sequence"
        )
    number: dict = {}
    return np.array([number.setdefault(group, len(number)) for group in groups]), len(number)
