"""What the package computes fast, done slowly and plainly: by exhaustion, by simulation, and in
high precision.

The privacy loss function is evaluated from its definition, Eq. (24) of [1], in the form log f =
log1p((q(S) - d(S)) u / (d(S) u + 1)) with u = e^alpha - 1, so that it stays exact where alpha is
tiny.
"""

from itertools import permutations

import mpmath
import numpy as np

from tplrepro.leakage import published

DIGITS = 50


def brute_force_loss(P, alpha):
    """L(alpha), alpha <= 700, a number or array, over all pairs of n <= 12 rows and all sets of
    columns; 0 for None."""
    if P is None:
        return 0.0 * alpha
    rows = np.asarray(P, dtype=float)
    n = len(rows)
    assert n <= 12, f"2^n sets of columns are too many for n = {n}"
    sets = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)
    gaps = (rows[:, None] - rows) @ sets.T
    above = gaps > 0
    gaps, sums = gaps[above], np.broadcast_to(rows @ sets.T, gaps.shape)[above]
    u = np.expm1(alpha)[..., None]
    return np.log1p((gaps * u / (sums * u + 1)).max(axis=-1, initial=0.0))


def _prefix_sums(q, d):
    """q(S) - d(S) and d(S) of all prefixes S of the columns in order of falling q_j / d_j, one of
    which is the best."""
    pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(q, d, strict=True) if a > b]
    pairs.sort(key=lambda ab: mpmath.inf if ab[1] == 0 else ab[0] / ab[1], reverse=True)
    gap, below = mpmath.mpf(0), mpmath.mpf(0)
    for a, b in pairs:
        gap, below = gap + (a - b), below + b
        yield gap, below


def largest_loss(sums, alpha):
    """The largest log f over pairs (q(S) - d(S), d(S)), as an mpmath number."""
    u = mpmath.expm1(mpmath.mpf(alpha))
    return mpmath.log1p(
        max((gap * u / (below * u + 1) for gap, below in sums), default=mpmath.mpf(0))
    )


def pair_loss_mpmath(q, d, alpha, dps=60):
    """log f of one pair of rows, as an mpmath number; any alpha >= 0."""
    with mpmath.workdps(dps):
        return largest_loss(_prefix_sums(map(float, q), map(float, d)), float(alpha))


def loss_mpmath(P, alpha, dps=60):
    """L(alpha) over all ordered pairs of rows with `dps` digits; any n, any alpha >= 0, or a list
    for several."""
    rows = np.asarray(P, dtype=float)
    with mpmath.workdps(dps):
        sums = [pair for q, d in permutations(rows.tolist(), 2) for pair in _prefix_sums(q, d)]
        losses = [largest_loss(sums, float(each)) for each in np.atleast_1d(alpha)]
    return losses if np.ndim(alpha) else losses[0]


def exact_loss(P):
    """L of the matrix whose rows are divided by their exact sums, as a function of mpmath numbers;
    0 for no matrix."""
    if P is None:
        return lambda alpha: mpmath.mpf(0)
    with mpmath.workdps(DIGITS):
        rows = [[mpmath.mpf(float(p)) for p in row] for row in P]
        rows = [[p / mpmath.fsum(row) for p in row] for row in rows]
        sums = [pair for q, d in permutations(rows, 2) for pair in _prefix_sums(q, d)]
        sums = _without_smaller(sums)
    return lambda alpha: largest_loss(sums, alpha)


def _without_smaller(sums):
    """The pairs (q(S) - d(S), d(S)) whose log f is the largest somewhere: any other has no smaller
    d(S) than one of them, and no larger gap."""
    kept = []
    largest = mpmath.mpf(0)
    for gap, below in sorted(sums, key=lambda pair: (pair[1], -pair[0])):
        if gap > largest:
            kept.append((gap, below))
            largest = gap
    return kept


def extended_loss(P):
    """L as `exact_loss`, with the 64 bits of extended precision."""
    if P is None:
        return np.zeros_like
    rows = np.divide(P, np.sum(P, axis=1, keepdims=True, dtype=np.longdouble))
    q, d = np.broadcast_arrays(rows[:, None], rows)
    # columns with q <= d come last, and add nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(q > d, -q / d, 0.0), axis=-1)
    q, d = (np.take_along_axis(np.where(q > d, each, 0.0), order, axis=-1) for each in (q, d))
    gap, below = np.unique(
        [np.cumsum(q - d, axis=-1).ravel(), np.cumsum(d, axis=-1).ravel()], axis=1
    )

    def loss(alpha):
        u = np.expm1(alpha)
        return np.log1p((gap * u / (below * u + 1)).max())

    return loss


def exact_supremum(loss, epsilon, ceiling):
    """The fixed point of x = L(x) + epsilon by bisection from above, so never below it; inf if it
    is over `ceiling`."""
    low, high = epsilon, mpmath.mpf(ceiling)
    if loss(high) + epsilon > high:
        return mpmath.inf
    while high - low > high * mpmath.mpf(10) ** (10 - mpmath.mp.dps):
        middle = (low + high) / 2
        low, high = (low, middle) if loss(middle) + epsilon <= middle else (middle, high)
    return high


def theorem_11(q, d, epsilon):
    """The supremum for one pair of sums by Theorem 11 of [1], as Algorithm 6 evaluates it for a
    table of one pair."""
    tables = published.PrecomputedTables(*np.array([[[q]], [[d]], [[np.inf]]]))
    return published.algorithm_6(epsilon, tables)[0]


def supremum_mpmath(q, d, epsilon, dps=60):
    """The supremum for one pair of sums, not by the quadratic of Theorem 11; inf where d = 0 and q
    e^epsilon >= 1."""
    with mpmath.workdps(dps):
        q, d, epsilon = (mpmath.mpf(float(v)) for v in (q, d, epsilon))
        if d == 0 and q * mpmath.exp(epsilon) >= 1:
            return mpmath.inf

        def loss(alpha):
            return largest_loss([(q - d, d)], alpha)

        ceiling = epsilon
        while loss(ceiling) + epsilon > ceiling:
            ceiling *= 2
        return exact_supremum(loss, epsilon, ceiling)


def recursion(budgets, backward, forward):
    """BPL, FPL and TPL, lists, by Eqs. (13), (15) and (11) of [1]; each side is one function L, or
    a list of them; the budgets may be floats, mpmath numbers, or arrays of those of many series.
    """
    steps = len(budgets) - 1
    backward, forward = (
        side if isinstance(side, list) else [side] * steps for side in (backward, forward)
    )
    bpl, fpl = list(budgets[:1]), list(budgets[-1:])
    for t in range(steps):
        bpl.append(backward[t](bpl[-1]) + budgets[t + 1])
        fpl.append(forward[-1 - t](fpl[-1]) + budgets[-2 - t])
    fpl.reverse()
    return bpl, fpl, [b + f - epsilon for b, f, epsilon in zip(bpl, fpl, budgets, strict=True)]


def exact_tpl(budgets, loss_b, loss_f):
    """TPL at each time point with 50 digits."""
    with mpmath.workdps(DIGITS):
        return recursion([mpmath.mpf(float(epsilon)) for epsilon in budgets], loss_b, loss_f)[2]


def exact_budgets(alpha, loss_b, loss_f, number=mpmath.mpf, digits=30):
    """The solution a^B, a^F of Eqs. (26), (27) of [1] and the budget between, by bisection on
    a^B."""
    low, high = number(0), number(alpha)
    while high - low > alpha * number(10) ** -digits:
        a_b = (low + high) / 2
        low, high = (a_b, high) if loss_f(alpha - loss_b(a_b)) + a_b <= alpha else (low, a_b)
    a_f = alpha - loss_b(low)
    return low, a_f, low + a_f - alpha


def exhaustive_leakage(outputs, backward, forward):
    """BPL, FPL and TPL, (3, T), by their definition: the largest ratio of Pr(o | l_t) over all
    sequences of outputs, of which outputs[t], (k, n), says what each tells of the state at t.
    Matrices or None join t and t + 1.
    """
    T, n = len(outputs), outputs[0].shape[1]
    chosen = np.indices([len(x) for x in outputs]).reshape(T, -1)
    x = [x[sequence] for x, sequence in zip(outputs, chosen, strict=True)]
    past, future = np.ones((2, T, *x[0].shape), dtype=x[0].dtype)
    for t in range(1, T):
        B, F = (
            [[1 / n] * n] * n if P is None else P for P in (backward[t - 1], forward[T - 1 - t])
        )
        past[t] = (past[t - 1] * x[t - 1]) @ np.transpose(B)
        future[T - 1 - t] = (future[T - t] * x[T - t]) @ np.transpose(F)
    told = np.log(np.stack([past * x, future * x, past * x * future]))
    return np.ptp(told, axis=-1).max(axis=-1)


def gaussian_leakage_mpmath(K, noise, change):
    """mu_t = change sqrt(1 / Var(x_t | outputs) - 1 / Var(x_t)) of a normal series, as mpmath
    numbers."""
    T = len(K)
    noise = np.diag(np.broadcast_to(noise, T)) if np.ndim(noise) < 2 else np.asarray(noise)
    released = [t for t in range(T) if np.isfinite(noise[t, t])]
    with mpmath.workdps(60):
        S = mpmath.matrix(
            [[mpmath.mpf(K[s, t]) + mpmath.mpf(noise[s, t]) for t in released] for s in released]
        )
        remaining = []
        for t in range(T):
            k = mpmath.matrix(K[released, t])
            remaining.append(mpmath.mpf(K[t, t]) - (k.T * mpmath.lu_solve(S, k))[0])
        return [
            change * mpmath.sqrt(1 / left - 1 / mpmath.mpf(K[t, t]))
            for t, left in enumerate(remaining)
        ]


def simulated_profile(backward, forward, t, noise, horizon, x, draws, rng, chunk=50_000):
    """delta(e^x) at time t of T releases `unit vector of the state + noise N(0, I)` and its
    standard error, (2, k).

    Of all ordered pairs of states the largest mean of (1 - e^(x - loss))+, from `draws` series for
    each state.
    """
    x, found = np.asarray(x, dtype=float), []
    for state in range(len(backward)):
        sums = np.zeros((2, len(backward), x.size))
        for size in np.diff(np.append(np.arange(0, draws, chunk), draws)):
            given = np.full(size, state)
            told = _told(given, len(backward), noise, rng)
            for matrix, steps in ((backward, t), (forward, horizon - 1 - t)):
                told += _message(np.asarray(matrix, dtype=float), given, steps, noise, rng)
            losses = told[:, [state]] - told
            for k, level in enumerate(x):
                excess = -np.expm1(np.minimum(level - losses, 0.0))
                sums[:, :, k] += excess.sum(axis=0), np.square(excess).sum(axis=0)
        mean, square = sums / draws
        found.append([mean, np.sqrt((square - mean**2) / draws)])
    means, errors = np.concatenate(found, axis=1)
    worst = means.argmax(axis=0), np.arange(x.size)
    return np.array([means[worst], errors[worst]])


def _told(states, n, noise, rng):
    """log p(output | each state) up to a constant, (draws, n), of one release about `states`."""
    return (np.eye(n)[states] + noise * rng.standard_normal((states.size, n))) / noise**2


def _message(matrix, states, steps, noise, rng):
    """log p(outputs of the `steps` times before or after | each state) up to a constant, drawn
    given `states`."""
    path, cumulative = [], matrix.cumsum(axis=1)[:, :-1]
    for _ in range(steps):
        states = (rng.random((states.size, 1)) > cumulative[states]).sum(axis=1)
        path.append(states)
    message = np.zeros((states.size, len(matrix)))
    for states in reversed(path):
        message += _told(states, len(matrix), noise, rng)
        top = message.max(axis=1, keepdims=True)
        message = top + np.log(np.exp(message - top) @ matrix.T)
    return message


def extended_tpl(budgets, backward, forward):
    """TPL (T,) in extended precision: Eqs. (11), (13), (15) with L of the product of all matrices
    between two releases, which have budgets above 0; (T - 1,) matrices a side."""

    def leaked(matrices, leakage):
        product = matrices[0]
        for matrix in matrices[1:]:
            product = product @ matrix
        return extended_loss(product)(leakage)

    def accumulated(budgets, between):
        leakages = np.zeros(len(budgets), np.longdouble)
        last = None
        for time, budget in enumerate(budgets):
            leakages[time] = budget
            if last is not None:
                leakages[time] += leaked(between(last, time), leakages[last])
            if budget > 0.0:
                last = time
        return leakages

    budgets = np.asarray(budgets, np.longdouble)
    end = len(budgets) - 1
    bpl = accumulated(budgets, lambda first, last: backward[first:last][::-1])
    fpl = accumulated(budgets[::-1], lambda first, last: forward[end - last : end - first])[::-1]
    return bpl + fpl - budgets
