"""The chain that an adversary sees who has evidence about some of a user's states."""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.filtering import chain_over_time, forward_backward, log_probabilities, messages
from tplrepro.markov.transition import MatrixLike, TransitionMatrix
from tplrepro.validation import FrozenArrays, as_numbers, by_state, check_entries


@dataclass(frozen=True, eq=False)
class ConditionedChain(FrozenArrays):
    """A chain given evidence. Rows of impossible states repeat that of a possible one, which
    changes no leakage."""

    backward: list[TransitionMatrix]  # T - 1 matrices Pr(l^t | l^{t+1}, evidence)
    forward: list[TransitionMatrix]  # T - 1 matrices Pr(l^{t+1} | l^t, evidence)
    possible: np.ndarray  # which states are possible, bool (T, n)


def condition_on(
    transitions: MatrixLike | Sequence[MatrixLike], initial: ArrayLike, evidence: ArrayLike
) -> ConditionedChain:
    """The chain given what an adversary knows about a user's states from elsewhere, which varies
    over time.

    Evidence may raise a TPL; `PriorFreeLoss` bounds the leakage for any. Its entries (T, n) are
    Pr(evidence about time t | l^t = k), finite and >= 0; only the ratios within a row count: a row
    of ones is no evidence, a single 1 says where the user was. Transitions and the initial
    distribution as in `forward_backward`. All matrices are dense.

    >>> home_first = condition_on([[0.8, 0.2], [0.1, 0.9]], [0.5, 0.5], [[1, 0], [1, 1], [1, 1]])
    >>> home_first.backward[1].probabilities.round(4).tolist()
    [[0.9697, 0.0303], [0.4706, 0.5294]]
    >>> home_first.possible.tolist()
    [[True, False], [True, True], [True, True]]
    """
    steps, changes, states = chain_over_time(transitions)
    evidence = by_state(evidence, states, "evidence", (1,))
    likelihoods = as_numbers(
        evidence, "evidence must be probabilities", "give one for each time and state"
    )
    check_entries(likelihoods, "evidence")
    n = likelihoods.size if states is None else len(states)  # without a step there is one time
    if likelihoods.ndim != 2 or likelihoods.shape[1] != n:
        raise ValueError(
            f"evidence must have shape (T, {n}), found {likelihoods.shape}; "
            "give a probability for each time and state, 1 where nothing is known"
        )
    logs = log_probabilities(likelihoods)
    chain = forward_backward(logs, steps if changes else steps[0], initial)
    steps = steps if changes else steps * (len(logs) - 1)
    possible = np.isfinite(chain.log_smoothed)
    later = logs + messages(logs[::-1], steps[::-1])[::-1]  # of the evidence from each time on
    backward, forward = [], []
    for t, step in enumerate(steps):
        log_step = log_probabilities(step.toarray())
        before, after = log_step + chain.log_posteriors[t][:, None], log_step + later[t + 1]
        backward.append(_normalized(before.T, possible[t + 1], possible[t], step.states))
        forward.append(_normalized(after, possible[t], possible[t + 1], step.states))
    return ConditionedChain(backward, forward, possible)


def _normalized(
    log_weights: np.ndarray, rows: np.ndarray, columns: np.ndarray, states: Sequence
) -> TransitionMatrix:
    """Rows divided by their sums; columns that are not possible get 0, and such rows are those of a
    possible state."""
    weights = np.where(
        columns, log_weights[np.where(rows, np.arange(rows.size), np.argmax(rows))], -np.inf
    )
    return TransitionMatrix(
        np.exp(weights - weights.max(axis=1, keepdims=True)), states, normalize=True
    )
