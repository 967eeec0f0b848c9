"""Fifty guesses of somebody who has read README.md alone: each works, or its message names the right thing."""

import traceback

import numpy as np
import pandas as pd
import pytest

import tplrepro as tpl

ROWS = [[0.8, 0.2], [0.1, 0.9]]
SEQUENCES = [[0, 1, 1, 0, 1], [1, 1, 0, 0]]
FRAME = pd.DataFrame({"user": [1, 1, 2, 2], "time": [0, 1, 0, 1], "state": list("abba")})

#: What is tried -> what its message must name; None where it must work.
GUESSES = {
    # transition matrices
    "tpl.TransitionMatrix.fit(SEQUENCES)": "TransitionMatrix.from_sequences",
    "tpl.TransitionMatrix.from_dataframe(FRAME)": "TransitionMatrix.from_sequences",
    "tpl.TransitionMatrix.from_sequences(SEQUENCES, laplace=1)": "smoothing",
    "tpl.TransitionMatrix.from_array(ROWS)": "TransitionMatrix(",
    "tpl.TransitionMatrix.random(3, rng=np.random.default_rng(1))": None,
    "tpl.TransitionMatrix.uniform(3)": "TransitionMatrix(np.full(",
    "tpl.TransitionMatrix.identity(3)": "strongest",
    "tpl.TransitionMatrix.strongest(3)": "tplrepro.strongest",
    "tpl.TransitionMatrix(ROWS, labels=['home', 'work'])": "states",
    "tpl.estimate_transition_matrix(SEQUENCES)": "TransitionMatrix.from_sequences",
    "tpl.MarkovChain(ROWS)": "TransitionMatrix",
    "P.sample(10, rng=np.random.default_rng(1))": None,
    "P.sample(10, seed=1)": "rng=",
    "P.to_numpy()": None,
    "np.asarray(P)": None,
    "P @ P": None,
    "[0.5, 0.5] @ P": None,
    "P ** 3": None,
    "P.power(2)": "every_kth",
    "P.stationary_distribution()": "stationary",
    "P.T": "reverse",
    "P.backward": "reverse",
    "P.n": "n_states",
    "len(P)": None,
    "P[0, 1]": None,
    "P.plot()": "probabilities",
    # leakage
    "tpl.compute_tpl([0.1] * 5, ROWS, ROWS)": "temporal_privacy_leakage",
    "tpl.leakage([0.1] * 5, P, P)": "temporal_privacy_leakage",
    "tpl.BPL([0.1] * 5, P)": "temporal_privacy_leakage",
    "tpl.temporal_privacy_leakage([0.1] * 5, P_b=P, P_f=P)": "backward",
    "tpl.temporal_privacy_leakage(eps=[0.1] * 5, backward=P, forward=P)": "epsilons",
    "tpl.temporal_privacy_leakage(0.1, P, P, horizon=10)": None,
    "r.tpl.max()": None,
    "r.max()": "tpl",
    "len(r)": None,
    "r[0]": "leakage.tpl[0]",
    "r.total": "user_level",
    "r.backward": "bpl",
    "r.w_event_leakage(3)": "w_event",
    "r.to_frame()": None,
    "L.sup(0.1)": "supremum",
    "tpl.supremum(P, 0.1)": "PrivacyLossFunction",
    "acct.spend(0.1)": "compose",
    "acct.get_epsilon(1e-6)": "epsilon",
    "acct.compose(epsilon=0.1)": "release",
    "acct.total": "leakage",
    "acct.budget_left": "remaining",
    "tpl.Accountant(P, P)": "TemporalAccountant",
    "tpl.PrivacyAccountant(P, P)": "TemporalAccountant",
    "tpl.w_event_leakage([0.1] * 5, P, P, 3)": ".w_event(w)",
    # budgets and releases
    "tpl.allocate(1.0, P, P, 5)": "allocate_by_quantification",
    "tpl.allocate_by_quantification(1.0, P, P, T=5)": "horizon",
    "tpl.allocate_by_upper_bound(level=1.0, backward=P, forward=P)": "alpha",
    "tpl.release([10, 20], 0.5)": "release_counts",
    "tpl.release_counts([10, 20], 0.5, sensitivity=1, seed=1)": "rng",
    "tpl.LaplaceMechanism(0.1)": "LaplaceNoise",
    "tpl.datasets.load_csv('my.csv')": "read_sequences",
    "tpl.report('my.csv', 1.0, 5)": "read_sequences",
    "tpl.dphmm.Graph.complete(3)": "PolicyGraph",
}


@pytest.fixture(scope="module")
def names():
    P = tpl.TransitionMatrix(ROWS)
    made = {"P": P, "L": tpl.PrivacyLossFunction(P), "r": tpl.temporal_privacy_leakage([0.1] * 5, P, P)}
    tools = {"tpl": tpl, "np": np, "ROWS": ROWS, "SEQUENCES": SEQUENCES, "FRAME": FRAME}
    return tools | made | {"acct": tpl.TemporalAccountant(P, P).compose(0.1, 3)}


@pytest.mark.parametrize(("guess", "wanted"), GUESSES.items())
def test_a_guess_works_or_its_message_names_the_right_thing(guess, wanted, names):
    try:
        eval(guess, names)
        message = None
    except Exception as error:
        message = traceback.format_exception_only(error)[-1]
    if wanted is None:
        assert message is None
    else:
        assert message is not None
        assert wanted in message
