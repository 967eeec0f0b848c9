"""How simulated walks are recorded and read."""

import numpy as np
import pytest

from experiments.advice import recordings


def walks_read(recorded):
    data = recorded.sequences
    return {user: data.labels[walk].tolist() for user, walk in zip(data.users, data, strict=True)}


@pytest.mark.parametrize(
    ("recording", "is_asked"),
    [
        (recordings.IN_ORDER, False),
        (recordings.SHUFFLED, False),
        (recordings.UNUSUAL_TIME, True),
        (recordings.UNUSUAL_USER, True),
    ],
)
def test_tables_of_all_rows_give_the_walks(recording, is_asked):
    rng = np.random.default_rng(0)
    walks = rng.integers(0, 3, (4, 30))
    recorded = recordings.record(walks, recording, rng=rng)
    assert walks_read(recorded) == {f"user {k}": walk.tolist() for k, walk in enumerate(walks)}
    assert (recorded.every, recorded.is_asked) == (1, is_asked)


def test_of_three_times_a_step_the_third_one_counts():
    walks = np.random.default_rng(0).integers(0, 3, (4, 30))
    rng = np.random.default_rng(4)  # which leaves out no row
    recorded = recordings.record(walks, recordings.DROPPING, rng=rng)
    expected = {f"user {k}": [*walk[::3], walk[-1]] for k, walk in enumerate(walks)}
    assert walks_read(recorded) == expected
    assert recorded.every == 3


def test_rows_at_changes_hold_until_the_next_one():
    rng = np.random.default_rng(0)
    walks = np.repeat(rng.integers(0, 3, (4, 40)), rng.integers(1, 6, 40), axis=1)
    recorded = recordings.record(walks, recordings.CHANGES, rng=rng)
    for walk, found in zip(walks, walks_read(recorded).values(), strict=True):
        assert found == walk[: len(found)].tolist()
        assert len(found) > 0.8 * len(walk)
    assert (recorded.every, recorded.is_asked) == (1, True)


def test_a_quarter_of_the_hours_is_read_by_the_step_that_is_offered():
    rng = np.random.default_rng(0)
    walks = np.arange(400) % 4 * np.ones((6, 1), dtype=np.int64)
    recorded = recordings.record(walks, recordings.THINNED, rng=rng)
    before, after = recorded.sequences.transitions()
    assert ((before + 1) % 4 == after).all()
    assert before.size > 6 * 400 / 16 / 2
    assert (recorded.every, recorded.is_asked) == (1, True)
