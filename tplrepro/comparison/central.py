"""Mechanisms of a trusted server, which sees everybody and publishes noisy counts.

All add Laplace noise of scale 2 / epsilon_t to each count of time t (moving one user changes two counts by 1), and
differ in the budgets over time. Event-level, group and DP_T budgets are fixed in advance. Budget absorption (Kellaris,
Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams, VLDB 2014) publishes only
where the counts have changed, and then spends what it saved, within epsilon in any window of w times.

The adversary knows all other users: there are N independent runs, each user the target of one. The counts given are
those of the first run.
"""

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.comparison.setting import Setting, SimulatedRelease
from tplrepro.mechanisms import LaplaceNoise
from tplrepro.validation import check_budgets, check_horizon, check_level

__all__ = ["release_by_absorption", "release_laplace"]

#: How much the counts of one time change, in sum, when one user moves.
SENSITIVITY = 2.0


def release_laplace(setting: Setting, epsilons: ArrayLike, rng: np.random.Generator) -> SimulatedRelease:
    """Noisy counts with a positive budget in nats for each time, (T,), or for all; draws do not depend on budgets."""
    budgets = check_budgets(epsilons, horizon=setting.horizon)
    laplace = LaplaceNoise((SENSITIVITY / budgets)[:, None])
    noise = laplace.sample(setting.present.shape, rng)
    # Of the counts less those of the other users, each cell of the target explains one more.
    told = laplace.log_ratio(setting.present + noise)
    return SimulatedRelease(told, setting.counts + noise[0], np.ravel(laplace.mean_square))


def release_by_absorption(
    setting: Setting, epsilon: float, rng: np.random.Generator, *, window: int
) -> SimulatedRelease:
    """Budget absorption: epsilon nats in any `window` consecutive times.

    Half of the budget, epsilon / (2 w) a time, decides by a noisy mean change of the counts whether to publish; of the
    other half each time gets as much, and a published time takes what the times before it have not used, after which as
    many times publish nothing. A time that publishes nothing repeats the last counts, at first the chain's.
    """
    w = check_horizon(window, "window")
    unit = check_level(epsilon, "epsilon") / (2 * w)
    runs, horizon, n = setting.present.shape
    # The mean of n changes, of which one user can alter the sum by 2.
    deciding = LaplaceNoise(SENSITIVITY / n / unit)
    doubt = deciding.sample((runs, horizon), rng)
    noise = LaplaceNoise(1.0).sample((runs, horizon, n), rng)
    last = np.tile(setting.expected_counts, (runs, 1))
    spent_on, spent_units = np.full(runs, -1), np.zeros(runs, dtype=int)
    told = np.zeros((runs, horizon, n))
    shown, variances = np.empty((horizon, n)), np.empty(horizon)
    for t in range(horizon):
        own = setting.present[:, t]
        others = setting.counts[t] - own
        skipped = np.maximum(spent_units - 1, 0)
        asked = (spent_on < 0) | (t - spent_on > skipped)
        units = np.minimum(np.where(spent_on < 0, t + 1, t - spent_on - skipped), w)
        scale = SENSITIVITY / (unit * np.maximum(units, 1))
        apart = np.abs(others - last)
        change = (apart.sum(axis=1, keepdims=True) + np.abs(others + 1 - last) - apart) / n  # for each cell
        happened = (change * own).sum(axis=1)
        publish = asked & (happened + doubt[:, t] > scale)
        values = own + noise[:, t] * scale[:, None]
        log_publish = deciding.log_cdf(change - scale[:, None]) + LaplaceNoise(scale[:, None]).log_ratio(values)
        log_repeat = np.where(asked[:, None], deciding.log_cdf(scale[:, None] - change), 0.0)
        told[:, t] = np.where(publish[:, None], log_publish, log_repeat)
        last = np.where(publish[:, None], others + values, last)
        spent_on = np.where(publish, t, spent_on)
        spent_units = np.where(publish, units, spent_units)
        shown[t] = last[0]
        variances[t] = 2 * scale[0] ** 2 if publish[0] else np.inf
    return SimulatedRelease(told, shown, variances)
