"""Exact expectations over all outputs of the first releases of a sequence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tplrepro.sip.response import BeliefMechanism, Distance, Response
from tplrepro.sip.sequence_release import Belief, SymbolChain
from tplrepro.validation import FrozenArrays, check_horizon


@dataclass(frozen=True, eq=False)
class ExpectedRelease(FrozenArrays):
    """Exact expectations over all inputs and outputs."""

    costs: np.ndarray  # (T,), expected distance at each time
    leakages: np.ndarray  # (T,), the largest true IIL at each time over all outputs before it, nats


@dataclass(frozen=True, eq=False)
class History:
    """Outputs up to a time: their probability, and the belief after them."""

    probability: float
    belief: Belief

    def continued(self, response: Response) -> Iterator["History"]:
        """One history for each output that is possible next."""
        for y in np.flatnonzero(response.marginal > 0):
            probability = self.probability * response.marginal[y]
            yield History(probability, self.belief.observe(int(y), response))


def continue_all(histories: Sequence[History], responses: Sequence[Response]) -> list[History]:
    """All histories by one output longer, each after its own response."""
    return [
        following
        for history, response in zip(histories, responses, strict=True)
        for following in history.continued(response)
    ]


def expected_release(
    mechanism: BeliefMechanism, chain: SymbolChain, horizon: int, distance: Distance = "hamming"
) -> ExpectedRelease:
    """Expected costs and largest leakages of T = `horizon` releases, over all n^(T-1) histories of
    outputs; `distance` is the cost of an output for a symbol."""
    costs = np.zeros(check_horizon(horizon))
    leakages = np.zeros(costs.size)
    histories = [History(1.0, Belief.start(chain))]
    responses: list[Response] = []
    for k in range(costs.size):
        if k > 0:
            histories = continue_all(histories, responses)
        responses = [mechanism.response(history.belief.current) for history in histories]
        costs[k] = sum(
            history.probability * response.cost(distance)
            for history, response in zip(histories, responses, strict=True)
        )
        leakages[k] = max(response.leakage for response in responses)
    return ExpectedRelease(costs, leakages)
