"""The counts of a publisher's file, smoothed with the budgets of its ledger."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.tplreport.smoothing.worlds import TWO, counts_of
from tplreport import command

STATES = ["home", "work"]
CHAIN = tpl.TransitionMatrix(TWO, STATES)
# in some noise a rival of the chain fits better, which is a warning
pytestmark = pytest.mark.usefixtures("seeded_noise")
HOURS = pd.date_range("2024-05-06", periods=60, freq="1h", name="time")
TABLE = pd.DataFrame(counts_of(TWO, 300, len(HOURS), np.random.default_rng(1)), HOURS, STATES)


@pytest.fixture
def publisher(tmp_path):
    return tr.Publisher(
        tmp_path / "counts.sqlite",
        forward=TWO,
        start="habit",
        alpha=1.0,
        sensitivity=2,
        floor=0.1,
        step="1h",
    )


def test_the_ledger_knows_the_noise(publisher):
    publisher.publish_table(TABLE[:20])
    publisher.publish(HOURS[20], TABLE.iloc[20], epsilon=0.15)
    publisher.skip(HOURS[21], until=HOURS[24])
    publisher.skip(HOURS[25], epsilon=0.05)  # spent elsewhere
    publisher.publish_table(TABLE[26:])
    before = publisher.path.read_bytes()
    smoothed = publisher.smoothed(chain=CHAIN)
    assert publisher.path.read_bytes() == before
    budgets = np.full(60, 0.1)
    budgets[20] = 0.15
    noisy = publisher.to_frame().reindex(publisher.times)
    assert noisy.isna().any(axis=1).sum() == 5
    by_hand = tr.smooth_counts(noisy, chain=CHAIN, epsilons=budgets, sensitivity=2)
    pd.testing.assert_frame_equal(smoothed.to_frame(), by_hand.to_frame(), check_freq=False)
    assert smoothed.variances[20, 0] < smoothed.variances[19, 0]
    assert np.isinf(smoothed.variances[21:26]).all()
    online = publisher.smoothed(chain=None, online=True, whole=True)
    assert online.online


def test_a_chain_must_be_named(publisher):
    publisher.publish_table(TABLE)
    with pytest.raises(ValueError, match="chain must be given: the publisher's own matrices may"):
        publisher.smoothed()


def test_a_plan_of_gaussian_noise_has_its_multipliers(tmp_path):
    plan = tf.allocate_noise(1.0, 1e-6, TWO, TWO, 30)
    publisher = tr.Publisher(
        tmp_path / "gaussian.sqlite",
        backward=TWO,
        forward=TWO,
        alpha=1.0,
        delta=1e-6,
        sensitivity=2,
        plan=plan,
    )
    publisher.publish_table(TABLE[:30].reset_index(drop=True))
    smoothed = publisher.smoothed(chain=CHAIN)
    expected = (2.0 * np.asarray(plan)) ** 2 + 1.0 / 12.0
    np.testing.assert_allclose(smoothed.variances[:, 0], expected)


def test_each_of_several_statistics_is_smoothed_by_itself(tmp_path):
    publisher = tr.Publisher(
        tmp_path / "several.sqlite",
        backward=TWO,
        forward=TWO,
        alpha=1.0,
        statistics={
            "people": {"sensitivity": 2, "share": 0.75},
            "trips": {"sensitivity": 3, "share": 0.25},
        },
        floor=0.1,
        step="1h",
    )
    publisher.publish_table({"people": TABLE, "trips": TABLE[["work"]]})
    people = publisher.smoothed(statistic="people", chain=CHAIN)
    trips = publisher.smoothed(statistic="trips", chain=None)
    assert trips.variances[0, 0] == pytest.approx(2.0 * (3 / 0.025) ** 2, rel=1e-4)
    assert people.variances[0, 0] == pytest.approx(2.0 * (2 / 0.075) ** 2, rel=1e-3)
    with pytest.raises(ValueError, match="statistic must be one of people, trips, found none"):
        publisher.smoothed(chain=CHAIN)


def test_the_command_smooths_a_file(publisher, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    publisher.publish_table(TABLE)
    (tmp_path / "moves.csv").write_text("home,work\n0.83,0.17\n0.11,0.89\n")
    words = ["smooth", "counts.sqlite", "--matrix", "moves.csv", "--whole", "--level", "0.5"]
    assert (
        command.main([*words, "--csv", "smooth.csv", "--plot", "work.svg", "--column", "work"]) == 0
    )
    printed = capsys.readouterr()
    assert "60 times of 2 counts, smoothed" in printed.err
    expected = publisher.smoothed(chain=CHAIN, whole=True, level=0.5).to_frame()
    written = pd.read_csv("smooth.csv", index_col="time", parse_dates=True)
    np.testing.assert_allclose(written, expected)
    assert written.columns.tolist() == expected.columns.tolist()
    assert (tmp_path / "work.svg").stat().st_size > 5_000
    assert command.main(["smooth", "counts.sqlite"]) == 2
    assert (
        "must be that of --matrix, which is public, of --model, or --no-chain"
        in capsys.readouterr().err
    )
    assert command.main([*words, "--plot", "counts.sqlite"]) == 2
    assert command.main([*words, "--column", "work"]) == 2
    assert "--column belongs to plot" in capsys.readouterr().err
    assert command.main(["smooth", "counts.sqlite", "--no-chain", "--online", "--json"]) == 0
    assert capsys.readouterr().out.count("home lower") == 60


def learned(method, path):
    walks = [CHAIN.sample(21, rng=np.random.default_rng(seed)) for seed in range(500)]
    options = {"states": STATES, "steps_per_user": 20, "epsilon": 20.0, "alpha": 25.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tr.learn_privately(walks, path=path, method=method, **options)


def test_the_command_smooths_by_a_chain_that_was_learned_privately(
    publisher, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    publisher.publish_table(TABLE)
    model = learned("matrix", tmp_path / "model.json")
    words = ["smooth", "counts.sqlite", "--model", "model.json", "--csv", "smooth.csv"]
    assert command.main(words) == 0
    expected = publisher.smoothed(chain=model.matrix).to_frame()
    written = pd.read_csv("smooth.csv", index_col="time", parse_dates=True)
    np.testing.assert_allclose(written, expected)
    assert command.main([*words, "--total", "300"]) == 0
    capsys.readouterr()
    assert command.main([*words, "--no-chain"]) == 2
    assert "found --model and --no-chain; give one" in capsys.readouterr().err
    assert command.main(["smooth", "counts.sqlite", "--no-chain", "--total", "300"]) == 2
    assert "--total and initial= belong to a chain, found --no-chain" in capsys.readouterr().err
    learned("floor", tmp_path / "floor.json")
    assert command.main(["smooth", "counts.sqlite", "--model", "floor.json"]) == 2
    assert "found floor.json with one number, the floor; give a public --matrix" in (
        capsys.readouterr().err
    )
