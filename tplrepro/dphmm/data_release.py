"""Release of a series of answers (Algorithm 2 of [5]), also on delta-location sets (Theorem 4.1).

At each timestamp: the prior p_t^- gives the possible states C_t; the policy graph constrained to
them is made protectable (section 6.1); a mechanism fitted to it releases z_t; Eq. (2) gives the
posterior p_t^+ and the chain the next prior. The adversary knows all but the true state and the
noise. Beliefs are kept as logarithms, so that a state stays possible however unlikely it has
become.
"""

from __future__ import annotations
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from tplrepro.dphmm.constraint import (
    TIED,
    as_answers,
    as_numbered_chain,
    check_states,
    delta_location_set,
)
from tplrepro.dphmm.hull import sensitivity_hull
from tplrepro.dphmm.mechanisms import MECHANISMS, KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import METHODS, Protection, as_policy, constrained_dp_factor, protect
from tplrepro.markov.filtering import (
    as_chain_steps,
    condition_on_output,
    log_probabilities,
    log_product,
)
from tplrepro.markov.transition import MatrixLike
from tplrepro.validation import (
    FrozenArrays,
    RngLike,
    as_generator,
    check_budgets,
    check_choice,
    check_distribution,
    check_probability,
    common_states,
    frozen,
)

#: Sets of possible states whose protection is kept: more than a series meets before all states are possible.
KEPT = 128


@dataclass(frozen=True, eq=False)
class ReleasedAnswer(FrozenArrays):
    """One release. With several queries, the prior of each but the first is the posterior of the
    query before it."""

    time: int  # from 0
    z: np.ndarray  # (d,), the released value
    log_prior: np.ndarray  # (N,), log p_t^-; -inf for impossible states
    log_posterior: np.ndarray  # (N,), log p_t^+
    mechanism: KNormMechanism  # on the protectable graph of the possible states
    added_edges: list[tuple[int, int]]  # those that made the graph protectable
    # nats: the most loss between any two possible states (Theorem 6.3 of [5])
    constrained_epsilon: float
    # secret: the true state, or its surrogate if it is not among the possible ones
    perturbed_state: int
    query: str | None = None  # its name, None if there is only one

    @property
    def prior(self) -> np.ndarray:
        return np.exp(self.log_prior)

    @property
    def posterior(self) -> np.ndarray:
        return np.exp(self.log_posterior)

    @property
    def policy(self) -> PolicyGraph:
        return self.mechanism.policy


def release(
    states: Iterable[int],
    policy: PolicyGraph,
    answers: ArrayLike | Mapping[str, ArrayLike],
    epsilon: ArrayLike | Mapping[str, ArrayLike],
    transitions: MatrixLike | Sequence,
    initial: ArrayLike,
    *,
    rng: RngLike,
    **options: Any,
) -> Iterator[ReleasedAnswer | None]:
    """Release the answers about a moving state, one per timestamp (Algorithm 2 of [5]):
    `DataRelease(...).series(...)`.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])
    >>> walk = np.full((6, 6), 1 / 6)
    >>> released = list(release([4, 2], G, f, 1.0, walk, [0, 1 / 3, 1 / 3, 0, 1 / 3, 0], rng=5))
    >>> released[0].added_edges, [answer.z.round(3).tolist() for answer in released]
    ([(1, 4)], [[3.413, 2.729], [1.174, -1.29]])
    """
    return DataRelease(policy, answers, transitions, **options).series(
        states, epsilon, initial, rng=rng
    )


class DataRelease:
    """What the adversary knows, and how answers are protected; `series` releases a series of
    states.

    Parameters
    ----------
    policy : PolicyGraph over N states, G
    answers : array-like (N, d) or (N,), f; or a mapping from names of queries to their answers
        Each query gives a release per timestamp, in their order; the budgets add up (Theorem 7.1 of [5]). The
        graph is made protectable for all answers of a state as one vector, so that the same state hides an
        exposed one in each query.
    transitions : TransitionMatrix or array-like (N, N), M, known to the adversary; or a list of them, where the
        chain changes: one between each two timestamps
    mechanism : "k-norm", "laplace" or "planar isotropic" (the same law as "k-norm")
    method, insisted : as in `protectable_graph`
    excluded_probability : float in [0, 1), optional
        Constrain to the `delta_location_set` instead of the possible states; with a complete policy this is
        the baseline "DPLS". A true state outside is replaced by the state inside with the nearest answer.
    skip : where only one state is possible, yield None instead of raising NoPrivacyError
    kept : int, the size of the cache of protections, one for each set of possible states
    """

    def __init__(
        self,
        policy: PolicyGraph,
        answers: ArrayLike | Mapping[str, ArrayLike],
        transitions: MatrixLike | Sequence,
        *,
        mechanism: str = "k-norm",
        method: str = "greedy",
        insisted: PolicyGraph | Iterable = (),
        excluded_probability: float | None = None,
        skip: bool = False,
        kept: int = KEPT,
    ):
        n = policy.n_states
        steps = as_chain_steps(transitions)
        self._changes = steps.changes
        self._chain = [as_numbered_chain(matrix) for matrix in steps.matrices]
        states = steps.states
        states = (
            range(n)
            if states is None
            else common_states([range(n), states], "policy and transitions")
        )
        self._states = states
        queries = answers if isinstance(answers, Mapping) else {None: answers}
        if not queries:
            raise ValueError(
                "answers must be those of one query or more, found an empty mapping; name a query"
            )
        self._queries: dict[str | None, np.ndarray] = {
            name: as_answers(f, states) for name, f in queries.items()
        }
        self._answers = np.hstack([*self._queries.values()])
        check_choice(mechanism, "mechanism", MECHANISMS)
        check_choice(method, "method", METHODS)
        if excluded_probability is not None:
            check_probability(excluded_probability, "excluded_probability", one=False)
        self.policy, self._kind, self._method = policy, MECHANISMS[mechanism], method
        self._insisted = as_policy(insisted, n)
        self._excluded, self._skip = excluded_probability, skip
        # depend on the possible states alone
        self._protections = lru_cache(maxsize=kept)(self._protecting)

    def series(
        self,
        states: Iterable[int],
        epsilon: ArrayLike | Mapping[str, ArrayLike],
        initial: ArrayLike,
        *,
        rng: RngLike,
    ) -> Iterator[ReleasedAnswer | None]:
        """Release one series of true states, which are read one at a time.

        `epsilon`, nats, is the budget of each release, one number or (T,), or a mapping from
        queries to those; `initial` (N,) is the prior p_1^-. During the series, ValueError for a
        true state that is impossible under the model, and NoPrivacyError where only one state is
        possible.
        """
        log_prior = log_probabilities(check_distribution(initial, self._states, "initial"))
        epsilons: Mapping[Any, Any] = epsilon if isinstance(epsilon, Mapping) else {None: epsilon}
        if epsilons.keys() != self._queries.keys():
            found = f"{[*self._queries]}, found {[*epsilons]}"
            raise ValueError(
                f"epsilon must hold one budget for each of the queries {found}; give both as mappings"
            )
        budgets = {
            name: frozen(check_budgets(np.atleast_1d(one), "epsilon"))
            for name, one in epsilons.items()
        }
        lengths = [len(budgets[name]) for name in epsilons if np.ndim(epsilons[name])]
        return self._steps(
            states, budgets, min(lengths, default=None), log_prior, as_generator(rng)
        )

    def _steps(
        self,
        states: Iterable[int],
        budgets: dict[Any, np.ndarray],
        horizon: int | None,
        log_posterior: np.ndarray,
        rng: np.random.Generator,
    ) -> Iterator[ReleasedAnswer | None]:
        for time, true_state in enumerate(states):
            if time == horizon:
                raise ValueError(
                    f"epsilon must hold one budget a timestamp, found {time} for a longer series; give one for all"
                )
            if self._changes and time > len(self._chain):
                raise ValueError(
                    f"transitions must hold one matrix between each two timestamps, found {time - 1}; give one for all"
                )
            log_prior = log_posterior
            if time:
                log_prior = log_product(
                    log_posterior, self._chain[time - 1 if self._changes else 0]
                )
            state = _state_number(true_state, self.policy.n_states)
            possible, perturbed = self._constraint(log_prior)
            possible = self.policy.constrain(possible).possible
            log_posterior = log_prior
            if self._skip and possible.size == 1:
                yield None
                continue
            protections = self._protections(tuple(possible.tolist()))
            if perturbed[state] not in possible:
                found = f"state {state} with prior {np.exp(log_prior[state]):g} at time {time}"
                raise ValueError(
                    f"the true state must be possible under the model, found {found}; smooth the model"
                )
            for name, f in self._queries.items():
                protection, factor = protections[name]
                budget = budgets[name][time % len(budgets[name])]
                noise = self._kind(protection.policy, f, budget, protection.hull)
                z = noise.sample(f[perturbed[state]], rng=rng)
                log_prior = log_posterior
                log_posterior, _ = condition_on_output(
                    log_prior, noise.log_density(z, f[perturbed])
                )
                loss = noise.epsilon * factor
                edges, hidden = protection.added_edges, int(perturbed[state])
                yield ReleasedAnswer(
                    time, z, log_prior, log_posterior, noise, edges, loss, hidden, name
                )

    def _constraint(self, log_prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The possible states, and for each state the state whose answer is released in its
        place."""
        positive, perturbed = np.flatnonzero(np.isfinite(log_prior)), np.arange(len(log_prior))
        if self._excluded is None:
            return positive, perturbed
        possible = delta_location_set(np.exp(log_prior), self._excluded)
        outside = np.setdiff1d(positive, possible)
        near = cKDTree(self._answers[possible])
        nearest = near.query(self._answers[outside])[0] * (1 + TIED)
        equal = near.query_ball_point(self._answers[outside], nearest)
        perturbed[outside] = possible[[min(each) for each in equal]]
        return possible, perturbed

    def _protecting(self, possible: tuple[int, ...]) -> dict[str | None, tuple[Protection, float]]:
        """For each query the protection of the policy on these states, and its constrained DP
        factor."""
        constrained = self.policy.constrain(possible)
        joint = protect(constrained, self._answers, self._method, self._insisted)
        protections = {}
        for name, f in self._queries.items():
            protection = (
                joint if name is None else replace(joint, hull=sensitivity_hull(joint.policy, f))
            )
            body = self._kind(protection.policy, f, 1.0, protection.hull).body
            protections[name] = protection, constrained_dp_factor(constrained, f, body)
        return protections


def _state_number(true_state: Any, n_states: int) -> int:
    """A true state as the number of its row of answers."""
    if np.size(true_state) != 1:
        raise ValueError(
            f"each true state must be the number of a state, 0..{n_states - 1}, "
            f"found {np.size(true_state)} numbers; give the row of the position in answers, "
            "not its coordinates"
        )
    (number,) = check_states([np.ravel(true_state)[0]], n_states, "true state")
    return int(number)
