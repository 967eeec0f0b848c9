"""Exact samples from a sensitivity hull K and from the K-norm distribution (Definition 3.3 of [5]).

K is cut into the simplices that 0 spans with each facet, in any dimension; a uniform point is a uniform point of a
simplex chosen by its volume. The density of Eq. (1), proportional to exp(-epsilon ||z||_K), is that of r u with u
uniform in K and r of Gamma distribution with shape d + 1 and scale 1/epsilon (Hardt and Talwar 2010). Shape d + 1, not
d: the norm of u itself has density d t^(d-1), so that ||r u||_K has shape d. No random walk is needed, so there is no
question of convergence.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

import numpy as np

from tplrepro.dphmm.hull import SLACK, SensitivityHull

__all__ = ["k_norm_noise", "uniform_points"]


def uniform_points(hull: SensitivityHull, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent uniform points of K, (size, d).

    Examples
    --------
    >>> from tplrepro.dphmm import cross_polytope
    >>> points = uniform_points(cross_polytope(2, radius=3), 1000, np.random.default_rng(0))
    >>> bool((np.abs(points).sum(axis=1) <= 3 + 1e-9).all())
    True
    """
    chosen = np.searchsorted(np.cumsum(hull.cone_volumes)[:-1], rng.random(size) * hull.volume, side="right")
    # Exponentials divided by their sum are uniform weights of the vertices 0, w_1, ..., w_r.
    weights = rng.standard_exponential((size, hull.dimension + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("sk,skd->sd", weights[:, 1:], hull.facet_vertices[chosen])


def k_norm_noise(hull: SensitivityHull, epsilon: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws of density proportional to exp(-epsilon ||z||_K) on the span of K, (size, d).

    Examples
    --------
    >>> from tplrepro.dphmm import SensitivityHull
    >>> segment = SensitivityHull([[1, 1]])
    >>> noise = k_norm_noise(segment, 1.0, 4, np.random.default_rng(0))
    >>> np.allclose(noise[:, 0], noise[:, 1])
    True
    """
    radius = rng.gamma(hull.dimension + 1, 1 / epsilon, size)
    return (1 + SLACK) * radius[:, None] * uniform_points(hull, size, rng)
