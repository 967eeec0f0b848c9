"""Backward, forward and temporal privacy leakage of a series of releases (sections 3.2 to 3.5 of
[1]).

BPL_t = L(BPL_{t-1}) + epsilon_t with L of the backward matrix (Eq. (13)); FPL is the same recursion
run from the last time point to the first (Eq. (15)).
"""

from __future__ import annotations
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter
from itertools import pairwise
from math import nan, ulp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.display import count_noun
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import (
    FrozenArrays,
    check_budgets,
    check_horizon,
    check_whole,
    common_states,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

#: One correlation, for all steps; None means that the adversary does not know it.
LossLike = TransitionMatrix | PrivacyLossFunction | ArrayLike | None
#: The same, or one for each step.
Correlation = LossLike | Sequence[LossLike]
#: The default of `backward` and of `forward`, which is an error; signatures show no default.
REQUIRED: Any = Parameter.empty
# relative margin below alpha: more than the rounding errors of one step of the recursion
SAFETY = 32 * 2.0**-52
MANY = 256  # releases that are worth a call of compiled code
NOTHING_KNOWN = np.empty(0)


class OverTime(FrozenArrays):
    """Leakages over time, of which `to_frame` gives a table: what notebooks show of them."""

    def to_frame(self) -> DataFrame:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from tplrepro.display import frame_as_html

        frame = self.to_frame()
        return frame_as_html(f"leakages of {count_noun(len(frame), 'time')}, nats", frame)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw all columns of `to_frame` over time with Matplotlib, on `ax` or new axes; returns
        the axes. Times without labels are drawn from 1, as in [1]."""
        from tplrepro.display import plot_over_time

        return plot_over_time(self.to_frame(), ax, marker=".", ylabel="leakage (nats)")


@dataclass(frozen=True)
class TemporalLeakage(OverTime):
    """The leakages of T releases against one adversary, (T,) each, in nats.

    `epsilons` are the budgets, PL_0(M^t), inf for a release without one (`TemporalAccountant`);
    `bpl` is the backward privacy leakage, from the releases up to each time (Definition 6, Eq. (13)
    of [1]), and `fpl` the forward privacy leakage, from the releases from each time on (Definition
    7, Eq. (15) of [1]).
    """

    epsilons: np.ndarray
    bpl: np.ndarray
    fpl: np.ndarray
    # the labels of the times, if the budgets had some
    index: Any = field(default=None, kw_only=True, repr=False)

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage, (T,): BPL + FPL - epsilon (Definition 5, Eq. (11) of [1])."""
        with np.errstate(invalid="ignore"):  # inf - inf
            return np.where(self.epsilons < np.inf, self.bpl + self.fpl - self.epsilons, np.inf)

    def __len__(self) -> int:
        return self.epsilons.size

    def __getitem__(self, time: object) -> float:
        raise TypeError(
            f"a time needs a series of its own, found leakage[{time!r}]; write leakage.tpl[{time!r}]"
        )

    def max(self) -> float:
        """The largest TPL of a time, nats."""
        return float(self.tpl.max())

    def composed(self, first: int, last: int) -> float:
        """Leakage about the data from time `first` to `last`, both included (Definition 9, Theorem
        3 of [1]); nats."""
        check_span(first, last, self.epsilons.size)
        if first == last:
            return float(self.tpl[first])
        return float(self.bpl[first] + self.fpl[last] + self.epsilons[first + 1 : last].sum())

    def w_event(self, w: int) -> float:
        """w-event privacy: the largest leakage about any w consecutive time points (Table 2 of
        [1]); nats."""
        w, windows = check_window(w, self.epsilons.size)
        if w == 1 or self.user_level == np.inf:
            return self.max()
        spent = np.concatenate(([0.0], np.cumsum(self.epsilons)))
        return float(
            (
                self.bpl[:windows] + self.fpl[w - 1 :] + spent[w - 1 : -1] - spent[1 : windows + 1]
            ).max()
        )

    @property
    def user_level(self) -> float:
        """Leakage about all data of a user: the sum of budgets for any correlation (Corollary 1 of
        [1] and of [2])."""
        return float(self.epsilons.sum())

    def to_frame(self) -> DataFrame:
        """A DataFrame with the columns epsilon, bpl, fpl and tpl, nats; its index is the budgets',
        or `time` from 0."""
        from pandas import DataFrame, RangeIndex

        columns = {"epsilon": self.epsilons, "bpl": self.bpl, "fpl": self.fpl, "tpl": self.tpl}
        index = RangeIndex(self.epsilons.size, name="time") if self.index is None else self.index
        return DataFrame(columns, index=index)

    def __str__(self) -> str:
        frame = self.to_frame().rename(
            columns={name: name.upper() for name in ("bpl", "fpl", "tpl")}
        )
        return frame.to_string(max_rows=10, float_format="{:.6g}".format)


def check_span(first: int, last: int, horizon: int) -> None:
    """Two of `horizon` time points, the first not after the last."""
    check_whole(first, "first")
    check_whole(last, "last")
    if not 0 <= first <= last < horizon:
        raise ValueError(
            f"a composition needs 0 <= first <= last < {horizon}, found first = {first}, last = {last}; "
            "times count from 0, both ends included"
        )


def check_window(w: int, horizon: int) -> tuple[int, int]:
    """A number of consecutive time points, and how many windows of it `horizon` time points
    have."""
    w = check_horizon(w, "w")
    if w > horizon:
        raise ValueError(
            f"w must be at most the number of time points {horizon}, found {w}; give a shorter window"
        )
    return w, horizon - w + 1


def temporal_privacy_leakage(
    epsilons: ArrayLike,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    horizon: int | None = None,
) -> TemporalLeakage:
    """BPL, FPL and TPL of a series of releases (Eqs. (11), (13), (15) of [1] and of [2]).

    Parameters
    ----------
    epsilons : array-like (T,), the budget of each release in nats, finite and > 0; or one, with a horizon
    backward, forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, or a list of T - 1 of these
        Pr(l^{t-1} | l^t) and Pr(l^t | l^{t-1}). None: the adversary does not know that side. A list holds the
        matrix of each step between two time points, for correlations that change over time.
    horizon : int >= 1, optional; the number of releases T

    ValueError for budgets that are not positive and finite, or not T of them, matrices that are not
    row-stochastic, or a list of another length.

    Examples
    --------
    >>> r = temporal_privacy_leakage(0.1, backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]], horizon=10)
    >>> r.bpl.round(4).tolist()  # Fig. 3 (a) of [1]
    [0.1, 0.1808, 0.2471, 0.3024, 0.3488, 0.3881, 0.4216, 0.4503, 0.475, 0.4964]
    >>> r.tpl.round(4).tolist()[:5], round(r.w_event(2), 4), round(r.user_level, 4)
    ([0.4964, 0.5558, 0.5975, 0.6239, 0.6368], 0.6975, 1.0)
    """
    budgets = check_budgets(epsilons, horizon=horizon)
    before, after, _ = steps_of_both_sides(as_loss_function, backward, forward, budgets.size)
    leakage = leakage_along(budgets, before, after)
    labels: Any = getattr(epsilons, "index", None) if hasattr(epsilons, "iloc") else None
    return leakage if labels is None else replace(leakage, index=labels)


def leakage_along(budgets: np.ndarray, before: list, after: list) -> TemporalLeakage:
    """The leakages of budgets (T,), from the loss functions (or None) of the T - 1 steps of each
    side."""
    return TemporalLeakage(
        budgets,
        accumulate_steps(before, budgets),
        accumulate_steps(after[::-1], budgets[::-1])[::-1],
    )


def safely_below(alpha: float, releases: int) -> float:
    """The level that the TPL in floating point must not exceed for the exact TPL to be within
    alpha.

    The rounding errors of the recursion can add up over the releases; so does the margin.
    """
    return alpha * (1.0 - 2.0 * SAFETY - releases * 2.0**-50)


def leakage_after(loss: PrivacyLossFunction | None, last: float | None, epsilon: float) -> float:
    """The leakage L(last) + epsilon of a release; without L or an earlier leakage (None) it is
    epsilon."""
    return epsilon if loss is None or last is None else loss.at(last) + epsilon


def accumulate_steps(
    losses: Sequence, budgets: np.ndarray, step: Callable = leakage_after
) -> np.ndarray:
    """Leakages along `budgets`, where losses[t - 1], with a method `at` or None, leads from time t
    - 1 to t."""
    before = [None, *losses][: budgets.size]
    keys = np.fromiter(map(id, before), np.int64, budgets.size)
    starts = np.flatnonzero(np.append(budgets.size > 0, keys[1:] != keys[:-1])).tolist()
    leakages, last = np.empty(budgets.size), None
    for start, end in pairwise([*starts, budgets.size]):
        leakages[start:end] = accumulate(before[start], budgets[start:end], last, step=step)
        last = float(leakages[end - 1])
    return leakages


def accumulate(
    loss: PrivacyLossFunction | None,
    budgets: np.ndarray,
    last: float | None = None,
    known: np.ndarray = NOTHING_KNOWN,
    step: Callable[[PrivacyLossFunction | None, float | None, float], float] = leakage_after,
) -> np.ndarray:
    """Leakages along `budgets` (R,), each after a step with one loss function; `last` is before
    them, or None.

    They end where one is that of `known` (R,) up to one unit in its last place, as all after it
    are, too. Where the leakage is a fixed point, it is repeated. Many releases go through compiled
    code.
    """
    if (
        budgets.size >= MANY
        and step is leakage_after
        and loss is not None
        and type(loss).at is PrivacyLossFunction.at
    ):
        from tplrepro.leakage.envelope import compiled, recursion  # Numba loads on first use

        compiled.expect(budgets.size)
        if compiled.Kernel.worth <= 0:  # uncompiled, one step at a time is faster
            return recursion.ascend_from(
                loss.table, nan if last is None else last, np.array(budgets), np.array(known)
            )
    leakages = np.empty(budgets.size)
    starts = np.flatnonzero(np.append(budgets.size > 0, budgets[1:] != budgets[:-1])).tolist()
    for start, end in pairwise([*starts, budgets.size]):
        epsilon = float(budgets[start])
        for t in range(start, end):
            following = step(loss, last, epsilon)
            if known.size and (following == known[t] or abs(following - known[t]) < ulp(following)):
                return leakages[:t]
            if following == last and not known.size:
                leakages[t:end] = last
                break
            leakages[t] = last = following
    return leakages


def as_loss_function(matrix: LossLike) -> PrivacyLossFunction | None:
    """The loss function of a matrix; loss functions and None stay as they are."""
    return (
        matrix
        if matrix is None or isinstance(matrix, PrivacyLossFunction)
        else PrivacyLossFunction(matrix)
    )


def check_both_given(backward: Any, forward: Any) -> None:
    """TypeError unless a call names both sides."""
    if backward is REQUIRED or forward is REQUIRED:
        found = "neither" if backward is forward else "one of them"
        raise TypeError(
            f"backward and forward must both be given, found {found}; give None for what the adversary does not know"
        )


def loss_functions(
    backward: LossLike, forward: LossLike
) -> tuple[PrivacyLossFunction | None, PrivacyLossFunction | None]:
    """The loss functions of both sides, each for all steps, after a check that their states
    agree."""
    check_both_given(backward, forward)
    functions = as_loss_function(backward), as_loss_function(forward)
    _states_of(functions)
    return functions


def steps_of_both_sides(
    make: Callable, backward: Correlation, forward: Correlation, horizon: int
) -> tuple[list, list, Sequence | None]:
    """`make(matrix)` for each step of both sides, called once for each matrix, and the states, None
    if unknown."""
    check_both_given(backward, forward)
    sides = [_listed(backward, horizon - 1, "backward"), _listed(forward, horizon - 1, "forward")]
    distinct = {id(matrix): matrix for matrices, _ in sides for matrix in matrices}
    made = {key: make(matrix) for key, matrix in distinct.items()}
    before, after = ([made[id(matrix)] for matrix in matrices] * times for matrices, times in sides)
    return before, after, _states_of(made.values())


def dense(P: TransitionMatrix, most: int, remedy: str) -> np.ndarray:
    """The array of a matrix, unless it is sparse and has more than `most` states."""
    if P.is_sparse and P.n_states > most:
        raise ValueError(
            f"products of matrices are dense: a sparse one may have {most} states, found {P.n_states}; {remedy}"
        )
    return P.toarray()


def _states_of(matrices: Iterable) -> Sequence | None:
    """The states that all matrices or loss functions share."""
    return common_states(getattr(P, "matrix", P).states for P in matrices if P is not None)


def _listed(matrices: Any, steps: int, name: str) -> tuple[list, int]:
    """The matrices of one side, and how often to repeat them for `steps`; rows of numbers are one
    matrix."""
    several = isinstance(matrices, (list, tuple)) and not any(map(_is_row, matrices))
    if not several and not (isinstance(matrices, np.ndarray) and matrices.ndim == 3):
        return [matrices], steps
    if len(matrices) != steps:
        raise ValueError(
            f"{name} must be one matrix, or one for each step between two time points; "
            f"found {len(matrices)} matrices for {steps} steps; give T - 1 of them"
        )
    return list(matrices), 1


def _is_row(item: Any) -> bool:
    nested = (list, tuple, np.ndarray)
    return isinstance(item, nested) and not any(isinstance(entry, nested) for entry in item)
