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
from dataclasses import dataclass
from itertools import pairwise
from time import process_time

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import ArrayLike

from tplrepro.eventlog.log import releases
from tplrepro.eventlog.transition_system import TransitionSystem, loss_matrix, release_step
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.loss_function import PrivacyLossFunction, Witness
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
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

#: By what share a leakage may be less than the sum of budgets that it is but for rounding.
SATURATED = 1e-12


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
    log : DataFrame
        With the columns case:concept:name, concept:name and time:timestamp.
    epsilon : float or array-like (T,)
        The budget of every release, or of each of the T releases, in nats.
    window : int
        At least 1: how many new events per case a release holds, exactly this number if `certain`,
        else drawn from 0..window.
    certain : bool
    direction : str
        A state is the "prefix" of a trace up to a position, or its "suffix" from there on.
    abstraction : str
        A state is a "sequence", a "multiset" or a "set" of items.
    state_window : int, optional
        The number of items that a state consists of, by default all.
    counting : str
        Transitions count by "cases" or by "occurrences".
    start : float, str or Timestamp
        The first release holds this share of the events, in (0, 1], or all events up to this time.
    backward_from : str, optional
        "bayes" or "uniform", by default "uniform" for the published rule, else "bayes".
    smoothing : float
        The s >= 0 of Eq. (28) of [1], added to every probability: a less certain adversary.
    rule : str
        "exact", or "published", which understates the leakage (see `PublishedLoss`).
    max_releases : int, optional
        At least 1.
    rng : int, numpy.random.Generator or None
        For uncertain releases: a seed, a generator, or None for draws that nobody can repeat.

    Returns
    -------
    DataFrame
        release, from 1 to T; epsilon, bpl, fpl, tpl in nats; states, the size of the system
        discovered at the release; seconds of the processor. ``attrs``: backward_witness and
        forward_witness, T entries each, a `Witness` with the two traces behind BPL and FPL, or
        None; note, None or that the leakage is the sum of all budgets.

    Raises
    ------
    ValueError
        If the log is malformed, an argument out of range, or there are not T budgets.

    Examples
    --------
    >>> log = pd.DataFrame({"case:concept:name": list("112233"), "concept:name": list("abacab"),
    ...     "time:timestamp": pd.date_range("2022-01-01", periods=6)})
    >>> leakage = quantify_releases(log, 0.1, state_window=1, smoothing=0.2)
    >>> leakage[["bpl", "fpl", "tpl", "states"]].round(4).values.tolist()
    [[0.1, 0.1907, 0.1907, 4.0], [0.1507, 0.177, 0.2277, 5.0], [0.177, 0.1507, 0.2277, 5.0],
     [0.1907, 0.1, 0.1907, 5.0]]
    """
    check_choice(rule, "rule", DEFAULT_BACKWARD)
    if backward_from is None:
        backward_from = DEFAULT_BACKWARD[rule]
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
        began = process_time()
        system = TransitionSystem.from_log(release, state_window, direction, abstraction, counting)
        if states:
            step = release_step(system, window, certain, backward_from)
            rows = loss_matrix(step.backward, smoothing)
            before.append(_step_loss(rows, system, "at the release before", rule))
            rows = loss_matrix(step.forward, smoothing)
            after.append(_step_loss(rows, system, "at the next release", rule))
        states.append(system.n_states)
        seconds.append(process_time() - began)
    budgets = check_budgets(epsilon, "epsilon", len(states))
    bpl = accumulate_leakages(before, budgets)
    fpl = accumulate_leakages(after[::-1], budgets[::-1])[::-1]
    columns = {
        "release": np.arange(1, budgets.size + 1),
        "epsilon": budgets,
        "bpl": bpl,
        "fpl": fpl,
        "tpl": bpl + fpl - budgets,
        "states": states,
        "seconds": seconds,
    }
    table = pd.DataFrame(columns)
    table.attrs["backward_witness"] = [None, *_witnesses(before, bpl[:-1])]
    table.attrs["forward_witness"] = [*_witnesses(after, fpl[1:]), None]
    table.attrs["note"] = None
    worst = int(table["tpl"].argmax())
    to_worst = [*zip(before[:worst], bpl[:worst], strict=True)]
    from_worst = [*zip(after[worst:], fpl[worst + 1 :], strict=True)]
    if _are_saturated([*to_worst, *from_worst]):
        table.attrs["note"] = _note_of_saturation(float(table["tpl"].max()), budgets)
    return table


def _are_saturated(steps: list[tuple[StepLoss | None, float]]) -> bool:
    """Whether all these steps, with the leakage before each, forget nothing, but for rounding."""
    return all(
        loss is not None and loss.at(alpha) >= alpha * (1.0 - SATURATED) for loss, alpha in steps
    )


def _note_of_saturation(largest: float, budgets: np.ndarray) -> str | None:
    """The advice for a leakage that is saturated: the largest TPL is the sum of all budgets; None
    if it is less."""
    total = float(budgets.sum())
    if budgets.size == 1 or largest < total * (1.0 - SATURATED):  # the sums run in different orders
        return None
    return (
        f"the leakage is saturated: TPL reaches {total:g} nats, the sum of the budgets of all "
        f"{budgets.size} releases, because at each step some two states can be distinguished with "
        "certainty (the witnesses name them); for less leakage choose fewer states and larger "
        "steps, such as state_window=1 with a window of 4 or more, or a less certain adversary by "
        "smoothing="
    )


@dataclass(frozen=True, eq=False)
class StepLoss:
    """The loss function L of one step on one side; the traces that attain it are not known."""

    at: Callable[[float], float]

    def witness(self, alpha: float) -> Witness | None:
        return None


@dataclass(frozen=True, eq=False)
class _IdentityLoss(StepLoss):
    """L(alpha) = alpha, by the same two traces for every alpha."""

    of_one: Witness  # for alpha = 1

    def witness(self, alpha: float) -> Witness:
        return self.of_one._replace(alpha=alpha, loss=alpha)


@dataclass(frozen=True, eq=False)
class _LossOfTraces(StepLoss):
    """L of the rows of a transition system, by two traces that depend on alpha."""

    function: PrivacyLossFunction
    state_of_row: np.ndarray
    system: TransitionSystem
    where: str

    def witness(self, alpha: float) -> Witness:
        by_row = self.function.witness(alpha)
        rows = np.array([by_row.state_q, by_row.state_d])
        q, d = self.state_of_row[rows].tolist()
        label = self.system.label
        columns = tuple(map(label, by_row.columns))
        return by_row._replace(
            state_q=label(q), state_d=label(d), columns=columns, where=self.where
        )


def _step_loss(
    rows: tuple[TransitionMatrix, np.ndarray] | None,
    system: TransitionSystem,
    where: str,
    rule: str,
) -> StepLoss | None:
    """L of a step from the `rows` of `loss_matrix`, a matrix and the state of each row; None if
    there are none: then the step adds no leakage. `where` names the step for witnesses; `rule` is
    "published" or "exact"."""
    if rows is None:
        return None
    matrix, state_of_row = rows
    if rule == "published":
        return StepLoss(PublishedLoss(matrix).at)
    function = PrivacyLossFunction(matrix)
    if function.is_zero:
        return StepLoss(function.at)
    loss = _LossOfTraces(function.at, function, state_of_row, system, where)
    if function.is_identity:
        return _IdentityLoss(float, loss.witness(1.0))  # nothing of the system need be kept
    return loss


def _witnesses(losses: list[StepLoss | None], alphas: np.ndarray) -> list[Witness | None]:
    """The traces behind each leakage, None without a loss function."""
    witnesses = []
    for loss, alpha in zip(losses, alphas.tolist(), strict=True):
        witness = None
        if loss is not None:
            witness = loss.witness(alpha)
        witnesses.append(witness)
    return witnesses


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
        probabilities = matrix.probabilities
        if matrix.is_sparse and matrix.background.any():
            probabilities = matrix.toarray()
        rows = scipy.sparse.csr_array(probabilities, copy=True)
        rows.eliminate_zeros()
        n = rows.shape[0]
        n_positive = np.bincount(rows.indices, minlength=n)[rows.indices]  # in the same column
        is_one = rows.data == 1.0
        # Whether some q_j = 1 where another row has d_j = 0.
        self.is_identity = bool((n_positive[is_one] < n).any())
        self._sums: tuple[np.ndarray, np.ndarray] | None = None
        if not self.is_identity:
            self._sums = _sums_over_kept_coordinates(rows.tocsc())

    def at(self, alpha: float) -> float:
        """The loss in nats at one leakage alpha; ValueError if alpha is negative or not finite."""
        alpha = as_scalar(check_alpha(alpha), "alpha")
        if self._sums is None:
            return alpha
        q, d = self._sums
        u = np.expm1(min(alpha, 700.0))  # beyond, it overflows, and its reciprocal no longer counts
        return float(np.log1p(np.max((q - d) * u / (d * u + 1.0), initial=0.0)))


def _sums_over_kept_coordinates(columns: scipy.sparse.csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Cumulative sums of q and d over the kept coordinates of each pair of rows, by decreasing
    q_j / d_j."""
    n = columns.shape[0]
    parts_q = []
    parts_d = []
    parts_of_pair = []
    for start, stop in pairwise(columns.indptr):
        values = columns.data[start:stop]
        rows = columns.indices[start:stop].astype(np.int64)
        i, j = np.nonzero(values[:, None] > values[None, :])
        parts_q.append(values[i])
        parts_d.append(values[j])
        parts_of_pair.append(rows[i] * n + rows[j])
    q = np.concatenate(parts_q)
    d = np.concatenate(parts_d)
    pair = np.concatenate(parts_of_pair)
    order = np.lexsort((-(q / d), pair))
    # pandas uses compensated sums; differences of one long cumulative sum would lose digits.
    sums = pd.DataFrame({"q": q[order], "d": d[order]}).groupby(pair[order]).cumsum()
    return sums["q"].to_numpy(), sums["d"].to_numpy()
