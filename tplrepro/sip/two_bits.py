"""Two correlated bits (Example 1 of [3], its Figs. 3 and 4): how the noise of the second release depends on the first.

X_1 is 1 with probability P_1; X_2 differs from X_1 with probability phi. The noise N_k is 1 if Y_k differs from X_k.
Everything is summed exactly over the sixteen outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.search import largest_within
from tplrepro.sip.belief import Belief, SymbolChain
from tplrepro.sip.leakage import joint_information
from tplrepro.sip.response import BeliefMechanism
from tplrepro.validation import check_probability

__all__ = ["TwoStepNoise", "least_leakage", "second_beliefs", "two_step_noise"]

#: Budgets that `least_leakage` tries, in nats.
SMALLEST_BUDGET, LARGEST_BUDGET = 1e-6, 64.0


@dataclass(frozen=True)
class TwoStepNoise:
    """Noise of two releases."""

    data_correlation: float  # rho(X_1, X_2) (Eq. (16) of [3]); nan if a bit is constant
    noise_correlation: float  # rho(N_1, N_2); nan if a release has no noise or only noise
    mutual_information: float  # I(N_1; N_2), nats
    first: float  # Pr(N_1 = 1)
    second: float  # Pr(N_2 = 1)
    leakages: tuple[float, float]  # the largest true IIL of each release, nats


def _chain(p1: float, phi: float) -> SymbolChain:
    check_probability(phi, "phi")
    if not 0 < p1 < 1:
        raise ValueError(f"p1 must lie strictly between 0 and 1, found {p1}; move it inside")
    return SymbolChain.first_order([1 - p1, p1], [[1 - phi, phi], [phi, 1 - phi]])


def second_beliefs(p1: float, phi: float, first: BeliefMechanism) -> tuple[np.ndarray, np.ndarray]:
    """Pr(Y_1 = y) of the outputs y that are possible, and the belief about X_2 after each (Appendix D of [3])."""
    start = Belief.start(_chain(p1, phi))
    response = first.response(start.current)
    possible = np.flatnonzero(response.marginal > 0)
    return response.marginal[possible], np.array([start.observe(int(y), response).current for y in possible])


def two_step_noise(first: BeliefMechanism, second: BeliefMechanism, p1: float, phi: float) -> TwoStepNoise:
    """Noise of the two releases of Example 1, with p1 = Pr(X_1 = 1) strictly between 0 and 1, phi = Pr(X_2 != X_1).

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> crr = ConditionalRandomizedResponse(1.0)
    >>> independent = two_step_noise(crr, crr, 0.5, 0.5)
    >>> round(abs(independent.noise_correlation), 10), round(independent.second, 4)
    (0.0, 0.1839)
    """
    chain = _chain(p1, phi)
    start = Belief.start(chain)
    response = first.response(start.current)
    data = chain.initial[:, None] * chain.toarray()
    noise, largest = np.zeros((2, 2)), 0.0
    for y1 in np.flatnonzero(response.marginal > 0).tolist():
        after = second.response(start.observe(y1, response).current)
        largest = max(largest, after.leakage)
        for x1, x2, y2 in np.ndindex(2, 2, 2):
            noise[int(x1 != y1), int(x2 != y2)] += data[x1, x2] * response.row(x1)[y1] * after.row(x2)[y2]
    shares, leakages = (float(noise[1].sum()), float(noise[:, 1].sum())), (response.leakage, largest)
    return TwoStepNoise(_correlation(data), _correlation(noise), joint_information(noise), *shares, leakages)


def least_leakage(
    mechanism: Callable[[float], BeliefMechanism], beliefs: ArrayLike, weights: ArrayLike, noise: float
) -> tuple[float, float]:
    """The smallest budget with which `mechanism(budget)` has expected noise <= `noise`, and its true leakage; nats.

    `noise` in (0, 1) bounds Pr(N = 1) over `beliefs` (m, n) of positive probabilities `weights` (m,). ValueError if no
    budget up to 64 nats is enough.
    """
    pairs = list(zip(np.asarray(weights), np.asarray(beliefs), strict=True))

    def enough(negative: float) -> bool:
        return sum(weight * mechanism(-negative).response(belief).cost() for weight, belief in pairs) <= noise

    if not enough(-LARGEST_BUDGET):
        raise ValueError(f"no budget up to 64 nats brings the noise down to {noise}; allow more noise")
    budget = -largest_within(enough, -LARGEST_BUDGET, -SMALLEST_BUDGET, tolerance=1e-12)
    if budget == SMALLEST_BUDGET:
        return 0.0, 0.0
    return budget, max(mechanism(budget).leakage(belief) for _, belief in pairs)


def _correlation(joint: np.ndarray) -> float:
    a, b = joint[1].sum(), joint[:, 1].sum()
    variance = a * (1 - a) * b * (1 - b)
    return float((joint[1, 1] - a * b) / np.sqrt(variance)) if variance > 1e-300 else float("nan")
