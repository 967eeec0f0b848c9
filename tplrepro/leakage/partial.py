"""Leakage at every time point when only some of them are released: no release at s means epsilon_s = 0.

Between two releases that are g time points apart the adversary's knowledge passes through the correlation of g steps,
the product of the g matrices: BPL_s = L(BPL_r) and BPL_r' = L(BPL_r) + epsilon_r' with the loss function L of the
product (Eq. (13) of [1] for the chain of every g-th time point), FPL likewise backwards in time. This is tighter than
g evaluations of the one-step L, and as sound. The TPL of a time point without a release can exceed that of both
neighbouring releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.steps import Correlation, as_loss_functions
from tplrepro.leakage.temporal import TemporalLeakage, temporal_privacy_leakage
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_budgets, check_horizon

__all__ = ["Timeline", "leakage_at_all_times"]

#: The product of sparse matrices is dense; beyond this many states it is refused.
MAX_STATES = 3000


def leakage_at_all_times(
    epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None, *, times: ArrayLike, horizon: int
) -> TemporalLeakage:
    """BPL, FPL and TPL at each of T time points of which only some are released.

    Parameters
    ----------
    epsilons : array-like (R,), the budget of each release in nats, finite and > 0
    backward, forward : as in `temporal_privacy_leakage`; a list holds T - 1 matrices
    times : array-like (R,), the increasing time points of the releases in 0..T-1, or bool (T,)
    horizon : int >= 1, the number of time points T

    Arrays of the result have the shape (T,); its `epsilons` is 0 at the time points without a release. ValueError for
    time points that are not increasing or out of range, and as in `temporal_privacy_leakage`.

    Examples
    --------
    >>> walk = TransitionMatrix(np.eye(5) + (np.eye(5, k=1) + np.eye(5, k=-1)) / 4, normalize=True)
    >>> r = leakage_at_all_times([0.5, 0.5], walk, walk, times=[0, 4], horizon=5)
    >>> r.tpl.round(4).tolist()  # highest between the two releases
    [0.9407, 0.9658, 0.9736, 0.9658, 0.9407]
    >>> r.epsilons.tolist()
    [0.5, 0.0, 0.0, 0.0, 0.5]
    """
    timeline = Timeline.of(backward, forward, horizon, times)
    budgets = check_budgets(epsilons)
    if budgets.size != timeline.times.size:
        raise ValueError(
            f"epsilons must hold one budget a release, found {budgets.size} for {timeline.times.size} releases; "
            "leave out time points at which nothing is released"
        )
    return timeline.leakage(budgets)


@dataclass(frozen=True)
class Timeline:
    """Which time points are released, and the loss functions between the releases and to the other times.

    Attributes
    ----------
    horizon : int, the number of time points T
    times : ndarray (R,), the released ones, counted from 0
    backward, forward : lists of R - 1 loss functions, one for each two successive releases (None: not known)
    pauses : list of (time, release before or -1, its L, release after or R, its L), one for each other time point
    """

    horizon: int
    times: np.ndarray
    backward: list
    forward: list
    pauses: list

    @classmethod
    def of(cls, backward: Correlation, forward: Correlation, horizon: int, times: ArrayLike | None = None) -> Timeline:
        """The timeline of an adversary; `times` None stands for all time points."""
        horizon = check_horizon(horizon)
        points = np.arange(horizon) if times is None else _checked_times(times, horizon)
        known_b, known_f = (
            _Gaps(as_loss_functions(matrices, horizon - 1, name), name)
            for matrices, name in ((backward, "backward"), (forward, "forward"))
        )
        released = points.tolist()
        pauses = []
        following = np.searchsorted(points, np.arange(horizon)).tolist()
        for time in np.setdiff1d(np.arange(horizon), points).tolist():
            after = following[time]
            loss_b = known_b.between(released[after - 1], time) if after > 0 else None
            loss_f = known_f.between(time, released[after]) if after < len(released) else None
            pauses.append((time, after - 1, loss_b, after, loss_f))
        steps = list(pairwise(released))
        before, after = ([side.between(*step) for step in steps] for side in (known_b, known_f))
        return cls(horizon, points, before, after, pauses)

    def leakage(self, budgets: np.ndarray) -> TemporalLeakage:
        """The leakages at all T time points of budgets (R,)."""
        at_releases = temporal_privacy_leakage(budgets, self.backward, self.forward)
        if not self.pauses:
            return at_releases
        epsilons, bpl, fpl = np.zeros((3, self.horizon))
        for all_times, values in ((epsilons, budgets), (bpl, at_releases.bpl), (fpl, at_releases.fpl)):
            all_times[self.times] = values
        for time, before, loss_b, after, loss_f in self.pauses:
            if loss_b is not None:
                bpl[time] = loss_b.at(float(at_releases.bpl[before]))
            if loss_f is not None:
                fpl[time] = loss_f.at(float(at_releases.fpl[after]))
        return TemporalLeakage(epsilons, bpl, fpl)


class _Gaps:
    """Loss functions of the correlation between any two time points of one side, each made once."""

    def __init__(self, steps: list, name: str):
        self._steps = steps
        self._backward = name == "backward"
        self._uniform = all(function is steps[0] for function in steps[1:])
        self._products: dict[tuple[int, int], np.ndarray] = {}
        self._functions: dict[tuple[int, int], PrivacyLossFunction] = {}

    def between(self, start: int, end: int) -> PrivacyLossFunction | None:
        if end == start + 1:
            return self._steps[start]
        if any(self._steps[k] is None for k in range(start, end)):
            return None
        key = (0, end - start) if self._uniform else (start, end)
        if key not in self._functions:
            states = self._steps[start].matrix.states
            self._functions[key] = PrivacyLossFunction(TransitionMatrix(self._product(*key), states, normalize=True))
        return self._functions[key]

    def _product(self, start: int, end: int) -> np.ndarray:
        """Row: the known state (the later time backward, the earlier one forward); column: the other."""
        known = end
        while known > start + 1 and (start, known) not in self._products:
            known -= 1
        if known == start + 1:
            self._products[start, known] = self._matrix(start)
        for step in range(known, end):
            earlier, last = self._products[start, step], self._matrix(step)
            self._products[start, step + 1] = last @ earlier if self._backward else earlier @ last
        return self._products[start, end]

    def _matrix(self, step: int) -> np.ndarray:
        matrix = self._steps[0 if self._uniform else step].matrix
        if matrix.is_sparse and matrix.n_states > MAX_STATES:
            raise ValueError(
                "time points without a release need products of the matrices, which are dense; found a sparse matrix "
                f"of {matrix.n_states} states, more than {MAX_STATES}; release every time point"
            )
        return matrix.toarray()


def _checked_times(given: ArrayLike, horizon: int) -> np.ndarray:
    times = np.asarray(given)
    if times.dtype == bool and times.shape == (horizon,):
        times = np.flatnonzero(times)
    if times.ndim != 1 or times.size == 0 or not np.issubdtype(times.dtype, np.integer):
        raise ValueError(
            f"times must be a list of time points, or one bool a time point ({horizon}); found shape {times.shape} "
            f"of {times.dtype}; give at least one time point, counted from 0"
        )
    if times[0] < 0 or times[-1] >= horizon or (np.diff(times) <= 0).any():
        found = f"found {times.tolist()[:10]}; sort them, and count from 0"
        raise ValueError(f"times must hold increasing time points in 0..{horizon - 1}, {found}")
    return times.astype(int)
