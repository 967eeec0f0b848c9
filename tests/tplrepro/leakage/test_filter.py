"""The filter: against Algorithm 8, high precision, and every path of adaptive releases."""

import pickle
from copy import copy

import mpmath
import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import exact_loss, exact_tpl
from tplrepro.leakage.filter import LeakageExceededError

# Fig. 8 of [1].
BACKWARD, FORWARD = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]


def test_with_the_greatest_floor_it_is_algorithm_8_without_a_horizon():
    floor = tpl.allocate_by_upper_bound(1.0, BACKWARD, FORWARD)
    account = tpl.TemporalFilter(1.0, BACKWARD, FORWARD, floor=floor)
    budgets = []
    for _ in range(300):
        budgets.append(account.remaining)
        account.spend(budgets[-1])
    expected = tpl.allocate_by_quantification(1.0, BACKWARD, FORWARD, 301)[:-1]
    np.testing.assert_allclose(budgets, expected, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="floor must keep the TPL within alpha = 1 for ever, found 0.20387"):
        tpl.TemporalFilter(1.0, BACKWARD, FORWARD, floor=floor * (1 + 1e-9))


@pytest.mark.parametrize("sides", [(None, [[0.95, 0.05], [0.05, 0.95]]), (BACKWARD, BACKWARD)])
def test_a_count_after_a_pause_is_as_many_releases(sides):
    """The first release after the pause has the leakages of the one before it."""
    account = tpl.TemporalFilter(1.0, *sides).spend(0.5).skip(50)
    single = copy(account)
    with pytest.raises(LeakageExceededError, match="for release 3 of 1000"):
        account.spend(0.5, 1000)
    with pytest.raises(LeakageExceededError):
        single.spend(0.5).spend(0.5).spend(0.5)
    assert account.spend(0.5, 2).remaining == single.remaining


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_no_leakage_exceeds_alpha_in_high_precision(share):
    """Every release spends all that remains."""
    floor = share * tpl.allocate_by_upper_bound(0.7, BACKWARD, FORWARD)
    account = tpl.TemporalFilter(0.7, BACKWARD, FORWARD, floor=floor)
    budgets = []
    for _ in range(150):
        if (rest := account.remaining) > 0.0:
            budgets.append(rest)
            account.spend(rest)
    assert 0.7 - 1e-6 < max(exact_tpl(budgets, exact_loss(BACKWARD), exact_loss(FORWARD))) <= 0.7


@pytest.mark.parametrize("alpha", [30.0, 100.0])
def test_rounding_next_to_a_small_leakage(alpha):
    """Where L is far below the level, its own margin is no margin for the difference."""
    P = [[0.5 + 2.0**-30, 0.5 - 2.0**-30], [0.5, 0.5]]
    account, loss = tpl.TemporalFilter(alpha, P), exact_loss(P)
    for first in np.linspace(0.01, alpha, 20, endpoint=False).tolist():
        rest = copy(account).spend(first).remaining
        with mpmath.workdps(40):
            assert loss(first) + mpmath.mpf(rest) <= alpha


def adaptive_outputs(rng, account, n, horizon):
    """The likelihoods of all output paths of one mechanism, which chooses each budget by the outputs before."""
    if horizon == 0:
        return [[]]
    epsilon = float(rng.choice([0.3, 0.8, 1.0])) * account.remaining
    if epsilon == 0.0:
        following, outputs = copy(account).skip(), [np.ones(n)]
    else:
        extremes = rng.integers(0, 2, n)
        keep = np.exp(epsilon) / (1 + np.exp(epsilon)) if rng.random() < 0.5 else 1 - np.exp(-epsilon) * rng.random()
        low, high = sorted((keep, min(keep * np.exp(epsilon), 1 - (1 - keep) * np.exp(-epsilon))))
        of_one = np.where(extremes == 1, high, low)
        following, outputs = copy(account).spend(epsilon), [of_one, 1 - of_one]
    return [[x, *later] for x in outputs for later in adaptive_outputs(rng, following, n, horizon - 1)]


@pytest.mark.parametrize(("chains", "horizon"), [(40, 4), pytest.param(1000, 7, marks=pytest.mark.slow)])
def test_no_path_of_adaptive_releases_leaks_more(chains, horizon):
    rng, paths = np.random.default_rng(5), 0
    for _ in range(chains):
        n, alpha = int(rng.integers(2, 4)), float(rng.uniform(0.3, 3))
        P = tpl.TransitionMatrix(rng.random((n, n)) ** 2 + 0.02, normalize=True)
        if rng.random() < 0.5:
            initial, sides = rng.dirichlet(np.ones(n)), (tpl.PriorFreeLoss(P), tpl.PriorFreeLoss(P))
        else:  # the reversal under the prior, the same at each time
            initial = P.stationary()
            sides = P.reverse(initial), P
        floor = float(rng.choice([0.0, 0.5]))
        try:
            floor *= tpl.allocate_by_upper_bound(alpha, *sides)
        except tpl.NoFiniteSupremumError:
            floor = 0.0
        outputs = adaptive_outputs(rng, tpl.TemporalFilter(alpha, *sides, floor=floor), n, horizon)
        backward = [P.reverse(initial @ np.linalg.matrix_power(P.probabilities, t)) for t in range(horizon - 1)]
        assert tf.measured_leakage(np.log(outputs), backward, P).tpl.max() <= alpha * (1 + 1e-12)
        paths += len(outputs)
    assert paths > 7 * chains


def test_memory_does_not_grow_and_a_refused_release_spends_nothing():
    account = tpl.TemporalFilter(1.0, BACKWARD, FORWARD, floor=0.1)
    account.spend(0.1, 10)
    size = len(pickle.dumps(account))
    for budget in np.random.default_rng(0).uniform(0.05, 0.1, 5000).tolist():
        account.spend(budget)
    assert len(pickle.dumps(account)) == size
    state = account.remaining, account.tolerated, account.bpl
    with pytest.raises(
        LeakageExceededError, match=r"epsilon must be at most 0\.\d+, .* found 0.3 for release \d+ of 900"
    ):
        account.spend(0.3, 900)
    assert (account.remaining, account.tolerated, account.bpl) == state
    assert "floor=0.1" in repr(account)


def test_an_account_with_a_level_refuses_what_would_exceed_it_and_copies_are_independent():
    account = tpl.TemporalAccountant(BACKWARD, FORWARD, alpha=1.0, floor=0.1)
    account.compose(0.4).skip(2).compose(0.1, 3)
    other = copy(account)
    with pytest.raises(LeakageExceededError):
        account.compose(0.9)
    assert account.ledger == ((0.4, 1), (0.0, 2), (0.1, 3))
    plain = tpl.TemporalAccountant(BACKWARD, FORWARD).compose(0.4).skip(2).compose(0.1, 3)
    assert account.remaining() == plain.remaining(1.0, floor=0.1) < plain.remaining(1.0)
    assert account.tolerated == pickle.loads(pickle.dumps(account)).tolerated
    rest = other.remaining()
    other.compose(rest)
    assert account.remaining() == rest > other.remaining()
    assert account.tpl.max() <= 1.0
    assert tpl.TemporalAccountant(BACKWARD, FORWARD).compose(0.9).remaining(1.0, floor=0.2) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda account: account.remaining(1.0, 1e-6, adaptive=True), "delta must be 0 if releases depend on outputs"),
        (lambda account: account.remaining(), "remaining needs a level alpha, found none"),
        (lambda account: account.tolerated, "tolerated needs an account with a level, found none"),
        (lambda account: account.remaining(1.0, 1e-6, floor=0.1), "a floor is a pure budget"),
        (lambda account: account.remaining(1.0, plans=0), "plans must be"),
    ],
)
def test_what_cannot_remain_is_refused_and_plans_share_delta(call, message):
    account = tpl.TemporalAccountant(BACKWARD, FORWARD).compose(0.1)
    with pytest.raises(ValueError, match=message):
        call(account)
    assert account.remaining(1.0, 1e-6, adaptive=True, plans=4) == account.remaining(1.0, 2.5e-7)
