"""Read an event of `dp_accounting`: the formula of its privacy profile, or the events that it
consists of.

Convention: the profile of an event compares any two values of one user at one time point, and a
value with no value. A noise multiplier is therefore the noise's scale divided by the largest
distance between the answers for two values (L2 for Gaussian, L1 for Laplace noise). This gives the
curves of `dp_accounting` for ADD_OR_REMOVE_ONE: its REPLACE_ONE doubles the distance, which would
count the change twice. Randomised response has the curves for REPLACE_ONE.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, log1p, sqrt
from typing import Any

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


@dataclass(frozen=True)
class Curve:
    """delta(x), rounded up, of losses x (nats): 0 from `largest` on, and below 1e-17 from `reach`
    on."""

    delta: Callable[[np.ndarray], np.ndarray]
    largest: float
    reach: float


@dataclass(frozen=True)
class Composed:
    """Events that are released together, each with its count."""

    parts: list[tuple[Any, int]]


@dataclass(frozen=True)
class Sampled:
    """An event in which the user takes part with a probability."""

    probability: float
    event: Any


Parsed = Curve | Composed | Sampled


def pure_curve(epsilon: float, delta: float = 0.0) -> Curve:
    """The largest profile of all (epsilon, delta)-DP mechanisms: randomised response that fails
    with delta."""
    weight = 1.0 / (exp(-epsilon) + 1.0)
    rounded_weight = weight * (1.0 + ROUNDING)

    def curve(x: np.ndarray) -> np.ndarray:
        excess = np.maximum(-np.expm1(x - epsilon), 0.0)
        return delta + (1.0 - delta) * excess * rounded_weight

    largest = inf
    if delta == 0.0:
        largest = epsilon
    return Curve(curve, largest, epsilon)


def read_event(event: Any) -> Parsed:
    """An event of `dp_accounting`, or a plain epsilon (nats) for any pure-DP mechanism.

    ValueError for other events and for parameters out of range; the message lists the supported
    events.
    """
    if isinstance(event, (int, float, np.number)) and not isinstance(event, bool):
        epsilon = check_epsilon(event, "an event's epsilon")
        return pure_curve(as_scalar(epsilon, "an event's epsilon"))
    with optional_import():
        from dp_accounting import dp_event

    readers: dict[type, Callable[[Any], Parsed]] = {
        dp_event.NoOpDpEvent: lambda _: Composed([]),
        dp_event.NonPrivateDpEvent: lambda _: pure_curve(0.0, 1.0),
        dp_event.GaussianDpEvent: _read_gaussian,
        dp_event.LaplaceDpEvent: _read_laplace,
        dp_event.DiscreteLaplaceDpEvent: _read_discrete_laplace,
        dp_event.RandomizedResponseDpEvent: _read_randomized_response,
        dp_event.ZCDpEvent: _read_zero_concentrated,
        dp_event.ComposedDpEvent: lambda e: Composed([(part, 1) for part in e.events]),
        dp_event.SelfComposedDpEvent: _read_repeated,
        dp_event.PoissonSampledDpEvent: _read_poisson_sampled,
        dp_event.SampledWithoutReplacementDpEvent: _read_sampled_without_replacement,
    }
    reader = readers.get(type(event))
    if reader is None:
        known = ", ".join(kind.__name__ for kind in readers)
        raise ValueError(
            f"an event must be an epsilon, a PrivacyProfile or one of {known}, found {event!r}; "
            "give the epsilon or the PrivacyProfile of its mechanism"
        )
    return reader(event)


def _check_number(value: Any, name: str) -> float:
    number = as_numbers(value, f"{name} of an event must be a number", "give a float")
    return as_scalar(number, name, "give one")


def _check_positive(value: Any, name: str) -> float:
    value = _check_number(value, name)
    if not 0.0 < value < inf:
        raise ValueError(
            f"{name} of an event must be finite and greater than 0, found {value}; "
            "without noise nothing is hidden: give NonPrivateDpEvent()"
        )
    return value


def _read_gaussian(event: Any) -> Curve:
    shift = UP / _check_positive(event.noise_multiplier, "noise_multiplier")
    reach = shift * (shift / 2 + 8.5)
    return Curve(lambda x: np.asarray(gaussian_delta(shift, x)), inf, reach)


def _read_laplace(event: Any) -> Curve:
    epsilon = UP / _check_positive(event.noise_multiplier, "noise_multiplier")

    def curve(x: np.ndarray) -> np.ndarray:
        return np.maximum(-np.expm1((x - epsilon) / 2), 0.0) * (1.0 + ROUNDING)

    return Curve(curve, epsilon, epsilon)


def _read_discrete_laplace(event: Any) -> Curve:
    parameter = _check_positive(event.noise_parameter, "noise_parameter")
    sensitivity = check_horizon(event.sensitivity, "sensitivity")
    # outputs between the two answers, with a loss above 0
    between = np.arange(1, (sensitivity + 1) // 2)
    outside = 1.0 / (1.0 + exp(-parameter))
    inside = np.tanh(parameter / 2) * np.exp(-parameter * between)
    distances = np.append(sensitivity, sensitivity - 2 * between)
    return _curve_of_losses(UP * parameter * distances, np.append(outside, inside))


def _read_randomized_response(event: Any) -> Parsed:
    noise = check_probability(event.noise_parameter, "noise_parameter")
    buckets = check_horizon(event.num_buckets, "num_buckets")
    if buckets == 1 or noise == 1.0:
        return Composed([])
    if noise == 0.0:
        return pure_curve(0.0, 1.0)
    other = noise / buckets
    same = 1.0 - noise + other
    loss = UP * log1p((1.0 - noise) / other)
    return _curve_of_losses(np.array([loss]), np.array([same]))


def _read_zero_concentrated(event: Any) -> Curve:
    """The least e^((a-1)(xi + rho a - x)) (1 - 1/a)^a / (a - 1) over orders a: the bound for zCDP.

    Proposition 12 of Canonne, Kamath, Steinke (NeurIPS 2020).
    """
    rho = _check_positive(event.rho, "rho")
    xi = 0.0
    if event.xi:
        xi = _check_positive(event.xi, "xi")
    most_excess = 100.0 * (1.0 + 1.0 / sqrt(rho))
    excesses = np.geomspace(0.01, most_excess, 400).tolist()  # a - 1

    def curve(x: np.ndarray) -> np.ndarray:
        smallest = np.zeros_like(x)
        for excess in excesses:
            order = excess + 1.0
            divergence = excess * (xi + rho * order - x)
            exponent = divergence + order * log(excess / order) - log(excess)
            smallest = np.minimum(smallest, exponent)
        return np.exp(smallest) * (1.0 + ROUNDING)

    return Curve(curve, inf, xi + rho + 2.0 * sqrt(40.0 * rho))


def _read_repeated(event: Any) -> Composed:
    return Composed([(event.event, check_horizon(event.count, "count"))])


def _read_poisson_sampled(event: Any) -> Sampled:
    share = check_probability(event.sampling_probability, "sampling_probability")
    return Sampled(share, event.event)


def _read_sampled_without_replacement(event: Any) -> Sampled:
    size = _check_number(event.sample_size, "sample_size")
    everyone = check_horizon(event.source_dataset_size, "source_dataset_size")
    share = check_probability(size / everyone, "sample_size / source_dataset_size")
    return Sampled(share, event.event)


def _curve_of_losses(losses: np.ndarray, masses: np.ndarray) -> Curve:
    """The curve of a mechanism with finitely many losses, which fall, from their masses under the
    first distribution.

    Below the loss l_k, sum_j m_j (1 - e^(x - l_j)) = delta(l_k) + w_k (1 - e^(x - l_k)) over the
    losses l_j >= l_k, with w_k = sum_j m_j e^(l_k - l_j). No sum has a negative term.
    """
    gaps = np.diff(losses)
    weights = masses.copy()
    for k, ratio in enumerate(np.exp(gaps).tolist(), start=1):
        weights[k] += ratio * weights[k - 1]
    steps = weights[:-1] * -np.expm1(gaps)
    deltas = np.concatenate(([0.0], np.cumsum(steps)))
    rounding = 1.0 + ROUNDING + 4.0 * losses.size * 2.0**-52

    def curve(x: np.ndarray) -> np.ndarray:
        k = np.maximum(np.searchsorted(-losses, -x) - 1, 0)  # the least loss above x
        excess = np.maximum(-np.expm1(x - losses[k]), 0.0)
        return (deltas[k] + weights[k] * excess) * rounding

    largest = float(losses[0])
    return Curve(curve, largest, largest)
