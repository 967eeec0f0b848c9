"""The adversary of the comparison, and what a series of releases leaks to her in truth.

She knows the chain by which the target moves (homogeneous, started in its stationary distribution), the mechanism, and
all data of all other users; she sees all T releases and wants to know where the target was at one time t. What they
tell her is Pr(outputs | l_t = k), cell by cell; the measured leakage of a run is the largest

    log Pr(outputs | l_t = i) / Pr(outputs | l_t = j)

over the cells i, j that she holds possible. It is realised, not worst-case: the privacy loss of outputs that were
drawn, which temporal privacy leakage (Eq. (2) of [1]) bounds over all outputs. Forward-backward gives it exactly from
the likelihoods Pr(output at t | l_t = k, earlier outputs), the same for every mechanism.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.filtering import log_product
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_distribution

__all__ = ["Adversary", "log_evidence", "measured_leakage", "smoothed_posteriors"]

#: Log-likelihoods that differ by less in all are multiplied as they are; exp(-700) is about the smallest double.
SAFE_RANGE = 600.0


@dataclass(frozen=True, eq=False)
class Adversary:
    """What the adversary knows about the target's movement.

    Parameters
    ----------
    transitions : TransitionMatrix over n cells, Pr(l^t | l^{t-1})
    """

    transitions: TransitionMatrix

    @cached_property
    def initial(self) -> np.ndarray:
        """Distribution of the target at every time before anything is released: the stationary one, (n,)."""
        return self.transitions.stationary()

    @cached_property
    def forward(self) -> PrivacyLossFunction:
        return PrivacyLossFunction(self.transitions)

    @cached_property
    def backward(self) -> PrivacyLossFunction:
        """Loss function of Pr(l^{t-1} | l^t); homogeneous, because the chain is stationary."""
        return PrivacyLossFunction(self.transitions.reverse(self.initial))

    def bound(self, epsilons) -> float:
        """The largest TPL of releases whose one-time losses are at most `epsilons` (T,); nats."""
        return float(temporal_privacy_leakage(epsilons, self.backward, self.forward).tpl.max())

    def log_evidence(self, log_likelihoods) -> np.ndarray:
        """`log_evidence` under this chain."""
        return log_evidence(log_likelihoods, self.transitions, self.initial)


def log_evidence(log_likelihoods, transitions, initial) -> np.ndarray:
    """log Pr(all outputs | l_t = k) for each time t and cell k, up to a constant of each time, by forward-backward.

    Parameters
    ----------
    log_likelihoods : array-like (..., T, n)
        log Pr(output at t | l_t = k, earlier outputs), up to a constant of each time; -inf where it is impossible
    transitions : TransitionMatrix or array-like (n, n), Pr(l^t | l^{t-1})
    initial : array-like (n,), distribution at the first time

    Returns
    -------
    ndarray (..., T, n), nats; NaN for cells that are impossible at that time whatever is released

    Raises
    ------
    ValueError
        For shapes that do not fit, NaN or +inf, or outputs that are impossible under the chain.

    Examples
    --------
    >>> told = np.log([[0.9, 0.1], [0.6, 0.4]])
    >>> evidence = log_evidence(told, [[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5])
    >>> (evidence[:, 0] - evidence[:, 1]).round(4).tolist()  # log 9 at time 1 by itself
    [2.4384, 1.4514]
    """
    matrix = np.asarray(as_transition_matrix(transitions), dtype=float)
    start = check_distribution(initial, len(matrix))
    likelihoods = np.asarray(log_likelihoods, dtype=float)
    if likelihoods.ndim < 2 or likelihoods.shape[-1] != len(matrix) or 0 in likelihoods.shape:
        raise ValueError(
            f"log_likelihoods must have shape (..., T, {len(matrix)}) with T >= 1, found {likelihoods.shape}; "
            "give one row a release and one column a cell"
        )
    if np.isnan(likelihoods).any() or np.isposinf(likelihoods).any():
        raise ValueError("log_likelihoods must be numbers or -inf, found NaN or +inf; check the mechanism")
    top = likelihoods.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("each output must be possible in some cell, found one that is not; check the mechanism")
    likelihoods = likelihoods - top
    lowest = np.where(np.isneginf(likelihoods), 0.0, likelihoods).min(axis=-1).sum(axis=-1).min()
    step = log_product if lowest > -SAFE_RANGE else _multiply_logarithms
    priors = _log(_marginals(matrix, start, likelihoods.shape[-2]))
    before, after = np.empty_like(likelihoods), np.zeros_like(likelihoods)
    before[..., 0, :] = priors[0]
    horizon = likelihoods.shape[-2]
    for t in range(1, horizon):
        before[..., t, :] = step(before[..., t - 1, :] + likelihoods[..., t - 1, :], matrix)
    for t in range(horizon - 1, 0, -1):
        after[..., t - 1, :] = step(after[..., t, :] + likelihoods[..., t, :], matrix.T)
    possible = np.isfinite(priors)
    with np.errstate(invalid="ignore"):
        evidence = np.where(possible, before - priors + likelihoods + after, np.nan)
    if (np.nanmax(evidence, axis=-1) == -np.inf).any():
        raise ValueError(
            "the outputs must be possible under the chain, found none of its paths that explains them; smooth the "
            "transition matrix"
        )
    return evidence


def measured_leakage(evidence, pairs=None) -> np.ndarray:
    """The largest realised log-likelihood ratio between two cells, at each time.

    Parameters
    ----------
    evidence : array-like (..., T, n), from `log_evidence`
    pairs : int array (m, 2), optional; by default all pairs of possible cells are compared

    Returns
    -------
    ndarray (..., T), nats; infinite where a possible cell is ruled out

    Examples
    --------
    >>> evidence = [[0.0, 1.0, 3.0]]
    >>> measured_leakage(evidence).tolist(), measured_leakage(evidence, [(0, 1), (1, 2)]).tolist()
    ([3.0], [2.0])
    """
    values = np.asarray(evidence, dtype=float)
    if pairs is None:
        return np.nanmax(values, axis=-1) - np.nanmin(values, axis=-1)
    first, second = np.asarray(pairs, dtype=np.intp).reshape(-1, 2).T
    with np.errstate(invalid="ignore"):
        ratios = np.abs(values[..., first] - values[..., second])
    return np.where(np.isnan(ratios), 0.0, ratios).max(axis=-1, initial=0.0)


def smoothed_posteriors(evidence, transitions, initial) -> np.ndarray:
    """Pr(l_t = k | all outputs), (..., T, n), from `log_evidence`."""
    values = np.asarray(evidence, dtype=float)
    matrix = np.asarray(as_transition_matrix(transitions), dtype=float)
    priors = _marginals(matrix, check_distribution(initial, len(matrix)), values.shape[-2])
    weights = np.where(priors > 0, priors * np.exp(values - np.nanmax(values, axis=-1, keepdims=True)), 0.0)
    return weights / weights.sum(axis=-1, keepdims=True)


def _marginals(matrix: np.ndarray, start: np.ndarray, horizon: int) -> np.ndarray:
    rows = [start]
    for _ in range(horizon - 1):
        rows.append(rows[-1] @ matrix)
    return np.array(rows)


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _multiply_logarithms(log_weights: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """`log_product` without underflow; slower."""
    return np.logaddexp.reduce(log_weights[..., :, None] + _log(matrix), axis=-2)
