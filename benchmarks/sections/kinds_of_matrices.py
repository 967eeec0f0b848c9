"""The loss function of dense matrices that are not random rows."""

import statistics
from collections.abc import Iterator

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import seconds_of
from benchmarks.tables import PLAIN_HEAD, row, shown

N_STATES = 1000
#: Counts of a row that are not 0, and the bound below which they are drawn.
COUNTS = ((8, 2), (8, 50), (60, 2), (60, 50))


def measure() -> Iterator[str]:
    yield PLAIN_HEAD
    for name, P in matrices().items():
        yield row(name, shown(median_seconds(P)), "")
    yield ""
    yield "Where nearly all pairs of rows are as far apart as can be, caps leave no room for sums"
    yield "in 16 bits, and those in single precision take three times as long."


def matrices() -> dict[str, tpl.TransitionMatrix]:
    """Random rows, and smoothed counts, by their names on the page."""
    rng = np.random.default_rng(0)
    made = {"random rows": tpl.TransitionMatrix.random(N_STATES, rng=rng)}
    for n_counts, below in COUNTS:
        counts = np.zeros((N_STATES, N_STATES))
        places = rng.integers(0, N_STATES, (N_STATES, n_counts))
        values = rng.integers(1, below, (N_STATES, n_counts))
        np.put_along_axis(counts, places, values, axis=1)
        name = f"{n_counts} counts a row up to {below - 1}, smoothing 0.1"
        made[name] = tpl.TransitionMatrix.from_counts(counts, smoothing=0.1, sparse=False)
    return made


def median_seconds(P: tpl.TransitionMatrix) -> float:
    """The median seconds of five loss functions of P (n, n)."""
    return statistics.median(seconds_of(lambda: tpl.PrivacyLossFunction(P)) for _ in range(5))
