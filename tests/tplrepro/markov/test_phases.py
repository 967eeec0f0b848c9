"""One matrix for each phase of the clock, against counting in loops and likelihoods by hand."""

from datetime import timedelta
from functools import partialmethod
from math import inf, lgamma, log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tplrepro as tpl
from tplrepro.markov import Sequences
from tplrepro.markov.phases import (
    NAMED,
    DayBlocks,
    count_by_group,
    estimate_matrices,
    group_phases,
    likeliest_weight,
    shrunk_matrix,
)

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
STILL, MIXING = [[0.97, 0.03], [0.03, 0.97]], [[0.6, 0.4], [0.4, 0.6]]
#: Matrices of 24 hours, still for six of them.
RHYTHM = [STILL] * 6 + [MIXING] * 18


def walks(seed, users, hours, matrices=RHYTHM, first="2024-05-02T15:00", zone=None):
    """A DataFrame of hourly rows of users, whose steps follow the matrices of the hours."""
    rng = np.random.default_rng(seed)
    times = pd.date_range(first, periods=hours, freq="1h", tz=zone)
    frames = []
    for user in range(users):
        path = [int(rng.integers(len(matrices[0])))]
        for time in times[:-1]:
            path.append(int(rng.choice(len(matrices[0]), p=matrices[time.hour][path[-1]])))
        frames.append(pd.DataFrame({"user": user, "time": times, "state": path}))
    return pd.concat(frames, ignore_index=True)


def counted(frame, label_of_time):
    """The steps of each phase, counted one by one: label -> (from, to) -> number."""
    counts = {}
    for _, own in frame.groupby("user"):
        times = own["time"].tolist()
        path = own["state"].tolist()
        for k in range(len(path) - 1):
            phase = counts.setdefault(label_of_time(times[k]), {})
            step = (path[k], path[k + 1])
            phase[step] = phase.get(step, 0) + 1
    return counts


def evidence_by_hand(counts, pooled, weight):
    """The log-probability of counts (g, n, n) of rows around the pooled ones, term by term."""
    total = 0.0
    for group in counts:
        for row, mean in zip(group, pooled, strict=True):
            if weight == inf:
                total += sum(c * log(p) for c, p in zip(row, mean, strict=True) if c)
                continue
            total += lgamma(weight) - lgamma(weight + sum(row))
            for c, p in zip(row, mean, strict=True):
                if c:
                    total += lgamma(weight * p + c) - lgamma(weight * p)
    return total


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("first", ["2024-05-02T15:00", "2024-03-30T15:00"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_rows_are_those_of_counts_in_a_loop(zone, first, direction):
    frame = walks(0, 5, 60, first=first, zone=zone)
    weight = 3.0
    cycle = tpl.Cycle.from_sequences(
        frame, "hour", smoothing=0.5, weight=weight, direction=direction
    )
    pooled = tpl.TransitionMatrix.from_sequences(frame, smoothing=0.5, direction=direction)
    counts = counted(frame, lambda time: time.hour)
    assert (len(cycle), cycle.step, cycle.period) == (24, HOUR, "day")
    for hour in range(24):
        for i in range(2):
            row = np.zeros(2)
            for (start, end), number in counts.get(hour, {}).items():
                given, other = (start, end) if direction == "forward" else (end, start)
                if given == i:
                    row[other] += number
            expected = (row + weight * pooled[i]) / (row.sum() + weight)
            assert cycle[hour][i] == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 10**6), blocks=st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24]))
@settings(max_examples=20, deadline=None)
def test_phases_of_one_block_share_a_matrix(seed, blocks):
    cycle = tpl.Cycle.from_sequences(walks(seed, 2, 50), blocks, smoothing=0.1)
    assert len(cycle) == 24
    hours = 24 // blocks
    for place in range(24):
        assert cycle[place] is cycle[place - place % hours]


def test_a_cycle_of_one_block_is_the_pooled_matrix():
    frame = walks(1, 3, 80)
    cycle = tpl.Cycle.from_sequences(frame, 1, smoothing=0.5, weight=5.0)
    pooled = tpl.TransitionMatrix.from_sequences(frame, smoothing=0.5)
    own = tpl.TransitionMatrix.from_sequences(frame).toarray()
    leaving = frame.groupby("user")["state"].apply(lambda path: path.iloc[:-1])
    totals = leaving.value_counts().sort_index().to_numpy()
    share = (totals / (totals + 5.0))[:, None]
    assert cycle[0].toarray() == pytest.approx(share * own + (1 - share) * pooled.toarray())


@given(seed=st.integers(0, 10**6), groups=st.integers(1, 5), n=st.integers(2, 4))
@settings(deadline=None)
def test_the_weight_is_the_likeliest_of_its_grid(seed, groups, n):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(n), (groups, n)) + rng.dirichlet(np.ones(n), n)
    counts = rng.poisson(rng.choice([0.3, 3.0, 30.0]) * rows)
    counts[0] += 1
    pooled = tpl.TransitionMatrix(counts.sum(axis=0), normalize=True)
    weight = likeliest_weight(csr_array(counts.reshape(-1, n)), pooled)
    means = pooled.toarray()
    found = evidence_by_hand(counts, means, weight)
    for other in [inf, *4.0 ** np.arange(-3, 11)]:
        assert found >= evidence_by_hand(counts, means, other) - 1e-7 * abs(found)


def test_a_phase_with_few_data_is_the_pooled_one():
    """Counts of every hour are those of one matrix, up to chance."""
    frame = walks(2, 4, 24 * 10, [MIXING] * 24)
    cycle = tpl.Cycle.from_sequences(frame, "hour", smoothing=0.1)
    pooled = tpl.TransitionMatrix.from_sequences(frame, smoothing=0.1).toarray()
    for matrix in cycle:
        assert np.abs(matrix.toarray() - pooled).max() < 0.06


def test_hours_that_differ_are_told_apart():
    cycle = tpl.Cycle.from_sequences(walks(3, 40, 24 * 10), "hour", smoothing=0.1)
    for hour in range(24):
        assert np.abs(cycle[hour].toarray() - RHYTHM[hour]).max() < 0.12


def test_a_state_that_a_phase_does_not_see_has_the_pooled_row():
    times = pd.date_range("2024-05-02", periods=48, freq="1h")
    path = np.where(times.hour < 12, 0, times.hour % 2 + 1)
    frame = pd.DataFrame({"user": 1, "time": times, "state": path})
    cycle = tpl.Cycle.from_sequences(frame, 2, smoothing=0.5, weight=4.0)
    pooled = tpl.TransitionMatrix.from_sequences(frame, smoothing=0.5)
    assert cycle[0][1] == pytest.approx(pooled[1], abs=1e-14)
    assert cycle[0][0] != pytest.approx(pooled[0], abs=1e-3)


def test_a_phase_that_never_occurs_has_the_pooled_matrix():
    frame = walks(4, 6, 10, first="2024-05-02T06:00")
    cycle = tpl.Cycle.from_sequences(frame, "hour", smoothing=0.5, weight=2.0)
    pooled = tpl.TransitionMatrix.from_sequences(frame, smoothing=0.5)
    assert cycle[0] == pooled
    assert cycle[0] is cycle[23]
    assert cycle[6] != pooled


def test_weekdays_and_the_weekend_are_a_week():
    frame = walks(5, 3, 24 * 15)
    cycle = tpl.Cycle.from_sequences(frame, "weekend", smoothing=0.1, weight=1.0)
    assert (len(cycle), cycle.period) == (168, "week")
    assert cycle.phases[0] == "Mon 00:00"
    assert cycle.phases[120] == "Sat 00:00"
    counts = counted(frame, lambda time: time.day_of_week >= 5)
    for place, is_weekend in [(0, False), (119, False), (120, True), (167, True)]:
        own = counts[is_weekend]
        total = own.get((0, 0), 0) + own.get((0, 1), 0)
        pooled = cycle_of_all(frame)[0][0]
        expected = (own.get((0, 0), 0) + pooled[0]) / (total + 1.0)
        assert cycle[place][0, 0] == pytest.approx(expected)


def cycle_of_all(frame):
    return tpl.Cycle.from_sequences(frame, 1, smoothing=0.1, weight=inf)


@pytest.mark.parametrize(
    ("phase", "step", "codes"),
    [
        ("hour", timedelta(hours=6), [0, 1, 2, 3]),
        ("hour", timedelta(minutes=30), np.repeat(np.arange(24), 2)),
        (3, timedelta(hours=4), [0, 0, 1, 1, 2, 2]),
        ("weekday", DAY, range(7)),
        (DayBlocks(12, weekend=True), timedelta(hours=12), [0, 1] * 5 + [2, 3] * 2),
        (pd.Series(["night", "day", "day", "night"]), timedelta(hours=6), [0, 1, 1, 0]),
        (["work"] * 5 + ["rest"] * 2, DAY, [0] * 5 + [1] * 2),
        (lambda times: times.hour >= 12, timedelta(hours=8), [0, 0, 1]),
        ("hour", DAY, [0]),
    ],
)
def test_groups_of_phases(phase, step, codes):
    groups = group_phases(phase, step)
    assert groups.codes.tolist() == list(codes)
    assert groups.period == step * len(groups.codes)
    assert len(groups.labels) == groups.n_groups == max(codes) + 1


@pytest.mark.parametrize(
    ("phase", "step", "message"),
    [
        ("hours", HOUR, "phase must be"),
        (5, HOUR, "must divide the 24 hours of a day, found 5; give 1, 2, 3"),
        (["a", "b"], HOUR, "one label for each step of a day or week, found 2"),
        ("hour", None, "sequences with one time step, found none or several"),
        ("hour", timedelta(hours=5), "whole number of steps, found 7 days"),
        ("hour", timedelta(milliseconds=1), "longer step="),
    ],
)
def test_phases_that_do_not_fit_are_refused(phase, step, message):
    with pytest.raises(ValueError, match=message):
        group_phases(phase, step)


def test_sequences_without_times_have_no_phases():
    with pytest.raises(ValueError, match="phases need sequences with one time step"):
        tpl.Cycle.from_sequences([[0, 1, 0]])
    with pytest.raises(ValueError, match="weight must be positive, found 0"):
        tpl.Cycle.from_sequences(walks(0, 1, 5), weight=0.0, smoothing=1.0)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_sparse_and_dense_matrices_are_the_same(seed):
    frame = walks(seed, 3, 40)
    for smoothing in (0.0, 0.3):
        try:
            dense = tpl.Cycle.from_sequences(frame, 4, smoothing, weight=2.0, sparse=False)
        except ValueError:  # a state that is never left
            continue
        sparse = tpl.Cycle.from_sequences(frame, 4, smoothing, weight=2.0, sparse=True)
        for one, other in zip(dense, sparse, strict=True):
            assert other.is_sparse
            assert other.toarray() == pytest.approx(one.toarray(), abs=1e-12)


def test_counts_of_many_states_are_those_of_few(monkeypatch):
    frame = walks(6, 4, 100)
    data = tpl.markov.as_sequences(frame)
    groups = group_phases("hour", data.step)
    few = count_by_group(data, groups).toarray()
    monkeypatch.setattr("tplrepro.markov.sequences.MOST_CELLS", 0)
    monkeypatch.setattr(Sequences, "blocks", partialmethod(Sequences.blocks, size=64))
    assert (count_by_group(data, groups).toarray() == few).all()
    assert few.sum() == data.n_transitions


def test_shrunk_rows_of_no_counts_are_the_prior():
    prior = tpl.TransitionMatrix(STILL, ["a", "b"], step="1h")
    assert shrunk_matrix(csr_array((2, 2)), prior, 3.0) is prior
    assert shrunk_matrix(csr_array([[1.0, 0.0], [0.0, 1.0]]), prior, inf) is prior
    found = shrunk_matrix(csr_array([[1.0, 0.0], [0.0, 1.0]]), prior, 1.0)
    assert (found.states, found.step) == (["a", "b"], HOUR)


def test_the_phases_called_hour_are_those_of_the_day():
    times = pd.date_range("2024-01-01", periods=48, freq="h")
    names = NAMED["hour"](times)
    assert names[:2] == ["00:00-01:00", "01:00-02:00"]
    assert len(set(names)) == 24
    assert list(names[:24]) == list(names[24:])


def test_days_that_are_alike_are_a_cycle_of_one_with_the_frequencies_of_steps():
    times = pd.date_range("2024-05-01", periods=6, freq="1D")
    frame = pd.DataFrame({"user": 1, "time": times, "state": list("aaabba")})
    cycle = tpl.Cycle.from_sequences(frame, 1)
    frequencies = pytest.approx(np.array([[2 / 3, 1 / 3], [1 / 2, 1 / 2]]))
    assert (len(cycle), cycle.step, cycle.period) == (1, DAY, "day")
    assert cycle[0].toarray() == frequencies
    (matrix,) = estimate_matrices(frame, 1)
    assert matrix.toarray() == frequencies
