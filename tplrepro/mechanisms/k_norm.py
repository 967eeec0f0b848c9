"""K-norm noise: density ~ exp(-epsilon ||z||_K) on the span of a symmetric convex body K (Eq. (1)
of [5]).

K is the union of the simplices that 0 spans with each facet; a uniform point of K is a uniform
point of a simplex chosen with probability proportional to its volume. The noise is r u with u
uniform in K and r of Gamma distribution with shape d + 1 and scale 1/epsilon (Hardt and Talwar
2010). Sampling needs no random walk.
"""

from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import RngLike, as_generator, check_level

#: Relative widening of a body, or of a scale, that covers the rounding of its norms.
SLACK = 1e-10


def uniform_points(body: Any, size: int, *, rng: RngLike) -> np.ndarray:
    """Independent uniform points of a body as in `KNormNoise`, (size, D).

    >>> from tplrepro.dphmm import cross_polytope
    >>> uniform_points(cross_polytope(2, radius=3), 2, rng=0).round(3).tolist()
    [[-2.884, 0.012], [0.661, 0.741]]
    """
    rng = as_generator(rng)
    chosen = np.searchsorted(
        np.cumsum(body.cone_volumes)[:-1], rng.random(size) * body.volume, side="right"
    )
    # Exponentials divided by their sum are uniform weights of the vertices 0, w_1, ..., w_d.
    weights = rng.standard_exponential((size, body.dimension + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("sk,skd->sd", weights[:, 1:], body.facet_vertices[chosen])


@dataclass(frozen=True)
class KNormNoise:
    """Noise of density exp(-epsilon ||z||_K) / (Gamma(d + 1) vol(K / epsilon)), with K widened by
    its slack.

    On a segment it is Laplace noise along it:

    >>> from tplrepro.dphmm import SensitivityHull
    >>> noise = KNormNoise(SensitivityHull([[3, 4]]), epsilon=0.5)
    >>> noise.log_density([[0, 0], [6, 8], [0, 1]]).round(6).tolist()
    [-2.995732, -3.995732, -inf]
    >>> round(noise.mean_square, 6)
    200.0
    >>> noise.sample(1, rng=0).round(6).tolist()
    [[10.960664, 14.614219]]
    """

    body: Any  # K, a `SensitivityHull` of any dimension d in R^D
    epsilon: float  # > 0, nats

    def __post_init__(self) -> None:
        check_level(self.epsilon, "epsilon")

    @property
    def mean_square(self) -> float:
        """E||z||_2^2: E r^2 = (d + 1)(d + 2) / epsilon^2 of the Gamma radius, times that of a point
        of K."""
        d, widened = self.body.dimension, (1 + self.body.slack) ** 2
        return float(
            widened * (d + 1) * (d + 2) * np.trace(self.body.second_moment()) / self.epsilon**2
        )

    def sample(self, size: int, *, rng: RngLike) -> np.ndarray:
        """Independent draws, (size, D)."""
        rng = as_generator(rng)
        radius = rng.gamma(self.body.dimension + 1, 1 / self.epsilon, size)
        return (1 + self.body.slack) * radius[:, None] * uniform_points(self.body, size, rng=rng)

    def log_density(self, noise: ArrayLike) -> np.ndarray:
        """Log density of noise (..., D) with respect to Lebesgue measure on the span; -inf off
        it."""
        d = self.body.dimension
        log_normalizer = (
            lgamma(d + 1)
            + np.log(self.body.volume)
            - d * np.log(self.epsilon / (1 + self.body.slack))
        )
        return -self.epsilon * self.body.norm(noise) - log_normalizer
