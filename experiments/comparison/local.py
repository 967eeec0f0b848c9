"""Mechanisms without a trusted server: each user perturbs their cell at each time, and all N users
are targets.

Randomised response and unary encoding are locally differentially private. LBD and LBA apply the
schemes of `window` to reports (Ren, Shi, Yu, Yang, Zhao, Xu: LDP-IDS, SIGMOD 2022). DPHMM ([5])
adds K-norm noise, fitted to a policy graph, to the position. The responses of sequence information
privacy ([3]) depend on the belief about the user's next cell given the user's earlier outputs (Eq.
(13) of [3]), which are public.
"""

from dataclasses import dataclass

import numpy as np

from experiments.comparison.setting import Setting, SimulatedRelease
from experiments.comparison.window import WindowScheme
from tplrepro import sip
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import protect
from tplrepro.markov.filtering import condition_on_output, log_probabilities, log_product
from tplrepro.validation import check_level


@dataclass(frozen=True)
class Reports:
    """Reports of one of n values with `epsilon` nats: k-ary randomised response, or optimised unary
    encoding.

    A report supports some values: k-ary randomised response the value that it names, unary encoding
    those whose bit is set (Wang, Blocki, Li, Jha: Locally Differentially Private Protocols for
    Frequency Estimation, USENIX Security 2017). A report is e^epsilon times as likely for a value
    that it supports as for another.
    """

    epsilon: float
    n: int
    unary: bool = False

    @property
    def other(self) -> float:
        """Probability that a report supports a value that is not the user's."""
        if self.unary:
            return float(np.exp(-np.logaddexp(0.0, self.epsilon)))
        return float(np.exp(-self.epsilon) / (1.0 + (self.n - 1) * np.exp(-self.epsilon)))

    @property
    def gain(self) -> float:
        """How much more probable it is that a report supports the user's value."""
        if self.unary:
            return 0.5 - self.other
        return float(-np.expm1(-self.epsilon) / (1.0 + (self.n - 1) * np.exp(-self.epsilon)))

    def sample(self, values: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Whether the report of each of the values supports each value, (..., n)."""
        if self.unary:
            is_value = values[..., None] == np.arange(self.n)
            return rng.random(is_value.shape) < np.where(is_value, 0.5, self.other)
        uniform = rng.integers(self.n, size=values.shape)
        outputs = np.where(rng.random(values.shape) < self.gain, values, uniform)
        return outputs[..., None] == np.arange(self.n)

    def counts(self, supported: np.ndarray) -> np.ndarray:
        """Unbiased counts of the users who hold each value, (..., n), from their reports (users,
        ..., n)."""
        return (supported.sum(axis=0) - len(supported) * self.other) / self.gain

    @property
    def mean_variance(self) -> float:
        """The mean variance of the counts over values, per user."""
        truth = self.other + self.gain
        of_holders = truth * (1 - truth)
        of_others = (self.n - 1) * self.other * (1 - self.other)
        return (of_holders + of_others) / self.n / self.gain**2


def release_reports(
    setting: Setting, epsilon: float, *, rng: np.random.Generator, unary: bool = False
) -> SimulatedRelease:
    """One report of each user at each time within `epsilon` nats, with unbiased counts: by
    randomised response, or by unary encoding if `unary`."""
    mechanism = Reports(check_level(epsilon, "epsilon"), setting.n_cells, unary)
    supported = mechanism.sample(setting.paths, rng=rng)
    return SimulatedRelease(mechanism.epsilon * supported, mechanism.counts(supported))


def release_reports_by_window(
    setting: Setting, epsilon: float, *, rng: np.random.Generator, window: int, scheme: WindowScheme
) -> SimulatedRelease:
    """LBA or LBD: randomised response within epsilon nats in any `window` consecutive times.

    All users report with epsilon / (2 w) at every time. The mean squared difference between the
    counts of these reports and the last published counts, minus the variance of their noise,
    estimates the change. When it exceeds the variance of a publication with what the scheme may
    spend, all users report again.
    """
    unit = check_level(epsilon, "epsilon") / (2 * window)
    deciding = Reports(unit, setting.n_cells)
    log_likelihoods = np.empty(setting.present.shape)
    counts = np.empty(setting.counts.shape)
    spent = np.zeros((1, setting.horizon))
    last = setting.expected_counts
    for t, step_rng in enumerate(rng.spawn(setting.horizon)):
        first, second = step_rng.spawn(2)
        supported = deciding.sample(setting.paths[:, t], rng=first)
        log_likelihoods[:, t] = unit * supported
        units = float(scheme(spent[:, :t], window)[0])
        noise = setting.n_users * deciding.mean_variance
        change = np.mean((deciding.counts(supported) - last) ** 2) - noise
        publishing = Reports(unit * units, setting.n_cells)
        if units > 0 and change > setting.n_users * publishing.mean_variance:
            supported = publishing.sample(setting.paths[:, t], rng=second)
            log_likelihoods[:, t] += publishing.epsilon * supported
            spent[0, t] = units
            last = publishing.counts(supported)
        counts[t] = last
    return SimulatedRelease(log_likelihoods, counts)


def release_by_policy(
    setting: Setting, epsilon: float, *, rng: np.random.Generator, policy: PolicyGraph
) -> SimulatedRelease:
    """A noisy position of each user at each time, by a policy over the cells that is made
    protectable (6.1 of [5]).

    `epsilon` is the level, in nats, between neighbours in the policy. Every cell is possible at
    every time, so the constraint of Definition 4.1 of [5] never binds. No counts are released:
    noise wider than a cell cannot be inverted.
    """
    protection = protect(policy, setting.positions)
    mechanism = KNormMechanism(protection.policy, setting.positions, epsilon, protection.hull)
    noise = mechanism.sample(np.zeros(2), size=setting.paths.size, rng=rng).reshape(
        *setting.paths.shape, 2
    )
    values = setting.positions[setting.paths] + noise
    return SimulatedRelease(mechanism.log_density(values[..., None, :], setting.positions))


def release_conditional_response(
    setting: Setting, epsilon: float, *, rng: np.random.Generator
) -> SimulatedRelease:
    """Conditional randomised response as published (Theorem 4 of [3]): with probability e^-epsilon
    a draw from belief.

    This is `sip.ConditionalRandomizedResponse` for all users at once, 100 times as fast as one by
    one. The counts are unbiased.
    """
    level = check_level(epsilon, "epsilon")
    lie = np.exp(-level)
    truth = -np.expm1(-level)
    draws = rng.random((2, *setting.paths.shape))
    beliefs = np.tile(setting.adversary.initial, (setting.n_users, 1))
    log_likelihoods = np.empty(setting.present.shape)
    counts = np.empty(setting.counts.shape)
    for t in range(setting.horizon):
        drawn = _draw_cells(beliefs, draws[0, :, t])
        outputs = np.where(draws[1, :, t] < lie, drawn, setting.paths[:, t])
        hit = outputs[:, None] == np.arange(setting.n_cells)
        likelihood = lie * (beliefs * hit).sum(axis=1, keepdims=True) + truth * hit
        log_likelihoods[:, t] = np.log(likelihood)
        counts[t] = (hit - lie * beliefs).sum(axis=0) / truth
        beliefs = _next_beliefs(setting, beliefs, likelihood)
    return SimulatedRelease(log_likelihoods, counts)


def release_optimal_response(
    setting: Setting, epsilon: float, *, rng: np.random.Generator
) -> SimulatedRelease:
    """The exact optimum of problem (15) of [3] under Hamming distance.

    Users with the same earlier outputs share a belief, and a response. The optimum uses few of the
    cells as outputs, so there are no unbiased counts.
    """
    mechanism = sip.OptimalResponse(epsilon)
    draws = rng.random(setting.paths.shape)
    beliefs = setting.adversary.initial[None]
    history = np.zeros(setting.n_users, dtype=np.intp)  # the row of `beliefs` for each user
    log_likelihoods = np.empty(setting.present.shape)
    for t in range(setting.horizon):
        tables = np.array([mechanism.response(belief).matrix() for belief in beliefs])
        outputs = _draw_cells(tables[history, setting.paths[:, t]], draws[:, t])
        pairs = np.column_stack((history, outputs))
        distinct, history = np.unique(pairs, axis=0, return_inverse=True)
        before, last_output = distinct.T
        likelihood = tables[before, :, last_output]
        log_likelihoods[:, t] = log_probabilities(likelihood)[history]
        beliefs = _next_beliefs(setting, beliefs[before], likelihood)
    return SimulatedRelease(log_likelihoods)


def _draw_cells(distributions: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A cell from each of the distributions (m, n), by inversion of uniform numbers (m,)."""
    cumulative = np.cumsum(distributions, axis=1)
    levels = uniform * cumulative[:, -1]
    cells = (cumulative <= levels[:, None]).sum(axis=1)
    return cells.clip(max=distributions.shape[1] - 1)


def _next_beliefs(setting: Setting, beliefs: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """The beliefs about the next cell, (m, n), by Eq. (13) of [3].

    `beliefs` (m, n) are those before the outputs, `likelihood` (m, n) is that of each output given
    each cell.
    """
    posterior, _ = condition_on_output(log_probabilities(beliefs), log_probabilities(likelihood))
    return np.exp(log_product(posterior, setting.adversary.transitions))
