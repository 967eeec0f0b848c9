"""Release of a series of answers (Algorithm 2 of [5]), and of the baseline on delta-location sets (Theorem 4.1).

At each timestamp: the prior p_t^- gives the possible states C_t; the policy graph constrained to them is made
protectable (section 6.1); a mechanism fitted to it releases z_t; Eq. (2) gives p_t^+ and the chain the next prior. All
but the true state and the noise is known to the adversary. Beliefs are kept as logarithms, so that a state stays
possible however unlikely it has become.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from tplrepro.dphmm.constraint import as_answers, as_numbered_chain, check_share, check_states, delta_location_set
from tplrepro.dphmm.mechanisms import KNormMechanism, LaplaceMechanism, PlanarIsotropicMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import METHODS, constrained_dp_factor
from tplrepro.markov.filtering import condition, log_probabilities, log_product
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_budgets, check_choice, check_distribution, frozen

__all__ = ["ReleaseStep", "release"]

_MECHANISMS: dict[str, type[KNormMechanism]] = {
    "k-norm": KNormMechanism,
    "laplace": LaplaceMechanism,
    "planar isotropic": PlanarIsotropicMechanism,
}


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
    """

    time: int
    z: np.ndarray
    log_prior: np.ndarray
    log_posterior: np.ndarray
    mechanism: KNormMechanism
    constrained_epsilon: float
    perturbed_state: int

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
    answers: ArrayLike,
    epsilon: ArrayLike,
    transitions: TransitionMatrix | ArrayLike,
    initial: ArrayLike,
    *,
    mechanism: str = "k-norm",
    method: str = "greedy",
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
    answers : array-like (N, d) or (N,), f
    epsilon : float or array-like (T,), nats: the budget of each release
    transitions : TransitionMatrix or array-like (N, N), M, known to the adversary
    initial : array-like (N,), the prior p_1^- of the first timestamp
    mechanism : "k-norm", "laplace" or "planar isotropic" (in law the first)
    method : "greedy" or "stepwise", as in `protectable_graph`
    threshold : float in [0, 1)
        Probabilities up to it count as zero; not beside delta. States left out by it get no guarantee.
    delta : float in [0, 1), optional
        Constrain to the delta-location set instead of the possible states. With a complete policy this is the baseline
        "DPLS". A true state outside is replaced by the state inside with the nearest answer, and the adversary knows
        that rule.
    skip : bool
        Where only one state is possible, release nothing and yield None instead of raising NoPrivacyError.

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
    P = as_numbered_chain(transitions)
    f = as_answers(answers, policy.n_states)
    if P.n_states != policy.n_states:
        raise ValueError(
            "transitions and policy must have the same states, "
            f"found {P.n_states} and {policy.n_states}; build both over 0..N-1"
        )
    prior = check_distribution(initial, policy.n_states, "initial")
    budgets = frozen(check_budgets(np.atleast_1d(epsilon), "epsilon"))
    check_choice(mechanism, "mechanism", _MECHANISMS)
    check_choice(method, "method", METHODS)
    check_share(threshold, "threshold")
    check_share(0.0 if delta is None else delta, "delta")
    if threshold and delta is not None:
        raise ValueError(f"threshold and delta exclude each other, found {threshold} and {delta}; give one of them")

    def steps(log_prior: np.ndarray) -> Iterator[ReleaseStep | None]:
        for time, true_state in enumerate(states):
            if np.ndim(epsilon) and time == len(budgets):
                raise ValueError(
                    f"epsilon must hold one budget a timestamp, found {time} for a longer series; "
                    "give one number for all"
                )
            (state,) = check_states([true_state], policy.n_states, "true state")
            possible, perturbed = _constraint(log_prior, f, threshold, delta)
            constrained = policy.constrain(possible)
            if skip and constrained.possible.size == 1:
                yield None
                log_prior = log_product(log_prior, P)
                continue
            noise = _MECHANISMS[mechanism].protecting(constrained, f, budgets[time % len(budgets)], method)
            if perturbed[state] not in constrained.possible:
                raise ValueError(
                    "the true state must be possible under the model, "
                    f"found state {state} with prior {np.exp(log_prior[state]):g} at time {time}; "
                    "smooth the matrix, or correct the initial distribution"
                )
            z = noise.sample(f[perturbed[state]], rng=rng)
            log_posterior, _ = condition(log_prior, noise.log_density(z, f[perturbed]))
            yield ReleaseStep(
                time=time,
                z=z,
                log_prior=log_prior,
                log_posterior=log_posterior,
                mechanism=noise,
                constrained_epsilon=noise.epsilon * constrained_dp_factor(constrained, f, noise.body),
                perturbed_state=int(perturbed[state]),
            )
            log_prior = log_product(log_posterior, P)

    return steps(log_probabilities(prior))


def _constraint(log_prior: np.ndarray, f: np.ndarray, threshold: float, delta: float | None):
    """The possible states, and for each state the one whose answer is released for it: itself or the nearest."""
    positive, perturbed = np.flatnonzero(np.isfinite(log_prior)), np.arange(len(log_prior))
    if delta is None:
        return positive[log_prior[positive] > log_probabilities(threshold)], perturbed
    possible = delta_location_set(np.exp(log_prior), delta)
    outside = np.setdiff1d(positive, possible)
    perturbed[outside] = possible[cKDTree(f[possible]).query(f[outside])[1]]
    return possible, perturbed
