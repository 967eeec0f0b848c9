"""Sequence information privacy in the comparison: each user's response follows the belief about her ([3]).

The belief about a user's next cell is what the chain and her outputs so far tell, Eq. (13) of [3]: the mechanism
changes with the history, which is public. All users are released side by side.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.comparison.release import Release
from tplrepro.sip.optimal import OptimalResponse
from tplrepro.validation import check_level

__all__ = ["release_conditional_response", "release_optimal_response"]


def release_conditional_response(setting, epsilon: float, rng: np.random.Generator) -> Release:
    """Conditional randomised response as published (Theorem 4 of [3]).

    With probability e^-epsilon the output is drawn from the belief, else it is the truth.

    Parameters
    ----------
    setting : Setting
    epsilon : float > 0, the budget that the formula is given, nats
    rng : numpy.random.Generator

    Returns
    -------
    Release; all N users are targets; the counts are unbiased
    """
    level = check_level(epsilon, "epsilon")
    lie, truth = np.exp(-level), -np.expm1(-level)
    draws = rng.random((2, *setting.paths.shape))
    beliefs = np.tile(setting.adversary.initial, (setting.n_users, 1))
    matrix = setting.adversary.transitions.toarray()
    told, counts = np.empty(setting.present.shape), np.empty(setting.counts.shape)
    for t in range(setting.horizon):
        drawn = _draw(beliefs, draws[0, :, t])
        outputs = np.where(draws[1, :, t] < lie, drawn, setting.paths[:, t])
        hit = outputs[:, None] == np.arange(setting.n_cells)
        likelihood = lie * (beliefs * hit).sum(axis=1, keepdims=True) + truth * hit
        told[:, t] = np.log(likelihood)
        counts[t] = (hit - lie * beliefs).sum(axis=0) / truth
        beliefs = _step(beliefs, likelihood, matrix)
    return Release(told, counts, None)


def release_optimal_response(setting, epsilon: float, rng: np.random.Generator) -> Release:
    """The exact optimum of problem (15) of [3] under Hamming distance.

    Users with the same outputs so far share a belief, and a response. It answers with few cells only, so that there are
    no unbiased counts. Parameters as for `release_conditional_response`.
    """
    mechanism = OptimalResponse(epsilon)
    draws = rng.random(setting.paths.shape)
    matrix = setting.adversary.transitions.toarray()
    histories, group = setting.adversary.initial[None], np.zeros(setting.n_users, dtype=np.intp)
    told = np.empty(setting.present.shape)
    for t in range(setting.horizon):
        responses = [mechanism.response(belief) for belief in histories]
        inputs, which = np.unique(group * setting.n_cells + setting.paths[:, t], return_inverse=True)
        rows = np.stack([responses[h].row(x) for h, x in _divided(inputs, setting.n_cells)])
        outputs = _draw(rows[which], draws[:, t])
        different, group = np.unique(group * setting.n_cells + outputs, return_inverse=True)
        parent = different // setting.n_cells
        likelihood = np.stack([responses[h].column(y) for h, y in _divided(different, setting.n_cells)])
        with np.errstate(divide="ignore"):
            told[:, t] = np.log(likelihood)[group]
        histories = _step(histories[parent], likelihood, matrix)
    return Release(told, None, None)


def _divided(codes: np.ndarray, n: int):
    """History and cell of each code."""
    return zip(*(part.tolist() for part in np.divmod(codes, n)), strict=True)


def _draw(distributions: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A cell from each of the distributions (m, n), by inversion of uniform numbers (m,)."""
    cumulative = np.cumsum(distributions, axis=1)
    return (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(axis=1).clip(max=distributions.shape[1] - 1)


def _step(beliefs: np.ndarray, likelihood: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The beliefs about the next cell, (m, n), after outputs of these likelihoods (m, n); Eq. (13) of [3]."""
    weights = beliefs * likelihood
    following = weights / weights.sum(axis=1, keepdims=True) @ matrix
    return following / following.sum(axis=1, keepdims=True)
