import dataclasses

import numpy as np
import pytest

from tplrepro import comparison
from tplrepro.markov import TransitionMatrix

RNG = np.random.default_rng(0)
LEAVING = comparison.Adversary(TransitionMatrix([[0.5, 0.5], [0.0, 1.0]]))
OF_CELL_0 = {"adversary": LEAVING, "paths": np.zeros((1, 1), dtype=int), "positions": np.eye(2)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, m: comparison.setting_from_sequences([np.array([0, 1])], np.eye(2), 3, 1.0, 1.0), "smaller horizon"),
        (lambda s, m: dataclasses.replace(s, paths=np.full((2, 3), 6)), r"cells 0\.\.5"),
        (lambda s, m: dataclasses.replace(s, positions=s.positions[:5]), r"shape \(6, 2\)"),
        (lambda s, m: dataclasses.replace(s, **OF_CELL_0), "cell 0 of stationary probability 0"),
        (lambda s, m: comparison.release_conditional_response(s, 0.0, RNG), "epsilon must be a finite level"),
        (lambda s, m: comparison.release_optimal_response(s, 0.0, RNG), "epsilon must be a finite level"),
        (lambda s, m: comparison.sweep(m["equal budgets"], s, 10, [0], 2.0, 1.0, 5), "low < high"),
        (lambda s, m: comparison.sweep(m["equal budgets"], s, 10, [0], 1e-9, 1.0, 5), "choose a range that the mechan"),
    ],
)
def test_errors(setting, mechanisms, call, message):
    with pytest.raises(ValueError, match=message):
        call(setting, mechanisms)
