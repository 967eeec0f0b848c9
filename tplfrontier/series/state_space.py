"""Gaussian series: linear state spaces with normal shocks, such as autoregressions."""

from __future__ import annotations
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import FrozenArrays, as_numbers, check_horizon, check_level


@dataclass(frozen=True)
class LinearGaussianSeries(FrozenArrays):
    """x_t = value . s_t of a hidden state s_{t+1} = transition s_t + N(0, innovation), s_1 ~ N(0,
    initial).

    >>> LinearGaussianSeries.autoregressive(0.5, 3, variance=2.0).covariance.tolist()
    [[2.0, 1.0, 0.5], [1.0, 2.0, 1.0], [0.5, 1.0, 2.0]]
    """

    transition: np.ndarray  # (d, d)
    innovation: np.ndarray  # (d, d)
    value: np.ndarray  # (d,)
    initial: np.ndarray  # (d, d)
    horizon: int  # T >= 1

    def __post_init__(self) -> None:
        d = np.size(self.value)
        transition = _check_shape(self.transition, (d, d), "transition")
        innovation = _check_shape(self.innovation, (d, d), "innovation")
        innovation = check_covariance(innovation, "innovation")
        initial = _check_shape(self.initial, (d, d), "initial")
        initial = check_covariance(initial, "initial")
        value = _check_shape(self.value, (d,), "value")
        object.__setattr__(self, "transition", transition)
        object.__setattr__(self, "innovation", innovation)
        object.__setattr__(self, "initial", initial)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "horizon", check_horizon(self.horizon))
        super().__post_init__()

    @classmethod
    def autoregressive(cls, coefficients: ArrayLike, horizon: int, variance: float = 1.0) -> Self:
        """The stationary series x_t = sum of coefficients[k] x_{t-1-k} + innovation.

        Parameters
        ----------
        coefficients : float or array-like (d,)
            A single one is the correlation of neighbours.
        horizon : int >= 1
            The number of times T.
        variance : float > 0, optional
            Of each value.

        Returns
        -------
        LinearGaussianSeries
            Its state holds the last d values.

        Raises
        ------
        ValueError
            If no stationary series has the coefficients, or if roots near the unit circle leave
            less than 6 digits of the variance.
        """
        a = np.atleast_1d(
            as_numbers(coefficients, "coefficients must be real numbers", "give one or a list")
        )
        variance = check_level(variance, "variance")
        transition = _companion_matrix(a)
        # the covariance of a shock to the newest number
        unit = np.diag(np.arange(a.size) == 0).astype(float)
        radius = spectral_radius(transition)
        is_clear = radius < 1.0
        stationary = unit
        if is_clear and a.size > 1:
            stationary, error = stationary_covariance(transition, unit)
            is_clear = abs(error).max() <= 1e-6 * abs(stationary).max()
        if not is_clear:
            raise ValueError(
                "coefficients must belong to a clearly stationary series, "
                f"found {a.tolist()} with roots up to {radius:.9g}; give roots further below 1, "
                "or for AR(1) a correlation greater than -1 and less than 1"
            )
        if a.size == 1:
            innovation = variance * (1.0 - a) * (1.0 + a) * unit
            initial = variance * unit
        else:
            scale = variance / stationary[0, 0]
            innovation = scale * unit
            initial = scale * (stationary + stationary.T) / 2.0
        return cls(
            transition=transition,
            innovation=innovation,
            value=unit[0],
            initial=initial,
            horizon=horizon,
        )

    @property
    def covariance(self) -> np.ndarray:
        """Cov(x_s, x_t), (T, T)."""
        T = self.horizon
        ahead = np.empty((T, self.value.size))
        ahead[0] = self.value
        for k in range(1, T):
            ahead[k] = ahead[k - 1] @ self.transition  # value . transition^k
        covariance = np.zeros((T, T))
        state = self.initial
        for t in range(T):
            with_later_values = ahead[: T - t] @ (state @ self.value)
            covariance[t:, t] = with_later_values
            covariance[t, t:] = with_later_values
            state = self.transition @ state @ self.transition.T + self.innovation
        return covariance


def _check_shape(given: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Finite real numbers of a shape, as an array; errors call them `name`."""
    numbers = as_numbers(given, f"{name} must be real numbers", "give an array")
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} must be finite numbers of shape {shape}, found shape {numbers.shape}; "
            "give a row for each number of the state"
        )
    return numbers


def _companion_matrix(coefficients: np.ndarray) -> np.ndarray:
    """The transition of the last values; of no stationary series where there are no coefficients or
    not finite ones."""
    from scipy.linalg import companion

    is_list = coefficients.ndim == 1 and coefficients.size > 0
    if is_list and np.isfinite(coefficients).all():
        return companion(np.r_[1.0, -coefficients])
    return np.eye(1)


def stationary_covariance(
    transition: np.ndarray, innovation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """X = F X F^T + Q, and about how far rounding may have moved its entries.

    Parameters
    ----------
    transition : ndarray (d, d)
        F.
    innovation : ndarray (d, d)
        Q.

    Returns
    -------
    covariance : ndarray (d, d)
        X.
    error : ndarray (d, d)
        What a second solution, of the residual, adds.

    Raises
    ------
    ValueError
        If the roots of F hardly differ from 1.
    """
    from scipy.linalg import solve_discrete_lyapunov

    try:
        # the second solution says more than SciPy's condition number
        with warnings.catch_warnings(action="ignore"):
            X = solve_discrete_lyapunov(transition, innovation)
            residual = transition @ X @ transition.T + innovation - X
            return X, solve_discrete_lyapunov(transition, residual)
    # on some processors, for roots that hardly differ from 1
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"a series must be clearly stationary ({error}); give roots further below 1"
        ) from None


def spectral_radius(matrix: np.ndarray) -> float:
    """The largest modulus of the eigenvalues of a matrix."""
    return float(abs(np.linalg.eigvals(matrix)).max())


def check_covariance(given: Any, name: str = "covariance") -> np.ndarray:
    """A covariance (n, n), symmetric and positive semidefinite within 1e-9, as an exactly symmetric
    array."""
    K = as_numbers(given, f"{name} must be a covariance of real numbers", "give an array (n, n)")
    is_square = K.ndim == 2 and K.shape[0] == K.shape[1]
    if not is_square or K.size == 0 or not np.isfinite(K).all():
        raise ValueError(
            f"{name} must be a finite (n, n) matrix, found shape {K.shape}; give Cov(x_s, x_t)"
        )
    symmetric = (K + K.T) / 2.0
    least = np.linalg.eigvalsh(symmetric)[0]
    tolerance = 1e-9 * abs(K).max()
    asymmetry = abs(K - symmetric).max()
    if asymmetry > tolerance or least < -tolerance:
        raise ValueError(
            f"{name} must be symmetric and positive semidefinite, found asymmetry "
            f"{2 * asymmetry:.3g} and eigenvalue {least:.3g}; "
            "estimate all entries from the same series"
        )
    return symmetric
