"""Algorithm 4 of [5] as published: degree of protection by one quadratic programme a pair of states (section 11.4).

Kept to be compared with `protection.degree_of_protection`, which is thousands of times faster.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

import numpy as np

from tplrepro.dphmm.constraint import as_answers

__all__ = ["degree_of_protection", "is_convex_combination"]


def degree_of_protection(policy, answers, tolerance: float = 1e-9) -> np.ndarray:
    """DoP of every possible state by Algorithm 4; parameters and result as for `protection.degree_of_protection`.

    Parameters
    ----------
    tolerance : float
        The residual, relative to the largest number involved, up to which Eq. (6) counts as solved exactly. The paper
        tests for equality, which rounding never gives.

    Examples
    --------
    >>> from tplrepro.dphmm import PolicyGraph
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> degree_of_protection(PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 3, 4, 5]), f).tolist()
    [0, 3, 0, 4, 4, 3]
    """
    f = as_answers(answers, policy.n_states)
    first, second = policy.edge_array.T
    forward = f[first] - f[second]
    differences = np.concatenate([forward, -forward])
    counts = np.zeros(policy.n_states, dtype=int)
    for i in policy.possible:
        counts[i] = 1
        for j in policy.possible:
            if i != j and is_convex_combination(differences, f[j] - f[i], tolerance):
                counts[i] += 1
    return counts


def is_convex_combination(points: np.ndarray, vector: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Whether min ||points^T x - vector||_2 over x >= 0 with sum 1 is zero (Eq. (6) of [5]); points (m, d).

    The constraint on the sum joins the residual as one more coordinate, scaled to the points: the minimum is zero with
    it if and only if it is zero without, and the programme is then one of non-negative least squares.
    """
    from scipy.optimize import nnls

    scale = max(np.abs(points).max(initial=0.0), np.abs(vector).max())
    if scale == 0:
        return True  # equal answers, whether or not there is an edge
    if not len(points):
        return False
    augmented = np.vstack([points.T / scale, np.ones(len(points))])
    _, residual = nnls(augmented, np.append(vector / scale, 1.0), maxiter=30 * len(points))
    return bool(residual <= tolerance)
