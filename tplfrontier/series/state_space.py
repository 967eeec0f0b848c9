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
        for name in ("transition", "innovation", "initial", "value"):
            wanted = (d,) if name == "value" else (d, d)
            matrix = as_numbers(
                getattr(self, name), f"{name} must be real numbers", "give an array"
            )
            if matrix.shape != wanted or not np.isfinite(matrix).all():
                raise ValueError(
                    f"{name} must be finite numbers of shape {wanted}, found shape {matrix.shape}; "
                    "give a row for each number of the state"
                )
            if name in ("innovation", "initial"):
                matrix = check_covariance(matrix, name)
            object.__setattr__(self, name, matrix)
        object.__setattr__(self, "horizon", check_horizon(self.horizon))
        super().__post_init__()

    @classmethod
    def autoregressive(cls, coefficients: ArrayLike, horizon: int, variance: float = 1.0) -> Self:
        """The stationary series x_t = sum of coefficients[k] x_{t-1-k} + innovation, of a variance
        > 0.

        A single coefficient is the correlation of neighbours. ValueError if no stationary series
        has them, or if roots near the unit circle leave less than 6 digits of the variance.
        """
        from scipy.linalg import companion

        a = np.atleast_1d(
            as_numbers(coefficients, "coefficients must be real numbers", "give one or a list")
        )
        variance = check_level(variance, "variance")
        # the covariance of a shock to the newest number
        unit = np.diag(np.arange(a.size) == 0).astype(float)
        usable = a.ndim == 1 and a.size > 0 and np.isfinite(a).all()
        transition = companion(np.r_[1.0, -a]) if usable else np.eye(1)
        radius = spectral_radius(transition)
        stationary, is_clear = unit, radius < 1.0
        if is_clear and a.size > 1:
            stationary, error = stationary_covariance(transition, unit)
            is_clear = abs(error).max() <= 1e-6 * abs(stationary).max()
        if not is_clear:
            raise ValueError(
                f"coefficients must belong to a clearly stationary series, found {a.tolist()} with roots up to "
                f"{radius:.9g}; give roots further below 1, or for AR(1) a correlation greater than -1 and less than 1"
            )
        if a.size == 1:
            return cls(
                transition,
                variance * (1.0 - a) * (1.0 + a) * unit,
                unit[0],
                variance * unit,
                horizon,
            )
        scale = variance / stationary[0, 0]
        return cls(
            transition, scale * unit, unit[0], scale * (stationary + stationary.T) / 2.0, horizon
        )

    @property
    def covariance(self) -> np.ndarray:
        """Cov(x_s, x_t), (T, T)."""
        T, state = self.horizon, self.initial
        K, ahead = np.zeros((T, T)), np.empty((T, self.value.size))
        ahead[0] = self.value
        for k in range(1, T):
            ahead[k] = ahead[k - 1] @ self.transition  # value . transition^k
        for t in range(T):
            K[t:, t] = K[t, t:] = ahead[: T - t] @ (state @ self.value)
            state = self.transition @ state @ self.transition.T + self.innovation
        return K


def stationary_covariance(
    transition: np.ndarray, innovation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """X = F X F^T + Q, and about how far rounding may have moved its entries: what a second
    solution adds."""
    from scipy.linalg import solve_discrete_lyapunov

    try:
        # the second solution says more than SciPy's condition number
        with warnings.catch_warnings(action="ignore"):
            X = solve_discrete_lyapunov(transition, innovation)
            return X, solve_discrete_lyapunov(
                transition, transition @ X @ transition.T + innovation - X
            )
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
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0 or not np.isfinite(K).all():
        raise ValueError(
            f"{name} must be a finite (n, n) matrix, found shape {K.shape}; give Cov(x_s, x_t)"
        )
    symmetric = (K + K.T) / 2.0
    least, tolerance = np.linalg.eigvalsh(symmetric)[0], 1e-9 * abs(K).max()
    if abs(K - symmetric).max() > tolerance or least < -tolerance:
        raise ValueError(
            f"{name} must be symmetric and positive semidefinite, found asymmetry "
            f"{2 * abs(K - symmetric).max():.3g} and eigenvalue {least:.3g}; "
            "estimate all entries from the same series"
        )
    return symmetric
