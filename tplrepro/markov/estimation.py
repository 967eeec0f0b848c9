"""Transition matrices from observed sequences: maximum likelihood with Laplacian smoothing (section 3.1 of [1]).

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tplrepro.markov.transition import TransitionMatrix

__all__ = ["count_transitions", "estimate_transitions"]

#: From this many states on, estimates are kept sparse unless asked otherwise (a dense matrix would take 128 MB).
SPARSE_FROM = 4096


def count_transitions(sequences, n_states: int | None = None, states=None, direction: str = "forward"):
    """Count the steps from state to state.

    Parameters
    ----------
    sequences : iterable of 1-D sequences of states, of any lengths
        Whole numbers 0..n-1, or labels if `states` is given or they are not numbers.
    n_states : int, optional; default the largest state seen plus one
    states : sequence of labels, optional; default, for labels, those seen, sorted
    direction : "forward" counts l^{t-1} -> l^t, "backward" l^t -> l^{t-1}

    Returns
    -------
    counts : scipy.sparse.csr_array (n, n), float
    states : list of n labels, or None for whole numbers

    Raises
    ------
    ValueError
        For no sequences, nested sequences, a state that is not among those allowed, or an unknown direction.

    Examples
    --------
    >>> counts, states = count_transitions([["a", "b", "b"], ["b", "a"]])
    >>> states, counts.toarray().tolist()
    (['a', 'b'], [[0.0, 1.0], [1.0, 1.0]])
    """
    import scipy.sparse

    if direction not in ("forward", "backward"):
        raise ValueError(f"direction must be 'forward' or 'backward', found {direction!r}; choose one of them")
    arrays = [_one_dimensional(sequence, position) for position, sequence in enumerate(sequences)]
    if not arrays or not any(array.size for array in arrays):
        raise ValueError("estimation needs at least one observed state, found none; give non-empty sequences")
    arrays = [array for array in arrays if array.size]
    flat = np.concatenate(arrays)
    if states is None and not np.issubdtype(flat.dtype, np.integer):
        states = sorted(set(flat.tolist()))
    if states is not None:
        states = list(states)
        if n_states is not None and n_states != len(states):
            raise ValueError(
                f"n_states must equal the number of labels, found {n_states} and {len(states)}; leave n_states out"
            )
        position = {label: index for index, label in enumerate(states)}
        try:
            flat = np.array([position[label] for label in flat.tolist()], dtype=np.int64)
        except KeyError as error:
            raise ValueError(
                f"unknown state {error.args[0]!r} in the sequences; the states allowed are {states[:5]}"
                f"{'...' if len(states) > 5 else ''}: add it to states or drop it from the data"
            ) from None
        n_states = len(states)
    if n_states is None:
        n_states = int(flat.max()) + 1
    if flat.min() < 0 or flat.max() >= n_states:
        wrong = flat[(flat < 0) | (flat >= n_states)][0]
        raise ValueError(
            f"unknown state {wrong} in the sequences; states must be 0..{n_states - 1}: raise n_states or drop it"
        )
    # A step ends at each element but the first of its sequence.
    inside = np.ones(flat.size, dtype=bool)
    inside[np.cumsum([0] + [array.size for array in arrays[:-1]])] = False
    end = np.flatnonzero(inside)
    origin, target = flat[end - 1], flat[end]
    if direction == "backward":
        origin, target = target, origin
    counts = scipy.sparse.coo_array((np.ones(origin.size), (origin, target)), shape=(n_states, n_states)).tocsr()
    return counts, states


def estimate_transitions(
    sequences: Iterable,
    n_states: int | None = None,
    smoothing: float = 0.0,
    states=None,
    direction: str = "forward",
    sparse: bool | None = None,
) -> TransitionMatrix:
    """The maximum-likelihood matrix with Laplacian smoothing: (count + s) / (row total + n s).

    Parameters
    ----------
    sequences, n_states, states, direction : see `count_transitions`
        direction="backward" estimates Pr(l^{t-1} | l^t) from the same sequences.
    smoothing : float >= 0, the s added to every count
    sparse : bool, optional; default sparse from 4,096 states on

    Returns
    -------
    TransitionMatrix

    Raises
    ------
    ValueError
        As `count_transitions`; also if smoothing is negative or not finite, or if it is 0 and a state is never left.

    Examples
    --------
    >>> estimate_transitions([[0, 1, 1]], smoothing=1.0).probabilities.round(6).tolist()
    [[0.333333, 0.666667], [0.333333, 0.666667]]
    """
    counts, states = count_transitions(sequences, n_states, states, direction)
    return transitions_from_counts(counts, smoothing, states, sparse)


def transitions_from_counts(
    counts, smoothing: float = 0.0, states=None, sparse: bool | None = None
) -> TransitionMatrix:
    """The same from a sparse (n, n) matrix of counts."""
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be finite and at least 0, found {smoothing}; give the s added to each count")
    n = counts.shape[0]
    totals = np.asarray(counts.sum(axis=1)).ravel() + n * smoothing
    if (totals == 0).any():
        state = int(np.argmax(totals == 0))
        label = state if states is None else states[state]
        raise ValueError(
            f"every state must be left at least once, but no step starts at state {label!r} "
            f"({int((totals == 0).sum())} such states); give smoothing > 0, or drop those states"
        )
    if n < SPARSE_FROM if sparse is None else not sparse:
        return TransitionMatrix((counts.toarray() + smoothing) / totals[:, None], states=states)
    matrix = counts.tocsr(copy=True)
    matrix.data = (matrix.data + smoothing) / np.repeat(totals, np.diff(matrix.indptr))
    return TransitionMatrix(matrix, states=states, background=smoothing / totals)


def _one_dimensional(sequence, position: int) -> np.ndarray:
    if isinstance(sequence, str):
        raise ValueError(
            f"each sequence must be a list of states, found the string {sequence!r} at position {position}; "
            "wrap a single sequence in a list"
        )
    try:
        array = np.asarray(sequence)
    except ValueError:
        array = None
    if array is None or array.ndim != 1 or (array.dtype == object and any(np.ndim(item) for item in array)):
        found = "a ragged or nested one" if array is None or array.ndim == 1 else f"{array.ndim} dimensions"
        raise ValueError(
            f"each sequence must be one-dimensional, found {found} at position {position}; "
            "give a list of flat sequences of states"
        )
    if np.issubdtype(array.dtype, np.floating):
        bad = ~np.isfinite(array) | (array != np.round(array))
        if bad.any():
            raise ValueError(
                f"states must be whole numbers or labels, found {array[bad][0]:g} in sequence {position}; "
                "drop missing values and grid continuous ones"
            )
        return array.astype(np.int64)
    if array.dtype == bool:
        return array.astype(np.int64)
    return array
