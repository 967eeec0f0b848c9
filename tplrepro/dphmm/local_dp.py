"""Local differential privacy on a policy graph, and the attack on it (section 11.5 of [5]).

A mechanism fitted to the true state's neighbourhood alone (Definition 11.1) adds noise whose shape depends on the
secret. The adversary knows the rule: where neighbourhoods span different lines, the released value tells which one it
lies on, and with it the state.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import as_answers
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.markov.filtering import condition
from tplrepro.validation import check_distribution, check_level

__all__ = ["LocalMechanism"]


class LocalMechanism:
    """K-norm noise fitted to the neighbourhood of the true state: epsilon-LocalDP, to be attacked, not to be used.

    Parameters as in `KNormMechanism`, but each possible state has a neighbour; `mechanisms` holds that of each.

    Example 11.2 of [5]: the value released for s_4 (index 3) lies on the line through f(s_4) and f(s_6).

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.from_edges(6, [(3, 5), (4, 5)]).constrain([3, 4, 5])
    >>> local = LocalMechanism(G, f, epsilon=1.0)
    >>> z = local.sample(3, np.random.default_rng(0))
    >>> local.posterior(z, [0, 0, 0, 1 / 3, 1 / 3, 1 / 3]).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, policy: PolicyGraph, answers: ArrayLike, epsilon: float):
        self.policy = policy
        self.answers = as_answers(answers, policy.n_states)
        self.epsilon = check_level(epsilon, "epsilon")
        self.mechanisms = {}
        for state in policy.possible.tolist():
            # Definition 11.1 compares any two states of the neighbourhood, not the true one with each.
            pairs = list(combinations(policy.neighbors(state).tolist(), 2))
            neighbourhood = PolicyGraph.from_edges(policy.n_states, pairs).constrain(policy.neighbors(state))
            self.mechanisms[state] = KNormMechanism(neighbourhood, self.answers, self.epsilon)

    def sample(self, state: int, rng: np.random.Generator) -> np.ndarray:
        """A released value (d,) for the true state."""
        if state not in self.mechanisms:
            raise ValueError(f"the true state must be possible, found {state}; it is outside the constraint")
        return self.mechanisms[state].sample(self.answers[state], rng=rng)

    def log_likelihood(self, z: ArrayLike) -> np.ndarray:
        """Log-density of z (d,) given each state, (N,), on the smallest span that holds z; -inf given other states.

        A value on a line has probability 0 under noise that fills the plane.
        """
        logs = np.full(self.policy.n_states, -np.inf)
        for state, mechanism in self.mechanisms.items():
            logs[state] = mechanism.log_density(z, self.answers[state])
        holding = np.flatnonzero(np.isfinite(logs))
        dimensions = np.array([self.mechanisms[state].hull.dimension for state in holding.tolist()], dtype=float)
        logs[holding[dimensions > dimensions.min(initial=np.inf)]] = -np.inf
        return logs

    def posterior(self, z: ArrayLike, prior: ArrayLike) -> np.ndarray:
        """What the adversary knows after seeing z (d,), (N,): Eq. (2) of [5]. ImpossibleOutputError if none fits."""
        p = check_distribution(prior, self.policy.n_states, "prior")
        with np.errstate(divide="ignore"):
            return np.exp(condition(np.log(p), self.log_likelihood(z))[0])
