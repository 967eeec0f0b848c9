"""From one event to one release: how a case's trace moves between two releases, and what the adversary makes of it.

In a *certain* release each case that goes on publishes exactly w new events, so its state moves w transitions ahead; in
an *uncertain* one it publishes a number of events from 0 to w, all equally likely. A case that is complete stays so.
Both matrices come from exploring the transition system to a depth, w by default:

- forward, Pr(state at the next release | state): the depth-th power of the one-event matrix, or the mean of its powers
  0 to depth;
- backward, Pr(state at the release before | state): Bayes' rule on the forward one, with the number of cases that leave
  each state or end in it as the distribution before; or, as published with [4], exploring backward with all
  predecessors equally likely ("uniform").

Where exploring runs into states without a known successor, probabilities are conditioned on the traces that go on; a
row from which none does is unknown. `loss_matrix` leaves unknown rows out.

**How rows are matched.** The transition system is discovered anew at each release, so states differ from release to
release: new ones appear, and a number stands for another trace. Both matrices of the step from release t - 1 to t are
therefore indexed, rows and columns, by the states of the system discovered at t, which holds the traces of both. Rows
of different releases are never matched, because only a number, the leakage alpha, passes from step to step: it bounds
the evidence about any two traces, whichever system names them.

References
----------
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from tplrepro.eventlog.transition_system import TransitionSystem
from tplrepro.markov.generators import smoothed
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_horizon

__all__ = ["ReleaseStep", "loss_matrix", "release_step"]


@dataclass(frozen=True)
class ReleaseStep:
    """The correlations between two releases; rows and columns are the states of the later one's transition system.

    Attributes
    ----------
    backward, forward : scipy.sparse.csr_array (n, n)
        Pr(state before | state) and Pr(next state | state); rows sum to 1, unknown rows are empty.
    system : TransitionSystem
    """

    backward: scipy.sparse.csr_array
    forward: scipy.sparse.csr_array
    system: TransitionSystem


def release_step(
    system: TransitionSystem,
    window: int = 1,
    certain: bool = True,
    depth: int | None = None,
    backward: str = "bayes",
) -> ReleaseStep:
    """The matrices of one release of up to `window` new events a case.

    Parameters
    ----------
    system : TransitionSystem
    window : int >= 1, new events a case
    certain : bool, whether each case publishes exactly `window` events, or any number from 0 to `window`
    depth : int >= 1, optional, how far the transition system is explored; default `window`
    backward : {"bayes", "uniform"}

    Returns
    -------
    ReleaseStep

    Raises
    ------
    ValueError
        If window or depth is not a whole number of at least 1, or backward is neither.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
    >>> step = release_step(TransitionSystem.from_log(log, window=1))
    >>> step.forward.toarray()[1].tolist()  # from a: b or c
    [0.0, 0.0, 0.5, 0.0, 0.5]
    >>> step.backward.toarray()[3].tolist()  # complete now: ended with b, ended with c, or was complete before
    [0.0, 0.0, 0.25, 0.5, 0.25]
    """
    depth = check_horizon(window, "window") if depth is None else check_horizon(depth, "depth")
    final = np.flatnonzero(system.final)
    stay = scipy.sparse.coo_array((np.ones(final.size), (final, final)), shape=system.counts.shape)
    forward = _explored(_normalized((system.counts + stay).tocsr()), depth, certain)
    if backward == "bayes":
        # A case that ended in a state without known successor may have been there before, if it published nothing.
        stayed = np.where(system.has_successor | certain, 0.0, 1.0 / (depth + 1))
        joint = scipy.sparse.diags_array(system.visits) @ (forward + scipy.sparse.diags_array(stayed))
        # Of ▶ the log shows nothing before it: that an uncertain release may leave a case there is no evidence.
        known = scipy.sparse.diags_array(system.has_predecessor.astype(float))
        back = _normalized((known @ joint.T).tocsr())
    elif backward == "uniform":
        counts = system.counts.T.tocsr()
        ones = scipy.sparse.csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), counts.shape)
        back = _explored(_normalized(ones), depth, certain)
    else:
        raise ValueError(f"backward must be 'bayes' or 'uniform', found {backward!r}; choose one of them")
    return ReleaseStep(back, forward, system)


def loss_matrix(rows, smoothing: float = 0.0) -> tuple[TransitionMatrix, np.ndarray] | None:
    """The matrix whose privacy loss function is that of the known rows; None if fewer than two rows are known.

    Parameters
    ----------
    rows : scipy.sparse.csr_array (n, n), rows that sum to 1 or are empty
    smoothing : float >= 0, the s of Eq. (28) of TKDE 2019, added to every probability of the known rows

    Returns
    -------
    matrix : TransitionMatrix (n, n)
        Empty rows repeat the known row that is cheapest to store: L takes the largest value over pairs of rows, and a
        row repeated adds no pair.
    source : ndarray of int (n,), the state whose row stands in each row
    """
    stored = np.diff(rows.indptr)
    known = np.flatnonzero(stored > 0)
    if known.size < 2:
        return None
    source = np.arange(stored.size)
    source[stored == 0] = known[np.argmin(stored[known])]
    matrix = TransitionMatrix(rows if known.size == stored.size else rows[source], normalize=True)
    return (smoothed(matrix, smoothing) if smoothing else matrix), source


def _explored(one_step, depth: int, certain: bool):
    """Moves of `depth` steps, or of 0 to `depth` steps equally likely; rows unknown after one step stay empty."""
    reached = one_step
    if certain:
        for _ in range(depth - 1):
            reached = reached @ one_step
        return _normalized(reached.tocsr())
    known = np.diff(one_step.indptr) > 0
    total = scipy.sparse.diags_array(known.astype(float)).tocsr()
    for step in range(depth):
        if step:
            reached = (reached @ one_step).tocsr()
        total = total + _normalized(reached)
    return _normalized(total.tocsr())  # a row has as many parts as steps that can be made from it


def _normalized(rows):
    """Rows divided by their sums; those without entries stay empty."""
    rows = scipy.sparse.csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    sums = np.asarray(rows.sum(axis=1)).ravel()
    rows.data /= np.repeat(sums, np.diff(rows.indptr))
    return rows
