"""Release of a series of answers (Algorithm 2 of [5]), and of the baseline on delta-location sets (Theorem 4.1).

At each timestamp: the prior p_t^- gives the possible states C_t; the policy graph constrained to them is made
protectable (section 6.1); a mechanism fitted to it releases z_t; Eq. (2) gives p_t^+ and the chain the next prior. All
but the true state and the noise is known to the adversary. Beliefs are kept as logarithms, so that a state stays
possible however unlikely it has become.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from tplrepro.dphmm.constraint import as_answers, as_numbered_chain, check_share, check_states, delta_location_set
from tplrepro.dphmm.hull import sensitivity_hull
from tplrepro.dphmm.mechanisms import MECHANISMS, KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import METHODS, Protection, as_policy, constrained_dp_factor, protect
from tplrepro.markov.filtering import condition, log_probabilities, log_product, matrices_over_time
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_budgets, check_choice, check_distribution, frozen

__all__ = ["DataRelease", "ReleaseStep", "release"]

#: Sets of possible states whose protection is kept: more than a series meets before they are all states.
KEPT = 128


@dataclass(frozen=True, eq=False)
class ReleaseStep(FrozenArrays):
    """One release. Public but for `perturbed_state`; arrays are read-only.

    Attributes
    ----------
    time : int, from 0
    z : ndarray (d,), the released value
    log_prior, log_posterior : ndarray (N,), log p_t^- and log p_t^+; -inf for impossible states
    mechanism : KNormMechanism or LaplaceMechanism, on the protectable graph of the possible states
    constrained_epsilon : float, nats: the loss between any two possible states (Theorem 6.3 of [5])
    perturbed_state : int, secret: the true state, or its surrogate if it is not among the possible ones
    query : str, the name of one of several queries, whose prior is the posterior of the one before; None for a single
    """

    time: int
    z: np.ndarray
    log_prior: np.ndarray
    log_posterior: np.ndarray
    mechanism: KNormMechanism
    constrained_epsilon: float
    perturbed_state: int
    query: str | None = None

    @property
    def prior(self) -> np.ndarray:
        return np.exp(self.log_prior)

    @property
    def posterior(self) -> np.ndarray:
        return np.exp(self.log_posterior)

    @property
    def policy(self) -> PolicyGraph:
        """The protectable graph on the possible states."""
        return self.mechanism.policy

    @property
    def added_edges(self) -> list[tuple[int, int]]:
        return self.mechanism.added_edges


def release(
    states: Iterable[int],
    policy: PolicyGraph,
    answers: ArrayLike | Mapping[str, ArrayLike],
    epsilon: ArrayLike | Mapping[str, ArrayLike],
    transitions: TransitionMatrix | ArrayLike | Sequence,
    initial: ArrayLike,
    *,
    mechanism: str = "k-norm",
    method: str = "greedy",
    insisted: PolicyGraph | Iterable = (),
    threshold: float = 0.0,
    delta: float | None = None,
    skip: bool = False,
    rng: np.random.Generator,
) -> Iterator[ReleaseStep | None]:
    """Release the answers about a moving state, one a timestamp (Algorithm 2 of [5]).

    Parameters
    ----------
    states : iterable of int, the true states, read one at a time
    policy : PolicyGraph over N states, G
    answers : array-like (N, d) or (N,), f; or a mapping from the names of several queries to theirs
    epsilon : float or array-like (T,), nats: the budget of each release; of several queries a mapping to theirs
    transitions : TransitionMatrix or array-like (N, N), M, known to the adversary
        Or a list of them, where the chain changes: one between each two timestamps.
    initial : array-like (N,), the prior p_1^- of the first timestamp
    mechanism : "k-norm", "laplace" or "planar isotropic" (in law the first)
    method, insisted : as in `protectable_graph`
    threshold : float in [0, 1)
        Probabilities up to it count as zero; not beside delta. States left out by it get no guarantee.
    delta : float in [0, 1), optional
        Constrain to the delta-location set instead of the possible states. With a complete policy this is the baseline
        "DPLS". A true state outside is replaced by the state inside with the nearest answer, and the adversary knows
        that rule.
    skip : bool
        Where only one state is possible, release nothing and yield None instead of raising NoPrivacyError.

    Several queries give one step each a timestamp, in their order, with fresh noise; the budgets add up (Theorem 7.1).
    The graph is made protectable for all answers of a state as one vector, so that one and the same state hides an
    exposed one in each query; graphs made for each query by itself would not keep the sum.

    ValueError for arguments of the wrong shape or range, at once; for a true state that the model holds impossible,
    when met. NoPrivacyError at a timestamp at which only one state is possible.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])
    >>> walk = np.full((6, 6), 1 / 6)
    >>> rng = np.random.default_rng(5)
    >>> steps = list(release([4, 2], G, f, 1.0, walk, [0, 1 / 3, 1 / 3, 0, 1 / 3, 0], rng=rng))
    >>> steps[0].policy.possible.tolist(), steps[0].added_edges
    ([1, 2, 4], [(1, 4)])
    >>> [step.z.round(3).tolist() for step in steps]
    [[5.315, 2.729], [0.957, -1.29]]
    """
    setting = DataRelease(
        policy,
        answers,
        transitions,
        mechanism=mechanism,
        method=method,
        insisted=insisted,
        threshold=threshold,
        delta=delta,
        skip=skip,
    )
    return setting.series(states, epsilon, initial, rng=rng)


class DataRelease:
    """What releases have in common that differ in the true states, the budgets and the start; see `release`.

    The protection of a set of possible states does not depend on those, and is found once for the last `kept` sets.
    """

    def __init__(
        self,
        policy: PolicyGraph,
        answers: ArrayLike | Mapping[str, ArrayLike],
        transitions: TransitionMatrix | ArrayLike | Sequence,
        *,
        mechanism: str = "k-norm",
        method: str = "greedy",
        insisted: PolicyGraph | Iterable = (),
        threshold: float = 0.0,
        delta: float | None = None,
        skip: bool = False,
        kept: int = KEPT,
    ):
        n = policy.n_states
        several = matrices_over_time(transitions)
        self._chain = [as_numbered_chain(each) for each in ([transitions] if several is None else several)]
        self._changes = several is not None
        self._queries: dict[str | None, np.ndarray] = (
            {name: as_answers(one, n) for name, one in answers.items()}
            if isinstance(answers, Mapping)
            else {None: as_answers(answers, n)}
        )
        if not self._queries:
            raise ValueError("answers must be those of one query or more, found an empty mapping; name a query")
        self._answers = np.hstack([*self._queries.values()])
        for P in self._chain:
            if P.n_states != n:
                raise ValueError(
                    "transitions and policy must have the same states, "
                    f"found {P.n_states} and {n}; build both over 0..N-1"
                )
        check_choice(mechanism, "mechanism", MECHANISMS)
        check_choice(method, "method", METHODS)
        check_share(threshold, "threshold")
        check_share(0.0 if delta is None else delta, "delta")
        if threshold and delta is not None:
            raise ValueError(f"threshold and delta exclude each other, found {threshold} and {delta}; give one of them")
        self.policy, self._kind, self._method = policy, MECHANISMS[mechanism], method
        self._insisted = as_policy(insisted, n)
        self._threshold, self._delta, self._skip = threshold, delta, skip
        self._protections: OrderedDict[bytes, dict[str | None, tuple[Protection, float]]] = OrderedDict()
        self._kept = kept

    def series(
        self,
        states: Iterable[int],
        epsilon: ArrayLike | Mapping[str, ArrayLike],
        initial: ArrayLike,
        *,
        rng: np.random.Generator,
    ) -> Iterator[ReleaseStep | None]:
        """The release of one series of true states; parameters, errors and steps as in `release`."""
        prior = check_distribution(initial, self.policy.n_states, "initial")
        given: Mapping[Any, Any] = epsilon if isinstance(epsilon, Mapping) else {None: epsilon}
        if given.keys() != self._queries.keys():
            raise ValueError(
                f"epsilon must hold one budget for each of the queries {[*self._queries]}, found {[*given]}; "
                "give both as mappings with the same names"
            )
        budgets = {name: frozen(check_budgets(np.atleast_1d(one), "epsilon")) for name, one in given.items()}
        lengths = [len(budgets[name]) for name in given if np.ndim(given[name])]
        return self._steps(states, budgets, min(lengths, default=None), log_probabilities(prior), rng)

    def _steps(
        self,
        states: Iterable[int],
        budgets: dict[Any, np.ndarray],
        horizon: int | None,
        log_posterior: np.ndarray,
        rng: np.random.Generator,
    ) -> Iterator[ReleaseStep | None]:
        for time, true_state in enumerate(states):
            if time == horizon:
                raise ValueError(
                    f"epsilon must hold one budget a timestamp, found {time} for a longer series; "
                    "give one number for all"
                )
            if self._changes and time > len(self._chain):
                raise ValueError(
                    f"transitions must hold one matrix between each two timestamps, found {len(self._chain)} for a "
                    "longer series; give one matrix for all"
                )
            log_prior = log_product(log_posterior, self._chain[(time - 1) * self._changes]) if time else log_posterior
            (state,) = check_states([true_state], self.policy.n_states, "true state")
            possible, perturbed = _constraint(log_prior, self._answers, self._threshold, self._delta)
            constrained = self.policy.constrain(possible)
            log_posterior = log_prior
            if self._skip and constrained.possible.size == 1:
                yield None
                continue
            protections = self._protecting(constrained)
            if perturbed[state] not in constrained.possible:
                raise ValueError(
                    "the true state must be possible under the model, "
                    f"found state {state} with prior {np.exp(log_prior[state]):g} at time {time}; "
                    "smooth the matrix, or correct the initial distribution"
                )
            for name, f in self._queries.items():
                protection, factor = protections[name]
                noise = self._kind.fitted(protection, f, budgets[name][time % len(budgets[name])])
                z = noise.sample(f[perturbed[state]], rng=rng)
                log_prior = log_posterior
                log_posterior, _ = condition(log_prior, noise.log_density(z, f[perturbed]))
                yield ReleaseStep(
                    time=time,
                    z=z,
                    log_prior=log_prior,
                    log_posterior=log_posterior,
                    mechanism=noise,
                    constrained_epsilon=noise.epsilon * factor,
                    perturbed_state=int(perturbed[state]),
                    query=name,
                )

    def _protecting(self, constrained: PolicyGraph) -> dict[str | None, tuple[Protection, float]]:
        """For each query the protection of the policy on some possible states, and its constrained DP factor."""
        key = constrained.possible.tobytes()
        found = self._protections.pop(key, None)
        if found is None:
            joint, found = protect(constrained, self._answers, self._method, self._insisted), {}
            for name, f in self._queries.items():
                own = joint if name is None else replace(joint, hull=sensitivity_hull(joint.policy, f))
                body = self._kind.fitted(own, f, 1.0).body
                found[name] = own, constrained_dp_factor(constrained, f, body)
        self._protections[key] = found
        if len(self._protections) > self._kept:
            self._protections.popitem(last=False)
        return found


def _constraint(log_prior: np.ndarray, f: np.ndarray, threshold: float, delta: float | None):
    """The possible states, and for each state the one whose answer is released for it: itself or the nearest."""
    positive, perturbed = np.flatnonzero(np.isfinite(log_prior)), np.arange(len(log_prior))
    if delta is None:
        return positive[log_prior[positive] > log_probabilities(threshold)], perturbed
    possible = delta_location_set(np.exp(log_prior), delta)
    outside = np.setdiff1d(positive, possible)
    perturbed[outside] = possible[cKDTree(f[possible]).query(f[outside])[1]]
    return possible, perturbed
