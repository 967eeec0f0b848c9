"""What somebody types who has read README.md alone, and what works by design."""

import numpy as np
import pandas as pd
import pytest

import tplrepro as tpl
from experiments import datasets

GUESSES = (
    "tpl.TransitionMatrix.random(3, rng=np.random.default_rng(1))",
    "P.sample(10, rng=np.random.default_rng(1))",
    "P.to_numpy()",
    "np.asarray(P)",
    "P @ P",
    "[0.5, 0.5] @ P",
    "P ** 3",
    "len(P)",
    "P[0, 1]",
    "tpl.temporal_privacy_leakage(0.1, P, P, horizon=10)",
    "r.tpl.max()",
    "len(r)",
    "r.to_frame()",
    "r.plot()",
    "r.max()",
    "tpl.TransitionMatrix.random(3, rng=0)",
    "P.sample(10, rng=0)",
    "tpl.TransitionMatrix([[1, 0], [0, 1]], states=['home', 'work'])['home', 'work']",
    "P.to_frame()",
    "pd.DataFrame(P)",
    "P.is_irreducible and P.is_aperiodic",
    "P.plot()",
    "tpl.PrivacyLossFunction(P).plot()",
    "datasets.load('geolife', synthetic=True, stand_in={'n_users': 1})",
)


@pytest.mark.parametrize("guess", GUESSES)
def test_calls_that_a_reader_of_readme_guesses_work(guess):
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    known = {"tpl": tpl, "np": np, "pd": pd, "datasets": datasets}
    eval(guess, known | {"P": P, "r": tpl.temporal_privacy_leakage([0.1] * 5, P, P)})
