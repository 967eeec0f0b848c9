"""The leakage of observed outputs: the log-likelihood ratios that an adversary computes from one
series of releases.

BPL, FPL and TPL are suprema over outputs. Here they are computed for the outputs of one run, with
likelihood vectors x_t = Pr(o_t | l_t), past messages B (x_{t-1} * past_{t-1}) and future messages F
(x_{t+1} * future_{t+1}).
"""

from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tplrepro.leakage.exact import arrays_of_both_sides
from tplrepro.leakage.temporal import REQUIRED, Correlation, OverTime
from tplrepro.markov.filtering import log_likelihoods_before
from tplrepro.validation import as_numbers, by_state

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class MeasuredLeakage(OverTime):
    """The largest log-likelihood ratios of two states at each time, arrays (..., T) in nats.

    `bpl` uses the outputs up to the time, `fpl` the outputs from the time on, and `tpl` all
    outputs.
    """

    bpl: np.ndarray
    fpl: np.ndarray
    tpl: np.ndarray

    def to_frame(self) -> DataFrame:
        """The largest of all runs at each `time` from 0, in the columns bpl, fpl and tpl; nats."""
        from pandas import DataFrame, RangeIndex

        index = RangeIndex(self.tpl.shape[-1], name="time")
        columns = {}
        for name, values in vars(self).items():
            columns[name] = values.reshape(-1, index.size).max(axis=0)
        return DataFrame(columns, index)


def measured_leakage(
    log_likelihoods: Any, backward: Correlation = REQUIRED, forward: Correlation = REQUIRED
) -> MeasuredLeakage:
    """The leakage of observed outputs; never more than `exact_leakage` of their budgets.

    Parameters
    ----------
    log_likelihoods : array-like (..., T, n)
        log Pr(o_t | l_t = k), up to a summand at each time; leading axes are runs.
        `LaplaceNoise.log_ratio` gives them for counts with Laplace noise.
    backward : TransitionMatrix, array-like (n, n), a list of T - 1 of these, Cycle, or None
        Pr(l^{t-1} | l^t). None: the adversary does not know that side.
    forward : as `backward`
        Pr(l^t | l^{t-1}).

    Returns
    -------
    MeasuredLeakage
        `bpl`, `fpl` and `tpl` (..., T) in nats.

    Raises
    ------
    ValueError
        If the likelihoods are not finite, or if their number of states is not that of the matrices.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> from tplrepro import exact_leakage, worst_outputs
    >>> P, epsilons = [[0.2, 0.8], [1, 0]], [1.0] * 4
    >>> worst = worst_outputs(epsilons, P, None, time=3)  # these leak the maximum
    >>> measured = measured_leakage(np.where(worst.high, 1.0, 0.0), P, None)
    >>> measured.tpl[3].round(6).item(), exact_leakage(epsilons, P, None).tpl[3].round(6).item()
    (2.93342, 2.93342)
    """
    x = _check_log_likelihoods(log_likelihoods)
    *_, horizon, n = x.shape
    before, after, states = arrays_of_both_sides(backward, forward, horizon)
    known = len(states or range(n))
    if known != n:
        raise ValueError(
            f"log-likelihoods need a column for each of the {known} states, found {n}; "
            "give all states'"
        )
    x = _as_log_likelihoods(by_state(log_likelihoods, states, "log-likelihoods", (1,)))
    past = log_likelihoods_before(x, before)
    from_end = x[..., ::-1, :]
    future_from_end = log_likelihoods_before(from_end, after[::-1])
    future = future_from_end[..., ::-1, :]
    return MeasuredLeakage(
        bpl=np.ptp(past + x, axis=-1),
        fpl=np.ptp(x + future, axis=-1),
        tpl=np.ptp(past + x + future, axis=-1),
    )


def _as_log_likelihoods(given: Any) -> np.ndarray:
    return as_numbers(given, "log-likelihoods must be numbers", "give log Pr(o_t | l_t)")


def _check_log_likelihoods(given: Any) -> np.ndarray:
    x = _as_log_likelihoods(given)
    if x.ndim < 2 or not np.isfinite(x).all():
        raise ValueError(
            "log-likelihoods must be finite, with a row for each time and a column for each state, "
            f"found shape {x.shape}; give log Pr(o_t | l_t)"
        )
    return x
