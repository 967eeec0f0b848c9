"""Chains of order k as chains over k-tuples, and the chain seen every few steps.

A chain of order k is a first-order chain over the tuples (l^{t-k+1}, ..., l^t), to which everything
in [1] applies; the secret is the tuple. For k >= 2 consecutive tuples overlap: tuples that end in
different places have different successors, so L is the identity, and n releases leak n epsilon,
whatever the data. Seen every k steps they share no place and form a first-order chain, in which
each block of k releases spends k epsilon (w-event privacy with w = k):
`temporal_privacy_leakage(np.full(blocks, k * epsilon), ...)` on `every_kth(P, k)`. About a single
place less is told: `one_place_leakage`.
"""

from __future__ import annotations
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from tplrepro.markov.cycle import Cycle
from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_horizon, check_smoothing

MOST_TUPLES = 1_000_000  # that may become states
MOST_STORED = 2**27  # probabilities, which take 1.5 GB


def estimate_higher_order(
    sequences: Any,
    order: int = 2,
    smoothing: float = 0.0,
    direction: str = "forward",
    tuples: str | Iterable = "observed",
    labels: Sequence | None = None,
) -> TransitionMatrix:
    """The maximum-likelihood chain of order k over k-tuples, with Laplacian smoothing.

    States are labelled by tuples, for order 1 by places. Without smoothing each tuple needs a
    successor, also the last of a sequence: see `drop_dead_ends`.

    Parameters
    ----------
    sequences : list of sequences of places, Sequences, or DataFrame
        As in `TransitionMatrix.from_sequences`.
    order : int >= 1, optional
        The number k of places that the next one depends on.
    smoothing : float >= 0, optional
        The s added to the counts of the steps that can occur: from (a, b) to each (b, c).
    direction : {"forward", "backward"}, optional
        Pr(next | tuple), or Pr(previous | tuple).
    tuples : {"observed", "all"} or list of tuples, optional
        The states; "all" are those of the places that occur, which smoothing connects.
    labels : sequence, optional
        The places that the codes 0..n-1 in the sequences stand for.

    Returns
    -------
    TransitionMatrix
        (n, n) for n tuples.

    Raises
    ------
    ValueError
        If no sequence has k places, a tuple has no successor, or the chain would take too much
        memory.

    Examples
    --------
    >>> P = estimate_higher_order([["a", "b", "a", "a", "b", "a"]], order=2)
    >>> P.states, P.probabilities.tolist()
    ([('a', 'a'), ('a', 'b'), ('b', 'a')], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    order = check_horizon(order, "order")
    smoothing = check_smoothing(smoothing)
    augmented = _sequences_of_tuples(sequences, order, labels)
    augmented = _with_states(augmented, tuples, order)
    counts, states = count_transitions(augmented, direction=direction)
    if order == 1:
        places = [place for (place,) in states]
        return TransitionMatrix.from_counts(counts, smoothing, places)
    if smoothing:
        counts = counts + smoothing * _possible_steps(states, direction)
    return TransitionMatrix.from_counts(counts, 0.0, states)


def _with_states(augmented: Sequences, tuples: Any, order: int) -> Sequences:
    """The sequences of k-tuples, k = `order`, over the states that `tuples` names: "observed",
    "all" or a list."""
    if not isinstance(tuples, str):
        if order == 1:
            tuples = [(place,) for place in tuples]
        return as_sequences(augmented, states=tuples)
    if tuples == "observed":
        return augmented
    if tuples != "all":
        raise ValueError(
            f"tuples must be 'observed', 'all' or a list of tuples, found {tuples!r}; choose one"
        )
    observed = augmented.labels.tolist()
    return as_sequences(augmented, states=_all_tuples(observed, order))


def every_kth(matrix: MatrixLike, k: int) -> TransitionMatrix:
    """The chain seen every k steps, P^k.

    Parameters
    ----------
    matrix : TransitionMatrix or array-like (n, n)
        A sparse one must have background 0, and stays sparse.
    k : int >= 1
        The number of steps.

    Returns
    -------
    TransitionMatrix
        (n, n), with the same states.

    Raises
    ------
    ValueError
        If k is no whole number >= 1, the matrix is not row-stochastic, or a sparse one has a
        background or a power that would take too much memory; and for a `Cycle`, which has its own
        `Cycle.every`.

    Examples
    --------
    >>> every_kth([[0.5, 0.5], [0.0, 1.0]], 2).probabilities.tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """
    k = check_horizon(k, "k")
    if isinstance(matrix, Cycle):
        raise ValueError(
            f"every_kth needs the matrix of one step, found {matrix!r}; "
            "write cycle.every(k) of the forward cycle, and reverse that"
        )
    matrix = as_transition_matrix(matrix)
    if not matrix.is_sparse:
        return matrix**k
    if k == 1:
        return matrix
    if matrix.background.any():
        raise ValueError(
            f"a sparse matrix must have background 0, found {matrix.background.max():.3g}; "
            "make it dense"
        )
    rows = matrix.probabilities
    entries_of_row = np.diff(rows.indptr)
    power = rows
    for _ in range(k - 1):
        # fewer where entries coincide
        _check_stored(entries_of_row[power.indices].sum(), "the power")
        power = power @ rows
    return TransitionMatrix(power, states=matrix.states, normalize=True)


def _sequences_of_tuples(sequences: Any, order: int, labels: Sequence | None) -> Sequences:
    """The sequences of k-tuples, k = `order`, over those that occur, sorted; each is k - 1 shorter,
    or empty. `labels` name the places of coded sequences."""
    codes_of_labels = None
    if labels is not None:
        codes_of_labels = range(len(labels))
    coded = as_sequences(sequences, states=codes_of_labels)
    lengths = np.maximum(coded.lengths - (order - 1), 0)
    if not lengths.any():
        raise ValueError(
            f"a chain of order {order} needs a sequence of at least {order} places, "
            f"found at most {coded.lengths.max()}; give longer sequences or a lower order"
        )
    offsets = np.append(0, np.cumsum(lengths))
    omitted_before = coded.offsets[:-1] - offsets[:-1]
    shifts = np.repeat(omitted_before, lengths)
    first = shifts + np.arange(offsets[-1])
    places = first[:, None] + np.arange(order)
    rows = coded.values[places]
    distinct, codes = np.unique(rows, axis=0, return_inverse=True)
    names = labels
    if names is None:
        names = coded.labels.tolist()
    tuples = _name_tuples(distinct, names)
    return Sequences(codes.reshape(-1), offsets, tuples, coded.users)


def _name_tuples(codes: np.ndarray, names: Sequence) -> np.ndarray:
    """The tuple of names for each row of codes (K, k), (K,) of object."""
    tuples = np.empty(len(codes), object)
    for k, row in enumerate(codes.tolist()):
        tuples[k] = tuple(names[code] for code in row)
    return tuples


def _all_tuples(states: list, order: int) -> list:
    places: dict = {}
    for state in states:
        places.update(dict.fromkeys(state))
    n = len(places)
    has_many_steps = order > 1 and n ** (order + 1) > MOST_STORED
    if n**order > MOST_TUPLES or has_many_steps:
        raise ValueError(
            f"all {order}-tuples must fit in memory, found {n**order} of {n} places; "
            "use observed ones"
        )
    return list(product(places, repeat=order))


def _possible_steps(states: list, direction: str):
    """A sparse matrix (n, n) with a 1 for each step from a tuple to one that continues it."""
    import scipy.sparse

    overlaps: dict[tuple, int] = {}
    ends = [overlaps.setdefault(state[1:], len(overlaps)) for state in states]
    begins = [overlaps.setdefault(state[:-1], len(overlaps)) for state in states]
    n = len(states)
    shape = (n, len(overlaps))
    ones = np.ones(n)
    has_end = scipy.sparse.csr_array((ones, (range(n), ends)), shape=shape)
    has_begin = scipy.sparse.csr_array((ones, (range(n), begins)), shape=shape)
    number_with_end = has_end.sum(axis=0)
    number_with_begin = has_begin.sum(axis=0)
    _check_stored(int(number_with_end @ number_with_begin), "the chain")
    steps = has_end @ has_begin.T
    if direction == "forward":
        return steps
    return steps.T


def _check_stored(stored: int, name: str) -> None:
    if stored > MOST_STORED:
        raise ValueError(
            f"{name} must store at most {MOST_STORED} probabilities, found {stored}; "
            "use larger cells"
        )
