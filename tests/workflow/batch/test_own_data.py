"""A file through `make own-data`: two shapes, the noisy series, and what is said of each
mistake."""

import json
import os
import re
from unittest import mock

import nbformat
import numpy as np
import pandas as pd
import pytest

from tplreport import Publisher, command, read_sequences
from tplreport.reporting.plans import estimated_pair
from tplrepro import temporal_privacy_leakage
from tplrepro.markov import count_transitions
from workflow.batch import own_data


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the notebook; gives the exit status, the printed lines, and the folder of results."""
    monkeypatch.setattr(own_data, "TARGET", tmp_path / "own_data")

    def run(**words):
        with mock.patch.dict(os.environ, {name: str(word) for name, word in words.items()}):
            status = own_data.main(list(words))
        return status, capsys.readouterr(), tmp_path / "own_data"

    return run


@pytest.fixture
def visits(tmp_path):
    """A file of twelve people at three places for twenty days."""
    places = np.random.default_rng(0).choice(["home", "7a", "a, b"], (12, 20))
    rows = [
        (f"p{who}", f"2024-05-{day + 1:02}", place) for (who, day), place in np.ndenumerate(places)
    ]
    pd.DataFrame(rows, columns=["who", "day", "place"]).to_csv(tmp_path / "visits.csv", index=False)
    return {"FILE": tmp_path / "visits.csv", "USER": "who", "TIME": "day", "STATE": "place"}


@pytest.mark.notebook
def test_budgets_noisy_counts_and_record_of_a_file(run, visits, tmp_path):
    series = tmp_path / "counts.csv"
    counts = pd.DataFrame({"home": np.arange(100, 106) / 2, "other": range(6)})
    counts.insert(0, "day", [f"d{t}" for t in range(6)])
    counts.to_csv(series, index=False, sep=";", decimal=",")
    status, printed, folder = run(**visits, ALPHA="1", HORIZON="6", COUNTS=series, DELTA="1e-6")
    assert (status, printed.err) == (0, "")
    about = "visits.csv\nRead: user from 'who', time from 'day', state from 'place'\n"
    assert [
        printed.out.count(said) for said in (about, "1. No: 6 releases", "order of the chain")
    ] == [1, 1, 1]
    assert "<Figure" not in printed.out
    budgets = pd.read_csv(folder / "own_data_budgets.csv")
    counted, states = count_transitions(
        read_sequences(visits["FILE"], user="who", time="day", state="place")
    )
    pair = estimated_pair(counted, states, 1.0)
    schemes = [name for name in budgets.columns if name.endswith(("the estimate", "anybody"))]
    assert len(schemes) == 4
    for scheme in schemes:
        assert temporal_privacy_leakage(budgets[scheme], *pair).tpl.max() <= 1
    assert (folder / "own_data.png").stat().st_size > 10_000
    record = json.loads((folder / "own_data.json").read_text())
    assert (record["results"]["states"], record["data"], len(record["inputs"])) == (
        3,
        "real (unverified)",
        1,
    )
    noisy = pd.read_csv(tmp_path / "counts_noisy.csv")
    assert noisy["day"].tolist() == [f"d{t}" for t in range(6)]
    assert (noisy.shape, *noisy.dtypes[1:]) == ((6, 3), np.float64, np.float64)
    assert "noise was added to home, other, and not to day" in printed.out
    assert Publisher(tmp_path / "counts.sqlite").remaining == 0.0  # the plan is spent
    assert "<h2>Verdict</h2>" in (folder / "own_data_report.html").read_text()


@pytest.mark.slow
@pytest.mark.notebook
def test_counts_are_published_once_whatever_else_is_asked(run, visits, tmp_path):
    """A second run gives the same values, also with another plan, and whole times and counts stay
    what they are."""
    series = tmp_path / "counts.csv"
    pd.DataFrame({"Datum": range(4), "home": range(100, 104)}).to_csv(series, index=False)
    words = visits | {"HORIZON": "6", "COUNTS": series, "DRAWS": "0", "TIME": "Datum"}
    pd.read_csv(visits["FILE"]).rename(columns={"day": "Datum"}).to_csv(visits["FILE"], index=False)
    handed_out = []
    for confidence in ("0.95", "0.5"):
        status, printed, _ = run(**words | {"ALPHA": "1", "CONFIDENCE": confidence})
        assert (status, "noise was added to home, and not to Datum: " in printed.out) == (0, True)
        assert ("its plan is that of the first run" in printed.out) == (confidence == "0.5")
        handed_out.append(pd.read_csv(tmp_path / "counts_noisy.csv"))
    assert handed_out[1].equals(handed_out[0])
    assert (handed_out[0]["Datum"].tolist(), handed_out[0]["home"].dtype) == (
        [0, 1, 2, 3],
        np.int64,
    )
    assert Publisher(tmp_path / "counts.sqlite").ledger["time"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("word", "value", "made"), [("ALPHA", "9", 1), ("SENSITIVITY", "1", 2), ("HORIZON", "7", 6)]
)
def test_counts_are_not_published_with_another_promise(run, visits, tmp_path, word, value, made):
    """One promise would be reported, and noise of another one handed out."""
    (tmp_path / "counts.csv").write_text("home\n100\n101\n")
    promise = {"alpha": 1.0, "sensitivity": 2, "plan": [0.1] * 6}
    Publisher(tmp_path / "counts.sqlite", backward=None, forward=None, **promise)
    words = visits | {"ALPHA": "1", "HORIZON": "6", "COUNTS": tmp_path / "counts.csv"}
    status, printed, folder = run(**words | {word: value})
    assert (status, folder.exists()) == (2, False)
    assert f"{word} must be {made}, with which" in printed.err
    assert f"counts.sqlite was made, found {value}; give that" in printed.err


def test_a_recommendation_that_is_withheld_ends_with_3(run, visits, monkeypatch):
    """Without a kernel; the test above shows that the record says whether it is."""

    def execute(source, executed, parameters, profile):
        nbformat.write(nbformat.v4.new_notebook(), executed)
        (executed.parent / "own_data.json").write_text('{"results": {"withheld": true}}')

    monkeypatch.setattr(own_data, "execute", execute)
    assert run(**visits)[0] == 3


def test_the_notebook_has_the_options_of_the_command():
    """So that make, which takes the notebook's parameters, has them too."""
    options = {*command.COLUMNS, *command.NUMBERS}
    assert options - set(own_data.NOTEBOOK.declared_parameters()) == {"count"}


@pytest.mark.slow
def test_positions_become_cells(run, tmp_path):
    rng = np.random.default_rng(1)
    times = pd.Timestamp("2024-01-01", tz="Europe/Berlin") + pd.to_timedelta(
        rng.integers(0, 10**6, 3000), "s"
    )
    frame = pd.DataFrame({"id": rng.integers(0, 20, 3000), "timestamp": times})
    frame = frame.assign(lat=39.9 + rng.random(3000) / 20, lon=116.3 + rng.random(3000) / 20)
    frame.to_parquet(tmp_path / "data.parquet")
    words = {
        "FILE": tmp_path / "data.parquet",
        "HORIZON": "10",
        "CELL_KM": 2,
        "STEP": "1h",
        "MAX_GAP": "6h",
    }
    status, printed, folder = run(**words)
    assert (status, printed.err) == (0, "")
    assert len(pd.read_csv(folder / "own_data_budgets.csv")) == 10


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"STATE": "plce"}, "one column of state 'plce', found 'who', .*; name it by STATE="),
        pytest.param(
            {"HORIZON": "0"},
            "ValueError: HORIZON must be a whole number above 0, found 0",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_mistake_that_the_notebook_notices_is_named_with_the_words_of_make(
    run, visits, words, message
):
    status, printed, _ = run(**visits | words)
    assert status == 1
    assert re.search(message, printed.err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {},
            "FILE must name a file of observations, found none; such as: make own-data FILE=my.csv",
        ),
        (
            {"FILE": __file__, "XYZ": "1"},
            "XYZ must be a parameter .*; choose one of FILE, USER, TIME",
        ),
        (
            {"FILE": __file__, "ALPHA": "one"},
            "ALPHA must be a float, found 'one'; give such as 1.0",
        ),
        ({"FILE": "/no/such.csv"}, "there must be a file /no/such.csv, found none; check its name"),
    ],
)
def test_words_are_checked_before_anything_runs(run, words, message):
    status, printed, folder = run(**words)
    assert (status, folder.exists()) == (2, False)
    assert re.search(message, printed.err)


def test_counts_without_a_header_are_refused(run, visits, tmp_path):
    (tmp_path / "counts.csv").write_text("day,<5,98.2\n1,2,3\n")
    status, printed, _ = run(**visits, COUNTS=tmp_path / "counts.csv")
    assert (
        status,
        "counts must begin with names of their columns, found '<5'; add" in printed.err,
    ) == (2, True)
