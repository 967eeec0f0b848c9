"""Hidden Markov chains: the distribution of the states given outputs, in logarithms throughout.

The state moves by transition matrices, and each output has a likelihood given the state at its
time. Impossible is exactly -inf, and nothing underflows: a state that is e^-1000 times as likely
now may be the only one possible later.
"""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from tplrepro.markov.cycle import Cycle
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import (
    FrozenArrays,
    as_numbers,
    by_state,
    check_distribution,
    common_states,
)

#: A sum of products below this may have lost summands, each below 1e-323, to underflow.
LOWEST = 1e-290
#: A difference below this share of its parts has lost digits.
CANCELLED = 0.01


class ImpossibleOutputError(ValueError):
    """An output has probability zero under all states that the model holds possible."""


@dataclass(frozen=True, eq=False)
class FilteredChain(FrozenArrays):
    """Logarithms of probabilities, (..., T, n), and of the evidence, (...); leading axes are
    independent runs."""

    log_priors: np.ndarray  # Pr(l_t | o_1..o_{t-1})
    log_posteriors: np.ndarray  # Pr(l_t | o_1..o_t)
    log_smoothed: np.ndarray  # Pr(l_t | o_1..o_T)
    log_evidence: np.ndarray  # Pr(o_1..o_T)

    @property
    def priors(self) -> np.ndarray:
        return np.exp(self.log_priors)

    @property
    def posteriors(self) -> np.ndarray:
        return np.exp(self.log_posteriors)

    @property
    def smoothed(self) -> np.ndarray:
        return np.exp(self.log_smoothed)


@dataclass(frozen=True)
class ChainSteps:
    """The matrices by which a chain moves, and what they have in common."""

    matrices: list[TransitionMatrix]  # one for each step, or of the first steps and of a cycle
    changes: bool  # whether there is one for each step, and no cycle
    states: Sequence | None  # None without a matrix
    n_first: int  # how many first steps have a matrix in place of the cycle's
    given: TransitionMatrix | list[TransitionMatrix] | Cycle  # what `as_chain_steps` read

    def number_of(self, step: int) -> int:
        """The place among the matrices of that of a step, which counts from 0; one matrix is a
        cycle of one."""
        if self.changes or step < self.n_first:
            return step
        p = len(self.matrices) - self.n_first
        return self.n_first + step % p

    def of_horizon(self, horizon: int) -> list[TransitionMatrix]:
        """The matrix of each step between `horizon` times; as many as were given if they change."""
        if self.changes:
            return self.matrices
        return [self.matrices[self.number_of(step)] for step in range(horizon - 1)]


def as_chain_steps(transitions: Any) -> ChainSteps:
    """Read one matrix for all steps, a list of a matrix for each step, or a cycle of them.

    A list of rows is a single matrix; what is in a list of matrices has two dimensions.
    """
    if isinstance(transitions, Cycle):
        first = transitions.known_matrices(transitions.first)
        steps = [*first, *transitions.known_matrices([*transitions])]
        states = transitions.states
        return ChainSteps(steps, False, states, len(transitions.first), transitions)
    changes = isinstance(transitions, (list, tuple)) and all(map(_is_matrix, transitions))
    if not changes:
        transitions = [transitions]
    matrices = [as_transition_matrix(matrix) for matrix in transitions]
    states = common_states(matrix.states for matrix in matrices)
    return ChainSteps(matrices, changes, states, 0, matrices if changes else matrices[0])


def _is_matrix(item: Any) -> bool:
    return isinstance(item, TransitionMatrix) or np.ndim(item) == 2


def forward_backward(
    log_likelihoods: ArrayLike,
    transitions: MatrixLike | Sequence[MatrixLike] | Cycle,
    initial: ArrayLike,
) -> FilteredChain:
    """The forward-backward algorithm: the distribution of each state before its output, after it
    and after all outputs.

    Parameters
    ----------
    log_likelihoods : array-like (..., T, n)
        log Pr(o_t | l_t = k, earlier outputs), -inf for impossible outputs. A constant that is
        added at one time shifts the evidence alone.
    transitions : TransitionMatrix or array-like (n, n), a list of T - 1 of them, or a Cycle
        Pr(l_{t+1} | l_t): one matrix for all steps, one for each step, or one for each phase.
    initial : array-like (n,)
        The distribution of the first state.

    Returns
    -------
    FilteredChain
        Logarithms of the distributions, (..., T, n), and of the evidence, (...).

    Raises
    ------
    ImpossibleOutputError
        If no path of states explains the outputs up to some time.
    ValueError
        If the shapes do not agree, or something is not a probability.

    Examples
    --------
    >>> likelihoods = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> result = forward_backward(likelihoods, [[0.5, 0.5], [0.1, 0.9]], [0.5, 0.5])
    >>> result.posteriors.round(4).tolist(), result.smoothed.round(4).tolist()
    ([[0.9, 0.1], [0.1756, 0.8244]], [[0.8588, 0.1412], [0.1756, 0.8244]])
    >>> float(np.exp(result.log_evidence).round(6))  # the sum over all four paths
    0.262
    """
    chain = as_chain_steps(transitions)
    likelihoods = _checked_likelihoods(log_likelihoods, chain.states)
    horizon, n = likelihoods.shape[-2:]
    states = chain.states
    if states is None:
        states = range(n)
    steps = chain.of_horizon(horizon)
    if len(steps) != horizon - 1:
        raise ValueError(
            f"{horizon} outputs need {horizon - 1} transition matrices, found {len(steps)}; "
            "give one for all steps, or one between each two times"
        )
    if len(states) != n:
        raise ValueError(
            f"log_likelihoods must have a column for each of {len(states)} states, found {n}; "
            "give all"
        )
    priors = np.empty_like(likelihoods)
    posteriors = np.empty_like(likelihoods)
    log_evidence = np.zeros(likelihoods.shape[:-2])
    priors[..., 0, :] = log_probabilities(check_distribution(initial, states, "initial"))
    for t in range(horizon):
        if t > 0:
            priors[..., t, :] = log_product(posteriors[..., t - 1, :], steps[t - 1])
        posteriors[..., t, :], evidence = condition_on_output(
            priors[..., t, :], likelihoods[..., t, :], f" of time {t}"
        )
        log_evidence += evidence
    from_the_end = log_likelihoods_before(likelihoods[..., ::-1, :], steps[::-1])
    smoothed = posteriors + from_the_end[..., ::-1, :]
    smoothed = smoothed - _log_sum(smoothed)[..., None]
    return FilteredChain(priors, posteriors, smoothed, log_evidence)


def _checked_likelihoods(log_likelihoods: Any, states: Sequence | None) -> np.ndarray:
    """Log-likelihoods (..., T, n) as numbers, in the order of the states."""
    if states is not None:
        log_likelihoods = by_state(log_likelihoods, states, "log_likelihoods", (1,))
    likelihoods = as_numbers(
        log_likelihoods, "log_likelihoods must be numbers", "give -inf for impossible"
    )
    if likelihoods.ndim < 2 or 0 in likelihoods.shape:
        raise ValueError(
            f"log_likelihoods must have shape (..., T, n) with T >= 1, found {likelihoods.shape}; "
            "give a row for each output"
        )
    return likelihoods


def log_likelihoods_before(
    log_likelihoods: np.ndarray, steps: Sequence[TransitionMatrix | np.ndarray | None]
) -> np.ndarray:
    """The log-likelihood of the outputs before each time given the state then, up to a constant.

    Parameters
    ----------
    log_likelihoods : array (..., T, n)
        log Pr(o_t | l_t = k).
    steps : sequence of T - 1 matrices (n, n), or None
        Pr(l_{t-1} | l_t), not checked. Where a step is None, the past is unknown: there the
        log-likelihood starts anew at 0.

    Returns
    -------
    array (..., T, n)
    """
    logs = np.zeros_like(log_likelihoods)
    for t, matrix in enumerate(steps):
        if matrix is not None:
            joint = logs[..., t, :] + log_likelihoods[..., t, :]
            logs[..., t + 1, :] = log_product(joint, matrix, transpose=True)
    return logs


def condition_on_output(
    log_prior: np.ndarray, log_likelihood: np.ndarray, when: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Bayes' rule for one output.

    Parameters
    ----------
    log_prior : array (..., n)
        The distribution of the state before the output.
    log_likelihood : array (..., n)
        log Pr(output | state).
    when : str
        What an error adds to "the output", such as " of time 3".

    Returns
    -------
    log_posterior : array (..., n)
    log_evidence : array (...)

    Raises
    ------
    ImpossibleOutputError
        If the output has probability zero.
    ValueError
        If the likelihood is NaN or +inf, or has not one value for each state.
    """
    prior = np.asarray(log_prior, dtype=float)
    likelihood = np.asarray(log_likelihood, dtype=float)
    if likelihood.ndim == 0 or likelihood.shape[-1:] != prior.shape[-1:]:
        raise ValueError(
            f"log_likelihood must have one value for each state, found shape {likelihood.shape} "
            f"for the prior's {prior.shape}; give all"
        )
    if np.isnan(likelihood).any() or np.isposinf(likelihood).any():
        raise ValueError(
            "log-likelihoods must be numbers or -inf, found NaN or +inf; check the output"
        )
    joint = prior + likelihood
    evidence = _log_sum(joint)
    if np.isneginf(evidence).any():
        raise ImpossibleOutputError(
            "an output must have positive probability under some possible state, but the "
            f"output{when} has none: it was not released under this model, or was rounded; "
            "check both, or smooth the transition matrix"
        )
    return joint - evidence[..., None], evidence


def log_product(log_weights: np.ndarray, matrix: Any, *, transpose: bool = False) -> np.ndarray:
    """log(exp(w) P), or log(P exp(w)), for each w; -inf for sums that are exactly 0.

    The product is taken of weights whose largest is 1. Entries that underflow or cancellation may
    have spoilt are summed again in logarithms.

    Parameters
    ----------
    log_weights : array (..., n)
        The logarithms w.
    matrix : TransitionMatrix, or a non-negative array (n, n), dense or sparse
        P.
    transpose : bool
        Multiply by P from the left.

    Returns
    -------
    array (..., n)
    """
    logs = np.asarray(log_weights, dtype=float)
    flat = logs.reshape(-1, logs.shape[-1])
    largest = flat.max(axis=1, keepdims=True)
    flat = flat - np.where(np.isneginf(largest), 0.0, largest)
    if not isinstance(matrix, TransitionMatrix):
        result = _log_product_with_entries(flat, matrix, transpose)
    elif matrix.is_sparse and matrix.background.any():
        result = _log_product_with_background(flat, matrix, transpose)
    else:
        result = _log_product_with_entries(flat, matrix.probabilities, transpose)
    return (result + largest).reshape(logs.shape)


def _log_product_with_entries(logs: np.ndarray, entries: Any, transpose: bool) -> np.ndarray:
    """`log_product` for logs (r, n), at most 0, and a matrix that is `entries` (n, n), dense or
    sparse, alone; `transpose`: its transpose."""
    factor = entries
    if transpose:
        factor = entries.T
    product = np.exp(logs) @ factor
    result = log_probabilities(product)
    is_doubtful = product < LOWEST
    if is_doubtful.any():  # most are exact zeros
        is_doubtful &= np.isfinite(logs).astype(float) @ factor > 0
    columns = np.flatnonzero(is_doubtful.any(axis=0))
    if columns.size == 0:
        return result
    # All columns at once: taking a single one of a sparse matrix is as slow.
    lines = csr_array(factor[:, columns].T)
    for position, column in enumerate(columns.tolist()):
        runs = np.flatnonzero(is_doubtful[:, column])
        stored = slice(*lines.indptr[position : position + 2])
        log_entries = log_probabilities(lines.data[stored])
        result[runs, column] = _log_sum(logs[np.ix_(runs, lines.indices[stored])] + log_entries)
    return result


def _log_product_with_background(
    logs: np.ndarray, matrix: TransitionMatrix, transpose: bool
) -> np.ndarray:
    """`log_product` for logs (r, n), at most 0, and a sparse matrix with a background, or its
    transpose."""
    weights = np.exp(logs)
    excess = matrix.excess
    product = _multiply(weights, excess, matrix.background, transpose)
    result = log_probabilities(product)
    is_doubtful = product < LOWEST
    if excess.nnz and excess.data.min() < 0:
        # Entries below the background make the product a difference of two parts.
        parts = _multiply(weights, abs(excess), matrix.background, transpose)
        is_doubtful |= product < CANCELLED * parts
    for column in np.flatnonzero(is_doubtful.any(axis=0)).tolist():
        runs = np.flatnonzero(is_doubtful[:, column])
        entries = matrix.row(column) if transpose else matrix.column(column)
        result[runs, column] = _log_sum(logs[runs] + log_probabilities(entries))
    return result


def _multiply(
    weights: np.ndarray, excess: Any, background: np.ndarray, transpose: bool
) -> np.ndarray:
    """Weights (r, n) times the matrix whose row i is that of `excess` (n, n) plus background[i], or
    times its transpose."""
    if transpose:
        product = weights @ excess.T
        product += np.outer(weights.sum(axis=1), background)
    else:
        product = weights @ excess
        product += (weights @ background)[:, None]
    return product


def log_probabilities(values: ArrayLike) -> np.ndarray:
    """log, with -inf for 0 and for numbers that rounding made negative."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


def _log_sum(values: np.ndarray) -> np.ndarray:
    """log of the sum of exponentials over the last axis.

    SciPy's logsumexp is six times slower on short rows.
    """
    largest = values.max(axis=-1, keepdims=True)
    shift = np.where(np.isneginf(largest), 0.0, largest)
    return log_probabilities(np.exp(values - shift).sum(axis=-1)) + largest[..., 0]
