"""Releasing a sequence symbol by symbol (Algorithm 1 of [3], with any mechanism), with the true leakage of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.belief import Belief, SymbolChain
from tplrepro.sip.checks import check_symbols
from tplrepro.sip.response import BeliefMechanism

__all__ = ["ReleasedSymbol", "release_sequence"]


@dataclass(frozen=True)
class ReleasedSymbol:
    """One release.

    `leakage` is the true instantaneous information leakage in nats, infinite where a mechanism that looks at the
    previous symbol rules some earlier symbols out. `likelihood` (n,), a(output | .), is all that this output tells, but
    for such mechanisms: there it is a(output | ., that symbol), which the adversary does not know.
    """

    symbol: int  # the true one; a batch's number, for batches
    output: int
    leakage: float
    kept: float  # probability that this symbol was to be published unchanged
    likelihood: np.ndarray = field(repr=False)


def release_sequence(
    mechanism: BeliefMechanism, sequence: ArrayLike, chain: SymbolChain, *, rng: np.random.Generator
) -> Iterator[ReleasedSymbol]:
    """Release a sequence online, one symbol after the other, and keep the adversary's belief up to date.

    `sequence` (T,) are symbols 0..n-1, T >= 1, else ValueError; `chain` is what the adversary knows.

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> chain = SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> crr, rng = ConditionalRandomizedResponse(1.0), np.random.default_rng(3)
    >>> [(s.output, round(s.leakage, 3)) for s in release_sequence(crr, [0, 0, 1], chain, rng=rng)]
    [(0, 1.0), (0, 1.073), (1, 1.393)]
    """
    return _releases(mechanism, check_symbols(sequence, chain.n_symbols), chain, rng)


def _releases(mechanism, symbols, chain, rng):
    belief, known, bounded = Belief.start(chain), {}, True
    for symbol in symbols.tolist():
        response = mechanism.response(belief.current, **known)
        output = response.sample(symbol, rng)
        told = response.column(output)
        kept = told if output == symbol else response.column(symbol)
        leakage = response.leakage if bounded else float("inf")
        yield ReleasedSymbol(symbol, output, leakage, float(kept[symbol]), told)
        if mechanism.uses_previous:
            # It has no single matrix: its adversary keeps to the chain.
            belief, known, bounded = belief.unobserved(), {"previous": symbol}, mechanism.same_supports
        else:
            belief = belief.observe(output, response)
