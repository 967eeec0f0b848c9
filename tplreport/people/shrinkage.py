"""The transition matrix of each user, shrunk towards the pooled matrix of all users.

Row i of a user is (c_i + w p_i) / (|c_i| + w) for her counts c_i, the pooled row p_i and a weight w
in pseudo-transitions; without pooling it is (c_i + s) / (|c_i| + n s) with a smoothing s.
"""

from collections.abc import Iterator

import numpy as np

from tplrepro.markov.phases import shrunk_matrix
from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE

#: Entries of the matrices that are made at a time, few enough to stay in cache.
ENTRIES = 1 << 16


def pooled_matrices(data: Sequences, smoothing: float) -> dict[str, TransitionMatrix | None]:
    """The backward and forward matrix of all users; without smoothing, users in a state that nobody
    leaves stay."""
    counts, _ = count_transitions(data)
    pooled: dict[str, TransitionMatrix | None] = {}
    for side, steps in {"backward": counts.T, "forward": counts}.items():
        if smoothing == 0.0:
            empty = np.flatnonzero(np.asarray(steps.sum(axis=1)).ravel() == 0)
            steps = steps.tolil()
            steps[empty, empty] = 1.0
        pooled[side] = TransitionMatrix.from_counts(steps, smoothing)
    return pooled


def sparse_user_matrix(
    sequences: Sequences,
    side: str,
    prior: TransitionMatrix | None,
    smoothing: float,
    weight: float | None,
) -> TransitionMatrix:
    """The matrix of one user over very many states, from all her `sequences`.

    `side` is "backward" or "forward". Rows are shrunk towards those of the sparse `prior` by
    `weight` pseudo-transitions; if one of the two is None, `smoothing` is added to each count.
    """
    counts, _ = count_transitions(sequences, direction=side)
    if prior is None or weight is None:
        return TransitionMatrix.from_counts(counts, smoothing)
    return shrunk_matrix(counts, prior, weight)


def user_matrices(
    first: np.ndarray,
    sequences: Sequences,
    pooled: dict[str, TransitionMatrix | None],
    smoothing: float,
    weight: float | None,
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Numbers (M,) of users, some at a time, and their matrices (M, n, n) of each side.

    User u has the sequences from first[u] to first[u + 1]. `pooled` maps each side to the matrix
    towards which rows are shrunk by `weight` pseudo-transitions; where it is None, `smoothing` is
    added to each count. Matrices that do not exist are NaN.
    """
    n = sequences.n_states
    users = first.size - 1
    owner = np.repeat(np.arange(users), np.diff(sequences.offsets[first]))  # the user of each value
    state = sequences.values.astype(np.int64)
    later = np.delete(np.arange(state.size), sequences.offsets[:-1][sequences.lengths > 0])
    steps = np.searchsorted(owner[later], np.arange(users + 1))
    size = max(1, ENTRIES // n**2)
    for start in range(0, users, size):
        members = np.arange(start, min(start + size, users))
        now = later[steps[start] : steps[members[-1] + 1]]
        shape = members.size, n, n
        cells = np.ravel_multi_index((owner[now] - start, state[now - 1], state[now]), shape)
        counts = np.bincount(cells, minlength=members.size * n**2).reshape(shape)
        of_side = {"forward": counts, "backward": counts.swapaxes(1, 2)}
        yield (
            members,
            {side: _estimates(of_side[side], P, smoothing, weight) for side, P in pooled.items()},
        )


@np.errstate(all="ignore")
def _estimates(
    counts, prior: TransitionMatrix | None, smoothing: float, weight: float | None
) -> np.ndarray:
    """Matrices (M, n, n) from counts (M, n, n), NaN where there is none.

    Rows are shrunk towards those of `prior` by `weight` pseudo-transitions; without a prior,
    `smoothing` is added to each count.
    """
    counts = np.ascontiguousarray(counts)  # the order of its sums depends on it
    totals = counts.sum(axis=2)
    if prior is None:
        rows = (counts + smoothing) / (totals + counts.shape[1] * smoothing)[:, :, None]
        good = np.abs(rows.sum(axis=2) - 1.0) <= ROW_SUM_TOLERANCE
    else:
        rows = (counts + weight * prior.toarray()) / (totals + weight)[:, :, None]
        sums = rows.sum(axis=2)
        good = (sums > 0.0) & np.isfinite(sums)
        rows /= sums[:, :, None]
    rows[~good.all(axis=1)] = np.nan
    return rows
