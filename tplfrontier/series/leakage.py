"""Exact leakage of a normal series that is released with normal noise (mu-GDP of Dong, Roth, Su,
JRSS B 2022).

The values x_1..x_T of a person are normal with covariance K, and x + noise is released. Given x_t,
all outputs are normal with a mean linear in x_t and a covariance that does not depend on it: x_t
and x_t + change are exactly mu_t-GDP apart, mu_t^2 = change^2 (1 / Var(x_t | outputs) - 1 /
Var(x_t)).

`information` is mu_t^2 for a change of 1. In an AR(1) series with correlation rho and independent
noise it adds up as BPL + FPL - epsilon do: an information I about a neighbouring value contributes
rho^2 I / (1 + (1 - rho^2) Var(x) I), the counterpart of L(alpha), and a noise variance r
contributes 1/r.
"""

from __future__ import annotations
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.series.state_space import (
    LinearGaussianSeries,
    check_covariance,
    spectral_radius,
    stationary_covariance,
)
from tplrepro.validation import LARGEST, as_numbers, check_level

LEAST_SHARE = 1e-8  # a smaller share of a variance, left after later outputs, has lost its digits
LIMIT_ERROR = 1e-10  # relative, of the covariance and the variances that a limit comes from
# a recursion has settled when its changes stop shrinking below this share of its values
SETTLED = 1e-12


def gaussian_series_leakage(
    covariance: LinearGaussianSeries | ArrayLike,
    noise: LinearGaussianSeries | ArrayLike,
    change: float,
) -> np.ndarray:
    """The mu-GDP of each value of a normal series from all outputs together, (T,).

    The adversary knows the covariances only. `gaussian_delta`, `gaussian_epsilon` convert mu.

    Parameters
    ----------
    covariance : array-like (T, T), or LinearGaussianSeries, which takes O(T) time unless the noise is (T, T)
    noise : float, array-like (T,) or (T, T), or LinearGaussianSeries
        A variance > 0, one for each time (inf: no release), the noise's covariance, or its model.
    change : float > 0, the distance of the two values that the outputs must not distinguish

    ValueError for covariances that are not symmetric and positive semidefinite, values or noise
    without variance, other shapes, or a change that is not positive.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 5)
    >>> gaussian_series_leakage(series, 4.0, 1.0).round(6).tolist()
    [0.856698, 0.931272, 0.955187, 0.931272, 0.856698]
    >>> gaussian_series_leakage(series, 4.0 * series.covariance, 1.0).round(6).tolist()  # noise like the series itself
    [0.5, 0.5, 0.5, 0.5, 0.5]
    """
    return check_level(change, "change") * np.sqrt(information(covariance, noise))


def gaussian_series_limit(
    series: LinearGaussianSeries, noise: LinearGaussianSeries | float, change: float
) -> float:
    """The mu of a value in the middle of an endless stationary series: no series, however long,
    leaks more.

    Arguments as in `gaussian_series_leakage`, the noise of one variance or stationary; the horizons
    do not matter. It is the fixed point of the Riccati equation. ValueError also where the series
    is not stationary, or changes so slowly that the equation cannot be solved to 10 digits.

    >>> round(gaussian_series_limit(LinearGaussianSeries.autoregressive(0.9, 1), 4.0, 1.0), 6)
    1.188966
    """
    from scipy.linalg import solve_discrete_are

    change = check_level(change, "change")
    if not isinstance(series, LinearGaussianSeries):
        kind = type(series).__name__
        raise ValueError(
            f"a limit needs a LinearGaussianSeries, found {kind}; give LinearGaussianSeries(...)"
        )
    F, Q, H, c, prior, variances = _joint(series, noise, 1)
    moved = _change(prior, F @ prior @ F.T + Q)
    if spectral_radius(F) >= 1.0 or moved > 1e-9:
        raise ValueError(
            f"a limit needs a stationary series, found an eigenvalue of modulus {spectral_radius(F):.9g} and a "
            f"covariance that at first changes by a share of {moved:.3g}; give a transition with eigenvalues below 1 "
            "and the covariance that it leaves as it is"
        )
    if F.size == 1:
        scale = float(c[0]) ** 2
        _check_variance(scale * float(prior[0, 0]))
        return change * sqrt(
            _scalar_limit(float(F[0, 0]), scale * float(Q[0, 0]), float(variances[0]))
        )
    try:
        P = solve_discrete_are(F.T, H[:, None], Q, [[variances[0]]])
    except ValueError as failure:  # LinAlgError, or eigenvalues that cannot be told apart
        raise ValueError(
            f"the Riccati equation must have a solution, found none ({failure}); add noise"
        ) from None
    for _ in range(2):  # a step of Newton's method, and how far another one would go
        filtered, gained, closed, S, beside = _updated(P, F, H, variances[0], c)
        step, _ = stationary_covariance(closed, F @ filtered @ F.T + Q - P)
        P = P + step
    explained, unsure = stationary_covariance(F, F @ gained @ F.T)
    future, lost = stationary_covariance(closed.T, np.outer(H, H) / S)
    E, V = _variances(beside, explained + gained, F, future, c)
    ahead = F @ beside  # twice the share of mu that rounding of E and of V may change
    shares = (
        c @ unsure @ c / E * V / (V + E),
        2.0 * (abs(ahead @ lost @ ahead) + 2.0**-52 * (c @ beside)) / V,
    )
    error = max(_change(P - step, P), abs(shares[0]) + shares[1])
    if not error <= LIMIT_ERROR:
        raise ValueError(
            f"the Riccati equation must be solved to {LIMIT_ERROR:g}, found an error of about {error:.3g}; "
            "the series hardly forgets: take gaussian_series_leakage of a long one"
        )
    return change * sqrt(E / V / (V + E))


def information(covariance: Any, noise: Any) -> np.ndarray:
    """1 / Var(x_t | outputs) - 1 / Var(x_t), (T,), of a series and noise as in
    `gaussian_series_leakage`."""
    if not isinstance(covariance, LinearGaussianSeries):
        return _dense_information(check_covariance(covariance, "covariance"), noise)
    if not isinstance(noise, LinearGaussianSeries) and np.ndim(noise) == 2:
        return _dense_information(covariance.covariance, noise)
    F, Q, H, c, initial, variances = _joint(covariance, noise, covariance.horizon)
    if F.size > 1:
        try:
            return _smoothed_information(F, Q, H, c, initial, variances)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"variances of values and noise are too far apart for doubles ({error}); add noise"
            ) from None
    scale = float(c[0]) ** 2
    return _scalar_information(
        float(F[0, 0]), scale * float(Q[0, 0]), scale * float(initial[0, 0]), variances
    )


def _checked_noise(noise: Any, T: int) -> np.ndarray:
    """A noise variance, one for each time, or a covariance, as (T,) or (T, T)."""
    noise = noise.covariance if isinstance(noise, LinearGaussianSeries) else noise
    values = as_numbers(noise, "noise must be variances or a covariance", "give numbers")
    if values.ndim == 0:
        values = np.full(T, values)
    if values.shape not in ((T,), (T, T)):
        raise ValueError(
            f"noise must have shape (), ({T},) or ({T}, {T}), found {values.shape}; give one variance, one for each "
            "time, or the covariance"
        )
    variances = values if values.ndim == 1 else np.diagonal(values)
    if not (variances > 0.0).all():
        least = variances[~(variances > 0.0)][0]
        raise ValueError(
            f"noise must have variances greater than 0, found {least:g}; give sigma^2, or inf where nothing is released"
        )
    return values if values.ndim == 1 else check_covariance(values, "noise")


def _check_variance(least: float) -> None:
    if not least > 0.0:
        raise ValueError(
            f"values must have a variance greater than 0, found {least:g}; leave out constant values"
        )


def _joint(series: LinearGaussianSeries, noise: Any, T: int) -> tuple:
    """F, Q, H, c, P of the joint state of series and noise, and the variances (T,) of independent
    noise."""
    from scipy.linalg import block_diag

    parts = series.transition, series.innovation, series.value, series.value, series.initial
    if not isinstance(noise, LinearGaussianSeries):
        return *parts, _checked_noise(noise, T)
    if noise.horizon < T:
        raise ValueError(
            f"noise must last for the series' horizon {T}, found {noise.horizon}; give that horizon"
        )
    F, Q, P = (
        block_diag(getattr(series, name), getattr(noise, name))
        for name in ("transition", "innovation", "initial")
    )
    c = np.concatenate((series.value, np.zeros(noise.value.size)))
    return F, Q, np.concatenate((series.value, noise.value)), c, P, np.zeros(T)


def regression(K: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights (T, T) of E(x_t | outputs) in column t, and the variances (T,) that they explain and
    leave.

    O(T^3); the noise is a covariance or variances, inf without a release. Neither variance is a
    difference.
    """
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    kept = np.flatnonzero(np.isfinite(noise)) if noise.ndim == 1 else np.arange(len(K))
    weights, explained = np.zeros(K.shape), np.zeros(len(K))
    released = np.diag(noise[kept]) if noise.ndim == 1 else noise
    if kept.size:
        try:
            root = cholesky(K[np.ix_(kept, kept)] + released, lower=True)
        except LinAlgError as error:
            raise ValueError(
                f"outputs must have a positive definite covariance ({error}); add noise"
            ) from None
        whitened = solve_triangular(root, K[kept], lower=True)
        weights[kept] = solve_triangular(root, whitened, lower=True, trans=1)
        explained = np.sum(whitened**2, axis=0)
    residual = np.eye(len(K)) - weights
    of_noise = np.sum(weights[kept] * (released @ weights[kept]), axis=0)
    return weights, explained, np.sum(residual * (K @ residual), axis=0) + of_noise


def _dense_information(K: np.ndarray, noise: Any) -> np.ndarray:
    noise = _checked_noise(noise, len(K))
    _check_variance(np.diagonal(K).min())
    _, explained, remaining = regression(K, noise)
    return explained / (remaining * np.diagonal(K))


def _scalar_information(
    a: float, innovation: float, variance: float, noise: np.ndarray
) -> np.ndarray:
    """The information (T,) for a state of one number: of the outputs up to t, plus that of later
    ones."""
    _check_variance(variance)
    present = (1.0 / noise).tolist()
    past = present[:1]
    for e in present[1:]:
        following = a * a * variance + innovation
        # of x_{t-1} on x_t
        slope, rest = a * variance / following, variance * innovation / following
        past.append(e + slope * slope * past[-1] / (1.0 + rest * past[-1]))
        variance = following
    future, squared = present[-1:], a * a
    for e in present[-2::-1]:
        future.append(e + squared * future[-1] / (1.0 + innovation * future[-1]))
    return np.array(past) + (np.array(future)[::-1] - present)


def _scalar_limit(a: float, innovation: float, noise: float) -> float:
    """The information 2 I - 1/noise in the middle, where I = 1/noise + a^2 I / (1 + innovation
    I)."""
    present = 1.0 / noise
    forgotten = (1.0 - a) * (1.0 + a) - innovation * present
    root = sqrt(forgotten * forgotten + 4.0 * innovation * present)
    side = (
        2.0 * present / (forgotten + root)
        if forgotten > 0.0
        else (root - forgotten) / (2.0 * innovation)
    )
    return 2.0 * side - present


def _smoothed_information(F, Q, H, c, P, noise: np.ndarray) -> np.ndarray:
    """For any state: Kalman filter, then the backward recursion of de Jong (1989), each until it
    settles."""
    T, constant, unit = noise.size, np.ptp(noise) == 0.0, np.eye(H.size)
    explained, steps, change = np.zeros_like(P), [], np.inf
    for variance in noise.tolist():
        _check_variance(c @ (P + explained) @ c)
        filtered, gained, closed, S, beside = _updated(P, F, H, variance, c)
        steps.append((filtered, explained + gained, closed, S, beside))
        following = F @ filtered @ F.T + Q, F @ (explained + gained) @ F.T
        last, change = change, max(_change(P, following[0]), _change(explained, following[1]))
        P, explained = following
        if constant and last <= change < SETTLED:
            break
    E, V, change, t = np.empty(T), np.empty(T), np.inf, T - 1
    future, known = np.zeros_like(P), np.zeros_like(P)
    while t >= 0:
        filtered, gained, closed, S, beside = steps[min(t, len(steps) - 1)]
        E[t], V[t] = _variances(beside, gained, F, future, c)
        if noise[t] > 0.0:  # independent noise: no difference of variances, which may lose digits
            V[t] = c @ np.linalg.solve(unit + filtered @ known, beside)
            seen = known + np.outer(H, H) / noise[t]
            known = F.T @ np.linalg.solve(unit + seen @ Q, seen @ F)
        following = np.outer(H, H) / S + closed.T @ future @ closed
        last, change = change, _change(future, following)
        if t >= len(steps) and last <= change < SETTLED:
            E[len(steps) : t], V[len(steps) : t] = E[t], V[t]
            t = len(steps)
        future = following
        t -= 1
    return E / V / (V + E)


def _updated(P: np.ndarray, F: np.ndarray, H: np.ndarray, variance: float, c: np.ndarray) -> tuple:
    """The filtered covariance, what an output explains of it, F (1 - gain H), the output's
    variance, filtered @ c."""
    ahead = P @ H
    S = float(H @ ahead) + variance
    if not S > 0.0:
        raise ValueError(
            f"outputs must have a variance greater than 0 given those before, found {S:g}; add noise"
        )
    gain = ahead / S
    rest = np.eye(H.size) - np.outer(gain, H)
    filtered = rest @ P @ rest.T + min(variance, LARGEST) * np.outer(gain, gain)
    # With independent noise H is c, and this no difference.
    beside = ahead / (1.0 + float(H @ ahead) / variance) if variance > 0.0 else filtered @ c
    return filtered, np.outer(gain, ahead), F @ rest, S, beside


def _variances(beside, explained, F, future, c) -> tuple[float, float]:
    """The variance of a value that all outputs explain, and the one that remains; beside = filtered
    @ c."""
    ahead = F @ beside
    later = float(ahead @ future @ ahead)
    before = float(c @ beside)
    if not later <= (1.0 - LEAST_SHARE) * before:
        raise ValueError(
            f"a value must keep more than {LEAST_SHARE:g} of its variance from later outputs, found "
            f"{1.0 - later / before:.3g}; give its covariance as a matrix, or more noise"
        )
    return float(c @ explained @ c) + later, before - later


def _change(before: np.ndarray, after: np.ndarray) -> float:
    return float(abs(after - before).max() / max(abs(after).max(), 1e-300))
