"""Baselines of section VI of [3]: randomised response under LDP, its temporal variant, and ToPS.

`RandomizedResponse` spends its budget on each symbol alone; over T symbols, LDP adds up, so a budget for the sequence
is split. The paper compares with eps and with 2 eps, because eps-SIP implies 2 eps-LDP (Theorem 3).

`TemporalRandomizedResponse` is what the paper calls temporal LDP: the response is limited to the successors of the
previous true symbol. What it outputs then tells which symbols can have come before: as a statement about the sequence
its leakage is infinite unless all rows of the transition matrix have the same support. `sequence_leakage` measures it.

ToPS (threshold, perturbation, smoothing) is named without parameters, and its reference (Wang et al., CCS 2021) treats
counts, not symbols. Here symbols are numbers 0..n-1; each is touched by one release of budget eps, so a sequence of T
symbols is (T eps)-LDP.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import as_transition_matrix
from tplrepro.mechanisms.randomized_response import KaryRandomizedResponse
from tplrepro.sip.checks import check_symbols
from tplrepro.sip.response import BeliefMechanism, Response
from tplrepro.validation import check_distribution, check_level

__all__ = ["RandomizedResponse", "SupportedResponse", "TemporalRandomizedResponse", "release_tops"]


@dataclass(frozen=True, eq=False)
class SupportedResponse(Response):
    """Randomised response over a support: x itself with odds e^eps; symbols outside it are answered uniformly.

    Attributes
    ----------
    belief : ndarray (n,)
    support : int array (m,), the symbols that may be output
    epsilon : float, nats
    """

    belief: np.ndarray
    support: np.ndarray
    epsilon: float

    @cached_property
    def truth(self) -> float:
        """Share of the time at which the symbol is told as it is; else a uniform one of the support."""
        return KaryRandomizedResponse(self.epsilon, self.support.size).truth

    @cached_property
    def inside(self) -> np.ndarray:
        values = np.zeros(self.n_symbols, dtype=bool)
        values[self.support] = True
        return values

    @cached_property
    def marginal(self) -> np.ndarray:
        outside = self.belief[~self.inside].sum()
        uniform = ((1 - self.truth) * (1.0 - outside) + outside) / self.support.size
        return np.where(self.inside, self.truth * self.belief + uniform, 0.0)

    @cached_property
    def leakage(self) -> float:
        uniform, possible = 1.0 / self.support.size, self.belief[self.support] > 0
        # What an output of the support is told with: its own symbol, another one of the support, one outside it.
        told = np.array([[(1 - self.truth) * uniform + self.truth], [(1 - self.truth) * uniform], [uniform]])
        outside = np.full(possible.size, (self.belief[~self.inside] > 0).any())
        occurs = np.array([possible, possible.sum() - possible > 0, outside])
        ratios = told / self.marginal[self.support]
        return float(np.abs(np.log(ratios[occurs])).max(initial=0.0))

    def row(self, x: int) -> np.ndarray:
        told = self.truth if self.inside[x] else 0.0
        values = np.where(self.inside, (1 - told) / self.support.size, 0.0)
        values[x] += told
        return values

    def column(self, y: int) -> np.ndarray:
        if not self.inside[y]:
            return np.zeros(self.n_symbols)
        values = np.where(self.inside, 1 - self.truth, 1.0) / self.support.size
        values[y] += self.truth
        return values

    def kept(self) -> np.ndarray:
        return np.where(self.inside, (1 - self.truth) / self.support.size + self.truth, 0.0)


class RandomizedResponse(BeliefMechanism):
    """k-ary randomised response: the symbol itself with odds e^epsilon against each other one; epsilon-LDP.

    Parameters
    ----------
    epsilon : float, budget of one symbol, nats

    Examples
    --------
    >>> round(RandomizedResponse(np.log(3)).leakage([0.05, 0.95]), 4)  # at most log 3 = 1.0986 (Theorem 3 of [3])
    1.0647
    """

    def response(self, belief: ArrayLike) -> SupportedResponse:
        beta = check_distribution(belief, name="a belief")
        return SupportedResponse(beta, np.arange(beta.size), self.epsilon)


class TemporalRandomizedResponse(BeliefMechanism):
    """Randomised response among the successors of the previous true symbol (the "temporal LDP" baseline of [3]).

    Parameters
    ----------
    epsilon : float, budget of one symbol, nats
    transition : TransitionMatrix or array-like (n, n), Pr(X_k | X_{k-1})
    """

    uses_previous = True

    def __init__(self, epsilon: float, transition: ArrayLike):
        super().__init__(epsilon)
        self.transition = as_transition_matrix(transition)

    @cached_property
    def same_supports(self) -> bool:
        """Whether all symbols have the same successors: otherwise an output rules earlier symbols out."""
        first = self.support(0)
        return all(np.array_equal(self.support(x), first) for x in range(1, self.transition.n_states))

    def likelihood(self, y: int) -> np.ndarray:
        """Pr(y | previous symbol, symbol), (n, n): what an output after the first one tells."""
        n = self.transition.n_states
        uniform = np.full(n, 1.0 / n)
        return np.array([self.response(uniform, previous).column(y) for previous in range(n)])

    def support(self, previous: int | None) -> np.ndarray:
        """Symbols that can follow `previous`; all of them at the first time."""
        if previous is None:
            return np.arange(self.transition.n_states)
        return np.flatnonzero(self.transition.row(previous) > 0)

    def response(self, belief: ArrayLike, previous: int | None = None) -> SupportedResponse:
        beta = check_distribution(belief, self.transition.n_states, "a belief")
        return SupportedResponse(beta, self.support(previous), self.epsilon)


def release_tops(
    sequence: ArrayLike,
    n_symbols: int,
    epsilon: float,
    *,
    rng: np.random.Generator,
    warm_up: int = 5,
    quantile: float = 0.95,
    smoothing: float = 0.5,
) -> np.ndarray:
    """Release a sequence of symbols 0..n-1 with ToPS.

    1. Threshold: the first symbols are released with Laplace noise of scale (n - 1)/eps; a quantile of them is the
       threshold t.
    2. Perturbation: later symbols are cut off at t and go through a binary hierarchy over 0..t, randomised response
       with an equal share of the budget at each level.
    3. Smoothing: an exponential moving average over the outputs, rounded; this is post-processing.

    Parameters
    ----------
    sequence : array-like (T,)
    n_symbols : int
    epsilon : float, budget of one symbol, nats
    rng : numpy.random.Generator
    warm_up : int, symbols spent on the threshold
    quantile : float in (0, 1], of the noisy first symbols
    smoothing : float in (0, 1], weight of the newest output; 1: no smoothing

    Returns
    -------
    int array (T,)

    Raises
    ------
    ValueError
        For an empty sequence, symbols out of range, or a parameter out of range.

    Examples
    --------
    >>> release_tops([3] * 8, 8, 50.0, rng=np.random.default_rng(0)).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3]
    """
    budget, symbols = check_level(epsilon, "epsilon"), check_symbols(sequence, n_symbols)
    for name, value in (("quantile", quantile), ("smoothing", smoothing)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} must be in (0, 1], found {value}; give such as 0.5")
    first, largest = symbols[:warm_up], n_symbols - 1
    noisy = first + rng.laplace(0.0, max(largest, 1) / budget, first.size)
    threshold = int(np.clip(np.ceil(np.quantile(noisy, quantile)), min(1, largest), largest))
    perturbed = np.concatenate([np.clip(noisy, 0, largest), _hierarchy(symbols[warm_up:], threshold, budget, rng)])
    smooth, state = np.empty(symbols.size), perturbed[0]
    for k, value in enumerate(perturbed):
        state += smoothing * (value - state)
        smooth[k] = state
    return np.clip(np.rint(smooth), 0, largest).astype(np.int64)


def _hierarchy(symbols, threshold, epsilon, rng):
    """Binary digits of the truncated symbols, each flipped by randomised response with an equal share of the budget."""
    if not symbols.size or threshold == 0:
        return np.zeros(symbols.size)
    levels = int(threshold).bit_length()
    digits = np.minimum(symbols, threshold)[:, None] >> np.arange(levels) & 1
    flip = rng.random(digits.shape) < 1.0 / (1.0 + np.exp(epsilon / levels))
    return np.minimum(((digits ^ flip) << np.arange(levels)).sum(axis=1), threshold).astype(float)
