"""Conditional randomised response as published (CRR, Theorem 4 and Algorithm 1 of [3]).

Off the diagonal the theorem misprints x for y; what is meant,

    a(y|x) = beta(y) / e^eps for y != x,   a(x|x) = 1 - (1 - beta(x)) / e^eps,

is the mixture "with probability e^-eps draw from the belief, else tell the truth". Its outputs have the distribution of
its inputs, but its leakage is max(eps, log((e^eps - 1 + b) / (b e^eps))) with b the smallest positive belief: more than
eps as soon as b < 1 / (e^eps + 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.response import BeliefMechanism, Response, draw
from tplrepro.validation import check_distribution

__all__ = ["ConditionalRandomizedResponse"]


class ConditionalResponse(Response):
    """The truth or a draw from the belief; sampled in this order."""

    def sample(self, x: int, rng: np.random.Generator) -> int:
        own = self.checked_symbol(x)
        return own if rng.random() >= self.share else draw(self.belief, rng)


class ConditionalRandomizedResponse(BeliefMechanism):
    """Conditional randomised response as published (Theorem 4, Algorithm 1 of [3]).

    It does **not** keep its budget when a positive belief is below 1 / (e^epsilon + 1); `leakage` says what it leaks.
    `OptimalResponse` is the exact optimum of the same problem.

    >>> mechanism = ConditionalRandomizedResponse(1.0)
    >>> mechanism.matrix([0.05, 0.95]).round(4).tolist()
    [[0.6505, 0.3495], [0.0184, 0.9816]]
    >>> round(mechanism.leakage([0.05, 0.95]), 3), round(mechanism.response([0.05, 0.95]).cost(), 4)
    (2.566, 0.0349)
    """

    def response(self, belief: ArrayLike) -> ConditionalResponse:
        beta = check_distribution(belief, name="a belief")
        n = beta.size
        share = float(np.exp(-self.epsilon))
        return ConditionalResponse(beta, np.arange(n), share, np.zeros((1, n)), np.full(n, -1))
