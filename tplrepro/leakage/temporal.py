"""Backward, forward and temporal privacy leakage of a series of releases (sections 3.2 to 3.5 of
[1]).

BPL_t = L(BPL_{t-1}) + epsilon_t with L of the backward matrix (Eq. (13)); FPL is the same recursion
run from the last time point to the first (Eq. (15)). `accumulation` holds the recursion.
"""

from __future__ import annotations
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from inspect import Parameter
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

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

    from tplrepro.markov.cycle import Cycle

#: One correlation, for all steps; None means that the adversary does not know it.
LossLike = TransitionMatrix | PrivacyLossFunction | ArrayLike | None
#: The same, one for each step, or one for each phase of a cycle.
Correlation: TypeAlias = "LossLike | Sequence[LossLike] | Cycle"
#: The default of `backward` and of `forward`, which is an error; signatures show no default.
REQUIRED: Any = Parameter.empty
# relative margin below alpha: more than the rounding errors of one step of the recursion
SAFETY = 32 * 2.0**-52
#: What one release adds at most to the rounding errors of a series, as a share of its largest
#: leakage: those of L (`ROUNDING`, `TIES`) and of a sum. Slopes of L are at most 1: errors add up.
ROUNDING_PER_RELEASE = 7e-15


class OverTime(FrozenArrays):
    """Leakages over time, of which `to_frame` gives a table: what notebooks show of them."""

    def to_frame(self) -> DataFrame:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from tplrepro.display import count_noun, frame_as_html

        frame = self.to_frame()
        return frame_as_html(f"leakages of {count_noun(len(frame), 'time')}, nats", frame)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw all columns of `to_frame` over time with Matplotlib, on `ax` or new axes; returns
        the axes. Times without labels are drawn from 1, as in [1]."""
        from tplrepro.display import plot_over_time

        return plot_over_time(self.to_frame(), ax, ylabel="leakage (nats)")


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
            tpl = self.bpl + self.fpl - self.epsilons
        return np.where(self.epsilons < np.inf, tpl, np.inf)

    def __len__(self) -> int:
        return self.epsilons.size

    def __getitem__(self, time: object) -> float:
        raise TypeError(
            f"a time needs a series of its own, found leakage[{time!r}]; "
            f"write leakage.tpl[{time!r}]"
        )

    def max(self) -> float:
        """The largest TPL of a time, nats."""
        return float(self.tpl.max())

    def composed(self, first: int, last: int) -> float:
        """Leakage about the data of several successive times (Definition 9, Theorem 3 of [1]).

        Parameters
        ----------
        first, last : int, times that count from 0, both included, first <= last

        Returns
        -------
        float, nats: BPL of the first time, FPL of the last, and the budgets between them

        Raises
        ------
        ValueError
            For times that are not whole numbers, out of range or in the wrong order.

        Examples
        --------
        >>> r = temporal_privacy_leakage(0.1, [[0.8, 0.2], [0, 1]], None, horizon=3)
        >>> round(r.composed(0, 2), 6)  # about all data: the sum of all budgets
        0.3
        """
        check_span(first, last, self.epsilons.size)
        if first == last:
            return float(self.tpl[first])
        between = self.epsilons[first + 1 : last].sum()
        return float(self.bpl[first] + self.fpl[last] + between)

    def w_event(self, w: int) -> float:
        """w-event privacy: the largest leakage about any w consecutive time points (Table 2 of
        [1]); nats."""
        w, windows = check_window(w, self.epsilons.size)
        if w == 1 or self.user_level == np.inf:
            return self.max()
        spent = np.concatenate(([0.0], np.cumsum(self.epsilons)))
        # the budgets strictly between the first and the last time of each window
        until_last = spent[w - 1 : -1]
        until_first = spent[1 : windows + 1]
        bpl_of_first = self.bpl[:windows]
        fpl_of_last = self.fpl[w - 1 :]
        composed = bpl_of_first + fpl_of_last + until_last - until_first
        return float(composed.max())

    @property
    def user_level(self) -> float:
        """Leakage about all data of a user: the sum of budgets for any correlation (Corollary 1 of
        [1] and of [2])."""
        return float(self.epsilons.sum())

    def to_frame(self) -> DataFrame:
        """A DataFrame with the columns epsilon, bpl, fpl and tpl, nats; its index is the budgets',
        or `time` from 0."""
        from pandas import RangeIndex

        index = self.index
        if index is None:
            index = RangeIndex(self.epsilons.size, name="time")
        return leakage_table(self, index)

    def __str__(self) -> str:
        return table_as_text(self.to_frame())


def leakage_table(leakages: Any, index: Any) -> DataFrame:
    """The budgets, BPL, FPL and TPL of a result, a row for each label of the index."""
    from pandas import DataFrame

    columns = {
        "epsilon": leakages.epsilons,
        "bpl": leakages.bpl,
        "fpl": leakages.fpl,
        "tpl": leakages.tpl,
    }
    return DataFrame(columns, index=index)


def table_as_text(table: DataFrame) -> str:
    """A `leakage_table` as it is printed: six digits, at most ten rows."""
    shown = table.rename(columns={"bpl": "BPL", "fpl": "FPL", "tpl": "TPL"})
    return shown.to_string(max_rows=10, float_format="{:.6g}".format)


def check_span(first: int, last: int, horizon: int) -> None:
    """Refuse two numbers unless they are of `horizon` time points, the first not after the last."""
    check_whole(first, "first")
    check_whole(last, "last")
    if not 0 <= first <= last < horizon:
        raise ValueError(
            f"a composition needs 0 <= first <= last < {horizon}, found first = {first}, "
            f"last = {last}; times count from 0, both ends included"
        )


def check_window(w: int, horizon: int) -> tuple[int, int]:
    """The number w of consecutive time points of a window, checked, and how many such windows
    `horizon` time points have."""
    w = check_horizon(w, "w")
    if w > horizon:
        raise ValueError(
            f"w must be at most the number of time points {horizon}, found {w}; "
            "give a shorter window"
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

    Leakages are rounded to the nearest number, not up: of T releases they may be off by 7e-15 T
    times the largest leakage, to either side. What keeps a promise, such as the budgets of
    `allocate_by_upper_bound`, `leakage_suprema` and filters, is rounded to the safe side.

    Parameters
    ----------
    epsilons : array-like (T,), or one number with a `horizon`
        The budget of each release in nats, finite and > 0. The index of a Series labels the times.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None, Cycle, or a list
        Pr(l^{t-1} | l^t): of people who start in the habit `forward.reverse()`, which is the
        forward matrix itself with two states, and seldom with more. None: the adversary does not
        know that side. A list of T - 1 holds the matrix of each step between two time points, for
        correlations that change over time; a `Cycle` that of each phase.
    forward : the same for Pr(l^t | l^{t-1})
    horizon : int >= 1, optional; the number of releases T

    Returns
    -------
    TemporalLeakage with `bpl`, `fpl` and `tpl` (T,), nats

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For budgets that are not positive and finite, or not T of them, matrices that are not
        row-stochastic or have different states, or a list of another length.

    Examples
    --------
    >>> P = [[0.8, 0.2], [0, 1]]
    >>> r = temporal_privacy_leakage(0.1, backward=P, forward=P, horizon=10)
    >>> r.bpl.round(4).tolist()  # Fig. 3 (a) of [1]
    [0.1, 0.1808, 0.2471, 0.3024, 0.3488, 0.3881, 0.4216, 0.4503, 0.475, 0.4964]
    >>> r.tpl.round(4).tolist()[:5], round(r.w_event(2), 4), round(r.user_level, 4)
    ([0.4964, 0.5558, 0.5975, 0.6239, 0.6368], 0.6975, 1.0)
    """
    budgets = check_budgets(epsilons, horizon=horizon)
    steps = steps_of_both_sides(LossMaker(), backward, forward, budgets.size)
    leakage = accumulate_both_sides(budgets, steps.backward, steps.forward)
    is_series = hasattr(epsilons, "iloc")
    if not is_series:
        return leakage
    labels = getattr(epsilons, "index", None)
    return replace(leakage, index=labels)


def accumulate_both_sides(budgets: np.ndarray, before: list, after: list) -> TemporalLeakage:
    """The leakages of budgets (T,); `before` and `after` hold the loss functions, or None, of the T
    - 1 steps of the backward and the forward side."""
    from tplrepro.leakage.accumulation import accumulate_leakages

    bpl = accumulate_leakages(before, budgets)
    fpl = accumulate_leakages(after[::-1], budgets[::-1])[::-1]
    return TemporalLeakage(budgets, bpl, fpl)


def safely_below(alpha: float, releases: int) -> float:
    """The level that the TPL in floating point must not exceed for the exact TPL to be within
    alpha.

    The rounding errors of the recursion can add up over the releases; so does the margin.
    """
    return alpha * (1.0 - 2.0 * SAFETY - releases * 2.0**-50)


Loss = TypeVar("Loss", bound=PrivacyLossFunction)


class LossMaker:
    """Makes the loss function of what is known of a step, once for each matrix.

    Loss functions and None stay as they are.
    """

    def __init__(self) -> None:
        #: By identity, since arrays cannot be compared cheaply; the first item keeps it alive.
        self._made: dict[tuple[type, int], tuple[Any, Any]] = {}

    def __call__(self, given: Any) -> PrivacyLossFunction | None:
        if given is None or isinstance(given, PrivacyLossFunction):
            return given
        if _is_of_arrays(given):
            return self._make_once(PrivacyLossFunction, given)
        from tplrepro.leakage.near_habit import NearHabitLoss
        from tplrepro.leakage.prior_free import PriorFreeLoss
        from tplrepro.markov.cycle import AnyLaw, Cycle, NearHabit

        if isinstance(given, AnyLaw):
            return self._make_once(PriorFreeLoss, given.forward)
        if isinstance(given, NearHabit):
            of_habit = self._make_once(PrivacyLossFunction, given.backward)
            of_any_law = self._make_once(PriorFreeLoss, given.forward)
            return NearHabitLoss(of_habit, of_any_law, given.distance)
        if isinstance(given, Cycle):
            raise ValueError(
                f"one matrix for all steps is wanted here, found {given!r}; give one of its steps"
            )
        return self._make_once(PrivacyLossFunction, given)

    def for_cycle(self, correlation: Correlation) -> Correlation:
        """A cycle with the loss functions of its steps; what is no cycle stays as it is."""
        if not is_cycle(correlation):
            return correlation
        cycle: Any = correlation
        return cycle.map(self)

    def _make_once(self, make: type[Loss], matrix: Any) -> Loss:
        key = make, id(matrix)
        if key not in self._made:
            self._made[key] = matrix, make(matrix)
        return self._made[key][1]


def _is_of_arrays(given: Any) -> bool:
    """Whether this is a matrix for certain; other classes are imported only where it is not."""
    return isinstance(given, (TransitionMatrix, np.ndarray, list, tuple))


def as_loss_function(matrix: LossLike) -> PrivacyLossFunction | None:
    """The loss function of a matrix; loss functions and None stay as they are."""
    return LossMaker()(matrix)


@dataclass(frozen=True, eq=False)
class LossCycle:
    """L of each step of one side (None: not known): of the first steps, then of each phase, over
    and over; a single one if all hours are alike."""

    steps: list
    first: list

    def __len__(self) -> int:
        """The number of phases."""
        return len(self.steps)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all steps, the first ones included, have one loss function."""
        return all(loss is self.steps[0] for loss in [*self.steps, *self.first])

    @property
    def distinct(self) -> list:
        """The loss functions of all steps that are known, each once."""
        known = {id(loss): loss for loss in [*self.first, *self.steps] if loss is not None}
        return list(known.values())

    def at(self, time: int) -> PrivacyLossFunction | None:
        """L of the step from one time point, which counts from 0, to the next."""
        if time < len(self.first):
            return self.first[time]
        return self.steps[time % len(self.steps)]

    def over(self, steps: int) -> list:
        """L of each of so many steps from the first time point on."""
        return [self.at(time) for time in range(steps)]

    def place_of(self, time: int) -> int:
        """The time point without the whole periods that follow the first steps: all steps from both
        on are the same."""
        n_first = len(self.first)
        if time < n_first:
            return time
        return n_first + (time - n_first) % len(self.steps)

    def over_interval(self, start: int, length: int) -> list:
        """L of each of `length` steps from time `start` on; the list ends once it holds the rest of
        the first steps and one period, after which it would repeat."""
        until_repeated = max(len(self.first) - start, 0) + len(self.steps)
        end = start + min(length, until_repeated)
        return [self.at(time) for time in range(start, end)]


@dataclass(frozen=True, eq=False)
class LossCycles:
    """The loss functions of both sides, which have the same number of phases, and what is known of
    the clock: the labels of the phases, the length of a step, and how long after midnight, or
    midnight before Monday, phase 0 begins."""

    backward: LossCycle
    forward: LossCycle
    phases: list
    step: timedelta | None
    begins: timedelta

    def __len__(self) -> int:
        """The number of phases, p: 1 if all hours are alike."""
        return len(self.backward)

    @property
    def n_first(self) -> int:
        """The number of first time points at which a side is not yet that of the cycle."""
        return max(len(self.backward.first), len(self.forward.first))

    def as_given(self, side: LossCycle) -> Correlation:
        """One of the sides as a caller would give it: a single loss function or None, or a
        Cycle."""
        if side.is_constant:
            return side.steps[0]
        return self.cycle_of(side)

    def cycle_of(self, side: LossCycle) -> Cycle:
        """One of the sides as a Cycle of all phases."""
        from tplrepro.markov.cycle import Cycle

        return Cycle(side.steps, self.phases, step=self.step, first=side.first, begins=self.begins)


def loss_cycles(backward: Correlation, forward: Correlation) -> LossCycles:
    """The loss functions of both sides, for any number of steps.

    Parameters
    ----------
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None (not known) or Cycle
        Pr(l^{t-1} | l^t)
    forward : the same for Pr(l^t | l^{t-1})

    Returns
    -------
    LossCycles

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For matrices that are not row-stochastic, have different states or steps of different
        length, or for a list: it says nothing of later steps.
    """
    from tplrepro.markov.cycle import as_cycle

    check_both_given(backward, forward)
    sides: dict[str, Any] = {"backward": backward, "forward": forward}
    for name, side in sides.items():
        if is_several(side):
            raise ValueError(
                f"{name} must say what is known of every later step, found a list of "
                f"{len(side)} matrices; give one matrix, or a Cycle of them"
            )
    given_b = as_cycle(backward)
    given_f = as_cycle(forward)
    make = LossMaker()
    losses_b = given_b.map(make)
    losses_f = given_f.map(make)
    _states_of([*losses_b, *losses_b.first, *losses_f, *losses_f.first])
    longer = max(given_b, given_f, key=len)
    _check_begin_together(given_b, given_f)
    step = _agreed_step(given_b.step, given_f.step)
    size = lcm(len(given_b), len(given_f))
    phases = list(range(size))
    begins = timedelta(0)
    if len(longer) == size:
        phases = longer.phases
        begins = longer.begins
    return LossCycles(
        LossCycle(list(losses_b) * (size // len(given_b)), losses_b.first),
        LossCycle(list(losses_f) * (size // len(given_f)), losses_f.first),
        phases,
        step,
        begins,
    )


def _check_begin_together(backward: Any, forward: Any) -> None:
    """ValueError if the first time point is at another phase of one side than of the other."""
    from tplrepro.markov.cycle import PERIODS

    if 1 in (len(backward), len(forward)) or None in (backward.period, forward.period):
        return
    shorter = min(PERIODS[backward.period], PERIODS[forward.period])
    if (backward.begins - forward.begins) % shorter:
        raise ValueError(
            f"backward and forward must begin at one phase, found {backward.phases[0]!r} and "
            f"{forward.phases[0]!r}; reverse the cycle after starting_at"
        )


def _agreed_step(step: timedelta | None, other: timedelta | None) -> timedelta | None:
    """The length of the steps of both sides, where one is known."""
    if step is not None and other is not None and step != other:
        raise ValueError(
            f"backward and forward must have steps of one length, found {step} and {other}; "
            "reverse one of them"
        )
    return other if step is None else step


def _step_of(given: Any) -> timedelta | None:
    """How long a step of a matrix, a loss function or a cycle takes, where that is known."""
    if isinstance(given, PrivacyLossFunction):
        given = given.matrix
    if isinstance(given, TransitionMatrix) or is_cycle(given):
        return given.step
    return None


def check_both_given(backward: Any, forward: Any) -> None:
    """TypeError unless a call names both sides."""
    if backward is REQUIRED or forward is REQUIRED:
        found = "neither" if backward is forward else "one of them"
        raise TypeError(
            f"backward and forward must both be given, found {found}; "
            "give None for what the adversary does not know"
        )


def loss_functions(
    backward: LossLike, forward: LossLike
) -> tuple[PrivacyLossFunction | None, PrivacyLossFunction | None]:
    """The loss functions of both sides, each for all steps, after a check that their states agree.

    Parameters
    ----------
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, or None (not known)
        Pr(l^{t-1} | l^t)
    forward : the same for Pr(l^t | l^{t-1})

    Returns
    -------
    Two PrivacyLossFunction, or None where the adversary does not know that side

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For matrices that are not row-stochastic, or of different states.
    """
    check_both_given(backward, forward)
    loss_b = as_loss_function(backward)
    loss_f = as_loss_function(forward)
    _states_of([loss_b, loss_f])
    return loss_b, loss_f


class StepsOfBothSides(NamedTuple):
    """What was made of the matrix of each of T - 1 steps, and the states, None if unknown."""

    backward: list
    forward: list
    states: Sequence | None


def steps_of_both_sides(
    make: Callable, backward: Correlation, forward: Correlation, horizon: int
) -> StepsOfBothSides:
    """`make(matrix)` for each of the `horizon` - 1 steps of both sides.

    Parameters
    ----------
    make : callable of a matrix, a loss function or None; called once for each of them
    backward : one of these for all steps, a list with one for each step, or a Cycle:
        Pr(l^{t-1} | l^t)
    forward : the same for Pr(l^t | l^{t-1})
    horizon : int >= 1, the number of time points

    Returns
    -------
    StepsOfBothSides, a tuple (backward, forward, states)

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For a list of another length, or matrices of different states or steps of different length.
    """
    check_both_given(backward, forward)
    if hasattr(backward, "begins") and hasattr(forward, "begins"):  # both are cycles
        _check_begin_together(backward, forward)
    _agreed_step(_step_of(backward), _step_of(forward))
    given_b = _matrices_of(backward, horizon - 1, "backward")
    given_f = _matrices_of(forward, horizon - 1, "forward")
    # By identity, since arrays cannot be compared cheaply: functions are made once for each matrix.
    all_given = [*given_b.matrices, *given_f.matrices]
    distinct = {id(matrix): matrix for matrix in all_given}
    made = {key: make(matrix) for key, matrix in distinct.items()}
    before = [made[id(matrix)] for matrix in given_b.matrices] * given_b.repeats
    after = [made[id(matrix)] for matrix in given_f.matrices] * given_f.repeats
    return StepsOfBothSides(before, after, _states_of(made.values()))


def dense_array(P: TransitionMatrix, most: int, remedy: str) -> np.ndarray:
    """The array (n, n) of a matrix, unless it is sparse and has more than `most` states: that is an
    error, which ends with the `remedy`."""
    if P.is_sparse and P.n_states > most:
        raise ValueError(
            f"products of matrices are dense: a sparse one may have {most} states, "
            f"found {P.n_states}; {remedy}"
        )
    return P.toarray()


def _states_of(matrices: Iterable) -> Sequence | None:
    """The states that all matrices or loss functions share."""
    return common_states(getattr(P, "matrix", P).states for P in matrices if P is not None)


@dataclass(frozen=True)
class _GivenMatrices:
    """The matrices of one side as they were given, and how often to repeat them for all steps."""

    matrices: list
    repeats: int


def _matrices_of(given: Any, steps: int, name: str) -> _GivenMatrices:
    """The matrices of a side, called `name`, for `steps` steps, given as one for all, a list with
    one for each, or a cycle."""
    if is_cycle(given):
        return _GivenMatrices(given.over(steps), 1)
    if not is_several(given):
        return _GivenMatrices([given], steps)
    if len(given) != steps:
        raise ValueError(
            f"{name} must be one matrix, or one for each step between two time points; "
            f"found {len(given)} matrices for {steps} steps; give T - 1 of them"
        )
    return _GivenMatrices(list(given), 1)


def is_cycle(given: Any) -> bool:
    """Whether this is a Cycle, of which the module is imported only where it may be."""
    if given is None or _is_of_arrays(given) or isinstance(given, PrivacyLossFunction):
        return False
    from tplrepro.markov.cycle import Cycle

    return isinstance(given, Cycle)


def is_several(given: Any) -> bool:
    """Whether these are matrices; rows of numbers are one."""
    if isinstance(given, np.ndarray):
        return given.ndim == 3
    return isinstance(given, (list, tuple)) and not any(map(_is_row, given))


def _is_row(item: Any) -> bool:
    nested = (list, tuple, np.ndarray)
    return isinstance(item, nested) and not any(isinstance(entry, nested) for entry in item)
