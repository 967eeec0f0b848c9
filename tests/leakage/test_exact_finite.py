"""The leakage of given mechanisms against all sequences of outputs, one at a time."""

from itertools import product

import numpy as np
import pytest

import tplrepro as tpl
from tplrepro.leakage import exact_finite


def one_sequence_at_a_time(responses, backward, forward):
    """TPL at each time from Pr(o | l_t) of every sequence of outputs."""
    T, n = len(responses), len(backward)
    largest = np.zeros(T)
    for outputs in product(*(range(x.shape[1]) for x in responses)):
        x = [response[:, o] for response, o in zip(responses, outputs, strict=True)]
        for t in range(T):
            past, future = np.ones(n), np.ones(n)
            for s in range(t):
                past = backward @ (x[s] * past)
            for s in range(T - 1, t, -1):
                future = forward @ (x[s] * future)
            told = past * x[t] * future
            largest[t] = max(largest[t], np.log(told.max() / told.min()))
    return largest


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
    np.testing.assert_allclose(r.tpl, one_sequence_at_a_time(responses, backward, forward), rtol=1e-11)
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
    r = tpl.mechanism_leakage(response, P, P, horizon=5)
    expected = one_sequence_at_a_time([response] * 5, np.array(P), np.array(P))
    np.testing.assert_allclose(r.tpl, expected, rtol=1e-11)


def test_a_side_that_is_not_known():
    response = np.exp(np.eye(2))
    P = np.array([[0.8, 0.2], [0.1, 0.9]])
    r = tpl.mechanism_leakage(response, backward=P, horizon=6)
    np.testing.assert_allclose(r.fpl, 1.0, rtol=1e-14)
    np.testing.assert_allclose(r.tpl, tpl.temporal_privacy_leakage([1.0] * 6, backward=P).tpl, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tpl.mechanism_leakage([[1.0, 0.0], [0.5, 0.5]], horizon=2), "greater than 0"),
        (lambda: tpl.mechanism_leakage([[1.0, 0.5], [0.5, 0.5]]), "horizon = T"),
        (lambda: tpl.mechanism_leakage(np.ones((3, 2)), np.eye(2), horizon=2), "3, 3] rows and 2 states"),
        (lambda: tpl.mechanism_leakage(np.ones((2, 2)), np.eye(2), horizon=0), "at least 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_too_many_messages(monkeypatch):
    monkeypatch.setattr(exact_finite, "MAX_MESSAGES", 5)
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    with pytest.raises(ValueError, match="at most 5 messages at a time, found 3 times 3 outputs"):
        tpl.mechanism_leakage(np.exp(np.eye(3)), P, horizon=3)
