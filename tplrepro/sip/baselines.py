"""Baselines of section VI of [3]: randomised response under LDP, and its temporal variant.

`RandomizedResponse` spends its budget on each symbol alone; over T symbols, LDP adds up, so a budget for the
sequence is split (`tplrepro.sip.split_budget`). The paper compares with eps and with 2 eps, because eps-SIP
implies 2 eps-LDP (Theorem 3).

`TemporalRandomizedResponse` is what the paper calls temporal LDP: the response is limited to the successors
of the previous true symbol. What it outputs then tells which symbols can have come before: as a statement
about the sequence its leakage is infinite unless all rows of the transition matrix have the same support.
`sequence_leakage` measures it.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tplrepro.markov.transition import as_transition_matrix
from tplrepro.sip.leakage import check_belief
from tplrepro.sip.response import Mechanism, Response

__all__ = ["RandomizedResponse", "SupportedResponse", "TemporalRandomizedResponse"]


@dataclass(frozen=True, eq=False)
class SupportedResponse(Response):
    """Randomised response over a support: x itself with odds e^eps; symbols outside it are answered uniformly.

    Parameters
    ----------
    belief : ndarray (n,)
    support : int array (m,), the symbols that may be output
    epsilon : float, nats
    """

    belief: np.ndarray
    support: np.ndarray
    epsilon: float

    @property
    def truth(self) -> float:
        """Share of the time at which the symbol is told as it is; else a uniform one of the support."""
        size = self.support.size
        return float(-np.expm1(-self.epsilon) / (1.0 + (size - 1) * np.exp(-self.epsilon)))

    @cached_property
    def inside(self) -> np.ndarray:
        values = np.zeros(self.n_symbols, dtype=bool)
        values[self.support] = True
        return values

    @property
    def output(self) -> np.ndarray:
        """Distribution of the output over the support, (m,)."""
        outside = self.belief[~self.inside].sum()
        uniform = 1.0 / self.support.size
        told = self.truth * self.belief[self.support]
        return told + uniform * ((1 - self.truth) * (1.0 - outside) + outside)

    @property
    def marginal(self) -> np.ndarray:
        values = np.zeros(self.n_symbols)
        values[self.support] = self.output
        return values

    @cached_property
    def leakage(self) -> float:
        """True instantaneous information leakage under the belief, nats; O(n)."""
        uniform, output, belief = 1.0 / self.support.size, self.output, self.belief[self.support]
        possible = belief > 0
        others = possible.sum() - possible  # possible symbols of the support besides the output itself
        logs = [np.log(((1 - self.truth) * uniform + self.truth) / output[possible])]
        logs.append(np.log((1 - self.truth) * uniform / output[others > 0]))
        if (self.belief[~self.inside] > 0).any():
            logs.append(np.log(uniform / output))
        return float(max(np.abs(values).max(initial=0.0) for values in logs))

    def row(self, x):
        values = np.zeros(self.n_symbols)
        told = self.truth if self.inside[x] else 0.0
        values[self.support] = (1 - told) / self.support.size
        values[x] += told
        return values

    def column(self, y):
        if not self.inside[y]:
            return np.zeros(self.n_symbols)
        values = np.where(self.inside, (1 - self.truth) / self.support.size, 1.0 / self.support.size)
        values[y] += self.truth
        return values

    def kept(self):
        return np.where(self.inside, (1 - self.truth) / self.support.size + self.truth, 0.0)


class RandomizedResponse(Mechanism):
    """k-ary randomised response: the symbol itself with odds e^epsilon against each other one; epsilon-LDP.

    Parameters
    ----------
    epsilon : float, budget of one symbol, nats

    Examples
    --------
    >>> mechanism = RandomizedResponse(np.log(3))
    >>> mechanism.matrix([0.5, 0.5]).round(6).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    >>> round(mechanism.leakage([0.05, 0.95]), 4)  # never more than log 3 = 1.0986 (Theorem 3 of [3])
    1.0647
    """

    def response(self, belief) -> SupportedResponse:
        beta = check_belief(belief)
        return SupportedResponse(beta, np.arange(beta.size), self.epsilon)


class TemporalRandomizedResponse(Mechanism):
    """Randomised response among the successors of the previous true symbol (the "temporal LDP" baseline of [3]).

    Parameters
    ----------
    epsilon : float, budget of one symbol, nats
    transition : TransitionMatrix or array-like (n, n), Pr(X_k | X_{k-1})
    """

    uses_previous = True

    def __init__(self, epsilon: float, transition):
        super().__init__(epsilon)
        self.transition = as_transition_matrix(transition)

    @cached_property
    def same_supports(self) -> bool:
        """Whether all symbols have the same successors: otherwise an output rules earlier symbols out."""
        matrix = self.transition.probabilities
        if not self.transition.is_sparse or self.transition.background.any():
            possible = np.asarray(self.transition) > 0
            return bool((possible == possible[0]).all())
        matrix = matrix.copy()
        matrix.eliminate_zeros()
        first = np.sort(matrix.indices[: matrix.indptr[1]])
        rows = (np.sort(part) for part in np.split(matrix.indices, matrix.indptr[1:-1]))
        return all(np.array_equal(row, first) for row in rows)

    def likelihood(self, y: int) -> np.ndarray:
        """Pr(y | previous symbol, symbol), (n, n): what an output after the first one tells."""
        n = self.transition.n_states
        uniform = np.full(n, 1.0 / n)
        return np.array([self.response(uniform, previous).column(y) for previous in range(n)])

    def support(self, previous: int | None) -> np.ndarray:
        """Symbols that can follow `previous`; all of them at the first time or after a symbol that is never left."""
        if previous is None:
            return np.arange(self.transition.n_states)
        row = self.transition.row(previous)
        return np.flatnonzero(row > 0)

    def response(self, belief, previous: int | None = None) -> SupportedResponse:
        beta = check_belief(belief, self.transition.n_states)
        return SupportedResponse(beta, self.support(previous), self.epsilon)
