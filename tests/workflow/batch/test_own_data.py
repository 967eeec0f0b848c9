"""A file through `make own-data`: report, noisy series, and what is said of each mistake."""

import json
import os
import re
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import tplreport as tr
from tplreport import command
from tplreport.reporting.counted_steps import CountedSteps
from tplreport.reporting.plans import estimated_pair
from tplrepro import temporal_privacy_leakage
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


def report_without_kernel(parameters):
    """What the notebook leaves for the series to be published by."""
    columns = {name: parameters[name] or None for name in ("user", "time", "state")}
    sequences = tr.read_sequences(parameters["path"], **columns)
    advice = tr.report(sequences, parameters["alpha"], parameters["horizon"], draws=0)
    advice.budgets.to_csv(own_data.TARGET / "own_data_budgets.csv", index=False)
    record = {"results": {"withheld": advice.withheld}}
    (own_data.TARGET / "own_data.json").write_text(json.dumps(record))


@pytest.fixture
def run_without_kernel(run, monkeypatch):
    monkeypatch.setattr(own_data, "report", report_without_kernel)
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


@pytest.fixture
def promise(visits, tmp_path):
    """A series of four days, to be published with one promise about these people."""
    days = pd.DataFrame({"day": [f"d{t}" for t in range(4)], "home": range(100, 104)})
    days.to_csv(tmp_path / "counts.csv", index=False)
    return visits | {"ALPHA": "1", "HORIZON": "6", "COUNTS": tmp_path / "counts.csv"}


@pytest.mark.notebook
def test_own_data_give_budgets_noisy_counts_and_a_record(run, visits, tmp_path):
    series = tmp_path / "counts.csv"
    counts = pd.DataFrame({"home": np.arange(100, 106) / 2, "other": range(6)})
    counts.insert(0, "day", [f"d{t}" for t in range(6)])
    counts.to_csv(series, index=False, sep=";", decimal=",")
    status, printed, folder = run(**visits, ALPHA="1", HORIZON="6", COUNTS=series)
    assert (status, printed.err) == (0, "noise was added to home, other, and not to day\n")
    about = "visits.csv\nRead: user from 'who', time from 'day', state from 'place'\n"
    for said in (about, "1. No: 6 releases", "order of the chain"):
        assert printed.out.count(said) == 1, said
    assert "<Figure" not in printed.out
    budgets = pd.read_csv(folder / "own_data_budgets.csv")
    data = tr.read_sequences(visits["FILE"], user="who", time="day", state="place")
    pair = estimated_pair(CountedSteps.of(data), 1.0)
    schemes = [name for name in budgets.columns if name.endswith(("the estimate", "anybody"))]
    assert len(schemes) == 4
    for scheme in schemes:
        assert temporal_privacy_leakage(budgets[scheme], *pair).tpl.max() <= 1
    assert (folder / "own_data.png").stat().st_size > 10_000
    record = json.loads((folder / "own_data.json").read_text())
    assert (record["results"]["states"], record["data"]) == (3, "real (unverified)")
    assert len(record["inputs"]) == 1
    noisy = pd.read_csv(tmp_path / "counts_noisy.csv")
    assert noisy["day"].tolist() == [f"d{t}" for t in range(6)]
    assert (noisy.shape, *noisy.dtypes[1:]) == ((6, 3), np.float64, np.float64)
    assert tr.Publisher(tmp_path / "counts.sqlite").remaining == 0.0  # the plan is spent
    assert "<h2>Verdict</h2>" in (folder / "own_data_report.html").read_text()


@pytest.mark.filterwarnings("always::tplreport.publishing.publisher.RepeatedTimeWarning")
def test_counts_are_published_once_and_added_rows_get_values_of_their_own(
    run_without_kernel, promise, tmp_path
):
    """Whole times and counts stay what they are."""
    data = pd.read_csv(promise["FILE"]).rename(columns={"day": "Datum"})
    data.to_csv(promise["FILE"], index=False)
    handed_out = []
    for rows in (4, 6):
        series = pd.DataFrame({"Datum": range(rows), "home": range(100, 100 + rows)})
        series.to_csv(promise["COUNTS"], index=False)
        status, printed, _ = run_without_kernel(**promise | {"TIME": "Datum"})
        assert (status, "noise was added to home, and not to Datum" in printed.err) == (0, True)
        assert ("4 of 6 times were handed out before" in printed.err) == (rows == 6)
        handed_out.append(pd.read_csv(tmp_path / "counts_noisy.csv"))
    first, second = handed_out
    assert second.head(4).equals(first)
    assert (second["Datum"].tolist(), second["home"].dtype) == ([*range(6)], np.int64)
    ledger = tr.Publisher(tmp_path / "counts.sqlite").ledger
    assert ledger["time"].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.filterwarnings("always::tplreport.publishing.publisher.RepeatedTimeWarning")
@pytest.mark.parametrize(
    ("word", "value", "other"), [("ALPHA", "0.9", "alpha"), ("HORIZON", "7", "plan")]
)
def test_counts_are_not_published_with_another_promise(
    run_without_kernel, promise, tmp_path, word, value, other
):
    """One promise would be reported, and noise of another one handed out."""
    assert run_without_kernel(**promise)[0] == 0
    (tmp_path / "counts_noisy.csv").unlink()
    status, printed, _ = run_without_kernel(**promise | {word: value})
    assert status == 2
    assert re.search(rf"must be used as it was made, found another .*--{other}\b", printed.err)
    assert not (tmp_path / "counts_noisy.csv").exists()
    going_on = ["publish", tmp_path / "counts.sqlite", promise["COUNTS"], "--numbered"]
    assert command.main([str(word) for word in going_on]) == 0


def test_counts_whose_file_was_made_for_another_sensitivity_are_not_published(
    run_without_kernel, promise, tmp_path
):
    settings = {"alpha": 1.0, "sensitivity": 1, "plan": [0.1] * 6}
    tr.Publisher(tmp_path / "counts.sqlite", backward=None, forward=None, **settings)
    status, printed, _ = run_without_kernel(**promise)
    assert (status, "found another --sensitivity or --plan" in printed.err) == (2, True)


def test_where_the_recommendation_is_withheld_nothing_is_published(
    run_without_kernel, promise, tmp_path
):
    rows = [(f"p{who}", day, f"{who} {day}") for who in range(3) for day in range(9)]
    pd.DataFrame(rows, columns=["who", "day", "place"]).to_csv(promise["FILE"], index=False)
    assert run_without_kernel(**promise)[0] == 3
    assert not (tmp_path / "counts.sqlite").exists()


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
            {"FILE": __file__, "STEP": "1h"},
            "STEP must be one of FILE, USER, .*; for other options use tplrepro report",
        ),
        (
            {"FILE": __file__, "ALPHA": "one"},
            "ALPHA must be a float, found 'one'; give such as 1.0",
        ),
        ({"FILE": "/no/such.csv"}, "there must be a file /no/such.csv, found none; check its name"),
    ],
)
def test_wrong_variables_of_make_are_refused_before_anything_runs(run, words, message):
    status, printed, folder = run(**words)
    assert (status, folder.exists()) == (2, False)
    assert re.search(message, printed.err)


def test_counts_without_a_header_are_refused_before_anything_runs(run, visits, tmp_path):
    (tmp_path / "counts.csv").write_text("day,<5,98.2\n1,2,3\n")
    status, printed, folder = run(**visits, COUNTS=tmp_path / "counts.csv")
    assert (status, folder.exists()) == (2, False)
    assert "counts must begin with names of their columns, found a number; add" in printed.err
