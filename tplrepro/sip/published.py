"""The mechanisms that [3] names: conditional randomised response, and the baselines of section VI.

The paper compares with k-ary randomised response at eps and at 2 eps, because eps-SIP implies 2
eps-LDP (Theorem 3), and with "temporal LDP", which is limited to the successors of the previous
true symbol.
"""

from __future__ import annotations
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import MatrixLike, as_transition_matrix
from tplrepro.sip.response import BeliefMechanism, Response, check_symbols, draw
from tplrepro.validation import RngLike, as_generator, check_distribution


class _TruthOrDraw(Response):
    """The truth, or with probability `share` a draw from the belief: closed forms make a step 2.5
    times as fast."""

    @cached_property
    def leakage(self) -> float:
        possible = self.belief[self.belief > 0]
        b, share = possible.min(), self.share
        return (
            float(max(np.log(1 - share + share * b) - np.log(b), -np.log(share)))
            if possible.size > 1
            else 0.0
        )

    def column(self, y: int) -> np.ndarray:
        likelihood = np.full(self.belief.size, self.share * self.belief[self.checked_symbol(y)])
        likelihood[y] += 1 - self.share
        return likelihood

    def changed(self) -> np.ndarray:
        return self.share * (1.0 - self.belief)

    def sample(self, x: int, *, rng: RngLike) -> int:
        own = self.checked_symbol(x, true=True)
        rng = as_generator(rng)
        return own if rng.random() >= self.share else draw(self.belief, rng)


class ConditionalRandomizedResponse(BeliefMechanism):
    """Conditional randomised response as published (CRR, Theorem 4 and Algorithm 1 of [3]).

    "With probability e^-eps draw from the belief, else tell the truth" (off the diagonal the
    theorem misprints x for y), so the outputs have the distribution of the inputs:

        a(y|x) = beta(y) / e^eps for y != x,   a(x|x) = 1 - (1 - beta(x)) / e^eps.

    It does **not** keep its budget when the smallest positive belief b is below 1 / (e^eps + 1): it
    leaks max(eps, log((e^eps - 1 + b) / (b e^eps))). `OptimalResponse` is the exact optimum of the
    same problem.

    >>> mechanism = ConditionalRandomizedResponse(1.0)
    >>> mechanism.matrix([0.05, 0.95]).round(4).tolist()
    [[0.6505, 0.3495], [0.0184, 0.9816]]
    >>> round(mechanism.leakage([0.05, 0.95]), 3), round(mechanism.response([0.05, 0.95]).cost(), 4)
    (2.566, 0.0349)
    """

    def response(self, belief: ArrayLike) -> Response:
        beta = check_distribution(belief, name="a belief")
        share, nothing = float(np.exp(-self.epsilon)), np.zeros((1, beta.size))
        return _TruthOrDraw(
            beta, np.arange(beta.size), share, beta, nothing, np.full(beta.size, -1)
        )


def _among(belief: np.ndarray, support: np.ndarray, epsilon: float) -> Response:
    """Randomised response over the symbols in `support`; symbols outside it are answered by a
    uniform draw from it."""
    uniform = np.full(support.size, 1.0 / support.size)
    row_class = np.zeros(belief.size, dtype=np.intp)
    row_class[support] = -1
    lie = float(support.size * np.exp(-epsilon) / (1.0 + (support.size - 1) * np.exp(-epsilon)))
    return Response(belief, support, lie, uniform, uniform[None], row_class)


class RandomizedResponse(BeliefMechanism):
    """k-ary randomised response: x itself with odds e^epsilon against each other symbol;
    epsilon-LDP for each symbol.

    >>> round(RandomizedResponse(np.log(3)).leakage([0.05, 0.95]), 4)  # at most log 3 = 1.0986 (Theorem 3 of [3])
    1.0647
    """

    def response(self, belief: ArrayLike) -> Response:
        beta = check_distribution(belief, name="a belief")
        return _among(beta, np.arange(beta.size), self.epsilon)


class TemporalRandomizedResponse(BeliefMechanism):
    """Randomised response among the successors of the previous true symbol, with a budget epsilon
    for each symbol.

    `transition` (n, n) is Pr(X_k | X_{k-1}); the first symbol is answered among all. Outputs rule
    out earlier symbols, so the sequence leaks infinitely unless all rows of the matrix have the
    same support.
    """

    uses_previous = True

    def __init__(self, epsilon: float, transition: MatrixLike):
        super().__init__(epsilon)
        self.transition = as_transition_matrix(transition)

    @cached_property
    def same_supports(self) -> bool:
        """Whether all symbols have the same successors."""
        return len({self.support(x).tobytes() for x in range(self.transition.n_states)}) == 1

    def likelihood(self, y: int) -> np.ndarray:
        """Pr(y | previous symbol, symbol), (n, n), for an output after the first one."""
        n = self.transition.n_states
        return np.array(
            [self.response(np.full(n, 1.0 / n), previous).column(y) for previous in range(n)]
        )

    def support(self, previous: int) -> np.ndarray:
        """Symbols that can follow `previous`."""
        return np.flatnonzero(self.transition.row(previous) > 0)

    def response(self, belief: ArrayLike, previous: int | None = None) -> Response:
        n = self.transition.n_states
        beta = check_distribution(belief, self.transition.states, "a belief")
        among = (
            np.arange(n) if previous is None else self.support(int(check_symbols([previous], n)[0]))
        )
        return _among(beta, among, self.epsilon)
