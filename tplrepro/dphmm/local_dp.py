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
from tplrepro.markov.filtering import ImpossibleOutputError, condition
from tplrepro.validation import check_distribution, check_level

__all__ = ["LocalMechanism"]


class LocalMechanism:
    """K-norm noise fitted to the neighbourhood of the true state: epsilon-LocalDP, to be attacked, not to be used.

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones, each with a neighbour
    answers : array-like (N, d) or (N,), f
    epsilon : float > 0, nats

    Attributes
    ----------
    mechanisms : dict from each possible state to its KNormMechanism

    Examples
    --------
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
        return self._of(state).sample(self.answers[state], rng=rng)

    def log_density(self, z: ArrayLike, state: int) -> np.ndarray:
        """Log-density of z (..., d) given the state, on the span of the state's own noise."""
        return self._of(state).log_density(z, self.answers[state])

    def explained_by(self, z: ArrayLike) -> np.ndarray:
        """States that can have released z: of those whose span holds z the ones with the smallest span, ascending.

        A value on a line has probability 0 under noise that fills the plane.
        """
        holding = [s for s in self.mechanisms if np.isfinite(self.log_density(z, s))]
        if not holding:
            raise ImpossibleOutputError(
                "a released value must have positive density under some possible state, found zero under all; "
                "give the value as it was released, without rounding"
            )
        dimensions = np.array([self.mechanisms[s].hull.dimension for s in holding])
        return np.array(holding)[dimensions == dimensions.min()]

    def posterior(self, z: ArrayLike, prior: ArrayLike) -> np.ndarray:
        """What the adversary knows after seeing z (d,): Eq. (2) of [5] among `explained_by(z)`, (N,)."""
        p = check_distribution(prior, self.policy.n_states, "prior")
        log_likelihood = np.full(p.size, -np.inf)
        for state in self.explained_by(z).tolist():
            log_likelihood[state] = self.log_density(z, state)
        with np.errstate(divide="ignore"):
            return np.exp(condition(np.log(p), log_likelihood)[0])

    def _of(self, state: int) -> KNormMechanism:
        if state not in self.mechanisms:
            raise ValueError(f"the true state must be possible, found {state}; it is outside the constraint")
        return self.mechanisms[state]
