"""The filter: against Algorithm 8, high precision, and every path of adaptive releases."""

import pickle
from copy import copy
from itertools import permutations

import mpmath
import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import _prefix_sums, exact_loss, exact_tpl, largest_loss
from tests.work import lines_run
from tplrepro.leakage.filter import LeakageExceededError
from tplrepro.leakage.loss_over_steps import LossOverSteps
from tplrepro.leakage.temporal import LossCycle

# Fig. 8 of [1].
BACKWARD, FORWARD = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]


def test_a_filter_with_the_greatest_floor_spends_as_algorithm_8():
    floor = tpl.allocate_by_upper_bound(1.0, BACKWARD, FORWARD)
    account = tpl.TemporalFilter(1.0, BACKWARD, FORWARD, floor=floor)
    budgets = []
    for _ in range(300):
        budgets.append(account.remaining)
        account.spend(budgets[-1])
    expected = tpl.allocate_by_quantification(1.0, BACKWARD, FORWARD, 301)[:-1]
    np.testing.assert_allclose(budgets, expected, rtol=0, atol=1e-12)
    with pytest.raises(
        ValueError, match="floor must keep the TPL within alpha = 1 for ever, found 0.20387"
    ):
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
def test_rounding_next_to_a_small_leakage_never_exceeds_alpha(alpha):
    """Where L is far below the level, its own margin is no margin for the difference."""
    P = [[0.5 + 2.0**-30, 0.5 - 2.0**-30], [0.5, 0.5]]
    account, loss = tpl.TemporalFilter(alpha, P, None), exact_loss(P)
    for first in np.linspace(0.01, alpha, 20, endpoint=False).tolist():
        rest = copy(account).spend(first).remaining
        with mpmath.workdps(40):
            assert loss(first) + mpmath.mpf(rest) <= alpha


def adaptive_outputs(rng, account, n, horizon):
    """The likelihoods of all output paths of one mechanism, which chooses each budget by the
    outputs before."""
    if horizon == 0:
        return [[]]
    epsilon = float(rng.choice([0.3, 0.8, 1.0])) * account.remaining
    if epsilon == 0.0:
        following, outputs = copy(account).skip(), [np.ones(n)]
    else:
        extremes = rng.integers(0, 2, n)
        keep = (
            np.exp(epsilon) / (1 + np.exp(epsilon))
            if rng.random() < 0.5
            else 1 - np.exp(-epsilon) * rng.random()
        )
        low, high = sorted((keep, min(keep * np.exp(epsilon), 1 - (1 - keep) * np.exp(-epsilon))))
        of_one = np.where(extremes == 1, high, low)
        following, outputs = copy(account).spend(epsilon), [of_one, 1 - of_one]
    return [
        [x, *later] for x in outputs for later in adaptive_outputs(rng, following, n, horizon - 1)
    ]


@pytest.mark.parametrize(
    ("chains", "horizon"), [(40, 4), pytest.param(1000, 7, marks=pytest.mark.slow)]
)
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
        backward = [
            P.reverse(initial @ np.linalg.matrix_power(P.probabilities, t))
            for t in range(horizon - 1)
        ]
        assert tf.measured_leakage(np.log(outputs), backward, P).tpl.max() <= alpha * (1 + 1e-12)
        paths += len(outputs)
    assert paths > 7 * chains


def test_memory_of_a_filter_does_not_grow_and_a_refused_release_spends_nothing():
    account = tpl.TemporalFilter(1.0, BACKWARD, FORWARD, floor=0.1)
    account.spend(0.1, 10)
    size = len(pickle.dumps(account))
    for budget in np.random.default_rng(0).uniform(0.05, 0.1, 5000).tolist():
        account.spend(budget)
    assert len(pickle.dumps(account)) == size
    state = account.remaining, account.tolerated, account.bpl
    with pytest.raises(
        LeakageExceededError,
        match=r"epsilon must be at most 0\.\d+, .* found 0.3 for release \d+ of 900",
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
    assert account.remaining == plain.budget_within(1.0, floor=0.1) < plain.budget_within(1.0)
    assert account.tolerated == pickle.loads(pickle.dumps(account)).tolerated
    rest = other.remaining
    other.compose(rest)
    assert account.remaining == rest > other.remaining
    assert account.tpl.max() <= 1.0
    assert (
        tpl.TemporalAccountant(BACKWARD, FORWARD).compose(0.9).budget_within(1.0, floor=0.2) == 0.0
    )
    for name in ("remaining", "tolerated"):
        with pytest.raises(ValueError, match=f"{name} needs an account with a level, found none"):
            getattr(plain, name)


def exact_power(P, steps):
    """The rows of P^steps in high precision, divided by their sums."""
    with mpmath.workdps(40):
        power = mpmath.matrix(np.asarray(P).tolist()) ** steps
        rows = power.tolist()
        return [[p / mpmath.fsum(row) for p in row] for row in rows]


def exact_largest_loss(P, steps, alpha):
    """L of the exact power, as an mpmath number."""
    with mpmath.workdps(40):
        rows = exact_power(P, steps)
        sums = [pair for q, d in permutations(rows, 2) for pair in _prefix_sums(q, d)]
        return largest_loss(sums, alpha)


def over_steps(P):
    return LossOverSteps(LossCycle([tpl.PrivacyLossFunction(P)], []), "backward")


NEARLY_EQUAL = [[0.5 + 2.0**-50, 0.5 - 2.0**-50], [0.5 - 2.0**-51, 0.5 + 2.0**-51]]
THIRDS = [[0.6, 0.3, 0.1], [0.25, 0.35, 0.4], [0.3, 0.3, 0.4]]
SLOW = [[0.999, 0.001], [0.002, 0.998]]
RING = np.roll(np.eye(4), 1, axis=1) * 0.9 + 0.025


@pytest.mark.parametrize(
    "P", [NEARLY_EQUAL, THIRDS, SLOW, RING, FORWARD], ids="equal thirds slow ring fig8".split()
)
@pytest.mark.parametrize("alpha", [1e-16, 0.3, 30.0])
def test_the_loss_over_a_pause_is_never_below_the_exact_one(P, alpha):
    pauses = over_steps(P)
    for steps in (1, 2, 3, 7, 16, 17, 22, 26, 30, 100, 1000, 10**6):
        loss, exact = pauses.bound(0, steps), exact_largest_loss(P, steps, alpha)
        assert loss.at_most(alpha) >= exact
        assert loss.at_most(alpha) <= exact * (1 + 1e-9) + 1e-9 * min(alpha, 1.0)
        for level in (0.0, exact * 1e-3, exact, 2 * exact + 1e-30):
            within = min(loss.inverse_within(float(level), alpha), alpha)
            assert exact_largest_loss(P, steps, within) <= level or within == level == 0.0


@pytest.mark.parametrize(
    "sides", [(FORWARD, FORWARD), (SLOW, SLOW), (RING.T, RING), (None, RING), (SLOW, None)]
)
@pytest.mark.parametrize("pause", [1, 3, 15, 40, 100])
def test_no_leakage_during_a_pause_exceeds_alpha(sides, pause):
    """All times of the pause one by one in high precision; for short pauses a little more is too
    much."""
    account = tpl.TemporalFilter(1.0, *sides).spend(0.3).spend(0.2)
    rest = account.skip(pause).remaining

    def leaks(side, steps, leakage):
        if steps == 0:
            return leakage
        return 0 if sides[side] is None else exact_largest_loss(sides[side], steps, leakage)

    def highest(budget):
        """The largest TPL from the first release to the one after the pause."""
        bpl = 0.2 + leaks(0, 1, 0.3)
        first = 0.3 + leaks(1, 1, 0.2 + leaks(1, pause + 1, budget))
        return max(
            first,
            *(
                leaks(0, time, bpl) + leaks(1, pause + 1 - time, budget)
                for time in range(pause + 2)
            ),
        )

    with mpmath.workdps(40):
        assert highest(rest) <= 1.0
        assert highest(rest * (1 + 1e-9 if pause < 16 else 1.05)) > 1.0


@pytest.mark.parametrize("steps", [12, 30, 100, 101])
@pytest.mark.parametrize("forward", ["queue", "fast"])
def test_the_time_of_a_pause_that_leaks_most_limits_the_next_release(forward, steps):
    """States travel through a queue, in which nothing is lost, until they are mixed: each time of
    the pause counts."""
    queue = np.roll(np.eye(steps), 1, axis=1)
    queue[-1] = 1.0 / steps
    after = queue if forward == "queue" else 0.9 * np.eye(steps) + 0.1 / steps
    rest = tpl.TemporalFilter(1.0, queue, after).spend(0.4).skip(steps - 1).remaining
    losses = [
        [tpl.PrivacyLossFunction(np.linalg.matrix_power(P, k)) for k in range(steps + 1)]
        for P in (queue, after)
    ]
    totals = [losses[0][k](0.4) + losses[1][steps - k](rest) for k in range(steps + 1)]
    assert (1.0 - 1e-9 if steps < 16 else 0.97) < max(totals) <= 1.0 + 1e-12
    assert max(totals[1:-1]) > max(totals[0], totals[-1]) + 0.01


@pytest.mark.parametrize("steps", [3000, 10007, 30011])
def test_products_of_many_factors_err_on_the_safe_side(steps):
    P = (1 - 1e-4) * np.eye(6) + 1e-4 * np.random.default_rng(1).dirichlet(np.ones(6), 6)
    loss = over_steps(P).bound(0, steps)
    for alpha in (0.1, 3.0, 30.0):
        assert 0 <= loss.at_most(alpha) - exact_largest_loss(P, steps, alpha) < 1e-9


def test_a_year_of_minutes_is_skipped_at_once():
    P = (
        0.999 * np.eye(30)
        + 0.001 * tpl.TransitionMatrix.random(30, rng=np.random.default_rng(0)).toarray()
    )
    account = tpl.TemporalFilter(1.0, P, P).spend(0.4).skip()
    assert account.remaining < 0.9
    size = len(pickle.dumps(account))
    short = copy(account)
    work_for_hours = lines_run(lambda: short.skip(525).remaining)
    work_for_a_year = lines_run(lambda: account.skip(525_600).remaining)
    assert work_for_a_year < 5 * work_for_hours  # not the thousand times as many of one by one
    assert len(pickle.dumps(account)) < size + 100
    rest = account.remaining
    assert rest == pytest.approx(1.0)
    assert lines_run(lambda: account.remaining) < 50
    for _ in range(100):
        account.skip()
        assert account.remaining == rest


@pytest.mark.parametrize(("share", "digits"), [(1.5, 6), (1 + 1e-8, 7)])
def test_a_refusal_shows_as_many_digits_as_tell_the_budgets_apart(share, digits):
    account = tpl.TemporalFilter(1.0, BACKWARD, FORWARD, floor=0.1)
    epsilon = account.remaining * share
    largest, found = f"{account.remaining:.{digits}g}", f"{epsilon:.{digits}g}"
    assert largest != found
    with pytest.raises(LeakageExceededError, match=f"at most {largest}, .*found {found} for"):
        account.spend(epsilon)


@pytest.mark.parametrize("pause", [1, 2])
def test_a_pause_leaves_what_is_left_at_the_last_time_that_has_passed(pause):
    account = tpl.TemporalFilter(1.0, BACKWARD, FORWARD).spend(0.95)
    bpl, bound = account.state.bpl, account.state.bound
    backward, forward = (
        tpl.PrivacyLossFunction(np.linalg.matrix_power(side, pause)) for side in (BACKWARD, FORWARD)
    )
    left = account.skip(pause).settled()
    assert left.bpl == pytest.approx(backward.at(bpl), rel=1e-9)
    assert left.bound == pytest.approx(forward.inverse(bound), rel=1e-9)
