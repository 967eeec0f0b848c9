"""Leakage at every time point when only some of them are released: no release at s means epsilon_s = 0.

Between two releases that are g time points apart the adversary's knowledge passes through the correlation of g steps,
the product of the g matrices: BPL_s = L(BPL_r) and BPL_r' = L(BPL_r) + epsilon_r' with the loss function L of the
product (Eq. (13) of [1] for the chain of every g-th time point), FPL likewise backwards in time. This is tighter than
g evaluations of the one-step L, and as sound. The TPL of a time point without a release can exceed that of both
neighbouring releases.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.quantification import TemporalLeakage, temporal_privacy_leakage
from tplrepro.leakage.recursion import as_loss_functions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_budgets, check_horizon

__all__ = ["Timeline", "leakage_at_all_times", "make_timeline", "timeline_leakage"]

#: The product of sparse matrices is dense; beyond this many states it is refused.
MAX_STATES = 3000


@dataclass(frozen=True)
class Timeline:
    """Which time points are released, and the loss functions between and around the releases.

    Attributes
    ----------
    horizon : int, the number of time points T
    released : ndarray (R,), the released ones, counted from 0
    backward, forward : lists of R - 1 loss functions, one for each two successive releases (None: not known)
    pauses : list of (time, release before or -1, its L, release after or R, its L), one for each other time point
    """

    horizon: int
    released: np.ndarray
    backward: list
    forward: list
    pauses: list


def leakage_at_all_times(epsilons, released, horizon: int, backward=None, forward=None) -> TemporalLeakage:
    """BPL, FPL and TPL at each of T time points of which only some are released.

    Parameters
    ----------
    epsilons : array-like (R,), the budget of each release in nats, finite and > 0
    released : array-like (R,) of increasing time points in 0..T-1, or bool (T,)
    horizon : int >= 1, the number of time points T
    backward, forward : as in `temporal_privacy_leakage`; a list holds T - 1 matrices

    Returns
    -------
    TemporalLeakage, its arrays of shape (T,); `epsilons` is 0 at the time points without a release

    Raises
    ------
    ValueError
        For time points that are not increasing or out of range, and as in `temporal_privacy_leakage`.

    Examples
    --------
    >>> walk = TransitionMatrix(np.eye(5) + (np.eye(5, k=1) + np.eye(5, k=-1)) / 4, normalize=True)
    >>> r = leakage_at_all_times([0.5, 0.5], [0, 4], 5, walk, walk)
    >>> r.tpl.round(4).tolist()  # highest between the two releases
    [0.9407, 0.9658, 0.9736, 0.9658, 0.9407]
    >>> r.epsilons.tolist()
    [0.5, 0.0, 0.0, 0.0, 0.5]
    """
    timeline = make_timeline(released, horizon, backward, forward)
    budgets = check_budgets(epsilons)
    if budgets.size != timeline.released.size:
        raise ValueError(
            f"epsilons must hold one budget a release, found {budgets.size} for {timeline.released.size} releases; "
            "leave out time points at which nothing is released"
        )
    return timeline_leakage(timeline, budgets)


def timeline_leakage(timeline: Timeline, budgets: np.ndarray) -> TemporalLeakage:
    """`leakage_at_all_times` for a timeline made before."""
    at_releases = temporal_privacy_leakage(budgets, timeline.backward, timeline.forward)
    if not timeline.pauses:
        return at_releases
    epsilons, bpl, fpl = (np.zeros(timeline.horizon) for _ in range(3))
    for all_times, values in ((epsilons, budgets), (bpl, at_releases.bpl), (fpl, at_releases.fpl)):
        all_times[timeline.released] = values
    for time, before, loss_b, after, loss_f in timeline.pauses:
        if loss_b is not None:
            bpl[time] = loss_b.at(float(at_releases.bpl[before]))
        if loss_f is not None:
            fpl[time] = loss_f.at(float(at_releases.fpl[after]))
    return TemporalLeakage(epsilons, bpl, fpl)


def make_timeline(released, horizon: int, backward=None, forward=None) -> Timeline:
    """The timeline of an adversary; `released` None stands for all time points."""
    horizon = check_horizon(horizon)
    times = np.arange(horizon) if released is None else _checked_times(released, horizon)
    sides = []
    for matrices, name in ((backward, "backward"), (forward, "forward")):
        sides.append(_Gaps(as_loss_functions(matrices, horizon - 1, name), name))
    known_b, known_f = sides
    points = times.tolist()
    pauses = []
    if len(points) < horizon:
        following = np.searchsorted(times, np.arange(horizon))
        for time in np.setdiff1d(np.arange(horizon), times).tolist():
            after = int(following[time])
            loss_b = known_b.between(points[after - 1], time) if after > 0 else None
            loss_f = known_f.between(time, points[after]) if after < len(points) else None
            pauses.append((time, after - 1, loss_b, after, loss_f))
    steps = list(pairwise(points))
    return Timeline(
        horizon,
        times,
        [known_b.between(*step) for step in steps],
        [known_f.between(*step) for step in steps],
        pauses,
    )


class _Gaps:
    """Loss functions of the correlation between any two time points of one side, each made once."""

    def __init__(self, steps: list[PrivacyLossFunction | None], name: str):
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


def _checked_times(released, horizon: int) -> np.ndarray:
    times = np.asarray(released)
    if times.dtype == bool and times.shape == (horizon,):
        times = np.flatnonzero(times)
    if times.ndim != 1 or times.size == 0 or not np.issubdtype(times.dtype, np.integer):
        raise ValueError(
            f"released must be a list of time points, or one bool a time point ({horizon}); found shape {times.shape} "
            f"of {times.dtype}; give at least one time point, counted from 0"
        )
    if times[0] < 0 or times[-1] >= horizon or (np.diff(times) <= 0).any():
        raise ValueError(
            f"released must hold increasing time points in 0..{horizon - 1}, found {times.tolist()[:10]}; "
            "sort them, and count from 0"
        )
    return times.astype(int)
