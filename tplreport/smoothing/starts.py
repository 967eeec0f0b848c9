"""What is known of the counts of the first time: the law of the chain, and the total.

The law may be that of another chain than the people's. The first noisy counts that are seen say by
how much: the covariance of the start is multiplied by the factor of their largest likelihood. One
factor for the start and all later moves would let a wrong start spoil all that follows.
"""

from __future__ import annotations
from dataclasses import dataclass

import numpy as np

from tplreport.smoothing.chain_over_time import ChainOverTime
from tplreport.smoothing.model import CountModel
from tplrepro.display import format_number
from tplrepro.validation import check_positive

FACTORS = 2.0 ** np.arange(40)
#: The largest variance of a start over that of the noise; more would drown in rounding.
LARGEST = 1e12
#: Standard deviations of the total that is estimated from the first counts over those of their
#: noise, so that it counts next to nothing, and over the total where some states are hidden.
VAGUE = 10.0
OF_HIDDEN = 0.3
#: Standard deviations from the mean sum of the noisy counts at which a total is refused.
CONTRADICTED = 4.0


@dataclass(frozen=True)
class Total:
    """The number of people, with its standard deviation: 0 where it is known."""

    mean: float
    error: float


def chain_model(
    values: np.ndarray, variances: np.ndarray, chain: ChainOverTime, total: float | None
) -> CountModel:
    """The counts of all states of a chain, from noisy ones of the columns, (T, k) each; ValueError
    for a total that they contradict."""
    shape = (len(values), chain.law.size)
    of_states = np.zeros(shape)
    of_states[:, chain.places] = values
    variances_of_states = np.full(shape, np.inf)
    variances_of_states[:, chain.places] = variances
    first = _first_seen(variances)
    law = chain.law_at(first)
    if total is None:
        known = _total(of_states[first], variances_of_states[first], law, chain.has_hidden)
    else:
        known = Total(check_positive(total, "total", "leave it out"), 0.0)
        if not chain.has_hidden:
            _check_total(known.mean, values, variances)
    factor = _factor_of_start(of_states[first], variances_of_states[first], law, known)
    return CountModel(
        of_states,
        variances_of_states,
        chain.steps,
        known.mean * chain.law,
        _covariance(chain.law, known, factor),
        has_total=total is not None,
    )


def walk_model(values: np.ndarray, variances: np.ndarray) -> CountModel:
    """The same counts (T, k) without a chain: at first each is about as large as the others."""
    first = _first_seen(variances)
    seen = variances[first] < np.inf
    n = values.shape[1]
    mean = max(float(values[first, seen].mean()), 1.0)
    variance = 4.0 * mean**2 + VAGUE**2 * float(variances[first, seen].mean())
    return CountModel(values, variances, [], np.full(n, mean), variance * np.eye(n))


def _first_seen(variances: np.ndarray) -> int:
    times = np.flatnonzero((variances < np.inf).any(axis=1))
    if times.size == 0:
        raise ValueError(
            "noisy counts must hold at least one that was published, found none; give some"
        )
    return int(times[0])


def _total(values: np.ndarray, variances: np.ndarray, law: np.ndarray, has_hidden: bool) -> Total:
    """The total that the first counts (n,) show, so vaguely that they count once."""
    seen = variances < np.inf
    share = min(float(law[seen].sum()), 1.0)
    noise = np.sqrt(variances[seen].sum())
    if share <= 1e-6:
        raise ValueError(
            "the first counts must be of states that can be reached, found that their law is 0; "
            "give total=, or another initial="
        )
    mean = max(values[seen].sum(), noise) / share
    error = VAGUE * (noise + np.sqrt(mean * share * (1.0 - share))) / share
    if has_hidden:
        error += OF_HIDDEN * mean
    return Total(mean, error)


def _covariance(law: np.ndarray, total: Total, factor: float) -> np.ndarray:
    """That of multinomial counts, times a factor, and of their total."""
    rates = total.mean * law + 1.0
    among_states = np.diag(rates) - np.outer(rates, rates) / rates.sum()
    return factor * among_states + total.error**2 * np.outer(law, law)


def _factor_of_start(
    values: np.ndarray, variances: np.ndarray, law: np.ndarray, total: Total
) -> float:
    """The factor, 1 or more, that makes the first noisy counts (n,) likeliest."""
    seen = np.flatnonzero(variances < np.inf)
    errors = values[seen] - total.mean * law[seen]
    largest = LARGEST * variances[seen].min() / (total.mean * law + 1.0).max()
    log_likelihoods = []
    for factor in FACTORS[FACTORS <= max(largest, 1.0)]:
        covariance = _covariance(law, total, factor)[np.ix_(seen, seen)]
        covariance[np.diag_indices(seen.size)] += variances[seen]
        log_determinant = np.linalg.slogdet(covariance)[1]
        surprise = errors @ np.linalg.solve(covariance, errors)
        log_likelihoods.append(-0.5 * (log_determinant + surprise))
    return float(FACTORS[np.argmax(log_likelihoods)])


def _check_total(total: float, values: np.ndarray, variances: np.ndarray) -> None:
    """ValueError for a total that is not that of the noisy counts."""
    is_whole = (variances < np.inf).all(axis=1)
    if not is_whole.any():
        return
    sums = values[is_whole].sum(axis=1)
    weights = 1.0 / variances[is_whole].sum(axis=1)
    mean = float((weights * sums).sum() / weights.sum())
    error = float(1.0 / np.sqrt(weights.sum()))
    if abs(mean - total) > CONTRADICTED * error:
        raise ValueError(
            f"total must be the sum of all counts at all times, found {total:g}, but the sums of "
            f"the noisy counts are {mean:.0f} ± {format_number(error)} in the mean; leave it out"
        )
