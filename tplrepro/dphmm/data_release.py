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
from tplrepro.markov.transition import MatrixLike, TransitionMatrix
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

#: Sets of possible states whose protection is kept: more than a series meets before all states are
#: possible.
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
    """Release the answers about a moving state, one per timestamp (Algorithm 2 of [5]).

    This is `DataRelease(policy, answers, transitions, **options).series(...)`.

    Parameters
    ----------
    states : iterable of int
        The true state at each timestamp, by number.
    policy : PolicyGraph over N states
        G.
    answers : array-like (N, d) or (N,), or a mapping from names of queries to these
        f.
    epsilon : float or array-like (T,), or a mapping from names of queries to these
        The budget of each release in nats, > 0.
    transitions : TransitionMatrix or array-like (N, N), a list of one for each step, or a Cycle
        M, known to the adversary.
    initial : array-like (N,)
        The prior p_1^-.
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for draws that nobody can repeat.
    **options
        The other parameters of `DataRelease`.

    Returns
    -------
    iterator of ReleasedAnswer

    Raises
    ------
    ValueError
        If something does not fit the N states; during the series, for a true state that is
        impossible under the model.
    NoPrivacyError
        During the series, where only one state is possible.

    Examples
    --------
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])
    >>> walk = np.full((6, 6), 1 / 6)
    >>> released = list(release([4, 2], G, f, 1.0, walk, [0, 1 / 3, 1 / 3, 0, 1 / 3, 0], rng=5))
    >>> released[0].added_edges, [answer.z.round(3).tolist() for answer in released]
    ([(1, 4)], [[3.413, 2.729], [1.174, -1.29]])
    """
    data_release = DataRelease(policy, answers, transitions, **options)
    return data_release.series(states, epsilon, initial, rng=rng)


@dataclass(frozen=True, eq=False)
class _Constraint:
    """The states that are considered possible, and whose answer is released for each state."""

    possible: np.ndarray  # (c,) of int
    surrogate: np.ndarray  # (N,) of int, the state itself if it is possible


@dataclass(frozen=True, eq=False)
class _ProtectedQuery:
    """The protection of one query on some possible states."""

    protection: Protection
    factor: float  # by which the constrained epsilon exceeds epsilon


class DataRelease:
    """A protocol for releases: the model of the adversary and the protection of the answers.

    `series` releases the answers of a series of states.

    Parameters
    ----------
    policy : PolicyGraph over N states
        G.
    answers : array-like (N, d) or (N,), or a mapping from names of queries to these
        f. Each query gives a release per timestamp, in their order; the budgets add up (Theorem 7.1
        of [5]). The graph is made protectable for all answers of a state as one vector, so that the
        same state hides an exposed one in each query.
    transitions : TransitionMatrix or array-like (N, N), a list of one for each step, or a Cycle
        M, known to the adversary; a list where the chain changes: one between each two timestamps;
        a Cycle for habits that follow the clock.
    mechanism : str
        "k-norm", "laplace" or "planar isotropic" (the same law as "k-norm").
    method : str
        How the graph is made protectable: "greedy" (Algorithm 1 of [5]), "stepwise" (Algorithm 3)
        or "optimal" (Eq. (5)).
    insisted : PolicyGraph or pairs of states
        Edges that an exposed state gets first.
    excluded_probability : float in [0, 1), optional
        Constrain to the `delta_location_set` instead of the possible states; with a complete policy
        this is the baseline "DPLS". A true state outside is replaced by the state inside with the
        nearest answer.
    skip : bool
        Where only one state is possible, yield None instead of raising NoPrivacyError.
    kept : int
        The size of the cache of protections, one for each set of possible states.

    Raises
    ------
    ValueError
        If something does not fit the N states, or an option is unknown.
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
        self._steps = steps
        self._chain = [as_numbered_chain(matrix) for matrix in steps.matrices]
        self._states: Sequence = range(n)
        if steps.states is not None:
            numbered = common_states([range(n), steps.states], "policy and transitions")
            if numbered is not None:
                self._states = numbered
        queries = _by_query(answers)
        if not queries:
            raise ValueError(
                "answers must be those of one query or more, found an empty mapping; name a query"
            )
        self._queries: dict[str | None, np.ndarray] = {
            name: as_answers(f, self._states) for name, f in queries.items()
        }
        self._answers = np.hstack([*self._queries.values()])
        check_choice(mechanism, "mechanism", MECHANISMS)
        check_choice(method, "method", METHODS)
        if excluded_probability is not None:
            check_probability(excluded_probability, "excluded_probability", one=False)
        self.policy = policy
        self._mechanism = MECHANISMS[mechanism]
        self._method = method
        self._insisted = as_policy(insisted, n)
        self._excluded = excluded_probability
        self._skip = skip
        # They depend on the possible states alone.
        self._protections = lru_cache(maxsize=kept)(self._protect_queries)

    def series(
        self,
        states: Iterable[int],
        epsilon: ArrayLike | Mapping[str, ArrayLike],
        initial: ArrayLike,
        *,
        rng: RngLike,
    ) -> Iterator[ReleasedAnswer | None]:
        """Release one series of true states, which are read one at a time.

        Parameters
        ----------
        states : iterable of int
            The true state at each timestamp, by number.
        epsilon : float or array-like (T,), or a mapping from names of queries to these
            The budget of each release in nats, > 0.
        initial : array-like (N,)
            The prior p_1^-.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for draws that nobody can repeat.

        Returns
        -------
        iterator of ReleasedAnswer
            One per timestamp and query.

        Raises
        ------
        ValueError
            If budgets do not fit the queries; during the series, for a true state that is
            impossible under the model, or if it is longer than budgets or matrices.
        NoPrivacyError
            During the series, where only one state is possible.
        """
        log_prior = log_probabilities(check_distribution(initial, self._states, "initial"))
        epsilons = _by_query(epsilon)
        if epsilons.keys() != self._queries.keys():
            found = f"{[*self._queries]}, found {[*epsilons]}"
            raise ValueError(
                f"epsilon must hold one budget for each of the queries {found}; "
                "give both as mappings"
            )
        budgets = {
            name: frozen(check_budgets(np.atleast_1d(one), "epsilon"))
            for name, one in epsilons.items()
        }
        lengths = [len(budgets[name]) for name in epsilons if np.ndim(epsilons[name])]
        horizon = min(lengths, default=None)
        return self._release_series(states, budgets, horizon, log_prior, as_generator(rng))

    def _release_series(
        self,
        states: Iterable[int],
        budgets: dict[Any, np.ndarray],
        horizon: int | None,
        log_prior: np.ndarray,
        rng: np.random.Generator,
    ) -> Iterator[ReleasedAnswer | None]:
        """Algorithm 2 of [5]: the answers to all queries at each time, or one None for a time that
        is skipped.

        `budgets` holds, for each query, one of each time, or one for all, nats; `horizon` is how
        many times the budgets allow, None for any number. `log_prior` (N,) is that of the first
        state.
        """
        log_posterior = log_prior
        for time, true_state in enumerate(states):
            self._check_length(time, horizon)
            if time > 0:
                log_prior = log_product(log_posterior, self._matrix_of_step(time - 1))
            state = _state_number(true_state, self.policy.n_states)
            constraint = self._constrain(log_prior)
            log_posterior = log_prior
            if self._skip and constraint.possible.size == 1:
                yield None
                continue
            protected = self._protections(tuple(constraint.possible.tolist()))
            surrogate = int(constraint.surrogate[state])
            if surrogate not in constraint.possible:
                found = f"state {state} with prior {np.exp(log_prior[state]):g} at time {time}"
                raise ValueError(
                    f"the true state must be possible under the model, found {found}; "
                    "smooth the model"
                )
            for name, f in self._queries.items():
                protection = protected[name].protection
                budget = budgets[name][time % len(budgets[name])]
                noise = self._mechanism(protection.policy, f, budget, protection.hull)
                z = noise.sample(f[surrogate], rng=rng)
                log_prior = log_posterior
                log_likelihood = noise.log_density(z, f[constraint.surrogate])
                log_posterior, _ = condition_on_output(log_prior, log_likelihood)
                yield ReleasedAnswer(
                    time=time,
                    z=z,
                    log_prior=log_prior,
                    log_posterior=log_posterior,
                    mechanism=noise,
                    added_edges=protection.added_edges,
                    constrained_epsilon=noise.epsilon * protected[name].factor,
                    perturbed_state=surrogate,
                    query=name,
                )

    def _check_length(self, time: int, horizon: int | None) -> None:
        if time == horizon:
            raise ValueError(
                f"epsilon must hold one budget a timestamp, found {time} for a longer series; "
                "give one for all"
            )
        if self._steps.changes and time > len(self._chain):
            raise ValueError(
                "transitions must hold one matrix between each two timestamps, "
                f"found {time - 1}; give one for all"
            )

    def _matrix_of_step(self, step: int) -> TransitionMatrix:
        return self._chain[self._steps.number_of(step)]

    def _constrain(self, log_prior: np.ndarray) -> _Constraint:
        """C_t, the states of positive probability, or the delta-location set; of those that are
        possible under the policy."""
        positive = np.flatnonzero(np.isfinite(log_prior))
        surrogate = np.arange(len(log_prior))
        possible = positive
        if self._excluded is not None:
            possible = delta_location_set(np.exp(log_prior), self._excluded)
            outside = np.setdiff1d(positive, possible)
            surrogate[outside] = self._nearest_states(outside, possible)
        return _Constraint(self.policy.constrain(possible).possible, surrogate)

    def _nearest_states(self, states: np.ndarray, possible: np.ndarray) -> list[int]:
        """The possible state with the nearest answer to each state's, the first of equal ones."""
        tree = cKDTree(self._answers[possible])
        distances, _ = tree.query(self._answers[states])
        tied = tree.query_ball_point(self._answers[states], distances * (1 + TIED))
        return [possible[min(places)] for places in tied]

    def _hide_in_each_query(self, joint: Protection) -> Protection:
        """The protection with further edges for states that no other one hides in every query:
        beside the larger answers of another query, a difference may have counted as rounding."""
        policy = joint.policy
        added: list[tuple[int, int]] = []
        while True:
            exposed = self._exposed_in_some_query(policy)
            if exposed.size == 0:
                break
            edge = self._nearest_pair(int(exposed[0]), policy.possible)
            assert edge not in added
            added.append(edge)
            policy = policy.connect([edge])
        if not added:
            return joint
        gap = np.inf
        if np.isnan(joint.gap):
            gap = np.nan
        return replace(
            joint,
            policy=policy,
            hull=sensitivity_hull(policy, self._answers),
            added_edges=sorted({*joint.added_edges, *added}),
            gap=gap,
        )

    def _exposed_in_some_query(self, policy: PolicyGraph) -> np.ndarray:
        """The possible states of which no other one is within the hull of each query."""
        possible = policy.possible
        is_hidden = np.ones((possible.size, possible.size), dtype=bool)
        for f in self._queries.values():
            hull = sensitivity_hull(policy, f)
            is_hidden &= hull.pairwise_contains(f[possible], f[possible])
        by_itself = is_hidden.sum(axis=1) == 1
        return possible[by_itself]

    def _nearest_pair(self, state: int, possible: np.ndarray) -> tuple[int, int]:
        """A state and the possible one with the nearest answers to all queries, as an edge."""
        others = possible[possible != state]
        differences = self._answers[others] - self._answers[state]
        distances = np.linalg.norm(differences, axis=1)
        other = int(others[np.argmin(distances)])
        return min(state, other), max(state, other)

    def _protect_queries(self, possible: tuple[int, ...]) -> dict[str | None, _ProtectedQuery]:
        """The protection of each query on these possible states, and its constrained DP factor."""
        constrained = self.policy.constrain(possible)
        joint = protect(constrained, self._answers, self._method, self._insisted)
        if len(self._queries) > 1:
            joint = self._hide_in_each_query(joint)
        protected = {}
        for name, f in self._queries.items():
            protection = joint
            if name is not None:
                protection = replace(joint, hull=sensitivity_hull(joint.policy, f))
            body = self._mechanism(protection.policy, f, 1.0, protection.hull).body
            factor = constrained_dp_factor(constrained, f, body)
            protected[name] = _ProtectedQuery(protection, factor)
        return protected


def _by_query(values: Any) -> Mapping[Any, Any]:
    """Values by the names of their queries; without names, those of the one query None."""
    if isinstance(values, Mapping):
        return values
    return {None: values}


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
