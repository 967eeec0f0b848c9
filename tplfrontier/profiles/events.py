"""Read an event of `dp_accounting`: the formula of its privacy profile, or the events that it
consists of.

Convention: the profile of an event compares any two values of one user at one time point, and a
value with no value. A noise multiplier is therefore the noise's scale divided by the largest
distance between the answers for two values (L2 for Gaussian, L1 for Laplace noise). This gives the
curves of `dp_accounting` for ADD_OR_REMOVE_ONE: its REPLACE_ONE doubles the distance, which would
count the change twice. Randomised response has the curves for REPLACE_ONE.
"""

from abc import ABC, abstractmethod
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


class Curve(ABC):
    """The privacy profile delta(e^x) of an event as a function of losses x (nats), rounded up.

    It is 0 from the loss `largest` on, and below 1e-17 from the loss `reach` on.
    """

    def __init__(self, largest: float, reach: float):
        self.largest = largest
        self.reach = reach

    @abstractmethod
    def delta(self, x: np.ndarray) -> np.ndarray:
        """delta(e^x) at each loss x >= 0."""


class PureCurve(Curve):
    """The largest profile of all (epsilon, delta)-DP mechanisms: randomised response with two
    answers, which fails with probability delta."""

    def __init__(self, epsilon: float, failure: float = 0.0):
        largest = inf
        if failure == 0.0:
            largest = epsilon
        super().__init__(largest, reach=epsilon)
        self._epsilon = epsilon
        self._failure = failure
        true_answer = 1.0 / (exp(-epsilon) + 1.0)
        self._true_answer = true_answer * (1.0 + ROUNDING)

    def delta(self, x: np.ndarray) -> np.ndarray:
        """delta + (1 - delta) (1 - e^(x - epsilon))+ Pr(true answer)."""
        excess = _positive_excess(x, self._epsilon)
        of_answers = (1.0 - self._failure) * excess * self._true_answer
        return self._failure + of_answers


class GaussianCurve(Curve):
    """The profile of two normal laws of variance 1 with means `shift` apart."""

    def __init__(self, shift: float):
        reach = shift * (shift / 2 + 8.5)
        super().__init__(largest=inf, reach=reach)
        self._shift = shift

    def delta(self, x: np.ndarray) -> np.ndarray:
        """The delta of mu-GDP with mu = shift."""
        return np.asarray(gaussian_delta(self._shift, x))


class LaplaceCurve(Curve):
    """The profile of Laplace noise of scale 1 / epsilon on two answers at distance 1."""

    def __init__(self, epsilon: float):
        super().__init__(largest=epsilon, reach=epsilon)
        self._epsilon = epsilon

    def delta(self, x: np.ndarray) -> np.ndarray:
        """(1 - e^((x - epsilon) / 2))+."""
        half_of_excess = (x - self._epsilon) / 2
        exact = np.maximum(-np.expm1(half_of_excess), 0.0)
        return exact * (1.0 + ROUNDING)


class ZeroConcentratedCurve(Curve):
    """The bound of (xi, rho)-zCDP: the least e^((a-1)(xi + rho a - x)) (1 - 1/a)^a / (a - 1) over
    orders a.

    Proposition 12 of Canonne, Kamath, Steinke (NeurIPS 2020).
    """

    def __init__(self, rho: float, xi: float):
        deviation = sqrt(40.0 * rho)
        reach = xi + rho + 2.0 * deviation
        super().__init__(largest=inf, reach=reach)
        self._rho = rho
        self._xi = xi

    def delta(self, x: np.ndarray) -> np.ndarray:
        """The least over 400 orders, and at most 1."""
        most = 100.0 * (1.0 + 1.0 / sqrt(self._rho))
        orders_less_one = np.geomspace(0.01, most, 400)
        smallest = np.zeros_like(x)
        for order_less_one in orders_less_one.tolist():
            logarithm = self._log_bound(x, order_less_one)
            smallest = np.minimum(smallest, logarithm)
        bound = np.exp(smallest)
        return bound * (1.0 + ROUNDING)

    def _log_bound(self, x: np.ndarray, order_less_one: float) -> np.ndarray:
        """The logarithm of the bound of one order a, from a - 1."""
        order = order_less_one + 1.0
        divergence = self._xi + self._rho * order
        from_markov = order_less_one * (divergence - x)
        return from_markov + order * log(order_less_one / order) - log(order_less_one)


class FiniteCurve(Curve):
    """The profile of a mechanism with finitely many losses, which fall, from their masses under the
    first distribution.

    Below the loss l_k, sum_j m_j (1 - e^(x - l_j)) = delta(l_k) + w_k (1 - e^(x - l_k)) over the
    losses l_j >= l_k, with w_k = sum_j m_j e^(l_k - l_j). No sum has a negative term.
    """

    def __init__(self, losses: np.ndarray, masses: np.ndarray):
        largest = float(losses[0])
        super().__init__(largest, reach=largest)
        self._losses = losses
        gaps = np.diff(losses)
        ratios = np.exp(gaps).tolist()
        weights = masses.copy()
        for k, ratio in enumerate(ratios, start=1):
            weights[k] += ratio * weights[k - 1]
        shares = -np.expm1(gaps)
        rises = weights[:-1] * shares
        self._weights = weights
        sums_of_rises = np.cumsum(rises)
        self._deltas = np.concatenate(([0.0], sums_of_rises))
        of_sums = 4.0 * losses.size * 2.0**-52
        self._rounding = 1.0 + ROUNDING + of_sums

    def delta(self, x: np.ndarray) -> np.ndarray:
        """delta(l_k) + w_k (1 - e^(x - l_k)), with l_k the least loss above x."""
        losses_above = np.searchsorted(-self._losses, -x)
        k = np.maximum(losses_above - 1, 0)
        excess = _positive_excess(x, self._losses[k])
        above = self._weights[k] * excess
        exact = self._deltas[k] + above
        return exact * self._rounding


def _positive_excess(x: np.ndarray, loss: float | np.ndarray) -> np.ndarray:
    """(1 - e^(x - loss))+: the share of an output's probability that counts in delta(e^x)."""
    excess = -np.expm1(x - loss)
    return np.maximum(excess, 0.0)


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


def read_event(event: Any) -> Parsed:
    """An event of `dp_accounting`, or a plain epsilon (nats) for any pure-DP mechanism.

    ValueError for other events and for parameters out of range; the message lists the supported
    events.
    """
    is_number = isinstance(event, (int, float, np.number))
    if is_number and not isinstance(event, bool):
        epsilon = check_epsilon(event, "an event's epsilon")
        return PureCurve(as_scalar(epsilon, "an event's epsilon"))
    readers = _readers_of_events()
    reader = readers.get(type(event))
    if reader is None:
        known = ", ".join(kind.__name__ for kind in readers)
        raise ValueError(
            f"an event must be an epsilon, a PrivacyProfile or one of {known}, found {event!r}; "
            "give the epsilon or the PrivacyProfile of its mechanism"
        )
    return reader(event)


def _readers_of_events() -> dict[type, Callable[[Any], Parsed]]:
    with optional_import():
        from dp_accounting import dp_event
    return {
        dp_event.NoOpDpEvent: _read_no_op,
        dp_event.NonPrivateDpEvent: _read_non_private,
        dp_event.GaussianDpEvent: _read_gaussian,
        dp_event.LaplaceDpEvent: _read_laplace,
        dp_event.DiscreteLaplaceDpEvent: _read_discrete_laplace,
        dp_event.RandomizedResponseDpEvent: _read_randomized_response,
        dp_event.ZCDpEvent: _read_zero_concentrated,
        dp_event.ComposedDpEvent: _read_composed,
        dp_event.SelfComposedDpEvent: _read_repeated,
        dp_event.PoissonSampledDpEvent: _read_poisson_sampled,
        dp_event.SampledWithoutReplacementDpEvent: _read_sampled_without_replacement,
    }


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


def _read_no_op(_event: Any) -> Composed:
    return Composed([])


def _read_non_private(_event: Any) -> PureCurve:
    return PureCurve(0.0, failure=1.0)


def _read_gaussian(event: Any) -> GaussianCurve:
    noise = _check_positive(event.noise_multiplier, "noise_multiplier")
    return GaussianCurve(UP / noise)


def _read_laplace(event: Any) -> LaplaceCurve:
    noise = _check_positive(event.noise_multiplier, "noise_multiplier")
    return LaplaceCurve(UP / noise)


def _read_discrete_laplace(event: Any) -> FiniteCurve:
    parameter = _check_positive(event.noise_parameter, "noise_parameter")
    sensitivity = check_horizon(event.sensitivity, "sensitivity")
    # Outputs between the two answers: so far from the first one, and nearer to it.
    distances = np.arange(1, (sensitivity + 1) // 2)
    most_likely = np.tanh(parameter / 2)
    between = most_likely * np.exp(-parameter * distances)
    not_between = 1.0 / (1.0 + exp(-parameter))
    masses = np.append(not_between, between)
    nearer_by = np.append(sensitivity, sensitivity - 2 * distances)
    return FiniteCurve(UP * parameter * nearer_by, masses)


def _read_randomized_response(event: Any) -> Parsed:
    noise = check_probability(event.noise_parameter, "noise_parameter")
    buckets = check_horizon(event.num_buckets, "num_buckets")
    if buckets == 1 or noise == 1.0:
        return Composed([])
    if noise == 0.0:
        return PureCurve(0.0, failure=1.0)
    other_answer = noise / buckets
    true_answer = 1.0 - noise + other_answer
    loss = log1p((1.0 - noise) / other_answer)
    losses = np.array([UP * loss])
    masses = np.array([true_answer])
    return FiniteCurve(losses, masses)


def _read_zero_concentrated(event: Any) -> ZeroConcentratedCurve:
    rho = _check_positive(event.rho, "rho")
    xi = 0.0
    if event.xi:
        xi = _check_positive(event.xi, "xi")
    return ZeroConcentratedCurve(rho, xi)


def _read_composed(event: Any) -> Composed:
    return Composed([(part, 1) for part in event.events])


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
