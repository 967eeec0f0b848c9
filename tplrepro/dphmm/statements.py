"""What a release guarantees: DPHMM, constrained differential privacy, composition (sections 5.3, 7 and 11.6 of [5]).

Between connected states the loss is epsilon. Between any two possible states it is epsilon times the K-norm of the
difference of their answers (Theorems 5.3 and 6.3), and no less: the released value f(s_j) attains it.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tplrepro.dphmm.constraint import as_answers, check_states
from tplrepro.dphmm.errors import NoPrivacyError
from tplrepro.dphmm.hull import sensitivity_hull
from tplrepro.dphmm.protection import exposed_states

__all__ = [
    "AdversaryStatement",
    "PrivacyStatement",
    "against_adversary",
    "compose_queries",
    "compose_times",
    "constrained_dp_factor",
    "existence_factors",
]


@dataclass(frozen=True)
class PrivacyStatement:
    """{epsilon, G, C}-DPHMM (Definition 4.4) and what follows between all possible states (Definition 5.4).

    Attributes
    ----------
    epsilon : float, nats, between connected states
    constrained_factor : float, the largest K-norm between possible states; infinite if a flat hull tells some apart
    policy : PolicyGraph on the possible states
    """

    epsilon: float
    constrained_factor: float
    policy: object

    @property
    def constrained_epsilon(self) -> float:
        """Level of constrained differential privacy, nats (Theorem 6.3 of [5])."""
        return self.constrained_factor * self.epsilon

    def __str__(self) -> str:
        c = self.policy.possible.size
        return (
            f"{{{self.epsilon:.4g}, G, C}}-DPHMM and {{{self.constrained_epsilon:.4g}, G, C}}-constrained differential "
            f"privacy, |C| = {c}"
        )


@dataclass(frozen=True)
class AdversaryStatement:
    """What a release under the constraint C is worth against an adversary with constraint C^A (section 11.6 of [5]).

    Attributes
    ----------
    relation : "equal", "narrower" (Case I), "wider" (Case II) or "other": C^A compared with C
    exposed : ndarray of states of C^A without an edge there that no state of C^A hides
    broken_edges : ndarray (b, 2), edges of G within C^A whose loss exceeds epsilon
    epsilon, constrained_epsilon : float, nats, as in `PrivacyStatement` but between states of C^A
    """

    relation: str
    exposed: np.ndarray
    broken_edges: np.ndarray
    epsilon: float
    constrained_epsilon: float

    @property
    def holds(self) -> bool:
        """Whether {epsilon, G, C^A}-DPHMM holds."""
        return not (self.exposed.size or self.broken_edges.size)


def constrained_dp_factor(policy, answers, hull=None) -> float:
    """max ||f(s_j) - f(s_k)||_K over possible states (Theorems 5.3 (1) and 6.3 of [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states
    answers : array-like (N, d) or (N,), f
    hull : SensitivityHull, optional, the body of the noise; by default K(G, f)

    Returns
    -------
    float; infinite if some difference lies off the span of a flat hull

    Examples
    --------
    >>> from tplrepro.dphmm import PolicyGraph
    >>> round(constrained_dp_factor(PolicyGraph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), [0, 1, 2, 3]), 6)
    3.0
    """
    f = as_answers(answers, policy.n_states)
    hull = sensitivity_hull(policy, f) if hull is None else hull
    return _largest_norm(hull, f[policy.possible])


def existence_factors(hull, contributions):
    """||f(s_i)||_K: the loss about the existence of each secret of a database, as a multiple of epsilon.

    Theorem 5.3 (2) and Example 5.3 of [5].

    Parameters
    ----------
    hull : SensitivityHull
    contributions : array-like (n, d), how much the record of each secret adds to the answer

    Returns
    -------
    ndarray (n,)

    Examples
    --------
    Example 5.3: six patients, counts of two diseases, s_1-s_2 and s_3-s_4 connected.

    >>> from tplrepro.dphmm import PolicyGraph, sensitivity_hull
    >>> counts = [[1, 0], [0, 0], [1, 0], [0, 1], [1, 0], [0, 1]]
    >>> K = sensitivity_hull(PolicyGraph.from_edges(6, [(0, 1), (2, 3)]), counts)
    >>> existence_factors(K, counts).round(6).tolist()
    [1.0, 0.0, 1.0, 2.0, 1.0, 2.0]
    """
    return hull.norm(contributions)


def compose_queries(statements: Iterable[PrivacyStatement]) -> tuple[float, float]:
    """Several queries about one timestamp: their epsilons add up, and so do the constrained ones (Theorem 7.1 of [5]).

    Returns
    -------
    epsilon, constrained_epsilon : float, nats

    Raises
    ------
    ValueError
        If there is no statement, or the possible states differ.
    """
    given = list(statements)
    if not given:
        raise ValueError("a composition needs at least one statement, found none; give one a query")
    for statement in given[1:]:
        if not np.array_equal(statement.policy.possible, given[0].policy.possible):
            raise ValueError(
                f"queries about one timestamp must have the same possible states, found "
                f"{given[0].policy.possible.size} and {statement.policy.possible.size} of them; use compose_times for "
                "releases at different timestamps"
            )
    return sum(s.epsilon for s in given), sum(s.constrained_epsilon for s in given)


def compose_times(statements: Iterable[PrivacyStatement]) -> float:
    """One release a timestamp: the loss between any two possible sequences of states (Theorem 7.2 of [5]).

    Returns
    -------
    float, nats: the level of {epsilon, Q}-constrainedDPS

    Raises
    ------
    ValueError
        If there is no statement.
    """
    given = list(statements)
    if not given:
        raise ValueError("a composition needs at least one statement, found none; give one a timestamp")
    return float(sum(s.constrained_epsilon for s in given))


def against_adversary(policy, answers, hull, epsilon: float, possible, adversary_states) -> AdversaryStatement:
    """Privacy against an adversary who holds other states possible than the mechanism did (section 11.6 of [5]).

    Section 11.6 says that DPHMM still holds in Case I, where C^A is part of C. That needs a condition that is checked
    here: a state whose neighbours the adversary rules out must be hidden by one that she does not.

    Parameters
    ----------
    policy : PolicyGraph over N states, G without constraint
    answers : array-like (N, d) or (N,), f
    hull : SensitivityHull, of the protectable graph that was used
    epsilon : float, nats
    possible : array-like of int, C, the constraint that was used
    adversary_states : array-like of int, C^A

    Raises
    ------
    NoPrivacyError
        If C^A is a single state.
    ValueError
        For unknown states or answers of the wrong shape.
    """
    f = as_answers(answers, policy.n_states)
    own = check_states(possible, policy.n_states, "possible states")
    theirs = check_states(adversary_states, policy.n_states, "adversary's states")
    if theirs.size == 1:
        raise NoPrivacyError(
            f"privacy needs at least two states that the adversary holds possible, found only state {theirs[0]}; "
            "she knows the true state already"
        )
    constrained = policy.constrain(theirs)
    first, second = constrained.edge_array.T
    broken = constrained.edge_array[hull.norm(f[first] - f[second]) > 1]
    shared = np.intersect1d(own, theirs).size
    relation = {
        (True, True): "equal",
        (False, True): "narrower",
        (True, False): "wider",
        (False, False): "other",
    }[(shared == own.size, shared == theirs.size)]
    return AdversaryStatement(
        relation=relation,
        exposed=exposed_states(constrained, f, hull),
        broken_edges=broken,
        epsilon=float(epsilon),
        constrained_epsilon=_largest_norm(hull, f[theirs]) * float(epsilon),
    )


def _largest_norm(hull, f: np.ndarray) -> float:
    """The largest norm of a difference of two rows: the widest spread along a half-space's normal."""
    if not np.isfinite(hull.norm(f - f[0])).all():
        return np.inf
    spread = np.ptp((f - f[0]) @ hull.halfspaces.T, axis=0)
    return float(spread.max(initial=0.0))
