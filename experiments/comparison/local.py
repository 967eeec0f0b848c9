"""Mechanisms without trust: each user perturbs her own cell at each time, and all N users are targets.

Randomised response and unary encoding are local differential privacy. LBD and LBA are the schemes of `window` on
reports (Ren, Shi, Yu, Yang, Zhao, Xu: LDP-IDS, SIGMOD 2022). DPHMM ([5]) adds K-norm noise, fitted to a policy graph,
to the position. Sequence information privacy ([3]) answers by the belief about the user's next cell, which the chain
and her outputs so far tell (Eq. (13) of [3]): the mechanism changes with the history, which is public.
"""

import numpy as np

from experiments.comparison.setting import Setting, SimulatedRelease
from experiments.comparison.window import WindowScheme
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.markov.filtering import condition, log_probabilities, log_product
from tplrepro.mechanisms import KaryRandomizedResponse, UnaryEncoding
from tplrepro.sip.hamming import hamming_tables
from tplrepro.validation import check_horizon, check_level

__all__ = ["release_by_policy", "release_conditional_response", "release_optimal_response"]
__all__ += ["release_reports", "release_reports_by_window"]


def release_reports(
    setting: Setting, epsilon: float, rng: np.random.Generator, *, by: type[KaryRandomizedResponse | UnaryEncoding]
) -> SimulatedRelease:
    """A report of each user at each time; the counts are unbiased."""
    mechanism = by(epsilon, setting.n_cells)
    outputs = mechanism.sample(setting.paths, rng)
    return SimulatedRelease(mechanism.log_likelihood(outputs), mechanism.unbiased_counts(outputs))


def release_reports_by_window(
    setting: Setting, epsilon: float, rng: np.random.Generator, *, window: int, scheme: WindowScheme
) -> SimulatedRelease:
    """LBA or LBD: randomised response within epsilon nats in any `window` consecutive times.

    All users report with epsilon / (2 w) at every time. The mean square by which the counts of these reports differ
    from the last published ones, less what their noise explains, decides: where it is larger than the variance of
    counts from reports with what the scheme may spend, all report once more, and these counts are published.
    """
    w = check_horizon(window, "window")
    unit = check_level(epsilon, "epsilon") / (2 * w)
    deciding = KaryRandomizedResponse(unit, setting.n_cells)
    told, counts = np.empty(setting.present.shape), np.empty(setting.counts.shape)
    spent, last = np.zeros((1, setting.horizon)), setting.expected_counts
    for t, (first, second) in enumerate(one.spawn(2) for one in rng.spawn(setting.horizon)):
        reports = deciding.sample(setting.paths[:, t], first)
        told[:, t] = deciding.log_likelihood(reports)
        units = float(scheme(spent[:, :t], w)[0])
        apart = np.mean((deciding.unbiased_counts(reports) - last) ** 2) - setting.n_users * deciding.mean_variance
        if units > 0:
            publishing = KaryRandomizedResponse(unit * units, setting.n_cells)
            if apart > setting.n_users * publishing.mean_variance:
                reports = publishing.sample(setting.paths[:, t], second)
                told[:, t] += publishing.log_likelihood(reports)
                spent[0, t], last = units, publishing.unbiased_counts(reports)
        counts[t] = last
    return SimulatedRelease(told, counts)


def release_by_policy(
    setting: Setting, epsilon: float, rng: np.random.Generator, *, policy: PolicyGraph
) -> SimulatedRelease:
    """A noisy position of each user at each time, by a policy over the cells that is made protectable (6.1 of [5]).

    Every cell is possible at every time, so that the constraint of Definition 4.1 of [5] never binds. There are no
    counts without a model: noise wider than a cell cannot be inverted.
    """
    mechanism = KNormMechanism.protecting(policy, setting.positions, epsilon)
    noise = mechanism.sample(np.zeros(2), size=setting.paths.size, rng=rng).reshape(*setting.paths.shape, 2)
    values = setting.positions[setting.paths] + noise
    return SimulatedRelease(mechanism.log_density(values[..., None, :], setting.positions))


def release_conditional_response(setting: Setting, epsilon: float, rng: np.random.Generator) -> SimulatedRelease:
    """Conditional randomised response as published (Theorem 4 of [3]): with probability e^-epsilon a draw from belief.

    It is `sip.ConditionalRandomizedResponse` for all users at once: one by one would take 100 times as long. The counts
    are unbiased.
    """
    level = check_level(epsilon, "epsilon")
    lie, truth = np.exp(-level), -np.expm1(-level)
    draws = rng.random((2, *setting.paths.shape))
    beliefs = np.tile(setting.adversary.initial, (setting.n_users, 1))
    told, counts = np.empty(setting.present.shape), np.empty(setting.counts.shape)
    for t in range(setting.horizon):
        outputs = np.where(draws[1, :, t] < lie, _draw(beliefs, draws[0, :, t]), setting.paths[:, t])
        hit = outputs[:, None] == np.arange(setting.n_cells)
        likelihood = lie * (beliefs * hit).sum(axis=1, keepdims=True) + truth * hit
        told[:, t] = np.log(likelihood)
        counts[t] = (hit - lie * beliefs).sum(axis=0) / truth
        beliefs = _next_beliefs(setting, beliefs, likelihood)
    return SimulatedRelease(told, counts)


def release_optimal_response(setting: Setting, epsilon: float, rng: np.random.Generator) -> SimulatedRelease:
    """The exact optimum of problem (15) of [3] under Hamming distance.

    Users with the same outputs so far share a belief, and a response. It answers with few cells only, so that there are
    no unbiased counts.
    """
    level, n = check_level(epsilon, "epsilon"), setting.n_cells
    draws = rng.random(setting.paths.shape)
    beliefs, group = setting.adversary.initial[None], np.zeros(setting.n_users, dtype=np.intp)
    told = np.empty(setting.present.shape)
    for t in range(setting.horizon):
        tables = hamming_tables(beliefs, level)
        outputs = _draw(tables[group, setting.paths[:, t]], draws[:, t])
        histories, group = np.unique(group * n + outputs, return_inverse=True)
        likelihood = tables[histories // n, :, histories % n]
        told[:, t] = log_probabilities(likelihood)[group]
        beliefs = _next_beliefs(setting, beliefs[histories // n], likelihood)
    return SimulatedRelease(told)


def _draw(distributions: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A cell from each of the distributions (m, n), by inversion of uniform numbers (m,)."""
    cumulative = np.cumsum(distributions, axis=1)
    return (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(axis=1).clip(max=distributions.shape[1] - 1)


def _next_beliefs(setting: Setting, beliefs: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """The beliefs about the next cell, (m, n), after outputs of these likelihoods (m, n); Eq. (13) of [3]."""
    posterior, _ = condition(log_probabilities(beliefs), log_probabilities(likelihood))
    return np.exp(log_product(posterior, setting.adversary.transitions))
