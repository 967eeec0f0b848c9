"""What the implementation published with [4] does differently, each shown on the smallest log that shows it."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.eventlog.logs import log_of
from tplrepro.eventlog import PublishedLoss, TransitionSystem, loss_matrix, quantify_releases, release_step


def test_a_state_outside_the_support_is_the_worst_case_only_if_it_is_kept():
    """[4] gives traces outside the state space probability 0 as the worst case; the published rule drops them."""
    rows = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.5, 0.1, 0.4]])
    assert tpl.privacy_loss(rows, 1.0) > 0.9 * np.log(0.9 * np.e)
    zeros_filled = tpl.smoothed(tpl.TransitionMatrix(rows), 0.001)  # the same rows without exact zeros
    assert PublishedLoss(rows).at(1.0) < 0.75 * PublishedLoss(zeros_filled).at(1.0)


def test_uniform_predecessors_are_not_bayes_rule():
    system = TransitionSystem.from_log(log_of(*["ab"] * 9, "cb"), window=1)
    b = system.states.index(("b",))
    bayes, uniform = (release_step(system, backward_from=method).backward[[b]] for method in ("bayes", "uniform"))
    assert sorted(bayes.data) == pytest.approx([0.1, 0.9])
    assert sorted(uniform.data) == pytest.approx([0.5, 0.5])


def test_uniform_predecessors_can_understate():
    """Nine of ten cases come to d by a, and to e by c: different rows by Bayes' rule, equal ones if uniform."""
    log = log_of(*["ad"] * 9, "cd", *["ce"] * 9, "ae")
    system = TransitionSystem.from_log(log, window=1)
    rows = [system.states.index((name,)) for name in "de"]
    q, d = release_step(system).backward[rows].toarray()
    assert q.max() == pytest.approx(0.9)
    assert not np.allclose(q, d)
    assert np.allclose(*release_step(system, backward_from="uniform").backward[rows].toarray())


def test_a_complete_case_was_perhaps_complete_before():
    """The published forward matrix lets a complete case stay; its backward matrix does not. Bayes' rule has both."""
    system = TransitionSystem.from_log(log_of("a", "b"), window=1)
    end = system.states.index(("■",))
    assert release_step(system).forward[[end], :].toarray()[0, end] == 1.0
    assert release_step(system, backward_from="uniform").backward[[end], :].toarray()[0, end] == 0.0
    assert release_step(system).backward[[end], :].toarray()[0, end] == 0.5


def test_fpl_runs_from_the_last_release_back():
    """Run forward, as published, the last release would carry the largest FPL, though nothing follows it."""
    log = log_of("abcd", "badc", "acbd", "ab")
    exact = quantify_releases(log, 0.1, state_window=1, smoothing=0.05, start=0.3)
    assert exact["fpl"].iloc[-1] == 0.1
    assert (exact["fpl"].iloc[0] >= exact["fpl"]).all()
    assert exact["fpl"].iloc[0] > 0.1


def test_rows_that_the_log_says_nothing_about():
    """A state in which an incomplete trace ends has no row; left as a row of its own it would change the leakage."""
    system = TransitionSystem.from_log(log_of("aab", "aac", complete=[False, False]), window=1)
    step = release_step(system)
    matrix, source = loss_matrix(step.forward)
    assert sorted({system.label(int(k)) for k in source}) == [("a",), ("▶",)]
    assert tpl.privacy_loss(matrix, 1.0) < tpl.privacy_loss(system.forward, 1.0) == 1.0
