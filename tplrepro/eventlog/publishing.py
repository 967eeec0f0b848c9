"""A log published over time: a first release, then new events of every case with each further one ([4]).

The first release holds the events up to a time, or a first share of them. Each further release adds to every
incomplete case the next `window` events (certain), or a random number of events from 0 to `window`
(uncertain); the artificial end counts as the last event of a complete case. Cases that are not in the first
release join in the second one, as in the implementation published with [4].
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tplrepro.eventlog.log import Traces, as_traces
from tplrepro.validation import FrozenArrays, check_horizon


@dataclass(frozen=True, eq=False)
class Release(FrozenArrays):
    """One release of the log `traces`; `number` counts from 1.

    `published` (cases,) is the number of events of each case published so far, including the artificial end.
    """

    number: int
    published: np.ndarray
    traces: Traces

    @property
    def paths(self) -> Counter[tuple[int, ...]]:
        """The distinct traces so far, with ▶ and, if complete, ■, and their numbers of cases."""
        return self.traces.paths(self.published)


def releases(
    log: pd.DataFrame,
    window: int = 1,
    *,
    certain: bool = True,
    start: float | str | pd.Timestamp = 0.5,
    max_releases: int | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Release]:
    """The releases of a log until all its events are published; ValueError for invalid logs or arguments.

    Parameters
    ----------
    log : DataFrame with columns case:concept:name, concept:name, time:timestamp
    window : int >= 1
        New events per case and release: exactly this number if `certain` (fewer at the end), else drawn from
        0..window.
    start : float in (0, 1], or a time
        The first release holds this share of the events in the order of time (ties included), or the events
        up to this time; a time without offset is UTC.
    max_releases : int >= 1, optional
    rng : numpy.random.Generator, required for uncertain releases

    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac"),
    ...     "time:timestamp": pd.to_datetime(["2022-01-01", "2022-01-03", "2022-01-02", "2022-01-04"])})
    >>> [release.published.tolist() for release in releases(log)]
    [[1, 1], [2, 2], [3, 3]]
    """
    # Checked before the generator starts, so that errors are raised by the call itself.
    traces = as_traces(log)
    if not certain and not isinstance(rng, np.random.Generator):
        raise ValueError(f"uncertain releases need rng=, a numpy.random.Generator, found {rng!r}; give a seeded one")
    return _advance(
        traces,
        _first(traces, start),
        check_horizon(window, "window"),
        None if max_releases is None else check_horizon(max_releases, "max_releases"),
        None if certain else rng,
    )


def _first(traces: Traces, start: float | str | pd.Timestamp) -> np.ndarray:
    """Number of events of each case in the first release."""
    is_number = isinstance(start, (int, float, np.number)) and not isinstance(start, bool)
    share = float(start) if is_number else None
    stamp = None if is_number else pd.to_datetime(start, utc=True, errors="coerce")
    if isinstance(stamp, pd.Timestamp):
        cut = stamp.tz_localize(None)
    elif share is not None and 0.0 < share <= 1.0:
        # Rounded first: 0.07 of 100 events are 7, though 0.07 * 100 is more.
        first = max(1, int(np.ceil(round(share * traces.times.size, 6))))
        cut = pd.Timestamp(np.partition(traces.times, first - 1)[first - 1])
    else:
        raise ValueError(f"start must be a share in (0, 1] or a time, found {start}; give the first's share")
    lengths = traces.lengths
    out = np.bincount(
        np.repeat(np.arange(lengths.size), lengths)[pd.DatetimeIndex(traces.times) <= cut], minlength=lengths.size
    )
    if not out.any():
        began = pd.Timestamp(traces.times.min())
        raise ValueError(f"the first release must hold an event, but the log begins at {began}; give a later start")
    return out + ((out == lengths) & traces.complete)


def _advance(
    traces: Traces, out: np.ndarray, window: int, max_releases: int | None, rng: np.random.Generator | None
) -> Iterator[Release]:
    """The releases, starting with the first; certain if `rng` is None."""
    full, number = traces.lengths + traces.complete, 1
    yield Release(number, out, traces)
    while (out != full).any() and number != max_releases:
        new = window if rng is None else rng.integers(0, window, out.size, endpoint=True)
        out, number = np.minimum(out + new, full), number + 1
        yield Release(number, out, traces)
