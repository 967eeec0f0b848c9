"""The whole loss function beside Algorithms 2 and 4."""

from collections.abc import Iterator

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import repeat, seconds_in_turn
from benchmarks.tables import RATIO_HEAD, ratio_row

#: Calls of ours in one round.
CALLS = 20


def measure() -> Iterator[str]:
    P = tpl.TransitionMatrix.random(200, rng=np.random.default_rng(1)).probabilities

    def baseline() -> None:
        tables = tpl.published.algorithm_2(P)
        tpl.published.algorithm_4(tables, 1e-6, 10.0)

    def ours() -> None:
        repeat(CALLS, lambda: tpl.PrivacyLossFunction(P))

    theirs, own = seconds_in_turn(7, baseline, ours)
    what = "n = 200: Algorithms 2 + 4 (NumPy) on [0, 10], ours on [0, ∞)"
    yield RATIO_HEAD
    yield ratio_row(what, theirs, own, "500", per=CALLS)
