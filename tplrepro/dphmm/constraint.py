"""Constraints: the states that an adversary considers possible (Definition 4.1 and Theorem 4.1 of
[5]).

DPHMM constrains the policy graph to C_t = {s_i : p_t^-[i] > 0}. The baseline of the paper's
reference [27], "DPLS", takes the delta-location set instead: the fewest states that hold
probability 1 - delta.
"""

from __future__ import annotations
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import (
    as_numbers,
    by_state,
    check_codes,
    check_distribution,
    check_probability,
    frozen,
)

#: Probabilities, or distances, that differ by less of themselves count as equal.
TIED = 1e-9


def delta_location_set(prior: ArrayLike, excluded_probability: float) -> np.ndarray:
    """The fewest states with probability at least 1 - delta in total (Theorem 4.1 of [5]).

    Among equally likely states (within one part in 1e9) those of lower index come first. Impossible
    states are never included.

    Parameters
    ----------
    prior : array-like (N,)
        The distribution of the state.
    excluded_probability : float
        The paper's delta, in [0, 1).

    Returns
    -------
    array (c,) of int
        The states, ascending.

    Raises
    ------
    ValueError
        If `prior` is no distribution, or delta out of range.

    Examples
    --------
    >>> delta_location_set([0.1, 0.6, 0.005, 0.295], excluded_probability=0.01).tolist()
    [0, 1, 3]
    """
    p = check_distribution(prior, name="prior")
    check_probability(excluded_probability, "excluded_probability", one=False)
    order = _falling_order(p)
    cumulative = np.cumsum(p[order])
    # Rounding of the sum must not cost a state: the set may only be too large.
    enough = np.searchsorted(cumulative, 1 - excluded_probability) + 1
    count = min(enough, np.count_nonzero(p))
    return np.sort(order[:count])


def _falling_order(p: np.ndarray) -> np.ndarray:
    """The states in falling order of probability; equally likely ones in order of their index."""
    order = np.argsort(-p)
    falling = p[order]
    before = falling[:-1]
    after = falling[1:]
    is_less = after < (1 - TIED) * before
    rank = np.append(0, np.cumsum(is_less))
    return order[np.lexsort((order, rank))]


def check_states(states: ArrayLike, n_states: int, name: str = "states") -> np.ndarray:
    """Indices of states 0..N-1, or a boolean mask (N,), as distinct ascending indices (k,); errors
    call them `name`."""
    if isinstance(states, (set, frozenset)):
        states = list(states)
    array = np.asanyarray(states)
    is_mask = array.dtype == bool and array.shape == (n_states,)
    if is_mask and not np.ma.is_masked(array):
        is_chosen = by_state(states, n_states, name)
        return np.flatnonzero(is_chosen)
    return np.unique(check_codes(array, n_states, name))


def as_numbered_chain(transitions: MatrixLike) -> TransitionMatrix:
    """A chain whose states are 0..N-1; other whole numbers would be mistaken for indices."""
    P = as_transition_matrix(transitions)
    for position, label in enumerate(P.states):
        is_other_number = isinstance(label, Number) and label != position
        if is_other_number:
            found = f"found {label} in row {position} of the transitions"
            raise ValueError(
                f"states must be numbered 0..{P.n_states - 1}, {found}; "
                "give the matrix as `toarray()`"
            )
    return P


def as_answers(answers: Any, states: int | Sequence | None = None) -> np.ndarray:
    """The answers f (N, d) of all states, in their order, as a finite read-only copy; (N,) stands
    for d = 1."""
    answers = by_state(answers, states, "answers f")
    remedy = "give one row of d numbers a state"
    numbers = as_numbers(answers, "answers f must be an array of numbers (N, d)", remedy)
    f = frozen(np.atleast_1d(numbers))
    if f.ndim == 1:
        f = f[:, None]
    n = _number_of(states, default=len(f))
    is_matrix = f.ndim == 2 and f.shape[1] > 0
    if not is_matrix or len(f) != n:
        if is_matrix and f.shape[1] == n:
            remedy = "transpose it"
        raise ValueError(f"answers f must have shape ({n}, d), found {np.shape(answers)}; {remedy}")
    is_finite = np.isfinite(f).all(axis=1)
    if not is_finite.all():
        state = int(np.argmin(is_finite))
        answer = f[state].tolist()
        raise ValueError(
            f"answers f must be finite, found {answer} for state {state}; fill them in"
        )
    return f


def _number_of(states: int | Sequence | None, default: int) -> int:
    """How many states are given, by their number or their labels."""
    if states is None:
        return default
    if isinstance(states, int):
        return states
    return len(states)


def as_vectors(vectors: ArrayLike, d: int) -> np.ndarray:
    """Finite vectors as a float array (..., d); a number stands for one vector if d = 1."""
    constraint = f"vectors must be {d} finite numbers each"
    remedy = f"give shape (..., {d})"
    numbers = as_numbers(vectors, constraint, remedy)
    v = np.atleast_1d(numbers)
    n_numbers = v.shape[-1]
    if n_numbers != d or not np.isfinite(v).all():
        raise ValueError(f"{constraint}, found shape {v.shape}; {remedy}")
    return v
