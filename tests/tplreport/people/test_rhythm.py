"""Phases of the day are chosen by how well they predict other users: against likelihoods in loops,
and on people with and without a rhythm."""

from datetime import timedelta
from math import inf, lgamma, log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplreport as tr
from tplreport.people.rhythm import FOLDS, HeldOutGain, choose_rhythm, stays
from tplrepro.markov import Sequences, as_sequences

HOUR = timedelta(hours=1)


def staying(probability, n=2):
    """A matrix whose states last equally long, and lead to the others alike."""
    matrix = np.full((n, n), (1.0 - probability) / (n - 1))
    np.fill_diagonal(matrix, probability)
    return matrix


def people(seed, users, days, matrices, step=HOUR, first="2024-05-06"):
    """Users who all follow the matrices of the steps of a day, or of a week from Monday on."""
    rng = np.random.default_rng(seed)
    length = days * (timedelta(days=1) // step)
    upto = np.cumsum(matrices, axis=2)
    paths = np.empty((users, length), dtype=int)
    paths[:, 0] = rng.integers(len(upto[0]), size=users)
    for t in range(length - 1):
        drawn = rng.random((users, 1))
        later = (drawn > upto[t % len(upto)][paths[:, t]]).sum(axis=1)
        paths[:, t + 1] = np.minimum(later, len(upto[0]) - 1)
    return timed(paths, step, first)


def timed(paths, step=HOUR, first="2024-05-06"):
    users, length = paths.shape
    return Sequences(
        paths.ravel(),
        np.arange(users + 1) * length,
        np.arange(paths.max() + 1),
        np.arange(users),
        starts=np.full(users, np.datetime64(first, "us")),
        step=step,
    )


def lasting(seed, users, days):
    """Users who are the likelier to stay, the longer they have been in a state."""
    rng = np.random.default_rng(seed)
    length = 24 * days
    paths = np.zeros((users, length), dtype=int)
    paths[:, 0] = rng.integers(2, size=users)
    for user in range(users):
        lasted = int(rng.integers(1, 8))
        for t in range(length - 1):
            if rng.random() < (0.6 if lasted == 1 else 0.75 if lasted < 4 else 0.92):
                paths[user, t + 1] = paths[user, t]
                lasted += 1
            else:
                paths[user, t + 1] = 1 - paths[user, t]
                lasted = 1
    return timed(paths)


@pytest.mark.parametrize(
    ("night", "day", "hours", "n"),
    [(0.99, 0.4, 6, 3), (0.98, 0.85, 6, 2), (0.95, 0.75, 4, 2)],
    ids=["three states, nearly still", "two states, .98", "two states, .95"],
)
@pytest.mark.parametrize("users", [30, 15], ids=["many users", "few users"])
def test_nights_that_are_stiller_are_found(night, day, hours, n, users):
    matrices = [staying(night, n)] * hours + [staying(day, n)] * (24 - hours)
    rhythm = choose_rhythm(people(0, users, 14, matrices), smoothing=0.1)
    assert rhythm.matters
    assert not rhythm.stay.matters
    assert rhythm.chosen.phase.hours == hours
    assert not rhythm.chosen.phase.weekend
    assert rhythm.unit == ("user" if users == 30 else "stretch of time")
    stay_of_night = rhythm.cycle[0].toarray().diagonal()
    assert stay_of_night == pytest.approx(np.full(n, night), abs=0.04)
    assert rhythm.cycle[0] is rhythm.cycle[hours - 1]
    assert rhythm.groups.labels[0] == f"00:00-{hours:02d}:00"


def test_a_weekend_that_is_stiller_is_found():
    week = [staying(0.7)] * 24 * 5 + [staying(0.95)] * 48
    rhythm = choose_rhythm(people(1, 40, 28, week))
    assert rhythm.chosen.name == "weekdays and the weekend"
    assert rhythm.cycle.period == "week"


def test_habits_that_are_never_two_alike_have_all_hours():
    rng = np.random.default_rng(2)
    hours = rng.dirichlet(np.ones(3), (24, 3))
    assert choose_rhythm(people(2, 60, 14, hours)).chosen.name == "hours"


def test_the_length_of_a_stay_is_found_and_the_hour_is_not():
    rhythm = choose_rhythm(lasting(0, 30, 14))
    assert not rhythm.matters
    assert rhythm.stay.matters
    assert rhythm.stay.nats > 100


def chain(seed):
    n = 2 + seed % 3
    matrix = np.random.default_rng(seed).dirichlet(np.ones(n), n)
    return people(seed, [40, 6, 1][seed % 3], [7, 14][seed % 2], [matrix])


@pytest.mark.parametrize("seed", range(3))
def test_one_chain_has_no_rhythm(seed):
    rhythm = choose_rhythm(chain(seed))
    assert (rhythm.chosen.name, rhythm.chosen.n_phases, rhythm.chosen.gain.nats) == (
        "one chain",
        1,
        0.0,
    )
    assert len({id(matrix) for matrix in rhythm.cycle}) == 1


@pytest.mark.slow
def test_one_chain_seldom_seems_to_have_a_rhythm():
    found = [choose_rhythm(chain(seed)) for seed in range(100, 120)]
    assert sum(rhythm.matters for rhythm in found) <= 1
    assert sum(rhythm.stay.matters for rhythm in found) <= 1


@pytest.mark.slow
def test_users_who_differ_have_no_rhythm_for_that():
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        own = [people(rng, 1, 14, [rng.dirichlet(np.ones(3), 3)]) for _ in range(30)]
        paths = np.array([sequences.values for sequences in own])
        found.append(choose_rhythm(timed(paths)).matters)
    assert sum(found) <= 1


# ---- the gain of a candidate, by hand ----


def likeliest(counts, prior):
    """The matrix (n, n) of counts around a prior, whose weight makes all (g, n, n) likeliest."""

    def evidence(weight):
        total = 0.0
        for group in counts:
            for row, mean in zip(group, prior, strict=True):
                if weight < inf:
                    total += lgamma(weight) - lgamma(weight + row.sum())
                for count, expected in zip(row, mean, strict=True):
                    if count and weight == inf:
                        total += count * log(expected)
                    elif count:
                        base = weight * expected
                        total += lgamma(base + count) - lgamma(base)
        return total

    best = max([4.0**power for power in range(-3, 11)], key=evidence)
    best = max([best / 2, best, 2 * best], key=evidence)
    if evidence(inf) >= evidence(best):
        return np.array([prior] * len(counts))
    totals = counts.sum(axis=2, keepdims=True)
    return (counts + best * prior) / (totals + best)


def gain_by_hand(sequences, group_of_hour, n, n_groups):
    """The gain of each user, step by step, from the counts of other folds."""
    gains = []
    for user in range(len(sequences)):
        counts = np.zeros((n_groups, n, n))
        for other in range(len(sequences)):
            if other % FOLDS != user % FOLDS:
                path = sequences[other]
                for t in range(len(path) - 1):
                    counts[group_of_hour(t % 24), path[t], path[t + 1]] += 1
        together = counts.sum(axis=0)
        prior = (together + 1 / n) / (together.sum(axis=1, keepdims=True) + 1)
        rows = likeliest(counts, prior)
        path = sequences[user]
        gain = 0.0
        for t in range(len(path) - 1):
            step = path[t], path[t + 1]
            gain += log(rows[group_of_hour(t % 24)][step] / prior[step])
        gains.append(gain)
    return gains


@given(seed=st.integers(0, 10**6), hours=st.sampled_from([6, 12, 24]))
@settings(max_examples=5, deadline=None)
def test_gains_are_those_of_a_loop(seed, hours):
    data = people(seed, 22, 3, [staying(0.9, 3)] * 8 + [staying(0.5, 3)] * 16)
    gains = gain_by_hand(data, lambda hour: hour // hours, 3, 24 // hours)
    rhythm = choose_rhythm(data)
    (candidate,) = [
        candidate
        for candidate in rhythm.candidates
        if candidate.phase.hours == hours and not candidate.phase.weekend
    ]
    assert candidate.gain.nats == pytest.approx(sum(gains), abs=1e-6)
    assert candidate.gain.error == pytest.approx(np.std(gains) * np.sqrt(22), abs=1e-6)


@given(seed=st.integers(0, 10**6))
def test_stays_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, 4)
    offsets = np.cumsum([0, *lengths])
    values = rng.integers(0, 2, offsets[-1])
    data = Sequences(values, offsets, np.arange(2), np.arange(4))
    expected = []
    for path in data:
        for t in range(len(path)):
            lasted = 1
            while lasted <= t and path[t - lasted] == path[t]:
                lasted += 1
            level = 1 + (lasted >= 2) + (lasted >= 4)
            is_known = lasted <= t or lasted >= 4
            expected.append(level * is_known)
    assert stays(data).tolist() == expected


def test_the_choice_is_the_same_each_time_and_in_blocks(monkeypatch):
    data = people(3, 30, 7, [staying(0.95)] * 6 + [staying(0.6)] * 18)
    first = choose_rhythm(data)
    again = choose_rhythm(data)
    assert first.candidates == again.candidates
    assert first.stay == again.stay
    whole = Sequences.blocks
    monkeypatch.setattr(Sequences, "blocks", lambda self: whole(self, 1000))
    in_blocks = choose_rhythm(data)
    assert in_blocks.chosen.phase == first.chosen.phase
    for one, other in zip(in_blocks.candidates, first.candidates, strict=True):
        assert one.gain.nats == pytest.approx(other.gain.nats, abs=1e-6)


@pytest.mark.parametrize(
    ("step", "n_candidates"),
    [
        (HOUR, 16),
        (timedelta(minutes=45), 8),  # divides 24, 12, 6 and 3 hours
        (timedelta(days=1), 2),
        (timedelta(days=7), 1),
        (timedelta(hours=7), 1),  # divides a week, but no day
    ],
)
def test_phases_are_whole_steps(step, n_candidates):
    rng = np.random.default_rng(4)
    rhythm = choose_rhythm(timed(rng.integers(0, 2, (25, 60)), step))
    assert len(rhythm.candidates) == n_candidates
    n_phases = [candidate.n_phases for candidate in rhythm.candidates]
    assert n_phases == sorted(n_phases)
    assert n_phases[0] == 1


def test_times_that_were_read_have_a_rhythm_by_their_clock():
    """A rhythm by the clock of New York is found in times that are written in its zone."""
    matrices = [staying(0.97)] * 6 + [staying(0.6)] * 18
    data = people(5, 30, 14, matrices)
    times = pd.date_range("2024-05-06", periods=14 * 24, freq="1h", tz="America/New_York")
    rows = pd.DataFrame(
        {
            "user": np.repeat(data.users, data.lengths),
            "time": np.tile(times, len(data)),
            "state": data.values,
        }
    )
    found = choose_rhythm(tr.read_sequences(rows, step="1h"))
    assert found.chosen == choose_rhythm(data).chosen
    assert found.sequences.zone == "America/New_York"


def test_a_rhythm_needs_times_and_steps():
    with pytest.raises(ValueError, match="phases need sequences with one time step"):
        choose_rhythm([[0, 1, 0]])
    with pytest.raises(ValueError, match="a rhythm needs steps from state to state, found none"):
        choose_rhythm(timed(np.zeros((3, 1), dtype=int)))
    with pytest.raises(ValueError, match="sequences must know their times"):
        untimed = as_sequences([[0, 1, 0]])
        choose_rhythm(Sequences(untimed.values, [0, 3], untimed.labels, [0], step=HOUR))


def test_a_gain_matters_if_it_is_hardly_chance():
    assert HeldOutGain(nats=3.1, error=1.0).matters
    assert not HeldOutGain(nats=3.1, error=1.0, n_tried=15).matters
    assert not HeldOutGain(nats=30.0, error=16.0).matters


def test_a_part_of_very_many_users_is_judged_and_all_are_estimated_from(monkeypatch):
    data = people(6, 60, 14, [staying(0.97)] * 6 + [staying(0.6)] * 18)
    whole = choose_rhythm(data)
    monkeypatch.setattr("tplreport.people.rhythm.MOST_STEPS", data.n_transitions // 2)
    half = choose_rhythm(data)
    assert half.chosen.phase == whole.chosen.phase
    assert 0.4 < half.chosen.gain.nats / whole.chosen.gain.nats < 0.6
    assert [*half.cycle] == [*whole.cycle]
