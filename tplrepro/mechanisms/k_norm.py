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
    """Independent uniform points of a body.

    Parameters
    ----------
    body : SensitivityHull of any dimension in R^D
    size : int
        The number of points.
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for points that nobody can repeat.

    Returns
    -------
    array (size, D)

    Examples
    --------
    >>> from tplrepro.dphmm import cross_polytope
    >>> uniform_points(cross_polytope(2, radius=3), 2, rng=0).round(3).tolist()
    [[-2.884, 0.012], [0.661, 0.741]]
    """
    rng = as_generator(rng)
    cumulative_volumes = np.cumsum(body.cone_volumes)
    bounds = cumulative_volumes[:-1]
    volumes = rng.random(size) * body.volume
    facets = np.searchsorted(bounds, volumes, side="right")
    vertices = body.facet_vertices[facets]
    # Exponentials divided by their sum are uniform weights of the vertices 0, w_1, ..., w_d.
    n_vertices = body.dimension + 1
    weights = rng.standard_exponential((size, n_vertices))
    weights /= weights.sum(axis=1, keepdims=True)
    weights_without_0 = weights[:, 1:]
    return np.einsum("sk,skd->sd", weights_without_0, vertices)


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
    def _widening(self) -> float:
        """By what factor K is widened."""
        return 1 + self.body.slack

    @property
    def mean_square(self) -> float:
        """E||z||_2^2: E r^2 = (d + 1)(d + 2) / epsilon^2 of the Gamma radius, times that of a point
        of K."""
        d = self.body.dimension
        of_point = np.trace(self.body.second_moment())
        for_unit_epsilon = self._widening**2 * (d + 1) * (d + 2) * of_point
        return float(for_unit_epsilon / self.epsilon**2)

    def sample(self, size: int, *, rng: RngLike) -> np.ndarray:
        """Independent draws.

        Parameters
        ----------
        size : int
            The number of draws.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for draws that nobody can repeat.

        Returns
        -------
        array (size, D)
        """
        rng = as_generator(rng)
        shape = self.body.dimension + 1
        scale = 1 / self.epsilon
        radius = rng.gamma(shape, scale, size)
        points = uniform_points(self.body, size, rng=rng)
        return self._widening * radius[:, None] * points

    def log_density(self, noise: ArrayLike) -> np.ndarray:
        """Log density of noise (..., D) with respect to Lebesgue measure on the span; -inf off
        it."""
        # `norm` is that of the widened K, `volume` is K's.
        d = self.body.dimension
        log_volume = np.log(self.body.volume)
        log_scale = d * np.log(self.epsilon / self._widening)
        log_normalizer = lgamma(d + 1) + log_volume - log_scale
        return -self.epsilon * self.body.norm(noise) - log_normalizer
