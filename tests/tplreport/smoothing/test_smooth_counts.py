"""What users get from noisy counts and a public chain: less error, bands, and no surprises."""

import re
import warnings
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import tplreport as tr
import tplrepro as tpl
from tests.tplreport.smoothing.worlds import TWO, counts_of, dense_chain, laplace, law_of, map_chain
from tplreport.smoothing.chain_over_time import chain_over_time
from tplreport.smoothing.methods import Method
from tplreport.smoothing.noise import variances_of_noise
from tplreport.smoothing.possible import possible_counts
from tplreport.smoothing.tuning import FEW

RELEASED = {"epsilons": 0.3, "sensitivity": 2}
HOURS = pd.date_range("2024-05-06", periods=72, freq="1h", name="time")


def error_of(result, true):
    return np.abs(result.estimate.to_numpy() - true).mean()


def share_inside(result, true):
    return ((result.lower.to_numpy() <= true) & (true <= result.upper.to_numpy())).mean()


@pytest.fixture
def two_places():
    """True and noisy counts of 400 people at home and at work."""
    rng = np.random.default_rng(7)
    true = counts_of(TWO, 400, len(HOURS), rng)
    noisy = pd.DataFrame(true + laplace(true.shape, 0.3, rng), HOURS, ["home", "work"])
    return true, noisy


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(
    ("people", "epsilon", "n", "most"),
    [(450, 0.169, 2, 0.6), (450, 0.3, 20, 0.5), (2_000, 0.05, 25, 0.25), (800, 3.0, 6, 0.95)],
)
def test_errors_shrink_and_bands_cover(people, epsilon, n, most, online):
    errors, raw_errors, inside = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        P = TWO
        if n > 2:
            P = map_chain(5, rng) if n == 25 else dense_chain(n, rng)
        true = counts_of(P, people, 100, rng)
        noisy = true + laplace(true.shape, epsilon, rng)
        result = tr.smooth_counts(noisy, chain=P, epsilons=epsilon, sensitivity=2, online=online)
        errors.append(((result.estimate.to_numpy() - true) ** 2).mean())
        raw_errors.append(((noisy - true) ** 2).mean())
        inside.append(share_inside(result, true))
    assert np.sqrt(np.mean(errors)) < most * np.sqrt(np.mean(raw_errors))
    assert 0.86 < np.mean(inside) < 0.95
    assert result.gain == pytest.approx(np.sqrt(raw_errors[-1] / errors[-1]), rel=0.35)


def test_an_online_estimate_never_uses_the_future(two_places):
    _, noisy = two_places
    noisy.iloc[[0, 30]] = np.nan
    whole = tr.smooth_counts(noisy, chain=TWO, **RELEASED, online=True)
    for end in (5, FEW + 1, 45, 60):
        until = noisy.iloc[:end]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = tr.smooth_counts(until, chain=TWO, **RELEASED, online=True)
        for name in ("estimate", "lower", "upper"):
            now, later = getattr(first, name), getattr(whole, name).iloc[:end]
            np.testing.assert_allclose(now, later, rtol=0, atol=1e-9)
    assert whole.estimate.iloc[0].isna().all()  # nothing was seen before
    revised = tr.smooth_counts(noisy, chain=TWO, **RELEASED).estimate
    assert revised.notna().to_numpy().all()


def test_settings_that_do_not_surprise_are_chosen_when_twice_as_much_was_seen(
    two_places, monkeypatch
):
    lengths = []

    def noted(self, model):
        lengths.append(len(model))
        return choose(self, model)

    choose = Method.choose
    _, noisy = two_places
    monkeypatch.setattr(Method, "choose", noted)
    tr.smooth_counts(noisy, chain=TWO, **RELEASED, online=True)
    assert lengths.count(len(noisy)) == 4  # the chain and its rivals
    assert [length for length in lengths if length < len(noisy)] == [FEW, 2 * FEW]


def test_columns_are_states_by_their_labels(two_places):
    _, noisy = two_places
    chain = tpl.TransitionMatrix(TWO, ["home", "work"])
    result = tr.smooth_counts(noisy, chain=chain, **RELEASED)
    turned = tr.smooth_counts(noisy[["work", "home"]], chain=chain, **RELEASED)
    pd.testing.assert_frame_equal(turned.estimate[["home", "work"]], result.estimate)
    pd.testing.assert_frame_equal(turned.lower[["home", "work"]], result.lower)
    by_position = tr.smooth_counts(noisy.to_numpy(), chain=TWO, **RELEASED)
    np.testing.assert_allclose(by_position.estimate, result.estimate)
    named = noisy.set_axis([3, 8], axis=1)
    assert tr.smooth_counts(named, chain=TWO, **RELEASED).estimate.columns.tolist() == [3, 8]


def test_a_state_without_a_column_is_hidden():
    rng = np.random.default_rng(8)
    states = ["away", "home", "work"]
    P = np.array([[0.9, 0.06, 0.04], [0.05, 0.85, 0.1], [0.05, 0.15, 0.8]])
    true = counts_of(P, 2_000, 168, rng)
    noisy = pd.DataFrame(true + laplace(true.shape, 0.3, rng), columns=states)[["work", "home"]]
    chain = tpl.TransitionMatrix(P, states)
    for total in (None, 2_000):
        result = tr.smooth_counts(noisy, chain=chain, **RELEASED, total=total)
        assert (
            error_of(result, true[:, [2, 1]]) < 0.85 * np.abs(noisy - true[:, [2, 1]]).mean().mean()
        )
        assert share_inside(result, true[:, [2, 1]]) > 0.84


def test_hours_without_a_release_are_estimated_with_more_doubt():
    rng = np.random.default_rng(9)
    P = dense_chain(5, rng)
    true = counts_of(P, 1_000, 200, rng)
    noisy = (true + laplace(true.shape, 0.3, rng)).astype(float)
    skipped = rng.random(200) < 0.2
    noisy[skipped] = np.nan
    noisy[~skipped, 2] = np.where(rng.random((~skipped).sum()) < 0.1, np.nan, noisy[~skipped, 2])
    result = tr.smooth_counts(noisy, chain=P, **RELEASED)
    assert result.error.to_numpy()[skipped].mean() > 1.1 * result.error.to_numpy()[~skipped].mean()
    inside = (result.lower.to_numpy() <= true) & (true <= result.upper.to_numpy())
    assert 0.84 < inside[skipped].mean() < 0.97
    # the budgets of times without a release do not count
    budgets = np.where(skipped, np.nan, 0.3)
    same = tr.smooth_counts(noisy, chain=P, epsilons=budgets, sensitivity=2)
    np.testing.assert_array_equal(same.estimate, result.estimate)


def test_a_cycle_follows_the_clock():
    rng = np.random.default_rng(10)
    still, lively = np.array([[0.99, 0.01], [0.01, 0.99]]), np.array([[0.6, 0.4], [0.3, 0.7]])
    cycle = tpl.Cycle([still] * 12 + [lively] * 12, step="1h")
    times = pd.date_range("2024-05-06 07:00", periods=240, freq="1h")
    matrices = [cycle[hour] for hour in times.hour]
    counts = [np.array([500, 500])]
    for matrix in matrices[:-1]:
        moved = [rng.multinomial(there, row) for there, row in zip(counts[-1], matrix, strict=True)]
        counts.append(np.sum(moved, axis=0))
    noisy = pd.DataFrame(np.array(counts) + laplace((240, 2), 0.3, rng), times)
    result = tr.smooth_counts(noisy, chain=cycle, **RELEASED)
    initial = cycle.laws()[7]
    by_list = tr.smooth_counts(noisy, chain=matrices[:-1], **RELEASED, initial=initial)
    np.testing.assert_allclose(result.estimate, by_list.estimate)
    turned = cycle.starting_at("07:00")
    for same in (
        tr.smooth_counts(noisy, chain=turned, **RELEASED),
        tr.smooth_counts(noisy.to_numpy(), chain=turned, **RELEASED),
    ):
        np.testing.assert_allclose(result.estimate, same.estimate)
    late = noisy.set_axis(times + pd.Timedelta("30min"))
    with pytest.raises(ValueError, match="a phase of the cycle begins"):
        tr.smooth_counts(late, chain=cycle, **RELEASED)
    with pytest.raises(ValueError, match="one step of the chain apart, 1h, found 2h;"):
        tr.smooth_counts(noisy.drop(times[5]), chain=cycle, **RELEASED)


@pytest.mark.parametrize("unit", ["h", "D"])
def test_times_are_one_step_apart_by_elapsed_time_or_by_the_clock(unit):
    """Over a night in which clocks go ahead, hours and local days are."""
    times = pd.date_range("2024-03-29", periods=5, freq=f"1{unit}", tz="Europe/Berlin")
    cycle = tpl.Cycle([TWO, TWO], step=f"1{unit}")
    for chain in (TWO, cycle):
        assert len(chain_over_time(chain, [0, 1], times).steps) == 4
    wide = f"1{unit}"
    with pytest.raises(ValueError, match=f"one step of the chain apart, {wide}, found"):
        chain_over_time(cycle, [0, 1], times[[0, 1, 3]])


def test_the_error_for_another_step_names_what_it_found():
    times = pd.to_datetime(["2024-05-06 00:00", "2024-05-06 02:00", "2024-05-06 03:00"])
    found = "apart, 1h, found 2h;"
    with pytest.raises(ValueError, match=found):
        chain_over_time(tpl.Cycle([TWO] * 24, step="1h"), [0, 1], times)
    with pytest.raises(ValueError, match="apart, 2h, found 1h;"):
        chain_over_time(tpl.Cycle([TWO, TWO]), [0, 1], times)
    late = times + pd.to_timedelta([0, 0, 1], unit="h")
    with pytest.raises(ValueError, match=found):
        chain_over_time(tpl.Cycle([TWO] * 24, step="1h"), [0, 1], late)


def test_a_wrong_chain_costs_little_and_is_found():
    rng = np.random.default_rng(11)
    true = counts_of(TWO, 5_000, 168, rng)
    noisy = true + laplace(true.shape, 0.3, rng)
    with pytest.warns(UserWarning, match="the chain does not help: random walk predicts"):
        result = tr.smooth_counts(noisy, chain=[[0.3, 0.7], [0.9, 0.1]], **RELEASED)
    assert error_of(result, true) < 1.05 * np.abs(noisy - true).mean()
    assert result.surprise > 10.0
    assert result.preferred == "random walk"
    assert result.spread > 1.0
    right = tr.smooth_counts(noisy, chain=TWO, **RELEASED)
    assert (right.preferred, abs(right.surprise) < 4.0) == ("chain", True)
    assert set(right.against.index) == {"chain", "random walk", "FAST", "constant"}


@pytest.mark.filterwarnings("ignore:the chain does not help")
def test_people_who_leave_together_do_not_ruin_the_estimates():
    rng = np.random.default_rng(12)
    true = counts_of(TWO, 10_000, 168, rng)
    true[60:84] = rng.binomial(true[60:84], 0.5)
    noisy = true + laplace(true.shape, 0.3, rng)
    result = tr.smooth_counts(noisy, chain=TWO, **RELEASED)
    assert result.turnover > 0.0
    assert error_of(result, true) < 1.02 * np.abs(noisy - true).mean()


@pytest.mark.filterwarnings("ignore:the chain does not help")
@pytest.mark.parametrize("wrong", [False, True])
def test_online_estimates_survive_what_was_never_seen_before(wrong):
    """Settings that were best before would ruin the hours of a sudden event, or the first ones."""
    rng = np.random.default_rng(21)
    true = counts_of(TWO, 50_000, 120, rng)
    chain = TWO
    if wrong:
        chain = [[0.5, 0.5], [0.9, 0.1]]
    else:
        true[70:94] = rng.binomial(true[70:94], 0.5)
    noisy = true + laplace(true.shape, 0.3, rng)
    result = tr.smooth_counts(noisy, chain=chain, **RELEASED, online=True)
    raw = np.abs(noisy - true)
    errors = np.abs(result.estimate.to_numpy() - true)
    assert errors.mean() < 1.02 * raw.mean()
    assert errors.max() < raw.max() + 10.0


def test_an_alarm_is_heeded_after_one_that_changed_nothing():
    """A wrong chain surprises at hour 21 already, where the same settings stay the best; then half
    of the people leave."""
    rng = np.random.default_rng(3)
    own = [[0.97, 0.03, 0.0], [0.02, 0.97, 0.01], [0.0, 0.2, 0.8]]
    wrong = [[0.3, 0.0, 0.7], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    true = counts_of(np.array(own), 52_000, 60, rng)
    true[37:50] = rng.binomial(true[37:50], 0.5)
    noisy = true + laplace(true.shape, 1.1, rng)
    options = {"chain": wrong, "epsilons": 1.1, "sensitivity": 2.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = tr.smooth_counts(noisy, **options, online=True)
    errors = np.abs(result.estimate.to_numpy() - true)
    assert errors.max() < np.abs(noisy - true).max() + 10.0


@dataclass(frozen=True)
class World:
    """True and noisy counts of people, and a chain by which they do not move."""

    true: np.ndarray
    noisy: np.ndarray
    wrong: np.ndarray
    epsilon: float


def random_worlds():
    rng = np.random.default_rng(13)
    while True:
        n = int(rng.choice([2, 3, 5, 10]))
        P, wrong = dense_chain(n, rng), rng.dirichlet(np.full(n, 0.5), size=n)
        true = counts_of(P, int(10 ** rng.uniform(1.5, 5.0)), 80, rng)
        if rng.random() < 1 / 3:
            true[40:60] = rng.binomial(true[40:60], 0.5)
        epsilon = 10.0 ** rng.uniform(-1.5, 0.0)
        yield World(true, true + laplace(true.shape, epsilon, rng), wrong, epsilon)


def loss_by_wrong_chain(world, online=False):
    """The root mean square error of smoothed counts over that of the noisy ones."""
    options = {"epsilons": world.epsilon, "sensitivity": 2, "online": online}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = tr.smooth_counts(world.noisy, chain=world.wrong, **options)
    squares = ((result.estimate.to_numpy() - world.true) ** 2).mean()
    return np.sqrt(squares / ((world.noisy - world.true) ** 2).mean())


@pytest.mark.slow
def test_500_random_chains_are_never_much_worse_than_no_smoothing():
    losses = [loss_by_wrong_chain(world) for world in islice(random_worlds(), 500)]
    assert max(losses) < 1.05
    assert np.median(losses) < 0.95


@pytest.mark.parametrize("number", [18, 418])
def test_the_worst_of_them_are_not(number):
    """Half of 31 people leave for a while, and 24,000 move by quite another chain."""
    world = next(islice(random_worlds(), number, None))
    assert loss_by_wrong_chain(world) < 1.02


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("hours", [1, 12])
@pytest.mark.parametrize("people", [10**4, 10**5, 10**6, 10**7, 10**8])
def test_any_number_of_people_may_move_at_once(people, hours, online):
    """Nearly all go there and back, whom the chain expects to stay."""
    there = (np.arange(96) // hours) % 2
    true = np.stack([0.05 + 0.9 * there, 0.95 - 0.9 * there], axis=1) * people
    noisy = true + laplace(true.shape, 0.1, np.random.default_rng(22))
    world = World(true, noisy, np.array([[0.9, 0.1], [0.1, 0.9]]), 0.1)
    assert loss_by_wrong_chain(world, online) < 1.03


def test_all_may_begin_in_a_state_without_a_column_if_their_number_is_known():
    """The first counts tell nothing of it."""
    chain = tpl.TransitionMatrix(
        [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]], states=["home", "way", "work"]
    )
    rng = np.random.default_rng(0)
    people = np.array([1500, 0, 0])
    rows = []
    for _ in range(20):
        rows.append(people[1:])
        moves = [rng.multinomial(people[k], chain.toarray()[k]) for k in range(3)]
        people = np.sum(moves, axis=0)
    true = pd.DataFrame(rows, columns=["way", "work"])
    noisy = true + np.rint(rng.laplace(0.0, 20.0, true.shape))
    words = {"chain": chain, "epsilons": 0.1, "sensitivity": 2, "initial": [1, 0, 0]}
    with pytest.raises(ValueError, match="their law is 0; give total=, or another initial="):
        tr.smooth_counts(noisy, **words)
    smoothed = tr.smooth_counts(noisy, total=1500, **words)
    inside = (smoothed.lower <= true) & (true <= smoothed.upper)
    assert inside.to_numpy().mean() > 0.8
    assert (smoothed.estimate.iloc[0] < 30).all()


def test_a_total_is_kept_by_whole_numbers():
    rng = np.random.default_rng(14)
    P = dense_chain(6, rng)
    true = counts_of(P, 60, 60, rng)
    noisy = true + laplace(true.shape, 0.3, rng)
    for online in (False, True):
        result = tr.smooth_counts(noisy, chain=P, **RELEASED, total=60, whole=True, online=online)
        estimate = result.estimate.to_numpy()
        assert (estimate >= 0.0).all()
        assert (estimate == np.round(estimate)).all()
        np.testing.assert_array_equal(estimate.sum(axis=1), 60)
        assert (result.lower <= result.estimate).to_numpy().all()
        assert (result.estimate <= result.upper).to_numpy().all()
    of_all = result.of_sum()
    np.testing.assert_allclose(of_all["error"], 0.0, atol=1e-4)
    assert error_of(result, true) < 0.5 * np.abs(noisy - true).mean()


def test_a_wrong_total_is_refused():
    rng = np.random.default_rng(15)
    true = counts_of(TWO, 1_000, 168, rng)
    noisy = true + laplace(true.shape, 0.3, rng)
    for total in (900, 1_100):
        with pytest.raises(ValueError, match="total must be the sum of all counts.* leave it out"):
            tr.smooth_counts(noisy, chain=TWO, **RELEASED, total=total)
    assert len(tr.smooth_counts(noisy, chain=TWO, **RELEASED, total=1_000)) == 168


def test_the_sum_of_some_counts_needs_their_covariance():
    rng = np.random.default_rng(16)
    P = dense_chain(8, rng)
    inside = []
    for _ in range(12):
        true = counts_of(P, 700, 80, rng)
        noisy = true + laplace(true.shape, 0.3, rng)
        result = tr.smooth_counts(noisy, chain=P, **RELEASED)
        of_some = result.of_sum([1, 4, 5])
        inside.append(of_some["lower"].le(true[:, [1, 4, 5]].sum(axis=1)))
        inside.append(of_some["upper"].ge(true[:, [1, 4, 5]].sum(axis=1)))
    assert 0.91 < np.mean(inside) < 0.985
    covariance = result.covariance(40)
    assert covariance.loc[[1, 4, 5], [1, 4, 5]].to_numpy().sum() == pytest.approx(
        of_some["error"].iloc[40] ** 2
    )
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), result.error.iloc[40])
    with pytest.raises(ValueError, match="columns must be those of the counts, once each, found"):
        result.of_sum([1, 1])
    alone = tr.smooth_counts(noisy, chain=None, **RELEASED)
    with pytest.raises(ValueError, match="estimated together, found each by itself"):
        alone.covariance(0)


def test_without_a_chain_counts_walk_at_random(two_places):
    true, noisy = two_places
    result = tr.smooth_counts(noisy, chain=None, **RELEASED)
    assert error_of(result, true) < np.abs(noisy - true).to_numpy().mean()
    assert share_inside(result, true) > 0.8
    assert set(result.against.index) == {"random walk", "FAST", "constant"}
    assert np.isnan(result.surprise)
    # FAST and a constant are random walks of certain settings
    assert result.against["random walk"] >= result.against.max() - 1e-12


def test_many_states_are_estimated_each_by_itself():
    rng = np.random.default_rng(17)
    P = map_chain(11, rng)
    true = counts_of(P, 2_000, 60, rng)
    noisy = true + laplace(true.shape, 0.3, rng)
    result = tr.smooth_counts(noisy, chain=P, **RELEASED)
    assert result.covariances is None
    assert error_of(result, true) < 0.5 * np.abs(noisy - true).mean()
    assert 0.86 < share_inside(result, true) < 0.95


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("people", [0, 3, 1_000_000])
@pytest.mark.parametrize("total", [False, True])
def test_any_noise_and_any_size_give_finite_estimates(epsilon, people, total):
    rng = np.random.default_rng(18)
    true = counts_of(TWO, people, 40, rng)
    noisy = true + laplace(true.shape, epsilon, rng)
    known = people if total and people else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = tr.smooth_counts(noisy, chain=TWO, epsilons=epsilon, sensitivity=2, total=known)
    assert np.isfinite(result.estimate.to_numpy()).all()
    assert np.isfinite(result.error.to_numpy()).all()
    noise = np.sqrt(result.variances[0, 0])
    assert np.abs(result.estimate.to_numpy() - true).max() < max(20.0 * noise, 0.1)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("make", [tpl.TransitionMatrix, tpl.Cycle])
def test_dates_are_one_step_of_a_matrix_apart_as_of_a_cycle(n, make):
    counts = pd.DataFrame(np.full((n, 2), 5.0), pd.date_range("2024-05-01", periods=n, freq="2h"))
    with pytest.raises(ValueError, match="one step of the chain apart, 1h, found 2h; give a row"):
        tr.smooth_counts(counts, chain=make(TWO, step="1h"), **RELEASED)


def test_a_missing_date_is_no_step_of_a_matrix_but_one_of_a_list():
    times = pd.to_datetime(["2024-05-01", "2024-05-02", "2024-05-04"])
    with pytest.raises(ValueError, match="one step of the chain apart, 1D, found 2D; give a row"):
        chain_over_time(TWO, [0, 1], times)
    assert len(chain_over_time([TWO, TWO], [0, 1], times).steps) == 2


def test_the_expected_error_is_told_as_a_share_of_that_of_the_noise(two_places):
    smoothed = tr.smooth_counts(two_places[1], chain=TWO, **RELEASED)
    share = re.search(r"expected error (\S+) % of that of the noise", str(smoothed))[1]
    assert float(share) == pytest.approx(100.0 / smoothed.gain, rel=0.05)


@pytest.mark.filterwarnings("ignore:settings need 20 published times")
def test_one_time_and_one_count_are_enough():
    one = tr.smooth_counts([[100, 50]], chain=TWO, **RELEASED)
    assert one.estimate.shape == (1, 2)
    assert np.isnan(one.against).all()
    assert "not judged" in str(one)
    series = tr.smooth_counts([5.0, np.nan, 7.0], chain=[[1.0]], **RELEASED, total=6)
    np.testing.assert_allclose(series.estimate, 6.0)
    walk = tr.smooth_counts(pd.Series([5, 6, 9], name="count"), chain=None, **RELEASED)
    assert walk.estimate.columns.tolist() == ["count"]


def test_gaussian_noise_is_known_by_its_multipliers(two_places):
    true, _ = two_places
    rng = np.random.default_rng(19)
    noisy = true + rng.normal(0.0, 15.0, true.shape)
    result = tr.smooth_counts(noisy, chain=TWO, noise_multipliers=7.5, sensitivity=2)
    np.testing.assert_allclose(result.variances, 225.0)
    assert result.gain == pytest.approx(15.0 / np.sqrt((result.errors**2).mean()))
    assert error_of(result, true) < 0.7 * np.abs(noisy - true).mean()


def test_a_result_cannot_be_changed_and_shows_its_bands(two_places):
    _, noisy = two_places
    result = tr.smooth_counts(noisy, chain=TWO, **RELEASED)
    with pytest.raises(ValueError, match="read-only"):
        result.counts[0, 0] = 1.0
    table = result.estimate
    table.loc[HOURS[0], "home"] = -1.0
    assert result.estimate.loc[HOURS[0], "home"] != -1.0
    names = ["home", "home lower", "home upper", "work", "work lower", "work upper"]
    assert result.to_frame().columns.tolist() == names
    assert result.to_frame().index.equals(HOURS)
    assert "72 times of 2 counts, smoothed" in result._repr_html_()
    assert result.plot().get_ylabel() == "home"
    axes = result.plot("work")
    assert axes.get_ylabel() == "work"
    assert len(axes.collections) == 1
    with pytest.raises(ValueError, match="columns must be those of the counts"):
        result.plot("elsewhere")


ERRORS = {
    "chain must be given: the publisher's own matrices may come from private": {},
    "the noise must be that of epsilons= .Laplace. or noise_multipliers=": {"epsilons": None},
    "sensitivity must be given": {"chain": TWO, "sensitivity": None},
    "epsilons must be one number, or one for each of 72": {"chain": TWO, "epsilons": [0.1, 0.2]},
    "epsilons of published times must be finite and above 0, found 0": {
        "chain": TWO,
        "epsilons": 0,
    },
    "columns must be states of the chain, once each, found .'home', 'work'. and the states": {
        "chain": tpl.TransitionMatrix(TWO, ["a", "b"])
    },
    "there must be a column for each of the 3 states of the chain, found 2": {
        "chain": np.full((3, 3), 1 / 3)
    },
    "a list of matrices must have one for each of 71 steps, found 2": {"chain": [TWO, TWO]},
    "the law of the first time must be known": {"chain": np.eye(2)},
    "each step must have a matrix here": {"chain": [tpl.PriorFreeLoss(TWO)]},
    "level": {"chain": TWO, "level": 1.5},
    "total must be finite and greater than 0": {"chain": TWO, "total": -3},
    "total= and initial= belong to a chain": {"chain": None, "total": 400},
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_say_what_must_be_given(two_places, message):
    _, noisy = two_places
    options = {"chain": TWO, **RELEASED} | ERRORS[message]
    if not ERRORS[message]:
        del options["chain"]
    with pytest.raises(ValueError, match=message):
        tr.smooth_counts(noisy, **options)


@pytest.mark.parametrize(
    ("noisy", "message"),
    [
        (np.full((3, 2), np.nan), "at least one that was published, found none"),
        (np.zeros((0, 2)), "noisy must be a table of counts, found shape"),
        (np.zeros((2, 2, 2)), "noisy must have shape .T,. or .T, n., found .2, 2, 2."),
        ([["a", "b"]], "noisy must be a table of counts"),
        ([[1.0, np.inf]], "noisy counts must be finite, found inf"),
    ],
)
def test_what_are_no_noisy_counts_is_refused(noisy, message):
    with pytest.raises(ValueError, match=message):
        tr.smooth_counts(noisy, chain=TWO, **RELEASED)


def test_few_times_are_warned_of(two_places):
    _, noisy = two_places
    with pytest.warns(UserWarning, match="settings need 20 published times, found 3"):
        tr.smooth_counts([[100, 50]] * 3, chain=TWO, **RELEASED)
    with pytest.warns(UserWarning, match="settings need 20 published times, found 19"):
        tr.smooth_counts(noisy[: FEW - 1], chain=TWO, **RELEASED)
    assert len(tr.smooth_counts(noisy[:FEW], chain=TWO, **RELEASED)) == FEW


@pytest.mark.parametrize("scale", [0.5, 1.0, 6.7])
def test_the_variance_of_whole_laplace_noise_is_its_sum(scale):
    q = np.exp(-1.0 / scale)
    k = np.arange(1, 2_000)
    exact = 2.0 * ((1.0 - q) / (1.0 + q) * q**k * k**2).sum()
    published = np.array([True])
    found = variances_of_noise(1, 2, epsilons=2.0 / scale, is_published=published, is_whole=True)
    np.testing.assert_allclose(found, exact)


def test_possible_counts_are_the_nearest():
    rng = np.random.default_rng(20)
    for _ in range(5):
        means = rng.normal(3.0, 5.0, 4)
        nearest = minimize(
            lambda x, means=means: ((x - means) ** 2).sum(),
            np.full(4, 2.5),
            bounds=[(0.0, None)] * 4,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 10.0},
            tol=1e-12,
        )
        found = possible_counts(means[None], 10.0, whole=False)[0]
        np.testing.assert_allclose(found, nearest.x, atol=1e-5)
        whole = possible_counts(means[None], 10.0, whole=True)[0]
        assert whole.sum() == 10.0
        assert np.abs(whole - found).max() < 1.0
    assert law_of(TWO).sum() == pytest.approx(1.0)
