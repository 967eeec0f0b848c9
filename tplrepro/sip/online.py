"""Releasing a sequence symbol by symbol (Algorithm 1 of [3], with any mechanism), each release with its true leakage.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tplrepro.sip.belief import Belief, SymbolChain

__all__ = ["Release", "release"]


@dataclass(frozen=True)
class Release:
    """One release.

    Attributes
    ----------
    symbol : int, the true symbol (a batch's number, for batches)
    output : int, what is published
    leakage : float, the true instantaneous information leakage, nats; infinite where a mechanism that looks at the
        previous symbol rules some earlier symbols out
    kept : float, probability that this symbol was to be published unchanged
    likelihood : ndarray (n,), a(output | .): all that this output tells, but for mechanisms that look at the previous
        symbol (there it is a(output | ., that symbol), which the adversary does not know)
    """

    symbol: int
    output: int
    leakage: float
    kept: float
    likelihood: np.ndarray = field(repr=False)


def release(mechanism, sequence, chain: SymbolChain, rng: np.random.Generator) -> Iterator[Release]:
    """Release a sequence online: a generator of `Release`, one a symbol, that keeps the adversary's belief up to date.

    Parameters
    ----------
    mechanism : Mechanism
    sequence : array-like (T,) of symbols 0..n-1, T >= 1
    chain : SymbolChain, what the adversary knows
    rng : numpy Generator

    Raises
    ------
    ValueError
        For an empty sequence or an unknown symbol.

    Examples
    --------
    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> chain = SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> steps = list(release(ConditionalRandomizedResponse(1.0), [0, 0, 1], chain, np.random.default_rng(3)))
    >>> [(s.output, round(s.leakage, 3)) for s in steps]
    [(0, 1.0), (0, 1.073), (1, 1.393)]
    """
    symbols = np.asarray(sequence)
    if symbols.ndim != 1 or symbols.size == 0:
        raise ValueError(f"a sequence must hold at least one symbol, found shape {symbols.shape}; leave empty ones out")
    if symbols.min() < 0 or symbols.max() >= chain.n_symbols:
        raise ValueError(
            f"symbols must be 0..{chain.n_symbols - 1}, found {symbols.min()} to {symbols.max()}; check them"
        )
    return _steps(mechanism, symbols, chain, rng)


def _steps(mechanism, symbols, chain, rng):
    belief, previous = Belief.start(chain), None
    uses_previous = getattr(mechanism, "uses_previous", False)
    for symbol in symbols.tolist():
        current = belief.current
        response = mechanism.response(current, previous=previous) if uses_previous else mechanism.response(current)
        output = response.sample(symbol, rng)
        told = response.column(output)
        kept = told if output == symbol else response.column(symbol)
        bounded = not uses_previous or previous is None or mechanism.same_supports
        yield Release(symbol, output, response.leakage if bounded else float("inf"), float(kept[symbol]), told)
        # A mechanism that looks at the true previous symbol has no single matrix: its adversary keeps to the chain.
        belief = Belief(chain, chain.predict(belief.weights)) if uses_previous else belief.observe(output, response)
        previous = symbol
