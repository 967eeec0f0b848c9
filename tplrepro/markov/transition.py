"""Transition matrices: the adversary's knowledge of temporal correlation (Definition 3 of [1]).

A forward matrix holds Pr(l^t | l^{t-1}) (row: where the user was; column: where she is now), a backward matrix
Pr(l^{t-1} | l^t). Bayes' rule turns one into the other, given the distribution at the earlier time.

A matrix over many states is kept sparse: row i is a few stored probabilities over a constant `background[i]`, which is
what Laplacian smoothing of sparse counts gives. It is never made dense.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from tplrepro.validation import (
    ROW_SUM_TOLERANCE,
    as_rows,
    as_transition_array,
    check_distribution,
    check_horizon,
    check_stochastic,
)

__all__ = ["TransitionMatrix", "as_transition_matrix"]


class TransitionMatrix:
    """A validated row-stochastic matrix with names for its states.

    Parameters
    ----------
    probabilities : array-like (n, n) or scipy.sparse matrix (n, n)
        Rows sum to 1 within 1e-9; no negative, missing or infinite entries.
    states : sequence of n distinct hashable labels, default 0..n-1
    normalize : bool, default False
        Divide each row by its sum first. Without it, rows that do not sum to 1 are an error.
    background : float or array-like (n,), only with a sparse matrix
        The probability of each column that row i does not store.

    Raises
    ------
    ValueError
        If a condition above fails; the message names the value and the remedy.

    Examples
    --------
    >>> P = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
    >>> P.stationary().round(6).tolist()
    [0.333333, 0.666667]
    >>> P.reverse([0.5, 0.5]).probabilities.round(6).tolist()
    [[0.888889, 0.111111], [0.181818, 0.818182]]
    """

    def __init__(self, probabilities, states: Iterable | None = None, normalize: bool = False, background=None):
        if hasattr(probabilities, "tocsr"):
            self.probabilities, self.background = _checked_sparse(probabilities, background, normalize)
        elif background is not None:
            raise ValueError(
                "background needs a scipy.sparse matrix, found a dense array; "
                "add the background to the rows yourself, or pass scipy.sparse.csr_array"
            )
        else:
            self.probabilities, self.background = _checked_dense(probabilities, normalize), None
        n = self.probabilities.shape[0]
        self.states: Sequence = range(n) if states is None else _checked_states(states, n)

    @classmethod
    def from_sequences(cls, sequences, n_states: int | None = None, smoothing: float = 0.0, **options):
        """Maximum-likelihood estimate with Laplacian smoothing: see `tplrepro.markov.estimation.estimate_transitions`.

        Examples
        --------
        >>> TransitionMatrix.from_sequences([[0, 1, 1, 0], [1, 0]], n_states=2).probabilities.round(6).tolist()
        [[0.0, 1.0], [0.666667, 0.333333]]
        """
        from tplrepro.markov.estimation import estimate_transitions

        return estimate_transitions(sequences, n_states=n_states, smoothing=smoothing, **options)

    @property
    def n_states(self) -> int:
        return self.probabilities.shape[0]

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.probabilities, np.ndarray)

    def __repr__(self) -> str:
        kind = f"sparse, {self.probabilities.nnz} stored" if self.is_sparse else "dense"
        return f"TransitionMatrix({self.n_states} states, {kind})"

    def __array__(self, dtype=None, copy=None):
        array = self.toarray()
        if dtype is not None:
            array = array.astype(dtype)
        return array.copy() if copy else array

    def validated_array(self) -> np.ndarray:
        """The dense rows, known to be valid; the same as `toarray`."""
        return self.toarray()

    def toarray(self) -> np.ndarray:
        """The dense rows, (n, n); a new array if the matrix is sparse."""
        if not self.is_sparse:
            return self.probabilities
        return np.vstack([self.row(i) for i in range(self.n_states)])

    def row(self, index: int) -> np.ndarray:
        """Row `index`, dense, (n,)."""
        if not self.is_sparse:
            return self.probabilities[index]
        matrix = self.probabilities
        dense = np.full(self.n_states, self.background[index])
        stored = slice(matrix.indptr[index], matrix.indptr[index + 1])
        dense[matrix.indices[stored]] = matrix.data[stored]
        return dense

    def column(self, index: int) -> np.ndarray:
        """Column `index`, dense, (n,)."""
        if not self.is_sparse:
            return self.probabilities[:, index]
        dense = self.background.copy()
        stored = np.flatnonzero(self.probabilities.indices == index)
        rows = np.searchsorted(self.probabilities.indptr, stored, side="right") - 1
        dense[rows] = self.probabilities.data[stored]
        return dense

    @cached_property
    def excess(self):
        """What is stored of a sparse matrix less the background of its row: csr_array (n, n)."""
        excess = self.probabilities.copy()
        excess.data = excess.data - np.repeat(self.background, np.diff(excess.indptr))
        return excess

    @cached_property
    def least_positive(self) -> float:
        """The smallest positive probability that is stored; 1 if there is none."""
        values = np.asarray(self.probabilities.data) if self.is_sparse else self.probabilities
        return float(values.min(where=values > 0, initial=1.0))

    def index(self, state) -> int:
        """The row of a state's label."""
        try:
            return self.states.index(state)
        except ValueError:
            raise ValueError(
                f"unknown state {state!r}; the matrix has {self.n_states} states, such as {self.states[0]!r}"
            ) from None

    def propagate(self, distribution) -> np.ndarray:
        """One step of the chain: the distribution p P after p, (n,)."""
        p = check_distribution(distribution, self.n_states)
        if not self.is_sparse:
            return p @ self.probabilities
        return p @ self.excess + p @ self.background

    def stationary(self) -> np.ndarray:
        """The stationary distribution, (n,).

        Raises
        ------
        ValueError
            If there is more than one (the chain has several closed classes).
        """
        from tplrepro.markov.stationary import stationary_distribution

        return stationary_distribution(self)

    def reverse(self, initial=None) -> TransitionMatrix:
        """Bayes' rule: from Pr(l^t | l^{t-1}) to Pr(l^{t-1} | l^t), or back.

        Parameters
        ----------
        initial : array-like (n,), the distribution of l^{t-1}; default the stationary one

        Returns
        -------
        TransitionMatrix with entry (j, i) = initial_i P_ij / sum_k initial_k P_kj

        Raises
        ------
        ValueError
            If a state is never reached, so that its row is undefined.
        """
        prior = self.stationary() if initial is None else check_distribution(initial, self.n_states, "initial")
        joint = prior[:, None] * self.toarray()
        reached = joint.sum(axis=0)
        if (reached <= 0).any():
            missing = self.states[int(np.argmax(reached <= 0))]
            raise ValueError(
                f"reversal needs every state to be reached, but state {missing!r} has probability 0 after one step; "
                "give an initial distribution that reaches it, or smooth the matrix"
            )
        return TransitionMatrix((joint / reached).T, states=self.states, normalize=True)

    def reverse_over_time(self, initial, horizon: int) -> list[TransitionMatrix]:
        """The backward matrices of steps 2..T of a chain that starts from `initial`: a list of T - 1 matrices."""
        horizon = check_horizon(horizon)
        distribution = check_distribution(initial, self.n_states, "initial")
        matrices = []
        for _ in range(horizon - 1):
            matrices.append(self.reverse(distribution))
            following = self.propagate(distribution)
            distribution = following / following.sum()
        return matrices


def as_transition_matrix(matrix) -> TransitionMatrix:
    """`matrix` itself if it is a TransitionMatrix, else one made of it (and thereby checked)."""
    return matrix if isinstance(matrix, TransitionMatrix) else TransitionMatrix(matrix)


def _checked_dense(probabilities, normalize: bool) -> np.ndarray:
    if normalize:
        rows = as_rows(probabilities)
        sums = rows.sum(axis=1, keepdims=True) if rows.ndim == 2 else np.ones(1)
        if rows.ndim == 2 and (not np.isfinite(sums).all() or (sums <= 0).any()):
            worst = int(np.argmax(~(sums[:, 0] > 0) | ~np.isfinite(sums[:, 0])))
            raise ValueError(
                f"a row must have a positive, finite sum to be normalized, found {sums[worst, 0]:g} in row {worst}; "
                "give that state at least one transition, or smooth the counts"
            )
        rows = np.ascontiguousarray(rows / sums)
        check_stochastic(rows)
    else:
        rows = as_transition_array(probabilities).copy()
    rows.setflags(write=False)
    return rows


def _checked_sparse(probabilities, background, normalize: bool):
    import scipy.sparse

    matrix = scipy.sparse.csr_array(probabilities, dtype=float, copy=True)
    matrix.sum_duplicates()
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(
            f"a transition matrix must be square and not empty, found shape {matrix.shape}; "
            "give one row and one column for each state"
        )
    n = matrix.shape[0]
    rest = np.broadcast_to(np.asarray(0.0 if background is None else background, dtype=float), (n,)).copy()
    for name, values in (("probabilities", matrix.data), ("background probabilities", rest)):
        bad = ~np.isfinite(values) | (values < 0)
        if bad.any():
            raise ValueError(
                f"{name} must be finite and not negative, found {values[bad][0]:g}; "
                "remove missing values before building the matrix"
            )
    sums = np.asarray(matrix.sum(axis=1)).ravel() + rest * (n - np.diff(matrix.indptr))
    if normalize:
        if (sums <= 0).any():
            raise ValueError(
                f"a row must have a positive sum to be normalized, found 0 in row {int(np.argmax(sums <= 0))}; "
                "give that state at least one transition, or smooth the counts"
            )
        matrix.data /= np.repeat(sums, np.diff(matrix.indptr))
        rest /= sums
    else:
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if abs(sums[worst] - 1.0) > ROW_SUM_TOLERANCE:
            raise ValueError(
                f"rows must sum to 1 within {ROW_SUM_TOLERANCE:g}, background included, found {sums[worst]:.12g} "
                f"in row {worst}; pass normalize=True to TransitionMatrix to divide each row by its sum"
            )
    return matrix, rest


def _checked_states(states: Iterable, n: int) -> list:
    labels = list(states)
    if len(labels) != n:
        raise ValueError(f"states must name each of the {n} states once, found {len(labels)} labels; give {n} labels")
    if len(set(labels)) != n:
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"states must be distinct, found {twice!r} more than once; give each state its own label")
    return labels
