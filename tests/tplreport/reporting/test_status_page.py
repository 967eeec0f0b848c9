"""The status page of a publisher: what it says, that it escapes labels, and that its bands hold."""

import re

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
from tplreport.reporting.status_page import status_page

P = [[0.8, 0.2], [0.1, 0.9]]
BOTH = {"backward": P, "forward": P, "alpha": 1.0}
STATISTICS = {
    "people": {"sensitivity": 2, "share": 0.6},
    "<b>spent</b>": {"sensitivity": 50.5, "share": 0.4, "every": 3},
}


@pytest.fixture
def publisher(tmp_path):
    path = tmp_path / "counts.sqlite"
    made = tr.Publisher(path, **BOTH, statistics=STATISTICS, floor="largest")
    for time in range(7):
        counts = {"people": {"home": 300 + time, "<script>": 60}}
        if time % 3 == 0:
            counts["<b>spent</b>"] = 4000.5
        made.publish(time, counts)
    return made.skip(7, 9)


def test_the_page_says_what_was_spent_what_leaks_and_what_remains(publisher):
    page = status_page(publisher)
    text = re.sub("<[^>]*>", " ", page)
    leakage = publisher.leakage.max()
    for expected in (
        "level that every time keeps (alpha)   1 nats",
        "times so far   10",
        "of which published   7",
        "of which skipped   3",
        f"largest leakage about one time so far   {leakage:.6g} nats",
        f"remains for the next time   {publisher.remaining:.6g} nats",
        "The promise holds for users who start in the law of backward=.",
    ):
        assert expected in re.sub(r"\s*\n\s*", "   ", text), expected
    assert page.count("<img ") == 3
    assert "<script" not in page
    assert "<b>spent" not in page
    values = publisher.to_frame("people")
    widths = publisher.values_with_bands(0.9)["people"].half_widths
    assert f"{values.loc[6, 'home']:.6g} ± {widths.loc[6, 'home']:.3g}" in page
    assert "<img " not in status_page(publisher, figures=False)


def test_a_page_of_nothing_of_a_plan_and_of_times_elsewhere(tmp_path):
    empty = tr.Publisher(tmp_path / "a", **BOTH, sensitivity=1, floor=0.1)
    assert "Nothing was published." in status_page(empty)
    empty.publish(0, 5)
    empty.backup(tmp_path / "copy")
    elsewhere = tr.Publisher(tmp_path / "copy").resume(3)
    assert "within alpha; times were spent elsewhere" in status_page(elsewhere)
    plan = tf.allocate_noise(2.0, 1e-6, P, P, 2)
    settings = BOTH | {"alpha": 2.0}
    gaussian = tr.Publisher(tmp_path / "g", **settings, sensitivity=1, plan=plan, delta=1e-6)
    gaussian.publish_table(pd.Series([100, 101]))
    page = status_page(gaussian)
    assert "nothing: the plan has ended" in page
    assert "1e-06" in page


@pytest.mark.parametrize("kind", ["whole", "decimals", "Gaussian"])
def test_bands_hold_the_noise_as_often_as_they_say(tmp_path, kind):
    """Of 4,000 values each, 5 standard deviations of their share below 0.8."""
    settings = {"sensitivity": 2, "alpha": 20.0, "backward": None, "forward": None}
    counts = np.full((1, 4000), 10**6)
    if kind == "decimals":
        counts = counts + 0.5
    if kind == "Gaussian":
        made = tr.Publisher(tmp_path / "a", **settings, plan=[1.5], delta=1e-6)
    else:
        made = tr.Publisher(tmp_path / "a", **settings, floor=0.7)
    made.publish(0, counts[0])
    found = made.values_with_bands(0.8)[""]
    share = (abs(found.values - counts) <= found.half_widths).to_numpy().mean()
    assert 0.8 - 5 * np.sqrt(0.16 / 4000) < share < 0.93
    with pytest.raises(ValueError, match=r"level must be a probability in \(0, 1\), found"):
        made.values_with_bands(1.0)
