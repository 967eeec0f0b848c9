"""One value of the loss function beside Algorithm 1."""

from collections.abc import Iterator

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import repeat, seconds_in_turn
from benchmarks.tables import RATIO_HEAD, ratio_row

#: Calls of ours in one round.
CALLS = 20
AIMS = {0.1: "", 1.0: "", 10.0: "200"}


def measure() -> Iterator[str]:
    P = tpl.TransitionMatrix.random(200, rng=np.random.default_rng(1)).probabilities
    yield RATIO_HEAD
    for alpha, aim in AIMS.items():
        yield ratio_of_value(P, alpha, aim)


def ratio_of_value(P: np.ndarray, alpha: float, aim: str) -> str:
    """The row of one alpha (nats) for a matrix P (n, n); `aim` is the ratio to reach, "" for
    none."""

    def baseline() -> None:
        tpl.published.algorithm_1(P, alpha)

    def ours() -> None:
        repeat(CALLS, lambda: tpl.privacy_loss(P, alpha))

    theirs, own = seconds_in_turn(9, baseline, ours)
    return ratio_row(f"n = 200, α = {alpha:g}: Algorithm 1 (NumPy)", theirs, own, aim, per=CALLS)
