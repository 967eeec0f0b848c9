"""Filters and smoothers against the conditioning of one Gaussian vector of all counts at all
times."""

import numpy as np
import pytest
from scipy.stats import laplace

from tplreport.smoothing.alarms import OF_LAPLACE, excess_of, first_alarm, sudden_surprise
from tplreport.smoothing.filtering import fit, follow
from tplreport.smoothing.joint import JointFilter
from tplreport.smoothing.methods import (
    MOST_NUMBERS,
    MOST_TOGETHER,
    SEPARATELY,
    TOGETHER,
    _alarm_of,
    method_of_chain,
)
from tplreport.smoothing.model import CountModel, Settings
from tplreport.smoothing.random_walk import RandomWalk
from tplreport.smoothing.separate import SeparateFilter
from tplreport.smoothing.starts import Total, _covariance
from tplreport.smoothing.tuning import OF_CHAIN, OF_CONSTANT, OF_FAST, OF_WALK

SETTINGS = Settings.one(2.0, 0.3)


def some_model(rng, *, has_total=False, n=3, times=7):
    """Noisy counts, some of them missing, at steps and with noise that differ."""
    steps = [rng.dirichlet(np.ones(n), size=n) for _ in range(times - 1)]
    values = rng.normal(80.0, 15.0, (times, n))
    variances = np.repeat(rng.uniform(20.0, 200.0, times)[:, None], n, axis=1)
    variances[2] = np.inf
    variances[4, 1] = np.inf
    values[np.isinf(variances)] = 0.0
    mean = np.full(n, 240.0 / n)
    covariance = np.diag(mean) - np.outer(mean, mean) / mean.sum()
    if not has_total:
        covariance += 400.0 / n**2
    return CountModel(values, variances, steps, mean, covariance, has_total)


def process_noise(model, means, time):
    """The covariance of the move from a time to the next one, as the model states it."""
    step = model.steps[time]
    counts = np.maximum(means[time], 0.0)
    expected = step.T @ counts
    moves = np.diag(expected) - step.T @ np.diag(counts) @ step
    turnover = np.diag(expected + 1.0)
    if model.has_total:
        turnover -= np.outer(expected + 1.0, expected + 1.0) / (expected + 1.0).sum()
    return SETTINGS.spread[0] * moves + SETTINGS.turnover[0] * turnover


def all_counts(model, means):
    """The mean and the covariance of all true counts, one time after the other."""
    times, n = model.values.shape
    mean = [model.first_mean]
    covariance = np.zeros((times * n, times * n))
    covariance[:n, :n] = model.first_covariance
    for time, step in enumerate(model.steps):
        mean.append(step.T @ mean[-1])
        until, new = slice(0, (time + 1) * n), slice((time + 1) * n, (time + 2) * n)
        last = slice(time * n, (time + 1) * n)
        covariance[new, until] = step.T @ covariance[last, until]
        covariance[until, new] = covariance[new, until].T
        covariance[new, new] = step.T @ covariance[last, last] @ step
        covariance[new, new] += process_noise(model, means, time)
    return np.concatenate(mean), covariance


def conditioned(model, means, until):
    """Mean (T, n) and covariance (T n, T n) of all counts given the noisy ones before a time, and
    the log density of these."""
    mean, covariance = all_counts(model, means)
    variances = model.variances.ravel()
    seen = np.flatnonzero(variances[: until * model.n_states] < np.inf)
    of_values = covariance[np.ix_(seen, seen)] + np.diag(variances[seen])
    errors = model.values.ravel()[seen] - mean[seen]
    gain = np.linalg.solve(of_values, covariance[seen]).T
    log_determinant = np.linalg.slogdet(2.0 * np.pi * of_values)[1]
    log_density = -0.5 * (log_determinant + errors @ np.linalg.solve(of_values, errors))
    return (
        (mean + gain @ errors).reshape(model.values.shape),
        covariance - gain @ covariance[seen],
        log_density,
    )


@pytest.mark.parametrize("has_total", [False, True])
def test_the_joint_filter_conditions_on_what_was_seen(has_total):
    model = some_model(np.random.default_rng(1), has_total=has_total)
    filter = JointFilter(model)
    track = follow(filter, SETTINGS)
    filtered = filter.filtered(track, SETTINGS)
    smoothed = filter.smoothed(track, SETTINGS)
    n = model.n_states
    for time in range(len(model)):
        here = slice(time * n, (time + 1) * n)
        mean, covariance, log_density = conditioned(model, filtered.means, time + 1)
        np.testing.assert_allclose(filtered.means[time], mean[time], rtol=0, atol=1e-10)
        np.testing.assert_allclose(filtered.spreads[time], covariance[here, here], atol=1e-10)
        scores = fit(filter, SETTINGS).log_likelihoods[: time + 1]
        assert scores.sum() == pytest.approx(log_density, abs=1e-10)
        mean, covariance, _ = conditioned(model, filtered.means, len(model))
        np.testing.assert_allclose(smoothed.means[time], mean[time], rtol=0, atol=1e-10)
        np.testing.assert_allclose(smoothed.spreads[time], covariance[here, here], atol=1e-10)
    if has_total:
        np.testing.assert_allclose(smoothed.means.sum(axis=1), 240.0)


def test_settings_side_by_side_are_those_of_each_by_itself():
    model = some_model(np.random.default_rng(2))
    several = Settings(np.array([1.0, 4.0, 16.0]), np.array([0.0, 0.3, 3.0]))
    for make in (JointFilter, SeparateFilter, RandomWalk):
        together = fit(make(model), several)
        for place in range(len(several)):
            alone = fit(make(model), several[place])
            np.testing.assert_allclose(together.log_likelihoods[:, [place]], alone.log_likelihoods)
            np.testing.assert_allclose(together.surprises[:, [place]], alone.surprises)


def test_the_separate_filter_is_the_joint_one_for_one_state():
    rng = np.random.default_rng(3)
    values = rng.normal(50.0, 10.0, (9, 1))
    variances = np.full((9, 1), 100.0)
    variances[4] = np.inf
    model = CountModel(
        values, variances, [np.ones((1, 1))] * 8, np.array([50.0]), np.array([[90.0]])
    )
    joint, separate = JointFilter(model), SeparateFilter(model)
    for name in ("filtered", "smoothed"):
        one = getattr(joint, name)(follow(joint, SETTINGS), SETTINGS)
        other = getattr(separate, name)(follow(separate, SETTINGS), SETTINGS)
        np.testing.assert_allclose(one.means, other.means, atol=1e-10)
        np.testing.assert_allclose(one.variances, other.variances, atol=1e-10)
    of_joint, of_separate = fit(joint, SETTINGS), fit(separate, SETTINGS)
    np.testing.assert_allclose(of_joint.log_likelihoods, of_separate.log_likelihoods, atol=1e-10)
    np.testing.assert_allclose(of_joint.surprises, of_separate.surprises, atol=1e-10)


def test_the_separate_filter_has_the_variances_of_uncorrelated_counts():
    model = some_model(np.random.default_rng(4))
    uncorrelated = CountModel(
        model.values, model.variances, model.steps, model.first_mean, np.diag([50.0, 60.0, 70.0])
    )
    joint, separate = JointFilter(uncorrelated), SeparateFilter(uncorrelated)
    one = joint.predict(joint.first(SETTINGS), 1, SETTINGS)
    other = separate.predict(separate.first(SETTINGS), 1, SETTINGS)
    np.testing.assert_allclose(np.einsum("sii->si", one.spreads), other.spreads)
    np.testing.assert_allclose(one.means, other.means)


def test_the_separate_smoother_is_never_surer_than_can_be():
    rng = np.random.default_rng(5)
    step = np.full((4, 4), 0.25)
    model = CountModel(
        np.zeros((30, 4)), np.full((30, 4), 50.0), [step] * 29, np.full(4, 1.0), 400.0 * np.eye(4)
    )
    filter = SeparateFilter(model)
    for turnover in rng.uniform(0.0, 0.1, 5):
        settings = Settings.one(1.0, turnover)
        variances = filter.smoothed(follow(filter, settings), settings).variances
        assert (variances > 0.0).all()


def test_a_random_walk_conditions_on_what_was_seen():
    rng = np.random.default_rng(6)
    times = 6
    values = rng.normal(50.0, 10.0, (times, 1))
    variances = rng.uniform(50.0, 150.0, (times, 1))
    variances[2] = np.inf
    values[2] = 0.0
    model = CountModel(values, variances, [], np.array([45.0]), np.array([[900.0]]))
    filter = RandomWalk(model)
    track = follow(filter, SETTINGS)
    smoothed = filter.smoothed(track, SETTINGS)
    before = np.array([beliefs.means[0, 0] for beliefs in track.predicted])
    after = np.array([track.after(time).means[0, 0] for time in range(times)])
    steps = np.concatenate([[900.0], 0.3 * (after[:-1] + 1.0)]).cumsum()
    levels = np.minimum.outer(steps, steps)
    seen = np.flatnonzero(variances < np.inf)
    around = np.diag(2.0 * (before[seen] + 1.0) + variances[seen, 0])
    gain = np.linalg.solve(levels[np.ix_(seen, seen)] + around, levels[seen]).T
    level = 45.0 + gain @ (values[seen, 0] - 45.0)
    spread = np.diag(levels - gain @ levels[seen])
    fluctuation = 2.0 * (level + 1.0)
    share = np.zeros(times)
    share[seen] = fluctuation[seen] / (fluctuation[seen] + variances[seen, 0])
    np.testing.assert_allclose(
        smoothed.means[:, 0], level + share * (values[:, 0] - level), atol=1e-10
    )
    np.testing.assert_allclose(
        smoothed.variances[:, 0],
        (1.0 - share) ** 2 * spread + (1.0 - share) * fluctuation,
        atol=1e-10,
    )


def test_settings_are_equal_if_spread_and_turnover_are():
    assert Settings.one(2.0, 0.3) == SETTINGS
    assert Settings.one(2.0, 0.4) != SETTINGS
    assert Settings.one(3.0, 0.3) != SETTINGS


def test_all_values_but_those_of_the_first_time_seen_are_predicted():
    variances = np.full((5, 2), 9.0)
    variances[0] = np.inf
    variances[1, 1] = np.inf
    variances[3] = np.inf
    model = CountModel(np.zeros((5, 2)), variances, [np.eye(2)] * 4, np.ones(2), np.eye(2))
    assert model.predicted_values.tolist() == [0, 0, 2, 0, 2]
    assert model.is_seen.tolist() == [False, True, True, False, True]
    assert model.seen(1).tolist() == [0]
    assert model.until(2).predicted_values.tolist() == [0, 0]
    assert [len(model.until(end).steps) for end in range(6)] == [0, 0, 1, 2, 3, 4]


def test_surprises_are_measured_by_their_standard_deviation():
    """That of one value is a squared variable of variance 1, whose own variance is 2 at least; it
    is that of Laplace noise where noise is all there is."""
    assert laplace.moment(4) / laplace.var() ** 2 - 1.0 == pytest.approx(OF_LAPLACE)
    values = np.array([0, 2, 3])
    assert excess_of(np.array([0.0, 4.0, 6.0]), values) == pytest.approx(5.0 / np.sqrt(25.0))
    assert np.isnan(excess_of(np.zeros(2), np.zeros(2)))
    assert sudden_surprise(np.array(5)) == pytest.approx(5.0 + 10.0 * 5.0)


def test_an_alarm_is_one_large_surprise_or_many_that_add_up():
    values = np.full(40, 5)
    surprises = values.astype(float)
    assert first_alarm(surprises, values) is None
    sudden = surprises + np.where(np.arange(40) == 7, 50.001, 0.0)
    assert first_alarm(sudden, values) == 7
    # k times 6 above the mean are 6 k / (5 k ** .5) standard deviations
    assert first_alarm(surprises + 6.0, values) == 17
    assert first_alarm(surprises + 6.0, np.where(np.arange(40) < 18, values, 0)) == 17


def test_one_count_alone_can_be_an_alarm():
    assert first_alarm(np.array([0.0, 1.0, 100.0]), np.array([0, 1, 1])) == 2


def counts_without_content(times, n):
    nothing = np.broadcast_to(0.0, (times, n))
    return CountModel(nothing, nothing, [], np.zeros(n), np.zeros((n, n)))


def test_counts_are_estimated_together_up_to_a_number_of_covariances():
    n = MOST_TOGETHER
    times = MOST_NUMBERS // n**2
    assert method_of_chain(counts_without_content(times, n)) is TOGETHER
    assert method_of_chain(counts_without_content(times + 1, n)) is SEPARATELY
    assert method_of_chain(counts_without_content(3, n + 1)) is SEPARATELY


def test_after_an_alarm_that_changed_nothing_twice_as_much_is_the_next_one():
    model = counts_without_content(9, 1)
    surprises = np.array([90.0, 1.0, 1.0, 100.0, 79.0, 81.0, 1.0, 200.0, 1.0])
    assert _alarm_of(surprises, model, 1, 0.0) == 3
    assert _alarm_of(surprises, model, 1, 40.0) == 3
    assert _alarm_of(surprises, model, 4, 40.0) == 5
    assert _alarm_of(surprises, model, 4, 100.0) is None


@pytest.mark.parametrize("grid", [OF_CHAIN, OF_WALK, OF_FAST, OF_CONSTANT])
def test_grids_of_settings_rise_from_none_and_have_those_of_few_times(grid):
    for tried, of_few in (
        (grid.spreads, grid.of_few.spread),
        (grid.turnovers, grid.of_few.turnover),
    ):
        assert (np.diff(tried) > 0.0).all()
        assert np.isin(of_few, tried).all()
    assert grid.turnovers[0] == 0.0
    assert grid.spreads[0] == (1.0 if grid.is_of_chain else 0.0)
    places = grid.coarse()
    rows, columns = np.array(places).T
    stride = 1 if 1 in (len(grid.spreads), len(grid.turnovers)) else 3
    assert set(rows.tolist()) == set(range(0, len(grid.spreads), stride))
    assert set(columns.tolist()) == set(range(0, len(grid.turnovers), stride))


def test_counts_of_a_start_have_a_covariance_also_where_nobody_is():
    for law in (np.array([1.0, 0.0]), np.array([0.5, 0.5, 0.0])):
        for people in (0.0, 0.5, 100.0):
            covariance = _covariance(law, Total(people, 0.0), 1.0)
            assert np.linalg.eigvalsh(covariance).min() > -1e-9
            np.testing.assert_allclose(covariance.sum(axis=0), 0.0, atol=1e-9)
