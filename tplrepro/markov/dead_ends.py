"""States that a sample never leaves or never enters: without smoothing their rows are undefined.

Sequences of real data end somewhere, often at a place that was seen only there. Maximum likelihood has no row for such
a state, so it is taken out, and with it every state that then leads nowhere.
"""

from __future__ import annotations

import numpy as np

__all__ = ["drop_dead_ends"]


def drop_dead_ends(counts, states=None, both: bool = True):
    """Leave out states until each one that is left has a step to, and (both) from, another one or itself.

    Parameters
    ----------
    counts : scipy.sparse matrix or array-like (n, n), counts of steps
    states : sequence of n labels, optional; default 0..n-1
    both : bool
        Also leave out states that are never entered, so that the backward matrix is defined on the same states.

    Returns
    -------
    counts : scipy.sparse.csr_array (m, m), m <= n
    states : list of m labels, those kept

    Raises
    ------
    ValueError
        If the counts are not square or no state is left.

    Examples
    --------
    >>> counts, states = drop_dead_ends([[1, 1, 0], [2, 0, 1], [0, 0, 0]], states=["a", "b", "c"])
    >>> states, counts.toarray().tolist()
    (['a', 'b'], [[1, 1], [2, 0]])
    """
    import scipy.sparse

    matrix = scipy.sparse.csr_array(counts)
    n = matrix.shape[0]
    if matrix.shape != (n, n) or n == 0:
        raise ValueError(f"counts must be square and not empty, found shape {matrix.shape}; count steps between states")
    matrix.eliminate_zeros()
    kept = np.arange(n)
    while True:
        alive = np.diff(matrix.indptr) > 0
        if both:
            alive &= np.bincount(matrix.indices, minlength=kept.size) > 0
        if alive.all():
            break
        kept = kept[alive]
        if kept.size == 0:
            raise ValueError(
                f"at least one state must be left again and again, found none of {n}; give longer sequences or smooth"
            )
        matrix = matrix[alive][:, alive]
        matrix.sort_indices()
    labels = kept.tolist() if states is None else [states[k] for k in kept]
    return matrix, labels
