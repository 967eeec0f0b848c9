"""Mechanisms of a trusted server, which sees everybody and publishes noisy counts.

All add Laplace noise of scale 2 / epsilon_t to each count of time t (moving one user changes two counts by 1), and
differ in the budgets over time. Event-level, group and DP_T budgets are fixed in advance. Budget absorption (Kellaris,
Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams, VLDB 2014) publishes only
where the counts have changed, and then spends what it saved, within epsilon in any window of w times.

The adversary knows all other users, so that the likelihood of an output is that of the noise around her target.
"""

from __future__ import annotations

import numpy as np

from tplrepro.comparison.release import Release
from tplrepro.validation import check_budgets, check_horizon, check_level

__all__ = ["release_by_absorption", "release_laplace"]

#: How much the counts of one time change, in sum, when one user moves.
SENSITIVITY = 2.0


def release_laplace(setting, epsilons, rng: np.random.Generator) -> Release:
    """Noisy counts with a budget for each time.

    Parameters
    ----------
    setting : Setting
    epsilons : array-like (T,), nats
    rng : numpy.random.Generator
        Its draws do not depend on the budgets.

    Returns
    -------
    Release; N independent runs, each user the target of one; the counts are those of the first

    Raises
    ------
    ValueError
        For budgets that are not positive and finite, or not one a time.
    """
    budgets = check_budgets(epsilons)
    if budgets.size != setting.horizon:
        raise ValueError(f"epsilons must hold {setting.horizon} budgets, one a time, found {budgets.size}; give T")
    scale = (SENSITIVITY / budgets)[:, None]
    noise = rng.laplace(size=setting.present.shape) * scale
    return Release(_of_target(setting.present + noise, scale), setting.counts + noise[0], 2 * scale[:, 0] ** 2)


def release_by_absorption(setting, epsilon: float, window: int, rng: np.random.Generator) -> Release:
    """Budget absorption: epsilon in any `window` consecutive times.

    Half of the budget, epsilon / (2 w) a time, decides by a noisy mean change of the counts whether to publish; of the
    other half each time gets as much, and a published time takes what the times before it have not used, after which as
    many times publish nothing. A time that publishes nothing repeats the last counts; before the first one, the
    chain's.

    Parameters
    ----------
    setting : Setting
    epsilon : float > 0, nats
    window : int >= 1, w
    rng : numpy.random.Generator

    Returns
    -------
    Release; N independent runs, each user the target of one; the counts are those of the first
    """
    w = check_horizon(window, "window")
    unit = check_level(epsilon, "epsilon") / (2 * w)
    runs, horizon, n = setting.present.shape
    # The mean of n changes, of which one user can alter the sum by 2.
    doubt = rng.laplace(size=(runs, horizon)) * (SENSITIVITY / n / unit)
    noise = rng.laplace(size=(runs, horizon, n))
    last = np.tile(setting.expected_counts, (runs, 1))
    spent_on, spent_units = np.full(runs, -1), np.zeros(runs, dtype=int)
    told = np.zeros((runs, horizon, n))
    shown, variances = np.empty((horizon, n)), np.full(horizon, np.inf)
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
        log_publish, log_repeat = _log_laplace_tails(scale[:, None] - change, SENSITIVITY / n / unit)
        values = own + noise[:, t] * scale[:, None]
        told[:, t] = np.where(
            publish[:, None],
            log_publish + _of_target(values, scale[:, None]),
            np.where(asked[:, None], log_repeat, 0.0),
        )
        last = np.where(publish[:, None], others + values, last)
        spent_on = np.where(publish, t, spent_on)
        spent_units = np.where(publish, units, spent_units)
        shown[t] = last[0]
        if publish[0]:
            variances[t] = 2 * scale[0] ** 2
    return Release(told, shown, variances)


def _of_target(values: np.ndarray, scale) -> np.ndarray:
    """Log-likelihood of counts less those of the other users (..., n), for each cell of the target."""
    return (np.abs(values) - np.abs(values - 1.0)) / scale


def _log_laplace_tails(threshold: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """log Pr(X > threshold) and log Pr(X <= threshold) for Laplace noise X."""
    tail = np.log(0.5) - np.abs(threshold) / scale
    rest = np.log1p(-np.exp(tail))
    above = threshold >= 0
    return np.where(above, tail, rest), np.where(above, rest, tail)
