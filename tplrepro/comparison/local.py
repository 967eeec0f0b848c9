"""Local differential privacy: each user perturbs each report by herself, and trusts nobody.

k-ary randomised response, and optimised unary encoding (Wang, Blocki, Li, Jha: Locally Differentially Private Protocols
for Frequency Estimation, USENIX Security 2017), whose error does not grow with the number of cells. A report of budget
epsilon each time; T of them are T epsilon-LDP for the whole sequence.
"""

from __future__ import annotations

import numpy as np

from tplrepro.comparison.release import Release
from tplrepro.validation import check_level

__all__ = ["release_randomized_response", "release_unary_encoding"]


def release_randomized_response(setting, epsilon: float, rng: np.random.Generator) -> Release:
    """k-ary randomised response: the own cell with odds e^epsilon against each other one.

    Parameters
    ----------
    setting : Setting
    epsilon : float > 0, budget of one report, nats
    rng : numpy.random.Generator

    Returns
    -------
    Release; all N users are targets; the counts are unbiased
    """
    level, n = check_level(epsilon, "epsilon"), setting.n_cells
    odds = np.exp(-level)
    truth = -np.expm1(-level) / (1 + (n - 1) * odds)  # else a uniform cell, which may be the own one
    uniform = rng.integers(n, size=setting.paths.shape)
    outputs = np.where(rng.random(setting.paths.shape) < truth, setting.paths, uniform)
    hit = (outputs[..., None] == np.arange(n)).astype(float)
    counts = (hit.sum(axis=0) - setting.n_users * (1 - truth) / n) / truth
    return Release(level * hit, counts, None)


def release_unary_encoding(setting, epsilon: float, rng: np.random.Generator) -> Release:
    """Optimised unary encoding: a bit a cell, the own one kept with probability 1/2, others set with 1/(e^epsilon + 1).

    Parameters and result as for `release_randomized_response`.
    """
    level = check_level(epsilon, "epsilon")
    q = 1 / (np.exp(level) + 1)
    bits = rng.random(setting.present.shape) < np.where(setting.present > 0, 0.5, q)
    told = np.where(bits, np.log(0.5 / q), np.log(0.5 / (1 - q)))
    return Release(told, (bits - q).sum(axis=0) / (0.5 - q), None)
