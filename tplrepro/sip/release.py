"""Releasing sequences symbol by symbol (Algorithm 1 of [3], with any mechanism): what that costs and leaks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.belief import Belief, SymbolChain
from tplrepro.sip.published import TemporalRandomizedResponse
from tplrepro.sip.response import BeliefMechanism, check_distance, check_symbols
from tplrepro.validation import check_horizon

__all__ = [
    "ExpectedRelease",
    "ReleasedSequences",
    "ReleasedSymbol",
    "expected_release",
    "release_sequence",
    "release_sequences",
]


@dataclass(frozen=True)
class ReleasedSymbol:
    """One release."""

    symbol: int  # the true one; a batch's number, for batches
    output: int
    leakage: float  # true IIL, nats; infinite where a mechanism that uses the previous symbol rules earlier ones out
    kept: float  # probability that this symbol was to be published unchanged
    likelihood: np.ndarray = field(repr=False)  # (n,), a(output | .), given the previous symbol if that is used


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
        yield ReleasedSymbol(symbol, output, response.leakage if bounded else float("inf"), float(kept[symbol]), told)
        if mechanism.uses_previous:
            # It has no single matrix: its adversary keeps to the chain.
            belief, known, bounded = belief.unobserved(), {"previous": symbol}, mechanism.same_supports
        else:
            belief = belief.observe(output, response)


@dataclass(frozen=True)
class ReleasedSequences:
    """What happened to recorded sequences; true leakages of the releases in nats.

    `likelihoods` are all that each output tells an adversary: a(y|.) (n,), or Pr(y | previous symbol, symbol) (n, n)
    for mechanisms that look at the previous symbol.
    """

    outputs: list[np.ndarray]  # one a sequence
    likelihoods: list[list[np.ndarray]]  # T of them a sequence, if they were to be kept
    error: float  # share of symbols that were to be changed
    distance: float  # mean distance between symbols and outputs; the error again without a distance matrix
    mean_leakage: float
    largest_leakage: float


def release_sequences(
    mechanism: BeliefMechanism,
    sequences: Iterable[ArrayLike],
    chain: SymbolChain,
    *,
    rng: np.random.Generator,
    distance: ArrayLike | None = None,
    keep_likelihoods: bool = False,
) -> ReleasedSequences:
    """Release sequences one after the other, each from the start of the chain, and say what that cost and leaked.

    Arguments are as in `release_sequence`; `distance` (n, n) is between symbols.
    """
    table = None if distance is None else check_distance(distance, chain.n_symbols)
    told = cache(mechanism.likelihood) if isinstance(mechanism, TemporalRandomizedResponse) else None
    outputs, likelihoods, measured = [], [], []
    for sequence in sequences:
        steps = list(release_sequence(mechanism, sequence, chain, rng=rng))
        outputs.append(np.array([step.output for step in steps]))
        if keep_likelihoods:
            later = [told(step.output) if told else step.likelihood for step in steps[1:]]
            likelihoods.append([steps[0].likelihood, *later])
        far = [1 - step.kept if table is None else table[step.symbol, step.output] for step in steps]
        measured += [(1 - step.kept, cost, step.leakage) for step, cost in zip(steps, far, strict=True)]
    errors, distances, leakages = np.transpose(measured)
    return ReleasedSequences(
        outputs,
        likelihoods,
        error=float(errors.mean()),
        distance=float(distances.mean()),
        mean_leakage=float(leakages.mean()),
        largest_leakage=float(leakages.max()),
    )


@dataclass(frozen=True)
class ExpectedRelease:
    """Exact expectations over all inputs and outputs."""

    costs: np.ndarray  # (T,), expected distance at each time
    leakages: np.ndarray  # (T,), the largest true IIL at each time over all outputs before it, nats


def expected_release(
    mechanism: BeliefMechanism, chain: SymbolChain, horizon: int, distance: str | ArrayLike = "hamming"
) -> ExpectedRelease:
    """Expected costs and largest leakages of T releases, over all n^(T-1) histories of outputs.

    >>> from tplrepro.sip import OptimalResponse
    >>> chain = SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> found = expected_release(OptimalResponse(1.0), chain, 3)
    >>> found.costs.round(4).tolist(), bool(found.leakages.max() <= 1.0)
    ([0.1839, 0.1547, 0.172], True)
    """
    costs, leakages = np.zeros(check_horizon(horizon)), np.zeros(horizon)
    histories: Iterable = [(1.0, Belief.start(chain))]
    for k in range(horizon):
        found = [(weight, belief, mechanism.response(belief.current)) for weight, belief in histories]
        costs[k] = sum(weight * response.cost(distance) for weight, _, response in found)
        leakages[k] = max(response.leakage for *_, response in found)
        histories = (  # of one output more; those after the last release are not visited
            (weight * response.marginal[y], belief.observe(int(y), response))
            for weight, belief, response in found
            for y in np.flatnonzero(response.marginal > 0)
        )
    return ExpectedRelease(costs, leakages)
