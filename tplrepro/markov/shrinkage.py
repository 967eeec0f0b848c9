"""The transition matrix of each user, shrunk towards the pooled matrix of all users.

Row i of a user is (c_i + w p_i) / (|c_i| + w) for her counts c_i, the pooled row p_i and a weight w in
pseudo-transitions; without pooling it is (c_i + s) / (|c_i| + n s) with a smoothing s.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE

#: Entries of the matrices that are made at a time, few enough to stay in cache.
ENTRIES = 1 << 16


def pooled_matrix(counts: Any, smoothing: float) -> TransitionMatrix:
    """The matrix of all users from counts (n, n)."""
    if smoothing == 0.0:
        # A state that nobody leaves has no row: users there are taken to stay.
        empty = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() == 0)
        counts = counts.tolil()
        counts[empty, empty] = 1.0
    return TransitionMatrix.from_counts(counts, smoothing)


def sparse_user_matrix(
    sequences: Sequences, side: str, prior: TransitionMatrix | None, smoothing: float, weight: float | None
) -> TransitionMatrix:
    """The matrix of one user over very many states, like those of a sparse `prior`."""
    counts, _ = count_transitions(sequences, direction=side)
    if prior is None:
        return TransitionMatrix.from_counts(counts, smoothing)
    totals = np.asarray(counts.sum(axis=1)).ravel() + weight
    joint = (counts + weight * prior.excess).tocsr()
    background, stored = weight * prior.background / totals, np.diff(joint.indptr)
    joint.data = joint.data / np.repeat(totals, stored) + np.repeat(background, stored)
    return TransitionMatrix(joint, background=background, normalize=True)


def user_matrices(
    first: np.ndarray,
    sequences: Sequences,
    pooled: dict[str, TransitionMatrix | None],
    smoothing: float,
    weight: float | None,
    visited_only: bool,
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Numbers (M,) of users with equally many states n, and their matrices (M, n, n) of each side.

    User u has the sequences from first[u] to first[u + 1]. Matrices that do not exist are NaN.
    """
    n = sequences.n_states
    owner = np.repeat(np.arange(first.size - 1), np.diff(sequences.offsets[first]))  # the user of each value
    state, sizes = sequences.values.astype(np.int64), np.full(first.size - 1, n)
    if visited_only:
        visited, state = np.unique(owner * n + state, return_inverse=True)
        begin = np.searchsorted(visited, np.arange(first.size) * n)
        visited, state, sizes = visited % n, state - begin[owner], np.diff(begin)
    users = np.argsort(sizes, kind="stable")
    place = np.argsort(users)
    # The later value of each step, in the order of these users.
    later = np.delete(np.arange(state.size), sequences.offsets[:-1][sequences.lengths > 0])
    later = later[np.argsort(place[owner[later]], kind="stable")]
    steps = np.searchsorted(place[owner[later]], np.arange(users.size + 1))
    start = 0
    while start < users.size:
        size = int(sizes[users[start]])
        stop = int(np.searchsorted(sizes[users], size, side="right"))
        stop = min(stop, start + max(1, ENTRIES // size**2))
        members, now = users[start:stop], later[steps[start] : steps[stop]]
        shape = members.size, size, size
        cells = np.ravel_multi_index((place[owner[now]] - start, state[now - 1], state[now]), shape)
        counts = np.bincount(cells, minlength=members.size * size**2).reshape(shape)
        places = visited[begin[members][:, None] + np.arange(size)] if size < n else None
        of_side = {"forward": counts, "backward": counts.swapaxes(1, 2)}
        yield members, {side: _estimates(of_side[side], places, P, smoothing, weight) for side, P in pooled.items()}
        start = stop


@np.errstate(all="ignore")
def _estimates(counts, places, prior: TransitionMatrix | None, smoothing: float, weight: float | None) -> np.ndarray:
    """Matrices (M, n, n), NaN where there is none, from counts and the users' places (M, n), None for all states."""
    counts = np.ascontiguousarray(counts)  # the order of its sums depends on it
    totals = counts.sum(axis=2)
    if prior is None:
        rows = (counts + smoothing) / (totals + counts.shape[1] * smoothing)[:, :, None]
        good = np.abs(rows.sum(axis=2) - 1.0) <= ROW_SUM_TOLERANCE
    else:
        expected = prior.toarray() if places is None else _among(prior, places)
        rows = (counts + weight * expected) / (totals + weight)[:, :, None]
        sums = rows.sum(axis=2)
        good = (sums > 0.0) & np.isfinite(sums)
        rows /= sums[:, :, None]
    rows[~good.all(axis=1)] = np.nan
    return rows


def _among(prior: TransitionMatrix, places: np.ndarray) -> np.ndarray:
    """Pooled rows (M, n, n) among the places (M, n) of each user."""
    n = places.shape[1]
    at = np.repeat(places, n, axis=1), np.tile(places, n)
    entries = prior.probabilities[at]
    if prior.is_sparse:
        entries = entries.toarray()
        entries = np.where(entries > 0.0, entries, prior.background[at[0]])
    rows = entries.reshape(-1, n, n)
    mass = rows.sum(axis=2, keepdims=True)
    # Where a pooled row never leads to one of her places, all of them are equally likely.
    return np.where(mass > 0, rows / np.where(mass > 0, mass, 1.0), 1.0 / n)
