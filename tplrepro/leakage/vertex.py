"""One vertex of the joint hull: its loss, the budget that it leaves, and its supremum over time
(Theorem 11 of [1]).

A vertex is a pair of rows with a set S of columns, given by three sums of non-negative terms: d =
d(S), gap = q(S) - d(S), rest = 1 - q(S). All three are stored, since computing one from the others
would cancel. The printed forms overflow for alpha > 709 and lose digits for small alpha; those
below keep full relative accuracy on [0, 1e6] and beyond. Recursions need one number at a time, for
which `math` is ten times as fast as NumPy; `vertex_losses` serves curves.

In all functions d, gap and rest describe one vertex; leakages and budgets are in nats.
"""

from math import exp, expm1, hypot, inf, log, log1p, nan, sqrt
from typing import NamedTuple

import numpy as np

# Above this, exp() approaches the end of the double range, and e^-alpha matters only beside
# probabilities below 1e-300.
LARGE = 700.0
# Products below this lose digits, or their reciprocals overflow.
SMALL = 1e-290


class Vertex(NamedTuple):
    """d(S), q(S) - d(S) and 1 - q(S) of two rows and a set S of columns."""

    d: float
    gap: float
    rest: float


def vertex_loss(d: float, gap: float, rest: float, alpha: float) -> float:
    """log((q(S) u + 1) / (d(S) u + 1)) with u = e^alpha - 1, Eq. (24) of [1] for one pair and set.

    Parameters
    ----------
    d, gap, rest : float, the vertex: d(S), q(S) - d(S) and 1 - q(S)
    alpha : float >= 0, the leakage at the neighbouring time point, nats

    Returns
    -------
    float, nats, at most alpha

    >>> round(vertex_loss(0.0, 0.2, 0.8, 0.1), 10)  # log(0.2 (e^0.1 - 1) + 1)
    0.0208160191
    >>> vertex_loss(0.0, 1.0, 0.0, 1e6)
    1000000.0
    """
    if gap <= 0.0:
        return 0.0
    if d == 0.0 and rest == 0.0:
        return alpha
    if alpha <= LARGE:
        # with w = e^-alpha u, so that nothing overflows
        w = -expm1(-alpha)
        numerator = gap * w
        denominator = exp(-alpha) + d * w
        loss = log1p(numerator / denominator)
    elif alpha <= 2.0 * LARGE:
        # with e^(alpha/2), which is in range; a sum of logarithms would lose digits
        half = exp(0.5 * alpha)
        numerator = gap * half
        denominator = exp(-0.5 * alpha) + d * half
        loss = log_of_one_and_ratio(numerator, denominator)
    elif d > 0.0:
        loss = log_of_one_and_ratio(gap, d)  # e^-alpha is far below all d
    else:
        loss = log(gap) + alpha
    return min(loss, alpha)


def log_of_one_and_ratio(numerator: float, denominator: float) -> float:
    """log(1 + numerator / denominator) of two numbers above 0, also where the ratio is above all
    doubles."""
    ratio = numerator / denominator
    if ratio < inf:
        return log1p(ratio)
    return log(numerator) - log(denominator)


def vertex_losses(
    d: np.ndarray, gap: np.ndarray, rest: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """`vertex_loss` of arrays of one shape: d(S), q(S) - d(S), 1 - q(S), and alpha in nats; valid
    only where alpha <= LARGE."""
    capped = np.minimum(alpha, LARGE)
    w = -np.expm1(-capped)
    numerator = gap * w
    denominator = np.exp(-capped) + d * w
    loss = np.log1p(numerator / denominator)
    loss = np.minimum(loss, alpha)
    is_never_d = d == 0.0
    is_always_q = rest == 0.0
    is_identity = is_never_d & is_always_q
    return np.where(is_identity, alpha, loss)


def vertex_slope(d: float, gap: float, rest: float, alpha: float) -> float:
    """The derivative of `vertex_loss` in alpha, gap (u + 1) / ((q u + 1) (d u + 1)).

    Parameters
    ----------
    d, gap, rest : float, the vertex: d(S), q(S) - d(S) and 1 - q(S)
    alpha : float > 0, the leakage at the neighbouring time point, nats

    Returns
    -------
    float from 0 to 1

    >>> round(vertex_slope(0.1, 0.7, 0.2, 1.0), 10)
    0.6838068749
    >>> vertex_slope(0.0, 1.0, 0.0, 1e6), vertex_slope(0.1, 0.7, 0.2, 1e6)
    (1.0, 0.0)
    """
    if gap <= 0.0:
        return 0.0
    d_factor = 1.0  # d u + 1
    if alpha <= LARGE:
        d_factor = 1.0 + d * expm1(alpha)
    elif d > 0.0:
        exponent = alpha + log(d)
        d_factor = inf
        if exponent <= LARGE:
            d_factor = 1.0 + exp(exponent)
    q = gap + d
    w = -expm1(-alpha)
    q_factor = q * w + exp(-alpha)  # (q u + 1) / (u + 1)
    slope = gap / q_factor
    slope = slope / d_factor
    return min(slope, 1.0)


def vertex_crossing(d: float, gap: float, next_d: float, next_gap: float) -> float:
    """The alpha at which the next of two neighbouring vertices gives the larger loss.

    Parameters
    ----------
    d, gap, next_d, next_gap : float, d(S) and q(S) - d(S) of both vertices

    Returns
    -------
    float, nats; NaN if products are out of the range of doubles

    >>> round(vertex_crossing(0.2, 0.5, 0.1, 0.4), 6)
    1.466337
    """
    numerator = next_gap * d - gap * next_d
    denominator = gap - next_gap
    inverse = numerator / denominator  # 1 / u
    if inverse > 1e-290:
        u = 1.0 / inverse
        return log1p(u)
    return nan


def vertex_budget(d: float, gap: float, rest: float, alpha: float) -> float:
    """The budget whose supremum is alpha: alpha - L(alpha) for one vertex, without cancellation.

    Parameters
    ----------
    d, gap, rest : float, the vertex: d(S), q(S) - d(S) and 1 - q(S)
    alpha : float >= 0, the supremum, nats

    Returns
    -------
    float, nats

    >>> round(vertex_budget(0.0, 0.8, 0.2, 1.0), 7)
    0.1351603
    """
    q = gap + d
    excess = inf
    if alpha <= LARGE:
        w = -expm1(-alpha)
        d_growth = d * exp(alpha)
        growth = rest + d_growth
        numerator = w * growth
        denominator = exp(-alpha) + q * w
        excess = numerator / denominator
    elif gap > 1e-290 and (d == 0.0 or alpha <= 2.0 * LARGE):
        capped = min(alpha, 2.0 * LARGE)
        half = exp(capped / 2.0)  # as e^alpha is out of range
        d_growth = d * half * half
        excess = (rest + d_growth) / q
    if excess < inf:
        return log1p(excess)
    return alpha - vertex_loss(d, gap, rest, alpha)


def vertex_supremum(d: float, gap: float, rest: float, epsilon: float) -> float:
    """The fixed point of alpha = L(alpha) + epsilon for one vertex (Theorem 11 of [1]).

    u = e^alpha - 1 is the positive root of d u^2 + b u - D = 0 with D = e^epsilon - 1 and b = 1 - q
    + d - D q, in the form that does not cancel: for tiny d the printed one errs on the unsafe side.
    For d = 0 there is a root only if epsilon is strictly below log(1/q).

    Parameters
    ----------
    d, gap, rest : float, the vertex: d(S), q(S) - d(S) and 1 - q(S)
    epsilon : float > 0, the budget of each time point, nats

    Returns
    -------
    float, nats; inf if there is no fixed point

    >>> round(vertex_supremum(0.0, 0.8, 0.2, 0.15), 7)
    1.1922423
    >>> vertex_supremum(0.0, 0.8, 0.2, 0.23)
    inf
    """
    if epsilon > LARGE:
        return _supremum_of_large_budget(d, gap, rest, epsilon)
    q = gap + d
    growth = expm1(epsilon)
    not_in_q = rest + d  # 1 - q + d
    b = not_in_q - growth * q
    if d == 0.0 and b <= 0.0:
        return inf
    if d == 0.0:
        u = growth / b
        return log1p(u)
    product = 2.0 * sqrt(d) * sqrt(growth)
    root = hypot(b, product)
    if b >= 0.0:
        u = 2.0 * growth / (b + root)
        return log1p(u)
    numerator = root - b
    denominator = 2.0 * d
    u = numerator / denominator
    if u < inf:
        return log1p(u)
    return log(numerator) - log(denominator)


def _supremum_of_large_budget(d: float, gap: float, rest: float, epsilon: float) -> float:
    """`vertex_supremum`, nats, by the same equation for u e^-epsilon, since e^epsilon is out of
    range."""
    q = gap + d
    z = exp(-epsilon)
    not_in_q = rest + d  # 1 - q + d
    b = not_in_q * z - q
    if gap == d == 0.0:
        return epsilon
    if d == 0.0:
        return inf
    product = 2.0 * sqrt(d) * sqrt(z)
    root = hypot(b, product)
    if b < 0.0:
        numerator = root - b
        denominator = 2.0 * d
    else:
        numerator = 2.0 * z
        denominator = b + root
    log_of_scaled_u = log(numerator) - log(denominator)
    return epsilon + log_of_scaled_u


def vertex_inverse(d: float, gap: float, rest: float, loss: float) -> float:
    """The alpha at which a vertex gives this loss.

    Parameters
    ----------
    d, gap, rest : float, the vertex: d(S), q(S) - d(S) and 1 - q(S)
    loss : float >= 0, nats

    Returns
    -------
    float, nats; inf if no alpha gives this loss

    >>> round(vertex_inverse(0.1, 0.7, 0.2, vertex_loss(0.1, 0.7, 0.2, 1.0)), 12)
    1.0
    """
    if gap == 0.0:
        return inf
    if loss == 0.0 or d == rest == 0.0:
        return loss
    if loss > LARGE:
        if d == 0.0:
            return loss - log(gap)
        return loss  # too little, which is safe, for d below 1e-300
    w = -expm1(-loss)
    gap_share = gap * exp(-loss)
    if gap_share < SMALL and gap_share < SMALL * w:
        return _inverse_of_small_gap(d, gap, loss)
    denominator = gap_share - d * w
    if denominator <= 0.0:
        return inf
    u = w / denominator
    return log1p(u)


def _inverse_of_small_gap(d: float, gap: float, loss: float) -> float:
    """`vertex_inverse`, nats, where u = e^alpha - 1 is above 1e290 or infinite: log1p(u) is log(u),
    of terms times 2^900."""
    scale = 2.0**900
    w = -expm1(-loss)
    gap_share = gap * scale * exp(-loss)
    denominator = gap_share - d * scale * w
    if denominator <= 0.0:
        return inf
    return log(w) - log(denominator) + 900 * log(2.0)
