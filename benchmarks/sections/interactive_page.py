"""The interactive page: a move of a slider."""

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.tables import PLAIN_HEAD, row, shown

#: Examples of the page, with numbers of releases.
EXAMPLES = {"Fig. 8 of TKDE 2019": 10, "50 states, smoothed": 100}


def measure() -> Iterator[str]:
    yield "The processor time from a move of a slider to the data sent to the browser, without the"
    yield "browser's drawing."
    yield ""
    yield PLAIN_HEAD
    for example, horizon in EXAMPLES.items():
        yield from measure_example(example, horizon)


def measure_example(example: str, horizon: int) -> Iterator[str]:
    """The rows of one example: moves of both sliders, and what follows once they rest."""
    from page import LeakagePage

    opened = LeakagePage(example, horizon=horizon)
    complete = opened._complete
    opened._complete = lambda: None  # type: ignore[method-assign]
    for name, field in (("ε", opened.epsilon), ("α", opened.alpha)):
        moves = []
        for value in np.geomspace(0.05, 5.0, 100).tolist():
            start = time.process_time()
            field.slider.value = value
            moves.append(time.process_time() - start)
        what = f"{example}, T = {horizon}: a move of {name}, median"
        yield row(what, shown(statistics.median(moves)), "50 ms")
    start = time.process_time()
    complete()
    rest = shown(time.process_time() - start)
    yield row(f"{example}, T = {horizon}: the rest once it rests", rest, "")
