"""Sequences of any kind against lists of lists, and estimates from them against counting by
hand."""

import itertools
import pickle
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partialmethod
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.markov import Sequences, as_sequences, count_transitions
from tplrepro.markov.sequences import _check_offsets, with_even_times

HOUR = timedelta(hours=1)
LISTS = st.lists(st.lists(st.sampled_from([3, 5, 8, 10**9]), max_size=5), max_size=8)
STATES = st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=6).filter(any)


def ragged(lists, **options):
    flat = np.array([s for one in lists for s in one], dtype=np.int64)
    return Sequences.from_flat(
        flat, np.concatenate([[0], np.cumsum([len(one) for one in lists])]), **options
    )


def back(sequences):
    return [sequences.labels[s].tolist() for s in sequences]


@settings(max_examples=50)
@given(LISTS)
def test_sequences_hold_and_select_what_lists_of_lists_do(lists):
    sequences = ragged(lists)
    assert back(sequences) == lists
    assert sequences.lengths.tolist() == [len(one) for one in lists]
    assert sequences.labels.tolist() == sorted({s for one in lists for s in one})
    pairs = [p for one in lists for p in itertools.pairwise(one)]
    before, after = sequences.transitions()
    assert (
        list(zip(sequences.labels[before].tolist(), sequences.labels[after].tolist(), strict=True))
        == pairs
    )
    assert sequences.n_transitions == len(pairs)
    odd = np.arange(len(lists)) % 2 == 1
    assert back(sequences.select(odd)) == lists[1::2]
    assert back(sequences.select(np.flatnonzero(odd))) == lists[1::2]
    for size in (1, 4):
        blocks = list(sequences.blocks(size))
        assert [
            p for block in blocks for one in back(block) for p in itertools.pairwise(one)
        ] == pairs
        assert all(len(block.values) <= 2 * size + 2 for block in blocks)


def test_sequences_are_found_by_user_and_index_and_cannot_be_changed():
    sequences = ragged([[3], [5, 5], [8]], users=np.array([9, 1, 9]))
    grouped = {user: [s.tolist() for s in own] for user, own in sequences.by_user().items()}
    assert list(grouped.items()) == [(9, [[0], [2]]), (1, [[1, 1]])]
    assert sequences[-2].tolist() == [1, 1]
    with pytest.raises(IndexError, match="index -4 .* size 3"):
        sequences[-4]
    values = np.array([0, 1])
    sequences = Sequences(values, [0, 2], ["a", "b"], [1])
    values[:] = 1
    assert sequences[0].tolist() == [0, 1]


def test_states_are_the_values_seen_unless_they_are_named_and_labels_and_users_survive():
    lists = [[60_977, 12], [], [12, 12]]
    assert back(as_sequences(np.array(s) for s in lists)) == lists
    assert tpl.TransitionMatrix.from_sequences(lists, smoothing=0.1).states == [12, 60_977]
    numbered = as_sequences([[2, 0]], n_states=4)
    assert (numbered.labels.tolist(), numbered[0].tolist()) == ([0, 1, 2, 3], [2, 0])
    named = as_sequences([["b", "a"]], states=["c", "b", "a"])
    assert (named.labels.tolist(), named[0].tolist()) == (["c", "b", "a"], [1, 2])
    assert as_sequences([[2.0, True, np.int8(1)]]).labels.tolist() == [1, 2]
    # equal as floats
    for hashes in ([2**63, 2**63 + 1], [10**20, 10**20 + 1], [-1, 2**63, 2**63 + 1]):
        assert as_sequences([hashes]).labels.tolist() == hashes
    assert as_sequences([np.array([-1]), np.array(hashes[1:])]).labels.tolist() == [-1, *hashes[1:]]
    # A state that is never visited survives too.
    given = Sequences([0, 2, 0], [0, 1, 3], ["x", "y", "z"], ["ann", "bob"])
    assert as_sequences(given) is given
    P = tpl.TransitionMatrix.from_sequences(given, smoothing=1.0)
    assert P.states == ["x", "y", "z"]
    assert P.row(P.index("z")) == pytest.approx([0.5, 0.25, 0.25])
    again = as_sequences(given, states=["z", "y", "x"])
    assert back(again) == back(given)
    assert again.users.tolist() == ["ann", "bob"]
    tuples = Sequences([1, 0], [0, 2], [(0, 1), (1, 0)], [("ann", 7)])
    assert back(tuples)[0] == [(1, 0), (0, 1)]
    assert list(tuples.by_user()) == [("ann", 7)]


def test_a_frame_is_put_in_order_of_user_and_time_and_a_mapping_names_the_users():
    frame = pd.DataFrame(
        {"user": ["bob", "ann"] * 2, "time": [2, 5, 1, 4], "state": list("wxyz"), "speed": np.nan}
    )
    sequences = as_sequences(frame)
    assert back(sequences) == [["z", "x"], ["y", "w"]]
    assert sequences.users.tolist() == ["ann", "bob"]
    dated = frame.assign(
        time=pd.to_datetime(frame["time"], unit="D"), state=pd.Series([3, 1, 3, 9], dtype="Int64")
    )
    assert back(as_sequences(dated)) == [[9, 1], [3, 3]]
    with pytest.raises(
        ValueError,
        match=r"one row at a time, found 1 row beyond it, such as of 'ann' at 4; drop them",
    ):
        as_sequences(pd.concat([frame, frame.iloc[[3]]]))
    sequences = as_sequences({"ann": ["x", "y"], "bob": [["y"], ["y", "x"]], "new": []})
    assert back(sequences) == [["x", "y"], ["y"], ["y", "x"], []]
    assert sequences.users.tolist() == ["ann", "bob", "bob", "new"]


@settings(max_examples=40)
@given(
    sequences=STATES,
    direction=st.sampled_from(["forward", "backward"]),
    smoothing=st.floats(0.01, 5.0),
)
def test_counts_are_those_of_a_loop_and_smoothing_adds_to_each(sequences, direction, smoothing):
    expected = np.zeros((5, 5))
    for pair in (pair for sequence in sequences for pair in itertools.pairwise(sequence)):
        expected[pair if direction == "forward" else pair[::-1]] += 1
    counts, _ = count_transitions(sequences, n_states=5, direction=direction)
    assert counts.toarray().tolist() == expected.tolist()
    with mock.patch.object(Sequences, "blocks", partialmethod(Sequences.blocks, 3)):
        again, _ = count_transitions(sequences, n_states=5, direction=direction)
    assert again.toarray().tolist() == expected.tolist()
    rows = (expected + smoothing) / (expected + smoothing).sum(axis=1, keepdims=True)
    for sparse in (False, True):
        P = tpl.TransitionMatrix.from_sequences(
            sequences, 5, smoothing, direction=direction, sparse=sparse
        )
        assert P.is_sparse == sparse
        assert P.toarray() == pytest.approx(rows)


def test_maximum_likelihood_recovers_the_chain_of_a_path_and_many_states_stay_sparse():
    P = tpl.TransitionMatrix(
        tpl.TransitionMatrix.random(4, rng=np.random.default_rng(1)), states="abcd"
    )
    path = P.sample(30_000, rng=np.random.default_rng(0), initial=[0, 1, 0, 0])
    assert path[0] == "b"
    assert {P.sample(1, rng=np.random.default_rng(seed))[0] for seed in range(40)} == set("abcd")
    for options, truth in (({}, P), ({"direction": "backward"}, P.reverse())):
        estimate = tpl.TransitionMatrix.from_sequences([path], **options)
        assert estimate.states == P.states
        assert np.abs(estimate.probabilities - truth.probabilities).max() < 0.02
    many = tpl.TransitionMatrix.from_sequences([range(5000), [0]], smoothing=0.1)
    assert many.is_sparse
    assert many.background[0] == pytest.approx(0.1 / (1 + 500))


def plain_times(sequences):
    """The times of all values as ISO texts, in a loop."""
    times = []
    for k, length in enumerate(sequences.lengths):
        for i in range(length):
            place = sequences.offsets[k] + i
            if sequences.times is not None:
                times.append(sequences.times[place])
            else:
                times.append(sequences.starts[k] + i * np.timedelta64(sequences.step, "us"))
    return [str(time) for time in times]


def timed_sequences(seed, even):
    """Sequences, some of them empty, and the times of their values."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, rng.integers(1, 8))
    offsets = np.cumsum([0, *lengths])
    values = rng.integers(0, 3, offsets[-1])
    starts = np.datetime64("2024-02-28", "us") + rng.integers(0, 10**7, len(lengths))
    step = timedelta(minutes=int(rng.integers(1, 500)))
    times = np.repeat(starts, lengths) + np.concatenate(
        [np.arange(length) * np.timedelta64(step, "us") for length in [*lengths, 0]]
    )
    sequences = Sequences(values, offsets, np.arange(3), rng.integers(0, 3, len(lengths)))
    if even:
        timed = with_even_times(sequences, times, step, None)
        assert timed.times is None
    else:
        times = times + rng.integers(0, 10**6, len(times))
        timed = replace(sequences, times=times)
    return timed, [str(time) for time in times]


@given(seed=st.integers(0, 10**6), even=st.booleans())
def test_parts_of_sequences_keep_their_times(seed, even):
    sequences, times = timed_sequences(seed, even)
    assert plain_times(sequences) == times
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(sequences), 4)
    expected = []
    for k in chosen:
        expected += times[sequences.offsets[k] : sequences.offsets[k + 1]]
    assert plain_times(sequences.select(chosen)) == expected
    mask = rng.random(len(sequences)) < 0.5
    assert plain_times(sequences.select(mask)) == plain_times(
        sequences.select(np.flatnonzero(mask))
    )
    first, stop = sorted(rng.integers(0, len(sequences) + 1, 2).tolist())
    part = sequences.part(first, stop)
    same = sequences.select(np.arange(first, stop))
    assert plain_times(part) == plain_times(same)
    assert back(part) == back(same)
    assert part.users.tolist() == same.users.tolist()
    starts, stops, owner = sequences.stretches(2)
    expected = []
    for start, stop in zip(starts, stops, strict=True):
        expected += times[start:stop]
    assert plain_times(sequences.gather(starts, stops, owner)) == expected
    copied = pickle.loads(pickle.dumps(sequences))
    assert plain_times(copied) == times
    assert copied.step == sequences.step
    if len(sequences.values):
        assert plain_times(as_sequences(sequences, 5)) == times


@given(seed=st.integers(0, 10**6))
def test_phases_are_steps_since_midnight_or_monday(seed):
    sequences, _ = timed_sequences(seed, even=True)
    for step, period in [(timedelta(hours=3), timedelta(days=1)), (HOUR, timedelta(days=7))]:
        regular = replace(sequences, step=step)
        expected = []
        for text in plain_times(regular):
            time = datetime.fromisoformat(text)
            midnight = datetime(time.year, time.month, time.day)
            if period.days == 7:
                midnight -= timedelta(days=time.weekday())
            expected.append((time - midnight) // step)
        assert regular.phases(period).tolist() == expected


def test_a_frame_with_time_stamps_keeps_them_by_its_clock():
    times = pd.date_range("2024-10-26T22:00", periods=8, freq="1h", tz="Europe/Berlin")
    frame = pd.DataFrame({"user": "a", "time": times, "state": range(8)})
    found = as_sequences(frame)
    assert plain_times(found) == [
        str(np.datetime64(time, "us")) for time in times.tz_localize(None).to_numpy()
    ]
    assert (found.step, found.zone) == (HOUR, "Europe/Berlin")
    assert found.phases(timedelta(days=1)).tolist() == [22, 23, 0, 1, 2, 2, 3, 4]
    assert tpl.TransitionMatrix.from_sequences(frame, smoothing=0.1).step == HOUR
    assert as_sequences(frame.drop(index=3)).step is None
    assert as_sequences(frame.assign(time=range(8))).times is None
    arrow = as_sequences(frame.astype({"time": "timestamp[us, tz=Europe/Berlin][pyarrow]"}))
    assert plain_times(arrow) == plain_times(found)
    assert arrow.zone == found.zone


@pytest.mark.parametrize(
    ("clock", "message"),
    [
        ({"starts": [1]}, "starts must be 1 times of type datetime64"),
        ({"times": np.array(["2024", "NaT"], "M8[us]")}, "times must be 2 times"),
        ({"starts": np.array(["2024"], "M8[us]")}, "starts must come with the step"),
        ({"step": timedelta(0)}, "step must be positive"),
    ],
)
def test_times_that_do_not_fit_are_refused(clock, message):
    with pytest.raises(ValueError, match=message):
        Sequences([0, 1], [0, 2], labels=[0, 1], users=[0], **clock)


def test_a_period_must_be_whole_steps():
    sequences = replace(timed_sequences(1, even=True)[0], step=timedelta(hours=7))
    with pytest.raises(ValueError, match="whole number of steps.*choose a step that divides it"):
        sequences.phases(timedelta(days=1))


@pytest.mark.parametrize(
    ("given_sequences", "found"), [(["home", "office"], "'home'"), ([5], "5"), ({"anna": 5}, "5")]
)
def test_what_is_no_list_of_states_is_no_sequence(given_sequences, found):
    message = f"each sequence must be a list of states, found {found} at position 0"
    with pytest.raises(ValueError, match=message):
        as_sequences(given_sequences)


@pytest.mark.parametrize("offsets", [[0.0, 2.0, 1.0, 3.0], [0.0, 1.5, 3.0], [0.0, 2.0], [1.0, 3.0]])
def test_offsets_rise_in_whole_numbers_over_all_values(offsets):
    with pytest.raises(ValueError, match="offsets must rise from 0 to the number of values, 3"):
        _check_offsets(np.array(offsets), 3)


def test_two_times_tell_a_step_and_single_ones_none():
    times = pd.to_datetime([0, 1], unit="us")
    frame = pd.DataFrame({"user": 1, "time": times, "state": ["x", "y"]})
    assert as_sequences(frame).step == timedelta(microseconds=1)
    assert as_sequences(frame.assign(user=[1, 2])).step is None


def test_labels_that_are_whole_numbers_of_any_kind_stay_numbers():
    labels = np.array([1, 3], np.int32)
    given = Sequences([0, 1], [0, 2], labels, users=np.array([7], np.uint8))
    assert (given.labels.dtype, given.users.dtype) == (np.int32, np.uint8)
    assert as_sequences(given, n_states=4).labels.tolist() == [0, 1, 2, 3]
    both_kinds = as_sequences([[0, 1]], states=[0, np.int64(1)])
    assert [type(label) for label in both_kinds.labels.tolist()] == [int, int]
