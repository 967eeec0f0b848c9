"""Two correlated bits (Example 1 of [3], its Figs. 3 and 4): how the noise of the second release depends on the first.

X_1 is 1 with probability P_1; X_2 differs from X_1 with probability phi. The noise N_k is 1 if Y_k differs
from X_k. Everything is summed exactly over the sixteen outcomes.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tplrepro.sip.response import Mechanism

__all__ = ["TwoStepNoise", "least_leakage", "second_beliefs", "two_step_noise"]


@dataclass(frozen=True)
class TwoStepNoise:
    """Noise of two releases.

    Attributes
    ----------
    data_correlation : float, rho(X_1, X_2) (Eq. (16) of [3]); nan if a bit is constant
    noise_correlation : float, rho(N_1, N_2); nan if a release has no noise or only noise
    mutual_information : float, I(N_1; N_2), nats
    first, second : float, Pr(N_1 = 1), Pr(N_2 = 1)
    leakages : tuple of float, the largest true IIL of each release, nats
    """

    data_correlation: float
    noise_correlation: float
    mutual_information: float
    first: float
    second: float
    leakages: tuple[float, float]


def second_beliefs(p1: float, phi: float, first: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Pr(Y_1 = y), (2,), and the belief about X_2 after each y, (2, 2) (Appendix D of [3])."""
    prior = np.array([1 - p1, p1])
    step = np.array([[1 - phi, phi], [phi, 1 - phi]])
    joint = prior[:, None] * first.matrix(prior)
    marginal = joint.sum(axis=0)
    posterior = np.divide(joint, marginal, out=np.tile(prior[:, None], (1, 2)), where=marginal > 0)
    return marginal, posterior.T @ step


def two_step_noise(first: Mechanism, second: Mechanism, p1: float, phi: float) -> TwoStepNoise:
    """Noise of the two releases of Example 1.

    Parameters
    ----------
    first, second : Mechanism
    p1 : float, Pr(X_1 = 1), strictly between 0 and 1
    phi : float in [0, 1], Pr(X_2 != X_1)

    Examples
    --------
    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> crr = ConditionalRandomizedResponse(1.0)
    >>> independent = two_step_noise(crr, crr, 0.5, 0.5)
    >>> round(abs(independent.noise_correlation), 10), round(independent.second, 4)
    (0.0, 0.1839)
    """
    if not (0 < p1 < 1 and 0 <= phi <= 1):
        raise ValueError(
            f"p1 must lie strictly between 0 and 1 and phi in [0, 1], found {p1} and {phi}; move them inside"
        )
    prior = np.array([1 - p1, p1])
    step = np.array([[1 - phi, phi], [phi, 1 - phi]])
    rows = first.matrix(prior)
    outputs, beliefs = second_beliefs(p1, phi, first)
    responses = [
        second.response(belief) if weight > 0 else None for weight, belief in zip(outputs, beliefs, strict=True)
    ]
    noise = np.zeros((2, 2))
    for x1, y1, x2, y2 in np.ndindex(2, 2, 2, 2):
        if outputs[y1] > 0:
            probability = prior[x1] * rows[x1, y1] * step[x1, x2] * responses[y1].row(x2)[y2]
            noise[int(x1 != y1), int(x2 != y2)] += probability
    data = prior[:, None] * step
    leakages = first.leakage(prior), max(r.leakage for r in responses if r is not None)
    return TwoStepNoise(
        _correlation(data),
        _correlation(noise),
        _information(noise),
        float(noise[1].sum()),
        float(noise[:, 1].sum()),
        leakages,
    )


def least_leakage(mechanism, beliefs, weights, noise: float, tolerance: float = 1e-9) -> tuple[float, float]:
    """The smallest budget with which `mechanism(budget)` has expected noise <= `noise`, and its true leakage; nats.

    Parameters
    ----------
    mechanism : callable from a budget to a Mechanism
    beliefs : array-like (m, n)
    weights : array-like (m,), probabilities of the beliefs
    noise : float in (0, 1), the bound of Pr(N = 1)
    """

    def expected(budget):
        return sum(w * mechanism(budget).response(b).cost() for w, b in zip(weights, beliefs, strict=True) if w > 0)

    low, high = 1e-6, 1.0
    if expected(low) > noise:
        while expected(high) > noise:
            low, high = high, 2 * high
            if high > 64:
                raise ValueError(f"no budget up to 64 nats brings the noise down to {noise}; allow more noise")
        while high - low > tolerance:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if expected(middle) <= noise else (middle, high)
    else:
        high = 0.0
    if high == 0.0:
        return 0.0, 0.0
    chosen = mechanism(high)
    return high, max(chosen.leakage(b) for w, b in zip(weights, beliefs, strict=True) if w > 0)


def _correlation(joint: np.ndarray) -> float:
    a, b = joint[1].sum(), joint[:, 1].sum()
    variance = a * (1 - a) * b * (1 - b)
    return float((joint[1, 1] - a * b) / np.sqrt(variance)) if variance > 1e-300 else float("nan")


def _information(joint: np.ndarray) -> float:
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    held = joint > 0
    return float(max((joint[held] * np.log(joint[held] / product[held])).sum(), 0.0))
