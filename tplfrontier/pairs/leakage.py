"""Leakage of each ordered pair of states, for releases that separate some pairs less than others.

R_t[j, k] >= log Pr(o_t | j) / Pr(o_t | k) bounds the release of time t. One step of the backward
recursion is

    BPL_t[i, l] = R_t[i, l] + log max{B_i x / B_l x : 0 <= x_j <= e^BPL_{t-1}[j, k] x_k for all j,
    k}

with the rows B_i of the backward matrix (Theorem 3 of docs/theory/promises.md). With one alpha for
all pairs the logarithm is L(alpha) of [1].

The maximum is that of a linear programme whose constraints join two variables each, so that a basis
is a tree of tight constraints and the simplex method needs O(n^2) operations an exchange. From the
last tree `tree_simplex.proved_ratio` makes a dual solution, which proves that no x exceeds a ratio,
with all roundings on the safe side: a search that stops early gives a larger bound, never one that
is too low.
"""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tplfrontier.pairs import tree_simplex
from tplrepro.leakage import envelope
from tplrepro.leakage.envelope import compiled
from tplrepro.leakage.envelope.dense import for_each
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import REQUIRED, Correlation, OverTime, steps_of_both_sides
from tplrepro.markov.cycle import check_is_exact
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.progress import with_progress
from tplrepro.validation import as_numbers, by_state, check_horizon, frozen

if TYPE_CHECKING:
    from pandas import DataFrame

# A search replaces larger bounds by a cap, in nats, and the smaller result of both counts. Beyond
# LOW_CAP, rounding errors of the largest likelihoods hide the others; e^HIGH_CAP and its inverse
# leave room in doubles.
LOW_CAP = 30.0
HIGH_CAP = 300.0
# Searches raise each bound at random by one to two times this share of the largest, which avoids
# ties.
BLUR = 1e-13
REMEDY = (
    "give (n, n), for one time with a horizon or for each, "
    "0 between a state and itself, inf for no bound"
)
# Each step is raised by this, which exceeds the rounding of its logarithm and sums, and of BPL +
# FPL - R.
UP = 1.0 + 2.0**-50


@dataclass(frozen=True)
class PairwiseLeakage(OverTime):
    """The leakages of T releases about each ordered pair of states, (T, n, n) each, in nats.

    Entry [t, i, l] bounds log Pr(outputs | l_t = i) / Pr(outputs | l_t = l): of the outputs up to
    time t in `bpl`, from t on in `fpl`, of all in `tpl`, of time t alone in `bounds`, where none
    exceeds the sum of two others via a third state.
    """

    bounds: np.ndarray
    bpl: np.ndarray
    fpl: np.ndarray

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage, (T, n, n): BPL + FPL - R; inf where R is."""
        is_bounded = self.bounds < np.inf
        with np.errstate(invalid="ignore"):  # inf - inf
            leakages = self.bpl + self.fpl - self.bounds
        return np.where(is_bounded, leakages, np.inf)

    def to_frame(self) -> DataFrame:
        """The largest of all pairs at each `time` from 0, in the columns bound, bpl, fpl and tpl;
        nats."""
        from pandas import DataFrame, RangeIndex

        columns = {"bound": self.bounds, "bpl": self.bpl, "fpl": self.fpl, "tpl": self.tpl}
        largest = {}
        for name, values in columns.items():
            largest[name] = values.max(axis=(1, 2))
        return DataFrame(largest, RangeIndex(len(self.bounds), name="time"))


def pairwise_leakage(
    bounds: Any,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    horizon: int | None = None,
) -> PairwiseLeakage:
    """BPL, FPL and TPL of each ordered pair of states (section 5 of docs/theory/promises.md).

    Parameters
    ----------
    bounds : array-like (T, n, n), or (n, n) or a DataFrame with a horizon
        R_t[j, k] >= log Pr(o_t | j) / Pr(o_t | k) in nats for all outputs of time t; 0 where j = k,
        inf for no bound. A list may hold a DataFrame for each time. Bounds that follow from two
        others are lowered.
    backward : TransitionMatrix, array-like (n, n), a list of T - 1 of these, Cycle, or None
        Pr(l^{t-1} | l^t). None: the adversary does not know that side.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    horizon : int >= 1, optional
        The number of releases T, if `bounds` are those of one time.

    Returns
    -------
    PairwiseLeakage
        `bpl`, `fpl` and `tpl` (T, n, n) in nats. Upper bounds also in floating point, mostly by
        about 1e-13. But likelihoods beyond e^300 do not fit: where the leakage of a pair exceeds
        300 nats, those after the next step may be much too large, up to the largest of all pairs
        (on the identity 850 for 406 were seen).

    Raises
    ------
    ValueError
        For bounds that are negative or of another shape, a diagonal that is not 0, states that
        disagree, and loss functions in place of matrices.
    TypeError
        If one of the sides is not given.

    Notes
    -----
    One step of one side takes 4 s for 100 states without zeros and 0.3 s for 50, on two cores.

    Examples
    --------
    >>> swap = [[0.2, 0.8], [1, 0]]
    >>> pairs = pairwise_leakage([[0, 1], [1, 0]], swap, None, horizon=10)
    >>> from tplrepro import temporal_privacy_leakage
    >>> one_level = temporal_privacy_leakage(1.0, swap, None, horizon=10)
    >>> [round(float(leakage.bpl[-1].max()), 2) for leakage in (pairs, one_level)]
    [3.26, 8.15]
    """
    listed = _list_bounds(bounds, horizon)
    before, after, states = steps_of_both_sides(transition_matrix, backward, forward, len(listed))
    if states is None:
        states = _states_of_table(listed[0])
    closed = {id(table): _check_and_close(table, states) for table in listed}
    bounds_of_times = [closed[id(table)] for table in listed]
    bpl = _accumulate_pairs(before, bounds_of_times)
    fpl_from_end = _accumulate_pairs(after[::-1], bounds_of_times[::-1])
    fpl = fpl_from_end[::-1]
    return PairwiseLeakage(np.array(bounds_of_times), np.array(bpl), np.array(fpl))


def _list_bounds(bounds: Any, horizon: int | None) -> list:
    """The bounds of each time as a list; bounds that hold for all `horizon` times are the same
    object in each place."""
    is_table = hasattr(bounds, "iloc")
    is_list = isinstance(bounds, (list, tuple)) and any(hasattr(one, "iloc") for one in bounds)
    if not is_list and not is_table:
        bounds = as_numbers(bounds, "bounds must be numbers", REMEDY)
        is_list = bounds.ndim == 3
    if is_list:
        listed = [*bounds]
    elif horizon is None:
        raise ValueError(f"bounds for one time must come with a horizon, found none; {REMEDY}")
    else:
        listed = [bounds] * check_horizon(horizon)
    _check_number_of_bounds(len(listed), horizon)
    return listed


def _check_number_of_bounds(number: int, horizon: int | None) -> None:
    if number > 0 and horizon in (None, number):
        return
    wanted = "at least one"
    if horizon is not None:
        wanted = f"{horizon} of them"
    raise ValueError(
        f"bounds must be one matrix for each release, {wanted}, found {number}; {REMEDY}"
    )


def _states_of_table(table: Any) -> Sequence:
    if hasattr(table, "iloc"):
        return table.index.tolist()
    return range(len(table))


def transition_matrix(matrix: Any) -> TransitionMatrix | None:
    """The checked matrix of a step, None if it is not known."""
    if isinstance(matrix, PrivacyLossFunction):
        kind = type(matrix).__name__
        raise ValueError(
            f"backward and forward must be matrices, found {kind}; "
            "give the matrix that it was made of"
        )
    if matrix is None:
        return None
    check_is_exact(matrix)
    return as_transition_matrix(matrix)


def _check_and_close(bounds: Any, states: Sequence) -> np.ndarray:
    """Checked bounds (n, n) in the order of the states, lowered to the lengths of shortest
    paths."""
    n = len(states)
    ordered = by_state(bounds, states, "bounds", (0, 1))
    closed = as_numbers(ordered, "bounds must be numbers", REMEDY).copy()
    if closed.shape != (n, n):
        raise ValueError(
            f"bounds between {n} states must have shape ({n}, {n}), found {closed.shape}; {REMEDY}"
        )
    if not (closed >= 0.0).all():
        j, k = np.argwhere(~(closed >= 0.0))[0].tolist()
        raise ValueError(
            f"bounds must be at least 0, found {closed[j, k]:g} between {states[j]!r} and "
            f"{states[k]!r}; {REMEDY}"
        )
    if closed.diagonal().any():
        j = int(np.argmax(closed.diagonal()))
        raise ValueError(
            f"bounds must be 0 for a state and itself, found {closed[j, j]:g} at {states[j]!r}; "
            f"{REMEDY}"
        )
    for m in range(n):
        via_m = (closed[:, m, None] + closed[m]) * UP
        np.minimum(closed, via_m, out=closed)
    return closed


def _accumulate_pairs(matrices: list, bounds: list[np.ndarray]) -> list[np.ndarray]:
    """Leakages (n, n) along the bounds, where matrices[t - 1], or None, leads from time t - 1 to
    t."""
    leakage = bounds[0]
    leakages = [leakage]
    steps = [*zip(matrices, bounds[1:], strict=True)]
    for matrix, bound in with_progress(steps, "pairwise leakage", "step"):
        if matrix is None:
            leakage = bound
        else:
            leakage = (bound + log_ratios(matrix.toarray(), leakage)) * UP
        leakages.append(leakage)
    return leakages


def log_ratios(rows: np.ndarray, known: np.ndarray, patience: int | None = None) -> np.ndarray:
    """log max B_i x / B_l x for each pair (i, l) of rows, under closed bounds on log x_j / x_k.

    Parameters
    ----------
    rows : ndarray (n, n)
        The probabilities B_i, a row for each state.
    known : ndarray (n, n)
        The bounds in nats, with 0 on the diagonal and none above the sum of two others.
    patience : int, optional
        After how many exchanges without a larger ratio a search stops, by default n.

    Returns
    -------
    ndarray (n, n)
        Upper bounds in nats.
    """
    rows = frozen(rows)
    n = len(rows)
    largest = known.max()
    if patience is None:
        patience = n
    losses = np.full((n, n), largest)
    allowed = np.where(known > HIGH_CAP, np.inf, known)
    rng = np.random.default_rng(0)
    share = BLUR * (1.0 + rng.random((n, n)))
    caps = [HIGH_CAP]
    if largest > LOW_CAP:
        caps = [LOW_CAP, HIGH_CAP]
    for cap in caps:
        capped = np.minimum(known, cap)
        tilted = capped + share * (1.0 + capped.max())
        ratios = _search_ratios(rows, allowed, tilted, patience)
        np.minimum(losses, np.log(ratios), out=losses)
    return losses


def _search_ratios(
    rows: np.ndarray, allowed: np.ndarray, tilted: np.ndarray, patience: int
) -> np.ndarray:
    """The proved ratio of each pair of `rows`, (n, n): the largest B_i x / B_j x over all x with
    x_k <= e^allowed[k, l] x_l.

    Trees are chosen by the bounds `tilted` (n, n), which are finite and without ties; `patience` is
    after how many exchanges without success a search ends.
    """
    n = len(rows)
    ratios = np.empty((n, n))
    finite = np.minimum(allowed, tilted)
    compiled.announce_steps(n**5 + n**4)

    def solve_row(i: int) -> None:
        tree_simplex.largest_ratios(rows, i, allowed, tilted, finite, patience, ratios[i])

    for_each(solve_row, n, compiled.thread_count(n, 30))
    return ratios


def compile_kernels() -> None:
    """Compile all kernels that are not stored compiled, those of `tplrepro` included."""
    envelope.compile_kernels()
    tables = np.zeros((3, 2, 2))
    tree_simplex.largest_ratios(frozen(np.eye(2)), 0, *tables, 2, np.empty(2))
