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
from tplrepro.sip.response import BeliefMechanism, Response, check_symbols, draw_symbol
from tplrepro.validation import RngLike, as_generator, check_distribution


class _TruthOrDraw(Response):
    """The truth, or with probability `share` a draw from the belief: closed forms make a step 2.5
    times as fast."""

    @cached_property
    def leakage(self) -> float:
        is_possible = self.belief > 0
        possible = self.belief[is_possible]
        if possible.size == 1:
            return 0.0
        b = possible.min()
        told_rarest = 1 - self.share + self.share * b
        raised = np.log(told_rarest) - np.log(b)
        lowered = -np.log(self.share)
        return float(max(raised, lowered))

    def column(self, y: int) -> np.ndarray:
        drawn = self.share * self.belief[self.checked_symbol(y)]
        likelihood = np.full(self.belief.size, drawn)
        likelihood[y] += 1 - self.share
        return likelihood

    def changed(self) -> np.ndarray:
        return self.share * (1.0 - self.belief)

    def sample(self, x: int, *, rng: RngLike) -> int:
        truth = self.checked_symbol(x, true=True)
        rng = as_generator(rng)
        if rng.random() >= self.share:
            return truth
        return draw_symbol(self.belief, rng)


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
        return _TruthOrDraw(
            belief=beta,
            labels=np.arange(beta.size),
            share=float(np.exp(-self.epsilon)),
            base=beta,
            table=np.zeros((1, beta.size)),  # of a class that no symbol is in
            row_class=np.full(beta.size, -1),
        )


def _randomized_response(belief: np.ndarray, support: np.ndarray, epsilon: float) -> Response:
    """Randomised response of `epsilon` nats over the symbols with the numbers `support`; symbols
    outside it are answered by a uniform draw from it."""
    k = support.size
    uniform = np.full(k, 1.0 / k)
    row_class = np.zeros(belief.size, dtype=np.intp)
    row_class[support] = -1
    odds = np.exp(-epsilon)  # of another symbol against the truth
    total = 1.0 + (k - 1) * odds
    share_of_draws = float(k * odds / total)
    return Response(
        belief=belief,
        labels=support,
        share=share_of_draws,
        base=uniform,
        table=uniform[None],
        row_class=row_class,
    )


class RandomizedResponse(BeliefMechanism):
    """k-ary randomised response: x itself with odds e^epsilon against each other symbol;
    epsilon-LDP for each symbol.

    At most log 3 = 1.0986 (Theorem 3 of [3]):

    >>> round(RandomizedResponse(np.log(3)).leakage([0.05, 0.95]), 4)
    1.0647
    """

    def response(self, belief: ArrayLike) -> Response:
        beta = check_distribution(belief, name="a belief")
        all_symbols = np.arange(beta.size)
        return _randomized_response(beta, all_symbols, self.epsilon)


class TemporalRandomizedResponse(BeliefMechanism):
    """Randomised response among the successors of the previous true symbol, with a budget epsilon
    for each symbol.

    The first symbol is answered among all. Outputs rule out earlier symbols, so the sequence leaks
    infinitely unless all rows of the matrix have the same support.

    Parameters
    ----------
    epsilon : float
        The budget of each symbol in nats, > 0.
    transition : TransitionMatrix or array-like (n, n)
        Pr(X_k | X_{k-1}).

    Raises
    ------
    ValueError
        If epsilon is not positive, or the matrix is not row-stochastic.
    """

    uses_previous = True

    def __init__(self, epsilon: float, transition: MatrixLike):
        super().__init__(epsilon)
        self.transition = as_transition_matrix(transition)

    @cached_property
    def same_supports(self) -> bool:
        """Whether all symbols have the same successors."""
        first = self.support(0)
        for x in range(1, self.transition.n_states):
            if not np.array_equal(self.support(x), first):
                return False
        return True

    def likelihood(self, y: int) -> np.ndarray:
        """Pr(y | previous symbol, symbol), (n, n), for an output after the first one."""
        n = self.transition.n_states
        uniform = np.full(n, 1.0 / n)
        rows = []
        for previous in range(n):
            response = self.response(uniform, previous)
            rows.append(response.column(y))
        return np.array(rows)

    def support(self, previous: int) -> np.ndarray:
        """Symbols that can follow `previous`."""
        probabilities = self.transition.row(previous)
        return np.flatnonzero(probabilities > 0)

    def response(self, belief: ArrayLike, previous: int | None = None) -> Response:
        """The response among the successors of the previous symbol.

        Parameters
        ----------
        belief : array-like (n,)
            The distribution of the symbol given the outputs so far.
        previous : int, optional
            The true previous symbol, None for the first one.

        Returns
        -------
        Response

        Raises
        ------
        ValueError
            If the belief is no distribution, or `previous` no symbol.
        """
        n = self.transition.n_states
        beta = check_distribution(belief, self.transition.states, "a belief")
        candidates = np.arange(n)
        if previous is not None:
            candidates = self.support(int(check_symbols([previous], n)[0]))
        return _randomized_response(beta, candidates, self.epsilon)
