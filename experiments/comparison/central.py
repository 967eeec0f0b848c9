"""Mechanisms of a trusted server, which sees everybody and publishes noisy counts.

Moving one user changes two counts by 1. Gaussian noise has the same variance at every time and may
be correlated over time: it is then the noise of a banded matrix mechanism with one subdiagonal
(Choquette-Choo et al.: (Amplified) Banded Matrix Factorization, NeurIPS 2023), C^-1 times white
noise, where C subtracts `correlation` times the previous value from each value.

The adversary knows the data of all other users, so there are N independent runs, each with another
user as the target. The counts returned are those of the first run.
"""

import numpy as np
from numpy.typing import ArrayLike

from experiments.comparison.setting import Setting, SimulatedRelease
from experiments.comparison.window import WindowScheme
from tplrepro.mechanisms import LaplaceNoise
from tplrepro.validation import check_budgets, check_level

#: How much the counts of one time change, in sum, when one user moves.
SENSITIVITY = 2.0


def release_laplace(
    setting: Setting, epsilons: ArrayLike, *, rng: np.random.Generator
) -> SimulatedRelease:
    """Counts with Laplace noise of the budgets `epsilons` in nats, one for each time (T,) or one
    for all.

    The uniform numbers that are drawn do not depend on the budgets.
    """
    budgets = check_budgets(epsilons, horizon=setting.horizon)
    laplace = LaplaceNoise((SENSITIVITY / budgets)[:, None])
    noise = laplace.sample(setting.present.shape, rng=rng)
    # The adversary subtracts the other users' counts; the target adds 1 to the count of its cell.
    log_likelihoods = laplace.log_ratio(setting.present + noise)
    counts = setting.counts + noise[0]
    return SimulatedRelease(log_likelihoods, counts, np.ravel(laplace.mean_square))


def release_gaussian(
    setting: Setting, shift: float, *, rng: np.random.Generator, correlation: float = 0.0
) -> SimulatedRelease:
    """Counts with Gaussian noise of standard deviation sqrt(2) / `shift` (L2 sensitivity sqrt(2)).

    `correlation`, above -1 and below 1, is that of the noise of one count at consecutive times (a
    stationary AR(1)).
    """
    variance = 2.0 / check_level(shift, "shift") ** 2
    steps = np.full(setting.horizon, variance * (1.0 - correlation**2))
    steps[0] = variance  # variance of the noise given the noise of the previous time
    noise = rng.normal(size=setting.present.shape) * np.sqrt(steps)[:, None]
    for t in range(1, setting.horizon):
        noise[:, t] += correlation * noise[:, t - 1]
    # Likelihoods of counts minus `correlation` times the previous counts, given the target's cells
    # at both times.
    whitened = setting.present + noise
    whitened[:, 1:] -= correlation * whitened[:, :-1]
    log_likelihoods = whitened / steps[:, None]
    log_likelihoods[:, :-1] -= correlation * log_likelihoods[:, 1:]
    counts = setting.counts + noise[0]
    variances = np.full(setting.horizon, variance)
    return SimulatedRelease(log_likelihoods, counts, variances, correlation)


def release_by_window(
    setting: Setting, epsilon: float, *, rng: np.random.Generator, window: int, scheme: WindowScheme
) -> SimulatedRelease:
    """Budget absorption or distribution: epsilon nats in any `window` consecutive times.

    Publish when the noisy mean change of the counts exceeds the mean absolute error of a
    publication with what the scheme may spend; otherwise repeat the last counts, at first the
    expected ones. `scheme` counts in units of epsilon / (2 window). Of the published counts (T, n),
    the variance of a repeated row is infinite.
    """
    unit = check_level(epsilon, "epsilon") / (2 * window)
    runs, horizon, n = setting.present.shape
    # One user changes the sum of the n changes by at most 2.
    deciding = LaplaceNoise(SENSITIVITY / n / unit)
    deciding_noise = deciding.sample((runs, horizon), rng=rng)
    noise = LaplaceNoise(1.0).sample((runs, horizon, n), rng=rng)
    last = np.tile(setting.expected_counts, (runs, 1))
    spent = np.zeros((runs, horizon))
    log_likelihoods = np.zeros((runs, horizon, n))
    counts = np.empty((horizon, n))
    variances = np.empty(horizon)
    for t in range(horizon):
        target = setting.present[:, t]
        others = setting.counts[t] - target
        units = scheme(spent[:, :t], window)
        may_publish = units > 0
        scale = SENSITIVITY / (unit * np.where(may_publish, units, 1.0))
        distance = np.abs(others - last)
        # The mean change if the target were in each of the cells.
        change = (distance.sum(axis=1, keepdims=True) + np.abs(others + 1 - last) - distance) / n
        true_change = (change * target).sum(axis=1)
        publish = may_publish & (true_change + deciding_noise[:, t] > scale)
        values = target + noise[:, t] * scale[:, None]
        publishing = LaplaceNoise(scale[:, None])
        log_decision = deciding.log_cdf(change - scale[:, None])
        log_publish = log_decision + publishing.log_ratio(values)
        log_repeat = np.where(may_publish[:, None], deciding.log_cdf(scale[:, None] - change), 0.0)
        log_likelihoods[:, t] = np.where(publish[:, None], log_publish, log_repeat)
        last = np.where(publish[:, None], others + values, last)
        spent[:, t] = np.where(publish, units, 0.0)
        counts[t] = last[0]
        variances[t] = 2 * scale[0] ** 2 if publish[0] else np.inf
    return SimulatedRelease(log_likelihoods, counts, variances)
