"""Mechanisms of a trusted server, which sees everybody and publishes noisy counts.

Laplace noise has scale 2 / epsilon_t in each count of time t (moving one user changes two counts by 1). Event-level,
group and DP_T budgets are fixed in advance; the schemes of `window` publish only where the counts have changed.
Gaussian noise has the same variance at every time, and may be correlated over time. It is then that of a banded matrix
mechanism with one subdiagonal (Choquette-Choo et al.: (Amplified) Banded Matrix Factorization, NeurIPS 2023): C^-1
times white noise, where C subtracts from each value `correlation` times the one before.

The adversary knows all other users: there are N independent runs, each user the target of one. The counts given are
those of the first run.
"""

import numpy as np
from numpy.typing import ArrayLike

from experiments.comparison.setting import Setting, SimulatedRelease
from experiments.comparison.window import WindowScheme
from tplrepro.mechanisms import LaplaceNoise
from tplrepro.validation import check_budgets, check_horizon, check_level

__all__ = ["release_by_window", "release_gaussian", "release_laplace"]

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


def release_gaussian(
    setting: Setting, shift: float, rng: np.random.Generator, *, correlation: float = 0.0
) -> SimulatedRelease:
    """Counts with Gaussian noise of standard deviation sqrt(2) / `shift`, the L2 distance over the noise multiplier.

    `correlation`, above -1 and below 1, is that of the noise of one count at consecutive times (a stationary AR(1)).
    """
    if not -1.0 < correlation < 1.0:
        raise ValueError(f"correlation must be above -1 and below 1, found {correlation!r}; 0 is independent noise")
    variance = 2.0 / check_level(shift, "shift") ** 2
    steps = np.full(setting.horizon, variance * (1.0 - correlation**2))
    steps[0] = variance  # of the noise given that of the time before
    noise = rng.normal(size=setting.present.shape) * np.sqrt(steps)[:, None]
    for t in range(1, setting.horizon):
        noise[:, t] += correlation * noise[:, t - 1]
    # Likelihoods of counts less `correlation` times those of the time before, given the target's cells at both.
    seen = setting.present + noise
    seen[:, 1:] -= correlation * seen[:, :-1]
    told = seen / steps[:, None]
    told[:, :-1] -= correlation * told[:, 1:]
    return SimulatedRelease(told, setting.counts + noise[0], np.full(setting.horizon, variance), correlation)


def release_by_window(
    setting: Setting, epsilon: float, rng: np.random.Generator, *, window: int, scheme: WindowScheme
) -> SimulatedRelease:
    """Budget absorption or distribution: epsilon nats in any `window` consecutive times.

    A noisy mean change of the counts decides whether to publish: where it is larger than the error of what the scheme
    may spend. A time that publishes nothing repeats the last counts, at first the chain's.
    """
    w = check_horizon(window, "window")
    unit = check_level(epsilon, "epsilon") / (2 * w)
    runs, horizon, n = setting.present.shape
    # The mean of n changes, of which one user can alter the sum by 2.
    deciding = LaplaceNoise(SENSITIVITY / n / unit)
    doubt = deciding.sample((runs, horizon), rng)
    noise = LaplaceNoise(1.0).sample((runs, horizon, n), rng)
    last = np.tile(setting.expected_counts, (runs, 1))
    spent, told = np.zeros((runs, horizon)), np.zeros((runs, horizon, n))
    shown, variances = np.empty((horizon, n)), np.empty(horizon)
    for t in range(horizon):
        own = setting.present[:, t]
        others = setting.counts[t] - own
        units = scheme(spent[:, :t], w)
        asked = units > 0
        scale = SENSITIVITY / (unit * np.where(asked, units, 1.0))
        apart = np.abs(others - last)
        change = (apart.sum(axis=1, keepdims=True) + np.abs(others + 1 - last) - apart) / n  # for each cell
        happened = (change * own).sum(axis=1)
        publish = asked & (happened + doubt[:, t] > scale)
        values = own + noise[:, t] * scale[:, None]
        log_publish = deciding.log_cdf(change - scale[:, None]) + LaplaceNoise(scale[:, None]).log_ratio(values)
        log_repeat = np.where(asked[:, None], deciding.log_cdf(scale[:, None] - change), 0.0)
        told[:, t] = np.where(publish[:, None], log_publish, log_repeat)
        last = np.where(publish[:, None], others + values, last)
        spent[:, t] = np.where(publish, units, 0.0)
        shown[t] = last[0]
        variances[t] = 2 * scale[0] ** 2 if publish[0] else np.inf
    return SimulatedRelease(told, shown, variances)
