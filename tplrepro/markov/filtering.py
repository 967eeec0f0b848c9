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

from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import (
    FrozenArrays,
    as_numbers,
    by_state,
    check_distribution,
    common_states,
)

#: Sums of products below this may have lost summands to underflow, each less than 1e-323; above it they do not matter.
LOWEST = 1e-290


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

    priors = property(lambda self: np.exp(self.log_priors))
    posteriors = property(lambda self: np.exp(self.log_posteriors))
    smoothed = property(lambda self: np.exp(self.log_smoothed))


def forward_backward(
    log_likelihoods: ArrayLike, transitions: MatrixLike | Sequence[MatrixLike], initial: ArrayLike
) -> FilteredChain:
    """The forward-backward algorithm: the distribution of each state before its output, after it
    and after all.

    Parameters
    ----------
    log_likelihoods : array-like (..., T, n), log Pr(o_t | l_t = k, earlier outputs); -inf for impossible ones
        A constant added at one time shifts the evidence alone.
    transitions : TransitionMatrix or array-like (n, n), Pr(l_{t+1} | l_t); or a list of T - 1 of them
    initial : array-like (n,), distribution of the first state

    ImpossibleOutputError if no path of states explains the outputs up to some time.

    >>> likelihoods = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> result = forward_backward(likelihoods, [[0.5, 0.5], [0.1, 0.9]], [0.5, 0.5])
    >>> result.posteriors.round(4).tolist(), result.smoothed.round(4).tolist()
    ([[0.9, 0.1], [0.1756, 0.8244]], [[0.8588, 0.1412], [0.1756, 0.8244]])
    >>> float(np.exp(result.log_evidence).round(6))  # the sum over all four paths
    0.262
    """
    steps, changes, states = chain_over_time(transitions)
    log_likelihoods = (
        log_likelihoods
        if states is None
        else by_state(log_likelihoods, states, "log_likelihoods", (1,))
    )
    likelihoods = as_numbers(
        log_likelihoods, "log_likelihoods must be numbers", "give -inf for impossible"
    )
    if likelihoods.ndim < 2 or 0 in likelihoods.shape:
        raise ValueError(
            f"log_likelihoods must have shape (..., T, n) with T >= 1, found {likelihoods.shape}; "
            "give a row for each output"
        )
    *_, horizon, n = likelihoods.shape
    states = range(n) if states is None else states
    steps = steps if changes else steps * (horizon - 1)
    if len(steps) != horizon - 1:
        raise ValueError(
            f"{horizon} outputs need {horizon - 1} transition matrices, found {len(steps)}; "
            "give one for all steps, or one between each two times"
        )
    if len(states) != n:
        raise ValueError(
            f"log_likelihoods must have a column for each of {len(states)} states, found {n}; give all"
        )
    priors, posteriors = np.empty_like(likelihoods), np.empty_like(likelihoods)
    log_evidence = np.zeros(likelihoods.shape[:-2])
    priors[..., 0, :] = log_probabilities(check_distribution(initial, states, "initial"))
    for t in range(horizon):
        if t:
            priors[..., t, :] = log_product(posteriors[..., t - 1, :], steps[t - 1])
        posteriors[..., t, :], evidence = condition(
            priors[..., t, :], likelihoods[..., t, :], f" of time {t}"
        )
        log_evidence += evidence
    smoothed = posteriors + messages(likelihoods[..., ::-1, :], steps[::-1])[..., ::-1, :]
    return FilteredChain(priors, posteriors, smoothed - _log_sum(smoothed)[..., None], log_evidence)


def chain_over_time(transitions: Any) -> tuple[list[TransitionMatrix], bool, Sequence | None]:
    """The matrices, whether there is one for each step (a list of rows is a single one), and their
    common states."""
    changes = isinstance(transitions, (list, tuple)) and all(
        isinstance(item, TransitionMatrix) or np.ndim(item) == 2 for item in transitions
    )
    steps = [as_transition_matrix(matrix) for matrix in (transitions if changes else [transitions])]
    return steps, changes, common_states(matrix.states for matrix in steps)


def messages(
    log_likelihoods: np.ndarray, steps: Sequence[TransitionMatrix | np.ndarray | None]
) -> np.ndarray:
    """The log-likelihood (..., T, n) of the outputs before each time given the state then, up to a
    constant.

    `steps` are the T - 1 matrices Pr(l_{t-1} | l_t), not checked, or None where unknown: there it
    starts anew at 0.
    """
    logs = np.zeros_like(log_likelihoods)
    for t, matrix in enumerate(steps):
        if matrix is not None:
            joint = logs[..., t, :] + log_likelihoods[..., t, :]
            logs[..., t + 1, :] = log_product(joint, matrix, transpose=True)
    return logs


def condition(
    log_prior: np.ndarray, log_likelihood: np.ndarray, when: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Bayes' rule: the log-posterior (..., n) and the log-evidence (...) of one output, which
    errors call that `when`.

    ImpossibleOutputError if the output has probability zero.
    """
    prior, likelihood = np.asarray(log_prior, dtype=float), np.asarray(log_likelihood, dtype=float)
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
            f"an output must have positive probability under some possible state, but the output{when} has none: "
            "it was not released under this model, or was rounded; check both, or smooth the transition matrix"
        )
    return joint - evidence[..., None], evidence


def log_product(log_weights: np.ndarray, matrix: Any, *, transpose: bool = False) -> np.ndarray:
    """log(exp(w) P), or log(P exp(w)) if `transpose`, for each w (..., n); -inf for sums that are
    exactly 0.

    `matrix` is a TransitionMatrix or a non-negative array (n, n), dense or sparse.
    """
    logs = np.asarray(log_weights, dtype=float)
    flat = logs.reshape(-1, logs.shape[-1])
    top = flat.max(axis=1, keepdims=True)
    flat = flat - np.where(np.isneginf(top), 0.0, top)
    stored, background = matrix, None
    if isinstance(matrix, TransitionMatrix):
        stored = matrix.probabilities
        if matrix.is_sparse and matrix.background.any():
            stored, background = matrix.excess, matrix.background
    weights = np.exp(flat)
    product = _multiply(weights, stored, background, transpose)
    result = log_probabilities(product)
    doubtful = product < LOWEST
    if background is None:
        if doubtful.any():  # most are exact zeros
            doubtful &= _multiply(np.isfinite(flat).astype(float), stored, None, transpose) > 0
    elif stored.nnz and stored.data.min() < 0:
        # Entries below the background make it a difference, which is good if not much below its
        # parts.
        doubtful |= product < 0.01 * _multiply(weights, abs(stored), background, transpose)
    columns = np.flatnonzero(doubtful.any(axis=0))
    # all lines at once: a single one of a sparse matrix takes as long
    if background is None and columns.size:
        lines = csr_array(stored[columns] if transpose else stored[:, columns].T)
    for position, j in enumerate(columns.tolist()):
        runs = np.flatnonzero(doubtful[:, j])
        if background is None:
            entries = slice(*lines.indptr[position : position + 2])
            terms = flat[np.ix_(runs, lines.indices[entries])] + log_probabilities(
                lines.data[entries]
            )
        else:
            terms = flat[runs] + log_probabilities(matrix.row(j) if transpose else matrix.column(j))
        result[runs, j] = _log_sum(terms)
    return (result + top).reshape(logs.shape)


def _multiply(weights, stored, background, transpose: bool) -> np.ndarray:
    """The product with the matrix whose row i is that of `stored` plus the constant
    background[i]."""
    product = weights @ (stored.T if transpose else stored)
    if background is not None:
        product += (
            np.outer(weights.sum(axis=1), background)
            if transpose
            else (weights @ background)[:, None]
        )
    return product


def log_probabilities(values: ArrayLike) -> np.ndarray:
    """log, with -inf for 0 and for numbers that rounding made negative."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


def _log_sum(values: np.ndarray) -> np.ndarray:
    """log of the sum of exponentials over the last axis; SciPy's logsumexp is six times slower on
    short rows."""
    top = values.max(axis=-1, keepdims=True)
    return (
        log_probabilities(np.exp(values - np.where(np.isneginf(top), 0.0, top)).sum(axis=-1))
        + top[..., 0]
    )
