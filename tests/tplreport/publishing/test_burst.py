"""Gaussian noise whose multipliers depend on what was published: a token bucket in a file."""

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl

#: Forgets soon, so that a filter finds its rate soon: it looks at all intervals within the memory.
MOVES = tpl.TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
SETTINGS = {
    "backward": MOVES.reverse(),
    "forward": MOVES,
    "alpha": 1.0,
    "delta": 1e-6,
    "burst": 3.0,
    "sensitivity": 2**0.5,
}


@pytest.fixture(scope="module")
def account():
    return tf.GaussianFilter(1.0, 1e-6, MOVES.reverse(), MOVES, burst=3.0)


@pytest.fixture
def publisher(tmp_path):
    return tr.Publisher(tmp_path / "counts.sqlite", **SETTINGS)


def test_multipliers_may_depend_on_what_was_published(publisher, account):
    account.state = account.exhausted()._replace(level=0.0)
    rng = np.random.default_rng(0)
    for time in range(30):
        assert publisher.remaining == account.remaining
        if rng.random() < 0.3:
            publisher.skip(time)
            account.skip()
            continue
        multiplier = None
        if rng.random() < 0.7:
            multiplier = account.remaining * rng.uniform(1.0, 2.0)
        noisy = publisher.publish(time, [40, 60], noise_multiplier=multiplier)
        account.spend(account.floor if multiplier is None else multiplier)
        assert len(noisy) == 2
        if time % 7 == 0:
            publisher = tr.Publisher(publisher.path)
    ledger = publisher.ledger
    assert "noise_multiplier" in ledger
    spent = ledger["noise_multiplier"].to_numpy()
    assert (spent[spent > 0.0] >= 0.99 * tf.gaussian_mu(1.0, 1e-6) ** -1).all()


def test_too_little_noise_is_refused_and_spends_nothing(publisher):
    before = publisher.remaining
    with pytest.raises(tpl.LeakageExceededError, match="noise multipliers must be at least"):
        publisher.publish(0, [1, 2], noise_multiplier=0.99 * before)
    assert publisher.remaining == before
    assert len(publisher) == 0


def test_a_table_has_the_multiplier_that_is_always_left(publisher, account):
    noisy = publisher.publish_table(pd.DataFrame([[5, 6]] * 40, columns=["home", "work"]))
    assert noisy.shape == (40, 2)
    assert publisher.ledger["noise_multiplier"].tolist() == [account.floor] * 40


def test_times_that_are_not_known_leave_the_floor(publisher, account):
    publisher.publish(0, [1, 2])
    publisher.resume(until=5)
    assert publisher.remaining == account.floor
    publisher.publish(6, [1, 2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": None}, "found no delta"),
        ({"floor": 0.1}, "leave one out"),
        ({"plan": [9.0]}, "leave one out"),
        ({"burst": -1.0}, "burst must be at least 0"),
        ({"burst": None}, "or a burst"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        tr.Publisher(tmp_path / "counts.sqlite", **SETTINGS | change)


def test_budgets_of_the_other_kind_are_refused(tmp_path, publisher):
    with pytest.raises(ValueError, match="give noise_multiplier="):
        publisher.publish(0, [1, 2], 0.1)
    with pytest.raises(ValueError, match="found epsilon="):
        publisher.skip(0, epsilon=0.1)
    with pytest.raises(ValueError, match="found a burst"):
        _ = publisher.leakage
    other = tr.Publisher(
        tmp_path / "other.sqlite", backward=None, forward=None, alpha=1.0, sensitivity=1, floor=0.1
    )
    with pytest.raises(ValueError, match="found a publisher without"):
        other.publish(0, [1, 2], noise_multiplier=3.0)


def test_other_settings_are_those_of_another_file(publisher):
    with pytest.raises(ValueError, match="other settings of burst"):
        tr.Publisher(publisher.path, **SETTINGS | {"burst": 2.0})
