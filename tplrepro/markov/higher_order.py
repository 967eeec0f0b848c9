"""Chains of order k as chains over k-tuples, and the chain seen every few steps.

In a chain of order k the next place depends on the last k of them. With the tuple z_t = (l^{t-k+1}, ..., l^t) as state
it is a first-order chain, to which everything in [1] applies; but the secret is then the tuple, and this changes two
things.

- The leakage is about k neighbouring places together. What one release spends on l^t alone is event-level; about the
  tuple, the k releases that depend on it spend k budgets, as in w-event privacy with w = k.
- Two tuples that end in different places overlap with different successors, so for k >= 2 the one-step matrix has rows
  of disjoint supports: L is the identity and the leakage of n releases is n epsilon, whatever the data. This is an
  artefact of the overlap, not a finding. Tuples k steps apart share no place: seen every k steps (`every_kth`) they
  form a first-order chain as well, and each block of k releases spends k epsilon on its tuple. The leakage of that
  chain is the meaningful one: `temporal_privacy_leakage(np.full(blocks, k * epsilon), ...)` on `every_kth(P, k)`.

Rows of an augmented chain have at most as many entries as there are places, so that it is kept sparse when large.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tplrepro.markov.sequences import count_transitions
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_horizon

__all__ = ["augment_sequences", "estimate_higher_order", "every_kth"]

#: Most tuples that may become states, and most probabilities stored: 2**27 of them take 1.5 GB.
MOST_TUPLES = 1_000_000
MOST_STORED = 2**27


def augment_sequences(sequences, order: int = 2, labels=None):
    """Sequences of places as sequences of k-tuples of places.

    Parameters
    ----------
    sequences : iterable of 1-D sequences of places, such as a `tplrepro.datasets.Sequences`
        Whole numbers, or labels.
    order : int >= 1, the k of the tuples
    labels : sequence, optional; default the `labels` of the sequences, if they have them
        What the whole numbers stand for.

    Returns
    -------
    augmented : list of int64 arrays, each k - 1 shorter than its sequence (empty if that is shorter)
    tuples : list of the tuples that occur, sorted by the places' order; the numbers are positions in it

    Raises
    ------
    ValueError
        If no sequence has k places, or the order is not a whole number >= 1.

    Examples
    --------
    >>> augmented, tuples = augment_sequences([["a", "b", "b", "a"], ["b"]], order=2)
    >>> tuples, [part.tolist() for part in augmented]
    ([('a', 'b'), ('b', 'a'), ('b', 'b')], [[0, 2, 1], []])
    """
    order = check_horizon(order, "order")
    arrays, places = _coded(sequences, labels)
    windows = [
        np.lib.stride_tricks.sliding_window_view(array, order) if array.size >= order else np.empty((0, order), int)
        for array in arrays
    ]
    flat = np.concatenate(windows) if windows else np.empty((0, order), int)
    if not flat.size:
        longest = max((array.size for array in arrays), default=0)
        raise ValueError(
            f"a chain of order {order} needs a sequence of at least {order} places, found at most {longest}; "
            "give longer sequences or a lower order"
        )
    distinct, codes = np.unique(flat, axis=0, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    tuples = [tuple(places[k] for k in row) for row in distinct.tolist()]
    return np.split(codes, np.cumsum([len(window) for window in windows])[:-1]), tuples


def estimate_higher_order(
    sequences,
    order: int = 2,
    smoothing: float = 0.0,
    direction: str = "forward",
    smooth_over: str = "successors",
    tuples="observed",
    labels=None,
    sparse: bool | None = None,
) -> TransitionMatrix:
    """The maximum-likelihood chain of order k over k-tuples, with Laplacian smoothing.

    Parameters
    ----------
    sequences, order, labels : see `augment_sequences`
    smoothing : float >= 0, the s added to the counts
    direction : "forward" estimates Pr(z_t | z_{t-1}), "backward" Pr(z_{t-1} | z_t)
    smooth_over : "successors" or "all"
        "successors" adds s where a tuple can lead: to those that continue it, (a, b) to (b, c). "all" adds s to every
        pair of states, as for any chain: a step from (a, b) to (c, d) then has a probability though it cannot occur.
    tuples : "observed", "all", or a list of tuples
        States are the tuples that occur, all k-tuples of the places that occur, or those given (the states of another
        estimate, say). With "all" and successors smoothed, each tuple can reach every other one in k steps.
    sparse : bool, optional; default sparse from 4,096 states on

    Returns
    -------
    TransitionMatrix, its states labelled by tuples; for order 1 by the places themselves

    Raises
    ------
    ValueError
        As `augment_sequences`; also for a negative s, an unknown option, too many tuples, or a tuple without any
        successor to smooth over (the last of a sequence, seen only there): see `tplrepro.markov.drop_dead_ends`.

    Examples
    --------
    >>> P = estimate_higher_order([["a", "b", "a", "a", "b", "a"]], order=2)
    >>> P.states, P.probabilities.tolist()
    ([('a', 'a'), ('a', 'b'), ('b', 'a')], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    if smooth_over not in ("successors", "all"):
        raise ValueError(f"smooth_over must be 'successors' or 'all', found {smooth_over!r}; choose one of them")
    if isinstance(tuples, str) and tuples not in ("observed", "all"):
        raise ValueError(f"tuples must be 'observed', 'all' or a list of tuples, found {tuples!r}; choose one of them")
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be finite and at least 0, found {smoothing}; give the s added to each count")
    augmented, states = augment_sequences(sequences, order, labels)
    if not isinstance(tuples, str):
        augmented, states = _among(augmented, states, [(t,) for t in tuples] if order == 1 else list(tuples))
    elif tuples == "all":
        augmented, states = _among(augmented, states, _all_tuples(states, order))
    counts, _ = count_transitions(augmented, n_states=len(states), direction=direction)
    if smoothing and order > 1 and smooth_over == "successors":
        counts = counts + smoothing * _possible_steps(states, direction)
        smoothing = 0.0
    names = [state[0] for state in states] if order == 1 else states
    return TransitionMatrix.from_counts(counts, smoothing, names, sparse)


def every_kth(matrix, k: int) -> TransitionMatrix:
    """The chain seen every k steps: the matrix P^k.

    Parameters
    ----------
    matrix : TransitionMatrix or array-like (n, n)
    k : int >= 1

    Returns
    -------
    TransitionMatrix on the same states

    Raises
    ------
    ValueError
        If k is not a whole number >= 1, or the power of a sparse matrix with a background is asked for, or one that
        would not fit in memory.

    Examples
    --------
    >>> every_kth([[0.5, 0.5], [0.0, 1.0]], 2).probabilities.tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """
    k = check_horizon(k, "k")
    matrix = as_transition_matrix(matrix)
    if k == 1:
        return matrix
    if not matrix.is_sparse:
        power = np.linalg.matrix_power(matrix.probabilities, k)
        return TransitionMatrix(power, states=matrix.states, normalize=True)
    if matrix.background.any():
        raise ValueError(
            f"the power of a sparse matrix needs background 0, found {matrix.background.max():.3g}: it would be dense; "
            "smooth over successors only, or make the matrix dense"
        )
    power = matrix.probabilities
    for _ in range(k - 1):
        stored = int((np.diff(matrix.probabilities.indptr)[power.indices]).sum())  # an upper bound for the product
        if stored > MOST_STORED:
            raise ValueError(
                f"the power must store at most {MOST_STORED} probabilities, found up to {stored}; use fewer places"
            )
        power = power @ matrix.probabilities
    return TransitionMatrix(power, states=matrix.states, normalize=True)


def _coded(sequences, labels):
    """Integer arrays, and what the integers stand for."""
    if labels is None:
        labels = getattr(sequences, "labels", None)
    arrays = [np.asarray(sequence) for sequence in sequences]
    bad = next((i for i, array in enumerate(arrays) if array.ndim != 1), None)
    if bad is not None:
        raise ValueError(
            f"each sequence must be one-dimensional, found {arrays[bad].ndim} dimensions at position {bad}; "
            "give a list of flat sequences of places"
        )
    filled = [array for array in arrays if array.size]
    if all(np.issubdtype(array.dtype, np.integer) for array in filled):
        low = min((int(array.min()) for array in filled), default=0)
        high = max((int(array.max()) for array in filled), default=-1)
        places = range(high + 1) if labels is None else _plain(labels)
        if low < 0 or high >= len(places):
            raise ValueError(
                f"unknown place {low if low < 0 else high} in the sequences; places must be 0..{len(places) - 1}: "
                "give a label for each, or drop it"
            )
        return [array.astype(np.int64) for array in arrays], places
    places = sorted({place for array in filled for place in array.tolist()})
    number = {place: index for index, place in enumerate(places)}
    return [np.array([number[place] for place in array.tolist()], dtype=np.int64) for array in arrays], places


def _plain(labels) -> list:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def _all_tuples(states, order: int) -> list:
    places = list(dict.fromkeys(place for state in states for place in state))
    n = len(places)
    if n**order > MOST_TUPLES or (order > 1 and n ** (order + 1) > MOST_STORED):
        raise ValueError(
            f"all {order}-tuples of {n} places would be {n**order} states, more than fit; "
            'use tuples="observed", larger cells, or a lower order'
        )
    return list(product(places, repeat=order))


def _among(augmented, states, chosen: list):
    """The same sequences over the tuples chosen."""
    number = {state: index for index, state in enumerate(chosen)}
    missing = next((state for state in states if state not in number), None)
    if missing is not None:
        raise ValueError(f"tuples must hold each one that occurs, but {missing!r} is not among them; add it")
    moved = np.array([number[state] for state in states], dtype=np.int64)
    return [moved[part] for part in augmented], chosen


def _possible_steps(states, direction: str):
    """A 1 where a tuple continues another: (n, n) sparse."""
    import scipy.sparse

    overlaps: dict = {}
    ends = np.array([overlaps.setdefault(state[1:], len(overlaps)) for state in states])
    begins = np.array([overlaps.setdefault(state[:-1], len(overlaps)) for state in states])
    size, n = len(overlaps), len(states)
    stored = int((np.bincount(ends, minlength=size) * np.bincount(begins, minlength=size)).sum())
    if stored > MOST_STORED:
        raise ValueError(
            f"the chain must store at most {MOST_STORED} probabilities, found {stored}; use larger cells, a lower "
            "order, or smoothing=0"
        )
    ones = np.ones(n)
    from_end = scipy.sparse.csr_array((ones, (np.arange(n), ends)), shape=(n, size))
    to_begin = scipy.sparse.csr_array((ones, (begins, np.arange(n))), shape=(size, n))
    steps = (from_end @ to_begin).tocsr()
    return steps if direction == "forward" else steps.T.tocsr()
