"""Fixed time steps against a search at every step, and sequences of reports against a loop."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplrepro.datasets import fixed_steps, observed_sequences


def stepwise(reports, step, max_gap, outside=-1):
    """Ask at each step where a user is: the latest report at or before, not older than max_gap; integers only."""
    result = []
    for user in sorted({u for u, _, _ in reports}):
        own = {}
        for u, t, s in reports:
            if u == user:
                own[t] = s  # of two at the same time the later row counts
        times = sorted(own)
        end = -(-times[-1] // step) * step
        run, t = [], (times[0] // step) * step
        while t <= end:
            before = [x for x in times if x <= t]
            known = before and t - before[-1] <= max_gap and own[before[-1]] != outside
            if known:
                run.append(own[before[-1]])
            elif run:
                result.append((user, run))
                run = []
            t += step
        if run:
            result.append((user, run))
    return result


REPORTS = st.lists(st.tuples(st.integers(0, 2), st.integers(-30, 60), st.integers(-1, 3)), min_size=1, max_size=25)


@given(REPORTS, st.integers(1, 9), st.integers(1, 25), st.booleans())
@settings(max_examples=300)
def test_fixed_steps_are_those_of_a_search_at_each_step(reports, step, max_gap, stamps):
    frame = pd.DataFrame(reports, columns=["user", "time", "cell"])
    expected = stepwise(reports, step, max_gap)
    if stamps:
        frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
        sequences = fixed_steps(frame, f"{step}s", pd.Timedelta(seconds=max_gap))
    else:
        sequences = fixed_steps(frame, step, max_gap)
    assert [(u, sequences.labels[s].tolist()) for u, s in zip(sequences.users, sequences, strict=True)] == expected


@given(REPORTS, st.one_of(st.none(), st.integers(1, 25)))
@settings(max_examples=200)
def test_observed_sequences_are_those_of_a_loop(reports, max_gap):
    expected, run, before = [], [], None
    for user, time, cell in sorted(reports, key=lambda r: r[:2]):
        broken = before is None or before[0] != user or (max_gap is not None and time - before[1] > max_gap)
        if broken or cell == -1:
            expected.append(run)
            run = []
        if cell != -1:
            run.append(cell)
        before = user, time
    expected = [r for r in [*expected, run] if r]
    sequences = observed_sequences(pd.DataFrame(reports, columns=["user", "time", "cell"]), max_gap=max_gap)
    assert [sequences.labels[s].tolist() for s in sequences] == expected


def test_no_reports_give_no_sequences():
    frame = pd.DataFrame({"user": [], "time": pd.to_datetime([], utc=True), "cell": np.array([], dtype=int)})
    assert len(fixed_steps(frame, "1min", "5min")) == 0
    assert len(observed_sequences(frame)) == 0


def test_years_of_silence_cost_nothing():
    frame = pd.DataFrame({"user": 0, "time": pd.to_datetime(["1990-01-01", "2020-01-01"], utc=True), "cell": [1, 2]})
    assert fixed_steps(frame, "1s", "10s").lengths.tolist() == [11, 1]


def test_zones_and_units_of_time_change_nothing():
    times = pd.to_datetime(["2009-01-01 00:00:30", "2009-01-01 00:03:10"], utc=True)
    frames = [
        pd.DataFrame({"user": 0, "time": t, "cell": [1, 2]})
        for t in (times, times.tz_convert("Asia/Shanghai"), times.as_unit("ns"), times.tz_localize(None))
    ]
    results = [fixed_steps(f, "1min", "1h") for f in frames]
    assert all((r.values == results[0].values).all() for r in results)
    assert results[0].lengths.tolist() == [4]


def test_users_may_have_several_columns_and_states_may_be_strings():
    frame = pd.DataFrame({"u": ["a", "a"], "r": [1, 2], "time": [0.0, 1.0], "s": ["home", "work"]})
    for sequences in (
        fixed_steps(frame, 1, 5, state="s", user=["u", "r"]),
        observed_sequences(frame, state="s", user=["u", "r"]),
    ):
        assert sequences.users.tolist() == [("a", 1), ("a", 2)]
        assert sequences.labels.tolist() == ["home", "work"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"cell": None}, {}, r"the frame must have the columns .* add \['cell'\]"),
        ({"time": [np.nan]}, {}, "times must not be missing, found 1"),
        ({"time": ["noon"]}, {}, "must hold time stamps or seconds"),
        ({"user": [np.nan]}, {}, "users must not be missing, found 1"),
        ({}, {"step": 0}, "step must be a positive duration, found 0"),
        ({}, {"step": "often"}, "step must be a positive duration, found 'often'"),
        ({}, {"max_gap": float("nan")}, "max_gap must be a positive duration"),
    ],
)
def test_arguments_are_checked(change, options, message):
    frame = pd.DataFrame({"user": [0], "time": [0.0], "cell": [1]})
    for name, value in change.items():
        frame = frame.drop(columns=name) if value is None else frame.assign(**{name: value})
    with pytest.raises(ValueError, match=message):
        fixed_steps(frame, **{"step": 1, "max_gap": 5, **options})
