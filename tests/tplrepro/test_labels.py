"""What comes in with labels goes out with them, and what is shown is short."""

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl

P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["<home>", "work"])
TIMES = pd.date_range("2024-05-01", periods=12, freq="1h", name="hour")


@pytest.mark.parametrize(
    "allocate",
    [
        lambda **index: tpl.allocate_by_quantification(1.0, P, P, 12, **index),
        lambda **index: tpl.allocate_by_quantification(1.0, P, np.eye(2), 12, **index),
        lambda **index: tpl.allocate_optimally(1.0, P, P, 12, **index),
        lambda **index: tpl.allocate_optimally(1.0, None, None, 12, **index),
        lambda **index: tpl.allocate_by_exact_leakage(1.0, P, P, 12, **index),
    ],
)
def test_budgets_of_times_keep_them_to_the_release(allocate):
    budgets = allocate(index=TIMES)
    assert budgets.index.equals(TIMES)
    assert budgets.tolist() == allocate().tolist()
    leakage = tpl.temporal_privacy_leakage(budgets, P, P)
    assert leakage.to_frame().index.equals(TIMES)
    counts = pd.DataFrame({"home": range(12)}, TIMES)
    assert tr.release_counts(counts, np.minimum(budgets, 1), 1).index.equals(TIMES)
    assert tpl.temporal_privacy_leakage(budgets.tolist(), P, P).to_frame().index.name == "time"


def test_noise_of_times_keeps_them_to_the_release():
    noise = tf.allocate_noise(1.0, 1e-6, P, P, 12, index=TIMES)
    assert noise.index.equals(TIMES)
    assert noise.name == "noise_multiplier"
    assert noise.tolist() == tf.allocate_noise(1.0, 1e-6, P, P, 12).tolist()
    counts = pd.DataFrame({"home": range(12)}, TIMES)
    gaussian = {"sensitivity": 2**0.5, "mechanism": "opendp-gaussian"}
    assert tr.release_counts(counts, noise_multipliers=noise, **gaussian).index.equals(TIMES)


def test_columns_of_any_name_make_sequences():
    visits = pd.DataFrame(
        {"who": list("aaabbb"), "day": [3, 1, 2] * 2, "state": 0, "where": list("yxxyxy")}
    )
    named = {"user": "who", "time": "day", "state": "where"}
    found = tpl.TransitionMatrix.from_sequences(visits, **named)
    read = tpl.TransitionMatrix.from_sequences(tr.read_sequences(visits, **named))
    assert found.states == read.states == ["x", "y"]
    assert found.toarray().tolist() == read.toarray().tolist() == [[1 / 3, 2 / 3], [0.0, 1.0]]
    with pytest.raises(
        ValueError, match="user must name columns of a DataFrame, found .*'who'.*correct them"
    ):
        tpl.TransitionMatrix.from_sequences(visits, user="whom")
    with pytest.raises(ValueError, match="user must name columns of a DataFrame, found list"):
        tpl.TransitionMatrix.from_sequences([[0, 1]], user="who")


def test_counts_of_steps_come_with_their_labels():
    counted = tpl.markov.count_transitions([["a", "b", "b"], ["b", "a"]])
    assert (
        tpl.TransitionMatrix.from_counts(counted).states
        == tf.loss_from_counts(counted).matrix.states
        == ["a", "b"]
    )
    with pytest.raises(ValueError, match="states and the counts must have the same states"):
        tpl.TransitionMatrix.from_counts(counted, states=["b", "a"])


def test_what_is_printed_and_shown_has_at_most_ten_rows(tmp_path):
    leakage = tpl.temporal_privacy_leakage(0.1, P, P, horizon=100)
    assert str(leakage).splitlines()[0].split() == ["epsilon", "BPL", "FPL", "TPL"]
    assert len(str(leakage).splitlines()) == 13
    big = tpl.TransitionMatrix.random(50, rng=np.random.default_rng(0))
    walk = np.random.default_rng(0).integers(0, 2, (30, 40))
    advice = tr.report(list(walk), alpha=1.0, horizon=10, draws=0)
    account = tpl.TemporalAccountant(P, P).compose(0.1, 100)
    publisher = tr.Publisher(
        tmp_path / "a", backward=P, forward=P, alpha=1.0, sensitivity=1, floor=0.1
    )
    publisher.publish(0, 1)
    events = tf.EventAccountant(P, P).compose(0.1, 3)
    pairs = tf.pairwise_leakage([[0, 1], [1, 0]], P, P, horizon=20)
    measured = tf.measured_leakage(np.ones((3, 20, 2)), P, P)
    users = tr.population_leakage(dict(enumerate(walk)), [0.1] * 20)
    drawn = leakage, P, advice, *advice.plans, pairs, measured, users
    for shown in (*drawn, big, account, events, publisher):
        page = shown._repr_html_()
        assert 1 <= page.count("<tr") <= 13  # one or two for names, one for the gap
    for shown in drawn:
        axes = shown.plot()
        assert axes.get_xlabel() in ("time $t$", "release $t$", "state")
        assert "(nats)" in axes.get_ylabel() or axes.get_ylabel() == "given state"
    assert pairs.to_frame()["tpl"].tolist() == pairs.tpl.max(axis=(1, 2)).tolist()
    assert "&lt;home&gt;" in P._repr_html_()
    assert "<home>" not in P._repr_html_()
    assert advice.sentences[0] in advice._repr_html_()
