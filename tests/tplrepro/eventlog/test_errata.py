"""What the implementation published with [4] does differently, each shown on the smallest log that
shows it."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.oracles import brute_force_loss
from tests.tplrepro.eventlog.logs import by_last_activity, labelled, log_of
from tplrepro.eventlog import PublishedLoss, loss_matrix, quantify_releases, release_step


def test_a_state_outside_the_support_is_the_worst_case_only_if_it_is_kept():
    """[4] gives traces outside the state space probability 0 as the worst case; the published rule
    drops them."""
    rows = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.5, 0.1, 0.4]])
    exact = brute_force_loss(rows, 1.0)
    assert tpl.privacy_loss(rows, 1.0) == pytest.approx(exact, rel=1e-12)
    assert exact > 0.9 * np.log(0.9 * np.e)
    # the same rows without exact zeros
    zeros_filled = tpl.smoothed(tpl.TransitionMatrix(rows), 0.001)
    assert brute_force_loss(zeros_filled.toarray(), 1.0) < exact
    assert PublishedLoss(rows).at(1.0) < 0.75 * PublishedLoss(zeros_filled).at(1.0)


def test_probability_0_is_not_the_worst_that_an_unseen_trace_can_have():
    """Two states that are alike in the log leak nothing; they do if one of them may lead to a trace
    that the log has not."""
    alike = np.array([0.5, 0.5, 0.0])
    rare = np.array([0.45, 0.45, 0.1])
    assert tpl.privacy_loss([alike, alike, alike], 1.0) == 0.0
    loss = tpl.privacy_loss([rare, alike, alike], 1.0)
    assert loss == pytest.approx(np.log(0.1 * (np.e - 1) + 1), rel=1e-14)
    assert loss == pytest.approx(brute_force_loss([rare, alike, alike], 1.0), rel=1e-12)


def test_uniform_predecessors_can_understate():
    """Nine of ten cases come to d by a, and to e by c: different rows by Bayes' rule, equal ones if
    uniform."""
    system = by_last_activity(*["ad"] * 9, "cd", *["ce"] * 9, "ae")
    bayes, uniform = (
        release_step(system, backward_from=method).backward for method in ("bayes", "uniform")
    )
    assert labelled(bayes, system, ("d",)) == {
        ("a",): pytest.approx(0.9),
        ("c",): pytest.approx(0.1),
    }
    assert labelled(bayes, system, ("e",)) == {
        ("a",): pytest.approx(0.1),
        ("c",): pytest.approx(0.9),
    }
    assert (
        labelled(uniform, system, ("d",))
        == labelled(uniform, system, ("e",))
        == {("a",): 0.5, ("c",): 0.5}
    )


def test_a_complete_case_was_perhaps_complete_before():
    """The published forward matrix lets a complete case stay; its backward matrix does not. Bayes'
    rule has both."""
    system, end = by_last_activity("a", "b"), ("■",)
    assert labelled(release_step(system).forward, system, end) == {end: 1.0}
    assert end not in labelled(release_step(system, backward_from="uniform").backward, system, end)
    assert labelled(release_step(system).backward, system, end)[end] == 0.5


def test_fpl_runs_from_the_last_release_back():
    """Run forward, as published, the last release would carry the largest FPL, though nothing
    follows it."""
    fpl = quantify_releases(
        log_of("abcd", "badc", "acbd", "ab"), 0.1, state_window=1, smoothing=0.05, start=0.3
    )["fpl"]
    assert fpl.iloc[-1] == 0.1
    assert fpl.iloc[0] == fpl.max() > 0.1


def test_a_state_where_an_incomplete_trace_ends_has_no_row_of_its_own():
    """A state in which an incomplete trace ends has no row; left as a row of its own it would
    change the leakage."""
    system = by_last_activity("aab", "aac", complete=[False, False])
    matrix, source = loss_matrix(release_step(system).forward)
    assert sorted({system.label(int(k)) for k in source}) == [("a",), ("▶",)]
    assert tpl.privacy_loss(matrix, 1.0) < tpl.privacy_loss(system.forward, 1.0) == 1.0
