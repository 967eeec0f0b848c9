"""Laplace noise: density exp(-|x| / scale) / (2 scale), mean square 2 scale^2, in each
coordinate."""

from __future__ import annotations
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import RngLike, as_generator, as_numbers, check_entries, frozen


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Laplace noise with scale sensitivity / epsilon.

    >>> noise = LaplaceNoise(2.0)
    >>> noise.log_density([0.0, 3.0]).round(6).tolist()
    [-1.386294, -2.886294]
    >>> noise.mean_square, noise.sample(2, rng=0).round(6).tolist()
    (8.0, [0.640199, -1.233953])
    """

    scale: float | np.ndarray  # >= 0, broadcast against the noise; noise of scale 0 is 0

    def __post_init__(self):
        scale = as_numbers(self.scale, "a scale must be a number", "give sensitivity / epsilon")
        check_entries(scale, "scales")
        if scale.ndim == 0:
            object.__setattr__(self, "scale", float(scale))
        else:
            object.__setattr__(self, "scale", frozen(scale))

    @property
    def mean_square(self) -> float | np.ndarray:
        """The variance, since the mean is 0."""
        return 2 * self.scale**2

    def sample(self, size: int | tuple[int, ...], *, rng: RngLike) -> np.ndarray:
        """Independent draws, which are proportional to the scale for the same `rng`.

        Parameters
        ----------
        size : int or tuple of int
            The shape of the noise.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for draws that nobody can repeat.

        Returns
        -------
        array of shape `size`

        Raises
        ------
        ValueError
            If `size` does not broadcast against the scale.
        """
        standard = as_generator(rng).laplace(size=size)
        return standard * self.scale

    def log_density(self, noise: ArrayLike) -> np.ndarray:
        """Log density of each number; for scale 0 that of a point mass, 0 at 0 and -inf
        elsewhere."""
        distance = np.abs(_as_floats(noise))
        scale = np.asarray(self.scale, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = -distance / scale
            log_normalizer = np.log(2 * scale)
            of_density = exponent - log_normalizer
        is_zero = distance == 0
        of_point_mass = np.where(is_zero, 0.0, -np.inf)
        log_density = np.where(scale > 0, of_density, of_point_mass)
        return log_density[()]  # a scalar for one number

    def log_ratio(self, values: ArrayLike, shift: ArrayLike = 1.0) -> np.ndarray:
        """The log-likelihood ratio of each value as `shift` plus noise and as noise alone.

        Parameters
        ----------
        values : array-like (...)
            Released values. The scale must be positive.
        shift : array-like
            What one person adds; broadcasts against the values.

        Returns
        -------
        array (...)
            Nats.

        Raises
        ------
        ValueError
            If the values are no real numbers.

        Examples
        --------
        >>> LaplaceNoise(0.5).log_ratio([2.0, 0.5, -7.0]).tolist()
        [2.0, 0.0, -2.0]
        """
        values = _as_floats(values)
        shift = _as_floats(shift)
        distance_to_zero = np.abs(values)
        distance_to_shift = np.abs(np.subtract(values, shift))
        return (distance_to_zero - distance_to_shift) / self.scale

    def log_cdf(self, values: ArrayLike) -> np.ndarray:
        """log Pr(X <= value), accurate in both tails; log Pr(X > value) is that of the negative
        value."""
        numbers = np.asarray(_as_floats(values))
        z = numbers / self.scale
        log_tail = np.log(0.5) - np.abs(z)
        tail = np.exp(log_tail)
        log_rest = np.log1p(-tail)
        log_cdf = np.where(z < 0, log_tail, log_rest)
        return log_cdf[()]


def _as_floats(values: Any) -> Any:
    """Real numbers as floats, as differences of unsigned ones wrap; a pandas object keeps its
    labels."""
    numbers = as_numbers(
        values, "values must be real numbers", "give the noise, or answers with it"
    )
    if hasattr(values, "iloc"):
        return values.astype(float)
    return numbers
