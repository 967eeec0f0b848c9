"""One vertex of the joint hull: its loss, the budget that it leaves, and its supremum over time
(Theorem 11 of [1]).

A vertex is a pair of rows with a set S of columns, given by three sums of non-negative terms: d =
d(S), gap = q(S) - d(S), rest = 1 - q(S). All three are stored, since computing one from the others
would cancel. The printed forms overflow for alpha > 709 and lose digits for small alpha; those
below keep full relative accuracy on [0, 1e6] and beyond. Recursions need one number at a time, for
which `math` is ten times as fast as NumPy; `vertex_losses` serves curves.
"""

from math import exp, expm1, hypot, inf, isnan, log, log1p, nan, sqrt

import numpy as np

# Above this, exp() approaches the end of the double range, and e^-alpha matters only beside
# probabilities below 1e-300.
LARGE = 700.0


def vertex_loss(d: float, gap: float, rest: float, alpha: float) -> float:
    """log((q(S) u + 1) / (d(S) u + 1)) with u = e^alpha - 1, Eq. (24) of [1] for one pair and set;
    nats.

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
        w = -expm1(-alpha)
        loss = log1p(gap * w / (exp(-alpha) + d * w))
    elif d >= 1e-290:
        loss = log1p(gap / d)
    else:
        # d and e^-alpha are both at the end of the double range: scale them (and gap) by 2^900.
        below = (
            900 * log(2.0) - log(d * 2.0**900 + exp(900 * log(2.0) - alpha)) if d > 0.0 else alpha
        )
        exponent = log(gap) + below
        loss = exponent + log1p(exp(-exponent)) if exponent > 0 else log1p(exp(exponent))
    return min(loss, alpha)


def vertex_losses(
    d: np.ndarray, gap: np.ndarray, rest: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """`vertex_loss` of arrays of one shape; valid only where alpha <= LARGE."""
    capped = np.minimum(alpha, LARGE)
    w = -np.expm1(-capped)
    loss = np.minimum(np.log1p(gap * w / (np.exp(-capped) + d * w)), alpha)
    return np.where((d == 0.0) & (rest == 0.0), alpha, loss)


def vertex_slope(d: float, gap: float, rest: float, alpha: float) -> float:
    """The derivative of `vertex_loss` in alpha, gap (u + 1) / ((q u + 1) (d u + 1)), between 0 and
    1.

    >>> round(vertex_slope(0.1, 0.7, 0.2, 1.0), 10)
    0.6838068749
    >>> vertex_slope(0.0, 1.0, 0.0, 1e6), vertex_slope(0.1, 0.7, 0.2, 1e6)
    (1.0, 0.0)
    """
    if gap <= 0.0:
        return 0.0
    if alpha <= LARGE:
        below = 1.0 + d * expm1(alpha)
    else:
        exponent = alpha + log(d) if d > 0.0 else -inf
        below = 1.0 + exp(exponent) if exponent <= LARGE else inf
    return min(gap / ((gap + d) * -expm1(-alpha) + exp(-alpha)) / below, 1.0)


def vertex_crossing(d: float, gap: float, next_d: float, next_gap: float) -> float:
    """The alpha, in nats, at which the next of two neighbouring vertices takes over; NaN if
    products are out of range.

    >>> round(vertex_crossing(0.2, 0.5, 0.1, 0.4), 6)
    1.466337
    """
    inverse = (next_gap * d - gap * next_d) / (gap - next_gap)
    return log1p(1.0 / inverse) if inverse > 1e-290 else nan


def vertex_budget(d: float, gap: float, rest: float, alpha: float) -> float:
    """The budget whose supremum is alpha: alpha - L(alpha) for one vertex, without cancellation;
    nats.

    >>> round(vertex_budget(0.0, 0.8, 0.2, 1.0), 7)
    0.1351603
    """
    excess = inf
    if alpha <= LARGE:
        w = -expm1(-alpha)
        excess = w * (rest + d * exp(alpha)) / (exp(-alpha) + (gap + d) * w)
    elif gap > 1e-290 and (d == 0.0 or alpha <= 2.0 * LARGE):
        half = exp(min(alpha, 2.0 * LARGE) / 2.0)  # as e^alpha is out of range
        excess = (rest + d * half * half) / (gap + d)
    return log1p(excess) if excess < inf else alpha - vertex_loss(d, gap, rest, alpha)


def vertex_supremum(d: float, gap: float, rest: float, epsilon: float) -> float:
    """The fixed point of alpha = L(alpha) + epsilon for one vertex, inf if there is none (Theorem
    11 of [1]); nats.

    u = e^alpha - 1 is the positive root of d u^2 + b u - D = 0 with D = e^epsilon - 1 and b = 1 - q
    + d - D q, in the form that does not cancel: for tiny d the printed one errs on the unsafe side.
    For d = 0 there is a root only if epsilon is strictly below log(1/q).

    >>> round(vertex_supremum(0.0, 0.8, 0.2, 0.15), 7)
    1.1922423
    >>> vertex_supremum(0.0, 0.8, 0.2, 0.23)
    inf
    """
    q = gap + d
    if epsilon <= LARGE:
        growth = expm1(epsilon)
        b = (rest + d) - growth * q
        if d == 0.0:
            return log1p(growth / b) if b > 0.0 else inf
        root = hypot(b, 2.0 * sqrt(d) * sqrt(growth))
        if b >= 0.0:
            return log1p(2.0 * growth / (b + root))
        u = (root - b) / (2.0 * d)
        return log1p(u) if u < inf else log(root - b) - log(2.0 * d)
    # The same equation for u e^-epsilon, since e^epsilon is out of range.
    z = exp(-epsilon)
    b = (rest + d) * z - q
    if d == 0.0:
        return epsilon if gap == 0.0 else inf
    root = hypot(b, 2.0 * sqrt(d) * sqrt(z))
    return epsilon + (log(root - b) - log(2.0 * d) if b < 0.0 else log(2.0 * z) - log(b + root))


def vertex_inverse(d: float, gap: float, rest: float, loss: float) -> float:
    """The alpha at which a vertex gives this loss, inf if it never does; nats.

    >>> round(vertex_inverse(0.1, 0.7, 0.2, vertex_loss(0.1, 0.7, 0.2, 1.0)), 12)
    1.0
    """
    if gap == 0.0:
        return inf
    if loss == 0.0 or d == rest == 0.0:
        return loss
    w = -expm1(-loss)
    below = gap * exp(-loss) - d * w
    if loss <= LARGE:
        return log1p(w / below) if below > 0.0 else inf
    return loss - log(gap) if d == 0.0 else loss  # too little, which is safe, for d below 1e-300


def ascend(
    vertices: np.ndarray,
    first: np.ndarray,
    steps: np.ndarray,
    budgets: np.ndarray,
    change: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Leakages (R,) of the recursion along `budgets` (R,), and their derivative (R, N) if `change`
    is that of budgets.

    The vertices of loss function f are the rows of `vertices` (V, 5) from `first[f]` on: d, gap,
    rest, the alpha up to which each applies, and the scale of leakages (`PrivacyLossFunction`).
    `steps` (R - 1,) holds the number of each step's function, or -1 if there is none.
    `envelope.recursion` compiles this recursion, because SLSQP runs it thousands of times.
    """
    leakages, derivative = budgets.copy(), change.copy()
    for t in range(1, budgets.size):
        if steps[t - 1] >= 0:
            alpha, at = leakages[t - 1], first[steps[t - 1]]
            while alpha >= vertices[at, 3]:
                at += 1
            d, gap, rest, scale = vertices[at, 0], vertices[at, 1], vertices[at, 2], vertices[at, 4]
            leakages[t] += scale * vertex_loss(d, gap, rest, alpha / scale)
            slope = vertex_slope(d, gap, rest, alpha / scale)
            for n in range(change.shape[1]):
                derivative[t, n] += slope * derivative[t - 1, n]
    return leakages, derivative


def ascend_from(
    vertices: np.ndarray, last: float, budgets: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Leakages (R,) of the recursion along `budgets` (R,) with one loss function, whose `vertices`
    are as in `ascend`.

    `last` is the leakage before them, NaN for none. The result ends where a leakage is that of
    `known`, (R,) or (0,), up to one unit in its last place. `envelope.recursion` compiles it, for
    many releases of different budgets.
    """
    leakages, scale, fixed = np.empty(budgets.size), vertices[0, 4], -1.0
    for t in range(budgets.size):
        if budgets[t] != fixed:
            low, high = 0, vertices.shape[0] - 1
            while low < high:  # bisect_right
                middle = (low + high) // 2
                if last < vertices[middle, 3]:
                    high = middle
                else:
                    low = middle + 1
            following = budgets[t]
            if not isnan(last):
                following += scale * vertex_loss(
                    vertices[low, 0], vertices[low, 1], vertices[low, 2], last / scale
                )
            if t < known.size and (
                following == known[t] or abs(following - known[t]) < np.spacing(following)
            ):
                return leakages[:t]
            fixed = budgets[t] if following == last else -1.0
            last = following
        leakages[t] = last
    return leakages


def ascend_each(points: np.ndarray, first: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    """Leakages (U, T) of the recursion along `budgets` (T,) with the loss function of each of U
    hulls.

    Hull u is `points[first[u]:first[u + 1]]`, rows of d, gap and rest. NaN where doubles do not
    decide: a crossing is out of range, or rows are nearly disjoint (`envelope.joint_hull`).
    `envelope.recursion` compiles it.
    """
    leakages, vertices = np.empty((first.size - 1, budgets.size)), points.copy()
    leakages[:], vertices[:, 4], nothing = nan, 1.0, np.empty(0)
    for u in range(first.size - 1):
        start, last = first[u], first[u + 1] - 1
        is_decided = last < start or points[last, 0] > 0.0 or not 0.0 < points[last, 2] < 1e-8
        for v in range(start, last):
            vertices[v, 3] = vertex_crossing(
                points[v, 0], points[v, 1], points[v + 1, 0], points[v + 1, 1]
            )
            is_decided = is_decided and not isnan(vertices[v, 3])
        if is_decided:  # without vertices all rows are equal
            along = (
                budgets
                if last < start
                else ascend_from(vertices[start : last + 1], nan, budgets, nothing)
            )
            for t in range(budgets.size):  # assigning a whole row would take seconds to compile
                leakages[u, t] = along[t]
    return leakages
