"""The matrices of one release, against dense powers of the one-event matrices and by hand."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.eventlog.logs import labelled, log_of, random_log
from tests.leakage.oracles import loss_mpmath
from tplrepro.eventlog import TransitionSystem, loss_matrix, release_step


def test_certain_release_of_one_event():
    system = TransitionSystem.from_log(log_of("ab", "ab", "ab", "ac"), window=1)
    step = release_step(system)
    assert abs(step.forward - system.forward.toarray()).max() == 0
    # A complete case was complete before, or has just ended: four cases each.
    assert labelled(step.backward, system, ("■",)) == {("b",): 0.375, ("c",): 0.125, ("■",): 0.5}
    assert labelled(step.backward, system, ("▶",)) == {}  # nothing is known of a case before its start
    published = release_step(system, backward_from="uniform")
    assert labelled(published.backward, system, ("■",)) == {("b",): 0.5, ("c",): 0.5}


def test_exploring_is_conditioned_on_the_traces_that_go_on():
    log = log_of("ab", "ac", "acd", complete=[False, False, True])
    system = TransitionSystem.from_log(log, window=1)
    step = release_step(system, 2)
    assert labelled(step.forward, system, ("a",)) == {("d",): 1.0}  # nobody was seen to go on from b
    assert labelled(step.forward, system, ("b",)) == {}


def test_staying_where_the_log_ends():
    """Two cases a, one of which goes on to b and is there at the end: an uncertain release may have left it there."""
    system = TransitionSystem.from_log(log_of("ab", "a", complete=[False, False]), window=1)
    step = release_step(system, certain=False)
    third = pytest.approx(1 / 3)
    # Before: two cases in a, half of which move to b; one in b, half of which stay.
    assert labelled(step.backward, system, ("b",)) == {("a",): pytest.approx(2 / 3), ("b",): third}
    assert labelled(release_step(system).backward, system, ("b",)) == {("a",): 1.0}


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("state_window", [1, 2, None])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_against_dense_powers_of_complete_logs(certain, state_window, window):
    system = TransitionSystem.from_log(random_log(np.random.default_rng(window), 20), state_window)
    one = system.forward.toarray()
    powers = [np.linalg.matrix_power(one, k) for k in range(window + 1)]
    forward = powers[-1] if certain else np.mean(powers, axis=0)
    step = release_step(system, window, certain)
    assert step.forward.toarray() == pytest.approx(forward, abs=1e-12)
    joint = system.visits[:, None] * forward
    reached = (joint.sum(axis=0) > 0) & system.has_predecessor
    assert step.backward.toarray()[reached] == pytest.approx(
        (joint / joint.sum(axis=0, where=True)[None, :].clip(1e-300)).T[reached], abs=1e-12
    )
    assert (step.backward.toarray()[~reached] == 0).all()


def test_unknown_rows_add_no_leakage():
    """L over the known rows only: the largest pair loss by the definition, on rows cut out of the dense matrix."""
    log = random_log(np.random.default_rng(5), 15).assign(**{"case:complete": False})
    system = TransitionSystem.from_log(log, window=2)
    step = release_step(system)
    dense = step.forward.toarray()
    known = dense.sum(axis=1) > 0
    assert 0 < known.sum() < len(known)
    matrix, source = loss_matrix(step.forward)
    assert known[source].all()
    alphas = [0.1, 1.0, 5.0]
    best = [float(loss) for loss in loss_mpmath(dense[known], alphas)]
    assert [tpl.privacy_loss(matrix, alpha) for alpha in alphas] == pytest.approx(best, rel=1e-12)


def test_one_known_row_tells_nothing():
    system = TransitionSystem.from_log(log_of("a", complete=[False]), window=1)
    assert loss_matrix(release_step(system).forward) is None
