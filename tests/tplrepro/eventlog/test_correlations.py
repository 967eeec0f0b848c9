"""The matrices of one release, against dense powers of the one-event matrices and by hand."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.oracles import loss_mpmath
from tests.tplrepro.eventlog.logs import by_last_activity, labelled, random_log
from tplrepro.eventlog import TransitionSystem, loss_matrix, release_step


def test_exploring_is_conditioned_on_the_traces_that_go_on():
    system = by_last_activity("ab", "ac", "acd", complete=[False, False, True])
    step = release_step(system, 2)
    # nobody was seen to go on from b
    assert labelled(step.forward, system, ("a",)) == {("d",): 1.0}
    assert labelled(step.forward, system, ("b",)) == {}
    # nothing is known of a case before its start
    assert labelled(step.backward, system, ("▶",)) == {}


def test_an_uncertain_release_may_leave_a_case_where_the_log_ends():
    """Two cases a, one of which goes on to b and is there at the end: an uncertain release may have
    left it there."""
    system = by_last_activity("ab", "a", complete=[False, False])
    found = labelled(release_step(system, certain=False).backward, system, ("b",))
    # Before: two cases in a, half of which move to b; one in b, half of which stay.
    assert found == {("a",): pytest.approx(2 / 3), ("b",): pytest.approx(1 / 3)}
    assert labelled(release_step(system).backward, system, ("b",)) == {("a",): 1.0}


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("state_window", [1, 2, None])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_steps_of_complete_logs_are_those_of_dense_powers(certain, state_window, window):
    system = TransitionSystem.from_log(random_log(np.random.default_rng(window), 20), state_window)
    one = system.forward.toarray()
    powers = [np.linalg.matrix_power(one, k) for k in range(window + 1)]
    forward = powers[-1] if certain else np.mean(powers, axis=0)
    step = release_step(system, window, certain)
    assert step.forward.toarray() == pytest.approx(forward, abs=1e-12)
    joint = system.visits[:, None] * forward
    reached = (joint.sum(axis=0) > 0) & system.has_predecessor
    expected = np.where(reached[:, None], joint.T / joint.sum(axis=0).clip(1e-300)[:, None], 0.0)
    assert step.backward.toarray() == pytest.approx(expected, abs=1e-12)


def test_unknown_rows_add_no_leakage():
    """L over the known rows only: the largest pair loss by the definition, on rows cut out of the
    dense matrix."""
    log = random_log(np.random.default_rng(5), 15).assign(**{"case:complete": False})
    step = release_step(TransitionSystem.from_log(log, window=2))
    dense = step.forward.toarray()
    known = dense.sum(axis=1) > 0
    assert 0 < known.sum() < len(known)
    matrix, source = loss_matrix(step.forward)
    assert known[source].all()
    alphas = [0.1, 1.0, 5.0]
    best = [float(loss) for loss in loss_mpmath(dense[known], alphas)]
    assert [tpl.privacy_loss(matrix, alpha) for alpha in alphas] == pytest.approx(best, rel=1e-12)
    # one known row
    assert loss_matrix(release_step(by_last_activity("a", complete=[False])).forward) is None
