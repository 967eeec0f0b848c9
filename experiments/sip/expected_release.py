"""Exact expectations over all outputs of the first releases of a sequence."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tplrepro.sip.response import BeliefMechanism, Distance
from tplrepro.sip.sequence_release import Belief, SymbolChain
from tplrepro.validation import FrozenArrays, check_horizon


@dataclass(frozen=True, eq=False)
class ExpectedRelease(FrozenArrays):
    """Exact expectations over all inputs and outputs."""

    costs: np.ndarray  # (T,), expected distance at each time
    leakages: np.ndarray  # (T,), the largest true IIL at each time over all outputs before it, nats


def expected_release(
    mechanism: BeliefMechanism, chain: SymbolChain, horizon: int, distance: Distance = "hamming"
) -> ExpectedRelease:
    """Expected costs and largest leakages of T releases, over all n^(T-1) histories of outputs."""
    costs, leakages = np.zeros((2, check_horizon(horizon)))
    histories: Iterable = [(1.0, Belief.start(chain))]
    for k in range(costs.size):
        responses = [
            (weight, belief, mechanism.response(belief.current)) for weight, belief in histories
        ]
        costs[k] = sum(weight * response.cost(distance) for weight, _, response in responses)
        leakages[k] = max(response.leakage for *_, response in responses)
        histories = (  # lazily, as those after the last release are not needed
            (weight * response.marginal[y], belief.observe(int(y), response))
            for weight, belief, response in responses
            for y in np.flatnonzero(response.marginal > 0)
        )
    return ExpectedRelease(costs, leakages)
