"""The transition matrix of each user, shrunk towards the pooled matrix of all users.

Row i of a user is (c_i + w p_i) / (|c_i| + w) for her counts c_i, the pooled row p_i and a weight w in
pseudo-transitions: the posterior mean under a Dirichlet prior w p_i. Without pooling it is
(c_i + s) / (|c_i| + n s) with a smoothing s.

`own_matrix` estimates the matrix of one user. `matrices_of_few` estimates those of many users with few states at
once, as arrays with the same bits: one object for each user takes ten times as long.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE

#: Numbers in the matrices that are computed at a time, few enough to stay in cache.
ENTRIES = 1 << 16


def pooled_matrix(counts: Any, smoothing: float) -> TransitionMatrix:
    """The matrix of all users together, from counts (n, n)."""
    if smoothing == 0.0:
        # A state that nobody leaves has no row: users there are taken to stay.
        empty = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() == 0)
        counts = counts.tolil()
        counts[empty, empty] = 1.0
    return TransitionMatrix.from_counts(counts, smoothing)


def own_matrix(
    sequences: Sequences, side: str, prior: TransitionMatrix | None, smoothing: float, weight: float | None
) -> TransitionMatrix:
    """One user's matrix over the states of her sequences, whose labels are codes of the states of `prior`."""
    counts, _ = count_transitions(sequences, direction=side)
    if prior is None or weight is None:
        return TransitionMatrix.from_counts(counts, smoothing)
    visited = sequences.labels[None] if sequences.n_states < prior.n_states else None
    if visited is not None or not prior.is_sparse:
        return TransitionMatrix(_estimates(counts.toarray()[None], visited, prior, smoothing, weight)[0])
    totals = np.asarray(counts.sum(axis=1)).ravel() + weight
    joint = (counts + weight * prior.excess).tocsr()
    background = weight * prior.background / totals
    stored = np.diff(joint.indptr)
    joint.data = joint.data / np.repeat(totals, stored) + np.repeat(background, stored)
    return TransitionMatrix(joint, background=background, normalize=True)


def matrices_of_few(
    first: np.ndarray,
    sequences: Sequences,
    pooled: dict[str, TransitionMatrix | None],
    smoothing: float,
    weight: float | None,
    visited_only: bool,
    most: int,
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Positions (M,) of users with the same number n <= `most` of states, and their matrices (M, n, n), by side.

    User u has the sequences from first[u] to first[u + 1]. Users whom `own_matrix` refuses are left out.
    """
    n = sequences.n_states
    owner = np.repeat(np.arange(first.size - 1), np.diff(sequences.offsets[first]))
    state = sequences.values.astype(np.int64)
    sizes = np.full(first.size - 1, n)
    if visited_only:
        places, state = np.unique(owner * n + state, return_inverse=True)
        begin = np.searchsorted(places, np.arange(first.size) * n)
        places = places % n
        state = state - begin[owner]
        sizes = np.diff(begin)
    users = np.argsort(sizes, kind="stable")
    users = users[: np.searchsorted(sizes[users], most, side="right")]
    # Steps in the order of these users.
    place = np.full(sizes.size, users.size)
    place[users] = np.arange(users.size)
    to = np.delete(np.arange(state.size), sequences.offsets[:-1][sequences.lengths > 0])
    to = to[np.argsort(place[owner[to]], kind="stable")]
    steps = np.searchsorted(place[owner[to]], np.arange(users.size + 1))
    start = 0
    while start < users.size:
        size = int(sizes[users[start]])
        stop = int(np.searchsorted(sizes[users], size, side="right"))
        stop = min(stop, start + max(1, ENTRIES // size**2))
        members = users[start:stop]
        now = to[steps[start] : steps[stop]]
        cells = ((place[owner[now]] - start) * size + state[now - 1]) * size + state[now]
        counts = np.bincount(cells, minlength=members.size * size**2).reshape(-1, size, size)
        visited = places[begin[members][:, None] + np.arange(size)] if size < n else None
        matrices = {}
        for side, prior in pooled.items():
            steps_of_side = counts.swapaxes(1, 2) if side == "backward" else counts
            matrices[side] = _estimates(steps_of_side, visited, prior, smoothing, weight)
        valid = np.logical_and.reduce([np.isfinite(rows).all(axis=(1, 2)) for rows in matrices.values()])
        yield members[valid], {side: rows[valid] for side, rows in matrices.items()}
        start = stop


@np.errstate(all="ignore")
def _estimates(counts, visited, prior: TransitionMatrix | None, smoothing: float, weight: float | None):
    """Matrices (M, n, n) from counts and states visited (M, n); NaN for users without an estimate."""
    counts = np.ascontiguousarray(counts)  # the order of its sums depends on it
    totals = counts.sum(axis=2)
    if prior is None or weight is None:
        rows = (counts + smoothing) / (totals + counts.shape[1] * smoothing)[:, :, None]
        good = np.abs(rows.sum(axis=2) - 1.0) <= ROW_SUM_TOLERANCE
    else:
        expected = prior.toarray() if visited is None else _among(prior, visited)
        rows = (counts + weight * expected) / (totals + weight)[:, :, None]
        sums = rows.sum(axis=2)
        good = (sums > 0.0) & np.isfinite(sums)
        rows /= sums[:, :, None]
    rows[~good.all(axis=1)] = np.nan
    return rows


def _among(prior: TransitionMatrix, visited: np.ndarray) -> np.ndarray:
    """Pooled rows (M, n, n) among the states visited (M, n)."""
    row = np.repeat(visited, visited.shape[1], axis=1)
    column = np.tile(visited, visited.shape[1])
    entries = prior.probabilities[row, column]
    if prior.is_sparse:
        entries = entries.toarray()
        entries = np.where(entries > 0.0, entries, prior.background[row])
    rows = entries.reshape(*visited.shape, -1)
    mass = rows.sum(axis=2, keepdims=True)
    # A pooled row that never leads to one of the places visited says nothing: all of them are alike.
    return np.where(mass > 0, rows / np.where(mass > 0, mass, 1.0), 1.0 / visited.shape[1])
