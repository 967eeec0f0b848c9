"""The mechanism that section 11.5 of [5] attacks: local differential privacy on the true state's
neighbourhood."""

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import as_answers
from tplrepro.dphmm.mechanisms import MECHANISMS
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.markov.filtering import condition_on_output, log_probabilities
from tplrepro.validation import check_choice, check_distribution


class LocalMechanism:
    """Noise fitted to the neighbourhood of the true state alone.

    It is epsilon-LocalDP (Definition 11.1 of [5]), but the shape of its noise depends on the
    secret: where neighbourhoods span different lines, K-norm noise tells which one it lies on, and
    with it the state. `answers` (N, d) are f(s) of all states, `epsilon` is in nats, and
    `mechanism` is a name in `MECHANISMS`; `mechanisms` holds the one of each possible state.

    Example 11.2 of [5]: the value released for s_4 (index 3) lies on the line through f(s_4) and
    f(s_6).
    """

    def __init__(
        self, policy: PolicyGraph, answers: ArrayLike, epsilon: float, mechanism: str = "k-norm"
    ):
        check_choice(mechanism, "mechanism", MECHANISMS)
        self.policy = policy
        self.answers = as_answers(answers, policy.n_states)
        # Definition 11.1 compares any two states of the neighbourhood, not the true one with each.
        complete = PolicyGraph.complete(policy.n_states)
        self.mechanisms = {
            state: MECHANISMS[mechanism](
                complete.constrain([state, *policy.graph.neighbors(state)]), self.answers, epsilon
            )
            for state in policy.possible.tolist()
        }

    def sample(self, state: int, *, rng: np.random.Generator) -> np.ndarray:
        """A released value (d,) for the true state."""
        if state not in self.mechanisms:
            raise ValueError(
                f"the true state must be possible, found {state}; it is outside the constraint"
            )
        return self.mechanisms[state].sample(self.answers[state], rng=rng)

    def log_likelihood(self, z: ArrayLike) -> np.ndarray:
        """Log-density of z (d,) given each state, (N,), on the smallest span that holds z; -inf
        given other states.

        A value on a line has probability 0 under noise that fills the plane.
        """
        logs = np.full(self.policy.n_states, -np.inf)
        for state, mechanism in self.mechanisms.items():
            logs[state] = mechanism.log_density(z, self.answers[state])
        fitting = np.flatnonzero(np.isfinite(logs))
        dimensions = np.array([self.mechanisms[state].body.dimension for state in fitting])
        if fitting.size:
            logs[fitting[dimensions > dimensions.min()]] = -np.inf
        return logs

    def posterior(self, z: ArrayLike, prior: ArrayLike) -> np.ndarray:
        """What the adversary knows after seeing z (d,), (N,): Eq. (2) of [5]. ImpossibleOutputError
        if none fits."""
        p = check_distribution(prior, self.policy.n_states, "prior")
        return np.exp(condition_on_output(log_probabilities(p), self.log_likelihood(z))[0])
