"""Synthetic event logs, written in XES and read back by the package's own reader; and writing XES in general.

A stand-in is marked as synthetic twice: by an attribute of the log in the file, and by the note beside the file that
all stand-ins of this package have. It has the format of a real log, and not its statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from tplrepro.datasets.writing import atomic_output, mark_synthetic, stand_in
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP, as_traces, check_log
from tplrepro.eventlog.xes import read_xes
from tplrepro.validation import check_horizon

__all__ = ["synthetic", "write_xes"]

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
\t<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
"""
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_xes(log: pd.DataFrame, path) -> None:
    """Write a log as XES, compressed if `path` ends in .gz; whole or not at all.

    Parameters
    ----------
    log : DataFrame with columns case:concept:name, concept:name, time:timestamp; other columns are left out
        One with ``attrs["synthetic"]`` set is marked as synthetic again.
    path : path-like

    Raises
    ------
    ValueError
        If the log is none (see `check_log`), or a name holds a character that XML does not allow.
    OSError
        The file cannot be written; nothing is left behind.
    """
    check_log(log)
    traces = as_traces(log)
    generator = dict(log.attrs.get("generator") or {}) if log.attrs.get("synthetic") else None
    _write(path, _named(traces), generator)


def synthetic(
    n_cases: int = 1000, seed: int = 0, path=None, *, n_activities: int = 16, mean_length: float = 14.5
) -> pd.DataFrame:
    """Write a synthetic log to a file and read it back.

    A case begins with the first activity and goes on to one of two to four activities that follow each one; it ends
    after any event with the same probability. Cases start at random in one year, and hours pass between two events.
    At any size memory stays bounded while writing.

    Parameters
    ----------
    n_cases : int >= 1
    seed : int
    path : path-like, optional
        File to write, compressed if it ends in .gz; by default a temporary one.
    n_activities : int >= 1
    mean_length : float >= 1, events a case

    Returns
    -------
    DataFrame, as `read_xes` gives it, with ``attrs["synthetic"]`` True

    Raises
    ------
    ValueError
        If a size is out of its range.

    Examples
    --------
    >>> log = synthetic(2, seed=1)
    >>> log.attrs["synthetic"], log["case:concept:name"].nunique()
    (True, 2)
    """
    n_cases, n_activities = check_horizon(n_cases, "n_cases"), check_horizon(n_activities, "n_activities")
    if not (np.isfinite(mean_length) and mean_length >= 1):
        raise ValueError(f"mean_length must be at least 1, found {mean_length}; give the events of a case on average")
    generator = {
        "set": "event log",
        "n_cases": n_cases,
        "seed": int(seed),
        "n_activities": n_activities,
        "mean_length": float(mean_length),
    }

    def write(target):
        rng = np.random.default_rng([int(seed), 5])
        _write(target, _cases(rng, n_cases, n_activities, float(mean_length)), generator)

    return stand_in(path, "synthetic.xes", write, read_xes)


def _cases(rng, n_cases: int, n_activities: int, mean_length: float) -> Iterator[tuple[str, list]]:
    """Names of cases with their events (activity, microseconds since 1970 UTC)."""
    activities = [f"activity {k + 1:02d}" for k in range(n_activities)]
    followers, shares = [], []
    for _ in range(n_activities):
        count = min(int(rng.integers(2, 5)), n_activities)
        followers.append(rng.choice(n_activities, count, replace=False).tolist())
        shares.append(np.cumsum(rng.dirichlet(np.full(count, 1.5))).tolist())
    year = 365 * 24 * 3600
    for case in range(1, n_cases + 1):
        length = int(rng.geometric(1.0 / mean_length))
        time = 1_640_995_200 + rng.uniform(0, year)  # from 2022-01-01 on
        gaps = rng.exponential(6 * 3600, length).tolist()
        draws = rng.random(length).tolist()
        at, events = 0, []
        for gap, draw in zip(gaps, draws, strict=True):
            events.append((activities[at], int(time * 1000) * 1000))
            time += gap
            choice = sum(draw > share for share in shares[at][:-1])
            at = followers[at][choice]
        yield f"synthetic {case}", events


def _named(traces) -> Iterator[tuple[str, list]]:
    place = 0
    for case, events in zip(traces.cases, traces.events, strict=True):
        times = traces.times[place : place + len(events)].tolist()
        place += len(events)
        yield str(case), [(traces.activities[k], time) for k, time in zip(events, times, strict=True)]


def _write(path, cases: Iterable[tuple[str, list]], generator: dict | None) -> None:
    path = Path(path)
    if generator is not None:
        mark_synthetic(path, generator)
    quoted: dict[str, str] = {}
    with atomic_output(path) as out:
        out.write(HEAD.encode())
        if generator is not None:
            out.write(b'\t<string key="tplrepro:synthetic" value="a synthetic log: no recorded data"/>\n')
        for case, events in cases:
            lines = [f'\t<trace>\n\t\t<string key="{ACTIVITY}" value={_quoted(case, CASE)}/>\n']
            for (activity, _), stamp in zip(events, _stamps(events), strict=True):
                if activity not in quoted:
                    quoted[activity] = _quoted(activity, ACTIVITY)
                lines.append(
                    f'\t\t<event>\n\t\t\t<string key="{ACTIVITY}" value={quoted[activity]}/>\n'
                    f'\t\t\t<date key="{TIMESTAMP}" value="{stamp}+00:00"/>\n\t\t</event>\n'
                )
            lines.append("\t</trace>\n")
            out.write("".join(lines).encode())
        out.write(b"</log>\n")


def _stamps(events: list) -> list[str]:
    times = np.array([time for _, time in events], dtype="datetime64[us]")
    unit = "ms" if (times == times.astype("datetime64[ms]")).all() else "us"
    return np.datetime_as_string(times, unit=unit).tolist()


def _quoted(text: str, name: str) -> str:
    if FORBIDDEN.search(text):
        raise ValueError(f"{name} must hold characters that XML allows, found {text!r}; rename it before writing")
    return quoteattr(text)
