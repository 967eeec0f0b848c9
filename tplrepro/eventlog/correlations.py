"""From one event to one release: the matrices by which the trace of a case moves between two releases.

In a *certain* release each case that continues publishes exactly w new events, so its state moves by w
transitions; in an *uncertain* release it publishes from 0 to w events, all equally likely. A complete case
stays complete. The forward matrix is the w-th power of the one-event matrix, or the mean of its powers 0 to
w. The backward matrix follows by Bayes' rule, with the counts that leave each state or end in it as prior;
or, as published with [4], from exploring backward with all predecessors equally likely ("uniform"). Where
exploring reaches states without a known successor, probabilities are conditioned on the traces that continue;
if none does, the row is unknown, and `loss_matrix` omits it.

**How rows are matched.** Both matrices of the step from release t - 1 to t are indexed by the states of the
system discovered at t, which contains the traces of both releases. Rows of different releases never need to
be matched, because only a number, the leakage alpha, passes from step to step: it bounds the evidence about
any two traces.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from tplrepro.eventlog.transition_system import TransitionSystem
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_choice, check_horizon


@dataclass(frozen=True, eq=False)
class StepMatrices(FrozenArrays):
    """Pr(previous state | state) and Pr(next state | state), (n, n), over the states of the later release's system.

    Rows sum to 1; unknown rows are empty.
    """

    backward: csr_array
    forward: csr_array


def release_step(
    system: TransitionSystem, depth: int = 1, certain: bool = True, backward_from: str = "bayes"
) -> StepMatrices:
    """The matrices of the step to the release of `system`, in which cases publish up to `depth` new events.

    Each case publishes exactly `depth` >= 1 events if `certain`, else any number from 0 to `depth`.
    `backward_from` is "bayes" or "uniform".

    >>> import pandas as pd
    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
    >>> step = release_step(TransitionSystem.from_log(log, window=1))
    >>> step.forward.toarray()[1].tolist()  # from a: b or c
    [0.0, 0.0, 0.5, 0.0, 0.5]
    >>> step.backward.toarray()[3].tolist()  # complete now: ended with b, ended with c, or was complete before
    [0.0, 0.0, 0.25, 0.5, 0.25]
    """
    depth = check_horizon(depth, "depth")
    check_choice(backward_from, "backward_from", ("bayes", "uniform"))
    forward = _explored(system.counts + diags_array(system.final * 1.0), depth, certain)
    if backward_from == "uniform":
        return StepMatrices(_explored((system.counts.T > 0).astype(float), depth, certain), forward)
    # A case in a state without known successor may have been there before, if it published nothing.
    stayed = np.where(system.has_successor | certain, 0.0, 1.0 / (depth + 1))
    joint = diags_array(system.visits) @ (forward + diags_array(stayed))
    # Nothing precedes ▶, although an uncertain release may leave a case there.
    return StepMatrices(_normalized(diags_array(system.has_predecessor * 1.0) @ joint.T), forward)


def loss_matrix(rows: csr_array, smoothing: float = 0.0) -> tuple[TransitionMatrix, np.ndarray] | None:
    """A matrix with the privacy loss function of the known rows (n, n), and the state of each of its rows.

    None if fewer than two rows are known. Empty rows are replaced by the known row that is cheapest to store,
    which does not change L, a maximum over pairs of rows. `smoothing` >= 0 is the s of Eq. (28) of [1], added
    to every probability of the known rows.
    """
    stored = np.diff(rows.indptr)
    known = np.flatnonzero(stored > 0)
    if known.size < 2:
        return None
    source = np.arange(stored.size)
    source[stored == 0] = known[np.argmin(stored[known])]
    complete = rows if known.size == stored.size else rows[source]
    raised = csr_array((complete.data + smoothing, complete.indices, complete.indptr), complete.shape)
    return TransitionMatrix(raised, background=smoothing, normalize=True), source


def _explored(one_event, depth: int, certain: bool) -> csr_array:
    """Transition probabilities of `depth` steps, or of 0 to `depth` steps equally likely; unknown rows stay empty."""
    one_step = _normalized(one_event)
    moves = [one_step]
    for _ in range(depth - 1):
        moves.append(moves[-1] @ one_step)
    if certain:
        return _normalized(moves[-1])
    known = diags_array((np.diff(one_step.indptr) > 0) * 1.0).tocsr()
    return _normalized(sum(map(_normalized, moves), known))  # one term per feasible number of steps


def _normalized(rows) -> csr_array:
    """Rows divided by their sums; those without entries stay empty."""
    rows = csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.data /= np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
    return rows
