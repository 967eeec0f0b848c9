"""Attacks on what promises the most, by oracles that share no code with the package.

They compute in whole numbers, in decimals of 60 digits, by enumeration, or by sums over outputs that converge
exponentially. Rows of matrices are multiples of 2^-52, so that they sum to 1 exactly. `CASES` says how many cases
`make test-slow` takes; docs/guide/promises.md has a table of the 10^5 and more that were tried once, and what fell.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise, permutations, product
from math import ceil, isfinite

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from scipy.special import ndtr

import tplfrontier as tf
import tplrepro as tpl
from tplrepro import dphmm, eventlog, sip

UNIT = 2**52
DENSITY = np.sqrt(2.0 * np.pi)


def chain(rng, n=2):
    """A matrix (n, n): anything, nearly deterministic, nearly independent, with zeros, or an extreme one."""
    kind = int(rng.integers(8))
    if kind < 2:
        return np.eye(n)[rng.permutation(n)] if kind == 0 and rng.random() < 0.5 else rows_of(np.eye(n))
    P = rng.dirichlet(np.full(n, [0.15, 1.0][kind % 2]), n)
    if kind in (4, 5):
        weight = 10.0 ** -rng.uniform(0.5, 15)
        P = (1 - weight) * (np.eye(n) if kind == 4 else P[[0]] * np.ones((n, 1))) + weight * P
    if kind == 6:
        P = P * (rng.random((n, n)) < 0.7) + 1e-300
    return rows_of(P)


def rows_of(P):
    numbers = np.floor(P / P.sum(axis=1, keepdims=True) * (UNIT - len(P))).astype(np.int64)
    numbers[np.arange(len(P)), numbers.argmax(axis=1)] += UNIT - numbers.sum(axis=1)
    return numbers / UNIT


def decimals(P):
    return [[Decimal(p) for p in row] for row in np.asarray(P, dtype=float).tolist()]


def loss_of(rows):
    """L of exact rows, over all pairs and sets of columns; 0 for None."""
    if rows is None:
        return lambda alpha: Decimal(0)
    sets = [S for size in range(1, len(rows)) for S in combinations(range(len(rows)), size)]
    sums = [(sum(q[k] for k in S), sum(d[k] for k in S)) for q, d in permutations(rows, 2) for S in sets]
    return loss_of_sums({(q - d, d) for q, d in sums if q > d})


def loss_of_sums(sums):
    def loss(alpha):
        u = alpha.exp() - 1
        return (1 + max((gap * u / (d * u + 1) for gap, d in sums), default=Decimal(0))).ln()

    return loss


def power(rows, k):
    if k == 1:
        return rows
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*power(rows, k - 1))] for row in rows]


def leakages(budgets, times, backward, forward):
    """BPL, FPL and TPL at all times from the first to the last release; the sides give L over a number of steps."""
    found = []
    for side, order in ((backward, 1), (forward, -1)):
        known, last = {}, None
        for time in range(times[0], times[-1] + 1)[::order]:
            known[time] = (side(abs(time - last))(known[last]) if last is not None else Decimal(0)) + budgets.get(time, 0)
            last = time if time in budgets else last
        found.append(known)
    bpl, fpl = found
    return bpl, fpl, {time: bpl[time] + fpl[time] - budgets.get(time, 0) for time in bpl}


def over(P):
    """L over any number of steps of one matrix."""
    if P is None:
        return lambda steps: loss_of(None)
    rows, known = decimals(P), {}
    return lambda steps: known.setdefault(steps, loss_of(power(rows, steps))) if steps not in known else known[steps]


def check_pauses(rng):
    """`leakage_at_all_times` is at least the exact one, and hardly more."""
    n, T = int(rng.integers(2, 4)), int(rng.integers(2, 12))
    sides = [chain(rng, n) if rng.random() < 0.8 else None for _ in range(2)]
    times = np.flatnonzero(rng.random(T) < 0.4)
    times = times if 0 < times.size < T else np.array([0, T - 1][: T - 1])
    budgets = 10.0 ** rng.uniform(-6, 1, times.size)
    r = tpl.leakage_at_all_times(budgets, *sides, times=times, horizon=T)
    exact = leakages(dict(zip(times.tolist(), map(Decimal, budgets.tolist()), strict=True)), times, *map(over, sides))
    for found, truth in zip((r.bpl, r.fpl, r.tpl), exact, strict=True):
        for time, value in truth.items():
            assert value * (1 - Decimal("1e-50")) <= Decimal(float(found[time])), (time, value, found[time])
            assert float(found[time]) <= float(value) * (1 + 1e-12) + 1e-12
    return 3 * len(exact[0])


def prior_free(P):
    """The loss for any evidence, over any number of steps, of a matrix without zeros."""
    rows = decimals(P)
    pairs = [*permutations(range(len(P)), 2)]
    root = max(rows[i][k] * rows[j][m] / (rows[i][m] * rows[j][k]) for i, j in pairs for k, m in pairs).sqrt()

    def loss(steps, alpha):
        half = (alpha / 2).exp()
        told = ((root - 1) / (root + 1)) ** steps * (half - 1) / (half + 1)
        return 2 * ((1 + told) / (1 - told)).ln()

    return lambda steps: partial(loss, steps)


def check_filter(rng):
    """No TPL above alpha by a filter whose losses hold for any prior, or come from counts; all that remains is spent."""
    n, alpha = int(rng.integers(2, 4)), float(10.0 ** rng.uniform(-3, 1))
    counted = rng.random() < 0.5
    functions, exact = [], []
    for _ in range(2):
        if rng.random() < 0.15:
            function, side = None, over(None)
        elif counted:
            function = tf.loss_from_counts(rng.integers(0, 10 ** int(rng.integers(1, 7)), (n, n)), rng.uniform(0.05, 0.99))
            hull = function.hull.tolist()
            side = lambda steps, hull=hull: loss_of_sums([(Decimal(gap), Decimal(d)) for d, gap, *_ in hull])  # noqa: E731
        else:
            P = rows_of(rng.dirichlet(np.full(n, [0.3, 1, 50][int(rng.integers(3))]), n) + 10.0 ** -rng.uniform(1, 12))
            function, side = tpl.PriorFreeLoss(P), prior_free(P)
        functions.append(function)
        exact.append(side)
    floor = 0.0
    if rng.random() < 0.3:
        try:
            floor = tpl.allocate_by_upper_bound(alpha, *functions) * rng.choice([0.3, 1.0])
        except tpl.NoFiniteSupremumError:
            floor = 0.0
    account, budgets, time, left = tpl.TemporalAccountant(*functions, alpha=alpha, floor=floor), {}, 0, 1.0
    for _ in range(int(rng.integers(1, 7))):
        if not counted and rng.random() < 0.3:
            time += (pause := int(rng.integers(1, 40)))
            account.skip(pause)
        share = rng.choice([rng.random(), 1.0, 1e-3])
        budget = account.remaining * float(share)
        if budget > 0.0:
            account.compose(budget)
            budgets[time], left = Decimal(budget), share
        time += 1
    if budgets:
        highest = max(leakages(budgets, sorted(budgets), *exact)[2].values())
        assert highest <= Decimal(alpha), (highest, alpha)
        assert left < 1.0 or floor > 0.0 or highest >= Decimal(alpha) * Decimal("0.98")
    return 1


def check_counts(rng):
    """A loss from counts bounds those of matrices on the edge of what its theorem allows."""
    n, confidence = int(rng.integers(2, 4)), float(rng.choice([0.5, 0.95, 0.999]))
    counts = rng.integers(0, 10 ** int(rng.integers(1, 7)), (n, n)) + np.eye(n, dtype=int)
    loss, total = tf.loss_from_counts(counts, confidence), counts.sum(axis=1)
    radius = (np.log((2.0 ** (n - 1) - 1) * n / (1 - confidence)) + 0.5 * np.log(total) + np.log(2)) / total
    sets = np.array([*product([0.0, 1.0], repeat=n)][1:-1])
    shares = counts / total[:, None]
    ends = rng.dirichlet(np.ones(n), (4, n)) if n > 2 else np.array([np.eye(2)[[a, b]] for a in (0, 1) for b in (0, 1)])
    low, high = np.zeros((len(ends), n)), np.ones((len(ends), n))
    p = shares @ sets.T
    for _ in range(50):  # from the shares towards the end, as far as all sets allow
        middle = (low + high) / 2
        P = np.clip(((1 - middle[..., None]) * shares + middle[..., None] * ends) @ sets.T, 1e-300, 1 - 1e-16)
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence = np.where(p > 0, p * np.log(p / P), 0) + np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - P)), 0)
        inside = (divergence <= radius[:, None] * (1 - 1e-9)).all(axis=-1)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    for P in (1 - low[..., None]) * shares + low[..., None] * ends:
        exact = loss_of(decimals(rows_of(P)))
        for alpha in 10.0 ** rng.uniform(-3, 1.3, 2):
            assert exact(Decimal(alpha)) <= Decimal(loss.at_most(float(alpha))) * (1 + Decimal("1e-9")), (alpha, P)
    return 2 * len(ends)


def check_several(rng):
    """Budgets for several chains are within alpha for the share of them that was asked for."""
    n, T, alpha = int(rng.integers(2, 4)), int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-2, 1))
    pairs = [(chain(rng, n), chain(rng, n)) for _ in range(int(rng.integers(1, 5)))]
    share = float(rng.choice([1.0, 0.75, 0.5]))
    allocate = [
        partial(tpl.allocate_by_quantification, alpha, horizon=T),
        partial(tpl.allocate_by_upper_bound, alpha),
        partial(tpl.allocate_by_exact_leakage, alpha, horizon=min(T, 3)),
    ][int(rng.integers(3))]
    try:
        found = tf.allocate_for_several(allocate, pairs, share=share)
    except tpl.NoFiniteSupremumError:
        return 1
    worst = worst_of_boxes if allocate.func is tpl.allocate_by_exact_leakage else worst_of_recursion
    budgets = [*map(Decimal, np.broadcast_to(found, T if np.ndim(found) == 0 else np.shape(found)).tolist())]
    assert sum(worst(budgets, *pair) <= Decimal(alpha) for pair in pairs) >= share * len(pairs)
    return len(pairs)


def worst_of_recursion(budgets, backward, forward):
    each = dict(enumerate(budgets))
    return max(leakages(each, [*each], *map(over, (backward, forward)))[2].values())


def worst_of_boxes(budgets, backward, forward):
    """The exact TPL: at each time the best past, present and future likelihoods for each pair of states."""
    n = max(2 if P is None else len(P) for P in (backward, forward))
    outputs = [[[b.exp() if high else Decimal(1) for high in x] for x in product((0, 1), repeat=n)] for b in budgets]
    sides = []
    for P, each in ((backward, outputs), (forward, outputs[::-1])):
        rows, reached, ratios = None if P is None else decimals(P), [[Decimal(1)] * n], []
        for x in each:
            ratios.append([[max(m[i] / m[j] for m in reached) for j in range(n)] for i in range(n)])
            if rows is not None:
                told = [[a * b for a, b in zip(m, o, strict=True)] for m in reached for o in x]
                reached = [[sum(a * b for a, b in zip(row, m, strict=True)) for row in rows] for m in told]
        sides.append(ratios)
    pasts, futures = sides[0], sides[1][::-1]
    pairs = [*permutations(range(n), 2)]
    parts = zip(budgets, pasts, futures, strict=True)
    return max((p[i][j] * b.exp() * f[i][j]).ln() for b, p, f in parts for i, j in pairs)


def check_exact_allocation(rng):
    """Budgets by exact leakage are within alpha over all outputs of the worst mechanism, and as large as can be."""
    n, T = (2, int(rng.integers(1, 5))) if rng.random() < 0.8 else (3, int(rng.integers(1, 3)))
    alpha = float(10.0 ** rng.uniform(-6, 1.3))
    sides = [chain(rng, n) if rng.random() < 0.85 else None for _ in range(2)]
    shape = rng.uniform(0.2, 1.0, T) if rng.random() < 0.5 else np.ones(T)
    budgets = tpl.allocate_by_exact_leakage(alpha, *sides, proportions=shape)
    worst = worst_of_boxes([*map(Decimal, budgets.tolist())], *sides)
    assert Decimal(alpha) * (1 - Decimal("1e-9")) <= worst <= Decimal(alpha), (worst, alpha)
    return T


def check_plans(rng, plans=50, longest=4):
    """Budgets of up to 10^4 releases, in the 64 bits of extended precision, whose error is far below the margin."""
    horizons = np.sort(np.rint(10.0 ** rng.uniform(0.3, longest, plans)).astype(int))[::-1]
    horizons[: plans // 10] = horizons[0]
    alphas, budgets, vertices = [], np.full((plans, horizons[0]), np.nan, np.longdouble), np.zeros((2, plans, 2, 2), np.longdouble)
    for k, T in enumerate(horizons.tolist()):
        sides, alpha = [chain(rng) for _ in range(2)], float(10.0 ** rng.uniform(-3, 1.2))
        kind = int(rng.integers(4)) if T <= 300 else int(rng.integers(2))
        try:
            found = (
                lambda: tpl.allocate_by_quantification(alpha, *sides, T),
                lambda: np.full(T, tpl.allocate_by_upper_bound(alpha, *sides)),
                lambda: tpl.allocate_optimally(alpha, *sides, T),
                lambda: tpl.allocate_by_quantification(alpha, None, sides[1], T),
            )[kind]()
        except tpl.NoFiniteSupremumError:
            found = np.full(T, alpha / T * (1 - 1e-11))
        alphas.append(alpha)
        budgets[k, :T] = found
        for side, P in enumerate(sides if kind < 3 else [np.eye(2)[[0, 0]], sides[1]]):
            for S in (0, 1):  # of two states: each set and the order of rows that make it a gain
                high, low = P[:, S].argmax(), P[:, S].argmin()
                vertices[side, k, S] = np.longdouble(P[high, S]) - P[low, S], P[low, S]
    totals = np.zeros_like(budgets)
    for side, (gap, d) in zip((0, 1), np.moveaxis(vertices, -1, 1), strict=True):
        leaked = np.zeros(plans, np.longdouble)
        for step in range(horizons[0]):
            active = int(np.count_nonzero(horizons > step))
            u = np.expm1(leaked[:active, None])
            told = np.log1p((gap[:active] * u / (d[:active] * u + 1)).max(axis=1)) if step else leaked[:active]
            at = np.full(active, step) if side == 0 else horizons[:active] - 1 - step
            leaked = told + budgets[np.arange(active), at]
            totals[np.arange(active), at] += leaked
    tpls = np.nanmax(totals - budgets, axis=1)
    assert (tpls * (1 + horizons * np.longdouble(6e-19)) <= np.array(alphas)).all(), (tpls / alphas - 1).max()
    return plans


def normal_truth(shifts, backward, forward, t, x):
    """The exact delta at e^x of up to three normal releases about two states, by sums over the other outputs."""
    sides = []
    for P, others in ((backward, shifts[:t]), (forward, shifts[:t:-1])):
        law = np.ones((2, 1))
        for shift in [] if P is None else others:
            step = min(0.4, 0.6 / shift, 0.4 * shifts[t] / shift)
            z = step * np.arange(-9.0 // step, (9.0 + shift) // step)
            density = np.exp(-np.square(z - np.array([[0.0], [shift]])) / 2) * (step / DENSITY)
            law = np.asarray(P) @ (law[:, :, None] * density[:, None]).reshape(2, -1)
        sides.append(law)
    both = (sides[0][:, :, None] * sides[1][:, None]).reshape(2, -1)
    both, deltas = both[:, both.max(axis=0) > 1e-25], []
    for p, q in (both, both[::-1]):
        with np.errstate(divide="ignore"):
            cut = (np.log(p) - np.log(q) - x) / shifts[t]
        deltas.append(p @ ndtr(cut + shifts[t] / 2) - np.exp(x) * (q @ ndtr(cut - shifts[t] / 2)))
    return max(deltas)


def check_exact_gaussian(rng):
    """`ExactGaussianProfile` is exact, by sums over outputs, and by mu-GDP where one state determines all others."""
    sides, T = [chain(rng) if rng.random() < 0.7 else None for _ in range(2)], 2 if rng.random() < 0.9 else 3
    shifts = 10.0 ** (rng.uniform(-1.3, 0.7, T) if T == 2 else rng.uniform(-0.5, 0.1, T))
    exact = tf.ExactGaussianProfile(1 / shifts, *sides)
    for x in (0.0, float(rng.uniform(0, 1)), float(rng.uniform(0, 6))):
        for t, found in enumerate(exact.delta(x).tolist()):
            assert abs(found - normal_truth(shifts, *sides, t, x)) <= 1e-12, (t, x)
    several = rng.uniform(0.2, 0.5, int(rng.integers(1, 6)))
    alike = tf.ExactGaussianProfile(1 / several, np.eye(2)[::-1], np.eye(2)).delta(0.7)
    assert np.abs(alike - tf.gaussian_delta(np.sqrt(np.sum(several**2)), 0.7)).max() <= 1e-12
    return 3 * T + several.size


def check_noise(rng, methods=("equal", "least_variance")):
    """Noise by `allocate_noise` keeps delta at epsilon about each time, by the exact law of the outputs."""
    epsilon, delta, T = 10.0 ** rng.uniform(-1.0, 0.8), 10.0 ** rng.uniform(-9, -1.5), int(rng.integers(1, 4))
    sides = [chain(rng) if rng.random() < 0.8 else None for _ in range(2)]
    found = tf.allocate_noise(epsilon, delta, *sides, T, method=methods[int(rng.integers(len(methods)))])
    truths = [normal_truth(1 / found, *sides, t, epsilon) for t in range(T)]
    assert max(truths) <= delta * (1 + 1e-9), (truths, delta)
    return T


def check_remaining(rng):
    """The next budget or noise of an account keeps delta at alpha: all outputs of randomised response, or the law."""
    alpha, delta, sides = float(10.0 ** rng.uniform(-1, 0.7)), float(10.0 ** -rng.uniform(1, 7)), [chain(rng), chain(rng)]
    account, grid = tf.EventAccountant(*sides, grid=float(rng.choice([0.01, 0.05]))), int(rng.integers(1, 3))
    if rng.random() < 0.5:
        budgets = [float(alpha * rng.uniform(0.05, 0.5)) for _ in range(grid)]
        for budget in budgets:
            account.compose(budget)
        if (largest := account.budget_within(alpha, delta)) == 0.0:
            return 1
        laws = [np.array([[e, 1], [1, e]]) / (1 + e) for e in np.exp([*budgets, largest])]
        for t in range(len(laws)):
            told = laws[t]
            for P, others in ((sides[0], laws[:t]), (sides[1], laws[:t:-1])):
                message = np.ones((2, 1))
                for law in others:
                    message = P @ (message[:, :, None] * law[:, None]).reshape(2, -1)
                told = (told[:, :, None] * message[:, None]).reshape(2, -1)
            truth = max(np.maximum(p - np.exp(alpha) * q, 0.0).sum() for p, q in (told, told[::-1]))
            assert truth <= delta * (1 + 1e-9), (truth, delta)
        return len(laws)
    multipliers = [float(rng.uniform(2, 6) / alpha) for _ in range(grid)]
    for multiplier in multipliers:
        account.compose(GaussianDpEvent(multiplier))
    least = account.least_noise(alpha, delta, GaussianDpEvent)
    if isfinite(least):
        shifts = 1 / np.array([*multipliers, least])
        assert max(normal_truth(shifts, *sides, t, alpha) for t in range(shifts.size)) <= delta * (1 + 1e-9)
    return grid + 1


def bins(means, deviation, count):
    """Exact probabilities of bins of normal numbers, (..., count): they leak at most what the numbers leak."""
    edges = np.linspace(np.min(means) - 3 * deviation, np.max(means) + 3 * deviation, count - 1)
    z = (edges - np.asarray(means)[..., None]) / deviation
    left, right = (np.concatenate([np.full((*z.shape[:-1], 1), s), z][::s], axis=-1) for s in (1, -1))
    left[..., 0], right[..., -1] = -np.inf, np.inf
    return np.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))


def check_profile(rng):
    """Profiles of normal and subsampled normal releases are at least those of their binned outputs, on any grid."""
    n, T = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    sides = [chain(rng, n) if rng.random() < 0.8 else None for _ in range(2)]
    events, laws = [], []
    for _ in range(T):
        multiplier, share = float(10.0 ** rng.uniform(-0.5, 1)), float(rng.choice([1.0, 0.5, 0.05, 1e-3]))
        drawn = bins(np.append([0.0, 1.0], rng.random(n - 2)), multiplier, 24 if T < 3 else 12)
        laws.append(share * drawn + (1 - share) * drawn[0])  # who takes no part looks like the first state
        event = GaussianDpEvent(multiplier)
        events.append(event if share == 1.0 else PoissonSampledDpEvent(share, event))
    grid = [None, 0.003, 0.03, 0.3][int(rng.choice(4, p=[0.05, 0.35, 0.4, 0.2]))]
    r = tf.temporal_privacy_profile(events, *sides, grid=grid, pairs=bool(rng.random() < 0.2))
    losses = [0.0, *rng.uniform(0, 0.5, 2), *rng.uniform(0, 4, 2)]
    deltas = np.array([r.delta(x) for x in losses])
    for t in range(T):
        told = laws[t]
        for P, others in ((sides[0], laws[:t]), (sides[1], laws[:t:-1])):
            message = np.ones((n, 1))
            for law in [] if P is None else others:
                message = P @ (message[:, :, None] * law[:, None]).reshape(n, -1)
            told = (told[:, :, None] * message[:, None]).reshape(n, -1)
        gained = [max(np.maximum(told[i] - np.exp(x) * told[j], 0).sum() for i, j in permutations(range(n), 2)) for x in losses]
        assert (np.array(gained) <= deltas[:, t] * (1 + 1e-12) + 1e-15).all(), (t, gained, deltas[:, t])
    return T * len(losses)


def check_theorem(rng):
    """Theorem 1' for up to six times and one or two answers, whose later rows an earlier answer may shrink."""
    T, R, n = int(rng.integers(3, 7)), int(rng.integers(1, 3)), 2
    P, prior = 0.98 * rng.dirichlet([1, 1], 2) + 0.01, rng.dirichlet([2, 2])
    A = rng.normal(size=(R, T)) if rng.random() < 0.7 else np.tril(np.ones((T, T)))[T - R :]
    scale, delta = float(10.0 ** rng.uniform(-0.5, 1)), float(10.0 ** -rng.uniform(0.2, 3))
    budgets, priors, backward = tf.gaussian_event_level_budgets(A, scale, delta, n_states=n), [prior], []
    for _ in range(T - 1):
        backward.append((priors[-1][:, None] * P).T / (priors[-1] @ P)[:, None])
        priors.append(priors[-1] @ P)
    alpha = tpl.temporal_privacy_leakage(budgets, backward, [P] * (T - 1)).tpl.max()
    paths = np.array([*product(range(2), repeat=T)])
    weights = prior[paths[:, 0]] * np.prod([P[a, b] for a, b in pairwise(paths.T)], axis=0)
    count, laws, shrunk = 40 if R == 1 else 20, np.ones((len(paths), 1, 1)), (1.0, float(rng.random()))
    for row in range(R):
        each = [bins(np.sqrt(2) * s * paths @ A[row], scale, count) for s in (shrunk if row else shrunk[:1])]
        chosen = [laws[:, 0] if len(each) == 1 else laws[:, 0, : count // 2], laws[:, 0, count // 2 :]]
        parts = [(law[:, :, None] * own[:, None]).reshape(len(paths), -1) for law, own in zip(chosen, each)]
        laws = np.concatenate(parts, axis=1)[:, None]
    for t in range(T):
        told = np.array([(weights * (paths[:, t] == k) / priors[t][k]) @ laws[:, 0] for k in (0, 1)])
        assert max(np.maximum(p - np.exp(alpha) * q, 0).sum() for p, q in (told, told[::-1])) <= delta
    return T


def determinant(rows):
    if len(rows) == 1:
        return rows[0][0]
    return sum((-1) ** k * x * determinant([r[:k] + r[k + 1 :] for r in rows[1:]]) for k, x in enumerate(rows[0]) if x)


def exact_norms(edges, vectors):
    """The dimension of the hull of whole-number edges and their negatives, and its norms: Fractions, None off it.

    The norm is the least sum of coefficients over all bases of edges, by Cramer's rule in columns of full rank.
    """
    d = len(vectors[0])
    for rank in range(d, 0, -1):
        bases = [
            (basis, columns, volume)
            for columns in combinations(range(d), rank)
            for basis in combinations(edges, rank)
            if (volume := determinant([[e[c] for c in columns] for e in basis]))
        ]
        if bases:
            break
    else:
        return 0, [None if any(v) else Fraction(0) for v in vectors]
    norms, (_, columns, _) = [], bases[0]
    bases = [(basis, volume) for basis, chosen, volume in bases if chosen == columns]
    for v in vectors:
        inside = all(
            determinant([[x[c] for c in wider] for x in (*bases[0][0], v)]) == 0
            for wider in combinations(range(d), rank + 1)
        )
        least = None
        for basis, volume in bases if inside else []:
            own, target = [[e[c] for c in columns] for e in basis], [v[c] for c in columns]
            total = Fraction(sum(abs(determinant([*own[:k], target, *own[k + 1 :]])) for k in range(rank)), abs(volume))
            least = total if least is None else min(least, total)
        norms.append(least)
    return rank, norms


def thin_answers(rng, d, N):
    """Answers whose coordinates are 2^-30 to 2^30 as wide, some flat aslant or far from 0, and multiples of them.

    With widths of 10^-9 to 10^9 instead, in a quarter of the cases, what is flat is so up to rounding only.
    """
    base = 2.0**30 if rng.random() < 0.75 else 1e9
    widths, g = base ** rng.integers(-1, 2, d), rng.integers(-3, 4, (N, d)) / 1.0
    g = g if rng.random() < 0.5 else np.round(64 * rng.normal(size=(N, d))) / 64
    flat, kind = int(rng.integers(d)), int(rng.integers(4))
    if kind == 0:
        g[:, flat] = 1.0
    elif kind < 3 and d > 1:
        g[:, flat] = g[:, (flat + 1) % d] + (g[:, (flat + 2) % d] if kind == 2 and d > 2 else 0.0)
    f = (g + rng.choice([0.0, 1.0, 1024.0, base]) * rng.integers(0, 2, d)) * widths
    units = [max(Fraction(x).denominator for x in column) for column in f.T.tolist()]
    return base != 1e9, f, [[int(Fraction(x) * unit) for x, unit in zip(row, units, strict=True)] for row in f.tolist()]


def check_thin_hull(rng):
    """Norms of thin and flat hulls against whole numbers; no edge is outside, and none costs more than epsilon."""
    d, N = int(rng.choice([2, 3], p=[0.7, 0.3])), int(rng.integers(3, 6))
    exactly, f, whole = thin_answers(rng, d, N)
    pairs = [(i, i + 1) for i in range(N - 1)] if rng.random() < 0.5 else [*combinations(range(N), 2)]
    G = dphmm.PolicyGraph.from_edges(N, pairs)
    try:
        mechanism = dphmm.KNormMechanism(G, f, 1.0)
        hull = mechanism.hull
    except ValueError as refusal:  # "so thin aslant", "nearly coincide" or no privacy
        assert any(word in str(refusal) for word in ("thin aslant", "nearly coincide", "no edge")), refusal
        return 1
    minus = {(i, j): [a - b for a, b in zip(whole[i], whole[j], strict=True)] for i, j in combinations(range(N), 2)}
    rank, exact = exact_norms([minus[pair] for pair in pairs if any(minus[pair])], [*minus.values()])
    assert rank == hull.dimension or not exactly, (rank, hull)
    for (i, j), norm in zip(minus, exact, strict=True):
        found = float(hull.norm(f[i] - f[j]))
        assert (i, j) not in pairs or found <= 1.0
        if norm is not None and rank == hull.dimension:
            assert abs(found * (1 + hull.slack) - float(norm)) <= float(norm) * (1e-6 + 4 * hull.slack), (i, j, found)
    with np.errstate(all="ignore"):
        released = np.vstack([f, mechanism.sample(f[0], 4, rng=rng)])
        logs = mechanism.log_density(released[:, None], f)
        for i, j in pairs:
            told = logs[:, i] - logs[:, j]
            assert not (np.abs(told[~np.isnan(told)]) > 1.0).any()
    return len(exact)


def check_protect(rng):
    """After `protect` each state of several queries has another that what it releases tells from it by epsilon at most."""
    d, N = int(rng.integers(1, 4)), int(rng.integers(3, 7))
    exactly, f, whole = thin_answers(rng, d, N)
    pairs = [(int(i), int(j)) for i, j in rng.integers(0, N, (int(rng.integers(0, N)), 2)) if i != j]
    try:
        p = dphmm.protect(dphmm.PolicyGraph(N, pairs), f, ["greedy", "stepwise", "optimal"][int(rng.integers(3))])
        mechanism = dphmm.KNormMechanism(p.policy, f, 1.0, p.hull if rng.random() < 0.5 else None)
        slack = mechanism.hull.slack
    except ValueError as refusal:
        assert any(word in str(refusal) for word in ("thin aslant", "nearly coincide")), refusal
        return 1
    edges, of_states = p.policy.edge_array.tolist(), [*permutations(range(N), 2)]
    edges = [e for i, j in edges if any(e := [a - b for a, b in zip(whole[i], whole[j], strict=True)])]
    _, norms = exact_norms(edges, [[a - b for a, b in zip(whole[i], whole[j], strict=True)] for i, j in of_states])
    with np.errstate(all="ignore"):
        released = np.stack([mechanism.sample(x, 6, rng=rng) for x in f])
        logs = mechanism.log_density(released[:, :, None], f)
        told = np.abs(np.einsum("isi->is", logs)[:, None] - np.moveaxis(logs, 2, 1)).max(axis=2)  # (from, to)
    assert (told + 2.0 * np.eye(N)).min(axis=1).max() <= 1.0
    for (i, j), norm in zip(of_states, norms, strict=True):
        assert not told[i, j] > 1.0 or not (mechanism.policy.edge_array == [min(i, j), max(i, j)]).all(axis=1).any()
        assert not exactly or norm is None or told[i, j] <= norm * (1 + 1e-6 + 4 * slack) + 1e-9
    return N


def check_batches(rng):
    """Responses of batches leak at most epsilon, in fractions, and cost at most the proven least cost and a little."""
    width, n = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    epsilon, m = float(10.0 ** rng.uniform(-6, 1.6)), n**width
    if rng.random() < 0.5:
        belief = rng.random(m) ** rng.choice([1, 5, 30]) * (rng.random(m) < 0.9) + 1e-300
        distance = rng.random((n, n)) * 10.0 ** rng.integers(-9, 9, (n, n)) * (1 - np.eye(n))
    else:
        belief = sip.batch_belief(rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-1, 1)), n), width)
        distance = [(rng.integers(0, 3, (n, n)) * (1 - np.eye(n))).astype(float), "hamming"][int(rng.integers(2))]
    mechanism = sip.BatchResponse(epsilon, width, n, distance)
    response = mechanism.response(belief / belief.sum())
    table, masses = [[Fraction(x) for x in row] for row in response.matrix().tolist()], [*map(Fraction, response.belief.tolist())]
    total, most = sum(masses), Decimal(epsilon).exp()
    for column in zip(*table, strict=True):
        mean = sum(b * w for b, w in zip(masses, column, strict=True)) / total
        told = [w / mean for b, w in zip(masses, column, strict=True) if b and mean]
        if told:
            high, low = max(told), min(told)
            assert Decimal(high.numerator) <= most * Decimal(high.denominator)
            assert Decimal(low.denominator) <= most * Decimal(low.numerator)
    parts = zip(masses, table, mechanism.distance.tolist(), strict=True)
    cost = float(sum(b * sum(w * Fraction(x) for w, x in zip(row, of, strict=True)) for b, row, of in parts) / total)
    largest = float(mechanism.distance[response.belief > 0].max())
    assert response.bound <= cost * (1 + 1e-9) + 1e-12 * largest
    assert cost - response.bound <= (1e-8 * cost + 1e-11 * largest if epsilon <= 20 else 1e-8 * largest)
    return m


def check_log(rng):
    """Releases of a log cut by a share or a time, in windows of events, against sorted lists."""
    N, origin = int(rng.integers(1, 30)), pd.Timestamp("2022-03-27")
    cases, ticks = rng.integers(0, N // 3 + 2, N).tolist(), rng.integers(0, rng.choice([3, 50, 10**6]), N).tolist()
    unit, names = str(rng.choice(["s", "h", "ms", "ns"])), rng.choice([*"abc"], N).tolist()
    at = pd.Series(origin + pd.to_timedelta(ticks, unit=unit))
    at = at.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin") if rng.random() < 0.3 else at
    log = pd.DataFrame({"case:concept:name": cases, "concept:name": names, "time:timestamp": at})
    complete = dict.fromkeys(cases, True)
    if rng.random() < 0.5:
        complete = {case: bool(rng.random() < 0.6) for case in cases}
        log["case:complete"] = [complete[case] for case in cases]
    window, certain, by_share = int(rng.integers(1, 4)), bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    if by_share:
        start = float(rng.choice([round(int(rng.integers(1, N + 1)) / N, 2) or 0.5, int(rng.integers(1, N + 1)) / N, 1.0]))
        cut = sorted(ticks)[max(1, ceil(round(Fraction(start) * N, 6))) - 1]
    else:
        cut = int(rng.choice(ticks))
        start = origin + pd.to_timedelta(cut, unit=unit)
        start = [start, str(start), start.tz_localize("UTC").tz_convert("Asia/Tokyo")][int(rng.integers(3))]
    order = sorted(range(N), key=lambda k: (ticks[k], k))
    traces = {}
    for k in order:
        traces.setdefault(cases[k], []).append(k)
    by_start = sorted(traces, key=lambda case: (ticks[traces[case][0]], cases.index(case)))
    full = [len(traces[case]) + complete[case] for case in by_start]
    out = [sum(ticks[k] <= cut for k in traces[case]) for case in by_start]
    out = [o + (o == len(traces[case]) and complete[case]) for o, case in zip(out, by_start, strict=True)]
    wanted, draws = [out], np.random.default_rng(9)
    while wanted[-1] != full and len(wanted) < 40:
        new = [window] * len(full) if certain else draws.integers(0, window, len(full), endpoint=True).tolist()
        wanted.append([min(o + k, f) for o, k, f in zip(wanted[-1], new, full, strict=True)])
    options = {"certain": certain, "start": start, "max_releases": 40, "rng": np.random.default_rng(9)}
    found = [*eventlog.releases(log, window, **options)]
    assert [r.published.tolist() for r in found] == wanted
    seen = [[found[0].traces.activities[k] for k in events] for events in found[0].traces.events]
    assert seen == [[names[k] for k in traces[case]] for case in by_start]
    return len(wanted)


def check_gaussian_series(rng):
    """mu of a random state space by exact conditional variances, and the limit of an AR(1) or AR(2) by its fixed point."""
    T = int(rng.integers(1, 7))
    if rng.random() < 0.6:
        rho = float(rng.choice([-1, 1]) * (1 - 10.0 ** -rng.uniform(0, 9)))
        series = tf.LinearGaussianSeries.autoregressive(rho, T, 10.0 ** rng.uniform(-3, 3))
    else:
        d = int(rng.integers(1, 4))
        roots = rng.normal(size=(2, d, d)) * 10.0 ** rng.uniform(-3, 1, (2, 1, 1))
        Q, initial = roots @ roots.transpose(0, 2, 1)
        F = rng.normal(size=(d, d)) / np.sqrt(d)
        series = tf.LinearGaussianSeries(F, Q * (rng.random() < 0.8), rng.normal(size=d), initial, T)
    noise = np.broadcast_to(10.0 ** rng.uniform(-5, 5, T if rng.random() < 0.5 else None), T)
    F, Q, P = (decimals(part) for part in (series.transition, series.innovation, series.initial))
    value, K, turned = decimals([series.value])[0], [[Decimal(0)] * T for _ in range(T)], [*zip(*F, strict=True)]
    for t in range(T):
        ahead = [dot(row, value) for row in P]
        for s in range(t, T):
            K[s][t] = K[t][s] = dot(value, ahead)
            ahead = [dot(row, ahead) for row in F]
        FP = [[dot(row, column) for column in zip(*P, strict=True)] for row in F]
        P = [[dot(row, column) + q for column, q in zip(zip(*turned, strict=True), qs, strict=True)] for row, qs in zip(FP, Q, strict=True)]
    found = tf.gaussian_series_leakage(series, noise if np.ptp(noise) else float(noise[0]), 1.0)
    for t in range(T):  # x_t first, then the outputs: what remains of its variance after elimination from the end
        S = [[K[a][b] + (Decimal(float(noise[a])) if a == b else 0) for b in range(T)] + [K[a][t]] for a in range(T)]
        S.append([*K[t], K[t][t]])
        for k in range(T):
            for row in S[k + 1 :]:
                share = row[k] / S[k][k]
                row[k:] = [x - share * y for x, y in zip(row[k:], S[k][k:], strict=True)]
        exact = float((1 / S[T][T] - 1 / K[t][t]).sqrt())
        assert abs(found[t] - exact) <= 2e-8 * exact, (t, found[t], exact)
    if series.value.size == 1 and series.value[0] == 1.0 and np.ptp(noise) == 0:
        a, q, known = Decimal(series.transition.item()), Decimal(series.innovation.item()), 1 / Decimal(float(noise[0]))
        rest = 1 - a * a - q * known
        side = ((rest * rest + 4 * q * known).sqrt() - rest) / (2 * q)
        limit = tf.gaussian_series_limit(series, float(noise[0]), 1.0)
        assert abs(limit - float((2 * side - known).sqrt())) <= 1e-13 * limit
    return T


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def check_limit(rng):
    """The limit of AR(2) and AR(3) by Riccati's equation doubled in decimals."""
    d, modulus = int(rng.integers(2, 4)), 1 - 10.0 ** -rng.uniform(0.05, 3)
    roots = modulus * rng.uniform(0.2, 1, d) * rng.choice([-1, 1], d)
    if rng.random() < 0.5:
        roots = roots.astype(complex)
        roots[0] *= np.exp(1j * rng.uniform(0, np.pi))
        roots[1] = roots[0].conj()
    series = tf.LinearGaussianSeries.autoregressive(-np.poly(roots).real[1:], 3, 10.0 ** rng.uniform(-2, 2))
    noise = float(10.0 ** rng.uniform(-3, 3))
    try:
        found = tf.gaussian_series_limit(series, noise, 1.0)
    except ValueError as refusal:
        assert "must" in str(refusal)
        return 1
    long = tf.LinearGaussianSeries(series.transition, series.innovation, series.value, series.initial, 1)
    F, Q, prior = (matrix(part) for part in (long.transition, long.innovation, long.initial))
    c = matrix(long.value[:, None])
    A, G, H = transpose(F), times(c, transpose(c), 1 / Decimal(noise)), Q  # doubled, H is the variance before an output
    B, J, M = F, Q, times(c, transpose(c), 1 / Decimal(noise))  # and M the information of all outputs from a time on
    for _ in range(40):
        A, G, H = doubled(A, G, H)
        B, J, M = doubled(B, J, M)
    later = plus(M, times(c, transpose(c), -1 / Decimal(noise)))  # without the output of the time itself
    known = plus(inverse(H), plus(times(c, transpose(c), 1 / Decimal(noise)), later))
    left = times(transpose(c), times(inverse(known), c))[0][0]
    exact = float((1 / left - 1 / times(transpose(c), times(prior, c))[0][0]).sqrt())
    assert abs(found - exact) <= 1e-8 * exact, (found, exact)
    return 1


def doubled(A, G, H):
    """One step of the doubling algorithm for X = A^T X (1 + G X)^-1 A + H (Chu, Fan, Lin, Wang 2004)."""
    unit = matrix(np.eye(len(A)))
    W = inverse(plus(unit, times(G, H)))
    more = times(A, times(W, times(G, transpose(A))))
    return times(A, times(W, A)), plus(G, more), plus(H, times(transpose(A), times(H, times(W, A))))


def matrix(numbers):
    return decimals(numbers)


def transpose(A):
    return [*map(list, zip(*A, strict=True))]


def plus(A, B):
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(A, B, strict=True)]


def times(A, B, factor=1):
    return [[dot(row, column) * factor for column in zip(*B, strict=True)] for row in A]


def inverse(A):
    n = len(A)
    rows = [[*row, *(Decimal(int(k == i)) for k in range(n))] for i, row in enumerate(A)]
    for k in range(n):
        at = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


CASES = {
    check_pauses: 3000, check_filter: 3000, check_counts: 1500, check_several: 2000, check_exact_allocation: 3000,
    check_plans: 60, check_exact_gaussian: 3000, check_noise: 200, check_remaining: 200, check_profile: 2000,
    check_theorem: 3000, check_thin_hull: 3000, check_protect: 2000, check_batches: 2000, check_log: 3000,
    check_gaussian_series: 3000, check_limit: 500,
}  # fmt: skip


@pytest.mark.parametrize("share", [0.01, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("check", "cases"), CASES.items(), ids=lambda one: getattr(one, "__name__", None))
def test_no_case_is_on_the_wrong_side_of_its_oracle(check, cases, share):
    with localcontext(prec=60):
        for seed in range(max(2, int(share * cases))):
            check(np.random.default_rng(seed))
