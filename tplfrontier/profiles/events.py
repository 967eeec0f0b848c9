"""Read an event of `dp_accounting`: the formula of its privacy profile, or the events that it
consists of.

Convention: the profile of an event compares any two values of one user at one time point, and a
value with no value. A noise multiplier is therefore the noise's scale divided by the largest
distance between the answers for two values (L2 for Gaussian, L1 for Laplace noise). This gives the
curves of `dp_accounting` for ADD_OR_REMOVE_ONE: its REPLACE_ONE doubles the distance, which would
count the change twice. Randomised response has the curves for REPLACE_ONE.
"""

from collections.abc import Callable
from math import exp, inf, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from tplfrontier.profiles.gaussian import gaussian_delta
from tplrepro.lazy import optional_import
from tplrepro.validation import (
    as_numbers,
    as_scalar,
    check_epsilon,
    check_horizon,
    check_probability,
)

# exceeds that of a curve, relative to the larger of the two probabilities that it subtracts
ROUNDING = 2.0**-44
UP = 1.0 + 2.0**-49  # exceeds the rounding of a few operations


class Curve(NamedTuple):
    """delta(x), rounded up, of losses x (nats): 0 from `largest` on, and below 1e-17 from `reach`
    on."""

    delta: Callable[[np.ndarray], np.ndarray]
    largest: float
    reach: float


class Composed(NamedTuple):
    """Events that are released together, each with its count."""

    parts: list[tuple[Any, int]]


class Sampled(NamedTuple):
    """An event in which the user takes part with a probability."""

    probability: float
    event: Any


def pure_curve(epsilon: float, delta: float = 0.0) -> Curve:
    """The largest profile of all (epsilon, delta)-DP mechanisms: randomised response that fails
    with delta."""
    weight = 1.0 / (exp(-epsilon) + 1.0)

    def curve(x: np.ndarray) -> np.ndarray:
        return delta + (1.0 - delta) * np.maximum(-np.expm1(x - epsilon), 0.0) * (
            weight * (1.0 + ROUNDING)
        )

    return Curve(curve, epsilon if delta == 0.0 else inf, epsilon)


def read_event(event: Any) -> Curve | Composed | Sampled:
    """An event of `dp_accounting`, or a plain epsilon (nats) for any pure-DP mechanism.

    ValueError for other events and for parameters out of range; the message lists the supported
    events.
    """
    if isinstance(event, (int, float, np.number)) and not isinstance(event, bool):
        return pure_curve(
            as_scalar(check_epsilon(event, "an event's epsilon"), "an event's epsilon")
        )
    with optional_import():
        from dp_accounting import dp_event

    readers: dict[type, Callable[[Any], Curve | Composed | Sampled]] = {
        dp_event.NoOpDpEvent: lambda _: Composed([]),
        dp_event.NonPrivateDpEvent: lambda _: pure_curve(0.0, 1.0),
        dp_event.GaussianDpEvent: lambda e: _gaussian(
            _positive(e.noise_multiplier, "noise_multiplier")
        ),
        dp_event.LaplaceDpEvent: lambda e: _laplace(
            _positive(e.noise_multiplier, "noise_multiplier")
        ),
        dp_event.DiscreteLaplaceDpEvent: lambda e: _discrete_laplace(
            _positive(e.noise_parameter, "noise_parameter"),
            check_horizon(e.sensitivity, "sensitivity"),
        ),
        dp_event.RandomizedResponseDpEvent: _randomized_response,
        dp_event.ZCDpEvent: lambda e: _zero_concentrated(
            _positive(e.rho, "rho"), _positive(e.xi, "xi") if e.xi else 0.0
        ),
        dp_event.ComposedDpEvent: lambda e: Composed([(part, 1) for part in e.events]),
        dp_event.SelfComposedDpEvent: lambda e: Composed(
            [(e.event, check_horizon(e.count, "count"))]
        ),
        dp_event.PoissonSampledDpEvent: lambda e: Sampled(
            check_probability(e.sampling_probability, "sampling_probability"), e.event
        ),
        dp_event.SampledWithoutReplacementDpEvent: lambda e: Sampled(
            check_probability(
                _number(e.sample_size, "sample_size")
                / check_horizon(e.source_dataset_size, "source_dataset_size"),
                "sample_size / source_dataset_size",
            ),
            e.event,
        ),
    }
    if type(event) not in readers:
        known = ", ".join(kind.__name__ for kind in readers)
        raise ValueError(
            f"an event must be an epsilon, a PrivacyProfile or one of {known}, found {event!r}; "
            "give the epsilon or the PrivacyProfile of its mechanism"
        )
    return readers[type(event)](event)


def _number(value: Any, name: str) -> float:
    return as_scalar(
        as_numbers(value, f"{name} of an event must be a number", "give a float"), name, "give one"
    )


def _positive(value: Any, name: str) -> float:
    value = _number(value, name)
    if not 0.0 < value < inf:
        raise ValueError(
            f"{name} of an event must be finite and greater than 0, found {value}; "
            "without noise nothing is hidden: give NonPrivateDpEvent()"
        )
    return value


def _gaussian(multiplier: float) -> Curve:
    shift = UP / multiplier
    return Curve(lambda x: np.asarray(gaussian_delta(shift, x)), inf, shift * (shift / 2 + 8.5))


def _laplace(multiplier: float) -> Curve:
    epsilon = UP / multiplier

    def curve(x: np.ndarray) -> np.ndarray:
        return np.maximum(-np.expm1((x - epsilon) / 2), 0.0) * (1.0 + ROUNDING)

    return Curve(curve, epsilon, epsilon)


def _of_losses(losses: np.ndarray, masses: np.ndarray) -> Curve:
    """The curve of a mechanism with finitely many losses, which fall, from their masses under the
    first distribution.

    Below the loss l_k, sum_j m_j (1 - e^(x - l_j)) = delta(l_k) + w_k (1 - e^(x - l_k)) over the
    losses l_j >= l_k, with w_k = sum_j m_j e^(l_k - l_j). No sum has a negative term.
    """
    gaps, weight = np.diff(losses), masses.copy()
    for k, ratio in enumerate(np.exp(gaps).tolist(), start=1):
        weight[k] += ratio * weight[k - 1]
    deltas = np.concatenate(([0.0], np.cumsum(weight[:-1] * -np.expm1(gaps))))
    rounding = 1.0 + ROUNDING + 4.0 * losses.size * 2.0**-52

    def curve(x: np.ndarray) -> np.ndarray:
        k = np.maximum(np.searchsorted(-losses, -x) - 1, 0)  # the least loss above x
        return (deltas[k] + weight[k] * np.maximum(-np.expm1(x - losses[k]), 0.0)) * rounding

    return Curve(curve, float(losses[0]), float(losses[0]))


def _discrete_laplace(parameter: float, sensitivity: int) -> Curve:
    # outputs between the two answers, with a loss above 0
    between = np.arange(1, (sensitivity + 1) // 2)
    masses = np.tanh(parameter / 2) * np.exp(-parameter * between)
    losses = UP * parameter * np.append(sensitivity, sensitivity - 2 * between)
    return _of_losses(losses, np.append(1.0 / (1.0 + exp(-parameter)), masses))


def _randomized_response(event: Any) -> Curve | Composed:
    noise = check_probability(event.noise_parameter, "noise_parameter")
    buckets = check_horizon(event.num_buckets, "num_buckets")
    if buckets == 1 or noise == 1.0:
        return Composed([])
    if noise == 0.0:
        return pure_curve(0.0, 1.0)
    same, other = 1.0 - noise + noise / buckets, noise / buckets
    return _of_losses(np.array([UP * log1p((1.0 - noise) / other)]), np.array([same]))


def _zero_concentrated(rho: float, xi: float) -> Curve:
    """The least e^((a-1)(xi + rho a - x)) (1 - 1/a)^a / (a - 1) over orders a: the bound for zCDP.

    Proposition 12 of Canonne, Kamath, Steinke (NeurIPS 2020).
    """
    reach = xi + rho + 2.0 * sqrt(40.0 * rho)

    def curve(x: np.ndarray) -> np.ndarray:
        smallest = np.zeros_like(x)
        for excess in np.geomspace(0.01, 100.0 * (1.0 + 1.0 / sqrt(rho)), 400).tolist():  # a - 1
            order = excess + 1.0
            exponent = excess * (xi + rho * order - x) + order * log(excess / order) - log(excess)
            smallest = np.minimum(smallest, exponent)
        return np.exp(smallest) * (1.0 + ROUNDING)

    return Curve(curve, inf, reach)
