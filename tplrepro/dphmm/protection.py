"""Degree of protection: among how many states a state is hidden by the noise (section 5.2 of [5]).

DoP(s_i) counts the possible states s_j, s_i among them, whose answer lies in f(s_i) + K (Definition 5.2). A state with
DoP 1 is exposed: no other state makes the released value as likely within a factor e^epsilon (Theorem 5.2).

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

import numpy as np

from tplrepro.dphmm.constraint import as_answers, check_states
from tplrepro.dphmm.hull import sensitivity_hull

__all__ = ["degree_of_protection", "exposed_states", "is_protectable"]

#: Rows of the matrix of pairwise norms that are held at a time: 8 MB for 2,000 states.
ROWS = 512


def degree_of_protection(policy, answers, hull=None, states=None) -> np.ndarray:
    """DoP of every state (Definition 5.2 of [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones
    answers : array-like (N, d) or (N,), f
    hull : SensitivityHull, optional
        The body of the noise, by default K(G, f); `cross_polytope` for Laplace noise.
    states : array-like of int, optional
        Count for these possible states only; the others get 0.

    Returns
    -------
    ndarray (N,) of int; 0 for impossible states, at least 1 for possible ones

    Raises
    ------
    ValueError
        If the answers do not have one row a state, or a state is unknown.

    Examples
    --------
    Fig. 9(a) of [5]: s_2 (index 1) has lost its neighbour but is hidden among three states.

    >>> from tplrepro.dphmm import PolicyGraph
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 3, 4, 5])
    >>> degree_of_protection(G, f).tolist()
    [0, 3, 0, 4, 4, 3]
    """
    f = as_answers(answers, policy.n_states)
    hull = sensitivity_hull(policy, f) if hull is None else hull
    possible = policy.possible
    wanted = possible if states is None else np.intersect1d(check_states(states, policy.n_states), possible)
    counts = np.zeros(policy.n_states, dtype=int)
    for start in range(0, wanted.size, ROWS):
        rows = wanted[start : start + ROWS]
        counts[rows] = (hull.pairwise_norms(f[rows], f[possible]) <= 1).sum(axis=1)
    return counts


def exposed_states(policy, answers, hull=None) -> np.ndarray:
    """Possible states with DoP 1 (Theorem 5.2 of [5]), ascending; parameters as for `degree_of_protection`.

    With Laplace noise pass its body, `cross_polytope(d, l1_sensitivity)`: it hides more (Example 5.3).

    Examples
    --------
    Example 5.2 of [5]: s_5 (index 4) is exposed.

    >>> from tplrepro.dphmm import PolicyGraph
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> exposed_states(PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4]), f).tolist()
    [4]
    """
    alone = policy.disconnected  # a connected state is hidden by its neighbour
    return alone[degree_of_protection(policy, answers, hull, alone)[alone] == 1]


def is_protectable(policy, answers, hull=None) -> bool:
    """Whether every possible state has DoP > 1 (Definition 5.3 of [5]); parameters as for `degree_of_protection`."""
    return exposed_states(policy, answers, hull).size == 0
