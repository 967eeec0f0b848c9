"""Fifty guesses of a privacy engineer who has read nothing, by the habits of scikit-learn, pandas, dp_accounting and
OpenDP: each works, or its message names the right call. At least forty must."""

import re
import traceback

import numpy as np
import pandas as pd

import tplrepro as tpl

P = [[0.8, 0.2], [0.1, 0.9]]
SEQUENCES = [[0, 1, 1, 0, 1], [1, 1, 0, 0]]
FRAME = pd.DataFrame({"user": [1, 1, 2, 2], "time": [0, 1, 0, 1], "state": list("abba")})
#: What is tried -> what its message must name; None where it must work.
GUESSES = {
    "tpl.TransitionMatrix(P)": None,
    "tpl.TransitionMatrix(pd.DataFrame(P))": None,
    "np.asarray(tpl.TransitionMatrix(P))": None,
    "tpl.TransitionMatrix(P).shape": None,
    "tpl.TransitionMatrix.from_sequences(SEQUENCES)": None,
    "tpl.TransitionMatrix.from_sequences(FRAME)": None,
    "tpl.TransitionMatrix(np.array(P) * 2)": "normalize=True",
    "tpl.MarkovChain(P)": "TransitionMatrix",
    "tpl.Transition(P)": "TransitionMatrix",
    "tpl.estimate_transition_matrix(SEQUENCES)": "TransitionMatrix",
    "tpl.fit(SEQUENCES)": "TransitionMatrix",
    "tpl.PrivacyLossFunction(P)(1.0)": None,
    "tpl.PrivacyLossFunction(P)(np.linspace(0, 2, 5))": None,
    "tpl.PrivacyLossFunction(P).supremum(0.1)": None,
    "tpl.LossFunction(P)": "PrivacyLossFunction",
    "tpl.loss(P, 1.0)": "privacy_loss",
    "tpl.privacy_loss(P, 1.0)": None,
    "tpl.temporal_privacy_leakage([0.1] * 5, P, P).tpl": None,
    "tpl.temporal_privacy_leakage([0.1] * 5, backward=P, forward=P).tpl.max()": None,
    "tpl.temporal_privacy_leakage(pd.Series([0.1] * 5), P, None).bpl": None,
    "tpl.temporal_privacy_leakage(0.1, P, P)": "such as [0.1] * T",
    "tpl.temporal_privacy_leakage([0.1, -1], P, P)": "epsilons",
    "tpl.temporal_leakage([0.1] * 5, P, P)": "temporal_privacy_leakage",
    "tpl.compute_tpl([0.1] * 5, P, P)": "temporal_privacy_leakage",
    "tpl.tpl([0.1] * 5, P, P)": "temporal_privacy_leakage",
    "tpl.TemporalAccountant(P, P).compose(0.1).compose(0.2).tpl": None,
    "tpl.TemporalAccountant(P, P).compose(0.1, 3).ledger": None,
    "tpl.TemporalAccountant(P, P).compose([0.1, 0.2])": "one number",
    "tpl.Accountant(P, P)": "TemporalAccountant",
    "tpl.PrivacyAccountant(P, P)": "TemporalPrivacyAccountant",
    "tpl.TemporalPrivacyAccountant(P, P).compose(dp.GaussianDpEvent(2.0)).get_epsilon(1e-6)": None,
    "tpl.TemporalPrivacyAccountant(P, P).get_delta(1.0)": None,
    "tpl.TemporalAccountant(P, P).get_epsilon(1e-6)": "epsilon",
    "tpl.allocate_by_quantification(1.0, P, P, 5)": None,
    "tpl.allocate_by_quantification(alpha=1.0, backward=P, forward=P, horizon=5)": None,
    "tpl.allocate_by_quantification(1.0, P, P)": "horizon",
    "tpl.allocate_budget(1.0, P, P, 5)": "allocate_by_quantification",
    "tpl.allocate(1.0, P, P, 5)": "allocate_by_quantification",
    "tpl.split_budget(1.0, 5)": "allocate_by_quantification",
    "tpl.calibrate_noise(1.0, 1e-6, P, P, 5)": "allocate_noise",
    "tpl.allocate_noise(1.0, 1e-6, P, P, 5)": None,
    "tpl.release_counts([10, 20], 0.5, 1)": None,
    "tpl.release_counts(pd.Series([10, 20]), [0.5, 0.5], sensitivity=1)": None,
    "tpl.release_counts([10, 20], 0.5, 1, mechanism='laplace')": "opendp",
    "tpl.release([10, 20], 0.5, 1)": "release_counts",
    "tpl.add_noise([10, 20], 0.5)": "release_counts",
    "tpl.LaplaceMechanism(0.5)": "LaplaceNoise",
    "tpl.datasets.read_csv('my.csv')": "read_sequences",
    "tpl.datasets.load('my.csv')": "read_sequences",
    "tpl.PolicyGraph.complete(3)": "PolicyGraph",
}


def test_fifty_guesses_work_or_name_the_right_call():
    import dp_accounting as dp

    assert len(GUESSES) == 50
    missed = []
    for guess, wanted in GUESSES.items():
        try:
            eval(guess, {"tpl": tpl, "np": np, "pd": pd, "dp": dp, "P": P, "SEQUENCES": SEQUENCES, "FRAME": FRAME})
            message = None
        except Exception as error:
            message = traceback.format_exception_only(error)[-1]
        if (wanted is None) != (message is None) or (wanted and not re.search(re.escape(wanted), message)):
            missed.append((guess, wanted, message))
    assert len(missed) <= 10, "\n".join(map(str, missed))
    print(*missed, sep="\n")
