"""A log published over time: a first release, then new events of every case with each further one ([4]).

The first release holds the events up to a time, or the first share of them. Each further release adds to every case
that is not complete the next `window` events (certain), or a random number of them from 0 to `window` (uncertain); the
artificial end counts as the last event of a complete case. Cases that the first release does not hold join with the
second one, as in the implementation published with [4].

References
----------
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import time_limit
from tplrepro.eventlog.log import COMPLETE, Traces, as_traces, check_log
from tplrepro.validation import check_horizon

__all__ = ["Release", "releases"]


@dataclass(frozen=True)
class Release:
    """One release of a log.

    Attributes
    ----------
    number : int, from 1 on
    published : ndarray of int (cases,)
        How many events of each case are out so far, the artificial end included.
    traces : Traces of the whole log
    """

    number: int
    published: np.ndarray
    traces: Traces
    _log: pd.DataFrame

    @property
    def paths(self) -> Counter:
        """The distinct traces so far, with ▶ and perhaps ■, and their numbers of cases."""
        end = self.traces.end
        return Counter(
            (0, *events[:out], end) if out > len(events) else (0, *events[:out])
            for events, out in zip(self.traces.events, self.published.tolist(), strict=True)
            if out
        )

    @property
    def log(self) -> pd.DataFrame:
        """The events published so far, as a log whose column case:complete says which cases have ended."""
        lengths = np.array([len(events) for events in self.traces.events])
        offset = np.cumsum(lengths) - lengths
        position = np.arange(lengths.sum()) - np.repeat(offset, lengths)
        out = position < np.repeat(self.published, lengths)
        log = self._log.iloc[self.traces.rows[out]].reset_index(drop=True)
        log[COMPLETE] = np.repeat(self.published > lengths, lengths)[out]
        return log

    def __repr__(self) -> str:
        return f"Release({self.number}, {int((self.published > 0).sum())} cases)"


def releases(
    log: pd.DataFrame,
    window: int = 1,
    certain: bool = True,
    start: float | str | pd.Timestamp = 0.5,
    max_releases: int | None = None,
    shared_draw: bool = False,
    rng=None,
) -> Iterator[Release]:
    """The releases of a log, until all its events are out.

    Parameters
    ----------
    log : DataFrame with columns case:concept:name, concept:name, time:timestamp
    window : int >= 1, new events a case and release
    certain : bool
        Whether each case publishes exactly `window` events (fewer only at its end), or a number drawn from 0..window.
    start : float in (0, 1], or a time
        The first release holds this share of the events, in the order of time (and all events at the time of the last
        of them), or the events up to this time; a time without offset is UTC.
    max_releases : int >= 1, optional
    shared_draw : bool, default False
        In uncertain releases, draw one number for all cases, as the published implementation does, not one a case.
    rng : numpy.random.Generator or int (a seed), optional; used in uncertain releases

    Yields
    ------
    Release

    Raises
    ------
    ValueError
        If the log is none (see `check_log`), or an argument is out of its range.

    Examples
    --------
    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac"),
    ...     "time:timestamp": pd.to_datetime(["2022-01-01", "2022-01-03", "2022-01-02", "2022-01-04"])})
    >>> [release.published.tolist() for release in releases(log)]
    [[1, 1], [2, 2], [3, 3]]
    """
    # Checked here, not at the first step of the generator, so that errors appear where the call stands.
    check_log(log)
    window = check_horizon(window, "window")
    if max_releases is not None:
        max_releases = check_horizon(max_releases, "max_releases")
    traces = as_traces(log)
    lengths = np.array([len(events) for events in traces.events])
    full = lengths + traces.complete
    first = _first(traces, lengths, start)
    return _advance(log, traces, full, first, window, certain, max_releases, shared_draw, np.random.default_rng(rng))


def _first(traces: Traces, lengths: np.ndarray, start) -> np.ndarray:
    """How much of each case the first release holds."""
    if isinstance(start, Real) and not isinstance(start, bool):
        if not 0.0 < start <= 1.0:
            raise ValueError(
                f"start must be a share in (0, 1] or a time, found {start}; give the first release's share"
            )
        # Rounded first: 0.07 of 100 events are 7, though 0.07 * 100 is more.
        last = int(np.ceil(round(float(start) * traces.times.size, 6))) - 1
        cut = np.partition(traces.times, last)[last]
    else:
        stamp = time_limit(start, "start")
        if stamp is None:
            raise ValueError("start must be a share in (0, 1] or a time, found None; give the first release's share")
        cut = stamp.tz_localize(None).to_datetime64().astype("datetime64[us]").astype(np.int64)
    early = np.concatenate(([0], np.cumsum(traces.times <= cut)))
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    out = np.array([early[b] - early[a] for a, b in pairwise(bounds.tolist())])
    if not out.any():
        began = pd.Timestamp(int(traces.times.min()), unit="us")
        raise ValueError(f"the first release must hold an event, but the log begins at {began}; give a later start")
    return out + ((out == lengths) & traces.complete)


def _advance(log, traces, full, out, window, certain, max_releases, shared_draw, rng) -> Iterator[Release]:
    number = 1
    while True:
        yield Release(number, out, traces, log)
        if (out == full).all() or number == max_releases:
            return
        if certain:
            new = window
        elif shared_draw:
            new = rng.integers(0, window, endpoint=True)
        else:
            new = rng.integers(0, window, size=out.size, endpoint=True)
        out = np.minimum(out + new, full)
        number += 1
