"""A publisher's file holds no shares of the counts that its loss functions are made of."""

import json
import re

import numpy as np
import pytest

import tplfrontier as tf
import tplreport as tr
from tplreport.publishing.losses_as_json import loss_from_json, loss_to_json
from tplrepro.markov.cycle import Cycle

DAY = np.array([[83, 17], [11, 89]])
NIGHT = np.array([[970, 30], [41, 959]])
SETTINGS = {"alpha": 1.0, "sensitivity": 1, "floor": 0.01}


def sides(kind):
    """Loss functions of counts, backward and forward."""
    if kind == "one matrix":
        return tf.loss_from_counts(100 * DAY.T), tf.loss_from_counts(100 * DAY)
    tables = [100 * DAY, 100 * NIGHT]
    return tf.loss_from_counts([table.T for table in tables]), tf.loss_from_counts(tables)


def shares_beside_the_hull(content, loss):
    """The content of a loss function as files of before have it."""
    return content | {"rows": loss.matrix.toarray().tolist()}


def written_before(publisher, backward, forward):
    """Write the settings of a file as 0.4.0 did, with the observed shares."""
    with publisher._writing() as store:
        settings = store.read("settings")
        for name, side in {"backward": backward, "forward": forward}.items():
            content = settings[name]
            if isinstance(side, Cycle):
                losses = zip(content["losses"], side, strict=True)
                content["losses"] = [shares_beside_the_hull(*each) for each in losses]
            else:
                settings[name] = shares_beside_the_hull(content, side)
        store.write("settings", settings)


def numbers_in(path):
    return set(re.findall(r"\d\.\d+", path.read_bytes().decode("latin1")))


@pytest.mark.parametrize("kind", ["one matrix", "cycle"])
def test_the_shares_of_counts_are_not_written(tmp_path, kind):
    backward, forward = sides(kind)
    path = tmp_path / "counts.sqlite"
    publisher = tr.Publisher(path, backward=backward, forward=forward, **SETTINGS)
    noisy = publisher.publish(0, 5)
    shares = {"0.83", "0.17", "0.11", "0.89", "0.97", "0.03", "0.041", "0.959"}
    assert "rows" not in json.dumps(publisher.settings)
    assert not shares & numbers_in(path)
    remaining = publisher.remaining
    written_before(publisher, backward, forward)
    assert "0.83" in numbers_in(path)
    again = tr.Publisher(path, backward=backward, forward=forward, **SETTINGS)
    assert "rows" not in json.dumps(again.settings)
    assert again.remaining == remaining
    with pytest.warns(UserWarning, match="handed out before"):
        assert again.publish(0, 6) == noisy
    again.publish(1, 5)
    with pytest.raises(ValueError, match="other settings of backward"):
        tr.Publisher(path, backward=forward, forward=forward, **SETTINGS)


def test_a_hull_has_the_same_losses_and_states_after_a_round_trip():
    loss = tf.loss_from_counts(DAY, states=["home", "work"])
    again = loss_from_json(loss_to_json(loss))
    assert again.hull.tolist() == loss.hull.tolist()
    assert [again(level) for level in (0.1, 1.0, 9.0)] == [loss(level) for level in (0.1, 1, 9)]
    assert list(again.matrix.states) == ["home", "work"]
    assert again.matrix.toarray().tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert loss_to_json(again) == loss_to_json(loss)
