"""What an adversary infers from the released values: a hidden Markov model's filter (section 3.3 of [5]).

p_t^- = p_{t-1}^+ M before the release, Eq. (2) after it, and the forward-backward algorithm over a whole series.
Emissions are log-densities, so that values far out in the tails do not underflow.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tplrepro.dphmm.constraint import check_distribution
from tplrepro.dphmm.errors import ImpossibleReleaseError
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix

__all__ = ["ForwardBackward", "forward_backward", "next_prior", "posterior"]


@dataclass(frozen=True)
class ForwardBackward:
    """Inference over T releases.

    Attributes
    ----------
    priors : ndarray (T, N), Pr(s_t | z_1..z_{t-1}), p_t^-
    posteriors : ndarray (T, N), Pr(s_t | z_1..z_t), p_t^+
    smoothed : ndarray (T, N), Pr(s_t | z_1..z_T)
    log_evidence : float, log Pr(z_1..z_T)
    """

    priors: np.ndarray
    posteriors: np.ndarray
    smoothed: np.ndarray
    log_evidence: float


def posterior(prior, log_likelihood) -> np.ndarray:
    """Bayes' rule, Eq. (2) of [5].

    Parameters
    ----------
    prior : array-like (N,), p_t^-
    log_likelihood : array-like (N,), log Pr(z_t | s_i); -inf where the density is zero

    Returns
    -------
    ndarray (N,), p_t^+

    Raises
    ------
    ImpossibleReleaseError
        If the density is zero under every state of positive prior.
    ValueError
        If `prior` is not a distribution or the shapes differ.

    Examples
    --------
    >>> posterior([0.5, 0.5, 0], np.log([0.2, 0.6, 0.9])).round(6).tolist()
    [0.25, 0.75, 0.0]
    """
    return _update(check_distribution(prior), log_likelihood)[0]


def next_prior(distribution, matrix) -> np.ndarray:
    """The prior of the next timestamp, p_{t+1}^- = p_t^+ M, (N,).

    Examples
    --------
    >>> next_prior([0.5, 0.5], [[0.8, 0.2], [0, 1]]).round(6).tolist()
    [0.4, 0.6]
    """
    following = np.maximum(as_transition_matrix(matrix).propagate(distribution), 0)
    return following / following.sum()


def forward_backward(log_likelihoods, matrix, initial) -> ForwardBackward:
    """Forward-backward algorithm.

    Parameters
    ----------
    log_likelihoods : array-like (T, N), log Pr(z_t | s_i)
    matrix : TransitionMatrix or array-like (N, N), M; sparse ones stay sparse
    initial : array-like (N,), p_1^-

    Raises
    ------
    ImpossibleReleaseError
        If a released value has density zero under every state that is possible then.
    ValueError
        If shapes differ or `initial` is not a distribution.

    Examples
    --------
    >>> result = forward_backward(np.log([[0.9, 0.1], [0.2, 0.8]]), [[0.5, 0.5], [0.1, 0.9]], [0.5, 0.5])
    >>> result.posteriors.round(4).tolist()
    [[0.9, 0.1], [0.1756, 0.8244]]
    >>> result.smoothed.round(4).tolist()
    [[0.8588, 0.1412], [0.1756, 0.8244]]
    """
    P = as_transition_matrix(matrix)
    likelihoods = np.asarray(log_likelihoods, dtype=float)
    if likelihoods.ndim != 2 or likelihoods.shape[0] == 0 or likelihoods.shape[1] != P.n_states:
        raise ValueError(
            f"log_likelihoods must have shape (T, {P.n_states}) with T >= 1, found {likelihoods.shape}; "
            "give one row a release"
        )
    priors, posteriors = np.empty_like(likelihoods), np.empty_like(likelihoods)
    prior, log_evidence = check_distribution(initial, P.n_states, "initial"), 0.0
    for t, row in enumerate(likelihoods):
        priors[t] = prior
        posteriors[t], evidence = _update(prior, row, t)
        log_evidence += evidence
        prior = next_prior(posteriors[t], P) if t + 1 < len(likelihoods) else prior
    smoothed = posteriors.copy()
    for t in range(len(likelihoods) - 2, -1, -1):
        # Pr(s_t | all) = p_t^+ * M (Pr(s_{t+1} | all) / p_{t+1}^-); a state impossible then has 0 above as well.
        ratio = np.divide(smoothed[t + 1], priors[t + 1], out=np.zeros(P.n_states), where=priors[t + 1] > 0)
        smoothed[t] = posteriors[t] * _expectation(P, ratio)
        smoothed[t] /= smoothed[t].sum()
    return ForwardBackward(priors, posteriors, smoothed, log_evidence)


def _update(prior: np.ndarray, log_likelihood, time: int | None = None) -> tuple[np.ndarray, float]:
    """The posterior and the logarithm of the denominator of Eq. (2)."""
    likelihood = np.asarray(log_likelihood, dtype=float)
    if likelihood.shape != prior.shape:
        raise ValueError(
            f"log_likelihood must have one value a state, found shape {likelihood.shape} for {prior.size} states; "
            "give log Pr(z | s_i) for all states"
        )
    if np.isnan(likelihood).any() or np.isposinf(likelihood).any():
        raise ValueError("log_likelihood must be numbers or -inf, found NaN or +inf; check the released value")
    possible = prior > 0
    largest = likelihood[possible].max()
    if largest == -np.inf:
        when = "" if time is None else f" of time {time}"
        raise ImpossibleReleaseError(
            f"a released value must have positive density under some possible state, found zero under all "
            f"{np.count_nonzero(possible)}: the value{when} was not released under this model, or was rounded although "
            "the sensitivity hull is flat"
        )
    # Weights relative to the most likely state, in logarithms: neither factor alone decides what underflows.
    log_weights = np.full(prior.size, -np.inf)
    log_weights[possible] = np.log(prior[possible]) + likelihood[possible]
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    total = weights.sum()
    return weights / total, float(top + np.log(total))


def _expectation(P: TransitionMatrix, values: np.ndarray) -> np.ndarray:
    """M v: the expected value after one step from each state, (N,)."""
    if not P.is_sparse:
        return P.probabilities @ values
    stored = P.probabilities @ values
    if not np.any(P.background):
        return stored
    pattern = P.probabilities.copy()
    pattern.data = np.ones_like(pattern.data)
    return stored + P.background * np.maximum(values.sum() - pattern @ values, 0)
