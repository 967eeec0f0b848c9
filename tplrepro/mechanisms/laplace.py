"""Laplace noise: density exp(-|x| / scale) / (2 scale), mean square 2 scale^2, on each coordinate by itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import as_numbers, check_entries, check_level


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Laplace noise with scale sensitivity / epsilon.

    Attributes
    ----------
    scale : float or ndarray, >= 0, broadcast against the noise; noise of scale 0 is 0

    Examples
    --------
    >>> noise = LaplaceNoise(2.0)
    >>> noise.log_density([0.0, 3.0]).round(6).tolist()
    [-1.386294, -2.886294]
    >>> noise.mean_square, noise.sample(2, np.random.default_rng(0)).round(6).tolist()
    (8.0, [0.640199, -1.233953])
    """

    scale: float | np.ndarray

    def __post_init__(self):
        scale = as_numbers(self.scale, "a scale must be a number", "give sensitivity / epsilon")
        check_entries(scale, "scales")
        vars(self)["scale"] = scale if scale.ndim else float(scale)

    @property
    def mean_square(self) -> float | np.ndarray:
        """The variance, since the mean is 0."""
        return 2 * self.scale**2

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Noise of shape `size`; the draws from `rng` do not depend on the scale."""
        return rng.laplace(size=size) * self.scale

    def log_density(self, noise: ArrayLike) -> np.ndarray:
        """Logarithm of the density of each number; for scale 0 that of a point mass, 0 at 0 and -inf elsewhere."""
        distance, scale = np.abs(noise), np.asarray(self.scale, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = -distance / scale - np.log(2 * scale)
        return np.where(scale > 0, spread, np.where(distance == 0, 0.0, -np.inf))[()]

    def log_ratio(self, values: ArrayLike, shift: ArrayLike = 1.0) -> np.ndarray:
        """The log-likelihood ratio of each value as `shift` plus noise and as noise alone; scale > 0.

        >>> LaplaceNoise(0.5).log_ratio([2.0, 0.5, -7.0]).tolist()
        [2.0, 0.0, -2.0]
        """
        return (np.abs(values) - np.abs(np.subtract(values, shift))) / self.scale

    def log_cdf(self, values: ArrayLike) -> np.ndarray:
        """log Pr(X <= value), accurate in both tails; log Pr(X > value) is that of the negative value."""
        z = np.asarray(values) / self.scale
        tail = np.log(0.5) - np.abs(z)
        return np.where(z < 0, tail, np.log1p(-np.exp(tail)))[()]


def event_level_budgets(strategy: Any, scale: ArrayLike, sensitivity: float = 1.0) -> np.ndarray:
    """The event-level budgets, in nats, of a linear mechanism: a matrix times the series, plus Laplace noise.

    These are the `epsilons` of `temporal_privacy_leakage` and of the other functions of leakage, which hold
    for every mechanism in terms of its event-level budgets.

    Parameters
    ----------
    strategy : array-like or scipy.sparse matrix (R, T), a row for each of R published answers
        The identity publishes each number, a lower triangle of ones their running totals.
    scale : float > 0 or array-like (R,), the scale of each answer's noise
    sensitivity : float > 0, by how much the number of one time changes with the data of that time
        For a vector of numbers, which all go through the same matrix, in the L1 norm.

    Returns
    -------
    ndarray (T,): sensitivity times the sum over answers r of abs(strategy[r, t]) / scale[r]

    Examples
    --------
    >>> event_level_budgets(np.tril(np.ones((4, 4))), 16.0, sensitivity=2.0).tolist()
    [0.5, 0.375, 0.25, 0.125]
    """
    matrix = strategy if hasattr(strategy, "tocsr") else as_numbers(strategy, "strategy must be numbers", "give rows")
    if matrix.ndim != 2:
        raise ValueError(f"strategy must have shape (R, T), found {matrix.shape}; give a row for each answer")
    scales = as_numbers(scale, "scale must be numbers above 0", "give one for all answers, or one for each")
    if scales.shape not in ((), matrix.shape[:1]) or not ((scales > 0.0) & (scales < np.inf)).all():
        raise ValueError(
            f"scale must be above 0 and finite, one or {matrix.shape[0]} of them, found {scales}; leave out other rows"
        )
    return check_level(sensitivity, "sensitivity") * ((1.0 / np.broadcast_to(scales, matrix.shape[:1])) @ abs(matrix))
