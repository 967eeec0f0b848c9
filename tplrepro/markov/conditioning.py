"""The chain that an adversary sees who has evidence about some of a user's states."""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.cycle import Cycle
from tplrepro.markov.filtering import (
    as_chain_steps,
    forward_backward,
    log_likelihoods_before,
    log_probabilities,
)
from tplrepro.markov.transition import MatrixLike, TransitionMatrix
from tplrepro.validation import FrozenArrays, as_numbers, by_state, check_entries


@dataclass(frozen=True, eq=False)
class ConditionedChain(FrozenArrays):
    """A chain given evidence.

    Rows of impossible states repeat the row of a possible one, which changes no leakage.
    """

    backward: list[TransitionMatrix]  # T - 1 matrices Pr(l^t | l^{t+1}, evidence)
    forward: list[TransitionMatrix]  # T - 1 matrices Pr(l^{t+1} | l^t, evidence)
    possible: np.ndarray  # which states are possible, bool (T, n)


def condition_on(
    transitions: MatrixLike | Sequence[MatrixLike] | Cycle, initial: ArrayLike, evidence: ArrayLike
) -> ConditionedChain:
    """The chain given what an adversary knows about a user's states from elsewhere.

    The matrices then vary over time. Evidence may raise a TPL; `PriorFreeLoss` bounds the leakage
    for any evidence.

    Parameters
    ----------
    transitions : TransitionMatrix or array-like (n, n), a list of T - 1 of them, or a Cycle
        Pr(l^{t+1} | l^t): one matrix for all steps, one for each step, or one for each phase.
    initial : array-like (n,)
        The distribution of the first state.
    evidence : array-like (T, n)
        Pr(evidence about time t | l^t = k), finite and >= 0. Only the ratios within a row count:
        a row of ones is no evidence, a single 1 says where the user was.

    Returns
    -------
    ConditionedChain
        Dense matrices of each step in both directions, and which states are possible.

    Raises
    ------
    ImpossibleOutputError
        If the evidence has probability zero under the chain.
    ValueError
        If the shapes do not agree, or something is not a probability.

    Examples
    --------
    >>> home_first = condition_on([[0.8, 0.2], [0.1, 0.9]], [0.5, 0.5], [[1, 0], [1, 1], [1, 1]])
    >>> home_first.backward[1].probabilities.round(4).tolist()
    [[0.9697, 0.0303], [0.4706, 0.5294]]
    >>> home_first.possible.tolist()
    [[True, False], [True, True], [True, True]]
    """
    chain = as_chain_steps(transitions)
    log_evidence = log_probabilities(_checked_evidence(evidence, chain.states))
    steps = chain.of_horizon(len(log_evidence))
    filtered = forward_backward(log_evidence, chain.given, initial)
    possible = np.isfinite(filtered.log_smoothed)
    # Of the evidence from each time on, given the state then.
    log_later = log_evidence + log_likelihoods_before(log_evidence[::-1], steps[::-1])[::-1]
    backward = []
    forward = []
    for t, step in enumerate(steps):
        log_step = log_probabilities(step.toarray())
        log_joint = log_step + filtered.log_posteriors[t][:, None]
        log_ahead = log_step + log_later[t + 1]
        backward.append(_normalize_rows(log_joint.T, possible[t + 1], possible[t], step.states))
        forward.append(_normalize_rows(log_ahead, possible[t], possible[t + 1], step.states))
    return ConditionedChain(backward, forward, possible)


def _checked_evidence(evidence: ArrayLike, states: Sequence | None) -> np.ndarray:
    """Evidence (T, n) as numbers, finite and not negative, in the order of the states."""
    likelihoods = as_numbers(
        by_state(evidence, states, "evidence", (1,)),
        "evidence must be probabilities",
        "give one for each time and state",
    )
    check_entries(likelihoods, "evidence")
    n = likelihoods.size  # without a step there is one time
    if states is not None:
        n = len(states)
    if likelihoods.ndim != 2 or likelihoods.shape[1] != n:
        raise ValueError(
            f"evidence must have shape (T, {n}), found {likelihoods.shape}; "
            "give a probability for each time and state, 1 where nothing is known"
        )
    return likelihoods


def _normalize_rows(
    log_weights: np.ndarray,
    possible_rows: np.ndarray,
    possible_columns: np.ndarray,
    states: Sequence,
) -> TransitionMatrix:
    """Rows of weights, given as logarithms (n, n), divided by their sums.

    `possible_rows` and `possible_columns` (n,) are of bool. Columns that are not possible get 0,
    and rows that are not possible repeat one that is.
    """
    numbers = np.arange(possible_rows.size)
    first_possible = np.argmax(possible_rows)
    rows = np.where(possible_rows, numbers, first_possible)
    log_weights = np.where(possible_columns, log_weights[rows], -np.inf)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return TransitionMatrix(weights, states, normalize=True)
