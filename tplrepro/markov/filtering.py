"""Hidden chains: what outputs say about the states behind them, in logarithms throughout.

The state moves by transition matrices, each output has a likelihood given the state at its time. Forward-backward gives
the distribution of each state before its output (prior), after it (posterior) and after all outputs (smoothed).
Impossible is exactly -inf, and nothing underflows: a state that is e^-1000 times as likely now may be the only one
possible later. Sparse matrices stay sparse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import FrozenArrays, as_numbers, check_distribution

__all__ = [
    "FilteredChain",
    "ImpossibleOutputError",
    "condition",
    "forward_backward",
    "log_probabilities",
    "log_product",
    "matrices_over_time",
    "messages",
    "output_log_likelihoods",
]

#: Products below this may have lost summands to underflow, above it none that matters: each loses less than 1e-323.
LOWEST = 1e-290


class ImpossibleOutputError(ValueError):
    """An output has probability zero under all states that the model holds possible."""


@dataclass(frozen=True, eq=False)
class FilteredChain(FrozenArrays):
    """Inference over T outputs: logarithms of probabilities, (..., T, n) and (...); leading axes are runs."""

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


def forward_backward(
    log_likelihoods: ArrayLike,
    transitions: TransitionMatrix | ArrayLike | Sequence[TransitionMatrix | ArrayLike],
    initial: ArrayLike,
) -> FilteredChain:
    """The forward-backward algorithm.

    Parameters
    ----------
    log_likelihoods : array-like (..., T, n), log Pr(o_t | l_t = k, earlier outputs); -inf where it is impossible
        What is only known up to a summand at each time shifts the evidence alone.
    transitions : TransitionMatrix or array-like (n, n), Pr(l_{t+1} | l_t); or a list of T - 1 of them
    initial : array-like (n,), distribution of the first state

    ImpossibleOutputError if no path of states explains the outputs up to some time; ValueError for shapes that do not
    fit, NaN or +inf, or if `initial` is not a distribution.

    Examples
    --------
    >>> told = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> result = forward_backward(told, [[0.5, 0.5], [0.1, 0.9]], [0.5, 0.5])
    >>> result.posteriors.round(4).tolist(), result.smoothed.round(4).tolist()
    ([[0.9, 0.1], [0.1756, 0.8244]], [[0.8588, 0.1412], [0.1756, 0.8244]])
    >>> float(np.exp(result.log_evidence).round(6))  # the sum over all four paths
    0.262
    """
    likelihoods = as_numbers(log_likelihoods, "log_likelihoods must be numbers", "give -inf for what is impossible")
    if likelihoods.ndim < 2 or 0 in likelihoods.shape:
        raise ValueError(
            f"log_likelihoods must have shape (..., T, n) with T >= 1, found {likelihoods.shape}; one row is an output"
        )
    *_, horizon, n = likelihoods.shape
    matrices = matrices_over_time(transitions)
    if matrices is None:
        steps = [as_transition_matrix(transitions)] * (horizon - 1)
    else:
        steps = [*map(as_transition_matrix, matrices)]
    if len(steps) != horizon - 1:
        raise ValueError(
            f"{horizon} outputs need {horizon - 1} transition matrices, found {len(steps)}; give one for all steps, or "
            "one between each two times"
        )
    if any(matrix.n_states != n for matrix in steps):
        raise ValueError(
            f"log_likelihoods must have one column for each of the {steps[0].n_states} states, found {n}; give all"
        )
    priors, posteriors = np.empty_like(likelihoods), np.empty_like(likelihoods)
    log_evidence = np.zeros(likelihoods.shape[:-2])
    priors[..., 0, :] = log_probabilities(check_distribution(initial, n, "initial"))
    for t in range(horizon):
        if t:
            priors[..., t, :] = log_product(posteriors[..., t - 1, :], steps[t - 1])
        posteriors[..., t, :], evidence = condition(priors[..., t, :], likelihoods[..., t, :], f" of time {t}")
        log_evidence += evidence
    smoothed = posteriors + messages(likelihoods[..., ::-1, :], steps[::-1])[..., ::-1, :]
    smoothed -= _log_sum(smoothed)[..., None]
    return FilteredChain(priors, posteriors, smoothed, log_evidence)


def output_log_likelihoods(log_likelihoods: ArrayLike, transitions: Any, initial: ArrayLike) -> np.ndarray:
    """log Pr(o_1..o_T | l_t = k) for each time t and state k, (..., T, n), up to a summand of each time.

    Arguments and errors as in `forward_backward`. NaN for states that are impossible at that time whatever is released.

    Examples
    --------
    >>> told = np.log([[0.9, 0.1], [0.6, 0.4]])
    >>> likelihood = output_log_likelihoods(told, [[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5])
    >>> (likelihood[:, 0] - likelihood[:, 1]).round(4).tolist()  # log 9 at time 1 by itself
    [2.4384, 1.4514]
    """
    smoothed = forward_backward(log_likelihoods, transitions, initial).log_smoothed
    marginals = forward_backward(np.zeros(smoothed.shape[-2:]), transitions, initial).log_priors
    return smoothed - np.where(np.isneginf(marginals), np.nan, marginals)


def matrices_over_time(transitions: Any) -> Sequence | None:
    """The matrices of a list of them, one for each step; None for one matrix, which may be a list of rows."""
    several = isinstance(transitions, (list, tuple)) and all(
        isinstance(item, TransitionMatrix) or np.ndim(item) == 2 for item in transitions
    )
    return transitions if several else None


def messages(log_likelihoods: np.ndarray, steps: Sequence[TransitionMatrix | np.ndarray | None]) -> np.ndarray:
    """What the outputs before each time say about the state at that time: log-likelihoods up to a summand.

    `steps` are the T - 1 matrices Pr(l_{t-1} | l_t), not checked, or None where one is not known. The result
    (..., T, n) is zero at the first time and after a step that is not known.

    Examples
    --------
    >>> messages(np.log([[0.9, 0.1], [0.5, 0.5]]), [np.array([[0.8, 0.2], [0.2, 0.8]])]).round(4).tolist()
    [[0.0, 0.0], [-0.3011, -1.3471]]
    """
    logs = np.zeros_like(log_likelihoods)
    for t, matrix in enumerate(steps):
        if matrix is not None:
            logs[..., t + 1, :] = log_product(logs[..., t, :] + log_likelihoods[..., t, :], matrix, transpose=True)
    return logs


def condition(log_prior: np.ndarray, log_likelihood: np.ndarray, when: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Bayes' rule: the log-posterior (..., n) and the log-evidence (...) of one output; `when` goes into errors.

    ImpossibleOutputError if each possible state gives the output probability zero, ValueError for NaN or +inf.

    Examples
    --------
    >>> posterior, evidence = condition(np.log([0.5, 0.5]), np.log([0.2, 0.6]))
    >>> np.exp(posterior).round(6).tolist(), float(np.exp(evidence).round(6))
    ([0.25, 0.75], 0.4)
    """
    prior, likelihood = np.asarray(log_prior, dtype=float), np.asarray(log_likelihood, dtype=float)
    if likelihood.ndim == 0 or likelihood.shape[-1:] != prior.shape[-1:]:
        raise ValueError(
            f"log_likelihood must have one value a state, found shape {likelihood.shape}, prior {prior.shape}; give all"
        )
    if np.isnan(likelihood).any() or np.isposinf(likelihood).any():
        raise ValueError("log-likelihoods must be numbers or -inf, found NaN or +inf; check the output")
    joint = prior + likelihood
    evidence = _log_sum(joint)
    if np.isneginf(evidence).any():
        raise ImpossibleOutputError(
            f"an output must have positive probability under some possible state, but the output{when} has none: it "
            "was not released under this model, or was rounded; check both, or smooth the transition matrix"
        )
    return joint - evidence[..., None], evidence


def log_product(log_weights: np.ndarray, matrix: Any, *, transpose: bool = False) -> np.ndarray:
    """log(exp(w) P), or log(P exp(w)) if `transpose`, for each w (..., n); -inf where nothing leads there.

    `matrix` is a TransitionMatrix or any non-negative array (n, n), also a sparse one of SciPy's.

    Examples
    --------
    >>> P = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> log_product(np.array([0.0, -900.0]), P).tolist(), log_product(np.array([0.0, -np.inf]), P).tolist()
    ([0.0, -900.0], [0.0, -inf])
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
        if doubtful.any():  # nearly always exact zeros: nothing leads there
            doubtful &= _multiply(np.isfinite(flat).astype(float), stored, None, transpose) > 0
    elif stored.nnz and stored.data.min() < 0:
        # Where less is stored than the background, the product is a difference: good if not much below its parts.
        doubtful |= product < 0.01 * _multiply(weights, abs(stored), background, transpose)
    columns = np.flatnonzero(doubtful.any(axis=0))
    if background is None and columns.size:  # all lines at once: each takes a sparse matrix as long
        lines = stored[columns] if transpose else stored[:, columns].T
        lines = csr_array(lines)
    for position, j in enumerate(columns.tolist()):
        runs = np.flatnonzero(doubtful[:, j])
        if background is None:
            own = slice(*lines.indptr[position : position + 2])
            terms = flat[np.ix_(runs, lines.indices[own])] + log_probabilities(lines.data[own])
        else:
            terms = flat[runs] + log_probabilities(matrix.row(j) if transpose else matrix.column(j))
        result[runs, j] = _log_sum(terms)
    return (result + top).reshape(logs.shape)


def _multiply(weights, stored, background, transpose: bool) -> np.ndarray:
    """The product with a matrix whose row i has `stored` beyond the constant background[i]."""
    product = weights @ (stored.T if transpose else stored)
    if background is not None:
        product += weights.sum(axis=1)[:, None] * background if transpose else (weights @ background)[:, None]
    return product


def log_probabilities(values: ArrayLike) -> np.ndarray:
    """log, with -inf for 0 and for what rounding made negative."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


def _log_sum(values: np.ndarray) -> np.ndarray:
    """log of the sum of exponentials over the last axis; logsumexp of SciPy takes six times as long on short rows."""
    top = values.max(axis=-1, keepdims=True)
    return log_probabilities(np.exp(values - np.where(np.isneginf(top), 0.0, top)).sum(axis=-1)) + top[..., 0]
