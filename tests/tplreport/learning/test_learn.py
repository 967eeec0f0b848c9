"""A model is drawn once, tells what it promises, and a publisher counts it as its first release."""

import json
import os
import threading
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tplreport.command import main
from tplreport.learning.first_steps import FirstSteps
from tplreport.learning.learn import RepeatedModelWarning
from tplreport.learning.model import PrivateModel, Request, floor_beside_model
from tplreport.learning.noisy_counts import add_noise, largest_noise, tail_of_sum
from tplreport.learning.sufficient import needed
from tplreport.learning.training_time import end_of_training
from tplrepro.markov.sequences import Sequences

pytestmark = pytest.mark.usefixtures("seeded_noise")
P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "work"])


def weeks(users, rng, chain=P, steps=20):
    """Sequences of users who walk along a chain from its habit."""
    states = np.empty((users, steps + 1), dtype=int)
    rows = np.cumsum(chain.toarray(), axis=1)
    habit = np.cumsum(chain.stationary())
    last = chain.n_states - 1
    states[:, 0] = np.minimum(np.searchsorted(habit, rng.random(users)), last)
    for step in range(steps):
        ends = rows[states[:, step]]
        drawn = (rng.random(users)[:, None] > ends).sum(axis=1)
        states[:, step + 1] = np.minimum(drawn, last)
    offsets = np.arange(users + 1) * (steps + 1)
    return Sequences(states.ravel(), offsets, np.array(chain.states), np.arange(users))


@pytest.fixture(scope="module")
def data():
    return weeks(3000, np.random.default_rng(0))


@pytest.fixture
def settings(tmp_path):
    return {
        "path": tmp_path / "model.json",
        "states": ["home", "work"],
        "steps_per_user": 20,
        "epsilon": 0.5,
        "alpha": 1.0,
    }


def test_the_first_steps_of_each_user_are_counted_between_given_states():
    walks = {"ann": [["a", "b"], ["b", "a", "a"]], "bob": ["b", "b", "b", "b"], "eve": ["z"]}
    counted = FirstSteps.of(walks, ["a", "b", "other", "z"], 2, None)
    assert counted.users == 3
    assert counted.counts.tolist() == [[0, 1, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    few = FirstSteps.of(walks, ["b", "other"], 9, "other")
    assert few.counts.tolist() == [[3, 1], [1, 1]]
    with pytest.raises(ValueError, match="found other ones in the data") as error:
        FirstSteps.of(walks, ["a", "b"], 2, None)
    assert "'z'" not in str(error.value)
    with pytest.raises(ValueError, match="states must be given, found none: which states occur"):
        FirstSteps.of(walks, None, 2, None)
    with pytest.raises(ValueError, match="elsewhere must be one of the states"):
        FirstSteps.of(walks, ["a", "b"], 2, "elsewhere")
    with pytest.raises(ValueError, match="at least two states"):
        FirstSteps.of(walks, 1, 2, None)


@pytest.mark.parametrize(("n", "scale"), [(2, 3.0), (5, 40.0), (12, 0.7)])
def test_noise_of_a_row_or_column_is_within_its_bound_as_often_as_stated(n, scale):
    rng = np.random.default_rng(n)
    p = -np.expm1(-1 / scale)
    noise = rng.geometric(p, (40_000, n, n)) - rng.geometric(p, (40_000, n, n))
    largest = np.zeros(len(noise))
    for sign, axis in ((1, 1), (1, 2), (-1, 1), (-1, 2)):
        sums = np.maximum(sign * noise, 0).sum(axis=axis)
        largest = np.maximum(largest, sums.max(axis=1))
    for probability in (0.2, 0.025):
        bound = largest_noise(n, scale, probability)
        exceeded = np.mean(largest > bound)
        assert exceeded <= probability + 3 * np.sqrt(probability / len(noise))
        assert np.mean(largest > 0.9 * bound) > exceeded
        assert exceeded > probability / 4


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 57])
@pytest.mark.parametrize(("n", "scale"), [(2, 3.0), (5, 40.0)])
def test_the_bound_of_noise_is_the_smallest_one_and_on_the_safe_side(n, scale, limit):
    probability = 4 * n * tail_of_sum(limit, n, scale)
    assert largest_noise(n, scale, probability * (1 + 3e-6)) == limit
    assert largest_noise(n, scale, probability) == limit + 1


def test_the_noise_is_that_of_the_budget():
    drawn = np.concatenate([add_noise(np.zeros((20, 20), int), 0.5, 5).ravel() for _ in range(20)])
    scale = 2 * 5 / 0.5
    q = np.exp(-1 / scale)
    assert np.mean(np.abs(drawn)) == pytest.approx(2 * q / (1 - q**2), rel=0.05)
    assert drawn.dtype == np.int64


def test_half_of_what_may_fail_is_that_noise_exceeds_its_bound(data, settings):
    model = tr.learn_privately(data, **settings, confidence=0.9)
    scale = 2 * settings["steps_per_user"] / settings["epsilon"]
    assert model.noise == largest_noise(2, scale, (1.0 - 0.9) / 2.0)


def test_a_model_is_drawn_once(data, settings):
    model = tr.learn_privately(data, **settings)
    assert model.request.confidence_of_side == pytest.approx(0.9875)  # a quarter of 5 %
    written = settings["path"].read_bytes()
    with pytest.warns(RepeatedModelWarning, match="the same model is returned again"):
        again = tr.learn_privately(data, **settings)
    assert again.noisy_counts.tolist() == model.noisy_counts.tolist()
    assert again.floor == model.floor == PrivateModel.read(settings["path"]).floor
    for name, value in {"epsilon": 0.6, "steps_per_user": 19, "alpha": 2.0}.items():
        with pytest.raises(ValueError, match=f"learned with other {name}; use it"):
            tr.learn_privately(data, **settings | {name: value})
    with pytest.raises(ValueError, match="other users"):
        tr.learn_privately(data.select(np.arange(2999)), **settings)
    assert settings["path"].read_bytes() == written
    assert os.stat(settings["path"]).st_mode & 0o777 == 0o600
    assert [*settings["path"].parent.iterdir()] == [settings["path"]]


def test_a_model_that_is_interrupted_before_it_is_written_was_seen_by_nobody(
    data, settings, monkeypatch
):
    def interrupted(*words):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tr.learn_privately(data, **settings)
    assert not [*settings["path"].parent.iterdir()]
    assert tr.learn_privately(data, **settings).floor > 0


@pytest.mark.filterwarnings("ignore::tplreport.learning.learn.RepeatedModelWarning")
def test_of_several_at_once_the_first_that_is_written_counts(data, settings):
    found = []
    learn = [
        threading.Thread(target=lambda: found.append(tr.learn_privately(data, **settings)))
        for _ in range(8)
    ]
    for thread in learn:
        thread.start()
    for thread in learn:
        thread.join()
    assert len({model.to_json() for model in found}) == 1
    assert found[0].to_json() == settings["path"].read_text()


def test_what_does_not_suffice_is_said_before_anything_is_drawn(data, settings):
    few = data.select(np.arange(1000))
    with pytest.raises(
        ValueError,
        match="1,000 users and epsilon 0.5 do not suffice for 20 states: users times epsilon "
        "should be about 94,000 for the matrix, 47,000 for the floor alone; .*nothing was drawn",
    ):
        tr.learn_privately(few, **settings | {"states": ["home", "work", *range(18)]})
    assert not settings["path"].exists()
    with pytest.raises(ValueError, match="states must be given"):
        tr.learn_privately(few, **settings | {"states": None})
    with pytest.raises(ValueError, match="found a Cycle"):
        tr.learn_privately(tpl.Cycle([P, P]), **settings)
    settings["path"].write_text("[1, 2]")
    with pytest.raises(ValueError, match="must be the file of a private model"):
        tr.learn_privately(few, **settings)


def test_a_matrix_has_the_shares_of_what_noise_leaves_of_the_counts():
    """Nothing of a count that noise makes negative, and equal shares where nothing is left."""
    request = Request("matrix", ["a", "b"], 100, 20, 0.5, 0.95, 1.0, None)
    model = PrivateModel(request, noisy_counts=np.array([[30, -4], [-2, 0]]), noise=3)
    assert model.matrix.toarray().tolist() == [[1.0, 0.0], [0.5, 0.5]]
    mixed = PrivateModel(request, noisy_counts=np.array([[30, 10], [0, 7]]), noise=3)
    assert mixed.matrix.toarray().tolist() == [[0.75, 0.25], [0.0, 1.0]]


@pytest.mark.parametrize("epsilon", [1.0, 1.5])
def test_nothing_is_left_beside_a_model_that_spends_all(epsilon):
    loss = tpl.PrivacyLossFunction(P)
    assert floor_beside_model(1.0, loss, loss, epsilon) == 0.0
    assert 0.0 < floor_beside_model(1.0, loss, loss, 1.0 - 1e-3) < 1e-3


@pytest.mark.parametrize("method", ["matrix", "floor"])
def test_the_users_that_are_needed_rise_along_straight_lines_of_logarithms(method):
    sizes = [*range(2, 90)]
    users = [needed(n, method) for n in sizes]
    assert (np.diff(users) > 0.0).all()
    slopes = np.diff(np.log(users)) / np.diff(np.log(sizes))
    assert slopes[:3] == pytest.approx(slopes[0])  # from 2 to 5 states
    assert slopes[3:] == pytest.approx(slopes[3])
    assert slopes[0] != pytest.approx(slopes[3])


def test_losses_are_above_those_of_exact_counts_and_a_floor_is_below(data, settings):
    model = tr.learn_privately(data, **settings)
    counts = FirstSteps.of(data, ["home", "work"], 20, None).counts
    exact = {"forward": tf.loss_from_counts(counts), "backward": tf.loss_from_counts(counts.T)}
    for side, loss in exact.items():
        for level in (0.1, 1.0, 4.0):
            assert getattr(model, side)(level) > loss(level)
    assert 0.02 < model.floor < tpl.allocate_by_upper_bound(1.0, **exact)
    assert model.floor_for(2.0) > model.floor
    without = PrivateModel(model.request, np.zeros((2, 2), np.int64), model.noise)
    assert (without.floor, without.matrix.toarray().tolist()) == (0.0, [[0.5, 0.5]] * 2)
    with pytest.raises(ValueError, match="the floor is 0: 3,000 users and epsilon 0.5 do not"):
        tr.Publisher(settings["path"].with_name("p"), model=without, alpha=1.0, sensitivity=2)


def test_a_floor_of_0_is_said_to_have_spent_the_budget(tmp_path, monkeypatch, capsys):
    """Only what is drawn tells that a state has too few steps: nothing public refuses before."""
    monkeypatch.setattr("tplreport.learning.learn.add_noise", lambda counts, *_: counts)
    rows = [(user, time, 0) for user in range(500) for time in range(21)]
    walks = tmp_path / "walks.csv"
    pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv(walks, index=False)
    model = tmp_path / "model.json"
    budget = ["--steps-per-user", "20", "--epsilon", "0.9", "--alpha", "1", "--states", "0,1"]
    assert main(["learn", str(walks), str(model), *budget]) == 2
    assert PrivateModel.read(model).floor == 0.0
    error = capsys.readouterr().err
    assert "the floor is 0: 500 users and epsilon 0.9 do not suffice" in error
    assert "epsilon 0.9 is spent all the same, as the model was drawn" in error
    assert "alpha/T is (alpha - 0.9)/T for its people" in error
    assert "another model of them adds its epsilon" in error


def test_a_publisher_counts_the_model_as_its_first_release(data, settings):
    model = tr.learn_privately(data, **settings | {"until": "2024-04-30 23:00"})
    path = settings["path"].with_name("counts.sqlite")
    made = {"alpha": 1.0, "sensitivity": 2, "step": "1h"}
    publisher = tr.Publisher(path, model=settings["path"], **made)
    account = tpl.TemporalFilter(1.0, model.backward, model.forward, floor=model.floor)
    account.spend(0.5)
    assert publisher.remaining == account.remaining
    assert "after a model of epsilon=0.5" in repr(publisher)
    with pytest.raises(ValueError, match="must come after the last training time"):
        publisher.publish("2024-04-30 23:00", {"home": 5, "work": 4})
    with pytest.raises(ValueError, match="which cannot be compared"):
        publisher.publish("2024-05-01 00:00+02:00", {"home": 5, "work": 4})
    publisher.publish("2024-05-01 00:00", {"home": 5, "work": 4})
    again = tr.Publisher(path, model=model, **made)
    again.publish("2024-05-01 01:00", {"home": 5, "work": 4})
    account.spend(model.floor, 2)
    assert tr.Publisher(path).remaining == account.remaining
    ledger = again.ledger
    assert ledger["kind"].tolist() == ["model", "published", "published"]
    assert ledger["epsilon"].tolist() == [0.5, model.floor, model.floor]
    assert str(ledger["time"][0]) == "2024-04-30 23:00:00"
    expected = tpl.temporal_privacy_leakage(
        [0.5, model.floor, model.floor], model.backward, model.forward
    )
    np.testing.assert_allclose(again.leakage.tpl, expected.tpl, rtol=1e-12)
    assert again.leakage.to_frame().index[0] == pd.Timestamp("2024-04-30 23:00")
    with pytest.raises(ValueError, match="keeps the chain of its model"):
        again.change_chain("2024-05-01 02:00", forward=P, start="habit")
    with pytest.raises(tpl.LeakageExceededError):
        again.publish("2024-05-01 02:00", {"home": 5, "work": 4}, epsilon=0.9)
    with pytest.raises(ValueError, match="other settings of model|other settings of .*floor"):
        tr.Publisher(path, model=model, **made, floor=model.floor / 2)


def test_counts_are_smoothed_by_the_noisy_shares(data, settings):
    model = tr.learn_privately(data, **settings)
    path = settings["path"].with_name("counts.sqlite")
    publisher = tr.Publisher(path, model=model, alpha=1.0, sensitivity=2)
    rng = np.random.default_rng(0)
    people = [[300, 600]]
    for _ in range(59):
        to_work, to_home = rng.binomial(people[-1], [0.2, 0.1])
        at_home = people[-1][0] - to_work + to_home
        people.append([at_home, 900 - at_home])
    true = pd.DataFrame(people, columns=["home", "work"])
    noisy = publisher.publish_table(true)
    smoothed = publisher.smoothed(chain=model.matrix)
    error = (smoothed.estimate - true).abs().to_numpy().mean()
    assert error < (noisy - true).abs().to_numpy().mean()
    assert len(smoothed.estimate) == len(noisy)


def test_several_statistics_divide_the_floor_of_a_model(data, settings):
    model = tr.learn_privately(data, **settings)
    path = settings["path"].with_name("counts.sqlite")
    statistics = {
        "people": {"sensitivity": 2, "share": 0.7},
        "spent": {"sensitivity": 50, "share": 0.3},
    }
    made = {"model": model, "alpha": 1.0}
    publisher = tr.Publisher(path, **made, statistics=statistics, floor="largest")
    for time in range(3):
        publisher.publish(time, {"people": {"home": 5, "work": 4}, "spent": 403})
    ledger = publisher.ledger
    assert ledger["epsilon"].tolist()[0] == 0.5
    assert ledger["epsilon: people"].tolist()[0] == ledger["epsilon: spent"].tolist()[0] == 0.0
    assert ledger["epsilon"].tolist()[1] == pytest.approx(model.floor, rel=1e-9)
    statistics["spent"]["every"] = 7
    with pytest.raises(ValueError, match="a model takes statistics that are due at every time"):
        tr.Publisher(path.with_name("b"), **made, statistics=statistics)


def test_a_copy_of_a_publisher_with_a_model_resumes(data, settings):
    model = tr.learn_privately(data, **settings)
    path = settings["path"].with_name("counts.sqlite")
    publisher = tr.Publisher(path, model=model, alpha=1.0, sensitivity=2)
    publisher.backup(path.with_name("copy.sqlite"))
    copy = tr.Publisher(path.with_name("copy.sqlite")).resume()
    assert copy.remaining == publisher.remaining
    publisher.publish(7, 5)
    copy.publish(7, 5)
    assert copy.remaining == publisher.remaining
    copy.resume(20)
    assert copy.remaining < publisher.remaining
    copy.publish(21, 5)


def test_a_publisher_takes_a_model_or_a_chain(data, settings):
    model = tr.learn_privately(data, **settings)
    path = settings["path"].with_name("counts.sqlite")
    made = {"model": model, "alpha": 1.0, "sensitivity": 2}
    wrong = {
        "forward= and plan=": {"forward": P, "plan": [0.1]},
        "backward=": {"backward": None},
        "start=": {"start": "habit"},
        "delta=": {"delta": 1e-6},
    }
    for names, words in wrong.items():
        with pytest.raises(ValueError, match=f"a model holds both sides .* found {names} too"):
            tr.Publisher(path, **made, **words)
    with pytest.raises(ValueError, match="floor must be at most .*, that of the model"):
        tr.Publisher(path, **made, floor=1.01 * model.floor)
    assert not path.exists()


def test_a_model_is_json_that_another_one_reads(data, settings):
    model = tr.learn_privately(data, **settings)
    content = json.loads(settings["path"].read_text())
    assert content["request"]["states"] == ["home", "work"]
    assert PrivateModel.from_json(json.dumps(content)).to_json() == model.to_json()
    assert "about a person's whole training series" in str(model)
    assert "0.05" in model.statement
    numbers = tr.learn_privately(
        weeks(3000, np.random.default_rng(1), tpl.TransitionMatrix(P.toarray())),
        **settings | {"path": settings["path"].with_name("b"), "states": 2, "alpha": None},
    )
    assert numbers.states == [0, 1]
    with pytest.raises(ValueError, match=r"call floor_for\(alpha\)"):
        _ = numbers.floor
    assert numbers.floor_for(1.0) > 0


@pytest.mark.filterwarnings("default")
def test_the_command_learns_once_and_publishes(data, tmp_path, capsys):
    table = pd.DataFrame({"who": np.repeat(data.users, 21), "at": np.tile(np.arange(21), 3000)})
    table["place"] = data.labels[data.values]
    table.to_csv(tmp_path / "walks.csv", index=False)
    (tmp_path / "states.txt").write_text("home\nwork\n")
    counts = tmp_path / "counts.csv"
    counts.write_text("time,home,work\n2024-05-01 08:00,105,98\n2024-05-01 09:00,104,99\n")
    model = str(tmp_path / "model.json")
    columns = ["--user", "who", "--time", "at", "--state", "place"]
    learn = ["learn", str(tmp_path / "walks.csv"), model, *columns, "--steps-per-user", "20"]
    listed = ["--states", str(tmp_path / "states.txt"), "--alpha", "1"]
    assert main([*learn, *listed, "--epsilon", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "epsilon = 0.5 about a person's whole training series" in said
    floor = PrivateModel.read(model).floor
    assert f"Floor: {floor:.6g} nats" in said
    typed = ["--states", "home,work", "--alpha", "1"]
    assert main([*learn, *typed, "--epsilon", "0.5", "--json"]) == 0
    found = capsys.readouterr()
    assert found.out.strip() == (tmp_path / "model.json").read_text()
    assert "the same model is returned again" in found.err
    assert main([*learn, *typed, "--epsilon", "0.6"]) == 2
    assert "other epsilon; use it, or take another name" in capsys.readouterr().err
    other = ["--states", "home", "--elsewhere", "pub", "--epsilon", "0.5"]
    assert main([*learn, *other]) == 2
    file = str(tmp_path / "counts.sqlite")
    publish = ["publish", file, str(counts), "--model", model]
    settings = ["--alpha", "1", "--sensitivity", "2", "--step", "1h"]
    assert main([*publish, *settings, "--matrix", "P.csv"]) == 2
    assert "--model holds the chain and its floor, found --matrix too" in capsys.readouterr().err
    assert main([*publish, *settings]) == 0
    assert main(publish) == 0
    capsys.readouterr()
    assert main(["ledger", file]) == 0
    assert "model" in capsys.readouterr().out
    assert tr.Publisher(file).ledger["epsilon"].tolist() == [0.5, floor, floor]
    other_model = str(tmp_path / "model2.json")
    assert main([*learn[:2], other_model, *learn[3:], *typed, "--epsilon", "0.5"]) == 0
    assert main(["publish", file, str(counts), "--model", other_model]) == 2
    assert "must be used as it was made, found another --model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("until", "refused", "taken"),
    [
        (pd.Timestamp("2024-04-30").date(), "2024-04-30 23:00", "2024-05-01 00:00"),
        ("2024-04-30", "2024-04-30 23:00", "2024-05-01 00:00"),
        (" 2024/04/30", "2024-04-30 23:00", "2024-05-01 00:00"),
        (np.datetime64("2024-04-30"), "2024-04-30 23:00", "2024-05-01 00:00"),
        (pd.Period("2024-04-30", "D"), "2024-04-30 23:00", "2024-05-01 00:00"),
        ("2024-04-30 12:00", "2024-04-30 12:00", "2024-04-30 13:00"),
        (np.int64(7), 7, 8),
        (pd.Timestamp("2024-04-30 12:00"), "2024-04-30 12:00", "2024-04-30 13:00"),
        (7, 7, 8),
    ],
)
def test_a_release_comes_after_the_last_training_time(data, settings, until, refused, taken):
    model = tr.learn_privately(data, **settings | {"until": until})
    path = settings["path"].with_name("counts.sqlite")
    step = 1
    if isinstance(taken, str):
        step = "1h"
    publisher = tr.Publisher(path, model=model, alpha=1.0, sensitivity=2, step=step)
    with pytest.raises(ValueError, match="otherwise a person's leakage is alpha"):
        publisher.publish(refused, 5)
    assert len(publisher) == 0
    publisher.publish(taken, 5)


def test_a_day_of_training_ends_at_its_last_nanosecond():
    midnight = pd.Timestamp("2024-05-01")
    assert end_of_training("2024-04-30") == midnight - pd.Timedelta(nanoseconds=1)
    assert end_of_training("2024-04-30 12:00") == pd.Timestamp("2024-04-30 12:00")


@pytest.mark.parametrize(
    "until",
    [
        *("04.05.2024", "20240430", "2024", "2024-04", "2024-Q2", "April 2024", "30.04.2024"),
        *("2024-04-31", "2024-04-30 24:00", "2024-04-30 08", "10:00", "", "nan"),
        *(np.datetime64("2024-04"), pd.Period("2024-04", "M"), pd.NaT, 45412.0, True),
    ],
)
def test_a_last_training_time_is_a_number_or_a_date_in_full(data, settings, until):
    """Which day 04.05.2024 is, and whether all of 2024-04 is meant, would be guessed."""
    with pytest.raises(ValueError, match="last training time must be a whole number or a date in"):
        tr.learn_privately(data, **settings | {"until": until})
    assert not settings["path"].exists()


def test_a_model_that_was_made_with_another_last_training_time_is_refused(data, settings):
    """As files of before may hold."""
    model = tr.learn_privately(data, **settings | {"until": "2024-04-30"})
    request = replace(model.request, until="30.04.2024")
    path = settings["path"].with_name("counts.sqlite")
    publisher = tr.Publisher(
        path, model=replace(model, request=request), alpha=1.0, sensitivity=2, step="1h"
    )
    with pytest.raises(ValueError, match="must be a whole number or a date in full, found '30.04"):
        publisher.publish("2024-05-01 00:00", 5)


def walkers(last, users=60, hours=13):
    """Rows of users who come and go, and of one whose rows are `last`."""
    rng = np.random.default_rng(1)
    rows = [
        (f"u{k}", pd.Timestamp("2024-04-01") + pd.Timedelta(hours=hour), state)
        for k in range(users)
        for hour, state in enumerate(rng.integers(0, 2, hours).tolist())
    ]
    return pd.DataFrame([*rows, *last], columns=["user", "time", "state"])


def rows_of(states, hours=None):
    hours = hours or range(len(states))
    start = pd.Timestamp("2024-04-01")
    return [("x", start + pd.Timedelta(hours=h), s) for h, s in zip(hours, states, strict=True)]


#: What one user may do: another text, a number as text, no state, only a late row, nothing new.
SERIES = {
    "usual": rows_of([0, 1, 0]),
    "other texts": rows_of(["lost", "True", str(10**19)]),
    "as texts": rows_of(["1.0", "007", "0"]),
    "no state": rows_of([None, None, None]),
    "late": rows_of([1, 1], [0, 900]),
    "at changes": rows_of([0, 1] * 6, range(0, 60, 5)),
}


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_one_user_changes_counts_by_no_more_than_her_own_steps(tmp_path, name, kind):
    """Whatever she does, as far as what is read of others is concerned."""

    def counts(series):
        data = walkers(series)
        if kind == "csv":
            data.to_csv(tmp_path / "rows.csv", index=False)
            data = tmp_path / "rows.csv"
        with warnings.catch_warnings(action="ignore"):
            found = tr.read_sequences(data, step="1h", max_gap="1h", missing="drop")
            return FirstSteps.of(found, [0, 1], 4, 1)

    usual = counts(SERIES["usual"])
    other = counts(SERIES[name])
    assert np.abs(usual.counts - other.counts).sum() <= 2 * 4
    assert usual.users == other.users == 61


@pytest.mark.parametrize(
    ("reading", "found"),
    [
        ({"step": "1h"}, r"how long a state holds \(give max_gap=, such as the step\)"),
        ({"state": "state", "bins": 2, "step": "1h", "max_gap": "1h"}, "the edges of bins"),
        (
            {"cell_km": 1, "latitude": "lat", "longitude": "lon", "step": "1h", "max_gap": "1h"},
            r"where cells begin \(give box=\)",
        ),
    ],
)
def test_what_the_rows_of_all_decide_is_refused(settings, reading, found):
    """One user would change what is counted of others, by more than the noise hides."""
    data = walkers(SERIES["usual"]).assign(lat=50.0, lon=8.0)
    data["lat"] += 0.01 * data["state"]
    sequences = tr.read_sequences(data, user="user", time="time", **reading)
    with pytest.raises(ValueError, match=f"not depend on the rows of others, .* decide {found}"):
        tr.learn_privately(sequences, **settings)
    assert not settings["path"].exists()


@pytest.mark.parametrize("method", ["matrix", "floor"])
def test_a_model_knows_how_long_its_steps_take(settings, method):
    """A floor for hours leaks more at each minute."""
    frames = []
    start = pd.Timestamp("2024-04-01")
    rng = np.random.default_rng(0)
    for user in range(1500):
        states = P.sample(21, rng=rng)
        times = start + pd.to_timedelta(range(21), unit="h")
        frames.append(pd.DataFrame({"user": user, "time": times, "state": states}))
    rows = pd.concat(frames)
    sequences = tr.read_sequences(rows, step="1h", max_gap="1h")
    model = tr.learn_privately(sequences, **settings | {"method": method})
    assert model.request.step == "1h"
    assert PrivateModel.from_json(model.to_json()).request == model.request
    path = settings["path"].with_name("counts.sqlite")
    words = {"model": model, "alpha": 1.0, "sensitivity": 2}
    with pytest.raises(ValueError, match="found steps of 1h and step='1min'"):
        tr.Publisher(path, **words, step="1min")
    assert len(tr.Publisher(path, **words, step="1h")) == 0
    without = tr.read_sequences(rows.assign(time=rows["time"].astype("int64")), order="times")
    found = FirstSteps.of(without, ["home", "work"], 20, None)
    assert found.step is None
