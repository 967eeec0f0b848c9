"""What releases cost and leak, by enumeration of the outputs or on recorded sequences (section VI of [3])."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.belief import Belief, SymbolChain
from tplrepro.sip.checks import check_distance
from tplrepro.sip.online_release import release_sequence
from tplrepro.sip.response import BeliefMechanism
from tplrepro.validation import check_horizon

__all__ = ["ExpectedRelease", "ReleasedSequences", "expected_release", "grid_distance", "release_sequences"]


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
    level = [(1.0, Belief.start(chain))]
    for k in range(horizon):
        following = []
        for weight, belief in level:
            response = mechanism.response(belief.current)
            costs[k] += weight * response.cost(distance)
            leakages[k] = max(leakages[k], response.leakage)
            if k + 1 < horizon:
                outputs = np.flatnonzero(response.marginal > 0)
                following += [(weight * response.marginal[y], belief.observe(int(y), response)) for y in outputs]
        level = following
    return ExpectedRelease(costs, leakages)


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
    outputs, likelihoods, leakages, kept, far = [], [], [], [], []
    for sequence in sequences:
        steps = list(release_sequence(mechanism, sequence, chain, rng=rng))
        outputs.append(np.array([step.output for step in steps]))
        if keep_likelihoods:
            likelihoods.append(_told(mechanism, steps))
        leakages += [step.leakage for step in steps]
        kept += [step.kept for step in steps]
        if table is not None:
            far += [table[step.symbol, step.output] for step in steps]
    error = 1.0 - float(np.mean(kept))
    cost = float(np.mean(far)) if far else error
    return ReleasedSequences(outputs, likelihoods, error, cost, float(np.mean(leakages)), float(np.max(leakages)))


def _told(mechanism, steps) -> list:
    if not mechanism.uses_previous:
        return [step.likelihood for step in steps]
    return [steps[0].likelihood, *(mechanism.likelihood(step.output) for step in steps[1:])]


def grid_distance(columns: int, rows: int) -> np.ndarray:
    """Euclidean distance between the cells of a grid, numbered along the lines, (cells, cells); unit: one cell.

    >>> grid_distance(2, 2).round(3).tolist()[0]
    [0.0, 1.0, 1.0, 1.414]
    """
    down, across = np.divmod(np.arange(check_horizon(columns, "columns") * check_horizon(rows, "rows")), columns)
    return np.hypot(np.subtract.outer(across, across), np.subtract.outer(down, down))
