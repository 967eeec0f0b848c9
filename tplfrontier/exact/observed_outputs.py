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
        return DataFrame(
            {
                name: values.reshape(-1, index.size).max(axis=0)
                for name, values in vars(self).items()
            },
            index,
        )


def measured_leakage(
    log_likelihoods: Any, backward: Correlation = REQUIRED, forward: Correlation = REQUIRED
) -> MeasuredLeakage:
    """The leakage of observed outputs; never more than `exact_leakage` of their budgets.

    `log_likelihoods` (..., T, n) are log Pr(o_t | l_t = k), up to a summand at each time; leading
    axes are runs. `LaplaceNoise.log_ratio` gives them for counts with Laplace noise. `backward` and
    `forward` are as in `temporal_privacy_leakage`. ValueError if the likelihoods are not finite, or
    if their number of states is not that of the matrices.

    >>> from tplrepro import exact_leakage, worst_outputs
    >>> P, epsilons = [[0.2, 0.8], [1, 0]], [1.0] * 4
    >>> worst = worst_outputs(epsilons, P, None, time=3)  # these leak the maximum
    >>> measured = measured_leakage(np.where(worst.high, 1.0, 0.0), P, None)
    >>> measured.tpl[3].round(6).item(), exact_leakage(epsilons, P, None).tpl[3].round(6).item()
    (2.93342, 2.93342)
    """
    must, remedy = "log-likelihoods must be numbers", "give log Pr(o_t | l_t)"
    x = as_numbers(log_likelihoods, must, remedy)
    if x.ndim < 2 or not np.isfinite(x).all():
        raise ValueError(
            "log-likelihoods must be finite, with a row for each time and a column for each state, "
            f"found shape {x.shape}; give log Pr(o_t | l_t)"
        )
    *_, T, n = x.shape
    before, after, states = arrays_of_both_sides(backward, forward, T)
    known = len(states or range(n))
    if known != n:
        raise ValueError(
            f"log-likelihoods need a column for each of the {known} states, found {n}; give all states'"
        )
    x = as_numbers(by_state(log_likelihoods, states, "log-likelihoods", (1,)), must, remedy)
    past = log_likelihoods_before(x, before)
    future = log_likelihoods_before(x[..., ::-1, :], after[::-1])[..., ::-1, :]
    return MeasuredLeakage(
        bpl=np.ptp(past + x, axis=-1),
        fpl=np.ptp(x + future, axis=-1),
        tpl=np.ptp(past + x + future, axis=-1),
    )
