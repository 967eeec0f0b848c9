"""Protectable graphs: connect exposed states so that every state is hidden (section 6.1 of [5]).

Each exposed state is connected to one other state: to the one with the nearest answer (Algorithm 1), or to the one that
makes the volume of K grow least (Algorithm 3). Each connection enlarges K and may protect other states as well, so the
exposed states are found again after each step.

Algorithm 3 is printed for the plane, where areas are cheap. The volume of K and one more vector has a closed form in
any dimension (`SensitivityHull.extended_volumes`), so it is offered in every dimension. It is optimal for one exposed
state; for several, it is optimal at each step.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

import numpy as np

from tplrepro.dphmm.constraint import as_answers
from tplrepro.dphmm.errors import NoPrivacyError
from tplrepro.dphmm.hull import sensitivity_hull
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import exposed_states

__all__ = ["protect", "protectable_graph"]


def protectable_graph(policy: PolicyGraph, answers, method: str = "greedy") -> PolicyGraph:
    """A supergraph of `policy` on the same possible states in which no state is exposed.

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones
    answers : array-like (N, d) or (N,), f
    method : "greedy" (Algorithm 1 of [5]) or "optimal" (Algorithm 3)

    Returns
    -------
    PolicyGraph; `policy` itself if it is protectable

    Raises
    ------
    NoPrivacyError
        If only one state is possible.
    ValueError
        For answers of the wrong shape, or an unknown method.

    Examples
    --------
    Example 6.1 of [5]: s_3 (index 2) is exposed; the area grows least by the edge to s_4.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([2, 3, 4, 5])
    >>> sorted(set(protectable_graph(G, f, "optimal").edges) - set(G.edges))
    [(2, 3)]
    >>> sorted(set(protectable_graph(G, f, "greedy").edges) - set(G.edges))
    [(2, 4)]
    """
    return protect(policy, answers, method)[0]


def protect(policy: PolicyGraph, answers, method: str = "greedy"):
    """The protectable graph, its sensitivity hull and the edges added; parameters as for `protectable_graph`."""
    if method not in ("greedy", "optimal"):
        raise ValueError(f"method must be 'greedy' or 'optimal', found {method!r}; choose one of them")
    f = as_answers(answers, policy.n_states)
    possible = policy.possible
    if possible.size == 1:
        raise NoPrivacyError(
            f"privacy needs at least two possible states, found only state {possible[0]}; "
            "the adversary knows the true state already, so release nothing or smooth the model"
        )
    hull = sensitivity_hull(policy, f)
    exposed = exposed_states(policy, f, hull)
    added = []
    while exposed.size:
        state, others = exposed[0], possible[possible != exposed[0]]
        differences = f[others] - f[state]
        distances = np.linalg.norm(differences, axis=1)
        if method == "optimal":
            dimensions, volumes = hull.extended_volumes(differences)
            # A flat body has volume 0 in the space around it; among flat ones their own volume decides. Equal volumes
            # are common there (all apexes at one height), and among them the nearest answer decides.
            volumes[dimensions > dimensions.min()] = np.inf
            distances[volumes > volumes.min() * (1 + 1e-9)] = np.inf
        best = np.argmin(distances)
        added.append((int(state), int(others[best])))
        hull = hull.extended(differences[best])
        # K only grows: a state that was hidden stays so.
        remaining = exposed[1:]
        remaining = remaining[remaining != others[best]]
        hidden = (hull.pairwise_norms(f[remaining], f[possible]) <= 1).sum(axis=1) > 1
        exposed = remaining[~hidden]
    return policy._with_edges(added), hull, added
