"""States and probabilities of one event, against counting by hand and against exhaustion."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tplrepro.eventlog.logs import by_last_activity, labelled, log_of, random_log
from tplrepro.eventlog import TransitionSystem


def test_complete_traces_end_in_a_final_state_and_incomplete_ones_where_they_are():
    system = by_last_activity("ab", "a", "c", complete=[True, False, False])
    assert system.states == [("▶",), ("a",), ("b",), ("■",), ("c",)]
    assert system.visits.tolist() == [3, 2, 1, 1, 1]  # cases that leave or end
    assert system.has_successor.tolist() == [True, True, True, True, False]
    assert system.has_predecessor.tolist() == [False, True, True, True, True]
    for rows, label in (system.forward, "c"), (system.forward, "■"), (system.backward, "▶"):
        assert labelled(rows, system, (label,)) == {(label,): 1.0}


@pytest.mark.parametrize(
    "log", [log_of("ab", "a"), log_of("ab", "a").astype({"concept:name": "category"})]
)
def test_events_are_ordered_by_time(log):
    shuffled = log.sample(frac=1, random_state=1)
    assert set(TransitionSystem.from_log(shuffled).states) == set(
        TransitionSystem.from_log(log).states
    )
    assert (
        TransitionSystem.from_log(log.drop(columns="time:timestamp")).states
        == TransitionSystem.from_log(log).states
    )


def by_exhaustion(log, window, direction, abstraction):
    """The case of each time that a transition is taken, from the definition."""
    cases = defaultdict(list)
    order = {"▶": -1, "■": 1}
    for case, events in log.groupby("case:concept:name")["concept:name"]:
        items, states = ["▶", *events, "■"], []
        for position in range(len(items)):
            near = items[position::-1] if direction == "prefix" else items[position:]
            state = near[:window] if direction == "suffix" else near[:window][::-1]
            if abstraction != "sequence":
                kept = state if abstraction == "multiset" else set(state)
                state = sorted(kept, key=lambda item: (order.get(item, 0), item))
            states.append(tuple(state))
        for transition in pairwise(states):
            cases[transition].append(case)
    return cases


@given(
    seed=st.integers(0, 10**6),
    window=st.sampled_from([None, 1, 2, 3]),
    direction=st.sampled_from(["prefix", "suffix"]),
    abstraction=st.sampled_from(["sequence", "multiset", "set"]),
    counted=st.sampled_from([("cases", set), ("occurrences", list)]),
)
def test_counts_are_those_of_an_exhaustive_search(seed, window, direction, abstraction, counted):
    log = random_log(np.random.default_rng(seed), cases=8, activities="abc")
    counting, these = counted
    system = TransitionSystem.from_log(log, window, direction, abstraction, counting)
    expected = by_exhaustion(log, window, direction, abstraction)
    assert len(set(system.states)) == system.n_states
    counts = system.counts.tocoo()
    ends = (
        (system.states[i], system.states[j]) for i, j in zip(counts.row, counts.col, strict=True)
    )
    assert dict(zip(ends, counts.data.tolist(), strict=True)) == {
        transition: len(these(cases)) for transition, cases in expected.items()
    }
    # Bayes' rule, from the forward probabilities and the visits of the states that go on
    joint = np.where(system.final, 0.0, system.visits)[:, None] * system.forward.toarray()
    entered = system.has_predecessor
    bayes = (joint / np.where(entered, joint.sum(axis=0), 1.0)).T
    assert system.backward.toarray()[entered] == pytest.approx(bayes[entered], abs=1e-12)
