"""Leakage of the releases of a log: against the package's dense quantification, and what it
says."""

import json
import re
from itertools import accumulate, count

import numpy as np
import pandas as pd
import pytest

import tplrepro as tpl
from experiments.datasets.event_logs import synthetic_log
from tests.tplrepro.eventlog.logs import log_of, published_log, random_log, recorded
from tests.work import LineCounter
from tplreport import read_xes
from tplrepro.eventlog import TransitionSystem, quantify_releases, release_step, releases


def dense_known_rows(rows):
    """Dense rows, unknown ones replaced by a known one, which adds no pair."""
    dense = rows.toarray()
    known = dense.sum(axis=1) > 0
    dense[~known] = dense[known][0]
    return tpl.TransitionMatrix(dense, normalize=True)


def leakage_along(matrices):
    """Eq. (11) of [1] with a budget of 0.2 a release, each matrix with states of its own."""
    return list(
        accumulate(matrices, lambda alpha, P: tpl.privacy_loss(P, alpha) + 0.2, initial=0.2)
    )


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("direction", ["prefix", "suffix"])
@pytest.mark.parametrize("state_window", [1, 2, None])
@pytest.mark.parametrize(("smoothing", "abstraction"), [(0.0, "sequence"), (0.1, "multiset")])
def test_leakages_are_those_of_dense_matrices(
    certain, direction, state_window, smoothing, abstraction
):
    log = random_log(np.random.default_rng(4), cases=20, activities="abc", longest=5)
    log["time:timestamp"] += pd.to_timedelta(log["case:concept:name"].astype(int), unit="min")
    log = log.sample(frac=1, random_state=0)  # whatever the order of the rows
    options, rng = {"window": 2, "certain": certain, "start": 0.3}, np.random.default_rng(3)
    view = {"direction": direction, "abstraction": abstraction}
    found = quantify_releases(
        log, 0.2, **options, **view, state_window=state_window, smoothing=smoothing, rng=rng
    )
    assert list(found.columns) == ["release", "epsilon", "bpl", "fpl", "tpl", "states", "seconds"]
    backward, forward = [], []
    series = list(releases(log, **options, rng=np.random.default_rng(3)))
    for release in series[1:]:
        system = TransitionSystem.from_log(
            published_log(log, release.published), state_window, **view
        )
        step = release_step(system, 2, certain)
        for matrices, rows in ((backward, step.backward), (forward, step.forward)):
            matrix = dense_known_rows(rows)
            matrices.append(tpl.smoothed(matrix, smoothing) if smoothing else matrix)
    bpl, fpl = leakage_along(backward), leakage_along(forward[::-1])[::-1]
    for name, expected in (("bpl", bpl), ("fpl", fpl), ("tpl", np.add(bpl, fpl) - 0.2)):
        assert found[name].to_numpy() == pytest.approx(expected, rel=1e-9)
    assert found["release"].tolist() == list(range(1, len(series) + 1))


def test_whole_prefixes_leak_every_budget():
    """Two prefixes without a common neighbour are told apart for certain, so leakage adds up in
    full."""
    log = log_of("abcab", "acb", "bca", "ba")
    horizon = len(quantify_releases(log, 0.1, start=0.3))
    for budgets in (np.full(horizon, 0.1), 0.1 * np.arange(1, horizon + 1)):
        found = quantify_releases(log, budgets, start=0.3)
        assert found["epsilon"].tolist() == budgets.tolist()
        assert found["bpl"].to_numpy() == pytest.approx(np.cumsum(budgets))
        assert found["tpl"].to_numpy() == pytest.approx([budgets.sum()] * horizon)
        saturated = (
            f"TPL reaches {budgets.sum():g} nats, the sum of the budgets "
            f"of all {horizon} releases, .*smoothing="
        )
        assert re.search(saturated, found.attrs["note"])
    for options in ({"state_window": 1, "smoothing": 0.1}, {"max_releases": 1}):
        assert quantify_releases(log, 0.1, start=0.3, **options).attrs["note"] is None


def test_published_rule_understates():
    log = synthetic_log(30, seed=5)
    exact, rule, uniform, bayes = (
        quantify_releases(
            log, 0.1, 2, certain=False, rng=np.random.default_rng(1), max_releases=8, **options
        )["bpl"]
        for options in (
            {},
            {"rule": "published"},
            {"rule": "published", "backward_from": "uniform"},
            {"rule": "published", "backward_from": "bayes"},
        )
    )
    assert rule.equals(uniform)  # both are as published unless one is asked for by itself
    assert not rule.equals(bayes)
    assert (rule <= exact + 1e-12).all()
    assert rule.iloc[-1] < 0.5 * exact.iloc[-1]


def test_fpl_of_the_first_release_grows_with_each_further_one():
    """FPL runs from the last release back; the published code runs it forward, beside the wrong
    release."""
    options = {"state_window": 1, "smoothing": 0.01}
    series = [
        quantify_releases(synthetic_log(60, seed=6), 0.1, **options, max_releases=t)["fpl"]
        for t in (2, 4, 8)
    ]
    assert series[0].iloc[0] < series[1].iloc[0] < series[2].iloc[0]
    assert all(fpl.iloc[-1] == 0.1 for fpl in series)


def test_witness_names_the_two_traces(tmp_path):
    log = log_of("ab", "ab", "cd")
    found = quantify_releases(log, 0.1, start=0.3)
    first, *_, last = found.attrs["backward_witness"]
    assert first is found.attrs["forward_witness"][-1] is None
    assert (last.q, last.d) == (1.0, 0.0)
    assert f"by telling {last.state_q} from {last.state_d}" in str(last)
    assert "at the release before has probability 1 from the first and 0 from the second" in str(
        last
    )
    found.to_parquet(tmp_path / "leakage.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "leakage.parquet"), found)
    json.dumps(found.attrs)
    # Every witness can be checked against the system of its release.
    series = list(releases(log, start=0.3))
    for release, witness in zip(series[1:], found.attrs["backward_witness"][1:], strict=True):
        system = TransitionSystem.from_log(published_log(log, release.published))
        rows = release_step(system).backward.toarray()
        columns = [system.states.index(label) for label in witness.columns]
        q, d = (rows[system.states.index(label)] for label in (witness.state_q, witness.state_d))
        # known rows, not stand-ins for unknown ones
        assert (q.sum(), d.sum()) == pytest.approx((1.0, 1.0))
        assert (q[columns].sum(), d[columns].sum()) == pytest.approx((witness.q, witness.d))
    found = quantify_releases(log, 0.1, 2, abstraction="set", direction="suffix", smoothing=0.01)
    witness = found.attrs["forward_witness"][0]
    assert witness.alpha == pytest.approx(found["fpl"].iloc[1])
    assert witness.loss == pytest.approx(found["fpl"].iloc[0] - 0.1)
    assert witness.where == "at the next release"


def test_a_step_of_which_nothing_is_known_adds_nothing():
    found = quantify_releases(log_of("aa", complete=[False]), 0.1, start=0.5, state_window=1)
    assert found["bpl"].tolist() == found["fpl"].tolist() == [0.1, 0.1]
    assert found.attrs["backward_witness"] == found.attrs["forward_witness"] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["synthetic", pytest.param("Sepsis", marks=pytest.mark.real_data)])
def test_fifteen_thousand_events_take_some_lines_of_python_each(name):
    log = synthetic_log(1_050, seed=11) if name == "synthetic" else read_xes(recorded(name))
    assert 14_000 < len(log) < 17_000
    with LineCounter() as lines:
        found = quantify_releases(log, 0.01)
    assert lines.count < 3000 * len(log)
    assert found["tpl"].to_numpy() == pytest.approx([0.01 * len(found)] * len(found))


def test_each_release_has_the_processor_seconds_of_its_own_computation(monkeypatch):
    clock = count(100.0, 2.0)  # two seconds from one reading to the next
    monkeypatch.setattr("tplrepro.eventlog.quantification.process_time", lambda: next(clock))
    found = quantify_releases(log_of("abcd", "ab", "abc"), 0.1)
    assert found["seconds"].tolist() == [2.0] * len(found)


def test_one_large_budget_alone_saturates_nothing():
    """The others are less than the rounding of the sum, but what they add to is forgotten."""
    log = pd.DataFrame(
        {
            "case:concept:name": list("112233"),
            "concept:name": list("abacab"),
            "time:timestamp": pd.date_range("2022-01-01", periods=6),
        }
    )
    table = quantify_releases(log, [1, 1e-13, 1e-13, 1e-13], state_window=1, smoothing=5.0)
    assert table["bpl"].iloc[-1] < 0.001
    assert table.attrs["note"] is None
