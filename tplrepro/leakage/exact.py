"""The exact leakage of the worst mechanism; BPL, FPL and TPL of [1] are upper bounds of it.

[1] defines them as suprema over outputs o_1..o_T and pairs of states of log Pr(o | l_t = i) / Pr(o
| l_t = j), and bounds them by recursion. Here they are computed for the worst of all mechanisms,
also adaptive ones, that satisfy epsilon_t-DP at each time. An output matters only by its likelihood
vector x = (Pr(o_t | l_t = k))_k, up to a factor, which epsilon-DP scales into the box [1,
e^epsilon]^n. Laplace noise of scale 2/epsilon on the counts of one user's location reaches the
whole box.

Given l_t, the outputs before t, at t and after t are independent. With m_1 = x_1 and m_t = x_t * (B
m_{t-1}), where B holds Pr(l_{t-1} | l_t), and w_t likewise from the other end through F,

    Pr(o | l_t = i) / Pr(o | l_t = j) = (B_i m_{t-1} / B_j m_{t-1}) (x_i / x_j) (F_i w_{t+1} / F_j
    w_{t+1}),

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
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    LossLike,
    TemporalLeakage,
    dense_array,
    steps_of_both_sides,
)
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.progress import with_progress
from tplrepro.validation import FrozenArrays, check_budgets, check_codes, check_time

MAX_WORK = 3e11  # of n^4 T^2, the order of the operations; about ten minutes
MAX_TOTAL = 700.0  # e^(sum of budgets) must stay a float
MAX_DENSE = 1000  # exact leakages of larger matrices would take too long anyway


@dataclass(frozen=True)
class ExactLeakage(TemporalLeakage):
    """The suprema that `TemporalLeakage` bounds, in nats; `composed` and `w_event` use them as in
    Theorem 3 of [1].

    `joint` (T,) is `tpl`, of all outputs; `pairs` (T, 2) are the states that attain it, the
    favoured one first.
    """

    joint: np.ndarray
    pairs: np.ndarray

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage, (T,): at most BPL + FPL - epsilon, whose pairs may differ."""
        return self.joint


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

    `epsilons`, `backward`, `forward` and `horizon` are as in `temporal_privacy_leakage`. `released`
    holds the positions of the states whose counts are released, with Laplace noise of scale
    2/epsilon (1/epsilon for a single state); by default all states.

    ValueError as in `temporal_privacy_leakage`; for unknown states; if the budgets sum to more than
    700 nats; or if n^4 T^2 exceeds 3e11 (n = 100 and T = 54).

    Examples
    --------
    >>> P = [[0.2, 0.8], [1, 0]]
    >>> exact_leakage(1.0, P, None, horizon=10).bpl.round(2).tolist()
    [1.0, 1.86, 2.53, 2.93, 3.13, 3.22, 3.25, 3.26, 3.26, 3.26]
    >>> from tplrepro import temporal_privacy_leakage
    >>> temporal_privacy_leakage([1.0] * 10, P, None).bpl.round(2).tolist()
    [1.0, 1.86, 2.68, 3.47, 4.26, 5.04, 5.82, 6.59, 7.37, 8.15]
    """
    budgets, before, after, n = _checked(epsilons, backward, forward, horizon)
    lower, upper, local = _boxes(budgets, n, released)
    past, future = np.zeros((2, budgets.size, n, n))
    for t in with_progress(range(1, budgets.size), "exact leakage", "time"):
        past[t] = _largest_ratios(_chain(t, before), lower[:t], upper[:t], past[t - 1])
        future[t] = _largest_ratios(
            _chain(t, after[::-1]), lower[::-1][:t], upper[::-1][:t], future[t - 1]
        )
    return with_joint(budgets, past, budgets[:, None, None] * local, future[::-1])


def worst_outputs(
    epsilons: ArrayLike,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    time: int,
    horizon: int | None = None,
) -> WorstOutputs:
    """Outputs whose likelihoods attain the exact TPL at a time (from 0); arguments and errors as
    `exact_leakage`.

    Examples
    --------
    >>> P = [[0.2, 0.8], [1, 0]]
    >>> worst = worst_outputs(1.0, P, None, time=3, horizon=4)
    >>> worst.states, worst.high.astype(int).tolist()  # the user mostly changes the state, and so do these outputs
    ((0, 1), [[0, 1], [1, 0], [0, 1], [1, 0]])
    """
    budgets, before, after, n = _checked(epsilons, backward, forward, horizon)
    T = budgets.size
    time = check_time(time, T, "time") % T
    lower, upper, local = _boxes(budgets, n, None)
    earlier = _chain(time, before), lower[:time], upper[:time]
    later = _chain(T - 1 - time, after[::-1]), lower[:time:-1], upper[:time:-1]
    past, future = (_largest_ratios(*side, np.zeros((n, n))) for side in (earlier, later))
    i, j = np.unravel_index(np.argmax(past + budgets[time] * local + future), (n, n))
    high = np.zeros((T, n), dtype=bool)
    high[time, i] = True
    for side, ratios, outputs in (
        (earlier, past, high[:time][::-1]),
        (later, future, high[time + 1 :]),
    ):
        if side[0]:
            _, patterns = _attained(*side, [i], [j], np.expm1(ratios[i, [j]]))
            outputs[: len(patterns)] = np.concatenate(patterns)
    return WorstOutputs((int(i), int(j)), high)


def _largest_ratios(chain: list, lower, upper, start) -> np.ndarray:
    """The largest log ratios (P_i m)/(P_j m) over earlier outputs, P = chain[0], (n, n), from any
    `start`."""
    n = start.shape[0]
    ratios = np.zeros((n, n))
    if not chain:
        return ratios
    pairs = np.argwhere(~np.eye(n, dtype=bool))
    for i, j in (block.T for block in np.array_split(pairs, -(-(n**3) // 2**16))):
        gains = np.expm1(start[i, j])
        best = np.full(i.size, -1.0)
        active = np.arange(i.size)
        while active.size:  # about four steps, each of which raises every active ratio
            attained, _ = _attained(chain, lower, upper, i[active], j[active], gains[active])
            rising = attained > best[active]
            active = active[rising]
            best[active] = gains[active] = attained[rising]
        ratios[i, j] = np.log1p(best)
    return ratios


def _attained(chain: list, lower, upper, i, j, gains):
    """The outputs that maximise (P_i - P_j) m - gain P_j m for each pair, and their gains ((P_i -
    P_j) m)/(P_j m).

    Returns the gains (pairs,) and the states of high likelihood, (pairs, n) for each time, the last
    first. Gains (ratios less 1) and likelihoods less 1 keep their digits for tiny budgets.
    """
    difference, base = chain[0][i] - chain[0][j], chain[0][j]
    functional = difference - gains[:, None] * base
    patterns = [functional > 0]
    for k, P in enumerate(chain[1:], start=1):
        functional = (functional * (1.0 + np.where(patterns[-1], upper[-k], lower[-k]))) @ P
        patterns.append(functional > 0)
    excess = np.where(patterns[-1], upper[-len(chain)], lower[-len(chain)])  # m - 1
    for k in range(len(chain) - 1, 0, -1):
        mixed = excess @ chain[k].T
        excess = mixed + np.where(patterns[k - 1], upper[-k], lower[-k]) * (1.0 + mixed)
    return (difference * excess).sum(axis=1) / (1.0 + (base * excess).sum(axis=1)), patterns


def _chain(t: int, steps: list) -> list:
    """The matrices of the steps into t, t - 1, ..., back to the first, or until the adversary knows
    none."""
    return list(takewhile(lambda P: P is not None, reversed(steps[:t])))


def _boxes(budgets: np.ndarray, n: int, released: ArrayLike | None):
    """The lowest and highest likelihoods less 1, (T, n), and the log ratios of pairs for a budget
    of 1."""
    states = np.unique(check_codes(np.arange(n) if released is None else released, n, "released"))
    if states.size == 0:
        raise ValueError(
            "released must name at least one state, found none; leave it out for all states"
        )
    # The scale is sensitivity/epsilon. A user who moves changes two released counts, or the only
    # one.
    high = np.isin(np.arange(n), states) * (1.0 if states.size in (1, n) else 0.5)
    low = -high if states.size < n else np.zeros(n)
    local = high[:, None] - low
    np.fill_diagonal(local, 0.0)
    return (
        np.expm1(np.multiply.outer(budgets, low)),
        np.expm1(np.multiply.outer(budgets, high)),
        local,
    )


def _checked(epsilons, backward, forward, horizon):
    """Budgets, the matrices of each step on both sides (None: not known), and the number of
    states."""
    budgets = check_budgets(epsilons, horizon=horizon)
    before, after, states = arrays_of_both_sides(backward, forward, budgets.size)
    n = 2 if states is None else len(states)
    if budgets.sum() > MAX_TOTAL:
        raise ValueError(
            f"exact leakage needs budgets that sum to at most {MAX_TOTAL:g} nats, found {budgets.sum():g}; "
            "use temporal_privacy_leakage, the upper bound"
        )
    if float(n) ** 4 * float(budgets.size) ** 2 > MAX_WORK:
        raise ValueError(
            f"exact leakage takes about n^4 T^2 operations, at most {MAX_WORK:g}, found n = {n}, T = {budgets.size}; "
            "take fewer, or use temporal_privacy_leakage, the upper bound"
        )
    return budgets, before, after, max(n, 2)


def arrays_of_both_sides(
    backward: Correlation, forward: Correlation, horizon: int
) -> tuple[list, list, Sequence | None]:
    """The arrays of each step on both sides (None: not known), and the states, None if no matrix is
    known."""
    before, after, states = steps_of_both_sides(_as_dense, backward, forward, horizon)
    if states is not None and len(states) == 1:  # the matrix of one state reveals nothing
        before, after = [None] * len(before), [None] * len(after)
    before, after = (
        [None if P is None else P.probabilities for P in side] for side in (before, after)
    )
    return before, after, states


def _as_dense(matrix: LossLike) -> TransitionMatrix | None:
    if matrix is None:
        return None
    P = as_transition_matrix(getattr(matrix, "matrix", matrix))
    rows = dense_array(
        P, MAX_DENSE, "take fewer states, or temporal_privacy_leakage, the upper bound"
    )
    return TransitionMatrix(rows, P.states) if P.is_sparse else P


def with_joint(
    epsilons: np.ndarray, past: np.ndarray, single: np.ndarray, future: np.ndarray
) -> ExactLeakage:
    """The leakages from the log ratios of pairs, (T, n, n), by the outputs before, at and after
    each time."""
    joint = (past + single + future).reshape(epsilons.size, -1)
    return ExactLeakage(
        epsilons,
        (past + single).max(axis=(1, 2)),
        (single + future).max(axis=(1, 2)),
        joint.max(axis=1),
        np.column_stack(np.unravel_index(joint.argmax(axis=1), past.shape[1:])),
    )
