"""Recorded people as states, and how estimates of them are judged."""

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from experiments import smoothing


def observed(rows, zone):
    table = pd.DataFrame(rows, columns=["user", "time", "cell"])
    table["time"] = pd.to_datetime(table["time"]).dt.tz_localize(zone).dt.tz_convert("UTC")
    return SimpleNamespace(synthetic=False, observations=table)


def test_users_are_in_their_last_cell_until_it_is_held_no_longer():
    rows = [
        (7, "2010-05-03 00:10", 4),
        (7, "2010-05-03 03:00", 9),
        (7, "2010-05-03 03:50", 4),
        (8, "2010-05-03 01:00", 9),
        (8, "2010-05-03 02:00", -1),
        (8, "2010-05-09 23:00", 4),
        (9, "2010-04-27 12:00", 4),  # of a week with fewer check-ins
    ]
    people = smoothing.gowalla_weeks(observed(rows, "America/New_York"), weeks=1, places=2, hold=2)
    assert people.labels == ["away", "cell 4", "cell 9"]
    assert people.states.shape == (2, 168)
    assert people.start == np.datetime64("2010-05-03")
    assert people.states[0, :8].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert people.states[1, :5].tolist() == [0, 2, 0, 0, 0]
    assert people.states[1, -1] == 1
    assert people.counts(np.array([0, 1]))[1].tolist() == [1, 1]
    moves = people._sequences(np.array([1]))
    assert (len(moves), moves.step, moves.n_states) == (1, timedelta(hours=1), 3)


def test_days_of_a_user_are_people_of_one_half():
    rows = [
        (1, "2009-01-01 00:05", 3),
        (1, "2009-01-02 12:00", 3),
        (2, "2009-01-01 12:00", 5),
        (3, "2009-01-05 23:59", 5),
    ]
    people = smoothing.geolife_days(observed(rows, "Asia/Shanghai"), minutes=10, places=2, hold=1)
    assert people.users.tolist() == [1, 1, 2, 3]
    assert people.states.shape == (4, 144)
    assert people.states[:, 72].tolist() == [0, 1, 2, 0]
    for seed in range(5):
        halves = smoothing.divide(people, np.random.default_rng(seed))
        counted, others = people.users[halves.counted], people.users[halves.others]
        assert not set(counted) & set(others)
        assert len(counted) + len(others) == 4


def test_a_right_chain_errs_least_and_a_wrong_one_little():
    rng = np.random.default_rng(0)
    chain = smoothing.map_chain(9, rng)
    true = smoothing.draw_counts(chain, 500, 100, rng)
    noisy = true + smoothing.draw_noise(true.shape, 0.3, rng)
    judged = smoothing.judge(true, noisy, 0.3, {"chain": chain})
    best_rival = min(judged.errors[name] for name in ("constant", "FAST", "random walk"))
    assert judged.errors["chain"] < best_rival < judged.errors["noisy"]
    assert judged.prefers == {"chain": True}
    assert 0.85 < judged.cover["chain"] < 0.95
    wrong = smoothing.judge_wrong_chains(4, rng=rng)
    assert wrong["attack"].tolist() == list(smoothing.ATTACKS)
    assert wrong[["smoothed", "online", "preferred"]].to_numpy().max() < 1.05


def test_a_world_has_a_row_with_the_means_of_its_series(monkeypatch):
    """Of 450 and of 100,000 people at two places; one of 20 places is left out."""
    monkeypatch.setattr(smoothing, "WORLDS", (*smoothing.WORLDS[:2], smoothing.WORLDS[8]))
    table = smoothing.judge_worlds(2, 2, 2, rng=np.random.default_rng(1))
    assert table.index.tolist() == [world.name for world in smoothing.WORLDS if world.states == 2]
    assert len(table) == 2
    assert (table["series"] == 2).all()
    assert (table[smoothing.SERIES_OF_BANDS] == 2).all()
    first = table.iloc[0]
    assert first["chain"] == pytest.approx(6.0, abs=1.5)
    assert first["noisy"] == pytest.approx(11.8, abs=1.0)


def test_bands_of_one_series_have_no_standard_error(monkeypatch):
    monkeypatch.setattr(smoothing, "WORLDS", smoothing.WORLDS[:1])
    (one,) = smoothing.judge_worlds(1, 1, 2, rng=np.random.default_rng(1)).to_dict("records")
    assert one[smoothing.SERIES_OF_BANDS] == 1
    assert np.isnan(one[smoothing.ERROR_OF_COVER])


def test_bands_are_judged_by_more_series_than_errors(monkeypatch):
    monkeypatch.setattr(smoothing, "WORLDS", smoothing.WORLDS[:1])
    (few,) = smoothing.judge_worlds(1, 2, 2, rng=np.random.default_rng(1)).to_dict("records")
    (more,) = smoothing.judge_worlds(1, 4, 2, rng=np.random.default_rng(1)).to_dict("records")
    changed = {name for name in few if few[name] != more[name]}
    assert changed == {"cover, chain", smoothing.SERIES_OF_BANDS, smoothing.ERROR_OF_COVER}
    assert 0.85 < more["cover, chain"] < 0.96
