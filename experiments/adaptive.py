"""Plans of releases that are chosen after the first output: why an account with a delta must be
fixed in advance.

Two states, two releases. A first release that is rarely informative is followed either by
randomised response or by a release that reveals the state with a small probability. Each plan by
itself is (epsilon, delta)-DP_T; choosing the plan by the first output is not. A release is its law
(2, outputs) given each state.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq


class Plans(NamedTuple):
    """The laws of the first release and of the second one in either plan."""

    first: np.ndarray
    response: np.ndarray
    reveal: np.ndarray


def plans(
    epsilon: float, delta: float, backward: np.ndarray, forward: np.ndarray, *, second: float
) -> Plans:
    """Two plans that each have exactly `delta` at `epsilon` (nats).

    `backward` and `forward` (2, 2) are the transition matrices that the adversary knows; `second`
    is the budget, in nats, of the randomised response that one plan has second.
    """
    truth = 1.0 / (1.0 + np.exp(-second))
    response = np.array([[truth, 1.0 - truth], [1.0 - truth, truth]])

    def rare(share: float) -> np.ndarray:
        """The law of a release that tells something with probability `share`, by likelihoods that
        differ by epsilon, and otherwise nothing."""
        unlikely = share * np.exp(-epsilon)
        rest = 1.0 - share - unlikely
        return np.array([[share, unlikely, rest], [unlikely, share, rest]])

    def revealing(probability: float) -> np.ndarray:
        """The law of a release that tells the state with this probability, and otherwise
        nothing."""
        return np.array(
            [[probability, 0.0, 1.0 - probability], [0.0, probability, 1.0 - probability]]
        )

    def excess(first: np.ndarray, after: np.ndarray) -> float:
        return largest_delta(epsilon, first, [after] * 3, backward, forward) - delta

    def excess_of_share(share: float) -> float:
        return excess(rare(share), response)

    first = rare(brentq(excess_of_share, delta / 10, 0.3, xtol=1e-18))

    def excess_of_revealing(probability: float) -> float:
        return excess(first, revealing(probability))

    reveal = revealing(brentq(excess_of_revealing, 0.0, 0.3, xtol=1e-18))
    return Plans(first, response, reveal)


def largest_delta(
    epsilon: float,
    first: np.ndarray,
    second: list[np.ndarray],
    backward: np.ndarray,
    forward: np.ndarray,
) -> float:
    """The largest delta, at `epsilon` nats, of both outputs together about the state at either
    time.

    `first` (2, outputs) is the law of the first release; second[o] is that of the second one after
    the first output o. `backward` and `forward` (2, 2) are the transition matrices.
    """
    outputs = range(first.shape[1])
    about_first = np.hstack([first[:, [o]] * (forward @ second[o]) for o in outputs])
    about_second = np.hstack([(backward @ first)[:, [o]] * second[o] for o in outputs])
    deltas = []
    for law in (about_first, about_second):
        for state, other in ((0, 1), (1, 0)):
            excess = law[state] - np.exp(epsilon) * law[other]
            deltas.append(float(np.maximum(excess, 0.0).sum()))
    return max(deltas)
