"""Release of a series of answers (Algorithm 2 of [5]), and of the baseline on delta-location sets (Theorem 4.1).

At each timestamp: the prior p_t^- gives the possible states C_t; the policy graph constrained to them is made
protectable (section 6.1); a mechanism fitted to it releases z_t; Eq. (2) gives p_t^+ and the chain the next prior. All
but the true state and the noise is known to the adversary.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from tplrepro.dphmm.constraint import (
    NUMERICAL_ZERO,
    as_answers,
    check_distribution,
    check_states,
    delta_location_set,
    nearest_states,
    possible_states,
)
from tplrepro.dphmm.hull import SensitivityHull
from tplrepro.dphmm.inference import next_prior, posterior
from tplrepro.dphmm.mechanisms import KNormMechanism, LaplaceMechanism, Mechanism, PlanarIsotropicMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protectable import protect
from tplrepro.dphmm.statements import PrivacyStatement, constrained_dp_factor
from tplrepro.markov.transition import as_transition_matrix
from tplrepro.validation import check_budgets

__all__ = ["ReleaseStep", "release", "release_step"]

_MECHANISMS = {"k-norm": KNormMechanism, "laplace": LaplaceMechanism, "planar isotropic": PlanarIsotropicMechanism}


@dataclass(frozen=True)
class ReleaseStep:
    """One release. Public but for `perturbed_state`.

    Attributes
    ----------
    time : int, from 0
    z : ndarray (d,), the released value
    prior, posterior : ndarray (N,), p_t^- and p_t^+
    policy : PolicyGraph, the protectable graph on the possible states
    added_edges : list of pairs, what was added to the policy graph for protection
    hull : SensitivityHull of `policy`
    mechanism : Mechanism
    statement : PrivacyStatement, what this release guarantees
    perturbed_state : int, secret: the true state, or its surrogate if it is not among the possible ones
    """

    time: int
    z: np.ndarray
    prior: np.ndarray
    posterior: np.ndarray
    policy: PolicyGraph
    added_edges: list[tuple[int, int]]
    hull: SensitivityHull
    mechanism: Mechanism
    statement: PrivacyStatement
    perturbed_state: int


def release(
    states: Iterable[int],
    policy: PolicyGraph,
    answers,
    epsilon,
    transitions,
    initial,
    *,
    mechanism: str = "k-norm",
    method: str = "greedy",
    threshold: float = NUMERICAL_ZERO,
    delta: float | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[ReleaseStep]:
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
    method : "greedy" or "optimal", as for `protectable_graph`
    threshold : float, probabilities up to it count as zero; see `possible_states`
    delta : float in [0, 1), optional
        Constrain to the delta-location set instead of the possible states. With a complete policy this is the baseline
        "DPLS". A true state outside is replaced by the state inside with the nearest answer, and the adversary knows
        that rule.
    rng : numpy.random.Generator, optional

    Yields
    ------
    ReleaseStep

    Raises
    ------
    NoPrivacyError
        At a timestamp at which only one state is possible.
    ValueError
        For arguments of the wrong shape or range, at once; for a true state that the model holds impossible, when met.

    Examples
    --------
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
    P = as_transition_matrix(transitions)
    f = as_answers(answers, policy.n_states)
    if P.n_states != policy.n_states:
        raise ValueError(
            f"transitions and policy must have the same states, found {P.n_states} and {policy.n_states}; "
            "build both over 0..N-1"
        )
    prior = check_distribution(initial, policy.n_states, "initial")
    budgets = repeat(check_budgets([epsilon])[0]) if np.ndim(epsilon) == 0 else iter(check_budgets(epsilon))
    generator = np.random.default_rng() if rng is None else rng
    options = {"mechanism": mechanism, "method": method, "threshold": threshold, "delta": delta, "rng": generator}
    _check_mechanism(mechanism)
    return _steps(states, policy, f, budgets, P, prior, options)


def _steps(states, policy, f, budgets, P, prior, options) -> Iterator[ReleaseStep]:
    for time, state in enumerate(states):
        budget = next(budgets, None)
        if budget is None:
            raise ValueError(
                f"epsilon must hold one budget a timestamp, found {time} for a longer series of states; "
                "give more, or one number for all"
            )
        step = release_step(state, prior, policy, f, budget, time=time, **options)
        yield step
        prior = next_prior(step.posterior, P)


def release_step(
    state: int,
    prior,
    policy: PolicyGraph,
    answers,
    epsilon: float,
    *,
    mechanism: str = "k-norm",
    method: str = "greedy",
    threshold: float = NUMERICAL_ZERO,
    delta: float | None = None,
    rng: np.random.Generator | None = None,
    time: int = 0,
) -> ReleaseStep:
    """The release of one timestamp, lines 2 to 5 of Algorithm 2; parameters and errors as for `release`.

    Parameters
    ----------
    state : int, the true state s_t
    prior : array-like (N,), p_t^-
    """
    f = as_answers(answers, policy.n_states)
    prior = check_distribution(prior, policy.n_states)
    (state,) = check_states([state], policy.n_states, "true state")
    possible = possible_states(prior, threshold) if delta is None else delta_location_set(prior, delta)
    constrained = policy.constrain(possible)
    protectable, hull, added = protect(constrained, f, method)
    chosen = _check_mechanism(mechanism)
    noise = chosen(protectable, f, epsilon) if chosen is LaplaceMechanism else chosen(protectable, f, epsilon, hull)
    perturbed = np.arange(policy.n_states)
    if delta is not None:
        outside = np.setdiff1d(np.flatnonzero(prior > 0), possible)
        if outside.size:
            perturbed[outside] = nearest_states(f, outside, possible)
    if perturbed[state] not in protectable.possible:
        raise ValueError(
            f"the true state must be possible under the model, found state {state} with prior {prior[state]:g} at time "
            f"{time}; smooth the transition matrix, or correct the initial distribution"
        )
    z = noise.sample(f[perturbed[state]], rng=rng)
    log_likelihood = np.full(policy.n_states, -np.inf)
    believed = np.flatnonzero(prior > 0)
    log_likelihood[believed] = noise.log_density(z, f[perturbed[believed]])
    return ReleaseStep(
        time=time,
        z=z,
        prior=prior,
        posterior=posterior(prior, log_likelihood),
        policy=protectable,
        added_edges=sorted(tuple(sorted(pair)) for pair in added),
        hull=hull,
        mechanism=noise,
        statement=PrivacyStatement(float(epsilon), constrained_dp_factor(protectable, f, noise.body), protectable),
        perturbed_state=int(perturbed[state]),
    )


def _check_mechanism(name: str) -> type[Mechanism]:
    if name not in _MECHANISMS:
        raise ValueError(f"mechanism must be one of {sorted(_MECHANISMS)}, found {name!r}; choose one of them")
    return _MECHANISMS[name]
