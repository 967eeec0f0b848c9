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
from dataclasses import dataclass
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
    covariance : array-like (T, T), or LinearGaussianSeries
        A model takes O(T) time unless the noise is (T, T).
    noise : float, array-like (T,) or (T, T), or LinearGaussianSeries
        A variance > 0, one for each time (inf: no release), the noise's covariance, or its model.
    change : float > 0
        The distance of the two values that the outputs must not distinguish.

    Returns
    -------
    ndarray (T,)
        The mu of mu-GDP at each time.

    Raises
    ------
    ValueError
        For covariances that are not symmetric and positive semidefinite, values or noise without
        variance, other shapes, or a change that is not positive.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 5)
    >>> gaussian_series_leakage(series, 4.0, 1.0).round(6).tolist()
    [0.856698, 0.931272, 0.955187, 0.931272, 0.856698]
    >>> like_the_series = 4.0 * series.covariance
    >>> gaussian_series_leakage(series, like_the_series, 1.0).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5]
    """
    change = check_level(change, "change")
    return change * np.sqrt(compute_information(covariance, noise))


def gaussian_series_limit(
    series: LinearGaussianSeries, noise: LinearGaussianSeries | float, change: float
) -> float:
    """The mu of a value in the middle of an endless stationary series: no series, however long,
    leaks more.

    It is the fixed point of the Riccati equation.

    Parameters
    ----------
    series : LinearGaussianSeries
        A stationary one, whose horizon does not matter.
    noise : float or LinearGaussianSeries
        A variance > 0, or a stationary model.
    change : float > 0
        The distance of the two values that the outputs must not distinguish.

    Returns
    -------
    float
        The mu of mu-GDP.

    Raises
    ------
    ValueError
        If the series is not stationary, has no variance, or changes so slowly that the equation
        cannot be solved to 10 digits; or a number is out of range.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 1)
    >>> round(gaussian_series_limit(series, 4.0, 1.0), 6)
    1.188966
    """
    change = check_level(change, "change")
    if not isinstance(series, LinearGaussianSeries):
        kind = type(series).__name__
        raise ValueError(
            f"a limit needs a LinearGaussianSeries, found {kind}; give LinearGaussianSeries(...)"
        )
    joint = _join_states(series, noise, 1)
    _check_stationary(joint)
    if joint.F.size > 1:
        return change * sqrt(_limit_by_riccati(joint))
    scale = float(joint.c[0]) ** 2
    _check_variance(scale * float(joint.P[0, 0]))
    limit = _scalar_limit(
        a=float(joint.F[0, 0]),
        innovation=scale * float(joint.Q[0, 0]),
        noise=float(joint.variances[0]),
    )
    return change * sqrt(limit)


@dataclass(frozen=True)
class _JointSeries:
    """The joint state s of series and noise, and independent noise beside it.

    s_{t+1} = F s_t + N(0, Q), s_1 ~ N(0, P); the value is c . s_t, and the output H . s_t plus
    noise of the variance `variances[t]`.
    """

    F: np.ndarray  # (d, d)
    Q: np.ndarray  # (d, d)
    H: np.ndarray  # (d,)
    c: np.ndarray  # (d,)
    P: np.ndarray  # (d, d)
    variances: np.ndarray  # (T,)


@dataclass(frozen=True)
class _Update:
    """One step of the Kalman filter."""

    filtered: np.ndarray  # the covariance of the state given the outputs so far, (d, d)
    explained: np.ndarray  # what the output explains of the covariance before it, (d, d)
    closed: np.ndarray  # F (1 - gain H), (d, d)
    output_variance: float  # given the outputs before
    beside: np.ndarray  # filtered @ c, (d,)


@dataclass(frozen=True)
class _Variances:
    """The variance of a value that all outputs explain, and the one that remains."""

    explained: float
    remaining: float

    @property
    def information(self) -> float:
        """1 / Var(x_t | outputs) - 1 / Var(x_t)."""
        prior_variance = self.remaining + self.explained
        return self.explained / self.remaining / prior_variance


def _check_stationary(joint: _JointSeries) -> None:
    F = joint.F
    radius = spectral_radius(F)
    following = F @ joint.P @ F.T + joint.Q
    moved = _relative_change(joint.P, following)
    if radius >= 1.0 or moved > 1e-9:
        raise ValueError(
            f"a limit needs a stationary series, found an eigenvalue of modulus {radius:.9g} and a "
            f"covariance that at first changes by a share of {moved:.3g}; "
            "give a transition with eigenvalues below 1 and the covariance that it leaves as it is"
        )


def _limit_by_riccati(joint: _JointSeries) -> float:
    """The information about a value in the middle of an endless series, for any state."""
    from scipy.linalg import solve_discrete_are

    F = joint.F
    variance = joint.variances[0]
    outputs = joint.H[:, None]
    try:
        P = solve_discrete_are(F.T, outputs, joint.Q, [[variance]])
    except ValueError as failure:  # LinAlgError, or eigenvalues that cannot be told apart
        raise ValueError(
            f"the Riccati equation must have a solution, found none ({failure}); add noise"
        ) from None
    for _ in range(2):  # a step of Newton's method, and how far another one would go
        update = _update_filter(P, joint, variance)
        following = F @ update.filtered @ F.T + joint.Q
        residual = following - P
        step, _ = stationary_covariance(update.closed, residual)
        P = P + step
    newly_explained = F @ update.explained @ F.T
    explained, unsure = stationary_covariance(F, newly_explained)
    of_value = np.outer(joint.H, joint.H)
    of_one_output = of_value / update.output_variance
    future, lost = stationary_covariance(update.closed.T, of_one_output)
    c = joint.c
    all_explained = explained + update.explained
    variances = _split_variance(update.beside, all_explained, future, joint)
    E = variances.explained
    V = variances.remaining
    ahead = F @ update.beside
    # twice the share of mu that rounding of E and of V may change
    share_of_E = c @ unsure @ c / E * V / (V + E)
    error_of_future = abs(ahead @ lost @ ahead)
    rounding = 2.0**-52 * (c @ update.beside)
    share_of_V = 2.0 * (error_of_future + rounding) / V
    share_of_mu = abs(share_of_E) + share_of_V
    last_step = _relative_change(P - step, P)
    error = max(last_step, share_of_mu)
    if not error <= LIMIT_ERROR:
        raise ValueError(
            f"the Riccati equation must be solved to {LIMIT_ERROR:g}, "
            f"found an error of about {error:.3g}; "
            "the series hardly forgets: take gaussian_series_leakage of a long one"
        )
    return variances.information


def compute_information(covariance: Any, noise: Any) -> np.ndarray:
    """1 / Var(x_t | outputs) - 1 / Var(x_t), (T,), of a series and noise as in
    `gaussian_series_leakage`."""
    if not isinstance(covariance, LinearGaussianSeries):
        return _dense_information(check_covariance(covariance, "covariance"), noise)
    if not isinstance(noise, LinearGaussianSeries) and np.ndim(noise) == 2:
        return _dense_information(covariance.covariance, noise)
    joint = _join_states(covariance, noise, covariance.horizon)
    if joint.F.size > 1:
        try:
            return _smoothed_information(joint)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"variances of values and noise are too far apart for doubles ({error}); add noise"
            ) from None
    scale = float(joint.c[0]) ** 2
    return _scalar_information(
        a=float(joint.F[0, 0]),
        innovation=scale * float(joint.Q[0, 0]),
        variance=scale * float(joint.P[0, 0]),
        noise=joint.variances,
    )


def _check_noise(noise: Any, T: int) -> np.ndarray:
    """A noise variance, one for each time, or a covariance, as (T,) or (T, T)."""
    if isinstance(noise, LinearGaussianSeries):
        noise = noise.covariance
    values = as_numbers(noise, "noise must be variances or a covariance", "give numbers")
    if values.ndim == 0:
        values = np.full(T, values)
    if values.shape not in ((T,), (T, T)):
        raise ValueError(
            f"noise must have shape (), ({T},) or ({T}, {T}), found {values.shape}; "
            "give one variance, one for each time, or the covariance"
        )
    variances = values
    if values.ndim == 2:
        variances = np.diagonal(values)
    out_of_range = variances[~(variances > 0.0)]
    if out_of_range.size:
        raise ValueError(
            f"noise must have variances greater than 0, found {out_of_range[0]:g}; "
            "give sigma^2, or inf where nothing is released"
        )
    if values.ndim == 1:
        return values
    return check_covariance(values, "noise")


def _check_variance(least: float) -> None:
    if not least > 0.0:
        raise ValueError(
            f"values must have a variance greater than 0, found {least:g}; "
            "leave out constant values"
        )


def _join_states(series: LinearGaussianSeries, noise: Any, T: int) -> _JointSeries:
    """The joint state of the series and of noise that is a series, too; or the series with the
    variances of independent noise at T times."""
    from scipy.linalg import block_diag

    if not isinstance(noise, LinearGaussianSeries):
        return _JointSeries(
            F=series.transition,
            Q=series.innovation,
            H=series.value,
            c=series.value,
            P=series.initial,
            variances=_check_noise(noise, T),
        )
    if noise.horizon < T:
        raise ValueError(
            f"noise must last for the series' horizon {T}, found {noise.horizon}; give that horizon"
        )
    return _JointSeries(
        F=block_diag(series.transition, noise.transition),
        Q=block_diag(series.innovation, noise.innovation),
        H=np.concatenate((series.value, noise.value)),
        c=np.concatenate((series.value, np.zeros(noise.value.size))),
        P=block_diag(series.initial, noise.initial),
        variances=np.zeros(T),
    )


@dataclass(frozen=True)
class Regression:
    """E(x_t | outputs) = weights[:, t] . outputs, and the variances (T,) that it explains and
    leaves."""

    weights: np.ndarray  # (T, T)
    explained: np.ndarray
    remaining: np.ndarray


def regress_values(K: np.ndarray, noise: np.ndarray) -> Regression:
    """The regression of each value on all outputs; neither variance is a difference.

    Parameters
    ----------
    K : ndarray (T, T)
        The covariance of the values.
    noise : ndarray (T, T) or (T,)
        The covariance of the noise, or variances, inf without a release.

    Returns
    -------
    Regression
        In O(T^3).

    Raises
    ------
    ValueError
        If the covariance of the outputs is not positive definite.
    """
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    if noise.ndim == 1:
        kept = np.flatnonzero(np.isfinite(noise))
        released = np.diag(noise[kept])
    else:
        kept = np.arange(len(K))
        released = noise
    weights = np.zeros(K.shape)
    explained = np.zeros(len(K))
    if kept.size:
        try:
            of_outputs = K[np.ix_(kept, kept)] + released
            root = cholesky(of_outputs, lower=True)
        except LinAlgError as error:
            raise ValueError(
                f"outputs must have a positive definite covariance ({error}); add noise"
            ) from None
        whitened = solve_triangular(root, K[kept], lower=True)
        weights[kept] = solve_triangular(root, whitened, lower=True, trans=1)
        explained = np.sum(whitened**2, axis=0)
    residual = np.eye(len(K)) - weights
    weights_kept = weights[kept]
    noise_of_estimate = released @ weights_kept
    of_noise = np.sum(weights_kept * noise_of_estimate, axis=0)
    of_values = np.sum(residual * (K @ residual), axis=0)
    remaining = of_values + of_noise
    return Regression(weights, explained, remaining)


def _dense_information(K: np.ndarray, noise: Any) -> np.ndarray:
    noise = _check_noise(noise, len(K))
    variances = np.diagonal(K)
    _check_variance(variances.min())
    fit = regress_values(K, noise)
    return fit.explained / (fit.remaining * variances)


def _scalar_information(
    a: float, innovation: float, variance: float, noise: np.ndarray
) -> np.ndarray:
    """The information (T,) about each value x_t = a x_{t-1} + innovation, of all outputs: of those
    up to t, plus that of later ones.

    `innovation` and `variance`, of x_0, are variances; `noise` (T,) are those of the outputs.
    """
    _check_variance(variance)
    present = (1.0 / noise).tolist()
    past = _scalar_past(a, innovation, variance, present)
    future = _scalar_future(a, innovation, present)
    of_later = np.array(future) - present
    return np.array(past) + of_later


def _scalar_past(a: float, innovation: float, variance: float, present: list) -> list:
    """The information (T,) of the outputs up to each time, from that of each output, `present`
    (T,), and the variances of the innovation and of the first value."""
    past = present[:1]
    for of_output in present[1:]:
        following = a * a * variance + innovation
        # the regression of x_{t-1} on x_t
        slope = a * variance / following
        rest = variance * innovation / following
        before = past[-1]
        passed_on = slope * slope * before / (1.0 + rest * before)
        past.append(of_output + passed_on)
        variance = following
    return past


def _scalar_future(a: float, innovation: float, present: list) -> list:
    """The information (T,) of the outputs from each time on, from that of each output, `present`
    (T,), and the variance of the innovation."""
    squared = a * a
    from_end = present[-1:]
    for of_output in present[-2::-1]:
        after = from_end[-1]
        passed_back = squared * after / (1.0 + innovation * after)
        from_end.append(of_output + passed_back)
    return from_end[::-1]


def _scalar_limit(a: float, innovation: float, noise: float) -> float:
    """The information 2 I - 1/noise in the middle, where I = 1/noise + a^2 I / (1 + innovation
    I)."""
    present = 1.0 / noise
    signal_to_noise = innovation * present
    forgotten = (1.0 - a) * (1.0 + a) - signal_to_noise
    root = sqrt(forgotten * forgotten + 4.0 * innovation * present)
    if forgotten > 0.0:
        side = 2.0 * present / (forgotten + root)
    else:
        side = (root - forgotten) / (2.0 * innovation)
    return 2.0 * side - present


@dataclass(frozen=True)
class _FilterStep:
    """An update, and what all outputs so far explain of the covariance of the state, (d, d)."""

    update: _Update
    explained: np.ndarray


def _smoothed_information(joint: _JointSeries) -> np.ndarray:
    """For any state: Kalman filter, then the backward recursion of de Jong (1989), each until it
    settles."""
    return _smooth_backwards(joint, _filter_forwards(joint))


def _filter_forwards(joint: _JointSeries) -> list[_FilterStep]:
    """The steps of the Kalman filter; those after the last are like it."""
    is_constant = np.ptp(joint.variances) == 0.0
    F = joint.F
    P = joint.P
    explained = np.zeros_like(P)
    steps: list[_FilterStep] = []
    change = np.inf
    for variance in joint.variances.tolist():
        _check_variance(joint.c @ (P + explained) @ joint.c)
        update = _update_filter(P, joint, variance)
        steps.append(_FilterStep(update, explained + update.explained))
        following = F @ update.filtered @ F.T + joint.Q
        following_explained = F @ (explained + update.explained) @ F.T
        last_change = change
        change_of_rest = _relative_change(P, following)
        change_of_explained = _relative_change(explained, following_explained)
        change = max(change_of_rest, change_of_explained)
        P = following
        explained = following_explained
        if is_constant and last_change <= change < SETTLED:
            break
    return steps


def _smooth_backwards(joint: _JointSeries, steps: list[_FilterStep]) -> np.ndarray:
    """The information (T,) of all outputs about each value, in order of time, computed from the
    last back.

    Of the state, `known` (d, d) is the information of later outputs, and `future` (d, d) the same
    given the outputs before them (de Jong, 1989).
    """
    noise = joint.variances
    explained = np.empty(noise.size)
    remaining = np.empty(noise.size)
    future = np.zeros_like(joint.P)
    known = np.zeros_like(joint.P)
    moved = np.inf
    t = noise.size - 1
    while t >= 0:
        step = steps[min(t, len(steps) - 1)]
        update = step.update
        variances = _split_variance(update.beside, step.explained, future, joint)
        explained[t] = variances.explained
        remaining[t] = variances.remaining
        if noise[t] > 0.0:  # independent noise: no difference of variances, which may lose digits
            remaining[t] = _remaining_variance(update, known, joint)
            known = _information_before(known, noise[t], joint)
        following = _future_before(update, future, joint)
        last_moved = moved
        moved = _relative_change(future, following)
        if t >= len(steps) and last_moved <= moved < SETTLED:
            explained[len(steps) : t] = explained[t]
            remaining[len(steps) : t] = remaining[t]
            t = len(steps)
        future = following
        t -= 1
    variances_of_values = remaining + explained
    return explained / remaining / variances_of_values


def _remaining_variance(update: _Update, known: np.ndarray, joint: _JointSeries) -> float:
    """The variance of a value that remains given all outputs, from the filter's update at its time
    and the information `known` (d, d) of later outputs."""
    unit = np.eye(joint.H.size)
    shrunk = unit + update.filtered @ known
    beside = np.linalg.solve(shrunk, update.beside)
    return float(joint.c @ beside)


def _information_before(known: np.ndarray, variance: float, joint: _JointSeries) -> np.ndarray:
    """The information (d, d) about the state a step before an output with independent noise of a
    variance, of this output and of later ones, which tell `known` (d, d)."""
    unit = np.eye(joint.H.size)
    of_value = np.outer(joint.H, joint.H)
    seen = known + of_value / variance
    blurred = unit + seen @ joint.Q
    passed_back = np.linalg.solve(blurred, seen @ joint.F)
    return joint.F.T @ passed_back


def _future_before(update: _Update, future: np.ndarray, joint: _JointSeries) -> np.ndarray:
    """The information (d, d) of an output and later ones given those before, by the recursion of de
    Jong (1989); `future` (d, d) is that of the later ones."""
    of_value = np.outer(joint.H, joint.H)
    of_output = of_value / update.output_variance
    of_later = update.closed.T @ future @ update.closed
    return of_output + of_later


def _update_filter(P: np.ndarray, joint: _JointSeries, variance: float) -> _Update:
    """The Kalman filter's update, by an output with noise of a variance, of P (d, d), the
    covariance of the state given earlier outputs."""
    H = joint.H
    ahead = P @ H
    of_value = float(H @ ahead)
    output_variance = of_value + variance
    if not output_variance > 0.0:
        raise ValueError(
            "outputs must have a variance greater than 0 given those before, "
            f"found {output_variance:g}; add noise"
        )
    gain = ahead / output_variance
    rest = np.eye(H.size) - np.outer(gain, H)
    of_noise = min(variance, LARGEST) * np.outer(gain, gain)
    filtered = rest @ P @ rest.T + of_noise
    if variance > 0.0:
        # With independent noise H is c, and this no difference.
        beside = ahead / (1.0 + of_value / variance)
    else:
        beside = filtered @ joint.c
    explained = np.outer(gain, ahead)
    closed = joint.F @ rest
    return _Update(filtered, explained, closed, output_variance, beside)


def _split_variance(
    beside: np.ndarray, explained: np.ndarray, future: np.ndarray, joint: _JointSeries
) -> _Variances:
    """The variance of a value that all outputs explain, and the one that remains.

    `beside` (d,) is the filtered covariance times c, `explained` (d, d) what outputs so far explain
    of the state's covariance, and `future` (d, d) the information of later ones.
    """
    c = joint.c
    ahead = joint.F @ beside
    later = float(ahead @ future @ ahead)
    before = float(c @ beside)
    if not later <= (1.0 - LEAST_SHARE) * before:
        raise ValueError(
            f"a value must keep more than {LEAST_SHARE:g} of its variance from later outputs, "
            f"found {1.0 - later / before:.3g}; "
            "give its covariance as a matrix, or more noise"
        )
    earlier = float(c @ explained @ c)
    return _Variances(explained=earlier + later, remaining=before - later)


def _relative_change(before: np.ndarray, after: np.ndarray) -> float:
    size = max(abs(after).max(), 1e-300)
    difference = abs(after - before).max()
    return float(difference / size)
