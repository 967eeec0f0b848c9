"""The leakage of given mechanisms against all sequences of outputs, one at a time."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.leakage.matrices import FORWARD
from tests.leakage.oracles import exhaustive_leakage
from tplrepro.leakage import exact_finite


def assert_exhaustive(r, responses, *sides):
    expected = exhaustive_leakage([np.transpose(x) for x in responses], *([P] * (len(responses) - 1) for P in sides))
    np.testing.assert_allclose([r.bpl, r.fpl, r.tpl], expected, rtol=1e-11)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("kind", ["randomised response", "any", "changing"])
def test_all_sequences_of_outputs(n, kind):
    rng = np.random.default_rng(n)
    T = 5
    backward, forward = rng.dirichlet(np.full(n, 0.4), size=(2, n))
    if kind == "changing":
        responses = [rng.dirichlet(np.ones(2 + t % 2), size=n) for t in range(T)]
        r = tpl.mechanism_leakage(responses, backward, forward)
    else:
        response = np.exp(1.3 * np.eye(n)) if kind == "randomised response" else rng.dirichlet(np.ones(3), size=n)
        responses = [response] * T
        r = tpl.mechanism_leakage(response, backward, forward, horizon=T)
    assert_exhaustive(r, responses, backward, forward)
    worst = tpl.exact_leakage(r.epsilons, backward, forward)
    assert (r.tpl <= worst.tpl + 1e-11).all()


def test_leaving_out_messages_changes_nothing(monkeypatch):
    rng = np.random.default_rng(8)
    backward, forward = rng.dirichlet(np.full(3, 0.6), size=(2, 3))
    response = rng.dirichlet(np.ones(3), size=3)
    pruned = tpl.mechanism_leakage(response, backward, forward, horizon=9)
    with monkeypatch.context() as patch:
        patch.setattr(exact_finite, "_extreme", lambda messages: messages)
        full = tpl.mechanism_leakage(response, backward, forward, horizon=9)
    for name in ("bpl", "fpl", "tpl"):
        np.testing.assert_allclose(getattr(pruned, name), getattr(full, name), rtol=1e-11)


def test_flat_sets_of_messages_are_kept():
    """Two equal rows put all messages in one plane, where Qhull finds no volume."""
    P = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    response = np.exp(np.eye(3))
    assert_exhaustive(tpl.mechanism_leakage(response, P, P, horizon=5), [response] * 5, P, P)


def test_a_side_that_is_not_known():
    response = np.exp(np.eye(2))
    r = tpl.mechanism_leakage(response, backward=FORWARD, horizon=6)
    assert_exhaustive(r, [response] * 6, FORWARD, None)
    np.testing.assert_allclose(r.tpl, tpl.temporal_privacy_leakage([1.0] * 6, backward=FORWARD).tpl, rtol=1e-12)


def test_too_many_messages(monkeypatch):
    monkeypatch.setattr(exact_finite, "MAX_MESSAGES", 5)
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    with pytest.raises(ValueError, match="at most 5 messages at a time, found 3 times 3 outputs"):
        tpl.mechanism_leakage(np.exp(np.eye(3)), P, horizon=3)
