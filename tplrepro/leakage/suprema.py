"""Suprema over time of leakages under habits that follow the clock: one for each phase of a cycle.

Round a cycle of p phases, BPL goes through p maps x -> epsilon_r + L_r(x). Their composition Phi
does not fall and has slopes of at most 1, so that the BPL of a phase rises to the least S with
Phi(S) <= S, or without bound (docs/theory/promises.md has the proofs). FPL is the same walk in
reverse order.

**Policy iteration.** One vertex of each loss function makes a map of u = e^x - 1 that is a Moebius
map with a non-negative matrix, and so does a walk round the cycle. S is the largest fixed point
over all choices of a vertex for each step. From a level below S, take the vertices that apply on a
walk from it and the fixed point of their maps together; it rises to S in a few rounds. Loss
functions that are not made of vertices, or of vertices of different scale, are bisected for the
least level that a walk round the cycle does not raise.

**Rounding.** All numbers are rounded up: the products of the non-negative matrices keep their
digits, but the difference of their diagonal cancels near critical budgets, and loses a margin that
grows with p.
"""

from __future__ import annotations
from dataclasses import dataclass
from math import expm1, hypot, inf, log1p, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.accumulation import has_table
from tplrepro.leakage.loss_function import MOST_ADDED, UP
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    LossCycle,
    LossCycles,
    OverTime,
    leakage_table,
    loss_cycles,
    table_as_text,
)
from tplrepro.leakage.timeline import leakage_rounded_up
from tplrepro.validation import LARGEST, FrozenArrays, check_range

if TYPE_CHECKING:
    from pandas import DataFrame

#: Of e^level - 1 on a walk, and of as many budgets together or each of them, products stay within
#: the range of doubles; the same equations are bisected above.
LARGE_LEVEL = 300.0
LARGE_BUDGET = 60.0
#: Entries of products of matrices are kept below about this.
LARGE_ENTRY = 2.0**200
#: To this share a level is bisected.
CLOSELY = 2.0**-48


@dataclass(frozen=True)
class Suprema(FrozenArrays):
    """The suprema of BPL or of FPL, nats, rounded up; inf where there is none.

    `first` (m,) are those at each of the first time points, `phases` (p,) those of all later time
    points at each phase.
    """

    first: np.ndarray
    phases: np.ndarray

    def at(self, time: int) -> float:
        """The supremum at a time point, which counts from 0."""
        if time < self.first.size:
            return float(self.first[time])
        return float(self.phases[time % self.phases.size])


@dataclass(frozen=True)
class LeakageSuprema(OverTime):
    """The suprema over all times and all numbers of releases, (m + p,) each, in nats, rounded up;
    inf where there is none.

    The m first time points, where a cycle has first steps of its own, come before its p phases, of
    which each holds all later times. `epsilons` are the budgets. Rows are no series of releases,
    so nothing can be composed of them.
    """

    epsilons: np.ndarray
    bpl: np.ndarray
    fpl: np.ndarray
    index: list  # the labels of the rows

    @property
    def tpl(self) -> np.ndarray:
        """Suprema of the temporal privacy leakage: BPL + FPL - epsilon (Eq. (11) of [1])."""
        return self.bpl + self.fpl - self.epsilons

    def __len__(self) -> int:
        return self.epsilons.size

    def max(self) -> float:
        """The largest TPL of any time, nats."""
        return float(self.tpl.max())

    def to_frame(self) -> DataFrame:
        """A DataFrame with the columns epsilon, bpl, fpl and tpl, nats; its index is `index`."""
        return leakage_table(self, self.index)

    def _repr_html_(self) -> str:
        from tplrepro.display import frame_as_html

        return frame_as_html("suprema of leakages, nats", self.to_frame())

    def __str__(self) -> str:
        return table_as_text(self.to_frame())


def leakage_suprema(
    epsilons: ArrayLike, backward: Correlation = REQUIRED, forward: Correlation = REQUIRED
) -> LeakageSuprema:
    """The suprema over time of BPL, FPL and TPL at each phase of a cycle (Theorem 11 of [1] for one
    matrix).

    They are those of `PrivacyLossFunction.supremum`, for habits that follow the clock. Its
    `budget_for` is `allocate_by_upper_bound(alpha, cycle, None)`: the budgets whose suprema are
    within alpha.

    Parameters
    ----------
    epsilons : array-like (p,), or one number
        The budget of each phase, which returns for ever, in nats, finite and >= 0: 0 for a phase
        without release, but one must be greater.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None (not known) or Cycle
        Pr(l^{t-1} | l^t), such as `forward.reverse()`, seldom the forward matrix itself. Unless its
        `reverse` had another `start`, the suprema hold for a chain that starts in the law that
        repeats itself with the cycle.
    forward : the same for Pr(l^t | l^{t-1})

    Returns
    -------
    LeakageSuprema, which has a row for each phase; inf where the leakage grows without bound
        Where a cycle has first steps of its own, the first time points come before, labelled "time
        0" and so on, and the phases, labelled "later, " with their labels, hold all later times.

    Raises
    ------
    TypeError
        Unless both sides are given.
    ValueError
        For budgets that are not finite or negative, all 0, or not p of them; matrices that are not
        row-stochastic or have different states; or a list of matrices, which says nothing of later
        steps.

    Examples
    --------
    >>> from tplrepro import Cycle
    >>> night, day = [[0.99, 0.01], [0.02, 0.98]], [[0.7, 0.3], [0.4, 0.6]]
    >>> habits = Cycle([night, night, day, day], step="6h")
    >>> print(leakage_suprema(0.1, habits.reverse(), habits))
           epsilon      BPL      FPL      TPL
    00:00      0.1 0.162177 0.349958 0.412136
    06:00      0.1 0.257579  0.25744  0.41502
    12:00      0.1 0.350241 0.162199 0.412439
    18:00      0.1 0.205875  0.20586 0.311735
    """
    losses = loss_cycles(backward, forward)
    budgets = check_budgets_of_phases(epsilons, len(losses))
    bpl = backward_suprema(losses.backward, budgets, losses.n_first)
    fpl = forward_suprema(losses.forward, budgets, losses.n_first)
    first_budgets = [budgets[time % budgets.size] for time in range(losses.n_first)]
    return LeakageSuprema(
        np.concatenate([first_budgets, budgets]),
        np.concatenate([bpl.first, bpl.phases]),
        np.concatenate([fpl.first, fpl.phases]),
        _labels_of_rows(losses),
    )


def _labels_of_rows(losses: LossCycles) -> list:
    if losses.n_first == 0:
        return list(losses.phases)
    first = [f"time {time}" for time in range(losses.n_first)]
    later = [f"later, {phase}" for phase in losses.phases]
    return first + later


def check_budgets_of_phases(epsilons: ArrayLike, p: int, name: str = "epsilons") -> np.ndarray:
    """Budgets (p,) of the p phases of a cycle, given so or as one for all; finite and >= 0, one of
    them > 0. Errors call them `name`."""
    remedy = f"give one number, or one for each of the {p} phases"
    budgets = check_range(epsilons, 0.0, LARGEST, f"{name} must be finite and at least 0", remedy)
    if budgets.ndim == 0:
        budgets = np.full(p, budgets)
    if budgets.shape != (p,):
        raise ValueError(f"{name} must have shape ({p},), found {budgets.shape}; {remedy}")
    if not budgets.any():
        raise ValueError(
            f"{name} must not all be 0, found {budgets[:5].tolist()}; "
            "give a positive one to a phase with a release"
        )
    return budgets


def backward_suprema(
    losses: LossCycle, budgets: np.ndarray, n_first: int, left: float | None = None
) -> Suprema:
    """The suprema of BPL.

    Parameters
    ----------
    losses : LossCycle of the backward side
    budgets : array (p,), of each phase, >= 0 and not all 0, nats
    n_first : int >= len(losses.first); how many first time points get a supremum of their own
    left : float, optional
        The BPL that releases before have left at time 0, in place of its budget; nats. `n_first` is
        then at least 1.

    Returns
    -------
    Suprema
    """
    spent = budgets.tolist()
    p = len(spent)
    limits = _Round(losses.steps, spent).limits(is_alone=n_first == 0)
    if n_first == 0:
        return Suprema(np.empty(0), np.array(limits))
    if left is None:
        left = spent[0]
    leakages = [left]
    for time in range(n_first + p - 1):
        epsilon = spent[(time + 1) % p]
        leakages.append(leakage_rounded_up(losses.at(time), leakages[-1], epsilon))
    # From a level above its limit the leakage of a phase falls, from one below it rises.
    phases = np.array(limits)
    for time in range(n_first, n_first + p):
        phases[time % p] = max(phases[time % p], leakages[time])
    return Suprema(np.array(leakages[:n_first]), phases)


def forward_suprema(
    losses: LossCycle, budgets: np.ndarray, n_first: int, has_passed: bool = False
) -> Suprema:
    """The suprema of FPL, over all numbers of releases.

    Parameters
    ----------
    losses : LossCycle of the forward side
    budgets : array (p,), of each phase, >= 0 and not all 0, nats
    n_first : int >= len(losses.first); how many first time points get a supremum of their own
    has_passed : bool
        Whether time 0 has passed, and spends nothing more; `n_first` is then at least 1.

    Returns
    -------
    Suprema
    """
    spent = budgets.tolist()
    p = len(spent)
    # In reverse order, the step from phase 0 leads to phase p - 1 and is the last one.
    *others, last = losses.steps
    backwards = _Round([*reversed(others), last], spent[::-1])
    phases = backwards.limits(is_alone=n_first == 0)[::-1]
    leakage = phases[n_first % p]
    first = []
    for time in reversed(range(n_first)):
        epsilon = spent[time % p]
        if time == 0 and has_passed:
            epsilon = 0.0
        leakage = leakage_rounded_up(losses.at(time), leakage, epsilon)
        first.append(leakage)
    return Suprema(np.array(first[::-1]), np.array(phases))


class _Moebius(NamedTuple):
    """The map u -> (a u + b) / (c u + f) of four numbers that are not negative."""

    a: float
    b: float
    c: float
    f: float

    def fixed_point(self, margin: float) -> float:
        """The positive root of c u^2 + (f - a) u - b, whose f - a is less by a share of f + a, in
        the form that does not cancel; inf if there is none."""
        middle = (self.f - self.a) - margin * (self.f + self.a)
        if self.c == 0.0:
            return self.b / middle if middle > 0.0 else inf
        root = hypot(middle, 2.0 * sqrt(self.b) * sqrt(self.c))
        if middle >= 0.0:
            return 2.0 * self.b / (middle + root)
        return (root - middle) / (2.0 * self.c)


class _Round:
    """A walk round a cycle of p places: `losses[k]` (None: not known) leads from place k to the
    next one, the last to place 0, and each place has a budget."""

    def __init__(self, losses: list, budgets: list[float]):
        self.losses = losses
        self.budgets = budgets

    def limits(self, is_alone: bool) -> list[float]:
        """The limit of the leakage at each place.

        A cycle of one that `is_alone`, with no first time points, has the supremum of its loss
        function.
        """
        loss = self.losses[0]
        if len(self.losses) == 1 and is_alone and loss is not None:
            return [float(loss.supremum(self.budgets[0]))]
        limits = [self._limit_at_start()]
        for loss, epsilon in zip(self.losses, self.budgets[1:], strict=False):
            limits.append(leakage_rounded_up(loss, limits[-1], epsilon))
        return limits

    def _limit_at_start(self) -> float:
        level = self.budgets[0]
        if self.losses[-1] is None:
            return level
        scale = self._common_scale()
        if scale is None:
            return self._bisected_limit()
        following = [*self.budgets[1:], self.budgets[0]]
        if sum(following) > LARGE_LEVEL * scale and max(following) > LARGE_BUDGET * scale:
            return self._bisected_limit()
        growths = [expm1(epsilon / scale) for epsilon in following]
        while level <= LARGE_LEVEL * scale:
            better = self._fixed_point(level, scale, growths)
            if better is None:
                break
            if better <= level or better == inf:
                return max(level, better)
            level = better
        return self._bisected_limit()

    def _common_scale(self) -> float | None:
        """The scale of all loss functions, None if some differ or are not made of vertices."""
        known = [loss for loss in self.losses if loss is not None]
        scales = {loss.scale for loss in known} or {1.0}
        if len(scales) > 1 or not all(map(has_table, known)):
            return None
        return scales.pop()

    def _fixed_point(self, level: float, scale: float, growths: list[float]) -> float | None:
        """The fixed point at place 0, rounded up, of the maps of the vertices that apply on a walk
        from a level, where each step is followed by a budget with e^epsilon - 1 in `growths`; None
        if the walk leads above `LARGE_LEVEL`."""
        u = expm1(level / scale)
        most = expm1(LARGE_LEVEL)
        # The map of the walk so far; without a record, since searches walk thousands of times.
        a = f = 1.0
        b = c = 0.0
        for loss, growth in zip(self.losses, growths, strict=True):
            d = gap = 0.0
            if loss is not None:
                d, gap = loss.raised_vertex(scale * log1p(u))
            # The step: u -> (slope u + growth) / (d u + 1).
            slope = growth * d + (growth + 1.0) * gap
            u = (slope * u + growth) / (d * u + 1.0)
            if u > most:
                return None
            next_a = slope * a + growth * c
            next_b = slope * b + growth * f
            c += d * a
            f += d * b
            a = next_a
            b = next_b
            if a + f > LARGE_ENTRY:
                a /= LARGE_ENTRY
                b /= LARGE_ENTRY
                c /= LARGE_ENTRY
                f /= LARGE_ENTRY
        margin = len(self.losses) * 2.0**-50
        root = _Moebius(a, b, c, f).fixed_point(margin) * (1.0 + margin)
        return scale * log1p(root) * UP

    def _bisected_limit(self) -> float:
        """The least level, but for a share of `CLOSELY`, that a walk, rounded up, does not raise.

        Those that it does not raise are all numbers from the limit on.
        """
        low = self.budgets[0]
        if not self._raises(low):
            return low
        most = MOST_ADDED + 2.0 * sum(self.budgets)
        high = 2.0 * low + 2.0**-20 * max(self.budgets)
        while self._raises(high):
            low = high
            high *= 2.0
            if high > most:
                return inf
        while high - low > CLOSELY * high:
            middle = 0.5 * (low + high)
            if not low < middle < high:  # of the smallest floats no share is small enough
                break
            if self._raises(middle):
                low = middle
            else:
                high = middle
        return high

    def _raises(self, level: float) -> bool:
        """Whether a walk round the cycle leads to a higher level."""
        walked = level
        following = [*self.budgets[1:], self.budgets[0]]
        for loss, epsilon in zip(self.losses, following, strict=True):
            walked = leakage_rounded_up(loss, walked, epsilon)
        return walked > level
