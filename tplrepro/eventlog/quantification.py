"""BPL, FPL and TPL of a log released over time by Eqs. (11), (13), (15) of [1], as in [4].

The transition system is discovered anew at each release, and its matrices describe the step to that
release (see `transition_system`). BPL runs from the first release to the last, FPL from the last to
the first; the program published with [4] (pm-cedp-qdp 0.1.2, github.com/m4jidRafiei/QDP_CEDP,
commit 9604d1def37a: qdp.py, lines 446, 536) runs both from the first, so its FPL belongs to another
release.

If two states have no common neighbour, the adversary can distinguish them with certainty: then
L(alpha) = alpha, and each release adds its whole budget. Full traces nearly always contain such a
pair; a note in the result says so if it happens at every release.
"""

from __future__ import annotations
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import ArrayLike

from tplrepro.eventlog.log import releases
from tplrepro.eventlog.transition_system import TransitionSystem, loss_matrix, release_step
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.loss_function import PrivacyLossFunction, Witness
from tplrepro.markov.transition import MatrixLike, as_transition_matrix
from tplrepro.progress import with_progress
from tplrepro.validation import (
    RngLike,
    as_scalar,
    check_alpha,
    check_budgets,
    check_choice,
    check_epsilon,
    check_smoothing,
)

#: How each rule makes backward matrices, by default.
DEFAULT_BACKWARD = {"exact": "bayes", "published": "uniform"}


def quantify_releases(
    log: pd.DataFrame,
    epsilon: ArrayLike,
    window: int = 1,
    *,
    certain: bool = True,
    direction: str = "prefix",
    abstraction: str = "sequence",
    state_window: int | None = None,
    counting: str = "cases",
    start: float | str | pd.Timestamp = 0.5,
    backward_from: str | None = None,
    smoothing: float = 0.0,
    rule: str = "exact",
    max_releases: int | None = None,
    rng: RngLike = None,
) -> pd.DataFrame:
    """The leakage of each release of a log about one case, to an adversary who knows the transition
    systems.

    Parameters
    ----------
    log, window, certain, start, max_releases, rng : the log and how it is released, as in `releases`
    epsilon : float or array-like (T,), the budget of every release, or of each of the T releases, in nats
    direction, abstraction, state_window, counting : states and counts, as in `TransitionSystem.from_log`, whose
        `window` is `state_window` here
    backward_from : as in `release_step`; by default "uniform" for the published rule, else "bayes"
    smoothing : float >= 0, the s of Eq. (28) of [1], added to every probability: a less certain adversary
    rule : "exact", or "published", which understates the leakage (see `PublishedLoss`)

    Returns
    -------
    DataFrame
        release, from 1 to T; epsilon, bpl, fpl, tpl in nats; states, the size of the system discovered at the
        release; seconds of computation. ``attrs``: backward_witness and forward_witness, T entries each, a `Witness`
        with the two traces behind BPL and FPL, or None; note, None or that the leakage is the sum of all budgets.

    >>> log = pd.DataFrame({"case:concept:name": list("112233"), "concept:name": list("abacab"),
    ...     "time:timestamp": pd.date_range("2022-01-01", periods=6)})
    >>> leakage = quantify_releases(log, 0.1, state_window=1, smoothing=0.2)
    >>> leakage[["release", "bpl", "fpl", "tpl", "states"]].round(4).values.tolist()
    [[1.0, 0.1, 0.1907, 0.1907, 4.0], [2.0, 0.1507, 0.177, 0.2277, 5.0], [3.0, 0.177, 0.1507, 0.2277, 5.0],
     [4.0, 0.1907, 0.1, 0.1907, 5.0]]
    """
    check_choice(rule, "rule", DEFAULT_BACKWARD)
    backward_from = DEFAULT_BACKWARD[rule] if backward_from is None else backward_from
    smoothing = check_smoothing(smoothing)
    epsilon = check_epsilon(epsilon, "epsilon")
    check_budgets(epsilon, "epsilon", epsilon.size or None)
    before: list[StepLoss | None] = []  # of the step to each release except the first
    after: list[StepLoss | None] = []
    states: list[int] = []
    seconds = []
    published = releases(
        log, window, certain=certain, start=start, max_releases=max_releases, rng=rng
    )
    for release in with_progress(published, "leakage of a log", "release"):
        began = perf_counter()
        system = TransitionSystem.from_log(release, state_window, direction, abstraction, counting)
        if states:
            step = release_step(system, window, certain, backward_from)
            before.append(
                _step_loss(step.backward, system, "at the release before", smoothing, rule)
            )
            after.append(_step_loss(step.forward, system, "at the next release", smoothing, rule))
        states.append(system.n_states)
        seconds.append(perf_counter() - began)
    budgets = check_budgets(epsilon, "epsilon", len(states))
    bpl = accumulate_leakages(before, budgets)
    fpl = accumulate_leakages(after[::-1], budgets[::-1])[::-1]
    table = pd.DataFrame(
        {"release": np.arange(1, budgets.size + 1), "epsilon": budgets, "bpl": bpl, "fpl": fpl}
    )
    table = table.assign(tpl=bpl + fpl - budgets, states=states, seconds=seconds)
    table.attrs["backward_witness"] = [None, *_witnesses(before, bpl[:-1])]
    table.attrs["forward_witness"] = [*_witnesses(after, fpl[1:]), None]
    table.attrs["note"] = _saturation(float(table["tpl"].max()), budgets)
    return table


def _saturation(largest: float, budgets: np.ndarray) -> str | None:
    total = float(budgets.sum())
    if budgets.size == 1 or largest < total * (1.0 - 1e-12):  # the sums run in different orders
        return None
    return (
        f"the leakage is saturated: TPL reaches {total:g} nats, the sum of the budgets of all {budgets.size} releases, "
        "because at each step some two states can be distinguished with certainty (the witnesses name them); for less "
        "leakage choose fewer states and larger steps, such as state_window=1 with a window of 4 or more, or a less "
        "certain adversary by smoothing="
    )


class StepLoss(NamedTuple):
    """The loss function L of one step on one side, and the two traces that attain it, if known."""

    at: Callable[[float], float]
    witness: Callable[[float], Witness | None]


def _step_loss(
    rows: scipy.sparse.csr_array, system: TransitionSystem, where: str, smoothing: float, rule: str
) -> StepLoss | None:
    """None if fewer than two rows are known: then the step adds no leakage."""
    known = loss_matrix(rows, smoothing)
    if known is None:
        return None
    matrix, source = known
    if rule == "published":
        return StepLoss(PublishedLoss(matrix).at, lambda _: None)
    function = PrivacyLossFunction(matrix)

    def witness(alpha: float) -> Witness:
        found = function.witness(alpha)
        rows = source[np.array([found.state_q, found.state_d])].tolist()
        q, d, *columns = map(system.label, [*rows, *found.columns])
        return found._replace(state_q=q, state_d=d, columns=tuple(columns), where=where)

    if function.is_identity:
        # the same two traces for every alpha; nothing of the system need be kept
        certain = witness(1.0)
        return StepLoss(float, lambda alpha: certain._replace(alpha=alpha, loss=alpha))
    return StepLoss(function.at, (lambda _: None) if function.is_zero else witness)


def _witnesses(losses: list[StepLoss | None], alphas: np.ndarray) -> list[Witness | None]:
    return [
        loss and loss.witness(alpha) for loss, alpha in zip(losses, alphas.tolist(), strict=True)
    ]


class PublishedLoss:
    """The loss of a matrix (n, n), perhaps sparse, by the published rule (Eqs. (2), (3) of [4]),
    which is too small.

    For a pair of rows q, d the published program (qdp.py, see above, lines 331 to 340; supplement
    of [4], "Calculating Accumulative Privacy Leakage") keeps only the coordinates with q_j > d_j >
    0. It omits those with q_j > 0 and d_j = 0, whose ratio is infinite and which every optimal
    solution contains, unless some q_j is 1: then it returns L(alpha) = alpha. Its elimination loop
    finds the same subset as sorting by q_j / d_j.

    >>> rows = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]
    >>> import tplrepro as tpl
    >>> PublishedLoss(rows).at(1.0), round(tpl.privacy_loss(rows, 1.0), 3)
    (0.0, 0.62)
    """

    def __init__(self, matrix: MatrixLike):
        matrix = as_transition_matrix(matrix)
        smooth = not matrix.is_sparse or matrix.background.any()
        rows = scipy.sparse.csr_array(
            matrix.toarray() if smooth else matrix.probabilities, copy=True
        )
        rows.eliminate_zeros()
        users = np.bincount(rows.indices, minlength=rows.shape[0])[rows.indices]
        # some q_j = 1 where another row has d_j = 0
        certain = (users[rows.data == 1.0] < rows.shape[0]).any()
        self._parts = None if certain else _shared(rows.tocsc())

    def at(self, alpha: float) -> float:
        """The loss in nats at one leakage alpha; ValueError if alpha is negative or not finite."""
        alpha = as_scalar(check_alpha(alpha), "alpha")
        if self._parts is None:
            return alpha
        q, d = self._parts
        u = np.expm1(min(alpha, 700.0))  # beyond, it overflows, and its reciprocal no longer counts
        return float(np.log1p(np.max((q - d) * u / (d * u + 1.0), initial=0.0)))


def _shared(columns: scipy.sparse.csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Cumulative sums of q and d over the kept coordinates of all pairs of rows, by decreasing q_j
    / d_j."""
    parts = []
    n = columns.shape[0]
    for start, stop in pairwise(columns.indptr):
        values, rows = columns.data[start:stop], columns.indices[start:stop].astype(np.int64)
        i, j = np.nonzero(values[:, None] > values[None, :])
        parts.append((values[i], values[j], rows[i] * n + rows[j]))
    q, d, pair = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((-(q / d), pair))
    # pandas uses compensated sums; differences of one long cumulative sum would lose digits.
    sums = pd.DataFrame({"q": q[order], "d": d[order]}).groupby(pair[order]).cumsum()
    return sums["q"].to_numpy(), sums["d"].to_numpy()
