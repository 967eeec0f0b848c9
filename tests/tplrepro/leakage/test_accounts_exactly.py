"""Pure leakages of accounts that skip, copy, pickle and read, against products of matrices with 60
digits."""

import copy
import pickle
from itertools import permutations

import mpmath
import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import _prefix_sums, largest_loss
from tplrepro.leakage.temporal import ROUNDING_PER_RELEASE


def exact_matrix(rows):
    """A matrix of mpmath numbers whose rows are divided by their sums."""
    matrix = mpmath.matrix(rows.tolist())
    for i in range(matrix.rows):
        total = mpmath.fsum(matrix[i, j] for j in range(matrix.cols))
        for j in range(matrix.cols):
            matrix[i, j] /= total
    return matrix


def loss(steps, leakage):
    """L of the product of some steps."""
    product = steps[0]
    for step in steps[1:]:
        product = product * step
    rows = product.tolist()
    sums = [pair for q, d in permutations(rows, 2) for pair in _prefix_sums(q, d)]
    return largest_loss(sums, leakage)


def leakages(budgets, backward, forward):
    """BPL, FPL and TPL with the matrices of cycles, which of step t are those of phase t."""
    p = len(forward)
    horizon = len(budgets)
    bpl = [mpmath.mpf(budget) for budget in budgets]
    fpl = list(bpl)
    released = [time for time in range(horizon) if budgets[time] > 0.0]
    for time in range(horizon):
        earlier = [other for other in released if other < time]
        if earlier:
            steps = [backward[step % p] for step in range(earlier[-1], time)]
            bpl[time] += loss(steps[::-1], bpl[earlier[-1]])
    for time in reversed(range(horizon)):
        later = [other for other in released if other > time]
        if later:
            steps = [forward[step % p] for step in range(time, later[0])]
            fpl[time] += loss(steps, fpl[later[0]])
    return bpl, fpl, [b + f - mpmath.mpf(e) for b, f, e in zip(bpl, fpl, budgets, strict=True)]


def random_ledger(account, rng):
    """An account after random releases and pauses, and the budgets of its times."""
    budgets = []
    for _ in range(int(rng.integers(1, 7))):
        count = int(rng.integers(1, 4))
        budget = 0.0
        if rng.random() < 0.25:
            account.skip(count)
        else:
            budget = float(10.0 ** rng.uniform(-3, 0.7))
            account.compose(budget, count)
        budgets += [budget] * count
        change = rng.random()
        if change < 0.2:
            account = pickle.loads(pickle.dumps(account))
        elif change < 0.4:
            account = copy.copy(account)
        if rng.random() < 0.5:
            _ = account.tpl
    return account, budgets


@mpmath.workdps(60)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 25))]
)
@pytest.mark.parametrize("kind", [tpl.TemporalAccountant, tf.EventAccountant])
def test_leakages_are_those_of_the_products_between_releases(kind, seed):
    rng = np.random.default_rng([64, seed])
    for _ in range(8):
        n = int(rng.integers(2, 4))
        p = int(rng.integers(1, 4))
        backward = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), (p, n))
        forward = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), (p, n))
        account = kind(tpl.Cycle(list(backward)), tpl.Cycle(list(forward)))
        account, budgets = random_ledger(account, rng)
        if not any(budgets):
            continue
        exact = leakages(budgets, *(list(map(exact_matrix, side)) for side in (backward, forward)))
        rounding = ROUNDING_PER_RELEASE * len(budgets)
        for name, truths in zip(("bpl", "fpl", "tpl"), exact, strict=True):
            found = getattr(account, name)
            for value, truth in zip(found.tolist(), truths, strict=True):
                assert value >= truth * (1 - rounding)
                assert value <= truth * (1 + rounding + 1e-13) + 3e-14
            if not all(budgets) and name != "tpl":  # rounded up next to pauses
                assert all(a >= b for a, b in zip(found.tolist(), truths, strict=True))
