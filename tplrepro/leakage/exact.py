"""The exact leakage of the worst mechanism; BPL, FPL and TPL of [1] are upper bounds of it.

[1] defines them as suprema over outputs o_1..o_T and pairs of states of log Pr(o | l_t = i) / Pr(o
| l_t = j), and bounds them by recursion. Here they are computed for the worst of all mechanisms,
also adaptive ones, that satisfy epsilon_t-DP at each time. An output matters only by its likelihood
vector x = (Pr(o_t | l_t = k))_k, up to a factor, which epsilon-DP scales into the box [1,
e^epsilon]^n. Laplace noise of scale 2/epsilon on the counts of one user's location reaches the
whole box.

Given l_t, the outputs before t, at t and after t are independent. With m_1 = x_1 and m_t = x_t * (B
m_{t-1}), where B holds Pr(l_{t-1} | l_t), and w_t likewise from the other end through F,

    Pr(o | l_t = i)   B_i m_{t-1}   x_i   F_i w_{t+1}
    --------------- = ----------- * --- * -----------,
    Pr(o | l_t = j)   B_j m_{t-1}   x_j   F_j w_{t+1}

and each factor is maximised alone. The first can reach r if and only if some outputs make a m_{t-1}
>= 0, where a = B_i - r B_j. As B m_{t-2} is positive, the best x_{t-1} is e^epsilon where a > 0 and
1 where a < 0, and turns a into the functional (a * x_{t-1}) B of m_{t-2}. Repeated down to time 1
this maximises over all 2^(nT) vertices of the boxes in O(T n^2) operations. Newton's method on r
(Dinkelbach's, for ratios) ends at the largest ratio.

The bound of [1] is exact for the BPL of the first two releases, the FPL of the last two, the
smoothed strongest correlations of section 6 of [1], and two states with rows (p, 1 - p), (q, 1 -
q), p >= q. Otherwise it can be higher (docs/errata.md).
"""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    LossLike,
    TemporalLeakage,
    check_span,
    check_window,
    dense_array,
    steps_of_both_sides,
)
from tplrepro.markov.cycle import check_is_exact
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.progress import with_progress
from tplrepro.validation import FrozenArrays, check_budgets, check_codes, check_time

MAX_WORK = 3e11  # of n^4 T^2, the order of the operations; about ten minutes
MAX_TOTAL = 700.0  # e^(sum of budgets) must stay a float
MAX_DENSE = 1000  # exact leakages of larger matrices would take too long anyway


@dataclass(frozen=True)
class ExactLeakage(TemporalLeakage):
    """The suprema that `TemporalLeakage` bounds, in nats.

    `joint` (T,) is `tpl`, of all outputs; `pairs` (T, 2) are the states that attain it, the
    favoured one first. `composed`, `w_event` and `user_level` are the suprema of Definition 9 of
    [1], over pairs of series of states that can happen: by the forward matrices, or where these are
    not known, the backward ones.
    """

    joint: np.ndarray
    pairs: np.ndarray
    log_ratios: LogRatios = field(repr=False)

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage, (T,): at most BPL + FPL - epsilon, whose pairs may differ."""
        return self.joint

    def composed(self, first: int, last: int) -> float:
        """Leakage about the data of several successive times (Definition 9 of [1]): at most the sum
        of Theorem 3.

        Parameters
        ----------
        first, last : int, times that count from 0, both included, first <= last

        Returns
        -------
        float, nats

        Raises
        ------
        ValueError
            For times that are not whole numbers, out of range or in the wrong order.

        Examples
        --------
        Everybody is in the first state from the second time on, so that series of states differ at
        the first time only:

        >>> r = exact_leakage(1.0, None, [[1, 0], [1, 0]], horizon=3)
        >>> r.composed(0, 2), r.composed(1, 2)
        (1.0, 0.0)
        """
        check_span(first, last, self.epsilons.size)
        if first == last:
            return float(self.tpl[first])
        return self.log_ratios.largest(first, last)

    def w_event(self, w: int) -> float:
        """w-event privacy: the largest leakage about any w consecutive time points, nats."""
        w, windows = check_window(w, self.epsilons.size)
        return max(self.composed(first, first + w - 1) for first in range(windows))

    @property
    def user_level(self) -> float:
        """Leakage about all data of a user: at most the sum of budgets, which is attained where two
        series of states that differ at all times can happen."""
        return self.composed(0, self.epsilons.size - 1)


@dataclass(frozen=True, eq=False)
class LogRatios(FrozenArrays):
    """The largest log ratio of the likelihoods of each pair of states, (T, n, n) each, by the
    outputs before, at and after each time.

    `possible` (T, n) says which states can happen at each time, `steps` (T - 1, n, n) which steps
    between two times can.
    """

    past: np.ndarray
    single: np.ndarray
    future: np.ndarray
    possible: np.ndarray
    steps: np.ndarray

    @classmethod
    def of(
        cls, past: np.ndarray, single: np.ndarray, future: np.ndarray, steps: np.ndarray
    ) -> LogRatios:
        """`steps` (T - 1, n, n) of bool are those that the matrices allow."""
        T, n, _ = past.shape
        reached = np.ones((T, n), dtype=bool)
        for t, step in enumerate(steps):
            reached[t + 1] = reached[t] @ step
        possible = reached.copy()
        for t in reversed(range(T - 1)):
            possible[t] &= steps[t] @ possible[t + 1]
        return cls(past, single, future, possible, steps)

    def largest(self, first: int, last: int) -> float:
        """The largest sum over two series of states that can happen at the times `first` to `last`,
        by recursion over the pair at each time."""
        sums = self.past[first] + self.single[first]
        sums = _among(self.possible[first], sums)
        for t in range(first, last):
            step = self.steps[t]
            moved = _largest_after(step, sums)
            moved = _largest_after(step, moved.T).T
            sums = _among(self.possible[t + 1], moved) + self.single[t + 1]
        return float((sums + self.future[last]).max())


def _among(possible: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """`sums` (n, n) of pairs of `possible` (n,) states; -inf for all others."""
    return np.where(np.logical_and.outer(possible, possible), sums, -np.inf)


def _largest_after(step: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """For each state after a `step` (n, n) of bool, the largest row of `sums` (n, n) before it, by
    column; -inf where no step leads to it."""
    return np.array([sums[before].max(axis=0, initial=-np.inf) for before in step.T])


@dataclass(frozen=True)
class WorstOutputs(FrozenArrays):
    """Outputs that attain the exact TPL of one time: they favour the first of the two `states`.

    `high` (T, n) marks at each time the states whose likelihood is e^epsilon times that of the
    others: with Laplace noise, released counts at least those with the user; for the others at most
    those without.
    """

    states: tuple[int, int]
    high: np.ndarray


def exact_leakage(
    epsilons: ArrayLike,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    horizon: int | None = None,
    released: ArrayLike | None = None,
) -> ExactLeakage:
    """The exact BPL, FPL and TPL of the worst epsilon-DP mechanism, attained by Laplace noise on
    counts.

    Parameters
    ----------
    epsilons : array-like (T,), or one number with a `horizon`
        The budget of each release in nats, finite and > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None, Cycle, or a list
        Pr(l^{t-1} | l^t). None: the adversary does not know that side. A list of T - 1 holds the
        matrix of each step between two time points.
    forward : the same for Pr(l^t | l^{t-1})
    horizon : int >= 1, optional; the number of releases T
    released : array-like of int, optional
        The positions of the states whose counts are released, with Laplace noise of scale 2/epsilon
        (1/epsilon for a single state); by default all states.

    Returns
    -------
    ExactLeakage with `bpl`, `fpl` and `tpl` (T,), nats, at most those of [1]

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For budgets that are not positive and finite, or not T of them, that sum to more than 700
        nats; matrices that are not row-stochastic or have different states, a list of another
        length, unknown states; or if n^4 T^2 exceeds 3e11 (n = 100 and T = 54).

    Examples
    --------
    >>> P = [[0.2, 0.8], [1, 0]]
    >>> exact_leakage(1.0, P, None, horizon=10).bpl.round(2).tolist()
    [1.0, 1.86, 2.53, 2.93, 3.13, 3.22, 3.25, 3.26, 3.26, 3.26]
    >>> from tplrepro import temporal_privacy_leakage
    >>> temporal_privacy_leakage([1.0] * 10, P, None).bpl.round(2).tolist()
    [1.0, 1.86, 2.68, 3.47, 4.26, 5.04, 5.82, 6.59, 7.37, 8.15]
    """
    setting = _check_setting(epsilons, backward, forward, horizon)
    budgets = setting.budgets
    n = setting.n_states
    T = budgets.size
    boxes = _make_boxes(budgets, n, released)
    reversed_boxes = boxes.reversed()
    after = setting.after[::-1]
    past = np.zeros((T, n, n))
    future = np.zeros((T, n, n))
    times = range(1, T)
    for t in with_progress(times, "exact leakage", "time"):
        earlier = _side_before(t, setting.before, boxes)
        later = _side_before(t, after, reversed_boxes)
        past[t] = _largest_log_ratios(earlier, past[t - 1])
        future[t] = _largest_log_ratios(later, future[t - 1])
    single = budgets[:, None, None] * boxes.local
    steps = possible_steps(setting.before, setting.after, n)
    return with_joint(budgets, LogRatios.of(past, single, future[::-1], steps))


def worst_outputs(
    epsilons: ArrayLike,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    time: int,
    horizon: int | None = None,
) -> WorstOutputs:
    """Outputs whose likelihoods attain the exact TPL at one time.

    Parameters
    ----------
    epsilons : array-like (T,), or one number with a `horizon`
        The budget of each release in nats, finite and > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None, Cycle, or a list
        Pr(l^{t-1} | l^t). None: the adversary does not know that side. A list of T - 1 holds the
        matrix of each step between two time points.
    forward : the same for Pr(l^t | l^{t-1})
    time : int, the time point, from 0; negative ones count from the end
    horizon : int >= 1, optional; the number of releases T

    Returns
    -------
    WorstOutputs: the two states, and the states of high likelihood at each time, bool (T, n)

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        As `exact_leakage`, and for a time out of range.

    Examples
    --------
    >>> P = [[0.2, 0.8], [1, 0]]
    >>> worst = worst_outputs(1.0, P, None, time=3, horizon=4)
    >>> worst.states, worst.high.astype(int).tolist()  # the user mostly moves, and so do these
    ((0, 1), [[0, 1], [1, 0], [0, 1], [1, 0]])
    """
    setting = _check_setting(epsilons, backward, forward, horizon)
    budgets = setting.budgets
    n = setting.n_states
    T = budgets.size
    time = check_time(time, T, "time") % T
    boxes = _make_boxes(budgets, n, None)
    earlier = _side_before(time, setting.before, boxes)
    times_after = T - 1 - time
    after = setting.after[::-1]
    later = _side_before(times_after, after, boxes.reversed())
    start = np.zeros((n, n))
    past = _largest_log_ratios(earlier, start)
    future = _largest_log_ratios(later, start)
    single = budgets[time] * boxes.local
    joint = past + single + future
    largest = np.argmax(joint)
    i, j = np.unravel_index(largest, (n, n))
    high = np.zeros((T, n), dtype=bool)
    high[time, i] = True
    # In the order in which `_attain` returns them: away from `time`.
    high_before = high[:time][::-1]
    high_after = high[time + 1 :]
    _mark_worst_outputs(high_before, earlier, past, i, j)
    _mark_worst_outputs(high_after, later, future, i, j)
    return WorstOutputs((int(i), int(j)), high)


class _Side(NamedTuple):
    """What comes before one time point, from either end.

    `chain` holds the matrices of the steps into it, the last step first; `lower` and `upper` (t, n)
    the least and the largest likelihoods less 1, the first time first.
    """

    chain: list
    lower: np.ndarray
    upper: np.ndarray

    def likelihoods(self, k: int, is_high: np.ndarray) -> np.ndarray:
        """The likelihoods less 1 of the k-th time before it, high for some states."""
        return np.where(is_high, self.upper[-k], self.lower[-k])


def _side_before(t: int, steps: list, boxes: _Boxes) -> _Side:
    """The chain of steps into t, t - 1, ..., back to the first, or until the adversary knows none,
    and the likelihoods of those times."""
    chain = takewhile(lambda P: P is not None, reversed(steps[:t]))
    return _Side(list(chain), boxes.lower[:t], boxes.upper[:t])


def _largest_log_ratios(side: _Side, start: np.ndarray) -> np.ndarray:
    """The largest log ratios (P_i m)/(P_j m) over earlier outputs, P = chain[0], (n, n). The search
    begins at `start` (n, n), which may be any."""
    n = start.shape[0]
    ratios = np.zeros((n, n))
    if not side.chain:
        return ratios
    are_same = np.eye(n, dtype=bool)
    pairs = np.argwhere(~are_same)
    n_blocks = ceil(n**3 / 2**16)
    for block in np.array_split(pairs, n_blocks):
        i, j = block.T
        start_gains = np.expm1(start[i, j])
        gains = _largest_gains(side, i, j, start_gains)
        ratios[i, j] = np.log1p(gains)
    return ratios


def _largest_gains(side: _Side, i: np.ndarray, j: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The largest gains (P_i m)/(P_j m) - 1 of the pairs of states i, j (pairs,), by Dinkelbach's
    method from `gains` (pairs,), which are changed."""
    best = np.full(i.size, -1.0)
    active = np.arange(i.size)
    while active.size:  # about four steps, each of which raises every active ratio
        attained, _ = _attain_gains(side, i[active], j[active], gains[active])
        is_rising = attained > best[active]
        active = active[is_rising]
        attained = attained[is_rising]
        best[active] = attained
        gains[active] = attained
    return best


def _attain_gains(
    side: _Side, i: np.ndarray, j: np.ndarray, gains: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The outputs that maximise (P_i - P_j) m - gain P_j m for each pair of states i, j (pairs,),
    at `gains` (pairs,), and the gains ((P_i - P_j) m)/(P_j m) of these outputs.

    Returns the gains (pairs,) and the states of high likelihood, (pairs, n) for each time, the last
    first. Gains (ratios less 1) and likelihoods less 1 keep their digits for tiny budgets.
    """
    chain = side.chain
    base = chain[0][j]
    difference = chain[0][i] - base
    # Back in time: the functional a of m at each time, whose best output is high where a > 0.
    functional = difference - gains[:, None] * base
    patterns = [functional > 0]
    for k, P in enumerate(chain[1:], start=1):
        likelihood = side.likelihoods(k, patterns[-1])
        weighted = functional * (1.0 + likelihood)
        functional = weighted @ P
        patterns.append(functional > 0)
    # Forward in time: m - 1 of these outputs.
    first = len(chain)
    excess = side.likelihoods(first, patterns[-1])
    for k in range(first - 1, 0, -1):
        mixed = excess @ chain[k].T
        likelihood = side.likelihoods(k, patterns[k - 1])
        added = likelihood * (1.0 + mixed)
        excess = mixed + added
    numerator = (difference * excess).sum(axis=1)
    denominator = 1.0 + (base * excess).sum(axis=1)
    return numerator / denominator, patterns


def _mark_worst_outputs(
    high: np.ndarray, side: _Side, ratios: np.ndarray, i: np.intp, j: np.intp
) -> None:
    """Mark in `high` (t, n) of bool, the last time first, the outputs that attain the largest log
    ratio, of `ratios` (n, n), of states i and j."""
    if not side.chain:
        return
    gains = np.expm1(ratios[i, [j]])
    one_i = np.array([i])
    one_j = np.array([j])
    _, patterns = _attain_gains(side, one_i, one_j, gains)
    high[: len(patterns)] = np.concatenate(patterns)


class _Boxes(NamedTuple):
    """What outputs can do: the lowest and highest likelihoods less 1, (T, n), and the log ratios of
    pairs for a budget of 1, (n, n)."""

    lower: np.ndarray
    upper: np.ndarray
    local: np.ndarray

    def reversed(self) -> _Boxes:
        """The same from the last time to the first."""
        return _Boxes(self.lower[::-1], self.upper[::-1], self.local)


def _make_boxes(budgets: np.ndarray, n: int, released: ArrayLike | None) -> _Boxes:
    """What outputs can do with these budgets (T,) and n states, of which the counts of the
    `released` ones (None: all) are released."""
    if released is None:
        released = np.arange(n)
    codes = check_codes(released, n, "released")
    states = np.unique(codes)
    if states.size == 0:
        raise ValueError(
            "released must name at least one state, found none; leave it out for all states"
        )
    # The scale is sensitivity/epsilon. A user who moves changes two released counts, or the only
    # one.
    height = 0.5
    if states.size in (1, n):
        height = 1.0
    high = np.zeros(n)
    high[states] = height
    low = np.zeros(n)
    if states.size < n:
        low = -high
    local = high[:, None] - low
    np.fill_diagonal(local, 0.0)
    log_lower = np.multiply.outer(budgets, low)
    log_upper = np.multiply.outer(budgets, high)
    return _Boxes(np.expm1(log_lower), np.expm1(log_upper), local)


class _Setting(NamedTuple):
    """Budgets (T,), the matrices of each step on both sides (None: not known), and the number of
    states."""

    budgets: np.ndarray
    before: list
    after: list
    n_states: int


def _check_setting(
    epsilons: ArrayLike, backward: Correlation, forward: Correlation, horizon: int | None
) -> _Setting:
    """The budgets (T,), the arrays of the steps of both sides, or None, and the number of states,
    checked to be within what can be computed."""
    budgets = check_budgets(epsilons, horizon=horizon)
    before, after, states = arrays_of_both_sides(backward, forward, budgets.size)
    n = 2
    if states is not None:
        n = len(states)
    T = budgets.size
    total = budgets.sum()
    work = float(n) ** 4 * float(T) ** 2
    if total > MAX_TOTAL:
        raise ValueError(
            f"exact leakage needs budgets that sum to at most {MAX_TOTAL:g} nats, "
            f"found {total:g}; use temporal_privacy_leakage, the upper bound"
        )
    if work > MAX_WORK:
        raise ValueError(
            f"exact leakage takes about n^4 T^2 operations, at most {MAX_WORK:g}, "
            f"found n = {n}, T = {T}; "
            "take fewer, or use temporal_privacy_leakage, the upper bound"
        )
    return _Setting(budgets, before, after, max(n, 2))


def arrays_of_both_sides(
    backward: Correlation, forward: Correlation, horizon: int
) -> tuple[list, list, Sequence | None]:
    """The arrays of each step on both sides (None: not known), and the states.

    Parameters
    ----------
    backward : one matrix for all steps, or a list with one for each step: Pr(l^{t-1} | l^t)
    forward : the same for Pr(l^t | l^{t-1})
    horizon : int >= 1, the number of time points

    Returns
    -------
    Two lists (T - 1,) of arrays (n, n) or None, and the states, None if no matrix is known

    Raises
    ------
    ValueError
        For a list of another length, matrices of different states, or large sparse ones.
    """
    before, after, states = steps_of_both_sides(_as_dense, backward, forward, horizon)
    if states is not None and len(states) == 1:  # the matrix of one state reveals nothing
        return [None] * len(before), [None] * len(after), states
    return _arrays_of(before), _arrays_of(after), states


def _arrays_of(matrices: list[TransitionMatrix | None]) -> list[np.ndarray | None]:
    return [None if P is None else P.probabilities for P in matrices]


def _as_dense(matrix: LossLike) -> TransitionMatrix | None:
    if matrix is None:
        return None
    check_is_exact(matrix)
    P = as_transition_matrix(getattr(matrix, "matrix", matrix))
    remedy = "take fewer states, or temporal_privacy_leakage, the upper bound"
    rows = dense_array(P, MAX_DENSE, remedy)
    if P.is_sparse:
        return TransitionMatrix(rows, P.states)
    return P


def possible_steps(before: list, after: list, n: int) -> np.ndarray:
    """Which steps between two times can happen, (T - 1, n, n) of bool.

    Parameters
    ----------
    before, after : lists (T - 1,) of arrays (n, n) or None
        Pr(l^{t-1} | l^t) and Pr(l^t | l^{t-1}) of each step. Where both are known, the latter
        decide; where neither is, all steps can happen.
    n : int, the number of states

    Returns
    -------
    array (T - 1, n, n) of bool, from each state (row) to each state (column)
    """
    steps = np.ones((len(after), n, n), dtype=bool)
    for t, (backward, forward) in enumerate(zip(before, after, strict=True)):
        if forward is not None:
            steps[t] = forward > 0.0
        elif backward is not None:
            steps[t] = backward.T > 0.0
    return steps


def with_joint(epsilons: np.ndarray, log_ratios: LogRatios) -> ExactLeakage:
    """The leakages from the log ratios of all pairs of states; `epsilons` (T,) are the budgets,
    nats."""
    n = log_ratios.past.shape[1]
    backward = log_ratios.past + log_ratios.single
    forward = log_ratios.single + log_ratios.future
    tpl = backward + log_ratios.future
    joint = tpl.reshape(epsilons.size, -1)
    best = joint.argmax(axis=1)
    i, j = np.unravel_index(best, (n, n))
    return ExactLeakage(
        epsilons,
        bpl=backward.max(axis=(1, 2)),
        fpl=forward.max(axis=(1, 2)),
        joint=joint.max(axis=1),
        pairs=np.column_stack((i, j)),
        log_ratios=log_ratios,
    )
