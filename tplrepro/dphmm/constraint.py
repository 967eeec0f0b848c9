"""Constraints: which states an adversary holds possible at a timestamp (Definition 4.1 and Theorem 4.1 of [5]).

DPHMM constrains the policy graph to C_t = {s_i : p_t^-[i] > 0}. The baseline of the paper's reference [27], "DPLS",
takes the delta-location set instead: the fewest states that hold probability 1 - delta.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "NUMERICAL_ZERO",
    "as_answers",
    "check_distribution",
    "check_states",
    "delta_location_set",
    "nearest_states",
    "possible_states",
]

#: Probabilities up to this count as zero. A prior is made of products and sums of non-negative numbers, which are zero
#: exactly where they should be until they underflow (at 1e-308): this is Definition 4.1 but for underflow.
NUMERICAL_ZERO = 1e-300


def possible_states(prior, threshold: float = NUMERICAL_ZERO) -> np.ndarray:
    """The constraint C_t, the states of positive prior probability (Definition 4.1 of [5]).

    Parameters
    ----------
    prior : array-like (N,), sums to 1 within 1e-9
    threshold : float in [0, 1), default `NUMERICAL_ZERO`
        Probabilities up to it count as zero. States left out by a larger threshold get no guarantee.

    Returns
    -------
    ndarray (c,) of int, ascending

    Raises
    ------
    ValueError
        If `prior` is not a distribution, or no probability exceeds the threshold.

    Examples
    --------
    >>> possible_states([0, 0.5, 0.5, 0]).tolist()
    [1, 2]
    """
    p = check_distribution(prior)
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold must be in [0, 1), found {threshold}; it says which probabilities count as zero")
    states = np.flatnonzero(p > threshold)
    if states.size == 0:
        raise ValueError(f"no state has a probability above the threshold {threshold:g}; lower it")
    return states


def delta_location_set(prior, delta: float) -> np.ndarray:
    """The fewest states with total probability at least 1 - delta (Theorem 4.1 of [5]).

    Of states with equal probability those of lower index are taken first. States of probability 0 are never taken.

    Parameters
    ----------
    prior : array-like (N,), sums to 1 within 1e-9
    delta : float in [0, 1)

    Returns
    -------
    ndarray (c,) of int, ascending

    Raises
    ------
    ValueError
        If `prior` is not a distribution or `delta` is out of its range.

    Examples
    --------
    >>> delta_location_set([0.1, 0.6, 0.005, 0.295], delta=0.01).tolist()
    [0, 1, 3]
    """
    p = check_distribution(prior)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), found {delta}; give the probability that may be left out, as 0.01")
    order = np.argsort(-p, kind="stable")
    order = order[p[order] > 0]
    held = np.cumsum(p[order])
    # Rounding of the sum must not cost a state: the set may only be too large.
    enough = np.flatnonzero(held >= 1 - delta)
    count = int(enough[0]) + 1 if enough.size else order.size
    return np.sort(order[:count])


def nearest_states(answers, states, targets) -> np.ndarray:
    """For each of `states` (k,) the one of `targets` (c,) with the nearest answer, (k,).

    The surrogate of the paper's reference [27] for a true state outside the delta-location set.
    """
    from scipy.spatial import cKDTree

    targets = np.asarray(targets)
    _, position = cKDTree(answers[targets]).query(answers[np.asarray(states)])
    return targets[position]


def check_distribution(values, n_states: int | None = None, name: str = "prior") -> np.ndarray:
    """A distribution over states, (N,), as a float array; it must be non-negative and sum to 1 within 1e-9."""
    p = np.asarray(values, dtype=float)
    if p.ndim != 1 or p.size == 0 or (n_states is not None and p.size != n_states):
        wanted = "(N,)" if n_states is None else f"({n_states},)"
        raise ValueError(f"{name} must have shape {wanted}, found {p.shape}; give one probability a state")
    if not np.isfinite(p).all() or (p < 0).any() or abs(p.sum() - 1) > 1e-9:
        raise ValueError(
            f"{name} must be non-negative and sum to 1 within 1e-9, found sum {p.sum():.12g} and minimum {p.min():g}; "
            "divide it by its sum"
        )
    return p


def check_states(states, n_states: int, name: str = "states") -> np.ndarray:
    """Indices of states, or a boolean mask (N,), as distinct ascending indices; each must be one of 0..N-1."""
    array = np.asarray(list(states) if isinstance(states, (set, frozenset)) else states)
    if array.dtype == bool and array.shape == (n_states,):
        return np.flatnonzero(array)
    if array.size == 0:
        array = array.astype(int)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{name} must be a flat list of the indices 0..{n_states - 1}, found {array.dtype} of shape {array.shape}; "
            "give whole numbers"
        )
    unknown = array[(array < 0) | (array >= n_states)]
    if unknown.size:
        raise ValueError(f"{name} must be among 0..{n_states - 1}, found the unknown state {unknown[0]}; drop it")
    return np.unique(array)


def as_answers(answers, n_states: int) -> np.ndarray:
    """The answers f of all states as a finite float array (N, d); (N,) stands for d = 1."""
    try:
        f = np.asarray(answers, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("answers f must be an array of numbers (N, d); give one row of d numbers a state") from None
    if f.ndim == 1:
        f = f[:, None]
    if f.ndim != 2 or f.shape[0] != n_states or f.shape[1] == 0:
        hint = "transpose it" if f.ndim == 2 and f.shape[1] == n_states else "give one row of d numbers a state"
        raise ValueError(f"answers f must have shape ({n_states}, d), found {np.shape(answers)}; {hint}")
    if not np.isfinite(f).all():
        state = int(np.argwhere(~np.isfinite(f))[0, 0])
        raise ValueError(f"answers f must be finite, found {f[state].tolist()} for state {state}; fill them in")
    return f
