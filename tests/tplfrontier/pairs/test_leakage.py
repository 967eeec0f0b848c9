"""Leakage pair by pair: linear programmes by SciPy, enumerated outputs, and the loss function where
all pairs agree."""

import operator
from fractions import Fraction
from itertools import combinations, permutations, product

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import loss_mpmath
from tplfrontier.pairs import tree_simplex
from tplfrontier.pairs.leakage import log_ratios
from tplrepro.validation import frozen


@pytest.fixture
def rng():
    return np.random.default_rng(20261123)


def random_chain(rng, n):
    """Rows with entries of very different sizes; in every second chain some are 0."""
    rows = rng.dirichlet(np.full(n, 0.5), n)
    if rng.random() < 0.5:
        rows[:, 1:] *= rng.random((n, n - 1)) < 0.6
        rows[:, 0] += 1e-3
    return rows / rows.sum(axis=1, keepdims=True)


def random_metric(rng, n):
    """Distances along shortest ways, many of them equal in every second metric, not symmetric, some
    of them inf."""
    bounds = rng.exponential(size=(n, n))
    if rng.random() < 0.5:
        bounds = np.ceil(3 * bounds) / 4
    if rng.random() < 0.3:
        bounds[rng.random((n, n)) < 0.5] = np.inf
    np.fill_diagonal(bounds, 0.0)
    for m in range(n):
        bounds = np.minimum(bounds, bounds[:, m, None] + bounds[m])
    return bounds


def solved_losses(rows, bounds):
    """The logarithms of the largest ratios of all pairs of rows, by one dense linear programme
    each."""
    n = len(rows)
    pairs = [(j, k) for j, k in product(range(n), repeat=2) if j != k and bounds[j, k] < np.inf]
    constraints = np.zeros((len(pairs) + 1, n))
    for row, (j, k) in zip(constraints, pairs, strict=False):
        row[j], row[k] = 1.0, -np.exp(bounds[j, k])
    losses = np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        found = linprog(
            -rows[i], constraints, np.zeros(len(constraints)), rows[[j]], [1.0], method="highs"
        )
        losses[i, j] = np.log(-found.fun) if found.status == 0 else np.inf
    return losses


def test_losses_are_those_of_linear_programmes_and_bound_them_where_a_search_stops_at_once(rng):
    excess = []
    for _ in range(30):
        n = int(rng.integers(2, 7))
        rows, bounds = random_chain(rng, n), random_metric(rng, n)
        solved = solved_losses(rows, bounds)
        # the tolerances of the solver
        np.testing.assert_allclose(log_ratios(rows, bounds), solved, atol=1e-6)
        stopped = log_ratios(rows, bounds, patience=-1)
        assert (stopped >= solved - 1e-6).all()
        finite = np.isfinite(stopped)
        excess.append((stopped[finite] - solved[finite]).max())
    assert max(excess) > 0.1


def test_components_without_bounds_between_them_have_the_losses_of_linear_programmes():
    apart = np.where(np.eye(4) == 1, 0.0, np.kron([[0.1, np.inf], [np.inf, 0.2]], np.ones((2, 2))))
    # equal likelihoods of one component hide the gain of those of the other
    rows = 0.1 + 0.6 * np.eye(4)
    np.testing.assert_allclose(log_ratios(rows, apart), solved_losses(rows, apart), atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 1.0, 10.0, 50.0])
def test_with_one_bound_for_all_pairs_it_is_the_loss_function(rng, alpha):
    for n in (2, 20, *[3, 5] * 30):
        rows = random_chain(rng, n)
        losses, exact = (
            log_ratios(rows, alpha * (1 - np.eye(n))),
            loss_mpmath(tpl.TransitionMatrix(rows), alpha),
        )
        assert exact * (1 - 1e-15) <= losses.max() <= exact + 1e-12


def exact_step(P, known, bound):
    """The leakages about two states, whose likelihoods have one ratio: the recursion evaluates its
    two ends."""
    ends = (mpmath.exp(known[0]), mpmath.exp(-known[1]))
    rows = [[x * mpmath.mpf(p) + mpmath.mpf(q) for x in ends] for p, q in P.tolist()]
    return [bound[k] + mpmath.log(max(map(operator.truediv, rows[k], rows[1 - k]))) for k in (0, 1)]


def test_rounding_never_lowers_a_leakage(rng):
    for scale in 10.0 ** rng.uniform(-1, 2, 60):
        B, F = rng.dirichlet([1, 1], (2, 2))
        bounds = scale * rng.random((3, 2))
        matrices = [[[0, there], [back, 0]] for there, back in bounds]
        found = tf.pairwise_leakage(matrices, B, F).tpl[1, [0, 1], [1, 0]].tolist()
        with mpmath.workdps(60):
            first, middle, last = (list(map(mpmath.mpf, row)) for row in bounds.tolist())
            past, future = exact_step(B, first, middle), exact_step(F, last, middle)
            exact = [b + f - bound for b, f, bound in zip(past, future, middle, strict=True)]
        assert all(a <= b <= a + 1e-12 * (1 + scale) for a, b in zip(exact, found, strict=True))


def potentials(rng, bounds, count):
    """Likelihoods (count, n) whose logarithms differ by at most the bounds, on many of their
    facets."""
    levels = rng.uniform(0, 2 * bounds[bounds < np.inf].max() + 0.1, (count, len(bounds)))
    return np.exp((bounds + levels[:, None, :]).min(axis=2))


def check_outputs(rng, count):
    """No output of a random mechanism, at three times, exceeds a leakage; how close the closest
    comes to its TPL."""
    n = int(rng.integers(2, 5))
    forward = tpl.TransitionMatrix(random_chain(rng, n) * 0.98 + 0.02 / n, normalize=True)
    backward = forward.reverse(forward.stationary())
    metrics = [random_metric(rng, n) for _ in range(3)]
    leakage = tf.pairwise_leakage(metrics, backward, forward)
    x = [potentials(rng, metric, count) for metric in metrics]
    B, F = backward.toarray(), forward.toarray()
    past, future = [x[0]], [x[2]]
    for t in (1, 2):
        past.append(x[t] * (past[-1] @ B.T))
        future.append(x[2 - t] * (future[-1] @ F.T))
    closest = 0.0
    for t in range(3):
        seen = {"bpl": past[t], "fpl": future[2 - t], "tpl": past[t] * future[2 - t] / x[t]}
        for name, likelihoods in seen.items():
            logs = np.log(likelihoods)
            most = (logs[:, :, None] - logs[:, None, :]).max(axis=0)
            bounds = getattr(leakage, name)[t]
            assert (most <= bounds + 1e-13).all(), name  # 1e-13: rounding errors of `most`
        finite = (bounds > 0.0) & (bounds < np.inf)
        closest = max(closest, (most[finite] / bounds[finite]).max(initial=0.0))
    return closest


@pytest.mark.parametrize("chains", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_no_output_exceeds_its_leakage(rng, chains):
    assert max(check_outputs(rng, 200) for _ in range(chains)) > 0.9


def test_bounds_for_neighbours_alone_imply_those_of_all_others(rng):
    cells = np.array([*product(range(4), repeat=2)])
    distances = np.abs(cells[:, None] - cells).sum(axis=2)
    near = (distances == 1) / (distances == 1).sum(axis=1, keepdims=True)
    walk, edges = 0.5 * np.eye(16) + 0.5 * near, np.where(distances <= 1, 0.2 * distances, np.inf)
    every, some = (
        tf.pairwise_leakage(bounds, walk, walk, horizon=10).tpl
        for bounds in (0.2 * distances, edges)
    )
    np.testing.assert_allclose(some, every, rtol=1e-12)
    for there, back in rng.random((20, 2)).tolist():
        path = tf.pairwise_leakage(
            [[0, there, np.inf], [np.inf, 0, back], [np.inf, np.inf, 0]], None, None, horizon=1
        )
        assert path.tpl[0, 0, 2] >= Fraction(there) + Fraction(back)  # rounded up


def test_leakage_takes_the_matrix_of_each_step_one_side_alone_and_labels(rng):
    first, second = (random_chain(rng, 3) for _ in range(2))
    metrics = [random_metric(rng, 3) for _ in range(3)]
    leakage = tf.pairwise_leakage(metrics, None, [first, second])
    last = metrics[1] + solved_losses(second, metrics[2])
    np.testing.assert_allclose(leakage.bpl, metrics)
    np.testing.assert_allclose(leakage.fpl[1], last, atol=1e-6)
    np.testing.assert_allclose(leakage.tpl, leakage.fpl, rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        leakage.bpl[0] = 0.0
    labels = ["c", "a", "b"]
    named = tpl.TransitionMatrix(first, states=labels)
    frame = pd.DataFrame(metrics[0], labels, labels)
    by_label = tf.pairwise_leakage([frame.sort_index(), frame.T.sort_index().T], named, None)
    np.testing.assert_array_equal(
        by_label.bpl, tf.pairwise_leakage([metrics[0]] * 2, first, None).bpl
    )
    one_time = tf.pairwise_leakage(frame.sort_index().sort_index(axis=1), named, None, horizon=1)
    np.testing.assert_array_equal(one_time.bpl[0], by_label.bpl[0])
    assert tf.pairwise_leakage(frame, None, None, horizon=2).tpl.shape == (2, 3, 3)


def test_bounds_of_no_time_are_refused():
    with pytest.raises(ValueError, match="for each release, at least one, found 0"):
        tf.pairwise_leakage(np.zeros((0, 2, 2)), None, None)


def exact_ratio(q, d, factor):
    """The largest q x / d x over likelihoods x between 1 and the factor."""
    found = mpmath.mpf(0)
    for chosen in product([mpmath.mpf(1), factor], repeat=len(q)):
        gained = mpmath.fsum(map(operator.mul, map(mpmath.mpf, q), chosen))
        paid = mpmath.fsum(map(operator.mul, map(mpmath.mpf, d), chosen))
        found = max(found, gained / paid)
    return found


def test_proved_ratios_are_not_below_exact_ones_by_any_digit(rng):
    """Logarithms are rounded up once more, which hides the last digits of ratios."""
    for alpha in 10.0 ** rng.uniform(-3, 1.5, 40):
        n = int(rng.integers(2, 5))
        rows = frozen(rng.dirichlet(np.ones(n), n))
        bounds = alpha * (1.0 - np.eye(n))
        tilted = bounds * (1.0 + 1e-13 * rng.random((n, n)))
        found = np.empty(n)
        tree_simplex.largest_ratios(rows, 0, bounds, tilted, bounds, n, found)
        with mpmath.workdps(40):
            factor = mpmath.exp(mpmath.mpf(float(alpha)))
            for other in range(1, n):
                exact = exact_ratio(rows[0].tolist(), rows[other].tolist(), factor)
                assert exact <= found[other] <= exact * (1 + mpmath.mpf(1e-13) * (1 + alpha))


def corners_of_three(factors):
    """The likelihoods of three states, the first one 1, at which two of the bounds x_j <=
    factors[j, k] x_k are tight that join all states, and all others hold."""
    for edges in combinations(permutations(range(3), 2), 2):
        x = {0: mpmath.mpf(1)}
        for j, k in (*edges, *edges):
            if k in x:
                x.setdefault(j, factors[j, k] * x[k])
            elif j in x:
                x[k] = x[j] / factors[j, k]
        if len(x) == 3 and all(
            x[j] <= factors[j, k] * x[k] * (1 + mpmath.mpf(1e-35)) for j, k in factors
        ):
            yield [x[0], x[1], x[2]]


def test_proved_ratios_of_bounds_that_differ_are_not_below_exact_ones_by_any_digit(rng):
    for scale in 10.0 ** rng.uniform(-2, 1.0, 60):
        rows = frozen(rng.dirichlet(np.ones(3), 3))
        bounds = scale * random_metric(rng, 3)
        if np.isinf(bounds).any():
            continue
        tilted = bounds * (1.0 + 1e-13 * rng.random((3, 3)))
        found = np.empty(3)
        tree_simplex.largest_ratios(rows, 0, bounds, tilted, bounds, 9, found)
        with mpmath.workdps(40):
            factors = {
                (j, k): mpmath.exp(mpmath.mpf(float(bounds[j, k])))
                for j, k in permutations(range(3), 2)
            }
            corners = [*corners_of_three(factors)]
            for other in (1, 2):
                ratios = [
                    mpmath.fdot(zip(rows[0].tolist(), x, strict=True))
                    / mpmath.fdot(zip(rows[other].tolist(), x, strict=True))
                    for x in corners
                ]
                assert max(ratios) <= found[other] <= max(ratios) * (1 + mpmath.mpf(1e-11))
